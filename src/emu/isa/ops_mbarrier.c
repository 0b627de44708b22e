// mbarriers: 64 bits of shared memory that count arrivals and bytes, phase by phase. The layout is our own,
// as the machine's is opaque: pending arrivals in bits 0-19, expected ones in 20-39, awaited bytes (two's
// complement) in 40-61, in 62 that it is initialised, the phase in 63. A phase ends when no arrival and no
// byte is pending. Not counted as traffic: on sm_90 a unit of its own does them.
#include "emu/core/async.h"
#include "emu/core/lower.h"
#include "emu/core/trace.h"

enum { COUNT_BITS = 20, TX_SHIFT = 40, TX_BITS = 22 };
#define COUNT_MASK ((UINT64_C(1) << COUNT_BITS) - 1)
#define IS_MADE    (UINT64_C(1) << 62)
#define PHASE      (UINT64_C(1) << 63)

typedef struct Barrier {
  uint32_t pending, expected;
  int32_t tx;
  bool phase;
} Barrier;

static Barrier unpack_barrier(uint64_t v) {
  int64_t tx = (int64_t)(v << (64 - TX_SHIFT - TX_BITS)) >> (64 - TX_BITS);
  return (Barrier){(uint32_t)(v & COUNT_MASK), (uint32_t)(v >> COUNT_BITS & COUNT_MASK), (int32_t)tx,
                   (v & PHASE) != 0};
}
static uint64_t pack_barrier(Barrier b) {
  return (uint64_t)b.pending | (uint64_t)b.expected << COUNT_BITS |
         ((uint64_t)(uint32_t)b.tx & ((UINT64_C(1) << TX_BITS) - 1)) << TX_SHIFT | IS_MADE |
         (b.phase ? PHASE : 0);
}
static void end_phase_if_complete(EmuCtx *x, const uint8_t *host, Barrier *b) {
  if (b->pending || b->tx) return;
  b->phase = !b->phase;
  b->pending = b->expected;
  // Who polls it runs before another phase may have passed, as on a GPU: nobody is so far ahead.
  x->budget = 0;
  if (emu_traced(x)) emu_trace_phase(x, host, false);
}

static uint64_t load64(const uint8_t *host) {
  uint64_t v;
  memcpy(&v, host, 8);
  return v;
}

static bool misuse(EmuCtx *x, const EmuInst *i, int lane, const char *what) {
  return emu_misuse(x, i, 1u << lane, "%s", what);
}

// The block of the cluster in whose shared memory 8 bytes stand, at a multiple of 8; NULL: none.
static const EmuBlock *block_of(const EmuCtx *x, const uint8_t *host) {
  const EmuUnit *unit = x->block->unit;
  for (uint32_t k = 0; k < unit->count; k++) {
    const EmuBlock *b = unit->blocks[k];
    uint64_t offset = (uint64_t)((uintptr_t)host - (uintptr_t)b->shared);
    if (b->shared_bytes >= 8 && offset <= b->shared_bytes - 8) return offset % 8 ? NULL : b;
  }
  return NULL;
}

// An mbarrier must be in shared memory of a block that still runs: a block that has ended has freed its memory.
static bool is_place(EmuCtx *x, const EmuInst *i, int lane, const uint8_t *host) {
  const EmuBlock *b = block_of(x, host);
  if (!b) return misuse(x, i, lane, "an mbarrier that is not 8 bytes of shared memory, at a multiple of 8");
  if (!b->warps_live) return misuse(x, i, lane, "an mbarrier of a block of the cluster that has ended");
  return true;
}

static bool read_barrier(EmuCtx *x, const EmuInst *i, int lane, const uint8_t *host, Barrier *b) {
  if (!is_place(x, i, lane, host)) return false;
  uint64_t v = load64(host);
  if (!(v & IS_MADE))
    return misuse(x, i, lane, "an mbarrier that is not initialised: execute mbarrier.init first");
  *b = unpack_barrier(v);
  return true;
}

static void write_barrier(EmuCtx *x, uint8_t *host, Barrier b) {
  uint64_t v = pack_barrier(b);
  memcpy(host, &v, 8);
  emu_worker(x)->changes++;
}

static bool add_bytes(EmuCtx *x, const EmuInst *i, int lane, Barrier *b, int64_t bytes) {
  int64_t tx = b->tx + bytes, most = (int64_t)COUNT_MASK;
  if (tx > most || tx < -most)
    return misuse(x, i, lane, "an mbarrier's count of bytes leaves its range, -1048575 to 1048575");
  b->tx = (int32_t)tx;
  return true;
}

static void add_tx(EmuCtx *x, const EmuInst *i, int lane, uint8_t *host, int64_t bytes) {
  Barrier b;
  if (!read_barrier(x, i, lane, host, &b) || !add_bytes(x, i, lane, &b, bytes)) return;
  end_phase_if_complete(x, host, &b);
  write_barrier(x, host, b);
}

void emu_mbarrier_complete(EmuCtx *x, const EmuInst *i, uint32_t mask, EmuLoc base, int64_t offset,
                           uint8_t abytes, uint32_t bytes) {
  const EmuAddress place = {.base = base, .abytes = abytes, .offset = offset};
  uint64_t addr[EMU_LANES];
  EmuAccess acc;
  if (!mask) return; // no lane's operation was carried out
  for (int l = 0; l < EMU_LANES; l++) addr[l] = emu_lane_address(x, &place, l);
  bool generic = addr[emu_first(mask)] >= EMU_SHARED_WINDOW;
  emu_resolve_at(x, i, mask, addr, generic ? PTX_SPACE_GENERIC : PTX_SPACE_SHARED_CLUSTER, 8, true, &acc);
  for (uint32_t left = acc.mask; left; left &= left - 1) {
    uint8_t *host = acc.host[emu_first(left)];
    if (emu_traced(x)) emu_trace_arrive(x, host, block_of(x, host) != x->block);
    add_tx(x, i, emu_first(left), host, -(int64_t)bytes);
  }
}

void emu_mbarrier_bytes(EmuCtx *x, const EmuInst *i, int lane, uint8_t *host, uint32_t bytes) {
  add_tx(x, i, lane, host, -(int64_t)bytes);
}

static bool count_arrivals(EmuCtx *x, const EmuInst *i, int lane, const uint8_t *host, Barrier *b,
                           uint32_t count) {
  if (count > b->pending) return misuse(x, i, lane, "more arrive at an mbarrier than it expects");
  if (emu_traced(x)) emu_trace_arrive(x, host, block_of(x, host) != x->block);
  b->pending -= count;
  return true;
}

bool emu_mbarrier_arrive(EmuCtx *x, const EmuInst *i, int lane, uint8_t *host) {
  Barrier b;
  if (!read_barrier(x, i, lane, host, &b) || !count_arrivals(x, i, lane, host, &b, 1)) return false;
  end_phase_if_complete(x, host, &b);
  write_barrier(x, host, b);
  return true;
}

// ---- handlers ----

static void init(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuAccess acc;
  const uint32_t *count = EMU_IN(uint32_t, i->b);
  for (uint32_t left = emu_resolve(x, i, mask, 8, true, &acc); left; left &= left - 1) {
    int l = emu_first(left);
    if (!is_place(x, i, l, acc.host[l])) return;
    if (!count[l] || count[l] > COUNT_MASK) {
      misuse(x, i, l, "an mbarrier needs 1 to 1048575 arrivals");
      return;
    }
    write_barrier(x, acc.host[l], (Barrier){.pending = count[l], .expected = count[l]});
    if (emu_traced(x)) emu_trace_phase(x, acc.host[l], true);
  }
  if (x->launch->checking) emu_check_access(x, i, &acc, 8, EMU_USE_STRONG_STORE);
}

static void inval(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuAccess acc;
  Barrier b;
  for (uint32_t left = emu_resolve(x, i, mask, 8, true, &acc); left; left &= left - 1) {
    int l = emu_first(left);
    if (!read_barrier(x, i, l, acc.host[l], &b)) return;
    memset(acc.host[l], 0, 8);
    emu_worker(x)->changes++;
  }
}

static void transact(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuAccess acc;
  const uint32_t *bytes = EMU_IN(uint32_t, i->b);
  for (uint32_t left = emu_resolve(x, i, mask, 8, true, &acc); left; left &= left - 1) {
    int l = emu_first(left);
    add_tx(x, i, l, acc.host[l], i->fn ? -(int64_t)bytes[l] : (int64_t)bytes[l]);
  }
}

enum { ARRIVE_EXPECT = 1, ARRIVE_DROP = 2, ARRIVE_COUNT = 4 };
static bool arrive_one(EmuCtx *x, const EmuInst *i, int l, uint8_t *host, uint32_t operand) {
  Barrier b;
  bool expects = i->fn & ARRIVE_EXPECT;
  uint32_t count = i->fn & ARRIVE_COUNT && !expects ? operand : 1;
  if (!read_barrier(x, i, l, host, &b) || (expects && !add_bytes(x, i, l, &b, operand))) return false;
  if (!count_arrivals(x, i, l, host, &b, count)) return false;
  if (i->fn & ARRIVE_DROP) b.expected -= count < b.expected ? count : b.expected;
  end_phase_if_complete(x, host, &b);
  write_barrier(x, host, b);
  return true;
}

static void arrive(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuAccess acc;
  const uint32_t *operand = EMU_IN(uint32_t, i->b);
  uint64_t *d = EMU_OUT(uint64_t, i->d);
  for (uint32_t left = emu_resolve(x, i, mask, 8, true, &acc); left; left &= left - 1) {
    int l = emu_first(left);
    uint64_t old = load64(acc.host[l]);
    if (!arrive_one(x, i, l, acc.host[l], operand[l])) return;
    d[l] = old;
  }
  emu_shadow_barrier(x->block);
}

static void wait(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuAccess acc;
  Barrier b;
  uint32_t done = 0;
  for (uint32_t left = emu_resolve(x, i, mask, 8, false, &acc); left; left &= left - 1) {
    int l = emu_first(left);
    if (!read_barrier(x, i, l, acc.host[l], &b)) return;
    bool asked = i->fn & 1 ? EMU_IN(uint32_t, i->b)[l] & 1 : (EMU_IN(uint64_t, i->b)[l] & PHASE) != 0;
    if (b.phase == asked && emu_async_poll(x, acc.host[l]) && !read_barrier(x, i, l, acc.host[l], &b)) return;
    if (b.phase != asked) done |= 1u << l;
  }
  emu_set_pred(x, i->d, mask, done);
  if (done) emu_shadow_barrier(x->block);
  if (done == mask) {
    x->fiber->spin = 0;
    emu_path_polled(x);
    if (emu_traced(x)) emu_trace_passed(x, acc.host[emu_first(mask)]);
    return;
  }
  // Others must run for it to change. test_wait may be asked again and again; try_wait may as well wait now.
  if (emu_traced(x)) emu_trace_spin(x);
  emu_spin(x);
  if (i->fn & 2) x->fiber->spin += EMU_SPIN, x->budget = 0;
}

static void pending_count(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  for (; mask; mask &= mask - 1) EMU_OUT(uint32_t, i->d)
  [emu_first(mask)] = unpack_barrier(EMU_IN(uint64_t, i->a)[emu_first(mask)]).pending;
}

typedef struct Arrival {
  uint8_t *host;
} Arrival;

// When all copies of the thread are done. (Those that it issued later may be by then.)
static void copies_done(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what) {
  const Arrival *a = what;
  emu_async_wait(x, x->warp, EMU_ASYNC_COPY, mask, UINT32_MAX);
  arrive_one(x, i, emu_first(mask), a->host, 1);
}

// cp.async.mbarrier.arrive: without noinc one more arrival is expected for it.
static void copies_arrive(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuAccess acc;
  Barrier b;
  for (uint32_t left = emu_resolve(x, i, mask, 8, true, &acc); left; left &= left - 1) {
    int l = emu_first(left);
    if (!read_barrier(x, i, l, acc.host[l], &b)) return;
    if (!i->fn && ++b.pending > COUNT_MASK) {
      misuse(x, i, l, "an mbarrier has more pending arrivals than 1048575");
      return;
    }
    if (!i->fn) write_barrier(x, acc.host[l], b);
    emu_async(x, i, EMU_ASYNC_ARRIVAL, 1u << l, 0, acc.host[l], copies_done, &(Arrival){acc.host[l]},
              sizeof(Arrival));
  }
  emu_shadow_barrier(x->block);
}

bool lower_mbarrier(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxCode *code = in->code;
  const PtxOperand *o = in->operands;
  bool has_d = code->op == PTX_OP_MBARRIER_ARRIVE || code->op == PTX_OP_MBARRIER_ARRIVE_DROP ||
               code->op == PTX_OP_MBARRIER_TEST_WAIT || code->op == PTX_OP_MBARRIER_TRY_WAIT;
  if (code->op == PTX_OP_MBARRIER_PENDING_COUNT) {
    lower_dabc(l, in, out);
    out->run = pending_count;
    return true;
  }
  if (has_d) out->d = lower_write(l, o++);
  if (!lower_mem(l, &o[0], code->space, out)) return false;
  out->bytes = 8;
  bool has_b = code->op != PTX_OP_MBARRIER_INVAL && code->op != PTX_OP_CP_ASYNC_MBARRIER_ARRIVE;
  if (has_b) out->b = lower_read(l, &o[1]);
  switch (code->op) {
  case PTX_OP_MBARRIER_INIT: out->run = init; return true;
  case PTX_OP_MBARRIER_INVAL: out->run = inval; return true;
  case PTX_OP_MBARRIER_EXPECT_TX: out->run = transact; return true;
  case PTX_OP_MBARRIER_COMPLETE_TX:
    out->fn = 1;
    out->run = transact;
    return true;
  case PTX_OP_CP_ASYNC_MBARRIER_ARRIVE:
    out->fn = PTX_HAS(code, NOINC) ? 8 : 0;
    out->run = copies_arrive;
    return true;
  case PTX_OP_MBARRIER_ARRIVE:
  case PTX_OP_MBARRIER_ARRIVE_DROP:
    out->fn = (uint8_t)((PTX_HAS(code, EXPECT_TX) ? ARRIVE_EXPECT : 0) |
                        (code->op == PTX_OP_MBARRIER_ARRIVE_DROP ? ARRIVE_DROP : 0) |
                        (o[1].kind != PTX_ARG_NONE ? ARRIVE_COUNT : 0));
    out->run = arrive;
    return true;
  case PTX_OP_MBARRIER_TEST_WAIT:
  case PTX_OP_MBARRIER_TRY_WAIT:
    out->fn = (uint8_t)((PTX_HAS(code, PARITY) ? 1 : 0) | (code->op == PTX_OP_MBARRIER_TRY_WAIT ? 2 : 0));
    out->run = wait;
    return true;
  default: return false;
  }
}
