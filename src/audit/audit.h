// The bill: what a program's kernels pay for memory, line by line, what they should have paid, how long they
// are predicted to take on a GPU, and what to change first.
//
//   AuditProgram program;
//   audit_start(&program, device, &err);           the GPU that the counts are of
//   audit_take(ptx, &result, &arena, &launch);     one launch, from the emulator; or from the shim's report:
//                                                  audit_wire.h
//   audit_add(&program, &launch, &err);            launches of the same kernel are summed
//   audit_finish(&program, &err);                  times, light, tax, lines; then the rules
//   ... program.kernels[i].time, .lines, .findings ...
//   audit_free(&program);
//
// Everything a rule needs stands in AuditKernel; its gain comes from audit_gain. Counts that the comment does
// not call modelled are exact for the PTX. No files, threads or libc: this folder also builds for wasm.
#ifndef SOL_AUDIT_AUDIT_H
#define SOL_AUDIT_AUDIT_H

#include "base/arena.h"
#include "emu/emu.h"
#include "sol/device.h"
#include "sol/occupancy.h"

typedef struct AuditKernel AuditKernel;
typedef struct AuditProgram AuditProgram;

// ---- the time model's input ----

// What a number of like launches demand of the machine, summed over those launches. X(field): doubles that a
// rule may lower (or raise, where its fix costs something) in a copy. Sectors have 32 bytes.
#define AUDIT_DEMANDS(X)                                                                                     \
  X(dram_read)         /* bytes; modelled */                                                                 \
  X(dram_scattered)    /* of those read: by lanes that lie anywhere */                                       \
  X(dram_write)        /* bytes, with what is left dirty in L2 at the end; modelled */                       \
  X(l2_reads)          /* sectors that L1 asked L2 for; modelled */                                          \
  X(l2_writes)         /* sectors that were sent to L2 */                                                    \
  X(l2_atomics)        /* sectors of atomics sent to L2 */                                                   \
  X(l2_requests)       /* to L2, for sectors of a line; modelled */                                          \
  X(l2_packets)        /* that stores send to L2 */                                                          \
  X(atomic_turns)      /* lanes of atomics on the busiest sector */                                          \
  X(atomic_clocks)     /* of L2, for the atomics on its busiest 512 bytes, one after another */              \
  X(constant_turns)    /* words that constant memory gives one after another */                              \
  X(match_turns)       /* values that matches look for one after another */                                  \
  X(l1_wavefronts)     /* passes of global, local and texture requests through L1, one a clock and SM */     \
  X(shared_wavefronts) /* passes through shared memory, likewise */                                          \
  X(issues)            /* warp instructions of any kind (PTX's) */                                           \
  X(fp32)              /* warp instructions of each pipe (PTX's) */                                          \
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
  // Per launch: means, where launches of several shapes were put together.
  double launches;
  double graph_launches; // of those: in a CUDA graph, which starts them faster
  double early_launches; // of all: may start before their predecessors have ended
  double blocks;         // of one launch
  double warps_per_block;
  double blocks_per_sm;      // that an SM holds at once: the occupancy
  double blocks_per_cluster; // 0 or 1: no clusters
  double chain; // of the slowest warp of a block and those it waits for, over that of a warp on average; 0: 1
#define AUDIT_DEMAND_FIELD(name) double name;
  AUDIT_DEMANDS(AUDIT_DEMAND_FIELD)
#undef AUDIT_DEMAND_FIELD
} AuditWork;

// ---- what the time model says ----

typedef enum AuditResource {
  AUDIT_LAUNCH, // starting kernels
  AUDIT_DRAM,   // memory bandwidth
  AUDIT_L2,     // L2 bandwidth, and what an SM can take from it
  AUDIT_L1,     // passes through L1 and shared memory, which share a pipe
  AUDIT_ISSUE,  // instructions, and the pipes they go to
  AUDIT_TENSOR,
  AUDIT_ATOMICS, // atomics that wait for each other
  AUDIT_BLOCKS,  // starting blocks
  AUDIT_LATENCY, // waiting: too few bytes in flight, too few blocks, barriers
  AUDIT_RESOURCES
} AuditResource;
const char *audit_resource_name(AuditResource resource); // "DRAM bandwidth"
const char *audit_resource_key(AuditResource resource);  // "dram": JSON's `bound`

typedef struct AuditTime {
  double seconds[AUDIT_RESOURCES]; // what each would take alone, all launches
  double total;                    // launch + the others together
  AuditResource bound;             // the largest
  unsigned left_out;               // bit per resource: a figure it takes is unknown, and it counts as nothing
  double waves;                    // of blocks per launch: 1.2 means a second, nearly empty one
} AuditTime;

// SOL_ERR_UNKNOWN where the device lacks a figure it takes. time.c opens with the assumptions.
SolStatus audit_time(const SolDevice *device, const AuditWork *work, AuditTime *out, SolError *err);
// Bytes a second of a plain copy.
double audit_copy_rate(const SolDevice *device);
// Seconds to move so many bytes once at the speed of a plain copy, and to launch so many kernels.
double audit_light(const SolDevice *device, double bytes, double launches, double graph_launches);

// ---- what was counted ----

typedef struct AuditInst { // a PTX instruction that ran: memory, atomic, barrier, branch, or any other
  const char *file;        // the source's, by -lineinfo; the PTX's own where there is none
  uint32_t line;
  const char *text; // "ld.global.f32 %f1, [%rd4+16];"
  uint32_t place;   // in the kernel's text: instructions are in this order
  SolEmuKind kind;  // where its accesses went
  SolEmuClass unit; // what executes it
  uint32_t width;   // bytes a lane accesses; 0: it does not
  bool async;       // cp.async and its like: past the registers
  bool brings;      // a value from global, local or texture memory that a warp may have to wait for
  bool barrier, branch;
  bool waits;            // here a warp waits for the global loads before it
  bool follows;          // a store right behind one to the words beside
  bool real;             // on floating-point numbers; of atomics alone
  bool read_only;        // ld.global.nc: the compiler knows that no store changes what it reads
  uint64_t base;         // of its first address: a register or symbol, by a number of its own; 0: it has none
  int64_t offset;        // bytes from there
  double flops;          // tensor instructions: of one execution, in units of the fp16 rate
  SolEmuCounts counts;   // of all launches
  SolEmuPattern pattern; // likewise
} AuditInst;

typedef struct AuditLine { // the instructions of one source line
  const char *file;
  uint32_t line;
  const char *source; // its text; NULL: the file was not found (the caller fills it in)
  SolEmuCounts counts;
  SolEmuCounts global_load, global_store, atomic, shared, local;
  double active_lanes; // a mean, branches aside: those of a guarded one are the lanes that take it
  uint32_t worst;      // the instruction with most sectors a request: insts[worst]; UINT32_MAX: none has any
  double wasted_bytes; // sectors beyond the fewest possible, in bytes
  double cost;         // seconds the line's demands would take alone on the resource that binds: the order
  uint32_t first, count; // its instructions: insts[by_line[first ... first + count)]
} AuditLine;

typedef struct AuditTouch { // an allocation, summed over the launches, each counting anew
  uint64_t address, bytes;
  const char *label;                                     // "argument 2", or "cudaMalloc of 4096 bytes"
  bool variable;                                         // of a module
  double read, written;                                  // distinct bytes
  double read_first;                                     // distinct bytes read before the launch wrote them
  double read_sectors, written_sectors, partial_sectors; // partial: written, but for some of its bytes
  double launches;                                       // that touched it
} AuditTouch;

typedef struct AuditShape { // launches of one geometry
  uint32_t grid[3], block[3], cluster[3];
  uint64_t dynamic_shared;
  double launches;
  double floor_bytes; // each byte once, summed
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
  bool only;         // nobody else has read it so far: fusing saves the write as well
} AuditFlow;

typedef enum AuditSource { AUDIT_FROM_PTXAS, AUDIT_FROM_EMULATOR } AuditSource;

typedef struct AuditFinding {
  const char *rule; // its id in rules.def: "uncoalesced"
  const char *file; // NULL: the whole kernel
  uint32_t line;
  const char *message;  // what is wrong, with figures
  const char *fix;      // what to do about it
  const char *evidence; // the figures it rests on, "stride 4096 B, 32.0 sectors a request"
  double gain;          // time of the kernel (of the kernels concerned) now over without the waste
  double saved;         // seconds, of all launches
} AuditFinding;

struct AuditKernel {
  const char *name; // as mangled; `title` is for people
  const char *title;
  uint32_t index; // in AuditProgram.kernels: order of first launch
  double launches, graph_launches;
  double scale;       // total blocks over blocks that ran: 1 unless sampled; counts are scaled already
  AuditShape *shapes; // each geometry, in order of first launch
  uint32_t shape_count, shape_cap;
  int registers;
  AuditSource registers_from;
  uint64_t static_shared;
  uint64_t stack_bytes;       // of a thread, as ptxas laid it out: spills and local arrays; 0 unknown or none
  uint64_t local_array_bytes; // of that: the PTX's own .local variables
  SolEmuFlight flight;        // loads / waits: global loads a warp issues before it waits for the first
  SolEmuCounts total, kinds[SOL_EMU_KIND_COUNT];
  double classes[SOL_EMU_CLASS_COUNT]; // executions
  AuditInst *insts;                    // those that ran, in the order of the text
  uint32_t inst_count;
  uint32_t *by_line;
  double active_lanes;
  AuditLine *lines; // costliest first
  uint32_t line_count;
  AuditTouch *touches;
  uint32_t touch_count, touch_cap;
  double floor_bytes; // each byte read first, once, and each byte written, once
  // From audit_finish:
  SolOccupancy occupancy; // of the shape that takes longest
  AuditWork work;         // of all launches together
  AuditTime time;         // likewise, the shapes' summed
  double light, tax;      // seconds; time.total / light
  AuditFinding *findings; // in order of seconds saved
  uint32_t finding_count, finding_cap;
  // How its launches went.
  SolEmuEnd end;       // of the last one
  const char **faults; // messages of the emulator, of the first launch that had any
  uint32_t fault_count;
};

struct AuditProgram {
  const SolDevice *device;
  AuditKernel *kernels; // order of first launch
  uint32_t kernel_count, kernel_cap;
  AuditFlow *flows;
  uint32_t flow_count, flow_cap;
  double time, light, tax;  // of all launches, one after another; from audit_finish
  SolArena arena;           // holds all that is pointed to
  struct AuditState *state; // what flows are found by
};

// ---- rules ----

// The time of the kernel's launches if they demanded `after` (a changed copy of kernel->work): each shape's
// demands are changed in proportion. Geometry and launches count too. Infinity never comes out; 0 where the
// model cannot say.
double audit_seconds_with(const AuditProgram *program, const AuditKernel *kernel, const AuditWork *after);
// kernel->time.total over that: 1 is no gain.
double audit_gain(const AuditProgram *program, const AuditKernel *kernel, const AuditWork *after);

// Adds a finding to a kernel; texts are copied into the program's arena. gain and saved are taken as given.
void audit_find(AuditProgram *program, AuditKernel *kernel, const AuditFinding *finding);

// rules.c: every rule over every kernel; audit_finish calls it, and sorts the findings.
void audit_rules_run(AuditProgram *program);

// ---- building ----

// One launch as counted. Strings and arrays are the caller's; audit_add copies what it keeps.
typedef struct AuditLaunch {
  const char *name;
  uint32_t unit; // tells kernels of one name apart: the module
  uint32_t grid[3], block[3], cluster[3];
  uint64_t dynamic_shared, static_shared, stack_bytes, local_array_bytes;
  int registers;
  AuditSource registers_from;
  bool graph; // launched as part of a CUDA graph
  bool early; // by programmatic dependent launch
  SolEmuEnd end;
  uint64_t blocks; // that ran; the rest of the grid is taken to be like them
  SolEmuFlight flight;
  SolEmuChain chain;
  const AuditInst *insts; // of this launch alone, unscaled; those that ran, by rising place
  uint32_t inst_count;
  const AuditTouch *touches;
  uint32_t touch_count;
  const char *const *faults;
  uint32_t fault_count;
} AuditLaunch;

// What the emulator counted in one launch: all but geometry, registers, stack, unit and graph, which are the
// caller's to fill in. What it points to is the module's, the result's or the arena's.
SolStatus audit_take(const SolPtxModule *ptx, const SolEmuResult *result, SolArena *arena, AuditLaunch *out,
                     SolError *err);

// SOL_ERR_UNKNOWN where the device lacks a figure that the time model takes.
SolStatus audit_start(AuditProgram *program, const SolDevice *device, SolError *err);
SolStatus audit_add(AuditProgram *program, const AuditLaunch *launch, SolError *err);
// One launch alone.
SolStatus audit_launch_time(const SolDevice *device, const AuditLaunch *launch, AuditTime *out,
                            SolError *err);
// Between launches: something other than a kernel wrote, or read, [address, +bytes): what a kernel left there
// is no longer, or not only, the next kernel's.
typedef enum AuditOutside { AUDIT_OUTSIDE_WROTE, AUDIT_OUTSIDE_READ } AuditOutside;
void audit_outside(AuditProgram *program, AuditOutside what, uint64_t address, uint64_t bytes);
// Once, after the last launch.
SolStatus audit_finish(AuditProgram *program, SolError *err);
void audit_free(AuditProgram *program);

#endif
