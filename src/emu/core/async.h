// Asynchronous operations: copies, bulk copies, wgmma, tcgen05. PTX leaves open when they complete, between their issue and
// the wait for them. Without SolEmuLaunch.async_order they complete when they are issued. With it they complete as
// late as they can: when their group is waited for, when somebody tests the mbarrier that they complete on, or when
// no warp of the cluster can go on without them. Those that a wait completes do so in an order drawn from the seed,
// but for wgmma and tcgen05, which a warp executes in order. So what does not wait for them finds them not done, in every order.
#ifndef SOL_EMU_ASYNC_H
#define SOL_EMU_ASYNC_H

#include "emu/core/state.h"

typedef enum EmuAsyncKind {
  EMU_ASYNC_COPY,    // cp.async: groups of a thread
  EMU_ASYNC_BULK,    // bulk copies: groups of a thread
  EMU_ASYNC_BARRIER, // bulk copies that complete on an mbarrier
  EMU_ASYNC_ARRIVAL, // of cp.async at an mbarrier
  EMU_ASYNC_WGMMA,   // groups of a warp
  EMU_ASYNC_TCGEN05, // products, copies and arrivals of tcgen05, in the order in which a warp issued them
  EMU_ASYNC_TMEM_LOAD,
  EMU_ASYNC_TMEM_STORE // of tensor memory: those of a warp that its next wait completes
} EmuAsyncKind;

// Carries out an operation that lanes of mask issued with instruction i; `what` is its own. It runs with the
// banks of the warp that issued it.
typedef void EmuAsyncRun(EmuCtx *x, const EmuInst *i, uint32_t mask, const void *what);

// Issues an operation for the running warp: runs it, or keeps a copy of `what` until it completes. group: the
// number of groups that were committed before; barrier: the mbarrier that it completes on, NULL for groups.
void emu_async(EmuCtx *x, const EmuInst *i, EmuAsyncKind kind, uint32_t mask, uint32_t group,
               const uint8_t *barrier, EmuAsyncRun *run, const void *what, size_t bytes);
// Completes the warp's operations of that kind that lanes of mask issued in groups below `groups`.
void emu_async_wait(EmuCtx *x, const EmuWarp *warp, EmuAsyncKind kind, uint32_t mask, uint32_t groups);
// Completes one that completes on this mbarrier. False: there is none.
bool emu_async_poll(EmuCtx *x, const uint8_t *barrier);
// Completes one of the unit's. False: there is none.
bool emu_async_force(EmuCtx *x, EmuUnit *unit);
// At the end of the unit: completes all. Bulk copies that nobody has waited for are findings.
void emu_async_finish(EmuCtx *x, EmuUnit *unit);
void emu_async_drop(EmuCtx *x, EmuUnit *unit); // without completing them

#endif
