// A random column of each row, by the softmax of what top_k and top_p leave of it
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/heap.h"
#include "kernels/select/weight.h"
#include "ops/narrow.h"
#include "ops/select.h"

enum { DRAW = 0, SHORT = 6, WEIGH = 7 }; // of the kernels
static const char *const kernel_names[] = {"sol_draw_2_32_32",  "sol_draw_2_64_32",  "sol_draw_4_64_32",
                                           "sol_draw_2_32_256", "sol_draw_2_64_256", "sol_draw_4_64_256",
                                           "sol_sample_short",  "sol_weigh_2_warp",  "sol_weigh_4_warp",
                                           "sol_weigh_2_block", "sol_weigh_4_block"};
static const uint32_t shared_bytes[SOL_COUNT(kernel_names)] = {
    [WEIGH] = WEIGH_SHARED / 4 * 5, WEIGH_SHARED / 4 * 5, WEIGH_SHARED / 4 * 5, WEIGH_SHARED / 4 * 5};
enum { OPTIONS = 5 };
static const char *const option_names[OPTIONS] = {"", "top_k", "top_p", "top_k top_p", "greedy"};

static SolDtype id_of(const SolSample *a) {
  return ops_or(a->id_dtype, SOL_INT32);
}

static bool make(const OpsCase *c, void *args) {
  SolSample *a = args;
  *a = (SolSample){.m = c->dim[0],
                   .n = c->dim[1],
                   .dtype = c->dtype,
                   .id_dtype = c->id_dtype,
                   .temperature = c->option == 4 ? 0 : 0.8f,
                   .step = 3};
  if (c->option == 1 || c->option == 3) a->top_k = 40;
  if (c->option == 2 || c->option == 3) a->top_p = 0.9f;
  if (c->pad) a->x_stride = a->n + c->pad;
  return (!c->out_dtype || c->out_dtype == c->dtype) && (a->n <= SELECT_LONG || c->option == 3);
}

static int views(const void *args, OpsView *v) {
  const SolSample *a = args;
  v[0] = OPS_VIEW(SolSample, ids, id_of(a), OPS_OUT, .rows = 1, .cols = a->n ? a->m : 0);
  v[1] = OPS_VIEW(SolSample, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  v[2] = OPS_VIEW(SolSample, seeds, SOL_INT64, OPS_IN, .rows = 1, .cols = a->m, .fill = OPS_FILL_IDS,
                  .limit = (int64_t)1 << 40);
  return 3;
}

static SolStatus check(const void *args, SolError *err) {
  const SolSample *a = args;
  if (!ops_is_real(a->dtype))
    return sol_fail(err, SOL_ERR_ARGUMENT, "x must be fp32, fp16 or bf16, not %s", sol_dtype_name(a->dtype));
  if (!(a->temperature >= 0) || isinf(a->temperature))
    return sol_fail(err, SOL_ERR_ARGUMENT, "temperature must be 0 (the largest alone) or more");
  if (a->top_k < 0) return sol_fail(err, SOL_ERR_ARGUMENT, "top_k must not be negative; 0 means all");
  if (!(a->top_p >= 0 && a->top_p <= 1))
    return sol_fail(err, SOL_ERR_ARGUMENT, "top_p must be from 0 to 1; 0 means 1");
  if (a->n > INT32_MAX) return sol_fail(err, SOL_ERR_RANGE, "rows of more than 2^31 - 1 elements");
  return ops_check_ids("ids", id_of(a), err);
}

// What the kernel and the CPU's code get of the arguments.
static int64_t count_of(const SolSample *a) { // 0: all
  int64_t k = a->temperature == 0 ? 1 : a->top_k;
  return k < a->n ? k : 0;
}
static uint64_t share_of(const SolSample *a) {
  double share = floor((double)a->top_p * 0x1p32);
  return a->top_p > 0 && a->top_p < 1 ? (uint64_t)(share < 1 ? 1 : share) : 0;
}
static float per_of(const SolSample *a) {
  return a->temperature == 0 ? 1 : 0x1.715476p23f / a->temperature; // 2^23 log2(e)
}
static uint64_t high_product(uint64_t a, uint64_t b) {
  return (uint64_t)((unsigned __int128)a * b >> 64);
}

// CPU: the column at which the weights of what is kept, in order of the columns, pass `wanted`.
static int64_t pass(const SelectRow *r, uint64_t last, uint64_t wanted) {
  float f[CPU_CHUNK];
  CPU_CHUNKS(at, c, r->n) {
    cpu_load(r->dtype, r->x, r->start + at, c, f);
    for (int64_t i = 0; i < c; i++) {
      bool kept = select_order(f[i], false, at + i) >= last;
      uint64_t weight = kept ? select_weight(f[i], r->top, r->per) : 0;
      if (wanted < weight) return at + i;
      wanted -= weight;
    }
  }
  return -1;
}

// The largest element; false where all are NaN.
static bool find_top(SelectRow *r) {
  float f[CPU_CHUNK];
  bool any = false;
  r->top = -INFINITY;
  CPU_CHUNKS(at, c, r->n) {
    cpu_load(r->dtype, r->x, r->start + at, c, f);
    for (int64_t i = 0; i < c; i++)
      if (f[i] == f[i]) r->top = f[i] > r->top ? f[i] : r->top, any = true;
  }
  return any;
}

static int64_t choose(const SolSample *a, int64_t row) {
  SelectRow each = {.dtype = a->dtype, .x = a->x, .start = row * ops_stride(a->x_stride, a->n), .n = a->n};
  SelectRow weighed = each;
  uint64_t last = 0;
  weighed.per = per_of(a);
  if (!find_top(&weighed)) return -1;
  if (count_of(a)) last = select_last(&each, 0, (uint64_t)count_of(a));
  if (share_of(a)) {
    uint64_t target = high_product(select_sum(&weighed, last), share_of(a) << 32);
    last = select_last(&weighed, last, target ? target : 1);
  }
  uint64_t random = select_random((uint64_t)a->seeds[row], (uint64_t)a->step);
  return pass(&weighed, last, high_product(random, select_sum(&weighed, last)));
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  (void)ctx;
  const SolSample *a = args;
  for (int64_t row = 0; a->n && row < a->m; row++) cpu_store_id(id_of(a), a->ids, row, choose(a, row));
  return SOL_OK;
}

// Short rows in registers; of long ones the few largest in a list, where that is asked for, or all weighed.
static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolSample *a = args;
  int in = ops_size(a->dtype);
  SampleParams p = {.ids = a->ids,
                    .x = a->x,
                    .seeds = a->seeds,
                    .step = (uint64_t)a->step,
                    .n = a->n,
                    .k = count_of(a),
                    .x_stride = ops_stride(a->x_stride, a->n) * in,
                    .share = share_of(a),
                    .per = per_of(a),
                    .x_kind = ops_kind(a->dtype),
                    .wide_ids = id_of(a) == SOL_INT64,
                    .m = (uint64_t)a->m};
  OpsLaunch l = {.early = true, .params = &p, .bytes = sizeof p};
  bool alone;
  if (narrow_holds(a->n, NARROW_NORM)) {
    NarrowTensor t[NARROW_TENSORS] = {[NARROW_X] = {p.x, p.x_stride, in}};
    narrow_plan(ctx, t, p.m, p.n, &p.narrow, &l);
    l.kernel = SHORT;
  } else if (p.k > 1 && p.k <= TOPK_MOST) {
    list_plan(ctx, a->m, a->n, in, p.k, &l);
    l.kernel += DRAW;
  } else {
    p.held = weigh_plan(ctx, a->m, a->n, in, &alone, &l);
    l.kernel = WEIGH + (alone ? 0 : 2) + (in == 4);
  }
  return ops_launch(ctx, &ops_sample, &l, stream);
}

// The weights are whole numbers by definition (kernels/select/weight.h), so that there is one right column: all elements in
// order, those that are kept, and of these, in order of their columns, the one that the random number falls on.
typedef struct Place {
  double value;
  int64_t column;
} Place;

static int in_order(const void *a, const void *b) { // the larger first, then the lower column; NaN last
  const Place *x = a, *y = b;
  bool x_nan = isnan(x->value), y_nan = isnan(y->value);
  if (x_nan != y_nan) return x_nan ? 1 : -1;
  if (!x_nan && x->value != y->value) return x->value > y->value ? -1 : 1;
  return x->column < y->column ? -1 : 1;
}

static int by_column(const void *a, const void *b) {
  return ((const Place *)a)->column < ((const Place *)b)->column ? -1 : 1;
}

static uint64_t first_weights(const SolSample *a, const Place *places, int64_t count, double top) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; i++) sum += select_weight((float)places[i].value, (float)top, per_of(a));
  return sum;
}

static double reference_row(const SolSample *a, const double *x, uint64_t seed, Place *places) {
  int64_t kept = count_of(a) ? count_of(a) : a->n, i = 0;
  for (int64_t c = 0; c < a->n; c++) places[c] = (Place){x[c], c};
  qsort(places, (size_t)a->n, sizeof *places, in_order);
  double top = places[0].value;
  if (isnan(top)) return -1;
  uint64_t target = high_product(first_weights(a, places, kept, top), share_of(a) << 32), sum = 0;
  while (share_of(a) && i < kept && sum < (target ? target : 1))
    sum += first_weights(a, places + i++, 1, top);
  if (share_of(a)) kept = i;
  uint64_t wanted = high_product(select_random(seed, (uint64_t)a->step), first_weights(a, places, kept, top));
  qsort(places, (size_t)kept, sizeof *places, by_column);
  for (i = 0, sum = 0; i < kept; i++)
    if ((sum += first_weights(a, places + i, 1, top)) > wanted) break;
  return (double)places[i].column;
}

static void reference(const void *args, double *const *at) {
  const SolSample *a = args;
  Place *places = sol_heap_alloc(sizeof *places * (size_t)(a->n ? a->n : 1));
  for (int64_t row = 0; places && a->n && row < a->m; row++)
    at[0][row] = reference_row(a, at[1] + row * a->n, (uint64_t)(int64_t)at[2][row], places);
  sol_heap_free(places);
}

static void cost(const void *args, SolOpArgs *op) {
  const SolSample *a = args;
  *op = (SolOpArgs){.dim = {a->m, a->n}, .dtype = a->dtype, .id_dtype = a->id_dtype};
}

static const int64_t bench[][4] = {{1, 128256}, {64, 128256}, {256, 32000}, {64, 50257}};

const OpsDef ops_sample = {
    .name = "sample",
    OPS_ARGS(SolSample, "MxN"),
    OPS_OPTIONS(option_names),
    OPS_OWN_FUNCTIONS,
    OPS_CASES(select_shapes, bench),
    OPS_KERNELS("select", kernel_names),
    .shared = shared_bytes,
    .least_shared = WEIGH_SHARED / 4 * 5,
};
