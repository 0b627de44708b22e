// What embedding and gather share: rows taken by id; embed_rmsnorm checks its ids with it, too.
#ifndef SOL_OPS_EMBEDDING_H
#define SOL_OPS_EMBEDDING_H

#include "ops/operation.h"

typedef struct EmbeddingRows {
  void *y;
  const void *x, *ids, *order; // order: NULL: none
  int32_t *bad;                // NULL: no flag
  int64_t m, n, rows, y_stride, x_stride;
  SolDtype dtype, out_dtype, id_dtype;
} EmbeddingRows; // every default filled in
// The fields that the argument structures have alike.
#define EMBEDDING_ROWS(a)                                                                                    \
  .y = (a)->y, .ids = (a)->ids, .bad = (a)->bad, .m = (a)->m, .n = (a)->n,                                   \
  .y_stride = ops_stride((a)->y_stride, (a)->n), .dtype = (a)->dtype,                                        \
  .id_dtype = ops_or((a)->id_dtype, SOL_INT32)

SolStatus embedding_cpu(SolContext *ctx, const EmbeddingRows *r);
SolStatus embedding_launch(SolContext *ctx, const OpsDef *def, const EmbeddingRows *r, SolStream stream);
// SOL_ERR_ARGUMENT where id_dtype or bad_id is invalid, or a flag is given that would not be used.
SolStatus embedding_check_ids(SolDtype id_dtype, SolBadId bad_id, const int32_t *bad, SolError *err);
// at[0]: y, at[1]: x, at[2]: the ids; bad: the flag's, NULL where there is none.
void embedding_reference(const EmbeddingRows *r, double *const *at, double *bad);

// MxN of so many rows (0: the operation's default): one element, rows around one vector and one block, odd
// ones, many short ones.
enum { EMBEDDING_SHAPES = 17 };
extern const int64_t embedding_shapes[EMBEDDING_SHAPES][4];

enum {
#define EMBEDDING(name, ...) EMBEDDING_##name,
#include "kernels/embedding/embedding.def"
  EMBEDDING_KERNELS
};
extern const char *const embedding_kernels[EMBEDDING_KERNELS];

#endif
