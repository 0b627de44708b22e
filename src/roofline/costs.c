// Costs of operations: the table, the argument checks, and the ledger that handlers write to.
#include "roofline/costs.h"

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"

#define BIT(dtype) (1u << (dtype))
enum {
  REAL = BIT(SOL_FP64) | BIT(SOL_FP32) | BIT(SOL_FP16) | BIT(SOL_BF16) | BIT(SOL_FP8) | BIT(SOL_FP4),
  NUMBER = REAL | BIT(SOL_INT8) | BIT(SOL_INT32) | BIT(SOL_INT64),
  MATRIX = REAL | BIT(SOL_TF32) | BIT(SOL_INT8),
  IDS = BIT(SOL_INT32) | BIT(SOL_INT64),
  OUT = SOL_TAKES_OUT_DTYPE,
  WEIGHT = SOL_TAKES_WEIGHT_DTYPE,
  ID = SOL_TAKES_ID_DTYPE,
  KV = SOL_TAKES_KV_DTYPE,
  VOCAB = SOL_TAKES_VOCAB,
  KV_HEADS = SOL_TAKES_KV_HEADS,
  V_DIM = SOL_TAKES_V_DIM,
  QUERIES = SOL_TAKES_QUERIES,
  WINDOW = SOL_TAKES_WINDOW,
  BINS = SOL_TAKES_BINS,
  RADIUS = SOL_TAKES_RADIUS,
  PHASE = SOL_TAKES_PHASE,
  AXIS = SOL_TAKES_AXIS
};

// Whether there is an unfused handler is read off its name: its address is no constant under every sanitizer.
#define IS_HANDLER(unfused) (sizeof #unfused > sizeof "0")

const SolOpRow sol_op_rows[] = {
#define OP(name, shape, rank_min, rank_max, unit, dtypes, options, unfused, summary, counts)                 \
  {{#name, shape, summary, counts, rank_min, rank_max, options, SOL_UNIT_##unit, IS_HANDLER(unfused)},       \
   dtypes,                                                                                                   \
   sol_cost_##name,                                                                                          \
   unfused},
#include "roofline/costs.def"
};
const int sol_op_row_count = (int)SOL_COUNT(sol_op_rows);

int sol_op_count(void) {
  return sol_op_row_count;
}

const SolOpInfo *sol_op_info(int op) {
  return op >= 0 && op < sol_op_row_count ? &sol_op_rows[op].info : 0;
}

static const char *op_name(const void *ctx, int i) {
  (void)ctx;
  return sol_op_rows[i].info.name;
}

// The operation that people also know by this name; NULL: there is none.
static const char *op_synonym(const char *name) {
#define SYNONYM(op, words)                                                                                   \
  if (sol_name_in_list(name, words)) return #op;
#include "roofline/costs.def"
  return 0;
}

SolStatus sol_op_find(const char *name, int *op, SolError *err) {
  if (!name || !op) return sol_fail(err, SOL_ERR_ARGUMENT, "name and op must not be NULL");
  for (int i = 0; i < sol_op_row_count; i++) {
    if (!sol_same_name(name, op_name(0, i))) continue;
    *op = i;
    return SOL_OK;
  }
  const char *synonym = op_synonym(name);
  if (!synonym) return sol_fail_unknown(err, "operation", name, op_name, 0, sol_op_row_count);
  SolStatus status = sol_fail(err, SOL_ERR_NOT_FOUND, "unknown operation '%.80s'", name);
  sol_hint(err, "here it is called %s", synonym);
  return status;
}

// The ledger

void sol_pass(SolLedger *l, const char *name) {
  if (l->status) return;
  if (l->count == SOL_MAX_PASSES) {
    l->status =
        sol_fail(l->err, SOL_ERR_NO_SPACE, "%s has more than %d kernels", l->info->name, SOL_MAX_PASSES);
    return;
  }
  l->whole_read = l->whole_written = 0;
  SolDtype math = l->dtype == SOL_FP64 ? SOL_FP64 : SOL_FP32;
  l->pass[l->count++] = (SolPass){name, {.launches = 1, .math = math, .unit = SOL_UNIT_VECTOR}};
}

static SolCost *current(SolLedger *l) {
  return &l->pass[l->count - 1].cost;
}

static bool is_float(SolDtype dtype) {
  return dtype < SOL_INT8;
}

void sol_matrix_math(SolLedger *l, SolDtype a, SolDtype b) {
  if (l->status) return;
  // Narrow operands are widened to the other's type on the way in; integers with floats likewise.
  bool b_wins = is_float(a) == is_float(b) ? sol_dtype_bits(b) > sol_dtype_bits(a) : is_float(b);
  current(l)->math = b_wins ? b : a;
  current(l)->unit = SOL_UNIT_DEFAULT;
}

void sol_flops(SolLedger *l, double flops) {
  if (!l->status) current(l)->flops += flops;
}

// In whole numbers: fp4 packs two elements into a byte, and the last byte of a tensor may hold one.
static double bytes_of(double elements, SolDtype dtype) {
  int64_t bits = (int64_t)elements * sol_dtype_bits(dtype), bytes = (bits + 7) / 8;
  return (double)bytes;
}

static void move(SolLedger *l, const char *tensor, double elements, SolDtype dtype, bool write, bool whole) {
  if (l->status) return;
  SolCost *cost = current(l);
  double before = cost->bytes_read + cost->bytes_written;
  double bytes = elements <= SOL_EXACT ? bytes_of(elements, dtype) : elements;
  if (before + bytes > SOL_EXACT) {
    l->status =
        sol_fail(l->err, SOL_ERR_RANGE, "%s: with %s the bytes pass 2^53 and cannot be counted exactly",
                 l->info->name, tensor);
    return;
  }
  *(write ? &cost->bytes_written : &cost->bytes_read) += bytes;
  if (!whole) return;
  *(write ? &l->whole_written : &l->whole_read) += bytes;
  cost->trips++;
}

void sol_reads(SolLedger *l, const char *tensor, double elements, SolDtype dtype) {
  move(l, tensor, elements, dtype, false, true);
}

void sol_writes(SolLedger *l, const char *tensor, double elements, SolDtype dtype) {
  move(l, tensor, elements, dtype, true, true);
}

void sol_reads_side(SolLedger *l, const char *tensor, double elements, SolDtype dtype) {
  move(l, tensor, elements, dtype, false, false);
}

void sol_writes_side(SolLedger *l, const char *tensor, double elements, SolDtype dtype) {
  move(l, tensor, elements, dtype, true, false);
}

// Checks

static SolStatus check_dims(const SolOpArgs *args, const SolOpInfo *info, int *rank, SolError *err) {
  int given = SOL_MAX_DIMS;
  while (given > 0 && args->dim[given - 1] == 0) given--;
  if (given < info->rank_min || given > info->rank_max) {
    return sol_fail(err, SOL_ERR_ARGUMENT, "%s takes %s, not %d dimension%s", info->name, info->shape, given,
                    given == 1 ? "" : "s");
  }
  for (int i = 0; i < given; i++) {
    if (args->dim[i] < 1)
      return sol_fail(err, SOL_ERR_ARGUMENT, "%s: dimension %d is %lld, it must be at least 1", info->name,
                      i + 1, (long long)args->dim[i]);
    if (args->dim[i] > (int64_t)SOL_EXACT)
      return sol_fail(err, SOL_ERR_RANGE, "%s: dimension %d is beyond 2^53", info->name, i + 1);
  }
  *rank = given;
  return SOL_OK;
}

static SolStatus check_dtype(const char *op, const char *field, SolDtype dtype, unsigned allowed,
                             SolError *err) {
  if ((unsigned)dtype < SOL_DTYPE_COUNT && (allowed & BIT(dtype))) return SOL_OK;
  sol_fail(err, SOL_ERR_ARGUMENT, "%s cannot have %s %s", op, field, sol_dtype_name(dtype));
  if (!err) return SOL_ERR_ARGUMENT;
  size_t used = sol_format(err->hint, sizeof err->hint, "it takes");
  for (int i = 1; i < SOL_DTYPE_COUNT; i++) {
    if (!(allowed & BIT(i))) continue;
    used += sol_format(err->hint + used, sizeof err->hint - used, " %s", sol_dtype_name((SolDtype)i));
  }
  return SOL_ERR_ARGUMENT;
}

static SolStatus check_dtypes(const SolLedger *l, unsigned allowed, SolError *err) {
  const char *op = l->info->name;
  // Outputs may be quantised, and integer products are summed in int32. Weights may be narrower integers.
  unsigned out = allowed | BIT(SOL_INT8) | (allowed == MATRIX ? BIT(SOL_INT32) : 0u);
  SolStatus status = check_dtype(op, "dtype", l->dtype, allowed, err);
  if (!status) status = check_dtype(op, "out_dtype", l->out, out, err);
  if (!status) status = check_dtype(op, "weight_dtype", l->weight, allowed | BIT(SOL_INT8), err);
  if (!status) status = check_dtype(op, "kv_dtype", l->kv, allowed | BIT(SOL_INT8), err);
  if (!status) status = check_dtype(op, "id_dtype", l->id, IDS, err);
  return status;
}

static SolStatus check_options(const SolOpArgs *args, const SolOpInfo *info, SolError *err) {
#define OPTION(bit, number, field)                                                                           \
  if ((int64_t)args->field != 0 && !(info->options & (bit)))                                                 \
    return sol_fail(err, SOL_ERR_ARGUMENT, "%s takes no %s", info->name, #field);                            \
  if ((int64_t)args->field < 0)                                                                              \
    return sol_fail(err, SOL_ERR_ARGUMENT, "%s: %s must not be negative", info->name, #field);               \
  if ((int64_t)args->field > (int64_t)SOL_EXACT)                                                             \
    return sol_fail(err, SOL_ERR_RANGE, "%s: %s is beyond 2^53", info->name, #field);
  SOL_OP_OPTIONS(OPTION)
#undef OPTION
  if ((unsigned)args->phase > SOL_PHASE_DECODE)
    return sol_fail(err, SOL_ERR_ARGUMENT, "%s: no such phase: %d", info->name, (int)args->phase);
  if ((unsigned)args->axis > SOL_AXIS_ALL)
    return sol_fail(err, SOL_ERR_ARGUMENT, "%s: no such axis: %d", info->name, (int)args->axis);
  return SOL_OK;
}

// Checks of arguments that only one operation needs.
static SolStatus check_special(const SolLedger *l, const SolOpRow *row, SolError *err) {
  const char *op = l->info->name;
  if (row->cost == sol_cost_rope && (int64_t)l->d[2] % 2)
    return sol_fail(err, SOL_ERR_ARGUMENT, "%s: heads are rotated in pairs, a width of %.0f is odd", op,
                    l->d[2]);
  if (l->info->options & SOL_TAKES_KV_HEADS) {
    if ((int64_t)l->d[1] % (int64_t)l->kv_heads)
      return sol_fail(err, SOL_ERR_ARGUMENT, "%s: kv_heads %.0f does not divide the %.0f heads", op,
                      l->kv_heads, l->d[1]);
    if (l->queries > l->d[2])
      return sol_fail(err, SOL_ERR_ARGUMENT, "%s: queries %.0f are more than the %.0f tokens", op, l->queries,
                      l->d[2]);
    if (l->phase == SOL_PHASE_PREFILL && l->queries != l->d[2])
      return sol_fail(err, SOL_ERR_ARGUMENT, "%s: queries are for decode; prefill has all %.0f tokens", op,
                      l->d[2]);
  }
  if (l->info->options & SOL_TAKES_RADIUS) {
    for (int i = l->info->rank_max - l->rank; i < l->info->rank_max; i++)
      if (l->radius > l->d[i])
        return sol_fail(err, SOL_ERR_ARGUMENT, "%s: radius %.0f is wider than the grid's %.0f", op, l->radius,
                        l->d[i]);
  }
  return SOL_OK;
}

static SolDtype or_dtype(SolDtype given, SolDtype fallback) {
  return given ? given : fallback;
}

static double or_count(int64_t given, double fallback) {
  return given ? (double)given : fallback;
}

static void fill(SolLedger *l, const SolOpArgs *args) {
  int first = l->info->rank_max - l->rank;
  for (int i = 0; i < SOL_MAX_DIMS; i++)
    l->d[i] = i < first || i >= first + l->rank ? 1 : (double)args->dim[i - first];
  l->dtype = or_dtype(args->dtype, SOL_BF16);
  l->out = or_dtype(args->out_dtype, l->dtype);
  l->weight = or_dtype(args->weight_dtype, l->dtype);
  l->kv = or_dtype(args->kv_dtype, l->dtype);
  l->id = or_dtype(args->id_dtype, SOL_INT32);
  l->vocab = (double)args->vocab;
  l->kv_heads = or_count(args->kv_heads, l->d[1]);
  l->v_dim = or_count(args->v_dim, l->d[3]);
  l->queries = or_count(args->queries, args->phase == SOL_PHASE_DECODE ? 1 : l->d[2]);
  l->window = or_count(args->window, l->d[2]);
  l->bins = or_count(args->bins, 256);
  l->radius = or_count(args->radius, 1);
  l->phase = args->phase;
  l->axis = args->axis;
}

SolStatus sol_op_run(const SolOpArgs *args, SolCostHandler *handler, SolPass pass[SOL_MAX_PASSES], int *count,
                     SolError *err) {
  const SolOpRow *row = &sol_op_rows[args->op];
  SolLedger l = {.info = &row->info, .pass = pass, .err = err};
  SolStatus status = check_dims(args, l.info, &l.rank, err);
  if (!status) status = check_options(args, l.info, err);
  if (status) return status;
  fill(&l, args);
  status = check_dtypes(&l, row->dtypes, err);
  if (!status) status = check_special(&l, row, err);
  if (status) return status;
  handler(&l);
  *count = l.count;
  return l.status;
}

static SolStatus check_op(const SolOpArgs *args, const void *out, SolError *err) {
  if (!args || !out) return sol_fail(err, SOL_ERR_ARGUMENT, "args and out must not be NULL");
  if (!sol_op_info(args->op)) return sol_fail(err, SOL_ERR_ARGUMENT, "no such operation: %d", args->op);
  return SOL_OK;
}

SolStatus sol_op_cost(const SolOpArgs *args, SolCost *out, SolError *err) {
  SolStatus status = check_op(args, out, err);
  SolPass pass[SOL_MAX_PASSES];
  int count = 0;
  if (!status) status = sol_op_run(args, sol_op_rows[args->op].cost, pass, &count, err);
  if (!status) *out = pass[0].cost;
  return status;
}

SolStatus sol_op_unfused(const SolOpArgs *args, SolPass passes[SOL_MAX_PASSES], int *count, SolError *err) {
  SolStatus status = check_op(args, passes && count ? args : 0, err);
  if (status) return status;
  const SolOpRow *row = &sol_op_rows[args->op];
  if (!row->unfused)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "%s is a single kernel, fused or not", row->info.name);
  return sol_op_run(args, row->unfused, passes, count, err);
}
