// Products of tcgen05 of elements of 4, 6 and 8 bits, with scales for blocks of k or without. Every sum is made in double
// precision and rounded once: how Blackwell rounds is not known here.
//
// Elements of 4 and 6 bits: of kind::f8f6f4 and kind::mxf8f6f4 sixteen of them lie side by side at the start of 16 bytes,
// of kind::mxf4 and kind::mxf4nvf4 they follow each other without gaps. Types in the descriptor: 0 e4m3, 1 e5m2, 3 e2m3,
// 4 e3m2, 5 e2m1; of mxf4 and mxf4nvf4 1 e2m1.
//
// Scales are bytes of tensor memory: that of row r (of A, or column of B) and block j of k is in column r / 32 of the
// lanes r % 32 of each quarter, at byte `id` + j. In the descriptor bits 29-30 have A's id, 4-5 B's, 23 the type: 0 e4m3
// without its sign, 1 a power of two (ue8m0).
#include "emu/isa/tcgen05.h"

enum { MOST_K = 64, ROWS = TMEM_LANES, QUARTER = 32 };

static bool is_packed(const EmuInst *i) {
  return i->fn == PTX_FN_KIND_MXF4 || i->fn == PTX_FN_KIND_MXF4NVF4;
}

static bool small_of(const EmuInst *i, uint32_t code, NumSmall *small) {
  static const int types[] = {NUM_E4M3, NUM_E5M2, -1, NUM_E2M3, NUM_E3M2, NUM_E2M1, -1, -1};
  *small = is_packed(i) ? NUM_E2M1 : (NumSmall)types[code];
  return is_packed(i) ? code == 1 : types[code] >= 0;
}

bool narrow_shape(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t d, Shape *s) {
  const Tcgen05 *op = i->more;
  uint32_t sum = d >> 4 & 3, ids = (d >> 29 & 3) | sum;
  if (!small_of(i, d >> 7 & 7, &s->small[0]) || !small_of(i, d >> 10 & 7, &s->small[1]) ||
      (!op->blocks && sum > 1))
    return emu_misuse(x, i, mask, "the instruction descriptor 0x%x has types that are not emulated", d);
  if (s->a_turned || s->b_turned)
    return emu_misuse(x, i, mask, "transposed operands of other than 16 bits are not emulated");
  if (op->a_in_tmem && !is_packed(i) && s->small[0] > NUM_E5M2)
    return emu_misuse(x, i, mask, "elements of 4 and 6 bits in tensor memory are not emulated");
  if (is_packed(i) && d >> 31) return emu_misuse(x, i, mask, "a product of k 96 is not emulated");
  if ((op->blocks == 2 && ids & 1) || (op->blocks == 4 && ids))
    return emu_misuse(x, i, mask, "the instruction descriptor 0x%x: scale ids %u and %u with %u scales a row",
                      d, d >> 29 & 3, sum, op->blocks);
  if (!(d >> 23 & 1) && op->blocks && op->blocks != 4)
    return emu_misuse(x, i, mask,
                      "scales of blocks of 32 are powers of two (bit 23 of the instruction descriptor)");
  s->to_f16 = !op->blocks && sum == 0;
  return true;
}

static uint32_t code_at(const uint8_t *row, uint32_t k, NumSmall small, bool packed) {
  static const uint32_t widths[] = {8, 8, 6, 6, 4}; // by NumSmall
  uint32_t bits = widths[small], bit = packed ? k * 4 : k / 16 * 128 + k % 16 * bits;
  uint32_t two = row[bit / 8] | (uint32_t)(bit / 8 + 1 < K_BYTES ? row[bit / 8 + 1] : 0) << 8;
  return two >> bit % 8 & ((1u << bits) - 1);
}

static uint32_t depth(const EmuInst *i) {
  return is_packed(i) ? MOST_K : K_BYTES;
}

static void decode(const EmuInst *i, const uint8_t *row, NumSmall small, bool negated, float *to) {
  for (uint32_t k = 0; k < depth(i); k++) {
    float v = num_cvt_f32_small(code_at(row, k, small, is_packed(i)), small);
    to[k] = negated ? -v : v;
  }
}

// Scale `id` + j of a row, as the sums in lanes of this quarter take it.
static double scale_of(const EmuTmem *t, uint32_t address, uint32_t row, uint32_t quarter, uint32_t byte,
                       bool power) {
  uint32_t cell = t->cell[(address & 0xffff) + row / QUARTER][quarter * QUARTER + row % QUARTER];
  uint32_t code = cell >> byte * 8 & 255;
  return power ? num_f32((uint32_t)num_cvt_bf16_ue8m0(code) << 16) : num_cvt_f32_small(code & 127, NUM_E4M3);
}

typedef struct Sides { // of one sum
  const float *a, *b;
  const EmuTmem *t;
  uint32_t row, column, quarter;
} Sides;

static double dot(const EmuInst *i, const Product *p, const Sides *s) {
  const Tcgen05 *op = i->more;
  uint32_t parts = op->blocks ? op->blocks : 1, each = depth(i) / parts, d = p->descriptor;
  double sum = 0;
  for (uint32_t j = 0; j < parts; j++) {
    double part = 0;
    for (uint32_t k = j * each; k < (j + 1) * each; k++) part += (double)s->a[k] * s->b[k];
    if (op->blocks)
      part *= scale_of(s->t, p->scales[0], s->row, s->quarter, (d >> 29 & 3) + j, d >> 23 & 1) *
              scale_of(s->t, p->scales[1], s->column, s->quarter, (d >> 4 & 3) + j, d >> 23 & 1);
    sum += part;
  }
  return sum;
}

static void add_to(uint32_t *cell, double sum, bool adds, bool to_f16) {
  if (adds) sum += to_f16 ? num_cvt_f32_f16((uint16_t)*cell) : num_f32(*cell);
  *cell = to_f16 ? num_cvt_f16_f32_rn((float)sum) : num_bits_f32((float)sum);
}

static bool read_rows(EmuCtx *x, const EmuInst *i, uint32_t mask, const Product *p, const Shape *s,
                      const EmuBlock *block, const SmemMatrix *m, float to[][MOST_K]) {
  const EmuTmem *t = NULL;
  Tile tile;
  if (((const Tcgen05 *)i->more)->a_in_tmem && !(t = tmem_columns(x, i, mask, block, p->a_tmem, K_BYTES / 4)))
    return false;
  for (uint32_t row = 0; row < s->rows; row += TILE_ROWS) {
    if (t)
      tcgen05_tmem_tile(t, s, p->a_tmem, row, tile);
    else if (!smem_tile(x, i, m, row, 16, true, tile))
      return false;
    for (uint32_t r = 0; r < TILE_ROWS; r++)
      decode(i, tile[r], s->small[0], p->descriptor >> 13 & 1, to[row + r]);
  }
  return true;
}

static bool has_scales(EmuCtx *x, const EmuInst *i, uint32_t mask, const Product *p, const Shape *s,
                       const EmuBlock *block) {
  uint32_t columns = s->folded ? s->n / 2 : s->n;
  return !((const Tcgen05 *)i->more)->blocks ||
         (tmem_columns(x, i, mask, block, p->scales[0], (s->rows + QUARTER - 1) / QUARTER) &&
          tmem_columns(x, i, mask, block, p->scales[1], (columns + QUARTER - 1) / QUARTER));
}

// The sums of one block's rows by one column.
static void column_sums(const EmuInst *i, const Product *p, const Shape *s, EmuTmem *t, const uint32_t *off,
                        float a[][MOST_K], const float *b, uint32_t column) {
  bool right = s->folded && column >= s->n / 2;
  if (right) column -= s->n / 2;
  for (uint32_t row = 0; row < s->rows; row++) {
    uint32_t lane = tcgen05_lane(s, row) + (right ? TMEM_LANES / 2 : 0);
    Sides sides = {.a = a[row], .b = b, .t = t, .row = row, .column = column, .quarter = lane / QUARTER};
    if (!(off[lane / 32] >> lane % 32 & 1))
      add_to(&t->cell[(p->d & 0xffff) + column][lane], dot(i, p, &sides), p->adds, s->to_f16);
  }
}

bool narrow_product(EmuCtx *x, const EmuInst *i, uint32_t mask, const Product *p, const Shape *s,
                    EmuBlock *const of[], EmuTmem *const t[], const SmemMatrix a[], const SmemMatrix b[]) {
  float left[ROWS][MOST_K], right[TILE_ROWS][MOST_K];
  uint32_t each = s->n / s->blocks;
  for (uint32_t k = 0; k < s->blocks; k++) {
    if (!has_scales(x, i, mask, p, s, of[k]) || !read_rows(x, i, mask, p, s, of[k], &a[k], left))
      return false;
    for (uint32_t column = 0; column < s->n; column++) {
      uint32_t in_tile = column % each % TILE_ROWS;
      Tile tile;
      if (in_tile == 0) {
        if (!smem_tile(x, i, &b[column / each], column % each, 16, k == 0, tile)) return false;
        for (uint32_t r = 0; r < TILE_ROWS; r++)
          decode(i, tile[r], s->small[1], p->descriptor >> 14 & 1, right[r]);
      }
      column_sums(i, p, s, t[k], p->off[k], left, right[in_tile], column);
    }
  }
  return true;
}
