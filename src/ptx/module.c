// A source's top level, and loading as a whole.
#include "base/heap.h"
#include "ptx/internal.h"

// ---- a source ----

static bool parse_version(Parser *p) {
  const Token *t = &p->lex.token;
  if (t->kind != TOKEN_FLOAT) return sol_ptx_fail_expected(p, "a version such as 8.5");
  int numbers[2] = {0, 0}, which = 0;
  for (size_t i = 0; i < t->length; i++) {
    char c = p->lex.text[t->at + i];
    if (c == '.')
      which = 1;
    else if (c < '0' || c > '9' || numbers[which] > 1000)
      return sol_ptx_fail_expected(p, "a version such as 8.5");
    else
      numbers[which] = numbers[which] * 10 + (c - '0');
  }
  if (numbers[0] > p->version_major || (numbers[0] == p->version_major && numbers[1] > p->version_minor))
    p->version_major = numbers[0], p->version_minor = numbers[1];
  sol_ptx_next(&p->lex);
  return true;
}

// .target sm_90a, texmode_unified, debug
static bool parse_target(Parser *p) {
  do {
    const Token *t = &p->lex.token;
    const char *text = p->lex.text + t->at;
    if (t->kind != TOKEN_NAME) return sol_ptx_fail_expected(p, "a target such as sm_80");
    if (t->length == 14 && !memcmp(text, "map_f64_to_f32", 14))
      return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, t->at, "map_f64_to_f32 is not emulated");
    if (t->length > 3 && !memcmp(text, "sm_", 3)) {
      int number = 0;
      for (size_t i = 3; i < t->length && text[i] >= '0' && text[i] <= '9' && number < 10000; i++)
        number = number * 10 + (text[i] - '0');
      if (number > p->target) p->target = number;
    }
    sol_ptx_next(&p->lex);
  } while (sol_ptx_take(p, ','));
  return true;
}

static bool parse_address_size(Parser *p) {
  uint32_t bits;
  size_t at = p->lex.token.at;
  if (!sol_ptx_constant_u32(p, &bits, ".address_size")) return false;
  if (bits != 32 && bits != 64) return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, ".address_size is 32 or 64");
  if (p->address_bits && p->address_bits != (int)bits)
    return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, at, "modules of different .address_size cannot be linked");
  p->address_bits = (int)bits;
  return true;
}

static Func *take_function(Parser *p) {
  size_t at = p->lex.token.at;
  Name *name = sol_ptx_take_name(p, "a function's name");
  if (!name) return 0;
  if (name->bound && name->bound->kind == BIND_FUNC) return VEC_AT(&p->functions, Func, name->bound->index);
  sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "'%.80s' is no function", name->text);
  return 0;
}

// .alias name, of;
static bool parse_alias(Parser *p) {
  size_t at = p->lex.token.at;
  Func *alias = take_function(p);
  if (!alias || !sol_ptx_expect(p, ',')) return false;
  Func *of = take_function(p);
  if (!of) return false;
  if (alias == of || alias->pub.defined)
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "an alias stands for another function and has no body");
  alias->alias = (uint32_t)(of - VEC_AT(&p->functions, Func, 0));
  return sol_ptx_expect(p, ';');
}

static bool parse_declared(Parser *p) {
  PtxLinkage linkage = PTX_LINK_LOCAL;
  if (sol_ptx_take_word(p, "extern"))
    linkage = PTX_LINK_EXTERN;
  else if (sol_ptx_take_word(p, "visible"))
    linkage = PTX_LINK_VISIBLE;
  else if (sol_ptx_take_word(p, "weak"))
    linkage = PTX_LINK_WEAK;
  else if (sol_ptx_take_word(p, "common"))
    linkage = PTX_LINK_COMMON;
  if (sol_ptx_is_word(p, "func") || sol_ptx_is_word(p, "entry")) return sol_ptx_parse_function(p, linkage);
  return sol_ptx_parse_variable(p, linkage);
}

static bool parse_top(Parser *p) {
  if (p->lex.token.kind != TOKEN_WORD) return sol_ptx_take(p, ';') || sol_ptx_fail_expected(p, "a directive");
  if (sol_ptx_take_word(p, "version")) return parse_version(p);
  if (sol_ptx_take_word(p, "target")) return parse_target(p);
  if (sol_ptx_take_word(p, "address_size")) return parse_address_size(p);
  if (sol_ptx_take_word(p, "file")) return sol_ptx_parse_file(p);
  if (sol_ptx_take_word(p, "section")) return sol_ptx_parse_section(p);
  if (sol_ptx_take_word(p, "pragma")) return sol_ptx_parse_pragma(p);
  if (sol_ptx_take_word(p, "alias")) return parse_alias(p);
  return parse_declared(p);
}

static bool parse_source(Parser *p) {
  uint32_t first_loc = p->locs.count;
  p->lex = (Lexer){.text = p->source->text, .length = p->source->length, .line = 1};
  p->init_budget = 65536 + 16 * (uint64_t)p->source->length;
  p->function = PTX_NONE;
  p->depth = 0;
  sol_ptx_next(&p->lex);
  if (!sol_ptx_is_word(p, "version")) return sol_ptx_fail_expected(p, ".version, which PTX starts with");
  while (p->lex.token.kind != TOKEN_END)
    if (!parse_top(p)) return false;
  return sol_ptx_close_scope(p) && sol_ptx_finish_locs(p, first_loc);
}

// ---- loading ----

static bool name_sregs(Parser *p) {
  for (uint32_t i = 1; i < PTX_SREG_COUNT; i++) {
    const char *text = sol_ptx_sreg_name((PtxSreg)i);
    size_t length = strlen(text);
    if (length > 2 && text[length - 2] == '.') length -= 2;
    Name *name = sol_ptx_intern(&p->names, text, length);
    if (!name) return sol_ptx_fail_memory(p);
    if (!name->sreg) name->sreg = i;
  }
  char text[] = "%pm0_64";
  for (int i = 0; i < 8; i++, text[3]++) {
    Name *name = sol_ptx_intern(&p->names, text, sizeof text - 1);
    if (!name) return sol_ptx_fail_memory(p);
    name->sreg = PTX_SREG_PM64;
  }
  return true;
}

static bool keep_module(Parser *p, SolPtxModule *m) {
  PtxFunction *functions = sol_arena_alloc(p->keep, p->functions.count * sizeof *functions);
  const char **sources = sol_arena_alloc(p->keep, p->source_count * sizeof *sources);
  const PtxCode **codes = sol_arena_alloc(p->keep, p->codes.count * sizeof(void *));
  if (!functions || !sources || !codes) return sol_ptx_fail_memory(p);
  for (uint32_t i = 0; i < p->functions.count; i++) functions[i] = VEC_AT(&p->functions, Func, i)->pub;
  for (uint32_t i = 0; i < p->codes.count; i++) codes[i] = &(*VEC_AT(&p->codes, Code *, i))->pub;
  for (uint32_t i = 0; i < p->source_count; i++) {
    const char *name = p->sources[i].name ? p->sources[i].name : "ptx";
    sources[i] = sol_ptx_keep_text(p, name, strlen(name));
  }
  *m = (SolPtxModule){
      .functions = functions,
      .function_count = p->functions.count,
      .symbols = sol_ptx_keep_copy(p, p->symbols.data, p->symbols.count * sizeof(PtxSymbol)),
      .symbol_count = p->symbols.count,
      .codes = codes,
      .code_count = p->codes.count,
      .locs = sol_ptx_keep_copy(p, p->locs.data, p->locs.count * sizeof(PtxLoc)),
      .loc_count = p->locs.count,
      .files = sol_ptx_keep_copy(p, p->files.data, p->files.count * sizeof(char *)),
      .file_count = p->files.count,
      .sources = sources,
      .source_count = p->source_count,
      .version_major = p->version_major,
      .version_minor = p->version_minor,
      .target = p->target,
      .address_bits = p->address_bits ? p->address_bits : 64,
  };
  return p->status == SOL_OK;
}

static bool load(Parser *p, SolPtxModule *m) {
  p->names.arena = &p->scratch;
  if (!name_sregs(p)) return false;
  for (uint32_t i = 0; i < p->source_count; i++) {
    p->source_index = i;
    p->source = &p->sources[i];
    if (!parse_source(p)) return false;
  }
  if (!sol_ptx_link(p) || !sol_ptx_check_calls(p)) return false;
  for (uint32_t i = 0; i < p->functions.count; i++)
    if (!sol_ptx_flow(p, VEC_AT(&p->functions, Func, i))) return false;
  return sol_ptx_graph(p) && keep_module(p, m);
}

static void tidy(Parser *p) {
  Vec *vecs[] = {&p->functions,  &p->symbols, &p->symbol_extras, &p->codes,      &p->locs,
                 &p->loc_extras, &p->files,   &p->source_files,  &p->debug_text, &p->loc_slots,
                 &p->regs,       &p->insts,   &p->operands,      &p->tables,     &p->table_targets,
                 &p->prototypes, &p->pending};
  for (size_t i = 0; i < SOL_COUNT(vecs); i++) sol_ptx_vec_free(vecs[i]);
  sol_ptx_names_free(&p->names);
  sol_arena_free(&p->scratch);
}

// The module and the arena that holds all of it.
typedef struct Owned {
  SolPtxModule pub;
  SolArena arena;
} Owned;

SolStatus sol_ptx_load(const SolPtxSource *sources, int count, SolPtxModule **out, SolError *err) {
  if (!out) return sol_fail(err, SOL_ERR_ARGUMENT, "out must not be NULL");
  *out = NULL;
  if (!sources || count < 1) return sol_fail(err, SOL_ERR_ARGUMENT, "there must be at least one source");
  for (int i = 0; i < count; i++) {
    if (!sources[i].text && sources[i].length)
      return sol_fail(err, SOL_ERR_ARGUMENT, "a source's text must not be NULL");
    if (sources[i].length > PTX_MAX_TEXT)
      return sol_fail(err, SOL_ERR_RANGE, "a source is longer than 2 GiB");
  }
  Owned *owned = sol_heap_alloc(sizeof *owned);
  Parser *p = sol_heap_alloc(sizeof *p);
  SolStatus status = SOL_ERR_NO_SPACE;
  if (owned && p) {
    *owned = (Owned){0};
    memset(p, 0, sizeof *p);
    p->err = err;
    p->keep = &owned->arena;
    p->sources = p->source = sources;
    p->source_count = (uint32_t)count;
    status = load(p, &owned->pub) ? SOL_OK : p->status;
    tidy(p);
  } else {
    sol_fail(err, SOL_ERR_NO_SPACE, "out of memory while loading PTX");
  }
  sol_heap_free(p);
  if (status == SOL_OK)
    *out = &owned->pub;
  else
    sol_ptx_free(owned ? &owned->pub : NULL);
  return status;
}

void sol_ptx_free(SolPtxModule *module) {
  if (!module) return;
  Owned *owned = (Owned *)module;
  sol_arena_free(&owned->arena);
  sol_heap_free(owned);
}

// Of several with one name the visible one counts: local ones hide in their sources.
const PtxFunction *sol_ptx_find_function(const SolPtxModule *m, const char *name) {
  const PtxFunction *found = NULL;
  for (uint32_t i = 0; i < m->function_count; i++)
    if (!strcmp(m->functions[i].name, name) && (!found || found->linkage == PTX_LINK_LOCAL))
      found = &m->functions[i];
  return found;
}

const PtxSymbol *sol_ptx_find_symbol(const SolPtxModule *m, const char *name) {
  const PtxSymbol *found = NULL;
  for (uint32_t i = 0; i < m->symbol_count; i++)
    if (m->symbols[i].function == PTX_NONE && !strcmp(m->symbols[i].name, name) &&
        (!found || found->linkage == PTX_LINK_LOCAL))
      found = &m->symbols[i];
  return found;
}
