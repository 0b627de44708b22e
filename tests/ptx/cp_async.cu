//! arch sm_80
//! alloc x 6000*4 random-u32
//! alloc y 6000*4 poison
//! alloc z 4*256*4 poison
//! alloc errors 32 zero
//! launch double_buffer grid=3 block=128 args=x,y,i32:6000
//! launch small_copies grid=1 block=256 args=x,z
//! launch cp_async_check grid=24 block=250 args=x,y,z,i32:6000,errors
//! checks 7024
// cp.async with two buffers and wait_group; copies of 4, 8 and 16 bytes; shorter sources, filled up with
// zeros.
#include "check.cuh"

__device__ unsigned shared_address(const void *p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
#define COPY(op, size, to, from, bytes)                                                                      \
  asm volatile("cp.async." op ".shared.global [%0], [%1], " size ", %2;" ::"r"(shared_address(to)),          \
               "l"(from), "r"(bytes)                                                                         \
               : "memory")

extern "C" __global__ void double_buffer(const unsigned *x, unsigned *y, int n) {
  __shared__ __align__(16) unsigned s[2][512];
  int tiles = (n + 511) / 512, t = threadIdx.x;
  // Tile k of this block goes to buffer k & 1; the last tile is short.
  for (int tile = blockIdx.x, k = 0; tile < tiles + (int)gridDim.x; tile += gridDim.x, k++) {
    if (tile < tiles) {
      int left = min(max((n - tile * 512 - 4 * t) * 4, 0), 16);
      COPY("cg", "16", &s[k & 1][4 * t], left ? x + tile * 512 + 4 * t : x, left);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (k == 0) continue;
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    int before = tile - gridDim.x;
    for (int i = t; i < 512; i += 128) {
      unsigned v = s[(k - 1) & 1][511 - i];
      if (before * 512 + 511 - i < n) y[before * 512 + 511 - i] = v * 3;
    }
    __syncthreads();
  }
}

extern "C" __global__ void small_copies(const unsigned *x, unsigned *z) {
  __shared__ __align__(16) unsigned four[256], eight[256], partial[256], plain[256];
  int t = threadIdx.x;
  partial[t] = 0xdeadbeefu;
  __syncthreads();
  COPY("ca", "4", &four[t], x + t, 4);
  if (t % 2 == 0) COPY("ca", "8", &eight[t], x + t, 8);
  if (t % 4 == 0) COPY("ca", "16", &partial[t], x + t, t % 16 + 2); // 2, 6, 10, 14 bytes, then zeros
  if (t % 4 == 0)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&plain[t])), "l"(x + t));
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  int u = 255 - t;
  z[u] = four[u], z[256 + u] = eight[u], z[512 + u] = partial[u], z[768 + u] = plain[u];
}

extern "C" __global__ void cp_async_check(const unsigned *x, const unsigned *y, const unsigned *z, int n,
                                          unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  EXPECT_EQ(i, y[i], x[i] * 3);
  if (i >= 256) return;
  int bytes = min(max(i / 4 * 4 % 16 + 2 - i % 4 * 4, 0), 4);
  EXPECT_EQ(i, z[i], x[i]);
  EXPECT_EQ(i, z[256 + i], x[i]);
  EXPECT_EQ(i, z[512 + i], bytes == 4 ? x[i] : bytes == 2 ? x[i] & 0xffff : 0u);
  EXPECT_EQ(i, z[768 + i], x[i]);
}
