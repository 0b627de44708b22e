// Conditional nodes of graphs: IF with and without an else, WHILE, SWITCH; values that kernels set.
#include <cstdio>

__global__ void add(int *x, int by) { *x += by; }
__global__ void count_down(cudaGraphConditionalHandle h, int *x) { cudaGraphSetConditional(h, --*x > 0); }
__global__ void choose(cudaGraphConditionalHandle h, const int *x) { cudaGraphSetConditional(h, (unsigned)*x); }

static int wrong;
static void check(cudaError_t error, const char *what) {
  if (error) wrong++, printf("%s: %s\n", what, cudaGetErrorString(error));
}
#define OK(call) check(call, #call)

static cudaGraphNode_t kernel_node(cudaGraph_t graph, cudaGraphNode_t after, void *function, void **args) {
  cudaGraphNode_t node;
  cudaKernelNodeParams p = {};
  p.func = function, p.gridDim = dim3(1), p.blockDim = dim3(1), p.kernelParams = args;
  OK(cudaGraphAddKernelNode(&node, graph, after ? &after : nullptr, after ? 1 : 0, &p));
  return node;
}

static cudaGraphNode_t conditional(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphConditionalHandle h,
                                   cudaGraphConditionalNodeType type, unsigned size, cudaGraph_t *bodies) {
  cudaGraphNode_t node;
  cudaGraphNodeParams p = {};
  p.type = cudaGraphNodeTypeConditional;
  p.conditional.handle = h, p.conditional.type = type, p.conditional.size = size;
  OK(cudaGraphAddNode(&node, graph, after ? &after : nullptr, nullptr, after ? 1 : 0, &p));
  for (unsigned i = 0; i < size; i++) bodies[i] = p.conditional.phGraph_out[i];
  return node;
}

static void run(cudaGraph_t graph, int times) {
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph)); // the instance keeps all it needs
  for (int i = 0; i < times; i++) OK(cudaGraphLaunch(exec, 0));
  OK(cudaDeviceSynchronize());
  OK(cudaGraphExecDestroy(exec));
}

int main() {
  int *x, one = 1, ten = 10, hundred = 100;
  cudaMallocManaged(&x, 4 * sizeof(int));
  for (int i = 0; i < 4; i++) x[i] = 0;
  int *sum = x, *left = x + 1, *which = x + 2, *last = x + 3;
  cudaGraph_t graph, bodies[3];
  cudaGraphConditionalHandle h;

  *left = 5; // the loop's body counts it down, and adds
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphConditionalHandleCreate(&h, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNode_t loop = conditional(graph, nullptr, h, cudaGraphCondTypeWhile, 1, bodies);
  void *counting[] = {&h, &left}, *adding[] = {&sum, &one}, *ending[] = {&last, &ten};
  cudaGraphNode_t counted = kernel_node(bodies[0], nullptr, (void *)count_down, counting);
  kernel_node(bodies[0], counted, (void *)add, adding);
  kernel_node(graph, loop, (void *)add, ending);
  run(graph, 2); // the default value starts the loop again: its body runs once more
  if (*sum != 6 || *left != -1 || *last != 20) wrong++, printf("while: %d %d %d\n", *sum, *left, *last);

  *sum = 0;
  for (int value = 0; value < 4; value++) { // of three branches: 3 is none
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphConditionalHandleCreate(&h, graph));
    *which = value;
    void *choosing[] = {&h, &which}, *by[3][2] = {{&sum, &one}, {&sum, &ten}, {&sum, &hundred}};
    cudaGraphNode_t chosen = kernel_node(graph, nullptr, (void *)choose, choosing);
    conditional(graph, chosen, h, cudaGraphCondTypeSwitch, 3, bodies);
    for (int i = 0; i < 3; i++) kernel_node(bodies[i], nullptr, (void *)add, by[i]);
    run(graph, 1);
  }
  if (*sum != 111) wrong++, printf("switch: %d\n", *sum);

  *sum = 0;
  for (unsigned value = 0; value < 2; value++) {
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphConditionalHandleCreate(&h, graph, value, cudaGraphCondAssignDefault));
    void *then[] = {&sum, &one}, *otherwise[] = {&sum, &ten};
    conditional(graph, nullptr, h, cudaGraphCondTypeIf, 2, bodies);
    kernel_node(bodies[0], nullptr, (void *)add, then), kernel_node(bodies[1], nullptr, (void *)add, otherwise);
    run(graph, 1);
  }
  if (*sum != 11) wrong++, printf("if: %d\n", *sum);
  cudaGraphNodeParams bad = {};
  bad.type = cudaGraphNodeTypeConditional, bad.conditional.size = 1; // no handle
  cudaGraphNode_t node;
  OK(cudaGraphCreate(&graph, 0));
  if (cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &bad) != cudaErrorInvalidValue) wrong++, printf("no handle\n");
  return wrong;
}
