#include "measure/trial.h"

#include <math.h>

#include "base/error.h"
#include "base/heap.h"
#include "emu/isa/num_cvt.h"
#include "emu/isa/num_half.h"

enum { POISON = 0xA5, ALIGN = 256 };

// A small counter-based generator: element i of tensor t has the same value on every backend.
static uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static double uniform(uint64_t bits) { // 0..1
  return (double)(bits >> 11) * 0x1p-53;
}

static double fill_value(const OpsView *v, const TrialOptions *o, uint64_t bits) {
  double u = uniform(bits), w = uniform(mix(bits));
  if (v->fill >= OPS_FILL_IDS) {
    double limit = (double)v->limit + (v->fill == OPS_FILL_LENGTHS);
    if (o->bad_ids && v->fill < OPS_FILL_ORDER && w < 0.2)
      return w < 0.1 ? -1.0 - floor(u * 1000) : limit + floor(u * 1e6);
    return floor(u * limit);
  }
  if (o->specials && v->role != OPS_OUT && !v->finite && w < 0.02)
    return w < 0.004 ? NAN : w < 0.008 ? INFINITY : w < 0.012 ? -INFINITY : w < 0.016 ? -6e4 : 0;
  if (v->fill == OPS_FILL_UNIT) return 2 * u - 1;
  if (v->fill == OPS_FILL_POSITIVE) return 0.1 + 0.9 * u;
  double four = u + w + uniform(mix(bits + 1)) + uniform(mix(bits + 2)) - 2; // close to normal
  return four * 1.7 * (bits % 997 == 0 ? 8 : 1);
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

// The k-th of a vector of starts: 0, then within the k-th of equal parts, at the end the limit.
static double start_value(const OpsView *v, uint64_t k, uint64_t bits) {
  uint64_t parts = (uint64_t)v->cols - 1;
  if (k == 0 || k == parts) return k ? (double)v->limit : 0;
  return floor((double)v->limit * ((double)k - uniform(bits)) / (double)parts);
}

// Element k: of distinct ids the k-th of a permutation, otherwise at random.
static double element_value(const OpsView *v, const TrialOptions *o, uint64_t k, uint64_t bits) {
  if (v->fill == OPS_FILL_STARTS) return start_value(v, k, bits);
  if (v->fill == OPS_FILL_LIMIT) return (double)v->limit;
  double value = fill_value(v, o, bits);
  if (v->fill < OPS_FILL_DISTINCT || value < 0 || value >= (double)v->limit) return value;
  uint64_t limit = (uint64_t)v->limit, step = limit * 5 / 8 + 1;
  while (common_divisor(limit, step) != 1) step++;
  return (double)((k * step + o->seed % limit) % limit);
}

double trial_element(SolDtype d, const void *at, int64_t i) {
  switch (d) {
  case SOL_FP64: return ((const double *)at)[i];
  case SOL_FP32: return (double)((const float *)at)[i];
  case SOL_FP16: return (double)num_cvt_f32_f16(((const uint16_t *)at)[i]);
  case SOL_BF16: return (double)num_cvt_f32_bf16(((const uint16_t *)at)[i]);
  case SOL_FP8: return (double)num_cvt_f32_small(((const uint8_t *)at)[i], NUM_E4M3);
  case SOL_INT8: return ((const int8_t *)at)[i];
  case SOL_INT32: return ((const int32_t *)at)[i];
  case SOL_INT64: return (double)((const int64_t *)at)[i];
  default: return NAN;
  }
}

static void put(SolDtype d, void *at, int64_t i, double x) {
  switch (d) {
  case SOL_FP64: ((double *)at)[i] = x; break;
  case SOL_FP32: ((float *)at)[i] = (float)x; break;
  case SOL_FP16: ((uint16_t *)at)[i] = num_cvt_f16_f32_rn((float)x); break;
  case SOL_BF16: ((uint16_t *)at)[i] = num_cvt_bf16_f32_rn((float)x); break;
  case SOL_FP8: ((uint8_t *)at)[i] = (uint8_t)num_cvt_small_f32((float)x, NUM_E4M3, false); break;
  case SOL_INT8: ((int8_t *)at)[i] = (int8_t)(fabs(x) < 128 ? x : 0); break; // a NaN, too
  case SOL_INT32: ((int32_t *)at)[i] = (int32_t)x; break;
  case SOL_INT64: ((int64_t *)at)[i] = (int64_t)x; break;
  default: break;
  }
}

void trial_values(const OpsView *view, uint64_t seed, void *to, int64_t count) {
  TrialOptions plain = {0};
  for (int64_t i = 0; i < count; i++)
    put(view->dtype, to, i, element_value(view, &plain, (uint64_t)i, mix(seed + (uint64_t)i)));
}

static void dense(OpsView *v) {
  if (!v->batch) v->batch = 1;
  if (!v->stride) v->stride = v->cols;
  if (!v->batch_stride) v->batch_stride = v->rows * v->stride;
}

static int64_t place(const OpsView *v, int64_t b, int64_t r, int64_t c) {
  return b * v->batch_stride + r * v->stride + c;
}

// Bytes on either side of a tensor that must not change. Inputs have none: the emulator then finds what is read beside them.
static size_t around(const Trial *t, int k) {
  return t->view[k].role == OPS_IN && !t->options.in_place ? 0 : ALIGN;
}

// Where view k's first element is in the memory of `owner`.
static size_t start_of(const Trial *t, int k, int owner) {
  return around(t, owner) + (size_t)t->options.misalign * ((size_t)sol_dtype_bits(t->view[k].dtype) / 8);
}

static void fill(Trial *t, int k) {
  const OpsView *v = &t->view[k];
  memset(t->host[k], POISON, t->bytes[k]);
  if (v->role == OPS_OUT) return;
  unsigned char *at = t->host[k] + start_of(t, k, k);
  uint64_t start = mix(t->options.seed + 1000003u * (uint64_t)k), i = 0;
  for (int64_t b = 0; b < v->batch; b++)
    for (int64_t r = 0; r < v->rows; r++)
      for (int64_t c = 0; c < v->cols; c++)
        put(v->dtype, at, place(v, b, r, c), element_value(v, &t->options, i, mix(start + i))), i++;
}

static SolStatus take_memory(Trial *t, int k, SolError *err) {
  OpsView *v = &t->view[k];
  size_t size = (size_t)sol_dtype_bits(v->dtype) / 8;
  int64_t elements = v->rows && v->cols ? place(v, v->batch - 1, v->rows - 1, v->cols) : 0;
  t->bytes[k] = ((size_t)elements + (size_t)t->options.misalign) * size + 2 * around(t, k);
  t->shares[k] = k;
  int other = v->alias - 1;
  if (t->options.in_place && other >= 0 && t->view[other].dtype == v->dtype &&
      t->view[other].stride == v->stride) {
    // The tensor listed first owns the memory; the contents are the input's.
    int owner = other < k ? other : k;
    t->shares[k] = owner;
    if (owner == other) return v->at = t->view[other].at, SOL_OK;
  }
  t->host[k] = sol_heap_alloc(t->bytes[k]);
  if (!t->host[k]) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  fill(t, k);
  SolStatus status = sol_context_alloc(t->ctx, t->bytes[k], &t->memory[k], err);
  v->at = (char *)t->memory[k] + start_of(t, k, k);
  return status;
}

SolStatus trial_open(Trial *t, SolContext *ctx, const OpsDef *def, const OpsCase *c,
                     const TrialOptions *options, SolError *err) {
  *t = (Trial){.def = def, .ctx = ctx, .options = options ? *options : (TrialOptions){0}};
  if (def->args_bytes > sizeof t->args) return sol_fail(err, SOL_ERR_NO_SPACE, "arguments too large");
  if (!def->make(c, t->args)) return sol_fail(err, SOL_ERR_NOT_FOUND, "%s has no such case", def->name);
  t->count = def->views(t->args, t->view);
  for (int k = 0; k < t->count; k++) dense(&t->view[k]);
  SolStatus status = SOL_OK;
  for (int k = 0; k < t->count && !status; k++) {
    OpsView *v = &t->view[k];
    if (v->rows == 0 || v->cols == 0 || (v->optional && t->options.without_optional))
      v->at = NULL, t->shares[k] = -1;
    else
      status = take_memory(t, k, err);
  }
  // An output that was listed before the input it coincides with holds the input's values.
  for (int k = 0; k < t->count && !status; k++)
    if (t->shares[k] >= 0 && t->shares[k] != k && t->view[t->shares[k]].role == OPS_OUT &&
        t->view[k].role != OPS_OUT) {
      OpsView *owner = &t->view[t->shares[k]];
      OpsRole role = owner->role;
      owner->role = OPS_INOUT;
      fill(t, t->shares[k]);
      owner->role = role;
    }
  for (int k = 0; k < t->count; k++) memcpy(t->args + t->view[k].field, &t->view[k].at, sizeof(void *));
  return status;
}

SolStatus trial_run(Trial *t, SolError *err) {
  SolStatus status = SOL_OK;
  for (int k = 0; k < t->count && !status; k++)
    if (t->memory[k]) status = sol_context_write(t->ctx, t->memory[k], t->host[k], t->bytes[k], err);
  if (status) return status;
  status = ops_call(t->ctx, t->def, t->args, NULL);
  if (status && err) *err = *sol_last_error();
  return status ? status : sol_context_sync(t->ctx, err);
}

static double *as_doubles(const OpsView *v, const unsigned char *at) {
  double *d = sol_heap_alloc(sizeof *d * (size_t)(v->batch * v->rows * v->cols));
  int64_t i = 0;
  for (int64_t b = 0; d && b < v->batch; b++)
    for (int64_t r = 0; r < v->rows; r++)
      for (int64_t c = 0; c < v->cols; c++) d[i++] = at ? trial_element(v->dtype, at, place(v, b, r, c)) : 0;
  return d;
}

// Half a unit in the last place, relative, and the smallest step.
static void rounding(SolDtype d, double *relative, double *step, double *largest) {
  *relative = d == SOL_FP32   ? 0x1p-24
              : d == SOL_FP16 ? 0x1p-11
              : d == SOL_BF16 ? 0x1p-8
              : d == SOL_FP8  ? 0x1p-3
                              : 0;
  // int8 is what reals are rounded to, and its reference is not rounded; other integers must be met exactly.
  *step = d == SOL_FP32   ? 0x1p-140
          : d == SOL_FP16 ? 0x1p-24
          : d == SOL_BF16 ? 0x1p-133
          : d == SOL_FP8  ? 0x1p-9
          : d == SOL_INT8 ? 0.5
                          : 0;
  *largest = d == SOL_FP16 ? 65504 : d == SOL_FP8 ? 448 : d == SOL_BF16 ? 3.3895e38 : 3.4028e38;
}

double trial_error(SolDtype d, double slack, double got, double want, double row_max) {
  double relative, step, largest;
  rounding(d, &relative, &step, &largest);
  if (d == SOL_INT8) want = isnan(want) ? 0 : fmin(fmax(want, -128), 127);
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : INFINITY;
  if (d == SOL_FP8 && fabs(want) > largest) want = want > 0 ? largest : -largest;
  double room = slack * 0x1p-24 * (isfinite(row_max) ? row_max : 0);
  double allowed = relative * 1.001 * fabs(want) + room + step;
  if (isinf(got) && d != SOL_FP8 && fabs(want) + allowed >= largest)
    return (got > 0) == (want > 0) ? 0 : INFINITY;
  if (isinf(want) || isinf(got)) return got == want ? 0 : INFINITY;
  if (relative == 0 && step == 0) return got == want ? 0 : INFINITY; // whole numbers
  return fabs(got - want) / allowed;
}

// terms: what slack is relative to, for each element; NULL: the largest value of its row.
static SolStatus compare(Trial *t, int k, const unsigned char *now, const double *want, const double *terms,
                         double *worst, SolError *err) {
  const OpsView *v = &t->view[k];
  double slack = t->def->slack_of ? t->def->slack_of(t->args) : t->def->slack;
  int64_t i = 0;
  for (int64_t b = 0; b < v->batch; b++) {
    for (int64_t r = 0; r < v->rows; r++) {
      double row_max = v->unit;
      for (int64_t c = 0; c < v->cols; c++)
        if (isfinite(want[i + c])) row_max = fmax(row_max, fabs(want[i + c]));
      for (int64_t c = 0; c < v->cols; c++, i++) {
        double got = trial_element(v->dtype, now, place(v, b, r, c));
        double share = trial_error(v->dtype, slack, got, want[i], terms ? terms[i] : row_max);
        if (share > *worst) *worst = share;
        if (share > 1)
          return sol_fail(
              err, SOL_ERR_RANGE, "%s: %s[%lld][%lld][%lld] is %.9g, not %.9g (%.1f times what is allowed)",
              t->def->name, v->name, (long long)b, (long long)r, (long long)c, got, want[i], share);
      }
    }
  }
  return SOL_OK;
}

// Everything that no view marks as output must be as it was.
static SolStatus check_untouched(Trial *t, int owner, const unsigned char *now, SolError *err) {
  unsigned char *may = sol_heap_alloc(t->bytes[owner]);
  if (!may) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  memset(may, 0, t->bytes[owner]);
  for (int k = 0; k < t->count; k++) {
    const OpsView *v = &t->view[k];
    size_t size = (size_t)sol_dtype_bits(v->dtype) / 8;
    if (t->shares[k] != owner || v->role == OPS_IN) continue;
    size_t start = start_of(t, k, owner);
    for (int64_t b = 0; b < v->batch; b++)
      for (int64_t r = 0; r < v->rows; r++)
        memset(may + start + (size_t)place(v, b, r, 0) * size, 1, (size_t)v->cols * size);
  }
  SolStatus status = SOL_OK;
  for (size_t i = 0; i < t->bytes[owner] && !status; i++)
    if (!may[i] && now[i] != t->host[owner][i]) // NOLINT: trial_check has read it
      status = sol_fail(err, SOL_ERR_RANGE, "%s: byte %lld of %s's memory was overwritten", t->def->name,
                        (long long)i - (long long)around(t, owner), t->view[owner].name);
  sol_heap_free(may);
  return status;
}

SolStatus trial_check(Trial *t, double *worst, SolError *err) {
  double *want[OPS_MAX_VIEWS + 1] = {0}, most = 0;
  unsigned char *now[OPS_MAX_VIEWS] = {0};
  SolStatus status = SOL_OK;
  for (int k = 0; k < t->count && !status; k++) {
    int owner = t->shares[k];
    if (owner < 0) continue;
    const OpsView *v = &t->view[k];
    size_t start = start_of(t, k, owner);
    want[k] = as_doubles(v, v->role == OPS_OUT && t->shares[k] == k ? NULL : t->host[owner] + start);
    if (owner == k) now[k] = sol_heap_alloc(t->bytes[k]);
    if (!want[k] || (owner == k && !now[k])) status = sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
    if (!status && owner == k) status = sol_context_read(t->ctx, now[k], t->memory[k], t->bytes[k], err);
  }
  if (t->def->slack_of_terms && !status) {
    want[OPS_TERMS] = as_doubles(&t->view[0], NULL);
    if (!want[OPS_TERMS]) status = sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  }
  if (!status) t->def->reference(t->args, want);
  for (int k = 0; k < t->count && !status; k++) {
    int owner = t->shares[k];
    if (owner < 0) continue;
    size_t start = start_of(t, k, owner);
    if (t->view[k].role != OPS_IN && !t->view[k].scratch)
      status = compare(t, k, now[owner] + start, want[k], k == 0 ? want[OPS_TERMS] : NULL, &most, err);
    if (!status && owner == k) status = check_untouched(t, k, now[k], err);
  }
  for (int k = 0; k < t->count; k++) {
    sol_heap_free(want[k]);
    sol_heap_free(now[k]);
  }
  sol_heap_free(want[OPS_TERMS]);
  if (worst) *worst = most;
  return status;
}

void trial_close(Trial *t) {
  for (int k = 0; k < t->count; k++) {
    if (t->memory[k]) sol_context_free(t->ctx, t->memory[k], NULL);
    sol_heap_free(t->host[k]);
  }
  *t = (Trial){0};
}
