// What a program's start-up code registers: fat binaries, the stubs of kernels, shadows of variables. Nothing
// is loaded before it is first used.
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "image/fatbin.h"
#include "shim/shim.h"

// Called by the code that nvcc generates; no header of the toolkit's declares these for C.
#pragma GCC visibility push(default)
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *stub, char *device_function, const char *name,
                            int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp_size);
void __cudaRegisterVar(void **handle, char *shadow, char *device_address, const char *name, int external,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **pointer, char *device_address, const char *name,
                              int external, size_t size, int constant, int global);
void __cudaRegisterHostVar(void **handle, const char *name, char *variable, size_t size);
char __cudaInitModule(void **handle);
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *stub);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
#pragma GCC visibility pop

static ShimBinary *binary_of(void **handle) {
  return shim_find(handle, SHIM_BINARY);
}

void **__cudaRegisterFatBinary(void *wrapper) {
  shim_lock();
  ShimBinary *b = calloc(1, sizeof *b);
  if (b && !shim_put(b->handle, SHIM_BINARY, b)) free(b), b = NULL;
  if (b) {
    b->wrapper = wrapper;
    b->next = shim.programs.binaries;
    shim.programs.binaries = b;
  } else
    shim_note("out of memory");
  shim_leave(cudaSuccess);
  return b ? b->handle : NULL;
}

void __cudaRegisterFatBinaryEnd(void **handle) {
  (void)handle;
}

// At exit, or when a library is unloaded. What is loaded stays, for the reports; the addresses of its
// stubs and shadows may be reused for others.
void __cudaUnregisterFatBinary(void **handle) {
  shim_lock();
  ShimBinary *b = binary_of(handle);
  for (ShimKernel *k = b ? b->kernels : NULL; k; k = k->next)
    if (shim_find(k->stub, SHIM_FUNCTION) == k) shim_remove(k->stub, SHIM_FUNCTION);
  for (ShimVariable *v = b ? b->variables : NULL; v; v = v->next)
    if (shim_find(v->shadow, SHIM_VARIABLE) == v) shim_remove(v->shadow, SHIM_VARIABLE);
  if (b) b->wrapper = NULL;
  shim_leave(cudaSuccess);
}

ShimKernel *shim_add_kernel(ShimBinary *b, const void *stub, const char *name) {
  ShimKernel *k = calloc(1, sizeof *k);
  char *copy = strdup(name);
  if (!k || !copy || !shim_put(k, SHIM_KERNEL, k)) goto failed;
  if (stub && !shim_put(stub, SHIM_FUNCTION, k)) {
    shim_remove(k, SHIM_KERNEL);
    goto failed;
  }
  *k = (ShimKernel){.next = b->kernels, .binary = b, .stub = stub, .name = copy, .carveout = -1};
  b->kernels = k;
  return k;
failed:
  shim_note("out of memory");
  free(copy);
  free(k);
  return NULL;
}

void __cudaRegisterFunction(void **handle, const char *stub, char *device_function, const char *name,
                            int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp_size) {
  (void)device_function, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp_size;
  shim_lock();
  ShimBinary *b = binary_of(handle);
  if (b) shim_add_kernel(b, stub, name);
  shim_leave(cudaSuccess);
}

static void add_variable(void **handle, const void *shadow, void **managed, const char *name, size_t size) {
  shim_lock();
  ShimBinary *b = binary_of(handle);
  ShimVariable *v = b ? calloc(1, sizeof *v) : NULL;
  char *copy = v ? strdup(name) : NULL;
  if (copy && shim_put(shadow, SHIM_VARIABLE, v)) {
    *v = (ShimVariable){b->variables, b, shadow, managed, copy, size};
    b->variables = v;
  } else {
    free(copy);
    free(v);
    if (b) shim_note("out of memory");
  }
  shim_leave(cudaSuccess);
}

void __cudaRegisterVar(void **handle, char *shadow, char *device_address, const char *name, int external,
                       size_t size, int constant, int global) {
  (void)device_address, (void)external, (void)constant, (void)global;
  add_variable(handle, shadow, NULL, name, size);
}

// The program reads the variable through *pointer, and hands `pointer` over as the symbol.
void __cudaRegisterManagedVar(void **handle, void **pointer, char *device_address, const char *name,
                              int external, size_t size, int constant, int global) {
  (void)device_address, (void)external, (void)constant, (void)global;
  add_variable(handle, pointer, pointer, name, size);
}

void __cudaRegisterHostVar(void **handle, const char *name, char *variable, size_t size) {
  (void)handle, (void)variable, (void)size;
  shim_note("the host's variable %s is read by kernels, which the emulator does not support yet", name);
}

// Before managed variables are first read by the host.
char __cudaInitModule(void **handle) {
  cudaError_t error = shim_enter();
  ShimBinary *b = binary_of(handle);
  if (!error) error = b ? shim_load(b) : cudaErrorInvalidResourceHandle;
  shim_leave(error);
  return !error;
}

// ---- <<<...>>> ----

enum { MOST_PENDING = 16 }; // an argument's expression may itself launch
typedef struct CallConfiguration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
} CallConfiguration;
static _Thread_local CallConfiguration pending[MOST_PENDING];
static _Thread_local int pending_count;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  if (pending_count == MOST_PENDING) return 1;
  pending[pending_count++] = (CallConfiguration){grid, block, shared, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  if (!pending_count) return cudaErrorMissingConfiguration;
  CallConfiguration c = pending[--pending_count];
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  memcpy(stream, &c.stream, sizeof c.stream);
  return cudaSuccess;
}

// ---- look-up ----

cudaError_t shim_kernel(const void *function, ShimKernel **out) {
  ShimKernel *k = shim_find(function, SHIM_FUNCTION);
  if (!k) k = shim_find(function, SHIM_KERNEL);
  if (!k) return cudaErrorInvalidResourceHandle;
  *out = k;
  return shim_kernel_load(k);
}

cudaError_t shim_symbol(const void *symbol, uint64_t *address, uint64_t *bytes) {
  ShimVariable *v = shim_find(symbol, SHIM_VARIABLE);
  if (!v) return cudaErrorInvalidSymbol;
  cudaError_t error = shim_load(v->binary);
  SolError err = {0};
  if (!error && sol_emu_symbol(v->binary->module, v->name, address, bytes, &err))
    return shim_refuse(cudaErrorInvalidSymbol, v->name, &err);
  return error;
}

// Does not load the binary: an error in it is reported when the kernel is used, not when it is looked up.
static cudaError_t get_kernel(cudaKernel_t *out, const void *stub) {
  if (!out) return cudaErrorInvalidValue;
  ShimKernel *k = shim_find(stub, SHIM_FUNCTION);
  if (!k) k = shim_find(stub, SHIM_KERNEL);
  *out = (cudaKernel_t)(void *)k;
  return k ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *stub) {
  shim_lock();
  return shim_leave(get_kernel(out, stub));
}

cudaError_t cudaGetKernel(cudaKernel_t *out, const void *stub) {
  SHIM_CALL(get_kernel(out, stub));
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *out, const void *stub) {
  SHIM_CALL(get_kernel((cudaKernel_t *)(void *)out, stub));
}

static cudaError_t symbol_address(void **out, const void *symbol) {
  uint64_t address;
  cudaError_t error = out ? shim_symbol(symbol, &address, NULL) : cudaErrorInvalidValue;
  if (!error) *out = shim_pointer(address);
  return error;
}

cudaError_t cudaGetSymbolAddress(void **out, const void *symbol) {
  SHIM_CALL(symbol_address(out, symbol));
}

static cudaError_t symbol_size(size_t *out, const void *symbol) {
  uint64_t address, bytes;
  cudaError_t error = out ? shim_symbol(symbol, &address, &bytes) : cudaErrorInvalidValue;
  if (!error) *out = (size_t)bytes;
  return error;
}

cudaError_t cudaGetSymbolSize(size_t *out, const void *symbol) {
  SHIM_CALL(symbol_size(out, symbol));
}
