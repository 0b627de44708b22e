// Atomics of a few lanes of each warp on words of one line, by which lanes they are: neighbours, or spread over the warp.
// usage: probe_active > active.json; nvcc -O3 -arch=sm_90 bench/probe_active.cu
// "active": lanes of a warp; "place": first: the first ones; spread: as far apart as can be. "at": same: all at one word; own: each at a word of
// its own, side by side; any: at any word of the line. clocks: of an instruction of a warp, of all the GPU (at 1.98 GHz).
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

enum Op { RED, ATOM, MAXIMUM, REAL, DOUBLE, OPS };
static const char *const op_names[] = {"red", "atom", "max", "float", "double"};
static const char *const at_names[] = {"same", "own", "any"};

template <int OP> __global__ void go(char *base, int active, int spread, int at, unsigned *out) {
  unsigned lane = threadIdx.x % 32, step = spread ? 32 / active : 1, sum = 0;
  bool mine = lane % step == 0 && lane / step < (unsigned)active;
  const int size = OP == DOUBLE ? 8 : 4;
  for (int i = 0; i < 8; i++) {
    unsigned r = (blockIdx.x * blockDim.x + threadIdx.x) * 8 + i;
    r ^= r >> 16, r *= 0x7feb352du, r ^= r >> 15, r *= 0x846ca68bu, r ^= r >> 16;
    char *p = base + (at == 0 ? 0 : at == 1 ? lane / step * size : r % (128 / size) * size);
    if (!mine) continue;
    if (OP == RED) atomicAdd((int *)p, (int)r);
    if (OP == ATOM) sum += atomicAdd((int *)p, (int)r);
    if (OP == MAXIMUM) atomicMax((int *)p, (int)r);
    if (OP == REAL) atomicAdd((float *)p, (float)r);
    if (OP == DOUBLE) atomicAdd((double *)p, (double)r);
  }
  if (sum == 0x12345678u) out[0] = sum;
}

static bool comma;
template <int OP> static void measure(char *base, unsigned *out) {
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  for (int at = 0; at < 3; at++)
    for (int spread = 0; spread < 2; spread++)
      for (int active : {1, 2, 4, 5, 8, 16, 32}) {
        float best = 1e9f;
        for (int t = 0; t < 3; t++) {
          cudaEventRecord(a);
          go<OP><<<1056, 256>>>(base, active, spread, at, out);
          cudaEventRecord(b), cudaEventSynchronize(b);
          float ms;
          cudaEventElapsedTime(&ms, a, b);
          if (t && ms < best) best = ms;
        }
        printf("%s{\"op\": \"%s\", \"at\": \"%s\", \"place\": \"%s\", \"active\": %d, \"us\": %.2f, \"clocks\": %.3f}", comma ? ",\n" : "[", op_names[OP], at_names[at],
               spread ? "spread" : "first", active, best * 1e3, best * 1e6 / (8448 * 8) * 1.98);
        comma = true;
      }
}

int main() {
  char *base;
  unsigned *out;
  if (cudaMalloc(&base, 1 << 20) || cudaMalloc(&out, 4) || cudaMemset(base, 0, 1 << 20)) return 1;
  measure<RED>(base, out), measure<ATOM>(base, out), measure<MAXIMUM>(base, out), measure<REAL>(base, out), measure<DOUBLE>(base, out);
  puts("]");
  return cudaDeviceSynchronize() ? 1 : 0;
}
