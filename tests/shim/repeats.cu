// A program that launches kernels many times, as benchmarks do: for tests of sol audit.
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void add(int *y, const int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += x[i];
}
// As many rounds as memory says.
__global__ void rounds(int *y, const int *times) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  for (int k = 0; k < *times; k++) sum += k ^ i;
  y[i] += sum;
}
// Executes the same whatever the stride is.
__global__ void strided(int *y, const int *x, const int *stride, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i * *stride % n];
}
__global__ void swap_two(int *to, const int *from) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i] + 1;
}
__constant__ int more;
__global__ void plus_more(int *y, const int *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] + more;
}
__global__ void tell_time(unsigned long long *now) {
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(*now));
}
// The number of this launch: of those that ran.
__global__ void tell_number(unsigned long long *number) {
  asm("mov.u64 %0, %%gridid;" : "=l"(*number));
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "same";
  int launches = argc > 2 ? atoi(argv[2]) : 1000, n = 1 << 14, *x, *y, *value;
  cudaMalloc(&x, n * sizeof *x);
  cudaMalloc(&y, n * sizeof *y);
  cudaMalloc(&value, 2 * sizeof *value);
  int *host = (int *)calloc(n, sizeof *host);
  for (int i = 0; i < n; i++) host[i] = i;
  cudaMemcpy(x, host, n * sizeof *x, cudaMemcpyHostToDevice);
  cudaMemset(y, 0, n * sizeof *y);
  long expected = 0;
  for (int k = 0; k < launches; k++) {
    if (!strcmp(what, "same")) add<<<n / 256, 256>>>(y, x, n), expected += n - 1;
    if (!strcmp(what, "swap")) swap_two<<<n / 256, 256>>>(k % 2 ? x : y, k % 2 ? y : x);
    if (!strcmp(what, "rounds") || !strcmp(what, "late")) {
      int times = !strcmp(what, "late") ? (k < launches / 2 ? 5 : 50) : k % 7;
      cudaMemcpy(value, &times, sizeof times, cudaMemcpyHostToDevice);
      rounds<<<n / 256, 256>>>(y, value);
      for (int j = 0; j < times; j++) expected += j ^ (n - 1);
    }
    if (!strcmp(what, "stride")) {
      int stride = k < launches / 2 ? 1 : 32;
      cudaMemcpy(value, &stride, sizeof stride, cudaMemcpyHostToDevice);
      strided<<<n / 256, 256>>>(y, x, value, n);
      expected = (long)(n - 1) * stride % n;
    }
    // Each finds what the one before found, until a constant or what it reads becomes another.
    if (!strcmp(what, "still")) {
      if (k == launches / 2) cudaMemcpyToSymbol(more, &k, sizeof k);
      if (k == launches * 3 / 4) cudaMemset(x, 0, n * sizeof *x);
      plus_more<<<n / 256, 256>>>(y, x);
      expected = launches / 2;
    }
    if (!strcmp(what, "time")) {
      cudaMemset(value, 0, 2 * sizeof *value);
      tell_time<<<1, 1>>>((unsigned long long *)value);
    }
    if (!strcmp(what, "reset")) {
      cudaMemset(y, k > launches - 10, n * sizeof *y);
      add<<<n / 256, 256>>>(y, x, n);
      expected = n - 1 + 0x01010101;
    }
  }
  if (!strcmp(what, "still") || !strcmp(what, "reset") || !strcmp(what, "time")) {
    unsigned long long ran = 0;
    tell_number<<<1, 1>>>((unsigned long long *)value);
    cudaMemcpy(&ran, value, sizeof ran, cudaMemcpyDeviceToHost);
    printf("%llu ran\n", ran);
  }
  if (!strcmp(what, "swap")) expected = launches + n - 2;
  cudaMemcpy(host, y, n * sizeof *y, cudaMemcpyDeviceToHost);
  bool right = host[n - 1] == (int)expected;
  printf("%d launches: %s\n", launches, right ? "all right" : "WRONG");
  return !right;
}
