// Kernels that contend: atomics, compare-and-swap loops, locks, tables that many insert into.
#include "kinds.cuh"

__device__ static inline void swap_add(double *to, double v) {
  unsigned long long *p = (unsigned long long *)to, old = *p, was;
  do {
    was = old;
    old = atomicCAS(p, was, __double_as_longlong(v + __longlong_as_double(was)));
  } while (was != old);
}
__device__ static inline void swap_min(float *to, float v) {
  unsigned *p = (unsigned *)to, old = *(volatile unsigned *)p;
  while (v < __uint_as_float(old)) {
    unsigned was = old;
    old = atomicCAS(p, was, __float_as_uint(v));
    if (old == was) break;
  }
}

__global__ void swap_add_one(double *to) {
  swap_add(to, self());
}
__global__ void swap_add_few(double *to) {
  swap_add(&to[self() % 256 * 16], self());
}
__global__ void swap_add_spread(double *to, const uint32_t *at, int n) {
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) swap_add(&to[at[i]], i);
}
__global__ void swap_min_one(float *to, int rounds) {
  uint32_t x = mix(self());
  float v = 1e9f;
  for (int i = 0; i < rounds; i++) x = mix(x + i), v = fminf(v, sinf(x * 1e-9f) + 3.0f);
  swap_min(to, v);
}
__global__ void swap_min_blocks(float *to, const float *in, int n) {
  __shared__ float part[256];
  float v = 1e9f;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) v = fminf(v, in[i]);
  part[threadIdx.x] = v;
  __syncthreads();
  for (int half = 128; half; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] = fminf(part[threadIdx.x], part[threadIdx.x + half]);
    __syncthreads();
  }
  if (!threadIdx.x) swap_min(to, part[0]);
}
__global__ void hash_insert(unsigned *table, unsigned size, const uint32_t *keys, int n) {
  int i = self();
  if (i >= n) return;
  unsigned key = keys[i] | 1, at = mix(key) & (size - 1);
  while (true) {
    unsigned was = atomicCAS(&table[at], 0u, key);
    if (!was || was == key) break;
    at = (at + 1) & (size - 1);
  }
}
__global__ void lock_blocks(unsigned *lock, float *sum, const float *in) {
  __shared__ float part[64];
  part[threadIdx.x] = in[self()];
  __syncthreads();
  if (!threadIdx.x) {
    float s = 0;
    for (int i = 0; i < 64; i++) s += part[i];
    while (atomicCAS(lock, 0u, 1u)) {}
    __threadfence();
    *(volatile float *)sum += s;
    __threadfence();
    atomicExch(lock, 0u);
  }
}
__global__ void bins_int(unsigned *bins, const uint32_t *in, int n, int count) {
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i] % count], 1u);
}
__global__ void bins_float(float *bins, const uint32_t *in, int n, int count) {
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i] % count], 1.0f);
}
__global__ void scatter_add(float *to, const uint32_t *at, int n) {
  int i = self();
  if (i < n) atomicAdd(&to[at[i]], 1.0f);
}
__global__ void scatter_add_double(double *to, const uint32_t *at, int n) {
  int i = self();
  if (i < n) atomicAdd(&to[at[i]], 1.0);
}
__global__ void shared_bins_int(unsigned *bins, const uint32_t *in, int n) {
  __shared__ unsigned own[256];
  for (int k = threadIdx.x; k < 256; k += blockDim.x) own[k] = 0;
  __syncthreads();
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i] & 255], 1u);
  __syncthreads();
  for (int k = threadIdx.x; k < 256; k += blockDim.x) atomicAdd(&bins[k], own[k]);
}
__global__ void shared_floats_spread(float *bins, const uint32_t *in, int n) {
  __shared__ float own[4096];
  for (int k = threadIdx.x; k < 4096; k += blockDim.x) own[k] = 0;
  __syncthreads();
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i] & 4095], 1.0f);
  __syncthreads();
  for (int k = threadIdx.x; k < 4096; k += blockDim.x) bins[blockIdx.x * 4096 + k] = own[k];
}
__global__ void shared_floats_own(float *out, const float *in, int rounds) {
  __shared__ float own[256];
  own[threadIdx.x] = 0;
  float v = in[self()];
  for (int r = 0; r < rounds; r++) atomicAdd(&own[(threadIdx.x + r) & 255], v);
  __syncthreads();
  out[self()] = own[threadIdx.x];
}
__global__ void shared_floats_few(float *bins, const uint32_t *in, int n) {
  __shared__ float own[8];
  if (threadIdx.x < 8) own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i] & 7], 1.0f);
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
__global__ void shared_swaps(int *out, const uint32_t *in, int n) {
  __shared__ int most;
  if (!threadIdx.x) most = 0;
  __syncthreads();
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) {
    int v = (int)(in[i] & 0xffff), was = most;
    while (v > was) {
      int old = atomicCAS(&most, was, v);
      if (old == was) break;
      was = old;
    }
  }
  __syncthreads();
  if (!threadIdx.x) atomicMax(out, most);
}
__global__ void tickets(unsigned *counter, unsigned *out, int n) {
  int i = self();
  if (i < n) out[i] = atomicAdd(counter + (i & 1), 1u + (i & 1));
}
__global__ void compact(unsigned *counter, uint32_t *out, const uint32_t *in, int n) {
  int i = self();
  if (i < n && in[i] % 3 == 0) out[atomicAdd(counter, 1u)] = in[i];
}
__global__ void min_returned(int *to, uint32_t *out, const uint32_t *in, int n) {
  int i = self();
  if (i < n) out[i] = atomicMin(&to[in[i] % 4096], (int)in[i]);
}
__device__ unsigned arrived;
__global__ void last_block(float *parts, float *sum, const float *in, int n) {
  __shared__ float part[256];
  __shared__ bool last;
  float v = 0;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) v += in[i];
  part[threadIdx.x] = v;
  __syncthreads();
  for (int half = 128; half; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (!threadIdx.x) {
    parts[blockIdx.x] = part[0];
    __threadfence();
    last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  v = 0;
  for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) v += ((volatile float *)parts)[i];
  atomicAdd(sum, v);
}

int main() {
  const int n = 1 << 21;
  double *d = array<double>(1 << 20);
  float *f = array<float>(1 << 22), *in = filled<float>(n, 1000);
  uint32_t *any = filled<uint32_t>(n, 1u << 31), *at = filled<uint32_t>(n, 1u << 20, 2), *out = array<uint32_t>(n);
  unsigned *table = array<unsigned>(1 << 21), *u = array<unsigned>(1 << 16);
  LAUNCH(swap_add_one, 4, 256, d);
  LAUNCH(swap_add_few, 64, 256, d);
  LAUNCH(swap_add_spread, 1056, 256, d, at, n / 2);
  for (int time = 0; time < TIMES; time++) {
    float high = 1e9f;
    cudaMemcpy(f, &high, 4, cudaMemcpyHostToDevice);
    swap_min_one<<<800, 256>>>(f, 20);
    cudaMemcpy(f, &high, 4, cudaMemcpyHostToDevice);
    swap_min_blocks<<<1056, 256>>>(f, in, n);
    cudaMemset(table, 0, (1 << 21) * 4);
    hash_insert<<<(1 << 20) / 256, 256>>>(table, 1 << 21, any, 1 << 20);
  }
  LAUNCH(lock_blocks, 264, 64, u, f, in);
  LAUNCH(bins_int, 528, 256, u, any, n, 16);
  LAUNCH(bins_float, 528, 256, f, any, n / 4, 64);
  LAUNCH(scatter_add, n / 256, 256, f, at, n);
  LAUNCH(scatter_add_double, n / 256, 256, d, at, n);
  LAUNCH(shared_bins_int, 528, 256, u, any, n);
  LAUNCH(shared_floats_spread, 264, 256, f, any, n);
  LAUNCH(shared_floats_own, 528, 256, f, in, 64);
  LAUNCH(shared_floats_few, 264, 256, f, any, n / 8);
  LAUNCH(shared_swaps, 528, 256, (int *)u, any, n);
  LAUNCH(tickets, n / 8 / 256, 256, u, out, n / 8);
  for (int time = 0; time < TIMES; time++) {
    cudaMemset(u, 0, 4);
    compact<<<n / 256, 256>>>(u, out, any, n);
  }
  LAUNCH(min_returned, n / 4 / 256, 256, (int *)u, out, any, n / 4);
  LAUNCH(last_block, 1056, 256, f + 16, f, in, n);
  return done();
}
