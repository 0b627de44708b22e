// A model's pass on one GPU as sol model shows it, for the command line and for the page.
#include "report/report_pass.h"

#include "report/report_roofs.h"

static void kernel_rows(Fact *root, const SolModelReport *r) {
  Fact *list = fact_list(root, "kernels", "Kernels of the pass");
  static const FactColumn columns[] = {{"kernel", FIT_CUT},
                                       {"time", 0},
                                       {"share", 0},
                                       {"count", 0},
                                       {"bound", 0},
                                       {"bytes each", 0},
                                       {"time each", 0},
                                       {"hidden", 0},
                                       {"by", FIT_CUT},
                                       {"FLOPs each", 0},
                                       {"intensity", 0},
                                       {"part", 0},
                                       {0}};
  fact_columns(list, columns);
  for (int i = 0; i < r->count; i++) {
    const SolModelKernel *k = &r->kernels[i];
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "name", "kernel", k->name);
    fact_text(row, "op", 0, k->op);
    fact_text(row, "part", "part", k->part);
    fact_number(row, "count", "count", UNIT_PLAIN, BASIS_EXACT, k->count);
    fact_number(row, "bytes_each", "bytes each", UNIT_BYTES, BASIS_EXACT, k->bytes);
    fact_number(row, "flops_each", "FLOPs each", UNIT_FLOPS, BASIS_EXACT, k->flops);
    fact_number(row, "bytes", 0, UNIT_BYTES, BASIS_EXACT, k->bytes * k->count);
    fact_number(row, "flops", 0, UNIT_FLOPS, BASIS_EXACT, k->flops * k->count);
    fact_number(row, "intensity", "intensity", UNIT_PLAIN, BASIS_EXACT, k->intensity);
    fact_text(row, "bound", "bound", sol_bound_name(k->bound));
    fact_number(row, "time_each_us", "time each", UNIT_US, BASIS_MODELLED,
                k->count > 0 ? k->time_us / k->count : 0);
    fact_number(row, "time_us", "time", UNIT_US, BASIS_MODELLED, k->time_us);
    fact_number(row, "share", "share", UNIT_SHARE, BASIS_MODELLED, k->share);
    if (k->hidden_us > 0) fact_number(row, "hidden_us", "hidden", UNIT_US, BASIS_MODELLED, k->hidden_us);
    if (k->how || k->measured) fact_text(row, "by", "by", k->how ? k->how : "measured rate");
  }
  // The launches, as a separate row in text; in JSON they are launch_us.
  static const FactColumn launch_columns[] = {
      {"launch cost", FIT_CUT}, {"time", 0}, {"share", 0}, {"", 0}, {"count", 0}, {0}};
  Fact *people = fact_list(root, 0, "");
  fact_columns(people, launch_columns);
  const struct {
    const char *name;
    double us;
  } rows[] = {{"launches in a stream", r->launch_stream_us},
              {"launches in a CUDA graph", r->launch_graph_us}};
  for (int i = 0; i < 2; i++) {
    Fact *row = fact_object(people, 0, 0);
    bool counted = i == (r->run.graph ? 1 : 0);
    fact_text(row, 0, "launch cost", rows[i].name);
    fact_number(row, 0, "count", UNIT_PLAIN, BASIS_EXACT, r->launches);
    fact_number(row, 0, "time", UNIT_US, BASIS_MODELLED, rows[i].us);
    fact_number(row, 0, "share", UNIT_SHARE, BASIS_MODELLED,
                rows[i].us / (r->total_us - r->launch_us + rows[i].us));
    fact_text(row, 0, "", counted ? "counted in the total" : "");
  }
}

static void memory_facts(Fact *root, const SolModelReport *r, const SolModelWeights *w) {
  Fact *m = fact_object(root, "memory", "Memory, on one GPU");
  fact_number(m, "params", "parameters, whole model", UNIT_COUNT, BASIS_EXACT, w->params);
  fact_number(m, "active_params", "  active for one token", UNIT_COUNT, BASIS_EXACT, w->active_params);
  fact_number(m, "weight_bytes", "weights", UNIT_BYTES, BASIS_EXACT, r->weight_bytes);
  fact_number(m, "kv_bytes", "KV cache", UNIT_BYTES, BASIS_EXACT, r->kv_bytes);
  fact_number(m, "kv_bytes_per_token", "KV cache per token", UNIT_BYTES, BASIS_EXACT, r->kv_bytes_per_token);
  fact_number(m, "activation_bytes", "activations, most at once", UNIT_BYTES, BASIS_EXACT,
              r->activation_bytes);
  if (r->memory_bytes > 0) {
    fact_number(m, "device_bytes", "the device has", UNIT_BYTES, BASIS_PUBLISHED, r->memory_bytes);
    fact_bool(m, "fits", "fits", r->fits);
    fact_number(m, "max_batch", "largest batch that fits at this context", UNIT_PLAIN, BASIS_MODELLED,
                r->max_batch);
  } else {
    fact_unknown(m, "device_bytes", "the device has");
    fact_unknown(m, "fits", "fits");
  }
}

// What fusing and what graphs would buy: the same pass four times.
static SolStatus what_if(Fact *root, const SolDevice *d, const SolModelConfig *config, const SolModelRun *run,
                         SolError *err) {
  Fact *list = fact_list(root, "what_if", "What fusing the fusable and CUDA graphs would buy");
  static const FactColumn columns[] = {{"fused", 0},       {"graph", 0},    {"total", 0},
                                       {"gain", 0},        {"tokens/s", 0}, {"launches", 0},
                                       {"launch cost", 0}, {"bytes", 0},    {0}};
  fact_columns(list, columns);
  double base = 0;
  for (int i = 0; i < 4; i++) {
    SolModelRun variant = *run;
    variant.fused = i & 1;
    variant.graph = i >> 1;
    SolModelReport r;
    SolStatus status = sol_model_run(d, config, &variant, &r, err);
    if (status) return status;
    if (i == 0) base = r.total_us;
    Fact *row = fact_object(list, 0, 0);
    fact_bool(row, "fused", "fused", variant.fused);
    fact_bool(row, "graph", "graph", variant.graph);
    fact_number(row, "bytes", "bytes", UNIT_BYTES, BASIS_EXACT, r.bytes);
    fact_number(row, "launches", "launches", UNIT_PLAIN, BASIS_EXACT, r.launches);
    fact_number(row, "launch_us", "launch cost", UNIT_US, BASIS_MODELLED, r.launch_us);
    fact_number(row, "total_us", "total", UNIT_US, BASIS_MODELLED, r.total_us);
    fact_number(row, "tokens_per_s", "tokens/s", UNIT_PLAIN, BASIS_MODELLED, r.tokens_per_s);
    fact_number(row, "gain", "gain", UNIT_TIMES, BASIS_MODELLED, base / r.total_us);
  }
  return SOL_OK;
}

static void split_facts(Fact *root, const SolModelReport *r) {
  const SolModelRun *run = &r->run;
  const struct {
    const char *key, *label;
    int64_t value;
  } ways[] = {{"tp", "tensor parallel", run->tp},
              {"ep", "expert parallel", run->ep},
              {"pp", "pipeline stages", run->pp},
              {"cp", "context parallel", run->cp},
              {"dp", "data parallel", run->dp},
              {"microbatches", "microbatches", run->pp > 1 ? run->microbatches : 1},
              {"prefix", "prompt tokens in the cache", run->prefix},
              {"chunk", "prompt tokens in one pass", run->chunk},
              {"draft_tokens", "proposed tokens", run->draft_tokens}};
  for (size_t i = 0; i < SOL_COUNT(ways); i++)
    fact_number(root, ways[i].key, ways[i].value > (i < 6) ? ways[i].label : 0, UNIT_PLAIN, BASIS_NONE,
                (double)ways[i].value);
  fact_number(root, "gpus", "GPUs", UNIT_PLAIN, BASIS_NONE, r->gpus);
  fact_text(root, "fabric", run->fabric ? "fabric" : 0, run->fabric ? run->fabric->name : NULL);
  if (!run->draft_tokens) return;
  fact_number(root, "acceptance", "accepted, of each", UNIT_SHARE, BASIS_NONE, run->acceptance);
  fact_number(root, "accepted", "tokens a sequence and step", UNIT_PLAIN, BASIS_MODELLED, r->accepted);
}

static void split_notes(Fact *root, const SolModelReport *r) {
  if (r->run.host_us > 0) fact_number(root, "host_us", 0, UNIT_US, BASIS_NONE, r->host_us);
  if (r->run.ungrouped) {
    fact_bool(root, "ungrouped", 0, true);
    fact_note(root, "Attention in decoding reads the cache once for every query head (--ungrouped).");
  }
  fact_number(root, "imbalance", 0, UNIT_TIMES, BASIS_MODELLED, r->imbalance);
  fact_number(root, "bubble_us", 0, UNIT_US, BASIS_MODELLED, r->bubble_us);
  fact_number(root, "link_us", 0, UNIT_US, BASIS_MODELLED, r->link_us);
  if (r->imbalance > 0)
    fact_note(
        root,
        "Assumed: tokens choose experts evenly and at random; the fullest of %lld GPUs then gets %.2f times the "
        "mean. A router that favours some experts is worse.",
        (long long)r->run.ep, r->imbalance);
  if (r->run.draft_tokens && r->run.phase == SOL_PHASE_DECODE)
    fact_note(
        root,
        "Assumed: each proposed token is accepted with probability %g, whatever came before; proposing costs %s.",
        r->run.acceptance,
        r->run.draft ? "the draft model's passes" : "nothing (--draft MODEL counts a model)");
  if (r->run.pp > 1)
    fact_note(root, "A GPU of the last stage is shown: it has the most layers, and the head.");
}

SolStatus report_pass_facts(Fact *root, const SolDevice *d, const SolModelConfig *config,
                            const SolModelRun *run, SolError *err) {
  static const char *const phases[] = {"prefill", "decode"};
  SolModelReport r;
  SolModelWeights w;
  SolStatus status = sol_model_weights(config, &w, err);
  if (!status) status = sol_model_run(d, config, run, &r, err);
  if (status) return status;
  if (r.gpus > 1)
    fact_title(root, "%s on %.0f x %s, %s", config->name, r.gpus, d->name, phases[r.run.phase]);
  else
    fact_title(root, "%s on %s, %s", config->name, d->name, phases[r.run.phase]);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, "model", 0, config->name);
  fact_text(root, "device", 0, d->id);
  report_roofs_facts(root, d);
  fact_text(root, "phase", 0, phases[r.run.phase]);
  fact_number(root, "batch", "batch", UNIT_PLAIN, BASIS_NONE, (double)r.run.batch);
  fact_number(root, "context", "context", UNIT_PLAIN, BASIS_NONE, (double)r.run.context);
  split_facts(root, &r);
  fact_text(root, "dtype", "dtype", sol_dtype_name(r.run.dtype));
  fact_text(root, "weight_dtype", "weights in", sol_dtype_name(r.run.weight_dtype));
  fact_text(root, "kv_dtype", "KV cache in", sol_dtype_name(r.run.kv_dtype));
  fact_bool(root, "fused", "fused", r.run.fused);
  fact_bool(root, "graph", "CUDA graph", r.run.graph);
  fact_number(root, "bytes", "bytes of the pass, one GPU", UNIT_BYTES, BASIS_EXACT, r.bytes);
  fact_number(root, "flops", "FLOPs of the pass, one GPU", UNIT_FLOPS, BASIS_EXACT, r.flops);
  if (r.link_bytes > 0)
    fact_number(root, "link_bytes", "sent by one GPU", UNIT_BYTES, BASIS_EXACT, r.link_bytes);
  fact_number(root, "launches", "launches", UNIT_PLAIN, BASIS_EXACT, r.launches);
  fact_number(root, "launch_us", "launch cost", UNIT_US, BASIS_MODELLED, r.launch_us);
  fact_number(root, "launch_stream_us", 0, UNIT_US, BASIS_MODELLED, r.launch_stream_us);
  fact_number(root, "launch_graph_us", 0, UNIT_US, BASIS_MODELLED, r.launch_graph_us);
  fact_number(root, "layer_us", "one layer, launches left out", UNIT_US, BASIS_MODELLED, r.layer_us);
  fact_number(root, "total_us", "total", UNIT_US, BASIS_MODELLED, r.total_us);
  fact_number(root, "tokens_per_s", r.run.phase ? "tokens/s" : "prompt tokens/s", UNIT_PLAIN, BASIS_MODELLED,
              r.tokens_per_s);
  kernel_rows(root, &r);
  memory_facts(root, &r, &w);
  status = what_if(root, d, config, run, err);
  if (status) return status;
  fact_text(root, "assumed", 0, config->assumed);
  if (config->assumed[0]) fact_note(root, "Assumed: %s.", config->assumed);
  split_notes(root, &r);
  if (r.vector_unknown)
    fact_note(
        root,
        "The peak of the vector units is not published: norms and the like are taken at the memory roof.");
  if (r.memory_bytes > 0 && !r.fits)
    fact_note(
        root,
        "This does not fit the device's memory: more GPUs (--tp), a narrower dtype or a smaller batch.");
  return SOL_OK;
}
