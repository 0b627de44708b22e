// A stand-in for cuRAND's host interface, computed on the host. NVIDIA's headers are not needed: generators are
// pointers, enums are ints.
//
// XORWOW and MRG32k3a have 4096 lanes, each a subsequence of the generator as curand_init(seed, lane, 0) makes it; the
// n-th result (or pair of results, where two are made at once) is the next of lane n mod 4096: the order that cuRAND
// documents as CURAND_ORDERING_PSEUDO_LEGACY, whichever order was asked for. Philox is one sequence.
#ifndef SOL_RAND_RAND_H
#define SOL_RAND_RAND_H

#include "base/port.h"

enum { RAND_LANES = 4096 };
typedef enum RandKind { RAND_XORWOW = 101, RAND_MRG32K3A = 121, RAND_PHILOX = 161 } RandKind; // curandRngType

typedef struct RandLane {
  uint32_t v[6]; // XORWOW: five words of the shift register and the counter; MRG32k3a: both parts
} RandLane;

typedef struct RandState {
  RandKind kind;
  uint64_t seed;
  bool ready;        // lanes are those of the seed
  uint32_t turn;     // the lane of the next result
  uint64_t counter;  // Philox: results so far
  uint32_t block[4]; // Philox: those of counter / 4
  bool has_block;
  RandLane lanes[RAND_LANES];
} RandState;

void rand_start(RandState *state, uint64_t offset); // from the seed, so many results on
// Which lane the next result is of, which is then the next one's turn.
uint32_t rand_take_turn(RandState *state);
uint32_t rand_bits(RandState *state, uint32_t lane);
float rand_uniform(RandState *state, uint32_t lane); // above 0, up to 1
double rand_uniform_double(RandState *state, uint32_t lane);
void rand_normal(RandState *state, uint32_t lane, float out[2]);
void rand_normal_double(RandState *state, uint32_t lane, double out[2]);

#endif
