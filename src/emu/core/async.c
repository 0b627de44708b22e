// Asynchronous operations that are issued and not complete, by unit.
#include "emu/core/async.h"

#include "base/heap.h"
#include "emu/core/trace.h"

enum { MOST_PENDING = 4096 }; // of a unit; beyond them the oldest completes

struct EmuAsync {
  EmuAsync *next; // in the order of issue
  EmuAsyncRun *run;
  const EmuInst *inst;
  EmuWarp *warp;
  EmuFrame *frame;
  const uint8_t *barrier;
  uint32_t mask, group;
  uint8_t kind; // EmuAsyncKind
  _Alignas(16) uint8_t what[];
};

static uint64_t draw(EmuUnit *unit) { // splitmix64
  uint64_t z = unit->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

// Runs it with the banks of the warp that issued it, then goes back to the running one.
static void run_as(EmuCtx *x, const EmuAsync *a) {
  EmuBlock *block = x->block;
  EmuWarp *warp = x->warp;
  EmuFrame *frame = x->frame;
  uint8_t *bank[4];
  memcpy(bank, x->bank, sizeof bank);
  x->block = a->warp->block, x->warp = a->warp, x->frame = a->frame;
  x->bank[EMU_BANK_REGS] = a->frame->regs;
  x->bank[EMU_BANK_BLOCK] = x->block->consts;
  x->bank[EMU_BANK_WARP] = x->warp->consts;
  a->run(x, a->inst, a->mask, a->what);
  x->block = block, x->warp = warp, x->frame = frame;
  memcpy(x->bank, bank, sizeof bank);
}

static EmuAsync *unlink_at(EmuUnit *unit, EmuAsync **at) {
  EmuAsync *a = *at;
  *at = a->next;
  if (unit->last_async == &a->next) unit->last_async = at;
  unit->async_count--;
  return a;
}

static void free_async(EmuCtx *x, EmuAsync *a) {
  emu_release_frame(x, a->frame);
  sol_heap_free(a);
}

static void complete(EmuCtx *x, EmuUnit *unit, EmuAsync **at) {
  EmuAsync *a = unlink_at(unit, at);
  run_as(x, a);
  emu_worker(x)->changes++;
  free_async(x, a);
}

void emu_async(EmuCtx *x, const EmuInst *i, EmuAsyncKind kind, uint32_t mask, uint32_t group,
               const uint8_t *barrier, EmuAsyncRun *run, const void *what, size_t bytes) {
  EmuUnit *unit = x->block->unit;
  uint64_t seed = x->launch->launch->async_order;
  EmuAsync *a = seed ? sol_heap_alloc(sizeof *a + bytes) : NULL;
  if (!a) {
    run(x, i, mask, what);
    return;
  }
  *a = (EmuAsync){.run = run,
                  .inst = i,
                  .warp = x->warp,
                  .frame = x->frame,
                  .barrier = barrier,
                  .mask = mask,
                  .group = group,
                  .kind = (uint8_t)kind};
  memcpy(a->what, what, bytes);
  a->frame->refs++;
  if (!unit->last_async) unit->last_async = &unit->asyncs, unit->random = seed * 0x10001 + unit->id;
  *unit->last_async = a;
  unit->last_async = &a->next;
  if (++unit->async_count > MOST_PENDING) complete(x, unit, &unit->asyncs);
}

// ---- which of them ----

typedef struct Wanted {
  const EmuWarp *warp;    // NULL: of any
  const uint8_t *barrier; // NULL: any
  uint32_t mask, groups;
  uint8_t kind;
} Wanted;

static bool is_wanted(const EmuAsync *a, const Wanted *w) {
  if (w->barrier) return a->barrier == w->barrier;
  return !w->warp || (a->warp == w->warp && a->kind == w->kind && a->mask & w->mask && a->group < w->groups);
}

// A warp's wgmma complete in order, and so do its tcgen05: one that overwrites its sums does so before the next adds to them.
static EmuAsync **first_before(EmuUnit *unit, EmuAsync **chosen) {
  const EmuAsync *a = *chosen;
  EmuAsync **at = &unit->asyncs;
  if (a->kind != EMU_ASYNC_WGMMA && a->kind != EMU_ASYNC_TCGEN05) return chosen;
  while ((*at)->kind != a->kind || (*at)->warp != a->warp) at = &(*at)->next;
  return at;
}

static bool complete_one(EmuCtx *x, EmuUnit *unit, const Wanted *w) {
  uint64_t count = 0;
  for (const EmuAsync *a = unit->asyncs; a; a = a->next) count += is_wanted(a, w);
  if (!count) return false;
  uint64_t skip = draw(unit) % count;
  EmuAsync **at = &unit->asyncs;
  while (!is_wanted(*at, w) || skip--) at = &(*at)->next;
  complete(x, unit, first_before(unit, at));
  return true;
}

void emu_async_wait(EmuCtx *x, const EmuWarp *warp, EmuAsyncKind kind, uint32_t mask, uint32_t groups) {
  const Wanted w = {.warp = warp, .mask = mask, .groups = groups, .kind = (uint8_t)kind};
  while (complete_one(x, warp->block->unit, &w) && !emu_stopping(x->launch)) {
  }
}

bool emu_async_poll(EmuCtx *x, const uint8_t *barrier) {
  return complete_one(x, x->block->unit, &(Wanted){.barrier = barrier});
}

bool emu_async_force(EmuCtx *x, EmuUnit *unit) {
  return complete_one(x, unit, &(Wanted){0});
}

// ---- the end ----

static void find_unwaited(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what) {
  (void)what;
  emu_find(x, i, mask, SOL_EMU_BAD_USE, 0, 0,
           "the block ends before anything has waited for this copy, which uses its shared memory");
  emu_fault(x);
}

void emu_async_finish(EmuCtx *x, EmuUnit *unit) {
  while (unit->asyncs && !emu_stopping(x->launch)) {
    EmuAsync *a = unit->asyncs, found = *a;
    found.run = find_unwaited;
    if (a->kind == EMU_ASYNC_BULK || a->kind == EMU_ASYNC_BARRIER) run_as(x, &found);
    complete(x, unit, &unit->asyncs);
  }
}

void emu_async_drop(EmuCtx *x, EmuUnit *unit) {
  while (unit->asyncs) free_async(x, unlink_at(unit, &unit->asyncs));
}

void emu_again(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  x->counts[i->index].executions--;
  x->counts[i->index].lanes -= emu_popc(mask);
  x->pc = i->index;
  if (emu_traced(x)) emu_trace_spin(x);
  x->fiber->spin += EMU_SPIN;
  x->budget = 0;
}
