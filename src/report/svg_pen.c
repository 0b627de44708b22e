#include <math.h>
#include <string.h>

#include "base/plain.h"
#include "report/svg.h"

const Fact *svg_fact(const Fact *parent, const char *key) {
  for (const Fact *f = parent ? parent->first : NULL; f; f = f->next)
    if (f->key && strcmp(f->key, key) == 0) return f;
  return NULL;
}

double svg_number(const Fact *parent, const char *key) {
  const Fact *f = svg_fact(parent, key);
  return f && f->kind == FACT_NUMBER && isfinite(f->number) ? f->number : 0;
}

const char *svg_label(const Fact *parent, const char *key) {
  const Fact *f = svg_fact(parent, key);
  return f && f->kind == FACT_TEXT && f->text ? f->text : "";
}

static void put_escaped(SolBuffer *out, const char *text) {
  SolBuffer plain = {0};
  sol_buffer_plain(&plain, text, strlen(text), false);
  for (size_t i = 0; i < plain.length; i++) {
    char c = plain.text[i];
    const char *name = c == '<'   ? "&lt;"
                       : c == '>' ? "&gt;"
                       : c == '&' ? "&amp;"
                       : c == '"' ? "&quot;"
                                  : NULL;
    if (name)
      sol_buffer_puts(out, name);
    else
      sol_buffer_put(out, &c, 1);
  }
  if (plain.failed) out->failed = true;
  sol_buffer_free(&plain);
}

void svg_open(SolBuffer *out, double width, double height, const char *title) {
  sol_buffer_format(
      out,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>",
      width, height, width, height);
  put_escaped(out, title);
  sol_buffer_puts(out,
                  "</title>\n<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" "
                  "patternUnits=\"userSpaceOnUse\"><path d=\"M0,6L6,0\" stroke=\"#000\"/></pattern></defs>\n"
                  "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
}

void svg_close(SolBuffer *out) {
  sol_buffer_puts(out, "</svg>\n");
}

void svg_text(SolBuffer *out, double x, double y, SvgAnchor anchor, const char *text) {
  static const char *const anchors[] = {"start", "middle", "end"};
  sol_buffer_format(
      out,
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" paint-order=\"stroke\" stroke=\"#fff\" stroke-width=\"3\">",
      x, y, anchors[anchor]);
  put_escaped(out, text);
  sol_buffer_puts(out, "</text>\n");
}

void svg_line(SolBuffer *out, double x1, double y1, double x2, double y2, const char *style) {
  sol_buffer_format(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2,
                    style);
}

void svg_box(SolBuffer *out, double x, double y, double width, double height, const char *fill) {
  sol_buffer_format(
      out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" stroke=\"#000\"/>\n", x, y,
      width, height, fill);
}

void svg_dot(SolBuffer *out, double x, double y, bool filled) {
  sol_buffer_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\" stroke=\"#000\"/>\n", x, y,
                    filled ? "#0072b2" : "#fff");
}

double svg_at(const SvgAxis *a, double value) {
  double v = value < a->least ? a->least : value > a->most ? a->most : value;
  return a->from + log10(v / a->least) / log10(a->most / a->least) * (a->to - a->from);
}
