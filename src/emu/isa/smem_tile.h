// Eight rows of A, or columns of B, by all of k: what wgmma and tcgen05.mma read of a matrix in shared memory, and the
// registers of mma that its bytes are put into.
#ifndef SOL_EMU_SMEM_TILE_H
#define SOL_EMU_SMEM_TILE_H

#include "emu/core/state.h"
#include "emu/isa/num_mma.h"
#include "emu/isa/smem_matrix.h"

enum { TILE_ROWS = 8, TILE_BYTES = 64 }; // of the bytes of a row all but B of sparse products use 32
typedef uint8_t Tile[TILE_ROWS][TILE_BYTES];

// From row `row` on, so many pieces of 16 bytes; counts: as traffic of shared memory. False: a finding was reported.
bool smem_tile(EmuCtx *x, const EmuInst *i, const SmemMatrix *m, uint32_t row, uint32_t pieces, bool counts,
               Tile tile);
// The 16 bytes of the block's shared memory at this address; NULL: a finding was reported.
const uint8_t *smem_piece_at(EmuCtx *x, const EmuInst *i, uint32_t address);
// Where the bytes of register r of lane l are in the tiles of a fragment. A register holds elements that follow each other
// along k.
void tile_places(const NumFragment *f, int regs, bool is_b, uint16_t at[][EMU_LANES]);
// The registers of tiles, each xored with `sign`.
void tile_registers(uint32_t *const regs[], int count, const uint16_t at[][EMU_LANES], const uint8_t *tiles,
                    uint32_t sign);

#endif
