// The SIMT stack: divergence and reconvergence of a warp's lanes. An entry is a group of lanes at a pc; the top
// one runs. Lanes that diverge at a branch become entries above one that waits at the reconvergence point.
#include "base/heap.h"
#include "emu/core/hooks.h"
#include "emu/core/lower.h"

// More than calls alone may take (call.c): what is done to a whole stack at each turn stays short.
enum { MAX_ENTRIES = 1 << 17 };

bool emu_push(EmuFiber *f, EmuEntry entry) {
  if (f->count == f->cap) {
    if (f->cap >= MAX_ENTRIES) return false;
    EmuEntry *grown = sol_heap_realloc(f->entries, sizeof *grown * (f->cap + 16) * 2);
    if (!grown) return false;
    f->entries = grown;
    f->cap = (f->cap + 16) * 2;
  }
  f->entries[f->count++] = entry;
  return true;
}

void emu_load_top(EmuCtx *x) {
  const EmuEntry *e = &x->fiber->entries[x->fiber->count - 1];
  x->pc = e->pc;
  x->active = e->mask;
  x->reconverge = e->reconverge;
  x->frame = e->frame;
  x->bank[EMU_BANK_REGS] = e->frame->regs;
}

void emu_store_top(EmuCtx *x) {
  EmuEntry *e = &x->fiber->entries[x->fiber->count - 1];
  e->pc = x->pc;
  e->mask = x->active;
}

void emu_reconverge(EmuCtx *x) {
  EmuFiber *f = x->fiber;
  while (f->count) {
    EmuEntry *e = &f->entries[f->count - 1];
    if (e->mask && e->pc != e->reconverge) {
      emu_load_top(x);
      return;
    }
    f->count--;
    if (e->base) emu_release_frame(x, e->frame);
    // Fibers that were split are merged where their stacks become equal again.
    if (x->warp->fibers->next) x->budget = 0;
  }
  f->state = EMU_ENDED;
  x->active = 0;
  x->budget = 0;
}

// ---- frames ----

enum { LARGE_FRAME = 256 << 10 };

static size_t round64(size_t n) {
  return (n + 63) / 64 * 64;
}

static EmuFrame *make_frame(const EmuFunction *fn) {
  size_t regs = round64(fn->reg_bytes), params = (size_t)fn->param_stride * EMU_LANES;
  uint8_t *memory = sol_heap_alloc(round64(sizeof(EmuFrame)) + regs + params + 64);
  if (!memory) return NULL;
  EmuFrame *frame = (EmuFrame *)(void *)memory;
  uint8_t *rows = memory + sizeof *frame;
  rows += (64 - (uintptr_t)rows % 64) % 64;
  *frame = (EmuFrame){.regs = rows, .params = rows + regs, .param_stride = fn->param_stride};
  return frame;
}

EmuFrame *emu_new_frame(EmuCtx *x, uint32_t function, EmuFrame *caller) {
  const EmuFunction *fn = &x->launch->program->functions[function];
  EmuWorker *w = emu_worker(x);
  EmuFrame *frame = w->free_frames[function];
  if (frame)
    w->free_frames[function] = frame->caller;
  else if (!(frame = make_frame(fn)))
    return NULL;
  frame->caller = caller;
  frame->refs = 1;
  frame->function = function;
  frame->call = NULL;
  frame->alloca_top = NULL;
  uint64_t align = fn->fn->local_align > 16 ? fn->fn->local_align : 16;
  uint64_t from = caller ? caller->local_top : 0;
  frame->local_base = (from + align - 1) / align * align;
  frame->local_top = frame->local_base + fn->local_bytes;
  size_t params = (size_t)fn->param_stride * EMU_LANES;
  frame->bytes = (caller ? caller->bytes : 0) + fn->reg_bytes + params;
  memset(frame->regs, 0, fn->reg_bytes);
  memset(frame->params, 0, params);
  if (fn->reg_bytes + params >= LARGE_FRAME) x->budget = 0; // so that limits are looked at in time
  return frame;
}

void emu_release_frame(EmuCtx *x, EmuFrame *frame) {
  if (--frame->refs) return;
  sol_heap_free(frame->alloca_top);
  frame->alloca_top = NULL;
  EmuWorker *w = emu_worker(x);
  frame->caller = w->free_frames[frame->function];
  w->free_frames[frame->function] = frame;
}

// ---- branches ----

static void too_deep(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  emu_find(x, i, mask, SOL_EMU_STACK, 0, 0, "out of memory for a deeper stack of calls and branches");
  emu_stop(x->launch, SOL_EMU_FAULT);
  x->budget = 0;
}

static void part(EmuCtx *x, const EmuInst *i, const uint32_t *targets, const uint32_t *masks,
                 uint32_t count) {
  EmuFiber *f = x->fiber;
  EmuEntry *top = &f->entries[f->count - 1];
  EmuEntry side = {.reconverge = i->reconverge, .frame = top->frame};
  x->counts[i->index].divergent++;
  // Waits already at the same point below: a loop that lanes leave one after the other needs no new entry.
  if (top->reconverge == i->reconverge)
    f->count--;
  else
    top->pc = i->reconverge, top->mask = x->active;
  bool ok = true;
  for (uint32_t k = 0; k < count && ok; k++) {
    if (targets[k] == i->reconverge) continue;
    side.pc = targets[k];
    side.mask = masks[k];
    ok = emu_push(f, side);
  }
  if (!ok)
    too_deep(x, i, x->active);
  else
    emu_reconverge(x);
}

static void branch(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  if (mask == x->active) {
    x->pc = i->target;
    return;
  }
  uint32_t targets[2] = {i->target, x->pc}, masks[2] = {mask, x->active & ~mask};
  part(x, i, targets, masks, 2);
}

typedef struct Table {
  uint32_t count;
  uint32_t pcs[];
} Table;

static void branch_table(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Table *table = i->more;
  const uint32_t *index = EMU_IN(uint32_t, i->a);
  uint32_t targets[EMU_LANES + 1], masks[EMU_LANES + 1], count = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    int lane = emu_first(left);
    if (index[lane] >= table->count) {
      emu_find(x, i, 1u << lane, SOL_EMU_BAD_USE, 0, 0, "brx index %u, but the table has %u targets",
               index[lane], table->count);
      emu_stop(x->launch, SOL_EMU_FAULT);
      x->budget = 0;
      return;
    }
    uint32_t to = table->pcs[index[lane]], k = 0;
    while (k < count && targets[k] != to) k++;
    if (k == count) targets[count] = to, masks[count++] = 0;
    masks[k] |= 1u << lane;
  }
  if (x->active & ~mask) targets[count] = x->pc, masks[count++] = x->active & ~mask;
  if (count == 1)
    x->pc = targets[0];
  else
    part(x, i, targets, masks, count);
}

// ---- ends ----

void emu_end_lanes(EmuCtx *x, uint32_t mask) {
  EmuFiber *f = x->fiber;
  EmuWarp *w = x->warp;
  for (uint32_t k = 0; k < f->count; k++) f->entries[k].mask &= ~mask;
  f->lanes &= ~mask;
  w->live &= ~mask;
  x->active &= ~mask;
  if (!w->live) x->block->warps_live--;
  emu_release_barriers(x, x->block);
  if (w->fibers->next) emu_release_synced(x, w, false);
  emu_release_cluster(x->block->unit);
  emu_reconverge(x);
}

static void exit_lanes(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  (void)i;
  emu_store_top(x);
  emu_end_lanes(x, mask);
}

static void trap(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  emu_find(x, i, mask, SOL_EMU_TRAP, 0, 0, "trap");
  emu_stop(x->launch, SOL_EMU_FAULT);
  x->budget = 0;
}

static void do_return(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  (void)i;
  emu_return(x, mask);
}

// Others run meanwhile, and the SM's clock goes on. The GPU sleeps for the next power of two of nanoseconds, and 64 at least (bench/probe_own.cu:
// 100 take 140, 500 530, 3000 3800, 10000 16060, 30000 32430).
static void sleep_lanes(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint32_t longest = 0;
  uint64_t ns = 64;
  for (uint32_t left = mask; left; left &= left - 1) {
    uint32_t asked = EMU_IN(uint32_t, i->a)[emu_first(left)];
    if (asked > longest) longest = asked;
  }
  while (ns < longest) ns *= 2;
  uint64_t clocks = (uint64_t)((double)ns * 1e-9 * x->launch->emu->machine.clock) + 1;
  emu_worker(x)->sm->clock += clocks;
  emu_path_sleep(x, clocks);
  x->fiber->spin += EMU_SPIN;
  x->fiber->poll.slept = true;
  x->budget = 0;
}

static void nothing(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  (void)x, (void)i, (void)mask;
}

// ---- lowering ----

static bool lower_table(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxTable *from = &l->fn->tables[in->operands[1].index];
  Table *table = lower_alloc(l, sizeof *table + sizeof table->pcs[0] * from->count);
  if (!table) return false;
  table->count = from->count;
  for (uint32_t k = 0; k < from->count; k++) table->pcs[k] = l->function->first + from->targets[k];
  out->more = table;
  out->a = lower_read(l, &in->operands[0]);
  out->run = branch_table;
  return true;
}

bool lower_control(Lower *l, const PtxInst *in, EmuInst *out) {
  uint32_t first = l->function->first;
  out->reconverge = first + (in->reconverge == PTX_NONE ? l->fn->inst_count : in->reconverge);
  switch (in->code->op) {
  case PTX_OP_BRA:
    out->target = first + in->operands[0].index;
    out->run = branch;
    return true;
  case PTX_OP_BRX: return lower_table(l, in, out);
  case PTX_OP_CALL: return lower_call(l, in, out);
  case PTX_OP_RET: out->run = l->fn->entry ? exit_lanes : do_return; return true;
  case PTX_OP_EXIT: out->run = exit_lanes; return true;
  case PTX_OP_TRAP: out->run = trap; return true;
  case PTX_OP_BRKPT:
  case PTX_OP_GRIDDEPCONTROL: out->run = nothing; return true;
  case PTX_OP_NANOSLEEP:
    out->a = lower_read(l, &in->operands[0]);
    out->run = sleep_lanes;
    return true;
  default: return false;
  }
}
