// How the lanes of memory instructions lie, from lane to lane and from execution to execution, and what they
// load.
#include "observe_rig.h"

#include "emu/watch/observe.h"

// ---- how lanes lie ----

#define AT(index) index " mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %in, %rd1; "
#define LOAD      "ld.global.u32 %r9, [%rd2]; add.u32 %r8, %r9, 1;"

typedef struct Lie {
  const char *body;
  int64_t stride;
  uint32_t strided, rows, uniform, scattered, contiguous, misaligned; // of 32 executions
} Lie;

TEST(lanes_of_a_load) {
  static const Lie lies[] = {
      {AT("mov.u32 %r1, %i;") LOAD, 4, 32, 0, 0, 0, 32, 0},
      {AT("add.u32 %r1, %i, 1;") LOAD, 4, 32, 0, 0, 0, 32, 32},
      {AT("add.u32 %r1, %i, 8;") LOAD, 4, 32, 0, 0, 0, 32, 0},
      {AT("xor.b32 %r1, %i, 31;") LOAD, -4, 32, 0, 0, 0, 32, 0}, // lanes backwards
      {AT("sub.u32 %r1, 2000, %i;") LOAD, -4, 32, 0, 0, 0, 32, 32},
      {AT("shl.b32 %r1, %i, 1;") LOAD, 8, 32, 0, 0, 0, 0, 0},
      {AT("mul.lo.u32 %r1, %i, 33;") LOAD, 132, 32, 0, 0, 0, 0, 0},
      {AT("shr.u32 %r1, %i, 5;") LOAD, 0, 0, 0, 32, 0, 0, 0}, // a word a warp
      // Tiles of eight lanes a row; of four; of two, which are too short.
      {AT("shr.u32 %r1, %l, 3; and.b32 %r2, %l, 7; mad.lo.u32 %r1, %r1, 1024, %r2;") LOAD, 4, 32, 32, 0, 0, 0,
       0},
      {AT("shr.u32 %r1, %l, 2; and.b32 %r2, %l, 3; mad.lo.u32 %r1, %r1, 1024, %r2;") LOAD, 4, 32, 32, 0, 0, 0,
       0},
      {AT("shr.u32 %r1, %l, 1; and.b32 %r2, %l, 1; mad.lo.u32 %r1, %r1, 1024, %r2;") LOAD, 0, 0, 0, 0, 32, 0,
       0},
      {AT("shr.u32 %r1, %l, 3;") LOAD, 0, 32, 32, 0, 0, 0, 0}, // eight lanes a word
      {AT("mul.lo.u32 %r1, %i, %i; mul.lo.u32 %r1, %r1, 40503; and.b32 %r1, %r1, 65535;") LOAD, 0, 0, 0, 0,
       32, 0, 0},
      // Some lanes alone: every second, the upper half, the ends, one.
      {AT("mov.u32 %r1, %i;") "and.b32 %r3, %l, 1; setp.eq.u32 %p1, %r3, 1; @%p1 " LOAD, 4, 32, 0, 0, 0, 32,
       0},
      {AT("mov.u32 %r1, %i;") "setp.gt.u32 %p1, %l, 16; @%p1 " LOAD, 4, 32, 0, 0, 0, 32, 0},
      {AT("mul.lo.u32 %r1, %i, %l;") "and.b32 %r3, %l, 30; setp.eq.u32 %p1, %r3, 30; @%p1 " LOAD, 0, 32, 0, 0,
       0, 0, 0},
      {AT("mov.u32 %r1, %i;") "setp.eq.u32 %p1, %l, 3; @%p1 " LOAD, 0, 0, 0, 0, 0, 0, 0},
  };
  for (size_t k = 0; k < sizeof lies / sizeof *lies; k++) {
    const Lie *w = &lies[k];
    Seen s;
    see(&(Job){.body = w->body}, &s);
    const SolEmuPattern *p = &inst(&s, "ld.global", 0)->pattern;
    if (w->stride || !w->strided || w->rows) CHECK_INT(p->stride, w->stride);
    CHECK_INT(p->width, 4);
    CHECK_INT(p->seen, w->strided + w->uniform + w->scattered);
    CHECK_INT(p->strided, w->strided);
    CHECK_INT(p->rows, w->rows);
    CHECK_INT(p->uniform, w->uniform);
    CHECK_INT(p->scattered, w->scattered);
    CHECK_INT(p->contiguous, w->contiguous);
    if (!CHECK_INT(p->misaligned, w->misaligned)) printf("%s\n", w->body);
    CHECK_INT(p->allocation, s.in);
    CHECK(!p->several);
    CHECK_INT(p->same, 0);
    done(&s);
  }
}

TEST(lanes_of_shared_memory_and_vectors) {
  Seen s;
  see(&(Job){.body =
                 "shl.b32 %r1, %t, 6; and.b32 %r1, %r1, 4095; mov.u32 %r2, tile; add.u32 %r2, %r2, %r1;\n"
                 "st.shared.u64 [%r2], %rd1; mul.wide.u32 %rd1, %i, 16; add.u64 %rd2, %in, %rd1;\n"
                 "ld.global.v4.u32 {%r3,%r4,%r5,%r6}, [%rd2]; mul.wide.u32 %rd1, %i, 20; add.u64 %rd2, %out, "
                 "%rd1;\nst.global.u32 [%rd2+4], %r3;"},
      &s);
  const SolEmuPattern *p = &inst(&s, "st.shared", 0)->pattern;
  CHECK_INT(p->stride, 64);
  CHECK_INT(p->width, 8);
  CHECK_INT(p->stride_times, 32);
  CHECK_INT(p->misaligned, 0);
  CHECK_INT(p->allocation, 0);
  p = &inst(&s, "ld.global", 0)->pattern;
  CHECK_INT(p->stride, 16);
  CHECK_INT(p->width, 16);
  CHECK_INT(p->contiguous, 32);
  p = &inst(&s, "st.global", 0)->pattern;
  CHECK_INT(p->stride, 20);
  CHECK_INT(p->contiguous, 0);
  CHECK_INT(p->allocation, s.out);
  done(&s);
}

// Block b reads words b * b + 3 * lane: some of them begin at the end of a sector, and take one sector more.
TEST(an_example_is_the_execution_with_the_most_sectors) {
  Seen s;
  see(&(Job){.body = AT("mul.lo.u32 %r1, %b, %b; mad.lo.u32 %r1, %l, 3, %r1;") LOAD,
             .blocks = 8,
             .threads = 32},
      &s);
  const SolEmuExample *e = &inst(&s, "ld.global", 0)->pattern.example;
  uint32_t most = 0, first = 0;
  for (uint32_t b = 0; b < 8; b++) {
    uint32_t from = b * b * 4, to = from + 31 * 12 + 3, sectors = to / 32 - from / 32 + 1;
    if (sectors > most) most = sectors, first = b;
  }
  CHECK_INT(e->mask, UINT32_MAX);
  CHECK_INT(e->sectors, most);
  CHECK_INT(e->block, first);
  for (uint32_t l = 0; l < 32; l++) CHECK_INT(e->lane[l], (first * first * 4) % 128 + 12 * l);
  done(&s);
  see(&(Job){.body = AT("mul.lo.u32 %r1, %l, %l;") "setp.lt.u32 %p1, %l, 9; @%p1 " LOAD, .threads = 32}, &s);
  e = &inst(&s, "ld.global", 0)->pattern.example;
  CHECK_INT(e->mask, 511);
  CHECK_INT(e->lane[8], 256);
  CHECK_INT(e->lane[9], 0);
  done(&s);
}

TEST(an_instruction_may_use_several_allocations) {
  Seen s;
  see(&(Job){.body = "setp.lt.u32 %p1, %l, 16; selp.b64 %rd3, %out, %in, %p1; mul.wide.u32 %rd1, %i, 4;\n"
                     "add.u64 %rd2, %rd3, %rd1; ld.global.u32 %r1, [%rd2];"},
      &s);
  const SolEmuPattern *p = &inst(&s, "ld.global", 0)->pattern;
  CHECK(p->several);
  CHECK_INT(p->allocation, s.in); // it lies lower
  CHECK_INT(p->seen, 32);
  CHECK_INT(p->rows, 32);
  CHECK_INT(touch(&s, s.in)->read, 16 * 32 * 4);
  CHECK_INT(touch(&s, s.out)->read, 16 * 32 * 4);
  done(&s);
}

// ---- from execution to execution ----

TEST(steps_of_a_loop) {
  Seen s;
  see(&(Job){.body = "mul.wide.u32 %rd1, %i, 4; add.u64 %rd2, %in, %rd1; mov.u32 %r1, 0;\n"
                     "again: ld.global.u32 %r2, [%rd2]; add.u64 %rd2, %rd2, 4096; mov.u32 %r4, tile;\n"
                     "mad.lo.u32 %r4, %r1, 256, %r4; ld.shared.u32 %r5, [%r4]; ld.global.u32 %r6, [%in];\n"
                     "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 10; @%p1 bra again;"},
      &s);
  const SolEmuPattern *p = &inst(&s, "ld.global", 0)->pattern;
  CHECK_INT(p->step, 4096);
  CHECK_INT(p->step_times, 32 * 9);
  CHECK_INT(p->steps, 32 * 9);
  CHECK_INT(p->stride, 4);
  p = &inst(&s, "ld.shared", 0)->pattern;
  CHECK_INT(p->step, 256);
  CHECK_INT(p->steps, 32 * 9);
  p = &inst(&s, "ld.global", 1)->pattern; // the same word again and again
  CHECK_INT(p->step, 0);
  CHECK_INT(p->step_times, 32 * 9);
  CHECK_INT(p->uniform, 320);
  done(&s);
}

TEST(steps_need_the_same_lane) {
  Seen s; // in turn lanes 0 up and lanes 1 up: no two executions after each other begin with the same lane
  see(&(Job){.body = "mul.wide.u32 %rd1, %i, 4; add.u64 %rd2, %in, %rd1; mov.u32 %r1, 0;\n"
                     "again: and.b32 %r3, %r1, 1; setp.ge.u32 %p2, %l, %r3; @%p2 ld.global.u32 %r2, [%rd2];\n"
                     "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 10; @%p1 bra again;"},
      &s);
  CHECK_INT(inst(&s, "ld.global", 0)->pattern.steps, 0);
  CHECK_INT(inst(&s, "ld.global", 0)->pattern.seen, 320);
  done(&s);
}

// Far more different strides than are kept: two lanes at a distance that depends on warp and turn. The one
// that every eighth turn has stays the commonest, whoever ran which block.
TEST(many_strides) {
  Seen s;
  see(
      &(Job){
          .body =
              "shr.u32 %r10, %i, 5; mov.u32 %r1, 0; setp.lt.u32 %p2, %l, 2;\n"
              "again: mad.lo.u32 %r2, %r10, 64, %r1; mul.lo.u32 %r2, %r2, 40503; and.b32 %r2, %r2, 131071;\n"
              "add.u32 %r2, %r2, 100; and.b32 %r4, %r1, 7; setp.eq.u32 %p3, %r4, 0; selp.b32 %r2, 25, %r2, "
              "%p3;\n"
              "mul.lo.u32 %r2, %r2, %l; mul.wide.u32 %rd1, %r2, 4; add.u64 %rd2, %in, %rd1;\n"
              "@%p2 ld.global.u32 %r3, [%rd2];\n"
              "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 64; @%p1 bra again;",
          .blocks = 64},
      &s);
  const SolEmuPattern *p = &inst(&s, "ld.global", 0)->pattern;
  CHECK_INT(p->seen, 64 * 2 * 64);
  CHECK_INT(p->strided, 64 * 2 * 64);
  CHECK_INT(p->stride, 100);
  CHECK_INT(p->stride_times, 64 * 2 * 8);
  done(&s);
}

// The table behind it: whatever way numbers are shared out, the same ones stay, and not too many.
TEST(tallies_add_up) {
  EmuTally whole = {0};
  int64_t want = 0;
  uint64_t times = 0;
  for (int parts = 1; parts <= 5; parts += 2) {
    EmuTally part[5] = {0};
    uint64_t state = 1;
    for (int k = 0; k < 60000; k++) { // 3000 numbers, none of them near 0, some seen far more often
      uint64_t r = (state = state * UINT64_C(6364136223846793005) + 1442695040888963407) >> 33;
      int to = parts == 3 ? (k < 20 ? 0 : 1 + k % 2) : k % 7 % parts; // one gets next to nothing
      emu_tally_add(&part[to], (int64_t)(1000 + 7 * (r % 3000 * (r % 3000) % 9001)));
    }
    for (int n = 1; n < parts; n++) emu_tally_merge(&part[0], &part[n]);
    int64_t key = 0;
    uint64_t most = emu_tally_commonest(&part[0], &key);
    CHECK(part[0].count > EMU_TALLY_KEYS / 4 && part[0].count <= EMU_TALLY_KEYS);
    if (parts == 1) want = key, times = most, whole = part[0];
    CHECK_INT(key, want);
    CHECK_INT(most, times);
    CHECK_INT(part[0].count, whole.count);
    CHECK_INT(part[0].level, whole.level);
    for (int n = parts == 1; n < parts; n++) emu_tally_free(&part[n]);
  }
  emu_tally_free(&whole);
}

// ---- L1's banks ----

// Words of different lines are read together where they are in different banks.
TEST(loads_take_a_pass_for_each_word_of_a_bank) {
  static const struct {
    const char *at; // of lane %l, in %r1
    uint32_t passes;
  } cases[] = {
      {"mul.lo.u32 %r1, %l, 4;", 1}, {"mul.lo.u32 %r1, %l, 128;", 32}, {"mul.lo.u32 %r1, %l, 132;", 1},
      {"mul.lo.u32 %r1, %l, 8;", 2}, {"mul.lo.u32 %r1, %l, 136;", 2},  {"mov.u32 %r1, 64;", 1},
  };
  for (size_t k = 0; k < SOL_COUNT(cases); k++) {
    char text[256];
    snprintf(text, sizeof text,
             "%s cvt.u64.u32 %%rd1, %%r1; add.u64 %%rd2, %%in, %%rd1; ld.global.u32 %%r2, [%%rd2];\n"
             "st.global.u32 [%%out], %%r2;",
             cases[k].at);
    Seen s;
    see(&(Job){.body = text}, &s);
    if (!CHECK_INT(inst(&s, "ld.global", 0)->counts.turns, 32 * cases[k].passes)) printf("%s\n", cases[k].at);
    done(&s);
  }
}

// ---- divisions and roots ----

// Operands that the machine's short way cannot handle, as bench/probe_div.cu found them on an H200: of a warp with one such lane.
// A word of each lane, then the next: four words are in four lines, and lanes at different ones in as many each.
TEST(local_memory_is_interleaved_by_words) {
  static const struct {
    const char *apart;
    uint64_t lines, sectors;
  } cases[] = {{"0", 4, 16}, {"16", 128, 128}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    char body[256];
    Seen s;
    snprintf(body, sizeof body,
             ".local .align 16 .b8 own[512]; mov.u32 %%r2, own; mad.lo.u32 %%r2, %%l, %s, %%r2;\n"
             "st.local.v4.u32 [%%r2], {%%l, %%l, %%l, %%l};\n",
             cases[k].apart);
    see(&(Job){.blocks = 1, .threads = 32, .body = body}, &s);
    const SolEmuCounts *c = &inst(&s, "st.local", 0)->counts;
    CHECK_INT(c->requests, 1);
    CHECK_INT(c->lines, cases[k].lines);
    CHECK_INT(c->sectors, cases[k].sectors);
    done(&s);
  }
}

// Lanes that walk through lines of their own find them again, unless those of all resident warps outgrow L1.
TEST(warps_that_outgrow_l1_take_turns) {
  static const char body[] =
      "mul.wide.u32 %rd1, %i, 128; add.u64 %rd1, %rd1, %in; mov.u32 %r1, 0;\n"
      "again: ld.global.u32 %r2, [%rd1]; add.u32 %r3, %r3, %r2; add.u64 %rd1, %rd1, 4; add.u32 %r1, %r1, 1;\n"
      "setp.lt.u32 %p1, %r1, 32; @%p1 bra again;\n";
  static const uint32_t blocks[] = {1, 8}, threads[] = {32, 1024};
  for (int k = 0; k < 2; k++) {
    Seen s;
    see(&(Job){.blocks = blocks[k], .threads = threads[k], .body = body}, &s);
    const SolEmuCounts *c = &inst(&s, "ld.global", 0)->counts;
    double hits = (double)c->l1_hits / (double)c->sectors;
    CHECK_MSG(k ? hits < 0.25 : hits > 0.8, "%u blocks: %g are hits", blocks[k], hits);
    done(&s);
  }
}

TEST(operands_that_leave_the_short_way) {
  static const struct {
    const char *op, *a, *b;
    bool rare;
  } cases[] = {
      {"div.rn.f32", "1.0", "3.0", false},       {"div.rn.f32", "0.0", "3.0", true},
      {"div.rn.f32", "1.0e-37", "3.0", true},    {"div.rn.f32", "1.0e-30", "100000.0", false},
      {"div.rn.f32", "1.0e-30", "1.0e10", true}, {"div.rn.f32", "1.0e30", "1.0e-5", false},
      {"div.rn.f32", "1.0", "1.0e38", true},     {"div.rn.f32", "1.0e38", "3.0", false},
      {"div.rn.f64", "1.0", "3.0", false},       {"div.rn.f64", "0.0", "3.0", true},
      {"div.rn.f64", "1.0e-300", "3.0", true},   {"div.rn.f64", "1.0e-290", "3.0", false},
      {"div.rn.f64", "1.0", "1.0e-300", false},  {"div.rn.f64", "1.0e-200", "1.0e200", true},
      {"sqrt.rn.f32", "2.0", NULL, false},       {"sqrt.rn.f32", "0.0", NULL, true},
      {"sqrt.rn.f32", "1.0e-30", NULL, false},   {"sqrt.rn.f64", "2.0", NULL, false},
      {"sqrt.rn.f64", "1.0e-300", NULL, true},   {"rcp.rn.f32", "1.0e37", NULL, false},
      {"rcp.rn.f32", "1.0e38", NULL, true},      {"rcp.rn.f64", "1.0e300", NULL, false},
      {"rcp.rn.f64", "1.0e-310", NULL, true},
  };
  for (size_t k = 0; k < SOL_COUNT(cases); k++) {
    const char *type = strrchr(cases[k].op, '.');
    char text[512];
    snprintf(text, sizeof text,
             "{ .reg %s %%x<4>; setp.eq.u32 %%p1, %%l, 7; mov%s %%x0, %s; mov%s %%x1, %s; mov%s %%x3, 1.0;\n"
             "selp%s %%x0, %%x0, %%x3, %%p1; %s %%x2, %%x0%s; }",
             type, type, cases[k].a, type, cases[k].b ? cases[k].b : "1.0", type, type, cases[k].op,
             cases[k].b ? ", %x1" : "");
    Seen s;
    see(&(Job){.body = text}, &s);
    if (!CHECK_INT(inst(&s, cases[k].op, 0)->counts.turns, cases[k].rare ? 32 : 0)) printf("%s\n", text);
    done(&s);
  }
}

// ---- atomics ----

TEST(atomics_at_one_address) {
  static const struct {
    const char *body;
    uint32_t same, hottest;  // same: an execution
    uint32_t lanes, packets; // on the busiest 512 bytes
    bool shared;
  } cases[] = {
      {"red.global.add.u32 [%in], 1;", 32, 1024, 1024, 128, false},
      {"mul.wide.u32 %rd1, %i, 4; add.u64 %rd2, %in, %rd1; red.global.add.u32 [%rd2], 1;", 1, 8, 0, 16,
       false},
      {"and.b32 %r1, %l, 3; mul.wide.u32 %rd1, %r1, 64; add.u64 %rd2, %in, %rd1; red.global.add.u32 [%rd2], "
       "1;",
       8, 256, 512, 512, false},
      // 20 lanes at one address, the others each at their own, sectors apart.
      {"sub.u32 %r1, %l, 20; setp.lt.u32 %p1, %l, 20; selp.b32 %r1, 99, %r1, %p1; mul.wide.u32 %rd1, %r1, "
       "128;\n"
       "add.u64 %rd2, %in, %rd1; red.global.add.u32 [%rd2], 1;",
       20, 640, 640, 96, false},
      // Each warp comes to the word of the one before: all but the first wait for it.
      {"setp.eq.u32 %p1, %l, 5; @%p1 atom.global.add.u32 %r1, [%in+64], 1;", 1, 32, 31, 32, false},
      // Four lanes of all eights, each at its word of one sector: a packet, and the first word again.
      {"and.b32 %r1, %l, 7; setp.eq.u32 %p1, %r1, 3; shr.u32 %r1, %l, 3; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %in, %rd1;\n"
       "@%p1 red.global.add.u32 [%rd2], 1;",
       1, 128, 31, 32, false},
      // Warps by turns at two words of one sector: no word has most of them.
      {"setp.eq.u32 %p1, %l, 5; shr.u32 %r1, %i, 5; and.b32 %r1, %r1, 1; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %in, %rd1;\n"
       "@%p1 red.global.add.u32 [%rd2], 1;",
       1, 32, 0, 32, false},
      {"mov.u32 %r2, tile; red.shared.add.u32 [%r2], 1;", 32, 0, 0, 0, true},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    Seen s;
    see(&(Job){.body = cases[k].body, .slices = 1024}, &s); // so many that none has two parts
    bool atom = strstr(cases[k].body, "atom.") != NULL;
    const SolEmuPattern *p = &inst(&s, atom ? "atom" : "red", 0)->pattern;
    CHECK_INT(p->same, 32 * cases[k].same);
    if (!CHECK_INT(p->hottest, cases[k].hottest)) printf("%s\n", cases[k].body);
    CHECK_INT(p->queue_lanes, cases[k].lanes);
    CHECK_INT(p->queue_packets, cases[k].packets);
    CHECK_INT(touch(&s, s.in)->read, touch(&s, s.in)->written);
    CHECK_INT(touch(&s, s.in)->read_first, touch(&s, s.in)->written); // an atomic reads before it writes
    CHECK_INT(touch(&s, s.in)->written > 0, !cases[k].shared);
    done(&s);
  }
}

// A slice has the atomics on all memory that is its own: a single one all of them.
TEST(slices_of_l2_share_atomics) {
  static const char *const body =
      "mul.wide.u32 %rd1, %i, 4; add.u64 %rd2, %in, %rd1; red.global.add.u32 [%rd2], 1;";
  uint64_t before = 0;
  for (uint32_t slices = 1024; slices; slices /= 32) {
    Seen s;
    see(&(Job){.body = body, .slices = slices}, &s);
    uint64_t packets = inst(&s, "red", 0)->pattern.queue_packets;
    CHECK(packets >= before);
    if (slices == 1) CHECK_INT(packets, 1024 / 8);
    before = packets;
    done(&s);
  }
}

// Every lane adds one by compare-and-swap: as many of them succeed as there are lanes at the word, and none that changes nothing counts.
TEST(swaps_that_change_a_word) {
  static const struct {
    const char *address, *next;
    uint32_t swaps;
  } cases[] = {
      {"mov.u64 %rd2, %in;", "add.u32 %r2, %r1, 1;", 1024},
      {"and.b32 %r5, %l, 3; mul.wide.u32 %rd1, %r5, 64; add.u64 %rd2, %in, %rd1;", "add.u32 %r2, %r1, 1;",
       256},
      {"mov.u64 %rd2, %in;", "mov.u32 %r2, %r1;", 0},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    Seen s;
    char body[400];
    snprintf(
        body, sizeof body,
        "%s ld.volatile.global.u32 %%r1, [%%rd2];\nagain: %s\natom.global.cas.b32 %%r3, [%%rd2], %%r1, %%r2;\n"
        "setp.ne.u32 %%p1, %%r3, %%r1; mov.u32 %%r1, %%r3; @%%p1 bra again;",
        cases[k].address, cases[k].next);
    see(&(Job){.body = body, .blocks = 1, .threads = 1024}, &s); // one worker: who comes first is known
    CHECK_INT(inst(&s, "atom", 0)->pattern.swaps, cases[k].swaps);
    CHECK_INT(inst(&s, "atom", 0)->pattern.swapped, cases[k].swaps ? 1024 : 0);
    done(&s);
  }
}

// One lane of each warp takes a lock, and gives it back behind a fence, or another word, which is no lock.
TEST(locks_are_held) {
  for (int given = 0; given < 2; given++) {
    Seen s;
    char body[400];
    snprintf(
        body, sizeof body,
        "setp.eq.u32 %%p1, %%l, 0;\n@%%p1 atom.global.cas.b32 %%r1, [%%in], 0, 1;\n@%%p1 st.global.u32 [%%in+64], %%r1;\n"
        "membar.gl;\n@%%p1 atom.global.exch.b32 %%r2, [%%in%s], 0;",
        given ? "" : "+64");
    see(&(Job){.body = body, .blocks = 1, .threads = 1024}, &s); // one worker: who comes first is known
    const SolEmuPattern *p = &inst(&s, "atom", 0)->pattern;
    CHECK_INT(p->swaps, given ? 32 : 1);
    CHECK_INT(p->held > 32 * 100, given); // a fence is longer than that
    done(&s);
  }
}

// Each lane takes a lock of its own: every one is held as long.
TEST(locks_of_lanes_are_held) {
  uint64_t held[2];
  for (int lanes = 0; lanes < 2; lanes++) {
    Seen s;
    char body[400];
    snprintf(
        body, sizeof body,
        "mul.wide.u32 %%rd1, %%t, 4; add.u64 %%rd2, %%in, %%rd1; setp.lt.u32 %%p1, %%l, %d;\n"
        "@%%p1 atom.global.cas.b32 %%r1, [%%rd2], 0, 1;\nmembar.gl;\n@%%p1 atom.global.exch.b32 %%r2, [%%rd2], 0;",
        lanes ? 32 : 1);
    see(&(Job){.body = body, .blocks = 1, .threads = 64}, &s);
    held[lanes] = inst(&s, "atom", 0)->pattern.held;
    done(&s);
  }
  CHECK(held[0] > 0);
  CHECK_INT(held[1], 32 * held[0]);
}

// Two slices share 1024 bytes by halves of 512 bytes, as an H200's do; which two is as chance has it.
TEST(slices_share_memory_as_chance_has_it) {
  static const struct {
    uint32_t words, apart; // bytes
    double least, most;    // of the mean, what the busiest slice has
  } cases[] = {{2, 256, 1, 1}, {2, 512, 2, 2}, {4, 256, 2, 2}, {64, 512, 2, 8}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    Seen s;
    char body[300];
    snprintf(body, sizeof body,
             "rem.u32 %%r5, %%t, %u; mul.wide.u32 %%rd1, %%r5, %u; add.u64 %%rd2, %%in, %%rd1; "
             "red.global.add.u32 [%%rd2], 1;",
             cases[k].words, cases[k].apart);
    see(&(Job){.body = body, .blocks = 16, .threads = 64, .slices = 96}, &s);
    const SolEmuPattern *p = &inst(&s, "red", 0)->pattern;
    double mean = 1024.0 / cases[k].words,
           here = (double)(p->queue_lanes > p->queue_packets ? p->queue_lanes : p->queue_packets);
    CHECK_MSG(here >= mean * cases[k].least && here <= mean * cases[k].most, "%u by %u: %g of %g",
              cases[k].words, cases[k].apart, here, mean);
    done(&s);
  }
}

// Two instructions, each on words of the same two slices: they take turns at the one that has most of both.
TEST(instructions_take_turns_at_a_slice) {
  Seen s;
  see(
      &(Job){
          .body =
              "rem.u32 %r5, %t, 5; min.u32 %r5, %r5, 2; mul.wide.u32 %rd1, %r5, 256; add.u64 %rd2, %in, %rd1;\n"
              "red.global.add.u32 [%rd2], 1;\n"
              "rem.u32 %r5, %t, 2; mul.wide.u32 %rd1, %r5, 256; add.u64 %rd2, %in, %rd1;\n"
              "red.global.add.u32 [%rd2], 1;",
          .blocks = 16,
          .threads = 64,
          .slices = 96},
      &s);
  CHECK(inst(&s, "red", 0)->pattern.queue_slice);
  CHECK_INT(inst(&s, "red", 1)->pattern.queue_slice, inst(&s, "red", 0)->pattern.queue_slice);
  done(&s);
}

// ---- values ----

// Pairs: the first is in the first element. What each fits into is said behind it.
static void fill_values(uint8_t *in) {
  static const uint32_t values[16] = {
      0x3f800000, 0xc0200000, // 1: both; -2.5: both
      0x3f804000, 0x33800000, // 1 + 2^-9: fp16; 2^-24, the least of fp16: both
      0x33000000, 0x47800000, // 2^-25: bf16; 65536: bf16
      0x00000000, 0x3eaaaaab, // 0: both; 1/3: neither
      0x33c00000, 0x477fe000, // 1.5 * 2^-24: bf16; 65504, the greatest of fp16: fp16
      0x3eaaaaab, 0x80000000, // neither; -0: both
      0x4788b800, 0x7fc00000, // 70000: neither; a NaN: both
      0x7f800000, 0x38802000, // infinity: both; 2^-14 + 2^-24: fp16
  };
  for (size_t k = 0; k < BUFFER / 4; k++) memcpy(in + 4 * k, &values[k % 16], 4);
}

TEST(values_that_fit_smaller) {
  static const struct {
    const char *body;
    int lanes; // 0: nothing takes them as floats
  } cases[] = {
      {"ld.global.f32 %f1, [%rd2];", 1},
      {"ld.global.b32 %r1, [%rd2]; add.f32 %f2, %r1, %r1;", 1},
      {"ld.global.nc.b32 %r1, [%rd2]; mov.b32 %r2, %r1; add.f32 %f2, %r2, %r2;", 1},
      {"ld.global.b32 %r1, [%rd2]; add.u32 %r2, %r1, %r1;", 0},
      {"ld.global.v2.b32 {%r1, %r2}, [%rd2]; add.f32 %f2, %r2, %r2; add.u32 %r3, %r1, %r1;", 1}, // one of two
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    char body[512];
    Seen s;
    snprintf(body, sizeof body, "mul.wide.u32 %%rd1, %%i, 8; add.u64 %%rd2, %%in, %%rd1; %s", cases[k].body);
    see(&(Job){.body = body, .fill = fill_values, .blocks = 64}, &s);
    const SolEmuPattern *p = &inst(&s, "ld.global", 0)->pattern;
    uint64_t n = p->values;
    if (!cases[k].lanes) {
      CHECK_INT(n, 0);
    } else {
      CHECK(n > 64 * 64 / 16 && n < 64 * 64 / 4); // an eighth of 4096
      bool second = strstr(body, "v2") != NULL;
      CHECK_INT(p->as_fp16, n / 8 * (second ? 6 : 4));
      CHECK_INT(p->as_bf16, n / 8 * 5);
      CHECK_INT(p->zeros, n / 8);
    }
    done(&s);
  }
}

// Without being asked for, nothing is kept; counts are the same.
// Eight blocks fit: four SMs of two. The loop's rounds are the block's number, or the same for all.
#define ROUNDS(count) count " mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra L;"

TEST(blocks_that_differ_are_told_apart_from_blocks_that_are_alike) {
  Seen s;
  see(&(Job){.body = ROUNDS("mov.u32 %r1, 1000;")}, &s);
  CHECK_NEAR(s.r.balance.longest, 1, 1e-12);
  CHECK_NEAR(s.r.balance.busiest, 1, 1e-12);
  done(&s);
  // One of eight does all: it ends eight times as late as the mean, on an SM that has a fourth of equal blocks.
  see(&(Job){.body = ROUNDS("setp.eq.u32 %p2, %b, 3; selp.u32 %r1, 100000, 0, %p2;"), .blocks = 8}, &s);
  CHECK_NEAR(s.r.balance.longest, 8, 0.02);
  CHECK_NEAR(s.r.balance.busiest, 4, 0.02);
  done(&s);
  // The same among 800: whoever is free takes the next ones, and the long one is as long as a hundred waves of the mean.
  see(&(Job){.body = ROUNDS("setp.eq.u32 %p2, %b, 3; selp.u32 %r1, 100000, 0, %p2;"), .blocks = 800}, &s);
  CHECK_NEAR(s.r.balance.longest, 8, 0.5);
  done(&s);
  // Every second block works: they balance out.
  see(&(Job){.body = ROUNDS("and.b32 %r1, %b, 1; mul.lo.u32 %r1, %r1, 10000;"), .blocks = 800}, &s);
  CHECK_NEAR(s.r.balance.longest, 1, 0.1);
  CHECK_NEAR(s.r.balance.busiest, 1, 0.1);
  done(&s);
}

TEST(not_observed) {
  Seen s, plain = {0};
  run(&(Job){.body = OWN "ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd3], %r1;"}, &s);
  SolEmuModule *module;
  char text[4096];
  snprintf(text, sizeof text, head, OWN "ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd3], %r1;");
  CHECK(
      !sol_emu_create(&(SolEmuMachine){.sms = 4, .workers = 1, .blocks_per_sm = 2}, &plain.emu, &plain.err) &&
      !sol_emu_load(plain.emu, &(SolPtxSource){"k", text, strlen(text)}, 1, &module, &plain.err) &&
      !sol_emu_alloc(plain.emu, BUFFER, "in", &plain.in, &plain.err) &&
      !sol_emu_alloc(plain.emu, BUFFER, "out", &plain.out, &plain.err));
  struct {
    uint64_t in, out;
    uint32_t n;
  } args = {plain.in, plain.out, 0};
  SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "k"), .params = &args, .param_bytes = 20};
  launch.grid[0] = 16, launch.block[0] = 64;
  launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
  CHECK(!sol_emu_launch(plain.emu, &launch, &plain.r, &plain.err));
  CHECK_INT(plain.r.touch_count, 0);
  CHECK_INT(plain.r.flight.loads, 0);
  for (uint32_t k = 0; k < plain.r.inst_count; k++) CHECK_INT(plain.r.insts[k].pattern.seen, 0);
  CHECK(!memcmp(&plain.r.total, &s.r.total, sizeof s.r.total));
  CHECK_INT(plain.r.blocks_in_grid, 16);
  // Observing needs the model of memory: it is there even where counts were declined.
  launch.observe = launch.no_counts = true;
  sol_emu_result_free(&plain.r);
  CHECK(!sol_emu_launch(plain.emu, &launch, &plain.r, &plain.err));
  CHECK_INT(plain.r.touch_count, 2);
  CHECK_INT(plain.r.total.sectors, s.r.total.sectors);
  done(&s);
  done(&plain);
}

CHECK_MAIN
