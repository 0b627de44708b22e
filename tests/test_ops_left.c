// Rows that blocks all over the GPU share: where blocks give their parts up at the first look, as blocks do that do not run at the
// same time, the row's last block writes all that was left, without a race. On emu.
#include "check.h"
#include "measure/trial.h"

// Whether the case's result is right, and nothing raced.
static void all_left(SolContext *ctx, const char *name, int64_t n, SolDtype dtype, int misalign,
                     int64_t pad) {
  const OpsDef *def = NULL;
  for (int op = 0; op < OPS_COUNT; op++)
    if (!strcmp(ops_defs[op]->name, name)) def = ops_defs[op];
  OpsCase c = {.dtype = dtype, .pad = pad, .dim = {2, n, 3}};
  Trial t;
  SolError err = {0};
  SolStatus status = trial_open(&t, ctx, def, &c, &(TrialOptions){.seed = 5, .misalign = misalign}, &err);
  if (!status) status = trial_run(&t, &err);
  if (!status) status = trial_check(&t, NULL, &err);
  CHECK_MSG(!status, "%s of %lld: %s", name, (long long)n, err.message);
  trial_close(&t);
}

TEST(parts_that_were_given_up_emu) {
  SolContext *ctx = NULL;
  if (!ops_image_count) {
    check_skip("built without nvcc: no kernels");
    return;
  }
  CHECK_INT(sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_EMU}, &ctx, NULL), SOL_OK);
  if (!ctx) return;
  ctx->checks = SOL_EMU_CHECK_SYNC | SOL_EMU_CHECK_RACE;
  ctx->polls = 1;
  // With gaps, the output starts otherwise than the input: chunks are then parts of two threads' 16 bytes.
  all_left(ctx, "rmsnorm", 270001, SOL_FP32, 0, 0);
  all_left(ctx, "rmsnorm", 270001, SOL_FP32, 1, 3);
  all_left(ctx, "layernorm", 540001, SOL_BF16, 1, 3);
  all_left(ctx, "add_rmsnorm", 270001, SOL_FP32, 1, 3);
  sol_context_destroy(ctx);
}

CHECK_MAIN
