// y = x transposed, three times: columns in global memory, then a tile in shared memory whose columns all lie in one bank,
// then the same tile with one element of padding a row.
// transpose.ptx was made by nvcc -ptx -arch=sm_80 -lineinfo examples/transpose.cu, the path in its .file line made relative.

constexpr int TILE = 32;

// x is (n, n); a block is (32, 8) threads and does a tile of 32 x 32.
extern "C" __global__ void transpose_naive(float *y, const float *x, int n) {
  int col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += 8) y[col * n + row + k] = x[(row + k) * n + col];
}

template <int PADDING> __device__ void through_tile(float *y, const float *x, int n) {
  __shared__ float tile[TILE][TILE + PADDING];
  int col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += 8) tile[threadIdx.y + k][threadIdx.x] = x[(row + k) * n + col];
  __syncthreads();
  col = blockIdx.y * TILE + threadIdx.x, row = blockIdx.x * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += 8) y[(row + k) * n + col] = tile[threadIdx.x][threadIdx.y + k];
}

extern "C" __global__ void transpose_tile(float *y, const float *x, int n) {
  through_tile<0>(y, x, n);
}

extern "C" __global__ void transpose_padded(float *y, const float *x, int n) {
  through_tile<1>(y, x, n);
}
