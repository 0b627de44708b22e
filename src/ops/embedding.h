// What embedding and gather share: rows taken by id.
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

SolStatus embedding_cpu(SolContext *ctx, const EmbeddingRows *r);
SolStatus embedding_launch(SolContext *ctx, const OpsDef *def, const EmbeddingRows *r, SolStream stream);
// SOL_ERR_ARGUMENT where id_dtype or bad_id is none, or there is a flag that will not be used.
SolStatus embedding_check_ids(const char *name, SolDtype id_dtype, SolBadId bad_id, const int32_t *bad,
                              SolError *err);

enum {
#define EMBEDDING(name, ...) EMBEDDING_##name,
#include "kernels/embedding/embedding.def"
  EMBEDDING_KERNELS
};
extern const char *const embedding_kernels[EMBEDDING_KERNELS];

#endif
