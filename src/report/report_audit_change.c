// Compares two bills. Kernels are matched by their symbol, lines by what they read, of several the nearest, else by
// their place, else by what they read in another file: lines move when others are added above them.
#include "report/report_audit_change.h"

#include <math.h>
#include <string.h>

#include "base/format.h"

enum { TEXT = 400 };
#define SAME_SHARE 0.005 // of a kernel's time: a smaller change of a line is none
#define SAME_RATIO 1.001 // counts are exact; what is modelled may move a little

// ---- reading ----

static double number_of(SolJson object, const char *key) {
  SolJson value;
  double number = 0;
  return sol_json_get(object, key, &value) && sol_json_number(value, &number) ? number : 0;
}

static const char *text_of(SolJson object, const char *key, SolArena *arena) {
  SolJson value;
  char text[TEXT];
  if (!sol_json_get(object, key, &value) || !sol_json_string(value, text, sizeof text)) return "";
  size_t n = strlen(text) + 1;
  char *copy = sol_arena_alloc(arena, n);
  return copy ? memcpy(copy, text, n) : "";
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static uint32_t length_of(SolJson object, const char *key, SolJson *list) {
  SolJson row;
  uint32_t n = 0;
  if (!sol_json_get(object, key, list)) return 0;
  for (SolJsonIter it = {.container = *list}; sol_json_next(&it, NULL, &row);) n++;
  return n;
}

// ---- lines ----

typedef struct Lines {
  ChangeLine *of; // .after is filled in
  uint8_t *taken;
  uint32_t count;
} Lines;

static Lines lines_of(SolJson kernel, SolArena *arena) {
  SolJson list, row;
  Lines l = {.count = length_of(kernel, "lines", &list)};
  l.of = sol_arena_alloc(arena, (l.count + 1) * sizeof *l.of);
  l.taken = sol_arena_alloc(arena, l.count + 1);
  if (!l.of || !l.taken) return (Lines){0};
  memset(l.taken, 0, l.count + 1);
  uint32_t i = 0;
  for (SolJsonIter it = {.container = list}; i < l.count && sol_json_next(&it, NULL, &row); i++)
    l.of[i] = (ChangeLine){.file = base_name(text_of(row, "file", arena)),
                           .source = text_of(row, "source", arena),
                           .after = {.there = true,
                                     .us = number_of(row, "cost_us"),
                                     .dram = number_of(row, "dram_bytes"),
                                     .line = number_of(row, "line"),
                                     .sectors = number_of(row, "sectors_per_request")}};
  return l;
}

static bool same_place(const ChangeLine *a, const ChangeLine *b) {
  return strcmp(a->file, b->file) == 0 && a->after.line == b->after.line;
}

static bool same_text(const ChangeLine *a, const ChangeLine *b) {
  return strcmp(a->file, b->file) == 0 && a->source[0] && strcmp(a->source, b->source) == 0;
}

static uint32_t partner(const Lines *old, const ChangeLine *line) {
  uint32_t best = old->count;
  for (uint32_t i = 0; i < old->count; i++) {
    if (old->taken[i] || !same_text(&old->of[i], line)) continue;
    if (best == old->count ||
        fabs(old->of[i].after.line - line->after.line) < fabs(old->of[best].after.line - line->after.line))
      best = i;
  }
  for (uint32_t i = 0; i < old->count && best == old->count; i++)
    if (!old->taken[i] && same_place(&old->of[i], line)) best = i;
  for (uint32_t i = 0; i < old->count && best == old->count; i++) // two builds may have files of other names
    if (!old->taken[i] && line->source[0] && strcmp(old->of[i].source, line->source) == 0) best = i;
  return best;
}

static bool differs(double a, double b) {
  return a > b * SAME_RATIO || b > a * SAME_RATIO;
}

static double change_of(const ChangeSide *before, const ChangeSide *after) {
  return fabs(after->us - before->us);
}

static bool line_changed(const ChangeLine *l, double us) {
  if (change_of(&l->before, &l->after) >= SAME_SHARE * us) return true;
  return l->before.there && l->after.there && differs(l->before.sectors, l->after.sectors);
}

static void add_line(ChangeKernel *k, const ChangeLine *line, double us) {
  if (!line_changed(line, us)) return;
  uint32_t at = k->line_count++;
  for (; at > 0 && change_of(&k->lines[at - 1].before, &k->lines[at - 1].after) <
                       change_of(&line->before, &line->after);
       at--)
    k->lines[at] = k->lines[at - 1];
  k->lines[at] = *line;
}

static bool compare_lines(SolJson before, SolJson after, SolArena *arena, ChangeKernel *k) {
  Lines old = lines_of(before, arena), new = lines_of(after, arena);
  double us = k->before.us > k->after.us ? k->before.us : k->after.us;
  k->lines = sol_arena_alloc(arena, (old.count + new.count + 1) * sizeof *k->lines);
  if (!k->lines) return false;
  for (uint32_t i = 0; i < new.count; i++) {
    uint32_t at = partner(&old, &new.of[i]);
    if (at < old.count) old.taken[at] = 1, new.of[i].before = old.of[at].after;
    add_line(k, &new.of[i], us);
  }
  for (uint32_t i = 0; i < old.count; i++) {
    if (old.taken[i]) continue;
    ChangeLine gone = old.of[i];
    gone.before = gone.after, gone.after = (ChangeSide){0};
    add_line(k, &gone, us);
  }
  return true;
}

// ---- findings ----

static bool has_rule(SolJson kernel, const char *rule) {
  SolJson list, row;
  if (!length_of(kernel, "findings", &list)) return false;
  for (SolJsonIter it = {.container = list}; sol_json_next(&it, NULL, &row);)
    if (sol_json_text_is(row, "rule", rule)) return true;
  return false;
}

// The findings of `kernel` whose rule `other` has none of, each with its place.
static const char **only_in(SolJson kernel, SolJson other, SolArena *arena, uint32_t *count) {
  SolJson list, row;
  uint32_t n = length_of(kernel, "findings", &list);
  const char **out = sol_arena_alloc(arena, (n + 1) * sizeof *out);
  *count = 0;
  for (SolJsonIter it = {.container = list}; n && out && sol_json_next(&it, NULL, &row);) {
    const char *rule = text_of(row, "rule", arena), *file = base_name(text_of(row, "file", arena));
    char *text = sol_arena_alloc(arena, TEXT);
    if (!text || has_rule(other, rule)) continue;
    if (*file)
      sol_format(text, TEXT, "%.60s, %.200s:%.0f", rule, file, number_of(row, "line"));
    else
      sol_format(text, TEXT, "%.60s", rule);
    out[(*count)++] = text;
  }
  return out;
}

// ---- kernels ----

static ChangeSide side_of(SolJson kernel) {
  return (ChangeSide){.there = true,
                      .us = number_of(kernel, "time_us"),
                      .tax = number_of(kernel, "tax"),
                      .dram = number_of(kernel, "dram_bytes"),
                      .light = number_of(kernel, "light_us")};
}

static bool find_kernel(SolJson bill, const char *key, const char *text, SolArena *arena, SolJson *out) {
  SolJson list, row;
  if (!length_of(bill, "kernels", &list)) return false;
  for (SolJsonIter it = {.container = list}; sol_json_next(&it, NULL, &row);)
    if (strcmp(text_of(row, key, arena), text) == 0) return *out = row, true;
  return false;
}

static bool kernel_changed(const ChangeKernel *k) {
  return !k->before.there || !k->after.there || k->line_count || k->new_count || k->gone_count ||
         differs(k->before.us, k->after.us) || differs(k->before.dram, k->after.dram);
}

static void add_kernel(AuditChange *c, const ChangeKernel *k) {
  if (!kernel_changed(k)) {
    c->same++;
    return;
  }
  uint32_t at = c->count++;
  for (; at > 0 &&
         change_of(&c->kernels[at - 1].before, &c->kernels[at - 1].after) < change_of(&k->before, &k->after);
       at--)
    c->kernels[at] = c->kernels[at - 1];
  c->kernels[at] = *k;
}

bool report_audit_change(SolJson before, SolJson after, SolArena *arena, AuditChange *out) {
  SolJson old_list, new_list, row, none = {"{}", 2, 0};
  uint32_t old_count = length_of(before, "kernels", &old_list),
           new_count = length_of(after, "kernels", &new_list);
  *out = (AuditChange){.before = text_of(before, "input", arena),
                       .after = text_of(after, "input", arena),
                       .before_us = number_of(before, "time_us"),
                       .after_us = number_of(after, "time_us"),
                       .kernels = sol_arena_alloc(arena, (old_count + new_count + 1) * sizeof *out->kernels)};
  if (!out->kernels || !old_count || !new_count) return false;
  for (SolJsonIter it = {.container = new_list}; sol_json_next(&it, NULL, &row);) {
    SolJson old = none;
    ChangeKernel k = {.name = text_of(row, "name", arena), .after = side_of(row)};
    if (find_kernel(before, "symbol", text_of(row, "symbol", arena), arena, &old) ||
        find_kernel(before, "name", k.name, arena, &old))
      k.before = side_of(old);
    if (!compare_lines(old, row, arena, &k)) return false;
    k.new_rules = only_in(row, old, arena, &k.new_count);
    k.gone_rules = only_in(old, row, arena, &k.gone_count);
    add_kernel(out, &k);
  }
  for (SolJsonIter it = {.container = old_list}; sol_json_next(&it, NULL, &row);) {
    SolJson new;
    ChangeKernel k = {.name = text_of(row, "name", arena), .before = side_of(row)};
    if (find_kernel(after, "symbol", text_of(row, "symbol", arena), arena, &new) ||
        find_kernel(after, "name", k.name, arena, &new))
      continue;
    add_kernel(out, &k);
  }
  return !arena->failed;
}
