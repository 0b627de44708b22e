// Long rows that blocks all over the GPU share, without a race, on emu. parts.cuh: where blocks give their parts up at the first look, as blocks do
// that do not run at the same time, the row's last block writes all that was left. relay.cuh: what one block has written others read, and the last
// that writes a row writes its start.
#include "check.h"
#include "measure/trial.h"

// Whether the case's result is right, and nothing raced.
static void shared_rows(SolContext *ctx, const char *name, const OpsCase *c, int misalign) {
  const OpsDef *def = NULL;
  for (int op = 0; op < OPS_COUNT; op++)
    if (!strcmp(ops_defs[op]->name, name)) def = ops_defs[op];
  Trial t;
  SolError err = {0};
  SolStatus status = trial_open(&t, ctx, def, c, &(TrialOptions){.seed = 5, .misalign = misalign}, &err);
  if (!status) status = trial_run(&t, &err);
  if (!status) status = trial_check(&t, NULL, &err);
  CHECK_MSG(!status, "%s of %lld: %s", name, (long long)c->dim[1], err.message);
  trial_close(&t);
}

static SolContext *open_context(void) {
  SolContext *ctx = NULL;
  if (!ops_image_count) {
    check_skip("built without nvcc: no kernels");
    return NULL;
  }
  CHECK_INT(sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_EMU}, &ctx, NULL), SOL_OK);
  if (ctx) ctx->checks = SOL_EMU_CHECK_SYNC | SOL_EMU_CHECK_RACE;
  return ctx;
}

TEST(parts_that_were_given_up_emu) {
  SolContext *ctx = open_context();
  if (!ctx) return;
  ctx->polls = 1;
  enum { FP8_BY_ROWS = 2 };
  OpsCase c = {.dtype = SOL_FP32, .option = FP8_BY_ROWS, .dim = {2, 270001}};
  shared_rows(ctx, "silu_mul", &c, 0);
  c.pad = 3;
  shared_rows(ctx, "silu_mul", &c, 1);
  c.dtype = SOL_BF16;
  shared_rows(ctx, "silu_mul", &c, 1);
  sol_context_destroy(ctx);
}

TEST(rows_that_are_read_twice_emu) {
  SolContext *ctx = open_context();
  if (!ctx) return;
  // With gaps, the output starts otherwise than the input: chunks are then parts of two threads' 16 bytes.
  OpsCase c = {.dtype = SOL_FP32, .dim = {2, 270001, 3}};
  shared_rows(ctx, "rmsnorm", &c, 0);
  c.pad = 3;
  shared_rows(ctx, "rmsnorm", &c, 1);
  shared_rows(ctx, "add_rmsnorm", &c, 1);
  shared_rows(ctx, "embed_rmsnorm", &c, 1);
  c.dtype = SOL_BF16, c.dim[1] = 540001;
  shared_rows(ctx, "layernorm", &c, 1);
  sol_context_destroy(ctx);
}

CHECK_MAIN
