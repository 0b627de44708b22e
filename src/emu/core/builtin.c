// Functions of CUDA's device runtime: vprintf, malloc, free, __assertfail.
#include "base/buffer.h"
#include "base/format.h"
#include "emu/core/state.h"

// ---- arguments ----

void emu_builtin_argument(const EmuCtx *x, const EmuInst *i, uint32_t k, int lane, void *to, uint32_t bytes) {
  const EmuCall *call = i->more;
  memset(to, 0, bytes);
  if (k >= call->arg_count) return;
  const EmuMove *m = &call->args[k];
  if (m->bytes < bytes) bytes = m->bytes;
  if (m->in_frame)
    memcpy(to, x->frame->params + (size_t)lane * x->frame->param_stride + m->offset, bytes);
  else
    memcpy(to, (const uint8_t *)emu_at(x, m->loc) + (size_t)lane * m->bytes, bytes);
}

uint64_t emu_builtin_word(const EmuCtx *x, const EmuInst *i, uint32_t k, int lane) {
  uint64_t v;
  emu_builtin_argument(x, i, k, lane, &v, sizeof v);
  return v;
}

void emu_builtin_return(EmuCtx *x, const EmuInst *i, int lane, uint64_t value) {
  const EmuCall *call = i->more;
  if (!call->result_count) return;
  const EmuMove *m = &call->results[0];
  uint32_t bytes = m->bytes < 8 ? m->bytes : 8;
  if (m->in_frame)
    memcpy(x->frame->params + (size_t)lane * x->frame->param_stride + m->offset, &value, bytes);
  else
    memcpy((uint8_t *)emu_at(x, m->loc) + (size_t)lane * m->bytes, &value, bytes);
}

// One byte at a generic address; findings where there is none.
static bool read_bytes(EmuCtx *x, const EmuInst *i, int lane, uint64_t address, void *to, uint32_t bytes) {
  uint64_t addr[EMU_LANES];
  EmuAccess acc;
  for (uint32_t k = 0; k < bytes; k++) {
    addr[lane] = address + k;
    if (!emu_resolve_at(x, i, 1u << lane, addr, PTX_SPACE_GENERIC, 1, false, &acc)) return false;
    ((uint8_t *)to)[k] = *acc.host[lane];
  }
  return true;
}

// False: the string goes on after `most` bytes.
static bool put_string(EmuCtx *x, const EmuInst *i, int lane, uint64_t address, size_t most, SolBuffer *out) {
  for (size_t n = 0; n < most; n++) {
    char c;
    if (!read_bytes(x, i, lane, address + n, &c, 1) || !c) return true;
    sol_buffer_put(out, &c, 1);
  }
  return false;
}

// ---- printf ----

// What one call may write, or ask for as a width or precision; more is left out, and that is said. The
// device's own buffer has 1 MiB for all threads.
enum { MOST_TEXT = 1 << 16, MOST_WIDTH = 4096, LONG_TEXT = 4096 };

typedef struct Spec {
  bool left, zero, plus, space, alt;
  int width, precision; // precision -1: none
  int size;             // bytes of an integer
  char kind;
} Spec;

typedef struct Args {
  EmuCtx *x;
  const EmuInst *i;
  int lane;
  uint64_t at; // generic address of the next one
  bool cut;    // something was left out
} Args;

static uint64_t next_arg(Args *a, uint32_t bytes) {
  uint64_t v = 0;
  a->at = (a->at + bytes - 1) / bytes * bytes;
  read_bytes(a->x, a->i, a->lane, a->at, &v, bytes);
  a->at += bytes;
  return v;
}

static void pad(SolBuffer *out, const Spec *s, const char *sign, const char *digits, size_t length,
                bool zeros) {
  size_t all = strlen(sign) + length, width = s->width > 0 ? (size_t)s->width : 0;
  size_t fill = width > all ? width - all : 0;
  if (!s->left && !zeros) sol_buffer_fill(out, ' ', fill);
  sol_buffer_puts(out, sign);
  if (!s->left && zeros) sol_buffer_fill(out, '0', fill);
  sol_buffer_put(out, digits, length);
  if (s->left) sol_buffer_fill(out, ' ', fill);
}

static void put_integer(SolBuffer *out, const Spec *s, uint64_t v) {
  char digits[96];
  size_t n = sizeof digits;
  bool is_signed = s->kind == 'd' || s->kind == 'i';
  if (s->size < 8) {
    int shift = 64 - s->size * 8;
    v = is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
  }
  bool negative = is_signed && (int64_t)v < 0;
  uint64_t rest = negative ? 0 - v : v, base = s->kind == 'x' || s->kind == 'X' || s->kind == 'p' ? 16
                                               : s->kind == 'o'                                   ? 8
                                                                                                  : 10;
  const char *set = s->kind == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  for (; rest; rest /= base) digits[--n] = set[rest % base];
  size_t want = s->precision < 0 ? 1 : s->precision > 64 ? 64 : (size_t)s->precision;
  while (sizeof digits - n < want) digits[--n] = '0';
  const char *sign = negative ? "-" : is_signed && s->plus ? "+" : is_signed && s->space ? " " : "";
  if ((s->alt && v && base == 16) || s->kind == 'p') sign = s->kind == 'X' ? "0X" : "0x";
  if (s->alt && base == 8 && digits[n] != '0') digits[--n] = '0';
  pad(out, s, sign, digits + n, sizeof digits - n, s->zero && s->precision < 0);
}

static void put_float(SolBuffer *out, const Spec *s, uint64_t bits) {
  double v;
  memcpy(&v, &bits, 8);
  char text[704]; // 309 digits, a point, 300 more
  bool negative = bits >> 63 != 0, finite = __builtin_isfinite(v);
  if (negative) v = -v;
  int precision = s->precision < 0 ? 6 : s->precision > 300 ? 300 : s->precision;
  size_t n = 0;
  if (!finite)
    n = sol_format(text, sizeof text, "%s", v != v ? "nan" : "inf");
  else if (s->kind == 'f' || s->kind == 'F')
    n = sol_format(text, sizeof text, "%.*f", precision, v);
  else if (s->kind == 'e' || s->kind == 'E')
    n = sol_format(text, sizeof text, "%.*e", precision, v);
  else
    n = sol_format(text, sizeof text, "%.*g", precision, v);
  if (n >= sizeof text) n = sizeof text - 1;
  for (size_t k = 0; k < n && s->kind < 'a'; k++)
    if (text[k] >= 'a' && text[k] <= 'z') text[k] = (char)(text[k] - 'a' + 'A');
  pad(out, s, negative ? "-" : s->plus ? "+" : s->space ? " " : "", text, n, s->zero && finite);
}

static const char *number(const char *at, Args *args, int *out) {
  int64_t n = 0;
  if (*at == '*') {
    n = (int32_t)next_arg(args, 4);
    at++;
  } else {
    for (; *at >= '0' && *at <= '9'; at++) n = n < 100000 ? n * 10 + (*at - '0') : n;
  }
  if (n > MOST_WIDTH || n < -MOST_WIDTH) args->cut = true, n = n < 0 ? -MOST_WIDTH : MOST_WIDTH;
  *out = (int)n;
  return at;
}

static const char *read_spec(const char *at, Args *args, Spec *s) {
  *s = (Spec){.precision = -1, .size = 4};
  for (;; at++) {
    if (*at == '-')
      s->left = true;
    else if (*at == '0')
      s->zero = true;
    else if (*at == '+')
      s->plus = true;
    else if (*at == ' ')
      s->space = true;
    else if (*at == '#')
      s->alt = true;
    else
      break;
  }
  at = number(at, args, &s->width);
  if (s->width < 0) s->left = true, s->width = -s->width;
  if (*at == '.') at = number(at + 1, args, &s->precision);
  for (;; at++) {
    if (*at == 'l' || *at == 'z' || *at == 'j' || *at == 't')
      s->size = 8;
    else if (*at == 'h')
      s->size = s->size == 2 ? 1 : 2;
    else
      break;
  }
  s->kind = *at;
  return *at ? at + 1 : at;
}

static int put_formatted(Args *args, const char *format, SolBuffer *out) {
  int count = 0;
  while (*format && out->length <= MOST_TEXT) {
    if (*format != '%') {
      const char *end = format;
      while (*end && *end != '%') end++;
      sol_buffer_put(out, format, (size_t)(end - format));
      format = end;
      continue;
    }
    Spec s;
    const char *start = format;
    format = read_spec(format + 1, args, &s);
    SolBuffer text = {0};
    char c;
    switch (s.kind) {
    case '%': sol_buffer_puts(out, "%"); continue;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o': put_integer(out, &s, next_arg(args, s.size == 8 ? 8 : 4)); break;
    case 'p':
      s.size = 8;
      put_integer(out, &s, next_arg(args, 8));
      break;
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G': put_float(out, &s, next_arg(args, 8)); break;
    case 'c':
      c = (char)next_arg(args, 4);
      pad(out, &s, "", &c, 1, false);
      break;
    case 's':
      if (!put_string(args->x, args->i, args->lane, next_arg(args, 8),
                      s.precision < 0 ? MOST_WIDTH : (size_t)s.precision, &text))
        args->cut = args->cut || s.precision < 0;
      pad(out, &s, "", text.text ? text.text : "", text.length, false);
      sol_buffer_free(&text);
      break;
    default: sol_buffer_put(out, start, (size_t)(format - start)); continue;
    }
    count++;
  }
  return count;
}

static void cut_text(SolBuffer *out) {
  size_t keep = out->length < MOST_TEXT ? out->length : MOST_TEXT;
  if (out->text) out->text[out->length = keep] = 0;
  sol_buffer_puts(out, "... (truncated)\n");
}

static void do_vprintf(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuRun *run = x->launch;
  for (; mask && !emu_stopping(run); mask &= mask - 1) {
    int l = emu_first(mask);
    SolBuffer format = {0}, out = {0};
    Args args = {.x = x, .i = i, .lane = l, .at = emu_builtin_word(x, i, 1, l)};
    args.cut = !put_string(x, i, l, emu_builtin_word(x, i, 0, l), MOST_TEXT, &format);
    int count = put_formatted(&args, format.text ? format.text : "", &out);
    if (args.cut || out.length > MOST_TEXT) cut_text(&out);
    if (format.length + out.length >= LONG_TEXT) { // so that limits are looked at in time
      x->budget = 0;
      emu_worker(x)->turns += 4;
    }
    sol_spin_lock(&run->print_lock);
    if (run->launch->print && out.length) run->launch->print(run->launch->print_ctx, out.text, out.length);
    sol_spin_unlock(&run->print_lock);
    emu_builtin_return(x, i, l, (uint64_t)count);
    sol_buffer_free(&format);
    sol_buffer_free(&out);
  }
}

// The kernel chose these bytes; they end up in a message of one line.
static const char *plain(SolBuffer *b) {
  for (size_t k = 0; k < b->length; k++)
    if ((unsigned char)b->text[k] < ' ' || b->text[k] == 0x7f) b->text[k] = '?';
  return b->text ? b->text : "";
}

static void assert_fail(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  int l = emu_first(mask);
  SolBuffer what = {0}, file = {0}, where = {0};
  put_string(x, i, l, emu_builtin_word(x, i, 0, l), 100, &what);
  put_string(x, i, l, emu_builtin_word(x, i, 1, l), 100, &file);
  put_string(x, i, l, emu_builtin_word(x, i, 3, l), 60, &where);
  emu_find(x, i, mask, SOL_EMU_ASSERTION, 0, 0, "%s:%u: %s: '%s' failed", plain(&file),
           (unsigned)emu_builtin_word(x, i, 2, l), plain(&where), plain(&what));
  sol_buffer_free(&what);
  sol_buffer_free(&file);
  sol_buffer_free(&where);
  emu_stop(x->launch, SOL_EMU_FAULT);
  x->budget = 0;
}

// ---- device heap ----

static void do_malloc(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    emu_builtin_return(x, i, l, emu_heap_malloc(x, emu_builtin_word(x, i, 0, l)));
  }
}

static void do_free(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  for (; mask; mask &= mask - 1)
    emu_heap_free(x, i, emu_first(mask), emu_builtin_word(x, i, 0, emu_first(mask)));
}

EmuHandler *emu_builtin(const char *name) {
  static const struct {
    const char *name;
    EmuHandler *run;
  } all[] = {
      {"vprintf", do_vprintf}, {"malloc", do_malloc}, {"free", do_free}, {"__assertfail", assert_fail}};
  for (size_t k = 0; k < SOL_COUNT(all); k++)
    if (strcmp(all[k].name, name) == 0) return all[k].run;
  return emu_child_builtin(name);
}
