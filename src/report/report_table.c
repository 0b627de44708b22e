// A table: one row an object, its columns the labelled scalars of the fullest row. Where it is wider than the
// terminal, columns give way in the order of importance that the list has (fact_columns).
#include <string.h>

#include "report/pen.h"

enum { MOST = 24, GAP = 2, LEAST_CUT = 14, LEAST_CODE = 24, LEAST_WRAP = 24 };

typedef struct Column {
  const char *label;
  size_t natural, width; // width 0: it is left out
  FactFit fit;
  int rank; // the smaller, the more important
  bool right;
  double like; // what its numbers are written like; NAN: each for itself
} Column;

typedef struct Table {
  const Fact *list;
  Column column[MOST];
  int count;
} Table;

static size_t columns_of(const char *text) {
  return sol_text_columns(text, strlen(text));
}

static const Fact *cell_of(const Fact *row, const char *label) {
  for (const Fact *c = row->first; c; c = c->next)
    if (c->label && fact_is_scalar(c) && strcmp(c->label, label) == 0) return c;
  return 0;
}

static int labelled(const Fact *row) {
  int count = 0;
  for (const Fact *c = row->first; c; c = c->next) count += fact_is_scalar(c) && c->label;
  return count;
}

static void rank_column(const Fact *list, Column *c, int position) {
  c->rank = MOST + position;
  for (int i = 0; list->columns && list->columns[i].label; i++)
    if (strcmp(list->columns[i].label, c->label) == 0) {
      c->rank = i;
      c->fit = list->columns[i].fit;
    }
}

// One unit for the numbers of a column that have the same kind of unit.
static double like_of(const Fact *list, const char *label, bool *numbers) {
  double least = 0, most = 0;
  const Fact *first = 0;
  bool alike = true;
  for (const Fact *row = list->first; row; row = row->next) {
    const Fact *c = cell_of(row, label);
    if (!c || c->kind != FACT_NUMBER) continue;
    if (!first) first = c;
    alike &= c->unit == first->unit;
    double v = c->number < 0 ? -c->number : c->number;
    if (!(v > 0) || !__builtin_isfinite(v)) continue;
    if (!(least > 0) || v < least) least = v;
    if (v > most) most = v;
  }
  *numbers = first != 0;
  return first && alike && most > 0 ? fact_like(first->unit, least, most) : __builtin_nan("");
}

static void measure_column(const Fact *list, Column *c) {
  char room[PEN_CELL];
  c->like = like_of(list, c->label, &c->right);
  c->natural = columns_of(c->label);
  for (const Fact *row = list->first; row; row = row->next) {
    const Fact *f = cell_of(row, c->label);
    size_t n = f ? columns_of(pen_value(f, c->like, room)) : 0;
    if (n > c->natural) c->natural = n;
  }
}

static void read_columns(Table *t) {
  const Fact *head = 0;
  int most = -1;
  for (const Fact *row = t->list->first; row; row = row->next)
    if (labelled(row) > most) most = labelled(row), head = row;
  for (const Fact *c = head ? head->first : 0; c && t->count < MOST; c = c->next) {
    if (!fact_is_scalar(c) || !c->label) continue;
    Column *column = &t->column[t->count];
    *column = (Column){.label = c->label};
    rank_column(t->list, column, t->count++);
    measure_column(t->list, column);
  }
}

// The narrowest that a column may become. What its header takes it always has.
static size_t least_width(const Column *c) {
  static const size_t least_of[] = {
      [FIT_CUT] = LEAST_CUT, [FIT_CUT_CODE] = LEAST_CODE, [FIT_WRAP] = LEAST_WRAP};
  size_t least = c->fit == FIT_WHOLE ? c->natural : least_of[c->fit];
  size_t header = columns_of(c->label);
  if (least < header) least = header;
  return least < c->natural ? least : c->natural;
}

static Column *next_in_rank(Table *t, int after) {
  Column *next = 0;
  for (int i = 0; i < t->count; i++)
    if (t->column[i].rank > after && (!next || t->column[i].rank < next->rank)) next = &t->column[i];
  return next;
}

// What is left goes to the columns that gave way, one column of the terminal at a time, the narrowest first.
static void share_out(Table *t, size_t spare) {
  for (; spare; spare--) {
    Column *poorest = 0;
    for (int i = 0; i < t->count; i++) {
      Column *c = &t->column[i];
      if (c->width && c->width < c->natural && (!poorest || c->width < poorest->width)) poorest = c;
    }
    if (!poorest) return;
    poorest->width++;
  }
}

static void fit_columns(Pen *p, Table *t) {
  size_t spare = p->style.width, whole = 0;
  for (int i = 0; i < t->count; i++) whole += t->column[i].natural + GAP;
  if (!spare || whole <= spare) {
    for (int i = 0; i < t->count; i++) t->column[i].width = t->column[i].natural;
    return;
  }
  bool any = false;
  for (Column *c = next_in_rank(t, -1); c; c = next_in_rank(t, c->rank)) {
    size_t least = least_width(c);
    if (!any && least + GAP > spare) least = spare - GAP; // the most important one is always there
    any = true;
    if (least + GAP <= spare) {
      c->width = least;
      spare -= least + GAP;
    } else {
      pen_note_label(&p->left_out, c->label);
    }
  }
  share_out(t, spare);
}

// ---- drawing ----

// The part of a cell's text that goes into this line; *text is moved on to the rest.
typedef struct Piece {
  const char *text, *end;
  size_t length, columns;
} Piece;

static Piece next_piece(const Pen *p, const Column *c, const char **text) {
  size_t all = strlen(*text);
  const char *rest = *text + all;
  Piece piece = {.text = *text, .end = "", .length = all};
  if (columns_of(*text) > c->width && c->fit == FIT_WRAP) {
    piece.length = report_line(*text, c->width);
    rest = *text + piece.length;
  } else if (columns_of(*text) > c->width) {
    piece.end = p->style.ascii ? "..." : "\xe2\x80\xa6";
    piece.length = sol_text_prefix(*text, all, c->width - columns_of(piece.end));
  }
  *text = rest + strspn(rest, " ");
  piece.columns = sol_text_columns(piece.text, piece.length) + columns_of(piece.end);
  return piece;
}

// One row, in as many lines as its longest cell takes. Spaces are written only before something.
static void draw(Pen *p, const Table *t, const char *text[MOST], bool header) {
  for (bool more = true; more;) {
    size_t spaces = 0;
    more = false;
    for (int i = 0; i < t->count; i++) {
      const Column *c = &t->column[i];
      if (!c->width) continue;
      Piece piece = next_piece(p, c, &text[i]);
      size_t room = c->width > piece.columns ? c->width - piece.columns : 0;
      more |= *text[i] != 0;
      spaces += GAP + (c->right ? room : 0);
      if (piece.length) {
        sol_buffer_fill(p->out, ' ', spaces);
        if (header)
          pen_bold(p, piece.text, piece.length);
        else
          sol_buffer_put(p->out, piece.text, piece.length);
        sol_buffer_puts(p->out, piece.end);
        spaces = 0;
      } else {
        spaces += piece.columns;
      }
      spaces += c->right ? 0 : room;
    }
    sol_buffer_puts(p->out, "\n");
  }
}

void pen_table(Pen *p, const Fact *list) {
  Table t = {.list = list};
  char room[MOST][PEN_CELL];
  const char *text[MOST];
  read_columns(&t);
  fit_columns(p, &t);
  bool headed = false;
  for (const Fact *row = list->first; row; row = row->next) {
    if (!labelled(row)) continue; // JSON only
    for (int i = 0; i < t.count; i++) text[i] = t.column[i].label;
    if (!headed) draw(p, &t, text, true);
    headed = true;
    for (int i = 0; i < t.count; i++) {
      const Fact *c = cell_of(row, t.column[i].label);
      text[i] = c ? pen_value(c, t.column[i].like, room[i]) : "";
    }
    draw(p, &t, text, false);
  }
}
