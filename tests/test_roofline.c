// The roofline equation and its advice (src/roofline/roofline.c, advice.c).
#include "check.h"
#include "sol/roofline.h"

// A device with round figures: 1 TB/s, 100 TFLOP/s in bf16, so a ridge of 100; 10 in fp32.
static const SolDevice round_device = {.id = "round",
                                       .cc_major = 9,
                                       .sms = {100, "test"},
                                       .boost_clock = {1e9, "test"},
                                       .smem_bytes_per_clock = {128, "test"},
                                       .l2_bandwidth = {4e12, "test"},
                                       .mem_bandwidth = {1e12, "test"},
                                       .peak_fp32 = {1e13, "test"},
                                       .peak_bf16 = {1e14, "test"},
                                       .peak_fp8 = {2e14, "test"},
                                       .launch_us = {5, "test"},
                                       .graph_launch_us = {1, "test"}};

static int op(const char *name) {
  int i = -1;
  CHECK_INT(sol_op_find(name, &i, 0), SOL_OK);
  return i;
}

static SolRoofline roofline(const SolDevice *device, SolWork work, SolRooflineOptions options) {
  SolRoofline r = {0};
  SolError err = {0};
  CHECK_MSG(sol_roofline(device, &work, &options, &r, &err) == SOL_OK, "%s", err.message);
  return r;
}

static const SolDevice *device(const char *name) {
  const SolDevice *d = 0;
  CHECK_MSG(sol_device_find(name, &d, 0) == SOL_OK, "no device %s", name);
  return d;
}

TEST(terms) {
  SolRoofline r =
      roofline(&round_device, (SolWork){.bytes = 40e6, .flops = 5e9, .launches = 3}, (SolRooflineOptions){0});
  CHECK_NEAR(r.memory_us, 40, 1e-12);
  CHECK_NEAR(r.compute_us, 50, 1e-12);
  CHECK_NEAR(r.launch_us, 15, 1e-12);
  CHECK_NEAR(r.time_us, 65, 1e-12);
  CHECK_NEAR(r.intensity, 125, 1e-12);
  CHECK_NEAR(r.ridge, 100, 1e-12);
  CHECK_NEAR(r.attainable_flops, 1e14, 1e-12);
  CHECK_NEAR(r.attainable_bytes, 8e11, 1e-12);
  CHECK_INT(r.bound, SOL_BOUND_COMPUTE);
  CHECK_INT(r.unit, SOL_UNIT_TENSOR);
  CHECK_INT(r.dtype, SOL_BF16);
  r = roofline(&round_device, (SolWork){.bytes = 40e6, .flops = 2e9}, (SolRooflineOptions){0});
  CHECK_INT(r.bound, SOL_BOUND_MEMORY);
  CHECK_NEAR(r.attainable_flops, 5e13, 1e-12);
  CHECK_NEAR(r.attainable_bytes, 1e12, 1e-12);
  CHECK(r.launch_us == 0 && r.launches == 0);
  r = roofline(&round_device, (SolWork){.bytes = 4e6, .flops = 1, .launches = 1}, (SolRooflineOptions){0});
  CHECK_INT(r.bound, SOL_BOUND_LAUNCH);
  r = roofline(&round_device, (SolWork){.bytes = 4e6, .flops = 1, .launches = 1},
               (SolRooflineOptions){.graph = 1});
  CHECK_INT(r.bound, SOL_BOUND_MEMORY);
  CHECK_NEAR(r.time_us, 5, 1e-12);
  r = roofline(&round_device, (SolWork){.bytes = 4e6, .flops = 1, .launches = 1},
               (SolRooflineOptions){.no_launch = 1});
  CHECK_NEAR(r.time_us, 4, 1e-12);
  CHECK(r.launches == 0);
  // At the ridge both roofs bind; it counts as compute.
  r = roofline(&round_device, (SolWork){.bytes = 1e6, .flops = 1e8}, (SolRooflineOptions){0});
  CHECK_INT(r.bound, SOL_BOUND_COMPUTE);
  SolWork work = {.bytes = 1e6, .flops = 1e8};
  CHECK_INT(sol_roofline(&round_device, &work, 0, &r, 0), SOL_OK);
}

static double gemm_bytes(SolLevel level, SolTile tile) {
  SolOpArgs args = {.dim = {200, 300, 100}, .dtype = SOL_BF16, .out_dtype = SOL_FP32};
  double bytes = 0;
  CHECK(!sol_op_find("gemm", &args.op, NULL));
  CHECK(!sol_gemm_bytes(&args, &tile, level, &bytes, NULL));
  return bytes;
}

// 200 x 300 in tiles of 128 x 256: two rows and two columns of them; k of 100 in two steps of 64.
TEST(levels_of_a_tiled_gemm) {
  const SolTile tile = {128, 256, 64}, standard = {0};
  CHECK_NEAR(gemm_bytes(SOL_LEVEL_HBM, tile), 200 * 100 * 2 + 300 * 100 * 2 + 200 * 300 * 4, 0);
  CHECK_NEAR(gemm_bytes(SOL_LEVEL_L2, tile), 2 * 200 * 100 * 2 + 2 * 300 * 100 * 2 + 200 * 300 * 4, 0);
  // Of each tile: A written and read, B written and read by two warpgroups, C written and read.
  double each = 2 * 128 * 128 * 2 + 3 * 256 * 128 * 2 + 2 * 128 * 256 * 4;
  CHECK_NEAR(gemm_bytes(SOL_LEVEL_SMEM, tile), 4 * each, 0);
  CHECK_NEAR(gemm_bytes(SOL_LEVEL_SMEM, standard), 4 * each, 0);
  SolOpArgs other = {.dim = {8, 8}};
  double bytes;
  SolError err;
  CHECK(!sol_op_find("rmsnorm", &other.op, NULL));
  CHECK_INT(sol_gemm_bytes(&other, &tile, SOL_LEVEL_L2, &bytes, &err), SOL_ERR_UNSUPPORTED);
}

TEST(levels) {
  SolWork work = {.bytes = 1e6, .flops = 1e6};
  CHECK_NEAR(roofline(&round_device, work, (SolRooflineOptions){.level = SOL_LEVEL_L2}).bandwidth, 4e12,
             1e-12);
  CHECK_NEAR(roofline(&round_device, work, (SolRooflineOptions){.level = SOL_LEVEL_SMEM}).bandwidth, 1.28e13,
             1e-12);
  CHECK_NEAR(roofline(&round_device, work, (SolRooflineOptions){.level = SOL_LEVEL_SMEM}).ridge, 7.8125,
             1e-12);
}

// Seeds and data sheets: H100 SXM 989 TFLOP/s over 3.35 TB/s, B200 between 2 and 2.25 PFLOP/s over 8 TB/s.
TEST(published_ridges) {
  SolWork work = {.bytes = 1, .flops = 1};
  CHECK_NEAR(roofline(device("h100"), work, (SolRooflineOptions){0}).ridge, 295, 0.005);
  double b200 = roofline(device("b200"), work, (SolRooflineOptions){0}).ridge;
  CHECK_MSG(b200 >= 250 && b200 <= 282, "B200's ridge is %g", b200);
  double smem = roofline(device("h100"), work, (SolRooflineOptions){.level = SOL_LEVEL_SMEM}).bandwidth;
  CHECK_NEAR(smem, 33.4e12, 0.01); // all SMs together
}

TEST(large_gemm_is_compute_bound_and_rmsnorm_memory_bound) {
  SolOpArgs args = {.op = op("gemm"), .dim = {4096, 4096, 4096}, .dtype = SOL_FP16};
  SolCost cost;
  CHECK_INT(sol_op_cost(&args, &cost, 0), SOL_OK);
  SolRoofline r = roofline(device("h100"), sol_work_of_cost(&cost), (SolRooflineOptions){.no_launch = 1});
  CHECK(r.intensity == 4096.0 / 3);
  CHECK_INT(r.bound, SOL_BOUND_COMPUTE);
  CHECK_NEAR(r.time_us, 2 * 4096.0 * 4096 * 4096 / 989e12 * 1e6, 0.005);
  args = (SolOpArgs){.op = op("rmsnorm"), .dim = {8192, 4096}};
  CHECK_INT(sol_op_cost(&args, &cost, 0), SOL_OK);
  r = roofline(device("h100"), sol_work_of_cost(&cost), (SolRooflineOptions){.no_launch = 1});
  CHECK_INT(r.bound, SOL_BOUND_MEMORY);
  CHECK_INT(r.unit, SOL_UNIT_VECTOR);
  CHECK_INT(r.dtype, SOL_FP32);
  CHECK_NEAR(r.time_us, (4 * 8192.0 * 4096 + 2 * 4096) / 3.35e12 * 1e6, 0.005);
}

TEST(figures_not_needed_may_be_unknown) {
  SolDevice bare = {.id = "bare", .mem_bandwidth = {1e12, "test"}};
  SolRoofline r = roofline(&bare, (SolWork){.bytes = 1e6}, (SolRooflineOptions){0});
  CHECK(r.peak == 0 && r.ridge == 0 && r.intensity == 0 && r.attainable_flops == 0);
  CHECK_NEAR(r.attainable_bytes, 1e12, 1e-12);
  CHECK_INT(r.bound, SOL_BOUND_MEMORY);
  bare = (SolDevice){.id = "bare", .cc_major = 9, .peak_bf16 = {1e14, "test"}};
  r = roofline(&bare, (SolWork){.flops = 1e8}, (SolRooflineOptions){0});
  CHECK(isinf(r.intensity) && r.bandwidth == 0 && r.ridge == 0 && r.attainable_bytes == 0);
  CHECK_NEAR(r.time_us, 1, 1e-12);
  CHECK_NEAR(r.attainable_flops, 1e14, 1e-12);
  CHECK_INT(r.bound, SOL_BOUND_COMPUTE);
  // A copy has no FLOPs: it runs where its type has no arithmetic.
  SolOpArgs copy = {.op = op("copy"), .dim = {1000}, .dtype = SOL_FP8};
  SolCost cost;
  CHECK_INT(sol_op_cost(&copy, &cost, 0), SOL_OK);
  roofline(device("v100"), sol_work_of_cost(&cost), (SolRooflineOptions){.no_launch = 1});
}

TEST(unknown_figures_are_named) {
  SolDevice d = round_device;
  SolWork work = {.bytes = 1, .flops = 1, .launches = 1};
  SolRoofline r;
  SolError err;
  SolRooflineOptions o = {0};
  d.launch_us.source = 0;
  CHECK_INT(sol_roofline(&d, &work, &o, &r, &err), SOL_ERR_UNKNOWN);
  CHECK_HAS(err.message, "launch cost of round");
  o.graph = 1;
  CHECK_INT(sol_roofline(&d, &work, &o, &r, &err), SOL_OK);
  d.graph_launch_us.source = 0;
  CHECK_INT(sol_roofline(&d, &work, &o, &r, &err), SOL_ERR_UNKNOWN);
  CHECK_HAS(err.message, "launch cost in a CUDA graph of round");
  o.no_launch = 1;
  CHECK_INT(sol_roofline(&d, &work, &o, &r, &err), SOL_OK);
  d.mem_bandwidth.source = d.l2_bandwidth.source = d.boost_clock.source = 0;
  CHECK_INT(sol_roofline(&d, &work, &o, &r, &err), SOL_ERR_UNKNOWN);
  CHECK_HAS(err.message, "memory bandwidth");
  o.level = SOL_LEVEL_L2;
  CHECK_INT(sol_roofline(&d, &work, &o, &r, &err), SOL_ERR_UNKNOWN);
  CHECK_HAS(err.message, "L2 bandwidth");
  o.level = SOL_LEVEL_SMEM;
  CHECK_INT(sol_roofline(&d, &work, &o, &r, &err), SOL_ERR_UNKNOWN);
  CHECK_HAS(err.message, "boost clock");
  d = round_device, o = (SolRooflineOptions){0};
  work.dtype = SOL_FP4;
  CHECK_INT(sol_roofline(&d, &work, &o, &r, &err), SOL_ERR_UNSUPPORTED);
}

TEST(refused) {
  const double inf = INFINITY, nan = NAN;
  const struct {
    SolWork work;
    SolStatus status;
    const char *message;
  } rows[] = {
      {{.bytes = -1, .flops = 1}, SOL_ERR_ARGUMENT, "bytes must be"},
      {{.bytes = nan, .flops = 1}, SOL_ERR_ARGUMENT, "bytes must be"},
      {{.bytes = 1, .flops = inf}, SOL_ERR_ARGUMENT, "flops must be"},
      {{.bytes = 1, .flops = -inf}, SOL_ERR_ARGUMENT, "flops must be"},
      {{.bytes = 1, .launches = nan}, SOL_ERR_ARGUMENT, "launches must be"},
      {{.launches = 1}, SOL_ERR_ARGUMENT, "both zero"},
      {{.bytes = 1, .dtype = (SolDtype)77}, SOL_ERR_ARGUMENT, "no such dtype: 77"},
      {{.bytes = 1, .unit = (SolUnit)9}, SOL_ERR_ARGUMENT, "no such unit: 9"},
      {{.bytes = 1, .launches = 1e308}, SOL_ERR_RANGE, "too large"},
      {{.bytes = 1e-300, .flops = 1e300}, SOL_ERR_RANGE, "too far apart"},
  };
  SolRoofline r = {.bytes = 77};
  SolAdvice a = {.count = 77};
  SolError err;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    SolStatus status = sol_roofline(&round_device, &rows[i].work, 0, &r, &err);
    CHECK_MSG(status == rows[i].status && strstr(err.message, rows[i].message), "row %zu: %s", i,
              err.message);
    CHECK_INT(sol_advise_work(&round_device, &rows[i].work, 0, &a, &err), rows[i].status);
  }
  CHECK(r.bytes == 77 && a.count == 77);
  SolWork work = {.bytes = 1, .flops = 1};
  SolOpArgs args = {.op = op("copy"), .dim = {8}};
  SolRooflineOptions bad = {.level = (SolLevel)3};
  CHECK_INT(sol_roofline(&round_device, &work, &bad, &r, &err), SOL_ERR_ARGUMENT);
  CHECK_HAS(err.message, "no such memory level: 3");
  CHECK_INT(sol_roofline(0, &work, 0, &r, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_roofline(&round_device, 0, 0, &r, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_roofline(&round_device, &work, 0, 0, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_advise_op(0, &args, 0, &a, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_advise_op(&round_device, 0, 0, &a, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_advise_op(&round_device, &args, 0, 0, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_advise_work(0, &work, 0, &a, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_advise_work(&round_device, 0, 0, &a, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_advise_work(&round_device, &work, 0, 0, &err), SOL_ERR_ARGUMENT);
  args.dim[0] = -1;
  CHECK_INT(sol_advise_op(&round_device, &args, 0, &a, &err), SOL_ERR_ARGUMENT);
  args.op = 99;
  CHECK_INT(sol_advise_op(&round_device, &args, 0, &a, &err), SOL_ERR_ARGUMENT);
}

// A device of the caller's own with figures that make no sense.
TEST(nonsense_devices) {
  SolWork work = {.bytes = 1, .flops = 1, .launches = 1};
  SolRoofline r;
  const double values[] = {0, -1, NAN, INFINITY};
  for (size_t i = 0; i < 4; i++) {
    SolDevice d = round_device;
    d.mem_bandwidth.value = values[i];
    CHECK_INT(sol_roofline(&d, &work, 0, &r, 0), SOL_ERR_ARGUMENT);
    d = round_device;
    d.peak_bf16.value = values[i];
    CHECK_MSG(sol_roofline(&d, &work, 0, &r, 0) == SOL_ERR_ARGUMENT, "peak %g", values[i]);
    d = round_device;
    d.launch_us.value = values[i];
    CHECK_INT(sol_roofline(&d, &work, 0, &r, 0), i == 0 ? SOL_OK : SOL_ERR_ARGUMENT);
  }
}

TEST(properties_on_every_device) {
  for (int i = 0; i < sol_device_count(); i++)
    for (int e = -4; e <= 24; e++)
      for (int launches = 0; launches < 2; launches++) {
        SolDevice d = *sol_device_at(i);
        d.launch_us = (SolFigure){4, "test"};
        SolWork work = {.bytes = 1e6, .flops = 1e6 * exp2(e / 2.0), .launches = launches, .dtype = SOL_FP16};
        SolRoofline r = roofline(&d, work, (SolRooflineOptions){0});
        CHECK_NEAR(r.time_us, fmax(r.memory_us, r.compute_us) + r.launch_us, 1e-12);
        CHECK_NEAR(r.attainable_flops, r.flops / (r.time_us - r.launch_us) * 1e6, 1e-9);
        CHECK_NEAR(r.attainable_bytes, r.bytes / (r.time_us - r.launch_us) * 1e6, 1e-9);
        CHECK(r.attainable_flops <= r.peak * (1 + 1e-12) && r.attainable_bytes <= r.bandwidth * (1 + 1e-12));
        CHECK(launches || (r.bound == SOL_BOUND_COMPUTE) == (r.compute_us >= r.memory_us));
        CHECK_NEAR(r.ridge, r.peak / r.bandwidth, 1e-12);
      }
}

static SolAdvice advise(const SolDevice *d, SolOpArgs args, SolRooflineOptions options) {
  SolAdvice a = {0};
  SolError err = {0};
  CHECK_MSG(sol_advise_op(d, &args, &options, &a, &err) == SOL_OK, "%s", err.message);
  for (int i = 0; i < a.count; i++) {
    CHECK(a.steps[i].gain >= 1.01);
    CHECK(i == 0 || a.steps[i].gain <= a.steps[i - 1].gain);
    CHECK(a.steps[i].kind && a.steps[i].what[0] && strlen(a.steps[i].what) < sizeof a.steps[i].what - 1);
  }
  return a;
}

// The step of this kind whose text holds `what`; all zero where there is none.
static SolStep step(const SolAdvice *a, const char *kind, const char *what) {
  for (int i = 0; i < a->count; i++)
    if (strcmp(a->steps[i].kind, kind) == 0 && strstr(a->steps[i].what, what)) return a->steps[i];
  return (SolStep){0};
}

TEST(advice_for_a_norm) {
  SolRooflineOptions no_launch = {.no_launch = 1};
  SolAdvice a = advise(&round_device, (SolOpArgs){.op = op("rmsnorm"), .dim = {8192, 4096}}, no_launch);
  CHECK_INT(a.response, SOL_RESPONSE_RAISE_INTENSITY);
  CHECK_NEAR(a.reuse_to_ridge, 10, 1e-3);
  SolStep s = step(&a, "fuse", "add_rmsnorm"); // five trips against four
  CHECK_NEAR(s.gain, 1.25, 1e-4);
  s = step(&a, "fuse", "embed_rmsnorm"); // four against two
  CHECK_NEAR(s.gain, 2, 1e-3);
  s = step(&a, "shrink", "store fp8 instead of bf16");
  CHECK_NEAR(s.gain, 2, 1e-3);
  CHECK(!step(&a, "graph", "").kind);
  CHECK(!step(&a, "block", "").kind);
  // Fused already, and already narrow: the roof is all there is.
  a = advise(&round_device, (SolOpArgs){.op = op("add_rmsnorm"), .dim = {8192, 4096}, .dtype = SOL_FP8},
             no_launch);
  CHECK_INT(a.count, 0);
  CHECK_INT(a.response, SOL_RESPONSE_SATURATE_MEMORY);
}

// Raising the intensity is the answer where it gains more than a tenth; launching less is no such step.
TEST(response_follows_the_gains) {
  SolRooflineOptions no_launch = {.no_launch = 1};
  SolOpArgs args = {.op = op("layernorm"), .dim = {8192, 4096}, .dtype = SOL_FP8};
  SolAdvice a = advise(&round_device, args, no_launch);
  CHECK_INT(a.count, 1);
  CHECK_NEAR(a.steps[0].gain, 1.25, 1e-3);
  CHECK_INT(a.response, SOL_RESPONSE_RAISE_INTENSITY);
  SolWork work = {.bytes = 16e6, .flops = 1e6, .launches = 3, .dtype = SOL_FP8};
  CHECK_INT(sol_advise_work(&round_device, &work, 0, &a, 0), SOL_OK);
  CHECK(step(&a, "graph", "").gain > 1.1 && step(&a, "launch", "").gain > 1.1);
  CHECK_INT(a.count, 2);
  CHECK_INT(a.response, SOL_RESPONSE_SATURATE_MEMORY);
  // A norm is no neighbour of a table of integers.
  args = (SolOpArgs){.op = op("embedding"), .dim = {8192, 4096}, .dtype = SOL_INT8};
  a = advise(&round_device, args, no_launch);
  CHECK_INT(a.count, 0);
}

TEST(advice_for_a_copy_is_to_saturate) {
  SolAdvice a =
      advise(&round_device, (SolOpArgs){.op = op("copy"), .dim = {1 << 30}}, (SolRooflineOptions){0});
  CHECK_INT(a.response, SOL_RESPONSE_SATURATE_MEMORY);
  CHECK_INT(a.count, 0);
  CHECK(isinf(a.reuse_to_ridge));
}

TEST(advice_under_launches) {
  SolOpArgs args = {.op = op("rmsnorm"), .dim = {1, 4096}};
  SolAdvice a = advise(&round_device, args, (SolRooflineOptions){0});
  CHECK_INT(a.response, SOL_RESPONSE_LAUNCH_LESS);
  SolStep s = step(&a, "graph", "CUDA graph");
  CHECK_NEAR(s.gain, (5 + .024576) / (1 + .024576), 1e-9);
  s = step(&a, "fuse", "add_rmsnorm");
  CHECK_NEAR(s.gain, 2, 0.01);
  CHECK(!step(&a, "shrink", "").kind); // half of next to nothing
  a = advise(&round_device, args, (SolRooflineOptions){.graph = 1});
  CHECK(!step(&a, "graph", "").kind);
}

TEST(advice_for_a_small_gemm) {
  SolOpArgs args = {.op = op("gemm"), .dim = {1, 4096, 4096}};
  SolAdvice a = advise(&round_device, args, (SolRooflineOptions){.no_launch = 1});
  CHECK_INT(a.response, SOL_RESPONSE_RAISE_INTENSITY);
  CHECK_NEAR(a.reuse_to_ridge, 100, 1e-3);
  SolStep s = step(&a, "shrink", "weights in fp4");
  CHECK_NEAR(s.gain, 4, 0.01);
  s = step(&a, "shrink", "weights in fp8");
  CHECK_NEAR(s.gain, 2, 0.01);
  s = step(&a, "shrink", "multiply fp8"); // the product is still written in bf16
  CHECK(s.after.bytes == 4096 + 4096.0 * 4096 + 2 * 4096);
  s = step(&a, "block", "rows (M) at once reach the ridge");
  CHECK(s.kind != 0);
  // The smallest M with 2 M N K >= ridge * 2 (M K + N K + M N).
  int m = 1;
  while (2.0 * m * 4096 * 4096 < 100 * 2.0 * (2.0 * m * 4096 + 4096.0 * 4096)) m++;
  CHECK_INT(atoi(s.what), m);
  CHECK(s.after.intensity >= s.after.ridge);
  SolRoofline now =
      roofline(&round_device, (SolWork){.bytes = 33570816, .flops = 33554432}, (SolRooflineOptions){0});
  CHECK_NEAR(s.gain, m * now.time_us / s.after.time_us, 1e-9);
  // Where no M reaches the ridge, none is offered.
  args = (SolOpArgs){.op = op("gemm"), .dim = {64, 8, 4096}};
  a = advise(&round_device, args, (SolRooflineOptions){.no_launch = 1});
  CHECK(!step(&a, "block", "").kind);
}

TEST(advice_for_a_large_gemm) {
  SolOpArgs args = {.op = op("gemm"), .dim = {4096, 4096, 4096}};
  SolAdvice a = advise(&round_device, args, (SolRooflineOptions){0});
  CHECK_INT(a.response, SOL_RESPONSE_SATURATE_COMPUTE);
  CHECK(a.reuse_to_ridge == 1);
  CHECK(!step(&a, "block", "").kind);
  CHECK(!step(&a, "shrink", "weights").kind); // the roof is not memory
  SolStep s = step(&a, "shrink", "multiply fp8 instead of bf16");
  CHECK_NEAR(s.gain, 2, 0.01);
  s = step(&a, "fuse", "epilogue");
  CHECK(s.gain > 1 && s.gain < 1.1);
  // int8 where there is no fp8, nothing where there is neither.
  SolDevice older = round_device;
  older.peak_fp8.source = 0;
  older.cc_major = 8;
  a = advise(&older, args, (SolRooflineOptions){0});
  CHECK(!step(&a, "shrink", "").kind);
  older.peak_int8 = (SolFigure){2e14, "test"};
  a = advise(&older, args, (SolRooflineOptions){0});
  CHECK(step(&a, "shrink", "multiply int8 instead of bf16").kind != 0);
}

TEST(advice_for_attention) {
  SolOpArgs args = {
      .op = op("attention"), .dim = {8, 32, 4096, 128}, .kv_heads = 8, .phase = SOL_PHASE_DECODE};
  SolAdvice a = advise(&round_device, args, (SolRooflineOptions){.no_launch = 1});
  CHECK_INT(a.response, SOL_RESPONSE_RAISE_INTENSITY);
  CHECK_NEAR(a.reuse_to_ridge, 25, 1e-2); // four query heads share a head of K and V
  SolStep s = step(&a, "shrink", "K and V in fp8");
  CHECK_NEAR(s.gain, 2, 0.01);
  s = step(&a, "block", "new tokens");
  CHECK(s.after.intensity >= 100 && atoi(s.what) >= 25 && atoi(s.what) <= 27);
  args = (SolOpArgs){.op = op("attention"), .dim = {8, 32, 16, 128}, .queries = 16};
  a = advise(&round_device, args, (SolRooflineOptions){.no_launch = 1});
  s = step(&a, "block", "tokens a sequence reach the ridge");
  CHECK_INT(atoi(s.what), 399); // intensity (S + 1) / 4
}

// The gain of each fusion, far from launches, is the ratio of the trips.
TEST(fusion_gains) {
  static const struct {
    const char *op, *what;
    int64_t dim[4];
    double gain;
  } rows[] = {
      {"gelu", "gemm that writes its input", {8192, 8192}, 3},
      {"gelu", "bias_gelu", {8192, 8192}, 2},
      {"silu_mul", "gate and up", {8192, 8192}, 5},
      {"layernorm", "residual add", {8192, 8192}, 1.25},
      {"softmax", "scaling", {8192, 8192}, 2},
      {"transpose", "transposed", {8192, 8192}, 3},
      {"embedding", "embed_rmsnorm", {8192, 8192}, 2},
      {"argmax", "writes its input", {8192, 8192}, 2},
      {"kv_append", "computes k and v", {8192, 32, 128}, 3},
      {"particles", "velocities", {1 << 26}, 4.0 / 3},
      {"stencil", "two time steps", {1 << 26}, 2},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    SolOpArgs args = {.op = op(rows[i].op)};
    memcpy(args.dim, rows[i].dim, sizeof args.dim);
    SolAdvice a = advise(&round_device, args, (SolRooflineOptions){.no_launch = 1});
    SolStep s = step(&a, strcmp(rows[i].op, "stencil") == 0 ? "block" : "fuse", rows[i].what);
    CHECK_MSG(fabs(s.gain - rows[i].gain) < 0.01 * rows[i].gain, "%s, %s: gain %g, not %g", rows[i].op,
              rows[i].what, s.gain, rows[i].gain);
  }
}

TEST(advice_for_raw_work) {
  SolAdvice a;
  SolWork work = {.bytes = 40e6, .flops = 5e6, .launches = 3};
  CHECK_INT(sol_advise_work(&round_device, &work, 0, &a, 0), SOL_OK);
  CHECK_INT(a.response, SOL_RESPONSE_RAISE_INTENSITY);
  SolStep s = step(&a, "shrink", "fp8 instead of bf16");
  CHECK_NEAR(s.gain, 55.0 / 35, 1e-9);
  s = step(&a, "launch", "one launch instead of 3");
  CHECK_NEAR(s.gain, 55.0 / 45, 1e-9);
  s = step(&a, "graph", "");
  CHECK_NEAR(s.gain, 55.0 / 43, 1e-9);
  CHECK_NEAR(a.reuse_to_ridge, 800, 1e-9);
  // fp32 work on the vector units stays there when its storage shrinks.
  work = (SolWork){.bytes = 1e6, .flops = 1e9, .dtype = SOL_FP32};
  CHECK_INT(sol_advise_work(&round_device, &work, 0, &a, 0), SOL_OK);
  CHECK_INT(a.response, SOL_RESPONSE_SATURATE_COMPUTE);
  CHECK_INT(a.count, 0);
  work = (SolWork){.flops = 1e9}; // no bytes
  CHECK_INT(sol_advise_work(&round_device, &work, 0, &a, 0), SOL_OK);
  CHECK(a.reuse_to_ridge == 1);
}

// Whatever the operation, type and device, advice comes or a reason does.
TEST(advice_for_everything) {
  for (int i = 0; i < sol_device_count(); i++)
    for (int which = 0; which < sol_op_count(); which++)
      for (int dtype = 0; dtype < SOL_DTYPE_COUNT; dtype++)
        for (int size = 1; size <= 4096; size *= 64) {
          const SolOpInfo *info = sol_op_info(which);
          SolOpArgs args = {.op = which, .dtype = (SolDtype)dtype};
          for (int k = 0; k < info->rank_min; k++) args.dim[k] = size + (size == 1);
          SolAdvice a;
          SolError err = {0};
          SolRooflineOptions o = {.no_launch = 1};
          SolStatus status = sol_advise_op(sol_device_at(i), &args, &o, &a, &err);
          CHECK_MSG(status == SOL_OK || err.message[0], "%s: no message", info->name);
          if (status) continue;
          for (int k = 0; k < a.count; k++)
            CHECK(isfinite(a.steps[k].gain) && a.steps[k].gain >= 1.01 && a.steps[k].after.time_us > 0);
        }
}

TEST(names) {
  CHECK_STR(sol_level_name(SOL_LEVEL_SMEM), "smem");
  CHECK_STR(sol_bound_name(SOL_BOUND_LAUNCH), "launch");
  CHECK_STR(sol_unit_name(SOL_UNIT_VECTOR), "vector");
  CHECK_STR(sol_response_name(SOL_RESPONSE_RAISE_INTENSITY), "raise_intensity");
  CHECK_STR(sol_response_name(SOL_RESPONSE_SATURATE_MEMORY), "saturate_memory");
  CHECK_STR(sol_response_name(SOL_RESPONSE_SATURATE_COMPUTE), "saturate_compute");
  CHECK_STR(sol_response_name(SOL_RESPONSE_LAUNCH_LESS), "launch_less");
  CHECK_STR(sol_level_name((SolLevel)9), "?");
  CHECK_STR(sol_bound_name((SolBound)9), "?");
  CHECK_STR(sol_unit_name((SolUnit)9), "?");
  CHECK_STR(sol_response_name((SolResponse)9), "?");
}

CHECK_MAIN
