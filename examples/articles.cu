// Six kernels of the kind that articles on memory-bound kernels begin with, each with the fault that the article then
// mends. `sol audit` names that fault first: tests/test_articles.sh holds its gain against what an H200 measured for
// the mended kernel (the ladders of the same names, bench/results).
// usage: articles softmax|transpose|particles|column_scale|rmsnorm|embedding
#include <cuda_fp16.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { THREADS = 256 };

// One thread looks for the row's largest element while its block waits.
__global__ void softmax(float *y, const float *x, int n) {
  __shared__ float largest, sum;
  x += (size_t)blockIdx.x * n;
  y += (size_t)blockIdx.x * n;
  if (threadIdx.x == 0) {
    float most = x[0];
    for (int c = 0; c < n; c++) most = fmaxf(most, x[c]); // advice: softmax one_lane
    largest = most;
    sum = 0;
  }
  __syncthreads();
  float part = 0;
  for (int c = threadIdx.x; c < n; c += THREADS) {
    y[c] = __expf(x[c] - largest);
    part += y[c];
  }
  atomicAdd(&sum, part);
  __syncthreads();
  for (int c = threadIdx.x; c < n; c += THREADS) y[c] /= sum;
}

// Rows are read, columns are written.
__global__ void transpose(float *y, const float *x, int n) {
  int c = blockIdx.x * 32 + threadIdx.x;
  for (int k = 0; k < 32; k += 8) {
    int r = blockIdx.y * 32 + k + threadIdx.y;
    y[(size_t)c * n + r] = x[(size_t)r * n + c]; // advice: transpose column_walk
  }
}

struct Particle {
  float x, y, z, vx, vy, vz;
};
__global__ void particles(Particle *p, float dt, int n) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  p[i].x += p[i].vx * dt; // advice: particles aos
  p[i].y += p[i].vy * dt;
  p[i].z += p[i].vz * dt;
}

// Threads walk down a column of a row-major matrix.
__global__ void column_scale(float *y, const float *x, const float *scale, int rows, int cols) {
  int row = blockIdx.x * THREADS + threadIdx.x, col = blockIdx.y;
  if (row < rows) y[(size_t)row * cols + col] = x[(size_t)row * cols + col] * scale[col]; // advice: column_scale column_walk
}

// A block has a row, two bytes an access.
__global__ void rmsnorm(__half *y, const __half *x, const __half *weight, int n) {
  __shared__ float part[32];
  x += (size_t)blockIdx.x * n;
  y += (size_t)blockIdx.x * n;
  float squares = 0;
  for (int c = threadIdx.x; c < n; c += THREADS) {
    float f = __half2float(x[c]);
    squares += f * f;
  }
  for (int o = 16; o; o /= 2) squares += __shfl_xor_sync(~0u, squares, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = squares;
  __syncthreads();
  squares = threadIdx.x % 32 < THREADS / 32 ? part[threadIdx.x % 32] : 0;
  for (int o = 16; o; o /= 2) squares += __shfl_xor_sync(~0u, squares, o);
  float factor = rsqrtf(squares / (float)n + 1e-6f);
  for (int c = threadIdx.x; c < n; c += THREADS)
    y[c] = __float2half_rn(__half2float(x[c]) * factor * __half2float(weight[c])); // advice: rmsnorm narrow
}

// An element a thread.
__global__ void embedding(float *y, const float *table, const int *token, int n) {
  int blocks = n / THREADS, row = blockIdx.x / blocks, c = blockIdx.x % blocks * THREADS + threadIdx.x;
  y[(size_t)row * n + c] = table[(size_t)token[row] * n + c]; // advice: embedding narrow
}

static void *room(size_t bytes) {
  void *p;
  if (cudaMalloc(&p, bytes) != cudaSuccess) exit(1);
  return p;
}

static float *numbers(size_t n) {
  float *host = (float *)malloc(n * sizeof *host), *p = (float *)room(n * sizeof *p);
  unsigned state = 1;
  for (size_t i = 0; host && i < n; i++) host[i] = (float)((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f;
  cudaMemcpy(p, host, n * sizeof *p, cudaMemcpyHostToDevice);
  free(host);
  return p;
}

static int *tokens(int m, int vocabulary) {
  int *host = (int *)malloc((size_t)m * sizeof *host), *p = (int *)room((size_t)m * sizeof *p);
  for (int i = 0; host && i < m; i++) host[i] = (int)((i * 2654435761u >> 4) % (unsigned)vocabulary);
  cudaMemcpy(p, host, (size_t)m * sizeof *p, cudaMemcpyHostToDevice);
  free(host);
  return p;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  auto is = [&](const char *name) { return !strcmp(what, name); };
  const size_t n = 4096, particle_count = 1 << 22;
  if (is("softmax")) softmax<<<n, THREADS>>>((float *)room(n * n * 4), numbers(n * n), n);
  if (is("transpose")) transpose<<<dim3(n / 32, n / 32), dim3(32, 8)>>>((float *)room(n * n * 4), numbers(n * n), n);
  if (is("particles"))
    particles<<<particle_count / THREADS, THREADS>>>((Particle *)numbers(6 * particle_count), 0.1f, particle_count);
  if (is("column_scale"))
    column_scale<<<dim3(8192 / THREADS, 2048), THREADS>>>((float *)room(n * n * 4), numbers(n * n), numbers(2048), 8192, 2048);
  if (is("rmsnorm"))
    rmsnorm<<<16384, THREADS>>>((__half *)room(n * n * 2), (__half *)numbers(n * n / 2), (__half *)numbers(512), 1024);
  if (is("embedding"))
    embedding<<<8192 * 2048 / THREADS, THREADS>>>((float *)room(n * n * 4), numbers((size_t)32000 * 2048), tokens(8192, 32000), 2048);
  return cudaDeviceSynchronize() != cudaSuccess;
}
