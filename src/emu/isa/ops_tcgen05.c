// tcgen05: products whose sums are in tensor memory. One thread issues them; they, copies to tensor memory and arrivals
// at mbarriers complete in the order in which a thread issued them. A product is so many mma of m16n8: the arithmetic is
// num_mma.h's, measured on an H200; Blackwell's rounding is not known here.
//
// Of a descriptor of shared memory the swizzle is in bits 61-63 (0 none, 2 of 128, 4 of 64, 6 of 32 bytes); the rest is
// wgmma's (smem_matrix.h). The instruction descriptor says the rest: bits 4-5 the type of D (0 f16, 1 f32, 2 s32), 7-9
// and 10-12 those of A and B, 3 saturate, 13-14 negate, 15-16 transpose, 17-22 N / 8, 24-28 M / 16.
//
// Of cta_group::2 two blocks of a cluster, whose ranks differ in the lowest bit, make one product: each has half of A's and
// of D's rows and half of B's columns, at the same places of its own memory.
//
// Products of elements of 4 and 6 bits, and those with scales for blocks of k, are in tcgen05_narrow.c.
#include "emu/core/async.h"
#include "emu/core/lower.h"
#include "emu/isa/bulk.h"
#include "emu/isa/tcgen05.h"

enum { A_REGS = 4, B_REGS = 2, ROW_TILES = TMEM_LANES / 16, COPY_ROW_PIECES = 2 };

// ---- blocks ----

// The blocks that carry out an instruction: the running one, or the two of its pair, the even one first. 0: a finding was reported.
static uint32_t blocks_of(EmuCtx *x, const EmuInst *i, uint32_t mask, bool pair, EmuBlock *of[PAIR]) {
  const EmuUnit *u = x->block->unit;
  of[0] = x->block;
  if (!pair) return 1;
  if (u->count % PAIR) {
    emu_misuse(x, i, mask, "cta_group::2 in a cluster of %u blocks: they must be pairs", u->count);
    return 0;
  }
  for (uint32_t b = 0; b < PAIR; b++) of[b] = u->blocks[x->block->rank / PAIR * PAIR + b];
  return PAIR;
}

// ---- descriptors ----

static bool matrix_of(EmuCtx *x, const EmuInst *i, uint32_t mask, uint64_t descriptor, bool turned,
                      const EmuBlock *block, SmemMatrix *m) {
  static const uint8_t swizzles[8] = {0, 9, 1, 9, 2, 9, 3, 9}; // wgmma's code; 9: none of these
  uint8_t swizzle = swizzles[descriptor >> 61];
  if (swizzle == 9 || descriptor >> 52 & 1)
    return emu_misuse(x, i, mask, "a descriptor with swizzle mode %u%s is not emulated",
                      (unsigned)(descriptor >> 61),
                      descriptor >> 52 & 1 ? " and an absolute leading offset" : "");
  *m = smem_matrix((descriptor & ~(UINT64_C(7) << 61)) | (uint64_t)swizzle << 62, turned);
  if (block != x->block) m->block = (uint32_t)bulk_in_rank(0, block->rank);
  return true;
}

// -1: none that is emulated.
static int element_of(int kind, uint32_t code) {
  switch (kind) {
  case PTX_FN_KIND_F16: return code == 0 ? NUM_ELEMENT_F16 : code == 1 ? NUM_ELEMENT_BF16 : -1;
  case PTX_FN_KIND_TF32: return code == 2 ? NUM_ELEMENT_TF32 : -1;
  case PTX_FN_KIND_F8F6F4: return code == 0 ? NUM_ELEMENT_E4M3 : code == 1 ? NUM_ELEMENT_E5M2 : -1;
  default: return code == 0 ? NUM_ELEMENT_U8 : code == 1 ? NUM_ELEMENT_S8 : -1;
  }
}

static int sum_of(uint32_t code) {
  return code == 0 ? NUM_ELEMENT_F16 : code == 1 ? NUM_ELEMENT_F32 : code == 2 ? NUM_ELEMENT_S32 : -1;
}

static uint32_t sign_bits(int element) {
  return element == NUM_ELEMENT_TF32 ? 0x80000000 : element <= NUM_ELEMENT_BF16 ? 0x80008000 : 0x80808080;
}

static bool has_shape(const Shape *s, bool scaled) {
  if (!s->n || s->n > 256) return false;
  if (s->blocks == PAIR) return (s->m == 128 || s->m == 256) && s->n % (scaled ? 16 : 32) == 0;
  return s->m == 64 ? s->n % 8 == 0 && !scaled : s->m == 128 && s->n % (scaled ? 8 : 16) == 0;
}

// Types, and what the arithmetic needs of them.
static bool plan_of(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t d, Shape *s) {
  int a = element_of(i->fn, d >> 7 & 7), b = element_of(i->fn, d >> 10 & 7), sum = sum_of(d >> 4 & 3);
  bool ints = i->fn == PTX_FN_KIND_I8, words = a == NUM_ELEMENT_F16 || a == NUM_ELEMENT_BF16;
  if (a < 0 || b < 0 || sum < 0 || ints != (sum == NUM_ELEMENT_S32))
    return emu_misuse(x, i, mask, "the instruction descriptor 0x%x has types that are not emulated", d);
  if ((s->a_turned || s->b_turned) && !words)
    return emu_misuse(x, i, mask, "transposed operands of other than 16 bits are not emulated");
  NumMma num = {
      .m = 16, .n = 8, .a = (NumElement)a, .b = (NumElement)b, .c = (NumElement)sum, .d = (NumElement)sum};
  num.k = words ? K_BYTES / 2 : a == NUM_ELEMENT_TF32 ? K_BYTES / 4 : K_BYTES;
  num.satfinite = ints && d & 8;
  if (!sol_num_mma_plan(&num, &s->num))
    return emu_misuse(x, i, mask, "the instruction descriptor 0x%x has types that do not go together", d);
  if (!ints && d >> 13 & 1) s->a_sign = sign_bits(a);
  if (!ints && d >> 14 & 1) s->b_sign = sign_bits(b);
  return true;
}

static bool shape_of(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t d, uint32_t blocks, Shape *s) {
  bool scaled = ((const Tcgen05 *)i->more)->blocks != 0;
  *s = (Shape){
      .m = (d >> 24 & 31) * 16, .n = (d >> 17 & 63) * 8, .a_turned = d >> 15 & 1, .b_turned = d >> 16 & 1};
  s->blocks = blocks, s->rows = s->m / blocks, s->folded = blocks == PAIR && s->rows == 64;
  s->narrow = scaled || (i->fn == PTX_FN_KIND_F8F6F4 && ((d >> 7 & 7) > 1 || (d >> 10 & 7) > 1));
  if (d & 4) return emu_misuse(x, i, mask, "a sparse product is not emulated");
  if (!(s->narrow ? narrow_shape(x, i, mask, d, s) : plan_of(x, i, mask, d, s))) return false;
  if (!has_shape(s, scaled))
    return emu_misuse(x, i, mask, "the instruction descriptor 0x%x: M is %u and N %u", d, s->m, s->n);
  return true;
}

// ---- products ----

void tcgen05_tmem_tile(const EmuTmem *t, const Shape *s, uint32_t address, uint32_t row, Tile tile) {
  for (uint32_t r = 0; r < TILE_ROWS; r++)
    for (uint32_t k = 0; k < K_BYTES / 4; k++)
      memcpy(tile[r] + k * 4, &t->cell[(address & 0xffff) + k][tcgen05_lane(s, row + r)], 4);
}

typedef uint32_t RowTile[A_REGS][EMU_LANES];

static bool read_a(EmuCtx *x, const EmuInst *i, uint32_t mask, const Product *p, const Shape *s,
                   const EmuBlock *block, const SmemMatrix *m, RowTile to[]) {
  const Tcgen05 *op = i->more;
  uint16_t at[A_REGS][EMU_LANES];
  const EmuTmem *t = op->a_in_tmem ? tmem_columns(x, i, mask, block, p->a_tmem, K_BYTES / 4) : NULL;
  if (op->a_in_tmem && !t) return false;
  tile_places(&s->num.a, A_REGS, false, at);
  for (uint32_t tile = 0; tile < s->rows / 16; tile++) {
    Tile two[2];
    uint32_t *regs[A_REGS];
    for (uint32_t half = 0; half < 2; half++) {
      uint32_t row = tile * 16 + half * TILE_ROWS;
      if (t)
        tcgen05_tmem_tile(t, s, p->a_tmem, row, two[half]);
      else if (!smem_tile(x, i, m, row, 16, true, two[half]))
        return false;
    }
    for (int r = 0; r < A_REGS; r++) regs[r] = to[tile][r];
    tile_registers(regs, A_REGS, (const uint16_t(*)[EMU_LANES])at, two[0][0], s->a_sign);
  }
  return true;
}

// The cells of tensor memory of the sums that a thread's registers hold of 16 rows and 8 columns.
static uint32_t *cell_of(EmuTmem *t, const Shape *s, uint32_t d, uint32_t row, uint32_t column, int l,
                         int slot) {
  int place = s->num.d.lane[l] + s->num.d.slot[slot];
  uint32_t at = (uint32_t)place, stride = (uint32_t)s->num.d.stride, half = s->n / 2;
  bool right = s->folded && column >= half;
  return &t->cell[(d & 0xffff) + column - (right ? half : 0) + at % stride]
                 [tcgen05_lane(s, row + at / stride) + (right ? TMEM_LANES / 2 : 0)];
}

// off: NULL, the sums are read, or they are written but for these lanes.
static void sums(EmuTmem *t, const Shape *s, const Product *p, uint32_t row, uint32_t column,
                 uint32_t regs[4][EMU_LANES], const uint32_t *off) {
  uint32_t bits = (uint32_t)s->num.d.bits, part = bits == 32 ? UINT32_MAX : 0xffff;
  int each = s->num.d.per_reg;
  for (int r = 0; r < s->num.d.regs; r++)
    for (int l = 0; l < EMU_LANES; l++) {
      uint32_t v = 0;
      for (int e = 0; e < each; e++) {
        uint32_t *cell = cell_of(t, s, p->d, row, column, l, r * each + e), shift = (uint32_t)e * bits;
        uint32_t lane = (uint32_t)(cell - t->cell[0]) % TMEM_LANES;
        v |= (*cell & part) << shift;
        if (off && !(off[lane / 32] >> lane % 32 & 1)) *cell = regs[r][l] >> shift & part;
      }
      if (!off) regs[r][l] = v;
    }
}

static void multiply(EmuTmem *t, const Shape *s, const Product *p, const uint32_t *off, uint32_t row,
                     uint32_t column, RowTile a, uint32_t b[B_REGS][EMU_LANES]) {
  uint32_t was[4][EMU_LANES] = {{0}}, is[4][EMU_LANES];
  const void *left[A_REGS], *right[B_REGS], *c[4];
  void *d[4];
  for (int r = 0; r < A_REGS; r++) left[r] = a[r];
  for (int r = 0; r < B_REGS; r++) right[r] = b[r];
  for (int r = 0; r < 4; r++) c[r] = was[r], d[r] = is[r];
  if (p->adds) sums(t, s, p, row, column, was, NULL);
  sol_num_mma(&s->num, d, left, right, c);
  sums(t, s, p, row, column, is, off);
}

// Columns of B from `column` on, of the block that has them.
static bool read_b(EmuCtx *x, const EmuInst *i, const Shape *s, const SmemMatrix m[], uint32_t column,
                   uint32_t *const regs[]) {
  uint16_t at[B_REGS][EMU_LANES];
  uint32_t each = s->n / s->blocks;
  Tile tile;
  if (!smem_tile(x, i, &m[column / each], column % each, 16, true, tile)) return false;
  tile_places(&s->num.b, B_REGS, true, at);
  tile_registers(regs, B_REGS, (const uint16_t(*)[EMU_LANES])at, tile[0], s->b_sign);
  return true;
}

static void run_product(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what) {
  const Product *p = what;
  const Tcgen05 *op = i->more;
  Shape s;
  SmemMatrix m[PAIR], left[PAIR] = {{0}};
  RowTile a[PAIR][ROW_TILES];
  EmuBlock *of[PAIR];
  EmuTmem *t[PAIR];
  uint32_t blocks = blocks_of(x, i, mask, op->pair, of);
  if (!blocks || !shape_of(x, i, mask, p->descriptor, blocks, &s)) return;
  if (s.folded && op->a_in_tmem) {
    emu_misuse(x, i, mask, "a product of two blocks of 128 rows with A in tensor memory is not emulated");
    return;
  }
  for (uint32_t b = 0; b < blocks; b++) {
    t[b] = tmem_columns(x, i, mask, of[b], p->d, s.folded ? s.n / 2 : s.n);
    if (!t[b] || !matrix_of(x, i, mask, p->b, s.b_turned, of[b], &m[b])) return;
    if (!op->a_in_tmem && !matrix_of(x, i, mask, p->a, s.a_turned, of[b], &left[b])) return;
    if (!s.narrow && !read_a(x, i, mask, p, &s, of[b], &left[b], a[b])) return;
  }
  if (s.narrow && !narrow_product(x, i, mask, p, &s, of, t, left, m)) return;
  for (uint32_t column = 0; column < s.n && !s.narrow; column += 8) {
    uint32_t b[B_REGS][EMU_LANES], *regs[B_REGS] = {b[0], b[1]};
    if (!read_b(x, i, &s, m, column, regs)) return;
    for (uint32_t row = 0; row < s.m; row += 16) {
      uint32_t k = row / s.rows, own = row % s.rows;
      multiply(t[k], &s, p, p->off[k], own, column, a[k][own / 16], b);
    }
  }
  x->counts[i->index].turns += s.m / 16 * (s.n / 8);
  emu_worker(x)->changes++;
  emu_spend(x, (uint64_t)s.n * s.m * 64);
}

static void product(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Tcgen05 *op = i->more;
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    Product p = {.d = (uint32_t)emu_lane_address(x, &op->d, l),
                 .b = EMU_IN(uint64_t, i->b)[l],
                 .descriptor = EMU_IN(uint32_t, i->c)[l],
                 .adds = emu_pred(x, i->e) >> l & 1};
    for (int k = 0; k < 2 && op->blocks; k++) p.scales[k] = (uint32_t)emu_lane_address(x, &op->scales[k], l);
    if (op->a_in_tmem)
      p.a_tmem = (uint32_t)emu_lane_address(x, &op->a, l);
    else
      p.a = EMU_IN(uint64_t, i->a)[l];
    for (int k = 0; op->masks && k < (op->pair ? PAIR : 1) * LANE_WORDS; k++)
      p.off[k / LANE_WORDS][k % LANE_WORDS] = EMU_IN(uint32_t, op->off[k])[l];
    emu_async(x, i, EMU_ASYNC_TCGEN05, 1u << l, 0, NULL, run_product, &p, sizeof p);
  }
}

// ---- copies from shared memory ----

typedef struct Copy {
  uint32_t rows, pieces; // pieces of 16 bytes in a row
  uint32_t quarter;      // to which further quarters of the lanes the same rows go: 0, or how far apart
  uint32_t copies;
  bool pair; // each of two blocks copies, of its own memory
  EmuAddress to;
} Copy;

typedef struct CopyWhat {
  uint64_t from;
  uint32_t to;
} CopyWhat;

// 64 rows that go to two quarters each: 02_13 repeats them 64 lanes on, 01_23 has each 32 of them twice.
static uint32_t copy_lane(const Copy *c, uint32_t row, uint32_t copy) {
  return c->rows == 64 && c->quarter == 32 ? row / 32 * 64 + row % 32 + copy * 32 : row + copy * c->quarter;
}

static bool copy_in_block(EmuCtx *x, const EmuInst *i, uint32_t mask, const CopyWhat *w,
                          const EmuBlock *block) {
  const Copy *c = i->more;
  SmemMatrix m;
  EmuTmem *t = tmem_columns(x, i, mask, block, w->to, c->pieces * 4);
  if (!t || !matrix_of(x, i, mask, w->from, false, block, &m)) return false;
  for (uint32_t row = 0; row < c->rows; row++)
    for (uint32_t piece = 0; piece < c->pieces; piece++) {
      const uint8_t *from = smem_piece_at(x, i, m.block + smem_piece(&m, row / 8 * 8, piece * 8 + row % 8));
      if (!from) return false;
      for (uint32_t copy = 0; copy < c->copies; copy++)
        for (uint32_t k = 0; k < 4; k++)
          memcpy(&t->cell[(w->to & 0xffff) + piece * 4 + k]
                         [((w->to >> 16) + copy_lane(c, row, copy)) % TMEM_LANES],
                 from + k * 4, 4);
    }
  x->counts[i->index].bytes += (uint64_t)c->rows * c->pieces * 16;
  emu_spend(x, (uint64_t)c->rows * c->pieces * 16);
  return true;
}

static void run_copy(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what) {
  const Copy *c = i->more;
  EmuBlock *of[PAIR];
  uint32_t blocks = blocks_of(x, i, mask, c->pair, of);
  for (uint32_t b = 0; b < blocks && copy_in_block(x, i, mask, what, of[b]); b++) {
  }
}

static void copy(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const Copy *c = i->more;
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    CopyWhat w = {.from = EMU_IN(uint64_t, i->b)[l], .to = (uint32_t)emu_lane_address(x, &c->to, l)};
    emu_async(x, i, EMU_ASYNC_TCGEN05, 1u << l, 0, NULL, run_copy, &w, sizeof w);
  }
}

// ---- arrivals ----

static void run_arrival(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what) {
  uint8_t *barrier;
  memcpy(&barrier, what, sizeof barrier);
  if (emu_mbarrier_arrive(x, i, emu_first(mask), barrier)) emu_shadow_barrier(x->block);
}

static void arrive_at(EmuCtx *x, const EmuInst *i, int l, uint64_t address) {
  uint8_t *barrier = emu_range(x, i, l, address, PTX_SPACE_SHARED_CLUSTER, 8, 8, true);
  if (barrier) emu_async(x, i, EMU_ASYNC_TCGEN05, 1u << l, 0, barrier, run_arrival, &barrier, sizeof barrier);
}

static void commit(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const EmuAddress at = {.base = i->a, .abytes = i->abytes, .offset = i->offset};
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    uint64_t address = bulk_shared_address(emu_lane_address(x, &at, l));
    if (!i->vec) arrive_at(x, i, l, address);
    for (uint32_t ranks = i->vec ? EMU_IN(uint16_t, i->b)[l] : 0; ranks; ranks &= ranks - 1)
      arrive_at(x, i, l, bulk_in_rank(address, (uint32_t)emu_first(ranks)));
  }
}

static void nothing(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  (void)x, (void)i, (void)mask;
}

// ---- lowering ----

// How many blocks of k have a scale each, in a product with scales.
static uint8_t scale_blocks(const PtxCode *code) {
  switch (code->scale) {
  case PTX_SCALE_VEC_4X:
  case PTX_SCALE_BLOCK16: return 4;
  case PTX_SCALE_VEC_1X: return 1;
  case PTX_SCALE_VEC_2X: return 2;
  default: return code->fn == PTX_FN_KIND_MXF8F6F4 ? 1 : 2;
  }
}

static bool lower_product(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxOperand *o = in->operands;
  bool scaled = in->code->op == PTX_OP_TCGEN05_MMA_SCALED;
  Tcgen05 *op = lower_alloc(l, sizeof *op);
  if (!op) return false;
  *op = (Tcgen05){.a_in_tmem = o[1].kind == PTX_ARG_MEM,
                  .masks = !scaled && o[4].kind == PTX_ARG_VEC,
                  .pair = PTX_HAS(in->code, CTA_GROUP_2),
                  .blocks = scaled ? scale_blocks(in->code) : 0};
  const EmuLoc *off = op->masks ? lower_list(l, &o[4]) : NULL;
  if (off) memcpy(op->off, off, o[4].count * sizeof *off);
  if (!op->a_in_tmem) out->a = lower_read(l, &o[1]);
  out->b = lower_read(l, &o[2]);
  out->c = lower_read(l, &o[3]);
  out->e = lower_read(l, &o[scaled ? 6 : 5]);
  out->fn = in->code->fn;
  out->kind = SOL_EMU_KIND_SHARED_LOAD;
  out->more = op;
  out->run = product;
  for (int k = 0; k < 2 && scaled; k++)
    if (!lower_address_operand(l, &o[4 + k], &op->scales[k])) return false;
  return lower_address_operand(l, &o[0], &op->d) &&
         (!op->a_in_tmem || lower_address_operand(l, &o[1], &op->a));
}

static bool lower_copy(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxCode *code = in->code;
  Copy *c = lower_alloc(l, sizeof *c);
  if (!c) return false;
  bool wide = code->fn == PTX_FN_128X256B || code->fn == PTX_FN_4X256B;
  *c = (Copy){.pieces = wide ? COPY_ROW_PIECES : 1, .copies = 1, .pair = PTX_HAS(code, CTA_GROUP_2)};
  c->rows = code->fn == PTX_FN_4X256B    ? 4
            : code->fn == PTX_FN_64X128B ? 64
            : code->fn == PTX_FN_32X128B ? 32
                                         : 128;
  if (PTX_HAS(code, WARPX4)) c->quarter = 32, c->copies = 4;
  if (PTX_HAS(code, WARPX2_02_13)) c->quarter = 64, c->copies = 2;
  if (PTX_HAS(code, WARPX2_01_23)) c->quarter = 32, c->copies = 2;
  out->b = lower_read(l, &in->operands[1]);
  out->kind = SOL_EMU_KIND_SHARED_LOAD;
  out->more = c;
  out->run = copy;
  return lower_address_operand(l, &in->operands[0], &c->to);
}

bool lower_tcgen05(Lower *l, const PtxInst *in, EmuInst *out) {
  out->f = lower_const(l, EMU_ALL, 4);
  switch (in->code->op) {
  case PTX_OP_TCGEN05_MMA:
  case PTX_OP_TCGEN05_MMA_SCALED: return lower_product(l, in, out);
  case PTX_OP_TCGEN05_CP: return lower_copy(l, in, out);
  case PTX_OP_TCGEN05_COMMIT:
    out->vec = PTX_HAS(in->code, MULTICAST);
    if (out->vec) out->b = lower_read(l, &in->operands[1]);
    out->run = commit;
    return lower_mem(l, &in->operands[0], in->code->space, out);
  case PTX_OP_TCGEN05_FENCE_BEFORE:
  case PTX_OP_TCGEN05_FENCE_AFTER: out->run = nothing; return true;
  default: return lower_tmem(l, in, out);
  }
}
