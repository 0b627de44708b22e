// Facts for people: aligned pairs, tables, notes wrapped to the terminal's usual width, and at the end what
// was counted and what was modelled.
#include "report/facts.h"

enum { WIDTH = 100, MAX_COLUMNS = 24, CELL = 128 };

typedef struct Pen {
  SolBuffer *out;
  bool colour;
} Pen;

static void bold(Pen *p, const char *text) {
  if (p->colour) sol_buffer_puts(p->out, "\033[1m");
  sol_buffer_puts(p->out, text);
  if (p->colour) sol_buffer_puts(p->out, "\033[0m");
}

static void write_value(const Fact *f, char *out, size_t cap, const char **text) {
  *text = out;
  switch (f->kind) {
  case FACT_NUMBER: fact_write_number(out, cap, f->unit, f->number); break;
  case FACT_TEXT: *text = f->text; break;
  case FACT_BOOL: *text = f->number != 0 ? "yes" : "no"; break;
  default: *text = "unknown";
  }
}

static void pad(Pen *p, size_t used, size_t width) {
  if (used < width) sol_buffer_fill(p->out, ' ', width - used);
}

// Words of `text` wrapped at WIDTH, the first line starting at column `at`, the others at `indent`.
static void wrap(Pen *p, const char *text, size_t indent, size_t at) {
  size_t column = at;
  while (*text) {
    size_t n = 0;
    while (text[n] && text[n] != ' ' && text[n] != '\n') n++;
    size_t columns = sol_text_columns(text, n);
    if (column > indent && column + 1 + columns > WIDTH) {
      sol_buffer_puts(p->out, "\n");
      sol_buffer_fill(p->out, ' ', indent);
      column = indent;
    } else if (column > indent) {
      sol_buffer_puts(p->out, " ");
      column++;
    }
    sol_buffer_put(p->out, text, n);
    column += columns;
    text += n;
    while (*text == ' ' || *text == '\n') text++;
  }
  sol_buffer_puts(p->out, "\n");
}

// The run of labelled scalars that starts at f; returns what follows it.
static const Fact *render_pairs(Pen *p, const Fact *f) {
  size_t width = 0;
  const Fact *end = f;
  for (; end && fact_is_scalar(end); end = end->next) {
    size_t n = end->label ? sol_text_columns(end->label, strlen(end->label)) : 0;
    if (n > width) width = n;
  }
  for (; f != end; f = f->next) {
    if (!f->label) continue;
    char cell[CELL];
    const char *value;
    write_value(f, cell, sizeof cell, &value);
    sol_buffer_puts(p->out, "  ");
    sol_buffer_puts(p->out, f->label);
    pad(p, sol_text_columns(f->label, strlen(f->label)), width + 2);
    wrap(p, value, width + 4, width + 4);
  }
  return end;
}

static const Fact *row_cell(const Fact *row, const Fact *column) {
  for (const Fact *c = row->first; c; c = c->next)
    if (c->label && strcmp(c->label, column->label) == 0) return c;
  return 0;
}

static bool has_cells(const Fact *row) {
  for (const Fact *c = row->first; c; c = c->next)
    if (fact_is_scalar(c) && c->label) return true;
  return false;
}

static bool numeric(const Fact *list, const Fact *column) {
  for (const Fact *row = list->first; row; row = row->next) {
    const Fact *c = row_cell(row, column);
    if (c && c->kind == FACT_NUMBER) return true;
  }
  return false;
}

// A table: one row an object, its columns the labelled scalars of the widest row. Numbers to the right.
static void render_table(Pen *p, const Fact *list) {
  const Fact *column[MAX_COLUMNS];
  size_t width[MAX_COLUMNS];
  bool right[MAX_COLUMNS];
  int count = 0, most = -1;
  const Fact *head = 0;
  for (const Fact *row = list->first; row; row = row->next) {
    int labelled = 0;
    for (const Fact *c = row->first; c; c = c->next) labelled += fact_is_scalar(c) && c->label;
    if (labelled > most) most = labelled, head = row;
  }
  for (const Fact *c = head ? head->first : 0; c && count < MAX_COLUMNS; c = c->next)
    if (fact_is_scalar(c) && c->label) column[count++] = c;

  char cell[CELL];
  const char *value;
  for (int i = 0; i < count; i++) {
    right[i] = numeric(list, column[i]);
    width[i] = sol_text_columns(column[i]->label, strlen(column[i]->label));
    for (const Fact *row = list->first; row; row = row->next) {
      const Fact *c = row_cell(row, column[i]);
      if (!c) continue;
      write_value(c, cell, sizeof cell, &value);
      size_t n = sol_text_columns(value, strlen(value));
      if (n > width[i]) width[i] = n;
    }
  }
  bool headed = false; // the header, then each row that has something for people
  for (const Fact *row = list->first; row; row = row->next) {
    if (!has_cells(row)) continue;
    for (int pass = headed ? 1 : 0; pass < 2; pass++) {
      for (int i = 0; i < count; i++) {
        const Fact *c = pass ? row_cell(row, column[i]) : 0;
        if (pass && c)
          write_value(c, cell, sizeof cell, &value);
        else
          value = pass ? "" : column[i]->label;
        size_t n = sol_text_columns(value, strlen(value));
        sol_buffer_puts(p->out, "  ");
        if (right[i]) pad(p, n, width[i]);
        if (pass)
          sol_buffer_puts(p->out, value);
        else
          bold(p, value);
        if (!right[i] && i + 1 < count) pad(p, n, width[i]);
      }
      sol_buffer_puts(p->out, "\n");
    }
    headed = true;
  }
}

static void render_object(Pen *p, const Fact *object);

// Flat rows make a table; rows with parts of their own are shown one after another.
static void render_rows(Pen *p, const Fact *list) {
  bool flat = true;
  for (const Fact *row = list->first; row; row = row->next)
    for (const Fact *c = row->first; c; c = c->next) flat &= fact_is_scalar(c) || !c->label;
  if (flat) {
    render_table(p, list);
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
  char cell[CELL];
  const char *value;
  for (const Fact *c = f->first; c; c = c->next) {
    write_value(c, cell, sizeof cell, &value);
    sol_buffer_puts(p->out, "  ");
    wrap(p, value, 2, 2);
  }
}

static void heading(Pen *p, const Fact *f) {
  if (!f->label || !*f->label) return;
  sol_buffer_puts(p->out, "\n");
  bold(p, f->label);
  sol_buffer_puts(p->out, "\n");
}

static void render_object(Pen *p, const Fact *object) {
  for (const Fact *f = object->first; f;) {
    if (fact_is_scalar(f)) {
      f = render_pairs(p, f);
      continue;
    }
    if (f->label) {
      switch (f->kind) {
      case FACT_TITLE:
        bold(p, f->text);
        sol_buffer_puts(p->out, "\n\n");
        break;
      case FACT_NOTE:
        sol_buffer_puts(p->out, "\n");
        wrap(p, f->text, 0, 0);
        break;
      case FACT_BLOCK:
        sol_buffer_puts(p->out, "\n");
        sol_buffer_puts(p->out, f->text);
        break;
      case FACT_LIST:
        heading(p, f);
        render_list(p, f);
        break;
      default: heading(p, f); render_object(p, f);
      }
    }
    f = f->next;
  }
}

enum { MAX_LABELS = 48 };
typedef struct Labels {
  const char *label[MAX_LABELS];
  int count;
} Labels;

static void collect_labels(const Fact *f, FactBasis basis, Labels *labels) {
  for (; f; f = f->next) {
    collect_labels(f->first, basis, labels);
    if (f->kind != FACT_NUMBER || f->basis != basis || !f->label) continue;
    int i = 0;
    while (i < labels->count && strcmp(labels->label[i], f->label) != 0) i++;
    if (i == labels->count && i < MAX_LABELS) labels->label[labels->count++] = f->label;
  }
}

static void render_basis(Pen *p, const Fact *root) {
  SolBuffer text = {0};
  for (int b = BASIS_EXACT; b <= BASIS_MEASURED; b++) {
    Labels labels = {.count = 0};
    collect_labels(root->first, (FactBasis)b, &labels);
    for (int i = 0; i < labels.count; i++) {
      if (i == 0) sol_buffer_format(&text, "%s%s: ", text.length ? "; " : "", fact_basis_name((FactBasis)b));
      sol_buffer_format(&text, "%s%s", i ? ", " : "", labels.label[i]);
    }
  }
  if (text.text) {
    sol_buffer_puts(p->out, "\n");
    if (p->colour) sol_buffer_puts(p->out, "\033[2m");
    wrap(p, text.text, 0, 0);
    if (p->colour) sol_buffer_puts(p->out, "\033[0m");
  }
  if (text.failed) p->out->failed = true;
  sol_buffer_free(&text);
}

bool facts_render_text(const Fact *root, bool colour, SolBuffer *out) {
  if (!root || root->arena->failed) return false;
  Pen pen = {out, colour};
  if (root->kind == FACT_LIST) {
    render_list(&pen, root);
  } else {
    render_object(&pen, root);
  }
  render_basis(&pen, root);
  return !out->failed;
}
