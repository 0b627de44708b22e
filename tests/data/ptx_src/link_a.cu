// One half of a program of two translation units, compiled with -rdc=true; link_b.cu is the other.
extern __device__ int counter;
extern __constant__ float weights[4];
__device__ int from_b(int x);
static __device__ __noinline__ int local_name(int x) {
  return x + 1;
}
__device__ int from_a(int x) {
  return local_name(x) * 2;
}

extern "C" __global__ void k(int *out) {
  extern __shared__ int scratch[];
  scratch[threadIdx.x] = from_b(out[threadIdx.x]);
  __syncthreads();
  atomicAdd(&counter, 1);
  out[threadIdx.x] = scratch[0] + (int)weights[threadIdx.x & 3] + local_name(3);
}
