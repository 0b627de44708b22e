// Video instructions: vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr, vset, vmad and, of two halves or four bytes at once,
// vadd2, vavrg4 and their like.
#include "emu/isa/isa.h"

#include "emu/isa/num_video.h"

EMU_OPS(run_video, uint32_t, uint32_t, uint32_t, uint32_t, num_video(i->more, a[l], b[l], c[l]))
EMU_OPS(run_vmad, uint32_t, uint32_t, uint32_t, uint32_t, num_vmad(i->more, a[l], b[l], c[l]))

static int operation_of(const PtxCode *code) {
  switch (code->op) {
  case PTX_OP_VADD:
  case PTX_OP_VADD2:
  case PTX_OP_VADD4: return NUM_VIDEO_ADD;
  case PTX_OP_VSUB:
  case PTX_OP_VSUB2:
  case PTX_OP_VSUB4: return NUM_VIDEO_SUB;
  case PTX_OP_VAVRG2:
  case PTX_OP_VAVRG4: return NUM_VIDEO_AVERAGE;
  case PTX_OP_VABSDIFF:
  case PTX_OP_VABSDIFF2:
  case PTX_OP_VABSDIFF4: return NUM_VIDEO_ABSDIFF;
  case PTX_OP_VMIN:
  case PTX_OP_VMIN2:
  case PTX_OP_VMIN4: return NUM_VIDEO_MIN;
  case PTX_OP_VMAX:
  case PTX_OP_VMAX2:
  case PTX_OP_VMAX4: return NUM_VIDEO_MAX;
  case PTX_OP_VSHL: return NUM_VIDEO_SHL;
  case PTX_OP_VSHR: return NUM_VIDEO_SHR;
  default: return NUM_VIDEO_EQ + code->cmp - PTX_CMP_EQ; // vset; ops.def has the order of NumVideoOp
  }
}

static int then_of(const PtxCode *code) {
  switch (code->fn) {
  case PTX_FN_ADD: return NUM_VIDEO_THEN_ADD;
  case PTX_FN_MIN: return NUM_VIDEO_THEN_MIN;
  case PTX_FN_MAX: return NUM_VIDEO_THEN_MAX;
  default: return NUM_VIDEO_MERGE;
  }
}

static uint64_t part_of(const PtxOperand *o) {
  return o->kind == PTX_ARG_REG ? o->value : 0;
}

// Scalar instructions: b's parts lie above a's.
static void take_part(uint64_t part, uint8_t base, uint8_t *bit, uint8_t *bits) {
  *bits = !part ? 32 : PTX_PART_BYTES(part) ? 8 : 16;
  *bit = (uint8_t)(base + PTX_PART_DIGIT(part, 0) * *bits);
}

// `first`: the part of b:a that the lowest result comes from, unless the instruction says which.
static void take_parts(const NumVideo *v, uint64_t part, uint32_t first, uint8_t *bit) {
  for (uint32_t i = 0; i < v->count; i++)
    bit[i] = (uint8_t)((part ? PTX_PART_DIGIT(part, i) : first + i) * v->d_bits);
}

static uint8_t written_parts(const NumVideo *v, uint64_t part) {
  unsigned written = 0;
  for (uint32_t i = 0; i < PTX_PART_COUNT(part); i++) written |= 1u << PTX_PART_DIGIT(part, i);
  return (uint8_t)(part ? written : (1u << v->count) - 1);
}

static void plan_simd(const PtxOperand *o, NumVideo *v) {
  v->a_bits = v->b_bits = v->d_bits = (uint8_t)(32 / v->count);
  take_parts(v, 0, 0, v->d_bit);
  take_parts(v, part_of(&o[1]), 0, v->a_bit);
  take_parts(v, part_of(&o[2]), v->count, v->b_bit);
  v->written = written_parts(v, part_of(&o[0]));
}

static void plan_scalar(const PtxCode *code, const PtxOperand *o, NumVideo *v) {
  take_part(part_of(&o[0]), 0, &v->d_bit[0], &v->d_bits);
  take_part(part_of(&o[1]), 0, &v->a_bit[0], &v->a_bits);
  take_part(part_of(&o[2]), code->op == PTX_OP_VMAD ? 0 : 32, &v->b_bit[0], &v->b_bits);
  v->written = 1;
  v->negate_product = o[1].negated != o[2].negated;
  v->negate_c = o[3].negated;
}

static bool is_plain(const PtxCode *code, const PtxOperand *o) {
  return !part_of(&o[0]) && !part_of(&o[1]) && !part_of(&o[2]) && !PTX_HAS(code, SAT);
}

bool lower_video(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxCode *code = in->code;
  if (code->op == PTX_OP_VABSDIFF4 && is_plain(code, in->operands)) return lower_int_dot(l, in, out);
  NumVideo *v = lower_alloc(l, sizeof *v);
  if (!v) return false;
  *v = (NumVideo){.op = (uint8_t)operation_of(code),
                  .then = (uint8_t)then_of(code),
                  .count = code->op >= PTX_OP_VADD4   ? 4
                           : code->op >= PTX_OP_VADD2 ? 2
                                                      : 1,
                  .d_signed = code->type[0] == PTX_S32,
                  .a_signed = code->type[1] == PTX_S32,
                  .b_signed = code->type[2] == PTX_S32,
                  .sat = PTX_HAS(code, SAT),
                  .wrap = code->edge == PTX_EDGE_WRAP,
                  .plus_one = PTX_HAS(code, PO),
                  .scale = PTX_HAS(code, SHR7)    ? 7
                           : PTX_HAS(code, SHR15) ? 15
                                                  : 0};
  if (v->count > 1)
    plan_simd(in->operands, v);
  else
    plan_scalar(code, in->operands, v);
  lower_dabc(l, in, out);
  out->more = v;
  out->run = code->op == PTX_OP_VMAD ? run_vmad : run_video;
  return true;
}
