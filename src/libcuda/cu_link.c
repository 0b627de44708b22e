// JIT linking. The emulator runs PTX, so what is linked stays PTX (image/units.h). Programs may keep the result in files.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/units.h"
#include "libcuda/cu.h"

struct CUlinkState_st {
  SolUnits units;
};

static CUlinkState find_link(CUlinkState state) {
  return shim_find(state, SHIM_LINK);
}

static cudaError_t create(CUlinkState *out) {
  if (!out) return cudaErrorInvalidValue;
  CUlinkState state = calloc(1, sizeof *state);
  if (!state || !shim_put(state, SHIM_LINK, state)) return free(state), cudaErrorMemoryAllocation;
  *out = state;
  return cudaSuccess;
}

static cudaError_t add_text(CUlinkState state, const char *text, size_t length) {
  SolStatus status = sol_units_add(&state->units, text, length);
  return status == SOL_ERR_NO_SPACE ? cudaErrorMemoryAllocation : status ? cudaErrorInvalidPtx : cudaSuccess;
}

static cudaError_t add_fat(CUlinkState state, const void *data, size_t size) {
  SolError err = {0};
  int cc = shim.device->cc_major * 10 + shim.device->cc_minor;
  if (!sol_units_add_fat(&state->units, data, size, cc, &err)) return cudaSuccess;
  return shim_refuse(cudaErrorNoKernelImageForDevice, "cuLinkAddData", &err);
}

// The device runtime's archive has nothing that the emulator would need.
static bool is_device_runtime(const char *name) {
  return name && strstr(name, "cudadevrt");
}

static cudaError_t add(CUlinkState handle, CUjitInputType type, const void *data, size_t size,
                       const char *name) {
  CUlinkState state = find_link(handle);
  if (!state) return cudaErrorInvalidResourceHandle;
  if (!data || !size) return cudaErrorInvalidValue;
  if (type == CU_JIT_INPUT_LIBRARY && is_device_runtime(name)) return cudaSuccess;
  if (type == CU_JIT_INPUT_FATBINARY) return add_fat(state, data, size);
  bool machine = size >= 4 && memcmp(data, "\177ELF", 4) == 0;
  if (type == CU_JIT_INPUT_PTX || (type == CU_JIT_INPUT_CUBIN && !machine))
    return add_text(state, data, size);
  shim_note("cuLinkAddData: '%s' is no PTX; the emulator links PTX alone", name ? name : "");
  return cudaErrorNoKernelImageForDevice;
}

static cudaError_t add_file(CUlinkState handle, CUjitInputType type, const char *path) {
  FILE *file = path ? fopen(path, "rb") : NULL;
  if (!file) return path ? cudaErrorFileNotFound : cudaErrorInvalidValue;
  SolBuffer bytes = {0};
  char chunk[4096];
  for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;) sol_buffer_put(&bytes, chunk, n);
  fclose(file);
  cudaError_t error =
      bytes.failed ? cudaErrorMemoryAllocation : add(handle, type, bytes.text, bytes.length, path);
  sol_buffer_free(&bytes);
  return error;
}

static cudaError_t complete(CUlinkState handle, void **out, size_t *size) {
  CUlinkState state = find_link(handle);
  if (!state) return cudaErrorInvalidResourceHandle;
  size_t bytes;
  const char *image = sol_units_image(&state->units, &bytes);
  if (!out || !image) return cudaErrorInvalidValue;
  *out = (void *)(uintptr_t)image;
  if (size) *size = bytes;
  return cudaSuccess;
}

static cudaError_t destroy(CUlinkState handle) {
  CUlinkState state = find_link(handle);
  if (!state) return cudaErrorInvalidResourceHandle;
  shim_remove(handle, SHIM_LINK);
  sol_buffer_free(&state->units.text);
  free(state);
  return cudaSuccess;
}

// ---- entry points ----

static cudaError_t create_locked(CUlinkState *out) {
  SHIM_CALL(create(out));
}
static cudaError_t add_locked(CUlinkState state, CUjitInputType type, const void *data, size_t size,
                              const char *name) {
  SHIM_CALL(add(state, type, data, size, name));
}
static cudaError_t add_file_locked(CUlinkState state, CUjitInputType type, const char *path) {
  SHIM_CALL(add_file(state, type, path));
}
static cudaError_t complete_locked(CUlinkState state, void **out, size_t *size) {
  SHIM_CALL(complete(state, out, size));
}
static cudaError_t destroy_locked(CUlinkState state) {
  SHIM_CALL(destroy(state));
}

CU_PASS(cuLinkCreate, (unsigned count, CUjit_option *options, void **values, CUlinkState *out),
        ((void)count, (void)options, (void)values, create_locked(out)))
CU_PASS(cuLinkAddData,
        (CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, unsigned count,
         CUjit_option *options, void **values),
        ((void)count, (void)options, (void)values, add_locked(state, type, data, size, name)))
CU_PASS(cuLinkAddFile,
        (CUlinkState state, CUjitInputType type, const char *path, unsigned count, CUjit_option *options,
         void **values),
        ((void)count, (void)options, (void)values, add_file_locked(state, type, path)))
CU_PASS(cuLinkComplete, (CUlinkState state, void **out, size_t *size), complete_locked(state, out, size))
CU_PASS(cuLinkDestroy, (CUlinkState state), destroy_locked(state))
