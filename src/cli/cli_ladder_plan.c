// What sol ladder runs, and where.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/cli_ladder.h"

enum { MAX_RESULTS = 64 << 20 };

static bool is_file(const char *argument) {
  size_t n = strlen(argument);
  return (n > 5 && !strcmp(argument + n - 5, ".json")) || strchr(argument, '/');
}

// "all", "ladders" and "sweeps" select several.
static bool covers(const char *word, const Ladder *l) {
  if (sol_same_name(word, "all")) return true;
  if (sol_same_name(word, "ladders")) return !l->sweep;
  return sol_same_name(word, "sweeps") ? l->sweep : sol_same_name(word, l->name);
}

static const char *word_at(const void *ctx, int i) {
  static const char *const groups[] = {"all", "ladders", "sweeps"};
  (void)ctx;
  return i < LADDER_COUNT ? ladders[i]->name : groups[i - LADDER_COUNT];
}

static int check_names(LadderJob *j) {
  const CommonArgs *common = &j->args->common;
  for (int i = 0; i < common->positional_count; i++) {
    const char *word = common->positional[i];
    int l = 0;
    while (l < LADDER_COUNT && !covers(word, ladders[l])) l++;
    if (l < LADDER_COUNT || sol_same_name(word, "sweeps") || sol_same_name(word, "ladders")) continue;
    if (is_file(word)) {
      if (j->results_path) return cli_fail(j->cli, "one file of results at most");
      j->results_path = word;
      continue;
    }
    SolError err = {0};
    sol_fail_unknown(&err, "ladder", word, word_at, 0, LADDER_COUNT + 3);
    return cli_error(j->cli, &err, 0, 0, 0);
  }
  return EXIT_OK;
}

static bool wanted(const LadderJob *j, const Ladder *l) {
  const CommonArgs *common = &j->args->common;
  for (int i = 0; i < common->positional_count; i++)
    if (covers(common->positional[i], l)) return true;
  return common->positional_count == (j->results_path ? 1 : 0); // a file alone, or --compare alone: all
}

static int read_case(const LadderJob *j, const Ladder *l, LadderCase *c) {
  const LadderArgs *args = j->args;
  SolError err = {0};
  *c = (LadderCase){.dtype = args->dtype ? args->dtype : l->dtypes[0]};
  memcpy(c->dim, args->small ? l->small : l->size, sizeof c->dim);
  if (args->shape) {
    int rank = 0, most = 1;
    for (const char *p = l->shape; *p; p++) most += *p == 'x';
    memset(c->dim, 0, sizeof c->dim);
    if (sol_parse_shape(args->shape, strlen(args->shape), 4, c->dim, &rank, &err))
      return cli_error(j->cli, &err, "--shape", args->shape, strlen(args->shape));
    if (rank != most) {
      char own[96];
      report_ladder_shape_text(l, l->size, own, sizeof own);
      return cli_fail(j->cli, "--shape %.60s: %s has sizes %s, %s by default", args->shape, l->name, l->shape,
                      own);
    }
  }
  bool takes = false;
  char types[64] = "";
  size_t n = 0;
  for (int i = 0; i < 4 && l->dtypes[i]; i++) {
    takes |= l->dtypes[i] == c->dtype;
    n += sol_format(types + n, sizeof types - n, "%s%s", i ? ", " : "", sol_dtype_name(l->dtypes[i]));
  }
  if (!takes) return cli_fail(j->cli, "--dtype %s: %s takes %s", sol_dtype_name(c->dtype), l->name, types);
  if (!ladder_accept(l, c, &err)) return EXIT_OK;
  char message[sizeof err.message];
  sol_format(message, sizeof message, "%s: %s", l->name, err.message);
  memcpy(err.message, message, sizeof message);
  return cli_error(j->cli, &err, args->shape ? "--shape" : 0, 0, 0);
}

static int add(LadderJob *j, const Ladder *l) {
  const TextList *only = &j->args->rungs;
  LadderAnswer *a = &j->answers[j->count];
  *a = (LadderAnswer){.ladder = l};
  int code = read_case(j, l, &a->c);
  if (code) return code;
  a->rows = calloc((size_t)l->rung_count, sizeof *a->rows);
  if (!a->rows) return cli_fail(j->cli, "out of memory");
  j->count++;
  for (int r = 0; r < l->rung_count; r++) {
    bool take = !only->count;
    for (int i = 0; i < only->count; i++) take |= sol_same_name(only->text[i], l->rungs[r].name);
    if (!take) continue;
    a->rows[a->count++] = (LadderRow){.rung = &l->rungs[r], .bytes = l->bytes(&a->c, &l->rungs[r])};
  }
  return EXIT_OK;
}

// Every --rung must be one of some ladder named.
static int check_rungs(const LadderJob *j) {
  const TextList *only = &j->args->rungs;
  for (int i = 0; i < only->count; i++) {
    SolError err = {0};
    bool found = false;
    for (int a = 0; a < j->count && !found; a++)
      found = ladder_rung(j->answers[a].ladder, only->text[i], &err) >= 0;
    if (!found) return cli_error(j->cli, &err, "--rung", 0, 0);
  }
  return EXIT_OK;
}

static int read_results(LadderJob *j) {
  if (!j->results_path) {
    if (j->args->stored) return cli_fail(j->cli, "--stored needs a file of results");
    return EXIT_OK;
  }
  if (!j->args->compare && !j->args->markdown && !j->args->stored)
    return cli_fail(j->cli, "'%.80s' is a file of results; use it with --compare, --markdown or --stored",
                    j->results_path);
  SolError err = {0};
  size_t length = 0;
  SolJson list, value;
  j->results_text = cli_read_file(j->results_path, MAX_RESULTS, &length, &err);
  if (!j->results_text) return cli_error(j->cli, &err, 0, 0, 0);
  if (sol_json_check(j->results_text, length, &j->results, &err))
    return cli_error(j->cli, &err, j->results_path, j->results_text, length);
  if (!sol_json_get(j->results, "ladders", &list) || sol_json_kind(list) != SOL_JSON_ARRAY)
    return cli_fail(j->cli, "'%.120s' is not what sol ladder --json prints: it has no ladders",
                    j->results_path);
  if (sol_json_get(j->results, "gpu", &value)) sol_json_string(value, j->where.gpu, sizeof j->where.gpu);
  if (sol_json_get(j->results, "driver", &value))
    sol_json_string(value, j->where.driver, sizeof j->where.driver);
  if (sol_json_get(j->results, "date", &value)) sol_json_string(value, j->where.date, sizeof j->where.date);
  if (sol_json_get(j->results, "device", &value))
    sol_json_string(value, j->results_device, sizeof j->results_device);
  if (!j->where.gpu[0] && j->args->compare)
    return cli_fail(j->cli, "'%.120s' holds nothing measured on a GPU", j->results_path);
  return EXIT_OK;
}

static int open_session(LadderJob *j, const LadderOptions *options, LadderSession **out, SolError *err) {
  LadderSession *s = calloc(1, sizeof *s);
  if (!s) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory"), EXIT_FAILED;
  if (!ladder_session_open(s, options, err)) return *out = s, EXIT_OK;
  (void)j;
  ladder_session_close(s);
  free(s);
  return EXIT_USAGE;
}

// The GPU of the results, or of this machine, that a prediction is compared with.
static int choose_device(LadderJob *j, const char *gpu, const SolDevice **out) {
  int count = 0;
  SolError err = {0};
  if (j->args->device) {
    int code = cli_devices(j->cli, j->args->device, out, 1, &count);
    const SolDevice *has = NULL;
    if (code || !gpu[0]) return code;
    if (!sol_device_find(gpu, &has, NULL) && has == *out) return EXIT_OK;
    return cli_fail(j->cli, "--device %s: the measured times are of %s; --backend emu predicts alone",
                    (*out)->id, gpu);
  }
  if (!gpu[0]) return cli_devices(j->cli, j->results_device[0] ? j->results_device : NULL, out, 1, &count);
  if (!sol_device_find(gpu, out, &err)) return EXIT_OK;
  sol_hint(&err, "--backend cuda measures alone");
  return cli_error(j->cli, &err, 0, 0, 0);
}

// Whether the GPU is the one that --device names; with no --device it is.
static bool is_asked_for(const LadderJob *j, const char *gpu) {
  const SolDevice *asked = NULL, *has = NULL;
  if (!j->args->device) return true;
  return !sol_device_find(j->args->device, &asked, NULL) && !sol_device_find(gpu, &has, NULL) && asked == has;
}

static int open_backends(LadderJob *j) {
  const LadderArgs *args = j->args;
  LadderOptions options = {.backend = SOL_BACKEND_CUDA,
                           .workers = (int)args->workers,
                           .unchecked = args->no_check,
                           .quick = args->quick,
                           .progress = cli_launch_progress,
                           .progress_ctx = &j->shown};
  SolError err = {0};
  bool wants_gpu = args->backend != LADDER_EMU && !j->results.text;
  if (wants_gpu) {
    int code = open_session(j, &options, &j->gpu, &err);
    if (code && args->backend != LADDER_AUTO) return cli_error(j->cli, &err, 0, 0, 0);
    if (code && args->compare) sol_format(j->no_gpu, sizeof j->no_gpu, "%s", err.message);
    if (!code && args->backend == LADDER_AUTO && !is_asked_for(j, j->gpu->timer.info.name)) {
      ladder_session_close(j->gpu);
      free(j->gpu);
      j->gpu = NULL;
    }
  }
  if (j->gpu) {
    sol_format(j->where.gpu, sizeof j->where.gpu, "%s", j->gpu->timer.info.name);
    sol_format(j->where.driver, sizeof j->where.driver, "%s", j->gpu->timer.info.driver);
  }
  if (args->compare && !j->where.gpu[0])
    return cli_fail(j->cli, "--compare: nothing is measured here%s%s%s; give a file of results",
                    j->no_gpu[0] ? " (" : "", j->no_gpu, j->no_gpu[0] ? ")" : "");
  const SolDevice *known;
  bool alone = args->backend == LADDER_AUTO && j->gpu && !args->compare &&
               sol_device_find(j->where.gpu, &known, NULL) != SOL_OK;
  if (alone) sol_format(j->no_device, sizeof j->no_device, "%s", j->where.gpu);
  if (args->backend == LADDER_CUDA || alone) return EXIT_OK;
  int code = choose_device(j, j->where.gpu, &j->where.device);
  if (code || args->stored) return code;
  options.backend = SOL_BACKEND_EMU;
  options.device = j->where.device;
  code = open_session(j, &options, &j->emu, &err);
  return code ? cli_error(j->cli, &err, 0, 0, 0) : EXIT_OK;
}

int cli_ladder_plan(LadderJob *j) {
  enum { MOST_WORKERS = 4096 };
  if (j->args->workers > MOST_WORKERS) return cli_fail(j->cli, "--workers: at most %d", MOST_WORKERS);
  if (j->args->small && j->args->shape) return cli_fail(j->cli, "--small and --shape exclude each other");
  int code = check_names(j);
  if (code) return code;
  j->answers = calloc(LADDER_COUNT, sizeof *j->answers);
  if (!j->answers) return cli_fail(j->cli, "out of memory");
  for (int i = 0; i < LADDER_COUNT && !code; i++)
    if (wanted(j, ladders[i])) code = add(j, ladders[i]);
  if (!code) code = check_rungs(j);
  if (!code) code = read_results(j);
  return code ? code : open_backends(j);
}

void cli_ladder_plan_free(LadderJob *j) {
  if (j->emu) ladder_session_close(j->emu);
  if (j->gpu) ladder_session_close(j->gpu);
  free(j->emu);
  free(j->gpu);
  for (int i = 0; i < j->count; i++) free(j->answers[i].rows);
  free(j->answers);
  free(j->results_text);
}
