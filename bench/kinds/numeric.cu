// What ordinary programs compute: prices, random walks, series, differential equations, transforms, hashes, in both precisions.
#include "kinds.cuh"

__device__ static float normal32(float d) {
  float k = 1 / (1 + 0.2316419f * fabsf(d));
  float c = 0.39894228f * __expf(-0.5f * d * d) * (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1 - c : c;
}
__global__ void prices(const float *s, const float *x, float *call, float *put) {
  int i = self();
  float a = s[i] * 0.001f + 5, b = x[i] * 0.001f + 1, t = 0.25f + a * 0.1f, q = sqrtf(t);
  float d1 = (__logf(a / b) + (0.02f + 0.5f * 0.09f) * t) / (0.3f * q), d2 = d1 - 0.3f * q, e = __expf(-0.02f * t);
  call[i] = a * normal32(d1) - b * e * normal32(d2), put[i] = b * e * (1 - normal32(d2)) - a * (1 - normal32(d1));
}
__global__ void prices_double(const float *s, double *call) {
  int i = self();
  double a = s[i] * 0.001 + 5, b = 7, t = 0.25 + a * 0.1, q = sqrt(t);
  double d1 = (log(a / b) + 0.065 * t) / (0.3 * q), d2 = d1 - 0.3 * q;
  call[i] = a * 0.5 * erfc(-d1 * 0.7071067811865475) - b * exp(-0.02 * t) * 0.5 * erfc(-d2 * 0.7071067811865475);
}
__global__ void walks(float *out, int steps) { // a linear congruential generator and a path a thread
  uint32_t state = mix(self());
  float v = 100;
  for (int i = 0; i < steps; i++) {
    state = state * 1664525u + 1013904223u;
    v *= 1 + 0.01f * ((state >> 8) * (1.0f / 16777216) - 0.5f);
  }
  out[self()] = v;
}
__global__ void pairs_in_circle(int *out, int steps) { // 64-bit generator, doubles
  uint64_t state = mix(self()) | 1;
  int inside = 0;
  for (int i = 0; i < steps; i++) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    double x = (state >> 11) * 1.1102230246251565e-16;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    double y = (state >> 11) * 1.1102230246251565e-16;
    inside += x * x + y * y < 1;
  }
  out[self()] = inside;
}
__global__ void gaussians(float *out, int steps) { // xorshift and Box-Muller
  uint32_t a = mix(self()) | 1, b = a * 3 | 1;
  float s = 0;
  for (int i = 0; i < steps; i++) {
    a ^= a << 13, a ^= a >> 17, a ^= a << 5, b ^= b << 13, b ^= b >> 17, b ^= b << 5;
    float u = (a >> 9) * 1.1920929e-7f + 1e-7f, v = (b >> 9) * 1.1920929e-7f;
    s += sqrtf(-2 * logf(u)) * cosf(6.2831853f * v);
  }
  out[self()] = s;
}
__global__ void lengths_double(double *out, int steps) {
  double x = self() * 0.001 + 1, s = 0;
  for (int i = 0; i < steps; i++) s += sqrt(x * x + i), x += 0.25;
  out[self()] = s;
}
__global__ void waves_double(double *out, int steps) {
  double x = self() * 0.001, s = 0;
  for (int i = 0; i < steps; i++) s += sin(x + i * 0.1);
  out[self()] = s;
}
__global__ void decays_double(double *out, int steps) {
  double x = self() * 1e-6, s = 0;
  for (int i = 0; i < steps; i++) s += exp(-x * i);
  out[self()] = s;
}
__global__ void powers_double(double *out, int steps) {
  double x = self() * 1e-4 + 1, s = 0;
  for (int i = 0; i < steps; i++) s += pow(x, 1.5 + i * 0.01);
  out[self()] = s;
}
__global__ void quotients_double(double *out, int steps) {
  double x = self() * 0.001 + 1, s = 0;
  for (int i = 1; i <= steps; i++) s += x / (s + i);
  out[self()] = s;
}
__global__ void common_divisors(uint32_t *out, int steps) {
  uint32_t s = 0;
  for (int i = 0; i < steps; i++) {
    uint32_t a = mix(self() + i) | 1, b = mix(a) | 1;
    while (b) {
      uint32_t r = a % b;
      a = b, b = r;
    }
    s += a;
  }
  out[self()] = s;
}
__global__ void powers_modulo(uint64_t *out, uint64_t modulus) {
  uint64_t base = mix(self()) % modulus, e = 0x10001, r = 1;
  while (e) {
    if (e & 1) r = r * base % modulus;
    base = base * base % modulus, e >>= 1;
  }
  out[self()] = r;
}
__global__ void digits(const uint32_t *in, uint8_t *out, int base) {
  uint32_t v = in[self()];
  int s = 0;
  for (int i = 0; i < 12; i++) s = s * 3 + v % base, v /= base;
  out[self()] = s;
}
__global__ void series(const float *x, float *out, int terms) {
  float v = x[self()] * 1e-6f, s = 1, t = 1;
  for (int k = 1; k <= terms; k++) t *= v / k, s += t;
  out[self()] = s;
}
__global__ void horner_double(const float *x, double *out, int rounds) {
  double v = x[self()] * 1e-6, s = 0;
  for (int r = 0; r < rounds; r++) {
    double p = r;
#pragma unroll
    for (int k = 0; k < 16; k++) p = p * v + 0.1 * k;
    s += p;
  }
  out[self()] = s;
}
__global__ void runge_kutta(float *out, int steps) { // Lorenz's equations
  float x = self() * 1e-5f + 1, y = 1, z = 1, h = 0.001f;
  for (int i = 0; i < steps; i++) {
    float kx[4], ky[4], kz[4], px = x, py = y, pz = z;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      kx[k] = 10 * (py - px), ky[k] = px * (28 - pz) - py, kz[k] = px * py - 2.6667f * pz;
      float w = k < 2 ? h / 2 : h;
      px = x + w * kx[k], py = y + w * ky[k], pz = z + w * kz[k];
    }
    x += h / 6 * (kx[0] + 2 * kx[1] + 2 * kx[2] + kx[3]), y += h / 6 * (ky[0] + 2 * ky[1] + 2 * ky[2] + ky[3]);
    z += h / 6 * (kz[0] + 2 * kz[1] + 2 * kz[2] + kz[3]);
  }
  out[self()] = x + y + z;
}
__global__ void newton(float *out) { // until it is near enough
  float a = self() * 37 % 10007 + 2.0f, x = a;
  while (fabsf(x * x * x - a) > 1e-4f * a) x -= (x * x * x - a) / (3 * x * x);
  out[self()] = x;
}
__global__ void fourier_shared(float2 *data) { // 512 points a block
  __shared__ float2 s[512];
  int t = threadIdx.x;
  float2 *mine = data + blockIdx.x * 512;
  s[__brev(t) >> 23] = mine[t], s[__brev(t + 256) >> 23] = mine[t + 256];
  for (int half = 1; half < 512; half *= 2) {
    __syncthreads();
    int k = t % half, i = t / half * half * 2 + k;
    float re, im;
    __sincosf(-3.14159265f * k / half, &im, &re);
    float2 a = s[i], b = s[i + half];
    float2 w = make_float2(b.x * re - b.y * im, b.x * im + b.y * re);
    s[i] = make_float2(a.x + w.x, a.y + w.y), s[i + half] = make_float2(a.x - w.x, a.y - w.y);
  }
  __syncthreads();
  mine[t] = s[t], mine[t + 256] = s[t + 256];
}
__global__ void cosines_8x8(const float *in, float *out, int width) {
  __shared__ float b[8][8][9], c[8][8];
  int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  int at = (blockIdx.y * 8 + y) * width + (blockIdx.x * 8 + z) * 8 + x;
  if (z == 0) c[y][x] = cosf((2 * x + 1) * y * 0.19634954f) * 0.5f;
  b[z][y][x] = in[at];
  __syncthreads();
  float s = 0;
  for (int k = 0; k < 8; k++) s += c[x][k] * b[z][y][k];
  __syncthreads();
  b[z][y][x] = s;
  __syncthreads();
  s = 0;
  for (int k = 0; k < 8; k++) s += c[y][k] * b[z][k][x];
  out[at] = s;
}
__global__ void digests(const uint32_t *in, uint32_t *out) { // rounds of rotations over a window of words
  uint32_t w[16], a = 1, b = 2, c = 3, d = 4;
  for (int i = 0; i < 16; i++) w[i] = in[i] + self();
#pragma unroll
  for (int r = 0; r < 64; r++) {
    uint32_t f = (b & c) | (~b & d), t = a + f + w[r % 16] + 0x5a827999u * r;
    w[r % 16] = __funnelshift_l(w[r % 16] ^ w[(r + 13) % 16], w[r % 16] ^ w[(r + 13) % 16], 1);
    a = d, d = c, c = b, b += __funnelshift_l(t, t, 7 + r % 4 * 5);
  }
  out[self()] = a + b + c + d;
}
__global__ void checksums(const uint8_t *in, const uint32_t *table, uint32_t *out, int each) { // a table in shared memory
  __shared__ uint32_t t[256];
  t[threadIdx.x] = table[threadIdx.x];
  __syncthreads();
  uint32_t c = ~0u;
  for (int k = 0; k < each; k++) c = t[(c ^ in[self() * each + k]) & 255] ^ c >> 8;
  out[self()] = ~c;
}
__global__ void gammas(float *out, int steps) {
  float s = 0;
  for (int i = 0; i < steps; i++) s += lgammaf(self() * 0.001f + i + 0.5f) + erff(s * 0.001f);
  out[self()] = s;
}
__global__ void rays(const float4 *spheres, float *out, int count) {
  float dx = self() % 512 * 0.001f - 0.25f, dy = self() / 512 * 0.001f - 0.25f, dz = 1, near = 1e30f;
  float l = rsqrtf(dx * dx + dy * dy + dz * dz);
  dx *= l, dy *= l, dz *= l;
  for (int i = 0; i < count; i++) {
    float4 s = spheres[i];
    float b = s.x * dx + s.y * dy + s.z * dz, d = b * b - (s.x * s.x + s.y * s.y + s.z * s.z) + s.w * s.w;
    if (d > 0) {
      float t = b - sqrtf(d);
      if (t > 0 && t < near) near = t;
    }
  }
  out[self()] = near;
}
__global__ void fractal_double(int *out, int width, int limit) {
  double cx = self() % width * 0.005 - 2, cy = self() / width * 0.005 - 1, x = 0, y = 0;
  int k = 0;
  while (k < limit && x * x + y * y < 4) {
    double t = x * x - y * y + cx;
    y = 2 * x * y + cy, x = t, k++;
  }
  out[self()] = k;
}
__global__ void forces_double(const double4 *body, double4 *out, int n) {
  double4 me = body[self()];
  double ax = 0, ay = 0, az = 0;
  for (int j = 0; j < n; j++) {
    double4 o = body[j];
    double dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z, r = rsqrt(dx * dx + dy * dy + dz * dz + 0.01), f = o.w * r * r * r;
    ax += dx * f, ay += dy * f, az += dz * f;
  }
  out[self()] = make_double4(ax, ay, az, 0);
}

int main() {
  float *f = array<float>(1 << 24), *x = filled<float>(1 << 21, 100000), *y = filled<float>(1 << 21, 100000, 3);
  double *d = (double *)f;
  LAUNCH(prices, 4096, 256, x, y, f, f + (1 << 20));
  LAUNCH(prices_double, 2112, 256, x, d);
  LAUNCH(walks, 528, 256, f, 400);
  LAUNCH(pairs_in_circle, 264, 256, (int *)f, 100);
  LAUNCH(gaussians, 264, 256, f, 60);
  LAUNCH(lengths_double, 264, 256, d, 60);
  LAUNCH(waves_double, 264, 256, d, 40);
  LAUNCH(decays_double, 264, 256, d, 60);
  LAUNCH(powers_double, 264, 256, d, 16);
  LAUNCH(quotients_double, 132, 256, d, 60);
  LAUNCH(common_divisors, 264, 256, (uint32_t *)f, 4);
  LAUNCH(powers_modulo, 1056, 256, (uint64_t *)f, 1000000007ull);
  LAUNCH(digits, 6000, 256, (uint32_t *)x, (uint8_t *)f, 10);
  LAUNCH(series, 528, 256, x, f, 40);
  LAUNCH(horner_double, 264, 256, x, d, 80);
  LAUNCH(runge_kutta, 264, 256, f, 60);
  LAUNCH(newton, 2112, 256, f);
  LAUNCH(fourier_shared, 1056, 256, (float2 *)f);
  LAUNCH(cosines_8x8, dim3(32, 128), dim3(8, 8, 8), x, f, 2048);
  LAUNCH(digests, 1056, 256, (uint32_t *)x, (uint32_t *)f);
  LAUNCH(checksums, 264, 256, (uint8_t *)x, (uint32_t *)y, (uint32_t *)f, 100);
  LAUNCH(gammas, 264, 256, f, 40);
  LAUNCH(rays, 528, 256, (float4 *)x, f, 64);
  LAUNCH(fractal_double, 528, 256, (int *)f, 600, 100);
  LAUNCH(forces_double, 66, 128, (double4 *)x, (double4 *)f, 300);
  return done();
}
