// The life of a block of the specialised GEMM kernel: the clock at its stations, in a graph of launches over one set of matrices (in
// L2) or many (in DRAM). JSON on standard output; clocks are since a block's start, the median of all blocks.
//   nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -Ikernels -I. bench/probe_life.cu -o probe_life -lcuda && ./probe_life
#include "common.cuh"
#include "gemm/gemm.h"
#include "gemm/gemm_wgmma.cuh"
#include "hopper.cuh"
#include <algorithm>
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>
#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_) printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)), exit(2);                      \
  } while (0)
typedef GemmWgmma<KIND_BF16, 0, 1, 128, 256, 4> G;
typedef G::Loop L;
enum { STAMPS = 12 };
struct P {
  GemmTiledParams g;
  long long *out;
};
__device__ __forceinline__ long long now() {
  long long t;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
  return t;
}

// Stations: 1 barriers made, 2 predecessor waited for, 3 registers moved, 4 first stage there, 5 multiplied, 6 finished, 7 stores issued,
// 8 stores read, 9 end; 10 and 11: the copying thread's start and end.
__global__ void __launch_bounds__(384, 1) stamped(const __grid_constant__ P p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  G::Shared *s = (G::Shared *)memory;
  bool who = threadIdx.x == 0;
  long long t[9];
  t[0] = now();
  const GemmTiledParams &g = p.g;
  GemmShare share = gemm_share(g);
  int tiles = g.rows * g.columns * g.batch;
  if (threadIdx.x == L::CONSUMERS) tensor_prefetch_map(&g.c);
  L::start(&s->ring, g, share);
  t[1] = now();
  let_successor_start();
  wait_for_predecessor();
  t[2] = now();
  if (__shfl_sync(~0u, (int)threadIdx.x, 0) >= L::CONSUMERS) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (gemm_copies(L::CONSUMERS)) {
      long long a = now();
      G::produce(s, g, tiles, share);
      long long b = now();
      p.out[blockIdx.x * STAMPS + 10] = a;
      p.out[blockIdx.x * STAMPS + 11] = b;
    }
    __syncwarp();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    t[3] = now();
    int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0), thread = threadIdx.x % 128, stored = 0;
    int steps = (g.k + L::DEEP - 1) / L::DEEP;
    int2 by = G::turns(share);
    L::Turn turn;
    float d[1][L::REGS];
    for (int index = by.x; index < tiles; index += by.y) {
      GemmTile at = G::tile_at(g, index, share);
      barrier_wait(&s->ring.full[0], 0);
      t[4] = now();
      L::consume(&s->ring, d, turn, steps, group, thread, share);
      t[5] = now();
      GemmPlace place = {at.row + group * 64 + thread / 32 * 16 + thread % 32 / 4,
                         at.column + thread % 4 * 2,
                         at.batch,
                         g.m,
                         g.n,
                         0};
      gemm_finish(d[0], &g.end, &place, g.swapped);
      t[6] = now();
      G::store<true>(s, g, d[0], at, at.row + group * 64, group, thread, stored);
      t[7] = now();
    }
    if (thread == 0) tensor_store_read<0>();
    t[8] = now();
    if (who)
      for (int i = 0; i < 9; i++) p.out[blockIdx.x * STAMPS + i] = t[i];
  }
  if (share.reached() > 1) cluster_meet();
  if (who) p.out[blockIdx.x * STAMPS + 9] = now();
}
typedef CUresult (*Enc)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                        const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                        CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Enc enc;
static GemmMap map_of(void *at, uint64_t x, uint64_t y) {
  CUtensorMap m;
  cuuint64_t dims[3] = {x, y, 1}, strides[2] = {x * 2, x * y * 2};
  cuuint32_t box[3] = {64, 64, 1}, one[3] = {1, 1, 1};
  if (enc(&m, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, at, dims, strides, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,
          CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    printf("map\n"), exit(2);
  GemmMap g;
  memcpy(&g, &m, sizeof g);
  return g;
}
static void go(int size, int m, int n, int kk, int sets, const char *comma) {
  uint8_t *mem;
  long long *out;
  size_t a = (size_t)m * kk * 2, b = (size_t)n * kk * 2, c = (size_t)m * n * 2, all = a + b + c;
  CHECK(cudaMalloc(&mem, all * sets));
  CHECK(cudaMalloc(&out, 4096 * STAMPS * 8));
  CHECK(cudaMemset(mem, 0, all * sets));
  std::vector<P> ps(sets);
  int shared = GEMM_SHARED(128, 256, 4, 1);
  CHECK(cudaFuncSetAttribute(stamped, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  cudaStream_t st;
  CHECK(cudaStreamCreate(&st));
  cudaGraph_t graph;
  cudaGraphExec_t ex;
  cudaEvent_t e0, e1;
  CHECK(cudaEventCreate(&e0));
  CHECK(cudaEventCreate(&e1));
  int blocks = 0;
  for (int i = 0; i < sets; i++) {
    GemmTiledParams g = {};
    uint8_t *at = mem + all * i;
    g.end.c = at + a + b;
    g.end.c_stride = n;
    g.end.alpha = 1;
    g.end.out_kind = KIND_BF16;
    g.end.bias_kind = KIND_BF16;
    g.m = m, g.n = n, g.k = kk, g.batch = 1;
    g.a = map_of(at, kk, m), g.b = map_of(at + a, n, kk), g.c = map_of(at + a + b, n, m);
    g.rows = m / (128 * size), g.columns = n / 256, g.group = 8 / size, g.down = size, g.across = 1;
    gemm_divide_by(&g, 1);
    blocks = g.rows * g.columns * size;
    ps[i] = {g, out};
  }
  CHECK(cudaStreamBeginCapture(st, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < sets; i++) {
    cudaLaunchConfig_t c = {};
    c.gridDim = {(unsigned)blocks, 1, 1};
    c.blockDim = {384, 1, 1};
    c.dynamicSmemBytes = shared;
    c.stream = st;
    cudaLaunchAttribute at = {};
    at.id = cudaLaunchAttributeClusterDimension;
    at.val.clusterDim = {(unsigned)size, 1, 1};
    c.attrs = &at;
    c.numAttrs = size > 1;
    CHECK(cudaLaunchKernelEx(&c, stamped, ps[i]));
  }
  CHECK(cudaStreamEndCapture(st, &graph));
  CHECK(cudaGraphInstantiate(&ex, graph, 0));
  std::vector<float> us;
  for (int r = 0; r < 12; r++) {
    CHECK(cudaEventRecord(e0, st));
    CHECK(cudaGraphLaunch(ex, st));
    CHECK(cudaEventRecord(e1, st));
    CHECK(cudaEventSynchronize(e1));
    float ms;
    cudaEventElapsedTime(&ms, e0, e1);
    us.push_back(ms * 1000 / sets);
  }
  std::sort(us.begin(), us.end());
  std::vector<long long> h(blocks * STAMPS);
  CHECK(cudaMemcpy(h.data(), out, h.size() * 8, cudaMemcpyDeviceToHost));
  printf(
      "%s{\"m\": %d, \"n\": %d, \"k\": %d, \"cluster\": %d, \"sets\": %d, \"blocks\": %d, \"us\": %.3f, \"clocks\": [",
      comma, m, n, kk, size, sets, blocks, us[us.size() / 2]);
  for (int i = 1; i < STAMPS; i++) {
    std::vector<long long> v;
    for (int b = 0; b < blocks; b++) v.push_back(h[b * STAMPS + i] - h[b * STAMPS]);
    std::sort(v.begin(), v.end());
    printf("%s%lld", i > 1 ? ", " : "", v[v.size() / 2]);
  }
  printf("]}");
  CHECK(cudaFree(mem));
  CHECK(cudaFree(out));
  cudaGraphExecDestroy(ex);
  cudaGraphDestroy(graph);
}
int main() {
  cudaDriverEntryPointQueryResult q;
  CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", (void **)&enc, cudaEnableDefault, &q));
  cudaDeviceProp prop;
  CHECK(cudaGetDeviceProperties(&prop, 0));
  printf("{\"schema\": 1, \"gpu\": \"%s\", \"command\": \"probe_life (bench/probe_life.cu)\", \"life\": [\n",
         prop.name);
  const char *comma = "";
  for (int sets : {1, 100}) {
    go(1, 1024, 1024, 256, sets, comma), comma = ",\n";
    go(2, 1024, 1024, 256, sets, comma);
    go(1, 1024, 1024, 1024, sets, comma);
    go(1, 2048, 2048, 256, sets, comma);
  }
  printf("]}\n");
}
