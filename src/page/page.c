#include "page/page.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/json_write.h"
#include "base/text.h"
#include "sol/model.h"

char *page_room(size_t size) {
  return sol_heap_alloc(size + 1);
}

const char *page_text(const PageAsk *ask, const char *key) {
  SolJson value;
  if (!sol_json_get(ask->question, key, &value) || sol_json_kind(value) != SOL_JSON_STRING) return "";
  size_t cap = value.length - value.at + 1;
  char *text = sol_arena_alloc(ask->root->arena, cap);
  return text && sol_json_string(value, text, cap) ? text : "";
}

void page_schema(PageAsk *ask) {
  fact_number(ask->root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
}

bool page_device(PageAsk *ask, const SolDevice **out) {
  const char *name = page_text(ask, "device");
  return !sol_device_find(*name ? name : "h100-sxm", out, &ask->err);
}

bool page_accelerator(PageAsk *ask, const SolDevice **out) {
  const char *name = page_text(ask, "device");
  return !sol_accelerator_find(*name ? name : "h100-sxm", out, &ask->err);
}

bool page_number(PageAsk *ask, const char *key, double *out) {
  const char *text = page_text(ask, key);
  if (!*text) return true;
  SolError err = {0};
  if (!sol_parse_number(text, strlen(text), out, &err)) return true;
  sol_fail(&ask->err, err.status, "%s: %s", key, err.message);
  return false;
}

bool page_count(PageAsk *ask, const char *key, int64_t least, int64_t *out) {
  const char *text = page_text(ask, key);
  if (!*text) return true;
  SolError err = {0};
  if (!sol_parse_count(text, strlen(text), least, out, &err)) return true;
  sol_fail(&ask->err, err.status, "%s: %s", key, err.message);
  return false;
}

bool page_dtype(PageAsk *ask, const char *key, SolDtype *out) {
  const char *text = page_text(ask, key);
  return !*text || !sol_dtype_find(text, out, &ask->err);
}

static void list_models(PageAsk *ask) {
  Fact *list = fact_list(ask->root, "models", 0);
  for (int i = 0; i < sol_model_preset_count(); i++)
    fact_text(fact_object(list, 0, 0), "name", 0, sol_model_preset(i)->name);
}

bool page_devices(PageAsk *ask) {
  page_schema(ask);
  Fact *list = fact_list(ask->root, "devices", 0);
  for (int i = 0; i < sol_accelerator_count(); i++) {
    const SolDevice *d = sol_accelerator_at(i);
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "id", 0, d->id);
    fact_text(row, "name", 0, d->name);
    fact_bool(row, "cuda", 0, d->cc_major > 0);
  }
  list_models(ask);
  list = fact_list(ask->root, "ops", 0);
  for (int i = 0; i < sol_op_count(); i++) {
    const SolOpInfo *op = sol_op_info(i);
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "name", 0, op->name);
    fact_text(row, "shape", 0, op->shape);
    fact_text(row, "summary", 0, op->summary);
  }
  list = fact_list(ask->root, "dtypes", 0);
  for (int d = 1; d < SOL_DTYPE_COUNT; d++) fact_text(list, 0, 0, sol_dtype_name((SolDtype)d));
  return true;
}

static const struct {
  const char *name;
  bool (*answer)(PageAsk *ask);
} asks[] = {{"devices", page_devices}, {"roofline", page_roofline},   {"memory", page_memory},
            {"audit", page_audit},     {"occupancy", page_occupancy}, {"model", page_model}};

static bool answer(PageAsk *ask, const char *question, size_t length) {
  if (sol_json_check(question, length, &ask->question, &ask->err)) return false;
  for (size_t i = 0; i < SOL_COUNT(asks); i++)
    if (sol_json_text_is(ask->question, "ask", asks[i].name)) return asks[i].answer(ask);
  sol_fail(&ask->err, SOL_ERR_ARGUMENT, "there is no such question");
  return false;
}

static void put_error(SolBuffer *out, const SolError *err) {
  SolJsonWriter w = {out, 0, false};
  sol_json_open(&w, 0, '{');
  sol_json_put_text(&w, "error", err->message);
  sol_json_put_text(&w, "hint", err->hint[0] ? err->hint : 0);
  if (err->line > 0) sol_json_put_number(&w, "line", err->line);
  if (err->line > 0) sol_json_put_number(&w, "column", err->column);
  sol_json_close(&w, '}');
}

const char *page_ask(const char *question, size_t length) {
  SolArena arena = {0};
  SolBuffer out = {0};
  PageAsk ask = {.root = facts_root(&arena, FACT_OBJECT)};
  if (!ask.root || !answer(&ask, question, length) || !facts_render_json(ask.root, &out)) {
    if (!ask.err.status) sol_fail(&ask.err, SOL_ERR_NO_SPACE, "out of memory");
    out.length = 0;
    put_error(&out, &ask.err);
  }
  sol_arena_free(&arena);
  return out.failed || !out.text ? "{\"error\":\"out of memory\"}" : out.text;
}
