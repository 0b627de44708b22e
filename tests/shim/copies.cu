// Pitched and three-dimensional memory, all directions, fills, and what is refused.
#include <vector>

#include "check.h"

__global__ void mark(char *base, size_t pitch, int width, int height) {
  for (int y = threadIdx.y; y < height; y += blockDim.y)
    for (int x = threadIdx.x; x < width; x += blockDim.x) ((int *)(base + y * pitch))[x] = y * 1000 + x;
}

int main() {
  const int width = 33, height = 17, depth = 5;
  char *d;
  size_t pitch = 0;
  OK(cudaMallocPitch(&d, &pitch, width * sizeof(int), height));
  CHECK(pitch >= width * sizeof(int) && pitch % 32 == 0);
  OK(cudaMemset2D(d, pitch, 0xab, width * sizeof(int), height));
  mark<<<1, dim3(16, 16)>>>(d, pitch, width, height);
  std::vector<int> h(width * height), part(10 * 4, -1);
  OK(cudaMemcpy2D(h.data(), width * 4, d, pitch, width * 4, height, cudaMemcpyDeviceToHost));
  CHECK(h[0] == 0 && h[16 * width + 32] == 16032);
  OK(cudaMemcpy2D(part.data(), 40, d + 2 * pitch + 12, pitch, 20, 4, cudaMemcpyDefault));
  CHECK(part[0] == 2003 && part[10] == 3003 && part[5] == -1 && part[34] == 5007);
  IS(cudaMemcpy2D(part.data(), 8, d, pitch, 20, 4, cudaMemcpyDefault), cudaErrorInvalidPitchValue);

  cudaPitchedPtr box;
  cudaExtent extent = make_cudaExtent(width * sizeof(int), height, depth);
  OK(cudaMalloc3D(&box, extent));
  OK(cudaMemset3D(box, 0x11, extent));
  std::vector<int> v(width * height * depth), back(v.size());
  for (size_t i = 0; i < v.size(); i++) v[i] = (int)i;
  cudaMemcpy3DParms p = {};
  p.srcPtr = make_cudaPitchedPtr(v.data(), width * sizeof(int), width, height);
  p.dstPtr = box;
  p.extent = extent;
  p.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&p));
  cudaMemcpy3DParms q = {};
  q.srcPtr = box;
  q.srcPos = make_cudaPos(4 * sizeof(int), 2, 1);
  q.dstPtr = make_cudaPitchedPtr(back.data(), width * sizeof(int), width, height);
  q.extent = make_cudaExtent(8 * sizeof(int), 3, 2);
  q.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3DAsync(&q, 0));
  OK(cudaDeviceSynchronize());
  CHECK(back[0] == v[(1 * height + 2) * width + 4]);
  CHECK(back[(1 * height + 2) * width + 7] == v[(2 * height + 4) * width + 11]);
  CHECK(back[8] == 0);

  int *a, *b;
  OK(cudaMalloc(&a, 4096));
  OK(cudaMalloc(&b, 4096));
  OK(cudaMemset(a, 1, 4096));
  OK(cudaMemsetAsync(b, 2, 4096, 0));
  OK(cudaMemcpy(b, a, 2048, cudaMemcpyDeviceToDevice));
  OK(cudaMemcpyPeer(b, 0, a, 0, 1024));
  int x[2], y[2] = {7, 8};
  OK(cudaMemcpy(x, y, sizeof x, cudaMemcpyHostToHost));
  CHECK(x[1] == 8);
  OK(cudaMemcpy(x, b + 512, 8, cudaMemcpyDeviceToHost));
  CHECK(x[0] == 0x02020202);
  IS(cudaMemcpy(b, a, 4097, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  IS(cudaMemcpy(x, y, 8, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  OK(cudaMemcpy(a, b, 8, cudaMemcpyHostToDevice)); // from device memory all the same
  IS(cudaMemcpy(nullptr, b, 8, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDeviceToHost));
  IS(cudaMemcpy(x, b, 8, (cudaMemcpyKind)17), cudaErrorInvalidMemcpyDirection);
  IS(cudaMemset(a, 0, 5000), cudaErrorInvalidValue);
  OK(cudaFree(a));
  IS(cudaFree(a), cudaErrorInvalidValue);
  IS(cudaFree(b + 1), cudaErrorInvalidValue);
  IS(cudaMemcpy(x, a, 8, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  size_t left = 0, total = 0;
  OK(cudaMemGetInfo(&left, &total));
  CHECK(left > 0 && left <= total);
  IS(cudaMalloc(&a, total + 1), cudaErrorMemoryAllocation);
  IS(cudaMalloc((void **)nullptr, 4), cudaErrorInvalidValue);
  return failures != 0;
}
