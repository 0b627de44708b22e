// One forward pass: defaults and checks, the memory it needs, and the sums over its kernels.
#include "base/error.h"
#include "base/text.h"
#include "roofline/model_pass.h"

enum { MOST_CHUNKS = 4096 };

double sol_model_bytes(double elements, SolDtype dtype) {
  return __builtin_ceil(elements * (double)sol_dtype_bits(dtype) / 8);
}

SolDtype sol_model_other_dtype(const SolModelPass *p) {
  return p->quantised == SOL_QUANTISED_ALL ? p->run->weight_dtype : p->run->dtype;
}

SolDtype sol_model_matrix_dtype(const SolModelPass *p, SolMatrixId id) {
  bool experts = id == SOL_MATRIX_EXPERT_UP || id == SOL_MATRIX_EXPERT_DOWN;
  bool wide = id == SOL_MATRIX_HEAD || id == SOL_MATRIX_ROUTER || id == SOL_MATRIX_SHARED_GATE;
  if (experts || (p->quantised == SOL_QUANTISED_LAYERS && !wide)) return p->run->weight_dtype;
  return sol_model_other_dtype(p);
}

double sol_model_matrix_bytes(const SolModelPass *p, SolMatrixId id, double weights) {
  SolDtype dtype = sol_model_matrix_dtype(p, id);
  double bytes = sol_model_bytes(weights, dtype);
  if (!p->scales || !p->c->scale_block || dtype != p->c->weight_dtype) return bytes;
  return bytes + __builtin_ceil(weights / (double)p->c->scale_block * p->c->scale_bits / 8);
}

SolCost sol_model_cost(SolModelPass *p, const char *op, SolOpArgs args) {
  SolCost cost = {0};
  if (!p->status) p->status = sol_op_find(op, &args.op, p->err);
  if (p->status) return cost;
  unsigned takes = sol_op_info(args.op)->options;
  if (!args.dtype) args.dtype = p->run->dtype;
  if (!args.weight_dtype && (takes & SOL_TAKES_WEIGHT_DTYPE)) args.weight_dtype = sol_model_other_dtype(p);
  if (!args.kv_dtype && (takes & SOL_TAKES_KV_DTYPE)) args.kv_dtype = p->run->kv_dtype;
  p->status = sol_op_cost(&args, &cost, p->err);
  return cost;
}

SolCost sol_model_raw(const SolModelPass *p, double read, double written, double flops) {
  SolDtype math = p->run->dtype == SOL_FP64 ? SOL_FP64 : SOL_FP32;
  return (SolCost){
      .bytes_read = read, .bytes_written = written, .flops = flops, .math = math, .unit = SOL_UNIT_VECTOR};
}

// The row of a kernel that an earlier pass has launched as well.
static SolModelKernel *row_of(SolModelPass *p, const char *name) {
  for (int i = 0; p->again && i < p->out->count; i++)
    if (sol_same_name(p->out->kernels[i].name, name)) return &p->out->kernels[i];
  return 0;
}

static SolModelKernel *append(SolModelPass *p, SolKernelName name) {
  if (p->status) return 0;
  SolModelKernel *old = row_of(p, name.name);
  if (old) return old;
  if (p->out->count == SOL_MAX_MODEL_KERNELS) {
    p->status = sol_fail(p->err, SOL_ERR_NO_SPACE, "the pass has more than %d kinds of kernel",
                         SOL_MAX_MODEL_KERNELS);
    return 0;
  }
  SolModelKernel *k = &p->out->kernels[p->out->count++];
  *k = (SolModelKernel){.name = name.name, .op = name.op, .part = name.part};
  return k;
}

// Bytes and FLOPs of a row are those of its average launch.
static void add_launches(SolModelPass *p, SolModelKernel *k, double count, double bytes, double flops) {
  double all = k->count + count;
  k->bytes = (k->bytes * k->count + bytes * count) / all;
  k->flops = (k->flops * k->count + flops * count) / all;
  k->intensity = k->bytes > 0 ? k->flops / k->bytes : 0;
  k->count = all;
  p->out->launches += count;
}

static void add_time(SolModelPass *p, SolModelKernel *k, double count, double each_us, double hidden_us) {
  k->time_us += each_us * count;
  k->hidden_us += hidden_us * count;
  p->last_us = each_us;
  p->out->total_us += (each_us - hidden_us) * count;
  if (p->in_layer) p->layers_us += (each_us - hidden_us) * count;
}

// The memory roof gives way to what the operation was measured to reach.
static double measured_time(const SolModelPass *p, const char *op, const SolRoofline *r, SolModelKernel *k) {
  for (int i = 0; i < p->run->measured_count; i++) {
    if (!sol_same_name(p->run->measured[i].op, op)) continue;
    double us = r->bytes / p->run->measured[i].bytes_per_s * 1e6;
    k->measured = 1;
    return us > r->compute_us ? us : r->compute_us;
  }
  return r->time_us;
}

void sol_model_add(SolModelPass *p, SolKernelName name, double count, SolCost cost, double live) {
  if (p->status || count <= 0) return;
  SolWork work = sol_work_of_cost(&cost);
  work.launches = 0;
  SolRoofline r;
  p->status = sol_roofline(p->device, &work, 0, &r, p->err);
  if (p->status == SOL_ERR_UNKNOWN && cost.unit == SOL_UNIT_VECTOR && !p->device->cc_major) {
    work.flops =
        0; // the rate of its vector units is not published: such kernels are bound by memory elsewhere
    p->status = sol_roofline(p->device, &work, 0, &r, p->err);
    work.flops = cost.flops;
    p->out->vector_unknown = 1;
  }
  SolModelKernel *k = append(p, name);
  if (!k) return;
  add_launches(p, k, count, work.bytes, work.flops);
  k->bound = r.bound;
  p->out->bytes += work.bytes * count;
  p->out->flops += work.flops * count;
  add_time(p, k, count, measured_time(p, name.op, &r, k), 0);
  double bytes = sol_model_bytes(live, p->run->dtype);
  if (bytes > p->live) p->live = bytes;
}

void sol_model_add_link(SolModelPass *p, SolKernelName name, double count, SolFabricTime time,
                        double hidden_us) {
  SolModelKernel *k = append(p, name);
  if (!k || count <= 0) return;
  add_launches(p, k, count, time.sent, 0);
  k->bound = SOL_BOUND_LINK;
  k->how = time.how;
  p->out->link_bytes += time.sent * count;
  p->out->link_us += time.us * count;
  add_time(p, k, count, time.us, hidden_us);
}

static SolStatus check_limit(const char *what, int64_t value, int64_t most, SolError *err) {
  if (value >= 1 && value <= most) return SOL_OK;
  return sol_fail(err, value > most ? SOL_ERR_RANGE : SOL_ERR_ARGUMENT, "%s must be from 1 to %lld, not %lld",
                  what, (long long)most, (long long)value);
}

// Positions that a learned table has room for; 0: no such limit.
static int64_t position_limit(const SolModelConfig *c) {
  if (!c->learned_positions) return 0;
  return c->max_positions && c->max_positions < c->learned_positions ? c->max_positions
                                                                     : c->learned_positions;
}

static SolStatus check_tokens(const SolModelRun *run, SolError *err) {
  if (run->prefix < 0 || run->chunk < 0)
    return sol_fail(err, SOL_ERR_ARGUMENT, "prefix and chunk must not be negative");
  if (run->phase == SOL_PHASE_PREFILL && run->prefix >= run->context)
    return sol_fail(err, SOL_ERR_ARGUMENT, "prefix: %lld tokens leave nothing of a context of %lld",
                    (long long)run->prefix, (long long)run->context);
  if (run->phase == SOL_PHASE_PREFILL && run->cp > run->context - run->prefix)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "cp: %lld new tokens are too few for %lld GPUs",
                    (long long)(run->context - run->prefix), (long long)run->cp);
  if (run->chunk && (run->context - run->prefix) / run->chunk > MOST_CHUNKS)
    return sol_fail(err, SOL_ERR_RANGE, "chunk: %lld tokens make more than %d passes", (long long)run->chunk,
                    MOST_CHUNKS);
  if (run->draft_tokens < 0 || run->draft_tokens > 1024)
    return sol_fail(err, SOL_ERR_ARGUMENT, "draft_tokens must be 0 to 1024, not %lld",
                    (long long)run->draft_tokens);
  if (!(run->host_us >= 0 && run->host_us < 1e12))
    return sol_fail(err, SOL_ERR_ARGUMENT, "host_us must not be negative, and below 1e12, not %g",
                    run->host_us);
  if (!(run->acceptance >= 0 && run->acceptance <= 1))
    return sol_fail(err, SOL_ERR_ARGUMENT, "acceptance must be 0 to 1, not %g", run->acceptance);
  return SOL_OK;
}

static SolStatus fill_run(const SolModelConfig *c, const SolDevice *device, const SolModelRun *given,
                          SolModelRun *run, SolError *err) {
  *run = *given;
  if ((unsigned)run->phase > SOL_PHASE_DECODE)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such phase: %d", run->phase);
  int64_t new_tokens = run->phase == SOL_PHASE_DECODE ? 1 + run->draft_tokens : 0, limit = position_limit(c);
  if (!run->batch) run->batch = 1;
  if (run->draft_tokens && run->acceptance == 0) run->acceptance = 0.7;
  if (!run->context) {
    run->context = 4096;
    if (limit && limit < run->context + new_tokens) run->context = limit > 1 ? limit - new_tokens : 1;
  }
  if (!run->dtype) run->dtype = c->dtype == SOL_FP16 ? SOL_FP16 : SOL_BF16;
  if (!run->weight_dtype) run->weight_dtype = c->weight_dtype ? c->weight_dtype : run->dtype;
  if (!run->kv_dtype) run->kv_dtype = run->dtype;
  SolStatus status = check_limit("batch", run->batch, 1LL << 31, err);
  if (!status) status = check_limit("context", run->context, 1LL << 31, err);
  if (!status && run->phase == SOL_PHASE_PREFILL)
    status = check_limit("batch x context", run->batch * run->context, 1LL << 40, err);
  if (!status) status = sol_model_fill_split(c, device, run, err);
  if (!status) status = check_tokens(run, err);
  if (status) return status;
  if (limit && run->context + new_tokens > limit)
    return sol_fail(err, SOL_ERR_ARGUMENT,
                    "a context of %lld and %lld new token(s) pass the %lld learned positions",
                    (long long)run->context, (long long)new_tokens, (long long)limit);
  SolDtype dtypes[] = {run->dtype, run->weight_dtype, run->kv_dtype};
  for (size_t i = 0; i < SOL_COUNT(dtypes); i++)
    if (!sol_dtype_bits(dtypes[i]))
      return sol_fail(err, SOL_ERR_ARGUMENT, "no such dtype: %d", (int)dtypes[i]);
  return SOL_OK;
}

// Bytes of the cache for one token in one layer. Latent attention keeps the latent and the rotated key, once.
static double kv_bytes_a_layer(const SolModelPass *p) {
  const SolModelConfig *c = p->c;
  int64_t elements = c->kv_lora_rank ? c->kv_lora_rank + p->s.rope_dim : 2 * p->s.kv_heads * c->head_dim;
  return sol_model_bytes((double)elements, p->run->kv_dtype);
}

static double weight_bytes(const SolModelPass *p, const SolModelWeights *held) {
  double matrices = 0, bytes = 0, params = held->params;
  if (p->run->pp > 1 && !p->c->tied_embeddings) params -= held->embedding_params; // the first stage's
  for (int i = 0; i < SOL_MATRICES; i++) {
    const SolModelMatrix *m = &p->s.matrix[i];
    double one = (double)m->out * (double)m->in, all = one * (double)m->copies * (double)m->layers;
    if (i == SOL_MATRIX_HEAD && p->c->tied_embeddings) continue;
    matrices += all;
    bytes += sol_model_matrix_bytes(p, (SolMatrixId)i, all);
  }
  return bytes + sol_model_bytes(params - matrices, sol_model_other_dtype(p));
}

static SolStatus sum_memory(SolModelPass *p) {
  SolModelReport *out = p->out;
  SolModelWeights held;
  SolStatus status = sol_model_count(p->c, &p->s, &held, p->err);
  if (status) return status;
  double one = kv_bytes_a_layer(p), batch = (double)p->held;
  double length = __builtin_ceil((double)p->kv_length / (double)p->run->cp);
  double window = (double)p->c->sliding_window, windowed = (double)p->c->sliding_layers;
  double seen = window > 0 && window < length ? window : length;
  out->weight_bytes += weight_bytes(p, &held);
  out->kv_bytes_per_token = one * (double)p->c->layers;
  out->kv_bytes += batch * one * (((double)p->c->layers - windowed) * length + windowed * seen);
  // The residual stream is live in every kernel of the pass.
  out->activation_bytes = sol_model_bytes((double)p->tokens * (double)p->c->hidden, p->run->dtype) + p->live;
  if (!sol_known(p->device->mem_size)) return SOL_OK;
  out->memory_bytes = p->device->mem_size.value;
  out->fits = out->weight_bytes + out->kv_bytes + out->activation_bytes <= out->memory_bytes;
  double room = out->memory_bytes - out->weight_bytes;
  double each = (out->kv_bytes + out->activation_bytes) / batch;
  if (room > 0) out->max_batch = __builtin_floor(room / each) * (double)p->run->dp;
  return SOL_OK;
}

// The server works once for every pass, those of a draft model too.
static void add_host(SolModelPass *p, double passes) {
  const SolModelRun *run = p->run;
  bool drafts = run->phase == SOL_PHASE_DECODE && run->draft;
  double count = passes + (drafts ? (double)run->draft_tokens : 0);
  SolModelKernel *k =
      run->host_us > 0 ? append(p, (SolKernelName){"the server's own work", "host", "host"}) : 0;
  if (!k) return;
  k->count = count;
  k->bound = SOL_BOUND_LAUNCH;
  k->time_us = p->out->host_us = run->host_us * count;
  p->out->total_us += k->time_us;
}

static SolStatus sum_times(SolModelPass *p) {
  SolModelReport *out = p->out;
  SolFigure stream = p->device->launch_us, graph = p->device->graph_launch_us;
  out->launch_stream_us = sol_known(stream) ? out->launches * stream.value : __builtin_nan("");
  out->launch_graph_us = sol_known(graph) ? out->launches * graph.value : __builtin_nan("");
  if (!sol_known(p->run->graph ? graph : stream))
    return sol_fail(p->err, SOL_ERR_UNKNOWN, "the launch cost of %s %s is not known", p->device->id,
                    p->run->graph ? "in a CUDA graph" : "in a stream");
  out->launch_us = p->run->graph ? out->launch_graph_us : out->launch_stream_us;
  out->layer_us = p->layers_us / (double)p->c->layers;
  out->total_us += out->launch_us;
  return SOL_OK;
}

static void sum_tokens(SolModelPass *p) {
  SolModelReport *out = p->out;
  const SolModelRun *run = p->run;
  bool decode = run->phase == SOL_PHASE_DECODE;
  out->accepted = 1;
  double chance = 1;
  for (int64_t i = 0; decode && i < run->draft_tokens; i++) out->accepted += chance *= run->acceptance;
  out->tokens = (double)run->batch * (decode ? out->accepted : (double)(run->context - run->prefix));
  out->tokens_per_s = out->tokens / out->total_us * 1e6;
  out->gpus = (double)run->tp * (double)run->pp * (double)run->cp * (double)run->dp;
  for (int i = 0; i < out->count; i++)
    out->kernels[i].share = (out->kernels[i].time_us - out->kernels[i].hidden_us) / out->total_us;
}

// The model that proposes tokens decodes them one after another, on the same GPUs, with the same types.
static void propose(SolModelPass *p) {
  const SolModelRun *run = p->run;
  if (run->phase != SOL_PHASE_DECODE || !run->draft_tokens || !run->draft || p->status) return;
  SolModelReport r;
  SolModelRun draft = {.phase = SOL_PHASE_DECODE,
                       .batch = p->batch,
                       .context = run->context,
                       .tp = run->tp,
                       .dtype = run->dtype,
                       .kv_dtype = run->kv_dtype,
                       .fabric = run->fabric,
                       .fused = run->fused,
                       .graph = run->graph};
  p->status = sol_model_run(p->device, run->draft, &draft, &r, p->err);
  SolModelKernel *k = append(p, (SolKernelName){"draft model", "draft", "model"});
  if (!k) return;
  double steps = (double)run->draft_tokens, us = r.total_us - r.launch_us;
  add_launches(p, k, steps, r.bytes, r.flops);
  p->out->launches += steps * (r.launches - 1);
  p->out->bytes += steps * r.bytes;
  p->out->flops += steps * r.flops;
  p->out->draft_us = steps * us;
  p->out->weight_bytes = r.weight_bytes;
  p->out->kv_bytes = r.kv_bytes * (double)p->held / (double)p->batch;
  add_time(p, k, steps, us, 0);
}

static void one_pass(SolModelPass *p, int64_t cached, int64_t queries) {
  int64_t cp = p->run->phase == SOL_PHASE_PREFILL ? p->run->cp : 1;
  p->queries = queries;
  p->kv_length = cached + queries;
  p->tokens = p->batch * sol_model_part(queries, cp);
  sol_model_embedding(p);
  sol_model_layers(p);
  sol_model_head(p);
  sol_model_stage_send(p);
  p->again = true;
}

// Returns the number of passes: one, or a prompt's chunks.
static double all_passes(SolModelPass *p) {
  const SolModelRun *run = p->run;
  if (run->phase == SOL_PHASE_DECODE) {
    p->last = true;
    one_pass(p, run->context, 1 + run->draft_tokens);
    return 1;
  }
  double passes = 0;
  int64_t chunk = run->chunk ? run->chunk : run->context;
  for (int64_t at = run->prefix; at < run->context && !p->status; at += chunk, passes++) {
    int64_t left = run->context - at;
    p->last = left <= chunk;
    one_pass(p, at, p->last ? left : chunk);
  }
  return passes;
}

SolStatus sol_model_run(const SolDevice *device, const SolModelConfig *config, const SolModelRun *run,
                        SolModelReport *out, SolError *err) {
  if (!device || !config || !run || !out)
    return sol_fail(err, SOL_ERR_ARGUMENT, "device, config, run and out must not be NULL");
  *out = (SolModelReport){0};
  SolStatus status = sol_model_check(config, err);
  if (!status) status = fill_run(config, device, run, &out->run, err);
  if (status) return status;
  bool asked = run->weight_dtype; // by the caller, for every weight
  SolFabric own = sol_fabric_of_device(device);
  SolModelConfig stage = sol_model_stage(config, out->run.pp);
  SolModelPass pass = {.device = device,
                       .c = &stage,
                       .run = &out->run,
                       .fabric = run->fabric ? run->fabric : &own,
                       .quantised = asked ? SOL_QUANTISED_ALL : config->quantised,
                       .scales = !asked,
                       .out = out,
                       .err = err},
               *p = &pass;
  if ((status = sol_model_shape(&stage, out->run.tp, out->run.ep, &p->s, err))) return status;
  p->held = sol_model_part(out->run.batch, out->run.dp);
  p->batch = sol_model_part(p->held, out->run.pp > 1 ? out->run.microbatches : 1);
  double passes = all_passes(p);
  propose(p);
  add_host(p, passes);
  if (!p->status) p->status = sum_memory(p);
  if (!p->status) p->status = sum_times(p);
  if (p->status) return p->status;
  sol_model_pipeline(p, passes);
  sum_tokens(p);
  return SOL_OK;
}
