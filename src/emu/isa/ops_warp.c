// Communication between the lanes of a warp: shfl, vote, match, redux, activemask, elect.
//
// With .sync the lanes in the member mask synchronise first (emu_sync_lanes); lanes with different masks form
// separate groups. Without it (old PTX) the group is the lanes that execute the instruction together.
// A shuffle from a lane that does not take part is undefined in PTX; here the value is 0, as on an H200 for
// lanes that have ended, and the sync check reports it.
#include "emu/core/state.h"
#include "emu/isa/num_order.h"

static void put(EmuCtx *x, EmuLoc d, uint32_t mask, const uint32_t *values) {
  uint32_t *to = EMU_OUT(uint32_t, d);
  for (uint32_t left = mask; left; left &= left - 1) to[emu_first(left)] = values[emu_first(left)];
}

// ---- shfl ----

// The lane to read from, and whether it is in range (PTX: pval). Lanes out of range keep their own value.
static inline int shfl_source(uint8_t fn, int lane, uint32_t b, uint32_t c, bool *in_range) {
  int seg = (int)(c >> 8 & 31), most = (lane & seg) | ((int)(c & 31) & ~seg), by = (int)(b & 31), j;
  switch (fn) {
  case PTX_FN_UP: j = lane - by; break;
  case PTX_FN_DOWN: j = lane + by; break;
  case PTX_FN_BFLY: j = lane ^ by; break;
  default: j = (lane & seg) | (by & ~seg); break;
  }
  *in_range = fn == PTX_FN_UP ? j >= most : j <= most;
  return *in_range ? j : lane;
}

static void shfl_lanes(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const uint32_t *members = EMU_IN(uint32_t, i->f), *b = EMU_IN(uint32_t, i->b), *c = EMU_IN(uint32_t, i->c);
  uint32_t a[EMU_LANES], r[EMU_LANES];
  uint32_t in_range = 0, absent = 0;
  memcpy(a, EMU_IN(uint32_t, i->a), sizeof a);
  for (uint32_t left = mask; left; left &= left - 1) {
    int lane = emu_first(left);
    bool ok;
    int from = shfl_source(i->fn, lane, b[lane], c[lane], &ok);
    bool present = (mask & members[lane]) >> from & 1;
    r[lane] = present || from == lane ? a[from] : 0;
    if (ok) in_range |= 1u << lane;
    if (!present && from != lane) absent |= 1u << lane;
  }
  put(x, i->d, mask, r);
  emu_set_pred(x, i->e, mask, in_range);
  if (absent && x->launch->launch->checks & SOL_EMU_CHECK_SYNC)
    emu_find(x, i, absent, SOL_EMU_BAD_SYNC, 0, 0, "shuffle from a lane that does not take part");
}
static void shfl(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  shfl_lanes(x, i, mask);
}

// Whether all lanes take part, with one distance and one clamp: as nvcc compiles what a warp reduces by, in registers.
EMU_HOT static bool shfl_is_even(EmuCtx *x, const EmuInst *i) {
  const uint32_t *members = EMU_IN(uint32_t, i->f), *b = EMU_IN(uint32_t, i->b), *c = EMU_IN(uint32_t, i->c);
  uint32_t odd = 0, by = b[0], clamp = c[0];
  EMU_EACH(l) odd |= ~members[l] | (b[l] ^ by) | (c[l] ^ clamp);
  return !odd;
}

// The lanes of a whole warp that go by one distance; shfl_source, for all of them.
EMU_HOT static void shfl_even(EmuCtx *x, const EmuInst *i) {
  uint32_t c = EMU_IN(uint32_t, i->c)[0];
  int by = (int)(EMU_IN(uint32_t, i->b)[0] & 31), seg = (int)(c >> 8 & 31), end = (int)(c & 31) & ~seg;
  int from[EMU_LANES];
  uint32_t a[EMU_LANES], *d = EMU_OUT(uint32_t, i->d);
  uint8_t ok[EMU_LANES];
  memcpy(a, EMU_IN(uint32_t, i->a), sizeof a);
  switch (i->fn) {
  case PTX_FN_UP: EMU_EACH(l) from[l] = l - by; break;
  case PTX_FN_DOWN: EMU_EACH(l) from[l] = l + by; break;
  case PTX_FN_BFLY: EMU_EACH(l) from[l] = l ^ by; break;
  default: EMU_EACH(l) from[l] = (l & seg) | (by & ~seg); break;
  }
  if (i->fn == PTX_FN_UP)
    EMU_EACH(l) ok[l] = from[l] >= ((l & seg) | end);
  else
    EMU_EACH(l) ok[l] = from[l] <= ((l & seg) | end);
  for (int l = 0; l < EMU_LANES; l++) d[l] = a[ok[l] ? from[l] : l];
  emu_set_pred(x, i->e, EMU_ALL, emu_pack(ok));
}

static void shfl_sync(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (mask == EMU_ALL && shfl_is_even(x, i))
    shfl_even(x, i);
  else if (mask)
    shfl_lanes(x, i, mask);
}

// All lanes, one distance, one clamp, all here: the source lanes are known beforehand (i->more).
typedef struct ShflPlan {
  uint8_t from[EMU_LANES];
  uint32_t in_range;
} ShflPlan;
EMU_HOT static void shfl_plan(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask) return;
  if (mask != EMU_ALL) {
    shfl_lanes(x, i, mask);
    return;
  }
  const ShflPlan *plan = (const ShflPlan *)i->more;
  uint32_t *d = EMU_OUT(uint32_t, i->d), a[EMU_LANES];
  memcpy(a, EMU_IN(uint32_t, i->a), sizeof a);
  for (int l = 0; l < EMU_LANES; l++) d[l] = a[plan->from[l]];
  emu_set_pred(x, i->e, EMU_ALL, plan->in_range);
}

static bool lower_shfl(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxOperand *o = in->operands;
  bool sync = PTX_HAS(in->code, SYNC);
  out->d = lower_write(l, &o[0]);
  out->e = lower_write(l, &o[1]);
  out->a = lower_read(l, &o[2]);
  out->b = lower_read(l, &o[3]);
  out->c = lower_read(l, &o[4]);
  out->f = sync ? lower_read(l, &o[5]) : lower_const(l, EMU_ALL, 4);
  out->fn = in->code->fn;
  out->run = sync ? shfl_sync : shfl;
  const PtxOperand *by = lower_constant(l, &o[3]), *clamp = lower_constant(l, &o[4]),
                   *members = sync ? lower_constant(l, &o[5]) : NULL;
  if (!by || !clamp || !members || (uint32_t)members->value != EMU_ALL) return true;
  ShflPlan *plan = (ShflPlan *)lower_alloc(l, sizeof *plan);
  if (!plan) return false;
  for (int lane = 0; lane < EMU_LANES; lane++) {
    bool ok;
    plan->from[lane] = (uint8_t)shfl_source(out->fn, lane, (uint32_t)by->value, (uint32_t)clamp->value, &ok);
    plan->in_range |= (uint32_t)ok << lane;
  }
  out->more = plan;
  out->run = shfl_plan;
  return true;
}

// ---- vote ----

static uint32_t vote_group(uint8_t fn, uint32_t holds, uint32_t group) {
  switch (fn) {
  case PTX_FN_ALL: return holds == group ? EMU_ALL : 0;
  case PTX_FN_ANY: return holds ? EMU_ALL : 0;
  case PTX_FN_UNI: return !holds || holds == group ? EMU_ALL : 0;
  default: return holds; // ballot
  }
}

// members NULL: one group. A ballot goes to a register, the others to a predicate.
static void vote_lanes(EmuCtx *x, const EmuInst *i, uint32_t mask, const uint32_t *members) {
  uint32_t holds = emu_pred(x, i->a) & mask, result = 0;
  uint32_t one_group[EMU_LANES], r[EMU_LANES];
  if (!members) {
    for (int l = 0; l < EMU_LANES; l++) one_group[l] = mask;
    members = one_group;
  }
  for (uint32_t left = mask, group; emu_group(members, mask, &left, &group);) {
    uint32_t v = vote_group(i->fn, holds & group, group);
    result |= v & group;
    for (uint32_t g = group; g; g &= g - 1) r[emu_first(g)] = v;
  }
  if (i->fn != PTX_FN_BALLOT)
    emu_set_pred(x, i->d, mask, result);
  else
    put(x, i->d, mask, r);
}
static void vote(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  vote_lanes(x, i, mask, NULL);
}
static void vote_sync(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (mask) vote_lanes(x, i, mask, EMU_IN(uint32_t, i->f));
}

static bool lower_vote(Lower *l, const PtxInst *in, EmuInst *out) {
  bool sync = PTX_HAS(in->code, SYNC);
  out->d = lower_write(l, &in->operands[0]);
  out->a = lower_read(l, &in->operands[1]);
  if (sync) out->f = lower_read(l, &in->operands[2]);
  out->fn = in->code->fn;
  out->run = sync ? vote_sync : vote;
  return true;
}

// ---- match ----

static inline uint64_t match_value(EmuCtx *x, const EmuInst *i, int lane) {
  return i->bytes == 8 ? EMU_IN(uint64_t, i->a)[lane] : EMU_IN(uint32_t, i->a)[lane];
}
static uint32_t match_same(const uint64_t *v, uint32_t group, int lane) {
  uint32_t same = 0;
  for (uint32_t g = group; g; g &= g - 1) same |= (uint32_t)(v[emu_first(g)] == v[lane]) << emu_first(g);
  return same;
}

static void match_sync(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask) return;
  const uint32_t *members = EMU_IN(uint32_t, i->f);
  uint64_t v[EMU_LANES];
  uint32_t r[EMU_LANES], all_same = 0;
  uint64_t *turns = &x->counts[i->index].turns;
  for (int l = 0; l < EMU_LANES; l++) v[l] = match_value(x, i, l);
  for (uint32_t left = mask, group; emu_group(members, mask, &left, &group);) {
    if (i->fn == PTX_FN_ALL) {
      bool same = match_same(v, group, emu_first(group)) == group;
      if (same) all_same |= group;
      for (uint32_t g = group; g; g &= g - 1) r[emu_first(g)] = same ? group : 0;
      ++*turns;
      continue;
    }
    for (uint32_t rest = group; rest;) { // one class of equal values after the other
      uint32_t same = match_same(v, group, emu_first(rest));
      for (uint32_t g = same; g; g &= g - 1) r[emu_first(g)] = same;
      rest &= ~same;
      ++*turns;
    }
  }
  put(x, i->d, mask, r);
  if (i->fn == PTX_FN_ALL) emu_set_pred(x, i->e, mask, all_same);
}

// ---- redux ----

typedef uint32_t Redux(uint32_t a, uint32_t b);
static uint32_t redux_add(uint32_t a, uint32_t b) {
  return a + b;
}
static uint32_t redux_and(uint32_t a, uint32_t b) {
  return a & b;
}
static uint32_t redux_or(uint32_t a, uint32_t b) {
  return a | b;
}
static uint32_t redux_xor(uint32_t a, uint32_t b) {
  return a ^ b;
}
static uint32_t redux_min_u32(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}
static uint32_t redux_max_u32(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}
static uint32_t redux_min_s32(uint32_t a, uint32_t b) {
  return (int32_t)a < (int32_t)b ? a : b;
}
static uint32_t redux_max_s32(uint32_t a, uint32_t b) {
  return (int32_t)a > (int32_t)b ? a : b;
}
#define REDUX_F32(name)                                                                                      \
  static uint32_t redux_##name(uint32_t a, uint32_t b) {                                                     \
    return num_bits_f32(num_##name(num_f32(a), num_f32(b)));                                                 \
  }
REDUX_F32(min_f32)
REDUX_F32(max_f32)
REDUX_F32(min_nan_f32)
REDUX_F32(max_nan_f32)

typedef struct ReduxPlan {
  Redux *fold;
  bool magnitude; // of floats, first
  bool is_float;
} ReduxPlan;

static void redux_sync(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask) return;
  const ReduxPlan *plan = (const ReduxPlan *)i->more;
  const uint32_t *a = EMU_IN(uint32_t, i->a), *members = EMU_IN(uint32_t, i->f);
  uint32_t r[EMU_LANES];
  for (uint32_t left = mask, group; emu_group(members, mask, &left, &group);) {
    uint32_t sum = a[emu_first(group)] & (plan->magnitude ? 0x7fffffffu : EMU_ALL);
    if (plan->is_float) sum = plan->fold(sum, sum); // a NaN becomes the one NaN
    for (uint32_t g = group & (group - 1); g; g &= g - 1)
      sum = plan->fold(sum, a[emu_first(g)] & (plan->magnitude ? 0x7fffffffu : EMU_ALL));
    for (uint32_t g = group; g; g &= g - 1) r[emu_first(g)] = sum;
  }
  put(x, i->d, mask, r);
}

static Redux *redux_of(const PtxCode *c) {
  bool is_min = c->fn == PTX_FN_MIN, nan = PTX_HAS(c, NAN);
  switch (c->fn) {
  case PTX_FN_ADD: return redux_add;
  case PTX_FN_AND: return redux_and;
  case PTX_FN_OR: return redux_or;
  case PTX_FN_XOR: return redux_xor;
  default: break;
  }
  switch (c->type[0]) {
  case PTX_U32: return is_min ? redux_min_u32 : redux_max_u32;
  case PTX_S32: return is_min ? redux_min_s32 : redux_max_s32;
  default:
    if (nan) return is_min ? redux_min_nan_f32 : redux_max_nan_f32;
    return is_min ? redux_min_f32 : redux_max_f32;
  }
}

static bool lower_redux(Lower *l, const PtxInst *in, EmuInst *out) {
  ReduxPlan *plan = (ReduxPlan *)lower_alloc(l, sizeof *plan);
  if (!plan) return false;
  plan->fold = redux_of(in->code);
  plan->magnitude = PTX_HAS(in->code, ABS);
  plan->is_float = in->code->type[0] == PTX_F32;
  out->d = lower_write(l, &in->operands[0]);
  out->a = lower_read(l, &in->operands[1]);
  out->f = lower_read(l, &in->operands[2]);
  out->more = plan;
  out->run = redux_sync;
  return true;
}

// ---- activemask, elect ----

EMU_OP1(activemask, uint32_t, uint32_t, mask)

// Which lane is elected is the machine's choice, but always the same one: here the lowest.
static void elect(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask) return;
  const uint32_t *members = EMU_IN(uint32_t, i->f);
  uint32_t leader[EMU_LANES], leaders = 0;
  for (uint32_t left = mask, group; emu_group(members, mask, &left, &group);) {
    leaders |= 1u << emu_first(group);
    for (uint32_t g = group; g; g &= g - 1) leader[emu_first(g)] = (uint32_t)emu_first(group);
  }
  put(x, i->d, mask, leader);
  emu_set_pred(x, i->e, mask, leaders);
}

bool lower_warp(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxOperand *o = in->operands;
  switch (in->code->op) {
  case PTX_OP_SHFL: return lower_shfl(l, in, out);
  case PTX_OP_VOTE: return lower_vote(l, in, out);
  case PTX_OP_REDUX: return lower_redux(l, in, out);
  case PTX_OP_MATCH:
    out->d = lower_write(l, &o[0]);
    out->e = lower_write(l, &o[1]);
    out->a = lower_read(l, &o[2]);
    out->f = lower_read(l, &o[3]);
    out->fn = in->code->fn;
    out->bytes = (uint8_t)(sol_ptx_type_bits((PtxType)in->code->type[0]) / 8);
    out->run = match_sync;
    return true;
  case PTX_OP_ACTIVEMASK:
    out->d = lower_write(l, &o[0]);
    out->a = out->b = out->c = EMU_TRUE;
    out->run = activemask;
    return true;
  case PTX_OP_ELECT:
    out->d = lower_write(l, &o[0]);
    out->e = lower_write(l, &o[1]);
    out->f = lower_read(l, &o[2]);
    out->run = elect;
    return true;
  default: return false;
  }
}
