// Everything a loaded PTX module promises (src/ptx/ptx.h), looked at once: each index in range, each pointer
// readable, each operand of a kind that its position allows. Tests and the fuzzer walk what they load.
#ifndef PTX_WALK_H
#define PTX_WALK_H

#include <stdio.h>
#include <string.h>

#include "ptx/ptx.h"

typedef struct PtxWalk {
  const SolPtxModule *m;
  const PtxFunction *f;
  const PtxInst *inst;
  char wrong[256]; // the first thing found wrong; empty: nothing
} PtxWalk;

static inline void ptx_walk_must(PtxWalk *w, bool ok, const char *what) {
  if (ok || w->wrong[0]) return;
  snprintf(w->wrong, sizeof w->wrong, "%s: %s line %u: %s", w->f ? w->f->name : "module",
           w->inst ? w->inst->code->text : "", w->inst ? w->inst->line : 0, what);
}
#define WALK_MUST(condition) ptx_walk_must(w, (condition), #condition)

static inline void ptx_walk_operand(PtxWalk *w, const PtxOperand *o, int depth) {
  const PtxFunction *f = w->f;
  switch ((PtxArgKind)o->kind) {
  case PTX_ARG_NONE:
  case PTX_ARG_IMM:
  case PTX_ARG_SINK: break;
  case PTX_ARG_REG: WALK_MUST(o->index < f->reg_count); break;
  case PTX_ARG_SREG: WALK_MUST(o->sreg > PTX_SREG_NONE && o->sreg < PTX_SREG_COUNT && o->index < 32); break;
  case PTX_ARG_SYMBOL: WALK_MUST(o->index < w->m->symbol_count); break;
  case PTX_ARG_FUNC: WALK_MUST(o->index < w->m->function_count); break;
  case PTX_ARG_MEM:
    WALK_MUST(o->index == PTX_NONE || o->symbol == PTX_NONE);
    WALK_MUST(o->index == PTX_NONE || o->index < f->reg_count);
    WALK_MUST(o->symbol == PTX_NONE || o->symbol < w->m->symbol_count);
    break;
  case PTX_ARG_VEC:
  case PTX_ARG_TEX:
    WALK_MUST(depth == 0);
    for (int i = 0; depth == 0 && i < o->count; i++) ptx_walk_operand(w, &o->elems[i], 1);
    break;
  case PTX_ARG_LABEL: WALK_MUST(o->index <= f->inst_count); break;
  case PTX_ARG_TABLE: WALK_MUST(o->index < f->table_count); break;
  default: ptx_walk_must(w, false, "an unknown kind of operand");
  }
  WALK_MUST(o->kind != PTX_ARG_SINK || o->written);
  WALK_MUST(!o->negated || (o->kind == PTX_ARG_REG && o->type == PTX_PRED && !o->written));
}

static inline int ptx_walk_positions(const char *operands) {
  int count = 0;
  for (const char *c = operands; *c; c++) count += *c != ' ' && (c == operands || c[-1] == ' ');
  return count;
}

static inline void ptx_walk_inst(PtxWalk *w) {
  const PtxInst *inst = w->inst;
  const PtxFunction *f = w->f;
  WALK_MUST(inst->code->index < w->m->code_count && w->m->codes[inst->code->index] == inst->code);
  WALK_MUST(inst->code->op > PTX_OP_NONE && inst->code->op < PTX_OP_COUNT);
  WALK_MUST(inst->operand_count == ptx_walk_positions(sol_ptx_op_operands((PtxOp)inst->code->op)));
  for (int i = 0; i < inst->operand_count; i++) ptx_walk_operand(w, &inst->operands[i], 0);
  WALK_MUST(inst->guard == PTX_NONE || (inst->guard < f->reg_count && f->regs[inst->guard].type == PTX_PRED));
  bool branch = inst->code->op == PTX_OP_BRA || inst->code->op == PTX_OP_BRX;
  WALK_MUST(branch ? inst->reconverge <= f->inst_count : inst->reconverge == PTX_NONE);
  WALK_MUST(inst->loc == PTX_NONE || inst->loc < w->m->loc_count);
  WALK_MUST(inst->prototype == PTX_NONE || inst->prototype < f->prototype_count);
  WALK_MUST(inst->code->op != PTX_OP_CALL || inst->operands[0].kind == PTX_ARG_FUNC ||
            inst->prototype != PTX_NONE);
  WALK_MUST(inst->line > 0);
  char text[64];
  size_t length = sol_ptx_format_inst(w->m, f, inst, text, sizeof text);
  WALK_MUST(length > 0 && strlen(text) == (length < sizeof text ? length : sizeof text - 1));
}

static inline void ptx_walk_blocks(PtxWalk *w) {
  const PtxFunction *f = w->f;
  uint32_t next = 0;
  for (uint32_t i = 0; i < f->block_count; i++) {
    const PtxBlock *b = &f->blocks[i];
    WALK_MUST(b->first == next && b->count > 0 && f->insts[b->first].leader);
    next = b->first + b->count;
    for (int k = 0; k < 2; k++) WALK_MUST(b->next[k] == PTX_NONE || b->next[k] < f->block_count);
    WALK_MUST(b->table == PTX_NONE || b->table < f->table_count);
    WALK_MUST(b->post_dominator == PTX_NONE || b->post_dominator < f->block_count);
  }
  WALK_MUST(next == f->inst_count);
}

static inline void ptx_walk_formals(PtxWalk *w, const uint32_t *symbols, const uint32_t *regs,
                                    uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    WALK_MUST((symbols[i] == PTX_NONE) != (regs[i] == PTX_NONE));
    WALK_MUST(symbols[i] == PTX_NONE || symbols[i] < w->m->symbol_count);
    WALK_MUST(regs[i] == PTX_NONE || regs[i] < w->f->reg_count);
  }
}

static inline void ptx_walk_function(PtxWalk *w) {
  const PtxFunction *f = w->f;
  WALK_MUST(f->name[0] && f->source < w->m->source_count);
  WALK_MUST(f->defined || f->inst_count == 0);
  ptx_walk_formals(w, f->params, f->param_regs, f->param_count);
  ptx_walk_formals(w, f->results, f->result_regs, f->result_count);
  for (uint32_t i = 0; i < f->reg_count; i++)
    WALK_MUST(f->regs[i].name[0] && f->regs[i].type && f->regs[i].type < PTX_TYPE_COUNT);
  for (uint32_t i = 0; i < f->inst_count; i++) {
    w->inst = &f->insts[i];
    ptx_walk_inst(w);
  }
  w->inst = NULL;
  ptx_walk_blocks(w);
  for (uint32_t i = 0; i < f->table_count; i++)
    for (uint32_t k = 0; k < f->tables[i].count; k++) WALK_MUST(f->tables[i].targets[k] <= f->inst_count);
  for (uint32_t i = 0; i < f->callee_count; i++) WALK_MUST(f->callees[i] < w->m->function_count);
  for (uint32_t i = 0; i < f->shared_count; i++) {
    WALK_MUST(f->shared[i].symbol < w->m->symbol_count);
    const PtxSymbol *s = &w->m->symbols[f->shared[i].symbol];
    WALK_MUST(s->space == PTX_SPACE_SHARED && f->shared[i].offset % s->align == 0);
    WALK_MUST(s->dynamic || f->shared[i].offset + s->size <= f->shared_bytes);
  }
}

static inline void ptx_walk_symbol(PtxWalk *w, const PtxSymbol *s) {
  WALK_MUST(s->align && !(s->align & (s->align - 1)));
  WALK_MUST(s->init_bytes <= s->size || s->dynamic);
  WALK_MUST(s->function == PTX_NONE || s->function < w->m->function_count);
  unsigned sum = 0;
  for (uint64_t i = 0; i < s->init_bytes; i++) sum += s->init[i];
  (void)sum;
  for (uint32_t i = 0; i < s->reloc_count; i++) {
    const PtxReloc *r = &s->relocs[i];
    WALK_MUST((r->symbol == PTX_NONE) != (r->function == PTX_NONE));
    WALK_MUST(r->symbol == PTX_NONE || r->symbol < w->m->symbol_count);
    WALK_MUST(r->function == PTX_NONE || r->function < w->m->function_count);
    WALK_MUST(r->offset + r->bytes <= s->size && r->bytes && r->shift < 64);
  }
  if (s->function == PTX_NONE) return;
  const PtxFunction *f = &w->m->functions[s->function];
  WALK_MUST(s->space != PTX_SPACE_LOCAL || s->offset + s->size <= f->local_bytes);
  WALK_MUST(s->space != PTX_SPACE_PARAM || s->offset + s->size <= f->param_bytes);
  WALK_MUST(s->offset % s->align == 0);
}

// NULL where all is well, else what is not; the text is w->wrong.
static inline const char *ptx_walk(PtxWalk *w, const SolPtxModule *m) {
  *w = (PtxWalk){.m = m};
  for (uint32_t i = 0; i < m->function_count; i++) {
    w->f = &m->functions[i];
    ptx_walk_function(w);
  }
  w->f = NULL;
  for (uint32_t i = 0; i < m->symbol_count; i++) ptx_walk_symbol(w, &m->symbols[i]);
  for (uint32_t i = 0; i < m->loc_count; i++) {
    const PtxLoc *l = &m->locs[i];
    WALK_MUST(l->file == PTX_NONE || l->file < m->file_count);
    WALK_MUST(l->inlined_at == PTX_NONE || l->inlined_at < i);
  }
  WALK_MUST(m->address_bits == 32 || m->address_bits == 64);
  return w->wrong[0] ? w->wrong : NULL;
}

#endif
