// Parameters of the sweeps' kernels, shared with src/ladder/sweep_*.c.
#ifndef SOL_KERNELS_SWEEPS_RUNGS_H
#define SOL_KERNELS_SWEEPS_RUNGS_H

#include <stdint.h>

enum {
  SWEEP_BLOCK = 256,
  SWEEP_STRIDE = 32,  // the largest: x has so many elements for one of y
  SWEEP_SHIFT = 32,   // most elements of misalignment
  SWEEP_TILE = 1024,  // words of shared memory that the strided reads walk through
  SWEEP_RUN = 32,     // of them one after another
  SWEEP_PIECE = 8,    // working set: vectors a thread reads
  SWEEP_STREAM = 8,   // persistence: vectors that stream by for one of the table
  SWEEP_SAMPLES = 64, // registers: values a thread holds
  SWEEP_LOADS = 64,   // in flight: loads a thread makes
  SWEEP_WIDE = 512,   // in flight: threads of a block
  SWEEP_CHUNK = 16,   // tail: vectors a thread reads
  SWEEP_MOST = 1024,  // tail: threads of a block
  SWEEP_TABLE = 1024, // constant: words
  SWEEP_LOOKUPS = 64,
  SWEEP_PATCH = 32, // texture: a block's pixels along each side
  SWEEP_PIXELS = 4, // that a thread reads
  SWEEP_READS = 4   // ceilings: vectors a thread reads
};

// One array to another, as most points do.
typedef struct SweepCopy {
  float *y;
  const float *x;
  uint64_t n;     // elements
  uint64_t shift; // misalignment, elements
} SweepCopy;

typedef struct SweepStride {
  float *y;
  const float *x;
  uint64_t n, count; // of y, of x
  uint64_t stride;
} SweepStride;

typedef struct SweepShared {
  float *y;
  const float *x;
  uint32_t stride, rounds;
} SweepShared;

typedef struct SweepSet {
  float *y;
  const float *x;
  uint32_t pieces; // of the set: what a block reads
} SweepSet;

typedef struct SweepPersist {
  float *y;
  const float *stream, *table;
  uint32_t vectors; // of the table
} SweepPersist;

typedef struct SweepTail {
  float *y;
  const float *x;
} SweepTail;

typedef struct SweepConstant {
  float *y;
  const float *table; // the same values in global memory
  uint64_t n;
  uint32_t distinct; // addresses among the lanes of a warp
} SweepConstant;

typedef struct SweepTexture {
  float *y;
  const float *x;
  uint64_t texture;
  uint32_t width, height;
  uint32_t shift;          // 2 to that power: lanes of a warp along a row
  uint32_t step_x, step_y; // from a thread's pixel to its next
} SweepTexture;

typedef struct SweepCeiling {
  float *y, *z, *s;
  const float *a, *b;
  uint64_t n;
} SweepCeiling;

// A place for thread i, any of [0, 2^32): a bijection whose neighbours lie far apart.
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline uint32_t
    sweep_scatter(uint32_t i) {
  i ^= i >> 16;
  i *= 0x85ebca6bu;
  i ^= i >> 13;
  i *= 0xc2b2ae35u;
  return i ^ i >> 16;
}

#endif
