// Atomics on words of some lines, by their number, by the bytes between them and by what lanes of a warp have in common.
// usage: probe_atomics > atomics.json; nvcc -O3 -arch=sm_90 bench/probe_atomics.cu
// "lanes": 540672 of 2112 warps, 8 instructions each. "at": apart: each lane at a line of its own choice, the first word; any: at any
// word of it; together: a warp at one line, each lane at its word; same: a warp at one word. ns: of an instruction of a warp, of all the GPU.
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

enum Op { RED, ATOM, EXCH, CAS, REAL, DOUBLE, MAXIMUM, OPS };
enum At { APART, ANY, TOGETHER, SAME, ATS };
static const char *const op_names[] = {"red", "atom", "exch", "cas", "float", "double", "max"}, *const at_names[] = {"apart", "any", "together", "same"};

__device__ static uint32_t mix(uint32_t x) {
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}

template <int OP> __global__ void go(char *base, uint32_t lines, size_t stride, int at, unsigned *out) {
  uint32_t me = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, sum = 0;
  const int size = OP == DOUBLE ? 8 : 4;
  for (int i = 0; i < 8; i++) {
    uint32_t r = mix((at == TOGETHER || at == SAME ? me / 32 : me) * 8 + i);
    char *p = base + (size_t)(r % lines) * stride + (at == ANY ? (r >> 20) % (128 / size) * size : at == TOGETHER ? lane % (128 / size) * size : 0);
    if (OP == RED) atomicAdd((int *)p, 1);
    if (OP == ATOM) sum += atomicAdd((int *)p, 1);
    if (OP == EXCH) sum += atomicExch((unsigned *)p, me);
    if (OP == CAS) sum += atomicCAS((unsigned *)p, me, me + 1);
    if (OP == REAL) atomicAdd((float *)p, 1.0f);
    if (OP == DOUBLE) atomicAdd((double *)p, 1.0);
    if (OP == MAXIMUM) sum += atomicMax((int *)p, (int)r);
  }
  if (sum == 0x12345678u) out[0] = sum;
}

static bool comma;
template <int OP> static void measure(char *base, unsigned *out) {
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  for (int at = 0; at < ATS; at++)
    for (size_t stride : {128, 512, 4096, 65536})
      for (uint32_t lines : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 256u, 1024u, 8192u}) {
        if ((size_t)lines * stride > (64u << 20) || (lines == 1 && stride > 128)) continue;
        float best = 1e9f;
        for (int t = 0; t < 3; t++) {
          cudaEventRecord(a);
          go<OP><<<264, 256>>>(base, lines, stride, at, out);
          cudaEventRecord(b), cudaEventSynchronize(b);
          float ms;
          cudaEventElapsedTime(&ms, a, b);
          if (t && ms < best) best = ms;
        }
        printf("%s{\"op\": \"%s\", \"at\": \"%s\", \"stride\": %zu, \"lines\": %u, \"us\": %.2f, \"ns\": %.4f}", comma ? ",\n" : "[", op_names[OP], at_names[at], stride, lines,
               best * 1e3, best * 1e6 / (2112 * 8));
        comma = true;
      }
}

int main() {
  char *base;
  unsigned *out;
  cudaMalloc(&base, 64 << 20), cudaMalloc(&out, 4);
  cudaMemset(base, 0, 64 << 20);
  measure<RED>(base, out), measure<ATOM>(base, out), measure<EXCH>(base, out), measure<CAS>(base, out);
  measure<REAL>(base, out), measure<DOUBLE>(base, out), measure<MAXIMUM>(base, out);
  printf("]\n");
  return cudaDeviceSynchronize() != cudaSuccess;
}
