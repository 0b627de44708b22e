#include "driver/args.h"

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "emu/isa/num_half.h"

static const struct {
  const char *name;
  PtxType type;
} types[] = {{"f16", PTX_F16}, {"bf16", PTX_BF16}, {"f32", PTX_F32}, {"f64", PTX_F64},
             {"u8", PTX_U8},   {"u16", PTX_U16},   {"u32", PTX_U32}, {"u64", PTX_U64},
             {"s8", PTX_S8},   {"s16", PTX_S16},   {"s32", PTX_S32}, {"s64", PTX_S64}};

static uint64_t element_bytes(PtxType type) {
  return (uint64_t)sol_ptx_type_bits(type) / 8;
}

static PtxType find_type(const char *text, size_t length) {
  for (size_t i = 0; i < SOL_COUNT(types); i++)
    if (strlen(types[i].name) == length && memcmp(types[i].name, text, length) == 0) return types[i].type;
  return PTX_TYPE_NONE;
}

static size_t find(const char *text, size_t length, char c) {
  size_t i = 0;
  while (i < length && text[i] != c) i++;
  return i;
}

// A number with an optional sign; whole ones are kept exactly in 64 bits.
static SolStatus parse_value(const char *text, size_t length, size_t at, SolKernelArg *out, SolError *err) {
  bool minus = at < length && text[at] == '-';
  size_t from = at + minus;
  SolError inner = {0};
  double v = 0;
  if (sol_parse_number(text + from, length - from, &v, &inner))
    return sol_fail_at(err, SOL_ERR_SYNTAX, text, length,
                       from + (size_t)(inner.offset > 0 ? inner.offset : 0), "%s", inner.message);
  out->value = minus ? -v : v;
  out->is_whole = v == __builtin_floor(v) && v <= 18446744073709551615.0;
  uint64_t digits = 0;
  size_t i = from;
  for (; i < length && text[i] >= '0' && text[i] <= '9' && digits < UINT64_MAX / 10 - 1; i++)
    digits = digits * 10 + (uint64_t)(text[i] - '0');
  if (i < length) digits = v < 18446744073709549568.0 ? (uint64_t)v : UINT64_MAX; // 1e6, 64Ki
  out->whole = (int64_t)(minus ? 0 - digits : digits);
  return SOL_OK;
}

static SolStatus parse_init(const char *text, size_t length, size_t at, SolKernelArg *out, SolError *err) {
  size_t n = length - at;
  const char *word = text + at;
  if (n == 6 && memcmp(word, "random", 6) == 0) return out->init = SOL_INIT_RANDOM, SOL_OK;
  if (n == 4 && memcmp(word, "iota", 4) == 0) return out->init = SOL_INIT_IOTA, SOL_OK;
  if (n == 4 && memcmp(word, "zero", 4) == 0) return out->init = SOL_INIT_VALUE, out->is_whole = true, SOL_OK;
  if (n > 1 && word[0] == '@') {
    out->init = SOL_INIT_FILE;
    out->rest = word + 1;
    out->rest_length = n - 1;
    return SOL_OK;
  }
  if (n > 7 && memcmp(word, "random:", 7) == 0) {
    SolStatus status = parse_value(text, length, at + 7, out, err);
    if (!status && (out->value < 1 || out->value > SOL_EXACT))
      return sol_fail_at(err, SOL_ERR_RANGE, text, length, at + 7, "random: needs a bound from 1 to 2^53");
    return out->init = SOL_INIT_RANDOM, status;
  }
  out->init = SOL_INIT_VALUE;
  if (parse_value(text, length, at, out, err))
    return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, at,
                       "expected random, random:N, iota, zero, a number or @FILE after '='");
  return SOL_OK;
}

// "8192*1024" up to the closing bracket.
static SolStatus parse_count(const char *text, size_t length, size_t from, size_t to, uint64_t *out,
                             SolError *err) {
  double product = 1;
  for (size_t at = from;; at++) {
    size_t n = find(text + at, to - at, '*');
    int64_t factor = 0;
    SolError inner = {0};
    if (sol_parse_count(text + at, n, 1, &factor, &inner))
      return sol_fail_at(err, inner.status, text, length, at + (size_t)(inner.offset > 0 ? inner.offset : 0),
                         "%s", inner.message);
    product *= (double)factor;
    if (product > 1e12)
      return sol_fail_at(err, SOL_ERR_RANGE, text, length, from, "more than 10^12 elements");
    at += n;
    if (at >= to) break;
  }
  *out = (uint64_t)product;
  return SOL_OK;
}

static SolStatus parse_buffer(const char *text, size_t length, size_t name_end, size_t bracket,
                              SolKernelArg *out, SolError *err) {
  size_t type_at = name_end ? name_end + 1 : 0;
  if (name_end >= sizeof out->name)
    return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, 0, "name longer than 31 letters");
  memcpy(out->name, text, name_end);
  out->name[name_end] = 0;
  out->buffer = true;
  out->type = find_type(text + type_at, bracket - type_at);
  if (!out->type) {
    sol_fail_at(err, SOL_ERR_SYNTAX, text, length, type_at, "unknown element type");
    sol_hint(err, "f16 bf16 f32 f64 u8 u16 u32 u64 s8 s16 s32 s64");
    return SOL_ERR_SYNTAX;
  }
  size_t close = bracket + find(text + bracket, length - bracket, ']');
  if (close == length) return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, length, "expected ']'");
  SolStatus status = parse_count(text, length, bracket + 1, close, &out->count, err);
  if (status) return status;
  out->bytes = out->count * element_bytes(out->type);
  bool zero = memcmp(out->name, "out", 3) == 0;
  out->init = zero ? SOL_INIT_VALUE : SOL_INIT_RANDOM;
  out->is_whole = zero;
  if (close + 1 == length) return SOL_OK;
  if (text[close + 1] != '=')
    return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, close + 1, "expected '=' or the end");
  return parse_init(text, length, close + 2, out, err);
}

// "@NAME" or "@NAME+BYTES"
static SolStatus parse_pointer(const char *text, size_t length, SolKernelArg *out, SolError *err) {
  size_t plus = find(text, length, '+');
  out->pointer = true;
  out->rest = text + 1;
  out->rest_length = plus - 1;
  if (!out->rest_length)
    return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, 1, "expected a buffer's name after '@'");
  if (plus == length) return SOL_OK;
  SolStatus status = sol_parse_count(text + plus + 1, length - plus - 1, 0, &out->whole, NULL);
  if (!status) return SOL_OK;
  return sol_fail_at(err, status, text, length, plus + 1, "expected a number of bytes after '+'");
}

SolStatus sol_arg_parse(const char *text, size_t length, SolKernelArg *out, SolError *err) {
  *out = (SolKernelArg){.init = SOL_INIT_VALUE};
  if (length && text[0] == '@') return parse_pointer(text, length, out, err);
  size_t colon = find(text, length, ':'), bracket = find(text, length, '['), equals = find(text, length, '=');
  if (bracket < length && bracket < equals)
    return parse_buffer(text, length, colon < bracket ? colon : 0, bracket, out, err);
  if (colon == length) return parse_value(text, length, 0, out, err);
  if (colon == 3 && memcmp(text, "hex", 3) == 0) {
    out->rest = text + 4;
    out->rest_length = length - 4;
    for (size_t i = 4; i < length; i++) {
      char c = text[i];
      bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!hex) return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, i, "expected a hexadecimal digit");
    }
    if (out->rest_length % 2)
      return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, length, "half a byte is missing");
    return SOL_OK;
  }
  out->type = find_type(text, colon);
  if (!out->type)
    return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, 0,
                       "expected TYPE:VALUE, NAME:TYPE[COUNT] or hex:BYTES");
  return parse_value(text, length, colon + 1, out, err);
}

// ---- elements ----

// `value` for floats, `whole` for the others.
static void put_element(PtxType type, double value, int64_t whole, void *to) {
  switch (type) {
  case PTX_F16: {
    uint16_t h = num_cvt_f16_f64(value, NUM_RN);
    memcpy(to, &h, sizeof h);
    break;
  }
  case PTX_BF16: {
    uint16_t h = num_cvt_bf16_f64(value, NUM_RN);
    memcpy(to, &h, sizeof h);
    break;
  }
  case PTX_F32: {
    float f = (float)value;
    memcpy(to, &f, sizeof f);
    break;
  }
  case PTX_F64: memcpy(to, &value, sizeof value); break;
  default: memcpy(to, &whole, (size_t)element_bytes(type)); // little-endian: the low bytes
  }
}

static uint64_t next_random(uint64_t *state) { // splitmix64
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

void sol_arg_fill(const SolKernelArg *arg, uint64_t seed, void *to) {
  uint64_t width = element_bytes(arg->type), state = seed * UINT64_C(0xd1342543de82ef95) + 1;
  bool real = sol_ptx_type_class(arg->type) == PTX_CLASS_FLOAT;
  for (uint64_t i = 0; i < arg->count; i++) {
    uint8_t *at = (uint8_t *)to + i * width;
    if (arg->init == SOL_INIT_VALUE) {
      put_element(arg->type, arg->value, arg->whole, at);
    } else if (arg->init == SOL_INIT_IOTA) {
      put_element(arg->type, (double)i, (int64_t)i, at);
    } else {
      uint64_t r = next_random(&state);
      double unit = (double)(r >> 11) * 0x1p-53;
      int64_t whole = arg->value >= 1 ? (int64_t)(unit * arg->value) : (int64_t)(r >> 33);
      double value = real && arg->value < 1 ? 2 * unit - 1 : (double)whole;
      put_element(arg->type, value, whole, at);
    }
  }
}

size_t sol_arg_format(PtxType type, const void *element, char *out, size_t cap) {
  uint64_t bits = 0;
  memcpy(&bits, element, (size_t)element_bytes(type));
  int width = sol_ptx_type_bits(type);
  switch (sol_ptx_type_class(type)) {
  case PTX_CLASS_FLOAT: {
    double v;
    float f;
    uint32_t low = (uint32_t)bits;
    if (type == PTX_F64) {
      memcpy(&v, &bits, sizeof v);
      return sol_format(out, cap, "%.17g", v);
    }
    memcpy(&f, &low, sizeof f);
    v = type == PTX_F16    ? num_cvt_f64_f16((uint16_t)bits)
        : type == PTX_BF16 ? num_cvt_f64_bf16((uint16_t)bits)
                           : (double)f;
    return sol_format(out, cap, "%.9g", v);
  }
  case PTX_CLASS_SIGNED:
    return sol_format(out, cap, "%lld", (long long)((int64_t)(bits << (64 - width)) >> (64 - width)));
  default: return sol_format(out, cap, "%llu", (unsigned long long)bits);
  }
}

// ---- parameters ----

static uint8_t nibble(char c) {
  return (uint8_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

SolStatus sol_arg_pack(const PtxFunction *f, const SolPtxModule *ptx, int i, const SolKernelArg *arg,
                       void *params, SolError *err) {
  const PtxSymbol *p = &ptx->symbols[f->params[i]];
  uint8_t *at = (uint8_t *)params + (p->offset - f->param_offset);
  if (arg->rest && !arg->buffer && !arg->pointer) {
    if (arg->rest_length / 2 != p->size)
      return sol_fail(err, SOL_ERR_ARGUMENT, "argument %d is %llu bytes, %s has %llu", i + 1,
                      (unsigned long long)(arg->rest_length / 2), p->name, (unsigned long long)p->size);
    for (size_t k = 0; k < arg->rest_length; k += 2)
      at[k / 2] = (uint8_t)(nibble(arg->rest[k]) << 4 | nibble(arg->rest[k + 1]));
    return SOL_OK;
  }
  if (arg->buffer || arg->pointer) {
    if (p->size != 8)
      return sol_fail(err, SOL_ERR_ARGUMENT, "argument %d is a buffer, but %s takes %llu bytes, no pointer",
                      i + 1, p->name, (unsigned long long)p->size);
    memcpy(at, &arg->address, 8);
    return SOL_OK;
  }
  PtxType type = arg->type ? arg->type : (PtxType)p->type;
  PtxTypeClass class = sol_ptx_type_class(type);
  if (element_bytes(type) != p->size) {
    sol_fail(err, SOL_ERR_ARGUMENT, "argument %d is a number of %llu bytes, but %s takes %llu", i + 1,
             (unsigned long long)element_bytes(type), p->name, (unsigned long long)p->size);
    sol_hint(err, "a structure is given as hex:BYTES");
    return SOL_ERR_ARGUMENT;
  }
  // nvcc declares small integers and halves by their bits alone: a fraction then needs its type in words.
  if (class != PTX_CLASS_FLOAT && !arg->is_whole) {
    sol_fail(err, SOL_ERR_ARGUMENT, "argument %d is a fraction, but %s is .%s", i + 1, p->name,
             sol_ptx_type_name(type));
    sol_hint(err, "say its type: f32:%g", arg->value);
    return SOL_ERR_ARGUMENT;
  }
  put_element(type, arg->value, arg->whole, at);
  return SOL_OK;
}
