// Loops that ptxas unrolls: small ones that count. Loads of several iterations are then in flight together, unless one needs what
// an iteration before loaded, or may read what it stored.
#include "emu/watch/observe.h"

typedef struct Loop {
  const PtxFunction *fn;
  uint32_t first, last; // instructions; last: the branch back
  uint64_t *carried;    // set: registers with something that an iteration before loaded
} Loop;

static bool is_set(const uint64_t *set, uint32_t reg) {
  return set[reg / 64] >> reg % 64 & 1;
}

static void put(uint64_t *set, uint32_t reg, bool value) {
  uint64_t bit = UINT64_C(1) << reg % 64;
  set[reg / 64] = value ? set[reg / 64] | bit : set[reg / 64] & ~bit;
}

// ---- what it does ----

// Stores are kept in order with loads, but for those to shared and local memory.
static bool keeps_order(const PtxInst *in) {
  switch (sol_emu_class(in)) {
  case SOL_EMU_CLASS_BARRIER:
  case SOL_EMU_CLASS_TENSOR:
  case SOL_EMU_CLASS_CONTROL: return true;
  default: break;
  }
  if (sol_emu_class(in) != SOL_EMU_CLASS_MEMORY) return in->code->op == PTX_OP_CALL;
  bool near = in->code->space == PTX_SPACE_SHARED || in->code->space == PTX_SPACE_LOCAL ||
              in->code->space == PTX_SPACE_CONST || in->code->space == PTX_SPACE_PARAM;
  bool plain = in->code->op == PTX_OP_LD || in->code->op == PTX_OP_TEX || in->code->op == PTX_OP_TLD4;
  return !plain && !(near && in->code->op == PTX_OP_ST);
}

static uint32_t size_of(const PtxInst *in) {
  if (sol_emu_class(in) == SOL_EMU_CLASS_NAME) return 0;
  return in->code->op == PTX_OP_LD ? 2 : (uint32_t)sol_emu_size(in);
}

static bool is_small(const SolEmuMachine *m, const Loop *l) {
  uint32_t size = 0;
  for (uint32_t at = l->first; at <= l->last; at++) {
    bool inside = l->fn->insts[at].code->op == PTX_OP_BRA; // of a guard, or the one back
    if (!inside && keeps_order(&l->fn->insts[at])) return false;
    size += size_of(&l->fn->insts[at]);
  }
  return size <= m->unroll_size;
}

// ---- how it ends ----

static bool writes(const PtxInst *in, uint32_t reg) {
  for (uint32_t k = 0; k < in->operand_count; k++) {
    const PtxOperand *o = &in->operands[k];
    if (o->kind == PTX_ARG_REG && o->written && o->index == reg) return true;
    for (uint32_t e = 0; o->kind == PTX_ARG_VEC && o->written && e < o->count; e++)
      if (o->elems[e].kind == PTX_ARG_REG && o->elems[e].index == reg) return true;
  }
  return false;
}

// The only instruction of the loop that writes the register; NULL: none, or several.
static const PtxInst *writer_of(const Loop *l, uint32_t reg, uint32_t *count) {
  const PtxInst *found = NULL;
  *count = 0;
  for (uint32_t at = l->first; at <= l->last; at++)
    if (writes(&l->fn->insts[at], reg)) found = &l->fn->insts[at], ++*count;
  return *count == 1 ? found : NULL;
}

static bool is_fixed(const Loop *l, const PtxOperand *o) {
  uint32_t count;
  return o->kind == PTX_ARG_IMM || (o->kind == PTX_ARG_REG && !writer_of(l, o->index, &count) && !count);
}

// Whether it is a register to which each iteration adds the same number: of a step that is not known ptxas unrolls nothing.
static bool counts(const Loop *l, const PtxOperand *o) {
  uint32_t count;
  const PtxInst *by = o->kind == PTX_ARG_REG ? writer_of(l, o->index, &count) : NULL;
  if (!by || by->guard != PTX_NONE || by->operand_count < 3 ||
      (by->code->op != PTX_OP_ADD && by->code->op != PTX_OP_SUB))
    return false;
  const PtxOperand *a = &by->operands[1], *b = &by->operands[2];
  bool first = a->kind == PTX_ARG_REG && a->index == o->index && b->kind == PTX_ARG_IMM,
       second = b->kind == PTX_ARG_REG && b->index == o->index && a->kind == PTX_ARG_IMM;
  return first || second;
}

static bool ends_by_counting(const Loop *l) {
  uint32_t count;
  const PtxInst *back = &l->fn->insts[l->last],
                *test = back->guard != PTX_NONE ? writer_of(l, back->guard, &count) : NULL;
  if (!test || test->code->op != PTX_OP_SETP || test->guard != PTX_NONE) return false;
  const PtxOperand *operands[2] = {NULL, NULL};
  uint32_t read = 0;
  for (uint32_t k = 0; k < test->operand_count; k++)
    if (!test->operands[k].written &&
        (test->operands[k].kind == PTX_ARG_REG || test->operands[k].kind == PTX_ARG_IMM)) {
      if (read < 2) operands[read] = &test->operands[k];
      read++;
    }
  return read == 2 && ((counts(l, operands[0]) && is_fixed(l, operands[1])) ||
                       (counts(l, operands[1]) && is_fixed(l, operands[0])));
}

// ---- whether iterations wait for each other ----

static bool reads_carried(const Loop *l, const PtxOperand *o) {
  if ((o->kind == PTX_ARG_REG && !o->written) || (o->kind == PTX_ARG_MEM && o->index != PTX_NONE))
    return is_set(l->carried, o->index);
  bool many = (o->kind == PTX_ARG_VEC && !o->written) || o->kind == PTX_ARG_TEX;
  for (uint32_t e = 0; many && e < o->count; e++)
    if (reads_carried(l, &o->elems[e])) return true;
  return false;
}

static bool any_carried(const Loop *l, const PtxInst *in) {
  if (in->guard != PTX_NONE && is_set(l->carried, in->guard)) return true;
  for (uint32_t k = 0; k < in->operand_count; k++)
    if (reads_carried(l, &in->operands[k])) return true;
  return false;
}

static void write_all(const Loop *l, const PtxInst *in, bool value) {
  for (uint32_t k = 0; k < in->operand_count; k++) {
    const PtxOperand *o = &in->operands[k];
    if (!o->written) continue;
    if (o->kind == PTX_ARG_REG)
      put(l->carried, o->index, value || (in->guard != PTX_NONE && is_set(l->carried, o->index)));
    for (uint32_t e = 0; o->kind == PTX_ARG_VEC && e < o->count; e++)
      if (o->elems[e].kind == PTX_ARG_REG) put(l->carried, o->elems[e].index, value);
  }
}

// The first iteration finds what holds something loaded at its end, the second whether a load needs any of it.
static bool waits_for_itself(const Loop *l) {
  for (int turn = 0; turn < 2; turn++)
    for (uint32_t at = l->first; at <= l->last; at++) {
      const PtxInst *in = &l->fn->insts[at];
      bool loads = sol_emu_class(in) == SOL_EMU_CLASS_MEMORY && in->code->space != PTX_SPACE_PARAM,
           carried = any_carried(l, in);
      if (turn && loads && in->code->op != PTX_OP_ST && carried) return true;
      write_all(l, in, carried || (loads && !turn));
    }
  return false;
}

// Where NVVM has unrolled a loop already, as many loads are in one iteration: ptxas unrolls some of these once more, but they do not wait
// less by it (a row's maximum by one lane took 717 us on an H200, 764 were predicted so and 412 otherwise).
static bool has_many_loads(const SolEmuMachine *m, const Loop *l) {
  uint32_t loads = 0;
  for (uint32_t at = l->first; at <= l->last; at++)
    loads +=
        sol_emu_class(&l->fn->insts[at]) == SOL_EMU_CLASS_MEMORY && l->fn->insts[at].code->op == PTX_OP_LD;
  return loads >= m->unroll_times;
}

bool emu_is_unrolled(const SolEmuMachine *m, const PtxFunction *fn, uint32_t n, uint32_t end,
                     uint64_t *carried) {
  const PtxBlock *last = &fn->blocks[end - 1];
  Loop l = {fn, fn->blocks[n].first, last->first + last->count - 1, carried};
  if (m->unroll_times < 2 || last->next[1] != n || fn->insts[l.first].rolled) return false;
  if (fn->insts[l.last].code->op != PTX_OP_BRA || !is_small(m, &l) || has_many_loads(m, &l) ||
      !ends_by_counting(&l))
    return false;
  memset(carried, 0, (fn->reg_count + 63) / 64 * sizeof *carried);
  return !waits_for_itself(&l);
}
