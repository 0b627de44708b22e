// Libraries loaded at run time, calls that are not there, NULL and stale arguments.
#include "check.h"

static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .u32 offset = 7;\n"
    ".visible .entry fill(.param .u64 p) {\n.reg .u64 %rd<4>; .reg .u32 %r<4>;\n"
    "ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1; mov.u32 %r1, %tid.x;\n"
    "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; ld.global.u32 %r2, [offset];\n"
    "add.u32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1; ret; }\n";

int main() {
  cudaLibrary_t library;
  cudaKernel_t kernel;
  OK(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cudaLibraryGetKernel(&kernel, library, "fill"));
  IS(cudaLibraryGetKernel(&kernel, library, "nothing"), cudaErrorSymbolNotFound);
  OK(cudaLibraryGetKernel(&kernel, library, "fill"));
  unsigned count = 0;
  OK(cudaLibraryGetKernelCount(&count, library));
  CHECK(count == 1);
  int *x, h[32];
  OK(cudaMalloc(&x, sizeof h));
  void *args[] = {&x};
  OK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(32), args, 0, 0));
  OK(cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(h[0] == 7 && h[31] == 38);
  void *address;
  size_t bytes;
  OK(cudaLibraryGetGlobal(&address, &bytes, library, "offset"));
  CHECK(bytes == 4);
  OK(cudaMemset(address, 0, 4));
  OK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(32), args, 0, 0));
  OK(cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(h[31] == 31);
  OK(cudaLibraryUnload(library));
  IS(cudaLibraryUnload(library), cudaErrorInvalidResourceHandle);
  IS(cudaLibraryLoadFromFile(&library, "/nonexistent", nullptr, nullptr, 0, nullptr, nullptr, 0),
     cudaErrorFileNotFound);

  cudaExternalMemory_t memory;
  cudaExternalMemoryHandleDesc desc = {};
  IS(cudaImportExternalMemory(&memory, &desc), cudaErrorNotSupported);
  IS(cudaImportExternalMemory(&memory, &desc), cudaErrorNotSupported);
  return failures != 0;
}
