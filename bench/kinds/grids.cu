// What ordinary programs do on grids and matrices: stencils, filters, scans, sorts, factorisations, dynamic programming.
#include "kinds.cuh"

__global__ void shortest_paths(float *d, int n, int k) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  float through = d[i * n + k] + d[k * n + j];
  if (through < d[i * n + j]) d[i * n + j] = through;
}
__global__ void field_electric(float *ex, float *ey, const float *hz, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i > 0 && i < n) ey[i * n + j] -= 0.5f * (hz[i * n + j] - hz[(i - 1) * n + j]);
  if (j > 0 && j < n) ex[i * n + j] -= 0.5f * (hz[i * n + j] - hz[i * n + j - 1]);
}
__global__ void field_magnetic(const float *ex, const float *ey, float *hz, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < n - 1 && j < n - 1) hz[i * n + j] -= 0.7f * (ex[i * n + j + 1] - ex[i * n + j] + ey[(i + 1) * n + j] - ey[i * n + j]);
}
__global__ void eliminate(float *a, int n, int k) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i > k && j > k && i < n && j < n) a[i * n + j] -= a[i * n + k] / (a[k * n + k] + 3.0f) * a[k * n + j];
}
__global__ void jacobi_double(const double *in, double *out, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
    out[i * n + j] = 0.2 * (in[i * n + j] + in[i * n + j - 1] + in[i * n + j + 1] + in[(i - 1) * n + j] + in[(i + 1) * n + j]);
}
__constant__ float taps[81];
__global__ void filter_rows(const float *in, float *out, int width) {
  __shared__ float line[256 + 16];
  int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
  line[threadIdx.x + 8] = in[y * width + x];
  if (threadIdx.x < 8) {
    line[threadIdx.x] = x >= 8 ? in[y * width + x - 8] : 0;
    line[threadIdx.x + 264] = x + 256 < width ? in[y * width + x + 256] : 0;
  }
  __syncthreads();
  float s = 0;
#pragma unroll
  for (int k = 0; k < 17; k++) s += taps[k] * line[threadIdx.x + k];
  out[y * width + x] = s;
}
__global__ void filter_columns(const float *in, float *out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  float s = 0;
  for (int k = -8; k <= 8; k++)
    if (y + k >= 0 && y + k < height) s += taps[k + 8] * in[(y + k) * width + x];
  out[y * width + x] = s;
}
__global__ void filter_square(const float *in, float *out, int width) {
  __shared__ float tile[16 + 8][16 + 8];
  int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
  for (int j = ty; j < 24; j += 16)
    for (int i = tx; i < 24; i += 16) tile[j][i] = in[(blockIdx.y * 16 + j) * width + blockIdx.x * 16 + i];
  __syncthreads();
  float s = 0;
#pragma unroll 1
  for (int j = 0; j < 9; j++)
#pragma unroll
    for (int i = 0; i < 9; i++) s += taps[j * 9 + i] * tile[ty + j][tx + i];
  out[y * width + x] = s;
}
__global__ void scan_blocks(const int *in, int *out, int *sums) {
  __shared__ int part[2][512];
  int t = threadIdx.x, at = 0;
  part[0][t] = in[blockIdx.x * 512 + t];
  __syncthreads();
  for (int d = 1; d < 512; d *= 2) {
    part[1 - at][t] = part[at][t] + (t >= d ? part[at][t - d] : 0);
    at = 1 - at;
    __syncthreads();
  }
  out[blockIdx.x * 512 + t] = part[at][t];
  if (t == 511) sums[blockIdx.x] = part[at][t];
}
__global__ void scan_sums(int *sums, int n) { // one block, a chunk a thread
  __shared__ int part[1024];
  int t = threadIdx.x, each = n / 1024, s = 0;
  for (int i = 0; i < each; i++) s += sums[t * each + i];
  part[t] = s;
  __syncthreads();
  for (int d = 1; d < 1024; d *= 2) {
    int v = t >= d ? part[t - d] : 0;
    __syncthreads();
    part[t] += v;
    __syncthreads();
  }
  s = part[t] - s;
  for (int i = 0; i < each; i++) s += sums[t * each + i], sums[t * each + i] = s;
}
__global__ void scan_up_down(float *data) { // Blelloch's, with the bank conflicts that it has
  __shared__ float s[1024];
  int t = threadIdx.x;
  float *mine = data + blockIdx.x * 1024;
  s[2 * t] = mine[2 * t], s[2 * t + 1] = mine[2 * t + 1];
  int step = 1;
  for (int d = 512; d > 0; d >>= 1, step *= 2) {
    __syncthreads();
    if (t < d) s[step * (2 * t + 2) - 1] += s[step * (2 * t + 1) - 1];
  }
  if (t == 0) s[1023] = 0;
  for (int d = 1; d < 1024; d *= 2) {
    step >>= 1;
    __syncthreads();
    if (t < d) {
      float v = s[step * (2 * t + 1) - 1];
      s[step * (2 * t + 1) - 1] = s[step * (2 * t + 2) - 1], s[step * (2 * t + 2) - 1] += v;
    }
  }
  __syncthreads();
  mine[2 * t] = s[2 * t], mine[2 * t + 1] = s[2 * t + 1];
}
__global__ void sort_step(uint32_t *a, int j, int k) {
  int i = self(), o = i ^ j;
  if (o <= i) return;
  uint32_t x = a[i], y = a[o];
  if ((i & k) == 0 ? x > y : x < y) a[i] = y, a[o] = x;
}
__global__ void sort_blocks(uint32_t *a) {
  __shared__ uint32_t s[1024];
  int t = threadIdx.x;
  s[t] = a[blockIdx.x * 1024 + t], s[t + 512] = a[blockIdx.x * 1024 + t + 512];
  for (int k = 2; k <= 1024; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      int i = 2 * t - (t & (j - 1));
      uint32_t x = s[i], y = s[i + j];
      if ((i & k) == 0 ? x > y : x < y) s[i] = y, s[i + j] = x;
    }
  __syncthreads();
  a[blockIdx.x * 1024 + t] = s[t], a[blockIdx.x * 1024 + t + 512] = s[t + 512];
}
__global__ void product_of_columns(const float *a, const float *x, float *y, int n) { // y = A^T x, a thread a column
  int j = self();
  float s = 0;
  for (int i = 0; i < n; i++) s += a[i * n + j] * x[i];
  y[j] = s;
}
__global__ void product_conflicts(const float *a, const float *b, float *c, int n) {
  __shared__ float ta[32][32], tb[32][32];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 32 + ty, column = blockIdx.x * 32 + tx;
  float s = 0;
  for (int k = 0; k < n; k += 32) {
    ta[ty][tx] = a[row * n + k + tx], tb[tx][ty] = b[(k + ty) * n + column];
    __syncthreads();
    for (int i = 0; i < 32; i++) s += ta[ty][i] * tb[tx][i];
    __syncthreads();
  }
  c[row * n + column] = s;
}
__global__ void covariance(const float *data, float *c, int rows, int n) { // the upper triangle, a row a thread
  int a = self();
  if (a >= n) return;
  for (int b = a; b < n; b++) {
    float s = 0;
    for (int i = 0; i < rows; i++) s += data[i * n + a] * data[i * n + b];
    c[a * n + b] = c[b * n + a] = s;
  }
}
__global__ void heat_pyramid(const float *in, const float *power, float *out, int n, int steps) {
  __shared__ float t[2][32][32];
  int tx = threadIdx.x, ty = threadIdx.y, inner = 32 - 2 * steps, x = blockIdx.x * inner + tx, y = blockIdx.y * inner + ty, at = 0;
  bool in_grid = x < n && y < n;
  t[0][ty][tx] = in_grid ? in[y * n + x] : 0;
  float p = in_grid ? power[y * n + x] : 0;
  __syncthreads();
  for (int s = 1; s <= steps; s++) {
    float v = t[at][ty][tx];
    if (tx >= s && tx < 32 - s && ty >= s && ty < 32 - s)
      v += 0.1f * (p + (t[at][ty + 1][tx] + t[at][ty - 1][tx] - 2 * v) * 0.3f + (t[at][ty][tx + 1] + t[at][ty][tx - 1] - 2 * v) * 0.3f);
    t[1 - at][ty][tx] = v, at = 1 - at;
    __syncthreads();
  }
  if (in_grid && tx >= steps && tx < 32 - steps && ty >= steps && ty < 32 - steps) out[y * n + x] = t[at][ty][tx];
}
__global__ void cheapest_path(const int *wall, const int *in, int *out, int width, int steps) {
  __shared__ int s[2][256];
  int t = threadIdx.x, x = blockIdx.x * (256 - 2 * steps) + t - steps, at = 0;
  bool there = x >= 0 && x < width;
  s[0][t] = there ? in[x] : 1 << 20;
  __syncthreads();
  for (int i = 0; i < steps; i++) {
    int v = s[at][t];
    if (t > i && t < 255 - i && there) v = min(v, min(s[at][t - 1], s[at][t + 1])) + wall[(size_t)i * width + x];
    s[1 - at][t] = v, at = 1 - at;
    __syncthreads();
  }
  if (t >= steps && t < 256 - steps && there) out[x] = s[at][t];
}
__global__ void align(const int *score, int *m, int n, int diagonal) { // tiles of 16 along a diagonal, 16 threads each
  __shared__ int s[17][17], r[16][16];
  int t = threadIdx.x, bx = blockIdx.x, by = diagonal - 1 - bx;
  int base = (by * 16) * n + bx * 16;
  for (int i = 0; i < 16; i++) r[i][t] = score[base + (i + 1) * n + t + 1];
  s[0][t + 1] = m[base + t + 1], s[t + 1][0] = m[base + (t + 1) * n];
  if (t == 0) s[0][0] = m[base];
  __syncthreads();
  for (int d = 0; d < 31; d++) {
    int y = d - t;
    if (y >= 0 && y < 16) s[y + 1][t + 1] = max(s[y][t] + r[y][t], max(s[y + 1][t], s[y][t + 1]) - 10);
    __syncthreads();
  }
  for (int i = 0; i < 16; i++) m[base + (i + 1) * n + t + 1] = s[i + 1][t + 1];
}
__global__ void diffuse(const float *image, float *out, float q0, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < 1 || j < 1 || i >= n - 1 || j >= n - 1) return;
  float c = image[i * n + j] + 1, dn = image[(i - 1) * n + j] + 1 - c, ds = image[(i + 1) * n + j] + 1 - c, dw = image[i * n + j - 1] + 1 - c,
        de = image[i * n + j + 1] + 1 - c;
  float g2 = (dn * dn + ds * ds + dw * dw + de * de) / (c * c), l = (dn + ds + dw + de) / c;
  float num = 0.5f * g2 - 0.0625f * l * l, den = 1 + 0.25f * l, q = num / (den * den);
  den = (q - q0) / (q0 * (1 + q0));
  float r = 1 / (1 + den);
  out[i * n + j] = r < 0 ? 0 : r > 1 ? 1 : r;
}
__global__ void points_27(const float *in, float *out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z;
  if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= (int)gridDim.z - 1) return;
  float s = 0;
  for (int a = -1; a <= 1; a++)
    for (int b = -1; b <= 1; b++)
      for (int c = -1; c <= 1; c++) s += in[((z + a) * n + y + b) * n + x + c];
  out[(z * n + y) * n + x] = s / 27;
}
__global__ void along_z(const float *in, float *out, int n, int depth) { // a column a thread, registers along it
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  size_t plane = (size_t)n * n, at = (size_t)y * n + x;
  float below = in[at], here = in[at + plane];
  for (int z = 1; z < depth - 1; z++) {
    at += plane;
    float above = in[at + plane];
    out[at] = 0.1f * (below + above + in[at - 1] + in[at + 1] + in[at - n] + in[at + n]) + 0.4f * here;
    below = here, here = above;
  }
}
__global__ void histogram_rows(const uint8_t *in, int *bins, int each) { // a histogram a thread, in global memory
  int i = self();
  for (int k = 0; k < each; k++) bins[in[i * each + k] / 16 * (gridDim.x * blockDim.x) + i]++;
}
__global__ void normalise_rows(float *a, int n) { // a row a block: mean, then deviation, then both applied
  __shared__ float part[256];
  float *row = a + (size_t)blockIdx.x * n;
  int t = threadIdx.x;
  float s = 0;
  for (int i = t; i < n; i += 256) s += row[i];
  for (int pass = 0; pass < 2; pass++) {
    part[t] = s;
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {
      if (t < d) part[t] += part[t + d];
      __syncthreads();
    }
    float mean = part[0] / n;
    __syncthreads();
    if (pass == 0) {
      s = 0;
      for (int i = t; i < n; i += 256) s += (row[i] - mean) * (row[i] - mean), row[i] -= mean;
    } else {
      float r = rsqrtf(mean + 1e-5f);
      for (int i = t; i < n; i += 256) row[i] *= r;
    }
  }
}

int main() {
  const int n = 1024;
  float *a = filled<float>(n * n * 16, 1000), *b = filled<float>(n * n * 4, 1000, 3), *c = array<float>(n * n * 16);
  dim3 square(32, 8), grid(n / 32, n / 8);
  float host[81];
  for (int i = 0; i < 81; i++) host[i] = 0.01f * i;
  cudaMemcpyToSymbol(taps, host, sizeof host);
  LAUNCH(shortest_paths, dim3(8, 2048), 256, a, 2048, 5);
  dim3 large(2048 / 32, 2048 / 8);
  LAUNCH(field_electric, large, square, a, c, b, 2048);
  LAUNCH(field_magnetic, large, square, a, b, c, 2048);
  LAUNCH(eliminate, large, square, a, 2048, 100);
  LAUNCH(jacobi_double, large, square, (double *)a, (double *)c, 2048);
  LAUNCH(filter_rows, dim3(8, 1024), 256, a, c, 2048);
  LAUNCH(filter_columns, dim3(8, 1024), 256, a, c, 2048, 1024);
  LAUNCH(filter_square, dim3(64, 64), dim3(16, 16), a, c, 1100);
  LAUNCH(scan_blocks, 4096, 512, (int *)a, (int *)c, (int *)b);
  LAUNCH(scan_sums, 1, 1024, (int *)b, 16384);
  LAUNCH(scan_up_down, 2048, 512, c);
  LAUNCH(sort_step, 8192, 256, (uint32_t *)a, 4096, 1 << 20);
  LAUNCH(sort_blocks, 528, 512, (uint32_t *)a);
  LAUNCH(product_of_columns, 16, 256, a, b, c, 4096);
  LAUNCH(product_conflicts, dim3(16, 16), dim3(32, 32), a, b, c, 512);
  LAUNCH(covariance, 2, 128, a, c, 32, 256);
  LAUNCH(heat_pyramid, dim3(43, 43), dim3(32, 32), a, b, c, 1024, 4);
  LAUNCH(cheapest_path, 1100, 256, (int *)a, (int *)b, (int *)c, 216 * 1100, 20);
  LAUNCH(align, 128, 16, (int *)a, (int *)c, 2049, 128);
  LAUNCH(diffuse, large, square, a, c, 0.5f, 2048);
  LAUNCH(points_27, dim3(8, 32, 64), square, a, c, 256);
  LAUNCH(along_z, dim3(16, 64), square, a, c, 512, 60);
  LAUNCH(histogram_rows, 264, 128, (uint8_t *)a, (int *)c, 64);
  LAUNCH(normalise_rows, 1024, 256, c, 4096);
  return done();
}
