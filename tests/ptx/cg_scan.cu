//! alloc x 320*4 random-u32:1000
//! alloc y 4*320*4 poison
//! alloc errors 32 zero
//! launch scans grid=2 block=160 args=x,y,i32:320
//! launch scans_check grid=2 block=160 args=x,y,i32:320,errors
//! checks 1280
// cooperative_groups scans: inclusive and exclusive sums in tiles of 32 and 8, a running maximum, and a scan
// over the lanes of a coalesced group.
#include "check.cuh"
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

extern "C" __global__ void scans(const unsigned *x, unsigned *y, int n) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto eight = cg::tiled_partition<8>(block);
  unsigned i = global_thread(), v = x[i];
  y[i] = cg::inclusive_scan(warp, v);
  y[n + i] = cg::exclusive_scan(eight, v);
  y[2 * n + i] = cg::inclusive_scan(warp, v, cg::greater<unsigned>());
  y[3 * n + i] = 0;
  auto parity = cg::binary_partition(warp, v & 1);
  if (v & 1) y[3 * n + i] = cg::exclusive_scan(parity, v);
}

extern "C" __global__ void scans_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  unsigned i = global_thread(), sum = 0, most = 0, part = 0, odd = 0;
  for (unsigned k = i / 32 * 32; k <= i; k++) {
    sum += x[k];
    if (x[k] > most) most = x[k];
    if (k < i && k >= i / 8 * 8) part += x[k];
    if (k < i && x[k] & 1) odd += x[k];
  }
  EXPECT_EQ(i, y[i], sum);
  EXPECT_EQ(i, y[n + i], part);
  EXPECT_EQ(i, y[2 * n + i], most);
  EXPECT_EQ(i, y[3 * n + i], x[i] & 1 ? odd : 0u);
}
