// Threads that wait for each other, and what they hand over: locks, flags, tickets, chains of blocks, queues of work, meetings by hand,
// atomics of other kinds than additions of integers.
#include "kinds.cuh"
#include <cuda_fp16.h>

__global__ void locks_of_buckets(int *locks, int *sums, const uint32_t *in) { // each lane takes the lock of its bucket
  uint32_t at = in[self()] & 1023;
  for (bool done = false; !done;)
    if (atomicCAS(&locks[at], 0, 1) == 0) {
      sums[at] += 1;
      __threadfence();
      atomicExch(&locks[at], 0);
      done = true;
    }
}

__global__ void lock_of_tickets(unsigned *ticket, volatile unsigned *serving, volatile int *sum) { // a thread of each block
  if (threadIdx.x) return;
  unsigned mine = atomicAdd(ticket, 1);
  while (*serving != mine)
    ;
  *sum += 1;
  __threadfence();
  *serving = mine + 1;
}

__global__ void chain_of_blocks(volatile int *flags, volatile float *carry, const float *in, int turn) { // each waits for the one before
  __shared__ float sum;
  float v = in[self()];
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x == 0) {
    float before = 0;
    if (blockIdx.x > 0) {
      while (flags[blockIdx.x - 1] != turn)
        ;
      before = carry[blockIdx.x - 1];
    }
    sum = before + v;
    carry[blockIdx.x] = sum;
    __threadfence();
    flags[blockIdx.x] = turn;
  }
}

__global__ void looks_back(volatile unsigned long long *state, int *out, const int *in, unsigned turn) { // a scan in one pass
  __shared__ int warps[8], before;
  int v = in[self()], lane = threadIdx.x & 31, warp = threadIdx.x / 32, s = v;
  for (int d = 1; d < 32; d *= 2) {
    int o = __shfl_up_sync(~0u, s, d);
    if (lane >= d) s += o;
  }
  if (lane == 31) warps[warp] = s;
  __syncthreads();
  int own = 0, all = 0;
  for (int w = 0; w < 8; w++) own += w < warp ? warps[w] : 0, all += warps[w];
  if (threadIdx.x == 0) {
    int sum = 0;
    if (blockIdx.x) state[blockIdx.x] = (unsigned long long)(turn * 2) << 32 | (unsigned)all;
    for (int b = (int)blockIdx.x - 1; b >= 0; b--) {
      unsigned long long x;
      while ((unsigned)((x = state[b]) >> 33) != turn)
        ;
      sum += (int)(unsigned)x;
      if (x >> 32 & 1) break;
    }
    state[blockIdx.x] = (unsigned long long)(turn * 2 + 1) << 32 | (unsigned)(sum + all);
    before = sum;
  }
  __syncthreads();
  out[self()] = before + own + s;
}

__global__ void givers_and_takers(volatile int *flags, volatile float *ring, float *out, int rounds, int turn) { // blocks in pairs
  int pair = blockIdx.x / 2, gives = blockIdx.x % 2 == 0;
  volatile float *mine = ring + pair * 256;
  float s = (float)threadIdx.x;
  for (int r = 0; r < rounds; r++) {
    int full = turn + 2 * r + 1, empty = turn + 2 * r;
    if (threadIdx.x == 0)
      while (flags[pair] != (gives ? empty : full))
        ;
    __syncthreads();
    if (gives)
      mine[threadIdx.x] = s += 1;
    else
      s += mine[threadIdx.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) flags[pair] = gives ? full : full + 1;
  }
  out[self()] = s;
}

__global__ void meets_by_hand(unsigned *count, float *out, int rounds) { // all blocks, all resident
  float s = 1;
  for (int r = 0; r < rounds; r++) {
    s = s * 0.5f + out[(self() + r * 256) % (gridDim.x * blockDim.x)];
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      unsigned before = atomicAdd(count, 1), all = (before / gridDim.x + 1) * gridDim.x;
      while (*(volatile unsigned *)count < all)
        ;
    }
    __syncthreads();
  }
  out[self()] = s;
}

__global__ void queue_of_work(unsigned *next, float *out, const uint32_t *in, unsigned items) { // blocks take items of unequal length
  __shared__ unsigned item;
  for (;;) {
    if (threadIdx.x == 0) item = atomicAdd(next, 1);
    __syncthreads();
    unsigned at = item;
    __syncthreads();
    if (at >= items) break;
    float s = 0;
    for (uint32_t i = 0; i < (in[at] & 255); i++) s = s * 0.99f + 1;
    out[at * 128 + threadIdx.x] = s;
  }
}

__global__ void lanes_take_work(unsigned *next, float *out, const uint32_t *in, unsigned items) {
  for (unsigned at; (at = atomicAdd(next, 1)) < items;) {
    float s = 0;
    for (uint32_t i = 0; i < (in[at] & 63); i++) s = s * 0.99f + 1;
    out[at] = s;
  }
}

__global__ void tries_locks(int *locks, int *sums, int *missed, const uint32_t *in) { // who does not get it goes on
  uint32_t at = in[self()] & 4095;
  if (atomicCAS(&locks[at], 0, 1) == 0) {
    sums[at] += 1;
    __threadfence();
    atomicExch(&locks[at], 0);
  } else
    missed[self()] += 1;
}

__global__ void lists_of_nodes(int *heads, int *next, const uint32_t *in) { // pushed on 4096 lists
  next[self()] = atomicExch(&heads[in[self()] & 4095], self());
}

__global__ void adds_half2(__half2 *sums, const uint32_t *in) {
  atomicAdd(&sums[in[self()] & 0xffff], __floats2half2_rn(1, 2));
}

__global__ void most_of_64_bits(unsigned long long *best, const uint32_t *in) {
  uint32_t x = in[self()];
  atomicMax(&best[x & 255], (unsigned long long)x << 32 | self());
}

__global__ void ring_of_slots(unsigned *head, uint32_t *ring, const uint32_t *in) {
  ring[atomicInc(head, 65535)] = in[self()];
}

__global__ void adds_of_system(int *sums, const uint32_t *in) {
  atomicAdd_system(&sums[in[self()] & 0xffff], 1);
}

__global__ void adds_of_block(int *sums, const uint32_t *in) { // words of global memory that only the block has
  for (int i = 0; i < 16; i++) atomicAdd_block(&sums[blockIdx.x * 256 + (in[self() + i * 4096] & 255)], 1);
}

__global__ void swaps_doubles(double *sums, const uint32_t *in) { // as programs for old GPUs add them
  auto *at = (unsigned long long *)&sums[in[self()] & 0x3fff];
  unsigned long long old = *at, was;
  do {
    was = old;
    old = atomicCAS(at, was, (unsigned long long)__double_as_longlong(__longlong_as_double((long long)was) + 1.0));
  } while (was != old);
}

__global__ void swaps_most_floats(float *best, const uint32_t *in) { // a maximum of floats of each of 64 groups
  int *at = (int *)&best[self() & 63];
  float v = (float)(in[self()] & 0xffffff);
  int old = *at;
  while (v > __int_as_float(old)) {
    int was = old;
    old = atomicCAS(at, was, __float_as_int(v));
    if (old == was) break;
  }
}

__global__ void shared_flag(float *out, int rounds) { // a warp spins on what another writes to shared memory
  __shared__ volatile int flag;
  __shared__ volatile float value;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  float s = 1;
  for (int r = 0; r < rounds; r++) {
    bool mine = (r & 1) == (threadIdx.x / 32);
    if (mine && (threadIdx.x & 31) == 0) {
      while (flag != r)
        ;
      s = s * 0.5f + value;
      value = s;
      __threadfence_block();
      flag = r + 1;
    }
    __syncwarp();
  }
  out[self()] = s;
}

__global__ void halves_meet(float *out, int rounds) { // named barriers: one half waits, the other arrives
  __shared__ float value[128];
  float s = (float)threadIdx.x;
  if (threadIdx.x < 128)
    for (int r = 0; r < rounds; r++) {
      value[threadIdx.x] = s = s * 0.5f + 1;
      asm volatile("bar.arrive 1, 256;" ::: "memory");
      asm volatile("bar.sync 2, 256;" ::: "memory");
    }
  else
    for (int r = 0; r < rounds; r++) {
      asm volatile("bar.sync 1, 256;" ::: "memory");
      s += value[255 - threadIdx.x];
      asm volatile("bar.arrive 2, 256;" ::: "memory");
    }
  out[self()] = s;
}

__global__ void lanes_in_turn(float *out, const uint32_t *in, int rounds) { // a lane after another
  float s = (float)(in[self()] & 7);
  for (int r = 0; r < rounds; r++)
    for (int l = 0; l < 32; l++)
      if ((threadIdx.x & 31) == l) s = s * 0.75f + sinf(s);
  out[self()] = s;
}

__global__ void sleeps_until_flag(volatile int *flag, float *out, int turn) { // blocks sleep until the first has worked
  if (blockIdx.x == 0) {
    float s = out[threadIdx.x];
    for (int i = 0; i < 4000; i++) s = s * 0.99f + 1;
    out[threadIdx.x] = s;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *flag = turn;
  } else if (threadIdx.x == 0)
    while (*flag != turn) __nanosleep(200);
}

__global__ void lock_with_sleep(int *lock, volatile int *sum) { // a thread of each block, that waits longer each time
  if (threadIdx.x) return;
  unsigned ns = 32;
  while (atomicCAS(lock, 0, 1) != 0) {
    __nanosleep(ns);
    if (ns < 1024) ns *= 2;
  }
  *sum += 1;
  __threadfence();
  atomicExch(lock, 0);
}

__global__ void adds_on_host(int *sums) { // an atomic on the host's memory from each warp
  if ((threadIdx.x & 31) == 0) atomicAdd_system(&sums[self() / 32], 1);
}

__global__ void last_sums_up(unsigned *count, float *parts, float *out, const float *in, int n) {
  __shared__ float sums[8];
  __shared__ bool last;
  float v = 0;
  for (int i = self(); i < n; i += (int)(gridDim.x * blockDim.x)) v += in[i];
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; w++) v += sums[w];
    parts[blockIdx.x] = v;
    __threadfence();
    last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x) return;
  float s = 0;
  for (unsigned b = 0; b < gridDim.x; b++) s += ((volatile float *)parts)[b];
  *out = s;
}

// As LAUNCH, with the number of the launch among the arguments, and with counters at zero.
#define LAUNCH_TURNS(kernel, blocks, threads, ...)                                                           \
  for (int turn = skipped() ? TIMES + 1 : 1; turn <= TIMES; turn++) {                                                                \
    cudaMemset(zero, 0, 1 << 20);                                                                            \
    kernel<<<blocks, threads>>>(__VA_ARGS__);                                                                \
  }

int main() {
  const int n = 1 << 20;
  float *out = array<float>(n), *in_f = filled<float>(n, 1000);
  uint32_t *in = filled<uint32_t>(n, 1u << 30);
  char *zero = array<char>(1 << 20);
  auto *words = (int *)zero, *more = words + 65536;
  auto *counts = (unsigned *)zero;
  LAUNCH_TURNS(locks_of_buckets, 64, 128, words, more, in);
  LAUNCH_TURNS(lock_of_tickets, 528, 32, counts, counts + 64, more);
  LAUNCH_TURNS(chain_of_blocks, 528, 32, words, out, in_f, turn);
  LAUNCH_TURNS(looks_back, 1024, 256, (unsigned long long *)zero, (int *)out, (int *)in, turn);
  LAUNCH_TURNS(givers_and_takers, 132, 256, words, in_f, out, 20, 0);
  LAUNCH_TURNS(meets_by_hand, 132, 256, counts, out, 20);
  LAUNCH_TURNS(queue_of_work, 1056, 128, counts, out, in, 8000);
  LAUNCH_TURNS(lanes_take_work, 264, 128, counts, out, in, 200000);
  LAUNCH_TURNS(tries_locks, 1024, 256, words, more, (int *)out, in);
  LAUNCH_TURNS(lists_of_nodes, 2048, 256, words, (int *)out, in);
  LAUNCH_TURNS(adds_half2, 2048, 256, (__half2 *)zero, in);
  LAUNCH_TURNS(most_of_64_bits, 2048, 256, (unsigned long long *)zero, in);
  LAUNCH_TURNS(ring_of_slots, 1024, 256, counts, (uint32_t *)out, in);
  LAUNCH_TURNS(adds_of_system, 2048, 256, words, in);
  LAUNCH_TURNS(adds_of_block, 528, 256, words, in);
  LAUNCH_TURNS(swaps_doubles, 1024, 256, (double *)zero, in);
  LAUNCH_TURNS(swaps_most_floats, 1024, 256, (float *)zero, in);
  LAUNCH(shared_flag, 132, 64, out, 400);
  LAUNCH(halves_meet, 528, 256, out, 200);
  LAUNCH(lanes_in_turn, 264, 256, out, in, 6);
  LAUNCH_TURNS(sleeps_until_flag, 264, 128, words, out, turn);
  LAUNCH_TURNS(lock_with_sleep, 132, 32, words, more);
  int *host = nullptr, *mapped = nullptr;
  cudaHostAlloc((void **)&host, 1 << 16, cudaHostAllocMapped);
  cudaHostGetDevicePointer((void **)&mapped, host, 0);
  LAUNCH(adds_on_host, 264, 256, mapped);
  LAUNCH_TURNS(last_sums_up, 528, 256, counts, (float *)(counts + 64), out, in_f, n);
  cudaDeviceSynchronize();
  cudaFreeHost(host);
  return done();
}
