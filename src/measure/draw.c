#include "measure/draw.h"

#include <math.h>

#include "base/error.h"

enum { TRIES = 20000, LOG_MOST = 22 };
// Above this the tensor cores or the vector units decide, and a copy's time is no yardstick.
static const double most_flops_per_byte = 32;
// Of all tensors of a call, beside what it moves: rows far apart and tables take room that is not moved.
static const double most_room = 2;

static const int64_t widths[] = {
    64,    80,    96,    112,   128,    192,    256,    576,    768,    1024,   1152,   1280,  1536,
    1600,  2048,  2304,  2560,  2880,   3072,   3584,   4096,   4608,   5120,   5376,   6144,  7168,
    8192,  10240, 11008, 12288, 13824,  14336,  16384,  18432,  28672,  29568,  32000,  32064, 50257,
    50304, 51200, 65024, 65536, 100352, 102400, 128256, 129280, 151936, 152064, 256000, 262144};
static const int64_t heads[] = {1, 2, 4, 5, 8, 12, 16, 20, 24, 25, 28, 32, 40, 48, 64, 71, 96, 128};
static const int64_t head_sizes[] = {32, 64, 72, 80, 96, 112, 128, 160, 192, 256, 512};
static const int64_t vocabularies[] = {30522,  32000,  50257,  50304,  65024,  100352,
                                       128256, 129280, 151936, 202048, 256000, 262144};

static uint64_t next(uint64_t *state) { // splitmix64
  uint64_t x = *state += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static int64_t below(uint64_t *state, int64_t count) {
  return (int64_t)(next(state) % (uint64_t)count);
}

static int64_t log_uniform(uint64_t *state, double log2_most) {
  return (int64_t)exp2((double)(next(state) >> 11) * 0x1p-53 * log2_most);
}

static int64_t width(uint64_t *state) {
  int64_t kind = below(state, 3);
  if (kind == 0) return widths[below(state, SOL_COUNT(widths))];
  int64_t any = log_uniform(state, LOG_MOST);
  return kind == 1 ? any | 1 : any;
}

static int64_t head_size(uint64_t *state) {
  int64_t any = 2 * log_uniform(state, 9);
  return below(state, 3) ? head_sizes[below(state, SOL_COUNT(head_sizes))] : any;
}

static int64_t table_rows(uint64_t *state) {
  int64_t any = log_uniform(state, LOG_MOST);
  return below(state, 2) ? vocabularies[below(state, SOL_COUNT(vocabularies))] : any;
}

// By the dimension's name in the operation's definition ("MxN", "TxHxD").
static int64_t dimension(uint64_t *state, const char *name, bool first) {
  switch (name[0]) {
  case 'M':
  case 'T': return log_uniform(state, LOG_MOST);
  case 'N': return first ? log_uniform(state, LOG_MOST) * width(state) : width(state);
  case 'K': return width(state);
  case 'V':
  case 'R': return table_rows(state);
  case 'H': return heads[below(state, SOL_COUNT(heads))];
  case 'C': return 8 * (1 + below(state, 256));   // channels of an image
  case 'G': return INT64_C(1) << below(state, 6); // groups of channels
  case 'D': return head_size(state);
  case 'B': return name[1] == 'I' ? log_uniform(state, 16) : below(state, 3) ? 0 : log_uniform(state, 6);
  case 'S': return log_uniform(state, 16); // elements of an image, or tokens
  default: return log_uniform(state, 6);
  }
}

static void draw_shape(uint64_t *state, const char *shape, int64_t dim[4]) {
  int i = 0;
  for (const char *p = shape; *p && i < 4; p++) {
    if (p > shape && p[-1] != 'x') continue;
    dim[i] = dimension(state, p, i == 0);
    i++;
  }
}

// Rows further apart than dense: whole 16-byte pieces, an odd number of elements, or a strip of columns of a
// matrix that is up to sixteen times as wide.
static int64_t draw_pad(uint64_t *state, int64_t n) {
  int64_t kind = below(state, 12);
  if (kind == 0) return 8 * log_uniform(state, 6);
  if (kind == 1) return 2 * below(state, 8) + 1;
  return kind == 2 ? n * (1 + below(state, 15)) : 0;
}

static SolDtype draw_other(uint64_t *state) { // 0: the operation's default
  static const SolDtype reals[] = {SOL_FP32, SOL_FP16, SOL_BF16};
  int64_t kind = below(state, 6), which = below(state, SOL_COUNT(reals));
  return kind ? 0 : reals[which];
}

static OpsCase draw(uint64_t *state, const OpsDef *def, const DrawLimits *limits) {
  OpsCase c = {.dtype = limits->dtypes[below(state, limits->dtype_count)]};
  draw_shape(state, def->shape, c.dim);
  c.out_dtype = draw_other(state);
  c.weight_dtype = draw_other(state);
  c.id_dtype = below(state, 2) ? SOL_INT64 : 0;
  c.pad = draw_pad(state, c.dim[1]);
  int64_t option = below(state, def->options ? 2 * def->options : 1);
  c.option = option < def->options ? (int)option : 0;
  return c;
}

static bool suits(const Sets *s, const DrawLimits *limits) {
  return s->bytes >= limits->least_bytes && s->bytes <= limits->most_bytes &&
         sets_memory(s, 1) <= most_room * limits->most_bytes &&
         s->cost.flops <= most_flops_per_byte * s->bytes;
}

SolStatus draw_case(SolContext *ctx, const OpsDef *def, uint64_t seed, int64_t number,
                    const DrawLimits *limits, OpsCase *out, SolCost *cost, SolError *err) {
  uint64_t state = seed * 0x2545f4914f6cdd1du + (uint64_t)number;
  next(&state);
  for (int i = 0; i < TRIES; i++) {
    Sets s;
    *out = draw(&state, def, limits);
    if (sets_plan(&s, ctx, def, out, 0, NULL) || !suits(&s, limits)) continue;
    *cost = s.cost;
    return SOL_OK;
  }
  return sol_fail(err, SOL_ERR_NOT_FOUND, "%s: no case of %.3g to %.3g bytes was found", def->name,
                  limits->least_bytes, limits->most_bytes);
}
