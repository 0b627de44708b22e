// What kernels print appears when the host waits for them, in order with what the host prints.
#include "check.h"

__global__ void hello(int from) {
  printf("kernel %d thread %d: %s %.2f %c %5d|%-4u|%llx\n", from, threadIdx.x, "text", 1.5 * threadIdx.x, 'x',
         -threadIdx.x, 7u, 0xabcdefull);
}

int main() {
  printf("host first\n");
  hello<<<1, 2>>>(1);
  printf("host second\n");
  OK(cudaDeviceSynchronize());
  printf("host third\n");
  hello<<<1, 1>>>(2);
  OK(cudaStreamSynchronize(0));
  return failures != 0;
}
