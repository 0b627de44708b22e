// rmsnorm of table[ids[row]]. The bodies are in norm.cuh, norm_any.cuh, norm_span.cuh and norm_spread.cuh.
#include "norm_spread.cuh"

#define NORM(T, name, how, number) NORM_##how(sol_embed_rmsnorm_##T##_##name, NORM_EMBED, TYPE_##T, number)
#include "norm.def"
