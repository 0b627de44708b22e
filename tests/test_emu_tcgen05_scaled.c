// tcgen05.mma of elements of 4, 6 and 8 bits on the emulator, with scales for blocks of k and without: products against sums in
// whole numbers of halves; what is wrong with descriptors.
#include "emu_body.h"

COVERS(TCGEN05_ALLOC, TCGEN05_DEALLOC, TCGEN05_CP, TCGEN05_MMA, TCGEN05_MMA_SCALED, TCGEN05_COMMIT)

enum {
  ROWS = 128,
  COLUMNS = 48,
  MOST_K = 64,
  B_AT = 4096,
  A_SCALES = 6144,
  B_SCALES = 7168,
  IMAGE = 8192,
  OUT = 64
};

typedef struct Type {
  const char *name;
  int bits, code, one, sign; // code: in descriptors; one: bits of 1, whose double has the next exponent
  int mantissa;
} Type;
static const Type e4m3 = {"e4m3", 8, 0, 0x38, 0x80, 3}, e5m2 = {"e5m2", 8, 1, 0x3c, 0x80, 2},
                  e2m3 = {"e2m3", 6, 3, 0x08, 0x20, 3}, e3m2 = {"e3m2", 6, 4, 0x0c, 0x20, 2},
                  e2m1 = {"e2m1", 4, 5, 0x02, 0x08, 1}, packed = {"packed e2m1", 4, 1, 0x02, 0x08, 1};

typedef struct Case {
  const char *kind; // as it is written, with what follows it
  const Type *a, *b;
  int blocks;       // of k, with scales; 0: none
  bool e4m3_scales; // else powers of two
  int a_id, b_id;
} Case;

typedef struct Work {
  int a[ROWS][MOST_K], b[COLUMNS][MOST_K];   // -2 to 2
  int a_scale[ROWS][4], b_scale[COLUMNS][4]; // doubled: 1, 2 or 4
  uint8_t image[IMAGE];
  float out[ROWS][OUT];
} Work;
static Work work;

typedef struct Args {
  uint64_t image, out, a, b;
  uint32_t i;
} Args;

static int depth(const Case *c) {
  return c->a == &packed ? 64 : 32;
}

// Bytes of a row of 32 are in core matrices of eight rows of 16 bytes; elements of 4 and 6 bits that are not packed begin at whole 16 bytes.
static void put(uint32_t start, int row, int k, const Type *t, int v) {
  int bit = t == &packed ? k * 4 : k / 16 * 128 + k % 16 * t->bits;
  int magnitude = v == 0 ? 0 : v * v == 1 ? t->one : t->one + (1 << t->mantissa);
  int code = magnitude | (v < 0 ? t->sign : 0);
  for (int i = 0; i < t->bits; i++, bit++)
    if (code >> i & 1)
      work.image[start + (uint32_t)(row % 8 * 16 + row / 8 * 256 + bit / 128 * 128 + bit % 128 / 8)] |=
          (uint8_t)(1 << bit % 8);
}

// Row r's scale of block j: in line r % 32, word r / 32, byte id + j.
static void put_scale(const Case *c, uint32_t start, int row, int byte, int doubled) {
  static const uint8_t powers[] = {0, 126, 127, 0, 128}, small[] = {0, 0x30, 0x38, 0, 0x40};
  work.image[start + (uint32_t)(row % 32 * 16 + row / 32 * 4 + byte)] =
      c->e4m3_scales ? small[doubled] : powers[doubled];
}

static int any(uint64_t *seed, int n) {
  return (int)(body_random(seed) >> 8) % n;
}

static void fill_side(const Case *c, const Type *t, int rows, int (*v)[MOST_K], int (*scale)[4], uint32_t at,
                      uint32_t scales_at, int id, uint64_t *seed) {
  for (int r = 0; r < rows; r++) {
    for (int k = 0; k < depth(c); k++) v[r][k] = any(seed, 5) - 2, put(at, r, k, t, v[r][k]);
    for (int j = 0; j < c->blocks; j++) {
      scale[r][j] = 1 << any(seed, 3);
      put_scale(c, scales_at, r, id + j, scale[r][j]);
    }
  }
}

static void fill(const Case *c, uint64_t seed) {
  memset(&work, 0, sizeof work);
  memset(work.image + A_SCALES, 0x55, IMAGE - A_SCALES); // bytes of other ids
  fill_side(c, c->a, ROWS, work.a, work.a_scale, 0, A_SCALES, c->a_id, &seed);
  fill_side(c, c->b, COLUMNS, work.b, work.b_scale, B_AT, B_SCALES, c->b_id, &seed);
}

// Four warps; shared memory: the image, an mbarrier, the address of 128 columns of tensor memory: sums, from 64 on A's scales, from 68 on B's.
static const char before[] =
    ".version 8.8\n.target sm_100a\n.address_size 64\n.extern .shared .align 1024 .b8 tile[];\n"
    ".visible .entry k(.param .u64 image, .param .u64 out, .param .u64 a, .param .u64 b, .param .u32 i)\n{\n"
    ".reg .pred %p, %no, %one; .reg .b32 %d<8>, %t, %r<8>, %tm, %sa, %sb, %i, %bar, %slot;\n"
    ".reg .b64 %da, %db, %ca, %cb, %image, %out, %rd0;\n"
    "ld.param.u64 %image, [image]; ld.param.u64 %out, [out]; ld.param.u64 %da, [a]; ld.param.u64 %db, [b];\n"
    "ld.param.u32 %i, [i]; mov.u32 %t, %tid.x; mul.wide.u32 %rd0, %t, 256; add.u64 %out, %out, %rd0;\n"
    "setp.eq.u32 %one, %t, 0; setp.ne.u32 %no, %t, %t; mov.u32 %r1, %t; mov.u32 %r7, tile;\n"
    "COPY: shl.b32 %r2, %r1, 4; cvt.u64.u32 %rd0, %r2; add.u64 %rd0, %image, %rd0;\n"
    "ld.global.v4.u32 {%r3,%r4,%r5,%r6}, [%rd0]; add.u32 %r2, %r2, %r7; st.shared.v4.u32 [%r2], {%r3,%r4,%r5,%r6};\n"
    "add.u32 %r1, %r1, 128; setp.lt.u32 %p, %r1, 512; @%p bra COPY;\n"
    "add.u32 %bar, %r7, 8192; add.u32 %slot, %r7, 8200; @%one mbarrier.init.shared.b64 [%bar], 1;\n"
    "setp.lt.u32 %p, %t, 32; @!%p bra READY; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot], 128;\nREADY: "
    "fence.proxy.async; bar.sync 0; ld.shared.u32 %tm, [%slot]; add.u32 %sa, %tm, 64; add.u32 %sb, %tm, 68;\n"
    "mov.b64 %ca, 0x400000080180; mov.b64 %cb, 0x4000000801c0; mov.b64 %rd0, 0x800000000; or.b64 %ca, %ca, %rd0; or.b64 %cb, %cb, %rd0;\n"
    "@%one tcgen05.cp.cta_group::1.32x128b.warpx4 [%sa], %ca;\n@%one tcgen05.cp.cta_group::1.32x128b.warpx4 [%sb], %cb;\n";
static const char after[] =
    "@%one tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];\n"
    "AGAIN: mbarrier.try_wait.parity.shared.b64 %p, [%bar], 0; @!%p bra AGAIN;\ntcgen05.fence::after_thread_sync;\n"
    "shr.u32 %r0, %t, 5; shl.b32 %r0, %r0, 21; add.u32 %r0, %r0, %tm; mov.u32 %r1, 0;\n"
    "READ: tcgen05.ld.sync.aligned.32x32b.x8.b32 {%d0,%d1,%d2,%d3,%d4,%d5,%d6,%d7}, [%r0];\n"
    "tcgen05.wait::ld.sync.aligned; st.global.v4.b32 [%out], {%d0,%d1,%d2,%d3}; st.global.v4.b32 [%out+16], {%d4,%d5,%d6,%d7};\n"
    "add.u64 %out, %out, 32; add.u32 %r0, %r0, 8; add.u32 %r1, %r1, 8; setp.lt.u32 %p, %r1, 64; @%p bra READ;\n"
    "bar.sync 0; setp.lt.u32 %p, %t, 32; @!%p bra DONE;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 128;\nDONE: ret;\n}\n";

static uint32_t descriptor(const Case *c) {
  uint32_t shape = COLUMNS / 8 << 17 | ROWS / 16 << 24,
           types = (uint32_t)c->a->code << 7 | (uint32_t)c->b->code << 10;
  if (!c->blocks) return shape | types | 1 << 4;
  return shape | types | (uint32_t)c->b_id << 4 | (c->e4m3_scales ? 0 : 1u << 23) | (uint32_t)c->a_id << 29;
}

static Ran run_case(const Case *c, uint32_t i, uint64_t order) {
  static char text[sizeof before + sizeof after + 512];
  const uint64_t layout = UINT64_C(128) / 16 << 16 | UINT64_C(256) / 16 << 32 | UINT64_C(1) << 46;
  Ran r = {0};
  SolEmu *emu = NULL;
  Args args = {.a = layout, .b = layout | B_AT / 16, .i = i};
  snprintf(text, sizeof text,
           "%s@%%one tcgen05.mma.cta_group::1.kind::%s [%%tm], %%da, %%db, %%i, %s%%no;\n%s", before, c->kind,
           c->blocks ? "[%sa], [%sb], " : "", after);
  r.status = sol_emu_create(&(SolEmuMachine){.workers = 1}, &emu, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, sizeof work.image, "image", &args.image, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, sizeof work.out, "out", &args.out, &r.err);
  if (!r.status) r.status = sol_emu_write(emu, args.image, work.image, sizeof work.image, &r.err);
  body_launch(&r, emu, (SolPtxSource){"scaled", text, strlen(text)},
              (SolEmuLaunch){.grid = {1, 1, 1},
                             .block = {ROWS, 1, 1},
                             .dynamic_shared = IMAGE + 16,
                             .params = &args,
                             .param_bytes = sizeof args,
                             .async_order = order});
  if (!r.status) r.status = sol_emu_read(emu, work.out, args.out, sizeof work.out, &r.err);
  sol_emu_destroy(emu);
  return r;
}

static int wrong_sums(const Case *c) {
  int wrong = 0, parts = c->blocks ? c->blocks : 1, each = depth(c) / parts;
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++) {
      int sum = 0; // of quarters
      for (int k = 0; k < depth(c); k++)
        sum += work.a[row][k] * work.b[column][k] *
               (c->blocks ? work.a_scale[row][k / each] * work.b_scale[column][k / each] : 4);
      wrong += work.out[row][column] != (float)sum / 4;
    }
  return wrong;
}

TEST(products) {
  static const Case cases[] = {
      {"f8f6f4", &e4m3, &e2m1, 0, false, 0, 0},
      {"f8f6f4", &e2m3, &e3m2, 0, false, 0, 0},
      {"f8f6f4", &e2m1, &e5m2, 0, false, 0, 0},
      {"mxf8f6f4.block_scale", &e4m3, &e5m2, 1, false, 0, 0},
      {"mxf8f6f4.block_scale.scale_vec::1X", &e5m2, &e2m1, 1, false, 1, 3},
      {"mxf8f6f4.block_scale.block32", &e3m2, &e2m3, 1, false, 2, 1},
      {"mxf4.block_scale", &packed, &packed, 2, false, 0, 2},
      {"mxf4.block_scale.block32", &packed, &packed, 2, false, 2, 0},
      {"mxf4nvf4.block_scale.scale_vec::2X", &packed, &packed, 2, false, 0, 0},
      {"mxf4nvf4.block_scale.scale_vec::4X", &packed, &packed, 4, true, 0, 0},
      {"mxf4nvf4.block_scale.block16", &packed, &packed, 4, false, 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (uint64_t order = 0; order < 3; order++) {
      const Case *c = &cases[i];
      char what[96];
      snprintf(what, sizeof what, "%s, %s by %s, order %d", c->kind, c->a->name, c->b->name, (int)order);
      fill(c, i + order);
      Ran r = run_case(c, descriptor(c), order);
      if (body_ok(&r, what)) CHECK_MSG(!wrong_sums(c), "%s: %d are wrong", what, wrong_sums(c));
    }
}

TEST(what_is_wrong_is_found) {
  static const Case mx8 = {"mxf8f6f4.block_scale", &e4m3, &e4m3, 1, false, 0, 0};
  static const Case mx4 = {"mxf4.block_scale", &packed, &packed, 2, false, 0, 0};
  static const Case nv4 = {"mxf4nvf4.block_scale.block16", &packed, &packed, 4, true, 0, 0};
  static const struct {
    const Case *c;
    uint32_t bits; // of the descriptor, turned round
    const char *finding;
  } cases[] = {{&mx8, 2 << 7, "types"},  {&mx8, 1 << 15, "transposed"}, {&mx8, 1 << 23, "powers of two"},
               {&mx8, 4 << 24, "M is"},  {&mx8, 4, "sparse"},           {&mx4, 1u << 29, "scale ids"},
               {&mx4, 1u << 31, "k 96"}, {&mx4, 1 << 10, "types"},      {&nv4, 2 << 4, "scale ids"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fill(cases[i].c, i);
    Ran r = run_case(cases[i].c, descriptor(cases[i].c) ^ cases[i].bits, 0);
    CHECK_MSG(r.findings && strstr(r.finding.message, cases[i].finding), "%s: %s", cases[i].finding,
              r.findings ? r.finding.message : r.err.message);
  }
}

// Scales of kinds that have none, of other sizes: refused when the module is loaded.
TEST(forms_that_do_not_exist) {
  static const char *const kinds[] = {"f16.block_scale", "mxf8f6f4", "mxf8f6f4.block_scale.scale_vec::4X",
                                      "mxf4.block_scale.block16", "mxf4nvf4.block_scale"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    Case c = {kinds[i], &e4m3, &e4m3, 1, false, 0, 0};
    Ran r = run_case(&c, descriptor(&c), 0);
    CHECK_MSG(r.status == SOL_ERR_UNSUPPORTED, "%s: %d", kinds[i], (int)r.status);
  }
}

CHECK_MAIN
