// Four queries a block: the points are read a quarter as often. As many warps as before, in a quarter of the blocks.
#include "check.h"

enum { POINTS = 1 << 17, QUERIES = 528, EACH = 4 };

__global__ void count_near(int *near, const float4 *points, const float *query) {
  float q[EACH];
  int found[EACH];
#pragma unroll
  for (int k = 0; k < EACH; k++) q[k] = query[blockIdx.x * EACH + k], found[k] = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < POINTS / 4; i += blockDim.x) {
    float4 p = points[i];
#pragma unroll
    for (int k = 0; k < EACH; k++) found[k] += (p.x < q[k]) + (p.y < q[k]) + (p.z < q[k]) + (p.w < q[k]);
  }
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    int sum = __reduce_add_sync(~0u, found[k]);
    if (threadIdx.x % 32 == 0) atomicAdd(&near[blockIdx.x * EACH + k], sum);
  }
}

int main(void) {
  float *h = random_floats(POINTS), *q = random_floats(QUERIES);
  float *points = (float *)to_device(h, POINTS * sizeof *h),
        *query = (float *)to_device(q, QUERIES * sizeof *q);
  int *near = (int *)device_room(QUERIES * sizeof *near);
  CUDA(cudaMemset(near, 0, QUERIES * sizeof *near));
  count_near<<<QUERIES / EACH, 1024>>>(near, (const float4 *)points, query);
  int *r = (int *)to_host(near, QUERIES * sizeof *r);
  size_t wrong = 0;
  for (size_t k = 0; k < QUERIES; k += 33) {
    int found = 0;
    for (size_t i = 0; i < POINTS; i++) found += h[i] < q[k];
    wrong += r[k] != found;
  }
  return verdict(wrong, QUERIES / 33);
}
