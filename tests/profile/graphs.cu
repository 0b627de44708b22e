// CUDA graphs whose results show how often, and in which order, their nodes ran: `sol profile` launches them node by
// node while it counts, and nothing may come out differently. Prints what is wrong; exit code 1.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static int wrong;
static const char *now = "start";
static void ok(cudaError_t e, int line) {
  if (e) printf("%s, line %d: %s\n", now, line, cudaGetErrorString(e)), exit(1);
}
#define OK(call) ok(call, __LINE__)
static void same(const char *what, double got, double want) {
  if (got != want) wrong++, printf("%s: %.0f, not %.0f\n", what, got, want);
}

__global__ void add(int *x, int by) {
  if (!threadIdx.x && !blockIdx.x) *x += by;
}
__global__ void twice(int *x, const int *y) {
  if (!threadIdx.x && !blockIdx.x) *x = 2 * *x + *y;
}
__global__ void fill(int *x, int n, int by) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] += by + i;
}
__global__ void __cluster_dims__(2, 1, 1) fixed_cluster(int *x) {
  namespace cg = cooperative_groups;
  if (!threadIdx.x) atomicAdd(x, (int)cg::this_cluster().num_blocks());
}
__global__ void any_cluster(int *x) {
  namespace cg = cooperative_groups;
  if (!threadIdx.x) atomicAdd(x, (int)cg::this_cluster().num_blocks());
}
__global__ void together(int *x) { // hangs, or fails, unless it was launched as a whole
  namespace cg = cooperative_groups;
  if (!threadIdx.x) atomicAdd(x, 1);
  cg::this_grid().sync();
  if (!threadIdx.x && !blockIdx.x) x[1] += x[0];
}
__global__ void big_shared(int *x) {
  extern __shared__ int room[];
  room[threadIdx.x * 64] = threadIdx.x;
  __syncthreads();
  if (!threadIdx.x) *x += room[blockDim.x * 64 - 64];
}

static cudaStream_t s, t;
static int *x, h[16];
static void start() {
  OK(cudaMemset(x, 0, 1 << 20));
  OK(cudaDeviceSynchronize());
}
static void read() {
  OK(cudaStreamSynchronize(s));
  OK(cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
}
template <class F> static cudaGraphExec_t capture(F work, cudaGraph_t *keep = 0) {
  cudaGraph_t g;
  cudaGraphExec_t e;
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  work();
  OK(cudaStreamEndCapture(s, &g));
  OK(cudaGraphInstantiate(&e, g, 0));
  if (keep)
    *keep = g;
  else
    OK(cudaGraphDestroy(g)); // as PyTorch does
  return e;
}
static void launch(cudaGraphExec_t e, int times) {
  for (int i = 0; i < times; i++) OK(cudaGraphLaunch(e, s));
}
static int hosted;
static void on_host(void *by) {
  hosted = 3 * hosted + *(int *)by;
  hosted %= 1000003;
}

static void two_streams() {
  static int seven = 7;
  cudaEvent_t fork, join;
  OK(cudaEventCreate(&fork));
  OK(cudaEventCreate(&join));
  start();
  cudaGraphExec_t e = capture([&] {
    add<<<1, 32, 0, s>>>(x, 1);
    OK(cudaEventRecord(fork, s));
    OK(cudaStreamWaitEvent(t, fork, 0));
    OK(cudaMemsetAsync(x + 1, 1, 4, s));
    add<<<1, 32, 0, s>>>(x + 1, 5);
    OK(cudaMemcpyAsync(x + 2, x, 4, cudaMemcpyDeviceToDevice, t));
    add<<<1, 32, 0, t>>>(x + 2, 100);
    twice<<<1, 32, 0, t>>>(x + 3, x + 2);
    OK(cudaEventRecord(join, t));
    OK(cudaStreamWaitEvent(s, join, 0));
    twice<<<1, 32, 0, s>>>(x + 4, x + 3);
    fill<<<256, 256, 0, s>>>(x + 1024, 1 << 17, 3);
    OK(cudaLaunchHostFunc(s, on_host, &seven));
  });
  launch(e, 100);
  read();
  unsigned d = 0, f = 0;
  int host = 0;
  for (int i = 1; i <= 100; i++) d = 2 * d + 100 + i, f = 2 * f + d, host = (3 * host + 7) % 1000003;
  same("two streams: counter", h[0], 100);
  same("two streams: set", h[1], 0x01010101 + 5);
  same("two streams: copied", h[2], 200);
  same("two streams: chain", h[3], (int)d);
  same("two streams: end of the chain", h[4], (int)f);
  same("two streams: host", hosted, host);
  int last;
  OK(cudaMemcpy(&last, x + 1024 + (1 << 17) - 1, 4, cudaMemcpyDeviceToHost));
  same("two streams: fill", last, 100 * (3 + (1 << 17) - 1));
  OK(cudaGraphExecDestroy(e));
}

// A graph is changed when its launches have ended: driver 580 fails now and then otherwise, also by itself.
static void changed() {
  cudaGraph_t g;
  cudaGraphNode_t node, set;
  cudaGraphExec_t e;
  int by = 1, *to = x;
  void *args[] = {&to, &by};
  cudaKernelNodeParams p = {};
  p.func = (void *)add, p.gridDim = 1, p.blockDim = 32, p.kernelParams = args;
  cudaMemsetParams m = {};
  m.dst = x + 8, m.elementSize = 4, m.width = 2, m.height = 1, m.value = 1;
  start();
  OK(cudaGraphCreate(&g, 0));
  OK(cudaGraphAddKernelNode(&node, g, 0, 0, &p));
  OK(cudaGraphAddMemsetNode(&set, g, &node, 1, &m));
  OK(cudaGraphInstantiate(&e, g, 0));
  for (int i = 0; i < 12; i++) {
    by = 1000 * (i + 1), m.value = 10 + i;
    OK(cudaStreamSynchronize(s));
    OK(cudaGraphExecKernelNodeSetParams(e, node, &p));
    OK(cudaGraphExecMemsetNodeSetParams(e, set, &m));
    launch(e, 1);
  }
  read();
  same("changed: counter", h[0], 78000);
  same("changed: set", h[9], 21);
  OK(cudaGraphNodeSetEnabled(e, set, 0));
  start();
  launch(e, 2);
  read();
  same("switched off: counter", h[0], 24000);
  same("switched off: set", h[8], 0);
}

static void updated() {
  cudaGraph_t g;
  cudaGraphExecUpdateResultInfo info;
  start();
  cudaGraphExec_t e = capture([] { add<<<1, 32, 0, s>>>(x, 1); });
  launch(e, 3);
  for (int i = 0; i < 5; i++) {
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    add<<<1, 32, 0, s>>>(x + i, 100);
    OK(cudaStreamEndCapture(s, &g));
    OK(cudaStreamSynchronize(s));
    OK(cudaGraphExecUpdate(e, g, &info));
    OK(cudaGraphDestroy(g));
    launch(e, 2);
  }
  read();
  same("updated: first", h[0], 203);
  same("updated: last", h[4], 200);
}

static void nested() {
  cudaGraph_t inner, outer;
  cudaGraphNode_t node;
  cudaGraphExec_t e;
  start();
  capture([] { add<<<1, 32, 0, s>>>(x, 1), twice<<<1, 32, 0, s>>>(x + 1, x); }, &inner);
  OK(cudaGraphCreate(&outer, 0));
  OK(cudaGraphAddChildGraphNode(&node, outer, 0, 0, inner));
  OK(cudaGraphAddChildGraphNode(&node, outer, &node, 1, inner));
  OK(cudaGraphInstantiate(&e, outer, 0));
  launch(e, 10);
  read();
  int b = 0;
  for (int i = 1; i <= 20; i++) b = 2 * b + i;
  same("nested: counter", h[0], 20);
  same("nested: chain", h[1], b);
}

static void copies() {
  static int *page, *row;
  OK(cudaMallocHost(&page, 4096));
  row = (int *)malloc(4096);
  start();
  for (int i = 0; i < 1024; i++) page[i] = row[i] = 0;
  cudaGraphExec_t e = capture([&] {
    OK(cudaMemcpyAsync(x, page, 16, cudaMemcpyHostToDevice, s));
    OK(cudaMemcpy2DAsync(x + 256, 64, x, 8, 8, 2, cudaMemcpyDeviceToDevice, s));
    OK(cudaMemset2DAsync(x + 512, 64, 0x11, 5, 3, s));
    add<<<1, 32, 0, s>>>(x + 256 + 16, 1);
    OK(cudaMemcpyAsync(page + 16, x + 256 + 16, 8, cudaMemcpyDeviceToHost, s));
  });
  for (int i = 0; i < 12; i++) {
    for (int k = 0; k < 4; k++) page[k] = 10 * i + k;
    launch(e, 1);
    OK(cudaStreamSynchronize(s));
    same("copies: there and back", page[16], 10 * i + 3);
    same("copies: the next", page[17], 10 * i + 3);
  }
  OK(cudaMemcpy(row, x + 512, 160, cudaMemcpyDeviceToHost));
  same("copies: rows set", row[0] + row[1] + row[16] + row[33], 0x11111111 + 0x11 + 0x11111111 + 0x11);
}

static void launched_otherwise() {
  start();
  int most = 0;
  OK(cudaDeviceGetAttribute(&most, cudaDevAttrMultiProcessorCount, 0));
  OK(cudaFuncSetAttribute(big_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
  cudaGraphExec_t e = capture([&] {
    fixed_cluster<<<4, 32, 0, s>>>(x);
    cudaLaunchAttribute a[1];
    cudaLaunchConfig_t c = {};
    c.gridDim = 8, c.blockDim = 32, c.stream = s, c.attrs = a, c.numAttrs = 1;
    a[0].id = cudaLaunchAttributeClusterDimension;
    a[0].val.clusterDim.x = 4, a[0].val.clusterDim.y = a[0].val.clusterDim.z = 1;
    OK(cudaLaunchKernelEx(&c, any_cluster, x + 1));
    a[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    a[0].val.programmaticStreamSerializationAllowed = 1;
    OK(cudaLaunchKernelEx(&c, add, x + 2, 3));
    c.dynamicSmemBytes = 65536, c.blockDim = 256, c.numAttrs = 0;
    OK(cudaLaunchKernelEx(&c, big_shared, x + 3));
    int *to = x + 4;
    void *args[] = {&to};
    OK(cudaLaunchCooperativeKernel((void *)together, dim3(most), dim3(64), args, 0, s));
  });
  launch(e, 12);
  read();
  same("fixed cluster", h[0], 12 * 8);
  same("chosen cluster", h[1], 12 * 32);
  same("early", h[2], 36);
  same("big shared", h[3] > 0 ? 1 : 0, 1);
  same("together", h[4], 12 * most);
  same("together, after the barrier", h[5], 78 * most);
}

static void not_taken_apart() { // memory that the graph allocates
  start();
  cudaGraphExec_t e = capture([] {
    int *p;
    OK(cudaMallocAsync((void **)&p, 4096, s));
    OK(cudaMemsetAsync(p, 0, 4096, s));
    add<<<1, 32, 0, s>>>(p, 4);
    twice<<<1, 32, 0, s>>>(x, p);
    OK(cudaFreeAsync(p, s));
  });
  launch(e, 5);
  read();
  same("memory of its own", h[0], 124);
}

int main(int argc, char **argv) {
  const char *only = argc > 1 ? argv[1] : "";
  OK(cudaStreamCreate(&s));
  OK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
  OK(cudaMalloc(&x, 1 << 20));
  struct {
    const char *name;
    void (*run)();
  } all[] = {{"streams", two_streams}, {"changed", changed},           {"updated", updated},        {"nested", nested},
             {"copies", copies},       {"other", launched_otherwise}, {"memory", not_taken_apart}};
  for (auto &c : all)
    if (!*only || !strcmp(only, c.name)) now = c.name, c.run();
  OK(cudaDeviceSynchronize());
  puts(wrong ? "wrong" : "all right");
  return wrong != 0;
}
