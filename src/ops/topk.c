// The k largest elements of each row and their columns
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/heap.h"
#include "kernels/common.h"
#include "ops/select.h"

static const char *const kernel_names[] = {
    "sol_topk_2_32_32",     "sol_topk_4_64_32",    "sol_topk_2_32_256", "sol_topk_2_64_256",
    "sol_topk_4_64_256",    "sol_topk_sorted_2",   "sol_topk_sorted_4", "sol_topk_binned_FP32",
    "sol_topk_binned_FP16", "sol_topk_binned_BF16"};
enum { SORTED = 5, BINNED = 7 }; // of the kernels

static const uint32_t shared_bytes[SOL_COUNT(kernel_names)] = {LIST_SHARED / 2, LIST_SHARED / 2, LIST_SHARED,
                                                               LIST_SHARED, LIST_SHARED};

static SolDtype id_of(const SolTopk *a) {
  return ops_or(a->id_dtype, SOL_INT32);
}

static bool make(const OpsCase *c, void *args) {
  SolTopk *a = args;
  int64_t k = c->option == 0 ? 1 : c->option == 1 ? 50 : 1000;
  *a = (SolTopk){.m = c->dim[0], .n = c->dim[1], .dtype = c->dtype, .id_dtype = c->id_dtype};
  a->k = k < a->n ? k : a->n;
  if (c->pad) a->x_stride = a->n + c->pad, a->values_stride = a->k + c->pad, a->ids_stride = a->k + 1;
  return a->n > SELECT_LONG ? c->option == 1 : !c->option || k < a->n;
}

static int views(const void *args, OpsView *v) {
  const SolTopk *a = args;
  v[0] = OPS_VIEW(SolTopk, values, a->dtype, OPS_OUT, .rows = a->m, .cols = a->k, .stride = a->values_stride);
  v[1] = OPS_VIEW(SolTopk, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  v[2] = OPS_VIEW(SolTopk, ids, id_of(a), OPS_OUT, .rows = a->m, .cols = a->k, .stride = a->ids_stride);
  return 3;
}

static SolStatus check(const void *args, SolError *err) {
  const SolTopk *a = args;
  if (!ops_is_real(a->dtype))
    return sol_fail(err, SOL_ERR_ARGUMENT, "x must be fp32, fp16 or bf16, not %s", sol_dtype_name(a->dtype));
  if (a->k < 0 || a->k > TOPK_MOST || a->k > a->n)
    return sol_fail(err, SOL_ERR_ARGUMENT, "k is %lld; it may be up to %d, and up to the columns of x",
                    (long long)a->k, TOPK_MOST);
  if (a->n > INT32_MAX) return sol_fail(err, SOL_ERR_RANGE, "rows of more than 2^31 - 1 elements");
  return ops_check_ids("ids", id_of(a), err);
}

static void cpu_row(const SolTopk *a, int64_t row) {
  int64_t xs = ops_stride(a->x_stride, a->n), size = ops_size(a->dtype);
  SelectRow r = {.dtype = a->dtype, .x = a->x, .start = row * xs, .n = a->n, .nan_first = true};
  uint64_t orders[TOPK_MOST];
  select_list(&r, a->k, orders);
  for (int64_t i = 0; i < a->k; i++) {
    int64_t column = select_column(orders[i]), to = row * ops_stride(a->values_stride, a->k) + i;
    memcpy((char *)a->values + to * size, (const char *)a->x + (row * xs + column) * size, (size_t)size);
    cpu_store_id(id_of(a), a->ids, row * ops_stride(a->ids_stride, a->k) + i, column);
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  (void)ctx;
  const SolTopk *a = args;
  for (int64_t row = 0; a->k && row < a->m; row++) cpu_row(a, row);
  return SOL_OK;
}

static int bits_of(int64_t n) { // of the numbers below n
  int bits = 0;
  while (n > 1 << bits) bits++;
  return bits;
}

// Rows so short that sorting all of it, so many elements at a time, takes fewer instructions than a list: in as few lanes as hold the k largest, and one
// more where elements are wider than what is compared. Where rows are too few to occupy the GPU they have more lanes, so that they take few turns.
static bool sorted_plan(const SolContext *ctx, TopkParams *p, int in, OpsLaunch *l) {
  enum { FEW = 2, OF_FEW = 640, LONGEST = 512, TURNS = 4, WARPS = 8, MOST = 5 }; // FEW, MOST: bits of lanes
  int64_t words = p->k + (in == 4) < p->n ? p->k + (in == 4) : p->n;
  int bits = 0;
  while (words > SORTED_EACH << bits) bits++;
  if (bits > MOST || p->n > (bits > FEW ? LONGEST : OF_FEW)) return false;
  while (p->n > TURNS * SORTED_EACH << bits && (int64_t)p->m << bits < 32 * WARPS * ctx->sms) bits++;
  p->lane_bits = bits;
  p->column_bits = bits_of(p->n);
  p->of_k = (uint32_t)((1 << SORTED_SHIFT) / p->k + 1);
  l->kernel = SORTED + (in == 4);
  l->block = SORTED_THREADS, l->cluster = 1, l->shared = 0;
  ops_grid(l->grid, (uint64_t)ops_ceil_div((int64_t)p->m, SORTED_THREADS >> bits), 1);
  return true;
}

// Rows of which so many elements are wanted that a list of candidates would be much of the row: all of it goes to bins.
static bool binned_plan(TopkParams *p, int in, OpsLaunch *l) {
  enum { FEW = 64 };
  if (p->k <= FEW || p->n > (in == 4 ? BINNED_WIDE : BINNED_NARROW)) return false;
  p->column_bits = bits_of(p->n);
  l->kernel = BINNED + (in == 4 ? 0 : p->x_kind == KIND_FP16 ? 1 : 2);
  l->block = BINNED_THREADS, l->cluster = 1, l->shared = 0;
  ops_grid(l->grid, p->m, 1);
  return true;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolTopk *a = args;
  int in = ops_size(a->dtype);
  if (!a->k) return SOL_OK;
  if (a->k == 1) {
    SolArgmax first = {.y = a->ids,
                       .x = a->x,
                       .m = a->m,
                       .n = a->n,
                       .x_stride = a->x_stride,
                       .dtype = a->dtype,
                       .id_dtype = a->id_dtype};
    return argmax_launch(ctx, &first, ops_stride(a->ids_stride, 1), a->values,
                         ops_stride(a->values_stride, 1), false, stream);
  }
  TopkParams p = {.values = a->values,
                  .ids = a->ids,
                  .x = a->x,
                  .n = a->n,
                  .k = a->k,
                  .values_stride = ops_stride(a->values_stride, a->k),
                  .ids_stride = ops_stride(a->ids_stride, a->k),
                  .x_stride = ops_stride(a->x_stride, a->n) * in,
                  .x_kind = ops_kind(a->dtype),
                  .wide_ids = id_of(a) == SOL_INT64,
                  .m = (uint64_t)a->m};
  OpsLaunch l = {.early = true, .params = &p, .bytes = sizeof p};
  if (!sorted_plan(ctx, &p, in, &l) && !binned_plan(&p, in, &l)) list_plan(ctx, a->m, a->n, in, a->k, &l);
  return ops_launch(ctx, &ops_topk, &l, stream);
}

typedef struct Place {
  double value;
  int64_t column;
} Place;

static int in_order(const void *a, const void *b) { // NaN first, then the larger, then the lower column
  const Place *x = a, *y = b;
  bool x_nan = isnan(x->value), y_nan = isnan(y->value);
  if (x_nan != y_nan) return x_nan ? -1 : 1;
  if (!x_nan && x->value != y->value) return x->value > y->value ? -1 : 1;
  return x->column < y->column ? -1 : 1;
}

static void reference(const void *args, double *const *at) {
  const SolTopk *a = args;
  Place *places = sol_heap_alloc(sizeof *places * (size_t)(a->n ? a->n : 1));
  for (int64_t row = 0; places && row < a->m; row++) {
    for (int64_t c = 0; c < a->n; c++) places[c] = (Place){at[1][row * a->n + c], c};
    qsort(places, (size_t)a->n, sizeof *places, in_order);
    for (int64_t i = 0; i < a->k; i++) {
      at[0][row * a->k + i] = places[i].value;
      at[2][row * a->k + i] = (double)places[i].column;
    }
  }
  sol_heap_free(places);
}

static void cost(const void *args, SolOpArgs *op) {
  const SolTopk *a = args;
  *op = (SolOpArgs){.dim = {a->m, a->n, a->k}, .dtype = a->dtype, .id_dtype = a->id_dtype};
}

static const char *const option_names[] = {"k 1", "k 50", "k 1000"};
static const int64_t bench[][4] = {{1, 128256}, {64, 128256}, {256, 32000}, {64, 50257}, {4096, 4096}};

const OpsDef ops_topk = {
    .name = "topk",
    OPS_ARGS(SolTopk, "MxN"),
    OPS_OPTIONS(option_names),
    OPS_OWN_FUNCTIONS,
    OPS_CASES(select_shapes, bench),
    OPS_KERNELS("topk", kernel_names),
    .shared = shared_bytes,
    .least_shared = LIST_SHARED / LIST_MORE,
};
