// What the files of attention and decode_attention share.
#ifndef SOL_OPS_ATTENTION_PARTS_H
#define SOL_OPS_ATTENTION_PARTS_H

#include "kernels/attention/attention.h"
#include "ops/operation.h"

enum {
#define ROW(id, ...) ATTENTION_##id,
#include "ops/attention_kernels.def"
  ATTENTION_KERNELS
};
extern const char *const attention_kernels[ATTENTION_KERNELS];
extern const uint32_t attention_shared[ATTENTION_KERNELS]; // bytes

// The arguments with every default filled in. Only after the checks, since its products could overflow.
SolAttention attention_filled(const SolAttention *args);
SolStatus attention_cpu(SolContext *ctx, const void *args);
// Parameters of the kernels, of arguments with every default filled in; the second has what tensor copies need.
AttentionParams attention_params(const SolAttention *a);
SolStatus attention_tiled_params(SolContext *ctx, const SolAttention *a, AttentionTiledParams *p);
SolStatus attention_launch(SolContext *ctx, const void *args, SolStream stream);

// The tokens of sequence b: `count` from `first` on, kept within the tensor.
void attention_sequence(const int32_t *starts, int64_t b, int64_t tokens, int64_t most, int64_t *first,
                        int64_t *count);
// Keys that query i of `queries` sees: *from to *to - 1.
void attention_seen(const SolAttention *a, int64_t queries, int64_t keys, int64_t i, int64_t *from,
                    int64_t *to);

// One query in double: `count` keys, which are rows 0 and on, or those in `rows`.
typedef struct AttentionRefer {
  const double *q, *k, *v;
  const int64_t *rows;      // or NULL
  int64_t k_apart, v_apart; // elements from one row to the next
  int64_t count, d, v_dim;  // d, v_dim: elements of a head
  double scale, cap, by;    // by: what O is multiplied by
  SolDtype p_type;          // to which P is rounded
} AttentionRefer;
// terms: of each element of O, the root of the sum of squares of what is added up for it; more than that where scores or P have fewer
// bits. It and lse: or NULL.
void attention_refer(const AttentionRefer *r, double *o, double *terms, double *lse);
// `slack` of attention: three times the most that rounding P to p_type does to a term.
double attention_slack(SolDtype p_type);

// Softmax and its product with V over keys that come one by one, for up to ATTEND_ROWS queries at a time.
enum { ATTEND_ROWS = 16, ATTEND_D = 576, ATTEND_V = 512 };
typedef struct Attend {
  int64_t rows, d, v_dim;
  int64_t from[ATTEND_ROWS], to[ATTEND_ROWS]; // the keys that each sees
  float scale, soft_cap;
  float q[ATTEND_ROWS][ATTEND_D], o[ATTEND_ROWS][ATTEND_V], most[ATTEND_ROWS], sum[ATTEND_ROWS];
} Attend;
void attend_start(Attend *a);
void attend_key(Attend *a, int64_t key, const float *k, const float *v);
// O of a row, in place, times `by`; returns its log-sum-exp.
float attend_finish(Attend *a, int64_t row, float by);

#endif
