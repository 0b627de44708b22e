// sol bench --random: cases drawn from a distribution, every operation in turn.
#include "cli/cli_bench.h"
#include "measure/draw.h"

// What a backend gets through in a moment; the GPU's is what the distribution is meant to reach.
static double most_bytes(const BenchRun *r) {
  static const double gpu = 4294967296.0, cpu = 16 << 20, emulated = 1 << 20;
  if (r->args->most_bytes > 0) return r->args->most_bytes;
  if (r->args->list) return gpu;
  SolBackend backend = sol_context_backend(r->ctx);
  return backend == SOL_BACKEND_CUDA ? gpu : backend == SOL_BACKEND_CPU ? cpu : emulated;
}

static void draw_types(BenchRun *r) {
  static const SolDtype all[] = {SOL_FP32, SOL_FP16, SOL_BF16};
  if (r->args->dtypes.count) return;
  r->dtype_count = (int)SOL_COUNT(all);
  for (int i = 0; i < r->dtype_count; i++) r->dtype[i] = all[i];
}

// A matrix product is bound by what multiplies, or by how its operands are used again: a copy of its bytes is
// a yardstick for few of them. It is drawn where it is named.
static bool drawn(const BenchRun *r, const OpsDef *def) {
  return r->args->common.positional_count ? cli_bench_wanted(r, def) : def != &ops_gemm;
}

int cli_bench_draw(BenchRun *r) {
  const OpsDef *defs[OPS_COUNT];
  int count = 0;
  for (int op = 0; op < OPS_COUNT; op++)
    if (drawn(r, ops_defs[op])) defs[count++] = ops_defs[op];
  draw_types(r);
  DrawLimits limits = {r->args->least_bytes, most_bytes(r), r->dtype, r->dtype_count};
  if (limits.least_bytes > limits.most_bytes)
    return cli_fail(r->cli, "--min-bytes is above what cases have at most here (%.0f): give --max-bytes",
                    limits.most_bytes);
  int code = EXIT_OK;
  for (int64_t i = 0; i < r->args->random && !code; i++) {
    SolError err = {0};
    BenchRow row = {.def = defs[i % count], .misalign = (int)r->args->misalign, .number = i};
    SolStatus status =
        draw_case(r->ctx, row.def, (uint64_t)r->args->seed, i, &limits, &row.c, &row.cost, &err);
    if (status == SOL_ERR_NOT_FOUND)
      r->left_out++;
    else
      code = status ? cli_error(r->cli, &err, 0, 0, 0) : cli_bench_add(r, &row);
  }
  if (!code && !r->count)
    return cli_fail(r->cli, "no operation named has cases of these types and of %.0f to %.0f bytes",
                    limits.least_bytes, limits.most_bytes);
  return code;
}
