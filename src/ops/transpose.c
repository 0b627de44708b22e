// y[b][j][i] = x[b][i][j]
#include "kernels/transpose/transpose.h"
#include "base/error.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"

typedef enum Kind {
  WIDE,
  ODD,
  PLAIN,
  DIRECT,
  FEW_ROWS,
  FEW_COLUMNS,
  SINGLE,
  GATHER,
  SHIFT,
  CHUNKS
} Kind; // PLAIN: ODD, where there are few tiles
typedef struct Tile {
  int size;
  Kind kind;
  int64_t tall, wide; // the part of a tile that is stored
  uint32_t threads;
  int64_t least;
} Tile;
// The rows of a tile that are stored.
#define KEPT(size, kind, tall)                                                                               \
  ((kind) == ODD || (kind) == GATHER || (kind) == SHIFT ? (tall)-TRANSPOSE_SLACK(size) : (tall))
static const Tile tiles[] = {
#define TRANSPOSE(name, size, kind, tall, wide, rows, least)                                                 \
  {size, kind, KEPT(size, kind, tall), wide, TRANSPOSE_THREADS_##kind(size, tall, wide, rows), least},
#include "kernels/transpose/transpose.def"
};
enum { KERNEL_COUNT = SOL_COUNT(tiles) };
static const char *const kernel_names[KERNEL_COUNT] = {
#define TRANSPOSE(name, size, kind, tall, wide, rows, least) #name,
#include "kernels/transpose/transpose.def"
};

static int64_t size_of(const SolTranspose *a) {
  return ops_size(a->dtype);
}

// The arguments with every default filled in. Only after the checks, since its products could overflow.
static SolTranspose filled(const SolTranspose *args) {
  SolTranspose a = *args;
  if (!a.batch) a.batch = 1;
  if (!a.x_stride) a.x_stride = a.n;
  if (!a.y_stride) a.y_stride = a.m;
  if (!a.x_batch_stride) a.x_batch_stride = a.m * a.x_stride;
  if (!a.y_batch_stride) a.y_batch_stride = a.n * a.y_stride;
  return a;
}

// Options: the width of the elements. 0: the case's type; then one of each width that the tests' types do not
// have.
static const char *const option_names[] = {"as given", "bytes", "eight bytes"};

static bool make(const OpsCase *c, void *args) {
  SolTranspose *a = args;
  *a = (SolTranspose){.m = c->dim[0], .n = c->dim[1], .batch = c->dim[2], .dtype = c->dtype};
  if (c->out_dtype && c->out_dtype != c->dtype) return false;
  if (c->option && c->dtype != SOL_FP32) return false; // once is enough
  if (c->option == 1) a->dtype = SOL_INT8;
  if (c->option == 2) a->dtype = SOL_FP64;
  if (c->pad) {
    a->x_stride = a->n + c->pad, a->y_stride = a->m + 2 * c->pad;
    a->x_batch_stride = a->m * a->x_stride + c->pad, a->y_batch_stride = a->n * a->y_stride + 3 * c->pad;
  }
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolTranspose *a = args;
  v[0] = OPS_VIEW(SolTranspose, y, a->dtype, OPS_OUT, .batch = a->batch, .rows = a->n, .cols = a->m,
                  .stride = a->y_stride, .batch_stride = a->y_batch_stride);
  v[1] = OPS_VIEW(SolTranspose, x, a->dtype, OPS_IN, .batch = a->batch, .rows = a->m, .cols = a->n,
                  .stride = a->x_stride, .batch_stride = a->x_batch_stride);
  return 2;
}

// Tiles for the CPU: small enough that a strip of them stays in its cache.
enum { CPU_TILE = 32 };

#define MOVE_TILE(type)                                                                                      \
  for (int64_t j = j0; j < j1; j++)                                                                          \
    for (int64_t i = i0; i < i1; i++) ((type *)y)[j * a.y_stride + i] = ((const type *)x)[i * a.x_stride + j]

static void cpu_strips(const void *args, int64_t begin, int64_t end) {
  SolTranspose a = filled(args);
  int64_t size = size_of(&a), strips = (a.n + CPU_TILE - 1) / CPU_TILE;
  for (int64_t strip = begin; strip < end; strip++) {
    int64_t b = strip / strips, j0 = strip % strips * CPU_TILE, j1 = cpu_min(j0 + CPU_TILE, a.n);
    const char *x = (const char *)a.x + b * a.x_batch_stride * size;
    char *y = (char *)a.y + b * a.y_batch_stride * size;
    for (int64_t i0 = 0; i0 < a.m; i0 += CPU_TILE) {
      int64_t i1 = cpu_min(i0 + CPU_TILE, a.m);
      switch (size) {
      case 1: MOVE_TILE(uint8_t); break;
      case 2: MOVE_TILE(uint16_t); break;
      case 4: MOVE_TILE(uint32_t); break;
      default: MOVE_TILE(uint64_t); break;
      }
    }
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  SolTranspose a = filled(args);
  cpu_parallel(ctx, a.batch * ((a.n + CPU_TILE - 1) / CPU_TILE), a.batch * a.m * a.n, cpu_strips, args);
  return SOL_OK;
}

// Rows of x that tiles have to cover. Where rows are not aligned, those of y start at different places in a
// tile.
static int64_t reach(const SolTranspose *a, const Tile *t) {
  return a->m + (t->kind == ODD || t->kind == GATHER || t->kind == SHIFT || t->kind == CHUNKS
                     ? TRANSPOSE_SLACK(t->size) - 1
                     : 0);
}

// How many places for elements the tiles have, by element.
static double waste(const SolTranspose *a, const Tile *t) {
  double down = (double)ops_ceil_div(reach(a, t), t->tall), across = (double)ops_ceil_div(a->n, t->wide);
  return down * across * (double)(t->tall * t->wide) / ((double)a->m * (double)a->n);
}

static int find_kind(int64_t size, Kind kind) {
  int kernel = 0;
  while (tiles[kernel].size != size || tiles[kernel].kind != kind) kernel++;
  return kernel;
}

// A block has so much of each long row, from least to most, and no more in all: an SM has several blocks.
enum {
  NARROW_ROW_BYTES = 32,
  NARROW_MOST = 16 << 10,
  NARROW_SHARED = 48 << 10,
  NARROW_LEAST = 46 << 10, // with which an H200's SM holds four blocks
  NARROW_BLOCKS = 4,       // of an SM at a time
  NARROW_THIN = 192,
  NARROW_BATCHES = 65535
};

// What kernels for a short side want: it is not too long for their shared memory.
static bool is_narrow(const SolTranspose *a, Kind kind) {
  return a->batch <= NARROW_BATCHES && (kind == FEW_ROWS ? a->m : a->n) <= NARROW_THIN;
}

// How wide the tiles of GATHER are: all alike, as many bytes as 48 KB of shared memory hold, and not more than lets several blocks be in an SM.
static int64_t gather_wide(const SolTranspose *a, const Tile *t) {
  enum { SHARED = 48 << 10, MOST = 320 };
  int64_t rows = t->tall + TRANSPOSE_SLACK(t->size), most = cpu_min(MOST, SHARED / rows - t->size - 30);
  return ops_ceil_div(a->n, ops_ceil_div(a->n, most / t->size));
}

// Instead of FEW_COLUMNS: rows that are worth copying by chunks, of a tensor that L2 does not hold.
static bool is_gathered(const SolTranspose *a) {
  enum { LARGE = 24 << 20, LEAST = 192 }; // bytes: of the tensor, of a row
  return size_of(a) == 2 && a->n * size_of(a) >= LEAST &&
         (double)a->m * (double)a->n * (double)a->batch * (double)size_of(a) > LARGE;
}

// Instead of FEW_ROWS and FEW_COLUMNS: element by element, which takes an SM's L1 a clock for each line that a warp's elements are in. These are as many as there are rows, or fewer
// where neighbouring rows share one. The others take so many clocks longer from the first load to the last store, measured on an H200.
static bool is_single(const SolContext *ctx, const SolTranspose *a) {
  enum { WARP = 32, LINE = 128, ROWS = 500, COLUMNS = 1500, MOST = 1 << 28 };
  double all = (double)a->m * (double)a->n * (double)a->batch;
  int64_t apart = ops_ceil_div(WARP * cpu_min(a->x_stride * size_of(a), LINE), LINE);
  int64_t lines = cpu_min(cpu_min(a->m, WARP), apart);
  return all <= MOST && all / WARP * (double)lines <= (double)(a->m <= a->n ? ROWS : COLUMNS) * ctx->sms;
}

static int pick_tile(const SolTranspose *a);
static int by_vectors(const SolTranspose *a, int kernel);

// A kernel of tiles, unless these are mostly empty and one side is so short that another kernel has no tiles.
static int pick(const SolContext *ctx, const SolTranspose *a) {
  int kernel = pick_tile(a);
  enum { LARGE = 24 << 20, SMALL = 6 << 10 };
  // What single elements in shared memory cost, in places of tiles: an estimate. Tiles that store parts of sectors
  // cost more where L2 does not hold all of y, and so do small ones: an H200 starts 0.8 blocks a nanosecond.
  bool large = (double)a->m * (double)a->n * (double)a->batch * (double)size_of(a) > LARGE;
  bool small = tiles[kernel].tall * tiles[kernel].wide * size_of(a) < SMALL;
  double worth = large && (small || tiles[kernel].kind == PLAIN) ? 1 : 1.4;
  if (tiles[kernel].kind == DIRECT || waste(a, &tiles[kernel]) < worth) return kernel;
  if (is_single(ctx, a) && (is_narrow(a, FEW_ROWS) || is_narrow(a, FEW_COLUMNS)))
    return find_kind(size_of(a), SINGLE);
  if (a->m <= a->n && is_narrow(a, FEW_ROWS)) return find_kind(size_of(a), FEW_ROWS);
  if (a->n < a->m && is_narrow(a, FEW_COLUMNS))
    return find_kind(size_of(a), is_gathered(a) ? GATHER : FEW_COLUMNS);
  return kernel;
}

// How much less empty a tile has to be to be taken instead of another: smaller ones are slower.
static double much(const Tile *t, const Tile *instead_of) {
  bool large = t->tall * t->wide * 2 >= instead_of->tall * instead_of->wide;
  return t == instead_of ? 1 : large && t->kind == instead_of->kind ? 1.1 : 1.5;
}

// The first kernel of the table that fits and has enough tiles, unless another's are much less empty.
static int pick_tile(const SolTranspose *a) {
  enum { FEW_VECTORS = 2 };
  int64_t size = size_of(a);
  int align = ops_align(a->x, a->x_stride * size, a->m) | ops_align(a->y, a->y_stride * size, a->n);
  align |= ops_align(a->x, a->x_batch_stride * size, a->batch);
  align |= ops_align(a->y, a->y_batch_stride * size, a->batch);
  Kind kind = align % 16 ? ODD : a->m <= FEW_VECTORS * 16 / size ? DIRECT : WIDE;
  int kernel = 0, last = 0;
  for (; kernel < KERNEL_COUNT; kernel++) {
    const Tile *t = &tiles[kernel];
    if (t->size != size || (t->kind == PLAIN ? ODD : t->kind) != kind) continue;
    last = kernel;
    int64_t down = ops_ceil_div(reach(a, t), t->tall), across = ops_ceil_div(a->n, t->wide);
    if ((double)down * (double)across * (double)a->batch >= (double)t->least) break;
  }
  if (kernel == KERNEL_COUNT) kernel = last;
  int best = kernel;
  for (int i = 0; i < KERNEL_COUNT; i++) {
    const Tile *t = &tiles[i], *first = &tiles[kernel];
    if (t->size == size && (t->kind == PLAIN ? ODD : t->kind) == kind &&
        much(t, first) * waste(a, t) < much(&tiles[best], first) * waste(a, &tiles[best]))
      best = i;
  }
  return size <= 2 && tiles[best].kind == ODD ? by_vectors(a, best) : best;
}

// Instead of ODD for small elements: tiles that are moved by 16 bytes, unless these are emptier. How much faster they are is measured, on an H200.
static int by_vectors(const SolTranspose *a, int kernel) {
  int64_t size = size_of(a);
  bool aligned = ops_align(a->x, a->x_stride * size, a->m) == 16 &&
                 ops_align(a->x, a->x_batch_stride * size, a->batch) == 16;
  double least = 1.1 * waste(a, &tiles[kernel]);
  for (int i = find_kind(size, CHUNKS); i < KERNEL_COUNT; i++) {
    const Tile *t = &tiles[i];
    if (t->size != size || !(t->kind == CHUNKS || (t->kind == SHIFT && aligned))) continue;
    double cost = (t->kind == CHUNKS ? 1.05 : 1) * waste(a, t);
    if (cost < least) kernel = i, least = cost;
  }
  return kernel;
}

// How many tiles ahead of its own a block prefetches, where there is enough data.
static void set_ahead(const SolTranspose *a, const Tile *t, int64_t down, TransposeParams *p) {
  enum { WORTH_IT = 12 << 20, AHEAD = 3 << 20, ODD_AHEAD = 6 << 20 }; // bytes
  double all = (double)a->m * (double)a->n * (double)t->size;
  if (t->kind == DIRECT || all < WORTH_IT) return;
  int64_t ahead = (t->kind == ODD && t->size == 2 ? ODD_AHEAD : AHEAD) / (t->tall * t->wide * t->size);
  p->ahead_m = (uint32_t)(ahead % down);
  p->ahead_n = (uint32_t)(ahead / down);
}

// As many units of a long row to a block, up to `most`, as let all SMs end at once: in as few waves of blocks, and the last one full.
static int64_t narrow_share(const SolContext *ctx, int64_t units, int64_t most, int64_t batch) {
  enum { WAVES = 16 }; // of more a last one that is not full costs little
  int64_t slots = (int64_t)ctx->sms * NARROW_BLOCKS,
          waves = ops_ceil_div(ops_ceil_div(units, most) * batch, slots);
  if (waves > WAVES || waves * slots < batch) return most;
  return cpu_min(most, ops_ceil_div(units, waves * slots / batch));
}

// Few rows, of each of which a block has so many bytes: what its threads do. As many of them bring a row as have the fewest turns.
static void share_threads(const SolTranspose *a, int64_t bytes, int64_t threads, TransposeParams *p) {
  enum { LEAST = 3, MOST = 8 }; // bits of lanes: of half a line, of a block
  int64_t size = size_of(a), per = 16 / size, common = cpu_min(per, a->m & -a->m), alike = a->m / common;
  int64_t chunks = bytes / 16 + 2, least = INT64_MAX; // chunks that a row may touch
  for (int32_t bits = MOST; bits >= LEAST; bits--) {
    int64_t lanes = (int64_t)1 << bits,
            turns = ops_ceil_div(a->m * lanes, threads) * ops_ceil_div(chunks, lanes);
    if (turns < least) least = turns, p->lane_bits = bits;
  }
  p->of_m = elementwise_divider32((uint32_t)a->m);
  p->active = (int32_t)(threads / alike * alike);
  p->step = (int32_t)(p->active * per / a->m * size);
}

static SolStatus launch_narrow(SolContext *ctx, const SolTranspose *a, int kernel, TransposeParams *p,
                               SolStream stream) {
  int64_t size = size_of(a), thin = tiles[kernel].kind == FEW_ROWS ? a->m : a->n, wide = a->m + a->n - thin;
  // Short rows of x lie in shared memory as they are, unless gaps are so large that memory reads less without them.
  enum { SMALL_GAP = 64 };
  bool few_columns = tiles[kernel].kind == FEW_COLUMNS,
       image = few_columns && p->x_stride - thin * size <= SMALL_GAP && p->x_stride / size <= NARROW_THIN;
  if (image) thin = p->x_stride / size;
  // Of a row's share of shared memory up to 48 bytes are around its part, a sector before it, and `size` before the next (transpose_narrow.cuh).
  int64_t more = few_columns ? 32 : 0;
  int64_t bytes = (NARROW_SHARED / thin - size - 48 - more) / NARROW_ROW_BYTES * NARROW_ROW_BYTES;
  // Of small tensors less, so that every SM has two blocks.
  int64_t share = ops_ceil_div(ops_ceil_div(wide * size, NARROW_ROW_BYTES) * a->batch, 2 * (int64_t)ctx->sms);
  if (bytes > NARROW_MOST) bytes = NARROW_MOST;
  if (bytes > share * NARROW_ROW_BYTES) bytes = share * NARROW_ROW_BYTES;
  int64_t most = bytes;
  bytes = NARROW_ROW_BYTES *
          narrow_share(ctx, ops_ceil_div(wide * size, NARROW_ROW_BYTES), bytes / NARROW_ROW_BYTES, a->batch);
  p->span = (int32_t)(bytes / size);
  p->pitch =
      (int32_t)(((bytes + more) / 16 + 2) | 1) * 16; // an odd number of chunks: rows start in different banks
  if (!few_columns) share_threads(a, bytes, tiles[kernel].threads, p);
  enum { WORTH_IT = 12 << 20, AHEAD = 3 << 20 };
  if (few_columns && (double)wide * (double)(thin * size) >= WORTH_IT)
    p->ahead_m = (uint32_t)(AHEAD / (bytes * thin));
  OpsLaunch l = {.kernel = kernel,
                 .block = tiles[kernel].threads,
                 .shared = (uint32_t)(p->pitch * thin + thin / (16 / size) * 16),
                 .early = true,
                 .params = p,
                 .bytes = sizeof *p};
  if (image) p->pitch = 0;
  l.grid[0] = (uint32_t)ops_ceil_div(wide, p->span);
  l.grid[1] = (uint32_t)a->batch;
  bool waits = (int64_t)l.grid[0] * a->batch > NARROW_BLOCKS * (int64_t)ctx->sms;
  if (bytes < most && waits && l.shared < NARROW_LEAST)
    l.shared = NARROW_LEAST; // no more blocks in an SM than were counted
  return ops_launch(ctx, &ops_transpose, &l, stream);
}

static SolStatus launch_single(SolContext *ctx, const SolTranspose *a, int kernel, TransposeParams *p,
                               SolStream stream) {
  enum { BLOCKS = 8 }; // that an SM holds
  p->of_m = elementwise_divider32((uint32_t)a->m), p->of_n = elementwise_divider32((uint32_t)a->n);
  OpsLaunch l = {
      .kernel = kernel, .block = tiles[kernel].threads, .early = true, .params = p, .bytes = sizeof *p};
  l.grid[0] = (uint32_t)cpu_min(ops_ceil_div(a->m * a->n * a->batch, l.block), BLOCKS * (int64_t)ctx->sms);
  return ops_launch(ctx, &ops_transpose, &l, stream);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  SolTranspose a = filled(args);
  if ((a.m == 1 && a.y_stride == 1) || (a.n == 1 && a.x_stride == 1)) { // the elements stay in the same order
    SolCopy copy = {.y = a.y, .x = a.x, .m = a.batch, .n = a.m * a.n, .dtype = a.dtype};
    copy.x_stride = a.x_batch_stride, copy.y_stride = a.y_batch_stride;
    return ops_copy.launch(ctx, &copy, stream);
  }
  enum { MOST = 65535 }; // blocks along y or z of a grid
  int kernel = pick(ctx, &a);
  const Tile *t = &tiles[kernel];
  int64_t tall = t->tall ? t->tall : a.m, wide = t->wide ? t->wide : a.n, columns; // 0: no tiles
  if (t->kind == GATHER) wide = gather_wide(&a, t);
  int64_t size = size_of(&a), down = ops_ceil_div(reach(&a, t), tall), across = ops_ceil_div(a.n, wide);
  if (down > INT32_MAX || __builtin_mul_overflow(across, a.batch, &columns) || columns > (int64_t)MOST * MOST)
    return ops_fail(SOL_ERR_RANGE, "transpose: more tiles than a grid has blocks");
  TransposeParams p = {.y = a.y,
                       .x = a.x,
                       .m = a.m,
                       .n = a.n,
                       .y_stride = a.y_stride * size,
                       .x_stride = a.x_stride * size,
                       .y_batch = a.y_batch_stride * size,
                       .x_batch = a.x_batch_stride * size,
                       .batches = (uint32_t)a.batch,
                       .tiles_n = (uint32_t)across};
  if (t->kind == FEW_ROWS || t->kind == FEW_COLUMNS) return launch_narrow(ctx, &a, kernel, &p, stream);
  if (t->kind == SINGLE) return launch_single(ctx, &a, kernel, &p, stream);
  OpsLaunch l = {.kernel = kernel, .block = t->threads, .early = true, .params = &p, .bytes = sizeof p};
  if (t->kind == GATHER) {
    int64_t rows = t->tall + TRANSPOSE_SLACK(t->size);
    p.span = (int32_t)wide;
    p.pitch = (int32_t)((wide * size + 30) / 16 * 16); // up to 30 bytes more in whole chunks
    l.shared = (uint32_t)(rows * p.pitch + rows * size);
  } else {
    set_ahead(&a, t, down, &p);
  }
  l.grid[0] = (uint32_t)down;
  l.grid[2] = (uint32_t)ops_ceil_div(columns, MOST);
  l.grid[1] = (uint32_t)ops_ceil_div(columns, l.grid[2]);
  return ops_launch(ctx, &ops_transpose, &l, stream);
}

static void reference(const void *args, double *const *at) {
  const SolTranspose *a = args;
  int64_t batch = a->batch ? a->batch : 1;
  for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < a->m; i++)
      for (int64_t j = 0; j < a->n; j++) at[0][(b * a->n + j) * a->m + i] = at[1][(b * a->m + i) * a->n + j];
}

static void cost(const void *args, SolOpArgs *op) {
  const SolTranspose *a = args;
  *op = (SolOpArgs){.dim = {a->m, a->n}, .dtype = a->dtype};
  if (a->batch > 1) op->dim[0] = a->batch, op->dim[1] = a->m, op->dim[2] = a->n;
}

// MxN, and a batch: single elements, partial tiles on either side, whole tiles, both odd, thin and long ones;
// enough tiles for each kernel of 2 bytes.
static const int64_t shapes[][4] = {
    {1, 1},        {1, 64},       {64, 1},        {3, 5},        {31, 33},    {64, 64},   {128, 128},
    {192, 320, 2}, {769, 131},    {100, 616},     {136, 24},     {8, 1024},   {1024, 8},  {2, 1037, 3},
    {65537, 2},    {257, 129, 3}, {5, 7, 70},     {0, 64},       {64, 0},     {1, 1023},  {13, 200},
    {640, 3000},   {1536, 2048},  {136, 24, 320}, {40, 72, 540}, {501, 1001}, {20, 5003}, {5003, 20},
    {3, 9001, 2},  {9001, 3, 2},  {33, 2048},     {131, 403, 2}, {403, 131},  {40, 5003}, {20011, 40},
    {35, 2903, 2}, {9001, 40, 2},
};

const OpsDef ops_transpose = {
    .name = "transpose",
    OPS_ARGS(SolTranspose, "MxNxB"),
    OPS_OPTIONS(option_names),
    .make = make,
    .views = views,
    .cpu = cpu,
    .launch = launch,
    .reference = reference,
    .cost = cost,
    .shapes = shapes,
    .shape_count = (int)SOL_COUNT(shapes),
    .bench = ops_row_bench + 1, // a single row is a copy
    .bench_count = OPS_ROW_BENCH - 1,
    OPS_KERNELS("transpose", kernel_names),
};
