// Where warps wait for loads, by static analysis of the PTX: see SolEmuFlight. Within a basic block every value
// has a level, the number of waits before it is available. A load is issued once its address is available and
// the stores and barriers it may not pass have executed; its value is one level higher. So loads of one level
// are in flight together, whatever their order in the text. Instructions that a short branch skips do not form
// a block of their own: see emu/watch/guarded.c.
#include "base/heap.h"
#include "emu/watch/observe.h"

enum { STORES = 8 }; // that a block remembers one by one

typedef struct Store {
  uint32_t base;   // register; PTX_NONE: anywhere
  uint64_t offset; // from it
  uint32_t bytes;
  uint32_t level;
} Store;

typedef struct Block { // where one block's walk stands
  const PtxFunction *fn;
  uint32_t *level;                       // by register
  uint32_t waited;                       // levels that an instruction has needed
  uint32_t issued;                       // the highest that a load has
  uint32_t stores, shared_stores, order; // levels that loads may not pass: of global memory, shared, any
  Store recent[STORES];                  // to global memory, in a ring: loads pass those of other places
  uint32_t store_count, forgotten;       // so many; the highest level of those no longer there
  uint32_t waits_made, waits_at_store;   // how many there were, and when the last store was
  uint32_t owed;                         // needed under a guard; waited for where all lanes are again
  const uint8_t *guarded;                // by block: EmuGuarded
  const uint64_t *used, *moving;         // sets: registers that anything reads; that are written twice
  uint8_t *loads, *waits, *follows;      // by instruction
} Block;

static void read_operand(const Block *b, const PtxOperand *o, uint32_t *level) {
  switch (o->kind) {
  case PTX_ARG_REG:
    if (!o->written && b->level[o->index] > *level) *level = b->level[o->index];
    break;
  case PTX_ARG_MEM:
    if (o->index != PTX_NONE && b->level[o->index] > *level) *level = b->level[o->index];
    break;
  case PTX_ARG_VEC:
  case PTX_ARG_TEX:
    for (uint32_t k = 0; !(o->kind == PTX_ARG_VEC && o->written) && k < o->count; k++)
      read_operand(b, &o->elems[k], level);
    break;
  default: break;
  }
}

static void write_operand(Block *b, const PtxOperand *o, uint32_t level, bool guarded) {
  if (o->kind == PTX_ARG_VEC && o->written)
    for (uint32_t k = 0; k < o->count; k++) {
      const PtxOperand *e = &o->elems[k];
      if (e->kind == PTX_ARG_REG && (!guarded || level > b->level[e->index])) b->level[e->index] = level;
    }
  if (o->kind == PTX_ARG_REG && o->written && (!guarded || level > b->level[o->index]))
    b->level[o->index] = level;
}

static uint32_t max(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

static bool in_shared(const PtxCode *c) {
  return c->space == PTX_SPACE_SHARED || c->space == PTX_SPACE_SHARED_CLUSTER;
}

static bool in_global(const PtxCode *c) {
  return c->space == PTX_SPACE_GLOBAL || c->space == PTX_SPACE_GENERIC;
}

// The address of an access, where its base register is written only once.
static Store place_of(const Block *b, const PtxInst *in, const PtxOperand *o) {
  uint32_t vec = in->code->vec ? in->code->vec : 1,
           bits = (uint32_t)sol_ptx_type_bits((PtxType)in->code->type[0]);
  bool known = bits && o->kind == PTX_ARG_MEM && o->index != PTX_NONE && o->symbol == PTX_NONE &&
               !(b->moving[o->index / 64] >> o->index % 64 & 1);
  return (Store){known ? o->index : PTX_NONE, o->value, bits / 8 * vec, 0};
}

static bool apart(const Store *a, const Store *b) {
  return a->base != PTX_NONE && a->base == b->base &&
         (a->offset - b->offset >= b->bytes && b->offset - a->offset >= a->bytes); // either wraps around
}

// The highest level of stores that a load from there has to wait for.
static uint32_t stores_before(const Block *b, const Store *place) {
  uint32_t level = b->forgotten;
  for (uint32_t k = 0; k < b->store_count && k < STORES; k++)
    if (!apart(place, &b->recent[k])) level = max(level, b->recent[k].level);
  return level;
}

// The level that a load's value has, whose address has `level`.
static uint32_t load_level(const Block *b, const PtxInst *in, uint32_t level) {
  const PtxCode *c = in->code;
  level = max(level, b->order);
  if (in_shared(c)) return max(level, b->shared_stores);
  if (!in_global(c)) return level;
  Store place = place_of(b, in, &in->operands[1]);
  if (!PTX_HAS(c, NC)) level = max(level, stores_before(b, &place));
  return level + 1;
}

static void need(Block *b, uint32_t at, uint32_t level) {
  if (level <= b->waited) return;
  b->waited = level;
  b->waits[at] = 1;
  b->waits_made++;
}

static void remember(Block *b, Store s) {
  Store *old = &b->recent[b->store_count % STORES];
  if (b->store_count >= STORES) b->forgotten = max(b->forgotten, old->level);
  *old = s;
  b->store_count++;
  b->waits_at_store = b->waits_made;
}

// Whether the last store was to adjacent addresses, and the warp has not waited since.
static bool follows(const Block *b, const Store *s) {
  enum { BESIDE = 32 };
  if (!b->store_count || b->waits_at_store != b->waits_made) return false;
  const Store *last = &b->recent[(b->store_count - 1) % STORES];
  uint64_t up = s->offset - last->offset, down = last->offset - s->offset;
  return apart(s, last) && (up < BESIDE || down < BESIDE);
}

static void store(Block *b, const PtxInst *in, uint32_t at, uint32_t level) {
  const PtxCode *c = in->code;
  if (in_global(c) || c->op == PTX_OP_SUST) {
    Store s = c->op == PTX_OP_ST ? place_of(b, in, &in->operands[0]) : (Store){.base = PTX_NONE};
    s.level = level;
    b->follows[at] = c->op == PTX_OP_ST && follows(b, &s);
    b->stores = max(b->stores, level);
    remember(b, s);
  }
  if (in_shared(c) || !c->space) b->shared_stores = max(b->shared_stores, level);
}

static bool is_used(const Block *b, uint32_t reg) {
  return b->used[reg / 64] >> reg % 64 & 1;
}

static bool result_used(const Block *b, const PtxInst *in) {
  const PtxOperand *d = &in->operands[0];
  if (d->kind == PTX_ARG_REG) return is_used(b, d->index);
  for (uint32_t k = 0; d->kind == PTX_ARG_VEC && k < d->count; k++)
    if (d->elems[k].kind == PTX_ARG_REG && is_used(b, d->elems[k].index)) return true;
  return false;
}

// The effect of an instruction on memory order; returns the level of its result.
static uint32_t step(Block *b, uint32_t at, uint32_t level) {
  const PtxInst *in = &b->fn->insts[at];
  const PtxCode *c = in->code;
  switch (c->op) {
  case PTX_OP_LD: b->loads[at] = in_global(c); return load_level(b, in, level);
  case PTX_OP_ATOM: // ptxas makes it a reduction where its result is not used
    if (!result_used(b, in)) {
      store(b, in, at, level);
      return level;
    }
    b->loads[at] = in_global(c);
    if (!in_global(c)) return max(level, max(b->order, b->shared_stores));
    return max(level, max(b->order, b->stores)) + 1;
  case PTX_OP_TEX:
  case PTX_OP_TLD4:
  case PTX_OP_SULD: b->loads[at] = 1; return max(level, b->order) + 1;
  case PTX_OP_CP_ASYNC: b->loads[at] = 2; return level;
  case PTX_OP_CP_TENSOR: b->loads[at] = 2; return level;
  case PTX_OP_CP_ASYNC_BULK:
    if (c->space2 == PTX_SPACE_GLOBAL) b->loads[at] = 2;
    return level;
  case PTX_OP_CP_ASYNC_WAIT: {
    uint64_t left = in->operand_count && in->operands[0].kind == PTX_ARG_IMM ? in->operands[0].value : 0;
    b->waits[at] = (uint8_t)(left < 32 ? left + 1 : 32);
    return level;
  }
  case PTX_OP_MBARRIER_TRY_WAIT:
  case PTX_OP_MBARRIER_TEST_WAIT: b->waits[at] = 1; return level;
  case PTX_OP_ST:
  case PTX_OP_RED:
  case PTX_OP_SUST: store(b, in, at, level); return level;
  case PTX_OP_CALL: { // whatever it does has happened, and its results are there
    need(b, at, b->issued);
    b->order = max(b->order, b->waited);
    return 0;
  }
  default: break;
  }
  if (sol_emu_class(in) == SOL_EMU_CLASS_BARRIER) b->order = max(b->order, max(b->stores, b->shared_stores));
  return level;
}

// Under a guard what is computed may come as late as what follows needs it: ptxas has the loads of that go
// first. Only what decides about other accesses' order is waited for at once.
static bool may_owe(const PtxInst *in) {
  SolEmuClass class = sol_emu_class(in);
  if (in->code->op == PTX_OP_ST) return in_shared(in->code);
  return class != SOL_EMU_CLASS_MEMORY && class != SOL_EMU_CLASS_BARRIER && class != SOL_EMU_CLASS_WARP &&
         class != SOL_EMU_CLASS_CONTROL;
}

// guard: of the branch around it; PTX_NONE.
static void walk_inst(Block *b, uint32_t at, uint32_t guard) {
  const PtxInst *in = &b->fn->insts[at];
  uint32_t level = guard != PTX_NONE ? b->level[guard] : 0;
  if (in->guard != PTX_NONE) level = max(level, b->level[in->guard]);
  for (uint32_t k = 0; k < in->operand_count; k++) read_operand(b, &in->operands[k], &level);
  if (in->code->op == PTX_OP_MOV && in->guard == PTX_NONE) { // a move is but a name
  } else if (guard != PTX_NONE && may_owe(in))
    b->owed = max(b->owed, level);
  else
    need(b, at, level);
  level = step(b, at, level);
  b->issued = max(b->issued, level);
  for (uint32_t k = 0; k < in->operand_count; k++)
    write_operand(b, &in->operands[k], level, guard != PTX_NONE || in->guard != PTX_NONE);
}

// Blocks [n, end): a line, see EmuGuarded.
static void walk(Block *b, uint32_t n, uint32_t end) {
  b->waited = b->stores = b->shared_stores = b->order = b->issued = b->owed = 0;
  b->store_count = b->forgotten = b->waits_made = 0;
  for (uint32_t k = n; k < end; k++) {
    const PtxBlock *block = &b->fn->blocks[k];
    bool guarded = b->guarded[k] == EMU_BLOCK_GUARDED;
    uint32_t guard = guarded ? b->fn->insts[block->first - 1].guard : PTX_NONE;
    for (uint32_t at = block->first; at < block->first + block->count; at++) {
      bool last = k + 1 == end && at + 1 == block->first + block->count;
      b->waits[at] = b->follows[at] = 0;
      if (last || (!guarded && sol_emu_class(&b->fn->insts[at]) == SOL_EMU_CLASS_BARRIER))
        need(b, at, b->owed);
      walk_inst(b, at, guard);
    }
  }
}

// ---- from block to block ----

uint32_t emu_block_at(const PtxFunction *fn, uint32_t inst) {
  uint32_t low = 0, high = fn->block_count;
  while (high - low > 1) {
    uint32_t mid = low + (high - low) / 2;
    if (fn->blocks[mid].first <= inst)
      low = mid;
    else
      high = mid;
  }
  return low;
}

static void end_register(Block *b, uint32_t reg, uint64_t *out) {
  if (b->level[reg] > b->waited) out[reg / 64] |= UINT64_C(1) << reg % 64;
}

static void forget(Block *b, uint32_t reg, uint64_t *out) {
  (void)out;
  b->level[reg] = 0;
}

static void each_written(Block *b, const PtxInst *inst, uint64_t *out,
                         void (*visit)(Block *, uint32_t, uint64_t *)) {
  for (uint32_t k = 0; k < inst->operand_count; k++) {
    const PtxOperand *o = &inst->operands[k];
    if (o->kind == PTX_ARG_REG && o->written) visit(b, o->index, out);
    for (uint32_t e = 0; o->kind == PTX_ARG_VEC && o->written && e < o->count; e++)
      if (o->elems[e].kind == PTX_ARG_REG) visit(b, o->elems[e].index, out);
  }
}

// All registers that may have a level: those pending at the start, and those written by blocks [n, end).
static void each_register(Block *b, uint32_t n, uint32_t end, const uint64_t *in, uint32_t words,
                          uint64_t *out, void (*visit)(Block *, uint32_t, uint64_t *)) {
  for (uint32_t w = 0; w < words; w++)
    for (uint64_t bits = in[w]; bits; bits &= bits - 1)
      visit(b, w * 64 + (uint32_t)__builtin_ctzll(bits), out);
  for (; n < end; n++) {
    const PtxBlock *block = &b->fn->blocks[n];
    for (uint32_t at = block->first; at < block->first + block->count; at++)
      each_written(b, &b->fn->insts[at], out, visit);
  }
}

static void pend(Block *b, uint32_t reg, uint64_t *out) {
  (void)out;
  b->level[reg] = 1;
}

static bool join(uint64_t *to, const uint64_t *from, uint32_t words) {
  bool changed = false;
  for (uint32_t w = 0; w < words; w++) {
    changed = changed || from[w] & ~to[w];
    to[w] |= from[w];
  }
  return changed;
}

// Loads that are in flight at the end of a block are in flight at the start of its successors, where they have
// the first level. Registers' levels are 0 before and after.
static bool walk_line(Block *b, uint32_t n, uint32_t end, uint64_t *pending, uint64_t *out, uint32_t words) {
  const PtxBlock *last = &b->fn->blocks[end - 1];
  const uint64_t *in = pending + (size_t)n * words;
  memset(out, 0, words * sizeof *out);
  each_register(b, 0, 0, in, words, out, pend);
  walk(b, n, end);
  each_register(b, n, end, in, words, out, end_register);
  each_register(b, n, end, in, words, out, forget);
  bool changed = false;
  for (int k = 0; k < 2; k++)
    if (last->next[k] != PTX_NONE)
      changed = join(pending + (size_t)last->next[k] * words, out, words) || changed;
  for (uint32_t t = 0; last->table != PTX_NONE && t < b->fn->tables[last->table].count; t++) {
    uint32_t to = b->fn->tables[last->table].targets[t];
    if (to < b->fn->inst_count)
      changed = join(pending + (size_t)emu_block_at(b->fn, to) * words, out, words) || changed;
  }
  return changed;
}

static uint32_t end_of_line(const Block *b, uint32_t n) {
  uint32_t end = n + 1;
  while (end < b->fn->block_count && b->guarded[end] != EMU_BLOCK_OWN) end++;
  return end;
}

static bool walk_lines(Block *b, uint64_t *pending, uint64_t *out, uint32_t words) {
  bool changed = false;
  for (uint32_t n = 0, end; n < b->fn->block_count; n = end) {
    end = end_of_line(b, n);
    changed = walk_line(b, n, end, pending, out, words) || changed;
  }
  return changed;
}

// Iterations that ptxas unrolled wait together.
static void join_unrolled(const SolEmuMachine *m, const Block *b, uint64_t *room) {
  for (uint32_t n = 0, end; n < b->fn->block_count; n = end) {
    end = end_of_line(b, n);
    if (!emu_is_unrolled(m, b->fn, n, end, room)) continue;
    const PtxBlock *last = &b->fn->blocks[end - 1];
    for (uint32_t at = b->fn->blocks[n].first; at < last->first + last->count; at++)
      if (b->waits[at] == 1) b->waits[at] = (uint8_t)m->unroll_times;
  }
}

static void use_operand(const PtxOperand *o, uint64_t *used) {
  bool reads = (o->kind == PTX_ARG_REG && !o->written) || (o->kind == PTX_ARG_MEM && o->index != PTX_NONE);
  if (reads) used[o->index / 64] |= UINT64_C(1) << o->index % 64;
  if ((o->kind == PTX_ARG_VEC && !o->written) || o->kind == PTX_ARG_TEX)
    for (uint32_t k = 0; k < o->count; k++) use_operand(&o->elems[k], used);
}

static void find_used(const PtxFunction *fn, uint64_t *used) {
  for (uint32_t at = 0; at < fn->inst_count; at++) {
    const PtxInst *in = &fn->insts[at];
    if (in->guard != PTX_NONE) used[in->guard / 64] |= UINT64_C(1) << in->guard % 64;
    for (uint32_t k = 0; k < in->operand_count; k++) use_operand(&in->operands[k], used);
  }
}

static void write_register(uint32_t reg, uint64_t *written, uint64_t *moving) {
  uint64_t bit = UINT64_C(1) << reg % 64;
  moving[reg / 64] |= written[reg / 64] & bit;
  written[reg / 64] |= bit;
}

static void find_moving(const PtxFunction *fn, uint64_t *written, uint64_t *moving) {
  for (uint32_t at = 0; at < fn->inst_count; at++)
    for (uint32_t k = 0; k < fn->insts[at].operand_count; k++) {
      const PtxOperand *o = &fn->insts[at].operands[k];
      if (o->kind == PTX_ARG_REG && o->written) write_register(o->index, written, moving);
      for (uint32_t e = 0; o->kind == PTX_ARG_VEC && o->written && e < o->count; e++)
        if (o->elems[e].kind == PTX_ARG_REG) write_register(o->elems[e].index, written, moving);
    }
}

bool emu_flight_find(const SolEmuMachine *m, const PtxFunction *fn, uint8_t *loads, uint8_t *waits,
                     uint8_t *follow) {
  if (!fn->block_count || !fn->reg_count) return true;
  enum { PASSES = 8 }; // pending sets only grow; if they have not converged by then, the last is used
  uint32_t words = (fn->reg_count + 63) / 64;
  size_t sets = (size_t)words * (fn->block_count + 3) * sizeof(uint64_t);
  size_t levels = sizeof(uint32_t) * fn->reg_count;
  uint64_t *pending = sol_heap_alloc(sets + levels + fn->block_count);
  if (!pending) return false;
  memset(pending, 0, sets + levels);
  uint64_t *out = pending + (size_t)words * fn->block_count, *used = out + words, *moving = used + words;
  find_used(fn, used);
  find_moving(fn, out, moving);
  uint32_t *level = (uint32_t *)(void *)(moving + words);
  uint8_t *guarded = (uint8_t *)(level + fn->reg_count);
  emu_guarded_find(m, fn, guarded);
  Block b = {.fn = fn,
             .level = level,
             .loads = loads,
             .waits = waits,
             .follows = follow,
             .used = used,
             .moving = moving,
             .guarded = guarded};
  bool changed = true;
  for (int pass = 0; changed && pass < PASSES; pass++) changed = walk_lines(&b, pending, out, words);
  join_unrolled(m, &b, out);
  sol_heap_free(pending);
  return true;
}
