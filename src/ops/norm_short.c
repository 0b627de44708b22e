// Row normalisations of short rows: kernels/norm_narrow.cuh, norm_direct.cuh.
#include "ops/narrow.h"
#include "ops/norm_parts.h"

// The longest rows, all that is held of them together; those of two inputs; those of layernorm, whose other kernels for such rows have
// most to do. Of 16-bit types: in fp32 the other kernels are at light from 256 elements on.
enum { NORM_NARROW_BYTES = 1024, NORM_NARROW_PAIR = 1440, NORM_NARROW_LAYER = 2048 };
// Bytes of all that is held that a lane has of a row at most: what a lane does for a row beside its
// elements is some hundred instructions, so lanes are few.
enum { NORM_LANE_BYTES = 256 };
enum { FEW = 16 }; // elements of a row that one lane has in registers: FEW_MOST in kernels/few.cuh

static int64_t norm_narrow_bytes(const NarrowTensor *t, int64_t n) {
  return t->at ? n * t->size : 0;
}

// Rows that are copied one by one: they are not dense, or would all begin in a few banks of shared memory.
static bool norm_narrow_apart(const NarrowTensor *t, int64_t n) {
  return t->at && (t->looked_up || t->stride != n * t->size || n * t->size % 32 == 0);
}

static int64_t norm_lowest_bit(int64_t v) {
  return v & -v;
}

// Bytes that a row takes in shared memory, wherever the tensors begin.
static int64_t norm_narrow_held(const NarrowTensor *t, int64_t n) {
  int64_t bytes = norm_narrow_bytes(&t[NARROW_X], n) + norm_narrow_bytes(&t[NARROW_RESIDUAL], n);
  bool looked_up = t[NARROW_X].looked_up;
  if (looked_up || t[NARROW_Y].size != t[NARROW_X].size) bytes += norm_narrow_bytes(&t[NARROW_Y], n);
  return bytes + (looked_up ? norm_narrow_bytes(&t[NARROW_SECOND], n) : 0);
}

// Of the words that the lanes of a warp read at a time, the most that are in one bank, where so many lanes share a dense row.
static int norm_narrow_ways(const NarrowTensor *t, int64_t n, int bits) {
  int banks[32] = {0}, most = 0;
  for (int64_t row = 0; row < 32 >> bits; row++)
    for (int64_t lane = 0; lane < 1 << bits; lane++) {
      int *bank = &banks[(ops_ceil_div(row * n * t->size, 4) + lane) % 32];
      if (++*bank > most) most = *bank;
    }
  return most;
}

// How many lanes share a row: enough for its bytes, and, where each still has some words, for rows to begin in
// different banks. It depends on sizes and strides alone.
static int norm_narrow_lanes(const NarrowTensor *t, int64_t n) {
  int64_t bytes = norm_narrow_bytes(&t[NARROW_X], n);
  int64_t banks = norm_narrow_apart(&t[NARROW_X], n) ? 4 : norm_lowest_bit(bytes) / 4;
  int bits = 0;
  while (bits < NARROW_NORM && norm_narrow_held(t, n) > NORM_LANE_BYTES << bits) bits++;
  while (1 << bits < banks && bytes / 4 >= INT64_C(16) << bits) bits++;
  // Twice as many where that halves the turns that a warp's accesses take, if these are more than two (measured).
  bool dense = !norm_narrow_apart(&t[NARROW_X], n),
       more = bytes / 4 >= INT64_C(16) << bits && bits < NARROW_NORM;
  int ways = dense && more ? norm_narrow_ways(&t[NARROW_X], n, bits) : 0;
  return ways > 2 && 2 * norm_narrow_ways(&t[NARROW_X], n, bits + 1) <= ways ? bits + 1 : bits;
}

// Rows of two tensors lie in shared memory at the same places.
static bool norm_narrow_alike(const NarrowTensor *a, const NarrowTensor *b, int64_t n) {
  return narrow_alike(a, b) && !a->looked_up && norm_narrow_apart(a, n) == norm_narrow_apart(b, n) &&
         (a->stride - b->stride) % 16 == 0;
}

// Elements of b share words, or pairs of bytes, where those of a share words.
static bool norm_narrow_words(const NarrowTensor *a, const NarrowTensor *b) {
  if (!b->at || a->size == 4) return true;
  intptr_t at = (intptr_t)a->at / a->size - (intptr_t)b->at / b->size;
  if (a->looked_up && (a->stride / a->size % 2 || b->stride / b->size % 2)) return false;
  return at % 2 == 0 && (a->stride / a->size - b->stride / b->size) % 2 == 0 &&
         (intptr_t)b->at % b->size == 0;
}

// Places in shared memory; returns its size. What is written takes the place of an input that is laid out alike.
static uint32_t norm_narrow_places(const NarrowTensor *t, int vectors, NarrowShape *s, NormNarrow *how) {
  static const int input_of[NARROW_TENSORS] = {[NARROW_Y] = NARROW_X, [NARROW_SECOND] = NARROW_X};
  uint32_t used = 0, rows = (uint32_t)s->rows;
  for (int i = 0; i < NARROW_TENSORS; i++) {
    int from = i == NARROW_Y && t[NARROW_RESIDUAL].at ? NARROW_RESIDUAL : input_of[i];
    uint32_t bytes = (uint32_t)norm_narrow_bytes(&t[i], s->n);
    bool apart = norm_narrow_apart(&t[i], s->n);
    s->pitch[i] = apart ? (int32_t)((bytes + 30) / 16 | 1) * 16 : 0;
    s->place[i] = (int32_t)used;
    if (!t[i].at) continue;
    int64_t piece = norm_lowest_bit((int64_t)(uintptr_t)t[i].at | t[i].stride | bytes | 8);
    how->piece[i] = (int32_t)piece;
    if (i >= NARROW_Y && norm_narrow_alike(&t[from], &t[i], s->n))
      s->place[i] = s->place[from];
    else
      used += apart ? rows * (uint32_t)s->pitch[i] : (rows * bytes + 31) / 16 * 16;
  }
  s->place[NARROW_IDS] = (int32_t)used;
  used += t[NARROW_X].looked_up ? rows * 8 : 0;
  how->vectors = (int32_t)used;
  return used + (uint32_t)(vectors * (4 / t[NARROW_X].size) * (s->n | 1) * 4);
}

// What both kinds of rows have in common, once lanes and rows are known.
static void norm_narrow_launch(const NarrowTensor *t, uint64_t m, NarrowShape *s, NormNarrow *how,
                               OpsLaunch *l) {
  int64_t width = norm_narrow_bytes(&t[NARROW_X], s->n);
  how->copy_bits = 0;
  while (how->copy_bits < 5 && width + 14 > INT64_C(16) << how->copy_bits) how->copy_bits++;
  how->plain = norm_narrow_words(&t[NARROW_X], &t[NARROW_RESIDUAL]) &&
               norm_narrow_words(&t[NARROW_X], &t[NARROW_Y]) &&
               norm_narrow_words(&t[NARROW_X], &t[NARROW_SECOND]);
  l->block = NARROW_THREADS, l->cluster = 1;
  ops_grid(l->grid, (m + (uint64_t)s->rows - 1) / (uint64_t)s->rows, 1);
}

// Fills the shape and the launch; false: the rows are too long. vectors: of weights, and of biases.
static bool norm_narrow_plan(const SolContext *ctx, const NarrowTensor *t, uint64_t m, int64_t n, int vectors,
                             NarrowShape *s, NormNarrow *how, OpsLaunch *l) {
  int64_t width = 1; // bytes of a row in the widest tensor
  for (int i = 0; i < NARROW_TENSORS; i++)
    if (norm_narrow_bytes(&t[i], n) > width) width = norm_narrow_bytes(&t[i], n);
  s->n = (int32_t)n, s->lane_bits = norm_narrow_lanes(t, n);
  // More lanes to a row where the rows of one turn of the block's threads are more than its shared memory.
  for (;; s->lane_bits++) {
    s->rows = NARROW_THREADS >> s->lane_bits;
    if (norm_narrow_places(t, vectors, s, how) <= NARROW_SHARED) break;
    if (s->lane_bits == NARROW_NORM) return false;
  }
  // Rows that one lane has in registers take so little time that a block has more of them.
  enum { FEW_SPAN = 14 << 10 };
  uint64_t turn = NARROW_THREADS >> s->lane_bits;
  uint64_t turns = (uint64_t)(n <= FEW ? FEW_SPAN : NARROW_SPAN) / ((uint64_t)width * turn);
  uint64_t least = (8 * (uint64_t)vectors + turn - 1) / turn; // rows that pay for the vectors
  uint64_t few = m / (turn * 4 * (uint64_t)ctx->sms);         // turns that leave four blocks an SM
  if (turns < least) turns = least;
  if (turns > few) turns = few;
  if (!turns) turns = 1;
  do s->rows = (int32_t)(turn * turns), l->shared = norm_narrow_places(t, vectors, s, how);
  while (l->shared > NARROW_SHARED && --turns);
  norm_narrow_launch(t, m, s, how, l);
  return true;
}

// Short rows, planned already as others (norm_plan_short), without shared memory: few rows. Whole rows of a few elements in a lane take
// accesses that lie apart, so they are to be short; others are a few warps of an SM (measured).
static void plan_direct(NormPlan *a) {
  enum { LANES = 32, PARTS = 4 };
  enum { FEW_BYTES = 14 << 10, THREADS = 256 }; // of an SM
  NormParams *p = a->p;
  uint64_t lanes = p->n <= FEW ? 1 : (uint64_t)PARTS << p->narrow.lane_bits, sms = (uint64_t)a->ctx->sms;
  bool one_type = p->weight_kind == a->kind && (a->call->fp8 || p->y_kind == p->weight_kind);
  bool many = p->n <= FEW ? (double)p->m * (double)(p->n * p->n * a->in) > (double)sms * FEW_BYTES
                          : p->m * lanes > sms * THREADS || lanes > LANES;
  if (!one_type || many) return;
  p->how.steps = (int32_t)ops_ceil_div(ops_ceil_div(p->n * a->in, 4), (int64_t)lanes);
  if (p->n > FEW && p->how.steps > NORM_DIRECT_STEPS) return;
  a->l.kernel = norm_kernel(a, NORM_f_direct);
  a->l.block = NARROW_THREADS, a->l.cluster = 1;
  a->l.shared = p->n <= FEW ? 0 : (uint32_t)((a->call->layer ? 2 : 1) * (4 / a->in) * (p->n | 1) * 4);
  ops_grid(a->l.grid, p->m * lanes, NARROW_THREADS);
}

// Dense rows of which 16 bytes hold one or several.
static bool plan_packed(NormPlan *a) {
  NormParams *p = a->p;
  int64_t bytes = p->n * a->in;
  bool dense = p->x_stride == bytes && p->y_stride == bytes &&
               (!p->residual || (p->residual_stride == bytes && p->second_stride == bytes));
  bool aligned =
      norm_on_16(p->x, 0) && norm_on_16(p->y, 0) && norm_on_16(p->residual, 0) && norm_on_16(p->second, 0);
  if (!dense || !aligned || bytes < 1 || bytes > 16 || 16 % bytes || p->ids || p->y_kind != a->kind)
    return false;
  a->l.kernel = norm_kernel(a, NORM_f_packed);
  a->l.block = NARROW_THREADS, a->l.shared = 0, a->l.cluster = 1;
  ops_grid(a->l.grid, (p->m * (uint64_t)bytes + 15) / 16, NARROW_THREADS);
  return true;
}

// fp32 rows that start anywhere, of more elements than those before: by a warp each.
static bool plan_words(NormPlan *a) {
  enum {
    LEAST = NARROW_EACH << NARROW_NORM,
    SECTOR = 8,
    WARPS = 96
  }; // elements; of an SM: at least twice what it holds
  NormParams *p = a->p;
  bool fp32 = a->in == 4 && a->out == 4 && p->weight_kind == a->kind;
  if (!fp32 || p->residual || p->ids || p->n <= LEAST || p->n + SECTOR - 1 > 32 * NORM_WORDS_MOST)
    return false;
  int64_t rows = (int64_t)p->m / (WARPS * a->ctx->sms);
  p->how.steps = (int32_t)(rows < 1 ? 1 : rows < 32 ? rows : 32), p->narrow.n = (int32_t)p->n;
  a->l.kernel = norm_kernel(a, NORM_f_words);
  a->l.block = NARROW_THREADS, a->l.cluster = 1,
  a->l.shared = (uint32_t)((a->call->layer ? 2 : 1) * p->n * 4);
  ops_grid(a->l.grid, (uint64_t)ops_ceil_div((int64_t)p->m, p->how.steps) * 32, NARROW_THREADS);
  return true;
}

bool norm_plan_short(NormPlan *a) {
  NormParams *p = a->p;
  const NormCall *call = a->call;
  int in = (int)a->in;
  if (plan_packed(a) || plan_words(a)) return true;
  NarrowTensor t[NARROW_TENSORS] = {[NARROW_X] = {p->x, p->x_stride, in, p->ids != NULL},
                                    [NARROW_RESIDUAL] = {p->residual, p->residual_stride, in, false},
                                    [NARROW_Y] = {p->y, p->y_stride, (int)a->out, false},
                                    [NARROW_SECOND] = {p->second, p->second_stride, in, false}};
  int64_t most = call->layer ? NORM_NARROW_LAYER : p->residual ? NORM_NARROW_PAIR : NORM_NARROW_BYTES;
  bool held = in == 2 && norm_narrow_held(t, p->n) <= most;
  if (p->scaling == NORM_SCALE_BLOCK || !(narrow_holds(p->n, NARROW_NORM) || held)) return false;
  if (!norm_narrow_plan(a->ctx, t, p->m, p->n, call->layer ? 2 : 1, &p->narrow, &p->how, &a->l)) return false;
  if (p->y_kind != a->kind && p->y_kind != KIND_FP8) p->how.plain = 0;
  a->l.kernel = norm_kernel(a, NORM_f_narrow);
  plan_direct(a);
  return true;
}

bool norm_plan_few(const SolContext *ctx, NormCall *call, OpsLaunch *l) {
  NormPlan a = norm_plan(ctx, call, true);
  bool few = a.p->n <= FEW && norm_plan_short(&a) && a.l.kernel == norm_kernel(&a, NORM_f_direct);
  *l = a.l;
  return few;
}
