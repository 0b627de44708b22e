// Graphs and their nodes.
#ifndef SOL_SHIM_GRAPH_H
#define SOL_SHIM_GRAPH_H

#include "shim/shim_work.h"

struct ShimNode {
  ShimGraph *graph;
  ShimWork work;
  ShimNodeList needs; // nodes before it
  ShimNode *original; // in a clone: of which it is one
  bool disabled;      // in an instance
  size_t order, mark;
};
struct ShimGraph {
  ShimNode **nodes; // in order of making
  size_t count, cap;
  bool instantiated;
  bool instance;    // a clone: memory that its nodes allocate is the original's
  bool owned;       // by an instance or a node, and freed with it
  unsigned running; // launches of it that are running: a host function among its nodes may destroy it
  bool destroyed;   // freed when none is
  struct ShimUserRef *user_objects;
};
ShimGraph *shim_graph_new(void);
void shim_user_objects_release(ShimGraph *graph);
void shim_graph_free(ShimGraph *graph); // at once, or when its last running launch has ended
void shim_graph_free_memory(const ShimGraph *graph);
ShimGraph *shim_graph_clone(const ShimGraph *graph);
cudaError_t shim_graph_add(ShimGraph *graph, ShimNode *const *needs, size_t count, const ShimWork *work,
                           ShimNode **out);
void shim_conditionals_start(const ShimGraph *graph); // conditional.c: values that a launch begins with
cudaError_t shim_graph_run(ShimStream *stream, ShimGraph *graph);
cudaError_t shim_graph_order(ShimGraph *graph, ShimNode ***out); // sorted, count of the graph; free() it

#endif
