// Facts for people: aligned pairs, tables, notes wrapped to the terminal's usual width, and at the end what
// was counted and what was modelled.
#include <string.h>

#include "base/plain.h"

#include "report/pen.h"

void pen_bold(Pen *p, const char *text, size_t length) {
  if (p->style.colour) sol_buffer_puts(p->out, "\033[1m");
  sol_buffer_put(p->out, text, length);
  if (p->style.colour) sol_buffer_puts(p->out, "\033[0m");
}

// A fact's text as it may be shown: it may quote names that the program chose.
static const char *shown(const Fact *f) {
  size_t n = strlen(f->text);
  if (sol_text_is_plain(f->text, n, false)) return f->text;
  SolBuffer plain = {0};
  sol_buffer_plain(&plain, f->text, n, false);
  char *copy = plain.failed ? NULL : sol_arena_alloc(f->arena, plain.length + 1);
  if (copy) memcpy(copy, plain.text, plain.length + 1);
  sol_buffer_free(&plain);
  return copy ? copy : "?";
}

void pen_note_label(PenLabels *labels, const char *label) {
  for (int i = 0; i < labels->count; i++)
    if (strcmp(labels->label[i], label) == 0) return;
  if (labels->count < PEN_LABELS) labels->label[labels->count++] = label;
}

const char *pen_value(const Fact *f, double like, char *room) {
  switch (f->kind) {
  case FACT_NUMBER:
    if (like == like)
      fact_write_number_like(room, PEN_CELL, f->unit, f->number, like);
    else
      fact_write_number(room, PEN_CELL, f->unit, f->number);
    return room;
  case FACT_TEXT: return shown(f);
  case FACT_BOOL: return f->number != 0 ? "yes" : "no";
  default: return "unknown";
  }
}

static void wrap(Pen *p, const char *text, size_t indent, size_t at, bool strong) {
  if (strong && p->style.colour) sol_buffer_puts(p->out, "\033[1m");
  report_wrap(p->out, text, indent, at, p->prose, "");
  sol_buffer_puts(p->out, strong && p->style.colour ? "\033[0m\n" : "\n");
}

void pen_wrap(Pen *p, const char *text, size_t indent, size_t at) {
  wrap(p, text, indent, at, false);
}

static void pad(Pen *p, size_t used, size_t width) {
  if (used < width) sol_buffer_fill(p->out, ' ', width - used);
}

// The run of labelled scalars that starts at f; returns what follows it.
static const Fact *render_pairs(Pen *p, const Fact *f) {
  enum { MOST_LABEL = 40 };
  size_t width = 0;
  const Fact *end = f;
  for (; end && fact_is_scalar(end); end = end->next) {
    size_t n = end->label ? sol_text_columns(end->label, strlen(end->label)) : 0;
    if (n > width) width = n;
  }
  if (width > MOST_LABEL && p->style.width) width = MOST_LABEL;
  for (; f != end; f = f->next) {
    if (!f->label) continue;
    char room[PEN_CELL];
    sol_buffer_puts(p->out, "  ");
    sol_buffer_puts(p->out, f->label);
    size_t used = sol_text_columns(f->label, strlen(f->label)) + 2;
    pad(p, used, width + 4);
    pen_wrap(p, pen_value(f, __builtin_nan(""), room), width + 4, used > width + 2 ? used + 2 : width + 4);
  }
  return end;
}

static void render_object(Pen *p, const Fact *object);

// Flat rows make a table; nested rows are shown one after another.
static void render_rows(Pen *p, const Fact *list) {
  bool flat = true;
  for (const Fact *row = list->first; row; row = row->next)
    for (const Fact *c = row->first; c; c = c->next) flat &= fact_is_scalar(c) || !c->label;
  if (flat) {
    pen_table(p, list);
    return;
  }
  for (const Fact *row = list->first; row; row = row->next) {
    if (row != list->first) sol_buffer_puts(p->out, "\n");
    render_object(p, row);
  }
}

static void render_list(Pen *p, const Fact *f) {
  if (!f->first) return;
  if (f->first->kind == FACT_OBJECT) {
    render_rows(p, f);
    return;
  }
  char room[PEN_CELL];
  for (const Fact *c = f->first; c; c = c->next) {
    sol_buffer_puts(p->out, "  ");
    pen_wrap(p, pen_value(c, __builtin_nan(""), room), 2, 2);
  }
}

static void heading(Pen *p, const Fact *f) {
  if (!f->label || !*f->label) return;
  sol_buffer_puts(p->out, "\n");
  wrap(p, f->label, 0, 0, true);
}

static bool is_line(const Fact *f) {
  return f && (f->kind == FACT_LINE || f->kind == FACT_STRONG || f->kind == FACT_CODE);
}

static void render_line(Pen *p, const Fact *f) {
  size_t indent = (size_t)f->number;
  sol_buffer_fill(p->out, ' ', indent);
  wrap(p, shown(f), indent, indent, f->kind == FACT_STRONG);
}

static void render_code(Pen *p, const char *text) {
  enum { INDENT = 5 };
  const char *ellipsis = p->style.ascii ? "..." : "\xe2\x80\xa6";
  while (*text) {
    size_t length = strcspn(text, "\n"), room = p->style.width > INDENT ? p->style.width - INDENT : SIZE_MAX;
    bool fits = sol_text_columns(text, length) <= room;
    size_t n =
        fits ? length : sol_text_prefix(text, length, room - sol_text_columns(ellipsis, strlen(ellipsis)));
    if (n) sol_buffer_fill(p->out, ' ', INDENT);
    sol_buffer_put(p->out, text, n);
    sol_buffer_format(p->out, "%s\n", fits ? "" : ellipsis);
    text += length + (text[length] == '\n');
  }
}

// Its ends of lines stay: an empty line parts two paragraphs.
static void render_note(Pen *p, const char *text) {
  SolBuffer plain = {0};
  sol_buffer_plain(&plain, text, strlen(text), true);
  pen_wrap(p, plain.text ? plain.text : "", 0, 0);
  sol_buffer_free(&plain);
}

// The colour of a character of a picture; NULL: none.
static const char *colour_of(char c) {
  switch (c) {
  case '#':
  case '+': return "\033[32m";
  case ':':
  case '.': return "\033[2;32m";
  case 'c': return "\033[34m";
  case 't': return "\033[35m";
  case 'w': return "\033[33m";
  case 'm': return "\033[31m";
  default: return NULL;
  }
}

static void render_picture(Pen *p, const char *text) {
  const char *now = NULL;
  bool inside = false;
  for (; *text; text++) {
    if (*text == '|') inside = !inside;
    const char *want = p->style.colour && inside && *text != '|' ? colour_of(*text) : NULL;
    if (want != now) sol_buffer_puts(p->out, want ? want : "\033[0m");
    now = want;
    sol_buffer_put(p->out, text, 1);
  }
}

static void render_part(Pen *p, const Fact *f, const Fact *before) {
  switch (f->kind) {
  case FACT_TITLE:
    wrap(p, shown(f), 0, 0, true);
    sol_buffer_puts(p->out, "\n");
    break;
  case FACT_NOTE:
    sol_buffer_puts(p->out, "\n");
    render_note(p, f->text);
    break;
  case FACT_LINE:
  case FACT_STRONG:
    if (!is_line(before) || (f->kind == FACT_STRONG && !f->number)) sol_buffer_puts(p->out, "\n");
    render_line(p, f);
    break;
  case FACT_CODE: render_code(p, f->text); break;
  case FACT_BLOCK:
    sol_buffer_puts(p->out, "\n");
    sol_buffer_puts(p->out, f->text);
    break;
  case FACT_PICTURE: render_picture(p, f->text); break;
  case FACT_LIST:
    heading(p, f);
    render_list(p, f);
    break;
  default: heading(p, f); render_object(p, f);
  }
}

static void render_object(Pen *p, const Fact *object) {
  for (const Fact *f = object->first, *before = 0; f;) {
    if (fact_is_scalar(f)) {
      f = render_pairs(p, f);
      before = 0;
      continue;
    }
    if (f->label) render_part(p, f, before), before = f;
    f = f->next;
  }
}

// ---- what rests on what, in one line ----

// A word for all numbers of a unit; NULL: each goes by its label.
static const char *unit_word(FactUnit unit) {
  switch (unit) {
  case UNIT_BYTES:
  case UNIT_SIZE: return "bytes";
  case UNIT_US: return "times";
  case UNIT_BYTES_PER_S:
  case UNIT_FLOPS_PER_S: return "rates";
  case UNIT_TIMES: return "ratios";
  case UNIT_SHARE: return "shares";
  default: return 0;
  }
}

enum { BASES = BASIS_MEASURED + 1 };
typedef struct BasisLine {
  unsigned units[BASES]; // of the labelled numbers on each basis, a bit each
  PenLabels labels[BASES];
  int shown[BASES];
} BasisLine;

static void collect_units(const Fact *f, unsigned units[BASES]) {
  for (; f; f = f->next) {
    collect_units(f->first, units);
    if (f->kind == FACT_NUMBER && f->label) units[f->basis] |= 1u << f->unit;
  }
}

// Whether numbers of a word's units rest on something else, too.
static bool mixed(const unsigned units[BASES], FactBasis basis, const char *word) {
  for (int b = BASIS_EXACT; b < BASES; b++)
    for (unsigned unit = 0; b != (int)basis && units[b] >> unit; unit++) {
      const char *own = units[b] >> unit & 1 ? unit_word((FactUnit)unit) : 0;
      if (own && !strcmp(own, word)) return true;
    }
  return false;
}

static void collect_labels(BasisLine *line, const Fact *f, FactBasis basis, bool words) {
  for (; f; f = f->next) {
    collect_labels(line, f->first, basis, words);
    if (f->kind != FACT_NUMBER || f->basis != basis || !f->label) continue;
    const char *word = words ? unit_word(f->unit) : 0;
    pen_note_label(&line->labels[basis],
                   word && !mixed(line->units, basis, word) ? word : f->label + strspn(f->label, " "));
  }
}

static void basis_collect(BasisLine *line, const Fact *root, bool words) {
  *line = (BasisLine){0};
  collect_units(root->first, line->units);
  for (int b = BASIS_EXACT; b < BASES; b++) {
    collect_labels(line, root->first, (FactBasis)b, words);
    line->shown[b] = line->labels[b].count;
  }
}

// "exact: bytes, launches; modelled: time", each list cut after so many labels.
static void basis_text(const BasisLine *line, const char *ellipsis, SolBuffer *text) {
  text->length = 0;
  for (int b = BASIS_EXACT; b < BASES; b++) {
    const PenLabels *labels = &line->labels[b];
    if (!labels->count) continue;
    sol_buffer_format(text, "%s%s: ", text->length ? "; " : "", fact_basis_name((FactBasis)b));
    for (int i = 0; i < line->shown[b]; i++) sol_buffer_format(text, "%s%s", i ? ", " : "", labels->label[i]);
    if (line->shown[b] < labels->count) sol_buffer_format(text, ", %s", ellipsis);
  }
}

// One label less, of the basis that shows most; false: each has but one.
static bool basis_shorten(BasisLine *line) {
  int longest = 0;
  for (int b = BASIS_EXACT; b < BASES; b++)
    if (line->shown[b] > line->shown[longest]) longest = b;
  if (line->shown[longest] < 2) return false;
  line->shown[longest]--;
  return true;
}

static void dim(Pen *p, const char *text) {
  if (p->style.colour) sol_buffer_puts(p->out, "\033[2m");
  pen_wrap(p, text, 0, 0);
  if (p->style.colour) sol_buffer_puts(p->out, "\033[0m");
}

static void render_basis(Pen *p, const Fact *root) {
  SolBuffer text = {0};
  const char *ellipsis = p->style.ascii ? "..." : "\xe2\x80\xa6";
  BasisLine line;
  basis_collect(&line, root, false);
  basis_text(&line, ellipsis, &text);
  if (text.length > p->prose) {
    basis_collect(&line, root, true);
    do basis_text(&line, ellipsis, &text);
    while (text.length && sol_text_columns(text.text, text.length) > p->prose && basis_shorten(&line));
  }
  if (text.length) {
    sol_buffer_puts(p->out, "\n");
    dim(p, text.text);
  }
  if (text.failed) p->out->failed = true;
  sol_buffer_free(&text);
}

static void render_left_out(Pen *p) {
  SolBuffer text = {0};
  const PenLabels *labels = &p->left_out;
  if (!labels->count) return;
  sol_buffer_puts(&text, "Not shown at this width (--wide shows all): ");
  for (int i = 0; i < labels->count; i++) sol_buffer_format(&text, "%s%s", i ? ", " : "", labels->label[i]);
  sol_buffer_puts(p->out, "\n");
  if (text.text) dim(p, text.text);
  sol_buffer_free(&text);
}

bool facts_render_text(const Fact *root, const TextStyle *style, SolBuffer *out) {
  if (!root || root->arena->failed) return false;
  Pen pen = {.out = out, .style = *style, .prose = PEN_PROSE};
  if (style->width && style->width < PEN_PROSE) pen.prose = style->width;
  if (root->kind == FACT_LIST) {
    render_list(&pen, root);
    for (const Fact *f = root->first; f; f = f->next)
      if (f->kind == FACT_NOTE) render_part(&pen, f, NULL);
  } else {
    render_object(&pen, root);
  }
  render_left_out(&pen);
  render_basis(&pen, root);
  return !out->failed;
}
