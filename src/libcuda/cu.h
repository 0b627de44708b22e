// The CUDA driver's interface on the emulator: contexts and error codes are its own, and memory, streams, events, graphs
// and kernels are those of the runtime (src/shim), so that a program may use both on the same handles.
//
// An entry point is CU_CALL(what it needs, a cudaError_t): the need is checked as the driver checks it, then the
// runtime's entry point does the work, without becoming the runtime's last error. cuda.h renames most functions to
// their newest version: cuMemAlloc here defines cuMemAlloc_v2.
#ifndef SOL_LIBCUDA_CU_H
#define SOL_LIBCUDA_CU_H

#include "shim/shim.h"

#pragma GCC visibility push(default) // what the toolkit's headers declare is what this library exports
#include <cuda.h>
#pragma GCC visibility pop

typedef enum CuNeed { CU_NOTHING, CU_INIT, CU_CONTEXT } CuNeed;
CUresult cu_begin(CuNeed need); // each with a cu_end, whatever it returns
CUresult cu_end(CUresult result);
CUresult cu_result(cudaError_t error);
#define CU_CALL(need, work)                                                                                  \
  do {                                                                                                       \
    CUresult cu_result_ = cu_begin(need);                                                                    \
    if (!cu_result_) cu_result_ = cu_result(work);                                                           \
    return cu_end(cu_result_);                                                                               \
  } while (0)
// A whole entry point whose work is one call.
#define CU_PASS(name, parameters, work)                                                                      \
  CUresult name parameters {                                                                                 \
    CU_CALL(CU_CONTEXT, work);                                                                               \
  }
// The same for a name as headers of older releases mean it.
#define CU_OLDER(name, parameters, work)                                                                     \
  __attribute__((visibility("default"))) CUresult older_##name parameters __asm__(#name);                    \
  CUresult older_##name parameters {                                                                         \
    CU_CALL(CU_CONTEXT, work);                                                                               \
  }
// The same for work that needs the lock held.
#define CU_LOCKED(need, name, parameters, work)                                                              \
  CUresult name parameters {                                                                                 \
    CUresult result_ = cu_begin(need);                                                                       \
    if (result_) return cu_end(result_);                                                                     \
    cudaError_t error_ = shim_enter();                                                                       \
    if (!error_) error_ = (work);                                                                            \
    return cu_end(cu_result(shim_leave(error_)));                                                            \
  }

struct CUctx_st {
  bool primary, destroyed;
  unsigned flags, retained; // retained: of the primary one
  unsigned long long id;
};
CUcontext cu_current(void); // NULL: none
void cu_own(void *memory);  // what a context other than the primary one allocates is freed with it

static inline void *cu_memory(CUdeviceptr address) {
  return shim_pointer((uint64_t)address);
}
// cu_copy.c: channels of arrays and textures, as both interfaces describe them.
cudaError_t cu_channels(CUarray_format format, unsigned count, struct cudaChannelFormatDesc *out);
bool cu_format(const struct cudaChannelFormatDesc *channels, CUarray_format *format, unsigned *count);
// cu_copy.c: a copy as the runtime describes it.
cudaError_t cu_box(const CUDA_MEMCPY3D *copy, struct cudaMemcpy3DParms *out);
// cu_launch.c: where each parameter of `extra` stands; the caller frees the list, also where this fails.
cudaError_t cu_unpack(const void *function, void **extra, void ***args);
// cu_map.c: the mapping of reserved addresses that has this one. Takes the lock.
bool cu_mapping_at(uint64_t address, SolEmuRange *out);
ShimKernel *cu_kernel(const void *handle); // with the lock held; NULL: none

#endif
