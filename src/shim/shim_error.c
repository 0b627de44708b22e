// Errors: names, texts, the last one of a thread.
#include "shim/shim.h"

cudaError_t cudaGetLastError(void) {
  return shim_last_error(true);
}

cudaError_t cudaPeekAtLastError(void) {
  return shim_last_error(false);
}

typedef struct ErrorText {
  cudaError_t code;
  const char *name, *text;
} ErrorText;
static const ErrorText texts[] = {
#define SHIM_ERROR(code, text) {code, #code, text},
#include "shim/errors.def"
#undef SHIM_ERROR
};

static const ErrorText *find_text(cudaError_t code) {
  static const ErrorText unknown = {0, "unrecognized error code", "unrecognized error code"};
  for (size_t i = 0; i < SOL_COUNT(texts); i++)
    if (texts[i].code == code) return &texts[i];
  return &unknown;
}

const char *cudaGetErrorName(cudaError_t error) {
  return find_text(error)->name;
}

const char *cudaGetErrorString(cudaError_t error) {
  return find_text(error)->text;
}
