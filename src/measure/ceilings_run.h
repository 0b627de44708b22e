// Launching the ceiling kernels (kernels/ceilings), on a GPU to measure and on the emulator to test them.
#ifndef SOL_MEASURE_CEILINGS_RUN_H
#define SOL_MEASURE_CEILINGS_RUN_H

#include "kernels/ceilings/ceilings.h"
#include "measure/ceilings.h"

// X(enumerator, name of the kernel)
#define CEILING_KERNELS(X)                                                                                   \
  X(READ_ONCE, "ceiling_read_once")                                                                          \
  X(WRITE_ONCE, "ceiling_write_once")                                                                        \
  X(COPY_ONCE, "ceiling_copy_once")                                                                          \
  X(READ, "ceiling_read")                                                                                    \
  X(WRITE, "ceiling_write")                                                                                  \
  X(COPY, "ceiling_copy")                                                                                    \
  X(SHARED, "ceiling_shared")                                                                                \
  X(FMA, "ceiling_fma")                                                                                      \
  X(MMA, "ceiling_mma")                                                                                      \
  X(CHASE_L1, "ceiling_chase_l1")                                                                            \
  X(CHASE_L2, "ceiling_chase_l2")                                                                            \
  X(CHASE_SHARED, "ceiling_chase_shared")                                                                    \
  X(LEAST, "ceiling_least")                                                                                  \
  X(EARLY, "ceiling_early")

typedef enum CeilingKernel {
#define CEILING_KERNEL(id, name) CEILING_##id,
  CEILING_KERNELS(CEILING_KERNEL)
#undef CEILING_KERNEL
      CEILING_KERNEL_COUNT
} CeilingKernel;

typedef struct CeilingRun {
  SolDriver *driver;
  SolDriverInfo info;
  SolStream stream;
  Ceilings *out;
  SolDriverKernel *kernels[CEILING_KERNEL_COUNT];
  uint64_t in, buffer, clocks; // device memory: what is read, what is written, 4 numbers for each block
  uint64_t bytes;              // of in, and of buffer
  union {
    CeilingStream stream;
    CeilingWork work;
  } params;
} CeilingRun;

// Loads the kernels and takes two buffers of `bytes`, or of less where there is no more (1 MiB at least).
// SOL_ERR_UNSUPPORTED where the build has no kernels. Close it after a failure, too.
SolStatus ceiling_open(CeilingRun *run, SolDriver *driver, uint64_t bytes, SolError *err);
void ceiling_close(CeilingRun *run);

// Fill in a launch; parameters are kept in the run, for one launch at a time.
void ceiling_launch_stream(CeilingRun *run, CeilingKernel kernel, const CeilingStream *params,
                           uint64_t blocks, SolDriverLaunch *out);
void ceiling_launch_work(CeilingRun *run, CeilingKernel kernel, const CeilingWork *params, uint32_t blocks,
                         uint32_t threads, SolDriverLaunch *out);
// FLOPs of one mma by a warp, on this GPU.
double ceiling_mma_flops(const CeilingRun *run);
// Writes a random cycle through the first `bytes` of run->in: one index every 128 bytes.
SolStatus ceiling_chain(CeilingRun *run, uint64_t bytes, SolError *err);

#endif
