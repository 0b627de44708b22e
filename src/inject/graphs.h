// CUDA graphs, kernel by kernel. CUPTI counts nothing of what a graph launches. So a copy is kept of every
// instantiated graph (CUgraphExec) and updated with it. While kernels of it are still to be counted, its
// nodes are launched one by one in place of the graph, and the program's own launch is given an empty graph.
#ifndef SOL_INJECT_GRAPHS_H
#define SOL_INJECT_GRAPHS_H

#include "base/port.h"

// The driver's ABI, as far as it is used; tests/test_cupti.sh compares it with the real headers.
enum {
  GRAPH_KERNEL = 0,
  GRAPH_COPY = 1,
  GRAPH_SET = 2,
  GRAPH_HOST = 3,
  GRAPH_CHILD = 4,
  GRAPH_EMPTY = 5,
  GRAPH_WAIT = 6,
  GRAPH_RECORD = 7,
  GRAPH_ALLOCATE = 10,
  GRAPH_FREE = 11,
  GRAPH_CONDITIONAL = 13,
  GRAPH_DEVICE_LAUNCH = 4 // flag of an instantiation
};
typedef struct GraphKernel { // CUDA_KERNEL_NODE_PARAMS_v2
  void *function;
  unsigned grid[3], block[3], shared;
  void **parameters, **extra;
  void *kernel, *context; // where `function` is NULL
} GraphKernel;
typedef struct GraphSet { // CUDA_MEMSET_NODE_PARAMS
  uint64_t to;
  size_t pitch;
  unsigned value, element; // bytes: 1, 2, 4
  size_t width, height;
} GraphSet;
typedef struct GraphHost { // CUDA_HOST_NODE_PARAMS
  void (*function)(void *);
  void *user;
} GraphHost;
typedef struct GraphCopy { // CUDA_MEMCPY3D
  uint64_t room[25];
} GraphCopy;
typedef struct GraphEdge { // CUgraphEdgeData
  unsigned char room[8];
} GraphEdge;

typedef struct GraphStep {
  void *node; // of the copy
  int kind;
} GraphStep;

typedef struct InjectGraph {
  void *exec, *copy; // copy: NULL where the driver cannot clone it
  void *context;     // where it was launched last
  GraphStep *steps;  // its nodes, in an order that its edges allow; child graphs in the place of their node
  size_t count;
  bool planned, done; // done: enough of all its kernels was counted
  bool changed;       // in a way that the copy does not follow
  const char *why;    // it is launched whole, since it has "..."; NULL: it is not
} InjectGraph;

// The driver's functions, as INJECT_DRIVER has them: those that are needed, and those that only
// newer drivers have.
#define GRAPH_DRIVER(X)                                                                                      \
  X(graph_create, "cuGraphCreate", (void **, unsigned))                                                      \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", (void **, void *, unsigned long long))                 \
  X(graph_clone, "cuGraphClone", (void **, void *))                                                          \
  X(graph_destroy, "cuGraphDestroy", (void *))                                                               \
  X(graph_nodes, "cuGraphGetNodes", (void *, void **, size_t *))                                             \
  X(node_type, "cuGraphNodeGetType", (void *, int *))                                                        \
  X(node_in_clone, "cuGraphNodeFindInClone", (void **, void *, void *))                                      \
  X(node_kernel, "cuGraphKernelNodeGetParams_v2", (void *, GraphKernel *))                                   \
  X(node_copy, "cuGraphMemcpyNodeGetParams", (void *, GraphCopy *))                                          \
  X(node_memset, "cuGraphMemsetNodeGetParams", (void *, GraphSet *))                                         \
  X(node_host, "cuGraphHostNodeGetParams", (void *, GraphHost *))                                            \
  X(node_child, "cuGraphChildGraphNodeGetGraph", (void *, void **))                                          \
  X(node_record, "cuGraphEventRecordNodeGetEvent", (void *, void **))                                        \
  X(node_wait, "cuGraphEventWaitNodeGetEvent", (void *, void **))                                            \
  X(change_kernel, "cuGraphKernelNodeSetParams_v2", (void *, const void *))                                  \
  X(change_kernel_old, "cuGraphKernelNodeSetParams", (void *, const void *))                                 \
  X(change_copy, "cuGraphMemcpyNodeSetParams", (void *, const void *))                                       \
  X(change_memset, "cuGraphMemsetNodeSetParams", (void *, const void *))                                     \
  X(change_host, "cuGraphHostNodeSetParams", (void *, const void *))                                         \
  X(launch, "cuLaunchKernelEx", (const struct CuLaunchConfig *, void *, void **, void **))                   \
  X(copy, "cuMemcpy3DAsync_v2", (const GraphCopy *, void *))                                                 \
  X(memset8, "cuMemsetD2D8Async", (uint64_t, size_t, unsigned char, size_t, size_t, void *))                 \
  X(memset16, "cuMemsetD2D16Async", (uint64_t, size_t, unsigned short, size_t, size_t, void *))              \
  X(memset32, "cuMemsetD2D32Async", (uint64_t, size_t, unsigned, size_t, size_t, void *))                    \
  X(host_function, "cuLaunchHostFunc", (void *, void (*)(void *), void *))                                   \
  X(event_record, "cuEventRecord", (void *, void *))                                                         \
  X(stream_wait, "cuStreamWaitEvent", (void *, void *, unsigned))                                            \
  X(node_add_host, "cuGraphAddHostNode", (void **, void *, void *const *, size_t, const GraphHost *))        \
  X(graph_launch, "cuGraphLaunch", (void *, void *))                                                         \
  X(graph_exec_destroy, "cuGraphExecDestroy", (void *))                                                      \
  X(stream_create, "cuStreamCreate", (void **, unsigned))                                                    \
  X(stream_sync, "cuStreamSynchronize", (void *))                                                            \
  X(stream_destroy, "cuStreamDestroy_v2", (void *))
#define GRAPH_DRIVER_MORE(X)                                                                                 \
  X(graph_edges, "cuGraphGetEdges_v2", (void *, void **, void **, GraphEdge *, size_t *))                    \
  X(graph_edges_old, "cuGraphGetEdges", (void *, void **, void **, size_t *))                                \
  X(node_attribute, "cuGraphKernelNodeGetAttribute", (void *, int, void *))                                  \
  X(change_any, "cuGraphNodeSetParams", (void *, const void *))                                              \
  X(function_name, "cuFuncGetName", (const char **, void *))                                                 \
  X(kernel_name, "cuKernelGetName", (const char **, void *))

struct CuLaunchConfig;
struct Inject;
struct CuptiCall;
// After a call of the driver that makes, changes or drops a CUgraphExec.
void inject_graph_call(struct Inject *in, uint32_t id, const struct CuptiCall *call);
// For a launch on that context; NULL: its instantiation was not observed. Its steps are filled in, unless
// there is a `why`.
InjectGraph *inject_graph_find(struct Inject *in, void *exec, void *context);
// graph_plan.c: its steps, or why there are none.
void inject_graph_plan(const struct Inject *in, InjectGraph *graph);
// One node, and waits for nothing. 0, or the driver's error.
int inject_graph_step(struct Inject *in, const GraphStep *step, void *stream);
int inject_graph_kernel(struct Inject *in, const GraphStep *step, const GraphKernel *kernel, void *stream);
// An empty graph of the current context, made once and kept in *nothing; NULL: not possible, or this driver
// would launch the program's own all the same.
void *inject_graph_nothing(struct Inject *in, void **nothing);
// First of all in a callback: true where the call is one of inject_graph_nothing's own.
bool inject_graph_checking(uint32_t id, const struct CuptiCall *call);

#endif
