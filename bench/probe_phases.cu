// How much of a warp's arithmetic overlaps with other warps' loads: each thread loads L vectors of 16 bytes that are in flight together and
// computes with all of them, some rounds of that, in one or several waves of blocks. Times of the loads alone (DRAM), of the
// arithmetic alone (its loads hit L1), and of both.
// nvcc -O3 -std=c++17 -arch=sm_90 -o probe_phases bench/probe_phases.cu && ./probe_phases > bench/results/DATE-GPU-phases.json
#include <cstdio>
#include <cuda_runtime.h>
static const char *comma = "";
enum { THREADS = 256, PER_SM = 4, COPIES = 24 };
static const size_t BYTES = (size_t)1 << 30;

__device__ static float4 load(const float4 *p) {
  float4 v;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
  return v;
}
template <int L> __global__ void __launch_bounds__(THREADS, PER_SM) phases(const float4 *in, float *out, int rounds, int turns, size_t step) {
  size_t self = blockIdx.x * (size_t)THREADS + threadIdx.x;
  const float4 *at = step ? in + self : in + threadIdx.x;
  float a = 0, b = 1, c = 2, d = 3;
#pragma unroll 1
  for (int r = 0; r < rounds; r++) {
    float4 v[L];
#pragma unroll
    for (int l = 0; l < L; l++) v[l] = load(at), at += step;
#pragma unroll
    for (int l = 0; l < L; l++) a += v[l].x, b += v[l].y, c += v[l].z, d += v[l].w;
#pragma unroll 1
    for (int t = 0; t < turns; t++)
#pragma unroll
      for (int k = 0; k < 8; k++) a = a * 0.5f + b, b = b * 0.5f + c, c = c * 0.5f + d, d = d * 0.5f + a;
    asm volatile("" ::"f"(a), "f"(b), "f"(c), "f"(d) : "memory");
  }
  if (a + b + c + d == 12345.0f) out[self] = a;
}

static cudaStream_t stream;
// Of a launch, in a graph of many whose inputs are apart.
template <int L> static double us(const char *in, float *out, int blocks, int rounds, int turns, bool far) {
  size_t step = far ? (size_t)blocks * THREADS : 0, each = (size_t)blocks * THREADS * 16 * L * rounds, at = 0;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int i = 0; i < COPIES; i++) {
    if (at + each > BYTES) at = 0;
    phases<L><<<blocks, THREADS, 50 << 10, stream>>>((const float4 *)(in + at), out, rounds, turns, step);
    at += far ? each : 0;
  }
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  float ms = 0, least = 1e9f;
  for (int pass = 0; pass < 4; pass++) {
    cudaEventRecord(a, stream), cudaGraphLaunch(exec, stream), cudaEventRecord(b, stream), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
    if (pass && ms < least) least = ms;
  }
  cudaGraphExecDestroy(exec), cudaGraphDestroy(graph);
  return least * 1e3 / COPIES;
}
template <int L> static void rows(const char *in, float *out) {
  cudaFuncSetAttribute(phases<L>, cudaFuncAttributeMaxDynamicSharedMemorySize, 50 << 10);
  for (int waves : {1, 2, 4})
    for (int rounds : {1, 2, 4})
      for (int turns : {4, 12, 36}) {
        int blocks = 132 * PER_SM * waves;
        double nothing = us<L>(in, out, blocks, 0, 0, false), loads = us<L>(in, out, blocks, rounds, 0, true),
               arithmetic = us<L>(in, out, blocks, rounds, turns * L, false), both = us<L>(in, out, blocks, rounds, turns * L, true);
        printf("%s{\"what\": \"phases\", \"loads\": %d, \"waves\": %d, \"rounds\": %d, \"products\": %d, \"empty us\": %.2f, \"loads us\": %.2f, "
               "\"arithmetic us\": %.2f, \"both us\": %.2f}",
               comma, L, waves, rounds, turns * L * 32, nothing, loads, arithmetic, both),
            comma = ",\n";
      }
}
int main() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  char *in;
  float *out;
  cudaMalloc(&in, BYTES + (64 << 20)), cudaMemset(in, 0, BYTES + (64 << 20)), cudaMalloc(&out, 16 << 20);
  cudaStreamCreate(&stream);
  printf("{\"schema\": 1, \"gpu\": \"%s\", \"command\": \"probe_phases (bench/probe_phases.cu)\", \"rows\": [\n", p.name);
  rows<1>(in, out);
  rows<2>(in, out);
  rows<4>(in, out);
  rows<8>(in, out);
  printf("],\n\"error\": \"%s\"}\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return cudaGetLastError() != cudaSuccess;
}
