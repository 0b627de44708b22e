// Static analysis of a program: which instructions access memory, which loads have values used as f32.
#include "emu/watch/observe.h"

#include "base/error.h"
#include "base/heap.h"

static bool accesses_memory(const PtxInst *in) {
  return sol_emu_class(in) == SOL_EMU_CLASS_MEMORY;
}

// ---- registers that hold an f32 ----

static bool is_set(const uint64_t *set, uint32_t reg) {
  return set[reg / 64] >> reg % 64 & 1;
}

static bool add(uint64_t *set, uint32_t reg) {
  bool fresh = !is_set(set, reg);
  set[reg / 64] |= UINT64_C(1) << reg % 64;
  return fresh;
}

// Elements that are read as f32 hold one, and so does what a plain move copies into such a register.
static bool mark_floats(const PtxInst *in, uint64_t *set) {
  bool changed = false;
  const PtxOperand *o = in->operands;
  if (in->code->op == PTX_OP_MOV && in->operand_count >= 2 && o[0].kind == PTX_ARG_REG &&
      o[1].kind == PTX_ARG_REG && is_set(set, o[0].index))
    changed = add(set, o[1].index);
  for (uint32_t k = 0; k < in->operand_count; k++) {
    if (o[k].written || o[k].type != PTX_F32) continue;
    if (o[k].kind == PTX_ARG_REG) changed = add(set, o[k].index) || changed;
    for (uint32_t e = 0; o[k].kind == PTX_ARG_VEC && e < o[k].count; e++)
      if (o[k].elems[e].kind == PTX_ARG_REG) changed = add(set, o[k].elems[e].index) || changed;
  }
  return changed;
}

static uint8_t float_elements(const PtxInst *in, const uint64_t *set) {
  if (in->code->op != PTX_OP_LD || !in->operand_count) return 0;
  const PtxOperand *o = &in->operands[0];
  uint8_t mask = 0;
  for (uint32_t e = 0; e < (o->kind == PTX_ARG_VEC ? o->count : 1u) && e < 8; e++) {
    const PtxOperand *d = o->kind == PTX_ARG_VEC ? &o->elems[e] : o;
    if (d->kind == PTX_ARG_REG && (in->code->type[0] == PTX_F32 || is_set(set, d->index)))
      mask = (uint8_t)(mask | 1u << e);
  }
  return mask;
}

static bool find_floats(const PtxFunction *fn, uint8_t *floats) {
  size_t bytes = ((size_t)fn->reg_count / 64 + 1) * 8;
  uint64_t *set = sol_heap_alloc(bytes);
  if (!set) return false;
  memset(set, 0, bytes);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t k = fn->inst_count; k-- > 0;) changed = mark_floats(&fn->insts[k], set) || changed;
  }
  for (uint32_t k = 0; k < fn->inst_count; k++) floats[k] = float_elements(&fn->insts[k], set);
  sol_heap_free(set);
  return true;
}

// ---- what a warp waits for ----

static uint8_t path_of(const PtxInst *in, uint8_t loads) {
  switch (in->code->op) {
  case PTX_OP_LD:
  case PTX_OP_LDMATRIX:
  case PTX_OP_WMMA_LOAD: return EMU_PATH_LOAD;
  case PTX_OP_MBARRIER_TRY_WAIT:
  case PTX_OP_MBARRIER_TEST_WAIT: return EMU_PATH_POLL;
  default: break;
  }
  if (sol_emu_class(in) == SOL_EMU_CLASS_WARP) return EMU_PATH_SHUFFLE;
  return loads ? EMU_PATH_LOAD : 0;
}

static uint8_t trace_of(const PtxInst *in) {
  SolEmuClass class = sol_emu_class(in);
  if (class == SOL_EMU_CLASS_NAME) return EMU_PATH_NAME;
  if (class != SOL_EMU_CLASS_TENSOR) return 0;
  bool grouped = in->code->op == PTX_OP_WGMMA || in->code->op == PTX_OP_WGMMA_SP;
  return grouped ? EMU_PATH_TENSOR | EMU_PATH_GROUPED : EMU_PATH_TENSOR;
}

// ---- all of it ----

SolStatus emu_statics_make(EmuProgram *p, SolError *err) {
  if (p->statics) return SOL_OK;
  size_t count = p->count;
  EmuStatics *s = sol_heap_alloc(sizeof *s + count * (sizeof *s->site + 5));
  if (!s) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *s = (EmuStatics){.site = (uint32_t *)(void *)(s + 1)};
  s->floats = (uint8_t *)(s->site + count);
  s->loads = s->floats + count;
  s->waits = s->loads + count;
  s->paths = s->waits + count;
  s->sizes = s->paths + count;
  memset(s->floats, 0, 5 * count);
  bool ok = true;
  for (uint32_t pc = 0; pc < p->count; pc++)
    s->site[pc] = p->source[pc] && accesses_memory(p->source[pc]) ? s->site_count++ : EMU_NO_SITE;
  for (uint32_t f = 0; ok && f < p->function_count; f++) {
    uint32_t first = p->functions[f].first;
    ok = find_floats(p->functions[f].fn, s->floats + first) &&
         emu_flight_find(&p->module->emu->machine, p->functions[f].fn, s->loads + first, s->waits + first,
                         s->paths + first);
  }
  for (uint32_t pc = 0; ok && pc < p->count; pc++)
    s->sizes[pc] = p->source[pc] ? (uint8_t)sol_emu_size(p->source[pc]) : 1;
  for (uint32_t pc = 0; ok && pc < p->count; pc++)
    if (p->source[pc])
      s->paths[pc] = (uint8_t)(path_of(p->source[pc], s->loads[pc]) | trace_of(p->source[pc]) |
                               (s->paths[pc] ? EMU_PATH_FOLLOWS : 0));
  ok = ok && emu_takes_find(p, s);
  if (!ok) {
    sol_heap_free(s);
    return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  }
  p->statics = s;
  return SOL_OK;
}
