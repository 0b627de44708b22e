// One forward pass: defaults and checks, the memory it needs, and the sums over its kernels.
#include "base/error.h"
#include "base/text.h"
#include "roofline/model_pass.h"

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

static SolModelKernel *append(SolModelPass *p, SolKernelName name, double count) {
  if (p->status) return 0;
  if (p->out->count == SOL_MAX_MODEL_KERNELS) {
    p->status = sol_fail(p->err, SOL_ERR_NO_SPACE, "the pass has more than %d kinds of kernel",
                         SOL_MAX_MODEL_KERNELS);
    return 0;
  }
  SolModelKernel *k = &p->out->kernels[p->out->count++];
  *k = (SolModelKernel){.name = name.name, .op = name.op, .part = name.part, .count = count};
  p->out->launches += count;
  return k;
}

static void add_time(SolModelPass *p, SolModelKernel *k, double each_us) {
  k->time_us = each_us * k->count;
  p->out->total_us += k->time_us;
  if (p->in_layer) p->layers_us += k->time_us;
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
  SolModelKernel *k = append(p, name, count);
  if (!k) return;
  k->bytes = work.bytes;
  k->flops = work.flops;
  k->intensity = r.intensity;
  k->bound = r.bound;
  p->out->bytes += k->bytes * count;
  p->out->flops += k->flops * count;
  add_time(p, k, r.time_us);
  double bytes = sol_model_bytes(live, p->run->dtype);
  if (bytes > p->live) p->live = bytes;
}

void sol_model_add_link(SolModelPass *p, SolKernelName name, double count, SolFabricTime time) {
  SolModelKernel *k = append(p, name, count);
  if (!k) return;
  k->bytes = time.sent;
  p->out->link_bytes += time.sent * count;
  p->out->link_us += time.us * count;
  add_time(p, k, time.us);
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

static SolStatus fill_run(const SolModelConfig *c, const SolModelRun *given, SolModelRun *run,
                          SolError *err) {
  *run = *given;
  if ((unsigned)run->phase > SOL_PHASE_DECODE)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such phase: %d", run->phase);
  int64_t new_tokens = run->phase == SOL_PHASE_DECODE, limit = position_limit(c);
  if (!run->batch) run->batch = 1;
  if (!run->tp) run->tp = 1;
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
  double matrices = 0, bytes = 0;
  for (int i = 0; i < SOL_MATRICES; i++) {
    const SolModelMatrix *m = &p->s.matrix[i];
    double one = (double)m->out * (double)m->in, all = one * (double)m->copies * (double)m->layers;
    if (i == SOL_MATRIX_HEAD && p->c->tied_embeddings) continue;
    matrices += all;
    bytes += sol_model_matrix_bytes(p, (SolMatrixId)i, all);
  }
  return bytes + sol_model_bytes(held->params - matrices, sol_model_other_dtype(p));
}

static SolStatus sum_memory(SolModelPass *p) {
  SolModelReport *out = p->out;
  SolModelWeights held;
  SolStatus status = sol_model_count(p->c, &p->s, &held, p->err);
  if (status) return status;
  double one = kv_bytes_a_layer(p), length = (double)p->kv_length, batch = (double)p->run->batch;
  double window = (double)p->c->sliding_window, windowed = (double)p->c->sliding_layers;
  double seen = window > 0 && window < length ? window : length;
  out->weight_bytes = weight_bytes(p, &held);
  out->kv_bytes_per_token = one * (double)p->c->layers;
  out->kv_bytes = batch * one * (((double)p->c->layers - windowed) * length + windowed * seen);
  // The residual stream is live in every kernel of the pass.
  out->activation_bytes = sol_model_bytes((double)p->tokens * (double)p->c->hidden, p->run->dtype) + p->live;
  if (!sol_known(p->device->mem_size)) return SOL_OK;
  out->memory_bytes = p->device->mem_size.value;
  out->fits = out->weight_bytes + out->kv_bytes + out->activation_bytes <= out->memory_bytes;
  double room = out->memory_bytes - out->weight_bytes;
  double each = (out->kv_bytes + out->activation_bytes) / batch;
  if (room > 0) out->max_batch = __builtin_floor(room / each);
  return SOL_OK;
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
  out->tokens = (double)p->tokens;
  out->tokens_per_s = out->tokens / out->total_us * 1e6;
  for (int i = 0; i < out->count; i++) out->kernels[i].share = out->kernels[i].time_us / out->total_us;
  return SOL_OK;
}

SolStatus sol_model_run(const SolDevice *device, const SolModelConfig *config, const SolModelRun *run,
                        SolModelReport *out, SolError *err) {
  if (!device || !config || !run || !out)
    return sol_fail(err, SOL_ERR_ARGUMENT, "device, config, run and out must not be NULL");
  *out = (SolModelReport){0};
  SolStatus status = sol_model_check(config, err);
  if (!status) status = fill_run(config, run, &out->run, err);
  bool asked = run->weight_dtype; // by the caller, for every weight
  SolModelPass pass = {.device = device,
                       .c = config,
                       .run = &out->run,
                       .quantised = asked ? SOL_QUANTISED_ALL : config->quantised,
                       .scales = !asked,
                       .out = out,
                       .err = err},
               *p = &pass;
  if (!status) status = sol_model_shape(config, out->run.tp, &p->s, err);
  if (status) return status;
  if (out->run.tp > 1 && !sol_known(device->link_bandwidth))
    return sol_fail(err, SOL_ERR_UNKNOWN,
                    "tensor parallelism needs the link bandwidth of %s, which is not known", device->id);
  bool decode = out->run.phase == SOL_PHASE_DECODE;
  p->tokens = decode ? out->run.batch : out->run.batch * out->run.context;
  p->kv_length = out->run.context + decode;
  sol_model_embedding(p);
  sol_model_layers(p);
  sol_model_head(p);
  if (!p->status) p->status = sum_memory(p);
  if (!p->status) p->status = sum_times(p);
  return p->status;
}
