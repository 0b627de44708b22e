#define _GNU_SOURCE // sched_getaffinity
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/heap.h"

typedef struct Worker {
  SolPool *pool;
  int index;
  pthread_t thread;
} Worker;

struct SolPool {
  int count;
  pthread_mutex_t lock;
  pthread_cond_t start, done;
  uint64_t round; // of work; a worker that has seen it waits for the next
  int busy;
  bool ending;
  bool shared, open; // the round: threads may stay away; may still come
  int limit;         // of a shared round: threads
  pid_t process;
  void (*work)(void *ctx, int worker);
  void *ctx;
  Worker *workers; // but the caller
};

int sol_thread_cores(void) {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    int n = CPU_COUNT(&set);
    if (n > 0) return n;
  }
#endif
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (int)n : 1;
}

double sol_thread_clock(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *serve(void *arg) {
  Worker *w = arg;
  SolPool *pool = w->pool;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->ending && pool->round == seen) pthread_cond_wait(&pool->start, &pool->lock);
    if (pool->ending) break;
    seen = pool->round;
    if (pool->shared && (!pool->open || w->index >= pool->limit)) continue;
    if (pool->shared) pool->busy++;
    pthread_mutex_unlock(&pool->lock);
    pool->work(pool->ctx, w->index);
    pthread_mutex_lock(&pool->lock);
    if (--pool->busy == 0) pthread_cond_signal(&pool->done);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

SolPool *sol_pool_create(int count) {
  if (count < 1) count = 1;
  SolPool *pool = sol_heap_alloc(sizeof *pool);
  Worker *workers = sol_heap_alloc(sizeof *workers * (size_t)count);
  if (!pool || !workers) {
    sol_heap_free(pool);
    sol_heap_free(workers);
    return NULL;
  }
  memset(pool, 0, sizeof *pool);
  pool->workers = workers;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->start, NULL);
  pthread_cond_init(&pool->done, NULL);
  pool->count = 1;
  pool->process = getpid();
  for (int i = 1; i < count; i++) {
    workers[i] = (Worker){.pool = pool, .index = i};
    if (pthread_create(&workers[i].thread, NULL, serve, &workers[i]) != 0) break;
    pool->count = i + 1;
  }
  return pool;
}

int sol_pool_count(const SolPool *pool) {
  return pool->count;
}

void sol_pool_run(SolPool *pool, void (*work)(void *ctx, int worker), void *ctx) {
  if (pool->count > 1) {
    pthread_mutex_lock(&pool->lock);
    pool->work = work;
    pool->ctx = ctx;
    pool->busy = pool->count - 1;
    pool->shared = false;
    pool->round++;
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->lock);
  }
  work(ctx, 0);
  if (pool->count > 1) {
    pthread_mutex_lock(&pool->lock);
    while (pool->busy) pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
  }
}

void sol_pool_share(SolPool *pool, int count, void (*work)(void *ctx, int worker), void *ctx) {
  pthread_mutex_lock(&pool->lock);
  pool->work = work;
  pool->ctx = ctx;
  pool->limit = count;
  pool->shared = pool->open = true;
  pool->round++;
  pthread_cond_broadcast(&pool->start);
  pthread_mutex_unlock(&pool->lock);
  work(ctx, 0);
  pthread_mutex_lock(&pool->lock);
  pool->open = false;
  while (pool->busy) pthread_cond_wait(&pool->done, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

bool sol_pool_usable(const SolPool *pool) {
  return pool->process == getpid();
}

void sol_pool_destroy(SolPool *pool) {
  if (!pool) return;
  pthread_mutex_lock(&pool->lock);
  pool->ending = true;
  pthread_cond_broadcast(&pool->start);
  pthread_mutex_unlock(&pool->lock);
  for (int i = 1; i < pool->count; i++) pthread_join(pool->workers[i].thread, NULL);
  pthread_cond_destroy(&pool->start);
  pthread_cond_destroy(&pool->done);
  pthread_mutex_destroy(&pool->lock);
  sol_heap_free(pool->workers);
  sol_heap_free(pool);
}

struct SolLock {
  pthread_mutex_t mutex;
};

SolLock *sol_lock_create(void) {
  SolLock *lock = sol_heap_alloc(sizeof *lock);
  if (lock) pthread_mutex_init(&lock->mutex, NULL);
  return lock;
}

void sol_lock_acquire(SolLock *lock) {
  if (lock) pthread_mutex_lock(&lock->mutex);
}

void sol_lock_release(SolLock *lock) {
  if (lock) pthread_mutex_unlock(&lock->mutex);
}

void sol_lock_destroy(SolLock *lock) {
  if (!lock) return;
  pthread_mutex_destroy(&lock->mutex);
  sol_heap_free(lock);
}
