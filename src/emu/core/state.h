// What the core keeps: the machine, programs, blocks, launches. Handlers of plain instructions need exec.h
// alone.
#ifndef SOL_EMU_STATE_H
#define SOL_EMU_STATE_H

#include "base/arena.h"
#include "base/threads.h"
#include "emu/core/exec.h"
#include "mem/banks.h"
#include "mem/l1.h"
#include "mem/l2.h"

// ---- addresses ----

// Generic addresses. Global memory lies below all windows. A shared address of 32 bits is an offset in the
// own block's shared memory, or (rank + 1) << EMU_RANK_SHIFT plus an offset in that of another block of the
// cluster.
#define EMU_GLOBAL_BASE   UINT64_C(0x00000a0000000000)
#define EMU_SHARED_WINDOW UINT64_C(0x0000710000000000)
#define EMU_LOCAL_WINDOW  UINT64_C(0x0000720000000000)
#define EMU_PARAM_WINDOW  UINT64_C(0x0000730000000000)
#define EMU_CODE_WINDOW   UINT64_C(0x0000740000000000)
#define EMU_LOCAL_BILLED  UINT64_C(0x0000750000000000) // where the memory model sees local memory
#define EMU_WINDOW_BYTES  UINT64_C(0x0000010000000000)
enum { EMU_RANK_SHIFT = 24, EMU_CODE_STEP = 16, EMU_MAX_RANKS = 16 };

typedef struct EmuAlloc {
  uint64_t base, size;
  uint8_t *host;              // NULL once freed
  uint8_t *block;             // what the heap gave
  uint8_t *init;              // a bit per byte written; NULL: not tracked
  bool freed, heap, constant; // heap: by malloc in a kernel
  bool mapped, variable;      // the host's own memory; a module's
  struct EmuMaps *maps;       // of the bytes touched by the launch that runs; NULL: none, or not observed
  char label[40];
} EmuAlloc;

typedef struct EmuSpare { // memory that waits to be used again
  struct EmuSpare *next;
} EmuSpare;

struct SolEmu {
  SolEmuMachine machine;
  EmuAlloc **allocs; // by rising base
  uint32_t alloc_count, alloc_cap;
  uint64_t next_base, bytes_used;
  SolSpin lock;   // device malloc
  EmuAlloc *heap; // what it gives from; NULL until a module uses it
  SolEmuModule *modules;
  struct EmuTextures *textures; // of ops_texture.c
  uint64_t launches;
  void *(*managed)(void *ctx, uint64_t bytes); // sol_emu_managed_from
  void *managed_ctx;
  void *cache_memory; // of the caches' state and logs
  size_t cache_bytes;
  void *sm_memory; // of EmuSm
  size_t sm_bytes;
  struct EmuSpare *spare_maps; // of touch.c, for the next launch
  uint32_t spare_map_count;
};

// The allocation that holds address, also a freed one; NULL.
EmuAlloc *emu_find_alloc(const SolEmu *emu, uint64_t address);
EmuAlloc *emu_nearest_alloc(const SolEmu *emu, uint64_t address); // NULL where there is none at all
EmuAlloc *emu_add_alloc(SolEmu *emu, uint64_t bytes, const char *label);
void emu_drop_alloc(SolEmu *emu, EmuAlloc *alloc);
// map.c: in its place among the others; there is room.
void emu_insert_alloc(SolEmu *emu, EmuAlloc *alloc);
bool emu_reserve_alloc(SolEmu *emu); // room for one more
EmuAlloc *emu_add_managed(SolEmu *emu, uint64_t bytes, const char *label);

// pages_*.c: asks the system for large pages under fresh memory that will all be used: a device's buffers are
// walked through from end to end, and looking up small pages costs as much as the walk.
void emu_use_large_pages(void *memory, size_t bytes);

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
      param_stride;      // bytes of formals that are not in the frame (a kernel's); bytes that are
  const EmuLoc *reg_loc; // of each register
  EmuLoc spare;          // a row for what nobody reads
} EmuFunction;

typedef struct EmuProgram {
  SolArena arena;
  SolEmuModule *module;
  EmuFunction *functions; // the kernel first
  uint32_t function_count;
  uint32_t *function_of; // by SolPtxModule.functions: place in `functions`, or PTX_NONE
  EmuInst *code;
  const PtxInst **source; // by pc; NULL: an implicit return
  uint32_t count;
  EmuConst *consts;
  uint32_t const_count, const_cap, const_bytes;
  uint32_t shape_count; // ld and st
  uint64_t local_bytes; // that a thread needs at first
  uint64_t shared_static;
  bool dynamic_calls;         // depth is not known
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
  uint32_t popc;                   // of barrier.red: lanes whose predicate holds
  uint32_t asked;                  // and lanes that asked
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
  struct EmuPath *paths;    // of chain.c: a warp's each, then the barriers'; NULL: not observed
  uint64_t *steps;          // where each instruction's last access was, by warp; NULL: not observed
  uint8_t **local;          // by warp; NULL until used
  uint64_t *local_cap;      // bytes a thread has there
  uint32_t slot;            // of the SM, for local addresses
  struct EmuShadow *shadow; // of race and initialisation checks on shared memory
  EmuBarrier barriers[EMU_BARRIERS];
  EmuBlock *next; // free list
  void *memory;   // that all but local memory and fibers stands in
};

typedef struct EmuUnit { // a cluster, or a block alone; runs on one worker at a time
  EmuBlock **blocks;
  uint32_t count, blocks_live, turn;
  uint32_t cluster_arrived, cluster_phase; // threads
  uint64_t id;
  uint32_t slot; // on its SM
  struct EmuUnit *next;
} EmuUnit;

typedef struct EmuSm {
  _Alignas(EMU_APART) EmuUnit *units; // resident, in order
  uint32_t resident;
  uint64_t next_unit;
  uint64_t clock; // warp instructions so far
  SolL1 l1;       // made when the SM first runs, by the worker that will use it
  SolLog *log;    // while it runs: the worker's
  void *l1_memory;
  SolRecord *records; // where the sorted log stays until L2 has seen it
  uint32_t index;
  bool full, done; // the log has no room; all units have ended
} EmuSm;

struct EmuRun {
  SolEmu *emu;
  const SolEmuLaunch *launch;
  const EmuProgram *program;
  SolEmuResult *result;
  EmuAlloc *workspace; // of cooperative groups; NULL
  void *const_memory, *worker_memory;
  uint8_t *consts; // EMU_BANK_LAUNCH
  uint8_t *params; // the launch's own copy, param_room bytes
  uint64_t param_room;
  uint32_t grid[3], block[3], cluster[3], cluster_size;
  uint32_t threads, warps; // of a block
  uint64_t shared_bytes, dynamic_offset, unit_count, first_unit, local_bytes;
  uint32_t units_per_sm, sm_count;
  uint32_t sample_waves;  // 0: all run; unit_count is of those that do
  uint64_t units_in_grid; // unit_count without sampling
  bool explicit_cluster;
  EmuSm *sms;
  SolLog *logs; // one per SM
  SolL2 *l2;
  size_t l1_size; // of its memory
  uint64_t l1_bytes;
  bool l2_filled; // it is not empty, as at first
  EmuCtx *workers;
  uint32_t worker_count;
  double started;
  bool counting, checking; // counts memory; keeps shadows of it
  bool observing;          // patterns and touches too
  const struct EmuStatics *statics;
  int stop; // SolEmuEnd, or 0
  // What workers write while others read the rest.
  _Alignas(EMU_APART) uint32_t next_sm;
  SolSpin lock, print_lock; // findings; printing
  uint64_t instructions;
  struct EmuMaps *touched; // of all allocations that were
  bool progress;           // this round: something ran that is no spin
};

// How the lanes of an ld or st lay to each other the last time, and what followed from it: shape.h.
enum { EMU_SHAPES = 1024 }; // ld and st beyond that share
typedef struct EmuShape {
  _Alignas(64) int32_t delta[EMU_LANES]; // bytes from the first active lane
  uint32_t index;                        // of the instruction; UINT32_MAX: none
  uint32_t mask;                         // active lanes
  int32_t low, high;                     // least and greatest delta
  bool row;                              // all lanes, one after the other
  bool sighted;                          // EmuSight.now is of this shape
  bool counted;                          // what follows holds, where the first lane's address ends in `ends`
  uint8_t ends;
  uint16_t wavefronts, wavefronts_ideal; // shared memory
  uint64_t line;                         // else: the first lane's, for which `coalesced` was made
  SolCoalesced *coalesced;
} EmuShape;

typedef struct EmuWorker { // EmuCtx.more
  EmuFrame **free_frames;  // by Program.functions
  EmuUnit *free_units;
  EmuBlock *free_blocks;
  EmuAlloc **last; // by EmuInst.index: where its last access went
  EmuSm *sm;
  SolL1Counts *l1_counts; // by EmuInst.index
  SolL2Counts *l2_counts; // likewise, and one more
  SolCoalesced coalesced;
  SolLog log;              // of the SM that runs
  SolRecord *records;      // its memory: one for all of them stays in the host's cache
  EmuShape *shapes;        // by EmuInst.f of ld and st
  struct EmuSight *sights; // of observe.h, by EmuStatics.sight
  struct EmuPath *chains;  // of observe.h: those of the blocks that ended, summed; NULL: not observed
  void *memory;            // of the worker itself
  void *shape_memory;
  uint64_t instructions; // not yet added to the launch's
  uint64_t units_done;
  bool progress;
  _Alignas(64) int32_t on[EMU_LANES];
} EmuWorker;
static inline EmuWorker *emu_worker(const EmuCtx *x) {
  return (EmuWorker *)x->more;
}

// control.c
bool emu_push(EmuFiber *f, EmuEntry entry);
void emu_load_top(EmuCtx *x);
void emu_store_top(EmuCtx *x);
void emu_settle(EmuCtx *x); // pops entries that are done or empty; ends the fiber where none is left
void emu_end_lanes(EmuCtx *x, uint32_t mask);
EmuFrame *emu_new_frame(EmuCtx *x, uint32_t function, EmuFrame *caller);
void emu_release_frame(EmuCtx *x, EmuFrame *frame);
bool emu_return(EmuCtx *x, uint32_t mask);
// fiber.c
EmuFiber *emu_new_fiber(EmuWarp *warp);
// Leaves the running fiber with `lanes` alone; the rest of it goes on as another. False: out of memory.
bool emu_split(EmuCtx *x, uint32_t lanes);
void emu_merge(EmuCtx *x, EmuWarp *warp); // fibers that stand alike become one
void emu_sweep(EmuCtx *x, EmuWarp *warp); // drops fibers that have ended
// Lets fibers go on whose awaited lanes have all come; with `force` those, too, who wait for lanes that never
// come.
bool emu_meets_settle(EmuCtx *x, EmuWarp *warp, bool force);
// ops_barrier.c
void emu_barriers_settle(EmuCtx *x, EmuBlock *block); // after lanes ended
void emu_cluster_settle(EmuUnit *unit);
// block.c
EmuUnit *emu_start_unit(EmuCtx *x, EmuSm *sm, uint64_t unit, uint32_t slot);
void emu_end_unit(EmuCtx *x, EmuUnit *unit);
void emu_free_worker(EmuCtx *x);
bool emu_grow_local(EmuCtx *x, EmuBlock *block, uint32_t warp, uint64_t bytes);
void emu_fill_consts(EmuRun *run);
// check.c: shadows of shared memory
void emu_shadow_barrier(EmuBlock *block);
void emu_shadow_reset(EmuBlock *block);
void emu_shadow_free(EmuBlock *block);
typedef enum EmuUse { // strong: volatile, relaxed ..., which do not race with each other or with atomics
  EMU_USE_LOAD,
  EMU_USE_STORE,
  EMU_USE_ATOMIC,
  EMU_USE_STRONG_LOAD,
  EMU_USE_STRONG_STORE
} EmuUse;
void emu_check_access(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, EmuUse use);
// One lane's, of any length, all in one allocation or one block's shared memory; address: of global memory.
void emu_check_bulk(EmuCtx *x, const EmuInst *i, int lane, const uint8_t *host, uint64_t address,
                    uint64_t bytes, EmuUse use);
// access.c
enum { EMU_LOG_RESERVE = 4096 }; // records that must be free before an instruction: a bulk copy makes many
void emu_count_as(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, SolMemOp op,
                  SolSharedOp shared);
void emu_count_shape(EmuCtx *x, const EmuInst *i, EmuShape *shape, uint64_t first, SolMemOp op,
                     SolSharedOp shared);
void emu_log_room(EmuCtx *x);
// grid.c
SolStatus emu_lay_out(EmuRun *run, SolError *err);   // says what is wrong with a launch's sizes
uint64_t emu_unit_at(const EmuRun *run, uint64_t n); // of the grid: the n-th that runs
// run.c
enum { EMU_QUANTUM = 4096 };
typedef enum EmuTurn { EMU_TURN_MORE, EMU_TURN_STUCK, EMU_TURN_DONE } EmuTurn;
EmuTurn emu_run_unit(EmuCtx *x, EmuUnit *unit);
void emu_stop(EmuRun *run, SolEmuEnd end);
bool emu_stopping(const EmuRun *run);
// find.c
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
// builtin.c
EmuHandler *emu_builtin(const char *name);

#endif
