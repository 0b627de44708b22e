// Contexts: opening a backend, loading kernels, memory.
#include <stdarg.h>

#include "base/error.h"
#include "base/format.h"
#include "base/heap.h"
#include "base/text.h"
#include "ops/operation.h"

static const char *const backend_names[] = {"auto", "cpu", "emu", "cuda"};

const OpsDef *const ops_defs[OPS_COUNT] = {
#define OP(name, Args) &ops_##name,
#include "ops/operations.def"
};

const char *sol_backend_name(SolBackend backend) {
  return (unsigned)backend < SOL_COUNT(backend_names) ? backend_names[backend] : "?";
}

static const char *backend_at(const void *ctx, int i) {
  (void)ctx;
  return backend_names[i];
}

SolStatus sol_backend_find(const char *name, SolBackend *out, SolError *err) {
  if (!name || !out) return sol_fail(err, SOL_ERR_ARGUMENT, "name and out must not be NULL");
  for (int i = 0; i < (int)SOL_COUNT(backend_names); i++)
    if (sol_same_name(name, backend_names[i])) return *out = (SolBackend)i, SOL_OK;
  return sol_fail_unknown(err, "backend", name, backend_at, NULL, (int)SOL_COUNT(backend_names));
}

// Definitions are at least their own size apart in memory: dividing the address by the size gives most of
// them different slots.
static unsigned slot_of(const OpsDef *def) {
  return (unsigned)((uintptr_t)def / sizeof *def % OPS_SLOTS);
}
_Static_assert(OPS_COUNT < OPS_SLOTS / 2, "the table must stay half empty");

static void fill_slots(SolContext *ctx) {
  for (int op = 0; op < OPS_COUNT; op++) {
    unsigned slot = slot_of(ops_defs[op]);
    while (ctx->slots[slot]) slot = (slot + 1) % OPS_SLOTS;
    ctx->slots[slot] = (uint8_t)(op + 1);
  }
}

int ops_index(const SolContext *ctx, const OpsDef *def) {
  unsigned slot = slot_of(def);
  while (ops_defs[ctx->slots[slot] - 1] != def) slot = (slot + 1) % OPS_SLOTS;
  return ctx->slots[slot] - 1;
}

static SolStatus load_module(SolContext *ctx, int op, SolError *err) {
  const OpsDef *def = ops_defs[op];
  for (int other = 0; other < OPS_COUNT; other++)
    if (ctx->modules[other] && !strcmp(ops_defs[other]->module, def->module))
      return ctx->modules[op] = ctx->modules[other], SOL_OK;
  const OpsImage *image = ops_image_find(ops_images, ops_image_count, def->module, err);
  return image ? ops_image_load(image, ctx->driver, ctx->cc, &ctx->modules[op], err) : SOL_ERR_UNSUPPORTED;
}

// NULL where this GPU cannot run it: it needs sm_90, or more shared memory than the GPU has.
static SolDriverKernel *find_kernel(const OpsDef *def, SolDriverModule *module, int i) {
  SolDriverKernel *kernel;
  if (sol_driver_kernel(module, def->kernels[i], &kernel, NULL)) return NULL;
  if (def->shared && def->shared[i] > SOL_DRIVER_SHARED &&
      sol_driver_allow_shared(kernel, def->shared[i], NULL))
    return NULL;
  return kernel;
}

static SolStatus load_kernels(SolContext *ctx, int op, SolError *err) {
  const OpsDef *def = ops_defs[op];
  SolStatus status = load_module(ctx, op, err);
  if (status) return status;
  SolDriverKernel **kernels = sol_heap_alloc(sizeof *kernels * (size_t)def->kernel_count);
  if (!kernels) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  for (int i = 0; i < def->kernel_count; i++) kernels[i] = find_kernel(def, ctx->modules[op], i);
  if (def->loaded) def->loaded(ctx, kernels);
  __atomic_store_n(&ctx->kernels[op], kernels, __ATOMIC_RELEASE); // from here on other threads use them
  return SOL_OK;
}

SolStatus ops_load(SolContext *ctx, int op, SolError *err) {
  if (__atomic_load_n(&ctx->kernels[op], __ATOMIC_ACQUIRE)) return SOL_OK;
  sol_lock_acquire(ctx->loading);
  SolStatus status = ctx->kernels[op] ? SOL_OK : load_kernels(ctx, op, err);
  sol_lock_release(ctx->loading);
  return status;
}

static SolStatus open_driver(SolContext *ctx, const SolContextOptions *o, SolError *err) {
  SolDriverOptions options = {.backend = ctx->backend, .device = o->device, .workers = o->workers};
  SolStatus status = sol_driver_open(&options, &ctx->driver, err);
  SolDriverInfo info = {0};
  if (!status) status = sol_driver_info(ctx->driver, &info, err);
  ctx->cc = info.cc;
  ctx->sms = info.sms;
  ctx->device = info.device;
  if (status) return status;
  ctx->loading = sol_lock_create();
  if (ctx->backend == SOL_BACKEND_EMU) ctx->one_at_a_time = sol_lock_create();
  bool locks = ctx->loading && (ctx->one_at_a_time || ctx->backend != SOL_BACKEND_EMU);
  return locks ? SOL_OK : sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
}

SolStatus sol_context_create(const SolContextOptions *options, SolContext **out, SolError *err) {
  static const SolContextOptions defaults = {0};
  const SolContextOptions *o = options ? options : &defaults;
  if (!out) return sol_fail(err, SOL_ERR_ARGUMENT, "out must not be NULL");
  *out = NULL;
  if ((unsigned)o->backend > SOL_BACKEND_CUDA)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such backend: %d", (int)o->backend);
  if (o->workers < 0) return sol_fail(err, SOL_ERR_ARGUMENT, "workers must not be negative");
  if (o->backend == SOL_BACKEND_AUTO) {
    SolContextOptions each = *o;
    each.backend = SOL_BACKEND_CUDA;
    if (!sol_context_create(&each, out, NULL)) return SOL_OK;
    each.backend = SOL_BACKEND_CPU;
    return sol_context_create(&each, out, err);
  }
  SolContext *ctx = sol_heap_alloc(sizeof *ctx);
  if (!ctx) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *ctx = (SolContext){.backend = o->backend, .trust_pointers = o->trust_pointers != 0};
  fill_slots(ctx);
  SolStatus status = SOL_OK;
  if (o->backend == SOL_BACKEND_CPU) {
    ctx->pool = sol_pool_create(o->workers ? o->workers : sol_thread_cores());
    if (!ctx->pool) status = sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  } else
    status = open_driver(ctx, o, err);
  if (status)
    sol_context_destroy(ctx);
  else
    *out = ctx;
  return status;
}

void sol_context_destroy(SolContext *ctx) {
  if (!ctx) return;
  for (int op = 0; op < OPS_COUNT; op++) sol_heap_free(ctx->kernels[op]);
  sol_driver_close(ctx->driver);
  sol_pool_destroy(ctx->pool);
  sol_lock_destroy(ctx->one_at_a_time);
  sol_lock_destroy(ctx->loading);
  sol_heap_free(ctx);
}

SolBackend sol_context_backend(const SolContext *ctx) {
  return ctx ? ctx->backend : SOL_BACKEND_AUTO;
}

static uint64_t address_of(const void *at) {
  return (uint64_t)(uintptr_t)at;
}

SolStatus sol_context_alloc(SolContext *ctx, size_t bytes, void **out, SolError *err) {
  if (!ctx || !out) return sol_fail(err, SOL_ERR_ARGUMENT, "context and out must not be NULL");
  *out = NULL;
  if (!ctx->driver) {
    *out = sol_heap_alloc(bytes ? bytes : 1);
    return *out ? SOL_OK : sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  }
  uint64_t address = 0;
  sol_lock_acquire(ctx->one_at_a_time);
  SolStatus status = sol_driver_alloc(ctx->driver, bytes, "tensor", &address, err);
  sol_lock_release(ctx->one_at_a_time);
  if (!status) *out = (void *)(uintptr_t)address;
  return status;
}

SolStatus sol_context_free(SolContext *ctx, void *memory, SolError *err) {
  if (!ctx) return sol_fail(err, SOL_ERR_ARGUMENT, "context must not be NULL");
  if (!ctx->driver) return sol_heap_free(memory), SOL_OK;
  if (!memory) return SOL_OK;
  sol_lock_acquire(ctx->one_at_a_time);
  SolStatus status = sol_driver_free(ctx->driver, address_of(memory), err);
  sol_lock_release(ctx->one_at_a_time);
  return status;
}

static SolStatus move(SolContext *ctx, void *to, const void *from, size_t bytes, bool write, SolError *err) {
  if (!ctx || (bytes && (!to || !from)))
    return sol_fail(err, SOL_ERR_ARGUMENT, "context, to and from must not be NULL");
  if (!bytes) return SOL_OK;
  if (!ctx->driver) return memcpy(to, from, bytes), SOL_OK;
  sol_lock_acquire(ctx->one_at_a_time);
  SolStatus status = write ? sol_driver_write(ctx->driver, address_of(to), from, bytes, err)
                           : sol_driver_read(ctx->driver, to, address_of(from), bytes, err);
  sol_lock_release(ctx->one_at_a_time);
  return status;
}

SolStatus sol_context_write(SolContext *ctx, void *to, const void *from, size_t bytes, SolError *err) {
  return move(ctx, to, from, bytes, true, err);
}

SolStatus sol_context_read(SolContext *ctx, void *to, const void *from, size_t bytes, SolError *err) {
  return move(ctx, to, from, bytes, false, err);
}

SolStatus sol_context_sync(SolContext *ctx, SolError *err) {
  if (!ctx) return sol_fail(err, SOL_ERR_ARGUMENT, "context must not be NULL");
  return ctx->driver ? sol_driver_sync(ctx->driver, err) : SOL_OK;
}
