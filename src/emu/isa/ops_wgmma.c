// wgmma: products of four warps. Each warp of a warpgroup executes the instruction and computes its own 16 of the
// 64 rows, as so many mma of m16n8: registers of A and D lie as there. The arithmetic is num_mma.h's.
//
// The sparse one has two of each four elements of A (tf32: one of two), and metadata that say which: four bits for each
// four, of tf32 each two, elements, in the lanes and places that sparse_place has, as an H200 reads them
// (bench/probe_sparse.cu). A is put back together with zeros, and multiplied as it is.
//
// A wait_group goes on when all four warps have committed the groups that it waits for, since what one warp's wait
// allows, such as filling the shared memory again, the others' products must not see.
#include "emu/core/async.h"
#include "emu/core/trace.h"
#include "emu/isa/matrix.h"
#include "emu/isa/smem_tile.h"

enum {
  GROUP_WARPS = 4,
  MOST_D = 128,
  A_REGS = 4,
  ALL_A_REGS = 8, // of a sparse A with its zeros
  MOST_B_REGS = 4
};

typedef struct Wgmma {
  NumMmaPlan num; // of m16n8
  EmuLoc d[MOST_D], a[A_REGS];
  bool a_in_registers, a_turned, b_turned;
  uint32_t a_sign, b_sign;  // xored into the registers of what is negated
  uint32_t columns, d_regs; // N; registers of D for eight columns
  uint16_t a_at[A_REGS][EMU_LANES],
      b_at[MOST_B_REGS][EMU_LANES]; // where a register's bytes are in two or one Tile
  bool sparse;
  uint8_t a_bits, selector;
  EmuLoc meta;
  uint16_t all_at[ALL_A_REGS][EMU_LANES]; // as a_at, with the zeros
} Wgmma;

typedef struct Product { // what an execution of it works on
  uint64_t a, b;
  bool adds;
  uint32_t meta[EMU_LANES]; // of a sparse one
} Product;

// ---- the product ----

static bool read_a(EmuCtx *x, const EmuInst *i, const Wgmma *w, uint64_t descriptor, uint32_t *const regs[]) {
  Tile tiles[2];
  const SmemMatrix m = smem_matrix(descriptor, w->a_turned);
  uint32_t row = x->warp->index % GROUP_WARPS * 16;
  if (!smem_tile(x, i, &m, row, 16, true, tiles[0]) || !smem_tile(x, i, &m, row + 8, 16, true, tiles[1]))
    return false;
  tile_registers(regs, A_REGS, w->a_at, tiles[0][0], w->a_sign);
  return true;
}

static void take_a(const EmuCtx *x, const Wgmma *w, uint32_t *const regs[]) {
  for (int r = 0; r < A_REGS; r++)
    for (int l = 0; l < EMU_LANES; l++) regs[r][l] = EMU_IN(uint32_t, w->a[r])[l] ^ w->a_sign;
}

// The metadata's four bits about a chunk of a row: four elements along k, of tf32 two.
static uint32_t sparse_place(const Wgmma *w, const uint32_t *meta, uint32_t row, uint32_t chunk) {
  bool bytes = w->a_bits == 8;
  uint32_t lane = row % 8 * 4 + (bytes ? chunk / 8 * 2 + row / 8 : w->selector * 2u + chunk / 4);
  return meta[lane] >> (bytes ? chunk % 8 : chunk % 4 + row / 8 * 4) * 4 & 15;
}

// Where element `at` of a row of A that has no zeros is in one that has them.
static uint32_t element_place(const Wgmma *w, const uint32_t *meta, uint32_t row, uint32_t at) {
  if (w->a_bits == 32) return at * 2 + (sparse_place(w, meta, row, at) >> 1 & 1);
  return at / 2 * 4 + (sparse_place(w, meta, row, at / 2) >> at % 2 * 2 & 3);
}

// Puts zeros between the elements of A.
static void spread_a(const Wgmma *w, const uint32_t *meta, uint32_t *const regs[], uint32_t *const to[]) {
  uint8_t few[2 * TILE_ROWS][TILE_BYTES], all[2 * TILE_ROWS][TILE_BYTES] = {{0}};
  uint32_t size = w->a_bits / 8u;
  for (int r = 0; r < A_REGS; r++)
    for (int l = 0; l < EMU_LANES; l++) memcpy(few[0] + w->a_at[r][l], &regs[r][l], 4);
  for (uint32_t row = 0; row < 2 * TILE_ROWS; row++)
    for (uint32_t at = 0; at < TILE_BYTES / 2 / size; at++)
      memcpy(all[row] + element_place(w, meta, row, at) * size, few[row] + at * size, size);
  tile_registers(to, ALL_A_REGS, w->all_at, all[0], 0);
}

// Eight columns of D from column `at` on.
static void multiply(EmuCtx *x, const Wgmma *w, uint32_t at, bool adds, uint32_t mask, const void *const a[],
                     const void *const b[]) {
  static const _Alignas(64) uint32_t zeros[EMU_LANES];
  uint32_t sum[4][EMU_LANES];
  const void *c[4];
  void *to[4];
  for (uint32_t r = 0; r < w->d_regs; r++) {
    c[r] = adds ? emu_at(x, w->d[at / 8 * w->d_regs + r]) : (const void *)zeros;
    to[r] = sum[r];
  }
  sol_num_mma(&w->num, to, a, b, c);
  for (uint32_t r = 0; r < w->d_regs; r++) {
    uint32_t *d = EMU_OUT(uint32_t, w->d[at / 8 * w->d_regs + r]);
    for (uint32_t left = mask; left; left &= left - 1) d[emu_first(left)] = sum[r][emu_first(left)];
  }
}

static void run_product(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what) {
  const Wgmma *w = i->more;
  const Product *p = what;
  const SmemMatrix m = smem_matrix(p->b, w->b_turned);
  uint32_t of_a[A_REGS][EMU_LANES], all_a[ALL_A_REGS][EMU_LANES], of_b[MOST_B_REGS][EMU_LANES];
  uint32_t *regs[A_REGS], *all[ALL_A_REGS], *right[MOST_B_REGS];
  const void *a[ALL_A_REGS], *b[MOST_B_REGS];
  for (int r = 0; r < A_REGS; r++) regs[r] = of_a[r];
  for (int r = 0; r < ALL_A_REGS; r++) all[r] = all_a[r], a[r] = w->sparse ? all_a[r] : of_a[r % A_REGS];
  for (int r = 0; r < MOST_B_REGS; r++) b[r] = right[r] = of_b[r];
  if (w->a_in_registers)
    take_a(x, w, regs);
  else if (!read_a(x, i, w, p->a, regs))
    return;
  if (w->sparse) spread_a(w, p->meta, regs, all);
  bool counts = x->warp->index % GROUP_WARPS == 0; // the four warps read B together
  for (uint32_t at = 0; at < w->columns; at += 8) {
    Tile tile;
    if (!smem_tile(x, i, &m, at, w->sparse ? 32 : 16, counts, tile)) return;
    tile_registers(right, w->num.b.regs, w->b_at, tile[0], w->b_sign);
    multiply(x, w, at, p->adds, mask, a, b);
  }
  emu_spend(x, (uint64_t)w->columns * 1024);
}

// ---- warpgroups ----

static bool in_group(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  if (x->warp->index / GROUP_WARPS * GROUP_WARPS + GROUP_WARPS <= x->block->warp_count) return true;
  return emu_misuse(x, i, mask, "a warpgroup is four warps: the block has %u", x->block->warp_count);
}

static void issue(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask || !in_group(x, i, mask)) return;
  int l = emu_first(mask);
  const Wgmma *w = i->more;
  Product p = {EMU_IN(uint64_t, i->a)[l], EMU_IN(uint64_t, i->b)[l], emu_pred(x, i->c) >> l & 1, {0}};
  if (w->sparse) memcpy(p.meta, EMU_IN(uint32_t, w->meta), sizeof p.meta);
  emu_async(x, i, EMU_ASYNC_WGMMA, mask, x->warp->wgmma_groups, NULL, run_product, &p,
            w->sparse ? sizeof p : offsetof(Product, meta));
}

static void fence(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (mask) in_group(x, i, mask);
}

static void commit(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask || !in_group(x, i, mask)) return;
  x->warp->wgmma_groups++;
  if (emu_traced(x)) emu_trace_commit(x, EMU_TRACE_WGMMA);
}

static void wait(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint32_t together = emu_sync_lanes(x, i, mask, i->f);
  if (!together || !in_group(x, i, together)) return;
  uint64_t left = (uint64_t)i->offset, made = x->warp->wgmma_groups;
  uint32_t before = made > left ? (uint32_t)(made - left) : 0;
  EmuWarp *first = x->warp - x->warp->index % GROUP_WARPS;
  for (int k = 0; k < GROUP_WARPS; k++)
    if (first[k].wgmma_groups < before && !x->sync_lanes) {
      emu_again(x, i, mask);
      return;
    }
  if (emu_traced(x)) emu_trace_wait_group(x, EMU_TRACE_WGMMA, left, false, false);
  for (int k = 0; k < GROUP_WARPS; k++) emu_async_wait(x, &first[k], EMU_ASYNC_WGMMA, EMU_ALL, before);
}

// ---- lowering ----

static bool take_registers(Lower *l, const PtxOperand *o, uint32_t count, EmuLoc *to) {
  const EmuLoc *list = lower_list(l, o);
  if (!list || o->kind != PTX_ARG_VEC || o->count != count) return false;
  memcpy(to, list, sizeof *to * count);
  return true;
}

static uint32_t sign_of(const PtxOperand *scale, uint8_t type) {
  if (scale->kind != PTX_ARG_IMM || scale->value == 1) return 0;
  return type == PTX_TF32 ? 0x80000000 : sol_ptx_type_bits((PtxType)type) == 16 ? 0x80008000 : 0x80808080;
}

static bool scales_hold(Lower *l, const PtxOperand *o) {
  for (int k = 4; k < 8; k++) {
    if (o[k].kind == PTX_ARG_NONE) continue;
    bool scale = k < 6;
    if (o[k].value == 1 || o[k].value == (scale ? UINT32_MAX : 0)) continue;
    return lower_refuse(l, scale ? "imm-scale-a and imm-scale-b are 1 or -1"
                                 : "imm-trans-a and imm-trans-b are 0 or 1");
  }
  return true;
}

static bool turns(Lower *l, const PtxOperand *o, Wgmma *w) {
  bool both = o[7].kind != PTX_ARG_NONE;
  if (o[6].kind == PTX_ARG_NONE) return true;
  if (both == w->a_in_registers)
    return lower_refuse(l, "imm-trans-a is there if and only if A is in shared memory");
  w->a_turned = both && o[6].value;
  w->b_turned = o[both ? 7 : 6].value != 0;
  return true;
}

// Registers of A as they are given have half of k.
static bool lower_sparse(Lower *l, const PtxInst *in, NumMma num, Wgmma *w) {
  const PtxOperand *selector = &in->operands[4];
  NumMmaPlan few;
  num.k /= 2, num.sparse = false;
  if (!sol_num_mma_plan(&num, &few))
    return lower_refuse(l, "PTX has no product of these types and this shape");
  w->sparse = true;
  w->a_bits = (uint8_t)few.a.bits;
  w->selector = (uint8_t)selector->value;
  w->meta = lower_read(l, &in->operands[3]);
  tile_places(&few.a, A_REGS, false, w->a_at);
  tile_places(&w->num.a, ALL_A_REGS, false, w->all_at);
  if (selector->value > (w->a_bits == 8 ? 0 : 1))
    return lower_refuse(l, "the sparsity selector is 0%s",
                        w->a_bits == 8 ? " for elements of 8 bits" : " or 1");
  return true;
}

static bool lower_product(Lower *l, const PtxInst *in, EmuInst *out) {
  bool sparse = in->code->op == PTX_OP_WGMMA_SP;
  const PtxOperand *o = in->operands, *rest = sparse ? o + 2 : o; // without the metadata and the selector
  Wgmma *w = lower_alloc(l, sizeof *w);
  NumMma num;
  if (!w) return false;
  *w = (Wgmma){0};
  if (!matrix_num(in->code, &num) || !sol_num_mma_plan(&num, &w->num))
    return lower_refuse(l, "PTX has no product of these types and this shape");
  w->columns = in->code->n;
  w->d_regs = (uint32_t)w->num.d.regs;
  w->a_in_registers = o[1].kind == PTX_ARG_VEC;
  w->a_sign = sign_of(&rest[4], in->code->type[1]);
  w->b_sign = sign_of(&rest[5], in->code->type[2]);
  if (sparse && !lower_sparse(l, in, num, w)) return false;
  if (!sparse) tile_places(&w->num.a, A_REGS, false, w->a_at);
  tile_places(&w->num.b, w->num.b.regs, true, w->b_at);
  if (!scales_hold(l, rest) || !turns(l, rest, w)) return false;
  if (!take_registers(l, &o[0], w->columns / 8 * w->d_regs, w->d)) return false;
  if (w->a_in_registers && !take_registers(l, &o[1], A_REGS, w->a)) return false;
  out->a = w->a_in_registers ? lower_const(l, 0, 8) : lower_read(l, &o[1]);
  out->b = lower_read(l, &o[2]);
  out->c = lower_read(l, &rest[3]);
  out->kind = SOL_EMU_KIND_SHARED_LOAD;
  out->more = w;
  out->run = issue;
  return true;
}

bool lower_wgmma(Lower *l, const PtxInst *in, EmuInst *out) {
  out->f = lower_const(l, EMU_ALL, 4);
  switch (in->code->op) {
  case PTX_OP_WGMMA:
  case PTX_OP_WGMMA_SP: return lower_product(l, in, out);
  case PTX_OP_WGMMA_FENCE: out->run = fence; return true;
  case PTX_OP_WGMMA_COMMIT: out->run = commit; return true;
  case PTX_OP_WGMMA_WAIT:
    out->offset = (int64_t)in->operands[0].value;
    out->run = wait;
    return true;
  default: return false;
  }
}
