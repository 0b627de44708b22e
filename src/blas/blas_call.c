// A call from its arguments to its bill: operands found in device memory, the batch, what it has to move.
#include <string.h>

#include "blas/blas.h"

BlasScalar blas_scalar(const BlasHandle *h, const void *at, int type) {
  BlasScalar s = {.type = type};
  if (h->pointers)
    s.device = at;
  else
    s.value = blas_get(&(BlasView){.at = (unsigned char *)(uintptr_t)at, .type = type}, 0, 0);
  return s;
}

BlasOperand blas_matrix(const void *at, int type, int64_t rows, int64_t columns, int64_t lead) {
  return (BlasOperand){.at = at, .type = type, .rows = rows, .columns = columns, .lead = lead};
}

BlasOperand blas_vector(const void *at, int type, int64_t n, int64_t step) {
  return (BlasOperand){.at = at, .type = type, .rows = n, .columns = 1, .step = step};
}

BlasView blas_op(BlasView v, int trans) {
  if (!trans) return v;
  int64_t down = v.down;
  v.down = v.right;
  v.right = down;
  v.upper = !v.upper;
  if (trans == 2) v.conjugate = !v.conjugate;
  return v;
}

BlasCompute blas_compute_of(int type) {
  switch (type) {
  case BLAS_R64F: return BLAS_DOUBLE;
  case BLAS_C32F: return BLAS_CFLOAT;
  case BLAS_C64F: return BLAS_CDOUBLE;
  case BLAS_R8I: return BLAS_INT;
  default: return BLAS_FLOAT;
  }
}

SolDtype blas_roof(int type, bool tf32) {
  switch (type) {
  case BLAS_R64F:
  case BLAS_C64F: return SOL_FP64;
  case BLAS_R16F: return SOL_FP16;
  case BLAS_R16BF: return SOL_BF16;
  case BLAS_E4M3:
  case BLAS_E5M2: return SOL_FP8;
  case BLAS_R8I: return SOL_INT8;
  default: return tf32 ? SOL_TF32 : SOL_FP32;
  }
}

bool blas_bad_trans(int trans) {
  return trans < 0 || trans > 2;
}

// ---- operands ----

static int64_t step_of(const BlasOperand *o) {
  return o->step < 0 ? -o->step : o->step;
}

// Elements from the first to the last.
static int64_t span_of(const BlasOperand *o) {
  if (!o->rows || !o->columns) return 0;
  if (o->step) return (o->rows - 1) * step_of(o) + 1;
  return o->lead * (o->columns - 1) + o->rows;
}

static double used_bytes(const BlasOperand *o) {
  return (double)o->rows * (double)o->columns * (double)blas_bytes(o->type);
}

static const void *batch_at(const BlasOperand *o, int64_t i, const void *const *list) {
  if (o->list) return list[i];
  return (const unsigned char *)o->at + i * o->batch * (int64_t)blas_bytes(o->type);
}

// False: it is not there.
static bool view_of(const BlasCall *c, const BlasOperand *o, const void *at, BlasView *v) {
  int64_t span = span_of(o);
  *v = (BlasView){.type = o->type, .down = o->step ? o->step : 1, .right = o->lead};
  if (!span) return true;
  size_t bytes = (size_t)span * blas_bytes(o->type);
  v->at = c->anywhere ? __cudaSolLibraryEither(at, bytes) : __cudaSolLibraryMemory(c->name, at, bytes);
  if (v->at && o->step < 0) v->at += (o->rows - 1) * step_of(o) * (int64_t)blas_bytes(o->type);
  return v->at != NULL;
}

static bool take_scalar(const char *name, BlasScalar *s) {
  if (!s->device) return true;
  void *at = __cudaSolLibraryMemory(name, s->device, blas_bytes(s->type));
  if (at) s->value = blas_get(&(BlasView){.at = at, .type = s->type}, 0, 0);
  return at != NULL;
}

static void add_cost(const BlasCall *c, ShimLibraryCost *cost) {
  for (int i = 0; i < c->count; i++) {
    const BlasOperand *o = &c->operands[i];
    double bytes = used_bytes(o) * (double)c->batches;
    if (o->wrote) cost->written += bytes;
    if (!o->unread && !(o->scaled && c->beta.value == 0)) cost->read += bytes;
    size_t span = (size_t)span_of(o) * blas_bytes(o->type);
    if (o->list || !span || c->anywhere) continue;
    if (c->batches > 1) span += (size_t)((c->batches - 1) * o->batch) * blas_bytes(o->type);
    for (int k = 0; k < SHIM_LIBRARY_USES; k++)
      if (!cost->uses[k].bytes) {
        cost->uses[k] = (ShimLibraryUse){o->at, span, o->wrote};
        break;
      }
  }
  cost->flops = c->flops * (double)c->batches;
  cost->dtype = c->dtype;
  cost->tensor = c->tensor;
}

static bool work(void *arguments, ShimLibraryCost *cost) {
  BlasCall c = *(BlasCall *)arguments;
  const void *const *lists[4] = {0};
  if (!take_scalar(c.name, &c.alpha) || !take_scalar(c.name, &c.beta)) return false;
  for (int i = 0; i < c.count; i++) {
    size_t bytes = (size_t)c.batches * sizeof(void *);
    if (c.operands[i].list && !(lists[i] = __cudaSolLibraryMemory(c.name, c.operands[i].at, bytes)))
      return false;
  }
  for (int64_t b = 0; b < c.batches; b++) {
    BlasView views[4];
    for (int i = 0; i < c.count; i++)
      if (!view_of(&c, &c.operands[i], batch_at(&c.operands[i], b, lists[i]), &views[i])) return false;
    if (!c.run(&c, views)) return false;
  }
  add_cost(&c, cost);
  return true;
}

int blas_run(const BlasHandle *h, const BlasCall *call) {
  BlasCall c = *call;
  if (!c.batches) c.batches = 1;
  if (h->billed) c.name = h->billed, c.anywhere = true;
  switch (__cudaSolLibraryCall(c.name, h->stream, work, &c, sizeof c)) {
  case SHIM_LIBRARY_DONE: return BLAS_OK;
  case SHIM_LIBRARY_NO_MEMORY: return BLAS_NO_ROOM;
  default: return BLAS_FAILED;
  }
}
