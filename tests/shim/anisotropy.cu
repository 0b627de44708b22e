// A texture with an anisotropic filter over a mipmap: what it reads is not modelled, and the program has to be told.
#include <cstdio>

#include <cuda_runtime.h>

__global__ void read(cudaTextureObject_t t, float *out) {
  *out = tex2DGrad<float>(t, 0.5f, 0.5f, make_float2(0.25f, 0), make_float2(0, 0.0625f));
}

int main(int argc, char **) {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t mipmap;
  cudaTextureObject_t texture;
  float *out;
  cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(16, 16, 0), 5);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = mipmap;
  cudaTextureDesc how = {};
  how.filterMode = how.mipmapFilterMode = cudaFilterModeLinear;
  how.normalizedCoords = 1;
  how.maxMipmapLevelClamp = 9;
  how.maxAnisotropy = argc > 1 ? 1 : 4;
  if (cudaCreateTextureObject(&texture, &resource, &how, nullptr) || cudaMalloc(&out, sizeof *out)) return 1;
  read<<<1, 1>>>(texture, out);
  return cudaDeviceSynchronize() != cudaSuccess;
}
