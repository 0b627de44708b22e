// What copies and sets leave in L2, measured: a kernel of one thread reads lines of the buffer, one after another in a
// scattered order, and counts the clocks of each read; a read that L2 serves takes less than half of one that DRAM serves.
// Prints a line of JSON a case; src/shim/stream.c follows them.
//   nvcc -std=c++17 -O3 -arch=sm_90a bench/probe_copies.cu -o probe_copies && ./probe_copies
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e = (call);                                                                                  \
    if (e) {                                                                                                 \
      printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e));                                      \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

constexpr int READS = 512;
constexpr long long NEAR = 500; // clocks: L2 takes less, DRAM more

// READS lines of `lines`, each once; counts[0]: those that took less than NEAR clocks, counts[1]: clocks of all.
__global__ void read_lines(const uint32_t *data, uint32_t lines, unsigned long long *counts) {
  unsigned long long near = 0, all = 0;
  uint32_t sum = 0;
  for (uint32_t i = 0; i < READS; i++) {
    uint32_t line = (uint32_t)((uint64_t)i * lines / READS) + (i * 7) % (lines / READS);
    long long from = clock64();
    uint32_t value;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(data + (size_t)line * 32 + (sum & 0)) : "memory");
    sum += value;
    long long clocks = clock64() - from + (sum == 0x12345678);
    near += clocks < NEAR;
    all += clocks;
  }
  counts[0] = near, counts[1] = all;
}

__global__ void fill(uint32_t *data, size_t words, uint32_t value) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < words; i += (size_t)gridDim.x * blockDim.x) data[i] = value;
}

static uint32_t *flush_buffer;
constexpr size_t FLUSH = (size_t)512 << 20;

static void flush() {
  fill<<<1024, 256>>>(flush_buffer, FLUSH / 4, 1);
  CHECK(cudaDeviceSynchronize());
}

enum What { NOTHING, KERNEL, SET, PAGEABLE, PINNED, DEVICE_TO, DEVICE_FROM, TO_HOST };
static const char *const names[] = {"nothing", "kernel", "memset", "host to device, pageable", "host to device, pinned",
                                    "device to device: target", "device to device: source", "device to host"};

int main() {
  size_t largest = (size_t)32 << 20;
  uint32_t *device, *other, *pinned, *pageable = (uint32_t *)calloc(largest, 1);
  unsigned long long *counts, host[2];
  CHECK(cudaMalloc(&device, largest));
  CHECK(cudaMalloc(&other, largest));
  CHECK(cudaMalloc(&flush_buffer, FLUSH));
  CHECK(cudaMalloc(&counts, sizeof host));
  CHECK(cudaMallocHost(&pinned, largest));
  fill<<<1024, 256>>>(device, largest / 4, 3);
  fill<<<1024, 256>>>(other, largest / 4, 3);
  for (size_t bytes : {(size_t)64 << 10, (size_t)256 << 10, (size_t)1 << 20, (size_t)4 << 20, (size_t)16 << 20, (size_t)32 << 20})
    for (int what = NOTHING; what <= TO_HOST; what++) {
      read_lines<<<1, 1>>>(device, (uint32_t)(bytes / 128), counts); // its code is there
      flush();
      switch (what) {
      case KERNEL: fill<<<1024, 256>>>(device, bytes / 4, 3); break;
      case SET: CHECK(cudaMemset(device, 0, bytes)); break;
      case PAGEABLE: CHECK(cudaMemcpy(device, pageable, bytes, cudaMemcpyHostToDevice)); break;
      case PINNED: CHECK(cudaMemcpy(device, pinned, bytes, cudaMemcpyHostToDevice)); break;
      case DEVICE_TO: CHECK(cudaMemcpy(device, other, bytes, cudaMemcpyDeviceToDevice)); break;
      case DEVICE_FROM: CHECK(cudaMemcpy(other, device, bytes, cudaMemcpyDeviceToDevice)); break;
      case TO_HOST: CHECK(cudaMemcpy(pinned, device, bytes, cudaMemcpyDeviceToHost)); break;
      default: break;
      }
      CHECK(cudaDeviceSynchronize());
      read_lines<<<1, 1>>>(device, (uint32_t)(bytes / 128), counts);
      CHECK(cudaMemcpy(host, counts, sizeof host, cudaMemcpyDeviceToHost));
      printf("{\"after\": \"%s\", \"kib\": %zu, \"in_l2\": %.3f, \"clocks\": %.0f}\n", names[what], bytes >> 10,
             (double)host[0] / READS, (double)host[1] / READS);
    }
}
