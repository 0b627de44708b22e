// Contexts: which backend, whose CUDA context, what is loaded when, memory, threads. The cuda backend's host
// side is held against a driver that only keeps books (fake_cuda.h).
#include <pthread.h>

#include "base/heap.h"
#include "check.h"
#include "fake_cuda.h"
#include "image/fatbin.h"
#include "ladder/ladder_run.h"
#include "measure/trial.h"

static const char *program;

static SolContext *create(SolBackend backend) {
  SolContext *ctx = NULL;
  SolError err = {0};
  SolStatus status = sol_context_create(&(SolContextOptions){.backend = backend}, &ctx, &err);
  CHECK_MSG(!status, "%s: %s", sol_backend_name(backend), err.message);
  return ctx;
}

// NULL where there is nothing to load: the build is without nvcc.
static FakeCuda *fake_ready(void) {
  FakeCuda *fake = fake_open(program);
  if (!CHECK_MSG(fake != NULL, "tests/fake/libcuda.so.1 is missing")) return NULL;
  memset(fake->calls, 0, sizeof fake->calls);
  fake->launches = fake->violations = fake->not_loaded = 0;
  fake->cc = 90;
  fake->missing = NULL;
  fake->fail_launch = 0;
  if (!ops_image_count) check_skip("built without nvcc: no kernels");
  return ops_image_count ? fake : NULL;
}

TEST(no_driver_is_said) { // first: once the fake one is loaded, it stays
  void *real = dlopen("libcuda.so.1", RTLD_NOW);
  if (real) {
    dlclose(real);
    SKIP("there is a CUDA driver here");
  }
  SolContext *ctx = (SolContext *)&ctx;
  SolError err = {0};
  CHECK_INT(sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_CUDA}, &ctx, &err),
            SOL_ERR_UNSUPPORTED);
  CHECK(ctx == NULL);
  CHECK_HAS(err.message, "libcuda.so.1");
  ctx = create(SOL_BACKEND_AUTO);
  CHECK_INT(sol_context_backend(ctx), SOL_BACKEND_CPU);
  sol_context_destroy(ctx);
}

TEST(names) {
  SolBackend b = SOL_BACKEND_AUTO;
  SolError err;
  CHECK_STR(sol_backend_name(SOL_BACKEND_EMU), "emu");
  CHECK_STR(sol_backend_name((SolBackend)77), "?");
  CHECK_INT(sol_backend_find("CUDA", &b, &err), SOL_OK);
  CHECK_INT(b, SOL_BACKEND_CUDA);
  CHECK_INT(sol_backend_find("cudda", &b, &err), SOL_ERR_NOT_FOUND);
  CHECK_HAS(err.hint, "cuda");
  CHECK_INT(sol_backend_find(NULL, &b, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_context_backend(NULL), SOL_BACKEND_AUTO);
}

TEST(options_refused) {
  SolContext *ctx;
  SolError err;
  CHECK_INT(sol_context_create(NULL, NULL, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_context_create(&(SolContextOptions){.backend = (SolBackend)9}, &ctx, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_context_create(&(SolContextOptions){.backend = (SolBackend)-1}, &ctx, NULL),
            SOL_ERR_ARGUMENT);
  CHECK_INT(sol_context_create(&(SolContextOptions){.workers = -1}, &ctx, &err), SOL_ERR_ARGUMENT);
  CHECK(ctx == NULL);
  sol_context_destroy(NULL);
}

TEST(memory) {
  for (SolBackend b = SOL_BACKEND_CPU; b <= SOL_BACKEND_EMU; b++) {
    SolContext *ctx = create(b);
    SolError err;
    void *at = NULL;
    char text[] = "as it was written", back[sizeof text] = "";
    CHECK_INT(sol_context_alloc(ctx, sizeof text, &at, &err), SOL_OK);
    CHECK_INT(sol_context_write(ctx, at, text, sizeof text, &err), SOL_OK);
    CHECK_INT(sol_context_read(ctx, back, at, sizeof text, &err), SOL_OK);
    CHECK_STR(back, text);
    CHECK_INT(sol_context_sync(ctx, &err), SOL_OK);
    CHECK_INT(sol_context_write(ctx, NULL, text, 1, &err), SOL_ERR_ARGUMENT);
    CHECK_INT(sol_context_read(ctx, NULL, at, 1, &err), SOL_ERR_ARGUMENT);
    CHECK_INT(sol_context_write(ctx, NULL, NULL, 0, &err), SOL_OK);
    CHECK_INT(sol_context_free(ctx, at, &err), SOL_OK);
    CHECK_INT(sol_context_free(ctx, NULL, &err), SOL_OK);
    if (b == SOL_BACKEND_EMU) {
      CHECK_INT(sol_context_free(ctx, at, &err), SOL_ERR_ARGUMENT); // twice
      CHECK(sol_context_read(ctx, back, at, 1, &err) != SOL_OK);
    }
    CHECK_INT(sol_context_alloc(ctx, 0, &at, &err), SOL_OK);
    CHECK_INT(sol_context_free(ctx, at, &err), SOL_OK);
    if (b == SOL_BACKEND_EMU) { // on cpu a sanitizer would end the program
      CHECK_INT(sol_context_alloc(ctx, (size_t)1 << 62, &at, &err), SOL_ERR_NO_SPACE);
      CHECK(at == NULL);
    }
    sol_context_destroy(ctx);
  }
  CHECK_INT(sol_context_alloc(NULL, 1, &(void *){NULL}, NULL), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_context_free(NULL, NULL, NULL), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_context_sync(NULL, NULL), SOL_ERR_ARGUMENT);
}

TEST(messages_name_the_operation) {
  SolContext *ctx = create(SOL_BACKEND_CPU);
  SolSoftmax a = {.m = 1, .n = 1, .dtype = SOL_INT8};
  SolCost cost;
  SolError err = {0};
  CHECK_INT(sol_log_softmax(ctx, &a, NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "log_softmax: cannot turn int8 into int8");
  CHECK_INT(sol_softmax_cost(&a, &cost, &err), SOL_ERR_ARGUMENT);
  CHECK_HAS(err.message, "softmax: cannot turn");
  CHECK_INT(sol_softmax_cost(&a, &cost, NULL), SOL_ERR_ARGUMENT);
  sol_context_destroy(ctx);
}

TEST(every_definition_is_whole) {
  SolContext *ctx = create(SOL_BACKEND_CPU);
  for (int op = 0; op < OPS_COUNT; op++) {
    const OpsDef *d = ops_defs[op];
    int index = 0;
    CHECK_INT(ops_index(ctx, d), op);
    CHECK_MSG(d->make && d->views && d->launch && d->reference && d->cost, "%s", d->name);
    CHECK_MSG(!d->cpu != !d->cpu_rows, "%s: the CPU's code, once", d->name);
    CHECK_MSG(d->module && d->kernel_count && d->shape_count && d->bench_count, "%s", d->name);
    CHECK_MSG(d->args_bytes <= sizeof((Trial *)0)->args, "%s: arguments of %zu bytes", d->name,
              d->args_bytes);
    CHECK_MSG(!sol_op_find(d->cost_name ? d->cost_name : d->name, &index, NULL),
              "the accountant does not know %s", d->name);
    for (int other = 0; other < op; other++) CHECK(strcmp(d->name, ops_defs[other]->name) != 0);
  }
  sol_context_destroy(ctx);
}

// ---- threads ----

enum { THREADS = 4 };
typedef struct Task {
  SolContext *ctx;
  int first, failures;
  char message[256];
} Task;

// Small and large: the large ones reach for the pool, which one call has at a time.
static OpsCase small_case(const OpsDef *def, int i) {
  OpsCase c = {.dtype = i % 2 ? SOL_FP32 : SOL_BF16};
  memcpy(c.dim, def->shapes[i % def->shape_count], sizeof c.dim);
  return c;
}

static void *work(void *arg) {
  Task *task = arg;
  bool emu = sol_context_backend(task->ctx) == SOL_BACKEND_EMU;
  for (int k = 0; k < OPS_COUNT * (emu ? 1 : 4) || k < 200; k++) {
    const OpsDef *def = ops_defs[(task->first + k) % OPS_COUNT];
    OpsCase c = small_case(def, emu ? k % 4 : k);
    Trial t;
    SolError err = {0};
    // What a call gets does not depend on how many operations there are.
    TrialOptions options = {.seed = (uint64_t)(k / OPS_COUNT)};
    SolStatus status = trial_open(&t, task->ctx, def, &c, &options, &err);
    bool none = status == SOL_ERR_NOT_FOUND;
    if (!status) status = trial_run(&t, &err);
    if (!status) status = trial_check(&t, NULL, &err);
    trial_close(&t);
    if (!status || none) continue;
    task->failures++;
    snprintf(task->message, sizeof task->message, "%s", err.message);
  }
  return NULL;
}

static void run_threads(SolContext *ctx) {
  pthread_t threads[THREADS];
  Task tasks[THREADS];
  for (int i = 0; i < THREADS; i++) {
    tasks[i] = (Task){.ctx = ctx, .first = i * 3};
    CHECK_INT(pthread_create(&threads[i], NULL, work, &tasks[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    CHECK_MSG(!tasks[i].failures, "%d failures, the last: %s", tasks[i].failures, tasks[i].message);
  }
}

TEST(threads_share_a_context) {
  for (SolBackend b = SOL_BACKEND_CPU; b <= SOL_BACKEND_EMU; b++) {
    if (b == SOL_BACKEND_EMU && !ops_image_count) SKIP("built without nvcc: no kernels");
    SolContext *ctx = create(b);
    run_threads(ctx);
    sol_context_destroy(ctx);
  }
}

static void *fail_here(void *arg) {
  CHECK_INT(sol_copy(arg, NULL, NULL), SOL_ERR_ARGUMENT);
  return NULL;
}

TEST(the_last_error_is_the_threads_own) {
  SolContext *ctx = create(SOL_BACKEND_CPU);
  SolCopy args = {.m = -1, .n = 1, .dtype = SOL_FP32};
  CHECK_INT(sol_copy(ctx, &args, NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "negative");
  pthread_t other;
  CHECK_INT(pthread_create(&other, NULL, fail_here, ctx), 0);
  pthread_join(other, NULL);
  CHECK_HAS(sol_last_error()->message, "negative");
  sol_context_destroy(ctx);
}

// ---- cuda, on the fake driver ----

typedef struct Pair {
  void *x, *y;
  SolCopy args;
} Pair;

static Pair make_pair(SolContext *ctx) {
  Pair p = {0};
  SolError err;
  CHECK_INT(sol_context_alloc(ctx, 4096, &p.x, &err), SOL_OK);
  CHECK_INT(sol_context_alloc(ctx, 4096, &p.y, &err), SOL_OK);
  p.args = (SolCopy){.y = p.y, .x = p.x, .m = 16, .n = 64, .dtype = SOL_FP32};
  return p;
}

static void free_pair(SolContext *ctx, Pair *p) {
  CHECK_INT(sol_context_free(ctx, p->x, NULL), SOL_OK);
  CHECK_INT(sol_context_free(ctx, p->y, NULL), SOL_OK);
}

TEST(cuda_takes_the_primary_context_where_none_is_current) {
  FakeCuda *fake = fake_ready();
  if (!fake) return;
  SolContext *ctx = create(SOL_BACKEND_AUTO);
  CHECK_INT(sol_context_backend(ctx), SOL_BACKEND_CUDA);
  CHECK_INT(fake->contexts[0].retained, 1);
  void *current = ctx;
  fake->current(&current);
  CHECK(current == NULL); // the thread is left as it was
  Pair p = make_pair(ctx);
  CHECK_INT(sol_copy(ctx, &p.args, NULL), SOL_OK);
  CHECK_INT(fake->launches, 1);
  CHECK(fake->launch[0].context == &fake->contexts[0]);
  fake->current(&current);
  CHECK(current == NULL);
  free_pair(ctx, &p);
  sol_context_destroy(ctx);
  CHECK_INT(fake->contexts[0].retained, 0);
  CHECK_INT(fake->modules, 0);
  CHECK_INT(fake->allocations, 0);
}

static void *copy_elsewhere(void *arg) {
  FakeCuda *fake = fake_open(program);
  void **given = arg; // context, arguments
  void *current = NULL, *popped;
  CHECK_INT(sol_copy(given[0], given[1], NULL), SOL_OK); // no context current on this thread
  fake->current(&current);
  CHECK(current == NULL);
  fake->push(&fake->contexts[2]); // another one is
  CHECK_INT(sol_copy(given[0], given[1], NULL), SOL_OK);
  fake->current(&current);
  CHECK(current == &fake->contexts[2]);
  fake->pop(&popped);
  return NULL;
}

TEST(cuda_takes_the_callers_context) {
  FakeCuda *fake = fake_ready();
  if (!fake) return;
  void *popped;
  fake->push(&fake->contexts[1]); // GPU 1's, as a framework has made it
  SolContext *ctx = create(SOL_BACKEND_CUDA);
  CHECK_INT(fake->contexts[1].retained, 0);
  CHECK_INT(fake->calls[FAKE_context_push], 1); // the one above
  CHECK_INT(ctx->device, 1);
  Pair p = make_pair(ctx);
  pthread_t thread;
  void *given[] = {ctx, &p.args};
  CHECK_INT(pthread_create(&thread, NULL, copy_elsewhere, given), 0);
  pthread_join(thread, NULL);
  CHECK_INT(fake->launches, 2);
  for (int i = 0; i < 2; i++) CHECK(fake->launch[i].context == &fake->contexts[1]);
  free_pair(ctx, &p);
  sol_context_destroy(ctx);
  fake->pop(&popped);
}

TEST(cuda_loads_when_first_needed) {
  FakeCuda *fake = fake_ready();
  if (!fake) return;
  int kernels = 0;
  SolContext *ctx = create(SOL_BACKEND_CUDA);
  CHECK_INT(fake->modules, 0);
  SolError err;
  for (int twice = 0; twice < 2; twice++)
    for (int op = 0; op < OPS_COUNT; op++) {
      CHECK_INT(ops_load(ctx, op, &err), SOL_OK);
      if (!twice) kernels += ops_defs[op]->kernel_count;
      CHECK_INT(fake->calls[FAKE_function_load], kernels);
      CHECK_INT(fake->calls[FAKE_module_function], kernels);
    }
  // Each once, though operations share them; the ceilings' kernels are no operation's.
  CHECK_INT(fake->modules, ops_image_count - 1);
  sol_context_destroy(ctx);
  fake->missing = "sol_copy"; // as on a GPU that these kernels were not built for
  ctx = create(SOL_BACKEND_CUDA);
  Pair p = make_pair(ctx);
  CHECK_INT(sol_copy(ctx, &p.args, NULL), SOL_ERR_UNSUPPORTED);
  CHECK_HAS(sol_last_error()->message, "not built for this GPU");
  CHECK_INT(fake->launches, 0);
  free_pair(ctx, &p);
  sol_context_destroy(ctx);
}

// The first call of an operation, which loads its kernels, may be one that a graph records.
TEST(cuda_loads_while_a_graph_is_recorded) {
  FakeCuda *fake = fake_ready();
  if (!fake) return;
  SolContext *ctx = create(SOL_BACKEND_CUDA);
  Pair p = make_pair(ctx);
  int violations = fake->violations;
  fake->capturing = 1;
  CHECK_INT(sol_copy(ctx, &p.args, NULL), SOL_OK);
  SolError err;
  for (int op = 0; op < OPS_COUNT; op++) CHECK_INT(ops_load(ctx, op, &err), SOL_OK);
  fake->capturing = 0;
  CHECK_INT(fake->violations, violations);
  CHECK_INT(fake->launches, 1);
  free_pair(ctx, &p);
  sol_context_destroy(ctx);
}

// What one call asks of the driver: a look at each pointer, at the context, tensor maps, which the host makes by itself, and the
// launches. No memory, no waiting, no loading, which a capture would forbid.
static void check_calls(FakeCuda *fake, SolContext *ctx, const OpsDef *def, void *stream, bool trust) {
  static const int fine[] = {FAKE_pointer_attributes, FAKE_context_current, FAKE_tensor_map_encode,
                             FAKE_launch};
  OpsCase c = {.dtype = SOL_BF16};
  Trial t;
  SolError err = {0};
  unsigned char args[sizeof t.args];
  for (int i = def->shape_count > 7 ? 7 : 0; i >= 0;
       i--) { // a shape that the operation has, in one of two types
    memcpy(c.dim, def->shapes[i], sizeof c.dim);
    if (def->make(&c, args)) break;
    c.dtype = SOL_FP32;
    if (def->make(&c, args)) break;
    c.dtype = SOL_BF16;
  }
  if (!CHECK_MSG(!trial_open(&t, ctx, def, &c, NULL, &err), "%s: %s", def->name, err.message)) {
    trial_close(&t);
    return;
  }
  CHECK_INT(ops_load(ctx, ops_index(ctx, def), &err), SOL_OK);
  memset(fake->calls, 0, sizeof fake->calls);
  int before = fake->launches, tensors = 0;
  for (int k = 0; k < t.count; k++) tensors += t.view[k].at != NULL;
  SolStatus status = ops_call(ctx, def, t.args, stream);
  CHECK_MSG(!status, "%s: %s", def->name, sol_last_error()->message);
  int launched = fake->launches - before;
  CHECK_MSG(launched >= 1, "%s launched nothing", def->name);
  for (int i = 0; i < launched; i++)
    CHECK_MSG(fake->launch[(before + i) % FAKE_LAUNCHES].stream == stream, "%s: another stream", def->name);
  for (int i = 0; i < FAKE_COUNT; i++) {
    bool allowed = false;
    for (size_t k = 0; k < SOL_COUNT(fine); k++) allowed |= fine[k] == i;
    CHECK_MSG(allowed || !fake->calls[i], "%s: entry point %d was called", def->name, i);
  }
  int wanted = launched + fake->calls[FAKE_tensor_map_encode];
  CHECK_MSG(fake->calls[FAKE_context_current] == wanted, "%s: looks at the context %d times, not %d",
            def->name, fake->calls[FAKE_context_current], wanted);
  CHECK_MSG(fake->calls[FAKE_pointer_attributes] == (trust ? 0 : tensors), "%s: %d looks at %d pointers",
            def->name, fake->calls[FAKE_pointer_attributes], tensors);
  // L2 reads all of 256 bytes around a copy's but for a paged cache, which has other blocks' tokens there.
  bool paged = !strcmp(def->name, "decode_attention");
  if (fake->calls[FAKE_tensor_map_encode])
    CHECK_MSG(fake->promotion == (paged ? 0 : 3), "%s: promotion %d", def->name, fake->promotion);
  else
    CHECK_MSG(!paged, "the cache is read without tensor maps");
  trial_close(&t);
}

TEST(cuda_calls_are_fit_for_capture) {
  FakeCuda *fake = fake_ready();
  if (!fake) return;
  void *popped, *stream = NULL;
  fake->push(&fake->contexts[0]);
  for (int trust = 0; trust < 2; trust++) {
    SolContext *ctx = NULL;
    SolContextOptions options = {.backend = SOL_BACKEND_CUDA, .trust_pointers = trust};
    SolError err;
    if (!CHECK_INT(sol_context_create(&options, &ctx, &err), SOL_OK)) return;
    for (int op = 0; op < OPS_COUNT; op++) check_calls(fake, ctx, ops_defs[op], (void *)0x1234, trust);
    // And inside a recording.
    Pair p = make_pair(ctx);
    SolDriverGraph *graph = NULL;
    CHECK_INT(sol_driver_stream_open(ctx->driver, &stream, &err), SOL_OK);
    CHECK_INT(sol_driver_record(ctx->driver, stream, &err), SOL_OK);
    CHECK_INT(sol_copy(ctx, &p.args, stream), SOL_OK);
    CHECK_INT(sol_driver_recorded(ctx->driver, stream, &graph, &err), SOL_OK);
    sol_driver_graph_free(ctx->driver, graph);
    sol_driver_stream_close(ctx->driver, stream);
    free_pair(ctx, &p);
    sol_context_destroy(ctx);
  }
  CHECK_INT(fake->violations, 0);
  CHECK_INT(fake->not_loaded, 0);
  fake->pop(&popped);
}

TEST(cuda_pointers) {
  FakeCuda *fake = fake_ready();
  if (!fake) return;
  void *popped, *elsewhere = NULL;
  fake->push(&fake->contexts[1]);
  SolContext *second = create(SOL_BACKEND_CUDA);
  CHECK_INT(sol_context_alloc(second, 4096, &elsewhere, NULL), SOL_OK);
  fake->pop(&popped);
  SolContext *ctx = create(SOL_BACKEND_CUDA);
  Pair p = make_pair(ctx);
  _Alignas(16) static char host[4096];
  SolCopy bad = p.args;
  bad.x = host;
  CHECK_INT(sol_copy(ctx, &bad, NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "copy: x: ");
  CHECK_HAS(sol_last_error()->message, "not memory that the GPU can reach");
  bad = p.args;
  bad.y = elsewhere;
  CHECK_INT(sol_copy(ctx, &bad, NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "copy: y: ");
  CHECK_HAS(sol_last_error()->message, "memory of GPU 1, not of GPU 0");
  CHECK_INT(fake->launches, 0);
  CHECK_INT(sol_context_free(second, elsewhere, NULL), SOL_OK);
  sol_context_destroy(second);
  free_pair(ctx, &p);
  sol_context_destroy(ctx);
}

TEST(cuda_failures_are_passed_on) {
  FakeCuda *fake = fake_ready();
  if (!fake) return;
  SolContext *ctx = create(SOL_BACKEND_CUDA);
  Pair p = make_pair(ctx);
  fake->fail_launch = 719;
  CHECK_INT(sol_copy(ctx, &p.args, NULL), SOL_ERR_UNSUPPORTED);
  CHECK_HAS(sol_last_error()->message, "copy: sol_copy");
  CHECK_HAS(sol_last_error()->message, "719");
  fake->fail_launch = 0;
  CHECK_INT(sol_copy(ctx, &p.args, NULL), SOL_OK);
  free_pair(ctx, &p);
  sol_context_destroy(ctx);
}

// Several threads at once on the cuda backend: every call launches in the right context.
static void *launch_many(void *arg) {
  void **given = arg;
  int *failures = given[2];
  for (int i = 0; i < 1000; i++)
    if (sol_copy(given[0], given[1], NULL)) __atomic_add_fetch(failures, 1, __ATOMIC_RELAXED);
  return NULL;
}

TEST(cuda_from_several_threads) {
  FakeCuda *fake = fake_ready();
  if (!fake) return;
  SolContext *ctx = create(SOL_BACKEND_CUDA);
  Pair p = make_pair(ctx);
  int failures = 0;
  pthread_t threads[THREADS];
  void *given[] = {ctx, &p.args, &failures};
  for (int i = 0; i < THREADS; i++) CHECK_INT(pthread_create(&threads[i], NULL, launch_many, given), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  CHECK_INT(failures, 0);
  CHECK_INT(fake->launches, THREADS * 1000);
  free_pair(ctx, &p);
  sol_context_destroy(ctx);
}

// Whether the image has PTX of that architecture, and its whole text comes out of the packed entry.
static bool unpacks(const OpsImage *image, int cc, SolError *err) {
  SolFatbin fat;
  SolFatEntry entry = {0};
  char *text = NULL;
  size_t length = 0;
  if (sol_fatbin_open(image->fat, (uint64_t)(image->fat_end - image->fat), &fat, err) ||
      sol_fatbin_choose_ptx(&fat, cc, &entry, err) || sol_fatbin_text(&entry, &text, &length, err))
    return false;
  bool whole = entry.arch == cc && strlen(text) == length && strstr(text, ".version") &&
               strchr("}\n", text[length - 1]);
  sol_heap_free(text);
  return whole;
}

static void check_images(const OpsImage *images, int count) {
  for (int i = 0; i < count; i += CHECK_SANITIZED ? 8 : 1) // sanitized it takes a minute
    for (int cc = 75; cc <= 90; cc += 15) {
      SolError err = {0};
      CHECK_MSG(unpacks(&images[i], cc, &err), "%s for sm_%d: %s", images[i].name, cc, err.message);
    }
}

TEST(embedded_ptx_unpacks) {
  check_images(ops_images, ops_image_count);
  check_images(ladder_images, ladder_image_count);
}

int main(int argc, char **argv) {
  program = argv[0];
  return check_main(argc, argv);
}
