// Tensor copies (cp.async.bulk.tensor) and tensor maps. A copy moves a box of the tensor, row by row of its innermost
// dimension; rows are packed in shared memory, and swizzled there by the bits of its addresses. What is outside of the
// tensor is zero (or NaN) in shared memory and is not written to the tensor; the mbarrier counts the whole box.
#include "emu/core/async.h"
#include "emu/core/lower.h"
#include "emu/core/trace.h"
#include "emu/isa/bulk.h"
#include "emu/tensor_map.h"

enum { MOST_ROW_BYTES = SOL_TENSOR_BOX * 8, SHARED_ALIGN = 128, MAP_ALIGN = 64 };

typedef struct Tensor { // the instruction
  EmuLoc map, at[SOL_TENSOR_DIMS], ranks;
  EmuAddress shared, barrier;
  uint32_t rank, coordinates;
  bool im2col;
  EmuLoc offsets[SOL_TENSOR_DIMS - 2]; // of im2col loads
  bool has_offsets;
  bool four_rows; // gather4, scatter4: the coordinates are a column and four rows
  bool stores, reduces, prefetches, multicast;
  bool pairs; // a multicast's arrivals are at the even or at the odd blocks' mbarriers, as the given one is
  uint8_t fn; // of a reduction
} Tensor;

typedef struct TensorCopy { // one lane's execution of it
  SolTensorMap map;
  int32_t at[SOL_TENSOR_DIMS];
  uint16_t offsets[SOL_TENSOR_DIMS - 2];
  uint64_t shared;
  uint8_t *barrier;
  bool counts; // of a multicast the first block's
} TensorCopy;

// ---- boxes ----

typedef struct BoxRow {
  uint64_t address;      // in global memory, of what is inside of the tensor
  uint32_t first, bytes; // of the row's bytes: those inside
} BoxRow;

static uint64_t row_count(const Tensor *t, const SolTensorMap *m) {
  uint64_t rows = 1;
  if (t->im2col) return m->box[1];
  for (uint32_t k = 1; k < m->rank; k++) rows *= sol_tensor_count(m, k);
  return t->four_rows ? 4 : rows;
}

// Where pixel `row` of an im2col copy is: along each dimension of space to the end of the pixels' box, then from its lower
// corner on, one further in the next dimension.
static void pixel_at(const TensorCopy *c, uint64_t row, int64_t *at) {
  const SolTensorMap *m = &c->map;
  uint64_t left = row;
  for (uint32_t k = 1; k + 1 < m->rank; k++) {
    int64_t low = m->lower[k - 1], end = (int64_t)m->dims[k] + m->upper[k - 1], step = m->steps[k];
    uint64_t all = (uint64_t)((end - low + step - 1) / step),
             first = c->at[k] < end ? (uint64_t)((end - c->at[k] + step - 1) / step) : 1;
    bool inside = left < first;
    at[k] = (inside ? c->at[k] + (int64_t)left * step : low + (int64_t)((left - first) % all) * step) +
            c->offsets[k - 1];
    left = inside ? 0 : 1 + (left - first) / all;
  }
  at[m->rank - 1] = c->at[m->rank - 1] + (int64_t)left;
}

static void row_at(const Tensor *t, const TensorCopy *c, uint64_t row, int64_t *at) {
  const SolTensorMap *m = &c->map;
  uint64_t left = row;
  for (uint32_t k = 1; k < m->rank; k++) {
    uint32_t count = sol_tensor_count(m, k);
    at[k] = t->four_rows ? c->at[1 + row] : c->at[k] + (int64_t)(left % count * m->steps[k]);
    left /= count;
  }
}

static BoxRow box_row(const Tensor *t, const TensorCopy *c, uint64_t row) {
  const SolTensorMap *m = &c->map;
  uint64_t address = m->base;
  int64_t at[SOL_TENSOR_DIMS];
  if (t->im2col)
    pixel_at(c, row, at);
  else
    row_at(t, c, row, at);
  for (uint32_t k = 1; k < m->rank; k++) {
    if (at[k] < 0 || (uint64_t)at[k] >= m->dims[k]) return (BoxRow){0};
    address += (uint64_t)at[k] * m->strides[k];
  }
  uint32_t bits = sol_tensor_type_bits(m->type), shared_bits = sol_tensor_is_spread(m) ? 8 : bits;
  int64_t from = c->at[0], end = from + (int64_t)m->box[0], low = from < 0 ? 0 : from;
  int64_t high = end > (int64_t)m->dims[0] ? (int64_t)m->dims[0] : end;
  if (low >= high) return (BoxRow){0};
  return (BoxRow){address + (uint64_t)low * bits / 8, (uint32_t)(low - from) * shared_bits / 8,
                  (uint32_t)((high - low) * bits / 8)};
}

// NaN is the one that fma.oob takes for zero, 0x7ff7; wider types have the same upper bits.
static void fill_row(const SolTensorMap *m, uint8_t *row, uint32_t bytes) {
  uint32_t size = sol_tensor_type_bytes(m->type);
  memset(row, m->nan_fill ? 0xff : 0, bytes);
  for (uint32_t at = size - 2; m->nan_fill && at < bytes; at += size) row[at] = 0xf7, row[at + 1] = 0x7f;
}

// Between a row and its place in shared memory: `bytes` from `offset` of the box on.
static void move_row(const TensorCopy *c, uint8_t *shared, uint64_t offset, uint8_t *row, uint32_t bytes,
                     bool load) {
  uint32_t start = (uint32_t)(c->shared & ((1u << EMU_RANK_SHIFT) - 1));
  for (uint32_t at = 0; at < bytes; at += 16) {
    uint8_t *piece = shared + (sol_tensor_swizzled(&c->map, start + (uint32_t)offset + at) - start);
    memcpy(load ? piece : row + at, load ? row + at : piece, 16);
  }
}

// ---- copying ----

static uint8_t reduce_type(uint8_t type, uint8_t fn) {
  static const uint8_t types[SOL_TENSOR_TYPES] = {
      [SOL_TENSOR_U32] = PTX_U32, [SOL_TENSOR_S32] = PTX_S32,   [SOL_TENSOR_U64] = PTX_U64,
      [SOL_TENSOR_S64] = PTX_S64, [SOL_TENSOR_F16] = PTX_F16,   [SOL_TENSOR_F32] = PTX_F32,
      [SOL_TENSOR_F64] = PTX_F64, [SOL_TENSOR_BF16] = PTX_BF16, [SOL_TENSOR_F32_FTZ] = PTX_F32};
  bool bits = fn == PTX_FN_AND || fn == PTX_FN_OR || fn == PTX_FN_XOR;
  if (bits && (type == SOL_TENSOR_U32 || type == SOL_TENSOR_S32)) return PTX_B32;
  if (bits && (type == SOL_TENSOR_U64 || type == SOL_TENSOR_S64)) return PTX_B64;
  return types[type];
}

// Bytes of the tensor that lie side by side in shared memory, too: all, or 16 elements.
static uint32_t group_bytes(const SolTensorMap *m, uint32_t all) {
  return sol_tensor_is_spread(m) ? sol_tensor_type_bits(m->type) * 2 : all;
}

static bool move_inside(EmuCtx *x, const EmuInst *i, int l, const TensorCopy *c, const BoxRow *in,
                        uint8_t *row) {
  const Tensor *t = i->more;
  uint32_t size = sol_tensor_type_bytes(c->map.type), gap = 16;
  uint8_t *to = row + in->first;
  uint8_t *global = emu_range(x, i, l, in->address, PTX_SPACE_GLOBAL, in->bytes, size, t->stores);
  if (!global) return false;
  if (x->launch->checking)
    emu_check_bulk(x, i, l, global, in->address, in->bytes,
                   t->reduces  ? EMU_USE_ATOMIC
                   : t->stores ? EMU_USE_STORE
                               : EMU_USE_LOAD);
  if (t->reduces)
    emu_bulk_reduce(global, row + in->first, in->bytes, reduce_type(c->map.type, t->fn), t->fn);
  else
    for (uint32_t at = 0, each = group_bytes(&c->map, in->bytes); at < in->bytes; at += each, to += gap)
      memcpy(t->stores ? global + at : to, t->stores ? to : global + at, each);
  return true;
}

static bool copy_rows(EmuCtx *x, const EmuInst *i, int l, const TensorCopy *c, uint8_t *shared,
                      BulkTraffic *traffic) {
  const Tensor *t = i->more;
  uint32_t bytes = sol_tensor_row_bytes(&c->map);
  for (uint64_t r = 0, rows = row_count(t, &c->map); r < rows; r++) {
    uint8_t row[MOST_ROW_BYTES];
    const BoxRow in = box_row(t, c, r);
    if (t->stores)
      move_row(c, shared, r * bytes, row, bytes, false);
    else
      fill_row(&c->map, row, bytes);
    if (in.bytes && !move_inside(x, i, l, c, &in, row)) return false;
    if (in.bytes && c->counts) bulk_traffic_add(x, i, traffic, in.address, in.bytes);
    if (!t->stores) move_row(c, shared, r * bytes, row, bytes, true);
  }
  return true;
}

// Bytes in shared memory. Swizzling moves pieces within 128 bytes.
static uint64_t shared_bytes(const Tensor *t, const SolTensorMap *m, bool whole_lines) {
  uint64_t bytes = row_count(t, m) * sol_tensor_row_bytes(m);
  return whole_lines && m->swizzle ? (bytes + 127) / 128 * 128 : bytes;
}

// What the mbarrier counts: gaps are no bytes of the copy.
static uint32_t arriving_bytes(const Tensor *t, const SolTensorMap *m) {
  return (uint32_t)(t->four_rows ? (uint64_t)4 * m->box[0] * sol_tensor_type_bits(m->type) / 8
                                 : sol_tensor_box_bytes(m));
}

static uint8_t *box_in_shared(EmuCtx *x, const EmuInst *i, int l, const TensorCopy *c) {
  const Tensor *t = i->more;
  return emu_range(x, i, l, c->shared, PTX_SPACE_SHARED_CLUSTER, shared_bytes(t, &c->map, true), SHARED_ALIGN,
                   !t->stores);
}

static void run_copy(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what) {
  const Tensor *t = i->more;
  const TensorCopy *c = what;
  int l = emu_first(mask);
  uint32_t bytes = arriving_bytes(t, &c->map);
  uint8_t *shared = box_in_shared(x, i, l, c);
  BulkTraffic traffic;
  if (!shared) return;
  if (x->launch->checking)
    emu_check_bulk(x, i, l, shared, 0, shared_bytes(t, &c->map, true),
                   t->stores ? EMU_USE_LOAD : EMU_USE_STORE);
  bulk_traffic_begin(x, i,
                     t->reduces  ? SOL_MEM_ATOMIC
                     : t->stores ? SOL_MEM_COPY_STORE
                                 : SOL_MEM_COPY_LOAD,
                     &traffic);
  bool done = copy_rows(x, i, l, c, shared, &traffic);
  if (c->counts) bulk_traffic_end(x, i, &traffic);
  emu_spend(x, bytes);
  if (done && c->barrier) emu_mbarrier_bytes(x, i, l, c->barrier, bytes);
}

// ---- issuing ----

static bool bad_map(EmuCtx *x, const EmuInst *i, int l, uint64_t address, const char *why) {
  emu_find(x, i, 1u << l, SOL_EMU_BAD_USE, address, SOL_TENSOR_MAP_BYTES, "the tensor map at 0x%llx: %s",
           (unsigned long long)address, why);
  emu_fault(x);
  return false;
}

static bool take_map(EmuCtx *x, const EmuInst *i, int l, SolTensorMap *m) {
  const Tensor *t = i->more;
  uint64_t address = EMU_IN(uint64_t, t->map)[l];
  const uint8_t *bytes =
      emu_range(x, i, l, address, PTX_SPACE_GENERIC, SOL_TENSOR_MAP_BYTES, MAP_ALIGN, false);
  if (!bytes) return false;
  bool is_map = sol_tensor_map_unpack(bytes, m);
  const char *why = is_map
                        ? sol_tensor_map_problem(m)
                        : "these bytes are none that cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col made";
  if (!why && m->rank != t->rank) why = "it has another number of dimensions than the instruction";
  if (!why && m->im2col != t->im2col)
    why = m->im2col ? "it is one of cuTensorMapEncodeIm2col, and the copy is of tiles"
                    : "it is one of cuTensorMapEncodeTiled, and the copy is im2col";
  if (!why && t->four_rows && m->box[1] != 1) why = "gather4 and scatter4 need a box of one row";
  if (!why && t->reduces && !emu_bulk_can_reduce(reduce_type(m->type, t->fn), t->fn))
    why = "there is no such reduction of its type";
  return !why || bad_map(x, i, l, address, why);
}

static void issue_to_shared(EmuCtx *x, const EmuInst *i, int l, TensorCopy *c, uint64_t barrier) {
  if (!box_in_shared(x, i, l, c)) return;
  c->barrier = emu_range(x, i, l, barrier, PTX_SPACE_SHARED_CLUSTER, 8, 8, true);
  if (c->barrier && emu_traced(x))
    emu_trace_copy(x, c->barrier, c->counts ? shared_bytes(i->more, &c->map, false) : 0);
  if (c->barrier) emu_async(x, i, EMU_ASYNC_BARRIER, 1u << l, 0, c->barrier, run_copy, c, sizeof *c);
}

static void issue_load(EmuCtx *x, const EmuInst *i, int l, TensorCopy *c) {
  const Tensor *t = i->more;
  uint64_t barrier = bulk_shared_address(emu_lane_address(x, &t->barrier, l)), to = c->shared;
  emu_path_bulk(x);
  if (!t->multicast) {
    issue_to_shared(x, i, l, c, barrier);
    return;
  }
  uint32_t at = barrier >> EMU_RANK_SHIFT ? (uint32_t)(barrier >> EMU_RANK_SHIFT) : x->block->rank;
  for (uint32_t ranks = EMU_IN(uint16_t, t->ranks)[l]; ranks; ranks &= ranks - 1) {
    uint32_t rank = (uint32_t)emu_first(ranks);
    c->shared = bulk_in_rank(to, rank);
    issue_to_shared(x, i, l, c, bulk_in_rank(barrier, t->pairs ? (rank & ~1u) | (at & 1) : rank));
    c->counts = false;
  }
}

// Elements of less than a byte: whether the box begins with a whole byte, or a group of 16.
static bool begins_whole(EmuCtx *x, const EmuInst *i, int l, const TensorCopy *c) {
  bool narrow = sol_tensor_type_bits(c->map.type) < 8;
  int32_t group = sol_tensor_is_spread(&c->map) ? 16 : 2;
  return !narrow || c->at[0] % group == 0 ||
         emu_misuse(x, i, 1u << l, "a box of elements of 4 or 6 bits begins at %d, no multiple of %d",
                    c->at[0], group);
}

static void issue(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Tensor *t = i->more;
  x->fiber->spin = 0;
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    TensorCopy c = {.counts = true};
    if (!take_map(x, i, l, &c.map) || t->prefetches) continue;
    for (uint32_t k = 0; k < t->coordinates; k++) c.at[k] = EMU_IN(int32_t, t->at[k])[l];
    if (!begins_whole(x, i, l, &c)) continue;
    for (uint32_t k = 0; t->has_offsets && k + 2 < t->rank; k++)
      c.offsets[k] = EMU_IN(uint16_t, t->offsets[k])[l];
    c.shared = bulk_shared_address(emu_lane_address(x, &t->shared, l));
    if (!t->stores)
      issue_load(x, i, l, &c);
    else if (box_in_shared(x, i, l, &c)) {
      if (emu_traced(x))
        emu_trace_grouped(x, EMU_TRACE_STORES, SOL_EMU_STEP_COPY, (uint32_t)shared_bytes(t, &c.map, false));
      emu_async(x, i, EMU_ASYNC_BULK, 1u << l, x->warp->bulk_groups[l], NULL, run_copy, &c, sizeof c);
    }
  }
}

// ---- tensor maps in memory ----

static bool set_dimension(SolTensorMap *m, uint8_t field, uint64_t k, uint64_t value) {
  if (k >= SOL_TENSOR_DIMS || (field == PTX_FN_GLOBAL_STRIDE && k + 1 == SOL_TENSOR_DIMS)) return false;
  switch (field) {
  case PTX_FN_BOX_DIM: m->box[k] = (uint32_t)(value & 0xffff); return true;
  case PTX_FN_GLOBAL_DIM: m->dims[k] = value ? (uint32_t)value : UINT64_C(1) << 32; return true;
  case PTX_FN_ELEMENT_STRIDE: m->steps[k] = (uint32_t)(value & 15); return true;
  case PTX_FN_GLOBAL_STRIDE: m->strides[k + 1] = value; return true;
  default: return false;
  }
}

static bool set_field(SolTensorMap *m, uint8_t field, uint64_t k, uint64_t value) {
  // PTX numbers the types otherwise than the driver.
  static const uint8_t types[] = {SOL_TENSOR_U8,      SOL_TENSOR_U16, SOL_TENSOR_U32,  SOL_TENSOR_S32,
                                  SOL_TENSOR_U64,     SOL_TENSOR_S64, SOL_TENSOR_F16,  SOL_TENSOR_F32,
                                  SOL_TENSOR_F32_FTZ, SOL_TENSOR_F64, SOL_TENSOR_BF16, SOL_TENSOR_TF32,
                                  SOL_TENSOR_TF32_FTZ};
  switch (field) {
  case PTX_FN_GLOBAL_ADDRESS: m->base = value; return true;
  case PTX_FN_RANK: m->rank = (uint32_t)(value & 7) + 1; return value < SOL_TENSOR_DIMS;
  case PTX_FN_ELEMTYPE: m->type = value < SOL_COUNT(types) ? types[value] : SOL_TENSOR_TYPES; return true;
  case PTX_FN_INTERLEAVE_LAYOUT: m->interleave = (uint8_t)value; return value < 3;
  case PTX_FN_SWIZZLE_MODE: m->swizzle = (uint8_t)value; return value <= SOL_TENSOR_SWIZZLE_128B;
  case PTX_FN_FILL_MODE: m->nan_fill = value != 0; return value < 2;
  default: return set_dimension(m, field, k, value);
  }
}

// Kernels also make a map by themselves: of zeros, every field replaced. What a copy cannot use is found at the copy.
static bool unpack_or_empty(const uint8_t *bytes, SolTensorMap *m) {
  static const uint8_t zeros[SOL_TENSOR_MAP_BYTES];
  return sol_tensor_map_unpack(bytes, m) || memcmp(bytes, zeros, sizeof zeros) == 0;
}

static void replace(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuAddress place = {.base = i->a, .abytes = i->abytes, .offset = i->offset};
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    SolTensorMap m;
    uint64_t address = emu_lane_address(x, &place, l);
    uint64_t value = i->lane_bytes == 8 ? EMU_IN(uint64_t, i->b)[l] : EMU_IN(uint32_t, i->b)[l];
    uint8_t *bytes = emu_range(x, i, l, address, i->space, SOL_TENSOR_MAP_BYTES, MAP_ALIGN, true);
    if (!bytes) continue;
    if (!unpack_or_empty(bytes, &m))
      bad_map(x, i, l, address,
              "these bytes are none that cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col made");
    else if (!set_field(&m, i->fn, EMU_IN(uint32_t, i->c)[l], value))
      bad_map(x, i, l, address, "this field cannot have this value");
    else
      sol_tensor_map_pack(&m, bytes);
  }
}

// Of a warp's lanes one copies.
static void copy_map(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const EmuAddress *source = i->more;
  EmuAddress place = {.base = i->a, .abytes = i->abytes, .offset = i->offset};
  mask = emu_sync_lanes(x, i, mask, i->f);
  if (!mask) return;
  int l = emu_first(mask);
  const uint8_t *from = emu_range(x, i, l, emu_lane_address(x, source, l), PTX_SPACE_SHARED,
                                  SOL_TENSOR_MAP_BYTES, MAP_ALIGN, false);
  uint8_t *to = from ? emu_range(x, i, l, emu_lane_address(x, &place, l), PTX_SPACE_GLOBAL,
                                 SOL_TENSOR_MAP_BYTES, MAP_ALIGN, true)
                     : NULL;
  if (to) memcpy(to, from, SOL_TENSOR_MAP_BYTES);
}

static void nothing(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  (void)x, (void)i, (void)mask;
}

// ---- lowering ----

static bool take_tensor(Lower *l, const PtxCode *code, const PtxOperand *o, Tensor *t) {
  if (o->elems[0].kind == PTX_ARG_SYMBOL)
    return lower_refuse(l, "a tensor map's generic address is in a register");
  t->map = lower_read(l, &o->elems[0]);
  t->coordinates = (uint32_t)o->count - 2;
  t->rank = (uint32_t)sol_ptx_tensor_rank(code);
  t->four_rows = t->coordinates != t->rank;
  for (uint32_t k = 0; k < t->coordinates; k++) t->at[k] = lower_read(l, &o->elems[2 + k]);
  return lower_lane_bytes(l, &o->elems[0]) == 8 || lower_refuse(l, "a tensor map's address has 64 bits");
}

// A load's or a prefetch's; a store has another operand there.
static void take_offsets(Lower *l, const PtxOperand *o, Tensor *t) {
  t->has_offsets = t->im2col && !t->stores;
  for (uint32_t k = 0; t->has_offsets && k < SOL_TENSOR_DIMS - 2; k++)
    if (o->kind == PTX_ARG_VEC ? k < o->count : k == 0)
      t->offsets[k] = lower_read(l, o->kind == PTX_ARG_VEC ? &o->elems[k] : o);
}

static bool lower_box(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxCode *code = in->code;
  const PtxOperand *o = in->operands;
  Tensor *t = lower_alloc(l, sizeof *t);
  if (!t) return false;
  bool load = code->op == PTX_OP_CP_TENSOR;
  t->prefetches = code->op == PTX_OP_CP_TENSOR_PREFETCH;
  t->reduces = code->op == PTX_OP_CP_TENSOR_REDUCE;
  t->stores = t->reduces || code->op == PTX_OP_CP_TENSOR_STORE;
  t->multicast = PTX_HAS(code, MULTICAST);
  t->pairs = PTX_HAS(code, CTA_GROUP_2);
  t->fn = code->fn;
  out->kind = load ? SOL_EMU_KIND_GLOBAL_LOAD : SOL_EMU_KIND_GLOBAL_STORE;
  out->more = t;
  out->run = issue;
  if (t->multicast) t->ranks = lower_read(l, &o[4]);
  t->im2col = code->fn == PTX_FN_IM2COL || code->fn == PTX_FN_IM2COL_NO_OFFS || PTX_HAS(code, IM2COL) ||
              PTX_HAS(code, IM2COL_NO_OFFS);
  take_offsets(l, &o[load ? 3 : 1], t);
  if (load && !lower_address_operand(l, &o[2], &t->barrier)) return false;
  if (!t->prefetches && !lower_address_operand(l, &o[load ? 0 : 1], &t->shared)) return false;
  return take_tensor(l, code, &o[load ? 1 : 0], t);
}

static bool lower_replace(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxOperand *o = in->operands;
  out->c = lower_read(l, &o[1]);
  out->b = lower_read(l, &o[2]);
  out->lane_bytes = in->code->type[1] == PTX_B64 ? 8 : 4;
  out->fn = in->code->fn;
  out->run = replace;
  return lower_mem(l, &o[0], in->code->space, out);
}

static bool lower_map_copy(Lower *l, const PtxInst *in, EmuInst *out) {
  EmuAddress *from = lower_alloc(l, sizeof *from);
  out->f = lower_const(l, EMU_ALL, 4);
  out->more = from;
  out->run = copy_map;
  return from && lower_mem(l, &in->operands[0], PTX_SPACE_GLOBAL, out) &&
         lower_address_operand(l, &in->operands[1], from);
}

bool lower_tensor(Lower *l, const PtxInst *in, EmuInst *out) {
  switch (in->code->op) {
  case PTX_OP_CP_TENSOR:
  case PTX_OP_CP_TENSOR_STORE:
  case PTX_OP_CP_TENSOR_REDUCE:
  case PTX_OP_CP_TENSOR_PREFETCH: return lower_box(l, in, out);
  case PTX_OP_PREFETCH_TENSORMAP: out->run = nothing; return true;
  case PTX_OP_TENSORMAP_REPLACE: return lower_replace(l, in, out);
  case PTX_OP_TENSORMAP_COPY: return lower_map_copy(l, in, out);
  default: return lower_cluster_launch(l, in, out);
  }
}
