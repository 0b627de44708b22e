//! arch sm_90
//! alloc a 2000*4 random-u32
//! alloc b 2000*4 poison
//! alloc c 2000*4 poison
//! alloc errors 32 zero
//! launch first grid=8 block=250 args=a,b
//! launch second grid=8 block=250 dependent args=b,c
//! launch third grid=8 block=250 dependent args=a,b,c,errors
//! checks 4000
// Programmatic dependent launch: a kernel lets the next one start early, which waits before it reads the
// results.
#include "check.cuh"

extern "C" __global__ void first(const unsigned *a, unsigned *b) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  unsigned i = global_thread();
  __nanosleep(2000);
  b[i] = a[i] * 3;
}

extern "C" __global__ void second(const unsigned *b, unsigned *c) {
  unsigned i = global_thread(), turned = i ^ 1; // before the wait: nothing of the kernel before
  asm volatile("griddepcontrol.wait;" ::: "memory");
  c[i] = __ldcg(&b[turned]) + 1;
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

extern "C" __global__ void third(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *errors) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  unsigned i = global_thread();
  EXPECT_EQ(i, __ldcg(&b[i]), a[i] * 3);
  EXPECT_EQ(i, __ldcg(&c[i]), a[i ^ 1] * 3 + 1);
}
