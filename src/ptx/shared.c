// What shared memory each kernel needs: the variables that it and the functions it may reach name, laid out.
#include "ptx/internal.h"

typedef struct Reach {
  Parser *p;
  uint32_t *met, *met_symbol; // by function and symbol: the last kernel that reached it, plus one
  uint32_t *queue;
  uint32_t queued;
  Vec *used; // per function: uint32_t, the shared symbols it names
  Vec vars;  // PtxSharedVar
  uint64_t budget;
} Reach;

static PtxSymbol *symbol_at(Parser *p, uint32_t i) {
  return VEC_AT(&p->symbols, PtxSymbol, i);
}

static bool note_use(Reach *r, uint32_t function, uint32_t symbol, uint32_t *last) {
  if (symbol == PTX_NONE || symbol_at(r->p, symbol)->space != PTX_SPACE_SHARED ||
      last[symbol] == function + 1)
    return true;
  last[symbol] = function + 1;
  uint32_t *to = sol_ptx_vec_add(&r->used[function], sizeof *to);
  if (!to) return sol_ptx_fail_memory(r->p);
  *to = symbol;
  return true;
}

static bool list_uses(Reach *r, uint32_t function, uint32_t *last) {
  const Func *f = VEC_AT(&r->p->functions, Func, function);
  for (uint32_t i = 0; i < f->operand_count; i++) {
    const PtxOperand *o = &f->operands[i];
    if (o->kind == PTX_ARG_SYMBOL && !note_use(r, function, o->index, last)) return false;
    if (o->kind == PTX_ARG_MEM && !note_use(r, function, o->symbol, last)) return false;
  }
  return true;
}

static void reach(Reach *r, uint32_t function, uint32_t kernel) {
  if (r->met[function] == kernel + 1) return;
  r->met[function] = kernel + 1;
  r->queue[r->queued++] = function;
}

static uint64_t round_up(uint64_t v, uint64_t to) {
  return (v + to - 1) / to * to;
}

static bool add_variable(Reach *r, Func *kernel, uint32_t symbol) {
  const PtxSymbol *s = symbol_at(r->p, symbol);
  if (s->dynamic) {
    kernel->pub.uses_dynamic_shared = true;
    if (s->align > kernel->pub.dynamic_align) kernel->pub.dynamic_align = s->align;
  }
  if (!r->budget--)
    return sol_ptx_fail(r->p, SOL_ERR_RANGE, 0, "too many kernels use too many shared variables");
  PtxSharedVar *v = sol_ptx_vec_add(&r->vars, sizeof *v);
  if (!v) return sol_ptx_fail_memory(r->p);
  *v = (PtxSharedVar){symbol, 0};
  return true;
}

static bool place_variables(Reach *r, Func *kernel) {
  PtxSharedVar *vars = r->vars.data;
  uint64_t top = 0;
  for (uint32_t i = 0; i < r->vars.count; i++) {
    const PtxSymbol *s = symbol_at(r->p, vars[i].symbol);
    if (s->dynamic) continue;
    vars[i].offset = round_up(top, s->align);
    top = vars[i].offset + s->size;
    if (top > (uint64_t)1 << 41)
      return sol_ptx_fail(r->p, SOL_ERR_RANGE, kernel->at, "with '%.80s' the .shared variables are too large",
                          s->name);
  }
  kernel->pub.shared_bytes = top;
  for (uint32_t i = 0; i < r->vars.count; i++)
    if (symbol_at(r->p, vars[i].symbol)->dynamic) vars[i].offset = round_up(top, kernel->pub.dynamic_align);
  return true;
}

static bool lay_out(Reach *r, uint32_t kernel, const Vec *taken) {
  Func *k = VEC_AT(&r->p->functions, Func, kernel);
  bool indirect = false;
  r->queued = 0;
  r->vars.count = 0;
  k->pub.dynamic_align = 1;
  reach(r, kernel, kernel);
  for (uint32_t i = 0; i < r->queued; i++) {
    uint32_t function = r->queue[i];
    const PtxFunction *f = &VEC_AT(&r->p->functions, Func, function)->pub;
    for (uint32_t c = 0; c < f->callee_count; c++) reach(r, f->callees[c], kernel);
    if (f->calls_indirectly && !indirect)
      for (uint32_t t = 0; t < taken->count; t++) reach(r, *VEC_AT(taken, uint32_t, t), kernel);
    indirect |= f->calls_indirectly;
    for (uint32_t u = 0; u < r->used[function].count; u++) {
      uint32_t symbol = *VEC_AT(&r->used[function], uint32_t, u);
      if (r->met_symbol[symbol] == kernel + 1) continue;
      r->met_symbol[symbol] = kernel + 1;
      if (!add_variable(r, k, symbol)) return false;
    }
  }
  if (!place_variables(r, k)) return false;
  k->pub.shared_count = r->vars.count;
  k->pub.shared = sol_ptx_keep_copy(r->p, r->vars.data, r->vars.count * sizeof(PtxSharedVar));
  return k->pub.shared != 0;
}

bool sol_ptx_lay_out_shared(Parser *p, const Vec *taken) {
  uint32_t functions = p->functions.count, symbols = p->symbols.count;
  Reach r = {.p = p,
             .met = sol_arena_alloc(&p->scratch, functions * sizeof(uint32_t)),
             .met_symbol = sol_arena_alloc(&p->scratch, symbols * sizeof(uint32_t)),
             .queue = sol_arena_alloc(&p->scratch, functions * sizeof(uint32_t)),
             .used = sol_arena_alloc(&p->scratch, functions * sizeof(Vec)),
             .budget = 1000000 + (uint64_t)symbols * 16};
  uint32_t *last = sol_arena_alloc(&p->scratch, symbols * sizeof(uint32_t));
  if (!r.met || !r.met_symbol || !r.queue || !r.used || !last) return sol_ptx_fail_memory(p);
  bool ok = true;
  for (uint32_t i = 0; ok && i < functions; i++) ok = list_uses(&r, i, last);
  for (uint32_t i = 0; ok && i < functions; i++)
    if (VEC_AT(&p->functions, Func, i)->pub.entry && VEC_AT(&p->functions, Func, i)->pub.defined)
      ok = lay_out(&r, i, taken);
  for (uint32_t i = 0; i < functions; i++) sol_ptx_vec_free(&r.used[i]);
  sol_ptx_vec_free(&r.vars);
  return ok;
}
