// mov in all its forms, address conversions, hints, the stack of alloca.
#include "base/heap.h"
#include "emu/core/hooks.h"
#include "emu/core/lower.h"
#include "emu/isa/bulk.h"

// ---- mov ----

EMU_OP1(mov_16, uint16_t, uint16_t, a[l])
EMU_OP1(mov_32, uint32_t, uint32_t, a[l])
EMU_OP1(mov_64, uint64_t, uint64_t, a[l])
EMU_OPX(mov_16_32, uint16_t, uint32_t, uint32_t, uint32_t, a[l]) // special registers into other widths
EMU_OPX(mov_64_32, uint64_t, uint32_t, uint32_t, uint32_t, a[l])
EMU_OPX(mov_32_64, uint32_t, uint64_t, uint64_t, uint64_t, a[l])
EMU_OP1(mov_local, uint64_t, uint64_t, a[l] + x->frame->local_base)
EMU_OP1(mov_local_32, uint32_t, uint32_t, a[l] + (uint32_t)x->frame->local_base)
EMU_OP1(mov_shared, uint64_t, uint64_t, bulk_in_rank(a[l], x->block->rank))
EMU_OP1(mov_shared_32, uint32_t, uint32_t, (uint32_t)bulk_in_rank(a[l], x->block->rank))

static void mov_128(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint8_t *d = emu_at(x, i->d);
  const uint8_t *a = emu_at(x, i->a);
  for (; mask; mask &= mask - 1)
    memmove(d + (size_t)emu_first(mask) * 16, a + (size_t)emu_first(mask) * 16, 16);
}

static void mov_pred(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  emu_set_pred(x, i->d, mask, emu_pred(x, i->a));
}

// Time, in clocks of the SM: what it has executed so far. Where the launch is observed, the warp's critical path, so that a loop which
// waits for a clock goes round as often as on the machine.
static uint64_t clock_now(const EmuCtx *x) {
  const EmuWorker *w = emu_worker(x);
  if (x->block->paths) return w->sm->clock + emu_path_clock(x);
  return w->sm->clock + w->instructions + (uint64_t)(x->launch->quantum - x->budget);
}
static void mov_clock(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint64_t now = clock_now(x);
  PtxSreg sreg = (PtxSreg)i->offset;
  bool timer =
      sreg == PTX_SREG_GLOBALTIMER || sreg == PTX_SREG_GLOBALTIMER_LO || sreg == PTX_SREG_GLOBALTIMER_HI;
  if (timer) now = (uint64_t)((double)now * (1e9 / x->launch->emu->machine.clock)) + UINT64_C(1000000000);
  if (sreg == PTX_SREG_CLOCK_HI || sreg == PTX_SREG_GLOBALTIMER_HI) now >>= 32;
  uint8_t *d = emu_at(x, i->d);
  for (; mask; mask &= mask - 1) memcpy(d + (size_t)emu_first(mask) * i->lane_bytes, &now, i->lane_bytes);
}

static bool is_clock(uint8_t sreg) {
  return sreg == PTX_SREG_CLOCK || sreg == PTX_SREG_CLOCK_HI || sreg == PTX_SREG_CLOCK64 ||
         sreg == PTX_SREG_GLOBALTIMER || sreg == PTX_SREG_GLOBALTIMER_LO || sreg == PTX_SREG_GLOBALTIMER_HI;
}

// Vectors: the parts of one register, the least significant first.
typedef struct Parts {
  uint32_t count, bytes; // of each part
  EmuLoc part[];
} Parts;

static void pack(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Parts *p = i->more;
  uint8_t whole[EMU_LANES][16];
  uint32_t n = p->bytes, stride = i->lane_bytes;
  for (uint32_t k = 0; k < p->count; k++) {
    const uint8_t *a = emu_at(x, p->part[k]);
    uint32_t lane = n < 2 ? 2 : n;
    for (size_t l = 0; l < EMU_LANES; l++) memcpy(whole[l] + k * n, a + l * lane, n);
  }
  uint8_t *d = emu_at(x, i->d);
  for (; mask; mask &= mask - 1) memcpy(d + (size_t)emu_first(mask) * stride, whole[emu_first(mask)], stride);
}

static void unpack(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Parts *p = i->more;
  uint8_t whole[EMU_LANES * 16];
  uint32_t n = p->bytes, stride = i->lane_bytes, lane = n < 2 ? 2 : n;
  memcpy(whole, emu_at(x, i->a), (size_t)stride * EMU_LANES);
  for (uint32_t k = 0; k < p->count; k++) {
    uint8_t *d = emu_at(x, p->part[k]);
    for (uint32_t left = mask; left; left &= left - 1) {
      size_t l = (size_t)emu_first(left);
      if (lane > n) d[l * lane + 1] = 0;
      memcpy(d + l * lane, whole + l * stride + (size_t)k * n, n);
    }
  }
}

EMU_HOT static void pack_32x2(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Parts *p = i->more;
  uint64_t *d = EMU_OUT(uint64_t, i->d);
  const uint32_t *a = EMU_IN(uint32_t, p->part[0]), *b = EMU_IN(uint32_t, p->part[1]);
  const int32_t *on = emu_on(x, mask);
  EMU_EACH(l) {
    uint64_t v = a[l] | (uint64_t)b[l] << 32;
    d[l] = on[l] ? v : d[l];
  }
}

EMU_HOT static void unpack_64(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Parts *p = i->more;
  const uint64_t *a = EMU_IN(uint64_t, i->a);
  uint32_t *d = EMU_OUT(uint32_t, p->part[0]), *e = EMU_OUT(uint32_t, p->part[1]);
  const int32_t *on = emu_on(x, mask);
  EMU_EACH(l) {
    d[l] = on[l] ? (uint32_t)a[l] : d[l];
    e[l] = on[l] ? (uint32_t)(a[l] >> 32) : e[l];
  }
}

static bool lower_parts(Lower *l, const PtxOperand *vector, const PtxOperand *whole, EmuInst *out,
                        bool packs) {
  Parts *p = lower_alloc(l, sizeof *p + sizeof p->part[0] * vector->count);
  const EmuLoc *list = lower_list(l, vector);
  if (!p || !list || !vector->count) return false;
  p->count = vector->count;
  out->lane_bytes = (uint8_t)lower_lane_bytes(l, whole);
  p->bytes = out->lane_bytes / p->count;
  for (uint32_t k = 0; k < p->count; k++) p->part[k] = list[k];
  out->more = p;
  bool words = p->bytes == 4 && p->count == 2;
  if (packs)
    out->d = lower_write(l, whole), out->run = words ? pack_32x2 : pack;
  else
    out->a = lower_read(l, whole), out->run = words && list[0] != list[1] ? unpack_64 : unpack;
  return true;
}

// A shared variable whose address holds the block's rank.
static bool is_ranked(const Lower *l, const PtxOperand *o) {
  if (!l->program->pairs || o->kind != PTX_ARG_SYMBOL) return false;
  int space = l->ptx->symbols[o->index].space;
  return space == PTX_SPACE_SHARED || space == PTX_SPACE_SHARED_CLUSTER;
}

bool lower_move(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxOperand *d = &in->operands[0], *a = &in->operands[1];
  if (a->kind == PTX_ARG_VEC) return lower_parts(l, a, d, out, true);
  if (d->kind == PTX_ARG_VEC) return lower_parts(l, d, a, out, false);
  out->d = lower_write(l, d);
  out->a = lower_read(l, a);
  int bytes = lower_lane_bytes(l, d), from = bytes;
  out->lane_bytes = (uint8_t)bytes;
  if (d->type == PTX_PRED) {
    out->run = mov_pred;
    return true;
  }
  if (a->kind == PTX_ARG_SREG && is_clock(a->sreg)) {
    out->offset = a->sreg;
    out->run = mov_clock;
    return bytes == 4 || bytes == 8;
  }
  if (a->kind == PTX_ARG_SREG) from = sol_ptx_type_bits(sol_ptx_sreg_type((PtxSreg)a->sreg)) == 64 ? 8 : 4;
  bool param = !l->fn->entry && lower_is_param(l->ptx, a);
  if (param)
    out->a = lower_const(l, l->function->param_home + l->ptx->symbols[a->index].offset + a->value, bytes);
  if (param || (a->kind == PTX_ARG_SYMBOL && l->ptx->symbols[a->index].space == PTX_SPACE_LOCAL)) {
    out->run = bytes == 8 ? mov_local : mov_local_32;
    return bytes >= 4;
  }
  if (is_ranked(l, a)) {
    out->run = bytes == 8 ? mov_shared : mov_shared_32;
    return bytes >= 4;
  }
  switch (bytes << 8 | from) {
  case 2 << 8 | 2: out->run = mov_16; break;
  case 4 << 8 | 4: out->run = mov_32; break;
  case 8 << 8 | 8: out->run = mov_64; break;
  case 16 << 8 | 16: out->run = mov_128; break;
  case 2 << 8 | 4: out->run = mov_16_32; break;
  case 8 << 8 | 4: out->run = mov_64_32; break;
  case 4 << 8 | 8: out->run = mov_32_64; break;
  default: return false;
  }
  return true;
}

// ---- address spaces ----

static uint64_t window_of(int space) {
  switch (space) {
  case PTX_SPACE_SHARED:
  case PTX_SPACE_SHARED_CLUSTER: return EMU_SHARED_WINDOW;
  case PTX_SPACE_LOCAL: return EMU_LOCAL_WINDOW;
  case PTX_SPACE_PARAM: return EMU_PARAM_WINDOW;
  default: return 0;
  }
}

EMU_OP1(to_generic, uint64_t, uint64_t, a[l] + (uint64_t)i->offset)
EMU_OP1(from_generic, uint64_t, uint64_t, a[l] - (uint64_t)i->offset)
EMU_OP1(ranked_generic, uint64_t, uint64_t, (uint64_t)i->offset + bulk_in_rank(a[l], x->block->rank))
EMU_OP1(local_generic, uint64_t, uint64_t, a[l] + (uint64_t)i->offset + x->frame->local_base)

static void is_space(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const uint64_t *a = EMU_IN(uint64_t, i->a);
  uint64_t window = (uint64_t)i->offset;
  uint32_t bits = 0;
  for (int l = 0; l < EMU_LANES; l++) {
    bool in = window ? a[l] - window < EMU_WINDOW_BYTES : a[l] < EMU_SHARED_WINDOW;
    // Own shared memory, by plain offset or by its rank in the cluster.
    if (in && i->space == PTX_SPACE_SHARED)
      in = (a[l] - window) >> EMU_RANK_SHIFT == 0 ||
           (a[l] - window) >> EMU_RANK_SHIFT == EMU_RANKED + x->block->rank;
    if (in && !window) { // constants lie among global memory, but are not of it
      const EmuAlloc *alloc = emu_find_alloc(x->launch->emu, a[l]);
      in = (alloc && alloc->constant) == (i->space == PTX_SPACE_CONST);
    }
    bits |= (uint32_t)in << l;
  }
  emu_set_pred(x, i->d, mask, bits);
}

static void map_rank(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const uint32_t *rank = EMU_IN(uint32_t, i->b);
  uint64_t window = (uint64_t)i->offset;
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    uint64_t a = i->abytes == 8 ? EMU_IN(uint64_t, i->a)[l] : EMU_IN(uint32_t, i->a)[l];
    uint64_t to = window + bulk_in_rank(a - window, rank[l] % EMU_MAX_RANKS);
    if (rank[l] >= x->block->unit->count)
      emu_find(x, i, 1u << l, SOL_EMU_BAD_USE, a, 0, "rank %u in a cluster of %u blocks", rank[l],
               x->block->unit->count);
    if (i->abytes == 8)
      EMU_OUT(uint64_t, i->d)[l] = to;
    else
      EMU_OUT(uint32_t, i->d)[l] = (uint32_t)to;
  }
}

static void get_rank(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint32_t *d = EMU_OUT(uint32_t, i->d);
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    uint64_t a = i->abytes == 8 ? EMU_IN(uint64_t, i->a)[l] : EMU_IN(uint32_t, i->a)[l];
    uint64_t rank = (a - (uint64_t)i->offset) >> EMU_RANK_SHIFT & 31;
    d[l] = rank ? (uint32_t)rank % EMU_MAX_RANKS : x->block->rank;
  }
}

bool lower_address(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxCode *code = in->code;
  const PtxOperand *a = &in->operands[1];
  out->d = lower_write(l, &in->operands[0]);
  out->a = lower_read(l, a);
  out->offset = (int64_t)window_of(code->space);
  out->space = code->space;
  out->abytes = (uint8_t)lower_lane_bytes(l, a);
  switch (code->op) {
  case PTX_OP_CVTA:
    if (code->type[0] != PTX_U64) return lower_refuse(l, "generic addresses have 64 bits");
    if (code->space == PTX_SPACE_PARAM && !l->fn->entry)
      return lower_refuse(l, "parameters of a function have no generic address");
    out->run = PTX_HAS(code, TO) ? from_generic : to_generic;
    if (a->kind == PTX_ARG_SYMBOL && l->ptx->symbols[a->index].space == PTX_SPACE_LOCAL)
      out->run = local_generic;
    if (is_ranked(l, a)) out->run = ranked_generic;
    return true;
  case PTX_OP_ISSPACEP: out->run = is_space; return out->abytes == 8;
  case PTX_OP_MAPA:
    out->b = lower_read(l, &in->operands[2]);
    if (!code->space)
      out->offset = (int64_t)EMU_SHARED_WINDOW;
    else
      out->offset = 0;
    out->run = map_rank;
    return out->abytes == 4 || out->abytes == 8;
  case PTX_OP_GETCTARANK:
    out->offset = code->space ? 0 : (int64_t)EMU_SHARED_WINDOW;
    out->run = get_rank;
    return out->abytes == 4 || out->abytes == 8;
  default: return false;
  }
}

// ---- hints ----

static void nothing(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  (void)x, (void)i, (void)mask;
}
EMU_OP1(make_policy, uint64_t, uint64_t, (uint64_t)i->offset)

bool lower_hint(Lower *l, const PtxInst *in, EmuInst *out) {
  switch (in->code->op) {
  case PTX_OP_CREATEPOLICY:
  case PTX_OP_CREATEPOLICY_RANGE:
  case PTX_OP_CREATEPOLICY_CVT: // opaque, and without effect
    out->d = lower_write(l, &in->operands[0]);
    out->a = lower_const(l, 0, 8);
    out->b = out->c = out->a;
    out->offset = INT64_C(0x1000000000000000);
    out->run = make_policy;
    return true;
  default: out->run = nothing; return true;
  }
}

// ---- alloca ----

static uint64_t *tops(EmuCtx *x) {
  EmuFrame *f = x->frame;
  if (f->alloca_top) return f->alloca_top;
  f->alloca_top = sol_heap_alloc(sizeof *f->alloca_top * EMU_LANES);
  for (int l = 0; f->alloca_top && l < EMU_LANES; l++) f->alloca_top[l] = f->local_top;
  return f->alloca_top;
}

static void set_lane(EmuCtx *x, const EmuInst *i, int l, uint64_t value) {
  if (i->lane_bytes == 8)
    EMU_OUT(uint64_t, i->d)[l] = value;
  else
    EMU_OUT(uint32_t, i->d)[l] = (uint32_t)value;
}
static uint64_t get_lane(EmuCtx *x, const EmuInst *i, int l) {
  return i->lane_bytes == 8 ? EMU_IN(uint64_t, i->a)[l] : EMU_IN(uint32_t, i->a)[l];
}

static void no_stack(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  emu_find(x, i, mask, SOL_EMU_STACK, 0, 0, "alloca exceeds the thread's stack of %llu bytes",
           (unsigned long long)x->launch->emu->machine.stack_bytes);
  emu_stop(x->launch, SOL_EMU_FAULT);
  x->budget = 0;
}

static void do_alloca(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint64_t *top = tops(x), align = (uint64_t)i->offset, most = x->launch->emu->machine.stack_bytes;
  for (uint32_t left = mask; top && left; left &= left - 1) {
    int l = emu_first(left);
    uint64_t at = (top[l] + align - 1) / align * align, bytes = get_lane(x, i, l);
    if (bytes > most || at > most - bytes) {
      no_stack(x, i, 1u << l);
      return;
    }
    top[l] = at + bytes;
    if (top[l] > x->frame->local_top) x->frame->local_top = top[l];
    set_lane(x, i, l, at);
  }
  uint64_t cap = x->block->local_cap[x->warp->index], need = x->frame->local_top;
  if (!top || (need > cap && !emu_grow_local(x, x->block, x->warp->index, need))) no_stack(x, i, mask);
}
static void stack_save(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint64_t *top = tops(x);
  for (; top && mask; mask &= mask - 1) set_lane(x, i, emu_first(mask), top[emu_first(mask)]);
}
// Only to a value that stacksave returned: inside the call's own alloca space, as far as it is in use.
static void stack_restore(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint64_t *top = tops(x);
  uint64_t least = x->frame->local_base + x->launch->program->functions[x->frame->function].local_bytes;
  for (; top && mask; mask &= mask - 1) {
    int l = emu_first(mask);
    uint64_t to = get_lane(x, i, l);
    if (to < least || to > top[l]) {
      emu_find(x, i, 1u << l, SOL_EMU_BAD_USE, to, 0,
               "stackrestore of 0x%llx, which stacksave cannot have given in this call",
               (unsigned long long)to);
      emu_stop(x->launch, SOL_EMU_FAULT);
      x->budget = 0;
      return;
    }
    top[l] = to;
  }
}

bool lower_stack(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxOperand *o = in->operands;
  out->lane_bytes = in->code->type[0] == PTX_U64 ? 8 : 4;
  switch (in->code->op) {
  case PTX_OP_ALLOCA:
    out->d = lower_write(l, &o[0]);
    out->a = lower_read(l, &o[1]);
    out->offset = o[2].kind == PTX_ARG_IMM && o[2].value ? (int64_t)o[2].value : 8;
    out->run = do_alloca;
    return true;
  case PTX_OP_STACKSAVE:
    out->d = lower_write(l, &o[0]);
    out->run = stack_save;
    return true;
  case PTX_OP_STACKRESTORE:
    out->a = lower_read(l, &o[0]);
    out->run = stack_restore;
    return true;
  default: return false;
  }
}
