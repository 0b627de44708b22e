// The functions of src/emu/num_*.h against a GPU. Each row of num_hw.def is an instruction and the expression
// that emulates it; num_hw_h200.def holds a hash of the instruction's results over HW_INPUTS operands, from
// an H200. To make that file anew: nvcc -x cu -arch=sm_90a tests/test_num_hw.c -o probe && ./probe >
// tests/num_hw_h200.def
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HW_INPUTS = 4096 };

#ifdef __CUDACC__
#define HW_FN static __device__ __host__
#else
#define HW_FN static
#endif

HW_FN uint64_t hw_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// A number of a binary format with e exponent and m mantissa bits, special ones often.
HW_FN uint64_t hw_float(uint64_t h, int e, int m) {
  uint64_t sign = (h >> 63) << (e + m), top = (1ull << e) - 1, bias = top >> 1, all = (1ull << m) - 1;
  uint64_t mant = (h >> 8) & all, r = hw_mix(h);
  if ((h >> 60 & 3) == 0) mant &= ~0ull << (m - 2);      // few bits set: exact results and ties
  if ((h >> 60 & 3) == 1) mant |= (1ull << (m - 2)) - 1; // many: carries
  mant &= all;
  switch (h & 7) {
  case 0:
    switch (r & 15) {
    case 0:
    case 1: return sign;
    case 2: return sign | 1;
    case 3: return sign | all;
    case 4: return sign | (1ull << m);
    case 5:
    case 6: return sign | (bias << m);
    case 7: return sign | ((bias + 1) << m);
    case 8:
    case 9: return sign | ((top << m) - 1);
    case 10:
    case 11: return sign | (top << m);
    case 12: return sign | (top << m) | 1; // signalling NaN
    case 13: return sign | (top << m) | (1ull << (m - 1)) | 5;
    case 14: return sign | (top << m) | all;
    default: return sign | ((bias - 1) << m);
    }
  case 1: return sign | mant;                                      // subnormal
  case 2: return sign | ((1 + r % (uint64_t)(m + 3)) << m) | mant; // barely normal
  case 3: // huge, or about where a narrower format ends
    if (e > 8 && (r & 64)) return sign | ((bias - 151 + r % 64 % 28) << m) | mant;
    if (e > 5 && (r & 128)) return sign | ((bias + 14 - r % 64 % 42) << m) | mant;
    return sign | ((top - 1 - r % 4) << m) | mant;
  case 4: return sign | ((bias + r % (uint64_t)(2 * m) - (uint64_t)m) % top << m) | mant; // a wide middle
  case 5:
    return sign | ((bias / 2 + r % (uint64_t)(m + 4)) << m) | mant; // products of two are about the smallest
  case 6: return sign | ((bias - 2 + r % 10) << m) | mant;          // small numbers
  default: return sign | ((r % (top + 1)) << m) | mant;
  }
}

HW_FN uint64_t hw_int(uint64_t h, int bits) {
  uint64_t r = hw_mix(h), all = ~0ull >> (64 - bits);
  switch (h & 7) {
  case 0: return 0;
  case 1: return ((r & 15) - 8) & all;
  case 2: return ((1ull << (r % (uint64_t)bits)) - 1 + ((r >> 8) & 2)) & all;
  case 3: return ((1ull << (bits - 1)) - ((r >> 8) & 1)) & all;
  case 4: return (r >> (r & 63)) & all;
  case 5: return (0 - (r >> (r & 63))) & all;
  default: return r & all;
  }
}

typedef union HwFloat {
  uint32_t u;
  float f;
} HwFloat;
typedef union HwDouble {
  uint64_t u;
  double f;
} HwDouble;

HW_FN uint64_t hw_plain(char kind, uint64_t h) {
  switch (kind) {
  case 'h': return hw_int(h, 16);
  case 'r': return hw_int(h, 32);
  case 'l': return hw_int(h, 64);
  case 's': return (h & 3) ? hw_mix(h) % 70 : hw_int(h >> 2, 32);
  case 'e': return (h & 3) ? hw_mix(h) % 70 : h >> 2 & 255;
  case 'k': return h & 31;
  case 'n': return (uint32_t)(h % 21 - 10);
  case 'H': return hw_float(h, 5, 10);
  case 'B': return hw_float(h, 8, 7);
  case 'p': return hw_float(h, 5, 10) | hw_float(hw_mix(h + 1), 5, 10) << 16;
  case 'f': return hw_float(h, 8, 23);
  default: return hw_float(h, 11, 52);
  }
}

// b for a given a: often nearly a or -a, or such that the product is about the smallest normal number.
HW_FN uint64_t hw_second(char kind, uint64_t a, uint64_t h) {
  uint64_t near = h >> 20, off = (near >> 8) % 5 - 2, negate = near >> 23 & 1;
  HwFloat f;
  HwDouble d;
  if (near % 5 == 0) {
    if (kind == 'H' || kind == 'B') return (a + off + (negate << 15)) & 0xffff;
    if (kind == 'f') return (a + off + (negate << 31)) & 0xffffffff;
    if (kind == 'd') return a + off + (negate << 63);
  }
  if (near % 5 == 1 && kind == 'f') {
    f.u = (uint32_t)a;
    f.f = 0x1p-126f / f.f;
    if (f.f == f.f) return (f.u + off) & 0xffffffff;
  }
  if (near % 5 == 1 && kind == 'd') {
    d.u = a;
    d.f = 0x1p-1022 / d.f;
    if (d.f == d.f) return d.u + off;
  }
  return hw_plain(kind, h);
}

// c for a given a and b: often nearly -a*b.
HW_FN uint64_t hw_third(char kind, uint64_t a, uint64_t b, uint64_t h) {
  uint64_t near = h >> 20, off = (near >> 8) % 5 - 2;
  HwFloat f, g;
  HwDouble d, e;
  if (near % 3 == 0 && kind == 'f') {
    f.u = (uint32_t)a, g.u = (uint32_t)b;
    f.f = f.f * g.f;
    if (f.f == f.f) return ((f.u ^ 0x80000000u) + off) & 0xffffffff;
  }
  if (near % 3 == 0 && kind == 'd') {
    d.u = a, e.u = b;
    d.f = d.f * e.f;
    if (d.f == d.f) return (d.u ^ 1ull << 63) + off;
  }
  return hw_plain(kind, h);
}

// Operand j of input i: the same bits on every machine.
HW_FN uint64_t hw_input(char kind, uint32_t i, int j) {
  uint64_t base = ((uint64_t)i << 8) + 77, h = hw_mix(base + (uint64_t)j * 0x10001);
  uint64_t a = hw_plain(kind, hw_mix(base));
  if (j == 0) return a;
  if (j == 1) return hw_second(kind, a, h);
  return hw_third(kind, a, hw_second(kind, a, hw_mix(base + 0x10001)), h);
}

static uint32_t hw_hash(uint32_t hash, uint64_t value) {
  for (int i = 0; i < 8; i++, value >>= 8) hash = (hash ^ (uint32_t)(value & 255)) * 16777619u;
  return hash;
}

// clang-format off
#define TYPE_h uint16_t
#define TYPE_r uint32_t
#define TYPE_l uint64_t
#define TYPE_s uint32_t
#define TYPE_e uint32_t
#define TYPE_k uint32_t
#define TYPE_n uint32_t
#define TYPE_p uint32_t
#define TYPE_H uint16_t
#define TYPE_B uint16_t
// clang-format on

#ifdef __CUDACC__ // On the GPU: run the PTX, print the hashes. With a file name, the results go there too.

// clang-format off
#define TYPE_f uint32_t
#define TYPE_d uint64_t
#define REG_h "h"
#define REG_r "r"
#define REG_l "l"
#define REG_s "r"
#define REG_e "r"
#define REG_k "r"
#define REG_n "r"
#define REG_p "r"
#define REG_f "r"
#define REG_d "l"
#define REG_H "h"
#define REG_B "h"
#define IN(k, j) REG_##k((TYPE_##k)hw_input(#k[0], i, j))
#define KERNEL(name, o, ptx, ...) __global__ void run_##name(uint64_t *out) { \
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; TYPE_##o r; asm volatile(ptx : "=" REG_##o(r) : __VA_ARGS__); out[i] = r; }
#define HW1X(name, o, x, ptx, expr) KERNEL(name, o, ptx, IN(x, 0))
#define HW2X(name, o, x, y, ptx, expr) KERNEL(name, o, ptx, IN(x, 0), IN(y, 1))
#define HW3X(name, o, x, y, z, ptx, expr) KERNEL(name, o, ptx, IN(x, 0), IN(y, 1), IN(z, 2))
#define HW4X(name, o, x, y, z, w, ptx, expr) KERNEL(name, o, ptx, IN(x, 0), IN(y, 1), IN(z, 2), IN(w, 3))
#define HW1(name, o, x, ptx, expr) HW1X(name, o, x, ptx " %0, %1;", expr)
#define HW2(name, o, x, y, ptx, expr) HW2X(name, o, x, y, ptx " %0, %1, %2;", expr)
#define HW3(name, o, x, y, z, ptx, expr) HW3X(name, o, x, y, z, ptx " %0, %1, %2, %3;", expr)
#define HW4(name, o, x, y, z, w, ptx, expr) HW4X(name, o, x, y, z, w, ptx " %0, %1, %2, %3, %4;", expr)
#include "num_hw.def"
#undef HW1X
#undef HW2X
#undef HW3X
#undef HW4X
#define HW1X(name, ...) {#name, run_##name},
#define HW2X HW1X
#define HW3X HW1X
#define HW4X HW1X
static const struct { const char *name; void (*run)(uint64_t *); } rows[] = {
#include "num_hw.def"
};
// clang-format on

int main(int argc, char **argv) {
  static uint64_t results[HW_INPUTS];
  uint64_t *out;
  FILE *raw = argc > 1 ? fopen(argv[1], "wb") : NULL;
  cudaDeviceProp device;
  if (cudaGetDeviceProperties(&device, 0) || cudaMalloc(&out, sizeof results)) return 1;
  printf("// Results of the instructions in num_hw.def on an %s, hashed; made by test_num_hw.c.\n// "
         "clang-format off\n",
         device.name);
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
    // cppcheck-suppress shiftTooManyBits; it reads the launch as two shifts
    rows[r].run<<<HW_INPUTS / 256, 256>>>(out);
    if (cudaMemcpy(results, out, sizeof results, cudaMemcpyDefault))
      return printf("%s failed\n", rows[r].name), 1;
    uint32_t hash = 2166136261u;
    for (int i = 0; i < HW_INPUTS; i++) hash = hw_hash(hash, results[i]);
    printf("HASH(%s, 0x%08x)%s", rows[r].name, hash, r % 3 == 2 ? "\n" : " ");
    if (raw) fwrite(results, sizeof results, 1, raw);
  }
  printf("\n// clang-format on\n");
  return raw ? fclose(raw) : 0;
}

#else // Here: evaluate the expressions, compare the hashes.

#include "check.h"
#include "emu/isa/num_cvt.h"

// clang-format off
#define TYPE_f float
#define TYPE_d double
#define SIGNED_h int16_t
#define SIGNED_r int32_t
#define SIGNED_l int64_t
#define SIGNED_s int32_t
#define SIGNED_e int32_t
#define SIGNED_k int32_t
#define SIGNED_n int32_t
#define SIGNED_p int32_t
#define SIGNED_f int32_t
#define SIGNED_d int64_t
#define SIGNED_H int16_t
#define SIGNED_B int16_t
// clang-format on

static uint64_t same(uint64_t x) {
  return x;
}
static uint64_t float_bits(float x) {
  return num_bits_f32(x);
}
// Floats by their bits, integers extended by their sign.
#define AS_BITS(r)                                                                                           \
  _Generic((r), float                                                                                        \
           : float_bits, double                                                                              \
           : num_bits_f64, default                                                                           \
           : same)(_Generic((r), float                                                                       \
                            : (r), double                                                                    \
                            : (r), default                                                                   \
                            : (uint64_t)(r)))

// A variable v of the operand's type, and sv, the same bits as a signed integer.
#define OPERAND(k, j, v)                                                                                     \
  TYPE_##k v;                                                                                                \
  SIGNED_##k s##v;                                                                                           \
  memcpy(&v, &in[j], sizeof v);                                                                              \
  memcpy(&s##v, &in[j], sizeof s##v);                                                                        \
  (void)v, (void)s##v;
#define FUNCTION(name, o, operands, expr)                                                                    \
  static uint64_t run_##name(const uint64_t in[4]) {                                                         \
    uint32_t cf = 0; /* the carry, for those that have one */                                                \
    (void)cf;                                                                                                \
    operands __typeof__(expr) result = expr;                                                                 \
    return (TYPE_##o)AS_BITS(result);                                                                        \
  }
// clang-format off
#define HW1(name, o, x, ptx, expr) FUNCTION(name, o, OPERAND(x, 0, a), expr)
#define HW2(name, o, x, y, ptx, expr) FUNCTION(name, o, OPERAND(x, 0, a) OPERAND(y, 1, b), expr)
#define HW3(name, o, x, y, z, ptx, expr) FUNCTION(name, o, OPERAND(x, 0, a) OPERAND(y, 1, b) OPERAND(z, 2, c), expr)
#define HW4(name, o, x, y, z, w, ptx, expr) FUNCTION(name, o, OPERAND(x, 0, a) OPERAND(y, 1, b) OPERAND(z, 2, c) OPERAND(w, 3, d), expr)
#define HW1X HW1
#define HW2X HW2
#define HW3X HW3
#include "num_hw.def"
#undef HW1
#undef HW2
#undef HW3
#undef HW4
#define HW1(name, o, x, ptx, expr) {#name, #x, run_##name},
#define HW2(name, o, x, y, ptx, expr) {#name, #x #y, run_##name},
#define HW3(name, o, x, y, z, ptx, expr) {#name, #x #y #z, run_##name},
#define HW4(name, o, x, y, z, w, ptx, expr) {#name, #x #y #z #w, run_##name},
static const struct Row { const char *name, *kinds; uint64_t (*run)(const uint64_t in[4]); } rows[] = {
#include "num_hw.def"
};
#define HASH(name, hash) {#name, hash},
static const struct Measured { const char *name; uint32_t hash; } measured[] = {
#include "num_hw_h200.def"
};
// clang-format on
enum { ROWS = sizeof rows / sizeof rows[0], MEASURED = sizeof measured / sizeof measured[0] };

static const struct Measured *find_measured(const char *name) {
  for (int i = 0; i < MEASURED; i++)
    if (!strcmp(measured[i].name, name)) return &measured[i];
  return NULL;
}

TEST(as_on_an_h200) {
  for (int r = 0; r < ROWS; r++) {
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < HW_INPUTS; i++) {
      uint64_t in[4] = {0};
      for (int j = 0; rows[r].kinds[j]; j++) in[j] = hw_input(rows[r].kinds[j], i, j);
      hash = hw_hash(hash, rows[r].run(in));
    }
    const struct Measured *want = find_measured(rows[r].name);
    if (!CHECK_MSG(want, "%s was not measured", rows[r].name)) continue;
    CHECK_MSG(hash == want->hash, "%s differs from the GPU", rows[r].name);
  }
}

TEST(all_that_was_measured_is_checked) {
  CHECK_INT(MEASURED, ROWS);
}

CHECK_MAIN
#endif
