#include "base/json_read.h"

#include "base/error.h"
#include "base/text.h"

typedef struct Scan {
  const char *text;
  size_t length, at;
  SolError *err;
} Scan;

static char peek(const Scan *s) {
  return s->at < s->length ? s->text[s->at] : 0;
}

static void skip_space(Scan *s) {
  while (s->at < s->length) {
    char c = s->text[s->at];
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') break;
    s->at++;
  }
}

static SolStatus fail(Scan *s, const char *what) {
  if (s->at >= s->length)
    return sol_fail_at(s->err, SOL_ERR_SYNTAX, s->text, s->length, s->at, "%s, but the text ends here", what);
  return sol_fail_at(s->err, SOL_ERR_SYNTAX, s->text, s->length, s->at, "%s", what);
}

static bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static SolStatus check_string(Scan *s) {
  s->at++; // the opening quote
  for (;; s->at++) {
    if (s->at >= s->length) return fail(s, "expected '\"' to end a string");
    unsigned char c = (unsigned char)s->text[s->at];
    if (c == '"') break;
    if (c < 0x20) return fail(s, "control character in a string");
    if (c != '\\') continue;
    s->at++;
    char e = peek(s);
    if (e == 'u') {
      for (int i = 0; i < 4; i++) {
        s->at++;
        if (!is_hex(peek(s))) return fail(s, "expected four hexadecimal digits");
      }
    } else {
      const char *known = "\"\\/bfnrt";
      while (*known && *known != e) known++;
      if (!e || !*known) return fail(s, "unknown escape in a string");
    }
  }
  s->at++;
  return SOL_OK;
}

static SolStatus check_digits(Scan *s) {
  size_t from = s->at;
  while (peek(s) >= '0' && peek(s) <= '9') s->at++;
  return s->at > from ? SOL_OK : fail(s, "expected a digit");
}

static SolStatus check_number(Scan *s) {
  if (peek(s) == '-') s->at++;
  bool zero = peek(s) == '0';
  size_t from = s->at;
  if (check_digits(s)) return SOL_ERR_SYNTAX;
  if (zero && s->at > from + 1) {
    s->at = from;
    return fail(s, "a number must not start with 0");
  }
  if (peek(s) == '.') {
    s->at++;
    if (check_digits(s)) return SOL_ERR_SYNTAX;
  }
  if (peek(s) == 'e' || peek(s) == 'E') {
    s->at++;
    if (peek(s) == '+' || peek(s) == '-') s->at++;
    if (check_digits(s)) return SOL_ERR_SYNTAX;
  }
  return SOL_OK;
}

static SolStatus check_word(Scan *s, const char *word) {
  size_t n = strlen(word);
  if (s->length - s->at < n || memcmp(s->text + s->at, word, n) != 0) return fail(s, "expected a value");
  s->at += n;
  return SOL_OK;
}

static SolStatus check_scalar(Scan *s) {
  switch (peek(s)) {
  case '"': return check_string(s);
  case 't': return check_word(s, "true");
  case 'f': return check_word(s, "false");
  case 'n': return check_word(s, "null");
  default:
    if (peek(s) == '-' || (peek(s) >= '0' && peek(s) <= '9')) return check_number(s);
    return fail(s, "expected a value");
  }
}

static SolStatus check_key(Scan *s) {
  skip_space(s);
  if (peek(s) != '"') return fail(s, "expected a member's name in quotes");
  if (check_string(s)) return SOL_ERR_SYNTAX;
  skip_space(s);
  if (peek(s) != ':') return fail(s, "expected ':'");
  s->at++;
  return SOL_OK;
}

SolStatus sol_json_check(const char *text, size_t length, SolJson *root, SolError *err) {
  Scan s = {text, length, 0, err};
  char open[SOL_JSON_MAX_DEPTH];
  int depth = 0;
  skip_space(&s);
  *root = (SolJson){text, length, s.at};
  for (;;) {
    skip_space(&s);
    char c = peek(&s);
    if (c == '{' || c == '[') {
      if (depth == SOL_JSON_MAX_DEPTH) return fail(&s, "nested more than 64 deep");
      s.at++;
      skip_space(&s);
      if (peek(&s) != (c == '{' ? '}' : ']')) {
        open[depth++] = c;
        if (c == '{' && check_key(&s)) return SOL_ERR_SYNTAX;
        continue;
      }
      s.at++;
    } else if (check_scalar(&s)) {
      return SOL_ERR_SYNTAX;
    }
    // A value has ended: close what ends with it, then go on to the next.
    for (;;) {
      skip_space(&s);
      if (depth == 0) return s.at == length ? SOL_OK : fail(&s, "unexpected text after the value");
      char end = open[depth - 1] == '{' ? '}' : ']';
      if (peek(&s) == end) {
        s.at++;
        depth--;
        continue;
      }
      if (peek(&s) != ',') return fail(&s, end == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
      s.at++;
      if (end == '}' && check_key(&s)) return SOL_ERR_SYNTAX;
      break;
    }
  }
}

SolJsonKind sol_json_kind(SolJson value) {
  switch (value.text[value.at]) {
  case '{': return SOL_JSON_OBJECT;
  case '[': return SOL_JSON_ARRAY;
  case '"': return SOL_JSON_STRING;
  case 't':
  case 'f': return SOL_JSON_BOOL;
  case 'n': return SOL_JSON_NULL;
  default: return SOL_JSON_NUMBER;
  }
}

// Past the value at `at`; the text has been checked, so brackets match and strings end.
static size_t skip_value(const char *text, size_t length, size_t at) {
  static const bool counts[256] = {['"'] = true, ['{'] = true, ['}'] = true, ['['] = true, [']'] = true};
  int depth = 0;
  while (at < length) {
    if (depth)
      while (!counts[(unsigned char)text[at]]) at++; // a container ends
    char c = text[at];
    if (c == '"') {
      for (at++; text[at] != '"'; at++)
        if (text[at] == '\\') at++;
    } else if (c == '{' || c == '[') {
      depth++;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return at;
      depth--;
    } else if (depth == 0) { // a number or a word
      while (at < length && text[at] != ',' && text[at] != '}' && text[at] != ']' &&
             (unsigned char)text[at] > ' ')
        at++;
      return at;
    }
    at++;
    if (depth == 0) return at;
  }
  return at;
}

bool sol_json_next(SolJsonIter *it, SolJson *key, SolJson *value) {
  Scan s = {it->container.text, it->container.length, it->next, 0};
  bool object = s.text[it->container.at] == '{';
  if (!it->next) {
    if (!object && s.text[it->container.at] != '[') return false;
    s.at = it->container.at + 1;
  }
  skip_space(&s);
  if (peek(&s) == ',') s.at++;
  skip_space(&s);
  if (peek(&s) == '}' || peek(&s) == ']') return false;
  if (object) {
    if (key) *key = (SolJson){s.text, s.length, s.at};
    s.at = skip_value(s.text, s.length, s.at);
    skip_space(&s);
    s.at++; // the colon
    skip_space(&s);
  }
  *value = (SolJson){s.text, s.length, s.at};
  it->next = skip_value(s.text, s.length, s.at);
  return true;
}

bool sol_json_number(SolJson value, double *out) {
  if (sol_json_kind(value) != SOL_JSON_NUMBER) return false;
  size_t at = value.at;
  bool minus = value.text[at] == '-';
  if (minus) at++;
  double v = 0;
  size_t end = skip_value(value.text, value.length, at);
  if (sol_parse_number(value.text + at, end - at, &v, 0)) return false;
  *out = minus ? -v : v;
  return true;
}

bool sol_json_bool(SolJson value, bool *out) {
  if (sol_json_kind(value) != SOL_JSON_BOOL) return false;
  *out = value.text[value.at] == 't';
  return true;
}

static uint32_t read_hex4(const char *p) {
  uint32_t v = 0;
  for (int i = 0; i < 4; i++) {
    char c = p[i];
    v = v * 16 + (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return v;
}

static int encode_utf8(uint32_t c, char *to) {
  if (c < 0x80) {
    to[0] = (char)c;
    return 1;
  }
  int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  for (int i = more; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
  to[0] = (char)((0xf00 >> (more + 1) & 0xff) | c);
  return more + 1;
}

// Decodes the character at *p, an escape or a byte, into piece and moves *p past it. What a C string cannot
// hold, NUL and half a surrogate pair, becomes U+FFFD.
static int decode(const char **p, char piece[4]) {
  char c = *(*p)++;
  piece[0] = c;
  if (c != '\\') return 1;
  c = *(*p)++;
  switch (c) {
  case 'b': piece[0] = '\b'; return 1;
  case 'f': piece[0] = '\f'; return 1;
  case 'n': piece[0] = '\n'; return 1;
  case 'r': piece[0] = '\r'; return 1;
  case 't': piece[0] = '\t'; return 1;
  case 'u': break;
  default: piece[0] = c; return 1;
  }
  uint32_t code = read_hex4(*p);
  *p += 4;
  if (code >= 0xd800 && code < 0xdc00 && (*p)[0] == '\\' && (*p)[1] == 'u') {
    uint32_t low = read_hex4(*p + 2);
    if (low >= 0xdc00 && low < 0xe000) code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00), *p += 6;
  }
  if (!code || (code >= 0xd800 && code < 0xe000)) code = 0xfffd;
  return encode_utf8(code, piece);
}

bool sol_json_string(SolJson value, char *out, size_t cap) {
  if (sol_json_kind(value) != SOL_JSON_STRING) return false;
  size_t used = 0;
  for (const char *p = value.text + value.at + 1; *p != '"';) {
    char piece[4];
    int n = decode(&p, piece);
    if (used + (size_t)n + 1 > cap) break;
    memcpy(out + used, piece, (size_t)n);
    used += (size_t)n;
  }
  if (cap) out[used] = 0;
  return true;
}

static bool key_equals(SolJson name, const char *key) {
  for (const char *p = name.text + name.at + 1; *p != '"';) {
    char piece[4];
    int n = decode(&p, piece);
    for (int i = 0; i < n; i++)
      if (*key++ != piece[i]) return false;
  }
  return !*key;
}

bool sol_json_get(SolJson object, const char *key, SolJson *value) {
  if (sol_json_kind(object) != SOL_JSON_OBJECT) return false;
  bool found = false;
  SolJsonIter it = {object, 0};
  SolJson name, v;
  while (sol_json_next(&it, &name, &v)) {
    if (!key_equals(name, key)) continue;
    *value = v;
    found = true;
  }
  return found;
}

bool sol_json_text_is(SolJson object, const char *key, const char *want) {
  SolJson value;
  char text[96] = "";
  if (sol_json_get(object, key, &value)) sol_json_string(value, text, sizeof text);
  return strcmp(text, want) == 0;
}
