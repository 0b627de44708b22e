// What the products of tcgen05 share.
#ifndef SOL_EMU_TCGEN05_H
#define SOL_EMU_TCGEN05_H

#include "emu/isa/num_cvt.h"
#include "emu/isa/smem_tile.h"
#include "emu/isa/tmem.h"

enum {
  K_BYTES = 32, // of A and B, in every product
  PAIR = 2,     // blocks
  LANE_WORDS = TMEM_LANES / 32
};

typedef struct Tcgen05 { // of tcgen05.mma
  EmuAddress d, a;       // in tensor memory
  EmuAddress scales[2];  // of A and B, there too
  bool a_in_tmem, masks, pair;
  uint8_t blocks;                // of k, with a scale each; 0: no scales
  EmuLoc off[PAIR * LANE_WORDS]; // lanes whose sums stay as they are
} Tcgen05;

typedef struct Product {
  uint64_t a, b;
  uint32_t d, a_tmem, scales[2], descriptor, off[PAIR][LANE_WORDS];
  bool adds;
} Product;

typedef struct Shape {
  NumMmaPlan num; // of m16n8; not of narrow products
  uint32_t m, n;
  uint32_t blocks, rows; // rows: of a block
  bool folded;           // the right half of 64 rows is in the lanes from 64 on
  bool a_turned, b_turned;
  bool narrow;
  bool to_f16;             // narrow: type of D
  NumSmall small[2];       // narrow: types of A and B
  uint32_t a_sign, b_sign; // xored into the registers of what is negated
} Shape;

// 64 rows of one block lie in the first 16 lanes of each quarter.
static inline uint32_t tcgen05_lane(const Shape *s, uint32_t row) {
  return s->m == 64 ? row / 16 * 32 + row % 16 : row;
}

// Eight rows of A, from tensor memory.
void tcgen05_tmem_tile(const EmuTmem *t, const Shape *s, uint32_t address, uint32_t row, Tile tile);

// tcgen05_narrow.c. Reads a descriptor of a narrow product. False: a finding was reported.
bool narrow_shape(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t descriptor, Shape *s);
// of, t: the blocks and their tensor memory; a, b: their matrices in shared memory. False: a finding was reported.
bool narrow_product(EmuCtx *x, const EmuInst *i, uint32_t mask, const Product *p, const Shape *s,
                    EmuBlock *const of[], EmuTmem *const t[], const SmemMatrix a[], const SmemMatrix b[]);

#endif
