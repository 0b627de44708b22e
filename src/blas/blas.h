// A stand-in for cuBLAS and cuBLASLt that computes on the host, on the emulated device's memory. One library under both
// names; NVIDIA's headers are not needed: handles are pointers, enums are ints, types have the numbers of cudaDataType.
//
// An entry point checks its arguments as cuBLAS does, describes them as a BlasCall, and blas_run() executes that in
// stream order. Products accumulate in the type that the call names (blas_product.c); everything else is computed in
// double and rounded once.
#ifndef SOL_BLAS_BLAS_H
#define SOL_BLAS_BLAS_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/shim_library.h"

#define BLAS_API __attribute__((visibility("default")))

enum {
  BLAS_OK = 0,
  BLAS_NO_HANDLE = 1,
  BLAS_NO_ROOM = 3,
  BLAS_BAD_VALUE = 7,
  BLAS_FAILED = 13,
  BLAS_NOT_SUPPORTED = 15
};

typedef enum BlasType { // cudaDataType
  BLAS_R32F = 0,
  BLAS_R64F = 1,
  BLAS_R16F = 2,
  BLAS_R8I = 3,
  BLAS_C32F = 4,
  BLAS_C64F = 5,
  BLAS_R32I = 10,
  BLAS_R16BF = 14,
  BLAS_E4M3 = 28,
  BLAS_E5M2 = 29
} BlasType;
size_t blas_bytes(int type); // of an element; 0: none of these

typedef double _Complex BlasNumber;

typedef struct BlasHandle {
  uint64_t mark; // that it is one
  void *stream;
  int math, pointers, atomics, sms;
  int tile, pins; // of cublasXt
  const char
      *billed; // of cublasXt, whose matrices may be the host's: under which name; NULL: the function's own
} BlasHandle;
bool blas_is_handle(const BlasHandle *handle);
int blas_create(BlasHandle **handle);
int blas_destroy(BlasHandle *handle);

// ---- memory as matrices ----

typedef enum BlasShape {
  BLAS_FULL,
  BLAS_SYMMETRIC, // one triangle is stored
  BLAS_HERMITIAN,
  BLAS_TRIANGULAR, // the rest is 0
  BLAS_UNIT        // the same with a diagonal of ones, which is not stored
} BlasShape;

typedef struct BlasView { // element (i, j) is at[i * down + j * right], in elements
  unsigned char *at;
  int type;
  int64_t down, right;
  bool conjugate;
  BlasShape shape;
  bool upper; // the stored triangle, as op(A) has it
} BlasView;
BlasNumber blas_get(const BlasView *view, int64_t i, int64_t j);
void blas_put(const BlasView *view, int64_t i, int64_t j, BlasNumber value);
// A copy in double, by columns, whose memory the caller frees; at: NULL: out of memory.
BlasView blas_copy_of(const BlasView *view, int64_t m, int64_t n);
void blas_copy_to(const BlasView *from, const BlasView *to, int64_t m, int64_t n);

// A X = alpha B in place, where A is triangular, with or without a diagonal of ones (blas_level3.c).
void blas_solve(const BlasView *a, const BlasView *b, int64_t m, int64_t n, BlasNumber alpha);

// ---- LU factors (blas_factor.c) ----

void blas_swap_rows(const BlasView *view, int64_t i, int64_t k, int64_t columns);
// P A = L U in place; no rows are exchanged without an array of pivots, which count from 1. The number of the first zero
// on the diagonal, from 1; 0: none.
int blas_factor(const BlasView *view, int64_t n, int32_t *pivots);

// C = alpha A B + beta C, for all of C or one triangle.
typedef enum BlasCompute {
  BLAS_HALF,
  BLAS_FLOAT,
  BLAS_DOUBLE,
  BLAS_CFLOAT,
  BLAS_CDOUBLE,
  BLAS_INT
} BlasCompute;
typedef enum BlasPart { BLAS_WHOLE, BLAS_UPPER, BLAS_LOWER } BlasPart;
typedef struct BlasProduct {
  BlasView a, b, c, d; // c is read, d is written
  int64_t m, n, k;
  BlasNumber alpha, beta;
  BlasCompute compute;
  BlasPart part;
  bool real_diagonal;
  const BlasView *bias; // a column, added to each; NULL: none
  int activation;       // 0: none, 1: ReLU, 2: GELU
} BlasProduct;
bool blas_product(const BlasProduct *product); // false: out of memory

// ---- calls ----

typedef struct BlasScalar { // of the host, read when the call is made; or of the device
  const void *device;
  int type;
  BlasNumber value;
} BlasScalar;

typedef struct
    BlasOperand { // a matrix as it is stored, by columns; a vector: one column, `step` elements apart
  const void *at;
  int type;
  int64_t rows, columns, lead;
  int64_t step;       // of a vector, may be negative; 0: a matrix
  int64_t batch;      // elements from one matrix to the next
  bool list;          // `at` is an array of pointers on the device
  bool wrote, unread; // by this call
  bool scaled;        // by beta: not read where that is 0
} BlasOperand;

typedef struct BlasCall BlasCall;
struct BlasCall {
  const char *name;
  bool (*run)(const BlasCall *call, BlasView *views); // of one matrix of the batch; false: out of memory
  BlasOperand operands[4];
  int count;
  int64_t m, n, k, batches;
  BlasScalar alpha, beta;
  int trans_a, trans_b, side, uplo, unit;
  BlasCompute compute;
  void *result; // of dot and others: of the host or the device
  int result_type;
  int extra;                 // which of a family of functions
  double modified[5];        // of rotm: its parameters, where they are the host's
  const void *bias;          // of cublasLt, on the device; NULL: none
  int bias_type, activation; // 1: ReLU, 2: GELU
  double flops;              // of one of the batch
  SolDtype dtype;
  bool tensor;
  bool anywhere; // matrices may be the host's
};
int blas_run(const BlasHandle *handle, const BlasCall *call);
BlasScalar blas_scalar(const BlasHandle *handle, const void *at, int type);
BlasOperand blas_matrix(const void *at, int type, int64_t rows, int64_t columns, int64_t lead);
BlasOperand blas_vector(const void *at, int type, int64_t n, int64_t step);
BlasView blas_op(BlasView view, int trans); // op(A): 0 A, 1 transposed, 2 conjugate transposed
static inline bool blas_is_complex(int type) {
  return type == BLAS_C32F || type == BLAS_C64F;
}
BlasCompute blas_compute_of(int type);   // that a call of this type has
SolDtype blas_roof(int type, bool tf32); // whose peak products of this type have
bool blas_bad_trans(int trans);
bool blas_run_product(const BlasCall *call, BlasView *views); // blas_gemm.c

// The functions of the four types, with 32-bit and with 64-bit sizes.
#define BLAS_SIZES(X, letter, type) X(letter, type, int, ) X(letter, type, int64_t, _64)
#define BLAS_REAL(X)                BLAS_SIZES(X, S, BLAS_R32F) BLAS_SIZES(X, D, BLAS_R64F)
#define BLAS_COMPLEX(X)             BLAS_SIZES(X, C, BLAS_C32F) BLAS_SIZES(X, Z, BLAS_C64F)
#define BLAS_ALL(X)                 BLAS_REAL(X) BLAS_COMPLEX(X)

#endif
