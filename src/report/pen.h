// Shared by the parts of the text renderer: word wrapping, emphasis, table cells.
#ifndef SOL_REPORT_PEN_H
#define SOL_REPORT_PEN_H

#include "report/facts.h"
#include "report/wrap.h"

enum { PEN_PROSE = 100, PEN_CELL = 128, PEN_LABELS = 48 };

// Labels, each once.
typedef struct PenLabels {
  const char *label[PEN_LABELS];
  int count;
} PenLabels;

typedef struct Pen {
  SolBuffer *out;
  TextStyle style;
  size_t prose;       // columns of a line of sentences: the terminal's, but no more than reads well
  PenLabels left_out; // columns of tables that did not fit
} Pen;

void pen_bold(Pen *p, const char *text, size_t length);
void pen_note_label(PenLabels *labels, const char *label);
// Words wrapped at p->prose, the first line starting at column `at`, the others at `indent`. A word longer
// than a line is broken.
void pen_wrap(Pen *p, const char *text, size_t indent, size_t at);
// A scalar as text, in `room` of PEN_CELL bytes or in the fact itself; like: fact_write_number_like's.
const char *pen_value(const Fact *f, double like, char *room);

void pen_table(Pen *p, const Fact *list); // report_table.c

#endif
