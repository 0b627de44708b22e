// How warps come to memory: occupancy, what is resident where, what many SMs read at once, lanes that part.
#include "kinds.cuh"
#include <cooperative_groups.h>

// ---- loads in flight ----

__global__ void stream_few_warps(float *out, const float *in, int n) {
  float s = 0;
#pragma unroll 1
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) s += in[i];
  out[self()] = s;
}
__global__ void stream_in_eights(float *out, const float *in, int n) {
  float s = 0;
#pragma unroll 8
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) s += in[i];
  out[self()] = s;
}
__global__ void __launch_bounds__(256) stream_wide(float4 *out, const float4 *in, int n) {
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) {
    float4 v = in[i];
    v.x += 1;
    out[i] = v;
  }
}
// Registers limit the SM to few warps.
template <int N> __device__ static float held(const float *in, int n) {
  float v[N], s = 0;
#pragma unroll
  for (int k = 0; k < N; k++) v[k] = in[self() + k * n];
#pragma unroll
  for (int r = 0; r < 2; r++)
#pragma unroll
    for (int k = 0; k < N; k++) v[k] = v[k] * v[(k + 7) % N] + v[(k + 1) % N];
#pragma unroll
  for (int k = 0; k < N; k++) s += v[k];
  return s;
}
__global__ void holds_32(float *out, const float *in, int n) {
  out[self()] = held<32>(in, n);
}
__global__ void holds_96(float *out, const float *in, int n) {
  out[self()] = held<96>(in, n);
}
__global__ void holds_200(float *out, const float *in, int n) {
  out[self()] = held<200>(in, n);
}

// ---- what is resident ----

__global__ void again_from_l2(float *out, const float *in, int n, int rounds) {
  float s = 0;
  for (int r = 0; r < rounds; r++)
    for (int i = (self() + r * 8192) % n; i < n; i += gridDim.x * blockDim.x) s += __ldcg(&in[i]);
  out[self()] = s;
}
__global__ void words_of_l2(float *out, const float *in, int n, int rounds) {
  float s = 0;
  uint32_t x = mix(self());
  for (int r = 0; r < rounds; r++, x = x * 1664525u + 1013904223u) s += __ldcg(&in[x >> 11 & (n - 1)]);
  out[self()] = s;
}
__global__ void words_of_l1(float *out, const float *in, int n, int rounds) {
  float s = 0;
  uint32_t x = mix(self());
  for (int r = 0; r < rounds; r++, x = x * 1664525u + 1013904223u) s += in[x >> 11 & (n - 1)];
  out[self()] = s;
}
__global__ void same_word(float *out, const float *in, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) s += in[i];
  out[self()] = s * threadIdx.x;
}
__global__ void same_lines_by_all(float *out, const float *in, int n) {
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += in[i];
  out[self()] = s;
}
__global__ void same_columns_by_all(float *out, const float *in, int width, int height) {
  float s = 0;
  for (int y = 0; y < height; y++) s += in[(size_t)y * width + threadIdx.x % width] * (float)(blockIdx.x + y);
  out[self()] = s;
}
__global__ void writes_again(float *out, int n, int rounds) {
  for (int r = 0; r < rounds; r++)
    for (int i = self(); i < n; i += gridDim.x * blockDim.x) out[i] = (float)r;
}
__global__ void writes_bytes_apart(uint8_t *out, int stride) {
  out[(size_t)self() * stride] = 1;
}
__global__ void updates_in_l2(float *data, int n, int rounds) {
  for (int r = 0; r < rounds; r++)
    for (int i = self(); i < n; i += gridDim.x * blockDim.x) data[i] = data[i] * 0.5f + 1;
}
__global__ void read_far_apart(float *out, const float *in, int n) {
  float s = 0;
  uint32_t x = mix(self());
  for (int r = 0; r < 8; r++) x = x * 1664525u + 1013904223u, s += in[(x >> 4) & (n - 1)];
  out[self()] = s;
}

// ---- shared memory ----

__global__ void chase_shared_full(uint32_t *out, int n) {
  __shared__ uint32_t next[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) next[i] = (i * 33u + 32u) & 1023u;
  __syncthreads();
  uint32_t at = threadIdx.x;
  for (int i = 0; i < n; i++) at = next[at];
  out[self()] = at;
}
__global__ void shared_fours(float *out, int rounds) {
  __shared__ float4 tile[512];
  for (int i = threadIdx.x; i < 512; i += blockDim.x) tile[i] = make_float4(i, 1, 2, 3);
  __syncthreads();
  float s = 0;
  for (int r = 0; r < rounds; r++) {
    float4 v = tile[(threadIdx.x + r * 5) & 511];
    s += v.x + v.y * v.z + v.w;
  }
  out[self()] = s;
}
__global__ void shared_bytes(uint32_t *out, int rounds) {
  __shared__ uint8_t tile[4096];
  for (int i = threadIdx.x; i < 4096; i += blockDim.x) tile[i] = (uint8_t)(i * 7);
  __syncthreads();
  uint32_t s = threadIdx.x;
  for (int r = 0; r < rounds; r++) s += tile[(s * 5 + r) & 4095];
  out[self()] = s;
}
__global__ void shared_adds_one(int *out, int rounds) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (int r = 0; r < rounds; r++) atomicAdd(&sum, (int)threadIdx.x * r);
  __syncthreads();
  out[self()] = sum;
}
__global__ void shared_adds_spread(int *out, const uint32_t *in, int rounds) {
  __shared__ int bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  uint32_t x = in[self()];
  for (int r = 0; r < rounds; r++, x = x * 1664525u + 1013904223u) atomicAdd(&bins[x >> 24], 1);
  __syncthreads();
  out[self()] = bins[threadIdx.x];
}
__global__ void shared_adds_double(double *out, const uint32_t *in, int rounds) {
  __shared__ double bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  uint32_t x = in[self()];
  for (int r = 0; r < rounds; r++, x = x * 1664525u + 1013904223u) atomicAdd(&bins[x >> 24], 1.0);
  __syncthreads();
  out[self()] = bins[threadIdx.x];
}
__global__ void shared_returned(int *out, const uint32_t *in, int rounds) {
  __shared__ int bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  uint32_t x = in[self()];
  for (int r = 0; r < rounds; r++) x += atomicAdd(&bins[x & 255], 1) * 13 + 1;
  out[self()] = x;
}

// ---- meeting ----

__global__ void barriers_only(int *out, int n) {
  for (int i = 0; i < n; i++) __syncthreads();
  out[self()] = n;
}
__global__ void sums_of_blocks(float *out, const float *in, int rounds) {
  __shared__ float part[32];
  float all = 0;
  for (int r = 0; r < rounds; r++) {
    float s = in[(self() + r * 4096) & 0xfffff];
    for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x < 32) {
      s = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
      for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d);
      if (threadIdx.x == 0) part[0] = s;
    }
    __syncthreads();
    all += part[0];
    __syncthreads();
  }
  out[self()] = all;
}
__global__ void grid_meets(float *data, int n, int rounds) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  for (int r = 0; r < rounds; r++) {
    for (int i = self(); i < n; i += gridDim.x * blockDim.x) data[i] = data[n - 1 - i] + 1;
    grid.sync();
  }
}
__global__ void fences(int *out, int n) {
  for (int i = 0; i < n; i++) {
    out[self()] = i;
    __threadfence();
  }
}
__global__ void tree_in_block(float *out, const float *in) {
  __shared__ float part[512];
  part[threadIdx.x] = in[self()];
  __syncthreads();
  for (int d = 256; d; d /= 2) {
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

// ---- lanes that part ----

__global__ void two_ways(float *out, int n) {
  float v = threadIdx.x;
  for (int i = 0; i < n; i++)
    if ((threadIdx.x + i) & 1) {
      v = v * 1.0001f + 0.5f;
      v = sqrtf(v) + 2;
    } else {
      v = v * 0.999f - 0.5f;
      v = v / (v * v + 3.0f);
    }
  out[self()] = v;
}
__global__ void own_trips(float *out, const uint32_t *in, const float *data) {
  uint32_t x = in[self()], trips = x % 48;
  float s = 0;
  for (uint32_t k = 0; k < trips; k++) s += data[(x + k * 32) & 0xfffff];
  out[self()] = s;
}
__global__ void one_lane_works(float *out, const float *in, int n) {
  float s = 0;
  if (threadIdx.x % 32 == 0)
    for (int i = 0; i < n; i++) s += in[(self() + i * 64) & 0xfffff] * s;
  out[self()] = s;
}
__global__ void until_found(int *out, const uint32_t *in) {
  uint32_t x = in[self()];
  int steps = 0;
  while (steps < 200) {
    x = mix(x);
    if (x % 24 == 0) break;
    steps++;
  }
  out[self()] = steps + (int)(x % 7);
}
__global__ void lists_of_lanes(uint32_t *out, const uint32_t *next, const uint32_t *in) {
  uint32_t at = in[self()] & 0xfffff, steps = 0;
  while (steps < 40 && (at & 15)) at = next[at] & 0xfffff, steps++;
  out[self()] = steps;
}
__global__ void warps_part(float *out, const float *in, int n) {
  float s = 0;
  int mine = (threadIdx.x / 32) % 8 == 0 ? n : n / 16;
  for (int i = 0; i < mine; i++) s += in[(self() + i * 4096) & 0xfffff];
  out[self()] = s;
}

// ---- local memory ----

__global__ void own_array(float *out, const uint32_t *in, int rounds) {
  float own[64];
  uint32_t x = in[self()];
  for (int k = 0; k < 64; k++) own[k] = (float)(x + k);
  for (int r = 0; r < rounds; r++) own[(r * 7) & 63] += own[(r * 13 + (int)(x >> 31)) & 63];
  float s = 0;
  for (int k = 0; k < 64; k++) s += own[k] * (float)(k & (int)x);
  out[self()] = s;
}
__global__ void own_array_l2(float *out, const uint32_t *in, int rounds) {
  float own[256];
  uint32_t x = in[self()];
  for (int k = 0; k < 256; k++) own[k] = (float)(x + k);
  for (int r = 0; r < rounds; r++) own[(r * 7) & 255] += own[(r * 13 + (int)(x >> 31)) & 255];
  float s = 0;
  for (int k = 0; k < 256; k++) s += own[k] * (float)(k & (int)x);
  out[self()] = s;
}
__global__ void own_indices(float *out, const uint32_t *in, int rounds) {
  float own[32];
  uint32_t x = in[self()];
  for (int k = 0; k < 32; k++) own[k] = (float)k;
  for (int r = 0; r < rounds; r++, x = x * 1664525u + 1013904223u) own[x >> 27] += 1.5f;
  float s = 0;
  for (int k = 0; k < 32; k++) s += own[k] * (float)k;
  out[self()] = s;
}
__global__ void __launch_bounds__(256, 6) spills_some(float *out, const float *in, int n) {
  out[self()] = held<72>(in, n);
}

// ---- atomics ----

__global__ void adds_returned(int *to, int *out, const uint32_t *in, int words) {
  out[self()] = atomicAdd(&to[in[self()] & (words - 1)], 1);
}
__global__ void adds_of_warps(int *to, int words, int rounds) {
  for (int r = 0; r < rounds; r++) atomicAdd(&to[(self() / 32 * 32 + r * 4096) & (words - 1)], 1);
}
__global__ void most_spread(int *to, const uint32_t *in, int words) {
  atomicMax(&to[in[self()] & (words - 1)], (int)(in[self()] >> 3));
}
__global__ void adds64_spread(unsigned long long *to, const uint32_t *in, int words) {
  atomicAdd(&to[in[self()] & (words - 1)], 3ull);
}
__global__ void adds_neighbours(float *to, const float *in, int n) {
  int i = self();
  atomicAdd(&to[i % n], in[i & 0xfffff]);
}
__global__ void counts_one_a_block(int *to, const float *in, float *out) {
  float s = in[self() & 0xfffff];
  if (threadIdx.x == 0) s += (float)atomicAdd(to, 1);
  out[self()] = s;
}

int main() {
  const int n = 1 << 22;
  float *f = array<float>(n * 2), *in = filled<float>(n * 4, 1000);
  uint32_t *at = filled<uint32_t>(n, 1u << 30);
  int *counts = array<int>(1 << 20);
  LAUNCH(stream_few_warps, 132, 64, f, in, 1 << 20);
  LAUNCH(stream_in_eights, 132, 64, f, in, n);
  LAUNCH(stream_wide, 264, 256, (float4 *)f, (float4 *)in, n / 4);
  LAUNCH(holds_32, 512, 128, f, in, 512 * 128);
  LAUNCH(holds_96, 512, 128, f, in, 512 * 128);
  LAUNCH(holds_200, 512, 64, f, in, 512 * 64);
  LAUNCH(again_from_l2, 528, 256, f, in, 1 << 21, 4);
  LAUNCH(words_of_l2, 528, 256, f, in, 1 << 21, 24);
  LAUNCH(words_of_l1, 528, 256, f, in, 1 << 13, 64);
  LAUNCH(same_word, 264, 256, f, in, 1024);
  LAUNCH(same_lines_by_all, 528, 256, f, in, 1 << 16);
  LAUNCH(same_columns_by_all, 528, 256, f, in, 64, 512);
  LAUNCH(writes_again, 528, 256, f, 1 << 20, 6);
  LAUNCH(writes_bytes_apart, 2048, 256, (uint8_t *)f, 32);
  LAUNCH(updates_in_l2, 528, 256, f, 1 << 20, 4);
  LAUNCH(read_far_apart, 1056, 256, f, in, n * 4);
  LAUNCH(chase_shared_full, 264, 512, (uint32_t *)f, 200);
  LAUNCH(shared_fours, 264, 512, f, 200);
  LAUNCH(shared_bytes, 264, 512, (uint32_t *)f, 200);
  LAUNCH(shared_adds_one, 264, 256, (int *)f, 20);
  LAUNCH(shared_adds_spread, 264, 256, (int *)f, at, 100);
  LAUNCH(shared_adds_double, 264, 256, (double *)f, at, 20);
  LAUNCH(shared_returned, 264, 256, (int *)f, at, 60);
  LAUNCH(barriers_only, 264, 512, (int *)f, 200);
  LAUNCH(sums_of_blocks, 264, 256, f, in, 32);
  int size = 1 << 18, rounds = 8;
  void *args[] = {&f, &size, &rounds};
  for (int time = 0; time < TIMES; time++) cudaLaunchCooperativeKernel((void *)grid_meets, dim3(132), dim3(256), args);
  LAUNCH(fences, 132, 128, (int *)f, 20);
  LAUNCH(tree_in_block, 8192, 512, f, in);
  LAUNCH(two_ways, 528, 256, f, 40);
  LAUNCH(own_trips, 1024, 256, f, at, in);
  LAUNCH(one_lane_works, 264, 256, f, in, 64);
  LAUNCH(until_found, 1024, 256, (int *)f, at);
  LAUNCH(lists_of_lanes, 512, 256, (uint32_t *)f, at, at + 99);
  LAUNCH(warps_part, 264, 256, f, in, 128);
  LAUNCH(own_array, 528, 128, f, at, 200);
  LAUNCH(own_array_l2, 1056, 128, f, at, 100);
  LAUNCH(own_indices, 528, 128, f, at, 200);
  LAUNCH(spills_some, 512, 256, f, in, 512 * 128);
  LAUNCH(adds_returned, 2048, 256, counts, (int *)f, at, 1 << 20);
  LAUNCH(adds_of_warps, 528, 256, counts, 1 << 20, 16);
  LAUNCH(most_spread, 2048, 256, counts, at, 1 << 12);
  LAUNCH(adds64_spread, 2048, 256, (unsigned long long *)f, at, 1 << 19);
  LAUNCH(adds_neighbours, 4096, 256, f, in, 1 << 18);
  LAUNCH(counts_one_a_block, 8192, 128, counts, in, f);
  return done();
}
