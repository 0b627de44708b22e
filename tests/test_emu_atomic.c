// atom and red of every operation and type, in every space, against a reference that goes through the lanes
// in order.
#include "emu_body.h"
COVERS(ATOM, RED, RED_ASYNC)

enum { LANES = 32, CELLS = 32, CELL = 16, IN = 64 };

// ---- reference ----

static double half_value(uint16_t h, bool brain) {
  int e = brain ? h >> 7 & 255 : h >> 10 & 31, m = brain ? h & 127 : h & 1023, mbits = brain ? 7 : 10,
      bias = brain ? 127 : 15;
  double v = e ? ldexp(m + (1 << mbits), e - bias - mbits) : ldexp(m, 1 - bias - mbits);
  if (e == (brain ? 255 : 31)) v = m ? NAN : INFINITY;
  return h & 0x8000 ? -v : v;
}
static uint16_t half_of(double v, bool brain) { // nearest even, by trying both neighbours
  if (isnan(v)) return 0x7fff;
  uint16_t low = 0, high = brain ? 0x7f80 : 0x7c00, sign = signbit(v) ? 0x8000 : 0;
  double mag = fabs(v), limit = brain ? ldexp(1, 128) : 65536;
  while (high - low > 1) {
    uint16_t mid = (uint16_t)((low + high) / 2);
    if (half_value(mid, brain) <= mag)
      low = mid;
    else
      high = mid;
  }
  double below = half_value(low, brain),
         above = isinf(half_value(high, brain)) ? limit : half_value(high, brain);
  bool up = mag - below > above - mag || (mag - below == above - mag && low & 1);
  return (uint16_t)((up ? high : low) | sign);
}
static uint16_t half_op(char fn, uint16_t a, uint16_t b, bool brain) {
  double x = half_value(a, brain), y = half_value(b, brain);
  if (fn == '+') return half_of(x + y, brain);
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y) ? 0x7fff : isnan(x) ? b : a;
  bool less = x < y || (x == y && signbit(x) && !signbit(y));
  return (fn == '<') == less ? a : b;
}

typedef struct Case {
  const char *text; // "add.u32"
  char fn;          // + < > & | ^ i(nc) d(ec) x(chg) c(as)
  char type;        // u s f(loat) h(alf) b(rain)
  int bytes, vec;
  bool pair; // two halves in each element
} Case;

static uint64_t scalar_op(const Case *c, uint64_t a, uint64_t b, uint64_t swap, bool global) {
  int shift = 64 - 8 * c->bytes;
  bool less = c->type == 's' ? (int64_t)(a << shift) < (int64_t)(b << shift) : a < b;
  switch (c->fn) {
  case '&': return a & b;
  case '|': return a | b;
  case '^': return a ^ b;
  case '<': return less ? a : b;
  case '>': return less ? b : a;
  case 'i': return a >= b ? 0 : a + 1;
  case 'd': return a == 0 || a > b ? b : a - 1;
  case 'x': return b;
  case 'c': return a == b ? swap : a;
  default: break;
  }
  if (c->type != 'f') return a + b;
  if (c->bytes == 8) {
    double x, y;
    memcpy(&x, &a, 8), memcpy(&y, &b, 8);
    x += y;
    memcpy(&a, &x, 8);
    return a;
  }
  float x, y;
  uint32_t u = (uint32_t)a, v = (uint32_t)b;
  memcpy(&x, &u, 4), memcpy(&y, &v, 4);
  if (global && !isnormal(x)) x = copysignf(isinf(x) || isnan(x) ? x : 0, x); // subnormals are flushed in L2
  if (global && !isnormal(y)) y = copysignf(isinf(y) || isnan(y) ? y : 0, y);
  x += y;
  if (global && fpclassify(x) == FP_SUBNORMAL) x = copysignf(0, x);
  memcpy(&u, &x, 4);
  return isnan(x) ? 0x7fffffff : u;
}

static void apply(const Case *c, uint8_t *cell, const uint8_t *b, const uint8_t *swap, bool global) {
  if (c->bytes == 16) {
    if (c->fn == 'x' || !memcmp(cell, b, 16)) memcpy(cell, c->fn == 'x' ? b : swap, 16);
    return;
  }
  int part = c->pair ? 2 : c->bytes;
  for (int e = 0; e < c->vec * c->bytes; e += part) {
    uint64_t old = 0, v = 0, s = 0;
    memcpy(&old, cell + e, (size_t)part), memcpy(&v, b + e, (size_t)part), memcpy(&s, swap + e, (size_t)part);
    bool brain = c->type == 'b';
    old = c->type == 'h' || brain ? half_op(c->fn, (uint16_t)old, (uint16_t)v, brain)
                                  : scalar_op(c, old, v, s, global);
    memcpy(cell + e, &old, (size_t)part);
  }
}

// ---- cases ----

#define INT_CASES(fn, k)                                                                                     \
  {fn ".u32", k, 'u', 4, 1, 0}, {fn ".s32", k, 's', 4, 1, 0}, {fn ".u64", k, 'u', 8, 1, 0}, {                \
    fn ".s64", k, 's', 8, 1, 0                                                                               \
  }
#define HALF_CASES(fn, k)                                                                                    \
  {fn ".noftz.v2.f16", k, 'h', 2, 2, 0}, {fn ".noftz.v4.f16", k, 'h', 2, 4, 0},                              \
      {fn ".noftz.v8.f16", k, 'h', 2, 8, 0}, {fn ".noftz.v2.bf16", k, 'b', 2, 2, 0},                         \
      {fn ".noftz.v4.bf16", k, 'b', 2, 4, 0}, {fn ".noftz.v8.bf16", k, 'b', 2, 8, 0},                        \
      {fn ".noftz.v2.f16x2", k, 'h', 4, 2, 1}, {fn ".noftz.v4.f16x2", k, 'h', 4, 4, 1},                      \
      {fn ".noftz.v2.bf16x2", k, 'b', 4, 2, 1}, {                                                            \
    fn ".noftz.v4.bf16x2", k, 'b', 4, 4, 1                                                                   \
  }
static const Case cases[] = {
    INT_CASES("add", '+'),
    INT_CASES("min", '<'),
    INT_CASES("max", '>'),
    {"and.b32", '&', 'u', 4, 1, 0},
    {"and.b64", '&', 'u', 8, 1, 0},
    {"or.b32", '|', 'u', 4, 1, 0},
    {"or.b64", '|', 'u', 8, 1, 0},
    {"xor.b32", '^', 'u', 4, 1, 0},
    {"xor.b64", '^', 'u', 8, 1, 0},
    {"inc.u32", 'i', 'u', 4, 1, 0},
    {"dec.u32", 'd', 'u', 4, 1, 0},
    {"add.f32", '+', 'f', 4, 1, 0},
    {"add.f64", '+', 'f', 8, 1, 0},
    {"add.v2.f32", '+', 'f', 4, 2, 0},
    {"add.v4.f32", '+', 'f', 4, 4, 0},
    {"add.noftz.f16", '+', 'h', 2, 1, 0},
    {"add.noftz.bf16", '+', 'b', 2, 1, 0},
    {"add.noftz.f16x2", '+', 'h', 4, 1, 1},
    {"add.noftz.bf16x2", '+', 'b', 4, 1, 1},
    HALF_CASES("add", '+'),
    HALF_CASES("min", '<'),
    HALF_CASES("max", '>'),
    // from here on atom alone
    {"exch.b32", 'x', 'u', 4, 1, 0},
    {"exch.b64", 'x', 'u', 8, 1, 0},
    {"exch.b128", 'x', 'u', 16, 1, 0},
    {"cas.b16", 'c', 'u', 2, 1, 0},
    {"cas.b32", 'c', 'u', 4, 1, 0},
    {"cas.b64", 'c', 'u', 8, 1, 0},
    {"cas.b128", 'c', 'u', 16, 1, 0},
};
enum { COUNT = (int)(sizeof cases / sizeof cases[0]) };

// Where the cells are: global, generic to global, shared, shared::cluster, generic to shared.
typedef enum Where { GLOBAL, GENERIC, SHARED, CLUSTER, GENERIC_SHARED, PLACES } Where;

static const char *reg(int bytes) {
  return bytes == 2 ? "%h" : bytes == 4 ? "%r" : bytes == 8 ? "%rd" : "%q";
}
static const char *width(int bytes) {
  return bytes == 2 ? "b16" : bytes == 4 ? "b32" : bytes == 8 ? "b64" : "b128";
}

static void append(char *text, size_t cap, const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t at = strlen(text);
  vsnprintf(text + at, cap - at, format, args);
  va_end(args);
}
static void append_list(char *text, size_t cap, const Case *c, int first) {
  if (c->vec > 1) append(text, cap, "{");
  for (int e = 0; e < c->vec; e++) append(text, cap, "%s%s%d", e ? "," : "", reg(c->bytes), first + e);
  if (c->vec > 1) append(text, cap, "}");
}

// The cells stand first in the output, what each lane got back behind them.
static void make_body(char *text, size_t cap, const Case *c, Where where, bool red, const char *order) {
  static const char *const space[] = {".global", "", ".shared", ".shared::cluster", ""};
  bool shared = where >= SHARED;
  text[0] = 0;
  append(text, cap, "ld.global.v2.u32 {%%r60,%%r61}, [%%in];\nmul.wide.u32 %%rd30, %%r60, %d;\n", CELL);
  if (shared) {
    append(text, cap,
           "ld.global.v4.u32 {%%r50,%%r51,%%r52,%%r53}, [%%out];\nmov.u64 %%rd29, tile;\nmul.wide.u32 "
           "%%rd28, %%t, %d;\n",
           CELL);
    append(text, cap,
           "add.u64 %%rd28, %%rd28, %%rd29;\nst.shared.v4.u32 [%%rd28], {%%r50,%%r51,%%r52,%%r53};\nbar.sync "
           "0;\n");
    if (where == GENERIC_SHARED) append(text, cap, "cvta.shared.u64 %%rd29, %%rd29;\n");
    append(text, cap, "add.u64 %%rd30, %%rd30, %%rd29;\n");
  } else {
    append(text, cap, "add.u64 %%rd30, %%rd30, %%all;\n");
  }
  for (int e = 0; e < c->vec; e++) {
    append(text, cap, "ld.global.%s %s%d, [%%in+%d];\n", width(c->bytes), reg(c->bytes), 1 + e,
           16 + e * c->bytes);
    append(text, cap, "ld.global.%s %s%d, [%%in+%d];\n", width(c->bytes), reg(c->bytes == 16 ? 16 : c->bytes),
           c->bytes == 16 ? 2 : 9 + e, 32 + e * c->bytes);
  }
  append(text, cap, "setp.ne.u32 %%p1, %%r61, 0;\n@%%p1 %s%s%s.%s ", red ? "red" : "atom", order,
         space[where], c->text);
  int d = c->bytes == 16 ? 3 : 17;
  if (!red) append_list(text, cap, c, d), append(text, cap, ", ");
  append(text, cap, "[%%rd30], ");
  append_list(text, cap, c, 1);
  if (c->fn == 'c') append(text, cap, ", %s%d", reg(c->bytes), c->bytes == 16 ? 2 : 9);
  append(text, cap, ";\n");
  if (!red)
    for (int e = 0; e < c->vec; e++)
      append(text, cap, "@%%p1 st.global.%s [%%out+%d], %s%d;\n", width(c->bytes),
             CELLS * CELL + e * c->bytes, reg(c->bytes), d + e);
  if (shared)
    append(text, cap,
           "bar.sync 0;\nld.shared.v4.u32 {%%r50,%%r51,%%r52,%%r53}, [%%rd28];\nst.global.v4.u32 [%%out], "
           "{%%r50,%%r51,%%r52,%%r53};\n");
}

// Values that make an operation's special cases likely.
static void draw(const Case *c, uint8_t *to, uint64_t *seed, bool few) {
  static const uint32_t floats[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x00012345, 0x007fffff,
                                    0x80400000, 0x00800001, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00001};
  static const uint16_t halves[] = {0,      0x8000, 0x3c00, 0xbc00, 0x0001, 0x03ff, 0x8200, 0x7bff,
                                    0x7c00, 0xfc00, 0x7e01, 0x3f80, 0xbf80, 0x0080, 0x7f7f, 0x7f80};
  for (int k = 0; k < 16; k += 4) {
    uint32_t u = body_random(seed), pick = body_random(seed);
    if (few) u &= 3;
    if (c->type == 'f' && c->bytes == 4) u = pick % 3 ? 0x3e000000 + (u & 0x82ffffff) : floats[pick % 12];
    if (c->type == 'f' && c->bytes == 8 && k % 8 == 4) u = 0x3ff00000 + (u & 0x803fffff);
    if (c->type == 'h' || c->type == 'b')
      u = pick % 3 ? u & 0xbfffbfff : halves[pick % 16] | (uint32_t)halves[pick / 16 % 16] << 16;
    memcpy(to + k, &u, 4);
  }
}

static void check_case(const Case *c, Where where, bool red, const char *order, uint64_t *seed) {
  static uint8_t in[LANES][IN], out[2 * CELLS][CELL], want[2 * CELLS][CELL];
  char text[8192];
  bool few = c->fn == 'c' || c->fn == 'i' || c->fn == 'd';
  uint32_t spread = (uint32_t[]){1, 4, 32}[body_random(seed) % 3], all = body_random(seed) & 1;
  for (int l = 0; l < LANES; l++) {
    uint32_t head[2] = {body_random(seed) % spread, all || body_random(seed) % 2};
    memcpy(in[l], head, 8);
    draw(c, in[l] + 16, seed, few), draw(c, in[l] + 32, seed, few);
    draw(c, out[l], seed, few);
    memset(out[CELLS + l], 0xee, CELL);
  }
  memcpy(want, out, sizeof want);
  for (int l = 0; l < LANES; l++) {
    uint32_t head[2];
    memcpy(head, in[l], 8);
    if (!head[1]) continue;
    if (!red) memcpy(want[CELLS + l], want[head[0]], (size_t)(c->bytes * c->vec));
    apply(c, want[head[0]], in[l] + 16, in[l] + 32, where <= GENERIC);
  }
  make_body(text, sizeof text, c, where, red, order);
  Ran r = run_body(&(Body){.ptx = text,
                           .in = in,
                           .in_bytes = sizeof in,
                           .in_stride = IN,
                           .out = out,
                           .out_bytes = sizeof out,
                           .out_stride = CELL});
  if (!body_ok(&r, text)) return;
  for (int k = 0; k < 2 * CELLS; k++)
    CHECK_MSG(
        !memcmp(out[k], want[k], CELL),
        "%s %s place %d: %s %d: %02x%02x%02x%02x %02x%02x%02x%02x, not %02x%02x%02x%02x %02x%02x%02x%02x",
        red ? "red" : "atom", c->text, where, k < CELLS ? "cell" : "lane", k % CELLS, out[k][3], out[k][2],
        out[k][1], out[k][0], out[k][7], out[k][6], out[k][5], out[k][4], want[k][3], want[k][2], want[k][1],
        want[k][0], want[k][7], want[k][6], want[k][5], want[k][4]);
}

TEST(atom) {
  static const char *const orders[] = {"", ".relaxed.gpu", ".acq_rel.sys", ".acquire.cta",
                                       ".release.cluster"};
  uint64_t seed = 1;
  for (int c = 0; c < COUNT; c++)
    for (int where = 0; where < PLACES; where++)
      for (int again = 0; again < 2; again++)
        check_case(&cases[c], (Where)where, false, orders[(c + where + again) % 5], &seed);
}

TEST(red) {
  static const char *const orders[] = {"", ".relaxed.gpu", ".release.sys"};
  uint64_t seed = 2;
  for (int c = 0; c < COUNT; c++) {
    if (cases[c].fn == 'x' || cases[c].fn == 'c') continue;
    for (int where = 0; where < PLACES; where++)
      for (int again = 0; again < 2; again++)
        check_case(&cases[c], (Where)where, true, orders[(c + where) % 3], &seed);
  }
}

// ---- several blocks, several workers ----

TEST(blocks_at_once) {
  uint64_t out[8] = {0};
  const char *ptx =
      "mov.u32 %r1, %ctaid.x;\nadd.u32 %r2, %r1, %t;\natom.global.add.u32 %r3, [%all], 3;\n"
      "red.global.max.u32 [%all+8], %r2;\natom.global.cas.b64 %rd1, [%all+16], 0, 7;\n"
      "mov.b128 %q1, {0, 0};\nmov.b128 %q2, {5, 6};\natom.global.cas.b128 %q3, [%all+32], %q1, %q2;\n"
      "red.global.inc.u32 [%all+48], 999;\n";
  Ran r = run_body(&(Body){.ptx = ptx, .threads = 128, .blocks = 200, .out = out, .out_bytes = sizeof out});
  if (!body_ok(&r, ptx)) return;
  CHECK_INT(out[0], 3 * 128 * 200);
  CHECK_INT(out[1], 199 + 127);
  CHECK_INT(out[2], 7);
  CHECK_INT(out[4], 5);
  CHECK_INT(out[5], 6);
  CHECK_INT(out[6], 128 * 200 % 1000);
  CHECK_INT(r.total.atomics, 5 * 128 * 200);
}

// ---- counts ----

static SolEmuCounts count_shared(const char *atomic, int stride) {
  char text[512];
  uint32_t out[1] = {0};
  snprintf(text, sizeof text,
           "mul.lo.u32 %%r1, %%t, %d;\nmov.u32 %%r2, tile;\nadd.u32 %%r2, %%r2, %%r1;\n%s\n", stride, atomic);
  Ran r = run_body(&(Body){.ptx = text, .out = out, .out_bytes = sizeof out});
  body_ok(&r, text);
  return r.total;
}

// The bank model's cases, reached through instructions: see mem/banks.h.
TEST(wavefronts) {
  CHECK_INT(count_shared("atom.shared.add.u32 %r3, [%r2], 5;\nst.shared.u32 [%r2], %r3;", 0).wavefronts,
            32 + 1);
  CHECK_INT(count_shared("atom.shared.add.u32 %r3, [%r2], 5;\nst.shared.u32 [%r2], %r3;", 4).wavefronts,
            1 + 1);
  CHECK_INT(count_shared("red.shared.add.u32 [%r2], 1;", 0).wavefronts, 1);
  CHECK_INT(count_shared("atom.shared.add.u32 %r3, [%r2], 1;", 0).wavefronts, 1); // nobody reads %r3
  CHECK_INT(count_shared("atom.shared.add.u32 %r3, [%r2], 1;\nst.shared.u32 [%r2], %r3;", 0).wavefronts,
            32 + 1);
  CHECK_INT(count_shared("atom.shared.cas.b32 %r3, [%r2], 1, 2;", 4).wavefronts, 2);
  CHECK_INT(count_shared("atom.shared.add.u32 %r3, [%r2], 5;", 4).atomics, 32);
}

// ---- what goes wrong ----

static void check_finding(const char *ptx, SolEmuFindingKind kind) {
  uint32_t out[64] = {0};
  Ran r =
      run_body(&(Body){.ptx = ptx, .out = out, .out_bytes = sizeof out, .out_stride = 4, .keep_going = true});
  CHECK_INT(r.status, SOL_OK);
  if (CHECK_MSG(r.findings > 0, "no finding: %s", ptx)) CHECK_INT(r.finding.kind, kind);
}
TEST(findings) {
  check_finding("atom.global.add.u32 %r1, [%all+2], 1;", SOL_EMU_MISALIGNED);
  check_finding("atom.global.add.u32 %r1, [%all+4096], 1;", SOL_EMU_OUT_OF_BOUNDS);
  check_finding("mov.u64 %rd1, 0;\nred.global.add.u32 [%rd1], 1;", SOL_EMU_NULL);
  check_finding("atom.global.exch.b128 %q1, [%all+8], %q2;", SOL_EMU_MISALIGNED);
}

// A cache policy as the last operand changes nothing.
TEST(cache_hint) {
  uint32_t out[4] = {1, 2, 3, 4};
  const char *ptx =
      "createpolicy.fractional.L2::evict_first.b64 %rd1, 1.0;\n"
      "atom.global.add.L2::cache_hint.u32 %r1, [%all], 5, %rd1;\n"
      "red.global.max.L2::cache_hint.u32 [%all+4], 9, %rd1;\n"
      "atom.global.cas.L2::cache_hint.b32 %r2, [%all+8], 3, 33, %rd1;\nst.global.u32 [%all+12], %r1;\n";
  Ran r = run_body(&(Body){.ptx = ptx, .threads = 1, .out = out, .out_bytes = sizeof out});
  if (!body_ok(&r, ptx)) return;
  CHECK_INT(out[0], 6);
  CHECK_INT(out[1], 9);
  CHECK_INT(out[2], 33);
  CHECK_INT(out[3], 1);
}

TEST(red_async) {
  uint32_t out[LANES] = {0};
  const char *ptx =
      ".shared .align 8 .b64 bar;\n.shared .align 8 .b64 sum;\nmov.u32 %r1, bar;\nmov.u32 %r2, "
      "sum;\nsetp.ne.u32 %p1, %t, 0;\n"
      "mov.u64 %rd1, 100;\n@%p1 bra READY;\nst.shared.u64 [%r2], %rd1;\nmbarrier.init.shared::cta.b64 [%r1], "
      "1;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 %rd2, [%r1], 256;\nREADY:\nbar.sync 0;\n"
      "mov.u64 %rd3, 2;\nred.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 "
      "[%r2], %rd3, [%r1];\n"
      "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\n@!%p2 bra WAIT;\nld.shared.u32 %r3, "
      "[%r2];\nst.global.u32 [%out], %r3;\n";
  Ran r = run_body(&(Body){.ptx = ptx, .cluster = 1, .out = out, .out_bytes = sizeof out, .out_stride = 4});
  if (!body_ok(&r, ptx)) return;
  for (int l = 0; l < LANES; l++) CHECK_INT(out[l], 100 + 2 * LANES);
}

CHECK_MAIN
