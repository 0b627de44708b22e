// Observers of launches: the report, the audit.
#ifndef SOL_SHIM_WATCH_H
#define SOL_SHIM_WATCH_H

#include "shim/shim_work.h"

// outcome.c: what a launch leaves in memory, by what it finds there.
enum { SHIM_TOUCHED = 16 };
typedef struct ShimOutcome {
  SolEmuRange touched[SHIM_TOUCHED]; // the allocations that it reads and writes
  void *left[SHIM_TOUCHED];          // what is in them afterwards; NULL: what was there before
  uint32_t count, wrong;             // wrong: launches in a row that did not find the same as before
  uint64_t found;                    // a digest of them before the launch; 0: none
  uint64_t changes; // sol_emu_changes when that was there for the last time, and what it leaves
  bool known;       // launches that find the same leave the same
} ShimOutcome;
uint64_t shim_outcome_found(const ShimOutcome *outcome); // now; 0: it cannot be told
// After a launch that was observed, which found that.
void shim_outcome_learn(ShimOutcome *outcome, uint64_t found, const SolEmuResult *result);
// Does what the launch would do, without running it. False: it has to run.
bool shim_outcome_repeat(ShimOutcome *outcome);
void shim_outcome_forget(ShimOutcome *outcome);

// repeat.c: launches that repeat are not counted again. One for each geometry of a kernel; NULL: too many.
typedef struct ShimRepeat ShimRepeat;
typedef struct ShimAgain { // a launch that is billed by an earlier one
  uint64_t key;            // of that one, which was counted; 0: it has counts of its own
  bool unlike;             // it executed something else
  bool counted;            // it was counted, and found to be the same
  double seconds;
} ShimAgain;
uint64_t shim_repeat_key(void); // a new one, unique among the processes that write to one report
ShimRepeat *shim_repeat_of(const ShimKernelWork *work);
bool shim_repeat_known(ShimRepeat *repeat, const ShimKernelWork *work); // it need not be counted
// After a launch that was counted: its key; 0: it did not go through.
uint64_t shim_repeat_learn(ShimRepeat *repeat, const ShimKernelWork *work, const SolEmuResult *result,
                           double seconds);
// The outcome of launches that are billed by none but those with the same parameters; NULL: it cannot be known.
ShimOutcome *shim_repeat_outcome(ShimRepeat *repeat, const ShimKernelWork *work);
// After one that was known, and not counted; one that did not run has a result without instructions.
ShimAgain shim_repeat_again(ShimRepeat *repeat, const ShimKernelWork *work, const SolEmuResult *result);

// same.c: of counted launches, an earlier one with the same counts (its key; 0: there is none); and one that others may be
// the same as, with the key under which it is to be sent (0: it is not kept).
typedef struct ShimSame ShimSame;
ShimAgain shim_same_find(const ShimKernelWork *work, const SolEmuResult *result);
uint64_t shim_same_keep(const ShimKernelWork *work, const SolEmuResult *result, double seconds);

typedef struct ShimLaunch {
  const ShimKernelWork *work;
  const SolEmuModule *module;
  const SolEmuResult *result; // of this launch alone
  uint64_t key;               // of a counted launch that others may be billed by; 0: none are
  ShimAgain again;
} ShimLaunch;
struct AuditLibraryCall;
typedef struct ShimObserver {
  struct ShimObserver *next;
  void (*launch)(void *ctx, const ShimLaunch *launch);                 // after each, with the lock held
  void (*memory)(void *ctx, bool wrote, const void *at, size_t bytes); // other work wrote or read it; or NULL
  void (*module)(void *ctx, uint32_t unit,
                 const char *ptx);              // one was loaded whose machine code is not known; or NULL
  void (*missing)(void *ctx, const char *what); // was called, and cannot run here; or NULL
  void (*library)(void *ctx, const struct AuditLibraryCall *call); // one computed; or NULL
  void (*end)(void *ctx);                                          // once, when the process exits
  void *ctx;
} ShimObserver;
// Registers an observer, which is called for each later launch. The caller owns the observer.
void shim_observe(ShimObserver *observer);
bool shim_counts(void); // launches are counted: somebody observes them, or asks for times
void shim_observe_memory(bool wrote, const void *at, size_t bytes);
// Fills, and copies from device memory to device memory, use L2 as kernels do, so that the next kernel may find
// there what they left. Copies from and to the host change nothing: they bring nothing into L2, and update what
// is in it. What is left of freed memory is never written back while a kernel runs. So it was measured on an H200
// (docs/memory-model.md).
void shim_use_l2(SolL2Use use, const void *at, size_t bytes);
void shim_observe_module(uint32_t unit, const char *ptx);
void shim_observe_missing(const char *what);
void shim_observe_library(const struct AuditLibraryCall *call);
void shim_report_open(void); // report.c: observes if SOL_SHIM_REPORT or SOL_SHIM_AUDIT is set

typedef struct ShimWatch { // of the one `shim`
  ShimObserver *observers;
  bool patterns;                                               // an observer needs them
  uint64_t async_order;                                        // SolEmuLaunch.async_order
  uint32_t sample;                                             // waves of a launch that run; 0: all
  bool cold;                                                   // L2 is empty at the start of each launch
  struct SolBuffer *printed;                                   // by kernels, not yet shown
  void (*progress)(void *ctx, const SolEmuProgress *progress); // NULL: no progress is shown
  void *progress_ctx;
  volatile bool interrupt; // the running launch is to end
  unsigned checks;         // SolEmuLaunch.checks
  bool keep_going;         // after errors, which the audit reports
  bool spoke;              // the running launch did something else than change memory
  bool repeat;             // launches that repeat are counted only at first
  ShimRepeat *repeats;
  uint64_t repeat_keys;
  ShimSame *sames;
  const char *from; // launches before the from_launch-th of this kernel are not counted; NULL: all are
  uint64_t from_launch, from_seen, passed; // seen: launches of it so far; passed: those that were not counted
} ShimWatch;

#endif
