// y[i] = table[ids[i]]
#include "ops/embedding.h"
#include "base/error.h"
#include "kernels/embedding/embedding.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"
#include "ops/ends.h"

const char *const embedding_kernels[EMBEDDING_KERNELS] = {
#define EMBEDDING(name, ...) #name,
#include "kernels/embedding/embedding.def"
};

const int64_t embedding_shapes[EMBEDDING_SHAPES][4] = {
    {1, 1},          {5, 2, 1}, {3, 3},    {33, 31},          {7, 128},       {70, 8},
    {2, 769},        {3, 1023}, {4, 4096}, {2, 5125},         {1, 8192},      {1, 131072, 3},
    {1000, 5, 2000}, {0, 64},   {64, 0},   {300, 64, 100000}, {2500, 19, 50},
};

SolStatus embedding_check_ids(SolDtype id_dtype, SolBadId bad_id, const int32_t *bad, SolError *err) {
  if (bad_id != SOL_BAD_ID_ZERO && bad_id != SOL_BAD_ID_FLAG)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such bad_id: %d", (int)bad_id);
  if (bad_id == SOL_BAD_ID_ZERO && bad)
    return sol_fail(err, SOL_ERR_ARGUMENT, "bad must be NULL unless bad_id is SOL_BAD_ID_FLAG");
  return ops_check_ids("ids", ops_or(id_dtype, SOL_INT32), err);
}

void embedding_reference(const EmbeddingRows *r, double *const *at, double *bad) {
  for (int64_t i = 0; i < r->m && r->n; i++) { // without columns nothing is done, and no bad id is flagged
    double id = at[2][i];
    bool good = id >= 0 && id < (double)r->rows;
    for (int64_t j = 0; j < r->n; j++) at[0][i * r->n + j] = good ? at[1][(int64_t)id * r->n + j] : 0;
    if (!good && bad) *bad = 1;
  }
}

static void cpu_row(const EmbeddingRows *r, int64_t row) {
  int64_t size = ops_size(r->dtype), out = ops_size(r->out_dtype);
  int64_t id = cpu_id(r->id_dtype, r->ids, row);
  char *y = (char *)r->y + row * r->y_stride * out;
  if (id < 0 || id >= r->rows) {
    memset(y, 0, (size_t)(r->n * out));
    if (r->bad) __atomic_store_n(r->bad, 1, __ATOMIC_RELAXED);
  } else if (r->dtype == r->out_dtype)
    memcpy(y, (const char *)r->x + id * r->x_stride * size, (size_t)(r->n * size));
  else
    CPU_CHUNKS(at, c, r->n) {
      float f[CPU_CHUNK];
      cpu_load(r->dtype, r->x, id * r->x_stride + at, c, f);
      cpu_store(r->out_dtype, y, at, c, f);
    }
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const EmbeddingRows *r = args;
  for (int64_t i = begin; i < end; i++) {
    int64_t row = r->order ? cpu_id(r->id_dtype, r->order, i) : i;
    if (row >= 0 && row < r->m) cpu_row(r, row);
  }
}

SolStatus embedding_cpu(SolContext *ctx, const EmbeddingRows *r) {
  if (!r->n) return SOL_OK;
  cpu_parallel(ctx, r->m, r->m * r->n, cpu_rows, r);
  return SOL_OK;
}

// Kernels whose threads have a part of a row each: the bytes of the units in which they move it, vectors per thread. Those
// that take y as one sequence, wherever rows end: units per thread, and what a unit has of what per_row counts.
typedef struct Unit {
  int bytes, chunks, each, elements;
} Unit;
static const Unit units[EMBEDDING_KERNELS] = {
#define UNIT_WIDE(chunks)                 {16, chunks, 0, 0},
#define UNIT_SHIFT(bytes, chunks)         {bytes, chunks, 0, 0},
#define UNIT_FLAT(unit, each)             {0, 0, each, 1},
#define UNIT_SHORT(size, each)            {0, 0, each, 4 / (size)},
#define UNIT_FLOW(in, out, convert, each) {0, 0, each, (out) == 8 ? 1 : 4 / (out)},
#define UNIT_STAGED(...)                  {0, 0, 0, 0},
#define UNIT_WORDS(...)                   {0, 0, 0, 0},
#define UNIT_ROWS(...)                    {0, 0, 0, 0},
#define UNIT_TINY(...)                    {0, 0, 0, 0},
#define UNIT_CONVERT(...)                 {0, 0, 0, 0},
#define EMBEDDING(name, how, ...)         UNIT_##how(__VA_ARGS__)
#include "kernels/embedding/embedding.def"
};

// Short rows, of which both ends would be much: where rows of y are dense, y is one sequence.
enum { SHORT = 256 }; // bytes of a row
static bool is_sequence(const EmbeddingRows *r, int64_t unit) {
  if (unit >= 4) return true;
  return !r->order && r->y_stride == r->n && ops_size(r->dtype) <= 2;
}

// Bytes of a row from which on rows on 4 bytes are written by whole lines, word by word; so are those on 2 bytes, unless the table is small, of which L1
// has much: two loads of 16 bytes and a shift are fewer instructions.
enum { LONG = 2048, FEW = 4 << 20 };

// Dense rows of so many bytes, of x or of y, whichever are more: one sequence of words, wherever rows end.
static bool is_flow(const EmbeddingRows *r, int64_t wide) {
  return r->x_stride == r->n && r->y_stride == r->n && !r->order && wide >= 16 && wide <= FLOW_MOST;
}

// Rows of a block in shared memory: 16 KB of them, less where they take much more or SMs would have no blocks.
// unit: of what a row has, in bytes.
static void set_staged(const SolContext *ctx, const EmbeddingRows *r, int64_t unit, EmbeddingParams *p) {
  enum { BYTES = 16 << 10, SHARED = 24 << 10, NEAR = 4 << 20 };
  int64_t bytes = r->n * ops_size(r->dtype), few = ops_ceil_div(r->m, 4 * (int64_t)ctx->sms);
  p->per_row = (uint64_t)(bytes / unit);
  p->near = r->rows * bytes <= NEAR;
  p->pitch =
      (int32_t)((bytes + 45) / 16 * 16); // up to 15 bytes before a row, up to 15 of the next one after it
  p->staged = (int32_t)cpu_min(few, cpu_min(BYTES / bytes, SHARED / (p->pitch + 8)));
}

// Rows of y of up to so many words, by some lanes each, the first of which starts at a sector's boundary or, where there are fewer than a sector
// has words, at their own. size: of what shares no word with another row, 2 or 4 bytes. false: they are too long.
static bool set_rows(const SolContext *ctx, const EmbeddingRows *r, int64_t bytes, int64_t size,
                     EmbeddingParams *p) {
  static const struct {
    int lanes, steps;
  } rows[] = {
#define WORD_ROWS(number, lanes, steps) {lanes, steps},
#include "kernels/embedding/embedding_rows.def"
  };
  for (size_t k = 0; k < SOL_COUNT(rows); k++) {
    int64_t align = cpu_min(32, 4 * rows[k].lanes), turn = 32 / rows[k].lanes * (rows[k].steps <= 6 ? 2 : 1);
    if (ops_ceil_div(bytes + align - size, 4) > rows[k].lanes * rows[k].steps) continue;
    int64_t turns = r->m / (turn * 96 * ctx->sms); // warps: at least twice what SMs hold
    p->words = (int32_t)k, p->per_row = 1;
    p->warp_rows = (int32_t)(turn * (turns < 1 ? 1 : cpu_min(turns, 32 / turn)));
    return true;
  }
  return false;
}

// Rows of a few elements, dense in y, and so many that a block has all of its own.
static bool is_tiny(const EmbeddingRows *r) {
  return !r->order && r->y_stride == r->n && r->n * ops_size(r->dtype) <= TINY_BYTES &&
         r->m >= 2 * EMBEDDING_THREADS;
}
static void set_tiny(const EmbeddingRows *r, EmbeddingParams *p) {
  p->tiny = 1, p->per_row = 1;
  p->x_end = (const char *)r->x + ((r->rows - 1) * r->x_stride + r->n) * ops_size(r->dtype);
}

// Much is taken from a table that stays in L2: y is all that DRAM has to move, and more of it has to be in flight. (Which kernel
// moves a row does not change its bits.)
enum { WORTH_IT = 8 << 20 }; // bytes
static double table_bytes(const EmbeddingRows *r) {
  return (double)r->rows * (double)(r->x_stride * ops_size(r->dtype));
}
static bool is_near(const EmbeddingRows *r) {
  enum { NEAR = 24 << 20 };
  return (double)r->m * (double)(r->n * ops_size(r->dtype)) >= WORTH_IT && table_bytes(r) <= NEAR;
}

// Nor does any of y stay in L2 for the next kernel, where y is larger: it may as well be the first to be evicted, and the table stay. (Small
// ones keep the usual stores: what reads y next finds it in L2.)
static bool is_streamed(const EmbeddingRows *r) {
  enum { L2 = 64 << 20, MUCH = 48 << 20 }; // much of a table of so many bytes stays there, too
  return table_bytes(r) <= MUCH && (double)r->m * (double)(r->n * ops_size(r->out_dtype)) >= L2;
}

// A table beyond L2, of which each row is taken more than once: in strips of its columns, of which one after another stays in L2 while all ids are
// served. (Of 16 MB or 5 MB they are slower than of 8.)
static int64_t strip_of(const EmbeddingRows *r) {
  enum { L2 = 24 << 20, KEPT = 8 << 20, LINE = 128, LEAST = 2 * LINE }; // bytes
  int64_t bytes = r->n * ops_size(r->dtype);
  double table = (double)r->rows * (double)bytes;
  int64_t strips = (int64_t)(table / KEPT) + 1;
  if (table <= L2 || r->m < r->rows || bytes / strips < LEAST / 2) return bytes;
  int64_t strip = ops_ceil_div(bytes, strips * LINE) * LINE;
  return strip < LEAST ? LEAST : strip;
}

// Long rows by whole lines of y, `lines` a warp. They may start near the end of a line.
static void set_lines(int64_t bytes, int64_t lines, EmbeddingParams *p) {
  p->per_row = (uint64_t)(32 * ops_ceil_div(bytes + 124, 128 * lines));
}

// Dense rows as one sequence of words: what a block does once, ids above all, is for up to FLOW_TURNS turns of its threads, where there are
// blocks enough to keep all SMs busy to the end. size: of an element that is moved, of y.
static void set_flow(const SolContext *ctx, const EmbeddingRows *r, int64_t elements, int64_t size,
                     EmbeddingParams *p) {
  enum { BLOCKS = 16, WAVES = 4, TURN = FLOW_BYTES / FLOW_TURNS };
  double turns = (double)r->m * (double)(elements * size) / ((double)ctx->sms * BLOCKS * WAVES * TURN);
  p->turns = elements * size < 16 ? 1 : turns < 1 ? 1 : turns > FLOW_TURNS ? FLOW_TURNS : (int32_t)turns;
  p->per_row = (uint64_t)elements;
  p->over = (uint32_t)(UINT32_MAX / p->per_row + 1);
}

// By the widest unit that divides all addresses. Words of smaller elements take a load for each of them: of bytes, and of 2 bytes of a table that
// is far from L1, whole vectors are staged.
static int pick_flow(const SolContext *ctx, const EmbeddingRows *r, int64_t unit, EmbeddingParams *p) {
  enum { NEAR = 8 << 20 }; // bytes of a table
  if (unit == 1 || (unit == 2 && r->rows * p->n > NEAR)) {
    set_staged(ctx, r, unit, p);
    return unit == 2 ? EMBEDDING_sol_embedding_staged_2 : EMBEDDING_sol_embedding_staged_1;
  }
  set_flow(ctx, r, p->n / unit, unit, p);
  return unit == 8   ? EMBEDDING_sol_embedding_flow_8
         : unit == 4 ? EMBEDDING_sol_embedding_flow_4
                     : EMBEDDING_sol_embedding_flow_2;
}

static int pick_flat(const EmbeddingRows *r, int64_t unit, EmbeddingParams *p) {
  enum { FOUR = 64 }; // bytes of a row from which on four vectors a thread pay, where the table is near
  p->per_row = (uint64_t)(unit < 4 ? r->n : p->n / unit);
  return unit == 16  ? (is_near(r) && p->n >= FOUR ? EMBEDDING_sol_embedding_flat_16x4
                                                   : EMBEDDING_sol_embedding_flat_16)
         : unit == 8 ? EMBEDDING_sol_embedding_flat_8
         : unit == 4 ? EMBEDDING_sol_embedding_flat_4
                     : EMBEDDING_sol_embedding_short_1; // elements of 2 bytes are moved by words
}

// So few units that each has a thread: it is the length of a thread's code that counts.
static int pick_small(int64_t unit, EmbeddingParams *p) {
  p->per_row = (uint64_t)(p->n / unit);
  return unit == 8   ? EMBEDDING_sol_embedding_flat_8x1
         : unit == 4 ? EMBEDDING_sol_embedding_flat_4x1
                     : EMBEDDING_sol_embedding_flat_2x1;
}

static int pick_moving(const SolContext *ctx, const EmbeddingRows *r, EmbeddingParams *p) {
  int64_t size = ops_size(r->dtype);
  p->n = r->n * size;
  p->strip = p->n;
  int64_t bits = ops_align(r->x, r->x_stride * size, 2) | ops_align(r->y, r->y_stride * size, 2) | p->n;
  int64_t unit = bits & -bits;
  bool words = unit == 4 || unit == 8 || (unit == 2 && size <= 2);
  if (words && elementwise_small(ctx, r->m, p->n / unit)) return pick_small(unit, p);
  if (words && is_tiny(r)) {
    set_tiny(r, p);
    return unit >= 4 ? EMBEDDING_sol_embedding_tiny_4 : EMBEDDING_sol_embedding_tiny_2;
  }
  if (unit < 16 && is_flow(r, p->n)) return pick_flow(ctx, r, unit, p);
  if (words && !r->order && set_rows(ctx, r, p->n, unit < 4 ? 2 : 4, p))
    return unit >= 4 ? EMBEDDING_sol_embedding_rows_4 : EMBEDDING_sol_embedding_rows_2;
  if ((p->n < SHORT && is_sequence(r, unit)) || (unit == 16 && is_near(r))) return pick_flat(r, unit, p);
  if (unit >= 4 && (unit == 16 || p->n >= LONG)) p->strip = strip_of(r), p->stream |= p->strip < p->n;
  if (words && p->n >= LONG && !(unit == 2 && r->rows * p->n <= FEW)) {
    bool twice = unit >= 4 && is_near(r);
    int64_t lines = twice ? 2 * EMBEDDING_LINES : EMBEDDING_LINES;
    set_lines(p->strip, lines, p);
    return unit == 2 ? EMBEDDING_sol_embedding_words_2
           : twice   ? EMBEDDING_sol_embedding_words_near
                     : EMBEDDING_sol_embedding_words;
  }
  int k = 0; // in descending order
  while (units[k].bytes > unit) k++;
  int64_t threads = ops_ceil_div(ops_ceil_div(p->strip, 16), units[k].chunks);
  if (k && p->n >= LONG) { // y may start near the end of a line
    p->lines = 1;
    threads = ops_ceil_div(ops_ceil_div(p->strip + 127, 16), 32 * units[k].chunks) * 32;
  }
  int64_t least = k ? 16 / units[k].bytes : p->n > 16 ? 2 : 1; // an end of a row; a whole sector
  p->per_row = (uint64_t)(threads > least ? threads : least);
  return k;
}

// Whether all rows start at a piece's boundary, on both sides.
static bool on_pieces(const EmbeddingRows *r, int64_t per) {
  int64_t size = ops_size(r->dtype), out = ops_size(r->out_dtype);
  return ops_align(r->x, r->x_stride * size, 2) >= per * size &&
         ops_align(r->y, r->y_stride * out, 2) >= per * out;
}

static int pick_converting(const SolContext *ctx, const EmbeddingRows *r, EmbeddingParams *p) {
  int64_t size = ops_size(r->dtype), out = ops_size(r->out_dtype), wide = size > out ? size : out,
          per = 16 / wide;
  p->n = r->n, p->strip = r->n;
  p->per_row = (uint64_t)r->n;
  if (is_tiny(r)) {
    set_tiny(r, p);
    return size == 4  ? EMBEDDING_sol_embedding_tiny_4_to_2
           : out == 4 ? EMBEDDING_sol_embedding_tiny_2_to_4
                      : EMBEDDING_sol_embedding_tiny_2_to_2;
  }
  if (is_flow(r, r->n * wide)) {
    set_flow(ctx, r, r->n, out, p);
    return size == 4  ? EMBEDDING_sol_embedding_flow_4_to_2
           : out == 4 ? EMBEDDING_sol_embedding_flow_2_to_4
                      : EMBEDDING_sol_embedding_flow_2_to_2;
  }
  if (!r->order && set_rows(ctx, r, r->n * out, out, p))
    return size == 4  ? EMBEDDING_sol_embedding_rows_4_to_2
           : out == 4 ? EMBEDDING_sol_embedding_rows_2_to_4
                      : EMBEDDING_sol_embedding_rows_2_to_2;
  if (r->n * out >= LONG && !on_pieces(r, per)) {
    set_lines(r->n * out, EMBEDDING_LINES, p);
    return size == 4  ? EMBEDDING_sol_embedding_words_4_to_2
           : out == 4 ? EMBEDDING_sol_embedding_words_2_to_4
                      : EMBEDDING_sol_embedding_words_2_to_2;
  }
  int64_t threads = ops_ceil_div(ops_ceil_div(r->n, per), EMBEDDING_PIECES);
  p->per_row = (uint64_t)(threads > per ? threads : per);
  return size == 4  ? EMBEDDING_sol_embedding_4_to_2
         : out == 4 ? EMBEDDING_sol_embedding_2_to_4
                    : EMBEDDING_sol_embedding_2_to_2;
}

// The kernel, and the threads per row. Where elements are converted they depend on the row alone, never on the number of rows.
static int pick(const SolContext *ctx, const EmbeddingRows *r, EmbeddingParams *p) {
  return r->dtype == r->out_dtype ? pick_moving(ctx, r, p) : pick_converting(ctx, r, p);
}

// i / d = ((i * multiply >> 32) + i) >> shift, for every i below 2^31.
static void set_division(EmbeddingParams *p, uint64_t threads) {
  uint64_t d = p->per_row;
  if (threads >> 31 || d >> 31) return;
  while ((uint64_t)1 << p->shift < d) p->shift++;
  p->multiply = (uint32_t)(((((uint64_t)1 << p->shift) - d) << 32) / d + 1);
}

SolStatus embedding_launch(SolContext *ctx, const OpsDef *def, const EmbeddingRows *r, SolStream stream) {
  if (!r->m || !r->n) return SOL_OK;
  int64_t size = ops_size(r->dtype), out = ops_size(r->out_dtype);
  EmbeddingParams p = {.y = r->y,
                       .x = r->x,
                       .ids = r->ids,
                       .order = r->order,
                       .bad = r->bad,
                       .m = r->m,
                       .rows = r->rows,
                       .y_stride = r->y_stride * out,
                       .x_stride = r->x_stride * size,
                       .wide_ids = r->id_dtype == SOL_INT64,
                       .x_kind = ops_kind(r->dtype),
                       .stream = is_streamed(r),
                       .hint = table_bytes(r) >= 16 * (double)r->m,
                       .y_kind = ops_kind(r->out_dtype)};
  p.ends = ends_bytes(r->y, NULL, p.y_stride, r->n * out);
  if (r->x_stride == r->n) p.x_end = (const char *)r->x + r->rows * r->n * size;
  OpsLaunch l = {
      .kernel = pick(ctx, r, &p), .block = EMBEDDING_THREADS, .early = true, .params = &p, .bytes = sizeof p};
  uint64_t threads = p.per_row * (uint64_t)r->m, each = 1;
  const Unit *u = &units[l.kernel];
  if (u->each) { // y may start within the first unit
    uint64_t mine = (uint64_t)(u->each * (p.turns ? p.turns : 1));
    threads = (threads / (uint64_t)u->elements + 2) / mine + 1;
    each = mine * (uint64_t)u->elements;
  }
  ops_grid(l.grid, threads, l.block);
  if (p.staged) {
    ops_grid(l.grid, (uint64_t)ops_ceil_div(r->m, p.staged), 1);
    l.shared = (uint32_t)(p.staged * (p.pitch + 8) + 32);
  }
  l.grid[2] = (uint32_t)ops_ceil_div(p.n, p.strip);
  if (l.grid[2] > 1) p.ends = 0; // a row is several blocks'
  if (p.warp_rows) ops_grid(l.grid, (uint64_t)ops_ceil_div(r->m, p.warp_rows) * 32, l.block);
  if (p.tiny) {
    enum { ROWS = 2 * EMBEDDING_THREADS };
    ops_grid(l.grid, (uint64_t)ops_ceil_div(r->m, ROWS), 1);
    l.shared = (uint32_t)(ROWS * r->n * out + 16);
  }
  // Later rows are prefetched, a few megabytes ahead, where there is enough data.
  enum { AHEAD = 6 << 20 };
  if ((p.turns || p.staged || (r->dtype == r->out_dtype && !is_near(r) && !u->each)) &&
      (double)r->m * (double)p.n >= WORTH_IT)
    p.ahead = (uint64_t)(AHEAD / p.strip);
  set_division(&p, (uint64_t)l.grid[0] * l.grid[1] * l.block * each);
  return ops_launch(ctx, def, &l, stream);
}

static EmbeddingRows rows_of(const SolEmbedding *a) {
  return (EmbeddingRows){EMBEDDING_ROWS(a), .x = a->table, .rows = a->vocab,
                         .x_stride = ops_stride(a->table_stride, a->n),
                         .out_dtype = ops_or(a->out_dtype, a->dtype)};
}

static const char *const option_names[] = {"bad ids: zeros", "bad ids: flag"};

static bool make(const OpsCase *c, void *args) {
  SolEmbedding *a = args;
  *a = (SolEmbedding){OPS_MATRIX_CASE(c), .vocab = c->dim[2] ? c->dim[2] : 37, .id_dtype = c->id_dtype,
                      .bad_id = c->option ? SOL_BAD_ID_FLAG : SOL_BAD_ID_ZERO};
  if (c->pad) a->table_stride = a->n + c->pad, a->y_stride = a->n + 2 * c->pad;
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolEmbedding *a = args;
  v[0] = OPS_VIEW(SolEmbedding, y, ops_or(a->out_dtype, a->dtype), OPS_OUT, .rows = a->m, .cols = a->n,
                  .stride = a->y_stride);
  v[1] = OPS_VIEW(SolEmbedding, table, a->dtype, OPS_IN, .rows = a->vocab, .cols = a->n,
                  .stride = a->table_stride);
  v[2] = OPS_VIEW(SolEmbedding, ids, ops_or(a->id_dtype, SOL_INT32), OPS_IN, .rows = 1, .cols = a->m,
                  .fill = OPS_FILL_IDS, .limit = a->vocab);
  if (a->bad_id != SOL_BAD_ID_FLAG) return 3;
  v[3] = OPS_VIEW(SolEmbedding, bad, SOL_INT32, OPS_INOUT, .rows = 1, .cols = 1, .fill = OPS_FILL_IDS,
                  .limit = 1);
  return 4;
}

static SolStatus check(const void *args, SolError *err) {
  const SolEmbedding *a = args;
  SolStatus status = ops_check_reals(a->dtype, ops_or(a->out_dtype, a->dtype), err);
  return status ? status : embedding_check_ids(a->id_dtype, a->bad_id, a->bad, err);
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  EmbeddingRows r = rows_of(args);
  return embedding_cpu(ctx, &r);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  EmbeddingRows r = rows_of(args);
  return embedding_launch(ctx, &ops_embedding, &r, stream);
}

static void reference(const void *args, double *const *at) {
  const SolEmbedding *a = args;
  EmbeddingRows r = rows_of(a);
  embedding_reference(&r, at, a->bad_id == SOL_BAD_ID_FLAG ? at[3] : NULL);
}

static void cost(const void *args, SolOpArgs *op) {
  const SolEmbedding *a = args;
  *op = (SolOpArgs){OPS_MATRIX_COST(a), .weight_dtype = a->dtype, .id_dtype = a->id_dtype, .vocab = a->vocab};
}

static const int64_t bench[][4] = {
    {1, 4096, 32000},    {64, 8192, 32000},    {512, 4096, 32000},
    {8192, 4096, 32000}, {16384, 8192, 32000}, {3001, 5125, 32000},
};

const OpsDef ops_embedding = {
    .name = "embedding",
    OPS_ARGS(SolEmbedding, "MxNxV"),
    OPS_OPTIONS(option_names),
    OPS_OWN_FUNCTIONS,
    OPS_CASES(embedding_shapes, bench),
    OPS_KERNELS("embedding", embedding_kernels),
};
