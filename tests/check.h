// The test harness. A test file is a list of TEST(name) { ... } and `int main(...) { return check_main(...);
// }` by CHECK_MAIN at its end. A failed CHECK is printed with its place and the test goes on; each TEST
// counts as one. A test that lacks what it needs (nvcc, a GPU, a file) says SKIP("why"): it is counted as
// skipped, and never as passed. The last line is "N passed, N failed", with ", N skipped" where any were; the
// exit code is 1 where any failed and 77 where all were skipped.
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct CheckTest {
  const char *name;
  void (*run)(void);
} CheckTest;

enum { CHECK_ALL_SKIPPED = 77 }; // exit code

#ifdef __SANITIZE_ADDRESS__ // emulating is slow there: a test may do less that walks the same code
enum { CHECK_SANITIZED = 1 };
#else
enum { CHECK_SANITIZED = 0 };
#endif

static CheckTest check_tests[512];
static int check_count, check_failures;
static bool check_skipped;

#define TEST(name)                                                                                           \
  static void test_##name(void);                                                                             \
  __attribute__((constructor)) static void register_##name(void) {                                           \
    if (check_count == 512) abort();                                                                         \
    check_tests[check_count++] = (CheckTest){#name, test_##name};                                            \
  }                                                                                                          \
  static void test_##name(void)

__attribute__((format(printf, 4, 5))) static inline bool check_report(bool ok, const char *file, int line,
                                                                      const char *format, ...) {
  if (ok) return true;
  check_failures++;
  va_list args;
  va_start(args, format);
  printf("%s:%d: ", file, line);
  vprintf(format, args);
  printf("\n");
  va_end(args);
  return false;
}

// All return whether the check held, so that a test can stop where going on makes no sense.
#define CHECK(condition)                check_report((condition), __FILE__, __LINE__, "CHECK(%s)", #condition)
#define CHECK_MSG(condition, ...)       check_report((condition), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_INT(got, want)            check_int((long long)(got), (long long)(want), #got, __FILE__, __LINE__)
#define CHECK_STR(got, want)            check_str((got), (want), #got, __FILE__, __LINE__)
#define CHECK_NEAR(got, want, relative) check_near((got), (want), (relative), #got, __FILE__, __LINE__)
#define CHECK_HAS(text, part)           check_has((text), (part), #text, __FILE__, __LINE__)

static inline bool check_int(long long got, long long want, const char *what, const char *file, int line) {
  return check_report(got == want, file, line, "%s is %lld, expected %lld", what, got, want);
}

static inline bool check_str(const char *got, const char *want, const char *what, const char *file,
                             int line) {
  bool same = got && want ? strcmp(got, want) == 0 : got == want;
  return check_report(same, file, line, "%s is '%s', expected '%s'", what, got ? got : "NULL",
                      want ? want : "NULL");
}

static inline bool check_near(double got, double want, double relative, const char *what, const char *file,
                              int line) {
  bool near = got == want || fabs(got - want) <= relative * fabs(want);
  return check_report(near, file, line, "%s is %.17g, expected %.17g within %g", what, got, want, relative);
}

static inline bool check_has(const char *text, const char *part, const char *what, const char *file,
                             int line) {
  return check_report(text && strstr(text, part), file, line, "%s lacks '%s': '%s'", what, part,
                      text ? text : "NULL");
}

// Of a test of which a part cannot run here: the rest of it runs, but it counts as skipped unless it fails.
__attribute__((format(printf, 1, 2))) static inline void check_skip(const char *format, ...) {
  va_list args;
  if (check_skipped) return; // one reason is enough
  check_skipped = true;
  va_start(args, format);
  printf("skipped: ");
  vprintf(format, args);
  printf("\n");
  va_end(args);
}
// Ends the test, which must not hold anything that it would have to free.
#define SKIP(...)                                                                                            \
  do {                                                                                                       \
    check_skip(__VA_ARGS__);                                                                                 \
    return;                                                                                                  \
  } while (0)

// The last line, and the exit code; also for suites with a main of their own.
static inline int check_end(int passed, int failed, int skipped) {
  printf("%d passed, %d failed", passed, failed);
  if (skipped) printf(", %d skipped", skipped);
  printf("\n");
  return failed ? 1 : skipped && !passed ? CHECK_ALL_SKIPPED : 0;
}

// With an argument, runs only the tests whose name holds it.
static inline int check_main(int argc, char **argv) {
  int passed = 0, failed = 0, skipped = 0;
  for (int i = 0; i < check_count; i++) {
    if (argc > 1 && !strstr(check_tests[i].name, argv[1])) continue;
    check_failures = 0;
    check_skipped = false;
    check_tests[i].run();
    if (check_failures)
      printf("FAIL %s\n", check_tests[i].name), failed++;
    else if (check_skipped)
      printf("skip %s\n", check_tests[i].name), skipped++;
    else
      passed++;
  }
  return check_end(passed, failed, skipped);
}

#define CHECK_MAIN                                                                                           \
  int main(int argc, char **argv) {                                                                          \
    return check_main(argc, argv);                                                                           \
  }

#endif
