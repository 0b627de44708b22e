// Asynchronous copies. They complete when they are issued, which is one of the orders that PTX allows: groups
// are never pending, and mbarrier transactions complete at once.
#include "emu/core/hooks.h"
#include "emu/core/lower.h"

typedef struct Copy {
  EmuAddress from, barrier;
  bool has_size, has_ignore, multicast, reduces;
  uint8_t type, fn; // of a reduction
} Copy;

static void nothing(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  (void)x, (void)i, (void)mask;
}

static void places(const EmuCtx *x, const EmuAddress *p, uint64_t *addr) {
  for (int l = 0; l < EMU_LANES; l++) addr[l] = emu_lane_address(x, p, l);
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
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left);
    uint32_t n = from.mask >> l & 1 ? (c->has_size && size[l] < i->bytes ? size[l] : i->bytes) : 0;
    if (n) memmove(to.host[l], from.host[l], n);
    memset(to.host[l] + n, 0, i->bytes - n);
  }
  x->fiber->spin = 0;
  if (x->launch->checking) {
    emu_check_access(x, i, &to, i->bytes, EMU_USE_STORE);
    emu_check_access(x, i, &from, i->bytes, EMU_USE_LOAD);
  }
  emu_count_as(x, i, &from, i->bytes, (SolMemOp)i->fn, SOL_SHARED_LOAD);
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

// One request, whatever its length; 512 bytes at a time go through the model.
static void bulk_count(EmuCtx *x, const EmuInst *i, uint64_t address, uint32_t bytes, SolMemOp op) {
  EmuWorker *w = emu_worker(x);
  x->counts[i->index].bytes += bytes;
  if (!x->launch->counting) return;
  SolL1Counts *c = &w->l1_counts[i->index];
  uint64_t requests = c->requests + 1;
  for (uint32_t at = 0; at < bytes; at += 512) {
    uint64_t addr[EMU_LANES];
    uint32_t lanes = (bytes - at) / 16 < EMU_LANES ? (bytes - at) / 16 : EMU_LANES;
    for (uint32_t l = 0; l < EMU_LANES; l++) addr[l] = address + at + (uint64_t)l * 16;
    sol_coalesce(addr, lanes == EMU_LANES ? EMU_ALL : (1u << lanes) - 1, 16, &w->coalesced);
    sol_l1_access(&w->sm->l1, &w->coalesced, op, i->index, c, w->sm->log);
    if (x->launch->observing) emu_touch_any(x, &w->coalesced, op);
  }
  c->requests = requests;
  emu_log_room(x);
}

static bool bulk_size(EmuCtx *x, const EmuInst *i, int lane, uint64_t bytes) {
  if (bytes % BULK_ALIGN == 0) return bytes != 0;
  emu_find(x, i, 1u << lane, SOL_EMU_BAD_USE, 0, bytes,
           "a bulk copy of %llu bytes, which is no multiple of 16", (unsigned long long)bytes);
  emu_fault(x);
  return false;
}

// The address at the same offset in the shared memory of the block of that rank.
static uint64_t in_rank(uint64_t address, uint32_t rank) {
  return (address & ((1u << EMU_RANK_SHIFT) - 1)) + ((uint64_t)(rank + 1) << EMU_RANK_SHIFT);
}

static uint64_t shared_address(uint64_t address) {
  return address >= EMU_SHARED_WINDOW ? address - EMU_SHARED_WINDOW : address;
}

// A copy inside of shared memory may overlap itself.
static void bulk_move(EmuCtx *x, const Copy *c, uint8_t *to, const uint8_t *from, uint32_t bytes) {
  if (c->reduces)
    emu_bulk_reduce(to, from, bytes, c->type, c->fn);
  else
    memmove(to, from, bytes);
  emu_spend(x, bytes);
}

static void bulk_to_shared(EmuCtx *x, const EmuInst *i, int l, const uint8_t *from, uint64_t to,
                           uint64_t barrier, uint32_t bytes) {
  const Copy *c = i->more;
  uint8_t *host = emu_range(x, i, l, to, PTX_SPACE_SHARED_CLUSTER, bytes, BULK_ALIGN, true);
  uint8_t *bar = emu_range(x, i, l, barrier, PTX_SPACE_SHARED_CLUSTER, 8, 8, true);
  if (!host || !bar) return;
  if (x->launch->checking)
    emu_check_bulk(x, i, l, host, 0, bytes, c->reduces ? EMU_USE_ATOMIC : EMU_USE_STORE);
  bulk_move(x, c, host, from, bytes);
  emu_mbarrier_bytes(x, i, l, bar, bytes);
}

static void bulk_to_global(EmuCtx *x, const EmuInst *i, int l, const uint8_t *from, uint64_t to,
                           uint32_t bytes) {
  const Copy *c = i->more;
  uint8_t *host = emu_range(x, i, l, to, PTX_SPACE_GLOBAL, bytes, BULK_ALIGN, true);
  if (!host) return;
  if (x->launch->checking)
    emu_check_bulk(x, i, l, host, to, bytes, c->reduces ? EMU_USE_ATOMIC : EMU_USE_STORE);
  bulk_move(x, c, host, from, bytes);
  bulk_count(x, i, to, bytes, c->reduces ? SOL_MEM_ATOMIC : SOL_MEM_COPY_STORE);
}

static void bulk_to_ranks(EmuCtx *x, const EmuInst *i, int l, const uint8_t *from, uint64_t to,
                          uint32_t bytes) {
  const Copy *c = i->more;
  uint64_t barrier = shared_address(emu_lane_address(x, &c->barrier, l));
  to = shared_address(to);
  if (!c->multicast) {
    bulk_to_shared(x, i, l, from, to, barrier, bytes);
    return;
  }
  for (uint32_t ranks = EMU_IN(uint16_t, i->c)[l]; ranks; ranks &= ranks - 1) {
    uint32_t rank = (uint32_t)emu_first(ranks);
    bulk_to_shared(x, i, l, from, in_rank(to, rank), in_rank(barrier, rank), bytes);
  }
}

static void copy_bulk(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Copy *c = i->more;
  const uint32_t *size = EMU_IN(uint32_t, i->b);
  bool global_from = i->vec == PTX_SPACE_GLOBAL;
  int space = global_from ? PTX_SPACE_GLOBAL : PTX_SPACE_SHARED_CLUSTER;
  EmuAddress dst = {.base = i->a, .abytes = i->abytes, .offset = i->offset};
  x->fiber->spin = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left);
    uint64_t to = emu_lane_address(x, &dst, l), source = emu_lane_address(x, &c->from, l);
    if (!bulk_size(x, i, l, size[l])) continue;
    if (!global_from) source = shared_address(source);
    const uint8_t *from = emu_range(x, i, l, source, space, size[l], BULK_ALIGN, false);
    if (!from) continue;
    if (x->launch->checking) emu_check_bulk(x, i, l, from, source, size[l], EMU_USE_LOAD);
    if (global_from) {
      bulk_count(x, i, source, size[l], SOL_MEM_COPY_LOAD);
      emu_path_bulk(x);
    }
    if (in_global(i->space))
      bulk_to_global(x, i, l, from, to, size[l]);
    else
      bulk_to_ranks(x, i, l, from, to, size[l]);
  }
}

// st.bulk: zeros.
static void zero_bulk(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const uint64_t *size = EMU_IN(uint64_t, i->b);
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    EmuAddress dst = {.base = i->a, .abytes = i->abytes, .offset = i->offset};
    uint64_t to = shared_address(emu_lane_address(x, &dst, l));
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
  case PTX_OP_CP_ASYNC_WAIT:
  case PTX_OP_CP_ASYNC_BULK_COMMIT:
  case PTX_OP_CP_ASYNC_BULK_WAIT: out->run = nothing; return true;
  default: return false;
  }
}
