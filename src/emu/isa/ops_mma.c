// mma and wmma.mma. The arithmetic, its order and its rounding are num_mma.h's.
#include "emu/isa/matrix.h"
#include "emu/isa/num_mma.h"

typedef struct MmaPlan {
  NumMmaPlan num;
  EmuLoc d[NUM_MAX_MMA_REGS], a[NUM_MAX_MMA_REGS], b[NUM_MAX_MMA_REGS], c[NUM_MAX_MMA_REGS];
} MmaPlan;

static void mma(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask) return;
  const MmaPlan *plan = (const MmaPlan *)i->more;
  const NumMmaPlan *num = &plan->num;
  const void *a[NUM_MAX_MMA_REGS], *b[NUM_MAX_MMA_REGS], *c[NUM_MAX_MMA_REGS];
  void *d[NUM_MAX_MMA_REGS];
  for (int r = 0; r < num->a.regs; r++) a[r] = emu_at(x, plan->a[r]);
  for (int r = 0; r < num->b.regs; r++) b[r] = emu_at(x, plan->b[r]);
  for (int r = 0; r < num->c.regs; r++) c[r] = emu_at(x, plan->c[r]);
  for (int r = 0; r < num->d.regs; r++) d[r] = emu_at(x, plan->d[r]);
  if (mask == EMU_ALL) {
    sol_num_mma(num, d, a, b, c);
    return;
  }
  uint64_t results[NUM_MAX_MMA_REGS][EMU_LANES]; // lanes that have ended keep what they have
  void *to[NUM_MAX_MMA_REGS];
  size_t lane_bytes = num->d.bits == 64 ? 8 : 4;
  for (int r = 0; r < num->d.regs; r++) to[r] = results[r];
  sol_num_mma(num, to, a, b, c);
  for (int r = 0; r < num->d.regs; r++)
    for (uint32_t left = mask; left; left &= left - 1) {
      size_t at = (size_t)emu_first(left) * lane_bytes;
      memcpy((uint8_t *)d[r] + at, (uint8_t *)to[r] + at, lane_bytes);
    }
}

static bool element_of(uint8_t type, NumElement *out) {
  switch (type) {
  case PTX_F16: *out = NUM_ELEMENT_F16; return true;
  case PTX_BF16: *out = NUM_ELEMENT_BF16; return true;
  case PTX_TF32: *out = NUM_ELEMENT_TF32; return true;
  case PTX_E4M3: *out = NUM_ELEMENT_E4M3; return true;
  case PTX_E5M2: *out = NUM_ELEMENT_E5M2; return true;
  case PTX_S8: *out = NUM_ELEMENT_S8; return true;
  case PTX_U8: *out = NUM_ELEMENT_U8; return true;
  case PTX_S4: *out = NUM_ELEMENT_S4; return true;
  case PTX_U4: *out = NUM_ELEMENT_U4; return true;
  case PTX_B1: *out = NUM_ELEMENT_B1; return true;
  case PTX_F64: *out = NUM_ELEMENT_F64; return true;
  case PTX_F32: *out = NUM_ELEMENT_F32; return true;
  case PTX_S32: *out = NUM_ELEMENT_S32; return true;
  default: return false;
  }
}

static NumRound rounding(uint8_t rnd) {
  switch (rnd) {
  case PTX_RND_RZ: return NUM_RZ;
  case PTX_RND_RM: return NUM_RM;
  case PTX_RND_RP: return NUM_RP;
  default: return NUM_RN;
  }
}

// What one warp computes of eight of its columns: m16n8 of the same k.
static bool wgmma_num(const PtxCode *code, NumMma *num) {
  *num = (NumMma){.m = 16,
                  .n = 8,
                  .k = code->k,
                  .satfinite = PTX_HAS(code, SATFINITE),
                  .sparse = code->op == PTX_OP_WGMMA_SP,
                  .bit_and = true};
  bool ok = element_of(code->type[0], &num->d) && element_of(code->type[1], &num->a) &&
            element_of(code->type[2], &num->b);
  num->c = num->d;
  return ok;
}

bool matrix_num(const PtxCode *code, NumMma *num) {
  if (code->op == PTX_OP_WGMMA || code->op == PTX_OP_WGMMA_SP) return wgmma_num(code, num);
  *num = (NumMma){.m = code->m, .n = code->n, .k = code->k, .wmma = code->op != PTX_OP_MMA};
  if (code->op == PTX_OP_MMA || code->op == PTX_OP_WMMA_MMA) {
    num->a_col = code->layout == PTX_LAYOUT_COL;
    num->b_row = code->layout2 == PTX_LAYOUT_ROW;
    num->satfinite = PTX_HAS(code, SATFINITE);
    num->bit_and = code->fn == PTX_FN_AND;
    num->rnd = rounding(code->rnd);
    return element_of(code->type[0], &num->d) && element_of(code->type[1], &num->a) &&
           element_of(code->type[2], &num->b) && element_of(code->type[3], &num->c);
  }
  // wmma.load and wmma.store name one matrix; its place depends on the shape alone, so any product of that
  // shape will do for the others.
  NumElement moved;
  if (!element_of(code->type[0], &moved)) return false;
  bool ab = code->op == PTX_OP_WMMA_LOAD && code->fn != PTX_FN_MATRIX_C;
  if (ab) {
    num->a = num->b = moved;
    bool ints = moved >= NUM_ELEMENT_S8 && moved <= NUM_ELEMENT_B1;
    num->c = num->d = ints ? NUM_ELEMENT_S32 : moved == NUM_ELEMENT_F64 ? NUM_ELEMENT_F64 : NUM_ELEMENT_F32;
    return true;
  }
  num->c = num->d = moved;
  switch (moved) {
  case NUM_ELEMENT_F64: num->a = NUM_ELEMENT_F64; break;
  case NUM_ELEMENT_S32:
    num->a = code->k == 128 ? NUM_ELEMENT_B1 : code->k == 32 ? NUM_ELEMENT_S4 : NUM_ELEMENT_S8;
    break;
  default: num->a = code->k == 8 ? NUM_ELEMENT_TF32 : NUM_ELEMENT_F16; break;
  }
  num->b = num->a;
  return true;
}

static bool take(Lower *l, const PtxOperand *o, int regs, EmuLoc *to) {
  const EmuLoc *list = lower_list(l, o);
  int count = o->kind == PTX_ARG_VEC ? o->count : 1;
  if (!list || regs > NUM_MAX_MMA_REGS) return false;
  if (count != regs) return lower_refuse(l, "a fragment of %d registers, not of %d", regs, count);
  memcpy(to, list, sizeof *to * (size_t)regs);
  return true;
}

bool lower_mma(Lower *l, const PtxInst *in, EmuInst *out) {
  NumMma num;
  MmaPlan *plan = (MmaPlan *)lower_alloc(l, sizeof *plan);
  if (!plan) return false;
  if (!matrix_num(in->code, &num) || !sol_num_mma_plan(&num, &plan->num))
    return lower_refuse(l, "PTX has no product of these types and this shape");
  const PtxOperand *o = in->operands;
  if (!take(l, &o[0], plan->num.d.regs, plan->d) || !take(l, &o[1], plan->num.a.regs, plan->a) ||
      !take(l, &o[2], plan->num.b.regs, plan->b) || !take(l, &o[3], plan->num.c.regs, plan->c))
    return false;
  out->f = lower_const(l, EMU_ALL, 4);
  out->more = plan;
  out->run = mma;
  return true;
}
