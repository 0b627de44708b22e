// A roofline drawn in text: intensity across, FLOP/s up, both logarithmic; the roof, and the work on it.
#ifndef SOL_REPORT_PLOT_H
#define SOL_REPORT_PLOT_H

#include "base/buffer.h"
#include "sol/roofline.h"

// Draws nothing where there is no point to draw (no FLOPs, no bytes, or no peak).
void plot_roofline(const SolRoofline *r, SolBuffer *out);

#endif
