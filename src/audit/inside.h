// Shared by the files of this folder, except the rules.
#ifndef SOL_AUDIT_INSIDE_H
#define SOL_AUDIT_INSIDE_H

#include "audit/audit.h"
#include "audit/audit_names.h"

bool audit_has(const char *text, const char *part); // take.c
const char *audit_base_name(const char *path);      // what follows its last slash

// ---- work.c: from counts to demands ----

// How often and how long a warp waits for its loads.
typedef struct AuditWaits {
  double per_load; // waits over loads: 1 where the warp waits for each load by itself
  double clocks;   // of one wait
  double far;      // of one wait for a load that misses L1
} AuditWaits;
// blocks: of the launch; a single one has L2 and DRAM for itself.
AuditWaits audit_waits(const MachineModel *model, const AuditInst *insts, uint32_t count,
                       const SolEmuFlight *flight, double blocks);
double audit_plain(const AuditInst *inst); // executions, as of plain instructions
// Adds the demands of the instruction, its counts times `scale`.
void audit_demand(const MachineModel *model, const AuditInst *inst, const AuditWaits *waits, double scale,
                  MachineWork *work);
// The ratio of a block's critical path to that of an average warp.
typedef struct AuditPtx { // of a launch, as its PTX has them
  double executions, load_waits, shared_waits;
  double local_waits; // for local memory, which are not among load_waits
  double idle;        // of the machine's issues, those of warps that the PTX leads around
  // What single lanes do, by the PTX and by the machine: executions, clocks between them, waits for shared memory.
  double alone, alone_issues, alone_clocks, alone_near, alone_near_waits;
} AuditPtx;
double audit_chain(const MachineModel *model, const MachineWork *work, const AuditWaits *waits,
                   const SolEmuChain *chain, const AuditPtx *ptx, double scale);
void audit_add_alone(const MachineModel *model, const AuditInst *inst, double scale,
                     AuditPtx *to); // of an instruction of single lanes
// MachineWork.longest. Where blocks have as much work but wait longer than others, because they come to memory first, they do so for
// as long as the memory takes that serves this launch.
double audit_longest(const MachineModel *model, const MachineWork *work, const AuditWaits *waits,
                     const AuditLaunch *launch, const AuditPtx *ptx, double scale);
// Times that warps wait for shared memory and shuffles, by the PTX.
double audit_shared_waits(const MachineModel *model, const AuditInst *inst);
// Machine instructions that the PTX instruction stands for. What is longer than divisions and roots is a loop of ptxas's own.
double audit_code(const AuditInst *inst);
double audit_flops(const AuditInst *inst); // of tensor cores, of all executions, in units of the fp16 rate
double audit_l1_passes(const MachineModel *model, const AuditInst *inst); // wavefronts of L1, all executions
// Clocks of L2 for the instruction's atomics on the busiest `atomic_bytes`.
double audit_atomic_clocks(const MachineModel *model, const AuditInst *inst);
// Lanes that read the word which the compare-and-swap changes before they swap or do not: by an address of the same registers, or in
// an allocation no larger than what is serialised. clocks: of L2, if each of them swapped once.
double audit_guard_lanes(const MachineModel *model, const AuditLaunch *launch, const AuditInst *swap,
                         double *clocks);
// The same as audit_atomic_clocks, with the atomics of other instructions that wait for them: all on an allocation no larger than
// what is serialised.
double audit_atomics_together(const MachineModel *model, const AuditLaunch *launch, const AuditInst *inst);
// Bytes per thread that ptxas spilled, as far as known.
double audit_spilled(AuditSource from, uint64_t stack_bytes, uint64_t local_array_bytes);

// ---- timeline.c: a block's life ----

// Replays the launch's trace, where it has one: for `line` (NULL: not asked for), and for the time where it uses tensor cores.
void audit_add_replay(const MachineModel *model, const AuditLaunch *launch, const AuditWaits *waits,
                      double scale, MachineTimeline *line, MachineWork *work);

// ---- scoreboards.c: where warps wait, by the machine code ----

// times: executions of each basic block; inst_of as for audit_merged. False: out of memory.
bool audit_scoreboards(const SassCode *code, const MachineModel *model, AuditInst *insts, uint32_t count,
                       const double *times, const uint32_t *inst_of, SolArena *arena);

// ---- merged.c: accesses that ptxas changed ----

// inst_of: by machine instruction, the PTX instruction that it comes from; SASS_NONE. False: out of memory.
bool audit_merged(const SassCode *code, AuditInst *insts, uint32_t count, const uint32_t *inst_of,
                  SolArena *arena);

// ---- retries.c ----

// Whether a branch depends on what the compare-and-swap gives, the instruction `swap` of the function; BETTER: it swaps in a value that
// does not depend on the word, and tries again while that is less or more than what it read.
typedef enum AuditRetry { AUDIT_RETRY_NEVER, AUDIT_RETRY_ALWAYS, AUDIT_RETRY_BETTER } AuditRetry;
AuditRetry audit_retry(const PtxFunction *function, uint32_t swap, SolArena *arena);

// ---- indexing.c, audit_light.c ----

// By instruction of the function: whether it computes addresses alone. False: out of memory.
bool audit_indexing(const PtxFunction *function, uint8_t *indexing, SolArena *arena);

void audit_find_light(const AuditProgram *program, AuditKernel *kernel); // .lights, .light, .tax

// ---- flows.c: which kernel reads what another wrote ----

void audit_flows_launch(AuditProgram *program, uint32_t kernel, const AuditLaunch *launch);
void audit_lefts_launch(AuditProgram *program, uint32_t kernel, const AuditLaunch *launch);
void audit_flows_free(AuditProgram *program);

// ---- bill.c, again.c: launches ----

SolStatus audit_add_launch(AuditProgram *program, const AuditLaunch *launch, AuditKernel **kernel,
                           SolError *err);
// Keeps what audit_add_again needs of a launch that was added to the kernel.
SolStatus audit_keep_launch(AuditProgram *program, const AuditKernel *kernel, const AuditLaunch *launch,
                            SolError *err);
bool audit_add_faults(AuditProgram *program, AuditKernel *kernel, const AuditFault *faults, uint32_t count,
                      uint64_t left_out); // false: out of memory
void audit_kept_free(AuditProgram *program);
void audit_add_time(MachineTime *to, const MachineTime *from); // finish.c: one launch or shape after another

// ---- lines.c: sums by source line ----

SolStatus audit_lines(AuditProgram *program, AuditKernel *kernel, SolError *err);
// line_costs.c: AuditLine.cost, .parts, .unowned.
void audit_line_costs(const AuditProgram *program, AuditKernel *kernel);

// ---- bill.c ----

const char *audit_keep(AuditProgram *program,
                       const char *text); // copies into the arena; NULL for NULL, or if out of memory
// Makes room for one more item of `size` bytes; false: out of memory.
bool audit_grow(void **items, uint32_t count, uint32_t *cap, size_t size);

// Internal state of a program.
typedef struct AuditSlots { // a kernel's instructions by AuditInst.place, summed so far
  uint32_t unit;
  AuditInst *insts;
  uint32_t count;
} AuditSlots;
typedef struct AuditBuffer { // an allocation and its last writer
  uint64_t address, bytes;
  uint32_t writer;  // kernel; UINT32_MAX: none, or not only a kernel
  double written;   // bytes
  uint32_t readers; // launches and others that read it since then
  uint32_t flow;    // of the first reader
} AuditBuffer;
typedef struct AuditState {
  AuditSlots *slots; // one per kernel
  uint32_t slot_cap;
  AuditBuffer *buffers;
  uint32_t buffer_count, buffer_cap;
  struct AuditKept *kept; // of again.c
  uint32_t kept_count, kept_cap;
  bool replayed; // of the last launch, as in MachineWork
  double exposed;
  uint32_t last[SOL_AGES]; // kernels of the last launches by age, plus 1; 0: none
} AuditState;

#endif
