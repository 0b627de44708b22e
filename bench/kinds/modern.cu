// What newer programs do: matrix fragments, copies into shared memory that nobody waits for at once, clusters, half precision, votes;
// and what all do at times: long code, many paths, blocks that end at once, memory from the device's heap, bytes and structures.
#include "kinds.cuh"
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
namespace cg = cooperative_groups;
using namespace nvcuda;

__global__ void fragments_of_shared(float *out, const __half *in, int rounds) {
  __shared__ __half a[16 * 64], b[64 * 16];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) a[i] = in[blockIdx.x * 1024 + i], b[i] = in[i];
  __syncthreads();
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  for (int r = 0; r < rounds; r++)
    for (int k = 0; k < 64; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
      wmma::load_matrix_sync(fa, a + k, 64);
      wmma::load_matrix_sync(fb, b + k * 16, 16);
      wmma::mma_sync(c, fa, fb, c);
    }
  wmma::store_matrix_sync(out + (blockIdx.x * blockDim.x / 32 + threadIdx.x / 32) * 256 % (1 << 20), c, 16, wmma::mem_row_major);
}

__global__ void fragments_of_global(float *out, const __half *a, const __half *b, int n) { // a product, a tile of 16 a warp
  int warp = self() / 32, tiles = n / 16, row = warp / tiles * 16, column = warp % tiles * 16;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  for (int k = 0; k < n; k += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
    wmma::load_matrix_sync(fa, a + row * n + k, n);
    wmma::load_matrix_sync(fb, b + k * n + column, n);
    wmma::mma_sync(c, fa, fb, c);
  }
  wmma::store_matrix_sync(out + row * n + column, c, n, wmma::mem_row_major);
}

__global__ void copies_two_stages(float *out, const float *in, int tiles) { // cp.async, a tile ahead
  __shared__ float4 stage[2][256];
  const float4 *from = (const float4 *)in + (size_t)blockIdx.x * tiles * 256;
  float s = 0;
  __pipeline_memcpy_async(&stage[0][threadIdx.x], from + threadIdx.x, 16);
  __pipeline_commit();
  for (int t = 0; t < tiles; t++) {
    if (t + 1 < tiles) __pipeline_memcpy_async(&stage[(t + 1) & 1][threadIdx.x], from + (t + 1) * 256 + threadIdx.x, 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    float4 v = stage[t & 1][255 - threadIdx.x];
    s += v.x * v.y + v.z * v.w;
    __syncthreads();
  }
  out[self()] = s;
}

__global__ void __cluster_dims__(4, 1, 1) cluster_sums(float *out, const float *in, int rounds) { // of each other's shared memory
  __shared__ float part[256];
  cg::cluster_group cluster = cg::this_cluster();
  float s = in[self()];
  for (int r = 0; r < rounds; r++) {
    part[threadIdx.x] = s;
    cluster.sync();
    float sum = 0;
    for (unsigned b = 0; b < 4; b++) sum += cluster.map_shared_rank(part, b)[threadIdx.x ^ r];
    cluster.sync();
    s = sum * 0.25f;
  }
  out[self()] = s;
}

__global__ void __cluster_dims__(2, 1, 1) cluster_bins(int *out, const uint32_t *in, int each) { // a histogram over two blocks
  __shared__ int bins[1024];
  cg::cluster_group cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) bins[i] = 0;
  cluster.sync();
  for (int i = 0; i < each; i++) {
    uint32_t v = in[(self() + i * gridDim.x * blockDim.x) & 0xfffff] & 2047;
    atomicAdd(&cluster.map_shared_rank(bins, v >> 10)[v & 1023], 1);
  }
  cluster.sync();
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) atomicAdd(&out[cluster.block_rank() * 1024 + i], bins[i]);
}

__global__ void reduces_of_warps(uint32_t *out, const uint32_t *in, int rounds) {
  uint32_t v = in[self()];
  for (int r = 0; r < rounds; r++) v = __reduce_add_sync(~0u, v) ^ (v + r);
  out[self()] = v;
}

__global__ void matches_of_warps(uint32_t *out, const uint32_t *in, int rounds) {
  uint32_t v = in[self()] & 15, s = 0;
  for (int r = 0; r < rounds; r++) s += __popc(__match_any_sync(~0u, (v + r * threadIdx.x) & 15));
  out[self()] = s;
}

__global__ void ranks_by_votes(int *out, const uint32_t *in, int *count) { // stream compaction, an atomic a warp
  bool keep = in[self()] % 3 == 0;
  unsigned who = __ballot_sync(~0u, keep), lane = threadIdx.x & 31;
  int at = 0;
  if (lane == 0) at = atomicAdd(count, __popc(who));
  at = __shfl_sync(~0u, at, 0);
  if (keep) out[(at + __popc(who & ((1u << lane) - 1))) & 0xfffff] = self();
}

__global__ void halves_of_two(__half2 *out, const __half2 *in, int rounds) {
  __half2 a = in[self()], b = a, c = a;
  for (int r = 0; r < rounds; r++) a = __hfma2(a, b, c), b = __hfma2(b, c, a), c = __hfma2(c, a, b);
  out[self()] = __hadd2(a, __hadd2(b, c));
}

__global__ void bfloats_to_floats(__nv_bfloat16 *out, const __nv_bfloat16 *in, int n) {
  for (int i = self(); i < n; i += (int)(gridDim.x * blockDim.x)) {
    float x = __bfloat162float(in[i]);
    out[i] = __float2bfloat16(x / (1 + __expf(-x)));
  }
}

__global__ void copies_bytes(uint8_t *out, const uint8_t *in, int n) { // three bytes off
  for (int i = self(); i < n; i += (int)(gridDim.x * blockDim.x)) out[i] = in[i + 3];
}

struct Particle {
  float x[12];
};
__global__ void moves_structures(Particle *p, int n) { // 48 bytes each, word by word
  int i = self();
  if (i >= n) return;
  for (int k = 0; k < 6; k++) p[i].x[k] += p[i].x[k + 6] * 0.01f;
}

__global__ void gathers_structures(float *out, const Particle *p, const uint32_t *in, int n) {
  const Particle &q = p[in[self()] % n];
  float s = 0;
  for (int k = 0; k < 12; k++) s += q.x[k];
  out[self()] = s;
}

template <int Case> __device__ __noinline__ float path(float x) {
  for (int i = 0; i < 4; i++) x = x * (0.5f + Case) + __sinf(x + Case);
  return x;
}
__global__ void paths_of_lanes(float *out, const uint32_t *in, int rounds) { // sixteen functions, each lane its own
  float x = (float)(in[self()] & 255);
  for (int r = 0; r < rounds; r++) switch (in[(self() * 7 + r * 4096) & 0xfffff] & 15) {
#define CASE(n) \
  case n: x = path<n>(x); break;
      CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14) CASE(15)
    }
  out[self()] = x;
}

template <int Count> __device__ __forceinline__ float long_code(float x, float y) {
#pragma unroll
  for (int i = 0; i < Count; i++) x = x * (1.0f + i * 1e-4f) + y, y = y * (0.5f + i * 1e-4f) - x;
  return x + y;
}
__global__ void code_of_48_kib(float *out, int rounds) { // in a loop: more than an SM's nearest caches keep
  float x = (float)self();
  for (int r = 0; r < rounds; r++) x = long_code<1500>(x, (float)r);
  out[self()] = x;
}

__global__ void code_of_warps(float *out, int rounds) { // each warp of a block at another place of the code
  float x = (float)self();
  for (int r = 0; r < rounds; r++) switch ((threadIdx.x / 32 + r) & 7) {
    case 0: x = long_code<300>(x, 1); break;
    case 1: x = long_code<301>(x, 2); break;
    case 2: x = long_code<302>(x, 3); break;
    case 3: x = long_code<303>(x, 4); break;
    case 4: x = long_code<304>(x, 5); break;
    case 5: x = long_code<305>(x, 6); break;
    case 6: x = long_code<306>(x, 7); break;
    default: x = long_code<307>(x, 8); break;
    }
  out[self()] = x;
}

__global__ void code_once(float *out) { // straight, executed once by a few warps
  out[self()] = long_code<2000>((float)self(), out[self()]);
}

__global__ void ends_at_once(float *out, int n) { // far more threads than work
  if (self() >= n) return;
  out[self()] += 1;
}

__global__ void block_in_hundred(float *out, const int *active) { // of many blocks few have something to do
  if (!active[blockIdx.x]) return;
  float s = out[self() & 0xfffff];
  for (int i = 0; i < 200; i++) s = s * 0.99f + 1;
  out[self() & 0xfffff] = s;
}

__global__ void lane_in_hundred(float *out, const uint32_t *in) { // of many lanes few have something to do
  if (in[self() & 0xfffff] % 100) return;
  float s = 1;
  for (int i = 0; i < 200; i++) s = s * 0.99f + 1;
  out[self() & 0xfffff] = s;
}

__global__ void heap_of_blocks(int *out, int n) { // a block's buffer from the device's heap
  __shared__ int *buffer;
  if (threadIdx.x == 0) buffer = (int *)malloc(n * sizeof(int));
  __syncthreads();
  if (!buffer) return;
  for (int i = threadIdx.x; i < n; i += blockDim.x) buffer[i] = i;
  __syncthreads();
  out[self()] = buffer[(threadIdx.x * 7) % n];
  __syncthreads();
  if (threadIdx.x == 0) free(buffer);
}

__global__ void heap_of_threads(int *out) {
  int *own = (int *)malloc(32);
  if (!own) return;
  own[0] = self();
  out[self()] = own[0];
  free(own);
}

__global__ void surface_turned(cudaSurfaceObject_t to, cudaTextureObject_t from, int width) {
  int x = blockIdx.x * 16 + threadIdx.x % 16, y = blockIdx.y * 16 + threadIdx.x / 16;
  surf2Dwrite(tex2D<float>(from, (float)y, (float)x) + 1, to, x * 4, y);
}

__global__ void shared_of_100_kib(float *out, const float *in, int rounds) { // two blocks an SM
  extern __shared__ float tile[];
  for (int i = threadIdx.x; i < 25600; i += blockDim.x) tile[i] = in[(blockIdx.x * 25600 + i) & 0xfffff];
  __syncthreads();
  float s = 0;
  for (int r = 0; r < rounds; r++) s += tile[(threadIdx.x * 33 + r * 257) % 25600];
  out[self()] = s;
}

__global__ void shared_doubles_apart(double *out, int rounds) { // 8-byte words, a stride of 33
  __shared__ double v[1056];
  for (int i = threadIdx.x; i < 1056; i += blockDim.x) v[i] = i;
  __syncthreads();
  double s = 0;
  int at = threadIdx.x * 33;
  for (int r = 0; r < rounds; r++) s += v[at % 1056], at += 5;
  out[self()] = s;
}

__global__ void shuffles_doubles(double *out, int rounds) {
  double v = (double)self();
  for (int r = 0; r < rounds; r++)
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d) * 0.5;
  out[self()] = v;
}

__global__ void vector_times_columns(float *out, const float *a, const float *x, int rows, int columns) { // a thread a column
  int c = self();
  float s = 0;
  for (int r = 0; r < rows; r++) s += a[(size_t)r * columns + c] * x[r];
  out[c] = s;
}

int main() {
  const int n = 1 << 20;
  float *out = array<float>(1 << 22), *in_f = filled<float>(1 << 22, 1000);
  uint32_t *in = filled<uint32_t>(n, 1u << 30);
  int *counts = array<int>(4096), host[8192];
  for (int i = 0; i < 8192; i++) host[i] = i % 100 == 7;
  int *active = array<int>(8192);
  cudaMemcpy(active, host, sizeof host, cudaMemcpyHostToDevice);
  LAUNCH(fragments_of_shared, 528, 256, out, (__half *)in, 8);
  LAUNCH(fragments_of_global, 128, 256, out, (__half *)in, (__half *)in_f, 512);
  LAUNCH(copies_two_stages, 528, 256, out, in_f, 7);
  LAUNCH(cluster_sums, 264, 256, out, in_f, 20);
  LAUNCH(cluster_bins, 264, 256, counts, in, 32);
  LAUNCH(reduces_of_warps, 1056, 256, (uint32_t *)out, in, 40);
  LAUNCH(matches_of_warps, 528, 256, (uint32_t *)out, in, 20);
  LAUNCH(ranks_by_votes, 4096, 256, (int *)out, in, counts);
  LAUNCH(halves_of_two, 1056, 256, (__half2 *)out, (__half2 *)in, 100);
  LAUNCH(bfloats_to_floats, 1056, 256, (__nv_bfloat16 *)out, (__nv_bfloat16 *)in_f, 1 << 22);
  LAUNCH(copies_bytes, 1056, 256, (uint8_t *)out, (uint8_t *)in_f, 1 << 22);
  LAUNCH(moves_structures, 1024, 256, (Particle *)out, 1 << 18);
  LAUNCH(gathers_structures, 1024, 256, out, (Particle *)in_f, in, 1 << 18);
  LAUNCH(paths_of_lanes, 264, 256, out, in, 8);
  LAUNCH(code_of_48_kib, 264, 256, out, 6);
  LAUNCH(code_of_warps, 264, 256, out, 16);
  LAUNCH(code_once, 132, 64, out);
  LAUNCH(ends_at_once, 65536, 256, out, 10000);
  LAUNCH(block_in_hundred, 8192, 256, out, active);
  LAUNCH(lane_in_hundred, 8192, 256, out, in);
  LAUNCH(heap_of_blocks, 264, 128, (int *)out, 500);
  LAUNCH(heap_of_threads, 16, 64, (int *)out);
  cudaArray_t sheet[2];
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeArray;
  cudaTextureDesc how = {};
  cudaSurfaceObject_t to = 0;
  cudaTextureObject_t from = 0;
  for (int i = 0; i < 2; i++) cudaMallocArray(&sheet[i], &format, 1024, 1024, cudaArraySurfaceLoadStore);
  what.res.array.array = sheet[0];
  cudaCreateTextureObject(&from, &what, &how, nullptr);
  what.res.array.array = sheet[1];
  cudaCreateSurfaceObject(&to, &what);
  LAUNCH(surface_turned, dim3(64, 64), 256, to, from, 1024);
  cudaFuncSetAttribute(shared_of_100_kib, cudaFuncAttributeMaxDynamicSharedMemorySize, 102400);
  for (int t = 0; t < TIMES; t++) shared_of_100_kib<<<264, 256, 102400>>>(out, in_f, 100);
  LAUNCH(shared_doubles_apart, 528, 256, (double *)out, 60);
  LAUNCH(shuffles_doubles, 528, 256, (double *)out, 20);
  LAUNCH(vector_times_columns, 64, 128, out, in_f, in_f, 512, 8192);
  return done();
}
