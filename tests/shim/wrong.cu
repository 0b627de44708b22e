// A program that goes wrong in the way its argument names, after one good launch: for tests of sol audit.
#include <cassert>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

__global__ void add(float *y, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += x[i];
}
__global__ void over(float *y, int n) { y[n + threadIdx.x] = 1; }
__global__ void hang(volatile int *p) {
  while (*p >= 0) *p = (*p + 1) & 1023; // something changes all the time: no deadlock, and no end
}
__global__ void wait_for(volatile int *p) {
  while (*p == 0) {}
}
__global__ void asserts(int n) { assert(n < 0); }

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  auto is = [&](const char *word) { return !strcmp(what, word); };
  float *x, *y;
  int n = 1 << 16;
  if (is("none")) return 0;
  cudaMalloc(&x, n * 4);
  cudaMalloc(&y, n * 4);
  cudaMemset(x, 0, n * 4);
  cudaMemset(y, 0, n * 4);
  cudaEvent_t from, to;
  if (is("time")) cudaEventCreate(&from), cudaEventCreate(&to);
  add<<<n / 256, 256>>>(y, x, n);
  if (is("fault")) over<<<1, 32>>>(y, n);
  if (is("hang")) hang<<<1, 32>>>((int *)y);
  if (is("deadlock")) wait_for<<<1, 32>>>((int *)y);
  if (is("assert")) asserts<<<1, 32>>>(1);
  if (is("crash")) signal(SIGSEGV, SIG_DFL), raise(SIGSEGV);
  if (is("exit")) _exit(7);
  if (is("fork")) {
    pid_t child = fork();
    if (!child) {
      add<<<n / 128, 128>>>(y, x, n);
      _exit(cudaDeviceSynchronize() != cudaSuccess);
    }
    int status;
    waitpid(child, &status, 0);
  }
  if (is("streams"))
    for (int i = 0; i < 16; i++) {
      cudaStream_t stream;
      cudaStreamCreate(&stream);
      add<<<n / 256 / (1 + i % 3), 256, 0, stream>>>(y, x, n);
    }
  if (is("graph")) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < 5; i++) add<<<n / 256, 256, 0, stream>>>(y, x, n);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, stream);
  }
  if (is("time")) {
    float ms;
    cudaEventRecord(from);
    for (int i = 0; i < 10; i++) add<<<n / 256, 256>>>(y, x, n);
    cudaEventRecord(to);
    cudaEventSynchronize(to);
    cudaEventElapsedTime(&ms, from, to);
    printf("10 launches: %g us\n", ms * 1e3);
  }
  cudaError_t error = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}
