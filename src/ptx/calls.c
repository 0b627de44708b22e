// Calls: arguments against parameters, who calls whom, who may call itself.
#include "base/heap.h"
#include "ptx/internal.h"

static Func *function_at(Parser *p, uint32_t i) {
  return VEC_AT(&p->functions, Func, i);
}

// ---- signatures ----

// Linked instructions know their line only; that is where the message points.
static bool fail_at_line(Parser *p, const Func *f, const PtxInst *inst, const char *what) {
  p->source = &p->sources[f->pub.source];
  size_t at = 0;
  for (uint32_t line = 1; line < inst->line && at < p->source->length; at++)
    line += p->source->text[at] == '\n';
  while (at < p->source->length && (p->source->text[at] == ' ' || p->source->text[at] == '\t')) at++;
  return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "'%.80s': %s", inst->code->text, what);
}

static uint64_t formal_size(Parser *p, const PtxFunction *f, uint32_t symbol, uint32_t reg) {
  if (symbol != PTX_NONE) return VEC_AT(&p->symbols, PtxSymbol, symbol)->size;
  return (uint64_t)sol_ptx_type_bits(f->regs[reg].type) / 8;
}

static bool argument_fits(Parser *p, const PtxFunction *caller, const PtxOperand *o, uint64_t size) {
  switch (o->kind) {
  case PTX_ARG_SYMBOL: return VEC_AT(&p->symbols, PtxSymbol, o->index)->size == size;
  case PTX_ARG_REG: return (uint64_t)sol_ptx_type_bits(caller->regs[o->index].type) / 8 == size;
  default: return size <= 8;
  }
}

// The size of the i-th parameter or result of what an instruction calls.
static uint64_t size_of(Parser *p, const PtxFunction *callee, const PtxPrototype *prototype, bool result,
                        uint32_t i) {
  if (!callee) return result ? prototype->result_bytes[i] : prototype->param_bytes[i];
  return result ? formal_size(p, callee, callee->results[i], callee->result_regs[i])
                : formal_size(p, callee, callee->params[i], callee->param_regs[i]);
}

static bool check_call(Parser *p, Func *f, const PtxInst *inst) {
  const PtxPrototype *prototype = inst->prototype != PTX_NONE ? &f->pub.prototypes[inst->prototype] : NULL;
  const PtxFunction *callee =
      inst->operands[0].kind == PTX_ARG_FUNC ? &function_at(p, inst->operands[0].index)->pub : NULL;
  if (!callee && !prototype) return fail_at_line(p, f, inst, "a prototype is missing");
  if (!callee && prototype->target_count) callee = &function_at(p, prototype->targets[0])->pub;
  if (callee && callee->entry) return fail_at_line(p, f, inst, "a kernel cannot be called");
  for (int k = 1; k <= 2; k++) {
    const PtxOperand *list = &inst->operands[k];
    uint32_t count = k == 1 ? (callee ? callee->result_count : prototype->result_count)
                            : (callee ? callee->param_count : prototype->param_count);
    if (list->count != count)
      return fail_at_line(p, f, inst,
                          k == 1 ? "another number of results is expected"
                                 : "another number of arguments is expected");
    for (uint32_t i = 0; i < count; i++)
      if (!argument_fits(p, &f->pub, &list->elems[i], size_of(p, callee, prototype, k == 1, i)))
        return fail_at_line(p, f, inst,
                            k == 1 ? "a result has another size" : "an argument has another size");
  }
  return true;
}

// .calltargets leave the signature to the functions they name.
static bool fill_prototypes(Parser *p, Func *f) {
  PtxPrototype *prototypes =
      (PtxPrototype *)(uintptr_t)f->pub.prototypes; // writable until the module is returned
  for (uint32_t i = 0; i < f->pub.prototype_count; i++) {
    PtxPrototype *to = &prototypes[i];
    if (!to->target_count) continue;
    const PtxFunction *target = &function_at(p, to->targets[0])->pub;
    uint32_t *results = sol_arena_alloc(p->keep, target->result_count * sizeof *results);
    uint32_t *params = sol_arena_alloc(p->keep, target->param_count * sizeof *params);
    if (!results || !params) return sol_ptx_fail_memory(p);
    for (uint32_t k = 0; k < target->result_count; k++) results[k] = (uint32_t)size_of(p, target, 0, true, k);
    for (uint32_t k = 0; k < target->param_count; k++) params[k] = (uint32_t)size_of(p, target, 0, false, k);
    to->result_bytes = results, to->result_count = target->result_count;
    to->param_bytes = params, to->param_count = target->param_count;
  }
  return true;
}

bool sol_ptx_check_calls(Parser *p) {
  for (uint32_t i = 0; i < p->functions.count; i++) {
    Func *f = function_at(p, i);
    if (!fill_prototypes(p, f)) return false;
    for (uint32_t k = 0; k < f->pub.inst_count; k++)
      if (f->insts[k].code->op == PTX_OP_CALL && !check_call(p, f, &f->insts[k])) return false;
  }
  return true;
}

// ---- the graph ----

static void take_addresses(Parser *p) {
  for (uint32_t i = 0; i < p->functions.count; i++) {
    const Func *f = function_at(p, i);
    for (uint32_t k = 0; k < f->pub.inst_count; k++) {
      const PtxInst *inst = &f->insts[k];
      if (inst->code->op != PTX_OP_MOV) continue;
      const PtxOperand *from = &inst->operands[1];
      if (from->kind == PTX_ARG_FUNC) function_at(p, from->index)->pub.address_taken = true;
    }
  }
  for (uint32_t i = 0; i < p->symbols.count; i++) {
    const PtxSymbol *s = VEC_AT(&p->symbols, PtxSymbol, i);
    for (uint32_t k = 0; k < s->reloc_count; k++)
      if (s->relocs[k].function != PTX_NONE) function_at(p, s->relocs[k].function)->pub.address_taken = true;
  }
}

// Each function's direct callees, once each; `seen` has the last caller that listed a function.
static bool list_callees(Parser *p, uint32_t caller, uint32_t *seen, Vec *found) {
  Func *f = function_at(p, caller);
  found->count = 0;
  for (uint32_t k = 0; k < f->pub.inst_count; k++) {
    const PtxInst *inst = &f->insts[k];
    f->pub.uses_alloca |= inst->code->op == PTX_OP_ALLOCA;
    if (inst->code->op != PTX_OP_CALL) continue;
    f->pub.calls_indirectly |= inst->operands[0].kind != PTX_ARG_FUNC;
    uint32_t callee = inst->operands[0].index;
    if (inst->operands[0].kind != PTX_ARG_FUNC || seen[callee] == caller + 1) continue;
    seen[callee] = caller + 1;
    uint32_t *to = sol_ptx_vec_add(found, sizeof *to);
    if (!to) return sol_ptx_fail_memory(p);
    *to = callee;
  }
  f->pub.callee_count = found->count;
  f->pub.callees = sol_ptx_keep_copy(p, found->data, found->count * sizeof(uint32_t));
  return f->pub.callees != 0;
}

// Tarjan's strongly connected components, with an explicit stack. Node `functions.count` stands for "some
// function whose address is taken": indirect calls go to it, and it calls all of those.
typedef struct Walk {
  Parser *p;
  uint32_t *order, *low, *at, *stack, *path; // order: 0 not met; at: next callee to look at
  bool *on_stack;
  const uint32_t *taken;
  uint32_t taken_count, count, depth, top, next;
} Walk;

static bool next_callee(Walk *w, uint32_t node, uint32_t *callee) {
  uint32_t i = w->at[node]++;
  if (node == w->count) return i < w->taken_count ? (*callee = w->taken[i], true) : false;
  const PtxFunction *f = &function_at(w->p, node)->pub;
  if (i < f->callee_count) return *callee = f->callees[i], true;
  if (i == f->callee_count && f->calls_indirectly) return *callee = w->count, true;
  return false;
}

static void enter(Walk *w, uint32_t node) {
  w->order[node] = w->low[node] = ++w->next;
  w->stack[w->top++] = node;
  w->on_stack[node] = true;
  w->path[w->depth++] = node;
}

static void leave(Walk *w, uint32_t node) {
  w->depth--;
  if (w->depth) {
    uint32_t caller = w->path[w->depth - 1];
    if (w->low[node] < w->low[caller]) w->low[caller] = w->low[node];
  }
  if (w->low[node] != w->order[node]) return;
  bool several = w->stack[w->top - 1] != node;
  uint32_t member;
  do {
    member = w->stack[--w->top];
    w->on_stack[member] = false;
    if (several && member < w->count) function_at(w->p, member)->pub.recursive = true;
  } while (member != node);
}

static void walk_from(Walk *w, uint32_t root) {
  enter(w, root);
  while (w->depth) {
    uint32_t node = w->path[w->depth - 1], callee;
    if (!next_callee(w, node, &callee)) {
      leave(w, node);
    } else if (!w->order[callee]) {
      enter(w, callee);
    } else {
      if (callee == node && node < w->count) function_at(w->p, node)->pub.recursive = true;
      if (w->on_stack[callee] && w->order[callee] < w->low[node]) w->low[node] = w->order[callee];
    }
  }
}

static bool mark_recursion(Parser *p, const Vec *taken) {
  uint32_t n = p->functions.count + 1;
  uint32_t *room = sol_arena_alloc(&p->scratch, (size_t)n * 5 * sizeof *room);
  bool *on_stack = sol_arena_alloc(&p->scratch, n);
  if (!room || !on_stack) return sol_ptx_fail_memory(p);
  Walk w = {.p = p,
            .order = room,
            .low = room + n,
            .at = room + 2 * (size_t)n,
            .stack = room + 3 * (size_t)n,
            .path = room + 4 * (size_t)n,
            .on_stack = on_stack,
            .taken = taken->data,
            .taken_count = taken->count,
            .count = n - 1};
  for (uint32_t i = 0; i < n; i++)
    if (!w.order[i]) walk_from(&w, i);
  return true;
}

bool sol_ptx_graph(Parser *p) {
  uint32_t *seen = sol_arena_alloc(&p->scratch, (p->functions.count + 1) * sizeof *seen);
  if (!seen) return sol_ptx_fail_memory(p);
  Vec found = {0}, taken = {0};
  bool ok = true;
  take_addresses(p);
  for (uint32_t i = 0; ok && i < p->functions.count; i++) {
    ok = list_callees(p, i, seen, &found);
    if (!function_at(p, i)->pub.address_taken) continue;
    uint32_t *to = sol_ptx_vec_add(&taken, sizeof *to);
    if (to)
      *to = i;
    else
      ok = sol_ptx_fail_memory(p);
  }
  ok = ok && mark_recursion(p, &taken) && sol_ptx_lay_out_shared(p, &taken);
  sol_ptx_vec_free(&found);
  sol_ptx_vec_free(&taken);
  return ok;
}
