// The bandwidth of DRAM by the share of writes.
#include "base/error.h"
#include "ladder/sweep.h"

enum { Y, Z, SUMS, A, B, BUFFERS, EACH = SWEEP_BLOCK * SWEEP_READS / 2, WARPS = SWEEP_BLOCK / 32 };

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[0] % 4 == 0) return SOL_OK;
  return sol_fail(err, SOL_ERR_ARGUMENT, "N must be a multiple of 4: vectors of 16 bytes are moved");
}

static int64_t read_blocks(const LadderCase *c) {
  return sweep_blocks(c->dim[0] / 4, EACH);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_partial("y", c->dim[0]);
  b[Z] = sweep_partial("z", c->dim[0]);
  b[SUMS] = sweep_partial("s", read_blocks(c) * WARPS);
  b[A] = sweep_input("a", c->dim[0]);
  b[B] = sweep_input("b", c->dim[0]);
  return BUFFERS;
}

typedef enum Ceiling { READ, ADD, COPY, TWICE, WRITE } Ceiling;
enum { READ_SHARE = 0, ADD_SHARE = 33, COPY_SHARE = 50, TWICE_SHARE = 67, WRITE_SHARE = 100 };
static const struct {
  const char *kernel;
  int reads, writes, share; // arrays; writes as a percentage: the point's x
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

static double bytes(const LadderCase *c, const LadderRung *rung) {
  Ceiling k = ceiling_of(rung);
  double sums = k == READ ? (double)read_blocks(c) * WARPS : 0;
  return 4.0 * ((double)c->dim[0] * (ceilings[k].reads + ceilings[k].writes) + sums);
}

// The sum that warp w of the reading kernel writes.
static double warp_sum(const LadderHost *h, int64_t w) {
  int64_t block = w / WARPS, vectors = h->c->dim[0] / 4;
  const float *a = sweep_in(h, A), *b = sweep_in(h, B);
  double sum = 0;
  for (int64_t k = 0; k < SWEEP_READS / 2; k++)
    for (int64_t lane = 0; lane < 32; lane++) {
      int64_t at = block * EACH + k * SWEEP_BLOCK + w % WARPS * 32 + lane;
      for (int64_t i = 4 * at; i < 4 * at + 4 && at < vectors; i++) sum += (double)a[i] + (double)b[i];
    }
  return sum;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  Ceiling k = ceiling_of(h->rung);
  const float *a = sweep_in(h, A), *b = sweep_in(h, B);
  for (int64_t i = first; i < first + count; i++) {
    double want = 0; // not written
    if (buffer == SUMS)
      want = k == READ ? warp_sum(h, i) : 0;
    else if (k == WRITE)
      want = (double)(i % 4 ? i % 4 : i / 4 % 1024);
    else if (k == TWICE || (k == COPY && buffer == Y))
      want = (double)a[i];
    else if (k == ADD && buffer == Y)
      want = (double)a[i] + (double)b[i];
    *out++ = want;
  }
}

static SolStatus go(const LadderCall *call, SolError *err) {
  Ceiling k = ceiling_of(call->rung);
  SweepCeiling p = {.y = ladder_at(call, Y),
                    .z = ladder_at(call, Z),
                    .s = ladder_at(call, SUMS),
                    .a = ladder_at(call, A),
                    .b = ladder_at(call, B),
                    .n = (uint64_t)call->c.dim[0]};
  uint32_t blocks =
      k == READ ? (uint32_t)read_blocks(&call->c) : sweep_blocks(call->c.dim[0] / 4, SWEEP_BLOCK);
  LadderGrid grid = {.grid = {blocks}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, ceilings[k].kernel, &grid, &p, sizeof p, err);
}

static const LadderRung rungs[] = {
    {.name = "read",
     .x = READ_SHARE,
     .why = "Two arrays are summed and next to nothing is written: DRAM never has to change the "
            "direction of its bus."},
    {.name = "add", .x = ADD_SHARE},
    {.name = "copy",
     .x = COPY_SHARE,
     .why = "Reads and writes alternate, and each change of direction costs DRAM time."},
    {.name = "twice", .x = TWICE_SHARE},
    {.name = "write",
     .x = WRITE_SHARE,
     .why = "Writes alone: whole sectors, so nothing has to be read to complete them. They end in L2, "
            "which writes them to DRAM as later data evicts them."},
};

const Ladder ladder_ceilings = {
    .name = "ceilings",
    .title = "Ceilings: reads, writes and mixtures",
    .about = "The most that DRAM delivers, by the share of writes among the bytes: two arrays read, two "
             "read and one written, a copy, one read and two written, two written. Light, in all other "
             "figures, is the ceiling of a copy: a kernel that mostly reads may be faster than that.",
    .module = "sweeps_ceilings",
    SWEEP_OF("writes, % of bytes"),
    .shape = "N",
    .size = {1 << 25},
    .small = {10008},
    LADDER_RUNGS(rungs),
    .go = go,
    SWEEP_GRID_LIMIT,
    .accept = accept,
    LADDER_OWN_JOB,
};
