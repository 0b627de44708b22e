// Kernels that launch kernels: parameters, streams, tail launches after all others, recursion.
#include <cstdio>

__global__ void add(int *x, int by) { atomicAdd(x, by + (int)threadIdx.x); }
__global__ void keep(const int *from, int *to) { *to = *from; }

struct Wide { // parameters of several sizes, with padding between them
  char a;
  double b;
};
__global__ void wide(char c, Wide w, int *to) { *to = c + w.a + (int)w.b; }

// A binary tree of launches, 2^depth leaves.
__global__ void tree(int *x, int depth) {
  if (depth == 0) {
    atomicAdd(x, 1);
    return;
  }
  tree<<<1, 1>>>(x, depth - 1);
  tree<<<1, 1, 0, cudaStreamFireAndForget>>>(x, depth - 1);
}

__global__ void parent(int *x) {
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    keep<<<1, 1, 0, cudaStreamTailLaunch>>>(&x[0], &x[1]); // sees what every other launch of the grid adds
    cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    add<<<1, 1, 16, s>>>(x, 1000);
    cudaStreamDestroy(s);
    wide<<<1, 1>>>('a', Wide{3, 40.5}, &x[3]);
    cudaMemsetAsync(&x[5], 1, 4, 0);
    cudaMemcpyAsync(&x[6], &x[5], 4, cudaMemcpyDeviceToDevice, 0); // in order
    int *own;
    if (cudaMalloc(&own, 64) == cudaSuccess) own[3] = 1, cudaFree(own);
    x[4] = (int)cudaGetLastError();
  }
  add<<<2, 4>>>(x, 10);
}

int main() {
  int *x, wrong = 0;
  cudaMallocManaged(&x, 7 * sizeof(int));
  for (int i = 0; i < 7; i++) x[i] = i == 4 ? 9 : 0;
  parent<<<2, 3>>>(x);
  tree<<<1, 1>>>(x + 2, 5);
  wrong += cudaDeviceSynchronize() != cudaSuccess;
  const int want[] = {6 * 92 + 1000, 6 * 92 + 1000, 32, 'a' + 3 + 40, 0, 0x01010101, 0x01010101};
  for (int i = 0; i < 7; i++)
    if (x[i] != want[i]) wrong++, printf("x[%d] is %d, not %d\n", i, x[i], want[i]);
  return wrong;
}
