// Bias, relu and scale: what fusing buys, where memory is the limit and where launches are.
#include "base/port.h"
#include "kernels/bias_relu_scale/rungs.h"
#include "ladder/ladder.h"

enum { Y, X, BIAS, BUFFERS, THREADS = 256 };
static const float scale = 0.6f;

static int buffers(const LadderCase *c, LadderBuffer *b) {
  int64_t count = c->dim[0] * c->dim[1];
  b[Y] = (LadderBuffer){.name = "y", .dtype = SOL_FP32, .count = count, .role = OPS_OUT};
  b[X] = (LadderBuffer){.name = "x", .dtype = SOL_FP32, .count = count, .role = OPS_IN};
  b[BIAS] = (LadderBuffer){.name = "bias", .dtype = SOL_FP32, .count = c->dim[1], .role = OPS_IN};
  return BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 4.0 * (2.0 * (double)c->dim[0] + 1) * (double)c->dim[1];
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t k = first; k < first + count; k++) {
    double u = h->value(h, X, k) + h->value(h, BIAS, k % h->c->dim[1]);
    *out++ = (u < 0 ? 0 : u) * (double)scale;
  }
}

static BiasRung params(const LadderCall *call) {
  return (BiasRung){.y = ladder_at(call, Y),
                    .x = ladder_at(call, X),
                    .bias = ladder_at(call, BIAS),
                    .count = (uint64_t)call->c.dim[0] * (uint64_t)call->c.dim[1],
                    .columns = (uint64_t)call->c.dim[1],
                    .scale = scale};
}

static SolStatus launch(const LadderCall *call, const char *kernel, const BiasRung *p, uint64_t each,
                        SolError *err) {
  LadderGrid grid = {.block = {THREADS}};
  ops_grid(grid.grid, (p->count + each - 1) / each, THREADS);
  return ladder_launch(call, kernel, &grid, p, sizeof *p, err);
}

static SolStatus three(const LadderCall *call, SolError *err) {
  BiasRung p = params(call), later = p;
  later.x = p.y;
  SolStatus status = launch(call, "bias_rung_bias", &p, 1, err);
  if (!status) status = launch(call, "bias_rung_relu", &later, 1, err);
  if (!status) status = launch(call, "bias_rung_scale", &later, 1, err);
  return status;
}
static SolStatus fused(const LadderCall *call, SolError *err) {
  BiasRung p = params(call);
  return launch(call, "bias_rung_fused", &p, 1, err);
}
static SolStatus vectorised(const LadderCall *call, SolError *err) {
  BiasRung p = params(call);
  return launch(call, "bias_rung_vectorised", &p, 4, err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolBias a = {.y = ladder_at(call, Y),
               .x = ladder_at(call, X),
               .bias = ladder_at(call, BIAS),
               .m = call->c.dim[0],
               .n = call->c.dim[1],
               .dtype = SOL_FP32,
               .scale = scale};
  return ladder_op(call, &ops_bias_relu_scale, &a, err);
}

#define THREE_CHANGE "three kernels, one a step; y goes to memory and back between them"
#define ONE_CHANGE                                                                                           \
  "the fused kernel, launched into a stream like the three: no graph, one launch instead of three"

static const LadderRung rungs[] = {
    {.name = "three",
     .change = THREE_CHANGE ", launched one after another into a stream",
     .why = "Each step is perfect by itself: coalesced, and as fast as memory. But there are three of them, "
            "and each reads and writes the whole matrix: six passes where two are needed.",
     .go = three,
     .streamed = true},
    {.name = "three-graph",
     .change = "the same three launches as one CUDA graph",
     .why = "A graph takes the cost of launching off the CPU and shortens the gaps between kernels. Kernels "
            "this long hide their successor's launch anyhow: the six passes over memory remain.",
     .story = LADDER_SAME,
     .go = three},
    {.name = "fused",
     .change = "one kernel does all three steps while the element is in a register",
     .why = "Two passes over memory instead of six. The two more operations on each element are free: the "
            "arithmetic units had nothing else to do while memory was busy.",
     .story = LADDER_FASTER,
     .go = fused},
    {.name = "vectorised",
     .change = "four elements a thread: loads and stores of 16 bytes, a column looked up once for four",
     .why = "A quarter of the threads, of the memory instructions and of the divisions that find a column. "
            "The same sectors move; each thread has more of them under way.",
     .story = LADDER_FASTER,
     .go = vectorised},
    {.name = "library",
     .change = "sol_bias_relu_scale: the same vectors, the division as a multiplication, dependent launch",
     .why = "Nothing is left but to read and write everything once. A dependent launch overlaps the start of "
            "a kernel with the end of the one before, which does not show in a kernel this long.",
     .story = LADDER_SAME,
     .go = library},
    {.name = "one-stream",
     .change = ONE_CHANGE,
     .why = "The graph saved nothing of the six passes; fusing did. For long kernels launches are not where "
            "the time goes, so this one needs no graph to be far ahead of the graph of three.",
     .story = LADDER_FASTER,
     .against = "three-graph",
     .go = fused,
     .streamed = true},
};

const Ladder ladder_bias_relu_scale = {
    .name = "bias_relu_scale",
    .title = "Bias, relu, scale",
    .about = "y = max(x + bias[column], 0) * scale. Three elementwise steps, each of which a framework has a "
             "kernel for. None of those kernels can be made faster; leaving two of them out can. The matrix "
             "is larger than the L2 cache, so what one kernel leaves behind the next one reads from DRAM. "
             "bias_relu_scale_short is the same job where the matrix is small and launches are what counts.",
    .module = "bias_relu_scale_rungs",
    .shape = "MxN",
    .size = {6144, 4096},
    .small = {37, 301},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    LADDER_OWN_JOB,
    .slack = 2,
};

static const LadderRung short_rungs[] = {
    {.name = "three",
     .change = THREE_CHANGE ", launched one after another into a stream",
     .why = "The matrix is small: a kernel is over before the next one has been launched. What is measured "
            "is the time that launches take, three times.",
     .go = three,
     .streamed = true},
    {.name = "three-graph",
     .change = "the same three launches as one CUDA graph",
     .why = "The GPU has the whole sequence and starts each kernel when the last one ends, without waiting "
            "for the CPU. Kernels and bytes are the same.",
     .story = LADDER_FASTER,
     .go = three},
    {.name = "one-stream",
     .change = ONE_CHANGE,
     .why = "One launch from the CPU against three. A launch into a stream costs several times what a "
            "kernel in a graph does: one of them takes about as long as the whole graph of three, how long "
            "depends on the host.",
     .story = LADDER_FASTER,
     .against = "three",
     .go = fused,
     .streamed = true},
    {.name = "one-graph",
     .change = "the fused kernel in a graph",
     .why = "One kernel, and the CPU is not in the way: the two savings add up.",
     .story = LADDER_FASTER,
     .go = fused},
    {.name = "library",
     .change = "sol_bias_relu_scale in a graph: vectors and dependent launch",
     .why = "A dependent launch starts a kernel while the one before it is ending. Of a kernel this short "
            "that is a good part.",
     .story = LADDER_FASTER,
     .go = library},
};

const Ladder ladder_bias_relu_scale_short = {
    .name = "bias_relu_scale_short",
    .title = "Bias, relu, scale on a small matrix: a graph of three against one launch",
    .about = "The job of bias_relu_scale on a few rows, as in decoding one token for each of a few users. "
             "Memory is hardly touched; the time is that of launches. A CUDA graph makes launches cheaper, "
             "fusing makes them fewer.",
    .module = "bias_relu_scale_rungs",
    .shape = "MxN",
    .size = {8, 4096},
    .small = {3, 1001},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(short_rungs),
    LADDER_OWN_JOB,
    .slack = 2,
};
