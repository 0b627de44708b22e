#include "mem/banks.h"

#include "mem/bits.h"

// What lanes touch, in units: where every lane is aligned to its width, lanes are alike or apart, and the
// unit is what one lane touches; else it is the word. Shared memory ends far below 4 GiB, so that 32 bits
// tell units apart.
enum { MAX_UNITS = SOL_LANES * (SOL_MAX_LANE_BYTES / SOL_BANK_BYTES + 1) };
typedef struct Units {
  uint32_t count;
  uint32_t words; // of one unit
  uint32_t unit[MAX_UNITS];
} Units;

static void list_units(Units *u, const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width) {
  uint64_t low = 0;
  uint32_t shift = width <= 4 ? 2 : width <= 8 ? 3 : width <= 16 ? 4 : 5;
  u->words = UINT32_C(1) << (shift - 2);
  u->count = SOL_LANES;
  if (mask == UINT32_MAX) {
    for (uint32_t i = 0; i < SOL_LANES; i++) low |= addr[i], u->unit[i] = (uint32_t)(addr[i] >> shift);
  } else {
    u->count = 0;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      uint64_t at = addr[sol_first_bit(rest)];
      low |= at;
      u->unit[u->count++] = (uint32_t)(at >> shift);
    }
  }
  if (!(width & (width - 1)) && !(low & (width - 1))) return;
  u->words = 1;
  u->count = 0;
  for (; mask; mask &= mask - 1) {
    uint64_t at = addr[sol_first_bit(mask)];
    uint32_t word = (uint32_t)(at / SOL_BANK_BYTES);
    uint32_t more = ((uint32_t)(at % SOL_BANK_BYTES) + width - 1) / SOL_BANK_BYTES;
    for (uint32_t k = 0; k <= more; k++) u->unit[u->count++] = word + k;
  }
}

static uint32_t slot_of(uint32_t unit) {
  return (unit ^ unit >> 5 ^ unit >> 10) % 64;
}

// How many passes serve all units, if each pass serves one distinct unit of each bank: the most distinct
// units in one bank. *distinct gets the number of distinct words. Uses the list up: in each turn the last
// unit to take a slot is counted, the same unit elsewhere is dropped, and others wait for the next turn.
static uint32_t passes_of(Units *u, uint32_t *distinct) {
  uint16_t in_bank[SOL_BANKS] = {0}, last[64];
  uint32_t units = 0, most = 0;
  while (u->count) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < u->count; i++) last[slot_of(u->unit[i])] = (uint16_t)i;
    for (uint32_t i = 0; i < u->count; i++) {
      uint32_t unit = u->unit[i], other = last[slot_of(unit)];
      if (other == i) {
        uint32_t n = ++in_bank[unit * u->words % SOL_BANKS];
        most = n > most ? n : most;
        units++;
      } else if (u->unit[other] != unit) {
        u->unit[left++] = unit;
      }
    }
    u->count = left;
  }
  *distinct = units * u->words;
  return most;
}

static uint32_t passes_for(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width,
                           uint32_t *distinct) {
  Units u;
  list_units(&u, addr, mask, width);
  return passes_of(&u, distinct);
}

// Every active lane whose partner, `flip` away, is active too reads the partner's address.
static bool partners_agree(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t flip) {
  for (uint32_t lane = 0; lane < SOL_LANES; lane++)
    if (mask >> lane & mask >> (lane ^ flip) & 1 && addr[lane] != addr[lane ^ flip]) return false;
  return true;
}

// Counting every lane: lanes in one word do not share.
static uint32_t most_lanes_in_bank(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width) {
  Units u;
  uint16_t lanes[SOL_BANKS] = {0};
  uint32_t most = 0;
  list_units(&u, addr, mask, width);
  for (uint32_t i = 0; i < u.count; i++) {
    uint32_t n = ++lanes[u.unit[i] * u.words % SOL_BANKS];
    if (n > most) most = n;
  }
  return most;
}

// The loads of the loop: each turn, the lanes still waiting load, and the lowest lane of each bank gets
// through.
static uint32_t loop_loads(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width) {
  uint32_t passes = 0, distinct = 0;
  while (mask) {
    passes += passes_for(addr, mask, width, &distinct);
    uint32_t banks = 0, waiting = 0;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      uint32_t lane = sol_first_bit(rest);
      uint32_t bank = UINT32_C(1) << addr[lane] / SOL_BANK_BYTES % SOL_BANKS;
      if (banks & bank) waiting |= UINT32_C(1) << lane;
      banks |= bank;
    }
    mask = waiting;
  }
  return passes;
}

static uint32_t group_passes(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width, SolSharedOp op) {
  if (!mask) return 0;
  switch (op) {
  case SOL_SHARED_ATOMIC: return most_lanes_in_bank(addr, mask, width);
  case SOL_SHARED_CAS: return 2 * most_lanes_in_bank(addr, mask, width);
  case SOL_SHARED_CAS_LOOP: return 2 * most_lanes_in_bank(addr, mask, width) + loop_loads(addr, mask, width);
  case SOL_SHARED_LOAD:
  case SOL_SHARED_STORE:
  case SOL_SHARED_INCREMENT: break;
  }
  uint32_t distinct = 0;
  return passes_for(addr, mask, width, &distinct);
}

static SolWavefronts count(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width, SolSharedOp op) {
  uint32_t distinct = 0;
  SolWavefronts out = {passes_for(addr, mask, width, &distinct), 0};
  out.ideal = (distinct + SOL_BANKS - 1) / SOL_BANKS;
  if (width <= SOL_BANK_BYTES) {
    if (op > SOL_SHARED_INCREMENT) out.wavefronts = group_passes(addr, mask, width, op);
    return out;
  }
  uint32_t lanes = width <= 8 ? 16 : width <= 16 ? 8 : 4;
  if (op == SOL_SHARED_LOAD && (partners_agree(addr, mask, 1) || partners_agree(addr, mask, 2))) lanes *= 2;
  if (lanes == SOL_LANES) return out;
  out.wavefronts = 0;
  for (uint32_t first = 0; first < SOL_LANES; first += lanes)
    out.wavefronts += group_passes(addr, mask & sol_low_bits(lanes) << first, width, op);
  return out;
}

// All lanes active and aligned, lane i at addr[0] + i * stride: the closed form of count(). Lanes whose units
// differ by a multiple of a group's unit banks meet in one bank: 2^k of them, by the power of two in the
// stride.
static SolWavefronts count_strided(uint64_t stride, uint32_t width, SolSharedOp op) {
  uint32_t words = width / SOL_BANK_BYTES, banks = SOL_BANKS / words, per_group = 1;
  if (stride) {
    uint32_t power = (uint32_t)(stride / width) & (banks - 1);
    per_group = power ? power & (0 - power) : banks;
    return (SolWavefronts){per_group * words, words};
  }
  uint32_t groups = op == SOL_SHARED_LOAD && words > 1 ? words / 2 : words;
  if (op == SOL_SHARED_ATOMIC) per_group = banks;
  return (SolWavefronts){groups * per_group, 1};
}

// All lanes active, up to 4 bytes a lane, aligned: no two lanes want different words of one bank. Swizzled
// tiles do not.
static bool no_conflict(const uint64_t addr[SOL_LANES], uint32_t width) {
  uint32_t served[SOL_BANKS], low = 0, wrong = 0;
  for (uint32_t i = 0; i < SOL_LANES; i++) {
    low |= (uint32_t)addr[i];
    served[addr[i] / SOL_BANK_BYTES % SOL_BANKS] = (uint32_t)(addr[i] / SOL_BANK_BYTES);
  }
  for (uint32_t i = 0; i < SOL_LANES; i++)
    wrong |= served[addr[i] / SOL_BANK_BYTES % SOL_BANKS] ^ (uint32_t)(addr[i] / SOL_BANK_BYTES);
  return !wrong && !(low & (width - 1)) && !(width & (width - 1));
}

SolWavefronts sol_banks(const uint64_t addr[SOL_LANES], uint32_t mask, uint32_t width, SolSharedOp op) {
  if (!mask || !width || width > SOL_MAX_LANE_BYTES) return (SolWavefronts){0, 0};
  bool whole_words = width == 4 || width == 8 || width == 16;
  if (mask == UINT32_MAX && whole_words && op <= SOL_SHARED_ATOMIC) {
    uint64_t stride = addr[1] - addr[0];
    if (!((addr[0] | stride) & (width - 1)) && sol_lanes_in_step(addr, SOL_LANES, stride))
      return count_strided(stride, width, op);
  }
  if (mask == UINT32_MAX && width <= SOL_BANK_BYTES && op <= SOL_SHARED_INCREMENT && no_conflict(addr, width))
    return (SolWavefronts){1, 1};
  return count(addr, mask, width, op);
}
