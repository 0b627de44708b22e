// What softmax and log_softmax share: all but the name and the last step.
#ifndef SOL_OPS_SOFTMAX_H
#define SOL_OPS_SOFTMAX_H

#include "ops/operation.h"

enum {
#define HELD(in, threads, chunks, rows, blocks)         SOFTMAX_HELD_##in##_##threads##_##chunks,
#define APART(in, threads, chunks, rows)                SOFTMAX_APART_##in##_##threads##_##chunks,
#define SHARED(in, threads, chunks, cluster, blocks)    SOFTMAX_SHARED_##in##_##threads##_##chunks##_##cluster,
#define SHARED_90(in, threads, chunks, cluster, blocks) SHARED(in, threads, chunks, cluster, blocks)
#define LOOP(in, threads)                               SOFTMAX_LOOP_##in,
#define LOOP_90(in, threads, cluster)                   SOFTMAX_LOOP_90_##in,
#include "kernels/softmax/softmax.def"
  SOFTMAX_KERNELS
};
extern const char *const softmax_kernels[SOFTMAX_KERNELS];
extern const uint32_t softmax_shared[SOFTMAX_KERNELS]; // bytes

bool softmax_make(const OpsCase *c, void *args);
int softmax_views(const void *args, OpsView *v);
SolStatus softmax_check(const OpsDef *def, const SolSoftmax *a, SolError *err);
SolStatus softmax_cpu(SolContext *ctx, const SolSoftmax *a, bool log);
SolStatus softmax_launch(SolContext *ctx, const OpsDef *def, const SolSoftmax *a, bool log, SolStream stream);

// Rows of every launch class, on and off the alignment.
enum { SOFTMAX_SHAPES = 26 };
extern const int64_t softmax_shapes[SOFTMAX_SHAPES][4];

#endif
