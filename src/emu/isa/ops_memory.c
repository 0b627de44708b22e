// ld and st in every space.
#include "emu/isa/isa.h"

#include "emu/core/hooks.h"
#include "emu/core/lower.h"
#include "emu/isa/fused.h"
#include "emu/isa/lanes.h"
#include "emu/isa/shape.h"

// ---- all lanes in one piece of memory: the usual case ----

// One 32-bit word a lane, scattered: what shared memory mostly sees.
EMU_HOT static void gather_words(EmuCtx *x, EmuLoc loc, const EmuShape *s, Place at) {
  uint32_t *d = EMU_OUT(uint32_t, loc);
  if (s->rows == 16) {
    memcpy(d, lane_host(s, at, 0), 64);
    memcpy(d + 16, lane_host(s, at, 16), 64);
    return;
  }
  for (uint32_t l = 0; s->rows == 8 && l < EMU_LANES; l += 8) memcpy(d + l, lane_host(s, at, (int)l), 32);
  if (s->rows) return;
  if (s->equals) {
    for (uint32_t from = 0; from < EMU_LANES; from += 8) {
      uint32_t value;
      memcpy(&value, lane_host(s, at, (int)from), 4);
      for (uint32_t l = 0; l < 8; l++) d[from + l] = value;
    }
    return;
  }
  for (int l = 0; l < EMU_LANES; l++) memcpy(&d[l], lane_host(s, at, l), 4);
}

static void hosts(const EmuShape *s, Place at, uint8_t **host) {
  for (int l = 0; l < EMU_LANES; l++) host[l] = lane_host(s, at, l);
}

#define SPLIT(name, T, N)                                                                                    \
  EMU_HOT static void name(EmuCtx *x, const EmuLoc *regs, const uint8_t *from) {                             \
    T *d0 = EMU_OUT(T, regs[0]), *d1 = EMU_OUT(T, regs[1]);                                                  \
    T *d2 = (N) > 2 ? EMU_OUT(T, regs[2]) : d0, *d3 = (N) > 2 ? EMU_OUT(T, regs[3]) : d0;                    \
    T s[EMU_LANES * (N)];                                                                                    \
    memcpy(s, from, sizeof s);                                                                               \
    EMU_EACH(l) {                                                                                            \
      d0[l] = s[l * (N)];                                                                                    \
      d1[l] = s[l * (N) + 1];                                                                                \
      if ((N) > 2) d2[l] = s[l * (N) + 2 * ((N) > 2)], d3[l] = s[l * (N) + 3 * ((N) > 2)];                   \
    }                                                                                                        \
  }                                                                                                          \
  EMU_HOT static void name##_back(EmuCtx *x, const EmuLoc *regs, uint8_t *to) {                              \
    const T *d0 = EMU_IN(T, regs[0]), *d1 = EMU_IN(T, regs[1]);                                              \
    const T *d2 = (N) > 2 ? EMU_IN(T, regs[2]) : d0, *d3 = (N) > 2 ? EMU_IN(T, regs[3]) : d0;                \
    T s[EMU_LANES * (N)];                                                                                    \
    EMU_EACH(l) {                                                                                            \
      s[l * (N)] = d0[l];                                                                                    \
      s[l * (N) + 1] = d1[l];                                                                                \
      if ((N) > 2) s[l * (N) + 2 * ((N) > 2)] = d2[l], s[l * (N) + 3 * ((N) > 2)] = d3[l];                   \
    }                                                                                                        \
    memcpy(to, s, sizeof s);                                                                                 \
  }
SPLIT(split_32x2, uint32_t, 2)
SPLIT(split_32x4, uint32_t, 4)
SPLIT(split_64x2, uint64_t, 2)

static bool load_row(EmuCtx *x, const EmuInst *i, const EmuLoc *regs, const uint8_t *from) {
  if (i->bytes != i->lane_bytes) return false;
  switch (i->bytes << 8 | i->vec) {
  case 2 << 8 | 1: memcpy(emu_at(x, regs[0]), from, 64); return true;
  case 4 << 8 | 1: memcpy(emu_at(x, regs[0]), from, 128); return true;
  case 8 << 8 | 1: memcpy(emu_at(x, regs[0]), from, 256); return true;
  case 4 << 8 | 2: split_32x2(x, regs, from); return true;
  case 4 << 8 | 4: split_32x4(x, regs, from); return true;
  case 8 << 8 | 2: split_64x2(x, regs, from); return true;
  default: return false;
  }
}

static bool store_row(EmuCtx *x, const EmuInst *i, const EmuLoc *regs, uint8_t *to) {
  if (i->bytes != i->lane_bytes) return false;
  switch (i->bytes << 8 | i->vec) {
  case 2 << 8 | 1: memcpy(to, emu_at(x, regs[0]), 64); return true;
  case 4 << 8 | 1: memcpy(to, emu_at(x, regs[0]), 128); return true;
  case 8 << 8 | 1: memcpy(to, emu_at(x, regs[0]), 256); return true;
  case 4 << 8 | 2: split_32x2_back(x, regs, to); return true;
  case 4 << 8 | 4: split_32x4_back(x, regs, to); return true;
  case 8 << 8 | 2: split_64x2_back(x, regs, to); return true;
  default: return false;
  }
}

// ---- handlers ----

typedef struct Mover {
  EmuFusible fusible;
  EmuLoc regs[8];
  Gather *gather;
  Scatter *scatter;
  SolMemOp op;
  EmuAddress barrier; // st.async
  bool acquires;      // at gpu scope or wider: L1 is emptied
} Mover;

static void zero_lanes(EmuCtx *x, const EmuInst *i, const Mover *m, uint32_t lanes) {
  for (; lanes; lanes &= lanes - 1)
    for (uint32_t k = 0; k < i->vec; k++)
      memset((uint8_t *)emu_at(x, m->regs[k]) + (size_t)emu_first(lanes) * i->lane_bytes, 0, i->lane_bytes);
}

// Others may be writing: what a spinning lane reads must come from memory each time.
static void order_load(EmuCtx *x, const EmuInst *i, const Mover *m) {
  if (!(i->flags & EMU_FLAG_STRONG)) {
    x->fiber->spin = 0;
    return;
  }
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  emu_spin(x);
  if (m->acquires && x->launch->counting) sol_l1_empty(&emu_worker(x)->sm->l1);
}

// Once it is counted.
static void poll_load(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Mover *m = i->more;
  if (i->flags & EMU_FLAG_STRONG) emu_poll(x, i, mask, m->regs, i->vec, i->lane_bytes);
}

static void load_lanes(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Mover *m = i->more;
  EmuAccess acc;
  uint32_t bytes = (uint32_t)i->bytes * i->vec;
  if (emu_resolve(x, i, mask, bytes, false, &acc) != mask) zero_lanes(x, i, m, mask & ~acc.mask);
  if (!acc.mask) return;
  order_load(x, i, m);
  for (uint32_t k = 0; k < i->vec; k++) m->gather(emu_at(x, m->regs[k]), acc.host, k * i->bytes, acc.mask);
  if (x->launch->checking)
    emu_check_access(x, i, &acc, bytes, i->flags & EMU_FLAG_STRONG ? EMU_USE_STRONG_LOAD : EMU_USE_LOAD);
  emu_count_as(x, i, &acc, bytes, m->op, SOL_SHARED_LOAD);
  if (x->launch->observing && !acc.shared && !acc.local)
    emu_observe_values(x, i, m->regs, acc.mask, acc.addr[emu_first(acc.mask)]);
  poll_load(x, i, acc.mask);
}

static inline __attribute__((always_inline)) void load_shape(EmuCtx *x, const EmuInst *i, uint32_t mask,
                                                             const EmuShape *s, Place at) {
  const Mover *m = i->more;
  if (s->row && load_row(x, i, m->regs, at.host)) {
  } else if (mask == EMU_ALL && m->gather == load_u32_32 && i->vec == 1) {
    gather_words(x, m->regs[0], s, at);
  } else {
    uint8_t *host[EMU_LANES];
    hosts(s, at, host);
    for (uint32_t k = 0; k < i->vec; k++) m->gather(emu_at(x, m->regs[k]), host, k * i->bytes, mask);
  }
}

static void load(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Mover *m = i->more;
  Place at;
  EmuShape *s = x->launch->checking ? NULL : shape_of(x, i, mask, (uint32_t)i->bytes * i->vec, &at);
  if (!s) {
    load_lanes(x, i, mask);
    return;
  }
  order_load(x, i, m);
  load_shape(x, i, mask, s, at);
  emu_count_shape(x, i, s, at.address, m->op, SOL_SHARED_LOAD);
  if (x->launch->observing) emu_observe_values(x, i, m->regs, mask, at.address);
  poll_load(x, i, mask);
}

static void check_values(EmuCtx *x, const EmuInst *i, const EmuAccess *acc) {
  enum { MOST = 32 }; // bytes of a lane
  const Mover *m = i->more;
  uint8_t values[EMU_LANES][MOST], *host[EMU_LANES];
  uint32_t bytes = (uint32_t)i->bytes * i->vec;
  if (bytes > MOST) return;
  for (int l = 0; l < EMU_LANES; l++) host[l] = values[l];
  for (uint32_t k = 0; k < i->vec; k++) m->scatter(emu_at(x, m->regs[k]), host, k * i->bytes, acc->mask);
  emu_check_values(x, i, acc, bytes, values[0], MOST);
}

static void store_lanes(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Mover *m = i->more;
  EmuAccess acc;
  uint32_t bytes = (uint32_t)i->bytes * i->vec;
  if (!emu_resolve(x, i, mask, bytes, true, &acc)) return;
  x->fiber->spin = 0;
  for (uint32_t k = 0; k < i->vec; k++) m->scatter(emu_at(x, m->regs[k]), acc.host, k * i->bytes, acc.mask);
  if (i->flags & EMU_FLAG_STRONG) __atomic_thread_fence(__ATOMIC_RELEASE);
  if (x->launch->launch->checks & SOL_EMU_CHECK_RACE && !(i->flags & EMU_FLAG_STRONG))
    check_values(x, i, &acc);
  if (x->launch->checking)
    emu_check_access(x, i, &acc, bytes, i->flags & EMU_FLAG_STRONG ? EMU_USE_STRONG_STORE : EMU_USE_STORE);
  emu_count_as(x, i, &acc, bytes, SOL_MEM_STORE, SOL_SHARED_STORE);
}

static inline void store_shape(EmuCtx *x, const EmuInst *i, uint32_t mask, const EmuShape *s, Place at) {
  const Mover *m = i->more;
  if (s->row && store_row(x, i, m->regs, at.host)) return;
  uint8_t *host[EMU_LANES];
  hosts(s, at, host);
  for (uint32_t k = 0; k < i->vec; k++) m->scatter(emu_at(x, m->regs[k]), host, k * i->bytes, mask);
}

static void store(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  Place at;
  EmuShape *s = x->launch->checking ? NULL : shape_of(x, i, mask, (uint32_t)i->bytes * i->vec, &at);
  if (!s) {
    store_lanes(x, i, mask);
    return;
  }
  x->fiber->spin = 0;
  store_shape(x, i, mask, s, at);
  if (i->flags & EMU_FLAG_STRONG) __atomic_thread_fence(__ATOMIC_RELEASE);
  emu_count_shape(x, i, s, at.address, SOL_MEM_STORE, SOL_SHARED_STORE);
}

// Of launches without counts, after another access through the same register.
static void next_load(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  Place at;
  EmuShape *s = checked_shape(x, i, mask, &at);
  if (s)
    load_shape(x, i, mask, s, at);
  else
    load(x, i, mask);
}

static void next_store(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  Place at;
  EmuShape *s = checked_shape(x, i, mask, &at);
  if (s)
    store_shape(x, i, mask, s, at);
  else
    store(x, i, mask);
}

static void fused_load(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const EmuFused *f = i->more;
  Place at;
  EmuShape *s = fused_shape(x, i, f, mask, &at);
  if (s) {
    const EmuInst *plain = f->plain;
    bool words = plain->bytes == 4 && plain->lane_bytes == 4 && plain->vec == 1;
    x->fiber->spin = 0;
    if (s->row && words)
      memcpy(emu_at(x, ((const Mover *)plain->more)->regs[0]), at.host, EMU_LANES * sizeof(uint32_t));
    else
      load_shape(x, plain, mask, s, at);
    return;
  }
  FusedSums sums;
  execute_left_out(x, i, f, mask, &sums);
  load(x, f->plain, mask);
  fused_learn(x, i, f, mask, &sums);
}

static void fused_store(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const EmuFused *f = i->more;
  Place at;
  EmuShape *s = fused_shape(x, i, f, mask, &at);
  if (s) {
    x->fiber->spin = 0;
    store_shape(x, f->plain, mask, s, at);
    return;
  }
  FusedSums sums;
  execute_left_out(x, i, f, mask, &sums);
  store(x, f->plain, mask);
  fused_learn(x, i, f, mask, &sums);
}

// st.async: a store, then its bytes arrive at the mbarrier.
static void store_async(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  store(x, i, mask);
  const EmuAddress *at = &((const Mover *)i->more)->barrier;
  emu_mbarrier_complete(x, i, mask, at->base, at->offset, at->abytes, (uint32_t)i->bytes * i->vec);
}

// A call's parameters stand in the frame, lane after lane.
static void load_frame(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Mover *m = i->more;
  uint8_t *host[EMU_LANES];
  for (size_t l = 0; l < EMU_LANES; l++) host[l] = x->frame->params + l * x->frame->param_stride + i->offset;
  for (uint32_t k = 0; k < i->vec; k++) m->gather(emu_at(x, m->regs[k]), host, k * i->bytes, mask);
}

static void store_frame(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Mover *m = i->more;
  uint8_t *host[EMU_LANES];
  for (size_t l = 0; l < EMU_LANES; l++) host[l] = x->frame->params + l * x->frame->param_stride + i->offset;
  for (uint32_t k = 0; k < i->vec; k++) m->scatter(emu_at(x, m->regs[k]), host, k * i->bytes, mask);
}

// Addressed by a register that holds an offset in the frame.
static bool frame_hosts(EmuCtx *x, const EmuInst *i, uint32_t *mask, uint8_t **host) {
  const EmuFunction *f = &x->launch->program->functions[x->frame->function];
  uint64_t bytes = (uint64_t)i->bytes * i->vec;
  for (uint32_t left = *mask; left; left &= left - 1) {
    int l = emu_first(left);
    uint64_t at =
        (i->abytes == 8 ? EMU_IN(uint64_t, i->a)[l] : EMU_IN(uint32_t, i->a)[l]) + (uint64_t)i->offset;
    at -= f->param_skip;
    if (f->param_stride >= bytes && at <= f->param_stride - bytes) {
      host[l] = x->frame->params + (size_t)l * f->param_stride + at;
      continue;
    }
    *mask &= ~(1u << l);
    emu_find(x, i, 1u << l, SOL_EMU_OUT_OF_BOUNDS, at, bytes, "parameter space at 0x%llx",
             (unsigned long long)at);
    emu_fault(x);
  }
  return *mask != 0;
}
static void load_frame_at(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Mover *m = i->more;
  uint8_t *host[EMU_LANES];
  if (!frame_hosts(x, i, &mask, host)) return;
  for (uint32_t k = 0; k < i->vec; k++) m->gather(emu_at(x, m->regs[k]), host, k * i->bytes, mask);
}
static void store_frame_at(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Mover *m = i->more;
  uint8_t *host[EMU_LANES];
  if (!frame_hosts(x, i, &mask, host)) return;
  for (uint32_t k = 0; k < i->vec; k++) m->scatter(emu_at(x, m->regs[k]), host, k * i->bytes, mask);
}

static void copy_rows(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Mover *m = i->more;
  const EmuLoc *from = (const EmuLoc *)(const void *)(m + 1);
  for (uint32_t k = 0; k < i->vec; k++) {
    uint8_t *d = emu_at(x, m->regs[k]);
    const uint8_t *a = emu_at(x, from[k]);
    size_t n = i->lane_bytes;
    if (mask == EMU_ALL)
      memcpy(d, a, n * EMU_LANES);
    else
      for (uint32_t left = mask; left; left &= left - 1)
        memcpy(d + (size_t)emu_first(left) * n, a + (size_t)emu_first(left) * n, n);
  }
}

// ---- lowering ----

static int kind_of(int space, bool is_store) {
  switch (space) {
  case PTX_SPACE_SHARED:
  case PTX_SPACE_SHARED_CLUSTER: return is_store ? SOL_EMU_KIND_SHARED_STORE : SOL_EMU_KIND_SHARED_LOAD;
  case PTX_SPACE_LOCAL: return is_store ? SOL_EMU_KIND_LOCAL_STORE : SOL_EMU_KIND_LOCAL_LOAD;
  case PTX_SPACE_CONST: return SOL_EMU_KIND_CONST_LOAD;
  case PTX_SPACE_PARAM: return SOL_EMU_KIND_OTHER;
  default: return is_store ? SOL_EMU_KIND_GLOBAL_STORE : SOL_EMU_KIND_GLOBAL_LOAD;
  }
}

// All elements have lanes of one width: the registers' own; the type's where there is none. Sinks and
// immediates have any.
static bool lower_width(Lower *l, const PtxOperand *o, uint32_t count, EmuInst *out) {
  out->lane_bytes = 0;
  for (uint32_t k = 0; k < count; k++) {
    const PtxOperand *e = o->kind == PTX_ARG_VEC ? &o->elems[k] : o;
    if (e->kind == PTX_ARG_IMM || e->kind == PTX_ARG_SINK) continue;
    int bytes = lower_lane_bytes(l, e);
    if (out->lane_bytes && out->lane_bytes != bytes)
      return lower_refuse(l, "registers of different widths in one vector");
    out->lane_bytes = (uint8_t)bytes;
  }
  if (!out->lane_bytes) out->lane_bytes = (uint8_t)(out->bytes < 2 ? 2 : out->bytes);
  return true;
}

static Mover *lower_data(Lower *l, const PtxInst *in, const PtxOperand *o, EmuInst *out, size_t more) {
  const PtxCode *code = in->code;
  Mover *m = lower_alloc(l, sizeof *m + more);
  if (!m) return NULL;
  out->more = m;
  out->bytes = (uint8_t)(sol_ptx_type_bits((PtxType)code->type[0]) / 8);
  uint32_t count = o->kind == PTX_ARG_VEC ? o->count : 1;
  if (count > 8 || (uint32_t)out->bytes * count > 32) return NULL;
  out->vec = (uint8_t)count;
  const EmuLoc *list = lower_list(l, o);
  if (!list || !lower_width(l, o, count, out)) return NULL;
  for (uint32_t k = 0; k < count; k++) {
    const PtxOperand *e = o->kind == PTX_ARG_VEC ? &o->elems[k] : o;
    m->regs[k] = e->kind == PTX_ARG_IMM ? lower_const(l, e->value, out->lane_bytes) : list[k];
  }
  if (sol_ptx_type_class((PtxType)code->type[0]) == PTX_CLASS_SIGNED) out->flags |= EMU_FLAG_SIGNED;
  m->gather = gather_for(out->bytes, out->lane_bytes, out->flags & EMU_FLAG_SIGNED);
  m->scatter = scatter_for(out->bytes, out->lane_bytes);
  out->f = l->program->shape_count++ % EMU_SHAPES;
  out->e = out->index; // lower.c may name another access instead
  return m->gather && m->scatter ? m : NULL;
}

static void lower_order(const PtxCode *code, Mover *m, EmuInst *out) {
  bool wide = code->scope == PTX_SCOPE_GPU || code->scope == PTX_SCOPE_SYS;
  if (PTX_HAS(code, VOLATILE) || PTX_HAS(code, MMIO) || code->sem) out->flags |= EMU_FLAG_STRONG;
  m->op = SOL_MEM_LOAD;
  if (code->cop == PTX_COP_CG || code->cop == PTX_COP_CV || PTX_HAS(code, VOLATILE) || PTX_HAS(code, MMIO) ||
      (code->sem && wide))
    m->op = SOL_MEM_LOAD_L2;
  else if (code->cop == PTX_COP_LU || code->evict1 == PTX_EVICT1_L1_NO_ALLOCATE)
    m->op = SOL_MEM_LOAD_ONCE;
  m->acquires = code->sem == PTX_SEM_ACQUIRE && wide;
}

// A kernel's own arguments at a known place are constants of the launch.
static bool lower_kernel_param(Lower *l, Mover *m, EmuInst *out) {
  EmuLoc *from = (EmuLoc *)(void *)(m + 1);
  for (uint32_t k = 0; k < out->vec; k++)
    from[k] = lower_const_row(l, (EmuConst){.kind = EMU_CONST_PARAM,
                                            .lane_bytes = out->lane_bytes,
                                            .load_bytes = out->bytes,
                                            .is_signed = (out->flags & EMU_FLAG_SIGNED) != 0,
                                            .value = (uint64_t)out->offset + k * out->bytes});
  out->run = copy_rows;
  return out->bytes <= 8 || lower_refuse(l, "a parameter of 128 bits");
}

// Of `size` bytes that there are.
static bool param_inside(Lower *l, const EmuInst *out, const PtxSymbol *s, uint64_t at, uint64_t size) {
  uint64_t bytes = (uint64_t)out->bytes * out->vec;
  return (size >= bytes && at <= size - bytes) || lower_refuse(l, "beyond the parameter %s", s->name);
}

static bool lower_param(Lower *l, const PtxOperand *address, Mover *m, EmuInst *out, bool is_store) {
  if (address->symbol == PTX_NONE && address->index == PTX_NONE) return false;
  if (address->index != PTX_NONE) {
    // In a kernel an address in a register means its arguments, in a function its frame.
    if (l->fn->entry && !is_store) return true;
    out->run = is_store ? store_frame_at : load_frame_at;
    return true;
  }
  const PtxSymbol *s = &l->ptx->symbols[address->symbol];
  if (l->fn->entry && s->offset < l->function->param_skip)
    return !is_store && param_inside(l, out, s, (uint64_t)out->offset, l->fn->param_size) &&
           lower_kernel_param(l, m, out);
  uint64_t at = s->offset + address->value - l->function->param_skip;
  if (!param_inside(l, out, s, at, l->function->param_stride)) return false;
  out->offset = (int64_t)at;
  out->run = is_store ? store_frame : load_frame;
  return true;
}

static bool can_fuse(const EmuInst *i) {
  return !(i->flags & EMU_FLAG_STRONG) && (i->space == PTX_SPACE_GLOBAL || i->space == PTX_SPACE_SHARED);
}

OPS_LOWER(load) {
  const PtxCode *code = in->code;
  Mover *m = lower_data(l, in, &in->operands[0], out, sizeof(EmuLoc) * 8);
  if (!m || !lower_mem(l, &in->operands[1], code->space, out)) return false;
  lower_order(code, m, out);
  out->kind = (uint8_t)kind_of(out->space, false);
  out->run = load;
  if (can_fuse(out)) m->fusible = (EmuFusible){fused_load, next_load};
  return out->space != PTX_SPACE_PARAM || lower_param(l, &in->operands[1], m, out, false);
}

OPS_LOWER(store) {
  const PtxCode *code = in->code;
  if (code->op == PTX_OP_ST_BULK) return lower_store_bulk(l, in, out);
  Mover *m = lower_data(l, in, &in->operands[1], out, 0);
  int space = code->op == PTX_OP_ST_ASYNC && !code->space ? PTX_SPACE_SHARED_CLUSTER : code->space;
  if (!m || !lower_mem(l, &in->operands[0], space, out)) return false;
  lower_order(code, m, out);
  out->kind = (uint8_t)kind_of(out->space, true);
  out->run = store;
  if (can_fuse(out)) m->fusible = (EmuFusible){fused_store, next_store};
  if (code->op == PTX_OP_ST_ASYNC) {
    m->fusible.fused = NULL;
    out->run = store_async;
    if (!lower_address_operand(l, &in->operands[2], &m->barrier)) return false;
  }
  return out->space != PTX_SPACE_PARAM || lower_param(l, &in->operands[0], m, out, true);
}
OPS_CHOOSE(load);
OPS_CHOOSE(store);
