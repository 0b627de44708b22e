#include "measure/ceilings_run.h"

#include "base/error.h"
#include "base/heap.h"
#include "ops/operation.h"

static const char *const names[] = {
#define CEILING_KERNEL(id, name) name,
    CEILING_KERNELS(CEILING_KERNEL)
#undef CEILING_KERNEL
};

static SolStatus load(CeilingRun *r, SolDriverModule **module, SolError *err) {
  const OpsImage *image = ops_image_find(ops_images, ops_image_count, "ceilings", err);
  return image ? ops_image_load(image, r->driver, r->info.cc, module, err) : SOL_ERR_UNSUPPORTED;
}

static SolStatus take_memory(CeilingRun *r, uint64_t bytes, SolError *err) {
  SolStatus status = SOL_ERR_NO_SPACE;
  for (r->bytes = bytes; status && r->bytes >= 1 << 20; r->bytes /= 2) {
    status = sol_driver_alloc(r->driver, r->bytes, "in", &r->in, err);
    if (status) continue;
    status = sol_driver_alloc(r->driver, r->bytes, "out", &r->buffer, err);
    if (!status) break;
    sol_driver_free(r->driver, r->in, NULL);
    r->in = 0;
  }
  if (!status)
    status = sol_driver_alloc(r->driver, (uint64_t)(r->info.sms + 1) * 32, "clocks", &r->clocks, err);
  return status;
}

SolStatus ceiling_open(CeilingRun *r, SolDriver *driver, uint64_t bytes, SolError *err) {
  SolDriverModule *module = NULL;
  *r = (CeilingRun){.driver = driver};
  SolStatus status = sol_driver_info(driver, &r->info, err);
  if (!status) status = load(r, &module, err);
  for (int i = 0; i < CEILING_KERNEL_COUNT && !status; i++)
    status = sol_driver_kernel(module, names[i], &r->kernels[i], err);
  if (!status) status = take_memory(r, bytes, err);
  // Pages that were never written may be read faster than others.
  if (!status && !sol_driver_emu(driver)) status = sol_driver_fill(driver, r->in, 0x5a, r->bytes, err);
  if (!status && !sol_driver_emu(driver)) status = sol_driver_fill(driver, r->buffer, 0xa5, r->bytes, err);
  return status;
}

void ceiling_close(CeilingRun *r) {
  const uint64_t all[] = {r->in, r->buffer, r->clocks};
  for (size_t i = 0; i < SOL_COUNT(all); i++)
    if (all[i]) sol_driver_free(r->driver, all[i], NULL);
  *r = (CeilingRun){0};
}

void ceiling_launch_stream(CeilingRun *r, CeilingKernel kernel, const CeilingStream *params, uint64_t blocks,
                           SolDriverLaunch *out) {
  r->params.stream = *params;
  *out = (SolDriverLaunch){.kernel = r->kernels[kernel],
                           .grid = {(uint32_t)blocks, 1, 1},
                           .block = {CEILING_BLOCK, 1, 1},
                           .params = &r->params.stream,
                           .param_bytes = sizeof r->params.stream};
}

void ceiling_launch_work(CeilingRun *r, CeilingKernel kernel, const CeilingWork *params, uint32_t blocks,
                         uint32_t threads, SolDriverLaunch *out) {
  r->params.work = *params;
  *out = (SolDriverLaunch){.kernel = r->kernels[kernel],
                           .grid = {blocks, 1, 1},
                           .block = {threads, 1, 1},
                           .params = &r->params.work,
                           .param_bytes = sizeof r->params.work};
}

double ceiling_mma_flops(const CeilingRun *r) {
  return 2.0 * 16 * 8 * (r->info.cc >= 80 ? 16 : 8);
}

static void make_cycle(uint32_t *order, uint32_t *next, uint64_t lines) {
  uint64_t seed = 88172645463325252ull;
  for (uint64_t i = 0; i < lines; i++) order[i] = (uint32_t)i;
  for (uint64_t i = lines - 1; i > 0; i--) { // Sattolo's shuffle: one cycle through all lines
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    uint64_t k = seed % i;
    uint32_t t = order[i];
    order[i] = order[k], order[k] = t;
  }
  memset(next, 0, lines * 128);
  for (uint64_t i = 0; i < lines; i++) next[i * 32] = order[i] * 32;
}

SolStatus ceiling_chain(CeilingRun *r, uint64_t bytes, SolError *err) {
  uint64_t lines = bytes / 128;
  if (lines < 2 || bytes > r->bytes)
    return sol_fail(err, SOL_ERR_RANGE, "no room for a chain of %llu bytes", (unsigned long long)bytes);
  uint32_t *order = sol_heap_alloc(lines * sizeof *order), *next = sol_heap_alloc(lines * 128);
  SolStatus status = SOL_OK;
  if (order && next) {
    make_cycle(order, next, lines);
    status = sol_driver_write(r->driver, r->in, next, lines * 128, err);
  } else {
    status = sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  }
  sol_heap_free(order);
  sol_heap_free(next);
  return status;
}
