// Compare-and-swaps that are tried again: a branch depends on what they give. Others, which take one try whatever it gives, are atomics
// like any other.
#include "audit/inside.h"

static bool is_set(const uint64_t *set, uint32_t reg) {
  return set[reg / 64] >> reg % 64 & 1;
}

static bool reads(const PtxOperand *o, const uint64_t *set) {
  if ((o->kind == PTX_ARG_REG && !o->written) || (o->kind == PTX_ARG_MEM && o->index != PTX_NONE))
    return is_set(set, o->index);
  for (uint32_t e = 0; o->kind == PTX_ARG_VEC && !o->written && e < o->count; e++)
    if (reads(&o->elems[e], set)) return true;
  return false;
}

static bool depends(const PtxInst *in, const uint64_t *set) {
  if (in->guard != PTX_NONE && is_set(set, in->guard)) return true;
  for (uint32_t k = 0; k < in->operand_count; k++)
    if (reads(&in->operands[k], set)) return true;
  return false;
}

// Adds what the instruction writes; whether any of it is new.
static bool add_written(const PtxInst *in, uint64_t *set) {
  bool fresh = false;
  for (uint32_t k = 0; k < in->operand_count; k++) {
    const PtxOperand *o = &in->operands[k];
    const PtxOperand *each = o->kind == PTX_ARG_VEC ? o->elems : o;
    for (uint32_t e = 0; o->written && e < (o->kind == PTX_ARG_VEC ? o->count : 1u); e++) {
      if (each[e].kind != PTX_ARG_REG || is_set(set, each[e].index)) continue;
      set[each[e].index / 64] |= UINT64_C(1) << each[e].index % 64;
      fresh = true;
    }
  }
  return fresh;
}

static bool is_memory(const PtxInst *in) {
  return in->code->op == PTX_OP_ATOM || in->code->op == PTX_OP_LD || in->code->op == PTX_OP_ST;
}

bool audit_tries_again(const PtxFunction *f, uint32_t swap, SolArena *arena) {
  uint64_t *set = sol_arena_alloc(arena, ((size_t)f->reg_count / 64 + 1) * sizeof *set);
  if (!set) return true;
  memset(set, 0, ((size_t)f->reg_count / 64 + 1) * sizeof *set);
  add_written(&f->insts[swap], set);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < f->inst_count; i++) {
      const PtxInst *in = &f->insts[i];
      if (!depends(in, set)) continue;
      if (in->diverges || in->code->op == PTX_OP_CALL || in->code->op == PTX_OP_RET) return true;
      if (!is_memory(in)) changed = add_written(in, set) || changed;
    }
  }
  return false;
}
