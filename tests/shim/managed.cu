// Memory that host and kernels share: managed, pinned, registered, managed variables.
#include <vector>

#include "check.h"

__managed__ int counter = 5;
__managed__ float table[64];
__device__ __managed__ int *link_to;

__global__ void bump(int *x, int n) {
  int i = threadIdx.x;
  if (i < n) atomicAdd(&x[i], i);
  if (i == 0) counter += 10, link_to = &counter;
  table[i % 64] = i;
}

struct List {
  List *next;
  int value;
};
__global__ void sum_list(const List *head, int *sum) {
  for (; head; head = head->next) *sum += head->value;
}

int main() {
  CHECK(counter == 5);
  int *x;
  OK(cudaMallocManaged(&x, 100 * sizeof(int)));
  for (int i = 0; i < 100; i++) x[i] = 1000;
  bump<<<1, 128>>>(x, 100);
  OK(cudaDeviceSynchronize());
  CHECK(x[0] == 1000 && x[99] == 1099);
  CHECK(counter == 15);
  CHECK(table[63] == 63 || table[63] == 127);
  CHECK(link_to == &counter && *link_to == 15);
  counter = 1;
  bump<<<1, 128>>>(x, 100);
  OK(cudaDeviceSynchronize());
  CHECK(counter == 11);

  // A list whose pointers both sides follow.
  List *head = nullptr;
  for (int i = 1; i <= 2000; i++) {
    List *item;
    OK(cudaMallocManaged(&item, sizeof *item));
    item->next = head;
    item->value = i;
    head = item;
  }
  int *sum;
  OK(cudaMallocHost(&sum, sizeof *sum));
  *sum = 0;
  sum_list<<<1, 1>>>(head, sum);
  OK(cudaDeviceSynchronize());
  CHECK(*sum == 2000 * 2001 / 2);
  for (List *item = head; item;) {
    List *next = item->next;
    OK(cudaFree(item));
    item = next;
  }

  std::vector<int> plain(4096, 7);
  OK(cudaHostRegister(plain.data(), plain.size() * sizeof(int), cudaHostRegisterMapped));
  int *mapped = nullptr;
  OK(cudaHostGetDevicePointer((void **)&mapped, plain.data(), 0));
  bump<<<1, 128>>>(mapped, 128);
  OK(cudaDeviceSynchronize());
  CHECK(plain[127] == 7 + 127);
  IS(cudaHostRegister(plain.data(), 64, 0), cudaErrorHostMemoryAlreadyRegistered);
  OK(cudaHostUnregister(plain.data()));
  IS(cudaHostUnregister(plain.data()), cudaErrorHostMemoryNotRegistered);

  cudaPointerAttributes a;
  int *device, local = 0;
  OK(cudaMalloc(&device, 64));
  OK(cudaPointerGetAttributes(&a, x + 3));
  CHECK(a.type == cudaMemoryTypeManaged && a.hostPointer == x + 3 && a.devicePointer == x + 3 &&
        a.device == 0);
  OK(cudaPointerGetAttributes(&a, sum));
  CHECK(a.type == cudaMemoryTypeHost);
  OK(cudaPointerGetAttributes(&a, device));
  CHECK(a.type == cudaMemoryTypeDevice && a.devicePointer == device && a.hostPointer == nullptr);
  OK(cudaPointerGetAttributes(&a, &local));
  CHECK(a.type == cudaMemoryTypeUnregistered);

  cudaMemLocation here = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
  OK(cudaMemPrefetchAsync(x, 100 * sizeof(int), here, 0));
  OK(cudaMemAdvise(x, 100 * sizeof(int), cudaMemAdviseSetReadMostly, here));
  OK(cudaMemPrefetchAsync(x, 100 * sizeof(int), host, 0));
  OK(cudaMemcpy(x, device, 64, cudaMemcpyDefault));
  CHECK(x[0] == 0 && x[15] == 0 && x[16] != 0);
  OK(cudaFree(x));
  OK(cudaFreeHost(sum));
  IS(cudaFreeHost(&local), cudaErrorInvalidValue);
  return failures != 0;
}
