#include "emu/isa/smem_tile.h"

static void count_pieces(EmuCtx *x, const EmuInst *i, const uint64_t *addr, uint32_t pieces) {
  SolEmuCounts *c = &x->counts[i->index];
  c->shared_requests++;
  c->bytes += (uint64_t)pieces * 16;
  if (!x->launch->counting) return;
  for (uint32_t half = 0; half < pieces / 8; half++) { // a core matrix each
    uint64_t rows[EMU_LANES] = {0};
    memcpy(rows, addr + half * 8, 8 * sizeof *addr);
    SolWavefronts passes = sol_banks(rows, 0xff, 16, SOL_SHARED_LOAD);
    c->wavefronts += passes.wavefronts;
    c->wavefronts_ideal += passes.ideal;
  }
}

const uint8_t *smem_piece_at(EmuCtx *x, const EmuInst *i, uint32_t address) {
  const uint8_t *host = emu_range(x, i, 0, address, PTX_SPACE_SHARED, 16, 16, false);
  if (host && x->launch->checking) emu_check_bulk(x, i, 0, host, 0, 16, EMU_USE_LOAD);
  return host;
}

static void place_piece(Tile tile, const SmemMatrix *m, uint32_t along, const uint8_t *from) {
  if (!m->mn_major) {
    memcpy(tile[along % 8] + along / 8 * 16, from, 16);
    return;
  }
  for (uint32_t row = 0; row < TILE_ROWS; row++) memcpy(tile[row] + along * 2, from + row * 2, 2);
}

bool smem_tile(EmuCtx *x, const EmuInst *i, const SmemMatrix *m, uint32_t row, uint32_t pieces, bool counts,
               Tile tile) {
  uint64_t addr[TILE_BYTES / 2];
  for (uint32_t along = 0; along < pieces; along++) {
    addr[along] = m->block + smem_piece(m, row, along);
    const uint8_t *from = smem_piece_at(x, i, (uint32_t)addr[along]);
    if (!from) return false;
    place_piece(tile, m, along, from);
  }
  if (counts) count_pieces(x, i, addr, pieces);
  return true;
}

void tile_registers(uint32_t *const regs[], int count, const uint16_t at[][EMU_LANES], const uint8_t *tiles,
                    uint32_t sign) {
  for (int r = 0; r < count; r++)
    for (int l = 0; l < EMU_LANES; l++) {
      uint32_t v;
      memcpy(&v, tiles + at[r][l], 4);
      regs[r][l] = v ^ sign;
    }
}

void tile_places(const NumFragment *f, int regs, bool is_b, uint16_t at[][EMU_LANES]) {
  for (int r = 0; r < regs; r++)
    for (int l = 0; l < EMU_LANES; l++) {
      int place = f->lane[l] + f->slot[r * f->per_reg], major = place / f->stride, minor = place % f->stride;
      int row = is_b ? minor : major, k = is_b ? major : minor;
      at[r][l] = (uint16_t)(row * TILE_BYTES + k * f->bits / 8);
    }
}
