// How a model is split over GPUs, beyond the columns of its matrices (model_weights.c):
//
// - Pipeline (pp): a stage has as many layers as the fullest; the last one has the head. The batch is cut into
//   microbatches that follow each other. A prompt's stages wait (pp - 1) times for one microbatch; in decode the
//   next token's microbatches follow at once, so that stages wait only where there are fewer microbatches than stages.
// - Data (dp): replicas, each with its part of the batch.
// - Context (cp): a prompt's tokens are split evenly and the keys and values passed round, behind attention; in decode
//   the cache is split and the partial results are gathered.
// - Experts (ep): whole experts. GPUs of one tensor-parallel group see the same tokens and sum as before; where more
//   GPUs share the experts, each token is sent to the GPUs of its experts and the results back.
#include "base/error.h"
#include "roofline/model_pass.h"

static SolFabricGroup group(const SolModelPass *p, int64_t gpus, int64_t stride) {
  return (SolFabricGroup){p->fabric, gpus, stride};
}

SolFabricGroup sol_model_tp_group(const SolModelPass *p) {
  return group(p, p->run->tp, 1);
}

SolFabricGroup sol_model_cp_group(const SolModelPass *p) {
  return group(p, p->run->cp, p->run->tp);
}

SolFabricGroup sol_model_ep_group(const SolModelPass *p) {
  return group(p, p->run->ep, 1);
}

SolFabricGroup sol_model_pp_group(const SolModelPass *p) {
  return group(p, p->run->pp, p->run->tp * p->run->cp * p->run->dp);
}

bool sol_model_exchanges_tokens(const SolModelPass *p) {
  return p->run->ep > p->run->tp;
}

double sol_model_expert_tokens(const SolModelPass *p) {
  double replicas = sol_model_exchanges_tokens(p) ? (double)p->run->ep / (double)p->run->tp : 1;
  return (double)p->tokens * replicas;
}

// ln(x), x >= 1, by ln(x) = k ln 2 + 2 artanh((y - 1) / (y + 1)) with y = x / 2^k below 2.
static double natural_log(double x) {
  double sum = 0, power, square;
  while (x >= 2) {
    x /= 2;
    sum += 0.69314718055994531;
  }
  double t = (x - 1) / (x + 1);
  power = t, square = t * t;
  for (int n = 1; n < 40; n += 2, power *= square) sum += 2 * power / n;
  return sum;
}

// Tokens that choose experts evenly and at random make the counts of rows Poisson: the largest of n such counts with
// mean m is about m + sqrt(2 m ln n).
double sol_model_imbalance(const SolModelPass *p) {
  double gpus = (double)p->run->ep;
  double mean = sol_model_expert_tokens(p) * (double)p->c->experts_per_token / gpus;
  double over = 1 + __builtin_sqrt(2 * natural_log(gpus) / mean);
  return over < gpus ? over : gpus;
}

static SolStatus check_counts(const SolModelRun *run, SolError *err) {
  const struct {
    const char *name;
    int64_t value;
  } counts[] = {{"tp", run->tp}, {"ep", run->ep}, {"pp", run->pp},
                {"cp", run->cp}, {"dp", run->dp}, {"microbatches", run->microbatches}};
  for (size_t i = 0; i < SOL_COUNT(counts); i++)
    if (counts[i].value < 1 || counts[i].value > 65536)
      return sol_fail(err, SOL_ERR_ARGUMENT, "%s must be 1 to 65536, not %lld", counts[i].name,
                      (long long)counts[i].value);
  return SOL_OK;
}

static SolStatus check_experts(const SolModelConfig *c, const SolModelRun *run, SolError *err) {
  int64_t tp = run->tp, ep = run->ep;
  if (ep == 1) return SOL_OK;
  if (!c->experts) return sol_fail(err, SOL_ERR_UNSUPPORTED, "ep: %s has no experts to split", c->name);
  if (ep > tp ? ep % tp || (tp * run->dp) % ep : tp % ep)
    return sol_fail(err, SOL_ERR_UNSUPPORTED,
                    "ep: %lld must divide tp (%lld), or be a multiple of it that divides tp x dp (%lld)",
                    (long long)ep, (long long)tp, (long long)(tp * run->dp));
  return SOL_OK;
}

static SolStatus check_fabric(const SolDevice *device, const SolModelRun *run, double gpus, SolError *err) {
  const SolFabric *f = run->fabric;
  if (!f && !sol_known(device->link_bandwidth)) {
    sol_fail(err, SOL_ERR_UNKNOWN, "several GPUs need the link bandwidth of %s, which is not known",
             device->id);
    sol_hint(err, "describe the links with a fabric");
    return SOL_ERR_UNKNOWN;
  }
  if (!f || !f->inside.gpus || gpus <= (double)f->inside.gpus || f->between.bandwidth > 0) return SOL_OK;
  return sol_fail(err, SOL_ERR_UNSUPPORTED,
                  "fabric: %.0f GPUs are more than the %lld of one machine, and \"between\" is missing", gpus,
                  (long long)f->inside.gpus);
}

SolStatus sol_model_fill_split(const SolModelConfig *c, const SolDevice *device, SolModelRun *run,
                               SolError *err) {
  int64_t *ones[] = {&run->tp, &run->ep, &run->pp, &run->cp, &run->dp};
  for (size_t i = 0; i < SOL_COUNT(ones); i++)
    if (!*ones[i]) *ones[i] = 1;
  if (!run->microbatches) run->microbatches = run->pp;
  SolStatus status = check_counts(run, err);
  if (!status && run->pp > c->layers)
    status = sol_fail(err, SOL_ERR_UNSUPPORTED, "pp: %lld stages are more than the model's %lld layers",
                      (long long)run->pp, (long long)c->layers);
  if (!status) status = check_experts(c, run, err);
  double gpus = (double)run->tp * (double)run->pp * (double)run->cp * (double)run->dp;
  if (!status && gpus > 1 && (gpus > (double)run->dp || run->ep > 1))
    status = check_fabric(device, run, gpus, err);
  return status;
}

static int64_t share(int64_t part, int64_t stage, int64_t layers) {
  int64_t up = sol_model_part(part * stage, layers);
  return up < stage ? up : stage;
}

SolModelConfig sol_model_stage(const SolModelConfig *config, int64_t stages) {
  SolModelConfig c = *config;
  c.layers = sol_model_part(config->layers, stages);
  c.sliding_layers = share(config->sliding_layers, c.layers, config->layers);
  c.moe_layers = share(config->moe_layers, c.layers, config->layers);
  return c;
}

void sol_model_stage_send(SolModelPass *p) {
  if (p->run->pp < 2) return;
  SolFabricGroup g = sol_model_pp_group(p);
  double bytes =
      sol_model_bytes((double)p->tokens * (double)p->c->hidden, p->run->dtype) / (double)p->run->tp;
  sol_model_add_link(p, (SolKernelName){"send to the next stage", "link", "send"}, 1,
                     sol_fabric_send(&g, bytes), 0);
}

// `units`: passes that one microbatch makes. So far the report has one microbatch; launch costs are in.
void sol_model_pipeline(SolModelPass *p, double units) {
  SolModelReport *out = p->out;
  double stages = (double)p->run->pp;
  double parts = (double)sol_model_part(p->held, p->batch); // microbatches that have sequences
  if (p->run->pp < 2) return;
  double waits = p->run->phase == SOL_PHASE_PREFILL ? stages - 1 : parts < stages ? stages - parts : 0;
  out->bubble_us = waits * out->total_us / units;
  for (int i = 0; i < out->count; i++) {
    out->kernels[i].count *= parts;
    out->kernels[i].time_us *= parts;
    out->kernels[i].hidden_us *= parts;
  }
  double *sums[] = {&out->launches, &out->launch_us, &out->launch_stream_us, &out->launch_graph_us,
                    &out->bytes,    &out->flops,     &out->link_bytes,       &out->link_us,
                    &out->draft_us, &out->host_us,   &out->total_us};
  for (size_t i = 0; i < SOL_COUNT(sums); i++) *sums[i] *= parts;
  out->total_us += out->bubble_us;
  if (waits <= 0 || out->count == SOL_MAX_MODEL_KERNELS) return;
  out->kernels[out->count++] = (SolModelKernel){.name = "stages that wait",
                                                .part = "pipeline",
                                                .op = "wait",
                                                .count = waits,
                                                .bound = SOL_BOUND_LAUNCH,
                                                .time_us = out->bubble_us};
}
