// The pipe that executes an instruction.
#include "emu/emu.h"

// By family, the handler word of ops.def.
enum {
  CLASS_int_arith = SOL_EMU_CLASS_INT,
  CLASS_int_carry = SOL_EMU_CLASS_INT,
  CLASS_int_mul = SOL_EMU_CLASS_INT,
  CLASS_int_dot = SOL_EMU_CLASS_INT,
  CLASS_video = SOL_EMU_CLASS_INT,
  CLASS_bits = SOL_EMU_CLASS_INT,
  CLASS_shift = SOL_EMU_CLASS_INT,
  CLASS_float_arith = SOL_EMU_CLASS_FLOAT,
  CLASS_float_unary = SOL_EMU_CLASS_SPECIAL,
  CLASS_compare = SOL_EMU_CLASS_INT,
  CLASS_select = SOL_EMU_CLASS_INT,
  CLASS_move = SOL_EMU_CLASS_NAME,
  CLASS_convert = SOL_EMU_CLASS_CONVERT,
  CLASS_address = SOL_EMU_CLASS_NAME,
  CLASS_load = SOL_EMU_CLASS_MEMORY,
  CLASS_store = SOL_EMU_CLASS_MEMORY,
  CLASS_hint = SOL_EMU_CLASS_CONTROL,
  CLASS_atomic = SOL_EMU_CLASS_MEMORY,
  CLASS_fence = SOL_EMU_CLASS_BARRIER,
  CLASS_barrier = SOL_EMU_CLASS_BARRIER,
  CLASS_warp = SOL_EMU_CLASS_WARP,
  CLASS_async_copy = SOL_EMU_CLASS_MEMORY,
  CLASS_mbarrier = SOL_EMU_CLASS_BARRIER,
  CLASS_matrix = SOL_EMU_CLASS_MEMORY,
  CLASS_tcgen05 = SOL_EMU_CLASS_BARRIER,
  CLASS_texture = SOL_EMU_CLASS_MEMORY,
  CLASS_surface = SOL_EMU_CLASS_MEMORY,
  CLASS_control = SOL_EMU_CLASS_CONTROL,
  CLASS_stack = SOL_EMU_CLASS_INT
};
static const uint8_t class_of_op[PTX_OP_COUNT] = {
#define PTX_OP(id, root, modifiers, operands, handler, semantics) [PTX_OP_##id] = CLASS_##handler,
#define PTX_FORM(id, root, modifiers, operands)
#define PTX_REFUSED(root, what)
#include "ptx/ops.def"
};

// Of arithmetic on numbers of that type.
static SolEmuClass of_type(int type) {
  switch (type) {
  case PTX_F64: return SOL_EMU_CLASS_DOUBLE;
  case PTX_F16:
  case PTX_F16X2:
  case PTX_BF16:
  case PTX_BF16X2: return SOL_EMU_CLASS_HALF;
  case PTX_F32: return SOL_EMU_CLASS_FLOAT;
  default: return SOL_EMU_CLASS_INT;
  }
}

static bool is_int(int type) {
  PtxTypeClass c = sol_ptx_type_class((PtxType)type);
  return c == PTX_CLASS_UNSIGNED || c == PTX_CLASS_SIGNED || c == PTX_CLASS_BITS;
}

SolEmuClass sol_emu_class(const PtxInst *inst) {
  const PtxCode *code = inst->code;
  SolEmuClass class = (SolEmuClass)class_of_op[code->op];
  switch (code->op) {
  case PTX_OP_FDIV: return code->type[0] == PTX_F64 ? SOL_EMU_CLASS_DOUBLE : SOL_EMU_CLASS_SPECIAL;
  case PTX_OP_COPYSIGN:
  case PTX_OP_TESTP: return of_type(code->type[0]);
  case PTX_OP_SETP: return of_type(code->type[0]);
  case PTX_OP_SET: return of_type(code->type[1]);
  case PTX_OP_LD:
  case PTX_OP_ST: return code->space == PTX_SPACE_PARAM ? SOL_EMU_CLASS_NAME : class;
  case PTX_OP_MMA:
  case PTX_OP_WMMA_MMA:
  case PTX_OP_WGMMA:
  case PTX_OP_WGMMA_SP:
  case PTX_OP_TCGEN05_MMA:
  case PTX_OP_TCGEN05_MMA_SCALED: return SOL_EMU_CLASS_TENSOR;
  case PTX_OP_TCGEN05_LD:
  case PTX_OP_TCGEN05_ST:
  case PTX_OP_TCGEN05_CP: return SOL_EMU_CLASS_MEMORY;
  case PTX_OP_WGMMA_FENCE:
  case PTX_OP_WGMMA_COMMIT:
  case PTX_OP_WGMMA_WAIT: return SOL_EMU_CLASS_BARRIER;
  case PTX_OP_MOVMATRIX: return SOL_EMU_CLASS_WARP;
  case PTX_OP_PREFETCH:
  case PTX_OP_CP_ASYNC_BULK_PREFETCH: return SOL_EMU_CLASS_MEMORY;
  case PTX_OP_PREFETCH_TENSORMAP: return SOL_EMU_CLASS_CONTROL;
  case PTX_OP_CLUSTER_TRY_CANCEL:
  case PTX_OP_CLUSTER_QUERY_CANCEL:
  case PTX_OP_TENSORMAP_COPY: return SOL_EMU_CLASS_BARRIER;
  case PTX_OP_CP_ASYNC_COMMIT:
  case PTX_OP_CP_ASYNC_WAIT:
  case PTX_OP_CP_ASYNC_BULK_COMMIT:
  case PTX_OP_CP_ASYNC_BULK_WAIT: return SOL_EMU_CLASS_BARRIER;
  case PTX_OP_TXQ:
  case PTX_OP_SUQ:
  case PTX_OP_ISTYPEP: return SOL_EMU_CLASS_INT;
  default: break;
  }
  if (class == SOL_EMU_CLASS_FLOAT) return of_type(code->type[0]);
  if (class == SOL_EMU_CLASS_SPECIAL && code->type[0] == PTX_F64) return SOL_EMU_CLASS_DOUBLE;
  // Widening and narrowing of integers is a move.
  if (class == SOL_EMU_CLASS_CONVERT && is_int(code->type[0]) && is_int(code->type[1]))
    return SOL_EMU_CLASS_INT;
  return class;
}

const char *sol_emu_class_name(SolEmuClass class) {
  static const char *const names[] = {"int",    "float",  "half", "double",  "special", "convert",
                                      "tensor", "memory", "warp", "barrier", "control", "name"};
  _Static_assert(SOL_COUNT(names) == SOL_EMU_CLASS_COUNT, "a name for each");
  return (unsigned)class < SOL_EMU_CLASS_COUNT ? names[class] : "";
}

// By the clocks of their chains on an H200, 4 to a plain instruction: division of f32 58 clocks, with SOL_EMU_RARE 252 (bench/probe_div.cu); of f64 135,
// remainder of 32 bits 67, of 64 bits 360 (bench/kinds/latency.cu: chain_div64, chain_mod, chain_mod64).
uint32_t sol_emu_size(const PtxInst *inst) {
  const PtxCode *code = inst->code;
  bool wide = sol_ptx_type_bits((PtxType)code->type[0]) == 64,
       exact = !PTX_HAS(code, APPROX) && !PTX_HAS(code, FULL);
  switch (code->op) {
  case PTX_OP_DIV:
  case PTX_OP_REM: return wide ? 90 : 16;
  case PTX_OP_FDIV: return wide ? 32 : exact ? 14 : 3;
  case PTX_OP_SQRT: return wide ? 32 : exact ? 14 : 2;
  case PTX_OP_RCP: return exact ? wide ? 24 : 10 : 1;
  default: return 1;
  }
}
