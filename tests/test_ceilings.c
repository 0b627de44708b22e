// The ceiling kernels compute what they should (on the emulator, at small size), the measuring runs through
// on a driver that only keeps books, and what was measured is kept and found again.
#define _DEFAULT_SOURCE // mkdtemp, setenv
#include "check.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/cli_ceilings.h"
#include "fake_cuda.h"
#include "measure/ceilings_run.h"

static const char *program;

// ---- the kernels ----

typedef struct Rig {
  SolDriver *driver;
  CeilingRun r;
} Rig;

static bool start(Rig *g, const char *name) {
  SolError err = {0};
  const SolDevice *device = NULL;
  if (!CHECK(!sol_device_find(name, &device, &err))) return false;
  SolDriverOptions options = {.backend = SOL_BACKEND_EMU, .device = device, .workers = 2};
  if (!CHECK_MSG(!sol_driver_open(&options, &g->driver, &err), "%s", err.message)) return false;
  SolStatus status = ceiling_open(&g->r, g->driver, 2 << 20, &err);
  if (status == SOL_ERR_UNSUPPORTED) { // built without nvcc
    check_skip("%s", err.message);
    sol_driver_close(g->driver);
    return false;
  }
  return CHECK_MSG(!status, "%s", err.message);
}

static void stop(Rig *g) {
  ceiling_close(&g->r);
  sol_driver_close(g->driver);
}

static void launch(Rig *g, const SolDriverLaunch *launch) {
  SolError err = {0};
  SolEmuResult result = {0};
  CHECK_MSG(!sol_driver_launch(g->driver, launch, &result, NULL, &err), "%s", err.message);
  CHECK_INT(result.end, SOL_EMU_DONE);
  CHECK_INT(result.finding_count, 0);
  sol_emu_result_free(&result);
}

enum { PIECES = 5000 }; // of 16 bytes: no whole number of blocks

static void fill(Rig *g, uint32_t *words) {
  SolError err = {0};
  for (uint32_t i = 0; i < PIECES * 4; i++) words[i] = i * 2654435761u;
  CHECK(!sol_driver_write(g->driver, g->r.in, words, PIECES * 16, &err));
  CHECK(!sol_driver_write(g->driver, g->r.buffer, words, 16, &err)); // some of it is initialised
}

static void stream(Rig *g, CeilingKernel kernel, uint64_t blocks, uint32_t repeat, uint32_t *out) {
  SolError err = {0};
  SolDriverLaunch l;
  CeilingStream p = {.in = g->r.in, .out = g->r.buffer, .n = PIECES, .repeat = repeat, .keep = 1};
  ceiling_launch_stream(&g->r, kernel, &p, blocks, &l);
  launch(g, &l);
  CHECK(!sol_driver_read(g->driver, out, g->r.buffer, PIECES * 16, &err));
}

TEST(streams) {
  static const char *const devices[] = {"h200", "a100"}; // PTX of both generations
  static uint32_t in[PIECES * 4], out[PIECES * 4];
  const uint64_t whole = (PIECES + CEILING_BLOCK - 1) / CEILING_BLOCK;
  for (size_t d = 0; d < 2; d++) {
    Rig g;
    if (!start(&g, devices[d])) return;
    fill(&g, in);
    stream(&g, CEILING_COPY_ONCE, whole, 1, out);
    CHECK(memcmp(in, out, sizeof in) == 0);
    stream(&g, CEILING_WRITE_ONCE, whole, 1, out);
    for (uint32_t i = 0; i < PIECES; i++)
      CHECK(out[4 * i] == i && out[4 * i + 1] == 1 && out[4 * i + 3] == 3);
    stream(&g, CEILING_READ_ONCE, whole, 1, out);
    CHECK(memcmp(in, out, sizeof in) == 0);
    stream(&g, CEILING_WRITE, 3, 2, out);
    for (uint32_t i = 0; i < PIECES; i++)
      CHECK(out[4 * i] == i && out[4 * i + 1] == 1 && out[4 * i + 2] == 2);
    stream(&g, CEILING_COPY, 3, 2, out);
    CHECK(memcmp(in, out, sizeof in) == 0);
    stream(&g, CEILING_READ, 3, 1, out); // each of 768 threads has the sum of its pieces
    for (uint32_t t = 0; t < 3 * CEILING_BLOCK; t++)
      for (uint32_t w = 0; w < 4; w++) {
        uint32_t sum = 0;
        for (uint32_t i = t; i < PIECES; i += 3 * CEILING_BLOCK) sum ^= in[4 * i + w];
        CHECK(out[4 * t + w] == sum);
      }
    stop(&g);
  }
}

static CeilingWork work_of(const Rig *g, uint32_t steps) {
  return (CeilingWork){.in = g->r.in, .out = g->r.buffer, .clocks = g->r.clocks, .steps = steps, .keep = 1};
}

TEST(arithmetic) {
  static const char *const devices[] = {"h200", "t4"};
  for (size_t d = 0; d < 2; d++) {
    Rig g;
    SolError err = {0};
    SolDriverLaunch l;
    static float out[2 * CEILING_BLOCK];
    if (!start(&g, devices[d])) return;
    CeilingWork p = work_of(&g, 50);
    p.scale = 1, p.add = 2; // x + 100 in each of the chains 0 ... 7
    ceiling_launch_work(&g.r, CEILING_FMA, &p, 2, CEILING_BLOCK, &l);
    launch(&g, &l);
    CHECK(!sol_driver_read(g.driver, out, g.r.buffer, sizeof out, &err));
    for (int i = 0; i < 2 * CEILING_BLOCK; i++) CHECK(out[i] == 8 * 100 + 28);
    ceiling_launch_work(&g.r, CEILING_MMA, &p, 2, CEILING_BLOCK, &l);
    launch(&g, &l);
    CHECK(!sol_driver_read(g.driver, out, g.r.buffer, sizeof out, &err));
    // 4 chains of 4 values, each 50 times the K that ceiling_mma_flops counts.
    double k = ceiling_mma_flops(&g.r) / (2 * 16 * 8);
    for (int i = 0; i < 2 * CEILING_BLOCK; i++) CHECK((double)out[i] == 16 * 50 * k);
    stop(&g);
  }
}

TEST(shared) {
  Rig g;
  SolError err = {0};
  SolDriverLaunch l;
  enum { STEPS = 37 };
  static uint32_t out[CEILING_SHARED_THREADS * 4];
  if (!start(&g, "h200")) return;
  CeilingWork p = work_of(&g, STEPS);
  ceiling_launch_work(&g.r, CEILING_SHARED, &p, 1, CEILING_SHARED_THREADS, &l);
  launch(&g, &l);
  CHECK(!sol_driver_read(g.driver, out, g.r.buffer, sizeof out, &err));
  for (uint32_t t = 0; t < CEILING_SHARED_THREADS; t++)
    for (uint32_t w = 0; w < 4; w++) {
      uint32_t sum = 0;
      for (uint32_t i = 0; i < STEPS; i++) sum ^= (t + 32 * i) % CEILING_SHARED_THREADS + w;
      CHECK(out[4 * t + w] == sum);
    }
  stop(&g);
}

// A chain is one cycle through all of its lines, and a walk ends where it should.
TEST(chases) {
  Rig g;
  SolError err = {0};
  SolDriverLaunch l;
  enum { LINES = 256 };
  static uint32_t next[LINES * 32];
  if (!start(&g, "h200")) return;
  CHECK(!ceiling_chain(&g.r, LINES * 128, &err));
  CHECK(!sol_driver_read(g.driver, next, g.r.in, sizeof next, &err));
  uint32_t at = 0, steps = 0;
  do at = next[at], steps++;
  while (at && steps <= LINES);
  CHECK_INT(steps, LINES);
  static const CeilingKernel kernels[] = {CEILING_CHASE_L1, CEILING_CHASE_L2, CEILING_CHASE_SHARED};
  for (size_t i = 0; i < 3; i++) {
    uint64_t clocks[4] = {0, 0, 0, 0};
    bool shared = kernels[i] == CEILING_CHASE_SHARED;
    CeilingWork p = work_of(&g, 20);
    p.warm = shared ? 0 : 10;
    CHECK(!sol_driver_write(g.driver, g.r.clocks, clocks, sizeof clocks, &err));
    uint32_t want = 0;
    for (int walk = 0; walk < 2; walk++) { // the second goes on where the first ended
      ceiling_launch_work(&g.r, kernels[i], &p, 1, 1, &l);
      launch(&g, &l);
      for (uint32_t s = 0; s < p.warm + p.steps; s++) want = shared ? (want + 33) % 256 : next[want];
      CHECK(!sol_driver_read(g.driver, clocks, g.r.clocks, sizeof clocks, &err));
      CHECK_INT(clocks[2], want);
    }
  }
  CHECK(ceiling_chain(&g.r, 64 << 20, &err)); // more than the buffer has
  stop(&g);
}

TEST(launches_and_the_emulator_is_not_measured) {
  Rig g;
  SolError err = {0};
  SolDriverLaunch l;
  Ceilings c;
  uint64_t clocks[4] = {0};
  if (!start(&g, "h200")) return;
  CeilingWork p = work_of(&g, 1);
  CHECK(!sol_driver_write(g.driver, g.r.clocks, clocks, sizeof clocks, &err));
  ceiling_launch_work(&g.r, CEILING_LEAST, &p, 1, 32, &l);
  launch(&g, &l);
  ceiling_launch_work(&g.r, CEILING_EARLY, &p, 1, 32, &l);
  launch(&g, &l);
  CHECK(!sol_driver_read(g.driver, clocks, g.r.clocks, sizeof clocks, &err));
  CHECK_INT(clocks[3], 2); // each has added one
  CHECK_INT(ceilings_measure(g.driver, 0, &c, &err), SOL_ERR_UNSUPPORTED);
  stop(&g);
}

// ---- measuring ----

TEST(all_of_it_on_a_fake_driver) {
  FakeCuda *fake = fake_open(program);
  SolError err = {0};
  Ceilings c;
  SolDriver *driver = NULL;
  if (!CHECK_MSG(fake != NULL, "tests/fake/libcuda.so.1 is missing")) return;
  fake->cc = 90, fake->sms = 4;
  SolDriverOptions options = {.backend = SOL_BACKEND_CUDA};
  if (!CHECK_MSG(!sol_driver_open(&options, &driver, &err), "%s", err.message)) return;
  SolStatus status = ceilings_measure(driver, 64 << 20, &c, &err);
  CHECK_MSG(!status || status == SOL_ERR_UNSUPPORTED, "%s", err.message);
  if (!status) {
    CHECK_STR(c.name, "fake GPU 0");
    CHECK_STR(c.uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    CHECK_INT(c.units, 4);
    CHECK(fake->launches > 1000);
    CHECK_INT(fake->violations, 0);
    CHECK_INT(fake->allocations, 0);
    CHECK_INT(fake->capturing, 0);
  } else
    check_skip("%s", err.message);
  sol_driver_close(driver);
}

// Two GPUs and an NCCL of two ranks: copies one way and both ways, and sums.
TEST(links_on_a_fake_driver) {
  FakeCuda *fake = fake_open(program);
  SolError err = {0};
  Ceilings c;
  char nccl[4096];
  const char *slash = strrchr(program, '/');
  if (!CHECK_MSG(fake != NULL, "tests/fake/libcuda.so.1 is missing")) return;
  ceilings_clear(&c);
  setenv("SOL_NCCL", "/nowhere/libnccl.so.2", 1);
  CHECK_INT(ceilings_measure_links(1 << 16, &c, &err), SOL_ERR_UNSUPPORTED);
  CHECK_HAS(err.message, "NCCL is not here");
  CHECK(c.gpus == 2 && c.values[CEILING_link_send] > 0 && c.values[CEILING_link_both] > 0);
  CHECK(c.values[CEILING_nccl_sum] != c.values[CEILING_nccl_sum]);
  snprintf(nccl, sizeof nccl, "%.*s/fake/libnccl.so.2", slash ? (int)(slash - program) : 1,
           slash ? program : ".");
  setenv("SOL_NCCL", nccl, 1);
  CHECK_MSG(!ceilings_measure_links(1 << 16, &c, &err), "%s", err.message);
  CHECK(c.values[CEILING_nccl_sum] > 0 && c.values[CEILING_nccl_sum_us] > 0);
  CHECK(fake->calls[FAKE_enable_peer] == 4 && fake->calls[FAKE_copy_peer] > 0);
  CHECK_INT(fake->allocations, 0);
  CHECK_INT(fake->contexts[0].retained + fake->contexts[1].retained, 0);
  unsetenv("SOL_NCCL");
}

TEST(the_cpu) {
  Ceilings c;
  SolError err = {0};
  CHECK_MSG(!ceilings_measure_cpu(16 << 20, &c, &err), "%s", err.message);
  CHECK(c.cpu && c.units >= 1 && c.name[0]);
  CHECK(c.values[CEILING_dram_read] > 0 && c.values[CEILING_dram_read] < 1e14);
  CHECK(c.values[CEILING_dram_copy] > 0 && c.values[CEILING_fp32] > 0);
  CHECK(!(c.values[CEILING_launch_us] > 0));
}

// ---- keeping ----

static Ceilings sample(const char *name, const char *uuid) {
  Ceilings c;
  ceilings_clear(&c);
  snprintf(c.name, sizeof c.name, "%s", name);
  snprintf(c.uuid, sizeof c.uuid, "%s", uuid);
  snprintf(c.date, sizeof c.date, "2026-11-15");
  c.units = 132;
  c.values[CEILING_dram_copy] = 4.25e12, c.spreads[CEILING_dram_copy] = 0.01;
  c.values[CEILING_launch_us] = 2.5, c.values[CEILING_l2_latency] = 287.5;
  return c;
}

TEST(written_and_read) {
  Ceilings c = sample("NVIDIA H200", "GPU-1"), back;
  SolBuffer text = {0};
  SolError err = {0};
  ceilings_write(&c, &text);
  if (!CHECK(text.text)) return;
  CHECK_MSG(!ceilings_read(text.text, text.length, &back, &err), "%s", err.message);
  CHECK_STR(back.name, c.name);
  CHECK_STR(back.uuid, c.uuid);
  CHECK_INT(back.units, 132);
  CHECK_NEAR(back.values[CEILING_dram_copy], 4.25e12, 0);
  CHECK_NEAR(back.values[CEILING_l2_latency], 287.5, 0);
  CHECK(back.values[CEILING_fp32] != back.values[CEILING_fp32]);
  for (size_t cut = 0; cut + 2 < text.length; cut++)
    CHECK_MSG(ceilings_read(text.text, cut, &back, &err), "cut at %zu it was read", cut);
  sol_buffer_free(&text);
  static const char *const bad[] = {"{}", "[]", "{\"schema\": 2, \"measured\": {}}", "3"};
  for (size_t i = 0; i < 4; i++) CHECK(ceilings_read(bad[i], strlen(bad[i]), &back, &err));
  const char *odd =
      "{\"schema\": 1, \"measured\": {\"dram_copy\": -5, \"fp32\": \"x\", \"l2_read\": 0}, \"sms\": 1e99}";
  CHECK(!ceilings_read(odd, strlen(odd), &back, &err));
  for (int i = 0; i < CEILINGS; i++) CHECK(back.values[i] != back.values[i]);
}

TEST(in_the_place_of_published_figures) {
  Ceilings c = sample("NVIDIA H200", "GPU-1");
  const SolDevice *row = NULL;
  SolDevice device;
  sol_device_find("h200", &row, NULL);
  ceilings_device(&c, row, "here", &device);
  CHECK_NEAR(device.mem_copy.value, 4.25e12, 0);
  CHECK_STR(device.mem_copy.source, "here");
  CHECK_NEAR(device.launch_us.value, 2.5, 0);
  CHECK_NEAR(device.l2_latency.value, 287.5, 0);
  CHECK_NEAR(device.mem_bandwidth.value, row->mem_bandwidth.value, 0); // the datasheet's stays
  CHECK_NEAR(device.peak_fp32.value, row->peak_fp32.value, 0);         // not measured
  CHECK_STR(device.peak_fp32.source, row->peak_fp32.source);
}

TEST(kept_and_found) {
  char folder[] = "/tmp/sol-ceilings-XXXXXX", path[512];
  SolError err = {0};
  Ceilings found;
  if (!CHECK(mkdtemp(folder))) return;
  setenv("XDG_CACHE_HOME", folder, 1);
  CHECK(!cli_ceilings_find("", "", &found));
  Ceilings a = sample("NVIDIA H200", "GPU-a"), b = sample("NVIDIA L4", "GPU-b/../x"), cpu = sample("CPU", "");
  cpu.cpu = true;
  CHECK_MSG(!cli_ceilings_store(&a, path, sizeof path, &err), "%s", err.message);
  CHECK_HAS(path, "/sol/devices/GPU-a.json");
  CHECK(!cli_ceilings_store(&b, path, sizeof path, &err));
  CHECK_HAS(path, "/sol/devices/GPU-b____x.json"); // stays in the folder
  CHECK(!cli_ceilings_store(&cpu, path, sizeof path, &err));
  CHECK(cli_ceilings_find("GPU-a", "", &found) && strcmp(found.name, "NVIDIA H200") == 0);
  CHECK(cli_ceilings_find("", "NVIDIA L4", &found) && strcmp(found.uuid, "GPU-b/../x") == 0);
  CHECK(!cli_ceilings_find("GPU-c", "", &found));
  CHECK(cli_ceilings_find_cpu(&found) && found.cpu);
  char broken[600];
  snprintf(broken, sizeof broken, "%s/sol/devices/GPU-a.json", folder);
  FILE *f = fopen(broken, "w");
  if (CHECK(f)) fputs("{\"schema\": 1, \"mea", f), fclose(f);
  CHECK(!cli_ceilings_find("GPU-a", "", &found)); // not taken for one
  Cli cli = {0};
  const SolDevice *device = NULL;
  CHECK_MSG(!cli_ceilings_this_device(&cli, &device, &err), "%s", err.message);
  CHECK_STR(device ? device->id : "", "l4");
  CHECK_HAS(device ? device->launch_us.source : "", "measured on this machine, 2026-11-15");
  sol_arena_free(&cli.arena);
  setenv("XDG_CACHE_HOME", "relative", 1); // to be ignored
  setenv("HOME", folder, 1);
  CHECK(cli_ceilings_folder(path, sizeof path));
  CHECK_HAS(path, "/.cache/sol/devices");
  unsetenv("HOME");
  CHECK(!cli_ceilings_folder(path, sizeof path));
  CHECK(cli_ceilings_store(&a, path, sizeof path, &err));
  CHECK_HAS(err.hint, "XDG_CACHE_HOME");
  char command[600];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  CHECK(system(command) == 0);
}

int main(int argc, char **argv) {
  program = argc ? argv[0] : "";
  return check_main(argc, argv);
}
