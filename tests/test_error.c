// Filling in a SolError (src/base/error.c).
#include "base/error.h"
#include "check.h"

TEST(a_failure_replaces_what_was_there) {
  SolError err;
  memset(&err, 0x5a, sizeof err);
  CHECK_INT(sol_fail(&err, SOL_ERR_RANGE, "%s is %d", "rank", 7), SOL_ERR_RANGE);
  CHECK_INT(err.status, SOL_ERR_RANGE);
  CHECK_STR(err.message, "rank is 7");
  CHECK_STR(err.hint, "");
  CHECK_INT(err.offset, -1);
  CHECK_INT(err.line, 0);
  CHECK_INT(err.column, 0);
  sol_hint(&err, "try %d", 4);
  CHECK_STR(err.hint, "try 4");
  CHECK_STR(err.message, "rank is 7");
}

TEST(no_error_wanted) {
  CHECK_INT(sol_fail(NULL, SOL_ERR_IO, "x"), SOL_ERR_IO);
  CHECK_INT(sol_fail_at(NULL, SOL_ERR_SYNTAX, "abc", 3, 1, "x"), SOL_ERR_SYNTAX);
  sol_hint(NULL, "x");
  CHECK_INT(sol_fail_unknown(NULL, "op", "x", NULL, NULL, 0), SOL_ERR_NOT_FOUND);
}

TEST(long_texts_are_cut) {
  char text[600];
  memset(text, 'm', sizeof text - 1);
  text[sizeof text - 1] = 0;
  SolError err;
  sol_fail(&err, SOL_ERR_ARGUMENT, "%s", text);
  CHECK_INT(strlen(err.message), sizeof err.message - 1);
  sol_hint(&err, "%s", text);
  CHECK_INT(strlen(err.hint), sizeof err.hint - 1);
}

TEST(places) {
  static const char text[] = "ab\ncd\n\ne";
  static const struct {
    size_t offset;
    int line, column;
  } places[] = {{0, 1, 1}, {1, 1, 2}, {2, 1, 3}, {3, 2, 1}, {5, 2, 3},
                {6, 3, 1}, {7, 4, 1}, {8, 4, 2}, {99, 4, 2}};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    SolError err;
    CHECK_INT(sol_fail_at(&err, SOL_ERR_SYNTAX, text, 8, places[i].offset, "here"), SOL_ERR_SYNTAX);
    CHECK_INT(err.offset, places[i].offset > 8 ? 8 : places[i].offset);
    CHECK_INT(err.line, places[i].line);
    CHECK_INT(err.column, places[i].column);
  }
}

static const char *name_at(const void *ctx, int i) {
  return ((const char *const *)ctx)[i];
}

static const char *const devices[] = {"v100",     "a100-40gb", "a100-80gb", "h100-pcie",
                                      "h100-sxm", "h200",      "rtx-4090"};

static SolError unknown(const char *name, int count) {
  SolError err;
  CHECK_INT(sol_fail_unknown(&err, "device", name, name_at, devices, count), SOL_ERR_NOT_FOUND);
  return err;
}

TEST(the_nearest_names_are_offered) {
  CHECK_STR(unknown("h20", 7).message, "unknown device 'h20'");
  CHECK_STR(unknown("rtx4090", 7).hint, "nearest: rtx-4090");
  CHECK_HAS(unknown("H1O0-SXM", 7).hint, "nearest: h100-sxm");
  CHECK_HAS(unknown("a100", 7).hint, "a100-40gb, a100-80gb");
  CHECK_HAS(unknown("xyzzy", 7).hint, "nearest: "); // one, however far
  CHECK(!strchr(unknown("xyzzyxyzzyxyzzyxyzzy", 7).hint, ','));
  CHECK_STR(unknown("h100", 0).hint, "");
  CHECK_HAS(unknown("", 7).message, "''");
}

TEST(a_very_long_name_fits) {
  char name[1000];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = 0;
  SolError err = unknown(name, 7);
  CHECK(strlen(err.message) < 120);
  CHECK(strlen(err.hint) < sizeof err.hint);
  // Names that do not fit the hint are cut, not overrun.
  const char *const names[] = {name, name, name};
  sol_fail_unknown(&err, "device", name, name_at, names, 3);
  CHECK_INT(strlen(err.hint), sizeof err.hint - 1);
}

TEST(every_status_has_a_name) {
  for (int status = SOL_OK; status <= SOL_ERR_IO; status++)
    for (int other = SOL_OK; other < status; other++)
      CHECK(strcmp(sol_status_name((SolStatus)status), sol_status_name((SolStatus)other)) != 0);
  CHECK_STR(sol_status_name(SOL_ERR_NOT_FOUND), "not_found");
  CHECK_STR(sol_status_name((SolStatus)99), "?");
}

CHECK_MAIN
