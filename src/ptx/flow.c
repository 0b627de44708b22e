// A function's basic blocks, and where the lanes of a warp reconverge after each branch: the nearest block
// that every way out of the branch passes through (its immediate post-dominator).
//
// exit, trap and calls of functions that do not return end a thread. They do not count as ways out while
// there are others, for lanes that have ended need not be waited for: after `if (bad) trap` all others reconverge
// again right behind it. In a kernel that holds for a guarded `ret` too. Endless loops count as left at their
// last block.
#include "base/heap.h"
#include "ptx/dominators.h"
#include "ptx/internal.h"

typedef struct Edge {
  uint32_t from, to;
  bool ends; // into the end by ending the thread
} Edge;

typedef struct Flow {
  Parser *p;
  Func *f;
  PtxBlock *blocks;
  uint32_t *block_of; // by instruction, of leaders; by [inst_count] the end
  uint32_t block_count, end, nodes;
  Vec edges; // Edge
  // Nodes: blocks, then one per branch table, then the end.
  uint32_t *first, *to, *back_first, *back_to, *queue, *dominator;
  bool *live, *reaches;
} Flow;

// ---- blocks ----

typedef enum Ending { GOES_ON, BRANCHES, JUMPS_BY_TABLE, RETURNS, ENDS_THREAD } Ending;

static Ending ending(const Flow *w, const PtxInst *inst) {
  const PtxFunction *f = &w->f->pub;
  switch (inst->code->op) {
  case PTX_OP_BRA: return BRANCHES;
  case PTX_OP_BRX: return JUMPS_BY_TABLE;
  case PTX_OP_RET: return f->entry && inst->guard != PTX_NONE ? ENDS_THREAD : RETURNS;
  case PTX_OP_EXIT:
  case PTX_OP_TRAP: return ENDS_THREAD;
  case PTX_OP_CALL: {
    const PtxOperand *callee = &inst->operands[0];
    bool noreturn = callee->kind == PTX_ARG_FUNC ? VEC_AT(&w->p->functions, Func, callee->index)->pub.noreturn
                                                 : f->prototypes[inst->prototype].noreturn;
    return noreturn ? ENDS_THREAD : GOES_ON;
  }
  default: return GOES_ON;
  }
}

static void mark_leader(Flow *w, uint32_t inst) {
  if (inst < w->f->pub.inst_count) w->f->insts[inst].leader = true;
}

static void mark_leaders(Flow *w) {
  const PtxFunction *f = &w->f->pub;
  mark_leader(w, 0);
  for (uint32_t i = 0; i < f->inst_count; i++) {
    Ending e = ending(w, &w->f->insts[i]);
    if (e != GOES_ON) mark_leader(w, i + 1);
    if (e == BRANCHES) mark_leader(w, w->f->insts[i].operands[0].index);
  }
  for (uint32_t i = 0; i < f->table_count; i++)
    for (uint32_t k = 0; k < f->tables[i].count; k++) mark_leader(w, f->tables[i].targets[k]);
}

static bool make_blocks(Flow *w) {
  const PtxFunction *f = &w->f->pub;
  for (uint32_t i = 0; i < f->inst_count; i++) w->block_count += w->f->insts[i].leader;
  w->blocks = sol_arena_alloc(w->p->keep, w->block_count * sizeof *w->blocks);
  w->block_of = sol_heap_alloc(((size_t)f->inst_count + 1) * sizeof *w->block_of);
  if (!w->blocks || !w->block_of) return sol_ptx_fail_memory(w->p);
  uint32_t block = 0;
  for (uint32_t i = 0; i < f->inst_count; i++) {
    if (w->f->insts[i].leader)
      w->blocks[block++] =
          (PtxBlock){.first = i, .next = {PTX_NONE, PTX_NONE}, .table = PTX_NONE, .post_dominator = PTX_NONE};
    w->blocks[block - 1].count++;
    w->block_of[i] = block - 1;
  }
  w->end = w->block_count + f->table_count;
  w->nodes = w->end + 1;
  w->block_of[f->inst_count] = w->end;
  return true;
}

// ---- edges ----

static bool add_edge(Flow *w, uint32_t from, uint32_t to, bool ends) {
  Edge *e = sol_ptx_vec_add(&w->edges, sizeof *e);
  if (!e) return sol_ptx_fail_memory(w->p);
  *e = (Edge){from, to, ends};
  return true;
}

static uint32_t as_block(const Flow *w, uint32_t node) {
  return node < w->block_count ? node : PTX_NONE;
}

static bool add_block_edges(Flow *w, uint32_t b) {
  PtxBlock *block = &w->blocks[b];
  uint32_t last = block->first + block->count - 1;
  const PtxInst *inst = &w->f->insts[last];
  Ending e = ending(w, inst);
  if (e == GOES_ON || inst->guard != PTX_NONE) {
    uint32_t next = w->block_of[last + 1];
    block->next[0] = as_block(w, next);
    if (!add_edge(w, b, next, false)) return false;
  }
  switch (e) {
  case GOES_ON: return true;
  case BRANCHES: {
    uint32_t target = w->block_of[inst->operands[0].index];
    block->next[1] = as_block(w, target);
    return add_edge(w, b, target, false);
  }
  case JUMPS_BY_TABLE:
    block->table = inst->operands[1].index;
    return add_edge(w, b, w->block_count + block->table, false);
  case RETURNS: return add_edge(w, b, w->end, false);
  default: return add_edge(w, b, w->end, true);
  }
}

static bool add_edges(Flow *w) {
  const PtxFunction *f = &w->f->pub;
  for (uint32_t b = 0; b < w->block_count; b++)
    if (!add_block_edges(w, b)) return false;
  for (uint32_t i = 0; i < f->table_count; i++)
    for (uint32_t k = 0; k < f->tables[i].count; k++)
      if (!add_edge(w, w->block_count + i, w->block_of[f->tables[i].targets[k]], false)) return false;
  return true;
}

// Sorts the edges by where they start, and by where they go.
static bool index_edges(Flow *w) {
  sol_heap_free(w->first);
  size_t n = w->nodes, m = w->edges.count;
  w->first = sol_heap_alloc((2 * (n + 2) + 2 * m + 1) * sizeof *w->first);
  if (!w->first) return sol_ptx_fail_memory(w->p), false;
  w->back_first = w->first + n + 2;
  w->to = w->back_first + n + 2;
  w->back_to = w->to + m;
  memset(w->first, 0, 2 * (n + 2) * sizeof *w->first);
  const Edge *edges = w->edges.data;
  for (size_t i = 0; i < m; i++) w->first[edges[i].from + 2]++, w->back_first[edges[i].to + 2]++;
  for (size_t i = 2; i < n + 2; i++) w->first[i] += w->first[i - 1], w->back_first[i] += w->back_first[i - 1];
  for (size_t i = 0; i < m; i++)
    w->to[w->first[edges[i].from + 1]++] = edges[i].to,
                                   w->back_to[w->back_first[edges[i].to + 1]++] = edges[i].from;
  return true;
}

static void keep_edges(Flow *w, bool (*wanted)(const Flow *, const Edge *)) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < w->edges.count; i++) {
    const Edge *e = VEC_AT(&w->edges, Edge, i);
    if (wanted(w, e)) *VEC_AT(&w->edges, Edge, kept++) = *e;
  }
  w->edges.count = kept;
}

// ---- what leads to the end ----

// Adds to `set` all nodes from which `node` can be reached.
static void spread(Flow *w, bool *set, uint32_t node) {
  uint32_t queued = 0;
  set[node] = true;
  w->queue[queued++] = node;
  for (uint32_t i = 0; i < queued; i++)
    for (uint32_t k = w->back_first[w->queue[i]]; k < w->back_first[w->queue[i] + 1]; k++) {
      uint32_t from = w->back_to[k];
      if (set[from]) continue;
      set[from] = true;
      w->queue[queued++] = from;
    }
}

static bool does_not_end(const Flow *w, const Edge *e) {
  (void)w;
  return !e->ends;
}

// A node with a way on that returns keeps only such ways.
static bool leads_to_return(const Flow *w, const Edge *e) {
  return !w->live[e->from] || (w->live[e->to] && !e->ends);
}

static bool drop_dead_ends(Flow *w) {
  Vec all = w->edges;
  w->edges = (Vec){0};
  for (uint32_t i = 0; i < all.count; i++) {
    const Edge *e = VEC_AT(&all, Edge, i);
    if (does_not_end(w, e) && !add_edge(w, e->from, e->to, false)) return sol_ptx_vec_free(&all), false;
  }
  bool ok = index_edges(w);
  if (ok) spread(w, w->live, w->end);
  sol_ptx_vec_free(&w->edges);
  w->edges = all;
  if (!ok) return false;
  keep_edges(w, leads_to_return);
  return true;
}

// Where nothing leads to the end there is an endless loop: its last block is taken to be left.
static bool open_endless_loops(Flow *w) {
  if (!index_edges(w)) return false;
  spread(w, w->reaches, w->end);
  bool added = false;
  for (uint32_t i = w->end; i-- > 0;) {
    if (w->reaches[i]) continue;
    spread(w, w->reaches, i);
    if (!add_edge(w, i, w->end, true)) return false;
    added = true;
  }
  return !added || index_edges(w);
}

// ---- results ----

static uint32_t reconvergence_point(const Flow *w, uint32_t node) {
  do node = w->dominator[node];
  while (node != PTX_NONE && node >= w->block_count && node != w->end);
  return node >= w->block_count ? PTX_NONE : node;
}

static void note_results(Flow *w) {
  PtxFunction *f = &w->f->pub;
  for (uint32_t b = 0; b < w->block_count; b++) {
    PtxBlock *block = &w->blocks[b];
    block->post_dominator = reconvergence_point(w, b);
    PtxInst *inst = &w->f->insts[block->first + block->count - 1];
    Ending e = ending(w, inst);
    if (e != BRANCHES && e != JUMPS_BY_TABLE) continue;
    inst->reconverge =
        block->post_dominator == PTX_NONE ? f->inst_count : w->blocks[block->post_dominator].first;
    inst->diverges = e == JUMPS_BY_TABLE || inst->guard != PTX_NONE;
  }
  f->blocks = w->blocks;
  f->block_count = w->block_count;
}

static bool find_flow(Flow *w) {
  mark_leaders(w);
  if (!make_blocks(w) || !add_edges(w)) return false;
  w->queue = sol_heap_alloc((size_t)w->nodes * 2 * sizeof *w->queue);
  w->live = sol_heap_alloc((size_t)w->nodes * 2);
  if (!w->queue || !w->live) return sol_ptx_fail_memory(w->p);
  w->dominator = w->queue + w->nodes;
  w->reaches = w->live + w->nodes;
  memset(w->live, 0, (size_t)w->nodes * 2);
  if (!drop_dead_ends(w) || !open_endless_loops(w)) return false;
  Edges forward = {w->first, w->to}, back = {w->back_first, w->back_to};
  if (!sol_ptx_dominators(w->nodes, w->end, back, forward, w->dominator)) return sol_ptx_fail_memory(w->p);
  note_results(w);
  return true;
}

bool sol_ptx_flow(Parser *p, Func *f) {
  if (!f->pub.defined) return true;
  Flow w = {.p = p, .f = f};
  bool ok = find_flow(&w);
  sol_heap_free(w.block_of);
  sol_heap_free(w.first);
  sol_heap_free(w.queue);
  sol_heap_free(w.live);
  sol_ptx_vec_free(&w.edges);
  return ok;
}
