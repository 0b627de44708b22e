// What a kernel finds in L2 of what ran before it: kernels, cudaMemset, cudaMemcpy in three directions, cudaFree.
// Prints a label a launch; ncu counts them: nvcc -O2 -arch=native -o probe_kept bench/probe_kept.cu
//   ncu --cache-control none --csv --page raw --print-units base --metrics dram__bytes_read.sum,dram__bytes_write.sum
//       --log-file kept.csv ./probe_kept > kept.labels
// tests/data/h200-kept-probe.csv was made from such a run.
#include <cstdio>
#include <cstdlib>

static const size_t MiB = 1 << 20;

__global__ void read_all(const float4 *x, size_t count, float *out) {
  float sum = 0;
  for (size_t i = blockIdx.x * 256ul + threadIdx.x; i < count; i += gridDim.x * 256ul) {
    float4 v = x[i];
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum == 1e30f) *out = sum; // never: the loads must not be removed
}

__global__ void write_all(float4 *x, size_t count) {
  for (size_t i = blockIdx.x * 256ul + threadIdx.x; i < count; i += gridDim.x * 256ul)
    x[i] = make_float4(1, 2, 3, 4);
}

struct Probe {
  char *x, *y, *other, *pinned, *pageable;
  float *out;
  int mib;

  size_t bytes() const { return mib * MiB; }
  void label(const char *text) const {
    printf("%s %d\n", text, mib);
    cudaDeviceSynchronize();
  }
  void read(const char *text, const char *from, size_t count) const {
    read_all<<<1056, 256>>>((const float4 *)from, count / 16, out);
    label(text);
  }
  void flush(const char *text) const { read(text, other, 256 * MiB); }
  void write() const {
    write_all<<<1056, 256>>>((float4 *)x, bytes() / 16);
    label("write");
  }

  void kernels() const {
    flush("-"), write(), read("write: read", x, bytes()), flush("write: flush");
    read("-", x, bytes()), read("read: read", x, bytes()), flush("-");
  }
  void host_copies() const {
    cudaMemcpy(x, pinned, bytes(), cudaMemcpyHostToDevice), read("h2d pinned: read", x, bytes()), flush("-");
    cudaMemcpy(x, pageable, bytes(), cudaMemcpyHostToDevice), read("h2d pageable: read", x, bytes()), flush("-");
    cudaMemcpy(x, pinned, bytes(), cudaMemcpyHostToDevice), flush("h2d pinned: flush");
    cudaMemcpy(pinned, x, bytes(), cudaMemcpyDeviceToHost), read("d2h: read", x, bytes()), flush("-");
    write(), cudaMemcpy(pinned, x, bytes(), cudaMemcpyDeviceToHost), read("write and d2h: read", x, bytes());
    flush("-"), write(), cudaMemcpy(pinned, x, bytes(), cudaMemcpyDeviceToHost), flush("write and d2h: flush");
    read("-", x, bytes()), cudaMemcpy(pinned, x, bytes(), cudaMemcpyDeviceToHost);
    read("read and d2h: read", x, bytes()), flush("-");
  }
  void device_copies() const {
    cudaMemset(x, 1, bytes()), read("memset: read", x, bytes()), flush("-");
    cudaMemset(x, 1, bytes()), flush("memset: flush");
    cudaMemcpy(y, x, bytes(), cudaMemcpyDeviceToDevice), read("d2d destination: read", y, bytes()), flush("-");
    cudaMemcpy(y, x, bytes(), cudaMemcpyDeviceToDevice), read("d2d source: read", x, bytes()), flush("-");
  }
  void frees() {
    write(), cudaFree(x), flush("write and free: flush");
    cudaMalloc(&x, 64 * MiB);
  }
};

int main() {
  Probe p;
  cudaMalloc(&p.x, 64 * MiB), cudaMalloc(&p.y, 64 * MiB), cudaMalloc(&p.other, 256 * MiB), cudaMalloc(&p.out, 4);
  cudaMallocHost(&p.pinned, 64 * MiB);
  p.pageable = (char *)calloc(64, MiB);
  for (int mib : {4, 16, 24, 32}) {
    p.mib = mib;
    p.kernels(), p.host_copies(), p.device_copies(), p.frees();
  }
  return cudaGetLastError() != cudaSuccess;
}
