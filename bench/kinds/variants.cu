// Variants: each mechanism at several sizes, so that a price that fits one of them by chance shows at the others. All may be looked at.
#include "kinds.cuh"
#include <cooperative_groups.h>
#include <math.h>
namespace cg = cooperative_groups;

// ---- loops of one thread, warp or block over what others left ----

template <int KIND> __global__ void serial(float *out, const float *in, int n) { // KIND: what the loop does
  float s = 0;
  if (threadIdx.x) return;
  if (KIND == 0) for (int i = 0; i < n; i++) s += in[i];
  if (KIND == 1) for (int i = 0; i < n; i++) s = fmaxf(s, in[i * 32]);
  if (KIND == 2) for (int i = 0; i < n && s < 1e30f; i++) s += in[i]; // an end that the data decides
  if (KIND == 3) for (int i = 0; i < n; i++) s += in[i], out[i + 1] = s;
  if (KIND == 4) for (int i = 0; i < n; i++) s += in[i] * in[i + n];
  if (KIND == 5) for (int i = 0; i < n; i++) s += ((const volatile float *)in)[i];
  if (KIND == 6) for (int i = 0; i < n; i++) if (in[i] > 50.0f) s += in[i];
  out[0] = s;
}

template <int KIND> __global__ void last_block(unsigned *count, float *parts, float *out, const float *in, int n) {
  __shared__ bool last;
  float v = in[self() % n];
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = v;
    __threadfence();
    last = atomicAdd(count, 1) % gridDim.x == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  float s = 0;
  if (KIND == 0 && threadIdx.x == 0) {
    for (unsigned i = 0; i < gridDim.x; i++) s += parts[i];
    out[0] = s;
  }
  if (KIND == 1 && threadIdx.x == 0) {
    for (unsigned i = 0; i < gridDim.x; i++) s += ((volatile float *)parts)[i];
    out[0] = s;
  }
  if (KIND == 2) {
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) s += parts[i];
    out[threadIdx.x] = s;
  }
}

__global__ void block_rows(float *out, const float *in, int width) { // a thread a row: neighbouring words one after another
  float s = 0;
  for (int i = 0; i < width; i++) s += in[(size_t)self() * width + i];
  out[self()] = s;
}

__global__ void column_sums(float *out, const float *in, int rows, int columns) {
  int c = self();
  float s = 0;
  if (c >= columns) return;
  for (int r = 0; r < rows; r++) s += in[(size_t)r * columns + c];
  out[c] = s;
}

template <int R> __global__ void column_filter(float *out, const float *in, int rows, int columns) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  float s = 0;
#pragma unroll
  for (int k = -R; k <= R; k++) {
    int y = min(max(r + k, 0), rows - 1);
    s += in[(size_t)y * columns + c] * (float)(k + R + 1);
  }
  out[(size_t)r * columns + c] = s;
}

// ---- constants ----

__constant__ float table[16384];
template <int WORDS, int KIND> __global__ void constants(float *out, int times) {
  float s = 0;
  uint32_t at = KIND == 0 ? blockIdx.x : KIND == 1 ? self() / 32 : self();
  for (int i = 0; i < times; i++) {
    at = at * 1664525u + 1013904223u;
    s += table[(at >> 10) % WORDS];
  }
  out[self()] = s;
}

// ---- swaps and exchanges ----

template <typename T> __device__ T from_bits(unsigned b) { return (T)__uint_as_float(b); }
template <int WORDS, int APART> __global__ void float_max(unsigned *words, const uint32_t *in) { // behind a test
  unsigned *w = &words[(in[self()] >> 20) % WORDS * APART];
  float v = (float)(mix(self()) & 0xfffff);
  unsigned old = *(volatile unsigned *)w;
  while (v > __uint_as_float(old)) {
    unsigned seen = atomicCAS(w, old, __float_as_uint(v));
    if (seen == old) break;
    old = seen;
  }
}
template <int WORDS, int APART> __global__ void float_add(unsigned *words, const uint32_t *in) { // by swaps
  unsigned *w = &words[(in[self()] >> 8) % WORDS * APART], old = *w, seen;
  do {
    seen = old;
    old = atomicCAS(w, seen, __float_as_uint(__uint_as_float(seen) + 1.0f));
  } while (old != seen);
}
template <int WORDS, int APART> __global__ void exchanges(unsigned *words, const uint32_t *in, unsigned *out, int times) {
  unsigned v = self();
  for (int i = 0; i < times; i++) v = atomicExch(&words[(in[self()] + mix(i) >> 8) % WORDS * APART], v);
  out[self()] = v;
}
template <int WORDS, int APART> __global__ void swaps_once(unsigned *words, const uint32_t *in, unsigned *out, int times) { // one try each
  unsigned v = 0;
  for (int i = 0; i < times; i++) v += atomicCAS(&words[(in[self()] + mix(i) >> 8) % WORDS * APART], v, v + 1);
  out[self()] = v;
}
template <typename T, int WORDS> __global__ void adds(T *words, const uint32_t *in, int times) {
  for (int i = 0; i < times; i++) atomicAdd(&words[(in[self()] + mix(i) >> 8) % WORDS], (T)1);
}
template <typename T> __global__ void adds_few_blocks(T *words, const uint32_t *in, int n, int words_mask) {
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) atomicAdd(&words[in[i] & words_mask], (T)1);
}
template <int WORDS> __global__ void mins(int *words, const uint32_t *in, int times) {
  for (int i = 0; i < times; i++) atomicMin(&words[(in[self()] + mix(i) >> 8) % WORDS], (int)(in[self()] - i));
}

// ---- shared memory: swaps, locks, flags ----

template <int WORDS> __global__ void shared_cas(int *out, const uint32_t *in, int times) {
  __shared__ int words[WORDS];
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = 0;
  __syncthreads();
  for (int i = 0; i < times; i++) {
    int *w = &words[(in[self()] + mix(i) >> 8) % WORDS], old = *(volatile int *)w, seen;
    do seen = old, old = atomicCAS(w, seen, seen + 3);
    while (old != seen);
  }
  __syncthreads();
  out[self()] = words[threadIdx.x % WORDS];
}
template <int WORDS> __global__ void shared_floats(float *out, const uint32_t *in, int times) {
  __shared__ float words[WORDS];
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = 0;
  __syncthreads();
  for (int i = 0; i < times; i++) atomicAdd(&words[(in[self()] + mix(i) >> 8) % WORDS], 1.0f);
  __syncthreads();
  out[self()] = words[threadIdx.x % WORDS];
}
template <int WORDS> __global__ void shared_ints(int *out, const uint32_t *in, int times) {
  __shared__ int words[WORDS];
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = 0;
  __syncthreads();
  for (int i = 0; i < times; i++) atomicAdd(&words[(in[self()] + mix(i) >> 8) % WORDS], 1);
  __syncthreads();
  out[self()] = words[threadIdx.x % WORDS];
}
template <int WARPS> __global__ void flags_in_ring(int *out, int rounds) { // warp after warp, through shared memory
  __shared__ volatile int turn;
  if (threadIdx.x == 0) turn = 0;
  __syncthreads();
  int warp = threadIdx.x / 32, sum = 0;
  for (int r = 0; r < rounds; r++) {
    if (threadIdx.x % 32 == 0) while (turn != r * WARPS + warp);
    __syncwarp();
    sum += r;
    if (threadIdx.x % 32 == 0) turn = r * WARPS + warp + 1;
  }
  out[self()] = sum;
}
__global__ void lock_in_shared(int *out, int times) { // lane 0 of each warp
  __shared__ int lock, sum;
  if (threadIdx.x == 0) lock = sum = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0)
    for (int i = 0; i < times; i++) {
      while (atomicCAS(&lock, 0, 1));
      *(volatile int *)&sum += 1;
      __threadfence_block();
      atomicExch(&lock, 0);
    }
  __syncthreads();
  out[self()] = sum;
}

// ---- locks and flags in global memory ----

template <int SLEEP> __global__ void lock_global(int *lock, volatile int *sum, int times) { // a thread of each block
  if (threadIdx.x) return;
  for (int i = 0; i < times; i++) {
    while (atomicCAS(lock, 0, 1)) if (SLEEP) __nanosleep(SLEEP);
    *sum += 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}
template <int LOCKS> __global__ void locks_of_lanes(int *locks, int *sums, const uint32_t *in) {
  uint32_t at = (in[self()] >> 7) % LOCKS;
  for (bool done = false; !done;)
    if (atomicCAS(&locks[at], 0, 1) == 0) {
      ((volatile int *)sums)[at] += 1;
      __threadfence();
      atomicExch(&locks[at], 0);
      done = true;
    }
}
__global__ void pass_on(volatile int *flags, int rounds, int base) { // block after block, in a ring
  if (threadIdx.x) return;
  int n = gridDim.x, me = blockIdx.x;
  for (int r = 0; r < rounds; r++) {
    while (flags[me * 32] != base + r + (me > 0));
    __threadfence();
    flags[(me + 1) % n * 32] = base + r + 1;
  }
}
template <int EVERY> __global__ void fences(int *out, int times) {
  for (int i = 0; i < times; i++) {
    out[self() + i] = i;
    if (i % EVERY == 0) __threadfence();
  }
}

// ---- clusters ----

__global__ void __cluster_dims__(4) cluster_adds(int *out, const uint32_t *in, int times) {
  __shared__ int bins[256];
  cg::cluster_group c = cg::this_cluster();
  bins[threadIdx.x] = 0;
  c.sync();
  for (int i = 0; i < times; i++) {
    uint32_t v = mix(in[self()] + i);
    atomicAdd(c.map_shared_rank(&bins[(v >> 4) & 255], v & 3), 1);
  }
  c.sync();
  out[self()] = bins[threadIdx.x];
}
__global__ void __cluster_dims__(4) cluster_reads(int *out, int times) {
  __shared__ int mine[256];
  cg::cluster_group c = cg::this_cluster();
  mine[threadIdx.x] = self();
  c.sync();
  int s = threadIdx.x;
  for (int i = 0; i < times; i++) s += *c.map_shared_rank(&mine[(s + i) & 255], (threadIdx.x / 32 + i) & 3);
  c.sync();
  out[self()] = s;
}

// ---- what L2 keeps ----

template <int MB> __global__ void again(float *out, const float4 *in) {
  int n = MB * 65536;
  float s = 0;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) { float4 v = in[i]; s += v.x + v.y + v.z + v.w; }
  if (s == 1.2345f) out[0] = s;
}
template <int MB> __global__ void triad(float4 *out, const float4 *a, const float4 *b) {
  int i = self();
  if (i >= MB * 65536) return;
  float4 x = a[i], y = b[i];
  out[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

// ---- many loads or values in flight ----

template <int N> __global__ void __launch_bounds__(128) held(float *out, const float *in) {
  float v[N], s = 0;
#pragma unroll
  for (int i = 0; i < N; i++) v[i] = in[(self() + i * gridDim.x * blockDim.x) & ((1 << 22) - 1)];
  for (int k = 0; k < 4; k++)
#pragma unroll
    for (int i = 0; i < N; i++) v[i] = v[i] * v[(i + 7) % N] + 0.5f;
#pragma unroll
  for (int i = 0; i < N; i++) s += v[i];
  out[self()] = s;
}

// ---- arithmetic ----

template <typename T, int KIND> __global__ void function(T *out, int times) {
  T x = (T)(self() % 1000 + 1) * (T)0.001, s = 0;
  for (int i = 0; i < times; i++) {
    if (KIND == 0) s += exp(x);
    if (KIND == 1) s += log(x);
    if (KIND == 2) s += sin(x);
    if (KIND == 3) s += pow(x, (T)1.7);
    if (KIND == 4) s += (T)1 / x;
    if (KIND == 5) s += sqrt(x);
    if (KIND == 6) s += tanh(x);
    if (KIND == 7) s += erf(x);
    if (KIND == 8) s += x * x - s * (T)0.5;
    x += (T)0.003;
  }
  out[self()] = s;
}
template <typename T> __global__ void remainders(T *out, T by, int times) {
  T x = self() * 7919 + 1, s = 0;
  for (int i = 0; i < times; i++) s += x % (by + (T)i), x = x * 31 + 7;
  out[self()] = s;
}
__global__ void bits(unsigned *out, int times) {
  unsigned x = self() * 2654435761u, s = 0;
  for (int i = 0; i < times; i++) s += __popc(x) + __clz(x) + __ffs(x), x = x * 1664525u + 1013904223u;
  out[self()] = s;
}

// ---- lanes that part, local memory, structures ----

__global__ void collatz(int *out, int n) {
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) {
    unsigned long long x = i + 1;
    int steps = 0;
    while (x != 1 && steps < 400) x = x & 1 ? 3 * x + 1 : x / 2, steps++;
    out[i] = steps;
  }
}
template <int N> __global__ void local_sort(int *out, const uint32_t *in) { // insertion into an own array
  int v[N];
  for (int i = 0; i < N; i++) {
    int x = in[self() * N + i] & 0xffff, at = i;
    while (at > 0 && v[at - 1] > x) v[at] = v[at - 1], at--;
    v[at] = x;
  }
  for (int i = 0; i < N; i++) out[self() * N + i] = v[i];
}
struct Body { float x, y, z, vx, vy, vz, m, pad0, pad1, pad2; };
__global__ void structures(Body *b, int n) {
  int i = self();
  if (i >= n) return;
  b[i].x += b[i].vx * 0.1f, b[i].y += b[i].vy * 0.1f, b[i].z += b[i].vz * 0.1f;
}
__global__ void bytes_of_rows(uint8_t *out, const uint8_t *in, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < 1 || x >= width - 1 || y < 1 || y >= (int)gridDim.y - 1) return;
  int s = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) s += in[(y + dy) * width + x + dx];
  out[y * width + x] = s / 9;
}
__global__ void gathers(float *out, const uint32_t *index, const float *from, int n, int mask) {
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) out[i] = from[index[i] & mask];
}
__global__ void scatters(float *out, const uint32_t *index, int n, int mask) {
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) out[index[i] & mask] = (float)i;
}
__global__ void tile_product(float *c, const float *a, const float *b, int n) {
  __shared__ float ta[16][16], tb[16][16];
  int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float s = 0;
  for (int k = 0; k < n; k += 16) {
    ta[y][x] = a[row * n + k + x], tb[y][x] = b[(k + y) * n + col];
    __syncthreads();
    for (int i = 0; i < 16; i++) s += ta[y][i] * tb[i][x];
    __syncthreads();
  }
  c[row * n + col] = s;
}
__global__ void scan_block(float *out, const float *in, int n) { // one block, doubling in shared memory
  __shared__ float v[1024];
  float carry = 0;
  for (int i = threadIdx.x; i < n; i += 1024) {
    v[threadIdx.x] = in[i];
    __syncthreads();
    for (int d = 1; d < 1024; d *= 2) {
      float t = threadIdx.x >= d ? v[threadIdx.x - d] : 0;
      __syncthreads();
      v[threadIdx.x] += t;
      __syncthreads();
    }
    out[i] = v[threadIdx.x] + carry;
    carry += v[1023];
    __syncthreads();
  }
}

int main() {
  const int N = 1 << 21;
  float *out = array<float>(N * 4), *in = filled<float>(N * 2, 100);
  uint32_t *keys = filled<uint32_t>(N * 2, 0xffffffffu, 7);
  unsigned *words = array<unsigned>(1 << 22);
  double *doubles = array<double>(1 << 20);
  float4 *a = array<float4>(96 << 16), *b = array<float4>(96 << 16), *c = array<float4>(96 << 16);
  int *locks = array<int>(1 << 16), *sums = array<int>(1 << 16);

  LAUNCH(serial<0>, 1, 32, out, in, 1024);
  LAUNCH(serial<1>, 1, 32, out, in, 512);
  LAUNCH(serial<2>, 1, 32, out, in, 512);
  LAUNCH(serial<3>, 1, 32, out, in, 512);
  LAUNCH(serial<4>, 1, 32, out, in, 1024);
  LAUNCH(serial<5>, 1, 32, out, in, 512);
  LAUNCH(serial<6>, 1, 32, out, in, 1024);
  LAUNCH(last_block<0>, 512, 256, words + (1 << 21), out, out + 4096, in, N);
  LAUNCH(last_block<0>, 2048, 128, words + (1 << 21) + 64, out, out + 4096, in, N);
  LAUNCH(last_block<1>, 256, 256, words + (1 << 21) + 128, out, out + 4096, in, N);
  LAUNCH(last_block<2>, 2048, 128, words + (1 << 21) + 192, out, out + 8192, in, N);
  LAUNCH(block_rows, 64, 128, out, in, 64);
  LAUNCH(column_sums, 16, 256, out, in, 256, 4096);
  LAUNCH(column_filter<2>, dim3(8, 512), 256, out, in, 512, 2048);
  LAUNCH(column_filter<8>, dim3(8, 512), 256, out, in, 512, 2048);

  LAUNCH((constants<256, 2>), 264, 128, out, 64);
  LAUNCH((constants<512, 2>), 264, 128, out, 64);
  LAUNCH((constants<1024, 2>), 264, 128, out, 64);
  LAUNCH((constants<4096, 2>), 264, 128, out, 64);
  LAUNCH((constants<16384, 2>), 264, 128, out, 64);
  LAUNCH((constants<256, 1>), 264, 128, out, 256);
  LAUNCH((constants<1024, 1>), 264, 128, out, 256);
  LAUNCH((constants<16384, 1>), 264, 128, out, 256);
  LAUNCH((constants<16384, 0>), 264, 128, out, 2048);

  LAUNCH((float_max<1, 1>), 528, 256, words, keys);
  LAUNCH((float_max<16, 1>), 528, 256, words + 64, keys);
  LAUNCH((float_max<16, 64>), 528, 256, words + 1024, keys);
  LAUNCH((float_max<1024, 1>), 528, 256, words + 8192, keys);
  LAUNCH((float_add<1, 1>), 16, 64, words + 65536, keys);
  LAUNCH((float_add<16, 1>), 64, 128, words + 65600, keys);
  LAUNCH((float_add<16, 64>), 64, 128, words + 70000, keys);
  LAUNCH((float_add<1024, 1>), 528, 256, words + 80000, keys);
  LAUNCH((float_add<65536, 1>), 1056, 256, words + 131072, keys);
  LAUNCH((exchanges<1, 1>), 264, 256, words + 300000, keys, (unsigned *)out, 4);
  LAUNCH((exchanges<16, 1>), 264, 256, words + 301000, keys, (unsigned *)out, 4);
  LAUNCH((exchanges<16, 64>), 264, 256, words + 310000, keys, (unsigned *)out, 4);
  LAUNCH((exchanges<4096, 1>), 264, 256, words + 320000, keys, (unsigned *)out, 8);
  LAUNCH((swaps_once<1, 1>), 264, 256, words + 400000, keys, (unsigned *)out, 4);
  LAUNCH((swaps_once<16, 1>), 264, 256, words + 401000, keys, (unsigned *)out, 4);
  LAUNCH((swaps_once<4096, 1>), 264, 256, words + 420000, keys, (unsigned *)out, 8);
  LAUNCH((adds<int, 16>), 264, 256, (int *)words + 500000, keys, 4);
  LAUNCH((adds<int, 4096>), 264, 256, (int *)words + 510000, keys, 8);
  LAUNCH((adds<float, 16>), 264, 256, (float *)words + 520000, keys, 4);
  LAUNCH((adds<float, 4096>), 264, 256, (float *)words + 530000, keys, 8);
  LAUNCH((adds<double, 16>), 264, 256, doubles, keys, 4);
  LAUNCH((adds<double, 4096>), 264, 256, doubles + 4096, keys, 8);
  LAUNCH((adds<double, 262144>), 264, 256, doubles + 16384, keys, 8);
  LAUNCH((adds_few_blocks<float>), 16, 256, (float *)words + 600000, keys, 1 << 17, 0xffff);
  LAUNCH((adds_few_blocks<int>), 32, 512, (int *)words + 700000, keys, 1 << 17, 0x3ff);
  LAUNCH((adds_few_blocks<double>), 16, 256, doubles + 400000, keys, 1 << 17, 0xffff);
  LAUNCH((mins<16>), 264, 256, (int *)words + 800000, keys, 4);
  LAUNCH((mins<4096>), 264, 256, (int *)words + 810000, keys, 8);

  LAUNCH((shared_cas<1>), 132, 128, (int *)out, keys, 4);
  LAUNCH((shared_cas<64>), 264, 256, (int *)out, keys, 48);
  LAUNCH((shared_cas<2048>), 264, 256, (int *)out, keys, 96);
  LAUNCH((shared_floats<1>), 132, 128, out, keys, 4);
  LAUNCH((shared_floats<64>), 264, 256, out, keys, 16);
  LAUNCH((shared_floats<4096>), 528, 256, out, keys, 32);
  LAUNCH((shared_ints<1>), 264, 256, (int *)out, keys, 256);
  LAUNCH((shared_ints<64>), 264, 256, (int *)out, keys, 256);
  LAUNCH((shared_ints<4096>), 528, 256, (int *)out, keys, 128);
  LAUNCH((flags_in_ring<4>), 132, 128, (int *)out, 100);
  LAUNCH((flags_in_ring<16>), 132, 512, (int *)out, 40);
  LAUNCH(lock_in_shared, 132, 256, (int *)out, 64);

  LAUNCH((lock_global<0>), 32, 32, locks, sums, 4);
  LAUNCH((lock_global<0>), 132, 32, locks + 64, sums + 64, 1);
  LAUNCH((lock_global<100>), 32, 32, locks + 128, sums + 128, 4);
  LAUNCH((lock_global<1000>), 64, 32, locks + 192, sums + 192, 2);
  LAUNCH((locks_of_lanes<64>), 8, 64, locks + 512, sums + 512, keys);
  LAUNCH((locks_of_lanes<1024>), 64, 128, locks + 1024, sums + 1024, keys);
  LAUNCH((locks_of_lanes<16384>), 128, 256, locks + 4096, sums + 4096, keys);
  for (int blocks : {2, 16, 128}) {
    int *flags = array<int>(1 << 13);
    LAUNCH(pass_on, blocks, 32, flags, 128 / blocks, 128 / blocks * time_);
  }
  LAUNCH(fences<1>, 132, 128, (int *)out, 16);
  LAUNCH(fences<4>, 132, 128, (int *)out, 32);

  LAUNCH(cluster_adds, 264, 256, (int *)out, keys, 128);
  LAUNCH(cluster_reads, 264, 256, (int *)out, 96);

  LAUNCH((again<24>), 528, 256, out, a);
  LAUNCH((again<36>), 528, 256, out, a);
  LAUNCH((again<44>), 528, 256, out, a);
  LAUNCH((again<60>), 528, 256, out, a);
  LAUNCH((triad<8>), 2048, 256, c, a, b);
  LAUNCH((triad<12>), 3072, 256, c, a, b);
  LAUNCH((triad<16>), 4096, 256, c, a, b);
  LAUNCH((triad<24>), 6144, 256, c, a, b);


  LAUNCH(held<16>, 4096, 128, out, in);
  LAUNCH(held<48>, 1280, 128, out, in);
  LAUNCH(held<96>, 640, 128, out, in);
  LAUNCH(held<96>, 1280, 128, out, in);
  LAUNCH(held<160>, 792, 128, out, in);

  LAUNCH((function<double, 0>), 264, 256, doubles, 64);
  LAUNCH((function<double, 1>), 264, 256, doubles, 32);
  LAUNCH((function<double, 2>), 264, 256, doubles, 32);
  LAUNCH((function<double, 3>), 132, 256, doubles, 16);
  LAUNCH((function<double, 4>), 264, 256, doubles, 128);
  LAUNCH((function<double, 5>), 264, 256, doubles, 96);
  LAUNCH((function<double, 6>), 264, 256, doubles, 32);
  LAUNCH((function<double, 0>), 40, 128, doubles, 64);
  LAUNCH((function<double, 8>), 40, 128, doubles, 512);
  LAUNCH((function<float, 0>), 528, 256, out, 64);
  LAUNCH((function<float, 1>), 528, 256, out, 64);
  LAUNCH((function<float, 2>), 528, 256, out, 64);
  LAUNCH((function<float, 3>), 528, 256, out, 32);
  LAUNCH((function<float, 4>), 528, 256, out, 64);
  LAUNCH((function<float, 5>), 528, 256, out, 64);
  LAUNCH((function<float, 6>), 528, 256, out, 64);
  LAUNCH((function<float, 7>), 528, 256, out, 64);
  LAUNCH((remainders<unsigned>), 528, 256, (unsigned *)out, 1234567u, 64);
  LAUNCH((remainders<unsigned long long>), 264, 256, (unsigned long long *)out, 123456789ull, 32);
  LAUNCH(bits, 528, 256, (unsigned *)out, 128);

  LAUNCH(collatz, 264, 256, (int *)out, 1 << 17);
  LAUNCH(local_sort<16>, 264, 128, (int *)out, keys);
  LAUNCH(local_sort<40>, 264, 128, (int *)out, keys);
  LAUNCH(structures, 1024, 256, (Body *)a, 1 << 18);
  LAUNCH(bytes_of_rows, dim3(8, 2048), 256, (uint8_t *)out, (const uint8_t *)keys, 2048);
  LAUNCH(gathers, 528, 256, out, keys, (const float *)a, 1 << 20, (1 << 18) - 1);
  LAUNCH(gathers, 264, 256, out, keys, (const float *)a, 1 << 20, (1 << 24) - 1);
  LAUNCH(scatters, 528, 256, (float *)a, keys, 1 << 20, (1 << 18) - 1);
  LAUNCH(scatters, 264, 256, (float *)a, keys, 1 << 20, (1 << 24) - 1);
  LAUNCH(tile_product, dim3(32, 32), dim3(16, 16), out, in, in + (1 << 18), 512);
  LAUNCH(tile_product, dim3(8, 8), dim3(16, 16), out, in, in + (1 << 18), 128);
  LAUNCH(scan_block, 1, 1024, out, in, 16384);
  return done();
}
