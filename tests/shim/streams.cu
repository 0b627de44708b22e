// Streams in order, events between them, callbacks, priorities, times that add up.
#include "check.h"

__global__ void scale(int *x, int by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * by + 1;
}

static int calls;
static void CUDART_CB count(void *data) {
  calls += *(int *)data;
}
static void CUDART_CB done(cudaStream_t stream, cudaError_t error, void *data) {
  if (error == cudaSuccess && stream == *(cudaStream_t *)data) calls += 100;
}

int main() {
  const int n = 1000, streams = 4;
  cudaStream_t s[streams];
  cudaEvent_t start, stop, ready;
  int *h, *d;
  OK(cudaMallocHost(&h, streams * n * sizeof(int)));
  OK(cudaMalloc(&d, streams * n * sizeof(int)));
  for (int i = 0; i < streams * n; i++) h[i] = i;
  for (int k = 0; k < streams; k++)
    OK(k % 2 ? cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking) : cudaStreamCreate(&s[k]));
  OK(cudaEventCreate(&start));
  OK(cudaEventCreate(&stop));
  OK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
  OK(cudaEventRecord(start));
  for (int k = 0; k < streams; k++) {
    size_t bytes = n * sizeof(int);
    OK(cudaMemcpyAsync(d + k * n, h + k * n, bytes, cudaMemcpyHostToDevice, s[k]));
    for (int r = 0; r < 3; r++) scale<<<(n + 127) / 128, 128, 0, s[k]>>>(d + k * n, 2, n);
    OK(cudaMemcpyAsync(h + k * n, d + k * n, bytes, cudaMemcpyDeviceToHost, s[k]));
  }
  OK(cudaEventRecord(ready, s[0]));
  OK(cudaStreamWaitEvent(s[1], ready, 0));
  int one = 1;
  OK(cudaLaunchHostFunc(s[1], count, &one));
  OK(cudaStreamAddCallback(s[1], done, &s[1], 0));
  OK(cudaEventRecord(stop));
  OK(cudaEventSynchronize(stop));
  OK(cudaDeviceSynchronize());
  int bad = 0;
  for (int i = 0; i < streams * n; i++) bad += h[i] != ((i * 2 + 1) * 2 + 1) * 2 + 1;
  CHECK(bad == 0);
  CHECK(calls == 101);
  OK(cudaStreamQuery(s[2]));
  OK(cudaEventQuery(stop));
  float ms = -1;
  OK(cudaEventElapsedTime(&ms, start, stop));
  CHECK(ms > 0);
  IS(cudaEventElapsedTime(&ms, start, ready), cudaErrorInvalidResourceHandle);
  int least = 1, greatest = 1, priority = 1;
  OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(least == 0 && greatest < 0);
  cudaStream_t urgent;
  OK(cudaStreamCreateWithPriority(&urgent, cudaStreamDefault, greatest));
  OK(cudaStreamGetPriority(urgent, &priority));
  CHECK(priority == greatest);
  unsigned flags = 9;
  OK(cudaStreamGetFlags(s[1], &flags));
  CHECK(flags == cudaStreamNonBlocking);
  for (int k = 0; k < streams; k++) OK(cudaStreamDestroy(s[k]));
  IS(cudaStreamSynchronize(s[0]), cudaErrorInvalidResourceHandle); // where a real driver may crash
  OK(cudaEventDestroy(start));
  OK(cudaFreeHost(h));
  return failures != 0;
}
