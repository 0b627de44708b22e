//! alloc keys 1000*4 permutation-u32
//! alloc nodes 1000*12 poison
//! alloc out 2*400*4 poison
//! alloc errors 32 zero
//! launch tree_build grid=1 block=1 args=keys,nodes,i32:1000
//! launch tree_search grid=4 block=100 args=nodes,out
//! launch tree_check grid=4 block=100 args=out,i32:1000,errors
//! checks 800
// A binary search tree: every lane walks its own way down, and counts a range with a stack of its own.
#include "check.cuh"

struct Tree {
  int key, left, right;
};

extern "C" __global__ void tree_build(const int *keys, Tree *nodes, int n) {
  for (int i = 0; i < n; i++) {
    nodes[i] = {keys[i] * 3, -1, -1}; // only multiples of three
    for (int at = 0; i > 0;) {
      int *next = nodes[i].key < nodes[at].key ? &nodes[at].left : &nodes[at].right;
      if (*next < 0) {
        *next = i;
        break;
      }
      at = *next;
    }
  }
}

extern "C" __global__ void tree_search(const Tree *nodes, int *out) {
  int i = (int)global_thread(), wanted = i * 8 - 50, at = 0;
  while (at >= 0 && nodes[at].key != wanted) at = wanted < nodes[at].key ? nodes[at].left : nodes[at].right;
  out[i] = at >= 0;
  int stack[40], top = 0, count = 0, low = i * 5, high = low + i; // keys in [low, high]
  stack[top++] = 0;
  while (top > 0) {
    const Tree node = nodes[stack[--top]];
    count += node.key >= low && node.key <= high;
    if (node.left >= 0 && node.key > low) stack[top++] = node.left;
    if (node.right >= 0 && node.key < high) stack[top++] = node.right;
  }
  out[400 + i] = count;
}

extern "C" __global__ void tree_check(const int *out, int n, unsigned *errors) {
  int i = (int)global_thread(), wanted = i * 8 - 50, count = 0;
  EXPECT_EQ(i, out[i], wanted >= 0 && wanted % 3 == 0 && wanted < 3 * n);
  for (int k = i * 5; k <= i * 6; k++) count += k % 3 == 0 && k < 3 * n;
  EXPECT_EQ(i, out[400 + i], count);
}
