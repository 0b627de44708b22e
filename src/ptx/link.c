// Several sources into one module: each declaration to the definition it means, what is superseded left out.
#include "ptx/internal.h"

typedef struct Link {
  Parser *p;
  uint32_t *functions, *symbols; // by declaration: its number in the module, PTX_NONE where left out
} Link;

// Failures from here on are in the source that declares the thing concerned.
static Parser *in_source(Parser *p, uint32_t source) {
  p->source = &p->sources[source];
  return p;
}

// ---- functions ----

static Func *function_at(Parser *p, uint32_t i) {
  return VEC_AT(&p->functions, Func, i);
}

// How good a declaration is as the one that counts: a strong body, a weak one, none.
static int function_rank(const Func *f) {
  if (!f->pub.defined && f->alias == PTX_NONE) return 0;
  return f->pub.linkage == PTX_LINK_WEAK ? 1 : 2;
}

static bool is_shared_function(const Func *f) {
  return f->pub.linkage != PTX_LINK_LOCAL || function_rank(f) == 0;
}

static bool choose_functions(Parser *p) {
  for (uint32_t i = 0; i < p->functions.count; i++) {
    Func *f = function_at(p, i);
    if (!is_shared_function(f)) continue;
    uint32_t *chosen = &f->name->linked_function;
    if (!*chosen) {
      *chosen = i + 1;
      continue;
    }
    const Func *best = function_at(p, *chosen - 1);
    if (function_rank(f) == 2 && function_rank(best) == 2)
      return sol_ptx_fail(in_source(p, f->pub.source), SOL_ERR_SYNTAX, f->at,
                          "'%.80s' is defined in another source too", f->name->text);
    if (function_rank(f) > function_rank(best)) *chosen = i + 1;
  }
  return true;
}

// The declaration that `i` means; PTX_NONE for aliases of each other.
static uint32_t real_function(Parser *p, uint32_t i) {
  for (int steps = 0; steps < 64; steps++) {
    const Func *f = function_at(p, i);
    if (is_shared_function(f) && f->name->linked_function - 1 != i)
      i = f->name->linked_function - 1;
    else if (f->alias != PTX_NONE)
      i = f->alias;
    else
      return i;
  }
  return PTX_NONE;
}

static bool signatures_agree(Parser *p, const PtxFunction *a, const PtxFunction *b) {
  if (a->param_count != b->param_count || a->result_count != b->result_count) return false;
  for (uint32_t k = 0; k < a->param_count + a->result_count; k++) {
    bool param = k < a->param_count;
    uint32_t x = param ? a->params[k] : a->results[k - a->param_count],
             y = param ? b->params[k] : b->results[k - a->param_count];
    if ((x == PTX_NONE) != (y == PTX_NONE)) return false;
    if (x != PTX_NONE && VEC_AT(&p->symbols, PtxSymbol, x)->size != VEC_AT(&p->symbols, PtxSymbol, y)->size)
      return false;
  }
  return true;
}

static bool map_functions(Link *l) {
  Parser *p = l->p;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->functions.count; i++) {
    const Func *f = function_at(p, i);
    uint32_t real = real_function(p, i);
    if (real == PTX_NONE)
      return sol_ptx_fail(in_source(p, f->pub.source), SOL_ERR_SYNTAX, f->at, "'%.80s' is an alias of itself",
                          f->name->text);
    if (!signatures_agree(p, &f->pub, &function_at(p, real)->pub))
      return sol_ptx_fail(in_source(p, f->pub.source), SOL_ERR_SYNTAX, f->at,
                          "'%.80s' has other parameters where it is defined", f->name->text);
    l->functions[i] = real == i ? kept++ : PTX_NONE;
  }
  for (uint32_t i = 0; i < p->functions.count; i++)
    if (l->functions[i] == PTX_NONE)
      l->functions[i] = l->functions[real_function(p, i)] | 0x80000000u; // known, not kept
  return true;
}

static bool is_kept(uint32_t mapped) {
  return mapped != PTX_NONE && !(mapped & 0x80000000u);
}

// ---- symbols ----

static PtxSymbol *symbol_at(Parser *p, uint32_t i) {
  return VEC_AT(&p->symbols, PtxSymbol, i);
}

static int symbol_rank(const PtxSymbol *s) {
  switch (s->linkage) {
  case PTX_LINK_VISIBLE: return 3;
  case PTX_LINK_WEAK: return 2;
  case PTX_LINK_COMMON: return 1;
  default: return 0;
  }
}

static bool is_shared_symbol(const PtxSymbol *s) {
  return s->function == PTX_NONE && s->linkage != PTX_LINK_LOCAL && !s->dynamic;
}

static bool choose_symbols(Parser *p) {
  for (uint32_t i = 0; i < p->symbols.count; i++) {
    PtxSymbol *s = symbol_at(p, i);
    const SymbolExtra *extra = VEC_AT(&p->symbol_extras, SymbolExtra, i);
    if (!is_shared_symbol(s)) continue;
    uint32_t *chosen = &extra->name->linked_symbol;
    if (!*chosen) {
      *chosen = i + 1;
      continue;
    }
    PtxSymbol *best = symbol_at(p, *chosen - 1);
    int rank = symbol_rank(s), best_rank = symbol_rank(best);
    if (s->space != best->space)
      return sol_ptx_fail(in_source(p, s->source), SOL_ERR_SYNTAX, extra->at,
                          "'%.80s' is in another state space in another source", s->name);
    if (rank == 3 && best_rank == 3)
      return sol_ptx_fail(in_source(p, s->source), SOL_ERR_SYNTAX, extra->at,
                          "'%.80s' is defined in another source too", s->name);
    if (rank && best_rank && s->size != best->size && (rank != 1 || best_rank != 1))
      return sol_ptx_fail(in_source(p, s->source), SOL_ERR_SYNTAX, extra->at,
                          "'%.80s' has another size in another source", s->name);
    if (rank > best_rank || (rank == best_rank && s->size > best->size)) *chosen = i + 1;
  }
  return true;
}

static bool map_symbols(Link *l) {
  Parser *p = l->p;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->symbols.count; i++) {
    const PtxSymbol *s = symbol_at(p, i);
    bool owned = s->function != PTX_NONE;
    bool keep = owned ? s->function != DROPPED && is_kept(l->functions[s->function]) : true;
    if (keep && is_shared_symbol(s))
      keep = VEC_AT(&p->symbol_extras, SymbolExtra, i)->name->linked_symbol - 1 == i;
    l->symbols[i] = keep ? kept++ : PTX_NONE;
  }
  for (uint32_t i = 0; i < p->symbols.count; i++) {
    const PtxSymbol *s = symbol_at(p, i);
    if (l->symbols[i] != PTX_NONE || !is_shared_symbol(s)) continue;
    l->symbols[i] =
        l->symbols[VEC_AT(&p->symbol_extras, SymbolExtra, i)->name->linked_symbol - 1] | 0x80000000u;
  }
  return true;
}

// ---- rewriting ----

static uint32_t new_function(const Link *l, uint32_t i) {
  return l->functions[i] & 0x7fffffffu;
}

static bool new_symbol(const Link *l, uint32_t *i) {
  uint32_t mapped = l->symbols[*i];
  if (mapped == PTX_NONE)
    return sol_ptx_fail(l->p, SOL_ERR_SYNTAX, 0, "a variable is used outside its function");
  const SymbolExtra *extra = VEC_AT(&l->p->symbol_extras, SymbolExtra, *i);
  const PtxSymbol *declared = symbol_at(l->p, *i), *s = declared;
  if (is_shared_symbol(s)) s = symbol_at(l->p, extra->name->linked_symbol - 1);
  if (s->linkage == PTX_LINK_EXTERN && !s->dynamic) {
    sol_ptx_fail(in_source(l->p, declared->source), SOL_ERR_SYNTAX, extra->at,
                 "'%.80s' is declared .extern and defined nowhere", s->name);
    sol_hint(l->p->err, "load the PTX of all translation units together");
    return false;
  }
  *i = mapped & 0x7fffffffu;
  return true;
}

static bool rewrite_operands(const Link *l, Func *f) {
  for (uint32_t i = 0; i < f->operand_count; i++) {
    PtxOperand *o = &f->operands[i];
    if (o->kind == PTX_ARG_FUNC)
      o->index = new_function(l, o->index);
    else if (o->kind == PTX_ARG_SYMBOL && !new_symbol(l, &o->index))
      return false;
    else if (o->kind == PTX_ARG_MEM && o->symbol != PTX_NONE && !new_symbol(l, &o->symbol))
      return false;
  }
  return true;
}

static bool rewrite_formals(const Link *l, const uint32_t *formals, uint32_t count) {
  uint32_t *symbols = (uint32_t *)(uintptr_t)formals; // writable until the module is returned
  for (uint32_t i = 0; i < count; i++)
    if (symbols[i] != PTX_NONE && !new_symbol(l, &symbols[i])) return false;
  return true;
}

static bool rewrite_functions(const Link *l) {
  Parser *p = l->p;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->functions.count; i++) {
    Func *f = function_at(p, i);
    if (!is_kept(l->functions[i])) continue;
    if (!rewrite_operands(l, f) || !rewrite_formals(l, f->pub.params, f->pub.param_count) ||
        !rewrite_formals(l, f->pub.results, f->pub.result_count))
      return false;
    for (uint32_t k = 0; k < f->pub.prototype_count; k++) {
      uint32_t *targets = (uint32_t *)(uintptr_t)f->pub.prototypes[k].targets;
      for (uint32_t t = 0; t < f->pub.prototypes[k].target_count; t++)
        targets[t] = new_function(l, targets[t]);
    }
    if (!f->pub.defined) f->pub.linkage = PTX_LINK_EXTERN;
    *function_at(p, kept++) = *f;
  }
  p->functions.count = kept;
  return true;
}

// Symbols are rewritten and moved last: the functions' operands still go by their old numbers.
static bool rewrite_symbols(const Link *l) {
  Parser *p = l->p;
  for (uint32_t i = 0; i < p->symbols.count; i++) {
    PtxSymbol *s = symbol_at(p, i);
    if (!is_kept(l->symbols[i])) continue;
    if (s->function != PTX_NONE) s->function = new_function(l, s->function);
    PtxReloc *relocs = (PtxReloc *)(uintptr_t)s->relocs;
    for (uint32_t k = 0; k < s->reloc_count; k++) {
      if (relocs[k].function != PTX_NONE)
        relocs[k].function = new_function(l, relocs[k].function);
      else if (!new_symbol(l, &relocs[k].symbol))
        return false;
    }
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->symbols.count; i++) {
    if (!is_kept(l->symbols[i])) continue;
    *symbol_at(p, kept) = *symbol_at(p, i);
    *VEC_AT(&p->symbol_extras, SymbolExtra, kept) = *VEC_AT(&p->symbol_extras, SymbolExtra, i);
    kept++;
  }
  p->symbols.count = p->symbol_extras.count = kept;
  return true;
}

bool sol_ptx_link(Parser *p) {
  Link l = {p, sol_arena_alloc(&p->scratch, p->functions.count * sizeof(uint32_t)),
            sol_arena_alloc(&p->scratch, p->symbols.count * sizeof(uint32_t))};
  if (!l.functions || !l.symbols) return sol_ptx_fail_memory(p);
  return choose_functions(p) && choose_symbols(p) && map_functions(&l) && map_symbols(&l) &&
         rewrite_functions(&l) && rewrite_symbols(&l);
}
