// How a corpus kernel says what it compared. `errors` is the buffer of that name, 8 words, zero at the start:
// [0] mismatches, [1] comparisons; of the first mismatch: [2] source line, [3] index, [4,5] got, [6,7]
// expected. Every kernel that uses these macros has a parameter `unsigned *errors`.
#pragma once

__device__ __forceinline__ unsigned long long check_bits(int v) {
  return (unsigned long long)(long long)v;
}
__device__ __forceinline__ unsigned long long check_bits(unsigned v) {
  return v;
}
__device__ __forceinline__ unsigned long long check_bits(long v) {
  return (unsigned long long)v;
}
__device__ __forceinline__ unsigned long long check_bits(unsigned long v) {
  return v;
}
__device__ __forceinline__ unsigned long long check_bits(long long v) {
  return (unsigned long long)v;
}
__device__ __forceinline__ unsigned long long check_bits(unsigned long long v) {
  return v;
}
__device__ __forceinline__ unsigned long long check_bits(float v) {
  return __float_as_uint(v);
}
__device__ __forceinline__ unsigned long long check_bits(double v) {
  return (unsigned long long)__double_as_longlong(v);
}

__device__ __forceinline__ void check_note(unsigned *errors, bool ok, unsigned line, unsigned index,
                                           unsigned long long got, unsigned long long want) {
  atomicAdd(&errors[1], 1u);
  if (ok || atomicAdd(&errors[0], 1u) != 0) return;
  errors[2] = line;
  errors[3] = index;
  errors[4] = (unsigned)got;
  errors[5] = (unsigned)(got >> 32);
  errors[6] = (unsigned)want;
  errors[7] = (unsigned)(want >> 32);
}

__device__ __forceinline__ bool check_near(double got, double want, double relative, double absolute) {
  return fabs(got - want) <= relative * fabs(want) + absolute;
}

// The same bits, after `want` took the type of `got`. `i` is whatever helps to find the place.
#define EXPECT_EQ(i, got, want)                                                                              \
  do {                                                                                                       \
    auto got_ = (got);                                                                                       \
    decltype(got_) want_ = (want);                                                                           \
    unsigned long long a_ = check_bits(got_), b_ = check_bits(want_);                                        \
    check_note(errors, a_ == b_, __LINE__, (unsigned)(i), a_, b_);                                           \
  } while (0)

// |got - want| <= relative * |want| + absolute, in double. A NaN fails.
#define EXPECT_NEAR(i, got, want, relative, absolute)                                                        \
  do {                                                                                                       \
    double got_ = (got), want_ = (want);                                                                     \
    check_note(errors, check_near(got_, want_, relative, absolute), __LINE__, (unsigned)(i),                 \
               check_bits(got_), check_bits(want_));                                                         \
  } while (0)

#define EXPECT(i, condition) check_note(errors, (condition), __LINE__, (unsigned)(i), 0, 1)

// A hash of an index: test data without a buffer.
__device__ __forceinline__ unsigned check_hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

__device__ __forceinline__ unsigned global_thread() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
