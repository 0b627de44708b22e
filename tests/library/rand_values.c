// Prints numbers of cuRAND's generators on the host: tests/data/curand.txt is what NVIDIA's library prints (it needs no GPU for
// this), and Sol's has to print the same.
//   cc -I$CUDA/include tests/library/rand_values.c -L$CUDA/lib -lcurand && LD_LIBRARY_PATH=$CUDA/lib ./a.out
#include <curand.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 400000, SHOWN = 4 };
static uint64_t out[COUNT];

typedef enum What { BITS, UNIFORM, UNIFORM64, NORMAL, NORMAL64 } What;
static const char *const names[] = {"bits", "uniform", "uniform double", "normal", "normal double"};

static curandStatus_t make(curandGenerator_t g, What what, size_t from, size_t n) {
  uint32_t *narrow = (uint32_t *)(void *)out + from;
  switch (what) {
  case BITS: return curandGenerate(g, narrow, n);
  case UNIFORM: return curandGenerateUniform(g, (float *)(void *)narrow, n);
  case UNIFORM64: return curandGenerateUniformDouble(g, (double *)(void *)(out + from), n);
  case NORMAL: return curandGenerateNormal(g, (float *)(void *)narrow, n, 0, 1);
  default: return curandGenerateNormalDouble(g, (double *)(void *)(out + from), n, 0, 1);
  }
}

// Normal numbers by four digits and no hash: the last bits of sines are a library's own.
static void show(What what, size_t n) {
  uint64_t hash = 14695981039346656037u;
  size_t bytes = what == UNIFORM64 || what == NORMAL64 ? 8 : 4;
  if (what < NORMAL)
    for (size_t i = 0; i < n * bytes; i++) hash = (hash ^ ((const uint8_t *)out)[i]) * 1099511628211u;
  const size_t places[SHOWN] = {0, 5, 4097, n - 1};
  for (int k = 0; k < SHOWN; k++) {
    size_t i = places[k];
    float f;
    double d;
    memcpy(&f, (const uint8_t *)out + i * 4, 4);
    memcpy(&d, (const uint8_t *)out + (bytes == 8 ? i * 8 : 0), 8);
    if (what == BITS)
      printf(" %08x", ((const uint32_t *)(const void *)out)[i]);
    else if (what == UNIFORM || what == UNIFORM64)
      printf(" %.9g", bytes == 8 ? d : (double)f);
    else
      printf(" %.4f", bytes == 8 ? d : (double)f);
  }
  if (what < NORMAL) printf(" hash %016llx", (unsigned long long)hash);
  puts("");
}

static void draw(int type, int order, uint64_t seed, uint64_t offset, What what, size_t step) {
  curandGenerator_t g;
  printf("type %d order %d seed %llx offset %llu %s by %zu:", type, order, (unsigned long long)seed,
         (unsigned long long)offset, names[what], step);
  curandStatus_t status = curandCreateGeneratorHost(&g, (curandRngType_t)type);
  if (!status && order) status = curandSetGeneratorOrdering(g, (curandOrdering_t)order);
  if (!status) status = curandSetPseudoRandomGeneratorSeed(g, seed);
  if (!status && offset) status = curandSetGeneratorOffset(g, offset);
  for (size_t at = 0; at < COUNT && !status; at += step)
    status = make(g, what, at, at + step < COUNT ? step : COUNT - at);
  if (status)
    printf(" status %d\n", (int)status);
  else
    show(what, COUNT);
  curandDestroyGenerator(g);
}

int main(void) {
  static const int types[] = {101, 121, 141, 161};
  for (int t = 0; t < 4; t++) {
    for (What what = BITS; what <= NORMAL64; what++)
      draw(types[t], 0, 1234567 * 0x100000001ull, 0, what, COUNT);
    draw(types[t], 0, 0, 0, BITS, COUNT);
    draw(types[t], 0, 42, 0, BITS, 1000);
    draw(types[t], 0, 42, 0, UNIFORM, 3334);
    draw(types[t], 103, 42, 0, BITS, COUNT); // legacy
    if (types[t] != 101)
      draw(types[t], 102, 42, 0, UNIFORM, COUNT); // seeded: how XORWOW's lanes are is not documented
    draw(types[t], 104, 42, 0, BITS, COUNT);      // dynamic
    draw(types[t], 0, 42, 12345, BITS, COUNT);
  }
  return 0;
}
