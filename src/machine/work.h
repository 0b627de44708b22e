// The time model: demands of launches in, predicted seconds out.
//
//   MachineWork work = {.launches = 1, .blocks = 1024, ..., .dram_read = 1e9};
//   MachineTime time;
//   machine_time(&model, &work, &time, &err);          time.c lists the assumptions
#ifndef SOL_MACHINE_WORK_H
#define SOL_MACHINE_WORK_H

#include "machine/machine.h"

// ---- what is demanded ----

// The demands of launches of one shape on the GPU, summed over those launches. X(field) are doubles that a rule
// may lower (or raise, where its fix costs something) in a copy. Sectors have 32 bytes.
#define MACHINE_DEMANDS(X)                                                                                   \
  X(dram_read)         /* bytes; modelled */                                                                 \
  X(dram_scattered)    /* of dram_read: by lanes at scattered addresses */                                   \
  X(dram_write)        /* bytes, with what is left dirty in L2 at the end; modelled */                       \
  X(l2_reads)          /* sectors that L1 requested from L2; modelled */                                     \
  X(l2_writes)         /* sectors written to L2 */                                                           \
  X(l2_bulk)           /* of both: by bulk and tensor copies */                                              \
  X(l2_atomics)        /* sectors of atomics sent to L2, as of those with a result */                        \
  X(l2_atomic_lanes)   /* lanes of those atomics */                                                          \
  X(l2_atomic_alike)   /* of those beyond the first of a sector: on the word of another lane of the warp */  \
  X(l2_requests)       /* to L2, each for sectors of one line; modelled */                                   \
  X(l2_scattered)      /* of l2_requests: by lanes at scattered addresses */                                 \
  X(l2_packets)        /* sent to L2 by stores */                                                            \
  X(atomic_turns)      /* lanes of atomics on the sector with the most contention */                         \
  X(atomic_clocks)     /* of L2, for the serialised atomics on its busiest 512 bytes */                      \
  X(atomic_end_clocks) /* of those: by atomics that each warp executes once, so at the end of its work */    \
  X(swaps)             /* compare-and-swaps that changed the word which most of them changed */              \
  X(swap_launches)     /* launches with any */                                                               \
  X(swap_lanes)        /* those of all words */                                                              \
  X(swap_sectors)      /* their sectors */                                                                   \
  X(swap_active)       /* their sum, each times the lanes of a warp that try at the same time; 0: 32 */      \
  X(swap_words)        /* those words */                                                                     \
  X(swap_queue)        /* clocks of the busiest slice of L2 for them */                                      \
  X(swap_guarded)      /* lanes that read such a word, and swapped only what was better than it */           \
  X(swap_guard_clocks) /* of L2, if each of those swapped once */                                            \
  X(held_clocks)       /* for which such a word was a lock that somebody had */                              \
  X(host_read)         /* bytes of mapped memory of the host */                                              \
  X(host_write)                                                                                              \
  X(host_atomics)      /* atomics on a line of such memory, which take turns */                              \
  X(page_launches)     /* launches that touch managed pages which the device does not have */                \
  X(page_bytes)        /* of groups of such pages, 64 KiB each */                                            \
  X(pages)             /* in them, of 4 KiB, that are touched */                                             \
  X(page_blocks)       /* of 2 MiB that those groups are in */                                               \
  X(texture_lanes)     /* turns of lanes that sample textures (work.c): some a clock and SM */               \
  X(constant_turns)    /* words of constant loads, which are served one by one */                            \
  X(match_turns)       /* distinct values of matches, which are served one by one */                         \
  X(l1_wavefronts)     /* of global, local and texture requests in L1: one a clock and SM */                 \
  X(shared_wavefronts) /* of shared memory: one a clock and SM */                                            \
  X(issues)            /* warp instructions, counted in PTX */                                               \
  X(fp32)              /* warp instructions of each pipe, counted in PTX */                                  \
  X(fp16)                                                                                                    \
  X(fp64)                                                                                                    \
  X(integer)                                                                                                 \
  X(special) /* sin, exp, rsqrt ...: the special function unit */                                            \
  X(convert)                                                                                                 \
  X(tensor_flops)     /* of mma and wmma, in units of the fp16 rate: tf32 counts twice, fp8 half */          \
  X(barriers)         /* executions by a warp of a block-wide barrier */                                     \
  X(code)             /* machine instructions that an SM executes at least once */                           \
  X(load_waits)       /* times a warp waits for global, local or texture loads (SolEmuFlight.waits) */       \
  X(load_wait_clocks) /* clocks of those waits, each by where its sectors came from; modelled */             \
  X(call_clocks)      /* that warps wait for calls of printf, malloc and free */                             \
  X(shared_waits)     /* times a warp waits for shared memory */

typedef struct MachineWork {
  // Per launch; means, where launches of several shapes were added up.
  double launches;
  double graph_launches; // of those: in a CUDA graph, where a launch costs less
  double early_launches; // of those: by programmatic dependent launch
  double blocks;         // of one launch
  double warps_per_block;
  double blocks_per_sm;      // resident blocks: the occupancy
  double blocks_per_cluster; // 0 or 1: no clusters
  double stall;    // clocks between a warp's instructions, by the machine code, mean; 0: `issue_clocks`
  double chain;    // length of a block's critical path over the path of an average warp; 0: taken as 1
  double longest;  // time until the last block ends over that of as many equal ones; 0: taken as 1
  double busiest;  // work of the busiest SM over its share of equal blocks; 0: taken as 1
  double replayed; // 1: a block's life was replayed (replay.h); 0: it is made up of its waits
  double exposed;  // of a replayed block's life, the clocks in which its busiest unit is not
#define MACHINE_DEMAND_FIELD(name) double name;
  MACHINE_DEMANDS(MACHINE_DEMAND_FIELD)
#undef MACHINE_DEMAND_FIELD
} MachineWork;

// ---- the time model's result ----

typedef enum MachineResource {
  MACHINE_LAUNCH, // launch overhead
  MACHINE_DRAM,   // memory bandwidth
  MACHINE_L2,     // L2 bandwidth, and the bandwidth from L2 to an SM
  MACHINE_L1,     // wavefronts of L1 and shared memory, which share a pipe
  MACHINE_ISSUE,  // issue slots and arithmetic pipes
  MACHINE_TENSOR,
  MACHINE_ATOMICS, // contention of atomics
  MACHINE_BLOCKS,  // starting blocks
  MACHINE_LATENCY, // exposed latency: too few bytes in flight, too few blocks, barriers
  MACHINE_RESOURCES
} MachineResource;
const char *machine_resource_name(MachineResource resource); // "DRAM bandwidth"
const char *machine_resource_key(MachineResource resource);  // "dram": JSON's `bound`

typedef struct MachineTime {
  double seconds[MACHINE_RESOURCES]; // of each resource alone, all launches
  double total; // launch overhead plus the others combined: from the end of the kernel before to its own
  double pages; // of the latency: managed pages that move here as they are touched
  double gap;   // of `total`: between launches, in no kernel's duration as ncu and nsys show it
  MachineResource bound; // the largest
  unsigned left_out;     // bit per resource: a device figure is unknown, so its time is taken as 0
  bool replayed;         // the latency is that of a block's life, which was replayed
  double waves;          // of blocks per launch: 1.2 means a full wave and a tail of 20%
} MachineTime;

// SOL_ERR_UNKNOWN where the device lacks a required figure. time.c lists the assumptions of the model.
SolStatus machine_time(const MachineModel *model, const MachineWork *work, MachineTime *out, SolError *err);
// Bandwidth of a plain copy, in bytes per second.
double machine_copy_rate(const MachineModel *model);
// The "light": seconds to move the bytes once at the bandwidth of a plain copy, and to launch the kernels.
double machine_light(const MachineModel *model, double bytes, double launches, double graph_launches);

// ---- demands.c ----

double machine_stall(const MachineModel *model, const MachineWork *work); // clocks between instructions
enum { MACHINE_USUAL_WARPS = 8 }; // of a block, where the emulator compares paths
double machine_barrier(const MachineModel *model, double warps); // clocks of a barrier of a block of so many
// Clocks until a load that misses L1 arrives, where it is not known what serves it: L2 or DRAM, half of them each. 0:
// nobody has measured it.
double machine_far_clocks(const MachineModel *model);
// Clocks that all warps wait and issue, summed, as if no warp waited for another.
double machine_wait_clocks(const MachineModel *model, const MachineWork *work);
// The demands of so many bytes a thread that ptxas spilled, with so many threads resident on an SM.
MachineWork machine_spills(const MachineModel *model, double bytes, double warps, double resident);
// The same where the machine code has so many 4-byte accesses of warps to them, which its instructions include.
MachineWork machine_spills_counted(const MachineModel *model, double bytes, double accesses, double resident);
void machine_work_add(MachineWork *to,
                      const MachineWork *from); // sums demands and launches, averages the geometry

#endif
