// Texture and surface objects over arrays, pitched and plain memory.
#include <vector>

#include "check.h"

__global__ void sample(cudaTextureObject_t t, float *out, int w, int h) {
  for (int i = threadIdx.x; i < w * h; i += blockDim.x) out[i] = tex2D<float>(t, i % w + 0.5f, i / w + 0.5f);
}
__global__ void between(cudaTextureObject_t t, float *out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = tex2D<float>(t, (i + 0.5f) / n, 0.5f);
}
__global__ void fetch(cudaTextureObject_t t, uchar4 *out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<uchar4>(t, n - 1 - i);
}
__global__ void invert(cudaSurfaceObject_t s, int w, int h) {
  for (int i = threadIdx.x; i < w * h; i += blockDim.x) {
    float v = surf2Dread<float>(s, (i % w) * sizeof(float), i / w);
    surf2Dwrite(-v, s, (i % w) * sizeof(float), i / w);
  }
}
__global__ void volume(cudaTextureObject_t t, float *out) {
  int i = threadIdx.x;
  out[i] = tex3D<float>(t, i % 4 + 0.5f, i / 4 % 4 + 0.5f, i / 16 + 0.5f);
}
__global__ void layered(cudaTextureObject_t t, float *out) {
  out[threadIdx.x] = tex2DLayered<float>(t, 1.5f, 2.5f, threadIdx.x);
}

int main() {
  const int w = 24, h = 10;
  std::vector<float> image(w * h), back(w * h);
  for (int i = 0; i < w * h; i++) image[i] = i * 0.25f;
  cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
  CHECK(f.x == 32 && f.f == cudaChannelFormatKindFloat);
  cudaArray_t array;
  OK(cudaMallocArray(&array, &f, w, h, cudaArraySurfaceLoadStore));
  OK(cudaMemcpy2DToArray(array, 0, 0, image.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice));
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = array;
  cudaTextureDesc d = {};
  d.addressMode[0] = d.addressMode[1] = cudaAddressModeClamp;
  d.filterMode = cudaFilterModePoint;
  d.readMode = cudaReadModeElementType;
  cudaTextureObject_t t = 0;
  OK(cudaCreateTextureObject(&t, &r, &d, nullptr));
  float *out;
  OK(cudaMalloc(&out, w * h * 4));
  sample<<<1, 64>>>(t, out, w, h);
  OK(cudaMemcpy(back.data(), out, w * h * 4, cudaMemcpyDeviceToHost));
  CHECK(back == image);
  d.filterMode = cudaFilterModeLinear;
  d.normalizedCoords = 1;
  cudaTextureObject_t smooth = 0;
  OK(cudaCreateTextureObject(&smooth, &r, &d, nullptr));
  between<<<1, 12>>>(smooth, out, 12); // halfway between two texels and two rows
  OK(cudaMemcpy(back.data(), out, 12 * 4, cudaMemcpyDeviceToHost));
  float want = (image[4 * w + 2] + image[4 * w + 3] + image[5 * w + 2] + image[5 * w + 3]) / 4;
  CHECK(back[1] == want);
  cudaTextureDesc seen;
  OK(cudaGetTextureObjectTextureDesc(&seen, smooth));
  CHECK(seen.filterMode == cudaFilterModeLinear && seen.normalizedCoords == 1);

  cudaSurfaceObject_t s = 0;
  OK(cudaCreateSurfaceObject(&s, &r));
  invert<<<1, 96>>>(s, w, h);
  OK(cudaMemcpy2DFromArray(back.data(), w * 4, array, 0, 0, w * 4, h, cudaMemcpyDeviceToHost));
  CHECK(back[0] == 0 && back[w * h - 1] == -image[w * h - 1]);

  // Plain memory, read by index.
  uchar4 texels[16], *linear, *fetched, got[16];
  for (int i = 0; i < 16; i++) texels[i] = make_uchar4(i, 2 * i, 3 * i, 255 - i);
  OK(cudaMalloc(&linear, sizeof texels));
  OK(cudaMalloc(&fetched, sizeof texels));
  OK(cudaMemcpy(linear, texels, sizeof texels, cudaMemcpyHostToDevice));
  cudaResourceDesc l = {};
  l.resType = cudaResourceTypeLinear;
  l.res.linear.devPtr = linear;
  l.res.linear.desc = cudaCreateChannelDesc<uchar4>();
  l.res.linear.sizeInBytes = sizeof texels;
  cudaTextureDesc plain = {};
  cudaTextureObject_t tl = 0;
  OK(cudaCreateTextureObject(&tl, &l, &plain, nullptr));
  fetch<<<1, 32>>>(tl, fetched, 16);
  OK(cudaMemcpy(got, fetched, sizeof got, cudaMemcpyDeviceToHost));
  CHECK(got[0].x == 15 && got[15].y == 0 && got[3].w == 243);

  // Pitched memory.
  char *rows;
  size_t pitch;
  OK(cudaMallocPitch(&rows, &pitch, w * 4, h));
  OK(cudaMemcpy2D(rows, pitch, image.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice));
  cudaResourceDesc q = {};
  q.resType = cudaResourceTypePitch2D;
  q.res.pitch2D.devPtr = rows;
  q.res.pitch2D.desc = f;
  q.res.pitch2D.width = w;
  q.res.pitch2D.height = h;
  q.res.pitch2D.pitchInBytes = pitch;
  d.filterMode = cudaFilterModePoint;
  d.normalizedCoords = 0;
  cudaTextureObject_t tp = 0;
  OK(cudaCreateTextureObject(&tp, &q, &d, nullptr));
  sample<<<1, 64>>>(tp, out, w, h);
  OK(cudaMemcpy(back.data(), out, w * h * 4, cudaMemcpyDeviceToHost));
  CHECK(back == image);

  // A volume and layers, filled by three-dimensional copies.
  float cube[64], seen3[64];
  for (int i = 0; i < 64; i++) cube[i] = i;
  for (unsigned flags : {0u, (unsigned)cudaArrayLayered}) {
    cudaArray_t a3;
    OK(cudaMalloc3DArray(&a3, &f, make_cudaExtent(4, 4, 4), flags));
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(cube, 16, 4, 4);
    p.dstArray = a3;
    p.extent = make_cudaExtent(4, 4, 4);
    p.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&p));
    r.res.array.array = a3;
    cudaTextureObject_t t3 = 0;
    OK(cudaCreateTextureObject(&t3, &r, &d, nullptr));
    if (flags) {
      layered<<<1, 4>>>(t3, out);
      OK(cudaMemcpy(seen3, out, 16, cudaMemcpyDeviceToHost));
      CHECK(seen3[0] == 9 && seen3[3] == 57);
    } else {
      volume<<<1, 64>>>(t3, out);
      OK(cudaMemcpy(seen3, out, sizeof seen3, cudaMemcpyDeviceToHost));
      CHECK(memcmp(seen3, cube, sizeof cube) == 0);
    }
    OK(cudaDestroyTextureObject(t3));
    OK(cudaFreeArray(a3));
  }
  OK(cudaDestroyTextureObject(t));
  OK(cudaDestroyTextureObject(t));
  OK(cudaDestroySurfaceObject(s));
  OK(cudaFreeArray(array));
  return failures != 0;
}
