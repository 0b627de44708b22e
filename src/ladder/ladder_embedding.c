// Rows taken by id: nothing but moving bytes, and three well-meant changes that cost.
#include "base/error.h"
#include "kernels/embedding/rungs.h"
#include "ladder/ladder_matrix.h"

enum { Y, TABLE, IDS, BUFFERS };

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[1] % 4)
    return sol_fail(err, SOL_ERR_RANGE, "N must be a multiple of 4: rows are moved 16 bytes at a time");
  if (c->dim[2] > INT32_MAX) return sol_fail(err, SOL_ERR_RANGE, "V must be below 2^31: ids are int32");
  if (c->dim[0] > INT32_MAX || c->dim[0] * ladder_ceil_div(c->dim[1], EMBED_THREADS) > INT32_MAX)
    return sol_fail(err, SOL_ERR_RANGE, "M x N is too large: a grid has 2^31 - 1 blocks, of %d elements each",
                    EMBED_THREADS);
  return SOL_OK;
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  int64_t m = c->dim[0], n = c->dim[1], v = c->dim[2];
  b[Y] = (LadderBuffer){.name = "y", .dtype = SOL_FP32, .count = m * n, .role = OPS_OUT};
  b[TABLE] =
      (LadderBuffer){.name = "table", .dtype = SOL_FP32, .count = v * n, .role = OPS_IN, .shared = true};
  b[IDS] = (LadderBuffer){.name = "ids",
                          .dtype = SOL_INT32,
                          .count = m,
                          .role = OPS_IN,
                          .fill = v >= m ? OPS_FILL_DISTINCT : OPS_FILL_IDS,
                          .limit = v};
  return BUFFERS;
}

// Every row that is asked for once; there are no more of them than the table has.
static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  int64_t rows = c->dim[0] < c->dim[2] ? c->dim[0] : c->dim[2];
  return 4.0 * (double)c->dim[1] * (double)(c->dim[0] + rows) + 4.0 * (double)c->dim[0];
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t n = h->c->dim[1];
  const int32_t *ids = h->in[IDS];
  for (int64_t k = first; k < first + count; k++) *out++ = h->value(h, TABLE, ids[k / n] * n + k % n);
}

// each: elements of a row that a block copies; 0: a thread copies a row.
static SolStatus go(const LadderCall *call, const char *kernel, int64_t each, SolError *err) {
  int64_t m = call->c.dim[0], n = call->c.dim[1];
  EmbeddingRung p = {.y = ladder_at(call, Y),
                     .table = ladder_at(call, TABLE),
                     .ids = ladder_at(call, IDS),
                     .m = m,
                     .n = n,
                     .blocks = each ? (uint32_t)ladder_ceil_div(n, each) : 0};
  int64_t grid = each ? m * p.blocks : ladder_ceil_div(m, EMBED_THREADS);
  LadderGrid g = {.grid = {(uint32_t)grid}, .block = {EMBED_THREADS}};
  return ladder_launch(call, kernel, &g, &p, sizeof p, err);
}

static SolStatus naive(const LadderCall *call, SolError *err) {
  return go(call, "embedding_naive", 0, err);
}
static SolStatus coalesced(const LadderCall *call, SolError *err) {
  return go(call, "embedding_coalesced", EMBED_THREADS, err);
}
static SolStatus vectors(const LadderCall *call, SolError *err) {
  return go(call, "embedding_vectors", 2 * 4 * EMBED_THREADS, err);
}
static SolStatus unrolled(const LadderCall *call, SolError *err) {
  return go(call, "embedding_unrolled", EMBED_PER_THREAD * EMBED_THREADS, err);
}
static SolStatus staged(const LadderCall *call, SolError *err) {
  return go(call, "embedding_staged", EMBED_THREADS, err);
}
static SolStatus async(const LadderCall *call, SolError *err) {
  return go(call, "embedding_async", 4 * EMBED_THREADS, err);
}

static SolStatus pointers(const LadderCall *call, SolError *err) {
  EmbeddingPointers p = {.y = ladder_at(call, Y),
                         .table = ladder_at(call, TABLE),
                         .ids = ladder_at(call, IDS),
                         .vectors = call->c.dim[1] / 4};
  p.blocks = (uint32_t)ladder_ceil_div(p.vectors, EMBED_THREADS);
  LadderGrid g = {.grid = {(uint32_t)(call->c.dim[0] * p.blocks)}, .block = {EMBED_THREADS}};
  // Up to the end of the last parameter: a kernel's parameters have no padding behind them.
  return ladder_launch(call, "embedding_pointers", &g, &p,
                       offsetof(EmbeddingPointers, blocks) + sizeof p.blocks, err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolEmbedding a = {.y = ladder_at(call, Y),
                    .table = ladder_at(call, TABLE),
                    .ids = ladder_at(call, IDS),
                    .m = call->c.dim[0],
                    .n = call->c.dim[1],
                    .vocab = call->c.dim[2],
                    .dtype = SOL_FP32,
                    .id_dtype = SOL_INT32};
  return ladder_op(call, &ops_embedding, &a, err);
}

static const LadderRung rungs[] = {
    {.name = "naive",
     .change = "a thread copies a row, element by element",
     .why =
         "At every step the lanes of a warp stand in 32 different rows: a load or store of 128 useful bytes "
         "takes 32 sectors. L1 may keep the loaded ones for the next steps; stores go to L2 in parts. And "
         "there are no more threads than rows, each with one load on its way: most of the machine waits.",
     .go = naive},
    {.name = "coalesced",
     .change = "a thread copies one element; neighbouring lanes have neighbouring elements",
     .why = "A warp's load is one stretch of 128 bytes, 4 sectors, all of them used, and there is a thread "
            "for every element to keep loads on their way.",
     .story = LADDER_FASTER,
     .go = coalesced},
    {.name = "vectors",
     .change = "float4 by a pointer cast, two of them a thread, both loaded before either is stored",
     .why = "An eighth of the threads and instructions for the same bytes, and eight times the bytes in "
            "flight in each: DRAM has enough requests to work on all the time. The second vector is a "
            "block's width further on, so that each request of a warp is whole lines.",
     .story = LADDER_FASTER,
     .go = vectors},
    {.name = "pointers",
     .change = "float4 pointers as parameters and one vector a thread",
     .why = "The type of a parameter is the compiler's business: the same 16-byte instructions come out. "
            "What differs is the loads in flight, one in each thread instead of two, behind the load of the "
            "id: with all threads that an SM holds that is just short of what the memory's latency takes.",
     .story = LADDER_SLOWER,
     .go = pointers},
    {.name = "unrolled",
     .change = "no vectors: a thread copies four neighbouring elements in an unrolled loop",
     .why = "Unrolling pays where it overlaps work; here it pulls the lanes apart. Each of the four loads "
            "takes the sectors of all four, so L1 is asked four times for each; stores are not gathered, "
            "and L2 gets every sector four times in parts. The compiler must keep each load behind the "
            "store before it, as they might be the same place. A quarter of the threads, and no faster than "
            "one element each.",
     .story = LADDER_SLOWER,
     .against = "pointers",
     .go = unrolled},
    {.name = "staged",
     .change = "one element a thread, through shared memory and a barrier",
     .why = "No thread needs another's data, so the detour buys nothing: a store and a load of shared memory "
            "more, and the barrier lets no warp of the block store before the slowest has its data.",
     .story = LADDER_SLOWER,
     .against = "coalesced",
     .go = staged},
    {.name = "async",
     .change = "vectors again, one a thread, which cp.async brings to shared memory without a register",
     .why = "It spares the register on the way in, which nobody lacks. The data is waited for at once, the "
            "barrier stays, and the way out still is shared memory, register, store.",
     .story = LADDER_SLOWER,
     .against = "pointers",
     .go = async,
     .min_cc = 90}, // before that the image is sm_75's, which has no cp.async
    {.name = "library",
     .change =
         "sol_embedding: two vectors a thread, the division by multiplication, rows fetched ahead into L2",
     .why =
         "One thread a block asks L2 for a row that another block takes soon, so that its id and its row are "
         "not two waits for DRAM one after the other. It is what vectors does, and little is left to gain.",
     .story = LADDER_SAME,
     .against = "vectors",
     .go = library},
};

const Ladder ladder_embedding = {
    .name = "embedding",
    .title = "Embedding: rows of a table by id",
    .about =
        "y[i] = table[ids[i]], float. There is no arithmetic at all: each row is read once and written once, "
        "and light is a copy of as many bytes. Coalescing and enough bytes in flight reach it. Three changes "
        "that help other kernels (unrolling, shared memory, cp.async) are tried, and cost.",
    .module = "embedding_rungs",
    .shape = "MxNxV",
    .size = {8192, 2048, 32000},
    .small = {53, 1036, 77},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    .accept = accept,
    LADDER_OWN_JOB,
};
