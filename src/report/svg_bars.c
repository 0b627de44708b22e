// Pictures of bars: ladders, the pass of a model, the cases of a benchmark.
#include "base/format.h"
#include "report/svg.h"

enum { ROW = 42, FULL = 620 }; // of a rung, in pixels; of light

static double draw_bar(SolBuffer *out, double y, const Fact *figures, const char *fill) {
  char label[48];
  double share = svg_number(figures, "of_light");
  if (!(share > 0)) return y;
  double width = share > 1.1 ? 1.1 * FULL : share * FULL;
  svg_box(out, 10, y, width, 9, fill);
  if (*fill == 'u') svg_box(out, 10, y, width, 9, "none");
  fact_write_number(label, sizeof label, UNIT_SHARE, share);
  svg_text(out, 10 + width + 5, y + 9, SVG_START, label);
  return y + 12;
}

static double draw_ladder(SolBuffer *out, double y, const Fact *ladder) {
  char label[200];
  sol_format(label, sizeof label, "%.80s %.60s %.20s: share of the speed of a copy (%%)",
             svg_label(ladder, "name"), svg_label(ladder, "shape"), svg_label(ladder, "dtype"));
  svg_text(out, 10, y, SVG_START, label);
  double top = y + 8;
  for (const Fact *r = svg_fact(ladder, "rungs") ? svg_fact(ladder, "rungs")->first : NULL; r; r = r->next) {
    y += ROW;
    svg_text(out, 10, y - 17, SVG_START, svg_label(r, "rung"));
    draw_bar(out, draw_bar(out, y - 13, svg_fact(r, "predicted"), "#0072b2"), svg_fact(r, "measured"),
             "url(#hatch)");
  }
  svg_line(out, 10 + FULL, top, 10 + FULL, y + 12, SVG_DASHED);
  svg_text(out, 10 + FULL, y + 26, SVG_MIDDLE, "light");
  return y + 56;
}

bool svg_ladders(const Fact *ladders, SolBuffer *out) {
  double height = 60;
  for (const Fact *l = ladders->first; l; l = l->next) {
    height += 56;
    for (const Fact *r = svg_fact(l, "rungs") ? svg_fact(l, "rungs")->first : NULL; r; r = r->next)
      height += ROW;
  }
  double y = 44;
  svg_open(out, SVG_WIDTH, height, "ladders");
  svg_text(out, 10, 18, SVG_START, "Plain bars are predicted, hatched ones measured.");
  for (const Fact *l = ladders->first; l; l = l->next) y = draw_ladder(out, y, l);
  svg_close(out);
  return !out->failed;
}

// ---- a pass ----

enum { MOST_PARTS = 80, PASS_WIDTH = SVG_WIDTH - 20 };

typedef struct Part {
  char name[120];
  double us;
} Part;

static int parts_of(const Fact *root, Part *parts) {
  int count = 0;
  for (const Fact *k = svg_fact(root, "kernels")->first; k && count < MOST_PARTS - 1; k = k->next, count++) {
    Part *p = &parts[count];
    size_t n = sol_format(p->name, sizeof p->name, "%.80s", svg_label(k, "name"));
    if (svg_number(k, "count") > 1)
      sol_format(p->name + n, sizeof p->name - n, ", %.0f times", svg_number(k, "count"));
    p->us = svg_number(k, "time_us");
  }
  sol_format(parts[count].name, sizeof parts->name, "launches");
  parts[count].us = svg_number(root, "launch_us");
  return count + 1;
}

// A part of the bar, its number below where there is room, and its line in the list.
static double draw_part(SolBuffer *out, const Part *p, int i, int *wide, double x, double total) {
  static const char *const fills[] = {"#0072b2", "url(#hatch)", "#fff"};
  char label[180], time[32];
  double width = p->us / total * PASS_WIDTH;
  *wide += width > 2; // neighbours that can be seen differ
  svg_box(out, x, 30, width, 24, fills[*wide % 3]);
  sol_format(label, sizeof label, "%d", i + 1);
  if (width > 18) svg_text(out, x + width / 2, 70, SVG_MIDDLE, label);
  fact_write_number(time, sizeof time, UNIT_US, p->us);
  sol_format(label, sizeof label, "%d. %s: %s, %.1f%%", i + 1, p->name, time, p->us / total * 100);
  svg_text(out, 10, 96 + 17 * i, SVG_START, label);
  return x + width;
}

bool svg_pass(const Fact *root, SolBuffer *out) {
  Part parts[MOST_PARTS];
  double total = svg_number(root, "total_us"), x = 10;
  if (!svg_fact(root, "kernels") || !(total > 0)) return false;
  int count = parts_of(root, parts), wide = 0;
  char label[200], time[32];
  fact_write_number(time, sizeof time, UNIT_US, total);
  sol_format(label, sizeof label, "%.60s %.10s on %.40s: one pass, %s", svg_label(root, "model"),
             svg_label(root, "phase"), svg_label(root, "device"), time);
  svg_open(out, SVG_WIDTH, 100 + 17 * count, "pass");
  svg_text(out, 10, 18, SVG_START, label);
  for (int i = 0; i < count; i++) x = draw_part(out, &parts[i], i, &wide, x, total);
  svg_close(out);
  return !out->failed;
}

// ---- a benchmark ----

enum { MOST_CASES = 40 };

// Time over light where it was measured; else sectors over the fewest possible.
static const char *measure_of(const Fact *cases) {
  for (const Fact *c = cases->first; c; c = c->next)
    if (svg_number(c, "to_light") > 0) return "to_light";
  return "to_ideal";
}

static void draw_case(SolBuffer *out, double y, const Fact *c, double value, double most) {
  char label[200];
  sol_format(label, sizeof label, "%.40s %.40s %.20s %.60s", svg_label(c, "op"), svg_label(c, "option"),
             svg_label(c, "dtype"), svg_label(c, "shape"));
  svg_text(out, 10, y, SVG_START, label);
  svg_box(out, 10, y + 4, value / most * FULL, 9, "#0072b2");
  fact_write_number(label, sizeof label, UNIT_TIMES, value);
  svg_text(out, 15 + value / most * FULL, y + 13, SVG_START, label);
}

bool svg_bench(const Fact *cases, SolBuffer *out) {
  const char *key = measure_of(cases);
  double most = 1, y = 40;
  int count = 0;
  for (const Fact *c = cases->first; c && count < MOST_CASES; c = c->next)
    if (svg_number(c, key) > 0 && ++count && svg_number(c, key) > most) most = svg_number(c, key);
  if (!count) return false;
  svg_open(out, SVG_WIDTH, 70 + 32 * count, "benchmark");
  svg_text(out, 10, 18, SVG_START,
           key[3] == 'l' ? "time over that of a copy of the same bytes" : "sectors over the fewest possible");
  for (const Fact *c = cases->first; c && count > 0; c = c->next) {
    if (!(svg_number(c, key) > 0)) continue;
    draw_case(out, y, c, svg_number(c, key), most);
    y += 32;
    count--;
  }
  svg_line(out, 10 + FULL / most, 26, 10 + FULL / most, y - 14, SVG_DASHED);
  svg_text(out, 10 + FULL / most, y + 4, SVG_MIDDLE, "1x");
  svg_close(out);
  return !out->failed;
}
