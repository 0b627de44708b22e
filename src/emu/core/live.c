// Register allocation. Registers with disjoint live ranges share storage, so that a warp's registers stay in the
// host's cache. Lanes are independent, so the liveness of one thread's path is that of
// the warp's.
#include "base/heap.h"
#include "emu/core/lower.h"
#include "emu/core/state.h"

typedef struct Live {
  const PtxFunction *fn;
  uint32_t words;            // of a set of registers
  uint64_t *in, *gen, *kill; // a set per block
  uint32_t *start, *end;     // instruction indices, both inclusive; start > end: never used
  uint32_t *block_of;        // by instruction, leaders alone are needed
} Live;

typedef void Visit(Live *v, uint32_t reg, bool written, uint32_t at, void *ctx);

static void visit_operand(Live *v, const PtxOperand *o, bool written, uint32_t at, Visit *visit, void *ctx) {
  written = written || o->written;
  switch (o->kind) {
  case PTX_ARG_REG: visit(v, o->index, written, at, ctx); break;
  case PTX_ARG_MEM:
    if (o->index != PTX_NONE) visit(v, o->index, false, at, ctx);
    break;
  case PTX_ARG_VEC:
  case PTX_ARG_TEX:
    for (uint32_t i = 0; i < o->count; i++)
      visit_operand(v, &o->elems[i], written && o->kind == PTX_ARG_VEC, at, visit, ctx);
    break;
  default: break;
  }
}

static bool is_wgmma(const PtxInst *in) {
  return in->code->op == PTX_OP_WGMMA || in->code->op == PTX_OP_WGMMA_SP;
}

static void visit_inst(Live *v, uint32_t at, bool writes, Visit *visit, void *ctx) {
  const PtxInst *in = &v->fn->insts[at];
  if (!writes && in->guard != PTX_NONE) visit(v, in->guard, false, at, ctx);
  for (uint32_t k = 0; k < in->operand_count; k++) visit_operand(v, &in->operands[k], false, at, visit, ctx);
  const PtxOperand *d = in->operands; // an accumulator is read as well
  for (uint32_t k = 0; is_wgmma(in) && k < d->count; k++)
    if (d->elems[k].kind == PTX_ARG_REG) visit(v, d->elems[k].index, false, at, ctx);
}

static void keep_whole(Live *v, uint32_t reg, bool written, uint32_t at, void *ctx) {
  (void)written, (void)at, (void)ctx;
  v->start[reg] = 0, v->end[reg] = v->fn->inst_count - 1;
}

static bool is_asynchronous(const PtxInst *in) {
  return is_wgmma(in) || in->code->op == PTX_OP_TCGEN05_LD;
}

// The registers of these are read and written until somebody waits for them, wherever that is.
static void keep_asynchronous(Live *v) {
  for (uint32_t at = 0; at < v->fn->inst_count; at++)
    for (uint32_t k = 0; is_asynchronous(&v->fn->insts[at]) && k < 2; k++)
      if (v->fn->insts[at].operands[k].kind == PTX_ARG_VEC)
        visit_operand(v, &v->fn->insts[at].operands[k], false, at, keep_whole, NULL);
}

typedef struct Local {
  uint64_t *gen, *kill;
  bool writes, guarded;
} Local;

// Backwards through a block: a write ends what is needed above, a read begins it.
static void local_sets(Live *v, uint32_t reg, bool written, uint32_t at, void *ctx) {
  (void)v, (void)at;
  Local *l = ctx;
  uint64_t bit = UINT64_C(1) << reg % 64;
  if (l->writes != written) return;
  if (!written)
    l->gen[reg / 64] |= bit;
  else if (!l->guarded) {
    l->kill[reg / 64] |= bit;
    l->gen[reg / 64] &= ~bit;
  }
}

static void extend(Live *v, uint32_t reg, bool written, uint32_t at, void *ctx) {
  (void)written, (void)ctx;
  if (at < v->start[reg]) v->start[reg] = at;
  if (v->end[reg] == PTX_NONE || at > v->end[reg]) v->end[reg] = at;
}

// What addresses are computed from stays until the access, so that launches without counts can compute them there (fuse.c):
// registers through linear instructions, a few of them and not far back.
static void keep_address(Live *v, uint32_t reg, uint32_t before, uint32_t access, int depth) {
  enum { MOST_BACK = 64 };
  extend(v, reg, false, access, NULL);
  for (uint32_t at = before; depth && at-- > 0 && access - at < MOST_BACK;) {
    const PtxInst *in = &v->fn->insts[at];
    if (v->fn->insts[at + 1].leader) return;
    if (in->operands[0].kind != PTX_ARG_REG || in->operands[0].index != reg || !in->operands[0].written)
      continue;
    for (uint32_t k = 1; emu_is_linear(in) && k < in->operand_count; k++)
      if (in->operands[k].kind == PTX_ARG_REG) keep_address(v, in->operands[k].index, at, access, depth - 1);
    return;
  }
}

static void keep_addresses(Live *v) {
  enum { MOST_DEEP = 6 };
  for (uint32_t at = 0; at < v->fn->inst_count; at++) {
    const PtxInst *in = &v->fn->insts[at];
    if (in->guard != PTX_NONE || (in->code->op != PTX_OP_LD && in->code->op != PTX_OP_ST)) continue;
    const PtxOperand *o = &in->operands[in->code->op == PTX_OP_LD];
    if (o->kind == PTX_ARG_MEM && o->index != PTX_NONE) keep_address(v, o->index, at, at, MOST_DEEP);
  }
}

// What is needed after block b.
static void out_of(const Live *v, uint32_t b, uint64_t *out) {
  const PtxBlock *block = &v->fn->blocks[b];
  memset(out, 0, v->words * sizeof *out);
  for (int k = 0; k < 2; k++)
    if (block->next[k] != PTX_NONE)
      for (uint32_t w = 0; w < v->words; w++) out[w] |= v->in[(size_t)block->next[k] * v->words + w];
  if (block->table == PTX_NONE) return;
  const PtxTable *table = &v->fn->tables[block->table];
  for (uint32_t t = 0; t < table->count; t++) {
    if (table->targets[t] >= v->fn->inst_count) continue;
    uint32_t to = v->block_of[table->targets[t]];
    for (uint32_t w = 0; w < v->words; w++) out[w] |= v->in[(size_t)to * v->words + w];
  }
}

// Words of sets that one pass over the blocks looks at.
static uint64_t pass_work(const Live *v) {
  uint64_t edges = 0;
  for (uint32_t b = 0; b < v->fn->block_count; b++) {
    uint32_t table = v->fn->blocks[b].table;
    edges += 2 + (table == PTX_NONE ? 0 : v->fn->tables[table].count);
  }
  return edges * v->words;
}

// A function so large, or so entangled, that this takes long has a place for each register: sets of 128 MiB,
// half a second.
enum { MOST_SET_WORDS = 1 << 24, MOST_WORK = 1 << 29 };

static bool solve(Live *v, uint64_t *out) {
  uint64_t work = 0, pass = pass_work(v);
  for (bool changed = true; changed;) {
    changed = false;
    if ((work += pass) > MOST_WORK) return false;
    for (uint32_t b = v->fn->block_count; b-- > 0;) {
      out_of(v, b, out);
      uint64_t *in = v->in + (size_t)b * v->words;
      const uint64_t *gen = v->gen + (size_t)b * v->words, *kill = v->kill + (size_t)b * v->words;
      for (uint32_t w = 0; w < v->words; w++) {
        uint64_t now = gen[w] | (out[w] & ~kill[w]);
        changed = changed || now != in[w];
        in[w] = now;
      }
    }
  }
  return true;
}

static void extend_set(Live *v, const uint64_t *set, uint32_t at) {
  for (uint32_t w = 0; w < v->words; w++)
    for (uint64_t bits = set[w]; bits; bits &= bits - 1)
      extend(v, w * 64 + (uint32_t)__builtin_ctzll(bits), false, at, NULL);
}

// False: it would take too long.
static bool intervals(Live *v, uint64_t *out) {
  const PtxFunction *fn = v->fn;
  for (uint32_t b = 0; b < fn->block_count; b++) {
    const PtxBlock *block = &fn->blocks[b];
    for (uint32_t k = block->count; k-- > 0;) {
      uint32_t at = block->first + k;
      Local l = {v->gen + (size_t)b * v->words, v->kill + (size_t)b * v->words, true,
                 fn->insts[at].guard != PTX_NONE};
      visit_inst(v, at, true, local_sets, &l);
      l.writes = false;
      visit_inst(v, at, false, local_sets, &l);
    }
  }
  if (!solve(v, out)) return false;
  for (uint32_t at = 0; at < fn->inst_count; at++) visit_inst(v, at, false, extend, NULL);
  for (uint32_t b = 0; b < fn->block_count; b++) {
    const PtxBlock *block = &fn->blocks[b];
    if (!block->count) continue;
    extend_set(v, v->in + (size_t)b * v->words, block->first);
    out_of(v, b, out);
    extend_set(v, out, block->first + block->count - 1);
  }
  keep_asynchronous(v);
  keep_addresses(v);
  // Formals in registers are written and read by the call itself.
  for (int side = 0; side < 2; side++) {
    const uint32_t *regs = side ? fn->result_regs : fn->param_regs;
    uint32_t count = side ? fn->result_count : fn->param_count;
    for (uint32_t i = 0; regs && i < count; i++)
      if (regs[i] != PTX_NONE)
        v->start[regs[i]] = 0, v->end[regs[i]] = fn->inst_count ? fn->inst_count - 1 : 0;
  }
  return true;
}

// Sizes of rows: predicates, 16, 32, 64, 128 bits.
enum { CLASSES = 5 };
static const uint32_t class_bytes[CLASSES] = {4, 64, 128, 256, 512};
static int class_of(uint8_t type) {
  int bits = sol_ptx_type_bits((PtxType)type);
  return bits == 1 ? 0 : bits <= 16 ? 1 : bits <= 32 ? 2 : bits <= 64 ? 3 : 4;
}

typedef struct Slots {
  uint32_t *next;         // by register: free lists and lists of registers that start or end together
  uint32_t free[CLASSES]; // a register whose place is free
  uint32_t bytes, preds;  // preds: end of the row of predicates being filled
} Slots;

static EmuLoc take(Slots *s, EmuLoc *loc, int class) {
  if (s->free[class] != PTX_NONE) {
    uint32_t reg = s->free[class];
    s->free[class] = s->next[reg];
    return loc[reg];
  }
  if (class == 0) {
    if (s->preds % 64 == 0) {
      s->preds = s->bytes;
      s->bytes += 64;
    }
    s->preds += 4;
    return s->preds - 4;
  }
  uint32_t at = s->bytes;
  s->bytes += class_bytes[class];
  return at;
}

static void scan(Live *v, Slots *s, EmuLoc *loc, uint32_t *starts, uint32_t *ends, uint32_t *next_end) {
  const PtxFunction *fn = v->fn;
  for (uint32_t at = 0; at < fn->inst_count; at++) starts[at] = ends[at] = PTX_NONE;
  for (uint32_t r = fn->reg_count; r-- > 0;) {
    if (v->end[r] == PTX_NONE) continue;
    s->next[r] = starts[v->start[r]], starts[v->start[r]] = r;
    next_end[r] = ends[v->end[r]], ends[v->end[r]] = r;
  }
  for (uint32_t at = 0; at < fn->inst_count; at++) {
    for (uint32_t r = starts[at], next; r != PTX_NONE; r = next) {
      next = s->next[r];
      loc[r] = take(s, loc, class_of(fn->regs[r].type));
    }
    // Freed only after all that start here: a destination never shares a place with a source.
    for (uint32_t r = ends[at]; r != PTX_NONE; r = next_end[r]) {
      int class = class_of(fn->regs[r].type);
      s->next[r] = s->free[class], s->free[class] = r;
    }
  }
}

static void take_each(const PtxFunction *fn, EmuLoc *loc, uint32_t *bytes) {
  Slots s = {0};
  for (int k = 0; k < CLASSES; k++) s.free[k] = PTX_NONE;
  for (uint32_t r = 0; r < fn->reg_count; r++) loc[r] = take(&s, loc, class_of(fn->regs[r].type));
  *bytes = s.bytes;
}

bool emu_assign_registers(const PtxFunction *fn, SolArena *arena, EmuLoc *loc, uint32_t *bytes) {
  (void)arena;
  size_t regs = fn->reg_count, insts = fn->inst_count, words = (regs + 63) / 64 + 1, blocks = fn->block_count;
  size_t sets = (blocks * 3 + 1) * words;
  if (sets > MOST_SET_WORDS) return take_each(fn, loc, bytes), true;
  size_t total = sets * 8 + (regs * 4 + insts * 3 + 8) * 4;
  uint64_t *memory = sol_heap_alloc(total);
  if (!memory) return false;
  memset(memory, 0, total);
  Live v = {.fn = fn, .words = (uint32_t)words, .in = memory};
  v.gen = v.in + blocks * words;
  v.kill = v.gen + blocks * words;
  uint64_t *out = v.kill + blocks * words;
  uint32_t *more = (uint32_t *)(void *)(memory + sets);
  v.start = more, v.end = v.start + regs;
  Slots s = {.next = v.end + regs};
  uint32_t *next_end = s.next + regs, *starts = next_end + regs, *ends = starts + insts;
  v.block_of = ends + insts;
  for (size_t r = 0; r < regs; r++) v.start[r] = v.end[r] = PTX_NONE, loc[r] = 0;
  for (int k = 0; k < CLASSES; k++) s.free[k] = PTX_NONE;
  for (uint32_t b = 0; b < fn->block_count; b++)
    for (uint32_t k = 0; k < fn->blocks[b].count; k++) v.block_of[fn->blocks[b].first + k] = b;
  if (!intervals(&v, out)) return sol_heap_free(memory), take_each(fn, loc, bytes), true;
  scan(&v, &s, loc, starts, ends, next_end);
  // Named, but in code that nothing reaches or by declarations alone.
  for (size_t r = 0; r < regs; r++)
    if (v.end[r] == PTX_NONE) loc[r] = take(&s, loc, class_of(fn->regs[r].type));
  *bytes = s.bytes;
  sol_heap_free(memory);
  return true;
}
