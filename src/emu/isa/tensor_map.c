// The layout of a tensor map in memory, and what makes one usable.
#include "emu/tensor_map.h"

typedef struct Packed {
  char magic[8];
  uint64_t
      theirs; // of tensors under 128 KiB CUTLASS clears a bit of this word (bit 21), which in CUDA's layout is a setting
  uint64_t base;
  uint32_t dims[SOL_TENSOR_DIMS]; // less 1: there may be 2^32
  uint32_t steps;                 // four bits each
  uint64_t strides[SOL_TENSOR_DIMS - 1];
  uint16_t box[SOL_TENSOR_DIMS];
  uint8_t rank, type, swizzle, interleave, nan_fill, im2col;
  int16_t lower[SOL_TENSOR_DIMS - 2], upper[SOL_TENSOR_DIMS - 2];
  uint8_t zero[20];
} Packed;
_Static_assert(sizeof(Packed) == SOL_TENSOR_MAP_BYTES, "as long as CUtensorMap");
static const char magic[8] = {'S', 'o', 'l', 't', 'm', 'a', 'p', '1'};

uint32_t sol_tensor_type_bits(unsigned type) {
  static const uint8_t bits[SOL_TENSOR_TYPES] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
  return type < SOL_TENSOR_TYPES ? bits[type] : 0;
}

uint32_t sol_tensor_type_bytes(unsigned type) {
  return (sol_tensor_type_bits(type) + 7) / 8;
}

bool sol_tensor_is_spread(const SolTensorMap *m) {
  return m->type == SOL_TENSOR_U4_SPREAD || m->type == SOL_TENSOR_U6_SPREAD;
}

uint32_t sol_tensor_row_bytes(const SolTensorMap *m) {
  return sol_tensor_is_spread(m) ? m->box[0] : m->box[0] * sol_tensor_type_bits(m->type) / 8;
}

uint32_t sol_tensor_count(const SolTensorMap *m, uint32_t dim) {
  return dim ? (m->box[dim] + m->steps[dim] - 1) / m->steps[dim] : m->box[0];
}

uint64_t sol_tensor_box_bytes(const SolTensorMap *m) {
  uint64_t bits = (uint64_t)m->box[0] * sol_tensor_type_bits(m->type);
  if (m->im2col) return bits * m->box[1] / 8;
  for (uint32_t k = 1; k < m->rank; k++) bits *= sol_tensor_count(m, k);
  return bits / 8;
}

// Bits 7 and up of the address are xored into those below: so many of them, from this bit on.
typedef struct Swizzle {
  uint8_t bits, from;
} Swizzle;
static const Swizzle swizzles[SOL_TENSOR_SWIZZLES] = {[SOL_TENSOR_SWIZZLE_32B] = {1, 4},
                                                      [SOL_TENSOR_SWIZZLE_64B] = {2, 4},
                                                      [SOL_TENSOR_SWIZZLE_128B] = {3, 4},
                                                      [SOL_TENSOR_SWIZZLE_128B_ATOM_32B] = {2, 5},
                                                      [SOL_TENSOR_SWIZZLE_128B_ATOM_64B] = {1, 6}};

uint32_t sol_tensor_swizzled(const SolTensorMap *m, uint32_t address) {
  Swizzle s = swizzles[m->swizzle];
  return address ^ (address >> 7 & ((1u << s.bits) - 1)) << s.from;
}

static uint32_t span_of(const SolTensorMap *m) { // bytes that a swizzle exchanges pieces of
  return m->swizzle < SOL_TENSOR_SWIZZLE_128B ? 16u << m->swizzle : 128;
}

static bool is_float(uint8_t type) {
  return type >= SOL_TENSOR_F16 && type <= SOL_TENSOR_TF32_FTZ;
}

// What elements of less than a byte ask for beside.
static const char *narrow_problem(const SolTensorMap *m) {
  if (m->type == SOL_TENSOR_U4 && m->dims[0] % 2) return "an odd number of 4-bit elements in a row";
  if (!sol_tensor_is_spread(m)) return NULL;
  if (m->im2col) return "elements of 4 and 6 bits with gaps are not supported with im2col";
  if (m->base % 32) return "its address is no multiple of 32, which elements with gaps ask for";
  for (uint32_t k = 1; k < m->rank; k++)
    if (m->strides[k] % 32) return "a stride is no multiple of 32, which elements with gaps ask for";
  if (m->dims[0] % 128 || m->box[0] != 128)
    return "elements with gaps: the inner dimension is no multiple of 128, or its box not 128";
  return m->swizzle == SOL_TENSOR_SWIZZLE_NONE || m->swizzle == SOL_TENSOR_SWIZZLE_128B
             ? NULL
             : "elements with gaps: its swizzle is neither none nor of 128 bytes";
}

static const char *dimension_problem(const SolTensorMap *m, uint32_t k) {
  if (!m->dims[k] || m->dims[k] > UINT64_C(1) << 32) return "a dimension is not 1 to 2^32";
  if (m->im2col && k == 1 && (!m->box[1] || m->box[1] > SOL_TENSOR_PIXELS))
    return "pixels of a column are not 1 to 1024";
  if (!(m->im2col && k == 1) && (!m->box[k] || m->box[k] > SOL_TENSOR_BOX))
    return "a box dimension is not 1 to 256";
  if (!m->steps[k] || m->steps[k] > 8) return "an element stride is not 1 to 8";
  if (k && (m->strides[k] % 16 || m->strides[k] >> 40)) return "a stride is no multiple of 16 below 2^40";
  return NULL;
}

// The corners have fewer bits the more of them there are.
static const char *pixels_problem(const SolTensorMap *m) {
  static const int32_t most[] = {[3] = 1 << 15, [4] = 1 << 7, [5] = 1 << 4};
  if (m->rank < 3) return "an im2col map has 3 to 5 dimensions";
  for (uint32_t k = 1; k + 1 < m->rank; k++) {
    int32_t low = m->lower[k - 1], high = m->upper[k - 1];
    if (low < -most[m->rank] || low >= most[m->rank] || high < -most[m->rank] || high >= most[m->rank])
      return "a corner of its pixels' box is out of range";
    if ((int64_t)m->dims[k] + high <= low) return "its pixels' box is empty";
  }
  return NULL;
}

const char *sol_tensor_map_problem(const SolTensorMap *m) {
  if (m->type >= SOL_TENSOR_TYPES) return "its data type is not supported";
  if (!m->rank || m->rank > SOL_TENSOR_DIMS) return "its rank is not 1 to 5";
  if (m->interleave) return "interleaved layouts are not supported";
  if (m->swizzle >= SOL_TENSOR_SWIZZLES || m->swizzle == SOL_TENSOR_SWIZZLE_128B_ATOM_32B_FLIP_8B)
    return "its swizzle is not supported";
  if (m->base % 16) return "its address is no multiple of 16";
  if (m->nan_fill && !is_float(m->type)) return "only floating-point types can be filled with NaN";
  for (uint32_t k = 0; k < m->rank; k++) {
    const char *why = dimension_problem(m, k);
    if (why) return why;
  }
  if (m->im2col && pixels_problem(m)) return pixels_problem(m);
  if (narrow_problem(m)) return narrow_problem(m);
  uint32_t inner = sol_tensor_row_bytes(m);
  if (inner % 16) return "the bytes of its box's inner dimension are no multiple of 16";
  if (m->swizzle && inner > span_of(m)) return "its box's inner dimension is longer than its swizzle";
  return NULL;
}

void sol_tensor_map_pack(const SolTensorMap *m, uint8_t out[SOL_TENSOR_MAP_BYTES]) {
  Packed p = {.base = m->base,
              .rank = (uint8_t)m->rank,
              .type = m->type,
              .swizzle = m->swizzle,
              .interleave = m->interleave,
              .nan_fill = m->nan_fill,
              .im2col = m->im2col};
  memcpy(p.lower, m->lower, sizeof p.lower);
  memcpy(p.upper, m->upper, sizeof p.upper);
  memcpy(p.magic, magic, sizeof magic);
  for (uint32_t k = 0; k < SOL_TENSOR_DIMS; k++) {
    p.dims[k] = (uint32_t)(m->dims[k] - 1);
    p.box[k] = (uint16_t)m->box[k];
    p.steps |= (m->steps[k] & 15) << 4 * k;
    if (k) p.strides[k - 1] = m->strides[k];
  }
  memcpy(out, &p, sizeof p);
}

bool sol_tensor_map_unpack(const uint8_t bytes[SOL_TENSOR_MAP_BYTES], SolTensorMap *m) {
  Packed p;
  memcpy(&p, bytes, sizeof p);
  *m = (SolTensorMap){.base = p.base,
                      .rank = p.rank,
                      .type = p.type,
                      .swizzle = p.swizzle,
                      .interleave = p.interleave,
                      .nan_fill = p.nan_fill != 0,
                      .im2col = p.im2col != 0};
  memcpy(m->lower, p.lower, sizeof p.lower);
  memcpy(m->upper, p.upper, sizeof p.upper);
  for (uint32_t k = 0; k < SOL_TENSOR_DIMS; k++) {
    m->dims[k] = (uint64_t)p.dims[k] + 1;
    m->box[k] = p.box[k];
    m->steps[k] = p.steps >> 4 * k & 15;
    m->strides[k] = k ? p.strides[k - 1] : sol_tensor_type_bytes(p.type);
  }
  return memcmp(p.magic, magic, sizeof magic) == 0;
}
