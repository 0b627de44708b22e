// Reading JSON in place (src/base/json_read.c).
#include "base/json_read.h"
#include "check.h"

// The text in a block of its own length, so that ASan sees a read past its end.
static SolStatus check_text(const char *text, size_t length, SolError *err) {
  char *copy = malloc(length ? length : 1);
  if (!copy) abort();
  memcpy(copy, text, length);
  SolJson root;
  SolStatus status = sol_json_check(copy, length, &root, err);
  free(copy);
  return status;
}

static SolJson parse(const char *text) {
  SolJson root = {0};
  SolError err = {0};
  if (!CHECK_MSG(sol_json_check(text, strlen(text), &root, &err) == SOL_OK, "'%s': %s", text, err.message))
    exit(1);
  return root;
}

TEST(accepts) {
  static const char *good[] = {"0",
                               "-0",
                               "-0.0e-0",
                               "1E+9",
                               "123.456e-7",
                               "\"\"",
                               "\"a\"",
                               "true",
                               "false",
                               "null",
                               "[]",
                               "{}",
                               " [ ] ",
                               "\t{\r\n}\t",
                               "[1]",
                               "[1,2]",
                               "[[],[[]]]",
                               "{\"a\":1}",
                               "{\"\":{}}",
                               "{\"a\":1,\"a\":2}",
                               "[1,{\"a\":[null]}]",
                               "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\"",
                               "\"\x7f\"",
                               "\"\xff\xfe\"",
                               "\"\xc3\xa9\""};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    SolError err = {0};
    CHECK_MSG(check_text(good[i], strlen(good[i]), &err) == SOL_OK, "'%s': %s", good[i], err.message);
  }
}

// Text that must be refused, and where the caret stands.
TEST(refuses) {
  static const struct {
    const char *text;
    int line, column;
  } bad[] = {{"", 1, 1},
             {" ", 1, 2},
             {"01", 1, 1},
             {"-", 1, 2},
             {"-a", 1, 2},
             {"+1", 1, 1},
             {".5", 1, 1},
             {"1.", 1, 3},
             {"1.e5", 1, 3},
             {"1e", 1, 3},
             {"1e+", 1, 4},
             {"0x10", 1, 2},
             {"1 2", 1, 3},
             {"nan", 1, 1},
             {"Infinity", 1, 1},
             {"tru", 1, 1},
             {"truex", 1, 5},
             {"nul", 1, 1},
             {"True", 1, 1},
             {"'a'", 1, 1},
             {"\"a", 1, 3},
             {"\"\\", 1, 3},
             {"\"\\x\"", 1, 3},
             {"\"\\u12g4\"", 1, 6},
             {"\"\\u123", 1, 7},
             {"\"a\nb\"", 1, 3},
             {"\"\t\"", 1, 2},
             {"[", 1, 2},
             {"[1", 1, 3},
             {"[1,", 1, 4},
             {"[1,]", 1, 4},
             {"[,1]", 1, 2},
             {"[1 2]", 1, 4},
             {"[1}", 1, 3},
             {"]", 1, 1},
             {"[]]", 1, 3},
             {"{", 1, 2},
             {"{\"a\"", 1, 5},
             {"{\"a\":", 1, 6},
             {"{\"a\":1", 1, 7},
             {"{\"a\":1,", 1, 8},
             {"{\"a\":1,}", 1, 8},
             {"{a:1}", 1, 2},
             {"{1:1}", 1, 2},
             {"{\"a\" 1}", 1, 6},
             {"{\"a\":1]", 1, 7},
             {"{,}", 1, 2},
             {"[1]\n[2]", 2, 1},
             {"{\n  \"a\": x\n}", 2, 8},
             {"// x\n1", 1, 1},
             {"[1,/**/2]", 1, 4},
             {"\xef\xbb\xbf{}", 1, 1},
             {"\f1", 1, 1}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    SolError err = {0};
    SolStatus status = check_text(bad[i].text, strlen(bad[i].text), &err);
    CHECK_MSG(status == SOL_ERR_SYNTAX && err.line == bad[i].line && err.column == bad[i].column,
              "'%s': %s at %d:%d (%s), expected %d:%d", bad[i].text, sol_status_name(status), err.line,
              err.column, err.message, bad[i].line, bad[i].column);
    CHECK(err.message[0]);
  }
  CHECK_INT(check_text("[1]\0", 4, NULL), SOL_ERR_SYNTAX);
  CHECK_INT(check_text("\0", 1, NULL), SOL_ERR_SYNTAX);
  CHECK_INT(check_text("\"a\0b\"", 5, NULL), SOL_ERR_SYNTAX);
}

TEST(nesting) {
  char text[2 * SOL_JSON_MAX_DEPTH + 4];
  memset(text, '[', SOL_JSON_MAX_DEPTH);
  memset(text + SOL_JSON_MAX_DEPTH, ']', SOL_JSON_MAX_DEPTH);
  CHECK_INT(check_text(text, sizeof text - 4, NULL), SOL_OK);
  memset(text, '[', SOL_JSON_MAX_DEPTH + 1);
  memset(text + SOL_JSON_MAX_DEPTH + 1, ']', SOL_JSON_MAX_DEPTH + 1);
  SolError err = {0};
  CHECK_INT(check_text(text, sizeof text - 2, &err), SOL_ERR_SYNTAX);
  CHECK_INT(err.column, SOL_JSON_MAX_DEPTH + 1);
  CHECK_HAS(err.message, "64");
}

TEST(kinds) {
  CHECK_INT(sol_json_kind(parse(" null")), SOL_JSON_NULL);
  CHECK_INT(sol_json_kind(parse("true")), SOL_JSON_BOOL);
  CHECK_INT(sol_json_kind(parse("-1")), SOL_JSON_NUMBER);
  CHECK_INT(sol_json_kind(parse("\"\"")), SOL_JSON_STRING);
  CHECK_INT(sol_json_kind(parse("[]")), SOL_JSON_ARRAY);
  CHECK_INT(sol_json_kind(parse("{}")), SOL_JSON_OBJECT);
}

static double number_at(SolJson object, const char *key) {
  SolJson value;
  double v = -1;
  return sol_json_get(object, key, &value) && sol_json_number(value, &v) ? v : -1;
}

TEST(members) {
  SolJson root = parse(
      "{ \"a\" : 1 , \"b\":{\"a\":2,\"]\":\"}\\\"\"}, \"c\":[{\"a\":3}], \"a\":4, \"\\u0064\":5, \"\":6 }");
  CHECK(number_at(root, "a") == 4); // of equal keys the last counts
  CHECK(number_at(root, "d") == 5);
  CHECK(number_at(root, "") == 6);
  SolJson value;
  CHECK(!sol_json_get(root, "A", &value));
  CHECK(!sol_json_get(root, "]", &value)); // stands deeper
  CHECK(sol_json_get(root, "b", &value) && number_at(value, "a") == 2);
  CHECK(!sol_json_get(parse("[\"a\",1]"), "a", &value));
  CHECK(!sol_json_get(parse("\"a\""), "a", &value));
  CHECK(!sol_json_get(parse("{}"), "a", &value));
}

// A key is its whole text: neither cut at a NUL nor at some length.
TEST(keys_are_compared_whole) {
  SolJson value;
  CHECK(!sol_json_get(parse("{\"a\\u0000b\":1}"), "a", &value));
  char text[512], key[256];
  for (size_t n = 100; n < 250; n++) {
    memset(key, 'k', n);
    key[n] = 0;
    snprintf(text, sizeof text, "{\"%sX\":1}", key);
    CHECK_MSG(!sol_json_get(parse(text), key, &value), "a key of %zu bytes matches a longer one", n);
    snprintf(text, sizeof text, "{\"%s\":1}", key);
    CHECK_MSG(sol_json_get(parse(text), key, &value), "a key of %zu bytes is not found", n);
    if (check_failures > 4) break;
  }
}

TEST(iteration) {
  SolJson root = parse("[ 1 , [2,3] , {\"x\":[4]} , \"five,]\" ]");
  SolJsonIter it = {root, 0};
  SolJson key, value;
  static const SolJsonKind kinds[] = {SOL_JSON_NUMBER, SOL_JSON_ARRAY, SOL_JSON_OBJECT, SOL_JSON_STRING};
  int n = 0;
  while (n < 4 && sol_json_next(&it, NULL, &value)) CHECK_INT(sol_json_kind(value), kinds[n++]);
  CHECK_INT(n, 4);
  CHECK(!sol_json_next(&it, NULL, &value)); // stays at the end

  it = (SolJsonIter){parse("{\"a\":1,\"b\" : [ ] ,\"c\":null}"), 0};
  char names[8] = {0};
  for (n = 0; sol_json_next(&it, &key, &value) && n < 5; n++) sol_json_string(key, names + n, 2);
  CHECK_STR(names, "abc");

  static const char *none[] = {"[]", "{}", "[ ]", "1", "\"a\"", "null"};
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
    it = (SolJsonIter){parse(none[i]), 0};
    CHECK_MSG(!sol_json_next(&it, &key, &value), "'%s' has a value", none[i]);
  }
}

TEST(numbers) {
  static const struct {
    const char *text;
    double want;
  } numbers[] = {{"0", 0},      {"-0", 0},           {"42", 42},      {"-42", -42},  {"1.5e3", 1500},
                 {"1E-2", .01}, {"128256 ", 128256}, {"1e-05", 1e-5}, {"1e-999", 0}, {"500000.0", 500000}};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    double v = 99;
    CHECK_MSG(sol_json_number(parse(numbers[i].text), &v) && v == numbers[i].want, "'%s' is %.17g",
              numbers[i].text, v);
  }
  double v;
  CHECK(!sol_json_number(parse("1e999"), &v));
  CHECK(!sol_json_number(parse("-1e999"), &v));
  CHECK(!sol_json_number(parse("\"1\""), &v));
  CHECK(!sol_json_number(parse("true"), &v));
  bool b = false;
  CHECK(sol_json_bool(parse("true"), &b) && b);
  CHECK(sol_json_bool(parse("false"), &b) && !b);
  CHECK(!sol_json_bool(parse("1"), &b));
}

TEST(strings) {
  static const struct {
    const char *text, *want;
  } strings[] = {{"\"\"", ""},
                 {"\"abc\"", "abc"},
                 {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
                 {"\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac"},
                 {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
                 {"\"\\ud83d\"", "\xef\xbf\xbd"},   // half a pair
                 {"\"\\ude00x\"", "\xef\xbf\xbdx"}, // the other half
                 {"\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
                                        "A"}, // a half, then a letter
                 {"\"\xc3\xa9\"", "\xc3\xa9"}};
  for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
    char text[32];
    CHECK(sol_json_string(parse(strings[i].text), text, sizeof text));
    CHECK_STR(text, strings[i].want);
  }
  char text[4];
  CHECK(!sol_json_string(parse("1"), text, sizeof text));
  CHECK(sol_json_string(parse("\"abcdef\""), text, sizeof text));
  CHECK_STR(text, "abc");
  CHECK(sol_json_string(parse("\"ab\\u00e9\""), text, sizeof text));
  CHECK_STR(text, "ab"); // no character is cut in two
  text[0] = '#';
  CHECK(sol_json_string(parse("\"abc\""), text, 0));
  CHECK_INT(text[0], '#');
}

CHECK_MAIN
