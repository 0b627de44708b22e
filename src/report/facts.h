// The output of a command as a tree of facts, from which text and JSON are rendered. A fact with a key appears
// in JSON, one with a label in text; most have both.
#ifndef SOL_REPORT_FACTS_H
#define SOL_REPORT_FACTS_H

#include "base/arena.h"
#include "base/buffer.h"

// How a number is formatted in text. JSON always has the plain value in the unit that its key names.
typedef enum FactUnit {
  UNIT_PLAIN = 0, // 1234.5
  UNIT_COUNT,     // 8.03B: parameters, tokens
  UNIT_BYTES,     // 134.2 MB: traffic
  UNIT_SIZE,      // 228 KiB: capacity
  UNIT_FLOPS,     // 4.29 GFLOP
  UNIT_US,        // 40.06 us
  UNIT_BYTES_PER_S,
  UNIT_FLOPS_PER_S,
  UNIT_INTENSITY, // FLOP/byte
  UNIT_TIMES,     // 1.50x
  UNIT_SHARE,     // 0.5 is 50%
  UNIT_HZ,
  UNIT_CLOCKS,
  UNIT_BITS,
  UNIT_BYTES_PER_CLOCK
} FactUnit;

// The basis of a number; always shown with it.
typedef enum FactBasis {
  BASIS_NONE = 0,
  BASIS_EXACT,     // counted
  BASIS_MODELLED,  // computed from published or measured rates
  BASIS_PUBLISHED, // a vendor's or a paper's figure
  BASIS_MEASURED
} FactBasis;

typedef enum FactKind {
  FACT_OBJECT,
  FACT_LIST,
  FACT_NUMBER,
  FACT_TEXT,
  FACT_BOOL,
  FACT_UNKNOWN,
  FACT_TITLE,
  FACT_NOTE,
  FACT_LINE,   // a paragraph that starts `number` columns in
  FACT_STRONG, // the same, emphasised
  FACT_CODE,   // lines as they are, cut where they are too long
  FACT_BLOCK,
  FACT_PICTURE // lines of which what stands between bars is coloured by its characters, on a terminal
} FactKind;

// How a column is shortened where the table is wider than the terminal.
typedef enum FactFit {
  FIT_WHOLE = 0, // it is shown whole or left out
  FIT_CUT,       // its texts are cut, which an ellipsis shows
  FIT_CUT_CODE,  // the same, but not below what a line of code needs to be recognised
  FIT_WRAP       // its texts continue on further lines
} FactFit;
typedef struct FactColumn {
  const char *label;
  FactFit fit;
} FactColumn;

typedef struct Fact Fact;
struct Fact {
  const char *key, *label, *text;
  FactKind kind;
  FactUnit unit;
  FactBasis basis;
  double number;
  const FactColumn *columns; // of a list, the most important first; NULL: as they come
  SolArena *arena;
  Fact *first, *last, *next;
};

// Children are added at the end. Keys and labels must outlive the tree (literals); texts are copied.
// Every function takes a NULL parent and then does nothing: out of memory shows once, at facts_render_*.
Fact *facts_root(SolArena *arena, FactKind object_or_list);
Fact *fact_object(Fact *parent, const char *key, const char *label);
Fact *fact_list(Fact *parent, const char *key, const char *label);
void fact_number(Fact *parent, const char *key, const char *label, FactUnit unit, FactBasis basis,
                 double value);
void fact_text(Fact *parent, const char *key, const char *label, const char *text);
void fact_textf(Fact *parent, const char *key, const char *label, const char *format, ...) SOL_PRINTF(4, 5);
void fact_bool(Fact *parent, const char *key, const char *label, bool value);
void fact_unknown(Fact *parent, const char *key, const char *label);
void fact_title(Fact *parent, const char *format, ...) SOL_PRINTF(2, 3); // text only: once, at the top
void fact_note(Fact *parent, const char *format, ...) SOL_PRINTF(2, 3);  // text only: a sentence
void fact_block(Fact *parent, const char *text);                         // text only: preformatted
void fact_picture(Fact *parent, const char *text);                       // text only: see FACT_PICTURE
void fact_code(Fact *parent, const char *text, size_t length);           // text only: lines of a program
// Text only: a paragraph, `indent` columns in; strong: a heading of those that follow.
void fact_line(Fact *parent, int indent, bool strong, const char *format, ...) SOL_PRINTF(4, 5);
// What a table keeps where not all of it fits: its columns, the most important first, up to one without a
// label. Columns that are not among them are the first to go. The array must outlive the tree.
void fact_columns(Fact *list, const FactColumn *columns);

// A number with its unit: "134.2 MB".
void fact_write_number(char *out, size_t cap, FactUnit unit, double value);
// The same in the unit that `like` would be written in: a column of a table has one unit.
void fact_write_number_like(char *out, size_t cap, FactUnit unit, double value, double like);
// Which of the least and the most of a column's values (both positive) is to be the others' `like`; NAN: they
// are too far apart for one unit.
double fact_like(FactUnit unit, double least, double most);

static inline bool fact_is_scalar(const Fact *f) {
  return f->kind == FACT_NUMBER || f->kind == FACT_TEXT || f->kind == FACT_BOOL || f->kind == FACT_UNKNOWN;
}
const char *fact_basis_name(FactBasis basis); // "modelled"; NULL for none

typedef struct TextStyle {
  size_t width; // columns of the terminal; 0: tables are as wide as they come
  bool colour;
  bool ascii; // the locale has no UTF-8: an ellipsis is three dots
} TextStyle;
bool facts_render_text(const Fact *root, const TextStyle *style, SolBuffer *out);
bool facts_render_json(const Fact *root, SolBuffer *out);

#endif
