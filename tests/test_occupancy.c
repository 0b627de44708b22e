// Occupancy, its lifts and its errors (src/roofline/occupancy.c). test_occupancy_nvidia.c holds the counts
// against NVIDIA's.
#include "sol/occupancy.h"

#include <stddef.h>

#include "check.h"

static const SolDevice *device_named(const char *name) {
  const SolDevice *device = NULL;
  CHECK_MSG(sol_device_find(name, &device, NULL) == SOL_OK, "no device '%s'", name);
  return device;
}

// Occupancy by registers at 256 threads, as docs/occupancy.md has it.
TEST(registers_against_occupancy_at_256_threads) {
  static const struct {
    int regs, blocks_80, blocks_86;
    double percent_80, percent_86;
  } rows[] = {{16, 8, 6, 100, 100},      {32, 8, 6, 100, 100},      {48, 5, 5, 62.5, 250. / 3},
              {64, 4, 4, 50, 200. / 3},  {80, 3, 3, 37.5, 50},      {96, 2, 2, 25, 100. / 3},
              {128, 2, 2, 25, 100. / 3}, {255, 1, 1, 12.5, 50. / 3}};
  const SolDevice *a100 = device_named("a100"), *ga10x = device_named("rtx3090");
  if (!a100 || !ga10x) return;
  SolOccupancy got = {0};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    SolKernelShape kernel = {256, rows[i].regs, 0};
    CHECK_INT(sol_occupancy(a100, &kernel, &got, NULL), SOL_OK);
    CHECK_INT(got.blocks_per_sm, rows[i].blocks_80);
    CHECK_NEAR(got.occupancy * 100, rows[i].percent_80, 1e-15);
    CHECK_INT(sol_occupancy(ga10x, &kernel, &got, NULL), SOL_OK);
    CHECK_INT(got.blocks_per_sm, rows[i].blocks_86);
    CHECK_NEAR(got.occupancy * 100, rows[i].percent_86, 1e-15);
  }
  SolKernelShape too_many = {256, 256, 0};
  CHECK_INT(sol_occupancy(a100, &too_many, &got, NULL), SOL_ERR_ARGUMENT);
}

// Each limiter alone, and each tie: the slots win over what the kernel uses, registers over shared memory.
TEST(limiters_and_their_order) {
  static const struct {
    SolKernelShape kernel;
    SolLimiter limiter;
    double occupancy;
  } rows[] = {{{1024, 16, 0}, SOL_LIMIT_WARPS, 1},         {{768, 16, 0}, SOL_LIMIT_WARPS, .75},
              {{32, 16, 0}, SOL_LIMIT_BLOCKS, .5},         {{256, 64, 0}, SOL_LIMIT_REGISTERS, .5},
              {{256, 32, 50000}, SOL_LIMIT_SMEM, .5},      {{1024, 32, 120000}, SOL_LIMIT_SMEM, .5},
              {{64, 32, 6144}, SOL_LIMIT_WARPS, 1},        {{32, 64, 6144}, SOL_LIMIT_BLOCKS, .5},
              {{256, 64, 57344}, SOL_LIMIT_REGISTERS, .5}, {{1024, 64, 200000}, SOL_LIMIT_REGISTERS, .5}};
  const SolDevice *device = device_named("h100");
  for (size_t i = 0; device && i < sizeof rows / sizeof rows[0]; i++) {
    SolOccupancy got = {0};
    CHECK_INT(sol_occupancy(device, &rows[i].kernel, &got, NULL), SOL_OK);
    CHECK_STR(sol_limiter_name(got.limiter), sol_limiter_name(rows[i].limiter));
    CHECK_NEAR(got.occupancy, rows[i].occupancy, 0);
    CHECK_INT(got.max_warps_per_sm, 64);
    CHECK_INT(got.warps_per_sm, got.blocks_per_sm * got.warps_per_block);
  }
  CHECK_STR(sol_limiter_name(SOL_LIMIT_WARPS), "warps");
  CHECK_STR(sol_limiter_name(SOL_LIMIT_BLOCKS), "blocks");
  CHECK_STR(sol_limiter_name(SOL_LIMIT_REGISTERS), "registers");
  CHECK_STR(sol_limiter_name(SOL_LIMIT_SMEM), "shared memory");
  CHECK_STR(sol_limiter_name((SolLimiter)99), "?");
}

static int warps_on(const SolDevice *device, SolKernelShape kernel) {
  SolOccupancy got = {0};
  return sol_occupancy(device, &kernel, &got, NULL) ? 0 : got.warps_per_sm;
}

static int64_t apart(int64_t a, int64_t b) {
  return a < b ? b - a : a - b;
}

// The most registers below the present ones that lift, by trying all; 0: none.
static int64_t best_regs(const SolDevice *device, SolKernelShape kernel, int now) {
  while (--kernel.regs > 0)
    if (warps_on(device, kernel) > now) return kernel.regs;
  return 0;
}

static int64_t best_smem(const SolDevice *device, SolKernelShape kernel, int now) {
  while (--kernel.smem >= 0)
    if (warps_on(device, kernel) > now) return kernel.smem;
  return -1;
}

static int64_t best_threads(const SolDevice *device, SolKernelShape kernel, int now) {
  int64_t from = kernel.threads, best = 0;
  int best_warps = 0;
  for (kernel.threads = 1024; kernel.threads > 0; kernel.threads -= 32) {
    int warps = warps_on(device, kernel);
    if (warps <= now) continue;
    bool nearer = !best || apart(kernel.threads, from) < apart(best, from);
    bool as_near = best && apart(kernel.threads, from) == apart(best, from);
    if (nearer || (as_near && warps >= best_warps)) best = kernel.threads, best_warps = warps;
  }
  return best;
}

// What sol_occupancy_lifts offers for `input`, or `none`. Whatever it offers must be as good as it says.
static int64_t offered(const SolDevice *device, SolKernelShape kernel, const char *input, int64_t none) {
  SolLift lifts[SOL_MAX_LIFTS];
  int count = -1;
  if (!CHECK_INT(sol_occupancy_lifts(device, &kernel, lifts, &count, NULL), SOL_OK)) return none;
  for (int i = 0; i < count; i++) {
    const SolLift *l = &lifts[i];
    if (strcmp(l->input, input) != 0) continue;
    CHECK_INT(l->after.warps_per_sm, warps_on(device, l->kernel));
    bool regs = l->kernel.regs != kernel.regs, smem = l->kernel.smem != kernel.smem;
    bool threads = l->kernel.threads != kernel.threads;
    CHECK(regs + smem + threads == 1);
    CHECK_STR(l->input, regs ? "regs" : smem ? "smem" : "threads");
    return regs ? l->kernel.regs : smem ? l->kernel.smem : l->kernel.threads;
  }
  return none;
}

TEST(lifts_are_the_nearest_there_are) {
  static const char *const names[] = {"t4", "rtx3090", "h100"};
  static const int sizes[] = {1, 32, 80, 96, 160, 200, 256, 352, 384, 512, 544, 672, 768, 1000, 1024};
  static const int smem[] = {0, 1, 3000, 20000, 33000, 48000, 65536};
  int found[3] = {0};
  for (size_t d = 0; d < sizeof names / sizeof names[0]; d++)
    for (size_t t = 0; t < sizeof sizes / sizeof sizes[0]; t++)
      for (int regs = 0; regs <= 255; regs += 17)
        for (size_t s = 0; s < sizeof smem / sizeof smem[0]; s++) {
          const SolDevice *device = device_named(names[d]);
          SolKernelShape kernel = {sizes[t], regs, smem[s]};
          int now = device ? warps_on(device, kernel) : 0;
          if (now == 0) continue;
          int64_t want_regs = best_regs(device, kernel, now);
          int64_t want_threads = best_threads(device, kernel, now);
          bool ok = CHECK_INT(offered(device, kernel, "regs", 0), want_regs) &&
                    CHECK_INT(offered(device, kernel, "threads", 0), want_threads);
          found[0] += want_regs > 0, found[1] += want_threads > 0;
          if (t % 4 == 2 && regs % 3 == 0) { // trying every byte takes long
            int64_t want_smem = best_smem(device, kernel, now);
            ok = ok && CHECK_INT(offered(device, kernel, "smem", -1), want_smem);
            found[2] += want_smem >= 0;
          }
          if (!CHECK_MSG(ok, "at %s, %d threads, %d regs, %d bytes", device->id, sizes[t], regs, smem[s]))
            return;
        }
  CHECK_MSG(found[0] > 100 && found[1] > 100 && found[2] > 20, "%d, %d, %d", found[0], found[1], found[2]);
}

TEST(lifts_by_example) {
  const SolDevice *h100 = device_named("h100");
  if (!h100) return;
  CHECK_INT(offered(h100, (SolKernelShape){256, 64, 0}, "regs", 0), 48);
  CHECK_INT(offered(h100, (SolKernelShape){256, 32, 60000}, "smem", -1), 57344); // 228 KiB / 4 - 1 KiB
  CHECK_INT(offered(h100, (SolKernelShape){32, 32, 0}, "threads", 0), 64);   // 32 blocks are all there are
  CHECK_INT(offered(h100, (SolKernelShape){768, 32, 0}, "threads", 0), 800); // 2 x 25 warps, not 2 x 24
  SolLift lifts[SOL_MAX_LIFTS];
  int count = -1;
  SolKernelShape full = {256, 32, 0}, tied = {256, 64, 57344};
  CHECK_INT(sol_occupancy_lifts(h100, &full, lifts, &count, NULL), SOL_OK);
  CHECK_INT(count, 0); // nothing above 100 %
  // Registers and shared memory would both have to give.
  CHECK(offered(h100, tied, "regs", 0) == 0 && offered(h100, tied, "smem", -1) == -1);
}

// What cannot launch, and a part of the message and of the hint.
TEST(blocks_that_cannot_launch) {
  static const struct {
    SolKernelShape kernel;
    const char *message, *hint;
  } bad[] = {{{0, 32, 0}, "0 threads", "1 to 1024"},
             {{-1, 32, 0}, "-1 threads", "1 to 1024"},
             {{1025, 32, 0}, "1025 threads", "1 to 1024"},
             {{INT64_MAX, 32, 0}, "9223372036854775807 threads", "1 to 1024"},
             {{INT64_MIN, INT64_MIN, INT64_MIN}, "threads", "1 to 1024"},
             {{256, -1, 0}, "-1 registers", "1 to 255"},
             {{32, 256, 0}, "256 registers", "1 to 255"},
             {{32, INT64_MAX, 0}, "9223372036854775807 registers", "1 to 255"},
             {{1024, 65, 0},
              "take 73728 registers a block",
              "at most 64 registers a thread (__launch_bounds__(1024)) or at most 896 threads"},
             {{544, 100, 0},
              "take 66560 registers a block",
              "at most 96 registers a thread (__launch_bounds__(544)) or at most 512 threads"},
             {{288, 255, 0},
              "take 98304 registers a block",
              "at most 168 registers a thread (__launch_bounds__(288)) or at most 256 threads"},
             {{256, 32, -1}, "-1 bytes", "0 to 232448"},
             {{256, 32, 232449}, "232449 bytes", "0 to 232448"},
             {{256, 32, INT64_MAX}, "9223372036854775807 bytes", "0 to 232448"}};
  const SolDevice *device = device_named("h100");
  for (size_t i = 0; device && i < sizeof bad / sizeof bad[0]; i++) {
    SolOccupancy out = {.blocks_per_sm = 7};
    SolLift lifts[SOL_MAX_LIFTS];
    SolError err = {0};
    int count = 7;
    CHECK_INT(sol_occupancy(device, &bad[i].kernel, &out, &err), SOL_ERR_ARGUMENT);
    CHECK_INT(err.status, SOL_ERR_ARGUMENT);
    CHECK_HAS(err.message, bad[i].message);
    CHECK_HAS(err.message, device->id);
    CHECK_HAS(err.hint, bad[i].hint);
    CHECK_INT(out.blocks_per_sm, 7);
    CHECK_INT(sol_occupancy_lifts(device, &bad[i].kernel, lifts, &count, NULL), SOL_ERR_ARGUMENT);
    CHECK_INT(count, 0);
  }
}

TEST(null_pointers) {
  const SolDevice *device = sol_device_at(0);
  SolKernelShape kernel = {256, 32, 0};
  SolOccupancy out;
  SolLift lifts[SOL_MAX_LIFTS];
  SolError err;
  int count;
  CHECK_INT(sol_occupancy(NULL, &kernel, &out, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_occupancy(device, NULL, &out, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_occupancy(device, &kernel, NULL, NULL), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_occupancy_lifts(NULL, &kernel, lifts, &count, NULL), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_occupancy_lifts(device, NULL, lifts, &count, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_occupancy_lifts(device, &kernel, NULL, &count, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_occupancy_lifts(device, &kernel, lifts, NULL, &err), SOL_ERR_ARGUMENT);
}

TEST(every_device_answers) {
  for (int d = 0; d < sol_device_count(); d++) {
    SolKernelShape kernel = {256, 32, 1024};
    SolOccupancy out = {0};
    SolError err = {0};
    CHECK_MSG(sol_occupancy(sol_device_at(d), &kernel, &out, &err) == SOL_OK, "%s", err.message);
    CHECK_NEAR(out.occupancy, 1, 0);
  }
}

// The figures that occupancy takes: each, left unknown, is named; each, out of all reason, is refused.
TEST(figures_unknown_or_absurd) {
#define FIGURE_AT(field)                                                                                     \
  { #field, offsetof(SolDevice, field) }
  static const struct {
    const char *name;
    size_t at;
  } takes[] = {
      FIGURE_AT(warp_size),           FIGURE_AT(max_threads_per_block), FIGURE_AT(max_warps_per_sm),
      FIGURE_AT(max_blocks_per_sm),   FIGURE_AT(regs_per_sm),           FIGURE_AT(max_regs_per_block),
      FIGURE_AT(max_regs_per_thread), FIGURE_AT(reg_alloc_unit),        FIGURE_AT(warp_alloc_unit),
      FIGURE_AT(smem_per_sm),         FIGURE_AT(smem_per_block),        FIGURE_AT(smem_reserved),
      FIGURE_AT(smem_alloc_unit)};
  const double absurd[] = {-1, .5, NAN, INFINITY, -INFINITY, 1e300, 2e6};
  const SolDevice *real = device_named("h100");
  for (size_t i = 0; real && i < sizeof takes / sizeof takes[0]; i++) {
    SolDevice device = *real;
    SolFigure *figure = (SolFigure *)(void *)((char *)&device + takes[i].at);
    SolKernelShape kernel = {256, 32, 1024};
    SolOccupancy out;
    SolError err = {0};
    figure->source = NULL;
    CHECK_INT(sol_occupancy(&device, &kernel, &out, &err), SOL_ERR_UNKNOWN);
    CHECK_HAS(err.message, takes[i].name);
    figure->source = "test";
    for (size_t k = 0; k < sizeof absurd / sizeof absurd[0]; k++) {
      figure->value = absurd[k];
      CHECK_INT(sol_occupancy(&device, &kernel, &out, &err), SOL_ERR_ARGUMENT);
      CHECK_HAS(err.message, takes[i].name);
    }
    // The extremes that pass must neither crash nor overflow, whatever they answer.
    const double extreme[] = {0, 1, 1 << 20};
    for (size_t k = 0; k < sizeof extreme / sizeof extreme[0]; k++) {
      figure->value = extreme[k];
      SolLift lifts[SOL_MAX_LIFTS];
      int count = -1;
      err = (SolError){0};
      SolStatus status = sol_occupancy(&device, &kernel, &out, &err);
      CHECK(status == SOL_OK ? out.blocks_per_sm > 0 : err.message[0] && err.hint[0]);
      CHECK_INT(sol_occupancy_lifts(&device, &kernel, lifts, &count, NULL), status);
    }
  }
}

// All figures at the largest that is taken: the products stay in range.
TEST(figures_at_their_largest) {
  const SolDevice *real = device_named("h100");
  if (!real) return;
  SolDevice device = *real;
  const SolFigure most = {1 << 20, "test"};
  device.warp_size = device.max_threads_per_block = device.max_warps_per_sm = device.regs_per_sm = most;
  device.max_regs_per_block = device.max_regs_per_thread = device.reg_alloc_unit = device.warp_alloc_unit =
      most;
  device.id = NULL;
  SolKernelShape kernel = {1 << 20, 1 << 20, 0};
  SolOccupancy out;
  SolError err = {0};
  CHECK_INT(sol_occupancy(&device, &kernel, &out, &err), SOL_ERR_ARGUMENT);
  CHECK_HAS(err.message, "registers a block");
}

CHECK_MAIN
