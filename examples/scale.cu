// y[row][col] = x[row][col] * scale[col], twice: the first looks innocent and pays for 32 sectors a request.
// scale.ptx was made by nvcc -ptx -arch=sm_80 -lineinfo examples/scale.cu, the path in its .file line made relative.

// x and y are (rows, cols). Adjacent threads are adjacent rows: their addresses are cols floats apart.
extern "C" __global__ void column_scale(float *y, const float *x, const float *scale, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int col = blockIdx.y;
  if (row < rows) y[row * cols + col] = x[row * cols + col] * scale[col];
}

// Adjacent threads are adjacent elements.
extern "C" __global__ void contiguous_scale(float *y, const float *x, const float *scale, int n, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * scale[i % cols];
}
