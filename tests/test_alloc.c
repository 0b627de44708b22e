// A call allocates nothing: the C library's allocator is replaced by one that counts. On cpu, on cuda with a
// driver that only keeps books, and with failing calls, too. Prints what a call costs the host; that is for
// information, and fails nothing.
#include <errno.h>
#include <stddef.h>

static int counting, allocations;
#define COUNT() ((void)(counting && __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED)))

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#if defined(__GLIBC__) || defined(__linux__)
#include <features.h>
#endif
#if defined(__GLIBC__) && !defined(SANITIZED)
#define COUNTED 1
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *memory);
#define PUBLIC __attribute__((visibility("default")))
PUBLIC void *malloc(size_t size) {
  COUNT();
  return __libc_malloc(size);
}
PUBLIC void *calloc(size_t count, size_t size) {
  COUNT();
  return __libc_calloc(count, size);
}
PUBLIC void *realloc(void *old, size_t size) {
  COUNT();
  return __libc_realloc(old, size);
}
PUBLIC void *aligned_alloc(size_t align, size_t size) {
  COUNT();
  return __libc_memalign(align, size);
}
PUBLIC int posix_memalign(void **out, size_t align, size_t size) {
  COUNT();
  *out = __libc_memalign(align, size);
  return *out ? 0 : ENOMEM;
}
PUBLIC void free(void *memory) {
  if (memory) COUNT();
  __libc_free(memory);
}
#endif

#include <pthread.h>

#include "base/heap.h"
#include "check.h"
#include "fake_cuda.h"
#include "measure/trial.h"

static const char *program;

typedef struct Calls {
  const OpsDef *def;
  SolContext *ctx;
  const void *args;
  int count, failures;
} Calls;

static void *call_many(void *arg) {
  Calls *c = arg;
  for (int i = 0; i < c->count; i++)
    if (ops_call(c->ctx, c->def, c->args, NULL)) c->failures++;
  return NULL;
}

static int allocations_of(Calls *c) {
  __atomic_store_n(&allocations, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&counting, 1, __ATOMIC_RELAXED);
  call_many(c);
  __atomic_store_n(&counting, 0, __ATOMIC_RELAXED);
  return allocations;
}

static int64_t volume(const OpsDef *def, int shape) {
  int64_t v = 1;
  for (int k = 0; k < 4; k++) v *= def->shapes[shape][k] ? def->shapes[shape][k] : 1;
  return v;
}

// Every shape of its list that is not too large: short and long rows, some for the cpu's threads.
static void try_op(SolContext *ctx, const OpsDef *def) {
  static const SolDtype types[] = {SOL_BF16, SOL_FP32, SOL_FP16};
  bool cpu = sol_context_backend(ctx) == SOL_BACKEND_CPU;
  double best = 0;
  int ran = 0;
  for (int s = 0; s < def->shape_count; s++)
    for (int o = 0; o < (def->options ? def->options : 1); o++) {
      OpsCase c = {.dtype = types[s % 3], .option = o};
      memcpy(c.dim, def->shapes[s], sizeof c.dim);
      Trial t = {0};
      SolError err = {0};
      if (volume(def, s) < 1 << 20 && !trial_open(&t, ctx, def, &c, NULL, &err)) {
        if (!trial_run(&t, &err)) {
          Calls calls = {def, ctx, t.args, 3, 0};
          int count = allocations_of(&calls);
          CHECK_MSG(!count, "%s on %s, %lldx%lld, option %d: %d allocations in 3 calls", def->name,
                    sol_backend_name(sol_context_backend(ctx)), (long long)c.dim[0], (long long)c.dim[1], o,
                    count);
          CHECK_MSG(!calls.failures, "%s: %s", def->name, sol_last_error()->message);
          calls.count = cpu ? 10 : 2000;
          double start = sol_thread_clock();
          call_many(&calls);
          double each = (sol_thread_clock() - start) / calls.count;
          if (!ran || each < best) best = each;
          ran++;
        } else
          CHECK_MSG(false, "%s: %s", def->name, err.message);
      }
      trial_close(&t);
    }
  CHECK_MSG(ran, "%s: no case ran", def->name);
  printf("%-5s %-16s %3d cases, %8.0f ns a call at best\n", sol_backend_name(sol_context_backend(ctx)),
         def->name, ran, best * 1e9);
}

static void try_context(SolContext *ctx) {
  for (int op = 0; op < OPS_COUNT; op++) try_op(ctx, ops_defs[op]);
  // Refusing allocates nothing, either.
  SolCopy bad = {.m = -1, .n = 4, .dtype = SOL_FP32};
  Calls calls = {ops_defs[OPS_copy], ctx, &bad, 3, 0};
  CHECK_INT(allocations_of(&calls), 0);
  CHECK_INT(calls.failures, 3);
}

TEST(the_counter_counts) {
  __atomic_store_n(&allocations, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&counting, 1, __ATOMIC_RELAXED);
  sol_heap_free(sol_heap_realloc(sol_heap_alloc(100), 200));
  __atomic_store_n(&counting, 0, __ATOMIC_RELAXED);
  CHECK_INT(allocations, 3);
}

TEST(cpu) {
  SolContext *ctx = NULL;
  if (!CHECK_INT(sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_CPU}, &ctx, NULL), SOL_OK))
    return;
  try_context(ctx);
  sol_context_destroy(ctx);
}

TEST(cuda) {
  if (!CHECK(fake_open(program) != NULL)) return;
  if (!ops_image_count) SKIP("built without nvcc: no kernels");
  SolContext *ctx = NULL;
  SolError err = {0};
  SolStatus status = sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_CUDA}, &ctx, &err);
  if (!CHECK_MSG(!status, "%s", err.message)) return;
  try_context(ctx);
  sol_context_destroy(ctx);
}

int main(int argc, char **argv) {
#ifndef COUNTED
  (void)argc, (void)argv;
  printf("allocations cannot be counted here: the allocator is a sanitizer's or not glibc's\n");
  return 77;
#else
  program = argv[0];
  return check_main(argc, argv);
#endif
}
