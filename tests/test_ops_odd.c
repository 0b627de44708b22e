// fp8 rows that start anywhere: at every element of 16 bytes of input and at every byte of 8 of output, of
// lengths about every limit of the kernels, as against the CPU's. Nothing beside the rows is written.
#include "check.h"
#include "ops/cpu.h"

enum { ROWS = 2, AFTER = 3, BESIDE = 0xa5 };

typedef struct Place {
  SolDtype dtype;
  SolScaling scaling;
  int n, x_at, y_at; // elements and bytes from an aligned address
  bool silu;
} Place;

typedef struct Result {
  uint8_t *y;
  float *scales;
} Result;

// Where the first rows lie alike, the others do, too; otherwise each lies in its own way.
static int x_stride(const Place *p) {
  return p->n + AFTER;
}
static int y_stride(const Place *p) {
  return p->n + (p->x_at == p->y_at ? AFTER : 2 * AFTER);
}
static int up_stride(const Place *p) {
  return p->n + (p->x_at == p->y_at ? AFTER : AFTER - 1);
}
static int x_count(const Place *p) {
  return p->x_at + ROWS * x_stride(p);
}
static int y_count(const Place *p) {
  return p->y_at + ROWS * y_stride(p);
}
static int scale_count(const Place *p) {
  return p->scaling == SOL_SCALE_TENSOR ? 1
         : p->scaling == SOL_SCALE_ROW  ? ROWS
                                        : ROWS * ((p->n + 127) / 128);
}

static void *give(SolContext *ctx, const void *from, size_t bytes) {
  void *at = NULL;
  CHECK(sol_context_alloc(ctx, bytes, &at, NULL) == SOL_OK);
  CHECK(sol_context_write(ctx, at, from, bytes, NULL) == SOL_OK);
  return at;
}

// On either backend. r has what was there before, and is overwritten.
static bool run(SolContext *ctx, const Place *p, const void *x, const void *up, const void *weight,
                Result r) {
  size_t size = p->dtype == SOL_FP32 ? 4 : 2, x_bytes = size * (size_t)x_count(p),
         y_bytes = (size_t)y_count(p);
  size_t scale_bytes = sizeof(float) * (size_t)scale_count(p);
  char *a = give(ctx, x, x_bytes), *b = give(ctx, up, x_bytes), *w = give(ctx, weight, size * (size_t)p->n);
  char *y = give(ctx, r.y, y_bytes);
  float *scales = give(ctx, r.scales, scale_bytes);
  SolStatus status;
  if (p->silu)
    status = sol_silu_mul(ctx,
                          &(SolSiluMul){.y = y + p->y_at,
                                        .gate = a + (size_t)p->x_at * size,
                                        .up = b + (size_t)p->x_at * size,
                                        .scales = scales,
                                        .m = ROWS,
                                        .n = p->n,
                                        .y_stride = y_stride(p),
                                        .gate_stride = x_stride(p),
                                        .up_stride = up_stride(p),
                                        .dtype = p->dtype,
                                        .out_dtype = SOL_FP8,
                                        .scaling = p->scaling},
                          NULL);
  else
    status = sol_rmsnorm(ctx,
                         &(SolRmsnorm){.y = y + p->y_at,
                                       .x = a + (size_t)p->x_at * size,
                                       .weight = w,
                                       .scales = scales,
                                       .m = ROWS,
                                       .n = p->n,
                                       .y_stride = y_stride(p),
                                       .x_stride = x_stride(p),
                                       .dtype = p->dtype,
                                       .out_dtype = SOL_FP8,
                                       .scaling = p->scaling},
                         NULL);
  bool ok = CHECK_MSG(status == SOL_OK, "%s", sol_last_error()->message);
  ok = ok && CHECK(!sol_context_read(ctx, r.y, y, y_bytes, NULL)) &&
       CHECK(!sol_context_read(ctx, r.scales, scales, scale_bytes, NULL));
  void *all[] = {a, b, w, y, scales};
  for (size_t i = 0; i < SOL_COUNT(all); i++) sol_context_free(ctx, all[i], NULL);
  return ok;
}

// Neighbouring codes at most: roundings differ.
static bool near(uint8_t a, uint8_t b) {
  int d = (a & 0x7f) - (b & 0x7f);
  return d >= -1 && d <= 1 && ((a ^ b) < 0x80 || (a & 0x7f) <= 1);
}

static int compare(const Place *p, Result want, Result got) {
  int wrong = 0, stride = y_stride(p);
  for (int i = 0; i < y_count(p); i++) {
    int at = i - p->y_at;
    bool inside = at >= 0 && at % stride < p->n;
    wrong += inside ? !near(got.y[i], want.y[i]) : got.y[i] != BESIDE;
  }
  for (int i = 0; i < scale_count(p); i++)
    wrong += !(fabsf(got.scales[i] - want.scales[i]) <= 1e-5f * want.scales[i]);
  return wrong;
}

static void fill(const Place *p, void *x, int count, unsigned seed) {
  for (int i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    float f = (float)(int)(seed >> 16 & 0xff) / 32 - 4;
    cpu_store(p->dtype, x, i, 1, &f);
  }
}

static Result result_of(const Place *p) {
  Result r = {malloc((size_t)y_count(p)), malloc(sizeof(float) * (size_t)scale_count(p))};
  if (r.y) memset(r.y, BESIDE, (size_t)y_count(p));
  for (int i = 0; r.scales && i < scale_count(p); i++) r.scales[i] = 0.02f;
  return r;
}

static void try_place(SolContext *cpu, SolContext *gpu, const Place *p) {
  size_t bytes = 4 * (size_t)x_count(p);
  void *x = malloc(bytes), *up = malloc(bytes), *weight = malloc(4 * (size_t)p->n);
  Result want = result_of(p), got = result_of(p);
  if (CHECK(x && up && weight && want.y && want.scales && got.y && got.scales)) {
    fill(p, x, x_count(p), 1), fill(p, up, x_count(p), 2), fill(p, weight, p->n, 3);
    if (run(cpu, p, x, up, weight, want) && run(gpu, p, x, up, weight, got)) {
      int wrong = compare(p, want, got);
      CHECK_MSG(!wrong, "%s %s, scaling %d, rows of %d from element %d to byte %d: %d wrong",
                p->silu ? "silu_mul" : "rmsnorm", sol_dtype_name(p->dtype), (int)p->scaling, p->n, p->x_at,
                p->y_at, wrong);
    }
  }
  free(x), free(up), free(weight), free(want.y), free(want.scales), free(got.y), free(got.scales);
}

// Up to a chunk; a group of lanes, a warp, a block, a cluster of two, or one more than they hold.
static const int lengths[] = {1, 3, 8, 13, 63, 64, 65, 127, 129, 257, 511, 513, 777, 1025, 2053, 8195, 16389};

static void try_backend(SolBackend backend) {
  SolContext *cpu = NULL, *gpu = NULL;
  if (backend == SOL_BACKEND_EMU && !ops_image_count) SKIP("built without nvcc: no kernels");
  SolStatus status = sol_context_create(&(SolContextOptions){.backend = backend, .workers = 2}, &gpu, NULL);
  if (status && backend == SOL_BACKEND_CUDA) SKIP("no GPU");
  if (!CHECK_INT(status, SOL_OK)) return;
  if (CHECK(!sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_CPU, .workers = 1}, &cpu, NULL)))
    for (size_t i = 0; i < SOL_COUNT(lengths); i++)
      for (int at = 0; at < 64; at++)
        for (int how = 0; how < 12; how++) {
          Place p = {
              how % 2 ? SOL_BF16 : SOL_FP32, (SolScaling)(how / 2 % 3), lengths[i], at % 8, at / 8, how >= 6};
          // Of long rows a part: they take the emulator their time.
          if (p.x_at != p.y_at && lengths[i] > 300 && (at * 5 + how) % (lengths[i] > 3000 ? 48 : 8)) continue;
          if (lengths[i] > 3000 && (at / 8 + how) % 4) continue;
          try_place(cpu, gpu, &p);
        }
  sol_context_destroy(cpu);
  sol_context_destroy(gpu);
}

TEST(emu) {
  try_backend(SOL_BACKEND_EMU);
}

TEST(cuda) { // where there is a GPU
  try_backend(SOL_BACKEND_CUDA);
}

CHECK_MAIN
