// What the time model's less common units cost, measured: starting blocks and clusters, clusters' barriers and reads of
// each other's shared memory, fences after stores, match, atomics on one line, partial writes, constant memory,
// each by itself. Prints a line of JSON a figure; src/machine/machine.def cites them.
//   nvcc -std=c++17 -O3 -arch=sm_90a bench/probe_units.cu -o probe_units && ./probe_units
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cooperative_groups.h>

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e = (call);                                                                                  \
    if (e) {                                                                                                 \
      printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e));                                      \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

__global__ void empty(int *out) {
  if (out && threadIdx.x > 2000) *out = 1;
}

__global__ void sync_cluster(int rounds) {
  for (int i = 0; i < rounds; i++)
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// Does nothing for so long.
static __device__ __forceinline__ void live_for(long long clocks) {
  long long from = clock64();
  while (clock64() - from < clocks) {}
}

__global__ void live(long long clocks) {
  live_for(clocks);
}

enum Sync { SYNC_NONE, SYNC_BLOCK, SYNC_RELAXED, SYNC_CLUSTER, SYNC_FENCE };
static __device__ __forceinline__ void sync_by(int how) {
  if (how == SYNC_BLOCK) __syncthreads();
  if (how == SYNC_RELAXED) asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
  if (how == SYNC_CLUSTER) asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
  if (how == SYNC_FENCE) __threadfence();
}

// stores: of 16 bytes a lane, before each barrier; each block has some KB for itself.
template <int HOW, int STORES> __global__ void sync_after_stores(uint4 *out, int rounds) {
  uint4 *mine = out + (size_t)blockIdx.x * 1024 + threadIdx.x;
  for (int i = 0; i < rounds; i++) {
#pragma unroll
    for (int k = 0; k < STORES; k++) mine[((i * STORES + k) & 7) * blockDim.x] = make_uint4(i, k, 0, 0);
    sync_by(HOW);
  }
}

// One barrier a block, in many blocks: what a cluster's last barrier costs after stores.
template <int HOW, int STORES> __global__ void sync_once(uint4 *out, long long clocks) {
  live_for(clocks);
  uint4 *mine = out + (size_t)blockIdx.x * STORES * blockDim.x + threadIdx.x;
#pragma unroll
  for (int k = 0; k < STORES; k++) mine[k * blockDim.x] = make_uint4(k, 0, 0, 0);
  sync_by(HOW);
}

// Reads of shared memory: one's own block's or that of the other in a cluster of two.
enum Reading { READ_OWN, READ_OWN_WINDOW, READ_OTHER, READ_OTHER_GENERIC };
template <int HOW> static __device__ __forceinline__ unsigned read_word(uint64_t at) {
  unsigned v;
  if (HOW == READ_OWN)
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"((unsigned)at));
  else if (HOW == READ_OTHER_GENERIC)
    asm volatile("ld.u32 %0, [%1];" : "=r"(v) : "l"(at));
  else
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"((unsigned)at));
  return v;
}

template <int HOW> static __device__ __forceinline__ uint64_t word_at(unsigned *words) {
  cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  if (HOW == READ_OWN) return __cvta_generic_to_shared(words);
  unsigned *there = cluster.map_shared_rank(words, cluster.block_rank() ^ (HOW >= READ_OTHER));
  uint64_t at = (uint64_t)there;
  if (HOW != READ_OTHER_GENERIC) asm("cvta.to.shared::cluster.u64 %0, %1;" : "=l"(at) : "l"((uint64_t)there));
  return at;
}

// step: bytes between the words of neighbouring lanes.
template <int HOW> __global__ void read_shared(unsigned *out, unsigned step, int rounds) {
  __shared__ unsigned words[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) words[i] = 0;
  cooperative_groups::this_cluster().sync();
  unsigned sum = 0;
  uint64_t at = word_at<HOW>(words) + threadIdx.x % 32 * step;
#pragma unroll 8
  for (int i = 0; i < rounds; i++) sum += read_word<HOW>(at);
  if (sum) out[0] = sum;
  cooperative_groups::this_cluster().sync();
}

// One after another: each address is what was read before.
template <int HOW> __global__ void chase_shared(unsigned *out, int rounds) {
  __shared__ unsigned words[32];
  words[threadIdx.x % 32] = 0;
  cooperative_groups::this_cluster().sync();
  uint64_t at = word_at<HOW>(words);
  unsigned sum = 0;
  for (int i = 0; i < rounds; i++) sum = read_word<HOW>(at + sum);
  if (sum) out[0] = sum;
  cooperative_groups::this_cluster().sync();
}

__global__ void matches(unsigned *out, unsigned distinct, int rounds) {
  unsigned v = threadIdx.x % distinct, sum = 0;
#pragma unroll 8
  for (int i = 0; i < rounds; i++) sum += __match_any_sync(~0u, v + sum * 0);
  if (sum == 12345) out[0] = sum;
}

// lanes: 0 all on one address; else lane l on address l % lanes of one line (times `lines` lines, by warp).
__global__ void add_int(unsigned *out, int lanes, int lines, int rounds) {
  unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  unsigned *at = out + (warp % lines) * 32 + lane % lanes;
  for (int i = 0; i < rounds; i++) atomicAdd(at, lane + 1);
}

__global__ void add_float(float *out, int lanes, int lines, int rounds) {
  unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float *at = out + (warp % lines) * 32 + lane % lanes;
  for (int i = 0; i < rounds; i++) atomicAdd(at, 1.0f);
}

// Every lane writes 4 bytes `stride` bytes from the next.
__global__ void write_apart(char *out, size_t stride) {
  size_t warp = (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  size_t at = warp / (stride / 4) * 32 * stride + warp % (stride / 4) * 4 + lane * stride;
  *(float *)(out + at) = 1.0f;
}

// Writes of WIDTH bytes a lane, `stride` apart, to sectors that are new each time. What else the sector has is written:
// never, by the same warp with its next stores, or by the neighbouring warps. Within `mask` + 1 bytes.
enum Rest { REST_NEVER, REST_LATER, REST_OTHERS };
template <class T> __global__ void write_parts(char *out, size_t stride, int rest, size_t mask, int rounds) {
  size_t warps = (size_t)gridDim.x * (blockDim.x / 32), warp = (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  size_t lane = threadIdx.x % 32, parts = 32 / sizeof(T);
  for (size_t r = 0; r < rounds; r++) {
    size_t item = rest == REST_NEVER ? warp + r * warps
                  : rest == REST_LATER ? warp + r / parts * warps
                                       : (warp + r * warps) / parts,
           part = rest == REST_NEVER ? 0 : rest == REST_LATER ? r % parts : warp % parts;
    *(T *)(out + ((item * 32 + lane) * stride & mask) + part * sizeof(T)) = T{};
  }
}

// COUNT such writes of 4 bytes one after another, to words side by side; LOADS: each has a load before it.
template <int COUNT, bool LOADS> __global__ void write_bursts(char *out, const char *in, size_t stride, size_t mask, int rounds) {
  size_t warps = (size_t)gridDim.x * (blockDim.x / 32), warp = (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  size_t lane = threadIdx.x % 32;
  unsigned v = 0;
  for (size_t r = 0; r < rounds; r++) {
    size_t at = ((warp + r * warps) * 32 * stride & mask) + lane * stride;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
      if (LOADS) asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(in + at + 4 * k));
      asm volatile("st.global.u32 [%0], %1;" ::"l"(out + at + 4 * k), "r"(v) : "memory");
    }
  }
}

// Whole rows of a line a request; of each sector the first `words`.
__global__ void write_rows(unsigned *out, unsigned words, size_t mask, int rounds) {
  size_t warps = (size_t)gridDim.x * (blockDim.x / 32), warp = (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  for (size_t r = 0; r < rounds; r++)
    if (threadIdx.x % 8 < words) out[(((warp + r * warps) * 128 & mask) / 4) + threadIdx.x % 32] = 1;
}

// A request to `lines` lines, 32 / lines words of each: side by side in a sector, or a sector each, as far as there are.
__global__ void write_lines(unsigned *out, unsigned lines, int apart, size_t mask, int rounds) {
  size_t warps = (size_t)gridDim.x * (blockDim.x / 32), warp = (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  unsigned lane = threadIdx.x % 32, in = lane / lines, word = apart ? in % 4 * 8 + in / 4 : in;
  for (size_t r = 0; r < rounds; r++) out[((((warp + r * warps) * lines + lane % lines) * 128 & mask) / 4) + word] = 1;
}

__constant__ float table[1024];
__global__ void constants(float *out, int distinct, int rounds) {
  float sum = 0;
  int at = threadIdx.x % distinct;
#pragma unroll 8
  for (int i = 0; i < rounds; i++) sum += table[(at + i * 37) & 1023];
  if (sum == 12345) out[0] = sum;
}

// The same of a table that the cache holds, at indices that the compiler does not know to be alike.
__global__ void constants_near(float *out, const int *zero, int distinct, int rounds) {
  float sum = 0;
  int at = threadIdx.x % distinct * 4 + zero[threadIdx.x % 32];
#pragma unroll 8
  for (int i = 0; i < rounds; i++) sum += table[(at + i * 37) & 255];
  if (sum == 12345) out[0] = sum;
}

template <class F> static double microseconds(F launch) {
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  std::vector<float> times;
  for (int i = 0; i < 9; i++) {
    cudaEventRecord(a);
    launch();
    cudaEventRecord(b);
    CHECK(cudaEventSynchronize(b));
    float ms;
    cudaEventElapsedTime(&ms, a, b);
    times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  return times[4] * 1000;
}

static double clock_hz, sms;

static void say(const char *what, int x, int y, double us, double units) {
  printf("{\"what\": \"%s\", \"x\": %d, \"y\": %d, \"us\": %.2f, \"clocks_each\": %.3f, \"per_s\": %.4g}\n", what, x, y, us,
         us * 1e-6 * clock_hz / units, units / us * 1e6);
}

template <class... Args, class... Given>
static double clusters(void (*kernel)(Args...), int cluster, int blocks, int threads, Given... given) {
  cudaLaunchConfig_t c = {};
  cudaLaunchAttribute a;
  a.id = cudaLaunchAttributeClusterDimension, a.val.clusterDim.x = cluster, a.val.clusterDim.y = a.val.clusterDim.z = 1;
  c.gridDim = blocks, c.blockDim = threads, c.attrs = &a, c.numAttrs = cluster ? 1 : 0;
  return microseconds([&] { CHECK(cudaLaunchKernelEx(&c, kernel, Args(given)...)); });
}

static void starts() {
  for (int threads : {32, 64, 256, 1024}) {
    int blocks = 1 << 18;
    say("block start", threads, 1, microseconds([&] { empty<<<blocks, threads>>>(nullptr); }), blocks);
  }
  for (int cluster : {2, 4, 8})
    for (int threads : {64, 256})
      say("cluster start", cluster, threads, clusters(empty, cluster, 1 << 16, threads, nullptr), (1 << 16) / cluster);
  for (int cluster : {2, 8})
    for (int barriers : {0, 1, 2, 8})
      say("clusters that meet", cluster, barriers, clusters(sync_cluster, cluster, 1 << 15, 64, barriers), (1 << 15) / cluster);
}

// How many are resident at a time: the sum of their lifetimes over the elapsed time.
static void lives() {
  for (int cluster : {0, 1, 2, 4, 8})
    for (int threads : {32, 64, 128, 256})
      for (int clocks : {0, 500, 1000, 2000, 4000, 8000}) {
        char what[64];
        snprintf(what, sizeof what, "blocks of %d threads that live, in clusters", threads);
        say(what, cluster, clocks, clusters(live, cluster, 1 << 15, threads, clocks), 1 << 15);
      }
}

template <int HOW, int STORES> static void barriers(const char *how, char *room) {
  for (int each : {1, 4, 16, 32}) { // blocks an SM
    int blocks = (int)sms * each, rounds = 256;
    char what[64];
    snprintf(what, sizeof what, "meeting by %s behind stores, a round", how);
    say(what, STORES, each, clusters(sync_after_stores<HOW, STORES>, 2, blocks, 32, (uint4 *)room, rounds), rounds);
  }
}

template <int HOW, int STORES> static void last_barriers(const char *how, char *room) {
  for (int clocks : {0, 2000}) {
    char what[64];
    snprintf(what, sizeof what, "blocks that meet by %s behind stores", how);
    say(what, STORES, clocks, clusters(sync_once<HOW, STORES>, 2, 1 << 15, 32, (uint4 *)room, clocks), 1 << 15);
  }
}

template <int HOW> static void reads(const char *how, char *room) {
  int blocks = (int)sms * 8, rounds = 1024;
  char what[64];
  for (int step : {0, 4, 8, 128}) {
    snprintf(what, sizeof what, "shared reads, %s, of an SM", how);
    say(what, step, 256, clusters(read_shared<HOW>, 2, blocks, 256, (unsigned *)room, step, rounds), 64.0 * rounds);
    say(what, step, 32, clusters(read_shared<HOW>, 2, blocks * 4, 32, (unsigned *)room, step, rounds), 32.0 * rounds);
  }
  snprintf(what, sizeof what, "shared reads, %s, one by one", how);
  say(what, 0, 0, clusters(chase_shared<HOW>, 2, 2, 32, (unsigned *)room, rounds), rounds);
}

template <class T> static void parts(char *room) {
  int warps = (int)sms * 64, rounds = 64;
  for (size_t mask : {(16u << 20) - 1, (512u << 20) - 1})
    for (int rest : {REST_NEVER, REST_LATER, REST_OTHERS})
      for (int stride : {32, 64, 128, 256}) {
        char what[80];
        snprintf(what, sizeof what, "%zu-byte writes, the rest %s, in %zu MB, each sector", sizeof(T),
                 rest == REST_NEVER ? "never" : rest == REST_LATER ? "later" : "by others", (mask + 1) >> 20);
        say(what, stride, rest, microseconds([&] { write_parts<T><<<warps / 8, 256>>>(room, stride, rest, mask, rounds); }),
            32.0 * warps * rounds);
      }
}

template <int COUNT, bool LOADS> static void bursts(char *room) {
  int warps = (int)sms * 64, rounds = 64 / COUNT;
  size_t mask = (16u << 20) - 1;
  for (int stride : {4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 64, 72, 96, 128}) {
    char what[64];
    snprintf(what, sizeof what, "4-byte writes in bursts%s, each sector", LOADS ? " with loads" : "");
    say(what, stride, COUNT,
        microseconds([&] { write_bursts<COUNT, LOADS><<<warps / 8, 256>>>(room, room + mask + 65537, stride, mask, rounds); }),
        std::min(stride, 32) * (double)COUNT * warps * rounds);
  }
}

static void partial_rows(char *room) {
  int warps = (int)sms * 64, rounds = 256;
  for (size_t mask : {(16u << 20) - 1, (512u << 20) - 1}) {
    for (int words : {1, 2, 4, 6, 7, 8})
      say("words of each sector of a line, each sector", words, (int)((mask + 1) >> 20),
          microseconds([&] { write_rows<<<warps / 8, 256>>>((unsigned *)room, words, mask, rounds); }), 4.0 * warps * rounds);
    for (int apart : {0, 1})
      for (int lines : {1, 2, 4, 8, 16, 32})
        say(apart ? "lines of a request, words apart, each line" : "lines of a request, words together, each line", lines,
            (int)((mask + 1) >> 20),
            microseconds([&] { write_lines<<<warps / 8, 256>>>((unsigned *)room, lines, apart, mask, rounds / 4); }),
            (double)lines * warps * rounds / 4);
  }
}

int main() {
  cudaDeviceProp p;
  int khz;
  CHECK(cudaGetDeviceProperties(&p, 0));
  cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
  clock_hz = khz * 1e3, sms = p.multiProcessorCount;
  printf("{\"gpu\": \"%s\", \"clock_hz\": %.4g, \"sms\": %g}\n", p.name, clock_hz, sms);
  char *room;
  CHECK(cudaMalloc(&room, 512u << 20));
  CHECK(cudaMemset(room, 0, 512u << 20));
  starts();
  lives();
  barriers<SYNC_BLOCK, 0>("block", room), barriers<SYNC_RELAXED, 0>("relaxed", room);
  barriers<SYNC_CLUSTER, 0>("cluster", room), barriers<SYNC_FENCE, 0>("fence", room);
  barriers<SYNC_NONE, 1>("nothing", room), barriers<SYNC_BLOCK, 1>("block", room), barriers<SYNC_RELAXED, 1>("relaxed", room);
  barriers<SYNC_CLUSTER, 1>("cluster", room), barriers<SYNC_FENCE, 1>("fence", room);
  barriers<SYNC_CLUSTER, 4>("cluster", room), barriers<SYNC_FENCE, 4>("fence", room);
  last_barriers<SYNC_NONE, 0>("nothing", room), last_barriers<SYNC_RELAXED, 0>("relaxed", room);
  last_barriers<SYNC_CLUSTER, 0>("cluster", room), last_barriers<SYNC_FENCE, 0>("fence", room);
  last_barriers<SYNC_NONE, 2>("nothing", room), last_barriers<SYNC_RELAXED, 2>("relaxed", room);
  last_barriers<SYNC_CLUSTER, 2>("cluster", room), last_barriers<SYNC_FENCE, 2>("fence", room);
  reads<READ_OWN>("own", room), reads<READ_OWN_WINDOW>("own by the window", room);
  reads<READ_OTHER>("another's", room), reads<READ_OTHER_GENERIC>("another's, generic", room);
  int warps = 132 * 64, rounds = 64; // eight blocks of 256 an SM
  for (int distinct : {1, 2, 4, 8, 16, 32})
    say("match.any, of an SM", distinct, 0,
        microseconds([&] { matches<<<warps / 8, 256>>>((unsigned *)room, distinct, rounds); }), warps / sms * rounds);
  for (int lanes : {1, 2, 4, 8, 16, 32}) {
    say("int atomics on one line, each request", lanes, 1,
        microseconds([&] { add_int<<<warps / 8, 256>>>((unsigned *)room, lanes, 1, 16); }), warps * 16.0);
    say("float atomics on one line, each request", lanes, 1,
        microseconds([&] { add_float<<<warps / 8, 256>>>((float *)room, lanes, 1, 16); }), warps * 16.0);
  }
  for (int lines : {2, 8, 64, 1024}) {
    say("int atomics on 32 words of some lines, each request", 32, lines,
        microseconds([&] { add_int<<<warps / 8, 256>>>((unsigned *)room, 32, lines, 16); }), warps * 16.0);
    say("int atomics on 1 word of some lines, each request", 1, lines,
        microseconds([&] { add_int<<<warps / 8, 256>>>((unsigned *)room, 1, lines, 16); }), warps * 16.0);
  }
  for (int stride : {4, 8, 16, 32, 64, 128, 1024, 16384}) {
    size_t all = (64u << 20) / 128; // warps: 64 MB of results
    say("4-byte writes, each line of a request", stride, 0,
        microseconds([&] { write_apart<<<(unsigned)(all / 8), 256>>>(room, stride); }),
        all * std::max(1.0, std::min(32.0, 32.0 * stride / 128)));
  }
  parts<float>(room), parts<float2>(room), parts<float4>(room);
  bursts<1, false>(room), bursts<2, false>(room), bursts<4, false>(room);
  bursts<1, true>(room), bursts<4, true>(room);
  partial_rows(room);
  for (int distinct : {1, 2, 4, 8, 16, 32})
    say("constants, of an SM", distinct, 0,
        microseconds([&] { constants<<<warps / 8, 256>>>((float *)room, distinct, 256); }), warps / sms * 256);
  cudaMemset(room, 0, 128);
  for (int rounds : {256, 2048})
    for (int distinct : {1, 2, 4, 8, 16, 32})
      say("constants that stay near, of an SM", distinct, rounds,
          microseconds([&] { constants_near<<<warps / 8, 256>>>((float *)room, (const int *)room, distinct, rounds); }),
          warps / sms * rounds);
  return 0;
}
