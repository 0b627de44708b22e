// The DLPack entry points: each must do what the plain call does, bit for bit, and refuse tensors that are
// somewhere else, of another type, or laid out in a way that rows cannot describe.
#include "check.h"
#include "ops/operation.h"
#include "sol/dlpack.h"

// A tensor with room for its own shape.
typedef struct Tensor {
  DLTensor t;
  int64_t shape[4], strides[4];
} Tensor;

static const DLDataType f32 = {2, 32, 1}, bf16 = {4, 16, 1}, i32 = {0, 32, 1}, i64 = {0, 64, 1};

// ndim sizes, dense. The tensor must stay where it is: point_at sets what points into itself.
static Tensor dense(void *data, DLDataType type, int ndim, int64_t a, int64_t b, int64_t c, int64_t d) {
  Tensor x = {.t = {.data = data, .device = {.device_type = kDLCPU}, .ndim = ndim, .dtype = type},
              .shape = {a, b, c, d}};
  int64_t step = 1;
  for (int k = ndim - 1; k >= 0; k--)
    x.strides[k] = step, step = (int64_t)((uint64_t)step * (uint64_t)x.shape[k]);
  return x;
}

static DLTensor *at(Tensor *x) {
  x->t.shape = x->shape;
  x->t.strides = x->strides;
  return &x->t;
}

enum { M = 6, N = 24, BIG = 4096 };
static _Alignas(16) float x[BIG], y[BIG], want[BIG], z[BIG], w[BIG], b[BIG], out2[BIG], want2[BIG];
static int32_t ids[M] = {3, 0, 7, 2, 99, 1};
static int64_t wide_ids[M] = {3, 0, 7, 2, 5, 1};

static void fill(void) {
  for (int i = 0; i < BIG; i++) {
    x[i] = (float)((i * 37 % 101) - 50) / 17;
    z[i] = (float)((i * 53 % 97) - 40) / 13;
    w[i] = (float)((i * 29 % 31) + 1) / 16;
    b[i] = (float)((i * 11 % 23) - 11) / 8;
    y[i] = want[i] = out2[i] = want2[i] = -77;
  }
}

static SolContext *cpu_context(void) {
  SolContext *ctx = NULL;
  CHECK_INT(sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_CPU}, &ctx, NULL), SOL_OK);
  fill();
  return ctx;
}

static void same(const char *name, SolStatus dl, SolStatus plain) {
  CHECK_MSG(!dl && !plain, "%s: %s", name, sol_last_error()->message);
  CHECK_MSG(!memcmp(y, want, sizeof y), "%s: DLPack's result differs", name);
  CHECK_MSG(!memcmp(out2, want2, sizeof out2), "%s: the second output differs", name);
  bool written = false;
  for (int i = 0; i < BIG; i++) written |= y[i] != -77;
  CHECK_MSG(written, "%s: nothing was written", name);
  for (int i = 0; i < BIG; i++) y[i] = want[i] = out2[i] = want2[i] = -77;
}

#define D2(data, r, c) at(&(Tensor[]){dense(data, f32, 2, r, c, 0, 0)}[0])
#define D1(data, c)    at(&(Tensor[]){dense(data, f32, 1, c, 0, 0, 0)}[0])

TEST(row_operations) {
  SolContext *ctx = cpu_context();
  DLTensor *yt = D2(y, M, N), *xt = D2(x, M, N), *zt = D2(z, M, N), *wt = D1(w, N), *bt = D1(b, N);
  SolCopy copy = {want, x, M, N, 0, 0, SOL_FP32, 0};
  same("copy", sol_copy_dl(ctx, yt, xt, NULL), sol_copy(ctx, &copy, NULL));

  SolRmsnorm rms = {.y = want, .x = x, .weight = w, .m = M, .n = N, .dtype = SOL_FP32};
  rms.eps = 1e-5f, rms.weight_offset = 1;
  same("rmsnorm", sol_rmsnorm_dl(ctx, yt, xt, wt, 1e-5f, 1, NULL), sol_rmsnorm(ctx, &rms, NULL));
  rms.weight = NULL;
  same("rmsnorm bare", sol_rmsnorm_dl(ctx, yt, xt, NULL, 1e-5f, 1, NULL), sol_rmsnorm(ctx, &rms, NULL));

  SolAddRmsnorm add = {.y = want, .x = x, .residual = z, .residual_out = want2, .weight = w, .m = M, .n = N};
  add.dtype = SOL_FP32, add.eps = 1e-5f;
  same("add_rmsnorm", sol_add_rmsnorm_dl(ctx, yt, xt, zt, D2(out2, M, N), wt, 1e-5f, 0, NULL),
       sol_add_rmsnorm(ctx, &add, NULL));

  SolLayernorm layer = {.y = want, .x = x, .weight = w, .bias = b, .m = M, .n = N, .dtype = SOL_FP32};
  layer.eps = 1e-5f;
  same("layernorm", sol_layernorm_dl(ctx, yt, xt, wt, bt, 1e-5f, 0, NULL), sol_layernorm(ctx, &layer, NULL));

  SolSoftmax soft = {.y = want, .x = x, .m = M, .n = N, .dtype = SOL_FP32};
  same("softmax", sol_softmax_dl(ctx, yt, xt, NULL), sol_softmax(ctx, &soft, NULL));
  same("log_softmax", sol_log_softmax_dl(ctx, yt, xt, NULL), sol_log_softmax(ctx, &soft, NULL));

  SolScaleColumns scale = {.y = want, .x = x, .scale = w, .m = M, .n = N, .dtype = SOL_FP32};
  same("scale_columns", sol_scale_columns_dl(ctx, yt, xt, wt, NULL), sol_scale_columns(ctx, &scale, NULL));

  SolBias bias = {.y = want, .x = x, .bias = b, .m = M, .n = N, .dtype = SOL_FP32, .scale = 3};
  same("bias_relu_scale", sol_bias_relu_scale_dl(ctx, yt, xt, bt, 3, NULL),
       sol_bias_relu_scale(ctx, &bias, NULL));
  same("bias_gelu", sol_bias_gelu_dl(ctx, yt, xt, bt, NULL), sol_bias_gelu(ctx, &bias, NULL));

  SolSiluMul silu = {.y = want, .gate = x, .up = z, .m = M, .n = N, .dtype = SOL_FP32};
  same("silu_mul", sol_silu_mul_dl(ctx, yt, xt, zt, NULL), sol_silu_mul(ctx, &silu, NULL));
  sol_context_destroy(ctx);
}

TEST(elementwise_operations) {
  SolContext *ctx = cpu_context();
  DLTensor *yt = D2(y, M, N), *xt = D2(x, M, N), *zt = D2(z, M, N), *st = D1(w, 1);
  SolGatedMul gated = {.y = want, .gate = x, .up = z, .m = M, .n = N, .dtype = SOL_FP32};
  gated.activation = SOL_GATE_RELU;
  same("gated_mul", sol_gated_mul_dl(ctx, yt, xt, zt, NULL, SOL_GATE_RELU, NULL),
       sol_gated_mul(ctx, &gated, NULL));
  SolAdd add = {.y = want, .a = x, .b = z, .m = M, .n = N, .dtype = SOL_FP32};
  same("add", sol_add_dl(ctx, yt, xt, zt, NULL), sol_add(ctx, &add, NULL));
  SolRelu relu = {.y = want, .x = x, .m = M, .n = N, .dtype = SOL_FP32};
  same("relu", sol_relu_dl(ctx, yt, xt, NULL), sol_relu(ctx, &relu, NULL));
  SolCast cast = {.y = want, .x = x, .y_scale = w, .m = M, .n = N, .dtype = SOL_FP32};
  same("cast", sol_cast_dl(ctx, yt, xt, NULL, st, NULL), sol_cast(ctx, &cast, NULL));
  sol_context_destroy(ctx);
}

TEST(losses_and_choices) {
  SolContext *ctx = cpu_context();
  DLTensor *xt = D2(x, M, N);
  Tensor targets = dense(wide_ids, i64, 1, M, 0, 0, 0);
  SolCrossEntropy ce = {.loss = want, .x = x, .targets = wide_ids, .gradient = want2, .m = M, .n = N};
  ce.dtype = SOL_FP32, ce.id_dtype = SOL_INT64, ce.scale = 0.5f;
  same("cross_entropy", sol_cross_entropy_dl(ctx, D1(y, M), xt, at(&targets), D2(out2, M, N), 0.5f, NULL),
       sol_cross_entropy(ctx, &ce, NULL));

  Tensor ids_t = dense(out2, i32, 2, M, 3, 0, 0);
  SolTopk top = {.values = want, .x = x, .ids = want2, .m = M, .n = N, .k = 3, .dtype = SOL_FP32};
  same("topk", sol_topk_dl(ctx, D2(y, M, 3), at(&ids_t), xt, NULL), sol_topk(ctx, &top, NULL));

  Tensor chosen = dense(y, i32, 1, M, 0, 0, 0);
  SolSample choice = {
      .ids = want, .x = x, .seeds = wide_ids, .m = M, .n = N, .top_k = 5, .step = 2, .dtype = SOL_FP32};
  choice.temperature = 1, choice.top_p = 0.9f;
  same("sample", sol_sample_dl(ctx, at(&chosen), xt, at(&targets), 1, 5, 0.9f, 2, NULL),
       sol_sample(ctx, &choice, NULL));

  Tensor bytes = dense(y, (DLDataType){0, 8, 1}, 2, M, N, 0, 0);
  SolQuantize quant = {.y = want, .x = x, .scales = want2, .m = M, .n = N, .dtype = SOL_FP32};
  same("quantize", sol_quantize_dl(ctx, at(&bytes), xt, D1(out2, M), NULL, SOL_QUANT_INT8_ROW, NULL),
       sol_quantize(ctx, &quant, NULL));

  Tensor yt = dense(y, f32, 3, 2, M, N, 0), zt = dense(x, f32, 3, 2, M, N, 0);
  SolGroupNorm group = {
      .y = want, .x = x, .weight = w, .batch = 2, .c = M, .s = N, .groups = 3, .dtype = SOL_FP32};
  group.eps = 1e-5f;
  same("group_norm", sol_group_norm_dl(ctx, at(&yt), at(&zt), D1(w, M), NULL, 3, 1e-5f, NULL),
       sol_group_norm(ctx, &group, NULL));
  SolReduce sums = {
      .y = want, .x = x, .batch = 2, .m = M, .n = N, .dtype = SOL_FP32, .axis = SOL_AXIS_COLUMNS};
  same("reduce of a batch",
       sol_reduce_dl(ctx, D2(y, 2, N), at(&zt), NULL, SOL_REDUCE_SUM, SOL_AXIS_COLUMNS, NULL),
       sol_reduce(ctx, &sums, NULL));
  sol_context_destroy(ctx);
}

TEST(products) {
  SolContext *ctx = cpu_context();
  const DLDataType f16 = {2, 16, 1};
  // a (4, 8) by rows, b (8, 6) by columns: the rows of b's memory are its columns.
  Tensor at_ = dense(x, f16, 2, 4, 8, 0, 0), bt = dense(z, f16, 2, 8, 6, 0, 0),
         ct = dense(y, f32, 2, 4, 6, 0, 0);
  bt.strides[0] = 1, bt.strides[1] = 8;
  SolGemm gemm = {.c = want, .a = x, .b = z, .bias = w, .m = 4, .n = 6, .k = 8, .dtype = SOL_FP16};
  gemm.out_dtype = SOL_FP32, gemm.weight_dtype = SOL_FP32, gemm.b_columns = 1, gemm.alpha = 2;
  same("gemm", sol_gemm_dl(ctx, at(&ct), at(&at_), at(&bt), D1(w, 6), NULL, 2, 0, SOL_ACTIVATION_NONE, NULL),
       sol_gemm(ctx, &gemm, NULL));
  bt.shape[0] = 7;
  CHECK_INT(sol_gemm_dl(ctx, at(&ct), at(&at_), at(&bt), NULL, NULL, 1, 0, SOL_ACTIVATION_NONE, NULL),
            SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "rows of b is 7, not 8");

  Tensor q = dense(x, f16, 4, 2, 3, 4, 64), o = dense(y, f16, 4, 2, 3, 4, 64);
  Tensor k = dense(z, f16, 4, 2, 5, 2, 64), v = dense(w, f16, 4, 2, 5, 2, 64);
  SolAttention attention = {
      .o = want, .q = x, .k = z, .v = w, .lse = want2, .batch = 2, .heads = 4, .kv_heads = 2};
  attention.queries = 3, attention.keys = 5, attention.d = 64, attention.dtype = SOL_FP16,
  attention.causal = 1;
  Tensor lse = dense(out2, f32, 3, 2, 4, 3, 0);
  same("attention", sol_attention_dl(ctx, at(&o), at(&q), at(&k), at(&v), at(&lse), 0, 0, 0, 1, NULL),
       sol_attention(ctx, &attention, NULL));
  CHECK_INT(sol_attention_dl(ctx, at(&o), at(&q), at(&k), at(&q), NULL, 0, 0, 0, 1, NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "v has another shape");
  CHECK_INT(sol_attention_dl(ctx, D2(y, 4, 64), at(&q), at(&k), at(&v), NULL, 0, 0, 0, 1, NULL),
            SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "(batch, tokens, heads, D)");
  sol_context_destroy(ctx);
}

TEST(names_for_python) {
  CHECK_INT(sol_python_operation("rmsnorm"), 0);
  CHECK_INT(sol_python_operation("nothing"), -1);
  CHECK_INT(sol_python_operation(NULL), -1);
}

TEST(operations_with_ids) {
  SolContext *ctx = cpu_context();
  enum { VOCAB = 8 };
  DLTensor *yt = D2(y, M, N), *table = D2(x, VOCAB, N), *wt = D1(w, N);
  Tensor small = dense(ids, i32, 1, M, 0, 0, 0), wide = dense(wide_ids, i64, 2, 2, M / 2, 0, 0);
  int32_t bad = 0, flagged = 0;
  Tensor bad_t = dense(&bad, i32, 0, 0, 0, 0, 0); // no axes: one element
  SolEmbedding e = {.y = want, .table = x, .ids = ids, .bad = &flagged, .m = M, .n = N, .vocab = VOCAB};
  e.dtype = SOL_FP32, e.bad_id = SOL_BAD_ID_FLAG;
  same("embedding", sol_embedding_dl(ctx, yt, table, at(&small), at(&bad_t), NULL),
       sol_embedding(ctx, &e, NULL));
  CHECK_INT(bad, 1);
  CHECK_INT(flagged, 1);
  e.ids = wide_ids, e.id_dtype = SOL_INT64, e.bad = NULL, e.bad_id = SOL_BAD_ID_ZERO;
  Tensor split = dense(y, f32, 3, 2, M / 2, N, 0); // ids (2, 3), y (2, 3, N)
  same("embedding, int64", sol_embedding_dl(ctx, at(&split), table, at(&wide), NULL, NULL),
       sol_embedding(ctx, &e, NULL));

  SolEmbedRmsnorm er = {.y = want, .embedded = want2, .table = x, .ids = ids, .weight = w, .m = M, .n = N};
  er.vocab = VOCAB, er.dtype = SOL_FP32, er.eps = 1e-6f;
  same("embed_rmsnorm",
       sol_embed_rmsnorm_dl(ctx, yt, D2(out2, M, N), table, at(&small), wt, NULL, 1e-6f, 0, NULL),
       sol_embed_rmsnorm(ctx, &er, NULL));

  int32_t order[M] = {5, 4, 3, 2, 1, 0};
  Tensor order_t = dense(order, i32, 1, M, 0, 0, 0);
  SolGather g = {.y = want, .x = x, .ids = ids, .order = order, .m = M, .n = N, .rows = VOCAB};
  g.dtype = SOL_FP32;
  same("gather", sol_gather_dl(ctx, yt, table, at(&small), at(&order_t), NULL, NULL),
       sol_gather(ctx, &g, NULL));
  sol_context_destroy(ctx);
}

TEST(other_shapes) {
  SolContext *ctx = cpu_context();
  Tensor yt = dense(y, f32, 3, 2, N, M, 0), xt = dense(x, f32, 3, 2, M, N, 0);
  SolTranspose tr = {.y = want, .x = x, .batch = 2, .m = M, .n = N, .dtype = SOL_FP32};
  same("transpose, batched", sol_transpose_dl(ctx, at(&yt), at(&xt), NULL), sol_transpose(ctx, &tr, NULL));
  tr.batch = 1;
  same("transpose", sol_transpose_dl(ctx, D2(y, N, M), D2(x, M, N), NULL), sol_transpose(ctx, &tr, NULL));

  enum { T = 6, H = 2, D = 16, TABLE = 10 };
  Tensor yr = dense(y, f32, 4, 2, T / 2, H, D), xr = dense(x, f32, 4, 2, T / 2, H, D);
  Tensor pos = dense(wide_ids, i64, 2, 2, T / 2, 0, 0);
  DLTensor *cos_t = D2(w, TABLE, D / 4), *sin_t = D2(b, TABLE, D / 4);
  SolRope rope = {.y = want, .x = x, .cos = w, .sin = b, .positions = wide_ids, .t = T, .h = H, .d = D};
  rope.rotary = D / 2, rope.rows = TABLE, rope.dtype = SOL_FP32, rope.id_dtype = SOL_INT64;
  same("rope", sol_rope_dl(ctx, at(&yr), at(&xr), cos_t, sin_t, at(&pos), 0, NULL),
       sol_rope(ctx, &rope, NULL));

  for (SolAxis axis = SOL_AXIS_ROWS; axis <= SOL_AXIS_ALL; axis++) {
    int64_t n = axis == SOL_AXIS_ROWS ? M : axis == SOL_AXIS_COLUMNS ? N : 1;
    SolReduce red = {.y = want, .x = x, .m = M, .n = N, .dtype = SOL_FP32, .axis = axis};
    red.workspace_bytes = sol_reduce_workspace(ctx, &red);
    red.workspace = red.workspace_bytes ? want2 : NULL;
    DLTensor *work = red.workspace_bytes ? D1(out2, red.workspace_bytes / 4) : NULL;
    same("reduce", sol_reduce_dl(ctx, D1(y, n), D2(x, M, N), work, SOL_REDUCE_SUM, axis, NULL),
         sol_reduce(ctx, &red, NULL));
  }

  Tensor arg = dense(y, i64, 1, M, 0, 0, 0);
  SolArgmax am = {.y = want, .x = x, .m = M, .n = N, .dtype = SOL_FP32, .id_dtype = SOL_INT64};
  same("argmax", sol_argmax_dl(ctx, at(&arg), D2(x, M, N), NULL), sol_argmax(ctx, &am, NULL));

  Tensor kc = dense(y, f32, 4, 4, 2, H, D), vc = dense(out2, f32, 4, 4, 2, H, D);
  Tensor k = dense(x, f32, 3, T, H, D, 0), v = dense(z, f32, 3, T, H, D, 0);
  Tensor slots = dense(wide_ids, i64, 1, T, 0, 0, 0);
  SolKvAppend kv = {.k_cache = want, .v_cache = want2, .k = x, .v = z, .slots = wide_ids, .t = T, .h = H};
  kv.d = D, kv.pages = 4, kv.page_size = 2, kv.dtype = SOL_FP32, kv.id_dtype = SOL_INT64;
  same("kv_append", sol_kv_append_dl(ctx, at(&kc), at(&vc), at(&k), at(&v), at(&slots), 0, 0, NULL),
       sol_kv_append(ctx, &kv, NULL));
  sol_context_destroy(ctx);
}

TEST(layouts) {
  SolContext *ctx = cpu_context();
  SolCopy copy = {want, x + 4, M, N - 8, N, N, SOL_FP32, 0};
  // Columns 4.. of wider rows, by byte_offset; three axes that collapse; the output strided as well.
  Tensor xt = dense((char *)x, f32, 3, 2, M / 2, N - 8, 0), yt = dense(y, f32, 2, M, N - 8, 0, 0);
  xt.t.byte_offset = 16;
  xt.strides[0] = M / 2 * N, xt.strides[1] = N, yt.strides[0] = N;
  same("strided", sol_copy_dl(ctx, at(&yt), at(&xt), NULL), sol_copy(ctx, &copy, NULL));
  // Without strides: dense, as before DLPack 1.2.
  SolCopy plain = {want, x, M, N, 0, 0, SOL_FP32, 0};
  DLTensor *bare = D2(x, M, N);
  bare->strides = NULL;
  same("no strides", sol_copy_dl(ctx, D2(y, M, N), bare, NULL), sol_copy(ctx, &plain, NULL));
  // Axes of length 1 may have any stride; one axis is one row.
  Tensor odd = dense(x, f32, 4, 1, M, 1, N);
  odd.strides[0] = 12345, odd.strides[2] = -3;
  same("axes of one", sol_copy_dl(ctx, D2(y, M, N), at(&odd), NULL), sol_copy(ctx, &plain, NULL));
  SolCopy row = {want, x, 1, N, 0, 0, SOL_FP32, 0};
  same("one axis", sol_copy_dl(ctx, D1(y, N), D1(x, N), NULL), sol_copy(ctx, &row, NULL));
  // Nothing in it: no pointer, strides of no meaning, no call needed.
  Tensor none = dense(NULL, f32, 3, 4, 0, N, 0);
  none.strides[0] = 5, none.strides[1] = 7;
  CHECK_INT(sol_copy_dl(ctx, at(&none), at(&none), NULL), SOL_OK);
  // Another type comes out converted.
  Tensor narrow = dense(out2, bf16, 2, M, N, 0, 0);
  CHECK_INT(sol_copy_dl(ctx, at(&narrow), D2(x, M, N), NULL), SOL_OK);
  uint16_t first;
  uint32_t bits;
  memcpy(&first, out2, sizeof first);
  memcpy(&bits, x, sizeof bits);
  CHECK(abs((int)first - (int)(bits >> 16)) <= 1);
  sol_context_destroy(ctx);
}

static void refuse(SolContext *ctx, Tensor *bad, const char *part) {
  CHECK_INT(sol_copy_dl(ctx, D2(y, M, N), at(bad), NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "copy: ");
  CHECK_HAS(sol_last_error()->message, part);
  for (int i = 0; i < BIG; i++)
    if (!CHECK(y[i] == -77)) break;
}

TEST(refused) {
  SolContext *ctx = cpu_context();
  Tensor good = dense(x, f32, 2, M, N, 0, 0), bad = good;
  bad.t.device.device_type = kDLCUDA, refuse(ctx, &bad, "x is on device 2:0");
  bad = good, bad.t.dtype.lanes = 4, refuse(ctx, &bad, "4 lanes");
  bad = good, bad.t.dtype.code = 5, bad.t.dtype.bits = 64, refuse(ctx, &bad, "code 5"); // complex
  bad = good, bad.t.dtype.code = kDLUInt, refuse(ctx, &bad, "code 1");
  bad = good, bad.t.ndim = -1, refuse(ctx, &bad, "no shape");
  bad = good, bad.shape[1] = -N, refuse(ctx, &bad, "negative size");
  bad = good, bad.shape[1] = N - 1, refuse(ctx, &bad, "y is 6 x 24, x is 6 x 23");
  bad = good, bad.strides[1] = 2, refuse(ctx, &bad, "must be contiguous");
  bad = good, bad.strides[0] = 0, refuse(ctx, &bad, "broadcast");
  bad = good, bad.strides[0] = -N, refuse(ctx, &bad, "negative stride");
  bad = good, bad.t.data = NULL, refuse(ctx, &bad, "x is NULL");
  bad = good, bad.t.byte_offset = 2, refuse(ctx, &bad, "not aligned");
  bad = dense(x, f32, 3, 2, M / 2, N, 0), bad.strides[0] = 7 * N, refuse(ctx, &bad, "do not collapse");
  bad = dense(x, f32, 3, INT64_MAX, INT64_MAX, 3, 0), refuse(ctx, &bad, "x");
  bad = dense(x, f32, 2, INT64_MAX, INT64_MAX, 0, 0), refuse(ctx, &bad, "x");
  CHECK_INT(sol_copy_dl(ctx, D2(y, M, N), NULL, NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "x is NULL");
  CHECK_INT(sol_copy_dl(NULL, D2(y, M, N), D2(x, M, N), NULL), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_rmsnorm_dl(ctx, D2(y, M, N), D2(x, M, N), D1(w, N + 1), 0, 0, NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "weight has 25 elements, not 24");
  CHECK_INT(sol_transpose_dl(ctx, D2(y, M, N), D2(x, M, N), NULL), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_transpose_dl(ctx, D1(y, N), D1(x, N), NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "axes");
  CHECK_INT(sol_rope_dl(ctx, D1(y, N), D1(x, N), D2(w, 4, 4), D2(b, 4, 4), NULL, 0, NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "(..., H, D)");
  sol_context_destroy(ctx);
}

TEST(other_backends) {
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  SolContext *ctx = NULL;
  if (!CHECK_INT(sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_EMU}, &ctx, NULL), SOL_OK))
    return;
  fill();
  void *from = NULL, *to = NULL;
  CHECK_INT(sol_context_alloc(ctx, sizeof x, &from, NULL), SOL_OK);
  CHECK_INT(sol_context_alloc(ctx, sizeof x, &to, NULL), SOL_OK);
  CHECK_INT(sol_context_write(ctx, from, x, sizeof x, NULL), SOL_OK);
  Tensor a = dense(to, f32, 2, M, N, 0, 0), c = dense(from, f32, 2, M, N, 0, 0);
  CHECK_INT(sol_copy_dl(ctx, at(&a), at(&c), NULL), SOL_ERR_ARGUMENT); // kDLCPU
  a.t.device.device_type = c.t.device.device_type = kDLExtDev;
  CHECK_INT(sol_copy_dl(ctx, at(&a), at(&c), NULL), SOL_OK);
  CHECK_INT(sol_context_read(ctx, y, to, sizeof(float) * M * N, NULL), SOL_OK);
  CHECK(!memcmp(x, y, sizeof(float) * M * N));
  sol_context_destroy(ctx);
}

CHECK_MAIN
