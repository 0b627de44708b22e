// Operations as separate kernels and beside their neighbours (src/roofline/op_unfused.c, fusions.c), and what
// must hold for any shape.
#include "check.h"
#include "cost_check.h"
#include "roofline/costs.h"

// Every operation that is several kernels without fusion, 8x6 in 16 bits: bytes, FLOPs and trips by hand.
TEST(unfused_by_hand) {
  static const struct {
    const char *op;
    SolOpArgs args;
    int count;
    double bytes, flops, trips;
    const char *first, *last;
  } rows[] = {
      {"bias_relu_scale", {.dim = {8, 6}}, 3, 6 * 96 + 12, 144, 6, "add bias", "scale"},
      {"bias_gelu", {.dim = {8, 6}}, 2, 4 * 96 + 12, 432, 4, "add bias", "gelu"},
      {"silu_mul", {.dim = {8, 6}}, 2, 5 * 96, 192, 5, "silu", "multiply"},
      {"gated_mul", {.dim = {8, 6}}, 2, 5 * 96, 432, 5, "gelu", "multiply"},
      {"rope", {.dim = {5, 3, 4}}, 4, 9 * 120 + 2 * 40, 180, 9, "rotate half", "add"},
      {"rmsnorm", {.dim = {8, 6}}, 5, 7 * 96 + 4 * 16 + 12, 192 + 16, 7, "square", "multiply by weight"},
      {"add_rmsnorm", {.dim = {8, 6}}, 2, 5 * 96 + 12, 240, 5, "add", "rmsnorm"},
      {"embed_rmsnorm", {.dim = {8, 6}}, 2, 32 + 4 * 96 + 12, 192, 4, "embedding", "rmsnorm"},
      {"layernorm", {.dim = {8, 6}}, 8, 12 * 96 + 6 * 16 + 24, 336 + 16, 12, "mean", "add bias"},
      {"softmax", {.dim = {8, 6}}, 5, 8 * 96 + 4 * 16, 240, 8, "max", "divide"},
      {"log_softmax", {.dim = {8, 6}}, 6, 8 * 96 + 6 * 16, 240 + 8, 8, "max", "subtract log"},
      {"cross_entropy",
       {.dim = {8, 6}},
       7,
       8 * 96 + 6 * 16 + 16 + 32 + 32,
       240 + 8,
       8,
       "max",
       "pick the target's"},
      // 24 query rows, 3 tokens: 72 scores, all of them computed; Q and O 384 bytes, K and V 192 each.
      {"attention",
       {.dim = {2, 4, 3, 8}, .kv_heads = 2},
       4,
       2 * 384 + 2 * 192 + 6 * 144,
       72 * (16 + 2 + 5 + 16),
       10,
       "Q * K'",
       "probabilities * V"},
  };
  size_t fusable = 0;
  for (int i = 0; i < sol_op_count(); i++) fusable += (size_t)sol_op_info(i)->fusable;
  CHECK_INT(fusable, sizeof rows / sizeof rows[0]);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    SolOpArgs args = rows[i].args;
    args.op = op(rows[i].op);
    SolPass p[SOL_MAX_PASSES];
    int count = 0;
    if (!CHECK_INT(sol_op_unfused(&args, p, &count, 0), SOL_OK)) continue;
    double bytes = 0, flops = 0, trips = 0;
    for (int k = 0; k < count; k++) {
      bytes += bytes_of(p[k].cost), flops += p[k].cost.flops, trips += p[k].cost.trips;
      CHECK(p[k].cost.launches == 1);
    }
    CHECK_MSG(count == rows[i].count && bytes == rows[i].bytes && flops == rows[i].flops &&
                  trips == rows[i].trips,
              "%s: %d kernels (%d), bytes %g (%g), flops %g (%g), trips %g (%g)", rows[i].op, count,
              rows[i].count, bytes, rows[i].bytes, flops, rows[i].flops, trips, rows[i].trips);
    CHECK_STR(p[0].name, rows[i].first);
    CHECK_STR(p[count - 1].name, rows[i].last);
  }
}

// Random arguments that the operation takes.
static uint64_t state = 0x9e3779b97f4a7c15u;
static int64_t random_below(int64_t n) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (int64_t)(state >> 11) % n;
}

static SolOpArgs random_args(int which) {
  static const SolDtype dtypes[] = {SOL_FP64, SOL_FP32, SOL_FP16, SOL_BF16, SOL_FP8, SOL_FP4};
  const SolOpInfo *info = sol_op_info(which);
  SolOpArgs args = {.op = which, .dtype = dtypes[random_below(6)]};
  int rank = info->rank_min + (int)random_below(info->rank_max - info->rank_min + 1);
  for (int i = 0; i < rank; i++) args.dim[i] = 1 + random_below(random_below(2) ? 9 : 5000);
  if (strcmp(info->name, "rope") == 0) args.dim[2] *= 2;
  if ((info->options & SOL_TAKES_OUT_DTYPE) && random_below(2)) args.out_dtype = dtypes[random_below(6)];
  if ((info->options & SOL_TAKES_WEIGHT_DTYPE) && random_below(2))
    args.weight_dtype = dtypes[random_below(6)];
  if ((info->options & SOL_TAKES_KV_DTYPE) && random_below(2)) args.kv_dtype = dtypes[random_below(6)];
  if ((info->options & SOL_TAKES_ID_DTYPE) && random_below(2)) args.id_dtype = SOL_INT64;
  if ((info->options & SOL_TAKES_VOCAB) && random_below(2)) args.vocab = 1 + random_below(5000);
  if ((info->options & SOL_TAKES_AXIS)) args.axis = (SolAxis)random_below(3);
  if (info->options & SOL_TAKES_KV_HEADS) {
    args.kv_heads = 1 + random_below(8);
    args.dim[1] = args.kv_heads * (1 + random_below(8));
    args.phase = (SolPhase)random_below(2);
    if (random_below(2)) args.window = 1 + random_below(6000);
    if (random_below(2)) args.v_dim = 1 + random_below(256);
    if (args.phase == SOL_PHASE_DECODE) args.queries = 1 + random_below(args.dim[2] > 0 ? args.dim[2] : 1);
  }
  return args;
}

TEST(fused_is_never_more) {
  for (int which = 0; which < sol_op_count(); which++) {
    const SolOpInfo *info = sol_op_info(which);
    for (int round = 0; round < 500 && info->fusable; round++) {
      SolOpArgs args = random_args(which);
      SolCost fused = cost_of(args);
      SolPass p[SOL_MAX_PASSES];
      int count = 0;
      SolError err;
      if (!CHECK_MSG(sol_op_unfused(&args, p, &count, &err) == SOL_OK, "%s: %s", info->name, err.message))
        return;
      double bytes = 0, flops = 0, trips = 0;
      for (int k = 0; k < count; k++)
        bytes += bytes_of(p[k].cost), flops += p[k].cost.flops, trips += p[k].cost.trips;
      CHECK_MSG(count > 1 && bytes_of(fused) <= bytes && fused.flops <= flops && fused.trips < trips,
                "%s %lldx%lldx%lldx%lld: %g bytes fused, %g not", info->name, (long long)args.dim[0],
                (long long)args.dim[1], (long long)args.dim[2], (long long)args.dim[3], bytes_of(fused),
                bytes);
    }
  }
}

// More rows or wider ones never cost less, and narrower types never more.
TEST(monotone) {
  for (int which = 0; which < sol_op_count(); which++)
    for (int round = 0; round < 200; round++) {
      SolOpArgs args = random_args(which);
      SolCost c = cost_of(args);
      CHECK(c.bytes_read == floor(c.bytes_read) && c.bytes_written == floor(c.bytes_written));
      CHECK(c.bytes_read > 0 && c.bytes_written > 0 && c.flops >= 0);
      for (int i = 0; i < SOL_MAX_DIMS && args.dim[i]; i++) {
        SolOpArgs more = args;
        more.dim[i] *= 2;
        SolCost m = cost_of(more);
        CHECK_MSG(m.bytes_read >= c.bytes_read && m.bytes_written >= c.bytes_written && m.flops >= c.flops,
                  "%s: dimension %d doubled costs less", sol_op_info(which)->name, i);
      }
      SolOpArgs narrow = args;
      narrow.dtype = SOL_FP4;
      CHECK(bytes_of(cost_of(narrow)) <= bytes_of(c));
    }
}

// Every row of costs.def's FUSION list, on random arguments: one kernel does the work of both with fewer
// bytes.
TEST(fusions_save_bytes) {
  static const struct {
    const char *op;
    SolCostHandler *neighbour, *fused;
  } fusions[] = {
#define FUSION(name, kind, neighbour, fused, what) {#name, neighbour, fused},
#include "roofline/costs.def"
  };
  for (size_t i = 0; i < sizeof fusions / sizeof fusions[0]; i++)
    for (int round = 0; round < 200; round++) {
      SolOpArgs args = random_args(op(fusions[i].op));
      args.out_dtype = 0; // a tensor between two kernels has one type
      SolPass neighbour[SOL_MAX_PASSES], fused[SOL_MAX_PASSES];
      int a = 0, b = 0;
      CHECK_INT(sol_op_run(&args, fusions[i].neighbour, neighbour, &a, 0), SOL_OK);
      CHECK_INT(sol_op_run(&args, fusions[i].fused, fused, &b, 0), SOL_OK);
      CHECK(a == 1 && b == 1);
      SolCost alone = cost_of(args);
      CHECK_MSG(bytes_of(fused[0].cost) < bytes_of(neighbour[0].cost) + bytes_of(alone), "%s, row %zu",
                fusions[i].op, i);
      CHECK(fused[0].cost.bytes_read >= 0 && fused[0].cost.bytes_written >= 0);
      CHECK(fused[0].cost.flops >= alone.flops &&
            fused[0].cost.flops <= neighbour[0].cost.flops + alone.flops);
    }
}

// What the generic fusions make must be what the library's fused operations cost.
TEST(fusions_agree_with_operations) {
  SolOpArgs args = {.op = op("gelu"), .dim = {8, 6}};
  SolPass pass[SOL_MAX_PASSES];
  int count;
  CHECK_INT(sol_op_run(&args, sol_with_bias, pass, &count, 0), SOL_OK);
  SolCost want = cost_of((SolOpArgs){.op = op("bias_gelu"), .dim = {8, 6}});
  CHECK(bytes_of(pass[0].cost) == bytes_of(want) && pass[0].cost.flops == want.flops);
  args.op = op("rmsnorm");
  CHECK_INT(sol_op_run(&args, sol_with_add, pass, &count, 0), SOL_OK);
  want = cost_of((SolOpArgs){.op = op("add_rmsnorm"), .dim = {8, 6}});
  CHECK(bytes_of(pass[0].cost) == bytes_of(want) && pass[0].cost.flops == want.flops);
  args = (SolOpArgs){.op = op("particles"), .dim = {10}, .dtype = SOL_FP32};
  CHECK_INT(sol_op_run(&args, sol_with_velocity, pass, &count, 0), SOL_OK);
  CHECK(pass[0].cost.bytes_read == 120 && pass[0].cost.bytes_written == 240);
}

CHECK_MAIN
