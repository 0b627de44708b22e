#include "ops/norm_parts.h"
#include "ops/parts.h"

// Vectors on 16 bytes.
static bool has_vectors(const NormPlan *a) {
  const NormParams *p = a->p;
  return !a->call->fp8 && p->weight && norm_on_16(p->weight, 0) &&
         (!a->call->layer || (p->bias && norm_on_16(p->bias, 0)));
}

bool norm_has_plain_vectors(const NormPlan *a) {
  return !a->p->residual && a->p->weight_kind == a->kind && has_vectors(a);
}

// Cuts rows into parts, and returns the chunks of shared memory of one: parts start on the output's lines, and the last one has what is left. To fp8 rows are cut at
// blocks of 128 columns.
static int32_t cut_rows(NormPlan *a, int64_t parts) {
  enum { MORE = 24 };
  NormParams *p = a->p;
  int64_t n = a->out == 1 ? ops_ceil_div(p->n, 128 * parts) * 128 * parts : p->n;
  p->parts = parts_shape(p->y, (int64_t)p->m, n, (int)a->in, (int)a->out, parts);
  return (int32_t)(p->parts.length * a->in / 16 + MORE);
}

enum { PAIRS = NORM_SPREAD_PAIRS * PARTS_THREADS }; // chunks of the residual in shared memory

// Blocks of the "spread" kernels, each with a part.
static void launch_parts(NormPlan *a, int32_t chunks, int32_t pairs, uint64_t blocks) {
  a->p->aside = pairs ? chunks : 0;
  a->l.kernel = norm_kernel(a, NORM_f_spread);
  a->l.block = PARTS_THREADS, a->l.shared = (uint32_t)(chunks + pairs) * 16;
  ops_grid(a->l.grid, blocks, 1);
}

bool norm_plan_spread(NormPlan *a) {
  NormParams *p = a->p;
  int64_t bytes = p->n * a->in, pairs = p->residual ? PAIRS : 0;
  int64_t blocks = parts_cluster(a->ctx, bytes, PARTS_SHARED - 16 * pairs);
  if (!a->clusters || !blocks) return false;
  int32_t chunks = cut_rows(a, blocks);
  p->ahead = norm_rows_ahead(p, bytes, NORM_f_big);
  launch_parts(a, chunks, (int32_t)pairs, p->m * p->parts.parts);
  a->l.cluster = p->parts.parts;
  return true;
}

bool norm_plan_relay(NormPlan *a) {
  NormParams *p = a->p;
  enum {
    PART = 48 << 10,
    PART_PAIRS = 32 << 10,
    LAG = 8 << 20
  }; // bytes of a part, of one input or two; from what is summed to what is written
  const int64_t pairs = p->residual ? PAIRS : 0, most = PARTS_SHARED - 16 * pairs;
  int64_t bytes = p->n * a->in, parts = ops_ceil_div(bytes, pairs ? PART_PAIRS : PART);
  if (parts > PARTS_MOST) parts = PARTS_MOST;
  bool over_input = p->y == p->x || p->y == p->residual || p->y == p->second; // posts would be in the way
  if (!a->clusters || over_input || bytes > parts * most || p->m == 0) return false;
  int32_t chunks = cut_rows(a, parts);
  p->lag = parts_lag(p->m, ops_ceil_div(LAG, bytes));
  launch_parts(a, chunks, (int32_t)pairs, (p->m + p->lag) * 2 * p->parts.parts);
  a->l.cluster = 1;
  return true;
}

// Their kernels have fewer registers than "spread", so that more rows are on their way. Not with two inputs or by ids: that was no gain.
bool norm_plan_clustered(NormPlan *a) {
  // Bytes that a block has, with half of the threads and with all: more where there are fewer blocks to an SM.
  enum { BLOCKS = 16, HELD = 34 << 10, HELD_LAYER = 48 << 10, MOST = 68 << 10 };
  NormParams *p = a->p;
  bool layer = a->call->layer;
  int64_t bytes = p->n * a->in, blocks = ops_ceil_div(bytes, layer ? HELD_LAYER : HELD);
  int64_t most = blocks > BLOCKS ? NORM_SPREAD_THREADS : NORM_SPREAD_THREADS / 2;
  if (blocks > BLOCKS) blocks = BLOCKS;
  if (p->residual || p->ids || p->y_kind != a->kind || !has_vectors(a) || bytes > blocks * MOST) return false;
  if (!layer && p->weight_kind == a->kind) return false; // as fast without
  if (!a->clusters) return false;
  int32_t chunks = cut_rows(a, blocks);
  int64_t threads = ops_ceil_div(ops_ceil_div(chunks, ops_ceil_div(chunks, most)), 32) * 32;
  p->ahead = norm_rows_ahead(p, bytes, NORM_f_big);
  a->l.kernel = norm_kernel(a, NORM_f_clustered);
  a->l.block = (uint32_t)threads, a->l.cluster = p->parts.parts, a->l.shared = (uint32_t)(16 * chunks);
  ops_grid(a->l.grid, p->m * p->parts.parts, 1);
  return true;
}

// How many rows a block has, where so many blocks, or clusters, run at a time: the start of one costs about as much as a row, and the last should end
// together.
static int32_t rows_of_block(uint64_t m, uint64_t at_a_time, uint64_t most) {
  uint64_t least = UINT64_MAX;
  int32_t best = 1;
  for (uint64_t rows = 1; rows <= most; rows++) {
    uint64_t apart = rows * NORM_ALIKE, rest = m % apart;
    uint64_t blocks = m / apart * NORM_ALIKE + (rest < NORM_ALIKE ? rest : NORM_ALIKE);
    uint64_t cost = (blocks + at_a_time - 1) / at_a_time * (rows + 1);
    if (cost < least) least = cost, best = (int32_t)rows;
  }
  return best;
}

static bool starts_alike(const NormPlan *a) { // input and output
  return ((uintptr_t)a->p->x - (uintptr_t)a->p->y) % 16 == 0 && (a->p->x_stride - a->p->y_stride) % 16 == 0;
}

// One type throughout, input and output alike.
static bool is_alike(const NormPlan *a) {
  return a->call->layer && a->kind != KIND_FP32 && a->p->y_kind == a->kind && norm_has_plain_vectors(a) &&
         starts_alike(a);
}

// Chunks of 16-bit rows that start anywhere, beyond which "shifted" is faster than others (measured).
enum { SHIFTED_LEAST = 1344 };

bool norm_plan_rows(NormPlan *a) {
  enum { LEAST = 448, LEAD = 7, MOST_ROWS = 16, CLUSTER_ROWS = 8 };
  NormParams *p = a->p;
  int64_t chunks = ops_ceil_div(p->n, 8), blocks = 1;
  while (chunks > NORM_ROWS_THREADS * NORM_ROWS_CHUNKS * blocks) blocks *= 2;
  if (!a->clusters || !is_alike(a) || p->n <= LEAST || chunks > SHIFTED_LEAST) return false;
  int64_t threads = ops_ceil_div(chunks, NORM_ROWS_CHUNKS * 32 * blocks) * 32;
  p->aside = chunks + LEAD <= threads * NORM_ROWS_CHUNKS * blocks;
  int64_t at_a_time = ops_ceil_div(a->ctx->sms * (NORM_ROWS_RUNNING / threads), blocks);
  p->rows = rows_of_block(p->m, (uint64_t)at_a_time, blocks > 1 ? CLUSTER_ROWS : MOST_ROWS);
  p->cluster_bits = norm_bits(blocks);
  a->l.kernel = norm_kernel(a, NORM_f_rows);
  a->l.block = (uint32_t)threads, a->l.cluster = (uint32_t)blocks;
  a->l.shared = a->l.block * NORM_ROWS_CHUNKS * NORM_ROWS_HELD * 16;
  uint64_t apart = (uint64_t)p->rows * NORM_ALIKE;
  ops_grid(a->l.grid, (p->m + apart - 1) / apart * NORM_ALIKE * (uint64_t)blocks, 1);
  return true;
}

// Rows of so many chunks in the shared memory of a block or a cluster.
static void launch_wide(NormPlan *a, int kernel, int64_t chunks) {
  // Bytes of a block, of which five fit an SM. Clusters of few blocks: a GPU processing cluster has places for more of these.
  enum { SHARE = 40 << 10, BLOCKS = 16, ANY_NUMBER = 3 };
  NormParams *p = a->p;
  int64_t blocks = ops_ceil_div(chunks * 16, SHARE);
  if (blocks > ANY_NUMBER) blocks = (blocks + 1) & ~INT64_C(1);
  if (blocks > BLOCKS) blocks = BLOCKS;
  p->chunks = (int32_t)chunks, p->rows = (int32_t)blocks;
  p->aside = (int32_t)ops_ceil_div(chunks, blocks * NORM_LAYER_THREADS);
  p->span = (int32_t)ops_ceil_div(chunks, blocks);
  p->ahead = norm_rows_ahead(p, p->n * a->in, NORM_f_big);
  a->l.kernel = norm_kernel(a, kernel);
  a->l.block = NORM_LAYER_THREADS, a->l.cluster = (uint32_t)blocks;
  a->l.shared = (uint32_t)(p->aside * NORM_LAYER_THREADS * 16);
  ops_grid(a->l.grid, p->m * (uint64_t)blocks, 1);
}

void norm_plan_layer(NormPlan *a) {
  launch_wide(a, a->p->weight_kind == a->kind ? NORM_f_big : NORM_f_wide, a->p->n / a->per);
}

bool norm_plan_shifted(NormPlan *a) {
  // Shorter rows are faster by "rows" and in registers, and layernorm's in fp32 by "clustered" (measured).
  enum { LEAD = 7, MOST = 480 << 10 }; // chunks before the first on its line, at most; bytes of a row
  const NormParams *p = a->p;
  int64_t chunks = p->n / a->per, least = a->in == 4 ? 2 * SHIFTED_LEAST : SHIFTED_LEAST;
  bool suits = !p->ids && p->y_kind == a->kind && !(a->call->layer && a->in == 4);
  if (!a->clusters || !suits || !norm_has_plain_vectors(a) || !starts_alike(a) || chunks <= least)
    return false;
  if (p->n * a->in > MOST) return false;
  launch_wide(a, NORM_f_shifted, chunks + LEAD);
  return true;
}
