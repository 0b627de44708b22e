// Plots in text. A roofline: arithmetic intensity on the x axis, FLOP/s on the y axis, both logarithmic, with
// the roof and the point of the work.
#ifndef SOL_REPORT_PLOT_H
#define SOL_REPORT_PLOT_H

#include "base/buffer.h"
#include "report/facts.h"
#include "sol/roofline.h"

// width: of the terminal; 0: any. Draws nothing where there is no point to draw (no FLOPs, no bytes, or no
// peak).
void report_plot_roofline(const SolRoofline *r, size_t width, SolBuffer *out);

// One line a point, from zero to the largest: a bar for what was measured, a mark for what was predicted (a
// thinner bar where nothing was measured). 0 in either: there is none. Nothing is drawn for no points.
typedef struct PlotPoint {
  const char *label;
  double bar, mark;
} PlotPoint;
void report_plot_bars(const PlotPoint *points, int count, FactUnit unit, size_t width, SolBuffer *out);

#endif
