// cuBLAS and cuBLASLt for programs that make a handle and may never multiply: handles work; functions that compute
// print their name, once, and are not supported. One library under both names. Arguments that are not used
// need no types, so NVIDIA's headers are not needed.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define API __attribute__((visibility("default")))

enum { SUCCESS = 0, NOT_INITIALIZED = 1, NO_MEMORY = 3, BAD_VALUE = 7, NOT_SUPPORTED = 15 };
enum { VERSION = 130000, RUNTIME = 13000 };

typedef struct Blas { // a handle
  void *stream;
  int math, pointers, atomics, sms;
} Blas;

// ---- what is there ----

static int create(void **handle) {
  if (!handle) return NOT_INITIALIZED;
  *handle = calloc(1, sizeof(Blas));
  return *handle ? SUCCESS : NO_MEMORY;
}

static int destroy(void *handle) {
  if (!handle) return NOT_INITIALIZED;
  free(handle);
  return SUCCESS;
}

API int cublasCreate_v2(void **handle) {
  return create(handle);
}
API int cublasDestroy_v2(void *handle) {
  return destroy(handle);
}
API int cublasLtCreate(void **handle) {
  return create(handle);
}
API int cublasLtDestroy(void *handle) {
  return destroy(handle);
}

// A setting of a handle: Set keeps it, Get gives it back.
#define SETTING(set, get, type, field)                                                                       \
  API int set(Blas *handle, type value) {                                                                    \
    if (!handle) return NOT_INITIALIZED;                                                                     \
    handle->field = value;                                                                                   \
    return SUCCESS;                                                                                          \
  }                                                                                                          \
  API int get(const Blas *handle, type *value) {                                                             \
    if (!handle) return NOT_INITIALIZED;                                                                     \
    if (!value) return BAD_VALUE;                                                                            \
    *value = handle->field;                                                                                  \
    return SUCCESS;                                                                                          \
  }
SETTING(cublasSetStream_v2, cublasGetStream_v2, void *, stream)
SETTING(cublasSetMathMode, cublasGetMathMode, int, math)
SETTING(cublasSetPointerMode_v2, cublasGetPointerMode_v2, int, pointers)
SETTING(cublasSetAtomicsMode, cublasGetAtomicsMode, int, atomics)
SETTING(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sms)

API int cublasSetWorkspace_v2(const Blas *handle, void *workspace, size_t bytes) {
  (void)workspace, (void)bytes;
  return handle ? SUCCESS : NOT_INITIALIZED;
}
API int cublasGetVersion_v2(const Blas *handle, int *version) { // NULL is allowed
  (void)handle;
  if (!version) return BAD_VALUE;
  *version = VERSION;
  return SUCCESS;
}
API size_t cublasGetCudartVersion(void) {
  return RUNTIME;
}
API size_t cublasLtGetVersion(void) {
  return VERSION;
}
API size_t cublasLtGetCudartVersion(void) {
  return RUNTIME;
}

static const char *status_name(int status) {
  switch (status) {
  case SUCCESS: return "CUBLAS_STATUS_SUCCESS";
  case NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
  case NO_MEMORY: return "CUBLAS_STATUS_ALLOC_FAILED";
  case BAD_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
  case NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
  default: return "unknown cuBLAS status";
  }
}
API const char *cublasGetStatusName(int status) {
  return status_name(status);
}
API const char *cublasGetStatusString(int status) {
  return status_name(status);
}
API const char *cublasLtGetStatusName(int status) {
  return status_name(status);
}
API const char *cublasLtGetStatusString(int status) {
  return status_name(status);
}

// ---- what is not ----

// A line of the audit's report (audit/audit_wire.h), where there is one: the bill lacks what this would have done.
static void tell_audit(const char *name) {
  const char *path = getenv("SOL_SHIM_AUDIT");
  FILE *report = path && *path ? fopen(path, "a") : NULL;
  if (!report) return;
  fprintf(report, "{\"missing\":\"%s\"}\n", name); // short enough to be written at once
  fclose(report);
}

static int missing(const char *name, char *warned) {
  if (__atomic_exchange_n(warned, 1, __ATOMIC_RELAXED)) return NOT_SUPPORTED;
  fprintf(stderr, "sol: this program calls %s; cuBLAS is machine code without PTX, which is not emulated\n",
          name);
  tell_audit(name);
  return NOT_SUPPORTED;
}

#define MISSING(entry)                                                                                       \
  API int entry(void) {                                                                                      \
    static char warned;                                                                                      \
    return missing(#entry, &warned);                                                                         \
  }
#include "blas/blas_missing.def"
#include "blas/blas_missing_lt.def"
