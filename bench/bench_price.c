// Prices launches that the shim recorded, by this version of the time model: no program has to run again.
// usage: bench_price DEVICE FILE; SOL_SHIM_AUDIT=FILE made FILE (bench/fidelity.py --records keeps them). Prints what
// bench/fidelity.py reads of a bill, and of each shape what its time is made of.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit_wire.h"

static bool take(AuditProgram *p, AuditReader *reader, const char *line, size_t length) {
  AuditMessage m;
  SolError err = {0};
  if (audit_read_line(reader, line, length, &m, &err)) return false;
  if (m.kind == AUDIT_LINE_LAUNCH) return !audit_add(p, &m.launch, &err);
  if (m.kind == AUDIT_LINE_AGAIN) return !audit_add_again(p, &m.again, &err);
  if (m.kind == AUDIT_LINE_OUTSIDE) audit_outside(p, m.what, m.address, m.bytes);
  return true;
}

static void print_shape(const AuditShape *s, const char *comma) {
  printf(
      "%s{\"grid\": \"%u,%u,%u\", \"block\": \"%u,%u,%u\", \"launches\": %.0f, \"time_us\": %.4f, \"kernel_us\": %.4f, "
      "\"waves\": %.3f, \"chain\": %.3f, \"longest\": %.3f, \"busiest\": %.3f, \"stall\": %.2f",
      comma, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2], s->launches,
      s->time.total * 1e6, (s->time.total - s->time.gap) * 1e6, s->time.waves, s->work.chain, s->work.longest,
      s->work.busiest, s->work.stall);
#define PRINT(name) printf(", \"%s\": %.6g", #name, s->work.name / s->work.launches);
  MACHINE_DEMANDS(PRINT)
#undef PRINT
  for (int r = 0; r < MACHINE_RESOURCES; r++)
    printf(", \"%s_us\": %.3f", machine_resource_key((MachineResource)r),
           s->time.seconds[r] * 1e6 / s->launches);
  printf("}");
}

static void print_bill(const AuditProgram *p) {
  printf("{\"ended\": null, \"kernels\": [");
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    const AuditKernel *k = &p->kernels[i];
    printf("%s{\"symbol\": \"%s\", \"launches\": %.0f, \"end\": \"%s\", \"bound\": \"%s\", \"shapes\": [",
           i ? ",\n" : "", k->name, k->launches, k->end == SOL_EMU_DONE ? "done" : "cut short",
           machine_resource_key(k->time.bound));
    for (uint32_t s = 0; s < k->shape_count; s++) print_shape(&k->shapes[s], s ? ", " : "");
    printf("]}");
  }
  printf("]}\n");
}

int main(int argc, char **argv) {
  if (argc != 3) {
    puts("usage: bench_price DEVICE FILE: prices the launches that SOL_SHIM_AUDIT=FILE recorded");
    return 0;
  }
  SolError err = {0};
  const SolDevice *device = NULL;
  FILE *file = fopen(argv[2], "r");
  AuditProgram program = {0};
  AuditReader reader = {0};
  if (sol_device_find(argv[1], &device, &err) || !file || audit_start(&program, device, &err)) {
    fprintf(stderr, "bench_price: no such device, or no such file\n");
    return 1;
  }
  char *line = NULL;
  size_t cap = 0, bad = 0;
  for (ssize_t n; (n = getline(&line, &cap, file)) > 0;)
    bad += !take(&program, &reader, line, (size_t)n - (line[n - 1] == '\n'));
  if (audit_finish(&program, &err)) return 1;
  print_bill(&program);
  if (bad) fprintf(stderr, "bench_price: %zu lines were not read\n", bad);
  free(line);
  fclose(file);
  audit_reader_free(&reader);
  audit_free(&program);
  return 0;
}
