// Memory in stream order, and pools.
#include "check.h"

__global__ void fill(int *x, int v, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = v;
}

int main() {
  cudaStream_t s;
  OK(cudaStreamCreate(&s));
  int supported = 0;
  OK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
  CHECK(supported == 1);
  cudaMemPool_t pool, mine;
  OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long keep = ~0ull, used = 1, high = 0;
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  int *p[8];
  for (int i = 0; i < 8; i++) {
    OK(cudaMallocAsync(&p[i], 1000 * sizeof(int), s));
    fill<<<1, 128, 0, s>>>(p[i], i, 1000);
  }
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  CHECK(used >= 8 * 4000);
  for (int i = 0; i < 8; i++) {
    int h = -1;
    OK(cudaMemcpyAsync(&h, p[i] + 999, sizeof h, cudaMemcpyDeviceToHost, s));
    OK(cudaFreeAsync(p[i], s));
    OK(cudaStreamSynchronize(s));
    CHECK(h == i);
  }
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
  CHECK(used == 0 && high >= 8 * 4000);
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  OK(cudaMemPoolCreate(&mine, &props));
  OK(cudaMallocFromPoolAsync(&p[0], 64, mine, s));
  OK(cudaDeviceSetMemPool(0, mine));
  OK(cudaMallocAsync((void **)&p[1], 64, s));
  OK(cudaFree(p[0])); // plain cudaFree takes them too
  OK(cudaFreeAsync(p[1], s));
  OK(cudaMemPoolTrimTo(mine, 0));
  OK(cudaMemPoolDestroy(mine));
  IS(cudaMemPoolTrimTo(mine, 0), cudaErrorInvalidValue);

  // Captured, the memory belongs to the graph.
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  int *out, h = 0;
  OK(cudaMalloc(&out, 4));
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  OK(cudaMallocAsync((void **)&p[2], 400, s));
  fill<<<1, 32, 0, s>>>(p[2], 77, 100);
  OK(cudaMemcpyAsync(out, p[2] + 50, 4, cudaMemcpyDeviceToDevice, s));
  OK(cudaFreeAsync(p[2], s));
  OK(cudaStreamEndCapture(s, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph)); // the instance keeps the memory
  for (int i = 0; i < 2; i++) OK(cudaGraphLaunch(exec, s));
  OK(cudaMemcpy(&h, out, 4, cudaMemcpyDeviceToHost));
  CHECK(h == 77);
  OK(cudaGraphExecDestroy(exec));

  // What a graph allocates and does not free is freed by hand; the next launch allocates it again, at the
  // same place.
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  OK(cudaMallocAsync((void **)&p[3], 400, s));
  fill<<<1, 32, 0, s>>>(p[3], 99, 100);
  OK(cudaStreamEndCapture(s, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; i++) {
    OK(cudaGraphLaunch(exec, s));
    OK(cudaMemcpyAsync(&h, p[3] + 99, 4, cudaMemcpyDeviceToHost, s));
    OK(cudaFreeAsync(p[3], s));
    OK(cudaStreamSynchronize(s));
    CHECK(h == 99);
    h = 0;
  }
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  return failures != 0;
}
