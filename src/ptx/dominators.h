// Immediate dominators of a directed graph, in near-linear time (Lengauer and Tarjan).
#ifndef SOL_PTX_DOMINATORS_H
#define SOL_PTX_DOMINATORS_H

#include "base/port.h"

typedef struct Edges { // of node i: to[first[i]] up to to[first[i + 1]]
  const uint32_t *first, *to;
} Edges;

// `out` receives each node's immediate dominator on the ways from `root`; UINT32_MAX for the root and for
// what it does not reach. False: out of memory.
bool sol_ptx_dominators(uint32_t nodes, uint32_t root, Edges successors, Edges predecessors, uint32_t *out);

#endif
