// The bill of a program: the memory traffic of its kernels by source line, the traffic they need at least, their
// predicted time on a GPU, and what to change first.
//
//   AuditProgram program;
//   audit_start(&program, device, &err);           the GPU to predict for
//   audit_take(ptx, &result, &arena, &launch);     one launch, from the emulator; or from the shim's report:
//                                                  audit_wire.h
//   audit_add(&program, &launch, &err);            launches of the same kernel are summed
//   audit_finish(&program, &err);                  times, light, tax, lines; then the rules
//   ... program.kernels[i].time, .lines, .findings ...
//   audit_free(&program);
//
// A rule reads only AuditKernel, and gets its gain from audit_gain. Counts are exact for the PTX unless their
// comment says modelled. This folder also builds for wasm, so it uses no files, threads or libc.
#ifndef SOL_AUDIT_AUDIT_H
#define SOL_AUDIT_AUDIT_H

#include "base/arena.h"
#include "emu/emu.h"
#include "sass/sass_code.h"
#include "sol/device.h"
#include "sol/occupancy.h"

typedef struct AuditKernel AuditKernel;
typedef struct AuditProgram AuditProgram;

// ---- the time model's input ----

// The demands of launches of one shape on the GPU, summed over those launches. X(field) are doubles that a rule
// may lower (or raise, where its fix costs something) in a copy. Sectors have 32 bytes.
#define AUDIT_DEMANDS(X)                                                                                     \
  X(dram_read)         /* bytes; modelled */                                                                 \
  X(dram_scattered)    /* of dram_read: by lanes at scattered addresses */                                   \
  X(dram_write)        /* bytes, with what is left dirty in L2 at the end; modelled */                       \
  X(l2_reads)          /* sectors that L1 requested from L2; modelled */                                     \
  X(l2_writes)         /* sectors written to L2 */                                                           \
  X(l2_atomics)        /* sectors of atomics sent to L2 */                                                   \
  X(l2_requests)       /* to L2, each for sectors of one line; modelled */                                   \
  X(l2_packets)        /* sent to L2 by stores */                                                            \
  X(atomic_turns)      /* lanes of atomics on the sector with the most contention */                         \
  X(atomic_clocks)     /* of L2, for the serialised atomics on its busiest 512 bytes */                      \
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
  X(load_waits)       /* times a warp waits for global, local or texture loads (SolEmuFlight.waits) */       \
  X(load_wait_clocks) /* clocks of those waits, each by where its sectors came from; modelled */             \
  X(shared_waits)     /* times a warp waits for shared memory */

typedef struct AuditWork {
  // Per launch; means, where launches of several shapes were added up.
  double launches;
  double graph_launches; // of those: in a CUDA graph, where a launch costs less
  double early_launches; // of those: by programmatic dependent launch
  double blocks;         // of one launch
  double warps_per_block;
  double blocks_per_sm;      // resident blocks: the occupancy
  double blocks_per_cluster; // 0 or 1: no clusters
  double chain; // length of a block's critical path over the path of an average warp; 0: taken as 1
#define AUDIT_DEMAND_FIELD(name) double name;
  AUDIT_DEMANDS(AUDIT_DEMAND_FIELD)
#undef AUDIT_DEMAND_FIELD
} AuditWork;

// ---- the time model's result ----

typedef enum AuditResource {
  AUDIT_LAUNCH, // launch overhead
  AUDIT_DRAM,   // memory bandwidth
  AUDIT_L2,     // L2 bandwidth, and the bandwidth from L2 to an SM
  AUDIT_L1,     // wavefronts of L1 and shared memory, which share a pipe
  AUDIT_ISSUE,  // issue slots and arithmetic pipes
  AUDIT_TENSOR,
  AUDIT_ATOMICS, // contention of atomics
  AUDIT_BLOCKS,  // starting blocks
  AUDIT_LATENCY, // exposed latency: too few bytes in flight, too few blocks, barriers
  AUDIT_RESOURCES
} AuditResource;
const char *audit_resource_name(AuditResource resource); // "DRAM bandwidth"
const char *audit_resource_key(AuditResource resource);  // "dram": JSON's `bound`

typedef struct AuditTime {
  double seconds[AUDIT_RESOURCES]; // of each resource alone, all launches
  double total;                    // launch overhead plus the others combined
  AuditResource bound;             // the largest
  unsigned left_out;               // bit per resource: a device figure is unknown, so its time is taken as 0
  double waves;                    // of blocks per launch: 1.2 means a full wave and a tail of 20%
} AuditTime;

// SOL_ERR_UNKNOWN where the device lacks a required figure. time.c lists the assumptions of the model.
SolStatus audit_time(const SolDevice *device, const AuditWork *work, AuditTime *out, SolError *err);
// Bandwidth of a plain copy, in bytes per second.
double audit_copy_rate(const SolDevice *device);
// The "light": seconds to move the bytes once at the bandwidth of a plain copy, and to launch the kernels.
double audit_light(const SolDevice *device, double bytes, double launches, double graph_launches);

// ---- counts ----

// What the machine executes for a PTX instruction, in warp instructions: issue slots, and those of each pipe.
// Modelled: executions of a basic block of the machine code are estimated from those of the PTX.
#define AUDIT_MACHINE(X)                                                                                     \
  X(issues)                                                                                                  \
  X(fp32) /* with integer products, which run on the same pipe */                                            \
  X(fp16)                                                                                                    \
  X(fp64)                                                                                                    \
  X(integer)                                                                                                 \
  X(special)                                                                                                 \
  X(convert)                                                                                                 \
  X(spills) /* 4-byte accesses to local memory that the PTX does not have */
typedef struct AuditMachine {
#define AUDIT_MACHINE_FIELD(name) double name;
  AUDIT_MACHINE(AUDIT_MACHINE_FIELD)
#undef AUDIT_MACHINE_FIELD
} AuditMachine;

typedef struct AuditInst { // a PTX instruction that was executed
  const char *file;        // the source file by -lineinfo; without it the PTX file
  uint32_t line;
  const char *text; // "ld.global.f32 %f1, [%rd4+16];"
  uint32_t place;   // its position in the kernel's PTX; instructions are in this order
  SolEmuKind kind;  // the memory that it accesses
  SolEmuClass unit; // the pipe that executes it
  uint32_t width;   // bytes a lane accesses; 0: none
  bool async;       // an asynchronous copy (cp.async ...), which uses no registers
  bool is_load;     // a value from global, local or texture memory that a warp may have to wait for
  bool barrier, branch;
  bool waits;            // here a warp waits for the global loads before it
  bool follows;          // a store directly after a store to adjacent addresses
  bool real;             // atomics: on floating-point numbers
  bool read_only;        // ld.global.nc: the compiler knows that no store changes what it reads
  uint64_t base;         // identifies the base register or symbol of its address; 0: none
  int64_t offset;        // bytes from the base
  double flops;          // tensor instructions: of one execution, in units of the fp16 rate
  SolEmuCounts counts;   // of all launches
  SolEmuPattern pattern; // of all launches
  uint32_t ptx_line;     // of the PTX text
  bool by_machine;       // the machine code was read:
  AuditMachine machine;  // of all launches
} AuditInst;

typedef struct AuditLine { // the instructions of one source line
  const char *file;
  uint32_t line;
  const char *source; // its text, filled in by the caller; NULL: the file was not found
  SolEmuCounts counts;
  SolEmuCounts global_load, global_store, atomic, shared, local;
  double active_lanes; // mean, without branches: the lanes of a guarded branch are those that take it
  uint32_t worst;      // insts[worst] has the most sectors per request; UINT32_MAX: none accesses sectors
  double wasted_bytes; // of sectors beyond the fewest possible
  double cost; // seconds of the line's demands alone on the resource that binds; lines are sorted by it
  uint32_t first, count; // its instructions: insts[by_line[first ... first + count)]
} AuditLine;

typedef struct AuditTouch { // distinct bytes of an allocation, counted per launch and summed over launches
  uint64_t address, bytes;
  const char *label;                                     // "argument 2", or "cudaMalloc of 4096 bytes"
  bool variable;                                         // a variable of a module
  double read, written;                                  // distinct bytes
  double read_first;                                     // distinct bytes read before the launch wrote them
  double read_sectors, written_sectors, partial_sectors; // partial: some of the sector's bytes not written
  double launches;                                       // that touched it
} AuditTouch;

typedef struct AuditShape { // launches of one geometry
  uint32_t grid[3], block[3], cluster[3];
  uint64_t dynamic_shared;
  double launches;
  double floor_bytes; // compulsory traffic, summed over launches
  SolOccupancy occupancy;
  AuditWork work;
  AuditTime time;
} AuditShape;

// Kernel `from` writes memory that kernel `to` reads next, with nothing but `from` having written it since.
typedef struct AuditFlow {
  uint32_t from, to; // AuditProgram.kernels
  const char *label; // of the allocation
  double bytes;      // read by `to` of what `from` wrote, summed
  double times;      // launches of `to` that did
  bool only;         // `to` is the only reader so far: fusing saves the write as well
} AuditFlow;

typedef enum AuditSource { AUDIT_FROM_PTXAS, AUDIT_FROM_EMULATOR } AuditSource;

typedef struct AuditFinding {
  const char *rule; // its id in rules.def: "uncoalesced"
  const char *file; // NULL: the whole kernel
  uint32_t line;
  const char *message;  // what is wrong, with figures
  const char *fix;      // what to do about it
  const char *evidence; // the figures it rests on, "stride 4096 B, 32.0 sectors a request"
  double gain;          // speedup: time of the kernel (or kernels) now over its time without the waste
  double saved;         // seconds, of all launches
} AuditFinding;

struct AuditKernel {
  const char *name;  // mangled
  const char *title; // demangled, for output
  uint32_t index;    // in AuditProgram.kernels: order of first launch
  double launches, graph_launches;
  double scale;       // blocks of the grids over blocks that ran: 1 unless sampled; counts are already scaled
  AuditShape *shapes; // each geometry, in order of first launch
  uint32_t shape_count, shape_cap;
  int registers;
  AuditSource registers_from;
  bool machine; // instructions, pipes and merged accesses are those of the machine code; else of the PTX
  uint64_t static_shared;
  uint64_t stack_bytes;       // of a thread, as ptxas reports: spills and local arrays; 0: none or unknown
  uint64_t local_array_bytes; // of that: .local variables of the PTX
  SolEmuFlight flight;        // loads / waits: global loads a warp has in flight when it waits
  SolEmuCounts total, kinds[SOL_EMU_KIND_COUNT];
  double classes[SOL_EMU_CLASS_COUNT]; // executions
  AuditInst *insts;                    // those executed, in the order of the PTX text
  uint32_t inst_count;
  uint32_t *by_line;
  double active_lanes;
  AuditLine *lines; // costliest first
  uint32_t line_count;
  AuditTouch *touches;
  uint32_t touch_count, touch_cap;
  double floor_bytes; // compulsory traffic: each byte read first, once, and each byte written, once
  // From audit_finish:
  SolOccupancy occupancy; // of the shape that takes longest
  AuditWork work;         // of all launches together
  AuditTime time;         // of all launches, summed over the shapes
  double light, tax;      // seconds; time.total / light
  AuditFinding *findings; // in order of seconds saved
  uint32_t finding_count, finding_cap;
  // How its launches ended.
  SolEmuEnd end;       // of the last launch
  const char **faults; // the emulator's findings in the first launch that had any
  uint32_t fault_count;
};

struct AuditProgram {
  const SolDevice *device;
  AuditKernel *kernels; // order of first launch
  uint32_t kernel_count, kernel_cap;
  AuditFlow *flows;
  uint32_t flow_count, flow_cap;
  double time, light, tax;  // of all launches in sequence; from audit_finish
  SolArena arena;           // owns everything that the program points to
  struct AuditState *state; // internal, see inside.h
};

// ---- rules ----

// The time of the kernel's launches with the demands `after` (a changed copy of kernel->work): the demands of
// each shape are changed in proportion. Changes of geometry and of the number of launches count too. The result
// is finite; 0: the model cannot predict it.
double audit_seconds_with(const AuditProgram *program, const AuditKernel *kernel, const AuditWork *after);
// The speedup, kernel->time.total over that time: 1 is no gain.
double audit_gain(const AuditProgram *program, const AuditKernel *kernel, const AuditWork *after);

// Adds a finding to a kernel; texts are copied into the program's arena. `gain` and `saved` are not recomputed.
void audit_find(AuditProgram *program, AuditKernel *kernel, const AuditFinding *finding);

// rules.c: applies every rule to every kernel. audit_finish calls it and then sorts the findings.
void audit_rules_run(AuditProgram *program);

// ---- building ----

// The counts of one launch. Strings and arrays belong to the caller; audit_add copies what it keeps.
typedef struct AuditLaunch {
  const char *name;
  uint32_t unit; // the module: distinguishes kernels of the same name
  uint32_t grid[3], block[3], cluster[3];
  uint64_t dynamic_shared, static_shared, stack_bytes, local_array_bytes;
  int registers;
  AuditSource registers_from;
  const SassCode *code; // set before audit_take: the kernel's machine code; NULL: unknown
  bool machine;         // AuditInst.machine is filled in
  bool graph;           // launched as part of a CUDA graph
  bool early;           // by programmatic dependent launch
  SolEmuEnd end;
  uint64_t blocks; // that ran; counts are scaled from them to the whole grid
  SolEmuFlight flight;
  SolEmuChain chain;
  const AuditInst *insts; // those executed, by rising position; counts of this launch only, unscaled
  uint32_t inst_count;
  const AuditTouch *touches;
  uint32_t touch_count;
  const char *const *faults;
  uint32_t fault_count;
} AuditLaunch;

// Converts the emulator's result of one launch. The caller fills in geometry, registers, stack, unit and graph.
// *out points into the module, the result and the arena.
SolStatus audit_take(const SolPtxModule *ptx, const SolEmuResult *result, SolArena *arena, AuditLaunch *out,
                     SolError *err);

// machine_code.c: what the machine executes for the instructions of a launch; and their counts, where ptxas
// merged or dropped accesses. False: out of memory.
bool audit_machine_code(const SassCode *code, AuditInst *insts, uint32_t count, SolArena *arena);

// SOL_ERR_UNKNOWN where the device lacks a figure that the time model requires.
SolStatus audit_start(AuditProgram *program, const SolDevice *device, SolError *err);
SolStatus audit_add(AuditProgram *program, const AuditLaunch *launch, SolError *err);
// The predicted time of a single launch.
SolStatus audit_launch_time(const SolDevice *device, const AuditLaunch *launch, AuditTime *out,
                            SolError *err);
// Call between launches when something other than a kernel (a copy, the host) wrote or read [address, +bytes):
// fusing the kernels around it then saves less, or nothing.
typedef enum AuditOutside { AUDIT_OUTSIDE_WROTE, AUDIT_OUTSIDE_READ } AuditOutside;
void audit_outside(AuditProgram *program, AuditOutside what, uint64_t address, uint64_t bytes);
// Call once, after the last launch.
SolStatus audit_finish(AuditProgram *program, SolError *err);
void audit_free(AuditProgram *program);

#endif
