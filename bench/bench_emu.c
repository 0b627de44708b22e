// How fast the emulator is, memory counted: thread instructions and warp instructions a second, on one thread
// and on as many as there are cores. bench_emu [FILE.ptx] (bench/ptx/emu.ptx, see emu.cu beside it)
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

// Seconds of the fastest of three launches; *result holds the counts of one.
static double time_case(SolEmu *emu, SolEmuModule *module, const Case *c, SolEmuResult *result,
                        SolError *err) {
  struct {
    uint64_t at[3];
    int32_t n;
  } args = {{0}, c->n};
  double best = 0;
  for (int k = 0; k < c->buffers; k++)
    if (sol_emu_alloc(emu, c->floats[k] * 4, "buffer", &args.at[k], err)) return -1;
  unsigned char packed[32];
  memcpy(packed, args.at, 8 * (size_t)c->buffers);
  memcpy(packed + 8 * c->buffers, &args.n, 4);
  SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, c->kernel), .params = packed};
  launch.param_bytes = 8 * (uint64_t)c->buffers + 4;
  memcpy(launch.grid, c->grid, sizeof launch.grid);
  memcpy(launch.block, c->block, sizeof launch.block);
  for (int run = 0; run < 3; run++) {
    sol_emu_result_free(result);
    if (sol_emu_launch(emu, &launch, result, err)) return -1;
    if (!run || result->seconds < best) best = result->seconds;
  }
  for (int k = 0; k < c->buffers; k++) sol_emu_free(emu, args.at[k], err);
  return best;
}

int main(int argc, char **argv) {
  size_t length;
  const char *path = argc > 1 ? argv[1] : "bench/ptx/emu.ptx";
  char *text = read_file(path, &length);
  SolError err = {0};
  SolEmu *emu = NULL;
  SolEmuModule *module = NULL;
  if (!text) return fprintf(stderr, "cannot read %s\n", path), 1;
  if (sol_emu_create(NULL, &emu, &err) ||
      sol_emu_load(emu, &(SolPtxSource){path, text, length}, 1, &module, &err))
    return fprintf(stderr, "%s:%d: %s\n", path, err.line, err.message), 1;
  int cores = sol_thread_cores();
  printf("%-32s %8s %14s %14s %10s\n", "", "threads", "thread inst/s", "warp inst/s", "seconds");
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    double one = 0;
    for (int workers = 1; workers <= cores; workers = workers < cores ? cores : cores + 1) {
      SolEmuResult result = {0};
      sol_emu_set_workers(emu, workers);
      double seconds = time_case(emu, module, &cases[k], &result, &err);
      if (seconds < 0) return fprintf(stderr, "%s: %s\n", cases[k].kernel, err.message), 1;
      if (workers == 1) one = seconds;
      printf("%-32s %8d %13.1fM %13.2fM %10.3f", workers == 1 ? cases[k].what : "", workers,
             (double)result.total.lanes / seconds * 1e-6, (double)result.total.executions / seconds * 1e-6,
             seconds);
      if (workers > 1) printf("  %.2fx", one / seconds);
      printf("\n");
      sol_emu_result_free(&result);
    }
  }
  sol_emu_destroy(emu);
  free(text);
  return 0;
}
