// Facts as JSON: every fact that has a key (or is in a list), values plain.
#include "base/format.h"
#include "base/json_write.h"
#include "report/facts.h"

// "basis": whether each number is exact, modelled, published or measured, by its path ("terms.memory_us", "kernels[].bytes");
// a list's first row does for all.
typedef struct Path {
  char text[160];
  size_t length;
} Path;

static void collect_basis(SolJsonWriter *w, const Fact *f, Path path, bool *any) {
  if (f->kind == FACT_NUMBER && f->basis) {
    if (!*any) sol_json_open(w, "basis", '{');
    *any = true;
    sol_json_put_text(w, path.text, fact_basis_name(f->basis));
  }
  for (const Fact *child = f->first; child; child = child->next) {
    if (f->kind == FACT_OBJECT && !child->key) continue;
    Path down = path;
    const char *dot = path.length ? "." : "";
    size_t room = sizeof down.text - path.length;
    size_t n = f->kind == FACT_LIST ? sol_format(down.text + path.length, room, "[]")
                                    : sol_format(down.text + path.length, room, "%s%s", dot, child->key);
    if (n >= room) continue;
    down.length += n;
    collect_basis(w, child, down, any);
    if (f->kind == FACT_LIST) break;
  }
}

static void render_basis(SolJsonWriter *w, const Fact *object) {
  bool any = false;
  collect_basis(w, object, (Path){0}, &any);
  if (any) sol_json_close(w, '}');
}

// An answer is the root object, or each element of a root list.
static void render(SolJsonWriter *w, const Fact *f, const char *name, bool answer) {
  switch (f->kind) {
  case FACT_OBJECT:
  case FACT_LIST: {
    bool object = f->kind == FACT_OBJECT;
    sol_json_open(w, name, object ? '{' : '[');
    for (const Fact *child = f->first; child; child = child->next) {
      if (child->kind >= FACT_TITLE || (object && !child->key)) continue;
      render(w, child, object ? child->key : 0, answer && !object);
    }
    if (object && answer) render_basis(w, f);
    sol_json_close(w, object ? '}' : ']');
    break;
  }
  case FACT_NUMBER: sol_json_put_number(w, name, f->number); break;
  case FACT_TEXT: sol_json_put_text(w, name, f->text); break;
  case FACT_BOOL: sol_json_put_bool(w, name, f->number != 0); break;
  case FACT_UNKNOWN: sol_json_put_text(w, name, 0); break;
  case FACT_TITLE:
  case FACT_NOTE:
  case FACT_LINE:
  case FACT_STRONG:
  case FACT_CODE:
  case FACT_BLOCK:
  case FACT_PICTURE: break; // text only
  }
}

bool facts_render_json(const Fact *root, SolBuffer *out) {
  if (!root || root->arena->failed) return false;
  SolJsonWriter w = {out, 0, false};
  render(&w, root, 0, true);
  return !out->failed;
}
