// The emulator against counters read on an H200: requests, sectors and shared-memory wavefronts of kernels
// compiled by nvcc must equal tests/data/h200-*.csv exactly.
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "driver/driver.h"
#include "nvcc.h"

enum { THREADS = 4194304 };

// The kernels behind h200-global-sectors.csv: one load and one store a thread.
static const char global_source[] =
    "extern \"C\" __global__ void plain(float *y, const float *x) {\n"
    "  long i = (long)blockIdx.x * 256 + threadIdx.x; y[i] = 2 * x[i]; }\n"
    "extern \"C\" __global__ void by2(float *y, const float *x) {\n"
    "  long i = ((long)blockIdx.x * 256 + threadIdx.x) * 2; y[i] = 2 * x[i]; }\n"
    "extern \"C\" __global__ void by32(float *y, const float *x) {\n"
    "  long i = ((long)blockIdx.x * 256 + threadIdx.x) * 32; y[i] = 2 * x[i]; }\n"
    "extern \"C\" __global__ void vec4(float4 *y, const float4 *x) {\n"
    "  long i = (long)blockIdx.x * 256 + threadIdx.x; float4 v = x[i];\n"
    "  y[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w); }\n"
    "extern \"C\" __global__ void off1(float *y, const float *x) {\n"
    "  long i = (long)blockIdx.x * 256 + threadIdx.x; y[i + 1] = 2 * x[i + 1]; }\n";
static const struct {
  const char *pattern, *kernel;
  uint64_t bytes;
} global_rows[] = {{"y[i]=2*x[i], float", "plain", 4ull * THREADS},
                   {"i*2", "by2", 8ull * THREADS},
                   {"i*32", "by32", 128ull * THREADS},
                   {"float4", "vec4", 16ull * THREADS},
                   {"y[i+1]=2*x[i+1], float", "off1", 4ull * THREADS + 4}};

static SolDriver *open_emulator(void) {
  const SolDevice *h200 = NULL;
  SolDriver *driver = NULL;
  SolError err = {0};
  sol_device_find("h200", &h200, NULL);
  CHECK_MSG(!sol_driver_open(&(SolDriverOptions){.device = h200}, &driver, &err), "%s", err.message);
  return driver;
}

static SolDriverModule *load(SolDriver *driver, const char *source, const char *options) {
  size_t length = 0;
  SolError err = {0};
  SolDriverModule *module = NULL;
  char *ptx = nvcc_ptx(source, options, &length);
  if (check_skipped || !CHECK(ptx != NULL)) return NULL;
  CHECK_MSG(!sol_driver_load(driver, &(SolPtxSource){"k.ptx", ptx, length}, 1, &module, &err), "%d:%d: %s",
            err.line, err.column, err.message);
  free(ptx);
  return module;
}

static bool launch(SolDriver *driver, SolDriverModule *module, const char *name, uint32_t blocks,
                   uint32_t threads, const void *params, uint64_t param_bytes, SolEmuResult *result) {
  SolError err = {0};
  SolDriverLaunch l = {
      .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .params = params, .param_bytes = param_bytes};
  *result = (SolEmuResult){0};
  return CHECK_MSG(!sol_driver_kernel(module, name, &l.kernel, &err), "%s", err.message) &&
         CHECK_MSG(!sol_driver_launch(driver, &l, result, NULL, &err), "%s: %s", name, err.message) &&
         CHECK_MSG(result->end == SOL_EMU_DONE && !result->finding_count, "%s: %s", name,
                   result->finding_count ? result->findings[0].message : "stopped");
}

// The row of the csv whose quoted first field is `pattern`: the four counts after it.
static bool measured(const char *pattern, unsigned long long counts[4]) {
  FILE *f = fopen("tests/data/h200-global-sectors.csv", "r");
  char line[512], key[128];
  bool found = false;
  snprintf(key, sizeof key, "\"%s\",", pattern);
  while (f && !found && fgets(line, sizeof line, f)) {
    if (strncmp(line, key, strlen(key)) != 0) continue;
    found = sscanf(line + strlen(key), "%llu,%llu,%llu,%llu", &counts[0], &counts[1], &counts[2],
                   &counts[3]) == 4;
  }
  if (f) fclose(f);
  return CHECK_MSG(found, "no row %s", pattern);
}

TEST(global_requests_and_sectors) {
  SolDriver *driver = open_emulator();
  SolDriverModule *module = driver ? load(driver, global_source, "-arch=sm_90") : NULL;
  for (size_t i = 0; module && i < sizeof global_rows / sizeof global_rows[0]; i++) {
    unsigned long long want[4];
    uint64_t params[2];
    SolEmuResult r;
    SolError err = {0};
    if (!measured(global_rows[i].pattern, want)) break;
    for (int k = 0; k < 2; k++)
      CHECK_MSG(!sol_driver_alloc(driver, global_rows[i].bytes, k ? "x" : "y", &params[k], &err), "%s",
                err.message);
    if (launch(driver, module, global_rows[i].kernel, THREADS / 256, 256, params, sizeof params, &r)) {
      const SolEmuCounts *ld = &r.kinds[SOL_EMU_KIND_GLOBAL_LOAD], *st = &r.kinds[SOL_EMU_KIND_GLOBAL_STORE];
      CHECK_MSG(ld->requests == want[0] && ld->sectors == want[1] && st->requests == want[2] &&
                    st->sectors == want[3],
                "%s: loads %llu %llu, stores %llu %llu", global_rows[i].pattern,
                (unsigned long long)ld->requests, (unsigned long long)ld->sectors,
                (unsigned long long)st->requests, (unsigned long long)st->sectors);
    }
    sol_emu_result_free(&r);
    for (int k = 0; k < 2; k++) sol_driver_free(driver, params[k], NULL);
  }
  sol_driver_close(driver);
}

// "2a" as the csv has it becomes "2*a" in C.
static void formula_in_c(const char *formula, char *out) {
  for (; *formula; formula++) {
    if (*formula == 'a' && out[-1] >= '0' && out[-1] <= '9') *out++ = '*';
    *out++ = *formula;
  }
  *out = 0;
}

typedef struct SharedRow {
  int bytes, load, store;
  char formula[64];
} SharedRow;

static int read_shared_rows(SharedRow *rows, int cap) {
  FILE *f = fopen("tests/data/h200-shared-wavefronts.csv", "r");
  char line[256];
  int count = 0;
  while (f && count < cap && fgets(line, sizeof line, f)) {
    SharedRow *r = &rows[count];
    count += sscanf(line, "%d,%63[^,],%d,%d", &r->bytes, r->formula, &r->load, &r->store) == 4;
  }
  if (f) fclose(f);
  return count;
}

TEST(shared_wavefronts) {
  SharedRow rows[64];
  int count = read_shared_rows(rows, 64);
  if (!CHECK_INT(count, 48)) return;
  static char source[64 * 1024];
  size_t used = 0;
  for (int i = 0; i < count; i++) {
    static const char *const vectors[] = {"u32", "v2.u32", "v4.u32"}, *const lists[] = {"%0", "{%0,%1}",
                                                                                        "{%0,%1,%2,%3}"};
    static const char *const loaded[] = {"\"=r\"(v[0])", "\"=r\"(v[0]),\"=r\"(v[1])",
                                         "\"=r\"(v[0]),\"=r\"(v[1]),\"=r\"(v[2]),\"=r\"(v[3])"};
    static const char *const stored[] = {"\"r\"(v[0])", "\"r\"(v[0]),\"r\"(v[1])",
                                         "\"r\"(v[0]),\"r\"(v[1]),\"r\"(v[2]),\"r\"(v[3])"};
    char bare[96] = "(", c[100];
    formula_in_c(rows[i].formula, bare + 1);
    snprintf(c, sizeof c, "%s)", bare);
    int w = rows[i].bytes == 4 ? 0 : rows[i].bytes == 8 ? 1 : 2, words = 1 << w;
    used +=
        (size_t)snprintf(source + used, sizeof source - used,
                         "extern \"C\" __global__ void ld%d(unsigned *out) {\n  __shared__ __align__(16) "
                         "unsigned s[1024 * %d];\n"
                         "  unsigned a = threadIdx.x, v[4]; unsigned at = "
                         "(unsigned)__cvta_generic_to_shared(s) + (%s %% 1024) * %d;\n"
                         "  asm volatile(\"ld.shared.%s %s, [%%%d];\" : %s : \"r\"(at));\n  for (int k = 0; "
                         "k < %d; k++) out[a * 4 + k] = v[k];\n}\n"
                         "extern \"C\" __global__ void st%d(unsigned *in) {\n  __shared__ __align__(16) "
                         "unsigned s[1024 * %d];\n"
                         "  unsigned a = threadIdx.x, v[4] = {in[a], in[a], in[a], in[a]}; unsigned at = "
                         "(unsigned)__cvta_generic_to_shared(s) + (%s %% 1024) * %d;\n"
                         "  asm volatile(\"st.shared.%s [%%%d], %s;\" :: %s, \"r\"(at) : \"memory\");\n}\n",
                         i, words, c, rows[i].bytes, vectors[w], lists[w], words, loaded[w], words, i, words,
                         c, rows[i].bytes, vectors[w], words, lists[w], stored[w]);
  }
  CHECK(used < sizeof source);
  SolDriver *driver = open_emulator();
  SolDriverModule *module = driver ? load(driver, source, "-arch=sm_90") : NULL;
  uint64_t buffer = 0;
  if (module) sol_driver_alloc(driver, 4096, "out", &buffer, NULL);
  for (int i = 0; module && i < count; i++)
    for (int store = 0; store < 2; store++) {
      char name[16];
      SolEmuResult r;
      snprintf(name, sizeof name, "%s%d", store ? "st" : "ld", i);
      if (launch(driver, module, name, 1, 32, &buffer, sizeof buffer, &r)) {
        const SolEmuCounts *c = &r.kinds[store ? SOL_EMU_KIND_SHARED_STORE : SOL_EMU_KIND_SHARED_LOAD];
        int want = store ? rows[i].store : rows[i].load;
        CHECK_MSG(c->shared_requests == 1 && c->wavefronts == (uint64_t)want,
                  "%d bytes, %s, %s: %llu wavefronts, measured %d", rows[i].bytes, rows[i].formula,
                  store ? "store" : "load", (unsigned long long)c->wavefronts, want);
      }
      sol_emu_result_free(&r);
    }
  sol_driver_close(driver);
}

CHECK_MAIN
