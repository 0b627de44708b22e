#include "base/json_write.h"

#include "base/plain.h"
#include "base/text.h"

// RFC 8259; in addition, control characters of terminals and characters that hide text are escaped, and
// bytes that are no UTF-8 become U+FFFD.
static void put_code(SolBuffer *out, uint32_t code) {
  if (code == '"' || code == '\\')
    sol_buffer_format(out, "\\%c", (int)code);
  else if (code == '\n')
    sol_buffer_puts(out, "\\n");
  else if (code == '\t')
    sol_buffer_puts(out, "\\t");
  else if (code < 0x10000)
    sol_buffer_format(out, "\\u%04x", code);
  else
    sol_buffer_format(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + (code & 0x3ff));
}

static void put_string(SolBuffer *out, const char *s) {
  sol_buffer_put(out, "\"", 1);
  for (size_t left = strlen(s), n; left; s += n, left -= n) {
    uint32_t code;
    n = sol_utf8_next(s, left, &code);
    if (!n)
      put_code(out, 0xfffd), n = 1;
    else if (code == '"' || code == '\\' || sol_code_is_hidden(code))
      put_code(out, code);
    else
      sol_buffer_put(out, s, n);
  }
  sol_buffer_put(out, "\"", 1);
}

static void begin(SolJsonWriter *w, const char *name) {
  if (w->some) sol_buffer_put(w->out, ",", 1);
  if (w->depth) {
    sol_buffer_put(w->out, "\n", 1);
    sol_buffer_fill(w->out, ' ', (size_t)w->depth * 2);
  }
  w->some = true;
  if (!name) return;
  put_string(w->out, name);
  sol_buffer_puts(w->out, ": ");
}

void sol_json_open(SolJsonWriter *w, const char *name, char bracket) {
  begin(w, name);
  sol_buffer_put(w->out, &bracket, 1);
  w->depth++;
  w->some = false;
}

void sol_json_close(SolJsonWriter *w, char bracket) {
  w->depth--;
  if (w->some) {
    sol_buffer_put(w->out, "\n", 1);
    sol_buffer_fill(w->out, ' ', (size_t)w->depth * 2);
  }
  sol_buffer_put(w->out, &bracket, 1);
  w->some = true;
  if (!w->depth) sol_buffer_put(w->out, "\n", 1);
}

void sol_json_put_text(SolJsonWriter *w, const char *name, const char *text) {
  begin(w, name);
  if (text)
    put_string(w->out, text);
  else
    sol_buffer_puts(w->out, "null");
}

void sol_json_put_number(SolJsonWriter *w, const char *name, double value) {
  begin(w, name);
  bool whole = value == __builtin_floor(value) && value <= SOL_EXACT && value >= -SOL_EXACT;
  if (!__builtin_isfinite(value))
    sol_buffer_puts(w->out, "null");
  else if (whole)
    sol_buffer_format(w->out, "%lld", (long long)value);
  else
    sol_buffer_format(w->out, "%.15g", value);
}

void sol_json_put_bool(SolJsonWriter *w, const char *name, bool value) {
  begin(w, name);
  sol_buffer_puts(w->out, value ? "true" : "false");
}

void sol_json_add_text(SolBuffer *out, const char *text) {
  SolJsonWriter w = {.out = out};
  sol_json_put_text(&w, NULL, text ? text : "");
}

void sol_json_add_number(SolBuffer *out, double value) {
  SolJsonWriter w = {.out = out};
  sol_json_put_number(&w, NULL, value);
}
