// rmsnorm of table[ids[row]]. The bodies are in norm.cuh and norm_any.cuh.
#include "norm_any.cuh"

#undef NORM_TWICE // rmsnorm alone has it
#define NORM_TWICE(...)
#define NORM(T, name, how, number) NORM_##how(sol_embed_rmsnorm_##T##_##name, NORM_EMBED, TYPE_##T, number)
#include "norm.def"
