// Declarations of registers and variables, and what variables start with.
#include "ptx/internal.h"

#define MAX_SIZE ((uint64_t)1 << 40)

static bool is_power_of_two(uint64_t v) {
  return v && !(v & (v - 1));
}

static bool parse_align(Parser *p, uint32_t *align) {
  size_t at = p->lex.token.at;
  if (!sol_ptx_constant_u32(p, align, ".align")) return false;
  if (is_power_of_two(*align) && *align <= 1u << 20) return true;
  return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, ".align takes a power of two up to 1048576");
}

// .attribute(.managed, .unified(1, 2))
bool sol_ptx_parse_attributes(Parser *p, Declaration *d) {
  if (!sol_ptx_expect(p, '(')) return false;
  do {
    if (sol_ptx_take_word(p, "managed")) {
      d->managed = true;
    } else if (sol_ptx_take_word(p, "unified")) {
      Constant ignored;
      if (!sol_ptx_expect(p, '(') || !sol_ptx_constant(p, &ignored) || !sol_ptx_expect(p, ',') ||
          !sol_ptx_constant(p, &ignored) || !sol_ptx_expect(p, ')'))
        return false;
    } else {
      return sol_ptx_fail_expected(p, "an attribute");
    }
  } while (sol_ptx_take(p, ','));
  return sol_ptx_expect(p, ')');
}

// .ptr .global .align 8: what a pointer parameter points to. Nothing depends on it.
static bool parse_pointer(Parser *p) {
  static const char *const spaces[] = {"global", "const", "shared", "local", "generic"};
  for (size_t i = 0; i < SOL_COUNT(spaces); i++)
    if (sol_ptx_take_word(p, spaces[i])) break;
  uint32_t ignored;
  return !sol_ptx_take_word(p, "align") || parse_align(p, &ignored);
}

static bool parse_size(Parser *p, uint64_t *size) {
  size_t at = p->lex.token.at;
  Constant c;
  if (!sol_ptx_constant(p, &c)) return false;
  if (c.is_real || c.value > MAX_SIZE)
    return sol_ptx_fail(p, SOL_ERR_RANGE, at, "an array cannot have this size");
  *size = c.value;
  return true;
}

static bool parse_dimensions(Parser *p, Declaration *d) {
  d->count = 1;
  size_t at = p->lex.token.at;
  while (sol_ptx_take(p, '[')) {
    uint64_t size = 1;
    d->is_array = true;
    if (d->dim_count == SOL_COUNT(d->dims))
      return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, at, "more than 8 dimensions");
    if (sol_ptx_is_mark(p, ']')) {
      if (d->dim_count) return sol_ptx_fail_expected(p, "a size: only the first dimension may be open");
      d->unsized = true;
    } else if (!parse_size(p, &size)) {
      return false;
    }
    d->dims[d->dim_count++] = size;
    if (size && d->count > MAX_SIZE / size)
      return sol_ptx_fail(p, SOL_ERR_RANGE, at, "this array is too large");
    d->count *= size;
    if (!sol_ptx_expect(p, ']')) return false;
  }
  return true;
}

static bool parse_declarator(Parser *p, Declaration *d, bool need_name) {
  d->at = p->lex.token.at;
  d->name = 0;
  d->unsized = d->is_array = false;
  d->dim_count = 0;
  if (!need_name && p->lex.token.kind != TOKEN_NAME) {
    d->count = 1;
  } else {
    d->name = sol_ptx_take_name(p, "a name");
    if (!d->name || !parse_dimensions(p, d)) return false;
    if (d->name->length == 1 && d->name->text[0] == '_') d->name = 0;
    if (!d->name && need_name) return sol_ptx_fail(p, SOL_ERR_SYNTAX, d->at, "'_' is no name for a variable");
  }
  uint64_t element = (uint64_t)sol_ptx_type_bits(d->type) / 8 * d->vec;
  d->size = d->unsized ? 0 : element * d->count; // of an open one `count` is that of the inner dimensions
  if (d->size > MAX_SIZE) return sol_ptx_fail(p, SOL_ERR_RANGE, d->at, "this variable is too large");
  return true;
}

bool sol_ptx_parse_declaration(Parser *p, Declaration *d, bool need_name) {
  *d = (Declaration){.vec = 1};
  for (;;) {
    if (sol_ptx_take_word(p, "align")) {
      if (!parse_align(p, &d->align)) return false;
    } else if (sol_ptx_take_word(p, "attribute")) {
      if (!sol_ptx_parse_attributes(p, d)) return false;
    } else if (sol_ptx_take_word(p, "v2")) {
      d->vec = 2;
    } else if (sol_ptx_take_word(p, "v4")) {
      d->vec = 4;
    } else {
      break;
    }
  }
  size_t at = p->lex.token.at;
  if (!sol_ptx_take_type(p, &d->type)) return false;
  PtxTypeClass class = sol_ptx_type_class(d->type);
  if (class == PTX_CLASS_PRED || class == PTX_CLASS_ELEMENT)
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "no variable can have type .%s", sol_ptx_type_name(d->type));
  if (sol_ptx_take_word(p, "ptr") && !parse_pointer(p)) return false;
  uint32_t natural = (uint32_t)sol_ptx_type_bits(d->type) / 8 * d->vec;
  if (!d->align) d->align = natural;
  return parse_declarator(p, d, need_name);
}

// ---- symbols ----

static uint64_t round_up(uint64_t v, uint64_t to) {
  return (v + to - 1) / to * to;
}

// Gives a function's .local and .param variables their place in the frame.
static bool place(Parser *p, PtxSymbol *s, size_t at) {
  if (s->space == PTX_SPACE_LOCAL) {
    s->offset = round_up(p->local_top, s->align);
    p->local_top = s->offset + s->size;
    if (s->align > p->local_align) p->local_align = s->align;
    if (p->local_top > MAX_SIZE)
      return sol_ptx_fail(p, SOL_ERR_RANGE, at, "with '%.80s' the .local variables are too large", s->name);
  } else if (s->space == PTX_SPACE_PARAM) {
    s->offset = round_up(p->param_top, s->align);
    p->param_top = s->offset + s->size;
    if (p->param_top > p->param_max) p->param_max = p->param_top;
    if (p->param_top > MAX_PARAM_BYTES)
      return sol_ptx_fail(p, SOL_ERR_RANGE, at, "with '%.80s' the .param variables take more than %d bytes",
                          s->name, MAX_PARAM_BYTES);
  }
  return true;
}

static bool compatible(const PtxSymbol *old, const Declaration *d, int space) {
  return old->space == space && old->type == d->type && old->vec == d->vec &&
         (old->size == d->size || d->unsized || !old->size);
}

uint32_t sol_ptx_add_symbol(Parser *p, const Declaration *d, int space, PtxLinkage linkage) {
  Binding *old = d->name ? d->name->bound : NULL;
  if (old && old->depth == p->depth && old->kind == BIND_SYMBOL) {
    // .extern int x; ... .visible int x = 1;
    PtxSymbol *s = VEC_AT(&p->symbols, PtxSymbol, old->index);
    bool redeclared = s->linkage == PTX_LINK_EXTERN || linkage == PTX_LINK_EXTERN;
    if (redeclared && p->depth == 0 && compatible(s, d, space)) {
      if (s->linkage == PTX_LINK_EXTERN) s->linkage = (uint8_t)linkage;
      if (!s->size) s->size = d->size;
      s->dynamic &= linkage == PTX_LINK_EXTERN;
      return old->index;
    }
  }
  Binding *b = d->name ? sol_ptx_bind(p, d->name, BIND_SYMBOL, d->at) : NULL;
  if (d->name && !b) return PTX_NONE;
  PtxSymbol *s = sol_ptx_vec_add(&p->symbols, sizeof *s);
  SymbolExtra *extra = sol_ptx_vec_add(&p->symbol_extras, sizeof *extra);
  if (!s || !extra) return sol_ptx_fail_memory(p), PTX_NONE;
  *extra = (SymbolExtra){d->name, d->at};
  uint32_t index = p->symbols.count - 1;
  *s = (PtxSymbol){.name = d->name ? sol_ptx_keep_name(p, d->name) : "",
                   .space = (uint8_t)space,
                   .type = (uint8_t)d->type,
                   .vec = (uint8_t)d->vec,
                   .linkage = (uint8_t)linkage,
                   .managed = d->managed,
                   .dynamic = space == PTX_SPACE_SHARED && linkage == PTX_LINK_EXTERN && d->size == 0,
                   .size = d->size,
                   .align = d->align,
                   .function = p->function,
                   .source = p->source_index,
                   .line = p->lex.token.line};
  if (!s->name || !place(p, s, d->at)) return PTX_NONE;
  if (b) b->index = index;
  return index;
}

static bool parse_space(Parser *p, int *space) {
  static const struct {
    const char *word;
    int space;
  } spaces[] = {{"global", PTX_SPACE_GLOBAL}, {"const", PTX_SPACE_CONST}, {"shared", PTX_SPACE_SHARED},
                {"local", PTX_SPACE_LOCAL},   {"param", PTX_SPACE_PARAM}, {"tex", 0}};
  for (size_t i = 0; i < SOL_COUNT(spaces); i++)
    if (sol_ptx_take_word(p, spaces[i].word)) return *space = spaces[i].space, true;
  return sol_ptx_fail_expected(p, "a directive or a state space");
}

static bool check_space(Parser *p, const Declaration *d, int space, PtxLinkage linkage) {
  bool module = p->function == PTX_NONE;
  if (module && (space == PTX_SPACE_LOCAL || space == PTX_SPACE_PARAM))
    return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, d->at, "variables of the module cannot be .%s",
                        space == PTX_SPACE_LOCAL ? "local" : "param");
  if (d->size == 0 && linkage != PTX_LINK_EXTERN && d->unsized && !sol_ptx_is_mark(p, '='))
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, d->at, "'%.80s' has no size", d->name->text);
  return true;
}

bool sol_ptx_parse_variable(Parser *p, PtxLinkage linkage) {
  Declaration d;
  int space = 0;
  if (!parse_space(p, &space) || !sol_ptx_parse_declaration(p, &d, true)) return false;
  if (!space) { // .tex .u64 name: the old way to write .global .texref name
    space = PTX_SPACE_GLOBAL;
    d.type = PTX_TEXREF;
    d.size = d.count * 8;
  }
  for (;;) {
    if (!check_space(p, &d, space, linkage)) return false;
    uint32_t symbol = sol_ptx_add_symbol(p, &d, space, linkage);
    if (symbol == PTX_NONE) return false;
    if (sol_ptx_is_mark(p, '=') && !sol_ptx_parse_initialiser(p, &d, symbol)) return false;
    if (!sol_ptx_take(p, ',')) break;
    if (!parse_declarator(p, &d, true)) return false;
  }
  return sol_ptx_expect(p, ';');
}

// ---- registers ----

// Predicates have no size that a caller and a callee could agree on.
bool sol_ptx_take_formal_type(Parser *p, PtxType *type) {
  size_t at = p->lex.token.at - 1;
  if (!sol_ptx_take_type(p, type)) return false;
  PtxTypeClass class = sol_ptx_type_class(*type);
  if (class != PTX_CLASS_PRED && class != PTX_CLASS_ELEMENT && class != PTX_CLASS_OPAQUE) return true;
  return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "no parameter of a function can have type .%s",
                      sol_ptx_type_name(*type));
}

// .reg .b32 %r<10>, x;
bool sol_ptx_parse_reg(Parser *p) {
  uint8_t vec = sol_ptx_take_word(p, "v2") ? 2 : sol_ptx_take_word(p, "v4") ? 4 : 1;
  PtxType type;
  size_t type_at = p->lex.token.at;
  if (!sol_ptx_take_type(p, &type)) return false;
  PtxTypeClass class = sol_ptx_type_class(type);
  if (class == PTX_CLASS_ELEMENT || class == PTX_CLASS_OPAQUE || (class == PTX_CLASS_PRED && vec > 1))
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, type_at, "no register can have type .%s", sol_ptx_type_name(type));
  do {
    size_t at = p->lex.token.at;
    Name *name = sol_ptx_take_name(p, "a register's name");
    if (!name) return false;
    Binding *b;
    if (sol_ptx_take(p, '<')) {
      const Token *t = &p->lex.token;
      if (t->kind != TOKEN_INT || t->value > INT32_MAX) return sol_ptx_fail_expected(p, "how many registers");
      b = sol_ptx_bind_set(p, name, (uint32_t)t->value, at);
      sol_ptx_next(&p->lex);
      if (b && !sol_ptx_expect(p, '>')) return false;
    } else {
      b = sol_ptx_bind(p, name, BIND_REGS, at);
    }
    if (!b) return false;
    b->type = (uint8_t)type;
    b->vec = vec;
  } while (sol_ptx_take(p, ','));
  return sol_ptx_expect(p, ';');
}
