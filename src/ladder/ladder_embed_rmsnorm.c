// Two operations that pass rows to each other: what fusing them saves, and what a graph saves instead.
#include <math.h>

#include "base/error.h"
#include "kernels/embed_rmsnorm/rungs.h"
#include "ladder/ladder_matrix.h"

enum { Y, EMBEDDED, TABLE, IDS, WEIGHT, BUFFERS };
#define EPS 1e-5f

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[1] % 4)
    return sol_fail(err, SOL_ERR_RANGE, "N must be a multiple of 4: rows are moved 16 bytes at a time");
  if (c->dim[0] > INT32_MAX || c->dim[1] > INT32_MAX / 2 || c->dim[2] > INT32_MAX)
    return sol_fail(err, SOL_ERR_RANGE,
                    "M and V must be below 2^31 and N below 2^30: a block has a row, ids are int32");
  return SOL_OK;
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  int64_t m = c->dim[0], n = c->dim[1], v = c->dim[2];
  b[Y] = (LadderBuffer){.name = "y", .dtype = SOL_FP32, .count = m * n, .role = OPS_OUT};
  b[EMBEDDED] =
      (LadderBuffer){.name = "embedded", .dtype = SOL_FP32, .count = m * n, .role = OPS_OUT, .scratch = true};
  b[TABLE] =
      (LadderBuffer){.name = "table", .dtype = SOL_FP32, .count = v * n, .role = OPS_IN, .shared = true};
  b[IDS] = (LadderBuffer){.name = "ids",
                          .dtype = SOL_INT32,
                          .count = m,
                          .role = OPS_IN,
                          .fill = v >= m ? OPS_FILL_DISTINCT : OPS_FILL_IDS,
                          .limit = v};
  b[WEIGHT] = (LadderBuffer){
      .name = "weight", .dtype = SOL_FP32, .count = n, .role = OPS_IN, .fill = OPS_FILL_POSITIVE};
  return BUFFERS;
}

// Every row that is asked for once (there are no more of them than the table has), the ids and the weights.
static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  int64_t rows = c->dim[0] < c->dim[2] ? c->dim[0] : c->dim[2];
  return 4.0 * (double)c->dim[1] * ((double)c->dim[0] + (double)rows + 1) + 4.0 * (double)c->dim[0];
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  const int32_t *ids = h->in[IDS];
  int64_t n = h->c->dim[1], row = -1, from = 0;
  double scale = 0;
  for (int64_t k = first; k < first + count; k++) {
    if (k / n != row) {
      double squares = 0;
      row = k / n, from = ids[row] * n;
      for (int64_t c = 0; c < n; c++) squares += h->value(h, TABLE, from + c) * h->value(h, TABLE, from + c);
      scale = 1 / sqrt(squares / (double)n + (double)EPS);
    }
    *out++ = h->value(h, TABLE, from + k % n) * scale * h->value(h, WEIGHT, k % n);
  }
}

static SolStatus go(const LadderCall *call, const char *kernel, SolError *err) {
  EmbedRmsnormRung p = {.y = ladder_at(call, Y),
                        .embedded = ladder_at(call, EMBEDDED),
                        .table = ladder_at(call, TABLE),
                        .weight = ladder_at(call, WEIGHT),
                        .ids = ladder_at(call, IDS),
                        .n = (int32_t)call->c.dim[1],
                        .eps = EPS};
  LadderGrid g = {.grid = {(uint32_t)call->c.dim[0]}, .block = {EMBED_NORM_THREADS}};
  return ladder_launch(call, kernel, &g, &p, sizeof p, err);
}

static SolStatus two_kernels(const LadderCall *call, SolError *err) {
  SolStatus status = go(call, "embed_rmsnorm_gather", err);
  return status ? status : go(call, "embed_rmsnorm_norm", err);
}
static SolStatus fused(const LadderCall *call, SolError *err) {
  return go(call, "embed_rmsnorm_fused", err);
}
static SolStatus vectors(const LadderCall *call, SolError *err) {
  return go(call, "embed_rmsnorm_vectors", err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolEmbedRmsnorm a = {.y = ladder_at(call, Y),
                       .table = ladder_at(call, TABLE),
                       .ids = ladder_at(call, IDS),
                       .weight = ladder_at(call, WEIGHT),
                       .m = call->c.dim[0],
                       .n = call->c.dim[1],
                       .vocab = call->c.dim[2],
                       .dtype = SOL_FP32,
                       .id_dtype = SOL_INT32,
                       .eps = EPS};
  return ladder_op(call, &ops_embed_rmsnorm, &a, err);
}

static const LadderRung rungs[] = {
    {.name = "two-kernels",
     .change = "one kernel takes the rows by id and writes them, the next reads and normalises them; both "
               "into a stream",
     .why = "The rows cross the memory four times: out of the table, into an array between the kernels, out "
            "of it again and into y. The second kernel starts when the whole first one has ended: of an "
            "array larger than L2 little is left there by then.",
     .go = two_kernels,
     .streamed = true},
    {.name = "fused",
     .change = "one kernel does both: the row comes straight from the table",
     .why = "The array between is gone, and with it half of the bytes, and a launch.",
     .story = LADDER_FASTER,
     .go = fused},
    {.name = "fused-vectors",
     .change = "float4: 16 bytes an access",
     .why = "A quarter of the memory instructions. The row is still read twice, the second time from L1 "
            "or L2, behind a barrier.",
     .seen_on = "h200",
     .seen =
         "That is what this kernel waits for on an H200: fewer instructions do not make the wait shorter.",
     .story = LADDER_SAME,
     .go = vectors},
    {.name = "library",
     .change = "sol_embed_rmsnorm: the row stays in registers, later rows are fetched ahead into L2",
     .why = "One reading: the loads of a row leave together, behind the id, and ids and rows of later blocks "
            "are on their way already.",
     .story = LADDER_FASTER,
     .go = library},
    {.name = "two-kernels-graph",
     .change = "the two kernels again, as one CUDA graph",
     .why = "A graph spares the host's work for each launch and part of the gap between kernels. It moves "
            "not a byte less: with this many rows the gap is next to nothing, and fusing is what pays. With "
            "a handful of rows, as in decoding, it is the other way round: try --shape 8x2048x32000.",
     .story = LADDER_SAME,
     .against = "two-kernels",
     .go = two_kernels},
};

const Ladder ladder_embed_rmsnorm = {
    .name = "embed_rmsnorm",
    .title = "Embedding and RMS normalisation, fused",
    .about = "y[i] = rmsnorm(table[ids[i]]) * weight, float. Both halves do next to no arithmetic, and the "
             "second wants just what the first has in its hands: fusing them halves the bytes. A CUDA graph "
             "of the two is set beside it: it saves launches, not bytes.",
    .module = "embed_rmsnorm_rungs",
    .shape = "MxNxV",
    .size = {8192, 2048, 32000},
    .small = {53, 1036, 77},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    .accept = accept,
    LADDER_OWN_JOB,
    .unit = matrix_row,
    .slack = 64,
};
