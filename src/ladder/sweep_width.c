// A copy by 4, 8 and 16 bytes a thread, and one that starts off a line: what an access is worth.
#include "ladder/sweep.h"

enum { Y, X, BUFFERS };

static SolStatus accept(const LadderCase *c, SolError *err) {
  return sweep_at_most(c, INT64_C(1) << 38, "elements: a grid has 2^31 - 1 blocks", err);
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 2.0 * 4 * (double)c->dim[0];
}

static SweepCopy params(const LadderCall *call) {
  return (SweepCopy){.y = sweep_at(call, Y), .x = sweep_at(call, X), .n = (uint64_t)call->c.dim[0]};
}

// ---- width ----

static int width_buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_output("y", c->dim[0]);
  b[X] = sweep_input("x", c->dim[0]);
  return BUFFERS;
}

static void width_expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t k = first; k < first + count; k++) *out++ = (double)sweep_in(h, X)[k];
}

static SolStatus wide(const LadderCall *call, SolError *err) {
  SweepCopy p = params(call);
  int64_t per = (int64_t)call->rung->x / 4, n = call->c.dim[0];
  LadderGrid grid = {.grid = {sweep_blocks(n / per + n % per, SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call,
                       per == 1   ? "width_4"
                       : per == 2 ? "width_8"
                                  : "width_16",
                       &grid, &p, sizeof p, err);
}

static const LadderRung widths[] = {
    {.name = "4",
     .x = 4,
     .go = wide,
     .why =
         "An SM full of threads has 4 bytes of each on their way, less than it takes to cover the distance "
         "to DRAM: the copy waits."},
    {.name = "8",
     .x = 8,
     .go = wide,
     .why = "Half the instructions and blocks for the same bytes, and twice as many on their way at once."},
    {.name = "16",
     .x = 16,
     .go = wide,
     .why =
         "The widest access there is: a request of 512 bytes, 16 sectors of 4 lines, all of them used. What "
         "is in flight is enough for DRAM to be the limit."},
};

const Ladder ladder_width = {
    .name = "width",
    .title = "Bytes an access",
    .about = "y = x with one access a thread of 4, 8 or 16 bytes. Every width reads and writes the same "
             "sectors, all of them in full; what changes is how many instructions and blocks it takes, and "
             "how many bytes are on their way while threads wait.",
    .module = "sweeps_width",
    .sweep = true,
    .axis = "bytes an access",
    .shape = "N",
    .size = {1 << 25},
    .small = {10007},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(widths),
    .accept = accept,
    .buffers = width_buffers,
    .bytes = bytes,
    .expect = width_expect,
};

// ---- misalignment ----

static int shift_buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_output("y", c->dim[0] + SWEEP_SHIFT);
  b[X] = sweep_input("x", c->dim[0] + SWEEP_SHIFT);
  return BUFFERS;
}

static void shift_expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t shift = (int64_t)h->rung->x, n = h->c->dim[0];
  for (int64_t k = first; k < first + count; k++)
    *out++ = k >= shift && k < shift + n ? (double)sweep_in(h, X)[k] : 0;
}

static SolStatus shifted(const LadderCall *call, SolError *err) {
  SweepCopy p = params(call);
  p.shift = (uint64_t)call->rung->x;
  int64_t threads = call->c.dim[0] < SWEEP_SHIFT ? SWEEP_SHIFT : call->c.dim[0];
  LadderGrid grid = {.grid = {sweep_blocks(threads, SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, "misaligned_copy", &grid, &p, sizeof p, err);
}

#define SHIFT(elements) .name = #elements, .x = (elements), .go = shifted
static const LadderRung shifts[] = {
    {SHIFT(0), .why = "A warp's 128 bytes are 4 whole sectors of one line."},
    {SHIFT(1),
     .why =
         "The same 128 bytes now start and end inside a sector and touch 5, of two lines. The neighbouring "
         "warp wants the fifth as well and finds it in L1, so that DRAM moves no more than before; stores "
         "of half sectors meet in L2."},
    {SHIFT(2)},
    {SHIFT(4)},
    {SHIFT(7)},
    {SHIFT(8), .why = "A whole sector off: 4 sectors again, though of two lines. Sectors count, not lines."},
    {SHIFT(12)},
    {SHIFT(16)},
    {SHIFT(20)},
    {SHIFT(24)},
    {SHIFT(28)},
    {SHIFT(31)},
};

const Ladder ladder_misalignment = {
    .name = "misalignment",
    .title = "Warps that start off a line",
    .about = "y[i + shift] = x[i + shift], 4 bytes a thread: reads and writes alike start `shift` elements "
             "after a line. A shift that is no multiple of 8 floats costs each request a fifth sector. On "
             "GPUs whose L1 keeps sectors for the next warp that costs little time, far less than the "
             "sectors say; older advice about it comes from GPUs that fetched the line twice.",
    .module = "sweeps_misalignment",
    .sweep = true,
    .axis = "shift, elements",
    .shape = "N",
    .size = {1 << 24},
    .small = {10007},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(shifts),
    .accept = accept,
    .buffers = shift_buffers,
    .bytes = bytes,
    .expect = shift_expect,
};
