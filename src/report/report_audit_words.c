// A kernel's bill in words: what it ran, what bounds it, and what to change.
#include <string.h>

#include "audit/rules.h"
#include "base/format.h"
#include "report/report_audit.h"

#define SMALLEST_TERM 0.02 // share of the time: a smaller one is not shown
#define LOW_TAX       1.3  // up to here there is little to explain
#define NAMED_COST    0.01 // share of the time: a line that costs less is not named
#define SMALL_GAIN    1.2  // findings below it do not explain a higher tax

static double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

static double dram_bytes(const AuditKernel *k) {
  return k->work.dram_read + k->work.dram_write;
}

// What each resource would take alone, as a bar from zero to the time, and its part of the time.
void report_audit_terms(Fact *o, const AuditKernel *k) {
  enum { COLUMNS = 30 };
  static const FactColumn columns[] = {{"resource", 0}, {"alone", 0}, {"part", 0}, {"of the time", 0}, {0}};
  Fact *list = fact_list(o, 0, "By resource: alone, and its part of the time; alone they overlap");
  fact_columns(list, columns);
  for (int r = 0; r < MACHINE_RESOURCES; r++) {
    double share = ratio(k->time.seconds[r], k->time.total);
    int length = (int)(share * COLUMNS + 0.5);
    if (share < SMALLEST_TERM) continue;
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, 0, "resource", machine_resource_name((MachineResource)r));
    fact_number(row, 0, "alone", UNIT_US, BASIS_MODELLED, k->time.seconds[r] * 1e6);
    fact_number(row, 0, "part", UNIT_SHARE, BASIS_MODELLED, ratio(k->parts[r], k->time.total));
    fact_textf(row, 0, "of the time", "%.*s", length < COLUMNS ? length : COLUMNS,
               "##############################");
  }
}

static void number_text(SolBuffer *b, FactUnit unit, double value) {
  char text[48];
  fact_write_number(text, sizeof text, unit, value);
  sol_buffer_puts(b, text);
}

static void shape_text(SolBuffer *b, const AuditKernel *k) {
  enum { SHOWN = 3 };
  for (uint32_t i = 0; i < k->shape_count && i < SHOWN; i++) {
    const AuditShape *s = &k->shapes[i];
    sol_buffer_format(b, "%sgrid %u,%u,%u block %u,%u,%u", i ? "; " : "", s->grid[0], s->grid[1], s->grid[2],
                      s->block[0], s->block[1], s->block[2]);
    if (k->shape_count > 1) sol_buffer_format(b, " (%.0f)", s->launches);
  }
  if (k->shape_count > SHOWN) sol_buffer_format(b, "; %u more shapes", k->shape_count - SHOWN);
}

static void left_out_text(SolBuffer *b, const AuditKernel *k) {
  bool any = false;
  for (int r = 0; r < MACHINE_RESOURCES; r++) {
    if (!(k->time.left_out >> r & 1)) continue;
    sol_buffer_format(b, "%s%s", any ? ", " : "; left out, since a figure of the GPU is unknown: ",
                      machine_resource_name((MachineResource)r));
    any = true;
  }
}

static void say(Fact *o, const char *label, SolBuffer *b) {
  fact_text(o, 0, label, b->text ? b->text : "");
  b->length = 0;
  if (b->text) b->text[0] = 0;
}

static void sectors_text(SolBuffer *b, const char *what, const SolEmuCounts *c) {
  sol_buffer_format(b, "%s %.1f (ideal %.1f)", what, ratio((double)c->sectors, (double)c->requests),
                    ratio((double)c->sectors_ideal, (double)c->requests));
}

// Less than this share of what a kernel moves is not worth a line.
static bool matters(double bytes, const AuditKernel *k) {
  return bytes >= 0.01 * k->floor_bytes && bytes > 0;
}

static void dram_text(SolBuffer *b, const AuditKernel *k) {
  number_text(b, UNIT_BYTES, dram_bytes(k));
  sol_buffer_puts(b, ", where each byte once would be ");
  number_text(b, UNIT_BYTES, k->floor_bytes);
  if (k->floor_bytes > 0) sol_buffer_format(b, " (%.2fx)", dram_bytes(k) / k->floor_bytes);
  if (matters(k->earlier_written, k)) {
    sol_buffer_puts(b, "; ");
    number_text(b, UNIT_BYTES, k->earlier_written);
    sol_buffer_puts(b, " of it written back for earlier kernels");
  }
  if (matters(k->left_dirty, k)) {
    sol_buffer_puts(b, "; ");
    number_text(b, UNIT_BYTES, k->left_dirty);
    sol_buffer_puts(b, " written and left in L2");
  }
  if (k->work.page_bytes > 0) {
    sol_buffer_puts(b, "; ");
    number_text(b, UNIT_BYTES, k->work.page_bytes);
    sol_buffer_puts(b, " of managed pages moved here by faults (cudaMemPrefetchAsync moves them before)");
  }
}

// The one that left most; the others' share is small, or theirs is a long list.
static void found_text(SolBuffer *b, const AuditProgram *p, const AuditKernel *k) {
  const AuditLeft *most = NULL;
  double read = 0;
  for (uint32_t i = 0; i < p->left_count; i++)
    if (p->lefts[i].to == k->index && (!most || p->lefts[i].found > most->found)) most = &p->lefts[i];
  for (uint32_t i = 0; i < k->touch_count; i++) read += k->touches[i].read_first;
  number_text(b, UNIT_BYTES, k->found);
  sol_buffer_puts(b, " of ");
  number_text(b, UNIT_BYTES, read > k->found ? read : k->found);
  if (!most) return;
  sol_buffer_puts(b, ", ");
  if (most->found < k->found) number_text(b, UNIT_BYTES, most->found);
  sol_buffer_format(b, "%sleft there by %s", most->found < k->found ? " " : "",
                    most->from < p->kernel_count ? p->kernels[most->from].title
                                                 : "copies or launches long before");
}

static void repeats_text(SolBuffer *b, const AuditKernel *k) {
  if (k->counted >= k->launches) return;
  sol_buffer_format(b, "; %.0f of them counted, the others billed by these", k->counted);
  if (k->unlike > 0) sol_buffer_format(b, ", although %.0f executed something else", k->unlike);
}

void report_audit_summary(Fact *o, const AuditProgram *p, const AuditKernel *k) {
  SolBuffer b = {0};
  sol_buffer_format(&b, "%s", machine_resource_name(k->time.bound));
  left_out_text(&b, k);
  say(o, "bound by", &b);
  sol_buffer_format(&b, "%.0f, ", k->launches);
  shape_text(&b, k);
  if (k->scale > 1) sol_buffer_format(&b, "; sampled: one block in %.3g ran, counts are scaled", k->scale);
  repeats_text(&b, k);
  say(o, "launches", &b);
  number_text(&b, UNIT_PLAIN, k->work.issues);
  sol_buffer_puts(&b, k->machine ? " issued, by the machine code" : " issued, counted in PTX");
  say(o, "instructions", &b);
  sol_buffer_format(&b, "%.0f%%, limited by %s; %d registers (%s), ", k->occupancy.occupancy * 100,
                    sol_limiter_name(k->occupancy.limiter), k->registers,
                    k->registers_from == AUDIT_FROM_PTXAS ? "ptxas" : "the emulator's estimate");
  number_text(&b, UNIT_SIZE, (double)(k->static_shared + (k->shape_count ? k->shapes[0].dynamic_shared : 0)));
  sol_buffer_puts(&b, " shared");
  if (k->stack_bytes) sol_buffer_format(&b, ", %llu B stack", (unsigned long long)k->stack_bytes);
  say(o, "occupancy", &b);
  dram_text(&b, k);
  say(o, "DRAM bytes", &b);
  if (matters(k->found, k)) {
    found_text(&b, p, k);
    say(o, "found in L2", &b);
  }
  const SolEmuCounts *l = &k->kinds[SOL_EMU_KIND_GLOBAL_LOAD], *s = &k->kinds[SOL_EMU_KIND_GLOBAL_STORE];
  if (l->requests) sectors_text(&b, "loads", l);
  if (l->requests && s->requests) sol_buffer_puts(&b, ", ");
  if (s->requests) sectors_text(&b, "stores", s);
  if (l->requests + s->requests) say(o, "sectors a request", &b);
  sol_buffer_free(&b);
}

// ---- what to change ----

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static void finding_lines(Fact *o, const AuditFinding *f, uint32_t number) {
  SolBuffer b = {0};
  sol_buffer_format(&b, "%u. %.2fx faster%s, saves ", number, f->gain,
                    f->at_full_size ? " where the grid fills the GPU" : "");
  number_text(&b, UNIT_US, f->saved * 1e6);
  sol_buffer_format(&b, "%s: %s", f->at_full_size ? " here" : "", f->rule);
  if (f->file) sol_buffer_format(&b, ", %s:%u", base_name(f->file), f->line);
  fact_line(o, 2, true, "%s", b.text ? b.text : "");
  fact_line(o, 5, false, "%s", f->message);
  fact_line(o, 5, false, "Fix: %s", f->fix);
  fact_line(o, 5, false, "Assumes: %s", f->assumes);
  sol_buffer_free(&b);
}

static const char *remedy(const AuditKernel *k, MachineResource r) {
  if (r == MACHINE_LATENCY && k->time.pages * 2 > k->time.total)
    return "moving managed pages here before the launch (cudaMemPrefetchAsync), or cudaMalloc and copies";
  if ((r == MACHINE_ATOMICS || r == MACHINE_LATENCY) && k->work.call_clocks > k->work.load_wait_clocks)
    return "fewer calls of printf, malloc and free, which take turns as atomics do";
  if (r == MACHINE_L1 && k->work.constant_turns > k->work.l1_wavefronts + k->work.shared_wavefronts)
    return "constants at indices that the compiler knows (loops of a fixed length, unrolled), which are operands";
  if (r == MACHINE_L1 && k->work.shared_wavefronts > k->work.l1_wavefronts)
    return "fewer accesses to shared memory: values kept in registers, or handed over by shuffles";
  switch (r) {
  case MACHINE_LAUNCH: return "fewer launches, or a CUDA graph of them";
  case MACHINE_DRAM: return "fewer bytes, or more use of each while it is in a cache";
  case MACHINE_L2: return "fewer sectors, or what several threads need in shared memory";
  case MACHINE_L1: return "fewer or wider accesses";
  case MACHINE_ISSUE: return "fewer instructions for each result";
  case MACHINE_TENSOR: return "narrower types, or fewer products";
  case MACHINE_ATOMICS: return "fewer atomics on the same addresses";
  case MACHINE_BLOCKS: return "fewer blocks that do more each";
  default: return "more independent work for a warp, or more warps on an SM";
  }
}

// Where no rule has anything to say: the resource that most of the time goes to, and the lines that cost most.
static void nothing_found(Fact *o, const AuditKernel *k) {
  enum { NAMED = 3 };
  if (k->small.rule && !k->finding_count) {
    char place[160] = "";
    if (k->small.file) sol_format(place, sizeof place, ", %s:%u,", base_name(k->small.file), k->small.line);
    fact_line(
        o, 0, false,
        "%s%s would make this kernel %.2fx as fast. That is less than %.0f%% of the whole, and left out.",
        k->small.rule, place, k->small.gain, RULE_MIN_SHARE * 100);
    return;
  }
  if (k->tax <= LOW_TAX || !(k->time.total > 0)) {
    fact_line(o, 0, false, "No rule found anything that would save %.0f%% here and %.0f%% of the whole.",
              (RULE_MIN_GAIN - 1) * 100, RULE_MIN_SHARE * 100);
    return;
  }
  MachineResource most = MACHINE_LAUNCH;
  for (int r = 0; r < MACHINE_RESOURCES; r++)
    if (k->parts[r] > k->parts[most]) most = (MachineResource)r;
  SolBuffer b = {0};
  sol_buffer_format(&b, "No rule explains %sthe tax of %.2fx: %.0f%% of the time goes to %s",
                    k->finding_count ? "most of " : "", k->tax, 100 * k->parts[most] / k->time.total,
                    machine_resource_name(most));
  for (uint32_t i = 0; i < k->line_count && i < NAMED && k->lines[i].cost >= NAMED_COST * k->time.total; i++)
    sol_buffer_format(&b, "%s%s:%u (%.0f%%)", i ? ", " : "; the lines that cost most are ",
                      base_name(k->lines[i].file), k->lines[i].line, 100 * k->lines[i].cost / k->time.total);
  sol_buffer_format(&b, ". What lowers it: %s.", remedy(k, most));
  fact_line(o, 0, false, "%s", b.text ? b.text : "");
  sol_buffer_free(&b);
}

static void heading(Fact *o, const AuditKernel *k, uint32_t i) {
  bool apart = k->findings[i].at_this_size;
  if (apart && (!i || !k->findings[i - 1].at_this_size))
    fact_line(o, 0, true, "At this size (the input is too small for the GPU)");
  else if (!i || (!apart && k->findings[i - 1].at_this_size))
    fact_line(o, 0, true, i ? "What else to change" : "What to change, most time saved first (predicted)");
}

void report_audit_finding_facts(Fact *o, const AuditKernel *k) {
  double most = 1;
  for (uint32_t i = 0; i < k->finding_count; i++)
    if (k->findings[i].gain > most) most = k->findings[i].gain;
  if (k->end == SOL_EMU_DONE && (!k->finding_count || (most < SMALL_GAIN && k->tax > LOW_TAX)))
    nothing_found(o, k);
  Fact *list = fact_list(o, "findings", 0);
  for (uint32_t i = 0; i < k->finding_count; i++) {
    const AuditFinding *f = &k->findings[i];
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "rule", 0, f->rule);
    fact_text(row, "file", 0, f->file);
    if (f->file)
      fact_number(row, "line", 0, UNIT_PLAIN, BASIS_NONE, f->line);
    else
      fact_unknown(row, "line", 0);
    fact_text(row, "message", 0, f->message);
    fact_text(row, "fix", 0, f->fix);
    fact_text(row, "evidence", 0, f->evidence);
    fact_text(row, "assumes", 0, f->assumes);
    fact_number(row, "gain", 0, UNIT_TIMES, BASIS_MODELLED, f->gain);
    fact_number(row, "saved_us", 0, UNIT_US, BASIS_MODELLED, f->saved * 1e6);
    fact_bool(row, "at_this_size", 0, f->at_this_size);
    fact_bool(row, "at_full_size", 0, f->at_full_size);
    heading(o, k, i);
    finding_lines(o, f, i + 1);
  }
}
