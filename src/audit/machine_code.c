// What the machine executes, from its code and from how often each PTX instruction was executed.
//
// ptxas unrolls, merges, moves and predicates: an instruction of the machine comes from one line of PTX, but a
// line may have several, in several basic blocks. How often a block is executed is estimated:
//  1. A line whose kind of instruction the machine has once for each of the PTX's (loads, stores, barriers, shuffles,
//     floating-point arithmetic, special functions, 32-bit integers) votes for the blocks that hold it: its executions over the
//     sum of its copies, each times the executions of their blocks. A block takes the median of its votes, in
//     which memory and barriers weigh most. Blocks are fitted in turns, since copies of a line in several blocks
//     (a loop that is unrolled, and what is left of it) share its executions.
//  2. A guarded instruction has no vote: it takes its slot whether its lanes are active or not. Nor does one whose line was not executed
//     say that its block was not.
//  3. A block without votes (part of a division, say) is executed as often as the lines that it alone holds, or
//     else as often as the blocks before it lead to it.
//  4. Functions of ptxas's own are executed as often as they are called. Where a branch avoids the call, it is for the
//     operands that the short way of a floating-point division or root cannot handle: the emulator counts the warps that
//     have such (SolEmuCounts.turns). A 64-bit integer division has no short way: its call is one like any other.
//  5. A block that is no loop is executed no more often than the blocks before it together; a loop is left as
//     often as it is entered. What alone holds a line that votes is as sure as that line.
//  6. Of two loops with the same lines the one with fewer copies of them does what the other leaves, less than one of its rounds.
//  7. Copies of an instruction in blocks of lines that were not executed do not count.
//  8. The first block, unless it is a loop, is executed as often as the first instruction: a loop may be unrolled into it whole.
#include "audit/inside.h"
#include "base/sort.h"

enum { TURNS = 24, STEPS = 16, MOST_VOTES = 64 };

typedef struct Line {   // a line of PTX that was executed
  uint32_t line, first; // first: index of its first instruction
  double executions;
  double fitted;    // executions by the blocks' own
  uint32_t blocks;  // that hold it
  uint32_t most;    // copies of it in one block
  uint8_t strength; // of its vote
} Line;

typedef struct Vote { // a line in a block
  uint32_t line, copies;
  uint32_t insts; // of whatever kind
  uint8_t strength;
} Vote;

typedef struct Fit {
  const SassCode *code;
  double wide_turns; // MachineModel
  AuditInst *insts;
  uint32_t count;
  Line *lines;
  uint32_t line_count;
  uint32_t *line_of; // by machine instruction: index of lines; SASS_NONE
  uint32_t *inst_of; // the same: index of insts
  Vote *votes;
  uint32_t *first_vote; // by block, and one more
  double *times;        // by block: executions
  double *before;       // the same, a turn earlier
  uint8_t *strength;    // by block: of its strongest votes
  double *detour;       // by block: how often it is executed, of the block before it; negative: it is none
  bool *never;
} Fit;

// ---- lines ----

static bool comes_before(const void *x, const void *y) {
  const Line *a = x, *b = y;
  return a->line != b->line ? a->line < b->line : a->first < b->first;
}

static bool make_lines(Fit *f, SolArena *arena) {
  f->lines = sol_arena_alloc(arena, (f->count + 1) * sizeof *f->lines);
  if (!f->lines) return false;
  for (uint32_t i = 0; i < f->count; i++)
    f->lines[i] = (Line){.line = f->insts[i].ptx_line,
                         .first = i,
                         .executions = (double)f->insts[i].counts.executions,
                         .strength = f->insts[i].machine_likeness};
  sol_sort(f->lines, f->count, sizeof *f->lines, comes_before);
  for (uint32_t i = 0; i < f->count; i++) {
    Line *last = f->line_count ? &f->lines[f->line_count - 1] : NULL;
    if (last && last->line == f->lines[i].line)
      last->strength = 0; // several instructions
    else
      f->lines[f->line_count++] = f->lines[i];
  }
  return true;
}

static uint32_t find_line(const Fit *f, uint32_t line) {
  uint32_t low = 0, high = f->line_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (f->lines[middle].line < line)
      low = middle + 1;
    else
      high = middle;
  }
  return low < f->line_count && f->lines[low].line == line ? low : SASS_NONE;
}

// ---- votes ----

// Whether the machine instruction is the one that a PTX instruction of that kind has one of.
static bool is_main(const AuditInst *in, const SassInst *m) {
  if (m->kind == SASS_KIND_MOVE) return false;
  // A floating-point atomic on shared memory is a loop of a load and a swap.
  if (in->kind == SOL_EMU_KIND_SHARED_ATOMIC) return m->kind == SASS_KIND_SHARED_ATOMIC;
  switch (in->unit) {
  case SOL_EMU_CLASS_MEMORY: return m->unit == SASS_UNIT_MEMORY;
  case SOL_EMU_CLASS_BARRIER: return m->kind == SASS_KIND_BARRIER;
  case SOL_EMU_CLASS_FLOAT: return m->unit == SASS_UNIT_FP32 || m->unit == SASS_UNIT_INT;
  case SOL_EMU_CLASS_INT: return m->unit == SASS_UNIT_MAD || m->unit == SASS_UNIT_INT;
  case SOL_EMU_CLASS_DOUBLE: return m->unit == SASS_UNIT_FP64;
  case SOL_EMU_CLASS_HALF: return m->unit == SASS_UNIT_FP16;
  case SOL_EMU_CLASS_SPECIAL: return m->unit == SASS_UNIT_SPECIAL;
  case SOL_EMU_CLASS_WARP: return m->kind == SASS_KIND_SHUFFLE;
  case SOL_EMU_CLASS_TENSOR: return m->unit == SASS_UNIT_TENSOR;
  default: return true;
  }
}

static void add_vote(Fit *f, uint32_t *count, uint32_t first, uint32_t line, bool counts) {
  uint32_t at = first;
  while (at < *count && f->votes[at].line != line) at++;
  if (at == *count)
    f->votes[(*count)++] = (Vote){line, 0, 0, f->lines[line].strength}, f->lines[line].blocks++;
  f->votes[at].copies += counts;
  f->votes[at].insts++;
}

static void vote_of_block(Fit *f, uint32_t b, uint32_t *count) {
  const SassBlock *block = &f->code->blocks[b];
  uint32_t first = *count;
  uint32_t absent = 0;
  for (uint32_t i = block->first; i < block->first + block->count; i++) {
    const SassInst *m = &f->code->insts[i];
    uint32_t line = f->line_of[i];
    bool guarded = m->guarded && m->kind != SASS_KIND_BRANCH && m->kind != SASS_KIND_EXIT;
    if (line == SASS_NONE && m->line && m->line != f->code->insts[0].line && !guarded) absent++;
    if (line == SASS_NONE || guarded) continue;
    if (*count - first < MOST_VOTES || f->lines[line].strength == 3)
      add_vote(f, count, first, line, is_main(&f->insts[f->lines[line].first], m));
  }
  for (uint32_t i = first; i < *count; i++) {
    if (!f->votes[i].copies) f->votes[i].strength = 0;
    if (f->votes[i].strength > f->strength[b]) f->strength[b] = f->votes[i].strength;
  }
  f->never[b] = absent > *count - first; // lines that were not executed
}

// Whether the block alone holds a line that votes: it was executed, then, and as often as that line.
static bool is_sure(const Fit *f, uint32_t b) {
  for (uint32_t i = f->first_vote[b]; i < f->first_vote[b + 1]; i++)
    if (f->votes[i].strength && f->lines[f->votes[i].line].blocks == 1) return true;
  return false;
}

static bool make_votes(Fit *f, SolArena *arena) {
  const SassCode *c = f->code;
  f->line_of = sol_arena_alloc(arena, (c->count + 1) * sizeof *f->line_of);
  f->inst_of = sol_arena_alloc(arena, (c->count + 1) * sizeof *f->inst_of);
  f->votes = sol_arena_alloc(arena, (c->count + 1) * sizeof *f->votes);
  f->first_vote = sol_arena_alloc(arena, (c->block_count + 2) * sizeof *f->first_vote);
  f->times = sol_arena_alloc(arena, (c->block_count + 1) * sizeof *f->times);
  f->strength = sol_arena_alloc(arena, c->block_count + 1);
  f->never = sol_arena_alloc(arena, c->block_count + 1);
  f->detour = sol_arena_alloc(arena, (c->block_count + 1) * sizeof *f->detour);
  if (!f->line_of || !f->inst_of || !f->votes || !f->first_vote || !f->times || !f->strength || !f->never ||
      !f->detour)
    return false;
  for (uint32_t i = 0; i < c->count; i++) {
    f->line_of[i] = c->insts[i].line ? find_line(f, c->insts[i].line) : SASS_NONE;
    f->inst_of[i] = f->line_of[i] == SASS_NONE ? SASS_NONE : f->lines[f->line_of[i]].first;
  }
  uint32_t count = 0;
  for (uint32_t b = 0; b < c->block_count; b++) {
    f->first_vote[b] = count;
    vote_of_block(f, b, &count);
  }
  f->first_vote[c->block_count] = count;
  for (uint32_t i = 0; i < count; i++) {
    Line *line = &f->lines[f->votes[i].line];
    if (f->votes[i].strength && f->votes[i].copies > line->most) line->most = f->votes[i].copies;
  }
  for (uint32_t b = 0; b < c->block_count; b++)
    if (f->never[b] && is_sure(f, b)) f->never[b] = false;
  return true;
}

// ---- executions of blocks ----

typedef struct Ballot {
  double value[MOST_VOTES], weight[MOST_VOTES]; // by rising value
  uint32_t count;
} Ballot;

static void cast(Ballot *b, double value, double weight) {
  if (b->count == MOST_VOTES) return;
  uint32_t at = b->count++;
  for (; at && b->value[at - 1] > value; at--)
    b->value[at] = b->value[at - 1], b->weight[at] = b->weight[at - 1];
  b->value[at] = value;
  b->weight[at] = weight;
}

// The median by weight; of two the larger.
static double median(const Ballot *b) {
  double half = 0, above = 0;
  for (uint32_t i = 0; i < b->count; i++) half += b->weight[i] / 2;
  for (uint32_t i = b->count; i-- > 0;)
    if ((above += b->weight[i]) >= half) return b->value[i];
  return 0;
}

static double vote_block(const Fit *f, uint32_t b) {
  static const double weight[] = {0, 1, 2, 4};
  Ballot ballot = {.count = 0};
  for (uint32_t i = f->first_vote[b]; i < f->first_vote[b + 1]; i++) {
    const Line *line = &f->lines[f->votes[i].line];
    if (f->votes[i].strength && line->fitted > 0)
      cast(&ballot, line->executions / line->fitted, weight[f->votes[i].strength]);
  }
  return ballot.count ? median(&ballot) : 1;
}

// Of a block none of whose lines votes: the executions of the lines that it alone holds; negative: none. Where it has several of
// each line that the machine has once (by the uniform datapath, which has no vote), it is a loop unrolled so many times.
static double guess_block(const Fit *f, uint32_t b) {
  Ballot ballot = {.count = 0};
  uint32_t unrolled = 0;
  for (uint32_t i = f->first_vote[b]; i < f->first_vote[b + 1]; i++) {
    const Line *line = &f->lines[f->votes[i].line];
    if (line->blocks != 1) continue;
    cast(&ballot, line->executions, 1);
    if (line->strength && (!unrolled || f->votes[i].insts < unrolled)) unrolled = f->votes[i].insts;
  }
  return ballot.count ? median(&ballot) / (unrolled ? unrolled : 1) : -1;
}

static void fit_lines(Fit *f) {
  for (uint32_t i = 0; i < f->line_count; i++) f->lines[i].fitted = 0;
  for (uint32_t b = 0; b < f->code->block_count; b++)
    for (uint32_t i = f->first_vote[b]; i < f->first_vote[b + 1]; i++)
      f->lines[f->votes[i].line].fitted += f->votes[i].copies * f->times[b];
}

// What a block passes on to one of the two that may follow it. The end of a loop passes on all that it has, as far as that has entered the
// loop (leaves).
static double passes(const Fit *f, uint32_t from, uint32_t to) {
  const SassBlock *p = &f->code->blocks[from];
  uint32_t other = p->next == to ? p->branch : p->next;
  if (other <= from) return f->times[from];
  if (other == SASS_NONE || other == to || f->never[other] || f->detour[other] >= 0) return f->times[from];
  if (!f->strength[other]) return f->times[from] / 2;
  return f->times[other] < f->times[from] ? f->times[from] - f->times[other] : 0;
}

typedef struct Inflow {
  double all, passed; // all: as if every branch were taken each way
  bool loop, any;     // loop: some of it comes from behind
} Inflow;

static void add_flow(Inflow *to, double all, double passed) {
  to->all += all;
  to->passed += passed;
}

// What ends in a branch back is left as often as the loop is entered.
static double leaves(const Fit *f, const Inflow *in, uint32_t b, double times) {
  uint32_t back = f->code->blocks[b].branch;
  double entered = back != SASS_NONE && back <= b ? in[back].all : 0;
  return entered > 0 && entered < times ? entered : times;
}

static void flow(const Fit *f, Inflow *in) {
  const SassCode *c = f->code;
  memset(in, 0, c->block_count * sizeof *in);
  for (uint32_t b = 0; b < c->block_count; b++) {
    if (f->detour[b] >= 0) continue; // the block where it ends is reached without it, too
    const uint32_t to[] = {c->blocks[b].next,
                           c->blocks[b].branch == c->blocks[b].next ? SASS_NONE : c->blocks[b].branch};
    for (int i = 0; i < 2; i++) {
      if (to[i] == SASS_NONE) continue;
      Inflow *next = &in[to[i]];
      next->any = true;
      next->loop |= to[i] <= b;
      if (to[i] > b) add_flow(next, leaves(f, in, b, f->times[b]), leaves(f, in, b, passes(f, b, to[i])));
    }
  }
}

// Calls lead to functions of ptxas's own.
static uint32_t called(const Fit *f, uint32_t b, uint32_t at) {
  const SassInst *m = &f->code->insts[f->code->blocks[b].first + at];
  if (m->kind != SASS_KIND_CALL || m->target == SASS_NONE) return SASS_NONE;
  uint32_t low = 0, high = f->code->block_count;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (f->code->blocks[middle].first <= m->target)
      low = middle;
    else
      high = middle;
  }
  return f->code->blocks[low].subroutine ? low : SASS_NONE;
}

// Of the executions of a floating-point division or root, those with operands that its short way cannot handle; negative: the
// instruction is no such one.
static double long_way(const Fit *f, uint32_t inst) {
  const AuditInst *in = f->inst_of[inst] == SASS_NONE ? NULL : &f->insts[f->inst_of[inst]];
  if (!in || !in->counts.executions) return 0;
  bool real = in->unit == SOL_EMU_CLASS_FLOAT || in->unit == SOL_EMU_CLASS_DOUBLE ||
              in->unit == SOL_EMU_CLASS_SPECIAL;
  return real ? (double)in->counts.turns / (double)in->counts.executions : -1;
}

// A block with a call that the block before it may branch past.
static void find_detours(Fit *f) {
  const SassCode *c = f->code;
  f->detour[0] = -1;
  for (uint32_t b = 1; b < c->block_count; b++) {
    bool avoided = c->blocks[b - 1].next == b && c->blocks[b - 1].branch != SASS_NONE;
    f->detour[b] = -1;
    for (uint32_t i = 0; i < c->blocks[b].count && avoided; i++)
      if (called(f, b, i) != SASS_NONE) f->detour[b] = long_way(f, c->blocks[b].first + i);
  }
}

static void flow_into_calls(const Fit *f, Inflow *in) {
  for (uint32_t b = 0; b < f->code->block_count; b++)
    for (uint32_t i = 0; i < f->code->blocks[b].count; i++) {
      uint32_t to = called(f, b, i);
      if (to != SASS_NONE) in[to].any = true, in[to].passed += f->times[b];
    }
}

static double guess_flow(const Fit *f, uint32_t b, const Inflow *in, double start) {
  double guess = guess_block(f, b);
  if (!in) return start;
  if (guess < 0 || f->code->blocks[b].subroutine) return in->passed;
  return in->any && !in->loop && guess > in->all ? in->all : guess;
}

static bool apart(double a, double b) {
  return (a < b ? b - a : a - b) > 1e-6 * b;
}

// Of a loop that does what an unrolled one leaves, which has several copies of most of its lines: how often it goes round at most,
// each time. 0: it is none.
static double left_over(const Fit *f, uint32_t b) {
  double copies = 0, elsewhere = 0, times = 0;
  if (f->code->blocks[b].branch != b) return 0;
  for (uint32_t i = f->first_vote[b]; i < f->first_vote[b + 1]; i++) {
    const Vote *v = &f->votes[i];
    if (!v->strength) continue;
    copies += v->copies;
    elsewhere += f->lines[v->line].most;
    times = sol_larger(times, (double)f->lines[v->line].most / v->copies);
  }
  return 2 * elsewhere > 3 * copies ? times : 0;
}

// What flow says of blocks without votes of their own, and of those that are no loops; whether it changed anything.
static bool settle(Fit *f, Inflow *in, double start, bool clamp) {
  const SassCode *c = f->code;
  bool changed = false;
  flow(f, in);
  flow_into_calls(f, in);
  for (uint32_t b = 0; b < c->block_count; b++) {
    double was = f->times[b];
    if (f->never[b])
      f->times[b] = 0;
    else if (f->detour[b] >= 0)
      f->times[b] = f->detour[b] * f->times[b - 1];
    else if (!b && !in[0].loop && f->insts[0].text[0] != '@')
      f->times[b] = start;
    else if (!f->strength[b] || c->blocks[b].subroutine)
      f->times[b] = guess_flow(f, b, b ? &in[b] : NULL, start);
    else if (clamp && b && in[b].any && !in[b].loop && f->times[b] > in[b].all && !is_sure(f, b))
      f->times[b] = in[b].all;
    else if (clamp && b && left_over(f, b) > 0 && f->times[b] > in[b].all * left_over(f, b))
      f->times[b] = in[b].all * left_over(f, b);
    changed |= apart(f->times[b], was);
  }
  return changed;
}

// One turn; whether it changed anything worth another. What a block may have at most depends on those before it, which may have less by the
// same rule.
static bool fit_turn(Fit *f, Inflow *in, double start, bool clamp) {
  const SassCode *c = f->code;
  bool changed = false;
  memcpy(f->before, f->times, c->block_count * sizeof *f->times);
  fit_lines(f);
  for (uint32_t b = 0; b < c->block_count; b++)
    if (f->strength[b] && !(f->detour[b] >= 0)) f->times[b] *= vote_block(f, b);
  for (int step = 0; step < STEPS && settle(f, in, start, clamp); step++) {
  }
  for (uint32_t b = 0; b < c->block_count; b++) changed |= apart(f->times[b], f->before[b]);
  return changed;
}

static bool fit_blocks(Fit *f, SolArena *arena) {
  const SassCode *c = f->code;
  Inflow *in = sol_arena_alloc(arena, (c->block_count + 1) * sizeof *in);
  f->before = sol_arena_alloc(arena, (c->block_count + 1) * sizeof *f->before);
  if (!in || !f->before) return false;
  find_detours(f);
  double start = (double)f->insts[0].counts.executions;
  for (uint32_t b = 0; b < c->block_count; b++)
    f->times[b] = f->never[b] || f->detour[b] >= 0 || !f->strength[b] ? 0 : 1;
  for (int turn = 0; turn < TURNS; turn++)
    if (!fit_turn(f, in, start, turn > 1) && turn > 2) break;
  // In few digits: the figures are sent from process to process.
  for (uint32_t b = 0; b < c->block_count; b++) f->times[b] = __builtin_floor(f->times[b] * 64 + 0.5) / 64;
  return true;
}

// ---- what comes of it ----

static void add_pipe(SassUnit unit, double times, double heavy, AuditExecuted *m) {
  switch (unit) {
  case SASS_UNIT_FP32: m->fp32 += times; break;
  case SASS_UNIT_MAD: m->fp32 += times * heavy; break;
  case SASS_UNIT_FP16: m->fp16 += times; break;
  case SASS_UNIT_FP64: m->fp64 += times; break;
  case SASS_UNIT_INT: m->integer += times; break;
  case SASS_UNIT_SPECIAL: m->special += times; break;
  default: break;
  }
}

static bool is_local(uint8_t kind) {
  return kind == SASS_KIND_LOCAL_LOAD || kind == SASS_KIND_LOCAL_STORE;
}

// Turns in that half of the FMA pipe which multiplies integers: those with a result of 64 bits, or its upper half, take longer.
static double mad_turns(const Fit *f, const SassInst *m) {
  enum { IMAD_WIDE = 0x25, IMAD_HI = 0x27 };
  if (m->unit != SASS_UNIT_MAD) return 0;
  return m->opcode == IMAD_WIDE || m->opcode == IMAD_HI ? f->wide_turns : 1;
}

// Integer products have half of the FMA pipe alone: the work of both halves is the larger of the products'
// twice and of the sum.
static double mad_weight(const Fit *f) {
  double mads = 0, others = 0;
  for (uint32_t b = 0; b < f->code->block_count; b++)
    for (uint32_t i = 0; i < f->code->blocks[b].count; i++) {
      const SassInst *m = &f->code->insts[f->code->blocks[b].first + i];
      mads += f->times[b] * mad_turns(f, m);
      if (m->unit == SASS_UNIT_FP32) others += f->times[b];
    }
  return mads > others ? 1 + (mads - others) / mads : 1;
}

static void spread(Fit *f) {
  double heavy = mad_weight(f);
  for (uint32_t i = 0; i < f->count; i++) f->insts[i].by_machine = true;
  for (uint32_t b = 0; b < f->code->block_count; b++)
    for (uint32_t i = f->code->blocks[b].first; i < f->code->blocks[b].first + f->code->blocks[b].count;
         i++) {
      const SassInst *m = &f->code->insts[i];
      AuditInst *in = &f->insts[f->inst_of[i] == SASS_NONE ? 0 : f->inst_of[i]];
      in->executed.issues += f->times[b];
      if (m->kind == SASS_KIND_ATOMIC && m->sets >= SASS_SCOREBOARDS) in->executed.reds += f->times[b];
      if (m->kind == SASS_KIND_SHUFFLE) in->executed.shuffles += f->times[b];
      if (m->kind == SASS_KIND_CONST_LOAD) in->executed.constants += f->times[b];
      if (m->kind == SASS_KIND_UNIFORM_LOAD) in->executed.uniform_constants += f->times[b];
      add_pipe((SassUnit)m->unit, f->times[b], heavy * mad_turns(f, m), &in->executed);
      bool own = in->kind == SOL_EMU_KIND_LOCAL_LOAD || in->kind == SOL_EMU_KIND_LOCAL_STORE;
      if (is_local(m->kind) && !own) in->executed.spills += f->times[b] * m->width / 4;
    }
}

bool audit_machine_code(const SassCode *code, const SolDevice *device, AuditInst *insts, uint32_t count,
                        SolArena *arena) {
  MachineModel model = machine_model(device);
  Fit f = {.code = code, .insts = insts, .count = count, .wide_turns = model.wide_turns};
  if (!count || !code->count) return true;
  if (!make_lines(&f, arena) || !make_votes(&f, arena) || !fit_blocks(&f, arena)) return false;
  spread(&f);
  return audit_scoreboards(code, &model, insts, count, f.times, f.inst_of, arena) &&
         audit_merged(code, insts, count, f.inst_of, arena);
}
