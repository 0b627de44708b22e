// K and V of new tokens into a paged cache
#include "kernels/kv_append/kv_append.h"

#include <math.h>

#include "base/error.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"

enum {
#define KV(name) KERNEL_##name,
#include "kernels/kv_append/kv_append.def"
  KERNEL_COUNT
};
static const char *const kernel_names[KERNEL_COUNT] = {
#define KV(name) "sol_kv_append_" #name,
#include "kernels/kv_append/kv_append.def"
};

static const char *const option_names[] = {"", "fp8"};

static SolDtype kv_of(const SolKvAppend *a) {
  return ops_or(a->kv_dtype, a->dtype);
}
static SolDtype id_of(const SolKvAppend *a) {
  return ops_or(a->id_dtype, SOL_INT32);
}
static bool converts(const SolKvAppend *a) {
  return kv_of(a) != a->dtype;
}
static float scale_of(float scale) {
  return scale == 0 ? 1 : scale;
}

// f / scale is f * up * over: the reciprocal alone could overflow.
static KvScale divisor_of(float scale) {
  float by = scale_of(scale), up = fabsf(by) < 0x1p-60f ? 0x1p80f : 1;
  return (KvScale){up, 1 / (by * up)};
}

static bool make(const OpsCase *c, void *args) {
  SolKvAppend *a = args;
  *a = (SolKvAppend){.t = c->dim[0],
                     .h = c->dim[1],
                     .d = c->dim[2],
                     .page_size = 16,
                     .dtype = c->dtype,
                     .id_dtype = c->id_dtype};
  a->pages = a->t / 8 + 2;
  if (c->option) a->kv_dtype = SOL_FP8, a->k_scale = 0.5f, a->v_scale = 0.03f;
  if (c->pad) a->k_stride = a->h * a->d + c->pad, a->v_stride = a->h * a->d + 2 * c->pad;
  return !c->out_dtype;
}

static int views(const void *args, OpsView *v) {
  const SolKvAppend *a = args;
  int64_t wide = ops_times(a->h, a->d), all = ops_times(a->pages, a->page_size);
  v[0] = OPS_VIEW(SolKvAppend, k_cache, kv_of(a), OPS_INOUT, .rows = all, .cols = wide);
  v[1] = OPS_VIEW(SolKvAppend, v_cache, kv_of(a), OPS_INOUT, .rows = all, .cols = wide);
  v[2] = OPS_VIEW(SolKvAppend, k, a->dtype, OPS_IN, .rows = a->t, .cols = wide, .stride = a->k_stride);
  v[3] = OPS_VIEW(SolKvAppend, v, a->dtype, OPS_IN, .rows = a->t, .cols = wide, .stride = a->v_stride);
  v[4] = OPS_VIEW(SolKvAppend, slots, id_of(a), OPS_IN, .rows = 1, .cols = a->t, .fill = OPS_FILL_DISTINCT,
                  .limit = all);
  return 5;
}

static SolStatus check(const void *args, SolError *err) {
  const SolKvAppend *a = args;
  SolDtype kv = kv_of(a);
  bool same = kv == a->dtype && sol_dtype_bits(kv) >= 8, fp8 = kv == SOL_FP8 && ops_is_real(a->dtype);
  if (!same && !fp8)
    return sol_fail(err, SOL_ERR_ARGUMENT, "cannot store %s as %s", sol_dtype_name(a->dtype),
                    sol_dtype_name(kv));
  if (a->t < 0 || a->h < 0 || a->d < 0 || a->pages < 0 || a->page_size < 0)
    return sol_fail(err, SOL_ERR_ARGUMENT, "a size is negative");
  if (ops_times(a->h, a->d) < 0 || ops_times(a->pages, a->page_size) < 0)
    return sol_fail(err, SOL_ERR_RANGE, "the cache is too large to address");
  return ops_check_ids("slots", id_of(a), err);
}

static void cpu_row(const SolKvAppend *a, void *cache, const void *from, int64_t to_row, int64_t at_from,
                    float scale) {
  int64_t wide = a->h * a->d, size = ops_size(a->dtype);
  if (!converts(a)) {
    memcpy((char *)cache + to_row * wide * size, (const char *)from + at_from * size, (size_t)(wide * size));
    return;
  }
  CPU_CHUNKS(at, c, wide) {
    float f[CPU_CHUNK];
    cpu_load(a->dtype, from, at_from + at, c, f);
    for (int64_t i = 0; i < c; i++) f[i] /= scale;
    cpu_store(SOL_FP8, cache, to_row * wide + at, c, f);
  }
}

static void cpu_tokens(const void *args, int64_t begin, int64_t end) {
  const SolKvAppend *a = args;
  int64_t wide = a->h * a->d, ks = ops_stride(a->k_stride, wide), vs = ops_stride(a->v_stride, wide);
  for (int64_t token = begin; token < end; token++) {
    int64_t slot = cpu_id(id_of(a), a->slots, token);
    if (slot < 0 || slot >= a->pages * a->page_size) continue;
    cpu_row(a, a->k_cache, a->k, slot, token * ks, scale_of(a->k_scale));
    cpu_row(a, a->v_cache, a->v, slot, token * vs, scale_of(a->v_scale));
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  const SolKvAppend *a = args;
  cpu_parallel(ctx, a->t, a->t * a->h * a->d, cpu_tokens, a);
  return SOL_OK;
}

// The bytes of the widest access that divides all rows: 16, or 8 where nothing is converted. 0: neither does.
static int64_t unit_of(const SolKvAppend *a, int64_t wide, int64_t ks, int64_t vs) {
  int64_t size = ops_size(a->dtype), to = 16 / size * ops_size(kv_of(a));
  int64_t from = wide * size | ops_align(a->k, ks * size, 2) | ops_align(a->v, vs * size, 2);
  int64_t cache = ops_align(a->k_cache, 0, 1) | ops_align(a->v_cache, 0, 1);
  if (converts(a)) return from % 16 == 0 && cache % to == 0 ? 16 : 0;
  int64_t unit = (from | cache) & -(from | cache);
  return unit >= 16 ? 16 : unit == 8 ? 8 : 0;
}

static int kernel_of(const SolKvAppend *a, int64_t unit) {
  int64_t size = ops_size(a->dtype);
  if (converts(a) && unit) return size == 4 ? KERNEL_fp8_4 : KERNEL_fp8_2;
  if (converts(a)) return size == 4 ? KERNEL_any_fp8_4 : KERNEL_any_fp8_2;
  if (unit) return unit == 16 ? KERNEL_16 : KERNEL_8;
  return size == 1 ? KERNEL_any_1 : size == 2 ? KERNEL_any_2 : KERNEL_any_4;
}

// ---- Short rows ----

// false: they are not for these rows. Of both kinds of kernels the time is estimated as the more of what instructions take and what bytes take,
// in instructions of a thread for a token: the choice depends on a row alone.
static bool plan_short(const SolKvAppend *a, int64_t wide, int64_t ks, int64_t vs, KvShortParams *p) {
  enum { // as `sol audit` counts them, of K and V together
    UNIT = 56,
    CHUNK = 320,     // of 16 bytes, wherever they start
    ENDS = 1000,     // of rows by chunks: L2 gets their sectors piece by piece
    ELEMENT = 2 * 7, // to convert one
    BYTE = 6         // an SM issues 4 times 32 a clock, or three quarters of that, and gets 16 bytes
  };
  int64_t size = ops_size(a->dtype), out = ops_size(kv_of(a)), per = 16 / size, row = wide * out;
  int64_t cache = row | ops_align(a->k_cache, 0, 1) | ops_align(a->v_cache, 0, 1) | 4, unit = cache & -cache;
  int64_t from = ops_align(a->k, ks * size, 2) | ops_align(a->v, vs * size, 2), count = unit / out;
  int64_t places = a->pages * a->page_size;
  bool small =
      row <= INT32_MAX / 2 && ks * size <= INT32_MAX && vs * size <= INT32_MAX && places <= INT32_MAX;
  bool tiny = converts(a) && (divisor_of(a->k_scale).up != 1 || divisor_of(a->v_scale).up != 1);
  if (!small || tiny) return false;
  p->whole = (from & -from) >= count * size;
  int64_t units = row / unit, bytes = 2 * wide * (size + out) * BYTE;
  int64_t as_short = units * (UNIT + (converts(a) ? count * ELEMENT : 0));
  int64_t as_any = ops_ceil_div(wide + per - 1, per) * (CHUNK + (converts(a) ? per * ELEMENT : 0)) + ENDS;
  p->unit = (int32_t)unit, p->row = (uint32_t)row, p->places = (uint32_t)places;
  p->k_step = (uint32_t)(ks * size), p->v_step = (uint32_t)(vs * size);
  p->token = elementwise_divider((uint64_t)units), p->units = elementwise_divider32((uint32_t)units);
  return as_any > bytes && as_short < as_any;
}

static SolStatus launch_short(SolContext *ctx, const SolKvAppend *a, KvShortParams *p, SolStream stream) {
  int64_t size = ops_size(a->dtype);
  p->k_cache = a->k_cache, p->v_cache = a->v_cache, p->k = a->k, p->v = a->v, p->slots = a->slots;
  p->last = a->t - 1, p->kind = ops_kind(a->dtype), p->id_bytes = a->id_dtype == SOL_INT64 ? 8 : 4;
  p->k_over = divisor_of(a->k_scale).over, p->v_over = divisor_of(a->v_scale).over;
  int kernel = converts(a) ? (size == 4 ? KERNEL_short_fp8_4 : KERNEL_short_fp8_2)
               : size == 1 ? KERNEL_short_1
               : size == 2 ? KERNEL_short_2
                           : KERNEL_short_4;
  OpsLaunch l = {.kernel = kernel, .block = 256, .early = true, .params = p, .bytes = sizeof *p};
  ops_grid(l.grid, (uint64_t)ops_ceil_div((int64_t)p->token.by * a->t, KV_UNITS), l.block);
  return ops_launch(ctx, &ops_kv_append, &l, stream);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolKvAppend *a = args;
  if (a->t == 0) return SOL_OK;
  int64_t wide = a->h * a->d, ks = ops_stride(a->k_stride, wide), vs = ops_stride(a->v_stride, wide);
  int64_t unit = unit_of(a, wide, ks, vs),
          per = (unit ? unit : 16) / ops_size(a->dtype); // elements of an item
  KvShortParams brief;
  if (!unit && plan_short(a, wide, ks, vs, &brief)) return launch_short(ctx, a, &brief, stream);
  KvParams p = {.k_cache = a->k_cache,
                .v_cache = a->v_cache,
                .k = a->k,
                .v = a->v,
                .slots = a->slots,
                .token =
                    elementwise_divider((uint64_t)(unit ? wide / per : ops_ceil_div(wide + per - 1, per))),
                .places = a->pages * a->page_size,
                .length = wide,
                .last = a->t - 1,
                .k_stride = unit ? ks / per : ks,
                .v_stride = unit ? vs / per : vs,
                .k_scale = divisor_of(a->k_scale),
                .v_scale = divisor_of(a->v_scale),
                .kind = ops_kind(a->dtype),
                .wide_ids = a->id_dtype == SOL_INT64};
  p.items = p.token.by * (uint64_t)a->t;
  OpsLaunch l = {.kernel = kernel_of(a, unit), .block = 256, .early = true, .params = &p, .bytes = sizeof p};
  enum { WARP_UNITS = 32 * KV_UNITS };
  ops_grid(l.grid, unit == 8 ? (p.items + WARP_UNITS - 1) / WARP_UNITS * 32 : p.items, l.block);
  return ops_launch(ctx, &ops_kv_append, &l, stream);
}

static void reference(const void *args, double *const *at) {
  const SolKvAppend *a = args;
  int64_t wide = a->h * a->d;
  double k_scale = converts(a) ? (double)scale_of(a->k_scale) : 1,
         v_scale = converts(a) ? (double)scale_of(a->v_scale) : 1;
  for (int64_t token = 0; token < a->t; token++) {
    int64_t slot = (int64_t)at[4][token];
    if (slot < 0 || slot >= a->pages * a->page_size) continue;
    for (int64_t i = 0; i < wide; i++) {
      at[0][slot * wide + i] = at[2][token * wide + i] / k_scale;
      at[1][slot * wide + i] = at[3][token * wide + i] / v_scale;
    }
  }
}

static void cost(const void *args, SolOpArgs *op) {
  const SolKvAppend *a = args;
  *op = (SolOpArgs){
      .dim = {a->t, a->h, a->d}, .dtype = a->dtype, .id_dtype = a->id_dtype, .kv_dtype = a->kv_dtype};
}

static const int64_t shapes[][4] = {{1, 1, 1},    {3, 1, 2},    {7, 3, 4},   {5, 1, 31},   {9, 2, 12},
                                    {40, 8, 8},   {17, 4, 64},  {3, 8, 128}, {1, 1, 5125}, {0, 4, 64},
                                    {300, 25, 2}, {90, 1, 114}, {65, 5, 11}};
static const int64_t bench[][4] = {{1, 8, 128}, {512, 8, 128}, {8192, 8, 128}, {32768, 8, 128}};

const OpsDef ops_kv_append = {
    .name = "kv_append",
    OPS_ARGS(SolKvAppend, "TxHxD"),
    OPS_OPTIONS(option_names),
    OPS_OWN_FUNCTIONS,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("kv_append", kernel_names),
};
