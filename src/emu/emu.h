// An emulated GPU: device memory, PTX modules, and kernel launches that count every memory transaction.
//
//   SolEmu *emu;
//   sol_emu_create(&(SolEmuMachine){0}, &emu, &err);                     zeros: the defaults below
//   sol_emu_alloc(emu, bytes, "x", &x, &err); sol_emu_write(emu, x, host, bytes, &err);
//   sol_emu_load(emu, sources, 1, &module, &err);                        unsupported PTX fails here
//   SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "add"), .grid = {64, 1, 1}, .block = {256, 1, 1},
//                          .params = args, .param_bytes = sizeof args};
//   sol_emu_launch(emu, &launch, result, &err);                          result from sol_emu_result_create
//
// Device addresses are the same in every run. A SolEmu may be used by one host thread at a time. A launch runs
// on SolEmuMachine.workers host threads; its counts do not depend on their number.
#ifndef SOL_EMU_H
#define SOL_EMU_H

#include "base/port.h"
#include "mem/l2.h"
#include "ptx/ptx.h"
#include "sol/status.h"

typedef struct SolEmu SolEmu;
typedef struct SolEmuModule SolEmuModule;
typedef struct SolEmuKernel SolEmuKernel;
typedef struct SolEmuResult SolEmuResult;

// ---- the machine ----

// The critical path of each block, summed over the blocks that ran: what its slowest warp executes in sequence,
// and what other warps executed that it waited for. At a barrier of the block or the cluster every warp takes
// over the longest path that reached it. Paths are compared by SolEmuMachine.clocks, which serve for
// nothing else. A wait for loads is as in SolEmuFlight, if the warp has any in flight, and counts as
// beyond L1 if one of them missed L1; of loads from shared or local memory a warp has near_in_flight before it
// waits. Modelled, as L1 is.
#define SOL_EMU_CHAIN(X)                                                                                     \
  X(issues)           /* instructions */                                                                     \
  X(l1_waits)         /* waits for global, local or texture loads that hit L1 */                             \
  X(far_waits)        /* waits for those that missed L1 */                                                   \
  X(shared_waits)     /* waits for shared memory and shuffles */                                             \
  X(other_waits)      /* waits for distributed shared memory */                                              \
  X(barriers)         /* of the block */                                                                     \
  X(cluster_barriers) /* of the cluster */                                                                   \
  X(fences) /* of wider scope than the block, and arrivals at the cluster's barrier that are not relaxed */  \
  X(store_fences) /* of those: with stores to global memory in flight */                                     \
  X(sleeps)       /* clocks of nanosleep, but where a loop waits for others */
typedef struct SolEmuChain {
#define SOL_EMU_CHAIN_FIELD(name) double name;
  SOL_EMU_CHAIN(SOL_EMU_CHAIN_FIELD)
#undef SOL_EMU_CHAIN_FIELD
} SolEmuChain;

// What the warps of one block do in sequence, or of one cluster's blocks: of those in the middle of the grid. Asynchronous
// operations complete what tokens stand for (a phase of an mbarrier, a group, a barrier); a wait goes on when all events with
// its token, but for waits, have completed. Times are not known here: src/machine/replay.h computes them.
typedef enum SolEmuStep {
  SOL_EMU_STEP_END, // nothing but the instructions before it
  SOL_EMU_STEP_LOAD, // a load into registers; count: bytes, detail: 0 L1, 1 beyond it, 2 another block's shared memory
  SOL_EMU_STEP_LOADED, // waits for all loads
  SOL_EMU_STEP_COPY, // an asynchronous copy; count: bytes, 0: those of the copy before it arrive at a further token;
                     // detail: 1 from shared memory to global
  SOL_EMU_STEP_TENSOR, // count: matrix instructions; with a token, of a group of wgmma
  SOL_EMU_STEP_ARRIVE, // at a barrier or an mbarrier; detail: 1 another block's, 2 when the copies before it have arrived,
                       // 3 the cluster's barrier
  SOL_EMU_STEP_WAIT,  // for a token; 0: for nothing; detail: 1 until copies have read their sources
  SOL_EMU_STEP_FENCE, // of wider scope than the block; count: 1 with stores in flight
  SOL_EMU_STEPS
} SolEmuStep;
typedef struct SolEmuEvent {
  uint32_t inst;  // SolEmuResult.insts
  uint32_t token; // 0: none
  uint32_t count;
  uint32_t issues; // instructions since the warp's event before, with its own
  float waits;     // for shared memory and shuffles among them
  uint8_t step, detail;
} SolEmuEvent;
typedef struct SolEmuTrace {
  SolEmuEvent *events;  // warp by warp, of the first block first
  const uint32_t *ends; // by warp: where its events end
  uint32_t warps, warps_per_block, tokens;
  uint64_t block; // the first one's number in the grid
  bool cut;       // there were more events than are kept
} SolEmuTrace;

// How evenly a launch's blocks kept the SMs busy; both 1 where all blocks do the same.
typedef struct SolEmuBalance {
  double longest; // until the last block ended, over what as many equal blocks take
  double busiest; // instructions of the SM that had most of them, over its share of equal blocks
} SolEmuBalance;

// What one of each takes, in clocks, to tell which of several warps arrived last; all 0: one clock each.
typedef struct SolEmuClocks {
#define SOL_EMU_CLOCKS_FIELD(name) uint32_t name;
  SOL_EMU_CHAIN(SOL_EMU_CLOCKS_FIELD)
#undef SOL_EMU_CLOCKS_FIELD
} SolEmuClocks;

// The machine to emulate. A field that is 0 has the default in its comment: an H100's size, and an L2 and a compiler
// of no particular GPU. sol_driver_machine (driver/driver.h) fills in what is known of a device.
typedef struct SolEmuMachine {
  int sms;                 // 132
  int cc;                  // compute capability times ten: 90; %smid and limits do not depend on it
  int blocks_per_sm;       // 0: as many as threads, blocks and shared memory allow
  int max_threads_per_sm;  // 2048
  int max_blocks_per_sm;   // 32
  int cluster_blocks;      // the most resident blocks per SM in a cluster launch; 0: no limit of their own
  uint64_t smem_per_sm;    // 228 KiB
  uint64_t smem_per_block; // 227 KiB
  uint64_t l1_bytes;       // 256 KiB, shared memory included
  uint64_t l1_overhead;    // of those: that hold neither
  SolL2Config l2;         // 50 MiB, all of which may be used, dirty and partly written; 32-byte reads of DRAM
  uint64_t l2_persisting; // the most bytes of L2 that can be set aside for persisting lines: 0
  uint64_t ncu_dirty;     // bytes that ncu's flush before a kernel leaves dirty in L2: 0
  double clock;           // Hz, for %clock and %globaltimer: 1.755e9
  uint64_t mem_bytes;     // device memory that can be allocated: 80 GiB
  uint64_t heap_bytes;    // heap of malloc in kernels: 8 MiB
  uint64_t stack_bytes;   // local memory of a thread: 512 KiB
  int workers;            // host threads that emulate: one per host core
  bool track_init;        // tracks which bytes were written, for SOL_EMU_CHECK_INIT
  // For SolEmuLaunch.observe:
  SolEmuClocks clocks;
  // Of float atomics on shared memory, of which each lane at an address takes a turn: clocks of a warp for its lanes one after
  // another, and of all the warps that contend for an address: 0
  uint32_t swap_clocks, contended_clocks;
  // In latencies of a load: from a store until a polling load finds it, beyond that load; more that a block waits at a barrier of many
  // blocks (an atomic counter that all poll) than at one of two, and for each of the blocks: 0
  double hand_waits, meet_waits, meet_block_waits;
  uint32_t hand_near_clocks,
      hand_near_warp_clocks; // the same of a store to shared memory, in clocks, with that load, and for each warp: 0
  uint32_t constant_bytes; // constant cache of an SM, at most 4096; 0: none is modelled
  uint32_t
      near_in_flight; // loads from shared or local memory that a warp has in flight before it waits; at most 16: 1
  uint32_t
      guard_loads; // instructions that the compiler predicates a branch over, with a global load among them: 0
  uint32_t guard_plain;  // and without: 0
  uint32_t unroll_times; // by which the compiler unrolls a loop that counts: 0, as 1: not at all
  uint32_t unroll_size;  // instructions of such a loop, at most; loads count twice: 0
  uint32_t atomic_bytes; // for SolEmuPattern.queue_...: bytes on which atomics are serialised: 32
  uint32_t l2_slices;    // the same: parts of L2 that serve atomics at the same time: 1024
} SolEmuMachine;

SolStatus sol_emu_create(const SolEmuMachine *machine, SolEmu **out, SolError *err);
void sol_emu_destroy(SolEmu *emu);                       // and its modules; NULL is allowed
const SolEmuMachine *sol_emu_machine(const SolEmu *emu); // with the defaults filled in
void sol_emu_set_workers(SolEmu *emu, int workers);

// ---- memory ----

// `label` names the allocation in findings; it is copied and may be NULL. The contents are zero, but count as
// uninitialised for SOL_EMU_CHECK_INIT.
SolStatus sol_emu_alloc(SolEmu *emu, uint64_t bytes, const char *label, uint64_t *address, SolError *err);
SolStatus sol_emu_free(SolEmu *emu, uint64_t address, SolError *err); // address: returned by sol_emu_alloc
SolStatus sol_emu_write(SolEmu *emu, uint64_t to, const void *from, uint64_t bytes, SolError *err);
SolStatus sol_emu_read(SolEmu *emu, void *to, uint64_t from, uint64_t bytes, SolError *err);
SolStatus sol_emu_fill(SolEmu *emu, uint64_t to, const void *pattern, uint32_t pattern_bytes, uint64_t count,
                       SolError *err);
SolStatus sol_emu_copy(SolEmu *emu, uint64_t to, uint64_t from, uint64_t bytes,
                       SolError *err); // device to device
// For SOL_EMU_CHECK_INIT, after the host has written [to, +bytes) through sol_emu_host: copied from device memory at
// `from`, of which it is as much written; 0: from elsewhere.
void sol_emu_wrote(SolEmu *emu, uint64_t to, uint64_t from, uint64_t bytes);
// The host pointer to [address, address + bytes), or NULL where the range is not inside one allocation.
void *sol_emu_host(SolEmu *emu, uint64_t address, uint64_t bytes);

// Maps host memory (pinned or managed) so that kernels access it at its host address until it is unmapped. It
// must not overlap another mapping.
SolStatus sol_emu_map(SolEmu *emu, void *host, uint64_t bytes, const char *label, SolError *err);
// Of mapped memory that moves between host and device: a byte says of each group of pages, by address, whether the device has it.
// What an observed launch touches of other groups is counted (SolEmuTouch.moved), and the device has them then. The bytes are the
// caller's, the first is of the group that the memory starts in; they have to be there until it is unmapped.
enum { SOL_EMU_PAGE = 4096, SOL_EMU_PAGE_GROUP = 65536, SOL_EMU_PAGE_BLOCK = 2 << 20 };
void sol_emu_watch_pages(SolEmu *emu, uint64_t address, uint8_t *at_device);
// Addresses of the device with nothing behind them, and the caller's memory put at some of them; it is not counted as
// memory of the device. Reserved addresses are never used again.
SolStatus sol_emu_reserve(SolEmu *emu, uint64_t bytes, uint64_t align, uint64_t *address, SolError *err);
SolStatus sol_emu_place(SolEmu *emu, uint64_t address, void *host, uint64_t bytes, bool read_only,
                        SolError *err);
SolStatus sol_emu_unmap(SolEmu *emu, uint64_t address,
                        SolError *err); // where sol_emu_map or sol_emu_place put it
// Moves the bytes of an allocation (its start) to memory of the caller's, which has to be there until it is freed.
SolStatus sol_emu_move(SolEmu *emu, uint64_t address, void *host, SolError *err);
// The allocation that contains an address.
typedef struct SolEmuRange {
  uint64_t address, bytes;
  bool mapped;   // by sol_emu_map: host and kernels use the same address
  bool variable; // a variable of a module
} SolEmuRange;
bool sol_emu_range(const SolEmu *emu, uint64_t address, SolEmuRange *out); // false: no live allocation
// A hash of what is in these allocations (their starts and sizes), and of all constants: where it is the same as before, so are they. 0:
// they are not all there, somebody else may write to them, or kernels use malloc.
uint64_t sol_emu_digest(const SolEmu *emu, const SolEmuRange *ranges, uint32_t count);
uint64_t sol_emu_changes(const SolEmu *emu); // where it is the same as before, no digest has become another
bool sol_emu_owns(const SolEmu *emu, uint64_t address); // the address is, or was, device memory
uint64_t sol_emu_bytes_used(const SolEmu *emu); // device memory allocated; mapped memory is not counted
// Size of the heap of malloc in kernels. It has no effect once a module that calls malloc has been loaded.
void sol_emu_set_heap(SolEmu *emu, uint64_t bytes);
// Sets the allocator of .managed variables: `get` returns zeroed memory that the host and kernels access at the
// same address and that lives as long as the emulator. Without it they are placed in device memory.
void sol_emu_managed_from(SolEmu *emu, void *(*get)(void *ctx, uint64_t bytes), void *ctx);

// A copy or a fill between launches uses [address, +bytes) through L2, which matters to launches with keep_l2;
// memory itself is not changed. SOL_L2_FREES: nobody will read it any more.
void sol_emu_l2_use(SolEmu *emu, SolL2Use use, uint64_t address, uint64_t bytes);

// So many bytes of L2 are for persisting lines of launches' windows, at most what the machine lets (l2_persisting);
// and: none persist any more.
void sol_emu_l2_set_aside(SolEmu *emu, uint64_t bytes);
void sol_emu_l2_reset(SolEmu *emu);

// For l2_dirty_before: what ncu's flush leaves dirty on such a machine.
uint64_t sol_emu_ncu_leaves(const SolEmu *emu);

// ---- modules ----

SolStatus sol_emu_load(SolEmu *emu, const SolPtxSource *sources, int count, SolEmuModule **out,
                       SolError *err);
void sol_emu_unload(SolEmu *emu, SolEmuModule *module);
const SolPtxModule *sol_emu_ptx(const SolEmuModule *module);
SolEmuKernel *sol_emu_kernel(const SolEmuModule *module, const char *name); // NULL: no such kernel
SolEmuKernel *sol_emu_kernel_at(const SolEmuModule *module, int i);         // NULL: i is past the last
const PtxFunction *sol_emu_kernel_function(const SolEmuKernel *kernel);
// 32-bit registers per thread, from the live ranges of the PTX registers: an estimate of what ptxas allocates.
uint32_t sol_emu_kernel_registers(const SolEmuKernel *kernel);
// Address and size of a variable; SOL_ERR_NOT_FOUND.
SolStatus sol_emu_symbol(const SolEmuModule *module, const char *name, uint64_t *address, uint64_t *bytes,
                         SolError *err);

// ---- launches ----

enum SolEmuCheck {
  SOL_EMU_CHECK_INIT = 1, // reads of uninitialised memory
  SOL_EMU_CHECK_RACE =
      2, // data races in shared memory between barriers; lanes that write different values to one address
  SOL_EMU_CHECK_SYNC = 4 // divergent barriers, shuffles from inactive lanes, masks that leave out the caller
};

// Progress of a running launch.
typedef struct SolEmuProgress {
  const char *kernel;    // as the PTX names it
  double done;           // fraction of its blocks that have ended
  uint64_t instructions; // warp instructions executed so far
} SolEmuProgress;

typedef struct SolEmuLaunch {
  const SolEmuKernel *kernel;
  uint32_t grid[3], block[3];
  uint32_t cluster[3]; // zeros: the kernel's own cluster dimensions, or none
  uint64_t dynamic_shared;
  const void *params; // the parameter buffer, laid out as PtxFunction.params describes
  uint64_t param_bytes;
  bool cooperative;
  uint64_t first_block, last_block; // runs only the linear block indices [first, last); both 0: all
  uint64_t max_instructions;        // warp instructions; 0: no limit
  double max_seconds;               // 0: no limit
  const volatile bool *interrupt;   // the launch ends soon after it becomes true; may be NULL
  unsigned checks;                  // SOL_EMU_CHECK_...
  bool keep_going;                  // after memory findings: a bad load returns 0, a bad store is dropped
  // When asynchronous copies and wgmma complete. 0: when they are issued. Else as late as they can, those that a
  // wait completes in an order drawn from this seed: what does not wait for them does not see them.
  uint64_t async_order;
  bool no_counts; // does not model memory: only executions and lanes are counted
  bool observe;   // collects patterns, touches and flight; memory is then always modelled
  // L2 keeps what earlier launches and sol_emu_l2_use left in it. Without this it is empty when the launch starts
  // (what was dirty has been written back, and counts nowhere); so it always is where sample_waves leaves blocks
  // out, and for the launch after that. Launches with no_counts leave L2 as it is.
  bool keep_l2;
  SolL2Window l2_window; // of the launch: an access policy window
  uint64_t
      l2_dirty_before; // without keep_l2: bytes of something else that are dirty in L2 when the launch starts
  // Runs only the blocks of this many waves, spread evenly over the grid; 0: all blocks. A wave is the blocks
  // that are resident at once; clusters stay whole, and cooperative launches run in full. Scale the counts by
  // blocks_in_grid / blocks of the result. Only the blocks that ran change memory; where they wait for a block
  // that was left out, the launch ends with the finding SOL_EMU_DEADLOCK.
  uint32_t sample_waves;
  bool
      children; // the caller runs SolEmuResult.children; without this a kernel that launches ends with a finding
  // A kernel sets the value of a conditional node of a graph, one at a time; NULL: ignored.
  void (*set_conditional)(void *ctx, uint64_t handle, uint32_t value);
  void *conditional_ctx;
  void (*print)(void *ctx, const char *text, size_t length); // output of printf; NULL: discarded
  void *print_ctx;
  // Called on the launching thread from time to time; NULL: no progress is reported.
  void (*progress)(void *ctx, const SolEmuProgress *progress);
  void *progress_ctx;
} SolEmuLaunch;

// Counts of one PTX instruction, or of a whole launch. Those from executions to wavefronts_ideal are exact; the
// rest is modelled.
#define SOL_EMU_COUNTS(X)                                                                                    \
  X(executions)    /* times a warp executed it */                                                            \
  X(lanes)         /* active lanes, summed over the executions */                                            \
  X(divergent)     /* executions of a branch that diverged */                                                \
  X(requests)      /* to global, local, constant or generic memory, with at least one active lane */         \
  X(bytes)         /* requested by active lanes */                                                           \
  X(sectors)       /* distinct 32-byte sectors, summed over requests */                                      \
  X(sectors_ideal) /* fewest that could hold the same bytes */                                               \
  X(lines)         /* distinct 128-byte lines, summed over requests; of constant loads 64-byte lines \
              that their cache lacked, modelled */       \
  X(shared_requests)                                                                                         \
  X(wavefronts) /* of shared memory */                                                                       \
  X(wavefronts_ideal)                                                                                        \
  X(atomics) /* lanes that executed an atomic operation */                                                   \
  X(turns) /* serialised steps: distinct values of a match, distinct words of a constant load, words of a \
              global load in one bank of L1; executions of a division or root with operands for which the \
              machine calls a function; products of tcgen05 in pieces of 16 by 8 */  \
  X(l1_hits) /* sectors */                                                                                   \
  X(l1_misses)                                                                                               \
  X(l2_hits)                                                                                                 \
  X(l2_misses)                                                                                               \
  X(l2_writes)                                                                                               \
  X(l2_requests) /* to L2: each for sectors of one line, or for one partly written sector */                 \
  X(l2_packets)  /* sent to L2 by stores: one per sector, and one more per partly written line */            \
  X(dram_read)   /* bytes */                                                                                 \
  X(dram_write)  /* bytes */
typedef struct SolEmuCounts {
#define SOL_EMU_COUNT_FIELD(name) uint64_t name;
  SOL_EMU_COUNTS(SOL_EMU_COUNT_FIELD)
#undef SOL_EMU_COUNT_FIELD
} SolEmuCounts;

typedef enum SolEmuKind { // the kind of an instruction, for totals by kind
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

// The pipe that executes an instruction, for issue slots by class.
typedef enum SolEmuClass {
  SOL_EMU_CLASS_INT,     // integers, logic, predicates
  SOL_EMU_CLASS_FLOAT,   // f32
  SOL_EMU_CLASS_HALF,    // f16, bf16 and pairs of them
  SOL_EMU_CLASS_DOUBLE,  // f64
  SOL_EMU_CLASS_SPECIAL, // approximate functions: rcp, sqrt, sin, ex2, tanh ...
  SOL_EMU_CLASS_CONVERT, // cvt between kinds of numbers
  SOL_EMU_CLASS_TENSOR,  // mma, wmma.mma, wgmma
  SOL_EMU_CLASS_MEMORY,  // ld, st, atom, copies, textures, ldmatrix ...
  SOL_EMU_CLASS_WARP,    // shuffles, votes, matches, redux
  SOL_EMU_CLASS_BARRIER, // barriers of warps, blocks and clusters, mbarriers, fences
  SOL_EMU_CLASS_CONTROL, // branches, calls, exits
  SOL_EMU_CLASS_NAME,    // moves, parameter loads and address conversions, which ptxas removes
  SOL_EMU_CLASS_COUNT
} SolEmuClass;
SolEmuClass sol_emu_class(const PtxInst *inst);
// As how many plain instructions the machine takes: divisions and roots are made of several. Operands that their short way cannot
// handle (SolEmuCounts.turns) take SOL_EMU_RARE more.
enum { SOL_EMU_RARE = 48 };
uint32_t sol_emu_size(const PtxInst *inst);
const char *sol_emu_class_name(SolEmuClass class); // "float"

// The lanes of one execution, as an example for pictures: in global memory one with the most sectors, in shared memory
// any; of equals that of the block with the lowest index. Exact.
typedef struct SolEmuExample {
  uint64_t block;
  uint32_t mask;    // lanes; 0: no execution was seen
  uint32_t sectors; // 0: shared memory
  uint32_t
      lane[32]; // bytes from the 128-byte line of the lowest address; lanes beyond 4 GiB are not in the mask
} SolEmuExample;
bool sol_emu_example_better(const SolEmuExample *a, const SolEmuExample *b);

// The access pattern of an instruction's lanes over its executions, in global and shared memory (for shared
// memory addresses are offsets in the block's), not in local, constant or parameter memory. Collected with
// SolEmuLaunch.observe. Fields count executions unless their comment says otherwise, and are exact unless it
// says sampled.
//   seen = uniform + strided + scattered
// A stride is constant where every active lane l accesses the first one's address + (l - first) * stride.
// Lanes that access rows (of a tile, for example) have the stride inside the row where at least three quarters
// of neighbouring active lanes have it; they are counted in `rows` as well.
typedef struct SolEmuPattern {
  uint32_t width;        // bytes per lane, all elements of a vector; 0: no execution was seen
  uint64_t seen;         // executions with two or more active lanes that access memory
  int64_t stride;        // the commonest, in bytes between lanes; not 0 unless stride_times is, or for rows
  uint64_t stride_times; // executions with that stride
  uint64_t strided;      // with any constant stride, or in rows
  uint64_t rows;         // of `strided`: in rows
  uint64_t uniform;      // all lanes at one address
  uint64_t scattered;    // neither uniform nor strided
  uint64_t contiguous;   // of `strided`, not in rows: stride = width or -width
  uint64_t misaligned;   // of `contiguous`: lane 0 (active or not) does not start on a 32-byte sector
  int64_t step;          // the commonest distance between a warp's successive executions, in bytes
  uint64_t step_times;   // executions with that step
  uint64_t steps;        // executions after an earlier one of the same warp with the same first active lane
  uint64_t joins;        // global stores: executions directly after a store of the warp to adjacent addresses
  uint64_t same;         // atomics: lanes at the commonest address, summed over all executions
  uint64_t hottest; // global atomics: lanes on the busiest 32-byte sector of the launch. Sectors are hashed
                    // into 1024 bins, so this is an upper bound
  // Global atomics to the busiest slice of L2 (atomic_bytes are hashed into bins like sectors, bins are dealt to slices), summed over requests
  // and lines: lanes at the address that most of them share, where several do or the requests before were there, too, and packets: every
  // eight lanes that are active send one for each of their sectors.
  uint64_t queue_lanes, queue_packets;
  uint64_t queue_slice; // the number of that slice, from 1; 0: no atomics
  // Compare-and-swaps that changed a word of global memory, by lanes, and those of the word that most of them changed.
  uint64_t swapped, swaps;
  uint64_t
      held; // clocks of critical paths from such a swap to the next write of its warp to the same word: of locks
  uint64_t allocation; // global: address of the allocation accessed (SolEmuTouch.address); 0: none
  bool several;        // more than one allocation; `allocation` is the one with the lowest address
  // Loads from global memory whose value is used as f32: lane values examined (all of buffers up to 64 KiB; of
  // larger ones a sample, one in eight 128-byte lines by hash), and how many of them are exactly representable
  // in fp16, in bf16, and zero (which is both).
  uint64_t values, as_fp16, as_bf16, zeros;
  SolEmuExample example;
} SolEmuPattern;

typedef struct SolEmuInstCounts {
  uint32_t function, inst; // SolPtxModule.functions, PtxFunction.insts
  SolEmuCounts counts;
  SolEmuPattern pattern;
  bool waits; // static: a warp waits here for earlier global loads; see SolEmuFlight
  // A store directly after a store to adjacent addresses, without a wait between them: by the code, or mostly as it ran.
  bool follows;
} SolEmuInstCounts;

// The distinct bytes of an allocation in global memory that a launch read or wrote. Exact; several launches are
// added up. Where blocks of one launch race for bytes, read_first may depend on their order.
typedef struct SolEmuTouch {
  uint64_t address, bytes; // the allocation
  char label[40];
  bool variable;            // a variable of a module
  bool host;                // mapped memory that stays with the host: pinned or registered
  uint64_t read;            // bytes read by loads, copies, textures and atomics
  uint64_t written;         // bytes written by stores, copies and atomics
  uint64_t read_first;      // bytes read before the launch wrote them: the compulsory reads
  uint64_t read_sectors;    // 32-byte sectors with at least one byte read
  uint64_t written_sectors; // with at least one byte written
  uint64_t partial_sectors; // of written_sectors: with at least one byte not written
  // Of groups of pages that the device did not have (sol_emu_watch_pages): their bytes, the pages in them that were touched, and
  // the blocks of SOL_EMU_PAGE_BLOCK bytes that they are in.
  uint64_t moved, moved_pages, moved_blocks;
} SolEmuTouch;
// The compulsory traffic of a launch, with ideal caches, is read_first + written, summed over `touches`.

// Loads in flight: an estimate from the PTX, weighted by executions. In each basic block loads are hoisted as
// far as their address operands, stores to the same space (ld.global.nc passes those) and barriers allow, as
// ptxas would. A warp waits at the first instruction that needs a value still in flight; all loads issued
// before it have then arrived. cp.async waits at its wait_group, in equal shares where groups stay pending;
// bulk copies at mbarrier waits, as if one stage were in flight. loads / waits is the number of loads a warp
// has in flight, bytes / waits the number of bytes. ptxas may unroll more, or have registers for fewer.
typedef struct SolEmuFlight {
  uint64_t loads;       // requests: global loads and copies, textures, atomics whose result is used
  uint64_t bytes;       // requested by their lanes
  uint64_t async_bytes; // of `bytes`: by cp.async and bulk copies
  double waits;         // times a warp waited for any of them
} SolEmuFlight;

typedef enum SolEmuFindingKind {
  SOL_EMU_OUT_OF_BOUNDS,
  SOL_EMU_MISALIGNED,
  SOL_EMU_AFTER_FREE,
  SOL_EMU_NULL,
  SOL_EMU_READ_ONLY, // a store to memory that sol_emu_place put there for reads alone
  SOL_EMU_UNINITIALISED,
  SOL_EMU_RACE,
  SOL_EMU_DIVERGENT_BARRIER,
  SOL_EMU_BAD_SYNC,
  SOL_EMU_ASSERTION,
  SOL_EMU_TRAP,
  SOL_EMU_DEADLOCK,
  SOL_EMU_STACK, // stack overflow: recursion too deep, or too much local memory
  SOL_EMU_BAD_CALL,
  SOL_EMU_BAD_USE, // operands that PTX does not allow for the instruction, found at run time
  SOL_EMU_FINDING_KINDS
} SolEmuFindingKind;
const char *sol_emu_finding_name(SolEmuFindingKind kind); // "out of bounds"

typedef struct SolEmuFinding { // the first of its kind at an instruction; `times` counts them all
  SolEmuFindingKind kind;
  uint32_t function, inst; // PTX_NONE: it concerns no instruction
  uint32_t block[3], thread[3];
  uint64_t address, bytes;
  uint64_t times;    // threads
  char message[400]; // the whole finding as one line of text
} SolEmuFinding;

typedef enum SolEmuEnd {
  SOL_EMU_DONE,
  SOL_EMU_FAULT, // a finding ended it
  SOL_EMU_INSTRUCTION_LIMIT,
  SOL_EMU_TIME_LIMIT,
  SOL_EMU_INTERRUPTED
} SolEmuEnd;

typedef struct SolEmuChild {  // a launch by a kernel, to be run after it
  const SolEmuKernel *kernel; // NULL: a copy or a fill
  uint64_t to, from, bytes;   // of a copy; from 0: a fill
  uint8_t value;
  uint32_t grid[3], block[3];
  uint64_t dynamic_shared;
  void *params;
  uint64_t param_bytes, order;
  bool tail; // after all that the others launch
} SolEmuChild;

struct SolEmuResult { // freed with sol_emu_result_free; counts accumulate over launches of the same kernel
  const SolEmuKernel *kernel;
  SolEmuEnd end;
  SolEmuCounts total, kinds[SOL_EMU_KIND_COUNT];
  SolEmuInstCounts *insts; // of the kernel and the functions it may call, in the order of the PTX text
  uint32_t inst_count;
  SolEmuFinding *findings;
  uint32_t finding_count, finding_cap;
  uint64_t findings_dropped;             // those beyond the first 64
  uint64_t blocks, threads;              // that ran
  uint64_t blocks_in_grid;               // that would have run without sample_waves
  uint64_t classes[SOL_EMU_CLASS_COUNT]; // executions, of all launches
  // Filled in where SolEmuLaunch.observe:
  SolEmuTouch *touches; // by rising address
  uint32_t touch_count, touch_cap;
  SolEmuFlight flight;
  SolEmuChain chain;
  SolEmuBalance balance; // of the last launch
  SolEmuTrace trace;     // of the last launch; no events: none was observed
  // Beside the counts of instructions, where memory is modelled; summed over launches, and not scaled for
  // sample_waves. Modelled.
  uint64_t left_dirty;   // bytes that the launch wrote and that at its end are in L2 alone
  uint64_t dirty_limit;  // the most that can be
  SolL2Earlier earlier;  // what it found of earlier launches, and wrote back for them
  uint64_t earlier_read; // bytes read from DRAM to complete sectors that earlier launches wrote in part
  double seconds;        // on the host
  SolEmuChild *children; // in the order in which they are to run
  uint32_t child_count;
};

// Returns SOL_OK also where a finding or a limit ended the launch: check result->end. An error means that the
// launch could not start. `result` is {0}, or the result of earlier launches of the same kernel.
SolStatus sol_emu_launch(SolEmu *emu, const SolEmuLaunch *launch, SolEmuResult *result, SolError *err);
void sol_emu_result_free(SolEmuResult *result); // frees what it points to, not the struct
void sol_emu_counts_add(SolEmuCounts *to, const SolEmuCounts *from);

#endif
