#include "report/plot.h"

#include <math.h>

#include "report/facts.h"

enum { COLUMNS = 64, LEAST = 16, ROWS = 14, MARGIN = 16 };

// Columns of a drawing in a terminal, less `labels` for numbers and labels.
static int columns_in(size_t width, int labels) {
  if (!width || width >= (size_t)(COLUMNS + labels)) return COLUMNS;
  return width > (size_t)(LEAST + labels) ? (int)width - labels : LEAST;
}

static int place(double v, double low, double high, int cells) {
  int at = (int)floor((v - low) / (high - low) * (cells - 1) + 0.5);
  return at < 0 ? 0 : at >= cells ? cells - 1 : at;
}

static void axis_label(SolBuffer *out, FactUnit unit, double v) {
  char text[32];
  fact_write_number(text, sizeof text, unit, v);
  sol_buffer_format(out, "%*s ", MARGIN - 2, text);
}

void report_plot_roofline(const SolRoofline *r, size_t width, SolBuffer *out) {
  bool drawable = r->flops > 0 && r->bytes > 0 && r->peak > 0 && r->bandwidth > 0;
  if (!drawable) return;
  int columns = columns_in(width, MARGIN);
  // Two decades to the left of the leftmost of point and ridge, one to the right of the rightmost.
  double point = log10(r->intensity), ridge = log10(r->ridge);
  double left = floor((point < ridge ? point : ridge) - 1),
         right = ceil((point > ridge ? point : ridge) + 0.7);
  double top = log10(r->peak), bottom = left + log10(r->bandwidth);
  char grid[ROWS][COLUMNS + 1];
  for (int y = 0; y < ROWS; y++) {
    for (int x = 0; x < columns; x++) grid[y][x] = ' ';
    grid[y][columns] = 0;
  }
  for (int x = 0; x < columns; x++) {
    double intensity = left + (right - left) * x / (columns - 1);
    bool sloped = intensity < ridge;
    double roof = sloped ? intensity + log10(r->bandwidth) : top;
    grid[place(roof, bottom, top, ROWS)][x] = sloped ? '/' : '-';
  }
  int px = place(point, left, right, columns), py = place(log10(r->attainable_flops), bottom, top, ROWS);
  for (int y = 0; y < py; y++)
    if (grid[y][px] == ' ') grid[y][px] = '.';
  grid[py][px] = 'O';
  for (int y = ROWS - 1; y >= 0; y--) {
    if (y == ROWS - 1)
      axis_label(out, UNIT_FLOPS_PER_S, r->peak);
    else if (y == py)
      axis_label(out, UNIT_FLOPS_PER_S, r->attainable_flops);
    else
      sol_buffer_fill(out, ' ', MARGIN - 1);
    int end = columns;
    while (end > 0 && grid[y][end - 1] == ' ') end--;
    sol_buffer_puts(out, "|");
    sol_buffer_put(out, grid[y], (size_t)end);
    sol_buffer_puts(out, "\n");
  }
  sol_buffer_fill(out, ' ', MARGIN - 1);
  sol_buffer_puts(out, "+");
  sol_buffer_fill(out, '-', (size_t)columns);
  char low[32], high[32], at[32], turn[32];
  fact_write_number(low, sizeof low, UNIT_PLAIN, pow(10, left));
  fact_write_number(high, sizeof high, UNIT_PLAIN, pow(10, right));
  fact_write_number(at, sizeof at, UNIT_PLAIN, r->intensity);
  fact_write_number(turn, sizeof turn, UNIT_PLAIN, r->ridge);
  sol_buffer_format(out, "\n%*s%s", MARGIN, "", low);
  int gap = columns - (int)strlen(low) - (int)strlen(high);
  sol_buffer_format(out, "%*s%s\n", gap, "", high);
  sol_buffer_format(out, "  FLOP/byte; O = this work at %s, ridge at %s\n", at, turn);
}

void report_plot_bars(const PlotPoint *points, int count, FactUnit unit, size_t width, SolBuffer *out) {
  double most = 0;
  int labels = 0;
  bool bars = false, marks = false;
  for (int i = 0; i < count; i++) {
    most = fmax(most, fmax(points[i].bar, points[i].mark));
    bars |= points[i].bar > 0, marks |= points[i].mark > 0;
    int n = (int)strlen(points[i].label);
    if (n > labels) labels = n;
  }
  if (!(most > 0)) return;
  enum { VALUE = 14 };
  int columns = columns_in(width, labels + 5 + VALUE);
  for (int i = 0; i < count; i++) {
    const PlotPoint *p = &points[i];
    int bar = (int)(p->bar / most * columns + 0.5), mark = (int)(p->mark / most * columns + 0.5);
    char line[COLUMNS + 2], value[32] = "";
    for (int x = 0; x <= columns; x++) line[x] = ' ';
    line[columns + 1] = 0;
    for (int x = 0; x < (bars ? bar : mark); x++) line[x] = bars ? '#' : '-';
    if (mark > 0) line[mark - 1] = 'o';
    if (p->bar > 0 || p->mark > 0)
      fact_write_number(value, sizeof value, unit, p->bar > 0 ? p->bar : p->mark);
    sol_buffer_format(out, "  %*s |%s%s\n", labels, p->label, line, value);
  }
  sol_buffer_format(out, "  %*s  %s%s%s\n", labels, "", bars ? "# measured" : "", bars && marks ? ", " : "",
                    marks ? "o predicted" : "");
}
