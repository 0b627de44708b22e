// cuFFT's plans and their execution.
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fft/fft.h"
#include "shim/shim_library.h"

#define API __attribute__((visibility("default")))
enum {
  OK = 0,
  NO_PLAN = 1,
  NO_ROOM = 2,
  WRONG_TYPE = 3,
  BAD_VALUE = 4,
  FAILED = 6,
  BAD_SIZE = 8,
  NOT_SUPPORTED = 16
};
enum {
  R2C = 0x2a,
  C2R = 0x2c,
  C2C = 0x29,
  D2Z = 0x6a,
  Z2D = 0x6c,
  Z2Z = 0x69,
  VERSION = 12000,
  MOST_PLANS = 1024
};

typedef struct Layout {
  bool given; // else dense, as the transform's kind has it
  int64_t embed[FFT_MOST_DIMS], stride, distance;
} Layout;

typedef struct Plan {
  bool used, made;
  void *stream;
  int type, dims;
  int64_t n[FFT_MOST_DIMS], batch;
  Layout in, out;
} Plan;

// Plans are small integers, so that the library has to keep them.
static Plan plans[MOST_PLANS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static Plan *plan_of(int handle) {
  return handle > 0 && handle < MOST_PLANS && plans[handle].used ? &plans[handle] : NULL;
}

static bool is_wide(int type) {
  return type == D2Z || type == Z2D || type == Z2Z;
}
static bool real_in(int type) {
  return type == R2C || type == D2Z;
}
static bool real_out(int type) {
  return type == C2R || type == Z2D;
}

// ---- where elements lie ----

typedef struct Side {
  unsigned char *at;
  bool real, wide;
  int64_t n[FFT_MOST_DIMS]; // stored: half of the last dimension where the other side is real
  int64_t embed[FFT_MOST_DIMS], stride, distance;
} Side;

static int64_t half(int64_t n) {
  return n / 2 + 1;
}

// A real side in place has rows of room for the complex ones.
static Side side_of(const Plan *p, bool out, bool in_place) {
  const Layout *l = out ? &p->out : &p->in;
  int last = p->dims - 1;
  bool halved = out ? real_in(p->type) : real_out(p->type);
  Side s = {.real = out ? real_out(p->type) : real_in(p->type), .wide = is_wide(p->type), .stride = 1};
  for (int d = 0; d < p->dims; d++) s.n[d] = s.embed[d] = p->n[d];
  if (halved) s.n[last] = s.embed[last] = half(p->n[last]);
  if (s.real && in_place) s.embed[last] = 2 * half(p->n[last]);
  if (l->given) {
    for (int d = 1; d < p->dims; d++) s.embed[d] = l->embed[d];
    s.stride = l->stride;
  }
  s.distance = l->given ? l->distance : s.embed[0];
  for (int d = 1; d < p->dims && !l->given; d++) s.distance *= s.embed[d];
  return s;
}

static int64_t place(const Side *s, int dims, const int64_t *at) {
  int64_t i = at[0];
  for (int d = 1; d < dims; d++) i = i * s->embed[d] + at[d];
  return i * s->stride;
}

static size_t element_bytes(const Side *s) {
  return (size_t)(s->real ? 1 : 2) * (s->wide ? 8 : 4);
}

static size_t span_bytes(const Side *s, int dims, int64_t batch) {
  int64_t last[FFT_MOST_DIMS] = {0};
  for (int d = 0; d < dims; d++) last[d] = s->n[d] - 1;
  return (size_t)((batch - 1) * s->distance + place(s, dims, last) + 1) * element_bytes(s);
}

static FftNumber get(const Side *s, int64_t i) {
  const unsigned char *at = s->at + (size_t)i * element_bytes(s);
  double d[2] = {0, 0};
  float f[2] = {0, 0};
  memcpy(s->wide ? (void *)d : (void *)f, at, element_bytes(s));
  return s->wide ? CMPLX(d[0], d[1]) : CMPLX((double)f[0], (double)f[1]);
}

static void put(const Side *s, int64_t i, FftNumber x) {
  unsigned char *at = s->at + (size_t)i * element_bytes(s);
  double d[2] = {creal(x), cimag(x)};
  float f[2] = {(float)d[0], (float)d[1]};
  memcpy(at, s->wide ? (void *)d : (void *)f, element_bytes(s));
}

// ---- one transform ----

static void split(const Plan *p, int64_t i, int64_t *at) {
  for (int d = p->dims - 1; d >= 0; i /= p->n[d--]) at[d] = i % p->n[d];
}

// Of what is not stored of a symmetric array, the conjugate lies at the mirrored place.
static FftNumber load(const Plan *p, const Side *in, int64_t i, int64_t base) {
  int64_t at[FFT_MOST_DIMS] = {0};
  int last = p->dims - 1;
  split(p, i, at);
  if (!real_out(p->type) || at[last] < half(p->n[last])) return get(in, base + place(in, p->dims, at));
  for (int d = 0; d < p->dims; d++) at[d] = at[d] ? p->n[d] - at[d] : 0;
  return conj(get(in, base + place(in, p->dims, at)));
}

static void store(const Plan *p, const Side *out, int64_t i, int64_t base, FftNumber x) {
  int64_t at[FFT_MOST_DIMS] = {0};
  split(p, i, at);
  if (at[p->dims - 1] < out->n[p->dims - 1]) put(out, base + place(out, p->dims, at), x);
}

typedef struct Execution {
  const char *name;
  Plan plan;
  void *in, *out;
  int sign;
} Execution;

static int64_t points_of(const Plan *p) {
  int64_t points = 1;
  for (int d = 0; d < p->dims; d++) points *= p->n[d];
  return points;
}

static bool run(const Execution *e, const Side *in, const Side *out) {
  const Plan *p = &e->plan;
  int64_t points = points_of(p);
  FftNumber *x = malloc((size_t)points * sizeof *x);
  bool done = x != NULL;
  for (int64_t b = 0; b < p->batch && done; b++) {
    for (int64_t i = 0; i < points; i++) x[i] = load(p, in, i, b * in->distance);
    done = fft_array(x, p->n, p->dims, e->sign);
    for (int64_t i = 0; i < points && done; i++) store(p, out, i, b * out->distance, x[i]);
  }
  free(x);
  return done;
}

static double stored_bytes(const Side *s, const Plan *p) {
  double n = (double)p->batch * (double)element_bytes(s);
  for (int d = 0; d < p->dims; d++) n *= (double)s->n[d];
  return n;
}

static bool work(void *arguments, ShimLibraryCost *cost) {
  const Execution *e = arguments;
  const Plan *p = &e->plan;
  Side in = side_of(p, false, e->in == e->out), out = side_of(p, true, e->in == e->out);
  size_t in_bytes = span_bytes(&in, p->dims, p->batch), out_bytes = span_bytes(&out, p->dims, p->batch);
  in.at = __cudaSolLibraryMemory(e->name, e->in, in_bytes);
  out.at = in.at ? __cudaSolLibraryMemory(e->name, e->out, out_bytes) : NULL;
  if (!out.at || !run(e, &in, &out)) return false;
  double points = (double)points_of(p);
  *cost = (ShimLibraryCost){.read = stored_bytes(&in, p),
                            .written = stored_bytes(&out, p),
                            .flops = (p->type == C2C || p->type == Z2Z ? 5 : 2.5) * points * log2(points) *
                                     (double)p->batch,
                            .dtype = in.wide ? SOL_FP64 : SOL_FP32,
                            .uses = {{e->in, in_bytes, false}, {e->out, out_bytes, true}}};
  return true;
}

static int execute(const char *name, int handle, int type, void *in, void *out, int sign) {
  pthread_mutex_lock(&lock);
  const Plan *p = plan_of(handle);
  Execution e = {.name = name, .in = in, .out = out, .sign = sign};
  if (p) e.plan = *p;
  pthread_mutex_unlock(&lock);
  if (!p || !e.plan.made) return NO_PLAN;
  if (e.plan.type != type) return WRONG_TYPE;
  if (!in || !out || (sign != 1 && sign != -1)) return BAD_VALUE;
  switch (__cudaSolLibraryCall(name, e.plan.stream, work, &e, sizeof e)) {
  case SHIM_LIBRARY_DONE: return OK;
  case SHIM_LIBRARY_NO_MEMORY: return NO_ROOM;
  default: return FAILED;
  }
}

API int cufftExecC2C(int plan, void *in, void *out, int sign) {
  return execute("cufftExecC2C", plan, C2C, in, out, sign);
}
API int cufftExecZ2Z(int plan, void *in, void *out, int sign) {
  return execute("cufftExecZ2Z", plan, Z2Z, in, out, sign);
}
API int cufftExecR2C(int plan, void *in, void *out) {
  return execute("cufftExecR2C", plan, R2C, in, out, -1);
}
API int cufftExecC2R(int plan, void *in, void *out) {
  return execute("cufftExecC2R", plan, C2R, in, out, 1);
}
API int cufftExecD2Z(int plan, void *in, void *out) {
  return execute("cufftExecD2Z", plan, D2Z, in, out, -1);
}
API int cufftExecZ2D(int plan, void *in, void *out) {
  return execute("cufftExecZ2D", plan, Z2D, in, out, 1);
}

// Whatever the plan's kind is.
API int cufftXtExec(int handle, void *in, void *out, int sign) {
  pthread_mutex_lock(&lock);
  const Plan *p = plan_of(handle);
  int type = p ? p->type : C2C;
  pthread_mutex_unlock(&lock);
  return execute("cufftXtExec", handle, type, in, out, real_in(type) ? -1 : real_out(type) ? 1 : sign);
}

// ---- plans ----

API int cufftCreate(int *handle) {
  if (!handle) return BAD_VALUE;
  pthread_mutex_lock(&lock);
  int i = 1;
  while (i < MOST_PLANS && plans[i].used) i++;
  if (i < MOST_PLANS) plans[i] = (Plan){.used = true};
  pthread_mutex_unlock(&lock);
  *handle = i;
  return i < MOST_PLANS ? OK : NO_ROOM;
}

API int cufftDestroy(int handle) {
  pthread_mutex_lock(&lock);
  Plan *p = plan_of(handle);
  if (p) p->used = false;
  pthread_mutex_unlock(&lock);
  return p ? OK : NO_PLAN;
}

static bool known_type(int type) {
  return type == R2C || type == C2R || type == C2C || is_wide(type);
}

static int make(int handle, const Plan *wanted, size_t *work_bytes) {
  if (!known_type(wanted->type)) return WRONG_TYPE;
  for (int d = 0; d < wanted->dims; d++)
    if (wanted->n[d] < 1) return BAD_SIZE;
  if (wanted->batch < 1) return BAD_SIZE;
  pthread_mutex_lock(&lock);
  Plan *p = plan_of(handle);
  if (p) {
    void *stream = p->stream;
    *p = *wanted;
    p->used = p->made = true;
    p->stream = stream;
  }
  pthread_mutex_unlock(&lock);
  if (p && work_bytes) *work_bytes = 0;
  return p ? OK : NO_PLAN;
}

static Plan many(int dims, const int *n, const int *in_embed, int in_stride, int in_distance,
                 const int *out_embed, int out_stride, int out_distance, int type, int batch) {
  Plan p = {.type = type, .dims = dims, .batch = batch};
  p.in = (Layout){.given = in_embed && out_embed, .stride = in_stride, .distance = in_distance};
  p.out = (Layout){.given = p.in.given, .stride = out_stride, .distance = out_distance};
  for (int d = 0; d < dims; d++) {
    p.n[d] = n[d];
    if (p.in.given) p.in.embed[d] = in_embed[d], p.out.embed[d] = out_embed[d];
  }
  return p;
}

API int cufftMakePlan1d(int plan, int n, int type, int batch, size_t *bytes) {
  return make(plan, &(Plan){.type = type, .dims = 1, .n = {n}, .batch = batch}, bytes);
}
API int cufftMakePlan2d(int plan, int x, int y, int type, size_t *bytes) {
  return make(plan, &(Plan){.type = type, .dims = 2, .n = {x, y}, .batch = 1}, bytes);
}
API int cufftMakePlan3d(int plan, int x, int y, int z, int type, size_t *bytes) {
  return make(plan, &(Plan){.type = type, .dims = 3, .n = {x, y, z}, .batch = 1}, bytes);
}
API int cufftMakePlanMany(int plan, int dims, const int *n, const int *in_embed, int in_stride,
                          int in_distance, const int *out_embed, int out_stride, int out_distance, int type,
                          int batch, size_t *bytes) {
  if (dims < 1 || dims > FFT_MOST_DIMS || !n) return BAD_VALUE;
  Plan p = many(dims, n, in_embed, in_stride, in_distance, out_embed, out_stride, out_distance, type, batch);
  return make(plan, &p, bytes);
}

// The same with 64-bit sizes, and types as cudaDataType has them: 0 and 1 real, 4 and 5 complex, of float and double.
static int kind_of(int in, int out) {
  static const int kinds[][3] = {{4, 4, C2C}, {0, 4, R2C}, {4, 0, C2R},
                                 {5, 5, Z2Z}, {1, 5, D2Z}, {5, 1, Z2D}};
  for (size_t i = 0; i < SOL_COUNT(kinds); i++)
    if (kinds[i][0] == in && kinds[i][1] == out) return kinds[i][2];
  return -1;
}
API int cufftXtMakePlanMany(int plan, int dims, const long long *n, const long long *in_embed,
                            long long in_stride, long long in_distance, int in_type,
                            const long long *out_embed, long long out_stride, long long out_distance,
                            int out_type, long long batch, size_t *bytes, int type) {
  (void)type;
  if (dims < 1 || dims > FFT_MOST_DIMS || !n) return BAD_VALUE;
  bool given = in_embed && out_embed;
  Plan p = {.type = kind_of(in_type, out_type), .dims = dims, .batch = batch};
  p.in = (Layout){.given = given, .stride = in_stride, .distance = in_distance};
  p.out = (Layout){.given = given, .stride = out_stride, .distance = out_distance};
  for (int d = 0; d < dims; d++) {
    p.n[d] = n[d];
    if (given) p.in.embed[d] = in_embed[d], p.out.embed[d] = out_embed[d];
  }
  return make(plan, &p, bytes);
}

// A new plan, which is gone again where it cannot be made.
static int finish(int *plan, int status) {
  if (status) cufftDestroy(*plan);
  return status;
}
API int cufftPlan1d(int *plan, int n, int type, int batch) {
  int status = cufftCreate(plan);
  return status ? status : finish(plan, cufftMakePlan1d(*plan, n, type, batch, NULL));
}
API int cufftPlan2d(int *plan, int x, int y, int type) {
  int status = cufftCreate(plan);
  return status ? status : finish(plan, cufftMakePlan2d(*plan, x, y, type, NULL));
}
API int cufftPlan3d(int *plan, int x, int y, int z, int type) {
  int status = cufftCreate(plan);
  return status ? status : finish(plan, cufftMakePlan3d(*plan, x, y, z, type, NULL));
}
API int cufftPlanMany(int *plan, int dims, int *n, int *in_embed, int in_stride, int in_distance,
                      int *out_embed, int out_stride, int out_distance, int type, int batch) {
  int status = cufftCreate(plan);
  if (status) return status;
  return finish(plan, cufftMakePlanMany(*plan, dims, n, in_embed, in_stride, in_distance, out_embed,
                                        out_stride, out_distance, type, batch, NULL));
}

API int cufftSetStream(int plan, void *stream) {
  pthread_mutex_lock(&lock);
  Plan *p = plan_of(plan);
  if (p) p->stream = stream;
  pthread_mutex_unlock(&lock);
  return p ? OK : NO_PLAN;
}
API int cufftSetWorkArea(int plan, void *area) {
  (void)area;
  return plan_of(plan) ? OK : NO_PLAN;
}
API int cufftSetAutoAllocation(int plan, int allocate) {
  (void)allocate;
  return plan_of(plan) ? OK : NO_PLAN;
}
API int cufftGetSize(int plan, size_t *bytes) {
  if (!plan_of(plan)) return NO_PLAN;
  if (!bytes) return BAD_VALUE;
  *bytes = 0;
  return OK;
}
API int cufftGetVersion(int *version) {
  if (!version) return BAD_VALUE;
  *version = VERSION;
  return OK;
}
API int cufftGetProperty(int which, int *value) {
  if (!value || which < 0 || which > 2) return BAD_VALUE;
  *value = which ? 0 : VERSION / 1000;
  return OK;
}

#define MISSING(entry)                                                                                       \
  API int entry(void) {                                                                                      \
    static char warned;                                                                                      \
    __cudaSolLibraryMissing(#entry, &warned);                                                                \
    return NOT_SUPPORTED;                                                                                    \
  }
#include "fft/fft_missing.def"
