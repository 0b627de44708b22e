// How fast the emulator is, memory counted: thread instructions and warp instructions a second, on one thread
// and on as many as there are cores. bench_emu [FILE.ptx] (bench/ptx/emu.ptx, made from emu.cu in the same folder)
//
// `one` is how many times the speed of one thread that is. `machine` is the same for as many emulators of one
// thread each, side by side and sharing nothing: what the cores, their caches and memory give at most.
// `observed` is how many times as long one thread takes with SolEmuLaunch.observe, as `sol audit` does; `uncounted` how
// many times as fast as that it is with no_counts, as launches before `sol audit --from` are. Last, launches of one block.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "emu/emu.h"

typedef struct Case {
  const char *kernel, *what;
  uint32_t grid[3], block[3];
  uint64_t floats[3]; // sizes of its buffers
  int buffers, n;
} Case;

static const Case cases[] = {
    {"copy_vector", "vectorised copy, 64 MiB", {2048, 1, 1}, {256, 1, 1}, {8 << 20, 8 << 20}, 2, 2 << 20},
    {"vector_add",
     "vector add, 8 Mi floats",
     {32768, 1, 1},
     {256, 1, 1},
     {8 << 20, 8 << 20, 8 << 20},
     3,
     8 << 20},
    {"row_sum", "row reduction, 4096 x 4096", {4096, 1, 1}, {256, 1, 1}, {16 << 20, 4096}, 2, 4096},
    {"transpose", "tiled transpose, 4096 x 4096", {128, 128, 1}, {32, 8, 1}, {16 << 20, 16 << 20}, 2, 4096},
    {"product",
     "tiled product, 512 x 512 x 512",
     {32, 32, 1},
     {16, 16, 1},
     {1 << 18, 1 << 18, 1 << 18},
     3,
     512}};

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *text = malloc((size_t)size + 1);
  *length = text ? fread(text, 1, (size_t)size, file) : 0;
  fclose(file);
  return text;
}

enum { LAUNCHES = 5, MOST_THREADS = 64 };

typedef struct Rig { // an emulator with a case's buffers
  SolEmu *emu;
  SolEmuModule *module;
  SolEmuLaunch launch;
  unsigned char packed[32];
  SolEmuResult result;
  SolError err;
} Rig;

typedef enum Mode { UNCOUNTED, COUNTED, OBSERVED } Mode;

static bool open_rig(Rig *r, const Case *c, SolPtxSource source, int workers, Mode mode) {
  uint64_t at[3] = {0};
  *r = (Rig){0};
  if (sol_emu_create(&(SolEmuMachine){.workers = workers}, &r->emu, &r->err) ||
      sol_emu_load(r->emu, &source, 1, &r->module, &r->err))
    return false;
  for (int k = 0; k < c->buffers; k++)
    if (sol_emu_alloc(r->emu, c->floats[k] * 4, "buffer", &at[k], &r->err)) return false;
  memcpy(r->packed, at, 8 * (size_t)c->buffers);
  memcpy(r->packed + 8 * c->buffers, &c->n, 4);
  r->launch = (SolEmuLaunch){.kernel = sol_emu_kernel(r->module, c->kernel), .params = r->packed};
  r->launch.observe = mode == OBSERVED;
  r->launch.no_counts = mode == UNCOUNTED;
  r->launch.param_bytes = 8 * (uint64_t)c->buffers + 4;
  memcpy(r->launch.grid, c->grid, sizeof r->launch.grid);
  memcpy(r->launch.block, c->block, sizeof r->launch.block);
  return true;
}

static void close_rig(Rig *r) {
  sol_emu_result_free(&r->result);
  sol_emu_destroy(r->emu);
}

static bool launch_rig(Rig *r) {
  sol_emu_result_free(&r->result);
  return !sol_emu_launch(r->emu, &r->launch, &r->result, &r->err);
}

// A rig a thread, all launching at once.
typedef struct Side {
  Rig rig[MOST_THREADS];
  bool failed;
} Side;

static void launch_side(void *ctx, int worker) {
  Side *side = ctx;
  if (!launch_rig(&side->rig[worker])) __atomic_store_n(&side->failed, true, __ATOMIC_RELAXED);
}

// Seconds of the fastest of some launches of `rigs` emulators at once, each of `workers` threads; -1: failed.
// *counts gets those of one.
static double time_case(const Case *c, SolPtxSource source, int rigs, int workers, Mode mode,
                        SolEmuCounts *counts) {
  static Side side;
  SolPool *pool = sol_pool_create(rigs);
  double best = -1;
  side.failed = !pool || sol_pool_count(pool) != rigs;
  for (int k = 0; k < rigs; k++)
    if (!open_rig(&side.rig[k], c, source, workers, mode)) side.failed = true;
  for (int run = 0; run < LAUNCHES && !side.failed; run++) {
    double start = sol_thread_clock();
    sol_pool_run(pool, launch_side, &side);
    double seconds = sol_thread_clock() - start;
    if (best < 0 || seconds < best) best = seconds;
  }
  *counts = side.rig[0].result.total;
  for (int k = 0; k < rigs; k++) {
    if (side.rig[k].err.message[0])
      fprintf(stderr, "%s:%d: %s\n", source.name, side.rig[k].err.line, side.rig[k].err.message);
    close_rig(&side.rig[k]);
  }
  sol_pool_destroy(pool);
  return side.failed ? -1 : best;
}

static void print_row(const char *what, int threads, const SolEmuCounts *counts, double seconds) {
  printf("%-32s %8d %13.1fM %13.2fM %10.3f", what, threads, (double)counts->lanes / seconds * 1e-6,
         (double)counts->executions / seconds * 1e-6, seconds);
}

static bool bench(const Case *c, SolPtxSource source, int cores) {
  SolEmuCounts counts;
  double plain = time_case(c, source, 1, 1, UNCOUNTED, &counts),
         one = time_case(c, source, 1, 1, COUNTED, &counts);
  double seen = time_case(c, source, 1, 1, OBSERVED, &counts);
  if (plain < 0 || one < 0 || seen < 0) return false;
  print_row(c->what, 1, &counts, one);
  printf("  %5s   %6s   %7.2fx   %8.2fx\n", "", "", seen / one, seen / plain);
  if (cores < 2) return true;
  double all = time_case(c, source, 1, cores, COUNTED, &counts);
  double apart = time_case(c, source, cores, 1, COUNTED, &counts);
  if (all < 0 || apart < 0) return false;
  print_row("", cores, &counts, all);
  printf("  %5.2fx  %6.2fx\n", one / all, one / apart * cores);
  return true;
}

// Many launches of one block each: what a launch costs beside its work.
static bool bench_launches(SolPtxSource source, int cores) {
  enum { COUNT = 100000 };
  const Case one_block = {"vector_add", "", {1, 1, 1}, {256, 1, 1}, {256, 256, 256}, 3, 256};
  Rig rig;
  bool good = open_rig(&rig, &one_block, source, cores, COUNTED);
  rig.launch.keep_l2 = true; // as in a program
  double start = sol_thread_clock();
  for (int k = 0; k < COUNT && good; k++) good = launch_rig(&rig);
  double seconds = sol_thread_clock() - start;
  if (good) printf("%d launches of one block: %.2f s, %.1f us each\n", COUNT, seconds, seconds / COUNT * 1e6);
  close_rig(&rig);
  return good;
}

int main(int argc, char **argv) {
  size_t length;
  const char *path = argc > 1 ? argv[1] : "bench/ptx/emu.ptx";
  char *text = read_file(path, &length);
  if (!text) return fprintf(stderr, "cannot read %s\n", path), 1;
  int cores = sol_thread_cores(), failed = 0;
  if (cores > MOST_THREADS) cores = MOST_THREADS;
  printf("%-32s %8s %14s %14s %10s  %6s  %7s  %8s  %9s\n", "", "threads", "thread inst/s", "warp inst/s",
         "seconds", "one", "machine", "observed", "uncounted");
  for (size_t k = 0; k < sizeof cases / sizeof *cases && !failed; k++)
    failed = !bench(&cases[k], (SolPtxSource){path, text, length}, cores);
  failed = failed || !bench_launches((SolPtxSource){path, text, length}, cores);
  free(text);
  return failed;
}
