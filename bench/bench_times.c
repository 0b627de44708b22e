// The time model against an H200's clock: the library's kernels on the emulator, their predicted times against
// the measured ones of bench/results. usage: bench_times [MOST_BYTES [PEERS.json]]; docs/audit.md has its
// table.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/heap.h"
#include "base/json_read.h"
#include "base/text.h"
#include "cli/cli.h"
#include "image/fatbin.h"
#include "measure/bench.h"

typedef struct Times {
  const SolDevice *device;
  double seconds, floor;
  MachineTime longest;
  int launches, by_emulator;
  char *elf[64]; // machine code of each image, unpacked when first wanted
  size_t elf_size[64];
} Times;

static int registers_of(Times *t, const char *kernel) {
  for (int i = 0; i < ops_image_count && i < 64; i++) {
    SolFatbin fat;
    SolFatEntry entry;
    const OpsImage *image = &ops_images[i];
    if (!t->elf[i] && !sol_fatbin_open(image->fat, (uint64_t)(image->fat_end - image->fat), &fat, NULL) &&
        sol_fatbin_choose_elf(&fat, 90, &entry))
      sol_fatbin_text(&entry, &t->elf[i], &t->elf_size[i], NULL);
    int registers = t->elf[i] ? sol_cubin_registers(t->elf[i], t->elf_size[i], kernel) : 0;
    if (registers) return registers;
  }
  return 0;
}

static void launched(void *ctx, const SolDriverLaunch *l, const SolEmuResult *result) {
  Times *t = ctx;
  AuditLaunch launch = {
      .dynamic_shared = l->dynamic_shared, .graph = true, .early = l->early, .steady = true};
  MachineTime time;
  SolArena arena = {0};
  memcpy(launch.grid, l->grid, sizeof launch.grid);
  memcpy(launch.block, l->block, sizeof launch.block);
  launch.registers = registers_of(t, sol_driver_function(l->kernel)->name);
  if (!launch.registers) {
    launch.registers = (int)sol_emu_kernel_registers(result->kernel);
    t->by_emulator++;
  }
  if (!audit_take(sol_driver_kernel_ptx(l->kernel), result, &arena, &launch, NULL) &&
      !audit_launch_time(t->device, &launch, &time, NULL)) {
    t->seconds += time.total;
    if (time.total > t->longest.total) t->longest = time;
    for (uint32_t i = 0; i < launch.touch_count; i++)
      t->floor += launch.touches[i].read_first + launch.touches[i].written;
  }
  t->launches++;
  sol_arena_free(&arena);
}

// "add+rmsnorm", "bias_relu_sc": cut to a column's width, and with a sign for the underscore.
static const OpsDef *find_op(const char *name) {
  char plain[64];
  snprintf(plain, sizeof plain, "%s", name);
  for (char *p = plain; *p; p++)
    if (*p == '+') *p = '_';
  for (int i = 0; i < OPS_COUNT; i++)
    if (strcmp(ops_defs[i]->name, plain) == 0) return ops_defs[i];
  for (int i = 0; i < OPS_COUNT; i++)
    if (strlen(plain) >= 8 && strncmp(ops_defs[i]->name, plain, strlen(plain)) == 0) return ops_defs[i];
  return NULL;
}

static bool get_text(SolJson row, const char *key, char *out, size_t cap) {
  SolJson value;
  return sol_json_get(row, key, &value) && sol_json_string(value, out, cap);
}

static double get_number(SolJson row, const char *key) {
  SolJson value;
  double number = 0;
  return sol_json_get(row, key, &value) && sol_json_number(value, &number) ? number : 0;
}

typedef struct Sum {
  double logs, worst;
  int count;
} Sum;

static void run_case(SolContext *ctx, Times *t, SolJson row, double most, Sum *sum) {
  char op[64], dtype[16], shape[64];
  if (!get_text(row, "op", op, 64) || !get_text(row, "dtype", dtype, 16) ||
      !get_text(row, "shape", shape, 64))
    return;
  double bytes = get_number(row, "bytes"), measured = get_number(row, "us");
  const OpsDef *def = find_op(op);
  OpsCase c = {0};
  int rank = 0;
  SolError err = {0};
  if (!def || measured <= 0 || bytes > most || sol_dtype_find(dtype, &c.dtype, &err)) return;
  if (sol_parse_shape(shape, strlen(shape), 4, c.dim, &rank, &err)) return;
  // Rows are looked up in a table of 32000; of one twice as long as there are ids few are met twice, too.
  enum { LEAST = 1024, VOCABULARY = 32000 };
  if (strncmp(def->name, "embed", 5) == 0)
    c.dim[2] = c.dim[0] * 2 < LEAST ? LEAST : c.dim[0] * 2 < VOCABULARY ? c.dim[0] * 2 : VOCABULARY;
  t->seconds = t->floor = t->longest.total = 0;
  t->launches = t->by_emulator = 0;
  SolDriverCounts counts = {.launched = launched, .ctx = t};
  if (bench_once(ctx, def, &c, 0, false, NULL, &counts, &err)) {
    printf("%-12s %-5s %-12s %s\n", op, dtype, shape, err.message);
    return;
  }
  MachineModel model = machine_model(t->device);
  double us = t->seconds * 1e6, light = machine_light(&model, t->floor, t->launches, t->launches) * 1e6;
  printf("%-12s %-5s %-12s %8.2f %9.2f %6.2f %8.2f %9.2f  %s%s\n", op, dtype, shape, measured, us,
         us / measured, get_number(row, "light_us"), light, machine_resource_name(t->longest.bound),
         t->by_emulator ? " *" : "");
  fflush(stdout);
  sum->logs += us > measured ? us / measured : measured / us;
  if (us / measured > sum->worst) sum->worst = us / measured;
  if (measured / us > sum->worst) sum->worst = measured / us;
  sum->count++;
}

int main(int argc, char **argv) {
  double most = argc > 1 ? atof(argv[1]) : 8e6;
  const char *path = argc > 2 ? argv[2] : "bench/results/2026-11-15-h200-peers.json";
  size_t length;
  SolError err = {0};
  Times t = {0};
  SolContext *ctx = NULL;
  SolJson root, cases, row;
  Sum sum = {0};
  char *text = cli_read_file(path, 64 << 20, &length, &err);
  bool fine = text && !sol_json_check(text, length, &root, &err) && sol_json_get(root, "cases", &cases) &&
              !sol_device_find("h200", &t.device, &err);
  SolContextOptions options = {.backend = SOL_BACKEND_EMU, .device = t.device};
  if (!fine || sol_context_create(&options, &ctx, &err)) return fprintf(stderr, "%s\n", err.message), 1;
  printf("%-12s %-5s %-12s %8s %9s %6s %8s %9s  %s\n", "operation", "type", "shape", "H200, us", "model, us",
         "ratio", "copy, us", "light, us", "bound by");
  for (SolJsonIter it = {.container = cases}; sol_json_next(&it, NULL, &row);)
    run_case(ctx, &t, row, most, &sum);
  printf("%d cases; off by %.2fx on average, %.2fx at most\n", sum.count,
         sum.count ? sum.logs / sum.count : 0, sum.worst);
  sol_context_destroy(ctx);
  for (int i = 0; i < 64; i++) sol_heap_free(t.elf[i]);
  free(text);
  return 0;
}
