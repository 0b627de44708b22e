// s = x + residual; y = s / sqrt(mean(s^2) + eps) * (weight + offset). The bodies are in norm.cuh and norm_any.cuh.
#include "norm_any.cuh"

#undef NORM_BLOCK4 // rmsnorm and embed_rmsnorm alone have it
#define NORM_BLOCK4(...)
#define NORM(T, name, how, number) NORM_##how(sol_add_rmsnorm_##T##_##name, NORM_ADD, TYPE_##T, number)
#include "norm.def"
