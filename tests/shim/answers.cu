// Prints what the runtime answers to questions and to misuse, one line each. answers_h200.txt is what
// CUDA 13.0 printed on an H200; the emulator as an H200 must print the same.
#include <cooperative_groups.h>
#include <cstdint>

#include "check.h"

#define SAY(call) printf("%s: %s\n", #call, cudaGetErrorName(call)), cudaGetLastError()
#define LAUNCH(what, ...)                                                                                    \
  do {                                                                                                       \
    __VA_ARGS__;                                                                                             \
    printf("launch %s: %s\n", what, cudaGetErrorName(cudaGetLastError()));                                   \
    cudaGetLastError();                                                                                      \
  } while (0)

__global__ void plain(int *x) {
  x[threadIdx.x] = threadIdx.x;
}
__global__ void __launch_bounds__(128) bounded(int *x) {
  x[threadIdx.x] = 1;
}
__global__ void heavy(float *x, int n) { // many values alive at once
  float v[40];
#pragma unroll
  for (int i = 0; i < 40; i++) v[i] = x[i * 1024 + threadIdx.x];
  for (int r = 0; r < n; r++)
#pragma unroll
    for (int i = 0; i < 40; i++) v[i] = v[i] * v[(i + 7) % 40] + r;
#pragma unroll
  for (int i = 0; i < 40; i++) x[i * 1024 + threadIdx.x] = v[i];
}
__global__ void shared(int *x) {
  __shared__ int fixed[1000];
  extern __shared__ int more[];
  fixed[threadIdx.x] = more[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = fixed[31 - threadIdx.x] + more[0];
}
__global__ void __cluster_dims__(2, 1, 1) clustered(int *x) {
  x[blockIdx.x] = 1;
}
__constant__ int constants[100];
__device__ int variable;

static void CUDART_CB nothing(void *) {}

static void memory() {
  int *d = nullptr, *e = nullptr, *h = nullptr, *m = nullptr, local[4] = {};
  SAY(cudaMalloc(&d, 0));
  printf("malloc of nothing is null: %d\n", d == nullptr);
  SAY(cudaMalloc(&d, 4096));
  SAY(cudaMalloc(&e, 4096));
  SAY(cudaMalloc(&h, (size_t)1 << 60));
  SAY(cudaMallocManaged(&m, 0));
  SAY(cudaMallocManaged(&m, 64, 7));
  SAY(cudaMallocManaged(&m, 64));
  SAY(cudaMallocHost(&h, 64));
  SAY(cudaMemcpy(d, local, 16, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy(local, d, 16, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(d, e, 16, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(d, e, 16, cudaMemcpyHostToHost));
  SAY(cudaMemcpy(d, local, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy(d, h, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy(d, m, 16, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(m, d, 16, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy(h, m, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy(nullptr, d, 16, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy(nullptr, d, 0, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy(local, d, 16, (cudaMemcpyKind)9));
  SAY(cudaMemcpy2D(local, 4, d, 8, 8, 2, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy2D(local, 8, d, 8, 0, 2, cudaMemcpyDeviceToHost));
  SAY(cudaMemset(nullptr, 0, 16));
  SAY(cudaMemset(nullptr, 0, 0));
  SAY(cudaMemset(local, 0, 16));
  SAY(cudaMemset(h, 0, 16));
  SAY(cudaMemset2D(d, 4, 0, 8, 2));
  SAY(cudaFree(d + 1));
  SAY(cudaFree(h));
  SAY(cudaFree(local));
  SAY(cudaFreeHost(d));
  SAY(cudaFreeHost(local));
  SAY(cudaFreeHost(nullptr));
  void *p = nullptr;
  size_t size = 0;
  SAY(cudaGetSymbolAddress(&p, variable));
  SAY(cudaFree(p));
  SAY(cudaGetSymbolSize(&size, constants));
  SAY(cudaMemcpyToSymbol(constants, local, 500));
  SAY(cudaMemcpyToSymbol(constants, local, 8, 396));
  SAY(cudaMemcpyToSymbol(constants, local, 4, 0, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpyFromSymbol(local, constants, 4, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyFromSymbol(local, local, 4));
  SAY(cudaHostRegister(h, 64, 0));
  SAY(cudaHostRegister(nullptr, 64, 0));
  SAY(cudaHostUnregister(h));
  SAY(cudaHostGetDevicePointer(&p, local, 0));
  SAY(cudaHostGetDevicePointer(&p, h, 0));
  printf("same: %d\n", p == h);
  unsigned flags = 0;
  SAY(cudaHostGetFlags(&flags, h));
  printf("flags %u\n", flags);
  cudaPointerAttributes a;
  void *pointers[] = {d, d + 5, h + 1, m + 2, local, nullptr};
  for (void *q : pointers) {
    printf("pointer: %s", cudaGetErrorName(cudaPointerGetAttributes(&a, q)));
    printf(" type %d device %d has host %d device %d\n", a.type, a.device, a.hostPointer != nullptr,
           a.devicePointer != nullptr);
  }
  SAY(cudaFree(m));
  SAY(cudaFree(d));
  SAY(cudaFree(d));
  size_t pitch;
  SAY(cudaMallocPitch(&p, &pitch, 700, 3));
  printf("pitch %zu\n", pitch);
}

static void launches() {
  int *x;
  cudaMalloc(&x, 1 << 20);
  LAUNCH("1025 threads", plain<<<1, 1025>>>(x));
  LAUNCH("no blocks", plain<<<0, 32>>>(x));
  LAUNCH("no threads", plain<<<1, 0>>>(x));
  LAUNCH("65 deep", plain<<<1, dim3(1, 1, 65)>>>(x));
  LAUNCH("65536 high", plain<<<dim3(1, 65536), 1>>>(x));
  LAUNCH("over bounds", bounded<<<1, 129>>>(x));
  LAUNCH("50000 bytes", plain<<<1, 32, 50000>>>(x));
  LAUNCH("static and dynamic beyond 48 KiB", shared<<<1, 32, 47000>>>(x));
  LAUNCH("uneven clusters", clustered<<<3, 32>>>(x));
  LAUNCH("even clusters", clustered<<<4, 32>>>(x));
  void *args[] = {&x};
  SAY(cudaLaunchKernel((const void *)nothing, dim3(1), dim3(1), args, 0, 0));
  SAY(cudaLaunchKernel((const void *)plain, dim3(1), dim3(32), args, 0, 0));
  SAY(cudaLaunchCooperativeKernel((const void *)plain, dim3(1000000), dim3(32), args, 0, 0));
  SAY(cudaFuncSetAttribute((const void *)shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
  SAY(cudaFuncSetAttribute((const void *)shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 228448));
  SAY(cudaFuncSetAttribute((const void *)shared, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
  SAY(cudaFuncSetAttribute((const void *)shared, cudaFuncAttributePreferredSharedMemoryCarveout, 101));
  SAY(cudaFuncSetAttribute((const void *)nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 1));
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute at[1];
  at[0].id = cudaLaunchAttributeClusterDimension;
  config.attrs = at;
  config.numAttrs = 1;
  config.blockDim = 32;
  for (unsigned size : {0u, 2u, 3u, 8u, 16u, 32u}) {
    at[0].val.clusterDim.x = size;
    at[0].val.clusterDim.y = at[0].val.clusterDim.z = 1;
    config.gridDim = 32;
    printf("clusters of %u: %s\n", size, cudaGetErrorName(cudaLaunchKernelEx(&config, plain, x)));
    cudaGetLastError();
  }
  SAY(cudaDeviceSynchronize());
}

static void kernels() {
  struct {
    const char *name;
    const void *f;
  } list[] = {{"plain", (void *)plain},
              {"bounded", (void *)bounded},
              {"heavy", (void *)heavy},
              {"shared", (void *)shared}};
  for (auto &k : list) {
    cudaFuncAttributes a;
    cudaFuncGetAttributes(&a, k.f);
    printf("%s: %zu shared, %zu const, %zu local, %d threads, %d registers, ptx %d, binary %d, %d dynamic, "
           "carveout %d\n",
           k.name, a.sharedSizeBytes, a.constSizeBytes, a.localSizeBytes, a.maxThreadsPerBlock, a.numRegs,
           a.ptxVersion, a.binaryVersion, a.maxDynamicSharedSizeBytes, a.preferredShmemCarveout);
    for (int threads : {32, 96, 128, 256, 1024, 2048, 0})
      for (size_t bytes : {(size_t)0, (size_t)10000, (size_t)100000}) {
        int blocks = -1;
        cudaError_t e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k.f, threads, bytes);
        printf("  %d threads, %zu bytes: %s %d\n", threads, bytes, cudaGetErrorName(e), e ? 0 : blocks);
        cudaGetLastError();
      }
    size_t room = 0;
    SAY(cudaOccupancyAvailableDynamicSMemPerBlock(&room, k.f, 3, 128));
    printf("  room %zu\n", room);
  }
  int grid, block;
  SAY(cudaOccupancyMaxPotentialBlockSize(&grid, &block, heavy));
  printf("grid %d block %d\n", grid, block);
}

static void streams() {
  cudaStream_t s, t;
  cudaEvent_t e, quiet;
  cudaGraph_t g = nullptr;
  float ms;
  SAY(cudaStreamCreateWithFlags(&s, 77));
  SAY(cudaStreamCreate(&s));
  SAY(cudaStreamCreateWithPriority(&t, cudaStreamNonBlocking, -100));
  int priority = 1;
  SAY(cudaStreamGetPriority(t, &priority));
  printf("priority %d\n", priority);
  SAY(cudaEventCreateWithFlags(&e, 64));
  SAY(cudaEventCreateWithFlags(&e, cudaEventInterprocess));
  SAY(cudaEventCreate(&e));
  SAY(cudaEventCreateWithFlags(&quiet, cudaEventDisableTiming));
  SAY(cudaEventQuery(e));
  SAY(cudaEventSynchronize(e));
  SAY(cudaEventElapsedTime(&ms, e, e));
  SAY(cudaEventRecord(e, s));
  SAY(cudaEventRecord(quiet, s));
  SAY(cudaEventSynchronize(quiet));
  SAY(cudaEventElapsedTime(&ms, e, quiet));
  SAY(cudaEventElapsedTime(&ms, e, e));
  SAY(cudaLaunchHostFunc(s, nullptr, nullptr));
  SAY(cudaStreamAddCallback(s, nullptr, nullptr, 0));
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  SAY(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed));
  SAY(cudaStreamEndCapture(cudaStreamPerThread, &g));
  size_t count = 9;
  SAY(cudaGraphGetNodes(g, nullptr, &count));
  printf("nodes %zu\n", count);
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  SAY(cudaStreamQuery(s));
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  SAY(cudaEventRecord(e, s));
  SAY(cudaEventQuery(e));
  SAY(cudaStreamWaitEvent(t, e, 0));
  SAY(cudaLaunchHostFunc(t, nothing, nullptr));
  SAY(cudaStreamEndCapture(t, &g));
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  SAY(cudaStreamWaitEvent(s, quiet, 0));
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaGraphCreate(&g, 1));
  SAY(cudaGraphCreate(&g, 0));
  cudaGraphNode_t n;
  SAY(cudaGraphAddEmptyNode(&n, g, nullptr, 1));
  SAY(cudaGraphAddEmptyNode(&n, g, nullptr, 0));
  SAY(cudaGraphAddDependencies(g, &n, &n, nullptr, 1));
  cudaMemsetParams m = {};
  SAY(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &m));
  cudaGraphExec_t x;
  SAY(cudaGraphInstantiate(&x, g, 0));
  SAY(cudaGraphLaunch(x, s));
  SAY(cudaStreamSynchronize(s));
}

static void device() {
  int v = 0;
  // Left out are the ones that tell of the machine around the GPU, and those without a name.
  static const int skip[] = {11, 13, 32, 33, 34, 35, 36,  37,  40,  44,  50,  86,  87,  88,
                             92, 93, 94, 95, 96, 98, 102, 103, 104, 105, 107, 108, 109, 110};
  for (int i = 1; i < 112; i++) {
    bool left_out = false;
    for (int s : skip) left_out |= s == i;
    if (left_out) continue;
    cudaError_t e = cudaDeviceGetAttribute(&v, (cudaDeviceAttr)i, 0);
    if (!e) printf("attribute %d: %d\n", i, v);
    cudaGetLastError();
  }
  SAY(cudaDeviceGetAttribute(&v, (cudaDeviceAttr)4000, 0));
  SAY(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
  SAY(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 50));
  SAY(cudaSetDevice(-1));
  SAY(cudaSetDevice(50));
  SAY(cudaDeviceCanAccessPeer(&v, 0, 0));
  SAY(cudaDeviceCanAccessPeer(&v, 0, 50));
  SAY(cudaDeviceEnablePeerAccess(0, 0));
  SAY(cudaDeviceDisablePeerAccess(0));
  SAY(cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrAccessSupported, 0, 0));
  int least, greatest;
  SAY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  printf("priorities %d %d\n", least, greatest);
  size_t limit = 0;
  for (int i = 0; i < 8; i++) {
    cudaError_t e = cudaDeviceGetLimit(&limit, (cudaLimit)i);
    printf("limit %d: %s %zu\n", i, cudaGetErrorName(e), e || i > 2 ? 0 : limit);
    cudaGetLastError();
  }
  SAY(cudaGetDeviceCount(nullptr));
}

int main(int argc, char **argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const char *part = argc > 1 ? argv[1] : "";
  if (!*part || !strcmp(part, "device")) device();
  if (!*part || !strcmp(part, "memory")) memory();
  if (!*part || !strcmp(part, "launches")) launches();
  if (!*part || !strcmp(part, "kernels")) kernels();
  if (!*part || !strcmp(part, "streams")) streams();
  return 0;
}
