// rmsnorm of table[ids[row]]. The bodies are in norm.cuh, norm_any.cuh, norm_span.cuh and norm_spread.cuh; those for short rows
// that start anywhere in embed_rows.cuh.
#include "embed_rmsnorm/embed_cells.cuh"
#include "embed_rmsnorm/embed_lines.cuh"
#include "norm_spread.cuh"

#undef NORM_CLUSTERED // rmsnorm and layernorm alone have it
#define NORM_CLUSTERED(...)
#undef NORM_PACKED
#define NORM_PACKED(...)
#undef NORM_WORDS
#define NORM_WORDS(...)
#define NORM(T, name, how, number) NORM_##how(sol_embed_rmsnorm_##T##_##name, NORM_EMBED, TYPE_##T, number)
#include "norm.def"

#define EMBED(T, name, blocks, body)                                                                                   \
  KERNEL __launch_bounds__(EMBED_THREADS, blocks) sol_embed_rmsnorm_##T##_##name(const __grid_constant__ EmbedParams p) { body; }
#define EMBED_CELLS(T, kind)                                                                                           \
  KERNEL __launch_bounds__(CELL_MOST_THREADS, 3) sol_embed_rmsnorm_##T##_cells(const __grid_constant__ EmbedParams p) { embed_cells(&p, kind); } \
  KERNEL __launch_bounds__(EMBED_THREADS, 7) sol_embed_rmsnorm_##T##_lines(const __grid_constant__ EmbedParams p) { embed_lines(&p, kind); }
#define EMBED_TYPE(T)                                                                                                  \
  EMBED(T, rows, 8, embed_rows(&p, TYPE_##T, true))                                                                    \
  EMBED(T, long_rows, 5, embed_rows(&p, TYPE_##T, false))                                                              \
  EMBED(T, tiny, 8, embed_tiny(&p, TYPE_##T))
EMBED_TYPE(f)
EMBED_TYPE(h)
EMBED_TYPE(b)
EMBED_CELLS(h, TYPE_h)
EMBED_CELLS(b, TYPE_b)
