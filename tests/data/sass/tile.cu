// A product of tiles in a loop that ptxas unrolls, broadcast loads that it merges, an addition that it does once a warp.
extern "C" __global__ void tile(float *out, const float *a, int n, int *large) {
  __shared__ float t[16][16];
  int x = threadIdx.x, y = threadIdx.y;
  float sum = 0;
  for (int i = 0; i < n; i++) {
    t[y][x] = a[i * 256 + y * 16 + x];
    __syncthreads();
    for (int k = 0; k < 16; k++) sum += t[y][k] * t[k][x];
    __syncthreads();
  }
  if (sum > 3.f) atomicAdd(large, 1);
  out[y * 16 + x] = sum / a[y];
}
