// Launches summed by kernel and shape.
#include "profile/profile.h"

#include <stdarg.h>

#include "audit/audit_names.h"
#include "base/error.h"
#include "base/format.h"
#include "base/heap.h"

static const ProfileMetricInfo infos[] = {
#define METRIC(key, name, unit, fold, set, what) {#key, name, unit, what, PROFILE_##fold, PROFILE_##set},
#include "profile/metrics.def"
#undef METRIC
};

static const struct {
  ProfileMetric metric;
  const char *name;
} aliases[] = {
#define ALIAS(key, name) {PROFILE_##key, name},
#define LABEL(key, section, label)
#define RATE(key, name)
#define FIELD(field, name, section, label)
#include "profile/ncu.def"
#undef ALIAS
#undef LABEL
#undef RATE
#undef FIELD
};

const ProfileMetricInfo *profile_metric(ProfileMetric metric) {
  return &infos[metric];
}

static bool same(const char *name, const char *text, size_t length) {
  return strlen(name) == length && memcmp(name, text, length) == 0;
}

ProfileMetric profile_metric_find(const char *name, size_t length) {
  for (size_t i = 0; i < SOL_COUNT(infos); i++)
    if (same(infos[i].name, name, length)) return (ProfileMetric)i;
  for (size_t i = 0; i < SOL_COUNT(aliases); i++)
    if (same(aliases[i].name, name, length)) return aliases[i].metric;
  return PROFILE_METRICS;
}

void profile_launch_clear(ProfileLaunch *l) {
  *l = (ProfileLaunch){.name = "",
                       .registers = PROFILE_UNKNOWN,
                       .static_shared = PROFILE_UNKNOWN,
                       .dynamic_shared = PROFILE_UNKNOWN,
                       .local_bytes = PROFILE_UNKNOWN,
                       .seconds = PROFILE_UNKNOWN};
  for (int m = 0; m < PROFILE_METRICS; m++) l->values[m] = PROFILE_UNKNOWN;
}

// ---- names ----

// Where the parameters of "a::b<c(*)(d)>(e, f)" start: the bracket that the last one closes, outside of
// template arguments. The length where there are none.
static size_t parameters_at(const char *name, size_t length) {
  int round = 0;
  if (!length || name[length - 1] != ')') return length;
  for (size_t i = length; i-- > 0;) {
    if (name[i] == ')') round++;
    if (name[i] == '(' && --round == 0) return i ? i : length;
  }
  return length;
}

// The words before the name are its return type: "void ", "std::enable_if<x, y>::type ".
static size_t name_at(const char *name, size_t end) {
  size_t at = 0;
  int angle = 0, round = 0;
  for (size_t i = 0; i < end; i++) {
    char c = name[i];
    if (c == '<') angle++;
    if (c == '>' && angle) angle--;
    if (c == '(') round++;
    if (c == ')' && round) round--;
    bool operator_word = i >= 8 && memcmp(name + i - 8, "operator", 8) == 0;
    if (c == ' ' && !angle && !round && !operator_word && i + 1 < end) at = i + 1;
  }
  return at;
}

// "(int)4" in template arguments is 4: what is written in brackets before a number.
static size_t cast_length(const char *text, size_t room) {
  size_t n = 1;
  if (text[0] != '(') return 0;
  while (n < room && (text[n] == ' ' || text[n] == '_' || (text[n] | 0x20) >= 'a')) n++;
  if (n + 1 >= room || n == 1 || text[n] != ')') return 0;
  bool number = text[n + 1] == '-' || (text[n + 1] >= '0' && text[n + 1] <= '9');
  return number ? n + 1 : 0;
}

void profile_title(const char *name, char *out, size_t cap) {
  static const char of_unit[] = "__nv_static_"; // a static kernel of a program of several units
  if ((name[0] == '_' && name[1] == 'Z') ||
      (strlen(name) >= sizeof of_unit && memcmp(name, of_unit, sizeof of_unit - 1) == 0)) {
    audit_title(name, out, cap);
    return;
  }
  size_t end = parameters_at(name, strlen(name)), n = 0;
  for (size_t i = name_at(name, end); i < end && n + 1 < cap; i++) {
    if (n) i += cast_length(name + i, end - i);
    bool blank = name[i] == ' ' && n && (out[n - 1] == ',' || name[i + 1] == '>');
    if (!blank) out[n++] = name[i];
  }
  if (cap) out[n] = 0;
}

static bool matches(const char *pattern, size_t n, const char *text) {
  size_t length = strlen(text), plain = 0;
  while (text[plain] && text[plain] != '<') plain++;
  if (n && pattern[n - 1] == '*') return length >= n - 1 && memcmp(text, pattern, n - 1) == 0;
  return (length == n || plain == n) && memcmp(text, pattern, n) == 0;
}

// "transpose<0>" of "mix::transpose<0>": as ncu writes names.
static const char *without_namespaces(const char *title) {
  const char *base = title;
  for (const char *p = title; *p && *p != '<'; p++)
    if (p[0] == ':' && p[1] == ':') base = p + 2;
  return base;
}

static bool is_wanted(const char *patterns, const char *name) {
  char title[512];
  profile_title(name, title, sizeof title);
  for (const char *p = patterns;; p++) {
    size_t n = 0;
    while (p[n] && p[n] != ',') n++;
    if (matches(p, n, title) || matches(p, n, without_namespaces(title)) || matches(p, n, name)) return true;
    p += n;
    if (!*p) return false;
  }
}

bool profile_takes(ProfileFilter *f, const char *name) {
  if (f->kernels && !is_wanted(f->kernels, name)) return false;
  double at = f->seen++;
  return at >= f->skip && (f->count <= 0 || at < f->skip + f->count);
}

// ---- the index of kernels ----

// A table of slots, each the number of a kernel plus one: open addressing, never more than half full.
typedef struct ProfileIndex {
  uint32_t *slots;
  uint32_t cap;
} ProfileIndex;

static uint64_t mix(uint64_t h, const void *bytes, size_t count) {
  const unsigned char *b = bytes;
  for (size_t i = 0; i < count; i++) h = (h ^ b[i]) * 1099511628211ull;
  return h;
}

static uint64_t hash_of(const char *name, const uint32_t *grid, const uint32_t *block, double shared) {
  uint64_t h = mix(14695981039346656037ull, name, strlen(name));
  h = mix(h, grid, 3 * sizeof *grid);
  h = mix(h, block, 3 * sizeof *block);
  if (profile_known(shared)) h = mix(h, &shared, sizeof shared);
  return h ^ h >> 29;
}

static bool same_number(double a, double b) {
  return a == b || (!profile_known(a) && !profile_known(b));
}

static bool is_of(const ProfileKernel *k, const ProfileLaunch *l) {
  return strcmp(k->name, l->name) == 0 && memcmp(k->grid, l->grid, sizeof l->grid) == 0 &&
         memcmp(k->block, l->block, sizeof l->block) == 0 &&
         memcmp(k->cluster, l->cluster, sizeof l->cluster) == 0 &&
         same_number(k->dynamic_shared, l->dynamic_shared);
}

static bool grow(Profile *p) {
  uint32_t cap = p->kernel_cap ? p->kernel_cap * 2 : 16, slots = cap * 4;
  ProfileKernel *kernels = sol_heap_realloc(p->kernels, cap * sizeof *kernels);
  if (!kernels) return false;
  p->kernels = kernels;
  uint32_t *table = sol_heap_alloc(slots * sizeof *table);
  if (!table) return false;
  memset(table, 0, slots * sizeof *table);
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    const ProfileKernel *k = &kernels[i];
    uint64_t at = hash_of(k->name, k->grid, k->block, k->dynamic_shared) % slots;
    while (table[at]) at = (at + 1) % slots;
    table[at] = i + 1;
  }
  sol_heap_free(p->index->slots);
  *p->index = (ProfileIndex){table, slots};
  p->kernel_cap = cap;
  return true;
}

static const char *keep(Profile *p, const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = sol_arena_alloc(&p->arena, n);
  if (copy) memcpy(copy, text, n);
  return copy;
}

static ProfileKernel *kernel_of(Profile *p, const ProfileLaunch *l) {
  if (!p->index) p->index = sol_arena_alloc(&p->arena, sizeof *p->index);
  if (!p->index) return NULL;
  if (p->kernel_count == p->kernel_cap && !grow(p)) return NULL;
  uint64_t at = hash_of(l->name, l->grid, l->block, l->dynamic_shared) % p->index->cap;
  for (; p->index->slots[at]; at = (at + 1) % p->index->cap)
    if (is_of(&p->kernels[p->index->slots[at] - 1], l)) return &p->kernels[p->index->slots[at] - 1];
  char title[512];
  profile_title(l->name, title, sizeof title);
  ProfileKernel *k = &p->kernels[p->kernel_count];
  *k = (ProfileKernel){.name = keep(p, l->name),
                       .title = keep(p, title),
                       .registers = PROFILE_UNKNOWN,
                       .static_shared = PROFILE_UNKNOWN,
                       .dynamic_shared = l->dynamic_shared,
                       .local_bytes = PROFILE_UNKNOWN,
                       .least = PROFILE_UNKNOWN,
                       .most = PROFILE_UNKNOWN,
                       .seconds = PROFILE_UNKNOWN,
                       .share = PROFILE_UNKNOWN};
  if (!k->name || !k->title) return NULL;
  memcpy(k->grid, l->grid, sizeof k->grid);
  memcpy(k->block, l->block, sizeof k->block);
  memcpy(k->cluster, l->cluster, sizeof k->cluster);
  p->index->slots[at] = ++p->kernel_count;
  return k;
}

// ---- sums ----

void profile_start(Profile *p, ProfileSource source) {
  *p = (Profile){.source = source, .seconds = PROFILE_UNKNOWN};
}

void profile_free(Profile *p) {
  if (p->index) sol_heap_free(p->index->slots);
  sol_heap_free(p->kernels);
  sol_arena_free(&p->arena);
  *p = (Profile){0};
}

void profile_note(Profile *p, const char *format, ...) {
  char note[512];
  va_list args;
  va_start(args, format);
  sol_vformat(note, sizeof note, format, args);
  va_end(args);
  if (p->note_count == PROFILE_MAX_NOTES) return;
  for (int i = 0; i < p->note_count; i++)
    if (strcmp(p->notes[i], note) == 0) return;
  const char *copy = keep(p, note);
  if (copy) p->notes[p->note_count++] = copy;
}

static void first_known(double *into, double value) {
  if (!profile_known(*into)) *into = value;
}

static double weight_of(ProfileFold fold, const ProfileLaunch *l, double seconds) {
  double w = fold == PROFILE_OF_INST ? l->values[PROFILE_instructions] : seconds;
  return fold != PROFILE_SUM && profile_known(w) && w > 0 ? w : 1;
}

SolStatus profile_add(Profile *p, const ProfileLaunch *l, SolError *err) {
  if (p->finished) return sol_fail(err, SOL_ERR_ARGUMENT, "the profile is finished: nothing can be added");
  ProfileKernel *k = kernel_of(p, l);
  if (!k) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  double seconds = profile_known(l->seconds) ? l->seconds : l->values[PROFILE_time] * 1e-9;
  p->launches++;
  k->launches++;
  if (l->graph) k->graph_launches++;
  first_known(&k->registers, l->registers);
  first_known(&k->static_shared, l->static_shared);
  first_known(&k->local_bytes, l->local_bytes);
  if (profile_known(seconds)) {
    k->timed++;
    k->time_sum += seconds;
    if (!(k->least <= seconds)) k->least = seconds;
    if (!(k->most >= seconds)) k->most = seconds;
  }
  for (int m = 0; m < PROFILE_METRICS; m++) {
    double value = l->values[m];
    if (!profile_known(value)) continue;
    double w = weight_of(infos[m].fold, l, seconds);
    k->sums[m] += value * w;
    k->weights[m] += w;
    k->counted[m]++;
  }
  return SOL_OK;
}

double profile_value(const ProfileKernel *k, ProfileMetric m) {
  if (!(k->counted[m] > 0)) return PROFILE_UNKNOWN;
  if (infos[m].fold == PROFILE_SUM) return k->sums[m] * (k->launches / k->counted[m]);
  return k->sums[m] / k->weights[m];
}

static void sort(ProfileKernel *v, ProfileKernel *spare, uint32_t count) {
  if (count < 2) return;
  uint32_t half = count / 2, a = 0, b = half, n = 0;
  sort(v, spare, half);
  sort(v + half, spare, count - half);
  while (a < half || b < count) {
    // Not a number counts as least, and equals stay in their order.
    bool first = b == count || (a < half && !(v[b].seconds > v[a].seconds) &&
                                (profile_known(v[a].seconds) || !profile_known(v[b].seconds)));
    spare[n++] = first ? v[a++] : v[b++];
  }
  memcpy(v, spare, count * sizeof *v);
}

SolStatus profile_finish(Profile *p, SolError *err) {
  p->finished = true; // the index no longer holds once the kernels are in order
  double total = 0;
  bool any = false;
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    ProfileKernel *k = &p->kernels[i];
    k->seconds = k->timed > 0 ? k->time_sum * (k->launches / k->timed) : PROFILE_UNKNOWN;
    if (k->timed > 0) total += k->seconds, any = true;
  }
  p->seconds = any ? total : PROFILE_UNKNOWN;
  for (uint32_t i = 0; i < p->kernel_count; i++) p->kernels[i].share = p->kernels[i].seconds / p->seconds;
  if (p->arena.failed) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  if (p->kernel_count < 2) return SOL_OK;
  ProfileKernel *spare = sol_heap_alloc(p->kernel_count * sizeof *spare);
  if (!spare) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  sort(p->kernels, spare, p->kernel_count);
  sol_heap_free(spare);
  return SOL_OK;
}
