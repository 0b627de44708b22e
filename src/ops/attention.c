// O = softmax(scores) V
#include <limits.h>
#include <math.h>

#include "base/error.h"
#include "ops/attention_parts.h"
#include "ops/elementwise.h"

static int64_t kv_heads_of(const SolAttention *a) {
  return a->kv_heads ? a->kv_heads : a->heads;
}

SolAttention attention_filled(const SolAttention *args) {
  SolAttention a = *args;
  a.kv_heads = kv_heads_of(args);
  if (!a.o_stride) a.o_stride = a.heads * a.d;
  if (!a.q_stride) a.q_stride = a.heads * a.d;
  if (!a.k_stride) a.k_stride = a.kv_heads * a.d;
  if (!a.v_stride) a.v_stride = a.kv_heads * a.d;
  if (!a.o_batch_stride) a.o_batch_stride = a.queries * a.o_stride;
  if (!a.q_batch_stride) a.q_batch_stride = a.queries * a.q_stride;
  if (!a.k_batch_stride) a.k_batch_stride = a.keys * a.k_stride;
  if (!a.v_batch_stride) a.v_batch_stride = a.keys * a.v_stride;
  if (a.scale == 0) a.scale = 1 / sqrtf((float)a.d);
  return a;
}

static const char *const option_names[] = {
    "causal",          "", "window", "grouped queries, soft cap", "few queries", "more queries than keys",
    "variable lengths"};

// Dimensions: sequences, heads, keys, elements of a head. fp16 and strides take the first two options.
static bool make(const OpsCase *c, void *args) {
  SolAttention *a = args;
  int64_t keys = c->dim[2];
  if (c->dtype == SOL_FP32 || c->out_dtype || ((c->dtype == SOL_FP16 || c->pad) && c->option > 1) ||
      (c->dim[3] != 64 && c->dim[3] != 128 && c->dim[3] != 256))
    return false;
  *a = (SolAttention){.batch = c->dim[0],
                      .heads = c->dim[1],
                      .queries = keys,
                      .keys = keys,
                      .d = c->dim[3],
                      .dtype = c->dtype,
                      .causal = c->option != 1};
  if (c->option == 2) a->window = 5;
  if (c->option == 3) a->kv_heads = a->heads % 2 ? 1 : a->heads / 2, a->soft_cap = 3, a->scale = 0.2f;
  if (c->option == 4) a->queries = ops_ceil_div(keys, 3);
  if (c->option == 5) a->queries = keys + 9;
  if (c->option == 6) {
    a->q_tokens = a->batch * keys, a->kv_tokens = a->batch * keys + 7;
    a->queries = a->q_tokens, a->keys = a->kv_tokens;
  }
  if (!c->pad) return true;
  int64_t wide = a->heads * a->d, narrow = kv_heads_of(a) * a->d;
  a->o_stride = wide + c->pad, a->q_stride = wide + 2 * c->pad;
  a->k_stride = narrow + c->pad, a->v_stride = narrow + 3 * c->pad;
  return true;
}

static OpsView tokens(const SolAttention *a, OpsView v, bool packed, int64_t all, int64_t each) {
  v.batch = packed ? 1 : a->batch, v.rows = packed ? all : each;
  if (packed) v.batch_stride = 0;
  if (a->batch == 0) v.batch = 1, v.rows = 0; // in a view 0 sequences would be one
  return v;
}

static int views(const void *args, OpsView *v) {
  const SolAttention *a = args;
  int64_t wide = ops_times(a->heads, a->d), narrow = ops_times(kv_heads_of(a), a->d);
  bool q = a->q_starts, kv = a->kv_starts;
  if (a->q_tokens) q = true; // tests: the starts come later
  if (a->kv_tokens) kv = true;
  v[0] = tokens(a,
                OPS_VIEW(SolAttention, o, a->dtype, OPS_OUT, .cols = wide, .stride = a->o_stride,
                         .batch_stride = a->o_batch_stride),
                q, a->q_tokens, a->queries);
  v[1] = tokens(a,
                OPS_VIEW(SolAttention, q, a->dtype, OPS_IN, .cols = wide, .stride = a->q_stride,
                         .batch_stride = a->q_batch_stride),
                q, a->q_tokens, a->queries);
  v[2] = tokens(a,
                OPS_VIEW(SolAttention, k, a->dtype, OPS_IN, .cols = narrow, .stride = a->k_stride,
                         .batch_stride = a->k_batch_stride, .finite = true),
                kv, a->kv_tokens, a->keys);
  v[3] = tokens(a,
                OPS_VIEW(SolAttention, v, a->dtype, OPS_IN, .cols = narrow, .stride = a->v_stride,
                         .batch_stride = a->v_batch_stride, .finite = true),
                kv, a->kv_tokens, a->keys);
  v[4] = OPS_VIEW(SolAttention, lse, SOL_FP32, OPS_OUT, .optional = true, .extra = true,
                  .batch = q ? 1 : a->batch, .rows = a->batch ? a->heads : 0,
                  .cols = q ? a->q_tokens : a->queries);
  v[5] = OPS_VIEW(SolAttention, q_starts, SOL_INT32, OPS_IN, .rows = q && a->batch,
                  .cols = (int64_t)((uint64_t)a->batch + 1), .fill = OPS_FILL_STARTS, .limit = a->q_tokens);
  v[6] = OPS_VIEW(SolAttention, kv_starts, SOL_INT32, OPS_IN, .rows = kv && a->batch,
                  .cols = (int64_t)((uint64_t)a->batch + 1), .fill = OPS_FILL_STARTS, .limit = a->kv_tokens);
  return 7;
}

static bool is_count(int64_t n) { // kernels count in 32 bits
  return n >= 0 && n <= INT_MAX / 4;
}

static SolStatus check(const void *args, SolError *err) {
  const SolAttention *a = args;
  int64_t kv = kv_heads_of(a);
  if (a->dtype != SOL_FP16 && a->dtype != SOL_BF16)
    return sol_fail(err, SOL_ERR_ARGUMENT, "the tensors must be fp16 or bf16, not %s",
                    sol_dtype_name(a->dtype));
  if (a->d != 64 && a->d != 128 && a->d != 256)
    return sol_fail(err, SOL_ERR_ARGUMENT, "heads must have 64, 128 or 256 elements, not %lld",
                    (long long)a->d);
  const int64_t counts[] = {a->batch, a->heads,    kv,           a->queries,
                            a->keys,  a->q_tokens, a->kv_tokens, a->window};
  for (size_t i = 0; i < SOL_COUNT(counts); i++)
    if (!is_count(counts[i]))
      return sol_fail(err, SOL_ERR_RANGE, "a size is negative or above %d: %lld", INT_MAX / 4,
                      (long long)counts[i]);
  if (a->heads && (!kv || a->heads % kv))
    return sol_fail(err, SOL_ERR_ARGUMENT, "%lld heads cannot share %lld kv_heads evenly",
                    (long long)a->heads, (long long)kv);
  if (!(a->scale >= 0) || !(a->soft_cap >= 0) || isinf(a->scale) || isinf(a->soft_cap))
    return sol_fail(err, SOL_ERR_ARGUMENT,
                    "scale and soft_cap must be positive numbers, or 0 for their defaults");
  if (a->window && !a->causal) return sol_fail(err, SOL_ERR_ARGUMENT, "a window needs causal");
  if (a->batch && ((!a->q_starts && a->q_tokens) || (!a->kv_starts && a->kv_tokens)))
    return sol_fail(err, SOL_ERR_ARGUMENT, "q_tokens needs q_starts, and kv_tokens needs kv_starts");
  return SOL_OK;
}

void attention_sequence(const int32_t *starts, int64_t b, int64_t all, int64_t most, int64_t *first,
                        int64_t *count) {
  *first = 0, *count = most;
  if (!starts) return;
  int64_t begin = starts[b], end = starts[b + 1];
  *first = begin < 0 ? 0 : begin > all ? all : begin;
  *count = end - *first;
  if (*count > most) *count = most;
  if (*count > all - *first) *count = all - *first;
  if (*count < 0) *count = 0;
}

void attention_seen(const SolAttention *a, int64_t queries, int64_t keys, int64_t i, int64_t *from,
                    int64_t *to) {
  int64_t next = i + keys - queries + 1;
  *from = 0, *to = keys;
  if (a->causal && next < keys) *to = next < 0 ? 0 : next;
  if (a->window && next > a->window) *from = next - a->window;
}

// ---- the reference ----

static double unit_of(SolDtype p_type) {
  return p_type == SOL_FP16 ? 0x1p-11 : 0x1p-8;
}

// error: of the score, where it is summed up in fp32.
static double score_of(const AttentionRefer *r, const double *k, double *error) {
  double sum = 0, sizes = 0;
  for (int64_t i = 0; i < r->d; i++) sum += r->q[i] * k[i], sizes += fabs(r->q[i] * k[i]);
  sum *= r->scale, *error = sizes * fabs(r->scale) * 0x1p-22;
  return r->cap == 0 ? sum : r->cap * tanh(sum / r->cap);
}

// The weight whose rounding error is as large as all errors of weight p: its own (below 2^-14 fp16's last bit stays 2^-24), and what an error of
// its score makes of it.
static double rounded_p(const AttentionRefer *r, double p, double error) {
  return fmax(p, r->p_type == SOL_FP16 ? 0x1p-14 : 0) +
         (isfinite(error) ? p * error / unit_of(r->p_type) : 0);
}

void attention_refer(const AttentionRefer *r, double *o, double *terms, double *lse) {
  double most = -INFINITY, sum = 0, error;
  for (int64_t j = 0; j < r->count; j++)
    most = fmax(most, score_of(r, r->k + (r->rows ? r->rows[j] : j) * r->k_apart, &error));
  for (int64_t i = 0; i < r->v_dim; i++) o[i] = 0;
  for (int64_t i = 0; terms && i < r->v_dim; i++) terms[i] = 0;
  for (int64_t j = 0; j < r->count; j++) {
    int64_t row = r->rows ? r->rows[j] : j;
    const double *v = r->v + row * r->v_apart;
    double p = exp(score_of(r, r->k + row * r->k_apart, &error) - (most == -INFINITY ? 0 : most));
    sum += p;
    for (int64_t i = 0; i < r->v_dim; i++) o[i] += p * v[i];
    double rounded = rounded_p(r, p, error);
    for (int64_t i = 0; terms && i < r->v_dim; i++) terms[i] += rounded * v[i] * (rounded * v[i]);
  }
  for (int64_t i = 0; i < r->v_dim; i++) o[i] = sum == 0 ? 0 : o[i] / sum * r->by;
  for (int64_t i = 0; terms && i < r->v_dim; i++)
    terms[i] = sum == 0 ? 0 : sqrt(terms[i]) / sum * fabs(r->by);
  if (lse) *lse = sum == 0 ? -INFINITY : most + log(sum);
}

double attention_slack(SolDtype p_type) {
  return 3 * unit_of(p_type) / 0x1p-24;
}

static void refer_starts(const double *from, int64_t count, int32_t *to) {
  for (int64_t i = 0; from && i < count; i++) to[i] = (int32_t)from[i];
}

static void reference(const void *args, double *const *at) {
  SolAttention a = attention_filled(args);
  int64_t wide = a.heads * a.d, narrow = a.kv_heads * a.d, group = a.heads / (a.kv_heads ? a.kv_heads : 1);
  for (int64_t b = 0; b < a.batch; b++) {
    int32_t ends[2][2] = {{0}};
    int64_t q0, nq, k0, nk, all = a.q_starts ? a.q_tokens : a.queries;
    refer_starts(at[5] ? at[5] + b : NULL, 2, ends[0]);
    refer_starts(at[6] ? at[6] + b : NULL, 2, ends[1]);
    attention_sequence(at[5] ? ends[0] : NULL, 0, a.q_tokens, a.queries, &q0, &nq);
    attention_sequence(at[6] ? ends[1] : NULL, 0, a.kv_tokens, a.keys, &k0, &nk);
    int64_t bq = at[5] ? 0 : b, bk = at[6] ? 0 : b;
    for (int64_t i = 0; i < nq; i++)
      for (int64_t h = 0; h < a.heads; h++) {
        int64_t from, to, query = (bq * a.queries + q0 + i) * wide + h * a.d;
        attention_seen(&a, nq, nk, i, &from, &to);
        int64_t key = (bk * a.keys + k0 + from) * narrow + h / group * a.d;
        AttentionRefer r = {.q = at[1] + query,
                            .k = at[2] + key,
                            .v = at[3] + key,
                            .k_apart = narrow,
                            .v_apart = narrow,
                            .count = to - from,
                            .d = a.d,
                            .v_dim = a.d,
                            .scale = (double)a.scale,
                            .cap = (double)a.soft_cap,
                            .by = 1,
                            .p_type = a.dtype};
        attention_refer(&r, at[0] + query, at[OPS_TERMS] ? at[OPS_TERMS] + query : NULL,
                        at[4] ? &at[4][(bq * a.heads + h) * all + q0 + i] : NULL);
      }
  }
}

// ---- the cost ----

// Packed sequences are taken as equally long: how long each is stands in the GPU's memory.
static int64_t mean_length(int64_t packed, int64_t batch, int64_t length) {
  return packed && batch ? ops_ceil_div(packed, batch) : length;
}

static void cost(const void *args, SolOpArgs *op) {
  const SolAttention *a = args;
  int64_t keys = mean_length(a->kv_tokens, a->batch, a->keys),
          queries = mean_length(a->q_tokens, a->batch, a->queries);
  *op = (SolOpArgs){.dim = {a->batch, a->heads, keys, a->d},
                    .dtype = a->dtype,
                    .kv_heads = kv_heads_of(a),
                    .queries = queries < keys ? queries : keys,
                    .window = a->window && a->window < keys ? a->window : 0,
                    .phase = SOL_PHASE_DECODE}; // `queries` tokens, the last of the keys
}

// The accountant's attention is causal.
static void cost_more(const void *args, SolCost *out) {
  const SolAttention *a = args;
  int64_t keys = mean_length(a->kv_tokens, a->batch, a->keys),
          queries = mean_length(a->q_tokens, a->batch, a->queries);
  double rows = (double)a->batch * (double)a->heads * (double)queries;
  if (!a->causal) out->flops = 4 * rows * (double)keys * (double)a->d;
  if (queries <= keys) return;
  double more = rows * (1 - (double)keys / (double)queries) * (double)a->d * 2; // queries that see nothing
  out->bytes_read += more, out->bytes_written += more;
}

// P is rounded to dtype.
static double slack_of(const void *args) {
  return attention_slack(((const SolAttention *)args)->dtype);
}

// One token; ragged; more than one tile of queries and of keys; more heads than an H200 has room for at a time; nothing.
static const int64_t shapes[][4] = {{3, 1, 0, 64},   {0, 2, 8, 64},    {2, 2, 7, 64},   {1, 3, 70, 64},
                                    {2, 1, 33, 128}, {1, 1, 140, 128}, {1, 1, 70, 256}, {133, 4, 3, 256},
                                    {1, 1, 1, 64},   {5, 1, 100, 128}, {9, 2, 80, 64},  {6, 1, 75, 64}};
static const int64_t bench[][4] = {
    {1, 32, 1024, 128}, {4, 32, 4096, 128}, {1, 32, 16384, 128}, {4, 16, 4096, 64}, {2, 16, 4096, 256}};

const OpsDef ops_attention = {
    .name = "attention",
    OPS_ARGS(SolAttention, "BxHxSxD"),
    OPS_OPTIONS(option_names),
    .make = make,
    .views = views,
    .check = check,
    .cpu = attention_cpu,
    .launch = attention_launch,
    .reference = reference,
    .cost = cost,
    .cost_more = cost_more,
    .slack_of = slack_of,
    .slack_of_terms = true,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("attention", attention_kernels),
    .shared = attention_shared,
};
