// 16-, 8-, 6- and 4-bit floating point: breadth, not sense.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#define T(x) o[i++] = (float)(x)
template <class H, class H2> __device__ void half_ops(H a, H b, H c, H2 A, H2 B, H2 C, float *o, int &i) {
  T(a + b);
  T(a - b);
  T(a * b);
  T(a / b);
  T(-a);
  T(__hfma(a, b, c));
  T(__hfma_sat(a, b, c));
  T(__hfma_relu(a, b, c));
  T(__hadd_sat(a, b));
  T(__hmul_sat(a, b));
  T(__hadd_rn(a, b));
  T(__habs(a));
  T(hsqrt(a));
  T(hrsqrt(a));
  T(hrcp(a));
  T(hexp(a));
  T(hexp2(a));
  T(hexp10(a));
  T(hlog(a));
  T(hlog2(a));
  T(hsin(a));
  T(hcos(a));
  T(htanh(a));
  T(htanh_approx(a));
  T(hfloor(a));
  T(hceil(a));
  T(hrint(a));
  T(htrunc(a));
  T(__hmax(a, b));
  T(__hmin(a, b));
  T(__hmax_nan(a, b));
  T(__hmin_nan(a, b));
  T((int)(a > b));
  T((int)(a == b));
  T((int)__hltu(a, b));
  T((int)__hisnan(a));
  T((int)__hisinf(a));
  H2 r = __hadd2(A, B);
  r = __hmul2(r, C);
  r = __hfma2(r, A, B);
  r = __hfma2_relu(r, A, B);
  r = __hfma2_sat(r, A, B);
  r = __hmax2(r, A);
  r = __hmin2_nan(r, B);
  r = h2exp2(r);
  r = h2rcp(r);
  r = h2tanh_approx(r);
  r = __habs2(r);
  r = __hneg2(r);
  r = h2floor(r);
  r = __hcmadd(A, B, r);
  r = __hsub2_sat(r, A);
  T((int)__hbeq2(A, B));
  T((int)__hble2(A, B));
  T((int)__hbgtu2(A, B));
  unsigned m = __hgt2_mask(A, B) + __heq2_mask(A, B);
  T(m);
  H2 q = __hlt2(A, B);
  T(q.x);
  T(r.x);
  T(r.y);
  T((int)__half2int_rz((__half)(float)a));
  unsigned short u = 5;
  T((H)u);
  T((H)(long long)i);
  T((unsigned long long)a);
  T((short)a);
  T((double)a);
  T((H)(double)o[0]);
}
__global__ void k(float *o, __half a, __half b, __half c, __half2 A, __half2 B, __half2 C, __nv_bfloat16 d,
                  __nv_bfloat16 e, __nv_bfloat16 f, __nv_bfloat162 D, __nv_bfloat162 E, __nv_bfloat162 F) {
  int i = 0;
  half_ops(a, b, c, A, B, C, o, i);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  {
    auto a = d, b = e, c = f;
    auto A = D, B = E, C = F;
    T(a + b);
    T(a - b);
    T(a * b);
    T(a / b);
    T(-a);
    T(__hfma(a, b, c));
    T(__hfma_sat(a, b, c));
    T(__hfma_relu(a, b, c));
    T(__habs(a));
    T(hsqrt(a));
    T(hexp(a));
    T(hlog(a));
    T(hsin(a));
    T(htanh(a));
    T(htanh_approx(a));
    T(hfloor(a));
    T(hrint(a));
    T(__hmax(a, b));
    T(__hmin_nan(a, b));
    T((int)(a > b));
    T((int)__hisnan(a));
    auto r = __hfma2(A, B, C);
    r = __hmax2_nan(r, A);
    r = h2exp2(r);
    T(r.x);
    T((int)__hbge2(A, B));
    T((int)a);
    T((__nv_bfloat16)7);
    T((double)a);
    T(__float2bfloat16_rz(o[3]));
    T(__floats2bfloat162_rn(o[1], o[2]).x);
    T((short)a);
    T((__nv_bfloat16)(unsigned long long)i);
  }
#endif
  T(__float2half_rd(o[0]));
  T(__float2half_ru(o[1]));
  T(__floats2half2_rn(o[1], o[2]).x);
  T(__int2half_rn(i));
  T(__half2ull_rz(a));
  T(__half2uint_ru(a));
  __nv_fp8_e4m3 q(o[0]);
  T(q);
  __nv_fp8_e5m2 q2(o[1]);
  T(q2);
  __nv_fp8x2_e4m3 q3(make_float2(o[0], o[1]));
  T(((float2)q3).x);
  __nv_fp8x4_e5m2 q4(make_float4(o[0], o[1], o[2], o[3]));
  T(((float4)q4).z);
  __half2_raw hr = __nv_cvt_fp8x2_to_halfraw2(q3.__x, __NV_E4M3);
  T(hr.x);
  __nv_fp8_e8m0 q5(o[2]);
  T(q5);
  __nv_fp4_e2m1 w(o[0]);
  T(w);
  __nv_fp6_e2m3 w2(o[1]);
  T(w2);
  __nv_fp6_e3m2 w3(o[2]);
  T(w3);
  __nv_fp4x4_e2m1 w4(make_float4(o[0], o[1], o[2], o[3]));
  T(((float4)w4).x);
  __nv_fp6x2_e3m2 w5(make_float2(o[0], o[1]));
  T(((float2)w5).y);
  atomicAdd((__half *)o, a);
  atomicAdd((__half2 *)o, A);
  atomicAdd((__nv_bfloat16 *)o, d);
  atomicAdd((__nv_bfloat162 *)o, D);
  T(__shfl_sync(-1, a, 3));
  T(__shfl_xor_sync(-1, A, 3).x);
  T(__ldg((__half *)o));
  T(__ldcs((__half2 *)o).x);
  __stwt((__half *)o, a);
}
