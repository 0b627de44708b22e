// The counters of src/profile/metrics.def as CUPTI knows them. It needs CUPTI, but no GPU; where there is
// none, the tests are skipped.
#include "measure/counters.h"

#include "check.h"
#include "profile/profile.h"

// CUPTI loads its parts in a way that the address sanitizer forbids.
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
static bool can_load(void) {
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
  check_skip("CUPTI cannot be loaded under the address sanitizer");
  return false;
#else
  return true;
#endif
}

static int names_of(const char **names) {
  int count = 0;
  for (int i = 0; i < PROFILE_METRICS; i++)
    if (profile_metric((ProfileMetric)i)->set != PROFILE_FILE) // that ncu alone has
      names[count++] = profile_metric((ProfileMetric)i)->name;
  return count;
}

TEST(every_counter_is_one_of_the_chip) {
  static const char *const chips[] = {"GH100", "GA100"};
  const char *names[PROFILE_METRICS];
  bool known[PROFILE_METRICS];
  int passes = 0, count = names_of(names);
  SolError err = {0};
  if (!can_load()) return;
  for (size_t c = 0; c < SOL_COUNT(chips); c++) {
    SolStatus status = counters_plan(chips[c], names, count, &passes, known, &err);
    if (status == SOL_ERR_UNSUPPORTED) {
      CHECK(err.hint[0]);
      SKIP("%s", err.message);
    }
    if (!CHECK_MSG(!status, "%s: %s", chips[c], err.message)) return;
    CHECK_MSG(passes > 0 && passes <= 20, "%s: %d passes", chips[c], passes);
    for (int i = 0; i < count; i++) // the theoretical occupancy is ncu's own arithmetic
      CHECK_MSG(known[i] || strstr(names[i], "sm__maximum_warps"), "%s has no %s", chips[c], names[i]);
  }
}

TEST(a_counter_that_is_not_known_spoils_nothing) {
  const char *names[] = {"dram__bytes_read.sum", "no__such_counter.sum", "dram__bytes_read.nonsense", ""};
  bool known[4];
  int passes = 0;
  SolError err = {0};
  if (!can_load()) return;
  if (counters_plan("GH100", names, 1, &passes, NULL, &err) == SOL_ERR_UNSUPPORTED) SKIP("%s", err.message);
  CHECK(counters_plan("GH100", names, 4, &passes, known, &err) == SOL_OK);
  CHECK(known[0] && !known[1] && !known[2] && !known[3] && passes == 1);
  CHECK(counters_plan("GH100", names + 1, 3, &passes, known, &err) == SOL_ERR_UNSUPPORTED);
  CHECK(counters_plan("no such chip", names, 1, &passes, known, &err) == SOL_ERR_UNSUPPORTED &&
        err.message[0]);
}

TEST(no_counters_were_asked_for) {
  Counters *c;
  CountersTrouble trouble;
  SolError err = {0};
  CHECK(counters_open(&(CountersOptions){0}, &c, &trouble, &err) == SOL_ERR_ARGUMENT);
  counters_close(NULL);
}

CHECK_MAIN
