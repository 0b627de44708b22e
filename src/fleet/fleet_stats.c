// Which GPU of a fleet is slow: each figure of each rank against the median of all.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/json_read.h"
#include "fleet/fleet.h"

enum { LEAST_RANKS = 3, MOST_FIGURES = 4096 };
static const double least_share = 0.05, most_deviations = 5, mad_to_sigma = 1.4826;

typedef struct Figure {
  char name[96];
  bool less_is_better;
  double *values; // of each rank; not a number: it has none
} Figure;

typedef struct Figures {
  Figure *list;
  int count, ranks;
} Figures;

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double fleet_median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_value);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static Figure *figure_of(Figures *f, const char *name) {
  for (int i = 0; i < f->count; i++)
    if (strcmp(f->list[i].name, name) == 0) return &f->list[i];
  if (f->count == MOST_FIGURES) return NULL;
  Figure *new = &f->list[f->count];
  new->values = calloc((size_t)f->ranks, sizeof *new->values);
  if (!new->values) return NULL;
  for (int i = 0; i < f->ranks; i++) new->values[i] = NAN;
  sol_format(new->name, sizeof new->name, "%s", name);
  f->count++;
  return new;
}

static void note(Figures *f, int rank, const char *name, double value, bool less) {
  Figure *figure = figure_of(f, name);
  if (!figure || !(value > 0)) return;
  figure->values[rank] = value;
  figure->less_is_better = less;
}

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static void note_measured(Figures *f, int rank, SolJson measured) {
  SolJsonIter it = {.container = measured};
  SolJson key, value;
  char name[64];
  double number;
  while (sol_json_next(&it, &key, &value))
    if (sol_json_string(key, name, sizeof name) && sol_json_number(value, &number))
      note(f, rank, name, number, ends_with(name, "_us") || ends_with(name, "_latency"));
}

static void note_cases(Figures *f, int rank, SolJson cases) {
  static const char *const parts[] = {"op", "option", "dtype", "shape"};
  SolJsonIter it = {.container = cases};
  SolJson row, value;
  double us;
  while (sol_json_next(&it, NULL, &row)) {
    char name[96] = "", part[40];
    if (!sol_json_get(row, "time_us", &value) || !sol_json_number(value, &us)) continue;
    for (size_t i = 0, n = 0; i < SOL_COUNT(parts) && n < sizeof name; i++)
      if (sol_json_get(row, parts[i], &value) && sol_json_string(value, part, sizeof part) && *part)
        n += sol_format(name + n, sizeof name - n, "%s%s", n ? " " : "", part);
    note(f, rank, name, us, true);
  }
}

static void note_output(Figures *f, int rank, const SolBuffer *output) {
  SolJson root, part;
  if (!output->text || sol_json_check(output->text, output->length, &root, NULL)) return;
  if (sol_json_get(root, "measured", &part)) note_measured(f, rank, part);
  if (sol_json_get(root, "cases", &part)) note_cases(f, rank, part);
}

// The values that there are, and their median and the median of their distances from it.
static int spread(const Figure *figure, int ranks, double *room, double *median, double *deviation) {
  int n = 0;
  for (int i = 0; i < ranks; i++)
    if (figure->values[i] == figure->values[i]) room[n++] = figure->values[i];
  if (n < LEAST_RANKS) return n;
  *median = fleet_median(room, n);
  for (int i = 0; i < n; i++) room[i] = fabs(room[i] - *median);
  *deviation = mad_to_sigma * fleet_median(room, n);
  return n;
}

static int name_slow(const Figures *f, FleetSlow *out, int cap, double *room) {
  int count = 0;
  for (int i = 0; i < f->count; i++) {
    const Figure *figure = &f->list[i];
    double median, deviation;
    if (spread(figure, f->ranks, room, &median, &deviation) < LEAST_RANKS) continue;
    for (int rank = 0; rank < f->ranks && count < cap; rank++) {
      double value = figure->values[rank], worse = figure->less_is_better ? value - median : median - value;
      if (!(worse > least_share * median && worse > most_deviations * deviation)) continue;
      FleetSlow *s = &out[count++];
      *s = (FleetSlow){.rank = rank, .value = value, .median = median, .deviations = worse / deviation};
      sol_format(s->figure, sizeof s->figure, "%s", figure->name);
    }
  }
  return count;
}

// The GPU that an answer names; empty: none.
static void read_uuid(const SolBuffer *output, char *out, size_t cap) {
  SolJson root, value;
  if (!output->text || sol_json_check(output->text, output->length, &root, NULL)) return;
  if (!sol_json_get(root, "uuid", &value) || !sol_json_string(value, out, cap)) out[0] = 0;
}

void fleet_find_shared(FleetRun *run) {
  for (int i = 0; i < run->jobs->count; i++) {
    int rank = run->jobs->list[i].rank;
    if (rank < 0 || rank >= run->rank_count) continue;
    read_uuid(&run->results[i].output, run->ranks[rank].gpu, sizeof run->ranks[rank].gpu);
  }
  for (int i = 0; i < run->rank_count; i++)
    for (int k = 0; k < i; k++)
      if (run->ranks[i].gpu[0] && strcmp(run->ranks[i].gpu, run->ranks[k].gpu) == 0)
        run->ranks[i].shared = run->ranks[k].shared = true;
}

int fleet_slow(const FleetRun *run, FleetSlow *out, int cap) {
  Figures f = {.list = calloc(MOST_FIGURES, sizeof(Figure)), .ranks = run->rank_count};
  double *room = calloc((size_t)run->rank_count, sizeof *room);
  int count = 0;
  for (int i = 0; f.list && room && i < run->jobs->count; i++) {
    int rank = run->jobs->list[i].rank;
    if (rank < 0 || rank >= run->rank_count || (run->ranks && run->ranks[rank].shared)) continue;
    note_output(&f, rank, &run->results[i].output);
  }
  if (f.list && room) count = name_slow(&f, out, cap, room);
  for (int i = 0; f.list && i < f.count; i++) free(f.list[i].values);
  free(f.list);
  free(room);
  return count;
}
