// What operations move and compute (src/roofline/costs.def, costs.c, op_costs.c).
// Whole tables of expected counts were worked out by hand; small shapes are also counted by loops.
#include "check.h"
#include "cost_check.h"

// Each operation by hand: shape 8x6 and its like, 16-bit types unless said otherwise.
static const struct Golden {
  const char *op;
  SolOpArgs args;
  double read, written, flops, trips;
} goldens[] = {
    {"copy", {.dim = {48}}, 96, 96, 0, 2},
    {"copy", {.dim = {2, 3, 4, 5}, .dtype = SOL_FP32}, 480, 480, 0, 2},
    {"copy", {.dim = {8, 6}, .dtype = SOL_FP64, .out_dtype = SOL_INT8}, 384, 48, 0, 2},
    {"scale", {.dim = {8, 6}}, 96, 96, 48, 2},
    {"scale", {.dim = {7}, .dtype = SOL_FP4}, 4, 4, 7, 2},
    {"add", {.dim = {8, 6}}, 192, 96, 48, 3},
    {"add", {.dim = {2, 3, 4, 5}, .dtype = SOL_FP32, .out_dtype = SOL_BF16}, 960, 240, 120, 3},
    {"relu", {.dim = {8, 6}}, 96, 96, 48, 2},
    {"relu", {.dim = {48}, .dtype = SOL_FP32}, 192, 192, 48, 2},
    {"scale_columns", {.dim = {8, 6}}, 96 + 12, 96, 48, 2},
    {"bias_relu_scale", {.dim = {8, 6}, .weight_dtype = SOL_FP32}, 96 + 24, 96, 144, 2},
    {"gelu", {.dim = {8, 6}}, 96, 96, 384, 2},
    {"bias_gelu", {.dim = {8, 6}}, 96 + 12, 96, 432, 2},
    {"silu_mul", {.dim = {8, 6}}, 192, 96, 192, 3},
    {"silu_mul", {.dim = {8, 6}, .out_dtype = SOL_FP8}, 192, 48, 192, 3},
    {"gated_mul", {.dim = {8, 6}}, 192, 96, 432, 3},
    {"cast", {.dim = {8, 6}, .out_dtype = SOL_FP8}, 96, 48, 48, 2},
    {"quantize", {.dim = {8, 6}, .out_dtype = SOL_INT8}, 96, 48, 144, 2},
    {"rope", {.dim = {5, 3, 4}}, 120 + 40, 120, 180, 2},
    {"rope", {.dim = {5, 3, 4}, .weight_dtype = SOL_FP32}, 120 + 80, 120, 180, 2},
    {"particles", {.dim = {10}, .dtype = SOL_FP32}, 240, 120, 60, 3},
    {"rmsnorm", {.dim = {8, 6}}, 96 + 12, 96, 192, 2},
    {"rmsnorm",
     {.dim = {8, 6}, .dtype = SOL_FP32, .out_dtype = SOL_FP8, .weight_dtype = SOL_BF16},
     192 + 12,
     48,
     192,
     2},
    {"add_rmsnorm", {.dim = {8, 6}}, 192 + 12, 192, 240, 4},
    {"add_rmsnorm", {.dim = {8, 6}, .out_dtype = SOL_FP8}, 192 + 12, 96 + 48, 240, 4},
    {"embed_rmsnorm", {.dim = {8, 6}}, 32 + 96 + 12, 96, 192, 2},
    {"embed_rmsnorm", {.dim = {8, 6}, .vocab = 3, .id_dtype = SOL_INT64}, 64 + 36 + 12, 96, 192, 2},
    {"layernorm", {.dim = {8, 6}}, 96 + 24, 96, 336, 2},
    {"group_norm", {.dim = {2, 4, 6}}, 96 + 16, 96, 336, 2},
    {"softmax", {.dim = {8, 6}}, 96, 96, 240, 2},
    {"log_softmax", {.dim = {8, 6}}, 96, 96, 240, 2},
    {"cross_entropy", {.dim = {8, 6}}, 96 + 32, 32, 192, 1},
    {"topk", {.dim = {8, 6, 2}}, 96, 32 + 64, 48, 1},
    {"sample", {.dim = {8, 6}, .id_dtype = SOL_INT64}, 96 + 64, 64, 240, 1},
    {"reduce", {.dim = {8, 6}}, 96, 16, 48, 1},
    {"reduce", {.dim = {8, 6}, .axis = SOL_AXIS_COLUMNS, .out_dtype = SOL_FP32}, 96, 24, 48, 1},
    {"reduce", {.dim = {8, 6}, .axis = SOL_AXIS_ALL}, 96, 2, 48, 1},
    {"reduce", {.dim = {48}}, 96, 2, 48, 1},
    {"argmax", {.dim = {8, 6}}, 96, 32, 48, 1},
    {"argmax", {.dim = {8, 6}, .axis = SOL_AXIS_COLUMNS, .id_dtype = SOL_INT64}, 96, 48, 48, 1},
    {"transpose", {.dim = {8, 6}}, 96, 96, 0, 2},
    {"transpose", {.dim = {3, 8, 6}, .dtype = SOL_INT8}, 144, 144, 0, 2},
    {"embedding", {.dim = {8, 6}}, 32 + 96, 96, 0, 2},
    {"embedding", {.dim = {8, 6}, .vocab = 5, .weight_dtype = SOL_FP8}, 32 + 30, 96, 0, 2},
    {"embedding", {.dim = {8, 6}, .vocab = 128256}, 32 + 96, 96, 0, 2},
    {"gather", {.dim = {8, 6}, .vocab = 2, .dtype = SOL_FP32}, 32 + 48, 192, 0, 2},
    {"kv_append", {.dim = {5, 3, 4}, .kv_dtype = SOL_FP8}, 240 + 20, 120, 0, 4},
    {"histogram", {.dim = {1000}, .dtype = SOL_INT8}, 1000, 1024, 1000, 1},
    {"histogram", {.dim = {1000}, .dtype = SOL_INT32, .bins = 10, .id_dtype = SOL_INT64}, 4000, 80, 1000, 1},
    {"stencil", {.dim = {100}, .dtype = SOL_FP32}, 400, 400, 500, 2},
    {"stencil", {.dim = {10, 10}, .dtype = SOL_FP32, .radius = 2}, 400, 400, 1700, 2},
    {"stencil", {.dim = {4, 5, 6}}, 240, 240, 1560, 2},
    {"gemm", {.dim = {2, 3, 4}}, 16 + 24, 12, 48, 2},
    {"gemm", {.dim = {2, 3, 5}, .weight_dtype = SOL_FP4, .out_dtype = SOL_FP32}, 20 + 8, 24, 60, 2},
    {"gemm", {.dim = {2, 3, 4}, .dtype = SOL_INT8, .out_dtype = SOL_INT32}, 8 + 12, 24, 48, 2},
    // 2 sequences, 4 heads, 2 of K and V, 3 tokens, width 8: 2*4*6 pairs of 32 FLOPs.
    {"attention", {.dim = {2, 4, 3, 8}, .kv_heads = 2}, 384 + 2 * 192, 384, 1536, 4},
    {"attention", {.dim = {2, 4, 3, 8}, .phase = SOL_PHASE_DECODE}, 128 + 2 * 384, 128, 768, 4},
    {"attention",
     {.dim = {1, 2, 10, 8}, .kv_heads = 1, .kv_dtype = SOL_FP8, .v_dim = 4, .phase = SOL_PHASE_DECODE},
     32 + 80 + 40,
     16,
     480,
     4},
};

TEST(every_operation_by_hand) {
  bool seen[64] = {false};
  for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
    const struct Golden *g = &goldens[i];
    SolOpArgs args = g->args;
    args.op = op(g->op);
    seen[args.op] = true;
    SolCost c = cost_of(args);
    CHECK_MSG(c.bytes_read == g->read && c.bytes_written == g->written && c.flops == g->flops &&
                  c.trips == g->trips,
              "row %zu, %s: read %g (%g), written %g (%g), flops %g (%g), trips %g (%g)", i, g->op,
              c.bytes_read, g->read, c.bytes_written, g->written, c.flops, g->flops, c.trips, g->trips);
    CHECK(c.launches == 1);
    CHECK_INT(c.unit, sol_op_info(args.op)->unit);
  }
  for (int i = 0; i < sol_op_count(); i++) CHECK_MSG(seen[i], "no row for %s", sol_op_info(i)->name);
}

// The figures that articles on the subject quote.
TEST(quoted_figures) {
  SolCost c = cost_of((SolOpArgs){.op = op("rmsnorm"), .dim = {1, 4096}, .dtype = SOL_FP16});
  CHECK(c.flops / bytes_of(c) == 2.0 / 3);
  c = cost_of((SolOpArgs){.op = op("rmsnorm"), .dim = {8192, 4096}}); // the weight is read once for all rows
  CHECK_NEAR(c.flops / bytes_of(c), 1.0, 1e-4);
  c = cost_of((SolOpArgs){.op = op("gemm"), .dim = {4096, 4096, 4096}, .dtype = SOL_FP16});
  CHECK(c.flops / bytes_of(c) == 4096.0 / 3);
  c = cost_of((SolOpArgs){.op = op("gemm"), .dim = {128, 4096, 4096}});
  CHECK(c.flops == 4294967296.0);
  CHECK(bytes_of(c) == 33554432 + 2 * 1048576);
  CHECK_NEAR(c.flops / bytes_of(c), 120.47, 1e-4);
  c = cost_of((SolOpArgs){.op = op("gemm"), .dim = {32, 4096, 4096}, .dtype = SOL_FP16});
  CHECK_NEAR(c.flops / bytes_of(c), 31.5, 1e-3);
  c = cost_of((SolOpArgs){.op = op("embedding"), .dim = {8192, 4096}, .vocab = 128256});
  CHECK(bytes_of(c) == 8192 * (2 * 4096 * 2.0 + 4));
  c = cost_of((SolOpArgs){
      .op = op("attention"), .dim = {1, 32, 4096, 128}, .kv_heads = 8, .phase = SOL_PHASE_DECODE});
  CHECK_NEAR(c.flops / bytes_of(c), 4.0, 2e-3);
  c = cost_of((SolOpArgs){.op = op("attention"), .dim = {1, 32, 4096, 128}, .phase = SOL_PHASE_DECODE});
  CHECK_NEAR(c.flops / bytes_of(c), 1.0, 1e-3);
  SolOpArgs relu = {.op = op("bias_relu_scale"), .dim = {1000, 4000}};
  c = cost_of(relu);
  CHECK(bytes_of(c) == 16e6 + 8000);
  CHECK(c.trips == 2);
  SolPass passes[SOL_MAX_PASSES];
  int count = 0;
  CHECK_INT(sol_op_unfused(&relu, passes, &count, 0), SOL_OK);
  double bytes = 0, trips = 0;
  for (int i = 0; i < count; i++) bytes += bytes_of(passes[i].cost), trips += passes[i].cost.trips;
  CHECK_INT(count, 3);
  CHECK(bytes == 48e6 + 8000);
  CHECK(trips == 6);
}

// Causal attention counted query by query and token by token.
TEST(attention_by_loops) {
  for (int s = 1; s <= 9; s++)
    for (int queries = 1; queries <= s; queries++)
      for (int window = 0; window <= s + 1; window++) {
        int pairs = 0, touched = 0;
        for (int token = 1; token <= s; token++) {
          bool read = false;
          for (int query = s - queries + 1; query <= s; query++)
            if (token <= query && (window == 0 || token > query - window)) pairs++, read = true;
          touched += read;
        }
        SolOpArgs args = {.op = op("attention"),
                          .dim = {1, 1, s, 2},
                          .window = window,
                          .queries = queries,
                          .phase = SOL_PHASE_DECODE};
        SolCost c = cost_of(args);
        CHECK_MSG(c.flops == 8 * pairs && c.bytes_read == 4 * queries + 8 * touched &&
                      c.bytes_written == 4 * queries,
                  "s %d, queries %d, window %d: %g FLOPs for %d pairs, %g bytes read for %d tokens", s,
                  queries, window, c.flops, pairs, c.bytes_read, touched);
        if (queries < s) continue;
        args.phase = SOL_PHASE_PREFILL; // with or without saying how many
        CHECK(cost_of(args).flops == c.flops);
        args.queries = 0;
        SolCost all = cost_of(args);
        CHECK(all.flops == c.flops && all.bytes_read == c.bytes_read && all.bytes_written == c.bytes_written);
      }
}

TEST(small_shapes_by_loops) {
  for (int m = 1; m <= 4; m++)
    for (int n = 1; n <= 4; n++)
      for (int r = 1; r <= 3; r++) {
        if (r <= m && r <= n) {
          int per_point = 0;
          for (int dy = -r; dy <= r; dy++)
            for (int dx = -r; dx <= r; dx++)
              if (dx == 0 || dy == 0) per_point += 2; // a multiply and an add ...
          per_point -= 1;                             // ... but for the first
          SolCost c = cost_of((SolOpArgs){.op = op("stencil"), .dim = {m, n}, .radius = r});
          CHECK(c.flops == m * n * per_point);
        }
        int multiply_adds = 0;
        for (int i = 0; i < m; i++)
          for (int j = 0; j < n; j++)
            for (int k = 0; k < r; k++) multiply_adds++;
        SolCost c = cost_of((SolOpArgs){.op = op("gemm"), .dim = {m, n, r}});
        CHECK(c.flops == 2 * multiply_adds);
        CHECK(bytes_of(c) == 2 * (m * r + r * n + m * n));
      }
}

TEST(fp4_rounds_up_per_tensor) {
  SolOpArgs args = {.op = op("add_rmsnorm"), .dim = {1, 5}, .dtype = SOL_FP4};
  SolCost c = cost_of(args);
  CHECK(c.bytes_read == 9); // three tensors of 2.5 bytes
  CHECK(c.bytes_written == 6);
}

TEST(arithmetic_types) {
  static const struct {
    SolDtype dtype, weight, math;
  } rows[] = {
      {SOL_BF16, 0, SOL_BF16},        {SOL_BF16, SOL_FP8, SOL_BF16}, {SOL_BF16, SOL_FP4, SOL_BF16},
      {SOL_BF16, SOL_INT8, SOL_BF16}, {SOL_FP8, SOL_BF16, SOL_BF16}, {SOL_FP8, 0, SOL_FP8},
      {SOL_FP8, SOL_FP4, SOL_FP8},    {SOL_INT8, 0, SOL_INT8},       {SOL_INT8, SOL_FP16, SOL_FP16},
      {SOL_TF32, 0, SOL_TF32},        {SOL_FP64, 0, SOL_FP64},       {SOL_FP16, SOL_BF16, SOL_FP16},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    SolCost c = cost_of((SolOpArgs){
        .op = op("gemm"), .dim = {8, 8, 8}, .dtype = rows[i].dtype, .weight_dtype = rows[i].weight});
    CHECK_MSG(c.math == rows[i].math && c.unit == SOL_UNIT_DEFAULT, "row %zu: %s", i, sol_dtype_name(c.math));
  }
  SolCost c = cost_of((SolOpArgs){.op = op("rmsnorm"), .dim = {8, 8}, .dtype = SOL_FP8});
  CHECK(c.math == SOL_FP32 && c.unit == SOL_UNIT_VECTOR);
  c = cost_of((SolOpArgs){.op = op("rmsnorm"), .dim = {8, 8}, .dtype = SOL_FP64});
  CHECK(c.math == SOL_FP64 && c.unit == SOL_UNIT_VECTOR);
}

TEST(refused) {
  const int64_t big = INT64_C(1) << 53;
  static const SolDtype bad = (SolDtype)99;
  const struct {
    const char *op;
    SolOpArgs args;
    SolStatus status;
    const char *message;
  } rows[] = {
      {"rmsnorm", {.dim = {0}}, SOL_ERR_ARGUMENT, "takes MxN, not 0 dimensions"},
      {"rmsnorm", {.dim = {8}}, SOL_ERR_ARGUMENT, "not 1 dimension"},
      {"rmsnorm", {.dim = {8, 6, 4}}, SOL_ERR_ARGUMENT, "not 3 dimensions"},
      {"rmsnorm", {.dim = {0, 6}}, SOL_ERR_ARGUMENT, "dimension 1 is 0"},
      {"rmsnorm", {.dim = {8, -6}}, SOL_ERR_ARGUMENT, "dimension 2 is -6"},
      {"rmsnorm", {.dim = {INT64_MIN, 1}}, SOL_ERR_ARGUMENT, "dimension 1"},
      {"rmsnorm", {.dim = {big + 1, 1}}, SOL_ERR_RANGE, "dimension 1"},
      {"rmsnorm", {.dim = {INT64_MAX, INT64_MAX}}, SOL_ERR_RANGE, "dimension 1"},
      {"rmsnorm", {.dim = {big, big}}, SOL_ERR_RANGE, "with x the bytes pass 2^53"},
      {"rmsnorm", {.dim = {big / 4, 1}, .dtype = SOL_BF16}, SOL_ERR_RANGE, "with weight"},
      {"rmsnorm", {.dim = {8, 6}, .dtype = SOL_INT8}, SOL_ERR_ARGUMENT, "dtype int8"},
      {"rmsnorm", {.dim = {8, 6}, .dtype = SOL_TF32}, SOL_ERR_ARGUMENT, "dtype tf32"},
      {"rmsnorm", {.dim = {8, 6}, .dtype = bad}, SOL_ERR_ARGUMENT, "dtype"},
      {"rmsnorm", {.dim = {8, 6}, .out_dtype = bad}, SOL_ERR_ARGUMENT, "out_dtype"},
      {"rmsnorm", {.dim = {8, 6}, .weight_dtype = SOL_INT64}, SOL_ERR_ARGUMENT, "weight_dtype int64"},
      {"rmsnorm", {.dim = {8, 6}, .vocab = 1}, SOL_ERR_ARGUMENT, "rmsnorm takes no vocab"},
      {"rmsnorm", {.dim = {8, 6}, .phase = SOL_PHASE_DECODE}, SOL_ERR_ARGUMENT, "takes no phase"},
      {"copy", {.dim = {8}, .weight_dtype = SOL_BF16}, SOL_ERR_ARGUMENT, "takes no weight_dtype"},
      {"copy", {.dim = {8}, .id_dtype = SOL_INT32}, SOL_ERR_ARGUMENT, "takes no id_dtype"},
      {"copy", {.dim = {8}, .kv_dtype = SOL_INT8}, SOL_ERR_ARGUMENT, "takes no kv_dtype"},
      {"copy", {.dim = {8}, .kv_heads = 1}, SOL_ERR_ARGUMENT, "takes no kv_heads"},
      {"copy", {.dim = {8}, .v_dim = 1}, SOL_ERR_ARGUMENT, "takes no v_dim"},
      {"copy", {.dim = {8}, .queries = 1}, SOL_ERR_ARGUMENT, "takes no queries"},
      {"copy", {.dim = {8}, .window = 1}, SOL_ERR_ARGUMENT, "takes no window"},
      {"copy", {.dim = {8}, .bins = 1}, SOL_ERR_ARGUMENT, "takes no bins"},
      {"copy", {.dim = {8}, .radius = 1}, SOL_ERR_ARGUMENT, "takes no radius"},
      {"copy", {.dim = {8}, .axis = SOL_AXIS_ALL}, SOL_ERR_ARGUMENT, "takes no axis"},
      {"argmax", {.dim = {8, 6}, .out_dtype = SOL_FP32}, SOL_ERR_ARGUMENT, "takes no out_dtype"},
      {"argmax", {.dim = {8, 6}, .axis = (SolAxis)3}, SOL_ERR_ARGUMENT, "no such axis: 3"},
      {"embedding", {.dim = {8, 6}, .vocab = -1}, SOL_ERR_ARGUMENT, "vocab must not be negative"},
      {"embedding", {.dim = {8, 6}, .vocab = INT64_MAX}, SOL_ERR_RANGE, "vocab is beyond 2^53"},
      {"embedding", {.dim = {8, 6}, .id_dtype = SOL_FP32}, SOL_ERR_ARGUMENT, "id_dtype fp32"},
      {"embedding", {.dim = {big / 8, 100}}, SOL_ERR_RANGE, "with table"},
      {"histogram", {.dim = {8}, .bins = big}, SOL_ERR_RANGE, "with counters"},
      {"rope", {.dim = {8, 6, 5}}, SOL_ERR_ARGUMENT, "width of 5 is odd"},
      {"stencil", {.dim = {8, 6}, .radius = 7}, SOL_ERR_ARGUMENT, "radius 7 is wider"},
      {"gemm", {.dim = {8, 6, 4}, .dtype = SOL_INT32}, SOL_ERR_ARGUMENT, "dtype int32"},
      {"gemm", {.dim = {big, big, big}}, SOL_ERR_RANGE, "with A"},
      {"gemm", {.dim = {1, big / 2, 1}}, SOL_ERR_RANGE, "with B"},
      {"attention",
       {.dim = {1, 8, 6, 4}, .kv_heads = 3},
       SOL_ERR_ARGUMENT,
       "kv_heads 3 does not divide the 8"},
      {"attention",
       {.dim = {1, 8, 6, 4}, .kv_heads = 16},
       SOL_ERR_ARGUMENT,
       "kv_heads 16 does not divide the 8"},
      {"attention",
       {.dim = {1, 8, 6, 4}, .queries = 7, .phase = SOL_PHASE_DECODE},
       SOL_ERR_ARGUMENT,
       "queries 7"},
      {"attention", {.dim = {1, 8, 6, 4}, .queries = 2}, SOL_ERR_ARGUMENT, "queries are for decode"},
      {"attention", {.dim = {1, 8, 6, 4}, .phase = (SolPhase)2}, SOL_ERR_ARGUMENT, "no such phase: 2"},
      {"attention", {.dim = {big, big, big, big}, .v_dim = big}, SOL_ERR_RANGE, "with Q"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    SolOpArgs args = rows[i].args;
    args.op = op(rows[i].op);
    SolCost out = {.launches = 77};
    SolError err = {0};
    SolStatus status = sol_op_cost(&args, &out, &err);
    CHECK_MSG(status == rows[i].status && err.status == status && strstr(err.message, rows[i].message),
              "row %zu: %s: '%s', expected '%s'", i, sol_status_name(status), err.message, rows[i].message);
    CHECK(out.launches == 77);
    CHECK_INT(sol_op_cost(&args, &out, 0), rows[i].status);
    SolPass passes[SOL_MAX_PASSES];
    int count;
    if (sol_op_info(args.op)->fusable) CHECK_INT(sol_op_unfused(&args, passes, &count, &err), rows[i].status);
  }
}

// One byte under the limit counts, and exactly.
TEST(limit_is_2_53) {
  const int64_t half = INT64_C(1) << 52;
  SolCost c = cost_of((SolOpArgs){.op = op("copy"), .dim = {half}, .dtype = SOL_INT8});
  CHECK(bytes_of(c) == 9007199254740992.0);
  SolOpArgs more = {.op = op("copy"), .dim = {half + 1}, .dtype = SOL_INT8};
  CHECK_INT(sol_op_cost(&more, &c, 0), SOL_ERR_RANGE);
  // Unfused, an intermediate can be too large where the operation itself is not.
  SolOpArgs args = {.op = op("attention"), .dim = {1, 1, INT64_C(1) << 27, 2}};
  cost_of(args);
  SolPass passes[SOL_MAX_PASSES];
  int count;
  SolError err;
  CHECK_INT(sol_op_unfused(&args, passes, &count, &err), SOL_ERR_RANGE);
  CHECK_HAS(err.message, "with scores");
}

TEST(null_and_unknown) {
  SolCost c;
  SolError err;
  SolOpArgs args = {.op = op("copy"), .dim = {8}};
  SolPass passes[SOL_MAX_PASSES];
  int i;
  CHECK_INT(sol_op_cost(0, &c, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_op_cost(&args, 0, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_op_unfused(&args, 0, &i, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_op_unfused(&args, passes, 0, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_op_unfused(0, passes, &i, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_op_unfused(&args, passes, &i, &err), SOL_ERR_UNSUPPORTED);
  CHECK_HAS(err.message, "copy is a single kernel");
  args.op = -1;
  CHECK_INT(sol_op_cost(&args, &c, &err), SOL_ERR_ARGUMENT);
  args.op = sol_op_count();
  CHECK_INT(sol_op_cost(&args, &c, &err), SOL_ERR_ARGUMENT);
  CHECK(sol_op_info(-1) == 0 && sol_op_info(sol_op_count()) == 0);
  CHECK_INT(sol_op_find("rmsnrom", &i, &err), SOL_ERR_NOT_FOUND);
  CHECK_HAS(err.hint, "rmsnorm");
  CHECK_INT(sol_op_find("RMSNorm", &i, &err), SOL_OK);
  CHECK_STR(sol_op_info(i)->name, "rmsnorm");
  CHECK_INT(sol_op_find(0, &i, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_op_find("copy", 0, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_op_find("", &i, &err), SOL_ERR_NOT_FOUND);
}

TEST(table_is_whole) {
  for (int i = 0; i < sol_op_count(); i++) {
    const SolOpInfo *info = sol_op_info(i);
    CHECK(info->summary[0] && info->counts[0]);
    CHECK(info->rank_min >= 1 && info->rank_min <= info->rank_max && info->rank_max <= SOL_MAX_DIMS);
    CHECK_INT(op(info->name), i);
    int letters = 0, optional = 0;
    for (const char *s = info->shape; *s; s++) letters += *s >= 'A' && *s <= 'Z', optional += *s == '[';
    if (!strstr(info->shape, "...")) CHECK_INT(letters, info->rank_max);
    if (!strstr(info->shape, "...")) CHECK_INT(info->rank_max - info->rank_min, optional);
  }
}

// docs/roofline.md holds the table of operations; a row that differs from costs.def is a stale promise.
TEST(docs_agree) {
  FILE *f = fopen("docs/roofline.md", "r");
  if (!CHECK_MSG(f != 0, "run from the repository's root: docs/roofline.md cannot be read")) return;
  static char text[1 << 17];
  size_t length = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[length] = 0;
  for (int i = 0; i < sol_op_count(); i++) {
    const SolOpInfo *info = sol_op_info(i);
    char row[1024];
    snprintf(row, sizeof row, "| `%s` | `%s` | %s | %s |\n", info->name, info->shape, info->summary,
             info->counts);
    CHECK_MSG(strstr(text, row), "docs/roofline.md lacks this row:\n%s", row);
    if (!info->fusable) continue;
    SolOpArgs args = {.op = i};
    for (int k = 0; k < info->rank_max; k++) args.dim[k] = 2;
    SolPass p[SOL_MAX_PASSES];
    int count = 0;
    CHECK_INT(sol_op_unfused(&args, p, &count, 0), SOL_OK);
    double trips = 0;
    int used = snprintf(row, sizeof row, "| `%s` |", info->name);
    for (int k = 0; k < count; k++) {
      used += snprintf(row + used, sizeof row - (size_t)used, "%s %s", k ? "," : "", p[k].name);
      trips += p[k].cost.trips;
    }
    snprintf(row + used, sizeof row - (size_t)used, " | %.0f | %.0f |\n", trips, cost_of(args).trips);
    CHECK_MSG(strstr(text, row), "docs/roofline.md lacks this row:\n%s", row);
  }
}

TEST(other_names_of_an_operation_are_known) {
  static const char *const known[][2] = {
      {"matmul", "gemm"}, {"mm", "gemm"},         {"linear", "gemm"},      {"layer_norm", "layernorm"},
      {"sum", "reduce"},  {"swiglu", "silu_mul"}, {"RMS-Norm", "rmsnorm"}, {"sdpa", "attention"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    int op = -1;
    SolError err = {0};
    char hint[64];
    snprintf(hint, sizeof hint, "here it is called %s", known[i][1]);
    CHECK_INT(sol_op_find(known[i][0], &op, &err), SOL_ERR_NOT_FOUND);
    CHECK_STR(err.hint, hint);
    CHECK_INT(sol_op_find(known[i][1], &op, &err), SOL_OK); // what it names is there
  }
}

CHECK_MAIN
