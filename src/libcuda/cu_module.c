// Modules and libraries, which are one thing here; their kernels and variables.
#include <stdlib.h>
#include <string.h>

#include "libcuda/cu.h"

static cudaLibrary_t library_of(CUmodule module) {
  return (cudaLibrary_t)(void *)module;
}

// Nothing is written into the compiler's logs; what is wrong with a module goes to standard error, with the line.
static void empty_logs(unsigned count, const CUjit_option *options, void **values) {
  char *buffers[2] = {0};
  bool room[2] = {0};
  for (unsigned i = 0; options && values && i < count; i++) {
    if (options[i] == CU_JIT_INFO_LOG_BUFFER) buffers[0] = values[i];
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) buffers[1] = values[i];
    bool info = options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
         error = options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
    if (!info && !error) continue;
    room[error] = (unsigned)(uintptr_t)values[i] > 0;
    values[i] = NULL; // the bytes written
  }
  for (int i = 0; i < 2; i++)
    if (buffers[i] && room[i]) buffers[i][0] = 0;
}

// What an image is that holds neither machine code nor PTX of a version that a driver of today takes.
static cudaError_t check_image(const char *image) {
  enum { NEWEST_VERSION = 9 };
  unsigned char first = (unsigned char)image[0];
  if (first >= 0x80 || first == 0x7f || first == 'P') return cudaSuccess; // ELF, containers of fat binaries
  const char *version = strstr(image, ".version");
  if (!version) return cudaErrorInvalidKernelImage;
  return atoi(version + sizeof ".version" - 1) > NEWEST_VERSION ? cudaErrorUnsupportedPtxVersion
                                                                : cudaSuccess;
}

static cudaError_t load(CUmodule *out, const void *image, unsigned count, const CUjit_option *options,
                        void **values) {
  if (!out || !image) return cudaErrorInvalidValue;
  empty_logs(count, options, values);
  cudaError_t error = check_image(image);
  return error ? error
               : cudaLibraryLoadData((cudaLibrary_t *)(void *)out, image, NULL, NULL, 0, NULL, NULL, 0);
}
CU_PASS(cuModuleLoadData, (CUmodule * out, const void *image), load(out, image, 0, NULL, NULL))
CU_PASS(cuModuleLoadDataEx,
        (CUmodule * out, const void *image, unsigned count, CUjit_option *options, void **values),
        load(out, image, count, options, values))
CU_PASS(cuModuleLoadFatBinary, (CUmodule * out, const void *image), load(out, image, 0, NULL, NULL))
CU_PASS(cuModuleLoad, (CUmodule * out, const char *file),
        cudaLibraryLoadFromFile((cudaLibrary_t *)(void *)out, file, NULL, NULL, 0, NULL, NULL, 0))
CU_PASS(cuModuleUnload, (CUmodule module), cudaLibraryUnload(library_of(module)))
CU_PASS(cuModuleGetFunction, (CUfunction * out, CUmodule module, const char *name),
        name && !*name ? cudaErrorInvalidValue
                       : cudaLibraryGetKernel((cudaKernel_t *)(void *)out, library_of(module), name))
CU_PASS(cuModuleGetFunctionCount, (unsigned *out, CUmodule module),
        cudaLibraryGetKernelCount(out, library_of(module)))
CU_PASS(cuModuleEnumerateFunctions, (CUfunction * out, unsigned room, CUmodule module),
        cudaLibraryEnumerateKernels((cudaKernel_t *)(void *)out, room, library_of(module)))

static cudaError_t variable(CUdeviceptr *out, size_t *bytes, CUmodule module, const char *name) {
  cudaKernel_t kernel;
  cudaError_t error = cudaLibraryGetGlobal((void **)out, bytes, library_of(module), name);
  bool is_kernel_name =
      error == cudaErrorSymbolNotFound && !cudaLibraryGetKernel(&kernel, library_of(module), name);
  return is_kernel_name ? cudaErrorInvalidValue : error;
}
CU_PASS(cuModuleGetGlobal, (CUdeviceptr * out, size_t *bytes, CUmodule module, const char *name),
        variable(out, bytes, module, name))

static cudaError_t loading_mode(CUmoduleLoadingMode *out) {
  if (!out) return cudaErrorInvalidValue;
  *out = CU_MODULE_EAGER_LOADING;
  return cudaSuccess;
}
CU_PASS(cuModuleGetLoadingMode, (CUmoduleLoadingMode * out), loading_mode(out))

// ---- libraries: they belong to no context ----

#define CU_PASS_INIT(name, parameters, work)                                                                 \
  CUresult name parameters {                                                                                 \
    CU_CALL(CU_INIT, work);                                                                                  \
  }
CU_PASS_INIT(cuLibraryLoadData,
             (CUlibrary * out, const void *code, CUjit_option *options, void **values, unsigned count,
              CUlibraryOption *library_options, void **library_values, unsigned library_count),
             ((void)library_options, (void)library_values, (void)library_count,
              load((CUmodule *)(void *)out, code, count, options, values)))
CU_PASS_INIT(cuLibraryLoadFromFile,
             (CUlibrary * out, const char *file, CUjit_option *options, void **values, unsigned count,
              CUlibraryOption *library_options, void **library_values, unsigned library_count),
             ((void)library_options, (void)library_values, (void)library_count,
              empty_logs(count, options, values),
              cudaLibraryLoadFromFile((cudaLibrary_t *)(void *)out, file, NULL, NULL, 0, NULL, NULL, 0)))
CU_PASS_INIT(cuLibraryUnload, (CUlibrary library), cudaLibraryUnload((cudaLibrary_t)library))
CU_PASS_INIT(cuLibraryGetKernel, (CUkernel * out, CUlibrary library, const char *name),
             cudaLibraryGetKernel((cudaKernel_t *)out, (cudaLibrary_t)library, name))
CU_PASS_INIT(cuLibraryGetKernelCount, (unsigned *out, CUlibrary library),
             cudaLibraryGetKernelCount(out, (cudaLibrary_t)library))
CU_PASS_INIT(cuLibraryEnumerateKernels, (CUkernel * out, unsigned room, CUlibrary library),
             cudaLibraryEnumerateKernels((cudaKernel_t *)out, room, (cudaLibrary_t)library))
CU_PASS(cuLibraryGetGlobal, (CUdeviceptr * out, size_t *bytes, CUlibrary library, const char *name),
        cudaLibraryGetGlobal((void **)out, bytes, (cudaLibrary_t)library, name))
CU_PASS(cuLibraryGetManaged, (CUdeviceptr * out, size_t *bytes, CUlibrary library, const char *name),
        cudaLibraryGetManaged((void **)out, bytes, (cudaLibrary_t)library, name))

static cudaError_t same_module(CUmodule *out, CUlibrary library) {
  unsigned count;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = cudaLibraryGetKernelCount(&count, (cudaLibrary_t)library);
  if (!error) *out = (CUmodule)(void *)library;
  return error;
}
CU_PASS(cuLibraryGetModule, (CUmodule * out, CUlibrary library), same_module(out, library))

// ---- functions and kernels, which are one thing, too ----

ShimKernel *cu_kernel(const void *handle) {
  return shim_find(handle, SHIM_KERNEL);
}

static cudaError_t is_kernel(const void *handle) {
  SHIM_CALL(cu_kernel(handle) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

static cudaError_t attribute(int *out, int what, const void *handle) {
  struct cudaFuncAttributes a;
  cudaError_t error = out ? is_kernel(handle) : cudaErrorInvalidValue;
  if (!error) error = cudaFuncGetAttributes(&a, handle);
  if (error) return error;
  const int values[] = {a.maxThreadsPerBlock,
                        (int)a.sharedSizeBytes,
                        (int)a.constSizeBytes,
                        (int)a.localSizeBytes,
                        a.numRegs,
                        a.ptxVersion,
                        a.binaryVersion,
                        a.cacheModeCA,
                        a.maxDynamicSharedSizeBytes,
                        a.preferredShmemCarveout,
                        a.clusterDimMustBeSet,
                        a.requiredClusterWidth,
                        a.requiredClusterHeight,
                        a.requiredClusterDepth,
                        a.nonPortableClusterSizeAllowed,
                        a.clusterSchedulingPolicyPreference};
  if (what < 0 || what >= (int)SOL_COUNT(values)) return cudaErrorInvalidValue;
  *out = values[what];
  return cudaSuccess;
}
CU_PASS(cuFuncGetAttribute, (int *out, CUfunction_attribute what, CUfunction function),
        attribute(out, (int)what, function))
CU_PASS(cuKernelGetAttribute, (int *out, CUfunction_attribute what, CUkernel kernel, CUdevice device),
        device ? cudaErrorInvalidDevice : attribute(out, (int)what, kernel))

static cudaError_t set_attribute(const void *handle, CUfunction_attribute what, int value) {
  cudaError_t error = is_kernel(handle);
  return error ? error : cudaFuncSetAttribute(handle, (enum cudaFuncAttribute)what, value);
}
CU_PASS(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute what, int value),
        set_attribute(function, what, value))
CU_PASS(cuKernelSetAttribute, (CUfunction_attribute what, int value, CUkernel kernel, CUdevice device),
        device ? cudaErrorInvalidDevice : set_attribute(kernel, what, value))
CU_PASS(cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config),
        (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? cudaErrorInvalidValue : is_kernel(function))
CU_PASS(cuKernelSetCacheConfig, (CUkernel kernel, CUfunc_cache config, CUdevice device),
        device                                          ? cudaErrorInvalidDevice
        : (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? cudaErrorInvalidValue
                                                        : is_kernel(kernel))
CU_PASS(cuFuncSetSharedMemConfig, (CUfunction function, CUsharedconfig config),
        ((void)config, is_kernel(function)))

static cudaError_t name_of(const char **out, const void *handle) {
  cudaError_t error = out ? is_kernel(handle) : cudaErrorInvalidValue;
  return error ? error : cudaFuncGetName(out, handle);
}
CU_PASS(cuFuncGetName, (const char **out, CUfunction function), name_of(out, function))
CU_PASS(cuKernelGetName, (const char **out, CUkernel kernel), name_of(out, kernel))

static cudaError_t param_info(const void *handle, size_t index, size_t *offset, size_t *size) {
  cudaError_t error = is_kernel(handle);
  return error ? error : cudaFuncGetParamInfo(handle, index, offset, size);
}
CU_PASS(cuFuncGetParamInfo, (CUfunction function, size_t index, size_t *offset, size_t *size),
        param_info(function, index, offset, size))
CU_PASS(cuKernelGetParamInfo, (CUkernel kernel, size_t index, size_t *offset, size_t *size),
        param_info(kernel, index, offset, size))

static cudaError_t same_function(CUfunction *out, CUkernel kernel) {
  cudaError_t error = out ? is_kernel(kernel) : cudaErrorInvalidValue;
  if (!error) *out = (CUfunction)(void *)kernel;
  return error;
}
CU_PASS(cuKernelGetFunction, (CUfunction * out, CUkernel kernel), same_function(out, kernel))

static cudaError_t owner(void **out, const void *handle) {
  cudaError_t error = out ? is_kernel(handle) : cudaErrorInvalidValue;
  if (!error) *out = ((const ShimKernel *)handle)->binary;
  return error;
}
CU_PASS(cuFuncGetModule, (CUmodule * out, CUfunction function), owner((void **)out, function))
CU_PASS(cuKernelGetLibrary, (CUlibrary * out, CUkernel kernel), owner((void **)out, kernel))

static cudaError_t loaded(CUfunctionLoadingState *out, const void *handle) {
  cudaError_t error = out ? is_kernel(handle) : cudaErrorInvalidValue;
  if (!error) *out = CU_FUNCTION_LOADING_STATE_LOADED;
  return error;
}
CU_PASS(cuFuncIsLoaded, (CUfunctionLoadingState * out, CUfunction function), loaded(out, function))
CU_PASS(cuFuncLoad, (CUfunction function), is_kernel(function))
