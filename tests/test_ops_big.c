// More than 2^31 elements, on a GPU (elsewhere: exit code 77). The input repeats with a period. Three periods
// run first and are held against the reference; then one dimension grows until the largest tensor has more
// than 2^31 elements, and every period of the outputs must be, bit for bit, what it was before. Host memory
// stays small. test_ops_big [OP...] [--elements N] [--backend cpu|emu|cuda] [--quick]: with fewer elements it
// runs anywhere. --quick: the first option of each operation alone.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/threads.h"
#include "slices.h"

enum { CHUNK = 1 << 26, PERIOD = 37 };

typedef struct Big {
  const OpsDef *def;
  SolContext *ctx;
  Trial small; // three periods
  OpsCase small_case;
  int dim;              // the one that grows
  int64_t reps, length; // periods
  OpsView view[OPS_MAX_VIEWS];
  SliceAxis axis[OPS_MAX_VIEWS];
  void *memory[OPS_MAX_VIEWS];
  unsigned char args[512];
} Big;

static unsigned char *chunk; // CHUNK bytes

static int rank_of(const OpsDef *def) {
  int rank = 1;
  for (const char *c = def->shape; *c; c++) rank += *c == 'x';
  return rank < 4 ? rank : 4;
}

// Lines of a tensor before the axis that grows: so many, so many elements apart.
static int64_t lines_of(const OpsView *v, SliceAxis axis) {
  return axis == SLICE_BATCH ? 1 : axis == SLICE_ROWS ? v->batch : v->batch * v->rows;
}

static int64_t line_at(const OpsView *v, SliceAxis axis, int64_t line) {
  if (axis == SLICE_COLS) return line / v->rows * v->batch_stride + line % v->rows * v->stride;
  return axis == SLICE_ROWS ? line * v->batch_stride : 0;
}

// The operation whose rows go where ids say: its caches grow, one period being all of the small one.
static bool is_scattered(const OpsDef *def) {
  return !strcmp(def->name, "kv_append");
}

// Bytes of one period along a line.
static size_t period_bytes(const Big *b, int k) {
  const OpsView *v = &b->small.view[k];
  return (size_t)(slice_length(v, b->axis[k]) / (is_scattered(b->def) ? 1 : 3) * slice_step(v, b->axis[k])) *
         slice_size(v);
}

static const char *small_host(const Big *b, int k) { // where the tensor starts in the trial's host memory
  return (const char *)b->small.host[k] + ((const char *)b->small.view[k].at - (char *)b->small.memory[k]);
}

// The trial's inputs, made to repeat.
static void make_periodic(Big *b) {
  for (int k = 0; k < b->small.count; k++) {
    const OpsView *v = &b->small.view[k];
    if (!b->small.memory[k] || b->axis[k] == SLICE_NONE || v->role == OPS_OUT) continue;
    if (v->fill == OPS_FILL_ORDER || is_scattered(b->def)) continue;
    size_t bytes = period_bytes(b, k);
    for (int64_t line = 0; line < lines_of(v, b->axis[k]); line++) {
      char *at = (char *)small_host(b, k) + (size_t)line_at(v, b->axis[k], line) * slice_size(v);
      // What lies between the rows goes along, but not past the tensor's last element.
      size_t whole = 3 * bytes;
      if (b->axis[k] == SLICE_ROWS) whole -= (size_t)(v->stride - v->cols) * slice_size(v);
      for (size_t i = bytes; i < whole; i++) at[i] = at[i - bytes];
    }
  }
}

// One period written once, then doubled within the GPU's memory.
static SolStatus fill_line(Big *b, uint64_t at, const void *period, size_t bytes, uint64_t total,
                           SolError *err) {
  uint64_t done = bytes < total ? bytes : total;
  SolStatus status = sol_context_write(b->ctx, (void *)(uintptr_t)at, period, (size_t)done, err);
  while (done < total && !status) {
    uint64_t next = done < total - done ? done : total - done;
    if (b->ctx->backend == SOL_BACKEND_CUDA)
      status = sol_driver_copy(b->ctx->driver, at + done, at, next, err);
    else {
      if (next > CHUNK) next = CHUNK / bytes * bytes;
      status = sol_context_read(b->ctx, chunk, (const void *)(uintptr_t)at, (size_t)next, err);
      if (!status)
        status = sol_context_write(b->ctx, (void *)(uintptr_t)(at + done), chunk, (size_t)next, err);
    }
    done += next;
  }
  return status ? status : sol_context_sync(b->ctx, err);
}

static int64_t shift_of(int64_t i, int64_t growth) { // to which copy of the table; the last is among them
  return (i * 977 + growth - 1) % growth;
}

// Ids into a table that has grown: the same rows, of other periods.
static SolStatus spread_ids(Big *b, int k, SolError *err) {
  const OpsView *v = &b->small.view[k], *big = &b->view[k];
  int64_t count = v->rows * v->cols, growth = big->limit / v->limit;
  unsigned char *ids = sol_heap_alloc((size_t)count * slice_size(v));
  if (!ids) return SOL_ERR_NO_SPACE;
  memcpy(ids, small_host(b, k), (size_t)count * slice_size(v));
  for (int64_t i = 0; i < count; i++) {
    int64_t shift = shift_of(i, growth) * v->limit;
    if (v->dtype == SOL_INT64)
      ((int64_t *)(void *)ids)[i] += shift;
    else
      ((int32_t *)(void *)ids)[i] += (int32_t)shift;
  }
  SolStatus status = sol_context_write(b->ctx, b->memory[k], ids, (size_t)count * slice_size(v), err);
  sol_heap_free(ids);
  return status;
}

static SolStatus make_tensor(Big *b, int k, SolError *err) {
  const OpsView *v = &b->view[k];
  if ((!b->small.view[k].at && !v->scratch) || !v->rows || !v->cols) return SOL_OK;
  int64_t elements = (v->batch - 1) * v->batch_stride + (v->rows - 1) * v->stride + v->cols;
  uint64_t total = (uint64_t)elements * slice_size(v);
  SolStatus status = sol_context_alloc(b->ctx, (size_t)total, &b->memory[k], err);
  memcpy(b->args + v->field, &b->memory[k], sizeof(void *));
  uint64_t at = (uint64_t)(uintptr_t)b->memory[k];
  if (status || v->scratch) return status;
  if (b->axis[k] == SLICE_NONE) {
    bool ids = v->fill == OPS_FILL_IDS || v->fill == OPS_FILL_LENGTHS || v->fill == OPS_FILL_DISTINCT;
    if (ids && v->limit != b->small.view[k].limit) return spread_ids(b, k, err);
    return sol_context_write(b->ctx, b->memory[k], small_host(b, k), (size_t)total, err);
  }
  for (int64_t line = 0; line < lines_of(v, b->axis[k]) && !status; line++) {
    uint64_t offset = (uint64_t)line_at(v, b->axis[k], line) * slice_size(v);
    uint64_t bytes = (uint64_t)(slice_length(v, b->axis[k]) * slice_step(v, b->axis[k])) * slice_size(v);
    if (offset + bytes > total) bytes = total - offset;
    const OpsView *few = &b->small.view[k];
    const char *from = small_host(b, k) + (size_t)line_at(few, b->axis[k], line) * slice_size(v);
    status = fill_line(b, at + offset, from, period_bytes(b, k), bytes, err);
  }
  return status;
}

static SolStatus mismatch(const Big *b, int k, uint64_t element, SolError *err) {
  snprintf(err->message, sizeof err->message, "%s: element %llu differs from the first period's",
           b->view[k].name, (unsigned long long)element);
  return SOL_ERR_RANGE;
}

// An output that grew: first and last period as the small run's, all others as its middle one.
static SolStatus compare_line(Big *b, int k, const unsigned char *want, uint64_t offset, SolError *err) {
  size_t period = period_bytes(b, k), size = slice_size(&b->view[k]);
  size_t at_once = CHUNK / period * period;
  uint64_t total = (uint64_t)b->reps * period, gap = 0;
  if (b->axis[k] == SLICE_ROWS) gap = (uint64_t)(b->view[k].stride - b->view[k].cols) * size;
  if (!at_once) return SOL_ERR_NO_SPACE;
  for (uint64_t done = 0; done < total; done += at_once) {
    uint64_t bytes = total - done < at_once ? total - done : at_once;
    const char *from = (const char *)b->memory[k] + offset + done;
    SolStatus status =
        sol_context_read(b->ctx, chunk, from, (size_t)(done + bytes == total ? bytes - gap : bytes), err);
    if (status) return status;
    for (uint64_t p = 0; p < bytes; p += period) {
      uint64_t index = (done + p) / period;
      const unsigned char *like = want + (index == 0 ? 0 : index + 1 == (uint64_t)b->reps ? 2 : 1) * period;
      size_t length = done + p + period == total ? period - gap : period;
      if (!memcmp(chunk + p, like, length)) continue;
      size_t i = 0;
      while (chunk[p + i] == like[i]) i++;
      return mismatch(b, k, (offset + done + p + i) / size, err);
    }
  }
  return SOL_OK;
}

static double get(SolDtype d, const unsigned char *at, int64_t i) {
  uint32_t bits = 0;
  float f;
  if (d == SOL_INT32) return (double)((const int32_t *)(const void *)at)[i];
  if (d == SOL_INT64) return (double)((const int64_t *)(const void *)at)[i];
  if (d == SOL_BF16) bits = (uint32_t)((const uint16_t *)(const void *)at)[i] << 16;
  if (d == SOL_FP32) memcpy(&bits, at + 4 * i, 4);
  memcpy(&f, &bits, sizeof f);
  return (double)f;
}

// An output that did not grow: the same as before (a maximum, a row that was looked up), or as many times as
// large as the input (a sum, a count; those of three periods were the small run's).
static SolStatus compare_whole(Big *b, int k, const unsigned char *want, SolError *err) {
  const OpsView *v = &b->view[k];
  size_t bytes = (size_t)(v->rows * v->cols) * slice_size(v);
  SolStatus status = sol_context_read(b->ctx, chunk, b->memory[k], bytes, err);
  if (status || !memcmp(chunk, want, bytes)) return status;
  const unsigned char *before = v->role == OPS_INOUT ? (const unsigned char *)small_host(b, k) : NULL;
  double growth = (double)b->reps / 3, largest = 0;
  for (int64_t i = 0; i < v->rows * v->cols; i++) {
    double each = get(v->dtype, want, i);
    if (each < 0) each = -each;
    if (each > largest) largest = each;
  }
  for (int times = 0; times < 2; times++) { // a mean stays, a sum grows
    double factor = times ? growth : 1, allowed = v->dtype == SOL_INT32 ? 0.5 : 0.02 * factor * largest;
    int64_t i = 0;
    for (; i < v->rows * v->cols; i++) {
      double base = before ? get(v->dtype, before, i) : 0; // counts are added to
      double off = get(v->dtype, chunk, i) - base - factor * (get(v->dtype, want, i) - base);
      if (!(off <= allowed && -off <= allowed)) break;
    }
    if (i == v->rows * v->cols) return SOL_OK;
  }
  return mismatch(b, k, 0, err);
}

// A cache: each period as it was at first, but for the rows whose ids were shifted there.
static SolStatus compare_cache(Big *b, int k, const unsigned char *after, SolError *err) {
  size_t period = period_bytes(b, k), row = (size_t)b->view[k].cols * slice_size(&b->view[k]);
  int last = b->small.count - 1; // the slots
  const OpsView *slots = &b->small.view[last];
  if (2 * period > CHUNK || slots->fill != OPS_FILL_DISTINCT) return SOL_ERR_NO_SPACE;
  for (int64_t copy = 0; copy < b->reps; copy++) {
    unsigned char *now = chunk, *want = chunk + period;
    const char *from = (const char *)b->memory[k] + (uint64_t)copy * period;
    SolStatus status = sol_context_read(b->ctx, now, from, period, err);
    if (status) return status;
    memcpy(want, small_host(b, k), period);
    for (int64_t i = 0; i < slots->cols; i++) {
      int64_t slot = slots->dtype == SOL_INT64 ? ((const int64_t *)(const void *)small_host(b, last))[i]
                                               : ((const int32_t *)(const void *)small_host(b, last))[i];
      if (shift_of(i, b->reps) == copy && slot >= 0)
        memcpy(want + (size_t)slot * row, after + (size_t)slot * row, row);
    }
    if (memcmp(now, want, period) != 0)
      return mismatch(b, k, (uint64_t)copy * period / slice_size(&b->view[k]), err);
  }
  return SOL_OK;
}

static SolStatus compare(Big *b, SolError *err) {
  SolStatus status = SOL_OK;
  for (int k = 0; k < b->small.count && !status; k++) {
    const OpsView *v = &b->view[k], *few = &b->small.view[k];
    if (few->role == OPS_IN || few->scratch || !b->memory[k] || !b->small.memory[k]) continue;
    unsigned char *want = sol_heap_alloc(b->small.bytes[k]);
    if (!want) return SOL_ERR_NO_SPACE;
    status = sol_context_read(b->ctx, want, b->small.memory[k], b->small.bytes[k], err);
    const unsigned char *start = want + ((const char *)few->at - (char *)b->small.memory[k]);
    if (!status && is_scattered(b->def))
      status = compare_cache(b, k, start, err);
    else if (!status && b->axis[k] == SLICE_NONE)
      status = compare_whole(b, k, start, err);
    bool by_lines = b->axis[k] != SLICE_NONE && !is_scattered(b->def);
    for (int64_t line = 0; by_lines && line < lines_of(v, b->axis[k]) && !status; line++)
      status = compare_line(b, k, start + (size_t)line_at(few, b->axis[k], line) * slice_size(v),
                            (uint64_t)line_at(v, b->axis[k], line) * slice_size(v), err);
    sol_heap_free(want);
  }
  return status;
}

// The arguments with the dimension (a cache: its pages) `value` long.
static void grow(Big *b, int64_t value) {
  memset(b->args, 0, sizeof b->args);
  b->def->make(&b->small_case, b->args);
  if (is_scattered(b->def))
    ((SolKvAppend *)(void *)b->args)->pages = value;
  else
    slice_set(b->def, &b->small_case, b->dim, value, b->args);
  if (!strcmp(b->def->name, "reduce")) {
    SolReduce *a = (SolReduce *)(void *)b->args;
    a->workspace_bytes = sol_reduce_workspace(b->ctx, a);
  }
}

// false: no tensor grows with it as a whole number of periods.
static bool plan(Big *b, int64_t elements) {
  OpsView v[OPS_MAX_VIEWS];
  int64_t largest = 0, length = b->small_case.dim[b->dim];
  if (!b->def->make(&b->small_case, b->args)) return false;
  if (is_scattered(b->def)) length = ((SolKvAppend *)(void *)b->args)->pages;
  int count = slice_views(b->def, b->args, v), periods = is_scattered(b->def) ? 1 : 3;
  grow(b, length * 2);
  if (slice_views(b->def, b->args, b->view) != count) return false;
  for (int k = 0; k < count; k++) {
    b->axis[k] = v[k].scratch ? SLICE_NONE : slice_axis(&v[k], &b->view[k], 1, 2);
    if (b->axis[k] == SLICE_MIXED || (b->axis[k] && slice_length(&v[k], b->axis[k]) % periods)) return false;
    int64_t all = v[k].batch * v[k].rows * v[k].cols;
    if (b->axis[k] && all > largest) largest = all;
  }
  if (!largest) return false;
  b->reps = elements / (largest / periods) + 1;
  b->length = length / periods * b->reps;
  grow(b, b->length);
  return slice_views(b->def, b->args, b->view) == count;
}

static SolStatus run(Big *b, SolError *err) {
  SolStatus status = trial_open(&b->small, b->ctx, b->def, &b->small_case, &(TrialOptions){.seed = 11}, err);
  if (!status) make_periodic(b);
  for (int k = 0; k < b->small.count && !status; k++)
    if (b->small.view[k].fill == OPS_FILL_ORDER) { // of all rows: repeated, it would not be one
      b->small.view[k].at = NULL;
      memset(b->small.args + b->small.view[k].field, 0, sizeof(void *));
    }
  if (!status) status = trial_run(&b->small, err);
  if (!status) status = trial_check(&b->small, NULL, err);
  for (int k = 0; k < b->small.count && !status; k++) status = make_tensor(b, k, err);
  if (status) return status;
  status = ops_call(b->ctx, b->def, b->args, NULL);
  if (status) return *err = *sol_last_error(), status;
  status = sol_context_sync(b->ctx, err);
  return status ? status : compare(b, err);
}

// false: it failed, and said so.
static bool try_dim(SolContext *ctx, const OpsDef *def, int dim, int option, int64_t elements, int *ran) {
  static Big b;
  b = (Big){.def = def, .ctx = ctx, .dim = dim, .small_case = {.dtype = SOL_BF16, .option = option}};
  memcpy(b.small_case.dim, def->bench[0], sizeof b.small_case.dim);
  for (int k = 0; k < rank_of(def); k++) // the others small: the one that grows must do it
    if (k != dim && b.small_case.dim[k] > 1024) b.small_case.dim[k] = 1024;
  if (dim == 1 && rank_of(def) == 2)
    b.small_case.dim[0] = 1; // one row beyond 2^31
  else if (dim && b.small_case.dim[0] < 64)
    b.small_case.dim[0] = 64;
  b.small_case.dim[dim] = 3 * PERIOD;
  if (!def->make(&b.small_case, b.args)) b.small_case.dtype = SOL_FP32;
  if (!plan(&b, elements)) return true;
  SolError err = {0};
  double start = sol_thread_clock();
  SolStatus status = run(&b, &err);
  for (int k = 0; k < OPS_MAX_VIEWS; k++)
    if (b.memory[k]) sol_context_free(ctx, b.memory[k], NULL);
  trial_close(&b.small);
  ++*ran;
  const int64_t *d = b.small_case.dim;
  printf("%-16s %lldx%lldx%lldx%lld, number %d grown to %lld, %s, option %d: %s%s (%.1f s)\n", def->name,
         (long long)d[0], (long long)d[1], (long long)d[2], (long long)d[3], dim + 1, (long long)b.length,
         sol_dtype_name(b.small_case.dtype), option, status ? "FAILED: " : "ok", status ? err.message : "",
         sol_thread_clock() - start);
  fflush(stdout);
  return !status;
}

// Which dimensions may grow without the results changing: rows, batches, and what the tables have.
static bool may_grow(const OpsDef *def, int dim) {
  static const char *const also[] = {"copy", "transpose", "stencil", "embedding", "embed_rmsnorm", "gather"};
  if (dim == 0) return true;
  for (size_t i = 0; i < sizeof also / sizeof *also; i++)
    if (!strcmp(def->name, also[i])) return true;
  return false;
}

int main(int argc, char **argv) {
  int64_t elements = ((int64_t)1 << 31) + (1 << 27);
  int passed = 0, failed = 0, named = 0, quick = 0;
  SolContextOptions on = {.backend = SOL_BACKEND_CUDA};
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--elements") && i + 1 < argc)
      elements = atoll(argv[++i]), argv[i] = argv[i - 1] = "";
    else if (!strcmp(argv[i], "--backend") && i + 1 < argc) {
      if (sol_backend_find(argv[++i], &on.backend, NULL)) return printf("no such backend\n"), 2;
      argv[i] = argv[i - 1] = "";
    } else if (!strcmp(argv[i], "--quick"))
      quick = 1, argv[i] = "";
    else
      named++;
  }
  SolContext *ctx;
  SolError err = {0};
  if (sol_context_create(&on, &ctx, &err)) return printf("%s\n", err.message), 77;
  chunk = malloc(CHUNK);
  for (int op = 0; op < OPS_COUNT && chunk; op++) {
    const OpsDef *def = ops_defs[op];
    int ran = 0, options = quick || !def->options ? 1 : def->options;
    bool wanted = !named, ok = true;
    for (int i = 1; i < argc; i++) wanted |= !strcmp(argv[i], def->name);
    for (int dim = 0; dim < rank_of(def) && wanted; dim++)
      for (int option = 0; option < options && may_grow(def, dim); option++)
        ok &= try_dim(ctx, def, dim, option, elements, &ran);
    if (!wanted) continue;
    if (!ran) printf("%-16s nothing grew\n", def->name);
    if (ok && ran)
      passed++;
    else
      failed++;
  }
  free(chunk);
  sol_context_destroy(ctx);
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
