// DRAM bytes of whole kernels, modelled, beside an H200's counters. `test_mem_dram --table` prints all of
// them.
#include "mem_machine.h"

// A kernel that only reads shows DRAM writes once it has read 40 MiB: 2.1 to 2.5 MB of lines that ncu's flush left
// dirty before it. Without ncu's flush there are none (tests/data/h200-kept-probe.csv).
#define FOREIGN_BASE   UINT64_C(0xf00000000)
#define FOREIGN_WRITES 2.5e6

typedef struct Row {
  char kernel[32];
  uint32_t width;
  uint64_t stride, offset, second, count;
  double dram_read, dram_write; // measured
} Row;

#define X_BASE UINT64_C(0x100000000)
#define Y_BASE UINT64_C(0x900000000)

static void request(Machine *m, const Row *r, uint64_t warp, uint64_t base, SolMemOp op) {
  machine_strided(m, (int)(warp / 8 % MACHINE_SMS), base + warp * 32 * r->stride, r->stride, r->width, op, 0);
}

// One pass over all elements, warp by warp in blocks of eight, block b on SM b mod 132, eight blocks an SM at
// a time.
static void pass(Machine *m, const Row *r, SolMemOp op, uint64_t base, bool copy) {
  for (uint64_t warp = 0; warp < r->count / 32; warp++) {
    request(m, r, warp, base, op);
    if (copy) request(m, r, warp, Y_BASE + r->offset, SOL_MEM_STORE);
    if (warp % (UINT64_C(64) * MACHINE_SMS) == 0) machine_drain(m);
  }
  machine_drain(m);
}

// Returns false for a kernel it does not know.
static bool run(Machine *m, const Row *r) {
  if (!strcmp(r->kernel, "copy"))
    pass(m, r, SOL_MEM_LOAD, X_BASE + r->offset, true);
  else if (!strcmp(r->kernel, "read"))
    pass(m, r, SOL_MEM_LOAD_L2, X_BASE + r->offset, false);
  else if (!strcmp(r->kernel, "write"))
    pass(m, r, SOL_MEM_STORE, X_BASE + r->offset, false);
  else if (!strcmp(r->kernel, "add"))
    pass(m, r, SOL_MEM_ATOMIC, X_BASE + r->offset, false);
  else if (!strcmp(r->kernel, "rounds") || !strcmp(r->kernel, "pairs")) {
    pass(m, r, SOL_MEM_LOAD_L2, X_BASE, false);
    pass(m, r, SOL_MEM_LOAD_L2, X_BASE + r->second, false);
  } else if (!strcmp(r->kernel, "write_read")) {
    pass(m, r, SOL_MEM_STORE, X_BASE, false);
    pass(m, r, SOL_MEM_LOAD_L2, X_BASE + r->second, false);
  } else
    return false;
  return true;
}

static SolL2Counts model(const Row *r, uint64_t *dirty) {
  SolL2Config h200 = machine_l2(0);
  Machine *m = machine_new(248 << 10, &h200, 2048);
  sol_l2_use(&m->l2, SOL_L2_WRITES, FOREIGN_BASE, machine_of("h200").ncu_dirty);
  for (uint32_t s = 0; s < SOL_SHARDS; s++) sol_l2_next_launch(&m->l2, s);
  CHECK_MSG(run(m, r), "unknown kernel '%s'", r->kernel);
  SolL2Counts t = machine_sum(m);
  *dirty = sol_l2_dirty_bytes(&m->l2);
  machine_free(m);
  return t;
}

static bool near(double got, double want, double relative, double absolute) {
  return fabs(got - want) <= relative * want + absolute;
}

// The five rows of the shared measurements, as rows of the probe.
static int read_five(Row *rows) {
  static const struct {
    const char *name;
    uint32_t width, stride, offset;
  } known[] = {{"\"y[i]=2*x[i], float\"", 4, 4, 0},
               {"\"i*2\"", 4, 8, 0},
               {"\"i*32\"", 4, 128, 0},
               {"\"float4\"", 16, 16, 0},
               {"\"y[i+1]=2*x[i+1], float\"", 4, 4, 4}};
  FILE *f = fopen("tests/data/h200-global-sectors.csv", "r");
  char line[512];
  int n = 0;
  while (f && n < 5 && fgets(line, sizeof line, f)) {
    double v[9];
    char *end = strrchr(line, '"');
    if (line[0] != '"' || !end) continue;
    int got = sscanf(end + 1, ",%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", v, v + 1, v + 2, v + 3, v + 4, v + 5,
                     v + 6, v + 7, v + 8);
    end[1] = 0;
    for (size_t k = 0; k < sizeof known / sizeof *known && got == 9; k++)
      if (!strcmp(line, known[k].name))
        rows[n++] = (Row){"copy", known[k].width, known[k].stride, known[k].offset, 0, 4194304, v[6], v[7]};
  }
  if (f) fclose(f);
  return n;
}

static int read_probe(Row *rows, int most) {
  FILE *f = fopen("tests/data/h200-dram-probe.csv", "r");
  char line[512];
  int n = 0;
  while (f && n < most && fgets(line, sizeof line, f)) {
    Row *r = &rows[n];
    unsigned long long stride, offset, second, count;
    if (line[0] == '#' || sscanf(line, "%31[^,],%u,%llu,%llu,%llu,%llu,%lf,%lf", r->kernel, &r->width,
                                 &stride, &offset, &second, &count, &r->dram_read, &r->dram_write) != 8)
      continue;
    r->stride = stride, r->offset = offset, r->second = second, r->count = count;
    n++;
  }
  if (f) fclose(f);
  return n;
}

TEST(h200_five_kernels) {
  Row rows[5];
  if (!CHECK_INT(read_five(rows), 5)) return;
  for (int i = 0; i < 5; i++) {
    const Row *r = &rows[i];
    uint64_t dirty;
    SolL2Counts t = model(r, &dirty);
    CHECK_MSG(near((double)t.dram_read_bytes, r->dram_read, 0.01, 0),
              "row %d: %.0f bytes read, measured %.0f", i, (double)t.dram_read_bytes, r->dram_read);
    CHECK_MSG(near((double)t.dram_write_bytes, r->dram_write, 0.05, FOREIGN_WRITES),
              "row %d: %.0f bytes written, measured %.0f", i, (double)t.dram_write_bytes, r->dram_write);
    // Nothing is lost: every sector written is in DRAM or still dirty.
    CHECK_MSG(t.dram_write_bytes + dirty >= (r->stride < 32 ? r->count * r->stride : r->count * 32), "row %d",
              i);
  }
}

// What a row of the probe is held to: a part of the bytes read, plus so many; so many of the bytes written.
typedef struct Tolerance {
  bool held; // false: the model is known to be far off; docs/memory-model.md says by how much
  double read, read_bytes, write_bytes;
} Tolerance;

static Tolerance tolerance_of(const Row *r) {
  double mib = (double)r->count * (double)r->stride / 1048576;
  bool partial = r->stride > r->width;
  if (!strcmp(r->kernel, "copy")) return (Tolerance){true, 0.01, 0, FOREIGN_WRITES + 1e6};
  if (!strcmp(r->kernel, "write") && !partial) return (Tolerance){true, 0, 1e4, 0.6e6};
  // The machine completes partly written lines somewhat later, and may not have written them when the kernel
  // ends.
  if (!strcmp(r->kernel, "write")) return (Tolerance){true, 0.01, 3e6, 17e6};
  if (!strcmp(r->kernel, "write_read") && !partial)
    return (Tolerance){mib <= 32, 0, 1e5, FOREIGN_WRITES + 1e6};
  if (!strcmp(r->kernel, "write_read")) return (Tolerance){true, 0.2, 0, FOREIGN_WRITES};
  if (!strcmp(r->kernel, "read")) return (Tolerance){true, 0.01, 0, 0.5e6};
  if (!strcmp(r->kernel, "rounds") && mib > 32 && mib < 56) return (Tolerance){true, 0.06, 0, FOREIGN_WRITES};
  return (Tolerance){true, 0.01, 0, FOREIGN_WRITES}; // read, rounds, pairs, add
}

// The large ones take a minute together; `--table` has them.
static bool is_quick(const Row *r) {
  return r->count * (r->stride < 128 ? r->stride : 128) <= UINT64_C(64) << 20;
}

TEST(h200_probe) {
  static Row rows[256];
  int n = read_probe(rows, 256), held = 0;
  CHECK_INT(n, 186);
  for (int i = 0; i < n; i++) {
    const Row *r = &rows[i];
    Tolerance t = tolerance_of(r);
    if (!t.held || !is_quick(r)) continue;
    uint64_t dirty;
    SolL2Counts c = model(r, &dirty);
    CHECK_MSG(near((double)c.dram_read_bytes, r->dram_read, t.read, t.read_bytes),
              "%s stride %d count %d: %.0f bytes read, measured %.0f", r->kernel, (int)r->stride,
              (int)r->count, (double)c.dram_read_bytes, r->dram_read);
    CHECK_MSG(near((double)c.dram_write_bytes, r->dram_write, 0, t.write_bytes),
              "%s stride %d count %d: %.0f bytes written, measured %.0f", r->kernel, (int)r->stride,
              (int)r->count, (double)c.dram_write_bytes, r->dram_write);
    held++;
  }
  CHECK_MSG(held >= 110, "%d rows", held);
}

static void print_rows(const Row *rows, int n) {
  printf("%-10s %5s %6s %6s %6s %8s | %12s %12s %7s | %12s %12s %10s\n", "kernel", "width", "stride",
         "offset", "second", "count", "DRAM read", "modelled", "off", "written", "modelled", "off, bytes");
  for (int i = 0; i < n; i++) {
    const Row *r = &rows[i];
    uint64_t dirty;
    SolL2Counts c = model(r, &dirty);
    double read = (double)c.dram_read_bytes, written = (double)c.dram_write_bytes;
    printf("%-10s %5u %6d %6d %6d %8d | %12.0f %12.0f %6.1f%% | %12.0f %12.0f %+10.0f\n", r->kernel, r->width,
           (int)r->stride, (int)r->offset, (int)r->second, (int)r->count, r->dram_read, read,
           r->dram_read > 1e5 ? 100 * (read / r->dram_read - 1) : 0, r->dram_write, written,
           written - r->dram_write);
  }
}

int main(int argc, char **argv) {
  static Row rows[256];
  if (argc < 2 || strcmp(argv[1], "--table") != 0) return check_main(argc, argv);
  print_rows(rows, read_five(rows));
  print_rows(rows, read_probe(rows, 256));
  return 0;
}
