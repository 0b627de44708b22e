#include "report/report_bench.h"

#include <math.h>

#include "base/format.h"

static const double large = 64.0 * (1 << 20); // what is bound by bandwidth, not by latency
static const double near_light = 1.05;

// A dimension that was left out, at the end, is zero.
static int rank_of(const OpsCase *c) {
  int rank = 4;
  while (rank > 1 && !c->dim[rank - 1]) rank--;
  return rank;
}

void report_bench_shape(const BenchRow *row, char *out, size_t cap) {
  size_t n = 0;
  out[0] = 0;
  for (int i = 0; i < rank_of(&row->c) && n < cap; i++)
    n += sol_format(out + n, cap - n, "%s%lld", i ? "x" : "", (long long)row->c.dim[i]);
}

const char *report_bench_option(const BenchRow *row) {
  return row->def->option_names && row->def->options > row->c.option ? row->def->option_names[row->c.option]
                                                                     : "";
}

static SolDtype out_dtype_of(const BenchRow *row) {
  return ops_or(row->c.out_dtype, row->c.dtype);
}

static double number_of(SolJson object, const char *key) {
  SolJson value;
  double number = 0;
  return sol_json_get(object, key, &value) && sol_json_number(value, &number) ? number : 0;
}

void report_bench_before(BenchRow *row, SolJson root) {
  SolJson cases, each;
  char shape[96];
  report_bench_shape(row, shape, sizeof shape);
  if (!sol_json_get(root, "cases", &cases)) return;
  SolJsonIter it = {cases, 0};
  while (sol_json_next(&it, NULL, &each)) {
    if (!sol_json_text_is(each, "op", row->def->name) || !sol_json_text_is(each, "shape", shape) ||
        !sol_json_text_is(each, "dtype", sol_dtype_name(row->c.dtype)) ||
        !sol_json_text_is(each, "out_dtype", sol_dtype_name(out_dtype_of(row))) ||
        !sol_json_text_is(each, "option", report_bench_option(row)) ||
        (int)number_of(each, "misalign") != row->misalign || (int64_t)number_of(each, "pad") != row->c.pad)
      continue;
    row->before_us = number_of(each, "time_us");
    row->before_spread = number_of(each, "spread");
  }
}

double report_bench_to_light(const BenchRow *row) {
  const BenchResult *r = &row->result;
  const Timing *light = r->has_rows_light ? &r->rows_light : &r->light;
  return row->timed && light->us.median > 0 ? r->time.us.median / light->us.median : 0;
}

int report_bench_changed(const BenchRow *row) {
  if (!row->timed || !(row->before_us > 0)) return 0;
  double change = row->result.time.us.median / row->before_us - 1;
  double noise = row->result.time.us.spread + row->before_spread;
  if (noise < 0.01) noise = 0.01;
  return change > noise ? 1 : change < -noise ? -1 : 0;
}

// A table takes its columns from its fullest row: every row has every column, an empty one where there is
// no value.
static void cell(Fact *row, const char *key, const char *label, FactUnit unit, FactBasis basis, double value,
                 bool there) {
  if (there)
    fact_number(row, key, label, unit, basis, value);
  else if (label)
    fact_text(row, 0, label, "");
}

static double bytes_of(const BenchRow *row) {
  return row->cost.bytes_read + row->cost.bytes_written;
}

static void timed_cells(Fact *f, const BenchRow *row, bool odd, bool before) {
  const BenchResult *r = &row->result;
  double us = r->time.us.median;
  bool ok = row->timed;
  cell(f, "time_us", "time", UNIT_US, BASIS_MEASURED, us, ok);
  cell(f, "bytes_per_s", "rate", UNIT_BYTES_PER_S, BASIS_MEASURED, us > 0 ? bytes_of(row) / us * 1e6 : 0, ok);
  cell(f, "light_us", "light", UNIT_US, BASIS_MEASURED, r->light.us.median, ok);
  cell(f, "to_light", "time / light", UNIT_TIMES, BASIS_MEASURED, ok ? us / r->light.us.median : 0, ok);
  bool has_odd = ok && r->has_rows_light;
  cell(f, "rows_light_us", odd ? "light, rows" : 0, UNIT_US, BASIS_MEASURED, r->rows_light.us.median,
       has_odd);
  cell(f, "to_rows_light", odd ? "time / that" : 0, UNIT_TIMES, BASIS_MEASURED,
       has_odd ? us / r->rows_light.us.median : 0, has_odd);
  cell(f, "spread", "spread", UNIT_SHARE, BASIS_MEASURED, r->time.us.spread, ok);
  bool known = ok && row->before_us > 0;
  cell(f, "before_us", before ? "before" : 0, UNIT_US, BASIS_MEASURED, row->before_us, known);
  cell(f, "change", before ? "change" : 0, UNIT_SHARE, BASIS_MEASURED, known ? us / row->before_us - 1 : 0,
       known);
  int changed = report_bench_changed(row);
  if (before) fact_text(f, "verdict", "", changed > 0 ? "slower" : changed < 0 ? "faster" : "");
}

static void counted_cells(Fact *f, const BenchRow *row) {
  const SolEmuCounts *c = &row->counts.total;
  bool ok = row->counted;
  double ideal = (double)c->sectors_ideal;
  cell(f, "launches", "launches", UNIT_PLAIN, BASIS_EXACT, (double)row->counts.launches, ok);
  cell(f, "requests", "requests", UNIT_PLAIN, BASIS_EXACT, (double)c->requests, ok);
  cell(f, "sectors", "sectors", UNIT_PLAIN, BASIS_EXACT, (double)c->sectors, ok);
  cell(f, "ideal_sectors", "ideal", UNIT_PLAIN, BASIS_EXACT, ideal, ok);
  cell(f, "to_ideal", "sectors / ideal", UNIT_TIMES, BASIS_EXACT, ideal > 0 ? (double)c->sectors / ideal : 0,
       ok && ideal > 0);
  cell(f, "wavefronts", "wavefronts", UNIT_PLAIN, BASIS_EXACT, (double)c->wavefronts, ok);
  cell(f, "ideal_wavefronts", "ideal wavef.", UNIT_PLAIN, BASIS_EXACT, (double)c->wavefronts_ideal, ok);
  cell(f, "dram_read_bytes", "DRAM read", UNIT_BYTES, BASIS_MODELLED, (double)c->dram_read, ok);
  cell(f, "dram_write_bytes", "written", UNIT_BYTES, BASIS_MODELLED, (double)c->dram_write, ok);
}

// JSON only: how it was measured.
static void machine_cells(Fact *f, const BenchRow *row) {
  const Timing *t = &row->result.time;
  fact_number(f, "bytes_read", 0, UNIT_BYTES, BASIS_EXACT, row->cost.bytes_read);
  fact_number(f, "bytes_written", 0, UNIT_BYTES, BASIS_EXACT, row->cost.bytes_written);
  fact_number(f, "misalign", 0, UNIT_PLAIN, BASIS_NONE, row->misalign);
  if (!row->c.pad) fact_number(f, "pad", 0, UNIT_PLAIN, BASIS_NONE, 0);
  if (row->c.weight_dtype) fact_text(f, "weight_dtype", 0, sol_dtype_name(row->c.weight_dtype));
  if (row->c.id_dtype) fact_text(f, "id_dtype", 0, sol_dtype_name(row->c.id_dtype));
  fact_number(f, "option_number", 0, UNIT_PLAIN, BASIS_NONE, row->c.option);
  fact_number(f, "number", 0, UNIT_PLAIN, BASIS_NONE, (double)row->number);
  fact_bool(f, "checked", 0, row->checked);
  if (row->checked) fact_number(f, "worst_error", 0, UNIT_PLAIN, BASIS_NONE, row->worst);
  if (row->message[0]) fact_text(f, "error", 0, row->message);
  if (!row->timed) return;
  fact_number(f, "least_us", 0, UNIT_US, BASIS_MEASURED, t->us.least);
  fact_number(f, "most_us", 0, UNIT_US, BASIS_MEASURED, t->us.most);
  if (t->host_us > 0) {
    fact_number(f, "host_us", 0, UNIT_US, BASIS_MEASURED, t->host_us);
    fact_number(f, "host_over_us", 0, UNIT_US, BASIS_MEASURED, t->host_over_us);
  }
  fact_number(f, "rounds", 0, UNIT_PLAIN, BASIS_NONE, t->us.count);
  fact_number(f, "calls", 0, UNIT_PLAIN, BASIS_NONE, t->calls);
  fact_number(f, "sets", 0, UNIT_PLAIN, BASIS_NONE, t->sets);
  fact_number(f, "footprint_bytes", 0, UNIT_BYTES, BASIS_NONE, t->footprint);
}

void report_bench_rows(Fact *root, const BenchRow *rows, int count, bool before) {
  static const FactColumn columns[] = {{"op", 0},           {"dtype", 0},
                                       {"shape", FIT_CUT},  {"time", 0},
                                       {"time / light", 0}, {"time / that", 0},
                                       {"change", 0},       {"", 0},
                                       {"sectors", 0},      {"sectors / ideal", 0},
                                       {"result", 0},       {"spread", 0},
                                       {"note", FIT_WRAP},  {"to", 0},
                                       {"option", 0},       {"apart", 0},
                                       {"rate", 0},         {"bytes", 0},
                                       {"light", 0},        {"launches", 0},
                                       {"wavefronts", 0},   {"ideal", 0},
                                       {"light, rows", 0},  {"before", 0},
                                       {"requests", 0},     {0}};
  Fact *list = fact_list(root, "cases", "");
  fact_columns(list, columns);
  bool odd = false, any_option = false, padded = false, mixed = false, timed = false, noted = false,
       counted = false;
  for (int i = 0; i < count; i++) {
    odd |= rows[i].timed && rows[i].result.has_rows_light;
    any_option |= report_bench_option(&rows[i])[0] != 0;
    mixed |= out_dtype_of(&rows[i]) != rows[i].c.dtype;
    padded |= rows[i].c.pad != 0;
    timed |= rows[i].timed;
    counted |= rows[i].counted;
    noted |= rows[i].message[0] != 0;
  }
  for (int i = 0; i < count; i++) {
    const BenchRow *row = &rows[i];
    Fact *f = fact_object(list, 0, 0);
    char shape[96];
    report_bench_shape(row, shape, sizeof shape);
    fact_text(f, "op", "op", row->def->name);
    fact_text(f, "option", any_option ? "option" : 0, report_bench_option(row));
    fact_text(f, "dtype", "dtype", sol_dtype_name(row->c.dtype));
    fact_text(f, "out_dtype", mixed ? "to" : 0, sol_dtype_name(out_dtype_of(row)));
    fact_text(f, "shape", "shape", shape);
    if (padded) cell(f, "pad", "apart", UNIT_PLAIN, BASIS_NONE, (double)row->c.pad, row->c.pad != 0);
    fact_number(f, "bytes", "bytes", UNIT_BYTES, BASIS_EXACT, bytes_of(row));
    if (timed) timed_cells(f, row, odd, before);
    if (counted) counted_cells(f, row);
    if (counted) fact_text(f, 0, "result", row->wrong ? "wrong" : row->checked ? "right" : "not checked");
    if (noted) fact_text(f, 0, "note", row->message);
    machine_cells(f, row);
  }
}

typedef struct Mean {
  double logs;
  int count;
} Mean;

static void mean_add(Mean *m, double ratio) {
  if (ratio > 0) m->logs += log(ratio), m->count++;
}

static void mean_fact(Fact *f, const char *key, const char *label, const Mean *m) {
  if (m->count) fact_number(f, key, label, UNIT_TIMES, BASIS_MEASURED, exp(m->logs / m->count));
}

void report_bench_summary(Fact *root, const BenchRow *rows, int count, bool before) {
  Mean all = {0}, big = {0}, change = {0};
  double worst = 0, host = 0, host_most = 0;
  int at = -1, beyond = 0, slower = 0, faster = 0, timed = 0, bad = 0, hosts = 0;
  for (int i = 0; i < count; i++) {
    const BenchRow *row = &rows[i];
    timed += row->timed, bad += row->status != SOL_OK;
    if (!row->timed) continue;
    double ratio = report_bench_to_light(row);
    mean_add(&all, ratio);
    if (bytes_of(row) >= large) {
      mean_add(&big, ratio);
      beyond += ratio > near_light;
      if (ratio > worst) worst = ratio, at = i;
    }
    if (row->before_us > 0) mean_add(&change, row->result.time.us.median / row->before_us);
    slower += report_bench_changed(row) > 0, faster += report_bench_changed(row) < 0;
    if (row->result.time.host_us > 0) {
      double over = row->result.time.host_over_us;
      host += over, hosts++;
      if (hosts == 1 || over > host_most) host_most = over;
    }
  }
  if (!timed && !bad) return;
  Fact *f = fact_object(root, "summary", "Summary");
  fact_number(f, "timed", "cases timed", UNIT_PLAIN, BASIS_NONE, timed);
  if (bad) fact_number(f, "failed", "cases that failed", UNIT_PLAIN, BASIS_NONE, bad);
  mean_fact(f, "to_light", "time / light, geometric mean", &all);
  mean_fact(f, "to_light_large", "the same, cases of 64 MiB or more", &big);
  if (at >= 0) {
    char shape[96];
    report_bench_shape(&rows[at], shape, sizeof shape);
    fact_number(f, "worst_large", "worst of those", UNIT_TIMES, BASIS_MEASURED, worst);
    fact_textf(f, "worst_large_case", "which is", "%s %s %s", rows[at].def->name,
               sol_dtype_name(rows[at].c.dtype), shape);
    fact_number(f, "beyond_light", "of those beyond 1.05x", UNIT_PLAIN, BASIS_NONE, beyond);
  }
  if (hosts) {
    fact_number(f, "host_over_us", "host time of a call beyond the driver's own launch, mean", UNIT_US,
                BASIS_MEASURED, host / hosts);
    fact_number(f, "host_over_most_us", "the same, most", UNIT_US, BASIS_MEASURED, host_most);
  }
  if (before) {
    mean_fact(f, "to_before", "time / before, geometric mean", &change);
    fact_number(f, "slower", "slower beyond the spread", UNIT_PLAIN, BASIS_NONE, slower);
    fact_number(f, "faster", "faster beyond the spread", UNIT_PLAIN, BASIS_NONE, faster);
  }
}
