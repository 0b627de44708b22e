// y = (x - mean) / sqrt(variance + eps) * (weight + offset) + bias. The bodies are in norm.cuh and norm_any.cuh.
#include "norm_any.cuh"

#undef NORM_BLOCK4 // rmsnorm and embed_rmsnorm alone have it
#define NORM_BLOCK4(...)
#define NORM(T, name, how, number) NORM_##how(sol_layernorm_##T##_##name, NORM_LAYER, TYPE_##T, number)
#include "norm.def"
