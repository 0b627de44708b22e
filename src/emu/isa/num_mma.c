#include "emu/isa/num_mma.h"

#include "base/port.h"
#include "emu/isa/num_cvt.h"

enum { MAX_A = 1024, MAX_B = 512, MAX_C = 256 }; // elements of a matrix

// The elements at one position of a register, all lanes.
static void decode(NumElement e, const uint32_t *reg, int shift, float out[32]) {
  switch (e) {
  case NUM_ELEMENT_F16:
    for (int l = 0; l < 32; l++) out[l] = num_cvt_f32_f16((uint16_t)(reg[l] >> shift));
    break;
  case NUM_ELEMENT_BF16:
    for (int l = 0; l < 32; l++) out[l] = num_cvt_f32_bf16((uint16_t)(reg[l] >> shift));
    break;
  case NUM_ELEMENT_E4M3:
    for (int l = 0; l < 32; l++) out[l] = num_cvt_f32_small(reg[l] >> shift & 255, NUM_E4M3);
    break;
  case NUM_ELEMENT_E5M2:
    for (int l = 0; l < 32; l++) out[l] = num_cvt_f32_small(reg[l] >> shift & 255, NUM_E5M2);
    break;
  case NUM_ELEMENT_TF32:
    for (int l = 0; l < 32; l++) out[l] = num_f32(reg[l] & 0xffffe000);
    break;
  default:
    for (int l = 0; l < 32; l++) out[l] = num_f32(reg[l]);
  }
}

static void gather_floats(const NumFragment *f, NumElement e, const void *const reg[], float *matrix) {
  for (int s = 0; s < f->slots; s++) {
    float lanes[32], *to = matrix + f->slot[s];
    decode(e, reg[s / f->per_reg], s % f->per_reg * f->bits, lanes);
    for (int l = 0; l < 32; l++) to[f->lane[l]] = lanes[l];
  }
}

static void gather_doubles(const NumFragment *f, const void *const reg[], double *matrix) {
  for (int s = 0; s < f->slots; s++)
    for (int l = 0; l < 32; l++) matrix[f->slot[s] + f->lane[l]] = ((const double *)reg[s])[l];
}

static void gather_ints(const NumFragment *f, bool is_signed, const void *const reg[], uint32_t *matrix) {
  for (int s = 0; s < f->slots; s++) {
    const uint32_t *from = reg[s / f->per_reg];
    uint32_t bit = (uint32_t)(s % f->per_reg * f->bits), bits = (uint32_t)f->bits;
    for (int l = 0; l < 32; l++) matrix[f->slot[s] + f->lane[l]] = num_part(from[l], bit, bits, is_signed);
  }
}

static void scatter_f32(const NumFragment *f, void *const reg[], const float *matrix) {
  for (int s = 0; s < f->slots; s++)
    for (int l = 0; l < 32; l++)
      ((uint32_t *)reg[s])[l] = num_bits_f32(num_canon_f32(matrix[f->slot[s] + f->lane[l]]));
}

static void scatter_f16(const NumFragment *f, void *const reg[], const double *matrix) {
  for (int s = 0; s < f->slots; s += 2) {
    for (int l = 0; l < 32; l++) {
      const double *pair = matrix + f->lane[l];
      uint32_t low = num_canon_f16(num_cvt_f16_f64(pair[f->slot[s]], NUM_RN));
      ((uint32_t *)reg[s / 2])[l] =
          low | (uint32_t)num_canon_f16(num_cvt_f16_f64(pair[f->slot[s + 1]], NUM_RN)) << 16;
    }
  }
}

// Exponents of a matrix's elements, those below the normal range at its end, zeros far away.
typedef struct Exponents {
  bool finite, small; // all elements are finite; all but zeros are within 2^-50 and 2^50
  int32_t of[MAX_A];
} Exponents;

static void find_exponents(const float *matrix, int count, int32_t lowest, Exponents *out) {
  int32_t largest = 0;
  for (int i = 0; i < count; i++) {
    int32_t mag = (int32_t)(num_bits_f32(matrix[i]) & 0x7fffffff), e = (mag >> 23) - 127;
    e = e < lowest ? lowest : e;
    int32_t size = e < 0 ? -e : e;
    largest = mag && size > largest ? size : largest;
    out->of[i] = mag ? e : -8192;
  }
  out->finite = largest < 128;
  out->small = largest <= 50;
}

// The largest exponent of each of eight sums, a product's being the sum of its factors' (before any carry).
static void find_top(int32_t top[8], const int32_t *ea, const int32_t *eb, int k, int stride) {
  for (int i = 0; i < k; i++) {
    for (int x = 0; x < 8; x++) {
      int32_t e = ea[i] + eb[i * stride + x];
      top[x] = e > top[x] ? e : top[x];
    }
  }
}

// Eight sums as an H200 makes them: each term, c included, is cut off 25 bits below the largest exponent, and
// the exact sum of those is cut off to f32. In float and whole numbers, while exponents are small; sums go
// into two halves so as not to overflow.
static void sum_small(double sum[8], const int32_t top[8], const float *c, const float *a, const float *b,
                      int k, int stride) {
  int32_t even[8], odd[8] = {0};
  float scale[8];
  for (int x = 0; x < 8; x++) {
    scale[x] = num_f32((uint32_t)(25 - top[x] + 127) << 23);
    even[x] = (int32_t)(c[x] * scale[x]);
  }
  for (int i = 0; i < k; i += 2, a += 2, b += 2 * stride) {
    for (int x = 0; x < 8; x++) even[x] += (int32_t)(a[0] * b[x] * scale[x]);
    for (int x = 0; x < 8; x++) odd[x] += (int32_t)(a[1] * b[stride + x] * scale[x]);
  }
  for (int x = 0; x < 8; x++) sum[x] = (double)even[x] + odd[x];
}
// The same for any exponents.
static void sum_any(double sum[8], const int32_t top[8], const float *c, const float *a, const float *b,
                    int k, int stride) {
  for (int x = 0; x < 8; x++) {
    double scale = num_f64((uint64_t)(25 - top[x] + 1023) << 52);
    sum[x] = (double)(int32_t)(c[x] * scale);
    for (int i = 0; i < k; i++) sum[x] += (double)(int32_t)((double)a[i] * b[i * stride + x] * scale);
  }
}

// False, and nothing done, where an element is infinite or NaN.
static bool multiply_truncating(const NumMma *op, float *c, const float *a, const float *b) {
  Exponents ea, eb, ec;
  int32_t lowest = op->a == NUM_ELEMENT_F16 ? -14 : -126;
  find_exponents(a, op->m * op->k, lowest, &ea);
  find_exponents(b, op->k * op->n, lowest, &eb);
  find_exponents(c, op->m * op->n, -126, &ec);
  if (!ea.finite || !eb.finite || !ec.finite) return false;
  for (int i = 0; i < op->m; i++) {
    for (int j = 0; j < op->n; j += 8) {
      float *to = c + i * op->n + j;
      int32_t top[8];
      double sum[8];
      memcpy(top, ec.of + (to - c), sizeof top);
      find_top(top, ea.of + i * op->k, eb.of + j, op->k, op->n);
      bool small = ea.small && eb.small && !op->sparse;                   // halves have too many terms
      for (int x = 0; x < 8; x++) top[x] = top[x] < -256 ? -256 : top[x]; // where all of them are zero
      for (int x = 0; x < 8; x++) small &= top[x] >= -100;
      if (small)
        sum_small(sum, top, to, a + i * op->k, b + j, op->k, op->n);
      else
        sum_any(sum, top, to, a + i * op->k, b + j, op->k, op->n);
      for (int x = 0; x < 8; x++) { // what float cannot hold becomes infinite
        double r = sum[x] * num_f64((uint64_t)(top[x] - 25 + 1023) << 52);
        to[x] = r < 0x1p128 && r > -0x1p128 ? num_round_f32(r, NUM_RZ) : (float)r;
      }
    }
  }
  return true;
}

// c + a * b in double. Where there are four products, rows 8q to 8q+7 meet columns 8q to 8q+7 of b.
static void multiply_floats(const NumMmaPlan *plan, double *out, const float *c, const float *a,
                            const float *b) {
  int rows = plan->op.m * (plan->four ? 4 : 1), n = plan->op.n, stride = plan->b.stride;
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < n; j += 8) {
      const float *left = a + i * plan->op.k, *right = b + j + (plan->four ? i / 8 * 8 : 0);
      double sum[8];
      for (int x = 0; x < 8; x++) sum[x] = (double)c[i * n + j + x];
      for (int k = 0; k < plan->op.k; k++)
        for (int x = 0; x < 8; x++) sum[x] += (double)left[k] * right[k * stride + x];
      memcpy(out + i * n + j, sum, sizeof sum);
    }
  }
}

static void multiply_doubles(const NumMma *op, double *c, const double *a, const double *b) {
  for (int i = 0; i < op->m; i++)
    for (int j = 0; j < op->n; j++)
      for (int k = 0; k < op->k; k++)
        c[i * op->n + j] = num_fma_f64(a[i * op->k + k], b[k * op->n + j], c[i * op->n + j], op->rnd);
}

static uint32_t integer_sum(const NumMma *op, int words, const uint32_t *row, const uint32_t *col,
                            uint32_t c) {
  uint32_t sum = 0; // of at most 64 products of 17 bits, or 256 bits: never overflows
  for (int k = 0; k < words; k++) {
    uint32_t x = row[k], y = col[k * op->n];
    if (op->a != NUM_ELEMENT_B1)
      sum += x * y;
    else
      sum += num_popc_u32(op->bit_and ? x & y : x ^ y);
  }
  return op->satfinite ? (uint32_t)num_add_sat_s32((int32_t)c, (int32_t)sum) : c + sum;
}

static void run_integers(const NumMmaPlan *plan, void *const d[], const void *const a[],
                         const void *const b[], const void *const c[]) {
  uint32_t left[MAX_A], right[MAX_B], sum[MAX_C];
  const NumMma *op = &plan->op;
  int words = op->a == NUM_ELEMENT_B1 ? op->k / 32 : op->k;
  gather_ints(&plan->a, op->a == NUM_ELEMENT_S8 || op->a == NUM_ELEMENT_S4, a, left);
  gather_ints(&plan->b, op->b == NUM_ELEMENT_S8 || op->b == NUM_ELEMENT_S4, b, right);
  gather_ints(&plan->c, false, c, sum);
  for (int i = 0; i < op->m; i++)
    for (int j = 0; j < op->n; j++)
      sum[i * op->n + j] = integer_sum(op, words, left + i * words, right + j, sum[i * op->n + j]);
  for (int s = 0; s < plan->d.slots; s++)
    for (int l = 0; l < 32; l++) ((uint32_t *)d[s])[l] = sum[plan->d.slot[s] + plan->d.lane[l]];
}

static void run_doubles(const NumMmaPlan *plan, void *const d[], const void *const a[], const void *const b[],
                        const void *const c[]) {
  double left[MAX_C], right[MAX_C], sum[MAX_C];
  gather_doubles(&plan->a, a, left);
  gather_doubles(&plan->b, b, right);
  gather_doubles(&plan->c, c, sum);
  multiply_doubles(&plan->op, sum, left, right);
  for (int s = 0; s < plan->d.slots; s++)
    for (int l = 0; l < 32; l++) ((double *)d[s])[l] = sum[plan->d.slot[s] + plan->d.lane[l]];
}

static void run_floats(const NumMmaPlan *plan, void *const d[], const void *const a[], const void *const b[],
                       const void *const c[]) {
  const NumMma *op = &plan->op;
  float left[MAX_A], right[MAX_B], sum[MAX_C];
  double wide[MAX_C];
  gather_floats(&plan->a, op->a, a, left);
  gather_floats(&plan->b, op->b, b, right);
  gather_floats(&plan->c, op->c, c, sum);
  bool f32 = op->d == NUM_ELEMENT_F32, truncates = f32 && op->a <= NUM_ELEMENT_TF32 && !plan->four;
  if (!truncates || !multiply_truncating(op, sum, left, right)) {
    multiply_floats(plan, wide, sum, left, right);
    if (f32)
      for (int i = 0; i < MAX_C && i < plan->d.slots * 32; i++) sum[i] = (float)wide[i];
  }
  if (f32)
    scatter_f32(&plan->d, d, sum);
  else
    scatter_f16(&plan->d, d, wide);
}

void sol_num_mma(const NumMmaPlan *plan, void *const d[], const void *const a[], const void *const b[],
                 const void *const c[]) {
  if (plan->op.c == NUM_ELEMENT_S32)
    run_integers(plan, d, a, b, c);
  else if (plan->op.c == NUM_ELEMENT_F64)
    run_doubles(plan, d, a, b, c);
  else
    run_floats(plan, d, a, b, c);
}

// Lane l of a group of four has elements 2t and 2t+1 of row l / 4; transposed, of column l / 4.
void sol_num_ldmatrix(uint32_t *const r[], uint16_t rows[][8], int count, bool trans) {
  for (int i = 0; i < count; i++) {
    for (int l = 0; l < 32; l++) {
      int group = l >> 2, pair = (l & 3) * 2;
      uint16_t low = trans ? rows[8 * i + pair][group] : rows[8 * i + group][pair];
      uint16_t high = trans ? rows[8 * i + pair + 1][group] : rows[8 * i + group][pair + 1];
      r[i][l] = low | (uint32_t)high << 16;
    }
  }
}

void sol_num_stmatrix(uint16_t rows[][8], const uint32_t *const r[], int count, bool trans) {
  for (int i = 0; i < count; i++) {
    for (int l = 0; l < 32; l++) {
      int group = l >> 2, pair = (l & 3) * 2;
      for (int e = 0; e < 2; e++) {
        uint16_t *to = trans ? &rows[8 * i + pair + e][group] : &rows[8 * i + group][pair + e];
        *to = (uint16_t)(r[i][l] >> 16 * e);
      }
    }
  }
}

void sol_num_movmatrix(uint32_t d[32], const uint32_t a[32]) {
  uint16_t rows[8][8];
  sol_num_stmatrix(rows, &a, 1, false);
  sol_num_ldmatrix(&d, rows, 1, true);
}
