// Libraries loaded at run time: PTX text or a fat binary in memory or a file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/fatbin.h"
#include "shim/shim.h"

static ShimBinary *library_of(cudaLibrary_t handle) {
  return shim_find(handle, SHIM_BINARY);
}

static cudaError_t add_kernels(ShimBinary *b) {
  for (int i = 0;; i++) {
    SolEmuKernel *k = sol_emu_kernel_at(b->module, i);
    if (!k) return cudaSuccess;
    ShimKernel *added = shim_add_kernel(b, NULL, sol_emu_kernel_function(k)->name);
    if (!added) return cudaErrorMemoryAllocation;
    cudaError_t error = shim_kernel_load(added);
    if (error) return error;
  }
}

// Machine code, which is what begins with ELF's magic, cannot run here.
static cudaError_t take_code(ShimBinary *b, const void *code) {
  if (!memcmp(code, "\177ELF", 4)) {
    shim_note("cannot load a library of machine code alone; give PTX or a fat binary that holds some");
    shim_observe_missing("a library of machine code alone");
    return cudaErrorNoKernelImageForDevice;
  }
  uint32_t magic;
  memcpy(&magic, code, sizeof magic);
  uint64_t size = magic == 0xBA55ED50u ? sol_fatbin_size(code) : 0;
  if (magic == 0x466243b1u) return b->wrapper = code, cudaSuccess;
  if (size) {
    void *copy = malloc((size_t)size);
    if (!copy) return cudaErrorMemoryAllocation;
    memcpy(copy, code, (size_t)size);
    return b->image = copy, cudaSuccess;
  }
  b->text = strdup(code);
  if (!b->text) return cudaErrorMemoryAllocation;
  b->text_length = strlen(b->text);
  return cudaSuccess;
}

static cudaError_t load(cudaLibrary_t *out, const void *code) {
  if (!out || !code) return cudaErrorInvalidValue;
  ShimBinary *b = calloc(1, sizeof *b);
  if (!b || !shim_put(b, SHIM_BINARY, b)) return free(b), cudaErrorMemoryAllocation;
  cudaError_t error = take_code(b, code);
  if (!error) error = shim_load(b);
  if (!error) error = add_kernels(b);
  *out = error ? NULL : (cudaLibrary_t)(void *)b;
  return error;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *out, const void *code, enum cudaJitOption *options,
                                void **values, unsigned count, enum cudaLibraryOption *library_options,
                                void **library_values, unsigned library_count) {
  (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
  SHIM_CALL(load(out, code));
}

static cudaError_t load_file(cudaLibrary_t *out, const char *name) {
  FILE *file = name ? fopen(name, "rb") : NULL;
  if (!file) return name ? cudaErrorFileNotFound : cudaErrorInvalidValue;
  char *text = NULL;
  long size = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
  if (size >= 0) text = calloc(1, (size_t)size + SOL_FATBIN_HEADER);
  rewind(file);
  bool ok = text && fread(text, 1, (size_t)size, file) == (size_t)size;
  fclose(file);
  cudaError_t error = cudaErrorInvalidKernelImage;
  uint32_t magic = 0;
  if (ok) memcpy(&magic, text, sizeof magic);
  bool cut = magic == 0xBA55ED50u && sol_fatbin_size(text) > (uint64_t)size;
  if (ok && !cut && magic != 0x466243b1u) error = load(out, text);
  free(text);
  return error;
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *out, const char *name, enum cudaJitOption *options,
                                    void **values, unsigned count, enum cudaLibraryOption *library_options,
                                    void **library_values, unsigned library_count) {
  (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
  SHIM_CALL(load_file(out, name));
}

// The module stays loaded: its kernels may be part of graphs, and reports name them.
static cudaError_t unload(cudaLibrary_t handle) {
  ShimBinary *b = library_of(handle);
  if (!b) return cudaErrorInvalidResourceHandle;
  for (ShimKernel *k = b->kernels; k; k = k->next) shim_remove(k, SHIM_KERNEL);
  shim_remove(handle, SHIM_BINARY);
  b->next = shim.programs.binaries;
  shim.programs.binaries = b;
  return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  SHIM_CALL(unload(library));
}

static cudaError_t get_kernel(cudaKernel_t *out, cudaLibrary_t handle, const char *name) {
  ShimBinary *b = library_of(handle);
  if (!out || !name) return cudaErrorInvalidValue;
  if (!b) return cudaErrorInvalidResourceHandle;
  for (ShimKernel *k = b->kernels; k; k = k->next)
    if (!strcmp(k->name, name)) return *out = (cudaKernel_t)(void *)k, cudaSuccess;
  return cudaErrorSymbolNotFound;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library, const char *name) {
  SHIM_CALL(get_kernel(out, library, name));
}

static cudaError_t count_kernels(unsigned *out, cudaLibrary_t handle) {
  ShimBinary *b = library_of(handle);
  if (!out) return cudaErrorInvalidValue;
  if (!b) return cudaErrorInvalidResourceHandle;
  *out = 0;
  for (ShimKernel *k = b->kernels; k; k = k->next) ++*out;
  return cudaSuccess;
}

cudaError_t cudaLibraryGetKernelCount(unsigned *out, cudaLibrary_t library) {
  SHIM_CALL(count_kernels(out, library));
}

static cudaError_t list_kernels(cudaKernel_t *out, unsigned room, cudaLibrary_t handle) {
  ShimBinary *b = library_of(handle);
  if (!out) return cudaErrorInvalidValue;
  if (!b) return cudaErrorInvalidResourceHandle;
  for (ShimKernel *k = b->kernels; k && room; k = k->next, room--) *out++ = (cudaKernel_t)(void *)k;
  return cudaSuccess;
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *out, unsigned room, cudaLibrary_t library) {
  SHIM_CALL(list_kernels(out, room, library));
}

static cudaError_t get_variable(void **out, size_t *bytes, cudaLibrary_t handle, const char *name,
                                bool managed) {
  ShimBinary *b = library_of(handle);
  if (!name || (!out && !bytes)) return cudaErrorInvalidValue;
  if (!b) return cudaErrorInvalidResourceHandle;
  const PtxSymbol *s = sol_ptx_find_symbol(sol_emu_ptx(b->module), name);
  uint64_t address, size;
  if (!s || (managed && !s->managed)) return cudaErrorSymbolNotFound;
  if (sol_emu_symbol(b->module, name, &address, &size, NULL)) return cudaErrorSymbolNotFound;
  if (out) *out = shim_pointer(address);
  if (bytes) *bytes = (size_t)size;
  return cudaSuccess;
}

cudaError_t cudaLibraryGetGlobal(void **out, size_t *bytes, cudaLibrary_t library, const char *name) {
  SHIM_CALL(get_variable(out, bytes, library, name, false));
}

cudaError_t cudaLibraryGetManaged(void **out, size_t *bytes, cudaLibrary_t library, const char *name) {
  SHIM_CALL(get_variable(out, bytes, library, name, true));
}
