// y = x / sqrt(mean(x^2) + eps) * (weight + offset). The bodies are in norm.cuh and norm_any.cuh.
#include "norm_any.cuh"

#define LANES(...) NORM_LANES(sol_rmsnorm, NORM_RMS, __VA_ARGS__)
#define BLOCK(...) NORM_BLOCK(sol_rmsnorm, NORM_RMS, __VA_ARGS__)
#define BIG(...)   NORM_BIG(sol_rmsnorm, NORM_RMS, __VA_ARGS__)
#define ANY(...)   NORM_ANY(sol_rmsnorm, NORM_RMS, __VA_ARGS__)
#define LOOP(...)  NORM_LOOP(sol_rmsnorm, NORM_RMS, __VA_ARGS__)
#include "norm.def"

#define LANES(...)
#define BLOCK(...)
#define BIG(...)
#define ANY(...)  NORM_ANY(sol_rmsnorm_fp8, NORM_RMS_FP8, __VA_ARGS__)
#define LOOP(...) NORM_LOOP(sol_rmsnorm_fp8, NORM_RMS_FP8, __VA_ARGS__)
#include "norm.def"
