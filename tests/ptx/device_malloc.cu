//! heap 8*1024*1024
//! alloc slots 96*8 zero
//! alloc sums 3*96*4 poison
//! alloc errors 32 zero
//! launch heap_fill grid=3 block=32 args=slots,sums
//! launch heap_read grid=3 block=32 args=slots,sums
//! launch heap_free grid=1 block=96 args=slots
//! launch heap_lists grid=3 block=32 args=sums
//! launch heap_check grid=3 block=32 args=sums,errors
//! checks 288
// The device heap: malloc of different sizes per lane that outlives the kernel, freed by another; lists of
// nodes by new and delete; blocks that are alive at once do not overlap.
#include "check.cuh"

__device__ int size_of(int i) {
  return 1 + (int)(check_hash(i) % 50);
}

extern "C" __global__ void heap_fill(unsigned **slots, unsigned *sums) {
  int i = blockIdx.x * 32 + threadIdx.x;
  slots[i] = (unsigned *)malloc(size_of(i) * sizeof(unsigned));
  sums[i] = slots[i] != nullptr && ((size_t)slots[i] & 15) == 0;
  for (int k = 0; k < size_of(i); k++) slots[i][k] = check_hash(i * 64 + k);
}

extern "C" __global__ void heap_read(unsigned **slots, unsigned *sums) {
  int i = blockIdx.x * 32 + threadIdx.x, other = (i + 31) % 96;
  unsigned good = 1;
  for (int k = 0; k < size_of(other); k++) good &= slots[other][k] == check_hash(other * 64 + k);
  sums[96 + i] = good;
}

extern "C" __global__ void heap_free(unsigned **slots) {
  free(slots[threadIdx.x]);
}

struct Node {
  Node *next;
  unsigned value;
};

extern "C" __global__ void heap_lists(unsigned *sums) {
  int i = blockIdx.x * 32 + threadIdx.x;
  Node *list = nullptr;
  for (int k = 0; k < i % 9; k++) {
    Node *node = new Node;
    node->next = list, node->value = i * 10 + k;
    list = node;
  }
  unsigned sum = 0;
  while (list) {
    Node *next = list->next;
    sum = sum * 3 + list->value;
    delete list;
    list = next;
  }
  free(nullptr);
  sums[192 + i] = sum;
}

extern "C" __global__ void heap_check(const unsigned *sums, unsigned *errors) {
  int i = blockIdx.x * 32 + threadIdx.x;
  unsigned sum = 0;
  for (int k = i % 9 - 1; k >= 0; k--) sum = sum * 3 + i * 10 + k;
  EXPECT_EQ(i, sums[i], 1u);
  EXPECT_EQ(i, sums[96 + i], 1u);
  EXPECT_EQ(i, sums[192 + i], sum);
}
