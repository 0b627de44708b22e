#!/usr/bin/env bash
# The nvcc that scripts/cuda-env finds turns a kernel into PTX and into machine code, and links a program.
set -u
nvcc=$(scripts/cuda-env nvcc) || { echo "no CUDA 13 compiler" && exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
check() { if "$@"; then passed=$((passed + 1)); else echo "failed: $*" && failed=$((failed + 1)); fi; }

cat >"$scratch/k.cu" <<'CU'
#include <cooperative_groups.h>
#include <cuda/std/limits>
#include <cuda_bf16.h>
extern "C" __global__ void scale(const __nv_bfloat16 *x, float *y, float s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = s * __expf(__bfloat162float(x[i]));
  cooperative_groups::this_thread_block().sync();
}
int main() {
  scale<<<1, 32>>>(0, 0, cuda::std::numeric_limits<float>::max(), 0);
  return cudaGetLastError() == cudaSuccess;
}
CU
check "$nvcc" -ptx -arch=compute_75 "$scratch/k.cu" -o "$scratch/k.ptx"
check grep -q 'entry scale' "$scratch/k.ptx"
for arch in sm_80 sm_90a sm_100a sm_120; do check "$nvcc" -cubin -arch=$arch "$scratch/k.cu" -o "$scratch/k.cubin"; done
check test -s "$scratch/k.cubin"
check "$nvcc" -arch=sm_80 -rdc=true -cudart shared "$scratch/k.cu" -o "$scratch/k"
check test -f "$(scripts/cuda-env include)/cuda_occupancy.h"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
