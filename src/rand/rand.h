// A stand-in for cuRAND's host interface, computed on the host. NVIDIA's headers are not needed: generators are
// pointers, enums are ints.
//
// A generator has lanes, each a subsequence as curand_init(seed, lane, 0) makes it: XORWOW 4096 of them, MRG32k3a 81920, or
// 4096 in the legacy order; the n-th result (or pair of results, where two are made at once) is the next of lane n mod lanes.
// Philox has 65536 lanes that take turns of four numbers, MTGP32 192 sets of parameters (64 in the
// legacy order) that take turns of 256, MT19937 8192 lanes that take turns of eight. In
// the seeded order XORWOW's lanes have seeds of their own. Quasirandom generators give all points of
// the first dimension, then those of the next. All this is as NVIDIA's library has it (tests/data/curand.txt).
#ifndef SOL_RAND_RAND_H
#define SOL_RAND_RAND_H

#include "base/port.h"

enum { RAND_LANES = 4096, RAND_MRG_LANES = 81920, RAND_PHILOX_LANES = 65536 };
typedef enum RandKind { // curandRngType
  RAND_XORWOW = 101,
  RAND_MRG32K3A = 121,
  RAND_MTGP32 = 141,
  RAND_MT19937 = 142,
  RAND_PHILOX = 161,
  RAND_SOBOL32 = 201,
  RAND_SCRAMBLED32,
  RAND_SOBOL64,
  RAND_SCRAMBLED64
} RandKind;

typedef struct RandLane {
  uint32_t v[6]; // XORWOW: five words of the shift register and the counter; MRG32k3a: both parts
} RandLane;

typedef struct RandState {
  RandKind kind;
  uint64_t seed;
  bool legacy;       // the legacy order
  bool seeded;       // the seeded order
  bool ready;        // lanes are those of the seed
  uint32_t turn;     // the lane of the next result
  uint64_t counter;  // Philox, MTGP32: results so far
  uint32_t block[4]; // Philox: those of counter / 4
  bool has_block;
  RandLane *lanes;
  uint32_t lane_count;
  struct RandTwister *twister; // of MTGP32
  struct RandTwister19937 *twister19937;
  uint32_t dimensions;                // of a quasirandom generator
  const void *directions, *constants; // of Sobol's
} RandState;

bool rand_start(RandState *state, uint64_t offset); // from the seed, so many results on; false: out of memory
void rand_free(RandState *state);
// rand_mtgp32.c: where NVIDIA's header with the parameters was there when this was built.
bool rand_mtgp32_known(void);
bool rand_mtgp32_start(RandState *state);
uint32_t rand_mtgp32(RandState *state);
// rand_mt19937.c
bool rand_mt19937_start(RandState *state);
void rand_mt19937_lanes(RandState *state, uint64_t results); // makes those that the next results need
uint32_t rand_mt19937(RandState *state);
// rand_sobol.c: the n-th point of a dimension, and the one after it. rand_directions.c: NULL: NVIDIA's library is not here.
bool rand_is_sobol(RandKind kind);
bool rand_is_wide(RandKind kind); // 64 bits
bool rand_sobol_start(RandState *state);
uint64_t rand_sobol_point(const RandState *state, uint32_t dimension, uint64_t n);
uint64_t rand_sobol_next(const RandState *state, uint32_t dimension, uint64_t n, uint64_t point);
const void *rand_directions(RandKind kind);
const void *rand_constants(RandKind kind);
// Which lane the next result is of, which is then the next one's turn.
uint32_t rand_take_turn(RandState *state);
uint32_t rand_bits(RandState *state, uint32_t lane);
float rand_uniform(RandState *state, uint32_t lane); // above 0, up to 1
double rand_uniform_double(RandState *state, uint32_t lane);
void rand_normal(RandState *state, uint32_t lane, float out[2]);
void rand_normal_double(RandState *state, uint32_t lane, double out[2]);
// The same of one number of 32 bits, or, `wide`, of 64: what generators give that make no pairs.
float rand_uniform_of(uint64_t bits, bool wide);
double rand_uniform_double_of(uint64_t bits, bool wide);
float rand_normal_of(uint64_t bits, bool wide);
double rand_normal_double_of(uint64_t bits, bool wide);
uint32_t rand_poisson_of(uint64_t bits, bool wide, double mean);

#endif
