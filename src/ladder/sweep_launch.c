// What a launch costs, and what moves bytes: launches of every kind, copies of every kind, ceilings.
#include "ladder/sweep.h"

enum { Y, X, BUFFERS };

static SolStatus accept(const LadderCase *c, SolError *err) {
  return sweep_at_most(c, INT64_C(1) << 36, "elements: a grid has 2^31 - 1 blocks", err);
}

static int two_buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_output("y", c->dim[0]);
  b[X] = sweep_input("x", c->dim[0]);
  return BUFFERS;
}

// ---- launches ----

static double no_bytes(const LadderCase *c, const LadderRung *rung) {
  (void)c, (void)rung;
  return 0;
}

static void step_expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t k = first; k < first + count; k++) *out++ = (double)sweep_in(h, X)[k] + h->rung->x;
}

// Each step works on what the one before has written.
static SolStatus steps(const LadderCall *call, bool early, SolError *err) {
  SolStatus status = SOL_OK;
  for (int i = 0; i < (int)call->rung->x && !status; i++) {
    SweepCopy p = {.y = sweep_at(call, Y), .x = sweep_at(call, i ? Y : X), .n = (uint64_t)call->c.dim[0]};
    LadderGrid grid = {
        .grid = {sweep_blocks(call->c.dim[0], SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}, .early = early};
    status = ladder_launch(call, "launches_step", &grid, &p, sizeof p, err);
  }
  return status;
}

static SolStatus plain(const LadderCall *call, SolError *err) {
  return steps(call, false, err);
}
static SolStatus early(const LadderCall *call, SolError *err) {
  return steps(call, true, err);
}

#define STREAM(count) .name = "stream-" #count, .x = (count), .go = plain, .streamed = true
#define GRAPH(count)  .name = "graph-" #count, .x = (count), .go = plain
#define EARLY(count)  .name = "early-" #count, .x = (count), .go = early, .min_cc = 90
static const LadderRung launches[] = {
    {STREAM(1),
     .why = "Launches into a stream, one after another: the host prepares each, and where that takes longer "
            "than the kernel the GPU waits for the host."},
    {GRAPH(1),
     .why =
         "Recorded once and replayed: nothing is left for the host to do, and what remains is the GPU's own "
         "turn from one kernel to the next, with memory made visible in between."},
    {EARLY(1),
     .why = "Programmatic dependent launch, in a graph: blocks of the next kernel are set up while this one "
            "still runs, and wait there for its results."},
    {STREAM(2)},
    {GRAPH(2)},
    {EARLY(2)},
    {STREAM(4)},
    {GRAPH(4)},
    {EARLY(4)},
    {STREAM(8), .why = "Eight steps cost eight launches: fusing them into one kernel saves seven."},
    {GRAPH(8)},
    {EARLY(8)},
};

const Ladder ladder_launches = {
    .name = "launches",
    .title = "What a launch costs",
    .about =
        "y = x + 1, then y = y + 1 and so on, x steps, each so small that its launch is all it costs. In a "
        "stream, in a graph, and in a graph with programmatic dependent launch, where a kernel's start "
        "overlaps its predecessor's end. The time model takes a stream's and a graph's launch at the "
        "device's published cost, and an early start at half of a graph's.",
    .module = "sweeps_launches",
    .sweep = true,
    .axis = "launches a call",
    .shape = "N",
    .size = {1 << 14},
    .small = {1001},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(launches),
    .accept = accept,
    .buffers = two_buffers,
    .bytes = no_bytes,
    .expect = step_expect,
};

// ---- copies ----

static double copy_bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 2.0 * 4 * (double)c->dim[0];
}

static void copy_expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t k = first; k < first + count; k++) *out++ = (double)sweep_in(h, X)[k];
}

static SolStatus by_driver(const LadderCall *call, SolError *err) {
  return ladder_copy(call, Y, X, (uint64_t)call->c.dim[0] * 4, err);
}

static SolStatus by_kernel(const LadderCall *call, SolError *err) {
  int64_t n = call->c.dim[0];
  SweepCopy p = {.y = sweep_at(call, Y), .x = sweep_at(call, X), .n = (uint64_t)n};
  LadderGrid grid = {.grid = {sweep_blocks(n / 4 + n % 4, SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, "copies_kernel", &grid, &p, sizeof p, err);
}

static SolStatus by_library(const LadderCall *call, SolError *err) {
  SolCopy a = {
      .y = sweep_at(call, Y), .x = sweep_at(call, X), .m = 1, .n = call->c.dim[0], .dtype = SOL_FP32};
  return ladder_op(call, &ops_copy, &a, err);
}

// A block's chunk, in elements, is what the point's name says in KiB.
static SolStatus by_bulk(const LadderCall *call, SolError *err) {
  uint32_t bytes = (uint32_t)call->rung->x * 1024;
  SweepCopy p = {
      .y = sweep_at(call, Y), .x = sweep_at(call, X), .n = (uint64_t)call->c.dim[0], .shift = bytes / 4};
  LadderGrid grid = {.grid = {sweep_blocks(call->c.dim[0], bytes / 4)}, .block = {32}, .shared = bytes};
  return ladder_launch(call, "copies_bulk", &grid, &p, sizeof p, err);
}

#define BULK(kib) .name = "bulk-" #kib, .x = (kib), .go = by_bulk, .min_cc = 90
static const LadderRung copies[] = {
    {.name = "kernel",
     .go = by_kernel,
     .why = "16 bytes a thread, no more: an SM full of threads has enough in flight."},
    {.name = "library",
     .go = by_library,
     .why = "sol_copy, the light of all other figures: the same, started early and with its input asked for "
            "ahead where the copy is small."},
    {.name = "driver",
     .go = by_driver,
     .why =
         "cuMemcpyDtoDAsync: the driver has it done by the GPU's copy engine or by a kernel of its own. The "
         "emulator copies, but has no engine and predicts no time."},
    {BULK(2),
     .why =
         "One thread a block orders 2 KiB into shared memory and out again (cp.async.bulk): no registers, "
         "hardly an instruction. What is in flight is what an SM's blocks hold; a block is over so soon that "
         "its start counts, and it reads nothing while it writes."},
    {BULK(4)},
    {BULK(8)},
    {BULK(16)},
    {BULK(32)},
    {BULK(64),
     .why =
         "Shared memory holds three such chunks: while one is written, less is being read, and blocks end in "
         "larger steps."},
};

const Ladder ladder_copies = {
    .name = "copies",
    .title = "Copies by driver, kernel and bulk unit",
    .about =
        "y = x by whatever can move it: the driver's own copy, a kernel's loads and stores, the library's "
        "kernel, and the SM's bulk copy unit with chunks from 2 to 64 KiB (Hopper and later). All move "
        "each byte once in and once out; DRAM decides, and what is asked is who keeps it busy.",
    .module = "sweeps_copies",
    .sweep = true,
    .axis = "chunk, KiB (bulk)",
    .shape = "N",
    .size = {1 << 25},
    .small = {20007},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(copies),
    .accept = accept,
    .buffers = two_buffers,
    .bytes = copy_bytes,
    .expect = copy_expect,
};

// ---- ceilings ----

enum { C_Y, C_Z, C_S, C_A, C_B, C_BUFFERS, C_EACH = SWEEP_BLOCK * SWEEP_READS / 2 };

static SolStatus ceiling_accept(const LadderCase *c, SolError *err) {
  if (c->dim[0] % 4 == 0) return accept(c, err);
  return sol_fail(err, SOL_ERR_ARGUMENT, "a multiple of 4 elements: whole vectors");
}

static int64_t read_blocks(const LadderCase *c) {
  return sweep_blocks(c->dim[0] / 4, C_EACH);
}

static int ceiling_buffers(const LadderCase *c, LadderBuffer *b) {
  b[C_Y] = sweep_partial("y", c->dim[0]);
  b[C_Z] = sweep_partial("z", c->dim[0]);
  b[C_S] = sweep_partial("s", read_blocks(c) * SWEEP_BLOCK / 32);
  b[C_A] = sweep_input("a", c->dim[0]);
  b[C_B] = sweep_input("b", c->dim[0]);
  return C_BUFFERS;
}

typedef enum Ceiling { READ, ADD, COPY, TWICE, WRITE } Ceiling;
enum { READ_SHARE = 0, ADD_SHARE = 33, COPY_SHARE = 50, TWICE_SHARE = 67, WRITE_SHARE = 100 };
static const struct {
  const char *kernel;
  int reads, writes, share; // arrays; per cent of writes: the point's x
} ceilings[] = {
    [READ] = {"ceilings_read", 2, 0, READ_SHARE},    [ADD] = {"ceilings_add", 2, 1, ADD_SHARE},
    [COPY] = {"ceilings_copy", 1, 1, COPY_SHARE},    [TWICE] = {"ceilings_twice", 1, 2, TWICE_SHARE},
    [WRITE] = {"ceilings_write", 0, 2, WRITE_SHARE},
};

static Ceiling ceiling_of(const LadderRung *rung) {
  int k = READ;
  while (k < WRITE && ceilings[k].share != (int)rung->x) k++;
  return (Ceiling)k;
}

static double ceiling_bytes(const LadderCase *c, const LadderRung *rung) {
  Ceiling k = ceiling_of(rung);
  int64_t sums = k == READ ? read_blocks(c) * SWEEP_BLOCK / 32 : 0;
  return 4.0 * ((double)c->dim[0] * (ceilings[k].reads + ceilings[k].writes) + (double)sums);
}

// The sum that warp w of the reading kernel comes to.
static double warp_sum(const LadderHost *h, int64_t w) {
  int64_t block = w / (SWEEP_BLOCK / 32), vectors = h->c->dim[0] / 4;
  const float *a = sweep_in(h, C_A), *b = sweep_in(h, C_B);
  double sum = 0;
  for (int64_t k = 0; k < SWEEP_READS / 2; k++)
    for (int64_t lane = 0; lane < 32; lane++) {
      int64_t at = block * C_EACH + k * SWEEP_BLOCK + w % (SWEEP_BLOCK / 32) * 32 + lane;
      for (int64_t i = 4 * at; i < 4 * at + 4 && at < vectors; i++) sum += (double)a[i] + (double)b[i];
    }
  return sum;
}

static void ceiling_expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  Ceiling k = ceiling_of(h->rung);
  const float *a = sweep_in(h, C_A), *b = sweep_in(h, C_B);
  for (int64_t i = first; i < first + count; i++) {
    double want = 0; // left alone
    if (buffer == C_S)
      want = k == READ ? warp_sum(h, i) : 0;
    else if (k == WRITE)
      want = (double)(i % 4 ? i % 4 : i / 4 % 1024);
    else if (k == TWICE || (k == COPY && buffer == C_Y))
      want = (double)a[i];
    else if (k == ADD && buffer == C_Y)
      want = (double)a[i] + (double)b[i];
    *out++ = want;
  }
}

static SolStatus ceiling_go(const LadderCall *call, SolError *err) {
  Ceiling k = ceiling_of(call->rung);
  SweepCeiling p = {.y = sweep_at(call, C_Y),
                    .z = sweep_at(call, C_Z),
                    .s = sweep_at(call, C_S),
                    .a = sweep_at(call, C_A),
                    .b = sweep_at(call, C_B),
                    .n = (uint64_t)call->c.dim[0]};
  uint32_t blocks =
      k == READ ? (uint32_t)read_blocks(&call->c) : sweep_blocks(call->c.dim[0] / 4, SWEEP_BLOCK);
  LadderGrid grid = {.grid = {blocks}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, ceilings[k].kernel, &grid, &p, sizeof p, err);
}

static const LadderRung ceiling_rungs[] = {
    {.name = "read",
     .x = READ_SHARE,
     .go = ceiling_go,
     .why = "Two arrays are summed and next to nothing is written: DRAM never turns its bus around."},
    {.name = "add", .x = ADD_SHARE, .go = ceiling_go},
    {.name = "copy",
     .x = COPY_SHARE,
     .go = ceiling_go,
     .why = "Reads and writes alternate, and DRAM pays for each change of direction."},
    {.name = "twice", .x = TWICE_SHARE, .go = ceiling_go},
    {.name = "write",
     .x = WRITE_SHARE,
     .go = ceiling_go,
     .why = "Writes alone: whole sectors, so nothing has to be read to complete them. They end in L2, "
            "and DRAM gets them as others push them out."},
};

const Ladder ladder_ceilings = {
    .name = "ceilings",
    .title = "Ceilings: reads, writes and mixtures",
    .about =
        "What DRAM gives at best, by the share of writes among the bytes: two arrays read, two read and one "
        "written, a copy, one read and two written, two written. Light, in all other figures, is the copy's "
        "ceiling: a kernel that mostly reads may come out above it.",
    .module = "sweeps_ceilings",
    .sweep = true,
    .axis = "writes, % of bytes",
    .shape = "N",
    .size = {1 << 25},
    .small = {10008},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(ceiling_rungs),
    .accept = ceiling_accept,
    .buffers = ceiling_buffers,
    .bytes = ceiling_bytes,
    .expect = ceiling_expect,
};
