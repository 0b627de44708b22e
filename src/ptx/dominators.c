#include "ptx/dominators.h"

#include "base/heap.h"

// Nodes are numbered in the order of a depth-first walk; everything but `number` goes by those numbers.
typedef struct Tree {
  uint32_t *number; // of a node, plus one; 0: not reached
  uint32_t *node, *parent, *semi, *ancestor, *label, *dominator, *bucket, *bucket_next, *stack;
  uint32_t count;
} Tree;

enum { ARRAYS = 10, NONE = 0xffffffffu };

static void walk(Tree *t, uint32_t root, Edges next, uint32_t *at) {
  uint32_t depth = 0;
  t->stack[depth++] = root;
  t->number[root] = ++t->count;
  t->node[0] = root;
  t->parent[0] = NONE;
  at[0] = next.first[root];
  while (depth) {
    uint32_t from = t->stack[depth - 1], number = t->number[from] - 1;
    if (at[number] == next.first[from + 1]) {
      depth--;
      continue;
    }
    uint32_t to = next.to[at[number]++];
    if (t->number[to]) continue;
    t->node[t->count] = to;
    t->parent[t->count] = number;
    at[t->count] = next.first[to];
    t->number[to] = ++t->count;
    t->stack[depth++] = to;
  }
}

// The node with the least semidominator on the way up to the forest's root, shortening the way.
static uint32_t evaluate(Tree *t, uint32_t v) {
  if (t->ancestor[v] == NONE) return t->label[v];
  uint32_t depth = 0;
  for (uint32_t u = v; t->ancestor[t->ancestor[u]] != NONE; u = t->ancestor[u]) t->stack[depth++] = u;
  while (depth) {
    uint32_t u = t->stack[--depth], above = t->ancestor[u];
    if (t->semi[t->label[above]] < t->semi[t->label[u]]) t->label[u] = t->label[above];
    t->ancestor[u] = t->ancestor[above];
  }
  return t->label[v];
}

static void empty_bucket(Tree *t, uint32_t parent) {
  for (uint32_t v = t->bucket[parent]; v != NONE; v = t->bucket_next[v]) {
    uint32_t u = evaluate(t, v);
    t->dominator[v] = t->semi[u] < t->semi[v] ? u : parent;
  }
  t->bucket[parent] = NONE;
}

static void compute_dominators(Tree *t, Edges back) {
  for (uint32_t i = 0; i < t->count; i++) {
    t->semi[i] = t->label[i] = i;
    t->ancestor[i] = t->bucket[i] = t->dominator[i] = NONE;
  }
  for (uint32_t w = t->count; w-- > 1;) {
    uint32_t node = t->node[w];
    for (uint32_t i = back.first[node]; i < back.first[node + 1]; i++) {
      if (!t->number[back.to[i]]) continue;
      uint32_t u = evaluate(t, t->number[back.to[i]] - 1);
      if (t->semi[u] < t->semi[w]) t->semi[w] = t->semi[u];
    }
    t->bucket_next[w] = t->bucket[t->semi[w]];
    t->bucket[t->semi[w]] = w;
    t->ancestor[w] = t->parent[w];
    empty_bucket(t, t->parent[w]);
  }
  for (uint32_t w = 1; w < t->count; w++)
    if (t->dominator[w] != t->semi[w]) t->dominator[w] = t->dominator[t->dominator[w]];
}

bool sol_ptx_dominators(uint32_t nodes, uint32_t root, Edges successors, Edges predecessors, uint32_t *out) {
  uint32_t *room = sol_heap_alloc((size_t)nodes * ARRAYS * sizeof *room);
  if (!room) return false;
  uint32_t *array[ARRAYS];
  for (int i = 0; i < ARRAYS; i++) array[i] = room + (size_t)i * nodes;
  Tree t = {array[0], array[1], array[2], array[3], array[4], array[5],
            array[6], array[7], array[8], array[9], 0};
  memset(t.number, 0, nodes * sizeof *t.number);
  walk(&t, root, successors, t.semi); // `semi` is free until compute_dominators
  compute_dominators(&t, predecessors);
  for (uint32_t i = 0; i < nodes; i++) {
    uint32_t dominator = t.number[i] > 1 ? t.dominator[t.number[i] - 1] : NONE;
    out[i] = dominator == NONE ? NONE : t.node[dominator];
  }
  sol_heap_free(room);
  return true;
}
