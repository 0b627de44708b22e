//! alloc q 3*45*32*4 random-f32
//! alloc k 3*45*32*4 random-f32
//! alloc v 3*45*32*4 random-f32
//! alloc out 3*45*32*4 poison
//! alloc errors 32 zero
//! launch attention grid=6,3 block=32,8 args=q,k,v,out,i32:45
//! launch attention_check grid=45,3 block=32 args=q,k,v,out,i32:45,errors
//! checks 4320
// Causal attention of 45 tokens, three heads of 32: a warp a query, keys and values in tiles of 16 in shared
// memory, softmax kept up to date tile by tile.
#include "check.cuh"

#define TILE 16

// q, k, v and out are (heads, n, 32)
extern "C" __global__ void attention(const float *q, const float *k, const float *v, float *out, int n) {
  __shared__ float ks[TILE][33], vs[TILE][33];
  int lane = threadIdx.x, query = blockIdx.x * 8 + threadIdx.y, head = blockIdx.y * n * 32;
  float mine = query < n ? q[head + query * 32 + lane] : 0, most = -INFINITY, sum = 0, result = 0;
  for (int base = 0; base < n; base += TILE) {
    __syncthreads();
    for (int r = threadIdx.y; r < TILE; r += 8) {
      bool inside = base + r < n;
      ks[r][lane] = inside ? k[head + (base + r) * 32 + lane] : 0;
      vs[r][lane] = inside ? v[head + (base + r) * 32 + lane] : 0;
    }
    __syncthreads();
    float score = -INFINITY; // of lane r: with key r of the tile
    for (int r = 0; r < TILE; r++) {
      float product = mine * ks[r][lane];
      for (int step = 16; step > 0; step /= 2) product += __shfl_xor_sync(0xffffffffu, product, step);
      if (lane == r && base + r <= query && base + r < n) score = product * 0.17677669f;
    }
    float higher = score;
    for (int step = 16; step > 0; step /= 2)
      higher = fmaxf(higher, __shfl_xor_sync(0xffffffffu, higher, step));
    higher = fmaxf(higher, most);
    if (higher == -INFINITY) continue; // nothing to see yet
    float weight = expf(score - higher), scale = expf(most - higher), total = weight;
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
    sum = sum * scale + total, result *= scale, most = higher;
    for (int r = 0; r < TILE; r++) result += __shfl_sync(0xffffffffu, weight, r) * vs[r][lane];
  }
  if (query < n) out[head + query * 32 + lane] = result / sum;
}

extern "C" __global__ void attention_check(const float *q, const float *k, const float *v, const float *out,
                                           int n, unsigned *errors) {
  int query = blockIdx.x, lane = threadIdx.x, head = blockIdx.y * n * 32;
  double sum = 0, result = 0;
  for (int key = 0; key <= query; key++) {
    double score = 0;
    for (int c = 0; c < 32; c++) score += (double)q[head + query * 32 + c] * k[head + key * 32 + c];
    double weight = exp(score * 0.17677669);
    sum += weight, result += weight * v[head + key * 32 + lane];
  }
  EXPECT_NEAR(query * 32 + lane, out[head + query * 32 + lane], result / sum, 0, 5e-6);
}
