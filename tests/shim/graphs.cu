// Graphs: captured from streams that fork and join, built by hand, updated, launched again.
#include "check.h"

__global__ void add(int *x, int by) {
  x[threadIdx.x] += by;
}
__global__ void multiply(int *x, int by) {
  x[threadIdx.x] *= by;
}
__global__ void sum(const int *a, const int *b, int *c) {
  c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

static void CUDART_CB note(void *data) {
  ++*(int *)data;
}

static int first(const int *d) {
  int h = -1;
  OK(cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost));
  return h;
}

static void capture(int *a, int *b, int *c) {
  cudaStream_t s, t;
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  static int calls;
  OK(cudaStreamCreate(&s));
  OK(cudaStreamCreate(&t));
  OK(cudaEventCreate(&fork));
  OK(cudaEventCreate(&join));
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(s, &status));
  CHECK(status == cudaStreamCaptureStatusActive);
  OK(cudaMemsetAsync(a, 0, 32 * sizeof(int), s));
  OK(cudaEventRecord(fork, s));
  OK(cudaStreamWaitEvent(t, fork, 0));
  add<<<1, 32, 0, s>>>(a, 5);
  OK(cudaMemsetAsync(b, 0, 32 * sizeof(int), t));
  add<<<1, 32, 0, t>>>(b, 7);
  OK(cudaEventRecord(join, t));
  OK(cudaStreamWaitEvent(s, join, 0));
  sum<<<1, 32, 0, s>>>(a, b, c);
  OK(cudaLaunchHostFunc(s, note, &calls));
  OK(cudaStreamEndCapture(s, &graph));
  CHECK(first(c) == 0 && calls == 0); // nothing has run yet
  size_t nodes = 0, roots = 0, edges = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  OK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  CHECK(nodes == 6 && roots == 1 && edges == 6);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  for (int i = 0; i < 3; i++) OK(cudaGraphLaunch(exec, s));
  OK(cudaStreamSynchronize(s));
  CHECK(first(c) == 12 && calls == 3);

  // The same shape with other numbers goes into the instance.
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  OK(cudaMemsetAsync(a, 0, 32 * sizeof(int), s));
  OK(cudaEventRecord(fork, s));
  OK(cudaStreamWaitEvent(t, fork, 0));
  add<<<1, 32, 0, s>>>(a, 50);
  OK(cudaMemsetAsync(b, 0, 32 * sizeof(int), t));
  add<<<1, 32, 0, t>>>(b, 70);
  OK(cudaEventRecord(join, t));
  OK(cudaStreamWaitEvent(s, join, 0));
  sum<<<1, 32, 0, s>>>(a, b, c);
  OK(cudaLaunchHostFunc(s, note, &calls));
  OK(cudaStreamEndCapture(s, &graph));
  cudaGraphExecUpdateResultInfo result;
  OK(cudaGraphExecUpdate(exec, graph, &result));
  CHECK(result.result == cudaGraphExecUpdateSuccess);
  OK(cudaGraphLaunch(exec, s));
  OK(cudaStreamSynchronize(s));
  CHECK(first(c) == 120);
  OK(cudaGraphExecDestroy(exec));

  // A stream that has joined again may go before the capture ends.
  cudaStream_t brief;
  OK(cudaStreamCreateWithFlags(&brief, cudaStreamNonBlocking));
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  OK(cudaEventRecord(fork, s));
  OK(cudaStreamWaitEvent(brief, fork, 0));
  add<<<1, 32, 0, brief>>>(c, 1);
  OK(cudaEventRecord(join, brief));
  OK(cudaStreamWaitEvent(s, join, 0));
  OK(cudaStreamDestroy(brief));
  OK(cudaStreamEndCapture(s, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, s));
  OK(cudaStreamSynchronize(s));
  CHECK(first(c) == 121);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));

  // Faults of use.
  cudaGraph_t none;
  IS(cudaStreamEndCapture(s, &none), cudaErrorIllegalState);
  IS(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  OK(cudaEventRecord(fork, s));
  OK(cudaStreamWaitEvent(t, fork, 0));
  add<<<1, 32, 0, t>>>(b, 1);
  IS(cudaStreamEndCapture(s, &none), cudaErrorStreamCaptureUnjoined);
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  IS(cudaStreamSynchronize(s), cudaErrorStreamCaptureUnsupported);
  IS(cudaStreamEndCapture(s, &none), cudaErrorStreamCaptureInvalidated);
  OK(cudaStreamDestroy(s));
  OK(cudaStreamDestroy(t));
}

static void by_hand(int *a, int *b) {
  cudaGraph_t graph, child;
  cudaGraphExec_t exec;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t set, plus, times, copy, host, empty, nested, inner;
  cudaMemsetParams m = {};
  m.dst = a;
  m.elementSize = 4;
  m.value = 3;
  m.width = 32;
  m.height = 1;
  OK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &m));
  int five = 5, two = 2;
  void *plus_args[] = {&a, &five}, *times_args[] = {&a, &two};
  cudaKernelNodeParams k = {};
  k.func = (void *)add;
  k.gridDim = 1;
  k.blockDim = 32;
  k.kernelParams = plus_args;
  OK(cudaGraphAddKernelNode(&plus, graph, nullptr, 0, &k)); // joined below
  k.func = (void *)multiply;
  k.kernelParams = times_args;
  OK(cudaGraphAddKernelNode(&times, graph, &plus, 1, &k));
  OK(cudaGraphAddDependencies(graph, &set, &plus, nullptr, 1));
  OK(cudaGraphAddMemcpyNode1D(&copy, graph, &times, 1, b, a, 32 * sizeof(int), cudaMemcpyDeviceToDevice));
  static int notes;
  cudaHostNodeParams h = {note, &notes};
  OK(cudaGraphAddHostNode(&host, graph, &copy, 1, &h));
  OK(cudaGraphAddEmptyNode(&empty, graph, &host, 1));
  OK(cudaGraphCreate(&child, 0));
  int *target = b;
  int hundred = 100;
  void *child_args[] = {&target, &hundred};
  k.func = (void *)add;
  k.kernelParams = child_args;
  OK(cudaGraphAddKernelNode(&inner, child, nullptr, 0, &k));
  OK(cudaGraphAddChildGraphNode(&nested, graph, &empty, 1, child));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, 0));
  OK(cudaDeviceSynchronize());
  CHECK(first(a) == 16 && first(b) == 116 && notes == 1);

  int ten = 10;
  void *other_args[] = {&a, &ten};
  k.kernelParams = other_args;
  OK(cudaGraphExecKernelNodeSetParams(exec, plus, &k));
  OK(cudaGraphNodeSetEnabled(exec, times, 0));
  OK(cudaGraphLaunch(exec, 0));
  CHECK(first(b) == 113);
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(nested, &type));
  CHECK(type == cudaGraphNodeTypeGraph);
  cudaKernelNodeParams seen;
  OK(cudaGraphKernelNodeGetParams(times, &seen));
  CHECK(seen.func == (void *)multiply && *(int *)seen.kernelParams[1] == 2);

  // A circle cannot run.
  OK(cudaGraphAddDependencies(graph, &times, &set, nullptr, 1));
  cudaGraphExec_t bad;
  IS(cudaGraphInstantiate(&bad, graph, 0), cudaErrorInvalidValue);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(child));
  OK(cudaGraphDestroy(graph));
  IS(cudaGraphDestroy(graph), cudaErrorInvalidValue);
}

int main() {
  int *a, *b, *c;
  OK(cudaMalloc(&a, 32 * sizeof(int)));
  OK(cudaMalloc(&b, 32 * sizeof(int)));
  OK(cudaMalloc(&c, 32 * sizeof(int)));
  OK(cudaMemset(c, 0, 32 * sizeof(int)));
  capture(a, b, c);
  by_hand(a, b);
  return failures != 0;
}
