// --check: looks for errors while the program is billed, and goes on after each.
#include <string.h>

#include "base/format.h"
#include "cli/cli_audit.h"

static const struct {
  const char *name, *also;
  unsigned bit;
} checks[] = {{"mem", "memory", 0}, // is always on; here the program goes on after it
              {"race", "race", SOL_EMU_CHECK_RACE},
              {"init", "init", SOL_EMU_CHECK_INIT},
              {"sync", "sync", SOL_EMU_CHECK_SYNC}};

static bool is_word(const char *text, size_t length, const char *word) {
  return strlen(word) == length && strncmp(text, word, length) == 0;
}

static size_t find(const char *text, size_t length) {
  size_t k = 0;
  while (k < SOL_COUNT(checks) && !is_word(text, length, checks[k].name) &&
         !is_word(text, length, checks[k].also))
    k++;
  return k;
}

int cli_audit_checks(AuditRun *r) {
  unsigned asked = 0;
  for (int i = 0; i < r->args->check.count; i++) {
    const char *p = r->args->check.text[i];
    for (size_t n = strcspn(p, ","); *p; p += n + (p[n] != 0), n = strcspn(p, ",")) {
      size_t k = find(p, n);
      if (k == SOL_COUNT(checks))
        return cli_fail(r->cli, "--check: '%.*s' is none of race, init, sync, mem", (int)n, p);
      asked |= 1u << k;
    }
  }
  size_t at = 0;
  for (size_t k = 0; k < SOL_COUNT(checks); k++)
    if (asked >> k & 1)
      at += sol_format(r->checks + at, sizeof r->checks - at, "%s%s", at ? "," : "", checks[k].name);
  return EXIT_OK;
}

unsigned cli_audit_check_bits(const char *list) {
  unsigned bits = 0;
  for (size_t k = 0; k < SOL_COUNT(checks); k++)
    if (strstr(list, checks[k].name)) bits |= checks[k].bit;
  return bits;
}

void cli_audit_check_note(AuditRun *r, const AuditProgram *p) {
  uint64_t places = 0, threads = 0;
  bool late = false; // it failed since our own limit ended a launch of it
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    const AuditKernel *k = &p->kernels[i];
    late = late || k->end == SOL_EMU_TIME_LIMIT;
    places += k->fault_count + k->faults_left_out;
    for (uint32_t f = 0; f < k->fault_count; f++) threads += k->faults[f].times;
  }
  if (r->checks[0] && places)
    cli_audit_note(r, "Checks (%s): %llu finding%s (%llu thread%s), in the bills above.", r->checks,
                   (unsigned long long)places, places > 1 ? "s" : "", (unsigned long long)threads,
                   threads > 1 ? "s" : "");
  else if (r->checks[0])
    cli_audit_note(r, "Checks (%s): nothing found.", r->checks);
  else if (r->program_exit > 0 && !r->interrupted && !late && !places && !r->args->sample)
    cli_audit_note(
        r, "Why it failed, --check race,init,sync may tell: it looks for races, for memory that was never "
           "written and for barriers and masks that lanes disagree on.");
}
