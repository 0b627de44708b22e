// One thread: a pool of one, and no clock.
#include "base/threads.h"

#include "base/heap.h"

struct SolPool {
  int count;
};

int sol_thread_cores(void) {
  return 1;
}
double sol_thread_clock(void) {
  return 0;
}

SolPool *sol_pool_create(int count) {
  (void)count;
  SolPool *pool = sol_heap_alloc(sizeof *pool);
  if (pool) pool->count = 1;
  return pool;
}
int sol_pool_count(const SolPool *pool) {
  return pool->count;
}
void sol_pool_run(SolPool *pool, void (*work)(void *ctx, int worker), void *ctx) {
  (void)pool;
  work(ctx, 0);
}
void sol_pool_share(SolPool *pool, int count, void (*work)(void *ctx, int worker), void *ctx) {
  (void)pool, (void)count;
  work(ctx, 0);
}

bool sol_pool_usable(const SolPool *pool) {
  (void)pool;
  return true;
}

void sol_pool_destroy(SolPool *pool) {
  sol_heap_free(pool);
}

struct SolLock {
  int unused;
};

SolLock *sol_lock_create(void) {
  return sol_heap_alloc(sizeof(SolLock));
}
void sol_lock_acquire(SolLock *lock) {
  (void)lock;
}
void sol_lock_release(SolLock *lock) {
  (void)lock;
}
void sol_lock_destroy(SolLock *lock) {
  sol_heap_free(lock);
}
