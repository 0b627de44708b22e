// Attention of one new token a sequence to the tokens in a paged cache
#include <limits.h>
#include <math.h>

#include "base/error.h"
#include "base/heap.h"
#include "ops/attention_parts.h"
#include "ops/cpu.h"
#include "ops/decode_attention_parts.h"
#include "ops/elementwise.h"

static bool is_latent(const SolDecodeAttention *a) {
  return a->d == DECODE_LATENT;
}

SolDecodeAttention decode_filled(const SolDecodeAttention *args) {
  SolDecodeAttention a = *args;
  int64_t capacity = a.table_pages ? a.table_pages * a.page_size : a.page_size;
  if (!a.kv_heads) a.kv_heads = a.heads;
  if (!a.v_dim) a.v_dim = a.d;
  if (!a.max_length || a.max_length > capacity) a.max_length = capacity;
  if (!a.o_stride) a.o_stride = a.heads * a.v_dim;
  if (!a.q_stride) a.q_stride = a.heads * a.d;
  if (a.scale == 0) a.scale = 1 / sqrtf((float)a.d);
  if (a.k_scale == 0 || decode_cache_type(&a) != SOL_FP8) a.k_scale = 1;
  if (a.v_scale == 0 || decode_cache_type(&a) != SOL_FP8) a.v_scale = 1;
  return a;
}

static const char *const option_names[] = {"paged, full", "contiguous", "grouped queries, soft cap", "window",
                                           "fp8"};

// Dimensions: sequences, heads, the most tokens, elements of a head. fp16 and strides take the first option and
// fp8's.
static bool make(const OpsCase *c, void *args) {
  enum { PAGE = 16 };
  SolDecodeAttention *a = args;
  int64_t d = c->dim[3];
  if (c->dtype == SOL_FP32 || c->out_dtype || ((c->dtype == SOL_FP16 || c->pad) && c->option % 4) ||
      (d != 64 && d != 128 && d != 256 && d != DECODE_LATENT))
    return false;
  *a = (SolDecodeAttention){.batch = c->dim[0], .heads = c->dim[1], .d = d, .dtype = c->dtype};
  a->table_pages = ops_ceil_div(c->dim[2], PAGE), a->page_size = PAGE;
  a->pages = a->table_pages * a->batch + 3;
  if (c->option) a->max_length = c->dim[2];
  if (d == DECODE_LATENT) a->kv_heads = 1, a->v_dim = DECODE_LATENT_V;
  if (c->option == 1) a->table_pages = 0, a->page_size = c->dim[2], a->pages = a->batch;
  if (c->option == 2) a->kv_heads = a->heads % 2 ? 1 : a->heads / 2, a->soft_cap = 3, a->scale = 0.2f;
  if (c->option == 3) a->window = c->dim[2] / 2 + 1;
  if (c->option == 4) a->kv_dtype = SOL_FP8, a->k_scale = 0.5f, a->v_scale = 0.25f;
  if (c->pad)
    a->o_stride = a->heads * (a->v_dim ? a->v_dim : d) + c->pad, a->q_stride = a->heads * d + 2 * c->pad;
  SolDecodeAttention full = decode_filled(a);
  a->workspace_bytes = decode_workspace(&full);
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolDecodeAttention *a = args;
  int64_t kv = a->kv_heads ? a->kv_heads : a->heads, v_dim = a->v_dim ? a->v_dim : a->d;
  int64_t limit = a->max_length    ? a->max_length
                  : a->table_pages ? ops_times(a->table_pages, a->page_size)
                                   : a->page_size;
  SolDtype cache = decode_cache_type(a);
  bool any = a->batch && a->heads;
  v[0] = OPS_VIEW(SolDecodeAttention, o, a->dtype, OPS_OUT, .rows = a->batch,
                  .cols = ops_times(a->heads, v_dim), .stride = a->o_stride);
  v[1] = OPS_VIEW(SolDecodeAttention, q, a->dtype, OPS_IN, .rows = a->batch,
                  .cols = ops_times(a->heads, a->d), .stride = a->q_stride);
  v[2] = OPS_VIEW(SolDecodeAttention, k_cache, cache, OPS_IN, .batch = a->pages,
                  .rows = a->pages ? a->page_size : 0, .cols = ops_times(kv, a->d), .finite = true);
  v[3] = OPS_VIEW(SolDecodeAttention, v_cache, cache, OPS_IN, .batch = a->pages,
                  .rows = a->pages && !is_latent(a) ? a->page_size : 0, .cols = ops_times(kv, v_dim),
                  .finite = true);
  v[4] = OPS_VIEW(SolDecodeAttention, table, SOL_INT32, OPS_IN, .rows = a->table_pages ? a->batch : 0,
                  .cols = a->table_pages, .fill = OPS_FILL_DISTINCT, .limit = a->pages);
  v[5] = OPS_VIEW(SolDecodeAttention, lengths, SOL_INT32, OPS_IN, .rows = a->batch != 0, .cols = a->batch,
                  .fill = a->max_length ? OPS_FILL_LENGTHS : OPS_FILL_LIMIT, // tests: ragged, or full
                  .limit = limit);
  v[6] = OPS_VIEW(SolDecodeAttention, lse, SOL_FP32, OPS_OUT, .optional = true, .extra = true,
                  .rows = a->batch, .cols = a->heads);
  v[7] = OPS_VIEW(SolDecodeAttention, workspace, SOL_FP32, OPS_OUT, .rows = any,
                  .cols = a->workspace_bytes / 4, .scratch = true);
  return 8;
}

static SolStatus check_shape(const SolDecodeAttention *a, SolError *err) {
  int64_t kv = a->kv_heads ? a->kv_heads : a->heads, v_dim = a->v_dim ? a->v_dim : a->d;
  if (is_latent(a) ? v_dim != DECODE_LATENT_V || a->v_cache
                   : v_dim != a->d || (a->d != 64 && a->d != 128 && a->d != 256))
    return sol_fail(
        err, SOL_ERR_ARGUMENT,
        "heads must have 64, 128 or 256 elements, of V as many, or %d and %d without v_cache; not %lld and %lld",
        DECODE_LATENT, DECODE_LATENT_V, (long long)a->d, (long long)v_dim);
  const int64_t counts[] = {a->batch,
                            a->heads,
                            kv,
                            a->pages,
                            a->page_size,
                            a->table_pages,
                            a->max_length,
                            a->window,
                            ops_times(a->pages, a->page_size),
                            ops_times(a->table_pages, a->page_size),
                            ops_times(a->batch, a->heads)};
  for (size_t i = 0; i < SOL_COUNT(counts); i++)
    if (counts[i] < 0 || counts[i] > INT_MAX / 4)
      return sol_fail(err, SOL_ERR_RANGE, "a size, or tokens of all pages, are negative or above %d",
                      INT_MAX / 4);
  if (a->heads && (!kv || a->heads % kv))
    return sol_fail(err, SOL_ERR_ARGUMENT, "%lld heads cannot share %lld kv_heads evenly",
                    (long long)a->heads, (long long)kv);
  if (!a->table_pages && a->pages < a->batch)
    return sol_fail(err, SOL_ERR_ARGUMENT,
                    "without a table there must be a page for each of %lld sequences, not %lld",
                    (long long)a->batch, (long long)a->pages);
  return SOL_OK;
}

static SolStatus check(const void *args, SolError *err) {
  const SolDecodeAttention *a = args;
  SolDtype cache = decode_cache_type(a);
  if (a->dtype != SOL_FP16 && a->dtype != SOL_BF16)
    return sol_fail(err, SOL_ERR_ARGUMENT, "Q and O must be fp16 or bf16, not %s", sol_dtype_name(a->dtype));
  if (cache != a->dtype && cache != SOL_FP8)
    return sol_fail(err, SOL_ERR_ARGUMENT, "the cache must be %s or fp8, not %s", sol_dtype_name(a->dtype),
                    sol_dtype_name(cache));
  if (!(a->scale >= 0) || !(a->soft_cap >= 0) || isinf(a->scale) || isinf(a->soft_cap) ||
      !(a->k_scale >= 0) || isinf(a->k_scale) || !(a->v_scale >= 0) || isinf(a->v_scale))
    return sol_fail(err, SOL_ERR_ARGUMENT,
                    "scale, soft_cap, k_scale and v_scale must be positive numbers, or 0 for their defaults");
  if (a->batch && !a->table != !a->table_pages)
    return sol_fail(err, SOL_ERR_ARGUMENT, "table and table_pages go together");
  if (a->workspace_bytes < 0) return sol_fail(err, SOL_ERR_ARGUMENT, "workspace_bytes is negative");
  return check_shape(a, err);
}

// ---- the CPU ----

// The row of the cache that holds token t; -1: none does.
static int64_t row_of(const SolDecodeAttention *a, int64_t page, int64_t t) {
  int64_t row = page * a->page_size + t % a->page_size;
  return page >= 0 && page < a->pages ? row : -1;
}

static void load_cache(const SolDecodeAttention *a, const void *cache, int64_t row, int64_t kv, int64_t wide,
                       int64_t count, float *to) {
  cpu_load(decode_cache_type(a), cache, (row * a->kv_heads + kv) * wide, count, to);
}

static void attend_heads(const SolDecodeAttention *a, Attend *x, int64_t b, int64_t kv, int64_t first) {
  float k[ATTEND_D], v[ATTEND_V];
  int64_t length = a->lengths[b] < 0 ? 0 : cpu_min(a->lengths[b], a->max_length);
  int64_t from = a->window && length > a->window ? length - a->window : 0;
  for (int64_t i = 0; i < x->rows; i++) {
    cpu_load(a->dtype, a->q, b * a->q_stride + (first + i) * a->d, a->d, x->q[i]);
    x->from[i] = from, x->to[i] = length;
  }
  attend_start(x);
  for (int64_t t = from; t < length; t++) {
    int64_t row = row_of(a, a->table ? a->table[b * a->table_pages + t / a->page_size] : b, t);
    if (row < 0) continue;
    load_cache(a, a->k_cache, row, kv, a->d, a->d, k);
    load_cache(a, is_latent(a) ? a->k_cache : a->v_cache, row, kv, is_latent(a) ? a->d : a->v_dim, a->v_dim,
               v);
    attend_key(x, t, k, v);
  }
  for (int64_t i = 0; i < x->rows; i++) {
    float lse = attend_finish(x, i, a->v_scale);
    cpu_store(a->dtype, a->o, b * a->o_stride + (first + i) * a->v_dim, a->v_dim, x->o[i]);
    if (a->lse) a->lse[b * a->heads + first + i] = lse;
  }
}

// Items: sequences and heads of K.
static void items(const void *args, int64_t begin, int64_t end) {
  SolDecodeAttention a = decode_filled(args);
  int64_t group = a.heads / a.kv_heads;
  Attend x = {.d = a.d, .v_dim = a.v_dim, .scale = a.scale * a.k_scale, .soft_cap = a.soft_cap};
  for (int64_t item = begin; item < end; item++)
    for (int64_t i = 0; i < group; i += ATTEND_ROWS) {
      x.rows = cpu_min(ATTEND_ROWS, group - i);
      attend_heads(&a, &x, item / a.kv_heads, item % a.kv_heads, item % a.kv_heads * group + i);
    }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  SolDecodeAttention a = decode_filled(args);
  cpu_parallel(ctx, a.batch * a.kv_heads, a.batch * a.heads * a.max_length, items, args);
  return SOL_OK;
}

// ---- the reference ----

// P is rounded to the type of the cache; with fp8 to fp16.
static SolDtype type_of_p(const SolDecodeAttention *a) {
  return a->kv_dtype == SOL_FP8 ? SOL_FP16 : a->dtype;
}

static void reference(const void *args, double *const *at) {
  SolDecodeAttention a = decode_filled(args);
  int64_t group = a.heads / a.kv_heads, v_wide = is_latent(&a) ? a.d : a.v_dim;
  int64_t *rows = sol_heap_alloc((size_t)(a.max_length + 1) * sizeof *rows);
  for (int64_t b = 0; rows && b < a.batch; b++) {
    int64_t length = (int64_t)fmin(fmax(at[5][b], 0), (double)a.max_length), count = 0;
    for (int64_t t = a.window && length > a.window ? length - a.window : 0; t < length; t++) {
      int64_t page = at[4] ? (int64_t)at[4][b * a.table_pages + t / a.page_size] : b,
              row = row_of(&a, page, t);
      if (row >= 0) rows[count++] = row;
    }
    for (int64_t h = 0; h < a.heads; h++) {
      AttentionRefer r = {.q = at[1] + (b * a.heads + h) * a.d,
                          .k = at[2] + h / group * a.d,
                          .v = (is_latent(&a) ? at[2] : at[3]) + h / group * v_wide,
                          .rows = rows,
                          .k_apart = a.kv_heads * a.d,
                          .v_apart = a.kv_heads * v_wide,
                          .count = count,
                          .d = a.d,
                          .v_dim = a.v_dim,
                          .scale = (double)a.scale * (double)a.k_scale,
                          .cap = (double)a.soft_cap,
                          .by = (double)a.v_scale,
                          .p_type = type_of_p(&a)};
      int64_t row = (b * a.heads + h) * a.v_dim;
      attention_refer(&r, at[0] + row, at[OPS_TERMS] ? at[OPS_TERMS] + row : NULL,
                      at[6] ? &at[6][b * a.heads + h] : NULL);
    }
  }
  sol_heap_free(rows);
}

// ---- the cost ----

// Of sequences as long as they may be: how long each is stands in the GPU's memory.
static void cost(const void *args, SolOpArgs *op) {
  SolDecodeAttention a = decode_filled(args);
  *op = (SolOpArgs){.dim = {a.batch, a.heads, a.max_length, a.d},
                    .dtype = a.dtype,
                    .kv_dtype = a.kv_dtype,
                    .kv_heads = a.kv_heads,
                    .v_dim = a.v_dim,
                    .window = a.window && a.window < a.max_length ? a.window : 0,
                    .phase = SOL_PHASE_DECODE};
}

static void cost_more(const void *args, SolCost *out) {
  SolDecodeAttention a = decode_filled(args);
  int64_t seen = a.window ? cpu_min(a.window, a.max_length) : a.max_length;
  if (is_latent(&a)) // its V is part of what was read as K
    out->bytes_read -=
        (double)(a.batch * a.kv_heads) * (double)(seen * a.v_dim) * ops_size(decode_cache_type(&a));
}

static double slack_of(const void *args) {
  return attention_slack(type_of_p(args));
}

// Ragged; one part and several; heads of more than one tile; more heads than an H200 has warps for at a time; MLA; nothing.
static const int64_t shapes[][4] = {{3, 2, 20, 64},    {2, 4, 70, 128},  {2, 1, 600, 256}, {1, 1, 4200, 128},
                                    {1, 20, 40, 64},   {2, 540, 5, 256}, {2, 3, 40, 576},  {2, 2, 300, 64},
                                    {1, 35, 140, 576}, {1, 1, 1, 64},    {2, 13, 90, 64},  {0, 2, 8, 64}};
static const int64_t bench[][4] = {
    {1, 8, 16384, 128}, {64, 8, 1024, 128}, {16, 8, 8192, 128}, {1, 8, 131072, 128}};

int64_t sol_decode_attention_workspace(const SolContext *context, const SolDecodeAttention *args) {
  SolError err;
  if (!context || !context->driver || !args || check_shape(args, &err)) return 0;
  SolDecodeAttention a = decode_filled(args);
  return decode_workspace(&a);
}

const OpsDef ops_decode_attention = {
    .name = "decode_attention",
    .cost_name = "attention",
    OPS_ARGS(SolDecodeAttention, "BxHxSxD"),
    OPS_OPTIONS(option_names),
    .make = make,
    .views = views,
    .check = check,
    .cpu = cpu,
    .launch = decode_launch,
    .reference = reference,
    .cost = cost,
    .cost_more = cost_more,
    .slack_of = slack_of,
    .slack_of_terms = true,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("decode_attention", decode_kernels),
    .shared = decode_shared,
};
