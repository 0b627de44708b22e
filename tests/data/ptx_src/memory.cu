// Memory, atomics, warps, textures, surfaces and wmma: breadth, not sense.
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <mma.h>
using namespace nvcuda;
struct __align__(16) V {
  float a, b, c, d;
};
struct V32 {
  double a, b, c, d;
};
__constant__ V cv[16];
__device__ __managed__ int man[10] = {1, 2, 3};
__device__ double gd = 3.5;
__device__ float gf[3] = {1.5f, -0.f, 1e30f};
__device__ const char *strs[2] = {"abc", "def"};
struct Mix {
  char c;
  void *p;
  int i;
};
__device__ Mix mix = {'a', gf + 1, 7};
__device__ int (*fp)(int);
__global__ void k(V *p, V *q, int *ip, unsigned long long *up, double *dp, short *sp, cudaTextureObject_t t,
                  cudaSurfaceObject_t s, float *f, const V *__restrict__ r) {
  __shared__ V sv[64];
  __shared__ double sd[64];
  __shared__ char sc[64];
  extern __shared__ float4 dyn[];
  sv[threadIdx.x] = p[threadIdx.x];
  sd[threadIdx.x] = dp[1];
  sc[threadIdx.x] = (char)ip[0];
  dyn[threadIdx.x] = make_float4(1, 2, 3, 4);
  int v = __syncthreads_count(ip[0] > 3);
  v += __syncthreads_and(ip[1]);
  v += __syncthreads_or(ip[2]);
  __syncwarp(0xff);
  __syncwarp();
  q[0] = sv[3];
  q[1] = r[threadIdx.x];
  q[2] = cv[v & 15];
  q[3] = __ldg((float4 *)p).x > 2 ? sv[1] : sv[2];
  f[0] = __ldca(f);
  f[1] = __ldcg(f);
  f[2] = __ldcv(f);
  f[3] = __ldlu(f);
  f[4] = __ldcs(f);
  __stcg(f, 1);
  __stcs(f, 2);
  __stwt(f, 3);
  __stwb(f, 4);
  volatile int *vp = ip;
  v += vp[3];
  vp[4] = v;
  __threadfence();
  __threadfence_block();
  __threadfence_system();
  atomicAdd(ip, 1);
  atomicAdd(up, 1);
  atomicAdd(f, 1.f);
  atomicAdd(dp, 1.0);
  atomicSub(ip, 2);
  atomicExch(ip, 3);
  atomicExch(f, 3.f);
  atomicMin(ip, 4);
  atomicMax((unsigned *)ip, 5u);
  atomicInc((unsigned *)ip, 7);
  atomicDec((unsigned *)ip, 7);
  atomicCAS(ip, 1, 2);
  v += atomicCAS(up, 1, 2);
  v += atomicCAS((unsigned short *)sp, 1, 2);
  atomicAnd(ip, 3);
  atomicOr(up, 3ull);
  v += atomicXor(ip, 3);
  atomicAdd_block(ip, 1);
  atomicAdd_system(up, 1);
  v += atomicMax((long long *)up, 5ll);
  v += atomicAdd((int *)sc, 3);
#if __CUDA_ARCH__ >= 900
  atomicAdd((float4 *)f, make_float4(1, 2, 3, 4));
  float2 f2 = atomicAdd((float2 *)f, make_float2(1, 2));
  f[9] = f2.x;
#endif
  v += __shfl_sync(-1, v, 3);
  v += __shfl_up_sync(-1, v, 1, 16);
  v += __shfl_down_sync(0xff, v, 2);
  v += __shfl_xor_sync(-1, v, 4);
  v += __any_sync(-1, v);
  v += __all_sync(-1, v);
  v += __ballot_sync(-1, v > 2);
  v += __activemask();
  v += __match_any_sync(-1, v);
  int pr;
  v += __match_all_sync(-1, up[2], &pr) + pr;
#if __CUDA_ARCH__ >= 800
  v += __reduce_add_sync(-1, v) + __reduce_max_sync(-1, (unsigned)v) + __reduce_xor_sync(-1, (unsigned)v);
  __pipeline_memcpy_async(&sv[threadIdx.x], p, 16);
  __pipeline_memcpy_async(&sd[1], dp, 8, 4);
  __pipeline_commit();
  __pipeline_wait_prior(1);
#endif
  float4 tx = tex2D<float4>(t, f[0], f[1]);
  f[5] = tx.x + tex1Dfetch<float>(t, v) + tex1D<float>(t, f[2]) + tex3D<float>(t, f[0], f[1], f[2]) +
         tex2DLod<float>(t, f[0], f[1], 2.f) + tex2DLayered<float>(t, f[0], f[1], 3) +
         tex1DLayered<float>(t, f[0], 2) + tex2Dgather<float4>(t, f[0], f[1], 1).y;
  int sx;
  surf2Dread(&sx, s, 4, 5);
  surf2Dwrite(sx, s, 4, 6, cudaBoundaryModeClamp);
  float4 s4;
  surf1Dread(&s4, s, 16, cudaBoundaryModeZero);
  surf3Dwrite((short)3, s, 1, 2, 3);
  surf2DLayeredwrite((char)3, s, 1, 2, 3);
  f[6] = s4.y;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::load_matrix_sync(fa, (__half *)p, 16);
  wmma::load_matrix_sync(fb, (__half *)sv, 16);
  wmma::fill_fragment(fc, 0);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(f, fc, 16, wmma::mem_row_major);
  wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::row_major> ia;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::col_major> ib;
  wmma::fragment<wmma::accumulator, 32, 8, 16, int> ic;
  wmma::load_matrix_sync(ia, (signed char *)p, 16);
  wmma::load_matrix_sync(ib, (signed char *)p, 16);
  wmma::load_matrix_sync(ic, ip, 16, wmma::mem_col_major);
  wmma::mma_sync(ic, ia, ib, ic);
  wmma::store_matrix_sync(ip, ic, 16, wmma::mem_row_major);
#if __CUDA_ARCH__ >= 800
  {
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> c;
    wmma::load_matrix_sync(a, dp, 4);
    wmma::load_matrix_sync(b, dp, 4);
    wmma::fill_fragment(c, 0);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(dp, c, 8, wmma::mem_row_major);
  }
  {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> c;
    wmma::load_matrix_sync(a, f, 8);
    wmma::load_matrix_sync(b, f, 8);
    for (int i = 0; i < a.num_elements; i++) a.x[i] = wmma::__float_to_tf32(a.x[i]);
    wmma::fill_fragment(c, 0);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(f, c, 16, wmma::mem_row_major);
  }
  {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(a, (__nv_bfloat16 *)f, 16);
    wmma::load_matrix_sync(b, (__nv_bfloat16 *)f, 16);
    wmma::fill_fragment(c, 0);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(f, c, 16, wmma::mem_col_major);
  }
#endif
  {
    using namespace wmma::experimental;
    wmma::fragment<wmma::matrix_a, 8, 8, 128, precision::b1, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, precision::b1, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> c;
    wmma::load_matrix_sync(a, ip, 128);
    wmma::load_matrix_sync(b, ip, 128);
    wmma::fill_fragment(c, 0);
    wmma::bmma_sync(c, a, b, c);
    wmma::store_matrix_sync(ip, c, 8, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 8, 8, 32, precision::s4, wmma::row_major> a4;
    wmma::fragment<wmma::matrix_b, 8, 8, 32, precision::s4, wmma::col_major> b4;
    wmma::fragment<wmma::accumulator, 8, 8, 32, int> c4;
    wmma::load_matrix_sync(a4, ip, 32);
    wmma::load_matrix_sync(b4, ip, 32);
    wmma::fill_fragment(c4, 0);
    wmma::mma_sync(c4, a4, b4, c4);
    wmma::store_matrix_sync(ip, c4, 8, wmma::mem_row_major);
  }
  *(V32 *)dp = *(V32 *)(dp + 4);
  gd += v;
  man[1] = v;
  f[7] = strs[v & 1][1] + mix.i;
  ip[9] = fp ? fp(v) : 0;
  ip[10] = *(volatile short *)sp + *(volatile signed char *)sp + *(unsigned char *)sp;
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
}
