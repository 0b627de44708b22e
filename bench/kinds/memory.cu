// Memory in ways that are not a stream: private arrays, gathers, textures, tables of constants, conflicts, small blocks.
#include "kinds.cuh"

__global__ void axpby(float a, const float *x, float b, float *y, int n) {
  int i = self();
  if (i < n) y[i] = a * x[i] + b * y[i];
}
__global__ void structs(float *out, const float *in, int n) {
  int i = self();
  if (i >= n) return;
  const float *p = in + (size_t)i * 7;
  out[i] = p[0] * p[1] + p[2] * p[3] + p[4] * p[5] + p[6];
}
__global__ void gather(float *out, const float *in, const uint32_t *at, int n) {
  int i = self();
  if (i < n) out[i] = in[at[i]];
}
__global__ void scatter(float *out, const float *in, const uint32_t *at, int n) {
  int i = self();
  if (i < n) out[at[i]] = in[i];
}
__global__ void bytes(uint8_t *out, const uint8_t *in, int n) {
  int i = self();
  if (i < n) out[i] = (uint8_t)(in[i] * 3 + 1);
}
__global__ void transpose(float *out, const float *in, int width, int height) {
  int x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 8 + threadIdx.x / 32;
  out[(size_t)x * height + y] = in[(size_t)y * width + x];
}
__global__ void columns(float *out, const float *in, int width, int height) {
  int x = self();
  if (x >= width) return;
  float s = 0;
  for (int y = 0; y < height; y++) s += in[(size_t)y * width + x];
  out[x] = s;
}
__global__ void stencil(float *out, const float *in, int nx, int ny, int nz) {
  int x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 8 + threadIdx.x / 32;
  if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
  for (int z = 1; z < nz - 1; z++) {
    size_t at = ((size_t)z * ny + y) * nx + x;
    out[at] = in[at - 1] + in[at + 1] + in[at - nx] + in[at + nx] + in[at - nx * ny] + in[at + nx * ny] - 6 * in[at];
  }
}
__global__ void rows_scalar(float *y, const int *first, const uint32_t *column, const float *value, const float *x, int rows) {
  int row = self();
  if (row >= rows) return;
  float s = 0;
  for (int k = first[row]; k < first[row + 1]; k++) s += value[k] * x[column[k]];
  y[row] = s;
}
__global__ void rows_warp(float *y, const int *first, const uint32_t *column, const float *value, const float *x, int rows) {
  int row = self() / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float s = 0;
  for (int k = first[row] + lane; k < first[row + 1]; k += 32) s += value[k] * x[column[k]];
  for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d);
  if (!lane) y[row] = s;
}
__global__ void private_small(float *out, const uint32_t *in, int rounds) {
  float own[32];
  for (int i = 0; i < 32; i++) own[i] = (float)i;
  uint32_t x = in[self()];
  for (int r = 0; r < rounds; r++) {
    x = x * 1664525u + 1013904223u;
    own[x >> 27] += (float)r;
  }
  float s = 0;
  for (int i = 0; i < 32; i++) s += own[i];
  out[self()] = s;
}
__global__ void private_large(float *out, const uint32_t *in, int n) {
  float own[400];
  uint32_t x = in[self()] & 3;
  for (int i = 0; i < n; i++) own[i] = (float)(i ^ x);
  for (int pass = 0; pass < 4; pass++)
    for (int i = 1; i < n; i++) own[i] += own[i - 1] * 0.5f;
  float s = 0;
  for (int i = n - 1; i >= 0; i -= 3) s += own[i];
  out[self()] = s;
}
__global__ void private_random(float *out, const uint32_t *in, int rounds) {
  float own[128];
  for (int i = 0; i < 128; i++) own[i] = (float)i;
  uint32_t x = in[self()];
  for (int r = 0; r < rounds; r++) {
    x = x * 1664525u + 1013904223u;
    own[x >> 25] += own[(x >> 15) & 127];
  }
  float s = 0;
  for (int i = 0; i < 128; i += 5) s += own[i];
  out[self()] = s;
}
__global__ void private_sort(uint32_t *out, const uint32_t *in) {
  uint32_t own[24];
  for (int i = 0; i < 24; i++) own[i] = mix(in[self()] + i);
  for (int i = 1; i < 24; i++) {
    uint32_t v = own[i];
    int j = i;
    for (; j > 0 && own[j - 1] > v; j--) own[j] = own[j - 1];
    own[j] = v;
  }
  out[self()] = own[self() % 24];
}
__global__ void texture_linear(float *out, cudaTextureObject_t image, int width, int height) {
  int x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 8 + threadIdx.x / 32;
  float s = 0;
  for (int k = 0; k < 8; k++) s += tex2D<float>(image, x * 0.87f + k * 0.31f, y * 0.91f + k * 0.17f);
  out[(size_t)y * width + x] = s;
}
__global__ void texture_random(float *out, cudaTextureObject_t list, const uint32_t *at, int n) {
  int i = self();
  if (i < n) out[i] = tex1Dfetch<float>(list, (int)at[i]);
}
__constant__ float table[1024];
__global__ void constants_apart(float *out, const uint32_t *in, int rounds) {
  uint32_t x = in[self()];
  float s = 0;
  for (int r = 0; r < rounds; r++) s += table[(x + r * 17u) & 1023];
  out[self()] = s;
}
__global__ void constants_alike(float *out, int rounds) {
  float s = out[self()];
  for (int r = 0; r < rounds; r++) s = s * table[r & 1023] + table[(r * 7) & 1023];
  out[self()] = s;
}
__global__ void conflicts(float *out, int rounds) {
  __shared__ float tile[32][32];
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  for (int k = y; k < 32; k += 8) tile[k][x] = (float)(k + x);
  __syncthreads();
  float s = 0;
  for (int r = 0; r < rounds; r++) s += tile[x][(y + r) & 31];
  out[self()] = s;
}
__global__ void past_l1(float *out, const float *in, int n) {
  float s = 0;
  for (int i = self() % 4096; i < n; i += 4096) s += __ldcg(&in[i]);
  out[self()] = s;
}
__global__ void tiny_blocks(float *out, const float *in, int n) {
  int i = self();
  if (i < n) out[i] = in[i] * 2 + 1;
}
__global__ void doubles_strided(double *out, int stride, int n) {
  int i = self();
  if (i < n) out[(size_t)i * stride] = i;
}
__global__ void halo_tile(float *out, const float *in, int n) {
  __shared__ float tile[256 + 16];
  int i = self();
  tile[threadIdx.x + 8] = in[i];
  if (threadIdx.x < 8) tile[threadIdx.x] = i >= 8 ? in[i - 8] : 0, tile[threadIdx.x + 264] = i + 256 < n ? in[i + 256] : 0;
  __syncthreads();
  float s = 0;
  for (int k = 0; k < 17; k++) s += tile[threadIdx.x + k] * (float)k;
  out[i] = s;
}
__global__ void touch_managed(float *p, int n) {
  int i = self();
  if (i < n) p[i] += 1;
}

static cudaTextureObject_t linear_texture(int width, int height) {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t image;
  cudaMallocArray(&image, &format, width, height);
  float *host = new float[(size_t)width * height];
  for (size_t i = 0; i < (size_t)width * height; i++) host[i] = (float)(i % 255);
  cudaMemcpy2DToArray(image, 0, 0, host, width * 4, width * 4, height, cudaMemcpyHostToDevice);
  delete[] host;
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeArray;
  what.res.array.array = image;
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  how.filterMode = cudaFilterModeLinear;
  cudaTextureObject_t t = 0;
  cudaCreateTextureObject(&t, &what, &how, nullptr);
  return t;
}
static cudaTextureObject_t list_texture(float *p, size_t count) {
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeLinear;
  what.res.linear.devPtr = p;
  what.res.linear.desc = cudaCreateChannelDesc<float>();
  what.res.linear.sizeInBytes = count * 4;
  cudaTextureDesc how = {};
  cudaTextureObject_t t = 0;
  cudaCreateTextureObject(&t, &what, &how, nullptr);
  return t;
}

int main() {
  const int n = 1 << 22, rows = 1 << 16;
  float *f = array<float>(n), *in = filled<float>((size_t)n * 2, 1000);
  uint32_t *at = filled<uint32_t>(n, n), *u = array<uint32_t>(n);
  int *first = new int[rows + 1], *starts = array<int>(rows + 1);
  first[0] = 0;
  for (int i = 0; i < rows; i++) first[i + 1] = first[i] + 4 + (int)(mix(i) % 57);
  cudaMemcpy(starts, first, (rows + 1) * 4, cudaMemcpyHostToDevice);
  LAUNCH(axpby, n / 64, 64, 2.0f, in, 3.0f, f, n);
  LAUNCH(structs, 4096, 256, f, in, 1 << 20);
  LAUNCH(gather, n / 256, 256, f, in, at, n);
  LAUNCH(scatter, n / 2 / 256, 256, f, in, at, n / 2);
  LAUNCH(bytes, n * 4 / 256, 256, (uint8_t *)f, (uint8_t *)in, n * 4);
  LAUNCH(transpose, dim3(64, 128), 256, f, in, 2048, 1024);
  LAUNCH(columns, 16, 256, f, in, 4096, 1024);
  LAUNCH(stencil, dim3(6, 24), 256, f, in, 192, 192, 96);
  LAUNCH(rows_scalar, rows / 256, 256, f, starts, at, in, in, rows);
  LAUNCH(rows_warp, rows / 8, 256, f, starts, at, in, in, rows);
  LAUNCH(private_small, 528, 128, f, at, 200);
  LAUNCH(private_large, 528, 256, f, at, 400);
  LAUNCH(private_random, 528, 128, f, at, 200);
  LAUNCH(private_sort, 1056, 128, u, at);
  cudaTextureObject_t image = linear_texture(1024, 1024), list = list_texture(in, n);
  LAUNCH(texture_linear, dim3(32, 128), 256, f, image, 1024, 1024);
  LAUNCH(texture_random, n / 2 / 256, 256, f, list, at, n / 2);
  LAUNCH(constants_apart, 528, 256, f, at, 32);
  LAUNCH(constants_alike, 528, 256, f, 512);
  LAUNCH(conflicts, 528, 256, f, 100);
  LAUNCH(past_l1, 264, 256, f, in, 1 << 20);
  LAUNCH(tiny_blocks, n / 4 / 32, 32, f, in, n / 4);
  LAUNCH(doubles_strided, 2048, 256, (double *)f, 4, 1 << 19);
  LAUNCH(halo_tile, n / 256, 256, f, in, n);
  float *shared;
  cudaMallocManaged(&shared, (size_t)4 << 20);
  for (int time = 0; time < TIMES; time++) {
    for (int i = 0; i < 1 << 20; i++) shared[i] = (float)i;
    touch_managed<<<4096, 256>>>(shared, 1 << 20);
    cudaDeviceSynchronize();
  }
  return done();
}
