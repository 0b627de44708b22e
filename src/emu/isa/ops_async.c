// Asynchronous copies. When they complete is async.h's.
#include "emu/core/async.h"
#include "emu/core/lower.h"
#include "emu/core/trace.h"
#include "emu/isa/bulk.h"

typedef struct Copy {
  EmuAddress from, barrier;
  bool has_size, has_ignore, multicast, reduces;
  uint8_t type, fn; // of a reduction
} Copy;

static void places(const EmuCtx *x, const EmuAddress *p, uint64_t *addr) {
  for (int l = 0; l < EMU_LANES; l++) addr[l] = emu_lane_address(x, p, l);
}

typedef struct Words { // of a cp.async, by lane; what `bytes` leaves of i->bytes is zeros
  uint8_t *to[EMU_LANES];
  const uint8_t *from[EMU_LANES];
  uint8_t bytes[EMU_LANES];
} Words;

static void copy_words(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what) {
  const Words *w = what;
  (void)x;
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    uint32_t n = w->bytes[l];
    if (n) memmove(w->to[l], w->from[l], n);
    memset(w->to[l] + n, 0, i->bytes - n);
  }
}

// Lanes that have committed as many groups issue together.
static void issue_words(EmuCtx *x, const EmuInst *i, uint32_t mask, const Words *words) {
  while (mask) {
    uint32_t same = 0, group = x->warp->copy_groups[emu_first(mask)];
    for (uint32_t left = mask; left; left &= left - 1)
      if (x->warp->copy_groups[emu_first(left)] == group) same |= left & (0u - left);
    emu_async(x, i, EMU_ASYNC_COPY, same, group, NULL, copy_words, words, sizeof *words);
    mask &= ~same;
  }
}

static void commit_copies(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint32_t *groups = i->fn ? x->warp->bulk_groups : x->warp->copy_groups;
  if (emu_traced(x)) emu_trace_commit(x, i->fn ? EMU_TRACE_STORES : EMU_TRACE_COPIES);
  for (; mask; mask &= mask - 1) groups[emu_first(mask)]++;
}

// wait_all, whose i->vec is 1, takes those that no group has yet as well.
static void wait_copies(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  if (emu_traced(x))
    emu_trace_wait_group(x, i->fn ? EMU_TRACE_STORES : EMU_TRACE_COPIES, (uint64_t)i->offset, i->vec,
                         i->bytes);
  if (!x->block->unit->asyncs) return;
  const uint32_t *groups = i->fn ? x->warp->bulk_groups : x->warp->copy_groups;
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    uint64_t left = (uint64_t)i->offset, made = groups[l];
    uint32_t before = i->vec ? UINT32_MAX : made > left ? (uint32_t)(made - left) : 0;
    emu_async_wait(x, x->warp, i->fn ? EMU_ASYNC_BULK : EMU_ASYNC_COPY, 1u << l, before);
  }
}

// cp.async: i->bytes a lane, from global to shared memory.
static void copy_async(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Copy *c = i->more;
  uint64_t addr[EMU_LANES];
  EmuAccess to, from;
  places(x, &c->from, addr);
  const uint32_t *size = EMU_IN(uint32_t, i->b);
  uint32_t ignored = c->has_ignore ? emu_pred(x, i->c) : 0, reads = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left);
    if (!(ignored >> l & 1) && !(c->has_size && !size[l])) reads |= 1u << l;
  }
  if (emu_resolve(x, i, mask, i->bytes, true, &to) != mask) return;
  emu_resolve_at(x, i, reads, addr, PTX_SPACE_GLOBAL, i->bytes, false, &from);
  Words words;
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left);
    words.to[l] = to.host[l], words.from[l] = from.host[l];
    words.bytes[l] =
        (uint8_t)(from.mask >> l & 1 ? (c->has_size && size[l] < i->bytes ? size[l] : i->bytes) : 0);
  }
  if (emu_traced(x))
    emu_trace_grouped(x, EMU_TRACE_COPIES, SOL_EMU_STEP_COPY, emu_popc(from.mask) * i->bytes);
  issue_words(x, i, mask, &words);
  x->fiber->spin = 0;
  if (x->launch->checking) {
    emu_check_access(x, i, &to, i->bytes, EMU_USE_STORE);
    emu_check_access(x, i, &from, i->bytes, EMU_USE_LOAD);
  }
  emu_count_copy(x, i, &from, (SolMemOp)i->fn);
  if (!x->launch->counting || !to.mask) return;
  SolWavefronts passes = sol_banks(to.addr, to.mask, i->bytes, SOL_SHARED_STORE);
  SolEmuCounts *counts = &x->counts[i->index];
  counts->shared_requests++;
  counts->wavefronts += passes.wavefronts;
  counts->wavefronts_ideal += passes.ideal;
}

// ---- bulk ----

enum { BULK_ALIGN = 16 }; // of both addresses and of the size

static bool in_global(int space) {
  return space == PTX_SPACE_GLOBAL || space == PTX_SPACE_GENERIC;
}

static void bulk_count(EmuCtx *x, const EmuInst *i, uint64_t address, uint32_t bytes, SolMemOp op) {
  BulkTraffic t;
  bulk_traffic_begin(x, i, op, &t);
  bulk_traffic_add(x, i, &t, address, bytes);
  bulk_traffic_end(x, i, &t);
}

static bool bulk_size(EmuCtx *x, const EmuInst *i, int lane, uint64_t bytes) {
  if (bytes % BULK_ALIGN == 0) return bytes != 0;
  emu_find(x, i, 1u << lane, SOL_EMU_BAD_USE, 0, bytes,
           "a bulk copy of %llu bytes, which is no multiple of 16", (unsigned long long)bytes);
  emu_fault(x);
  return false;
}

// A copy inside of shared memory may overlap itself.
static void bulk_move(EmuCtx *x, const Copy *c, uint8_t *to, const uint8_t *from, uint32_t bytes) {
  if (c->reduces)
    emu_bulk_reduce(to, from, bytes, c->type, c->fn);
  else
    memmove(to, from, bytes);
  emu_spend(x, bytes);
}

typedef struct Bulk {
  uint64_t to, from; // addresses, those of shared memory without the window
  uint8_t *barrier;  // NULL: a group
  uint32_t bytes;
  bool counts; // reads global memory; of a multicast the first block's
} Bulk;

static const uint8_t *bulk_source(EmuCtx *x, const EmuInst *i, int l, const Bulk *b) {
  bool global = i->vec == PTX_SPACE_GLOBAL;
  const uint8_t *from = emu_range(x, i, l, b->from, global ? PTX_SPACE_GLOBAL : PTX_SPACE_SHARED_CLUSTER,
                                  b->bytes, BULK_ALIGN, false);
  if (from && x->launch->checking) emu_check_bulk(x, i, l, from, b->from, b->bytes, EMU_USE_LOAD);
  return from;
}

static void bulk_run(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what) {
  const Copy *c = i->more;
  const Bulk *b = what;
  int l = emu_first(mask);
  bool global = in_global(i->space);
  const uint8_t *from = bulk_source(x, i, l, b);
  uint8_t *to = from ? emu_range(x, i, l, b->to, global ? PTX_SPACE_GLOBAL : PTX_SPACE_SHARED_CLUSTER,
                                 b->bytes, BULK_ALIGN, true)
                     : NULL;
  if (!to) return;
  if (x->launch->checking)
    emu_check_bulk(x, i, l, to, global ? b->to : 0, b->bytes, c->reduces ? EMU_USE_ATOMIC : EMU_USE_STORE);
  bulk_move(x, c, to, from, b->bytes);
  if (b->counts) bulk_count(x, i, b->from, b->bytes, SOL_MEM_COPY_LOAD);
  if (global) bulk_count(x, i, b->to, b->bytes, c->reduces ? SOL_MEM_ATOMIC : SOL_MEM_COPY_STORE);
  if (b->barrier) emu_mbarrier_bytes(x, i, l, b->barrier, b->bytes);
}

static void bulk_to_shared(EmuCtx *x, const EmuInst *i, int l, Bulk b, uint64_t barrier) {
  bool fits = emu_range(x, i, l, b.to, PTX_SPACE_SHARED_CLUSTER, b.bytes, BULK_ALIGN, true) != NULL;
  b.barrier = fits ? emu_range(x, i, l, barrier, PTX_SPACE_SHARED_CLUSTER, 8, 8, true) : NULL;
  if (b.barrier && emu_traced(x))
    emu_trace_copy(x, b.barrier, b.counts || i->vec != PTX_SPACE_GLOBAL ? b.bytes : 0);
  if (b.barrier) emu_async(x, i, EMU_ASYNC_BARRIER, 1u << l, 0, b.barrier, bulk_run, &b, sizeof b);
}

static void bulk_to_ranks(EmuCtx *x, const EmuInst *i, int l, Bulk b) {
  const Copy *c = i->more;
  uint64_t barrier = bulk_shared_address(emu_lane_address(x, &c->barrier, l)), to = bulk_shared_address(b.to);
  b.to = to;
  if (!c->multicast) {
    bulk_to_shared(x, i, l, b, barrier);
    return;
  }
  for (uint32_t ranks = EMU_IN(uint16_t, i->c)[l]; ranks; ranks &= ranks - 1) {
    uint32_t rank = (uint32_t)emu_first(ranks);
    b.to = bulk_in_rank(to, rank);
    bulk_to_shared(x, i, l, b, bulk_in_rank(barrier, rank));
    b.counts = false;
  }
}

static void copy_bulk(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Copy *c = i->more;
  const uint32_t *size = EMU_IN(uint32_t, i->b);
  EmuAddress dst = {.base = i->a, .abytes = i->abytes, .offset = i->offset};
  x->fiber->spin = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left);
    Bulk b = {.to = emu_lane_address(x, &dst, l), .from = emu_lane_address(x, &c->from, l), .bytes = size[l]};
    if (!bulk_size(x, i, l, b.bytes)) continue;
    b.counts = i->vec == PTX_SPACE_GLOBAL;
    if (b.counts)
      emu_path_bulk(x);
    else
      b.from = bulk_shared_address(b.from);
    if (!emu_range(x, i, l, b.from, b.counts ? PTX_SPACE_GLOBAL : PTX_SPACE_SHARED_CLUSTER, b.bytes,
                   BULK_ALIGN, false))
      continue;
    if (!in_global(i->space)) {
      bulk_to_ranks(x, i, l, b);
      continue;
    }
    if (emu_traced(x)) emu_trace_grouped(x, EMU_TRACE_STORES, SOL_EMU_STEP_COPY, b.bytes);
    emu_async(x, i, EMU_ASYNC_BULK, 1u << l, x->warp->bulk_groups[l], NULL, bulk_run, &b, sizeof b);
  }
}

// st.bulk: zeros.
static void zero_bulk(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const uint64_t *size = EMU_IN(uint64_t, i->b);
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    EmuAddress dst = {.base = i->a, .abytes = i->abytes, .offset = i->offset};
    uint64_t to = bulk_shared_address(emu_lane_address(x, &dst, l));
    if (!bulk_size(x, i, l, size[l])) continue;
    uint8_t *host = emu_range(x, i, l, to, PTX_SPACE_SHARED, size[l], BULK_ALIGN, true);
    if (!host) continue;
    if (x->launch->checking) emu_check_bulk(x, i, l, host, 0, size[l], EMU_USE_STORE);
    memset(host, 0, (size_t)size[l]);
    emu_spend(x, size[l]);
  }
}

bool lower_store_bulk(Lower *l, const PtxInst *in, EmuInst *out) {
  out->b = lower_read(l, &in->operands[1]);
  out->run = zero_bulk;
  return lower_lane_bytes(l, &in->operands[1]) == 8 && lower_mem(l, &in->operands[0], in->code->space, out);
}

// ---- lowering ----

static bool lower_cp_async(Lower *l, const PtxInst *in, Copy *c, EmuInst *out) {
  const PtxOperand *o = in->operands;
  if (o[2].kind != PTX_ARG_IMM || (o[2].value != 4 && o[2].value != 8 && o[2].value != 16))
    return lower_refuse(l, "a copy of another size than 4, 8 or 16 bytes");
  out->bytes = (uint8_t)o[2].value;
  out->b = lower_read(l, &o[3]);
  out->c = lower_read(l, &o[4]);
  c->has_size = o[3].kind != PTX_ARG_NONE;
  c->has_ignore = o[4].kind != PTX_ARG_NONE;
  out->fn = in->code->cop == PTX_COP_CA ? SOL_MEM_LOAD : SOL_MEM_COPY_LOAD;
  out->kind = SOL_EMU_KIND_GLOBAL_LOAD;
  out->run = copy_async;
  return lower_mem(l, &o[0], in->code->space, out) && lower_address_operand(l, &o[1], &c->from);
}

static bool lower_bulk(Lower *l, const PtxInst *in, Copy *c, EmuInst *out) {
  const PtxCode *code = in->code;
  const PtxOperand *o = in->operands;
  c->reduces = code->op == PTX_OP_CP_REDUCE_ASYNC_BULK;
  c->type = code->type[0];
  c->fn = code->fn;
  c->multicast = PTX_HAS(code, MULTICAST);
  out->b = lower_read(l, &o[2]);
  if (c->multicast) out->c = lower_read(l, &o[4]);
  out->vec = code->space2;
  out->kind = code->space2 == PTX_SPACE_GLOBAL ? SOL_EMU_KIND_GLOBAL_LOAD : SOL_EMU_KIND_GLOBAL_STORE;
  out->run = copy_bulk;
  if (c->reduces && !emu_bulk_can_reduce(c->type, c->fn)) return false;
  if (o[3].kind == PTX_ARG_MEM && !lower_address_operand(l, &o[3], &c->barrier)) return false;
  return lower_mem(l, &o[0], code->space, out) && lower_address_operand(l, &o[1], &c->from);
}

bool lower_async_copy(Lower *l, const PtxInst *in, EmuInst *out) {
  Copy *c = lower_alloc(l, sizeof *c);
  if (!c) return false;
  out->more = c;
  switch (in->code->op) {
  case PTX_OP_CP_ASYNC: return lower_cp_async(l, in, c, out);
  case PTX_OP_CP_ASYNC_BULK:
  case PTX_OP_CP_REDUCE_ASYNC_BULK: return lower_bulk(l, in, c, out);
  case PTX_OP_CP_ASYNC_COMMIT:
  case PTX_OP_CP_ASYNC_BULK_COMMIT:
    out->fn = in->code->op == PTX_OP_CP_ASYNC_BULK_COMMIT;
    out->run = commit_copies;
    return true;
  case PTX_OP_CP_ASYNC_WAIT:
  case PTX_OP_CP_ASYNC_BULK_WAIT:
    out->fn = in->code->op == PTX_OP_CP_ASYNC_BULK_WAIT;
    out->vec = in->operands[0].kind == PTX_ARG_NONE; // wait_all
    out->offset = (int64_t)in->operands[0].value;
    out->bytes = PTX_HAS(in->code, READ); // sources alone
    out->run = wait_copies;
    return true;
  default: return lower_tensor(l, in, out);
  }
}
