// ldmatrix, stmatrix, movmatrix, mma, wmma. Layouts here are written down once more from the PTX manual;
// products have operands so small that every order and rounding of sums gives the same.
#include "emu_body.h"
COVERS(MMA)

enum { LANES = 32 };

static void append(char *text, size_t cap, const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t at = strlen(text);
  vsnprintf(text + at, cap - at, format, args);
  va_end(args);
}
static void append_list(char *text, size_t cap, const char *reg, int first, int count) {
  for (int e = 0; e < count; e++) append(text, cap, "%s%s%d", e ? "," : "{", reg, first + e);
  append(text, cap, "}");
}

// ---- elements ----

// Small whole numbers in each type; a code and its value.
typedef struct Element {
  const char *type;
  int bits;
  char kind; // h b t(f32) e(4m3) 5(e5m2) u s 1 d(ouble) f i
} Element;
static const Element elements[] = {{"f16", 16, 'h'}, {"bf16", 16, 'b'}, {"tf32", 32, 't'}, {"e4m3", 8, 'e'},
                                   {"e5m2", 8, '5'}, {"u8", 8, 'u'},    {"s8", 8, 's'},    {"u4", 4, 'u'},
                                   {"s4", 4, 's'},   {"b1", 1, '1'},    {"f64", 64, 'd'},  {"f32", 32, 'f'},
                                   {"s32", 32, 'i'}};
static const Element *element_named(const char *type) {
  for (size_t e = 0; e < sizeof elements / sizeof elements[0]; e++)
    if (!strcmp(elements[e].type, type)) return &elements[e];
  return NULL;
}

static uint64_t float_code(double v, int mbits, int bias, int width) { // of a value the format holds
  int e;
  if (v == 0) return 0;
  double m = frexp(fabs(v), &e);
  return (uint64_t)((e - 1 + bias) * (1 << mbits)) + (uint64_t)((m * 2 - 1) * (1 << mbits)) +
         (v < 0 ? UINT64_C(1) << (width - 1) : 0);
}
static uint64_t encode(const Element *t, double v) {
  uint64_t u;
  switch (t->kind) {
  case 'h': return float_code(v, 10, 15, 16);
  case 'b': return float_code(v, 7, 127, 16);
  case 'e': return float_code(v, 3, 7, 8);
  case '5': return float_code(v, 2, 15, 8);
  case 't': return float_code(v, 23, 127, 32) | 0x1abc; // bits that do not count
  case 'f': return float_code(v, 23, 127, 32);
  case 'd': memcpy(&u, &v, 8); return u;
  default: return (uint64_t)(int64_t)v & (t->bits == 32 ? 0xffffffffu : (1u << t->bits) - 1);
  }
}
static double decode(const Element *t, uint64_t u) {
  double v;
  float f;
  uint32_t w = (uint32_t)u;
  switch (t->kind) {
  case 'h':
    return (u & 0x8000 ? -1 : 1) * (u & 0x7c00 ? ldexp(1024 + (double)(u & 1023), (int)(u >> 10 & 31) - 25)
                                               : ldexp((double)(u & 1023), -24));
  case 'f': memcpy(&f, &w, 4); return f;
  case 'd': memcpy(&v, &u, 8); return v;
  default: return (int32_t)w;
  }
}
static double draw_value(const Element *t, uint64_t *seed) {
  uint32_t r = body_random(seed);
  switch (t->kind) {
  case 'u': return t->bits == 8 ? r & 255 : r & 15;
  case 's': return t->bits == 8 ? (int)(r & 255) - 128 : (int)(r & 15) - 8;
  case '1': return r & 1;
  case 'i': return (int32_t)r;
  case '5': return (int)(r % 9) - 4;
  default: return (int)(r % 13) - 6;
  }
}
static double integer_result(double sum, bool satfinite) {
  if (satfinite) return sum < -2147483648.0 ? -2147483648.0 : sum > 2147483647.0 ? 2147483647.0 : sum;
  return (int32_t)(uint32_t)(int64_t)sum;
}

// ---- mma ----

typedef struct Mma {
  int m, n, k;
  const char *a, *b, *c, *d;
  const char *layouts; // ".row.col"
  const char *tail;    // ".xor.popc"
  const char *infix;   // ".satfinite", ".rn"
} Mma;

static bool is_quad(const Mma *s) {
  return s->m == 8 && s->k == 4 && !strcmp(s->a, "f16");
}

// The manual's figures. Row of A, C and D, column of B: *line; along k, or the column of C and D: *at.
static void mma_place(const Mma *s, char matrix, const Element *t, int lane, int i, int *line, int *at) {
  int group = lane / 4, member = lane % 4, per = t->bits >= 32 ? 1 : 32 / t->bits;
  if (is_quad(s)) {
    int q = lane / 4 % 4 * 8, high = lane >= 16 ? 4 : 0; // which of the four products
    bool a_row = !strncmp(s->layouts, ".row", 4), b_row = !strcmp(s->layouts + 4, ".row");
    if (matrix == 'A')
      *line = q + high + (a_row ? lane % 4 : i % 4), *at = a_row ? i : lane % 4;
    else if (matrix == 'B')
      *line = q + high + (b_row ? i : lane % 4), *at = b_row ? lane % 4 : i;
    else if (t->bits == 16)
      *line = q + high + lane % 4, *at = i;
    else
      *line = q + high + (lane & 1) + (i & 2), *at = (i & 4) + (lane & 2) + (i & 1);
    return;
  }
  if (matrix == 'A') {
    int pieces = s->m == 16 ? 2 : 1;
    *line = group + (i / per % pieces) * 8;
    *at = member * per + i % per + i / per / pieces * 4 * per;
  } else if (matrix == 'B') {
    *line = group;
    *at = member * per + i % per + i / per * 4 * per;
  } else {
    *line = group + i / 2 * 8;
    *at = member * 2 + i % 2;
  }
}

static uint64_t get_bits(const uint8_t *bytes, int bit, int bits) {
  uint64_t v = 0;
  for (int b = 0; b < bits; b++) v |= (uint64_t)(bytes[(bit + b) / 8] >> (bit + b) % 8 & 1) << b;
  return v;
}
static void put_bits(uint8_t *bytes, int bit, int bits, uint64_t v) {
  for (int b = 0; b < bits; b++)
    bytes[(bit + b) / 8] =
        (uint8_t)((bytes[(bit + b) / 8] & ~(1 << (bit + b) % 8)) | (int)(v >> b & 1) << (bit + b) % 8);
}

enum { PART = 64, SLICE = 3 * PART };
static int slots_of(const Mma *s, char matrix) {
  if (is_quad(s)) return matrix == 'A' || matrix == 'B' ? 4 : 8;
  return (matrix == 'B' ? s->n : s->m) * (matrix == 'A' || matrix == 'B' ? s->k : s->n) / LANES;
}

static double reference(const Mma *s, double a[32][256], double b[32][256], double c[32][32], int row,
                        int col) {
  const double *right = b[is_quad(s) ? row / 8 * 8 + col : col];
  double sum = 0;
  for (int k = 0; k < s->k; k++) {
    bool bit_and = !strcmp(s->tail, ".and.popc"), x = a[row][k] != 0, y = right[k] != 0;
    sum += s->tail[0] ? (bit_and ? x && y : x != y) : a[row][k] * right[k];
  }
  sum += c[row][col];
  return !strcmp(s->d, "s32") ? integer_result(sum, strstr(s->infix, "satfinite")) : sum;
}

static void check_mma(const Mma *s, uint64_t *seed) {
  static uint8_t in[LANES][SLICE], out[LANES][PART];
  static double a[32][256], b[32][256], c[32][32];
  const Element *te[4] = {element_named(s->d), element_named(s->a), element_named(s->b), element_named(s->c)};
  char text[4096] = "";
  memset(in, 0, sizeof in);
  memset(out, 0, sizeof out);
  int regs[4];
  for (int m = 0; m < 4; m++) {
    char matrix = "DABC"[m];
    const char *reg = te[m]->bits == 64 ? "%rd" : "%r", *width = te[m]->bits == 64 ? "b64" : "b32";
    int bytes = te[m]->bits == 64 ? 8 : 4;
    regs[m] = slots_of(s, matrix) * te[m]->bits / (8 * bytes);
    for (int i = 0; m && i < regs[m]; i++)
      append(text, sizeof text, "ld.global.%s %s%d, [%%in+%d];\n", width, reg, m * 8 + i,
             (m - 1) * PART + i * bytes);
    for (int l = 0; m && l < LANES; l++)
      for (int i = 0; i < slots_of(s, matrix); i++) {
        int line, at;
        double v = draw_value(te[m], seed);
        mma_place(s, matrix, te[m], l, i, &line, &at);
        if (m == 1) a[line][at] = v;
        if (m == 2) b[line][at] = v;
        if (m == 3) c[line][at] = v;
        put_bits(in[l] + (m - 1) * PART, i * te[m]->bits, te[m]->bits, encode(te[m], v));
      }
  }
  append(text, sizeof text, "mma.sync.aligned.m%dn%dk%d%s%s.%s.%s.%s.%s%s ", s->m, s->n, s->k, s->layouts,
         s->infix, s->d, s->a, s->b, s->c, s->tail);
  for (int m = 0; m < 4; m++)
    append_list(text, sizeof text, te[m]->bits == 64 ? "%rd" : "%r", m * 8, regs[m]),
        append(text, sizeof text, m < 3 ? ", " : ";\n");
  for (int i = 0; i < regs[0]; i++)
    append(text, sizeof text, "st.global.%s [%%out+%d], %s%d;\n", te[0]->bits == 64 ? "b64" : "b32",
           i * (te[0]->bits == 64 ? 8 : 4), te[0]->bits == 64 ? "%rd" : "%r", i);
  Ran r = run_body(&(Body){.ptx = text,
                           .in = in,
                           .in_bytes = sizeof in,
                           .in_stride = SLICE,
                           .out = out,
                           .out_bytes = sizeof out,
                           .out_stride = PART});
  if (!body_ok(&r, text)) return;
  for (int l = 0; l < LANES; l++)
    for (int i = 0; i < slots_of(s, 'D'); i++) {
      int row, col;
      mma_place(s, 'D', te[0], l, i, &row, &col);
      double got = decode(te[0], get_bits(out[l], i * te[0]->bits, te[0]->bits)),
             want = reference(s, a, b, c, row, col);
      if (!CHECK_MSG(got == want, "m%dn%dk%d%s%s %s %s %s %s lane %d slot %d: %g, not %g", s->m, s->n, s->k,
                     s->layouts, s->infix, s->d, s->a, s->b, s->c, l, i, got, want))
        return;
    }
}

TEST(mma_floats) {
  static const Mma cases[] = {{16, 8, 8, "f16", "f16", "f16", "f16", ".row.col", "", ""},
                              {16, 8, 8, "f16", "f16", "f32", "f32", ".row.col", "", ""},
                              {16, 8, 16, "f16", "f16", "f16", "f16", ".row.col", "", ""},
                              {16, 8, 16, "f16", "f16", "f32", "f32", ".row.col", "", ""},
                              {16, 8, 8, "bf16", "bf16", "f32", "f32", ".row.col", "", ""},
                              {16, 8, 16, "bf16", "bf16", "f32", "f32", ".row.col", "", ""},
                              {16, 8, 4, "tf32", "tf32", "f32", "f32", ".row.col", "", ""},
                              {16, 8, 8, "tf32", "tf32", "f32", "f32", ".row.col", "", ""},
                              {16, 8, 16, "e4m3", "e4m3", "f32", "f32", ".row.col", "", ""},
                              {16, 8, 32, "e4m3", "e5m2", "f32", "f32", ".row.col", "", ""},
                              {16, 8, 32, "e5m2", "e4m3", "f16", "f16", ".row.col", "", ""},
                              {16, 8, 16, "e5m2", "e5m2", "f16", "f16", ".row.col", "", ""},
                              {8, 8, 4, "f64", "f64", "f64", "f64", ".row.col", "", ""},
                              {16, 8, 4, "f64", "f64", "f64", "f64", ".row.col", "", ".rn"},
                              {16, 8, 8, "f64", "f64", "f64", "f64", ".row.col", "", ".rz"},
                              {16, 8, 16, "f64", "f64", "f64", "f64", ".row.col", "", ".rm"},
                              {16, 8, 16, "f64", "f64", "f64", "f64", ".row.col", "", ".rp"},
                              {8, 8, 4, "f16", "f16", "f16", "f16", ".row.col", "", ""},
                              {8, 8, 4, "f16", "f16", "f32", "f32", ".row.col", "", ""},
                              {8, 8, 4, "f16", "f16", "f32", "f32", ".row.row", "", ""},
                              {8, 8, 4, "f16", "f16", "f32", "f32", ".col.col", "", ""},
                              {8, 8, 4, "f16", "f16", "f16", "f32", ".col.row", "", ""}};
  uint64_t seed = 3;
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
    for (int again = 0; again < 3; again++) check_mma(&cases[c], &seed);
}

TEST(mma_integers) {
  static const int wide[3][3] = {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}},
                   narrow[3][3] = {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}},
                   bit[3][3] = {{8, 8, 128}, {16, 8, 128}, {16, 8, 256}};
  static const char *const bytes[2] = {"u8", "s8"}, *const nibbles[2] = {"u4", "s4"},
                           *const sat[2] = {"", ".satfinite"}, *const pop[2] = {".xor.popc", ".and.popc"};
  uint64_t seed = 4;
  for (int shape = 0; shape < 3; shape++)
    for (int form = 0; form < 8; form++) {
      int x = form & 1, y = form >> 1 & 1, z = form >> 2;
      check_mma(&(Mma){wide[shape][0], wide[shape][1], wide[shape][2], bytes[x], bytes[y], "s32", "s32",
                       ".row.col", "", sat[z]},
                &seed);
      check_mma(&(Mma){narrow[shape][0], narrow[shape][1], narrow[shape][2], nibbles[x], nibbles[y], "s32",
                       "s32", ".row.col", "", sat[z]},
                &seed);
      check_mma(&(Mma){bit[shape][0], bit[shape][1], bit[shape][2], "b1", "b1", "s32", "s32", ".row.col",
                       pop[x], ""},
                &seed);
    }
}

CHECK_MAIN
