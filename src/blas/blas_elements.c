// Elements of every type as numbers.
#include <stdlib.h>
#include <string.h>

#include "blas/blas.h"
#include "emu/isa/num_cvt.h"

size_t blas_bytes(int type) {
  switch (type) {
  case BLAS_R8I:
  case BLAS_E4M3:
  case BLAS_E5M2: return 1;
  case BLAS_R16F:
  case BLAS_R16BF: return 2;
  case BLAS_R32F:
  case BLAS_R32I: return 4;
  case BLAS_R64F:
  case BLAS_C32F: return 8;
  case BLAS_C64F: return 16;
  default: return 0;
  }
}

static BlasNumber load(int type, const unsigned char *at) {
  union {
    float f[2];
    double d[2];
    uint16_t h;
    int32_t i;
    int8_t b;
  } v;
  memcpy(&v, at, blas_bytes(type));
  switch (type) {
  case BLAS_R32F: return (double)v.f[0];
  case BLAS_R64F: return v.d[0];
  case BLAS_C32F: return CMPLX((double)v.f[0], (double)v.f[1]);
  case BLAS_C64F: return CMPLX(v.d[0], v.d[1]);
  case BLAS_R16F: return (double)num_cvt_f32_f16(v.h);
  case BLAS_R16BF: return (double)num_cvt_f32_bf16(v.h);
  case BLAS_R32I: return (double)v.i;
  case BLAS_R8I: return (double)v.b;
  case BLAS_E4M3: return (double)num_cvt_f32_small((uint8_t)v.b, NUM_E4M3);
  default: return (double)num_cvt_f32_small((uint8_t)v.b, NUM_E5M2);
  }
}

static double clamp(double x, double least, double most) {
  return x < least ? least : x > most ? most : x;
}

static void store(int type, unsigned char *at, BlasNumber value) {
  union {
    float f[2];
    double d[2];
    uint16_t h;
    int32_t i;
    int8_t b;
    uint8_t u;
  } v = {{0}};
  double x = creal(value), y = cimag(value);
  switch (type) {
  case BLAS_C32F: v.f[1] = (float)y; // fall through
  case BLAS_R32F: v.f[0] = (float)x; break;
  case BLAS_C64F: v.d[1] = y; // fall through
  case BLAS_R64F: v.d[0] = x; break;
  case BLAS_R16F: v.h = num_cvt_f16_f64(x, NUM_RN); break;
  case BLAS_R16BF: v.h = num_cvt_bf16_f64(x, NUM_RN); break;
  case BLAS_R32I: v.i = (int32_t)clamp(x, INT32_MIN, INT32_MAX); break;
  case BLAS_R8I: v.b = (int8_t)clamp(x, INT8_MIN, INT8_MAX); break;
  case BLAS_E4M3: v.u = (uint8_t)num_cvt_small_f32((float)x, NUM_E4M3, false); break;
  default: v.u = (uint8_t)num_cvt_small_f32((float)x, NUM_E5M2, false); break;
  }
  memcpy(at, &v, blas_bytes(type));
}

static unsigned char *place(const BlasView *v, int64_t i, int64_t j) {
  return v->at + (i * v->down + j * v->right) * (int64_t)blas_bytes(v->type);
}

BlasNumber blas_get(const BlasView *v, int64_t i, int64_t j) {
  bool mirrored = v->shape != BLAS_FULL && i != j && (i < j) != v->upper;
  if (v->shape == BLAS_UNIT && i == j) return 1;
  if (mirrored && (v->shape == BLAS_TRIANGULAR || v->shape == BLAS_UNIT)) return 0;
  BlasNumber x = mirrored ? load(v->type, place(v, j, i)) : load(v->type, place(v, i, j));
  if (v->shape == BLAS_HERMITIAN) return i == j ? creal(x) : mirrored != v->conjugate ? conj(x) : x;
  return v->conjugate ? conj(x) : x;
}

void blas_put(const BlasView *v, int64_t i, int64_t j, BlasNumber value) {
  store(v->type, place(v, i, j), value);
}

void blas_copy_to(const BlasView *from, const BlasView *to, int64_t m, int64_t n) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < m; i++) blas_put(to, i, j, blas_get(from, i, j));
}

BlasView blas_copy_of(const BlasView *v, int64_t m, int64_t n) {
  BlasView copy = {.type = BLAS_C64F, .down = 1, .right = m};
  copy.at = malloc((size_t)(m * n) * blas_bytes(BLAS_C64F));
  if (copy.at) blas_copy_to(v, &copy, m, n);
  return copy;
}
