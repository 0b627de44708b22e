// Which integer instructions of a function only find out where to access memory. They are no arithmetic that the
// result needs: with wider accesses, or other loops, there would be fewer of them.
//
// A register holds part of an address if a memory operand has it as its base, or if an integer instruction makes
// one such register of it. Loaded values do not lead further back: what a load read is data. An instruction that
// writes such a register, or compares one, is indexing. The order of instructions is not looked at.
#include "audit/inside.h"

typedef struct Marks {
  uint8_t *address; // by register: part of an address
  uint32_t count;
  bool changed;
} Marks;

static void mark(Marks *m, uint32_t reg) {
  if (reg >= m->count || m->address[reg]) return;
  m->address[reg] = 1;
  m->changed = true;
}

static bool is_marked(const Marks *m, const PtxOperand *o) {
  if (o->kind == PTX_ARG_REG) return o->index < m->count && m->address[o->index];
  if (o->kind != PTX_ARG_VEC) return false;
  for (uint32_t i = 0; i < o->count; i++)
    if (is_marked(m, &o->elems[i])) return true;
  return false;
}

static void mark_operand(Marks *m, const PtxOperand *o) {
  if (o->kind == PTX_ARG_REG) mark(m, o->index);
  for (uint32_t i = 0; o->kind == PTX_ARG_VEC && i < o->count; i++) mark_operand(m, &o->elems[i]);
}

static bool carries(const PtxInst *in) {
  SolEmuClass unit = sol_emu_class(in);
  return unit == SOL_EMU_CLASS_INT || unit == SOL_EMU_CLASS_NAME;
}

static bool makes_address(const Marks *m, const PtxInst *in) {
  if (!carries(in)) return false;
  for (uint32_t i = 0; i < in->operand_count; i++)
    if (in->operands[i].written && is_marked(m, &in->operands[i])) return true;
  return false;
}

static void mark_sources(Marks *m, const PtxInst *in) {
  bool passes_on = makes_address(m, in);
  for (uint32_t i = 0; i < in->operand_count; i++) {
    const PtxOperand *o = &in->operands[i];
    if (o->kind == PTX_ARG_MEM) mark(m, o->index);
    if (passes_on && !o->written) mark_operand(m, o);
  }
}

static bool compares_address(const Marks *m, const PtxInst *in) {
  if (in->code->op != PTX_OP_SETP) return false;
  for (uint32_t i = 0; i < in->operand_count; i++)
    if (!in->operands[i].written && is_marked(m, &in->operands[i])) return true;
  return false;
}

bool audit_indexing(const PtxFunction *f, uint8_t *indexing, SolArena *arena) {
  Marks m = {.address = sol_arena_alloc(arena, f->reg_count + 1), .count = f->reg_count, .changed = true};
  if (!m.address) return false;
  memset(m.address, 0, f->reg_count + 1);
  while (m.changed) { // from the last backwards: most registers are made just before they are used
    m.changed = false;
    for (uint32_t i = f->inst_count; i-- > 0;) mark_sources(&m, &f->insts[i]);
  }
  for (uint32_t i = 0; i < f->inst_count; i++)
    indexing[i] = makes_address(&m, &f->insts[i]) || compares_address(&m, &f->insts[i]);
  return true;
}
