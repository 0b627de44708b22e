// The toolkit's own C++ library on the device: thrust and cub.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include "check.h"

int main() {
  const int n = 5000;
  thrust::host_vector<int> h(n);
  for (int i = 0; i < n; i++) h[i] = rand() % 100000;
  thrust::device_vector<int> d = h;
  thrust::sort(d.begin(), d.end());
  thrust::host_vector<int> back = d;
  std::sort(h.begin(), h.end());
  CHECK(back == h);
  long long sum = thrust::reduce(d.begin(), d.end(), 0ll), expected = 0;
  for (int v : h) expected += v;
  CHECK(sum == expected);
  thrust::transform(d.begin(), d.end(), d.begin(), [] __device__(int x) { return x * 2; });
  CHECK(d[n - 1] == 2 * h[n - 1]);

  void *scratch = nullptr;
  size_t bytes = 0;
  thrust::device_vector<int> out(n);
  OK(cub::DeviceScan::ExclusiveSum(scratch, bytes, d.begin(), out.begin(), n));
  OK(cudaMalloc(&scratch, bytes));
  OK(cub::DeviceScan::ExclusiveSum(scratch, bytes, d.begin(), out.begin(), n));
  OK(cudaDeviceSynchronize());
  CHECK(out[0] == 0 && out[1] == 2 * h[0] && out[2] == 2 * (h[0] + h[1]));
  return failures != 0;
}
