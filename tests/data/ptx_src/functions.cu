// Calls of all kinds: recursion, pointers, virtual functions, by-value structures, noreturn, inline assembly.
#include <cstdio>

struct Wide {
  int a[10];
  double b;
};

struct Shape {
  __device__ virtual float area() const = 0;
};
struct Square : Shape {
  float side;
  __device__ Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct Disc : Shape {
  float radius;
  __device__ Disc(float r) : radius(r) {}
  __device__ float area() const override { return 3.14159f * radius * radius; }
};

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__device__ __noinline__ Wide scaled(Wide w, int by) {
  for (int &x : w.a) x *= by;
  w.b *= by;
  return w;
}
__device__ __noinline__ void stop(const char *why) {
  printf("%s\n", why);
  __trap();
}

typedef int (*Binary)(int, int);
__device__ int plus_of(int a, int b) {
  return a + b;
}
__device__ int times(int a, int b) {
  return a * b;
}
__device__ Binary table[] = {plus_of, times};
__device__ __noinline__ int apply(Binary f, int a, int b) {
  return f(a, b);
}

__device__ int odd(int n);
__device__ __noinline__ int even(int n) {
  return n == 0 ? 1 : odd(n - 1);
}
__device__ __noinline__ int odd(int n) {
  return n == 0 ? 0 : even(n - 1);
}

extern "C" __global__ void k(int *out, Wide w, int n, const float *in) {
  Wide s = scaled(w, n);
  out[0] = s.a[n % 10] + (int)s.b + fibonacci(n) + even(n);
  out[1] = apply(table[n & 1], n, 3);
  Square square(in[0]);
  Disc disc(in[1]);
  const Shape *shape = n & 1 ? static_cast<const Shape *>(&square) : &disc;
  out[2] = (int)shape->area();
  if (n < 0) stop("negative");
  int sum = 0;
  for (int i = 0; i < n; i++) {
    if (in[i] < 0) continue;
    if (in[i] > 100) break;
    switch ((int)in[i]) {
    case 0: sum += 3; break;
    case 1: sum ^= 5; break;
    case 2: sum *= 7; [[fallthrough]];
    case 3: sum -= 9; break;
    case 4: sum += i; break;
    case 5: sum += out[i]; break;
    case 6: sum >>= 1; break;
    case 7: sum = ~sum; break;
    default: sum++;
    }
  }
  asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %0, 0;\nAGAIN:\n @p bra DONE;\n add.s32 %0, %0, 1;\n bra "
               "DONE;\nDONE:\n}"
               : "+r"(sum));
  asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %0, 7;\nAGAIN:\n @p bra DONE;\n add.s32 %0, %0, 2;\n bra "
               "DONE;\nDONE:\n}"
               : "+r"(sum));
  out[3] = sum;
}
