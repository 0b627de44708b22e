// Attention on the CPU: a few queries at a time, in floats, and the keys that any of them sees, one by one.
#include <math.h>

#include "ops/attention_parts.h"
#include "ops/cpu.h"

void attend_start(Attend *a) {
  for (int64_t i = 0; i < a->rows; i++) {
    a->most[i] = -INFINITY, a->sum[i] = 0;
    memset(a->o[i], 0, (size_t)a->v_dim * sizeof a->o[i][0]);
  }
}

static float dot(const float *x, const float *y, int64_t n) {
  enum { LANES = 16 }; // sums that do not wait for each other
  float sum[LANES] = {0}, all = 0;
  for (int64_t i = 0; i < n; i += LANES)
    for (int j = 0; j < LANES; j++) sum[j] += x[i + j] * y[i + j];
  for (int j = 0; j < LANES; j++) all += sum[j];
  return all;
}

static void multiply(float *o, int64_t n, float by) {
  for (int64_t i = 0; i < n; i++) o[i] *= by;
}

void attend_key(Attend *a, int64_t key, const float *k, const float *v) {
  for (int64_t i = 0; i < a->rows; i++) {
    if (key < a->from[i] || key >= a->to[i]) continue;
    float score = dot(a->q[i], k, a->d) * a->scale, *restrict o = a->o[i];
    if (a->soft_cap != 0) score = a->soft_cap * tanhf(score / a->soft_cap);
    if (score > a->most[i]) {
      float by = expf(a->most[i] - score);
      multiply(o, a->v_dim, by);
      a->sum[i] *= by, a->most[i] = score;
    }
    float p = expf(score - (a->most[i] == -INFINITY ? 0 : a->most[i]));
    a->sum[i] += p;
    for (int64_t j = 0; j < a->v_dim; j++) o[j] += p * v[j];
  }
}

float attend_finish(Attend *a, int64_t row, float by) {
  float sum = a->sum[row];
  multiply(a->o[row], a->v_dim, sum == 0 ? 0 : by / sum);
  return sum == 0 ? -INFINITY : a->most[row] + logf(sum);
}

// ---- forward ----

// Queries `i` to i + rows - 1 of a sequence's head. q_first, k_first: tokens before the sequence's first.
typedef struct Rows {
  int64_t b, head, i, q_first, queries, k_first, keys;
} Rows;

static void write_rows(const SolAttention *a, const Rows *r, Attend *x) {
  int64_t tokens = a->q_starts ? a->q_tokens : a->queries;
  for (int64_t i = 0; i < x->rows; i++) {
    int64_t token = r->q_first + r->i + i, b = a->q_starts ? 0 : r->b;
    float lse = attend_finish(x, i, 1);
    cpu_store(a->dtype, a->o, b * a->o_batch_stride + token * a->o_stride + r->head * a->d, a->d, x->o[i]);
    if (a->lse) a->lse[(b * a->heads + r->head) * tokens + token] = lse;
  }
}

static void attend_rows(const SolAttention *a, const Rows *r, Attend *x) {
  float k[ATTEND_D], v[ATTEND_V];
  int64_t kv = r->head / (a->heads / a->kv_heads), from = INT64_MAX, to = 0;
  for (int64_t i = 0; i < x->rows; i++) {
    int64_t b = a->q_starts ? 0 : r->b, token = r->q_first + r->i + i;
    cpu_load(a->dtype, a->q, b * a->q_batch_stride + token * a->q_stride + r->head * a->d, a->d, x->q[i]);
    attention_seen(a, r->queries, r->keys, r->i + i, &x->from[i], &x->to[i]);
    from = cpu_min(from, x->from[i]);
    if (x->to[i] > to) to = x->to[i];
  }
  attend_start(x);
  for (int64_t key = from; key < to; key++) {
    int64_t b = a->kv_starts ? 0 : r->b, token = r->k_first + key;
    cpu_load(a->dtype, a->k, b * a->k_batch_stride + token * a->k_stride + kv * a->d, a->d, k);
    cpu_load(a->dtype, a->v, b * a->v_batch_stride + token * a->v_stride + kv * a->d, a->d, v);
    attend_key(x, key, k, v);
  }
  write_rows(a, r, x);
}

// Items: sequences, heads, and groups of queries.
static void groups(const void *args, int64_t begin, int64_t end) {
  SolAttention a = attention_filled(args);
  int64_t each = ops_ceil_div(a.queries, ATTEND_ROWS);
  Attend x = {.d = a.d, .v_dim = a.d, .scale = a.scale, .soft_cap = a.soft_cap};
  for (int64_t item = begin; item < end; item++) {
    Rows r = {.b = item / each / a.heads, .head = item / each % a.heads, .i = item % each * ATTEND_ROWS};
    attention_sequence(a.q_starts, r.b, a.q_tokens, a.queries, &r.q_first, &r.queries);
    attention_sequence(a.kv_starts, r.b, a.kv_tokens, a.keys, &r.k_first, &r.keys);
    x.rows = cpu_min(ATTEND_ROWS, r.queries - r.i);
    if (x.rows > 0) attend_rows(&a, &r, &x);
  }
}

SolStatus attention_cpu(SolContext *ctx, const void *args) {
  SolAttention a = attention_filled(args);
  cpu_parallel(ctx, a.batch * a.heads * ops_ceil_div(a.queries, ATTEND_ROWS),
               a.batch * a.heads * a.queries * (a.keys + 1), groups, args);
  return SOL_OK;
}
