// Where warps wait, by the machine code. Results of variable latency (loads, special functions) get one of six
// scoreboards, which the instructions that need them name; for results of fixed latency ptxas writes the clocks
// until the next instruction may issue. Both are read from the instructions, so that loads which ptxas moved together,
// or into the iteration before, are waited for once, and as long as on the machine.
//
// A wait counts as the part of the latency that has not passed by then, issuing and in waits for others. A wait for
// several scoreboards is as long as the longest. What is pending where blocks join is what the blocks before leave pending, as often as
// each leads there: of what is loaded before a loop and needed in it, only the first iteration waits.
//
// Instructions have to be fetched: a loop that is longer than what an SM keeps of its code, or a kernel where there is no loop, goes on
// no faster than that.
#include "audit/inside.h"

typedef enum Pending { NOTHING, UNIT, SHARED, LOAD } Pending; // by rising latency

typedef struct Board {
  Pending what;
  double share; // of the executions in which it is pending
  double age;   // clocks since it was set
  double more;  // clocks by which its result is later than others of its kind
} Board;

typedef struct State {
  Board boards[SASS_SCOREBOARDS];
} State;

// The launch, and clocks until a result arrives, which tell the part of a wait that others have hidden.
typedef struct Launch {
  const SassCode *code;
  AuditInst *insts;
  const uint32_t *inst_of;
  double latency[LOAD + 1];
  double apart;        // of a constant load, for each word beyond the first
  const double *fetch; // by block: clocks of an instruction, at least
  const double *jump;  // by block: clocks of a branch that is taken, beyond its own
  const double
      *taken; // by PTX instruction: of its accesses that the machine issues, those that a warp has a lane for
} Launch;

static Pending pending_of(const SassInst *m, const AuditInst *in) {
  switch (m->kind) {
  case SASS_KIND_GLOBAL_LOAD:
  case SASS_KIND_GENERIC_LOAD:
  case SASS_KIND_ATOMIC: return LOAD;
  default: break;
  }
  if (m->unit == SASS_UNIT_MEMORY) return SHARED; // local memory, too: it is mostly in L1
  bool texture = in->kind == SOL_EMU_KIND_TEXTURE && m->unit == SASS_UNIT_OTHER && m->kind == SASS_KIND_NONE;
  return texture ? LOAD : UNIT;
}

// Lanes that read different words of constant memory wait for them one after another.
static double more_of(const Launch *l, const AuditInst *in) {
  double requests = (double)in->counts.requests, turns = (double)in->counts.turns;
  return in->kind == SOL_EMU_KIND_CONST_LOAD && turns > requests ? (turns / requests - 1) * l->apart : 0;
}

// A guarded access without a lane has its result at once.
static double share_of(const Launch *l, const SassInst *m, uint32_t inst) {
  return m->guarded && inst != SASS_NONE ? l->taken[inst] : 1;
}

static void set_board(Board *b, Pending what, double share, double more) {
  if (what == b->what && b->share > share) share = b->share;
  if (what >= b->what) *b = (Board){what, share, 0, more};
}

// `weight`: how often it is that block which comes before.
static void join(const Launch *l, State *to, const State *from, double weight) {
  for (int i = 0; i < SASS_SCOREBOARDS; i++) {
    Board *a = &to->boards[i], b = from->boards[i];
    b.share *= weight;
    double share = a->what == b.what ? a->share + b.share : 0, age = a->age < b.age ? a->age : b.age;
    if (b.share * l->latency[b.what] > a->share * l->latency[a->what]) *a = b;
    if (share > 0) a->share = share < 1 ? share : 1, a->age = age;
  }
}

typedef struct Wait {
  Pending what;
  double clocks, share; // of the executions in which it is waited for
} Wait;

// Of the executions in which it is pending.
static double left_of(const Launch *l, const Board *b) {
  double left = l->latency[b->what] + b->more - b->age;
  return left > 0 ? left : 0;
}

// Releases those that the instruction waits for; returns the one that takes longest, in the mean over all executions.
static Wait await(const Launch *l, State *s, uint8_t waits) {
  Wait longest = {0};
  for (int i = 0; i < SASS_SCOREBOARDS; i++) {
    Board *b = &s->boards[i];
    if (!(waits >> i & 1)) continue;
    double left = left_of(l, b);
    if (left * b->share > longest.clocks * longest.share) longest = (Wait){b->what, left, b->share};
    *b = (Board){0};
  }
  return longest;
}

static void count_wait(Pending what, double waits, AuditExecuted *to) {
  if (what == LOAD) to->load_waits += waits;
  if (what == SHARED) to->shared_waits += waits;
  if (what == UNIT) to->unit_waits += waits;
}

static void pass_time(State *s, double clocks) {
  for (int i = 0; i < SASS_SCOREBOARDS; i++) s->boards[i].age += clocks;
}

// What is pending as rarely as this is waited for, behind the same guard or branch, is pending in the same executions.
static void pass_wait(State *s, const Wait *w) {
  for (int i = 0; i < SASS_SCOREBOARDS; i++) {
    Board *b = &s->boards[i];
    b->age += w->clocks * (b->share > w->share ? w->share / b->share : 1);
  }
}

// What fetching takes longer than issuing is each instruction's share.
static double late_of(const Launch *l, const SassBlock *block) {
  double stalls = 0, fetch = block->count * l->fetch[block - l->code->blocks];
  for (uint32_t i = block->first; i < block->first + block->count; i++) stalls += l->code->insts[i].stall;
  return fetch > stalls ? (fetch - stalls) / block->count : 0;
}

// Of the executions of the block's guarded instructions, those that a warp has a lane for: as of its loads.
static double guards_taken(const Launch *l, const SassBlock *block) {
  double taken = 0, loads = 0;
  for (uint32_t i = block->first; i < block->first + block->count; i++) {
    const SassInst *m = &l->code->insts[i];
    if (!m->guarded || m->sets >= SASS_SCOREBOARDS || l->inst_of[i] == SASS_NONE) continue;
    taken += l->taken[l->inst_of[i]], loads++;
  }
  return loads > 0 ? taken / loads : 1;
}

// Of the executions of an instruction, those behind which the warp goes on further away than at the next one. The branch back of a loop
// finds what it leads to.
static double jumps_of(const SassInst *m, const SassBlock *block, double times, const double *all) {
  switch (m->kind) {
  case SASS_KIND_CALL:
  case SASS_KIND_RETURN:
  case SASS_KIND_JUMP: return 1;
  case SASS_KIND_BRANCH: break;
  default: return 0;
  }
  if (block->branch == SASS_NONE || block->branch <= block->next) return 0;
  double onward = block->next == SASS_NONE ? 0 : all[block->next];
  return onward < times ? 1 - onward / times : 0;
}

static void pass_block(const Launch *l, uint32_t b, State *s, const double *all, bool count) {
  const SassBlock *block = &l->code->blocks[b];
  double times = all[b], late = late_of(l, block), idle = times * (1 - guards_taken(l, block));
  for (uint32_t i = block->first; i < block->first + block->count; i++) {
    const SassInst *m = &l->code->insts[i];
    AuditInst *in = &l->insts[l->inst_of[i] == SASS_NONE ? 0 : l->inst_of[i]];
    Wait w = await(l, s, m->waits);
    if (count && w.what) count_wait(w.what, times * w.clocks * w.share / l->latency[w.what], &in->executed);
    double clocks = m->stall + late + jumps_of(m, block, times, all) * l->jump[b];
    if (count) in->executed.clocks += times * clocks;
    if (count && m->guarded) in->executed.idle += idle;
    pass_wait(s, &w);
    pass_time(s, clocks);
    if (m->sets < SASS_SCOREBOARDS)
      set_board(&s->boards[m->sets], pending_of(m, in), share_of(l, m, l->inst_of[i]), more_of(l, in));
  }
}

// ---- fetching ----

enum { INST_BYTES = 16 };

static double fetch_of(const MachineModel *m, double bytes) {
  if (bytes > m->code_far_bytes) return m->fetch_far_clocks;
  return bytes > m->code_bytes ? m->fetch_clocks : 0;
}

// Bytes of the code that is executed in blocks `first` to `last`.
static double code_of(const SassCode *code, const double *times, uint32_t first, uint32_t last) {
  double insts = 0;
  for (uint32_t b = first; b <= last; b++) insts += times[b] > 0 ? code->blocks[b].count : 0;
  return insts * INST_BYTES;
}

// Bytes from the first block that is executed to the last one.
static double span_of(const SassCode *code, const double *times, uint32_t first, uint32_t last) {
  while (first < last && !(times[first] > 0)) first++;
  while (last > first && !(times[last] > 0)) last--;
  const SassBlock *end = &code->blocks[last];
  return (double)(end->first + end->count - code->blocks[first].first) * INST_BYTES;
}

typedef struct Fetches { // by block
  double *fetch, *jump;
  uint32_t *size; // blocks of the loop
} Fetches;

static void find_fetch(const SassCode *code, const MachineModel *m, const double *times, uint32_t first,
                       uint32_t last, const Fetches *to) {
  double fetch = fetch_of(m, code_of(code, times, first, last)),
         jump = span_of(code, times, first, last) > m->code_bytes ? m->jump_far_clocks : m->jump_clocks;
  for (uint32_t b = first; b <= last; b++)
    if (last - first < to->size[b]) to->size[b] = last - first, to->fetch[b] = fetch, to->jump[b] = jump;
}

// A block is fetched again after what the innermost loop that holds it executes; what is in none, after all of the kernel. Functions
// of ptxas's own belong to whoever calls them, and count as being there.
static void find_fetches(const SassCode *code, const MachineModel *m, const double *times,
                         const Fetches *to) {
  memset(to->size, 0xff, code->block_count * sizeof *to->size);
  find_fetch(code, m, times, 0, code->block_count - 1, to);
  for (uint32_t last = 0; last < code->block_count; last++) {
    uint32_t first = code->blocks[last].branch;
    if (first != SASS_NONE && first <= last && times[last] > 0) find_fetch(code, m, times, first, last, to);
  }
  for (uint32_t b = 0; b < code->block_count; b++)
    if (code->blocks[b].subroutine) to->fetch[b] = 0;
}

// Where the machine goes through an access more often than the PTX does, it is guarded: the rest has no lane.
static void find_taken(const SassCode *code, const AuditInst *insts, uint32_t count, const double *times,
                       const uint32_t *inst_of, double *taken) {
  memset(taken, 0, count * sizeof *taken);
  for (uint32_t b = 0; b < code->block_count; b++)
    for (uint32_t i = code->blocks[b].first; i < code->blocks[b].first + code->blocks[b].count; i++)
      if (inst_of[i] != SASS_NONE && code->insts[i].sets < SASS_SCOREBOARDS) taken[inst_of[i]] += times[b];
  for (uint32_t i = 0; i < count; i++) {
    double issued = taken[i], executions = (double)insts[i].counts.executions;
    taken[i] = issued > executions ? executions / issued : 1;
  }
}

// Leads to the block `next` as often as both are executed, at most.
static void lead(const Launch *l, uint32_t b, uint32_t next, const double *times, State *before,
                 const State *s) {
  if (next == SASS_NONE || !(times[next] > 0)) return;
  double weight = times[b] < times[next] ? times[b] / times[next] : 1;
  join(l, &before[next <= b ? l->code->block_count + 1 + next : next], s, weight);
}

// before: what blocks leave pending for those that follow them; then, what loops do for their next iteration.
static void pass_on(const Launch *l, uint32_t b, const double *times, State *before, bool count) {
  State *again = &before[l->code->block_count + 1 + b], none = {0};
  if (!(times[b] > 0)) return;
  State s = before[b];
  join(l, &s, again, 1);
  before[b] = *again = none;
  pass_block(l, b, &s, times, count);
  lead(l, b, l->code->blocks[b].next, times, before, &s);
  lead(l, b, l->code->blocks[b].branch, times, before, &s);
}

bool audit_scoreboards(const SassCode *code, const MachineModel *model, AuditInst *insts, uint32_t count,
                       const double *times, const uint32_t *inst_of, SolArena *arena) {
  SolFigure shared = model->device->smem_latency;
  Launch l = {.code = code, .insts = insts, .inst_of = inst_of};
  l.apart = model->constant_apart_clocks;
  l.latency[UNIT] = model->unit_clocks;
  l.latency[SHARED] = sol_known(shared) ? shared.value : 0;
  l.latency[LOAD] = machine_far_clocks(model);
  State *before = sol_arena_alloc(arena, 2 * (code->block_count + 1) * sizeof *before);
  double *fetch = sol_arena_alloc(arena, (code->block_count + 1) * sizeof *fetch),
         *jump = sol_arena_alloc(arena, (code->block_count + 1) * sizeof *jump);
  double *taken = sol_arena_alloc(arena, (count + 1) * sizeof *taken);
  uint32_t *size = sol_arena_alloc(arena, (code->block_count + 1) * sizeof *size);
  if (!before || !fetch || !jump || !size || !taken) return false;
  find_taken(code, insts, count, times, inst_of, taken);
  l.taken = taken;
  find_fetches(code, model, times, &(Fetches){fetch, jump, size});
  l.fetch = fetch, l.jump = jump;
  memset(before, 0, 2 * (code->block_count + 1) * sizeof *before);
  for (int turn = 0; turn < 2; turn++) // the first finds what loops leave pending for their next iteration
    for (uint32_t b = 0; b < code->block_count; b++) pass_on(&l, b, times, before, turn > 0);
  return true;
}
