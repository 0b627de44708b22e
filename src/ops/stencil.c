// y = centre * x + sum over d of side[d-1] * (x at distance d along each axis)
#include "kernels/stencil/stencil.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"

typedef struct Variant {
  int size, radius, rows, blocks; // blocks: that an SM is to hold, of STENCIL_STRIP and STENCIL_BAND
  StencilLayout layout;
} Variant;
static const Variant variants[] = {
#define STENCIL(name, size, radius, rows, layout)        {size, radius, rows, 0, layout},
#define STENCIL_STRIPS(name, size, radius, each, blocks) {size, radius, each, blocks, STENCIL_STRIP},
#define STENCIL_BANDS(name, size, radius, each, blocks)  {size, radius, each, blocks, STENCIL_BAND},
#include "kernels/stencil/stencil.def"
};
enum { KERNEL_COUNT = SOL_COUNT(variants), MOST_RADIUS = 8 };
static const char *const kernel_names[KERNEL_COUNT] = {
#define STENCIL(name, size, radius, rows, layout) #name,
#include "kernels/stencil/stencil.def"
};

// Shared memory of those that walk: stages, and results of 4 bytes.
enum { WALK_SHARED = 108 << 10, TENSOR_SHARED = 88 << 10 };
enum { STRIP_SHARED = 100 << 10, BAND_SHARED = 113 << 10 };
static const uint32_t kernel_shared[KERNEL_COUNT] = {
#define STENCIL(name, size, radius, rows, layout)                                                            \
  (layout) == STENCIL_STRIP ? STRIP_SHARED : (layout) == STENCIL_BAND ? BAND_SHARED : 0,
#define STENCIL_WALKS(name, size, radius, layout) (size) == 4 ? WALK_SHARED : TENSOR_SHARED,
#include "kernels/stencil/stencil.def"
};

static SolDtype out_of(const SolStencil *a) {
  return ops_or(a->out_dtype, a->dtype);
}

static const char *const option_names[] = {"radius 1", "radius 2", "radius 3", "radius 5", "radius 8"};

static bool make(const OpsCase *c, void *args) {
  static const int radius[] = {1, 2, 3, 5, 8};
  SolStencil *a = args;
  *a = (SolStencil){OPS_MATRIX_CASE(c), .radius = radius[c->option], .centre = -1.75f};
  for (int d = 0; d < a->radius; d++) a->side[d] = 0.5f / (float)(d + 1) * (d % 2 ? -1.0f : 1.0f);
  if (c->pad) a->x_stride = a->n + c->pad, a->y_stride = a->n + 2 * c->pad;
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolStencil *a = args;
  v[0] = OPS_VIEW(SolStencil, y, out_of(a), OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride,
                  .unit = 1); // of a row of one element the sum may cancel, its products do not
  v[1] = OPS_VIEW(SolStencil, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  return 2;
}

static SolStatus check(const void *args, SolError *err) {
  const SolStencil *a = args;
  if (a->radius < 1 || a->radius > MOST_RADIUS)
    return sol_fail(err, SOL_ERR_RANGE, "radius must be 1 to %d, not %d", MOST_RADIUS, a->radius);
  return ops_check_reals(a->dtype, out_of(a), err);
}

// Columns first - radius .. first + count + radius - 1 of a row of x, zeros outside.
static void load_around(const SolStencil *a, int64_t row, int64_t first, int64_t count, float *f) {
  int64_t stride = ops_stride(a->x_stride, a->n);
  int64_t begin = first - a->radius, end = first + count + a->radius;
  int64_t from = begin > 0 ? begin : 0, to = cpu_min(end, a->n);
  memset(f, 0, (size_t)(end - begin) * sizeof *f);
  cpu_load(a->dtype, a->x, row * stride + from, to - from, f + (from - begin));
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolStencil *a = args;
  int64_t xs = ops_stride(a->x_stride, a->n), ys = ops_stride(a->y_stride, a->n), radius = a->radius;
  for (int64_t row = begin; row < end; row++) CPU_CHUNKS(at, c, a->n) {
      float around[CPU_CHUNK + 2 * MOST_RADIUS], f[CPU_CHUNK], sum[CPU_CHUNK];
      load_around(a, row, at, c, around);
      for (int64_t i = 0; i < c; i++) sum[i] = a->centre * around[radius + i];
      for (int64_t d = 1; d <= radius; d++) {
        float side = a->side[d - 1];
        for (int64_t i = 0; i < c; i++)
          sum[i] += side * around[radius + i - d] + side * around[radius + i + d];
        for (int64_t other = row - d; other <= row + d; other += 2 * d) {
          if (other < 0 || other >= a->m) continue;
          cpu_load(a->dtype, a->x, other * xs + at, c, f);
          for (int64_t i = 0; i < c; i++) sum[i] += side * f[i];
        }
      }
      cpu_store(out_of(a), a->y, row * ys + at, c, sum);
    }
}

// ---- Tensor cores ----

// Coefficient 0 is the centre's, d that of distance d.
static float coefficient(const SolStencil *a, int d) {
  return d ? a->side[d - 1] : a->centre;
}

// The coefficients as sums of pieces of x's type. An error of 2^-17 is far below the rounding of a result of 2 bytes; fp16, whose
// exponents are few, holds coefficients relative to the largest. false: they cannot be split so.
static bool split_coefficients(const SolStencil *a, StencilWalkParams *p) {
  bool half = a->dtype == SOL_FP16;
  double allowed = ldexp(1, ops_size(out_of(a)) == 2 ? -17 : -21);
  float largest = 0;
  int up = 0;
  for (int d = 0; d <= a->radius; d++) largest = fmaxf(largest, fabsf(coefficient(a, d)));
  if (!isfinite(largest)) return false;
  if (half && largest > 0) up = 14 - ilogbf(largest);
  if (abs(up) > 100) return false;
  p->scale = ldexpf(1, -up);
  p->pieces = 1;
  for (int d = 0; d <= a->radius; d++) {
    double whole = ldexp((double)coefficient(a, d), up), left = whole;
    if (isnan(whole)) return false;
    for (int k = 0; k < (half ? 2 : STENCIL_PIECES) && fabs(left) > allowed * fabs(whole); k++) {
      float f = (float)left;
      cpu_store(a->dtype, &p->piece[k][d], 0, 1, &f);
      cpu_load(a->dtype, &p->piece[k][d], 0, 1, &f);
      left -= (double)f;
      if (k >= p->pieces) p->pieces = k + 1;
    }
    if (fabs(left) > allowed * fabs(whole)) return false;
  }
  return true;
}

enum {              // of fp32
  WALK_MOST = 512,  // columns
  WALK_STEP = 128,  // of which two warps have eight rows each
  WALK_RESULTS = 32 // bytes of a thread: two rows of four columns
};

// How strips are cut into units of rows: blocks are to have equally many, and few rows are to be read twice.
static void cut_rows(const SolStencil *a, StencilWalkParams *p, int64_t blocks) {
  enum { MOST_TURNS = 8 }; // units that a block has one after another
  int64_t groups = ops_ceil_div(a->m, WALK_ROWS), least = INT64_MAX;
  for (int64_t turns = 1; turns <= MOST_TURNS; turns++) {
    int64_t segments = cpu_min(turns * blocks / p->strips, groups);
    if (segments < 1) segments = 1;
    int64_t each = ops_ceil_div(groups, segments), units = p->strips * ops_ceil_div(groups, each);
    int64_t cost = ops_ceil_div(units, blocks) * (each + 1);
    if (cost < least) least = cost, p->rows = (int32_t)(each * WALK_ROWS), p->units = (uint32_t)units;
  }
}

// Columns of a strip, of which `pieces` are below each other: up to `most`, in whole multiples of `step`.
static int64_t walk_columns(int64_t n, int64_t most, int64_t step, int64_t pieces) {
  return ops_ceil_div(ops_ceil_div(n, ops_ceil_div(n, most * pieces) * pieces), step) * step;
}

// Strips of up to `most` columns, in whole multiples of `step`, for each of which a block has `threads`. In shared memory: `ring` stages, results of
// `out` bytes that lie as in y (0: none), and `results` bytes of each thread.
static void plan_walk(const SolContext *ctx, const SolStencil *a, StencilWalkParams *p, int64_t most,
                      int64_t step, int threads, int ring, int out, int results, OpsLaunch *l) {
  enum { SM_THREADS = 512, SHARED = 220 << 10 };
  int size = ops_size(a->dtype);
  p->x_end = (const char *)a->x + ((a->m - 1) * p->x_stride + a->n) * size;
  p->x_step = p->x_stride * size * WALK_ROWS, p->y_step = p->y_stride * ops_size(out_of(a)) * WALK_ROWS;
  int64_t pieces =
      p->row_mask ? WALK_ROWS >> p->group_bits : 1; // next to each other that are below each other in a stage
  p->columns = (int32_t)walk_columns(a->n, most, step, pieces);
  p->strips = (uint32_t)ops_ceil_div(a->n, p->columns * pieces);
  // An odd number of 16 bytes from row to row: eight rows lie in different banks.
  p->chunks = (p->columns + 16) * size / 16 + 1;
  p->x_pitch = p->chunks * 16;
  p->y_pitch = p->columns * out + 16;
  p->stage_bytes = WALK_ROWS * p->x_pitch;
  p->y_place = ring * p->stage_bytes;
  l->block = (uint32_t)(p->columns / step * threads);
  l->shared = (uint32_t)(p->y_place + (out ? WALK_ROWS * p->y_pitch : 0)) + l->block * (uint32_t)results;
  int64_t blocks = cpu_min(SM_THREADS / l->block, SHARED / (l->shared + 2048)) * ctx->sms;
  cut_rows(a, p, blocks);
  l->grid[0] = (uint32_t)cpu_min(p->units, blocks);
}

// ---- Strips ----

// Columns that fit a strip, with those computed beyond it: up to a sector. The last one is not stored where results start in the middle of a word.
static int64_t strip_columns(const SolStencil *a, int each) {
  return 32 * each - 32 / ops_size(out_of(a));
}

// The kernel that takes fewest instructions for a row of x; -1: there is none for the radius.
static int pick_strip(const SolStencil *a) {
  enum { ROW = 50 }; // instructions of a row of a strip beside those of a lane's columns: an estimate
  int best = -1;
  int64_t least = INT64_MAX;
  for (int k = 0; k < KERNEL_COUNT; k++) {
    const Variant *v = &variants[k];
    if (v->layout != STENCIL_STRIP || v->size != ops_size(a->dtype) || v->radius != a->radius) continue;
    int64_t cost = ops_ceil_div(a->n, strip_columns(a, v->rows)) * (ROW + (4 * v->radius + 4) * v->rows);
    if (cost < least) least = cost, best = k;
  }
  return best;
}

// Rows of a warp's tile: more of them share the rows around and what a tile costs besides, as long as an SM's shared memory holds as many blocks as its registers do; fewer where SMs would
// get unequal numbers of tiles. Not of radius 1 and 4 bytes: there memory binds, of which fewer blocks have less on its way.
static int64_t strip_rows(const SolContext *ctx, const SolStencil *a, const Variant *v, int64_t strips) {
  // Instructions of a warp, as in the machine code: for a tile, a row that is brought and added up and down, what a row of its own takes more, and the same for each of a lane's columns.
  enum { TILE = 300, ROW = 75, OWN = 80, COLUMN = 4, OWN_COLUMN = 8, SHARED = 220 << 10, RESERVED = 1 << 10 };
  int64_t size = v->size, radius = v->radius, each = v->rows, best = 1, least = INT64_MAX;
  int64_t most = size == 2 && radius > 1 ? STRIP_ROWS : STRIP_LEAST;
  for (int64_t rows = 1; rows <= cpu_min(most, ops_ceil_div(a->m, STRIP_WARPS)); rows++) {
    int64_t bytes = STRIP_BYTES(size, ops_size(out_of(a)), radius, each, rows) + RESERVED;
    if (rows > STRIP_LEAST && bytes * v->blocks > SHARED) break;
    int64_t tiles = strips * ops_ceil_div(a->m, rows * STRIP_WARPS);
    int64_t cost = ops_ceil_div(tiles, ctx->sms) *
                   (TILE + (rows + 2 * radius) * (ROW + COLUMN * each) + rows * (OWN + OWN_COLUMN * each));
    if (cost < least) least = cost, best = rows;
  }
  return best;
}

static void plan_strip(const SolContext *ctx, const SolStencil *a, StencilStripParams *p, const Variant *v,
                       OpsLaunch *l) {
  int size = ops_size(a->dtype), out = ops_size(out_of(a)), each = v->rows;
  p->x_end = (const char *)a->x + ((a->m - 1) * p->x_stride + a->n) * size;
  p->beyond = 32 / out - 1;
  p->strips = (uint32_t)ops_ceil_div(a->n, strip_columns(a, each));
  p->columns = (int32_t)(a->n / p->strips), p->wider = (uint32_t)(a->n % p->strips);
  p->rows = (int32_t)strip_rows(ctx, a, v, p->strips);
  l->block = 32 * STRIP_WARPS;
  l->shared = (uint32_t)STRIP_BYTES(size, out, a->radius, each, p->rows);
  l->grid[0] = (uint32_t)(p->strips * ops_ceil_div(a->m, p->rows * STRIP_WARPS));
}

// ---- Bands ----

typedef struct BandPlan {
  int64_t strips, columns, beyond, groups, down, tiles; // down: threads below each other
  int64_t slot, x_pitch, y_pitch, x_skew, buffer;
  double cost;
} BandPlan;

// A tile of `down` times eight rows, and as many columns as `most` threads next to each other have, or fewer in equal strips. false: there is no space.
static bool band_size(const SolContext *ctx, const SolStencil *a, const Variant *v, int before, int64_t most,
                      int64_t down, BandPlan *b) {
  // Instructions beside those of sums, for a row of a thread, a chunk, a tile: estimates.
  enum { ROW = 10, CHUNK = 7, TURN = 150 };
  int64_t size = ops_size(a->dtype), out = ops_size(out_of(a)), each = v->rows, radius = v->radius;
  int64_t n = a->n + before, beyond = most * each >= n ? 0 : 32 / out;
  if (most * each <= 2 * beyond) return false;
  b->strips = ops_ceil_div(n, most * each - beyond);
  b->columns = ops_ceil_div(ops_ceil_div(n, b->strips), 2) * 2;
  if (b->strips > 1 && b->columns < 32) return false;
  b->strips = ops_ceil_div(n, b->columns);
  b->beyond = b->strips > 1 ? 32 / out : 0;
  b->groups = ops_ceil_div(b->columns + b->beyond, each);
  b->down = cpu_min(down, ops_ceil_div(a->m, STENCIL_EIGHT));
  int64_t chunks = ops_ceil_div(15 + (b->groups * each + 2 * radius + 2) * size, 16),
          rows = b->down * STENCIL_EIGHT;
  b->slot = chunks * 16;
  b->x_pitch = b->slot + ops_stride(a->x_stride, a->n) * size % 16;
  int64_t off = b->groups * each * size - STENCIL_EIGHT * b->x_pitch;
  b->x_skew = b->groups < 32 && b->down > 1 ? ((off % 128 + 128 + 8) / 16 * 16) % 128 : 0;
  bool run = b->strips == 1 && ops_stride(a->y_stride, a->n) == a->n;
  b->y_pitch =
      run ? a->n * out
          : ((b->columns + b->beyond) * out + 31) / 16 * 16 + ops_stride(a->y_stride, a->n) * out % 16;
  int64_t x_bytes = (rows + 2 * radius) * b->x_pitch + (b->down + 3) * b->x_skew + 32,
          y_bytes = rows * b->y_pitch + 64;
  b->buffer = ((x_bytes > y_bytes ? x_bytes : y_bytes) + 127) / 128 * 128;
  if (2 * b->buffer > BAND_SHARED || 2 * b->buffer > ((220 << 10) / v->blocks)) return false;
  b->tiles = b->strips * ops_ceil_div(a->m, rows);
  double own = (double)(each * (4 * radius + 1 + 3) + ROW),
         warps = (double)ops_ceil_div(b->groups * b->down, 32);
  double instructions =
      warps * (STENCIL_EIGHT * own + (double)(2 * radius) * 2 * (double)each + TURN) +
      (double)((rows + 2 * radius) * chunks + rows * ops_ceil_div(b->columns * out, 16)) / 32 * CHUNK;
  double bytes = (double)((rows + 2 * radius) * b->slot + rows * b->columns * out) / 5;
  b->cost = (instructions + bytes) * (double)ops_ceil_div(b->tiles, (int64_t)v->blocks * ctx->sms);
  return true;
}

// Whether bands are faster than what else there is, by what an H200 took for each of these kernels. Narrow rows: a thread of a large radius reads all it needs by
// single elements without them, and tiles for tensor cores are mostly empty. Longer ones: where lanes of strips have no columns. It depends on a row alone, as the
// order of sums of the tensor cores is another one.
static bool is_banded(const SolStencil *a, bool narrow) {
  enum {
    LEAST = 28, // columns: of fewer rows come into shared memory by chunks that are mostly other rows'
    MOST = 1024 // of longer rows tiles for tensor cores are full
  };
  if (ops_size(a->dtype) == 4) {
    // Instructions of an element beside its multiply-adds, as `sol audit` counts them. Strips of walking blocks have more columns than a row.
    enum { BAND = 42, WALK = 29 };
    int64_t adds = 4 * a->radius + 1, columns = walk_columns(a->n, WALK_MOST, WALK_STEP, 1);
    bool walks =
        a->radius > 4 && !narrow &&
        (double)(ops_ceil_div(a->n, columns) * columns * (adds + WALK)) < (double)(a->n * (adds + BAND));
    return a->radius > 3 && a->n >= LEAST && !walks;
  }
  if (a->radius > 5) return false;
  if (a->radius > 3 || narrow) return a->radius > 2 && a->n >= LEAST && a->n <= MOST;
  const Variant *v = &variants[pick_strip(a)];
  int64_t lanes = ops_ceil_div(a->n, strip_columns(a, v->rows)) * 32 * v->rows;
  return (double)lanes > (a->radius == 1 ? 1.4 : 1.1) * (double)a->n;
}

// false: no tile has space in shared memory.
static bool plan_band(const SolContext *ctx, const SolStencil *a, const Variant *v, StencilBandParams *p,
                      OpsLaunch *l) {
  int size = ops_size(a->dtype);
  p->before = size == 2 ? (int32_t)((uintptr_t)a->x / 2 % 2) : 0;
  BandPlan best = {.cost = INFINITY}, b;
  int64_t whole = ops_ceil_div(a->n + p->before, v->rows); // threads that a row takes
  for (int threads = STENCIL_THREADS; threads >= 64; threads /= 2)
    for (int i = 1; i <= 8; i++) {
      if (band_size(ctx, a, v, p->before, threads / i, i, &b) && b.cost < best.cost) best = b;
      int64_t below = threads / whole * (8 + i) / 16;
      if (below > 8 && band_size(ctx, a, v, p->before, whole, below, &b) && b.cost < best.cost) best = b;
    }
  if (!isfinite(best.cost)) return false;
  int64_t row = p->x_stride * size, out = ops_size(out_of(a)),
          blocks = cpu_min(best.tiles, (int64_t)v->blocks * ctx->sms);
  p->x_end = (const char *)a->x + ((a->m - 1) * p->x_stride + a->n) * size;
  p->strips = (uint32_t)best.strips, p->columns = (int32_t)best.columns, p->beyond = (int32_t)best.beyond;
  p->rows = (int32_t)(best.down * STENCIL_EIGHT), p->groups = (int32_t)best.groups;
  p->strip_step = (uint32_t)(blocks % best.strips), p->row_step = blocks / best.strips * p->rows;
  p->x_step = p->row_step * row + (int64_t)p->strip_step * best.columns * size;
  p->y_step = (p->row_step * p->y_stride + (int64_t)p->strip_step * best.columns) * out;
  p->x_turn = p->rows * row - best.strips * best.columns * size;
  p->y_turn = (p->rows * p->y_stride - best.strips * best.columns) * out;
  p->inner = v->radius + ops_ceil_div((v->radius + 1) * size + 15, row);
  p->inner_end = a->m - v->radius - ops_ceil_div(v->radius * size + 16, row);
  p->slot = (int32_t)best.slot, p->x_pitch = (int32_t)best.x_pitch, p->x_skew = (int32_t)best.x_skew;
  p->y_pitch = (int32_t)best.y_pitch, p->buffer = (int32_t)best.buffer;
  p->run = best.strips == 1 && p->y_stride == a->n, p->odd = size == 2 && p->x_stride % 2;
  p->y_turns = p->y_stride % 2 != 0;
  while (p->lane_bits < 5 && p->slot / 16 > 8 << p->lane_bits) p->lane_bits++;
  l->block = (uint32_t)(ops_ceil_div(best.groups * best.down, 32) * 32);
  l->shared = (uint32_t)(2 * best.buffer);
  l->grid[0] = (uint32_t)blocks;
  return true;
}

// Blocks of 8 warps, fewer for short rows: so many registers and so much shared memory that an SM has 16 warps.
static bool plan_tensor(const SolContext *ctx, const SolStencil *a, StencilWalkParams *p, OpsLaunch *l) {
  int size = ops_size(a->dtype), out = ops_size(out_of(a)), step = 2 * TENSOR_COLUMNS;
  if (!split_coefficients(a, p)) return false;
  p->group_bits = 4;
  if (a->m <= WALK_ROWS / 2) {
    p->group_bits = a->m <= 2 ? 1 : a->m <= 4 ? 2 : 3;
    p->row_mask = (1 << p->group_bits) - 1;
  }
  p->y_unit = ops_align(a->y, p->y_stride * out, a->m);
  p->odd = ops_align(a->x, p->x_stride * size, a->m) < 4;
  plan_walk(ctx, a, p, STENCIL_THREADS / 32 * step, step, 32, TENSOR_RING, out, 0, l);
  return true;
}

static bool plan_fp32(const SolContext *ctx, const SolStencil *a, bool wide, StencilWalkParams *p,
                      OpsLaunch *l) {
  p->group_bits = 4;
  plan_walk(ctx, a, p, WALK_MOST, WALK_STEP, 64, WALK_RING, 0, wide ? 0 : WALK_RESULTS, l);
  return true;
}

// Fields that the parameters of the kernels for rows have as StencilParams `p` has them.
#define STENCIL_TENSORS(a, p)                                                                                \
  .y = (a)->y, .x = (a)->x, .m = (a)->m, .n = (a)->n, .y_stride = (p).y_stride, .x_stride = (p).x_stride,    \
  .x_kind = (p).x_kind, .y_kind = (p).y_kind, .centre = (a)->centre

// What the kernels are chosen by. flat: one row; narrow: short ones; whole: aligned vectors, of y of so many bytes; wide: longer ones of these.
typedef struct Rows {
  int size, out, per, vector; // bytes of an element of x, of y; elements of 16 bytes of x
  bool flat, narrow, whole, wide;
} Rows;

static Rows rows_of(const SolStencil *a, const StencilParams *p) {
  int size = ops_size(a->dtype), out = ops_size(out_of(a)), per = 16 / size;
  Rows r = {size, out, per, per * out > 16 ? 16 : per * out, a->m == 1, false, false, false};
  r.whole = a->n % per == 0 && ops_align(a->x, p->x_stride * size, a->m) == 16 &&
            ops_align(a->y, p->y_stride * out, a->m) >= r.vector;
  r.narrow = !r.flat && a->n <= STENCIL_SHORT, r.wide = !r.flat && !r.narrow && r.whole;
  return r;
}

// The first kernel of a layout that has the radius, or KERNEL_COUNT.
static int kernel_of(const SolStencil *a, int size, StencilLayout layout) {
  int k = 0;
  while (k < KERNEL_COUNT &&
         (variants[k].size != size || variants[k].radius < a->radius || variants[k].layout != layout))
    k++;
  return k;
}

// These launch a kernel, *status, or return false where it is not for such rows.
static bool launch_band(SolContext *ctx, const SolStencil *a, const StencilParams *p, Rows r,
                        SolStream stream, SolStatus *status) {
  int band = kernel_of(a, r.size, STENCIL_BAND);
  if (r.flat || r.wide || (r.whole && a->radius <= 4) || !is_banded(a, r.narrow) || band == KERNEL_COUNT ||
      !ops_has_kernel(ctx, &ops_stencil, band))
    return false;
  StencilBandParams b = {STENCIL_TENSORS(a, *p), .radius = a->radius};
  memcpy(b.side, a->side, sizeof b.side);
  OpsLaunch l = {.kernel = band, .early = true, .params = &b, .bytes = sizeof b};
  if (!plan_band(ctx, a, &variants[band], &b, &l)) return false;
  return *status = ops_launch(ctx, &ops_stencil, &l, stream), true;
}

static bool launch_strip(SolContext *ctx, const SolStencil *a, const StencilParams *p, Rows r,
                         SolStream stream, SolStatus *status) {
  int strips = r.flat || r.narrow || r.wide ? -1 : pick_strip(a);
  if (strips < 0 || !ops_has_kernel(ctx, &ops_stencil, strips)) return false;
  StencilStripParams s = {STENCIL_TENSORS(a, *p)};
  memcpy(s.side, a->side, sizeof s.side);
  OpsLaunch l = {.kernel = strips, .early = true, .params = &s, .bytes = sizeof s};
  plan_strip(ctx, a, &s, &variants[strips], &l);
  return *status = ops_launch(ctx, &ops_stencil, &l, stream), true;
}

// Small radii are faster without: fewer instructions there.
static bool launch_walk(SolContext *ctx, const SolStencil *a, const StencilParams *p, Rows r,
                        SolStream stream, SolStatus *status) {
  StencilWalkParams t = {STENCIL_TENSORS(a, *p), .radius = a->radius};
  memcpy(t.side, a->side, sizeof t.side);
  OpsLaunch l = {.kernel = kernel_of(a, r.size, r.size == 4 && !r.wide ? STENCIL_WALK_ANY : STENCIL_WALK),
                 .block = STENCIL_THREADS,
                 .early = true,
                 .params = &t,
                 .bytes = sizeof t};
  bool walks = !r.flat && (r.size == 2 ? a->radius > (r.whole ? 4 : 2) && plan_tensor(ctx, a, &t, &l)
                                       : !r.narrow && a->radius > 4 && plan_fp32(ctx, a, r.wide, &t, &l));
  if (!walks || !ops_has_kernel(ctx, &ops_stencil, l.kernel)) return false;
  return *status = ops_launch(ctx, &ops_stencil, &l, stream), true;
}

// The tiles of a kernel, and its blocks.
static uint64_t set_tiles(const SolStencil *a, const Variant *v, Rows r, StencilParams *p) {
  if (v->layout == STENCIL_FLAT || v->layout == STENCIL_DENSE) {
    p->head = (int32_t)((uintptr_t)a->x % 16 / (uintptr_t)r.size);
    p->y_wide = ((uintptr_t)a->y - (uintptr_t)(p->head * r.out)) % (uintptr_t)r.vector == 0;
    p->strips = (uint64_t)ops_ceil_div(a->m * a->n + p->head, (int64_t)r.per * STENCIL_THREADS);
    return p->tiles = p->strips;
  }
  if (r.narrow && (v->layout == STENCIL_NARROW || v->layout == STENCIL_WIDE)) {
    p->narrow = true;
    p->strips = (uint64_t)(v->layout == STENCIL_WIDE ? a->n / r.per : a->n);
    p->tiles = p->strips * (uint64_t)ops_ceil_div(a->m, v->rows);
    return (uint64_t)ops_ceil_div((int64_t)p->tiles, STENCIL_THREADS);
  }
  int rows = v->rows, warps = STENCIL_THREADS / 32,
      each = v->layout == STENCIL_WIDE ? r.per : STENCIL_COLUMNS;
  p->warps_down = 1;
  while ((int)p->warps_down < warps && (int64_t)p->warps_down * rows < a->m) p->warps_down *= 2;
  p->strips = (uint64_t)ops_ceil_div(a->n, 32 * each * (warps / (int)p->warps_down));
  return p->tiles = p->strips * (uint64_t)ops_ceil_div(a->m, rows * (int)p->warps_down);
}

// A vector of four elements is too few for the many loads of a large radius. Where tensor cores cannot be used, larger radii of 2-byte
// elements have one kernel for all rows. dense: also longer rows that are not whole vectors, where the first and last row, whose elements
// are computed one by one, are few.
static StencilLayout layout_of(const SolStencil *a, const StencilParams *p, Rows r) {
  enum { MANY_ROWS = 64 };
  bool odd = !r.flat && !r.narrow && !r.wide && r.size == 2 && a->radius == 1 && a->m >= MANY_ROWS;
  bool dense =
      (odd || (r.narrow && !r.whole && a->radius <= 2)) && p->x_stride == a->n && p->y_stride == a->n;
  return r.flat                                        ? STENCIL_FLAT
         : dense                                       ? STENCIL_DENSE
         : r.whole && a->radius <= 4                   ? STENCIL_WIDE
         : r.narrow && (r.size == 4 || a->radius <= 2) ? STENCIL_NARROW
                                                       : STENCIL_ANY;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolStencil *a = args;
  StencilParams p = {.y = a->y,
                     .x = a->x,
                     .m = a->m,
                     .n = a->n,
                     .y_stride = ops_stride(a->y_stride, a->n),
                     .x_stride = ops_stride(a->x_stride, a->n),
                     .x_kind = ops_kind(a->dtype),
                     .y_kind = ops_kind(out_of(a)),
                     .radius = a->radius,
                     .centre = a->centre};
  memcpy(p.side, a->side, sizeof p.side);
  Rows r = rows_of(a, &p);
  SolStatus status;
  if (launch_band(ctx, a, &p, r, stream, &status) || launch_strip(ctx, a, &p, r, stream, &status) ||
      launch_walk(ctx, a, &p, r, stream, &status))
    return status;
  StencilLayout layout = layout_of(a, &p, r);
  bool by_chunks = layout == STENCIL_FLAT || layout == STENCIL_DENSE;
  OpsLaunch l = {.kernel = kernel_of(a, r.size, layout),
                 .block = STENCIL_THREADS,
                 .early = true,
                 .params = &p,
                 .bytes = sizeof p};
  ops_grid(l.grid, set_tiles(a, &variants[l.kernel], r, &p) * STENCIL_THREADS, STENCIL_THREADS);
  // Where blocks compute for long, few loads are in flight: later tiles are prefetched, a few megabytes ahead.
  if (layout == STENCIL_DENSE ? a->radius <= 2
                              : a->radius > 2 && (layout == STENCIL_FLAT || (r.wide && a->radius <= 4)))
    p.ahead = (uint32_t)ctx->sms * (by_chunks ? 8 : 4);
  return ops_launch(ctx, &ops_stencil, &l, stream);
}

static double at_or_zero(const SolStencil *a, const double *x, int64_t i, int64_t j) {
  return i < 0 || i >= a->m || j < 0 || j >= a->n ? 0 : x[i * a->n + j];
}

static void reference(const void *args, double *const *at) {
  const SolStencil *a = args;
  for (int64_t i = 0; i < a->m; i++)
    for (int64_t j = 0; j < a->n; j++) {
      double sum = (double)a->centre * at[1][i * a->n + j];
      for (int d = 1; d <= a->radius; d++) {
        double side = (double)a->side[d - 1];
        sum += side * at_or_zero(a, at[1], i, j - d) + side * at_or_zero(a, at[1], i, j + d);
        sum += side * at_or_zero(a, at[1], i - d, j) + side * at_or_zero(a, at[1], i + d, j);
      }
      at[0][i * a->n + j] = sum;
    }
}

static void cost(const void *args, SolOpArgs *op) {
  const SolStencil *a = args;
  *op = (SolOpArgs){OPS_MATRIX_COST(a), .radius = a->radius};
  if (a->m == 1) op->dim[0] = a->n, op->dim[1] = 0;
}

// MxN: smaller than the stencil, partial tiles, several tiles in both directions, and single rows.
static const int64_t shapes[][4] = {
    {1, 1},    {1, 3},    {5, 2},    {33, 31},  {1, 769},  {17, 128},  {40, 300},
    {70, 132}, {1, 4096}, {3, 1023}, {1, 8191}, {64, 136}, {0, 64},    {301, 11},
    {65, 64},  {90, 8},   {150, 45}, {3, 90},   {19, 700}, {45, 1021},
};
static const int64_t bench[][4] = {{1, 1 << 25}, {4096, 4096}, {8192, 8192}, {3001, 5125}};

const OpsDef ops_stencil = {
    .name = "stencil",
    OPS_ARGS(SolStencil, "MxN"),
    OPS_OPTIONS(option_names),
    OPS_OWN_ROWS,
    .slack = 64, // up to 33 products, each rounded, of either sign
    OPS_CASES(shapes, bench),
    OPS_KERNELS("stencil", kernel_names),
    .shared = kernel_shared,
};
