// Matrix products, by the type that they accumulate in.
#include <math.h>
#include <stdlib.h>

#include "blas/blas.h"
#include "emu/isa/num_half.h"

static bool outside(const BlasProduct *p, int64_t i, int64_t j) {
  return (p->part == BLAS_UPPER && i > j) || (p->part == BLAS_LOWER && i < j);
}

// Scaling rounds as the type of the sum does.
static BlasNumber scaled(const BlasProduct *p, BlasNumber sum, BlasNumber before) {
  BlasNumber r = p->alpha * sum + (p->beta == 0 ? 0 : p->beta * before);
  if (p->compute == BLAS_FLOAT) return (double)(float)creal(r);
  if (p->compute == BLAS_CFLOAT) return CMPLX((double)(float)creal(r), (double)(float)cimag(r));
  return r;
}

static double gelu(double x) {
  return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static BlasNumber finished(const BlasProduct *p, int64_t i, BlasNumber r) {
  if (p->bias) r += blas_get(p->bias, i, 0);
  if (p->activation == 1) return creal(r) > 0 ? creal(r) : 0;
  return p->activation == 2 ? gelu(creal(r)) : r;
}

static void blas_finish(const BlasProduct *p, int64_t i, int64_t j, BlasNumber sum) {
  if (outside(p, i, j)) return;
  BlasNumber r = scaled(p, sum, p->beta == 0 ? 0 : blas_get(&p->c, i, j));
  if (p->bias || p->activation) r = finished(p, i, r);
  blas_put(&p->d, i, j, p->real_diagonal && i == j ? creal(r) : r);
}

#define SAME(x) (x)

#define T         float
#define PRODUCT   product_half
#define TO_T(x)   ((float)creal(x))
#define FROM_T(x) ((double)(x))
#define ROUND(x)  num_cvt_f32_f16(num_cvt_f16_f32(x, NUM_RN))
#include "blas/blas_product_of.def"

#define T         float
#define PRODUCT   product_float
#define TO_T(x)   ((float)creal(x))
#define FROM_T(x) ((double)(x))
#include "blas/blas_product_of.def"

#define T         double
#define PRODUCT   product_double
#define TO_T(x)   creal(x)
#define FROM_T(x) SAME(x)
#include "blas/blas_product_of.def"

#define T         float _Complex
#define PRODUCT   product_cfloat
#define TO_T(x)   ((float _Complex)(x))
#define FROM_T(x) CMPLX((double)crealf(x), (double)cimagf(x))
#include "blas/blas_product_of.def"

#define T         double _Complex
#define PRODUCT   product_cdouble
#define TO_T(x)   SAME(x)
#define FROM_T(x) SAME(x)
#include "blas/blas_product_of.def"

#define T         uint32_t // wraps as the machine's sum of products of bytes does
#define PRODUCT   product_int
#define TO_T(x)   ((uint32_t)(int32_t)creal(x))
#define FROM_T(x) ((double)(int32_t)(x))
#include "blas/blas_product_of.def"

bool blas_product(const BlasProduct *p) {
  switch (p->compute) {
  case BLAS_HALF: return product_half(p);
  case BLAS_FLOAT: return product_float(p);
  case BLAS_DOUBLE: return product_double(p);
  case BLAS_CFLOAT: return product_cfloat(p);
  case BLAS_CDOUBLE: return product_cdouble(p);
  default: return product_int(p);
  }
}
