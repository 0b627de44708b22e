// src/emu/isa/num_mma.h: fragments by the manual's formulas, products by plain loops, and all of it as on an
// H200.
#include "check.h"
#include "emu/isa/num_cvt.h"
#include "emu/isa/num_mma.h"
#include "num_ref.h"

enum { REGS = NUM_MAX_MMA_REGS };

// An operand's registers, 64 bits to a lane so that f64 fits; 32-bit elements lie side by side in the front
// half.
typedef struct Registers {
  uint64_t bits[REGS][32];
  void *at[REGS];
} Registers;
static void *const *pointers(Registers *r) {
  for (int i = 0; i < REGS; i++) r->at[i] = r->bits[i];
  return r->at;
}
static uint32_t *lanes(Registers *r, int reg) {
  return (uint32_t *)r->bits[reg];
}
static void run(const NumMmaPlan *plan, Registers *d, Registers *a, Registers *b, Registers *c) {
  sol_num_mma(plan, pointers(d), (const void *const *)pointers(a), (const void *const *)pointers(b),
              (const void *const *)pointers(c));
}

typedef struct Row {
  NumMma op;
  int fills;
  uint32_t hash;
} Row;
// clang-format off
#define WMMA(...)
#define MMA(M, N, K, A, B, C, D, fills, hash, ...) \
  {{.m = M, .n = N, .k = K, .a = NUM_ELEMENT_##A, .b = NUM_ELEMENT_##B, .c = NUM_ELEMENT_##C, .d = NUM_ELEMENT_##D, __VA_ARGS__}, fills, hash},
static const Row rows[] = {
#include "num_mma_h200.def"
};
#undef WMMA
#undef MMA
// clang-format on
enum { ROWS = sizeof rows / sizeof rows[0] };

static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A float of some format about 1: fill 0 is a whole number from -3 to 3, others any mantissa, exponents -3 to
// 2 or so.
static uint64_t about_one(uint64_t h, int fill, int m, int bias, int first, int spread) {
  uint64_t sign_at = (uint64_t)(m == 52             ? 63
                                : m == 23           ? 31
                                : m == 10 || m == 7 ? 15
                                                    : 7),
           top = (uint64_t)bias;
  if (fill)
    return (h >> 40 & 1) << sign_at | (uint64_t)(first + (int)(h % (uint64_t)spread)) << m |
           (h >> 8 & ((1ull << m) - 1));
  uint64_t v = h % 7, sign = v > 3, n = sign ? v - 3 : v,
           mag = n == 0   ? 0
                 : n == 1 ? top << m
                          : (top + 1) << m | (uint64_t)(n == 3) << (m - 1);
  return mag | sign << sign_at;
}

// The contents of a register that went to the GPU: operand 0 to 2, register, lane.
static uint32_t fill_word(NumElement e, int fill, int operand, int reg, int lane) {
  uint64_t h = mix((uint64_t)(operand * 1000 + reg) * 64 + (uint64_t)lane + (uint64_t)fill * 1000003);
  if (e == NUM_ELEMENT_S32 || e == NUM_ELEMENT_B1 || (e >= NUM_ELEMENT_S8 && e <= NUM_ELEMENT_U4))
    return fill == 2 ? (h & 1 ? 0x7ffffff0u : 0x80000003u) : (uint32_t)h;
  int bits = e == NUM_ELEMENT_F16 || e == NUM_ELEMENT_BF16    ? 16
             : e == NUM_ELEMENT_E4M3 || e == NUM_ELEMENT_E5M2 ? 8
                                                              : 32;
  uint32_t v = 0;
  for (int i = 0; i < 32 / bits; i++) {
    uint64_t g = mix(h + (uint64_t)i), x;
    switch (e) {
    case NUM_ELEMENT_F16: x = about_one(g, fill, 10, 15, 12, 6); break;
    case NUM_ELEMENT_BF16: x = about_one(g, fill, 7, 127, 124, 6); break;
    case NUM_ELEMENT_E4M3: x = about_one(g, fill, 3, 7, 5, 5); break;
    case NUM_ELEMENT_E5M2: x = about_one(g, fill, 2, 15, 13, 5); break;
    default: x = about_one(g, fill, 23, 127, 124, 6);
    }
    v |= (uint32_t)x << (i * bits);
  }
  return v;
}
static uint64_t fill_double(int fill, int operand, int reg, int lane) {
  uint64_t h = mix((uint64_t)(operand * 1000 + reg) * 64 + (uint64_t)lane + (uint64_t)fill * 1000003);
  if (!fill) return about_one(h, 0, 52, 1023, 0, 0);
  return (h >> 63) << 63 | (1020 + h % 6) << 52 | mix(h) >> 12;
}
static void fill_registers(Registers *r, NumElement e, int regs, int fill, int operand) {
  memset(r, 0, sizeof *r);
  for (int i = 0; i < regs; i++) {
    for (int l = 0; l < 32; l++) {
      if (e == NUM_ELEMENT_F64)
        r->bits[i][l] = fill_double(fill, operand, i, l);
      else
        lanes(r, i)[l] = fill_word(e, fill, operand, i, l);
    }
  }
}

TEST(as_on_an_h200) {
  for (int i = 0; i < ROWS; i++) {
    const NumMma *op = &rows[i].op;
    NumMmaPlan plan;
    if (!CHECK(sol_num_mma_plan(op, &plan))) continue;
    uint32_t hash = 2166136261u;
    for (int fill = 0; fill < rows[i].fills; fill++) {
      Registers a, b, c, d = {0};
      fill_registers(&a, op->a, plan.a.regs, fill, 0);
      fill_registers(&b, op->b, plan.b.regs, fill, 1);
      fill_registers(&c, op->c, plan.c.regs, fill, 2);
      run(&plan, &d, &a, &b, &c);
      for (int r = 0; r < 8; r++) {
        for (int l = 0; l < 32; l++) {
          uint64_t v = op->d == NUM_ELEMENT_F64 ? d.bits[r][l] : lanes(&d, r)[l];
          for (int x = 0; x < 8; x++, v >>= 8) hash = (hash ^ (uint32_t)(v & 255)) * 16777619u;
        }
      }
    }
    CHECK_MSG(hash == rows[i].hash, "m%dn%dk%d, elements %d %d %d %d: differs from the GPU", op->m, op->n,
              op->k, op->a, op->b, op->c, op->d);
  }
}

typedef struct Place {
  int row, col;
} Place;

// The manual, section by section: element i of a lane's fragment.
static Place manual_a(const NumMma *op, int bits, int lane, int i) {
  int group = lane >> 2, member = lane % 4;
  if (op->m == 8 && op->k == 4 && bits == 16) { // one of four; see quad
    if (op->a_col) return (Place){i % 4 + (lane < 16 ? 0 : 4), lane % 4};
    return (Place){lane % 4 + (lane < 16 ? 0 : 4), i};
  }
  if (op->m == 8) return (Place){group, member * (op->k / 4) + i};
  if (bits == 64) return (Place){group + (i % 2 ? 8 : 0), (i % 2 ? i * 2 - 2 : i * 2) + member};
  if (bits == 32) return (Place){group + (i == 1 || i == 3 ? 8 : 0), member + (i >= 2 ? 4 : 0)};
  int run = 32 / bits; // elements of a register
  if (op->k == run * 4) return (Place){group + (i < run ? 0 : 8), member * run + i % run};
  bool upper = i < run || (i >= 2 * run && i < 3 * run);
  return (Place){group + (upper ? 0 : 8), member * run + i % run + (i < 2 * run ? 0 : run * 4)};
}
static Place manual_b(const NumMma *op, int bits, int lane, int i) {
  int group = lane >> 2, member = lane % 4;
  if (op->m == 8 && op->k == 4 && bits == 16) {
    if (op->b_row) return (Place){lane % 4, i + (lane < 16 ? 0 : 4)};
    return (Place){i, lane % 4 + (lane < 16 ? 0 : 4)};
  }
  if (bits >= 32) return (Place){member + i * 4, group};
  int run = 32 / bits;
  return (Place){member * run + i % run + (i < run ? 0 : run * 4), group};
}
static Place manual_c(const NumMma *op, NumElement e, int lane, int i) {
  if (op->m == 8 && op->k == 4 && op->a == NUM_ELEMENT_F16) {
    if (e == NUM_ELEMENT_F16) return (Place){lane % 4 + (lane < 16 ? 0 : 4), i};
    return (Place){(lane & 1) + (i & 2) + (lane < 16 ? 0 : 4), (i & 4) + (lane & 2) + (i & 1)};
  }
  return (Place){(lane >> 2) + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
}

static void check_places(const NumMma *op, const NumFragment *f, NumOperand operand, NumElement e) {
  bool four = op->m == 8 && op->k == 4 && op->a == NUM_ELEMENT_F16;
  for (int l = 0; l < 32; l++) {
    for (int s = 0; s < f->slots; s++) {
      int at = f->lane[l] + f->slot[s], quad = four ? (l >> 2) % 4 * 8 : 0;
      Place want = operand == NUM_OPERAND_A   ? manual_a(op, f->bits, l, s)
                   : operand == NUM_OPERAND_B ? manual_b(op, f->bits, l, s)
                                              : manual_c(op, e, l, s);
      if (operand == NUM_OPERAND_B)
        want.col += quad;
      else
        want.row += quad;
      CHECK_MSG(at / f->stride == want.row && at % f->stride == want.col,
                "m%dn%dk%d element %d operand %d lane %d slot %d", op->m, op->n, op->k, e, operand, l, s);
    }
  }
}

TEST(fragments_as_in_the_manual) {
  for (int i = 0; i < ROWS; i++) {
    NumMma op = rows[i].op;
    NumMmaPlan plan;
    if (!CHECK(sol_num_mma_plan(&op, &plan))) continue;
    if (op.a == NUM_ELEMENT_B1) op.k /= 32; // by words, which lie like tf32's elements
    check_places(&op, &plan.a, NUM_OPERAND_A, op.a);
    check_places(&op, &plan.b, NUM_OPERAND_B, op.b);
    check_places(&op, &plan.c, NUM_OPERAND_C, op.c);
    check_places(&op, &plan.d, NUM_OPERAND_D, op.d);
  }
}

// wmma's fragments, as an H200 loads them: what each bit of lane and slot adds.
static const struct Load {
  NumOperand operand;
  int m, n, k;
  NumElement e;
  const char *lane, *slot;
} loads[] = {
// clang-format off
#define MMA(...)
#define WMMA(operand, m, n, k, e, lane, slot) {NUM_OPERAND_##operand, m, n, k, NUM_ELEMENT_##e, lane, slot},
#include "num_mma_h200.def"
    // clang-format on
};

static Place sum_of_bits(const char *steps, int bits) {
  Place p = {0, 0};
  for (int row, col, used; sscanf(steps, "%d,%d%n", &row, &col, &used) == 2; steps += used, bits >>= 1)
    if (bits & 1) p.row += row, p.col += col;
  return p;
}
static NumMma wmma_op(int m, int n, int k, NumElement a, NumElement c) {
  return (NumMma){.m = m, .n = n, .k = k, .a = a, .b = a, .c = c, .d = c, .wmma = true};
}

TEST(wmma_fragments_as_on_an_h200) {
  for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
    const struct Load *load = &loads[i];
    NumElement a = load->e, c = load->e;
    if (load->operand == NUM_OPERAND_C) {
      if (c == NUM_ELEMENT_F32) a = load->k == 8 ? NUM_ELEMENT_TF32 : NUM_ELEMENT_BF16;
      if (c == NUM_ELEMENT_S32)
        a = load->k == 16 ? NUM_ELEMENT_S8 : load->k == 32 ? NUM_ELEMENT_S4 : NUM_ELEMENT_B1;
    } else if (a != NUM_ELEMENT_F16 && a != NUM_ELEMENT_F64) {
      c = a <= NUM_ELEMENT_TF32 ? NUM_ELEMENT_F32 : NUM_ELEMENT_S32;
    }
    NumMma op = wmma_op(load->m, load->n, load->k, a, c);
    NumMmaPlan plan;
    if (!CHECK(sol_num_mma_plan(&op, &plan))) continue;
    const NumFragment *f = load->operand == NUM_OPERAND_A   ? &plan.a
                           : load->operand == NUM_OPERAND_B ? &plan.b
                                                            : &plan.c;
    int inside = a == NUM_ELEMENT_B1 && load->operand != NUM_OPERAND_C ? 32 : 1; // bits of a word along k
    for (int l = 0; l < 32; l++) {
      for (int s = 0; s < f->regs * f->per_reg; s++) {
        Place lane = sum_of_bits(load->lane, l), slot = sum_of_bits(load->slot, s * inside);
        int at = f->lane[l] + f->slot[s % f->slots], row = lane.row + slot.row, col = lane.col + slot.col;
        if (load->operand == NUM_OPERAND_A)
          col /= inside;
        else
          row /= inside;
        CHECK_MSG(at == row * f->stride + col, "wmma operand %d m%dn%dk%d element %d lane %d slot %d",
                  load->operand, load->m, load->n, load->k, load->e, l, s);
      }
    }
  }
}

// One element, as a number; 64-bit integers are exact in double here.
static double element(NumElement e, const NumFragment *f, Registers *r, int lane, int slot) {
  if (e == NUM_ELEMENT_F64) return num_f64(r->bits[slot][lane]);
  uint32_t v = lanes(r, slot / f->per_reg)[lane] >> (slot % f->per_reg * f->bits);
  switch (e) {
  case NUM_ELEMENT_F16: return (double)num_cvt_f32_f16((uint16_t)v);
  case NUM_ELEMENT_BF16: return (double)num_cvt_f32_bf16((uint16_t)v);
  case NUM_ELEMENT_TF32:
  case NUM_ELEMENT_F32: return (double)num_f32(v);
  case NUM_ELEMENT_S8: return (int8_t)v;
  case NUM_ELEMENT_U8: return (uint8_t)v;
  case NUM_ELEMENT_S4: return (int8_t)(v << 4) >> 4;
  case NUM_ELEMENT_U4: return v & 15;
  default: return (int32_t)v;
  }
}
static void to_matrix(NumElement e, const NumFragment *f, Registers *r, double *matrix) {
  for (int l = 0; l < 32; l++)
    for (int s = 0; s < f->slots; s++) matrix[f->lane[l] + f->slot[s]] = element(e, f, r, l, s);
}

// All of wmma's shapes with numbers small enough to be exact, d in the registers of c.
TEST(wmma_products) {
  static const struct {
    NumElement a, c;
    int m, n, k;
  } cases[] = {
      {NUM_ELEMENT_F16, NUM_ELEMENT_F32, 16, 16, 16},  {NUM_ELEMENT_F16, NUM_ELEMENT_F16, 8, 32, 16},
      {NUM_ELEMENT_F16, NUM_ELEMENT_F32, 8, 32, 16},   {NUM_ELEMENT_F16, NUM_ELEMENT_F32, 32, 8, 16},
      {NUM_ELEMENT_BF16, NUM_ELEMENT_F32, 16, 16, 16}, {NUM_ELEMENT_BF16, NUM_ELEMENT_F32, 8, 32, 16},
      {NUM_ELEMENT_BF16, NUM_ELEMENT_F32, 32, 8, 16},  {NUM_ELEMENT_TF32, NUM_ELEMENT_F32, 16, 16, 8},
      {NUM_ELEMENT_S8, NUM_ELEMENT_S32, 16, 16, 16},   {NUM_ELEMENT_U8, NUM_ELEMENT_S32, 8, 32, 16},
      {NUM_ELEMENT_S8, NUM_ELEMENT_S32, 32, 8, 16},    {NUM_ELEMENT_S4, NUM_ELEMENT_S32, 8, 8, 32},
      {NUM_ELEMENT_F64, NUM_ELEMENT_F64, 8, 8, 4}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    NumMma op = wmma_op(cases[i].m, cases[i].n, cases[i].k, cases[i].a, cases[i].c);
    NumMmaPlan plan;
    static double left[1024], right[1024], before[256], after[256];
    Registers a, b, c;
    if (!CHECK(sol_num_mma_plan(&op, &plan))) continue;
    fill_registers(&a, op.a, plan.a.regs, 0, 0);
    fill_registers(&b, op.b, plan.b.regs, 0, 1);
    fill_registers(&c, op.c, plan.c.regs, 0, 2);
    if (op.c == NUM_ELEMENT_S32)
      for (int r = 0; r < plan.c.regs; r++)
        for (int l = 0; l < 32; l++) lanes(&c, r)[l] &= 0xffffff;
    to_matrix(op.a, &plan.a, &a, left);
    to_matrix(op.b, &plan.b, &b, right);
    to_matrix(op.c, &plan.c, &c, before);
    run(&plan, &c, &a, &b, &c);
    to_matrix(op.d, &plan.d, &c, after);
    for (int row = 0; row < op.m; row++) {
      for (int col = 0; col < op.n; col++) {
        double want = before[row * op.n + col];
        for (int k = 0; k < op.k; k++) want += left[row * op.k + k] * right[k * op.n + col];
        CHECK_MSG(after[row * op.n + col] == want, "wmma case %d row %d column %d: %g, expected %g", (int)i,
                  row, col, after[row * op.n + col], want);
      }
    }
  }
}

// A mixed wmma: c and d of different types share a layout but not registers.
TEST(mixed_accumulators) {
  NumMma op = wmma_op(16, 16, 16, NUM_ELEMENT_F16, NUM_ELEMENT_F16);
  op.d = NUM_ELEMENT_F32;
  NumMmaPlan plan;
  Registers a = {0}, b = {0}, c, d;
  if (!CHECK(sol_num_mma_plan(&op, &plan))) return;
  CHECK_INT(plan.c.regs, 4);
  CHECK_INT(plan.d.regs, 8);
  fill_registers(&c, op.c, 4, 0, 2);
  run(&plan, &d, &a, &b, &c);
  for (int l = 0; l < 32; l++)
    for (int s = 0; s < 8; s++) CHECK(element(op.d, &plan.d, &d, l, s) == element(op.c, &plan.c, &c, l, s));
}

// m16n8k8 with one product that is not zero: x * y in every sum, plus z.
static uint32_t one_product(NumElement e, NumElement acc, uint32_t x, uint32_t y, uint32_t z) {
  NumMma op = {.m = 16, .n = 8, .k = 8, .a = e, .b = e, .c = acc, .d = acc};
  NumMmaPlan plan;
  Registers a = {0}, b = {0}, c = {0}, d;
  if (!sol_num_mma_plan(&op, &plan)) return 0xdeadbeef;
  for (int l = 0; l < 32; l += 4) lanes(&a, 0)[l] = x, lanes(&a, 1)[l] = x, lanes(&b, 0)[l] = y; // k = 0
  for (int r = 0; r < 4; r++)
    for (int l = 0; l < 32; l++) lanes(&c, r)[l] = z;
  run(&plan, &d, &a, &b, &c);
  for (int l = 1; l < 32; l++) CHECK(lanes(&d, 0)[l] == lanes(&d, 0)[0]);
  return lanes(&d, 0)[0];
}

TEST(special_values) {
  CHECK_INT(one_product(NUM_ELEMENT_F16, NUM_ELEMENT_F32, 0x7c00, 0x3c00, 0), 0x7f800000);
  CHECK_INT(one_product(NUM_ELEMENT_F16, NUM_ELEMENT_F32, 0x7c00, 0x0000, 0), NUM_NAN_F32);
  CHECK_INT(one_product(NUM_ELEMENT_F16, NUM_ELEMENT_F32, 0xfe01, 0x3c00, 0), NUM_NAN_F32);
  CHECK_INT(one_product(NUM_ELEMENT_F16, NUM_ELEMENT_F32, 0x7c00, 0xbc00, 0x7f800000), NUM_NAN_F32);
  CHECK_INT(one_product(NUM_ELEMENT_F16, NUM_ELEMENT_F16, 0x7bff, 0x7bff, 0),
            0x7c007c00); // too large for f16
  CHECK_INT(one_product(NUM_ELEMENT_BF16, NUM_ELEMENT_F32, 0x7f00, 0x4080, 0), 0x7f800000); // and for f32
  CHECK_INT(one_product(NUM_ELEMENT_BF16, NUM_ELEMENT_F32, 0x7f00, 0x3f80, 0xff000000), 0);
  CHECK_INT(one_product(NUM_ELEMENT_BF16, NUM_ELEMENT_F32, 0x0001, 0x3f80, 0), 0x00010000); // a subnormal
  CHECK_INT(one_product(NUM_ELEMENT_BF16, NUM_ELEMENT_F32, 0x0080, 0x0080, 0), 0);          // 2^-252
  CHECK_INT(one_product(NUM_ELEMENT_F16, NUM_ELEMENT_F32, 0x0001, 0x0001, 0), 0x27800000);  // 2^-48
  CHECK_INT(one_product(NUM_ELEMENT_TF32, NUM_ELEMENT_F32, 0x3f801fff, 0x3f800000, 0),
            0x3f800000); // lower bits fall
  // 25 bits below the largest: 2^-25 beside 1 survives alone, but is cut off with f32's 24 bits.
  CHECK_INT(one_product(NUM_ELEMENT_F16, NUM_ELEMENT_F32, 0x3c00, 0x3c00, 0x33000000), 0x3f800000);
  CHECK_INT(one_product(NUM_ELEMENT_F16, NUM_ELEMENT_F32, 0xbc00, 0x3c00, 0x33000000), 0xbf7fffff);
  CHECK_INT(one_product(NUM_ELEMENT_F16, NUM_ELEMENT_F32, 0, 0x3c00, 0x00000001), 0x00000001);
}

TEST(what_does_not_exist) {
  NumMmaPlan plan;
  NumMma ops[] = {{.m = 16,
                   .n = 8,
                   .k = 32,
                   .a = NUM_ELEMENT_F16,
                   .b = NUM_ELEMENT_F16,
                   .c = NUM_ELEMENT_F32,
                   .d = NUM_ELEMENT_F32},
                  {.m = 16,
                   .n = 8,
                   .k = 16,
                   .a = NUM_ELEMENT_F16,
                   .b = NUM_ELEMENT_BF16,
                   .c = NUM_ELEMENT_F32,
                   .d = NUM_ELEMENT_F32},
                  {.m = 16,
                   .n = 8,
                   .k = 16,
                   .a = NUM_ELEMENT_BF16,
                   .b = NUM_ELEMENT_BF16,
                   .c = NUM_ELEMENT_F16,
                   .d = NUM_ELEMENT_F16},
                  {.m = 16,
                   .n = 8,
                   .k = 16,
                   .a = NUM_ELEMENT_F16,
                   .b = NUM_ELEMENT_F16,
                   .c = NUM_ELEMENT_F16,
                   .d = NUM_ELEMENT_F32},
                  {.m = 8,
                   .n = 8,
                   .k = 4,
                   .a = NUM_ELEMENT_F16,
                   .b = NUM_ELEMENT_F16,
                   .c = NUM_ELEMENT_F32,
                   .d = NUM_ELEMENT_F16},
                  {.m = 16,
                   .n = 8,
                   .k = 32,
                   .a = NUM_ELEMENT_S8,
                   .b = NUM_ELEMENT_S8,
                   .c = NUM_ELEMENT_F32,
                   .d = NUM_ELEMENT_F32},
                  {.m = 16,
                   .n = 16,
                   .k = 16,
                   .a = NUM_ELEMENT_F16,
                   .b = NUM_ELEMENT_F16,
                   .c = NUM_ELEMENT_F32,
                   .d = NUM_ELEMENT_F32},
                  {.m = 16,
                   .n = 8,
                   .k = 16,
                   .wmma = true,
                   .a = NUM_ELEMENT_F16,
                   .b = NUM_ELEMENT_F16,
                   .c = NUM_ELEMENT_F32,
                   .d = NUM_ELEMENT_F32},
                  {.m = 16,
                   .n = 8,
                   .k = 8,
                   .a = NUM_ELEMENT_F32,
                   .b = NUM_ELEMENT_F32,
                   .c = NUM_ELEMENT_F32,
                   .d = NUM_ELEMENT_F32},
                  {.m = 0,
                   .n = 0,
                   .k = 0,
                   .a = NUM_ELEMENT_F16,
                   .b = NUM_ELEMENT_F16,
                   .c = NUM_ELEMENT_F32,
                   .d = NUM_ELEMENT_F32}};
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
    CHECK_MSG(!sol_num_mma_plan(&ops[i], &plan), "case %d", (int)i);
}

TEST(matrix_moves) {
  uint16_t from[32][8], to[32][8];
  uint32_t r[4][32], turned[32], *out[4] = {r[0], r[1], r[2], r[3]};
  const uint32_t *in[4] = {r[0], r[1], r[2], r[3]};
  for (int i = 0; i < 256; i++) from[i / 8][i % 8] = (uint16_t)i;
  for (int trans = 0; trans < 2; trans++) {
    for (int count = 1; count <= 4; count *= 2) {
      sol_num_ldmatrix(out, from, count, trans);
      for (int m = 0; m < count; m++) {
        for (int l = 0; l < 32;
             l++) { // thread 0 has the first fragment of the first row (or column), and so on
          int line = l / 4, at = l % 4 * 2;
          uint32_t low = trans ? from[8 * m + at][line] : from[8 * m + line][at];
          uint32_t high = trans ? from[8 * m + at + 1][line] : from[8 * m + line][at + 1];
          CHECK_INT(r[m][l], low | high << 16);
        }
      }
      memset(to, 0xff, sizeof to);
      sol_num_stmatrix(to, in, count, trans);
      CHECK(!memcmp(from, to, (size_t)count * 8 * sizeof from[0]) &&
            (count == 4 || to[8 * count][0] == 0xffff));
    }
  }
  sol_num_ldmatrix(out, from, 1, false);
  sol_num_movmatrix(turned, r[0]);
  sol_num_ldmatrix(out, from, 1, true);
  CHECK(!memcmp(turned, r[0], sizeof turned));
  sol_num_movmatrix(turned, turned); // in place
  sol_num_ldmatrix(out, from, 1, false);
  CHECK(!memcmp(turned, r[0], sizeof turned));
}

CHECK_MAIN
