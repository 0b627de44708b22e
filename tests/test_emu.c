// The emulator's core on small PTX texts: results, exact counts, findings, limits, the same for any number of
// workers.
#include "check.h"

#include "emu/emu.h"

#define HEADER ".version 8.0\n.target sm_90\n.address_size 64\n"

typedef struct Machine {
  SolEmu *emu;
  SolEmuModule *module;
  SolEmuResult result;
  SolError err;
  char printed[4096];
} Machine;

static bool start(Machine *m, const char *text, SolEmuMachine config) {
  memset(m, 0, sizeof *m);
  if (!config.workers) config.workers = 2;
  if (!CHECK_INT(sol_emu_create(&config, &m->emu, &m->err), SOL_OK)) return false;
  SolStatus status =
      sol_emu_load(m->emu, &(SolPtxSource){"test.ptx", text, strlen(text)}, 1, &m->module, &m->err);
  return CHECK_MSG(status == SOL_OK, "line %d: %s", m->err.line, m->err.message);
}

static void stop(Machine *m) {
  sol_emu_result_free(&m->result);
  sol_emu_destroy(m->emu);
}

static uint64_t buffer(Machine *m, uint64_t bytes, const char *label) {
  uint64_t address = 0;
  CHECK_INT(sol_emu_alloc(m->emu, bytes, label, &address, &m->err), SOL_OK);
  return address;
}

static uint32_t *words(Machine *m, uint64_t address, uint64_t count) {
  return sol_emu_host(m->emu, address, count * 4);
}

static void keep(void *ctx, const char *text, size_t length) {
  Machine *m = ctx;
  size_t at = strlen(m->printed);
  if (at + length < sizeof m->printed) memcpy(m->printed + at, text, length);
}

// Far more than any launch here takes, that of a deadlock included: ends one that would run for ever.
#define MOST_INSTRUCTIONS UINT64_C(4000000000)

static SolStatus run(Machine *m, SolEmuLaunch launch, uint32_t grid, uint32_t block, const void *args,
                     size_t bytes) {
  launch.kernel = sol_emu_kernel_at(m->module, 0);
  launch.grid[0] = grid, launch.block[0] = block;
  for (int k = 1; k < 3; k++) launch.grid[k] = launch.block[k] = 1;
  launch.params = args;
  launch.param_bytes = bytes;
  launch.print = keep;
  launch.print_ctx = m;
  if (!launch.max_instructions && !launch.max_seconds) launch.max_instructions = MOST_INSTRUCTIONS;
  return sol_emu_launch(m->emu, &launch, &m->result, &m->err);
}
#define RUN(m, launch, grid, block, args)                                                                    \
  CHECK_INT(run(m, launch, grid, block, &(args), sizeof(args)), SOL_OK)

// The first finding's text, "" where there is none.
static const char *finding(const Machine *m) {
  return m->result.finding_count ? m->result.findings[0].message : "";
}

static const char add_text[] = HEADER
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {\n"
    "  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p; .reg .f32 %f<4>;\n"
    "  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "  mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.s32 %p, %r5, %r1;\n"
    "  @%p bra done;\n"
    "  mul.wide.s32 %rd4, %r5, 4;\n"
    "  add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;\n"
    "  ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6];\n"
    "  add.f32 %f3, %f1, %f2;\n"
    "  st.global.f32 [%rd7], %f3;\n"
    "done: ret;\n}\n";

typedef struct AddArgs {
  uint64_t a, b, c;
  uint32_t n;
} AddArgs;

static AddArgs add_args(Machine *m, uint32_t n) {
  AddArgs args = {buffer(m, n * 4, "a"), buffer(m, n * 4, "b"), buffer(m, n * 4, "c"), n};
  float *a = sol_emu_host(m->emu, args.a, n * 4), *b = sol_emu_host(m->emu, args.b, n * 4);
  for (uint32_t i = 0; i < n; i++) a[i] = (float)i, b[i] = (float)(2 * i);
  return args;
}

TEST(adds_vectors_and_counts_exactly) {
  Machine m;
  if (!start(&m, add_text, (SolEmuMachine){0})) return;
  AddArgs args = add_args(&m, 1000);
  RUN(&m, (SolEmuLaunch){0}, 4, 256, args);
  CHECK_INT(m.result.end, SOL_EMU_DONE);
  CHECK_STR(finding(&m), "");
  const float *c = sol_emu_host(m.emu, args.c, 4000);
  int wrong = 0;
  for (int i = 0; i < 1000; i++) wrong += c[i] != (float)(3 * i);
  CHECK_INT(wrong, 0);
  // 32 warps; the last has 8 lanes of 1000. Each load: 31 whole requests of 4 sectors, and one of 1.
  const SolEmuCounts *loads = &m.result.kinds[SOL_EMU_KIND_GLOBAL_LOAD],
                     *stores = &m.result.kinds[SOL_EMU_KIND_GLOBAL_STORE];
  CHECK_INT(loads->requests, 64);
  CHECK_INT(loads->sectors, 2 * (31 * 4 + 1));
  CHECK_INT(loads->sectors_ideal, 2 * (31 * 4 + 1));
  CHECK_INT(loads->bytes, 8000);
  CHECK_INT(stores->requests, 32);
  CHECK_INT(stores->sectors, 31 * 4 + 1);
  CHECK_INT(m.result.total.divergent, 1);
  CHECK_INT(m.result.blocks, 4);
  CHECK_INT(m.result.threads, 1024);
  // Nine instructions before the branch and the return are run by all 1024 threads, the branch by the 24 for
  // which its guard holds, the other eight by 1000.
  CHECK_INT(m.result.total.lanes, 1024 * 10 + 24 + 1000 * 8);
  stop(&m);
}

TEST(counts_do_not_depend_on_workers_or_ranges) {
  SolEmuCounts first = {0};
  for (int workers = 1; workers <= 3; workers++) {
    Machine m;
    if (!start(&m, add_text, (SolEmuMachine){.workers = workers})) return;
    AddArgs args = add_args(&m, 100000);
    RUN(&m, (SolEmuLaunch){0}, 391, 256, args);
    if (workers == 1) first = m.result.total;
    CHECK(memcmp(&first, &m.result.total, sizeof first) == 0);
    stop(&m);
  }
  Machine m;
  if (!start(&m, add_text, (SolEmuMachine){0})) return;
  AddArgs args = add_args(&m, 100000);
  RUN(&m, ((SolEmuLaunch){.first_block = 0, .last_block = 100}), 391, 256, args);
  CHECK_INT(m.result.blocks, 100);
  RUN(&m, ((SolEmuLaunch){.first_block = 100, .last_block = 391}), 391, 256, args);
  CHECK_INT(m.result.blocks, 391);
  CHECK_INT(m.result.total.lanes, first.lanes);
  CHECK_INT(m.result.total.requests, first.requests);
  CHECK_INT(m.result.total.sectors, first.sectors);
  stop(&m);
}

// Each block waits for the one before: how often it asks is the same in every run.
TEST(counts_of_blocks_that_wait_do_not_depend_on_workers) {
  static const char text[] =
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry chain(.param .u64 p)\n{\n .reg .b32 %r<4>;\n .reg .b64 %rd<3>;\n .reg .pred %q;\n"
      " ld.param.u64 %rd1, [p];\n mov.u32 %r1, %ctaid.x;\n mul.wide.u32 %rd2, %r1, 4;\n"
      " add.u64 %rd1, %rd1, %rd2;\nagain:\n ld.volatile.global.u32 %r2, [%rd1];\n"
      " setp.eq.u32 %q, %r2, 0;\n @%q bra again;\n add.u32 %r3, %r2, 1;\n"
      " st.volatile.global.u32 [%rd1+4], %r3;\n ret;\n}\n";
  enum { BLOCKS = 500 };
  SolEmuCounts first = {0};
  for (int turn = 0; turn < 6; turn++) {
    Machine m;
    if (!start(&m, text, (SolEmuMachine){.workers = turn ? 3 : 1, .sms = 8})) return;
    uint64_t flags = buffer(&m, 4 * (BLOCKS + 1), "flags");
    words(&m, flags, 1)[0] = 1;
    RUN(&m, (SolEmuLaunch){0}, BLOCKS, 32, flags);
    CHECK_INT(m.result.end, SOL_EMU_DONE);
    CHECK_INT(words(&m, flags, BLOCKS + 1)[BLOCKS], BLOCKS + 1);
    if (!turn) first = m.result.total;
    CHECK_INT(m.result.total.requests, first.requests);
    CHECK_INT(m.result.total.executions, first.executions);
    stop(&m);
  }
}

// Reads 800000 bytes and writes 400000; what the results say of DRAM and L2 is the same for any number of workers.
TEST(l2_keeps_its_contents_where_a_launch_asks_for_it) {
  SolEmuLaunch kept = {.keep_l2 = true}, cold = {0}, sample = {.keep_l2 = true, .sample_waves = 4};
  SolEmuResult first = {0};
  for (int workers = 1; workers <= 3; workers++) {
    Machine m;
    if (!start(&m, add_text, (SolEmuMachine){.workers = workers, .sms = 4, .blocks_per_sm = 2})) return;
    const SolEmuResult *r = &m.result;
    AddArgs args = add_args(&m, 100000);
    RUN(&m, kept, 391, 256, args);
    CHECK(r->total.dram_read == 800000 && r->total.dram_write == 0 && r->left_dirty == 400000);
    RUN(&m, kept, 391, 256, args);
    CHECK(r->total.dram_read == 800000 && r->earlier.found[1] == 800000 && r->left_dirty == 800000);
    sol_emu_l2_use(m.emu, SOL_L2_FREES, args.a, 400000);
    RUN(&m, kept, 391, 256, args);
    CHECK(r->total.dram_read == 1200000 &&
          r->earlier.found[2] == 400000); // b was brought by the first launch
    RUN(&m, cold, 391, 256, args);
    CHECK(r->total.dram_read == 2000000 && r->earlier.found[1] == 800000);
    RUN(&m, sample, 391, 256, args);
    CHECK(r->earlier.found[1] == 800000);
    uint64_t before = r->total.dram_read;
    RUN(&m, kept, 391, 256, args); // what the sample left is not what the whole would have
    CHECK(r->total.dram_read == before + 800000 && r->earlier.found[1] == 800000);
    if (workers == 1) first = *r;
    CHECK(memcmp(&first.total, &r->total, sizeof first.total) == 0);
    CHECK(memcmp(&first.earlier, &r->earlier, sizeof first.earlier) == 0 &&
          first.left_dirty == r->left_dirty);
    stop(&m);
  }
}

static const SolL2Config small_l2 = {
    .bytes = 1 << 20, .usable_percent = 70, .dirty_percent = 45, .partial_percent = 10, .dram_bytes = 64};

// With an L2 of 1 MiB: the second launch, on other memory, evicts what the first left dirty.
TEST(a_launch_writes_back_what_earlier_ones_left) {
  uint64_t first = 0;
  for (int workers = 1; workers <= 3; workers++) {
    Machine m;
    if (!start(&m, add_text, (SolEmuMachine){.workers = workers, .l2 = small_l2})) return;
    AddArgs a = add_args(&m, 50000), b = add_args(&m, 200000);
    RUN(&m, (SolEmuLaunch){.keep_l2 = true}, 196, 256, a);
    uint64_t left = m.result.left_dirty;
    CHECK(left > 100000 && left + m.result.total.dram_write == 200000);
    RUN(&m, (SolEmuLaunch){.keep_l2 = true}, 782, 256, b);
    CHECK_INT(m.result.earlier.written[1], left);
    CHECK_INT(m.result.left_dirty - left + m.result.total.dram_write, 800000 + 200000 - left);
    if (workers == 1) first = m.result.total.dram_write;
    CHECK_INT(m.result.total.dram_write, first);
    CHECK(m.result.left_dirty - left <= m.result.dirty_limit);
    stop(&m);
  }
}

// An array of 100 KB in a window, then 2.4 MB of other data, then the array again; L2 has 1 MiB.
static uint64_t read_again(SolL2Window window, uint64_t set_aside, bool reset) {
  Machine m;
  if (!start(&m, add_text, (SolEmuMachine){.l2 = small_l2, .l2_persisting = 512 << 10})) return 0;
  AddArgs a = add_args(&m, 25600), others = add_args(&m, 200000);
  window.address = a.a;
  sol_emu_l2_set_aside(m.emu, set_aside);
  SolEmuLaunch launch = {.keep_l2 = true};
  launch.l2_window = window;
  RUN(&m, launch, 100, 256, a);
  if (reset) sol_emu_l2_reset(m.emu);
  RUN(&m, (SolEmuLaunch){.keep_l2 = true}, 782, 256, others);
  uint64_t before = m.result.total.dram_read;
  RUN(&m, (SolEmuLaunch){.keep_l2 = true}, 100, 256, a);
  uint64_t read = m.result.total.dram_read - before;
  stop(&m);
  return read;
}

TEST(a_persisting_window_stays_in_l2) {
  const uint64_t array = 25600 * 4;
  SolL2Window all = {.bytes = array,
                     .hit_permille = 1000,
                     .hit = SOL_L2_PERSISTING,
                     .miss = SOL_L2_STREAMING},
              half = all, streaming = all;
  half.hit_permille = 500;
  streaming.hit = SOL_L2_STREAMING;
  CHECK_INT(read_again((SolL2Window){0}, 1 << 20, false), 2 * array);
  CHECK_INT(read_again(all, 1 << 20, false), array);
  CHECK_INT(read_again(all, 1 << 20, true), 2 * array); // reset
  CHECK_INT(read_again(streaming, 1 << 20, false), 2 * array);
  CHECK_NEAR((double)read_again(half, 1 << 20, false), 1.5 * (double)array, 0.1);
  CHECK_NEAR((double)read_again(all, array / 2, false), 1.5 * (double)array,
             0.1); // half fits into the set-aside
}

TEST(what_ncu_leaves_dirty_is_written_back_by_who_evicts_it) {
  Machine m;
  if (!start(&m, add_text, (SolEmuMachine){.l2 = small_l2, .ncu_dirty = 40000})) return;
  AddArgs args = add_args(&m, 200000);
  uint64_t bytes = sol_emu_ncu_leaves(m.emu);
  CHECK_INT(bytes, 40000);
  RUN(&m, (SolEmuLaunch){.l2_dirty_before = bytes}, 782, 256, args);
  CHECK_INT(m.result.earlier.written[SOL_OLDEST], bytes);
  CHECK_INT(m.result.left_dirty + m.result.total.dram_write, 800000);
  stop(&m);
}

// Each thread calls fib, itself recursive, by address: even lanes fib, odd lanes twice.
static const char call_text[] = HEADER
    ".func (.param .b32 out) twice(.param .b32 n) {\n"
    "  .reg .b32 %r<3>; ld.param.b32 %r1, [n]; shl.b32 %r2, %r1, 1; st.param.b32 [out], %r2; ret;\n}\n"
    ".func (.param .b32 out) fib(.param .b32 n) {\n"
    "  .reg .b32 %r<8>; .reg .pred %p;\n"
    "  ld.param.b32 %r1, [n];\n"
    "  setp.lt.s32 %p, %r1, 2;\n"
    "  @%p bra small;\n"
    "  add.s32 %r2, %r1, -1;\n"
    "  { .param .b32 x; .param .b32 y; st.param.b32 [x], %r2; call (y), fib, (x); ld.param.b32 %r3, [y]; }\n"
    "  add.s32 %r4, %r1, -2;\n"
    "  { .param .b32 x; .param .b32 y; st.param.b32 [x], %r4; call (y), fib, (x); ld.param.b32 %r5, [y]; }\n"
    "  add.s32 %r6, %r3, %r5; st.param.b32 [out], %r6; ret;\n"
    "small: st.param.b32 [out], %r1; ret;\n}\n"
    ".visible .entry calls(.param .u64 y) {\n"
    "  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p;\n"
    "  ld.param.u64 %rd1, [y]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.s32 %p, %r2, 0;\n"
    "  mov.u64 %rd2, fib; mov.u64 %rd3, twice; selp.b64 %rd4, %rd2, %rd3, %p;\n"
    "  rem.u32 %r3, %r1, 11;\n"
    "  { .param .b32 x; .param .b32 z; st.param.b32 [x], %r3;\n"
    "  proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
    "  call (z), %rd4, (x), proto; ld.param.b32 %r4, [z]; }\n"
    "  mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd1, %rd5; st.global.u32 [%rd6], %r4; ret;\n}\n";

TEST(calls_recursively_and_by_address) {
  Machine m;
  if (!start(&m, call_text, (SolEmuMachine){0})) return;
  struct {
    uint64_t y;
  } args = {buffer(&m, 64 * 4, "y")};
  RUN(&m, (SolEmuLaunch){0}, 1, 64, args);
  CHECK_STR(finding(&m), "");
  const uint32_t fib[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55}, *y = words(&m, args.y, 64);
  for (uint32_t t = 0; t < 64; t++) CHECK_INT(y[t], t % 2 ? 2 * (t % 11) : fib[t % 11]);
  stop(&m);
}

// A structure by value, indexed through its address as nvcc compiles it: values of lanes and of nested calls stay apart, and
// what the callee stores in its copy is not seen by the caller.
static const char by_value_text[] = HEADER
    ".func (.param .b32 out) pick(.param .align 4 .b8 s[16], .param .b32 n) {\n"
    "  .local .align 8 .b8 other[8]; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p;\n"
    "  mov.b64 %rd1, s; cvta.local.u64 %rd2, %rd1; cvta.to.local.u64 %rd3, %rd2;\n"
    "  mov.u64 %rd4, other; st.local.u64 [%rd4], -1;\n"
    "  ld.param.b32 %r1, [n]; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd3, %rd5;\n"
    "  ld.local.b32 %r2, [%rd6]; setp.eq.u32 %p, %r1, 0; @%p bra last;\n"
    "  add.s32 %r3, %r1, -1; st.local.b32 [%rd6], 77; ld.local.b32 %r4, [%rd3]; ld.local.b32 %r5, [%rd3+4];\n"
    "  { .param .align 4 .b8 t[16]; .param .b32 m; .param .b32 y; st.param.b32 [t], %r4; st.param.b32 [t+4], %r5;\n"
    "  st.param.b32 [t+8], 5; st.param.b32 [t+12], 6; st.param.b32 [m], %r3; call (y), pick, (t, m); ld.param.b32 %r6, [y]; }\n"
    "  mad.lo.s32 %r2, %r6, 1000, %r2;\n"
    "last: st.param.b32 [out], %r2; ret;\n}\n"
    ".visible .entry picks(.param .u64 y) {\n"
    "  .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
    "  ld.param.u64 %rd1, [y]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; add.s32 %r3, %r1, 100;\n"
    "  { .param .align 4 .b8 t[16]; .param .b32 m; .param .b32 z; st.param.b32 [t], %r1; st.param.b32 [t+4], %r3;\n"
    "  st.param.b32 [t+8], 7; st.param.b32 [t+12], 8; st.param.b32 [m], %r2; call (z), pick, (t, m); ld.param.b32 %r4, [z]; }\n"
    "  mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd1, %rd5; st.global.u32 [%rd6], %r4; ret;\n}\n";

TEST(parameters_whose_address_is_taken) {
  Machine m;
  if (!start(&m, by_value_text, (SolEmuMachine){0})) return;
  struct {
    uint64_t y;
  } args = {buffer(&m, 64 * 4, "y")};
  RUN(&m, (SolEmuLaunch){0}, 1, 64, args);
  CHECK_STR(finding(&m), "");
  const uint32_t *y = words(&m, args.y, 64);
  for (uint32_t t = 0; t < 64; t++) CHECK_INT(y[t], t % 2 ? 1000 * t + 100 + t : t);
  stop(&m);
}

static const char deep_text[] =
    HEADER ".func down(.param .b32 n) {\n"
           "  .local .align 8 .b8 room[1024]; .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
           "  ld.param.b32 %r1, [n]; mov.u64 %rd1, room; st.local.u32 [%rd1], %r1; add.s32 %r2, %r1, 1;\n"
           "  { .param .b32 x; st.param.b32 [x], %r2; call down, (x); }\n  ret;\n}\n"
           ".visible .entry deep() { { .param .b32 x; st.param.b32 [x], 0; call down, (x); } ret; }\n";

TEST(endless_recursion_is_found) {
  Machine m;
  if (!start(&m, deep_text, (SolEmuMachine){.stack_bytes = 65536})) return;
  CHECK_INT(run(&m, (SolEmuLaunch){0}, 1, 32, NULL, 0), SOL_OK);
  CHECK_INT(m.result.end, SOL_EMU_FAULT);
  CHECK_HAS(finding(&m), "stack");
  stop(&m);
}

// y[i] = x[at[0] + i * step], 4 bytes each
static const char read_text[] = HEADER
    ".visible .entry peek(.param .u64 x, .param .u64 y, .param .u64 step) {\n"
    "  .reg .b32 %r<4>; .reg .b64 %rd<9>;\n"
    "  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u64 %rd3, [step];\n"
    "  mov.u32 %r1, %tid.x; cvt.u64.u32 %rd4, %r1; mul.lo.s64 %rd5, %rd4, %rd3; add.s64 %rd6, %rd1, %rd5;\n"
    "  ld.global.u32 %r2, [%rd6];\n"
    "  shl.b64 %rd7, %rd4, 2; add.s64 %rd8, %rd2, %rd7; st.global.u32 [%rd8], %r2; ret;\n}\n";

typedef struct PeekArgs {
  uint64_t x, y, step;
} PeekArgs;

TEST(bad_addresses_are_named) {
  Machine m;
  if (!start(&m, read_text, (SolEmuMachine){0})) return;
  PeekArgs args = {buffer(&m, 100, "short one"), buffer(&m, 128, "y"), 4};
  RUN(&m, (SolEmuLaunch){0}, 1, 32, args);
  CHECK_INT(m.result.end, SOL_EMU_FAULT);
  CHECK_HAS(finding(&m), "out of bounds: read of 4 bytes");
  CHECK_HAS(finding(&m), "0 bytes past the end of short one of 100 bytes");
  CHECK_HAS(finding(&m), "block (0,0,0) thread (25,0,0)");
  CHECK_HAS(finding(&m), "test.ptx:");
  CHECK_INT(m.result.findings[0].times, 7);
  sol_emu_result_free(&m.result);
  args.step = 2;
  RUN(&m, (SolEmuLaunch){0}, 1, 32, args);
  CHECK_HAS(finding(&m), "misaligned");
  sol_emu_result_free(&m.result);
  args.step = 4, args.x = 0;
  RUN(&m, (SolEmuLaunch){0}, 1, 32, args);
  CHECK_HAS(finding(&m), "null pointer");
  sol_emu_result_free(&m.result);
  args.x = buffer(&m, 4096, "gone");
  CHECK_INT(sol_emu_free(m.emu, args.x, &m.err), SOL_OK);
  CHECK_INT(sol_emu_free(m.emu, args.x, &m.err), SOL_ERR_ARGUMENT);
  RUN(&m, (SolEmuLaunch){0}, 1, 32, args);
  CHECK_HAS(finding(&m), "use after free");
  CHECK_HAS(finding(&m), "gone");
  stop(&m);
}

TEST(going_on_past_findings_reads_zero) {
  Machine m;
  if (!start(&m, read_text, (SolEmuMachine){0})) return;
  PeekArgs args = {buffer(&m, 64, "x"), buffer(&m, 128, "y"), 4};
  for (int i = 0; i < 16; i++) words(&m, args.x, 16)[i] = 7;
  for (int i = 0; i < 32; i++) words(&m, args.y, 32)[i] = 9;
  RUN(&m, (SolEmuLaunch){.keep_going = true}, 1, 32, args);
  CHECK_INT(m.result.end, SOL_EMU_DONE);
  CHECK_INT(m.result.finding_count, 1);
  for (int i = 0; i < 32; i++) CHECK_INT(words(&m, args.y, 32)[i], i < 16 ? 7 : 0);
  stop(&m);
}

TEST(memory_never_written_is_found_when_asked) {
  Machine m;
  if (!start(&m, read_text, (SolEmuMachine){.track_init = true})) return;
  PeekArgs args = {buffer(&m, 128, "x"), buffer(&m, 128, "y"), 4};
  uint32_t some[30] = {0};
  CHECK_INT(sol_emu_write(m.emu, args.x, some, sizeof some, &m.err), SOL_OK);
  RUN(&m, ((SolEmuLaunch){.checks = SOL_EMU_CHECK_INIT, .keep_going = true}), 1, 32, args);
  CHECK_HAS(finding(&m), "uninitialised");
  CHECK_INT(m.result.findings[0].times, 2);
  sol_emu_result_free(&m.result);
  // What the kernel wrote counts as written.
  args.x = args.y;
  RUN(&m, (SolEmuLaunch){.checks = SOL_EMU_CHECK_INIT}, 1, 32, args);
  CHECK_STR(finding(&m), "");
  stop(&m);
}

// Threads below `n` wait at a barrier that expects the whole block; the others at another.
static const char wait_text[] =
    HEADER ".visible .entry halves(.param .u32 n) {\n"
           "  .reg .b32 %r<3>; .reg .pred %p;\n"
           "  ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; setp.lt.u32 %p, %r2, %r1;\n"
           "  @%p bra low;\n  bar.sync 1; ret;\nlow: bar.sync 0; ret;\n}\n";

TEST(a_deadlock_is_reported) {
  Machine m;
  if (!start(&m, wait_text, (SolEmuMachine){0})) return;
  uint32_t n = 64;
  RUN(&m, (SolEmuLaunch){0}, 3, 128, n);
  CHECK_INT(m.result.end, SOL_EMU_FAULT);
  CHECK_HAS(finding(&m), "deadlock: 12 warps wait for ever, the first for a barrier");
  sol_emu_result_free(&m.result);
  n = 0; // all at the same one
  RUN(&m, (SolEmuLaunch){0}, 3, 128, n);
  CHECK_INT(m.result.end, SOL_EMU_DONE);
  CHECK_STR(finding(&m), "");
  stop(&m);
}

// One warp waits for a word that nobody writes.
static const char spin_text[] = HEADER
    ".visible .entry spin(.param .u64 y) {\n"
    "  .reg .b32 %r<3>; .reg .pred %p; .reg .b64 %rd<2>;\n"
    "  ld.param.u64 %rd1, [y];\n"
    "again: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p, %r1, 0;\n  @%p bra again;\n  ret;\n}\n";

TEST(waiting_for_what_nobody_writes_is_a_deadlock) {
  Machine m;
  if (!start(&m, spin_text, (SolEmuMachine){0})) return;
  uint64_t y = buffer(&m, 4, "y");
  RUN(&m, (SolEmuLaunch){.no_counts = true}, 1, 32, y);
  CHECK_INT(m.result.end, SOL_EMU_FAULT);
  CHECK_HAS(finding(&m), "deadlock: 1 warps wait for ever, the first for memory to change");
  stop(&m);
}

static const char loop_text[] = HEADER ".visible .entry forever() {\nagain: bra again;\n}\n";

TEST(limits_end_a_launch) {
  Machine m;
  bool interrupt = true;
  if (!start(&m, loop_text, (SolEmuMachine){0})) return;
  CHECK_INT(run(&m, (SolEmuLaunch){.max_instructions = 100000}, 4, 64, NULL, 0), SOL_OK);
  CHECK_INT(m.result.end, SOL_EMU_INSTRUCTION_LIMIT);
  CHECK_INT(run(&m, (SolEmuLaunch){.max_seconds = 0.05}, 4, 64, NULL, 0), SOL_OK);
  CHECK_INT(m.result.end, SOL_EMU_TIME_LIMIT);
  CHECK_INT(run(&m, (SolEmuLaunch){.interrupt = &interrupt}, 4, 64, NULL, 0), SOL_OK);
  CHECK_INT(m.result.end, SOL_EMU_INTERRUPTED);
  stop(&m);
}

TEST(launches_that_cannot_start_are_refused) {
  Machine m;
  if (!start(&m, add_text, (SolEmuMachine){0})) return;
  AddArgs args = {0};
  CHECK_INT(run(&m, (SolEmuLaunch){0}, 0, 32, &args, sizeof args), SOL_ERR_ARGUMENT);
  CHECK_INT(run(&m, (SolEmuLaunch){0}, 1, 1025, &args, sizeof args), SOL_ERR_ARGUMENT);
  CHECK_INT(run(&m, (SolEmuLaunch){0}, 1, 32, &args, 8), SOL_ERR_ARGUMENT);
  CHECK_HAS(m.err.message, "28 bytes of parameters");
  CHECK_INT(run(&m, (SolEmuLaunch){.dynamic_shared = 1 << 20}, 1, 32, &args, sizeof args), SOL_ERR_ARGUMENT);
  CHECK_INT(run(&m, (SolEmuLaunch){.cluster = {3, 1, 1}}, 4, 32, &args, sizeof args), SOL_ERR_ARGUMENT);
  CHECK_INT(run(&m, (SolEmuLaunch){.cooperative = true}, 1000000, 1024, &args, sizeof args),
            SOL_ERR_ARGUMENT);
  CHECK_INT(run(&m, (SolEmuLaunch){.last_block = 5}, 4, 32, &args, sizeof args), SOL_ERR_ARGUMENT);
  stop(&m);
}

TEST(what_is_defined_nowhere_is_refused_at_load) {
  static const char text[] = HEADER ".extern .func who(.param .b32 x);\n"
                                    ".visible .entry k() {\n  { .param .b32 x; st.param.b32 [x], 0;\n"
                                    "    call who, (x); }\n  ret;\n}\n";
  SolEmu *emu;
  SolEmuModule *module;
  SolError err = {0};
  CHECK_INT(sol_emu_create(NULL, &emu, &err), SOL_OK);
  CHECK(sol_emu_load(emu, &(SolPtxSource){"t", text, strlen(text)}, 1, &module, &err) != SOL_OK);
  CHECK_HAS(err.message, "who");
  CHECK_INT(err.line, 7);
  sol_emu_destroy(emu);
}

// Warp w writes word w of shared memory and reads word w + 1; with a barrier in between or without.
#define RACE(between)                                                                                        \
  HEADER ".visible .entry race(.param .u64 y) {\n"                                                           \
         "  .shared .align 4 .b8 s[256]; .reg .b32 %r<9>; .reg .b64 %rd<4>;\n"                               \
         "  mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mov.u32 %r3, s; shl.b32 %r4, %r2, 2; add.s32 %r5, "    \
         "%r3, %r4;\n"                                                                                       \
         "  st.shared.u32 [%r5], %r2;\n" between                                                             \
         "  add.s32 %r6, %r2, 1; and.b32 %r6, %r6, 3; shl.b32 %r6, %r6, 2;\n"                                \
         "  add.s32 %r6, %r3, %r6; ld.shared.u32 %r7, [%r6];\n"                                              \
         "  ld.param.u64 %rd1, [y]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 "     \
         "[%rd3], %r7;\n"                                                                                    \
         "  ret;\n}\n"

TEST(races_in_shared_memory_are_found_when_asked) {
  for (int with = 0; with < 2; with++) {
    Machine m;
    if (!start(&m, with ? RACE("  bar.sync 0;\n") : RACE(""), (SolEmuMachine){0})) return;
    uint64_t y = buffer(&m, 512, "y");
    RUN(&m, (SolEmuLaunch){.checks = SOL_EMU_CHECK_RACE}, 1, 128, y);
    if (with)
      CHECK_STR(finding(&m), "");
    else
      CHECK_HAS(finding(&m), "race");
    for (int t = 0; with && t < 128; t++) CHECK_INT(words(&m, y, 128)[t], (t / 32 + 1) % 4);
    stop(&m);
  }
}

static const char print_text[] =
    HEADER ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
           ".global .align 1 .b8 text[24] = "
           "{37,53,100,124,37,45,54,115,124,37,46,50,102,124,37,120,10,0};\n" // %5d|%-6s|%.2f|%x
           ".global .align 1 .b8 name[4] = {97,98,99,0};\n"
           ".visible .entry say() {\n"
           "  .local .align 8 .b8 args[32]; .reg .b64 %rd<8>; .reg .b32 %r<4>; .reg .f64 %d<2>;\n"
           "  mov.u64 %rd1, args; cvta.local.u64 %rd2, %rd1;\n"
           "  mov.u32 %r1, %tid.x; neg.s32 %r2, %r1; st.local.u32 [%rd1], %r2;\n"
           "  mov.u64 %rd3, name; cvta.global.u64 %rd3, %rd3; st.local.u64 [%rd1+8], %rd3;\n"
           "  mov.f64 %d1, 0d3FF8000000000000; st.local.f64 [%rd1+16], %d1; mov.u32 %r3, 255; "
           "st.local.u32 [%rd1+24], %r3;\n"
           "  mov.u64 %rd4, text; cvta.global.u64 %rd5, %rd4;\n"
           "  { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd5; st.param.b64 [a], "
           "%rd2;\n"
           "    call (r), vprintf, (f, a); ld.param.b32 %r1, [r]; }\n  ret;\n}\n";

TEST(prints) {
  Machine m;
  if (!start(&m, print_text, (SolEmuMachine){0})) return;
  CHECK_INT(run(&m, (SolEmuLaunch){0}, 1, 2, NULL, 0), SOL_OK);
  CHECK_STR(finding(&m), "");
  CHECK_STR(m.printed, "    0|abc   |1.50|ff\n   -1|abc   |1.50|ff\n");
  stop(&m);
}

// Lanes meet at a full-mask shuffle from two sides of a branch; lane 0 goes the other way and never comes.
static const char meet_text[] = HEADER ".visible .entry meet(.param .u64 y) {\n"
                                       "  .reg .b32 %r<6>; .reg .pred %p; .reg .b64 %rd<4>;\n"
                                       "  mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 0;\n  @%p bra out;\n"
                                       "  shfl.sync.idx.b32 %r2, %r1, 1, 31, -1;\n"
                                       "  bar.sync 0; ret;\nout: bar.sync 0; ret;\n}\n";

TEST(lanes_that_never_come_are_reported) {
  Machine m;
  if (!start(&m, meet_text, (SolEmuMachine){0})) return;
  uint64_t y = 0;
  RUN(&m, (SolEmuLaunch){0}, 1, 32, y);
  CHECK_INT(m.result.end, SOL_EMU_FAULT);
  CHECK_HAS(finding(&m), "out of step: waits for lanes 0x00000001");
  stop(&m);
}

static const char diverge_text[] = HEADER ".visible .entry part(.param .u64 y) {\n"
                                          "  .reg .b32 %r<4>; .reg .pred %p;\n"
                                          "  mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 16;\n  @%p bra low;\n"
                                          "  bar.sync 0; bra done;\nlow: bar.sync 0;\ndone: ret;\n}\n";

TEST(divergent_barriers_work_and_are_found_when_asked) {
  for (unsigned check = 0; check < 2; check++) {
    Machine m;
    if (!start(&m, diverge_text, (SolEmuMachine){0})) return;
    uint64_t y = 0;
    RUN(&m, (SolEmuLaunch){.checks = check ? SOL_EMU_CHECK_SYNC : 0}, 2, 64, y);
    CHECK_INT(m.result.end, SOL_EMU_DONE);
    if (check)
      CHECK_HAS(finding(&m), "divergent barrier");
    else
      CHECK_STR(finding(&m), "");
    stop(&m);
  }
}

// A loop that lanes leave one after the other: lane l makes l + 1 turns. The warp makes 32, and meets again
// after.
static const char leave_text[] = HEADER
    ".visible .entry leave(.param .u64 y) {\n"
    "  .reg .b32 %r<4>; .reg .pred %p; .reg .b64 %rd<4>;\n"
    "  mov.u32 %r1, %tid.x; mov.u32 %r2, 0;\n"
    "again: add.s32 %r2, %r2, 3; sub.s32 %r1, %r1, 1; setp.ge.s32 %p, %r1, 0;\n  @%p bra again;\n"
    "  ld.param.u64 %rd1, [y]; mov.u32 %r3, %tid.x; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2;\n"
    "  st.global.u32 [%rd3], %r2; ret;\n}\n";

TEST(lanes_reconverge_after_a_loop) {
  Machine m;
  if (!start(&m, leave_text, (SolEmuMachine){0})) return;
  uint64_t y = buffer(&m, 128, "y");
  RUN(&m, (SolEmuLaunch){0}, 1, 32, y);
  for (int l = 0; l < 32; l++) CHECK_INT(words(&m, y, 32)[l], 3 * (l + 1));
  CHECK_INT(m.result.total.divergent, 31);
  CHECK_INT(m.result.total.executions, 2 + 32 * 4 + 6);
  CHECK_INT(m.result.total.lanes,
            2 * 32 + 4 * (32 * 33 / 2) - 32 + 6 * 32); // the branch: where its guard holds
  CHECK_INT(m.result.kinds[SOL_EMU_KIND_GLOBAL_STORE].requests, 1);
  stop(&m);
}

CHECK_MAIN
