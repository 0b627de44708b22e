// Uses the runtime, and has no kernel.
#include <cuda_runtime.h>

int main() {
  void *memory;
  return cudaMalloc(&memory, 100) != cudaSuccess;
}
