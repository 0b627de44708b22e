// The driver's interface of build/shim, for tests that call it.
#ifndef SOL_TEST_LIBCUDA_RIG_H
#define SOL_TEST_LIBCUDA_RIG_H

#include "check.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void *library;
static void *find(const char *name) {
  void *found = dlsym(library, name);
  CHECK_MSG(found, "no %s", name);
  return found;
}
// cuda.h's names stand for versions: CU(cuMemAlloc)(...) calls cuMemAlloc_v2.
#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)
#define CU(name)    ((__typeof__(&name))find(TEXT(name)))
#define OK(call)    CHECK_INT(call, CUDA_SUCCESS)

static CUcontext begin(void) {
  CUcontext context = NULL;
  OK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
  OK(CU(cuCtxSetCurrent)(context));
  return context;
}

int main(int argc, char **argv) {
  char path[4096];
  const char *sol = getenv("SOL") ? getenv("SOL") : "build/sol";
  snprintf(path, sizeof path, "%.*s/shim/libcuda.so.1", (int)(strrchr(sol, '/') - sol), sol);
  library = dlopen(path, RTLD_NOW);
  if (!library) {
    printf("%s\n", dlerror());
    return access(path, F_OK) ? 77 : 1;
  }
  return check_main(argc, argv);
}

#endif
