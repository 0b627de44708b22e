// Capture of streams into a graph. A stream that waits for an event of a captured one joins the capture.
#include <stdlib.h>
#include <string.h>

#include "shim/shim.h"
#include "shim/shim_graph.h"

bool shim_list_add(ShimNodeList *list, ShimNode *node) {
  for (size_t i = 0; i < list->count; i++)
    if (list->nodes[i] == node) return true;
  if (list->count == list->cap) {
    size_t cap = list->cap ? list->cap * 2 : 4;
    ShimNode **grown = realloc(list->nodes, sizeof *grown * cap);
    if (!grown) return false;
    list->nodes = grown;
    list->cap = cap;
  }
  list->nodes[list->count++] = node;
  return true;
}

void shim_list_free(ShimNodeList *list) {
  free(list->nodes);
  *list = (ShimNodeList){0};
}

bool shim_capturing(void) {
  return shim.streams.captures != NULL;
}

// Every stream of the capture runs its work again; the graph keeps its owner.
static void end_capture(ShimCapture *c) {
  for (ShimCapture **at = &shim.streams.captures; *at; at = &(*at)->next)
    if (*at == c) {
      *at = c->next;
      break;
    }
  size_t i = 0;
  for (ShimStream *s; (s = shim_next(SHIM_STREAM, &i));)
    if (s->capture == c) s->capture = NULL, s->last.count = 0;
  free(c);
}

void shim_capture_lost(const ShimGraph *graph) {
  for (ShimCapture *c = shim.streams.captures; c; c = c->next)
    if (c->graph == graph) c->broken = true, c->graph = NULL;
}

static void list_forget(ShimNodeList *list, const ShimNode *node) {
  size_t kept = 0;
  for (size_t i = 0; i < list->count; i++)
    if (list->nodes[i] != node) list->nodes[kept++] = list->nodes[i];
  list->count = kept;
}

void shim_capture_forget(const ShimNode *node) {
  if (!shim.streams.captures) return;
  size_t i = 0;
  for (ShimStream *s; (s = shim_next(SHIM_STREAM, &i));) list_forget(&s->last, node);
  i = 0;
  for (ShimEvent *e; (e = shim_next(SHIM_EVENT, &i));) list_forget(&e->last, node);
}

static bool all_nodes_of(const ShimGraph *graph, const cudaGraphNode_t *nodes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const ShimNode *n = shim_find(nodes[i], SHIM_NODE);
    if (!n || n->graph != graph) return false;
  }
  return true;
}

void shim_drop_capture(ShimCapture *c) {
  ShimGraph *graph = c->into_graph ? NULL : c->graph;
  end_capture(c);
  if (graph) shim_graph_free(graph);
}

static cudaError_t begin(cudaStream_t handle, ShimGraph *graph, const cudaGraphNode_t *needs, size_t count,
                         enum cudaStreamCaptureMode mode) {
  ShimStream *s = shim_stream(handle);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (s == &shim.streams.legacy) return cudaErrorStreamCaptureUnsupported;
  if (s->capture) return cudaErrorIllegalState;
  if ((unsigned)mode > cudaStreamCaptureModeRelaxed || (count && !needs)) return cudaErrorInvalidValue;
  if (!all_nodes_of(graph, needs, count)) return cudaErrorInvalidValue;
  ShimCapture *c = calloc(1, sizeof *c);
  if (!c) return cudaErrorMemoryAllocation;
  *c = (ShimCapture){
      .next = shim.streams.captures, .origin = s, .into_graph = graph != NULL, .id = ++shim.streams.next_id};
  c->graph = graph ? graph : shim_graph_new();
  if (!c->graph) return free(c), cudaErrorMemoryAllocation;
  shim.streams.captures = c;
  s->capture = c;
  s->last.count = 0;
  for (size_t i = 0; i < count; i++)
    if (!shim_list_add(&s->last, (ShimNode *)(void *)needs[i])) return cudaErrorMemoryAllocation;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  SHIM_CALL(begin(stream, NULL, NULL, 0, mode));
}
SHIM_ALIAS(cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz);

static cudaError_t begin_to_graph(cudaStream_t stream, cudaGraph_t handle, const cudaGraphNode_t *needs,
                                  size_t count, enum cudaStreamCaptureMode mode) {
  ShimGraph *graph = shim_find(handle, SHIM_GRAPH);
  return graph ? begin(stream, graph, needs, count, mode) : cudaErrorInvalidValue;
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *needs, const cudaGraphEdgeData *edges,
                                          size_t count, enum cudaStreamCaptureMode mode) {
  (void)edges;
  SHIM_CALL(begin_to_graph(stream, graph, needs, count, mode));
}
SHIM_ALIAS(cudaStreamBeginCaptureToGraph, cudaStreamBeginCaptureToGraph_ptsz);

// Whether something in the graph, or the origin's end, waits for the node.
static bool joined(const ShimCapture *c, const ShimNode *node) {
  for (size_t i = 0; i < c->origin->last.count; i++)
    if (c->origin->last.nodes[i] == node) return true;
  for (size_t i = 0; i < c->graph->count; i++)
    for (size_t k = 0; k < c->graph->nodes[i]->needs.count; k++)
      if (c->graph->nodes[i]->needs.nodes[k] == node) return true;
  return false;
}

bool shim_joined(const ShimStream *s) {
  if (s->capture->broken) return false;
  for (size_t k = 0; k < s->last.count; k++)
    if (!joined(s->capture, s->last.nodes[k])) return false;
  return true;
}

static bool all_joined(const ShimCapture *c) {
  size_t i = 0;
  for (ShimStream *s; (s = shim_next(SHIM_STREAM, &i));)
    if (s->capture == c && s != c->origin && !shim_joined(s)) return false;
  return true;
}

static cudaError_t finish(cudaStream_t handle, cudaGraph_t *out) {
  ShimStream *s = shim_stream(handle);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (!s->capture) return cudaErrorIllegalState;
  ShimCapture *c = s->capture;
  if (c->origin != s) return c->broken = true, cudaErrorStreamCaptureUnmatched;
  cudaError_t error = c->broken        ? cudaErrorStreamCaptureInvalidated
                      : !all_joined(c) ? cudaErrorStreamCaptureUnjoined
                                       : cudaSuccess;
  if (out) *out = NULL;
  if (error || !out)
    shim_drop_capture(c);
  else {
    *out = (cudaGraph_t)(void *)c->graph;
    end_capture(c);
  }
  return error;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
  SHIM_CALL(finish(stream, out));
}
SHIM_ALIAS(cudaStreamEndCapture, cudaStreamEndCapture_ptsz);

static enum cudaStreamCaptureStatus status_of(const ShimStream *s) {
  if (!s->capture) return cudaStreamCaptureStatusNone;
  return s->capture->broken ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

static cudaError_t capture_status(cudaStream_t handle, enum cudaStreamCaptureStatus *out) {
  ShimStream *s = shim_stream(handle);
  if (!out) return cudaErrorInvalidValue;
  if (!s) return cudaErrorInvalidResourceHandle;
  *out = status_of(s);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *out) {
  SHIM_CALL(capture_status(stream, out));
}
SHIM_ALIAS(cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz);

static cudaError_t capture_info(cudaStream_t handle, enum cudaStreamCaptureStatus *status,
                                unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **last,
                                const cudaGraphEdgeData **edges, size_t *count) {
  ShimStream *s = shim_stream(handle);
  cudaError_t error = capture_status(handle, status);
  if (error) return error;
  bool active = *status == cudaStreamCaptureStatusActive;
  if (id) *id = active ? s->capture->id : 0;
  if (graph) *graph = active ? (cudaGraph_t)(void *)s->capture->graph : NULL;
  if (last) *last = active ? (const cudaGraphNode_t *)(void *)s->last.nodes : NULL;
  if (edges) *edges = NULL;
  if (count) *count = active ? s->last.count : 0;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **last,
                                     const cudaGraphEdgeData **edges, size_t *count) {
  SHIM_CALL(capture_info(stream, status, id, graph, last, edges, count));
}
SHIM_ALIAS(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz);

static cudaError_t update(cudaStream_t handle, cudaGraphNode_t *needs, size_t count, unsigned flags) {
  ShimStream *s = shim_stream(handle);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (!s->capture) return cudaErrorIllegalState;
  if (flags > cudaStreamSetCaptureDependencies || (count && !needs)) return cudaErrorInvalidValue;
  if (s->capture->broken) return cudaErrorStreamCaptureInvalidated;
  if (!all_nodes_of(s->capture->graph, needs, count)) return cudaErrorInvalidValue;
  if (flags == cudaStreamSetCaptureDependencies) s->last.count = 0;
  for (size_t i = 0; i < count; i++)
    if (!shim_list_add(&s->last, (ShimNode *)(void *)needs[i])) return cudaErrorMemoryAllocation;
  return cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *needs,
                                                const cudaGraphEdgeData *edges, size_t count,
                                                unsigned flags) {
  (void)edges;
  SHIM_CALL(update(stream, needs, count, flags));
}
SHIM_ALIAS(cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies_ptsz);

// The mode guards against calls that would wait for captured work; here nothing ever waits.
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  static _Thread_local enum cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
  enum cudaStreamCaptureMode before = current;
  current = *mode;
  *mode = before;
  return cudaSuccess;
}
