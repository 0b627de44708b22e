// The picture of an answer as SVG, from its facts: a roofline of what has roofs (roofline, audit), bars against light
// of ladders. Black on white, for documents.
#ifndef SOL_REPORT_SVG_H
#define SOL_REPORT_SVG_H

#include "report/facts.h"

// False: the answer has no such picture, and nothing is written.
bool report_svg(const Fact *root, SolBuffer *out);

// svg_pen.c: elements. Texts are escaped; coordinates are pixels.
typedef enum SvgAnchor { SVG_START, SVG_MIDDLE, SVG_END } SvgAnchor;
void svg_open(SolBuffer *out, double width, double height, const char *title);
void svg_close(SolBuffer *out);
void svg_text(SolBuffer *out, double x, double y, SvgAnchor anchor, const char *text);
void svg_line(SolBuffer *out, double x1, double y1, double x2, double y2, const char *style);
void svg_box(SolBuffer *out, double x, double y, double width, double height, const char *fill);
void svg_dot(SolBuffer *out, double x, double y, bool filled);

// A logarithmic axis from `least` to `most`, both powers of ten, over pixels.
typedef struct SvgAxis {
  double least, most, from, to;
} SvgAxis;
double svg_at(const SvgAxis *axis, double value); // values beyond its ends are put there

#endif
