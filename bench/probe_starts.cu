// What comes before a kernel's own work: what a launch in a graph takes by its cluster, its shared memory and its
// parameters, and how long the first tensor copy takes, whose descriptor has to be fetched. JSON on standard output.
//   nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -Ikernels bench/probe_starts.cu -o probe_starts && ./probe_starts
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

#include "hopper.cuh"

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_) printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)), exit(2);                      \
  } while (0)

enum { NODES = 200, REPLAYS = 15 };

struct Few {
  uint32_t *sink;
  uint32_t words[1];
};
struct Many {
  uint32_t *sink;
  uint32_t words[180];
};

template <class P> __global__ void nothing(const __grid_constant__ P p) {
  if (p.words[0] == 12345) *p.sink = threadIdx.x;
}
template <class P> __global__ void meets(const __grid_constant__ P p) { // its cluster, at its start and end
  if (p.words[0] == 12345) *p.sink = threadIdx.x;
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" ::: "memory");
  if (p.words[0] == 12346) *p.sink = threadIdx.x;
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" ::: "memory");
}

static double median(std::vector<float> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Microseconds a launch, of a graph of NODES.
template <class P> static double launches(void (*kernel)(const P), int blocks, int threads, int shared, int cluster) {
  P p = {};
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t a, b;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&a));
  CHECK(cudaEventCreate(&b));
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {(unsigned)cluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks), config.blockDim = dim3(threads), config.dynamicSmemBytes = shared, config.stream = stream;
  config.attrs = &attribute, config.numAttrs = cluster ? 1 : 0;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < NODES; i++) CHECK(cudaLaunchKernelEx(&config, kernel, p));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  std::vector<float> ms(REPLAYS);
  for (int i = -2; i < REPLAYS; i++) {
    CHECK(cudaEventRecord(a, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaEventRecord(b, stream));
    CHECK(cudaStreamSynchronize(stream));
    if (i >= 0) CHECK(cudaEventElapsedTime(&ms[i], a, b));
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return median(ms) * 1000 / NODES;
}

template <class P> static void show_launches(const char *name, void (*kernel)(const P), const char *comma) {
  const struct {
    int blocks, threads, shared, cluster;
  } cases[] = {{2, 128, 0, 0},   {2, 384, 0, 0},        {132, 128, 0, 0},      {132, 384, 0, 0},      {2, 384, 200 << 10, 0}, {132, 384, 200 << 10, 0},
               {2, 128, 0, 2},   {2, 384, 200 << 10, 2}, {132, 384, 200 << 10, 2}, {132, 128, 0, 2},      {132, 128, 0, 4},        {128, 128, 0, 8},
               {528, 128, 0, 0}, {528, 128, 0, 2}};
  for (auto c : cases)
    printf("%s{\"kernel\": \"%s\", \"bytes\": %d, \"blocks\": %d, \"threads\": %d, \"shared\": %d, \"cluster\": %d, \"us\": %.3f}", comma, name,
           (int)sizeof(P), c.blocks, c.threads, c.shared, c.cluster, launches(kernel, c.blocks, c.threads, c.shared, c.cluster)),
        comma = ",\n ";
}

// The first copies of a block: clocks of each; a prefetch of the descriptor ahead where asked for, with 2000 clocks for it.
__global__ void copies(const __grid_constant__ CUtensorMap map, const uint8_t *plain, int prefetch, long long *out) {
  __shared__ __align__(1024) uint8_t to[128 * 64];
  __shared__ uint64_t bar;
  if (threadIdx.x) return;
  barrier_init(&bar, 1), barrier_init_done();
  if (prefetch) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
    for (long long start = clock64(); clock64() - start < 2000;)
      ;
  }
  for (int i = 0; i < 4; i++) {
    long long start = clock64();
    barrier_expect(&bar, 128 * 64);
    tensor_load(to, &map, &bar, 0, i * 64, 0);
    barrier_wait(&bar, i & 1);
    out[blockIdx.x * 8 + i] = clock64() - start;
  }
  for (int i = 0; i < 2; i++) {
    long long start = clock64();
    barrier_expect(&bar, 128 * 64);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(plain + blockIdx.x * 16384 + i * 8192), "r"(128 * 64), "r"(shared_address(&bar))
                 : "memory");
    barrier_wait(&bar, i & 1);
    out[blockIdx.x * 8 + 4 + i] = clock64() - start;
  }
}

static CUtensorMap map_of(uint8_t *data, int rows) {
  typedef CUresult Encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                          const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  Encode *encode;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &found));
  cuuint64_t dims[] = {64, 4096, 1}, strides[] = {128, 128 * 4096};
  cuuint32_t box[] = {64, (cuuint32_t)rows, 1}, steps[] = {1, 1, 1};
  CUtensorMap map;
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, data, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    exit(2);
  return map;
}

static void show_copies(int blocks, int prefetch, const char *comma) {
  uint8_t *data;
  long long *clocks;
  CHECK(cudaMalloc(&data, 4 << 20));
  CHECK(cudaMalloc(&clocks, 1 << 16));
  CUtensorMap map = map_of(data, 64);
  std::vector<float> each[6];
  for (int turn = 0; turn < 24; turn++) {
    long long host[132 * 8];
    copies<<<blocks, 32>>>(map, data, prefetch, clocks);
    CHECK(cudaMemcpy(host, clocks, blocks * 8 * sizeof host[0], cudaMemcpyDeviceToHost));
    for (int b = 0; b < blocks && turn > 3; b++)
      for (int i = 0; i < 6; i++) each[i].push_back((float)host[b * 8 + i]);
  }
  printf("%s{\"blocks\": %d, \"prefetched\": %d, \"tensor\": [%.0f, %.0f, %.0f, %.0f], \"bulk\": [%.0f, %.0f]}", comma, blocks, prefetch, median(each[0]),
         median(each[1]), median(each[2]), median(each[3]), median(each[4]), median(each[5]));
  CHECK(cudaFree(data));
  CHECK(cudaFree(clocks));
}

// COUNT multiply-adds in straight-line code, four chains, gone through twice: the first time has to fetch them.
template <int COUNT> __global__ void straight(long long *out, float *sink, float x) {
  float a[4] = {x, x + 1, x + 2, x + 3};
#pragma unroll 1
  for (int turn = 0; turn < 3; turn++) {
    __syncthreads();
    long long start = clock64();
#pragma unroll
    for (int i = 0; i < COUNT; i++) a[i % 4] = a[i % 4] * x + (float)(i % 7);
    asm volatile("" ::"f"(a[0]), "f"(a[1]), "f"(a[2]), "f"(a[3]) : "memory");
    if (threadIdx.x == 0) out[blockIdx.x * 3 + turn] = clock64() - start;
  }
  if (a[0] + a[1] + a[2] + a[3] == 12345.0f) *sink = x;
}

template <int COUNT> static void show_straight(int blocks, int threads, const char *comma) {
  long long *clocks, host[132 * 3];
  CHECK(cudaMalloc(&clocks, 1 << 16));
  std::vector<float> each[3];
  for (int turn = 0; turn < 20; turn++) {
    straight<COUNT><<<blocks, threads>>>(clocks, (float *)(clocks + 4000), 0.5f);
    CHECK(cudaMemcpy(host, clocks, blocks * 3 * sizeof host[0], cudaMemcpyDeviceToHost));
    for (int b = 0; b < blocks && turn > 3; b++)
      for (int i = 0; i < 3; i++) each[i].push_back((float)host[b * 3 + i]);
  }
  printf("%s{\"instructions\": %d, \"blocks\": %d, \"threads\": %d, \"clocks\": [%.0f, %.0f, %.0f]}", comma, COUNT, blocks, threads,
         median(each[0]), median(each[1]), median(each[2]));
  CHECK(cudaFree(clocks));
}

// A box of 64 rows into both blocks of a cluster: by one, by each a half, and each its own; clocks until a block has its 64 rows.
__global__ void __cluster_dims__(2, 1, 1) shared_copies(const __grid_constant__ CUtensorMap map, const __grid_constant__ CUtensorMap half, long long *out) {
  __shared__ __align__(1024) uint8_t to[128 * 64];
  __shared__ uint64_t bar;
  uint32_t rank = block_rank();
  if (threadIdx.x == 0) barrier_init(&bar, 1), barrier_init_done();
  cluster_sync();
  for (int i = 0; i < 6 && threadIdx.x == 0; i++) {
    long long start = clock64();
    barrier_expect(&bar, 128 * 64);
    if (i < 3) tensor_load(to, &map, &bar, 0, (i * 2 + rank) * 64, 0);
    else tensor_load_all(to + rank * 4096, &half, &bar, 0, i * 64 + rank * 32, 0, 3);
    barrier_wait(&bar, i & 1);
    out[blockIdx.x * 6 + i] = clock64() - start;
  }
  cluster_sync();
}

static void show_multicast(int blocks, const char *comma) {
  uint8_t *data;
  long long *clocks, host[132 * 6];
  CHECK(cudaMalloc(&data, 4 << 20));
  CHECK(cudaMalloc(&clocks, 1 << 16));
  CUtensorMap map = map_of(data, 64), half = map_of(data, 32);
  std::vector<float> each[6];
  for (int turn = 0; turn < 24; turn++) {
    shared_copies<<<blocks, 32>>>(map, half, clocks);
    CHECK(cudaMemcpy(host, clocks, blocks * 6 * sizeof host[0], cudaMemcpyDeviceToHost));
    for (int b = 0; b < blocks && turn > 3; b++)
      for (int i = 0; i < 6; i++) each[i].push_back((float)host[b * 6 + i]);
  }
  printf("%s{\"blocks\": %d, \"own\": [%.0f, %.0f, %.0f], \"halves_for_both\": [%.0f, %.0f, %.0f]}", comma, blocks, median(each[0]), median(each[1]),
         median(each[2]), median(each[3]), median(each[4]), median(each[5]));
  CHECK(cudaFree(data));
  CHECK(cudaFree(clocks));
}

int main(void) {
  printf("{\"schema\": 1, \"command\": \"probe_starts (bench/probe_starts.cu)\",\n\"launch_us\": [");
  show_launches("nothing", nothing<Few>, "");
  show_launches("nothing", nothing<Many>, ",\n ");
  show_launches("meets", meets<Few>, ",\n ");
  printf("],\n\"first_copies_clocks\": [");
  show_copies(1, 0, "");
  show_copies(1, 1, ", ");
  show_copies(132, 0, ", ");
  show_copies(132, 1, ", ");
  printf("],\n\"straight_line_clocks\": [");
  show_straight<512>(1, 32, "");
  show_straight<2048>(1, 32, ", ");
  show_straight<2048>(1, 384, ", ");
  show_straight<2048>(132, 384, ", ");
  show_straight<4096>(132, 384, ", ");
  printf("],\n\"multicast_clocks\": [");
  show_multicast(2, "");
  show_multicast(132, ", ");
  printf("]}\n");
  return 0;
}
