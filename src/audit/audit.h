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
#include "machine/arithmetic.h"
#include "machine/replay.h"
#include "machine/work.h"
#include "sass/sass_code.h"
#include "sol/device.h"
#include "sol/occupancy.h"

typedef struct AuditKernel AuditKernel;
typedef struct AuditProgram AuditProgram;

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
  X(spills)       /* 4-byte accesses to local memory that the PTX does not have */                           \
  X(clocks)       /* of its warps, issuing: each instruction with the stall that ptxas put behind it */      \
  X(load_waits)   /* times a warp waits for global or texture loads, by the part of their latency */         \
  X(shuffles)     /* each is a wavefront of the pipe of L1 and shared memory */                              \
  X(shared_waits) /* for shared memory and shuffles */                                                       \
  X(unit_waits)   /* for other results of variable latency: special functions, conversions, constants */     \
  X(reds)         /* atomics on global memory without a result */                                            \
  X(constants)    /* loads of constants that the constant unit serves: not operands, nor uniform ones */     \
  X(uniform_constants) /* loads of constants at uniform registers */                                         \
  X(idle)              /* of the issues, those that are guarded and have no lane */
typedef struct AuditExecuted {
#define AUDIT_MACHINE_FIELD(name) double name;
  AUDIT_MACHINE(AUDIT_MACHINE_FIELD)
#undef AUDIT_MACHINE_FIELD
} AuditExecuted;

typedef struct AuditInst { // a PTX instruction that was executed
  const char *file;        // the source file by -lineinfo; without it the PTX file
  uint32_t line;
  const char *text;       // "ld.global.f32 %f1, [%rd4+16];"
  uint32_t place;         // its position in the kernel's PTX; instructions are in this order
  SolEmuKind kind;        // the memory that it accesses
  SolEmuClass unit;       // the pipe that executes it
  uint32_t width;         // bytes a lane accesses; 0: none
  bool async;             // an asynchronous copy (cp.async ...), which uses no registers
  bool bulk;              // a bulk or tensor copy
  bool tensor;            // a tensor copy
  bool list;              // samples a texture of one dimension
  bool prints, allocates; // calls of printf; of malloc and free
  bool is_load;           // a value from global, local or texture memory that a warp may have to wait for
  bool barrier, branch;
  bool waits;   // here a warp waits for the global loads before it
  bool follows; // a store directly after a store to adjacent addresses
  bool real;    // atomics: on floating-point numbers
  bool
      better; // compare-and-swaps: tried again while a value of their own is less or more than what they read
  bool read_only;        // ld.global.nc: the compiler knows that no store changes what it reads
  bool indexing;         // computes or compares addresses alone, see indexing.c
  const char *inlined;   // positions from the kernel to the function inlined here: "k.cu:9 > a.h:3"; "": none
  uint64_t base;         // identifies the base register or symbol of its address; 0: none
  int64_t offset;        // bytes from the base
  double flops;          // tensor instructions: of one execution, or turn, in units of the fp16 rate
  SolEmuCounts counts;   // of all launches
  SolEmuPattern pattern; // of all launches
  uint32_t ptx_line;     // of the PTX text
  uint8_t
      machine_likeness;   // whether the machine has one instruction for it: 3 surely, 0 not at all. Not sent
  uint8_t size;           // as how many plain instructions the machine takes (sol_emu_size); 0: as one
  bool by_machine;        // the machine code was read:
  AuditExecuted executed; // of all launches
} AuditInst;

typedef struct AuditLine { // the instructions of one source line
  const char *file;
  uint32_t line;
  const char *source; // its text, filled in by the caller; NULL: the file was not found
  SolEmuCounts counts;
  SolEmuCounts global_load, global_store, atomic, shared, local;
  double active_lanes;   // mean, without branches: the lanes of a guarded branch are those that take it
  uint32_t worst;        // insts[worst] has the most sectors per request; UINT32_MAX: none accesses sectors
  double wasted_bytes;   // of sectors beyond the fewest possible
  double cost;           // seconds: its share of the kernel's time (line_costs.c); lines are sorted by it
  const char *inlined;   // as AuditInst.inlined; "": nothing was inlined
  uint32_t first, count; // its instructions: insts[by_line[first ... first + count)]
} AuditLine;

typedef struct AuditTouch { // distinct bytes of an allocation, counted per launch and summed over launches
  uint64_t address, bytes;
  const char *label;                                     // "argument 2", or "cudaMalloc of 4096 bytes"
  bool variable;                                         // a variable of a module
  bool host;                                             // pinned or registered memory of the host
  double read, written;                                  // distinct bytes
  double read_first;                                     // distinct bytes read before the launch wrote them
  double read_sectors, written_sectors, partial_sectors; // partial: some of the sector's bytes not written
  double moved, moved_pages,
      moved_blocks; // of groups of pages of managed memory that the device did not have: SolEmuTouch
  double launches;  // that touched it
} AuditTouch;

typedef struct AuditShape { // launches of one geometry
  uint32_t grid[3], block[3], cluster[3];
  uint64_t dynamic_shared;
  double launches;
  double floor_bytes; // compulsory traffic, summed over launches
  SolOccupancy occupancy;
  MachineWork work;
  MachineTime time;                // each launch priced by itself
  double uneven;                   // that over the time of `work` if all launches were alike
  const MachineTimeline *timeline; // of its first launch; NULL: none was traced
  uint64_t timeline_block;         // the block's number
  bool timeline_cut;               // it is only the beginning of the block's life
} AuditShape;

// Kernel `from` writes memory that kernel `to` reads next, with nothing but `from` having written it since.
typedef struct AuditFlow {
  uint32_t from, to; // AuditProgram.kernels
  const char *label; // of the allocation
  double bytes;      // read by `to` of what `from` wrote, summed
  double times;      // launches of `to` that did
  bool only;         // `to` is the only reader so far: fusing saves the write as well
} AuditFlow;

// What launches of `to` found in L2 of launches of `from`, and wrote back for them.
typedef struct AuditLeft {
  uint32_t from, to;     // AuditProgram.kernels; from UINT32_MAX: a copy, or a launch long before
  double found, written; // bytes; modelled
} AuditLeft;

// Calls of one function of a library that computes (cuBLAS and others), whose kernels nobody sees: what it has to read,
// write and compute at least, and the time that takes at the roof of its dtype.
typedef struct AuditLibraryCall {
  const char *name; // "cublasSgemm_v2"
  double times;
  double read, written, flops; // of all calls; bytes
  SolDtype dtype;              // of the arithmetic
  bool tensor;                 // on tensor cores, where the device has them for it
  double memory, compute,
      seconds; // of all calls: each resource alone; the longer of each call's, and its launch
} AuditLibraryCall;

typedef enum AuditSource { AUDIT_FROM_PTXAS, AUDIT_FROM_EMULATOR } AuditSource;

// The least time of a kernel's launches by what they need, in seconds; audit_light.c says how.
typedef struct AuditLights {
  double memory, compute, launch;
  MachinePipe pipe; // of compute
} AuditLights;

typedef struct AuditFinding {
  const char *rule; // its id in rules.def: "uncoalesced"
  const char *file; // NULL: the whole kernel
  uint32_t line;
  const char *message;  // what is wrong, with figures
  const char *fix;      // what to do about it
  const char *evidence; // the figures it rests on, "stride 4096 B, 32.0 sectors a request"
  const char *assumes;  // what the gain rests on
  double gain;          // speedup: time of the kernel (or kernels) now over its time without the waste
  double saved;         // seconds, of all launches
  double worth;         // seconds by which findings are ordered: `saved`, or what `gain` would save here
  bool at_this_size;    // about the launch or the grid of an input that is too small for the GPU
  bool at_full_size;    // `gain` is that of a grid which fills the GPU, `saved` that of this one
} AuditFinding;

typedef struct AuditFault { // what the emulator found wrong at an instruction
  const char *message;      // all of it in one line
  const char *kind;         // "race"
  const char *file;         // of the source line; "": unknown
  uint32_t line;
  uint32_t function, inst; // as in SolEmuFinding
  uint32_t block[3], thread[3];
  uint64_t address, bytes;
  uint64_t times;    // threads, of all launches
  uint64_t launches; // that had it
} AuditFault;

// Follows the title of a kernel that has the same as an earlier one: "scan<...> (instance 2)".
#define AUDIT_INSTANCE " (instance "

struct AuditKernel {
  const char *name;  // mangled
  const char *title; // demangled, for output; unlike every other kernel's
  uint32_t index;    // in AuditProgram.kernels: order of first launch
  double launches, graph_launches;
  double counted;     // of the launches; the others are billed by one of these (audit_add_again)
  double unlike;      // of those that were not counted: they executed something else
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
  // What L2 carries from launch to launch; bytes, modelled.
  double left_dirty;      // written by these launches, and at the end of each still in L2 alone
  double earlier_written; // of work.dram_write: written back for earlier launches
  double found; // read out of L2, where earlier launches and copies had left them; each once a launch
  // From audit_finish:
  const AuditShape *slowest;       // the shape that takes longest
  SolOccupancy occupancy;          // of that shape
  MachineWork work;                // of all launches together
  MachineTime time;                // of all launches, summed over the shapes
  double parts[MACHINE_RESOURCES]; // of time.total by resource; they add up to it
  double unowned;                  // seconds of time.total that neither a line nor a launch costs
  AuditLights lights;
  double light, tax;      // the longer of memory and compute, and the launches; time.total / light
  AuditFinding *findings; // in order of seconds saved
  uint32_t finding_count, finding_cap;
  AuditFinding small; // the best of those that save too little of the whole; rule NULL: none
  // How its launches ended.
  SolEmuEnd end;      // of the last launch
  AuditFault *faults; // one for each source line and kind
  uint32_t fault_count, fault_cap;
  uint64_t faults_left_out; // beyond the most that are kept
};

struct AuditProgram {
  const SolDevice *device;
  MachineModel machine; // of the device
  AuditKernel *kernels; // order of first launch
  uint32_t kernel_count, kernel_cap;
  AuditFlow *flows;
  uint32_t flow_count, flow_cap;
  AuditLeft *lefts;
  uint32_t left_count, left_cap;
  AuditLibraryCall *calls; // order of first call
  uint32_t call_count, call_cap;
  double time, light, tax;  // of all launches in sequence; from audit_finish
  SolArena arena;           // owns everything that the program points to
  struct AuditState *state; // internal, see inside.h
};

// ---- rules ----

// The time of the kernel's launches with the demands `after` (a changed copy of kernel->work): the demands of
// each shape are changed in proportion. Changes of geometry and of the number of launches count too. The result
// is finite; 0: the model cannot predict it.
double audit_seconds_with(const AuditProgram *program, const AuditKernel *kernel, const MachineWork *after);
// The speedup, kernel->time.total over that time: 1 is no gain.
double audit_gain(const AuditProgram *program, const AuditKernel *kernel, const MachineWork *after);

// What a kernel needs at least, now or after a change.
typedef struct AuditNeeds {
  double bytes, launches, graph_launches;
  double compute; // seconds of arithmetic
  double times;   // as much work: 0 and 1 both mean as much as now
} AuditNeeds;
AuditNeeds audit_needs(const AuditKernel *kernel);
// Seconds that the arithmetic takes at its pipe's peak, but for that of the instructions marked in `without` (NULL: none).
double audit_compute_light(const AuditProgram *program, const AuditKernel *kernel, const uint8_t *without,
                           MachinePipe *pipe);
// The light of these bytes, this arithmetic and these launches, which no change can beat.
double audit_light(const AuditProgram *program, const AuditNeeds *needs);

// Adds a finding to a kernel; texts are copied into the program's arena. `gain` and `saved` are not recomputed.
void audit_find(AuditProgram *program, AuditKernel *kernel, const AuditFinding *finding);

// rules.c: applies every rule to every kernel. audit_finish calls it and then sorts the findings.
void audit_rules_run(AuditProgram *program);

// ---- building ----

// The counts of one launch. Strings and arrays belong to the caller; audit_add copies what it keeps.
typedef struct AuditLaunch {
  const char *name;
  uint32_t unit; // the module: distinguishes kernels of the same name
  uint64_t key;  // others may be billed by this launch: it is kept under this number; 0: none
  uint32_t grid[3], block[3], cluster[3];
  uint64_t dynamic_shared, static_shared, stack_bytes, local_array_bytes;
  int registers;
  AuditSource registers_from;
  const SassCode *code;    // set before audit_take: the kernel's machine code; NULL: unknown
  const SolDevice *device; // the same: the GPU whose latencies its waits have
  bool machine;            // AuditInst.executed is filled in
  bool graph;              // launched as part of a CUDA graph
  bool early;              // by programmatic dependent launch
  bool steady;             // one of many alike on other memory: what it leaves dirty, as much was left to it
  SolEmuEnd end;
  uint64_t blocks; // that ran; counts are scaled from them to the whole grid
  SolEmuFlight flight;
  SolEmuChain chain;
  SolEmuBalance balance;
  const SolEmuTrace *trace; // NULL: none, or `exposed` is known already
  bool replayed;            // without a trace: as in MachineWork
  double exposed;
  uint64_t left_dirty, dirty_limit, earlier_read; // as in SolEmuResult
  SolL2Earlier earlier;
  const AuditInst *insts; // those executed, by rising position; counts of this launch only, unscaled
  uint32_t inst_count;
  const AuditTouch *touches;
  uint32_t touch_count;
  const AuditFault *faults;
  uint32_t fault_count;
  uint64_t faults_left_out;
} AuditLaunch;

// Converts the emulator's result of one launch. The caller fills in geometry, registers, stack, unit and graph.
// *out points into the module, the result and the arena.
SolStatus audit_take(const SolPtxModule *ptx, const SolEmuResult *result, SolArena *arena, AuditLaunch *out,
                     SolError *err);

// machine_code.c: what the machine executes for the instructions of a launch; and their counts, where ptxas
// merged or dropped accesses. False: out of memory.
bool audit_machine_code(const SassCode *code, const SolDevice *device, AuditInst *insts, uint32_t count,
                        SolArena *arena);

// The emulator's findings alone, into .faults; false: out of memory.
bool audit_take_faults(const SolPtxModule *ptx, const SolEmuResult *result, SolArena *arena,
                       AuditLaunch *out);

// SOL_ERR_UNKNOWN where the device lacks a figure that the time model requires.
SolStatus audit_start(AuditProgram *program, const SolDevice *device, SolError *err);
SolStatus audit_add(AuditProgram *program, const AuditLaunch *launch, SolError *err);
// Adds a launch that was not counted, as the last one that was added with this key. SOL_ERR_NOT_FOUND: none was.
typedef struct AuditAgain {
  uint64_t key;
  bool graph;   // launched as part of a CUDA graph
  bool unlike;  // it executed something else than the launch that it is billed by
  bool counted; // it was counted as well, and is the same in every count
  const AuditFault *faults;
  uint32_t fault_count;
  uint64_t faults_left_out;
} AuditAgain;
SolStatus audit_add_again(AuditProgram *program, const AuditAgain *again, SolError *err);
// The predicted time of a single launch; and (NULL: not asked for) the life of its block, with no clocks where none was traced.
SolStatus audit_launch_lived(const SolDevice *device, const AuditLaunch *launch, MachineTime *out,
                             MachineTimeline *line, SolError *err);
SolStatus audit_launch_time(const SolDevice *device, const AuditLaunch *launch, MachineTime *out,
                            SolError *err);
// Call between launches when something other than a kernel (a copy, the host) wrote or read [address, +bytes):
// fusing the kernels around it then saves less, or nothing.
typedef enum AuditOutside { AUDIT_OUTSIDE_WROTE, AUDIT_OUTSIDE_READ } AuditOutside;
void audit_outside(AuditProgram *program, AuditOutside what, uint64_t address, uint64_t bytes);
// One call of a library; `times` and the times are not read.
SolStatus audit_library(AuditProgram *program, const AuditLibraryCall *call, SolError *err);
// The time of one call.
double audit_library_seconds(const MachineModel *model, AuditLibraryCall *call);
// Call once, after the last launch.
SolStatus audit_finish(AuditProgram *program, SolError *err);
void audit_free(AuditProgram *program);

#endif
