#include "ladder/ladder_run.h"

#include "base/error.h"
#include "base/format.h"
#include "base/heap.h"

LadderCounts ladder_counts_unknown(void) {
#define LADDER_UNKNOWN(name) .name = __builtin_nan(""),
  return (LadderCounts){LADDER_COUNTS(LADDER_UNKNOWN)};
#undef LADDER_UNKNOWN
}

double ladder_requests(const LadderCounts *c) {
  return c->load_requests + c->store_requests + c->atomic_requests;
}

double ladder_sectors(const LadderCounts *c) {
  return c->load_sectors + c->store_sectors + c->atomic_sectors;
}

double ladder_dram(const LadderCounts *c) {
  return c->dram_read + c->dram_write;
}

SolStatus ladder_session_open(LadderSession *s, const LadderOptions *options, SolError *err) {
  *s = (LadderSession){.options = *options};
  SolContextOptions o = {.backend = options->backend, .device = options->device, .workers = options->workers};
  SolStatus status = sol_context_create(&o, &s->ctx, err);
  if (status) return status;
  s->ctx->checks = options->checks;
  return options->backend == SOL_BACKEND_CUDA ? timer_open(&s->timer, s->ctx, options->quick, err) : SOL_OK;
}

void ladder_session_close(LadderSession *s) {
  timer_close(&s->timer);
  sol_context_destroy(s->ctx);
  for (int i = 0; i < LADDER_IMAGES; i++) sol_heap_free(s->elf[i]);
  sol_arena_free(&s->timelines);
  *s = (LadderSession){0};
}

static int rank_of(const char *shape) {
  int rank = 1;
  for (; *shape; shape++) rank += *shape == 'x';
  return rank;
}

SolStatus ladder_accept(const Ladder *ladder, const LadderCase *c, SolError *err) {
  double all = 1;
  for (int i = 0; i < rank_of(ladder->shape); i++) {
    if (c->dim[i] < 1)
      return sol_fail(err, SOL_ERR_ARGUMENT, "every size of %s must be at least 1", ladder->shape);
    all *= (double)c->dim[i];
  }
  // The product of all sizes is below 2^60, so that none of an array's sizes overflows; the arrays are then
  // limited one by one.
  if (all > 0x1p60) return sol_fail(err, SOL_ERR_RANGE, "too large: more than 2^60 elements");
  if (ladder->most && c->dim[0] > ladder->most)
    return sol_fail(err, SOL_ERR_RANGE, "at most %lld %s", (long long)ladder->most, ladder->most_of);
  SolStatus status = ladder->accept ? ladder->accept(c, err) : SOL_OK;
  LadderBuffer b[LADDER_MAX_BUFFERS];
  for (int i = 0, count = status ? 0 : ladder->buffers(c, b); i < count && !status; i++)
    if (b[i].count > (int64_t)1 << 40)
      status = sol_fail(err, SOL_ERR_RANGE, "too large: %s would have more than 2^40 elements", b[i].name);
  return status;
}

static int index_of(const Ladder *ladder) {
  int i = 0;
  while (i < LADDER_COUNT && ladders[i] != ladder) i++;
  return i;
}

static SolStatus load(LadderRun *run, SolError *err) {
  LadderSession *s = run->session;
  int index = index_of(run->ladder);
  if (index < LADDER_COUNT && s->modules[index]) return run->module = s->modules[index], SOL_OK;
  const OpsImage *image = ops_image_find(ladder_images, ladder_image_count, run->ladder->module, err);
  if (!image) return SOL_ERR_UNSUPPORTED;
  SolStatus status = ops_image_load(image, s->ctx->driver, s->ctx->cc, &run->module, err);
  if (!status && index < LADDER_COUNT) s->modules[index] = run->module;
  return status;
}

SolStatus ladder_open(LadderRun *run, LadderSession *s, const Ladder *ladder, const LadderCase *c,
                      SolError *err) {
  *run = (LadderRun){.session = s, .ladder = ladder, .c = *c};
  SolStatus status = ladder_accept(ladder, c, err);
  if (!status) status = load(run, err);
  return status ? status : ladder_data_open(run, err);
}

void ladder_close(LadderRun *run) {
  if (run->session) ladder_data_close(run);
  *run = (LadderRun){0};
}

// ---- what rungs call ----

// A kernel is looked up once: neither that nor allowing it more shared memory may happen while a graph is
// captured.
static SolStatus kernel_of(LadderRun *run, const char *name, uint32_t shared, SolDriverKernel **out,
                           SolError *err) {
  int i = 0;
  while (i < run->kernel_count && strcmp(run->kernels[i].name, name) != 0) i++;
  struct LadderKernel *k = &run->kernels[i];
  if (i == run->kernel_count) {
    if (i == LADDER_KERNELS)
      return sol_fail(err, SOL_ERR_NO_SPACE, "a ladder has at most %d kernels", LADDER_KERNELS);
    *k = (struct LadderKernel){.name = name, .shared = SOL_DRIVER_SHARED};
    SolStatus status = sol_driver_kernel(run->module, name, &k->kernel, err);
    if (status) return status;
    run->kernel_count++;
  }
  if (shared > k->shared) {
    SolStatus status = sol_driver_allow_shared(k->kernel, shared, err);
    if (status) return status;
    k->shared = shared;
  }
  *out = k->kernel;
  return SOL_OK;
}

SolStatus ladder_launch(const LadderCall *call, const char *kernel, const LadderGrid *grid,
                        const void *params, size_t bytes, SolError *err) {
  SolContext *ctx = call->ctx;
  SolDriverLaunch launch = {.dynamic_shared = grid->shared,
                            .params = params,
                            .param_bytes = bytes,
                            // Code compiled from older PTX does not wait for the kernel before it.
                            .early = grid->early && ctx->cc >= 90,
                            .one_param = grid->one_param,
                            .window = grid->window,
                            .window_bytes = grid->window_bytes,
                            .emu = &(SolEmuLaunch){.checks = ctx->checks,
                                                   .progress = call->run->session->options.progress,
                                                   .progress_ctx = call->run->session->options.progress_ctx}};
  SolStatus status = kernel_of(call->run, kernel, grid->shared, &launch.kernel, err);
  if (status) return status;
  if (!call->run->launched) call->run->launched = kernel;
  for (int i = 0; i < 3; i++) {
    launch.grid[i] = grid->grid[i] ? grid->grid[i] : 1;
    launch.block[i] = grid->block[i] ? grid->block[i] : 1;
  }
  if (grid->cluster > 1) launch.cluster[0] = grid->cluster, launch.cluster[1] = launch.cluster[2] = 1;
  return sol_driver_enqueue(ctx->driver, &launch, call->stream, err);
}

SolStatus ladder_copy(const LadderCall *call, int to, int from, uint64_t bytes, SolError *err) {
  return sol_driver_enqueue_copy(call->ctx->driver, call->at[to], call->at[from], bytes, call->stream, err);
}

SolStatus ladder_op(const LadderCall *call, const OpsDef *def, const void *args, SolError *err) {
  SolStatus status = ops_call(call->ctx, def, args, call->stream);
  if (status && err) *err = *sol_last_error();
  return status;
}

// ---- a rung ----

static int buffer_named(const LadderRun *run, const char *name) {
  for (int k = 0; k < run->buffer_count; k++)
    if (!run->buffer[k].scratch && strcmp(run->buffer[k].name, name) == 0) return k;
  return -1;
}

// The operation's arguments are those of its own test case of these sizes and this type.
static SolStatus run_operation(const LadderCall *call, SolError *err) {
  const OpsDef *def = call->rung->op;
  _Alignas(16) unsigned char args[512] = {0};
  OpsView v[OPS_MAX_VIEWS] = {0};
  OpsCase c = {.dtype = call->c.dtype};
  memcpy(c.dim, call->c.dim, sizeof c.dim);
  if (def->args_bytes > sizeof args || !def->make(&c, args))
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "%s has no such case", def->name);
  for (int i = 0, count = def->views(args, v); i < count; i++) {
    int k = buffer_named(call->run, v[i].name);
    if (k >= 0) memcpy(args + v[i].field, &(void *){ladder_at(call, k)}, sizeof(void *));
  }
  return ladder_op(call, def, args, err);
}

SolStatus ladder_enqueue(const LadderCall *call, SolError *err) {
  if (call->rung->op) return run_operation(call, err);
  return (call->rung->go ? call->rung->go : call->ladder->go)(call, err);
}

SolStatus ladder_go(LadderRun *run, const LadderRung *rung, LadderFigures *f) {
  LadderSession *s = run->session;
  SolError err = {0};
  *f = (LadderFigures){.counts = ladder_counts_unknown()};
  SolStatus status = SOL_OK;
  run->launched = NULL;
  if (rung->min_cc > s->ctx->cc)
    status = sol_fail(&err, SOL_ERR_UNSUPPORTED, "needs a GPU of compute capability %d.%d", rung->min_cc / 10,
                      rung->min_cc % 10);
  bool emu = s->options.backend != SOL_BACKEND_CUDA;
  if (!status) status = ladder_data_reset(run, &err);
  if (!status && emu) status = ladder_emulate(run, rung, f, &err);
  if (!status && !emu) {
    LadderCall call = ladder_call(run, rung, 0, NULL);
    status = ladder_enqueue(&call, &err);
    if (!status) status = sol_driver_sync(s->ctx->driver, &err);
  }
  if (!status && !s->options.unchecked) {
    status = ladder_data_check(run, rung, &f->worst, &err);
    f->wrong = status == SOL_ERR_RANGE;
    f->checked = !status || f->wrong;
  }
  if (!status && !emu) status = ladder_time(run, rung, f, &err);
  f->kernel = run->launched;
  f->ran = !status;
  f->status = status;
  if (status) sol_format(f->message, sizeof f->message, "%s", err.message);
  return status;
}
