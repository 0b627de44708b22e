// Observers of launches: the report, the audit.
#ifndef SOL_SHIM_WATCH_H
#define SOL_SHIM_WATCH_H

#include "shim/shim_work.h"

typedef struct ShimLaunch {
  const ShimKernelWork *work;
  const SolEmuModule *module;
  const SolEmuResult *result; // of this launch alone
} ShimLaunch;
typedef struct ShimObserver {
  struct ShimObserver *next;
  void (*launch)(void *ctx, const ShimLaunch *launch);                 // after each, with the lock held
  void (*memory)(void *ctx, bool wrote, const void *at, size_t bytes); // other work wrote or read it; or NULL
  void (*module)(void *ctx, uint32_t unit,
                 const char *ptx); // one was loaded whose machine code is not known; or NULL
  void (*end)(void *ctx);          // once, when the process exits
  void *ctx;
} ShimObserver;
// Registers an observer, which is called for each later launch. The caller owns the observer.
void shim_observe(ShimObserver *observer);
void shim_tell_memory(bool wrote, const void *at, size_t bytes);
void shim_tell_module(uint32_t unit, const char *ptx);
void shim_report_open(void); // report.c: observes where SOL_SHIM_REPORT or SOL_SHIM_AUDIT asks for it

typedef struct ShimWatch { // of the one `shim`
  ShimObserver *observers;
  bool patterns;                                               // an observer wants them
  uint32_t sample;                                             // waves of a launch that run; 0: all
  struct SolBuffer *printed;                                   // by kernels, not yet shown
  void (*progress)(void *ctx, const SolEmuProgress *progress); // NULL: nobody waits for a launch
  void *progress_ctx;
} ShimWatch;

#endif
