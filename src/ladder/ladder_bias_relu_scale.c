// Bias, relu and scale: what fusing gains where memory is the limit, and where launches are (the ladder
// bias_relu_scale_short: the same kernels on a small matrix).
#include "kernels/bias_relu_scale/rungs.h"
#include "ladder/ladder_jobs.h"

enum { THREADS = 256 };
static const float scale = 0.6f; // that of the operation's own cases, which the library rung runs

static int buffers(const LadderCase *c, LadderBuffer *b) {
  return ladder_vector_buffers(c, "bias", OPS_FILL_NORMAL, b);
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t k = first; k < first + count; k++) {
    double u = h->value(h, JOB_X, k) + h->value(h, JOB_VECTOR, k % h->c->dim[1]);
    *out++ = (u < 0 ? 0 : u) * (double)scale;
  }
}

// x: the buffer that the kernel reads; each: elements of a thread.
static SolStatus launch(const LadderCall *call, const char *kernel, int x, uint64_t each, SolError *err) {
  BiasRung p = {.y = ladder_at(call, JOB_Y),
                .x = ladder_at(call, x),
                .bias = ladder_at(call, JOB_VECTOR),
                .count = (uint64_t)call->c.dim[0] * (uint64_t)call->c.dim[1],
                .columns = (uint64_t)call->c.dim[1],
                .scale = scale};
  LadderGrid grid = ladder_threads((p.count + each - 1) / each, THREADS);
  return ladder_launch(call, kernel, &grid, &p, sizeof p, err);
}

static SolStatus three(const LadderCall *call, SolError *err) {
  SolStatus status = launch(call, "bias_rung_bias", JOB_X, 1, err);
  if (!status) status = launch(call, "bias_rung_relu", JOB_Y, 1, err);
  if (!status) status = launch(call, "bias_rung_scale", JOB_Y, 1, err);
  return status;
}

static SolStatus fused(const LadderCall *call, SolError *err) {
  return launch(call, "bias_rung_fused", JOB_X, 1, err);
}

static SolStatus vectorised(const LadderCall *call, SolError *err) {
  return launch(call, "bias_rung_vectorised", JOB_X, 4, err);
}

// Rungs that both ladders have; `why` and `story` are each ladder's own.
#define THREE                                                                                                \
  .name = "three",                                                                                           \
  .change = "three kernels, one per step, launched one after another into a stream; y is written and read "  \
            "back between them",                                                                             \
  .go = three, .streamed = true
#define THREE_GRAPH .name = "three-graph", .change = "the same three launches as one CUDA graph", .go = three
#define ONE_STREAM                                                                                           \
  .name = "one-stream",                                                                                      \
  .change = "the fused kernel, launched into a stream as the three were: one launch, no graph", .go = fused, \
  .streamed = true

static const LadderRung rungs[] = {
    {THREE, .why = "Each step by itself is optimal: coalesced, and as fast as memory. But there are three of "
                   "them, and each reads and writes the whole matrix: six passes over memory where two are "
                   "needed."},
    {THREE_GRAPH,
     .why = "A graph removes the launch cost on the CPU and shortens the gaps between kernels. Kernels "
            "this long hide the launch of the next one in any case: the six passes over memory remain.",
     .story = LADDER_SAME},
    {.name = "fused",
     .change = "one kernel does all three steps while the element is in a register",
     .why = "Two passes over memory instead of six. The two additional operations per element cost "
            "nothing: the arithmetic units are idle while the kernel waits for memory.",
     .story = LADDER_FASTER,
     .go = fused},
    {.name = "vectorised",
     .change = "four elements per thread: loads and stores of 16 bytes, one column lookup for all four",
     .why = "A quarter of the threads, of the memory instructions and of the divisions that find a "
            "column. The same sectors move; each thread has more of them in flight.",
     .story = LADDER_FASTER,
     .go = vectorised},
    {.name = "library",
     .change = "sol_bias_relu_scale: the same vectors, the division as a multiplication, programmatic "
               "dependent launch",
     .why = "What remains is to read and write everything once. A dependent launch overlaps the start "
            "of a kernel with the end of the one before, which makes no visible difference for a kernel "
            "this long.",
     .story = LADDER_SAME,
     .op = &ops_bias_relu_scale},
    {ONE_STREAM,
     .why = "The graph removed none of the six passes; fusing removed four. Long kernels do not spend "
            "their time on launches, so this one is far ahead of the graph of three without being in a "
            "graph.",
     .story = LADDER_FASTER, .against = "three-graph"},
};

#define JOB .module = "bias_relu_scale_rungs", LADDER_VECTOR_JOB, .dtypes = {SOL_FP32}, .slack = 2

const Ladder ladder_bias_relu_scale = {
    .name = "bias_relu_scale",
    .title = "Bias, relu, scale",
    .about = "y = max(x + bias[column], 0) * scale. Three elementwise steps, each of which a framework "
             "has a kernel for. None of those kernels can be made faster; leaving two of them out can. "
             "The matrix is larger than the L2 cache, so what one kernel writes, the next one reads "
             "from DRAM. bias_relu_scale_short is the same job on a small matrix, where launches take "
             "the time.",
    JOB,
    .size = {6144, 4096},
    .small = {37, 301},
    LADDER_RUNGS(rungs),
};

static const LadderRung short_rungs[] = {
    {THREE, .why =
                "The matrix is small: a kernel has ended before the next one is launched. What is measured "
                "is the time of three launches."},
    {THREE_GRAPH,
     .why = "The GPU has the whole sequence and starts each kernel when the one before it ends, without "
            "waiting for the CPU. Kernels and bytes are the same.",
     .story = LADDER_FASTER},
    {ONE_STREAM,
     .why = "One launch from the CPU against three. A launch into a stream costs several times what a "
            "kernel in a graph does: one of them takes about as long as the whole graph of three. How "
            "long depends on the host.",
     .story = LADDER_FASTER, .against = "three"},
    {.name = "one-graph",
     .change = "the fused kernel in a graph",
     .why = "One kernel, and no launch from the CPU: the two savings add up.",
     .story = LADDER_FASTER,
     .go = fused},
    {.name = "library",
     .change = "sol_bias_relu_scale in a graph: vectors and programmatic dependent launch",
     .why = "A dependent launch starts a kernel while the one before it is ending. For a kernel this "
            "short that is a considerable part of its time.",
     .story = LADDER_FASTER,
     .op = &ops_bias_relu_scale},
};

const Ladder ladder_bias_relu_scale_short = {
    .name = "bias_relu_scale_short",
    .title = "Bias, relu, scale on a small matrix: a graph of three against one launch",
    .about = "The job of bias_relu_scale on a few rows, as in decoding one token for each of a few "
             "users. Little memory is moved; the time is that of launches. A CUDA graph makes launches "
             "cheaper, fusing makes them fewer.",
    JOB,
    .size = {8, 4096},
    .small = {3, 1001},
    LADDER_RUNGS(short_rungs),
};
