// The core's data structures: device memory, programs, blocks, launches. Handlers of plain instructions need
// only exec.h.
#ifndef SOL_EMU_STATE_H
#define SOL_EMU_STATE_H

#include "base/arena.h"
#include "base/threads.h"
#include "emu/core/exec.h"
#include "emu/core/fuse.h"
#include "mem/banks.h"
#include "mem/l1.h"
#include "mem/l2.h"

// ---- addresses ----

// Windows of the generic address space. Global memory is below all of them. A 32-bit shared address is an
// offset in the block's own shared memory, or, for distributed shared memory, EMU_RANKED + rank << EMU_RANK_SHIFT plus
// the offset in that block's: as on GPUs the lowest bit of the rank can be cleared to address the even block of a pair.
#define EMU_GLOBAL_BASE   UINT64_C(0x00000a0000000000)
#define EMU_SHARED_WINDOW UINT64_C(0x0000710000000000)
#define EMU_LOCAL_WINDOW  UINT64_C(0x0000720000000000)
#define EMU_PARAM_WINDOW  UINT64_C(0x0000730000000000)
#define EMU_CODE_WINDOW   UINT64_C(0x0000740000000000)
#define EMU_LOCAL_BILLED  UINT64_C(0x0000750000000000) // addresses of local memory in the cache model
#define EMU_OTHERS_BILLED UINT64_C(0x0000760000000000) // in the cache model: memory of nobody's kernels
#define EMU_WINDOW_BYTES  UINT64_C(0x0000010000000000)
enum { EMU_RANK_SHIFT = 24, EMU_CODE_STEP = 16, EMU_MAX_RANKS = 16, EMU_RANKED = EMU_MAX_RANKS };

enum { EMU_ALIGN = 512, EMU_GAP = 4096 }; // of allocations, and the least distance between two
typedef struct EmuAlloc {
  uint64_t base, size;
  uint8_t *host;              // host pointer to its bytes; NULL once freed
  uint8_t *block;             // the host allocation that contains them
  uint8_t *init;              // a bit per byte written; NULL: not tracked
  bool freed, heap, constant; // heap: malloc in kernels allocates from it
  bool mapped, variable;      // mapped host memory; a variable of a module
  bool placed;                // the caller's memory at a reserved address
  bool read_only;             // stores fault
  struct EmuHeap *pieces;     // of a heap; NULL until malloc is called
  uint64_t freed_at;          // SolEmu.frees when it was freed
  uint8_t *at_device;         // sol_emu_watch_pages; NULL: its pages do not move
  struct EmuMaps *maps;       // bytes touched by the running launch; NULL: none, or not observed
  char label[40];
} EmuAlloc;

typedef struct EmuSpare { // memory kept for reuse
  struct EmuSpare *next;
} EmuSpare;

struct SolEmu {
  SolEmuMachine machine;
  EmuAlloc **allocs; // by rising base
  uint32_t alloc_count, alloc_cap;
  uint64_t next_base, bytes_used;
  uint64_t frees, next_sweep; // allocations freed so far; the count at which the oldest are dropped
  SolSpin lock;               // of malloc in kernels
  EmuAlloc *heap;             // of malloc in kernels; NULL until a module uses it
  SolEmuModule *modules;
  struct EmuTextures *textures; // of ops_texture.c
  uint64_t launches;
  uint64_t changes;                            // times that anybody may have written to memory
  void *(*managed)(void *ctx, uint64_t bytes); // sol_emu_managed_from
  void *managed_ctx;
  void *cache_memory; // the state of the L1s, and the logs
  size_t cache_bytes;
  SolL2 *l2; // of kept_l2.c; NULL until a launch counts
  void *l2_memory;
  uint64_t l2_aside; // bytes of it for lines that persist
  bool l2_filled;    // it holds what earlier launches and copies left
  void *sm_memory;   // of EmuSm
  size_t sm_bytes;
  int pool_workers;
  SolPool *pool;               // of workers, from the first launch that needs more than one; NULL: none did
  struct EmuSpare *spare_maps; // of touch.c, for the next launch
  uint32_t spare_map_count;
};

// The allocation that contains the address, also if it was freed; NULL: none.
EmuAlloc *emu_find_alloc(const SolEmu *emu, uint64_t address);
EmuAlloc *emu_nearest_alloc(const SolEmu *emu, uint64_t address); // NULL: there are no allocations
EmuAlloc *emu_add_alloc(SolEmu *emu, uint64_t bytes, const char *label);
void emu_drop_alloc(SolEmu *emu, EmuAlloc *alloc);
// map.c: inserts it in the order of addresses; emu_reserve_alloc must have made room.
void emu_insert_alloc(SolEmu *emu, EmuAlloc *alloc);
bool emu_reserve_alloc(SolEmu *emu); // makes room for one more; false: out of memory
enum { EMU_DEALS = 8 };              // ways to deal memory out to the slices of L2
enum { EMU_FREED_KEPT = 4096 };      // freed allocations that are kept to recognise a use after free
EmuAlloc *emu_add_managed(SolEmu *emu, uint64_t bytes, const char *label);

// pages_*.c: requests large pages for new memory that will all be used: kernels stream through whole buffers,
// and TLB misses on small pages cost as much as the accesses.
void emu_use_large_pages(void *memory, size_t bytes);
uint64_t emu_host_bytes(void); // memory of the host

// ---- programs ----

typedef enum EmuConstKind {
  EMU_CONST_VALUE,
  EMU_CONST_PARAM,
  EMU_CONST_SREG,
  EMU_CONST_DYNAMIC
} EmuConstKind;
typedef struct EmuConst {
  uint8_t kind, lane_bytes;
  uint8_t load_bytes; // PARAM: bytes in the buffer
  bool is_signed;
  uint32_t offset; // of the row in EMU_BANK_LAUNCH
  uint64_t value;  // VALUE; PARAM: offset in the buffer; SREG: PtxSreg, its number << 16
} EmuConst;

typedef struct EmuFunction {
  const PtxFunction *fn;
  uint32_t index;      // SolPtxModule.functions
  uint32_t first, end; // pcs; at `end` an implicit return
  uint32_t reg_bytes;
  uint32_t param_skip,
      param_stride;      // bytes of parameters outside the frame (a kernel's own); bytes inside it
  const EmuLoc *reg_loc; // of each register
  EmuLoc spare;          // a row for results that are never read
  uint64_t local_bytes;  // of a call: .local variables, then the parameters where `addressed`
  uint64_t param_home;   // where those are, from the call's first local address on
  bool addressed;        // the address of a parameter is taken, which is an address in local memory
} EmuFunction;

typedef struct EmuProgram {
  SolArena arena;
  SolEmuModule *module;
  EmuFunction *functions; // the kernel first
  uint32_t function_count;
  uint32_t *function_of; // by SolPtxModule.functions: index in `functions`, or PTX_NONE
  EmuInst *code;
  EmuInst
      *bare; // what launches without counts execute (fuse.h); run NULL: nothing, for `target` instructions
  const PtxInst **source; // by pc; NULL: an implicit return
  uint16_t
      *straight; // by pc: so many instructions from it on are plain (lower.c), and no lanes meet between them
  uint32_t count;
  EmuConst *consts;
  uint32_t const_count, const_cap, const_bytes;
  uint32_t shape_count; // ld and st
  uint64_t local_bytes; // local memory that a thread starts with
  uint64_t shared_static;
  bool polls;                 // blocks may wait for others: what they count then depends on when they run
  bool pairs;                 // has cta_group::2: addresses of shared variables hold the rank
  bool dynamic_calls;         // indirect or recursive: the depth of the stack is not known
  bool brief;                 // its last launch was over before another worker would have been awake
  struct EmuStatics *statics; // of observe.h; NULL until a launch is observed
} EmuProgram;

struct SolEmuKernel {
  SolEmuModule *module;
  const PtxFunction *fn;
  EmuProgram *program;
};

struct SolEmuModule {
  SolEmu *emu;
  SolEmuModule *next;
  SolPtxModule *ptx;
  uint64_t *address; // by symbol: of GLOBAL and CONST
  EmuAlloc **alloc;
  SolEmuKernel *kernels;
  uint32_t kernel_count;
};

SolStatus emu_lower(SolEmuModule *module, uint32_t function, EmuProgram **out, SolError *err);
void emu_free_program(EmuProgram *program);
// Assigns a location to each register of a function. False: out of memory.
bool emu_assign_registers(const PtxFunction *fn, SolArena *arena, EmuLoc *loc, uint32_t *bytes);

const EmuFunction *emu_function_at(const EmuProgram *program, uint32_t pc);

// Rows of the block's and the warp's banks, 128 bytes each.
enum {
  EMU_ROW_CTAID_X,
  EMU_ROW_CTAID_Y,
  EMU_ROW_CTAID_Z,
  EMU_ROW_CLUSTERID_X,
  EMU_ROW_CLUSTERID_Y,
  EMU_ROW_CLUSTERID_Z,
  EMU_ROW_RANK_X,
  EMU_ROW_RANK_Y,
  EMU_ROW_RANK_Z,
  EMU_ROW_RANK,
  EMU_ROW_SMID,
  EMU_BLOCK_ROWS
};
enum { EMU_ROW_TID_X, EMU_ROW_TID_Y, EMU_ROW_TID_Z, EMU_ROW_WARPID, EMU_WARP_ROWS };
enum { EMU_ROW_BYTES = 128 };

// A call's operands: instruction.more.
typedef struct EmuMove { // one argument or result
  EmuLoc loc;            // of a register or immediate; where `in_frame`, none
  bool in_frame;
  uint32_t offset; // in the caller's frame of parameters
  uint32_t bytes;
} EmuMove;
typedef struct EmuCall {
  uint32_t function; // Program.functions; PTX_NONE: indirect, address in a
  const EmuMove *args, *results;
  uint32_t arg_count, result_count;
  const PtxPrototype *prototype;
} EmuCall;

// ---- launches ----

enum { EMU_BARRIERS = 16, EMU_MAX_WARPS = 32 };

typedef struct EmuBarrier {
  uint32_t expected;               // threads; 0: the block's
  uint32_t warps;                  // that have arrived with some lane
  uint32_t arrived[EMU_MAX_WARPS]; // lanes
  uint32_t popc;                   // barrier.red: lanes whose predicate is true
  uint32_t asked;                  // barrier.red: lanes that take part
} EmuBarrier;

struct EmuBlock {
  struct EmuUnit *unit;
  uint64_t id; // linear
  uint32_t ctaid[3], rank;
  uint8_t *shared;
  uint64_t shared_bytes;
  EmuWarp *warps;
  uint32_t warp_count, warps_live, turn;
  uint8_t *consts; // EMU_BANK_BLOCK
  uint8_t *warp_consts;
  struct EmuPath *paths;      // chain.c: one per warp, then one per barrier; NULL: not observed
  const SolEmuClocks *clocks; // by which paths are compared
  uint64_t *steps;            // address of each instruction's last access, by warp; NULL: not observed
  uint8_t **local;            // local memory by warp; NULL until used
  uint64_t *local_cap;        // bytes per thread in it
  uint32_t slot;              // of its SM, for local addresses
  struct EmuShadow *shadow;   // for race and initialisation checks on shared memory
  struct EmuTmem *tmem;       // tensor memory (tmem.h); NULL until used
  EmuBarrier barriers[EMU_BARRIERS];
  uint32_t arrived_at; // the barriers at which some have arrived, a bit each
  EmuBlock *next;      // free list
  void *memory;        // one allocation for all but local memory and fibers
};

typedef struct EmuTrace EmuTrace;

typedef struct EmuUnitWork {
  uint64_t path, instructions; // of its critical path, as chain.c weighs it; of all its warps
} EmuUnitWork;

typedef struct EmuUnit { // a cluster, or a block without one; runs on one worker at a time
  EmuBlock **blocks;
  uint32_t count, blocks_live, turn;
  bool cluster_arrived; // some have, at its barrier, and were not released yet
  uint64_t id;
  uint64_t number; // in the order in which units start
  uint64_t instructions;
  uint32_t slot; // on its SM
  struct EmuUnit *next;
  // async.c: asynchronous operations that are not complete, the last one's `next`, and what draws their order.
  EmuAsync *asyncs, **last_async;
  uint32_t async_count;
  uint64_t random;
  struct EmuTrace *trace; // of trace.h; NULL: it is not the one that is traced
  uint64_t since;         // clocks of the launch when it started, where units take work (watch/takes.c)
} EmuUnit;

enum { EMU_CONST_LINE = 64, EMU_CONST_SETS = 16, EMU_CONST_WAYS = 4 }; // at most: 4 KiB

typedef struct EmuSm {
  _Alignas(EMU_APART) EmuUnit *units; // resident, in order
  uint32_t resident;
  uint64_t next_unit;
  uint64_t clock; // warp instructions so far
  SolL1 l1;       // created when the SM first runs, by its worker
  SolLog *log;    // the worker's, while the SM runs
  void *l1_memory;
  SolRecord *records; // the sorted log, until it is drained into L2
  uint32_t index;
  bool full, done; // the log is full; all units have ended
  bool by_turns;   // its resident blocks run by turns, not one after another
  uint64_t freed;  // EmuUnit.since of a unit that starts now
  // 1 + the lines of constant memory in the cache; of a set, the newest first
  uint32_t constants[EMU_CONST_SETS][EMU_CONST_WAYS];
} EmuSm;

struct EmuRun {
  SolEmu *emu;
  const SolEmuLaunch *launch;
  const EmuProgram *program;
  SolEmuResult *result;
  EmuAlloc *workspace; // of cooperative groups; NULL: not a cooperative launch
  void *const_memory, *worker_memory;
  uint8_t *consts; // EMU_BANK_LAUNCH
  uint8_t *params; // a copy of the parameters, param_room bytes
  uint64_t param_room;
  uint32_t grid[3], block[3], cluster[3], cluster_size;
  uint32_t threads, warps; // of a block
  uint64_t shared_bytes, dynamic_offset, unit_count, first_unit, local_bytes;
  uint32_t units_per_sm, sm_count;
  uint32_t sample_waves;  // 0: all units run; unit_count is the number of those that do
  uint64_t units_in_grid; // unit_count without sampling
  bool explicit_cluster;
  EmuSm *sms;
  SolLog *logs;   // one per SM
  size_t l1_size; // of its memory
  uint64_t l1_bytes;
  bool l2_kept, l2_started; // L2 keeps what was in it; its shards are ready for this launch
  EmuCtx *workers;
  uint32_t worker_count;
  double started;
  bool counting, checking; // models the memory hierarchy; keeps shadow memory for the checks
  bool bare;               // neither
  bool observing;          // collects patterns and touches
  bool by_turns;           // so do those of all SMs, from the start
  int32_t quantum;         // instructions of a warp's time slice
  const struct EmuStatics *statics;
  struct EmuTrace *trace;   // of trace.h; NULL: not observed
  EmuUnitWork *units;       // by EmuUnit.number: of those that ended; NULL: not observed
  struct EmuWaited *waited; // of observe.h: addresses that lanes wait for; NULL: none have
  int stop;                 // SolEmuEnd, or 0
  // Written by workers; on a page of its own, as the fields above are read by all of them.
  _Alignas(EMU_APART) uint32_t next_sm;
  SolSpin lock, print_lock; // of findings; of printing
  uint64_t instructions;
  struct EmuMaps *touched;   // of all allocations touched
  struct EmuChild *children; // launched by its threads, or about to be
  uint64_t children_launched;
  bool progress; // in this round a warp executed something else than a spin loop
  // Where blocks take their work from a counter (watch/takes.c): clocks up to which they may, and of the first that has to wait (UINT64_MAX:
  // none).
  bool takes;
  uint64_t horizon, held_at;
  uint32_t
      atomic_slices[EMU_DEALS]; // of L2: those with most atomics, one for each way to deal memory out to them
};

// The lane addresses of an ld or st relative to its first active lane, as last executed, and what was computed
// from them: see shape.h.
enum { EMU_SHAPES = 1024 }; // further ld and st share entries
typedef struct EmuShape {
  _Alignas(64) int32_t delta[EMU_LANES]; // bytes from the first active lane
  _Alignas(64) int32_t source[EMU_FUSED_VARY][EMU_LANES];
  uint32_t index;    // of the instruction; UINT32_MAX: none
  uint32_t mask;     // active lanes
  int32_t low, high; // least and greatest delta
  bool row;          // all lanes are active and contiguous
  uint8_t rows,
      equals; // all are active, and so many in a row contiguous, or at one address: 16 or 8 of them, or 0; equals: 32
  // Where accesses are not counted: the place of the last access of this shape, of which it is known that all lanes may be so
  // many bytes below or above it. host NULL: not known.
  uint8_t *host;
  const uint8_t *before; // the last one's
  int64_t offset;        // EmuInst.offset of that access
  uint64_t below, above;
  // Of one that computes its address itself (fuse.h): the distances of what its lanes start from, and the least and greatest of the
  // narrow part of the address.
  bool fused;
  int64_t narrow_low, narrow_high;
  bool observed; // EmuSite.now is of this shape
  bool counted;  // the fields below are valid for first addresses that end in `ends`
  uint8_t ends;
  uint16_t wavefronts, wavefronts_ideal; // shared memory
  uint64_t line;                         // global memory: the first lane's line, for which `coalesced` holds
  SolCoalesced *coalesced;
} EmuShape;

// Instructions in a row that a warp executed together add to the first, and take away behind the last: the sum over all
// instructions up to one is how often that one was executed.
typedef struct EmuStretch {
  uint64_t executions, lanes;
} EmuStretch;

typedef struct EmuWorker { // EmuCtx.more
  EmuFrame **free_frames;  // by Program.functions
  EmuUnit *free_units;
  EmuBlock *free_blocks;
  EmuFiber *free_fibers;     // with the room of their entries
  SolEmuCounts *idle_counts; // what fibers that only wait would add to EmuCtx.counts
  EmuAlloc **last;           // by EmuInst.index: the allocation of its last access
  EmuSm *sm;
  EmuStretch *stretches; // by EmuInst.index
  uint32_t
      since; // the warp has executed the instructions from this one to the running one, and no others between
  SolL1Counts *l1_counts; // by EmuInst.index
  SolL2Counts *l2_counts; // by EmuInst.index, and one more for what belongs to none
  SolCoalesced coalesced;
  SolLog log;             // of the running SM
  SolRecord *records;     // its memory: shared by the worker's SMs, so that it stays in the host's cache
  EmuShape *shapes;       // by EmuInst.f of ld and st
  struct EmuSite *sites;  // of observe.h, by EmuStatics.site
  struct EmuPath *chains; // of observe.h: those of the blocks that ended, summed; NULL: not observed
  void *memory;           // of the worker itself
  void *shape_memory;
  uint64_t instructions;        // not yet added to EmuRun.instructions
  uint64_t effort, turn_effort; // emu_spend: since the clock was last read; in this time slice
  uint64_t units_done;
  uint64_t changes; // atomics, mbarriers and barriers that changed state visible to other warps
  uint64_t idles;   // observed: polls in vain that were executed, without what needs their value
  uint32_t turns;   // time slices of warps since the clock was last read
  bool progress;
  _Alignas(64) int32_t on[EMU_LANES];
} EmuWorker;
static inline EmuWorker *emu_worker(const EmuCtx *x) {
  return (EmuWorker *)x->more;
}

// Charges an instruction that moves many bytes, or takes as long: the warp's time slice ends soon, so that the
// launch's time limit is kept.
enum { EMU_EFFORT = 1 << 26 };
static inline void emu_spend(EmuCtx *x, uint64_t bytes) {
  EmuWorker *w = emu_worker(x);
  w->effort += bytes;
  w->turn_effort += bytes;
  if (w->turn_effort >= EMU_EFFORT) x->budget = 0;
}

// control.c
bool emu_push(EmuFiber *f, EmuEntry entry);
void emu_load_top(EmuCtx *x);
void emu_store_top(EmuCtx *x);
void emu_reconverge(
    EmuCtx *x); // pops entries at their reconvergence point or without lanes; may end the fiber
void emu_end_lanes(EmuCtx *x, uint32_t mask);
EmuFrame *emu_new_frame(EmuCtx *x, uint32_t function, EmuFrame *caller);
void emu_release_frame(EmuCtx *x, EmuFrame *frame);
bool emu_return(EmuCtx *x, uint32_t mask);
// fiber.c
EmuFiber *emu_new_fiber(EmuCtx *x, EmuWarp *warp);
// Keeps only `lanes` in the running fiber; its other lanes continue as a new fiber. False: out of memory.
bool emu_split(EmuCtx *x, uint32_t lanes);
void emu_merge(EmuCtx *x, EmuWarp *warp); // merges fibers with equal SIMT stacks
void emu_sweep(EmuCtx *x, EmuWarp *warp); // frees fibers that have ended
// Releases the fibers at a .sync instruction whose members have all arrived; with `force`, for a warp that can
// make no progress otherwise, also those that wait for lanes which never arrive. True: some were released.
bool emu_release_synced(EmuCtx *x, EmuWarp *warp, bool force);
// ops_barrier.c
void emu_release_barriers(EmuCtx *x, EmuBlock *block); // call after lanes have exited
void emu_release_cluster(EmuUnit *unit);
// block.c
EmuUnit *emu_start_unit(EmuCtx *x, EmuSm *sm, uint64_t unit, uint32_t slot);
void emu_end_unit(EmuCtx *x, EmuUnit *unit);
void emu_free_worker(EmuCtx *x);
bool emu_grow_local(EmuCtx *x, EmuBlock *block, uint32_t warp, uint64_t bytes);
void emu_fill_consts(EmuRun *run);
// check.c: shadow memory of shared memory
void emu_shadow_barrier(EmuBlock *block);
void emu_shadow_warp_barrier(EmuBlock *block, uint32_t warp);
void emu_shadow_reset(EmuBlock *block);
void emu_shadow_free(EmuBlock *block);
typedef enum EmuUse { // strong (volatile, relaxed ...) accesses do not race with each other or with atomics
  EMU_USE_LOAD,
  EMU_USE_STORE,
  EMU_USE_ATOMIC,
  EMU_USE_STRONG_LOAD,
  EMU_USE_STRONG_STORE
} EmuUse;
void emu_check_access(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, EmuUse use);
// The values that lanes write, `stride` bytes apart: different ones to one address are a race.
void emu_check_values(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes,
                      const uint8_t *values, size_t stride);
// The same for one lane's access of any length, inside one allocation or one block's shared memory; address: in
// global memory.
void emu_check_bulk(EmuCtx *x, const EmuInst *i, int lane, const uint8_t *host, uint64_t address,
                    uint64_t bytes, EmuUse use);
// access.c
// The host pointer to `bytes` > 0 bytes that one lane accesses in space PTX_SPACE_... They must be aligned to
// `align` and inside one allocation, or inside the block's shared, the thread's local or the launch's parameter
// memory; else a finding is reported and the result is NULL.
uint8_t *emu_range(EmuCtx *x, const EmuInst *i, int lane, uint64_t address, int space, uint64_t bytes,
                   uint32_t align, bool store);
void emu_fault(EmuCtx *x);       // after a finding: ends the launch, unless it has keep_going
enum { EMU_LOG_RESERVE = 4096 }; // records that must be free before an instruction: a bulk copy adds many
void emu_count_as(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, SolMemOp op,
                  SolSharedOp shared);
void emu_count_copy(EmuCtx *x, const EmuInst *i, const EmuAccess *from, SolMemOp op); // cp.async
void emu_count_shape(EmuCtx *x, const EmuInst *i, EmuShape *shape, uint64_t first, SolMemOp op,
                     SolSharedOp shared);
void emu_log_room(EmuCtx *x);
// kept_l2.c
SolStatus emu_l2_open(EmuRun *run, SolError *err);
void emu_l2_start_shard(EmuRun *run, uint32_t shard); // before the launch's first traffic
void emu_l2_result(EmuRun *run);
// grid.c
SolStatus emu_lay_out(EmuRun *run, SolError *err);   // checks the launch's dimensions and sizes
uint64_t emu_unit_at(const EmuRun *run, uint64_t n); // index in the grid of the n-th unit that runs
// run.c
enum {
  EMU_QUANTUM = 4096,
  EMU_SHORT_QUANTUM = 128
}; // of EmuRun.quantum; the short one where blocks run by turns
typedef enum EmuTurn { EMU_TURN_MORE, EMU_TURN_STUCK, EMU_TURN_DONE, EMU_TURN_YIELD } EmuTurn;
EmuTurn emu_run_unit(EmuCtx *x, EmuUnit *unit);
void emu_stop(EmuRun *run, SolEmuEnd end);
bool emu_stopping(const EmuRun *run);
// launch.c; by the thread that launched, whose worker is the first
void emu_tell_progress(EmuRun *run);
// idle.c: detects livelock, where all warps only spin
enum { EMU_DOES_NOTHING, EMU_WRITES_NEAR, EMU_WRITES_FAR, EMU_CHANGES, EMU_READS_CLOCK, EMU_EFFECTS };
typedef struct EmuEffectAt {
  uint32_t pc;
  uint8_t effect; // near: shared and local memory; far: global; changes: certainly visible to other warps
} EmuEffectAt;
typedef struct EmuIdle {
  EmuEffectAt *pcs; // the instructions with an effect
  uint32_t count;
  uint64_t lanes[EMU_EFFECTS]; // lanes that had executed one of that effect by the last round
  uint64_t rounds, start;      // idle rounds in a row; instructions when they began
  uint64_t near, far, saved;   // hashes of memory, and of the warps at an earlier round
  uint64_t hashed;             // bytes
  bool timed;                  // a clock was read since then
} EmuIdle;
// Call after a round in which all warps only spun. True: the state repeats, so they will spin for ever.
bool emu_idle_round(EmuRun *run, EmuIdle *idle);
void emu_idle_free(EmuIdle *idle);
// find.c
void emu_place(const EmuRun *run, uint32_t pc, char *out,
               size_t cap); // "scale.cu:12", or the line of the PTX
// " (tile)": the variable at that offset of shared memory; "" where none has it.
void emu_shared_name(const EmuRun *run, uint64_t at, char *out, size_t cap);
void emu_find_launch(EmuRun *run, SolEmuFindingKind kind, const char *message);
void emu_report_deadlock(EmuRun *run);
// result.c
SolStatus emu_result_prepare(EmuRun *run, SolError *err);
void emu_result_add(EmuRun *run);
// ops_texture.c
void emu_textures_free(struct EmuTextures *textures);
// bulk_reduce.c, ops_mbarrier.c
bool emu_bulk_can_reduce(uint8_t type, uint8_t fn);
void emu_bulk_reduce(uint8_t *to, const uint8_t *from, uint32_t bytes, uint8_t type, uint8_t fn);
void emu_mbarrier_bytes(EmuCtx *x, const EmuInst *i, int lane, uint8_t *host, uint32_t bytes);
bool emu_mbarrier_arrive(EmuCtx *x, const EmuInst *i, int lane, uint8_t *host); // one
// device_heap.c
uint64_t emu_heap_malloc(EmuCtx *x, uint64_t bytes); // malloc in a kernel; 0: the heap is full
void emu_heap_free(EmuCtx *x, const EmuInst *i, int lane, uint64_t address);
// Whether these bytes > 0 of the heap are all inside one live allocation of malloc.
bool emu_heap_holds(const EmuAlloc *heap, uint64_t address, uint64_t bytes);
// The allocation of malloc, live or freed, nearest to an address: fills in base, size, label, freed.
bool emu_heap_nearest(const EmuAlloc *heap, uint64_t address, EmuAlloc *piece);
// children.c
#define EMU_CHILD_BUFFER "__cudaCDP2GetParameterBufferV2"
#define EMU_CHILD_MALLOC "__cudaCDP2Malloc"
EmuHandler *emu_child_builtin(const char *name);
bool emu_children_result(EmuRun *run); // moves the list to the result; false: out of memory
void emu_children_free(SolEmuResult *result);
// builtin.c
EmuHandler *emu_builtin(const char *name);
// A lane's argument k of a call of the device runtime; what the caller does not pass is 0.
void emu_builtin_argument(const EmuCtx *x, const EmuInst *i, uint32_t k, int lane, void *to, uint32_t bytes);
uint64_t emu_builtin_word(const EmuCtx *x, const EmuInst *i, uint32_t k, int lane);
void emu_builtin_return(EmuCtx *x, const EmuInst *i, int lane, uint64_t value);

#endif
