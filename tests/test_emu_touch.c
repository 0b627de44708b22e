// Which bytes an observed launch touches, and launches of a sample of their waves.
#include "observe_rig.h"

// ---- touches ----

TEST(bytes_touched) {
  static const struct {
    const char *body;
    uint64_t in[6], out[6]; // read, written, read_first, and in sectors: read, written, partly written
  } cases[] = {
      // 1024 threads: a copy; in place; read by all; every second word; a word of every sector; one byte.
      {OWN "ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd3], %r1;",
       {4096, 0, 4096, 128, 0, 0},
       {0, 4096, 0, 0, 128, 0}},
      {OWN "ld.global.u32 %r1, [%rd2]; add.u32 %r1, %r1, 1; st.global.u32 [%rd2], %r1;",
       {4096, 4096, 4096, 128, 128, 0},
       {0}},
      {OWN "ld.global.u32 %r1, [%in]; ld.global.u64 %rd4, [%in]; st.global.u32 [%rd3], %r1;",
       {8, 0, 8, 1, 0, 0},
       {0, 4096, 0, 0, 128, 0}},
      {OWN "add.u64 %rd3, %rd3, %rd1; st.global.u32 [%rd3], %r1;", {0}, {0, 4096, 0, 0, 256, 256}},
      {"mul.wide.u32 %rd1, %i, 32; add.u64 %rd3, %out, %rd1; st.global.u32 [%rd3+28], %r1;",
       {0},
       {0, 4096, 0, 0, 1024, 1024}},
      {"st.global.u8 [%out+33], %r1; ld.global.u8 %r2, [%in+1048575];",
       {1, 0, 1, 1, 0, 0},
       {0, 1, 0, 0, 1, 1}},
      // Two stores fill the sector that one leaves open.
      {OWN "add.u64 %rd3, %rd3, %rd1; st.global.u32 [%rd3], %r1; st.global.u32 [%rd3+4], %r1;",
       {0},
       {0, 8192, 0, 0, 256, 0}},
      // Written first, then read; the second half of the bytes was not written.
      {OWN "st.global.u32 [%rd2], %r1; ld.global.u32 %r2, [%rd2]; ld.global.u32 %r3, [%rd2+4096];",
       {8192, 4096, 4096, 256, 128, 0},
       {0}},
      // Through a generic address, and by cp.async.
      {OWN "ld.u32 %r1, [%rd2]; st.u32 [%rd3], %r1;", {4096, 0, 4096, 128, 0, 0}, {0, 4096, 0, 0, 128, 0}},
      {OWN "mov.u32 %r2, tile; mad.lo.u32 %r2, %t, 4, %r2; cp.async.ca.shared.global [%r2], [%rd2], 4;\n"
           "cp.async.wait_all;",
       {4096, 0, 4096, 128, 0, 0},
       {0}},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    Seen s;
    see(&(Job){.body = cases[k].body}, &s);
    for (int out = 0; out < 2; out++) {
      const SolEmuTouch *t = touch(&s, out ? s.out : s.in);
      const uint64_t *want = out ? cases[k].out : cases[k].in;
      uint64_t got[] = {t->read,         t->written,         t->read_first,
                        t->read_sectors, t->written_sectors, t->partial_sectors};
      for (int f = 0; f < 6; f++)
        CHECK_MSG(got[f] == want[f], "%s: %s[%d] is %llu, expected %llu", cases[k].body, out ? "out" : "in",
                  f, (unsigned long long)got[f], (unsigned long long)want[f]);
      if (t->bytes) CHECK_STR(t->label, out ? "out" : "in");
    }
    done(&s);
  }
}

// Block 0 writes, the others wait for its flag and read: what they read came from this launch.
TEST(read_after_another_block_wrote) {
  Seen s;
  run(&(Job){.body = OWN "setp.ne.u32 %p1, %b, 0; @%p1 bra wait;\n"
                         "st.global.u32 [%rd3], 7; bar.sync 0; membar.gl; setp.eq.u32 %p2, %t, 0;\n"
                         "@%p2 st.volatile.global.u32 [%in], 1; ret;\n"
                         "wait: ld.volatile.global.u32 %r1, [%in]; setp.eq.u32 %p2, %r1, 0; @%p2 bra wait;\n"
                         "mul.wide.u32 %rd4, %t, 4; add.u64 %rd5, %out, %rd4; ld.global.u32 %r2, [%rd5];",
             .workers = 2},
      &s);
  CHECK_INT(s.r.end, SOL_EMU_DONE);
  CHECK_INT(touch(&s, s.out)->read, 256);
  CHECK_INT(touch(&s, s.out)->written, 256);
  CHECK_INT(touch(&s, s.out)->read_first, 0);
  done(&s);
}

TEST(launches_add_up_and_count_anew) {
  Seen s;
  see(&(Job){.body = OWN "ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd3], %r1; ld.global.u32 %r2, [%rd3];",
             .launches = 3},
      &s);
  CHECK_INT(s.r.touch_count, 2);
  CHECK_INT(touch(&s, s.in)->read_first, 3 * 4096);
  CHECK_INT(touch(&s, s.out)->written, 3 * 4096);
  CHECK_INT(touch(&s, s.out)->read, 3 * 4096);
  CHECK_INT(touch(&s, s.out)->read_first, 0);
  CHECK_INT(inst(&s, "ld.global", 0)->pattern.seen, 96);
  CHECK_INT(inst(&s, "ld.global", 0)->pattern.stride_times, 96);
  CHECK_INT(s.r.blocks, 48);
  CHECK_INT(s.r.blocks_in_grid, 48);
  done(&s);
}

// A host's own memory need not start on a line, nor end on a sector.
TEST(memory_that_starts_anywhere) {
  static _Alignas(128) uint8_t host[4096];
  Seen s = {0};
  SolEmuModule *module;
  char text[4096];
  snprintf(text, sizeof text, head,
           "mul.wide.u32 %rd1, %i, 4; add.u64 %rd3, %out, %rd1; st.global.u32 [%rd3], %r1;");
  uint64_t at = (uint64_t)(uintptr_t)(host + 36);
  CHECK(!sol_emu_create(&(SolEmuMachine){0}, &s.emu, &s.err) &&
        !sol_emu_load(s.emu, &(SolPtxSource){"k", text, strlen(text)}, 1, &module, &s.err) &&
        !sol_emu_map(s.emu, host + 36, 256, "mapped", &s.err));
  struct {
    uint64_t in, out;
    uint32_t n;
  } args = {at, at, 0};
  SolEmuLaunch launch = {
      .kernel = sol_emu_kernel(module, "k"), .params = &args, .param_bytes = 20, .observe = true};
  launch.grid[0] = launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1,
  launch.block[0] = 64;
  CHECK(!sol_emu_launch(s.emu, &launch, &s.r, &s.err));
  const SolEmuTouch *t = touch(&s, at);
  CHECK_INT(t->written, 256);
  CHECK_INT(t->written_sectors, 9);
  CHECK_INT(t->partial_sectors, 0); // the rest of the first and of the last sector is not its own
  done(&s);
}

TEST(many_chunks) {
  Seen s = {0}; // 3 MiB and a bit, a word of every 4 KiB: more than one piece of the maps
  SolEmuModule *module;
  char text[4096];
  uint64_t at = 0, bytes = (3 << 20) + 8;
  snprintf(text, sizeof text, head,
           "mul.wide.u32 %rd1, %i, 4096; add.u64 %rd3, %out, %rd1; ld.global.u32 %r1, [%rd3]; st.global.u32 "
           "[%rd3+4], %r1;");
  CHECK(!sol_emu_create(&(SolEmuMachine){.workers = 2}, &s.emu, &s.err) &&
        !sol_emu_load(s.emu, &(SolPtxSource){"k", text, strlen(text)}, 1, &module, &s.err) &&
        !sol_emu_alloc(s.emu, bytes, "big", &at, &s.err));
  struct {
    uint64_t in, out;
    uint32_t n;
  } args = {at, at, 0};
  SolEmuLaunch launch = {
      .kernel = sol_emu_kernel(module, "k"), .params = &args, .param_bytes = 20, .observe = true};
  launch.grid[0] = 769,
  launch.grid[1] = launch.grid[2] = launch.block[0] = launch.block[1] = launch.block[2] = 1;
  CHECK(!sol_emu_launch(s.emu, &launch, &s.r, &s.err) && !s.r.finding_count);
  const SolEmuTouch *t = touch(&s, at);
  CHECK_INT(t->read, 769 * 4);
  CHECK_INT(t->written, 769 * 4);
  CHECK_INT(t->read_first, 769 * 4);
  CHECK_INT(t->partial_sectors, 769);
  done(&s);
}

// Groups of pages move once, whatever their bytes; those that the host takes back move again.
TEST(pages_that_the_device_does_not_have_move) {
  enum { GROUP = SOL_EMU_PAGE_GROUP, GROUPS = 4 };
  static _Alignas(SOL_EMU_PAGE_BLOCK) uint8_t host[GROUPS * GROUP];
  uint8_t at_device[GROUPS] = {0};
  Seen s = {0};
  SolEmuModule *module;
  char text[4096];
  // Two words of the first group, one of the third: from the middle of the first on.
  snprintf(text, sizeof text, head,
           "st.global.u32 [%out], %r1; ld.global.u32 %r2, [%out+4096]; ld.global.u32 %r2, [%out+131072];");
  uint64_t at = (uint64_t)(uintptr_t)(host + 512);
  CHECK(!sol_emu_create(&(SolEmuMachine){0}, &s.emu, &s.err) &&
        !sol_emu_load(s.emu, &(SolPtxSource){"k", text, strlen(text)}, 1, &module, &s.err) &&
        !sol_emu_map(s.emu, host + 512, sizeof host - 512, "managed", &s.err));
  sol_emu_watch_pages(s.emu, at, at_device);
  struct {
    uint64_t in, out;
    uint32_t n;
  } args = {at, at, 0};
  SolEmuLaunch launch = {
      .kernel = sol_emu_kernel(module, "k"), .params = &args, .param_bytes = 20, .observe = true};
  for (int i = 0; i < 3; i++) launch.grid[i] = launch.block[i] = 1;
  static const uint64_t moved[] = {2, 0, 1};
  for (int k = 0; k < 3; k++) {
    if (k == 2) at_device[2] = 0;
    CHECK(!sol_emu_launch(s.emu, &launch, &s.r, &s.err));
    CHECK_INT(touch(&s, at)->moved, moved[k] * GROUP);
    CHECK_INT(touch(&s, at)->moved_pages, k ? moved[k] : 3);
    CHECK_INT(touch(&s, at)->moved_blocks, moved[k] > 0);
    CHECK(at_device[0] && !at_device[1] && at_device[2] && !at_device[3]);
    sol_emu_result_free(&s.r);
    s.r = (SolEmuResult){0};
  }
  done(&s);
}

// ---- samples ----

#define MARK                                                                                                 \
  "mul.wide.u32 %rd1, %b, 4; add.u64 %rd3, %out, %rd1; add.u32 %r1, %b, 1; st.global.u32 [%rd3], %r1;"

static void check_blocks(const Seen *s, uint32_t blocks, const bool *ran) {
  const uint32_t *out = sol_emu_host(s->emu, s->out, BUFFER);
  for (uint32_t b = 0; b < blocks; b++) CHECK_MSG(out[b] == (ran[b] ? b + 1 : 0), "block %u: %u", b, out[b]);
}

TEST(sampled_waves) { // 4 SMs of 2 blocks: a wave is 8 blocks
  static const struct {
    uint32_t blocks, cluster, waves, first[4]; // of the blocks that run
    int count;
    uint64_t ran;
  } cases[] = {
      {80, 0, 1, {40}, 1, 8},         {80, 0, 2, {16, 56}, 2, 16}, {80, 2, 2, {16, 56}, 2, 16},
      {80, 0, 3, {8, 40, 64}, 3, 24}, {13, 0, 1, {8}, 1, 5}, // of two waves the second, which is short
      {21, 0, 2, {0, 16}, 2, 13},     {8, 0, 1, {0}, 1, 8},        {80, 0, 10, {0}, 0, 80},
      {80, 0, 99, {0}, 0, 80},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    Seen s;
    bool ran[80] = {0};
    Job j = {.body = MARK, .blocks = cases[k].blocks, .cluster = cases[k].cluster, .waves = cases[k].waves};
    for (int w = 0; w < cases[k].count; w++)
      for (uint32_t b = cases[k].first[w]; b < cases[k].first[w] + 8 && b < cases[k].blocks; b++)
        ran[b] = true;
    if (!cases[k].count) memset(ran, true, sizeof ran);
    see(&j, &s);
    CHECK_INT(s.r.blocks, cases[k].ran);
    CHECK_INT(s.r.blocks_in_grid, cases[k].blocks);
    CHECK_INT(inst(&s, "st.global", 0)->counts.requests, cases[k].ran * 2);
    check_blocks(&s, cases[k].blocks, ran);
    done(&s);
  }
}

TEST(cooperative_launches_are_not_sampled) {
  Seen s;
  run(&(Job){.body = MARK "mov.u32 %r2, %envreg1; mov.u32 %r3, %envreg2; mov.b64 %rd5, {%r3, %r2};\n"
                          "ld.global.u32 %r4, [%rd5];",
             .blocks = 8,
             .waves = 1,
             .cooperative = true},
      &s);
  CHECK_INT(s.r.end, SOL_EMU_DONE);
  CHECK_INT(s.r.blocks, 8);
  CHECK_INT(s.r.touch_count, 1); // the memory of the grid's barrier is not the program's
  done(&s);
}

TEST(a_sample_that_waits_for_the_rest) {
  Seen s; // every block waits for the one before it
  run(&(Job){.body =
                 "mul.wide.u32 %rd1, %b, 4; add.u64 %rd3, %out, %rd1; setp.eq.u32 %p1, %b, 0; @%p1 bra go;\n"
                 "wait: ld.volatile.global.u32 %r1, [%rd3+-4]; setp.eq.u32 %p2, %r1, 0; @%p2 bra wait;\n"
                 "go: st.volatile.global.u32 [%rd3], 1;",
             .blocks = 80,
             .threads = 32,
             .waves = 2},
      &s);
  CHECK_INT(s.r.end, SOL_EMU_FAULT);
  if (CHECK(s.r.finding_count == 1)) {
    CHECK_INT(s.r.findings[0].kind, SOL_EMU_DEADLOCK);
    CHECK_HAS(s.r.findings[0].message, "left out of the sample");
  }
  done(&s);
}

CHECK_MAIN
