#include "ops/select.h"

#include <math.h>
#include <string.h>

#include "kernels/select/weight.h"

const int64_t select_shapes[SELECT_SHAPES][4] = {{1, 1},     {5, 3},      {33, 31},   {70, 7},   {9, 200},
                                                 {9, 770},   {4, 4096},   {140, 260}, {2, 9001}, {12, 4097},
                                                 {1, 50257}, {1, 300001}, {997, 61},  {300, 13}, {0, 64}};

// Rows that have a warp each, four to a block; or a block of so many threads or, where rows are too few to occupy the
// multiprocessors, a cluster of them. deep: with more batches in flight, as rows too few to occupy them have.
static void plan(const SolContext *ctx, int64_t rows, bool is_short, bool deep, int64_t most_blocks,
                 OpsLaunch *l) {
  enum { ROWS = 4, THREADS = LIST_THREADS };
  int64_t blocks = !is_short && ctx->cc >= 90 ? most_blocks : 1;
  l->block = is_short ? 32 * ROWS : THREADS;
  l->cluster = (uint32_t)blocks;
  deep |= !is_short && rows * blocks <= 2 * ctx->sms;
  l->shared = l->block * LIST_BATCH * 16 * (ctx->cc < 80 ? 1 : deep ? LIST_MORE : LIST_STAGES);
  ops_grid(l->grid, (uint64_t)(is_short ? ops_ceil_div(rows, ROWS) : rows * blocks), 1);
}

// Blocks of a row of so many chunks, each at least so many of them, where rows do not occupy the GPU: as many as take least, by how many blocks an SM has of
// those that have most, how much of its issue slots so many use, and what a block does besides its chunks (OWN of them). Clusters of more than PORTABLE only in
// full.
static int64_t blocks_of(const SolContext *ctx, int64_t rows, int64_t chunks, int64_t least) {
  enum { PORTABLE = 8, MOST = 16, RESIDENT = 3, OWN = 1024 };
  static const double used[RESIDENT + 1] = {0, 0.45, 0.75, 0.9};
  int64_t best = 1;
  double least_time = INFINITY;
  for (int64_t blocks = 1; blocks <= MOST; blocks += blocks < PORTABLE ? 1 : MOST - PORTABLE) {
    int64_t of_sm = ops_ceil_div(rows * blocks, ctx->sms), each = chunks / blocks + OWN;
    if (of_sm > RESIDENT || (blocks > 1 && chunks < least * blocks)) break;
    double time = (double)of_sm / used[of_sm] * (double)each;
    if (time < least_time) least_time = time, best = blocks;
  }
  return best;
}

// A warp has a row where k is small, for what a row costs besides its elements is then paid once: up to so many chunks, by how many rows an SM has, as few
// warps of an SM wait for most of what they do. Long rows have more batches in flight.
void list_plan(const SolContext *ctx, int64_t rows, int64_t n, int in, int64_t k, OpsLaunch *l) {
  enum { SHORT = 128, LONG = 1024, LONGEST = 8192, MANY = 8, EACH = 512, FEW = 64, LEAST = 512 };
  int64_t chunks = ops_ceil_div(n, 16 / in), of_sm = rows / ctx->sms;
  int64_t longest = of_sm >= MANY ? of_sm * EACH : SHORT;
  bool is_short = k <= FEW && chunks <= longest && chunks <= LONGEST;
  l->kernel = is_short ? in == 4 : 2 + (in == 4 ? 2 : n > 1 << 16); // 2^16 elements are LONGEST chunks
  plan(ctx, rows, is_short, is_short && chunks > LONG, blocks_of(ctx, rows, chunks, LEAST), l);
}

// Rows of up to 12 KiB have a warp, four to a block; longer ones a block or a cluster, each with up to 48 KiB: three blocks or more
// with their rows, and the sums of their chunks, are on an SM. What a row costs besides its chunks is paid by each of its warps. Where rows are few they have as many blocks as occupy the GPU.
HeldShape weigh_plan(const SolContext *ctx, int64_t rows, int64_t n, int in, bool *alone, OpsLaunch *l) {
  enum { THREADS = 128, OF_WARP = 768, OF_BLOCK = WEIGH_SHARED / 16, LEAST = 256, MOST = 16, BLOCKS = 4 };
  int64_t chunks = ops_ceil_div(n, 16 / in), blocks = 1;
  *alone = chunks <= OF_WARP && rows > ctx->sms;
  int of_block = *alone ? THREADS / 32 : 1;
  while (!*alone && ctx->cc >= 90 && blocks < MOST &&
         (chunks > OF_BLOCK * blocks || (chunks > LEAST * blocks && 2 * rows * blocks <= BLOCKS * ctx->sms)))
    blocks *= 2;
  int64_t threads = THREADS / of_block * blocks, each = ops_ceil_div(chunks, threads);
  if (each * THREADS * 16 > WEIGH_SHARED) each = WEIGH_SHARED / (THREADS * 16);
  l->block = THREADS;
  l->cluster = (uint32_t)blocks;
  l->shared = (uint32_t)(each * THREADS * (16 + 4));
  ops_grid(l->grid, (uint64_t)(ops_ceil_div(rows, of_block) * blocks), 1);
  return (HeldShape){(uint64_t)rows, of_block, 32, (int32_t)(each * THREADS * 16)};
}

// What a row costs in blocks of so many warps, over what it costs where none of them waits: while the last warps run they have the GPU to themselves and still
// take half as long as all of them; warps wait for the one that draws, and for those with a group more.
static double waits_of(int64_t warps, int64_t groups, double waves) {
  const double
      LEAST = 0.5,
      FILLED = 0.8,
      DRAW = 0.04; // FILLED: of a wave, from where on more warps are no faster; DRAW: for twice the warps
  int64_t whole = (int64_t)waves;
  double rest = waves - (double)whole, time = whole ? (double)whole : FILLED;
  if (whole && rest > 0) time += rest > LEAST ? rest : LEAST;
  if (!whole && rest > FILLED) time = rest;
  return time / waves * (1 + DRAW * log2((double)warps)) * (double)(ops_ceil_div(groups, warps) * warps) /
         (double)groups;
}

// Rows of few groups by one warp, which has several of them, where they occupy the GPU; otherwise by a block or a cluster of them, a block with as many
// warps as have to wait least. Rows of a warp, or 0.
int group_plan(const SolContext *ctx, int64_t rows, int64_t n, int in, OpsLaunch *l) {
  // RESIDENT: warps of an SM that have rows of their own; FINE, WIDE: of blocks, of elements of 2 and 4 bytes. BYTES: kept of a group.
  enum {
    ROWS = 4,
    OF_WARP = 8,
    WAVES = 4,
    RESIDENT = 32,
    FINE = 32,
    WIDE = 24,
    BLOCKS = 3,
    MOST = 16,
    WARPS = 8,
    BYTES = 12
  };
  int64_t groups = ops_ceil_div(n, select_columns(n)), blocks = 1, warps = WARPS,
          resident = RESIDENT * ctx->sms, each = 0;
  if (groups == 1 || (groups <= OF_WARP && rows >= resident)) {
    each = rows / (WAVES * resident);
    each = each < 1 ? 1 : each > 8 ? 8 : each;
    l->block = 32 * ROWS, l->cluster = 1;
    l->shared = (uint32_t)(ROWS * groups * 32 * 4 * (SELECT_GROUP / 32 * in / 16 + 1));
    ops_grid(l->grid, (uint64_t)ops_ceil_div(rows, ROWS * each), 1);
    return (int)each;
  }
  double least = INFINITY;
  for (int64_t w = WARPS; w; w--) {
    int64_t of_sm = (in == 2 ? FINE : WIDE) / w; // blocks
    double waits = waits_of(w, groups, (double)rows / (double)(of_sm * ctx->sms));
    if (waits < least) least = waits, warps = w;
  }
  while (ctx->cc >= 90 && blocks < MOST && groups > warps * blocks && rows * blocks < BLOCKS * ctx->sms)
    blocks *= 2;
  l->block = (uint32_t)(32 * warps);
  l->cluster = (uint32_t)blocks;
  l->shared = (uint32_t)(ops_ceil_div(groups, blocks) * BYTES);
  ops_grid(l->grid, (uint64_t)(rows * blocks), 1);
  return 0;
}

uint64_t select_order(float value, bool nan_first, int64_t column) {
  union {
    float f;
    uint32_t u;
  } x = {value + 0.0f}; // -0 is +0
  uint32_t key = x.u ^ (x.u >> 31 ? ~0u : 0x80000000u);
  if (value != value) key = nan_first ? ~0u : 0;
  return (uint64_t)key << 32 | ~(uint32_t)column;
}

uint64_t select_weight_of(const SelectRow *r, float value) {
  bool bf16 = r->dtype == SOL_BF16, fp32 = r->dtype == SOL_FP32;
  if (r->part && !select_left(value, r->top, r->depth, r->part, fp32, bf16)) return 0;
  if (r->per == 0) return 1;
  if (r->hulls && !fp32) return select_coarse(value, r->top, select_steps(r->per, bf16), bf16);
  float place = select_place_of(value, r->top, r->per);
  return r->hulls ? select_hull(place) : select_weight(place);
}

uint64_t select_sum(const SelectRow *r, uint64_t least) {
  float f[CPU_CHUNK];
  uint64_t sum = 0;
  CPU_CHUNKS(at, c, r->n) {
    cpu_load(r->dtype, r->x, r->start + at, c, f);
    for (int64_t i = 0; i < c; i++)
      if (select_order(f[i], r->nan_first, at + i) >= least) sum += select_weight_of(r, f[i]);
  }
  return sum;
}

// The weights of the elements that begin with `prefix`, by the byte of their order that follows it.
static void sum_by_byte(const SelectRow *r, uint64_t least, uint64_t prefix, int shift, uint64_t sums[256]) {
  float f[CPU_CHUNK];
  memset(sums, 0, 256 * sizeof *sums);
  CPU_CHUNKS(at, c, r->n) {
    cpu_load(r->dtype, r->x, r->start + at, c, f);
    for (int64_t i = 0; i < c; i++) {
      uint64_t order = select_order(f[i], r->nan_first, at + i);
      bool alike = shift == 56 || order >> (shift + 8) == prefix >> (shift + 8);
      if (alike && order >= least) sums[order >> shift & 255] += select_weight_of(r, f[i]);
    }
  }
}

// Byte by byte from the highest: the largest that reaches the target with all that come before.
uint64_t select_last(const SelectRow *r, uint64_t least, uint64_t target) {
  uint64_t sums[256], prefix = 0, before = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    sum_by_byte(r, least, prefix, shift, sums);
    int byte = 255;
    while (byte > 0 && before + sums[byte] < target) before += sums[byte--];
    prefix |= (uint64_t)byte << shift;
  }
  return prefix > least ? prefix : least;
}

// Inserts into `count` orders, the largest first.
static void insert(uint64_t *orders, int64_t count, uint64_t order) {
  while (count > 0 && orders[count - 1] < order) orders[count] = orders[count - 1], count--;
  orders[count] = order;
}

void select_list(const SelectRow *r, int64_t k, uint64_t *orders) {
  SelectRow each = *r;
  each.per = 0;
  uint64_t last = select_last(&each, 0, (uint64_t)k);
  float f[CPU_CHUNK];
  int64_t count = 0;
  CPU_CHUNKS(at, c, r->n) {
    cpu_load(r->dtype, r->x, r->start + at, c, f);
    for (int64_t i = 0; i < c && count < k; i++) {
      uint64_t order = select_order(f[i], r->nan_first, at + i);
      if (order >= last) insert(orders, count++, order);
    }
  }
}
