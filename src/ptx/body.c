// A function's body: blocks, labels, directives, guards and instructions.
#include "ptx/internal.h"

// ---- labelled directives ----

// label: .branchtargets L1, L2;
static bool parse_branch_targets(Parser *p, Name *label, size_t at) {
  uint32_t first = p->table_targets.count;
  do {
    size_t target_at = p->lex.token.at;
    Name *name = sol_ptx_take_name(p, "a label");
    uint32_t *target = name ? sol_ptx_vec_add(&p->table_targets, sizeof *target) : NULL;
    Pending *use = name ? sol_ptx_vec_add(&p->pending, sizeof *use) : NULL;
    if (!name) return false;
    if (!target || !use) return sol_ptx_fail_memory(p);
    *use = (Pending){name, p->table_targets.count - 1, true, target_at};
  } while (sol_ptx_take(p, ','));
  PtxTable *table = sol_ptx_vec_add(&p->tables, sizeof *table);
  if (!table) return sol_ptx_fail_memory(p);
  *table = (PtxTable){(const uint32_t *)(uintptr_t)first, p->table_targets.count - first};
  return sol_ptx_bind_label(p, label, LABEL_TABLE, p->tables.count - 1, at) && sol_ptx_expect(p, ';');
}

static bool add_prototype(Parser *p, Name *label, size_t at, const PtxPrototype *prototype) {
  PtxPrototype *to = sol_ptx_vec_add(&p->prototypes, sizeof *to);
  if (!to) return sol_ptx_fail_memory(p);
  *to = *prototype;
  return sol_ptx_bind_label(p, label, LABEL_PROTOTYPE, p->prototypes.count - 1, at) && sol_ptx_expect(p, ';');
}

// Sizes of formal parameters; the sizes themselves are what a caller and a callee have to agree on.
static bool parse_sizes(Parser *p, const uint32_t **sizes, uint32_t *count) {
  Vec found = {0};
  bool ok = sol_ptx_expect(p, '(');
  while (ok && !sol_ptx_is_mark(p, ')')) {
    Declaration d;
    PtxType type = PTX_TYPE_NONE;
    uint32_t *size = sol_ptx_vec_add(&found, sizeof *size);
    if (!size) {
      ok = sol_ptx_fail_memory(p);
    } else if (sol_ptx_take_word(p, "reg")) {
      ok = sol_ptx_take_formal_type(p, &type) && sol_ptx_take_name(p, "a register's name");
      *size = (uint32_t)sol_ptx_type_bits(type) / 8;
    } else {
      ok = (sol_ptx_take_word(p, "param") || sol_ptx_fail_expected(p, "a parameter")) &&
           sol_ptx_parse_declaration(p, &d, false);
      if (ok && d.size > MAX_PARAM_BYTES)
        ok = sol_ptx_fail(p, SOL_ERR_RANGE, d.at, "a parameter takes more than %d bytes", MAX_PARAM_BYTES);
      if (ok) *size = (uint32_t)d.size;
    }
    if (ok && !sol_ptx_take(p, ',')) break;
  }
  ok = ok && sol_ptx_expect(p, ')');
  *count = found.count;
  if (ok) *sizes = sol_ptx_keep_copy(p, found.data, found.count * sizeof(uint32_t));
  sol_ptx_vec_free(&found);
  return ok && *sizes;
}

// label: .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn;
static bool parse_prototype(Parser *p, Name *label, size_t at) {
  PtxPrototype prototype = {0};
  uint32_t ignored;
  if (sol_ptx_is_mark(p, '(') && !parse_sizes(p, &prototype.result_bytes, &prototype.result_count))
    return false;
  if (!sol_ptx_take_name(p, "'_'")) return false;
  if (sol_ptx_is_mark(p, '(') && !parse_sizes(p, &prototype.param_bytes, &prototype.param_count))
    return false;
  for (;;) {
    if (sol_ptx_take_word(p, "noreturn"))
      prototype.noreturn = true;
    else if (!sol_ptx_take_word(p, "abi_preserve") && !sol_ptx_take_word(p, "abi_preserve_control"))
      break;
    else if (!sol_ptx_constant_u32(p, &ignored, ".abi_preserve"))
      return false;
  }
  return add_prototype(p, label, at, &prototype);
}

// label: .calltargets f1, f2; the signature is that of the functions, which linking fills in.
static bool parse_call_targets(Parser *p, Name *label, size_t at) {
  Vec found = {0};
  bool ok = true;
  do {
    size_t name_at = p->lex.token.at;
    Name *name = sol_ptx_take_name(p, "a function's name");
    uint32_t *target = name ? sol_ptx_vec_add(&found, sizeof *target) : NULL;
    if (!name)
      ok = false;
    else if (!target)
      ok = sol_ptx_fail_memory(p);
    else if (!name->bound || name->bound->kind != BIND_FUNC)
      ok = sol_ptx_fail(p, SOL_ERR_SYNTAX, name_at, "'%.80s' is no function", name->text);
    else
      *target = name->bound->index;
  } while (ok && sol_ptx_take(p, ','));
  PtxPrototype prototype = {.target_count = found.count};
  if (ok) prototype.targets = sol_ptx_keep_copy(p, found.data, found.count * sizeof(uint32_t));
  sol_ptx_vec_free(&found);
  return ok && prototype.targets && add_prototype(p, label, at, &prototype);
}

static bool parse_label(Parser *p) {
  size_t at = p->lex.token.at;
  Name *name = sol_ptx_take_name(p, "a label");
  if (!name || !sol_ptx_expect(p, ':')) return false;
  if (sol_ptx_take_word(p, "branchtargets")) return parse_branch_targets(p, name, at);
  if (sol_ptx_take_word(p, "callprototype")) return parse_prototype(p, name, at);
  if (sol_ptx_take_word(p, "calltargets")) return parse_call_targets(p, name, at);
  return sol_ptx_bind_label(p, name, LABEL_INST, p->insts.count, at);
}

// ---- instructions ----

static bool parse_guard(Parser *p, uint32_t *guard, bool *negated) {
  sol_ptx_next(&p->lex); // '@'
  *negated = sol_ptx_take(p, '!');
  size_t at = p->lex.token.at;
  Name *name = sol_ptx_take_name(p, "a predicate");
  if (!name) return false;
  const Binding *b = NULL;
  *guard = sol_ptx_find_reg(p, name, &b);
  if (*guard == PTX_NONE || b->type != PTX_PRED)
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "'%.80s' is no predicate", name->text);
  return true;
}

static bool parse_inst(Parser *p) {
  PtxInst inst = {.guard = PTX_NONE, .reconverge = PTX_NONE, .prototype = PTX_NONE, .loc = p->loc};
  if (sol_ptx_is_mark(p, '@') && !parse_guard(p, &inst.guard, &inst.guard_not)) return false;
  if (p->lex.token.kind != TOKEN_NAME) return sol_ptx_fail_expected(p, "an instruction");
  inst.line = p->lex.token.line;
  char text[MAX_OPCODE];
  size_t at = p->lex.token.at, length;
  if (!sol_ptx_lex_opcode(&p->lex, text, sizeof text, &length))
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "this opcode is too long");
  const Code *code = sol_ptx_code_of(p, text, length, at);
  if (!code) return false;
  inst.code = &code->pub;
  bool ok = code->pub.op == PTX_OP_CALL ? sol_ptx_parse_call(p, code, &inst, at)
                                        : sol_ptx_parse_operands(p, code, &inst, at);
  if (!ok || !sol_ptx_expect(p, ';')) return false;
  PtxInst *to = sol_ptx_vec_add(&p->insts, sizeof *to);
  if (!to) return sol_ptx_fail_memory(p);
  *to = inst;
  to->rolled = p->rolled;
  p->rolled = false;
  return true;
}

// ---- statements ----

static bool is_label(const Parser *p) {
  size_t at = p->lex.next;
  while (at < p->lex.length && (p->lex.text[at] == ' ' || p->lex.text[at] == '\t')) at++;
  return at < p->lex.length && p->lex.text[at] == ':';
}

static bool parse_statement(Parser *p) {
  switch (p->lex.token.kind) {
  case TOKEN_NAME: return is_label(p) ? parse_label(p) : parse_inst(p);
  case TOKEN_MARK: return sol_ptx_take(p, ';') || parse_inst(p);
  case TOKEN_WORD:
    if (sol_ptx_take_word(p, "reg")) return sol_ptx_parse_reg(p);
    if (sol_ptx_take_word(p, "loc")) return sol_ptx_parse_loc(p);
    if (sol_ptx_take_word(p, "pragma")) return sol_ptx_parse_pragma(p);
    if (sol_ptx_take_word(p, "file")) return sol_ptx_parse_file(p);
    if (sol_ptx_take_word(p, "extern")) return sol_ptx_parse_variable(p, PTX_LINK_EXTERN);
    return sol_ptx_parse_variable(p, PTX_LINK_LOCAL);
  default: return sol_ptx_fail_expected(p, "an instruction");
  }
}

bool sol_ptx_parse_body(Parser *p) {
  uint16_t depth = p->depth;
  size_t open = p->lex.token.at;
  sol_ptx_next(&p->lex); // '{'
  for (;;) {
    if (sol_ptx_is_mark(p, '{')) {
      if (!sol_ptx_open_scope(p)) return false;
      sol_ptx_next(&p->lex);
    } else if (sol_ptx_is_mark(p, '}')) {
      sol_ptx_next(&p->lex);
      if (p->depth == depth) return true;
      if (!sol_ptx_close_scope(p)) return false;
    } else if (p->lex.token.kind == TOKEN_END) {
      return sol_ptx_fail(p, SOL_ERR_SYNTAX, open, "this body does not end: a '}' is missing");
    } else if (!parse_statement(p)) {
      return false;
    }
  }
}
