// What follows from a decoded opcode: fragment sizes, and combinations that ops.def's columns cannot express.
#include "ptx/internal.h"

static PtxFragment elements(int count, PtxType type) {
  switch (type) {
  case PTX_F64: return (PtxFragment){count, PTX_F64};
  case PTX_F32: return (PtxFragment){count, PTX_F32};
  case PTX_S32: return (PtxFragment){count, PTX_S32};
  default: return (PtxFragment){(count * sol_ptx_type_bits(type) + 31) / 32, PTX_B32};
  }
}

static PtxFragment matrix_fragment(const PtxCode *c, char matrix, PtxType type) {
  bool accumulator = matrix == 'C' || matrix == 'D';
  // wmma keeps each f16 element of A and B twice; the old m8n8k4 is four small products in one.
  if (c->op != PTX_OP_MMA && type == PTX_F16 && !accumulator) return (PtxFragment){8, PTX_B32};
  if (c->op == PTX_OP_MMA && c->k == 4 && c->m == 8 && c->type[1] == PTX_F16)
    return accumulator ? elements(8, type) : elements(4, type);
  int rows = matrix == 'B' ? c->n : c->m;
  int columns = accumulator ? c->n : c->k;
  return elements(rows * columns / 32, type);
}

// Of wgmma: a warp has 16 of the 64 rows.
static PtxFragment group_fragment(const PtxCode *c, char matrix) {
  int k = c->op == PTX_OP_WGMMA_SP ? c->k / 2 : c->k; // of A
  return matrix == 'A' ? elements(c->m * k / 128, c->type[1]) : elements(c->m * c->n / 128, c->type[0]);
}

// Registers of tcgen05.ld and tcgen05.st.
static PtxFragment tensor_memory_fragment(const PtxCode *c) {
  int each = c->fn == PTX_FN_16X256B ? 4 : c->fn == PTX_FN_16X128B ? 2 : 1;
  return (PtxFragment){c->vec * each, PTX_B32};
}

int sol_ptx_tensor_rank(const PtxCode *c) {
  return c->geom == PTX_GEOM_4D ? 4 : c->geom == PTX_GEOM_5D ? 5 : c->geom;
}

PtxFragment sol_ptx_fragment(const PtxCode *c, char matrix) {
  if (matrix == 'I') return (PtxFragment){sol_ptx_tensor_rank(c) - 2, PTX_B16};
  switch (c->op) {
  case PTX_OP_WGMMA:
  case PTX_OP_WGMMA_SP: return group_fragment(c, matrix);
  case PTX_OP_TCGEN05_LD:
  case PTX_OP_TCGEN05_ST: return tensor_memory_fragment(c);
  case PTX_OP_LDMATRIX: return (PtxFragment){c->vec * (c->n == 16 ? 2 : 1), PTX_B32};
  case PTX_OP_STMATRIX: return (PtxFragment){c->vec, PTX_B32};
  case PTX_OP_WMMA_LOAD:
    return matrix_fragment(c,
                           c->fn == PTX_FN_MATRIX_A   ? 'A'
                           : c->fn == PTX_FN_MATRIX_B ? 'B'
                                                      : 'C',
                           c->type[0]);
  case PTX_OP_WMMA_STORE: return matrix_fragment(c, 'D', c->type[0]);
  case PTX_OP_MMA:
  case PTX_OP_WMMA_MMA: return matrix_fragment(c, matrix, c->type[matrix == 'D' ? 0 : matrix - 'A' + 1]);
  default: return (PtxFragment){0, PTX_TYPE_NONE};
  }
}

static bool is_float(PtxType type) {
  return sol_ptx_type_class(type) == PTX_CLASS_FLOAT;
}

// cvt rounds exactly where it can lose something.
static const char *cvt_problem(const PtxCode *c) {
  PtxType to = c->type[0], from = c->type[1];
  bool integral = c->rnd >= PTX_RND_RNI;
  if (sol_ptx_type_class(to) == PTX_CLASS_PACKED || sol_ptx_type_class(from) == PTX_CLASS_PACKED ||
      to == PTX_TF32)
    return 0;
  if (PTX_HAS(c, FTZ) && to != PTX_F32 && from != PTX_F32) return "ftz is for f32";
  if (!is_float(to) && !is_float(from)) return c->rnd ? "integers are not rounded" : 0;
  if (!is_float(to)) return integral ? 0 : "a conversion to an integer takes rni, rzi, rmi or rpi";
  if (!is_float(from)) return c->rnd && !integral ? 0 : "a conversion from an integer takes rn, rz, rm or rp";
  int wide = sol_ptx_type_bits(to), narrow = sol_ptx_type_bits(from);
  if (wide == narrow && to != from)
    return integral ? "f16 and bf16 convert with rn, rz, rm or rp" : 0; // none: rn
  if (wide < narrow) return c->rnd && !integral ? 0 : "a narrowing conversion takes rn, rz, rm or rp";
  // ptxas takes a rounding from bf16, which has nothing to round.
  if (wide > narrow) return c->rnd && (integral || from != PTX_BF16) ? "a widening conversion is exact" : 0;
  return c->rnd && !integral ? "a number rounded to its own type takes rni, rzi, rmi or rpi" : 0;
}

static bool is_ordered_only(const PtxCode *c, PtxType type) {
  switch (sol_ptx_type_class(type)) {
  case PTX_CLASS_BITS: return c->cmp > PTX_CMP_NE;
  case PTX_CLASS_SIGNED: return c->cmp > PTX_CMP_GE;
  case PTX_CLASS_UNSIGNED: return c->cmp > PTX_CMP_HS;
  default: return c->cmp >= PTX_CMP_LO && c->cmp <= PTX_CMP_HS;
  }
}

const char *sol_ptx_code_problem(const PtxCode *c) {
  switch (c->op) {
  case PTX_OP_CVT: return cvt_problem(c);
  case PTX_OP_SETP: return is_ordered_only(c, c->type[0]) ? "this comparison is not for this type" : 0;
  case PTX_OP_SET: return is_ordered_only(c, c->type[1]) ? "this comparison is not for this type" : 0;
  case PTX_OP_MMA:
    return c->type[0] != c->type[3] && !(c->m == 8 && c->type[0] == PTX_F32)
               ? "C and D have to be of one type"
               : 0;
  case PTX_OP_SULD:
  case PTX_OP_SUST:
    return c->vec * sol_ptx_type_bits(c->type[0]) > 128 ? "a surface vector has at most 16 bytes" : 0;
  case PTX_OP_LD:
  case PTX_OP_ST:
    if (c->vec * sol_ptx_type_bits(c->type[0]) > 256) return "a vector has at most 32 bytes";
    if (c->vec == 8 && sol_ptx_type_bits(c->type[0]) != 32) return "v8 is for 32-bit elements";
    return 0;
  default: return 0;
  }
}
