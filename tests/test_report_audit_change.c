// What changed between two bills.
#include "report/report_audit_change.h"

#include "check.h"

#define LINE(number, source, cost, sectors)                                                                  \
  "{\"file\":\"/a/k.cu\",\"line\":" #number ",\"source\":\"" source "\",\"cost_us\":" #cost                  \
  ",\"dram_bytes\":0,\"sectors_per_request\":" #sectors "}"
#define KERNEL(name, time, lines, findings)                                                                  \
  "{\"name\":\"" name "\",\"symbol\":\"_Z" name "\",\"time_us\":" #time                                      \
  ",\"tax\":2,\"dram_bytes\":100,\"light_us\":1,\"lines\":[" lines "],\"findings\":[" findings "]}"
#define BILL(kernels) "{\"input\":\"k.cu\",\"time_us\":30,\"kernels\":[" kernels "]}"
#define WALK          "{\"rule\":\"column_walk\",\"file\":\"/a/k.cu\",\"line\":5}"

static const char before[] = BILL(KERNEL("same", 10, LINE(3, "s", 9, 4), "") "," KERNEL(
    "walk", 40, LINE(5, "y = x[i * n];", 30, 32) "," LINE(6, "old();", 8, 0), WALK) "," KERNEL("gone", 5, "",
                                                                                               ""));
static const char after[] = BILL(KERNEL("same", 10, LINE(4, "s", 9, 4), "") "," KERNEL(
    "walk", 12, LINE(9, "y = x[i * n];", 10, 4) "," LINE(7, "new|();", 1, 0), "") "," KERNEL("fresh", 3, "",
                                                                                             WALK));

static bool compare(const char *a, const char *b, SolArena *arena, AuditChange *out) {
  SolJson old, new;
  return !sol_json_check(a, strlen(a), &old, NULL) && !sol_json_check(b, strlen(b), &new, NULL) &&
         report_audit_change(old, new, arena, out);
}

TEST(kernels_and_lines_that_changed_are_found) {
  SolArena arena = {0};
  AuditChange c;
  if (!CHECK(compare(before, after, &arena, &c))) return;
  CHECK_INT(c.same, 1); // a line that only moved has not changed
  CHECK_INT(c.count, 3);
  const ChangeKernel *walk = &c.kernels[0];
  CHECK_STR(walk->name, "walk"); // the largest change first
  CHECK(walk->before.us == 40 && walk->after.us == 12);
  CHECK_INT(walk->line_count, 3);
  const ChangeLine *l = &walk->lines[0];
  CHECK(l->before.us == 30 && l->after.us == 10 && l->before.line == 5 && l->after.line == 9);
  CHECK(l->before.sectors == 32 && l->after.sectors == 4);
  CHECK(walk->lines[1].before.there && !walk->lines[1].after.there);
  CHECK(!walk->lines[2].before.there && walk->lines[2].after.there);
  CHECK(walk->gone_count == 1 && walk->new_count == 0);
  if (walk->gone_count) CHECK_STR(walk->gone_rules[0], "column_walk, k.cu:5");
  CHECK(!c.kernels[1].after.there && !c.kernels[2].before.there && c.kernels[2].new_count == 1);
  sol_arena_free(&arena);
}

TEST(equal_bills_have_no_changes) {
  SolArena arena = {0};
  AuditChange c;
  CHECK(compare(before, before, &arena, &c));
  CHECK(c.count == 0 && c.same == 3);
  CHECK(!compare(before, "{}", &arena, &c));
  sol_arena_free(&arena);
}

TEST(markdown_holds_the_tables_and_no_markup_of_the_program) {
  SolArena arena = {0};
  SolBuffer out = {0};
  AuditChange c;
  CHECK(compare(before, after, &arena, &c));
  report_audit_change_markdown(&out, &c);
  if (CHECK(out.text)) {
    CHECK_HAS(out.text, "| `walk` | -70.0% | 40 us | 12 us |");
    CHECK_HAS(out.text, "| `k.cu:9` | 30 us | 10 us | 4.0, was 32.0 | `y = x[i * n];` |");
    CHECK_HAS(out.text, "`new\\|();`");
    CHECK_HAS(out.text, "No longer found: `column_walk, k.cu:5`");
    CHECK_HAS(out.text, "| `gone` | gone |");
    CHECK_HAS(out.text, "| `fresh` | new |");
  }
  sol_buffer_free(&out);
  sol_arena_free(&arena);
}

CHECK_MAIN
