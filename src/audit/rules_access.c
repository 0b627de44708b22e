// Rules about access patterns: uncoalesced accesses and their particular kinds. An instruction belongs to at
// most one of these rules, the most specific, so that no waste is reported twice. Instructions of one rule that
// share a line or an allocation make one finding: they have to be changed together.
#include "audit/rules.h"
#include "base/format.h"

#define WASTE        1.15 // sectors over the fewest possible: below, an access is taken to be fine
#define ROW_BYTES    128  // lanes at least so far apart stand in different rows; closer, in one row's pieces
#define RECORD_BYTES 256  // the largest structure that is looked for
#define DENSE        0.75 // share of the touched sectors' bytes that the launch does use
#define SEVERAL      4.0  // elements of a sector: what lies between those of two lanes is used by others
#define PARTIAL      0.25 // share of the written sectors that stay incomplete
#define FILL         0.5  // of the bytes of needless sectors: less filling is not the main fault
#define FEW_RESULTS  0.1  // of the bytes read: as few are written where rows become values
#define EDGE         0.25 // of the bytes read in rows: fewer by columns are the edge of a tile

// ---- one instruction ----

static uint64_t stride_of(const AuditInst *in) {
  int64_t s = in->pattern.stride;
  return (uint64_t)(s < 0 ? -s : s);
}

static bool most(uint64_t part, uint64_t whole) {
  return part * 2 > whole;
}

// Whether most bytes of the sectors touched in this instruction's buffer are used somewhere in the launch, or several elements of each,
// where some lanes leave theirs out.
static bool is_dense(const AuditKernel *k, const AuditInst *in) {
  AuditTouch t = rule_touch_or_all(k, in);
  double least = rule_least(DENSE * 32, SEVERAL * in->width);
  if (in->kind == SOL_EMU_KIND_GLOBAL_LOAD) return t.read >= least * t.read_sectors;
  return t.written >= least * t.written_sectors;
}

static bool leaves_partial(const AuditKernel *k, const AuditInst *in) {
  if (in->kind != SOL_EMU_KIND_GLOBAL_STORE || !in->counts.dram_read) return false;
  AuditTouch t = rule_touch_or_all(k, in);
  double wasted = 32 * ((double)in->counts.sectors - (double)in->counts.sectors_ideal);
  if ((double)in->counts.dram_read < FILL * wasted)
    return false; // more sectors than need be cost more than filling them
  return t.partial_sectors >= PARTIAL * t.written_sectors;
}

// A thread that walks through the bytes between itself and the next lane: a loop over them ...
static bool walks_inside(const AuditInst *in) {
  const SolEmuPattern *p = &in->pattern;
  uint64_t step = (uint64_t)(p->step < 0 ? -p->step : p->step);
  return most(p->step_times, p->steps) && step > 0 && step < stride_of(in);
}

// Of a line that has such a loop: its other accesses are turns of it that the compiler unrolled, not fields.
static bool is_of_loop(const AuditKernel *k, const AuditInst *in) {
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *other = &k->insts[i];
    if (other->kind == in->kind && other->pattern.allocation == in->pattern.allocation &&
        rule_same_line(in, other) && walks_inside(other))
      return true;
  }
  return walks_inside(in);
}

// Other accesses of the same thread to the same record: how many, and whether they are one line's loop over
// like elements, unrolled, rather than fields.
typedef struct Record {
  uint32_t accesses;
  uint64_t bytes;
  bool one_line, alike;
} Record;

static Record record_of(const AuditKernel *k, const AuditInst *in) {
  Record r = {1, in->width, true, true};
  int64_t stride = (int64_t)stride_of(in);
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *other = &k->insts[i];
    if (other == in || other->kind != in->kind || other->pattern.allocation != in->pattern.allocation ||
        (int64_t)stride_of(other) != stride)
      continue;
    int64_t apart = other->offset - in->offset;
    if (!in->base || in->base != other->base || apart == 0 || apart >= stride || apart <= -stride) continue;
    r.accesses++;
    r.bytes += other->width;
    r.one_line = r.one_line && rule_same_line(in, other);
    r.alike = r.alike && other->width == in->width;
  }
  return r;
}

// The column beside a tile that is otherwise read row by row: of a small part of the bytes, by a part of the lanes.
static bool is_edge(const AuditKernel *k, const AuditInst *in) {
  double rows = 0, own = (double)in->counts.bytes;
  if (in->kind != SOL_EMU_KIND_GLOBAL_LOAD || in->counts.lanes >= 32 * in->counts.executions) return false;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *other = &k->insts[i];
    if (other->kind == in->kind && other->pattern.allocation == in->pattern.allocation &&
        (other->pattern.contiguous + other->pattern.rows) * 2 > other->pattern.seen)
      rows += (double)other->counts.bytes;
  }
  return own < EDGE * rows;
}

static RuleId by_stride(const AuditKernel *k, const AuditInst *in) {
  uint64_t stride = stride_of(in);
  if (stride == 0) return RULE_NONE;                                    // rows of lanes that share an address
  if (in->pattern.rows && stride <= in->width) return RULE_uncoalesced; // rows too short to fill sectors
  if (stride <= RECORD_BYTES && !is_of_loop(k, in)) {
    Record record = record_of(k, in);
    bool unrolled = record.one_line && record.alike && record.accesses >= 4 && record.bytes == stride;
    if (record.accesses >= 2 && !unrolled) return RULE_aos;
  }
  if (stride >= ROW_BYTES && is_edge(k, in)) return RULE_NONE;
  return stride >= ROW_BYTES && is_dense(k, in) ? RULE_column_walk : RULE_uncoalesced;
}

// The fewest lines that could hold what one request copies.
static double fewest_lines(const AuditInst *in) {
  double bytes = rule_ratio((double)in->counts.bytes, (double)in->counts.requests);
  uint64_t whole = (uint64_t)((bytes + 127) / 128);
  return (double)in->counts.requests * (double)(whole ? whole : 1);
}

// Lanes side by side, or one lane that copies all.
static bool is_off_line(const AuditInst *in) {
  const SolEmuPattern *p = &in->pattern;
  if (!in->async || in->kind != SOL_EMU_KIND_GLOBAL_LOAD || !in->counts.requests) return false;
  if (most(p->seen, in->counts.requests) && !most(p->contiguous, p->seen)) return false;
  return (double)in->counts.lines >= WASTE * fewest_lines(in);
}

static RuleId access_rule(const AuditKernel *k, const AuditInst *in) {
  const SolEmuPattern *p = &in->pattern;
  if (is_off_line(in)) return RULE_async_line;
  if (!rule_is_global(in) || !most(p->seen, in->counts.requests)) return RULE_NONE;
  if (leaves_partial(k, in)) return RULE_partial_write;
  if ((double)in->counts.sectors < WASTE * (double)in->counts.sectors_ideal) return RULE_NONE;
  if (most(p->scattered, p->seen)) return RULE_gather;
  if (most(p->contiguous, p->seen)) return most(p->misaligned, p->contiguous) ? RULE_misaligned : RULE_NONE;
  if (most(p->strided, p->seen)) return by_stride(k, in);
  return most(p->uniform, p->seen) ? RULE_NONE : RULE_uncoalesced;
}

// Another access to the structures that some loads take fields of: a store of one field, say.
static bool is_field(const Rules *r, const AuditInst *in) {
  for (uint32_t i = 0; i < r->kernel->inst_count; i++) {
    const AuditInst *other = &r->kernel->insts[i];
    if (r->access[i] == RULE_aos && in->pattern.allocation && stride_of(in) == stride_of(other) &&
        in->pattern.allocation == other->pattern.allocation && !in->pattern.several)
      return true;
  }
  return false;
}

void rules_classify_accesses(Rules *r) {
  const AuditKernel *k = r->kernel;
  for (uint32_t i = 0; i < k->inst_count; i++) r->access[i] = (uint8_t)access_rule(k, &k->insts[i]);
  for (uint32_t i = 0; i < k->inst_count; i++)
    if ((r->access[i] == RULE_uncoalesced || r->access[i] == RULE_partial_write) && is_field(r, &k->insts[i]))
      r->access[i] = RULE_aos;
}

// ---- findings: groups of instructions ----

typedef struct Group {
  uint32_t *member, count; // indices of instructions
  uint8_t *taken;          // of each instruction: it is in this group or an earlier one
  const AuditInst *worst;  // the one with most wasted sectors
  double requests, sectors, ideal;
} Group;

static bool belong_together(const AuditInst *a, const AuditInst *b) {
  if (rule_same_line(a, b)) return true;
  if (a->kind == b->kind && a->pattern.stride == b->pattern.stride && a->width == b->width &&
      a->pattern.strided)
    return true; // two operands that are indexed alike
  return a->pattern.allocation && a->pattern.allocation == b->pattern.allocation && !a->pattern.several &&
         !b->pattern.several;
}

// In bytes; what a store reads fills up sectors.
static double wasted(const AuditInst *in) {
  double fill = in->kind == SOL_EMU_KIND_GLOBAL_STORE ? (double)in->counts.dram_read : 0;
  return 32 * ((double)in->counts.sectors - (double)in->counts.sectors_ideal) + fill;
}

static void take(const Rules *r, Group *g, uint32_t i) {
  const AuditInst *in = &r->kernel->insts[i];
  g->taken[i] = 1;
  g->member[g->count++] = i;
  g->requests += (double)in->counts.requests;
  g->sectors += (double)in->counts.sectors;
  g->ideal += (double)in->counts.sectors_ideal;
  if (!g->worst || wasted(in) > wasted(g->worst)) g->worst = in;
}

// The next group of a rule's instructions; false: there is none.
static bool next_group(const Rules *r, RuleId rule, Group *g) {
  const AuditKernel *k = r->kernel;
  *g = (Group){.member = g->member, .taken = g->taken};
  for (uint32_t i = 0; i < k->inst_count && !g->count; i++)
    if (r->access[i] == rule && !g->taken[i]) take(r, g, i);
  for (uint32_t m = 0; m < g->count; m++)
    for (uint32_t i = 0; i < k->inst_count; i++)
      if (r->access[i] == rule && !g->taken[i] && belong_together(&k->insts[g->member[m]], &k->insts[i]))
        take(r, g, i);
  return g->count != 0;
}

// The instructions of a group that work alike on one allocation, and what that would cost well laid out: as
// much less as there are fewer sectors, but no less than each of its bytes once.
typedef struct Stream {
  double sectors, ideal, bytes;
  double l2_reads, l2_writes, l2_requests, l2_packets, dram_read, dram_write, dram_scattered;
} Stream;

static bool same_stream(const AuditInst *a, const AuditInst *b) {
  return a == b || (a->kind == b->kind && a->pattern.allocation && !a->pattern.several &&
                    !b->pattern.several && a->pattern.allocation == b->pattern.allocation);
}

static Stream stream_of(const Rules *r, const Group *g, const AuditInst *in) {
  Stream s = {0};
  for (uint32_t m = 0; m < g->count; m++) {
    const AuditInst *other = &r->kernel->insts[g->member[m]];
    const MachineWork *d = &r->demands[g->member[m]];
    if (!same_stream(in, other)) continue;
    s.sectors += (double)other->counts.sectors;
    s.ideal += (double)other->counts.sectors_ideal;
    s.bytes += (double)other->counts.bytes;
    s.l2_reads += d->l2_reads;
    s.l2_writes += d->l2_writes;
    s.l2_requests += d->l2_requests;
    s.l2_packets += d->l2_packets;
    s.dram_scattered += d->dram_scattered;
    s.dram_read += d->dram_read;
    s.dram_write += d->dram_write;
  }
  return s;
}

// Distinct bytes that are this stream's share: of its allocation's, or of all where it has none of its own.
static double distinct_bytes(const Rules *r, const AuditInst *in, const Stream *s) {
  bool known = rule_touch(r->kernel, in) != NULL;
  AuditTouch t = rule_touch_or_all(r->kernel, in);
  double all = 0;
  for (uint32_t i = 0; i < r->kernel->inst_count; i++) {
    const AuditInst *other = &r->kernel->insts[i];
    if (known ? same_stream(in, other) : in->kind == other->kind) all += (double)other->counts.bytes;
  }
  return (in->kind == SOL_EMU_KIND_GLOBAL_LOAD ? t.read : t.written) * rule_ratio(s->bytes, all);
}

// Bytes that must be fetched for this stream: its share, and what no other load of the same bytes fetches
// (of nine neighbours' loads one misses, and the others find its sectors in the cache).
static double least_read(const Rules *r, const AuditInst *in, const Stream *s, double distinct) {
  bool known = rule_touch(r->kernel, in) != NULL;
  double rest = rule_touch_or_all(r->kernel, in).read + s->dram_read;
  if (in->kind != SOL_EMU_KIND_GLOBAL_LOAD) return distinct;
  for (uint32_t i = 0; i < r->kernel->inst_count; i++) {
    const AuditInst *other = &r->kernel->insts[i];
    if (known ? same_stream(in, other) : in->kind == other->kind) rest -= r->demands[i].dram_read;
  }
  return rule_most(distinct, rest);
}

static double saved_of(double now, double share, double least) {
  return now - rule_least(now, rule_most(now * share, least));
}

// Of the waits for loads, those for DRAM become fewer with the bytes that it is read for.
static void shorten_waits(const Rules *r, double saved, MachineWork *after) {
  const MachineWork *now = &r->kernel->work;
  const SolDevice *d = r->program->device;
  double longer = d->mem_latency.value - d->l2_latency.value;
  if (!(now->load_waits > 0 && now->dram_read > 0 && longer > 0)) return;
  double far = (now->load_wait_clocks / now->load_waits - d->l2_latency.value) / longer;
  if (far > 0)
    after->load_wait_clocks -= now->load_waits * rule_least(far, 1) * saved / now->dram_read * longer;
}

static void lay_out_well(const Rules *r, const Group *g, MachineWork *after) {
  for (uint32_t m = 0; m < g->count; m++) {
    const AuditInst *in = &r->kernel->insts[g->member[m]];
    const SolEmuCounts *c = &in->counts;
    double now = r->demands[g->member[m]].l1_wavefronts;
    after->l1_wavefronts -=
        now - rule_least(now, rule_most((double)c->requests, (double)c->sectors_ideal / 4));
    bool first = true;
    for (uint32_t b = 0; b < m && first; b++) first = !same_stream(in, &r->kernel->insts[g->member[b]]);
    if (!first) continue;
    Stream s = stream_of(r, g, in);
    double share = rule_ratio(s.ideal, s.sectors), distinct = distinct_bytes(r, in, &s);
    double reads = saved_of(s.l2_reads, share, distinct / 32),
           writes = saved_of(s.l2_writes, share, distinct / 32);
    after->l2_reads -= reads;
    after->l2_writes -= writes;
    after->l2_requests -= // whole lines are asked for at once
        s.l2_requests - rule_least(s.l2_requests, (s.l2_reads - reads) / 4);
    after->l2_packets -= s.l2_packets - rule_least(s.l2_packets, s.l2_writes - writes); // and written so
    after->dram_scattered -= s.dram_scattered;
    after->dram_write -= saved_of(s.dram_write, share, distinct);
    // What a store reads fills up sectors; whole ones need none.
    bool store = in->kind == SOL_EMU_KIND_GLOBAL_STORE;
    double saved = store ? s.dram_read : saved_of(s.dram_read, share, least_read(r, in, &s, distinct));
    after->dram_read -= saved;
    if (!store) shorten_waits(r, saved, after);
  }
}

static const char *verb(const Group *g) {
  return g->worst->kind == SOL_EMU_KIND_GLOBAL_STORE ? "store" : "load";
}

static void put_evidence(const Group *g, RuleWords *w) {
  size_t n = 0;
  const SolEmuPattern *p = &g->worst->pattern;
  if (p->strided && !most(p->scattered, p->seen))
    n = sol_format(w->evidence, sizeof w->evidence, "stride %lld B in %.0f%% of requests, ",
                   (long long)p->stride, 100 * rule_ratio((double)p->stride_times, (double)p->seen));
  sol_format(w->evidence + n, sizeof w->evidence - n,
             "%.1f sectors a request where %.1f would do, %.0f requests, %u bytes a lane",
             rule_ratio(g->sectors, g->requests), rule_ratio(g->ideal, g->requests), g->requests,
             g->worst->width);
}

typedef void Describe(const Rules *r, const Group *g, RuleWords *w);

static void report_groups(Rules *r, RuleId rule, Describe *describe) {
  uint32_t n = r->kernel->inst_count, found = 0;
  for (uint32_t i = 0; i < n; i++) found += r->access[i] == rule;
  if (!found) return;
  Group g = {.member = sol_arena_alloc(&r->program->arena, n * sizeof *g.member),
             .taken = sol_arena_alloc(&r->program->arena, n)};
  if (!g.member || !g.taken) return;
  while (next_group(r, rule, &g)) {
    RuleWords words = {{0}, {0}, {0}};
    MachineWork after = r->kernel->work;
    put_evidence(&g, &words);
    describe(r, &g, &words);
    lay_out_well(r, &g, &after); // of a partial write the filling goes, too
    rule_report(r, rule, g.worst, &after, &words);
  }
}

// ---- the words of each ----

static void describe_uncoalesced(const Rules *r, const Group *g, RuleWords *w) {
  uint64_t stride = stride_of(g->worst);
  double sectors = rule_ratio(g->sectors, g->requests), ideal = rule_ratio(g->ideal, g->requests);
  if (g->worst->pattern.rows && stride <= g->worst->width) {
    sol_format(w->message, sizeof w->message,
               "The lanes of this %s access short rows: a request touches %.1f sectors where %.1f would do.",
               verb(g), sectors, ideal);
    sol_format(
        w->fix, sizeof w->fix,
        "Let a warp cover longer rows, whole 32-byte sectors at least: a block shape with a wider x, or "
        "rows padded to a multiple of 32 bytes.");
    return;
  }
  if (!most(g->worst->pattern.stride_times, g->worst->pattern.strided))
    sol_format(
        w->message, sizeof w->message,
        "How far apart adjacent lanes of this %s are varies: a request touches %.1f sectors where %.1f would do.",
        verb(g), sectors, ideal);
  else
    sol_format(
        w->message, sizeof w->message,
        "Adjacent lanes of this %s are %llu bytes apart: a request touches %.1f sectors where %.1f would do.",
        verb(g), (unsigned long long)stride, sectors, ideal);
  bool varies = g->worst->pattern.stride_times < g->worst->pattern.strided; // rows of several lengths
  if (is_of_loop(r->kernel, g->worst) && (stride >= ROW_BYTES || varies))
    sol_format(
        w->fix, sizeof w->fix,
        "Each lane walks through a row of its own: let the lanes of a warp, or as many as a row has elements, share a row, or "
        "keep element i of row r at [i * rows + r].");
  else if (!is_dense(r->kernel, g->worst))
    sol_format(w->fix, sizeof w->fix,
               "This kernel never uses the bytes between: store the ones it uses contiguously in an array of "
               "their own (a field of a structure, every n-th element).");
}

void rule_uncoalesced(Rules *r) {
  report_groups(r, RULE_uncoalesced, describe_uncoalesced);
}

static void describe_aos(const Rules *r, const Group *g, RuleWords *w) {
  Record record = record_of(r->kernel, g->worst);
  uint64_t size = stride_of(g->worst);
  sol_format(
      w->message, sizeof w->message,
      "Lanes are one structure of %llu bytes apart, of which this kernel %ss %llu: a request touches %.1f "
      "sectors where %.1f would do.",
      (unsigned long long)size, verb(g), (unsigned long long)(record.bytes < size ? record.bytes : size),
      rule_ratio(g->sectors, g->requests), rule_ratio(g->ideal, g->requests));
  if (record.bytes < size || size % g->worst->width || (size > 16 && !(record.one_line && record.alike)))
    return;
  sol_format(
      w->message, sizeof w->message,
      "Each lane %ss %llu neighbouring bytes in several accesses: a request touches %.1f sectors where %.1f would do.",
      verb(g), (unsigned long long)size, rule_ratio(g->sectors, g->requests),
      rule_ratio(g->ideal, g->requests));
  uint64_t parts = size / g->worst->width;
  if (size > 16) {
    sol_format(
        w->fix, sizeof w->fix,
        "Let adjacent threads take adjacent elements of %u bytes: threadIdx.x + k * blockDim.x in place of %llu * "
        "threadIdx.x + k.",
        g->worst->width, (unsigned long long)parts);
    return;
  }
  sol_format(
      w->fix, sizeof w->fix,
      "Take the %llu bytes with one access (%s), or let adjacent threads take adjacent elements: threadIdx.x + k * "
      "blockDim.x in place of %llu * threadIdx.x + k.",
      (unsigned long long)size,
      size == 16  ? "float4, uint4"
      : size == 8 ? "float2, uint2"
                  : "a vector type",
      (unsigned long long)parts);
}

void rule_aos(Rules *r) {
  report_groups(r, RULE_aos, describe_aos);
}

// Whether another array is accessed along its rows as often, as in a transposition: with the indices swapped, that one is walked down.
static bool has_other_order(const Rules *r, const Group *g) {
  for (uint32_t i = 0; i < r->kernel->inst_count; i++) {
    const AuditInst *in = &r->kernel->insts[i];
    if (rule_is_global(in) && r->access[i] == RULE_NONE && most(in->pattern.contiguous, in->pattern.seen) &&
        in->pattern.allocation != g->worst->pattern.allocation &&
        in->counts.requests * 2 >= g->worst->counts.requests)
      return true;
  }
  return false;
}

// Whether most of the group's waste is of lanes that each walk through elements side by side, as one thread for a sparse row does.
static bool walks_apart(const Rules *r, const Group *g) {
  double all = 0, walking = 0;
  for (uint32_t m = 0; m < g->count; m++) {
    const AuditInst *in = &r->kernel->insts[g->member[m]];
    const SolEmuPattern *p = &in->pattern;
    all += wasted(in);
    bool ahead = p->step > 0 && p->step <= ROW_BYTES &&
                 p->step % in->width == 0; // further than by one where the loop is unrolled
    if (ahead && most(p->step_times, p->steps)) walking += wasted(in);
  }
  return walking * 2 > all;
}

// Whether a row becomes one value, and nothing else is read as often: a thread for each row can then be a warp.
static bool sums_rows(const Rules *r, const Group *g) {
  double stored = 0, loaded = 0;
  for (uint32_t i = 0; i < r->kernel->inst_count; i++) {
    const AuditInst *in = &r->kernel->insts[i];
    if (in->kind == SOL_EMU_KIND_GLOBAL_STORE) stored += (double)in->counts.bytes;
    if (in->kind != SOL_EMU_KIND_GLOBAL_LOAD) continue;
    loaded += (double)in->counts.bytes;
    if (r->access[i] != RULE_column_walk && in->counts.requests * 2 >= g->worst->counts.requests)
      return false;
  }
  return g->worst->kind == SOL_EMU_KIND_GLOBAL_LOAD && stored < FEW_RESULTS * loaded && walks_apart(r, g);
}

#define SHARE_A_ROW                                                                                               \
  "Let the lanes of a warp (or of a part of one, where rows are short) share a row: they take adjacent elements " \
  "and combine at the end with __shfl_down_sync."

static void describe_column(const Rules *r, const Group *g, RuleWords *w) {
  sol_format(
      w->message, sizeof w->message,
      "Adjacent lanes of this %s are a row of %llu bytes apart: a request touches %.1f sectors where %.1f "
      "would do, though the whole array is used.",
      verb(g), (unsigned long long)stride_of(g->worst), rule_ratio(g->sectors, g->requests),
      rule_ratio(g->ideal, g->requests));
  if (sums_rows(r, g))
    sol_format(w->fix, sizeof w->fix, SHARE_A_ROW);
  else if (has_other_order(r, g))
    sol_format(
        w->fix, sizeof w->fix,
        "Another array is accessed along its rows here, and would be walked down if the indices were swapped: pass tiles of "
        "32x33 elements through shared memory, so that both are accessed along their rows.");
}

void rule_column_walk(Rules *r) {
  report_groups(r, RULE_column_walk, describe_column);
}

static void describe_misaligned(const Rules *r, const Group *g, RuleWords *w) {
  (void)r;
  const SolEmuPattern *p = &g->worst->pattern;
  sol_format(
      w->message, sizeof w->message,
      "%.0f%% of this %s's requests do not start on a 32-byte sector: they touch %.1f sectors where %.1f "
      "would do.",
      100 * rule_ratio((double)p->misaligned, (double)p->contiguous), verb(g),
      rule_ratio(g->sectors, g->requests), rule_ratio(g->ideal, g->requests));
}

void rule_misaligned(Rules *r) {
  report_groups(r, RULE_misaligned, describe_misaligned);
}

static void describe_async_line(const Rules *r, const Group *g, RuleWords *w) {
  (void)r;
  const AuditInst *in = g->worst;
  double requests = (double)in->counts.requests;
  sol_format(
      w->message, sizeof w->message,
      "This asynchronous copy does not start on a 128-byte line: a request touches %.1f lines where %.1f would do.",
      (double)in->counts.lines / requests, fewest_lines(in) / requests);
}

void rule_async_line(Rules *r) {
  report_groups(r, RULE_async_line, describe_async_line);
}

static void describe_gather(const Rules *r, const Group *g, RuleWords *w) {
  if (walks_apart(r, g)) {
    sol_format(
        w->message, sizeof w->message,
        "Each lane of this %s walks through elements of its own, one after another: a request touches %.1f sectors "
        "where %.1f would hold its bytes.",
        verb(g), rule_ratio(g->sectors, g->requests), rule_ratio(g->ideal, g->requests));
    sol_format(w->fix, sizeof w->fix, SHARE_A_ROW);
    return;
  }
  sol_format(w->message, sizeof w->message,
             "The lanes of this %s access unrelated addresses, %u bytes each: a request touches %.1f sectors "
             "where %.1f would hold its bytes.",
             verb(g), g->worst->width, rule_ratio(g->sectors, g->requests),
             rule_ratio(g->ideal, g->requests));
}

void rule_gather(Rules *r) {
  report_groups(r, RULE_gather, describe_gather);
}

static void describe_partial(const Rules *r, const Group *g, RuleWords *w) {
  AuditTouch t = rule_touch_or_all(r->kernel, g->worst);
  double fill = 0;
  for (uint32_t m = 0; m < g->count; m++) fill += r->demands[g->member[m]].dram_read;
  sol_format(
      w->message, sizeof w->message,
      "This store leaves %.0f%% of the sectors it writes incomplete: %s are read from memory to fill in "
      "the rest.",
      100 * rule_ratio(t.partial_sectors, t.written_sectors), rule_bytes(fill).text);
}

void rule_partial_write(Rules *r) {
  report_groups(r, RULE_partial_write, describe_partial);
}
