// y = (x - mean) / sqrt(variance + eps) * (weight + offset) + bias. The bodies are in norm.cuh and norm_any.cuh.
#include "norm_any.cuh"

#define NORM(T, name, how, number) NORM_##how(sol_layernorm_##T##_##name, NORM_LAYER, TYPE_##T, number)
#include "norm.def"
