#include "sol/dtype.h"
#include "base/error.h"
#include "base/text.h"

typedef struct Dtype {
  const char *name, *aliases;
  int bits;
} Dtype;

static const Dtype dtypes[SOL_DTYPE_COUNT] = {
    [SOL_DTYPE_DEFAULT] = {"default", "", 0},
    [SOL_FP64] = {"fp64", "f64 double float64", 64},
    [SOL_FP32] = {"fp32", "f32 float float32 single", 32},
    [SOL_TF32] = {"tf32", "", 32},
    [SOL_FP16] = {"fp16", "f16 half float16", 16},
    [SOL_BF16] = {"bf16", "bfloat16", 16},
    [SOL_FP8] = {"fp8", "f8 e4m3 e5m2 float8 fp8_e4m3 fp8_e5m2", 8},
    [SOL_FP4] = {"fp4", "f4 e2m1 nvfp4 mxfp4", 4},
    [SOL_INT8] = {"int8", "i8 s8 u8 uint8", 8},
    [SOL_INT32] = {"int32", "i32 s32 u32 int uint32", 32},
    [SOL_INT64] = {"int64", "i64 s64 u64 long uint64", 64},
};

static bool in_enum(SolDtype dtype) {
  return (unsigned)dtype < SOL_DTYPE_COUNT;
}

int sol_dtype_bits(SolDtype dtype) {
  return in_enum(dtype) ? dtypes[dtype].bits : 0;
}

const char *sol_dtype_name(SolDtype dtype) {
  return in_enum(dtype) ? dtypes[dtype].name : "?";
}

static const char *name_at(const void *ctx, int i) {
  (void)ctx;
  return dtypes[i + 1].name;
}

SolStatus sol_dtype_find(const char *name, SolDtype *out, SolError *err) {
  if (!name || !out) return sol_fail(err, SOL_ERR_ARGUMENT, "name and out must not be NULL");
  for (int i = 1; i < SOL_DTYPE_COUNT; i++) {
    if (!sol_same_name(name, dtypes[i].name) && !sol_name_in_list(name, dtypes[i].aliases)) continue;
    *out = (SolDtype)i;
    return SOL_OK;
  }
  return sol_fail_unknown(err, "dtype", name, name_at, 0, SOL_DTYPE_COUNT - 1);
}
