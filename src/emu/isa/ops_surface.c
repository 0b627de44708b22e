// suld, sust, sured, suq. x is in bytes, y in rows, z in slices; an access outside is a finding (.trap), goes
// to the nearest place inside (.clamp), or reads 0 and writes nothing (.zero).
#include "emu/core/state.h"
#include "emu/core/texture_table.h"

typedef struct SurfPlan {
  EmuLoc handle, coord[3], layer, data[4];
  bool has_layer;
  uint8_t dims, edge;
  uint8_t type;          // sured
  uint8_t lane_bytes[4]; // of the data registers, which may be wider than the elements
} SurfPlan;

// Where lane's access goes; false: outside.
static bool surface_at(EmuCtx *x, const SurfPlan *plan, const SolEmuImage *m, int lane, uint32_t bytes,
                       uint64_t *addr) {
  int64_t row = (int64_t)m->width * emu_texel_bytes(m);
  int64_t most[3] = {row, m->height ? m->height : 1, m->depth ? m->depth : 1}, at[3] = {0, 0, 0};
  int64_t layer = plan->has_layer ? EMU_IN(int32_t, plan->layer)[lane] : 0,
          layers = m->layers ? m->layers : 1;
  bool inside = layer >= 0 && layer < layers;
  for (int dim = 0; dim < plan->dims; dim++) {
    int64_t size = dim ? 1 : bytes, c = EMU_IN(int32_t, plan->coord[dim])[lane];
    bool fits = c >= 0 && c + size <= most[dim];
    inside &= fits;
    at[dim] = fits ? c : c < 0 || most[dim] < size ? 0 : most[dim] - size;
  }
  if (layer < 0 || layer >= layers) layer = layer < 0 ? 0 : layers - 1;
  *addr = m->address + (uint64_t)(at[2] + layer) * m->slice + (uint64_t)at[1] * m->pitch + (uint64_t)at[0];
  return inside || plan->edge == PTX_EDGE_CLAMP;
}

// Resolves the lanes' accesses, surface by surface; the lanes that may go on.
static uint32_t surface_access(EmuCtx *x, const EmuInst *i, uint32_t mask, bool store, EmuTraffic traffic,
                               EmuAccess *acc) {
  const SurfPlan *plan = (const SurfPlan *)i->more;
  uint32_t bytes = (uint32_t)i->bytes * i->vec, inside = 0, trapped = 0;
  uint64_t addr[EMU_LANES], last = 0;
  const EmuObject *object = NULL;
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left);
    uint64_t handle = EMU_IN(uint64_t, plan->handle)[l];
    if (!object || handle != last) object = emu_named_object(x, i, 1u << l, handle, EMU_SURFACE);
    last = handle;
    if (!object) continue;
    if (surface_at(x, plan, &object->texture.image, l, bytes, &addr[l]))
      inside |= 1u << l;
    else
      trapped |= 1u << l;
  }
  if (trapped && plan->edge != PTX_EDGE_ZERO)
    emu_find(x, i, trapped, SOL_EMU_OUT_OF_BOUNDS, 0, bytes,
             "surface access of %u bytes outside of the surface", bytes);
  acc->mask = 0;
  if (!inside) return 0;
  uint32_t ok = emu_resolve_at(x, i, inside, addr, PTX_SPACE_GLOBAL, bytes, store, acc);
  if (ok) emu_count(x, i, acc, bytes, traffic);
  return ok;
}

static void suld(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const SurfPlan *plan = (const SurfPlan *)i->more;
  EmuAccess acc;
  uint32_t ok = surface_access(x, i, mask, false, EMU_LOAD, &acc);
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left);
    for (uint32_t e = 0; e < i->vec; e++) {
      uint8_t v[16] = {0};
      if (ok >> l & 1) memcpy(v, acc.host[l] + e * i->bytes, i->bytes);
      memcpy(EMU_OUT(uint8_t, plan->data[e]) + (uint32_t)l * plan->lane_bytes[e], v, plan->lane_bytes[e]);
    }
  }
}

static void sust(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const SurfPlan *plan = (const SurfPlan *)i->more;
  EmuAccess acc;
  for (uint32_t left = surface_access(x, i, mask, true, EMU_STORE, &acc); left; left &= left - 1) {
    int l = emu_first(left);
    for (uint32_t e = 0; e < i->vec; e++)
      memcpy(acc.host[l] + e * i->bytes, EMU_IN(uint8_t, plan->data[e]) + (uint32_t)l * plan->lane_bytes[e],
             i->bytes);
  }
}

static uint64_t reduced(uint8_t fn, uint8_t type, uint64_t old, uint64_t b) {
  bool less = type == PTX_S32   ? (int32_t)old < (int32_t)b
              : type == PTX_S64 ? (int64_t)old < (int64_t)b
                                : old < b;
  switch (fn) {
  case PTX_FN_ADD: return old + b;
  case PTX_FN_MIN: return less ? old : b;
  case PTX_FN_MAX: return less ? b : old;
  case PTX_FN_AND: return old & b;
  default: return old | b;
  }
}

#define SURED(T, name)                                                                                       \
  static void name(EmuCtx *x, const EmuInst *i, uint32_t mask) {                                             \
    const SurfPlan *plan = (const SurfPlan *)i->more;                                                        \
    const T *b = EMU_IN(T, plan->data[0]);                                                                   \
    EmuAccess acc;                                                                                           \
    emu_spin(x);                                                                                             \
    for (uint32_t left = surface_access(x, i, mask, true, EMU_REDUCE, &acc); left; left &= left - 1) {       \
      int l = emu_first(left);                                                                               \
      T *p = (T *)(void *)acc.host[l], old = __atomic_load_n(p, __ATOMIC_ACQUIRE), next;                     \
      do next = (T)reduced(i->fn, plan->type, old, b[l]);                                                    \
      while (!__atomic_compare_exchange_n(p, &old, next, true, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE));         \
    }                                                                                                        \
  }
SURED(uint32_t, sured_32)
SURED(uint64_t, sured_64)

bool lower_surface(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxCode *code = in->code;
  if (code->op == PTX_OP_SUQ) return lower_image_query(l, in, out, EMU_SURFACE);
  bool load = code->op == PTX_OP_SULD;
  const PtxOperand *t = &in->operands[load ? 1 : 0], *data = &in->operands[load ? 0 : 1];
  SurfPlan *plan = (SurfPlan *)lower_alloc(l, sizeof *plan);
  const EmuLoc *list = lower_list(l, data);
  if (!plan || !list) return false;
  out->vec = code->vec ? code->vec : 1;
  for (int e = 0; e < out->vec && e < 4; e++) {
    plan->data[e] = list[e];
    plan->lane_bytes[e] = (uint8_t)lower_lane_bytes(l, data->kind == PTX_ARG_VEC ? &data->elems[e] : data);
  }
  plan->handle = lower_read(l, &t->elems[0]);
  plan->has_layer = emu_geom_layered(code->geom);
  plan->dims = emu_geom_dims(code->geom);
  plan->edge = code->edge ? code->edge : PTX_EDGE_TRAP;
  plan->type = code->type[0];
  const PtxOperand *coords = &t->elems[2];
  if (plan->has_layer) plan->layer = lower_read(l, coords++);
  for (int dim = 0; dim < plan->dims; dim++) plan->coord[dim] = lower_read(l, &coords[dim]);
  out->bytes = (uint8_t)(sol_ptx_type_bits((PtxType)code->type[0]) / 8);
  out->fn = code->fn;
  out->space = PTX_SPACE_GLOBAL;
  out->kind = SOL_EMU_KIND_TEXTURE;
  out->more = plan;
  out->run = load ? suld : code->op == PTX_OP_SUST ? sust : out->bytes == 8 ? sured_64 : sured_32;
  return true;
}
