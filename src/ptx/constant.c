// Constant expressions: 64-bit integers with C's operators and precedence, or one floating-point number.
#include "ptx/internal.h"

static bool expression(Parser *p, Constant *out, int depth);

static bool too_deep(Parser *p) {
  return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, p->lex.token.at, "this expression is nested more than %d deep",
                      MAX_EXPRESSION_DEPTH);
}

static bool number(Parser *p, Constant *out) {
  const Token *t = &p->lex.token;
  *out = (Constant){.value = t->value, .is_unsigned = t->is_unsigned, .real = t->real};
  switch (t->kind) {
  case TOKEN_INT: break;
  case TOKEN_FLOAT:
    out->is_real = true;
    memcpy(&out->value, &out->real, sizeof out->value);
    break;
  case TOKEN_FLOAT32: out->is_real = out->is_bits32 = true; break;
  case TOKEN_FLOAT64: out->is_real = out->is_bits64 = true; break;
  default:
    if (t->kind == TOKEN_NAME && t->length == 7 && !memcmp(p->lex.text + t->at, "WARP_SZ", 7)) {
      out->value = 32;
      break;
    }
    return sol_ptx_fail_expected(p, "a number");
  }
  sol_ptx_next(&p->lex);
  return true;
}

static void negate(Constant *c) {
  if (!c->is_real)
    c->value = 0 - c->value;
  else if (c->is_bits32)
    c->value ^= 0x80000000u; // a float's sign, its bits else as they are, NaN too
  else
    c->value ^= 0x8000000000000000u;
  c->real = -c->real;
}

static bool unary(Parser *p, Constant *out, int depth) {
  if (depth > MAX_EXPRESSION_DEPTH) return too_deep(p);
  size_t at = p->lex.token.at;
  if (sol_ptx_take(p, '(')) {
    if (sol_ptx_is_word(p, "s64") || sol_ptx_is_word(p, "u64")) {
      bool is_unsigned = sol_ptx_is_word(p, "u64");
      sol_ptx_next(&p->lex);
      if (!sol_ptx_expect(p, ')') || !unary(p, out, depth + 1)) return false;
      if (out->is_real) return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "a cast takes an integer");
      out->is_unsigned = is_unsigned;
      return true;
    }
    return expression(p, out, depth + 1) && sol_ptx_expect(p, ')');
  }
  char mark = p->lex.token.kind == TOKEN_MARK ? p->lex.token.mark : 0;
  if (mark != '-' && mark != '+' && mark != '!' && mark != '~') return number(p, out);
  sol_ptx_next(&p->lex);
  if (!unary(p, out, depth + 1)) return false;
  if (mark == '-') negate(out);
  if ((mark == '!' || mark == '~') && out->is_real)
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "'%c' takes an integer", mark);
  if (mark == '!') out->value = !out->value, out->is_unsigned = false;
  if (mark == '~') out->value = ~out->value;
  return true;
}

static int precedence(char mark) {
  switch (mark) {
  case '*':
  case '/':
  case '%': return 10;
  case '+':
  case '-': return 9;
  case 'L':
  case 'R': return 8;
  case '<':
  case '>':
  case 'l':
  case 'g': return 7;
  case 'e':
  case 'n': return 6;
  case '&': return 5;
  case '^': return 4;
  case '|': return 3;
  case 'A': return 2;
  case 'O': return 1;
  default: return 0;
  }
}

static bool divide(Parser *p, char mark, Constant *a, const Constant *b, bool is_unsigned, size_t at) {
  int64_t x = (int64_t)a->value, y = (int64_t)b->value;
  if (!b->value) return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "a division by zero");
  if (is_unsigned)
    a->value = mark == '/' ? a->value / b->value : a->value % b->value;
  else if (y == -1)
    a->value = mark == '/' ? 0 - a->value : 0; // the one quotient that overflows wraps
  else
    a->value = (uint64_t)(mark == '/' ? x / y : x % y);
  return true;
}

static bool apply(Parser *p, char mark, Constant *a, const Constant *b, size_t at) {
  if (a->is_real || b->is_real) return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "operators take integers");
  bool is_unsigned = a->is_unsigned || b->is_unsigned;
  int64_t x = (int64_t)a->value, y = (int64_t)b->value;
  bool less = is_unsigned ? a->value < b->value : x < y;
  bool shifts = mark == 'L' || mark == 'R', out_of_width = b->value > 63;
  switch (mark) {
  case '*': a->value *= b->value; break;
  case '/':
  case '%':
    if (!divide(p, mark, a, b, is_unsigned, at)) return false;
    break;
  case '+': a->value += b->value; break;
  case '-': a->value -= b->value; break;
  case 'L': a->value = out_of_width ? 0 : a->value << b->value; break;
  case 'R': // the sign of what is signed is shifted in
    if (a->is_unsigned || x >= 0)
      a->value = out_of_width ? 0 : a->value >> b->value;
    else
      a->value = out_of_width ? UINT64_MAX : ~(~a->value >> b->value);
    break;
  case '<': a->value = less; break;
  case 'g': a->value = !less; break;
  case '>': a->value = !less && a->value != b->value; break;
  case 'l': a->value = less || a->value == b->value; break;
  case 'e': a->value = a->value == b->value; break;
  case 'n': a->value = a->value != b->value; break;
  case '&': a->value &= b->value; break;
  case '^': a->value ^= b->value; break;
  case '|': a->value |= b->value; break;
  case 'A': a->value = a->value && b->value; break;
  default: a->value = a->value || b->value; break;
  }
  if (!shifts) a->is_unsigned = is_unsigned;
  if (precedence(mark) <= 2 || precedence(mark) == 6 || precedence(mark) == 7) a->is_unsigned = false;
  return true;
}

static bool binary(Parser *p, Constant *out, int least, int depth) {
  if (depth > MAX_EXPRESSION_DEPTH) return too_deep(p);
  if (!unary(p, out, depth)) return false;
  for (;;) {
    char mark = p->lex.token.kind == TOKEN_MARK ? p->lex.token.mark : 0;
    int level = precedence(mark);
    if (!level || level < least) return true;
    size_t at = p->lex.token.at;
    sol_ptx_next(&p->lex);
    Constant right;
    if (!binary(p, &right, level + 1, depth + 1) || !apply(p, mark, out, &right, at)) return false;
  }
}

static bool expression(Parser *p, Constant *out, int depth) {
  if (!binary(p, out, 1, depth)) return false;
  size_t at = p->lex.token.at;
  if (!sol_ptx_take(p, '?')) return true;
  Constant yes, no;
  if (!expression(p, &yes, depth + 1) || !sol_ptx_expect(p, ':') || !expression(p, &no, depth + 1))
    return false;
  if (out->is_real) return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "operators take integers");
  *out = out->value ? yes : no;
  return true;
}

bool sol_ptx_constant(Parser *p, Constant *out) {
  return expression(p, out, 0);
}

bool sol_ptx_constant_u32(Parser *p, uint32_t *out, const char *what) {
  size_t at = p->lex.token.at;
  Constant c;
  if (!expression(p, &c, 0)) return false;
  if (c.is_real || c.value > UINT32_MAX)
    return sol_ptx_fail(p, SOL_ERR_RANGE, at, "%s takes a number from 0 to 4294967295", what);
  *out = (uint32_t)c.value;
  return true;
}
