// shfl, vote, match, redux, activemask, elect against references that work lane by lane from the manual's
// text.
#include "emu_body.h"
COVERS(SHFL, VOTE, MATCH, REDUX, ACTIVEMASK, ELECT)

enum { LANES = 32 };
static const uint32_t masks[] = {0xffffffffu, 0x0000ffffu, 0xaaaaaaaau,
                                 0x00000001u, 0x80000000u, 0x13579bdfu};
enum { MASKS = (int)(sizeof masks / sizeof masks[0]) };

// Lanes in `mask` (as the launch's x) run `inner`, the others leave their output alone. Four words a lane.
static Ran run_masked(const char *inner, uint32_t mask, const void *in, size_t in_stride,
                      uint32_t out[LANES][4]) {
  char ptx[4096];
  snprintf(ptx, sizeof ptx,
           "cvt.u32.u64 %%r63, %%x;\nshr.u32 %%r62, %%r63, %%t;\nand.b32 %%r62, %%r62, 1;\nsetp.eq.u32 "
           "%%p15, %%r62, 0;\n"
           "@%%p15 bra SKIP;\n%s\nSKIP:\n",
           inner);
  for (int l = 0; l < LANES; l++)
    for (int w = 0; w < 4; w++) out[l][w] = 0xdeadbeef;
  return run_body(&(Body){.ptx = ptx,
                          .in = in,
                          .in_bytes = LANES * in_stride,
                          .in_stride = in_stride,
                          .out = out,
                          .out_bytes = LANES * 16,
                          .out_stride = 16,
                          .x = mask});
}

// ---- shfl ----

static int shfl_reference(char mode, int lane, uint32_t b, uint32_t c, bool *valid) {
  int segment = (int)(c >> 8 & 31), clamp = (int)(c & 31), by = (int)(b & 31);
  int highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment, j = 0;
  if (mode == 'u') j = lane - by, *valid = j >= highest;
  if (mode == 'd') j = lane + by, *valid = j <= highest;
  if (mode == 'b') j = lane ^ by, *valid = j <= highest;
  if (mode == 'i') j = lowest | (by & ~segment), *valid = j <= highest;
  return *valid ? j : lane;
}

static void check_shfl(const char *mode, uint32_t mask, bool sync, bool immediate, uint64_t *seed) {
  uint32_t in[LANES][4], out[LANES][4];
  uint32_t widths[] = {0, 0x1000, 0x1800, 0x1c00, 0x1e00}, b = body_random(seed) & 31;
  uint32_t c = widths[body_random(seed) % 5] | (mode[0] == 'u' ? 0 : 31);
  for (int l = 0; l < LANES; l++) {
    in[l][0] = body_random(seed);
    in[l][1] = immediate ? b : body_random(seed) & 63;
    in[l][2] = immediate ? c : widths[body_random(seed) % 5] | (body_random(seed) & 31);
    in[l][3] = mask;
  }
  char ptx[1024], operands[64];
  snprintf(operands, sizeof operands, immediate ? "%u, %u" : "%%r1, %%r2", b, c);
  snprintf(ptx, sizeof ptx,
           "ld.global.v4.u32 {%%r0,%%r1,%%r2,%%r3}, [%%in];\nshfl%s.%s.b32 %%r4|%%p1, %%r0, %s%s;\n"
           "selp.u32 %%r5, 1, 0, %%p1;\nst.global.v2.u32 [%%out], {%%r4,%%r5};\n",
           sync ? ".sync" : "", mode, operands,
           !sync                      ? ""
           : immediate && mask == ~0u ? ", -1"
                                      : ", %r3");
  Ran r = run_masked(ptx, mask, in, 16, out);
  if (!body_ok(&r, ptx)) return;
  for (int l = 0; l < LANES; l++) {
    bool valid = false;
    int from = shfl_reference(mode[0], l, in[l][1], in[l][2], &valid);
    bool runs = mask >> l & 1, there = mask >> from & 1 || from == l;
    uint32_t want = !runs ? 0xdeadbeef : there ? in[from][0] : 0;
    CHECK_MSG(out[l][0] == want, "shfl.%s mask %x lane %d: %x, not %x", mode, mask, l, out[l][0], want);
    CHECK_MSG(out[l][1] == (runs ? valid : 0xdeadbeef), "shfl.%s mask %x lane %d: p %x", mode, mask, l,
              out[l][1]);
  }
}

TEST(shfl) {
  static const char *const modes[] = {"up", "down", "bfly", "idx"};
  uint64_t seed = 1;
  for (int m = 0; m < 4; m++)
    for (int k = 0; k < MASKS; k++)
      for (int form = 0; form < 3; form++) check_shfl(modes[m], masks[k], form > 0, form == 2, &seed);
}

// d may be the register a is, and the source of other lanes.
TEST(shfl_in_place) {
  uint32_t in[LANES], out[LANES][4];
  for (uint32_t l = 0; l < LANES; l++) in[l] = 1000 + l;
  Ran r = run_masked("ld.global.u32 %r0, [%in];\nshfl.sync.down.b32 %r0, %r0, 1, 31, -1;\nshfl.sync.down.b32 "
                     "%r0, %r0, 1, 31, -1;\n"
                     "st.global.u32 [%out], %r0;",
                     ~0u, in, 4, out);
  if (!body_ok(&r, "shfl")) return;
  for (uint32_t l = 0; l < LANES; l++) CHECK_INT(out[l][0], 1000 + (l < 30 ? l + 2 : 31));
}

TEST(shfl_from_absent_lane_is_reported) {
  uint32_t out[LANES];
  const char *ptx = "setp.lt.u32 %p1, %t, 8;\n@!%p1 bra SKIP;\nshfl.sync.idx.b32 %r0, %t, 20, 31, "
                    "0xff;\nst.global.u32 [%out], %r0;\nSKIP:\n";
  Body b = {.ptx = ptx,
            .out = out,
            .out_bytes = sizeof out,
            .out_stride = 4,
            .checks = SOL_EMU_CHECK_SYNC,
            .keep_going = true};
  Ran r = run_body(&b);
  CHECK_INT(r.status, SOL_OK);
  if (CHECK(r.findings == 1)) CHECK_INT(r.finding.kind, SOL_EMU_BAD_SYNC);
  b.checks = 0;
  r = run_body(&b);
  body_ok(&r, "without the check");
}

// ---- vote ----

static void check_vote(uint32_t mask, bool sync, uint32_t holds, bool negated) {
  uint32_t in[LANES][2], out[LANES][4];
  for (int l = 0; l < LANES; l++) in[l][0] = holds >> l & 1, in[l][1] = mask;
  char ptx[1024], tail[16];
  snprintf(tail, sizeof tail, "%s%%p1%s", negated ? "!" : "", sync ? ", %r1" : "");
  const char *s = sync ? ".sync" : "";
  snprintf(ptx, sizeof ptx,
           "ld.global.v2.u32 {%%r0,%%r1}, [%%in];\nsetp.ne.u32 %%p1, %%r0, 0;\n"
           "vote%s.all.pred %%p2, %s;\nvote%s.any.pred %%p3, %s;\nvote%s.uni.pred %%p4, "
           "%s;\nvote%s.ballot.b32 %%r1, %s;\n"
           "selp.u32 %%r2, 1, 0, %%p2;\nselp.u32 %%r3, 1, 0, %%p3;\nselp.u32 %%r4, 1, 0, %%p4;\n"
           "st.global.v4.u32 [%%out], {%%r2,%%r3,%%r4,%%r1};\n",
           s, tail, s, tail, s, tail, s, tail);
  Ran r = run_masked(ptx, mask, in, 8, out);
  if (!body_ok(&r, ptx)) return;
  uint32_t h = (negated ? ~holds : holds) & mask;
  for (int l = 0; l < LANES; l++) {
    if (!(mask >> l & 1)) {
      CHECK(out[l][0] == 0xdeadbeef);
      continue;
    }
    CHECK_INT(out[l][0], h == mask);
    CHECK_INT(out[l][1], h != 0);
    CHECK_INT(out[l][2], h == 0 || h == mask);
    CHECK_INT(out[l][3], h);
  }
}

TEST(vote) {
  uint64_t seed = 2;
  for (int k = 0; k < MASKS; k++)
    for (int form = 0; form < 8; form++) {
      uint32_t holds = form < 2 ? 0 : form < 4 ? ~0u : body_random(&seed);
      check_vote(masks[k], form & 1, holds, form >> 1 & 1);
    }
}

// Lanes may name different masks: each group is on its own.
TEST(groups) {
  uint32_t in[LANES][2], out[LANES][4];
  for (uint32_t l = 0; l < LANES; l++) in[l][0] = l % 3, in[l][1] = 0xffu << (l / 8 * 8);
  Ran r = run_masked(
      "ld.global.v2.u32 {%r0,%r1}, [%in];\nsetp.eq.u32 %p1, %r0, 0;\nvote.sync.ballot.b32 %r2, %p1, %r1;\n"
      "match.any.sync.b32 %r3, %r0, %r1;\nredux.sync.add.u32 %r4, %t, %r1;\nelect.sync %r5|%p2, %r1;\n"
      "st.global.v4.u32 [%out], {%r2,%r3,%r4,%r5};",
      ~0u, in, 8, out);
  if (!body_ok(&r, "groups")) return;
  for (uint32_t l = 0; l < LANES; l++) {
    uint32_t ballot = 0, same = 0, sum = 0, first = l / 8 * 8;
    for (uint32_t k = first; k < first + 8; k++) {
      ballot |= (uint32_t)(in[k][0] == 0) << k;
      same |= (uint32_t)(in[k][0] == in[l][0]) << k;
      sum += k;
    }
    CHECK_INT(out[l][0], ballot);
    CHECK_INT(out[l][1], same);
    CHECK_INT(out[l][2], sum);
    CHECK_INT(out[l][3], first);
  }
}

// ---- match ----

static void check_match(uint32_t mask, uint32_t kinds, bool wide, uint64_t *seed) {
  uint64_t in[LANES][2];
  uint32_t out[LANES][4];
  for (int l = 0; l < LANES; l++)
    in[l][0] = (uint64_t)(body_random(seed) % kinds) << (wide ? 40 : 0) | 5, in[l][1] = mask;
  char ptx[1024];
  const char *t = wide ? "b64 " : "b32 ", *v = wide ? "%rd1" : "%r1";
  snprintf(ptx, sizeof ptx,
           "ld.global.v2.u64 {%%rd1,%%rd2}, [%%in];\ncvt.u32.u64 %%r1, %%rd1;\ncvt.u32.u64 %%r2, %%rd2;\n"
           "match.any.sync.%s %%r3, %s, %%r2;\nmatch.all.sync.%s %%r4|%%p1, %s, %%r2;\nselp.u32 %%r5, 1, 0, "
           "%%p1;\n"
           "st.global.v4.u32 [%%out], {%%r3,%%r4,%%r5,%%r5};\n",
           t, v, t, v);
  Ran r = run_masked(ptx, mask, in, 16, out);
  if (!body_ok(&r, ptx)) return;
  for (int l = 0; l < LANES; l++) {
    if (!(mask >> l & 1)) continue;
    uint32_t same = 0;
    for (int k = 0; k < LANES; k++) same |= (uint32_t)((mask >> k & 1) && in[k][0] == in[l][0]) << k;
    CHECK_INT(out[l][0], same);
    CHECK_INT(out[l][1], same == mask ? mask : 0);
    CHECK_INT(out[l][2], same == mask);
  }
}

TEST(match) {
  uint64_t seed = 3;
  for (int k = 0; k < MASKS; k++)
    for (uint32_t kinds = 1; kinds < 40; kinds += 6) {
      check_match(masks[k], kinds, false, &seed);
      check_match(masks[k], kinds, true, &seed);
    }
}

// ---- redux ----

typedef struct ReduxCase {
  const char *text;
  char kind; // '+' '<' '>' '&' '|' '^'
  bool is_signed;
} ReduxCase;

static uint32_t redux_reference(const ReduxCase *c, const uint32_t *v, uint32_t mask) {
  bool first = true;
  uint32_t r = 0;
  for (int l = 0; l < LANES; l++) {
    if (!(mask >> l & 1)) continue;
    bool less = c->is_signed ? (int32_t)v[l] < (int32_t)r : v[l] < r;
    if (first)
      r = v[l];
    else if (c->kind == '+')
      r += v[l];
    else if (c->kind == '&')
      r &= v[l];
    else if (c->kind == '|')
      r |= v[l];
    else if (c->kind == '^')
      r ^= v[l];
    else if (c->kind == '<')
      r = less ? v[l] : r;
    else
      r = less ? r : v[l];
    first = false;
  }
  return r;
}

TEST(redux_integers) {
  static const ReduxCase cases[] = {{"add.u32", '+', 0}, {"add.s32", '+', 1}, {"min.u32", '<', 0},
                                    {"min.s32", '<', 1}, {"max.u32", '>', 0}, {"max.s32", '>', 1},
                                    {"and.b32", '&', 0}, {"or.b32", '|', 0},  {"xor.b32", '^', 0}};
  uint64_t seed = 4;
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
    for (int k = 0; k < MASKS; k++) {
      uint32_t in[LANES], out[LANES][4];
      char ptx[512];
      for (int l = 0; l < LANES; l++) in[l] = body_random(&seed);
      snprintf(ptx, sizeof ptx,
               "ld.global.u32 %%r1, [%%in];\nredux.sync.%s %%r2, %%r1, %u;\nst.global.u32 [%%out], %%r2;\n",
               cases[c].text, masks[k]);
      Ran r = run_masked(ptx, masks[k], in, 4, out);
      if (!body_ok(&r, ptx)) continue;
      for (int l = 0; l < LANES; l++)
        CHECK_INT(out[l][0], masks[k] >> l & 1 ? redux_reference(&cases[c], in, masks[k]) : 0xdeadbeef);
    }
}

static bool before(float a, float b) {
  return a < b || (a == b && signbit(a) && !signbit(b));
}
static uint32_t redux_float_reference(const uint32_t *v, uint32_t mask, bool is_max, bool magnitude,
                                      bool nan_wins) {
  float r = NAN;
  bool nan = false;
  for (int l = 0; l < LANES; l++) {
    if (!(mask >> l & 1)) continue;
    float f;
    uint32_t u = magnitude ? v[l] & 0x7fffffff : v[l];
    memcpy(&f, &u, 4);
    if (isnan(f))
      nan = true;
    else if (isnan(r) || (is_max ? before(r, f) : before(f, r)))
      r = f;
  }
  uint32_t bits;
  memcpy(&bits, &r, 4);
  return isnan(r) || (nan && nan_wins) ? 0x7fffffff : bits;
}

TEST(redux_floats) {
  uint64_t seed = 5;
  for (int form = 0; form < 8; form++)
    for (int k = 0; k < MASKS; k++)
      for (int nans = 0; nans < 3; nans++) {
        uint32_t in[LANES], out[LANES][4];
        char ptx[512];
        bool is_max = form & 1, magnitude = form & 2, nan_wins = form & 4;
        for (int l = 0; l < LANES; l++) {
          uint32_t kind = body_random(&seed) % 8;
          in[l] =
              (body_random(&seed) & 0x80000000) | (kind ? 0x3f000000 + (body_random(&seed) & 0x1ffffff) : 0);
          if (nans == 2 || (nans == 1 && kind == 3)) in[l] = 0xffc01234;
        }
        snprintf(ptx, sizeof ptx,
                 "ld.global.f32 %%f1, [%%in];\nredux.sync.%s%s%s.f32 %%f2, %%f1, %u;\nst.global.f32 [%%out], "
                 "%%f2;\n",
                 is_max ? "max" : "min", magnitude ? ".abs" : "", nan_wins ? ".NaN" : "", masks[k]);
        Ran r = run_masked(ptx, masks[k], in, 4, out);
        if (!body_ok(&r, ptx)) continue;
        for (int l = 0; l < LANES; l++) {
          uint32_t want = redux_float_reference(in, masks[k], is_max, magnitude, nan_wins);
          CHECK_INT(out[l][0], masks[k] >> l & 1 ? want : 0xdeadbeef);
        }
      }
}

// ---- activemask, elect ----

TEST(activemask_and_elect) {
  for (int k = 0; k < MASKS; k++) {
    uint32_t in[LANES], out[LANES][4];
    for (int l = 0; l < LANES; l++) in[l] = masks[k];
    Ran r = run_masked(
        "ld.global.u32 %r0, [%in];\nactivemask.b32 %r1;\nelect.sync %r2|%p1, %r0;\nselp.u32 %r3, 1, 0, %p1;\n"
        "elect.sync _|%p2, %r0;\nselp.u32 %r4, 1, 0, %p2;\nst.global.v4.u32 [%out], {%r1,%r2,%r3,%r4};",
        masks[k], in, 4, out);
    if (!body_ok(&r, "elect")) continue;
    int leader = 0, leaders = 0;
    while (!(masks[k] >> leader & 1)) leader++;
    for (int l = 0; l < LANES; l++) {
      if (!(masks[k] >> l & 1)) continue;
      CHECK_INT(out[l][0], masks[k]);
      CHECK_INT(out[l][1], leader);
      CHECK_INT(out[l][2], l == leader);
      CHECK_INT(out[l][3], l == leader);
      leaders += (int)out[l][2];
    }
    CHECK_INT(leaders, 1);
  }
}

// A block of fewer than 32 threads: lanes that do not exist are not waited for, and do not count.
TEST(part_of_a_warp) {
  uint32_t out[LANES][4] = {{0}};
  Body b = {.ptx = "activemask.b32 %r1;\nredux.sync.add.u32 %r2, %t, -1;\nsetp.ge.u32 %p1, %t, "
                   "0;\nvote.sync.ballot.b32 %r3, %p1, -1;\n"
                   "shfl.sync.up.b32 %r4, %t, 1, 0, -1;\nst.global.v4.u32 [%out], {%r1,%r2,%r3,%r4};",
            .threads = 11,
            .out = out,
            .out_bytes = sizeof out,
            .out_stride = 16};
  Ran r = run_body(&b);
  if (!body_ok(&r, "11 threads")) return;
  for (int l = 0; l < 11; l++) {
    CHECK_INT(out[l][0], 0x7ff);
    CHECK_INT(out[l][1], 55);
    CHECK_INT(out[l][2], 0x7ff);
    CHECK_INT(out[l][3], l ? l - 1 : 0);
  }
}

CHECK_MAIN
