// Prints numbers of cuRAND's generators: tests/data/curand.txt is what NVIDIA's library prints for those on the host (it needs no
// GPU for this), and Sol's has to print the same.
//   cc -I$CUDA/include tests/library/rand_values.c -L$CUDA/lib -lcurand -lcudart && LD_LIBRARY_PATH=$CUDA/lib ./a.out
// With an argument: of those on the device.
#include <cuda_runtime_api.h>
#include <curand.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 400000, MOST = 79 * 65536, SHOWN = 4 };
static uint64_t out[MOST / 2];
static void *on_device; // as large; NULL: generators on the host

typedef enum What { BITS, UNIFORM, UNIFORM64, POISSON, WIDE, NORMAL, NORMAL64, LOG_NORMAL } What;
static const char *const names[] = {"bits",      "uniform", "uniform double", "Poisson",
                                    "long long", "normal",  "normal double",  "log-normal"};

typedef struct Draw {
  int type, order;
  uint64_t seed, offset;
  What what;
  size_t step;
  double mean;         // of Poisson's
  unsigned dimensions; // of a quasirandom generator
  size_t count;        // 0: COUNT
} Draw;

static int wide(What what) {
  return what == UNIFORM64 || what == NORMAL64 || what == WIDE;
}

static curandStatus_t make(curandGenerator_t g, const Draw *d, size_t from, size_t n) {
  uint8_t *base = on_device ? on_device : (uint8_t *)out;
  void *to = base + from * (wide(d->what) ? 8 : 4);
  switch (d->what) {
  case BITS: return curandGenerate(g, to, n);
  case UNIFORM: return curandGenerateUniform(g, to, n);
  case UNIFORM64: return curandGenerateUniformDouble(g, to, n);
  case POISSON: return curandGeneratePoisson(g, to, n, d->mean);
  case WIDE: return curandGenerateLongLong(g, to, n);
  case NORMAL: return curandGenerateNormal(g, to, n, 0, 1);
  case LOG_NORMAL: return curandGenerateLogNormal(g, to, n, 0.5f, 0.25f);
  default: return curandGenerateNormalDouble(g, to, n, 0, 1);
  }
}

// Normal numbers by four digits and no hash: the last bits of sines are a library's own.
static void show(What what, size_t n) {
  uint64_t hash = 14695981039346656037u;
  size_t bytes = wide(what) ? 8 : 4;
  if (what < NORMAL)
    for (size_t i = 0; i < n * bytes; i++) hash = (hash ^ ((const uint8_t *)out)[i]) * 1099511628211u;
  const size_t places[SHOWN] = {0, 5, 4097, n - 1};
  for (int k = 0; k < SHOWN; k++) {
    float f;
    double d;
    uint32_t u;
    uint64_t v;
    memcpy(&f, (const uint8_t *)out + places[k] * bytes, 4), memcpy(&u, &f, 4);
    memcpy(&d, (const uint8_t *)out + places[k] * bytes, bytes), memcpy(&v, &d, 8);
    if (what == BITS) printf(" %08x", u);
    if (what == POISSON) printf(" %u", u);
    if (what == WIDE) printf(" %016llx", (unsigned long long)v);
    if (what == UNIFORM || what == UNIFORM64) printf(" %.9g", bytes == 8 ? d : (double)f);
    if (what >= NORMAL) printf(" %.4f", bytes == 8 ? d : (double)f);
  }
  if (what < NORMAL) printf(" hash %016llx", (unsigned long long)hash);
  puts("");
}

static curandStatus_t make_all(curandGenerator_t g, const Draw *d) {
  curandStatus_t status = CURAND_STATUS_SUCCESS;
  if (d->order) status = curandSetGeneratorOrdering(g, (curandOrdering_t)d->order);
  if (!status && !d->dimensions) status = curandSetPseudoRandomGeneratorSeed(g, d->seed);
  if (!status && d->dimensions) status = curandSetQuasiRandomGeneratorDimensions(g, d->dimensions);
  if (!status && d->offset) status = curandSetGeneratorOffset(g, d->offset);
  for (size_t at = 0; at < d->count && !status; at += d->step)
    status = make(g, d, at, at + d->step < d->count ? d->step : d->count - at);
  return status;
}

static void draw(Draw d) {
  curandGenerator_t g;
  if (!d.count) d.count = COUNT;
  printf("type %d order %d", d.type, d.order);
  if (d.dimensions)
    printf(" dimensions %u", d.dimensions);
  else
    printf(" seed %llx", (unsigned long long)d.seed);
  printf(" offset %llu %s", (unsigned long long)d.offset, names[d.what]);
  if (d.mean > 0) printf(" %g", d.mean);
  printf(" by %zu:", d.step);
  curandStatus_t status = on_device ? curandCreateGenerator(&g, (curandRngType_t)d.type)
                                    : curandCreateGeneratorHost(&g, (curandRngType_t)d.type);
  if (!status) status = make_all(g, &d);
  if (!status && on_device) cudaMemcpy(out, on_device, sizeof out, cudaMemcpyDeviceToHost);
  if (status)
    printf(" status %d\n", (int)status);
  else
    show(d.what, d.count);
  curandDestroyGenerator(g);
}

static void draw_pseudo(int type) {
  for (What what = BITS; what <= LOG_NORMAL; what++)
    if (what != POISSON) draw((Draw){type, 0, 1234567 * 0x100000001ull, 0, what, COUNT, 0, 0, 0});
  draw((Draw){type, 0, 0, 0, BITS, COUNT, 0, 0, 0});
  draw((Draw){type, 0, 42, 0, BITS, 1000, 0, 0, 0});
  draw((Draw){type, 0, 42, 0, UNIFORM, 3334, 0, 0, 0});
  for (int order = 100; order <= 104; order++) draw((Draw){type, order, 42, 0, BITS, COUNT, 0, 0, 0});
  draw((Draw){type, 0, 42, 12345, BITS, COUNT, 0, 0, 0});
}

// Fewer: NVIDIA's library takes a minute to start each. One past the turn at which all words are made anew.
static void draw_mt19937(void) {
  const int type = 142;
  for (What what = UNIFORM; what <= LOG_NORMAL; what++)
    if (what != POISSON) draw((Draw){type, 0, 1234567 * 0x100000001ull, 0, what, 3334, 0, 0, 10002});
  draw((Draw){type, 101, 42, 0, BITS, MOST, 0, 0, MOST});
  for (int order = 100; order <= 104; order++)
    if (order != 101) draw((Draw){type, order, 42, 0, BITS, 10000, 0, 0, 10000});
  draw((Draw){type, 0, 42, 12345, BITS, 10000, 0, 0, 10000});
}

static void draw_quasi(int type) {
  for (What what = BITS; what <= LOG_NORMAL; what++)
    draw((Draw){type, 0, 0, 0, what, COUNT, what == POISSON ? 20 : 0, 100, 0});
  for (What what = UNIFORM; what <= UNIFORM64; what++)
    draw((Draw){type, 0, 0, 1000, what, COUNT / 4, 0, 5, 0});
  draw((Draw){type, 0, 0, 0, UNIFORM, COUNT, 0, 20000, 0});
  draw((Draw){type, 0, 0, 0, UNIFORM, COUNT, 0, 20001, 0});
  draw((Draw){type, 0, 0, 0, UNIFORM, COUNT, 0, 7, 0});   // no multiple
  draw((Draw){type, 0, 42, 0, UNIFORM, COUNT, 0, 0});     // has no seed
  draw((Draw){type, 101, 0, 0, UNIFORM, COUNT, 0, 1, 0}); // nor such an order
}

int main(int argc, char **argv) {
  static const int pseudo[] = {101, 121, 141, 161};
  (void)argv;
  if (argc > 1 && cudaMalloc(&on_device, sizeof out)) return puts("no memory on the device"), 1;
  for (size_t t = 0; t < sizeof pseudo / sizeof *pseudo; t++) draw_pseudo(pseudo[t]);
  if (!getenv("BRIEF")) draw_mt19937(); // its lanes take minutes to start under a sanitizer
  for (int type = 201; type <= 204; type++) draw_quasi(type);
  return 0;
}
