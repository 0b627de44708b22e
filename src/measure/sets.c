#include "measure/sets.h"

#include "base/error.h"
#include "base/heap.h"
#include "measure/trial.h"

enum { POISON = 0xA5, ALIGN = 256, BLOCK = 1 << 20 };

// Elements from the first to one past the last.
static int64_t extent(const OpsView *v) {
  int64_t batch = v->batch ? v->batch : 1, stride = v->stride ? v->stride : v->cols;
  int64_t step = v->batch_stride ? v->batch_stride : v->rows * stride;
  return v->rows && v->cols ? (batch - 1) * step + (v->rows - 1) * stride + v->cols : 0;
}

static size_t size_of(const OpsView *v) {
  return (size_t)sol_dtype_bits(v->dtype) / 8;
}

// No order is given: rows are taken in sequence. Nor is a tensor without elements, wherever others start.
static size_t room(const Sets *s, int k) {
  size_t elements = (size_t)extent(&s->view[k]);
  if (s->view[k].fill == OPS_FILL_ORDER || !elements) return 0;
  size_t bytes = (elements + (size_t)s->misalign) * size_of(&s->view[k]);
  return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static bool in_part(const OpsView *v, const SolCost *cost) {
  double bytes = (double)(v->batch ? v->batch : 1) * (double)v->rows * (double)v->cols * (double)size_of(v);
  return (v->role != OPS_OUT && bytes > cost->bytes_read) ||
         (v->role != OPS_IN && bytes > cost->bytes_written);
}

SolStatus sets_plan(Sets *s, SolContext *ctx, const OpsDef *def, const OpsCase *c, int misalign,
                    SolError *err) {
  *s = (Sets){.ctx = ctx, .def = def, .misalign = misalign};
  if (def->args_bytes > sizeof s->args) return sol_fail(err, SOL_ERR_NO_SPACE, "arguments too large");
  if (!def->make(c, s->args)) return sol_fail(err, SOL_ERR_NOT_FOUND, "%s has no such case", def->name);
  s->view_count = def->views(s->args, s->view);
  // Some costs depend on which tensors are there: for the counting, all are that this case has elements of.
  static const char there[16] = {0};
  for (int k = 0; k < s->view_count; k++) {
    const void *at = s->view[k].rows && s->view[k].cols ? there : NULL;
    memcpy(s->args + s->view[k].field, &at, sizeof at);
  }
  SolStatus status = ops_cost(def, s->args, &s->cost, err);
  s->bytes = s->cost.bytes_read + s->cost.bytes_written;
  for (int k = 0; k < s->view_count && !status; k++)
    s->step[k] = in_part(&s->view[k], &s->cost) ? 0 : room(s, k);
  return status;
}

double sets_memory(const Sets *s, int count) {
  double bytes = 0;
  for (int k = 0; k < s->view_count; k++) bytes += (double)room(s, k) * (s->step[k] ? count : 1);
  return bytes;
}

static uint64_t address_of(const void *at) {
  return (uint64_t)(uintptr_t)at;
}

static SolStatus copy_within(SolContext *ctx, char *to, const char *from, size_t bytes, SolError *err) {
  if (ctx->driver) return sol_driver_copy(ctx->driver, address_of(to), address_of(from), bytes, err);
  memcpy(to, from, bytes);
  return SOL_OK;
}

static SolStatus poison(SolContext *ctx, void *at, size_t bytes, SolError *err) {
  if (ctx->driver) return sol_driver_fill(ctx->driver, address_of(at), POISON, bytes, err);
  memset(at, POISON, bytes);
  return SOL_OK;
}

static bool is_ids(const OpsView *v) {
  return v->fill != OPS_FILL_NORMAL && v->fill != OPS_FILL_UNIT && v->fill != OPS_FILL_POSITIVE;
}

// A block of random values goes there once; the rest are copies of it, each turned by another multiple of 64
// bytes, so that no two tensors are alike. (Making gigabytes on the host would take longer than timing.) Ids
// are few, and those of one tensor may have to differ: they are made one by one.
static SolStatus randomise(Sets *s, int k, size_t bytes, uint64_t seed, SolError *err) {
  OpsView full = s->view[k];
  const OpsView *v = &full;
  if (full.fill == OPS_FILL_LENGTHS) full.fill = OPS_FILL_LIMIT;
  size_t block = bytes < BLOCK || is_ids(v) ? bytes : BLOCK;
  char *host = sol_heap_alloc(block), *at = s->memory[k];
  if (!host) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  size_t before = full.fill == OPS_FILL_STARTS ? (size_t)s->misalign * size_of(v) : 0;
  size_t each =
      full.fill == OPS_FILL_STARTS && s->step[k] ? s->step[k] : block; // starts begin anew in each set
  for (size_t from = 0; from + each <= block; from += each)
    trial_values(v, seed + 1000003u * (uint64_t)k + from, host + from + before,
                 (int64_t)((each - before) / size_of(v)));
  SolStatus status = sol_context_write(s->ctx, at, host, block, err);
  sol_heap_free(host);
  size_t turn = 0;
  for (size_t done = block; done < bytes && !status;) {
    turn = (turn + 64 * 12289) % block / 64 * 64;
    size_t left = bytes - done, first = block - turn < left ? block - turn : left;
    size_t second = turn < left - first ? turn : left - first;
    status = copy_within(s->ctx, at + done, at + turn, first, err);
    if (!status && second) status = copy_within(s->ctx, at + done + first, at, second, err);
    done += first + second;
  }
  return status;
}

SolStatus sets_open(Sets *s, int count, uint64_t seed, SolError *err) {
  s->count = count;
  SolStatus status = SOL_OK;
  for (int k = 0; k < s->view_count && !status; k++) {
    size_t bytes = room(s, k) * (s->step[k] ? (size_t)count : 1);
    if (!bytes) continue;
    status = sol_context_alloc(s->ctx, bytes, &s->memory[k], err);
    if (!status && s->view[k].role == OPS_OUT)
      status = poison(s->ctx, s->memory[k], bytes, err);
    else if (!status)
      status = randomise(s, k, bytes, seed, err);
  }
  return status ? status : sol_context_sync(s->ctx, err);
}

void sets_args(const Sets *s, int set, void *args) {
  memcpy(args, s->args, s->def->args_bytes);
  for (int k = 0; k < s->view_count; k++) {
    const OpsView *v = &s->view[k];
    char *at = s->memory[k];
    if (at) at += s->step[k] * (size_t)set + (size_t)s->misalign * size_of(v);
    memcpy((char *)args + v->field, &at, sizeof at);
  }
}

void sets_close(Sets *s) {
  for (int k = 0; k < s->view_count; k++)
    if (s->memory[k]) sol_context_free(s->ctx, s->memory[k], NULL);
  *s = (Sets){0};
}
