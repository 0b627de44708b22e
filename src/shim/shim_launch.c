// Launches: checked as a GPU's driver checks them, run on the emulator, faults turned into CUDA's errors.
#include <stdlib.h>
#include <string.h>

#include "audit/audit_names.h"
#include "base/threads.h"
#include "shim/shim.h"

#pragma GCC visibility push(default)
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream);
#pragma GCC visibility pop

enum { STATIC_SHARED = 48 * 1024, PORTABLE_CLUSTER = 8, LARGEST_CLUSTER = 16 };

size_t shim_static_limit(void) {
  return STATIC_SHARED;
}

// ---- checks ----

static uint64_t most_threads(const PtxFunction *fn) {
  const uint32_t *n = fn->reqntid[0] ? fn->reqntid : fn->maxntid;
  if (!n[0]) return 1024;
  uint64_t most = (uint64_t)n[0] * (n[1] ? n[1] : 1) * (n[2] ? n[2] : 1);
  return most < 1024 ? most : 1024;
}

static cudaError_t check_shape(const ShimKernelWork *w) {
  dim3 g = w->grid, b = w->block;
  if (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z) return cudaErrorInvalidValue;
  if (g.x > INT32_MAX || g.y > 65535 || g.z > 65535) return cudaErrorInvalidValue;
  if (b.x > 1024 || b.y > 1024 || b.z > 64) return cudaErrorInvalidValue;
  uint64_t threads = (uint64_t)b.x * b.y * b.z;
  if (threads > 1024) return cudaErrorInvalidValue;
  const PtxFunction *fn = w->kernel->fn;
  return threads > most_threads(fn) ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t check_shared(const ShimKernelWork *w) {
  const ShimKernel *k = w->kernel;
  size_t allowed = k->dynamic_allowed;
  size_t plain = k->fn->shared_bytes < STATIC_SHARED ? STATIC_SHARED - (size_t)k->fn->shared_bytes : 0;
  if (allowed < plain) allowed = plain;
  return w->shared > allowed ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t check_cluster(const ShimKernelWork *w) {
  const PtxFunction *fn = w->kernel->fn;
  const uint32_t *required = fn->reqnctapercluster;
  uint32_t c[3] = {w->cluster.x, w->cluster.y, w->cluster.z}, g[3] = {w->grid.x, w->grid.y, w->grid.z};
  if (!c[0] && !required[0]) return cudaSuccess;
  if (shim.device->cc_major < 9) return cudaErrorInvalidConfiguration;
  uint64_t size = 1;
  for (int i = 0; i < 3; i++) {
    uint32_t n = c[0] ? c[i] : required[i] ? required[i] : 1, must = required[i] ? required[i] : 1;
    if (!n || n > LARGEST_CLUSTER || g[i] % n) return cudaErrorInvalidClusterSize;
    if (c[0] && required[0] && n != must) return cudaErrorInvalidClusterSize;
    size *= n;
  }
  uint64_t most = w->kernel->big_clusters ? LARGEST_CLUSTER : PORTABLE_CLUSTER;
  return size > most ? cudaErrorInvalidClusterSize : cudaSuccess;
}

static cudaError_t check_cooperative(const ShimKernelWork *w) {
  if (!w->cooperative) return cudaSuccess;
  int blocks = 0;
  uint64_t threads = (uint64_t)w->block.x * w->block.y * w->block.z;
  cudaError_t error = shim_active_blocks(&blocks, w->kernel, (int)threads, w->shared);
  if (error) return error;
  uint64_t grid = (uint64_t)w->grid.x * w->grid.y * w->grid.z;
  uint64_t fit = (uint64_t)blocks * (uint64_t)sol_emu_machine(shim.emu)->sms;
  return grid > fit ? cudaErrorCooperativeLaunchTooLarge : cudaSuccess;
}

cudaError_t shim_check_launch(const ShimKernelWork *w) {
  cudaError_t error = check_shape(w);
  if (!error) error = check_shared(w);
  if (!error) error = check_cluster(w);
  return error ? error : check_cooperative(w);
}

// ---- parameters ----

static cudaError_t take_params(ShimKernelWork *w, void **args) {
  const PtxFunction *fn = w->kernel->fn;
  if (fn->param_count && !args) return cudaErrorInvalidValue;
  w->params = calloc(1, (size_t)fn->param_size + 1);
  w->args = calloc((size_t)fn->param_count + 1, sizeof *w->args);
  if (!w->params || !w->args) return cudaErrorMemoryAllocation;
  const PtxSymbol *symbols = sol_emu_ptx(w->kernel->binary->module)->symbols;
  for (uint32_t i = 0; i < fn->param_count; i++) {
    if (!args[i]) return cudaErrorInvalidValue;
    const PtxSymbol *s = &symbols[fn->params[i]];
    w->args[i] = w->params + (s->offset - fn->param_offset);
    memcpy(w->args[i], args[i], (size_t)s->size);
  }
  return cudaSuccess;
}

cudaError_t shim_make_launch(const void *function, dim3 grid, dim3 block, size_t shared, void **args,
                             ShimWork *out) {
  *out = (ShimWork){.type = cudaGraphNodeTypeKernel};
  ShimKernelWork *w = &out->kernel;
  w->grid = grid;
  w->block = block;
  w->shared = shared;
  cudaError_t error = shim_kernel(function, &w->kernel);
  if (!error) error = take_params(w, args);
  if (error) shim_drop_work(out);
  return error;
}

// ---- running ----

static cudaError_t fault_error(const SolEmuResult *r) {
  if (r->end == SOL_EMU_DONE) return cudaSuccess;
  SolEmuFindingKind kind = r->finding_count ? r->findings[r->finding_count - 1].kind : SOL_EMU_DEADLOCK;
  for (uint32_t i = 0; i < r->finding_count; i++)
    if (r->findings[i].kind == SOL_EMU_ASSERTION) kind = SOL_EMU_ASSERTION;
  switch (kind) {
  case SOL_EMU_OUT_OF_BOUNDS:
  case SOL_EMU_AFTER_FREE:
  case SOL_EMU_NULL:
  case SOL_EMU_READ_ONLY: return cudaErrorIllegalAddress;
  case SOL_EMU_MISALIGNED: return cudaErrorMisalignedAddress;
  case SOL_EMU_ASSERTION: return cudaErrorAssert;
  case SOL_EMU_DEADLOCK: return cudaErrorLaunchTimeout;
  case SOL_EMU_STACK: return cudaErrorHardwareStackError;
  case SOL_EMU_BAD_CALL: return cudaErrorInvalidPc;
  case SOL_EMU_BAD_USE: return cudaErrorIllegalInstruction;
  default: return cudaErrorLaunchFailure;
  }
}

static void tell_findings(const SolEmuResult *r) {
  for (uint32_t i = 0; i < r->finding_count; i++) {
    const SolEmuFinding *f = &r->findings[i];
    if (f->times > 1)
      shim_note("%s (%llu threads)", f->message, (unsigned long long)f->times);
    else
      shim_note("%s", f->message);
  }
  if (r->findings_dropped) shim_note("and %llu more", (unsigned long long)r->findings_dropped);
}

static void tell_observers(const ShimLaunch *launch) {
  for (ShimObserver *o = shim.watch.observers; o; o = o->next)
    if (o->launch) o->launch(o->ctx, launch);
}

// Seconds until launches are to end; once they are over, the shortest limit there is.
static double seconds_left(void) {
  if (shim.streams.deadline <= 0) return 0;
  double left = shim.streams.deadline - sol_thread_clock();
  return left > 1e-3 ? left : 1e-3;
}

static SolL2Property property_of(enum cudaAccessProperty property) {
  if (property == cudaAccessPropertyPersisting) return SOL_L2_PERSISTING;
  return property == cudaAccessPropertyStreaming ? SOL_L2_STREAMING : SOL_L2_NORMAL;
}

static SolL2Window window_of(const struct cudaAccessPolicyWindow *w) {
  float share = w->hitRatio > 0 ? w->hitRatio < 1 ? w->hitRatio : 1 : 0;
  return (SolL2Window){.address = (uint64_t)(uintptr_t)w->base_ptr,
                       .bytes = w->num_bytes,
                       .hit_permille = (uint32_t)(share * 1000 + 0.5f),
                       .hit = property_of(w->hitProp),
                       .miss = property_of(w->missProp)};
}

// What the launch took on the modelled clock, and who wants to know of it.
static double account(const ShimKernelWork *w, const SolEmuResult *result, ShimRepeat *repeat, bool counted) {
  ShimLaunch launch = {w, w->kernel->binary->module, result, 0, {0}};
  if (counted && !repeat) launch.again = shim_same_find(w, result);
  bool known = launch.again.key;
  double seconds = known     ? launch.again.seconds
                   : counted ? shim_kernel_seconds(w, result)
                             : shim_launch_seconds();
  if (counted && repeat) launch.key = shim_repeat_learn(repeat, w, result, seconds);
  if (counted && !repeat && !known) launch.key = shim_same_keep(w, result, seconds);
  if (!counted && repeat && result->end == SOL_EMU_DONE) {
    launch.again = shim_repeat_again(repeat, w, result);
    seconds = launch.again.seconds;
  }
  tell_observers(&launch);
  return seconds;
}

// ---- what kernels launch ----

static ShimKernel *kernel_named(ShimBinary *b, const char *name) {
  for (ShimKernel *k = b->kernels; k; k = k->next)
    if (strcmp(k->name, name) == 0) return k;
  return shim_add_kernel(b, NULL, name);
}

static cudaError_t run_transfer(const SolEmuChild *c, double *seconds) {
  void *to = shim_pointer(c->to);
  if (c->from) {
    struct cudaMemcpy3DParms copy =
        shim_flat_copy(to, shim_pointer(c->from), c->bytes, cudaMemcpyDeviceToDevice);
    *seconds = shim_copy_seconds(&copy);
    return shim_run_copy(&copy);
  }
  ShimSet set = {.to = to, .value = c->value, .element = 1, .width = c->bytes, .height = 1, .depth = 1};
  *seconds = shim_set_seconds(&set);
  return shim_run_set(&set);
}

static cudaError_t run_child(ShimBinary *b, const SolEmuChild *c, double *seconds) {
  if (!c->kernel) return run_transfer(c, seconds);
  ShimKernel *k = kernel_named(b, sol_emu_kernel_function(c->kernel)->name);
  cudaError_t error = k ? shim_kernel_load(k) : cudaErrorMemoryAllocation;
  if (error) return error;
  ShimKernelWork w = {.kernel = k,
                      .grid = {c->grid[0], c->grid[1], c->grid[2]},
                      .block = {c->block[0], c->block[1], c->block[2]},
                      .shared = c->dynamic_shared,
                      .params = c->params};
  error = shim_check_launch(&w);
  return error ? error : shim_run_kernel(&w, seconds);
}

enum { MOST_DEPTH = 24 }; // as on a GPU

// Work that a kernel launched is done before the kernel counts as done: each after the one before.
static void run_children(const ShimKernelWork *w, const SolEmuResult *r, double *seconds) {
  if (shim.streams.depth == MOST_DEPTH) {
    shim_note("%s: kernels launched %d levels deep; what it launches does not run", w->kernel->name,
              MOST_DEPTH);
    shim_set_fault(cudaErrorLaunchMaxDepthExceeded);
    return;
  }
  shim.streams.depth++;
  for (uint32_t i = 0; i < r->child_count && !shim.fault; i++) {
    double own = 0;
    cudaError_t error = run_child(w->kernel->binary, &r->children[i], &own);
    if (error) shim_note("%s: what it launches does not run: %s", w->kernel->name, cudaGetErrorString(error));
    *seconds += own;
  }
  shim.streams.depth--;
}

// Whether this launch, or one before it, is the first that is to be counted (SOL_SHIM_FROM).
static bool reached(const ShimKernel *k) {
  ShimWatch *watch = &shim.watch;
  if (!watch->from) return true;
  char title[512];
  size_t n = strlen(watch->from);
  audit_title(k->name, title, sizeof title);
  if (audit_selects(watch->from, n, title) || audit_selects(watch->from, n, k->name)) watch->from_seen++;
  if (watch->from_seen == watch->from_launch) {
    shim_note("counting from launch %llu of %s on; %llu launches before it were not counted",
              (unsigned long long)watch->from_launch, watch->from, (unsigned long long)watch->passed);
    watch->from = NULL;
    return true;
  }
  watch->passed++;
  return false;
}

cudaError_t shim_run_kernel(const ShimKernelWork *w, double *seconds) {
  *seconds = shim_launch_seconds();
  if (shim.fault) return shim.fault;
  bool wanted = reached(w->kernel);
  ShimRepeat *repeat = wanted && shim.watch.repeat ? shim_repeat_of(w) : NULL;
  bool counted = wanted && shim_counts() && !(repeat && shim_repeat_known(repeat, w));
  SolEmuLaunch launch = {.kernel = w->kernel->emu,
                         .grid = {w->grid.x, w->grid.y, w->grid.z},
                         .block = {w->block.x, w->block.y, w->block.z},
                         .cluster = {w->cluster.x, w->cluster.y, w->cluster.z},
                         .dynamic_shared = w->shared,
                         .params = w->params,
                         .param_bytes = w->kernel->fn->param_size,
                         .cooperative = w->cooperative,
                         .no_counts = !counted,
                         .observe = counted && (shim.watch.patterns || shim.streams.timed),
                         .keep_l2 = !shim.watch.cold,
                         .l2_window = window_of(&w->window),
                         .l2_dirty_before = shim.watch.cold ? sol_emu_ncu_leaves(shim.emu) : 0,
                         .sample_waves = shim.watch.sample,
                         .checks = shim.watch.checks,
                         .keep_going = shim.watch.keep_going,
                         .async_order = shim.watch.async_order,
                         .max_seconds = seconds_left(),
                         .interrupt = &shim.watch.interrupt,
                         .children = true,
                         .set_conditional = shim_set_conditional,
                         .print = shim_print,
                         .progress = shim.watch.progress,
                         .progress_ctx = shim.watch.progress_ctx};
  SolEmuResult result = {.end = SOL_EMU_DONE};
  SolError err = {0};
  ShimOutcome *outcome = repeat ? shim_repeat_outcome(repeat, w) : NULL;
  if (!counted && outcome && shim_outcome_repeat(outcome)) {
    *seconds = account(w, &result, repeat, counted);
    return cudaSuccess;
  }
  uint64_t found = counted && outcome ? shim_outcome_found(outcome) : 0;
  shim.watch.spoke = false;
  shim_managed_before();
  SolStatus status = sol_emu_launch(shim.emu, &launch, &result, &err);
  shim_managed_after();
  cudaError_t error = cudaSuccess;
  if (status) {
    error = status == SOL_ERR_NO_SPACE ? cudaErrorMemoryAllocation : cudaErrorInvalidConfiguration;
    shim_refuse(error, w->kernel->name, &err);
  } else {
    if (!shim.watch.keep_going) tell_findings(&result);
    if (wanted || result.end != SOL_EMU_DONE) *seconds = account(w, &result, repeat, counted);
    outcome = counted && repeat ? shim_repeat_outcome(repeat, w) : NULL;
    if (outcome) shim_outcome_learn(outcome, found, &result);
    shim_set_fault(fault_error(&result)); // the launch itself has succeeded
    if (result.child_count) run_children(w, &result, seconds);
  }
  sol_emu_result_free(&result);
  return error;
}

// ---- entry points ----

// What launch attributes say; `window`: NULL for the stream's.
typedef struct Attributes {
  dim3 cluster;
  bool cooperative;
  const struct cudaAccessPolicyWindow *window;
} Attributes;

static cudaError_t launch(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
                          cudaStream_t stream, const Attributes *a) {
  ShimWork work;
  cudaError_t error = shim_make_launch(function, grid, block, shared, args, &work);
  if (error) return error;
  ShimStream *s = shim_stream(stream);
  work.kernel.cluster = a->cluster;
  work.kernel.cooperative = a->cooperative;
  if (a->window || s) work.kernel.window = a->window ? *a->window : s->window.accessPolicyWindow;
  error = shim_check_launch(&work.kernel);
  if (!error) error = shim_submit(stream, &work);
  shim_drop_work(&work);
  return error;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream) {
  SHIM_CALL(launch(function, grid, block, args, shared, stream, &(Attributes){0}));
}
SHIM_ALIAS(cudaLaunchKernel, cudaLaunchKernel_ptsz);

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream) {
  SHIM_CALL(launch(kernel, grid, block, args, shared, stream, &(Attributes){0}));
}
SHIM_ALIAS(__cudaLaunchKernel, __cudaLaunchKernel_ptsz);

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **args,
                                        size_t shared, cudaStream_t stream) {
  SHIM_CALL(launch(function, grid, block, args, shared, stream, &(Attributes){.cooperative = true}));
}
SHIM_ALIAS(cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernel_ptsz);

// Other attributes that affect scheduling, not results, change nothing here.
static cudaError_t launch_extended(const cudaLaunchConfig_t *c, const void *function, void **args) {
  if (!c || (c->numAttrs && !c->attrs)) return cudaErrorInvalidValue;
  Attributes a = {0};
  for (unsigned i = 0; i < c->numAttrs; i++) {
    const cudaLaunchAttributeValue *v = &c->attrs[i].val;
    if (c->attrs[i].id == cudaLaunchAttributeCooperative) a.cooperative = v->cooperative != 0;
    if (c->attrs[i].id == cudaLaunchAttributeAccessPolicyWindow) a.window = &v->accessPolicyWindow;
    if (c->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
    a.cluster = (dim3){v->clusterDim.x, v->clusterDim.y, v->clusterDim.z};
    if (!a.cluster.x || !a.cluster.y || !a.cluster.z) return cudaErrorInvalidClusterSize;
  }
  return launch(function, c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream, &a);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **args) {
  SHIM_CALL(launch_extended(config, function, args));
}
SHIM_ALIAS(cudaLaunchKernelExC, cudaLaunchKernelExC_ptsz);
