// y[row][col] = x[row][col] * scale[col]. It is short, it is correct, and it moves eight times the bytes it needs:
// `sol audit examples/column_scale.cu` shows where. examples/column_scale_fixed.cu follows the advice.
#include <cstdio>
#include <cstdlib>
#include <vector>

// x and y are (rows, cols), row by row. One thread an element: x counts rows, y counts columns.
__global__ void column_scale(float *y, const float *x, const float *scale, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int col = blockIdx.y;
  if (row < rows) y[row * cols + col] = x[row * cols + col] * scale[col];
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

int main(int argc, char **argv) {
  int rows = argc > 1 ? std::atoi(argv[1]) : 4096, cols = argc > 2 ? std::atoi(argv[2]) : 1024;
  if (rows < 1 || cols < 1 || cols > 65535) return std::fprintf(stderr, "usage: column_scale [ROWS COLS]\n"), 2;
  size_t count = (size_t)rows * cols, bytes = count * sizeof(float);
  std::vector<float> x(count), scale(cols), y(count);
  for (size_t i = 0; i < count; i++) x[i] = (float)(i % 8191) / 8191.0f - 0.5f;
  for (int c = 0; c < cols; c++) scale[c] = 1.0f + (float)c / 3.0f;

  float *dx, *dy, *ds;
  check(cudaMalloc(&dx, bytes));
  check(cudaMalloc(&dy, bytes));
  check(cudaMalloc(&ds, cols * sizeof(float)));
  check(cudaMemcpy(dx, x.data(), bytes, cudaMemcpyHostToDevice));
  check(cudaMemcpy(ds, scale.data(), cols * sizeof(float), cudaMemcpyHostToDevice));
  column_scale<<<dim3((rows + 255) / 256, cols), 256>>>(dy, dx, ds, rows, cols);
  check(cudaGetLastError());
  check(cudaMemcpy(y.data(), dy, bytes, cudaMemcpyDeviceToHost));

  for (size_t i = 0; i < count; i++)
    if (y[i] != x[i] * scale[i % cols]) return std::fprintf(stderr, "y[%zu] is wrong\n", i), 1;
  std::printf("%d x %d: all right\n", rows, cols);
  return cudaFree(dx) || cudaFree(dy) || cudaFree(ds);
}
