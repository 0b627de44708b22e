// tcgen05 on the emulator: products of every type and layout against sums in whole numbers, which are exact in any order;
// the ways between registers, shared memory and tensor memory; what is wrong with waits, descriptors and allocations.
#include "emu_body.h"

COVERS(TCGEN05_ALLOC, TCGEN05_DEALLOC, TCGEN05_RELINQUISH, TCGEN05_LD, TCGEN05_ST, TCGEN05_WAIT_LD,
       TCGEN05_WAIT_ST, TCGEN05_CP, TCGEN05_MMA, TCGEN05_COMMIT, TCGEN05_FENCE_BEFORE, TCGEN05_FENCE_AFTER)

enum { LANES = 128, MOST_N = 64, IMAGE = 32 << 10, B_AT = 16 << 10, K_BYTES = 32 };

typedef struct Type {
  const char *kind;
  int bits, code,
      one; // bits of an element, its number in the instruction descriptor, the bits of 1.0 (-1: an integer)
} Type;
static const Type types[] = {{"f16", 16, 0, 0x3c00}, {"f16", 16, 1, 0x3f80}, {"tf32", 32, 2, 0x3f800000},
                             {"f8f6f4", 8, 0, 0x38}, {"f8f6f4", 8, 1, 0x3c}, {"i8", 8, 0, -1},
                             {"i8", 8, 1, -1}};

typedef struct Case {
  const Type *a, *b;
  int m, n, sum; // sum: 0 f16, 1 f32, 2 s32
  int swizzle;   // of A and B: 0, 32, 64, 128 bytes
  bool mn_major; // both
  bool in_tmem;  // A
  bool adds, negates;
  uint64_t order; // SolEmuLaunch.async_order
} Case;

typedef struct Work {
  int a[LANES][32], b[MOST_N][32], start[LANES][MOST_N];
  uint8_t image[IMAGE];
  uint32_t in[LANES][MOST_N + 8],
      out[LANES][MOST_N]; // by lane; the eight are A's where it is in tensor memory
} Work;
static Work work;

static int depth(const Case *c) {
  return K_BYTES * 8 / c->a->bits;
}

static uint32_t encode(int v, const Type *t) {
  if (t->one < 0) return (uint32_t)v & 0xff;
  if (!v) return 0;
  int shift = t->bits == 32 ? 23 : t->one == 0x38 ? 3 : t->one == 0x3c ? 2 : t->one == 0x3f80 ? 7 : 10;
  return ((uint32_t)t->one + (v == 2 || v == -2 ? 1u << shift : 0)) | (v < 0 ? 1u << (t->bits - 1) : 0);
}

// CuTe's canonical layouts. K-major: rows of 32 bytes in atoms of eight rows; MN-major: 16-bit elements, the rows of one k
// side by side as far as the swizzle is wide.
static uint32_t place(const Case *c, int row, int k, int bits) {
  uint32_t width = c->swizzle ? (uint32_t)c->swizzle : 16, r = (uint32_t)row, byte = (uint32_t)(k * bits / 8),
           at;
  if (!c->mn_major) {
    at = r % 8 * width + (c->swizzle ? r / 8 * 8 * width + byte : r / 8 * 256 + byte % 16 + byte / 16 * 128);
  } else {
    uint32_t inner = r * 2 % width, outer = r * 2 / width, step = (uint32_t)k;
    at = inner + step % 8 * width +
         (c->swizzle ? outer * 16 * width + step / 8 * 8 * width : outer * 256 + step / 8 * 128);
  }
  uint32_t lines = c->swizzle ? (uint32_t)c->swizzle / 16 - 1 : 0;
  return at ^ (at / 128 & lines) * 16;
}

static uint64_t descriptor(const Case *c, uint32_t start) {
  uint64_t width = c->swizzle ? (uint64_t)c->swizzle : 16,
           mode = (uint64_t[]){0, 6, 4, 0, 2}[c->swizzle / 32];
  uint64_t leading = c->mn_major  ? (c->swizzle ? 16 * width : 128)
                     : c->swizzle ? 16
                                  : 128,
           stride = c->mn_major  ? (c->swizzle ? 8 * width : 256)
                    : c->swizzle ? 8 * width
                                 : 256;
  return start / 16 | leading / 16 << 16 | stride / 16 << 32 | UINT64_C(1) << 46 | mode << 61;
}

static uint32_t instruction(const Case *c) {
  return (uint32_t)(c->sum << 4 | c->a->code << 7 | c->b->code << 10 | (c->negates ? 1 << 13 : 0) |
                    (c->mn_major ? 3 << 15 : 0) | c->n / 8 << 17 | c->m / 16 << 24);
}

static uint32_t number(const Case *c, int v) {
  if (c->sum == 2) return (uint32_t)v;
  float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return c->sum || !v ? bits : (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112u << 10));
}

static int lane_of(const Case *c, int row) { // the manual's layouts D and F
  return c->m == 64 ? row / 16 * 32 + row % 16 : row;
}

static void put(const Case *c, uint32_t start, int row, int k, const Type *t, int v) {
  uint32_t bits = encode(v, t), at = start + place(c, row, k, t->bits);
  if (at + 4 > IMAGE) abort();
  memcpy(work.image + at, &bits, (size_t)t->bits / 8);
}

static int digit(uint64_t *random, const Type *t) {
  int v = (int)(body_random(random) >> 8) % 5;
  return t->one < 0 && t->code == 0 ? v : v - 2; // exact in every type, and so are sums
}

static void fill(const Case *c, uint64_t seed) {
  memset(&work, 0, sizeof work);
  memset(work.in, 0xee, sizeof work.in);
  for (int k = 0; k < depth(c); k++) {
    for (int m = 0; m < c->m; m++) {
      int v = work.a[m][k] = digit(&seed, c->a);
      uint32_t bits = encode(v, c->a);
      put(c, 0, m, k, c->a, v);
      memcpy((uint8_t *)&work.in[lane_of(c, m)][MOST_N] + k * c->a->bits / 8, &bits, (size_t)c->a->bits / 8);
    }
    for (int n = 0; n < c->n; n++) put(c, B_AT, n, k, c->b, work.b[n][k] = digit(&seed, c->b));
  }
  for (int m = 0; m < c->m; m++)
    for (int n = 0; n < c->n; n++)
      work.in[lane_of(c, m)][n] = number(c, work.start[m][n] = (int)(body_random(&seed) >> 8) % 99 - 49);
}

// ---- the kernel ----

typedef struct Text {
  char at[32 << 10];
  size_t length;
} Text;
static Text text;
#define SAY(...)                                                                                             \
  (text.length += (size_t)snprintf(text.at + text.length, sizeof text.at - text.length, __VA_ARGS__))

// Puts something else where `old` is in the kernel.
static void replace(const char *old, const char *new) {
  char *at = strstr(text.at, old);
  size_t from = strlen(old), to = strlen(new);
  if (!at || text.length + to >= sizeof text.at) abort();
  memmove(at + to, at + from, text.length - (size_t)(at - text.at) - from + 1);
  memcpy(at, new, to); // NOLINT(bugprone-not-null-terminated-result): inside of a text
  text.length += to - from;
}

typedef struct Args {
  uint64_t image, in, out, a, b;
  uint32_t instruction, adds;
} Args;

static void list(const char *name, int count) {
  SAY("{");
  for (int r = 0; r < count; r++) SAY("%s%s%d", r ? "," : "", name, r);
  SAY("}");
}

// Four warps; shared memory: the image, an mbarrier, the address of 128 columns of tensor memory, which is %tm; %mine is that
// of the warp's lanes.
static void head(void) {
  text.length = 0;
  SAY(".version 8.8\n.target sm_100a\n.address_size 64\n.extern .shared .align 1024 .b8 tile[];\n"
      ".visible .entry k(.param .u64 image, .param .u64 in, .param .u64 out, .param .u64 a, .param .u64 b, .param .u32 i,"
      " .param .u32 adds)\n{\n.reg .pred %%adds, %%p, %%one; .reg .b32 %%d<128>, %%t, %%r<8>, %%tm, %%mine, %%i, %%bar, %%slot;\n"
      ".reg .b64 %%da, %%db, %%in, %%out, %%image, %%rd<4>;\n"
      "ld.param.u64 %%image, [image]; ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out]; ld.param.u64 %%da, [a];\n"
      "ld.param.u64 %%db, [b]; ld.param.u32 %%i, [i]; ld.param.u32 %%r0, [adds]; setp.ne.u32 %%adds, %%r0, 0;\n"
      "mov.u32 %%t, %%tid.x; setp.eq.u32 %%one, %%t, 0; mov.u32 %%r1, %%t; mov.u32 %%r7, tile;\n"
      "COPY: shl.b32 %%r2, %%r1, 4; cvt.u64.u32 %%rd0, %%r2; add.u64 %%rd0, %%image, %%rd0;\n"
      "ld.global.v4.u32 {%%r3,%%r4,%%r5,%%r6}, [%%rd0]; add.u32 %%r2, %%r2, %%r7; st.shared.v4.u32 [%%r2], {%%r3,%%r4,%%r5,%%r6};\n"
      "add.u32 %%r1, %%r1, 128; setp.lt.u32 %%p, %%r1, %d; @%%p bra COPY;\n"
      "add.u32 %%bar, %%r7, %d; add.u32 %%slot, %%r7, %d; @%%one mbarrier.init.shared.b64 [%%bar], 1;\n"
      "setp.lt.u32 %%p, %%t, 32; @!%%p bra READY;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%%slot], 128;\n"
      "READY: fence.proxy.async; bar.sync 0; ld.shared.u32 %%tm, [%%slot]; shr.u32 %%r0, %%t, 5; shl.b32 %%r0, %%r0, 21;\n"
      "add.u32 %%mine, %%tm, %%r0; mul.wide.u32 %%rd0, %%t, %d; add.u64 %%in, %%in, %%rd0; mul.wide.u32 %%rd0, %%t, %d;\n"
      "add.u64 %%out, %%out, %%rd0;\n",
      IMAGE / 16, IMAGE, IMAGE + 8, (MOST_N + 8) * 4, MOST_N * 4);
}

// A thread's row of `in` to the lanes of tensor memory, column 0 on.
static void store_lanes(int columns) {
  for (int at = 0; at < columns; at += 8) {
    for (int r = 0; r < 8; r++) SAY("ld.global.b32 %%d%d, [%%in+%d];\n", r, (at + r) * 4);
    SAY("tcgen05.st.sync.aligned.32x32b.x8.b32 [%%mine+%d], ", at);
    list("%d", 8);
    SAY(";\n");
  }
  SAY("tcgen05.wait::st.sync.aligned;\n");
}

#define SYNCHRONISE "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"
#define COMMIT      "@%one tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];\n"
#define WAIT                                                                                                 \
  "AGAIN: mbarrier.try_wait.parity.shared.b64 %p, [%bar], 0; @!%p bra AGAIN;\ntcgen05.fence::after_thread_sync;\n"
#define WAIT_LD "tcgen05.wait::ld.sync.aligned;\n"
#define END                                                                                                  \
  "bar.sync 0; setp.lt.u32 %p, %t, 32; @!%p bra DONE;\n"                                                     \
  "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 128;\nDONE: ret;\n}\n"

static void load_lanes(int columns, const char *wait) {
  for (int at = 0; at < columns; at += 8) {
    SAY("tcgen05.ld.sync.aligned.32x32b.x8.b32 ");
    list("%d", 8);
    SAY(", [%%mine+%d];\n%s", at, wait);
    for (int r = 0; r < 8; r++) SAY("st.global.b32 [%%out+%d], %%d%d;\n", (at + r) * 4, r);
  }
}

static void write_product(const Case *c, const char *wait, const char *wait_ld) {
  head();
  store_lanes(c->in_tmem ? MOST_N + 8 : MOST_N);
  if (c->in_tmem) SAY("add.u32 %%r1, %%tm, %d;\n", MOST_N);
  SAY(SYNCHRONISE "@%%one tcgen05.mma.cta_group::1.kind::%s [%%tm], %s, %%db, %%i, %%adds;\n", c->a->kind,
      c->in_tmem ? "[%r1]" : "%da");
  SAY("%s%s", COMMIT, wait);
  load_lanes(c->n, wait_ld);
  SAY("%s", END);
}

static Ran run_text(const Case *c) {
  Ran r = {0};
  SolEmu *emu = NULL;
  Args args = {
      .a = descriptor(c, 0), .b = descriptor(c, B_AT), .instruction = instruction(c), .adds = c->adds};
  r.status = sol_emu_create(&(SolEmuMachine){.workers = 1}, &emu, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, IMAGE, "image", &args.image, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, sizeof work.in, "in", &args.in, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, sizeof work.out, "out", &args.out, &r.err);
  if (!r.status) r.status = sol_emu_write(emu, args.image, work.image, IMAGE, &r.err);
  if (!r.status) r.status = sol_emu_write(emu, args.in, work.in, sizeof work.in, &r.err);
  body_launch(&r, emu, (SolPtxSource){"tcgen05", text.at, text.length},
              (SolEmuLaunch){.grid = {1, 1, 1},
                             .block = {LANES, 1, 1},
                             .dynamic_shared = IMAGE + 16,
                             .params = &args,
                             .param_bytes = sizeof args,
                             .async_order = c->order});
  if (!r.status) r.status = sol_emu_read(emu, work.out, args.out, sizeof work.out, &r.err);
  sol_emu_destroy(emu);
  return r;
}

static int wrong_sums(const Case *c) {
  int wrong = 0;
  for (int m = 0; m < c->m; m++)
    for (int n = 0; n < c->n; n++) {
      int sum = 0;
      for (int k = 0; k < depth(c); k++) sum += work.a[m][k] * work.b[n][k];
      sum = (c->negates ? -sum : sum) + (c->adds ? work.start[m][n] : 0);
      wrong += work.out[lane_of(c, m)][n] != number(c, sum);
    }
  return wrong;
}

static void check_case(const Case *c) {
  char what[160];
  snprintf(what, sizeof what, "%s %d by %d, m%dn%d, %s%d%s%s order %d", c->a->kind, c->a->code, c->b->code,
           c->m, c->n, c->mn_major ? "mn" : "k", c->swizzle, c->in_tmem ? ", A in tensor memory" : "",
           c->adds ? ", adds" : "", (int)c->order);
  fill(c, (uint64_t)c->n * 7 + (uint64_t)c->swizzle);
  write_product(c, WAIT, WAIT_LD);
  Ran r = run_text(c);
  if (body_ok(&r, what)) CHECK_MSG(!wrong_sums(c), "%s: %d are wrong", what, wrong_sums(c));
}

static const Case plain = {.a = &types[0], .b = &types[0], .m = 128, .n = 32, .sum = 1, .swizzle = 128};

TEST(products) {
  for (int a = 0; a < 7; a++)
    for (int b = 0; b < 7; b++) {
      if (a != b && !((a == 3 || a == 4) && (b == 3 || b == 4)) && !(a > 4 && b > 4)) continue;
      Case c = plain;
      c.a = &types[a], c.b = &types[b], c.sum = a > 4 ? 2 : 1, c.adds = (a + b) % 2, c.order = (uint64_t)a;
      c.negates = a < 5 && b % 2;
      check_case(&c);
      c.m = 64, c.n = 24, c.in_tmem = true, c.adds = !c.adds;
      check_case(&c);
    }
}

TEST(sums_in_half_precision) {
  Case c = plain;
  c.sum = 0, c.adds = true;
  check_case(&c);
  c.a = c.b = &types[3], c.m = 64;
  check_case(&c);
}

TEST(layouts) {
  static const int swizzles[] = {0, 32, 64, 128};
  for (int s = 0; s < 4; s++)
    for (int mn = 0; mn < 2; mn++) {
      Case c = plain;
      c.swizzle = swizzles[s], c.mn_major = mn, c.adds = s % 2, c.order = (uint64_t)(s * 3);
      c.n = 64; // of MN-major ones whole atoms
      check_case(&c);
    }
}

TEST(lanes_that_are_left_out) {
  fill(&plain, 3);
  write_product(&plain, WAIT, WAIT_LD);
  replace("%i, %adds;", "%i, {%r0,%r1,%r2,%r3}, %adds;");
  replace("@%one tcgen05.mma",
          "mov.b32 %r0, 5; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0x80000000;\n@%one tcgen05.mma");
  Ran r = run_text(&plain);
  if (!body_ok(&r, "with lanes left out")) return;
  for (int lane = 0; lane < LANES; lane++)
    CHECK(!memcmp(work.out[lane], work.in[lane], 32 * sizeof(uint32_t)) ==
          (lane == 0 || lane == 2 || lane == 127));
}

// ---- the ways to registers ----

// A bit of the thread's or the register's number: by how many lanes and columns it moves. The manual's figures.
typedef struct Shape {
  const char *name;
  int each;                   // registers of x1
  uint16_t thread[5], reg[2]; // lanes << 8 | columns
  int first;                  // columns that the next bits of the register's number move by
} Shape;
static const Shape shapes[] = {{"32x32b", 1, {0x100, 0x200, 0x400, 0x800, 0x1000}, {0}, 1},
                               {"16x64b", 1, {0x800, 0x001, 0x100, 0x200, 0x400}, {0}, 2},
                               {"16x128b", 2, {0x001, 0x002, 0x100, 0x200, 0x400}, {0x800}, 4},
                               {"16x256b", 4, {0x002, 0x004, 0x100, 0x200, 0x400}, {0x001, 0x800}, 8},
                               {"16x32bx2", 1, {0x100, 0x200, 0x400, 0x800, 0x010}, {0}, 1}};

static uint32_t cell(int lane, int column) {
  return (uint32_t)(lane << 16 | column << 1 | 1);
}

static uint32_t moved(const Shape *s, int thread, int reg, bool packed) {
  int fixed = s->each == 4 ? 2 : s->each == 2, move = reg / s->each * s->first;
  for (int b = 0; b < 5; b++) move += thread >> b & 1 ? s->thread[b] : 0;
  for (int b = 0; b < fixed; b++) move += reg >> b & 1 ? s->reg[b] : 0;
  int lane = move >> 8, column = move & 0xff;
  if (!packed) return cell(lane, column);
  if (s == &shapes[4] && thread > 15)
    column = (column - 16) * 2 + 16; // the split is not packed
  else
    column *= 2;
  return (cell(lane, column) & 0xffff) | cell(lane, column + 1) << 16;
}

static void check_shape(const Shape *s, int count, bool packed, bool stores) {
  int regs = s->each * count;
  const char *split = s == &shapes[4] ? ", 16" : "";
  memset(&work, 0, sizeof work);
  for (int t = 0; t < LANES; t++)
    for (int n = 0; n < MOST_N; n++) work.in[t][n] = cell(t % 32, n);
  head();
  store_lanes(MOST_N);
  SAY("tcgen05.ld.sync.aligned.%s.x%d%s.b32 ", s->name, count, packed ? ".pack::16b" : "");
  list("%d", regs);
  SAY(", [%%mine]%s;\n" WAIT_LD, split);
  for (int n = 0; stores && n < MOST_N; n += 8) // what a store does not write back is gone
    SAY("mov.b32 %%r1, 0; tcgen05.st.sync.aligned.32x32b.x8.b32 [%%mine+%d], {%%r1,%%r1,%%r1,%%r1,%%r1,%%r1,%%r1,%%r1};\n",
        n);
  if (stores) {
    SAY("tcgen05.wait::st.sync.aligned;\ntcgen05.st.sync.aligned.%s.x%d%s.b32 [%%mine]%s, ", s->name, count,
        packed ? ".unpack::16b" : "", split);
    list("%d", regs);
    SAY(";\ntcgen05.wait::st.sync.aligned;\ntcgen05.ld.sync.aligned.%s.x%d%s.b32 ", s->name, count,
        packed ? ".pack::16b" : "");
    list("%d", regs);
    SAY(", [%%mine]%s;\n" WAIT_LD, split);
  }
  for (int r = 0; r < regs; r++) SAY("st.global.b32 [%%out+%d], %%d%d;\n", r * 4, r);
  SAY("%s", END);
  Case c = plain;
  c.order = (uint64_t)count;
  Ran r = run_text(&c);
  int wrong = 0;
  for (int t = 0; t < LANES; t++)
    for (int k = 0; k < regs; k++) wrong += work.out[t][k] != moved(s, t % 32, k, packed);
  if (body_ok(&r, s->name))
    CHECK_MSG(!wrong, "%s.x%d%s%s: %d are wrong", s->name, count, packed ? " packed" : "",
              stores ? " and back" : "", wrong);
}

TEST(shapes_of_loads_and_stores) {
  for (int s = 0; s < 5; s++)
    for (int count = 1; count <= 16; count *= 2)
      for (int way = 0; way < 4; way++) {
        bool packed = way & 1;
        int columns = shapes[s].first * count * (packed ? 2 : 1);
        if (columns <= (s == 4 ? 16 : MOST_N) && shapes[s].each * count <= MOST_N)
          check_shape(&shapes[s], count, packed, way & 2);
      }
}

// ---- copies from shared memory ----

typedef struct Copied {
  const char *name;
  int rows, bytes, quarters[4]; // which 32 rows each quarter of the lanes gets; -1: none
} Copied;

TEST(copies) {
  static const Copied copies[] = {{"128x256b", 128, 32, {0, 1, 2, 3}},
                                  {"4x256b", 4, 32, {0, -1, -1, -1}},
                                  {"128x128b", 128, 16, {0, 1, 2, 3}},
                                  {"64x128b.warpx2::02_13", 64, 16, {0, 1, 0, 1}},
                                  {"64x128b.warpx2::01_23", 64, 16, {0, 0, 1, 1}},
                                  {"32x128b.warpx4", 32, 16, {0, 0, 0, 0}}};
  for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
    const Copied *from = &copies[i];
    Case c = plain;
    c.swizzle = 0, c.order = i;
    fill(&c, i);
    head();
    store_lanes(8);
    SAY(SYNCHRONISE "@%%one tcgen05.cp.cta_group::1.%s [%%tm], %%da;\n", from->name);
    SAY("%s%s", COMMIT, WAIT);
    load_lanes(8, WAIT_LD);
    SAY("%s", END);
    Ran r = run_text(&c);
    int wrong = 0;
    for (int lane = 0; lane < LANES; lane++)
      for (int column = 0; column < 8; column++) {
        int row = from->quarters[lane / 32] * 32 + lane % 32;
        bool copied = from->quarters[lane / 32] >= 0 && row < from->rows && column * 4 < from->bytes;
        uint32_t want = work.in[lane][column];
        if (copied) memcpy(&want, work.image + place(&c, row, column * 2, 16), 4);
        wrong += work.out[lane][column] != want;
      }
    if (body_ok(&r, from->name)) CHECK_MSG(!wrong, "%s: %d are wrong", from->name, wrong);
  }
}

// ---- what is wrong ----

static bool found(const Ran *r, const char *what) {
  return r->findings && strstr(r->finding.message, what);
}

// Under every order something shows that nobody waited: a wrong sum, or that memory is gone.
TEST(a_missing_wait_is_seen) {
  for (uint64_t order = 1; order <= 8; order++)
    for (int missing = 0; missing < 2; missing++) {
      Case c = plain;
      c.order = order;
      fill(&c, order);
      write_product(&c, missing ? WAIT : "", missing ? "" : WAIT_LD);
      Ran r = run_text(&c);
      CHECK_MSG(!r.status && (r.findings || wrong_sums(&c)), "order %d: nobody saw that a wait is missing",
                (int)order);
    }
}

TEST(wrong_descriptors_are_seen) {
  static const struct {
    int what;
    const char *finding; // NULL: wrong sums
  } cases[] = {{0, NULL},    {1, "M is 96"}, {2, "types"}, {3, "swizzle mode 1"}, {4, "not allocated"},
               {5, "sparse"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Case c = plain, given = plain;
    fill(&c, 9);
    write_product(&c, WAIT, WAIT_LD);
    int what = cases[i].what;
    if (what == 0) given.swizzle = 64; // the image has another
    if (what == 1) given.m = 96;
    if (what == 2) given.sum = 2;
    if (what == 3)
      replace(
          "ld.param.u64 %da, [a];",
          "ld.param.u64 %da, [a]; and.b64 %da, %da, 0x1fffffffffffffff; or.b64 %da, %da, 0x2000000000000000;");
    if (what == 4) // 256 columns, of which 128 are there
      replace("ld.param.u32 %i, [i];", "ld.param.u32 %i, [i]; add.u32 %i, %i, 0x380000;");
    if (what == 5) replace("ld.param.u32 %i, [i];", "ld.param.u32 %i, [i]; or.b32 %i, %i, 4;");
    Ran r = run_text(&given);
    if (!cases[i].finding)
      CHECK(!r.status && !r.findings && wrong_sums(&c));
    else
      CHECK_MSG(found(&r, cases[i].finding), "%d: %s", what, r.findings ? r.finding.message : r.err.message);
  }
}

static Ran run_lines(const char *lines) {
  head();
  SAY("%s", lines);
  SAY("%s", END);
  return run_text(&plain);
}

TEST(wrong_uses_are_found) {
  static const struct {
    const char *lines, *finding;
  } cases[] = {{"tcgen05.ld.sync.aligned.32x32b.x1.b32 {%d0}, [%mine+128];\n", "columns 128 to 128"},
               {"xor.b32 %mine, %mine, 0x200000; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%d0}, [%mine];\n",
                "reaches lanes"},
               {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot], 48;\n", "48 columns"},
               {"@!%one bra NEXT; NEXT: bar.sync 0; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 64;\n",
                "no allocation"},
               {"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; bar.sync 0;"
                "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot], 32;\n",
                "given up its permit"},
               {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot], 512;\n", "wait for ever"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Ran r = run_lines(cases[i].lines);
    CHECK_MSG(found(&r, cases[i].finding), "%s: %s", cases[i].finding,
              r.findings ? r.finding.message : r.err.message);
  }
}

TEST(what_is_not_emulated_is_named_at_load) {
  static const char *const lines[] = {
      "tcgen05.mma.ws.cta_group::1.kind::f16 [%tm], %da, %db, %i, %adds;\n",
      "tcgen05.mma.sp.cta_group::1.kind::f16 [%tm], %da, %db, [%tm], %i, %adds;\n",
      "tcgen05.shift.cta_group::1.down [%tm];\n"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    Ran r = run_lines(lines[i]);
    CHECK_MSG(r.status == SOL_ERR_UNSUPPORTED && strstr(r.err.message, "not emulated"), "%s: %s", lines[i],
              r.err.message);
  }
}

CHECK_MAIN
