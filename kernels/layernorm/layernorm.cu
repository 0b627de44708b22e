// y = (x - mean) / sqrt(variance + eps) * (weight + offset) + bias. The bodies are in norm.cuh and norm_any.cuh.
#include "norm_any.cuh"

#undef NORM_TWICE // rmsnorm alone has it
#define NORM_TWICE(...)
#define NORM(T, name, how, number) NORM_##how(sol_layernorm_##T##_##name, NORM_LAYER, TYPE_##T, number)
#include "norm.def"
