// Warps that load first and compute then, that take a minimum behind a test, and whose threads have tables of their own.
#include "kinds.cuh"

template <int LOADS, int TURNS> __device__ static float phase(const float *in, size_t step) {
  float v[LOADS], s = 0;
#pragma unroll
  for (int i = 0; i < LOADS; i++) v[i] = in[i * step];
#pragma unroll 1
  for (int t = 0; t < TURNS; t++)
#pragma unroll
    for (int i = 0; i < LOADS; i++) v[i] = v[i] * 0.5f + v[(i + 1) % LOADS];
  for (int i = 0; i < LOADS; i++) s += v[i];
  return s;
}
__global__ void loads_then_products(float *out, const float *in) {
  out[self()] = phase<40, 30>(in + self(), gridDim.x * blockDim.x);
}
__global__ void few_loads_then_products(float *out, const float *in) {
  out[self()] = phase<4, 200>(in + self(), gridDim.x * blockDim.x);
}
__global__ void rounds_of_both(float *out, const float *in, int rounds) {
  size_t step = gridDim.x * blockDim.x;
  float s = 0;
#pragma unroll 1
  for (int r = 0; r < rounds; r++) s += phase<16, 30>(in + self() + 16 * r * step, step);
  out[self()] = s;
}
__global__ void tiles_in_waves(float *out, const float *in) {
  out[self()] = phase<32, 30>(in + self() % 65536, 65536);
}

// Minima and maxima by compare-and-swap, tried only by those who have something better.
__device__ static void lower(float *to, float v) {
  unsigned *at = (unsigned *)to, old = *(volatile unsigned *)at;
  while (v < __uint_as_float(old)) {
    unsigned was = old;
    if ((old = atomicCAS(at, was, __float_as_uint(v))) == was) break;
  }
}
__device__ static void raise(double *to, double v) {
  unsigned long long *at = (unsigned long long *)to, old = *(volatile unsigned long long *)at;
  while (v > __longlong_as_double((long long)old)) {
    unsigned long long was = old;
    if ((old = atomicCAS(at, was, (unsigned long long)__double_as_longlong(v))) == was) break;
  }
}
__global__ void least_of_all(float *to, const uint32_t *in) {
  lower(to, (float)in[self()] - 1e6f);
}
__global__ void least_in_waves(float *to, const uint32_t *in, int n) {
  if (self() < n) lower(to, (float)(in[self() % 65536] ^ (unsigned)self()) - 1e8f);
}
__global__ void least_known(float *to, const uint32_t *in) {
  lower(to, (float)in[self()] - 1e6f);
}
__global__ void most_of_groups(double *to, const uint32_t *in) {
  raise(to + self() % 64, (double)in[self()]);
}
__global__ void most_of_blocks(double *to, const uint32_t *in) {
  __shared__ double part[256];
  part[threadIdx.x] = (double)in[self()];
  for (int d = 128; d; d /= 2) {
    __syncthreads();
    if (threadIdx.x < d && part[threadIdx.x + d] > part[threadIdx.x]) part[threadIdx.x] = part[threadIdx.x + d];
  }
  if (!threadIdx.x) raise(to, part[0]);
}

// x = b / L for many small matrices, one a block; a row a step.
__global__ void solve_many(float *x, const float *a) {
  __shared__ float own[64];
  const float *mine = a + blockIdx.x % 16 * 4096;
  own[threadIdx.x] = x[self()];
  for (int k = 0; k < 64; k++) {
    __syncthreads();
    if (threadIdx.x > k) own[threadIdx.x] -= mine[k * 64 + threadIdx.x] * own[k];
  }
  x[self()] = own[threadIdx.x];
}
__global__ void serial_dot(double *out, const double *a, const double *b, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) s += a[i] * b[i];
  *out = s;
}
__global__ void serial_rows(float *out, const float *in, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) s += in[self() * n + i];
  out[self()] = s;
}

__global__ void private_counts(uint32_t *out, const uint32_t *in, int n) {
  uint32_t count[64];
  for (int i = 0; i < 64; i++) count[i] = 0;
  for (int i = 0; i < n; i++) count[in[(self() * 7 + i) % 65536] % 64]++;
  uint32_t s = 0;
  for (int i = 0; i < 64; i++) s = s * 31 + count[i];
  out[self()] = s;
}

int main() {
  const int threads = 256, blocks = 528, n = threads * blocks;
  float *in = array<float>((size_t)n * 48), *out = array<float>(n * 4), *word = array<float>(64), *known = array<float>(1);
  double *most = array<double>(64), *sum = array<double>(1);
  uint32_t *values = filled<uint32_t>(n, 1000000), *counts = array<uint32_t>(n);
  LAUNCH(loads_then_products, blocks / 2, threads, out, in);
  LAUNCH(few_loads_then_products, blocks, threads, out, in);
  LAUNCH(rounds_of_both, blocks / 2, threads, out, in, 3);
  LAUNCH(tiles_in_waves, blocks * 4, threads, out, in);
  for (int t = 0; t < TIMES; t++) {
    cudaMemset(word, 0, 256);
    least_of_all<<<blocks, threads>>>(word, values);
  }
  for (int t = 0; t < TIMES; t++) {
    cudaMemset(word, 0, 256);
    least_in_waves<<<8192, threads>>>(word, values, 8192 * threads - 5);
  }
  for (int t = 0; t < TIMES; t++) {
    cudaMemset(known, 0xff, 4); // less than nothing is
    least_known<<<blocks, threads>>>(known, values);
  }
  for (int t = 0; t < TIMES; t++) {
    cudaMemset(most, 0, 512);
    most_of_groups<<<blocks, threads>>>(most, values);
  }
  for (int t = 0; t < TIMES; t++) {
    cudaMemset(most, 0, 512);
    most_of_blocks<<<blocks, threads>>>(most, values);
  }
  LAUNCH(solve_many, 1056, 64, out, in);
  LAUNCH(serial_dot, 1, 1, sum, (const double *)in, (const double *)in + 8192, 8192);
  LAUNCH(serial_rows, 8, 64, out, in, 1024);
  LAUNCH(private_counts, 264, 128, counts, values, 400);
  return done();
}
