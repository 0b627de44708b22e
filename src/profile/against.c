#include "profile/against.h"

#include "base/error.h"
#include "base/format.h"

enum { NAME_ROOM = 8192 };

static double number_of(SolJson object, const char *key) {
  SolJson value;
  double number;
  return sol_json_get(object, key, &value) && sol_json_number(value, &number) ? number : PROFILE_UNKNOWN;
}

static double inside(SolJson object, const char *part, const char *key) {
  SolJson value;
  return sol_json_get(object, part, &value) ? number_of(value, key) : PROFILE_UNKNOWN;
}

static bool text_of(SolJson object, const char *key, char *out, size_t cap) {
  SolJson value;
  return sol_json_get(object, key, &value) && sol_json_string(value, out, cap);
}

// ---- names ----

// Equal, spaces aside; `plain`: up to the template arguments.
static bool same_name(const char *a, const char *b, bool plain) {
  for (;; a++, b++) {
    while (*a == ' ') a++;
    while (*b == ' ') b++;
    bool a_ends = !*a || (plain && *a == '<'), b_ends = !*b || (plain && *b == '<');
    if (a_ends || b_ends) return a_ends && b_ends;
    if (*a != *b) return false;
  }
}

typedef enum Match { MATCH_SYMBOL, MATCH_TITLE, MATCH_PLAIN, MATCHES } Match;

static bool is_match(SolJson row, const ProfileKernel *k, Match how) {
  char name[NAME_ROOM];
  if (how == MATCH_SYMBOL) return text_of(row, "symbol", name, sizeof name) && strcmp(name, k->name) == 0;
  return text_of(row, "name", name, sizeof name) && same_name(name, k->title, how == MATCH_PLAIN);
}

// Which kernel of the bill is meant; -1: none, or several.
static int find(SolJson list, const ProfileKernel *k) {
  for (int how = 0; how < MATCHES; how++) {
    int at = -1, count = 0, i = 0;
    SolJson row;
    for (SolJsonIter it = {.container = list}; sol_json_next(&it, NULL, &row); i++)
      if (is_match(row, k, (Match)how)) at = i, count++;
    if (count) return count == 1 ? at : -1;
  }
  return -1;
}

// ---- counters ----

typedef struct Sums { // of the profile's kernels that are one kernel of the bill
  double launches, seconds, values[PROFILE_METRICS], occupancy, registers;
} Sums;

static void add(Sums *s, const ProfileKernel *k) {
  double occupancy = profile_value(k, PROFILE_occupancy), total = s->seconds + k->seconds;
  // The mean over time.
  s->occupancy = s->launches > 0 ? (s->occupancy * s->seconds + occupancy * k->seconds) / total : occupancy;
  s->registers = k->registers;
  s->launches += k->launches;
  s->seconds = total;
  for (int m = 0; m < PROFILE_METRICS; m++) s->values[m] += profile_value(k, (ProfileMetric)m);
}

static void put(AgainstKernel *k, const char *key, const char *label, AgainstUnit unit, bool exact,
                double measured, double emulated) {
  if (k->row_count == AGAINST_MAX_ROWS) return;
  if (!(measured > 0) && !(emulated > 0)) return; // the kernel does not do it, or it was not counted
  k->rows[k->row_count++] = (AgainstRow){key, label, unit, exact, measured, emulated};
}

static void compare(AgainstKernel *k, const Sums *s, SolJson row) {
  double by = s->launches / k->emulated_launches; // 1, unless one of the two saw other launches
  const double *v = s->values;
  bool exact = !(number_of(row, "sampled") > 1);
#define BOTH(key, label, unit, measured, emulated)  put(k, key, label, unit, exact, measured, by *(emulated))
#define MODEL(key, label, unit, measured, emulated) put(k, key, label, unit, false, measured, by *(emulated))
  BOTH("load_requests", "global loads: requests", AGAINST_COUNT, v[PROFILE_load_requests],
       inside(row, "global_load", "requests"));
  BOTH("load_sectors", "global loads: sectors", AGAINST_COUNT, v[PROFILE_load_sectors],
       inside(row, "global_load", "sectors"));
  BOTH("store_requests", "global stores: requests", AGAINST_COUNT, v[PROFILE_store_requests],
       inside(row, "global_store", "requests"));
  BOTH("store_sectors", "global stores: sectors", AGAINST_COUNT, v[PROFILE_store_sectors],
       inside(row, "global_store", "sectors"));
  BOTH("atomic_requests", "atomics: requests", AGAINST_COUNT,
       v[PROFILE_atom_requests] + v[PROFILE_red_requests], inside(row, "global_atomic", "requests"));
  BOTH("atomic_sectors", "atomics: sectors", AGAINST_COUNT, v[PROFILE_atom_sectors] + v[PROFILE_red_sectors],
       inside(row, "global_atomic", "sectors"));
  BOTH("local_sectors", "local memory: sectors", AGAINST_COUNT,
       v[PROFILE_local_load_sectors] + v[PROFILE_local_store_sectors], inside(row, "local", "sectors"));
  BOTH("shared_load_requests", "shared loads: requests", AGAINST_COUNT, v[PROFILE_shared_load_requests],
       inside(row, "shared_load", "requests"));
  BOTH("shared_load_wavefronts", "shared loads: wavefronts", AGAINST_COUNT, v[PROFILE_shared_load_wavefronts],
       inside(row, "shared_load", "wavefronts"));
  BOTH("shared_store_requests", "shared stores: requests", AGAINST_COUNT, v[PROFILE_shared_store_requests],
       inside(row, "shared_store", "requests"));
  BOTH("shared_store_wavefronts", "shared stores: wavefronts", AGAINST_COUNT,
       v[PROFILE_shared_store_wavefronts], inside(row, "shared_store", "wavefronts"));
  BOTH("shared_passes", "shared memory: wavefronts, by instruction", AGAINST_COUNT, v[PROFILE_shared_passes],
       inside(row, "shared_load", "wavefronts") + inside(row, "shared_store", "wavefronts"));
  BOTH("global_sectors_ideal", "global accesses: fewest sectors", AGAINST_COUNT,
       v[PROFILE_global_sectors_ideal],
       inside(row, "global_load", "ideal_sectors") + inside(row, "global_store", "ideal_sectors"));
  MODEL("instructions", "warp instructions (machine code, PTX)", AGAINST_COUNT, v[PROFILE_instructions],
        number_of(row, "instructions"));
  MODEL("l2_bytes", "L2 bytes", AGAINST_BYTES, 32 * v[PROFILE_l2_sectors], number_of(row, "l2_bytes"));
  MODEL("dram_read_bytes", "DRAM bytes read", AGAINST_BYTES, v[PROFILE_dram_read],
        number_of(row, "dram_read_bytes"));
  MODEL("dram_write_bytes", "DRAM bytes written", AGAINST_BYTES, v[PROFILE_dram_write],
        number_of(row, "dram_write_bytes"));
  MODEL("time_us", "time", AGAINST_US, s->seconds * 1e6, number_of(row, "time_us"));
#undef BOTH
#undef MODEL
  put(k, "occupancy", "occupancy (achieved, theoretical)", AGAINST_SHARE, false, s->occupancy / 100,
      number_of(row, "occupancy"));
  put(k, "registers", "registers", AGAINST_COUNT, false, s->registers, number_of(row, "registers"));
}

// ---- the bill ----

static bool pick_bill(SolJson root, const SolDevice *device, SolJson *out) {
  if (sol_json_kind(root) == SOL_JSON_OBJECT) return *out = root, true;
  char name[64];
  SolJson row;
  bool any = false;
  for (SolJsonIter it = {.container = root}; sol_json_next(&it, NULL, &row);) {
    if (!any) *out = row, any = true;
    if (device && text_of(row, "device", name, sizeof name) && strcmp(name, device->id) == 0)
      return *out = row, true;
  }
  return any;
}

static const char *keep(Profile *p, const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = sol_arena_alloc(&p->arena, n);
  if (copy) memcpy(copy, text, n);
  return copy ? copy : "";
}

static void compare_row(Profile *p, SolJson list, int at, const int *row_of, Against *out) {
  Sums sums = {0};
  const char *title = NULL;
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    if (row_of[i] != at) continue;
    if (!title) title = p->kernels[i].title;
    add(&sums, &p->kernels[i]);
  }
  SolJson row = {0};
  SolJsonIter it = {.container = list};
  for (int i = 0; i <= at && sol_json_next(&it, NULL, &row); i++) {
  }
  AgainstKernel *k = &out->kernels[out->kernel_count++];
  *k = (AgainstKernel){
      .title = title, .launches = sums.launches, .emulated_launches = number_of(row, "launches")};
  if (!(k->emulated_launches > 0)) k->emulated_launches = sums.launches;
  compare(k, &sums, row);
}

SolStatus profile_against(Profile *p, const char *text, size_t length, Against *out, SolError *err) {
  SolJson root, bill = {0}, list;
  char device[64] = "";
  *out = (Against){0};
  SolStatus status = sol_json_check(text, length, &root, err);
  if (status) return status;
  if (!pick_bill(root, p->gpu.device, &bill) || !sol_json_get(bill, "kernels", &list) ||
      sol_json_kind(list) != SOL_JSON_ARRAY) {
    sol_fail(err, SOL_ERR_ARGUMENT, "this is no bill of sol audit --json: it has no kernels");
    sol_hint(err, "make one: sol audit --json PROGRAM > bill.json");
    return SOL_ERR_ARGUMENT;
  }
  text_of(bill, "device", device, sizeof device);
  out->device = keep(p, device);
  if (p->gpu.device && device[0] && strcmp(device, p->gpu.device->id) != 0)
    profile_note(p, "The bill is of %s, the profile of %s: times and DRAM bytes are not comparable.", device,
                 p->gpu.device->id);
  int *row_of = sol_arena_alloc(&p->arena, (p->kernel_count + 1) * sizeof *row_of);
  out->kernels = sol_arena_alloc(&p->arena, (p->kernel_count + 1) * sizeof *out->kernels);
  if (!row_of || !out->kernels) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    row_of[i] = find(list, &p->kernels[i]);
    if (row_of[i] < 0)
      profile_note(p, "%.200s is not in the bill, or more than once, and not compared.", p->kernels[i].title);
  }
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    bool first = row_of[i] >= 0;
    for (uint32_t k = 0; k < i && first; k++) first = row_of[k] != row_of[i];
    if (first) compare_row(p, list, row_of[i], row_of, out);
  }
  return SOL_OK;
}
