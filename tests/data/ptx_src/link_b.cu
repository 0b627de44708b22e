// The other half of link_a.cu.
__device__ int counter = 7;
__constant__ float weights[4] = {1, 2, 3, 4};
__device__ int from_a(int x);
static __device__ __noinline__ int local_name(int x) {
  return x - 1;
}
__device__ int from_b(int x) {
  return x > 3 ? from_a(x) : local_name(x);
}
