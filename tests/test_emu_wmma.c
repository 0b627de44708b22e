// wmma: matrices in memory in, their product in memory out, in every shape, type and layout. Where the
// fragments' elements are is nobody's business but the emulator's; operands are so small that every order of
// sums gives the same.
#include "emu_body.h"
COVERS(WMMA_LOAD, WMMA_STORE, WMMA_MMA)

static void append(char *text, size_t cap, const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t at = strlen(text);
  vsnprintf(text + at, cap - at, format, args);
  va_end(args);
}

typedef struct Wmma {
  int m, n, k;
  const char *ab, *c, *d; // types
  int ab_regs[2], c_regs, d_regs;
  const char *infix; // ".satfinite", ".xor.popc" goes in front
} Wmma;

static int bits_of(const char *type) {
  return !strcmp(type, "b1")    ? 1
         : type[1] == '4'       ? 4
         : type[1] == '8'       ? 8
         : !strcmp(type, "f64") ? 64
         : strstr(type, "16")   ? 16
                                : 32;
}

static double draw_value(const char *type, uint64_t *seed) {
  uint32_t r = body_random(seed);
  if (!strcmp(type, "b1")) return r & 1;
  if (!strcmp(type, "s32")) return (int32_t)r;
  if (type[0] == 'u') return bits_of(type) == 8 ? r & 255 : r & 15;
  if (type[0] == 's') return bits_of(type) == 8 ? (int)(r & 255) - 128 : (int)(r & 15) - 8;
  return (int)(r % 13) - 6;
}
static uint64_t float_code(double v, int mbits, int bias, int width) {
  int e;
  if (v == 0) return 0;
  double m = frexp(fabs(v), &e);
  return (uint64_t)((e - 1 + bias) * (INT64_C(1) << mbits)) +
         (uint64_t)((m * 2 - 1) * (double)(INT64_C(1) << mbits)) + (v < 0 ? UINT64_C(1) << (width - 1) : 0);
}
static uint64_t encode(const char *type, double v) {
  if (!strcmp(type, "f16")) return float_code(v, 10, 15, 16);
  if (!strcmp(type, "bf16")) return float_code(v, 7, 127, 16);
  if (!strcmp(type, "f32") || !strcmp(type, "tf32")) return float_code(v, 23, 127, 32);
  if (!strcmp(type, "f64")) return float_code(v, 52, 1023, 64);
  return (uint64_t)(int64_t)v;
}

static void put_bits(uint8_t *bytes, size_t bit, int bits, uint64_t v) {
  for (int b = 0; b < bits; b++, bit++)
    bytes[bit / 8] = (uint8_t)((bytes[bit / 8] & ~(1 << bit % 8)) | (int)(v >> b & 1) << bit % 8);
}
static uint64_t get_bits(const uint8_t *bytes, size_t bit, int bits) {
  uint64_t v = 0;
  for (int b = 0; b < bits; b++, bit++) v |= (uint64_t)(bytes[bit / 8] >> bit % 8 & 1) << b;
  return v;
}

enum { PART = 16384 };
typedef struct Matrix {
  int rows, cols, stride;
  bool column_major;
  const char *type;
  double v[128][128];
  uint8_t *bytes;
} Matrix;
static size_t bit_at(const Matrix *m, int row, int col) {
  return (size_t)((m->column_major ? col * m->stride + row : row * m->stride + col) * bits_of(m->type));
}
static void fill(Matrix *m, uint64_t *seed) {
  memset(m->bytes, 0xaa, PART);
  for (int row = 0; row < m->rows; row++)
    for (int col = 0; col < m->cols; col++) {
      m->v[row][col] = draw_value(m->type, seed);
      put_bits(m->bytes, bit_at(m, row, col), bits_of(m->type), encode(m->type, m->v[row][col]));
    }
}
// Rows must start at multiples of 16 bytes (and b1, u4 in whole registers); dense or with a gap.
static int stride_of(const Matrix *m, bool dense) {
  int along = m->column_major ? m->rows : m->cols, step = 128 / bits_of(m->type);
  return dense ? along : (along + step - 1) / step * step + step;
}

static void list(char *text, size_t cap, const char *reg, int first, int count) {
  for (int e = 0; e < count; e++) append(text, cap, "%s%s%d", e ? "," : "{", reg, first + e);
  append(text, cap, "}");
}

static const char *reg_of(const char *type) {
  return !strcmp(type, "f64") ? "%d" : !strcmp(type, "f32") ? "%f" : "%r";
}

static void check_wmma(const Wmma *s, const bool col[4], bool dense, bool shared, uint64_t *seed) {
  static uint8_t in[3 * PART], out[PART], before[PART];
  static Matrix m[4]; // A B C D
  const char *types[4] = {s->ab, s->ab, s->c, s->d}, *names = "abcd";
  int rows[4] = {s->m, s->k, s->m, s->m}, cols[4] = {s->k, s->n, s->n, s->n},
      regs[4] = {s->ab_regs[0], s->ab_regs[1], s->c_regs, s->d_regs}, first[4] = {0, 8, 16, 24};
  char text[8192] = "", stride[16];
  for (int i = 0; i < 4; i++) {
    m[i].rows = rows[i], m[i].cols = cols[i], m[i].column_major = col[i], m[i].type = types[i];
    m[i].stride = stride_of(&m[i], dense);
    m[i].bytes = i < 3 ? in + i * PART : before;
    if (i < 3) fill(&m[i], seed);
  }
  memset(out, 0x55, sizeof out);
  memcpy(before, out, sizeof before);
  for (int i = 0; i < 3; i++) {
    const char *space = shared && i < 2 ? "shared" : "global", *at = shared && i < 2 ? "%rd20" : "%base";
    int offset = shared && i < 2 ? 0 : i * PART;
    if (shared && i < 2) { // a copy of the matrix in shared memory, 128 bytes a lane
      append(text, sizeof text,
             "bar.sync 0;\nmov.u64 %%rd20, tile;\nmul.wide.u32 %%rd21, %%t, 16;\nadd.u64 %%rd22, %%base, "
             "%%rd21;\nadd.u64 %%rd23, %%rd20, %%rd21;\n");
      for (int k = 0; k < 8; k++)
        append(text, sizeof text,
               "ld.global.v4.u32 {%%r60,%%r61,%%r62,%%r63}, [%%rd22+%d];\nst.shared.v4.u32 [%%rd23+%d], "
               "{%%r60,%%r61,%%r62,%%r63};\n",
               i * PART + k * 512, k * 512);
      append(text, sizeof text, "bar.sync 0;\n");
    }
    snprintf(stride, sizeof stride, ", %d", m[i].stride);
    append(text, sizeof text, "wmma.load.%c.sync.aligned.%s.m%dn%dk%d.%s.%s ", names[i],
           col[i] ? "col" : "row", s->m, s->n, s->k, space, types[i]);
    list(text, sizeof text, reg_of(types[i]), first[i], regs[i]);
    append(text, sizeof text, ", [%s+%d]%s;\n", at, offset, dense ? "" : stride);
  }
  bool bits = !strcmp(s->ab, "b1"), half = !strcmp(s->ab, "f16");
  append(text, sizeof text, "wmma.mma%s.sync.aligned.%s.%s.m%dn%dk%d", bits ? s->infix : "",
         col[0] ? "col" : "row", col[1] ? "col" : "row", s->m, s->n, s->k);
  if (half)
    append(text, sizeof text, ".%s.%s ", s->d, s->c);
  else
    append(text, sizeof text, ".%s.%s.%s.%s%s ", s->d, s->ab, s->ab, s->c, bits ? "" : s->infix);
  list(text, sizeof text, reg_of(s->d), first[3], regs[3]);
  for (int i = 0; i < 3; i++)
    append(text, sizeof text, ", "), list(text, sizeof text, reg_of(types[i]), first[i], regs[i]);
  snprintf(stride, sizeof stride, ", %d", m[3].stride);
  append(text, sizeof text, ";\nwmma.store.d.sync.aligned.%s.m%dn%dk%d.global.%s [%%all], ",
         col[3] ? "col" : "row", s->m, s->n, s->k, s->d);
  list(text, sizeof text, reg_of(s->d), first[3], regs[3]);
  append(text, sizeof text, "%s;\n", dense ? "" : stride);
  Ran r =
      run_body(&(Body){.ptx = text, .in = in, .in_bytes = sizeof in, .out = out, .out_bytes = sizeof out});
  if (!body_ok(&r, text)) return;
  for (int row = 0; row < s->m; row++)
    for (int c = 0; c < s->n; c++) {
      double sum = 0;
      for (int k = 0; k < s->k; k++) {
        bool x = m[0].v[row][k] != 0, y = m[1].v[k][c] != 0;
        sum += bits ? (strstr(s->infix, "and") ? x && y : x != y) : m[0].v[row][k] * m[1].v[k][c];
      }
      sum += m[2].v[row][c];
      if (!strcmp(s->d, "s32"))
        sum = !strstr(s->infix, "sat") ? (double)(int32_t)(uint32_t)(int64_t)sum
              : sum < -2147483648.0    ? -2147483648.0
              : sum > 2147483647.0     ? 2147483647.0
                                       : sum;
      put_bits(before, bit_at(&m[3], row, c), bits_of(s->d), encode(s->d, sum));
    }
  if (CHECK_MSG(!memcmp(out, before, sizeof out), "%s", text)) return;
  for (int row = 0; row < s->m; row++)
    for (int c = 0; c < s->n; c++) {
      uint64_t got = get_bits(out, bit_at(&m[3], row, c), bits_of(s->d)),
               want = get_bits(before, bit_at(&m[3], row, c), bits_of(s->d));
      if (got != want) {
        printf("  first at row %d column %d: %llx, not %llx\n", row, c, (unsigned long long)got,
               (unsigned long long)want);
        return;
      }
    }
}

static void check_layouts(const Wmma *s, bool fixed, uint64_t *seed) {
  for (int form = 0; form < 16; form++) {
    bool col[4] = {form & 1, form >> 1 & 1, form >> 2 & 1, form >> 3 & 1};
    if (fixed) col[0] = false, col[1] = true;
    check_wmma(s, col, form % 3 == 0, form % 2, seed);
  }
}

TEST(floats) {
  static const int shapes[3][2] = {{16, 16}, {8, 32}, {32, 8}};
  uint64_t seed = 1;
  for (int i = 0; i < 3; i++) {
    int m = shapes[i][0], n = shapes[i][1], per = m * 16 / 64, other = n * 16 / 64;
    for (int form = 0; form < 4; form++)
      check_layouts(&(Wmma){m,
                            n,
                            16,
                            "f16",
                            form & 1 ? "f32" : "f16",
                            form & 2 ? "f32" : "f16",
                            {8, 8},
                            form & 1 ? 8 : 4,
                            form & 2 ? 8 : 4,
                            ""},
                    false, &seed);
    check_layouts(&(Wmma){m, n, 16, "bf16", "f32", "f32", {per, other}, 8, 8, ""}, false, &seed);
  }
  check_layouts(&(Wmma){16, 16, 8, "tf32", "f32", "f32", {4, 4}, 8, 8, ""}, false, &seed);
  check_layouts(&(Wmma){8, 8, 4, "f64", "f64", "f64", {1, 1}, 2, 2, ".rn"}, false, &seed);
}

TEST(integers) {
  static const int shapes[3][2] = {{16, 16}, {8, 32}, {32, 8}};
  static const char *const types[2][2] = {{"u8", "s8"}, {"u4", "s4"}};
  uint64_t seed = 2;
  for (int form = 0; form < 4; form++) {
    const char *sat = form & 2 ? ".satfinite" : "";
    for (int i = 0; i < 3; i++) {
      int m = shapes[i][0], n = shapes[i][1];
      check_layouts(
          &(Wmma){m, n, 16, types[0][form & 1], "s32", "s32", {m * 16 / 128, n * 16 / 128}, 8, 8, sat}, false,
          &seed);
    }
    check_layouts(&(Wmma){8, 8, 32, types[1][form & 1], "s32", "s32", {1, 1}, 2, 2, sat}, true, &seed);
  }
  check_layouts(&(Wmma){8, 8, 128, "b1", "s32", "s32", {1, 1}, 2, 2, ".xor.popc"}, true, &seed);
  check_layouts(&(Wmma){8, 8, 128, "b1", "s32", "s32", {1, 1}, 2, 2, ".and.popc"}, true, &seed);
}

// A dense matrix of 16 rows of 32 bytes: every byte once.
TEST(counts) {
  static uint8_t in[512];
  uint32_t out[1] = {0};
  const char *ptx =
      "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%base], 16;\n";
  Ran r = run_body(&(Body){.ptx = ptx, .in = in, .in_bytes = sizeof in, .out = out, .out_bytes = 4});
  if (!body_ok(&r, ptx)) return;
  CHECK_INT(r.total.bytes, 512);
  CHECK_INT(r.total.requests, 4);
  CHECK_INT(r.total.sectors, 4 * 8); // a register's 16 bytes of a row are half a sector
}

CHECK_MAIN
