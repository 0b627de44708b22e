// Constant memory and textures: the two paths that have caches of their own rules.
#include "ladder/sweep.h"

// ---- constant ----

enum { Y, X, BUFFERS };

static SolStatus accept(const LadderCase *c, SolError *err) {
  return sweep_at_most(c, INT64_C(1) << 36, "threads", err);
}

// As constant_table of the kernels.
static void table_make(const LadderCase *c, void *to, int64_t count) {
  (void)c;
  for (int64_t i = 0; i < count; i++) ((float *)to)[i] = (float)(i * 37 % 61);
}

static int table_buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_output("y", c->dim[0]);
  b[X] = sweep_input("table", SWEEP_TABLE);
  b[X].make = table_make;
  b[X].shared = true;
  return BUFFERS;
}

static double no_bytes(const LadderCase *c, const LadderRung *rung) {
  (void)c, (void)rung;
  return 0;
}

static void table_expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t distinct = (int64_t)h->rung->x;
  for (int64_t k = first; k < first + count; k++) {
    double sum = 0;
    for (int64_t j = 0; j < SWEEP_LOOKUPS; j++)
      sum += (double)sweep_in(h, X)[(k % SWEEP_BLOCK % distinct + j * 53) % SWEEP_TABLE];
    *out++ = sum;
  }
}

static SolStatus look_up(const LadderCall *call, const char *kernel, SolError *err) {
  SweepConstant p = {.y = sweep_at(call, Y),
                     .table = sweep_at(call, X),
                     .n = (uint64_t)call->c.dim[0],
                     .distinct = (uint32_t)call->rung->x};
  LadderGrid grid = {.grid = {sweep_blocks(call->c.dim[0], SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, kernel, &grid, &p, sizeof p, err);
}

static SolStatus constant(const LadderCall *call, SolError *err) {
  return look_up(call, "constant_read", err);
}
static SolStatus global(const LadderCall *call, SolError *err) {
  return look_up(call, "constant_global", err);
}

#define CONSTANT(count) .name = "constant-" #count, .x = (count), .go = constant
#define GLOBAL(count)   .name = "global-" #count, .x = (count), .go = global
static const LadderRung tables[] = {
    {CONSTANT(1),
     .why = "All lanes want one word: the constant cache gives it to all of them at once. This is what "
            "constant memory is made for, and where kernel parameters lie."},
    {GLOBAL(1),
     .why = "The same by way of L1: one sector, one pass, and a longer way than the constant cache's."},
    {CONSTANT(2), .why = "Two words are two accesses, one after the other."},
    {GLOBAL(2)},
    {CONSTANT(4)},
    {GLOBAL(4)},
    {CONSTANT(8)},
    {GLOBAL(8)},
    {CONSTANT(16)},
    {GLOBAL(16)},
    {CONSTANT(32),
     .why = "32 words, 32 accesses: a table that lanes index by data does not belong in constant memory."},
    {GLOBAL(32), .why = "Neighbouring words of a line still take L1 about one pass."},
};

const Ladder ladder_constant = {
    .name = "constant",
    .title = "Constant memory, uniform and divergent",
    .about =
        "Threads sum 64 words of a table of 4 KiB; x is how many different words the lanes of a warp want "
        "at a time. The constant cache serves one address at a time, for any number of lanes; global "
        "memory, from L1, serves a line at a time. The time model has no rule for divergent constants: "
        "its prediction sees the instructions alone.",
    .module = "sweeps_constant",
    .sweep = true,
    .axis = "addresses a warp",
    .shape = "N",
    .size = {1 << 20},
    .small = {1001},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(tables),
    .accept = accept,
    .buffers = table_buffers,
    .bytes = no_bytes,
    .expect = table_expect,
};

// ---- texture ----

static SolStatus image_accept(const LadderCase *c, SolError *err) {
  enum { MOST = 65000 }; // rows of a texture over plain memory; its columns may be more
  if (c->dim[0] > MOST || c->dim[1] > MOST)
    return sol_fail(err, SOL_ERR_RANGE, "a texture has at most %d rows and columns here", MOST);
  if (c->dim[1] % 8 != 0)
    return sol_fail(err, SOL_ERR_ARGUMENT, "rows of a texture are a multiple of 8 pixels: 32 bytes");
  return SOL_OK;
}

static uint32_t patches(int64_t pixels) {
  return sweep_blocks(pixels, SWEEP_PATCH);
}

static int image_buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_output("y", (int64_t)patches(c->dim[0]) * patches(c->dim[1]) * SWEEP_BLOCK);
  b[X] = sweep_input("x", c->dim[0] * c->dim[1]);
  return BUFFERS;
}

static double image_bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  double sums = (double)patches(c->dim[0]) * patches(c->dim[1]) * SWEEP_BLOCK;
  return 4.0 * ((double)c->dim[0] * (double)c->dim[1] + sums);
}

// x is a power of two: rows of a warp.
static int rows_shift(const LadderRung *rung) {
  int shift = 0;
  while (1 << shift < (int)rung->x) shift++;
  return shift;
}

// Eight warps side by side and below each other are 32 pixels wide and 8 high, or 8 wide where they are
// columns.
typedef struct Step {
  uint32_t x, y;
} Step;

static Step step_of(const LadderRung *rung) {
  enum { WARPS = SWEEP_BLOCK / 32 };
  return rung->x > WARPS ? (Step){WARPS, 0} : (Step){0, WARPS};
}

static void image_expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t m = h->c->dim[0], n = h->c->dim[1], across = patches(n);
  int down = rows_shift(h->rung), wide = 5 - down;
  Step step = step_of(h->rung);
  for (int64_t k = first; k < first + count; k++) {
    int64_t block = k / SWEEP_BLOCK, warp = k % SWEEP_BLOCK / 32, lane = k % 32;
    int64_t x =
        block % across * SWEEP_PATCH + ((warp & ((1 << down) - 1)) << wide) + (lane & ((1 << wide) - 1));
    int64_t y = block / across * SWEEP_PATCH + (warp >> down << down) + (lane >> wide);
    double sum = 0;
    for (int j = 0; j < SWEEP_PIXELS; j++, x += step.x, y += step.y)
      if (x < n && y < m) sum += (double)sweep_in(h, X)[y * n + x];
    *out++ = sum;
  }
}

static SolStatus read_image(const LadderCall *call, bool texture, bool array, SolError *err) {
  uint32_t height = (uint32_t)call->c.dim[0], width = (uint32_t)call->c.dim[1];
  SweepTexture p = {.y = sweep_at(call, Y),
                    .x = sweep_at(call, X),
                    .width = width,
                    .height = height,
                    .shift = (uint32_t)(5 - rows_shift(call->rung)),
                    .step_x = step_of(call->rung).x,
                    .step_y = step_of(call->rung).y};
  SolDriverImage image = {.address = call->at[X], .width = width, .height = height, .array = array};
  SolStatus status = texture ? sol_driver_texture(call->ctx->driver, &image, &p.texture, err) : SOL_OK;
  if (status) return status;
  LadderGrid grid = {.grid = {patches(width), patches(height)}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, texture ? "texture_fetch" : "texture_global", &grid, &p, sizeof p, err);
}

static SolStatus image_global(const LadderCall *call, SolError *err) {
  return read_image(call, false, false, err);
}
static SolStatus image_rows(const LadderCall *call, SolError *err) {
  return read_image(call, true, false, err);
}
static SolStatus image_array(const LadderCall *call, SolError *err) {
  return read_image(call, true, true, err);
}

#define IMAGE(rows, how) .name = #how "-" #rows, .x = (rows), .go = image_##how
static const LadderRung images[] = {
    {IMAGE(1, global), .why = "A warp is a row of 32 pixels: coalesced, 4 sectors."},
    {IMAGE(1, rows), .why = "The same memory through the texture unit, which serves four pixels a clock."},
    {IMAGE(1, array),
     .why = "The same pixels in the texture unit's own order, where neighbours in both directions lie close "
            "together."},
    {IMAGE(4, global), .why = "8 pixels wide and 4 high: rows of a whole sector each, 4 sectors as before."},
    {IMAGE(4, rows)},
    {IMAGE(4, array)},
    {IMAGE(8, global),
     .why = "4 pixels wide: half of each sector is another warp's, and is found in L1 by it."},
    {IMAGE(8, rows)},
    {IMAGE(8, array)},
    {IMAGE(32, global), .why = "A column: 32 lines, looked up one after another, for 4 bytes of each."},
    {IMAGE(32, rows)},
    {IMAGE(32, array),
     .why = "In the unit's own order a column is spread over half as many sectors as in rows."},
};

const Ladder ladder_texture = {
    .name = "texture",
    .title = "Textures against global memory, for 2-D locality",
    .about = "Blocks read patches of 32 x 32 pixels, each pixel once, by warps of 32 x 1 to 1 x 32; x is how "
             "many rows a warp covers. By plain loads, through a texture over the same rows, and through a "
             "texture over an array in the GPU's own two-dimensional order. Textures and global memory share "
             "one L1, so what is left of the texture's advantage is that order, and its addressing for free. "
             "The emulator lays arrays out by rows, as no GPU does, and its time model has no rate for "
             "texture units: what it predicts for textures is what memory alone would take.",
    .module = "sweeps_texture",
    .sweep = true,
    .axis = "rows a warp",
    .shape = "MxN",
    .size = {4096, 4096},
    .small = {70, 104},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(images),
    .accept = image_accept,
    .buffers = image_buffers,
    .bytes = image_bytes,
    .expect = image_expect,
};
