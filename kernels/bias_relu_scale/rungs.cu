// y = max(x + bias[column], 0) * scale, from three kernels to one that moves 16 bytes at a time.
#include "bias_relu_scale/rungs.h"
#include "common.cuh"

INLINE uint64_t column_of(uint64_t i, uint64_t columns) {
  uint64_t row, column;
  split(i, columns, &row, &column);
  return column;
}

// A NaN is not below 0 and stays.
INLINE float relu(float f) { return f < 0 ? 0 : f; }

// The first of three steps; each reads everything and writes everything.
KERNEL bias_rung_bias(const __grid_constant__ BiasRung p) {
  uint64_t i = thread_index();
  if (i < p.count) p.y[i] = p.x[i] + p.bias[column_of(i, p.columns)];
}

// The second step.
KERNEL bias_rung_relu(const __grid_constant__ BiasRung p) {
  uint64_t i = thread_index();
  if (i < p.count) p.y[i] = relu(p.x[i]);
}

// The third step.
KERNEL bias_rung_scale(const __grid_constant__ BiasRung p) {
  uint64_t i = thread_index();
  if (i < p.count) p.y[i] = p.x[i] * p.scale;
}

// All three steps while the element is in a register: one read, one write.
KERNEL bias_rung_fused(const __grid_constant__ BiasRung p) {
  uint64_t i = thread_index();
  if (i < p.count) p.y[i] = relu(p.x[i] + p.bias[column_of(i, p.columns)]) * p.scale;
}

// Four elements a thread: one access of 16 bytes where there were four of 4.
KERNEL bias_rung_vectorised(const __grid_constant__ BiasRung p) {
  uint64_t i = thread_index() * 4;
  if (i >= p.count) return;
  uint64_t column = column_of(i, p.columns);
  if (p.columns % 4 == 0) { // then the bias is a vector, too, and there is no rest
    float4 f = *(const float4 *)(p.x + i), b = *(const float4 *)(p.bias + column);
    f.x = relu(f.x + b.x) * p.scale;
    f.y = relu(f.y + b.y) * p.scale;
    f.z = relu(f.z + b.z) * p.scale;
    f.w = relu(f.w + b.w) * p.scale;
    *(float4 *)(p.y + i) = f;
    return;
  }
  for (int j = 0; j < 4 && i + j < p.count; j++) {
    p.y[i + j] = relu(p.x[i + j] + p.bias[column]) * p.scale;
    column = column + 1 < p.columns ? column + 1 : 0;
  }
}
