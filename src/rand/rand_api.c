// cuRAND's entry points.
#include <math.h>
#include <stdlib.h>

#include "rand/rand.h"
#include "shim/shim_library.h"

#define API __attribute__((visibility("default")))
enum {
  OK = 0,
  NO_GENERATOR = 101,
  NO_ROOM = 102,
  WRONG_TYPE = 103,
  OUT_OF_RANGE = 104,
  NOT_MULTIPLE = 105,
  FAILED = 201
};
enum { VERSION = 10400, MAJOR = 10, MINOR = 4 };
#define MARK UINT64_C(0x534f4c52414e4431)

typedef struct Generator {
  uint64_t mark;
  void *stream;
  bool on_host; // results go to the host's memory
  uint64_t offset;
  RandState state;
} Generator;

typedef enum Distribution {
  BITS,
  UNIFORM,
  UNIFORM64,
  NORMAL,
  NORMAL64,
  LOG_NORMAL,
  LOG_NORMAL64,
  POISSON,
  WIDE // 64 bits
} Distribution;

typedef struct Request {
  const char *name;
  Generator *generator;
  void *to;
  size_t count;
  Distribution what;
  double mean, deviation;
} Request;

// ---- making numbers ----

static size_t bytes_of(Distribution what) {
  return what == UNIFORM64 || what == NORMAL64 || what == LOG_NORMAL64 || what == WIDE ? 8 : 4;
}

// The least k at which the distribution function passes u; for large means the normal distribution, rounded.
static uint32_t poisson(RandState *s, uint32_t lane, double mean) {
  if (mean > 500) {
    double pair[2];
    rand_normal_double(s, lane, pair);
    double x = floor(mean + sqrt(mean) * pair[0] + 0.5);
    return x > 0 ? (uint32_t)x : 0;
  }
  double u = rand_uniform_double(s, lane), term = exp(-mean), sum = term;
  uint32_t k = 0;
  while (sum < u && term > 0) sum += term *= mean / ++k;
  return k;
}

static void make_pair(const Request *r, size_t i) {
  RandState *s = &r->generator->state;
  uint32_t lane = rand_take_turn(s);
  bool wide = r->what == NORMAL64 || r->what == LOG_NORMAL64,
       logs = r->what == LOG_NORMAL || r->what == LOG_NORMAL64;
  float f[2] = {0};
  double d[2] = {0};
  if (wide)
    rand_normal_double(s, lane, d);
  else
    rand_normal(s, lane, f);
  for (size_t k = 0; k < 2 && i + k < r->count; k++) {
    double x = d[k] * r->deviation + r->mean;
    float y = f[k] * (float)r->deviation + (float)r->mean;
    if (wide)
      ((double *)r->to)[i + k] = logs ? exp(x) : x;
    else
      ((float *)r->to)[i + k] = logs ? expf(y) : y;
  }
}

static void make_one(const Request *r, size_t i) {
  RandState *s = &r->generator->state;
  uint32_t lane = rand_take_turn(s);
  switch (r->what) {
  case BITS: ((uint32_t *)r->to)[i] = rand_bits(s, lane); break;
  case UNIFORM: ((float *)r->to)[i] = rand_uniform(s, lane); break;
  case UNIFORM64: ((double *)r->to)[i] = rand_uniform_double(s, lane); break;
  default: ((uint32_t *)r->to)[i] = poisson(s, lane, r->mean);
  }
}

static void make_of_bits(const Request *r, size_t i, uint64_t bits) {
  bool wide = rand_is_wide(r->generator->state.kind);
  float *f = (float *)r->to + i;
  double *d = (double *)r->to + (bytes_of(r->what) == 8 ? i : 0);
  switch (r->what) {
  case BITS: ((uint32_t *)r->to)[i] = (uint32_t)bits; break;
  case WIDE: ((uint64_t *)r->to)[i] = bits; break;
  case UNIFORM: *f = rand_uniform_of(bits, wide); break;
  case UNIFORM64: *d = rand_uniform_double_of(bits, wide); break;
  case POISSON: ((uint32_t *)r->to)[i] = rand_poisson_of(bits, wide, r->mean); break;
  case NORMAL:
  case LOG_NORMAL:
    *f = rand_normal_of(bits, wide) * (float)r->deviation + (float)r->mean;
    if (r->what == LOG_NORMAL) *f = expf(*f);
    break;
  default:
    *d = rand_normal_double_of(bits, wide) * r->deviation + r->mean;
    if (r->what == LOG_NORMAL64) *d = exp(*d);
  }
}

static void make_quasi(const Request *r) {
  RandState *s = &r->generator->state;
  size_t each = r->count / s->dimensions, to = 0;
  for (uint32_t dimension = 0; dimension < s->dimensions; dimension++) {
    uint64_t x = rand_sobol_point(s, dimension, s->counter);
    for (size_t i = 0; i < each; i++) {
      make_of_bits(r, to++, x);
      x = rand_sobol_next(s, dimension, s->counter + i, x);
    }
  }
  s->counter += each;
}

static bool make(const Request *r) {
  Generator *g = r->generator;
  bool pairs = r->what >= NORMAL && r->what <= LOG_NORMAL64;
  if (!g->state.ready && !rand_start(&g->state, g->offset)) return false;
  if (rand_is_sobol(g->state.kind)) {
    make_quasi(r);
    return true;
  }
  if (g->state.kind == RAND_MT19937) rand_mt19937_lanes(&g->state, r->count);
  for (size_t i = 0; i < r->count; i += pairs ? 2 : 1) (pairs ? make_pair : make_one)(r, i);
  return true;
}

static bool work(void *arguments, ShimLibraryCost *cost) {
  Request r = *(Request *)arguments;
  size_t bytes = r.count * bytes_of(r.what);
  const void *at = r.to;
  r.to = __cudaSolLibraryMemory(r.name, at, bytes);
  if (!r.to || !make(&r)) return false;
  *cost = (ShimLibraryCost){.written = (double)bytes, .dtype = SOL_FP32, .uses = {{at, bytes, true}}};
  return true;
}

static bool is_generator(const Generator *g) {
  return g && g->mark == MARK;
}

static int generate(Request r) {
  if (!is_generator(r.generator)) return NO_GENERATOR;
  if (!r.to) return OUT_OF_RANGE;
  RandKind kind = r.generator->state.kind;
  bool quasi = rand_is_sobol(kind), bits = r.what == BITS || r.what == WIDE;
  if (bits && (r.what == WIDE) != rand_is_wide(kind)) return WRONG_TYPE;
  if (quasi && r.count % r.generator->state.dimensions) return NOT_MULTIPLE;
  if (!quasi && r.what >= NORMAL && r.what <= LOG_NORMAL64 && r.count % 2) return NOT_MULTIPLE;
  if (!r.count) return OK;
  if (r.generator->on_host) return make(&r) ? OK : NO_ROOM;
  switch (__cudaSolLibraryCall(r.name, r.generator->stream, work, &r, sizeof r)) {
  case SHIM_LIBRARY_DONE: return OK;
  case SHIM_LIBRARY_NO_MEMORY: return NO_ROOM;
  default: return FAILED;
  }
}

// ---- generators ----

static bool is_pseudo(int type) {
  return type == RAND_XORWOW || type == RAND_MRG32K3A || type == RAND_PHILOX || type == RAND_MT19937 ||
         (type == RAND_MTGP32 && rand_mtgp32_known());
}

static int create(Generator **out, int type, bool on_host) {
  enum { ANY_PSEUDO = 100, ANY_QUASI = 200 };
  static char warned;
  if (!out) return OUT_OF_RANGE;
  if (type == ANY_PSEUDO) type = RAND_XORWOW;
  if (type == ANY_QUASI) type = RAND_SOBOL32;
  bool quasi = rand_is_sobol((RandKind)type);
  if (quasi && !rand_directions((RandKind)type)) {
    __cudaSolLibraryMissing(
        "curandCreateGenerator of Sobol's sequences, whose direction vectors NVIDIA's libcurand.so.10 "
        "holds (looked for in LD_LIBRARY_PATH, CUDA_HOME and /usr/local/cuda)",
        &warned);
    return WRONG_TYPE;
  }
  if (!quasi && !is_pseudo(type)) {
    __cudaSolLibraryMissing("curandCreateGenerator of this type", &warned);
    return WRONG_TYPE;
  }
  Generator *g = calloc(1, sizeof *g);
  if (!g) return NO_ROOM;
  g->mark = MARK, g->on_host = on_host, g->state.kind = (RandKind)type, g->state.dimensions = 1;
  *out = g;
  return OK;
}

API int curandCreateGenerator(Generator **out, int type) {
  return create(out, type, false);
}
API int curandCreateGeneratorHost(Generator **out, int type) {
  return create(out, type, true);
}
API int curandDestroyGenerator(Generator *g) {
  if (!is_generator(g)) return NO_GENERATOR;
  g->mark = 0;
  rand_free(&g->state);
  free(g);
  return OK;
}
API int curandSetStream(Generator *g, void *stream) {
  if (!is_generator(g)) return NO_GENERATOR;
  g->stream = stream;
  return OK;
}
API int curandSetPseudoRandomGeneratorSeed(Generator *g, unsigned long long seed) {
  if (!is_generator(g)) return NO_GENERATOR;
  if (rand_is_sobol(g->state.kind)) return WRONG_TYPE;
  g->state.seed = seed, g->state.ready = false;
  return OK;
}
API int curandSetGeneratorOffset(Generator *g, unsigned long long offset) {
  if (!is_generator(g)) return NO_GENERATOR;
  if (g->state.kind == RAND_MTGP32 || g->state.kind == RAND_MT19937)
    return WRONG_TYPE; // they cannot skip ahead
  g->offset = offset, g->state.ready = false;
  return OK;
}
API int curandSetQuasiRandomGeneratorDimensions(Generator *g, unsigned dimensions) {
  enum { MOST = 20000 };
  if (!is_generator(g)) return NO_GENERATOR;
  if (!rand_is_sobol(g->state.kind)) return WRONG_TYPE;
  if (!dimensions || dimensions > MOST) return OUT_OF_RANGE;
  g->state.dimensions = dimensions, g->state.ready = false;
  return OK;
}
// Of pseudorandom generators: best, default, seeded (which XORWOW alone has), legacy, dynamic
// (which those on the host have not, and which is here as the default).
API int curandSetGeneratorOrdering(Generator *g, int order) {
  enum { BEST = 100, DEFAULT, SEEDED, LEGACY, DYNAMIC, QUASI = 201 };
  if (!is_generator(g)) return NO_GENERATOR;
  if (rand_is_sobol(g->state.kind)) return order == QUASI ? OK : OUT_OF_RANGE;
  if (order < BEST || order > DYNAMIC || (order == DYNAMIC && g->on_host)) return OUT_OF_RANGE;
  if (order == SEEDED && g->state.kind != RAND_XORWOW) return OUT_OF_RANGE;
  bool unknown = order == DYNAMIC || (order == BEST && g->on_host);
  if (g->state.kind == RAND_MT19937 && unknown) return OUT_OF_RANGE;
  g->state.legacy = order == LEGACY, g->state.seeded = order == SEEDED;
  g->state.ready = false;
  return OK;
}
API int curandGenerateSeeds(Generator *g) {
  if (!is_generator(g)) return NO_GENERATOR;
  return g->state.ready || rand_start(&g->state, g->offset) ? OK : NO_ROOM;
}
API int curandGetVersion(int *version) {
  if (!version) return OUT_OF_RANGE;
  *version = VERSION;
  return OK;
}
API int curandGetProperty(int which, int *value) {
  if (!value || which < 0 || which > 2) return OUT_OF_RANGE;
  *value = which == 0 ? MAJOR : which == 1 ? MINOR : 0;
  return OK;
}

API int curandGenerate(Generator *g, unsigned *to, size_t n) {
  return generate((Request){"curandGenerate", g, to, n, BITS, 0, 0});
}
API int curandGenerateLongLong(Generator *g, unsigned long long *to, size_t n) {
  return generate((Request){"curandGenerateLongLong", g, to, n, WIDE, 0, 0});
}
API int curandGenerateUniform(Generator *g, float *to, size_t n) {
  return generate((Request){"curandGenerateUniform", g, to, n, UNIFORM, 0, 0});
}
API int curandGenerateUniformDouble(Generator *g, double *to, size_t n) {
  return generate((Request){"curandGenerateUniformDouble", g, to, n, UNIFORM64, 0, 0});
}
API int curandGenerateNormal(Generator *g, float *to, size_t n, float mean, float deviation) {
  return generate((Request){"curandGenerateNormal", g, to, n, NORMAL, (double)mean, (double)deviation});
}
API int curandGenerateNormalDouble(Generator *g, double *to, size_t n, double mean, double deviation) {
  return generate((Request){"curandGenerateNormalDouble", g, to, n, NORMAL64, mean, deviation});
}
API int curandGenerateLogNormal(Generator *g, float *to, size_t n, float mean, float deviation) {
  return generate(
      (Request){"curandGenerateLogNormal", g, to, n, LOG_NORMAL, (double)mean, (double)deviation});
}
API int curandGenerateLogNormalDouble(Generator *g, double *to, size_t n, double mean, double deviation) {
  return generate((Request){"curandGenerateLogNormalDouble", g, to, n, LOG_NORMAL64, mean, deviation});
}
API int curandGeneratePoisson(Generator *g, unsigned *to, size_t n, double mean) {
  if (!(mean > 0 && mean <= 4e9)) return OUT_OF_RANGE;
  return generate((Request){"curandGeneratePoisson", g, to, n, POISSON, mean, 0});
}

// ---- direction vectors, which are NVIDIA's library's ----

static int give(const char *entry, const void **out, const void *table, char *warned) {
  if (!out) return OUT_OF_RANGE;
  *out = table;
  if (!table) __cudaSolLibraryMissing(entry, warned);
  return table ? OK : FAILED;
}
#define DIRECTIONS(bits, first)                                                                              \
  API int curandGetDirectionVectors##bits(const void **out, int set) {                                       \
    static char warned;                                                                                      \
    if (set != (first) && set != (first) + 1) return OUT_OF_RANGE;                                           \
    return give("curandGetDirectionVectors" #bits, out,                                                      \
                rand_directions(set == (first) ? RAND_SOBOL##bits : RAND_SCRAMBLED##bits), &warned);         \
  }                                                                                                          \
  API int curandGetScrambleConstants##bits(const void **out) {                                               \
    static char warned;                                                                                      \
    return give("curandGetScrambleConstants" #bits, out, rand_constants(RAND_SCRAMBLED##bits), &warned);     \
  }
DIRECTIONS(32, 101)
DIRECTIONS(64, 103)

// ---- what is not here ----

#define MISSING(entry)                                                                                       \
  API int entry(void) {                                                                                      \
    static char warned;                                                                                      \
    __cudaSolLibraryMissing(#entry, &warned);                                                                \
    return WRONG_TYPE;                                                                                       \
  }
MISSING(curandGeneratePoissonMethod)
MISSING(curandCreatePoissonDistribution)
MISSING(curandDestroyDistribution)
