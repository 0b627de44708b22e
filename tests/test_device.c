// The table of GPUs and look-up in it (src/device). The checks here are independent of the table: limits
// known from elsewhere, arithmetic between figures of one row, and goldens that several sources agree on.
#include "sol/device.h"

#include "check.h"

static const SolDevice *after(const SolDevice *device) {
  for (int i = 0; i < sol_device_count(); i++)
    if (sol_device_at(i) == device) return sol_device_at(i + 1);
  return 0;
}

static const SolDevice *find(const char *name) {
  const SolDevice *device = 0;
  SolError err = {0};
  SolStatus status = sol_device_find(name, &device, &err);
  CHECK_MSG(status == SOL_OK, "'%s': %s", name, err.message);
  return status ? 0 : device;
}

static double peak(const char *name, SolDtype dtype, SolUnit unit) {
  const SolDevice *device = find(name);
  double flops = 0;
  SolError err = {0};
  if (!device || sol_device_peak(device, dtype, unit, &flops, 0, &err)) {
    CHECK_MSG(0, "%s: %s", name, err.message);
    return 0;
  }
  return flops;
}

TEST(every_device_has_what_the_accountant_needs) {
  CHECK_INT(sol_device_count(), 17);
  for (const SolDevice *d = sol_device_at(0); d; d = after(d)) {
    struct {
      const char *name;
      SolFigure figure;
      double least, most;
    } need[] = {
        {"sms", d->sms, 10, 200},
        {"boost_clock", d->boost_clock, 1e9, 3e9},
        {"regs_per_sm", d->regs_per_sm, 65536, 65536},
        {"max_regs_per_block", d->max_regs_per_block, 65536, 65536},
        {"max_regs_per_thread", d->max_regs_per_thread, 255, 255},
        {"reg_alloc_unit", d->reg_alloc_unit, 256, 256},
        {"warp_alloc_unit", d->warp_alloc_unit, 4, 4},
        {"smem_per_sm", d->smem_per_sm, 64 * 1024, 228 * 1024},
        {"smem_per_block", d->smem_per_block, 64 * 1024, 227 * 1024},
        {"smem_reserved", d->smem_reserved, 0, 1024},
        {"smem_alloc_unit", d->smem_alloc_unit, 128, 256},
        {"smem_bytes_per_clock", d->smem_bytes_per_clock, 64, 128},
        {"l1_size", d->l1_size, 96 * 1024, 256 * 1024},
        {"warp_size", d->warp_size, 32, 32},
        {"max_warps_per_sm", d->max_warps_per_sm, 32, 64},
        {"max_blocks_per_sm", d->max_blocks_per_sm, 16, 32},
        {"max_threads_per_block", d->max_threads_per_block, 1024, 1024},
        {"mem_size", d->mem_size, 4e9, 300e9},
        {"mem_bandwidth", d->mem_bandwidth, 100e9, 10e12},
        {"peak_fp32", d->peak_fp32, 5e12, 200e12},
        {"peak_fp64", d->peak_fp64, 0.1e12, 100e12},
        {"peak_fp16", d->peak_fp16, 10e12, 3e15},
        {"launch_us", d->launch_us, 1, 10},
        {"graph_launch_us", d->graph_launch_us, 0.5, 3},
    };
    for (size_t i = 0; i < sizeof need / sizeof need[0]; i++) {
      if (!CHECK_MSG(sol_known(need[i].figure), "%s lacks %s", d->id, need[i].name)) continue;
      CHECK_MSG(need[i].figure.value >= need[i].least && need[i].figure.value <= need[i].most, "%s: %s is %g",
                d->id, need[i].name, need[i].figure.value);
    }
  }
}

TEST(every_figure_has_a_source_or_is_unknown) {
  CHECK(sol_device_figure_count() > 30);
  for (const SolDevice *d = sol_device_at(0); d; d = after(d)) {
    CHECK(d->mem_type && d->mem_type[0] && d->mem_type_source && d->mem_type_source[0]);
    CHECK(d->family && d->arch && d->aliases);
    CHECK(!d->note || strlen(d->note) > 10);
    for (int i = 0; i < sol_device_figure_count(); i++) {
      SolFigureInfo info;
      SolFigure f = sol_device_figure(d, i, &info);
      if (!sol_known(f)) {
        CHECK_MSG(f.value == 0, "%s: %s has a value but no source", d->id, info.field);
        continue;
      }
      bool may_be_zero = strcmp(info.field, "smem_reserved") == 0; // Volta and Turing reserve none
      CHECK_MSG(isfinite(f.value) && (f.value > 0 || (may_be_zero && f.value == 0)), "%s: %s is %g", d->id,
                info.field, f.value);
      CHECK_MSG(strlen(f.source) > 8, "%s: %s has the source '%s'", d->id, info.field, f.source);
    }
  }
}

TEST(figures_as_a_list_match_the_fields) {
  const SolDevice *h100 = find("h100");
  if (!h100) return;
  int seen = 0;
  for (int i = 0; i < sol_device_figure_count(); i++) {
    SolFigureInfo info;
    SolFigure f = sol_device_figure(h100, i, &info);
    CHECK(info.field && info.field[0] && info.label && info.label[0] && info.unit);
    if (strcmp(info.field, "mem_bandwidth") == 0) {
      seen++;
      CHECK(f.value == h100->mem_bandwidth.value && f.source == h100->mem_bandwidth.source);
      CHECK_STR(info.unit, "B/s");
      CHECK_STR(info.label, "memory bandwidth");
    }
  }
  CHECK_INT(seen, 1);
  SolFigureInfo info;
  CHECK(!sol_known(sol_device_figure(h100, -1, &info)));
  CHECK_STR(info.field, "");
  CHECK(!sol_known(sol_device_figure(h100, sol_device_figure_count(), 0)));
  CHECK(!sol_known(sol_device_figure(0, 0, &info)));
  CHECK_STR(info.field, "sms");
  CHECK(sol_device_figure(h100, 0, 0).value == 132);
  CHECK(!sol_device_at(-1) && !sol_device_at(sol_device_count()));
}

// Published memory bandwidths and sizes, in the units people know them by.
TEST(memory_of_each_device) {
  static const struct {
    const char *id, *type;
    double gb_per_s, gib;
  } known[] = {
      {"v100-sxm2", "HBM2", 900, 32},      {"t4", "GDDR6", 320, 16},         {"a100-40gb", "HBM2", 1555, 40},
      {"rtx3090", "GDDR6X", 936, 24},      {"a100-80gb", "HBM2e", 2039, 80}, {"a10", "GDDR6", 600, 24},
      {"rtx3050-laptop", "GDDR6", 192, 4}, {"rtx3050", "GDDR6", 224, 8},     {"h100-pcie", "HBM2e", 2039, 80},
      {"h100-sxm", "HBM3", 3350, 80},      {"rtx4090", "GDDR6X", 1008, 24},  {"l4", "GDDR6", 300, 24},
      {"l40s", "GDDR6", 864, 48},          {"h200", "HBM3e", 4800, 141},     {"b200", "HBM3e", 8000, 180},
      {"gb200", "HBM3e", 8000, 186},       {"rtx5090", "GDDR7", 1792, 32},
  };
  CHECK_INT(sizeof known / sizeof known[0], sol_device_count());
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    const SolDevice *d = find(known[i].id);
    if (!d) continue;
    CHECK(d == sol_device_at((int)i)); // the order, oldest first
    CHECK_NEAR(d->mem_bandwidth.value, known[i].gb_per_s * 1e9, 0.001);
    CHECK(d->mem_size.value == known[i].gib * (1 << 30));
    CHECK_STR(d->mem_type, known[i].type);
  }
}

// What cuda_occupancy.h and the Programming Guide give per compute capability.
TEST(limits_per_compute_capability) {
  static const struct {
    int major, minor, warps, blocks, smem_kib, block_kib, reserved, unit;
  } limits[] = {
      {7, 0, 64, 32, 96, 96, 0, 256},       {7, 5, 32, 16, 64, 64, 0, 256},
      {8, 0, 64, 32, 164, 163, 1024, 128},  {8, 6, 48, 16, 100, 99, 1024, 128},
      {8, 9, 48, 24, 100, 99, 1024, 128},   {9, 0, 64, 32, 228, 227, 1024, 128},
      {10, 0, 64, 32, 228, 227, 1024, 128}, {12, 0, 48, 24, 100, 99, 1024, 128},
  };
  bool used[sizeof limits / sizeof limits[0]] = {0};
  for (const SolDevice *d = sol_device_at(0); d; d = after(d)) {
    bool found = false;
    char arch[16];
    snprintf(arch, sizeof arch, "sm_%d%d", d->cc_major, d->cc_minor);
    CHECK_STR(d->arch, arch);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
      if (limits[i].major != d->cc_major || limits[i].minor != d->cc_minor) continue;
      used[i] = found = true;
      CHECK_INT(d->max_warps_per_sm.value, limits[i].warps);
      CHECK_INT(d->max_blocks_per_sm.value, limits[i].blocks);
      CHECK_INT(d->smem_per_sm.value, limits[i].smem_kib * 1024);
      CHECK_INT(d->smem_per_block.value, limits[i].block_kib * 1024);
      CHECK_INT(d->smem_reserved.value, limits[i].reserved);
      CHECK_INT(d->smem_alloc_unit.value, limits[i].unit);
    }
    CHECK_MSG(found, "%s has compute capability %d.%d", d->id, d->cc_major, d->cc_minor);
    CHECK(d->smem_per_block.value <= d->smem_per_sm.value - d->smem_reserved.value);
    CHECK(d->smem_per_sm.value <= d->l1_size.value);
  }
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) CHECK(used[i]);
}

static double vector_lanes(const SolDevice *d) {
  int cc = d->cc_major * 10 + d->cc_minor;
  return cc <= 80 ? 64 : 128;
}

TEST(fp32_peak_is_lanes_times_clock) {
  for (const SolDevice *d = sol_device_at(0); d; d = after(d)) {
    double computed = d->sms.value * vector_lanes(d) * 2 * d->boost_clock.value;
    CHECK_MSG(fabs(d->peak_fp32.value / computed - 1) < 0.02, "%s: %g against %g", d->id, d->peak_fp32.value,
              computed);
    CHECK(!sol_known(d->base_clock) || d->base_clock.value < d->boost_clock.value);
  }
}

static void check_ratio(const SolDevice *d, SolFigure a, SolFigure b, double want, const char *what) {
  if (!sol_known(a) || !sol_known(b)) return;
  double ratio = a.value / b.value;
  CHECK_MSG(fabs(ratio / want - 1) < 0.05, "%s: %s is %g, expected %g", d->id, what, ratio, want);
}

// A sparse figure among dense ones is off by two, and so is fp16 accumulation on a GeForce.
TEST(tensor_peaks_keep_their_ratios) {
  for (const SolDevice *d = sol_device_at(0); d; d = after(d)) {
    bool geforce = strstr(d->name, "GeForce") != 0;
    check_ratio(d, d->peak_bf16, d->peak_fp16, 1, "bf16/fp16");
    check_ratio(d, d->peak_fp16, d->peak_tf32, 2, "fp16/tf32");
    check_ratio(d, d->peak_fp8, d->peak_fp16, 2, "fp8/fp16");
    check_ratio(d, d->peak_int8, d->peak_fp16, geforce ? 4 : 2, "int8/fp16");
    check_ratio(d, d->peak_fp4, d->peak_fp8, geforce ? 4 : 2, "fp4/fp8");
    check_ratio(d, d->peak_fp64_tensor, d->peak_fp64, d->cc_major >= 10 ? 1 : 2, "fp64 tensor/vector");
    bool has_fp64_units = d->cc_minor == 0 && d->cc_major != 12;
    check_ratio(d, d->peak_fp64, d->peak_fp32,
                has_fp64_units          ? 0.5
                : vector_lanes(d) == 64 ? 1 / 32.0
                                        : 1 / 64.0,
                "fp64/fp32");
  }
}

// Dense fp16 FMA per SM and clock, fp32 accumulation, as the architectures' whitepapers give them. Published
// tensor peaks may rest on a lower clock than the boost clock, never on a higher one.
TEST(fp16_tensor_peak_is_dense) {
  for (const SolDevice *d = sol_device_at(0); d; d = after(d)) {
    int cc = d->cc_major * 10 + d->cc_minor;
    bool geforce = strstr(d->name, "GeForce") != 0;
    double fma = cc < 80 ? 512 : cc == 80 ? 1024 : cc == 90 ? 2048 : cc == 100 ? 4096 : geforce ? 256 : 512;
    double most = d->sms.value * fma * 2 * d->boost_clock.value;
    CHECK_MSG(d->peak_fp16.value < most * 1.01 && d->peak_fp16.value > most * 0.9, "%s: %g of %g", d->id,
              d->peak_fp16.value, most);
  }
}

TEST(ridges) {
  static const struct {
    const char *id;
    SolDtype dtype;
    double ridge, within;
  } golden[] = {
      {"h100-sxm", SOL_BF16, 295, 0.005}, {"a100-80gb", SOL_BF16, 153, 0.005}, {"h200", SOL_BF16, 206, 0.005},
      {"b200", SOL_BF16, 281.25, 1e-9},   {"gb200", SOL_BF16, 312.5, 1e-9},    {"v100", SOL_FP16, 139, 0.005},
      {"h100", SOL_FP8, 590, 0.005}, // what is quoted for sparse fp16 is the fp8 ridge
  };
  for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
    const SolDevice *d = find(golden[i].id);
    if (!d) continue;
    double ridge = peak(golden[i].id, golden[i].dtype, SOL_UNIT_TENSOR) / d->mem_bandwidth.value;
    CHECK_MSG(fabs(ridge / golden[i].ridge - 1) <= golden[i].within, "%s: ridge %g", d->id, ridge);
  }
  // Round numbers used in teaching, 2000 TFLOP/s over 8 TB/s, land within an eighth of the table's.
  const SolDevice *b200 = find("b200");
  if (b200) CHECK_NEAR(b200->peak_bf16.value / b200->mem_bandwidth.value, 250, 0.13);
}

TEST(caches_and_latencies_rise_outward) {
  for (const SolDevice *d = sol_device_at(0); d; d = after(d)) {
    SolFigure level[] = {d->smem_latency, d->l1_latency, d->l2_latency, d->mem_latency};
    double last = 15; // an SM's pipeline alone
    for (size_t i = 0; i < sizeof level / sizeof level[0]; i++) {
      if (!sol_known(level[i])) continue;
      CHECK_MSG(level[i].value > last && level[i].value < 1200, "%s: latency %zu is %g", d->id, i,
                level[i].value);
      last = level[i].value;
    }
    if (sol_known(d->l2_bandwidth)) {
      double smem = d->sms.value * d->smem_bytes_per_clock.value * d->boost_clock.value;
      CHECK_MSG(d->l2_bandwidth.value > d->mem_bandwidth.value && d->l2_bandwidth.value < smem, "%s: L2 %g",
                d->id, d->l2_bandwidth.value);
    }
    CHECK(d->graph_launch_us.value < d->launch_us.value);
  }
  const SolDevice *h100 = find("h100"), *h200 = find("h200");
  if (!h100 || !h200) return;
  CHECK(h100->l2_size.value == 50 * 1024 * 1024);
  CHECK(h200->l2_size.value == 60 * 1024 * 1024);
  CHECK_INT(h100->sms.value, 132);
  // Shared memory of all SMs together, not of one: about 33 TB/s.
  CHECK_NEAR(h100->sms.value * h100->smem_bytes_per_clock.value * h100->boost_clock.value, 33e12, 0.02);
}

TEST(names_find_their_device) {
  static const char *pairs[][2] = {
      {"h100", "h100-sxm"},
      {"H100", "h100-sxm"},
      {"h100_sxm", "h100-sxm"},
      {"H100 SXM5", "h100-sxm"},
      {"h100-80gb", "h100-sxm"},
      {"NVIDIA H100 80GB HBM3", "h100-sxm"},
      {"NVIDIA H100 PCIe", "h100-pcie"},
      {"a100", "a100-80gb"},
      {"A100-SXM4-80GB", "a100-80gb"},
      {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
      {"NVIDIA A100-PCIE-40GB", "a100-40gb"},
      {"v100", "v100-sxm2"},
      {"Tesla V100-SXM2-32GB", "v100-sxm2"},
      {"H100 SXM", "h100-sxm"},
      {"h100_sxm5", "h100-sxm"},
      {"NVIDIA H100 80GB SXM5", "h100-sxm"},
      {"Tesla T4", "t4"},
      {"3050", "rtx3050"},
      {"rtx-3050", "rtx3050"},
      {"RTX 3050", "rtx3050"},
      {"NVIDIA GeForce RTX 3050 Laptop GPU", "rtx3050-laptop"},
      {"geforce rtx 3050 laptop gpu", "rtx3050-laptop"},
      {"3090", "rtx3090"},
      {"RTX 4090", "rtx4090"},
      {"GeForce RTX 5090", "rtx5090"},
      {"nvidia-l40s", "l40s"},
      {"NVIDIA GB200", "gb200"},
      {"nvidia b200", "b200"},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    const SolDevice *d = find(pairs[i][0]);
    if (d) CHECK_MSG(strcmp(d->id, pairs[i][1]) == 0, "'%s' finds %s", pairs[i][0], d->id);
  }
}

// Every id, name and alias finds its own device and no other has it.
TEST(names_are_unambiguous) {
  for (const SolDevice *d = sol_device_at(0); d; d = after(d)) {
    CHECK(find(d->id) == d);
    CHECK(find(d->name) == d);
    for (const char *c = d->id; *c; c++)
      CHECK_MSG(strchr("abcdefghijklmnopqrstuvwxyz0123456789-", *c), "%s", d->id);
    char words[512];
    CHECK(strlen(d->aliases) < sizeof words);
    snprintf(words, sizeof words, "%s", d->aliases);
    for (char *word = strtok(words, " "); word; word = strtok(0, " "))
      CHECK_MSG(find(word) == d, "alias '%s' of %s finds another", word, d->id);
    for (const SolDevice *other = sol_device_at(0); other; other = after(other)) {
      if (other == d) continue;
      CHECK(strcmp(d->id, other->id) != 0 && strcmp(d->name, other->name) != 0);
    }
  }
}

TEST(other_makers_are_named_and_nothing_is_offered) {
  static const char *pairs[][2] = {
      {"mi300x", "AMD"}, {"MI250", "AMD"}, {"rx-7900", "AMD"}, {"gaudi2", "Intel"}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    const SolDevice *d = 0;
    SolError err = {0};
    CHECK_INT(sol_device_find(pairs[i][0], &d, &err), SOL_ERR_NOT_FOUND);
    CHECK_HAS(err.hint, pairs[i][1]);
    CHECK(!strstr(err.hint, "nearest"));
  }
}

TEST(devices_of_other_makers_serve_the_accountant_alone) {
  CHECK(sol_accelerator_count() > sol_device_count() && !sol_accelerator_at(sol_accelerator_count()));
  CHECK(!sol_accelerator_at(-1));
  for (int i = 0; i < sol_accelerator_count(); i++) {
    const SolDevice *d = sol_accelerator_at(i), *found = 0, *nvidia = 0;
    CHECK(!sol_accelerator_find(d->id, &found, 0) && found == d);
    CHECK_MSG(sol_known(d->mem_bandwidth) && d->mem_bandwidth.value > 50e9 && sol_known(d->launch_us), "%s",
              d->id);
    if (i < sol_device_count()) continue;
    CHECK_INT(d->cc_major, 0);
    CHECK_MSG(sol_device_find(d->id, &nvidia, 0) == SOL_ERR_NOT_FOUND && !nvidia, "%s", d->id);
    for (int k = 0; k < sol_device_figure_count(); k++) {
      SolFigure figure = sol_device_figure(d, k, 0);
      CHECK(!sol_known(figure) || figure.source[0]);
    }
  }
  const SolDevice *d = 0;
  CHECK(!sol_accelerator_find("AMD Instinct MI300X", &d, 0) && strcmp(d->id, "mi300x") == 0);
  SolError err = {0};
  double peak;
  CHECK(!sol_accelerator_find("m4-max", &d, 0));
  CHECK_INT(sol_device_peak(d, SOL_BF16, SOL_UNIT_DEFAULT, &peak, 0, &err), SOL_ERR_UNKNOWN);
  CHECK_HAS(err.message, "not published");
}

TEST(unknown_names_offer_the_nearest) {
  static const char *pairs[][2] = {
      {"h1000", "h100"}, {"h100-sxm6x", "h100-sxm"}, {"rtx309", "rtx3090"}, {"a100-80g", "a100-80gb"},
      {"b20", "b200"},   {"rtx 3050 ti", "rtx3050"},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    const SolDevice *d = 0;
    SolError err = {0};
    CHECK_INT(sol_device_find(pairs[i][0], &d, &err), SOL_ERR_NOT_FOUND);
    CHECK(!d);
    CHECK_HAS(err.hint, pairs[i][1]);
    CHECK_HAS(err.message, "unknown device");
  }
  static const char *odd[] = {"",
                              " ",
                              "-",
                              "nvidia",
                              "nvidia ",
                              "geforce rtx",
                              "h100 ",
                              "h",
                              "a100 80gb pcie",
                              "\xff\xfe",
                              "nvidia nvidia nvidia h100"};
  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
    const SolDevice *d = 0;
    SolError err = {0};
    CHECK_MSG(sol_device_find(odd[i], &d, &err) == SOL_ERR_NOT_FOUND && !d, "'%s' was found", odd[i]);
    CHECK(err.message[0] && err.hint[0]);
  }
  static char endless[100000];
  memset(endless, 'h', sizeof endless - 1);
  const SolDevice *d = 0;
  CHECK_INT(sol_device_find(endless, &d, 0), SOL_ERR_NOT_FOUND);
  SolError err = {0};
  CHECK_INT(sol_device_find(0, &d, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_device_find("h100", 0, &err), SOL_ERR_ARGUMENT);
  CHECK(err.message[0]);
}

TEST(peaks_by_dtype_and_unit) {
  const SolDevice *d = find("h100");
  if (!d) return;
  static const struct {
    SolDtype dtype;
    SolUnit asked, used;
    double tflops;
  } want[] = {
      {SOL_BF16, SOL_UNIT_DEFAULT, SOL_UNIT_TENSOR, 989.4},
      {SOL_FP16, SOL_UNIT_TENSOR, SOL_UNIT_TENSOR, 989.4},
      {SOL_BF16, SOL_UNIT_VECTOR, SOL_UNIT_VECTOR, 66.9},
      {SOL_FP8, SOL_UNIT_VECTOR, SOL_UNIT_VECTOR, 66.9},
      {SOL_FP16, SOL_UNIT_VECTOR, SOL_UNIT_VECTOR, 66.9},
      {SOL_FP4, SOL_UNIT_VECTOR, SOL_UNIT_VECTOR, 66.9},
      {SOL_FP32, SOL_UNIT_DEFAULT, SOL_UNIT_VECTOR, 66.9},
      {SOL_FP32, SOL_UNIT_VECTOR, SOL_UNIT_VECTOR, 66.9},
      {SOL_FP64, SOL_UNIT_DEFAULT, SOL_UNIT_TENSOR, 66.9},
      {SOL_FP64, SOL_UNIT_VECTOR, SOL_UNIT_VECTOR, 33.5},
      {SOL_TF32, SOL_UNIT_DEFAULT, SOL_UNIT_TENSOR, 494.7},
      {SOL_FP8, SOL_UNIT_DEFAULT, SOL_UNIT_TENSOR, 1978.9},
      {SOL_INT8, SOL_UNIT_DEFAULT, SOL_UNIT_TENSOR, 1978.9},
  };
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
    double flops = 0;
    SolUnit used = SOL_UNIT_DEFAULT;
    SolError err = {0};
    CHECK_INT(sol_device_peak(d, want[i].dtype, want[i].asked, &flops, &used, &err), SOL_OK);
    CHECK_NEAR(flops, want[i].tflops * 1e12, 1e-12);
    CHECK_INT(used, want[i].used);
    CHECK_INT(sol_device_peak(d, want[i].dtype, want[i].asked, &flops, 0, 0), SOL_OK);
  }
  // fp64 without tensor cores for it falls back on the vector units.
  SolUnit used = SOL_UNIT_DEFAULT;
  double flops = 0;
  CHECK_INT(sol_device_peak(find("rtx4090"), SOL_FP64, SOL_UNIT_DEFAULT, &flops, &used, 0), SOL_OK);
  CHECK_INT(used, SOL_UNIT_VECTOR);
  CHECK_NEAR(flops, 1.29e12, 0.01);
}

static SolError refused(const char *id, SolDtype dtype, SolUnit unit, SolStatus want) {
  SolError err = {0};
  double flops = -1;
  SolUnit used = SOL_UNIT_DEFAULT;
  const SolDevice *d = find(id);
  SolStatus status = d ? sol_device_peak(d, dtype, unit, &flops, &used, &err) : SOL_OK;
  CHECK_MSG(status == want && err.status == want, "%s %s: %s", id, sol_dtype_name(dtype),
            sol_status_name(status));
  CHECK(flops == -1 && used == SOL_UNIT_DEFAULT);
  CHECK_HAS(err.message, id);
  CHECK_HAS(err.message, sol_dtype_name(dtype));
  return err;
}

TEST(missing_units_are_refused_with_what_there_is) {
  SolError err = refused("v100-sxm2", SOL_BF16, SOL_UNIT_DEFAULT, SOL_ERR_UNSUPPORTED);
  CHECK_STR(err.hint, "they take fp16; the vector units compute bf16 in fp32");
  err = refused("t4", SOL_BF16, SOL_UNIT_TENSOR, SOL_ERR_UNSUPPORTED);
  CHECK_HAS(err.hint, "fp16, int8");
  err = refused("h100-sxm", SOL_FP32, SOL_UNIT_TENSOR, SOL_ERR_UNSUPPORTED);
  CHECK_HAS(err.hint, "tf32 or the vector units");
  err = refused("v100-sxm2", SOL_FP32, SOL_UNIT_TENSOR, SOL_ERR_UNSUPPORTED);
  CHECK_STR(err.hint, "use the vector units; the tensor cores take fp16");
  err = refused("rtx3090", SOL_FP64, SOL_UNIT_TENSOR, SOL_ERR_UNSUPPORTED);
  CHECK_HAS(err.hint, "use the vector units; the tensor cores take tf32, fp16, bf16, int8");
  err = refused("a100-80gb", SOL_FP8, SOL_UNIT_DEFAULT, SOL_ERR_UNSUPPORTED);
  CHECK_HAS(err.hint, "fp64, tf32, fp16, bf16, int8");
  refused("h200", SOL_FP4, SOL_UNIT_DEFAULT, SOL_ERR_UNSUPPORTED);
  refused("v100-sxm2", SOL_INT8, SOL_UNIT_DEFAULT, SOL_ERR_UNSUPPORTED);
  refused("v100-sxm2", SOL_TF32, SOL_UNIT_VECTOR, SOL_ERR_UNSUPPORTED);
  err = refused("b200", SOL_TF32, SOL_UNIT_VECTOR, SOL_ERR_UNSUPPORTED);
  CHECK_HAS(err.hint, "the tensor cores take tf32");
  refused("b200", SOL_INT8, SOL_UNIT_VECTOR, SOL_ERR_UNSUPPORTED);
  refused("h100-sxm", SOL_INT32, SOL_UNIT_DEFAULT, SOL_ERR_UNSUPPORTED);
  refused("h100-sxm", SOL_INT64, SOL_UNIT_VECTOR, SOL_ERR_UNSUPPORTED);
  err = refused("h100-sxm", SOL_INT32, SOL_UNIT_TENSOR, SOL_ERR_UNSUPPORTED);
  CHECK_HAS(err.hint, "int8");
}

TEST(bad_arguments_to_peak) {
  const SolDevice *d = find("h100");
  SolError err = {0};
  double flops = 0;
  CHECK_INT(sol_device_peak(0, SOL_BF16, SOL_UNIT_DEFAULT, &flops, 0, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_device_peak(d, SOL_BF16, SOL_UNIT_DEFAULT, 0, 0, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_device_peak(d, SOL_DTYPE_DEFAULT, SOL_UNIT_DEFAULT, &flops, 0, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_device_peak(d, SOL_DTYPE_COUNT, SOL_UNIT_DEFAULT, &flops, 0, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_device_peak(d, SOL_BF16, (SolUnit)3, &flops, 0, &err), SOL_ERR_ARGUMENT);
  CHECK(err.message[0]);
  CHECK_INT(sol_device_peak(0, SOL_BF16, SOL_UNIT_DEFAULT, 0, 0, 0), SOL_ERR_ARGUMENT);
}

// A caller's own device, made from few figures: what its architecture has but nobody gave is unknown, not
// absent.
TEST(figures_nobody_gave_are_unknown) {
  SolDevice mine = {.id = "mine", .name = "mine", .cc_major = 9, .cc_minor = 0};
  double flops = 0;
  SolError err = {0};
  CHECK_INT(sol_device_peak(&mine, SOL_BF16, SOL_UNIT_DEFAULT, &flops, 0, &err), SOL_ERR_UNKNOWN);
  CHECK_HAS(err.message, "the bf16 tensor peak of mine is not published");
  CHECK_INT(sol_device_peak(&mine, SOL_FP32, SOL_UNIT_DEFAULT, &flops, 0, &err), SOL_ERR_UNKNOWN);
  CHECK_INT(sol_device_peak(&mine, SOL_FP4, SOL_UNIT_DEFAULT, &flops, 0, &err), SOL_ERR_UNSUPPORTED);
  CHECK_STR(err.hint, "use the vector units");
  mine.peak_bf16 = (SolFigure){800e12, "measured"};
  CHECK_INT(sol_device_peak(&mine, SOL_BF16, SOL_UNIT_DEFAULT, &flops, 0, &err), SOL_OK);
  CHECK(flops == 800e12);
}

CHECK_MAIN
