// Predication by ptxas: it replaces a branch over a few instructions that only compute and access memory by
// predicates on them. The code becomes one basic block, in which later loads can be issued earlier. See
// EmuGuarded.
#include "emu/watch/observe.h"

static void count_way(const PtxFunction *fn, uint32_t to, uint8_t *ways) {
  if (to < fn->block_count && ways[to] < 3) ways[to]++;
}

// To each block, as far as three; twice from a branch to what follows it anyway.
static void count_ways(const PtxFunction *fn, uint8_t *ways) {
  for (uint32_t n = 0; n < fn->block_count; n++) {
    const PtxBlock *b = &fn->blocks[n];
    for (int k = 0; k < 2; k++) count_way(fn, b->next[k], ways);
    for (uint32_t t = 0; b->table != PTX_NONE && t < fn->tables[b->table].count; t++) {
      uint32_t to = fn->tables[b->table].targets[t];
      if (to < fn->inst_count) count_way(fn, emu_block_at(fn, to), ways);
    }
  }
}

static bool is_plain(const PtxInst *in) {
  if (in->code->op == PTX_OP_ATOM || in->code->op == PTX_OP_RED) return false; // these stay behind branches
  switch (sol_emu_class(in)) {
  case SOL_EMU_CLASS_TENSOR:
  case SOL_EMU_CLASS_WARP:
  case SOL_EMU_CLASS_BARRIER:
  case SOL_EMU_CLASS_CONTROL: return false;
  default: return true;
  }
}

// Block n ends in a branch around the next, which nothing else leads to, to the one after that.
static bool is_short_branch(const SolEmuMachine *m, const PtxFunction *fn, uint32_t n, const uint8_t *ways) {
  if (fn->block_count - n < 3) return false;
  const PtxBlock *head = &fn->blocks[n], *skipped = head + 1;
  const PtxInst *last = &fn->insts[head->first + head->count - 1];
  if (last->code->op != PTX_OP_BRA || last->guard == PTX_NONE || head->next[0] != n + 1 ||
      head->next[1] != n + 2 || ways[n + 1] != 1 || ways[n + 2] != 2)
    return false;
  if (skipped->next[0] != n + 2 || skipped->next[1] != PTX_NONE || skipped->table != PTX_NONE) return false;
  uint32_t count = 0;
  bool loads = false;
  for (uint32_t at = skipped->first; at < skipped->first + skipped->count; at++) {
    const PtxInst *in = &fn->insts[at];
    if (!is_plain(in)) return false;
    count += sol_emu_class(in) != SOL_EMU_CLASS_NAME;
    loads = loads || (in->code->op == PTX_OP_LD && in->code->space == PTX_SPACE_GLOBAL);
  }
  return count <= (loads ? m->guard_loads : m->guard_plain);
}

void emu_guarded_find(const SolEmuMachine *m, const PtxFunction *fn, uint8_t *of_block) {
  memset(of_block, 0, fn->block_count);
  count_ways(fn, of_block);
  uint32_t n = 0;
  of_block[0] = EMU_BLOCK_OWN;
  while (n + 1 < fn->block_count) // ways to a block are read before its kind takes their place
    if (is_short_branch(m, fn, n, of_block)) {
      of_block[n + 1] = EMU_BLOCK_GUARDED;
      of_block[n + 2] = EMU_BLOCK_JOINS;
      n += 2;
    } else
      of_block[++n] = EMU_BLOCK_OWN;
}
