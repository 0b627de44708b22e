// Names and numbers as people type them (src/base/text.c).
#include "base/sort.h"
#include "base/text.h"
#include "check.h"

static double number(const char *text) {
  double v = -1;
  SolError err;
  return sol_parse_number(text, strlen(text), &v, &err) ? -1 : v;
}

static bool is_less(const void *a, const void *b) {
  return *(const uint16_t *)a < *(const uint16_t *)b;
}

TEST(sorts_any_number_of_items) {
  uint16_t items[101];
  for (uint32_t count = 0; count <= 101; count += 3 - count % 2) {
    for (uint32_t i = 0; i < count; i++) items[i] = (uint16_t)(i * 7919 % 1009);
    sol_sort(items, count, sizeof *items, is_less);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
      CHECK(!i || items[i - 1] <= items[i]);
      sum += items[i] - i * 7919 % 1009;
    }
    CHECK_INT(sum, 0);
  }
}

TEST(numbers) {
  CHECK(number("40e6") == 40e6);
  CHECK(number("1.5") == 1.5);
  CHECK(number("64Ki") == 65536);
  CHECK(number("16MiB") == 16777216);
  CHECK(number("3GB") == 3e9);
  CHECK(number("5k") == 5000);
  CHECK(number("0") == 0);
  CHECK(number(".5") == .5);
  CHECK(number("1e-3") == 1e-3);
  CHECK_NEAR(number("123456789012345678901234567890"), 123456789012345678901234567890.0, 1e-15);
  CHECK_NEAR(number("1e300"), 1e300, 1e-14);
  CHECK_NEAR(number("1e-300"), 1e-300, 1e-14);
  CHECK(number("1e-5000") == 0);
}

// Text that must be refused, the status, and the column of the caret.
TEST(bad_numbers) {
  static const struct {
    const char *text;
    SolStatus status;
    int column;
  } bad[] = {{"", SOL_ERR_SYNTAX, 1},     {"-1", SOL_ERR_SYNTAX, 1},  {"abc", SOL_ERR_SYNTAX, 1},
             {"1e", SOL_ERR_SYNTAX, 3},   {"1e+", SOL_ERR_SYNTAX, 4}, {"12q", SOL_ERR_SYNTAX, 3},
             {"1e400", SOL_ERR_RANGE, 1}, {"nan", SOL_ERR_SYNTAX, 1}, {"inf", SOL_ERR_SYNTAX, 1},
             {"0x10", SOL_ERR_SYNTAX, 2}, {"1 2", SOL_ERR_SYNTAX, 2}, {".", SOL_ERR_SYNTAX, 1},
             {"1e308P", SOL_ERR_RANGE, 1}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    double v;
    SolError err = {0};
    SolStatus status = sol_parse_number(bad[i].text, strlen(bad[i].text), &v, &err);
    CHECK_MSG(status == bad[i].status && err.column == bad[i].column, "'%s': status %s column %d",
              bad[i].text, sol_status_name(status), err.column);
    CHECK(err.message[0]);
  }
}

TEST(shapes) {
  int64_t dims[4];
  int rank = 0;
  CHECK_INT(sol_parse_shape("8192x4096", 9, 4, dims, &rank, 0), SOL_OK);
  CHECK_INT(rank, 2);
  CHECK_INT(dims[0], 8192);
  CHECK_INT(dims[1], 4096);
  CHECK_INT(sol_parse_shape("4Mx2x3x1", 8, 4, dims, &rank, 0), SOL_OK);
  CHECK_INT(dims[0], 4000000);
  static const char *bad[] = {"",     "x",     "8x",  "x8",        "8xx8",      "0x4",
                              "8x-1", "1.5x2", "8,4", "1x2x3x4x5", "9e15x9e99", "8 x 4"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    SolError err = {0};
    CHECK_MSG(sol_parse_shape(bad[i], strlen(bad[i]), 4, dims, &rank, &err) != SOL_OK && err.column > 0,
              "'%s' passed", bad[i]);
  }
}

TEST(counts_are_exact_to_2_53) {
  int64_t n = 0;
  CHECK_INT(sol_parse_count("9007199254740992", 16, 0, &n, 0), SOL_OK);
  CHECK_INT(n, 9007199254740992);
  CHECK_INT(sol_parse_count("9007199254740994", 16, 0, &n, 0), SOL_ERR_RANGE);
  CHECK_INT(sol_parse_count("0", 1, 1, &n, 0), SOL_ERR_RANGE);
}

TEST(names) {
  CHECK(sol_same_name("RTX 3050 Laptop", "rtx-3050_laptop"));
  CHECK(!sol_same_name("h100", "h1000"));
  CHECK(sol_name_in_list("B", "a b c"));
  CHECK(!sol_name_in_list("", "a b"));
  CHECK(!sol_name_in_list("ab", "abc"));
  CHECK_INT(sol_name_distance("rmsnrom", "rmsnorm"), 1);
  CHECK_INT(sol_name_distance("abc", "abc"), 1); // holds it whole
  CHECK(sol_name_distance("norm", "rmsnorm") < sol_name_distance("norm", "copy"));
}

TEST(patterns) {
  static const char *const good[][2] = {{"*.cuh", "block.cuh"},
                                        {"src/*", "src/a/b.cu"},
                                        {"?.cu", "k.cu"},
                                        {"*a*b*", "xxaybbz"},
                                        {"", ""},
                                        {"**", ""},
                                        {"a*", "a"}};
  static const char *const bad[][2] = {{"*.cuh", "block.cu"}, {"src/*", "lib/src"}, {"?", ""}, {"a", "ab"},
                                       {"ab", "a"},           {"*a*b", "ba"},       {"", "a"}};
  for (size_t i = 0; i < SOL_COUNT(good); i++)
    CHECK_MSG(sol_matches(good[i][0], good[i][1]), "%s", good[i][0]);
  for (size_t i = 0; i < SOL_COUNT(bad); i++) CHECK_MSG(!sol_matches(bad[i][0], bad[i][1]), "%s", bad[i][0]);
}

CHECK_MAIN
