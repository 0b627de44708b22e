// Tensor maps, which programs of the runtime make by cudaGetDriverEntryPoint: it has no functions for them.
#include "emu/tensor_map.h"
#include "libcuda/cu.h"

_Static_assert(sizeof(CUtensorMap) == SOL_TENSOR_MAP_BYTES &&
                   (int)CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ == (int)SOL_TENSOR_TF32_FTZ &&
                   (int)CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 == (int)SOL_TENSOR_BF16 &&
                   (int)CU_TENSOR_MAP_SWIZZLE_128B == (int)SOL_TENSOR_SWIZZLE_128B,
               "numbered as CUDA's");

static CUresult pack(const char *function, const SolTensorMap *m, CUtensorMap *out) {
  const char *why = sol_tensor_map_problem(m);
  if (why) {
    shim_note("%s: %s", function, why);
    return CUDA_ERROR_INVALID_VALUE;
  }
  sol_tensor_map_pack(m, (uint8_t *)out);
  return CUDA_SUCCESS;
}

// What both kinds have.
typedef struct Tensor {
  CUtensorMapDataType type;
  cuuint32_t rank;
  void *address;
  const cuuint64_t *dims, *strides;
  const cuuint32_t *steps;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
} Tensor;

static bool is_given(const CUtensorMap *out, const Tensor *t) {
  return out && !((uintptr_t)out % 64) && t->dims && t->steps && (t->strides || t->rank < 2) && t->rank &&
         t->rank <= SOL_TENSOR_DIMS && (unsigned)t->promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
         (unsigned)t->fill <= 1;
}

// The box is the caller's to fill in.
static SolTensorMap map_of(const Tensor *t) {
  SolTensorMap m = {.base = shim_address(t->address),
                    .rank = t->rank,
                    .type = (unsigned)t->type < SOL_TENSOR_TYPES ? (uint8_t)t->type : SOL_TENSOR_TYPES,
                    .interleave = t->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE,
                    .swizzle = (unsigned)t->swizzle < SOL_TENSOR_SWIZZLES ? (uint8_t)t->swizzle
                                                                          : SOL_TENSOR_SWIZZLES,
                    .nan_fill = t->fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA};
  for (uint32_t k = 0; k < SOL_TENSOR_DIMS; k++) {
    bool used = k < t->rank;
    m.dims[k] = used ? t->dims[k] : 1;
    m.box[k] = 1;
    m.steps[k] = used && k ? t->steps[k] : 1; // that of the innermost dimension does not count
    m.strides[k] = k == 0 ? sol_tensor_type_bytes(m.type) : used ? t->strides[k - 1] : 0;
  }
  return m;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  const Tensor t = {type, rank, address, dims, strides, steps, interleave, swizzle, promotion, fill};
  if (!is_given(out, &t) || !box) return CUDA_ERROR_INVALID_VALUE;
  SolTensorMap m = map_of(&t);
  for (uint32_t k = 0; k < rank; k++) m.box[k] = box[k];
  return pack("cuTensorMapEncodeTiled", &m, out);
}

static bool fits(int corner) {
  return corner >= INT16_MIN && corner <= INT16_MAX;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                 const cuuint64_t *dims, const cuuint64_t *strides, const int *lower,
                                 const int *upper, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                 CUtensorMapFloatOOBfill fill) {
  const Tensor t = {type, rank, address, dims, strides, steps, interleave, swizzle, promotion, fill};
  if (!is_given(out, &t) || !lower || !upper) return CUDA_ERROR_INVALID_VALUE;
  SolTensorMap m = map_of(&t);
  m.im2col = true;
  m.box[0] = channels;
  m.box[1] = pixels;
  for (uint32_t k = 0; k + 2 < rank; k++) {
    if (!fits(lower[k]) || !fits(upper[k])) return CUDA_ERROR_INVALID_VALUE;
    m.lower[k] = (int16_t)lower[k], m.upper[k] = (int16_t)upper[k];
  }
  return pack("cuTensorMapEncodeIm2col", &m, out);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address) {
  SolTensorMap m;
  if (!map || !sol_tensor_map_unpack((const uint8_t *)map, &m)) return CUDA_ERROR_INVALID_VALUE;
  m.base = shim_address(address);
  return pack("cuTensorMapReplaceAddress", &m, map);
}
