// Formatting without a C library (src/base/format.c), held against the C library's.
#include "base/format.h"

#include <limits.h>

#include "check.h"

static uint64_t state = 88172645463325252u;

static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static double of_bits(uint64_t bits) {
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

// Any bit pattern; then what people print: few digits, ties, powers of ten and two and their neighbours.
static double draw_double(void) {
  switch (draw() % 6) {
  case 0: return of_bits(draw());
  case 1: return (double)(int64_t)(draw() % 2000001 - 1000000) / 1000;
  case 2: return (double)(draw() % 100000) + 0.5;
  case 3: return (double)(draw() % 4096) / 64;
  case 4: return of_bits(((draw() % 2046 + 1) << 52) + draw() % 3 - 1); // a power of two and its neighbours
  default: {
    char text[16];
    snprintf(text, sizeof text, "1e%d", (int)(draw() % 632) - 324);
    double v = strtod(text, NULL);
    return nextafter(v, draw() % 2 ? 1e308 : 0);
  }
  }
}

static void same(const char *format, const char *got, size_t length, const char *want, int want_length) {
  CHECK_MSG(strcmp(got, want) == 0 && length == (size_t)want_length, "%s: got '%s' (%zu), expected '%s' (%d)",
            format, got, length, want, want_length);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat"
#define SAME(format, ...)                                                                                    \
  do {                                                                                                       \
    char got_[2048], want_[2048];                                                                            \
    size_t length_ = sol_format(got_, sizeof got_, format, __VA_ARGS__);                                     \
    same(format, got_, length_, want_, snprintf(want_, sizeof want_, format, __VA_ARGS__));                  \
  } while (0)

TEST(doubles_as_the_c_library_prints_them) {
  static const char kinds[] = "feg";
  static const char *flags[] = {"", "-", "0", "-0"};
  for (int i = 0; i < 200000 && check_failures < 10; i++) {
    double v = draw_double();
    char format[32];
    const char *flag = flags[draw() % 4];
    char kind = kinds[draw() % 3];
    switch (draw() % 4) {
    case 0: snprintf(format, sizeof format, "%%%c", kind); break;
    case 1: snprintf(format, sizeof format, "%%.%d%c", (int)(draw() % 41), kind); break;
    case 2: snprintf(format, sizeof format, "%%%s%d%c", flag, (int)(draw() % 40) + 1, kind); break;
    default:
      snprintf(format, sizeof format, "%%%s%d.%d%c", flag, (int)(draw() % 60) + 1, (int)(draw() % 41), kind);
    }
    if (v == v) SAME(format, v); // the C library may print a sign before nan
  }
}

// Every exponent, smallest and largest mantissa: the longest expansions there are.
TEST(every_exponent) {
  for (uint64_t exponent = 0; exponent < 2047 && check_failures < 10; exponent++)
    for (uint64_t mantissa = 0; mantissa < 3; mantissa++) {
      double v = of_bits(exponent << 52 | (mantissa == 2 ? (1ull << 52) - 1 : mantissa));
      SAME("%.17g", v);
      SAME("%.40e", v);
      SAME("%f", v);
      SAME("%.40f", v);
    }
}

TEST(rounding) {
  SAME("%.0f %.0f %.0f %.0f %.0f", 0.5, 1.5, 2.5, 0.49999999999999994, 0.50000000000000011);
  SAME("%.1f %.1f %.1f %.2f", 0.25, 0.35, 0.05, 1.005);
  SAME("%.0e %.0e %g %g %g", 9.5, 8.5, 999999.5, 9999995.0, 0.00009999995);
  SAME("%.3g %.3g %.3g %.0g", 999.5, 0.0009995, 99.95, 0.0);
  SAME("%f %e %g %f", 0.0, 0.0, -0.0, -0.0);
}

TEST(not_numbers) {
  SAME("%f|%8g|%-8e|%08f|%8.2f", (double)INFINITY, -(double)INFINITY, (double)INFINITY, (double)INFINITY,
       (double)INFINITY);
  char text[32];
  sol_format(text, sizeof text, "%f|%6g|%.1f", (double)NAN, (double)NAN, -(double)NAN);
  CHECK_STR(text, "nan|   nan|nan"); // never a sign, wherever it comes from
}

TEST(integers) {
  static const char *flags[] = {"", "-", "0", "-0"};
  for (int i = 0; i < 100000 && check_failures < 10; i++) {
    uint64_t v = draw() >> draw() % 64;
    char format[32];
    const char *flag = flags[draw() % 4];
    int width = (int)(draw() % 30) + 1;
#define ONE(kind, type)                                                                                      \
  snprintf(format, sizeof format, "%%%s%d" kind, flag, width);                                               \
  SAME(format, (type)v);
    ONE("d", int)
    ONE("i", int)
    ONE("u", unsigned)
    ONE("x", unsigned)
    ONE("ld", long)
    ONE("lu", unsigned long)
    ONE("lld", long long)
    ONE("llu", unsigned long long)
    ONE("llx", unsigned long long)
    ONE("zu", size_t)
    ONE("zd", ptrdiff_t)
#undef ONE
  }
  SAME("%d %d %lld %lld %llu", INT_MIN, INT_MAX, LLONG_MIN, LLONG_MAX, ULLONG_MAX);
  SAME("%d%u%x", 0, 0u, 0u);
}

TEST(strings_and_stars) {
  SAME("[%s] [%8s] [%-8s] [%.2s] [%8.2s] [%.0s]", "abc", "abc", "abc", "abc", "abc", "abc");
  SAME("[%c] [%3c] [%-3c] 100%%", 'x', 'y', 'z');
  SAME("[%*d] [%-*d] [%*.*f] [%.*s] [%.*f]", 6, 42, 6, 42, 9, 3, 3.14159, 2, "abc", 0, 2.5);
  SAME("[%*d] [%.*f] [%.*s]", -6, 42, -1, 2.5, -1, "abc"); // negative: to the left; as if not given
  const char open[3] = {'a', 'b', 'c'};                    // no NUL: the precision bounds what is read
  SAME("[%.3s]", open);
}

TEST(precision_of_integers_is_least_digits) {
  SAME("[%.3d] [%.3d] [%8.3d] [%-8.3d] [%08.3d] [%.0d] [%.5x]", 7, -7, 7, 7, 7, 0, 0xabu);
}
#pragma GCC diagnostic pop

TEST(small_buffers) {
  char text[8];
  memset(text, '#', sizeof text);
  CHECK_INT(sol_format(text, 4, "%s", "abcdef"), 6);
  CHECK_STR(text, "abc");
  CHECK_INT(text[4], '#');
  CHECK_INT(sol_format(text, 1, "%d", 12345), 5);
  CHECK_STR(text, "");
  memset(text, '#', sizeof text);
  CHECK_INT(sol_format(text, 0, "%d", 12345), 5);
  CHECK_INT(text[0], '#');
  CHECK_INT(sol_format(NULL, 0, "%.3f", 1.0), 5);
  CHECK_INT(sol_format(text, 4, "abc"), 3);
  CHECK_STR(text, "abc");
}

// What the subset lacks is shown, never swallowed, and no argument is taken for it.
TEST(unknown_conversions) {
  char text[32];
  const char *odd = "%q|%";
  size_t (*format)(char *, size_t, const char *, ...) = sol_format;
  CHECK_INT(format(text, sizeof text, odd), 4);
  CHECK_STR(text, "%q|%");
}

CHECK_MAIN
