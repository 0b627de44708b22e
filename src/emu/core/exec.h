// The interface of instruction handlers: what a handler sees of the running warp, and how it is selected.
//
// A kernel and all functions it may call are lowered together into one EmuProgram: an array of EmuInst, indexed
// by the pc, and one bank of constants. A warp's registers are lane-contiguous: a 32-bit register is 32
// uint32_t, a 64-bit one 32 uint64_t, a 16-bit one (and an 8-bit one) 32 uint16_t, a 128-bit one 32 pairs of
// uint64_t; a predicate is one uint32_t, a bit per lane. Immediates, special registers and symbol addresses are
// kept in banks of the same layout, so that a handler reads all sources in the same way.
//
// A family of handlers is the `handler` word of ops.def. For each there is one function
//
//   bool lower_int_arith(Lower *l, const PtxInst *in, EmuInst *out);
//
// in one of the ops_*.c, listed in families.def. It selects out->run from in->code (op, type[], flags, fn, ...),
// fills in out->d, a, b, c ... with lower_read and lower_write, and returns true. Where it returns false the
// instruction is unsupported, and loading the module fails. Handlers need not test guards: `mask` contains only
// the lanes that execute, and is never 0.
//
// Rules for handlers
// - Write only the active lanes of a destination: with a plain loop where mask is EMU_ALL, else with a blend by
//   emu_on(x, mask).
// - d may be the same register as a, b or c, but never overlaps one in part. Loops over lanes are safe with
//   EMU_EACH; a handler that reads other lanes (shfl) copies its sources first.
// - Registers of 16 bits hold 2 bytes a lane. Only operands marked '~' in ops.def (cvt, ld, st, suld) may be
//   registers wider than their type: see lower_lane_bytes().
// - Predicates are read with emu_pred(x, i->c) (negation is part of the location) and written with
//   emu_set_pred(x, i->d, mask, bits).
// - Inactive lanes of sources may be read; their values are undefined.
// - Errors at run time are reported as findings with emu_find(...).
// - No static mutable state: all state is in x, x->warp, x->block and x->launch.
#ifndef SOL_EMU_EXEC_H
#define SOL_EMU_EXEC_H

#include "emu/emu.h"

enum { EMU_LANES = 32 };
#define EMU_ALL 0xffffffffu

typedef struct EmuCtx EmuCtx;
typedef struct EmuInst EmuInst;
typedef struct EmuWarp EmuWarp;
typedef struct EmuFiber EmuFiber;
typedef struct EmuFrame EmuFrame;
typedef struct EmuBlock EmuBlock;
typedef struct EmuRun EmuRun;
typedef struct EmuAsync EmuAsync;
typedef struct Lower Lower;

typedef void EmuHandler(EmuCtx *x, const EmuInst *i, uint32_t mask);

// Hot loops: vectorised also where the library is built with -O2.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define EMU_HOT __attribute__((optimize("O3")))
#else
#define EMU_HOT
#endif
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" // some loops cannot be vectorised, which is no error
#define EMU_EACH(l) _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < EMU_LANES; l++)
#else
#define EMU_EACH(l) _Pragma("GCC ivdep") for (int l = 0; l < EMU_LANES; l++)
#endif

// ---- operands ----

// The location of an operand: its byte offset in a bank, a multiple of 4, with the bank's number in the low two
// bits. For predicates, EMU_NOT negates the value read.
typedef uint32_t EmuLoc;
enum EmuBank {
  EMU_BANK_REGS = 0,   // the running call's registers
  EMU_BANK_LAUNCH = 1, // immediates, parameters, and all that is constant during the launch
  EMU_BANK_BLOCK = 2,  // %ctaid ...
  EMU_BANK_WARP = 3    // %tid, %warpid ...
};
#define EMU_NOT 0x80000000u
// The first row of EMU_BANK_LAUNCH is a predicate that is true in all lanes, the second is false in all lanes.
#define EMU_TRUE  ((EmuLoc)(0 | EMU_BANK_LAUNCH))
#define EMU_FALSE ((EmuLoc)(4 | EMU_BANK_LAUNCH))

struct EmuInst {
  EmuHandler *run;
  EmuLoc d, a, b, c; // usually the destination and the three sources, in the order of ops.def
  EmuLoc guard;      // EMU_TRUE: no guard
  EmuLoc e, f;       // further operands: second destination, mask ...
  uint32_t index;    // its own pc; also its index in the counts
  union {
    int64_t offset; // memory: added to the address in a; else for use by the family (lut, shift mode ...)
    struct {
      uint32_t target, reconverge; // branches: pcs
    };
  };
  const void
      *more; // for use by the family: lists of locations (lower_list), tables; lives as long as the program
  uint8_t space, bytes, vec, kind; // memory: PTX_SPACE_, bytes of an element, elements, SolEmuKind
  uint8_t abytes;                  // memory: bytes of an address in a: 4 or 8
  uint8_t lane_bytes;              // ld, st: bytes of a lane in the data registers
  uint8_t flags;                   // EMU_FLAG_...
  uint8_t fn;                      // for use by the family
};
enum {
  EMU_FLAG_FRAME = 1,  // address is relative to the running call's local frame
  EMU_FLAG_SIGNED = 2, // ld: sign-extend
  EMU_FLAG_STRONG = 4  // volatile, relaxed, acquire ...: accessed word by word, like atomics
};

// ---- warps, fibers and frames ----

struct EmuFrame { // one call of a function by lanes of one warp; fibers of the warp may share it
  EmuFrame *caller;
  uint8_t *regs;   // EMU_BANK_REGS
  uint8_t *params; // param_stride bytes for each of the 32 lanes
  uint32_t param_stride;
  uint32_t refs;
  uint32_t function;    // Program.functions
  const EmuInst *call;  // the caller's call instruction; NULL: the kernel itself
  uint64_t local_base;  // local address where this call's .local variables start
  uint64_t local_top;   // first local address available to callees
  uint64_t *alloca_top; // by lane; NULL until alloca is used
  uint64_t bytes;       // registers and parameters of this frame and of all its callers
};

typedef struct EmuEntry { // an entry of a SIMT stack
  uint32_t pc, reconverge, mask;
  bool base; // the first entry of its frame
  EmuFrame *frame;
} EmuEntry;

typedef enum EmuState { EMU_READY, EMU_AT_BARRIER, EMU_AT_CLUSTER, EMU_AT_WARP_SYNC, EMU_ENDED } EmuState;

// The access by which lanes wait for others: one that they repeat. See poll.c.
typedef struct EmuPoll {
  const EmuInst *at;     // NULL: none
  uint64_t seen, state;  // the last time: its addresses and values; all registers
  uint32_t mask, others; // its lanes; accesses of its kind that were executed since
  int32_t steps, length; // instructions from one time to the next: at most, and in vain
  int32_t left,
      allowed; // time slice that was left then; of an idle fiber: instructions in which it has to come back, now and then
  bool repeats, slept; // `state` is known; nanosleep was executed since
  bool idle, again;    // what is executed is no work; in this time slice it was executed again
  bool changed; // the last value was another; whether it is the one that was waited for is not known yet
  // The last access that was not the one at `at`, if it is executed again and again, and all registers then; 0: not known.
  const EmuInst *other;
  uint64_t other_state;
  uint64_t where; // the addresses of the one at `at`, the last time
} EmuPoll;

struct EmuFiber { // lanes of a warp that share one SIMT stack
  EmuWarp *warp;
  EmuFiber *next; // of the warp
  EmuEntry *entries;
  uint32_t count, cap;
  uint32_t lanes;    // in any of its entries
  uint32_t members;  // EMU_AT_WARP_SYNC: lanes it waits for
  uint8_t state;     // EmuState
  uint8_t barrier;   // EMU_AT_BARRIER: the barrier's number
  uint32_t spin;     // consecutive atomics, volatile loads and the like, without another access in between
  const EmuInst *at; // EMU_AT_...: the instruction
  EmuPoll poll;
};

struct EmuWarp {
  EmuBlock *block;
  EmuFiber *fibers;
  uint32_t index;           // in the block
  uint32_t exists;          // lanes that were started
  uint32_t live;            // of them, those that have not exited
  uint32_t carry;           // the CC register's CF, a bit per lane
  uint32_t cluster_arrived; // lanes that have arrived at the cluster's barrier in this phase
  uint8_t *consts;          // EMU_BANK_WARP
  // Watched: the word that its last compare-and-swap changed, 0 once it has written it again; when, by its path; where it is; lanes that took one at the same time.
  uint64_t lock, locked;
  uint32_t lock_site, lock_lanes;
  uint64_t timed; // of an observed launch: reads of clocks so far
  // Observed: its last store to global memory: the first lane's address, a lane's bytes, and what its path had waited by then.
  uint64_t stored_at, stored_bytes, stored_waits;
  // Groups committed so far: of cp.async and of bulk copies, by lane; of wgmma.
  uint32_t copy_groups[EMU_LANES], bulk_groups[EMU_LANES], wgmma_groups;
};

// What one worker writes often has a page of its own, to avoid false sharing: the host's prefetchers fetch
// lines ahead, up to the end of the page.
enum { EMU_APART = 4096 };

struct EmuCtx { // one per worker
  _Alignas(EMU_APART) uint8_t *bank[4];
  uint32_t pc;     // of the next instruction; branch handlers set it
  uint32_t active; // lanes of the running entry
  uint32_t reconverge;
  int32_t budget; // instructions left in the warp's time slice; set to 0 to end it
  EmuFiber *fiber;
  EmuFrame *frame;
  EmuWarp *warp;
  EmuBlock *block;
  EmuRun *launch;
  SolEmuCounts *counts; // by EmuInst.index
  bool idle;            // the running fiber only waits: nothing that it does is counted
  uint32_t sync_lanes;  // lanes of several fibers that execute a .sync instruction together; else 0
  uint32_t on_mask;
  int32_t *on; // by lane: -1 where the lane is in on_mask, else 0
  uint32_t worker;
  void *more; // EmuWorker
};

typedef struct EmuAddress { // a second address operand of an instruction, kept in EmuInst.more
  EmuLoc base;
  uint8_t abytes;
  int64_t offset;
} EmuAddress;

// ---- reading and writing operands ----

static inline void *emu_at(const EmuCtx *x, EmuLoc loc) {
  return x->bank[loc & 3] + (loc & ~3u);
}
#define EMU_IN(type, loc)  ((const type *)__builtin_assume_aligned(emu_at(x, loc), 64))
#define EMU_OUT(type, loc) ((type *)__builtin_assume_aligned(emu_at(x, loc), 64))

static inline uint32_t emu_pred(const EmuCtx *x, EmuLoc loc) {
  uint32_t bits = *(const uint32_t *)(const void *)(x->bank[loc & 3] + (loc & 0x7ffffffcu));
  return bits ^ (0u - (loc >> 31));
}
static inline void emu_set_pred(EmuCtx *x, EmuLoc loc, uint32_t mask, uint32_t bits) {
  uint32_t *p = (uint32_t *)emu_at(x, loc);
  *p = (*p & ~mask) | (bits & mask);
}
static inline uint64_t emu_lane_address(const EmuCtx *x, const EmuAddress *p, int lane) {
  if (p->abytes == 8) return EMU_IN(uint64_t, p->base)[lane] + (uint64_t)p->offset;
  return (uint32_t)(EMU_IN(uint32_t, p->base)[lane] + (uint32_t)p->offset);
}
void emu_expand(EmuCtx *x, uint32_t mask);
// 32 ints, -1 where the lane is in mask, else 0.
static inline const int32_t *emu_on(EmuCtx *x, uint32_t mask) {
  if (x->on_mask != mask) emu_expand(x, mask);
  return (const int32_t *)__builtin_assume_aligned(x->on, 64);
}
// Packs 32 bytes that are 0 or 1, the result of a loop of comparisons, into a mask.
static inline uint32_t emu_pack(const uint8_t bytes[EMU_LANES]) {
  uint32_t mask = 0;
  for (int i = 0; i < 4; i++) {
    uint64_t v;
    memcpy(&v, bytes + i * 8, 8);
    mask |= (uint32_t)(v * UINT64_C(0x0102040810204080) >> 56) << i * 8;
  }
  return mask;
}
static inline uint32_t emu_popc(uint32_t v) {
  if (v == EMU_ALL) return 32;
  v -= v >> 1 & 0x55555555;
  v = (v & 0x33333333) + (v >> 2 & 0x33333333);
  return ((v + (v >> 4)) & 0x0f0f0f0f) * 0x01010101u >> 24;
}
static inline int emu_first(uint32_t mask) {
  return __builtin_ctz(mask);
} // mask must not be 0

// Handlers of plain arithmetic. `expr` is of type TD and may use a[l], b[l], c[l], i and x:
//   EMU_OP2(add_u32, uint32_t, uint32_t, a[l] + b[l])     d's type, then the type of all sources
//   EMU_OP3(...) likewise with c; EMU_OP1 with a alone; EMU_OPX names each source's type.
// The handlers are `static`; lower_* selects one with out->run = add_u32.
#define EMU_OPX(name, TD, TA, TB, TC, expr)                                                                  \
  EMU_HOT static void name(EmuCtx *x, const EmuInst *i, uint32_t mask) {                                     \
    TD *d = EMU_OUT(TD, i->d);                                                                               \
    const TA *a = EMU_IN(TA, i->a);                                                                          \
    const TB *b = EMU_IN(TB, i->b);                                                                          \
    const TC *c = EMU_IN(TC, i->c);                                                                          \
    (void)a, (void)b, (void)c;                                                                               \
    if (mask == EMU_ALL) {                                                                                   \
      EMU_EACH(l) d[l] = (TD)(expr);                                                                         \
      return;                                                                                                \
    }                                                                                                        \
    const int32_t *on = emu_on(x, mask);                                                                     \
    EMU_EACH(l) {                                                                                            \
      TD v = (TD)(expr);                                                                                     \
      d[l] = on[l] ? v : d[l];                                                                               \
    }                                                                                                        \
  }
#define EMU_OP1(name, TD, TS, expr) EMU_OPX(name, TD, TS, TS, TS, expr)
#define EMU_OP2(name, TD, TS, expr) EMU_OPX(name, TD, TS, TS, TS, expr)
#define EMU_OP3(name, TD, TS, expr) EMU_OPX(name, TD, TS, TS, TS, expr)
// For what does not vectorise (calls, long scalar code): only the active lanes, one at a time.
#define EMU_OPS(name, TD, TA, TB, TC, expr)                                                                  \
  static void name(EmuCtx *x, const EmuInst *i, uint32_t mask) {                                             \
    TD *d = EMU_OUT(TD, i->d);                                                                               \
    const TA *a = EMU_IN(TA, i->a);                                                                          \
    const TB *b = EMU_IN(TB, i->b);                                                                          \
    const TC *c = EMU_IN(TC, i->c);                                                                          \
    (void)a, (void)b, (void)c;                                                                               \
    for (; mask; mask &= mask - 1) {                                                                         \
      int l = emu_first(mask);                                                                               \
      d[l] = (TD)(expr);                                                                                     \
    }                                                                                                        \
  }
// The handler `name`, with the count of warps that have a lane for which `expr` holds (SolEmuCounts.turns): the operands, a[l]
// and b[l] of type T, that the machine's short way of doing it cannot handle.
void emu_path_rare(EmuCtx *x); // chain.c
#define EMU_RARE(name, T, expr)                                                                              \
  static void name##_rare(EmuCtx *x, const EmuInst *i, uint32_t mask) {                                      \
    const T *a = EMU_IN(T, i->a);                                                                            \
    const T *b = EMU_IN(T, i->b);                                                                            \
    uint8_t bytes[EMU_LANES];                                                                                \
    (void)a, (void)b;                                                                                        \
    EMU_EACH(l) bytes[l] = (uint8_t)(expr);                                                                  \
    bool rare = (emu_pack(bytes) & mask) != 0;                                                               \
    x->counts[i->index].turns += rare;                                                                       \
    if (rare) emu_path_rare(x);                                                                              \
    name(x, i, mask);                                                                                        \
  }
// A comparison: expr is 0 or 1; returns the mask of lanes in which it is 1.
#define EMU_CMP(name, TS, expr)                                                                              \
  EMU_HOT static uint32_t name(EmuCtx *x, const EmuInst *i) {                                                \
    const TS *a = EMU_IN(TS, i->a);                                                                          \
    const TS *b = EMU_IN(TS, i->b);                                                                          \
    uint8_t bytes[EMU_LANES];                                                                                \
    EMU_EACH(l) bytes[l] = (uint8_t)(expr);                                                                  \
    return emu_pack(bytes);                                                                                  \
  }

// ---- lowering: for lower_* functions ----

// The location of a source: a register, immediate, special register, symbol or function address, or predicate.
// Immediates and predicates have the operand's type. An omitted operand (PTX_ARG_NONE) reads as a row of zeros,
// or as EMU_TRUE where it is a predicate.
EmuLoc lower_read(Lower *l, const PtxOperand *o);
// The location of a destination. `_` and omitted ones are written to a row that is never read.
EmuLoc lower_write(Lower *l, const PtxOperand *o);
// Bytes per lane of the operand's register, which may be wider than the operand's type.
int lower_lane_bytes(Lower *l, const PtxOperand *o);
// A row of constants: `value` in every lane, of 2, 4, 8 or 16 (then zero-extended) bytes a lane.
EmuLoc lower_const(Lower *l, uint64_t value, int bytes);
// A predicate that is the same in all lanes.
static inline EmuLoc lower_const_pred(bool value) {
  return value ? EMU_TRUE : EMU_FALSE;
}
// Locations of the o->count elements of a vector (or of the one operand); they live as long as the program.
const EmuLoc *lower_list(Lower *l, const PtxOperand *o);
void *lower_alloc(Lower *l, size_t bytes); // zeroed, lives as long as the program; NULL: out of memory
// Lowers the address operand in a PTX_SPACE_: sets out->a, offset, abytes, space, flags.
bool lower_mem(Lower *l, const PtxOperand *o, int space, EmuInst *out);
// Lowers a second address operand: only its base row and offset.
bool lower_mem2(Lower *l, const PtxOperand *o, EmuLoc *base, int64_t *offset, uint8_t *abytes);
bool lower_address_operand(Lower *l, const PtxOperand *o, EmuAddress *out);
// Sets the reason why the instruction is unsupported; returns false. Without it the error of the load says only
// that it cannot be run.
// The immediate that an operand is, or that its register has in all lanes; NULL: it is not known.
const PtxOperand *lower_constant(Lower *l, const PtxOperand *o);
bool lower_refuse(Lower *l, const char *format, ...) SOL_PRINTF(2, 3);
const PtxFunction *lower_function(const Lower *l);
const SolPtxModule *lower_module(const Lower *l);

// Lowers the operands "d a b c", by position, to out->d, a, b, c.
void lower_dabc(Lower *l, const PtxInst *in, EmuInst *out);

#define EMU_FAMILY(name) bool lower_##name(Lower *l, const PtxInst *in, EmuInst *out);
#include "emu/core/families.def"

// ---- memory: for atomics, matrices, textures ----

typedef struct EmuAccess {
  uint64_t addr[EMU_LANES]; // by active lane: device address; shared: offset in its block's shared memory;
                            // local: address of the thread-interleaved word
  uint8_t *host[EMU_LANES]; // host pointer to the lane's bytes
  uint32_t mask;            // lanes with a valid address: the others were reported and removed
  uint32_t shared;          // of mask: lanes whose address is in shared memory
  uint32_t local;           // of mask: lanes whose address is in local memory
} EmuAccess;

// Resolves the addresses of an instruction lowered with lower_mem: checks bounds and alignment of `bytes` a
// lane (1 to 32), in any state space or generic. Invalid lanes become findings. Returns acc->mask.
uint32_t emu_resolve(EmuCtx *x, const EmuInst *i, uint32_t mask, uint32_t bytes, bool store, EmuAccess *acc);
// The same for addresses that the handler computed, `addr` by lane, in space PTX_SPACE_...
uint32_t emu_resolve_at(EmuCtx *x, const EmuInst *i, uint32_t mask, const uint64_t *addr, int space,
                        uint32_t bytes, bool store, EmuAccess *acc);
typedef enum EmuTraffic {
  EMU_LOAD,
  EMU_STORE,
  EMU_ATOMIC,
  EMU_REDUCE,    // red, or an atom whose result is not used
  EMU_INCREMENT, // EMU_REDUCE with an integer add of the constant 1
  EMU_CAS,
  EMU_CAS_LOOP, // atomics on floats: in shared memory the GPU executes a compare-and-swap loop
  EMU_LOAD_L2   // a load that bypasses L1
} EmuTraffic;
// Counts the access: requests, sectors, wavefronts, caches. Call once per instruction, after emu_resolve.
void emu_count(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, EmuTraffic traffic);
enum { EMU_FN_ANY_PC = 0xff }; // EmuInst.fn: lanes may synchronise from different instructions of this kind
// Marks an instruction that spin loops execute (atomics, volatile loads ...). After EMU_SPIN of them in a row
// the warp yields to the others.
enum { EMU_SPIN = 64 };
// The instruction is executed again when other warps have run; it counts once.
void emu_again(EmuCtx *x, const EmuInst *i, uint32_t mask);
static inline void emu_spin(EmuCtx *x) {
  if (++x->fiber->spin >= EMU_SPIN) x->budget = 0;
}

// After an access by which lanes may wait for others, and which changed nothing: `to` are the `count` rows that it wrote, of
// `bytes` a lane. After one that did change memory: emu_poll_none.
void emu_poll(EmuCtx *x, const EmuInst *i, uint32_t mask, const EmuLoc *to, uint32_t count, uint32_t bytes);
static inline void emu_poll_none(EmuCtx *x) {
  if (!x->fiber->poll.idle) x->fiber->poll.at = NULL;
}

// Completes a transaction of `bytes` on an mbarrier in shared memory (of this block or another of the cluster),
// for each lane of mask.
void emu_mbarrier_complete(EmuCtx *x, const EmuInst *i, uint32_t mask, EmuLoc base, int64_t offset,
                           uint8_t abytes, uint32_t bytes);

// ---- .sync instructions ----

// Synchronises the lanes of a .sync instruction; `members` is the row of member masks. Returns the lanes with
// which to execute now: mask where all members have arrived. Returns 0 where some have not: the handler then
// returns at once, and is called again when all have arrived. Lanes that have exited are not waited for.
uint32_t emu_sync_lanes(EmuCtx *x, const EmuInst *i, uint32_t mask, EmuLoc members);
// Iterates over groups of lanes with the same member mask:
//   for (uint32_t left = mask, g; emu_group(m, mask, &left, &g);) ...
static inline bool emu_group(const uint32_t *members, uint32_t mask, uint32_t *left, uint32_t *group) {
  if (!*left) return false;
  int first = emu_first(*left);
  *group = (members[first] & mask) | 1u << first;
  *left &= ~*group;
  return true;
}

// ---- findings ----

// Reports a finding at the instruction, for the first lane of `lanes`. It ends the launch unless
// SolEmuLaunch.keep_going is set. Address and bytes may be 0.
void emu_find(EmuCtx *x, const EmuInst *i, uint32_t lanes, SolEmuFindingKind kind, uint64_t address,
              uint64_t bytes, const char *format, ...) SOL_PRINTF(7, 8);
// Reports an instruction that is used as it must not be, and ends the launch. Returns false.
bool emu_misuse(EmuCtx *x, const EmuInst *i, uint32_t lanes, const char *format, ...) SOL_PRINTF(4, 5);

#endif
