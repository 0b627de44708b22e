// What it takes to hand something over: a flag in global memory from block to block, with and without a fence, in shared memory from warp to
// warp, a lock among blocks, with and without sleeping.
// usage: probe_hand > hand.json; nvcc -O3 -arch=sm_90a bench/probe_hand.cu
#include <cstdio>
#include <cuda_runtime.h>

// Two blocks, or warps of one, take turns; `far`: of blocks of other SMs.
__global__ void flag(volatile unsigned *f, int rounds, bool fence) {
  unsigned me = blockIdx.x / (gridDim.x - 1);
  if (threadIdx.x || (blockIdx.x && blockIdx.x != gridDim.x - 1)) return;
  for (int r = 0; r < rounds; r++) {
    while (*f != 2 * r + me)
      ;
    if (fence) __threadfence();
    *f = 2 * r + me + 1;
  }
}

__global__ void shared_flag(float *out, int rounds) {
  __shared__ volatile unsigned f;
  if (threadIdx.x == 0) f = 0;
  __syncthreads();
  unsigned me = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0)
    for (int r = 0; r < rounds; r++) {
      while (f != 2 * r + me)
        ;
      f = 2 * r + me + 1;
    }
  out[threadIdx.x] = 1;
}

// Each block takes the lock `rounds` times.
__global__ void lock_of(unsigned *lock, volatile unsigned *sum, int rounds, unsigned sleep, bool grows) {
  if (threadIdx.x) return;
  for (int r = 0; r < rounds; r++) {
    unsigned ns = sleep;
    while (atomicCAS(lock, 0, 1) != 0)
      if (ns) {
        __nanosleep(ns);
        if (grows && ns < 1024) ns *= 2;
      }
    *sum += 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}

// A barrier of all blocks, by hand.
__global__ void meet(unsigned *count, int rounds) {
  for (int r = 1; r <= rounds; r++) {
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(count, 1);
      while (*(volatile unsigned *)count < r * gridDim.x)
        ;
    }
    __syncthreads();
  }
}

static unsigned *words;
template <typename F> static double us(F launch) {
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  float best = 1e9f;
  for (int t = 0; t < 4; t++) {
    cudaMemset(words, 0, 4096);
    cudaEventRecord(a);
    launch();
    cudaEventRecord(b), cudaEventSynchronize(b);
    float ms;
    cudaEventElapsedTime(&ms, a, b);
    if (t && ms < best) best = ms;
  }
  return best * 1e3;
}

static void say(const char *what, int n, double few, double many, double more) {
  static bool any;
  printf("%s{\"what\": \"%s\", \"blocks\": %d, \"us\": %.2f, \"clocks\": %.1f}", any ? ",\n" : "[", what, n, many, (many - few) * 1980 / more);
  any = true;
}

int main() {
  cudaMalloc(&words, 4096);
  float *out = (float *)words + 512;
  for (int far : {2, 3, 66, 132})
    for (bool fence : {false, true})
      say(fence ? "flag with fence" : "flag", far, us([&] { flag<<<far, 32>>>(words, 100, fence); }), us([&] { flag<<<far, 32>>>(words, 600, fence); }), 1000);
  say("shared flag", 1, us([&] { shared_flag<<<1, 64>>>(out, 100); }), us([&] { shared_flag<<<1, 64>>>(out, 600); }), 1000);
  for (int n : {1, 2, 8, 33, 132}) {
    int few = 4, many = 20;
    auto lock = [&](int rounds, unsigned sleep, bool grows) { return us([&] { lock_of<<<n, 32>>>(words, words + 64, rounds, sleep, grows); }); };
    double each = (many - few) * (double)n;
    say("lock", n, lock(few, 0, false), lock(many, 0, false), each);
    say("lock, sleeps 32 to 1024", n, lock(few, 32, true), lock(many, 32, true), each);
    say("lock, sleeps 100", n, lock(few, 100, false), lock(many, 100, false), each);
    say("lock, sleeps 1000", n, lock(few, 1000, false), lock(many, 1000, false), each);
  }
  for (int n : {2, 16, 66, 132, 264})
    say("meet", n, us([&] { meet<<<n, 256>>>(words, 10); }), us([&] { meet<<<n, 256>>>(words, 60); }), 50);
  printf("]\n");
  return cudaDeviceSynchronize() != cudaSuccess;
}
