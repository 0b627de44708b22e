// A program that does wrong what its argument names, or the same rightly: for tests of sol audit --check.
#include <cstdio>
#include <cstring>

__device__ int aligned[2];

__global__ void block_race(int *out, const int *in, bool right) {
  __shared__ int part[128];
  part[threadIdx.x] = in[threadIdx.x];
  if (right) __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < 128; i++) sum += part[i]; // line 14: block_race
    *out = sum;
  }
}
__global__ void warp_race(int *out, const int *in, bool right) {
  __shared__ int part[32];
  part[threadIdx.x] = in[threadIdx.x];
  if (right) __syncwarp();
  out[threadIdx.x] = part[31 - threadIdx.x]; // line 22: warp_race
}
__global__ void overwrite(int *out, const int *in, bool right) {
  __shared__ int part[64];
  part[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  int other = part[63 - threadIdx.x];
  if (right) __syncthreads();
  part[threadIdx.x] = other + 1; // line 30: overwrite
  __syncthreads();
  out[threadIdx.x] = part[threadIdx.x];
}
__global__ void values(int *out, bool right) {
  *out = right ? 7 : (int)threadIdx.x; // line 35: values
}
__global__ void unwritten(int *out, const int *in) {
  out[threadIdx.x] = in[threadIdx.x] + 1; // line 38: unwritten
}
__global__ void divergent(int *out, bool right) {
  if (right || threadIdx.x < 48) __syncthreads(); // line 41: divergent
  out[threadIdx.x] = 1;
}
__global__ void mask(int *out, unsigned members) {
  if (threadIdx.x <= 16) __syncwarp(members); // line 45: mask
  if (threadIdx.x <= 16) out[threadIdx.x] = __reduce_add_sync(members, 1); // line 46: mask
}
__global__ void memory(int *out, int n, bool right) {
  int *p = right ? aligned : (int *)((char *)aligned + 1);
  *p = 42; // line 50: memory
  out[right ? threadIdx.x : n + threadIdx.x] = 1; // line 51: memory
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  bool right = argc > 2 && !strcmp(argv[2], "right");
  int n = 1024, *in, *out;
  cudaMalloc(&in, n * sizeof *in);
  cudaMalloc(&out, n * sizeof *out);
  cudaMemset(in, 0, strcmp(what, "unwritten") || right ? n * sizeof *in : n / 64);
  cudaMemset(out, 0, n * sizeof *out);
  auto is = [&](const char *word) { return !strcmp(what, word); };
  if (is("block_race")) block_race<<<1, 128>>>(out, in, right);
  if (is("warp_race")) warp_race<<<1, 32>>>(out, in, right);
  if (is("overwrite")) overwrite<<<1, 64>>>(out, in, right);
  if (is("values")) values<<<1, 32>>>(out, right);
  if (is("unwritten"))
    for (int i = 0; i < 10; i++) unwritten<<<1, 32>>>(out, in);
  if (is("divergent")) divergent<<<1, 64>>>(out, right);
  if (is("mask")) mask<<<1, 32>>>(out, right ? 0x1ffff : 0xffff);
  if (is("memory")) memory<<<1, 32>>>(out, n, right);
  if (!is("unwritten")) unwritten<<<1, 32>>>(out, out); // it went on until here
  return cudaDeviceSynchronize() != cudaSuccess;
}
