#include "ops/cpu.h"

#include <math.h>

#include "emu/isa/num_cvt.h"
#include "emu/isa/num_half.h"

void cpu_load(SolDtype dtype, const void *base, int64_t index, int64_t count, float *restrict out) {
  if (dtype == SOL_FP32)
    memcpy(out, (const float *)base + index, (size_t)count * 4);
  else if (dtype == SOL_FP8) {
    const uint8_t *restrict in = (const uint8_t *)base + index;
    for (int64_t i = 0; i < count; i++) out[i] = num_cvt_f32_small(in[i], NUM_E4M3);
  } else if (dtype == SOL_INT8) {
    const int8_t *restrict in = (const int8_t *)base + index;
    for (int64_t i = 0; i < count; i++) out[i] = in[i];
  } else {
    const uint16_t *restrict in = (const uint16_t *)base + index;
    if (dtype == SOL_BF16)
      for (int64_t i = 0; i < count; i++) out[i] = num_cvt_f32_bf16(in[i]);
    else
      for (int64_t i = 0; i < count; i++) out[i] = num_cvt_f32_f16(in[i]);
  }
}

void cpu_store(SolDtype dtype, void *base, int64_t index, int64_t count, const float *restrict in) {
  if (dtype == SOL_FP32)
    memcpy((float *)base + index, in, (size_t)count * 4);
  else if (dtype == SOL_FP8) {
    uint8_t *restrict out = (uint8_t *)base + index;
    for (int64_t i = 0; i < count; i++) out[i] = (uint8_t)num_cvt_small_f32(in[i], NUM_E4M3, false);
  } else if (dtype == SOL_INT8) {
    int8_t *restrict out = (int8_t *)base + index;
    for (int64_t i = 0; i < count; i++)
      out[i] = in[i] != in[i] ? 0 : (int8_t)rintf(in[i] < -128 ? -128 : in[i] > 127 ? 127 : in[i]);
  } else {
    uint16_t *restrict out = (uint16_t *)base + index;
    if (dtype == SOL_BF16)
      for (int64_t i = 0; i < count; i++) out[i] = num_cvt_bf16_f32_rn(in[i]);
    else
      for (int64_t i = 0; i < count; i++) out[i] = num_cvt_f16_f32_rn(in[i]);
  }
}

typedef struct Job {
  void (*work)(const void *arg, int64_t begin, int64_t end);
  const void *arg;
  int64_t items, grain, next;
} Job;

static void take(void *ctx, int worker) {
  (void)worker;
  Job *job = ctx;
  for (;;) {
    int64_t begin = __atomic_fetch_add(&job->next, job->grain, __ATOMIC_RELAXED);
    if (begin >= job->items) return;
    job->work(job->arg, begin, cpu_min(begin + job->grain, job->items));
  }
}

void cpu_parallel(SolContext *ctx, int64_t items, int64_t cost,
                  void (*work)(const void *arg, int64_t begin, int64_t end), const void *arg) {
  enum { WORTH_IT = 1 << 15 }; // elements; below, waking threads costs more than it saves
  int count = sol_pool_count(ctx->pool);
  bool alone = count < 2 || items < 2 || cost < WORTH_IT;
  if (alone || __atomic_test_and_set(&ctx->busy.held, __ATOMIC_ACQUIRE)) {
    work(arg, 0, items);
    return;
  }
  int64_t grain = items / (count * 8);
  Job job = {work, arg, items, grain ? grain : 1, 0};
  sol_pool_run(ctx->pool, take, &job);
  sol_spin_unlock(&ctx->busy);
}
