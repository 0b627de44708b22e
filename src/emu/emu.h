// An emulated GPU: memory, modules of PTX, launches that count every memory transaction.
//
//   SolEmu *emu;
//   sol_emu_create(&(SolEmuMachine){0}, &emu, &err);                     zeros: the defaults below
//   sol_emu_alloc(emu, bytes, "x", &x, &err); sol_emu_write(emu, x, host, bytes, &err);
//   sol_emu_load(emu, sources, 1, &module, &err);                        what cannot be run is refused here
//   SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "add"), .grid = {64, 1, 1}, .block = {256, 1, 1},
//                          .params = args, .param_bytes = sizeof args};
//   sol_emu_launch(emu, &launch, result, &err);                          result from sol_emu_result_create
//
// Device addresses are the same in every run. One SolEmu is used by one thread at a time; a launch uses as
// many workers as asked for, and its counts do not depend on how many.
#ifndef SOL_EMU_H
#define SOL_EMU_H

#include "base/port.h"
#include "ptx/ptx.h"
#include "sol/status.h"

typedef struct SolEmu SolEmu;
typedef struct SolEmuModule SolEmuModule;
typedef struct SolEmuKernel SolEmuKernel;
typedef struct SolEmuResult SolEmuResult;

// ---- the machine ----

// Blocks that an SM holds at once, at most, of a launch in clusters, whatever their size: an H200's
// cudaOccupancyMaxActiveClusters says so of blocks of 32 threads, and bench/probe_units.cu finds as many.
enum { SOL_EMU_CLUSTER_BLOCKS = 8 };

typedef struct SolEmuMachine { // 0 in a field: what the comment says
  int sms;                     // 132
  int cc;                      // compute capability times ten: 90; %smid and limits do not depend on it
  int blocks_per_sm;           // 0: as many as threads, blocks and shared memory allow
  int max_threads_per_sm;      // 2048
  int max_blocks_per_sm;       // 32
  uint64_t smem_per_sm;        // 228 KiB
  uint64_t smem_per_block;     // 227 KiB
  uint64_t l1_bytes;           // 256 KiB, shared memory included
  uint64_t l2_bytes;           // 50 MiB
  uint64_t l2_holds;           // bytes of distinct data in it: all
  double clock;                // Hz, for %clock and %globaltimer: 1.755e9
  uint64_t mem_bytes;          // most that may be allocated: 80 GiB
  uint64_t heap_bytes;         // device malloc: 8 MiB
  uint64_t stack_bytes;        // local memory a thread may use: 512 KiB
  int workers;                 // threads that emulate: as many as the host has cores
  bool track_init;             // remembers which bytes were written, for SOL_EMU_CHECK_INIT
} SolEmuMachine;

SolStatus sol_emu_create(const SolEmuMachine *machine, SolEmu **out, SolError *err);
void sol_emu_destroy(SolEmu *emu);                       // its modules too; NULL is fine
const SolEmuMachine *sol_emu_machine(const SolEmu *emu); // defaults filled in
void sol_emu_set_workers(SolEmu *emu, int workers);

// ---- memory ----

// `label` names the allocation in findings; it is copied; NULL is fine. Contents are zero, but count as never
// written for SOL_EMU_CHECK_INIT.
SolStatus sol_emu_alloc(SolEmu *emu, uint64_t bytes, const char *label, uint64_t *address, SolError *err);
SolStatus sol_emu_free(SolEmu *emu, uint64_t address, SolError *err); // address: what sol_emu_alloc gave
SolStatus sol_emu_write(SolEmu *emu, uint64_t to, const void *from, uint64_t bytes, SolError *err);
SolStatus sol_emu_read(SolEmu *emu, void *to, uint64_t from, uint64_t bytes, SolError *err);
SolStatus sol_emu_fill(SolEmu *emu, uint64_t to, const void *pattern, uint32_t pattern_bytes, uint64_t count,
                       SolError *err);
SolStatus sol_emu_copy(SolEmu *emu, uint64_t to, uint64_t from, uint64_t bytes,
                       SolError *err); // device to device
// The host's own view of [address, address + bytes), or NULL where it is not all in one allocation.
void *sol_emu_host(SolEmu *emu, uint64_t address, uint64_t bytes);

// Memory of the host's that kernels reach at its own address, until it is unmapped; it overlaps no other.
SolStatus sol_emu_map(SolEmu *emu, void *host, uint64_t bytes, const char *label, SolError *err);
SolStatus sol_emu_unmap(SolEmu *emu, void *host, SolError *err); // host: what was mapped
// What the allocation around an address is.
typedef struct SolEmuRange {
  uint64_t address, bytes;
  bool mapped;   // host and kernels have the same address for it
  bool variable; // of a module
} SolEmuRange;
bool sol_emu_range(const SolEmu *emu, uint64_t address, SolEmuRange *out); // false: none that lives
bool sol_emu_owns(const SolEmu *emu, uint64_t address); // device memory lies there, or once did
uint64_t sol_emu_bytes_used(const SolEmu *emu);         // by what is not mapped
// Bytes for device malloc; without effect once a module that uses it was loaded.
void sol_emu_set_heap(SolEmu *emu, uint64_t bytes);
// Where .managed variables are put: zeroed memory that the host sees at the address that kernels use, alive
// as long as the emulator. Until this is called they lie with the others.
void sol_emu_managed_from(SolEmu *emu, void *(*get)(void *ctx, uint64_t bytes), void *ctx);

// ---- modules ----

SolStatus sol_emu_load(SolEmu *emu, const SolPtxSource *sources, int count, SolEmuModule **out,
                       SolError *err);
void sol_emu_unload(SolEmu *emu, SolEmuModule *module);
const SolPtxModule *sol_emu_ptx(const SolEmuModule *module);
SolEmuKernel *sol_emu_kernel(const SolEmuModule *module, const char *name); // NULL: no such kernel
SolEmuKernel *sol_emu_kernel_at(const SolEmuModule *module, int i);         // NULL past the last
const PtxFunction *sol_emu_kernel_function(const SolEmuKernel *kernel);
// 32-bit registers a thread takes here, where each lives as long as its value: an estimate of ptxas's number.
uint32_t sol_emu_kernel_registers(const SolEmuKernel *kernel);
// Address and size of a variable; SOL_ERR_NOT_FOUND.
SolStatus sol_emu_symbol(const SolEmuModule *module, const char *name, uint64_t *address, uint64_t *bytes,
                         SolError *err);

// ---- launches ----

enum SolEmuCheck {
  SOL_EMU_CHECK_INIT = 1, // reads of memory never written
  SOL_EMU_CHECK_RACE = 2, // shared memory, between barriers
  SOL_EMU_CHECK_SYNC = 4  // divergent barriers, shuffles out of step
};

// How far a launch is.
typedef struct SolEmuProgress {
  const char *kernel;    // as the PTX names it
  double done;           // share of its blocks that have ended
  uint64_t instructions; // of warps, so far
} SolEmuProgress;

typedef struct SolEmuLaunch {
  const SolEmuKernel *kernel;
  uint32_t grid[3], block[3];
  uint32_t cluster[3]; // zeros: what the kernel asks for, or none
  uint64_t dynamic_shared;
  const void *params; // laid out as PtxFunction.params say
  uint64_t param_bytes;
  bool cooperative;
  uint64_t first_block, last_block; // only these, linear, [first, last); both 0: all
  uint64_t max_instructions;        // warp instructions; 0: no limit
  double max_seconds;               // 0: no limit
  const volatile bool *interrupt;   // becomes true: the launch ends soon; may be NULL
  unsigned checks;                  // SOL_EMU_CHECK_...
  bool keep_going;                  // past findings of memory: a bad load gives 0, a bad store is dropped
  bool no_counts;                   // memory is not modelled: executions and lanes are counted alone
  bool observe;                     // patterns, touches and flight too; memory is modelled in any case
  // Only the blocks of so many waves, spread evenly over the launch; 0: all. A wave is what the machine holds
  // at once, clusters are kept whole, cooperative launches run in full. Scale counts by blocks_in_grid over
  // blocks of the result. Memory is changed by the blocks that ran, alone; where they wait for one that was
  // left out the launch ends with a finding, SOL_EMU_DEADLOCK, that says so.
  uint32_t sample_waves;
  void (*print)(void *ctx, const char *text, size_t length); // what printf wrote; NULL: dropped
  void *print_ctx;
  // Called on the launching thread, between rounds of work; NULL: nobody is told.
  void (*progress)(void *ctx, const SolEmuProgress *progress);
  void *progress_ctx;
} SolEmuLaunch;

// Counts of one PTX instruction, or of a whole launch. Exact: executions to wavefronts_ideal. Modelled: the
// rest.
#define SOL_EMU_COUNTS(X)                                                                                     \
  X(executions)    /* times a warp came by */                                                                 \
  X(lanes)         /* active lanes, summed over those */                                                      \
  X(divergent)     /* branches whose lanes parted */                                                          \
  X(requests)      /* of global, local, constant or generic memory, with at least one active lane */          \
  X(bytes)         /* that active lanes asked for */                                                          \
  X(sectors)       /* distinct 32-byte sectors, summed over requests */                                       \
  X(sectors_ideal) /* fewest that could hold the same bytes */                                                \
  X(lines)         /* distinct 128-byte lines, summed over requests */                                        \
  X(shared_requests)                                                                                          \
  X(wavefronts) /* passes through shared memory */                                                            \
  X(wavefronts_ideal)                                                                                         \
  X(atomics) /* lanes that did an atomic operation */                                                         \
  X(turns)   /* what a unit takes one by one: values of a match, words of a load of constant memory */        \
  X(l1_hits) /* sectors */                                                                                    \
  X(l1_misses)                                                                                                \
  X(l2_hits)                                                                                                  \
  X(l2_misses)                                                                                                \
  X(l2_writes)                                                                                                \
  X(l2_requests) /* to L2: for sectors of one line, or one written in part */                                 \
  X(l2_packets) /* that stores send to L2: one a sector, and one more for a line that is not written whole  \
                  */ \
  X(dram_read)  /* bytes */                                                                                   \
  X(dram_write) /* bytes */
typedef struct SolEmuCounts {
#define SOL_EMU_COUNT_FIELD(name) uint64_t name;
  SOL_EMU_COUNTS(SOL_EMU_COUNT_FIELD)
#undef SOL_EMU_COUNT_FIELD
} SolEmuCounts;

typedef enum SolEmuKind { // of an instruction, for totals by kind
  SOL_EMU_KIND_OTHER,
  SOL_EMU_KIND_GLOBAL_LOAD,
  SOL_EMU_KIND_GLOBAL_STORE,
  SOL_EMU_KIND_LOCAL_LOAD,
  SOL_EMU_KIND_LOCAL_STORE,
  SOL_EMU_KIND_SHARED_LOAD,
  SOL_EMU_KIND_SHARED_STORE,
  SOL_EMU_KIND_CONST_LOAD,
  SOL_EMU_KIND_GLOBAL_ATOMIC,
  SOL_EMU_KIND_SHARED_ATOMIC,
  SOL_EMU_KIND_TEXTURE,
  SOL_EMU_KIND_COUNT
} SolEmuKind;

// What an instruction keeps busy, for issue slots by class.
typedef enum SolEmuClass {
  SOL_EMU_CLASS_INT,     // integers, logic, predicates
  SOL_EMU_CLASS_FLOAT,   // f32
  SOL_EMU_CLASS_HALF,    // f16, bf16 and pairs of them
  SOL_EMU_CLASS_DOUBLE,  // f64
  SOL_EMU_CLASS_SPECIAL, // approximate functions: rcp, sqrt, sin, ex2, tanh ...
  SOL_EMU_CLASS_CONVERT, // cvt between kinds of numbers
  SOL_EMU_CLASS_TENSOR,  // mma, wmma.mma
  SOL_EMU_CLASS_MEMORY,  // ld, st, atom, copies, textures, ldmatrix ...
  SOL_EMU_CLASS_WARP,    // shuffles, votes, matches, redux
  SOL_EMU_CLASS_BARRIER, // barriers of warps, blocks and clusters, mbarriers, fences
  SOL_EMU_CLASS_CONTROL, // branches, calls, exits
  SOL_EMU_CLASS_NAME,    // another name for a value: moves, parameters, kinds of addresses; ptxas drops them
  SOL_EMU_CLASS_COUNT
} SolEmuClass;
SolEmuClass sol_emu_class(const PtxInst *inst);
const char *sol_emu_class_name(SolEmuClass class); // "float"

// How the lanes of an instruction's accesses lay, over its executions. Global and shared memory (addresses
// are offsets in the block's there), not local, constant or parameter memory. Filled in where
// SolEmuLaunch.observe; counts of executions unless it says otherwise. Exact, but for what is said to be
// sampled.
//   seen = uniform + executions with a stride + scattered
// A stride is constant where every active lane l lies at the first one's address + (l - first) * stride.
// Lanes that lie in rows (a tile's, say) have the stride inside the row where at least three quarters of
// neighbouring active lanes have it; they are counted in `rows` as well.
typedef struct SolEmuPattern {
  uint32_t width; // bytes a lane moves, all elements of a vector; 0: nothing was seen
  uint64_t seen;  // with two or more active lanes that access memory
  int64_t stride; // bytes from lane to lane, of the commonest; not 0 unless stride_times is, or in rows
  uint64_t stride_times; // with that one
  uint64_t strided;      // with any constant stride, or in rows
  uint64_t rows;         // of `strided`: in rows
  uint64_t uniform;      // all lanes at one address
  uint64_t scattered;    // none of these
  uint64_t contiguous;   // of `strided`, not in rows: lanes end to end, stride = width or -width
  uint64_t misaligned;   // of `contiguous`: lane 0 (active or not) would not start on a 32-byte sector
  int64_t step;          // bytes between a warp's successive executions: the commonest
  uint64_t step_times;   // with that one
  uint64_t steps;        // that had an earlier one of the same warp, by the same first lane, to compare with
  uint64_t same;    // atomics: lanes at the commonest address, summed over executions (seen or with one lane)
  uint64_t hottest; // global atomics: lanes on the busiest 32-byte sector of the launch; sectors are kept in
                    // 1024 bins by hash, so that many busy ones may share, and this is at most too large
  // Global atomics, of the busiest 512 bytes of the launch (kept in bins as sectors are), summed over
  // requests and lines: lanes beyond the first at the address that most of them have, and distinct addresses,
  // five at most.
  uint64_t queue_lanes, queue_words;
  uint64_t allocation; // global: address of the allocation accessed (SolEmuTouch.address); 0: none
  bool several;        // others too; allocation is the one with the least address
  // Loads from global memory whose value some instruction takes as f32: lane values looked at (all of small
  // buffers, those in one of eight 128-byte lines, by hash, of those over 64 KiB), and how many of them are
  // exactly an fp16, exactly a bf16, and zero (which is both).
  uint64_t values, as_fp16, as_bf16, zeros;
} SolEmuPattern;

typedef struct SolEmuInstCounts {
  uint32_t function, inst; // SolPtxModule.functions, PtxFunction.insts
  SolEmuCounts counts;
  SolEmuPattern pattern;
  bool waits;   // static: here a warp waits for global loads before it; see SolEmuFlight
  bool follows; // static: a store that comes right behind another beside it, no wait between
} SolEmuInstCounts;

// An allocation that a launch read or wrote in global memory, in distinct bytes. Exact; of further launches
// added up, each counting anew. Where blocks of one launch race for bytes, read_first may depend on who wins.
typedef struct SolEmuTouch {
  uint64_t address, bytes; // the allocation
  char label[40];
  bool variable;            // of a module
  uint64_t read;            // by loads, copies, textures and atomics
  uint64_t written;         // by stores, copies and atomics
  uint64_t read_first;      // read before anything in the launch wrote them: what has to come from outside
  uint64_t read_sectors;    // 32-byte sectors with a byte read
  uint64_t written_sectors; // with a byte written
  uint64_t partial_sectors; // of written_sectors: with a byte not written
} SolEmuTouch;
// Each byte once: what a launch with ideal caches would move, read_first + written, summed over `touches`.

// Loads in flight: an estimate from the PTX, weighted by executions. In each basic block loads move up as far
// as the addresses they need, stores to the same space (ld.global.nc passes those) and barriers let them, as
// ptxas would move them. A warp waits where an instruction first needs a value that is still on its way, and
// then all loads before have come. cp.async waits at its wait_group, shared out where that leaves groups
// pending; bulk copies at mbarrier waits, as if one stage were in flight. loads / waits is how many a warp
// has in flight, bytes / waits how many bytes. ptxas may unroll more, or have registers for fewer.
typedef struct SolEmuFlight {
  uint64_t loads;       // requests: global loads and copies, textures, atomics whose result is read
  uint64_t bytes;       // that their lanes asked for
  uint64_t async_bytes; // of `bytes`: by cp.async and bulk copies
  double waits;         // times that a warp waited for any of them
} SolEmuFlight;

// The longest chain of each block, summed over the blocks that ran: what its slowest warp does one after the
// other, and what other warps did that it had to wait for. Warps that meet at a barrier of the block or the
// cluster all go on with the chain of the one that had the longest way to it, by weights that only serve to
// compare (SolEmuChain to clocks: emu/watch/chain.c). A wait for loads is as in SolEmuFlight, where the warp has
// any on their way, and goes beyond L1 if one of them does; of loads from shared or local memory a warp has
// four on their way before it waits. Modelled, as L1 is.
#define SOL_EMU_CHAIN(X)                                                                                     \
  X(issues)       /* instructions */                                                                         \
  X(l1_waits)     /* waits for global, local or texture loads that L1 answered */                            \
  X(far_waits)    /* and for those that went beyond it */                                                    \
  X(shared_waits) /* for shared memory and shuffles */                                                       \
  X(other_waits)  /* for loads from the shared memory of another block of the cluster */                     \
  X(barriers)     /* of the block */                                                                         \
  X(meetings)     /* barriers of the cluster */                                                              \
  X(fences)       /* wider than the block; arriving at the cluster's barrier is one, if it is not relaxed */ \
  X(settles)      /* of those, with stores to global memory on their way */
typedef struct SolEmuChain {
#define SOL_EMU_CHAIN_FIELD(name) double name;
  SOL_EMU_CHAIN(SOL_EMU_CHAIN_FIELD)
#undef SOL_EMU_CHAIN_FIELD
} SolEmuChain;

typedef enum SolEmuFindingKind {
  SOL_EMU_OUT_OF_BOUNDS,
  SOL_EMU_MISALIGNED,
  SOL_EMU_AFTER_FREE,
  SOL_EMU_NULL,
  SOL_EMU_UNINITIALISED,
  SOL_EMU_RACE,
  SOL_EMU_DIVERGENT_BARRIER,
  SOL_EMU_BAD_SYNC,
  SOL_EMU_ASSERTION,
  SOL_EMU_TRAP,
  SOL_EMU_DEADLOCK,
  SOL_EMU_STACK, // too deep a recursion, or too much local memory
  SOL_EMU_BAD_CALL,
  SOL_EMU_BAD_USE, // an instruction's operands break its rules at run time
  SOL_EMU_FINDING_KINDS
} SolEmuFindingKind;
const char *sol_emu_finding_name(SolEmuFindingKind kind); // "out of bounds"

typedef struct SolEmuFinding { // the first of its kind at its instruction, and how many there were
  SolEmuFindingKind kind;
  uint32_t function, inst; // PTX_NONE where no instruction is concerned
  uint32_t block[3], thread[3];
  uint64_t address, bytes;
  uint64_t times;    // threads
  char message[320]; // all of it in words, one line
} SolEmuFinding;

typedef enum SolEmuEnd {
  SOL_EMU_DONE,
  SOL_EMU_FAULT, // a finding ended it
  SOL_EMU_INSTRUCTION_LIMIT,
  SOL_EMU_TIME_LIMIT,
  SOL_EMU_INTERRUPTED
} SolEmuEnd;

struct SolEmuResult { // freed with sol_emu_result_free; counts of further launches of the same kernel add up
  const SolEmuKernel *kernel;
  SolEmuEnd end;
  SolEmuCounts total, kinds[SOL_EMU_KIND_COUNT];
  SolEmuInstCounts *insts; // of the kernel and what it may call, in the order of the text
  uint32_t inst_count;
  SolEmuFinding *findings;
  uint32_t finding_count, finding_cap;
  uint64_t findings_dropped;             // beyond the first 64
  uint64_t blocks, threads;              // that ran
  uint64_t blocks_in_grid;               // that would have without sample_waves
  uint64_t classes[SOL_EMU_CLASS_COUNT]; // executions, of all launches
  // Filled in where SolEmuLaunch.observe:
  SolEmuTouch *touches; // by rising address
  uint32_t touch_count, touch_cap;
  SolEmuFlight flight;
  SolEmuChain chain;
  double seconds; // on the host
};

// Returns SOL_OK also where a finding or a limit ended the launch: result->end says so. Errors are launches
// that could not start. `result` starts as {0} or is what an earlier launch of the same kernel left.
SolStatus sol_emu_launch(SolEmu *emu, const SolEmuLaunch *launch, SolEmuResult *result, SolError *err);
void sol_emu_result_free(SolEmuResult *result); // what it points to
void sol_emu_counts_add(SolEmuCounts *to, const SolEmuCounts *from);

#endif
