#include "ladder/sweep.h"

#include "ladder/ladder_jobs.h"

// 0 to 15, in no regular order: a kernel that reads the wrong elements gets another sum.
static void numbers(const LadderCase *c, void *to, int64_t count) {
  (void)c;
  float *f = to;
  for (int64_t i = 0; i < count; i++) f[i] = (float)(sweep_scatter((uint32_t)i) >> 28);
}

LadderBuffer sweep_input(const char *name, int64_t count) {
  return (LadderBuffer){.name = name, .dtype = SOL_FP32, .count = count, .role = OPS_IN, .make = numbers};
}

LadderBuffer sweep_output(const char *name, int64_t count) {
  return (LadderBuffer){.name = name, .dtype = SOL_FP32, .count = count, .role = OPS_OUT};
}

LadderBuffer sweep_partial(const char *name, int64_t count) {
  return (LadderBuffer){
      .name = name, .dtype = SOL_FP32, .count = count, .role = OPS_INOUT, .make = ladder_zeros};
}

int sweep_array_buffers(const LadderCase *c, LadderBuffer *b) {
  b[SWEEP_Y] = sweep_output("y", c->dim[0]);
  b[SWEEP_X] = sweep_input("x", c->dim[0]);
  return SWEEP_BUFFERS;
}

double sweep_array_bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 2.0 * 4 * (double)c->dim[0];
}

void sweep_copied(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t k = first; k < first + count; k++) *out++ = (double)sweep_in(h, SWEEP_X)[k];
}

SolStatus sweep_launch(const LadderCall *call, const char *kernel, int64_t threads, uint32_t block,
                       uint32_t shared, SolError *err) {
  SweepCopy p = {.y = ladder_at(call, SWEEP_Y), .x = ladder_at(call, SWEEP_X), .n = (uint64_t)call->c.dim[0]};
  LadderGrid grid = {.grid = {sweep_blocks(threads, block)}, .block = {block}, .shared = shared};
  return ladder_launch(call, kernel, &grid, &p, sizeof p, err);
}

double sweep_no_bytes(const LadderCase *c, const LadderRung *rung) {
  (void)c, (void)rung;
  return 0;
}

SolStatus sweep_shared_for(const LadderCall *call, uint64_t blocks, uint32_t *out, SolError *err) {
  enum { RESERVED = 1024 }; // that CUDA takes for each block
  SolDriverInfo info;
  SolStatus status = sol_driver_info(call->ctx->driver, &info, err);
  if (status) return status;
  uint64_t each = info.smem_per_sm / blocks / 128 * 128;
  each = each > RESERVED ? each - RESERVED : 0;
  *out = (uint32_t)(each < info.smem_per_block ? each : info.smem_per_block);
  return SOL_OK;
}
