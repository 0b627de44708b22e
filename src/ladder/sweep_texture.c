// Textures against global memory, by the shape of a warp in an image.
#include "base/error.h"
#include "ladder/sweep.h"

static SolStatus accept(const LadderCase *c, SolError *err) {
  enum { MOST = 65000 }; // the most rows of a texture over linear memory; columns may be more
  if (c->dim[0] > MOST || c->dim[1] > MOST)
    return sol_fail(err, SOL_ERR_RANGE, "a texture has at most %d rows and columns here", MOST);
  if (c->dim[1] % 8 != 0)
    return sol_fail(err, SOL_ERR_ARGUMENT, "rows of a texture are a multiple of 8 pixels: 32 bytes");
  return SOL_OK;
}

static uint32_t patches(int64_t pixels) {
  return sweep_blocks(pixels, SWEEP_PATCH);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[SWEEP_Y] = sweep_output("y", (int64_t)patches(c->dim[0]) * patches(c->dim[1]) * SWEEP_BLOCK);
  b[SWEEP_X] = sweep_input("x", c->dim[0] * c->dim[1]);
  return SWEEP_BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
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

// From a pixel of a thread to its next. The eight warps of a block cover 32 x 8 pixels, or 8 x 32 where a
// warp is a column.
typedef struct Step {
  uint32_t x, y;
} Step;

static Step step_of(const LadderRung *rung) {
  enum { WARPS = SWEEP_BLOCK / 32 };
  return rung->x > WARPS ? (Step){WARPS, 0} : (Step){0, WARPS};
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
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
      if (x < n && y < m) sum += (double)sweep_in(h, SWEEP_X)[y * n + x];
    *out++ = sum;
  }
}

static SolStatus launch(const LadderCall *call, bool texture, bool array, SolError *err) {
  uint32_t height = (uint32_t)call->c.dim[0], width = (uint32_t)call->c.dim[1];
  SweepTexture p = {.y = ladder_at(call, SWEEP_Y),
                    .x = ladder_at(call, SWEEP_X),
                    .width = width,
                    .height = height,
                    .shift = (uint32_t)(5 - rows_shift(call->rung)),
                    .step_x = step_of(call->rung).x,
                    .step_y = step_of(call->rung).y};
  SolDriverImage image = {.address = call->at[SWEEP_X], .width = width, .height = height, .array = array};
  SolStatus status = texture ? sol_driver_texture(call->ctx->driver, &image, &p.texture, err) : SOL_OK;
  if (status) return status;
  LadderGrid grid = {.grid = {patches(width), patches(height)}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, texture ? "texture_fetch" : "texture_global", &grid, &p, sizeof p, err);
}

static SolStatus go_global(const LadderCall *call, SolError *err) {
  return launch(call, false, false, err);
}

static SolStatus go_rows(const LadderCall *call, SolError *err) {
  return launch(call, true, false, err);
}

static SolStatus go_array(const LadderCall *call, SolError *err) {
  return launch(call, true, true, err);
}

#define POINT(rows, how) .name = #how "-" #rows, .x = (rows), .go = go_##how
static const LadderRung rungs[] = {
    {POINT(1, global), .why = "A warp reads a row of 32 pixels: coalesced, 4 sectors."},
    {POINT(1, rows), .why = "The same memory through the texture unit, which serves four pixels per "
                            "clock."},
    {POINT(1, array),
     .why = "The same pixels in the layout of a CUDA array, in which neighbours in both directions are "
            "close together."},
    {POINT(4, global), .why = "8 pixels wide and 4 high: each row is a whole sector, 4 sectors as "
                              "before."},
    {POINT(4, rows)},
    {POINT(4, array)},
    {POINT(8, global), .why = "4 pixels wide: half of each sector belongs to another warp, which finds "
                              "it in L1."},
    {POINT(8, rows)},
    {POINT(8, array)},
    {POINT(32, global), .why = "A column: 32 cache lines, looked up one after another, for 4 bytes of "
                               "each."},
    {POINT(32, rows)},
    {POINT(32, array), .why = "In a CUDA array a column is spread over half as many sectors as in rows."},
};

const Ladder ladder_texture = {
    .name = "texture",
    .title = "Textures against global memory, for 2-D locality",
    .about = "Blocks read patches of 32 x 32 pixels, each pixel once, by warps of 32 x 1 to 1 x 32; x "
             "is how many rows a warp covers. By plain loads, through a texture over the same rows, and "
             "through a texture over a CUDA array, whose layout is two-dimensional. Textures and global "
             "memory share one L1, so what remains of the texture's advantage is that layout, and "
             "address computation at no cost. The emulator stores arrays by rows, as no GPU does, and "
             "its time model has no rate for texture units: what it predicts for textures is what "
             "memory alone would take.",
    .module = "sweeps_texture",
    SWEEP_OF("rows per warp"),
    .shape = "MxN",
    .size = {4096, 4096},
    .small = {70, 104},
    LADDER_RUNGS(rungs),
    .accept = accept,
    LADDER_OWN_JOB,
};
