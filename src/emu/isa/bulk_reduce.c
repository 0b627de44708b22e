// cp.reduce.async.bulk: element by element, each one atomic, as other blocks may reduce into the same memory.
#include "emu/core/state.h"
#include "emu/isa/num_half.h"

#define REDUCE(name, T, expr)                                                                                \
  static void name(uint8_t *to, const uint8_t *from, uint32_t bytes) {                                       \
    for (uint32_t at = 0; at < bytes; at += (uint32_t)sizeof(T)) {                                           \
      T *cell = (T *)(void *)(to + at);                                                                      \
      T b, a = __atomic_load_n(cell, __ATOMIC_RELAXED), v;                                                   \
      memcpy(&b, from + at, sizeof b);                                                                       \
      do v = (T)(expr);                                                                                      \
      while (!__atomic_compare_exchange_n(cell, &a, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));          \
    }                                                                                                        \
  }
REDUCE(add_32, uint32_t, a + b)
REDUCE(add_64, uint64_t, a + b)
REDUCE(and_32, uint32_t, a &b)
REDUCE(and_64, uint64_t, a &b)
REDUCE(or_32, uint32_t, a | b)
REDUCE(or_64, uint64_t, a | b)
REDUCE(xor_32, uint32_t, a ^ b)
REDUCE(xor_64, uint64_t, a ^ b)
REDUCE(inc_32, uint32_t, a >= b ? 0 : a + 1)
REDUCE(dec_32, uint32_t, a == 0 || a > b ? b : a - 1)
REDUCE(min_u32, uint32_t, a < b ? a : b)
REDUCE(max_u32, uint32_t, a > b ? a : b)
REDUCE(min_s32, int32_t, a < b ? a : b)
REDUCE(max_s32, int32_t, a > b ? a : b)
REDUCE(min_u64, uint64_t, a < b ? a : b)
REDUCE(max_u64, uint64_t, a > b ? a : b)
REDUCE(min_s64, int64_t, a < b ? a : b)
REDUCE(max_s64, int64_t, a > b ? a : b)
REDUCE(add_f32, uint32_t, num_bits_f32(num_f32(a) + num_f32(b)))
REDUCE(add_f64, uint64_t, num_bits_f64(num_f64(a) + num_f64(b)))
REDUCE(add_f16, uint16_t, num_add_f16(a, b))
REDUCE(add_bf16, uint16_t, num_add_bf16(a, b))
REDUCE(min_f16, uint16_t, num_min_f16(a, b))
REDUCE(max_f16, uint16_t, num_max_f16(a, b))
REDUCE(min_bf16, uint16_t, num_min_bf16(a, b))
REDUCE(max_bf16, uint16_t, num_max_bf16(a, b))

typedef void Reduce(uint8_t *to, const uint8_t *from, uint32_t bytes);
typedef struct Row {
  uint8_t type, fn;
  Reduce *run;
} Row;
static const Row rows[] = {
    {PTX_U32, PTX_FN_ADD, add_32},   {PTX_S32, PTX_FN_ADD, add_32},  {PTX_U64, PTX_FN_ADD, add_64},
    {PTX_S64, PTX_FN_ADD, add_64},   {PTX_B32, PTX_FN_AND, and_32},  {PTX_B64, PTX_FN_AND, and_64},
    {PTX_B32, PTX_FN_OR, or_32},     {PTX_B64, PTX_FN_OR, or_64},    {PTX_B32, PTX_FN_XOR, xor_32},
    {PTX_B64, PTX_FN_XOR, xor_64},   {PTX_U32, PTX_FN_INC, inc_32},  {PTX_U32, PTX_FN_DEC, dec_32},
    {PTX_U32, PTX_FN_MIN, min_u32},  {PTX_U32, PTX_FN_MAX, max_u32}, {PTX_S32, PTX_FN_MIN, min_s32},
    {PTX_S32, PTX_FN_MAX, max_s32},  {PTX_U64, PTX_FN_MIN, min_u64}, {PTX_U64, PTX_FN_MAX, max_u64},
    {PTX_S64, PTX_FN_MIN, min_s64},  {PTX_S64, PTX_FN_MAX, max_s64}, {PTX_F32, PTX_FN_ADD, add_f32},
    {PTX_F64, PTX_FN_ADD, add_f64},  {PTX_F16, PTX_FN_ADD, add_f16}, {PTX_BF16, PTX_FN_ADD, add_bf16},
    {PTX_F16, PTX_FN_MIN, min_f16},  {PTX_F16, PTX_FN_MAX, max_f16}, {PTX_BF16, PTX_FN_MIN, min_bf16},
    {PTX_BF16, PTX_FN_MAX, max_bf16}};

static Reduce *find(uint8_t type, uint8_t fn) {
  for (size_t k = 0; k < SOL_COUNT(rows); k++)
    if (rows[k].type == type && rows[k].fn == fn) return rows[k].run;
  return NULL;
}

bool emu_bulk_can_reduce(uint8_t type, uint8_t fn) {
  return find(type, fn) != NULL;
}
void emu_bulk_reduce(uint8_t *to, const uint8_t *from, uint32_t bytes, uint8_t type, uint8_t fn) {
  find(type, fn)(to, from, bytes);
}
