// Which way of moving bytes is fastest on this GPU: copies and a row normalisation, several designs of each,
// timed side by side. kernels/copy and kernels/rmsnorm were chosen by it.
// Build and run: nvcc -O3 -std=c++17 -arch=sm_90a bench/probe_stream.cu -o build/probe_stream && build/probe_stream
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include <functional>
#include <vector>

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_ != cudaSuccess) { fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e_)); exit(1); } \
  } while (0)

__device__ __forceinline__ uint64_t evict_first(void) { uint64_t p; asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p)); return p; }
template <int H> __device__ __forceinline__ uint4 load16(const uint4 *p) {
  uint4 v;
  if (H == 0) v = *p;
  if (H == 1) v = __ldcs(p);
  if (H == 2) asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  if (H == 3) asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  if (H == 4) asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p), "l"(evict_first()));
  return v;
}
template <int H> __device__ __forceinline__ void store16(uint4 *p, uint4 v) {
  if (H == 0 || H == 2 || H == 3) *p = v;
  if (H == 1) __stcs(p, v);
  if (H == 4) asm volatile("st.global.L1::no_allocate.L2::cache_hint.v4.u32 [%0], {%1,%2,%3,%4}, %5;" :: "l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "l"(evict_first()) : "memory");
}

// One tile a block, U loads in flight a thread.
template <int T, int U, int H> __global__ void __launch_bounds__(T) copy_tile(const uint4 *in, uint4 *out, size_t n) {
  size_t base = (size_t)blockIdx.x * (T * U) + threadIdx.x;
  uint4 v[U];
#pragma unroll
  for (int k = 0; k < U; k++) if (base + k * T < n) v[k] = load16<H>(in + base + k * T);
#pragma unroll
  for (int k = 0; k < U; k++) if (base + k * T < n) store16<H>(out + base + k * T, v[k]);
}

template <int T, int U, int H> __global__ void __launch_bounds__(T) copy_persist(const uint4 *in, uint4 *out, size_t n) {
  for (size_t tile = blockIdx.x; tile * (T * U) < n; tile += gridDim.x) {
    size_t base = tile * (T * U) + threadIdx.x;
    uint4 v[U];
#pragma unroll
    for (int k = 0; k < U; k++) if (base + k * T < n) v[k] = load16<H>(in + base + k * T);
#pragma unroll
    for (int k = 0; k < U; k++) if (base + k * T < n) store16<H>(out + base + k * T, v[k]);
  }
}

__device__ __forceinline__ uint32_t smem_addr(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void bar_init(uint64_t *b, int n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(smem_addr(b)), "r"(n)); }
__device__ __forceinline__ void bar_expect(uint64_t *b, uint32_t bytes) { asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(smem_addr(b)), "r"(bytes) : "memory"); }
__device__ __forceinline__ void bar_wait(uint64_t *b, uint32_t phase) {
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra W; }" :: "r"(smem_addr(b)), "r"(phase) : "memory");
}
__device__ __forceinline__ void bulk_in(void *s, const void *g, uint32_t bytes, uint64_t *b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(smem_addr(s)), "l"(g), "r"(bytes), "r"(smem_addr(b)) : "memory");
}
__device__ __forceinline__ void bulk_out(void *g, const void *s, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(g), "r"(smem_addr(s)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <int N> __device__ __forceinline__ void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(N) : "memory"); }

// One thread moves everything: global -> shared -> global, S tiles in flight.
template <int TILE, int S> __global__ void __launch_bounds__(32) copy_bulk(const char *in, char *out, size_t bytes) {
  extern __shared__ __align__(128) char smem[];
  __shared__ uint64_t full[S];
  if (threadIdx.x) return;
  for (int s = 0; s < S; s++) bar_init(&full[s], 1);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  size_t tiles = bytes / TILE; // the probe's sizes are whole tiles
  size_t next = blockIdx.x;
  for (int s = 0; s < S - 1 && next < tiles; s++, next += gridDim.x) { bar_expect(&full[s], TILE); bulk_in(smem + s * TILE, in + next * TILE, TILE, &full[s]); }
  int s = 0; uint32_t phase = 0; int f = S - 1;
  for (size_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    bar_wait(&full[s], phase);
    bulk_out(out + t * TILE, smem + s * TILE, TILE);
    if (next < tiles) {
      bulk_wait_read<1>(); // the slot of one tile ago is free
      bar_expect(&full[f], TILE); bulk_in(smem + f * TILE, in + next * TILE, TILE, &full[f]); next += gridDim.x;
    }
    if (++f == S) f = 0;
    if (++s == S) s = 0, phase ^= 1;
  }
  bulk_wait_read<0>();
}

// Rows of 4096 bf16.
enum { N = 4096 };
__device__ __forceinline__ float sq8(uint4 v) {
  float s = 0; const __nv_bfloat162 *p = (const __nv_bfloat162 *)&v;
#pragma unroll
  for (int i = 0; i < 4; i++) { float2 f = __bfloat1622float2(p[i]); s += f.x * f.x + f.y * f.y; }
  return s;
}
__device__ __forceinline__ uint4 scale8(uint4 v, uint4 w, float r) {
  uint4 o; const __nv_bfloat162 *p = (const __nv_bfloat162 *)&v, *q = (const __nv_bfloat162 *)&w; __nv_bfloat162 *y = (__nv_bfloat162 *)&o;
#pragma unroll
  for (int i = 0; i < 4; i++) { float2 f = __bfloat1622float2(p[i]), g = __bfloat1622float2(q[i]); y[i] = __floats2bfloat162_rn(f.x * r * g.x, f.y * r * g.y); }
  return o;
}
__device__ __forceinline__ float warp_sum(float s) {
#pragma unroll
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  return s;
}
template <int T, int R, int H> __global__ void __launch_bounds__(T) rms_block(const uint4 *x, const uint4 *w, uint4 *y) { // R rows a block, in parallel
  constexpr int TR = T / R, U = N / 8 / TR, W = TR / 32;
  __shared__ float part[T / 32];
  int t = threadIdx.x % TR, r = threadIdx.x / TR;
  size_t base = ((size_t)blockIdx.x * R + r) * (N / 8) + t;
  uint4 v[U]; float s = 0;
#pragma unroll
  for (int k = 0; k < U; k++) v[k] = load16<H>(x + base + k * TR);
#pragma unroll
  for (int k = 0; k < U; k++) s += sq8(v[k]);
  s = warp_sum(s);
  if (W > 1) {
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
#pragma unroll
    for (int i = 0; i < W; i++) s += part[r * W + i];
  }
  float scale = rsqrtf(s / N + 1e-6f);
#pragma unroll
  for (int k = 0; k < U; k++) store16<H>(y + base + k * TR, scale8(v[k], w[t + k * TR], scale));
}
template <int T, int H> __global__ void __launch_bounds__(T) rms_persist(const uint4 *x, const uint4 *w, uint4 *y, int rows) { // next row loaded before this one is reduced
  constexpr int U = N / 8 / T, W = T / 32;
  __shared__ float part[2][W];
  int t = threadIdx.x; uint4 v[U], nx[U], ww[U];
#pragma unroll
  for (int k = 0; k < U; k++) ww[k] = w[t + k * T];
  size_t row = blockIdx.x; int b = 0;
#pragma unroll
  for (int k = 0; k < U; k++) v[k] = load16<H>(x + row * (N / 8) + t + k * T);
  for (; row < (size_t)rows; row += gridDim.x, b ^= 1) {
    size_t nr = row + gridDim.x;
    if (nr < (size_t)rows) {
#pragma unroll
      for (int k = 0; k < U; k++) nx[k] = load16<H>(x + nr * (N / 8) + t + k * T);
    }
    float s = 0;
#pragma unroll
    for (int k = 0; k < U; k++) s += sq8(v[k]);
    s = warp_sum(s);
    if (t % 32 == 0) part[b][t / 32] = s;
    __syncthreads();
    s = 0;
#pragma unroll
    for (int i = 0; i < W; i++) s += part[b][i];
    float scale = rsqrtf(s / N + 1e-6f);
#pragma unroll
    for (int k = 0; k < U; k++) store16<H>(y + row * (N / 8) + t + k * T, scale8(v[k], ww[k], scale));
#pragma unroll
    for (int k = 0; k < U; k++) v[k] = nx[k];
  }
}
// Persistent; rows arrive by bulk copies in a ring of S; BULK_OUT: leave the same way.
template <int T, int S, bool BULK_OUT> __global__ void __launch_bounds__(T) rms_ring(const char *x, const uint4 *w, char *y, int rows) {
  constexpr int U = N / 8 / T, W = T / 32, BYTES = N * 2;
  extern __shared__ __align__(128) char smem[];
  __shared__ uint64_t full[S];
  __shared__ float part[2][W];
  int t = threadIdx.x; uint4 ww[U];
#pragma unroll
  for (int k = 0; k < U; k++) ww[k] = w[t + k * T];
  if (t == 0) { for (int s = 0; s < S; s++) bar_init(&full[s], 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
  __syncthreads();
  int next = blockIdx.x;
  if (t == 0) for (int s = 0; s < S - 1 && next < rows; s++, next += gridDim.x) { bar_expect(&full[s], BYTES); bulk_in(smem + s * BYTES, x + (size_t)next * BYTES, BYTES, &full[s]); }
  int s = 0, f = S - 1, b = 0; uint32_t phase = 0;
  for (int row = blockIdx.x; row < rows; row += gridDim.x, b ^= 1) {
    bar_wait(&full[s], phase);
    uint4 v[U]; float q = 0;
#pragma unroll
    for (int k = 0; k < U; k++) v[k] = ((uint4 *)(smem + s * BYTES))[t + k * T];
#pragma unroll
    for (int k = 0; k < U; k++) q += sq8(v[k]);
    q = warp_sum(q);
    if (t % 32 == 0) part[b][t / 32] = q;
    __syncthreads();
    if (!BULK_OUT && t == 0 && next < rows) { bar_expect(&full[f], BYTES); bulk_in(smem + f * BYTES, x + (size_t)next * BYTES, BYTES, &full[f]); next += gridDim.x; }
    q = 0;
#pragma unroll
    for (int i = 0; i < W; i++) q += part[b][i];
    float scale = rsqrtf(q / N + 1e-6f);
#pragma unroll
    for (int k = 0; k < U; k++) {
      uint4 o = scale8(v[k], ww[k], scale);
      if (BULK_OUT) ((uint4 *)(smem + s * BYTES))[t + k * T] = o; else store16<0>((uint4 *)(y + (size_t)row * BYTES) + t + k * T, o);
    }
    if (BULK_OUT) {
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncthreads();
      if (t == 0) {
        bulk_out(y + (size_t)row * BYTES, smem + s * BYTES, BYTES);
        if (next < rows) { bulk_wait_read<1>(); bar_expect(&full[f], BYTES); bulk_in(smem + f * BYTES, x + (size_t)next * BYTES, BYTES, &full[f]); next += gridDim.x; }
      }
    }
    if (++f == S) f = 0;
    if (++s == S) s = 0, phase ^= 1;
  }
  if (BULK_OUT && t == 0) bulk_wait_read<0>();
}

static char *pool_in, *pool_out;
static const size_t POOL = (size_t)4 << 30;
static cudaStream_t stream;
static cudaEvent_t e0, e1;

static double time_us(size_t bytes, const std::function<void(const char *, char *)> &launch) {
  size_t set = (bytes + 255) / 256 * 256;
  int sets = (int)std::max<size_t>(2, (400u << 20) / (2 * set) + 1);
  if ((size_t)sets * set > POOL) sets = (int)(POOL / set);
  int count = std::max(sets, (int)(((size_t)1 << 30) / (2 * set)));
  count = std::min(count, 2000);
  cudaGraph_t g; cudaGraphExec_t x;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < count; i++) launch(pool_in + (size_t)(i % sets) * set, pool_out + (size_t)(i % sets) * set);
  CHECK(cudaStreamEndCapture(stream, &g));
  CHECK(cudaGraphInstantiate(&x, g, 0));
  std::vector<double> v;
  for (int r = 0; r < 8; r++) {
    CHECK(cudaEventRecord(e0, stream)); CHECK(cudaGraphLaunch(x, stream)); CHECK(cudaEventRecord(e1, stream)); CHECK(cudaEventSynchronize(e1));
    float ms; CHECK(cudaEventElapsedTime(&ms, e0, e1)); if (r) v.push_back(ms * 1e3 / count);
  }
  CHECK(cudaGraphExecDestroy(x)); CHECK(cudaGraphDestroy(g));
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}
static const size_t sizes[] = {(size_t)4 << 20, (size_t)16 << 20, (size_t)64 << 20, (size_t)256 << 20, (size_t)1 << 30};
static void row(const char *name, const std::function<void(const char *, char *, size_t)> &f) {
  printf("%-28s", name);
  for (size_t b : sizes) { double us = time_us(b, [&](const char *i, char *o) { f(i, o, b); }); printf(" %9.2f us %5.0f", us, 2.0 * b / us * 1e-3); }
  printf("\n"); fflush(stdout);
}
template <int T, int U, int H> void tile(void) {
  char name[64]; snprintf(name, 64, "tile T%d U%d H%d", T, U, H);
  row(name, [](const char *i, char *o, size_t b) { size_t n = b / 16; copy_tile<T, U, H><<<(unsigned)((n + T * U - 1) / (T * U)), T, 0, stream>>>((const uint4 *)i, (uint4 *)o, n); });
}
template <int T, int U, int H> void persist(int per) {
  char name[64]; snprintf(name, 64, "persist T%d U%d H%d x%d", T, U, H, per);
  row(name, [=](const char *i, char *o, size_t b) { size_t n = b / 16; unsigned g = (unsigned)std::min<size_t>(132 * per, (n + T * U - 1) / (T * U)); copy_persist<T, U, H><<<g, T, 0, stream>>>((const uint4 *)i, (uint4 *)o, n); });
}
template <int TILE, int S> void bulk(int per) {
  char name[64]; snprintf(name, 64, "bulk %dK S%d x%d", TILE >> 10, S, per);
  CHECK(cudaFuncSetAttribute(copy_bulk<TILE, S>, cudaFuncAttributeMaxDynamicSharedMemorySize, TILE * S));
  row(name, [=](const char *i, char *o, size_t b) { unsigned g = (unsigned)std::min<size_t>(132 * per, b / TILE); copy_bulk<TILE, S><<<g, 32, TILE * S, stream>>>(i, o, b); });
}
template <int T, int R, int H> void rms(const char *w) {
  char name[64]; snprintf(name, 64, "rms block T%d R%d H%d", T, R, H);
  row(name, [=](const char *i, char *o, size_t b) { rms_block<T, R, H><<<(unsigned)(b / (2 * N) / R), T, 0, stream>>>((const uint4 *)i, (const uint4 *)w, (uint4 *)o); });
}
template <int T, int H> void rmsp(const char *w, int per) {
  char name[64]; snprintf(name, 64, "rms persist T%d H%d x%d", T, H, per);
  row(name, [=](const char *i, char *o, size_t b) { int rows = (int)(b / (2 * N)); rms_persist<T, H><<<std::min(132 * per, rows), T, 0, stream>>>((const uint4 *)i, (const uint4 *)w, (uint4 *)o, rows); });
}
template <int T, int S, bool B> void ring(const char *w, int per) {
  char name[64]; snprintf(name, 64, "rms ring T%d S%d %s x%d", T, S, B ? "bulkout" : "st", per);
  CHECK(cudaFuncSetAttribute(rms_ring<T, S, B>, cudaFuncAttributeMaxDynamicSharedMemorySize, N * 2 * S));
  row(name, [=](const char *i, char *o, size_t b) { int rows = (int)(b / (2 * N)); rms_ring<T, S, B><<<std::min(132 * per, rows), T, N * 2 * S, stream>>>(i, (const uint4 *)w, o, rows); });
}
__global__ void fill(uint32_t *p, size_t n) { for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) { uint32_t h = (uint32_t)i * 2654435761u; h ^= h >> 15; h *= 2246822519u; p[i] = (h & 0x807f807fu) | 0x3f003f00u; } }
int main(void) {
  CHECK(cudaMalloc(&pool_in, POOL)); CHECK(cudaMalloc(&pool_out, POOL));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); CHECK(cudaEventCreate(&e0)); CHECK(cudaEventCreate(&e1));
  char *w; CHECK(cudaMalloc(&w, N * 2));
  fill<<<1024, 256>>>((uint32_t *)pool_in, POOL / 4); fill<<<1, 256>>>((uint32_t *)w, N / 2); CHECK(cudaDeviceSynchronize());
  printf("%-28s", "bytes in"); for (size_t b : sizes) printf(" %9zu MiB GB/s", b >> 20); printf("\n");
  row("memcpyAsync", [](const char *i, char *o, size_t b) { CHECK(cudaMemcpyAsync(o, i, b, cudaMemcpyDeviceToDevice, stream)); });
  tile<128, 4, 0>(); tile<256, 1, 0>(); tile<256, 2, 0>(); tile<256, 4, 0>(); tile<256, 8, 0>(); tile<512, 4, 0>(); tile<512, 8, 0>(); tile<1024, 4, 0>(); tile<1024, 1, 0>();
  tile<256, 4, 1>(); tile<256, 4, 2>(); tile<256, 4, 3>(); tile<256, 4, 4>(); tile<512, 4, 1>(); tile<512, 4, 4>(); tile<1024, 2, 4>(); tile<1024, 4, 4>(); tile<1024, 4, 1>();
  persist<512, 4, 0>(4); persist<512, 8, 0>(2); persist<256, 8, 4>(4); persist<1024, 4, 4>(2); persist<512, 4, 4>(4); persist<512, 8, 4>(1);
  bulk<8192, 6>(1); bulk<8192, 6>(4); bulk<16384, 4>(2); bulk<16384, 6>(2); bulk<16384, 8>(1); bulk<32768, 6>(1); bulk<32768, 3>(2); bulk<4096, 8>(4); bulk<4096, 12>(4); bulk<65536, 3>(1);
  rms<128, 1, 0>(w); rms<256, 1, 0>(w); rms<512, 1, 0>(w); rms<512, 2, 0>(w); rms<256, 1, 1>(w); rms<256, 1, 4>(w); rms<512, 4, 4>(w); rms<128, 4, 0>(w); rms<128, 1, 4>(w);
  rmsp<512, 0>(w, 4); rmsp<256, 0>(w, 8); rmsp<256, 4>(w, 8); rmsp<512, 4>(w, 2); rmsp<256, 4>(w, 4); rmsp<256, 1>(w, 6);
  ring<256, 4, false>(w, 4); ring<256, 6, false>(w, 4); ring<256, 4, true>(w, 4); ring<256, 6, true>(w, 4); ring<512, 6, true>(w, 2); ring<512, 8, false>(w, 2); ring<128, 4, true>(w, 6); ring<128, 4, false>(w, 6);
  CHECK(cudaDeviceSynchronize());
  return 0;
}
