// Initialisers: numbers, addresses and nested braces, into bytes and relocations.
#include "ptx/internal.h"

typedef struct Init {
  const Declaration *d;
  Vec bytes;        // uint8_t
  Vec relocs;       // PtxReloc
  uint64_t element; // bytes
} Init;

// Room for `size` bytes at `offset`; bytes in between are zero.
static uint8_t *bytes_at(Parser *p, Init *init, uint64_t offset, uint32_t size) {
  uint64_t end = offset + size;
  if (end > init->bytes.count) {
    uint64_t more = end - init->bytes.count;
    if (more > p->init_budget) {
      sol_ptx_fail(p, SOL_ERR_RANGE, p->lex.token.at, "this initialiser leaves too large a gap");
      return 0;
    }
    p->init_budget -= more;
    for (; more; more--)
      if (!sol_ptx_vec_add(&init->bytes, 1)) return sol_ptx_fail_memory(p), NULL;
  }
  return VEC_AT(&init->bytes, uint8_t, offset);
}

static void float_bits(const Constant *c, PtxType type, uint64_t *bits) {
  if (type == PTX_F32) {
    float narrow = (float)c->real;
    uint32_t narrow_bits;
    memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
    *bits = c->is_bits32 ? c->value : narrow_bits;
  } else {
    memcpy(bits, &c->real, sizeof *bits);
    if (c->is_bits64) *bits = c->value;
  }
}

static bool put_number(Parser *p, Init *init, uint64_t offset, size_t at, const Constant *c) {
  PtxType type = init->d->type;
  bool is_float = sol_ptx_type_class(type) == PTX_CLASS_FLOAT;
  uint64_t bits = c->value;
  if (c->is_real) {
    bool as_bits = sol_ptx_type_class(type) == PTX_CLASS_BITS &&
                   ((c->is_bits32 && type == PTX_B32) || (c->is_bits64 && type == PTX_B64));
    if (!as_bits && type != PTX_F32 && type != PTX_F64)
      return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "a .%s takes no floating-point number",
                          sol_ptx_type_name(type));
    if (!as_bits) float_bits(c, type, &bits);
  } else if (is_float && (type == PTX_F32 || type == PTX_F64)) {
    Constant real = *c;
    real.real = c->is_unsigned ? (double)c->value : (double)(int64_t)c->value;
    float_bits(&real, type, &bits);
  }
  uint32_t size = (uint32_t)sol_ptx_type_bits(type) / 8;
  uint8_t *to = bytes_at(p, init, offset, size);
  if (!to) return false;
  for (uint32_t i = 0; i < size && i < 8; i++) to[i] = (uint8_t)(bits >> 8 * i);
  return true;
}

// name, name + 4, generic(name) + 4, and with a mask before it one byte of that: 0xff00(name)
static bool parse_address(Parser *p, PtxReloc *reloc) {
  const Token *t = &p->lex.token;
  bool generic = t->kind == TOKEN_NAME && t->length == 7 && !memcmp(p->lex.text + t->at, "generic", 7);
  size_t at = t->at;
  Name *name = sol_ptx_take_name(p, "a number or a name");
  if (!name) return false;
  if (generic && sol_ptx_take(p, '(')) {
    reloc->generic = true;
    at = p->lex.token.at;
    name = sol_ptx_take_name(p, "a variable's name");
    if (!name) return false;
    if (sol_ptx_is_mark(p, '+') || sol_ptx_is_mark(p, '-')) {
      Constant inner;
      if (!sol_ptx_constant(p, &inner)) return false;
      reloc->addend = (int64_t)inner.value;
    }
    if (!sol_ptx_expect(p, ')')) return false;
  }
  const Binding *b = name->bound;
  reloc->symbol = reloc->function = PTX_NONE;
  if (b && b->kind == BIND_SYMBOL)
    reloc->symbol = b->index;
  else if (b && b->kind == BIND_FUNC)
    reloc->function = b->index;
  else
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "'%.80s' is no variable or function", name->text);
  if (sol_ptx_is_mark(p, '+') || sol_ptx_is_mark(p, '-')) {
    Constant offset;
    if (!sol_ptx_constant(p, &offset)) return false;
    if (offset.is_real) return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "an offset is an integer");
    reloc->addend = (int64_t)((uint64_t)reloc->addend + offset.value);
  }
  return true;
}

static bool add_reloc(Parser *p, Init *init, uint64_t offset, PtxReloc reloc) {
  reloc.offset = offset;
  reloc.bytes = (uint8_t)(sol_ptx_type_bits(init->d->type) / 8);
  if (reloc.bytes > 8)
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, p->lex.token.at, "an address has at most 8 bytes");
  PtxReloc *to = sol_ptx_vec_add(&init->relocs, sizeof *to);
  if (!to || !bytes_at(p, init, offset, reloc.bytes)) return sol_ptx_fail_memory(p);
  *to = reloc;
  return true;
}

static bool parse_masked(Parser *p, Init *init, uint64_t offset, uint64_t mask, size_t at) {
  PtxReloc reloc = {0};
  uint64_t byte = mask;
  while (byte && !(byte & 0xff)) byte >>= 8, reloc.shift = (uint8_t)(reloc.shift + 8);
  if (byte != 0xff || sol_ptx_type_bits(init->d->type) != 8)
    return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, at,
                        "a mask picks one byte of an address for an 8-bit element");
  sol_ptx_next(&p->lex); // '('
  return parse_address(p, &reloc) && sol_ptx_expect(p, ')') && add_reloc(p, init, offset, reloc);
}

static bool parse_element(Parser *p, Init *init, uint64_t offset) {
  const Token *t = &p->lex.token;
  size_t at = t->at;
  bool is_name = t->kind == TOKEN_NAME && !(t->length == 7 && !memcmp(p->lex.text + t->at, "WARP_SZ", 7));
  if (is_name) {
    PtxReloc reloc = {0};
    return parse_address(p, &reloc) && add_reloc(p, init, offset, reloc);
  }
  Constant c;
  if (!sol_ptx_constant(p, &c)) return false;
  if (sol_ptx_is_mark(p, '(') && !c.is_real) return parse_masked(p, init, offset, c.value, at);
  return put_number(p, init, offset, at, &c);
}

// Braces at `level` of the array's dimensions; beyond them are a vector's elements.
static bool parse_braces(Parser *p, Init *init, uint64_t offset, uint32_t level) {
  const Declaration *d = init->d;
  uint32_t levels = d->dim_count + (d->vec > 1 ? 1 : 0);
  uint64_t step = init->element; // bytes from one item at this level to the next
  uint64_t most = d->vec;
  if (level < d->dim_count) {
    step *= d->vec;
    for (uint32_t i = level + 1; i < d->dim_count; i++) step *= d->dims[i];
    most = d->unsized && level == 0 ? UINT64_MAX : d->dims[level];
  }
  // Without inner braces a list runs on over all elements.
  uint64_t flat_most = step ? most : 0;
  bool flat = level + 1 < levels && !sol_ptx_is_mark(p, '{');
  if (flat) {
    flat_most = most == UINT64_MAX ? most : most * (step / init->element);
    step = init->element;
  }
  for (uint64_t i = 0; !sol_ptx_is_mark(p, '}'); i++) {
    if (i >= flat_most)
      return sol_ptx_fail(p, SOL_ERR_SYNTAX, p->lex.token.at, "more initialisers than elements");
    uint64_t to = offset + i * step;
    if (sol_ptx_is_mark(p, '{')) {
      if (flat || level + 1 >= levels) return sol_ptx_fail_expected(p, "a number");
      sol_ptx_next(&p->lex);
      if (!parse_braces(p, init, to, level + 1)) return false;
    } else if (!parse_element(p, init, to)) {
      return false;
    }
    if (!sol_ptx_take(p, ',')) break;
  }
  return sol_ptx_expect(p, '}');
}

bool sol_ptx_parse_initialiser(Parser *p, const Declaration *d, uint32_t symbol) {
  size_t at = p->lex.token.at;
  sol_ptx_next(&p->lex); // '='
  PtxSymbol *s = VEC_AT(&p->symbols, PtxSymbol, symbol);
  if (s->space != PTX_SPACE_GLOBAL && s->space != PTX_SPACE_CONST)
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "only .global and .const variables have an initial value");
  if (sol_ptx_type_class(d->type) == PTX_CLASS_OPAQUE)
    return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, at,
                        "initialised texture, sampler and surface references are not emulated");
  Init init = {.d = d, .element = (uint64_t)sol_ptx_type_bits(d->type) / 8};
  bool ok;
  if (sol_ptx_take(p, '{'))
    ok = parse_braces(p, &init, 0, 0);
  else
    ok = parse_element(p, &init, 0);
  s = VEC_AT(&p->symbols, PtxSymbol, symbol);
  if (ok) {
    uint64_t whole = init.element * d->vec * d->count;
    if (d->unsized && whole) s->size = (init.bytes.count + whole - 1) / whole * whole;
    s->init_bytes = init.bytes.count;
    s->reloc_count = init.relocs.count;
    s->init = sol_ptx_keep_copy(p, init.bytes.data, init.bytes.count);
    s->relocs = sol_ptx_keep_copy(p, init.relocs.data, init.relocs.count * sizeof(PtxReloc));
    ok = s->init && s->relocs;
  }
  sol_ptx_vec_free(&init.bytes);
  sol_ptx_vec_free(&init.relocs);
  return ok;
}
