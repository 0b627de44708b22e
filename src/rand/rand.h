// A stand-in for cuRAND's host interface, computed on the host. NVIDIA's headers are not needed: generators are
// pointers, enums are ints.
//
// A generator has lanes, each a subsequence as curand_init(seed, lane, 0) makes it: XORWOW 4096 of them, MRG32k3a 81920, or
// 4096 in the legacy order; the n-th result (or pair of results, where two are made at once) is the next of lane n mod lanes.
// Philox has 65536 lanes that take turns of four numbers, MTGP32 192 sets of parameters (64 in the
// legacy order) that take turns of 256. All this is as
// NVIDIA's library has it for generators on the host (tests/data/curand.txt).
#ifndef SOL_RAND_RAND_H
#define SOL_RAND_RAND_H

#include "base/port.h"

enum { RAND_LANES = 4096, RAND_MRG_LANES = 81920, RAND_PHILOX_LANES = 65536 };
typedef enum RandKind { // curandRngType
  RAND_XORWOW = 101,
  RAND_MRG32K3A = 121,
  RAND_MTGP32 = 141,
  RAND_PHILOX = 161
} RandKind;

typedef struct RandLane {
  uint32_t v[6]; // XORWOW: five words of the shift register and the counter; MRG32k3a: both parts
} RandLane;

typedef struct RandState {
  RandKind kind;
  uint64_t seed;
  bool legacy;       // the legacy order
  bool ready;        // lanes are those of the seed
  uint32_t turn;     // the lane of the next result
  uint64_t counter;  // Philox, MTGP32: results so far
  uint32_t block[4]; // Philox: those of counter / 4
  bool has_block;
  RandLane *lanes;
  uint32_t lane_count;
  struct RandTwister *twister; // of MTGP32
} RandState;

bool rand_start(RandState *state, uint64_t offset); // from the seed, so many results on; false: out of memory
void rand_free(RandState *state);
// rand_mtgp32.c: where NVIDIA's header with the parameters was there when this was built.
bool rand_mtgp32_known(void);
bool rand_mtgp32_start(RandState *state);
uint32_t rand_mtgp32(RandState *state);
// Which lane the next result is of, which is then the next one's turn.
uint32_t rand_take_turn(RandState *state);
uint32_t rand_bits(RandState *state, uint32_t lane);
float rand_uniform(RandState *state, uint32_t lane); // above 0, up to 1
double rand_uniform_double(RandState *state, uint32_t lane);
void rand_normal(RandState *state, uint32_t lane, float out[2]);
void rand_normal_double(RandState *state, uint32_t lane, double out[2]);

#endif
