// Operations between ranks: on cpu over MPI where mpirun has started this program (tests/test_collective.sh), and the host
// side of NCCL against one that pretends (fake_nccl.c).
#define _GNU_SOURCE
#include <libgen.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "sol/sol.h"

enum { ROWS = 5, WIDTH = 1500, VOCAB = 37, MOST_RANKS = 16 };

static float value_of(int rank, int i) { // of a rank's tensor; sums of a few are exact in every type
  return (float)((rank * 31 + i * 7) % 17 - 8) / 8;
}

static float from_bf16(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float out;
  memcpy(&out, &wide, sizeof out);
  return out;
}
static uint16_t to_bf16(float value) { // exact values alone
  uint32_t wide;
  memcpy(&wide, &value, sizeof wide);
  return (uint16_t)(wide >> 16);
}

static SolContext *cpu(void) {
  SolContext *ctx = NULL;
  CHECK_INT(sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_CPU, .workers = 1}, &ctx, NULL),
            SOL_OK);
  return ctx;
}

static void check_all_reduce(SolContext *ctx, const SolTransport *t) {
  static float x[ROWS * WIDTH], residual[ROWS * WIDTH], y[ROWS * WIDTH], weight[WIDTH];
  for (int i = 0; i < ROWS * WIDTH; i++) x[i] = value_of(t->rank, i), residual[i] = (float)(i % 5);
  for (int i = 0; i < WIDTH; i++) weight[i] = 1 + (float)(i % 3);
  SolAddRmsnorm args = {.y = y,
                        .x = x,
                        .residual = residual,
                        .weight = weight,
                        .m = ROWS,
                        .n = WIDTH,
                        .dtype = SOL_FP32,
                        .eps = 1e-5f};
  CHECK_INT(sol_all_reduce_rmsnorm(ctx, t, &args, NULL), SOL_OK);
  for (int row = 0; row < ROWS; row++) {
    double squares = 0, s[WIDTH];
    for (int c = 0; c < WIDTH; c++) {
      int i = row * WIDTH + c;
      s[c] = i % 5;
      for (int r = 0; r < t->size; r++) s[c] += (double)value_of(r, i);
      squares += s[c] * s[c];
      CHECK(residual[i] == (float)s[c]);
    }
    for (int c = 0; c < WIDTH; c++)
      CHECK_NEAR(y[row * WIDTH + c], s[c] / sqrt(squares / WIDTH + 1e-5) * (double)weight[c], 1e-5);
  }
}

static void check_bf16(SolContext *ctx, const SolTransport *t) {
  static uint16_t x[ROWS * WIDTH], residual[ROWS * WIDTH], y[ROWS * WIDTH];
  for (int i = 0; i < ROWS * WIDTH; i++) x[i] = to_bf16(value_of(t->rank, i)), residual[i] = 0;
  SolAddRmsnorm args = {.y = y, .x = x, .residual = residual, .m = ROWS, .n = WIDTH, .dtype = SOL_BF16};
  CHECK_INT(sol_all_reduce_rmsnorm(ctx, t, &args, NULL), SOL_OK);
  for (int i = 0; i < ROWS * WIDTH; i++) {
    float sum = 0;
    for (int r = 0; r < t->size; r++) sum += value_of(r, i);
    CHECK_MSG(from_bf16(residual[i]) == sum, "%d: %g, not %g", i, (double)from_bf16(residual[i]),
              (double)sum);
  }
}

// Each rank has its rows of the table, the last one the rest.
static void check_embedding(SolContext *ctx, const SolTransport *t) {
  static float table[VOCAB * 8], y[64 * 8];
  int32_t ids[64];
  int each = (VOCAB + t->size - 1) / t->size, first = each * t->rank;
  int rows = first >= VOCAB ? 0 : VOCAB - first < each ? VOCAB - first : each;
  for (int i = 0; i < rows * 8; i++) table[i] = (float)(first * 8 + i);
  for (int i = 0; i < 64; i++) ids[i] = (i * 11) % VOCAB - first;
  SolEmbedding args = {.y = y, .table = table, .ids = ids, .m = 64, .n = 8, .vocab = rows, .dtype = SOL_FP32};
  CHECK_INT(sol_embedding_sharded(ctx, t, &args, NULL), SOL_OK);
  for (int i = 0; i < 64 * 8; i++) CHECK(y[i] == (float)((i / 8 * 11) % VOCAB * 8 + i % 8));
}

static void check_gather(SolContext *ctx, const SolTransport *t) {
  static float x[ROWS * WIDTH];
  static uint16_t y[MOST_RANKS * ROWS * WIDTH];
  for (int i = 0; i < ROWS * WIDTH; i++) x[i] = value_of(t->rank, i);
  SolAllGatherCast args = {.y = y, .x = x, .m = ROWS, .n = WIDTH, .dtype = SOL_FP32, .out_dtype = SOL_BF16};
  CHECK_INT(sol_all_gather_cast(ctx, t, &args, NULL), SOL_OK);
  for (int r = 0; r < t->size; r++)
    for (int i = 0; i < ROWS * WIDTH; i++) CHECK(from_bf16(y[r * ROWS * WIDTH + i]) == value_of(r, i));
}

TEST(ranks) {
  SolTransport t;
  SolError err = {0};
  const char *library = getenv("SOL_FLEET");
  if (!getenv("OMPI_COMM_WORLD_SIZE") || !library)
    SKIP("not started by mpirun: tests/test_collective.sh does");
  if (!CHECK_MSG(!sol_transport_mpi(library, &t, &err), "%s", err.message)) return;
  CHECK(t.size == atoi(getenv("OMPI_COMM_WORLD_SIZE")) && t.size <= MOST_RANKS);
  SolContext *ctx = cpu();
  check_all_reduce(ctx, &t);
  check_bf16(ctx, &t);
  check_embedding(ctx, &t);
  check_gather(ctx, &t);
  sol_context_destroy(ctx);
  sol_transport_close(&t);
}

TEST(one_rank_needs_no_transport) {
  SolTransport alone = {.rank = 0, .size = 1, .backend = SOL_BACKEND_CPU};
  SolContext *ctx = cpu();
  check_all_reduce(ctx, &alone);
  check_bf16(ctx, &alone);
  check_embedding(ctx, &alone);
  check_gather(ctx, &alone);
  sol_context_destroy(ctx);
}

// The real NCCL with one rank: what it is given comes back, and the operations run on the same stream.
TEST(nccl_on_a_gpu) {
  enum { COUNT = 4096 };
  static float x[COUNT], back[COUNT];
  SolContext *ctx = NULL;
  SolNcclId id;
  SolTransport t;
  SolError err = {0};
  void *there[3] = {0};
  if (sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_CUDA}, &ctx, &err)) SKIP("no GPU");
  if (sol_nccl_id(&id, &err)) {
    sol_context_destroy(ctx);
    SKIP("no NCCL");
  }
  for (int i = 0; i < COUNT; i++) x[i] = value_of(0, i);
  for (int i = 0; i < 3; i++) CHECK_INT(sol_context_alloc(ctx, sizeof x, &there[i], &err), SOL_OK);
  CHECK_MSG(!sol_transport_nccl(&id, 0, 1, &t, &err), "%s", err.message);
  CHECK_INT(sol_context_write(ctx, there[0], x, sizeof x, &err), SOL_OK);
  CHECK_INT(t.all_reduce(t.state, there[0], COUNT, SOL_FP32, NULL), SOL_OK);
  CHECK_INT(t.all_gather(t.state, there[0], there[1], sizeof x, NULL), SOL_OK);
  SolAddRmsnorm args = {
      .y = there[2], .x = there[1], .residual = there[0], .m = 4, .n = COUNT / 4, .dtype = SOL_FP32};
  CHECK_INT(sol_all_reduce_rmsnorm(ctx, &t, &args, NULL), SOL_OK);
  CHECK_INT(sol_context_sync(ctx, &err), SOL_OK);
  CHECK_INT(sol_context_read(ctx, back, there[0], sizeof back, &err), SOL_OK);
  for (int i = 0; i < COUNT; i++) CHECK(back[i] == 2 * x[i]); // residual + x, which are equal
  sol_transport_close(&t);
  for (int i = 0; i < 3; i++) sol_context_free(ctx, there[i], &err);
  sol_context_destroy(ctx);
}

static bool use_fake(void) {
  char own[4096], path[4200];
  ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
  own[n > 0 ? n : 0] = 0;
  snprintf(path, sizeof path, "%s/fake/libnccl.so.2", dirname(own));
  return !setenv("SOL_NCCL", path, 1) && access(path, R_OK) == 0;
}

// Both of its ranks hold what this one does.
TEST(nccl) {
  SolNcclId id, other = {{0}};
  SolTransport t;
  SolError err = {0};
  if (!CHECK_MSG(use_fake(), "fake/libnccl.so.2 is missing")) return;
  CHECK_MSG(!sol_nccl_id(&id, &err), "%s", err.message);
  CHECK_INT(sol_transport_nccl(&other, 0, 2, &t, &err), SOL_ERR_IO);
  CHECK_HAS(err.message, "invalid argument");
  CHECK_INT(sol_transport_nccl(&id, 2, 2, &t, &err), SOL_ERR_ARGUMENT);
  if (!CHECK_MSG(!sol_transport_nccl(&id, 1, 2, &t, &err), "%s", err.message)) return;
  CHECK(t.rank == 1 && t.size == 2 && t.backend == SOL_BACKEND_CUDA);
  SolContext *ctx = cpu();
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, residual[8] = {0}, y[8], all[16] = {0};
  SolAddRmsnorm args = {.y = y, .x = x, .residual = residual, .m = 2, .n = 4, .dtype = SOL_FP32};
  CHECK_INT(sol_all_reduce_rmsnorm(ctx, &t, &args, NULL), SOL_ERR_UNSUPPORTED); // a context of cpu
  CHECK_HAS(sol_last_error()->message, "contexts of cuda, not of cpu");
  t.backend = SOL_BACKEND_CPU; // the fake one reads this process's memory
  CHECK_INT(sol_all_reduce_rmsnorm(ctx, &t, &args, NULL), SOL_OK);
  for (int i = 0; i < 8; i++) CHECK(residual[i] == 2 * (float)(i + 1));
  SolAllGatherCast gather = {.y = all, .x = residual, .m = 2, .n = 4, .dtype = SOL_FP32};
  CHECK_INT(sol_all_gather_cast(ctx, &t, &gather, NULL), SOL_OK);
  for (int i = 0; i < 16; i++) CHECK(all[i] == residual[i % 8]);
  sol_context_destroy(ctx);
  sol_transport_close(&t);
  CHECK(!t.close);
  setenv("SOL_NCCL", "/nowhere/libnccl.so.2", 1);
  CHECK_INT(sol_nccl_id(&id, &err), SOL_ERR_UNSUPPORTED);
}

TEST(refusals) {
  SolTransport t = {.rank = 0, .size = 1, .backend = SOL_BACKEND_CPU},
               wrong = {.rank = 3, .size = 2, .backend = SOL_BACKEND_CPU};
  SolContext *ctx = cpu();
  float x[8] = {0}, y[8];
  SolAddRmsnorm args = {.y = y, .x = x, .residual = x, .m = 2, .n = 4, .x_stride = 5, .dtype = SOL_FP32};
  CHECK_INT(sol_all_reduce_rmsnorm(ctx, &t, &args, NULL), SOL_ERR_UNSUPPORTED);
  CHECK_HAS(sol_last_error()->message, "x must be dense");
  CHECK_INT(sol_all_reduce_rmsnorm(ctx, &t, NULL, NULL), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_all_reduce_rmsnorm(ctx, &wrong, &args, NULL), SOL_ERR_ARGUMENT);
  args.x_stride = 0, args.x = NULL;
  CHECK_INT(sol_all_reduce_rmsnorm(ctx, &t, &args, NULL), SOL_ERR_ARGUMENT);
  args.x = x, args.dtype = SOL_INT32;
  CHECK_INT(sol_all_reduce_rmsnorm(ctx, &t, &args, NULL), SOL_ERR_ARGUMENT);
  SolEmbedding flagged = {.y = y, .m = 1, .n = 4, .dtype = SOL_FP32, .bad_id = SOL_BAD_ID_FLAG};
  CHECK_INT(sol_embedding_sharded(ctx, &t, &flagged, NULL), SOL_ERR_UNSUPPORTED);
  SolAllGatherCast gather = {.x = x, .m = INT64_MAX, .n = 4, .dtype = SOL_FP32};
  CHECK_INT(sol_all_gather_cast(ctx, &t, &gather, NULL), SOL_ERR_ARGUMENT);
  SolError err = {0};
  CHECK_INT(sol_transport_mpi("/nowhere/libsolfleet.so", &t, &err), SOL_ERR_UNSUPPORTED);
  sol_context_destroy(ctx);
}

CHECK_MAIN
