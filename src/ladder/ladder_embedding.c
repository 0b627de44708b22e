// Rows taken from a table by id: only bytes are moved. Three optimisations that help elsewhere are slower
// here.
#include "base/error.h"
#include "kernels/embedding/rungs.h"
#include "ladder/ladder_jobs.h"

enum { Y, TABLE, IDS, BUFFERS };

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[2] > INT32_MAX) return sol_fail(err, SOL_ERR_RANGE, "V must be below 2^31: ids are int32");
  if (c->dim[0] > INT32_MAX || c->dim[0] * ladder_ceil_div(c->dim[1], EMBED_THREADS) > INT32_MAX)
    return sol_fail(err, SOL_ERR_RANGE,
                    "M x N is too large: a grid has 2^31 - 1 blocks, of %d elements "
                    "each",
                    EMBED_THREADS);
  return ladder_whole_vectors(c, 4, err);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = ladder_output(c, "y", c->dim[0] * c->dim[1]);
  b[TABLE] = ladder_table(c);
  b[IDS] = ladder_ids(c);
  return BUFFERS;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t n = h->c->dim[1];
  const int32_t *ids = h->in[IDS];
  for (int64_t k = first; k < first + count; k++) *out++ = h->value(h, TABLE, ids[k / n] * n + k % n);
}

// each: elements of a row that a block copies; 0: a thread copies a row.
static SolStatus go(const LadderCall *call, SolError *err) {
  int64_t m = call->c.dim[0], n = call->c.dim[1], each = call->rung->each;
  EmbeddingRung p = {.y = ladder_at(call, Y),
                     .table = ladder_at(call, TABLE),
                     .ids = ladder_at(call, IDS),
                     .m = m,
                     .n = n,
                     .blocks = each ? (uint32_t)ladder_ceil_div(n, each) : 0};
  int64_t grid = each ? m * p.blocks : ladder_ceil_div(m, EMBED_THREADS);
  LadderGrid g = {.grid = {(uint32_t)grid}, .block = {EMBED_THREADS}};
  return ladder_launch(call, call->rung->kernel, &g, &p, sizeof p, err);
}

static SolStatus pointers(const LadderCall *call, SolError *err) {
  EmbeddingPointers p = {.y = ladder_at(call, Y),
                         .table = ladder_at(call, TABLE),
                         .ids = ladder_at(call, IDS),
                         .vectors = call->c.dim[1] / 4};
  p.blocks = (uint32_t)ladder_ceil_div(p.vectors, EMBED_THREADS);
  LadderGrid g = {.grid = {(uint32_t)(call->c.dim[0] * p.blocks)}, .block = {EMBED_THREADS}};
  // Up to the end of the last parameter: the parameters of a kernel have no padding after them.
  return ladder_launch(call, "embedding_pointers", &g, &p,
                       offsetof(EmbeddingPointers, blocks) + sizeof p.blocks, err);
}

static const LadderRung rungs[] = {
    {.name = "naive",
     .change = "one thread per row, which copies it element by element",
     .why = "At every step the 32 lanes of a warp access 32 different rows: a load or store of 128 "
            "useful bytes takes 32 sectors. L1 may keep the loaded sectors for the next steps; the "
            "stores reach L2 as partial sectors. There are no more threads than rows, each with one "
            "load in flight, so most of the GPU is idle.",
     .kernel = "embedding_naive"},
    {.name = "coalesced",
     .change = "one thread per element; neighbouring lanes copy neighbouring elements",
     .why = "A load of a warp is 128 contiguous bytes, 4 sectors, all of them used, and with one thread "
            "per element there are enough loads in flight.",
     .story = LADDER_FASTER,
     .kernel = "embedding_coalesced",
     .each = EMBED_THREADS},
    {.name = "vectors",
     .change = "float4 by a pointer cast, two per thread, both loaded before either is stored",
     .why = "An eighth of the threads and instructions for the same bytes, and eight times the bytes in "
            "flight per thread, so that DRAM always has requests to serve. The second vector is one "
            "block's width further on, so that each request of a warp is whole cache lines.",
     .story = LADDER_FASTER,
     .kernel = "embedding_vectors",
     .each = 2 * 4 * EMBED_THREADS},
    {.name = "pointers",
     .change = "float4 pointers as parameters, and one vector per thread",
     .why = "The type of the parameter changes nothing: the compiler emits the same 16-byte "
            "instructions. What differs is the loads in flight, one per thread instead of two, and each "
            "depends on the load of the id: even with all the threads that an SM holds, that is just "
            "short of what the latency of memory takes.",
     .story = LADDER_SLOWER,
     .go = pointers},
    {.name = "unrolled",
     .change = "no vectors: a thread copies four neighbouring elements in an unrolled loop",
     .why = "Unrolling pays where it overlaps work; here it spreads the lanes out. Each of the four "
            "loads touches the sectors of all four, so L1 is accessed four times for each; stores are "
            "not combined, and L2 gets every sector in four parts. The compiler must keep each load "
            "after the store before it, since the two might alias. A quarter of the threads, and no "
            "faster than one element per thread.",
     .story = LADDER_SLOWER,
     .against = "pointers",
     .kernel = "embedding_unrolled",
     .each = EMBED_PER_THREAD * EMBED_THREADS},
    {.name = "staged",
     .change = "one element per thread, through shared memory and a barrier",
     .why = "No thread needs the data of another, so shared memory gains nothing: there is one more "
            "store and one more load, and at the barrier no warp of the block can store before the "
            "slowest has its data.",
     .story = LADDER_SLOWER,
     .against = "coalesced",
     .kernel = "embedding_staged",
     .each = EMBED_THREADS},
    {.name = "async",
     .change = "one vector per thread, copied into shared memory by cp.async, not through a register",
     .why = "It saves the register that a load needs, and registers are not scarce here. The kernel "
            "waits for the data at once, the barrier remains, and the result still goes from shared "
            "memory through a register to its store.",
     .story = LADDER_SLOWER,
     .against = "pointers",
     .kernel = "embedding_async",
     .each = 4 * EMBED_THREADS,
     .min_cc = 90}, // below that the image is that of sm_75, which has no cp.async
    {.name = "library",
     .change = "sol_embedding: two vectors per thread, division by multiplication, rows prefetched into "
               "L2",
     .why = "One thread per block prefetches into L2 a row that another block reads soon after, so that "
            "the id and its row are not two DRAM latencies one after the other. Otherwise it is the "
            "rung vectors, and little remains to be gained.",
     .story = LADDER_SAME,
     .against = "vectors",
     .op = &ops_embedding},
};

const Ladder ladder_embedding = {
    .name = "embedding",
    .title = "Embedding: rows of a table by id",
    .about = "y[i] = table[ids[i]], float. There is no arithmetic: each row is read once and written "
             "once, and light is a copy of as many bytes. Coalescing and enough bytes in flight reach "
             "it. Three changes that help other kernels (unrolling, shared memory, cp.async) are tried, "
             "and are slower.",
    .module = "embedding_rungs",
    LADDER_TABLE_JOB,
    LADDER_RUNGS(rungs),
    .go = go,
    .accept = accept,
    .buffers = buffers,
    .bytes = ladder_table_bytes,
    .expect = expect,
};
