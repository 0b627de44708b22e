// wmma.load and wmma.store: a fragment from or to a matrix in memory.
//
// How a GPU splits them into accesses is not documented and differs between generations. Here neighbouring
// elements of a lane that lie side by side in memory make one access of up to 16 bytes, and every such access
// is counted as a request of its own: bytes and sectors are those of the fragment's layout on an H200.
#include "emu/isa/matrix.h"

typedef struct WmmaPlan {
  EmuLoc regs[NUM_MAX_MMA_REGS];
  NumFragment f;
  int rows, cols;     // of the matrix as the manual draws it
  bool along_columns; // column-major
  EmuLoc stride;      // in elements, between rows or columns
  uint8_t run;        // elements in one access
} WmmaPlan;

// In elements from the matrix's start.
static uint64_t element_at(const WmmaPlan *plan, int lane, int slot, uint64_t stride) {
  uint32_t at = (uint32_t)plan->f.lane[lane] + plan->f.slot[slot];
  uint64_t row = at / (uint32_t)plan->f.stride, col = at % (uint32_t)plan->f.stride;
  return plan->along_columns ? col * stride + row : row * stride + col;
}

static uint64_t base_address(EmuCtx *x, const EmuInst *i, int lane) {
  uint64_t base = i->abytes == 8 ? EMU_IN(uint64_t, i->a)[lane] : EMU_IN(uint32_t, i->a)[lane];
  return base + (uint64_t)i->offset;
}

// Moves `run` elements from slot on between memory and a lane's registers. Elements of fewer than 8 bits come
// in whole registers.
static void move_run(EmuCtx *x, const WmmaPlan *plan, int lane, int slot, uint8_t *memory, bool store) {
  uint32_t bits = (uint32_t)plan->f.bits, bytes = bits < 8 ? 4 : bits / 8;
  int step = bits < 8 ? plan->f.per_reg : 1;
  for (int e = 0; e < plan->run; e += step, memory += bytes) {
    int s = slot + e, reg = s / plan->f.per_reg;
    size_t at =
        (size_t)lane * (bits == 64 ? 8 : 4) + (size_t)(s % plan->f.per_reg) * (bits < 8 ? 0 : bits / 8);
    uint8_t *in_register = EMU_OUT(uint8_t, plan->regs[reg]) + at;
    if (store) {
      memcpy(memory, in_register, bytes);
      continue;
    }
    memcpy(in_register, memory, bytes);
    for (int copy = reg + plan->f.slots / plan->f.per_reg; copy < plan->f.regs;
         copy += plan->f.slots / plan->f.per_reg) // what f16 fragments hold several times
      memcpy(EMU_OUT(uint8_t, plan->regs[copy]) + at, memory, bytes);
  }
}

static void wmma_move(EmuCtx *x, const EmuInst *i, uint32_t mask, bool store) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask) return;
  const WmmaPlan *plan = (const WmmaPlan *)i->more;
  uint64_t base[EMU_LANES], stride[EMU_LANES];
  for (int l = 0; l < EMU_LANES; l++) { // before registers change
    base[l] = base_address(x, i, l);
    stride[l] = EMU_IN(uint32_t, plan->stride)[l];
  }
  uint32_t bits = (uint32_t)plan->f.bits, bytes = plan->run * bits / 8;
  bool words =
      plan->f.bits == 32 && plan->f.per_reg == 1 && i->fn; // b1: elements are words, strides are in bits
  for (int slot = 0; slot < plan->f.slots; slot += plan->run) {
    uint64_t addr[EMU_LANES];
    uint8_t nothing[16] = {0};
    EmuAccess acc;
    for (int l = 0; l < EMU_LANES; l++)
      addr[l] = base[l] + element_at(plan, l, slot, words ? stride[l] / 32 : stride[l]) * bits / 8;
    uint32_t ok = emu_resolve_at(x, i, mask, addr, i->space, bytes, store, &acc);
    if (ok) emu_count(x, i, &acc, bytes, store ? EMU_STORE : EMU_LOAD);
    for (uint32_t left = store ? ok : mask; left; left &= left - 1) {
      int l = emu_first(left);
      move_run(x, plan, l, slot, ok >> l & 1 ? acc.host[l] : nothing, store);
    }
  }
}
static void wmma_load(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  wmma_move(x, i, mask, false);
}
static void wmma_store(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  wmma_move(x, i, mask, true);
}

// The longest power of two of slots, up to 16 bytes, that lie side by side in every lane.
static int longest_run(const WmmaPlan *plan) {
  int run = 1;
  for (int n = 2; n <= plan->f.slots && n * plan->f.bits <= 128; n *= 2) {
    for (int s = 0; s < plan->f.slots; s++)
      for (int lane = 0; lane < EMU_LANES; lane++) {
        uint64_t stride = 4096, first = element_at(plan, lane, s & ~(n - 1), stride);
        if (element_at(plan, lane, s, stride) != first + (uint64_t)(s & (n - 1)) || first % (uint64_t)n)
          return run;
      }
    run = n;
  }
  return run;
}

bool lower_wmma_memory(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxCode *code = in->code;
  bool store = code->op == PTX_OP_WMMA_STORE;
  const PtxOperand *regs = &in->operands[store ? 1 : 0], *memory = &in->operands[store ? 0 : 1];
  const PtxOperand *stride = &in->operands[2];
  bool is_a = !store && code->fn == PTX_FN_MATRIX_A, is_b = !store && code->fn == PTX_FN_MATRIX_B;
  NumMma num;
  NumMmaPlan product;
  WmmaPlan *plan = (WmmaPlan *)lower_alloc(l, sizeof *plan);
  const EmuLoc *list = lower_list(l, regs);
  if (!plan || !list || !lower_mem(l, memory, code->space, out)) return false;
  if (!matrix_num(code, &num) || !sol_num_mma_plan(&num, &product))
    return lower_refuse(l, "PTX has no matrix of this type and shape");
  plan->f = is_a ? product.a : is_b ? product.b : product.c;
  for (int r = 0; r < plan->f.regs; r++) plan->regs[r] = list[r];
  plan->along_columns = code->layout == PTX_LAYOUT_COL;
  plan->rows = is_b ? code->k : code->m;
  plan->cols = is_a ? code->k : code->n;
  uint64_t dense = (uint64_t)(plan->along_columns ? plan->rows : plan->cols);
  plan->stride = stride->kind == PTX_ARG_NONE ? lower_const(l, dense, 4) : lower_read(l, stride);
  plan->run = (uint8_t)longest_run(plan);
  out->fn = code->type[0] == PTX_B1;
  out->f = lower_const(l, EMU_ALL, 4);
  out->bytes = (uint8_t)(plan->run * plan->f.bits / 8);
  out->vec = 1;
  bool shared = code->space == PTX_SPACE_SHARED;
  SolEmuKind load_kind = shared ? SOL_EMU_KIND_SHARED_LOAD : SOL_EMU_KIND_GLOBAL_LOAD;
  out->kind = (uint8_t)(store ? load_kind + 1 : load_kind);
  out->more = plan;
  out->run = store ? wmma_store : wmma_load;
  return true;
}
