// atom, red, red.async: lanes in lane order, each element of a vector an atomic operation of its own.
//
// Global memory is shared with other workers: a compare-and-swap loop on the host, so that operations of PTX
// are atomic towards each other whatever their types. Shared memory belongs to one worker at a time. 16-byte
// operations on global memory take a lock, and are atomic towards each other alone. Sums of f32 in global
// memory treat subnormals as zeros, sums in shared memory do not (PTX ISA, atom); f16, bf16
// (.noftz) and f64 keep them.
#include "emu/core/hooks.h"
#include "emu/core/lower.h"
#include "emu/isa/num_half.h"
#include "emu/isa/num_int.h"

enum { MOST_ELEMENTS = 8 };
typedef struct AtomicPlan {
  EmuLoc d[MOST_ELEMENTS], b[MOST_ELEMENTS], c;
  bool returns; // atom
  EmuTraffic traffic;
  EmuLoc barrier; // red.async: the mbarrier's address
  int64_t barrier_offset;
  uint8_t barrier_bytes; // 0: none
} AtomicPlan;

// Resolves and counts. Lanes that cannot be done give 0.
static uint32_t atomic_begin(EmuCtx *x, const EmuInst *i, uint32_t mask, EmuAccess *acc) {
  const AtomicPlan *plan = (const AtomicPlan *)i->more;
  uint32_t bytes = (uint32_t)i->bytes * i->vec, ok;
  emu_spin(x);
  ok = emu_resolve(x, i, mask, bytes, true, acc);
  if (acc->local & ok) {
    emu_find(x, i, acc->local & ok, SOL_EMU_BAD_USE, 0, bytes, "atomic operation on local memory");
    ok = acc->mask = ok & ~acc->local;
  }
  if (ok) emu_count(x, i, acc, bytes, plan->traffic);
  if (plan->returns)
    for (uint32_t bad = mask & ~ok; bad; bad &= bad - 1)
      for (int e = 0; e < i->vec; e++)
        memset(EMU_OUT(uint8_t, plan->d[e]) + (uint32_t)emu_first(bad) * i->bytes, 0, i->bytes);
  return ok;
}
// `changed`: the lanes that gave a word another value.
static void atomic_end(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t mask, uint32_t changed) {
  const AtomicPlan *plan = (const AtomicPlan *)i->more;
  emu_worker(x)->changes += changed != 0;
  if (x->launch->observing && i->fn == PTX_FN_CAS && !x->idle)
    emu_observe_swaps(x, i, acc, changed & ~acc->shared);
  if (changed)
    emu_poll_none(x);
  else if (plan->returns && mask)
    emu_poll(x, i, mask, plan->d, i->vec, i->bytes);
  if (plan->barrier_bytes)
    emu_mbarrier_complete(x, i, mask, plan->barrier, plan->barrier_offset, plan->barrier_bytes, i->bytes);
}

// `expr` makes the new value of old, b and c, all of type T; `global` says that the lane is in global memory.
#define ATOMIC(name, T, expr)                                                                                \
  static inline T name##_of(T old, T b, T c, bool global) {                                                  \
    return (void)old, (void)b, (void)c, (void)global, (T)(expr);                                             \
  }                                                                                                          \
  static inline T name##_at(T *p, T b, T c, bool global, bool *changed) {                                    \
    if (!global) {                                                                                           \
      T old = *p;                                                                                            \
      *p = name##_of(old, b, c, false);                                                                      \
      *changed |= *p != old;                                                                                 \
      return old;                                                                                            \
    }                                                                                                        \
    T old = __atomic_load_n(p, __ATOMIC_ACQUIRE), next = name##_of(old, b, c, true);                         \
    while (next != old &&                                                                                    \
           !__atomic_compare_exchange_n(p, &old, next, true, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))            \
      next = name##_of(old, b, c, true);                                                                     \
    *changed |= next != old;                                                                                 \
    return old;                                                                                              \
  }                                                                                                          \
  static void name(EmuCtx *x, const EmuInst *i, uint32_t mask) {                                             \
    const AtomicPlan *plan = (const AtomicPlan *)i->more;                                                    \
    EmuAccess acc;                                                                                           \
    uint32_t changed = 0;                                                                                    \
    mask = atomic_begin(x, i, mask, &acc);                                                                   \
    const T *c = EMU_IN(T, plan->c);                                                                         \
    for (uint32_t left = mask; left; left &= left - 1) {                                                     \
      int l = emu_first(left);                                                                               \
      bool global = !(acc.shared >> l & 1);                                                                  \
      T *p = (T *)(void *)acc.host[l], b[MOST_ELEMENTS];                                                     \
      for (int e = 0; e < i->vec; e++) b[e] = EMU_IN(T, plan->b[e])[l];                                      \
      for (int e = 0; e < i->vec; e++) {                                                                     \
        bool other = false;                                                                                  \
        T old = name##_at(p + e, b[e], c[l], global, &other);                                                \
        changed |= (uint32_t)other << l;                                                                     \
        if (plan->returns) EMU_OUT(T, plan->d[e])[l] = old;                                                  \
      }                                                                                                      \
    }                                                                                                        \
    atomic_end(x, i, &acc, mask, changed);                                                                   \
  }

ATOMIC(and_b32, uint32_t, old &b)
ATOMIC(and_b64, uint64_t, old &b)
ATOMIC(or_b32, uint32_t, old | b)
ATOMIC(or_b64, uint64_t, old | b)
ATOMIC(xor_b32, uint32_t, old ^ b)
ATOMIC(xor_b64, uint64_t, old ^ b)
ATOMIC(exch_b32, uint32_t, b)
ATOMIC(exch_b64, uint64_t, b)
ATOMIC(add_u32, uint32_t, old + b)
ATOMIC(add_u64, uint64_t, old + b)
ATOMIC(min_u32, uint32_t, old < b ? old : b)
ATOMIC(min_u64, uint64_t, old < b ? old : b)
ATOMIC(max_u32, uint32_t, old > b ? old : b)
ATOMIC(max_u64, uint64_t, old > b ? old : b)
ATOMIC(min_s32, uint32_t, (int32_t)old < (int32_t)b ? old : b)
ATOMIC(min_s64, uint64_t, (int64_t)old < (int64_t)b ? old : b)
ATOMIC(max_s32, uint32_t, (int32_t)old > (int32_t)b ? old : b)
ATOMIC(max_s64, uint64_t, (int64_t)old > (int64_t)b ? old : b)
ATOMIC(inc_u32, uint32_t, old >= b ? 0 : old + 1)
ATOMIC(dec_u32, uint32_t, old == 0 || old > b ? b : old - 1)
ATOMIC(cas_b16, uint16_t, old == b ? c : old)
ATOMIC(cas_b32, uint32_t, old == b ? c : old)
ATOMIC(cas_b64, uint64_t, old == b ? c : old)

static inline uint32_t sum_f32(uint32_t a, uint32_t b, bool flush) {
  float fa = num_f32(a), fb = num_f32(b);
  if (!flush) return num_bits_f32(num_add_f32_rn(fa, fb));
  return num_bits_f32(num_ftz_f32(num_add_f32_rn(num_ftz_f32(fa), num_ftz_f32(fb))));
}
ATOMIC(add_f32, uint32_t, sum_f32(old, b, global))
ATOMIC(add_f64, uint64_t, num_bits_f64(num_add_f64_rn(num_f64(old), num_f64(b))))

typedef uint16_t HalfOp(uint16_t a, uint16_t b);
static inline uint32_t by_halves(uint32_t a, uint32_t b, HalfOp *op) {
  return op((uint16_t)a, (uint16_t)b) | (uint32_t)op((uint16_t)(a >> 16), (uint16_t)(b >> 16)) << 16;
}
#define ATOMIC_HALF(op, T)                                                                                   \
  ATOMIC(op##_##T, uint16_t, num_##op##_##T(old, b))                                                         \
  ATOMIC(op##_##T##x2, uint32_t, by_halves(old, b, num_##op##_##T))
ATOMIC_HALF(add, f16)
ATOMIC_HALF(min, f16)
ATOMIC_HALF(max, f16)
ATOMIC_HALF(add, bf16)
ATOMIC_HALF(min, bf16)
ATOMIC_HALF(max, bf16)

// 16 bytes: exch and cas.
typedef struct Wide {
  uint64_t part[2];
} Wide;
static void wide_b128(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const AtomicPlan *plan = (const AtomicPlan *)i->more;
  EmuAccess acc;
  mask = atomic_begin(x, i, mask, &acc);
  const Wide *b = EMU_IN(Wide, plan->b[0]), *c = EMU_IN(Wide, plan->c);
  Wide *d = EMU_OUT(Wide, plan->d[0]);
  SolSpin *lock = &x->launch->emu->lock;
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left);
    bool global = !(acc.shared >> l & 1);
    Wide old, next = i->fn == PTX_FN_CAS ? c[l] : b[l];
    if (global) sol_spin_lock(lock);
    memcpy(&old, acc.host[l], 16);
    bool stores = i->fn != PTX_FN_CAS || (old.part[0] == b[l].part[0] && old.part[1] == b[l].part[1]);
    if (stores) memcpy(acc.host[l], &next, 16);
    if (stores && memcmp(&old, &next, 16) != 0) emu_worker(x)->changes++;
    if (global) sol_spin_unlock(lock);
    if (plan->returns) d[l] = old;
  }
}

// ---- choice ----

static EmuHandler *by_type(int type, EmuHandler *u32, EmuHandler *s32, EmuHandler *u64, EmuHandler *s64) {
  switch (type) {
  case PTX_B32:
  case PTX_U32: return u32;
  case PTX_S32: return s32;
  case PTX_B64:
  case PTX_U64: return u64;
  case PTX_S64: return s64;
  default: return NULL;
  }
}
static EmuHandler *half_of(int type, EmuHandler *f16, EmuHandler *f16x2, EmuHandler *bf16,
                           EmuHandler *bf16x2) {
  switch (type) {
  case PTX_F16: return f16;
  case PTX_F16X2: return f16x2;
  case PTX_BF16: return bf16;
  case PTX_BF16X2: return bf16x2;
  default: return NULL;
  }
}
static EmuHandler *atomic_handler(int fn, int type) {
  EmuHandler *h = NULL;
  switch (fn) {
  case PTX_FN_AND: return by_type(type, and_b32, and_b32, and_b64, and_b64);
  case PTX_FN_OR: return by_type(type, or_b32, or_b32, or_b64, or_b64);
  case PTX_FN_XOR: return by_type(type, xor_b32, xor_b32, xor_b64, xor_b64);
  case PTX_FN_EXCH:
    return type == PTX_B128 ? wide_b128 : by_type(type, exch_b32, exch_b32, exch_b64, exch_b64);
  case PTX_FN_CAS:
    if (type == PTX_B16) return cas_b16;
    return type == PTX_B128 ? wide_b128 : by_type(type, cas_b32, cas_b32, cas_b64, cas_b64);
  case PTX_FN_INC: return inc_u32;
  case PTX_FN_DEC: return dec_u32;
  case PTX_FN_ADD:
    if (type == PTX_F32) return add_f32;
    if (type == PTX_F64) return add_f64;
    h = half_of(type, add_f16, add_f16x2, add_bf16, add_bf16x2);
    return h ? h : by_type(type, add_u32, add_u32, add_u64, add_u64);
  case PTX_FN_MIN:
    h = half_of(type, min_f16, min_f16x2, min_bf16, min_bf16x2);
    return h ? h : by_type(type, min_u32, min_s32, min_u64, min_s64);
  case PTX_FN_MAX:
    h = half_of(type, max_f16, max_f16x2, max_bf16, max_bf16x2);
    return h ? h : by_type(type, max_u32, max_s32, max_u64, max_s64);
  default: return NULL;
  }
}

// Whether some instruction of the function reads a register. ptxas makes a red of an atom whose result nobody
// reads, and so its traffic is counted as one.
static void note_reads(const PtxOperand *o, bool written, uint64_t *reads) {
  written = written || o->written;
  if ((o->kind == PTX_ARG_REG && !written) || (o->kind == PTX_ARG_MEM && o->index != PTX_NONE))
    reads[o->index / 64] |= UINT64_C(1) << o->index % 64;
  for (int e = 0; (o->kind == PTX_ARG_VEC || o->kind == PTX_ARG_TEX) && e < o->count; e++)
    note_reads(&o->elems[e], written, reads);
}
static const uint64_t *reads_of(Lower *l) {
  const PtxFunction *fn = l->fn;
  if (l->reads_of == fn) return l->reads;
  l->reads = (uint64_t *)lower_alloc(l, sizeof *l->reads * (fn->reg_count / 64 + 1));
  l->reads_of = fn;
  if (!l->reads) return NULL;
  for (uint32_t r = 0; fn->result_regs && r < fn->result_count; r++)
    if (fn->result_regs[r] != PTX_NONE)
      l->reads[fn->result_regs[r] / 64] |= UINT64_C(1) << fn->result_regs[r] % 64;
  for (uint32_t n = 0; n < fn->inst_count; n++)
    for (int o = 0; o < fn->insts[n].operand_count; o++)
      note_reads(&fn->insts[n].operands[o], false, l->reads);
  return l->reads;
}
static bool is_read(Lower *l, uint32_t reg) {
  const uint64_t *reads = reads_of(l);
  return !reads || reads[reg / 64] >> reg % 64 & 1;
}
static bool result_is_read(Lower *l, const PtxOperand *d) {
  if (d->kind == PTX_ARG_REG) return is_read(l, d->index);
  for (int e = 0; d->kind == PTX_ARG_VEC && e < d->count; e++)
    if (d->elems[e].kind == PTX_ARG_REG && is_read(l, d->elems[e].index)) return true;
  return false;
}

static EmuTraffic atomic_traffic(Lower *l, const PtxInst *in, const PtxOperand *b) {
  const PtxCode *code = in->code;
  if (code->fn == PTX_FN_CAS) return EMU_CAS;
  PtxTypeClass class = sol_ptx_type_class((PtxType)code->type[0]);
  if (class == PTX_CLASS_FLOAT || class == PTX_CLASS_PACKED) return EMU_CAS_LOOP;
  if (code->op == PTX_OP_ATOM && result_is_read(l, &in->operands[0])) return EMU_ATOMIC;
  bool by_one = code->fn == PTX_FN_ADD && b->kind == PTX_ARG_IMM && b->value == 1;
  return by_one && sol_ptx_type_bits((PtxType)code->type[0]) == 32 ? EMU_INCREMENT : EMU_REDUCE;
}

bool lower_atomic(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxCode *code = in->code;
  bool returns = code->op == PTX_OP_ATOM;
  const PtxOperand *d = &in->operands[0], *address = &in->operands[returns], *b = address + 1;
  AtomicPlan *plan = (AtomicPlan *)lower_alloc(l, sizeof *plan);
  if (!plan || !lower_mem(l, address, code->space, out)) return false;
  out->vec = code->vec ? code->vec : 1;
  out->bytes = (uint8_t)(sol_ptx_type_bits((PtxType)code->type[0]) / 8);
  out->fn = code->fn;
  bool shared = code->space == PTX_SPACE_SHARED || code->space == PTX_SPACE_SHARED_CLUSTER;
  out->kind = shared ? SOL_EMU_KIND_SHARED_ATOMIC : SOL_EMU_KIND_GLOBAL_ATOMIC;
  plan->returns = returns && d->kind != PTX_ARG_SINK;
  plan->traffic = atomic_traffic(l, in, b);
  const EmuLoc *from = lower_list(l, b), *to = returns ? lower_list(l, d) : NULL;
  if (!from || (returns && !to)) return false;
  for (int e = 0; e < out->vec && e < MOST_ELEMENTS; e++) {
    plan->b[e] = from[e];
    if (returns) plan->d[e] = to[e];
  }
  // Handlers read c in every case: a register where there is one, else something that is there.
  plan->c = code->fn == PTX_FN_CAS ? lower_read(l, &in->operands[3]) : plan->b[0];
  if (code->op == PTX_OP_RED_ASYNC &&
      !lower_mem2(l, &in->operands[2], &plan->barrier, &plan->barrier_offset, &plan->barrier_bytes))
    return false;
  out->more = plan;
  out->run = atomic_handler(code->fn, code->type[0]);
  return out->run != NULL;
}
