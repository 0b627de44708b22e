// Launches and copies in a drawn order, mostly the same few again and again: whatever changes memory between them has to be seen by
// launches that would else not run. Prints a checksum of all that they left. usage: drawn SEED STEPS
#include <cstdio>
#include <cstdlib>

enum { N = 512, WORDS = 64, BUFFERS = 4, KINDS = 18, PATTERN = 8 };

__device__ int counter, table[WORDS];
__constant__ int scale;
__managed__ int managed[WORDS];

static __device__ int place() { return blockIdx.x * blockDim.x + threadIdx.x; }
__global__ void add(int *y, const int *x) { y[place()] = x[place()] + 1; }
__global__ void accumulate(int *y, const int *x) { y[place()] += x[place()] * scale; }
__global__ void count(const int *x) { if (x[place()] & 1) atomicAdd(&counter, 1); }
__global__ void look_up(int *y, const int *x) { y[place()] = table[x[place()] % WORDS & WORDS - 1] + counter; }
__global__ void fill_table() { table[threadIdx.x] = 3 + threadIdx.x; }
__global__ void where_set(int *y, const int *flag) { if (*flag) y[place()] = *flag; }
__global__ void into_managed(const int *x) { managed[threadIdx.x] += x[threadIdx.x]; }
__global__ void through_pointers(int **p) { p[1][threadIdx.x] = p[0][threadIdx.x] * 3; }
__global__ void from_host(int *mapped, const int *x) { if (threadIdx.x == 0) mapped[0] = mapped[1] + x[0]; }

static int *buffers[BUFFERS], **pointers, *flag, *mapped, *mapped_there;
static unsigned state;
static int drawn(int below) { return (int)((state = state * 1664525u + 1013904223u) >> 8) % below; }

static void point(int from, int to) {
  int *both[2] = {buffers[from], buffers[to]};
  cudaMemcpy(pointers, both, sizeof both, cudaMemcpyHostToDevice);
}

static void step(int kind) {
  int *y = buffers[kind * 7 % BUFFERS], *x = buffers[(kind * 7 + 1 + kind % 3) % BUFFERS], value = drawn(4), which = drawn(BUFFERS);
  switch (kind) {
  case 0: add<<<4, 128>>>(y, x); break;
  case 1: accumulate<<<4, 128>>>(y, x); break;
  case 2: count<<<4, 128>>>(x); break;
  case 3: look_up<<<4, 128>>>(y, x); break;
  case 4: fill_table<<<1, WORDS>>>(); break;
  case 5: where_set<<<4, 128>>>(y, flag); break;
  case 6: into_managed<<<1, WORDS>>>(x); break;
  case 7: through_pointers<<<1, 128>>>(pointers); break;
  case 8: from_host<<<1, 32>>>(mapped_there, x); break;
  case 9: add<<<4, 128>>>(x, y); break;
  case 10: cudaMemset(buffers[which], value, N * sizeof(int)); break;
  case 11: cudaMemcpyToSymbol(scale, &value, sizeof value); break;
  case 12: cudaMemcpy(flag, &value, sizeof value, cudaMemcpyHostToDevice); break;
  case 13: cudaDeviceSynchronize(), managed[which] = value; break;
  case 14: cudaDeviceSynchronize(), mapped[1] = value; break;
  case 15: point(which, (which + 1) % BUFFERS); break;
  case 16:
    cudaFree(buffers[which]);
    cudaMalloc(&buffers[which], N * sizeof(int));
    cudaMemset(buffers[which], value, N * sizeof(int));
    point(0, 1);
    break;
  case 17: cudaMemcpyToSymbol(counter, &value, sizeof value); break;
  }
}

int main(int argc, char **argv) {
  static int host[N];
  unsigned long long sum = 0;
  int steps = argc > 2 ? atoi(argv[2]) : 500, pattern[PATTERN];
  state = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  for (int *&b : buffers) cudaMalloc(&b, sizeof host), cudaMemset(b, 0, sizeof host);
  cudaMalloc(&flag, sizeof *flag), cudaMemset(flag, 0, sizeof *flag);
  cudaMalloc(&pointers, 2 * sizeof *pointers), point(0, 1);
  cudaHostAlloc(&mapped, 2 * sizeof *mapped, cudaHostAllocMapped), mapped[0] = mapped[1] = 0;
  cudaHostGetDevicePointer(&mapped_there, mapped, 0);
  // Of an odd seed such as leave the same when they find the same: soon none of them has to run.
  static const int alike[] = {0, 3, 4, 5, 7, 8};
  bool odd = state % 2;
  int length = 1 + drawn(PATTERN);
  for (int &p : pattern) p = odd ? alike[drawn(6)] : drawn(10);
  for (int k = 0; k <= steps; k++) {
    step(drawn(20) ? pattern[k % length] : drawn(KINDS));
    if (k % 16 && k < steps) continue;
    for (int *b : buffers) {
      cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost);
      for (int v : host) sum = sum * 1000003 + (unsigned)v;
    }
  }
  cudaDeviceSynchronize();
  for (int v : managed) sum = sum * 1000003 + (unsigned)v;
  printf("left %llx and %d: %s\n", sum, mapped[0], cudaGetErrorString(cudaGetLastError()));
}
