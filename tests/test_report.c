// Buffers, arenas, JSON writing and the renderers of facts (src/base, src/report).
#include "base/json_read.h"
#include "base/json_write.h"
#include "check.h"
#include "report/facts.h"

TEST(arena_gives_zeroed_aligned_memory_and_counts_it) {
  SolArena a = {0};
  for (size_t size = 0; size < 5000; size += 37) {
    unsigned char *p = sol_arena_alloc(&a, size);
    if (!CHECK(p && (uintptr_t)p % 16 == 0)) break;
    for (size_t i = 0; i < size; i++) CHECK(p[i] == 0);
    memset(p, 0xff, size);
  }
  CHECK(sol_arena_alloc(&a, 3 << 20) != NULL);
  CHECK(!a.failed);
  CHECK(sol_arena_alloc(&a, SIZE_MAX - 8) == NULL);
  CHECK(a.failed);
  CHECK(sol_arena_alloc(&a, 1) == NULL); // once failed, always failed: a builder checks at the end
  sol_arena_free(&a);
  CHECK(a.chunk == NULL && !a.failed);
}

TEST(buffer_grows) {
  SolBuffer b = {0};
  for (int i = 0; i < 1000; i++) sol_buffer_format(&b, "%d,", i);
  sol_buffer_fill(&b, 'x', 3);
  sol_buffer_puts(&b, "");
  CHECK_INT(b.length, 10 * 2 + 90 * 3 + 900 * 4 + 3);
  CHECK(strncmp(b.text, "0,1,2,", 6) == 0 && strcmp(b.text + b.length - 7, "999,xxx") == 0);
  sol_buffer_free(&b);
  CHECK_INT((int)sol_text_columns("\xc2\xb5s", 3), 2);                // a micro sign is one column
  CHECK_INT((int)sol_text_columns("\xe4\xb8\xad\xe6\x96\x87", 6), 4); // two Chinese characters are four
  CHECK_INT((int)sol_text_columns("e\xcc\x81", 3), 1);                // an accent lies over its letter
  CHECK_INT((int)sol_text_columns("\xff\xe4\xb8", 3), 3);             // no UTF-8: a byte is a column
  CHECK_INT((int)sol_text_prefix("a\xe4\xb8\xad"
                                 "b",
                                 5, 2),
            1); // nothing is cut in two
  CHECK_INT((int)sol_text_prefix("a\xe4\xb8\xad"
                                 "b",
                                 5, 3),
            4);
}

TEST(json_is_written_so_that_it_reads_back) {
  SolBuffer b = {0};
  SolJsonWriter w = {&b, 0, false};
  sol_json_open(&w, NULL, '{');
  sol_json_put_text(&w, "quote \"\\", "tab\t newline\n bell\a \xc2\xb5");
  sol_json_put_number(&w, "whole", 9007199254740992.0);
  sol_json_put_number(&w, "third", 1.0 / 3);
  sol_json_put_number(&w, "inf", INFINITY);
  sol_json_put_bool(&w, "yes", true);
  sol_json_put_text(&w, "none", NULL);
  sol_json_open(&w, "empty", '[');
  sol_json_close(&w, ']');
  sol_json_close(&w, '}');
  SolJson root, v;
  SolError err = {0};
  if (!CHECK_MSG(sol_json_check(b.text, b.length, &root, &err) == SOL_OK, "%s", err.message)) return;
  char text[64];
  CHECK(sol_json_get(root, "quote \"\\", &v) && sol_json_string(v, text, sizeof text));
  CHECK_STR(text, "tab\t newline\n bell\a \xc2\xb5");
  double n = 0;
  CHECK(sol_json_get(root, "whole", &v) && sol_json_number(v, &n) && n == 9007199254740992.0);
  CHECK_HAS(b.text, "9007199254740992,");
  CHECK(sol_json_get(root, "third", &v) && sol_json_number(v, &n));
  CHECK_NEAR(n, 1.0 / 3, 1e-14);
  CHECK(sol_json_get(root, "inf", &v) && sol_json_kind(v) == SOL_JSON_NULL);
  CHECK(sol_json_get(root, "none", &v) && sol_json_kind(v) == SOL_JSON_NULL);
  sol_buffer_free(&b);
}

static Fact *sample(SolArena *arena) {
  Fact *root = facts_root(arena, FACT_OBJECT);
  fact_title(root, "A title");
  fact_number(root, "bytes", "bytes", UNIT_BYTES, BASIS_EXACT, 134217728);
  fact_number(root, "time_us", "time", UNIT_US, BASIS_MODELLED, 40.0625);
  fact_text(root, "machine_only", NULL, "m");
  fact_text(root, NULL, "people only", "p");
  fact_unknown(root, "ridge", "ridge");
  Fact *list = fact_list(root, "rows", "Rows");
  for (int i = 0; i < 2; i++) {
    Fact *row = fact_object(list, NULL, NULL);
    fact_text(row, "name", "name", i ? "second" : "first");
    fact_number(row, "share", "share", UNIT_SHARE, BASIS_MODELLED, i ? 0.25 : 0.75);
  }
  fact_note(
      root,
      "A note of %d words that is longer than one line can be and so has to be wrapped somewhere before it "
      "reaches the right edge",
      25);
  return root;
}

static const TextStyle plain = {.width = 100}, coloured = {.width = 100, .colour = true};

TEST(text_rendering) {
  SolArena arena = {0};
  SolBuffer out = {0};
  CHECK(facts_render_text(sample(&arena), &plain, &out));
  CHECK_HAS(out.text, "A title\n");
  CHECK_HAS(out.text, "  bytes        134.2 MB\n");
  CHECK_HAS(out.text, "  time         40.06 us\n");
  CHECK_HAS(out.text, "  people only  p\n");
  CHECK_HAS(out.text, "  ridge        unknown\n");
  CHECK_HAS(out.text, "  name    share\n  first   75.0%\n  second  25.0%\n");
  CHECK_HAS(out.text, "exact: bytes; modelled: ");
  CHECK(!strstr(out.text, "machine_only") && !strstr(out.text, "\033"));
  size_t column = 0;
  for (const char *p = out.text; *p; p++) {
    column = *p == '\n' ? 0 : column + 1;
    if (!CHECK(column <= 100)) break;
  }
  sol_buffer_free(&out);
  CHECK(facts_render_text(sample(&arena), &coloured, &out));
  CHECK_HAS(out.text, "\033[1mA title\033[0m");
  sol_buffer_free(&out);
  sol_arena_free(&arena);
}

static const Fact *wide_table(SolArena *arena) {
  static const FactColumn columns[] = {{"name", FIT_CUT}, {"time", 0}, {"what", FIT_WRAP}, {"bytes", 0}, {0}};
  Fact *root = facts_root(arena, FACT_OBJECT), *list = fact_list(root, "rows", "");
  fact_columns(list, columns);
  for (int i = 0; i < 2; i++) {
    Fact *row = fact_object(list, NULL, NULL);
    fact_number(row, "extra", "extra", UNIT_PLAIN, BASIS_NONE, 123456);
    fact_number(row, "bytes", "bytes", UNIT_BYTES, BASIS_NONE, i ? 2.5e9 : 25e6);
    fact_text(row, "name", "name", i ? "a_kernel_with_a_long_name" : "short");
    fact_number(row, "time", "time", UNIT_US, BASIS_NONE, i ? 12345 : 20);
    fact_text(row, "what", "what", i ? "one" : "several words that take more than a single line");
  }
  return root;
}

TEST(a_table_gives_way_in_the_order_of_importance) {
  SolArena arena = {0};
  SolBuffer out = {0};
  TextStyle style = {.width = 0};
  CHECK(facts_render_text(wide_table(&arena), &style, &out)); // any width: all of it, one unit a column
  CHECK_HAS(out.text,
            "   extra    bytes  name                           time  what\n"
            "  123456    25 MB  short                         20 us  several words that take more than a "
            "single line\n"
            "  123456  2500 MB  a_kernel_with_a_long_name  12345 us  one\n");
  sol_buffer_free(&out);
  style.width = 57; // what has no rank goes first, then the bytes; words are wrapped, the name is cut
  CHECK(facts_render_text(wide_table(&arena), &style, &out));
  CHECK_HAS(out.text, "  name                     time  what\n"
                      "  short                   20 us  several words that take\n"
                      "                                 more than a single line\n"
                      "  a_kernel_with_a_lo\xe2\x80\xa6  12345 us  one\n");
  CHECK_HAS(out.text, "Not shown at this width (--wide shows all): bytes, extra\n");
  sol_buffer_free(&out);
  style = (TextStyle){.width = 26, .ascii = true}; // the most important one is there whatever happens
  CHECK(facts_render_text(wide_table(&arena), &style, &out));
  CHECK_HAS(out.text, "  name                time\n");
  CHECK_HAS(out.text, "  a_kernel_wi...  12345 us\n");
  sol_buffer_free(&out);
  sol_arena_free(&arena);
}

TEST(words_longer_than_a_line_are_broken) {
  SolArena arena = {0};
  SolBuffer out = {0};
  TextStyle style = {.width = 40};
  Fact *root = facts_root(&arena, FACT_OBJECT);
  fact_note(root, "%s", "a/path/without/any/space/that/is/longer/than/a/line/of/forty");
  fact_line(root, 5, false, "%s", "words further in, that go on where the first line of them started");
  CHECK(facts_render_text(root, &style, &out));
  CHECK_HAS(out.text, "\na/path/without/any/space/that/is/longer/\nthan/a/line/of/forty\n");
  CHECK_HAS(out.text, "\n     words further in, that go on where\n     the first line");
  sol_buffer_free(&out);
  sol_arena_free(&arena);
}

TEST(json_rendering_has_the_same_facts_and_their_basis) {
  SolArena arena = {0};
  SolBuffer out = {0};
  CHECK(facts_render_json(sample(&arena), &out));
  SolJson root, v, basis;
  CHECK_INT(sol_json_check(out.text, out.length, &root, NULL), SOL_OK);
  double n;
  CHECK(sol_json_get(root, "bytes", &v) && sol_json_number(v, &n) && n == 134217728);
  CHECK(sol_json_get(root, "machine_only", &v));
  CHECK(!strstr(out.text, "people only") && !strstr(out.text, "A note"));
  CHECK(sol_json_get(root, "ridge", &v) && sol_json_kind(v) == SOL_JSON_NULL);
  char text[16] = "";
  CHECK(sol_json_get(root, "basis", &basis) && sol_json_get(basis, "rows[].share", &v) &&
        sol_json_string(v, text, 16));
  CHECK_STR(text, "modelled");
  sol_buffer_free(&out);
  sol_arena_free(&arena);
}

TEST(out_of_memory_shows_once_at_the_end) {
  SolArena arena = {.failed = true};
  SolBuffer out = {0};
  CHECK(!facts_render_json(sample(&arena), &out));
  CHECK(!facts_render_text(sample(&arena), &plain, &out));
  sol_buffer_free(&out);
}

TEST(numbers_as_people_read_them) {
  static const struct {
    FactUnit unit;
    double value;
    const char *text;
  } cases[] = {{UNIT_BYTES, 0, "0 B"},
               {UNIT_BYTES, 999, "999 B"},
               {UNIT_BYTES, 48e6, "48 MB"},
               {UNIT_SIZE, 233472, "228 KiB"},
               {UNIT_SIZE, 512, "512 B"},
               {UNIT_FLOPS_PER_S, 989.4e12, "989.4 TFLOP/s"},
               {UNIT_US, 12345.6, "12.35 ms"},
               {UNIT_US, 0.5, "0.5 us"},
               {UNIT_US, 25e6, "25 s"},
               {UNIT_TIMES, 3, "3.00x"},
               {UNIT_SHARE, 0.123, "12.3%"},
               {UNIT_COUNT, 8030261248.0, "8.03B"},
               {UNIT_PLAIN, 1234567, "1234567"},
               {UNIT_PLAIN, 1234.56, "1235"},
               {UNIT_INTENSITY, 2.0 / 3, "0.6667 FLOP/byte"},
               {UNIT_HZ, 1.98e9, "1.98 GHz"},
               {UNIT_PLAIN, INFINITY, "infinite"},
               {UNIT_BYTES, 5e21, "5000000 PB"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[64];
    fact_write_number(text, sizeof text, cases[i].unit, cases[i].value);
    CHECK_STR(text, cases[i].text);
  }
}

CHECK_MAIN
