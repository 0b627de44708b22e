// Kernels to learn from, of what bench/kinds/waits.cu and modern.cu have in the half that is only scored: other sizes, other loops.
// usage: sol profile --json --times probe_waits; sol audit probe_waits predicts the same. nvcc -O3 -arch=sm_90 -lineinfo bench/probe_waits.cu
#include "kinds/kinds.cuh"

__global__ void host_counts(int *host) { // atomics on memory of the host
  if (threadIdx.x == 0) atomicAdd_system(&host[blockIdx.x], 1);
}

__global__ void ticket_turns(unsigned *ticket, volatile unsigned *now, volatile int *sum) {
  if (threadIdx.x == 0) {
    unsigned mine = atomicAdd(ticket, 1);
    while (*now != mine)
      ;
    *sum += 3;
    __threadfence();
    *now = mine + 1;
  }
}

__global__ void flags_in_order(volatile int *flags, volatile int *sums, int turn) { // block after block
  if (threadIdx.x) return;
  int s = 1;
  if (blockIdx.x) {
    while (flags[blockIdx.x - 1] != turn)
      ;
    s += sums[blockIdx.x - 1];
  }
  sums[blockIdx.x] = s;
  __threadfence();
  flags[blockIdx.x] = turn;
}

__global__ void warps_in_ring(int *out, int rounds) { // through shared memory, four warps
  __shared__ volatile int at;
  if (threadIdx.x == 0) at = 0;
  __syncthreads();
  int mine = threadIdx.x / 32, sum = 0;
  if (threadIdx.x % 32 == 0)
    for (int r = 0; r < rounds; r++) {
      while (at != r * 4 + mine)
        ;
      sum += r;
      __threadfence_block();
      at = r * 4 + mine + 1;
    }
  out[self()] = sum;
}

__global__ void spin_on_buckets(int *locks, volatile int *sums, const uint32_t *in) {
  uint32_t b = in[self()] % 256;
  bool done = false;
  while (!done) {
    if (atomicCAS(&locks[b], 0, 1) == 0) {
      sums[b] = sums[b] + 1;
      __threadfence();
      atomicExch(&locks[b], 0);
      done = true;
    }
  }
}

__global__ void largest_floats(float *best, const uint32_t *in) { // 16 words, a swap behind a test
  int *at = (int *)&best[self() % 16], old = *at;
  float v = (float)(in[self()] % 100000);
  while (v > __int_as_float(old)) {
    int seen = atomicCAS(at, old, __float_as_int(v));
    if (seen == old) break;
    old = seen;
  }
}

__global__ void largest_of_64(unsigned long long *best, const uint32_t *in) {
  atomicMax(&best[in[self()] % 1024], (unsigned long long)in[self()] << 20 | self());
}

__global__ void slots_of_ring(unsigned *head, uint32_t *ring) {
  ring[atomicInc(head, 4095)] = self();
}

__global__ void all_meet(unsigned *count, float *out, int rounds) {
  float s = 0;
  for (int r = 1; r <= rounds; r++) {
    s += out[(self() + r * 64) % (gridDim.x * blockDim.x)];
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(count, 1);
      while (*(volatile unsigned *)count < r * gridDim.x)
        ;
    }
    __syncthreads();
  }
  out[self()] = s;
}

__global__ void lane_after_lane(float *out, int rounds) {
  float s = (float)threadIdx.x;
  for (int r = 0; r < rounds; r++)
    for (int l = 0; l < 32; l++)
      if (threadIdx.x % 32 == l) s = s * 0.5f + cosf(s);
  out[self()] = s;
}

__global__ void pairs_meet(float *out, int rounds) { // named barriers, two warps each
  __shared__ float v[256];
  int pair = threadIdx.x / 64;
  float s = 1;
  for (int r = 0; r < rounds; r++) {
    v[threadIdx.x] = s;
    asm volatile("bar.sync %0, 64;" ::"r"(pair + 1) : "memory");
    s += v[threadIdx.x ^ 32];
    asm volatile("bar.sync %0, 64;" ::"r"(pair + 1) : "memory");
  }
  out[self()] = s;
}

__global__ void push_on_lists(int *heads, int *next, const uint32_t *in) {
  int h = in[self()] % 1024;
  next[self()] = atomicExch(&heads[h], self() + 1);
}

__global__ void take_or_skip(int *locks, int *sums, const uint32_t *in) {
  int b = in[self()] % 512;
  if (atomicExch(&locks[b], 1) == 0) {
    sums[b]++;
    __threadfence();
    locks[b] = 0;
  }
}

__global__ void buffer_of_block(int *out, int n) {
  __shared__ int *p;
  if (threadIdx.x == 0) p = (int *)malloc(n * 4);
  __syncthreads();
  if (!p) return;
  for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = i * 2;
  __syncthreads();
  out[self()] = p[threadIdx.x % n];
  __syncthreads();
  if (threadIdx.x == 0) free(p);
}

__global__ void node_of_thread(int **out) {
  int *p = (int *)malloc(16);
  if (p) *p = self();
  out[self()] = p;
}

template <int N> __device__ __forceinline__ float much_code(float x, float y) {
#pragma unroll
  for (int i = 0; i < N; i++) x = fmaf(x, 1.0f + i * 1e-3f, y), y = fmaf(y, 0.3f + i * 1e-3f, x);
  return x * y;
}
__global__ void loop_of_64_kib(float *out, int rounds) {
  float x = out[self()];
  for (int r = 0; r < rounds; r++) x = much_code<2000>(x, (float)r);
  out[self()] = x;
}

__global__ void paths_of_warps(float *out, int rounds) { // four stretches of code, each warp at another
  float x = out[self()];
  for (int r = 0; r < rounds; r++) {
    int k = (threadIdx.x / 32 + r) % 4;
    if (k == 0) x = much_code<500>(x, 1);
    if (k == 1) x = much_code<501>(x, 2);
    if (k == 2) x = much_code<502>(x, 3);
    if (k == 3) x = much_code<503>(x, 4);
  }
  out[self()] = x;
}

__global__ void straight_code(float *out) {
  out[self()] = much_code<1500>(out[self()], 1.0f);
}

__global__ void sums_and_last(unsigned *count, float *parts, float *out, const float *in, int n) {
  __shared__ bool last;
  float v = 0;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) v += in[i];
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) parts[self() / 32] = v;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last || threadIdx.x) return;
  float s = 0;
  for (unsigned b = 0; b < gridDim.x * blockDim.x / 32; b++) s += ((volatile float *)parts)[b];
  *out = s;
}

__global__ void system_counts(int *sums, const uint32_t *in) {
  atomicAdd_system(&sums[in[self()] & 0x7fff], 2);
}

__global__ void warps_take_work(unsigned *next, float *out, const uint32_t *in, unsigned items) { // a lane takes for its warp
  for (;;) {
    unsigned at = 0;
    if (threadIdx.x % 32 == 0) at = atomicAdd(next, 1);
    at = __shfl_sync(~0u, at, 0);
    if (at >= items) return;
    float s = 0;
    for (uint32_t i = 0; i < in[at] % 200; i++) s = s * 0.9f + 1;
    out[at * 32 + threadIdx.x % 32] = s;
  }
}

#define TWICE(kernel, blocks, threads, ...)                                                                  \
  for (int turn = 1; turn <= 2; turn++) {                                                                    \
    cudaMemset(zero, 0, 1 << 20);                                                                            \
    kernel<<<blocks, threads>>>(__VA_ARGS__);                                                                \
  }

int main() {
  const int n = 1 << 20;
  float *out = array<float>(n), *in_f = filled<float>(n, 1000);
  uint32_t *in = filled<uint32_t>(n, 1u << 30);
  char *zero = array<char>(1 << 20);
  int *words = (int *)zero, *more = words + 65536;
  unsigned *counts = (unsigned *)zero;
  int *host = nullptr, *mapped = nullptr;
  cudaHostAlloc((void **)&host, 1 << 16, cudaHostAllocMapped);
  cudaHostGetDevicePointer((void **)&mapped, host, 0);
  TWICE(host_counts, 512, 64, mapped);
  TWICE(ticket_turns, 264, 64, counts, counts + 64, more);
  TWICE(flags_in_order, 256, 64, words, more, turn);
  TWICE(warps_in_ring, 132, 128, (int *)out, 100);
  TWICE(spin_on_buckets, 32, 64, words, more, in);
  TWICE(largest_floats, 512, 256, (float *)zero, in);
  TWICE(largest_of_64, 1024, 256, (unsigned long long *)zero, in);
  TWICE(slots_of_ring, 512, 256, counts, (uint32_t *)out);
  TWICE(all_meet, 264, 128, counts, out, 16);
  TWICE(lane_after_lane, 132, 256, out, 4);
  TWICE(pairs_meet, 264, 256, out, 200);
  TWICE(push_on_lists, 1024, 256, words, (int *)out, in);
  TWICE(take_or_skip, 512, 256, words, more, in);
  TWICE(buffer_of_block, 132, 64, (int *)out, 200);
  TWICE(node_of_thread, 8, 32, (int **)out);
  TWICE(loop_of_64_kib, 132, 256, out, 4);
  TWICE(paths_of_warps, 132, 256, out, 8);
  TWICE(straight_code, 132, 128, out);
  TWICE(sums_and_last, 264, 256, counts, (float *)(counts + 64), out, in_f, n / 2);
  TWICE(system_counts, 1024, 256, words, in);
  TWICE(warps_take_work, 264, 128, counts, out, in, 6000);
  return done();
}
