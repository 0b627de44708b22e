#include "driver/driver.h"

#include "base/error.h"
#include "base/heap.h"

struct SolDriverKernel {
  SolDriverKernel *next;
  SolDriverModule *module;
  void *backend;
  const PtxFunction *function;
  uint64_t allowed; // dynamic shared memory, bytes
};

struct SolDriverModule {
  SolDriverModule *next;
  SolDriver *driver;
  const SolPtxModule *ptx; // parameters and names are read off it, whatever the backend
  SolPtxModule *parsed;    // the same, where the backend has none of its own
  void *backend;
  SolDriverKernel *kernels;
};

typedef struct Texture {
  struct Texture *next;
  SolDriverImage image;
  SolDriverTexture made;
  bool stale; // the memory was written since the array was copied from it
} Texture;

struct SolDriver {
  const SolDriverTable *table;
  void *state;
  SolDriverModule *modules;
  Texture *textures;
  SolDriverCounts *counts; // where enqueued launches add theirs; NULL: they do not
};

SolStatus sol_driver_open(const SolDriverOptions *options, SolDriver **out, SolError *err) {
  SolDriverOptions defaults = {0};
  if (!options) options = &defaults;
  SolDriver *d = sol_heap_alloc(sizeof *d);
  if (!d) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *d = (SolDriver){.table =
                       options->backend == SOL_BACKEND_CUDA ? &sol_driver_cuda_table : &sol_driver_emu_table};
  SolStatus status = d->table->open(options, &d->state, err);
  if (status) {
    sol_heap_free(d);
    return status;
  }
  *out = d;
  return SOL_OK;
}

static void drop_textures(SolDriver *d, uint64_t base, bool all) {
  for (Texture **at = &d->textures; *at;) {
    Texture *t = *at;
    if (!all && t->made.base != base) {
      at = &t->next;
      continue;
    }
    *at = t->next;
    d->table->texture_free(d->state, &t->made);
    sol_heap_free(t);
  }
}

// [at, at + bytes) is written: arrays that were copied from it are out of date.
static void written(SolDriver *d, uint64_t at, uint64_t bytes) {
  for (Texture *t = d->textures; t; t = t->next) {
    uint64_t size = (uint64_t)t->image.width * t->image.height * sizeof(float);
    if (at < t->image.address + size && t->image.address < at + bytes) t->stale = true;
  }
}

void sol_driver_close(SolDriver *d) {
  if (!d) return;
  drop_textures(d, 0, true);
  while (d->modules) {
    SolDriverModule *m = d->modules;
    d->modules = m->next;
    while (m->kernels) {
      SolDriverKernel *k = m->kernels;
      m->kernels = k->next;
      sol_heap_free(k);
    }
    d->table->unload(d->state, m->backend);
    sol_ptx_free(m->parsed);
    sol_heap_free(m);
  }
  d->table->close(d->state);
  sol_heap_free(d);
}

SolStatus sol_driver_alloc(SolDriver *d, uint64_t bytes, const char *label, uint64_t *address,
                           SolError *err) {
  return d->table->alloc(d->state, bytes, label, address, err);
}

SolStatus sol_driver_free(SolDriver *d, uint64_t address, SolError *err) {
  drop_textures(d, address, false);
  return d->table->free(d->state, address, err);
}

SolStatus sol_driver_write(SolDriver *d, uint64_t to, const void *from, uint64_t bytes, SolError *err) {
  written(d, to, bytes);
  return d->table->write(d->state, to, from, bytes, err);
}

SolStatus sol_driver_read(SolDriver *d, void *to, uint64_t from, uint64_t bytes, SolError *err) {
  return d->table->read(d->state, to, from, bytes, err);
}

SolStatus sol_driver_load(SolDriver *d, const SolPtxSource *sources, int count, SolDriverModule **out,
                          SolError *err) {
  SolDriverModule *m = sol_heap_alloc(sizeof *m);
  if (!m) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *m = (SolDriverModule){.driver = d};
  SolStatus status = d->table->ptx ? SOL_OK : sol_ptx_load(sources, count, &m->parsed, err);
  if (!status) status = d->table->load(d->state, sources, count, &m->backend, err);
  if (status) {
    sol_ptx_free(m->parsed);
    sol_heap_free(m);
    return status;
  }
  m->ptx = d->table->ptx ? d->table->ptx(m->backend) : m->parsed;
  m->next = d->modules;
  d->modules = m;
  *out = m;
  return SOL_OK;
}

SolStatus sol_driver_load_image(SolDriver *d, const void *image, SolDriverModule **out, SolError *err) {
  if (!d->table->load_image)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "%s runs PTX, not machine code", d->table->name);
  SolDriverModule *m = sol_heap_alloc(sizeof *m);
  if (!m) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *m = (SolDriverModule){.driver = d};
  SolStatus status = d->table->load_image(d->state, image, &m->backend, err);
  if (status) {
    sol_heap_free(m);
    return status;
  }
  m->next = d->modules;
  d->modules = m;
  *out = m;
  return SOL_OK;
}

// The i-th kernel's name; for offering the nearest.
static const char *kernel_name_at(const void *ptx, int i) {
  const SolPtxModule *m = ptx;
  for (uint32_t f = 0; f < m->function_count; f++)
    if (m->functions[f].entry && i-- == 0) return m->functions[f].name;
  return "";
}

SolStatus sol_driver_kernel(SolDriverModule *m, const char *name, SolDriverKernel **out, SolError *err) {
  const PtxFunction *function = m->ptx ? sol_ptx_find_function(m->ptx, name) : NULL;
  if (m->ptx && (!function || !function->entry)) {
    int count = 0;
    for (uint32_t f = 0; f < m->ptx->function_count; f++) count += m->ptx->functions[f].entry;
    return sol_fail_unknown(err, "kernel", name, kernel_name_at, m->ptx, count);
  }
  for (SolDriverKernel *k = m->kernels; k; k = k->next)
    if (function && k->function == function) return *out = k, SOL_OK;
  SolDriverKernel *k = sol_heap_alloc(sizeof *k);
  if (!k) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *k = (SolDriverKernel){.next = m->kernels, .module = m, .function = function};
  SolStatus status = m->driver->table->kernel(m->driver->state, m->backend, name, &k->backend, err);
  if (status) {
    sol_heap_free(k);
    return status;
  }
  m->kernels = k;
  *out = k;
  return SOL_OK;
}

const PtxFunction *sol_driver_function(const SolDriverKernel *kernel) {
  return kernel->function;
}

const SolPtxModule *sol_driver_ptx(const SolDriverModule *module) {
  return module->ptx;
}

const SolPtxModule *sol_driver_kernel_ptx(const SolDriverKernel *kernel) {
  return sol_driver_ptx(kernel->module);
}

static SolStatus check_launch(const SolDriverLaunch *launch, SolError *err) {
  const PtxFunction *f = launch->kernel->function;
  if (f && launch->param_bytes != f->param_size)
    return sol_fail(err, SOL_ERR_ARGUMENT, "%s takes %llu bytes of arguments, not %llu", f->name,
                    (unsigned long long)f->param_size, (unsigned long long)launch->param_bytes);
  for (int i = 0; i < 3; i++)
    if (!launch->grid[i] || !launch->block[i])
      return sol_fail(err, SOL_ERR_ARGUMENT, "every dimension of grid and block must be at least 1");
  uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
  if (threads > 1024 || launch->block[2] > 64)
    return sol_fail(err, SOL_ERR_ARGUMENT,
                    "a block has at most 1024 threads, 64 along z; this one is %u x %u x %u",
                    launch->block[0], launch->block[1], launch->block[2]);
  if (launch->grid[0] > INT32_MAX || launch->grid[1] > 65535 || launch->grid[2] > 65535)
    return sol_fail(err, SOL_ERR_ARGUMENT, "a grid has at most 2147483647 x 65535 x 65535 blocks");
  return SOL_OK;
}

SolStatus sol_driver_launch(SolDriver *d, const SolDriverLaunch *launch, SolEmuResult *result,
                            double *seconds, SolError *err) {
  SolStatus status = check_launch(launch, err);
  return status ? status : d->table->launch(d->state, launch->kernel->backend, launch, result, seconds, err);
}

SolStatus sol_driver_count(SolDriver *d, SolDriverCounts *into, SolError *err) {
  if (!sol_driver_emu(d))
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "a GPU does not count its memory transactions here");
  d->counts = into;
  return SOL_OK;
}

static SolStatus launch_counted(SolDriver *d, const SolDriverLaunch *launch, SolError *err) {
  SolEmuResult result = {0};
  SolEmuLaunch emu = launch->emu ? *launch->emu : (SolEmuLaunch){0};
  SolDriverLaunch observed = *launch;
  emu.observe = d->counts->launched != NULL;
  observed.emu = &emu;
  SolStatus status = d->table->launch(d->state, launch->kernel->backend, &observed, &result, NULL, err);
  if (!status && (result.end != SOL_EMU_DONE || result.finding_count))
    status = sol_fail(err, SOL_ERR_RANGE, "%s",
                      result.finding_count ? result.findings[0].message : "the launch did not end");
  sol_emu_counts_add(&d->counts->total, &result.total);
  d->counts->launches++;
  if (d->counts->launched && !status) d->counts->launched(d->counts->ctx, launch, &result);
  sol_emu_result_free(&result);
  return status;
}

SolStatus sol_driver_enqueue(SolDriver *d, const SolDriverLaunch *launch, SolStream stream, SolError *err) {
  SolStatus status = check_launch(launch, err);
  // A GPU's driver would say no more than that an argument is invalid, and the emulator has no such limit.
  if (!status && launch->dynamic_shared > SOL_DRIVER_SHARED &&
      launch->dynamic_shared > launch->kernel->allowed)
    status = sol_fail(err, SOL_ERR_ARGUMENT, "%llu bytes of dynamic shared memory, which were not allowed",
                      (unsigned long long)launch->dynamic_shared);
  if (!status && d->counts) return launch_counted(d, launch, err);
  return status ? status : d->table->enqueue(d->state, launch->kernel->backend, launch, stream, err);
}

SolStatus sol_driver_active_clusters(SolDriver *d, const SolDriverLaunch *launch, int *out, SolError *err) {
  if (!d->table->active_clusters)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "%s does not say how many clusters run at a time",
                    d->table->name);
  return d->table->active_clusters(d->state, launch->kernel->backend, launch, out, err);
}

SolStatus sol_driver_allow_shared(SolDriverKernel *kernel, uint64_t bytes, SolError *err) {
  SolDriver *d = kernel->module->driver;
  SolStatus status = d->table->allow_shared(d->state, kernel->backend, bytes, err);
  if (!status) kernel->allowed = bytes;
  return status;
}

SolStatus sol_driver_enqueue_copy(SolDriver *d, uint64_t to, uint64_t from, uint64_t bytes, SolStream stream,
                                  SolError *err) {
  written(d, to, bytes);
  return bytes ? d->table->enqueue_copy(d->state, to, from, bytes, stream, err) : SOL_OK;
}

SolStatus sol_driver_persist(SolDriver *d, uint64_t bytes, SolError *err) {
  return d->table->persist(d->state, bytes, err);
}

SolStatus sol_driver_tensor_map(SolDriver *d, const SolTensorMap *map, uint8_t out[SOL_TENSOR_MAP_BYTES],
                                SolError *err) {
  const char *why = sol_tensor_map_problem(map);
  if (why) return sol_fail(err, SOL_ERR_ARGUMENT, "a tensor map cannot be used: %s", why);
  return d->table->tensor_map(d->state, map, out, err);
}

static SolStatus make_texture(SolDriver *d, const SolDriverImage *image, Texture **out, SolError *err) {
  if (!image->width || !image->height)
    return sol_fail(err, SOL_ERR_ARGUMENT, "a texture has at least one texel");
  Texture *t = sol_heap_alloc(sizeof *t);
  if (!t) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *t = (Texture){.next = d->textures, .image = *image, .stale = true};
  SolStatus status = d->table->texture(d->state, image, &t->made, err);
  if (status) {
    sol_heap_free(t);
    return status;
  }
  *out = d->textures = t;
  return SOL_OK;
}

SolStatus sol_driver_texture(SolDriver *d, const SolDriverImage *image, uint64_t *handle, SolError *err) {
  Texture *t = d->textures;
  while (t && (t->image.address != image->address || t->image.width != image->width ||
               t->image.height != image->height || t->image.array != image->array))
    t = t->next;
  SolStatus status = t ? SOL_OK : make_texture(d, image, &t, err);
  if (status || !t) return status;
  if (t->made.array && t->stale) {
    if ((status = d->table->texture_copy(d->state, image, t->made.array, err))) return status;
    t->stale = false;
  }
  *handle = t->made.handle;
  return SOL_OK;
}

SolStatus sol_driver_sync(SolDriver *d, SolError *err) {
  return d->table->sync(d->state, err);
}

SolStatus sol_driver_check_pointer(SolDriver *d, uint64_t address, uint64_t bytes, SolError *err) {
  return d->table->check_pointer(d->state, address, bytes, err);
}

SolStatus sol_driver_info(SolDriver *d, SolDriverInfo *out, SolError *err) {
  return d->table->info(d->state, out, err);
}

// A backend without timing has no clock of its own to speak of.
static SolStatus timing_of(const SolDriver *d, const SolDriverTiming **out, SolError *err) {
  *out = d->table->timing;
  if (*out) return SOL_OK;
  sol_fail(err, SOL_ERR_UNSUPPORTED, "%s has no times: it counts what a kernel does", d->table->name);
  sol_hint(err, "times need a GPU: --backend cuda");
  return SOL_ERR_UNSUPPORTED;
}

SolStatus sol_driver_stream_open(SolDriver *d, SolStream *out, SolError *err) {
  const SolDriverTiming *t;
  SolStatus status = timing_of(d, &t, err);
  return status ? status : t->stream_open(d->state, out, err);
}

void sol_driver_stream_close(SolDriver *d, SolStream stream) {
  if (stream && d->table->timing) d->table->timing->stream_close(d->state, stream);
}

SolStatus sol_driver_record(SolDriver *d, SolStream stream, SolError *err) {
  const SolDriverTiming *t;
  SolStatus status = timing_of(d, &t, err);
  return status ? status : t->record(d->state, stream, err);
}

SolStatus sol_driver_recorded(SolDriver *d, SolStream stream, SolDriverGraph **out, SolError *err) {
  const SolDriverTiming *t;
  SolStatus status = timing_of(d, &t, err);
  return status ? status : t->recorded(d->state, stream, out, err);
}

void sol_driver_graph_free(SolDriver *d, SolDriverGraph *graph) {
  if (graph) d->table->timing->graph_free(d->state, graph);
}

SolStatus sol_driver_replay(SolDriver *d, SolDriverGraph *const *graphs, int count, int warm, int rounds,
                            SolStream stream, double *seconds, SolError *err) {
  const SolDriverTiming *t;
  SolStatus status = timing_of(d, &t, err);
  if (!status && (count < 1 || rounds < 1 || rounds > SOL_MAX_ROUNDS))
    status = sol_fail(err, SOL_ERR_ARGUMENT, "a replay takes 1 to %d rounds", SOL_MAX_ROUNDS);
  return status ? status : t->replay(d->state, graphs, count, warm, rounds, stream, seconds, err);
}

SolStatus sol_driver_fill(SolDriver *d, uint64_t at, int byte, uint64_t bytes, SolError *err) {
  const SolDriverTiming *t;
  SolStatus status = timing_of(d, &t, err);
  if (!status) written(d, at, bytes);
  return status || !bytes ? status : t->fill(d->state, at, byte, bytes, err);
}

SolStatus sol_driver_copy(SolDriver *d, uint64_t to, uint64_t from, uint64_t bytes, SolError *err) {
  return sol_driver_enqueue_copy(d, to, from, bytes, NULL, err);
}

SolEmu *sol_driver_emu(SolDriver *d) {
  return d->table == &sol_driver_emu_table ? d->state : NULL;
}

SolStatus sol_driver_reach(SolDriver *d, SolDriver *other, SolError *err) {
  if (d->table != other->table || !d->table->reach)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "%s has no other GPU", d->table->name);
  return d->table->reach(d->state, other->state, err);
}

SolStatus sol_driver_send(SolDriver *d, uint64_t from, SolDriver *other, uint64_t to, uint64_t bytes,
                          SolStream stream, SolError *err) {
  if (d->table != other->table || !d->table->send)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "%s has no other GPU", d->table->name);
  return d->table->send(d->state, from, other->state, to, bytes, stream, err);
}

bool sol_driver_enter(SolDriver *d) {
  return d->table->enter && d->table->enter(d->state);
}

void sol_driver_leave(SolDriver *d, bool entered) {
  if (d->table->leave) d->table->leave(d->state, entered);
}
