// A call of any operation: the arguments are checked, then the CPU's code runs or a kernel is launched.
#include <stdarg.h>

#include "base/error.h"
#include "base/format.h"
#include "ops/cpu.h"

// The public functions return a status only; each thread keeps its last error. Only a failing call accesses
// it: in a library opened at run time the first access may allocate.
static _Thread_local SolError last_error;

const SolError *sol_last_error(void) {
  return &last_error;
}

SolStatus ops_fail(SolStatus status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  last_error = (SolError){.status = status, .offset = -1};
  sol_vformat(last_error.message, sizeof last_error.message, format, list);
  va_end(list);
  return status;
}

static SolStatus keep(SolStatus status, const SolError *err) {
  if (status) last_error = *err;
  return status;
}

// Elements from a tensor's first to one past its last; -1 where that is too much to count.
static int64_t span(const OpsView *v) {
  int64_t batch = v->batch ? v->batch : 1, stride = v->stride ? v->stride : v->cols, rows, total;
  if (__builtin_mul_overflow(v->rows - 1, stride, &rows) || __builtin_add_overflow(rows, v->cols, &rows))
    return -1;
  int64_t step = v->batch_stride;
  if (!step && __builtin_mul_overflow(v->rows, stride, &step)) return -1;
  if (__builtin_mul_overflow(batch - 1, step, &total) || __builtin_add_overflow(total, rows, &total))
    return -1;
  return total > INT64_MAX / 16 ? -1 : total;
}

static bool is_empty(const OpsView *v) {
  return v->rows == 0 || v->cols == 0;
}

static SolStatus check_sizes(const OpsDef *def, const OpsView *v, int64_t *bytes) {
  if (v->batch < 0 || v->rows < 0 || v->cols < 0)
    return ops_fail(SOL_ERR_ARGUMENT, "%s: %s has a negative size", def->name, v->name);
  int bits = sol_dtype_bits(v->dtype);
  if (bits < 8)
    return ops_fail(SOL_ERR_ARGUMENT, "%s: %s cannot have type %s", def->name, v->name,
                    sol_dtype_name(v->dtype));
  if (is_empty(v)) return *bytes = 0, SOL_OK;
  int64_t batch = v->batch ? v->batch : 1;
  if (v->stride < 0 || v->batch_stride < 0)
    return ops_fail(SOL_ERR_ARGUMENT, "%s: %s has a negative stride", def->name, v->name);
  if (v->stride && v->stride < v->cols && v->rows > 1 && v->role != OPS_IN)
    return ops_fail(SOL_ERR_ARGUMENT, "%s: rows of %s overlap: %lld apart, %lld wide", def->name, v->name,
                    (long long)v->stride, (long long)v->cols);
  int64_t elements = span(v);
  if (elements < 0 || v->stride > INT64_MAX / 16 || v->batch_stride > INT64_MAX / 16) // bytes fit, too
    return ops_fail(SOL_ERR_RANGE, "%s: %s is too large to address", def->name, v->name);
  if (v->batch_stride && batch > 1 && v->role != OPS_IN) {
    OpsView one = *v;
    one.batch = 1;
    if (v->batch_stride < span(&one))
      return ops_fail(SOL_ERR_ARGUMENT, "%s: batches of %s overlap", def->name, v->name);
  }
  *bytes = elements * (bits / 8);
  return SOL_OK;
}

static SolStatus check_pointer(SolContext *ctx, const OpsDef *def, const OpsView *v, int64_t bytes) {
  if (!v->at) {
    if (v->optional || !bytes) return SOL_OK;
    return ops_fail(SOL_ERR_ARGUMENT, "%s: %s is NULL", def->name, v->name);
  }
  if (!bytes) return SOL_OK;
  int size = sol_dtype_bits(v->dtype) / 8;
  if ((uintptr_t)v->at % (unsigned)size)
    return ops_fail(SOL_ERR_ARGUMENT, "%s: %s is not aligned to its %d-byte elements", def->name, v->name,
                    size);
  if ((uintptr_t)v->at > UINTPTR_MAX - (uintptr_t)bytes)
    return ops_fail(SOL_ERR_RANGE, "%s: %s runs past the end of memory", def->name, v->name);
  if (!ctx->driver || ctx->trust_pointers) return SOL_OK;
  SolError err;
  if (!sol_driver_check_pointer(ctx->driver, (uint64_t)(uintptr_t)v->at, (uint64_t)bytes, &err))
    return SOL_OK;
  return ops_fail(SOL_ERR_ARGUMENT, "%s: %s: %s", def->name, v->name, err.message);
}

static int64_t row_step(const OpsView *v) {
  return v->stride ? v->stride : v->cols;
}

static int64_t batch_step(const OpsView *v) {
  return v->batch > 1 ? v->batch_stride ? v->batch_stride : v->rows * row_step(v) : 0;
}

static bool same_memory(const OpsView *a, const OpsView *b) {
  return a->at == b->at && a->dtype == b->dtype && a->rows == b->rows && a->cols == b->cols &&
         (row_step(a) == row_step(b) || a->rows < 2) && batch_step(a) == batch_step(b);
}

// Different columns of one wide tensor: the address ranges overlap, the rows do not.
static bool side_by_side(const OpsView *a, const OpsView *b) {
  int64_t size_a = sol_dtype_bits(a->dtype) / 8, size_b = sol_dtype_bits(b->dtype) / 8;
  uint64_t step = (uint64_t)(row_step(a) * size_a);
  if (a->batch > 1 || b->batch > 1 || a->rows < 2 || b->rows < 2) return false;
  if (step != (uint64_t)(row_step(b) * size_b)) return false;
  uintptr_t from = (uintptr_t)a->at, to = (uintptr_t)b->at;
  uint64_t apart = to >= from ? (to - from) % step : (step - (from - to) % step) % step;
  return (uint64_t)(a->cols * size_a) <= apart && apart + (uint64_t)(b->cols * size_b) <= step;
}

static SolStatus check_overlap(const OpsDef *def, const OpsView *v, const int64_t *bytes, int count) {
  for (int i = 0; i < count; i++) {
    if (v[i].role == OPS_IN || !v[i].at || !bytes[i]) continue;
    for (int j = 0; j < count; j++) {
      if (j == i || !v[j].at || !bytes[j] || (j < i && v[j].role != OPS_IN)) continue;
      uintptr_t a = (uintptr_t)v[i].at, b = (uintptr_t)v[j].at;
      if (a + (uintptr_t)bytes[i] <= b || b + (uintptr_t)bytes[j] <= a) continue;
      if ((v[i].alias == j + 1 || v[j].alias == i + 1) && same_memory(&v[i], &v[j])) continue;
      if (side_by_side(&v[i], &v[j])) continue;
      return ops_fail(SOL_ERR_ARGUMENT, "%s: %s overlaps %s", def->name, v[i].name, v[j].name);
    }
  }
  return SOL_OK;
}

static SolStatus check_own(const OpsDef *def, const void *args, SolError *err) {
  SolError found;
  SolStatus status = def->check ? def->check(args, &found) : SOL_OK;
  return status ? sol_fail(err, status, "%s: %s", def->name, found.message) : SOL_OK;
}

// Fills v and checks the arguments. *empty: there is nothing to write.
static SolStatus check_call(SolContext *ctx, const OpsDef *def, const void *args, OpsView *v, bool *empty) {
  int64_t bytes[OPS_MAX_VIEWS] = {0};
  SolError err;
  int count = def->views(args, v);
  SolStatus status = keep(check_own(def, args, &err), &err);
  *empty = true;
  for (int i = 0; i < count && !status; i++) status = check_sizes(def, &v[i], &bytes[i]);
  for (int i = 0; i < count && !status; i++) {
    status = check_pointer(ctx, def, &v[i], bytes[i]);
    if (v[i].role != OPS_IN && v[i].at && bytes[i]) *empty = false;
  }
  return status ? status : check_overlap(def, v, bytes, count);
}

static SolStatus run_on_cpu(SolContext *ctx, const OpsDef *def, const void *args, const OpsView *v) {
  if (def->cpu) return def->cpu(ctx, args);
  cpu_parallel(ctx, v[1].rows, v[1].rows * v[1].cols, def->cpu_rows, args);
  return SOL_OK;
}

static SolStatus run_on_gpu(SolContext *ctx, const OpsDef *def, const void *args, SolStream stream) {
  SolError err;
  SolStatus status = ops_load(ctx, ops_index(ctx, def), &err); // before the rule asks what the GPU can run
  return status ? keep(status, &err) : def->launch(ctx, args, stream);
}

SolStatus ops_call(SolContext *ctx, const OpsDef *def, const void *args, SolStream stream) {
  if (!ctx || !args) return ops_fail(SOL_ERR_ARGUMENT, "%s: context and args must not be NULL", def->name);
  OpsView v[OPS_MAX_VIEWS] = {0};
  bool empty;
  sol_lock_acquire(ctx->one_at_a_time);
  SolStatus status = check_call(ctx, def, args, v, &empty);
  if (!status && !empty)
    status = ctx->driver ? run_on_gpu(ctx, def, args, stream) : run_on_cpu(ctx, def, args, v);
  sol_lock_release(ctx->one_at_a_time);
  return status;
}

// sol_op_cost counts an operation's usual outputs; an additional one counts where it is given.
static SolStatus add_extra_outputs(const OpsDef *def, const void *args, SolCost *out, SolError *err) {
  OpsView v[OPS_MAX_VIEWS];
  int count = def->views(args, v);
  for (int i = 0; i < count; i++) {
    if (!v[i].extra || !v[i].at) continue;
    double batch = v[i].batch ? (double)v[i].batch : 1;
    out->bytes_written += batch * (double)v[i].rows * (double)v[i].cols * sol_dtype_bits(v[i].dtype) / 8;
  }
  if (out->bytes_read + out->bytes_written > 0x1p53)
    return sol_fail(err, SOL_ERR_RANGE, "%s: more than 2^53 bytes", def->name);
  return SOL_OK;
}

SolStatus ops_cost(const OpsDef *def, const void *args, SolCost *out, SolError *err) {
  if (!args || !out) return sol_fail(err, SOL_ERR_ARGUMENT, "args and out must not be NULL");
  SolOpArgs op = {0};
  int index = 0;
  SolStatus status = check_own(def, args, err);
  if (!status) status = sol_op_find(def->cost_name ? def->cost_name : def->name, &index, err);
  if (status) return status;
  def->cost(args, &op);
  op.op = index;
  status = sol_op_cost(&op, out, err);
  if (!status && def->cost_more) def->cost_more(args, out);
  return status ? status : add_extra_outputs(def, args, out, err);
}

bool ops_has_kernel(SolContext *ctx, const OpsDef *def, int kernel) {
  int op = ops_index(ctx, def);
  return !ops_load(ctx, op, NULL) && ctx->kernels[op][kernel];
}

void ops_grid(uint32_t grid[3], uint64_t threads, uint32_t block) {
  enum { WIDE = 1 << 30 };
  uint64_t blocks = (threads + block - 1) / block;
  grid[1] = (uint32_t)((blocks + WIDE - 1) / WIDE);
  grid[0] = (uint32_t)(grid[1] > 1 ? WIDE : blocks);
  grid[2] = 1;
}

SolStatus ops_launch(SolContext *ctx, const OpsDef *def, const OpsLaunch *l, SolStream stream) {
  SolError err;
  int op = ops_index(ctx, def);
  SolStatus status = ops_load(ctx, op, &err);
  if (status) return keep(status, &err);
  SolDriverKernel *kernel = ctx->kernels[op][l->kernel];
  if (!kernel)
    return ops_fail(SOL_ERR_UNSUPPORTED, "%s: kernel %s is not built for this GPU", def->name,
                    def->kernels[l->kernel]);
  // The code for these two generations waits for the kernel before it; code compiled from older PTX does not.
  bool waits = ctx->cc / 10 == 9 || ctx->cc / 10 == 10;
  SolDriverLaunch launch = {.kernel = kernel,
                            .block = {l->block, 1, 1},
                            .dynamic_shared = l->shared,
                            .params = l->params,
                            .param_bytes = l->bytes,
                            .one_param = l->one_param,
                            .early = l->early && waits,
                            .emu = &(SolEmuLaunch){.checks = ctx->checks, .async_order = ctx->async_order}};
  for (int i = 0; i < 3; i++) launch.grid[i] = l->grid[i] ? l->grid[i] : 1;
  if (l->cluster > 1) launch.cluster[0] = l->cluster, launch.cluster[1] = launch.cluster[2] = 1;
  status = sol_driver_enqueue(ctx->driver, &launch, stream, &err);
  return status ? ops_fail(status, "%s: %s: %s", def->name, def->kernels[l->kernel], err.message) : SOL_OK;
}

int ops_kind(SolDtype dtype) {
  return dtype == SOL_FP32 ? 0 : dtype == SOL_FP16 ? 1 : dtype == SOL_BF16 ? 2 : 3;
}

SolStatus ops_check_reals(SolDtype in, SolDtype out, SolError *err) {
  if (ops_is_real(in) && ops_is_real(out)) return SOL_OK;
  return sol_fail(err, SOL_ERR_ARGUMENT, "cannot turn %s into %s: fp32, fp16 or bf16", sol_dtype_name(in),
                  sol_dtype_name(out));
}

SolStatus ops_check_ids(const char *tensor, SolDtype dtype, SolError *err) {
  if (dtype == SOL_INT32 || dtype == SOL_INT64) return SOL_OK;
  return sol_fail(err, SOL_ERR_ARGUMENT, "%s must be int32 or int64, not %s", tensor, sol_dtype_name(dtype));
}

int ops_align(const void *at, int64_t stride_bytes, int64_t rows) {
  uint64_t bits = (uint64_t)(uintptr_t)at | 16 | (rows > 1 ? (uint64_t)stride_bytes : 0);
  return (int)(bits & (~bits + 1));
}

const int64_t ops_row_shapes[OPS_ROW_SHAPES][4] = {
    {1, 1},    {5, 2},    {3, 3},    {33, 31},   {7, 128},   {2, 769},    {3, 1023},
    {4, 4096}, {2, 5125}, {1, 8191}, {2, 16384}, {1, 65536}, {1, 131072}, {0, 64},
};

const int64_t ops_row_bench[OPS_ROW_BENCH][4] = {
    {1, 4096},     {8, 4096},     {64, 8192},    {256, 5120},   {512, 4096},
    {2048, 4096},  {8192, 4096},  {16384, 8192}, {32768, 1024}, {262144, 128},
    {4096, 16384}, {2048, 65536}, {512, 131072}, {3001, 5125},  {1000, 769},
};
