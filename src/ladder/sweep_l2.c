// L2: sets of bytes from well within it to far beyond, and a table that is asked to stay there.
#include "ladder/sweep.h"

#define MIB (INT64_C(1) << 20)

// ---- working set ----

enum { Y, X, BUFFERS, PIECE = SWEEP_BLOCK * SWEEP_PIECE, WARPS = SWEEP_BLOCK / 32 };
#define LEAST_TOTAL (512 * MIB) // read in any case, so that passes are many where the set is small

static SolStatus set_accept(const LadderCase *c, SolError *err) {
  return sweep_at_most(c, 1 << 20, "MiB", err);
}

static int64_t set_of(const LadderCase *c, const LadderRung *rung) {
  return (rung->x < (double)c->dim[0] ? (int64_t)rung->x : c->dim[0]) * MIB;
}

// Sets that are small read as much as larger ones do, in more passes.
static int64_t total_of(const LadderCase *c, const LadderRung *rung) {
  int64_t set = set_of(c, rung), most = c->dim[0] * MIB, least = LEAST_TOTAL < most ? LEAST_TOTAL : most;
  return set > least ? set : least;
}

static int64_t pieces_of(int64_t bytes) {
  return bytes / 16 / PIECE;
}

static int set_buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_partial("y", pieces_of(c->dim[0] * MIB) * WARPS);
  b[X] = sweep_input("x", c->dim[0] * MIB / 4);
  b[X].shared = true; // it is to be found in L2, if it fits
  return BUFFERS;
}

static double set_bytes(const LadderCase *c, const LadderRung *rung) {
  return (double)total_of(c, rung);
}

static void set_expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t set = pieces_of(set_of(h->c, h->rung)), blocks = pieces_of(total_of(h->c, h->rung));
  for (int64_t k = first; k < first + count; k++) {
    const float *x = sweep_in(h, X) + 4 * (k / WARPS % set * PIECE + k % WARPS * 32);
    double sum = 0;
    for (int64_t j = 0; j < SWEEP_PIECE && k / WARPS < blocks; j++, x += 4 * SWEEP_BLOCK)
      for (int64_t i = 0; i < 4 * 32; i++) sum += (double)x[i];
    *out++ = sum;
  }
}

static SolStatus set_go(const LadderCall *call, SolError *err) {
  SweepSet p = {.y = sweep_at(call, Y),
                .x = sweep_at(call, X),
                .pieces = (uint32_t)pieces_of(set_of(&call->c, call->rung))};
  LadderGrid grid = {.grid = {(uint32_t)pieces_of(total_of(&call->c, call->rung))}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, "working_set", &grid, &p, sizeof p, err);
}

#define SET(mib) .name = #mib, .x = (mib), .go = set_go
static const LadderRung sets[] = {
    {SET(1), .why = "All of it is in L2 from the second pass on, and L2's bandwidth is what is seen."},
    {SET(2)},
    {SET(4)},
    {SET(8)},
    {SET(16)},
    {SET(32), .seen_on = "h200",
     .seen = "An H200's L2 has two halves, and data that one side reads from the other is kept in both: the "
             "last sizes that fit are well below what the data sheet gives for L2."},
    {SET(48)},
    {SET(64),
     .why =
         "More than L2 keeps, and read in order: nearly every line has left before it is wanted again. Soon "
         "it is DRAM's bandwidth alone."},
    {SET(128)},
    {SET(256)},
    {SET(512)},
    {SET(1024)},
    {SET(2048)},
    {SET(4096),
     .why = "Read once: there is nothing to hit. It is no slower than the smallest set that does not fit."},
};

const Ladder ladder_working_set = {
    .name = "working_set",
    .title = "Working sets through L2",
    .about = "One launch reads a set of bytes again and again, past L1, 16 bytes a load. While the set fits, "
             "all passes but the first are served by L2; beyond, DRAM serves them all. Rates are of bytes "
             "read, so that hits show as more than light.",
    .module = "sweeps_working_set",
    .sweep = true,
    .axis = "working set, MiB",
    .shape = "MIB",
    .size = {4096},
    .small = {2},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(sets),
    .accept = set_accept,
    .buffers = set_buffers,
    .bytes = set_bytes,
    .expect = set_expect,
};

// ---- persistence ----

enum { P_Y, P_STREAM, P_TABLE, P_BUFFERS, MOST_TABLE = 32 };

static SolStatus persist_accept(const LadderCase *c, SolError *err) {
  return sweep_at_most(c, 1 << 20, "MiB of stream", err);
}

static int64_t persist_threads(const LadderCase *c) {
  return c->dim[0] * MIB / 16 / SWEEP_STREAM; // whole blocks of them
}

// A small stream, for tests, has a small table.
static int64_t table_bytes(const LadderCase *c, double mib) {
  int64_t bytes = (int64_t)mib * MIB;
  return c->dim[0] >= 4 * MOST_TABLE ? bytes : bytes / MOST_TABLE;
}

static int persist_buffers(const LadderCase *c, LadderBuffer *b) {
  b[P_Y] = sweep_output("y", persist_threads(c));
  b[P_STREAM] = sweep_input("stream", c->dim[0] * MIB / 4);
  b[P_TABLE] = sweep_input("table", table_bytes(c, MOST_TABLE) / 4);
  b[P_TABLE].shared = true;
  return P_BUFFERS;
}

static double persist_bytes(const LadderCase *c, const LadderRung *rung) {
  return (double)(c->dim[0] * MIB) + (double)table_bytes(c, rung->x) + 4.0 * (double)persist_threads(c);
}

static double sum4(const float *x, int64_t vector) {
  return (double)x[4 * vector] + (double)x[4 * vector + 1] + (double)x[4 * vector + 2] +
         (double)x[4 * vector + 3];
}

static void persist_expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  uint64_t table = (uint64_t)table_bytes(h->c, h->rung->x) / 16;
  for (int64_t k = first; k < first + count; k++) {
    double sum = sum4(sweep_in(h, P_TABLE), (int64_t)((uint64_t)sweep_scatter((uint32_t)k) * table >> 32));
    for (int64_t j = 0; j < SWEEP_STREAM; j++) {
      int64_t at = k / SWEEP_BLOCK * SWEEP_BLOCK * SWEEP_STREAM + j * SWEEP_BLOCK + k % SWEEP_BLOCK;
      sum += sum4(sweep_in(h, P_STREAM), at);
    }
    *out++ = sum;
  }
}

static SolStatus persist_go(const LadderCall *call, bool on, SolError *err) {
  uint64_t table = (uint64_t)table_bytes(&call->c, call->rung->x);
  SweepPersist p = {.y = sweep_at(call, P_Y),
                    .stream = sweep_at(call, P_STREAM),
                    .table = sweep_at(call, P_TABLE),
                    .vectors = (uint32_t)(table / 16)};
  LadderGrid grid = {.grid = {(uint32_t)(persist_threads(&call->c) / SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}};
  if (on) grid.window = call->at[P_TABLE], grid.window_bytes = table;
  SolStatus status = sol_driver_persist(call->ctx->driver, on ? table : 0, err);
  return status ? status : ladder_launch(call, "persistence", &grid, &p, sizeof p, err);
}

static SolStatus persist_on(const LadderCall *call, SolError *err) {
  return persist_go(call, true, err);
}
static SolStatus persist_off(const LadderCall *call, SolError *err) {
  return persist_go(call, false, err);
}

#define PERSIST(mib, how) .name = #how "-" #mib, .x = (mib), .go = persist_##how
static const LadderRung persists[] = {
    {PERSIST(8, on)},
    {PERSIST(8, off),
     .why =
         "A small table is mostly wanted again before the stream has pushed it out: the window has little to "
         "add."},
    {PERSIST(16, on)},
    {PERSIST(16, off)},
    {PERSIST(24, on),
     .why = "The window keeps the table where it is while the stream goes through what is left of L2."},
    {PERSIST(24, off),
     .why =
         "Between two uses of a line more goes by than L2 holds, and a lookup of 16 bytes costs 64 of DRAM."},
    {PERSIST(32, on),
     .why = "What may be set apart is a part of L2. A window that is larger fights with itself."},
    {PERSIST(32, off)},
};

const Ladder ladder_persistence = {
    .name = "persistence",
    .title = "A window of L2 that persists",
    .about = "Threads read a long stream, 128 bytes each, and one vector of a table from a random place; the "
             "stream would push the table out of L2. With the window on, L2 is told to keep the table (an "
             "access-policy window of the launch, and as much of L2 set apart); off, both compete. The "
             "emulator has no such window: its prediction is the same for both, that of off.",
    .module = "sweeps_persistence",
    .sweep = true,
    .axis = "table, MiB",
    .shape = "MIB",
    .size = {512},
    .small = {1},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(persists),
    .accept = persist_accept,
    .buffers = persist_buffers,
    .bytes = persist_bytes,
    .expect = persist_expect,
};
