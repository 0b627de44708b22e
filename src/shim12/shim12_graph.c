// Graphs and captures, of which CUDA 13 took the versions with data on edges.
#include "shim12/shim12.h"

OF13(cudaGraphAddDependencies);
ENTRY12(cudaGraphAddDependencies, cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
        size_t count) {
  return of13_cudaGraphAddDependencies(graph, from, to, NULL, count);
}
ENTRY12(cudaGraphAddDependencies_v2, cudaGraph_t graph, const cudaGraphNode_t *from,
        const cudaGraphNode_t *to, const cudaGraphEdgeData *edges, size_t count) {
  return of13_cudaGraphAddDependencies(graph, from, to, edges, count);
}

OF13(cudaGraphRemoveDependencies);
ENTRY12(cudaGraphRemoveDependencies, cudaGraph_t graph, const cudaGraphNode_t *from,
        const cudaGraphNode_t *to, size_t count) {
  return of13_cudaGraphRemoveDependencies(graph, from, to, NULL, count);
}
ENTRY12(cudaGraphRemoveDependencies_v2, cudaGraph_t graph, const cudaGraphNode_t *from,
        const cudaGraphNode_t *to, const cudaGraphEdgeData *edges, size_t count) {
  return of13_cudaGraphRemoveDependencies(graph, from, to, edges, count);
}

OF13(cudaGraphAddNode);
ENTRY12(cudaGraphAddNode, cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs, size_t count,
        struct cudaGraphNodeParams *params) {
  return of13_cudaGraphAddNode(out, graph, needs, NULL, count, params);
}
ENTRY12(cudaGraphAddNode_v2, cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *needs,
        const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *params) {
  return of13_cudaGraphAddNode(out, graph, needs, edges, count, params);
}

OF13(cudaGraphGetEdges);
ENTRY12(cudaGraphGetEdges, cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count) {
  return of13_cudaGraphGetEdges(graph, from, to, NULL, count);
}
ENTRY12(cudaGraphGetEdges_v2, cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
        cudaGraphEdgeData *edges, size_t *count) {
  return of13_cudaGraphGetEdges(graph, from, to, edges, count);
}

OF13(cudaGraphNodeGetDependencies);
ENTRY12(cudaGraphNodeGetDependencies, cudaGraphNode_t node, cudaGraphNode_t *out, size_t *count) {
  return of13_cudaGraphNodeGetDependencies(node, out, NULL, count);
}
ENTRY12(cudaGraphNodeGetDependencies_v2, cudaGraphNode_t node, cudaGraphNode_t *out, cudaGraphEdgeData *edges,
        size_t *count) {
  return of13_cudaGraphNodeGetDependencies(node, out, edges, count);
}

OF13(cudaGraphNodeGetDependentNodes);
ENTRY12(cudaGraphNodeGetDependentNodes, cudaGraphNode_t node, cudaGraphNode_t *out, size_t *count) {
  return of13_cudaGraphNodeGetDependentNodes(node, out, NULL, count);
}
ENTRY12(cudaGraphNodeGetDependentNodes_v2, cudaGraphNode_t node, cudaGraphNode_t *out,
        cudaGraphEdgeData *edges, size_t *count) {
  return of13_cudaGraphNodeGetDependentNodes(node, out, edges, count);
}

// The header of CUDA 12 renames cudaStreamGetCaptureInfo to the second version.
OF13(cudaStreamGetCaptureInfo);
#define CAPTURE12(suffix)                                                                                    \
  ENTRY12(cudaStreamGetCaptureInfo##suffix, cudaStream_t stream, enum cudaStreamCaptureStatus *status,       \
          unsigned long long *id) {                                                                          \
    return of13_cudaStreamGetCaptureInfo(stream, status, id, NULL, NULL, NULL, NULL);                        \
  }                                                                                                          \
  ENTRY12(cudaStreamGetCaptureInfo_v2##suffix, cudaStream_t stream, enum cudaStreamCaptureStatus *status,    \
          unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count) {        \
    return of13_cudaStreamGetCaptureInfo(stream, status, id, graph, nodes, NULL, count);                     \
  }                                                                                                          \
  ENTRY12(cudaStreamGetCaptureInfo_v3##suffix, cudaStream_t stream, enum cudaStreamCaptureStatus *status,    \
          unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,                         \
          const cudaGraphEdgeData **edges, size_t *count) {                                                  \
    return of13_cudaStreamGetCaptureInfo(stream, status, id, graph, nodes, edges, count);                    \
  }
CAPTURE12()
CAPTURE12(_ptsz)

OF13(cudaStreamUpdateCaptureDependencies);
#define UPDATE12(suffix)                                                                                     \
  ENTRY12(cudaStreamUpdateCaptureDependencies##suffix, cudaStream_t stream, cudaGraphNode_t *nodes,          \
          size_t count, unsigned flags) {                                                                    \
    return of13_cudaStreamUpdateCaptureDependencies(stream, nodes, NULL, count, flags);                      \
  }                                                                                                          \
  ENTRY12(cudaStreamUpdateCaptureDependencies_v2##suffix, cudaStream_t stream, cudaGraphNode_t *nodes,       \
          const cudaGraphEdgeData *edges, size_t count, unsigned flags) {                                    \
    return of13_cudaStreamUpdateCaptureDependencies(stream, nodes, edges, count, flags);                     \
  }
UPDATE12()
UPDATE12(_ptsz)
