// The trace of one unit (a block, or the blocks of a cluster), the middle one of the grid: see SolEmuTrace. Tokens stand for
// what warps wait for: a phase of an mbarrier, one use of a barrier, a group of copies or of wgmma. Whether an operation
// contributes to one phase or to the next does not depend on the order in which warps are emulated, as phases follow each
// other by waits; a program for which it does is wrong.
#include "emu/core/trace.h"
#include "base/heap.h"

enum { MOST_EVENTS = 1 << 17, MOST_BARRIERS = 1024, GROUPS = 64 };

typedef struct TraceBarrier { // an mbarrier
  const uint8_t *host;
  uint32_t now, last; // tokens of the running phase and of the one before; 0: none
} TraceBarrier;

typedef struct TraceGroups { // of a warp and a kind of asynchronous operation
  uint32_t open;             // token of those that are not committed; 0: there are none
  // By the number of the group, modulo GROUPS; a group of none has the token of the one before.
  uint32_t made[GROUPS];
  uint32_t count;
} TraceGroups;

typedef struct TraceWarp {
  EmuTraceWarp run;
  TraceGroups groups[EMU_TRACE_GROUPS];
  SolEmuEvent *events;
  uint32_t count, cap;
} TraceWarp;

struct EmuTrace {
  TraceWarp *warps; // of all blocks
  uint32_t warps_per_block, blocks, tokens, events;
  uint32_t (*syncs)[EMU_SYNCS]; // by block: the token of each barrier's present use
  TraceBarrier barriers[MOST_BARRIERS];
  uint32_t barrier_count;
  uint64_t block_id;
  bool full;
};

// ---- of a run ----

bool emu_trace_make(EmuRun *run) {
  size_t warps = sizeof(TraceWarp) * run->warps * run->cluster_size,
         syncs = sizeof(uint32_t[EMU_SYNCS]) * run->cluster_size;
  EmuTrace *t = sol_heap_alloc(sizeof *t + warps + syncs);
  if (!t) return false;
  memset(t, 0, sizeof *t + warps + syncs);
  t->warps = (TraceWarp *)(void *)(t + 1);
  t->syncs = (void *)((uint8_t *)(t + 1) + warps);
  t->warps_per_block = run->warps;
  t->blocks = run->cluster_size;
  run->trace = t;
  return true;
}

void emu_trace_free(EmuRun *run) {
  EmuTrace *t = run->trace;
  for (uint32_t w = 0; t && w < t->warps_per_block * t->blocks; w++) sol_heap_free(t->warps[w].events);
  sol_heap_free(t);
  run->trace = NULL;
}

void emu_trace_start(EmuRun *run, EmuUnit *unit) {
  unit->trace = run->trace && unit->number == run->unit_count / 2 ? run->trace : NULL;
  if (unit->trace) unit->trace->block_id = unit->blocks[0]->id;
}

EmuTraceWarp *emu_trace_warp(const EmuBlock *block, uint32_t warp) {
  EmuTrace *t = block->unit->trace;
  return t ? &t->warps[block->rank * t->warps_per_block + warp].run : NULL;
}

// ---- events ----

static TraceWarp *warp_of(const EmuBlock *block, uint32_t warp) {
  return (TraceWarp *)(void *)emu_trace_warp(block, warp); // its first field
}

static bool make_room(TraceWarp *w) {
  if (w->count < w->cap) return true;
  uint32_t cap = w->cap ? 2 * w->cap : 256;
  SolEmuEvent *room = sol_heap_realloc(w->events, cap * sizeof *room);
  if (!room) return false;
  w->events = room;
  w->cap = cap;
  return true;
}

// Lanes that do the same one after another are one event.
static bool joins_last(const TraceWarp *w, SolEmuStep step, uint32_t token) {
  const SolEmuEvent *e = w->count ? &w->events[w->count - 1] : NULL;
  return e && e->step == step && e->token == token && e->inst == w->run.pc && !w->run.issues;
}

static void put(EmuTrace *t, TraceWarp *w, SolEmuStep step, uint32_t token, uint32_t count, uint8_t detail) {
  if (t->full) return;
  if (joins_last(w, step, token)) {
    w->events[w->count - 1].count += count;
    return;
  }
  if (t->events == MOST_EVENTS || !make_room(w)) t->full = true;
  if (t->full) return;
  t->events++;
  w->events[w->count++] = (SolEmuEvent){.inst = w->run.pc,
                                        .token = token,
                                        .count = count,
                                        .issues = w->run.issues,
                                        .waits = w->run.waits,
                                        .step = (uint8_t)step,
                                        .detail = detail};
  w->run.issues = 0;
  w->run.waits = 0;
}

static void put_running(EmuCtx *x, SolEmuStep step, uint32_t token, uint32_t count, uint8_t detail) {
  put(x->block->unit->trace, warp_of(x->block, x->warp->index), step, token, count, detail);
}

void emu_trace_put(EmuCtx *x, SolEmuStep step, uint32_t count, uint8_t detail) {
  put_running(x, step, 0, count, detail);
}

// Events have at most two tokens each; where there are more the rest of the trace is left out.
static uint32_t new_token(EmuTrace *t) {
  if (t->tokens >= 2 * MOST_EVENTS) t->full = true;
  return t->full ? 0 : ++t->tokens;
}

// ---- groups ----

static uint32_t open_token(EmuTrace *t, TraceGroups *g) {
  if (!g->open) g->open = new_token(t);
  return g->open;
}

void emu_trace_grouped(EmuCtx *x, EmuTraceGroup kind, SolEmuStep step, uint32_t count) {
  EmuTrace *t = x->block->unit->trace;
  TraceWarp *w = warp_of(x->block, x->warp->index);
  put(t, w, step, open_token(t, &w->groups[kind]), count, kind == EMU_TRACE_STORES);
}

void emu_trace_commit(EmuCtx *x, EmuTraceGroup kind) {
  TraceGroups *g = &warp_of(x->block, x->warp->index)->groups[kind];
  uint32_t before = g->count ? g->made[(g->count - 1) % GROUPS] : 0;
  g->made[g->count++ % GROUPS] = g->open ? g->open : before;
  g->open = 0;
}

// How often a warp asks is not known: it depends on when the others come. A wait that passed counts as one.
static void end_spin(EmuTraceWarp *w) {
  if (w->spins) w->issues = w->before_spin, w->waits = w->waits_before_spin;
  w->spins = false;
}

void emu_trace_wait_group(EmuCtx *x, EmuTraceGroup kind, uint64_t left, bool all, bool read) {
  end_spin(emu_trace_warp(x->block, x->warp->index));
  const TraceGroups *g = &warp_of(x->block, x->warp->index)->groups[kind];
  uint32_t token = all ? g->open : 0;
  if (!token && (all || left < g->count) && g->count)
    token = g->made[(g->count - 1 - (all ? 0 : (uint32_t)left)) % GROUPS];
  if (left >= GROUPS && !all) return;
  put_running(x, SOL_EMU_STEP_WAIT, token, 1, read);
}

// ---- mbarriers ----

static TraceBarrier *barrier_at(EmuTrace *t, const uint8_t *host) {
  for (uint32_t k = 0; k < t->barrier_count; k++)
    if (t->barriers[k].host == host) return &t->barriers[k];
  if (t->barrier_count == MOST_BARRIERS) return NULL;
  TraceBarrier *b = &t->barriers[t->barrier_count++];
  *b = (TraceBarrier){.host = host, .now = new_token(t)};
  return b;
}

void emu_trace_phase(EmuCtx *x, const uint8_t *host, bool fresh) {
  EmuTrace *t = x->block->unit->trace;
  TraceBarrier *b = barrier_at(t, host);
  if (!b) return;
  b->last = fresh ? 0 : b->now;
  b->now = new_token(t);
}

void emu_trace_arrive(EmuCtx *x, const uint8_t *host, bool far) {
  const TraceBarrier *b = barrier_at(x->block->unit->trace, host);
  if (b) put_running(x, SOL_EMU_STEP_ARRIVE, b->now, 1, far);
}

void emu_trace_copy(EmuCtx *x, const uint8_t *host, uint64_t bytes) {
  const TraceBarrier *b = barrier_at(x->block->unit->trace, host);
  if (b) put_running(x, SOL_EMU_STEP_COPY, b->now, (uint32_t)bytes, 0);
}

void emu_trace_passed(EmuCtx *x, const uint8_t *host) {
  EmuTraceWarp *w = emu_trace_warp(x->block, x->warp->index);
  const TraceBarrier *b = barrier_at(x->block->unit->trace, host);
  end_spin(w);
  if (b) put_running(x, SOL_EMU_STEP_WAIT, b->last, 1, 0);
}

void emu_trace_spin(EmuCtx *x) {
  EmuTraceWarp *w = emu_trace_warp(x->block, x->warp->index);
  if (!w->spins) w->before_spin = w->issues, w->waits_before_spin = w->waits;
  w->spins = true;
}

// ---- barriers ----

static uint32_t *sync_token(const EmuBlock *at, uint32_t barrier) {
  EmuTrace *t = at->unit->trace;
  uint32_t *token = &t->syncs[at->rank][barrier];
  if (!*token) *token = new_token(t);
  return token;
}

void emu_trace_sync(const EmuBlock *block, uint32_t warp, const EmuBlock *at, uint32_t barrier, bool waits) {
  if (!block->unit->trace) return;
  put(block->unit->trace, warp_of(block, warp), waits ? SOL_EMU_STEP_WAIT : SOL_EMU_STEP_ARRIVE,
      *sync_token(at, barrier), 1, barrier == EMU_SYNC_CLUSTER && !waits ? 3 : 0);
}

void emu_trace_sync_clear(const EmuBlock *at, uint32_t barrier) {
  if (at->unit->trace) at->unit->trace->syncs[at->rank][barrier] = 0;
}

void emu_trace_sync_pass(const EmuBlock *at) {
  if (!at->unit->trace) return;
  uint32_t *syncs = at->unit->trace->syncs[at->rank];
  syncs[EMU_SYNC_PAST] = syncs[EMU_SYNC_CLUSTER];
  syncs[EMU_SYNC_CLUSTER] = 0;
}

// ---- the result ----

// Positions in SolEmuResult.insts: implicit returns are not among them.
static uint32_t position(const EmuProgram *p, uint32_t pc) {
  uint32_t before = 0;
  for (uint32_t f = 0; f < p->function_count && p->functions[f].end < pc; f++) before++;
  return pc - before;
}

void emu_trace_result(EmuRun *run) {
  EmuTrace *t = run->trace;
  SolEmuTrace *to = &run->result->trace;
  uint32_t warps = t ? t->warps_per_block * t->blocks : 0, all = 0;
  sol_heap_free(to->events);
  *to = (SolEmuTrace){0};
  for (uint32_t w = 0; w < warps; w++) {
    if (t->warps[w].run.issues) put(t, &t->warps[w], SOL_EMU_STEP_END, 0, 0, 0);
    all += t->warps[w].count;
  }
  uint32_t *ends = all ? sol_heap_alloc(sizeof *to->events * all + sizeof *ends * warps) : NULL;
  if (!ends) return;
  *to = (SolEmuTrace){.events = (SolEmuEvent *)(void *)ends,
                      .warps = warps,
                      .warps_per_block = t->warps_per_block,
                      .tokens = t->tokens,
                      .block = t->block_id,
                      .cut = t->full};
  ends = (uint32_t *)(void *)(to->events + all);
  uint32_t at = 0;
  for (uint32_t w = 0; w < warps; w++) {
    for (uint32_t k = 0; k < t->warps[w].count; k++) {
      to->events[at] = t->warps[w].events[k];
      to->events[at].inst = position(run->program, to->events[at].inst);
      at++;
    }
    ends[w] = at;
  }
  to->ends = ends;
}
