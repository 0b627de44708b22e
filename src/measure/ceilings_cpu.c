// The ceilings of a CPU, by all its threads together: reading, writing and copying memory that no cache
// holds, and fp32 multiply-adds in registers with the widest vectors that this CPU has.
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "base/heap.h"
#include "base/threads.h"
#include "measure/ceilings.h"
#include "measure/stats.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { ROUNDS = 7, CHAINS = 12, FMA_STEPS = 4000000 };

typedef enum Task { TASK_READ, TASK_WRITE, TASK_COPY, TASK_FMA } Task;

typedef struct Job {
  Task task;
  int workers;
  unsigned char *from, *to;
  size_t bytes;    // of each
  double *results; // one for each worker: what it computed, so that it has to
} Job;

// ---- arithmetic ----

static double fma_plain(int steps) {
  float x[CHAINS];
  for (int k = 0; k < CHAINS; k++) x[k] = (float)k;
  for (int i = 0; i < steps; i++)
    for (int k = 0; k < CHAINS; k++) x[k] = x[k] * 0.999f + 0.001f;
  double sum = 0;
  for (int k = 0; k < CHAINS; k++) sum += (double)x[k];
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static double fma_256(int steps) {
  __m256 x[CHAINS], scale = _mm256_set1_ps(0.999f), add = _mm256_set1_ps(0.001f);
  for (int k = 0; k < CHAINS; k++) x[k] = _mm256_set1_ps((float)k);
  for (int i = 0; i < steps; i++)
#pragma GCC unroll 12
    for (int k = 0; k < CHAINS; k++) x[k] = _mm256_fmadd_ps(x[k], scale, add);
  for (int k = 1; k < CHAINS; k++) x[0] = _mm256_add_ps(x[0], x[k]);
  return (double)_mm256_cvtss_f32(x[0]);
}

__attribute__((target("avx512f"))) static double fma_512(int steps) {
  __m512 x[CHAINS], scale = _mm512_set1_ps(0.999f), add = _mm512_set1_ps(0.001f);
  for (int k = 0; k < CHAINS; k++) x[k] = _mm512_set1_ps((float)k);
  for (int i = 0; i < steps; i++)
#pragma GCC unroll 12
    for (int k = 0; k < CHAINS; k++) x[k] = _mm512_fmadd_ps(x[k], scale, add);
  for (int k = 1; k < CHAINS; k++) x[0] = _mm512_add_ps(x[0], x[k]);
  return (double)_mm512_cvtss_f32(x[0]);
}
#endif

typedef struct Vector {
  double (*run)(int steps);
  int lanes;
} Vector;

// Without vectors it takes as long with fewer.
static int fma_steps(Vector v) {
  return v.lanes == 1 ? FMA_STEPS / 8 : FMA_STEPS;
}

static Vector widest(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return (Vector){fma_512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return (Vector){fma_256, 8};
#endif
  return (Vector){fma_plain, 1};
}

// ---- memory ----

typedef uint64_t Piece __attribute__((vector_size(32), aligned(16), may_alias));
enum { UNDER_WAY = 4 };

static uint64_t sum_of(const unsigned char *from, size_t bytes) {
  const Piece *p = (const Piece *)from;
  Piece sum[UNDER_WAY] = {{0}};
  for (size_t i = 0; i + UNDER_WAY <= bytes / sizeof *p; i += UNDER_WAY)
#pragma GCC unroll 4
    for (int k = 0; k < UNDER_WAY; k++) sum[k] += p[i + (size_t)k];
  for (int k = 1; k < UNDER_WAY; k++) sum[0] += sum[k];
  return sum[0][0] + sum[0][1] + sum[0][2] + sum[0][3];
}

static void work(void *ctx, int worker) {
  const Job *j = ctx;
  size_t each = j->bytes / (size_t)j->workers / 4096 * 4096, at = each * (size_t)worker;
  switch (j->task) {
  case TASK_READ: j->results[worker] = (double)sum_of(j->from + at, each); break;
  case TASK_WRITE: memset(j->to + at, worker + 1, each); break;
  case TASK_COPY: memcpy(j->to + at, j->from + at, each); break;
  case TASK_FMA: j->results[worker] = widest().run(fma_steps(widest())); break;
  }
}

static void measure(SolPool *pool, Job *job, Task task, double amount, Ceiling which, Ceilings *out) {
  double samples[ROUNDS];
  job->task = task;
  for (int i = -1; i < ROUNDS; i++) {
    double start = sol_thread_clock();
    sol_pool_run(pool, work, job);
    double seconds = sol_thread_clock() - start;
    if (i >= 0) samples[i] = seconds > 0 ? amount / seconds : 0;
  }
  Stats s = stats_of(samples, ROUNDS);
  out->values[which] = s.median;
  out->spreads[which] = s.spread;
}

static void cpu_name(char *out, size_t cap) {
  sol_format(out, cap, "%s", "CPU");
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("sse2")) return;
  unsigned int words[12];
  for (unsigned int i = 0; i < 3; i++) {
    unsigned int *w = words + 4 * i;
    __asm__("cpuid" : "=a"(w[0]), "=b"(w[1]), "=c"(w[2]), "=d"(w[3]) : "a"(0x80000002u + i), "c"(0));
  }
  char name[49] = {0};
  memcpy(name, words, 48);
  const char *at = name;
  while (*at == ' ') at++;
  if (*at) sol_format(out, cap, "%s", at);
#endif
}

// More than any cache, a quarter of the memory at most.
static size_t size_here(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  double has = pages > 0 && page > 0 ? (double)pages * (double)page : 0;
  size_t bytes = (size_t)512 << 20;
  while (has > 0 && (double)bytes * 8 > has && bytes > (size_t)16 << 20) bytes /= 2;
  return bytes;
}

SolStatus ceilings_measure_cpu(size_t bytes_wanted, Ceilings *out, SolError *err) {
  double start = sol_thread_clock();
  ceilings_clear(out);
  out->cpu = true;
  cpu_name(out->name, sizeof out->name);
  SolPool *pool = sol_pool_create(sol_thread_cores());
  Job job = {.bytes = bytes_wanted ? bytes_wanted : size_here(), .workers = pool ? sol_pool_count(pool) : 1};
  job.from = sol_heap_alloc(job.bytes);
  job.to = sol_heap_alloc(job.bytes);
  job.results = sol_heap_alloc((size_t)job.workers * sizeof *job.results);
  SolStatus status = SOL_OK;
  if (!pool || !job.from || !job.to || !job.results) {
    status = sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  } else {
    memset(job.from, 1, job.bytes); // pages never written may all map to one
    memset(job.to, 2, job.bytes);
    size_t each = job.bytes / (size_t)job.workers / 4096 * 4096;
    double bytes = (double)each * job.workers, steps = fma_steps(widest());
    measure(pool, &job, TASK_READ, bytes, CEILING_dram_read, out);
    measure(pool, &job, TASK_WRITE, bytes, CEILING_dram_write, out);
    measure(pool, &job, TASK_COPY, 2 * bytes, CEILING_dram_copy, out);
    measure(pool, &job, TASK_FMA, steps * CHAINS * widest().lanes * 2 * job.workers, CEILING_fp32, out);
  }
  out->units = job.workers;
  out->seconds = sol_thread_clock() - start;
  sol_heap_free(job.from), sol_heap_free(job.to), sol_heap_free(job.results);
  sol_pool_destroy(pool);
  return status;
}
