// Element types: how wide they are and what they are called.
#ifndef SOL_DTYPE_H
#define SOL_DTYPE_H

#include "sol/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum SolDtype {
  SOL_DTYPE_DEFAULT = 0, // in options: the documented default
  SOL_FP64,
  SOL_FP32,
  SOL_TF32, // stored in 32 bits, multiplied with 10 bits of mantissa
  SOL_FP16,
  SOL_BF16,
  SOL_FP8, // e4m3 or e5m2
  SOL_FP4, // e2m1; its block scales are not counted as elements
  SOL_INT8,
  SOL_INT32,
  SOL_INT64,
  SOL_DTYPE_COUNT
} SolDtype;

// Bits of one stored element; 0 for SOL_DTYPE_DEFAULT and values outside the enum.
SOL_API int sol_dtype_bits(SolDtype dtype);
// "bf16"; "?" for values outside the enum.
SOL_API const char *sol_dtype_name(SolDtype dtype);
// Takes the names above and the usual aliases (float, half, f32, e4m3 ...), any case.
SOL_API SolStatus sol_dtype_find(const char *name, SolDtype *out, SolError *err);

#ifdef __cplusplus
}
#endif
#endif
