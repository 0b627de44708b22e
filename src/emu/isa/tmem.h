// Tensor memory of a block: 128 lanes of 512 columns of 32 bits. An address is a lane in its upper and a column in its
// lower 16 bits. Columns are allocated in units of 32; those that are not allocated hold nothing that may be read.
//
// Here every block has a tensor memory of its own. Blocks that share an SM share one on a GPU: there an allocation waits
// until another block's columns are freed.
#ifndef SOL_EMU_TMEM_H
#define SOL_EMU_TMEM_H

#include "emu/core/state.h"

enum { TMEM_LANES = 128, TMEM_COLUMNS = 512, TMEM_UNIT = 32, TMEM_UNITS = TMEM_COLUMNS / TMEM_UNIT };

typedef struct EmuTmem {
  uint8_t length[TMEM_UNITS]; // of the allocation that begins at this unit, in units; 0: none does
  uint32_t taken;             // units, a bit each
  bool relinquished;          // the block allocates no more
  uint32_t cell[TMEM_COLUMNS][TMEM_LANES];
} EmuTmem;

// The block's, in which `columns` from the address's on are allocated. NULL: a finding was reported.
EmuTmem *tmem_columns(EmuCtx *x, const EmuInst *i, uint32_t mask, const EmuBlock *block, uint32_t address,
                      uint32_t columns);
bool lower_tmem(Lower *l, const PtxInst *in, EmuInst *out); // ops_tmem.c: alloc, dealloc, ld, st, waits

#endif
