// The bill as facts: for each kernel its time and what bounds it, its lines, its findings.
#include "report/report_audit.h"

#include <string.h>

#include "audit/audit_names.h"
#include "audit/rules.h"
#include "base/format.h"
#include "base/text.h"
#include "report/report_access.h"
#include "report/report_model.h"
#include "report/report_roofs.h"

static const char *end_name(SolEmuEnd end) {
  static const char *const names[] = {"done", "fault", "instruction limit", "time limit", "interrupted"};
  return (unsigned)end < SOL_COUNT(names) ? names[end] : "?";
}

// The pattern is for the whole path, or for the end of it.
bool report_audit_file_wanted(const AuditView *view, const char *file) {
  if (!view->files) return true;
  for (const char *part = file; part; part = strchr(part, '/')) {
    part += *part == '/';
    if (sol_matches(view->files, part)) return true;
  }
  return false;
}

static bool has_wanted_line(const AuditView *view, const AuditKernel *k) {
  for (uint32_t i = 0; i < k->line_count; i++)
    if (report_audit_file_wanted(view, k->lines[i].file)) return true;
  return !k->line_count;
}

bool report_audit_wanted(const AuditView *view, const AuditKernel *k) {
  if (!has_wanted_line(view, k)) return false;
  if (!view->kernels) return true;
  for (const char *p = view->kernels;; p++) {
    size_t n = strcspn(p, ",");
    if (audit_selects(p, n, k->title) || audit_selects(p, n, k->name)) return true;
    p += n;
    if (!*p) return false;
  }
}

static double rank(const AuditView *view, const AuditKernel *k) {
  double wasted = 0;
  switch (view->sort) {
  case AUDIT_SORT_TAX: return k->tax;
  case AUDIT_SORT_BYTES: return k->work.dram_read + k->work.dram_write;
  case AUDIT_SORT_LAUNCHES: return k->launches;
  case AUDIT_SORT_WASTE:
    for (uint32_t i = 0; i < k->line_count; i++) wasted += k->lines[i].wasted_bytes;
    return wasted;
  default: return k->time.total;
  }
}

uint32_t report_audit_sorted(const AuditView *view, const AuditProgram *p, const AuditKernel **out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    const AuditKernel *k = &p->kernels[i];
    if (!report_audit_wanted(view, k)) continue;
    uint32_t at = count++;
    for (; at > 0 && rank(view, out[at - 1]) < rank(view, k); at--) out[at] = out[at - 1];
    out[at] = k;
  }
  return count;
}

// ---- numbers ----

static void put_sectors(Fact *parent, FactBasis basis, const char *key, const SolEmuCounts *a,
                        const SolEmuCounts *b) {
  Fact *o = fact_object(parent, key, 0);
  double more[3] = {b ? (double)b->requests : 0, b ? (double)b->sectors : 0,
                    b ? (double)b->sectors_ideal : 0};
  fact_number(o, "requests", 0, UNIT_PLAIN, basis, (double)a->requests + more[0]);
  fact_number(o, "sectors", 0, UNIT_PLAIN, basis, (double)a->sectors + more[1]);
  fact_number(o, "ideal_sectors", 0, UNIT_PLAIN, basis, (double)a->sectors_ideal + more[2]);
}

static void put_wavefronts(Fact *parent, FactBasis basis, const char *key, const SolEmuCounts *c) {
  Fact *o = fact_object(parent, key, 0);
  fact_number(o, "requests", 0, UNIT_PLAIN, basis, (double)c->shared_requests);
  fact_number(o, "wavefronts", 0, UNIT_PLAIN, basis, (double)c->wavefronts);
  fact_number(o, "ideal_wavefronts", 0, UNIT_PLAIN, basis, (double)c->wavefronts_ideal);
}

static double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

static double dram_bytes(const AuditKernel *k) {
  return k->work.dram_read + k->work.dram_write;
}

static double l2_bytes(const AuditKernel *k) {
  return 32 * (k->work.l2_reads + k->work.l2_writes + k->work.l2_atomics);
}

static void number(Fact *o, const char *key, FactUnit unit, FactBasis basis, double value) {
  fact_number(o, key, 0, unit, basis, value);
}

static void count_facts(Fact *o, const AuditKernel *k) {
  const SolEmuCounts *c = k->kinds;
  FactBasis basis = report_audit_basis(k);
  number(o, "instructions", UNIT_PLAIN, basis, (double)k->total.executions);
  number(o, "issued", UNIT_PLAIN, BASIS_MODELLED, k->work.issues);
  fact_text(o, "instructions_from", 0, k->machine ? "machine code" : "ptx");
  put_sectors(o, basis, "global_load", &c[SOL_EMU_KIND_GLOBAL_LOAD], NULL);
  put_sectors(o, basis, "global_store", &c[SOL_EMU_KIND_GLOBAL_STORE], NULL);
  put_sectors(o, basis, "global_atomic", &c[SOL_EMU_KIND_GLOBAL_ATOMIC], NULL);
  put_sectors(o, basis, "texture", &c[SOL_EMU_KIND_TEXTURE], NULL);
  put_wavefronts(o, basis, "shared_load", &c[SOL_EMU_KIND_SHARED_LOAD]);
  put_wavefronts(o, basis, "shared_store", &c[SOL_EMU_KIND_SHARED_STORE]);
  put_wavefronts(o, basis, "shared_atomic", &c[SOL_EMU_KIND_SHARED_ATOMIC]);
  put_sectors(o, basis, "local", &c[SOL_EMU_KIND_LOCAL_LOAD], &c[SOL_EMU_KIND_LOCAL_STORE]);
  number(o, "active_lanes", UNIT_PLAIN, basis, k->active_lanes);
  number(o, "divergent_branches", UNIT_PLAIN, basis, (double)k->total.divergent);
  number(o, "l1_hit", UNIT_SHARE, BASIS_MODELLED,
         ratio((double)k->total.l1_hits, (double)(k->total.l1_hits + k->total.l1_misses)));
  number(o, "l2_hit", UNIT_SHARE, BASIS_MODELLED,
         ratio((double)k->total.l2_hits, (double)(k->total.l2_hits + k->total.l2_misses)));
  number(o, "l2_bytes", UNIT_BYTES, BASIS_MODELLED, l2_bytes(k));
  number(o, "dram_bytes", UNIT_BYTES, BASIS_MODELLED, dram_bytes(k));
  number(o, "dram_read_bytes", UNIT_BYTES, BASIS_MODELLED, k->work.dram_read);
  number(o, "dram_write_bytes", UNIT_BYTES, BASIS_MODELLED, k->work.dram_write);
  number(o, "earlier_write_bytes", UNIT_BYTES, BASIS_MODELLED, k->earlier_written);
  number(o, "left_dirty_bytes", UNIT_BYTES, BASIS_MODELLED, k->left_dirty);
  number(o, "l2_reused_bytes", UNIT_BYTES, BASIS_MODELLED, k->found);
  number(o, "moved_page_bytes", UNIT_BYTES, BASIS_MODELLED, k->work.page_bytes);
  number(o, "floor_bytes", UNIT_BYTES, basis, k->floor_bytes);
  number(o, "flops", UNIT_FLOPS, basis, report_flops(k));
}

// The time in two parts: what ncu and nsys show of a kernel, and what lies between it and the one before.
static void launch_facts(Fact *o, const MachineTime *t, bool shown) {
  fact_number(o, "kernel_us", shown ? "  in kernels" : 0, UNIT_US, BASIS_MODELLED, (t->total - t->gap) * 1e6);
  fact_number(o, "gap_us", shown ? "  between them" : 0, UNIT_US, BASIS_MODELLED, t->gap * 1e6);
}

// Light is the longer of the first two, and the third.
static void light_facts(Fact *o, const AuditKernel *k) {
  const AuditLights *l = &k->lights;
  fact_number(o, "light_us", "light", UNIT_US, BASIS_MODELLED, k->light * 1e6);
  fact_number(o, "memory_light_us", "  memory light", UNIT_US, BASIS_MODELLED, l->memory * 1e6);
  fact_number(o, "compute_light_us", "  compute light", UNIT_US, BASIS_MODELLED, l->compute * 1e6);
  fact_number(o, "launch_light_us", "  launches", UNIT_US, BASIS_MODELLED, l->launch * 1e6);
  fact_text(o, "compute_pipe", 0, l->compute > 0 ? machine_pipe_name(l->pipe) : "none");
}

static void left_facts(Fact *o, const AuditProgram *p, const AuditKernel *k) {
  Fact *list = fact_list(o, "l2_left_by", 0);
  for (uint32_t i = 0; i < p->left_count; i++) {
    const AuditLeft *l = &p->lefts[i];
    if (l->to != k->index) continue;
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "kernel", 0, l->from < p->kernel_count ? p->kernels[l->from].title : NULL);
    number(row, "reused_bytes", UNIT_BYTES, BASIS_MODELLED, l->found);
    number(row, "written_bytes", UNIT_BYTES, BASIS_MODELLED, l->written);
  }
}

static void shape_facts(Fact *o, const AuditKernel *k) {
  Fact *list = fact_list(o, "shapes", 0);
  for (uint32_t i = 0; i < k->shape_count; i++) {
    const AuditShape *s = &k->shapes[i];
    Fact *row = fact_object(list, 0, 0);
    fact_textf(row, "grid", 0, "%u,%u,%u", s->grid[0], s->grid[1], s->grid[2]);
    fact_textf(row, "block", 0, "%u,%u,%u", s->block[0], s->block[1], s->block[2]);
    number(row, "dynamic_shared", UNIT_SIZE, BASIS_NONE, (double)s->dynamic_shared);
    number(row, "launches", UNIT_PLAIN, BASIS_EXACT, s->launches);
    number(row, "waves", UNIT_PLAIN, BASIS_MODELLED, s->time.waves);
    number(row, "time_us", UNIT_US, BASIS_MODELLED, s->time.total * 1e6);
    launch_facts(row, &s->time, false);
    number(row, "floor_bytes", UNIT_BYTES, report_audit_basis(k), s->floor_bytes);
  }
}

static void resource_facts(Fact *o, const AuditKernel *k) {
  Fact *terms = fact_object(o, "terms", 0), *parts = fact_object(o, "parts", 0);
  for (int r = 0; r < MACHINE_RESOURCES; r++) {
    number(terms, machine_resource_key((MachineResource)r), UNIT_US, BASIS_MODELLED,
           k->time.seconds[r] * 1e6);
    number(parts, machine_resource_key((MachineResource)r), UNIT_US, BASIS_MODELLED, k->parts[r] * 1e6);
  }
  number(o, "registers", UNIT_PLAIN, BASIS_NONE, k->registers);
  fact_text(o, "registers_from", 0, k->registers_from == AUDIT_FROM_PTXAS ? "ptxas" : "emulator's estimate");
  number(o, "static_shared", UNIT_SIZE, BASIS_NONE, (double)k->static_shared);
  number(o, "stack_bytes", UNIT_SIZE, BASIS_NONE, (double)k->stack_bytes);
  number(o, "occupancy", UNIT_SHARE, BASIS_MODELLED, k->occupancy.occupancy);
  fact_text(o, "occupancy_limiter", 0, sol_limiter_name(k->occupancy.limiter));
}

static void dims(Fact *o, const char *key, const uint32_t d[3]) {
  Fact *list = fact_list(o, key, 0);
  for (int i = 0; i < 3; i++) fact_number(list, 0, 0, UNIT_PLAIN, BASIS_NONE, d[i]);
}

static void check_facts(Fact *o, const AuditKernel *k) {
  Fact *list = fact_list(o, "checks", 0);
  for (uint32_t i = 0; i < k->fault_count; i++) {
    const AuditFault *f = &k->faults[i];
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "kind", 0, f->kind);
    fact_text(row, "file", 0, f->file);
    number(row, "line", UNIT_PLAIN, BASIS_NONE, f->line);
    dims(row, "block", f->block);
    dims(row, "thread", f->thread);
    number(row, "address", UNIT_PLAIN, BASIS_NONE, (double)f->address);
    number(row, "bytes", UNIT_PLAIN, BASIS_NONE, (double)f->bytes);
    number(row, "threads", UNIT_PLAIN, BASIS_EXACT, (double)f->times);
    number(row, "launches", UNIT_PLAIN, BASIS_EXACT, (double)f->launches);
    fact_text(row, "message", 0, f->message);
  }
}

// The message names the innermost line; in a header of the toolkit it helps nobody.
static void caller_text(const AuditFault *f, char *out, size_t cap) {
  char place[200];
  size_t n = sol_format(place, sizeof place, "%s:%u", f->file, f->line), length = strlen(f->message);
  *out = 0;
  if (!f->file[0] || n >= sizeof place || (length >= n && strcmp(f->message + length - n, place) == 0))
    return;
  sol_format(out, cap, ", from %s", place);
}

// With the kernel's name as it stands in the source.
static void fault_line(Fact *list, const AuditKernel *k, const AuditFault *f) {
  char from[240], times[80] = "";
  const char *symbol = strncmp(k->name, "_Z", 2) == 0 ? strstr(f->message, k->name) : NULL,
             *rest = symbol ? symbol + strlen(k->name) : f->message;
  caller_text(f, from, sizeof from);
  if (f->times > 1 && f->launches > 1)
    sol_format(times, sizeof times, " (%llu threads, %llu launches)", (unsigned long long)f->times,
               (unsigned long long)f->launches);
  else if (f->times > 1)
    sol_format(times, sizeof times, " (%llu threads)", (unsigned long long)f->times);
  fact_textf(list, 0, "", "%.*s%s%s%s%s", (int)(symbol ? symbol - f->message : 0), f->message,
             symbol ? k->title : "", rest, from, times);
}

static void fault_facts(Fact *o, const AuditKernel *k) {
  fact_text(o, "end", k->end == SOL_EMU_DONE ? 0 : "ended", end_name(k->end));
  if (k->end != SOL_EMU_DONE)
    fact_text(o, 0, "incomplete",
              k->counted > 1 ? "its last launch is billed as far as it came"
                             : "it is billed as far as it came");
  enum { SHOWN = 20 };
  Fact *texts = fact_list(o, "faults", 0), *list = fact_list(o, 0, k->fault_count ? "Went wrong" : 0);
  for (uint32_t i = 0; i < k->fault_count; i++) fact_text(texts, 0, 0, k->faults[i].message);
  for (uint32_t i = 0; i < k->fault_count && i < SHOWN; i++) fault_line(list, k, &k->faults[i]);
  uint64_t more = k->faults_left_out + (k->fault_count > SHOWN ? k->fault_count - SHOWN : 0);
  if (more) fact_textf(list, 0, "", "and %llu more", (unsigned long long)more);
  check_facts(o, k);
}

static void kernel_facts(Fact *list, const AuditProgram *p, const AuditKernel *k, const AuditView *view) {
  Fact *o = fact_object(list, 0, 0);
  fact_title(o, "%s", k->title);
  fact_text(o, "name", 0, k->title);
  fact_text(o, "symbol", 0, k->name);
  number(o, "launches", UNIT_PLAIN, BASIS_EXACT, k->launches);
  number(o, "counted_launches", UNIT_PLAIN, BASIS_EXACT, k->counted);
  number(o, "unlike_launches", UNIT_PLAIN, BASIS_EXACT, k->unlike);
  number(o, "sampled", UNIT_PLAIN, BASIS_NONE, k->scale);
  fact_number(o, "time_us", "time", UNIT_US, BASIS_MODELLED, k->time.total * 1e6);
  launch_facts(o, &k->time, true);
  light_facts(o, k);
  fact_number(o, "tax", "tax", UNIT_TIMES, BASIS_MODELLED, k->tax);
  fact_text(o, "bound", 0, machine_resource_key(k->time.bound));
  report_audit_summary(o, p, k);
  resource_facts(o, k);
  count_facts(o, k);
  left_facts(o, p, k);
  shape_facts(o, k);
  fault_facts(o, k);
  report_audit_terms(o, k);
  report_timeline_facts(o, p, k, view);
  report_audit_line_facts(o, k, view);
  report_audit_finding_facts(o, k);
}

static void number_text(SolBuffer *b, FactUnit unit, double value) {
  char text[48];
  fact_write_number(text, sizeof text, unit, value);
  sol_buffer_puts(b, text);
}

static void sum_note(Fact *root, const AuditProgram *p) {
  SolBuffer b = {0};
  sol_buffer_format(&b, "All %u kernels one after another: ", p->kernel_count);
  number_text(&b, UNIT_US, p->time * 1e6);
  sol_buffer_puts(&b, ", light ");
  number_text(&b, UNIT_US, p->light * 1e6);
  sol_buffer_format(&b, ", tax %.2fx.", p->tax);
  if (b.text) fact_note(root, "%s", b.text);
  sol_buffer_free(&b);
}

void report_audit_facts(Fact *root, const AuditProgram *p, const AuditView *view) {
  fact_text(root, "device", 0, p->device->id);
  report_roofs_facts(root, p->device);
  Fact *list = fact_list(root, "kernels", "");
  SolArena *arena = root ? root->arena : NULL;
  const AuditKernel **order = arena ? sol_arena_alloc(arena, (p->kernel_count + 1) * sizeof *order) : NULL;
  uint32_t count = order ? report_audit_sorted(view, p, order) : 0;
  for (uint32_t i = 0; i < count; i++) kernel_facts(list, p, order[i], view);
  number(root, "time_us", UNIT_US, BASIS_MODELLED, p->time * 1e6);
  number(root, "light_us", UNIT_US, BASIS_MODELLED, p->light * 1e6);
  number(root, "tax", UNIT_TIMES, BASIS_MODELLED, p->tax);
  report_audit_library_facts(root, p);
  report_model_facts(root, p->device);
  if (count > 1) sum_note(root, p);
  char model[200];
  report_model_sentence(model, sizeof model, p->device);
  fact_note(root, "%s", model);
}

void report_audit_devices_facts(Fact *root, const AuditProgram *programs, int count, const AuditView *view) {
  static const FactColumn columns[] = {{"kernel", FIT_CUT},   {"GPU", 0},   {"time", 0},      {"tax", 0},
                                       {"bound by", FIT_CUT}, {"light", 0}, {"occupancy", 0}, {0}};
  Fact *list = fact_list(root, 0, "Side by side");
  fact_columns(list, columns);
  const AuditKernel **order =
      root ? sol_arena_alloc(root->arena, (programs[0].kernel_count + 1) * sizeof *order) : NULL;
  uint32_t kernels = order ? report_audit_sorted(view, &programs[0], order) : 0;
  for (uint32_t i = 0; i < kernels; i++)
    for (int d = 0; d < count; d++) {
      const AuditKernel *k = NULL;
      for (uint32_t j = 0; j < programs[d].kernel_count && !k; j++)
        if (strcmp(programs[d].kernels[j].name, order[i]->name) == 0) k = &programs[d].kernels[j];
      Fact *row = fact_object(list, 0, 0);
      fact_text(row, 0, "kernel", d ? "" : order[i]->title);
      fact_text(row, 0, "GPU", programs[d].device->id);
      if (!k) continue;
      fact_number(row, 0, "time", UNIT_US, BASIS_MODELLED, k->time.total * 1e6);
      fact_number(row, 0, "light", UNIT_US, BASIS_MODELLED, k->light * 1e6);
      fact_number(row, 0, "tax", UNIT_TIMES, BASIS_MODELLED, k->tax);
      fact_number(row, 0, "occupancy", UNIT_SHARE, BASIS_MODELLED, k->occupancy.occupancy);
      fact_text(row, 0, "bound by", machine_resource_name(k->time.bound));
    }
}
