// Kernel names for people, from the Itanium mangling: namespaces, classes and template arguments, without the
// parameters. Text is only ever appended, so that what a substitution stands for is a range of it: "const" is
// left out, and what is said of a type comes after it.
#include "audit/audit_names.h"

#include "audit/audit.h"
#include "base/format.h"

#define MAX_TEXT  8192
#define MAX_SUBS  256
#define MAX_DEPTH 48
#define MAX_SHOWN 120 // longer ones lose their innermost template arguments

typedef struct Range {
  uint16_t from, to;
} Range;

typedef struct Names {
  const char *at;
  bool failed;
  int depth;
  uint32_t length, sub_count;
  Range subs[MAX_SUBS];
  char text[MAX_TEXT];
} Names;

static void fail(Names *n) {
  n->failed = true;
  n->at = ""; // nothing follows
}

static void put_n(Names *n, const char *text, size_t count) {
  if (n->length + count >= sizeof n->text) {
    fail(n);
    return;
  }
  memcpy(n->text + n->length, text, count);
  n->length += (uint32_t)count;
}

static void put(Names *n, const char *text) {
  put_n(n, text, strlen(text));
}

static bool take(Names *n, char c) {
  if (*n->at != c) return false;
  n->at++;
  return true;
}

static void expect(Names *n, char c) {
  if (!take(n, c)) fail(n);
}

static void remember(Names *n, uint32_t from) {
  if (n->sub_count == MAX_SUBS)
    fail(n);
  else
    n->subs[n->sub_count++] = (Range){(uint16_t)from, (uint16_t)n->length};
}

static void put_type(Names *n);
static void put_arguments(Names *n);
static void put_name(Names *n, bool is_type);

// "_", "0_", "1_", ..., "Z_", "10_": 0, 1, 2, ...
static uint32_t take_sequence(Names *n, uint32_t base) {
  uint32_t value = 0;
  if (take(n, '_')) return 0;
  for (;; n->at++) {
    char c = *n->at;
    bool digit = c >= '0' && c <= '9';
    if (!digit && !(base == 36 && c >= 'A' && c <= 'Z')) break;
    value = value * base + (uint32_t)(digit ? c - '0' : c - 'A' + 10);
    if (value > 100000) return fail(n), 0;
  }
  expect(n, '_');
  return value + 1;
}

// "S_" and its like, after the S; false: "St", a namespace that something has to follow.
static bool put_substitution(Names *n) {
  static const char *const known[] = {"aallocator", "bbasic_string", "sstring",
                                      "iistream",   "oostream",      "diostream"};
  if (take(n, 't')) return put(n, "std"), false;
  for (size_t i = 0; i < SOL_COUNT(known); i++)
    if (take(n, known[i][0])) return put(n, "std::"), put(n, known[i] + 1), true;
  uint32_t which = take_sequence(n, 36);
  if (n->failed || which >= n->sub_count) return fail(n), true;
  put_n(n, n->text + n->subs[which].from, (size_t)(n->subs[which].to - n->subs[which].from));
  return true;
}

static void put_source_name(Names *n) {
  size_t count = 0;
  while (*n->at >= '0' && *n->at <= '9' && count < MAX_TEXT) count = count * 10 + (size_t)(*n->at++ - '0');
  if (!count || strlen(n->at) < count) {
    fail(n);
    return;
  }
  if (count >= 10 && memcmp(n->at, "_GLOBAL__N", 10) == 0)
    put(n, "(anonymous)");
  else
    put_n(n, n->at, count);
  n->at += n->failed ? 0 : count;
}

// A name without what it is in.
static void put_unqualified(Names *n) {
  while (take(n, 'L')) {
  } // internal linkage
  if (*n->at >= '1' && *n->at <= '9') {
    put_source_name(n);
  } else if (n->at[0] == 'U' && (n->at[1] == 'l' || n->at[1] == 't')) {
    bool lambda = n->at[1] == 'l';
    n->at += 2;
    put(n, lambda ? "lambda(" : "unnamed");
    for (bool first = true; lambda && *n->at && *n->at != 'E'; first = false) {
      if (!first) put(n, ",");
      put_type(n);
    }
    if (lambda) expect(n, 'E'), put(n, ")");
    uint32_t which = take_sequence(n, 10);
    char number[16];
    sol_format(number, sizeof number, "#%u", which + 1);
    put(n, number);
  } else if (n->at[0] == 'c' && n->at[1] == 'l') {
    n->at += 2;
    put(n, "operator()");
  } else if ((n->at[0] == 'C' || n->at[0] == 'D') && n->at[1] >= '0' && n->at[1] <= '5') {
    n->at += 2;
    put(n, "constructor");
  } else {
    fail(n);
  }
  while (take(n, 'B')) put_source_name(n); // ABI tags
}

static void put_template_parameter(Names *n) {
  char text[16];
  sol_format(text, sizeof text, "T%u", take_sequence(n, 10));
  put(n, text);
}

// After the N, up to and with its E.
static void put_nested(Names *n, bool is_type) {
  uint32_t from = n->length;
  while (*n->at == 'r' || *n->at == 'V' || *n->at == 'K' || *n->at == 'R' || *n->at == 'O') n->at++;
  for (bool first = true; !n->failed && !take(n, 'E'); first = false) {
    bool whole = false; // already remembered
    if (*n->at == 'I') {
      put_arguments(n);
    } else if (first && take(n, 'S')) {
      put_substitution(n);
      whole = true;
    } else if (first && take(n, 'T')) {
      put_template_parameter(n);
    } else {
      if (!first) put(n, "::");
      put_unqualified(n);
    }
    if (!whole && (is_type || *n->at != 'E')) remember(n, from);
  }
}

// What a function's mangling says: its name, and its types in brackets.
static void put_encoding(Names *n) {
  put_name(n, false);
  put(n, "(");
  for (bool first = true; *n->at && *n->at != 'E' && !n->failed; first = false) {
    if (!first) put(n, ",");
    put_type(n);
  }
  put(n, ")");
}

// After the Z: something inside of a function.
static void put_local(Names *n) {
  put_encoding(n);
  expect(n, 'E');
  put(n, "::");
  if (take(n, 's')) {
    put(n, "string");
  } else {
    put_name(n, false);
  }
  if (take(n, '_')) // which of several
    while (*n->at >= '0' && *n->at <= '9') n->at++;
}

static void put_name(Names *n, bool is_type) {
  uint32_t from = n->length;
  if (++n->depth > MAX_DEPTH) fail(n);
  if (take(n, 'N')) {
    put_nested(n, is_type);
  } else {
    bool known = false;
    if (take(n, 'Z')) {
      put_local(n);
    } else if (take(n, 'S')) {
      known = put_substitution(n);
      if (!known) put(n, "::"), put_unqualified(n);
    } else {
      put_unqualified(n);
    }
    bool arguments = *n->at == 'I';
    if (!known && (is_type || arguments)) remember(n, from);
    if (arguments) {
      put_arguments(n);
      if (is_type) remember(n, from);
    }
  }
  n->depth--;
}

static bool put_builtin(Names *n) {
  static const char *const plain[] = {"bbool",           "cchar",          "asigned char",
                                      "hunsigned char",  "sshort",         "iint",
                                      "junsigned",       "llong",          "wwchar_t",
                                      "tunsigned short", "munsigned long", "ffloat",
                                      "ddouble",         "vvoid",          "z...",
                                      "xlong long",      "elong double",   "yunsigned long long",
                                      "n__int128",       "g__float128",    "ounsigned __int128"};
  static const char *const more[] = {"nnullptr_t", "hhalf", "ichar32_t", "schar16_t", "uchar8_t", "aauto"};
  if (n->at[0] == 'D')
    for (size_t i = 0; i < SOL_COUNT(more); i++)
      if (n->at[1] == more[i][0]) return n->at += 2, put(n, more[i] + 1), true;
  for (size_t i = 0; i < SOL_COUNT(plain); i++)
    if (take(n, plain[i][0])) return put(n, plain[i] + 1), true;
  return false;
}

static void put_function_type(Names *n) {
  take(n, 'Y'); // extern "C"
  put_type(n);
  put(n, "(");
  for (bool first = true; *n->at && *n->at != 'E' && !n->failed; first = false) {
    if (!first) put(n, ",");
    put_type(n);
  }
  expect(n, 'E');
  put(n, ")");
}

static void put_array_type(Names *n) {
  const char *from = n->at;
  while (*n->at >= '0' && *n->at <= '9') n->at++;
  size_t digits = (size_t)(n->at - from);
  expect(n, '_');
  put_type(n);
  put(n, "[");
  if (!n->failed) put_n(n, from, digits);
  put(n, "]");
}

static void put_type(Names *n) {
  uint32_t from = n->length;
  if (n->failed || ++n->depth > MAX_DEPTH) {
    fail(n);
    return;
  }
  if (*n->at == 'K' || *n->at == 'V' || *n->at == 'r') {
    while (*n->at == 'K' || *n->at == 'V' || *n->at == 'r') n->at++;
    put_type(n);
    remember(n, from);
  } else if (*n->at == 'P' || *n->at == 'R' || *n->at == 'O') {
    const char *sign = *n->at == 'P' ? "*" : *n->at == 'R' ? "&" : "&&";
    n->at++;
    put_type(n);
    put(n, sign);
    remember(n, from);
  } else if (take(n, 'F')) {
    put_function_type(n);
    remember(n, from);
  } else if (take(n, 'A')) {
    put_array_type(n);
    remember(n, from);
  } else if (take(n, 'T')) {
    put_template_parameter(n);
    remember(n, from);
    if (*n->at == 'I') put_arguments(n), remember(n, from);
  } else if (n->at[0] == 'D' && n->at[1] == 'p') {
    n->at += 2;
    put_type(n);
    remember(n, from);
  } else if (!put_builtin(n)) {
    put_name(n, true);
  }
  n->depth--;
}

// After the L: a number, or a function.
static void put_literal(Names *n) {
  if (n->at[0] == '_' && n->at[1] == 'Z') {
    n->at += 2;
    put_encoding(n);
    expect(n, 'E');
    return;
  }
  if (*n->at >= 'a' && *n->at <= 'z') { // of a plain type: that says enough
    n->at++;
  } else {
    put(n, "(");
    put_type(n);
    put(n, ")");
  }
  if (take(n, 'n')) put(n, "-");
  const char *from = n->at;
  while ((*n->at >= '0' && *n->at <= '9') || (*n->at >= 'a' && *n->at <= 'f')) n->at++;
  put_n(n, from, (size_t)(n->at - from));
  expect(n, 'E');
}

static void put_argument(Names *n) {
  if (take(n, 'L')) {
    put_literal(n);
  } else if (n->at[0] == 'X' && n->at[1] == 'a' && n->at[2] == 'd' && n->at[3] == 'L') { // an address
    n->at += 4;
    put(n, "&");
    put_literal(n);
    expect(n, 'E');
  } else if (take(n, 'J')) {
    for (bool first = true; *n->at && *n->at != 'E' && !n->failed; first = false) {
      if (!first) put(n, ",");
      put_argument(n);
    }
    expect(n, 'E');
  } else {
    put_type(n);
  }
}

static void put_arguments(Names *n) {
  expect(n, 'I');
  put(n, "<");
  for (bool first = true; *n->at && *n->at != 'E' && !n->failed; first = false) {
    uint32_t before = n->length;
    if (!first) put(n, ",");
    uint32_t comma = n->length;
    put_argument(n);
    if (n->length == comma) n->length = before; // an empty pack
  }
  expect(n, 'E');
  put(n, ">");
}

// The text with the template arguments inside of `deepest` others left out; returns its whole length.
static size_t shorten(const Names *n, int deepest, char *out, size_t cap) {
  size_t length = 0;
  int depth = 0;
  for (uint32_t i = 0; i < n->length; i++) {
    char c = n->text[i];
    const char *what = &n->text[i];
    size_t count = 1;
    if (c == '<' && ++depth == deepest + 1)
      what = "<...", count = 4;
    else if (depth > deepest && !(c == '>' && depth == deepest + 1))
      count = 0;
    if (c == '>') depth--;
    for (size_t k = 0; k < count; k++, length++)
      if (length + 1 < cap) out[length] = what[k];
  }
  if (cap) out[length < cap ? length : cap - 1] = 0;
  return length;
}

// A static kernel of a program of several units: "__nv_static_21__1b2c3d4e_5_rb_cu_tab__Z1kPf".
static const char *without_unit(const char *name) {
  static const char start[] = "__nv_static_";
  if (strlen(name) < sizeof start || memcmp(name, start, sizeof start - 1) != 0) return name;
  const char *p = name + sizeof start - 1;
  size_t count = 0;
  while (*p >= '0' && *p <= '9' && count < MAX_TEXT) count = count * 10 + (size_t)(*p++ - '0');
  return *p == '_' && strlen(p) > count + 2 && p[count + 1] == '_' ? p + count + 2 : name;
}

void audit_title(const char *name, char *out, size_t cap) {
  Names n;
  const char *mangled = without_unit(name);
  n.at = mangled;
  n.failed = false;
  n.depth = 0;
  n.length = n.sub_count = 0;
  if (take(&n, '_') && take(&n, 'Z')) {
    put_name(&n, false);
    if (!n.failed && n.length) {
      int deepest = MAX_DEPTH;
      while (deepest > 0 && (shorten(&n, deepest, out, cap) >= cap || strlen(out) > MAX_SHOWN)) deepest--;
      shorten(&n, deepest, out, cap);
      return;
    }
  }
  sol_format(out, cap, "%s", mangled);
}

bool audit_selects(const char *pattern, size_t n, const char *text) {
  bool start = n && pattern[n - 1] == '*';
  size_t i = 0, k = 0;
  for (; i < n - start; i++)
    if (!text[i] || text[i] != pattern[i]) return false;
  while (AUDIT_INSTANCE[k] && text[i + k] == AUDIT_INSTANCE[k]) k++;
  return start || !text[i] || text[i] == '<' || !AUDIT_INSTANCE[k];
}
