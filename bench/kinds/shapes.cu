// Launches of ordinary programs that do not fill a GPU evenly, and what decides then: single blocks, tails, unequal blocks, few
// threads, barriers, occupancy, arrays in local memory, lines that all read, sleeping.
#include "kinds.cuh"

__device__ static float work(float x, int turns) {
  for (int i = 0; i < turns; i++) x = x * 0.999f + 0.5f;
  return x;
}
__global__ void one_block_sum(const float *in, float *out, int n) {
  __shared__ float part[1024];
  float s = 0;
  for (int i = threadIdx.x; i < n; i += 1024) s += in[i];
  part[threadIdx.x] = s;
  __syncthreads();
  for (int d = 512; d > 0; d /= 2) {
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = part[0];
}
__global__ void one_block_solve(float *a, int n) { // Gauss-Jordan by one block, in global memory
  for (int k = 0; k < n; k++) {
    for (int i = threadIdx.x; i < n * n; i += blockDim.x) {
      int r = i / n, c = i % n;
      if (r > k && c > k) a[i] -= a[r * n + k] * a[k * n + c] / (a[k * n + k] + 5);
    }
    __syncthreads();
  }
}
__global__ void one_warp_sum(const float *in, float *out, int n) {
  float s = 0;
  for (int i = threadIdx.x; i < n; i += 32) s += in[i];
  for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(~0u, s, d);
  if (threadIdx.x == 0) *out = s;
}
__global__ void one_thread(const float *in, float *out, int n) {
  float s = 0, most = 0;
  for (int i = 0; i < n; i++) {
    float v = in[i];
    if (v > most) most = v;
    s = s * 0.5f + v;
  }
  out[0] = s, out[1] = most;
}
__global__ void thread_a_block(const float *in, float *out, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) s += in[blockIdx.x * n + i];
  out[blockIdx.x] = s;
}
__global__ void half_a_wave(float *out, int turns) { // 2.5 waves of blocks
  __shared__ float room[24 << 8];
  room[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[self()] = work(room[threadIdx.x ^ 1], turns);
}
__global__ void blocks_unequal(float *out, int turns) { // some work eight times as long
  int mine = mix(blockIdx.x) % 16 == 0 ? 8 * turns : turns;
  out[self()] = work(threadIdx.x, mine);
}
__global__ void last_is_longest(float *out, int turns) {
  out[self()] = work(threadIdx.x, turns * (blockIdx.x + 8) / gridDim.x);
}
__global__ void few_warps_late(const float *in, float *out, int turns) { // most of a block leaves at once
  if (threadIdx.x >= 64) return;
  out[self()] = work(in[self()], turns);
}
__global__ void loads_unequal(const float *in, float *out, int n) {
  int each = mix(blockIdx.x) % 8 == 0 ? 64 : 8;
  float s = 0;
  for (int i = 0; i < each; i++) s += in[(blockIdx.x * 64 + i) * 256 % n + threadIdx.x];
  out[self()] = s;
}
__global__ void meets_often(float *out, int turns) {
  __shared__ float s[256];
  s[threadIdx.x] = threadIdx.x;
  for (int i = 0; i < turns; i++) {
    __syncthreads();
    float v = s[(threadIdx.x + 1) % 256];
    __syncthreads();
    s[threadIdx.x] = v + 1;
  }
  out[self()] = s[threadIdx.x];
}
__global__ void meets_of_1024(float *out, int turns) {
  __shared__ float s[1024];
  s[threadIdx.x] = threadIdx.x;
  for (int i = 0; i < turns; i++) {
    __syncthreads();
    if (threadIdx.x < 32) s[threadIdx.x] += s[threadIdx.x + 32 * (1 + i % 31)];
  }
  __syncthreads();
  out[self()] = s[threadIdx.x];
}
__global__ void room_for_one(const float *in, float *out, int n) { // dynamic shared memory: one block an SM
  extern __shared__ float s[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = in[blockIdx.x * n + i];
  __syncthreads();
  float v = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) v += s[n - 1 - i];
  out[self()] = v;
}
template <int N> __device__ static float wander(uint32_t seed, int turns) {
  int a[N];
  for (int i = 0; i < N; i++) a[i] = seed >> i % 16;
  uint32_t at = seed;
  for (int i = 0; i < turns; i++) at = at * 1664525u + 1013904223u, a[(at >> 16) % N] += at >> 24;
  int s = 0;
  for (int i = 0; i < N; i++) s += a[i] * i;
  return s;
}
__global__ void own_16(float *out, int turns) { out[self()] = wander<16>(mix(self()), turns); }
__global__ void own_64(float *out, int turns) { out[self()] = wander<64>(mix(self()), turns); }
__global__ void own_256(float *out, int turns) { out[self()] = wander<256>(mix(self()), turns); }
__global__ void own_in_step(float *out, const int *order, int turns) { // all lanes at the same index
  float a[32];
  for (int i = 0; i < 32; i++) a[i] = self() * i;
  for (int i = 0; i < turns; i++) a[order[i] % 32] += a[order[i + 1] % 32] * 0.5f;
  float s = 0;
  for (int i = 0; i < 32; i++) s += a[i];
  out[self()] = s;
}
__global__ void __launch_bounds__(512, 2) spilled(const float *in, float *out, int rounds) { // more values than registers
  float v[72];
#pragma unroll
  for (int i = 0; i < 72; i++) v[i] = in[i * 512 + threadIdx.x];
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int i = 0; i < 72; i++) v[i] = v[i] * 0.5f + v[(i * 7 + 3) % 72];
  float s = 0;
#pragma unroll
  for (int i = 0; i < 72; i++) s += v[i];
  out[self()] = s;
}
__global__ void registers_200(const float *in, float *out, int rounds) {
  float v[180];
#pragma unroll
  for (int i = 0; i < 180; i++) v[i] = in[i * 128 + threadIdx.x];
#pragma unroll 1
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int i = 0; i < 180; i++) v[i] = v[i] * 0.5f + v[(i * 7 + 3) % 180];
  float s = 0;
#pragma unroll
  for (int i = 0; i < 180; i++) s += v[i];
  out[self()] = s;
}
__global__ void all_read_one_table(const float *table, float *out, int n) { // from the start, all SMs at once
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += table[i];
  out[self()] = s;
}
__global__ void all_read_apart(const float *table, float *out, int n) { // each block from another place
  float s = 0;
  int from = (int)(mix(blockIdx.x) % (n / 256)) * 256;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    int at = i + from;
    s += table[at < n ? at : at - n];
  }
  out[self()] = s;
}
__global__ void rows_of_vector(const float *a, const float *x, float *y, int n) { // a warp a row, x by all
  int row = self() / 32;
  float s = 0;
  for (int i = threadIdx.x % 32; i < n; i += 32) s += a[row * n + i] * x[i];
  for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(~0u, s, d);
  if (threadIdx.x % 32 == 0) y[row] = s;
}
__global__ void column_sums_strided(const float *a, float *out, int rows, int n) { // 32 threads down each column
  __shared__ float part[8][33];
  int c = blockIdx.x * 32 + threadIdx.x;
  float s = 0;
  for (int r = threadIdx.y; r < rows; r += 8) s += a[r * n + c];
  part[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.y == 0) {
    for (int k = 1; k < 8; k++) s += part[k][threadIdx.x];
    out[c] = s;
  }
}
__global__ void chase_by_warps(const uint32_t *next, uint32_t *out, int steps) { // in L2, every warp its own way
  uint32_t at = next[self() / 32 * 64];
  for (int i = 0; i < steps; i++) at = next[at];
  out[self()] = at;
}
__global__ void chase_by_lanes(const uint32_t *next, uint32_t *out, int steps) {
  uint32_t at = next[self() * 16];
  for (int i = 0; i < steps; i++) at = next[at];
  out[self()] = at;
}
__global__ void sleep_short(float *out, int times) {
  for (int i = 0; i < times; i++) __nanosleep(100);
  out[self()] = 1;
}
__global__ void sleep_long(float *out, int times) {
  for (int i = 0; i < times; i++) __nanosleep(20000);
  out[self()] = 1;
}
__global__ void sleep_unequal(float *out) {
  __nanosleep(threadIdx.x % 32 * 500);
  out[self()] = 1;
}
__global__ void sleep_back_off(int *lock, float *out, int turns) { // a lock that doubles its sleep
  for (int i = 0; i < turns; i++) {
    if (threadIdx.x == 0) {
      unsigned ns = 32;
      while (atomicCAS(lock, 0, 1) != 0) {
        __nanosleep(ns);
        if (ns < 1024) ns *= 2;
      }
      atomicExch(lock, 0);
    }
    __syncthreads();
  }
  out[self()] = turns;
}
__global__ void reduce_then_broadcast(const float *in, float *out, int each) { // shuffles and a few loads, often
  float s = 0;
  for (int k = 0; k < each; k++) {
    float v = in[(self() + k * 1000) & 0xfffff];
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    s += v;
    if (__any_sync(~0u, v < -1)) break;
  }
  out[self()] = s;
}
__global__ void grid_of_tails(const float *in, float *out, int n) { // a loop whose last trip few threads have
  float s = 0;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) s += sqrtf(in[i]) * 0.5f;
  out[self()] = s;
}

int main() {
  float *a = filled<float>(1 << 24, 1000), *out = array<float>(1 << 22), *mid = filled<float>(1 << 14, 10);
  uint32_t *next = cycle(1 << 19, 16);
  int *order = filled<int>(4096, 32);
  LAUNCH(one_block_sum, 1, 1024, a, out, 1 << 18);
  LAUNCH(one_block_solve, 1, 512, mid, 40);
  LAUNCH(one_warp_sum, 1, 32, a, out, 20000);
  LAUNCH(one_thread, 1, 1, a, out, 3000);
  LAUNCH(thread_a_block, 4096, 1, a, out, 256);
  LAUNCH(half_a_wave, 132 * 9 * 5 / 2, 256, out, 600);
  LAUNCH(blocks_unequal, 132 * 24, 128, out, 300);
  LAUNCH(last_is_longest, 132 * 16, 128, out, 2000);
  LAUNCH(few_warps_late, 132 * 8, 512, a, out, 1500);
  LAUNCH(loads_unequal, 132 * 32, 256, a, out, 1 << 22);
  LAUNCH(meets_often, 132 * 4, 256, out, 200);
  LAUNCH(meets_of_1024, 132, 1024, out, 200);
  cudaFuncSetAttribute(room_for_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 120 << 10);
  for (int time = 0; time < TIMES; time++) room_for_one<<<132, 256, 120 << 10>>>(a, out, 30 << 10);
  LAUNCH(own_16, 264, 256, out, 100);
  LAUNCH(own_64, 264, 256, out, 100);
  LAUNCH(own_256, 132, 256, out, 100);
  LAUNCH(own_in_step, 528, 256, out, order, 100);
  LAUNCH(spilled, 264, 512, a, out, 20);
  LAUNCH(registers_200, 264, 128, a, out, 40);
  LAUNCH(all_read_one_table, 264, 256, a, out, 65536);
  LAUNCH(all_read_apart, 264, 256, a, out, 65536);
  LAUNCH(rows_of_vector, 1000, 256, a, a + 4096, out, 2048);
  LAUNCH(column_sums_strided, 64, dim3(32, 8), a, out, 2048, 2048);
  LAUNCH(chase_by_warps, 264, 256, next, (uint32_t *)out, 60);
  LAUNCH(chase_by_lanes, 66, 128, next, (uint32_t *)out, 60);
  LAUNCH(sleep_short, 264, 128, out, 50);
  LAUNCH(sleep_long, 264, 128, out, 3);
  LAUNCH(sleep_unequal, 132, 256, out);
  LAUNCH(sleep_back_off, 66, 64, (int *)out + (1 << 21), out, 4);
  LAUNCH(reduce_then_broadcast, 528, 256, a, out, 24);
  LAUNCH(grid_of_tails, 264, 1024, a, out, 264 * 1024 * 12 + 5000);
  return done();
}
