// The hundred launches are recorded once and started together, as a graph.
#include "check.h"

enum { N = 1 << 12, STEPS = 100 };

__global__ void relax(float *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 0.5f * x[i] + 1.0f;
}

static void launch_all(cudaStream_t stream, float *x) {
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int k = 0; k < STEPS; k++) relax<<<N / 256, 256, 0, stream>>>(x);
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&ready, graph, 0));
  CUDA(cudaGraphLaunch(ready, stream));
}

int main(void) {
  float *h = random_floats(N), *x = (float *)to_device(h, N * sizeof *x);
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  launch_all(stream, x);
  CUDA(cudaStreamSynchronize(stream));
  float *r = (float *)to_host(x, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) {
    float v = h[i];
    for (int k = 0; k < STEPS; k++) v = 0.5f * v + 1.0f;
    wrong += r[i] != v;
  }
  return verdict(wrong, N);
}
