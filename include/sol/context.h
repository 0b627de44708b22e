// A context: where operations run. `cpu` is plain C on this machine, `emu` runs the GPU kernels' PTX on the
// emulator, `cuda` runs them on a GPU through its driver, which is loaded at run time.
// One context may be used from several threads at once. Creating one loads the kernels; calls allocate
// nothing.
#ifndef SOL_CONTEXT_H
#define SOL_CONTEXT_H

#include <stddef.h>

#include "sol/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum SolBackend {
  SOL_BACKEND_AUTO = 0, // cuda where there is a GPU, otherwise cpu
  SOL_BACKEND_CPU,
  SOL_BACKEND_EMU,
  SOL_BACKEND_CUDA
} SolBackend;

typedef struct SolContext SolContext;
// A CUstream or cudaStream_t; NULL is the default stream. cpu and emu finish before they return and ignore
// it.
typedef void *SolStream;

typedef struct SolContextOptions {
  SolBackend backend;
  const SolDevice *device; // emu: the GPU to emulate; NULL: h100-sxm
  int workers;             // cpu and emu: threads; 0: as many as there are cores
  int trust_pointers;      // cuda: 1 skips the check of what each pointer points to
} SolContextOptions;

// options may be NULL. cuda: takes the CUDA context that is current on this thread (as PyTorch has made it),
// or else GPU 0's primary context. SOL_ERR_UNSUPPORTED: that backend is not available here.
SOL_API SolStatus sol_context_create(const SolContextOptions *options, SolContext **out, SolError *err);
SOL_API void sol_context_destroy(SolContext *context); // NULL is fine

SOL_API SolBackend sol_context_backend(const SolContext *context);
SOL_API const char *sol_backend_name(SolBackend backend); // "emu"
SOL_API SolStatus sol_backend_find(const char *name, SolBackend *out, SolError *err);

// Memory that the context's operations can reach, for programs that do not use CUDA themselves.
SOL_API SolStatus sol_context_alloc(SolContext *context, size_t bytes, void **out, SolError *err);
SOL_API SolStatus sol_context_free(SolContext *context, void *memory, SolError *err);
SOL_API SolStatus sol_context_write(SolContext *context, void *to, const void *from, size_t bytes,
                                    SolError *err);
SOL_API SolStatus sol_context_read(SolContext *context, void *to, const void *from, size_t bytes,
                                   SolError *err);
// Waits until all that was launched has ended, and reports what went wrong meanwhile.
SOL_API SolStatus sol_context_sync(SolContext *context, SolError *err);

// The error of this thread's last failing operation. Valid until the thread's next operation fails.
SOL_API const SolError *sol_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
