// A grid that waits for itself, clusters, extensible launches.
#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void reduce(const int *x, int *part, int *out, int n) {
  cg::grid_group grid = cg::this_grid();
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) atomicAdd(&sum, x[i]);
  __syncthreads();
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
  grid.sync();
  if (grid.thread_rank() == 0) {
    int total = 0;
    for (int i = 0; i < gridDim.x; i++) total += part[i];
    *out = total;
  }
}

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
__global__ void neighbours(int *out) {
  cg::cluster_group cluster = cg::this_cluster();
  __shared__ int mine;
  if (threadIdx.x == 0) mine = blockIdx.x * 10;
  cluster.sync();
  int *other = cluster.map_shared_rank(&mine, (cluster.block_rank() + 1) % cluster.num_blocks());
  if (threadIdx.x == 0) out[blockIdx.x] = *other;
  cluster.sync();
}
__global__ void __cluster_dims__(2, 1, 1) fixed_cluster(int *out) {
  if (threadIdx.x == 0) out[blockIdx.x] = cg::this_cluster().num_blocks();
}
#endif

int main() {
  const int n = 10000, blocks = 40;
  int *x, *part, *out, total = 0, expected = 0;
  OK(cudaMallocManaged(&x, n * sizeof(int)));
  OK(cudaMalloc(&part, 4096 * sizeof(int)));
  OK(cudaMalloc(&out, 64 * sizeof(int)));
  for (int i = 0; i < n; i++) expected += x[i] = i % 13;
  int supported = 0;
  OK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
  CHECK(supported);
  int count = n;
  void *args[] = {&x, &part, &out, &count};
  OK(cudaLaunchCooperativeKernel((void *)reduce, blocks, 128, args, 0, 0));
  OK(cudaMemcpy(&total, out, sizeof total, cudaMemcpyDeviceToHost));
  CHECK(total == expected);
  int per_sm = 0, sms = 0;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, reduce, 128, 0));
  OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  CHECK(per_sm > 0);
  IS(cudaLaunchCooperativeKernel((void *)reduce, per_sm * sms + 1, 128, args, 0, 0),
     cudaErrorCooperativeLaunchTooLarge);

  cudaDeviceProp p;
  OK(cudaGetDeviceProperties(&p, 0));
  if (p.clusterLaunch) {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute cluster[1];
    cluster[0].id = cudaLaunchAttributeClusterDimension;
    cluster[0].val.clusterDim.x = 4;
    cluster[0].val.clusterDim.y = cluster[0].val.clusterDim.z = 1;
    config.gridDim = 8;
    config.blockDim = 64;
    config.attrs = cluster;
    config.numAttrs = 1;
    OK(cudaLaunchKernelEx(&config, neighbours, out));
    int h[8];
    OK(cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost));
    CHECK(h[0] == 10 && h[3] == 0 && h[4] == 50 && h[7] == 40);
    int clusters = 0;
    OK(cudaOccupancyMaxActiveClusters(&clusters, neighbours, &config));
    CHECK(clusters > 0);
    cluster[0].val.clusterDim.x = 3;
    IS(cudaLaunchKernelEx(&config, neighbours, out), cudaErrorInvalidClusterSize);
    fixed_cluster<<<4, 32>>>(out);
    OK(cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost));
    CHECK(h[0] == 2 && h[3] == 2);
  }
  return failures != 0;
}
