// A persisting window of L2: a table that L2 keeps while a stream of other data goes through it.
#include "ladder/sweep.h"

#define MIB (INT64_C(1) << 20)

enum { Y, STREAM, TABLE, BUFFERS, MOST_TABLE = 32 };

static int64_t threads_of(const LadderCase *c) {
  return c->dim[0] * MIB / 16 / SWEEP_STREAM; // whole blocks of them
}

// The small stream of tests has a small table.
static int64_t table_bytes(const LadderCase *c, double mib) {
  int64_t all = (int64_t)mib * MIB;
  return c->dim[0] >= 4 * MOST_TABLE ? all : all / MOST_TABLE;
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_output("y", threads_of(c));
  b[STREAM] = sweep_input("stream", c->dim[0] * MIB / 4);
  b[TABLE] = sweep_input("table", table_bytes(c, MOST_TABLE) / 4);
  b[TABLE].shared = true;
  return BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  return (double)(c->dim[0] * MIB) + (double)table_bytes(c, rung->x) + 4.0 * (double)threads_of(c);
}

static double sum4(const float *x, int64_t vector) {
  return (double)x[4 * vector] + (double)x[4 * vector + 1] + (double)x[4 * vector + 2] +
         (double)x[4 * vector + 3];
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  uint64_t table = (uint64_t)table_bytes(h->c, h->rung->x) / 16;
  for (int64_t k = first; k < first + count; k++) {
    double sum = sum4(sweep_in(h, TABLE), (int64_t)((uint64_t)sweep_scatter((uint32_t)k) * table >> 32));
    for (int64_t j = 0; j < SWEEP_STREAM; j++) {
      int64_t at = k / SWEEP_BLOCK * SWEEP_BLOCK * SWEEP_STREAM + j * SWEEP_BLOCK + k % SWEEP_BLOCK;
      sum += sum4(sweep_in(h, STREAM), at);
    }
    *out++ = sum;
  }
}

static SolStatus launch(const LadderCall *call, bool on, SolError *err) {
  uint64_t table = (uint64_t)table_bytes(&call->c, call->rung->x);
  SweepPersist p = {.y = ladder_at(call, Y),
                    .stream = ladder_at(call, STREAM),
                    .table = ladder_at(call, TABLE),
                    .vectors = (uint32_t)(table / 16)};
  LadderGrid grid = {.grid = {(uint32_t)(threads_of(&call->c) / SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}};
  if (on) grid.window = call->at[TABLE], grid.window_bytes = table;
  SolStatus status = sol_driver_persist(call->ctx->driver, on ? table : 0, err);
  return status ? status : ladder_launch(call, "persistence", &grid, &p, sizeof p, err);
}

static SolStatus go_on(const LadderCall *call, SolError *err) {
  return launch(call, true, err);
}

static SolStatus go_off(const LadderCall *call, SolError *err) {
  return launch(call, false, err);
}

#define POINT(mib, how) .name = #how "-" #mib, .x = (mib), .go = go_##how
static const LadderRung rungs[] = {
    {POINT(8, on)},
    {POINT(8, off),
     .why = "A small table is mostly read again before the stream has evicted it: the window has little "
            "to add."},
    {POINT(16, on)},
    {POINT(16, off)},
    {POINT(24, on), .why = "The window keeps the table in L2 while the stream uses the rest of L2."},
    {POINT(24, off),
     .why = "Between two accesses to a line more data is read than L2 holds, and a lookup of 16 bytes "
            "costs 64 bytes of DRAM traffic."},
    {POINT(32, on),
     .why = "Only a part of L2 may be set aside for persisting accesses. In a larger window the lines "
            "evict each other."},
    {POINT(32, off)},
};

const Ladder ladder_persistence = {
    .name = "persistence",
    .title = "A persisting window of L2",
    .about = "Each thread reads 128 bytes of a long stream and one vector from a random place of a "
             "table; the stream would evict the table from L2. With the window on, L2 keeps the table "
             "(an access policy window of the launch, and as much of L2 set aside for persisting "
             "accesses); off, the two compete.",
    .module = "sweeps_persistence",
    SWEEP_OF("table, MiB"),
    .shape = "MIB",
    .size = {512},
    .small = {1},
    LADDER_RUNGS(rungs),
    .most = 1 << 20,
    .most_of = "MiB of stream",
    LADDER_OWN_JOB,
};
