#include "base/error.h"
#include "base/heap.h"
#include "base/json_read.h"
#include "profile/profile_wire.h"

struct ProfileReadKernel {
  const char *name; // NULL: not reported
  double registers, static_shared, local_bytes;
};

void profile_reader_free(ProfileReader *r) {
  sol_arena_free(&r->arena);
  sol_heap_free(r->kernels);
  *r = (ProfileReader){0};
}

static double get_number(SolJson line, const char *key, double none) {
  SolJson value;
  double number;
  return sol_json_get(line, key, &value) && sol_json_number(value, &number) ? number : none;
}

// A whole number from 0 to most; -1 where it is none.
static double get_whole(SolJson line, const char *key, double most) {
  double n = get_number(line, key, -1);
  return n >= 0 && n <= most && n == __builtin_floor(n) ? n : -1;
}

static void get_text(SolJson line, const char *key, char *out, size_t cap) {
  SolJson value;
  if (!sol_json_get(line, key, &value) || !sol_json_string(value, out, cap)) out[0] = 0;
}

static bool get_flag(SolJson line, const char *key) {
  SolJson value;
  bool flag = false;
  return sol_json_get(line, key, &value) && sol_json_bool(value, &flag) && flag;
}

static bool get_dims(SolJson line, const char *key, uint32_t out[3]) {
  SolJson value;
  double n;
  int count = 0;
  memset(out, 0, 3 * sizeof *out);
  if (!sol_json_get(line, key, &value)) return false;
  for (SolJsonIter it = {value, 0}; count < 4 && sol_json_next(&it, NULL, &value); count++) {
    if (count == 3 || !sol_json_number(value, &n) || !(n >= 0 && n <= 4294967295.0)) return false;
    out[count] = (uint32_t)n;
  }
  return count == 3;
}

static SolStatus bad(SolError *err, const char *what) {
  return sol_fail(err, SOL_ERR_SYNTAX, "not a line of a profile: %s", what);
}

// ---- lines ----

static SolStatus read_start(ProfileReader *r, SolJson line, ProfileMessage *out, SolError *err) {
  SolJson list, value;
  double version = get_number(line, "sol_profile", 0);
  if (version != PROFILE_WIRE)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "the profile is of another version of Sol (%g, not %d)",
                    version, PROFILE_WIRE);
  if (r->started) return bad(err, "a second start");
  out->kind = PROFILE_LINE_START;
  out->pid = get_number(line, "pid", 0);
  out->counters = get_flag(line, "counters");
  out->version = get_number(line, "cupti", 0);
  char name[128];
  r->started = true;
  if (!sol_json_get(line, "metrics", &list)) return bad(err, "no list of counters");
  for (SolJsonIter it = {list, 0}; sol_json_next(&it, NULL, &value);) {
    if (r->metric_count == PROFILE_METRICS) return bad(err, "too many counters");
    if (!sol_json_string(value, name, sizeof name)) return bad(err, "a counter without a name");
    r->metrics[r->metric_count++] = profile_metric_find(name, strlen(name));
  }
  return SOL_OK;
}

static SolStatus read_gpu(SolJson line, ProfileMessage *out, SolError *err) {
  double device = get_whole(line, "gpu", 4096);
  if (device < 0) return bad(err, "a GPU without a number");
  out->kind = PROFILE_LINE_GPU;
  out->device = (int)device;
  get_text(line, "name", out->gpu.name, sizeof out->gpu.name);
  get_text(line, "uuid", out->gpu.uuid, sizeof out->gpu.uuid);
  get_text(line, "driver", out->gpu.driver, sizeof out->gpu.driver);
  double cc = get_whole(line, "cc", 9999), sms = get_whole(line, "sms", 1 << 20);
  out->gpu.cc = cc > 0 ? (int)cc : 0;
  out->gpu.sms = sms > 0 ? (int)sms : 0;
  return SOL_OK;
}

static SolStatus make_room(ProfileReader *r, uint32_t id, SolError *err) {
  if (id < r->cap) return SOL_OK;
  uint32_t cap = r->cap ? r->cap * 2 : 64;
  while (cap <= id) cap *= 2;
  struct ProfileReadKernel *room = sol_heap_realloc(r->kernels, sizeof *room * cap);
  if (!room) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  r->kernels = room;
  r->cap = cap;
  return SOL_OK;
}

// A copy that lives as long as the reader; NULL with the error set.
static const char *keep_name(ProfileReader *r, SolJson name, SolError *err) {
  char *text = sol_heap_alloc(PROFILE_MAX_NAME), *kept = NULL;
  if (text && !sol_json_string(name, text, PROFILE_MAX_NAME)) {
    bad(err, "a kernel without a name");
    sol_heap_free(text);
    return NULL;
  }
  size_t size = text ? strlen(text) + 1 : 0;
  if (text) kept = sol_arena_alloc(&r->arena, size);
  if (kept) memcpy(kept, text, size);
  if (!kept) sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  sol_heap_free(text);
  return kept;
}

static SolStatus read_kernel(ProfileReader *r, SolJson line, ProfileMessage *out, SolError *err) {
  double id = get_whole(line, "kernel", r->count); // they are numbered in order
  SolJson name;
  SolError why = {0};
  out->kind = PROFILE_LINE_KERNEL;
  if (id != r->count || !sol_json_get(line, "name", &name)) return bad(err, "a kernel out of order");
  SolStatus status = make_room(r, r->count, err);
  if (status) return status;
  const char *kept = keep_name(r, name, &why);
  if (!kept) {
    if (err) *err = why;
    return why.status;
  }
  r->kernels[r->count++] = (struct ProfileReadKernel){
      .name = kept,
      .registers = get_number(line, "registers", PROFILE_UNKNOWN),
      .static_shared = get_number(line, "static_shared", PROFILE_UNKNOWN),
      .local_bytes = get_number(line, "local", PROFILE_UNKNOWN),
  };
  return SOL_OK;
}

static SolStatus read_values(const ProfileReader *r, SolJson line, ProfileLaunch *l, SolError *err) {
  SolJson list, value;
  int i = 0;
  if (!sol_json_get(line, "values", &list)) return SOL_OK;
  for (SolJsonIter it = {list, 0}; sol_json_next(&it, NULL, &value); i++) {
    double n;
    if (i >= r->metric_count) return bad(err, "more values than counters");
    if (sol_json_number(value, &n) && r->metrics[i] != PROFILE_METRICS) l->values[r->metrics[i]] = n;
  }
  return i == r->metric_count ? SOL_OK : bad(err, "fewer values than counters");
}

static SolStatus read_launch(ProfileReader *r, SolJson line, ProfileMessage *out, SolError *err) {
  double id = get_whole(line, "launch", 4294967295.0), device = get_whole(line, "gpu", 4096);
  ProfileLaunch *l = &out->launch;
  profile_launch_clear(l);
  if (id < 0 || id >= r->count || device < 0) return bad(err, "a launch of no kernel");
  const struct ProfileReadKernel *k = &r->kernels[(uint32_t)id];
  out->kind = PROFILE_LINE_LAUNCH;
  out->device = (int)device;
  l->name = k->name;
  l->registers = k->registers;
  l->static_shared = k->static_shared;
  l->local_bytes = k->local_bytes;
  l->dynamic_shared = get_number(line, "shared", PROFILE_UNKNOWN);
  l->graph = get_flag(line, "graph");
  if (!get_dims(line, "grid", l->grid) || !get_dims(line, "block", l->block))
    return bad(err, "a launch of no size");
  get_dims(line, "cluster", l->cluster);
  SolStatus status = read_values(r, line, l, err);
  l->seconds = get_number(line, "ns", l->values[PROFILE_time]) / 1e9;
  return status;
}

static SolStatus read_trouble(SolJson line, ProfileMessage *out, SolError *err) {
#define TROUBLE(name, word) word,
  static const char *const words[] = {PROFILE_TROUBLES(TROUBLE)};
#undef TROUBLE
  char word[32];
  get_text(line, "trouble", word, sizeof word);
  get_text(line, "text", out->text, sizeof out->text);
  get_text(line, "hint", out->hint, sizeof out->hint);
  out->times = get_number(line, "times", 1);
  out->kind = PROFILE_LINE_TROUBLE;
  for (int i = 0; i < PROFILE_TROUBLE_COUNT; i++)
    if (strcmp(words[i], word) == 0) {
      out->trouble = (ProfileTrouble)i;
      return SOL_OK;
    }
  return bad(err, "an unknown error");
}

SolStatus profile_read_line(ProfileReader *r, const char *text, size_t length, ProfileMessage *out,
                            SolError *err) {
  SolJson line, value;
  *out = (ProfileMessage){0};
  SolStatus status = sol_json_check(text, length, &line, err);
  if (status) return status;
  if (sol_json_get(line, "sol_profile", &value)) return read_start(r, line, out, err);
  if (!r->started) return bad(err, "the first line is missing");
  if (sol_json_get(line, "launch", &value)) return read_launch(r, line, out, err);
  if (sol_json_get(line, "kernel", &value)) return read_kernel(r, line, out, err);
  if (sol_json_get(line, "gpu", &value)) return read_gpu(line, out, err);
  if (sol_json_get(line, "trouble", &value)) return read_trouble(line, out, err);
  if (!sol_json_get(line, "end", &value)) return bad(err, "of an unknown kind");
  out->kind = PROFILE_LINE_END;
  out->seen = get_number(line, "seen", 0);
  out->reported = get_number(line, "told", 0);
  r->ended = true;
  return SOL_OK;
}
