// Kernels that compute: special functions, divisions, divergence, uneven blocks, many registers, calls.
#include "kinds.cuh"
#include <cuda_fp16.h>

__global__ void functions64(double *out, int n) {
  double x = 0.3 + self() % 1000 * 1e-3, s = 0;
  for (int i = 0; i < n; i++) s += exp(-x) * log(x + 2) + sin(x), x += 0.01;
  out[self()] = s;
}
__global__ void powers64(double *out, int n) {
  double x = 1.3 + self() % 1000 * 1e-3, s = 0;
  for (int i = 0; i < n; i++) s += pow(x, 1.7 + i);
  out[self()] = s;
}
__global__ void functions32(float *out, int n) {
  float x = 0.3f + self() % 1000 * 1e-3f, s = 0;
  for (int i = 0; i < n; i++) s += expf(-x) * logf(x + 2) + sinf(x) + powf(x, 1.7f), x += 0.01f;
  out[self()] = s;
}
__global__ void large_angles(float *out, int n) {
  float x = 2e5f + self() % 1000 * 17.0f, s = 0;
  for (int i = 0; i < n; i++) s += sinf(x) * cosf(x + 1), x += 1000.0f;
  out[self()] = s;
}
__global__ void errors(float *out, int n) {
  float x = self() % 1000 * 3e-3f, s = 0;
  for (int i = 0; i < n; i++) s += erff(x) + lgammaf(x + 1.5f) + atan2f(x, 2.0f), x += 0.01f;
  out[self()] = s;
}
__global__ void divisions(uint32_t *out, uint32_t m, int n) {
  uint32_t x = mix(self()), s = 0;
  for (int i = 0; i < n; i++) s += x / (m + i) + x % (m + i + 7), x += 12345;
  out[self()] = s;
}
__global__ void divisions64(uint64_t *out, uint64_t m, int n) {
  uint64_t x = (uint64_t)mix(self()) << 20, s = 0;
  for (int i = 0; i < n; i++) s += x / (m + i), x += 1234567;
  out[self()] = s;
}
__global__ void quotients(float *out, const float *in, int n) {
  float x = in[self()] + 1, s = 0;
  for (int i = 0; i < n; i++) s += 1.0f / (x + i) + sqrtf(x + s);
  out[self()] = s;
}
__global__ void collatz(uint32_t *out, int n) {
  int i = self();
  if (i >= n) return;
  uint64_t x = i + 1;
  uint32_t steps = 0;
  while (x != 1) x = x & 1 ? 3 * x + 1 : x / 2, steps++;
  out[i] = steps;
}
__global__ void mandelbrot(int *out, int width, int height, int most) {
  int x = blockIdx.x * 16 + threadIdx.x % 16, y = blockIdx.y * 16 + threadIdx.x / 16, k = 0;
  float cx = -2 + 3.0f * x / width, cy = -1 + 2.0f * y / height, a = 0, b = 0;
  for (; k < most && a * a + b * b < 4; k++) {
    float t = a * a - b * b + cx;
    b = 2 * a * b + cy;
    a = t;
  }
  out[y * width + x] = k;
}
__global__ void triangle(float *out, const float *in, int n) {
  float s = 0;
  for (int row = 0; row < (int)blockIdx.x; row++) s += in[row * 128 + threadIdx.x] * 0.5f;
  out[self()] = s;
}
__global__ void one_long_block(float *out, int n) {
  float s = out[self()];
  int rounds = blockIdx.x == 7 ? n * 20 : n;
  for (int i = 0; i < rounds; i++) s = s * 0.99f + sqrtf(s + i);
  out[self()] = s;
}
__global__ void long_lanes(float *out, int n) {
  float s = 0;
  int rounds = mix(self()) % 64 == 0 ? n * 16 : n;
  for (int i = 0; i < rounds; i++) s = s * 0.99f + (float)i;
  out[self()] = s;
}
template <int N> __device__ static void invert(float (&a)[N][N]) {
#pragma unroll
  for (int k = 0; k < N; k++) {
    float p = 1.0f / (a[k][k] + 4.0f);
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
      for (int j = 0; j < N; j++)
        if (i != k) a[i][j] -= a[i][k] * p * a[k][j];
  }
}
__global__ void many_registers(float *out, const float *in) {
  float a[11][11];
#pragma unroll
  for (int i = 0; i < 121; i++) a[i / 11][i % 11] = in[(size_t)i * 65536 + self()];
  invert(a);
  float s = 0;
#pragma unroll
  for (int i = 0; i < 121; i++) s += a[i / 11][i % 11];
  out[self()] = s;
}
__global__ void __launch_bounds__(1024, 2) spilled(float *out, const float *in) {
  float a[8][8];
#pragma unroll
  for (int i = 0; i < 64; i++) a[i / 8][i % 8] = in[(size_t)i * 65536 + self()];
  invert(a);
  float s = 0;
#pragma unroll
  for (int i = 0; i < 64; i++) s += a[i / 8][i % 8];
  out[self()] = s;
}
__global__ void bodies(float4 *out, const float4 *in, int n) {
  __shared__ float4 tile[256];
  float4 me = in[self()];
  float x = 0, y = 0, z = 0;
  for (int base = 0; base < n; base += 256) {
    tile[threadIdx.x] = in[base + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < 256; k++) {
      float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
      float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f), w = tile[k].w * r * r * r;
      x += dx * w, y += dy * w, z += dz * w;
    }
    __syncthreads();
  }
  out[self()] = make_float4(x, y, z, 0);
}
__global__ void product_plain(float *c, const float *a, const float *b, int n) {
  int x = blockIdx.x * 16 + threadIdx.x % 16, y = blockIdx.y * 16 + threadIdx.x / 16;
  float s = 0;
  for (int k = 0; k < n; k++) s += a[y * n + k] * b[k * n + x];
  c[y * n + x] = s;
}
__global__ void product_tiled(float *c, const float *a, const float *b, int n) {
  __shared__ float ta[16][16], tb[16][16];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
  float s = 0;
  for (int k = 0; k < n; k += 16) {
    ta[ty][tx] = a[y * n + k + tx];
    tb[ty][tx] = b[(k + ty) * n + x];
    __syncthreads();
    for (int i = 0; i < 16; i++) s += ta[ty][i] * tb[i][tx];
    __syncthreads();
  }
  c[y * n + x] = s;
}
__global__ void product64(double *c, const double *a, const double *b, int n) {
  int x = blockIdx.x * 16 + threadIdx.x % 16, y = blockIdx.y * 16 + threadIdx.x / 16;
  double s = 0;
  for (int k = 0; k < n; k++) s += a[y * n + k] * b[k * n + x];
  c[y * n + x] = s;
}
__global__ void shuffles(float *out, int n) {
  float s = (float)self(), t = 0;
  for (int i = 0; i < n; i++) {
    float v = s + i;
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    t += v;
  }
  out[self()] = t;
}
__global__ void votes(uint32_t *out, int n) {
  uint32_t x = mix(self()), s = 0;
  for (int i = 0; i < n; i++) {
    uint32_t m = __ballot_sync(~0u, x >> 31);
    s += __popc(m & ((1u << threadIdx.x % 32) - 1)) + __ffs(m) + __clz(x);
    x = x * 1664525u + 1013904223u;
  }
  out[self()] = s;
}
__global__ void bitonic(uint32_t *data) {
  __shared__ uint32_t s[512];
  for (int i = threadIdx.x; i < 512; i += 256) s[i] = data[blockIdx.x * 512 + i];
  for (int size = 2; size <= 512; size *= 2)
    for (int d = size / 2; d; d /= 2) {
      __syncthreads();
      int at = 2 * threadIdx.x - (threadIdx.x & (d - 1));
      bool up = !(at & size);
      uint32_t a = s[at], b = s[at + d];
      if ((a > b) == up) s[at] = b, s[at + d] = a;
    }
  __syncthreads();
  for (int i = threadIdx.x; i < 512; i += 256) data[blockIdx.x * 512 + i] = mix(s[i]);
}
__global__ void montecarlo(uint32_t *out, int n) {
  uint32_t x = mix(self()) | 1, in = 0;
  for (int i = 0; i < n; i++) {
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    float a = (x & 0xffff) / 65536.0f, b = (x >> 16) / 65536.0f;
    in += a * a + b * b < 1;
  }
  out[self()] = in;
}
__global__ void rounds_of_bits(uint32_t *out, int n) {
  uint32_t a = self(), b = a * 7, c = ~a, d = a ^ 0x5555u;
  for (int i = 0; i < n; i++) {
    uint32_t f = (b & c) | (~b & d), t = d;
    d = c, c = b;
    b += __funnelshift_l(a + f + i, a + f + i, 7 + (i & 3));
    a = t;
  }
  out[self()] = a + b + c + d;
}
__device__ __noinline__ float step_a(float x) {
  return x * 1.01f + 1;
}
__device__ __noinline__ float step_b(float x) {
  return x * 0.99f - 1;
}
__device__ __noinline__ float step_c(float x) {
  return sqrtf(fabsf(x));
}
typedef float (*Step)(float);
__device__ Step steps[3] = {step_a, step_b, step_c};
__global__ void pointers_to_code(float *out, int n) {
  float x = (float)self();
  for (int i = 0; i < n; i++) x = steps[(i + threadIdx.x / 32) % 3](x);
  out[self()] = x;
}
__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__global__ void recursion(int *out) {
  out[self()] = fibonacci(8 + self() % 3);
}
__global__ void products64(uint64_t *out, uint64_t m, int n) {
  uint64_t x = self() + 3, s = 1;
  for (int i = 0; i < n; i++) s = s * x + (s >> 33) + __umul64hi(s, m), x += m;
  out[self()] = s;
}
__global__ void march(float *out, int width, int most) {
  int x = self() % width, y = self() / width, k = 0;
  float t = 0, dx = x * 2.0f / width - 1, dy = y * 2.0f / width - 1, scale = rsqrtf(dx * dx + dy * dy + 1);
  for (; k < most; k++) {
    float px = dx * scale * t, py = dy * scale * t, pz = scale * t - 3;
    float d = sqrtf(px * px + py * py + pz * pz) - 1;
    if (d < 1e-3f || t > 20) break;
    t += d * 0.5f;
  }
  out[self()] = t + k;
}
__global__ void halves(__half2 *out, int n) {
  __half2 a = out[self()], b = __float2half2_rn(0.99f), c = __float2half2_rn(0.5f), d = a;
  for (int i = 0; i < n; i++) a = __hfma2(a, b, c), d = __hfma2(d, b, a);
  out[self()] = __hadd2(a, d);
}
__global__ void interpreter(int *out, const uint32_t *code, int n) {
  int a = self(), b = 1, stack = 0;
  for (int i = 0; i < n; i++) switch (code[i] % 8) {
    case 0: a += b; break;
    case 1: b = a ^ stack; break;
    case 2: stack = a * 3; break;
    case 3: a = stack - b; break;
    case 4: b += i; break;
    case 5: a = __popc(a) + b; break;
    case 6: stack ^= b << 3; break;
    default: a = max(a, b); break;
    }
  out[self()] = a + b + stack;
}
__global__ void lane_cases(float *out, int n) {
  float x = (float)(self() % 97);
  for (int i = 0; i < n; i++) switch ((threadIdx.x + i) % 4) {
    case 0: x = sqrtf(x + 1); break;
    case 1: x = __expf(-x); break;
    case 2: x = x * x + 0.5f; break;
    default: x = __logf(x + 2); break;
    }
  out[self()] = x;
}

int main() {
  const int n = 1 << 23;
  float *f = array<float>(1 << 20), *in = filled<float>(n, 1000);
  double *d = array<double>(1 << 20), *din = filled<double>(1 << 18, 10);
  uint32_t *u = filled<uint32_t>(1 << 20, 1u << 31);
  LAUNCH(functions64, 264, 256, d, 32);
  LAUNCH(powers64, 264, 128, d, 32);
  LAUNCH(functions32, 1056, 256, f, 32);
  LAUNCH(large_angles, 264, 256, f, 8);
  LAUNCH(errors, 528, 256, f, 32);
  LAUNCH(divisions, 528, 256, u, 77, 64);
  LAUNCH(divisions64, 528, 256, (uint64_t *)d, 777, 16);
  LAUNCH(quotients, 1056, 256, f, in, 64);
  LAUNCH(collatz, 1024, 256, u, 1 << 18);
  LAUNCH(mandelbrot, dim3(48, 32), 256, (int *)u, 768, 512, 256);
  LAUNCH(triangle, 800, 128, f, in, 800);
  LAUNCH(one_long_block, 528, 128, f, 100);
  LAUNCH(long_lanes, 528, 256, f, 100);
  LAUNCH(many_registers, 512, 128, f, in);
  LAUNCH(spilled, 64, 1024, f, in);
  LAUNCH(bodies, 32, 256, (float4 *)d, (const float4 *)in, 8192);
  LAUNCH(product_plain, dim3(32, 32), 256, f, in, in + 262144, 512);
  LAUNCH(product_tiled, dim3(32, 32), 256, f, in, in + 262144, 512);
  LAUNCH(product64, dim3(24, 24), 256, d, din, din + 65536, 384);
  LAUNCH(shuffles, 528, 256, f, 128);
  LAUNCH(votes, 528, 256, u, 100);
  LAUNCH(bitonic, 1056, 256, u);
  LAUNCH(montecarlo, 528, 256, u, 200);
  LAUNCH(rounds_of_bits, 528, 256, u, 400);
  LAUNCH(pointers_to_code, 264, 256, f, 60);
  LAUNCH(recursion, 264, 128, (int *)u);
  LAUNCH(products64, 528, 256, (uint64_t *)d, 12345, 128);
  LAUNCH(march, 1024, 256, f, 512, 200);
  LAUNCH(halves, 1056, 256, (__half2 *)f, 500);
  LAUNCH(interpreter, 264, 256, (int *)f, u, 300);
  LAUNCH(lane_cases, 264, 256, f, 64);
  return done();
}
