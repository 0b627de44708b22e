//! alloc out 8*4 poison
//! alloc errors 32 zero
//! launch print_one grid=1 block=1 args=out,f64:2.5,i64:-1234567890123
//! launch print_check grid=1 block=1 args=out,errors
//! checks 8
//! prints plain
//! prints 100% of -5, 7, 2b, 2B, 52
//! prints [   42] [42   ] [00042] [+42]
//! prints -1234567890123 18446744073709551615 ffffffffffffffff
//! prints 2.500000 2.50e+00 2.5 3.142 -0.000001
//! prints x=Z s=word t=
//! prints 1 2 3 4 5 6 7 8 9 10 11 12
//! prints 255 -1 65535 -2 1
//! prints inf -inf
//! prints a
//! prints b
// printf from one thread: every conversion, widths, many arguments, strings, several lines in one call.
#include "check.cuh"
#include <stdio.h>

__device__ const char word[] = "word";

extern "C" __global__ void print_one(int *out, double d, long long big) {
  unsigned char byte = 255;
  short negative = -2;
  out[0] = printf("plain\n");
  out[1] = printf("%d%% of %d, %u, %x, %X, %o\n", 100, -5, 7u, 43, 43, 42);
  out[2] = printf("[%5d] [%-5d] [%05d] [%+d]\n", 42, 42, 42, 42);
  out[3] = printf("%lld %llu %llx\n", big, ~0ull, ~0ull);
  out[4] = printf("%f %.2e %g %.3f %f\n", d, d, d, 3.14159265, -0.000001);
  out[5] = printf("%c=%c s=%s t=%s\n", 'x', 'Z', word, "");
  out[6] = printf("%d %d %d %d %d %d %d %d %d %d %d %d\n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
  out[7] = printf("%d %d %u %d %d\n", byte, (signed char)-1, (unsigned short)65535, negative, true);
  printf("%f %f\n", INFINITY, -INFINITY);
  printf("a\nb\n");
}

// printf returns how many arguments it printed.
extern "C" __global__ void print_check(const int *out, unsigned *errors) {
  const int counts[8] = {0, 6, 4, 3, 5, 4, 12, 5};
  for (int i = 0; i < 8; i++) EXPECT_EQ(i, out[i], counts[i]);
}
