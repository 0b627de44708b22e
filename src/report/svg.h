// The picture of an answer as SVG, from its facts: a roofline of what has roofs (roofline, audit, profile), bars against
// light of ladders and benchmarks, the pass of a model as one bar. Black on white, for documents.
#ifndef SOL_REPORT_SVG_H
#define SOL_REPORT_SVG_H

#include "report/facts.h"

// False: the answer has no such picture, and nothing is written.
bool report_svg(const Fact *root, SolBuffer *out);

// svg_bars.c: those that are bars.
bool svg_ladders(const Fact *ladders, SolBuffer *out);
bool svg_pass(const Fact *root, SolBuffer *out);
bool svg_bench(const Fact *cases, SolBuffer *out);

// svg_pen.c: members of facts; 0 and "" where there is none of that kind.
const Fact *svg_fact(const Fact *parent, const char *key);
double svg_number(const Fact *parent, const char *key);
const char *svg_label(const Fact *parent, const char *key);

#define SVG_DASHED "stroke=\"#000\" stroke-dasharray=\"5 3\""
enum { SVG_WIDTH = 760 };

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
