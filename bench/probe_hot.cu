// What all SMs do to few sectors, and arrays that are walked block by block in three dimensions.
// "sector": every warp stores a byte to, loads, or stores and then loads one of S sectors, of which its block has one: clocks of a sector
// for each warp's access. "double": every warp adds doubles, all lanes to one word, to W words in turn of L lines 4608 bytes apart.
// "tell": lanes add 1 to one of W neighbouring ints, each at random, and use what they get. "raise": lanes raise a word to a value of
// their own. "walk": two arrays of 256 x 256 x 256 doubles are exchanged, copied or scaled by blocks of some shapes. "streams": the same by
// rows of 16 bytes a lane, N arrays in place, or N into N others, each D bytes after a multiple of 64 MiB
// from the one before. "pairs": two arrays of 128 MiB, a word a lane.
// nvcc -O3 -std=c++17 -arch=sm_90 -o probe_hot bench/probe_hot.cu && ./probe_hot > bench/results/DATE-GPU-hot.json
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>
static const char *comma = "";
static cudaEvent_t from, to;
template <class F> static double microseconds(F launch) {
  float best = 1e9f, ms;
  for (int i = 0; i < 5; i++) {
    cudaEventRecord(from), launch(), cudaEventRecord(to), cudaEventSynchronize(to);
    cudaEventElapsedTime(&ms, from, to);
    if (i && ms < best) best = ms;
  }
  return best * 1e3;
}

enum Access { STORE, LOAD, BOTH, LOAD_L2 };
__global__ void sector(volatile unsigned char *base, int sectors, int how, int turns, unsigned *out) {
  volatile unsigned char *p = base + (size_t)(blockIdx.x % sectors) * 128 + blockIdx.x / sectors % 32;
  unsigned sum = 0;
  for (int i = 0; i < turns; i++) {
    if (how == STORE || how == BOTH) *p = (unsigned char)i;
    if (how == LOAD || how == BOTH) sum += *p;
    if (how == LOAD_L2) sum += __ldcg((const unsigned char *)p);
  }
  if (sum == 0x12345678u) *out = sum;
}
// As a reduction of rows of flags does it: all of a block say what they have, and read what all said.
__global__ void votes(volatile unsigned char *flags, const unsigned char *seen, int turns) {
  bool mine = seen[blockIdx.x % 64 * 128 + threadIdx.x];
  for (int i = 0; i < turns; i++) flags[blockIdx.x] = __syncthreads_and(mine && (i == 0 || flags[blockIdx.x]));
}
__global__ void doubles(double *base, int lines, int words, int turns) {
  for (int i = 0; i < turns; i++)
    for (int w = 0; w < words; w++)
      for (int l = 0; l < lines; l++) atomicAdd(base + (size_t)l * 576 + w, 1.0 + threadIdx.x);
}
__global__ void tell(int *base, const int *at, int turns, int *out) {
  int me = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x, sum = 0;
  for (int i = 0; i < turns; i++) sum += atomicAdd(base + at[(size_t)i * all + me], 1);
  out[me] = sum;
}
// Lanes raise a word to a value of their own, if that is more than it: values in no order, rising or falling; lanes come to it over `spread` clocks.
template <class T> __global__ void raise(T *word, int order, int spread, unsigned *tries) {
  unsigned me = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x, r = me * 2654435761u;
  T mine = order == 0 ? (r >> 4) + 1 : order == 1 ? me + 1 : all - me, old;
  r ^= r >> 15, r *= 0x7feb352du, r ^= r >> 13;
  long long until = clock64() + (spread ? __shfl_sync(~0u, r, 0) % spread : 0);
  while (clock64() < until) {}
  unsigned count = 0;
  old = *(volatile T *)word;
  while (mine > old) {
    T was = old;
    count++;
    if ((old = atomicCAS(word, was, mine)) == was) break;
  }
  tries[me] = count;
}
// N arrays of `count` words of 16 bytes each: in place, turned by one array, or from one half of them to the other.
enum Stream { IN_PLACE, TURNED, ACROSS };
template <int N, int HOW> __global__ void streams(float4 *base, size_t apart, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    float4 v[N];
    for (int k = 0; k < N; k++) v[k] = base[k * apart + i];
    for (int k = 0; k < N; k++) v[k].x += 1, base[(HOW == ACROSS ? k + N : HOW == TURNED ? (k + 1) % N : k) * apart + i] = v[k];
  }
}
static bool first = true;
template <int N, int HOW> static void stream(float4 *base) {
  static const char *const NAME[] = {"in place", "turned", "across"};
  const int count = 4 << 20; // 64 MiB
  for (size_t more : {(size_t)0, (size_t)4096, (size_t)36864, (size_t)1 << 20, (size_t)5 << 20})
    for (int blocks : {132 * 4, 132 * 8, count / 256}) {
      double us = microseconds([&] { streams<N, HOW><<<blocks, 256>>>(base, (64 << 20) / 16 + more / 16, count); });
      printf("%s\n{\"arrays\": %d, \"how\": \"%s\", \"more\": %zu, \"blocks\": %d, \"us\": %.2f, \"TB_per_s\": %.3f}", first ? "" : ",", N, NAME[HOW], more, blocks, us,
             2.0 * N * count * 16 / us * 1e-6), first = false;
    }
}
// The same with a word of T a lane: two arrays change places, or each is added to.
template <class T, bool TURN> __global__ void pair(T *a, T *b) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  T x = a[i], y = b[i];
  if (TURN) a[i] = y, b[i] = x;
  else x.x += 1, y.x += 1, a[i] = x, b[i] = y;
}
static bool first_pair = true;
template <class T, bool TURN> static void pairs(char *base) {
  const size_t bytes = 128 << 20;
  for (size_t more : {(size_t)0, (size_t)512, (size_t)4096, (size_t)36864, (size_t)1 << 20})
    for (int threads : {128, 256, 512}) {
      T *a = (T *)base, *b = (T *)(base + bytes + more);
      double us = microseconds([&] { pair<T, TURN><<<bytes / sizeof(T) / threads, threads>>>(a, b); });
      printf("%s\n{\"lane_bytes\": %zu, \"turned\": %d, \"more\": %zu, \"threads\": %d, \"us\": %.2f, \"TB_per_s\": %.3f}", first_pair ? "" : ",", sizeof(T), TURN, more, threads, us,
             4.0 * bytes / us * 1e-6), first_pair = false;
    }
}
enum Walk { EXCHANGE, COPY, SCALE };
__global__ void walk(double *a, double *b, int how) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
  size_t i = ((size_t)x * 256 + y) * 256 + z, j = ((size_t)z * 256 + y) * 256 + x;
  if (how == EXCHANGE) { double t = a[j]; a[j] = b[j], b[j] = t; }
  if (how == COPY) b[j] = a[j];
  if (how == SCALE) a[j] = a[j] * 2;
  if (how == EXCHANGE + 8) { double t = a[i]; a[i] = b[i], b[i] = t; }
  if (how == COPY + 8) b[i] = a[i];
}

int main() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  int clock = 0;
  cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0);
  double mhz = clock / 1e3;
  char *base;
  double *a, *b;
  int *at, *got;
  if (cudaMalloc(&base, 1 << 20) || cudaMalloc(&a, 256 << 19) || cudaMalloc(&b, 256 << 19) || cudaMalloc(&at, 64 << 20) || cudaMalloc(&got, 8 << 20)) return printf("no memory\n"), 1;
  cudaMemset(base, 1, 1 << 20), cudaMemset(a, 0, 256 << 19), cudaMemset(b, 0, 256 << 19);
  cudaEventCreate(&from), cudaEventCreate(&to);
  printf("{\"schema\": 1,\n\"gpu\": \"%s\",\n\"command\": \"probe_hot (bench/probe_hot.cu)\",\n\"sector\": [", p.name);
  static const char *const HOW[] = {"store", "load", "store and load", "load by L2"};
  for (int blocks : {132, 528, 2112})
    for (int sectors : {1, 4, 16, 66, 132})
      for (int how = 0; how < 4; how++) {
        const int turns = 64;
        double us = microseconds([&] { sector<<<blocks, 128>>>((unsigned char *)base, sectors, how, turns, (unsigned *)got); });
        printf("%s\n{\"blocks\": %d, \"sectors\": %d, \"how\": \"%s\", \"us\": %.2f, \"clocks\": %.2f}", comma, blocks, sectors, HOW[how], us,
               us * mhz * sectors / ((double)blocks * 4 * turns));
        comma = ",";
      }
  printf("],\n\"votes\": [");
  comma = "";
  for (int blocks : {132, 528, 1056, 2112, 2997, 8448})
    for (int turns : {1, 8, 32}) {
      double us = microseconds([&] { votes<<<blocks, 128>>>((unsigned char *)base + (512 << 10), (unsigned char *)base, turns); });
      printf("%s\n{\"blocks\": %d, \"turns\": %d, \"us\": %.2f}", comma, blocks, turns, us), comma = ",";
    }
  printf("],\n\"double\": [");
  comma = "";
  for (int threads : {32, 128})
    for (int lines : {1, 2, 4, 8})
      for (int words : {1, 2, 3, 8}) {
        double us = microseconds([&] { doubles<<<6400, threads>>>((double *)base, lines, words, 1); });
        printf("%s\n{\"threads\": %d, \"lines\": %d, \"words\": %d, \"us\": %.2f, \"clocks_of_a_lane\": %.3f}", comma, threads, lines, words, us,
               us * mhz / (6400.0 * threads * words * lines)), comma = ",";
      }
  printf("],\n\"tell\": [");
  comma = "";
  static int host[16 << 20];
  for (int blocks : {96, 128, 1056})
    for (int words : {1, 8, 32, 64, 128, 256, 1024, 4096}) {
      const int turns = 1024 / blocks > 8 ? 8 : 4;
      uint32_t x = 1;
      for (int i = 0; i < blocks * 256 * turns; i++) x = x * 1664525u + 1013904223u, host[i] = (x >> 8) % words;
      cudaMemcpy(at, host, (size_t)blocks * 256 * turns * 4, cudaMemcpyHostToDevice);
      double us = microseconds([&] { tell<<<blocks, 256>>>((int *)base, at, turns, got); });
      printf("%s\n{\"blocks\": %d, \"words\": %d, \"turns\": %d, \"us\": %.2f, \"clocks_of_a_warp\": %.2f}", comma, blocks, words, turns, us, us * mhz / (blocks * 8.0 * turns)), comma = ",";
    }
  printf("],\n\"raise\": [");
  comma = "";
  static const char *const ORDER[] = {"none", "rising", "falling"};
  static unsigned counts[1 << 20];
  for (int wide : {0, 1})
    for (int blocks : {132, 196, 528, 1056, 2112})
      for (int order : {0, 1, 2})
        for (int spread : {0, 2000, 10000, 40000}) {
          if (order && spread && spread != 10000) continue;
          double us = microseconds([&] {
            cudaMemsetAsync(base, 0, 8);
            if (wide) raise<<<blocks, 256>>>((unsigned long long *)base, order, spread, (unsigned *)got);
            else raise<<<blocks, 256>>>((unsigned *)base, order, spread, (unsigned *)got);
          });
          double clear = microseconds([&] { cudaMemsetAsync(base, 0, 8); }), sum = 0, lanes = 0;
          cudaMemcpy(counts, got, blocks * 1024, cudaMemcpyDeviceToHost);
          for (int i = 0; i < blocks * 256; i++) sum += counts[i], lanes += counts[i] > 0;
          printf("%s\n{\"bytes\": %d, \"blocks\": %d, \"order\": \"%s\", \"spread\": %d, \"us\": %.2f, \"clear_us\": %.2f, \"tries\": %.0f, \"lanes\": %.0f, \"clocks_of_a_try\": %.3f}",
                 comma, wide ? 8 : 4, blocks, ORDER[order], spread, us, clear, sum, lanes, us * mhz / sum), comma = ",";
        }
  printf("],\n\"walk\": [");
  comma = "";
  static const char *const WALK[] = {"exchange", "copy", "scale", "", "", "", "", "", "exchange, columns", "copy, columns"};
  for (dim3 block : {dim3(256, 1, 1), dim3(16, 4, 4), dim3(32, 8, 1), dim3(32, 4, 2), dim3(64, 2, 2), dim3(16, 16, 1), dim3(4, 4, 16)})
    for (int how : {0, 1, 2, 8, 9}) {
      dim3 grid(256 / block.x, 256 / block.y, 256 / block.z);
      if (how >= 8 && block.z == 1) continue;
      double us = microseconds([&] { walk<<<grid, block>>>(a, b, how); });
      printf("%s\n{\"block\": \"%u,%u,%u\", \"how\": \"%s\", \"us\": %.2f}", comma, block.x, block.y, block.z, WALK[how], us), comma = ",";
    }
  printf("],\n\"streams\": [");
  float4 *all;
  if (cudaFree(a) || cudaFree(b) || cudaMalloc(&all, (size_t)700 << 20)) return printf("no memory\n"), 1;
  stream<1, IN_PLACE>(all), stream<2, IN_PLACE>(all), stream<4, IN_PLACE>(all), stream<2, TURNED>(all), stream<4, TURNED>(all), stream<1, ACROSS>(all), stream<2, ACROSS>(all), stream<4, ACROSS>(all);
  printf("],\n\"pairs\": [");
  pairs<float1, true>((char *)all), pairs<float1, false>((char *)all), pairs<float2, true>((char *)all), pairs<float2, false>((char *)all), pairs<double1, true>((char *)all), pairs<float4, true>((char *)all), pairs<float4, false>((char *)all);
  printf("]}\n");
  return cudaDeviceSynchronize() != cudaSuccess;
}
