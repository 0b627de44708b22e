// y = (x - mean) / sqrt(variance + eps) * (weight + offset) + bias. The bodies are in norm.cuh and norm_any.cuh.
#include "norm_any.cuh"

#define LANES(...) NORM_LANES(sol_layernorm, NORM_LAYER, __VA_ARGS__)
#define BLOCK(...) NORM_BLOCK(sol_layernorm, NORM_LAYER, __VA_ARGS__)
#define BIG(...)   NORM_BIG(sol_layernorm, NORM_LAYER, __VA_ARGS__)
#define ANY(...)   NORM_ANY(sol_layernorm, NORM_LAYER, __VA_ARGS__)
#define LOOP(...)  NORM_LOOP(sol_layernorm, NORM_LAYER, __VA_ARGS__)
#include "norm.def"
