// Two operations, the second on the rows that the first produces: what fusing them saves, and what a CUDA
// graph saves.
#include "base/error.h"
#include "kernels/embed_rmsnorm/rungs.h"
#include "ladder/ladder_jobs.h"

enum { Y, EMBEDDED, TABLE, IDS, WEIGHT, BUFFERS };

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[0] > INT32_MAX || c->dim[1] > INT32_MAX / 2 || c->dim[2] > INT32_MAX)
    return sol_fail(err, SOL_ERR_RANGE,
                    "M and V must be below 2^31 and N below 2^30: a row takes a block, ids are int32");
  return ladder_whole_vectors(c, 4, err);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  int64_t m = c->dim[0], n = c->dim[1];
  b[Y] = ladder_output(c, "y", m * n);
  b[EMBEDDED] = ladder_output(c, "embedded", m * n);
  b[EMBEDDED].scratch = true;
  b[TABLE] = ladder_table(c);
  b[IDS] = ladder_ids(c);
  b[WEIGHT] = ladder_input(c, "weight", n);
  b[WEIGHT].fill = OPS_FILL_POSITIVE;
  return BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  return ladder_table_bytes(c, rung) + 4.0 * (double)c->dim[1];
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  const int32_t *ids = h->in[IDS];
  int64_t from = ids[first / count] * count; // a row: .unit
  double scale = ladder_inverse_rms(h, TABLE, from, count);
  for (int64_t i = 0; i < count; i++) out[i] = h->value(h, TABLE, from + i) * scale * h->value(h, WEIGHT, i);
}

static SolStatus launch(const LadderCall *call, const char *kernel, SolError *err) {
  EmbedRmsnormRung p = {.y = ladder_at(call, Y),
                        .embedded = ladder_at(call, EMBEDDED),
                        .table = ladder_at(call, TABLE),
                        .weight = ladder_at(call, WEIGHT),
                        .ids = ladder_at(call, IDS),
                        .n = (int32_t)call->c.dim[1],
                        .eps = LADDER_EPS};
  LadderGrid g = {.grid = {(uint32_t)call->c.dim[0]}, .block = {EMBED_NORM_THREADS}};
  return ladder_launch(call, kernel, &g, &p, sizeof p, err);
}

static SolStatus two_kernels(const LadderCall *call, SolError *err) {
  SolStatus status = launch(call, "embed_rmsnorm_gather", err);
  return status ? status : launch(call, "embed_rmsnorm_norm", err);
}

static SolStatus go(const LadderCall *call, SolError *err) {
  return launch(call, call->rung->kernel, err);
}

static const LadderRung rungs[] = {
    {.name = "two-kernels",
     .change = "one kernel reads the rows by id and writes them, a second reads and normalises them; "
               "both launched into a stream",
     .why = "The rows are moved four times: read from the table, written to an intermediate array, read "
            "from it and written to y. The second kernel starts when the first has ended, and by then "
            "little of an array larger than L2 is still in L2.",
     .go = two_kernels,
     .streamed = true},
    {.name = "fused",
     .change = "one kernel does both: it normalises the row as it reads it from the table",
     .why = "The intermediate array is gone, and with it half of the bytes and one launch.",
     .story = LADDER_FASTER,
     .kernel = "embed_rmsnorm_fused"},
    {.name = "fused-vectors",
     .change = "float4: 16 bytes per access",
     .why = "A quarter of the memory instructions. The row is still read twice, the second time from L1 "
            "or L2, after a barrier.",
     .seen_on = "h200",
     .seen = "On an H200 this kernel waits for that barrier and the second read: fewer instructions do "
             "not make them shorter.",
     .story = LADDER_SAME,
     .kernel = "embed_rmsnorm_vectors"},
    {.name = "library",
     .change = "sol_embed_rmsnorm: the row stays in registers, later rows are prefetched into L2",
     .why = "Each row is read once: its loads are issued together as soon as its id is known, and the "
            "ids and rows of later blocks are already in flight.",
     .story = LADDER_FASTER,
     .op = &ops_embed_rmsnorm},
    {.name = "two-kernels-graph",
     .change = "the two kernels again, as one CUDA graph",
     .why = "A graph saves the host's work for each launch and part of the gap between kernels. It does "
            "not save a byte: with this many rows the gap is negligible, and fusing is what pays. With "
            "a few rows, as in decoding, it is the other way round: try --shape 8x2048x32000.",
     .story = LADDER_SAME,
     .against = "two-kernels",
     .go = two_kernels},
};

const Ladder ladder_embed_rmsnorm = {
    .name = "embed_rmsnorm",
    .title = "Embedding and RMS normalisation, fused",
    .about = "y[i] = rmsnorm(table[ids[i]]) * weight, float. Both operations do next to no arithmetic, "
             "and the second reads exactly what the first writes: fusing them halves the bytes. A CUDA "
             "graph of the two is shown for comparison: it saves launches, not bytes.",
    .module = "embed_rmsnorm_rungs",
    LADDER_TABLE_JOB,
    LADDER_RUNGS(rungs),
    .go = go,
    .accept = accept,
    LADDER_OWN_JOB,
    .unit = ladder_row,
    .slack = 64,
};
