//! alloc x 300*4 random-u32
//! alloc y 300*4 poison
//! alloc table 3*8 pointers:x,y,x
//! alloc errors 32 zero
//! launch by_value grid=3 block=100 args={u8:7,u32:1000,i16:-3,f64:2.5,x,{u8:9,u16:77}},i8:-2,y,f32:0.5
//! launch by_table grid=3 block=100 args=table,{u8:1,u8:2,u8:3},u64:0x100000001,u16:65535,errors
//! launch by_value_check grid=3 block=100 args=x,y,errors
//! checks 1800
// Kernel parameters: structures by value with padding and nested members, narrow integers, a buffer of
// pointers, parameters whose address is taken.
#include "check.cuh"

struct Inner {
  unsigned char a;
  unsigned short b;
};
struct Outer {
  unsigned char kind;
  unsigned offset;
  short shift;
  double factor;
  const unsigned *x;
  Inner inner;
};
struct Three {
  unsigned char v[3];
};

extern "C" __global__ void by_value(Outer o, signed char small, unsigned *y, float half) {
  unsigned i = global_thread();
  y[i] = (o.x[i] >> 4) + o.kind + o.offset + (unsigned)(int)o.shift + (unsigned)(o.factor * 4) +
         o.inner.a * o.inner.b + (unsigned)(int)small + (unsigned)(half * 16);
}

// A __grid_constant__ parameter may be read through a pointer; the index makes it necessary.
extern "C" __global__ void by_table(unsigned **table, const __grid_constant__ Three three,
                                    unsigned long long wide, unsigned short narrow, unsigned *errors) {
  unsigned i = global_thread();
  const unsigned char *p = three.v;
  EXPECT_EQ(i, p[i % 3], i % 3 + 1);
  EXPECT_EQ(i, table[0][i], table[2][i]);
  EXPECT(i, table[0] != table[1]);
  EXPECT_EQ(i, wide, 0x100000001ull);
  EXPECT_EQ(i, narrow, 65535);
}

extern "C" __global__ void by_value_check(const unsigned *x, const unsigned *y, unsigned *errors) {
  unsigned i = global_thread();
  EXPECT_EQ(i, y[i], x[i] / 16 + 7 + 1000 - 3 + 10 + 9 * 77 - 2 + 8);
}
