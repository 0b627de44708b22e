// Compare-and-swaps that are tried again: a branch depends on what they give. Others, which take one try whatever it gives, are atomics
// like any other. Of those that are tried again some swap in a value of their own, while it is better than what they read.
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

// All that depends on what the instruction writes, memory left out.
static uint64_t *follow(const PtxFunction *f, uint32_t from, SolArena *arena) {
  size_t size = ((size_t)f->reg_count / 64 + 1) * sizeof(uint64_t);
  uint64_t *set = sol_arena_alloc(arena, size);
  if (!set) return NULL;
  memset(set, 0, size);
  add_written(&f->insts[from], set);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < f->inst_count; i++)
      if (!is_memory(&f->insts[i]) && depends(&f->insts[i], set))
        changed = add_written(&f->insts[i], set) || changed;
  }
  return set;
}

AuditRetry audit_retry(const PtxFunction *f, uint32_t swap, SolArena *arena) {
  enum { COMPARED = 2, NEW = 3 };
  const PtxInst *at = &f->insts[swap];
  const uint64_t *set = follow(f, swap, arena);
  bool again = !set, ordered = false;
  for (uint32_t i = 0; set && i < f->inst_count; i++) {
    const PtxInst *in = &f->insts[i];
    if (!depends(in, set)) continue;
    again |= in->diverges || in->code->op == PTX_OP_CALL || in->code->op == PTX_OP_RET;
    ordered |= in->code->op == PTX_OP_SETP && in->code->cmp != PTX_CMP_EQ && in->code->cmp != PTX_CMP_NE;
  }
  if (!again) return AUDIT_RETRY_NEVER;
  bool own = set && at->operand_count > NEW && reads(&at->operands[COMPARED], set) &&
             !reads(&at->operands[NEW], set);
  return own && ordered ? AUDIT_RETRY_BETTER : AUDIT_RETRY_ALWAYS;
}
