// Kernels of known habits, each timed by events as well: for `sol profile` to be held against ncu and the events.
// usage: mix [graph|crash|threads|times]; times: warm, and ten launches between two events, so that
// neither the start nor the events cost much
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace mix {
__global__ void stream(const float4 *x, float4 *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i];
}
__global__ void strided(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[(long)i * 33 % n];
}
template <int PAD> __global__ void transpose(const float *x, float *y, int n) {
  __shared__ float tile[32][32 + PAD];
  int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8) tile[threadIdx.y + i][threadIdx.x] = x[(long)(row + i) * n + col];
  __syncthreads();
  col = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8) y[(long)(row + i) * n + col] = tile[threadIdx.x][threadIdx.y + i];
}
__global__ void count(const int *x, int *bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[x[i] & 255], 1);
}
__global__ void flops(float *x, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = x[i], b = 0.5f;
  for (int r = 0; r < rounds; r++) a = a * b + 1.0f;
  x[i] = a;
}
__global__ void bad(int *p) {
  *p = 1;
}
} // namespace mix

static int launches = 1; // between two events

static void timed(const char *name, cudaStream_t s, void (*work)(cudaStream_t)) {
  cudaEvent_t begin, end;
  float ms = 0, sum = 0, least = 1e30f;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  if (launches > 1) work(s); // loads the kernel
  for (int i = 0; i < 3; i++) {
    cudaEventRecord(begin, s);
    for (int k = 0; k < launches; k++) work(s);
    cudaEventRecord(end, s);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&ms, begin, end);
    sum += ms;
    if (ms < least) least = ms;
  }
  printf("%-12s %9.2f us by events (mean of 3 times %d; least %.2f)\n", name, sum / 3 / launches * 1e3, launches,
         least / launches * 1e3);
}

static float *x, *y;
static const int n = 1 << 26, side = 8192;

static void run_stream(cudaStream_t s) { mix::stream<<<132 * 8, 256, 0, s>>>((float4 *)x, (float4 *)y, n / 4); }
static void run_strided(cudaStream_t s) { mix::strided<<<n / 256, 256, 0, s>>>(x, y, n); }
static void run_transpose(cudaStream_t s) {
  mix::transpose<0><<<dim3(side / 32, side / 32), dim3(32, 8), 0, s>>>(x, y, side);
}
static void run_padded(cudaStream_t s) {
  mix::transpose<1><<<dim3(side / 32, side / 32), dim3(32, 8), 0, s>>>(x, y, side);
}
static void run_count(cudaStream_t s) { mix::count<<<n / 256, 256, 0, s>>>((int *)x, (int *)y, n); }
static void run_flops(cudaStream_t s) { mix::flops<<<n / 256, 256, 0, s>>>(x, 512); }

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  cudaStream_t s;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (cudaMalloc(&x, n * sizeof *x) || cudaMalloc(&y, n * sizeof *y) || cudaStreamCreate(&s)) return 1;
  cudaMemset(x, 0, n * sizeof *x);
  cudaMemset(y, 0, n * sizeof *y);
  cudaDeviceSynchronize();
  if (strcmp(how, "graph") == 0) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    run_stream(s), run_transpose(s), run_padded(s);
    cudaStreamEndCapture(s, &graph);
    if (cudaGraphInstantiate(&exec, graph, 0)) return 1;
    for (int i = 0; i < 2; i++) cudaGraphLaunch(exec, s);
  } else if (strcmp(how, "threads") == 0) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
      threads.emplace_back([] {
        cudaStream_t own;
        cudaStreamCreate(&own);
        for (int i = 0; i < 4; i++) run_stream(own), run_padded(own);
        cudaStreamSynchronize(own);
      });
    for (auto &t : threads) t.join();
  } else {
    if (strcmp(how, "times") == 0) {
      launches = 10;
      for (int i = 0; i < 100; i++) run_flops(s); // until the clocks are up
    }
    timed("stream", s, run_stream);
    timed("strided", s, run_strided);
    timed("transpose<0>", s, run_transpose);
    timed("transpose<1>", s, run_padded);
    timed("count", s, run_count);
    timed("flops", s, run_flops);
  }
  if (strcmp(how, "crash") == 0) {
    mix::bad<<<1, 1, 0, s>>>((int *)8);
    cudaDeviceSynchronize();
    abort();
  }
  cudaError_t end = cudaDeviceSynchronize();
  printf("end: %s\n", cudaGetErrorString(end));
  return end != cudaSuccess;
}
