// Worker threads where there are any (threads_host.c); one thread elsewhere (threads_wasm.c).
#ifndef SOL_BASE_THREADS_H
#define SOL_BASE_THREADS_H

#include "base/port.h"

// Cores this process may use, at least 1.
int sol_thread_cores(void);
// Seconds on a clock that never goes back; 0 where there is no clock.
double sol_thread_clock(void);

// A set of threads that stay ready. `count` of them work, the caller's own included; fewer where the system
// gives no more. NULL: out of memory.
typedef struct SolPool SolPool;
SolPool *sol_pool_create(int count);
int sol_pool_count(const SolPool *pool);
// Calls work(ctx, 0) ... work(ctx, count - 1), each on a separate thread, and returns when all have
// returned.
void sol_pool_run(SolPool *pool, void (*work)(void *ctx, int worker), void *ctx);
// The same on at most `count` of the threads, for work that takes its parts one after another: a thread that wakes up after the
// caller has found nothing left to do does not run it, and is not waited for.
void sol_pool_share(SolPool *pool, int count, void (*work)(void *ctx, int worker), void *ctx);
bool sol_pool_usable(const SolPool *pool); // false: of the process that this one was forked from
void sol_pool_destroy(SolPool *pool);      // NULL is fine

// For work of any length: a waiting thread sleeps. NULL: out of memory; taking and giving NULL does nothing.
typedef struct SolLock SolLock;
SolLock *sol_lock_create(void);
void sol_lock_acquire(SolLock *lock);
void sol_lock_release(SolLock *lock);
void sol_lock_destroy(SolLock *lock);

// For a few instructions' worth of work; starts as {0}.
typedef struct SolSpin {
  char held;
} SolSpin;
static inline void sol_spin_lock(SolSpin *spin) {
  while (__atomic_test_and_set(&spin->held, __ATOMIC_ACQUIRE)) {
  }
}
static inline void sol_spin_unlock(SolSpin *spin) {
  __atomic_clear(&spin->held, __ATOMIC_RELEASE);
}

#endif
