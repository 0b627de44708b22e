// counts[bin of x] += 1
#include <math.h>

#include "base/error.h"
#include "kernels/histogram/histogram.h"
#include "ops/cpu.h"

typedef struct Variant {
  int size;
  uint32_t threads;
  int64_t most; // counters: of a bin, and two more
  uint32_t alone, copies;
} Variant;
static const Variant variants[] = {
#define HISTOGRAM(name, size, threads, most, alone, copies) {size, threads, most, alone, copies},
#include "kernels/histogram/histogram.def"
};
enum { KERNEL_COUNT = SOL_COUNT(variants), MOST_BINS = 65536 };
static const char *const kernel_names[KERNEL_COUNT] = {
#define HISTOGRAM(name, size, threads, most, alone, copies) #name,
#include "kernels/histogram/histogram.def"
};
static const uint32_t shared_bytes[KERNEL_COUNT] = {
#define HISTOGRAM(name, size, threads, most, alone, copies) (most) * 4,
#include "kernels/histogram/histogram.def"
};

static const char *const option_names[] = {"values", "whole numbers"};

static bool make(const OpsCase *c, void *args) {
  SolHistogram *a = args;
  *a = (SolHistogram){.n = c->dim[0], .bins = c->dim[1] ? c->dim[1] : 256, .dtype = c->dtype};
  a->low = -1.5f, a->high = 2.25f;
  if (c->out_dtype || c->pad) return false;
  if (c->option && c->dtype != SOL_FP32) return false; // once is enough
  if (c->option) a->dtype = SOL_INT32;
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolHistogram *a = args;
  v[0] = OPS_VIEW(SolHistogram, counts, SOL_INT32, OPS_INOUT, .rows = 1, .cols = a->bins,
                  .fill = OPS_FILL_IDS, .limit = 1000);
  v[1] = OPS_VIEW(SolHistogram, x, a->dtype, OPS_IN, .rows = 1, .cols = a->n);
  if (a->dtype == SOL_INT32) v[1].fill = OPS_FILL_IDS, v[1].limit = a->bins;
  return 2;
}

// In fp32, as on the GPU.
static float scale_of(const SolHistogram *a) {
  return (float)a->bins / (a->high - a->low);
}

static bool is_finite(float f) {
  return f - f == 0;
}

static SolStatus check(const void *args, SolError *err) {
  const SolHistogram *a = args;
  if (a->dtype != SOL_INT32 && !ops_is_real(a->dtype))
    return sol_fail(err, SOL_ERR_ARGUMENT, "x must be int32, fp32, fp16 or bf16, not %s",
                    sol_dtype_name(a->dtype));
  if (a->bins > MOST_BINS)
    return sol_fail(err, SOL_ERR_RANGE, "at most %d bins, not %lld", MOST_BINS, (long long)a->bins);
  if (a->dtype == SOL_INT32) return SOL_OK;
  if (!is_finite(a->low) || !is_finite(a->high) || !(a->low < a->high) || !is_finite(a->high - a->low) ||
      !is_finite(scale_of(a)))
    return sol_fail(err, SOL_ERR_ARGUMENT,
                    "low and high must be finite and in order: %lld bins from %g to %g", (long long)a->bins,
                    (double)a->low, (double)a->high);
  return SOL_OK;
}

// Counts of one thread: where the bins are few, in its own memory; otherwise added to the result at once, a
// run of equal bins together.
enum { CPU_BINS = 4096 };
typedef struct CpuCounts {
  int32_t *result;
  int64_t bins, last, run;
  uint32_t own[CPU_BINS];
} CpuCounts;

static void add(CpuCounts *c, int64_t bin, int64_t count) {
  __atomic_fetch_add((uint32_t *)&c->result[bin], (uint32_t)count, __ATOMIC_RELAXED);
}

static void count_bins(CpuCounts *c, const int32_t *bin, int64_t n) {
  if (c->bins <= CPU_BINS) {
    for (int64_t i = 0; i < n; i++)
      if (bin[i] >= 0 && bin[i] < c->bins) c->own[bin[i]]++;
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    if (bin[i] < 0 || bin[i] >= c->bins) continue;
    if (bin[i] != c->last) {
      if (c->run) add(c, c->last, c->run);
      c->last = bin[i], c->run = 0;
    }
    c->run++;
  }
}

static void bins_of_reals(const SolHistogram *a, float scale, const float *f, int32_t *bin, int64_t n) {
  int32_t last = (int32_t)a->bins - 1;
  for (int64_t i = 0; i < n; i++) {
    bool in = f[i] >= a->low && f[i] <= a->high;
    int32_t b = (int32_t)((in ? f[i] - a->low : 0) * scale);
    bin[i] = !in ? -1 : b < last ? b : last;
  }
}

static void cpu_part(const void *args, int64_t begin, int64_t end) {
  const SolHistogram *a = args;
  CpuCounts c = {.result = a->counts, .bins = a->bins};
  if (c.bins <= CPU_BINS) memset(c.own, 0, sizeof c.own);
  float scale = a->dtype == SOL_INT32 ? 0 : scale_of(a);
  for (int64_t at = begin * CPU_CHUNK; at < cpu_min(end * CPU_CHUNK, a->n); at += CPU_CHUNK) {
    int64_t n = cpu_min(CPU_CHUNK, a->n - at);
    float f[CPU_CHUNK];
    int32_t bin[CPU_CHUNK];
    if (a->dtype == SOL_INT32)
      memcpy(bin, (const int32_t *)a->x + at, (size_t)n * 4);
    else {
      cpu_load(a->dtype, a->x, at, n, f);
      bins_of_reals(a, scale, f, bin, n);
    }
    count_bins(&c, bin, n);
  }
  if (c.run) add(&c, c.last, c.run);
  for (int64_t b = 0; c.bins <= CPU_BINS && b < c.bins; b++)
    if (c.own[b]) add(&c, b, c.own[b]);
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  const SolHistogram *a = args;
  cpu_parallel(ctx, (a->n + CPU_CHUNK - 1) / CPU_CHUNK, a->n, cpu_part, a);
  return SOL_OK;
}

// How many blocks, or groups of them. With more of them each ends sooner, but adding their counts takes
// longer: on an H200 the start and end of a block cost as much as it takes all blocks to read 32 vectors, so
// the best number is proportional to the square root of the length of x. At most as many as are resident at
// once.
static int64_t groups_of(const SolContext *ctx, const SolHistogram *a, const Variant *v, int64_t parts) {
  enum { WORTH = 32 };
  int64_t resident = v->alone ? 1 : 2048 / v->threads; // blocks per SM
  int64_t groups = ctx->sms * resident / parts, vectors = a->n / (16 / v->size), worth = vectors / WORTH;
  if (v->most)
    groups = cpu_min(groups, cpu_min((int64_t)sqrt((double)worth), a->n / a->bins));
  else
    groups = cpu_min(groups, (vectors + v->threads - 1) / v->threads);
  // As many on every SM: all ranges are alike, and the SMs with one more would end later.
  int64_t round = ctx->sms / parts;
  if (round && groups > round) groups -= groups % round;
  return groups > 1 ? groups : 1;
}

// Several counters per bin, a power of four, pay where a block has many elements for each of them.
static int32_t copies_of(const SolContext *ctx, const SolHistogram *a, const Variant *v) {
  enum { WORTH = 20 };
  int64_t copies = v->copies, each = a->n / groups_of(ctx, a, v, 1);
  while (copies > 1 && ((a->bins + 2) * copies > v->most || each < WORTH * (a->bins + 2) * copies))
    copies /= 4;
  return (int32_t)copies;
}

// Counting in shared memory pays once there are a few elements for each bin, since every block adds all its
// bins to the result. Of those kernels, the first that holds all bins, or else the largest. Elements of 16 bits leave so little time
// that they need two counters per bin from the first.
static int pick(SolContext *ctx, const SolHistogram *a) {
  enum { FEW = 4, MANY_BINS = 1024 };
  int size = ops_size(a->dtype), best = -1;
  bool few = a->bins > MANY_BINS && a->n < FEW * a->bins;
  for (int k = 0; k < KERNEL_COUNT; k++) {
    const Variant *v = &variants[k];
    if (v->size != size || few != !v->most || !ops_has_kernel(ctx, &ops_histogram, k)) continue;
    if (a->bins + 2 <= v->most / (v->copies > 1 && !v->alone ? 2 : 1)) return k;
    if (best < 0 || v->most > variants[best].most) best = k;
  }
  return best;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolHistogram *a = args;
  if (!a->n) return SOL_OK;
  int kernel = pick(ctx, a);
  if (kernel < 0) return ops_fail(SOL_ERR_UNSUPPORTED, "histogram: no kernel for this GPU");
  const Variant *v = &variants[kernel];
  int64_t size = v->size, past = (int64_t)((uintptr_t)a->x % 16);
  HistogramParams p = {.counts = (uint32_t *)a->counts, .x = a->x, .n = a->n, .bins = a->bins, .parts = 1};
  p.kind = a->dtype == SOL_INT32  ? HISTOGRAM_INT32
           : a->dtype == SOL_FP32 ? HISTOGRAM_FP32
           : a->dtype == SOL_FP16 ? HISTOGRAM_FP16
                                  : HISTOGRAM_BF16;
  p.head = cpu_min(a->n, (16 - past) % 16 / size);
  p.vectors = (a->n - p.head) / (16 / size);
  if (a->dtype != SOL_INT32) p.low = a->low, p.high = a->high, p.scale = scale_of(a);
  if (v->most) p.parts = (uint32_t)((a->bins + v->most - 3) / (v->most - 2));
  p.copies = copies_of(ctx, a, v);
  p.range = (uint32_t)((a->bins + p.parts - 1) / p.parts);
  p.bulk = ctx->cc >= 90 && v->alone && p.copies == 1 && a->bins >= HISTOGRAM_PIECE &&
           (uintptr_t)a->counts % 16 == 0;
  if (p.bulk && p.parts > 1) p.range = (p.range + 3) & ~3u; // each part starts on 16 bytes
  p.last = (float)(a->bins - 1), p.none = (float)(p.parts * p.range + 1);
  OpsLaunch l = {.kernel = kernel, .block = v->threads, .early = true, .params = &p, .bytes = sizeof p};
  l.shared = ((p.range + 2) * 4 * (uint32_t)p.copies + 15) & ~15u;
  int64_t groups = groups_of(ctx, a, v, p.parts);
  p.share = (p.vectors + groups - 1) / groups;
  l.grid[0] = (uint32_t)groups * p.parts;
  return ops_launch(ctx, &ops_histogram, &l, stream);
}

static void reference(const void *args, double *const *at) {
  const SolHistogram *a = args;
  double width = (float)((double)a->high - (double)a->low), scale = (float)((double)a->bins / width);
  for (int64_t i = 0; i < a->n; i++) {
    double x = at[1][i], bin = x;
    if (a->dtype != SOL_INT32) {
      if (!(x >= (double)a->low && x <= (double)a->high)) continue;
      bin = __builtin_floor((double)(float)((double)(float)(x - (double)a->low) * scale));
      if (bin > (double)(a->bins - 1)) bin = (double)(a->bins - 1);
    }
    if (bin >= 0 && bin < (double)a->bins) at[0][(int64_t)bin]++;
  }
}

static void cost(const void *args, SolOpArgs *op) {
  const SolHistogram *a = args;
  *op = (SolOpArgs){.dim = {a->n}, .dtype = a->dtype, .id_dtype = SOL_INT32, .bins = a->bins};
}

// N and bins: fewer elements than a vector, one bin; bins in shared memory of every size, in several parts,
// in the result itself.
static const int64_t shapes[][4] = {
    {1, 1},          {3, 2},        {31, 7},         {769, 1},       {5125, 256},     {65536, 256},
    {20000, 4099},   {4096, 1024},  {100003, 12286}, {70001, 12287}, {140001, 32768}, {170001, 40000},
    {263000, 65536}, {3001, 65536}, {0, 64},         {2400003, 768},
};
static const int64_t bench[][4] = {
    {1 << 20, 256}, {1 << 24, 256}, {1 << 26, 256}, {1 << 26, 4096}, {1 << 26, 65536}};

const OpsDef ops_histogram = {
    .name = "histogram",
    OPS_ARGS(SolHistogram, "NxBINS"),
    OPS_OPTIONS(option_names),
    OPS_OWN_FUNCTIONS,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("histogram", kernel_names),
    .shared = shared_bytes,
};
