//! alloc parent 2000*4 iota-u32
//! alloc label 2000*4 iota-u32
//! alloc errors 32 zero
//! launch unite grid=6 block=128 args=parent,i32:2000
//! launch flatten grid=8 block=256 args=parent,i32:2000
//! launch union_serial grid=1 block=1 args=label,i32:2000
//! launch union_check grid=8 block=256 args=parent,label,i32:2000,errors
//! checks 2000
// Union-find without locks: roots are linked by atomicCAS, the smaller index wins. Edges: i to i + 7 if i % 5
// is not 0, and i to i + 1 if i % 100 is 99.
#include "check.cuh"

__device__ int find(volatile int *parent, int v) {
  while (parent[v] != v) {
    int up = parent[v];
    parent[v] = parent[up]; // halves the path; any ancestor will do
    v = up;
  }
  return v;
}

__device__ void link(int *parent, int a, int b) {
  for (;;) {
    a = find(parent, a), b = find(parent, b);
    if (a == b) return;
    if (a < b) {
      int swap = a;
      a = b, b = swap;
    }
    if (atomicCAS(&parent[a], a, b) == a) return; // a was still a root
  }
}

extern "C" __global__ void unite(int *parent, int n) {
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    if (i % 5 != 0 && i + 7 < n) link(parent, i, i + 7);
    if (i % 100 == 99 && i + 1 < n) link(parent, i + 1, i);
  }
}

extern "C" __global__ void flatten(int *parent, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) parent[i] = find(parent, i);
}

// Labels sink along the edges, one thread, until nothing changes: the least vertex of each component.
extern "C" __global__ void union_serial(int *label, int n) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < n; i++)
      for (int step = 1; step <= 7; step += 6) {
        bool edge = i + step < n && (step == 7 ? i % 5 != 0 : i % 100 == 99);
        if (!edge || label[i] == label[i + step]) continue;
        label[i] = label[i + step] = min(label[i], label[i + step]);
        changed = true;
      }
  }
}

extern "C" __global__ void union_check(const int *parent, const int *label, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) EXPECT_EQ(i, parent[i], label[i]);
}
