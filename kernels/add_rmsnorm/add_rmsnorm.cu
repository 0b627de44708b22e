// s = x + residual; y = s / sqrt(mean(s^2) + eps) * (weight + offset). The bodies are in norm.cuh, norm_any.cuh, norm_span.cuh and norm_spread.cuh.
#include "norm_spread.cuh"

#undef NORM_WARP // the other norms alone have these
#define NORM_WARP(...)
#undef NORM_BLOCK4
#define NORM_BLOCK4(...)
#undef NORM_BLOCK // few rows: two chunks a thread; many: one
#define NORM_BLOCK(name, op, T, few)                                                                                   \
  NORM_KERNEL(name, (few) ? 512 : 1024, 2, norm_held, op, T, (few) ? 2 : 1, 0, 1)
#undef NORM_WORDS
#define NORM_WORDS(...)
#undef NORM_CLUSTERED // rmsnorm and layernorm alone have it
#define NORM_CLUSTERED(...)
#define NORM(T, name, how, number) NORM_##how(sol_add_rmsnorm_##T##_##name, NORM_ADD, TYPE_##T, number)
#include "norm.def"
