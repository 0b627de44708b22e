// Vectors: axpy, scal, copy, swap, rot, and the functions that return one number.
#include <math.h>

#include "blas/blas.h"

typedef enum Level1 { AXPY, SCAL, COPY, SWAP, ROT, DOT, DOTC, NRM2, ASUM, AMAX, AMIN } Level1;

// ---- element by element ----

static bool run_elements(const BlasCall *c, BlasView *v) {
  BlasNumber s = c->beta.value;
  for (int64_t i = 0; i < c->n; i++) {
    BlasNumber x = blas_get(&v[0], i, 0), y = c->count > 1 ? blas_get(&v[1], i, 0) : 0;
    switch (c->extra) {
    case AXPY: blas_put(&v[1], i, 0, c->alpha.value * x + y); break;
    case SCAL: blas_put(&v[0], i, 0, c->alpha.value * x); break;
    case COPY: blas_put(&v[1], i, 0, x); break;
    case SWAP: blas_put(&v[0], i, 0, y), blas_put(&v[1], i, 0, x); break;
    default: // ROT: c in alpha, s in beta
      blas_put(&v[0], i, 0, c->alpha.value * x + s * y);
      blas_put(&v[1], i, 0, c->alpha.value * y - conj(s) * x);
    }
  }
  return true;
}

static BlasCall call_of(const char *name, Level1 what, int64_t n, BlasOperand x) {
  static const double flops[] = {
      [AXPY] = 2, [SCAL] = 1, [ROT] = 6, [DOT] = 2, [DOTC] = 2, [NRM2] = 2, [ASUM] = 1, [AMIN] = 0};
  BlasCall c = {.name = name, .run = run_elements, .operands = {x}, .count = 1, .n = n, .extra = (int)what};
  c.flops = flops[what] * (double)n * (blas_is_complex(x.type) ? 4 : 1);
  c.dtype = blas_roof(x.type, false);
  return c;
}

static int elements(const BlasHandle *h, BlasCall *c, BlasOperand y) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (c->n <= 0) return BLAS_OK;
  if (!blas_bytes(c->operands[0].type) || (y.at && !blas_bytes(y.type))) return BLAS_NOT_SUPPORTED;
  if (y.at) c->operands[c->count++] = y;
  c->operands[0].wrote = c->extra == SCAL || c->extra == SWAP || c->extra == ROT;
  c->operands[1].wrote = y.at != NULL;
  c->operands[1].unread = c->extra == COPY;
  return blas_run(h, c);
}

static int with_alpha(const BlasHandle *h, BlasCall c, const void *alpha, int type, BlasOperand y) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (!alpha) return BLAS_BAD_VALUE;
  c.alpha = blas_scalar(h, alpha, type);
  return elements(h, &c, y);
}

static const BlasOperand none;

#define ELEMENTS(L, T, I, S)                                                                                 \
  BLAS_API int cublas##L##axpy_v2##S(const BlasHandle *h, I n, const void *alpha, const void *x, I incx,     \
                                     void *y, I incy) {                                                      \
    return with_alpha(h, call_of("cublas" #L "axpy", AXPY, n, blas_vector(x, T, n, incx)), alpha, T,         \
                      blas_vector(y, T, n, incy));                                                           \
  }                                                                                                          \
  BLAS_API int cublas##L##scal_v2##S(const BlasHandle *h, I n, const void *alpha, void *x, I incx) {         \
    return with_alpha(h, call_of("cublas" #L "scal", SCAL, n, blas_vector(x, T, n, incx)), alpha, T, none);  \
  }                                                                                                          \
  BLAS_API int cublas##L##copy_v2##S(const BlasHandle *h, I n, const void *x, I incx, void *y, I incy) {     \
    BlasCall c = call_of("cublas" #L "copy", COPY, n, blas_vector(x, T, n, incx));                           \
    return elements(h, &c, blas_vector(y, T, n, incy));                                                      \
  }                                                                                                          \
  BLAS_API int cublas##L##swap_v2##S(const BlasHandle *h, I n, void *x, I incx, void *y, I incy) {           \
    BlasCall c = call_of("cublas" #L "swap", SWAP, n, blas_vector(x, T, n, incx));                           \
    return elements(h, &c, blas_vector(y, T, n, incy));                                                      \
  }
BLAS_ALL(ELEMENTS)

// Complex vectors and real factors.
#define REAL_SCAL(name, T, R, I, S)                                                                          \
  BLAS_API int name##_v2##S(const BlasHandle *h, I n, const void *alpha, void *x, I incx) {                  \
    return with_alpha(h, call_of(#name, SCAL, n, blas_vector(x, T, n, incx)), alpha, R, none);               \
  }
REAL_SCAL(cublasCsscal, BLAS_C32F, BLAS_R32F, int, )
REAL_SCAL(cublasCsscal, BLAS_C32F, BLAS_R32F, int64_t, _64)
REAL_SCAL(cublasZdscal, BLAS_C64F, BLAS_R64F, int, )
REAL_SCAL(cublasZdscal, BLAS_C64F, BLAS_R64F, int64_t, _64)

#define ROTATION(name, T, R, ST, I, S)                                                                       \
  BLAS_API int name##_v2##S(const BlasHandle *h, I n, void *x, I incx, void *y, I incy, const void *cosine,  \
                            const void *sine) {                                                              \
    if (!blas_is_handle(h)) return BLAS_NO_HANDLE;                                                           \
    if (!cosine || !sine) return BLAS_BAD_VALUE;                                                             \
    BlasCall c = call_of(#name, ROT, n, blas_vector(x, T, n, incx));                                         \
    c.beta = blas_scalar(h, sine, ST);                                                                       \
    return with_alpha(h, c, cosine, R, blas_vector(y, T, n, incy));                                          \
  }
#define ROTATIONS(name, T, R, ST) ROTATION(name, T, R, ST, int, ) ROTATION(name, T, R, ST, int64_t, _64)
ROTATIONS(cublasSrot, BLAS_R32F, BLAS_R32F, BLAS_R32F)
ROTATIONS(cublasDrot, BLAS_R64F, BLAS_R64F, BLAS_R64F)
ROTATIONS(cublasCrot, BLAS_C32F, BLAS_R32F, BLAS_C32F)
ROTATIONS(cublasCsrot, BLAS_C32F, BLAS_R32F, BLAS_R32F)
ROTATIONS(cublasZrot, BLAS_C64F, BLAS_R64F, BLAS_C64F)
ROTATIONS(cublasZdrot, BLAS_C64F, BLAS_R64F, BLAS_R64F)

// ---- one number ----

static double magnitude(BlasNumber x) { // as BLAS has it
  return fabs(creal(x)) + fabs(cimag(x));
}

static BlasNumber reduced(const BlasCall *c, const BlasView *v) {
  BlasNumber sum = 0;
  double best = 0;
  int64_t at = 0;
  for (int64_t i = 0; i < c->n; i++) {
    BlasNumber x = blas_get(&v[0], i, 0), y = c->count > 1 ? blas_get(&v[1], i, 0) : 0;
    double size = magnitude(x);
    switch (c->extra) {
    case DOT: sum += x * y; break;
    case DOTC: sum += conj(x) * y; break;
    case NRM2: sum += creal(x) * creal(x) + cimag(x) * cimag(x); break;
    case ASUM: sum += size; break;
    default:
      if (at && !(c->extra == AMAX ? size > best : size < best)) break;
      best = size, at = i + 1;
    }
  }
  return c->extra == NRM2 ? sqrt(creal(sum)) : c->extra >= AMAX ? (double)at : sum;
}

enum { INDEX64 = -1 }; // a type of results

static bool run_reduction(const BlasCall *c, BlasView *v) {
  BlasNumber r = reduced(c, v);
  size_t bytes = c->result_type == INDEX64 ? 8 : blas_bytes(c->result_type);
  void *to = __cudaSolLibraryEither(c->result, bytes);
  if (!to) return false;
  if (c->result_type == INDEX64)
    *(int64_t *)to = (int64_t)creal(r);
  else
    blas_put(&(BlasView){.at = to, .type = c->result_type}, 0, 0, r);
  return true;
}

static int reduction(const BlasHandle *h, BlasCall c, BlasOperand y, void *result, int result_type) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (!result) return BLAS_BAD_VALUE;
  if (!blas_bytes(c.operands[0].type) || (y.at && !blas_bytes(y.type))) return BLAS_NOT_SUPPORTED;
  c.run = run_reduction;
  c.result = result;
  c.result_type = result_type;
  if (c.n < 0 || (c.extra >= NRM2 && c.operands[0].step < 1)) c.n = 0;
  if (y.at) c.operands[c.count++] = y;
  for (int i = 0; i < c.count; i++) c.operands[i].rows = c.n;
  return blas_run(h, &c);
}

#define DOT_OF(name, what, T, I, S)                                                                          \
  BLAS_API int name##_v2##S(const BlasHandle *h, I n, const void *x, I incx, const void *y, I incy,          \
                            void *result) {                                                                  \
    return reduction(h, call_of(#name, what, n, blas_vector(x, T, n, incx)), blas_vector(y, T, n, incy),     \
                     result, T);                                                                             \
  }
#define DOTS(name, what, T) DOT_OF(name, what, T, int, ) DOT_OF(name, what, T, int64_t, _64)
DOTS(cublasSdot, DOT, BLAS_R32F)
DOTS(cublasDdot, DOT, BLAS_R64F)
DOTS(cublasCdotu, DOT, BLAS_C32F)
DOTS(cublasCdotc, DOTC, BLAS_C32F)
DOTS(cublasZdotu, DOT, BLAS_C64F)
DOTS(cublasZdotc, DOTC, BLAS_C64F)

#define ONE_OF(name, what, T, R, I, S)                                                                       \
  BLAS_API int name##_v2##S(const BlasHandle *h, I n, const void *x, I incx, void *result) {                 \
    return reduction(h, call_of(#name, what, n, blas_vector(x, T, n, incx)), none, result, R);               \
  }
#define ONES(name, what, T, R) ONE_OF(name, what, T, R, int, ) ONE_OF(name, what, T, R, int64_t, _64)
#define INDICES(name, what, T)                                                                               \
  ONE_OF(name, what, T, BLAS_R32I, int, ) ONE_OF(name, what, T, INDEX64, int64_t, _64)
#define SIZES_OF(nrm2, asum, T, R) ONES(nrm2, NRM2, T, R) ONES(asum, ASUM, T, R)
SIZES_OF(cublasSnrm2, cublasSasum, BLAS_R32F, BLAS_R32F)
SIZES_OF(cublasDnrm2, cublasDasum, BLAS_R64F, BLAS_R64F)
SIZES_OF(cublasScnrm2, cublasScasum, BLAS_C32F, BLAS_R32F)
SIZES_OF(cublasDznrm2, cublasDzasum, BLAS_C64F, BLAS_R64F)
INDICES(cublasIsamax, AMAX, BLAS_R32F)
INDICES(cublasIdamax, AMAX, BLAS_R64F)
INDICES(cublasIcamax, AMAX, BLAS_C32F)
INDICES(cublasIzamax, AMAX, BLAS_C64F)
INDICES(cublasIsamin, AMIN, BLAS_R32F)
INDICES(cublasIdamin, AMIN, BLAS_R64F)
INDICES(cublasIcamin, AMIN, BLAS_C32F)
INDICES(cublasIzamin, AMIN, BLAS_C64F)

// ---- with types of their own ----

#define TYPED(I, S)                                                                                          \
  BLAS_API int cublasAxpyEx##S(const BlasHandle *h, I n, const void *alpha, int alpha_type, const void *x,   \
                               int x_type, I incx, void *y, int y_type, I incy, int in) {                    \
    (void)in;                                                                                                \
    return with_alpha(h, call_of("cublasAxpyEx", AXPY, n, blas_vector(x, x_type, n, incx)), alpha,           \
                      alpha_type, blas_vector(y, y_type, n, incy));                                          \
  }                                                                                                          \
  BLAS_API int cublasScalEx##S(const BlasHandle *h, I n, const void *alpha, int alpha_type, void *x,         \
                               int x_type, I incx, int in) {                                                 \
    (void)in;                                                                                                \
    return with_alpha(h, call_of("cublasScalEx", SCAL, n, blas_vector(x, x_type, n, incx)), alpha,           \
                      alpha_type, none);                                                                     \
  }                                                                                                          \
  BLAS_API int cublasDotEx##S(const BlasHandle *h, I n, const void *x, int x_type, I incx, const void *y,    \
                              int y_type, I incy, void *result, int type, int in) {                          \
    (void)in;                                                                                                \
    return reduction(h, call_of("cublasDotEx", DOT, n, blas_vector(x, x_type, n, incx)),                     \
                     blas_vector(y, y_type, n, incy), result, type);                                         \
  }                                                                                                          \
  BLAS_API int cublasDotcEx##S(const BlasHandle *h, I n, const void *x, int x_type, I incx, const void *y,   \
                               int y_type, I incy, void *result, int type, int in) {                         \
    (void)in;                                                                                                \
    return reduction(h, call_of("cublasDotcEx", DOTC, n, blas_vector(x, x_type, n, incx)),                   \
                     blas_vector(y, y_type, n, incy), result, type);                                         \
  }                                                                                                          \
  BLAS_API int cublasNrm2Ex##S(const BlasHandle *h, I n, const void *x, int x_type, I incx, void *result,    \
                               int type, int in) {                                                           \
    (void)in;                                                                                                \
    return reduction(h, call_of("cublasNrm2Ex", NRM2, n, blas_vector(x, x_type, n, incx)), none, result,     \
                     type);                                                                                  \
  }                                                                                                          \
  BLAS_API int cublasAsumEx##S(const BlasHandle *h, I n, const void *x, int x_type, I incx, void *result,    \
                               int type, int in) {                                                           \
    (void)in;                                                                                                \
    return reduction(h, call_of("cublasAsumEx", ASUM, n, blas_vector(x, x_type, n, incx)), none, result,     \
                     type);                                                                                  \
  }                                                                                                          \
  BLAS_API int cublasCopyEx##S(const BlasHandle *h, I n, const void *x, int x_type, I incx, void *y,         \
                               int y_type, I incy) {                                                         \
    BlasCall c = call_of("cublasCopyEx", COPY, n, blas_vector(x, x_type, n, incx));                          \
    return elements(h, &c, blas_vector(y, y_type, n, incy));                                                 \
  }                                                                                                          \
  BLAS_API int cublasSwapEx##S(const BlasHandle *h, I n, void *x, int x_type, I incx, void *y, int y_type,   \
                               I incy) {                                                                     \
    BlasCall c = call_of("cublasSwapEx", SWAP, n, blas_vector(x, x_type, n, incx));                          \
    return elements(h, &c, blas_vector(y, y_type, n, incy));                                                 \
  }                                                                                                          \
  BLAS_API int cublasRotEx##S(const BlasHandle *h, I n, void *x, int x_type, I incx, void *y, int y_type,    \
                              I incy, const void *cosine, const void *sine, int type, int in) {              \
    (void)in;                                                                                                \
    if (!blas_is_handle(h)) return BLAS_NO_HANDLE;                                                           \
    if (!cosine || !sine) return BLAS_BAD_VALUE;                                                             \
    if (!blas_bytes(type)) return BLAS_NOT_SUPPORTED;                                                        \
    BlasCall c = call_of("cublasRotEx", ROT, n, blas_vector(x, x_type, n, incx));                            \
    c.beta = blas_scalar(h, sine, type);                                                                     \
    return with_alpha(h, c, cosine, type, blas_vector(y, y_type, n, incy));                                  \
  }
TYPED(int, )
TYPED(int64_t, _64)

#define TYPED_INDEX(name, what, R, I, S)                                                                     \
  BLAS_API int name##S(const BlasHandle *h, I n, const void *x, int type, I incx, void *result) {            \
    return reduction(h, call_of(#name, what, n, blas_vector(x, type, n, incx)), none, result, R);            \
  }
TYPED_INDEX(cublasIamaxEx, AMAX, BLAS_R32I, int, )
TYPED_INDEX(cublasIamaxEx, AMAX, INDEX64, int64_t, _64)
TYPED_INDEX(cublasIaminEx, AMIN, BLAS_R32I, int, )
TYPED_INDEX(cublasIaminEx, AMIN, INDEX64, int64_t, _64)
