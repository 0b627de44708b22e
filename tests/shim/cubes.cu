// Prints what textures of cube maps, mipmaps and three dimensions read, as bits: tests/data/h200-cubes.csv is what an H200
// printed. The emulator prints the same, but for weights of eight texels, which differ by up to 1/256 (tests/test_shim.sh).
#include <cstdint>

#include "check.h"

enum { COUNT = 192 };

__global__ void cube(cudaTextureObject_t t, const float3 *at, float *out) {
  float3 d = at[threadIdx.x];
  out[threadIdx.x] = texCubemap<float>(t, d.x, d.y, d.z);
}
__global__ void layered_cube(cudaTextureObject_t t, const float3 *at, float *out) {
  float3 d = at[threadIdx.x];
  out[threadIdx.x] =
      texCubemapLayered<float>(t, d.x, d.y, d.z, threadIdx.x % 3); // the last one is beyond the array
}
__global__ void cube_level(cudaTextureObject_t t, const float3 *at, float *out) {
  float3 d = at[threadIdx.x];
  out[threadIdx.x] = texCubemapLod<float>(t, d.x, d.y, d.z, (float)(threadIdx.x % 8) * 0.5f - 0.5f);
}
__global__ void box(cudaTextureObject_t t, const float3 *at, float *out) {
  float3 d = at[threadIdx.x];
  out[threadIdx.x] = tex3D<float>(t, d.x * 4 + 2, d.y * 4 + 2, d.z * 4 + 2);
}
__global__ void levels(cudaTextureObject_t t, const float3 *at, float *out) {
  float3 d = at[threadIdx.x];
  out[threadIdx.x] = tex2DLod<float>(t, d.x, d.y, d.z * 3);
}
__global__ void level_steps(cudaTextureObject_t t, const float3 *, float *out) {
  out[threadIdx.x] = tex2DLod<float>(t, 0.4f, 0.6f, (float)threadIdx.x / 37.f - 1);
}
__global__ void first_level(cudaTextureObject_t t, const float3 *at, float *out) {
  float3 d = at[threadIdx.x];
  out[threadIdx.x] = tex2D<float>(t, d.x, d.y);
}

static uint32_t state = 12345;
static float any() { // from -1 to 1
  state = state * 1664525u + 1013904223u;
  return (float)(int32_t)state / 2147483648.f;
}

static float3 directions[COUNT];
static void choose() {
  for (int i = 0; i < COUNT; i++) directions[i] = {any(), any(), any()};
  const float corners[] = {-1, -0.5f, 0, 0.5f, 1};
  for (int i = 0; i < 100; i++) // ties between axes, edges and corners of faces
    directions[i] = {corners[i % 5], corners[i / 5 % 5], corners[i / 25 % 5]};
}

static float3 *at;
static float *out;
typedef void Kernel(cudaTextureObject_t, const float3 *, float *);
static void print(const char *name, Kernel *kernel, cudaTextureObject_t texture) {
  float host[COUNT];
  OK(cudaMemset(out, 0, sizeof host));
  kernel<<<1, COUNT>>>(texture, at, out);
  OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < COUNT; i++) {
    uint32_t bits;
    memcpy(&bits, &host[i], sizeof bits);
    printf("%s,%d,%08x,%g\n", name, i, bits, host[i]);
  }
}

static cudaTextureObject_t make(const cudaResourceDesc &r, bool linear, bool seamless, bool normalized,
                                bool mip_linear, float bias = 0, float least = 0, float most = 0) {
  cudaTextureDesc d = {};
  d.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
  d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = cudaAddressModeClamp;
  d.normalizedCoords = normalized;
  d.seamlessCubemap = seamless;
  d.mipmapFilterMode = mip_linear ? cudaFilterModeLinear : cudaFilterModePoint;
  d.mipmapLevelBias = bias;
  d.minMipmapLevelClamp = least;
  d.maxMipmapLevelClamp = most;
  cudaTextureObject_t texture = 0;
  OK(cudaCreateTextureObject(&texture, &r, &d, nullptr));
  return texture;
}

static void fill(cudaArray_t array, int width, int height, int depth, int base) {
  float *values = new float[(size_t)width * height * depth];
  for (int i = 0; i < width * height * depth; i++) values[i] = (float)(base + i) + any() * 0.25f;
  cudaMemcpy3DParms p = {};
  p.srcPtr = make_cudaPitchedPtr(values, (size_t)width * 4, (size_t)width, (size_t)height);
  p.dstArray = array;
  p.extent = make_cudaExtent((size_t)width, (size_t)height, (size_t)depth);
  p.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&p));
  delete[] values;
}

static cudaResourceDesc array_of(int width, int height, int depth, unsigned flags) {
  cudaResourceDesc r = {};
  cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
  r.resType = cudaResourceTypeArray;
  OK(cudaMalloc3DArray(&r.res.array.array, &f, make_cudaExtent((size_t)width, (size_t)height, (size_t)depth),
                       flags));
  fill(r.res.array.array, width, height, depth, 0);
  return r;
}

static cudaResourceDesc mipmap_of(int width, int depth, int count, unsigned flags) {
  cudaResourceDesc r = {};
  cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
  r.resType = cudaResourceTypeMipmappedArray;
  OK(cudaMallocMipmappedArray(&r.res.mipmap.mipmap, &f,
                              make_cudaExtent((size_t)width, (size_t)width, (size_t)depth), (unsigned)count,
                              flags));
  for (int i = 0; i < count; i++) {
    cudaArray_t level;
    OK(cudaGetMipmappedArrayLevel(&level, r.res.mipmap.mipmap, (unsigned)i));
    fill(level, width >> i, width >> i, depth ? depth : 1, i * 1000);
  }
  return r;
}

int main() {
  choose();
  OK(cudaMalloc(&at, sizeof directions));
  OK(cudaMalloc(&out, COUNT * sizeof(float)));
  OK(cudaMemcpy(at, directions, sizeof directions, cudaMemcpyHostToDevice));
  cudaResourceDesc faces = array_of(4, 4, 6, cudaArrayCubemap);
  print("cube point", cube, make(faces, false, false, true, false));
  print("cube linear", cube, make(faces, true, false, true, false));
  print("cube seamless point", cube, make(faces, false, true, true, false));
  cudaResourceDesc more = array_of(4, 4, 12, cudaArrayCubemap | cudaArrayLayered);
  print("layered cube point", layered_cube, make(more, false, false, true, false));
  print("layered cube linear", layered_cube, make(more, true, false, true, false));
  cudaResourceDesc volume = array_of(5, 4, 3, 0);
  print("box linear", box, make(volume, true, false, false, false));
  cudaResourceDesc pyramid = mipmap_of(16, 0, 4, 0);
  print("levels point point", levels, make(pyramid, false, false, true, false, 0, 0, 10));
  print("levels linear point", levels, make(pyramid, true, false, true, false, 0, 0, 10));
  print("levels point linear", levels, make(pyramid, false, false, true, true, 0, 0, 10));
  print("levels linear linear", levels, make(pyramid, true, false, true, true, 0, 0, 10));
  print("steps linear", level_steps, make(pyramid, false, false, true, true, 0, 0, 10));
  print("steps point", level_steps, make(pyramid, false, false, true, false, 0, 0, 10));
  print("steps bias", level_steps, make(pyramid, false, false, true, true, 0.3f, 0, 10));
  print("steps clamped", level_steps, make(pyramid, false, false, true, true, 0, 0.7f, 1.6f));
  print("steps unset", level_steps, make(pyramid, false, false, true, true, 0, 0, 0));
  print("first level", first_level, make(pyramid, true, false, true, true, 0, 0, 10));
  print("first level clamped", first_level, make(pyramid, true, false, true, true, 0.4f, 1.2f, 3));
  cudaResourceDesc cubes = mipmap_of(8, 6, 3, cudaArrayCubemap);
  print("cube levels", cube_level, make(cubes, true, false, true, true, 0, 0, 10));
  return failures != 0;
}
