// The same kernels on a real GPU, through libcuda where there is one: holds the references to hardware. Only
// if SOL_TEST_GPU is set in the environment.
#ifndef OPCODE_GPU_H
#define OPCODE_GPU_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct OpcodeGpu {
  int target; // 90: compute capability 9.0; 0: there is none
  uint64_t in, out;
  int (*load)(void **module, const void *text);
  int (*unload)(void *module);
  int (*find)(void **function, void *module, const char *name);
  int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                unsigned shared, void *stream, void **params, void **extra);
  int (*to_gpu)(uint64_t to, const void *from, size_t bytes);
  int (*from_gpu)(void *to, uint64_t from, size_t bytes);
} OpcodeGpu;

// dlsym's void pointer as a function's: ISO C has no cast for it.
static inline void opcode_gpu_symbol(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  __builtin_memcpy(function, &symbol, sizeof symbol);
}

static inline void opcode_gpu_open(OpcodeGpu *g, size_t in_bytes, size_t out_bytes) {
  int (*init)(unsigned), (*device_get)(int *, int), (*retain)(void **, int), (*set)(void *);
  int (*attribute)(int *, int, int), (*alloc)(uint64_t *, size_t);
  void *library = getenv("SOL_TEST_GPU") ? dlopen("libcuda.so.1", RTLD_NOW) : NULL, *context = NULL;
  int device = 0, major = 0, minor = 0;
  if (!library) return;
  opcode_gpu_symbol(library, "cuInit", &init);
  opcode_gpu_symbol(library, "cuDeviceGet", &device_get);
  opcode_gpu_symbol(library, "cuDevicePrimaryCtxRetain", &retain);
  opcode_gpu_symbol(library, "cuCtxSetCurrent", &set);
  opcode_gpu_symbol(library, "cuDeviceGetAttribute", &attribute);
  opcode_gpu_symbol(library, "cuMemAlloc_v2", &alloc);
  opcode_gpu_symbol(library, "cuModuleLoadData", &g->load);
  opcode_gpu_symbol(library, "cuModuleUnload", &g->unload);
  opcode_gpu_symbol(library, "cuModuleGetFunction", &g->find);
  opcode_gpu_symbol(library, "cuLaunchKernel", &g->launch);
  opcode_gpu_symbol(library, "cuMemcpyHtoD_v2", &g->to_gpu);
  opcode_gpu_symbol(library, "cuMemcpyDtoH_v2", &g->from_gpu);
  if (init(0) || device_get(&device, 0) || retain(&context, device) || set(context)) return;
  if (attribute(&major, 75, device) || attribute(&minor, 76, device)) return;
  if (alloc(&g->in, in_bytes) || alloc(&g->out, out_bytes)) return;
  g->target = major * 10 + minor;
}

// NULL: the GPU's compiler will not have it.
static inline void *opcode_gpu_load(const OpcodeGpu *g, const char *text) {
  void *module = NULL;
  return g->target && g->load(&module, text) == 0 ? module : NULL;
}
static inline bool opcode_gpu_run(const OpcodeGpu *g, void *module, const char *kernel, unsigned threads,
                                  const void *in, size_t in_bytes, void *out, size_t out_bytes) {
  void *function = NULL;
  uint64_t a = g->in, b = g->out;
  void *params[] = {&a, &b};
  if (g->find(&function, module, kernel) || g->to_gpu(g->in, in, in_bytes) ||
      g->to_gpu(g->out, out, out_bytes))
    return false;
  return !g->launch(function, 1, 1, 1, threads, 1, 1, 0, NULL, params, NULL) &&
         !g->from_gpu(out, g->out, out_bytes);
}

#endif
