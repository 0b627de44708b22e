// Assumptions, each with a test in tests/test_replay.c. Names of constants are those of machine.def.
//
//  1. A warp issues its instructions `issue` clocks apart; the warps of one of the SM's four sub-partitions share its issue slot, one a
//     clock. A warp belongs to part number % 4, whose tensor core executes its matrix instructions in order, each for its FLOPs
//     at the peak, but no more than tensor_share of it for all SMs together, or for as long as shared memory takes to give all four their operands.
//  2. mma and wmma keep the warp until the tensor core takes them; wgmma does not. A wait for a group of them lasts until the
//     last has been executed, and tensor_clocks longer.
//  3. Copies and loads that miss L1 are transferred one after another at the SM's share of what L2 and DRAM give, and arrive a
//     latency later: a load's, and tma_clocks more for a copy. Stores have a way of their own. Blocks that all run at once ask DRAM for
//     all it has to give before anything is in L2 that others have read: the first bytes come at DRAM's pace.
//  4. A barrier passes barrier_clocks after the last has come to it, so does a phase of an mbarrier that a warp completes. Of copies
//     and matrix instructions that is part of their latency. A cluster's barrier passes after cluster_barrier_clocks.
//     The first tensor copy of a block in either direction waits descriptor_clocks for its descriptor, and others behind it.
//  5. Resources are taken in the order in which warps come to them: the warp that is behind goes first.
//  6. Loads pass L1 one after another, a wavefront a clock; what they wait for comes after that.
#include "machine/replay.h"

#include "base/heap.h"
#include "machine/work.h"

enum {
  PARTS = 4,
  FINE = MACHINE_BUCKETS * 32
}; // cells of time in which copies and tensor cores are held against each other

const char *machine_unit_key(MachineUnit unit) {
  static const char *const keys[] = {"copy", "tensor", "cuda"};
  _Static_assert(SOL_COUNT(keys) == MACHINE_UNITS, "a key for each");
  return (unsigned)unit < MACHINE_UNITS ? keys[unit] : "?";
}

const char *machine_state_key(MachineState state) {
  static const char *const keys[] = {"issue", "copy", "tensor", "warps", "memory"};
  _Static_assert(SOL_COUNT(keys) == MACHINE_STATES, "a key for each");
  return (unsigned)state < MACHINE_STATES ? keys[state] : "?";
}

MachineCosts machine_costs(const MachineModel *m, const MachineServed *s) {
  const SolDevice *d = m->device;
  double all = s->sms * d->boost_clock.value; // clocks of all busy SMs in a second
  double together = sol_smaller(m->tensor_share * d->sms.value / s->sms, 1); // of the peak
  double byte = sol_known(d->l2_bandwidth) ? all / d->l2_bandwidth.value : 0,
         dram = s->dram * all / machine_copy_rate(m);
  return (MachineCosts){
      .issue = s->stall,
      .shared = sol_known(d->smem_latency) ? d->smem_latency.value : 0,
      .l1 = sol_known(d->l1_latency) ? d->l1_latency.value : 0,
      .far = s->far,
      .others = m->other_shared_clocks,
      .barrier = machine_barrier(m, 8), // of a block of usual size
      .cluster = m->cluster_barrier_clocks,
      .fence = m->fence_clocks,
      .store_fence = m->store_fence_clocks,
      .copy = s->far + m->tma_clocks,
      .byte = sol_larger(sol_larger(1 / m->bulk_fill_bytes, byte), dram),
      .loaded_byte = sol_larger(sol_larger(1 / m->l2_fill_bytes, byte), dram),
      .stored_byte = sol_larger(1 / m->bulk_store_bytes, byte),
      .cold = s->cold,
      .cold_byte = all / machine_copy_rate(m),
      .flop = sol_known(d->peak_fp16)
                  ? d->sms.value * d->boost_clock.value * PARTS / (d->peak_fp16.value * together)
                  : 0,
      .tensor = m->tensor_clocks,
      .wavefront = sol_known(d->smem_bytes_per_clock) ? 128 / d->smem_bytes_per_clock.value : 1};
}

// ---- the state of a replay ----

typedef struct Token {
  uint32_t left;     // events that have not completed
  MachineState what; // of the last one
  double done, read; // when the last one completed; when copies had read their sources
} Token;

typedef struct Warp {
  double clock, loaded, copied, copied_read;
  uint32_t at, end, role;
  bool issued;  // the instructions before its next event
  bool blocked; // by that event
} Warp;

typedef struct Sm {
  double slot[PARTS], tensor[PARTS], l1, in, out; // when each is free
  double got;                                     // bytes from DRAM
  double slot_busy[PARTS], tensor_busy[PARTS], shared_busy, l1_busy, in_busy, out_busy;
} Sm;

typedef struct Sim {
  const MachineReplay *r;
  MachineTimeline *out; // NULL: only how long it takes is asked for
  Token *tokens;
  Warp *warps;
  Sm *sms;
  float *fine[MACHINE_UNITS]; // by cell: clocks in which the unit is busy
  double length;              // of the block's life, once it is known
} Sim;

static bool shown(const Sim *s, uint32_t warp) {
  return s->out && warp < s->r->warps_per_block;
}

// Adds [from, to) to cells, each a part of the length.
static void add_time(float *cells, uint32_t count, double length, double from, double to, double weight) {
  double width = length / count;
  if (to > length) to = length;
  for (uint32_t c = (uint32_t)(from / width); from < to && c < count; c++) {
    double end = (c + 1) * width < to ? (c + 1) * width : to;
    if (end > from) cells[c] += (float)((end - from) * weight), from = end;
  }
}

static void use_unit(const Sim *s, uint32_t warp, MachineUnit unit, double from, double to, double weight) {
  if (shown(s, warp)) add_time(s->fine[unit], FINE, s->length, from, to, weight);
}

static void note_wait(MachineTimeline *t, uint32_t place, MachineState what, double clocks) {
  uint32_t k = 0;
  while (k < t->wait_count && (t->waits[k].place != place || t->waits[k].what != what)) k++;
  if (k == MACHINE_WAITS) return;
  if (k == t->wait_count) t->waits[t->wait_count++] = (MachineWait){.place = place, .what = what};
  t->waits[k].clocks += clocks;
  t->waits[k].times++;
}

// The warp is in a state until `to`.
static void spend(Sim *s, uint32_t warp, MachineState state, double to, uint32_t place) {
  Warp *w = &s->warps[warp];
  if (to <= w->clock) return;
  if (shown(s, warp)) {
    MachineRole *role = &s->out->roles[w->role];
    if (w->role < MACHINE_ROLES)
      add_time(role->state[state], MACHINE_BUCKETS, s->length, w->clock, to, 1.0 / role->warps);
    if (state != MACHINE_ISSUES) note_wait(s->out, place, state, to - w->clock);
  }
  w->clock = to;
}

// ---- steps ----

static void complete(Sim *s, uint32_t token, double done, double read, MachineState what) {
  Token *t = &s->tokens[token];
  if (!token) return;
  if (done >= t->done) t->done = done, t->what = what;
  t->read = sol_larger(t->read, read);
  if (t->left) t->left--; // 0: a wait for it was given up
  if (t->left) return;
  for (uint32_t w = 0; w < s->r->warps; w++)
    if (s->warps[w].blocked && s->r->events[s->warps[w].at].token == token) s->warps[w].blocked = false;
}

static void issue(Sim *s, uint32_t warp, const MachineEvent *e) {
  const MachineCosts *c = &s->r->costs;
  Sm *sm = &s->sms[warp / s->r->warps_per_block];
  uint32_t part = warp % PARTS;
  double from = sol_larger(sm->slot[part], s->warps[warp].clock);
  sm->slot[part] = from + e->issues;
  sm->slot_busy[part] += e->issues;
  use_unit(s, warp, MACHINE_CORES, from, from + e->issues, 1.0 / PARTS);
  spend(s, warp, MACHINE_ISSUES, sol_larger(s->warps[warp].clock + e->issues * c->issue, sm->slot[part]),
        e->place);
  spend(s, warp, MACHINE_FOR_MEMORY, s->warps[warp].clock + e->shared * c->shared, e->place);
  s->warps[warp].issued = true;
}

static double transfer(Sim *s, uint32_t warp, double late, double clocks, bool out) {
  Sm *sm = &s->sms[warp / s->r->warps_per_block];
  double *way = out ? &sm->out : &sm->in;
  *way = sol_larger(*way, s->warps[warp].clock) + late + clocks;
  *(out ? &sm->out_busy : &sm->in_busy) += clocks;
  return *way;
}

// Clocks to transfer so many bytes to the SM.
static double fetch(Sim *s, uint32_t warp, double bytes, double byte) {
  const MachineCosts *c = &s->r->costs;
  Sm *sm = &s->sms[warp / s->r->warps_per_block];
  double cold = sol_smaller(bytes, c->cold - sm->got);
  sm->got += cold;
  return (bytes - cold) * byte + cold * sol_larger(byte, c->cold_byte);
}

static void load(Sim *s, uint32_t warp, const MachineEvent *e) {
  const MachineCosts *c = &s->r->costs;
  Warp *w = &s->warps[warp];
  Sm *sm = &s->sms[warp / s->r->warps_per_block];
  double turn = e->wavefronts * c->wavefront;
  sm->l1 = sol_larger(sm->l1, w->clock) + turn;
  sm->l1_busy += turn;
  double done = sm->l1 + (e->detail == MACHINE_OF_OTHERS ? c->others : c->l1);
  if (e->detail == MACHINE_BEYOND_L1) {
    double moved = transfer(s, warp, 0, fetch(s, warp, e->amount, c->loaded_byte), false);
    done = sol_larger(moved, sm->l1) + c->far;
    use_unit(s, warp, MACHINE_COPIES, w->clock, done, 1);
  }
  w->loaded = sol_larger(w->loaded, done);
}

static void copy(Sim *s, uint32_t warp, const MachineEvent *e) {
  const MachineCosts *c = &s->r->costs;
  Warp *w = &s->warps[warp];
  if (e->amount > 0) {
    bool out = e->detail == MACHINE_OUT;
    double clocks = out ? e->amount * c->stored_byte : fetch(s, warp, e->amount, c->byte);
    w->copied_read = transfer(s, warp, e->late, clocks, out);
    w->copied = w->copied_read + c->copy;
    use_unit(s, warp, MACHINE_COPIES, w->clock, w->copied, 1);
  }
  complete(s, e->token, w->copied, w->copied_read, MACHINE_FOR_COPY);
}

static void multiply(Sim *s, uint32_t warp, const MachineEvent *e) {
  const MachineCosts *c = &s->r->costs;
  Sm *sm = &s->sms[warp / s->r->warps_per_block];
  uint32_t part = warp % PARTS;
  double from = sol_larger(s->warps[warp].clock, sm->tensor[part]), clocks = e->amount * c->flop,
         operands = e->wavefronts * c->wavefront;
  sm->shared_busy += operands;
  sm->tensor[part] = from + sol_larger(clocks, operands * PARTS);
  sm->tensor_busy[part] += clocks;
  use_unit(s, warp, MACHINE_TENSORS, from, from + clocks, 1.0 / PARTS);
  if (e->token)
    complete(s, e->token, sm->tensor[part] + c->tensor, 0, MACHINE_FOR_TENSOR);
  else
    spend(s, warp, MACHINE_FOR_TENSOR, from, e->place);
}

static void arrive(Sim *s, uint32_t warp, const MachineEvent *e) {
  const Warp *w = &s->warps[warp];
  bool behind = e->detail == MACHINE_BEHIND_COPIES && w->copied > w->clock;
  const MachineCosts *c = &s->r->costs;
  double away = e->detail == MACHINE_AT_OTHERS    ? c->others
                : e->detail == MACHINE_AT_CLUSTER ? c->cluster - c->barrier
                                                  : 0;
  double at = behind ? w->copied : w->clock + away;
  complete(s, e->token, at, 0, behind ? MACHINE_FOR_COPY : MACHINE_FOR_WARPS);
}

static void pass(Sim *s, uint32_t warp, const MachineEvent *e) {
  const Token *t = &s->tokens[e->token];
  if (!e->token) return;
  spend(s, warp, t->what, e->detail == MACHINE_SOURCES_READ ? t->read : t->done, e->place);
  if (t->what == MACHINE_FOR_WARPS)
    spend(s, warp, MACHINE_FOR_WARPS, s->warps[warp].clock + s->r->costs.barrier, e->place);
}

static void fence(Sim *s, uint32_t warp, const MachineEvent *e) {
  const MachineCosts *c = &s->r->costs;
  double clocks = c->fence + (e->amount > 0 ? c->store_fence : 0);
  spend(s, warp, MACHINE_FOR_MEMORY, s->warps[warp].clock + clocks, e->place);
}

static void step(Sim *s, uint32_t warp) {
  Warp *w = &s->warps[warp];
  const MachineEvent *e = &s->r->events[w->at];
  switch ((MachineStep)e->step) {
  case MACHINE_STEP_LOAD: load(s, warp, e); break;
  case MACHINE_STEP_LOADED: spend(s, warp, MACHINE_FOR_MEMORY, w->loaded, e->place); break;
  case MACHINE_STEP_COPY: copy(s, warp, e); break;
  case MACHINE_STEP_TENSOR: multiply(s, warp, e); break;
  case MACHINE_STEP_ARRIVE: arrive(s, warp, e); break;
  case MACHINE_STEP_WAIT: pass(s, warp, e); break;
  case MACHINE_STEP_FENCE: fence(s, warp, e); break;
  default: break;
  }
  w->at++;
  w->issued = false;
}

// The warp that is farthest behind of those that can go on; none: of those that cannot, whose wait is given up.
static uint32_t next_warp(Sim *s) {
  uint32_t best = UINT32_MAX;
  bool best_blocked = true;
  for (uint32_t w = 0; w < s->r->warps; w++) {
    const Warp *warp = &s->warps[w];
    if (warp->at >= warp->end) continue;
    bool sooner = best == UINT32_MAX || (best_blocked && !warp->blocked) ||
                  (best_blocked == warp->blocked && warp->clock < s->warps[best].clock);
    if (sooner && (best_blocked || !warp->blocked)) best = w, best_blocked = warp->blocked;
  }
  if (best != UINT32_MAX && best_blocked) s->tokens[s->r->events[s->warps[best].at].token].left = 0;
  return best;
}

static void start(Sim *s) {
  const MachineReplay *r = s->r;
  memset(s->tokens, 0, sizeof *s->tokens * (r->tokens + 1));
  memset(s->sms, 0, sizeof *s->sms * (r->warps / r->warps_per_block));
  for (uint32_t w = 0; w < r->warps; w++) {
    uint32_t role = s->warps[w].role;
    s->warps[w] = (Warp){.at = w ? r->ends[w - 1] : 0, .end = r->ends[w], .role = role};
    for (uint32_t e = s->warps[w].at; e < s->warps[w].end; e++)
      if (r->events[e].step != MACHINE_STEP_WAIT) s->tokens[r->events[e].token].left++;
  }
  s->tokens[0].left = 0;
}

// Returns when the last warp of the first block ends.
static double simulate(Sim *s) {
  start(s);
  for (uint32_t w; (w = next_warp(s)) != UINT32_MAX;) {
    const MachineEvent *e = &s->r->events[s->warps[w].at];
    s->warps[w].blocked = s->warps[w].issued && e->step == MACHINE_STEP_WAIT && s->tokens[e->token].left;
    if (s->warps[w].blocked) continue;
    if (s->warps[w].issued)
      step(s, w);
    else
      issue(s, w, e);
  }
  double last = 0;
  for (uint32_t w = 0; w < s->r->warps_per_block; w++) last = sol_larger(last, s->warps[w].clock);
  return last;
}

// ---- roles ----

typedef struct Does {
  bool copies, multiplies;
} Does;

static Does does(const MachineReplay *r, uint32_t warp) {
  Does d = {0};
  for (uint32_t e = warp ? r->ends[warp - 1] : 0; e < r->ends[warp]; e++) {
    d.copies |= r->events[e].step == MACHINE_STEP_COPY && r->events[e].detail != MACHINE_OUT;
    d.multiplies |= r->events[e].step == MACHINE_STEP_TENSOR;
  }
  return d;
}

// Warpgroups that multiply are told apart: they may take turns.
static void find_roles(Sim *s, MachineTimeline *t) {
  for (uint32_t w = 0; w < s->r->warps_per_block; w++) {
    Does d = does(s->r, w);
    MachineRole *last = t->role_count ? &t->roles[t->role_count - 1] : NULL;
    bool same = last && last->copies == d.copies && last->multiplies == d.multiplies &&
                (d.copies || !d.multiplies || w % 4);
    if (!same && t->role_count < MACHINE_ROLES)
      t->roles[t->role_count++] = (MachineRole){.first = w, .copies = d.copies, .multiplies = d.multiplies},
      same = true;
    s->warps[w].role = same ? t->role_count - 1 : MACHINE_ROLES;
    if (same) t->roles[t->role_count - 1].warps++;
  }
}

// ---- all of it ----

static void sum_units(const Sim *s, MachineTimeline *t) {
  double cell = t->clocks / FINE, both = 0;
  for (uint32_t i = 0; i < FINE; i++) {
    double part[MACHINE_UNITS];
    for (int u = 0; u < MACHINE_UNITS; u++) {
      part[u] = s->fine[u][i] / cell < 1 ? s->fine[u][i] / cell : 1;
      t->unit[u][i / (FINE / MACHINE_BUCKETS)] += (float)(part[u] * MACHINE_BUCKETS / FINE);
      t->busy[u] += part[u] / FINE;
    }
    both +=
        (part[MACHINE_COPIES] < part[MACHINE_TENSORS] ? part[MACHINE_COPIES] : part[MACHINE_TENSORS]) / FINE;
  }
  t->overlap = both;
  t->hidden = t->busy[MACHINE_COPIES] > 0 ? both / t->busy[MACHINE_COPIES] : 0;
}

static void sum_roles(MachineTimeline *t) {
  for (uint32_t k = 0; k < t->role_count; k++)
    for (int state = 0; state < MACHINE_STATES; state++)
      for (uint32_t b = 0; b < MACHINE_BUCKETS; b++) {
        float *cell = &t->roles[k].state[state][b];
        t->roles[k].share[state] += *cell / t->clocks;
        *cell = (float)(*cell * MACHINE_BUCKETS / t->clocks);
      }
}

static void sort_waits(MachineTimeline *t) {
  for (uint32_t i = 1; i < t->wait_count; i++) {
    MachineWait w = t->waits[i];
    uint32_t at = i;
    for (; at > 0 && t->waits[at - 1].clocks < w.clocks; at--) t->waits[at] = t->waits[at - 1];
    t->waits[at] = w;
  }
}

static void replay_twice(Sim *s, MachineTimeline *t) {
  t->clocks = s->length = simulate(s);
  if (!(t->clocks > 0)) return;
  s->out = t;
  simulate(s);
  const Sm *sm = &s->sms[0];
  double busiest =
      sol_larger(sol_larger(sol_largest(sm->slot_busy, PARTS), sol_largest(sm->tensor_busy, PARTS)),
                 sol_larger(sol_larger(sm->in_busy, sm->out_busy), sol_larger(sm->shared_busy, sm->l1_busy)));
  t->exposed = sol_larger(t->clocks - busiest, 0);
  t->transfer = (sm->in_busy > sm->out_busy ? sm->in_busy : sm->out_busy) / t->clocks;
  sum_units(s, t);
  sum_roles(t);
  sort_waits(t);
}

bool machine_replay(const MachineReplay *r, MachineTimeline *out) {
  *out = (MachineTimeline){0};
  if (!r->warps || !r->warps_per_block || !r->ends[r->warps - 1]) return true;
  size_t tokens = sizeof(Token) * (r->tokens + 1), warps = sizeof(Warp) * r->warps,
         sms = sizeof(Sm) * (r->warps / r->warps_per_block), fine = sizeof(float) * FINE;
  uint8_t *room = sol_heap_alloc(tokens + warps + sms + MACHINE_UNITS * fine);
  if (!room) return false;
  memset(room, 0, tokens + warps + sms + MACHINE_UNITS * fine);
  Sim s = {.r = r,
           .tokens = (Token *)(void *)room,
           .warps = (Warp *)(void *)(room + tokens),
           .sms = (Sm *)(void *)(room + tokens + warps)};
  for (int u = 0; u < MACHINE_UNITS; u++)
    s.fine[u] = (float *)(void *)(room + tokens + warps + sms + (size_t)u * fine);
  find_roles(&s, out);
  replay_twice(&s, out);
  sol_heap_free(room);
  return true;
}
