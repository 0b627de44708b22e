// Conditional nodes of graphs: IF, WHILE and SWITCH, by a value that kernels set.
#include <stdlib.h>

#include "shim/shim.h"
#include "shim/shim_graph.h"

// A handle names its value, which lives as long as the process: instances of graphs outlive the graphs.
struct ShimConditional {
  unsigned value, first;
  bool assign; // `first`, when a graph is launched
};

static cudaError_t create(cudaGraphConditionalHandle *out, cudaGraph_t graph, unsigned first,
                          unsigned flags) {
  if (!out || !shim_find(graph, SHIM_GRAPH) || flags & ~(unsigned)cudaGraphCondAssignDefault)
    return cudaErrorInvalidValue;
  ShimConditional *c = calloc(1, sizeof *c);
  if (!c || !shim_put(c, SHIM_CONDITIONAL, c)) return free(c), cudaErrorMemoryAllocation;
  *c = (ShimConditional){first, first, flags != 0};
  *out = shim_address(c);
  return cudaSuccess;
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *out, cudaGraph_t graph,
                                             unsigned first, unsigned flags) {
  SHIM_CALL(create(out, graph, first, flags));
}

// Called by a running kernel: the thread that launched it holds the lock.
void shim_set_conditional(void *ctx, uint64_t handle, uint32_t value) {
  (void)ctx;
  ShimConditional *c = shim_find(shim_pointer(handle), SHIM_CONDITIONAL);
  if (c) c->value = value;
  shim.watch.spoke = true;
}

// ---- as work ----

ShimBranches *shim_branches_clone(const ShimBranches *from) {
  ShimBranches *b = calloc(1, sizeof *b + from->count * sizeof b->bodies[0]);
  if (!b) return NULL;
  *b = (ShimBranches){.conditional = from->conditional, .type = from->type};
  for (; b->count < from->count; b->count++) {
    const ShimGraph *body = from->bodies[b->count];
    b->bodies[b->count] = body ? shim_graph_clone(body) : shim_graph_new();
    if (!b->bodies[b->count]) return shim_branches_free(b), NULL;
    b->bodies[b->count]->owned = true;
    b->bodies[b->count]->instance = body != NULL; // the node's own bodies are the program's to fill
  }
  return b;
}

void shim_branches_free(ShimBranches *b) {
  for (unsigned i = 0; b && i < b->count; i++) shim_graph_free(b->bodies[i]);
  free(b);
}

cudaError_t shim_conditional_node(const struct cudaConditionalNodeParams *p, ShimWork *out) {
  *out = (ShimWork){.type = cudaGraphNodeTypeConditional};
  ShimConditional *c = shim_find(shim_pointer(p->handle), SHIM_CONDITIONAL);
  unsigned most = p->type == cudaGraphCondTypeIf ? 2 : p->type == cudaGraphCondTypeWhile ? 1 : 1024;
  if (!c || !p->size || p->size > most || (unsigned)p->type > cudaGraphCondTypeSwitch)
    return cudaErrorInvalidValue;
  out->branches = calloc(1, sizeof *out->branches + p->size * sizeof out->branches->bodies[0]);
  if (!out->branches) return cudaErrorMemoryAllocation;
  *out->branches = (ShimBranches){.conditional = c, .type = p->type, .count = p->size};
  return cudaSuccess;
}

void shim_conditionals_start(const ShimGraph *g) {
  for (size_t i = 0; i < g->count; i++) {
    const ShimBranches *b =
        g->nodes[i]->work.type == cudaGraphNodeTypeConditional ? g->nodes[i]->work.branches : NULL;
    if (b && b->conditional->assign) b->conditional->value = b->conditional->first;
    for (unsigned k = 0; b && k < b->count; k++) shim_conditionals_start(b->bodies[k]);
  }
}

cudaError_t shim_run_branches(ShimStream *s, const ShimBranches *b) {
  unsigned value = b->conditional->value;
  if (b->type == cudaGraphCondTypeSwitch)
    return value < b->count ? shim_graph_run(s, b->bodies[value]) : cudaSuccess;
  if (b->type == cudaGraphCondTypeIf) {
    if (value) return shim_graph_run(s, b->bodies[0]);
    return b->count > 1 ? shim_graph_run(s, b->bodies[1]) : cudaSuccess;
  }
  cudaError_t error = cudaSuccess;
  while (b->conditional->value && !error && !shim.fault) error = shim_graph_run(s, b->bodies[0]);
  return error;
}
