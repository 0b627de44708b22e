//! alloc x 512*4 random-f32
//! alloc errors 32 zero
//! launch fast_functions grid=4 block=128 args=x,errors
//! launch full_functions grid=4 block=128 args=x,errors
//! launch double_functions grid=2 block=128 args=x,errors
//! checks 18688
// Approximate instructions within the error that the manuals state, the float functions within theirs
// (against double), and double functions against identities and series.
#include "check.cuh"

extern "C" __global__ void fast_functions(const float *x, unsigned *errors) {
  unsigned i = global_thread();
  float v = x[i], angle = v * 3.14159265f, positive = ldexpf(fabsf(v) + 0.5f, (int)(i % 40) - 20), r;
  const double ulp = 1.2e-7; // 2^-23, and the half ulp of the reference
  EXPECT_NEAR(i, __sinf(angle), sin((double)angle), 0, 7e-7);
  EXPECT_NEAR(i, __cosf(angle), cos((double)angle), 0, 7e-7);
  EXPECT_NEAR(i, __expf(10 * v), exp((double)(10 * v)), (3 + fabs(11.73 * v)) * ulp, 0);
  EXPECT_NEAR(i, __logf(positive), log((double)positive), 4 * ulp, 4e-7);
  EXPECT_NEAR(i, __log2f(positive), log2((double)positive), 3 * ulp, 4e-7);
  EXPECT_NEAR(i, __powf(fabsf(v) + 0.5f, 3 * v), pow(fabsf(v) + 0.5, 3.0 * v), 2e-6, 0);
  EXPECT_NEAR(i, __fdividef(v, positive), (double)v / positive, 3 * ulp, 0);
  EXPECT_NEAR(i, rsqrtf(positive), 1 / sqrt((double)positive), 2 * ulp, 0);
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(positive));
  EXPECT_NEAR(i, r, 1.0 / positive, ulp, 0);
  asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(positive));
  EXPECT_NEAR(i, r, sqrt((double)positive), 2 * ulp, 0);
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(20 * v));
  EXPECT_NEAR(i, r, exp2((double)(20 * v)), 3 * ulp, 0);
  asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(positive));
  EXPECT_NEAR(i, r, log2((double)positive), 2 * ulp, 3e-7);
  asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(3 * v));
  EXPECT_NEAR(i, r, tanh(3.0 * v), 5e-4, 0);
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(v), "f"(positive));
  EXPECT_NEAR(i, r, (double)v / positive, 3 * ulp, 0);
  double d;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(d) : "d"((double)positive));
  EXPECT_NEAR(i, d, 1.0 / positive, 2e-6, 0); // the operand's lower word does not count: 2^-20, and rounding
  asm("rsqrt.approx.f64 %0, %1;" : "=d"(d) : "d"((double)positive));
  EXPECT_NEAR(i, d, 1 / sqrt((double)positive), 1e-7, 0);
}

extern "C" __global__ void full_functions(const float *x, unsigned *errors) {
  unsigned i = global_thread();
  float v = x[i], wide = i % 3 ? 50 * v : v * 1e9f, positive = ldexpf(fabsf(v) + 0.5f, (int)(i % 60) - 30);
  const double ulp = 1.2e-7;
  EXPECT_NEAR(i, sinf(wide), sin((double)wide), 3 * ulp, 0); // large arguments are reduced exactly
  EXPECT_NEAR(i, cosf(wide), cos((double)wide), 3 * ulp, 0);
  EXPECT_NEAR(i, tanf(v), tan((double)v), 5 * ulp, 0);
  EXPECT_NEAR(i, expf(40 * v), exp((double)(40 * v)), 3 * ulp, 0);
  EXPECT_NEAR(i, logf(positive), log((double)positive), 2 * ulp, 1e-8);
  EXPECT_NEAR(i, powf(fabsf(v) + 0.5f, 20 * v), pow((double)(fabsf(v) + 0.5f), (double)(20 * v)), 9 * ulp, 0);
  EXPECT_NEAR(i, atan2f(v, x[i ^ 1]), atan2((double)v, (double)x[i ^ 1]), 4 * ulp, 0);
  EXPECT_NEAR(i, asinf(v), asin((double)v), 3 * ulp, 0);
  EXPECT_NEAR(i, erff(2 * v), erf((double)(2 * v)), 3 * ulp, 0);
  EXPECT_NEAR(i, tanhf(2 * v), tanh((double)(2 * v)), 3 * ulp, 0);
  EXPECT_NEAR(i, cbrtf(v), cbrt((double)v), 2 * ulp, 0);
  EXPECT_NEAR(i, hypotf(v, positive), sqrt((double)v * v + (double)positive * positive), 4 * ulp, 0);
  float whole, part = modff(100 * v, &whole);
  int exponent;
  float mantissa = frexpf(positive, &exponent);
  EXPECT_EQ(i, whole + part, 100 * v);
  EXPECT_EQ(i, ldexpf(mantissa, exponent), positive);
  EXPECT_EQ(i, fmodf(100 * v, 7.0f), (float)((double)(100 * v) - 7.0 * trunc((double)(100 * v) / 7.0)));
  EXPECT_EQ(i, copysignf(positive, v), v < 0 ? -positive : positive);
  EXPECT_EQ(i, nextafterf(positive, 1e30f), __uint_as_float(__float_as_uint(positive) + 1));
}

extern "C" __global__ void double_functions(const float *x, unsigned *errors) {
  unsigned i = global_thread();
  double v = x[i], sum = 1, term = 1, sine = v, step = v;
  for (int k = 1; k < 30; k++) term *= v / k, sum += term;
  for (int k = 1; k < 15; k++) step *= -v * v / ((2 * k) * (2 * k + 1)), sine += step;
  EXPECT_NEAR(i, exp(v), sum, 1e-15, 0);
  EXPECT_NEAR(i, sin(v), sine, 1e-15, 0);
  EXPECT_NEAR(i, log(exp(20 * v)), 20 * v, 1e-14, 1e-15);
  EXPECT_NEAR(i, sin(v * 1e5) * sin(v * 1e5) + cos(v * 1e5) * cos(v * 1e5), 1.0, 1e-14, 0);
  EXPECT_NEAR(i, atan(tan(v)), v, 1e-14, 0);
  EXPECT_NEAR(i, pow(v * v + 1, 2.5), (v * v + 1) * (v * v + 1) * sqrt(v * v + 1), 1e-14, 0);
  EXPECT_NEAR(i, rsqrt(v * v + 3) * sqrt(v * v + 3), 1.0, 1e-15, 0);
}
