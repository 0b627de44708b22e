// Functions: their headers, and what is kept of them when the body has been read.
#include "ptx/internal.h"

static uint64_t round_up(uint64_t v, uint64_t to) {
  return (v + to - 1) / to * to;
}

// ---- formal parameters ----

typedef struct Formals {
  Vec symbols, regs; // uint32_t each, one PTX_NONE
} Formals;

static bool add_formal(Parser *p, Formals *f, uint32_t symbol, uint32_t reg) {
  uint32_t *to = sol_ptx_vec_add(&f->symbols, sizeof *to);
  uint32_t *to_reg = sol_ptx_vec_add(&f->regs, sizeof *to_reg);
  if (!to || !to_reg) return sol_ptx_fail_memory(p);
  *to = symbol;
  *to_reg = reg;
  return true;
}

// .reg .u32 a; a vector counts as so many formals.
static bool parse_reg_formal(Parser *p, Formals *f) {
  uint8_t vec = sol_ptx_take_word(p, "v2") ? 2 : sol_ptx_take_word(p, "v4") ? 4 : 1;
  PtxType type;
  if (!sol_ptx_take_formal_type(p, &type)) return false;
  size_t at = p->lex.token.at;
  Name *name = sol_ptx_take_name(p, "a register's name");
  if (!name) return false;
  Binding *b = sol_ptx_bind(p, name, BIND_REGS, at);
  if (!b) return false;
  b->type = (uint8_t)type;
  b->vec = vec;
  const Binding *found;
  uint32_t reg = sol_ptx_find_reg(p, name, &found);
  if (reg == PTX_NONE) return false;
  for (uint32_t i = 0; i < vec; i++)
    if (!add_formal(p, f, PTX_NONE, reg + i)) return false;
  return true;
}

static bool parse_formals(Parser *p, Formals *f, bool entry) {
  if (!sol_ptx_expect(p, '(')) return false;
  if (sol_ptx_take(p, ')')) return true;
  do {
    if (!entry && sol_ptx_take_word(p, "reg")) {
      if (!parse_reg_formal(p, f)) return false;
      continue;
    }
    Declaration d;
    if (!sol_ptx_take_word(p, "param")) return sol_ptx_fail_expected(p, "a parameter");
    if (!sol_ptx_parse_declaration(p, &d, false)) return false;
    uint32_t symbol = sol_ptx_add_symbol(p, &d, PTX_SPACE_PARAM, PTX_LINK_LOCAL);
    if (symbol == PTX_NONE || !add_formal(p, f, symbol, PTX_NONE)) return false;
  } while (sol_ptx_take(p, ','));
  return sol_ptx_expect(p, ')');
}

static bool keep_formals(Parser *p, Formals *f, const uint32_t **symbols, const uint32_t **regs,
                         uint32_t *count) {
  *count = f->symbols.count;
  *symbols = sol_ptx_keep_copy(p, f->symbols.data, *count * sizeof(uint32_t));
  *regs = sol_ptx_keep_copy(p, f->regs.data, *count * sizeof(uint32_t));
  return *symbols && *regs;
}

// ---- directives between the header and the body ----

static bool parse_three(Parser *p, uint32_t out[3], const char *what) {
  out[0] = out[1] = out[2] = 1;
  for (int i = 0; i < 3; i++) {
    if (!sol_ptx_constant_u32(p, &out[i], what)) return false;
    if (!sol_ptx_take(p, ',')) return true;
  }
  return sol_ptx_fail_expected(p, "at most three numbers");
}

bool sol_ptx_parse_pragma(Parser *p) {
  do {
    if (p->lex.token.kind != TOKEN_STRING) return sol_ptx_fail_expected(p, "a string");
    static const char rolled[] = "nounroll";
    if (p->lex.token.length == sizeof rolled - 1 &&
        memcmp(p->lex.text + p->lex.token.at, rolled, sizeof rolled - 1) == 0)
      p->rolled = true;
    sol_ptx_next(&p->lex);
  } while (sol_ptx_take(p, ','));
  return sol_ptx_expect(p, ';');
}

static bool parse_directive(Parser *p, PtxFunction *f, bool *any) {
  uint32_t ignored;
  *any = true;
  if (sol_ptx_take_word(p, "maxntid")) return parse_three(p, f->maxntid, ".maxntid");
  if (sol_ptx_take_word(p, "reqntid")) return parse_three(p, f->reqntid, ".reqntid");
  if (sol_ptx_take_word(p, "reqnctapercluster"))
    return parse_three(p, f->reqnctapercluster, ".reqnctapercluster");
  if (sol_ptx_take_word(p, "minnctapersm")) return sol_ptx_constant_u32(p, &f->minnctapersm, ".minnctapersm");
  if (sol_ptx_take_word(p, "maxnctapersm")) return sol_ptx_constant_u32(p, &f->maxnctapersm, ".maxnctapersm");
  if (sol_ptx_take_word(p, "maxnreg")) return sol_ptx_constant_u32(p, &f->maxnreg, ".maxnreg");
  if (sol_ptx_take_word(p, "maxclusterrank"))
    return sol_ptx_constant_u32(p, &f->maxclusterrank, ".maxclusterrank");
  if (sol_ptx_take_word(p, "abi_preserve")) return sol_ptx_constant_u32(p, &ignored, ".abi_preserve");
  if (sol_ptx_take_word(p, "abi_preserve_control"))
    return sol_ptx_constant_u32(p, &ignored, ".abi_preserve_control");
  if (sol_ptx_take_word(p, "explicitcluster")) return f->explicitcluster = true;
  if (sol_ptx_take_word(p, "blocksareclusters")) return f->blocksareclusters = true;
  if (sol_ptx_take_word(p, "noreturn")) return f->noreturn = true;
  if (sol_ptx_take_word(p, "pragma")) return sol_ptx_parse_pragma(p);
  *any = false;
  return true;
}

// ---- the end of a body ----

static void resolve_pointers(PtxOperand *operands, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (operands[i].kind == PTX_ARG_VEC || operands[i].kind == PTX_ARG_TEX)
      operands[i].elems = operands + (uintptr_t)operands[i].elems;
}

static bool keep_tables(Parser *p, PtxFunction *f) {
  uint32_t *targets = sol_ptx_keep_copy(p, p->table_targets.data, p->table_targets.count * sizeof *targets);
  PtxTable *tables = sol_ptx_keep_copy(p, p->tables.data, p->tables.count * sizeof *tables);
  if (!targets || !tables) return false;
  for (uint32_t i = 0; i < p->tables.count; i++) tables[i].targets = targets + (uintptr_t)tables[i].targets;
  f->tables = tables;
  f->table_count = p->tables.count;
  return true;
}

static bool keep_body(Parser *p, Func *f) {
  f->operands = sol_ptx_keep_copy(p, p->operands.data, p->operands.count * sizeof(PtxOperand));
  f->operand_count = p->operands.count;
  f->insts = sol_ptx_keep_copy(p, p->insts.data, p->insts.count * sizeof(PtxInst));
  if (!f->operands || !f->insts) return false;
  resolve_pointers(f->operands, f->operand_count);
  for (uint32_t i = 0; i < p->insts.count; i++)
    f->insts[i].operands = f->operands + (uintptr_t)f->insts[i].operands;
  f->pub.insts = f->insts;
  f->pub.inst_count = p->insts.count;
  f->pub.prototypes = sol_ptx_keep_copy(p, p->prototypes.data, p->prototypes.count * sizeof(PtxPrototype));
  f->pub.prototype_count = p->prototypes.count;
  f->pub.defined = true;
  return f->pub.prototypes && keep_tables(p, &f->pub);
}

static void start_function(Parser *p) {
  Vec *fresh[] = {&p->regs,          &p->insts,      &p->operands, &p->tables,
                  &p->table_targets, &p->prototypes, &p->pending};
  for (size_t i = 0; i < SOL_COUNT(fresh); i++) fresh[i]->count = 0;
  p->param_top = p->param_max = p->local_top = 0;
  p->local_align = 1;
  p->loc = PTX_NONE;
}

// ---- the whole ----

static bool same_sizes(const Parser *p, const uint32_t *a, const uint32_t *b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if ((a[i] == PTX_NONE) != (b[i] == PTX_NONE)) return false;
    if (a[i] == PTX_NONE) continue;
    if (VEC_AT(&p->symbols, PtxSymbol, a[i])->size != VEC_AT(&p->symbols, PtxSymbol, b[i])->size)
      return false;
  }
  return true;
}

static bool same_signature(const Parser *p, const PtxFunction *a, const PtxFunction *b) {
  return a->entry == b->entry && a->param_count == b->param_count && a->result_count == b->result_count &&
         same_sizes(p, a->params, b->params, a->param_count) &&
         same_sizes(p, a->results, b->results, a->result_count);
}

static void drop_symbols(Parser *p, const Func *f) {
  for (uint32_t i = 0; i < f->symbol_count; i++)
    VEC_AT(&p->symbols, PtxSymbol, f->symbol_first + i)->function = DROPPED;
}

// Joins a new declaration of a function with the one before it: the body counts, else the first.
static bool merge(Parser *p, uint32_t index, Func *f) {
  Func *old = VEC_AT(&p->functions, Func, index);
  if (!same_signature(p, &old->pub, &f->pub))
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, f->at, "'%.80s' was declared with other parameters",
                        f->name->text);
  if (old->pub.defined && f->pub.defined)
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, f->at, "'%.80s' has a second body", f->name->text);
  if (old->pub.linkage == PTX_LINK_EXTERN || old->pub.linkage == PTX_LINK_LOCAL)
    old->pub.linkage = f->pub.linkage;
  f->pub.linkage = old->pub.linkage;
  old->pub.noreturn |= f->pub.noreturn;
  f->pub.noreturn = old->pub.noreturn;
  if (!f->pub.defined) return drop_symbols(p, f), true;
  drop_symbols(p, old);
  *old = *f;
  return true;
}

// .func (results) name (parameters) directives body, or .entry name (parameters) directives body
static bool parse_header(Parser *p, Func *f, Formals *results, Formals *params) {
  f->pub.entry = sol_ptx_is_word(p, "entry");
  sol_ptx_next(&p->lex);
  Declaration attributes;
  if (sol_ptx_take_word(p, "attribute") && !sol_ptx_parse_attributes(p, &attributes)) return false;
  if (!f->pub.entry && sol_ptx_is_mark(p, '(') && !parse_formals(p, results, false)) return false;
  p->param_top = round_up(p->param_top, 16);
  f->pub.param_offset = p->param_top;
  f->at = p->lex.token.at;
  f->pub.line = p->lex.token.line;
  f->name = sol_ptx_take_name(p, "the function's name");
  if (!f->name) return false;
  if (sol_ptx_is_mark(p, '(') && !parse_formals(p, params, f->pub.entry)) return false;
  f->pub.param_size = p->param_top - f->pub.param_offset;
  bool any;
  do
    if (!parse_directive(p, &f->pub, &any)) return false;
  while (any);
  return keep_formals(p, results, &f->pub.results, &f->pub.result_regs, &f->pub.result_count) &&
         keep_formals(p, params, &f->pub.params, &f->pub.param_regs, &f->pub.param_count);
}

// The function's own number, known before its body is read, so that it can call itself.
static bool declare(Parser *p, Func *f, uint32_t *index, bool *again) {
  // The scope of the parameters is open; one of them may have the function's name.
  Binding **place = &f->name->bound;
  while (*place && (*place)->depth > 0) place = &(*place)->shadowed;
  const Binding *old = *place;
  *again = old && old->kind == BIND_FUNC;
  if (old && !*again)
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, f->at, "'%.80s' is declared a second time", f->name->text);
  *index = old ? old->index : p->functions.count;
  if (old) return true;
  Func *to = sol_ptx_vec_add(&p->functions, sizeof *to);
  if (!to) return sol_ptx_fail_memory(p);
  *to = *f;
  Binding *b = sol_ptx_bind_function(p, f->name, place);
  if (b) b->index = *index;
  return b != 0;
}

static bool keep_frame(Parser *p, Func *f) {
  f->pub.regs = sol_ptx_keep_copy(p, p->regs.data, p->regs.count * sizeof(PtxReg));
  f->pub.reg_count = p->regs.count;
  f->pub.param_bytes = p->param_max;
  f->pub.local_bytes = p->local_top;
  f->pub.local_align = p->local_align;
  f->symbol_count = p->symbols.count - f->symbol_first;
  return f->pub.regs != 0;
}

static bool parse_rest(Parser *p, Func *f) {
  uint32_t index = PTX_NONE;
  bool again = false;
  f->pub.name = sol_ptx_keep_name(p, f->name);
  f->pub.source = p->source_index;
  f->alias = PTX_NONE;
  if (!f->pub.name || !declare(p, f, &index, &again)) return false;
  for (uint32_t i = f->symbol_first; i < p->symbols.count; i++)
    VEC_AT(&p->symbols, PtxSymbol, i)->function = index;
  p->function = index;
  bool body = sol_ptx_is_mark(p, '{');
  if (!(body ? sol_ptx_parse_body(p) : sol_ptx_expect(p, ';')) || !sol_ptx_close_scope(p)) return false;
  if ((body && !keep_body(p, f)) || !keep_frame(p, f)) return false;
  if (again) return merge(p, index, f);
  *VEC_AT(&p->functions, Func, index) = *f;
  return true;
}

bool sol_ptx_parse_function(Parser *p, PtxLinkage linkage) {
  Func f = {.pub = {.linkage = (uint8_t)linkage}, .symbol_first = p->symbols.count};
  Formals results = {0}, params = {0};
  start_function(p);
  bool ok = sol_ptx_open_scope(p) && parse_header(p, &f, &results, &params) && parse_rest(p, &f);
  sol_ptx_vec_free(&results.symbols);
  sol_ptx_vec_free(&results.regs);
  sol_ptx_vec_free(&params.symbols);
  sol_ptx_vec_free(&params.regs);
  p->function = PTX_NONE;
  return ok;
}
