// Handles, their settings, versions and names of statuses.
#include <stdio.h>
#include <stdlib.h>

#include "blas/blas.h"

enum { VERSION = 130000, RUNTIME = 13000 };
#define MARK UINT64_C(0x534f4c424c415331)

bool blas_is_handle(const BlasHandle *h) {
  return h && h->mark == MARK;
}

int blas_create(BlasHandle **handle) {
  if (!handle) return BLAS_NO_HANDLE;
  *handle = calloc(1, sizeof **handle);
  if (!*handle) return BLAS_NO_ROOM;
  (*handle)->mark = MARK;
  return BLAS_OK;
}

int blas_destroy(BlasHandle *h) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  h->mark = 0;
  free(h);
  return BLAS_OK;
}

BLAS_API int cublasCreate_v2(BlasHandle **handle) {
  return blas_create(handle);
}
BLAS_API int cublasDestroy_v2(BlasHandle *handle) {
  return blas_destroy(handle);
}
BLAS_API int cublasLtCreate(BlasHandle **handle) {
  return blas_create(handle);
}
BLAS_API int cublasLtDestroy(BlasHandle *handle) {
  return blas_destroy(handle);
}

// A setting of a handle: Set keeps it, Get gives it back.
#define SETTING(set, get, type, field)                                                                       \
  BLAS_API int set(BlasHandle *handle, type value) {                                                         \
    if (!blas_is_handle(handle)) return BLAS_NO_HANDLE;                                                      \
    handle->field = value;                                                                                   \
    return BLAS_OK;                                                                                          \
  }                                                                                                          \
  BLAS_API int get(const BlasHandle *handle, type *value) {                                                  \
    if (!blas_is_handle(handle)) return BLAS_NO_HANDLE;                                                      \
    if (!value) return BLAS_BAD_VALUE;                                                                       \
    *value = handle->field;                                                                                  \
    return BLAS_OK;                                                                                          \
  }
SETTING(cublasSetStream_v2, cublasGetStream_v2, void *, stream)
SETTING(cublasSetMathMode, cublasGetMathMode, int, math)
SETTING(cublasSetPointerMode_v2, cublasGetPointerMode_v2, int, pointers)
SETTING(cublasSetAtomicsMode, cublasGetAtomicsMode, int, atomics)
SETTING(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sms)

BLAS_API int cublasSetWorkspace_v2(const BlasHandle *handle, void *workspace, size_t bytes) {
  (void)workspace, (void)bytes;
  return blas_is_handle(handle) ? BLAS_OK : BLAS_NO_HANDLE;
}
BLAS_API int cublasGetVersion_v2(const BlasHandle *handle, int *version) { // NULL is allowed
  (void)handle;
  if (!version) return BLAS_BAD_VALUE;
  *version = VERSION;
  return BLAS_OK;
}
static int property(int which, int *value) { // libraryPropertyType: major, minor, patch
  if (!value || which < 0 || which > 2) return BLAS_BAD_VALUE;
  *value = which ? 0 : VERSION / 10000;
  return BLAS_OK;
}
BLAS_API int cublasGetProperty(int which, int *value) {
  return property(which, value);
}
BLAS_API int cublasLtGetProperty(int which, int *value) {
  return property(which, value);
}
BLAS_API size_t cublasGetCudartVersion(void) {
  return RUNTIME;
}
BLAS_API size_t cublasLtGetVersion(void) {
  return VERSION;
}
BLAS_API size_t cublasLtGetCudartVersion(void) {
  return RUNTIME;
}

static const char *status_name(int status) {
  switch (status) {
  case BLAS_OK: return "CUBLAS_STATUS_SUCCESS";
  case BLAS_NO_HANDLE: return "CUBLAS_STATUS_NOT_INITIALIZED";
  case BLAS_NO_ROOM: return "CUBLAS_STATUS_ALLOC_FAILED";
  case BLAS_BAD_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
  case BLAS_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
  case BLAS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
  default: return "unknown cuBLAS status";
  }
}
BLAS_API const char *cublasGetStatusName(int status) {
  return status_name(status);
}
BLAS_API const char *cublasGetStatusString(int status) {
  return status_name(status);
}
BLAS_API const char *cublasLtGetStatusName(int status) {
  return status_name(status);
}
BLAS_API const char *cublasLtGetStatusString(int status) {
  return status_name(status);
}
