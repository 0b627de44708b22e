//! alloc x 101*67*4 random-u32
//! alloc naive 101*67*4 poison
//! alloc tiled 101*67*4 poison
//! alloc padded 101*67*4 poison
//! alloc swizzled 101*67*4 poison
//! alloc errors 32 zero
//! launch transpose_naive grid=3,4 block=32,32 args=x,naive,i32:101,i32:67
//! launch transpose_tiled grid=3,4 block=32,8 args=x,tiled,i32:101,i32:67
//! launch transpose_padded grid=3,4 block=32,8 args=x,padded,i32:101,i32:67
//! launch transpose_swizzled grid=3,4 block=32,8 args=x,swizzled,i32:101,i32:67
//! launch transpose_check grid=27 block=256 args=x,naive,tiled,padded,swizzled,i32:101,i32:67,errors
//! checks 27068
// Four transposes of a ragged matrix: straight, through a tile, through a padded and through a swizzled tile.
#include "check.cuh"

// x is (rows, columns), y is (columns, rows)
extern "C" __global__ void transpose_naive(const unsigned *x, unsigned *y, int rows, int columns) {
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  if (r < rows && c < columns) y[c * rows + r] = x[r * columns + c];
}

// at(r, c) is where the tile's element stands in shared memory.
#define TRANSPOSE(name, words, at)                                                                           \
  extern "C" __global__ void name(const unsigned *x, unsigned *y, int rows, int columns) {                   \
    __shared__ unsigned tile[words];                                                                         \
    int top = blockIdx.y * 32, left = blockIdx.x * 32;                                                       \
    for (int r = threadIdx.y; r < 32; r += 8)                                                                \
      if (top + r < rows && left + threadIdx.x < columns)                                                    \
        tile[at(r, threadIdx.x)] = x[(top + r) * columns + left + threadIdx.x];                              \
    __syncthreads();                                                                                         \
    for (int c = threadIdx.y; c < 32; c += 8)                                                                \
      if (left + c < columns && top + threadIdx.x < rows)                                                    \
        y[(left + c) * rows + top + threadIdx.x] = tile[at(threadIdx.x, c)];                                 \
  }
#define PLAIN(r, c)    ((r)*32 + (c))
#define PADDED(r, c)   ((r)*33 + (c))
#define SWIZZLED(r, c) ((r)*32 + ((c) ^ (r)))
TRANSPOSE(transpose_tiled, 32 * 32, PLAIN)
TRANSPOSE(transpose_padded, 32 * 33, PADDED)
TRANSPOSE(transpose_swizzled, 32 * 32, SWIZZLED)

extern "C" __global__ void transpose_check(const unsigned *x, const unsigned *naive, const unsigned *tiled,
                                           const unsigned *padded, const unsigned *swizzled, int rows,
                                           int columns, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * columns) return;
  unsigned want = x[i % rows * columns + i / rows];
  EXPECT_EQ(i, naive[i], want);
  EXPECT_EQ(i, tiled[i], want);
  EXPECT_EQ(i, padded[i], want);
  EXPECT_EQ(i, swizzled[i], want);
}
