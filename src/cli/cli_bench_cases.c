// Which cases sol bench runs: operations by name, at their own shapes or those given, in the types given.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/cli_bench.h"

static const double emulated_bytes = 16 << 20; // the emulator gets through them in a moment
static const double quick_bytes = 64 << 20;
static const double cpu_bytes = 512 << 20;

static const char *op_name_at(const void *ctx, int i) {
  (void)ctx;
  return ops_defs[i]->name;
}

static int check_names(const BenchRun *r) {
  const CommonArgs *common = &r->args->common;
  for (int i = 0; i < common->positional_count; i++) {
    int op = 0;
    while (op < OPS_COUNT && !sol_same_name(common->positional[i], ops_defs[op]->name)) op++;
    if (op < OPS_COUNT) continue;
    SolError err = {0};
    sol_fail_unknown(&err, "operation", common->positional[i], op_name_at, 0, OPS_COUNT);
    return cli_error(r->cli, &err, 0, 0, 0);
  }
  return EXIT_OK;
}

bool cli_bench_wanted(const BenchRun *r, const OpsDef *def) {
  const CommonArgs *common = &r->args->common;
  for (int i = 0; i < common->positional_count; i++)
    if (sol_same_name(common->positional[i], def->name)) return true;
  return !common->positional_count;
}

// "bf16,fp32", or several options.
static int read_dtypes(BenchRun *r) {
  const TextList *list = &r->args->dtypes;
  for (int i = 0; i < list->count; i++) {
    const char *p = list->text[i];
    for (size_t n = strcspn(p, ",");; p += n + 1, n = strcspn(p, ",")) {
      char name[32];
      SolError err = {0};
      sol_format(name, sizeof name, "%.*s", (int)(n < 30 ? n : 30), p);
      if (r->dtype_count == BENCH_DTYPES)
        return cli_fail(r->cli, "--dtype: more than %d types", BENCH_DTYPES);
      if (sol_dtype_find(name, &r->dtype[r->dtype_count++], &err))
        return cli_error(r->cli, &err, "--dtype", 0, 0);
      if (!p[n]) break;
    }
  }
  if (!list->count) r->dtype[0] = SOL_BF16, r->dtype[1] = SOL_FP32, r->dtype_count = 2;
  return EXIT_OK;
}

int cli_bench_add(BenchRun *r, const BenchRow *row) {
  if (r->count == r->room) {
    int more = r->room ? 2 * r->room : 64;
    BenchRow *rows = realloc(r->rows, sizeof *rows * (size_t)more);
    if (!rows) return cli_fail(r->cli, "out of memory");
    r->rows = rows, r->room = more;
  }
  r->rows[r->count++] = *row;
  return EXIT_OK;
}

static int add_case(BenchRun *r, const OpsDef *def, const OpsCase *c) {
  SolError err = {0};
  BenchRow row = {.def = def, .c = *c, .misalign = (int)r->args->misalign};
  SolStatus status = bench_cost(r->ctx, def, c, &row.cost, &err);
  if (status == SOL_ERR_NOT_FOUND || status == SOL_ERR_ARGUMENT) { // the operation does not take those types
    if (status == SOL_ERR_ARGUMENT && !r->refused.status) r->refused = err;
    return EXIT_OK;
  }
  if (status) return cli_error(r->cli, &err, 0, 0, 0);
  double bytes = row.cost.bytes_read + row.cost.bytes_written;
  SolBackend backend = sol_context_backend(r->ctx);
  double most = r->args->quick ? quick_bytes : backend == SOL_BACKEND_CPU ? cpu_bytes : 1e300;
  if (backend == SOL_BACKEND_EMU) most = emulated_bytes;
  if (bytes > most && !r->args->shapes.count) return r->left_out++, EXIT_OK;
  return cli_bench_add(r, &row);
}

static bool has_option(const OpsDef *def, int option, const char *name) {
  return def->option_names && option < def->options && sol_same_name(def->option_names[option], name);
}

static OpsCase case_of(const BenchRun *r, const int64_t dim[4], SolDtype dtype, int option) {
  OpsCase c = {.dtype = dtype,
               .out_dtype = r->args->out_dtype,
               .weight_dtype = r->args->weight_dtype,
               .option = option};
  memcpy(c.dim, dim, sizeof c.dim);
  return c;
}

// Which of the operation's own shapes moves about 128 MiB: large, and no larger than it takes.
static int usual_shape(const BenchRun *r, const OpsDef *def, SolDtype dtype) {
  static const double usual = 128 << 20;
  double best = 0;
  int at = 0;
  for (int s = 0; s < def->bench_count; s++) {
    OpsCase c = case_of(r, def->bench[s], dtype, 0);
    SolCost cost;
    if (bench_cost(r->ctx, def, &c, &cost, NULL)) continue;
    double bytes = cost.bytes_read + cost.bytes_written;
    double near = bytes < usual ? bytes / usual : usual / bytes;
    if (near > best) best = near, at = s;
  }
  return at;
}

// The first option at every shape, the others at one; a shape or an option that was given: all of it.
static bool takes_option(const BenchRun *r, const OpsDef *def, int s, SolDtype dtype, int option) {
  if (r->args->option) return has_option(def, option, r->args->option);
  if (!option) return true;
  return !r->args->quick && (s < 0 || s == usual_shape(r, def, dtype));
}

static int add_shape(BenchRun *r, const OpsDef *def, int s, const int64_t dim[4]) { // s: -1 for one given
  int code = EXIT_OK, options = def->options ? def->options : 1;
  for (int d = 0; d < r->dtype_count && !code; d++)
    for (int o = 0; o < options && !code; o++) {
      if (!takes_option(r, def, s, r->dtype[d], o)) continue;
      OpsCase c = case_of(r, dim, r->dtype[d], o);
      code = add_case(r, def, &c);
    }
  return code;
}

// As many dimensions as the operation has; fewer where its own shapes leave some out.
static bool rank_fits(const OpsDef *def, int rank) {
  int most = 1;
  for (const char *p = def->shape; *p; p++) most += *p == 'x';
  for (int s = 0; s < def->bench_count; s++)
    if (rank < most && def->bench[s][rank - 1] && !def->bench[s][rank]) return true;
  return rank == most;
}

static int add_op(BenchRun *r, const OpsDef *def) {
  const TextList *list = &r->args->shapes;
  int code = EXIT_OK, rank = 0;
  for (int i = 0; i < list->count && !code; i++) {
    int64_t dim[4] = {0};
    SolError err = {0};
    if (sol_parse_shape(list->text[i], strlen(list->text[i]), 4, dim, &rank, &err))
      return cli_error(r->cli, &err, "--shape", list->text[i], strlen(list->text[i]));
    if (!rank_fits(def, rank))
      return cli_fail(r->cli, "--shape %.60s: %s has shapes %s", list->text[i], def->name, def->shape);
    code = add_shape(r, def, -1, dim);
  }
  for (int s = 0; s < def->bench_count && !code && !list->count; s++)
    code = add_shape(r, def, s, def->bench[s]);
  return code;
}

int cli_bench_list(BenchRun *r) {
  if (r->args->random) return cli_bench_draw(r);
  int code = EXIT_OK;
  for (int op = 0; op < OPS_COUNT && !code; op++)
    if (cli_bench_wanted(r, ops_defs[op])) code = add_op(r, ops_defs[op]);
  if (!code && !r->count) {
    if (r->left_out) return cli_fail(r->cli, "every case is too large here; name one with --shape");
    if (r->refused.status) return cli_error(r->cli, &r->refused, 0, 0, 0);
    return cli_fail(r->cli, "no operation named takes these types%s",
                    r->args->option ? " or has that option" : "");
  }
  return code;
}

int cli_bench_check_args(BenchRun *r) {
  enum { MOST = 4096 };
  if (r->args->misalign > MOST) return cli_fail(r->cli, "--misalign: at most %d", MOST);
  if (r->args->workers > MOST) return cli_fail(r->cli, "--workers: at most %d", MOST);
  const char *alone = r->args->shapes.count   ? "--shape"
                      : r->args->option       ? "--option"
                      : r->args->out_dtype    ? "--out-dtype"
                      : r->args->weight_dtype ? "--weight-dtype"
                                              : NULL;
  if (r->args->random && alone) return cli_fail(r->cli, "--random draws that itself: leave out %s", alone);
  bool limits = r->args->least_bytes > 0 || r->args->most_bytes > 0 || r->args->list;
  if (!r->args->random && limits)
    return cli_fail(r->cli, "--list, --min-bytes and --max-bytes go with --random");
  int code = check_names(r);
  return code ? code : read_dtypes(r);
}
