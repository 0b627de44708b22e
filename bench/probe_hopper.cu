// What asynchronous copies, mbarriers and wgmma take on this GPU, for src/machine/machine.def; and whether im2col copies do what
// the emulator does. JSON on standard output.
//   nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -Ikernels bench/probe_hopper.cu -lcuda -o probe_hopper && ./probe_hopper
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

__device__ static void bulk_load(void *to, const void *from, uint64_t *bar, int bytes) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(bar))
               : "memory");
}

enum { ROUNDS = 64, STAGES = 8, STAGE = 16384 };

// One thread: clocks from the issue of a copy until its phase has been seen, by round; and of a load that misses L1.
__global__ void latencies(const uint4 *from, int bytes, int64_t step, long long *copies, long long *loads, uint32_t *sink) {
  extern __shared__ __align__(1024) uint8_t memory[];
  __shared__ uint64_t bar;
  barrier_init(&bar, 1), barrier_init_done();
  uint32_t sum = 0;
  for (int i = 0; i < ROUNDS; i++) {
    const uint8_t *at = (const uint8_t *)from + i * step;
    long long start = clock64();
    barrier_expect(&bar, bytes);
    bulk_load(memory, at, &bar, bytes);
    barrier_wait(&bar, i & 1);
    copies[i] = clock64() - start;
    sum += memory[i];
    start = clock64();
    uint32_t v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(at + step / 2) : "memory");
    sum += v;
    asm volatile("" ::"r"(sum) : "memory");
    loads[i] = clock64() - start;
  }
  *sink = sum;
}

// Bulk copies of `bytes`, STAGES under way at a time; clocks of each block for `count` of them. The span is a power of two: the
// loop itself has to be short, or it is what is measured.
__global__ void throughput(const uint8_t *from, uint32_t span, int bytes, int count, long long *clocks) {
  extern __shared__ __align__(1024) uint8_t memory[];
  __shared__ uint64_t bars[STAGES];
  for (int i = 0; i < STAGES; i++) barrier_init(&bars[i], 1);
  barrier_init_done();
  uint32_t at = blockIdx.x * 7919u * STAGE;
  long long start = clock64();
  for (int i = 0; i < count; i += STAGES) {
#pragma unroll
    for (int j = 0; j < STAGES; j++) {
      if (i) barrier_wait(&bars[j], (i / STAGES - 1) & 1);
      barrier_expect(&bars[j], bytes);
      bulk_load(memory + j * STAGE, from + (at & (span - 1)), &bars[j], bytes);
      at += bytes;
    }
  }
  for (int j = 0; j < STAGES; j++) barrier_wait(&bars[j], (count / STAGES - 1) & 1);
  clocks[blockIdx.x] = clock64() - start;
}

// `count` wgmma of a warpgroup, in groups of `group`, a wait behind each group but the last in flight where deep.
template <int REGS> __global__ void products(int count, int group, long long *clocks, float *sink) {
  extern __shared__ __align__(1024) uint8_t memory[];
  float d[REGS];
  for (int i = 0; i < REGS; i++) d[i] = 0;
  for (int i = threadIdx.x; i < 49152 / 4; i += blockDim.x) ((uint32_t *)memory)[i] = 0x3f803c00u ^ i * 2654435761u >> 18;
  async_fence();
  __syncthreads();
  uint64_t a = matrix_descriptor(shared_address(memory), 8192), b = matrix_descriptor(shared_address(memory + 16384), 8192);
  long long start = clock64();
  for (int i = 0; i < count; i += group) {
    wgmma_fence();
    for (int j = 0; j < group; j++) wgmma<REGS, KIND_BF16, 0, 0>(d, a + (j & 3) * 2, b + (j & 3) * 2, 1);
    wgmma_commit();
    wgmma_wait<0>();
  }
  if (threadIdx.x == 0) clocks[blockIdx.x] = clock64() - start;
  float sum = 0;
  for (int i = 0; i < REGS; i++) sum += d[i];
  if (sum == 12345.0f) *sink = sum;
}

// Two warps that signal each other through mbarriers: clocks of one way.
__global__ void signals(long long *clocks) {
  __shared__ uint64_t bars[2];
  if (threadIdx.x == 0) barrier_init(&bars[0], 1), barrier_init(&bars[1], 1), barrier_init_done();
  __syncthreads();
  int warp = threadIdx.x / 32;
  long long start = clock64();
  if (threadIdx.x % 32 == 0)
    for (int i = 0; i < ROUNDS; i++) {
      if (warp == 0) barrier_arrive(&bars[0], 0), barrier_wait(&bars[1], i & 1);
      else barrier_wait(&bars[0], i & 1), barrier_arrive(&bars[1], 0);
    }
  if (threadIdx.x == 0) *clocks = (clock64() - start) / (2 * ROUNDS);
}

// ---- im2col ----

enum { N = 3, H = 7, W = 9, C = 16, PIXELS = 48 };

__global__ void im2col(const __grid_constant__ CUtensorMap map, int w, int h, int n, int dw, int dh, uint16_t *out) {
  __shared__ __align__(1024) uint16_t box[PIXELS * C];
  __shared__ uint64_t bar;
  barrier_init(&bar, 1), barrier_init_done();
  barrier_expect(&bar, sizeof box);
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, "
               "%8};" ::"r"(shared_address(box)),
               "l"(&map), "r"(shared_address(&bar)), "r"(0), "r"(w), "r"(h), "r"(n), "h"((uint16_t)dw), "h"((uint16_t)dh)
               : "memory");
  barrier_wait(&bar, 0);
  for (int i = 0; i < PIXELS * C; i++) out[i] = box[i];
}

static int im2col_wrong(int case_number, int low_w, int low_h, int high_w, int high_h, int step_w, int step_h, int start, int dw, int dh) {
  typedef CUresult Encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, const int *,
                          const int *, cuuint32_t, cuuint32_t, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                          CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  Encode *encode;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", (void **)&encode, 12000, cudaEnableDefault, &found));
  std::vector<uint16_t> x(N * H * W * C), got(PIXELS * C);
  for (size_t i = 0; i < x.size(); i++) x[i] = (uint16_t)(i + 1);
  uint16_t *in, *out;
  CHECK(cudaMalloc(&in, x.size() * 2));
  CHECK(cudaMalloc(&out, got.size() * 2));
  CHECK(cudaMemcpy(in, x.data(), x.size() * 2, cudaMemcpyHostToDevice));
  cuuint64_t dims[] = {C, W, H, N}, strides[] = {C * 2, W * C * 2, H * W * C * 2};
  cuuint32_t steps[] = {1, (cuuint32_t)step_w, (cuuint32_t)step_h, 1};
  int low[] = {low_w, low_h}, high[] = {high_w, high_h};
  CUtensorMap map;
  CUresult r = encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 4, in, dims, strides, low, high, C, PIXELS, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r) return printf("\"encode %d\": %d, ", case_number, (int)r), -1;
  std::vector<std::vector<int>> pixels;
  for (int n = 0; n < N + 2; n++)
    for (int h = low_h; h < H + high_h; h += step_h)
      for (int w = low_w; w < W + high_w; w += step_w) pixels.push_back({w, h, n});
  im2col<<<1, 1>>>(map, pixels[start][0], pixels[start][1], pixels[start][2], dw, dh, out);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(got.data(), out, got.size() * 2, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int p = 0; p < PIXELS && start + p < (int)pixels.size(); p++)
    for (int c = 0; c < C; c++) {
      int w = pixels[start + p][0] + dw, h = pixels[start + p][1] + dh, n = pixels[start + p][2];
      bool inside = w >= 0 && w < W && h >= 0 && h < H && n < N;
      wrong += got[p * C + c] != (inside ? x[((n * H + h) * W + w) * C + c] : 0);
    }
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  return wrong;
}

// ---- all of it ----

static long long *device_clocks;

static double median(int count, const long long *from) {
  std::vector<long long> v(count);
  CHECK(cudaMemcpy(v.data(), from, count * sizeof v[0], cudaMemcpyDeviceToHost));
  std::sort(v.begin(), v.end());
  return (double)v[count / 2];
}

static void show_latencies(const uint8_t *data) {
  const int sizes[] = {16, 1024, 8192, 16384};
  printf("\"latency_clocks\": [");
  for (int bytes : sizes) {
    for (int turn = 0; turn < 2; turn++) // the second time everything is in L2
      latencies<<<1, 1, STAGE>>>((const uint4 *)data, bytes, 65536, device_clocks, device_clocks + ROUNDS, (uint32_t *)(device_clocks + 1000));
    CHECK(cudaDeviceSynchronize());
    printf("%s{\"bytes\": %d, \"copy\": %.0f, \"load\": %.0f}", bytes > 16 ? ", " : "", bytes, median(ROUNDS, device_clocks),
           median(ROUNDS, device_clocks + ROUNDS));
  }
  printf("],\n");
}

static void show_throughput(const uint8_t *data) {
  const int grids[] = {1, 16, 64, 132};
  const int sizes[] = {1024, 4096, 16384};
  CHECK(cudaFuncSetAttribute(throughput, cudaFuncAttributeMaxDynamicSharedMemorySize, STAGES * STAGE));
  printf("\"bytes_per_clock_and_sm\": [");
  const char *comma = "";
  for (int blocks : grids)
    for (int bytes : sizes) {
      int count = 512;
      for (int turn = 0; turn < 2; turn++)
        throughput<<<blocks, 1, STAGES * STAGE>>>(data, 16 << 20, bytes, count, device_clocks);
      CHECK(cudaDeviceSynchronize());
      printf("%s{\"sms\": %d, \"bytes\": %d, \"rate\": %.1f}", comma, blocks, bytes, (double)bytes * count / median(blocks, device_clocks));
      comma = ", ";
    }
  printf("],\n");
}

template <int REGS> static void show_products(const char *comma) {
  CHECK(cudaFuncSetAttribute(products<REGS>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
  double clocks[4];
  const int counts[] = {1, 4, 64, 64}, groups[] = {1, 4, 64, 4};
  for (int i = 0; i < 4; i++) {
    for (int turn = 0; turn < 2; turn++) products<REGS><<<1, 128, 65536>>>(counts[i], groups[i], device_clocks, (float *)(device_clocks + 1000));
    CHECK(cudaDeviceSynchronize());
    clocks[i] = median(1, device_clocks);
  }
  products<REGS><<<132, 256, 65536>>>(4096, 64, device_clocks, (float *)(device_clocks + 1000));
  CHECK(cudaDeviceSynchronize());
  printf("%s{\"n\": %d, \"one\": %.0f, \"four\": %.0f, \"sixty_four\": %.0f, \"sixty_four_by_four\": %.0f, \"all_sms_two_groups_each\": %.1f}", comma,
         REGS * 2, clocks[0], clocks[1], clocks[2], clocks[3], median(132, device_clocks) / 8192);
}

int main(void) {
  uint8_t *data;
  CHECK(cudaMalloc(&data, 64 << 20));
  CHECK(cudaMemset(data, 0, 64 << 20));
  CHECK(cudaMalloc(&device_clocks, 1 << 16));
  printf("{\"schema\": 1, \"command\": \"probe_hopper (bench/probe_hopper.cu)\",\n");
  show_latencies(data);
  show_throughput(data);
  printf("\"wgmma_clocks\": [");
  show_products<32>("");
  show_products<64>(", ");
  show_products<128>(", ");
  signals<<<1, 64>>>(device_clocks);
  CHECK(cudaDeviceSynchronize());
  printf("],\n\"mbarrier_clocks\": %.0f,\n\"im2col_wrong\": [", median(1, device_clocks));
  printf("%d", im2col_wrong(0, -1, -1, -1, -1, 1, 1, 0, 0, 0));
  printf(", %d", im2col_wrong(1, -1, -1, -1, -1, 1, 1, 5, 2, 1));
  printf(", %d", im2col_wrong(2, 0, 0, -2, -2, 2, 2, 3, 1, 2));
  printf(", %d", im2col_wrong(3, -2, -1, 1, 0, 3, 2, 7, 2, 1));
  printf(", %d]}\n", im2col_wrong(4, -1, -1, 0, 0, 1, 1, 150, 1, 1)); // past the last image
  return 0;
}
