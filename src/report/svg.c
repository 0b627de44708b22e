#include "report/svg.h"

#include <math.h>
#include <string.h>

#include "base/format.h"

#define GRID "stroke=\"#ccc\""
#define ROOF "stroke=\"#000\" stroke-width=\"2\""

enum { LEFT = 90, RIGHT = SVG_WIDTH - 30, TOP = 50, MAX_POINTS = 64, MAX_LABELS = 40 };

// ---- rooflines ----

typedef struct Point {
  const char *name, *device;
  double flops, bytes, us, bare_us; // bare_us: launches left out
} Point;

typedef struct Picture {
  const Fact *roofs;
  Point points[MAX_POINTS];
  int count;
  const char *device;               // whose roofs they are
  double bandwidth, vector, tensor; // of its DRAM, and its peaks
  SvgAxis x, y;
} Picture;

static void add_point(Picture *p, Point point) {
  if (p->count < MAX_POINTS && point.us > 0 && point.bytes > 0) p->points[p->count++] = point;
}

// What was predicted and what was measured go by different names.
static double either(const Fact *parent, const char *one, const char *other) {
  return svg_fact(parent, one) ? svg_number(parent, one) : svg_number(parent, other);
}

static void add_answer(Picture *p, const Fact *o) {
  if (!p->roofs)
    p->roofs = svg_fact(o, "roofs"),
    p->device = svg_fact(o, "gpu") ? svg_label(svg_fact(o, "gpu"), "name") : svg_label(o, "device");
  if (svg_fact(o, "work"))
    add_point(p, (Point){svg_label(o, "work"), svg_label(o, "device"), svg_number(o, "flops"),
                         svg_number(o, "bytes"), svg_number(o, "time_us"),
                         svg_number(o, "time_us") - svg_number(svg_fact(o, "terms"), "launch_us")});
  const Fact *kernels = svg_fact(o, "kernels");
  for (const Fact *k = kernels ? kernels->first : NULL; k; k = k->next)
    add_point(p, (Point){svg_label(k, "name"), p->device,
                         svg_number(svg_fact(k, "roofline") ? svg_fact(k, "roofline") : k, "flops"),
                         svg_number(k, "dram_bytes"), svg_number(k, "time_us"),
                         either(k, "kernel_us", "time_us")});
}

// In bytes a second a roof is flat up to the ridge, and then falls: so work without FLOPs has a place.
static double roof(double rate, double peak, double intensity) {
  return peak > 0 && peak / intensity < rate ? peak / intensity : rate;
}

static void widen(SvgAxis *a, double value) {
  if (!(value > 0)) return;
  while (value < a->least) a->least /= 10;
  while (value > a->most) a->most *= 10;
}

static void scale(Picture *p, double bottom) {
  double peak = p->tensor > p->vector ? p->tensor : p->vector;
  p->x = (SvgAxis){0.1, 100, LEFT, RIGHT};
  p->y = (SvgAxis){1e11, 1e12, bottom, TOP};
  widen(&p->y, p->bandwidth * 1.6);
  widen(&p->y, svg_number(p->roofs, "l2") * 1.6);
  for (int i = 0; i < p->count; i++) {
    widen(&p->x, p->points[i].flops / p->points[i].bytes);
    widen(&p->y, p->points[i].bytes / p->points[i].us * 1e6);
  }
  widen(&p->x, peak / p->bandwidth * 2);
  widen(&p->y, roof(p->bandwidth, p->vector, p->x.most));
}

// How many powers of ten an axis has, its ends included.
static int ticks(SvgAxis a) {
  int n = 0;
  for (double v = a.least; n < 64; n++, v *= 10)
    if (v > a.most * 1.01) break;
  return n;
}

static void draw_axes(SolBuffer *out, const Picture *p, double bottom) {
  char label[32];
  double v = p->x.least;
  for (int i = ticks(p->x); i > 0; i--, v *= 10) {
    svg_line(out, svg_at(&p->x, v), TOP, svg_at(&p->x, v), bottom, GRID);
    sol_format(label, sizeof label, "%g", v);
    svg_text(out, svg_at(&p->x, v), bottom + 16, SVG_MIDDLE, label);
  }
  v = p->y.least;
  for (int i = ticks(p->y); i > 0; i--, v *= 10) {
    svg_line(out, LEFT, svg_at(&p->y, v), RIGHT, svg_at(&p->y, v), GRID);
    fact_write_number(label, sizeof label, UNIT_BYTES_PER_S, v);
    svg_text(out, LEFT - 6, svg_at(&p->y, v) + 4, SVG_END, label);
  }
  svg_text(out, (LEFT + RIGHT) / 2.0, bottom + 36, SVG_MIDDLE, "intensity (FLOP/byte)");
  svg_text(out, LEFT, TOP - 10, SVG_START, "rate (B/s)");
}

static void draw_roof(SolBuffer *out, const Picture *p, double rate, double peak, const char *style) {
  double ridge = peak > 0 && peak / rate < p->x.most ? peak / rate : p->x.most, y = svg_at(&p->y, rate);
  svg_line(out, LEFT, y, svg_at(&p->x, ridge), y, style);
  svg_line(out, svg_at(&p->x, ridge), y, RIGHT, svg_at(&p->y, roof(rate, peak, p->x.most)), style);
}

static void name_roof(SolBuffer *out, const Picture *p, const char *name, double rate) {
  char label[64];
  size_t n = sol_format(label, sizeof label, "%s ", name);
  fact_write_number(label + n, sizeof label - n, UNIT_BYTES_PER_S, rate);
  svg_text(out, LEFT + 8, svg_at(&p->y, rate) - 5, SVG_START, label);
}

static void name_peak(SolBuffer *out, const Picture *p, const char *name, double peak) {
  char label[64];
  size_t n = sol_format(label, sizeof label, "%s ", name);
  fact_write_number(label + n, sizeof label - n, UNIT_FLOPS_PER_S, peak);
  // Below the end of its line: what is further left is higher.
  double y = svg_at(&p->y, roof(p->bandwidth, peak, p->x.most)) + 16, lowest = p->y.from - 6;
  svg_text(out, RIGHT, y < lowest ? y : lowest, SVG_END, label);
}

static void draw_roofs(SolBuffer *out, const Picture *p) {
  char label[96];
  double l2 = svg_number(p->roofs, "l2"), peak = p->tensor > 0 ? p->tensor : p->vector;
  sol_format(label, sizeof label, "roofs of %.60s", p->device);
  svg_text(out, RIGHT, TOP - 10, SVG_END, label);
  if (l2 > 0) draw_roof(out, p, l2, peak, SVG_DASHED);
  draw_roof(out, p, p->bandwidth, peak, ROOF);
  if (p->tensor > 0) draw_roof(out, p, p->bandwidth, p->vector, SVG_DASHED);
  if (l2 > 0) name_roof(out, p, "L2", l2);
  name_roof(out, p, "DRAM", p->bandwidth);
  if (p->vector > 0) name_peak(out, p, "fp32", p->vector);
  if (p->tensor > 0) name_peak(out, p, "tensor bf16", p->tensor);
}

// A point that lies on others has its number to the right of theirs.
static double label_x(const Picture *p, int i, double x, double y) {
  double shift = 7;
  for (int j = 0; j < i; j++) {
    const Point *other = &p->points[j];
    shift += fabs(svg_at(&p->x, other->flops / other->bytes) - x) < 16 &&
                     fabs(svg_at(&p->y, other->bytes / other->us * 1e6) - y) < 12
                 ? 16
                 : 0;
  }
  return x + shift;
}

static void draw_points(SolBuffer *out, const Picture *p, double bottom) {
  for (int i = 0; i < p->count; i++) {
    const Point *at = &p->points[i];
    double x = svg_at(&p->x, at->flops / at->bytes), y = svg_at(&p->y, at->bytes / at->us * 1e6);
    double bare = at->bare_us > 0 ? svg_at(&p->y, at->bytes / at->bare_us * 1e6) : y;
    char label[160], time[32];
    if (bare < y - 4) {
      svg_line(out, x, y, x, bare, "stroke=\"#777\" stroke-dasharray=\"2 2\"");
      svg_dot(out, x, bare, false);
    }
    svg_dot(out, x, y, true);
    if (i >= MAX_LABELS) continue;
    sol_format(label, sizeof label, "%d", i + 1);
    svg_text(out, label_x(p, i, x, y), y + 4, SVG_START, label);
    fact_write_number(time, sizeof time, UNIT_US, at->us);
    sol_format(label, sizeof label, "%d. %.80s on %.20s: %s", i + 1, at->name, at->device, time);
    svg_text(out, LEFT, bottom + 62 + 16 * i, SVG_START, label);
  }
}

static bool draw_roofline(Picture *p, SolBuffer *out) {
  double bottom = 400;
  int labels = p->count < MAX_LABELS ? p->count : MAX_LABELS;
  p->bandwidth = either(p->roofs, "hbm", "read");
  p->vector = either(p->roofs, "vector_fp32", "fp32");
  p->tensor = either(p->roofs, "tensor_bf16", "tensor");
  if (!p->count || !(p->bandwidth > 0)) return false;
  scale(p, bottom);
  svg_open(out, SVG_WIDTH, bottom + 70 + 16 * labels, "roofline");
  draw_axes(out, p, bottom);
  draw_roofs(out, p);
  draw_points(out, p, bottom);
  svg_close(out);
  return !out->failed;
}

bool report_svg(const Fact *root, SolBuffer *out) {
  Picture p = {0};
  if (!root || root->arena->failed) return false;
  const Fact *ladders = svg_fact(root, "ladders");
  const Fact *rungs =
      ladders ? svg_fact(ladders->first, "rungs") : NULL; // in the list of ladders, their number
  if (rungs && rungs->kind == FACT_LIST) return svg_ladders(ladders, out);
  if (svg_fact(root, "phase")) return svg_pass(root, out);
  if (svg_fact(root, "cases")) return svg_bench(svg_fact(root, "cases"), out);
  if (root->kind == FACT_OBJECT) add_answer(&p, root);
  for (const Fact *o = root->kind == FACT_LIST ? root->first : NULL; o; o = o->next) add_answer(&p, o);
  return draw_roofline(&p, out);
}
