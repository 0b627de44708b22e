// What this machine's GPU really gives: launch costs, bandwidths and latencies, as one JSON object on stdout.
// Build and run: nvcc -O3 -arch=native bench/ceilings.cu -o build/ceilings && build/ceilings > bench/results/NAME.json
// src/device/devices.def cites its results. Every figure is the median of ROUNDS runs after a warm-up; the
// spread printed with it is (largest - smallest) / median.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e = (call);                                                                                  \
    if (e != cudaSuccess) {                                                                                  \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e));                  \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

enum { ROUNDS = 11 };

typedef struct Figure {
  double median, spread;
} Figure;

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static Figure summarise(double *v) {
  qsort(v, ROUNDS, sizeof *v, ascending);
  return (Figure){v[ROUNDS / 2], (v[ROUNDS - 1] - v[0]) / v[ROUNDS / 2]};
}

static void print(const char *key, Figure f) { printf(",\n  \"%s\": %.6g, \"%s_spread\": %.3g", key, f.median, key, f.spread); }

__global__ void nothing(void) {}

// Consecutive 16-byte accesses, the whole grid strided; MODE 0 reads, 1 writes, 2 copies.
template <int MODE> __global__ void __launch_bounds__(512) stream(const uint4 *in, uint4 *out, size_t n, int repeat) {
  uint4 sum = make_uint4(1, 2, 3, 4);
  size_t step = (size_t)gridDim.x * blockDim.x;
  for (int r = 0; r < repeat; r++) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * step < n; i += 4 * step) {
      uint4 v[4];
#pragma unroll
      for (int k = 0; k < 4; k++) v[k] = MODE == 1 ? sum : __ldcg(in + i + k * step);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        if (MODE == 0) sum.x ^= v[k].x, sum.y ^= v[k].y, sum.z ^= v[k].z, sum.w ^= v[k].w;
        else out[i + k * step] = v[k];
      }
    }
    for (; i < n; i += step) {
      uint4 v = MODE == 1 ? sum : __ldcg(in + i);
      if (MODE == 0) sum.x ^= v.x, sum.y ^= v.y;
      else out[i] = v;
    }
  }
  if (MODE == 0 && sum.x == 0x12345678 && sum.y == 0x9abcdef0) out[0] = sum;
}

// Follows a chain of indices; every load waits for the one before.
// It continues where the last launch stopped, after `warm` steps that are not timed.
__global__ void chase_global(const unsigned *next, int warm, int steps, int cached, long long *clocks, unsigned *end) {
  unsigned at = *end;
  for (int i = 0; i < warm; i++) at = cached ? next[at] : __ldcg(next + at);
  long long start = clock64();
  if (cached)
    for (int i = 0; i < steps; i++) at = next[at];
  else
    for (int i = 0; i < steps; i++) at = __ldcg(next + at);
  *end = at;
  *clocks = clock64() - start;
}

__global__ void chase_shared(int steps, long long *clocks, unsigned *end) {
  __shared__ unsigned next[256];
  if (threadIdx.x == 0) {
    for (unsigned i = 0; i < 256; i++) next[i] = (i + 33) % 256;
    unsigned at = 0;
    long long start = clock64();
    for (int i = 0; i < steps; i++) at = next[at];
    *end = at;
    *clocks = clock64() - start;
  }
}

// 16-byte shared loads without conflicts; bytes over clocks is an SM's bandwidth.
__global__ void shared_read(int steps, long long *clocks, unsigned *end) {
  __shared__ uint4 data[1024];
  data[threadIdx.x] = make_uint4(threadIdx.x, 1, 2, 3);
  __syncthreads();
  uint4 sum = make_uint4(0, 0, 0, 0);
  long long start = clock64();
#pragma unroll 8
  for (int i = 0; i < steps; i++) {
    uint4 v = data[(threadIdx.x + 32 * (unsigned)i) & 1023];
    sum.x ^= v.x, sum.y ^= v.y, sum.z ^= v.z, sum.w ^= v.w;
  }
  __syncthreads();
  if (threadIdx.x == 0) *clocks = clock64() - start;
  if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x12345678) *end = sum.x;
}

static cudaEvent_t begin_event, end_event;

static double elapsed_us(void) {
  CHECK(cudaEventRecord(end_event));
  CHECK(cudaEventSynchronize(end_event));
  float ms;
  CHECK(cudaEventElapsedTime(&ms, begin_event, end_event));
  return ms * 1e3;
}

static Figure launch_stream(void) {
  enum { N = 4000 };
  double v[ROUNDS];
  for (int r = -1; r < ROUNDS; r++) {
    CHECK(cudaEventRecord(begin_event));
    for (int i = 0; i < N; i++) nothing<<<1, 32>>>();
    double us = elapsed_us() / N;
    if (r >= 0) v[r] = us;
  }
  return summarise(v);
}

// Host time of one asynchronous call while the queue has room.
static Figure launch_host(void) {
  enum { N = 200 };
  double v[ROUNDS];
  for (int r = -1; r < ROUNDS; r++) {
    CHECK(cudaDeviceSynchronize());
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < N; i++) nothing<<<1, 32>>>();
    clock_gettime(CLOCK_MONOTONIC, &b);
    if (r >= 0) v[r] = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 1e3 / N;
  }
  return summarise(v);
}

static Figure launch_graph(void) {
  enum { N = 1000 };
  cudaStream_t s;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < N; i++) nothing<<<1, 32, 0, s>>>();
  CHECK(cudaStreamEndCapture(s, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  double v[ROUNDS];
  for (int r = -2; r < ROUNDS; r++) {
    CHECK(cudaEventRecord(begin_event, s));
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaEventRecord(end_event, s));
    CHECK(cudaEventSynchronize(end_event));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, begin_event, end_event));
    if (r >= 0) v[r] = ms * 1e3 / N;
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(s));
  return summarise(v);
}

// Bytes a second over `bytes` of input (and as many of output), `repeat` times in one launch.
template <int MODE> static Figure bandwidth(const uint4 *in, uint4 *out, size_t bytes, int repeat, int sms) {
  double v[ROUNDS];
  for (int r = -2; r < ROUNDS; r++) {
    CHECK(cudaEventRecord(begin_event));
    stream<MODE><<<sms * 4, 512>>>(in, out, bytes / 16, repeat);
    double us = elapsed_us();
    if (r >= 0) v[r] = (double)bytes * repeat * (MODE == 2 ? 2 : 1) / (us * 1e-6);
  }
  return summarise(v);
}

// A random cycle through `bytes`, one element every 128 bytes. What fits a cache is walked once before each
// timing; what does not is never met twice.
static Figure latency(size_t bytes, int cached, unsigned *device_next, long long *clocks, unsigned *end) {
  size_t lines = bytes / 128;
  unsigned *order = (unsigned *)malloc(lines * sizeof *order), *next = (unsigned *)malloc(bytes);
  for (size_t i = 0; i < lines; i++) order[i] = (unsigned)i;
  unsigned long long seed = 88172645463325252ull;
  for (size_t i = lines - 1; i > 0; i--) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    size_t k = seed % i; // a single cycle
    unsigned t = order[i];
    order[i] = order[k], order[k] = t;
  }
  for (size_t i = 0; i < lines; i++) next[(size_t)order[i] * 32] = order[(i + 1) % lines] * 32;
  CHECK(cudaMemcpy(device_next, next, bytes, cudaMemcpyHostToDevice));
  free(order);
  free(next);
  int steps = 4096, warm = lines < 200000 ? (int)lines : 64;
  CHECK(cudaMemset(end, 0, sizeof *end));
  double v[ROUNDS];
  for (int r = -2; r < ROUNDS; r++) {
    chase_global<<<1, 1>>>(device_next, warm, steps, cached, clocks, end);
    long long c;
    CHECK(cudaMemcpy(&c, clocks, sizeof c, cudaMemcpyDeviceToHost));
    if (r >= 0) v[r] = (double)c / steps;
  }
  return summarise(v);
}

static Figure clocks_of(void (*launch)(int, long long *, unsigned *), int steps, double per, long long *clocks, unsigned *end) {
  double v[ROUNDS];
  for (int r = -2; r < ROUNDS; r++) {
    launch(steps, clocks, end);
    long long c;
    CHECK(cudaMemcpy(&c, clocks, sizeof c, cudaMemcpyDeviceToHost));
    if (r >= 0) v[r] = per ? per / (double)c : (double)c / steps;
  }
  return summarise(v);
}

static void launch_chase_shared(int steps, long long *c, unsigned *e) { chase_shared<<<1, 32>>>(steps, c, e); }
static void launch_shared_read(int steps, long long *c, unsigned *e) { shared_read<<<1, 1024>>>(steps, c, e); }

int main(int argc, char **argv) {
  cudaDeviceProp p;
  int driver, clock_khz;
  CHECK(cudaGetDeviceProperties(&p, 0));
  CHECK(cudaDriverGetVersion(&driver));
  CHECK(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, 0));
  CHECK(cudaEventCreate(&begin_event));
  CHECK(cudaEventCreate(&end_event));
  char date[32];
  time_t now = time(NULL);
  strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
  printf("{\n  \"schema\": 1,\n  \"gpu\": \"%s\",\n  \"driver\": \"%s\",\n  \"cuda\": %d,\n  \"date\": \"%s\",\n", p.name,
         argc > 1 ? argv[1] : "", driver, date);
  printf("  \"command\": \"nvcc -O3 -arch=native bench/ceilings.cu -o build/ceilings && build/ceilings\",\n");
  printf("  \"sms\": %d, \"l2_bytes\": %d, \"memory_bytes\": %zu, \"max_clock_hz\": %.0f, \"smem_per_sm\": %zu, "
         "\"smem_optin\": %zu",
         p.multiProcessorCount, p.l2CacheSize, p.totalGlobalMem, clock_khz * 1e3, p.sharedMemPerMultiprocessor,
         p.sharedMemPerBlockOptin);
  size_t big = (size_t)4 << 30;
  uint4 *in, *out;
  long long *clocks;
  unsigned *end;
  CHECK(cudaMalloc(&in, big));
  CHECK(cudaMalloc(&out, big));
  CHECK(cudaMalloc(&clocks, sizeof *clocks));
  CHECK(cudaMalloc(&end, sizeof *end));
  CHECK(cudaMemset(in, 0x5a, big));
  CHECK(cudaMemset(out, 0xa5, big));
  for (int i = 0; i < 20; i++) stream<2><<<p.multiProcessorCount * 4, 512>>>(in, out, big / 16, 1); // clocks up
  CHECK(cudaDeviceSynchronize());
  int sms = p.multiProcessorCount;
  print("launch_stream_us", launch_stream());
  print("launch_host_us", launch_host());
  print("launch_graph_us", launch_graph());
  print("hbm_read", bandwidth<0>(in, out, big, 1, sms));
  print("hbm_write", bandwidth<1>(in, out, big, 1, sms));
  print("hbm_copy", bandwidth<2>(in, out, big, 1, sms));
  print("l2_read_8MiB", bandwidth<0>(in, out, (size_t)8 << 20, 200, sms));
  print("l2_read_16MiB", bandwidth<0>(in, out, (size_t)16 << 20, 100, sms));
  print("l2_read_24MiB", bandwidth<0>(in, out, (size_t)24 << 20, 100, sms));
  print("l2_write_16MiB", bandwidth<1>(in, out, (size_t)16 << 20, 100, sms));
  print("smem_bytes_per_clock", clocks_of(launch_shared_read, 4096, 4096.0 * 1024 * 16, clocks, end));
  print("smem_latency_clocks", clocks_of(launch_chase_shared, 4096, 0, clocks, end));
  print("l1_latency_clocks", latency((size_t)32 << 10, 1, (unsigned *)in, clocks, end));
  print("l2_latency_clocks", latency((size_t)4 << 20, 0, (unsigned *)in, clocks, end));
  print("l2_latency_16MiB_clocks", latency((size_t)16 << 20, 0, (unsigned *)in, clocks, end));
  print("mem_latency_clocks", latency((size_t)2 << 30, 0, (unsigned *)in, clocks, end));
  printf("\n}\n");
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  return 0;
}
