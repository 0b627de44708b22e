// The second unit of rdc_main.cu.
__device__ int shared_value = 9;
__constant__ int factors[4] = {10, 20, 30, 40};
__device__ int twice(int x) {
  return 2 * x;
}
__device__ int square(int x) {
  return x * x;
}
typedef int (*Function)(int);
__device__ Function chosen = square;

static __global__ void use(int *x) {
  x[threadIdx.x]++;
} // its own, though the first unit has one so named
void launch_other(int *x) {
  use<<<1, 8>>>(x);
}
