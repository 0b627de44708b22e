// Device malloc and free: what they give, what using it wrongly is called, and that nothing a kernel writes
// can lead them astray.
#include "emu_body.h"

#define EXTERNS                                                                                              \
  ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n"             \
  ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"                                  \
  ".global .align 1 .b8 text[3] = {33, 0, 0};\n"
#define MALLOC(reg, bytes)                                                                                   \
  "{ .param .b64 n; .param .b64 r; st.param.b64 [n], " bytes "; call (r), malloc, (n); ld.param.b64 " reg    \
  ", [r]; }\n"
#define FREE(reg) "{ .param .b64 p; st.param.b64 [p], " reg "; call free, (p); }\n"

typedef struct Case {
  const char *ptx;
  SolEmuFindingKind kind;
  const char *says;
} Case;

// One thread, with and without a shadow of memory: accesses take different ways.
static void check_finding(const Case *c) {
  for (int checking = 0; checking < 2; checking++) {
    SolEmu *emu = NULL;
    SolEmuMachine machine = {.workers = 1, .sms = 1, .track_init = checking == 1};
    if (!CHECK(!sol_emu_create(&machine, &emu, NULL))) return;
    Ran r = run_body(&(Body){.ptx = c->ptx, .before = EXTERNS, .threads = 1, .emu = emu});
    if (CHECK_MSG(!r.status && r.findings, "%s: %s", c->ptx, r.err.message)) {
      CHECK_INT(r.end, SOL_EMU_FAULT);
      CHECK_STR(sol_emu_finding_name(r.finding.kind), sol_emu_finding_name(c->kind));
      CHECK_HAS(r.finding.message, c->says);
      CHECK_HAS(r.finding.message, "thread (0,0,0), body:");
    }
    sol_emu_destroy(emu);
  }
}

TEST(outside_of_a_piece) {
  static const Case cases[] = {
      {MALLOC("%rd1", "61") "st.global.u8 [%rd1+61], %h1;\n", SOL_EMU_OUT_OF_BOUNDS,
       "write of 1 bytes at 0xa00"},
      {MALLOC("%rd1", "61") "st.u8 [%rd1+63], %h1;\n", SOL_EMU_OUT_OF_BOUNDS,
       "2 bytes past the end of memory from malloc of 61 bytes"},
      {MALLOC("%rd1", "60") "ld.global.u64 %rd2, [%rd1+56];\n", SOL_EMU_OUT_OF_BOUNDS,
       "0 bytes past the end of memory from malloc of 60 bytes"},
      {MALLOC("%rd1", "64") "st.global.u64 [%rd1+-8], %rd2;\n", SOL_EMU_OUT_OF_BOUNDS,
       "8 bytes before memory from malloc of 64 bytes"},
      {MALLOC("%rd1", "64") MALLOC("%rd2", "64") "st.global.u64 [%rd1+64], %rd2;\n", SOL_EMU_OUT_OF_BOUNDS,
       "0 bytes past the end of memory from malloc of 64 bytes"},
      {MALLOC("%rd1", "64") "st.global.v4.u32 [%rd1], {%t,%t,%t,%t};\nld.global.v4.u32 {%r1,%r2,%r3,%r4}, "
                            "[%rd1+64];\n",
       SOL_EMU_OUT_OF_BOUNDS, "read of 16 bytes"},
      {MALLOC("%rd1", "64") "atom.global.add.u32 %r1, [%rd1+64], 1;\n", SOL_EMU_OUT_OF_BOUNDS,
       "past the end of memory from malloc"},
      {MALLOC("%rd1", "64") "add.u64 %rd1, %rd1, 4000000;\nst.global.u8 [%rd1], %h1;\n",
       SOL_EMU_OUT_OF_BOUNDS, "into the device heap, where nothing is allocated"},
      {MALLOC("%rd1", "64") "add.u64 %rd1, %rd1, 8388608;\nst.global.u8 [%rd1], %h1;\n",
       SOL_EMU_OUT_OF_BOUNDS, "past the end of device heap"},
      {MALLOC("%rd1", "256") "mov.u32 %r1, tile;\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], "
                             "272;\n",
       SOL_EMU_OUT_OF_BOUNDS, "write of 272 bytes"},
      // An instruction whose last access was right, again.
      {MALLOC("%rd1", "64") "mov.u32 %r1, 0;\nagain: st.global.u32 [%rd1], %r1;\nadd.u64 %rd1, %rd1, 4;\n"
                            "add.u32 %r1, %r1, 1;\nsetp.le.u32 %p1, %r1, 16;\n@%p1 bra again;\n",
       SOL_EMU_OUT_OF_BOUNDS, "0 bytes past the end of memory from malloc of 64 bytes"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) check_finding(&cases[k]);
}

TEST(after_free) {
  static const Case cases[] = {
      {MALLOC("%rd1", "64") FREE("%rd1") "ld.global.u32 %r1, [%rd1+8];\n", SOL_EMU_AFTER_FREE,
       "8 bytes into freed memory from malloc (64 bytes)"},
      // What was freed is not given again as long as there is other room.
      {MALLOC("%rd1", "64") MALLOC("%rd3", "64") FREE("%rd1")
           MALLOC("%rd2", "64") "st.global.u32 [%rd2], %t;\nst.global.u32 [%rd1], %t;\n",
       SOL_EMU_AFTER_FREE, "0 bytes into freed"},
      {MALLOC("%rd1", "64") FREE("%rd1") FREE("%rd1"), SOL_EMU_BAD_USE, "that was freed before"},
      {MALLOC("%rd1", "64") "add.u64 %rd2, %rd1, 16;\n" FREE("%rd2"), SOL_EMU_BAD_USE,
       "16 bytes into memory from malloc of 64 bytes at 0x"},
      {MALLOC("%rd1", "64") "add.u64 %rd2, %rd1, 1;\n" FREE("%rd2"), SOL_EMU_BAD_USE, "and not its start"},
      {FREE("%base"), SOL_EMU_BAD_USE, "which malloc did not return"},
      {MALLOC("%rd1", "64") FREE("%base"), SOL_EMU_BAD_USE, "which malloc did not return"},
      {MALLOC("%rd1", "64") "sub.u64 %rd2, %rd1, 16;\n" FREE("%rd2"), SOL_EMU_BAD_USE,
       "which malloc did not return"},
      {"mov.u64 %rd2, -16;\n" FREE("%rd2"), SOL_EMU_BAD_USE, "which malloc did not return"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) check_finding(&cases[k]);
}

// One thread; what it stores at %out comes back.
static uint64_t answer_of(SolEmu *emu, const char *ptx, uint64_t x) {
  uint64_t out = 1;
  Ran r = run_body(
      &(Body){.ptx = ptx, .before = EXTERNS, .threads = 1, .out = &out, .out_bytes = 8, .x = x, .emu = emu});
  body_ok(&r, ptx);
  return out;
}
#define GIVE(reg) "st.global.u64 [%out], " reg ";\n"

TEST(sizes) {
  static const char *const none[] = {"0", "-1", "-16", "8388608", "8388593", "0x7fffffffffffffff"};
  char ptx[512];
  for (size_t k = 0; k < sizeof none / sizeof *none; k++) {
    snprintf(ptx, sizeof ptx, MALLOC("%%rd1", "%s") "st.global.u64 [%%out], %%rd1;\n", none[k]);
    CHECK_MSG(answer_of(NULL, ptx, 0) == 0, "malloc of %s bytes", none[k]);
  }
  CHECK(answer_of(NULL, MALLOC("%rd1", "8388592") GIVE("%rd1"), 0) != 0); // all there is
  // Each byte of a piece of an odd size; free of nothing.
  CHECK(answer_of(NULL,
                  MALLOC("%rd1", "61") "st.u64 [%rd1], %rd1;\nst.u32 [%rd1+56], %t;\nst.u8 [%rd1+60], %h1;\n"
                                       "mov.u64 %rd2, 0;\n" FREE("%rd2") FREE("%rd1") GIVE("%rd1"),
                  0) != 0);
}

TEST(lives_from_launch_to_launch) {
  SolEmu *emu = NULL;
  if (!CHECK(!sol_emu_create(&(SolEmuMachine){.workers = 1, .sms = 1}, &emu, NULL))) return;
  uint64_t piece = answer_of(emu, MALLOC("%rd1", "64") "st.u64 [%rd1+56], %rd1;\n" GIVE("%rd1"), 0);
  CHECK(answer_of(emu, "ld.u64 %rd1, [%x+56];\n" GIVE("%rd1") FREE("%x"), piece) == piece);
  Ran r = run_body(
      &(Body){.ptx = "ld.u64 %rd1, [%x+56];\n", .before = EXTERNS, .threads = 1, .x = piece, .emu = emu});
  CHECK_INT(r.finding.kind, SOL_EMU_AFTER_FREE);
  sol_emu_destroy(emu);
}

// All blocks at once, on two workers: as many as there is room for get a piece, no two the same one, and all
// of it is free again in the end.
TEST(many_threads) {
  enum { THREADS = 4096, BYTES = 256, ROOM = 1 << 19 };
  static uint64_t out[THREADS];
  SolEmu *emu = NULL;
  if (!CHECK(!sol_emu_create(&(SolEmuMachine){.workers = 2, .sms = 8, .heap_bytes = ROOM}, &emu, NULL)))
    return;
  static const char ptx[] = MALLOC("%rd1", "256") GIVE(
      "%rd1") "setp.eq.u64 %p1, %rd1, 0;\n@%p1 bra full;\nst.u64 [%rd1], %out;\nst.u64 [%rd1+248], %out;\n"
              "bar.sync 0;\nld.u64 %rd2, [%rd1];\nsetp.ne.u64 %p1, %rd2, %out;\n@%p1 trap;\nret;\n"
              "full: bar.sync 0;\n";
  Ran r = run_body(&(Body){.ptx = ptx,
                           .before = EXTERNS,
                           .threads = 128,
                           .blocks = THREADS / 128,
                           .out = out,
                           .out_bytes = sizeof out,
                           .out_stride = 8,
                           .emu = emu});
  body_ok(&r, "many");
  int given = 0;
  for (int k = 0; k < THREADS; k++) given += out[k] != 0;
  CHECK_INT(given, ROOM / (BYTES + 16));
  for (int k = 0; k < THREADS; k++)
    for (int j = 0; j < k && out[k]; j++)
      if (out[j] == out[k]) given = -1;
  CHECK(given > 0);
  Ran freed = run_body(&(Body){.ptx = "ld.global.u64 %rd1, [%in];\n" FREE("%rd1"),
                               .before = EXTERNS,
                               .threads = 128,
                               .blocks = THREADS / 128,
                               .in = out,
                               .in_bytes = sizeof out,
                               .in_stride = 8,
                               .emu = emu});
  body_ok(&freed, "freed");
  CHECK(answer_of(emu, MALLOC("%rd1", "524272") GIVE("%rd1"), 0) != 0);
  sol_emu_destroy(emu);
}

// Pieces of all sizes come and go; what a thread wrote into its own stays there.
TEST(comes_and_goes) {
  static const char ptx[] =
      "mov.u32 %r1, 0;\nmov.u64 %rd5, 0;\n"
      "again: mad.lo.u32 %r2, %r1, 97, %t;\nrem.u32 %r2, %r2, 500;\nadd.u32 %r2, %r2, 8;\ncvt.u64.u32 %rd1, "
      "%r2;\n" MALLOC(
          "%rd2",
          "%rd1") "setp.eq.u64 %p1, %rd2, 0;\n@%p1 trap;\nst.u64 [%rd2], %rd2;\n"
                  "setp.eq.u64 %p1, %rd5, 0;\n@%p1 bra first;\nld.u64 %rd6, [%rd5];\nsetp.ne.u64 %p1, %rd6, "
                  "%rd5;\n"
                  "@%p1 trap;\n" FREE(
                      "%rd5") "first: mov.u64 %rd5, %rd2;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, "
                              "200;\n@%p1 bra again;\n" FREE("%rd5");
  SolEmu *emu = NULL;
  if (!CHECK(!sol_emu_create(&(SolEmuMachine){.workers = 2, .sms = 4, .heap_bytes = 1 << 18}, &emu, NULL)))
    return;
  Ran r = run_body(&(Body){.ptx = ptx, .before = EXTERNS, .threads = 32, .blocks = 4, .emu = emu});
  body_ok(&r, "comes and goes");
  CHECK(answer_of(emu, MALLOC("%rd1", "262128") GIVE("%rd1"), 0) != 0);
  sol_emu_destroy(emu);
}

// A kernel that takes long with few instructions is still interrupted.
static void stop_it(void *ctx, const char *text, size_t length) {
  (void)text, (void)length;
  *(volatile bool *)ctx = true;
}
TEST(searching_is_interrupted) {
  const char *body =
      MALLOC("%rd1",
             "8388592") "mov.u64 %rd2, text;\ncvta.global.u64 %rd2, %rd2;\n"
                        "mov.u64 %rd3, 0;\nmov.u32 %r1, 0;\n"
                        "{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd2; "
                        "st.param.b64 [a], %rd3; call (r), vprintf, (f, a); }\n"
                        "again: " FREE("%rd1") MALLOC(
                            "%rd1",
                            "8388592") "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 1000;\n@%p1 bra again;\n";
  char *text = body_text(&(Body){.ptx = body, .before = EXTERNS});
  volatile bool stop = false;
  SolEmu *emu = NULL;
  SolEmuModule *module = NULL;
  SolEmuResult result = {0};
  SolError err = {0};
  uint64_t args[3] = {0};
  CHECK(!sol_emu_create(&(SolEmuMachine){.workers = 1, .sms = 1}, &emu, &err));
  bool ok = CHECK_MSG(!sol_emu_load(emu, &(SolPtxSource){"body", text, strlen(text)}, 1, &module, &err), "%s",
                      err.message);
  SolEmuLaunch launch = {.grid = {1, 1, 1},
                         .block = {1, 1, 1},
                         .params = args,
                         .param_bytes = sizeof args,
                         .interrupt = &stop,
                         .print = stop_it,
                         .print_ctx = (void *)(uintptr_t)&stop};
  if (ok) {
    launch.kernel = sol_emu_kernel(module, "k");
    CHECK(!sol_emu_launch(emu, &launch, &result, &err));
    CHECK_INT(result.end, SOL_EMU_INTERRUPTED);
  }
  sol_emu_result_free(&result);
  sol_emu_destroy(emu);
  free(text);
}

CHECK_MAIN
