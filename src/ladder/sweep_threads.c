// What a thread holds: registers up to spilling, and loads in flight.
#include "ladder/sweep.h"

enum { Y, X, BUFFERS };

// ---- registers ----

static SolStatus accept(const LadderCase *c, SolError *err) {
  return sweep_at_most(c, INT64_C(1) << 34, "sensors", err);
}

static int register_buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_output("y", c->dim[0]);
  b[X] = sweep_input("x", c->dim[0] * SWEEP_SAMPLES);
  return BUFFERS;
}

static double register_bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 4.0 * (SWEEP_SAMPLES + 1) * (double)c->dim[0];
}

static void register_expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  const float *x = sweep_in(h, X);
  int64_t n = h->c->dim[0];
  for (int64_t i = first; i < first + count; i++) {
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < SWEEP_SAMPLES; k++) sum += (double)x[k * n + i];
    double mean = sum / SWEEP_SAMPLES;
    for (int64_t k = 0; k < SWEEP_SAMPLES; k++) {
      double off = (double)x[k * n + i] - mean;
      squares += off * off;
    }
    *out++ = squares / SWEEP_SAMPLES;
  }
}

static SolStatus bounded(const LadderCall *call, SolError *err) {
  static const char *const kernels[] = {
      "registers_1", "registers_2", "registers_3", "registers_4", "registers_5", "registers_6", "",
      "registers_8"};
  int64_t n = call->c.dim[0];
  SweepCopy p = {.y = sweep_at(call, Y), .x = sweep_at(call, X), .n = (uint64_t)n};
  LadderGrid grid = {.grid = {sweep_blocks(n, SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, kernels[(int)call->rung->x - 1], &grid, &p, sizeof p, err);
}

#define BOUND(blocks) .name = #blocks, .x = (blocks), .go = bounded
static const LadderRung bounds[] = {
    {BOUND(1),
     .why = "Nothing is asked: the compiler takes the registers it wants, a little more than the 64 samples, "
            "and that lets an SM hold three blocks anyway."},
    {BOUND(2)},
    {BOUND(3)},
    {BOUND(4),
     .why = "64 registers a thread are too few: the first samples go to local memory and come back for the "
            "second pass. They cross L1, and stores go on to L2."},
    {BOUND(5)},
    {BOUND(6)},
    {BOUND(8),
     .why =
         "32 registers a thread, and the SM is full of warps. Most samples are spilled now, and warps that "
         "are more in number wait for traffic that the bound has made."},
};

const Ladder ladder_registers = {
    .name = "registers",
    .title = "Registers a thread, down to spilling",
    .about =
        "The variance of 64 samples for each of N sensors, in two passes over the samples: a thread holds "
        "all of its 64. The points ask the compiler, by __launch_bounds__(256, x), to leave room for x "
        "blocks on an SM; registers shrink to 65536 / (256 x) a thread. More warps hide more latency, but "
        "64 loads a thread are plenty in flight already, so here the bound brings nothing, and costs as "
        "soon as it makes samples spill. The emulator runs PTX, which has no spills, so its counts have "
        "none; its prediction adds what ptxas spilled: the stack of its machine code, once out and once in.",
    .module = "sweeps_registers",
    .sweep = true,
    .axis = "blocks an SM, asked for",
    .shape = "N",
    .size = {1 << 19},
    .small = {1001},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(bounds),
    .accept = accept,
    .buffers = register_buffers,
    .bytes = register_bytes,
    .expect = register_expect,
    .slack = 16,
};

// ---- loads in flight ----

enum { CHUNK = SWEEP_WIDE * SWEEP_LOADS };

static SolStatus flight_accept(const LadderCase *c, SolError *err) {
  return sweep_at_most(c, INT64_C(1) << 40, "elements", err);
}

static int flight_buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_output("y", (int64_t)sweep_blocks(c->dim[0], CHUNK) * SWEEP_WIDE);
  b[X] = sweep_input("x", c->dim[0]);
  return BUFFERS;
}

static double flight_bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 4.0 * ((double)c->dim[0] + (double)sweep_blocks(c->dim[0], CHUNK) * SWEEP_WIDE);
}

static void flight_expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t k = first; k < first + count; k++) {
    int64_t at = k / SWEEP_WIDE * CHUNK + k % SWEEP_WIDE;
    double sum = 0;
    for (int64_t j = 0; j < SWEEP_LOADS && at < h->c->dim[0]; j++, at += SWEEP_WIDE)
      sum += (double)sweep_in(h, X)[at];
    *out++ = sum;
  }
}

// One block an SM: 16 warps have to cover the distance to DRAM by themselves.
static SolStatus flight_go(const LadderCall *call, SolError *err) {
  static const char *const kernels[] = {"in_flight_1", "in_flight_2", "in_flight_4", "in_flight_8",
                                        "in_flight_16"};
  SweepCopy p = {.y = sweep_at(call, Y), .x = sweep_at(call, X), .n = (uint64_t)call->c.dim[0]};
  SolDriverInfo info;
  SolStatus status = sol_driver_info(call->ctx->driver, &info, err);
  if (status) return status;
  uint64_t most = info.smem_per_block;
  LadderGrid grid = {
      .grid = {sweep_blocks(call->c.dim[0], CHUNK)}, .block = {SWEEP_WIDE}, .shared = (uint32_t)most};
  int which = 0;
  while (1 << which < (int)call->rung->x) which++;
  return ladder_launch(call, kernels[which], &grid, &p, sizeof p, err);
}

#define LOADS(count) .name = #count, .x = (count), .go = flight_go
static const LadderRung flights[] = {
    {LOADS(1),
     .why = "Every load is waited for before the next is asked for: the rate is one load a thread and trip."},
    {LOADS(2),
     .why = "Two loads a trip, and nearly twice the rate: bytes in flight over latency is all there is."},
    {LOADS(4)},
    {LOADS(8)},
    {LOADS(16),
     .why = "What is on its way now nearly covers DRAM's bandwidth times its latency; past that point more "
            "loads only take registers."},
};

const Ladder ladder_in_flight = {
    .name = "in_flight",
    .title = "Loads in flight a thread",
    .about =
        "Threads sum 64 elements each, asking for 1 to 16 of them before they use the first. One block of "
        "512 threads an SM (shared memory keeps others out), so that warps alone do not cover the "
        "distance to DRAM. Independent loads do what more warps would: this is what unrolling is for.",
    .module = "sweeps_in_flight",
    .sweep = true,
    .axis = "loads in flight",
    .shape = "N",
    .size = {1 << 25},
    .small = {70001},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(flights),
    .accept = flight_accept,
    .buffers = flight_buffers,
    .bytes = flight_bytes,
    .expect = flight_expect,
};
