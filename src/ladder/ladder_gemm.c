// Multiplying matrices: from CUDA cores to overlapped tensor cores.
#include "base/error.h"
#include "kernels/gemm/rungs.h"
#include "ladder/ladder_jobs.h"
#include "ops/gemm_parts.h"

enum { C, A, B };

static int buffers(const LadderCase *c, LadderBuffer *b) {
  int64_t m = c->dim[0], n = c->dim[1], k = c->dim[2];
  b[C] = ladder_output(c, "c", m * n);
  b[A] = ladder_input(c, "a", m * k);
  b[B] = ladder_input(c, "b", k * n);
  return 3;
}

// Not a matter of bytes: a copy of A, B and C says nothing about it.
static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)c, (void)rung;
  return 0;
}

static double terms(const LadderCase *c) {
  return (double)c->dim[2];
}

// A part of a row: rows are long, and each element is a sum.
static int64_t unit(const LadderCase *c, int buffer) {
  (void)c, (void)buffer;
  return 64;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  int64_t n = h->c->dim[1], k = h->c->dim[2];
  (void)buffer;
  for (int64_t i = first; i < first + count; i++) {
    double sum = 0;
    for (int64_t j = 0; j < k; j++) sum += h->value(h, A, i / n * k + j) * h->value(h, B, j * n + i % n);
    *out++ = sum;
  }
}

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[0] % 256 || c->dim[1] % 256 || c->dim[2] % 64)
    return sol_fail(err, SOL_ERR_RANGE, "M and N must be multiples of 256, K of 64");
  if (c->dim[0] > 1 << 20 || c->dim[1] > 1 << 20 || c->dim[2] > 1 << 20)
    return sol_fail(err, SOL_ERR_RANGE, "at most %d of each", 1 << 20);
  return SOL_OK;
}

static GemmRung rung_of(const LadderCall *call) {
  return (GemmRung){.c = ladder_at(call, C),
                    .a = ladder_at(call, A),
                    .b = ladder_at(call, B),
                    .m = (int)call->c.dim[0],
                    .n = (int)call->c.dim[1],
                    .k = (int)call->c.dim[2]};
}

// A thread for each element.
static SolStatus elements(const LadderCall *call, SolError *err) {
  GemmRung p = rung_of(call);
  LadderGrid grid = {.grid = {(uint32_t)((int64_t)p.m * p.n / RUNG_THREADS)}, .block = {RUNG_THREADS}};
  return ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
}

// each: rows and columns of a block's tile.
static SolStatus tiles(const LadderCall *call, SolError *err) {
  GemmRung p = rung_of(call);
  uint32_t each = (uint32_t)call->rung->each;
  LadderGrid grid = {.grid = {(uint32_t)p.n / each, (uint32_t)p.m / each},
                     .block = {each == RUNG_SMALL ? RUNG_SMALL * RUNG_SMALL : RUNG_THREADS}};
  return ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
}

static SolStatus params_of(const LadderCall *call, GemmTiledParams *p, SolError *err) {
  int64_t m = call->c.dim[0], n = call->c.dim[1], k = call->c.dim[2];
  *p = (GemmTiledParams){.end = {.c = ladder_at(call, C),
                                 .c_stride = n,
                                 .alpha = 1,
                                 .out_kind = ops_kind(SOL_BF16),
                                 .bias_kind = ops_kind(SOL_BF16)},
                         .m = (int)m,
                         .n = (int)n,
                         .k = (int)k,
                         .batch = 1};
  SolStatus status = gemm_make_map(call->ctx, SOL_BF16, ladder_at(call, A), k, m, 1, k, 0, 64, &p->a);
  if (!status) status = gemm_make_map(call->ctx, SOL_BF16, ladder_at(call, B), n, k, 1, n, 0, 64, &p->b);
  if (!status) status = gemm_make_map(call->ctx, SOL_BF16, ladder_at(call, C), n, m, 1, n, 0, 64, &p->c);
  if (status && err) *err = *sol_last_error();
  return status;
}

// each: stages.
static SolStatus copied(const LadderCall *call, SolError *err) {
  GemmTiledParams p;
  SolStatus status = params_of(call, &p, err);
  LadderGrid grid = {.grid = {(uint32_t)p.n / RUNG_TILE, (uint32_t)p.m / RUNG_TILE},
                     .block = {RUNG_THREADS},
                     .shared = (uint32_t)RUNG_SHARED(call->rung->each),
                     .one_param = true};
  return status ? status : ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
}

// each: blocks of a cluster; x: 1 where there are no more clusters than SMs for them.
static SolStatus specialised(const LadderCall *call, SolError *err) {
  GemmTiledParams p;
  SolStatus status = params_of(call, &p, err);
  uint32_t size = (uint32_t)call->rung->each, most = (uint32_t)call->ctx->sms / size, clusters;
  if (status) return status;
  p.rows = p.m / (int)(128 * size), p.columns = p.n / 256, p.group = 8 / (int)size, p.down = (int)size,
  p.across = 1;
  gemm_divide_by(&p, 1);
  clusters = (uint32_t)p.rows * (uint32_t)p.columns;
  if (call->rung->x > 0 && clusters > most) clusters = most ? most : 1;
  LadderGrid grid = {.grid = {clusters * size},
                     .block = {GEMM_THREADS(128, 1)},
                     .cluster = size,
                     .shared = GEMM_SHARED(128, 256, 4, 1),
                     .one_param = true};
  return ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolGemm args = {.c = ladder_at(call, C),
                  .a = ladder_at(call, A),
                  .b = ladder_at(call, B),
                  .m = call->c.dim[0],
                  .n = call->c.dim[1],
                  .k = call->c.dim[2],
                  .dtype = SOL_BF16};
  return ladder_op(call, &ops_gemm, &args, err);
}

static const LadderRung rungs[] = {
    {.name = "naive",
     .change = "one thread per element of C, neighbouring threads in neighbouring rows",
     .why =
         "For every product a warp loads 32 elements of A from 32 rows, a sector each, of which it uses 2 bytes, and "
         "one of B. L1 and L2 deliver sectors, not elements: they are the limit, and the multipliers wait.",
     .go = elements,
     .kernel = "gemm_naive"},
    {.name = "coalesced",
     .change = "neighbouring threads in neighbouring columns",
     .why =
         "A warp loads 64 contiguous bytes of B and one element of A for 32 products: two sectors instead of 32. "
         "Still there are two load instructions for every multiplication.",
     .story = LADDER_FASTER,
     .go = elements,
     .kernel = "gemm_coalesced"},
    {.name = "tile",
     .change = "32 by 32 elements a block, its parts of A and B in shared memory",
     .why =
         "An element that was loaded once serves 32 threads: L2 delivers a thirty-second of the bytes. Shared memory "
         "is the limit now: each multiplication reads two numbers from it.",
     .story = LADDER_FASTER,
     .go = tiles,
     .kernel = "gemm_tile",
     .each = RUNG_SMALL},
    {.name = "registers",
     .change = "128 by 128 elements a block, 8 by 8 of them a thread",
     .why =
         "16 numbers from shared memory serve 64 multiplications. The CUDA cores are the limit where loads do not "
         "stand in their way; these are of 2 bytes each, and all threads wait for them at every step.",
     .story = LADDER_FASTER,
     .go = tiles,
     .kernel = "gemm_registers",
     .each = RUNG_TILE},
    {.name = "vectorised",
     .change = "16 bytes per load, those of the next step before this one is multiplied",
     .why = "An eighth of the load instructions, and their latency passes while the CUDA cores multiply.",
     .story = LADDER_FASTER,
     .go = tiles,
     .kernel = "gemm_vectorised",
     .each = RUNG_TILE},
    {.name = "async",
     .change = "cp.async copies from global to shared memory, into one of two tiles",
     .why =
         "Copies pass no registers, and a tile arrives while the other is multiplied. It arrives as it is, so that bf16 "
         "is widened each time it is read: by itself that costs more than it saves. What it makes room for is "
         "feeding tensor cores, which take bf16.",
     .story = LADDER_SLOWER,
     .go = tiles,
     .kernel = "gemm_async",
     .each = RUNG_TILE,
     .min_cc = 90},
    {.name = "mma",
     .seen_on = "h200",
     .seen = "At 4096 cubed it takes 463 us.",
     .change = "tensor cores: mma.sync on fragments that ldmatrix loads",
     .why =
         "An instruction of a warp makes 2048 products. Tensor cores are much faster than what feeds them: "
         "they wait for ldmatrix, for barriers and for copies that every thread takes part in.",
     .story = LADDER_FASTER,
     .go = tiles,
     .kernel = "gemm_mma",
     .each = RUNG_TILE,
     .min_cc = 90},
    {.name = "tensor_copies",
     .seen_on = "h200",
     .seen = "At 4096 cubed it is faster, 392 us: several blocks of an SM hide each other's copies.",
     .change = "one thread copies whole tiles (TMA), an mbarrier says when they have arrived; one stage",
     .why =
         "Addresses, bounds and swizzling are the copy engine's work, 64 k at a time. But a tile is copied only when the one "
         "before has been read: copying and multiplying take turns. It enables a ring of stages.",
     .story = LADDER_SLOWER,
     .go = copied,
     .kernel = "gemm_tensor_copies",
     .each = 1,
     .min_cc = 90},
    {.name = "stages",
     .seen_on = "h200",
     .seen = "At 4096 cubed it is no faster, 400 us: four stages leave room for one block on an SM.",
     .change = "a ring of four stages",
     .why =
         "Three tiles are on their way while one is multiplied: the copies' latency is hidden. The warps' own "
         "instructions for loading fragments are what tensor cores wait for.",
     .story = LADDER_FASTER,
     .go = copied,
     .kernel = "gemm_stages",
     .each = RUNG_STAGES,
     .min_cc = 90},
    {.name = "warpgroups",
     .seen_on = "h200",
     .seen = "At 4096 cubed it takes 253 us.",
     .change = "wgmma: four warps multiply 64 by 128 straight from shared memory",
     .why =
         "No fragments are loaded into registers, and an instruction keeps the tensor cores busy for long. At each step "
         "all threads meet before the stage is filled again, and the tensor cores idle meanwhile.",
     .story = LADDER_FASTER,
     .go = copied,
     .kernel = "gemm_warpgroups",
     .each = RUNG_STAGES,
     .min_cc = 90},
    {.name = "specialised",
     .seen_on = "h200",
     .seen =
         "At 1024x1024x256 a block has one tile and four steps, and its longer start and end are not hidden. At 4096 cubed it takes 183 us.",
     .change = "a warp copies and two warpgroups multiply, with its registers; tiles of 128 by 256",
     .why =
         "Nobody waits for all: a stage has a barrier for having arrived and one for having been read. Registers move "
         "to the warpgroups, so that a tile is twice as wide: a third less is loaded for each product.",
     .story = LADDER_FASTER,
     .go = specialised,
     .kernel = "gemm_specialised",
     .each = 1,
     .min_cc = 90},
    {.name = "cluster",
     .seen_on = "h200",
     .seen =
         "Two barriers of the cluster, at the start and at the end of a block, are what small products pay for it. At 4096 cubed it takes 185 us.",
     .change = "two blocks one below the other share B's tile by multicast",
     .why =
         "Each loads a half of it and sends it to both: a third less comes from L2. Where L2 was not the limit "
         "that gains little, and the two wait for each other.",
     .story = LADDER_SAME,
     .go = specialised,
     .kernel = "gemm_cluster",
     .each = 2,
     .min_cc = 90},
    {.name = "persistent",
     .seen_on = "h200",
     .seen =
         "At 1024x1024x256 there are fewer tiles than SMs, so nothing changes. At 4096 cubed it takes 179 us.",
     .change = "as many clusters as run at a time, each takes one tile after another",
     .why =
         "While a tile's results are written, the next one's stages are already being filled: the start and the "
         "end of a block are paid once. The tensor cores are the limit.",
     .story = LADDER_FASTER,
     .go = specialised,
     .kernel = "gemm_cluster",
     .each = 2,
     .x = 1,
     .min_cc = 90},
    {.name = "library",
     .seen_on = "h200",
     .seen = "At 4096 cubed it takes 178 us, 771 TFLOP/s.",
     .change = "sol_gemm: the same, its tiles chosen for the size by an estimate of their time",
     .why =
         "Where tiles of the rung before are fewer than the SMs, it takes smaller ones, or shares out k among the "
         "blocks of a cluster. Where there are many it is that rung, or as good.",
     .story = LADDER_FASTER,
     .go = library},
};

const Ladder ladder_gemm = {
    .name = "gemm",
    .title = "Multiplying matrices",
    .about =
        "C = A B in bf16, all by rows, summed in fp32. Of M x N x K, each element of A is needed N times and each of B M "
        "times: a large product is bound by arithmetic, if each byte that is loaded serves enough "
        "multiplications on the way. The rungs bring data nearer, then hand multiplication, copying and "
        "waiting to the units that are made for them.",
    .module = "gemm_rungs",
    .shape = "MxNxK",
    .size = {1024, 1024, 256},
    .small = {256, 256, 64},
    .dtypes = {SOL_BF16},
    LADDER_RUNGS(rungs),
    .accept = accept,
    LADDER_OWN_JOB,
    .terms = terms,
    .unit = unit,
    .slack = 4096,
};
