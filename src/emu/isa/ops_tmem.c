// Tensor memory: its allocation, and its way from and to registers. A warp reaches the quarter of the lanes that its
// number modulo 4 says. Which register of which thread holds what follows the figures of the PTX manual.
#include "emu/isa/tmem.h"

#include "base/heap.h"
#include "emu/core/async.h"
#include "emu/core/lower.h"

enum {
  QUARTER = 32,
  MOST_REGS = 128,
  NOTHING = -1
}; // NOTHING: bits of a column that nobody has written, a NaN

static uint32_t units_from(uint32_t first, uint32_t count) {
  return (uint32_t)(((UINT64_C(1) << count) - 1) << first);
}

EmuTmem *tmem_columns(EmuCtx *x, const EmuInst *i, uint32_t mask, const EmuBlock *block, uint32_t address,
                      uint32_t columns) {
  EmuTmem *t = block->tmem;
  uint32_t first = address & 0xffff, last = first + columns - 1;
  bool owned = t && last < TMEM_COLUMNS;
  for (uint32_t unit = first / TMEM_UNIT; owned && unit <= last / TMEM_UNIT; unit++)
    owned = t->taken >> unit & 1;
  if (!owned)
    emu_misuse(x, i, mask, "columns %u to %u of %s tensor memory are not allocated", first, last,
               block == x->block ? "the block's" : "the other block's");
  return owned ? t : NULL;
}

// ---- allocation ----

static bool is_size(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t columns) {
  if (columns >= TMEM_UNIT && columns <= TMEM_COLUMNS && !(columns & (columns - 1))) return true;
  return emu_misuse(x, i, mask, "%u columns: a power of two from 32 to 512 is needed", columns);
}

static EmuTmem *of_block(EmuCtx *x) {
  if (!x->block->tmem) {
    EmuTmem *t = sol_heap_alloc(sizeof *t);
    if (t) *t = (EmuTmem){0};
    x->block->tmem = t;
  }
  return x->block->tmem;
}

// The first free place for so many units; TMEM_UNITS: there is none.
static uint32_t free_units(const EmuTmem *t, uint32_t count) {
  uint32_t at = 0;
  while (at + count <= TMEM_UNITS && t->taken & units_from(at, count)) at++;
  return at + count <= TMEM_UNITS ? at : TMEM_UNITS;
}

static void alloc(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint32_t together = emu_sync_lanes(x, i, mask, i->f);
  if (!together) return;
  int l = emu_first(together);
  uint32_t columns = EMU_IN(uint32_t, i->b)[l], count = columns / TMEM_UNIT;
  EmuAccess to;
  EmuTmem *t = of_block(x);
  if (!t || !is_size(x, i, together, columns)) return;
  if (t->relinquished) {
    emu_misuse(x, i, together, "the block has given up its permit to allocate tensor memory");
    return;
  }
  uint32_t at = free_units(t, count);
  if (at == TMEM_UNITS && !x->sync_lanes) {
    emu_again(x, i, mask);
    return;
  }
  if (at == TMEM_UNITS || !emu_resolve(x, i, 1u << l, 4, true, &to)) return;
  t->taken |= units_from(at, count);
  t->length[at] = (uint8_t)count;
  memset(t->cell[at * TMEM_UNIT], NOTHING, (size_t)columns * sizeof t->cell[0]);
  at *= TMEM_UNIT;
  memcpy(to.host[l], &at, sizeof at);
  if (x->launch->checking) emu_check_access(x, i, &to, 4, EMU_USE_STORE);
  emu_worker(x)->changes++;
}

static void dealloc(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask) return;
  int l = emu_first(mask);
  uint32_t address = EMU_IN(uint32_t, i->a)[l], columns = EMU_IN(uint32_t, i->b)[l];
  EmuTmem *t = is_size(x, i, mask, columns) ? tmem_columns(x, i, mask, x->block, address, columns) : NULL;
  if (!t) return;
  uint32_t at = address / TMEM_UNIT;
  if (address % TMEM_UNIT || address >= TMEM_COLUMNS || t->length[at] != columns / TMEM_UNIT) {
    emu_misuse(x, i, mask, "0x%x of %u columns is no allocation of this block", address, columns);
    return;
  }
  t->taken &= ~units_from(at, t->length[at]);
  t->length[at] = 0;
  emu_worker(x)->changes++;
}

static void relinquish(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuTmem *t = emu_sync_lanes(x, i, mask, i->f) ? of_block(x) : NULL;
  if (t) t->relinquished = true;
}

// ---- registers ----

typedef struct Move {
  EmuAddress at;
  EmuLoc regs[MOST_REGS];
  uint32_t count, columns; // of registers; of tensor memory's columns on each side of the split
  uint32_t split;          // 16x32bx2: columns from one half of the lanes' to the other's
  bool packed;             // 16 bits of a column
  uint8_t shape;           // PTX_FN_
} Move;

typedef struct Place {
  uint32_t lane, column;
} Place;

// What register r of thread l holds, relative to the address.
static Place place_of(const Move *m, uint32_t r, uint32_t l) {
  switch (m->shape) {
  case PTX_FN_16X64B: return (Place){l / 4 + l % 2 * 8, r * 2 + l / 2 % 2};
  case PTX_FN_16X128B: return (Place){l / 4 + r % 2 * 8, r / 2 * 4 + l % 4};
  case PTX_FN_16X256B: return (Place){l / 4 + r / 2 % 2 * 8, r / 4 * 8 + l % 4 * 2 + r % 2};
  case PTX_FN_16X32BX2: return (Place){l % 16, r};
  default: return (Place){l, r};
  }
}

static void move_register(const Move *m, EmuTmem *t, uint32_t address, uint32_t r, uint32_t *reg,
                          uint32_t mask, bool store) {
  for (; mask; mask &= mask - 1) {
    uint32_t l = (uint32_t)emu_first(mask);
    Place p = place_of(m, r, l);
    uint32_t lane = (address >> 16) + p.lane, each = m->packed ? 2 : 1;
    uint32_t column = (address & 0xffff) + p.column * each + (m->split && l >= 16 ? m->split : 0);
    uint32_t *low = &t->cell[column][lane], *high = &t->cell[column + each - 1][lane];
    if (store && m->packed)
      *low = reg[l] & 0xffff, *high = reg[l] >> 16;
    else if (store)
      *low = reg[l];
    else
      reg[l] = m->packed ? (*low & 0xffff) | *high << 16 : *low;
  }
}

static EmuTmem *reached(EmuCtx *x, const EmuInst *i, uint32_t mask, const Move *m, uint32_t address) {
  EmuTmem *t = tmem_columns(x, i, mask, x->block, address, m->columns);
  return t && m->split ? tmem_columns(x, i, mask, x->block, address + m->split, m->columns) : t;
}

static void run_load(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what) {
  const Move *m = i->more;
  uint32_t address;
  memcpy(&address, what, sizeof address);
  EmuTmem *t = reached(x, i, mask, m, address);
  for (uint32_t r = 0; t && r < m->count; r++)
    move_register(m, t, address, r, EMU_OUT(uint32_t, m->regs[r]), mask, false);
}

typedef struct Stored { // the registers are read when a store is issued
  uint32_t address, value[MOST_REGS][EMU_LANES];
} Stored;

static void run_store(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what) {
  const Move *m = i->more;
  const Stored *s = what;
  EmuTmem *t = reached(x, i, mask, m, s->address);
  for (uint32_t r = 0; t && r < m->count; r++) {
    uint32_t row[EMU_LANES];
    memcpy(row, s->value[r], sizeof row);
    move_register(m, t, s->address, r, row, mask, true);
  }
}

static void store(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t address) {
  const Move *m = i->more;
  Stored s;
  s.address = address;
  for (uint32_t r = 0; r < m->count; r++) memcpy(s.value[r], EMU_IN(uint32_t, m->regs[r]), sizeof s.value[r]);
  emu_async(x, i, EMU_ASYNC_TMEM_STORE, mask, 0, NULL, run_store, &s,
            offsetof(Stored, value) + m->count * sizeof s.value[0]);
}

static void move(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Move *m = i->more;
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask) return;
  uint32_t address = (uint32_t)emu_lane_address(x, &m->at, emu_first(mask)), lane = address >> 16;
  bool whole = m->shape == PTX_FN_32X32B;
  if (lane / QUARTER != x->warp->index % 4 || lane % (whole ? QUARTER : 16)) {
    emu_misuse(x, i, mask, "warp %u reaches lanes %u to %u of tensor memory, not %u", x->warp->index,
               x->warp->index % 4 * QUARTER, x->warp->index % 4 * QUARTER + QUARTER - 1, lane);
    return;
  }
  if (i->fn)
    store(x, i, mask, address);
  else
    emu_async(x, i, EMU_ASYNC_TMEM_LOAD, mask, 0, NULL, run_load, &address, sizeof address);
}

static void wait(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  if (emu_sync_lanes(x, i, mask, i->f))
    emu_async_wait(x, x->warp, i->fn ? EMU_ASYNC_TMEM_STORE : EMU_ASYNC_TMEM_LOAD, EMU_ALL, UINT32_MAX);
}

// ---- lowering ----

static bool lower_registers(Lower *l, const PtxInst *in, EmuInst *out, bool store) {
  const PtxOperand *o = in->operands, *regs = store ? &o[2] : &o[0], *split = store ? &o[1] : &o[2];
  Move *m = lower_alloc(l, sizeof *m);
  const EmuLoc *list = m ? lower_list(l, regs) : NULL;
  if (!list || regs->count > MOST_REGS) return false;
  *m = (Move){.count = regs->count, .split = (uint32_t)split->value, .shape = in->code->fn};
  m->packed = PTX_HAS(in->code, PACK) || PTX_HAS(in->code, UNPACK);
  m->columns = place_of(m, m->count - 1, EMU_LANES - 1).column + 1;
  if (m->packed) m->columns *= 2;
  memcpy(m->regs, list, m->count * sizeof *list);
  out->more = m;
  out->fn = store;
  out->run = move;
  if (m->split > TMEM_COLUMNS) return lower_refuse(l, "the split is at most 512 columns");
  return lower_address_operand(l, store ? &o[0] : &o[1], &m->at);
}

bool lower_tmem(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxOperand *o = in->operands;
  switch (in->code->op) {
  case PTX_OP_TCGEN05_ALLOC:
    out->b = lower_read(l, &o[1]);
    out->run = alloc;
    return lower_mem(l, &o[0], in->code->space, out);
  case PTX_OP_TCGEN05_DEALLOC:
    out->a = lower_read(l, &o[0]);
    out->b = lower_read(l, &o[1]);
    out->run = dealloc;
    return true;
  case PTX_OP_TCGEN05_RELINQUISH: out->run = relinquish; return true;
  case PTX_OP_TCGEN05_LD: return lower_registers(l, in, out, false);
  case PTX_OP_TCGEN05_ST: return lower_registers(l, in, out, true);
  case PTX_OP_TCGEN05_WAIT_LD:
  case PTX_OP_TCGEN05_WAIT_ST:
    out->fn = in->code->op == PTX_OP_TCGEN05_WAIT_ST;
    out->run = wait;
    return true;
  default: return false;
  }
}
