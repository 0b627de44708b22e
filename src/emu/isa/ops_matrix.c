// ldmatrix, stmatrix, movmatrix; mma and wmma are in ops_mma.c and ops_wmma.c.
//
// In ldmatrix and stmatrix a lane names a row of 16 bytes; eight rows make one pass through shared memory
// where their banks do not clash. They are counted as 16-byte accesses of the lanes that name rows, a quarter
// of a warp at a time.
#include "emu/isa/matrix.h"
#include "emu/isa/num_mma.h"

// ---- ldmatrix, stmatrix ----

typedef struct TilePlan {
  EmuLoc regs[4];
  uint8_t count;
  uint32_t lanes; // that name rows
  uint8_t row[4][EMU_LANES]
             [4]; // of byte e of a lane's register: the lane that names its row, and its byte there
  uint8_t byte[4][EMU_LANES][4];
} TilePlan;

static void plan_tile(TilePlan *plan, const PtxCode *code) {
  bool trans = PTX_HAS(code, TRANS);
  for (int r = 0; r < plan->count; r++)
    for (int lane = 0; lane < EMU_LANES; lane++)
      for (int e = 0; e < 4; e++) {
        int group = lane >> 2, in_group = lane & 3, row, byte;
        if (code->type[0] == PTX_B16) {
          int along = in_group * 2 + (e >> 1); // of 8 elements
          row = r * 8 + (trans ? along : group);
          byte = (trans ? group : along) * 2 + (e & 1);
        } else if (code->op == PTX_OP_LDMATRIX) { // m16n16: two registers a matrix
          row = (r >> 1) * 16 + in_group * 4 + (r & 1) * 2 + (e & 1);
          byte = group + (e >> 1) * 8;
        } else { // m16n8: its 8 columns of 16 are what lies in memory
          row = r * 8 + in_group * 2 + (e & 1);
          byte = group + (e >> 1) * 8;
        }
        plan->row[r][lane][e] = (uint8_t)row;
        plan->byte[r][lane][e] = (uint8_t)byte;
      }
}

// The lanes that name rows, resolved; those outside of shared memory are findings.
static uint32_t tile_rows(EmuCtx *x, const EmuInst *i, uint32_t mask, bool store, EmuAccess *acc) {
  uint32_t ok = emu_resolve(x, i, mask, 16, store, acc);
  if (ok & ~acc->shared) {
    emu_find(x, i, ok & ~acc->shared, SOL_EMU_BAD_USE, 0, 16, "a matrix row outside of shared memory");
    ok = acc->mask = ok & acc->shared;
  }
  if (ok) emu_count(x, i, acc, 16, store ? EMU_STORE : EMU_LOAD);
  return ok;
}

static void ldmatrix(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask) return;
  const TilePlan *plan = (const TilePlan *)i->more;
  EmuAccess acc;
  uint32_t ok = mask & plan->lanes ? tile_rows(x, i, mask & plan->lanes, false, &acc) : 0;
  uint8_t tile[EMU_LANES][16];
  memset(tile, 0, sizeof tile);
  for (uint32_t left = ok; left; left &= left - 1)
    memcpy(tile[emu_first(left)], acc.host[emu_first(left)], 16);
  for (int r = 0; r < plan->count; r++)
    for (uint32_t left = mask; left; left &= left - 1) {
      int lane = emu_first(left);
      const uint8_t *row = plan->row[r][lane], *byte = plan->byte[r][lane];
      uint32_t v = 0;
      for (int e = 0; e < 4; e++) v |= (uint32_t)tile[row[e]][byte[e]] << 8 * e;
      EMU_OUT(uint32_t, plan->regs[r])[lane] = v;
    }
}

static void stmatrix(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask) return;
  const TilePlan *plan = (const TilePlan *)i->more;
  EmuAccess acc;
  uint32_t ok = mask & plan->lanes ? tile_rows(x, i, mask & plan->lanes, true, &acc) : 0;
  uint8_t tile[EMU_LANES][16];
  for (int r = 0; r < plan->count; r++)
    for (int lane = 0; lane < EMU_LANES; lane++) {
      const uint8_t *row = plan->row[r][lane], *byte = plan->byte[r][lane];
      uint32_t v = EMU_IN(uint32_t, plan->regs[r])[lane];
      for (int e = 0; e < 4; e++) tile[row[e]][byte[e]] = (uint8_t)(v >> 8 * e);
    }
  for (uint32_t left = ok; left; left &= left - 1)
    memcpy(acc.host[emu_first(left)], tile[emu_first(left)], 16);
}

static bool lower_tile(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxCode *code = in->code;
  bool load = code->op == PTX_OP_LDMATRIX;
  TilePlan *plan = (TilePlan *)lower_alloc(l, sizeof *plan);
  const EmuLoc *regs = lower_list(l, &in->operands[load ? 0 : 1]);
  if (!plan || !regs || !lower_mem(l, &in->operands[load ? 1 : 0], code->space, out)) return false;
  plan->count = (uint8_t)sol_ptx_fragment(code, 'L').regs;
  for (int r = 0; r < plan->count; r++) plan->regs[r] = regs[r];
  plan_tile(plan, code);
  int rows = code->vec * (code->n == 16 ? 16 : 8);
  plan->lanes = rows < 32 ? (1u << rows) - 1 : EMU_ALL;
  out->f = lower_const(l, EMU_ALL, 4);
  out->bytes = 16;
  out->vec = 1;
  out->kind = load ? SOL_EMU_KIND_SHARED_LOAD : SOL_EMU_KIND_SHARED_STORE;
  out->more = plan;
  out->run = load ? ldmatrix : stmatrix;
  return true;
}

// ---- movmatrix ----

static void movmatrix(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask) return;
  uint32_t a[EMU_LANES], r[EMU_LANES], *d = EMU_OUT(uint32_t, i->d);
  memcpy(a, EMU_IN(uint32_t, i->a), sizeof a);
  sol_num_movmatrix(r, a);
  for (uint32_t left = mask; left; left &= left - 1) d[emu_first(left)] = r[emu_first(left)];
}

bool lower_matrix(Lower *l, const PtxInst *in, EmuInst *out) {
  switch (in->code->op) {
  case PTX_OP_LDMATRIX:
  case PTX_OP_STMATRIX: return lower_tile(l, in, out);
  case PTX_OP_MOVMATRIX:
    out->d = lower_write(l, &in->operands[0]);
    out->a = lower_read(l, &in->operands[1]);
    out->f = lower_const(l, EMU_ALL, 4);
    out->run = movmatrix;
    return true;
  case PTX_OP_MMA:
  case PTX_OP_WMMA_MMA: return lower_mma(l, in, out);
  case PTX_OP_WMMA_LOAD:
  case PTX_OP_WMMA_STORE: return lower_wmma_memory(l, in, out);
  default: return lower_wgmma(l, in, out);
  }
}
