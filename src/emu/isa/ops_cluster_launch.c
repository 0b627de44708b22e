// clusterlaunchcontrol: a running block asks for the index of one that has not started, to do its work and have it
// cancelled. Here every request fails, as on a GPU where all blocks have started: each block does its own work.
#include "emu/core/async.h"
#include "emu/core/lower.h"
#include "emu/isa/bulk.h"

enum { RESPONSE_BYTES = 16 };

typedef struct Request {
  EmuAddress barrier;
  bool multicast;
} Request;

typedef struct Response {
  uint64_t to;
  uint8_t *barrier;
} Response;

// A response of zeros: nothing was cancelled.
static void respond(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what) {
  const Response *r = what;
  int l = emu_first(mask);
  uint8_t *to = emu_range(x, i, l, r->to, PTX_SPACE_SHARED_CLUSTER, RESPONSE_BYTES, RESPONSE_BYTES, true);
  if (!to) return;
  if (x->launch->checking) emu_check_bulk(x, i, l, to, 0, RESPONSE_BYTES, EMU_USE_STORE);
  memset(to, 0, RESPONSE_BYTES);
  emu_mbarrier_bytes(x, i, l, r->barrier, RESPONSE_BYTES);
}

static void respond_later(EmuCtx *x, const EmuInst *i, int l, uint64_t to, uint64_t barrier) {
  Response r = {.to = to};
  r.barrier = emu_range(x, i, l, barrier, PTX_SPACE_SHARED_CLUSTER, 8, 8, true);
  if (r.barrier) emu_async(x, i, EMU_ASYNC_BARRIER, 1u << l, 0, r.barrier, respond, &r, sizeof r);
}

static void try_cancel(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Request *q = i->more;
  EmuAddress dst = {.base = i->a, .abytes = i->abytes, .offset = i->offset};
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    uint64_t to = bulk_shared_address(emu_lane_address(x, &dst, l));
    uint64_t barrier = bulk_shared_address(emu_lane_address(x, &q->barrier, l));
    if (!q->multicast) respond_later(x, i, l, to, barrier);
    for (uint32_t rank = 0; q->multicast && rank < x->block->unit->count; rank++)
      respond_later(x, i, l, bulk_in_rank(to, rank), bulk_in_rank(barrier, rank));
  }
}

static void is_cancelled(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  emu_set_pred(x, i->d, mask, 0);
}

static void first_block(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const EmuLoc *regs = i->more;
  for (uint32_t r = 0; r < i->vec; r++)
    for (uint32_t left = mask; left; left &= left - 1) EMU_OUT(uint32_t, regs[r])[emu_first(left)] = 0;
}

bool lower_cluster_launch(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxOperand *o = in->operands;
  if (in->code->op == PTX_OP_CLUSTER_QUERY_CANCEL) {
    bool asks = in->code->fn == PTX_FN_IS_CANCELED;
    out->d = lower_write(l, &o[0]);
    out->more = lower_list(l, &o[0]);
    out->run = asks ? is_cancelled : first_block;
    return out->more != NULL;
  }
  Request *q = lower_alloc(l, sizeof *q);
  if (in->code->op != PTX_OP_CLUSTER_TRY_CANCEL || !q) return false;
  q->multicast = PTX_HAS(in->code, MULTICAST_ALL);
  out->more = q;
  out->run = try_cancel;
  return lower_mem(l, &o[0], PTX_SPACE_SHARED, out) && lower_address_operand(l, &o[1], &q->barrier);
}
