// What the time model's less common units cost, measured: starting blocks and clusters, match, atomics that meet in a
// line, partial writes, constant memory, each by itself. Prints a line of JSON a figure; src/audit/time.c cites them.
//   nvcc -std=c++17 -O3 -arch=sm_90a bench/probe_units.cu -o probe_units && ./probe_units
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

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

__global__ void meet(int rounds) {
  for (int i = 0; i < rounds; i++)
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
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

__constant__ float table[1024];
__global__ void constants(float *out, int distinct, int rounds) {
  float sum = 0;
  int at = threadIdx.x % distinct;
#pragma unroll 8
  for (int i = 0; i < rounds; i++) sum += table[(at + i * 37) & 1023];
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
  for (int threads : {32, 64, 256, 1024}) {
    int blocks = 1 << 18;
    say("block start", threads, 1, microseconds([&] { empty<<<blocks, threads>>>(nullptr); }), blocks);
  }
  for (int cluster : {2, 4, 8})
    for (int threads : {64, 256}) {
      int blocks = 1 << 16;
      cudaLaunchConfig_t c = {};
      cudaLaunchAttribute a;
      a.id = cudaLaunchAttributeClusterDimension, a.val.clusterDim.x = cluster, a.val.clusterDim.y = a.val.clusterDim.z = 1;
      c.gridDim = blocks, c.blockDim = threads, c.attrs = &a, c.numAttrs = 1;
      say("cluster start", cluster, threads, microseconds([&] { CHECK(cudaLaunchKernelEx(&c, empty, (int *)nullptr)); }),
          blocks / cluster);
    }
  for (int cluster : {2, 8})
    for (int meetings : {0, 1, 2, 8}) {
      int blocks = 1 << 15;
      cudaLaunchConfig_t c = {};
      cudaLaunchAttribute a;
      a.id = cudaLaunchAttributeClusterDimension, a.val.clusterDim.x = cluster, a.val.clusterDim.y = a.val.clusterDim.z = 1;
      c.gridDim = blocks, c.blockDim = 64, c.attrs = &a, c.numAttrs = 1;
      say("clusters that meet", cluster, meetings, microseconds([&] { CHECK(cudaLaunchKernelEx(&c, meet, meetings)); }),
          blocks / cluster);
    }
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
  for (int distinct : {1, 2, 4, 8, 16, 32})
    say("constants, of an SM", distinct, 0,
        microseconds([&] { constants<<<warps / 8, 256>>>((float *)room, distinct, 256); }), warps / sms * 256);
  return 0;
}
