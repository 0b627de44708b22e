// The scheduler: a fiber runs until it waits, ends or has used its time slice; then the next warp of the block
// runs, and after all warps the next block.
#include "emu/core/async.h"
#include "emu/core/trace.h"

void emu_stop(EmuRun *run, SolEmuEnd end) {
  int none = 0;
  __atomic_compare_exchange_n(&run->stop, &none, (int)end, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool emu_stopping(const EmuRun *run) {
  return __atomic_load_n(&run->stop, __ATOMIC_RELAXED) != 0;
}

void emu_expand(EmuCtx *x, uint32_t mask) {
  x->on_mask = mask;
  int32_t *on = x->on;
  for (int l = 0; l < EMU_LANES; l++) on[l] = -(int32_t)(mask >> l & 1);
}

// Of an observed launch. `path`: of the warp. `trace`: NULL: the unit is not traced.
static inline __attribute__((always_inline)) uint64_t execute_on(EmuCtx *x, EmuPath *path,
                                                                 EmuTraceWarp *trace) {
  const EmuInst *code = x->launch->program->code;
  SolEmuCounts *counts = x->counts;
  const uint8_t *takes = x->launch->takes ? x->launch->statics->paths : NULL;
  uint64_t done = 0;
  for (; x->budget > 0; x->budget--, done++) {
    if (takes && takes[code[x->pc].index] & EMU_PATH_TAKES && emu_path_held(x)) break;
    const EmuInst *i = &code[x->pc++];
    emu_path_step(x->launch->statics, path, i->index);
    uint32_t mask = x->active & emu_pred(x, i->guard);
    if (trace) emu_trace_step(x, trace, i->index, mask);
    SolEmuCounts *c = &counts[i->index];
    c->executions++;
    c->lanes += emu_popc(mask);
    if (mask) i->run(x, i, mask);
    if (x->pc == x->reconverge && x->active) {
      emu_store_top(x);
      emu_reconverge(x);
    }
  }
  return done;
}

// The plain instructions from x->pc on, `n` at most: nothing among them but the budget has to be looked at after each.
static inline __attribute__((always_inline)) uint32_t execute_straight(EmuCtx *x, const EmuInst *code,
                                                                       uint32_t n) {
  EmuStretch *stretches = emu_worker(x)->stretches;
  emu_worker(x)->since = x->pc;
  const EmuInst *first = &code[x->pc], *i = first, *end = first + n;
  uint32_t active = x->active, lanes = emu_popc(active);
  do {
    if (!i->run) { // left out, with those after it
      i += i->target;
      continue;
    }
    uint32_t mask = active;
    if (i->guard != EMU_TRUE) {
      mask &= emu_pred(x, i->guard);
      x->counts[i->index].lanes += (uint64_t)emu_popc(mask) - lanes;
    }
    if (mask) i->run(x, i, mask);
    i++;
  } while (i < end && x->budget > 0);
  n = (uint32_t)(i - first);
  stretches[x->pc].executions++;
  stretches[x->pc].lanes += lanes;
  x->pc += n;
  stretches[x->pc].executions--;
  stretches[x->pc].lanes -= lanes;
  return n;
}

EMU_HOT static uint64_t execute(EmuCtx *x) {
  const EmuInst *code = x->launch->bare ? x->launch->program->bare : x->launch->program->code;
  const uint16_t *straight = x->launch->program->straight;
  SolEmuCounts *counts = x->counts;
  uint64_t done = 0;
  while (x->budget > 0) {
    uint32_t n = straight[x->pc] < x->budget ? straight[x->pc] : (uint32_t)x->budget;
    if (n > 1 && !x->idle) { // an idle fiber's are counted elsewhere
      n = execute_straight(x, code, n);
    } else {
      const EmuInst *i = &code[x->pc++];
      emu_worker(x)->since = i->index;
      uint32_t mask = x->active & emu_pred(x, i->guard);
      SolEmuCounts *c = &counts[i->index];
      c->executions++;
      c->lanes += emu_popc(mask);
      if (mask && i->run) i->run(x, i, mask);
      n = 1;
    }
    if (x->pc == x->reconverge && x->active) {
      emu_store_top(x);
      emu_reconverge(x);
    }
    x->budget -= (int32_t)n;
    done += n;
  }
  return done;
}

EMU_HOT static uint64_t execute_observed(EmuCtx *x) {
  return execute_on(x, &x->block->paths[x->warp->index], NULL);
}

static uint64_t execute_traced(EmuCtx *x) {
  return execute_on(x, &x->block->paths[x->warp->index], emu_trace_warp(x->block, x->warp->index));
}

// Whether an idle fiber is about to execute its access once more, after as many instructions as from one time to the next: it has not left
// the loop.
static bool comes_again(const EmuCtx *x, EmuFiber *f) {
  EmuPoll *p = &f->poll;
  if (!p->changed || f->state != EMU_READY || x->launch->program->code[x->pc].index != p->at->index)
    return false;
  p->left = 1;
  p->allowed = p->length + 1;
  return true;
}

// A turn of a fiber that waits for others (poll.c); whether it goes on.
static bool run_idle(EmuCtx *x, EmuFiber *f) {
  EmuWorker *w = emu_worker(x);
  SolEmuCounts *counts = x->counts;
  x->counts = w->idle_counts;
  x->idle = true;
  x->budget = f->poll.left;
  f->poll.again = false;
  uint64_t done = execute(x);
  x->counts = counts;
  x->idle = false;
  w->instructions += done;
  if (f->state == EMU_ENDED) return true;
  if (f->state == EMU_READY) emu_store_top(x);
  if (f->poll.idle && !f->poll.again && (f->poll.left -= (int32_t)done) <= 0 &&
      !comes_again(x, f)) { // it has left the loop
    f->poll = (EmuPoll){0};
    if (x->launch->observing) emu_path_goes_on(x);
  }
  if (f->poll.idle && f->state == EMU_READY && f->lanes != x->active) emu_split(x, x->active);
  return !f->poll.idle;
}

// Whether it did anything but spin.
static bool run_fiber(EmuCtx *x, EmuFiber *f) {
  EmuWorker *w = emu_worker(x);
  x->fiber = f;
  f->spin = 0;
  w->turn_effort = 0;
  x->budget = x->launch->quantum;
  emu_reconverge(x);
  if (f->state != EMU_READY) return true;
  if (f->poll.idle) return run_idle(x, f);
  x->budget = x->launch->quantum;
  EmuPath *path = x->launch->observing ? &x->block->paths[x->warp->index] : NULL, before = {0};
  if (path) before = *path;
  uint64_t done = !path ? execute(x) : emu_traced(x) ? execute_traced(x) : execute_observed(x);
  w->instructions += done;
  if (!done) return false; // held before its first instruction
  if (!f->poll.idle) f->poll.left += (int32_t)done;
  bool ended = f->state == EMU_ENDED, spins = !ended && (f->spin >= EMU_SPIN || f->poll.idle);
  // How long a GPU's warps spin depends on when the others come, which is not known here.
  if (!spins) x->block->unit->instructions += done;
  if (spins && path && !f->poll.idle) before.sleeps = path->sleeps, *path = before;
  if (ended) return true;
  if (f->state == EMU_READY) emu_store_top(x);
  if (spins && f->state == EMU_READY && f->lanes != x->active) emu_split(x, x->active);
  return !spins;
}

static bool run_warp(EmuCtx *x, EmuWarp *warp) {
  bool progress = false;
  x->warp = warp;
  x->bank[EMU_BANK_WARP] = warp->consts;
  if (warp->fibers->next) emu_merge(x, warp);
  for (EmuFiber *f = warp->fibers; f; f = f->next) {
    if (f->state != EMU_READY) continue;
    progress = run_fiber(x, f) || progress;
    if (emu_worker(x)->sm->full || emu_stopping(x->launch)) break;
  }
  emu_sweep(x, warp);
  return progress;
}

static void check_time(EmuRun *run) {
  const SolEmuLaunch *launch = run->launch;
  if (launch->interrupt && *launch->interrupt) emu_stop(run, SOL_EMU_INTERRUPTED);
  if (launch->max_seconds > 0 && sol_thread_clock() - run->started > launch->max_seconds)
    emu_stop(run, SOL_EMU_TIME_LIMIT);
}

enum { TURNS_PER_LOOK = 64 };
static void poll(EmuCtx *x) {
  EmuRun *run = x->launch;
  EmuWorker *w = emu_worker(x);
  const SolEmuLaunch *launch = run->launch;
  // By effort and turns too: some instructions take as long as many.
  if (w->instructions < 1 << 16 && w->effort < EMU_EFFORT && ++w->turns < TURNS_PER_LOOK &&
      !launch->max_instructions)
    return;
  w->effort = w->turns = 0;
  uint64_t total = __atomic_add_fetch(&run->instructions, w->instructions, __ATOMIC_RELAXED);
  w->sm->clock += w->instructions;
  w->instructions = 0;
  if (launch->max_instructions && total > launch->max_instructions) emu_stop(run, SOL_EMU_INSTRUCTION_LIMIT);
  check_time(run);
  if (x == run->workers) emu_tell_progress(run); // a block may run for long
}

static bool any_waits_for_lanes(EmuCtx *x, EmuBlock *b) {
  bool any = false;
  for (uint32_t k = 0; k < b->warp_count; k++) {
    x->warp = &b->warps[k];
    x->bank[EMU_BANK_WARP] = x->warp->consts;
    x->fiber = NULL;
    if (b->warps[k].fibers) any = emu_release_synced(x, &b->warps[k], true) || any;
  }
  return any;
}

static bool all_wait(const EmuBlock *b) {
  for (uint32_t k = 0; k < b->warp_count; k++)
    for (const EmuFiber *f = b->warps[k].fibers; f; f = f->next)
      if (f->state == EMU_READY) return false;
  return true;
}

// A round of turns after the other, until it ends or nothing in it goes on.
static EmuTurn run_block(EmuCtx *x, EmuBlock *b) {
  EmuWorker *w = emu_worker(x);
  x->block = b;
  x->bank[EMU_BANK_BLOCK] = b->consts;
  for (;;) {
    bool progress = false;
    for (uint32_t n = 0; n < b->warp_count; n++) {
      EmuWarp *warp = &b->warps[b->turn];
      if (warp->live && run_warp(x, warp)) progress = true;
      poll(x);
      if (emu_stopping(x->launch)) return EMU_TURN_MORE;
      if (w->sm->full) {
        w->progress = w->progress || progress;
        return EMU_TURN_MORE;
      }
      b->turn = b->turn + 1 == b->warp_count ? 0 : b->turn + 1;
    }
    w->progress = w->progress || progress;
    if (!b->warps_live) return EMU_TURN_DONE;
    if (progress && w->sm->by_turns) return EMU_TURN_YIELD;
    if (progress) continue;
    if (b->unit->count == 1 && emu_async_force(x, b->unit)) {
      w->progress = true;
      continue;
    }
    if (b->unit->count > 1 || !all_wait(b) || !any_waits_for_lanes(x, b)) return EMU_TURN_STUCK;
    w->progress = true;
  }
}

static EmuTurn run_blocks(EmuCtx *x, EmuUnit *unit) {
  if (unit->count == 1) return run_block(x, unit->blocks[0]);
  EmuWorker *w = emu_worker(x);
  for (;;) {
    bool before = w->progress, live = false;
    w->progress = false;
    for (uint32_t n = 0; n < unit->count; n++) {
      EmuBlock *b = unit->blocks[unit->turn];
      if (b->warps_live) {
        EmuTurn turn = run_block(x, b);
        if (turn == EMU_TURN_MORE) {
          w->progress = w->progress || before;
          return turn;
        }
      }
      live = live || b->warps_live;
      unit->turn = unit->turn + 1 == unit->count ? 0 : unit->turn + 1;
    }
    bool progress = w->progress;
    w->progress = w->progress || before;
    if (!live) return EMU_TURN_DONE;
    if (!progress && !emu_async_force(x, unit)) return EMU_TURN_STUCK;
    w->progress = true;
  }
}

EmuTurn emu_run_unit(EmuCtx *x, EmuUnit *unit) {
  check_time(x->launch); // a unit that spins has many short turns
  EmuTurn turn = run_blocks(x, unit);
  if (turn == EMU_TURN_DONE) emu_async_finish(x, unit);
  return turn;
}
