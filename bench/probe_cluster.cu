// Atomics and loads on shared memory of a cluster's blocks, by the size of the cluster, by which block they go to and by how lanes are spread.
// usage: probe_cluster > cluster.json; nvcc -O3 -arch=sm_90 bench/probe_cluster.cu
// "to": own, next, any: of the blocks. "words": lanes at words of their own, at random ones of 256, at random ones of 2048. clocks: of an SM, for each
// instruction of a warp; 264 blocks of 256 threads, 64 instructions of each warp.
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

__device__ static uint32_t mix(uint32_t x) {
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}

template <int OP> __global__ void go(int *out, int to, int words, int ranks) { // OP: additions, additions with a result, loads
  __shared__ int bins[2048];
  cg::cluster_group c = cg::this_cluster();
  for (int i = threadIdx.x; i < 2048; i += blockDim.x) bins[i] = 0;
  c.sync();
  int s = 0, me = blockIdx.x * blockDim.x + threadIdx.x, rank = c.block_rank();
  for (int i = 0; i < 64; i++) {
    uint32_t v = mix(me * 64 + i);
    int at = words ? (v >> 8) % words : threadIdx.x, where = to == 0 ? rank : to == 1 ? (rank + 1) % ranks : v % ranks;
    int *p = c.map_shared_rank(&bins[at], where);
    if (OP == 0) atomicAdd(p, 1);
    if (OP == 1) s += atomicAdd(p, 1);
    if (OP == 2) s += *(volatile int *)p;
  }
  c.sync();
  if (s == 0x12345678) out[0] = s;
}

int main() {
  int *out;
  bool comma = false;
  cudaMalloc(&out, 4);
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  static const char *const ops[] = {"red", "atom", "load"}, *const tos[] = {"own", "next", "any"};
  void (*const kernels[])(int *, int, int, int) = {go<0>, go<1>, go<2>};
  for (int op = 0; op < 3; op++)
    for (int ranks : {2, 4, 8})
      for (int to = 0; to < 3; to++)
        for (int words : {0, 256, 2048}) {
          cudaLaunchConfig_t config = {};
          cudaLaunchAttribute attribute;
          attribute.id = cudaLaunchAttributeClusterDimension;
          attribute.val.clusterDim.x = ranks, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
          config.gridDim = 264, config.blockDim = 256, config.attrs = &attribute, config.numAttrs = 1;
          float best = 1e9f;
          for (int t = 0; t < 3; t++) {
            cudaEventRecord(a);
            cudaLaunchKernelEx(&config, kernels[op], out, to, words, ranks);
            cudaEventRecord(b), cudaEventSynchronize(b);
            float ms;
            cudaEventElapsedTime(&ms, a, b);
            if (t && ms < best) best = ms;
          }
          printf("%s{\"op\": \"%s\", \"ranks\": %d, \"to\": \"%s\", \"words\": %d, \"us\": %.2f, \"clocks\": %.2f}", comma ? ",\n" : "[", ops[op], ranks, tos[to], words, best * 1e3,
                 best * 1e-3 * 1.98e9 / (2 * 8 * 64));
          comma = true;
        }
  printf("]\n");
  return cudaDeviceSynchronize() != cudaSuccess;
}
