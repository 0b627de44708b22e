// A random column of each row, by the softmax of what top_k and top_p leave of it
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "kernels/common.h"
#include "kernels/select/weight.h"
#include "ops/narrow.h"
#include "ops/select.h"

enum { DRAW = 0, SHORT = 5, WEIGH = 26, GROUPS = 30, KEPT = 36, SERIAL = 39 }; // of the kernels
// Of those of short rows, for each type.
enum { FEW, SOME, MANY, CUT, WEIGHTS, CLOSE_FEW, CLOSE_MANY, SHORTS };
#define SHORT_NAMES(kind)                                                                                    \
  "sol_short_" #kind "_few", "sol_short_" #kind "_some", "sol_short_" #kind "_many",                         \
      "sol_short_" #kind "_cut", "sol_short_" #kind "_weights", "sol_short_" #kind "_close_few",             \
      "sol_short_" #kind "_close_many"
#define SERIAL_NAMES(kind)                                                                                   \
  "sol_serial_" #kind "_1", "sol_serial_" #kind "_2", "sol_serial_" #kind "_3", "sol_serial_" #kind "_4"
static const char *const kernel_names[] = {
    "sol_draw_2_32_32",      "sol_draw_4_64_32",      "sol_draw_2_32_256",    "sol_draw_2_64_256",
    "sol_draw_4_64_256",     SHORT_NAMES(FP32),       SHORT_NAMES(FP16),      SHORT_NAMES(BF16),
    "sol_weigh_2_warp",      "sol_weigh_4_warp",      "sol_weigh_2_block",    "sol_weigh_4_block",
    "sol_groups_FP32_warp",  "sol_groups_FP16_warp",  "sol_groups_BF16_warp", "sol_groups_FP32_block",
    "sol_groups_FP16_block", "sol_groups_BF16_block", "sol_few_FP32",         "sol_few_FP16",
    "sol_few_BF16",          SERIAL_NAMES(FP32),      SERIAL_NAMES(FP16),     SERIAL_NAMES(BF16)};
static const uint32_t shared_bytes[SOL_COUNT(kernel_names)] = {
    LIST_SHARED / 2,      LIST_SHARED / 2,      LIST_SHARED,
    LIST_SHARED,          LIST_SHARED,          [WEIGH] = WEIGH_SHARED / 4 * 5,
    WEIGH_SHARED / 4 * 5, WEIGH_SHARED / 4 * 5, WEIGH_SHARED / 4 * 5};
enum { FEW_SHARED = 48 << 10 }; // at most, of those of a few of a short row
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
  float per = 0x1.715476p-5f / a->temperature; // log2(e) / 32
  return a->temperature == 0 ? 1 : per < SELECT_STEEPEST ? per : SELECT_STEEPEST;
}
static float depth_of(const SolSample *a) { // of a rough cut, in logits
  float depth = SELECT_DEEP / 32.0f / per_of(a);
  return depth < 0x1p120f ? depth : 0x1p120f;
}
static uint64_t high_product(uint64_t a, uint64_t b) {
  return (uint64_t)((unsigned __int128)a * b >> 64);
}

static uint64_t target_of(const SolSample *a, uint64_t whole) { // the weight that top_p needs
  uint64_t target = high_product(whole, share_of(a) << 32);
  return target ? target : 1;
}

// CPU: what the random number falls on, of the elements from `last` on, in order of the columns.
typedef struct Drawn {
  uint64_t order, rest; // its place; how far the number is beyond the elements before it
  float value;
} Drawn;

static Drawn draw(const SelectRow *r, uint64_t last, uint64_t random) {
  float f[CPU_CHUNK];
  Drawn d = {.rest = high_product(random, select_sum(r, last))};
  CPU_CHUNKS(at, c, r->n) {
    cpu_load(r->dtype, r->x, r->start + at, c, f);
    for (int64_t i = 0; i < c; i++) {
      d.order = select_order(f[i], false, at + i), d.value = f[i];
      uint64_t weight = d.order >= last ? select_weight_of(r, f[i]) : 0;
      if (d.rest < weight) return d;
      d.rest -= weight;
    }
  }
  return d;
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

// Whether the k largest are drawn from in their order, and whether all are drawn from by groups (kernels/select/weight.h).
static bool is_refused(const SolSample *a) { // what is drawn and is not among the k largest
  return count_of(a) > 1 && !share_of(a) && a->n <= SELECT_ROUGH && a->n <= SELECT_SHARE * count_of(a);
}
static bool is_kept(const SolSample *a) { // the k largest of a short row, in order of the columns
  return count_of(a) > 1 && a->n <= SELECT_SHORT && !is_refused(a);
}
static bool is_listed(const SolSample *a) {
  return count_of(a) > 1 && count_of(a) <= SELECT_LISTED && !is_refused(a) && !is_kept(a);
}
static bool is_grouped(const SolSample *a) {
  return !count_of(a) && !share_of(a) && a->n > (a->dtype == SOL_FP32 ? SELECT_GROUP : SELECT_WHOLE);
}

static bool is_taken(const SelectRow *r, float value, uint64_t rest, uint64_t random) {
  if (r->hulls && r->dtype != SOL_FP32)
    return select_takes(value, r->top, r->per, r->dtype == SOL_BF16, (uint32_t)rest, random);
  return rest < select_hulled(select_place_of(value, r->top, r->per));
}

static uint64_t listed_weight(const SolSample *a, const SelectRow *r, uint64_t order, float *value) {
  cpu_load(r->dtype, r->x, r->start + select_column(order), 1, value);
  float place = select_place_of(*value, r->top, r->per);
  return share_of(a) ? select_few(place) : select_hull(place);
}

static int64_t choose_listed(const SolSample *a, const SelectRow *r, uint64_t stream) {
  int64_t count = count_of(a);
  uint64_t orders[SELECT_LISTED], whole = 0;
  float value;
  select_list(r, count, orders);
  for (int64_t i = 0; i < count; i++) whole += listed_weight(a, r, orders[i], &value);
  uint64_t target = target_of(a, whole);
  for (uint32_t trial = 0;; trial++) {
    uint64_t random = select_random(stream, trial), wanted = high_product(random, whole), before = 0, weight;
    int64_t i = 0;
    while (before + (weight = listed_weight(a, r, orders[i], &value)) <= wanted) before += weight, i++;
    if (share_of(a) ? before < target : is_taken(r, value, wanted - before, random))
      return select_column(orders[i]);
    if (share_of(a)) whole = before;
  }
}

static SelectRow group_of(const SelectRow *r, int64_t group) { // against its own largest element
  SelectRow g = *r;
  int64_t columns = select_columns(r->n);
  g.start += group * columns, g.n = r->n - group * columns;
  if (g.n > columns) g.n = columns;
  if (!find_top(&g)) g.n = 0; // nothing but NaN weighs nothing
  return g;
}

static int64_t choose_grouped(const SelectRow *r, uint64_t stream) {
  int64_t columns = select_columns(r->n), groups = ops_ceil_div(r->n, columns);
  uint64_t weights[SELECT_GROUPS] = {0}, whole = 0;
  for (int64_t i = 0; i < groups; i++) {
    SelectRow g = group_of(r, i);
    whole += weights[i] = select_group(select_sum(&g, 0), select_place_of(g.top, r->top, r->per));
  }
  for (uint32_t trial = 0;; trial++) {
    uint64_t wanted = high_product(select_random_group(stream, trial), whole);
    int64_t i = 0;
    while (weights[i] <= wanted) wanted -= weights[i++];
    SelectRow g = group_of(r, i);
    uint64_t random = select_random(stream, trial);
    Drawn d = draw(&g, 0, random);
    if (is_taken(&g, d.value, d.rest, random)) return i * columns + select_column(d.order);
  }
}

// The row roughly cut to at least its k largest (kernels/select/weight.h).
static SelectRow roughly_cut(const SolSample *a, SelectRow r) {
  int none = 0, many = 1 << SELECT_HALVINGS;
  SelectRow each = r;
  each.per = 0, each.depth = r.depth = depth_of(a);
  for (int i = 0; i < SELECT_HALVINGS; i++) {
    each.part = (none + many) / 2;
    if (select_sum(&each, 0) >= (uint64_t)count_of(a))
      many = each.part;
    else
      none = each.part;
  }
  r.part = many;
  return r;
}

static int64_t choose(const SolSample *a, int64_t row) {
  SelectRow weighed = {.dtype = a->dtype, .x = a->x, .start = row * ops_stride(a->x_stride, a->n), .n = a->n};
  uint64_t last = 0, stream = select_stream((uint64_t)a->seeds[row], (uint64_t)a->step);
  SelectRow each = weighed;
  weighed.per = per_of(a);
  if (!find_top(&weighed)) return -1;
  SelectRow hulls = weighed;
  hulls.hulls = true;
  if (is_refused(a)) hulls = roughly_cut(a, hulls);
  if (is_listed(a)) return choose_listed(a, &weighed, stream);
  if (is_grouped(a)) return choose_grouped(&hulls, stream);
  bool cut = count_of(a) && !is_refused(a), weights = cut || share_of(a);
  if (cut) last = select_last(&each, 0, (uint64_t)count_of(a));
  uint64_t target = share_of(a) ? target_of(a, select_sum(&weighed, last)) : 0;
  for (uint32_t trial = 0;; trial++) {
    uint64_t random = select_random(stream, trial);
    Drawn d = draw(weights ? &weighed : &hulls, last, random);
    bool taken = target ? select_sum(&weighed, d.order + 1) < target
                        : weights || is_taken(&hulls, d.value, d.rest, random);
    if (is_refused(a)) taken &= select_sum(&each, d.order + 1) < (uint64_t)count_of(a);
    if (taken) return select_column(d.order);
    if (target) last = d.order + 1;
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  (void)ctx;
  const SolSample *a = args;
  for (int64_t row = 0; a->n && row < a->m; row++) cpu_store_id(id_of(a), a->ids, row, choose(a, row));
  return SOL_OK;
}

// Where the k-th largest of n normally distributed elements is, in deviations from their mean, and how far each of its neighbours is from it: where the search for it begins.
// Rational approximation of the normal distribution's quantile, to 5e-4 (Abramowitz and Stegun, 26.2.23).
static void normal_cut(SampleParams *p) {
  double share = ((double)p->k - 0.5) / (double)p->n, tail = share < 0.5 ? share : 1 - share,
         t = sqrt(-2 * log(tail));
  double z =
      t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  p->cut = (float)(share < 0.5 ? z : -z);
  p->cut_apart = (float)(2.5066283 * exp(z * z / 2) / (double)p->n);
}

// The lists of the k largest: lanes of a row have as many entries each, an even number, and there may be one more than k. Lists are an odd number of twos apart, so that few lanes meet in
// a bank.
static uint32_t few_shared(SampleParams *p, int in) {
  int64_t rows = SHORT_THREADS >> p->lane_bits, each = ops_ceil_div(p->k + 1, 1 << p->lane_bits);
  p->each = (int32_t)(each + each % 2);
  p->list = (p->each << p->lane_bits) + (p->lane_bits ? 2 : p->each / 2 % 2 ? 0 : 2);
  return (uint32_t)(rows * p->list * (in == 4 ? 8 + 4 : 4 + 4));
}

// Lanes that share a row so short that they hold it in registers: as few as can, so that what a row costs besides its elements is
// paid by few. Rows that start anywhere have parts of one more chunk.
static bool short_plan(SampleParams *p, int in, bool kept, OpsLaunch *l) {
  enum { LANE_BITS = 5 };
  bool aligned = (((uintptr_t)p->x | (uintptr_t)p->x_stride) & 15) == 0;
  int64_t chunks = ops_ceil_div(p->n * in + (aligned ? 0 : 16 - in), 16);
  int most = in == 4 || p->k ? SHORT_ROUNDS : p->share ? SHORT_LESS : SHORT_MANY;
  int bits =
      in == 4 && !p->share ? LANE_BITS - 1 : LANE_BITS; // fp32 that takes a warp is no faster than a group
  if (chunks > (int64_t)most << bits || (!p->share && p->n > SELECT_WHOLE)) return false;
  while (chunks > (int64_t)most << p->lane_bits) p->lane_bits++;
  if (kept) {
    normal_cut(p);
    while ((l->shared = few_shared(p, in)) > FEW_SHARED) p->lane_bits++;
  }
  p->rounds = (int32_t)ops_ceil_div(chunks, 1 << p->lane_bits);
  if (p->share && !p->k) l->shared = (uint32_t)(p->rounds * SHORT_THREADS * (16 / in) * 4); // weights
  l->block = SHORT_THREADS, l->cluster = 1;
  ops_grid(l->grid, (uint64_t)ops_ceil_div((int64_t)p->m, SHORT_THREADS >> p->lane_bits), 1);
  return true;
}

// Whether rows that have a thread each are so close to each other that their sectors are all there is: then they come by way of shared memory.
static bool close_plan(SampleParams *p, int in, OpsLaunch *l) {
  enum { SECTOR = 32, LANES = 32, CHUNK = 16, BANKS = 8 }; // BANKS: chunks that are in different ones
  int64_t row = p->n * in;
  if (p->k || p->share || p->lane_bits || p->x_stride < row || p->x_stride - row >= SECTOR) return false;
  int64_t chunks = ops_ceil_div(CHUNK - in + (LANES - 1) * p->x_stride + row, CHUNK);
  p->room = (int32_t)(ops_ceil_div(chunks, BANKS) * BANKS);
  l->shared = (uint32_t)(SHORT_THREADS / LANES * p->room * CHUNK);
  return true;
}

// Rows of a few elements, dense or less than a sector apart: one thread a row, many to a block. Words of rows that are PITCH apart would meet in two banks.
static bool serial_plan(const SolContext *ctx, SampleParams *p, int in, OpsLaunch *l) {
  enum { SECTOR = 32, CHUNK = 16, PITCH = 64 };
  int64_t row = p->n * in, stride = p->x_stride;
  if (p->k || p->share || row > SERIAL_CHUNKS * CHUNK || stride < row || stride - row >= SECTOR ||
      stride == PITCH)
    return false;
  NarrowTensor t[NARROW_TENSORS] = {[NARROW_X] = {p->x, stride, in}};
  p->narrow = (NarrowShape){.n = (int32_t)(stride / in)};
  narrow_fill(ctx, t, p->m, stride / in, &p->narrow, l);
  p->narrow.place[NARROW_IDS] += SERIAL_BEYOND;
  l->shared = (uint32_t)p->narrow.place[NARROW_IDS] + 2 * (uint32_t)p->narrow.rows;
  p->rounds = (int32_t)ops_ceil_div(row, CHUNK);
  memset(p->beyond, 0, sizeof p->beyond);
  memset((char *)p->beyond + row - (p->rounds - 1) * CHUNK, 0xff, (size_t)(p->rounds * CHUNK - row));
  return true;
}

static SolStatus launch_greedy(SolContext *ctx, const SolSample *a, SolStream stream) {
  SolArgmax first = {.y = a->ids,
                     .x = a->x,
                     .m = a->m,
                     .n = a->n,
                     .x_stride = a->x_stride,
                     .dtype = a->dtype,
                     .id_dtype = id_of(a)};
  return argmax_launch(ctx, &first, 1, NULL, 0, true, stream);
}

// The few largest from their list; all from registers, where rows are short, by groups, or, with a top_p, weighed.
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
                    .m = (uint64_t)a->m,
                    .columns = (uint32_t)select_columns(a->n),
                    .steps = select_steps_bits(per_of(a), a->dtype == SOL_BF16),
                    .depth = depth_of(a)};
  OpsLaunch l = {.early = true, .params = &p, .bytes = sizeof p};
  int kind = in == 4 ? 0 : p.x_kind == KIND_FP16 ? 1 : 2;
  bool alone;
  if (p.k == 1) return launch_greedy(ctx, a, stream);
  if (is_listed(a)) {
    list_plan(ctx, a->m, a->n, in, p.k, &l);
    l.kernel += DRAW;
  } else if (is_kept(a) && short_plan(&p, in, true, &l)) {
    l.kernel = KEPT + kind;
  } else if (serial_plan(ctx, &p, in, &l)) {
    l.kernel = SERIAL + SERIAL_CHUNKS * kind + p.rounds - 1;
  } else if ((!p.k || is_refused(a)) && short_plan(&p, in, false, &l)) {
    bool few = p.rounds <= (in == 4 ? SHORT_FEW : SHORT_LESS), some = p.rounds <= SHORT_SOME;
    l.kernel = SHORT + SHORTS * kind;
    if (close_plan(&p, in, &l))
      l.kernel += few ? CLOSE_FEW : CLOSE_MANY;
    else
      l.kernel += p.share ? WEIGHTS : p.k ? CUT : few ? FEW : some ? SOME : MANY;
  } else if (!p.k && !p.share) {
    p.rounds = group_plan(ctx, a->m, a->n, in, &l);
    l.kernel = GROUPS + kind + (p.rounds ? 0 : 3);
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

static bool is_cut(const SolSample *a) { // and drawn from by weights, in order of the columns
  return count_of(a) > SELECT_LISTED || is_kept(a);
}

static uint64_t weight_at(const SolSample *a, double value, double top) {
  float place = select_place_of((float)value, (float)top, per_of(a));
  return is_listed(a) ? select_few(place) : select_weight(place);
}

// Hulls, and whether what was found by them is taken; `top` of the row or of the group.
static bool is_coarse(const SolSample *a) {
  return a->dtype != SOL_FP32 && !is_listed(a);
}
static uint64_t hull_at(const SolSample *a, double value, double top) {
  bool bf16 = a->dtype == SOL_BF16;
  if (is_coarse(a)) return select_coarse((float)value, (float)top, select_steps(per_of(a), bf16), bf16);
  return select_hull(select_place_of((float)value, (float)top, per_of(a)));
}
static bool takes(const SolSample *a, double value, double top, uint64_t rest, uint64_t random) {
  bool bf16 = a->dtype == SOL_BF16;
  if (is_coarse(a)) return select_takes((float)value, (float)top, per_of(a), bf16, (uint32_t)rest, random);
  return rest < select_hulled(select_place_of((float)value, (float)top, per_of(a)));
}

// Whether an element is drawn at all, of a row that is roughly cut at that part.
static bool is_left(const SolSample *a, double value, double top, int part) {
  return select_left((float)value, (float)top, depth_of(a), part, a->dtype == SOL_FP32, a->dtype == SOL_BF16);
}
static int part_of(const SolSample *a, const Place *places, double top) {
  int part = 1 << SELECT_HALVINGS;
  for (int step = part / 2; step; step /= 2) {
    int64_t count = 0;
    for (int64_t i = 0; i < a->n; i++) count += is_left(a, places[i].value, top, part - step);
    if (count >= count_of(a)) part -= step;
  }
  return part;
}

static uint64_t first_weights(const SolSample *a, const Place *places, int64_t count, double top) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; i++) sum += weight_at(a, places[i].value, top);
  return sum;
}

// The element that is drawn of `count`, in their order, and how far the random number is beyond those before it.
static Place drawn(const SolSample *a, const Place *places, int64_t count, double top, uint64_t random,
                   uint64_t *rest) {
  uint64_t sum = 0, upto = 0;
  for (int turn = 0;; turn++) {
    for (int64_t i = 0; i < count; i++) {
      uint64_t weight =
          share_of(a) || is_cut(a) ? weight_at(a, places[i].value, top) : hull_at(a, places[i].value, top);
      if (!turn)
        sum += weight;
      else if ((upto += weight) > *rest)
        return *rest -= upto - weight, places[i];
    }
    *rest = high_product(random, sum);
  }
}

static double largest(const Place *places, int64_t count) { // of what is not NaN
  double top = -INFINITY;
  for (int64_t i = 0; i < count; i++) top = places[i].value > top ? places[i].value : top;
  return top;
}

// By groups; places: those of the row, in order of their columns.
static double reference_grouped(const SolSample *a, const Place *places, double top, uint64_t stream) {
  int64_t columns = select_columns(a->n);
  for (uint32_t trial = 0;; trial++) {
    uint64_t whole = 0, upto = 0, rest = 0, wanted = ~0ull;
    for (int turn = 0; turn < 2; turn++) {
      for (int64_t at = 0; at < a->n; at += columns) {
        int64_t count = a->n - at < columns ? a->n - at : columns;
        double of_group = largest(places + at, count);
        uint64_t hulls = 0, before = upto;
        bool any = false;
        for (int64_t i = 0; i < count; i++)
          hulls += hull_at(a, places[at + i].value, of_group), any |= !isnan(places[at + i].value);
        if (!any) hulls = 0;
        uint64_t weight = select_group(hulls, select_place_of((float)of_group, (float)top, per_of(a)));
        whole += turn ? 0 : weight, upto += turn ? weight : 0;
        if (!turn || upto <= wanted || before > wanted) continue;
        uint64_t random = select_random(stream, trial);
        Place p = drawn(a, places + at, count, of_group, random, &rest);
        if (takes(a, p.value, of_group, rest, random)) return (double)p.column;
      }
      wanted = high_product(select_random_group(stream, trial), whole);
    }
  }
}

static double reference_row(const SolSample *a, const double *x, uint64_t seed, Place *places,
                            Place *sorted) {
  int64_t left = count_of(a) && !is_refused(a) ? count_of(a) : a->n,
          most = is_refused(a) ? count_of(a) : a->n;
  uint64_t rest = 0, stream = select_stream(seed, (uint64_t)a->step);
  for (int64_t c = 0; c < a->n; c++) places[c] = sorted[c] = (Place){x[c], c};
  qsort(places, (size_t)a->n, sizeof *places, in_order);
  double top = places[0].value;
  if (isnan(top)) return -1;
  if (is_grouped(a)) return reference_grouped(a, sorted, top, stream);
  bool hulls = !share_of(a) && !is_cut(a);
  while (left && isnan(places[left - 1].value) && !(hulls && is_coarse(a))) left--;
  if (is_refused(a)) {
    int part = part_of(a, places, top);
    while (!is_left(a, places[left - 1].value, top, part)) left--;
  }
  uint64_t target = target_of(a, first_weights(a, places, left, top));
  for (uint32_t trial = 0;; trial++) {
    memcpy(sorted, places, (size_t)left * sizeof *places);
    if (!is_listed(a)) qsort(sorted, (size_t)left, sizeof *sorted, by_column);
    uint64_t random = select_random(stream, trial);
    Place p = drawn(a, sorted, left, top, random, &rest);
    int64_t before = 0;
    while (places[before].column != p.column) before++;
    if (is_cut(a) && !share_of(a)) return (double)p.column;
    if (hulls && before < most && takes(a, p.value, top, rest, random)) return (double)p.column;
    if (share_of(a) && first_weights(a, places, before, top) < target) return (double)p.column;
    if (share_of(a)) left = before;
  }
}

static void reference(const void *args, double *const *at) {
  const SolSample *a = args;
  Place *places = sol_heap_alloc(2 * sizeof *places * (size_t)(a->n ? a->n : 1));
  for (int64_t row = 0; places && a->n && row < a->m; row++)
    at[0][row] = reference_row(a, at[1] + row * a->n, (uint64_t)(int64_t)at[2][row], places, places + a->n);
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
