// How many blocks and warps of a kernel an SM holds at once, as NVIDIA's own calculator counts them: from the
// device's figures, with shared memory carved out as large as the SM allows. docs/occupancy.md has the rules.
#ifndef SOL_OCCUPANCY_H
#define SOL_OCCUPANCY_H

#include "sol/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SolKernelShape {
  int64_t threads; // per block, at least 1
  int64_t regs;    // per thread, as ptxas prints them; 0: not a limit
  int64_t smem;    // bytes per block, static and dynamic together
} SolKernelShape;

// What keeps the next block out. Where several do, the first in this order: only another
// block size raises a slot limit, so as long as one holds, fewer registers or bytes gain nothing.
typedef enum SolLimiter {
  SOL_LIMIT_WARPS = 0, // warp slots; at occupancy 1 there is nothing to gain
  SOL_LIMIT_BLOCKS,    // block slots
  SOL_LIMIT_REGISTERS,
  SOL_LIMIT_SMEM
} SolLimiter;

typedef struct SolOccupancy {
  int blocks_per_sm, warps_per_sm, max_warps_per_sm;
  int warps_per_block;
  double occupancy; // warps_per_sm / max_warps_per_sm
  SolLimiter limiter;
  // Blocks that each resource alone would allow; INT_MAX where the kernel uses none of it.
  int blocks_by_warps, blocks_by_slots, blocks_by_regs, blocks_by_smem;
  int64_t regs_per_block; // as allocated, granularity included
  int64_t smem_per_block; // likewise, with what the system reserves
} SolOccupancy;

// SOL_ERR_ARGUMENT where such a block cannot launch at all (too many threads, registers or bytes): the hint
// says what would. SOL_ERR_UNKNOWN where a figure it takes is not known. *out is written on success alone.
SOL_API SolStatus sol_occupancy(const SolDevice *device, const SolKernelShape *kernel, SolOccupancy *out,
                                SolError *err);

// The nearest single change of one input that puts more warps on an SM, the other two left as they are: the
// most registers below the present ones, the most bytes below the present ones, the nearest whole number of
// warps (of two as near, the one with more warps on the SM, then the smaller). In this order, those that
// exist: 0 to 3.
enum { SOL_MAX_LIFTS = 3 };
typedef struct SolLift {
  const char *input; // "regs", "smem", "threads"
  SolKernelShape kernel;
  SolOccupancy after;
} SolLift;
SOL_API SolStatus sol_occupancy_lifts(const SolDevice *device, const SolKernelShape *kernel,
                                      SolLift lifts[SOL_MAX_LIFTS], int *count, SolError *err);

SOL_API const char *sol_limiter_name(SolLimiter limiter); // "registers"

#ifdef __cplusplus
}
#endif
#endif
