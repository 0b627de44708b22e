// wgmma on the emulator: every type and layout against sums in whole numbers, which are exact in any order; groups and
// what is wrong with descriptors, warpgroups and waits.
#include "base/json_read.h"
#include "cli/cli.h"
#include "emu_body.h"

COVERS(WGMMA, WGMMA_SP, WGMMA_FENCE, WGMMA_COMMIT, WGMMA_WAIT)

enum { ROWS = 64, MOST_N = 256, IMAGE = 48 << 10, B_AT = 16 << 10 };

typedef struct Type {
  const char *name;
  int bits, k;
  int one; // the bits of 1.0; -1: an integer
} Type;
static const Type types[] = {{"f16", 16, 16, 0x3c00}, {"bf16", 16, 16, 0x3f80}, {"tf32", 32, 8, 0x3f800000},
                             {"e4m3", 8, 32, 0x38},   {"e5m2", 8, 32, 0x3c},    {"s8", 8, 32, -1},
                             {"u8", 8, 32, -1},       {"b1", 1, 256, -1}};

typedef struct Layout { // of a matrix in shared memory, in CuTe's words: see smem_matrix.h
  bool mn_major;
  int swizzle; // 0, 32, 64, 128 bytes
  uint32_t leading, stride, base;
} Layout;

typedef struct Case {
  const Type *a, *b;
  const char *d; // "f32", "f16", "s32"
  int n;
  Layout a_at, b_at;
  bool registers, keeps; // A in registers; D starts with numbers
  int a_scale, b_scale;
  bool satfinite;
  uint64_t order;       // SolEmuLaunch.async_order
  bool sparse;          // A has half of its elements
  int selector;         // of the metadata's lanes
  const uint32_t *meta; // by lane
} Case;

// k of B; A has half of that where it is sparse.
static int depth(const Case *c) {
  return c->sparse ? 2 * c->a->k : c->a->k;
}

// ---- numbers ----

static int digit(uint64_t *random, const Type *t) {
  uint32_t r = body_random(random);
  if (t->bits == 1) return r >> 7 & 1;
  if (t->one < 0) return t->name[0] == 's' ? (int8_t)(r >> 8) : (uint8_t)(r >> 8);
  return (int)(r >> 8) % 5 - 2; // exact in every type, and so are sums
}

static uint32_t encode(int v, const Type *t) {
  if (t->one < 0) return (uint32_t)v & (t->bits == 8 ? 0xff : 1);
  if (!v) return 0;
  int shift = t->bits == 32 ? 23 : t->name[1] == '4' ? 3 : t->name[1] == '5' ? 2 : t->name[0] == 'b' ? 7 : 10;
  uint32_t two = v == 2 || v == -2 ? 1u << shift : 0;
  return ((uint32_t)t->one + two) | (v < 0 ? 1u << (t->bits - 1) : 0);
}

// ---- shared memory ----

static uint32_t place(const Layout *at, int row, int k_bit, int bits) {
  uint32_t width = at->swizzle ? (uint32_t)at->swizzle : 16, byte, r = (uint32_t)row;
  if (!at->mn_major) {
    uint32_t k = (uint32_t)k_bit / 8;
    byte = r % 8 * width + r / 8 * at->stride + (at->swizzle ? k : k % 16 + k / 16 * at->leading);
  } else {
    uint32_t k = (uint32_t)(k_bit / bits), inner = r * 2;
    byte = inner % width + k % 8 * width;
    byte += at->swizzle ? inner / width * at->leading + k / 8 * at->stride
                        : inner / width * at->stride + k / 8 * at->leading;
  }
  return byte;
}

static uint32_t swizzled(uint32_t address, int swizzle, uint32_t base) {
  uint32_t lines = swizzle ? (uint32_t)swizzle / 16 - 1 : 0; // 7, 3, 1
  return address ^ ((address / 128 - base) & lines) * 16;
}

static void put(uint8_t *image, uint32_t start, const Layout *at, int row, int k, const Type *t, int v) {
  uint32_t bits = encode(v, t),
           byte = swizzled(start + place(at, row, k * t->bits, t->bits), at->swizzle, at->base);
  if (byte + 4 > IMAGE) abort();
  if (t->bits == 1)
    image[byte] = (uint8_t)(image[byte] | bits << k % 8);
  else
    memcpy(image + byte, &bits, (size_t)t->bits / 8);
}

static uint64_t descriptor(uint32_t start, const Layout *at) {
  uint64_t mode = at->swizzle == 128 ? 1 : at->swizzle == 64 ? 2 : at->swizzle == 32 ? 3 : 0;
  return start / 16 | (uint64_t)(at->leading / 16) << 16 | (uint64_t)(at->stride / 16) << 32 |
         (uint64_t)at->base << 49 | mode << 62;
}

// ---- the kernel ----

typedef struct Text {
  char at[32 << 10];
  size_t length;
} Text;
#define SAY(...) (t->length += (size_t)snprintf(t->at + t->length, sizeof t->at - t->length, __VA_ARGS__))

typedef struct Args {
  uint64_t image, in, out, a, b;
  uint32_t adds, pad;
  uint64_t meta;
} Args;

static int d_registers(const Case *c) {
  return c->d[0] == 'f' && c->d[1] == '1' ? c->n / 4 : c->n / 2;
}

static void list(Text *t, const char *name, int count) {
  SAY("{");
  for (int r = 0; r < count; r++) SAY("%s%s%d", r ? "," : "", name, r);
  SAY("}");
}

static void write_wgmma(Text *t, const Case *c) {
  SAY("wgmma.mma_async%s.sync.aligned.m64n%dk%d%s.%s.%s.%s%s ", c->sparse ? ".sp" : "", c->n, depth(c),
      c->satfinite ? ".satfinite" : "", c->d, c->a->name, c->b->name, c->a->bits == 1 ? ".and.popc" : "");
  list(t, "%d", d_registers(c));
  if (c->registers) {
    SAY(",");
    list(t, "%a", 4);
  } else {
    SAY(",%%da");
  }
  SAY(",%%db");
  if (c->sparse) SAY(",%%meta,%d", c->selector);
  SAY(",%%adds");
  if (c->a->one >= 0) SAY(",%d,%d", c->a_scale, c->b_scale);
  if (c->a->bits == 16 && !c->registers) SAY(",%d", c->a_at.mn_major);
  if (c->a->bits == 16) SAY(",%d", c->b_at.mn_major);
  SAY(";\n");
}

// Thread t has its registers of D at in and out + t * 512, its four of A at in + 65536 + t * 16. Between the copy of
// the image and the product stands `before`, after it `after`.
static void write_kernel(Text *t, const Case *c, const char *before, const char *after) {
  t->length = 0;
  SAY(".version 8.8\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 tile[];\n"
      ".visible .entry k(.param .u64 image, .param .u64 in, .param .u64 out, .param .u64 a, .param .u64 b, "
      ".param .u32 adds, .param .u64 meta)\n{\n.reg .pred %%adds, %%p; .reg .b32 %%d<128>, %%a<4>, %%t, %%r<8>, %%meta;\n"
      ".reg .b64 %%da, %%db, "
      "%%in, %%out, %%image, %%rd<4>;\n"
      "ld.param.u64 %%image, [image]; ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out];\n"
      "ld.param.u64 %%da, [a]; ld.param.u64 %%db, [b]; ld.param.u32 %%r0, [adds]; setp.ne.u32 %%adds, %%r0, 0;\n"
      "mov.u32 %%t, %%tid.x; mov.u32 %%r1, %%t;\nCOPY: shl.b32 %%r2, %%r1, 4; cvt.u64.u32 %%rd0, %%r2;\n"
      "add.u64 %%rd0, %%image, %%rd0; ld.global.v4.u32 {%%r3,%%r4,%%r5,%%r6}, [%%rd0];\n"
      "mov.u32 %%r7, tile; add.u32 %%r2, %%r2, %%r7; st.shared.v4.u32 [%%r2], {%%r3,%%r4,%%r5,%%r6};\n"
      "add.u32 %%r1, %%r1, 128; setp.lt.u32 %%p, %%r1, %d; @%%p bra COPY;\n"
      "mul.wide.u32 %%rd0, %%t, 512; add.u64 %%rd1, %%in, %%rd0; add.u64 %%out, %%out, %%rd0;\n"
      "mul.wide.u32 %%rd0, %%t, 16; add.u64 %%rd2, %%in, %%rd0;\n",
      IMAGE / 16);
  for (int r = 0; r < d_registers(c); r++) SAY("ld.global.b32 %%d%d, [%%rd1+%d];\n", r, r * 4);
  for (int r = 0; r < 4; r++) SAY("ld.global.b32 %%a%d, [%%rd2+%d];\n", r, 65536 + r * 4);
  if (c->sparse)
    SAY("ld.param.u64 %%rd3, [meta]; and.b32 %%r2, %%t, 31; mul.wide.u32 %%rd0, %%r2, 4; add.u64 %%rd3, %%rd3, %%rd0;\n"
        "ld.global.u32 %%meta, [%%rd3];\n");
  SAY("fence.proxy.async;\nbar.sync 0;\n%s"
      "wgmma.fence.sync.aligned;\n",
      before);
  write_wgmma(t, c);
  SAY("%s", after);
  for (int r = 0; r < d_registers(c); r++) SAY("st.global.b32 [%%out+%d], %%d%d;\n", r * 4, r);
  SAY("ret;\n}\n");
}

#define WAIT "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"

// ---- running it ----

typedef struct Work {
  int a[ROWS][256], b[256][MOST_N], start[ROWS][MOST_N];
  int at[ROWS][256]; // of a sparse A: the k of its elements
  uint8_t image[IMAGE];
  uint32_t in[128][128], a_regs[128][4], out[128][128];
  uint64_t a_desc, b_desc;
} Work;

// Rows and columns of D that register r of a thread holds, and (f16) which half: the PTX manual's figure.
static void place_of(const Case *c, int thread, int r, int half, int *row, int *col) {
  int element = d_registers(c) == c->n / 4 ? r * 2 + half : r, lane = thread % 32;
  *row = thread / 32 * 16 + lane / 4 + element / 2 % 2 * 8;
  *col = element / 4 * 8 + lane % 4 * 2 + element % 2;
}

static uint32_t number(const Case *c, int v) {
  if (c->d[0] == 's') return (uint32_t)v;
  float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, 4);
  if (c->d[1] == '3' || !v) return bits;
  return (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112u << 10)); // of a whole number below 2048
}

static void fill(const Case *c, Work *w, uint64_t seed) {
  memset(w, 0, sizeof *w);
  for (int k = 0; k < c->a->k; k++)
    for (int m = 0; m < ROWS; m++)
      put(w->image, 0, &c->a_at, m, k, c->a, w->a[m][k] = digit(&seed, c->a)), w->at[m][k] = k;
  for (int k = 0; k < depth(c); k++)
    for (int n = 0; n < c->n; n++) put(w->image, B_AT, &c->b_at, n, k, c->b, w->b[k][n] = digit(&seed, c->b));
  for (int m = 0; m < ROWS; m++)
    for (int n = 0; n < c->n; n++)
      w->start[m][n] = c->satfinite ? 0x7fffff00 : (int)(body_random(&seed) >> 8) % 99 - 49;
  for (int t = 0; t < 128; t++) {
    int per = 32 / c->a->bits;
    for (int r = 0; r < 4;
         r++) // a register holds neighbours along k: row t/4 (+8), k from (t%4)*per (+4*per)
      for (int e = 0; e < per; e++)
        w->a_regs[t][r] |=
            encode(w->a[t / 32 * 16 + t % 32 / 4 + r % 2 * 8][(r / 2 * 4 + t % 4) * per + e], c->a)
            << e * c->a->bits;
    for (int r = 0; r < d_registers(c); r++)
      for (int half = 0; half < (d_registers(c) == c->n / 4 ? 2 : 1); half++) {
        int row, col;
        place_of(c, t, r, half, &row, &col);
        w->in[t][r] |= number(c, w->start[row][col]) << half * 16;
      }
  }
  w->a_desc = descriptor(0, &c->a_at);
  w->b_desc = descriptor(B_AT, &c->b_at);
}

static Ran run_text(const Case *c, const char *text, Work *w, uint32_t threads, SolEmuCounts *counts) {
  Ran r = {0};
  SolEmu *emu = NULL;
  SolEmuModule *module = NULL;
  SolEmuResult result = {0};
  Args args = {.a = w->a_desc, .b = w->b_desc, .adds = c->keeps};
  r.status = sol_emu_create(&(SolEmuMachine){.workers = 1}, &emu, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, IMAGE, "image", &args.image, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, 65536 + 2048, "in", &args.in, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, 65536, "out", &args.out, &r.err);
  if (!r.status && c->meta) r.status = sol_emu_alloc(emu, 128, "metadata", &args.meta, &r.err);
  if (!r.status && c->meta) r.status = sol_emu_write(emu, args.meta, c->meta, 128, &r.err);
  if (!r.status) r.status = sol_emu_write(emu, args.image, w->image, IMAGE, &r.err);
  if (!r.status) r.status = sol_emu_write(emu, args.in, w->in, sizeof w->in, &r.err);
  if (!r.status) r.status = sol_emu_write(emu, args.in + 65536, w->a_regs, sizeof w->a_regs, &r.err);
  if (!r.status)
    r.status = sol_emu_load(emu, &(SolPtxSource){"wgmma", text, strlen(text)}, 1, &module, &r.err);
  if (!r.status) {
    SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "k"),
                           .grid = {1, 1, 1},
                           .block = {threads, 1, 1},
                           .dynamic_shared = IMAGE,
                           .params = &args,
                           .param_bytes = sizeof args,
                           .async_order = c->order,
                           .checks = SOL_EMU_CHECK_RACE | SOL_EMU_CHECK_SYNC,
                           .max_instructions = 10000000};
    r.status = sol_emu_launch(emu, &launch, &result, &r.err);
    r.end = result.end;
    r.total = result.total;
    r.findings = result.finding_count;
    if (result.finding_count) r.finding = result.findings[0];
    for (uint32_t k = 0; counts && k < result.inst_count; k++) {
      const PtxFunction *f = &sol_emu_ptx(module)->functions[result.insts[k].function];
      PtxOp op = f->insts[result.insts[k].inst].code->op;
      if (op == PTX_OP_WGMMA || op == PTX_OP_WGMMA_SP) *counts = result.insts[k].counts;
    }
  }
  if (!r.status) r.status = sol_emu_read(emu, w->out, args.out, sizeof w->out, &r.err);
  sol_emu_result_free(&result);
  sol_emu_destroy(emu);
  return r;
}

static int expected(const Case *c, const Work *w, int m, int n) {
  int64_t sum = 0;
  for (int k = 0; k < c->a->k; k++) sum += w->a[m][k] * w->b[w->at[m][k]][n];
  if (c->a->one >= 0) sum *= c->a_scale * c->b_scale;
  sum += c->keeps ? w->start[m][n] : 0;
  return (int)(c->satfinite && sum > INT32_MAX ? INT32_MAX : sum);
}

static int wrong_numbers(const Case *c, const Work *w) {
  int wrong = 0;
  for (int t = 0; t < 128; t++)
    for (int r = 0; r < d_registers(c); r++)
      for (int half = 0; half < (d_registers(c) == c->n / 4 ? 2 : 1); half++) {
        int row, col;
        place_of(c, t, r, half, &row, &col);
        uint32_t got = d_registers(c) == c->n / 4 ? w->out[t][r] >> half * 16 & 0xffff : w->out[t][r];
        wrong += got != number(c, expected(c, w, row, col));
      }
  return wrong;
}

static Text text;
static Work work;

static void check_case(const Case *c) {
  char what[200];
  snprintf(what, sizeof what, "n%d %s.%s.%s A %s%d B %s%d%s%s order %d", c->n, c->d, c->a->name, c->b->name,
           c->a_at.mn_major ? "mn" : "k", c->a_at.swizzle, c->b_at.mn_major ? "mn" : "k", c->b_at.swizzle,
           c->registers ? " registers" : "", c->keeps ? " adds" : "", (int)c->order);
  fill(c, &work, (uint64_t)c->n * 7 + (uint64_t)c->a_at.swizzle);
  write_kernel(&text, c, "", WAIT);
  Ran r = run_text(c, text.at, &work, 128, NULL);
  if (body_ok(&r, what))
    CHECK_MSG(!wrong_numbers(c, &work), "%s: %d are wrong", what, wrong_numbers(c, &work));
}

// ---- layouts ----

static Layout k_major(int swizzle) { // rows of 32 bytes
  return swizzle ? (Layout){.swizzle = swizzle, .stride = (uint32_t)swizzle * 8, .leading = 16}
                 : (Layout){.leading = 128, .stride = 256};
}
static Layout mn_major(int swizzle, int rows) { // of 16-bit elements, k 16
  if (!swizzle) return (Layout){.mn_major = true, .stride = 128, .leading = (uint32_t)rows * 16};
  uint32_t atom = (uint32_t)swizzle * 8,
           atoms = ((uint32_t)rows * 2 + (uint32_t)swizzle - 1) / (uint32_t)swizzle;
  return (Layout){.mn_major = true, .swizzle = swizzle, .leading = atom, .stride = atom * atoms};
}

static const int swizzles[] = {0, 32, 64, 128};
static const Case plain = {.a = &types[0], .b = &types[0], .d = "f32", .n = 24, .a_scale = 1, .b_scale = 1};

TEST(types) {
  for (size_t a = 0; a < sizeof types / sizeof types[0]; a++)
    for (size_t b = 0; b < sizeof types / sizeof types[0]; b++) {
      bool mixes = (a == 3 || a == 4) ? b == 3 || b == 4 : (a == 5 || a == 6) ? b == 5 || b == 6 : a == b;
      for (int f16 = 0; mixes && f16 < 2; f16++) {
        if (f16 && a != 0 && a != 3 && a != 4) continue;
        Case c = plain;
        c.a = &types[a], c.b = &types[b];
        c.d = f16 ? "f16" : types[a].one < 0 ? "s32" : "f32";
        c.a_at = c.b_at = k_major(swizzles[(a + b) % 4]);
        c.registers = (a + b + (size_t)f16) % 2;
        c.keeps = b % 2;
        check_case(&c);
      }
    }
}

TEST(layouts_of_both) {
  for (int a = 0; a < 8; a++)
    for (int b = 0; b < 8; b++) {
      Case c = plain;
      c.n = b % 2 ? 64 : 72;
      c.a_at = a < 4 ? k_major(swizzles[a]) : mn_major(swizzles[a - 4], 64);
      c.b_at = b < 4 ? k_major(swizzles[b]) : mn_major(swizzles[b - 4], c.n);
      check_case(&c);
    }
}

TEST(every_n) {
  for (int n = 8; n <= 256; n += 8) {
    Case c = plain;
    c.a = c.b = &types[1];
    c.n = n;
    c.registers = n % 16, c.keeps = true;
    c.a_at = k_major(128), c.b_at = n % 24 ? k_major(64) : mn_major(128, n);
    check_case(&c);
  }
}

TEST(scales_saturation_and_offsets) {
  Case c = plain;
  c.a_at = c.b_at = k_major(64);
  c.keeps = true;
  for (int k = 0; k < 4; k++) {
    c.a_scale = k & 1 ? -1 : 1, c.b_scale = k & 2 ? -1 : 1;
    c.registers = k == 1;
    check_case(&c);
  }
  c = plain;
  c.a = c.b = &types[6], c.d = "s32", c.satfinite = c.keeps = true;
  c.a_at = c.b_at = k_major(32);
  check_case(&c);
  c = plain; // a pattern that does not start at its own boundary: the base offset says where
  c.a_at = k_major(128), c.b_at = k_major(128);
  c.b_at.base = 3;
  check_case(&c);
}

// ---- sparse ----

// Whether a nibble of a lane's metadata is about some row and chunk of A, as an H200 has it.
typedef struct SparsePlaces {
  int lane[16][16], nibble[16][16]; // by row and chunk
  int chunks;
} SparsePlaces;

static int number_in(SolJsonIter *it) {
  SolJson v;
  double x = -1;
  return sol_json_next(it, NULL, &v) && sol_json_number(v, &x) ? (int)x : -1;
}

static void read_places(SolJson root, const char *name, SparsePlaces *p) {
  SolJson of, changed, one;
  if (!CHECK_MSG(sol_json_get(root, name, &of) && sol_json_get(of, "changed", &changed), "no %s", name))
    return;
  for (SolJsonIter it = {changed, 0}; sol_json_next(&it, NULL, &one);) {
    SolJsonIter numbers = {one, 0};
    int lane = number_in(&numbers), nibble = number_in(&numbers), row = number_in(&numbers),
        chunk = number_in(&numbers);
    if (!CHECK(lane >= 0 && lane < 32 && nibble >= 0 && nibble < 8 && row >= 0 && row < 16 && chunk >= 0 &&
               chunk < 16))
      return;
    p->lane[row][chunk] = lane, p->nibble[row][chunk] = nibble;
    if (chunk >= p->chunks) p->chunks = chunk + 1;
  }
}

// Chooses elements of A at random and writes them into the metadata at the places that were measured; all other bits are noise.
static void choose(const SparsePlaces *p, const Type *t, uint64_t seed, uint32_t meta[32], Work *w) {
  static const int pairs[][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  for (int l = 0; l < 32; l++) meta[l] = body_random(&seed);
  for (int row = 0; row < 16; row++)
    for (int chunk = 0; chunk < p->chunks; chunk++) {
      const int *pair =
          pairs[t->bits == 32 ? body_random(&seed) >> 9 & 1 ? 5 : 0 : (body_random(&seed) >> 9) % 6];
      int shift = p->nibble[row][chunk] * 4;
      uint32_t *word = &meta[p->lane[row][chunk]];
      *word = (*word & ~(15u << shift)) | (uint32_t)(pair[0] | pair[1] << 2) << shift;
      for (int m = row; m < ROWS; m += 16) { // each warp has 16 rows, and here all the same metadata
        if (t->bits == 32) w->at[m][chunk] = chunk * 2 + pair[0] / 2;
        for (int e = 0; e < 2 && t->bits != 32; e++) w->at[m][chunk * 2 + e] = chunk * 4 + pair[e];
      }
    }
}

static Layout b_of_sparse(const Type *t, int which, int n) { // rows of 64 bytes
  if (which == 2 && t->bits == 16) {                         // k of 32
    Layout turned = mn_major(64, n);
    return turned;
  }
  return which == 1 ? (Layout){.leading = 128, .stride = 512} : k_major(which == 3 ? 64 : 128);
}

static void check_sparse(const SparsePlaces *p, const Type *a, const Type *b, int selector, int which) {
  uint32_t meta[32];
  Case c = plain;
  c.a = a, c.b = b, c.sparse = true, c.selector = selector, c.meta = meta;
  c.n = which == 3 ? 64 : 24, c.registers = which % 2, c.keeps = which > 1;
  c.d = a->one < 0 ? "s32" : which == 3 && a->bits == 8 ? "f16" : "f32";
  c.a_scale = which == 2 ? -1 : 1;
  c.a_at = k_major(128), c.b_at = b_of_sparse(a, which, c.n);
  fill(&c, &work, (uint64_t)which + 3);
  choose(p, a, (uint64_t)which * 77 + 5, meta, &work);
  write_kernel(&text, &c, "", WAIT);
  Ran r = run_text(&c, text.at, &work, 128, NULL);
  if (body_ok(&r, "sparse"))
    CHECK_MSG(!wrong_numbers(&c, &work), "sparse %s %s selector %d, %d: %d are wrong", a->name, b->name,
              selector, which, wrong_numbers(&c, &work));
}

TEST(sparse_as_an_h200_reads_its_metadata) {
  size_t length;
  SolJson root;
  char *file = cli_read_file("bench/results/2026-11-17-h200-sparse.json", 1 << 20, &length, NULL);
  if (!CHECK(file && !sol_json_check(file, length, &root, NULL))) return;
  SparsePlaces half[2] = {0}, tf32[2] = {0}, bytes = {0};
  read_places(root, "f16 selector 0 chunks from 0", &half[0]);
  read_places(root, "f16 selector 1 chunks from 0", &half[1]);
  read_places(root, "tf32 selector 0 chunks from 0", &tf32[0]);
  read_places(root, "tf32 selector 1 chunks from 0", &tf32[1]);
  read_places(root, "e4m3 selector 0 chunks from 0", &bytes);
  read_places(root, "e4m3 selector 0 chunks from 8", &bytes);
  CHECK(half[0].chunks == 8 && tf32[1].chunks == 8 && bytes.chunks == 16);
  for (int which = 0; which < 4; which++) {
    for (int selector = 0; selector < 2; selector++) {
      check_sparse(&half[selector], &types[0], &types[0], selector, which);
      check_sparse(&half[selector], &types[1], &types[1], selector, which);
      check_sparse(&tf32[selector], &types[2], &types[2], selector, which);
    }
    for (int k = 0; k < 4; k++) check_sparse(&bytes, &types[3 + k % 2], &types[3 + k / 2], 0, which);
    for (int k = 0; k < 4; k++) check_sparse(&bytes, &types[5 + k % 2], &types[5 + k / 2], 0, which);
  }
  free(file);
}

// ---- asynchrony ----

static int run_order(const Case *c, const char *before, const char *after, uint64_t order, Ran *r) {
  Case one = *c;
  one.order = order;
  fill(&one, &work, 5);
  write_kernel(&text, &one, before, after);
  *r = run_text(&one, text.at, &work, 128, NULL);
  return wrong_numbers(&one, &work);
}

TEST(a_missing_wait_is_seen_under_every_seed) {
  Case c = plain;
  c.a_at = c.b_at = k_major(128);
  for (uint64_t order = 0; order < 16; order++) {
    Ran r;
    CHECK_INT(run_order(&c, "", WAIT, order, &r), 0);
    body_ok(&r, "with a wait");
    bool late = order != 0;
    CHECK_MSG((run_order(&c, "", "wgmma.commit_group.sync.aligned;\n", order, &r) != 0) == late,
              "no wait, order %d", (int)order);
    CHECK_MSG((run_order(&c, "", "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n",
                         order, &r) != 0) == late,
              "a wait for too few, order %d", (int)order);
    CHECK_MSG((run_order(&c, "", "wgmma.wait_group.sync.aligned 0;\n", order, &r) != 0) == late,
              "no commit, order %d", (int)order);
    c.registers = true; // A's registers must not be written before the wait
    CHECK_MSG((run_order(&c, "", "mov.b32 %a1, 0;\n" WAIT, order, &r) != 0) == late, "A written, order %d",
              (int)order);
    c.registers = false;
  }
}

TEST(one_warps_wait_is_for_all_four) { // the first warp overwrites B as soon as it has waited
  Case c = plain;
  c.a_at = c.b_at = k_major(128);
  for (uint64_t order = 0; order < 4; order++) {
    Ran r;
    CHECK_INT(
        run_order(&c, "setp.gt.u32 %p, %t, 95; @%p nanosleep.u32 100000;\n",
                  WAIT
                  "setp.lt.u32 %p, %t, 32; mov.u32 %r7, tile; shl.b32 %r2, %t, 4; add.u32 %r2, %r2, %r7;\n"
                  "@%p st.shared.v4.u32 [%r2+16384], {%r7,%r7,%r7,%r7};\n",
                  order, &r),
        0);
    CHECK_INT(r.end, SOL_EMU_DONE);
  }
}

// ---- what is wrong ----

TEST(misuse_is_found) {
  Case c = plain;
  c.a_at = c.b_at = k_major(128);
  for (uint64_t order = 0; order < 2; order++) {
    c.order = order;
    fill(&c, &work, 1);
    write_kernel(&text, &c, "", WAIT);
    work.b_desc |= 0x3fff; // past the end of shared memory
    Ran r = run_text(&c, text.at, &work, 128, NULL);
    CHECK(r.findings && r.finding.kind == SOL_EMU_OUT_OF_BOUNDS);
    fill(&c, &work, 1);
    r = run_text(&c, text.at, &work, 96, NULL);
    CHECK(r.findings && r.finding.kind == SOL_EMU_BAD_USE);
    CHECK_HAS(r.finding.message, "a warpgroup is four warps");
    write_kernel(&text, &c, "setp.gt.u32 %p, %t, 95; @%p ret;\n", WAIT); // a warp that never comes
    r = run_text(&c, text.at, &work, 128, NULL);
    CHECK(r.findings && r.finding.kind == SOL_EMU_DEADLOCK);
  }
}

TEST(hostile_descriptors) {
  Case c = plain;
  uint64_t random = 11;
  c.a_at = c.b_at = k_major(128);
  for (int k = 0; k < 300; k++) {
    c.order = (uint64_t)k % 2;
    c.b_at.mn_major = k % 3 == 0;
    fill(&c, &work, 1);
    write_kernel(&text, &c, "", WAIT);
    work.a_desc = (uint64_t)body_random(&random) << 32 | body_random(&random);
    work.b_desc = (uint64_t)body_random(&random) << 32 | body_random(&random);
    Ran r = run_text(&c, text.at, &work, 128, NULL);
    CHECK(!r.status && (r.end == SOL_EMU_DONE || (r.findings && r.finding.kind == SOL_EMU_OUT_OF_BOUNDS)));
  }
}

TEST(refused_forms) {
  Ran sparse = run_body(&(Body){
      .ptx = "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3 {%f1,%f2,%f3,%f4},%x,%x,%r1,1,1,1,1;\n",
      .threads = 128});
  CHECK_INT(sparse.status, SOL_ERR_UNSUPPORTED);
  CHECK_HAS(sparse.err.message, "the sparsity selector is 0");
  static const char *const bad[] = {"1,2,0,0", "1,1,2,0", "0,1,0,0", "1,1,0"};
  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    char ptx[512];
    snprintf(ptx, sizeof ptx,
             "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%%f1,%%f2,%%f3,%%f4},%%x,%%x,1,%s;\n",
             bad[k]);
    Ran r = run_body(&(Body){.ptx = ptx, .threads = 128});
    CHECK_INT(r.status, SOL_ERR_UNSUPPORTED);
  }
}

// ---- counts ----

TEST(
    operands_count_as_shared_memory) { // m64n64k16: A is 64 rows of 32 bytes, B 64 of 32, 128 bytes a wavefront
  Case c = plain;
  c.n = 64, c.a_at = c.b_at = k_major(128);
  fill(&c, &work, 1);
  write_kernel(&text, &c, "", WAIT);
  SolEmuCounts counts = {0};
  Ran r = run_text(&c, text.at, &work, 128, &counts);
  body_ok(&r, "counts");
  CHECK_INT((int)counts.executions, 4);
  CHECK_INT((int)counts.wavefronts, 16 + 16);
  CHECK_INT((int)counts.bytes, 4096);
  c.b_at = k_major(0);
  c.b_at.stride = 1024, c.b_at.leading = 512; // still 128 bytes in a row for a core matrix
  fill(&c, &work, 1);
  write_kernel(&text, &c, "", WAIT);
  r = run_text(&c, text.at, &work, 128, &counts);
  CHECK_INT((int)counts.wavefronts, 16 + 16);
}

CHECK_MAIN
