// y[i] = x[ids[i]]: embedding, and gather of rows.
#include "embedding_rows.cuh"

#define STRIP(body)               { const EmbeddingParams strip = embedding_strip(p); body; }
#define BODY_WIDE(chunks)        STRIP(embedding_wide(&strip, chunks))
#define BODY_SHIFT(size, chunks) embedding_shift(&p, size, chunks)
#define BODY_FLAT(unit, each)    embedding_flat(&p, unit, each)
#define BODY_SHORT(size, each)   embedding_short(&p, size, each)
#define BODY_STAGED(size)        embedding_staged(&p, size)
#define BODY_FLOW(in, out, convert, each) embedding_flow(&p, in, out, convert, each)
#define BODY_WORDS(in, out, convert, lines) STRIP(embedding_words(&strip, in, out, convert, lines))
#define BODY_ROWS(in, out, convert) embedding_rows(&p, in, out, convert)
#define BODY_TINY(in, out, convert) embedding_tiny(&p, in, out, convert)
#define BODY_CONVERT(in, out, pieces) embedding_convert(&p, in, out, pieces)
#define EMBEDDING(name, how, ...)                                                                            \
  KERNEL __launch_bounds__(EMBEDDING_THREADS) name(const __grid_constant__ EmbeddingParams p) {              \
    BODY_##how(__VA_ARGS__);                                                                                 \
  }
#include "embedding.def"
