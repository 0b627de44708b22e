// Which four bits of the metadata of a sparse wgmma are about which elements of A, on this GPU: each is changed by itself, and B tells
// which elements were taken. The PTX manual shows it in figures. JSON on standard output: for each type and sparsity selector a
// list of [lane, nibble, row, chunk]; a chunk is four elements along k, of tf32 two.
//   nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -Ikernels bench/probe_sparse.cu -o probe_sparse && ./probe_sparse
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "hopper.cuh"

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_) printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)), exit(2);                      \
  } while (0)

enum { F16, TF32, FP8 };

#define SPARSE(shape, type, sel, turn)                                                                       \
  asm volatile("wgmma.mma_async.sp.sync.aligned." shape ".f32." type "." type                                \
               " {%0, %1, %2, %3}, {%4, %4, %4, %4}, %5, %6, " sel ", 0, 1, 1" turn ";"                      \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                              \
               : "r"(ones), "l"(b), "r"(meta))

// All of A's elements are 1; B's row n, in shared memory, is `image` + n * 64 bytes, along k.
template <int TYPE, int SEL> __global__ void product(const uint8_t *image, const uint32_t *metas, float *out) {
  __shared__ __align__(1024) uint8_t memory[512];
  for (int i = threadIdx.x; i < 512; i += 128) memory[i % 64 / 16 * 128 + i / 64 * 16 + i % 16] = image[i];
  async_fence();
  __syncthreads();
  uint64_t b = (uint64_t)(shared_address(memory) >> 4) | (uint64_t)(128 >> 4) << 16 | (uint64_t)(128 >> 4) << 32;
  uint32_t ones = TYPE == F16 ? 0x3c003c00 : TYPE == TF32 ? 0x3f800000 : 0x38383838;
  for (int run = 0; run < 257; run++) {
    float d[4] = {0, 0, 0, 0};
    uint32_t meta = metas[run * 32 + threadIdx.x % 32];
    wgmma_fence();
    if (TYPE == F16 && SEL == 0) SPARSE("m64n8k32", "f16", "0", ", 0");
    if (TYPE == F16 && SEL == 1) SPARSE("m64n8k32", "f16", "1", ", 0");
    if (TYPE == TF32 && SEL == 0) SPARSE("m64n8k16", "tf32", "0", "");
    if (TYPE == TF32 && SEL == 1) SPARSE("m64n8k16", "tf32", "1", "");
    if (TYPE == FP8) SPARSE("m64n8k64", "e4m3", "0", "");
    wgmma_commit();
    wgmma_wait<0>();
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    float *to = out + run * 512;
    to[row * 8 + column] = d[0], to[row * 8 + column + 1] = d[1];
    to[(row + 8) * 8 + column] = d[2], to[(row + 8) * 8 + column + 1] = d[3];
  }
}

// B's column n has 1, 4, 16, 64 in the elements of chunk `first` + n, and 0 elsewhere.
static std::vector<uint8_t> image_of(int type, int first) {
  std::vector<uint8_t> image(512, 0);
  int chunk = type == TF32 ? 2 : 4, size = type == F16 ? 2 : type == TF32 ? 4 : 1;
  for (int n = 0; n < 8; n++)
    for (int e = 0; e < chunk; e++) {
      int k = (first + n) * chunk + e;
      if (k * size >= 64) continue;
      uint32_t bits = type == F16 ? 0x3c00 + e * 0x800 : type == TF32 ? 0x3f800000 + e * 0x1000000 : 0x38 + e * 0x10;
      memcpy(&image[n * 64 + k * size], &bits, size);
    }
  return image;
}

template <int TYPE, int SEL> static void show(const char *name, int first, bool last) {
  std::vector<uint32_t> metas(257 * 32, 0x44444444); // the first two elements of a chunk; of tf32 the first
  for (int run = 1; run < 257; run++) metas[run * 32 + (run - 1) / 8] ^= 0xau << (run - 1) % 8 * 4; // 0xe: the last
  std::vector<uint8_t> image = image_of(TYPE, first);
  std::vector<float> out(257 * 512);
  uint8_t *d_image;
  uint32_t *d_metas;
  float *d_out;
  CHECK(cudaMalloc(&d_image, 512));
  CHECK(cudaMalloc(&d_metas, metas.size() * 4));
  CHECK(cudaMalloc(&d_out, out.size() * 4));
  CHECK(cudaMemcpy(d_image, image.data(), 512, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_metas, metas.data(), metas.size() * 4, cudaMemcpyHostToDevice));
  product<TYPE, SEL><<<1, 128>>>(d_image, d_metas, d_out);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(out.data(), d_out, out.size() * 4, cudaMemcpyDeviceToHost));
  printf("\"%s selector %d chunks from %d\": {\"before\": %g, \"changed\": [", name, SEL, first, out[0]);
  const char *comma = "";
  for (int run = 1; run < 257; run++)
    for (int i = 0; i < 16 * 8; i++) {
      bool changed = out[run * 512 + i] != out[i];
      for (int warp = 1; warp < 4; warp++) changed |= out[run * 512 + warp * 128 + i] != out[warp * 128 + i];
      if (!changed) continue;
      printf("%s[%d,%d,%d,%d]", comma, (run - 1) / 8, (run - 1) % 8, i / 8, first + i % 8);
      comma = ",";
    }
  printf("]}%s\n", last ? "" : ",");
}

int main(void) {
  printf("{\"schema\": 1, \"command\": \"probe_sparse (bench/probe_sparse.cu)\",\n");
  show<F16, 0>("f16", 0, false);
  show<F16, 1>("f16", 0, false);
  show<TF32, 0>("tf32", 0, false);
  show<TF32, 1>("tf32", 0, false);
  show<FP8, 0>("e4m3", 0, false);
  show<FP8, 0>("e4m3", 8, true);
  printf("}\n");
  return 0;
}
