// The life of a block: what its warps do in sequence in, when units are busy and what warps wait for out.
//
//   MachineReplay replay = {.events = ..., .ends = ..., .warps = 12, .warps_per_block = 12, .costs = machine_costs(&model, ...)};
//   MachineTimeline line;
//   machine_replay(&replay, &line);                     replay.c lists the assumptions
#ifndef SOL_MACHINE_REPLAY_H
#define SOL_MACHINE_REPLAY_H

#include "machine/machine.h"

// ---- in ----

typedef enum MachineStep {
  MACHINE_STEP_END,    // nothing but the instructions before it
  MACHINE_STEP_LOAD,   // a load into registers
  MACHINE_STEP_LOADED, // waits for all loads
  MACHINE_STEP_COPY,   // an asynchronous copy; amount 0: what the one before copies completes a further token
  MACHINE_STEP_TENSOR, // with a token it is asynchronous
  MACHINE_STEP_ARRIVE,
  MACHINE_STEP_WAIT,
  MACHINE_STEP_FENCE,
  MACHINE_STEPS
} MachineStep;
// Details of steps. COPY: MACHINE_OUT; LOAD: the second and third; ARRIVE: the fourth to sixth; WAIT: the last.
enum {
  MACHINE_IN,
  MACHINE_OUT = 1,
  MACHINE_BEYOND_L1 = 1,
  MACHINE_OF_OTHERS = 2,
  MACHINE_AT_OTHERS = 1,
  MACHINE_BEHIND_COPIES = 2,
  MACHINE_AT_CLUSTER = 3,
  MACHINE_SOURCES_READ = 1
};

typedef struct MachineEvent {
  uint32_t token;    // a wait goes on when all other events with its token have completed; 0: none
  uint32_t place;    // the caller's, of the instruction
  double issues;     // instructions of the warp up to here, since its event before
  double shared;     // waits for shared memory among them
  double amount;     // bytes of LOAD and COPY; FLOPs of TENSOR; of FENCE: stores in flight
  double wavefronts; // of shared memory, of TENSOR; of L1, of LOAD
  double late;       // of COPY: clocks until it can start, and those behind it
  uint8_t step, detail;
} MachineEvent;

// Clocks. A rate is of one SM, among all that are busy.
typedef struct MachineCosts {
  double issue, shared, l1, far, others, barrier, cluster, fence, store_fence;
  double copy; // latency of an asynchronous copy, with that of the memory which serves it
  double byte, loaded_byte,
      stored_byte; // transfer between L2 and the SM: by copies, by loads, by copies back
  double cold,
      cold_byte; // the first bytes that an SM gets come from DRAM: how many, and their transfer, if that is longer
  double flop;      // of one of four tensor cores
  double tensor;    // until the result of a matrix instruction is there, beyond its own time
  double wavefront; // of shared memory
} MachineCosts;

typedef struct MachineReplay {
  const MachineEvent *events;              // warp by warp
  const uint32_t *ends;                    // by warp: where its events end
  uint32_t warps, warps_per_block, tokens; // of all blocks of the cluster; the highest token
  MachineCosts costs;
} MachineReplay;

// ---- out ----

typedef enum MachineUnit { MACHINE_COPIES, MACHINE_TENSORS, MACHINE_CORES, MACHINE_UNITS } MachineUnit;
const char *machine_unit_key(MachineUnit unit); // "copy"

// What a warp does: it issues, or waits for ...
typedef enum MachineState {
  MACHINE_ISSUES,
  MACHINE_FOR_COPY,   // asynchronous copies
  MACHINE_FOR_TENSOR, // matrix instructions
  MACHINE_FOR_WARPS,  // other warps, at barriers and mbarriers
  MACHINE_FOR_MEMORY, // loads, shared memory, fences
  MACHINE_STATES
} MachineState;
const char *machine_state_key(MachineState state); // "copy"

enum { MACHINE_BUCKETS = 120, MACHINE_ROLES = 12, MACHINE_WAITS = 24 };

typedef struct MachineRole { // warps that follow each other and do the same
  uint32_t first, warps;
  bool copies, multiplies;
  double share[MACHINE_STATES];                 // of the block's life
  float state[MACHINE_STATES][MACHINE_BUCKETS]; // the same by time
} MachineRole;

typedef struct MachineWait {
  uint32_t place;
  MachineState what;
  double clocks, times; // of all warps of the block
} MachineWait;

typedef struct MachineTimeline { // of the first block
  double clocks;
  double exposed; // of those: in which the busiest unit is not
  double busy
      [MACHINE_UNITS]; // share of the time: copies in flight; tensor cores and issue slots, the mean of the four
  double transfer;     // share of the time in which bytes move, not only latency passes
  double overlap;      // share of the time in which copies are in flight and tensor cores multiply
  double hidden;       // of the time in which copies are in flight: with tensor cores at work
  float unit[MACHINE_UNITS][MACHINE_BUCKETS];
  MachineRole roles[MACHINE_ROLES]; // what is beyond them is left out
  uint32_t role_count;
  MachineWait waits[MACHINE_WAITS]; // longest first
  uint32_t wait_count;
} MachineTimeline;

// How the memory serves a launch's copies, for machine_costs.
typedef struct MachineServed {
  double far;   // clocks of a wait for a load that misses L1
  double dram;  // of the bytes that SMs read: the part that comes from DRAM
  double cold;  // bytes of an SM that come from DRAM before all others; `dram` is 0 then
  double sms;   // that have blocks
  double stall; // clocks between a warp's instructions
} MachineServed;
MachineCosts machine_costs(const MachineModel *model, const MachineServed *served);

bool machine_replay(const MachineReplay *replay, MachineTimeline *out); // false: out of memory

#endif
