// DLPack tensors read as rows of columns; what dlpack.c and dlpack_shapes.c share.
#ifndef SOL_OPS_DLPACK_H
#define SOL_OPS_DLPACK_H

#include "ops/operation.h"
#include "sol/dlpack.h"

// A call under way: the first thing wrong with a tensor stays, and nothing after it is looked at.
typedef struct Dl {
  SolContext *ctx;
  const char *op;
  SolStatus status;
} Dl;
#define DL_FAIL(d, ...) ((d)->status = ops_fail(SOL_ERR_ARGUMENT, __VA_ARGS__))

typedef struct DlRows {
  void *at; // zeros all over where the tensor is absent
  int64_t batch, rows, cols, stride, batch_stride;
  SolDtype dtype;
} DlRows;

Dl dl_begin(SolContext *ctx, const char *op);
// The last `inner` axes are the columns, those before them the rows; `batched`: but the first axis of three.
DlRows dl_view(Dl *d, const DLTensor *t, const char *name, int inner, bool batched);
DlRows dl_rows(Dl *d, const DLTensor *t, const char *name);
// A dense tensor of any shape as one row of `length` elements. `optional`: NULL is fine.
DlRows dl_line(Dl *d, const DLTensor *t, const char *name, int64_t length, bool optional);
void dl_same_shape(Dl *d, const DlRows *a, const char *a_name, const DlRows *b, const char *b_name);
void dl_same_type(Dl *d, const DlRows *a, const char *a_name, const DlRows *b, const char *b_name);

#endif
