#include "ptx/lex.h"

enum { NAME_START = 1, NAME_PART = 2, DIGIT = 4, SPACE = 8 };

static const unsigned char classes[256] = {
    ['0' ... '9'] = NAME_PART | DIGIT,
    ['a' ... 'z'] = NAME_START | NAME_PART,
    ['A' ... 'Z'] = NAME_START | NAME_PART,
    ['_'] = NAME_START | NAME_PART,
    ['$'] = NAME_START | NAME_PART,
    ['%'] = NAME_START,
    [' '] = SPACE,
    ['\t'] = SPACE,
    ['\r'] = SPACE,
    ['\n'] = SPACE,
    ['\v'] = SPACE,
    ['\f'] = SPACE,
};

static bool is(char c, int mask) {
  return (classes[(unsigned char)c] & mask) != 0;
}

static char char_at(const Lexer *l, size_t at) {
  return at < l->length ? l->text[at] : 0;
}

static void bad(Lexer *l, size_t at, const char *message) {
  l->token = (Token){.kind = TOKEN_BAD, .line = l->line, .at = at, .length = 1, .message = message};
}

static void skip_line(Lexer *l) {
  while (l->next < l->length && l->text[l->next] != '\n') l->next++;
}

// Passes white space, comments, and lines that a C preprocessor would have left ("# 1 ...") or that old debug
// output has ("@@DWARF ..."). False: an open comment.
static bool skip_space(Lexer *l) {
  for (;;) {
    char c = char_at(l, l->next);
    if (is(c, SPACE)) {
      if (c == '\n') l->line++;
      l->next++;
    } else if (c == '/' && char_at(l, l->next + 1) == '/') {
      skip_line(l);
    } else if (c == '/' && char_at(l, l->next + 1) == '*') {
      size_t open = l->next;
      uint32_t line = l->line;
      for (l->next += 2; char_at(l, l->next) != '*' || char_at(l, l->next + 1) != '/'; l->next++) {
        if (l->next >= l->length) {
          l->line = line;
          return bad(l, open, "this comment does not end"), false;
        }
        if (l->text[l->next] == '\n') l->line++;
      }
      l->next += 2;
    } else if (c == '#' || (c == '@' && char_at(l, l->next + 1) == '@')) {
      skip_line(l);
    } else {
      return true;
    }
  }
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

static void lex_bits(Lexer *l, int digits) {
  Token *t = &l->token;
  size_t at = t->at + 2;
  for (int i = 0; i < digits; i++, at++) {
    int digit = hex_digit(char_at(l, at));
    if (digit > 15)
      return bad(l, at,
                 digits == 8 ? "0f takes eight hexadecimal digits" : "0d takes sixteen hexadecimal digits");
    t->value = t->value << 4 | (unsigned)digit;
  }
  if (digits == 8) {
    uint32_t bits = (uint32_t)t->value;
    float real;
    memcpy(&real, &bits, sizeof real);
    t->real = (double)real;
  } else {
    memcpy(&t->real, &t->value, sizeof t->real);
  }
  t->kind = digits == 8 ? TOKEN_FLOAT32 : TOKEN_FLOAT64;
  l->next = at;
}

static void lex_int(Lexer *l, size_t at, unsigned base) {
  Token *t = &l->token;
  size_t first = at;
  for (;; at++) {
    unsigned digit = (unsigned)hex_digit(char_at(l, at));
    if (digit >= base) break;
    if (t->value > (UINT64_MAX - digit) / base) return bad(l, t->at, "this number takes more than 64 bits");
    t->value = t->value * base + digit;
  }
  if (at == first) return bad(l, at, "a digit is missing here");
  t->kind = TOKEN_INT;
  t->is_unsigned = t->value > INT64_MAX;
  if (char_at(l, at) == 'U') t->is_unsigned = true, at++;
  l->next = at;
}

static void lex_number(Lexer *l) {
  size_t at = l->token.at;
  char second = char_at(l, at + 1);
  if (l->text[at] == '0') {
    if (second == 'f' || second == 'F') return lex_bits(l, 8);
    if (second == 'd' || second == 'D') return lex_bits(l, 16);
    if (second == 'x' || second == 'X') return lex_int(l, at + 2, 16);
    if (second == 'b' || second == 'B') return lex_int(l, at + 2, 2);
  }
  size_t end = at;
  while (is(char_at(l, end), DIGIT)) end++;
  char c = char_at(l, end);
  if (c != '.' && c != 'e' && c != 'E') return lex_int(l, at, l->text[at] == '0' && end > at + 1 ? 8 : 10);
  if (c == '.')
    for (end++; is(char_at(l, end), DIGIT);) end++;
  c = char_at(l, end);
  if (c == 'e' || c == 'E') {
    end++;
    if (char_at(l, end) == '-' || char_at(l, end) == '+') end++;
    if (!is(char_at(l, end), DIGIT)) return bad(l, end, "the exponent lacks a digit");
    while (is(char_at(l, end), DIGIT)) end++;
  }
  l->token.kind = TOKEN_FLOAT;
  l->token.real = sol_ptx_read_decimal(l->text + at, end - at);
  l->next = end;
}

static void lex_string(Lexer *l) {
  size_t end = l->token.at + 1;
  for (; char_at(l, end) != '"'; end++) {
    if (end >= l->length || l->text[end] == '\n')
      return bad(l, l->token.at, "this string does not end on its line");
    if (l->text[end] == '\\') end++;
  }
  l->token.kind = TOKEN_STRING;
  l->token.at++;
  l->token.length = end - l->token.at;
  l->next = end + 1;
}

static void lex_mark(Lexer *l) {
  static const char doubles[][3] = {"<<L", ">>R", "<=l", ">=g", "==e", "!=n", "&&A", "||O"};
  char c = l->text[l->token.at], second = char_at(l, l->token.at + 1);
  l->token.kind = TOKEN_MARK;
  l->token.mark = c;
  l->next++;
  for (size_t i = 0; i < SOL_COUNT(doubles); i++)
    if (doubles[i][0] == c && doubles[i][1] == second) l->token.mark = doubles[i][2], l->next++;
}

// Whether what follows a dot is a word: letters, or digits that letters follow (.2d), but no fraction (.5,
// .5e3).
static bool is_word(const Lexer *l, size_t at) {
  size_t end = at;
  while (is(char_at(l, end), DIGIT)) end++;
  char c = char_at(l, end);
  return is(c, NAME_PART) && (end == at || (c != 'e' && c != 'E'));
}

void sol_ptx_next(Lexer *l) {
  if (l->token.kind == TOKEN_BAD || !skip_space(l)) return;
  Token *t = &l->token;
  *t = (Token){.line = l->line, .at = l->next};
  if (l->next >= l->length) return;
  char c = l->text[l->next];
  if (is(c, NAME_START) && (c != '%' || is(char_at(l, l->next + 1), NAME_PART))) {
    t->kind = TOKEN_NAME;
    do l->next++;
    while (is(char_at(l, l->next), NAME_PART));
  } else if (c == '.' && is_word(l, l->next + 1)) {
    t->kind = TOKEN_WORD;
    t->at = ++l->next;
    for (;;) {
      while (is(char_at(l, l->next), NAME_PART)) l->next++;
      if (char_at(l, l->next) != ':' || char_at(l, l->next + 1) != ':') break;
      l->next += 2;
    }
  } else if (is(c, DIGIT) || (c == '.' && is(char_at(l, l->next + 1), DIGIT))) {
    lex_number(l);
  } else if (c == '"') {
    lex_string(l);
  } else if (c > ' ' && c < 127) {
    lex_mark(l);
  } else {
    bad(l, l->next, "this character does not belong in PTX");
  }
  if (t->kind != TOKEN_STRING && t->kind != TOKEN_BAD) t->length = l->next - t->at;
}

bool sol_ptx_lex_opcode(Lexer *l, char *out, size_t cap, size_t *length) {
  size_t n = 0;
  const Token *t = &l->token;
  do {
    if (n + t->length + 2 > cap) return false;
    if (n) out[n++] = '.';
    memcpy(out + n, l->text + t->at, t->length);
    n += t->length;
    sol_ptx_next(l);
  } while (t->kind == TOKEN_WORD);
  out[n] = 0;
  *length = n;
  return true;
}

bool sol_ptx_skip_braces(Lexer *l) {
  size_t depth = 1;
  for (; l->next < l->length; l->next++) {
    char c = l->text[l->next];
    if (c == '/' && char_at(l, l->next + 1) == '/') skip_line(l), c = char_at(l, l->next);
    if (c == '\n')
      l->line++;
    else if (c == '{')
      depth++;
    else if (c == '}' && --depth == 0)
      return l->next++, sol_ptx_next(l), true;
  }
  return false;
}
