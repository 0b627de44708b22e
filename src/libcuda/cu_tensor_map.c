// Tensor maps, which programs of the runtime make by cudaGetDriverEntryPoint: it has no functions for them.
#include "emu/tensor_map.h"
#include "libcuda/cu.h"

_Static_assert(sizeof(CUtensorMap) == SOL_TENSOR_MAP_BYTES &&
                   (int)CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ == (int)SOL_TENSOR_TF32_FTZ &&
                   (int)CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 == (int)SOL_TENSOR_BF16 &&
                   (int)CU_TENSOR_MAP_SWIZZLE_128B == (int)SOL_TENSOR_SWIZZLE_128B,
               "numbered as CUDA's");

static CUresult refuse(const char *why) {
  shim_note("cuTensorMapEncodeTiled: %s", why);
  return CUDA_ERROR_INVALID_VALUE;
}

static CUresult pack(const SolTensorMap *m, CUtensorMap *out) {
  const char *why = sol_tensor_map_problem(m);
  if (why) return refuse(why);
  sol_tensor_map_pack(m, (uint8_t *)out);
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  bool given = out && dims && box && steps && (strides || rank < 2) && !((uintptr_t)out % 64);
  if (!given || !rank || rank > SOL_TENSOR_DIMS || (unsigned)promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
      (unsigned)fill > 1)
    return CUDA_ERROR_INVALID_VALUE;
  SolTensorMap m = {.base = shim_address(address),
                    .rank = rank,
                    .type = (unsigned)type < SOL_TENSOR_TYPES ? (uint8_t)type : SOL_TENSOR_TYPES,
                    .interleave = interleave != CU_TENSOR_MAP_INTERLEAVE_NONE,
                    .swizzle =
                        (unsigned)swizzle < SOL_TENSOR_SWIZZLES ? (uint8_t)swizzle : SOL_TENSOR_SWIZZLES,
                    .nan_fill = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA};
  for (uint32_t k = 0; k < SOL_TENSOR_DIMS; k++) {
    bool used = k < rank;
    m.dims[k] = used ? dims[k] : 1;
    m.box[k] = used ? box[k] : 1;
    m.steps[k] = used && k ? steps[k] : 1; // that of the innermost dimension does not count
    m.strides[k] = k == 0 ? sol_tensor_type_bytes(m.type) : used ? strides[k - 1] : 0;
  }
  return pack(&m, out);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address) {
  SolTensorMap m;
  if (!map || !sol_tensor_map_unpack((const uint8_t *)map, &m)) return CUDA_ERROR_INVALID_VALUE;
  m.base = shim_address(address);
  return pack(&m, map);
}
