// Wide rows by a persistent ring, against a copy of the same bytes: clusters keep their part of the weights in shared
// memory, rows come by bulk copies several ahead, partial sums go round by st.async, and one row's sum overlaps the
// output of the one before. Prints, for clusters of C blocks of T threads, x to an SM, S rows ahead, n clusters: the
// time in microseconds and its multiple of light. Needs sm_90.
//   nvcc -std=c++17 -O3 -arch=sm_90a bench/probe_wide.cu -o probe_wide && ./probe_wide
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#define CK(x) do { cudaError_t e_ = (x); if (e_) { printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1);} } while (0)
typedef uint32_t u32;
__device__ __forceinline__ u32 sm(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void mb_init(u32 b, int n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(b), "r"(n)); }
__device__ __forceinline__ void mb_expect(u32 b, u32 n) { asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(b), "r"(n) : "memory"); }
__device__ __forceinline__ void mb_wait(u32 b, u32 ph) {
  asm volatile("{\n.reg .pred p;\nL: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra L;\nD:\n}" :: "r"(b), "r"(ph) : "memory");
}
__device__ __forceinline__ void bulk_in(u32 dst, const void *src, u32 n, u32 b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(dst), "l"(__cvta_generic_to_global(src)), "r"(n), "r"(b) : "memory");
}
__device__ __forceinline__ u32 rank_() { u32 r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
template <bool F32> __device__ __forceinline__ void wid(uint4 v, float *f) {
  if (F32) { f[0] = __uint_as_float(v.x); f[1] = __uint_as_float(v.y); f[2] = __uint_as_float(v.z); f[3] = __uint_as_float(v.w); }
  else { u32 u[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) f[2*i] = __uint_as_float(u[i] << 16), f[2*i+1] = __uint_as_float(u[i] & 0xffff0000u); }
}
template <bool F32> __device__ __forceinline__ uint4 nar(const float *f) {
  if (F32) return make_uint4(__float_as_uint(f[0]), __float_as_uint(f[1]), __float_as_uint(f[2]), __float_as_uint(f[3]));
  u32 u[4];
#pragma unroll
  for (int i = 0; i < 4; i++) { __nv_bfloat162 b = __floats2bfloat162_rn(f[2*i], f[2*i+1]); u[i] = *(u32*)&b; }
  return make_uint4(u[0], u[1], u[2], u[3]);
}
// slice: bytes of a row that a block has. NB: x rows dense.
template <bool F32, bool ADD>
__global__ void __launch_bounds__(1024, 1) ring(const char *x, const char *res, const char *w, char *y, char *sec, int m, int slice, int stages, int n) {
  extern __shared__ __align__(128) char smem[];
  constexpr int E = F32 ? 4 : 8;
  constexpr int IN = ADD ? 2 : 1;
  int C; asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(C));
  int rank = rank_(), t = threadIdx.x, T = blockDim.x, cid = blockIdx.x / C, nc = gridDim.x / C;
  char *ws = smem, *buf = smem + slice;
  __shared__ __align__(8) uint64_t full[16], sums[4], wbar;
  __shared__ float part[2][32];
  __shared__ float2 got[4][16];
  int64_t rowb = (int64_t)slice * C, off = (int64_t)rank * slice;
  int chunks = slice / 16;
  if (t == 0) {
    for (int i = 0; i < stages; i++) mb_init(sm(&full[i]), 1);
    for (int i = 0; i < 4; i++) mb_init(sm(&sums[i]), 1); mb_init(sm(&wbar), 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (t == 0) {
    int k = 0;
    for (int r = cid; r < m && k < stages; r += nc, k++) {
      mb_expect(sm(&full[k]), slice * IN);
      bulk_in(sm(buf + k * IN * slice), x + r * rowb + off, slice, sm(&full[k]));
      if (ADD) bulk_in(sm(buf + (k * IN + 1) * slice), res + r * rowb + off, slice, sm(&full[k]));
    }
    mb_expect(sm(&wbar), slice);
    bulk_in(sm(ws), w + off, slice, sm(&wbar));
  }
  int count = cid < m ? (m - cid - 1) / nc + 1 : 0;
  float over = 1.0f / n;
  // iteration i: sums of row i sent; output of row i-1
  for (int i = 0; i <= count; i++) {
    if (i < count) {
      int s = i % stages;
      mb_wait(sm(&full[s]), (i / stages) & 1);
      uint4 *b = (uint4*)(buf + s * IN * slice);
      float a0 = 0, a1 = 0;
      int64_t row = cid + (int64_t)i * nc;
#pragma unroll 4
      for (int c = t; c < chunks; c += T) {
        float f[E]; uint4 v = b[c]; wid<F32>(v, f);
        if (ADD) {
          float g[E]; wid<F32>(b[c + chunks], g);
          for (int j = 0; j < E; j++) f[j] += g[j];
          v = nar<F32>(f); wid<F32>(v, f);
          b[c] = v;
          *(uint4*)(sec + row * rowb + off + c * 16) = v;
        }
#pragma unroll
        for (int j = 0; j < E; j += 2) a0 = fmaf(f[j], f[j], a0), a1 = fmaf(f[j+1], f[j+1], a1);
      }
      a0 += a1;
#pragma unroll
      for (int o = 16; o; o >>= 1) a0 += __shfl_xor_sync(~0u, a0, o);
      if (t % 32 == 0) part[i & 1][t / 32] = a0;
    }
    __syncthreads();   // also: all have done with output of row i-2
    if (i < count) {
      if (t < 32) {
        float a = t < T / 32 ? part[i & 1][t] : 0;
#pragma unroll
        for (int o = 16; o; o >>= 1) a += __shfl_xor_sync(~0u, a, o);
        if (t == 0) mb_expect(sm(&sums[i & 3]), 8 * C);
        __syncwarp();
        if (t < C) {
          u32 dst, bar;
          asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(dst) : "r"(sm(&got[i & 3][rank])), "r"(t));
          asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(bar) : "r"(sm(&sums[i & 3])), "r"(t));
          asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" :: "r"(dst), "f"(a), "f"(0.f), "r"(bar) : "memory");
        }
      }
    }
    if (i == 1) mb_wait(sm(&wbar), 0);
    if (i >= 1) {
      int q = i - 1, s = q % stages;
      mb_wait(sm(&sums[q & 3]), (q / 4) & 1);
      float sum = 0;
      for (int k = 0; k < C; k++) sum += got[q & 3][k].x;
      float scale = rsqrtf(sum * over + 1e-6f);
      uint4 *b = (uint4*)(buf + s * IN * slice), *wv = (uint4*)ws;
      int64_t row = cid + (int64_t)q * nc;
      char *o = y + row * rowb + off;
#pragma unroll 4
      for (int c = t; c < chunks; c += T) {
        float f[E], g[E]; wid<F32>(b[c], f); wid<F32>(wv[c], g);
#pragma unroll
        for (int j = 0; j < E; j++) f[j] *= g[j] * scale;
        *(uint4*)(o + c * 16) = nar<F32>(f);
      }
    }
    __syncthreads();
    if (i >= 1 && t == 0) {
      int q = i - 1, s = q % stages, nxt = q + stages;
      if (nxt < count) {
        int64_t row = cid + (int64_t)nxt * nc;
        if (ADD) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        mb_expect(sm(&full[s]), slice * IN);
        bulk_in(sm(buf + s * IN * slice), x + row * rowb + off, slice, sm(&full[s]));
        if (ADD) bulk_in(sm(buf + (s * IN + 1) * slice), res + row * rowb + off, slice, sm(&full[s]));
      }
    }
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__global__ void copyk(const uint4 *x, uint4 *y, int64_t n) { int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }
__global__ void init(char *p, int64_t n, bool f32, u32 seed) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
    u32 h = (u32)i * 2654435761u + seed; h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    float f = (h & 0xffff) / 32768.0f - 1.0f;
    if (f32) ((float*)p)[i] = f; else ((__nv_bfloat16*)p)[i] = __float2bfloat16(f);
  }
}
static float timeit(cudaGraphExec_t g, cudaStream_t s) {
  cudaEvent_t a, b; cudaEventCreate(&a); cudaEventCreate(&b);
  std::vector<float> v;
  for (int i = 0; i < 3; i++) CK(cudaGraphLaunch(g, s));
  for (int i = 0; i < 9; i++) { cudaEventRecord(a, s); cudaGraphLaunch(g, s); cudaEventRecord(b, s); CK(cudaEventSynchronize(b)); float ms; cudaEventElapsedTime(&ms, a, b); v.push_back(ms); }
  std::sort(v.begin(), v.end()); return v[4] * 1000;
}
template <class F> float run(F f, int sets) {
  cudaStream_t s; cudaStreamCreate(&s); cudaGraph_t g; cudaGraphExec_t e;
  CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  for (int k = 0; k < 8; k++) f(k % sets, s);
  CK(cudaStreamEndCapture(s, &g)); CK(cudaGraphInstantiate(&e, g, 0));
  float us = timeit(e, s) / 8; cudaGraphExecDestroy(e); cudaGraphDestroy(g); cudaStreamDestroy(s); return us;
}
template <bool F32, bool ADD> void go(int m, int n) {
  int64_t bytes = (int64_t)m * n * (F32 ? 4 : 2); int E = F32 ? 4 : 2;
  int sets = 4; if (bytes * (ADD ? 4 : 2) * sets > 40e9) sets = 2;
  std::vector<char*> X(sets), R(sets), Y(sets), S(sets); char *w;
  for (int k = 0; k < sets; k++) { CK(cudaMalloc(&X[k], bytes)); CK(cudaMalloc(&Y[k], bytes)); init<<<2048,256>>>(X[k], (int64_t)m*n, F32, k);
    if (ADD) { CK(cudaMalloc(&R[k], bytes)); CK(cudaMalloc(&S[k], bytes)); init<<<2048,256>>>(R[k], (int64_t)m*n, F32, k+77); } }
  CK(cudaMalloc(&w, n * E)); init<<<64,256>>>(w, n, F32, 999);
  int64_t nb = bytes / 16 * (ADD ? 2 : 1);
  float light;
  if (ADD) { light = run([&](int k, cudaStream_t s) { copyk<<<(unsigned)((bytes/16 + 255) / 256), 256, 0, s>>>((uint4*)X[k], (uint4*)Y[k], bytes/16);
      copyk<<<(unsigned)((bytes/16 + 255) / 256), 256, 0, s>>>((uint4*)R[k], (uint4*)S[k], bytes/16); }, sets); }
  else light = run([&](int k, cudaStream_t s) { copyk<<<(unsigned)((nb + 255) / 256), 256, 0, s>>>((uint4*)X[k], (uint4*)Y[k], nb); }, sets);
  printf("%s %s %dx%d light %.2f us %.0f GB/s:", ADD ? "add" : "rms", F32 ? "fp32" : "bf16", m, n, light, nb * 32 / light / 1e3);
  auto kern = ring<F32, ADD>;
  CK(cudaFuncSetAttribute(kern, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  for (int C : {4, 8, 16}) for (int T : {512, 1024}) for (int per : {1, 2}) for (int cut : {0, 1}) {
    int slice = n * E / C; if (slice % 16) continue;
    int room = (per == 1 ? 226 : 112) * 1024 - slice;
    int stages = room / (slice * (ADD ? 2 : 1)); if (stages > 12) stages = 12;
    if (cut) stages = stages / 2; if (stages < 2) continue;
    if (T * per > 1024 && per == 2) continue;
    size_t shm = slice + (size_t)stages * slice * (ADD ? 2 : 1);
    CK(cudaFuncSetAttribute(kern, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shm));
    cudaLaunchConfig_t cfg = {}; cudaLaunchAttribute at; at.id = cudaLaunchAttributeClusterDimension; at.val.clusterDim.x = C; at.val.clusterDim.y = at.val.clusterDim.z = 1;
    cfg.attrs = &at; cfg.numAttrs = 1; cfg.blockDim = T; cfg.dynamicSmemBytes = shm; cfg.gridDim = C;
    int clusters = 0; if (cudaOccupancyMaxActiveClusters(&clusters, kern, &cfg) || !clusters) { cudaGetLastError(); continue; }
    if (clusters > m) clusters = m;
    cfg.gridDim = clusters * C;
    float us = run([&](int k, cudaStream_t s) { cfg.stream = s; CK(cudaLaunchKernelEx(&cfg, kern, (const char*)X[k], (const char*)R[k], (const char*)w, Y[k], S[k], m, slice, stages, n)); }, sets);
    // check one row
    double worst = 0;
    std::vector<char> hx(n * E), hy(n * E), hw(n * E), hr(n * E);
    for (int r : {0, m / 2, m - 1}) {
      CK(cudaMemcpy(hx.data(), X[1] + (int64_t)r * n * E, n * E, cudaMemcpyDeviceToHost)); CK(cudaMemcpy(hy.data(), Y[1] + (int64_t)r * n * E, n * E, cudaMemcpyDeviceToHost)); CK(cudaMemcpy(hw.data(), w, n * E, cudaMemcpyDeviceToHost));
      if (ADD) CK(cudaMemcpy(hr.data(), R[1] + (int64_t)r * n * E, n * E, cudaMemcpyDeviceToHost));
      auto g = [&](std::vector<char> &h, int i) { return F32 ? (double)((float*)h.data())[i] : (double)__bfloat162float(((__nv_bfloat16*)h.data())[i]); };
      double s = 0; std::vector<double> q(n);
      for (int i = 0; i < n; i++) { double v = g(hx, i) + (ADD ? g(hr, i) : 0); if (ADD) v = F32 ? (double)(float)v : (double)__bfloat162float(__float2bfloat16((float)v)); q[i] = v; s += v * v; }
      s = 1 / sqrt(s / n + 1e-6);
      for (int i = 0; i < n; i++) { double e = fabs(q[i] * s * g(hw, i) - g(hy, i)); if (e > worst) worst = e; }
    }
    printf("  C%d T%d x%d S%d n%d %.2f (%.3f)%s", C, T, per, stages, clusters, us, us / light, worst > 0.03 ? " WRONG" : "");
  }
  printf("\n"); fflush(stdout);
  for (int k = 0; k < sets; k++) { cudaFree(X[k]); cudaFree(Y[k]); if (ADD) cudaFree(R[k]), cudaFree(S[k]); } cudaFree(w);
}
int main() {
  go<false, false>(2048, 65536); go<false, false>(512, 131072); go<true, false>(2048, 65536); go<true, false>(512, 131072);
  go<false, false>(4096, 16384); go<false, false>(4096, 32768);
  go<false, true>(2048, 65536); go<false, true>(512, 131072); go<true, true>(2048, 65536); go<true, true>(512, 131072);
  go<true, false>(16384, 8192);
}
