// s = x + residual; y = s / sqrt(mean(s^2) + eps) * (weight + offset). The bodies are in norm.cuh and norm_any.cuh.
#include "norm_any.cuh"

#define LANES(...) NORM_LANES(sol_add_rmsnorm, NORM_ADD, __VA_ARGS__)
#define BLOCK(...) NORM_BLOCK(sol_add_rmsnorm, NORM_ADD, __VA_ARGS__)
#define BIG(...)   NORM_BIG(sol_add_rmsnorm, NORM_ADD, __VA_ARGS__)
#define ANY(...)   NORM_ANY(sol_add_rmsnorm, NORM_ADD, __VA_ARGS__)
#define LOOP(...)  NORM_LOOP(sol_add_rmsnorm, NORM_ADD, __VA_ARGS__)
#include "norm.def"
