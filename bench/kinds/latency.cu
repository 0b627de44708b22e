// Few warps that wait: chains of arithmetic and of loads, single blocks with many barriers, serial loops.
#include "kinds.cuh"

__global__ void chain_fma64(double *out, int n) {
  double a = out[self()];
  for (int i = 0; i < n; i++) a = a * 0.999 + 0.25;
  out[self()] = a;
}
__global__ void chain_div32(float *out, int n) {
  float a = out[self()] + 3;
  for (int i = 0; i < n; i++) a = 7.5f / (a + 1.25f);
  out[self()] = a;
}
__global__ void chain_div64(double *out, int n) {
  double a = out[self()] + 3;
  for (int i = 0; i < n; i++) a = 7.5 / (a + 1.25);
  out[self()] = a;
}
__global__ void chain_root64(double *out, int n) {
  double a = out[self()] + 3;
  for (int i = 0; i < n; i++) a = sqrt(a + 1.5);
  out[self()] = a;
}
__global__ void chain_sin32(float *out, int n) {
  float a = out[self()] + 0.5f;
  for (int i = 0; i < n; i++) a = sinf(a) + 0.7f;
  out[self()] = a;
}
__global__ void chain_exp64(double *out, int n) {
  double a = out[self()] + 0.5;
  for (int i = 0; i < n; i++) a = exp(-a);
  out[self()] = a;
}
__global__ void chain_rsqrt(float *out, int n) {
  float a = out[self()] + 0.5f;
  for (int i = 0; i < n; i++) a = rsqrtf(a + 1.0f);
  out[self()] = a;
}
__global__ void chain_mod(uint32_t *out, int n, uint32_t m) {
  uint32_t a = out[self()] + 77777777u;
  for (int i = 0; i < n; i++) a = (a * 48271u + 11u) % m;
  out[self()] = a;
}
__global__ void chain_mod64(uint64_t *out, int n, uint64_t m) {
  uint64_t a = out[self()] + 777777777777ull;
  for (int i = 0; i < n; i++) a = (a * 48271u + 11u) % m;
  out[self()] = a;
}
__global__ void chase_shared(uint32_t *out, int n) {
  __shared__ uint32_t next[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) next[i] = (i + 389) & 1023;
  __syncthreads();
  uint32_t a = threadIdx.x;
  for (int i = 0; i < n; i++) a = next[a];
  out[self()] = a;
}
__global__ void chase_l1(uint32_t *out, const uint32_t *next, int n) {
  uint32_t a = 0;
  for (int i = 0; i < n; i++) a = next[a];
  out[self()] = a;
}
__global__ void chase_l2(uint32_t *out, const uint32_t *next, int n) {
  uint32_t a = 0;
  for (int i = 0; i < n; i++) a = next[a];
  out[self()] = a;
}
__global__ void chase_dram(uint32_t *out, const uint32_t *next, int n) {
  uint32_t a = 0;
  for (int i = 0; i < n; i++) a = next[a];
  out[self()] = a;
}
__global__ void chase_many(uint32_t *out, const uint32_t *next, int n, uint32_t count) {
  uint32_t a = mix(self()) % count * 8;
  for (int i = 0; i < n; i++) a = next[a];
  out[self()] = a;
}
__global__ void serial_sum(float *out, const float *in, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) s += in[i], out[i] = s;
}
__global__ void serial_sum_double(double *out, const float *in, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) s += in[i];
  *out = s;
}
__global__ void block_scan(float *out, const float *in, int n) {
  __shared__ float part[1024];
  float carry = 0;
  for (int base = 0; base < n; base += 1024) {
    part[threadIdx.x] = in[base + threadIdx.x];
    __syncthreads();
    for (int d = 1; d < 1024; d *= 2) {
      float v = threadIdx.x >= d ? part[threadIdx.x - d] : 0;
      __syncthreads();
      part[threadIdx.x] += v;
      __syncthreads();
    }
    out[base + threadIdx.x] = part[threadIdx.x] + carry;
    carry += part[1023];
    __syncthreads();
  }
}
__global__ void wavefront(int *out, const uint32_t *a, const uint32_t *b, int n) {
  __shared__ int line[3][257];
  int t = threadIdx.x;
  line[0][t + 1] = line[1][t + 1] = line[2][t + 1] = 0;
  if (!t) line[0][0] = line[1][0] = line[2][0] = 0;
  __syncthreads();
  for (int d = 0; d < n; d++) {
    int now = d % 3, one = (d + 2) % 3, two = (d + 1) % 3, j = d - t;
    if (j >= 0) {
      int same = line[two][t] + (a[t] == b[j & 1023] ? 1 : 0), best = max(line[one][t], line[one][t + 1]);
      line[now][t + 1] = max(same, best);
    }
    __syncthreads();
  }
  out[self()] = line[(n - 1) % 3][t + 1];
}
__global__ void search(uint32_t *out, const uint32_t *sorted, int size, int n) {
  int i = self();
  if (i >= n) return;
  uint32_t key = mix(i) % (uint32_t)(size * 3);
  int low = 0, high = size;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (sorted[middle] <= key)
      low = middle;
    else
      high = middle;
  }
  out[i] = low;
}
__global__ void few_threads_dot(float *out, const float *a, const float *b, int n) {
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += a[(size_t)blockIdx.x * n + i] * b[i];
  for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d);
  if (!threadIdx.x) out[blockIdx.x] = s;
}
__global__ void row_a_thread(float *out, const float *in, int rows, int columns) {
  int row = self();
  if (row >= rows) return;
  float s = 0;
  for (int i = 0; i < columns; i++) s += in[(size_t)row * columns + i];
  out[row] = s;
}
__global__ void solve_lower(float *x, const float *a, int n) {
  __shared__ float own[256];
  own[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int k = 0; k < n; k++) {
    if (threadIdx.x == k) own[k] /= a[k * n + k] + 2;
    __syncthreads();
    if (threadIdx.x > k) own[threadIdx.x] -= a[threadIdx.x * n + k] * own[k];
    __syncthreads();
  }
  x[threadIdx.x] = own[threadIdx.x];
}

int main() {
  const int n = 1 << 22;
  double *d = array<double>(1 << 16);
  float *f = array<float>(n), *in = filled<float>(n, 100);
  uint32_t *u = array<uint32_t>(1 << 20), *near = cycle(1024, 8), *middle = cycle(1 << 17, 32), *far = cycle(1 << 21, 32);
  uint32_t *letters = filled<uint32_t>(1024, 4);
  uint32_t *host = new uint32_t[1 << 20], *sorted = array<uint32_t>(1 << 20);
  for (uint32_t i = 0; i < 1 << 20; i++) host[i] = i * 3;
  cudaMemcpy(sorted, host, 4 << 20, cudaMemcpyHostToDevice);
  LAUNCH(chain_fma64, 1, 64, d, 4000);
  LAUNCH(chain_div32, 8, 64, f, 1000);
  LAUNCH(chain_div64, 1, 128, d, 1000);
  LAUNCH(chain_root64, 4, 32, d, 1000);
  LAUNCH(chain_sin32, 2, 64, f, 1000);
  LAUNCH(chain_exp64, 1, 32, d, 500);
  LAUNCH(chain_rsqrt, 1, 64, f, 2000);
  LAUNCH(chain_mod, 1, 64, u, 1000, 2147483647u);
  LAUNCH(chain_mod64, 1, 64, (uint64_t *)d, 500, 1000000007ull);
  LAUNCH(chase_shared, 1, 32, u, 4000);
  LAUNCH(chase_l1, 1, 1, u, near, 3000);
  LAUNCH(chase_l2, 1, 1, u, middle, 1000);
  LAUNCH(chase_dram, 1, 1, u, far, 500);
  LAUNCH(chase_many, 264, 256, u, middle, 32, 1 << 17);
  LAUNCH(serial_sum, 1, 1, f, in, 4000);
  LAUNCH(serial_sum_double, 1, 1, d, in, 4000);
  LAUNCH(block_scan, 1, 1024, f, in, 32768);
  LAUNCH(wavefront, 1, 256, (int *)u, letters, letters, 1000);
  LAUNCH(search, 1024, 256, u, sorted, 1 << 20, 1 << 18);
  LAUNCH(few_threads_dot, 264, 32, f, in, in, 8192);
  LAUNCH(row_a_thread, 16, 128, f, in, 2048, 1024);
  LAUNCH(solve_lower, 1, 256, f, in, 256);
  return done();
}
