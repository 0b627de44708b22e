// The rules of `sol audit`. Each has two programs in examples/rules: the bad one must be found out, the good
// one not, and what the rule promises must be about what the model says the good one gains. `test_rules
// --docs` prints docs/rules.md; the test fails where the file differs. test_rules_cases.c has made-up
// kernels.
#define _POSIX_C_SOURCE 200809L
#include <sys/stat.h>

#include "audit/rules.h"
#include "base/json_read.h"
#include "check.h"
#include "nvcc.h"

// ---- the pairs ----

typedef struct Bill { // of one program
  double time;        // us, all kernels
  double gain;        // largest of the rule's findings; 0: none
  char message[400], fix[400], file[256];
  double line;
} Bill;

static const char *env_or(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value && *value ? value : otherwise;
}

static bool newer(const char *a, const char *b) {
  struct stat sa, sb;
  if (stat(a, &sa) || stat(b, &sb)) return true;
  return sa.st_mtim.tv_sec > sb.st_mtim.tv_sec;
}

// The program, compiled where its source is newer; the builds of a tree share them.
static bool build(const char *name, char *program, size_t cap) {
  char source[256], command[1400], nvcc[512];
  snprintf(source, sizeof source, "examples/rules/%s.cu", name);
  snprintf(program, cap, "%s/rule-programs/%s", env_or("B", "build"), name);
  if (!newer(source, program) && !newer("examples/rules/check.h", program)) return true;
  if (!nvcc_find(nvcc, sizeof nvcc)) return false;
  snprintf(command, sizeof command,
           "mkdir -p '%s/rule-programs' && '%s' -std=c++17 -cudart shared -lineinfo "
           "-arch=sm_90 '%s' -o '%s'",
           env_or("B", "build"), nvcc, source, program);
  return system(command) == 0;
}

// Under ASan the audited program has to have it from its start: our runtime is built with it.
static const char *preload(void) {
#ifdef __SANITIZE_ADDRESS__
  return "ASAN_OPTIONS=\"${ASAN_OPTIONS:-}:detect_leaks=0:verify_asan_link_order=0\" "
         "LD_PRELOAD=\"$(${CC:-cc} -print-file-name=libasan.so)\" ";
#else
  return "";
#endif
}

static char *audit(const char *program, size_t *length) {
  char command[1024];
  snprintf(command, sizeof command, "%s'%s' audit --device h200 --cold --json '%s' 2>/dev/null", preload(),
           env_or("SOL", "build/sol"), program);
  FILE *p = popen(command, "r");
  char *text = NULL;
  size_t n = 0, cap = 0;
  while (p && !feof(p)) {
    if (n + 4096 > cap) {
      char *more = realloc(text, cap = cap * 2 + 8192);
      if (!more) break;
      text = more;
    }
    n += fread(text + n, 1, cap - n - 1, p);
  }
  if (p) pclose(p);
  if (text) text[n] = 0;
  *length = n;
  return text;
}

static double number(SolJson object, const char *key) {
  SolJson v;
  double n = NAN;
  if (sol_json_get(object, key, &v)) sol_json_number(v, &n);
  return n;
}

static void take_finding(SolJson finding, const char *rule, Bill *bill) {
  char id[64] = "";
  SolJson v;
  if (sol_json_get(finding, "rule", &v)) sol_json_string(v, id, sizeof id);
  double gain = number(finding, "gain");
  if (strcmp(id, rule) != 0 || !(gain > bill->gain)) return;
  bill->gain = gain;
  bill->line = number(finding, "line");
  if (sol_json_get(finding, "message", &v)) sol_json_string(v, bill->message, sizeof bill->message);
  if (sol_json_get(finding, "fix", &v)) sol_json_string(v, bill->fix, sizeof bill->fix);
  if (sol_json_get(finding, "file", &v)) sol_json_string(v, bill->file, sizeof bill->file);
}

// What an H200's counters said of this program's kernels (bench/rules_gpu.sh): requests and sectors are
// exact.
static void check_measured(const char *name, SolJson kernels) {
  FILE *f = fopen("tests/data/h200-rules.csv", "r");
  char line[512], program[64], which[64], said[256], missing[96];
  int found = 0;
  if (!CHECK(f)) return;
  snprintf(missing, sizeof missing, "# not measured yet: %s\n", name);
  while (fgets(line, sizeof line, f)) {
    if (strcmp(line, missing) == 0) printf("%s: what an H200 counts is not known yet\n", name), found++;
    double n[4];
    if (sscanf(line, "%63[^,],%63[^,],%*d,%*d,%*d,%*d,%lf,%lf,%lf,%lf", program, which, &n[0], &n[1], &n[2],
               &n[3]) != 6 ||
        strcmp(program, name) != 0)
      continue;
    SolJson kernel, v, loads, stores;
    for (SolJsonIter it = {.container = kernels}; sol_json_next(&it, NULL, &kernel);) {
      if (!sol_json_get(kernel, "name", &v) || !sol_json_string(v, said, sizeof said)) continue;
      said[strcspn(said, "(")] = 0;
      if (strcmp(said, which) != 0) continue;
      found++;
      if (!CHECK(sol_json_get(kernel, "global_load", &loads) &&
                 sol_json_get(kernel, "global_store", &stores)))
        continue;
      CHECK_MSG(number(loads, "requests") == n[0] && number(loads, "sectors") == n[1] &&
                    number(stores, "requests") == n[2] && number(stores, "sectors") == n[3],
                "%s: %s: loads %g requests %g sectors, stores %g, %g; an H200: %g %g, %g %g", name, which,
                number(loads, "requests"), number(loads, "sectors"), number(stores, "requests"),
                number(stores, "sectors"), n[0], n[1], n[2], n[3]);
    }
  }
  fclose(f);
  CHECK_MSG(found, "%s: none of its kernels is in tests/data/h200-rules.csv", name);
}

// What sol audit says of a program about one rule; findings must come in order of gain within a kernel.
static bool read_bill(const char *name, const char *rule, Bill *bill) {
  char program[512];
  size_t length;
  *bill = (Bill){0};
  if (!CHECK_MSG(build(name, program, sizeof program), "%s does not compile", name)) return false;
  char *text = audit(program, &length);
  SolJson root, kernels, findings, kernel, finding;
  bool fine = text && !sol_json_check(text, length, &root, NULL) && sol_json_get(root, "kernels", &kernels);
  if (!CHECK_MSG(fine, "%s: no bill: %.300s", name, text ? text : "")) {
    free(text);
    return false;
  }
  check_measured(name, kernels);
  for (SolJsonIter it = {.container = kernels}; sol_json_next(&it, NULL, &kernel);) {
    bill->time += number(kernel, "time_us");
    if (!sol_json_get(kernel, "findings", &findings)) continue;
    for (SolJsonIter f = {.container = findings}; sol_json_next(&f, NULL, &finding);)
      take_finding(finding, rule, bill);
  }
  free(text);
  return CHECK_MSG(bill->time > 0, "%s: no time", name);
}

// The promise may be off by this factor from what the good program gains: it is a model of a change of which
// only the idea is known.
#define PROMISE 2.5

static bool has_shim(void) {
  char shim[1024];
  snprintf(shim, sizeof shim, "%s", env_or("SOL", "build/sol"));
  char *slash = strrchr(shim, '/');
  snprintf(slash ? slash + 1 : shim, 64, "shim/libcudart.so.13");
  return access(shim, R_OK) == 0;
}

// `stem`: of the two programs' names, the rule's or that of another case of it.
static void check_pair(const RuleText *rule, const char *stem) {
  char name[128], nvcc[512];
  Bill bad, good;
  if (!nvcc_find(nvcc, sizeof nvcc)) return;
  if (!has_shim()) SKIP("the runtime on the emulator was not built");
  snprintf(name, sizeof name, "%s_bad", stem);
  if (!read_bill(name, rule->id, &bad)) return;
  CHECK_MSG(bad.gain >= RULE_MIN_GAIN, "%s: not found", name);
  CHECK(bad.message[0] && bad.fix[0]);
  if (strcmp(rule->scope, "line") == 0)
    CHECK_MSG(strstr(bad.file, name) && bad.line > 0, "%s: found at %s:%g", name, bad.file, bad.line);
  snprintf(name, sizeof name, "%s_good", stem);
  if (!read_bill(name, rule->id, &good)) return;
  CHECK_MSG(good.gain == 0, "%s: found as well, %.2fx: %s", name, good.gain, good.message);
  double gained = bad.time / good.time;
  CHECK_MSG(gained > RULE_MIN_GAIN && bad.gain < gained * PROMISE && bad.gain > gained / PROMISE &&
                bad.gain - 1 < (gained - 1) * 5 && bad.gain - 1 > (gained - 1) / 5,
            "%s: promised %.2fx, the good one gains %.2fx", stem, bad.gain, gained);
  printf("%-20s promised %6.2fx, gains %6.2fx (%.1f us, %.1f us)\n", stem, bad.gain, gained, bad.time,
         good.time);
}

enum { EVERY = CHECK_SANITIZED ? 5 : 1 }; // most rules walk the same code
#define RULE(id, scope, title, meaning, fix, assumes)                                                        \
  TEST(pair_##id) {                                                                                          \
    if (RULE_##id % EVERY) SKIP("every %dth pair is enough under sanitizers", EVERY);                        \
    check_pair(audit_rule(RULE_##id), #id);                                                                  \
  }
#include "audit/rules.def"
#undef RULE

// Further cases of a rule.
TEST(strided_stores_under_a_guard_are_partial_writes) {
  if (EVERY > 1) SKIP("slow under sanitizers");
  check_pair(audit_rule(RULE_partial_write), "partial_write_guarded");
}

TEST(few_blocks_of_an_unrolled_kernel_with_barriers_are_a_small_grid) {
  if (EVERY > 1) SKIP("slow under sanitizers");
  check_pair(audit_rule(RULE_small_grid), "small_grid_unrolled");
}
enum { FURTHER_PAIRS = 2 };

// ---- the page ----

static void put_docs(FILE *out) {
  fprintf(
      out,
      "# The rules of `sol audit`\n\n"
      "A rule names one kind of waste, where it is, and what to do about it. Its **gain** is the kernel's "
      "predicted time now\nover the time that the same model predicts without that waste, everything else as "
      "it "
      "is: an estimate of a change of which\nonly the idea is known, good for the order in which to try "
      "things. "
      "A finding is shown where it makes its kernel at least\n%.0f%% faster and saves at least %.0f%% of the "
      "whole "
      "program's time (where a kernel has none, the best that saves less is\nnamed); findings come in order of the time they save. Gains do not\nadd up: several findings "
      "may be "
      "ways to cure the same. No gain leads below the light of what is left (docs/audit.md). Where the grid does not fill the GPU, or the "
      "launch\ntakes longer than the work, findings about the grid and the launch stand apart (\"at this size\"), and the "
      "others are priced as if\nthe grid filled it eight times.\n\n"
      "Each rule has two programs in `examples/rules`: `ID_bad.cu` triggers it, `ID_good.cu`, the fixed version, does "
      "not.\n`build/tests/test_rules` runs all pairs, compares each gain with that of the fixed version, and "
      "printed "
      "this page (`--docs`) from\n`src/audit/rules.def`.\n",
      100 * (RULE_MIN_GAIN - 1), 100 * RULE_MIN_SHARE);
  const RuleText *rule;
  for (uint32_t i = 0; (rule = audit_rule(i)); i++)
    fprintf(out, "\n## `%s`: %s\n\n%s\n\n*Fix:* %s\n\n*The gain assumes:* %s\n", rule->id, rule->title,
            rule->meaning, rule->fix, rule->assumes);
}

TEST(the_page_is_the_rules) {
  FILE *page = fopen("docs/rules.md", "r"), *made = tmpfile();
  CHECK(page && made);
  if (!page || !made) {
    if (page) fclose(page);
    if (made) fclose(made);
    return;
  }
  put_docs(made);
  rewind(made);
  int a, b;
  do {
    a = getc(page), b = getc(made);
  } while (a == b && a != EOF);
  CHECK_MSG(a == b, "docs/rules.md is not what test_rules --docs prints");
  fclose(page);
  fclose(made);
}

TEST(every_example_has_a_rule) {
  FILE *p = popen("ls examples/rules/*_bad.cu examples/rules/*_good.cu | wc -l", "r");
  int n = 0;
  CHECK(p && fscanf(p, "%d", &n) == 1);
  if (p) pclose(p);
  CHECK_INT(n, 2 * (RULE_COUNT + FURTHER_PAIRS));
  CHECK(!audit_rule(RULE_COUNT));
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--docs") == 0) return put_docs(stdout), 0;
  return check_main(argc, argv);
}
