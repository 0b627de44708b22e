// The roofline equation: time = max(bytes / bandwidth, flops / peak) + launches * launch cost.
// Bytes and FLOPs are counts; every time here is modelled from the device's published figures.
#ifndef SOL_ROOFLINE_H
#define SOL_ROOFLINE_H

#include "sol/op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum SolLevel { SOL_LEVEL_HBM = 0, SOL_LEVEL_L2, SOL_LEVEL_SMEM } SolLevel;
typedef enum SolBound { SOL_BOUND_MEMORY = 0, SOL_BOUND_COMPUTE, SOL_BOUND_LAUNCH, SOL_BOUND_LINK } SolBound;

typedef struct SolWork {
  double bytes, flops; // through the chosen memory level; finite, not negative, not both zero
  double launches;     // 0 leaves the launch term out
  SolDtype dtype;      // arithmetic type; bf16
  SolUnit unit;
} SolWork;

typedef struct SolRooflineOptions {
  SolLevel level; // which memory the bytes move through
  int graph;      // 1: launches cost what they cost inside a CUDA graph
  int no_launch;  // 1: leave the launch term out, as if launches were 0
} SolRooflineOptions;

typedef struct SolRoofline {
  double bytes, flops, launches;
  double bandwidth;        // B/s of the level; 0 where it is unknown and bytes is 0
  double peak;             // FLOP/s; 0 where it is unknown and flops is 0
  double intensity;        // FLOP/byte; 0 where flops is 0; INFINITY where bytes is 0
  double ridge;            // peak / bandwidth; 0 where either is
  double attainable_flops; // FLOP/s under the roof, launches left out
  double attainable_bytes; // B/s under the roof, launches left out
  double memory_us, compute_us, launch_us, time_us;
  SolDtype dtype;
  SolUnit unit; // tensor or vector; as given where the peak is unknown
  SolLevel level;
  SolBound bound; // the largest of the three terms; compute at the ridge itself
} SolRoofline;

// options may be NULL. SOL_ERR_UNKNOWN names the figure that is missing; SOL_ERR_UNSUPPORTED: the device has
// no such arithmetic. A figure that the work does not need (no bytes, no FLOPs, no launches) may be unknown.
SOL_API SolStatus sol_roofline(const SolDevice *device, const SolWork *work,
                               const SolRooflineOptions *options, SolRoofline *out, SolError *err);
SOL_API SolWork sol_work_of_cost(const SolCost *cost);

// The bytes of a gemm at each level of memory, computed in tiles of C that stay in registers while A's and B's go through
// shared memory to the tensor cores. hbm: each tensor once, as sol_op_cost has it. l2: A for every column of tiles, B for
// every row of them, C once. smem: tiles as they are written there and read by wgmma, 64 rows at a time.
typedef struct SolTile {
  int64_t m, n, k; // zeros: 128x256x64
} SolTile;
SOL_API SolStatus sol_gemm_bytes(const SolOpArgs *args, const SolTile *tile, SolLevel level, double *bytes,
                                 SolError *err);

// What could be done about it. Below the ridge there are two responses: raise the intensity, or accept the
// memory roof and saturate it; above it, keep the arithmetic units busy; under launches, launch less.
typedef enum SolResponse {
  SOL_RESPONSE_RAISE_INTENSITY = 0,
  SOL_RESPONSE_SATURATE_MEMORY,
  SOL_RESPONSE_SATURATE_COMPUTE,
  SOL_RESPONSE_LAUNCH_LESS
} SolResponse;

// A step is a change, and the accountant run again on the changed work. `gain` is how many times faster:
//   fuse    the operation and a neighbour as two kernels, over the one kernel that does both (`after`)
//   block   more work for each byte (a larger batch, more steps a trip): time per FLOP before over after
//   shrink  narrower storage, or narrower arithmetic; scale factors of narrow formats are not counted
//   graph   the same launches inside a CUDA graph
//   launch  the same work in one launch
enum { SOL_MAX_STEPS = 8 };
typedef struct SolStep {
  const char *kind;
  char what[96]; // "store fp8 instead of bf16"
  SolRoofline after;
  double gain; // > 1 is faster
} SolStep;

typedef struct SolAdvice {
  SolResponse response;
  // How many times fewer bytes (or more FLOPs a byte) would reach the ridge; 1 at or above it; INFINITY where
  // there are no FLOPs.
  double reuse_to_ridge;
  int count;
  SolStep steps[SOL_MAX_STEPS]; // largest gain first; none that gains less than 1%
} SolAdvice;

// For an operation, run as one kernel.
SOL_API SolStatus sol_advise_op(const SolDevice *device, const SolOpArgs *args,
                                const SolRooflineOptions *options, SolAdvice *out, SolError *err);
// For raw work, where only dtype and launches are known. All bytes are taken to be elements of the dtype.
SOL_API SolStatus sol_advise_work(const SolDevice *device, const SolWork *work,
                                  const SolRooflineOptions *options, SolAdvice *out, SolError *err);

SOL_API const char *sol_level_name(SolLevel level);          // "hbm"
SOL_API const char *sol_bound_name(SolBound bound);          // "memory"
SOL_API const char *sol_unit_name(SolUnit unit);             // "tensor"
SOL_API const char *sol_response_name(SolResponse response); // "raise_intensity"

#ifdef __cplusplus
}
#endif
#endif
