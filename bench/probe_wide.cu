// What keeps rows as long as a cluster's shared memory from the speed of a copy, one cause at a time. Prints microseconds and
// multiples of light, a copy of the same bytes by one-shot blocks. Needs sm_90.
//   ring   a copy through rings of bulk copies, one or two blocks an SM: tiles dealt out evenly, or by a counter; and how
//          long after the first tenth the last block ends
//   align  a copy through shared memory that starts so many bytes off 128, by cp.async or by ordinary stores
//   sums   rmsnorm of bf16 rows in clusters: sums over the cluster's barrier or by st.async, rows so many bytes off 128
//   nvcc -std=c++17 -O3 -arch=sm_90a -Ikernels bench/probe_wide.cu -o probe_wide && ./probe_wide
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "row.cuh"

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e = (call);                                                                                  \
    if (e) {                                                                                                 \
      printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e));                                      \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

__device__ uint32_t at_shared(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

__global__ void copy16(const uint4 *x, uint4 *y) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  y[i] = x[i];
}

// ---- ring

__device__ void fetch(char *to, const char *from, int bytes, uint64_t *arrived) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at_shared(arrived)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at_shared(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(at_shared(arrived))
               : "memory");
}

// counter: NULL, or what the next tile's number is taken from.
__global__ void ring(const char *x, char *y, int tiles, int bytes, int stages, int *counter, uint64_t *ends) {
  extern __shared__ __align__(128) char held[];
  __shared__ uint64_t arrived[32];
  __shared__ int tile[32];
  int t = threadIdx.x, taken = stages, next = 0;
  if (t == 0) {
    for (int s = 0; s < stages; s++) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at_shared(&arrived[s])));
    for (int s = 0; s < stages; s++) {
      tile[s] = counter ? atomicAdd(counter, 1) : (int)(blockIdx.x + s * gridDim.x);
      if (tile[s] < tiles) fetch(held + s * bytes, x + (size_t)tile[s] * bytes, bytes, &arrived[s]);
    }
    if (counter) next = atomicAdd(counter, 1);
  }
  __syncthreads();
  for (int i = 0;; i++) {
    int s = i % stages, mine = tile[s];
    uint32_t done = 0;
    if (mine >= tiles) break;
    while (!done)
      asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                   : "=r"(done)
                   : "r"(at_shared(&arrived[s])), "r"((uint32_t)(i / stages & 1))
                   : "memory");
    for (int c = t; c < bytes / 16; c += blockDim.x)
      ((uint4 *)(y + (size_t)mine * bytes))[c] = ((uint4 *)(held + s * bytes))[c];
    __syncthreads();
    if (t == 0) {
      tile[s] = counter ? next : (int)(blockIdx.x + (size_t)taken++ * gridDim.x);
      if (counter && next < tiles) next = atomicAdd(counter, 1); // long before it is needed
      if (tile[s] < tiles) fetch(held + s * bytes, x + (size_t)tile[s] * bytes, bytes, &arrived[s]);
    }
  }
  if (t == 0) asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ends[blockIdx.x]));
}

// ---- align

enum { LAPS = 8 };

template <bool ASYNC> __global__ void __launch_bounds__(512, 3) staged(const uint4 *x, uint4 *y, int off) {
  extern __shared__ __align__(128) char memory[];
  uint4 *held = (uint4 *)(memory + off) + threadIdx.x;
  size_t at = blockIdx.x * (size_t)LAPS * 512 + threadIdx.x;
  for (int k = 0; k < LAPS; k++)
    if (ASYNC)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at_shared(held + k * 512)), "l"(x + at + k * 512)
                   : "memory");
    else held[k * 512] = x[at + k * 512];
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (int k = 0; k < LAPS; k++) y[at + k * 512] = held[k * 512];
}

// ---- sums

template <bool MAIL> __global__ void __launch_bounds__(512, 3) normalise(const uint4 *x, const uint4 *w, uint4 *y, int off) {
  extern __shared__ __align__(128) char memory[];
  __shared__ ClusterExchange mail;
  __shared__ float part[16], sums[16];
  uint4 *held = (uint4 *)(memory + off) + threadIdx.x;
  int blocks, rank = (int)cluster_rank();
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
  if (MAIL) exchange_init(&mail, blocks);
  else cluster_arrive();
  int lap = blocks * 512, mine = rank * 512 + threadIdx.x;
  size_t row = blockIdx.x / blocks * (size_t)lap * LAPS + mine;
  for (int k = 0; k < LAPS; k++)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at_shared(held + k * 512)), "l"(x + row + k * lap)
                 : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  float sum = 0, f[8], g[8];
  Vec v, u;
  for (int k = 0; k < LAPS; k++) {
    v.v = held[k * 512];
    widen(&v, KIND_BF16, 2, f);
    for (int j = 0; j < 8; j++) sum += f[j] * f[j];
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = warp_sum(threadIdx.x % 32 < 16 ? part[threadIdx.x % 32] : 0);
  if (MAIL) {
    exchange_all(&mail, blocks, make_float2(sum, 0));
    sum = 0;
    for (int i = 0; i < blocks; i++) sum += mail.from[i].x;
  } else {
    cluster_wait();
    if (threadIdx.x < blocks) {
      uint32_t there;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at_shared(&sums[rank])), "r"((int)threadIdx.x));
      asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(sum) : "memory");
    }
    cluster_arrive();
    cluster_wait();
    sum = 0;
    for (int i = 0; i < blocks; i++) sum += sums[i];
  }
  float scale = rsqrtf(sum / (float)(lap * LAPS * 8) + 1e-6f);
  for (int k = 0; k < LAPS; k++) {
    v.v = held[k * 512], u.v = w[mine + k * lap];
    widen(&v, KIND_BF16, 2, f);
    widen(&u, KIND_BF16, 2, g);
    for (int j = 0; j < 8; j++) f[j] *= scale * g[j];
    narrow(&v, KIND_BF16, 2, f);
    y[row + k * lap] = v.v;
  }
}

// ---- timing: graphs of eight calls over four pairs of buffers

enum { SETS = 4, CALLS = 8 };
static const size_t BYTES = 256 << 20;
static char *in[SETS], *out[SETS];

static float time_of(const std::function<void(int, cudaStream_t)> &call) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaEvent_t from, to;
  std::vector<float> us;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&from));
  CHECK(cudaEventCreate(&to));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < CALLS; i++) call(i, stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&ready, graph, 0));
  for (int i = 0; i < 12; i++) {
    float ms;
    CHECK(cudaEventRecord(from, stream));
    CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaEventRecord(to, stream));
    CHECK(cudaEventSynchronize(to));
    CHECK(cudaEventElapsedTime(&ms, from, to));
    us.push_back(ms * 1000 / CALLS);
  }
  std::sort(us.begin(), us.end());
  CHECK(cudaGraphExecDestroy(ready));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  return us[us.size() / 2];
}

static void rings(float light) {
  int *counter, sms = 0;
  uint64_t *ends;
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaMalloc(&counter, CALLS * sizeof *counter));
  CHECK(cudaMalloc(&ends, 2 * sms * sizeof *ends));
  CHECK(cudaFuncSetAttribute(ring, cudaFuncAttributeMaxDynamicSharedMemorySize, 128 << 10));
  for (int per = 1; per <= 2; per++)
    for (int room = 32 << 10; room <= 128 << 10; room *= 2)
      for (int counted = 0; counted < 2; counted++) {
        const int tile = 8192, stages = room / per / tile;
        float us = time_of([&](int i, cudaStream_t stream) {
          if (i == 0 && counted) CHECK(cudaMemsetAsync(counter, 0, CALLS * sizeof *counter, stream));
          ring<<<sms * per, 256, stages * tile, stream>>>(in[i % SETS], out[i % SETS], (int)(BYTES / tile), tile, stages,
                                                          counted ? counter + i : nullptr, ends);
        });
        std::vector<uint64_t> end(sms * per);
        CHECK(cudaMemcpy(end.data(), ends, end.size() * sizeof end[0], cudaMemcpyDeviceToHost));
        std::sort(end.begin(), end.end());
        printf("ring   %3d KB an SM, %d blocks, %s: %7.2f us %.3f, the last %5.1f us after\n", room >> 10, per,
               counted ? "by a counter" : "dealt evenly", us, us / light, (double)(end.back() - end[end.size() / 10]) / 1e3);
      }
}

int main() {
  char *weight;
  for (int i = 0; i < SETS; i++) {
    CHECK(cudaMalloc(&in[i], BYTES));
    CHECK(cudaMalloc(&out[i], BYTES));
    CHECK(cudaMemset(in[i], 0x3c, BYTES));
  }
  CHECK(cudaMalloc(&weight, 1 << 20));
  CHECK(cudaMemset(weight, 0x3c, 1 << 20));
  float light = time_of([&](int i, cudaStream_t stream) {
    copy16<<<(unsigned)(BYTES / 16 / 256), 256, 0, stream>>>((uint4 *)in[i % SETS], (uint4 *)out[i % SETS]);
  });
  printf("light  %zu MiB in and out: %.2f us\n", BYTES >> 20, light);
  rings(light);
  const int shared = LAPS * 8192 + 128;
  void (*copies[2])(const uint4 *, uint4 *, int) = {staged<true>, staged<false>};
  for (int how = 0; how < 2; how++)
    for (int off = 0; off < 128; off += 16) {
      CHECK(cudaFuncSetAttribute(copies[how], cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
      float us = time_of([&](int i, cudaStream_t stream) {
        copies[how]<<<(unsigned)(BYTES / 16 / 512 / LAPS), 512, shared, stream>>>((uint4 *)in[i % SETS], (uint4 *)out[i % SETS], off);
      });
      printf("align  %s, %3d bytes off: %7.2f us %.3f\n", how ? "by stores  " : "by cp.async", off, us, us / light);
    }
  void (*norms[2])(const uint4 *, const uint4 *, uint4 *, int) = {normalise<false>, normalise<true>};
  for (int blocks = 2; blocks <= 8; blocks *= 2)
    for (int how = 0; how < 2; how++)
      for (int off : {0, 16, 64}) {
        CHECK(cudaFuncSetAttribute(norms[how], cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
        float us = time_of([&](int i, cudaStream_t stream) {
          cudaLaunchConfig_t config = {};
          cudaLaunchAttribute cluster;
          cluster.id = cudaLaunchAttributeClusterDimension;
          cluster.val.clusterDim = {(unsigned)blocks, 1, 1};
          config.gridDim = (unsigned)(BYTES / 16 / 512 / LAPS), config.blockDim = 512, config.dynamicSmemBytes = shared;
          config.stream = stream, config.attrs = &cluster, config.numAttrs = 1;
          CHECK(cudaLaunchKernelEx(&config, norms[how], (const uint4 *)in[i % SETS], (const uint4 *)weight,
                                   (uint4 *)out[i % SETS], off));
        });
        printf("sums   %d blocks a row, %s, %2d bytes off: %7.2f us %.3f\n", blocks, how ? "by st.async   " : "over a barrier", off, us,
               us / light);
      }
}
