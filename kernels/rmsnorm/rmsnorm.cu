// y = x / sqrt(mean(x^2) + eps) * (weight + offset). The bodies are in norm.cuh and norm_any.cuh.
#include "norm_any.cuh"

#define NORM(T, name, how, number) NORM_##how(sol_rmsnorm_##T##_##name, NORM_RMS, TYPE_##T, number)
#include "norm.def"

// To fp8: the fast kernels are not there, the others take all rows.
#define NORM(T, name, how, number) FP8_##how(sol_rmsnorm_fp8_##T##_##name, NORM_RMS_FP8, TYPE_##T, number)
#define FP8_LANES(...)
#define FP8_WARP(...)
#define FP8_BLOCK(...)
#define FP8_BLOCK4(...)
#define FP8_BIG(...)
#define FP8_ANY    NORM_ANY
#define FP8_BESIDE NORM_BESIDE
#define FP8_LOOP   NORM_LOOP
#include "norm.def"
