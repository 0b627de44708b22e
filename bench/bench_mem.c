// Nanoseconds per warp-level request through the memory model: the coalescer alone, with L1 and its log, with
// L2; and shared-memory banks. One thread's CPU time, the least of several runs. Usage: bench_mem [part of a
// name]
#define _POSIX_C_SOURCE 200809L // clock_gettime
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/driver.h"
#include "mem/banks.h"
#include "mem/l1.h"
#include "mem/l2.h"

enum { WARPS = 4096, REPEATS = 25, LOG = 8192 };

typedef struct Pattern {
  const char *name;
  uint32_t width;
  uint64_t stride; // bytes from lane to lane; 0: all lanes at one address
  int random;      // lanes anywhere in 64 MiB
  SolMemOp op;
} Pattern;

static const Pattern patterns[] = {
    {"4-byte consecutive load", 4, 4, 0, SOL_MEM_LOAD},
    {"4-byte consecutive store", 4, 4, 0, SOL_MEM_STORE},
    {"8-byte consecutive load", 8, 8, 0, SOL_MEM_LOAD},
    {"16-byte consecutive load", 16, 16, 0, SOL_MEM_LOAD},
    {"16-byte consecutive store", 16, 16, 0, SOL_MEM_STORE},
    {"4-byte broadcast load", 4, 0, 0, SOL_MEM_LOAD},
    {"4-byte stride-2 load", 4, 8, 0, SOL_MEM_LOAD},
    {"4-byte stride-2 store", 4, 8, 0, SOL_MEM_STORE},
    {"4-byte stride-32 load", 4, 128, 0, SOL_MEM_LOAD},
    {"4-byte stride-32 store", 4, 128, 0, SOL_MEM_STORE},
    {"4-byte random load", 4, 0, 1, SOL_MEM_LOAD},
    {"4-byte random atomic", 4, 0, 1, SOL_MEM_ATOMIC},
};

static uint64_t addr[WARPS][32];
static uint64_t draw_state = 1;

static uint64_t draw(void) {
  draw_state = draw_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return draw_state >> 33;
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void keep_least(double *least, double ns) {
  if (*least == 0 || ns < *least) *least = ns;
}

static void *must_alloc(size_t n) {
  void *p = malloc(n);
  if (!p) fprintf(stderr, "out of memory\n"), exit(1);
  return p;
}

static void make_addresses(const Pattern *p) {
  uint64_t span = p->stride ? 32 * p->stride : 128;
  for (uint64_t w = 0; w < WARPS; w++)
    for (uint64_t i = 0; i < 32; i++)
      addr[w][i] = UINT64_C(0x700000000000) +
                   (p->random ? draw() % (64u << 20) / p->width * p->width : w * span + i * p->stride);
}

static double coalescer(const Pattern *p) {
  SolCoalesced c;
  uint64_t sum = 0;
  double start = now_ns();
  for (int w = 0; w < WARPS; w++) sol_coalesce(addr[w], UINT32_MAX, p->width, &c), sum += c.sectors;
  double ns = (now_ns() - start) / WARPS;
  return sum ? ns : 0;
}

static double with_l1(const Pattern *p, SolL1 *l1, SolLog *log, double *l2_ns, SolL2 *l2) {
  static SolL1Counts l1_counts;
  static SolL2Counts l2_counts[2];
  double spent = 0, drained = 0;
  for (int w = 0; w < WARPS;) {
    double start = now_ns();
    sol_log_empty(log);
    for (; w < WARPS && sol_log_has_room(log); w++) {
      SolCoalesced c;
      sol_coalesce(addr[w], UINT32_MAX, p->width, &c);
      sol_l1_access(l1, &c, p->op, 0, &l1_counts, log);
    }
    double middle = now_ns();
    sol_log_sort(log);
    for (uint32_t s = 0; s < SOL_SHARDS; s++) sol_l2_drain(l2, s, log, 1, l2_counts, 1);
    spent += middle - start;
    drained += now_ns() - middle;
  }
  *l2_ns = drained / WARPS;
  return spent / WARPS;
}

static void bench_global(const char *only) {
  const SolDevice *h200 = NULL;
  if (sol_device_find("h200", &h200, NULL)) exit(1);
  SolL2Config config = sol_driver_machine(h200).l2;
  SolL1 l1;
  SolL2 *l2 = must_alloc(sizeof *l2);
  SolLog log;
  size_t l1_size = sol_l1_bytes(248u << 10), l2_size = sol_l2_bytes(&config);
  void *memory[3] = {must_alloc(l1_size), must_alloc(l2_size), must_alloc(sol_log_bytes(LOG))};
  sol_log_init(&log, LOG, memory[2]);
  if (sol_l2_init(l2, &config, memory[1], l2_size, NULL)) exit(1);
  printf("%-28s %10s %10s %10s   ns per request\n", "global memory", "coalescer", "+ L1, log", "+ L2");
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    const Pattern *p = &patterns[i];
    double alone = 0, l1_ns = 0, l2_ns = 0;
    if (only && !strstr(p->name, only)) continue;
    make_addresses(p);
    for (int r = 0; r < REPEATS; r++) {
      if (sol_l1_init(&l1, 248u << 10, memory[0], l1_size, NULL)) exit(1);
      double drained;
      keep_least(&alone, coalescer(p));
      keep_least(&l1_ns, with_l1(p, &l1, &log, &drained, l2));
      keep_least(&l2_ns, drained);
    }
    printf("%-28s %10.1f %10.1f %10.1f\n", p->name, alone, l1_ns, l1_ns + l2_ns);
  }
  for (int i = 0; i < 3; i++) free(memory[i]);
  free(l2);
}

static void bench_shared(const char *only) {
  static const struct {
    const char *name;
    uint32_t width, stride; // stride 0: a permutation of the 32 banks
    SolSharedOp op;
  } cases[] = {{"4-byte conflict-free load", 4, 4, SOL_SHARED_LOAD},
               {"16-byte conflict-free load", 16, 16, SOL_SHARED_LOAD},
               {"4-byte permuted load", 4, 0, SOL_SHARED_LOAD},
               {"4-byte padded column load", 4, 132, SOL_SHARED_LOAD},
               {"4-byte 2-way load", 4, 8, SOL_SHARED_LOAD},
               {"4-byte 32-way store", 4, 128, SOL_SHARED_STORE},
               {"8-byte padded column load", 8, 136, SOL_SHARED_LOAD},
               {"4-byte atomic", 4, 4, SOL_SHARED_ATOMIC}};
  printf("%-28s %10s\n", "shared memory", "banks");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double least = 0;
    uint64_t sum = 0;
    if (only && !strstr(cases[i].name, only)) continue;
    for (uint64_t w = 0; w < WARPS; w++)
      for (uint64_t k = 0; k < 32; k++)
        addr[w][k] =
            cases[i].stride ? w % 64 * 4 * cases[i].width + k * cases[i].stride : (k * 11 + w) % 32 * 4;
    for (int r = 0; r < REPEATS; r++) {
      double start = now_ns();
      for (int w = 0; w < WARPS; w++)
        sum += sol_banks(addr[w], UINT32_MAX, cases[i].width, cases[i].op).wavefronts;
      keep_least(&least, (now_ns() - start) / WARPS);
    }
    printf("%-28s %10.1f   (%.1f passes)\n", cases[i].name, least, (double)sum / WARPS / REPEATS);
  }
}

int main(int argc, char **argv) {
  const char *only = argc > 1 ? argv[1] : NULL;
  bench_global(only);
  bench_shared(only);
  return 0;
}
