// Launches. Units (blocks, or clusters of them) are assigned to SMs round-robin: SM s gets units s, s + sms, ...
// and runs them in that order, as many at a time as fit, on one worker. Work proceeds in rounds: every SM runs
// until its log of L2 traffic is full, or none of its warps can progress; then all logs are drained into L2, in a
// fixed order. So results do not depend on the number of workers, unless blocks communicate with each other. Kernels
// whose blocks wait for other blocks in loops (a scan with look-back) run on one worker: how often they ask would
// otherwise be another number each time. Cooperative launches, which wait at the grid's barrier, keep all workers.
#include "base/error.h"
#include "base/heap.h"
#include "emu/core/trace.h"

enum {
  LOG_RECORDS = 16384,
  // Where logs are full before all have had their turn, so many rounds are one in which all had: 64 warps of
  // an SM, each with EMU_SPIN requests of 32 sectors, fill eleven logs.
  PARTS_OF_ROUND = 32
};
_Static_assert((int)EMU_LOG_RESERVE >= (int)SOL_MAX_RECORDS && (int)EMU_LOG_RESERVE < LOG_RECORDS / 2,
               "room for any instruction");

// ---- an SM's turn ----

static bool start_next(EmuCtx *x, EmuSm *sm) {
  EmuRun *run = x->launch;
  if (sm->resident >= run->units_per_sm || sm->next_unit >= run->unit_count) return false;
  uint32_t used = 0, slot = 0; // the first slot that no resident has
  for (EmuUnit *u = sm->units; u; u = u->next)
    if (u->slot < 32) used |= 1u << u->slot;
  while (slot < 31 && used >> slot & 1) slot++;
  EmuUnit *u = emu_start_unit(x, sm, emu_unit_at(run, sm->next_unit), slot);
  if (!u) {
    emu_find_launch(run, SOL_EMU_STACK, "out of memory for another block");
    emu_stop(run, SOL_EMU_FAULT);
    return false;
  }
  u->slot = slot;
  u->number = sm->next_unit;
  u->since = sm->freed;
  emu_trace_start(run, u);
  u->instructions = 0;
  u->next = NULL;
  EmuUnit **end = &sm->units;
  while (*end) end = &(*end)->next;
  *end = u;
  sm->resident++;
  sm->next_unit += run->sm_count;
  return true;
}

static void finish(EmuCtx *x, EmuSm *sm, EmuUnit **at) {
  EmuUnit *u = *at;
  *at = u->next;
  sm->resident--;
  uint64_t *done = &emu_worker(x)->units_done; // others read it for the progress
  __atomic_store_n(done, *done + 1, __ATOMIC_RELAXED);
  uint64_t longest = 0;
  for (uint32_t k = 0; k < u->count && emu_worker(x)->chains; k++) {
    uint64_t path = emu_path_end(u->blocks[k], emu_worker(x)->chains);
    if (path > longest) longest = path;
  }
  if (x->launch->takes) sm->freed = u->since + longest / EMU_WAIT;
  if (x->launch->units) x->launch->units[u->number] = (EmuUnitWork){longest, u->instructions};
  emu_end_unit(x, u);
}

// A unit whose spinning fills the log must not keep the others from their turn.
static void put_last(EmuUnit **at) {
  EmuUnit *u = *at;
  if (!u->next) return;
  *at = u->next;
  while (*at) at = &(*at)->next;
  *at = u;
  u->next = NULL;
}

static void start_counting(EmuRun *run, EmuSm *sm, EmuWorker *w) {
  if (!sm->l1.sets) sol_l1_init(&sm->l1, run->l1_bytes, sm->l1_memory, run->l1_size, NULL);
  w->log = (SolLog){.capacity = LOG_RECORDS, .records = w->records, .spare = sm->records};
  sm->log = &w->log;
}

// Sorting leaves it in the SM's memory, for L2.
static void end_counting(EmuRun *run, EmuSm *sm) {
  sol_log_sort(sm->log);
  run->logs[sm->index] = *sm->log;
}

// Runs what is resident, in order; the next unit starts only when all that are there wait for others, or, where units run
// by turns, as soon as there is room.
static void run_sm(EmuCtx *x, EmuSm *sm) {
  EmuRun *run = x->launch;
  EmuWorker *w = emu_worker(x);
  w->sm = sm;
  sm->full = false;
  sm->by_turns |= run->by_turns;
  if (run->counting) start_counting(run, sm, w);
  for (bool again = true; again && !emu_stopping(run);) {
    again = false;
    if (!sm->units) start_next(x, sm);
    while (sm->by_turns && start_next(x, sm)) {
    }
    for (EmuUnit **at = &sm->units; *at && !emu_stopping(run);) {
      w->progress = false;
      EmuTurn turn = emu_run_unit(x, *at);
      if (w->progress && !__atomic_load_n(&run->progress, __ATOMIC_RELAXED))
        __atomic_store_n(&run->progress, true, __ATOMIC_RELAXED);
      if (turn == EMU_TURN_DONE) {
        finish(x, sm, at);
        again = true;
      } else if (turn == EMU_TURN_MORE) {
        if (!w->progress) put_last(at);
        goto out;
      } else if (turn == EMU_TURN_YIELD) {
        again = true;
        at = &(*at)->next;
      } else {
        again = again || w->progress;
        at = &(*at)->next;
      }
      if (!*at && start_next(x, sm)) again = true;
    }
  }
out:
  sm->clock += w->instructions;
  __atomic_add_fetch(&run->instructions, w->instructions, __ATOMIC_RELAXED);
  w->instructions = 0;
  sm->done = !sm->units && sm->next_unit >= run->unit_count;
  if (run->counting) end_counting(run, sm);
}

// False: there is none left.
static bool work_sm(EmuRun *run, int worker) {
  uint32_t s = __atomic_fetch_add(&run->next_sm, 1, __ATOMIC_RELAXED);
  if (s >= run->sm_count) return false;
  if (!run->sms[s].done) run_sm(&run->workers[worker], &run->sms[s]);
  return true;
}
static void work_sms(void *ctx, int worker) {
  while (work_sm(ctx, worker)) {
  }
}

static void work_shards(void *ctx, int worker) {
  EmuRun *run = ctx;
  EmuWorker *w = emu_worker(&run->workers[worker]);
  for (;;) {
    uint32_t s = __atomic_fetch_add(&run->next_sm, 1, __ATOMIC_RELAXED);
    if (s >= SOL_SHARDS) return;
    if (!run->l2_started) emu_l2_start_shard(run, s);
    sol_l2_drain(run->emu->l2, s, run->logs, run->sm_count, w->l2_counts, run->program->count);
  }
}

static bool any_ready(const EmuRun *run) {
  for (uint32_t s = 0; s < run->sm_count; s++)
    for (const EmuUnit *u = run->sms[s].units; u; u = u->next)
      for (uint32_t k = 0; k < u->count; k++)
        for (uint32_t w = 0; w < u->blocks[k]->warp_count; w++)
          for (const EmuFiber *f = u->blocks[k]->warps[w].fibers; f; f = f->next)
            if (f->state == EMU_READY) return true;
  return false;
}

static bool any_full(const EmuRun *run) {
  for (uint32_t s = 0; s < run->sm_count; s++)
    if (run->sms[s].full) return true;
  return false;
}

// After a round without progress: whether the launch can never make progress again. Nothing outside the launch
// changes its memory.
static bool no_progress_possible(EmuRun *run, EmuIdle *idle, uint32_t *parts) {
  if (!any_ready(run)) return true;
  if (any_full(run) && ++*parts < PARTS_OF_ROUND) return false;
  *parts = 0;
  return emu_idle_round(run, idle);
}

void emu_tell_progress(EmuRun *run) {
  const SolEmuLaunch *launch = run->launch;
  if (!launch->progress) return;
  uint64_t done = 0;
  for (uint32_t k = 0; k < run->worker_count; k++)
    done += __atomic_load_n(&emu_worker(&run->workers[k])->units_done, __ATOMIC_RELAXED);
  SolEmuProgress progress = {.kernel = launch->kernel->fn->name,
                             .done = (double)done / (double)run->unit_count,
                             .instructions = __atomic_load_n(&run->instructions, __ATOMIC_RELAXED)};
  launch->progress(launch->progress_ctx, &progress);
}

// The emulator's workers; a process that was forked has none of its parent's. NULL: out of memory.
static SolPool *pool_of(SolEmu *emu) {
  if (emu->pool && !sol_pool_usable(emu->pool)) emu->pool = NULL;
  if (emu->pool && emu->pool_workers < emu->machine.workers) {
    sol_pool_destroy(emu->pool);
    emu->pool = NULL;
  }
  if (!emu->pool) {
    emu->pool_workers = emu->machine.workers; // the system may give fewer
    emu->pool = sol_pool_create(emu->pool_workers);
  }
  return emu->pool;
}

static void share(EmuRun *run, void (*work)(void *ctx, int worker)) {
  SolPool *pool = run->worker_count > 1 ? pool_of(run->emu) : NULL;
  if (pool)
    sol_pool_share(pool, (int)run->worker_count, work, run);
  else
    work(run, 0);
}

// Launches of a kernel that was soon done are not worth waking another worker for, unless this one takes longer.
static const double brief_seconds = 2e-4;

static void run_sms(EmuRun *run) {
  run->next_sm = 0;
  while (run->program->brief && sol_thread_clock() - run->started < brief_seconds)
    if (!work_sm(run, 0)) return;
  share(run, work_sms);
}

static void drain_logs(EmuRun *run) {
  enum { FEW = 4096 };
  uint64_t records = 0;
  for (uint32_t s = 0; s < run->sm_count; s++) records += run->logs[s].count;
  run->next_sm = 0;
  if (records < FEW)
    work_shards(run, 0);
  else
    share(run, work_shards);
}

static void rounds(EmuRun *run, EmuIdle *idle) {
  uint32_t parts = 0;
  for (;;) {
    run->progress = false;
    run_sms(run);
    if (run->counting) {
      drain_logs(run);
      run->l2_started = true;
      for (uint32_t s = 0; s < run->sm_count; s++) sol_log_empty(&run->logs[s]);
    }
    if (emu_stopping(run)) return;
    bool done = true;
    for (uint32_t s = 0; s < run->sm_count; s++) done = done && run->sms[s].done;
    if (done) return;
    emu_tell_progress(run);
    if (run->takes && !any_full(run) && emu_path_let_go(run)) run->progress = true;
    if (run->progress) {
      parts = 0;
      idle->rounds = 0;
      idle->start = run->instructions;
    } else if (no_progress_possible(run, idle, &parts)) {
      emu_report_deadlock(run);
      emu_stop(run, SOL_EMU_FAULT);
      return;
    }
  }
}

// ---- set-up ----

// The first place in memory with EMU_APART bytes to spare at its end that is aligned so.
static void *aligned(void *memory) {
  return (uint8_t *)memory + (EMU_APART - (uintptr_t)memory % EMU_APART) % EMU_APART;
}

// Kept from launch to launch: getting so much memory anew costs more than a small launch.
static bool keep_memory(void **memory, size_t *bytes, size_t wanted) {
  if (*bytes >= wanted) return true;
  sol_heap_free(*memory);
  *memory = sol_heap_alloc(wanted);
  *bytes = *memory ? wanted : 0;
  return *memory;
}

// What is left of an SM's memory for L1: the driver sets aside for shared memory the smallest size of the list that holds that
// of the blocks which fit, with the system's 1 KiB of each, and L1 itself needs some.
static uint64_t l1_left(const EmuRun *run) {
  static const uint16_t kib[] = {8, 16, 32, 64, 100, 132, 164, 196, 228};
  const SolEmuMachine *m = &run->emu->machine;
  uint64_t used = (run->shared_bytes + 1024) * run->cluster_size * run->units_per_sm, aside = m->smem_per_sm;
  for (size_t i = sizeof kib / sizeof *kib; i-- > 0;)
    if ((uint64_t)kib[i] * 1024 >= used && (uint64_t)kib[i] * 1024 < aside) aside = (uint64_t)kib[i] * 1024;
  aside += m->l1_overhead;
  return m->l1_bytes > aside ? m->l1_bytes - aside : 0;
}

static SolStatus make_caches(EmuRun *run, SolError *err) {
  SolEmu *emu = run->emu;
  bool room = keep_memory(&emu->sm_memory, &emu->sm_bytes, sizeof *run->sms * run->sm_count + EMU_APART);
  run->logs = sol_heap_alloc(sizeof *run->logs * run->sm_count);
  if (!room || !run->logs) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  run->sms = aligned(emu->sm_memory);
  for (uint32_t s = 0; s < run->sm_count; s++) run->sms[s] = (EmuSm){.index = s, .next_unit = s};
  if (!run->counting) return SOL_OK;
  uint64_t l1 = l1_left(run);
  size_t l1_size = (sol_l1_bytes(l1) + 63) / 64 * 64;
  size_t log_size = sizeof(SolRecord) * LOG_RECORDS;
  size_t total = (l1_size + log_size) * run->sm_count + log_size * run->worker_count + EMU_APART;
  if (!keep_memory(&emu->cache_memory, &emu->cache_bytes, total))
    return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  uint8_t *at = aligned(emu->cache_memory);
  for (uint32_t s = 0; s < run->sm_count; s++, at += l1_size + log_size) {
    run->sms[s].l1_memory = at;
    run->sms[s].records = (SolRecord *)(void *)(at + l1_size);
    run->logs[s] = (SolLog){.capacity = LOG_RECORDS};
  }
  for (uint32_t k = 0; k < run->worker_count; k++, at += log_size)
    emu_worker(&run->workers[k])->records = (SolRecord *)(void *)at;
  run->l1_bytes = l1;
  run->l1_size = l1_size;
  SolStatus status =
      sol_l1_init(&run->sms[0].l1, l1, run->sms[0].l1_memory, l1_size, err); // says if it cannot be
  return status ? status : emu_l2_open(run, err);
}

static bool make_shapes(EmuWorker *w, uint32_t count) {
  if (count > EMU_SHAPES) count = EMU_SHAPES;
  // What their requests were stands apart: most take few of its many lines.
  w->shape_memory = sol_heap_alloc((sizeof(EmuShape) + sizeof(SolCoalesced)) * count + EMU_APART);
  if (!w->shape_memory) return false;
  w->shapes = aligned(w->shape_memory);
  SolCoalesced *coalesced = (SolCoalesced *)(void *)(w->shapes + count);
  for (uint32_t k = 0; k < count; k++) {
    w->shapes[k].index = UINT32_MAX;
    w->shapes[k].coalesced = &coalesced[k];
  }
  return true;
}

static bool make_worker(EmuRun *run, EmuCtx *x, uint32_t index) {
  const EmuProgram *p = run->program;
  size_t counts = sizeof(SolEmuCounts) * p->count, l1 = sizeof(SolL1Counts) * p->count;
  size_t l2 = sizeof(SolL2Counts) * (p->count + 1), last = sizeof(EmuAlloc *) * p->count;
  size_t frames = sizeof(EmuFrame *) * p->function_count, stretches = sizeof(EmuStretch) * (p->count + 1);
  size_t bytes = sizeof(EmuWorker) + 2 * counts + l1 + l2 + last + frames + stretches + 64 + EMU_APART;
  uint8_t *memory = sol_heap_alloc(bytes);
  if (!memory) return false;
  memset(memory, 0, bytes);
  uint8_t *at = aligned(memory);
  EmuWorker *w = (EmuWorker *)(void *)at;
  at += (sizeof *w + 63) / 64 * 64;
  w->memory = memory;
  *x = (EmuCtx){.launch = run, .worker = index, .more = w, .on = w->on, .counts = (SolEmuCounts *)(void *)at};
  w->idle_counts = (SolEmuCounts *)(void *)(at += counts);
  w->l1_counts = (SolL1Counts *)(void *)(at += counts);
  w->l2_counts = (SolL2Counts *)(void *)(at += l1);
  w->last = (EmuAlloc **)(void *)(at += l2);
  w->free_frames = (EmuFrame **)(void *)(at += last);
  w->stretches = (EmuStretch *)(void *)(at + frames);
  x->bank[EMU_BANK_LAUNCH] = run->consts;
  if (make_shapes(w, p->shape_count)) return true;
  sol_heap_free(memory);
  return false;
}

static SolStatus make_workers(EmuRun *run, uint32_t count, SolError *err) {
  size_t consts = run->program->const_bytes + 1024;
  run->param_room = run->launch->kernel->fn->param_size;
  uint8_t *memory = sol_heap_alloc(consts + (size_t)run->param_room + 128);
  run->worker_memory = sol_heap_alloc(sizeof *run->workers * count + EMU_APART);
  run->const_memory = memory;
  if (!memory || !run->worker_memory) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  memset(memory, 0, consts + (size_t)run->param_room + 128);
  run->workers = aligned(run->worker_memory);
  run->consts = memory + (64 - (uintptr_t)memory % 64) % 64;
  run->params = run->consts + (consts + 63) / 64 * 64;
  if (run->param_room) memcpy(run->params, run->launch->params, (size_t)run->param_room);
  emu_fill_consts(run);
  for (; run->worker_count < count; run->worker_count++)
    if (!make_worker(run, &run->workers[run->worker_count], run->worker_count))
      return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  return SOL_OK;
}

// Cooperative groups find the memory of their grid barrier through %envreg1 and 2: a size, then the barrier.
static SolStatus make_workspace(EmuRun *run, SolError *err) {
  if (!run->launch->cooperative) return SOL_OK;
  run->workspace = emu_add_alloc(run->emu, 64, "grid barrier");
  if (!run->workspace) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  uint32_t size = 64;
  memcpy(run->workspace->host, &size, 4);
  emu_fill_consts(run);
  return SOL_OK;
}

// Whether threads have arrays in local memory, not only a few words there.
static bool local_array(const EmuProgram *p) {
  enum { FEW = 64 }; // bytes
  return p->local_bytes > FEW;
}

static void clean(EmuRun *run) {
  emu_touch_clear(run);
  emu_observe_free(run);
  if (run->workspace) emu_drop_alloc(run->emu, run->workspace);
  for (uint32_t s = 0; run->sms && run->workers && s < run->sm_count; s++)
    while (run->sms[s].units) finish(&run->workers[0], &run->sms[s], &run->sms[s].units);
  emu_trace_free(run);
  for (uint32_t k = 0; k < run->worker_count; k++) emu_free_worker(&run->workers[k]);
  sol_heap_free(run->worker_memory);
  sol_heap_free(run->const_memory);
  sol_heap_free(run->logs);
}

static int worker_count(const EmuRun *run) {
  int most = run->program->polls && !run->launch->cooperative ? 1 : run->emu->machine.workers;
  return most < (int)run->sm_count ? most : (int)run->sm_count;
}

SolStatus sol_emu_launch(SolEmu *emu, const SolEmuLaunch *launch, SolEmuResult *result, SolError *err) {
  if (!launch->kernel) return sol_fail(err, SOL_ERR_ARGUMENT, "no kernel");
  if (result->kernel && result->kernel != launch->kernel)
    return sol_fail(err, SOL_ERR_ARGUMENT, "the result is of another kernel");
  EmuRun run = {.emu = emu, .launch = launch, .program = launch->kernel->program, .result = result};
  run.observing = launch->observe;
  run.counting = !launch->no_counts || run.observing;
  run.checking = launch->checks || emu->machine.track_init;
  run.bare = !run.counting && !run.checking;
  run.quantum = EMU_QUANTUM;
  run.started = sol_thread_clock();
  SolStatus status = emu_lay_out(&run, err);
  // The arrays of all resident threads share L1: what one block would find there, many do not.
  run.by_turns = run.counting && run.cluster_size == 1 && run.units_per_sm > 1 && local_array(run.program);
  if (run.by_turns) run.quantum = EMU_SHORT_QUANTUM;
  if (!status && run.observing) status = emu_statics_make(launch->kernel->program, err);
  if (status) return status;
  run.statics = run.program->statics;
  run.takes = run.observing && run.cluster_size == 1 && run.statics->takes;
  run.by_turns = run.by_turns || run.takes;
  run.held_at = UINT64_MAX;
  emu->launches++;
  emu->changes++;
  status = make_workers(&run, (uint32_t)worker_count(&run), err);
  if (!status) status = make_caches(&run, err);
  if (!status) status = emu_result_prepare(&run, err);
  if (!status) status = make_workspace(&run, err);
  if (!status && !emu_observe_make(&run)) status = sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  if (!status) {
    EmuIdle idle = {0};
    rounds(&run, &idle);
    launch->kernel->program->brief = sol_thread_clock() - run.started < brief_seconds;
    emu_idle_free(&idle);
    emu_result_add(&run);
    if (run.counting) emu_l2_result(&run);
    status = emu_touch_sum(&run, err);
  }
  if (!emu_children_result(&run) && !status) status = sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  clean(&run);
  return status;
}
