// rmsnorm of table[ids[row]]. The bodies are in norm.cuh and norm_any.cuh.
#include "norm_any.cuh"

#define LANES(...) NORM_LANES(sol_embed_rmsnorm, NORM_EMBED, __VA_ARGS__)
#define BLOCK(...) NORM_BLOCK(sol_embed_rmsnorm, NORM_EMBED, __VA_ARGS__)
#define BIG(...)   NORM_BIG(sol_embed_rmsnorm, NORM_EMBED, __VA_ARGS__)
#define ANY(...)   NORM_ANY(sol_embed_rmsnorm, NORM_EMBED, __VA_ARGS__)
#define LOOP(...)  NORM_LOOP(sol_embed_rmsnorm, NORM_EMBED, __VA_ARGS__)
#include "norm.def"
