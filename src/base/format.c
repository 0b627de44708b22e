#include "base/format.h"

// A finite double has at most 309 digits before the point and 1074 after it; nine go into a limb.
enum { MAX_DIGITS = 309 + 1074 + 27, LIMB = 1000000000, MAX_LIMBS = 41 + (1074 + 8) / 9 };

typedef struct Decimal {
  char digit[MAX_DIGITS]; // '0'..'9', the first one not zero unless the value is
  int count;
  int point; // value = 0.d1d2d3... * 10^point
} Decimal;

// The exact decimal expansion of |v|: limbs of nine digits, the integer part growing down from the middle
// of the array, the fraction up from it.
static void expand(double v, Decimal *d) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  int exponent = (int)(bits >> 52 & 0x7ff);
  uint64_t mantissa = bits & ((1ull << 52) - 1);
  if (exponent)
    mantissa |= 1ull << 52;
  else
    exponent = 1;
  exponent -= 1075;

  uint32_t limb[MAX_LIMBS] = {0};
  int first = 38, last = 40; // limb[0..40] is the integer part
  limb[38] = (uint32_t)(mantissa / LIMB / LIMB);
  limb[39] = (uint32_t)(mantissa / LIMB % LIMB);
  limb[40] = (uint32_t)(mantissa % LIMB);
  for (int shift; exponent > 0; exponent -= shift) {
    shift = exponent < 29 ? exponent : 29;
    uint64_t carry = 0;
    for (int i = last; i >= first; i--) {
      carry += (uint64_t)limb[i] << shift;
      limb[i] = (uint32_t)(carry % LIMB);
      carry /= LIMB;
    }
    if (carry) limb[--first] = (uint32_t)carry;
  }
  for (int shift; exponent < 0; exponent += shift) {
    shift = exponent > -9 ? -exponent : 9;
    uint32_t carry = 0;
    for (int i = first; i <= last; i++) {
      uint32_t low = limb[i] & ((1u << shift) - 1);
      limb[i] = (limb[i] >> shift) + carry;
      carry = (uint32_t)LIMB / (1u << shift) * low;
    }
    if (carry) limb[++last] = carry;
  }
  while (first < last && !limb[first]) first++;

  d->count = 0;
  d->point = (40 - first + 1) * 9;
  for (int i = first; i <= last; i++)
    for (uint32_t unit = LIMB / 10; unit; unit /= 10) {
      char c = (char)('0' + limb[i] / unit % 10);
      if (!d->count && c == '0')
        d->point--;
      else if (d->count < MAX_DIGITS)
        d->digit[d->count++] = c;
    }
  if (!d->count) d->point = 1, d->digit[d->count++] = '0';
}

// Keeps `keep` digits (which may be none or fewer), rounding half to even on the exact value.
static void round_to(Decimal *d, int keep) {
  if (keep >= d->count) return;
  bool up = false;
  if (keep >= 0) {
    int next = d->digit[keep];
    bool more = false;
    for (int i = keep + 1; i < d->count; i++) more |= d->digit[i] != '0';
    up = next > '5' || (next == '5' && (more || (keep > 0 && (d->digit[keep - 1] & 1))));
  }
  d->count = keep > 0 ? keep : 0;
  if (!up) return;
  int i = d->count;
  while (i > 0 && d->digit[i - 1] == '9') d->digit[--i] = '0';
  if (i > 0) {
    d->digit[i - 1]++;
  } else { // 999 became 1000
    d->digit[0] = '1';
    for (int k = 1; k < d->count; k++) d->digit[k] = '0';
    if (!d->count) d->count = 1;
    d->point++;
  }
}

static char digit_at(const Decimal *d, int i) {
  return i >= 0 && i < d->count ? d->digit[i] : '0';
}

// Writes |v| as f, e or g into text, which has room for any double at the precisions allowed (0 to 40).
static size_t format_double(char *text, double v, char kind, int precision) {
  Decimal d;
  expand(v, &d);
  bool zero = v == 0;
  bool strip = false;
  if (kind == 'g') {
    if (precision == 0) precision = 1;
    Decimal rounded = d;
    round_to(&rounded, precision);
    int exponent = zero ? 0 : rounded.point - 1;
    strip = true;
    if (exponent < -4 || exponent >= precision)
      kind = 'e', precision -= 1;
    else
      kind = 'f', precision -= 1 + exponent;
  }
  char *p = text;
  if (kind == 'f') {
    round_to(&d, d.point + precision);
    if (d.point <= 0) *p++ = '0';
    for (int i = 0; i < d.point; i++) *p++ = digit_at(&d, i);
  } else {
    round_to(&d, precision + 1);
    *p++ = digit_at(&d, 0);
  }
  char *dot = p;
  if (precision > 0) {
    *p++ = '.';
    int from = kind == 'f' ? d.point : 1;
    for (int i = 0; i < precision; i++) *p++ = digit_at(&d, from + i);
    if (strip) {
      while (p > dot + 1 && p[-1] == '0') p--;
      if (p == dot + 1) p--;
    }
  }
  if (kind == 'e') {
    int exponent = zero ? 0 : d.point - 1;
    *p++ = 'e';
    *p++ = exponent < 0 ? '-' : '+';
    if (exponent < 0) exponent = -exponent;
    if (exponent >= 100) *p++ = (char)('0' + exponent / 100);
    *p++ = (char)('0' + exponent / 10 % 10);
    *p++ = (char)('0' + exponent % 10);
  }
  return (size_t)(p - text);
}

typedef struct Out {
  char *to;
  size_t cap, length;
} Out;

static void put(Out *o, char c) {
  if (o->length + 1 < o->cap) o->to[o->length] = c;
  o->length++;
}

typedef struct Spec {
  bool left, zero;
  int width, precision; // precision -1: not given
} Spec;

static void put_field(Out *o, const Spec *spec, const char *sign, const char *body, size_t n) {
  size_t length = strlen(sign) + n;
  size_t fill = spec->width > 0 && (size_t)spec->width > length ? (size_t)spec->width - length : 0;
  if (!spec->left && !spec->zero)
    for (; fill; fill--) put(o, ' ');
  for (; *sign; sign++) put(o, *sign);
  if (!spec->left)
    for (; fill; fill--) put(o, '0');
  for (size_t i = 0; i < n; i++) put(o, body[i]);
  for (; fill; fill--) put(o, ' ');
}

static void put_unsigned(Out *o, Spec *spec, const char *sign, uint64_t v, unsigned base) {
  char text[64];
  char *p = text + sizeof text;
  int least = spec->precision < 0 ? 1 : spec->precision > 40 ? 40 : spec->precision;
  if (spec->precision >= 0) spec->zero = false; // the precision says how many zeros
  for (; v || least > 0; least--) *--p = "0123456789abcdef"[v % base], v /= base;
  put_field(o, spec, sign, p, (size_t)(text + sizeof text - p));
}

static void put_double(Out *o, Spec *spec, double v, char kind) {
  char text[MAX_DIGITS + 64];
  const char *sign = __builtin_signbit(v) ? "-" : "";
  if (!__builtin_isfinite(v)) {
    spec->zero = false;
    bool nan = v != v;
    put_field(o, spec, nan ? "" : sign, nan ? "nan" : "inf", 3);
    return;
  }
  int precision = spec->precision < 0 ? 6 : spec->precision > 40 ? 40 : spec->precision;
  put_field(o, spec, sign, text, format_double(text, v, kind, precision));
}

static int read_int(const char **p) {
  int v = 0;
  for (; **p >= '0' && **p <= '9'; (*p)++)
    if (v < 100000) v = v * 10 + (**p - '0');
  return v;
}

size_t sol_vformat(char *out, size_t cap, const char *format, va_list args) {
  Out o = {out, cap, 0};
  for (const char *p = format; *p; p++) {
    if (*p != '%') {
      put(&o, *p);
      continue;
    }
    p++;
    Spec spec = {false, false, 0, -1};
    for (; *p == '-' || *p == '0'; p++) {
      if (*p == '-')
        spec.left = true;
      else
        spec.zero = true;
    }
    if (*p == '*')
      spec.width = va_arg(args, int), p++;
    else
      spec.width = read_int(&p);
    if (spec.width < 0) spec.left = true, spec.width = spec.width < -100000 ? 100000 : -spec.width;
    if (*p == '.') {
      p++;
      if (*p == '*')
        spec.precision = va_arg(args, int), p++;
      else
        spec.precision = read_int(&p);
    }
    int longs = 0;
    for (; *p == 'l'; p++) longs++;
    if (*p == 'z') longs = sizeof(size_t) > sizeof(long) ? 2 : sizeof(size_t) > sizeof(int), p++;
    switch (*p) {
    case 's': {
      spec.zero = false;
      const char *s = va_arg(args, const char *);
      size_t n = 0;
      while ((spec.precision < 0 || n < (size_t)spec.precision) && s[n]) n++;
      put_field(&o, &spec, "", s, n);
      break;
    }
    case 'c': {
      char c = (char)va_arg(args, int);
      put_field(&o, &spec, "", &c, 1);
      break;
    }
    case 'd':
    case 'i': {
      int64_t v = longs >= 2 ? va_arg(args, long long) : longs ? va_arg(args, long) : va_arg(args, int);
      put_unsigned(&o, &spec, v < 0 ? "-" : "", v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 10);
      break;
    }
    case 'u':
    case 'x': {
      uint64_t v = longs >= 2 ? va_arg(args, unsigned long long)
                   : longs    ? va_arg(args, unsigned long)
                              : va_arg(args, unsigned);
      put_unsigned(&o, &spec, "", v, *p == 'x' ? 16 : 10);
      break;
    }
    case 'f':
    case 'e':
    case 'g': put_double(&o, &spec, va_arg(args, double), *p); break;
    default:
      put(&o, '%'); // "%%", and anything this subset lacks, printed as it is
      if (*p && *p != '%') put(&o, *p);
      if (!*p) p--;
    }
  }
  if (cap) out[o.length < cap ? o.length : cap - 1] = 0;
  return o.length;
}

size_t sol_format(char *out, size_t cap, const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t n = sol_vformat(out, cap, format, args);
  va_end(args);
  return n;
}
