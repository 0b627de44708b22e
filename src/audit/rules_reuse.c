// Rules about bytes that are moved more than once, or in a wider type than needed.
#include "audit/rules.h"
#include "base/format.h"

#define L2_AGAIN    2.0  // times a byte comes from L2: fewer are not worth a word
#define DRAM_AGAIN  1.5  // likewise from DRAM
#define L1_AGAIN    8.0  // likewise from L1, where it is cheap
#define MEMORY_PART 0.8  // of the time of what binds: where memory takes less, fewer reads change little
#define SLIDING     1.5  // sectors over the fewest, of rows of 64 bytes that start anywhere
#define REUSE       4.0  // times as many results that a load is advised to serve
#define FEW_BYTES   128  // that one kernel leaves to the next: a result of all of its threads, not of each
#define ALIKE       8.0  // times as many warps: more do not fit into one grid
#define READ_ONCE   1.25 // a consumer that asks for each byte at most so often takes it as it comes
#define FEW_VALUES  1024.0
#define MANY_ZEROS  0.5

// ---- reread ----

typedef struct Reads {            // loads of one allocation
  double asked, l2, dram, passes; // bytes, bytes, bytes, passes through L1
  double l2_requests;
  const AuditInst *worst;
} Reads;

// Whether the access pattern is no waste by itself. Windows that slide over an array start off a sector whatever its layout.
static bool is_tidy(const Rules *r, uint32_t i) {
  const SolEmuCounts *c = &r->kernel->insts[i].counts;
  return r->access[i] == RULE_NONE || r->access[i] == RULE_async_line ||
         (double)c->sectors <= SLIDING * (double)c->sectors_ideal;
}

// Of this allocation; of all that has no one allocation, where `t` has no address.
static bool reads_of(const Rules *r, uint32_t i, const AuditTouch *t) {
  const AuditInst *in = &r->kernel->insts[i];
  uint64_t of = in->pattern.several ? 0 : in->pattern.allocation;
  return in->kind == SOL_EMU_KIND_GLOBAL_LOAD && is_tidy(r, i) && of == t->address;
}

static Reads sum_reads(const Rules *r, const AuditTouch *t) {
  Reads s = {0};
  for (uint32_t i = 0; i < r->kernel->inst_count; i++) {
    if (!reads_of(r, i, t)) continue;
    const AuditInst *in = &r->kernel->insts[i];
    s.asked += 32 * (double)in->counts.sectors;
    s.l2 += 32 * r->demands[i].l2_reads;
    s.l2_requests += r->demands[i].l2_requests;
    s.dram += r->demands[i].dram_read;
    s.passes += r->demands[i].l1_wavefronts;
    if (!s.worst || in->counts.sectors > s.worst->counts.sectors) s.worst = in;
  }
  return s;
}

static double global_loads(const AuditKernel *k) {
  double requests = 0;
  for (uint32_t i = 0; i < k->inst_count; i++)
    if (k->insts[i].kind == SOL_EMU_KIND_GLOBAL_LOAD) requests += (double)k->insts[i].counts.requests;
  return requests;
}

// A load that is not executed is not waited for: of all loads, so many requests go.
static void wait_less(const AuditKernel *k, double requests, MachineWork *after) {
  double share = rule_ratio(requests, global_loads(k));
  after->load_waits -= share * k->work.load_waits;
  after->load_wait_clocks -= share * k->work.load_wait_clocks;
}

// DRAM could give each byte once; L2 and L1 as much less as a load serves more results.
static double read_less(const Rules *r, const AuditTouch *t, const Reads *s, MachineWork *after) {
  double times = 1, gone = 0;
  // DRAM gives 64 bytes at a time: more of them than were asked of L2 are not a second reading.
  double again = rule_least(s->dram, s->l2);
  if (again > DRAM_AGAIN * t->read) after->dram_read -= again - t->read;
  if (s->l2 > L2_AGAIN * t->read) times = rule_least(REUSE, s->l2 / t->read);
  if (s->asked >= L1_AGAIN * t->read) times = REUSE;
  double less = s->l2 - rule_least(s->l2, rule_most(s->l2 / times, t->read));
  after->l2_reads -= less / 32;
  after->l2_requests -= s->l2_requests * rule_ratio(less, s->l2);
  for (uint32_t i = 0; i < r->kernel->inst_count && times > 1; i++) {
    if (!reads_of(r, i, t)) continue;
    after->l1_wavefronts -= r->demands[i].l1_wavefronts * (1 - 1 / times);
    after->issues -= r->demands[i].issues * (1 - 1 / times);
    gone += (double)r->kernel->insts[i].counts.requests * (1 - 1 / times);
  }
  wait_less(r->kernel, gone, after);
  return times;
}

typedef struct Rereads { // of all allocations that are read more than once
  Reads sum;
  double distinct, times;
  uint32_t count;
} Rereads;

// False: it is not read so often that it would help.
static bool add_reread(const Rules *r, const AuditTouch *touch, Rereads *to, MachineWork *after) {
  AuditTouch whole = *touch,
             *t = &whole; // memory gives whole sectors: what was not asked of them is not read again
  t->read = rule_most(t->read, 32 * t->read_sectors);
  Reads s = sum_reads(r, t);
  if (!s.worst || t->read <= 0) return false;
  MachineWork tried = *after;
  double times = read_less(r, t, &s, &tried);
  if (times <= 1 && tried.dram_read >= after->dram_read) return false;
  *after = tried;
  to->sum.asked += s.asked, to->sum.l2 += s.l2, to->sum.dram += s.dram;
  to->distinct += t->read;
  to->times = rule_most(to->times, times);
  to->count++;
  if (!to->sum.worst || s.worst->counts.sectors > to->sum.worst->counts.sectors) to->sum.worst = s.worst;
  return true;
}

static void report_reread(Rules *r, const Rereads *all, const MachineWork *after) {
  const Reads *s = &all->sum;
  RuleWords w = {{0}, {0}, {0}};
  char arrays[40] = "";
  if (all->count > 1) sol_format(arrays, sizeof arrays, " of %u arrays", all->count);
  sol_format(w.message, sizeof w.message, "The %s%s read here are read %.0f times: %s from L2, %s from DRAM.",
             rule_bytes(all->distinct).text, arrays, s->asked / all->distinct, rule_bytes(s->l2).text,
             rule_bytes(s->dram).text);
  sol_format(w.evidence, sizeof w.evidence,
             "each byte %.1f times from any level, %.1f from L2, %.1f from DRAM; bound by %s",
             s->asked / all->distinct, s->l2 / all->distinct, s->dram / all->distinct,
             machine_resource_name(r->kernel->time.bound));
  if (s->asked >= L1_AGAIN * all->distinct)
    sol_format(
        w.fix, sizeof w.fix,
        "Use what was read for more results: with %.0f outputs a thread or block for each load (tiles in "
        "registers or shared memory) a quarter of the reads remain.",
        all->times);
  else
    sol_format(
        w.fix, sizeof w.fix,
        "Keep the data in registers or shared memory between the passes, or do in one pass what needs it "
        "(a sum and a sum of squares, a running maximum); smaller pieces may stay in cache.");
  rule_report(r, RULE_reread, s->worst, after, &w);
}

// One finding for all operands: they are used together, and tiles serve all of them.
void rule_reread(Rules *r) {
  const AuditKernel *k = r->kernel;
  Rereads all = {.times = 1};
  MachineWork after = k->work;
  const double *seconds = k->time.seconds;
  double memory = rule_most(seconds[MACHINE_DRAM], rule_most(seconds[MACHINE_L2], seconds[MACHINE_L1]));
  if (memory < MEMORY_PART * seconds[k->time.bound]) return;
  for (uint32_t i = 0; i < k->touch_count; i++)
    if (!rule_is_of_angles(&k->touches[i])) add_reread(r, &k->touches[i], &all, &after);
  AuditTouch rest = rule_touch_or_all(k, NULL);
  add_reread(r, &rest, &all, &after);
  if (all.count) report_reread(r, &all, &after);
}

// ---- round_trip ----

typedef struct Use {    // of one allocation by one kernel
  double loads, stores; // bytes asked for
  bool plain;           // lanes side by side, wherever it is accessed
} Use;

static Use use_of(const AuditKernel *k, const AuditTouch *t) {
  Use u = {0, 0, true};
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    if (!in->counts.requests || in->pattern.allocation != t->address) continue;
    if (in->kind == SOL_EMU_KIND_GLOBAL_LOAD)
      u.loads += (double)in->counts.bytes;
    else if (in->kind == SOL_EMU_KIND_GLOBAL_STORE)
      u.stores += (double)in->counts.bytes;
    else
      u.plain = false;
    if (in->pattern.several || (in->pattern.contiguous + in->pattern.rows) * 2 < in->pattern.seen)
      u.plain = false;
  }
  return u;
}

// No thread needs what another one has: then its results can be made where they are used, or used where made.
static bool is_pointwise(const AuditKernel *k) {
  return k->work.barriers <= 0 && k->work.shared_wavefronts <= 0 && k->work.l2_atomics <= 0 &&
         k->classes[SOL_EMU_CLASS_WARP] <= 0;
}

// Takes a share of a kernel's loads (or stores) of an allocation out.
static void without(const AuditKernel *k, const AuditTouch *t, SolEmuKind kind, double share,
                    MachineWork *after) {
  double gone = 0;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    const SolEmuCounts *c = &in->counts;
    if (in->kind != kind || in->pattern.allocation != t->address) continue;
    if (kind == SOL_EMU_KIND_GLOBAL_LOAD) gone += share * (double)c->requests;
    after->issues -= share * (double)c->executions;
    after->l2_reads -= share * (double)(c->l2_hits + c->l2_misses);
    after->l2_writes -= share * (double)c->l2_writes;
    if (kind == SOL_EMU_KIND_GLOBAL_STORE)
      after->l2_packets -= share * (double)c->l2_packets;
    else
      after->l2_requests -= share * (double)c->l2_requests;
    after->l1_wavefronts -= share * rule_most((double)c->requests, (double)c->sectors / 4);
    after->dram_read -= share * (double)c->dram_read;
    after->dram_write -= share * (double)c->dram_write;
  }
  wait_less(k, gone, after);
}

typedef struct Fusion { // of two kernels: what would be left of each, and the first load that would go
  MachineWork from, to;
  const AuditInst *at;
} Fusion;

static const AuditInst *first_load(const AuditKernel *k, uint64_t address) {
  for (uint32_t i = 0; i < k->inst_count; i++)
    if (k->insts[i].kind == SOL_EMU_KIND_GLOBAL_LOAD && k->insts[i].pattern.allocation == address)
      return &k->insts[i];
  return NULL;
}

// What `to` writes back of the allocation that `from` left dirty in L2, as part of all that `from` wrote.
static double written_for(const AuditProgram *p, const AuditKernel *from, const AuditKernel *to,
                          const AuditTouch *made) {
  double written = 0, all = 0;
  for (uint32_t i = 0; i < p->left_count; i++)
    if (p->lefts[i].from == from->index && p->lefts[i].to == to->index) written = p->lefts[i].written;
  for (uint32_t i = 0; i < from->touch_count; i++) all += from->touches[i].written;
  return written * rule_ratio(made->written, all);
}

// The allocations that flow from one kernel to the other; false where one does not pass straight through.
static bool fuse(const AuditProgram *p, const AuditFlow *f, Fusion *out) {
  const AuditKernel *from = &p->kernels[f->from], *to = &p->kernels[f->to];
  double made_times = rule_least(f->times / from->launches, 1),
         used_times = rule_least(f->times / to->launches, 1);
  *out = (Fusion){.from = from->work, .to = to->work};
  for (uint32_t i = 0; i < from->touch_count; i++) {
    const AuditTouch *made = &from->touches[i], *used = NULL;
    if (made->written <= 0 || !made->label || strcmp(made->label, f->label) != 0) continue;
    for (uint32_t m = 0; m < to->touch_count && !used; m++)
      if (to->touches[m].address == made->address && to->touches[m].read_first > 0) used = &to->touches[m];
    if (!used) continue;
    Use a = use_of(from, made), b = use_of(to, used);
    if (!a.plain || !b.plain || b.loads > READ_ONCE * used->read || a.stores > READ_ONCE * made->written)
      return false;
    if (f->only) without(from, made, SOL_EMU_KIND_GLOBAL_STORE, made_times, &out->from);
    if (f->only) out->to.dram_write -= written_for(p, from, to, made);
    without(to, used, SOL_EMU_KIND_GLOBAL_LOAD, used_times, &out->to);
    if (!out->at) out->at = first_load(to, used->address);
  }
  return out->at != NULL;
}

static double dram_of(const MachineWork *w) {
  return w->dram_read + w->dram_write;
}

// What both kernels need once the intermediate is in registers: neither its reading, nor its writing where
// nobody else reads it, nor the second launch.
static double fused_light(const AuditProgram *p, const AuditFlow *f, const AuditKernel *from,
                          const AuditKernel *to) {
  AuditNeeds a = audit_needs(from), b = audit_needs(to);
  double share = rule_least(f->times / to->launches, 1);
  a.bytes = rule_most(a.bytes - (f->only ? f->bytes : 0) - rule_in_l2(from), 0);
  b.bytes = rule_most(b.bytes - f->bytes - rule_in_l2(to), 0);
  b.launches *= 1 - share, b.graph_launches *= 1 - share;
  return audit_light(p, &a) + audit_light(p, &b);
}

// The second kernel also reads what other threads of the first wrote: a few bytes, such as a sum over all of them, or an array that it
// searches. Then it cannot begin before the first has ended.
static bool waits_for_all(const AuditProgram *p, const AuditFlow *f) {
  Fusion straight;
  for (uint32_t i = 0; i < p->flow_count; i++) {
    const AuditFlow *g = &p->flows[i];
    if (g != f && g->from == f->from && g->to == f->to && g->times > 0 &&
        (g->bytes <= FEW_BYTES * g->times || !fuse(p, g, &straight)))
      return true;
  }
  return false;
}

// Fused, both run as one grid: where one has many more threads, the other's would have to do its work.
static bool alike_in_size(const AuditKernel *a, const AuditKernel *b) {
  double first = rule_ratio(rule_warps(a), a->launches), second = rule_ratio(rule_warps(b), b->launches);
  return first <= ALIKE * second && second <= ALIKE * first;
}

static double excess(const AuditProgram *p, const AuditKernel *k) {
  return (rule_most(k->work.chain, 1) - 1) * machine_wait_clocks(&p->machine, &k->work);
}

// The time of both kernels fused. Where every launch of one is fused with one of the other they are one kernel: one grid
// starts, and its loads, stores and instructions overlap as those of any kernel do. Otherwise some launches of both remain,
// and each is timed by itself.
static double fused_seconds(const AuditProgram *p, const AuditFlow *f, const AuditKernel *from,
                            const AuditKernel *to, const Fusion *fused) {
  if (f->times < from->launches || f->times < to->launches) {
    double starting = to->time.seconds[MACHINE_LAUNCH] * rule_least(f->times / to->launches, 1);
    return audit_seconds_with(p, from, &fused->from) + audit_seconds_with(p, to, &fused->to) - starting;
  }
  MachineWork both = fused->from;
  machine_work_add(&both, &fused->to);
  both.launches = fused->to.launches;
  both.graph_launches = fused->to.graph_launches;
  both.early_launches = fused->to.early_launches;
  // By as much as the critical path of each is longer than what its warps wait on average, that of both is.
  double clocks = machine_wait_clocks(&p->machine, &both);
  if (clocks > 0) both.chain = 1 + (excess(p, from) + excess(p, to)) / clocks;
  return audit_seconds_with(p, to, &both);
}

// Reported at the reader, once for each intermediate.
static void report_flow(Rules *r, const AuditFlow *f) {
  const AuditProgram *p = r->program;
  const AuditKernel *from = &p->kernels[f->from], *to = r->kernel;
  Fusion fused;
  if (f->times > from->launches) return; // one result is read by several launches, as in a loop over them
  if (waits_for_all(p, f) || !alike_in_size(from, to)) return;
  if (f->times <= 0 || (!is_pointwise(from) && !is_pointwise(to)) || !fuse(p, f, &fused)) return;
  double before = from->time.total + to->time.total;
  double after = rule_most(fused_seconds(p, f, from, to, &fused), fused_light(p, f, from, to));
  double dram = dram_of(&from->work) + dram_of(&to->work) - dram_of(&fused.from) - dram_of(&fused.to);
  RuleWords w = {{0}, {0}, {0}};
  sol_format(
      w.message, sizeof w.message,
      "%.120s writes %s that this kernel reads back%s, each byte once: fused, %s stay out of L2, and %s of them "
      "out of DRAM%s.",
      from->title, rule_bytes(f->bytes / f->times).text, f->times > 1 ? " each time" : "",
      rule_bytes(f->bytes * (f->only ? 2 : 1)).text, rule_bytes(rule_most(dram, 0)).text,
      f->only ? "" : " (others read it too, so it has to be written all the same)");
  sol_format(w.evidence, sizeof w.evidence, "%.0f time%s, and as many launches saved", f->times,
             f->times == 1 ? "" : "s");
  sol_format(w.fix, sizeof w.fix, "Fuse %.120s into %.120s, so that the intermediate stays in registers.",
             from->title, to->title);
  rule_report_seconds(r, RULE_round_trip, fused.at, before, after, &w);
}

void rule_round_trip(Rules *r) {
  const AuditProgram *p = r->program;
  for (uint32_t i = 0; i < p->flow_count; i++) {
    const AuditFlow *f = &p->flows[i];
    if (f->to == r->kernel->index && f->from != f->to && f->from < p->kernel_count) report_flow(r, f);
  }
}

// ---- wide_type ----

void rule_wide_type(Rules *r) {
  const AuditKernel *k = r->kernel;
  double values = 0, bytes = 0;
  bool fp16 = true, bf16 = true;
  const AuditInst *worst = NULL;
  MachineWork after = k->work;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    const SolEmuPattern *p = &in->pattern;
    bool fits = p->as_fp16 == p->values || p->as_bf16 == p->values;
    if (in->kind != SOL_EMU_KIND_GLOBAL_LOAD || (double)p->values < FEW_VALUES || !fits ||
        (double)p->zeros > MANY_ZEROS * (double)p->values || p->uniform * 2 > p->seen)
      continue;
    const MachineWork *d = &r->demands[i];
    after.dram_read -= d->dram_read / 2;
    after.l2_reads -= d->l2_reads / 2;
    after.l2_requests -= d->l2_requests / 2;
    after.l1_wavefronts -=
        rule_most(d->l1_wavefronts - rule_most(d->l1_wavefronts / 2, (double)in->counts.requests), 0);
    values += (double)p->values;
    bytes += (double)in->counts.bytes;
    fp16 = fp16 && p->as_fp16 == p->values;
    bf16 = bf16 && p->as_bf16 == p->values;
    if (!worst || in->counts.bytes > worst->counts.bytes) worst = in;
  }
  if (!worst) return;
  const char *type = fp16 ? "fp16" : bf16 ? "bf16" : "16-bit";
  RuleWords w = {{0}, {0}, {0}};
  sol_format(w.message, sizeof w.message,
             "All %.0f values examined are exactly representable in %s but stored as fp32: half of %s need "
             "not be read.",
             values, type, rule_bytes(bytes).text);
  sol_format(w.evidence, sizeof w.evidence,
             "%llu of %llu exact in fp16, %llu in bf16, %llu zero (this line, this run)",
             (unsigned long long)worst->pattern.as_fp16, (unsigned long long)worst->pattern.values,
             (unsigned long long)worst->pattern.as_bf16, (unsigned long long)worst->pattern.zeros);
  r->needs.bytes -= rule_least(bytes, r->needs.bytes) / 2;
  rule_report(r, RULE_wide_type, worst, &after, &w);
}
