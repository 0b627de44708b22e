// Operands as written, before anything is known about what they should be.
#include "ptx/operand.h"

static bool add_element(Parser *p, RawList *list, const Raw *raw) {
  if (list->element_count == MAX_ELEMENTS)
    return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, raw->at, "more than %d elements", MAX_ELEMENTS);
  list->elements[list->element_count++] = *raw;
  return true;
}

// "+4", "+-4": the signs are taken as the number's.
static bool parse_offset(Parser *p, Raw *raw) {
  if (!sol_ptx_is_mark(p, '+') && !sol_ptx_is_mark(p, '-')) return true;
  size_t at = p->lex.token.at;
  raw->offset = true;
  if (!sol_ptx_constant(p, &raw->constant)) return false;
  if (raw->constant.is_real) return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "an offset is an integer");
  return true;
}

static bool is_component(const Parser *p, int *component) {
  static const char names[] = "xyzwrgba";
  const Token *t = &p->lex.token;
  if (t->kind != TOKEN_WORD || t->length != 1) return false;
  for (int i = 0; i < 8; i++)
    if (p->lex.text[t->at] == names[i]) return *component = i % 4, true;
  return false;
}

// name.b0, name.h10, name.b3210: at most four digits up to 7.
static bool take_part(Parser *p, Raw *raw) {
  const Token *t = &p->lex.token;
  const char *text = p->lex.text + t->at;
  unsigned count = (unsigned)t->length - 1, digits = 0;
  if (t->kind != TOKEN_WORD || count < 1 || count > 4 || (text[0] != 'b' && text[0] != 'h')) return false;
  for (unsigned i = 1; i <= count; i++) {
    if (text[i] < '0' || text[i] > '7') return false;
    digits = digits << 3 | (unsigned)(text[i] - '0');
  }
  raw->part = (uint16_t)PTX_PART(text[0] == 'b', count, digits);
  sol_ptx_next(&p->lex);
  return true;
}

// name, name.x, name.b0, name+4, name[4]
static bool parse_named(Parser *p, Raw *raw) {
  raw->kind = RAW_NAME;
  raw->component = -1;
  raw->name = sol_ptx_take_name(p, "an operand");
  if (!raw->name) return false;
  if (raw->name->length == 1 && raw->name->text[0] == '_') {
    raw->kind = RAW_SINK;
    return true;
  }
  if (is_component(p, &raw->component)) sol_ptx_next(&p->lex);
  if (take_part(p, raw)) return true;
  if (sol_ptx_take(p, '[')) {
    Constant c;
    if (!sol_ptx_constant(p, &c)) return false;
    if (c.is_real) return sol_ptx_fail(p, SOL_ERR_SYNTAX, raw->at, "an index is an integer");
    raw->indexed = true;
    raw->constant = c;
    return sol_ptx_expect(p, ']');
  }
  return parse_offset(p, raw);
}

static bool is_name(const Parser *p) {
  const Token *t = &p->lex.token;
  return t->kind == TOKEN_NAME && !(t->length == 7 && !memcmp(p->lex.text + t->at, "WARP_SZ", 7));
}

// An operand without brackets or braces: a name, perhaps with '!' before it, or a number.
static bool parse_simple(Parser *p, Raw *raw) {
  *raw = (Raw){.at = p->lex.token.at, .component = -1};
  if (is_name(p)) return parse_named(p, raw);
  if (sol_ptx_is_mark(p, '!') || sol_ptx_is_mark(p, '-')) {
    Lexer before = p->lex;
    raw->minus = sol_ptx_is_mark(p, '-');
    sol_ptx_next(&p->lex);
    if (is_name(p)) {
      raw->negated = true;
      return parse_named(p, raw);
    }
    p->lex = before; // the sign of a constant expression
  }
  raw->kind = RAW_NUMBER;
  return sol_ptx_constant(p, &raw->constant);
}

static bool parse_braces(Parser *p, RawList *list, Raw *raw) {
  sol_ptx_next(&p->lex); // '{'
  raw->kind = RAW_VEC;
  raw->first = list->element_count;
  do {
    Raw element;
    if (!parse_simple(p, &element) || !add_element(p, list, &element)) return false;
  } while (sol_ptx_take(p, ','));
  raw->count = list->element_count - raw->first;
  return sol_ptx_expect(p, '}');
}

static bool parse_texture(Parser *p, RawList *list, Raw *raw, const Raw *handle) {
  raw->kind = RAW_TEX;
  raw->first = list->element_count;
  if (!add_element(p, list, handle)) return false;
  while (sol_ptx_take(p, ',')) {
    Raw next = {.at = p->lex.token.at, .component = -1};
    if (sol_ptx_is_mark(p, '{')) {
      raw->coordinates = list->element_count;
      if (!parse_braces(p, list, &next)) return false;
      break;
    }
    raw->coordinates = list->element_count;
    if (!parse_simple(p, &next) || !add_element(p, list, &next)) return false;
  }
  raw->count = list->element_count - raw->first;
  return sol_ptx_expect(p, ']');
}

// [a], [a+4], [4], and for textures [a, b, {x, y}]
static bool parse_brackets(Parser *p, RawList *list, Raw *raw) {
  sol_ptx_next(&p->lex); // '['
  Raw base;
  if (!parse_simple(p, &base)) return false;
  if (base.negated || base.kind == RAW_SINK || base.component >= 0 || base.indexed)
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, base.at, "this is no address");
  if (sol_ptx_is_mark(p, ',')) return parse_texture(p, list, raw, &base);
  size_t at = raw->at;
  *raw = base;
  raw->at = at;
  raw->kind = base.kind == RAW_NAME ? RAW_MEM : RAW_ABSOLUTE;
  if (raw->kind == RAW_ABSOLUTE && base.constant.is_real)
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, base.at, "an address is an integer");
  if (!sol_ptx_expect(p, ']')) return false;
  sol_ptx_take_word(p, "unified"); // a hint that the address may be the host's
  return true;
}

static bool parse_operand(Parser *p, RawList *list, Raw *raw) {
  *raw = (Raw){.at = p->lex.token.at, .component = -1};
  if (sol_ptx_is_mark(p, '[')) return parse_brackets(p, list, raw);
  if (sol_ptx_is_mark(p, '{')) return parse_braces(p, list, raw);
  return parse_simple(p, raw);
}

bool sol_ptx_parse_raw(Parser *p, RawList *list) {
  list->count = list->element_count = 0;
  if (sol_ptx_is_mark(p, ';')) return true;
  bool joined = false;
  for (;;) {
    if (list->count == MAX_RAW) return sol_ptx_fail_expected(p, "';'");
    Raw *raw = &list->raws[list->count++];
    if (!parse_operand(p, list, raw)) return false;
    raw->joined = joined;
    joined = sol_ptx_is_mark(p, '|');
    if (!joined && !sol_ptx_is_mark(p, ',')) return true;
    sol_ptx_next(&p->lex);
  }
}

bool sol_ptx_parse_raw_list(Parser *p, RawList *list, Raw *raw) {
  *raw = (Raw){.kind = RAW_VEC, .at = p->lex.token.at, .first = list->element_count};
  if (!sol_ptx_expect(p, '(')) return false;
  if (sol_ptx_take(p, ')')) return true;
  do {
    Raw element;
    if (!parse_simple(p, &element) || !add_element(p, list, &element)) return false;
  } while (sol_ptx_take(p, ','));
  raw->count = list->element_count - raw->first;
  return sol_ptx_expect(p, ')');
}
