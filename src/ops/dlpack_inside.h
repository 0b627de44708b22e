// DLPack tensors read as rows of columns; what dlpack.c and dlpack_shapes.c share.
#ifndef SOL_OPS_DLPACK_H
#define SOL_OPS_DLPACK_H

#include "ops/operation.h"
#include "sol/dlpack.h"

// A call: the first error found in its tensors is kept, and nothing is checked after it.
typedef struct Dl {
  SolContext *ctx;
  const char *op;
  SolStatus status;
} Dl;
#define DL_FAIL(d, ...) ((d)->status = ops_fail(SOL_ERR_ARGUMENT, __VA_ARGS__))

typedef struct DlRows {
  void *at; // where the tensor is absent all fields are 0
  int64_t batch, rows, cols, stride, batch_stride;
  SolDtype dtype;
} DlRows;

// A tensor's fields in an argument structure: its pointer and the stride of its rows; that of its batch, too.
#define DL_TENSOR(name, r)  .name = (r).at, .name##_stride = (r).stride
#define DL_BATCHED(name, r) DL_TENSOR(name, r), .name##_batch_stride = (r).batch_stride
// Fields that many argument structures have alike: y and x of the same shape; rows `y` by ids from a table
// `x`.
#define DL_PAIR(y_rows, x_rows)                                                                              \
  .y = (y_rows).at, .x = (x_rows).at, .m = (x_rows).rows, .n = (x_rows).cols, .y_stride = (y_rows).stride,   \
  .x_stride = (x_rows).stride, .dtype = (x_rows).dtype
#define DL_BY_ID(y_rows, x_rows, id_line, bad_line)                                                          \
  .y = (y_rows).at, .ids = (id_line).at, .bad = (bad_line).at, .m = (y_rows).rows, .n = (y_rows).cols,       \
  .y_stride = (y_rows).stride, .dtype = (x_rows).dtype, .id_dtype = (id_line).dtype,                         \
  .bad_id = (bad_line).at ? SOL_BAD_ID_FLAG : SOL_BAD_ID_ZERO

Dl dl_begin(SolContext *ctx, const char *op);
// The last `inner` axes are the columns, those before them the rows; `batched`: the first of three axes is
// the batch.
DlRows dl_view(Dl *d, const DLTensor *t, const char *name, int inner, bool batched);
DlRows dl_rows(Dl *d, const DLTensor *t, const char *name);
// A dense tensor of any shape as one row of `length` elements. `optional`: it may be NULL.
DlRows dl_line(Dl *d, const DLTensor *t, const char *name, int64_t length, bool optional);
void dl_same_shape(Dl *d, const DlRows *a, const char *a_name, const DlRows *b, const char *b_name);
void dl_same_type(Dl *d, const DlRows *a, const char *a_name, const DlRows *b, const char *b_name);
// y of two inputs, element by element: all of one shape, the inputs of one type.
static inline void dl_elementwise(Dl *d, const DlRows *y, const DlRows *a, const char *a_name,
                                  const DlRows *b, const char *b_name) {
  dl_same_shape(d, y, "y", a, a_name);
  dl_same_shape(d, a, a_name, b, b_name);
  dl_same_type(d, a, a_name, b, b_name);
}

#endif
