// Text of others made safe to show (src/base/plain.c), and that every rendering does so.
#include "base/plain.h"

#include "audit/audit_wire.h"
#include "base/error.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "check.h"
#include "report/facts.h"
#include "report/report_audit.h"
#include "report/wrap.h"

#define EVIL "a\x1b[31m\xff\xc0\xaf\xe2\x80\xae\xc2\x9b\x7f\rz"

static const char *plain(const char *text, bool lines) {
  static char room[256];
  SolBuffer b = {0};
  sol_buffer_plain(&b, text, strlen(text), lines);
  snprintf(room, sizeof room, "%s", b.text ? b.text : "");
  sol_buffer_free(&b);
  return room;
}

TEST(what_is_plain_stays) {
  static const char *const texts[] = {
      "", "add<float>", "\xc3\xa9t\xc3\xa9", "\xe6\xbc\xa2", "\xf0\x9f\x98\x80", "\xed\x9f\xbf"};
  for (size_t i = 0; i < SOL_COUNT(texts); i++) {
    CHECK(sol_text_is_plain(texts[i], strlen(texts[i]), false));
    CHECK_STR(plain(texts[i], false), texts[i]);
  }
}

TEST(what_a_terminal_obeys_is_spelt_out) {
  CHECK_STR(plain("\x1b[0m\t\r\x7f", false), "\\x1b[0m\\x09\\x0d\\x7f");
  CHECK_STR(plain("a\nb", false), "a\\x0ab");
  CHECK_STR(plain("a\nb", true), "a\nb");
  CHECK_STR(plain("\xc2\x9b", false), "\\u009b");
  CHECK_STR(plain("\xe2\x80\xae\xe2\x81\xa6\xef\xbb\xbf", false), "\\u202e\\u2066\\ufeff");
}

TEST(what_is_no_utf8_is_spelt_out) {
  CHECK_STR(plain("\xff", false), "\\xff");
  CHECK_STR(plain("\xc0\xaf", false), "\\xc0\\xaf");                   // '/' in another spelling
  CHECK_STR(plain("\xe0\x80\xaf", false), "\\xe0\\x80\\xaf");          // and another
  CHECK_STR(plain("\xed\xa0\x80", false), "\\xed\\xa0\\x80");          // half a surrogate pair
  CHECK_STR(plain("\xf4\x90\x80\x80", false), "\\xf4\\x90\\x80\\x80"); // beyond the last
  CHECK_STR(plain("\xe6\xbc", false), "\\xe6\\xbc");                   // cut
}

TEST(a_cut_falls_between_characters) {
  CHECK_INT(sol_text_cut("abc", 5), 3);
  CHECK_INT(sol_text_cut("abc", 2), 2);
  CHECK_INT(sol_text_cut("a\xe6\xbc\xa2", 2), 1);
  CHECK_INT(sol_text_cut("a\xe6\xbc\xa2", 3), 1);
  CHECK_INT(sol_text_cut("a\xe6\xbc\xa2 ", 4), 4);
}

TEST(json_is_utf8_and_escaped) {
  SolBuffer b = {0};
  sol_json_add_text(&b, "\"\\\n\x01\x7f\xff\xe2\x80\xae\xf3\xa0\x81\xa5\xc3\xa9");
  CHECK_STR(b.text, "\"\\\"\\\\\\n\\u0001\\u007f\\ufffd\\u202e\\udb40\\udc65\xc3\xa9\"");
  SolJson root;
  char back[64];
  if (CHECK(sol_json_check(b.text, b.length, &root, NULL) == SOL_OK) &&
      CHECK(sol_json_string(root, back, sizeof back)))
    CHECK_STR(back, "\"\\\n\x01\x7f\xef\xbf\xbd\xe2\x80\xae\xf3\xa0\x81\xa5\xc3\xa9");
  sol_buffer_free(&b);
}

TEST(an_error_is_one_line) {
  SolError err;
  sol_fail(&err, SOL_ERR_ARGUMENT, "no '%s'", "a\nsol: all is well");
  CHECK_STR(err.message, "no 'a sol: all is well'");
}

static void check_clean(const SolBuffer *b) {
  CHECK_MSG(b->text && sol_text_is_plain(b->text, b->length, true), "not plain: %s", b->text ? b->text : "");
  if (b->text) CHECK_HAS(b->text, "31m");
}

TEST(facts_are_clean) {
  SolArena arena = {0};
  Fact *root = facts_root(&arena, FACT_OBJECT);
  fact_title(root, "%s", EVIL);
  fact_text(root, "pair", "pair", EVIL);
  fact_note(root, "%s", EVIL);
  Fact *list = fact_list(root, "list", "list"), *row = fact_object(list, 0, 0);
  fact_text(row, "cell", "cell", EVIL);
  fact_text(fact_list(root, "texts", "texts"), 0, 0, EVIL);
  fact_line(root, 2, true, "%s", EVIL);
  fact_line(root, 2, false, "%s", EVIL);
  SolBuffer text = {0}, json = {0};
  CHECK(facts_render_text(root, &(TextStyle){.width = 80}, &text));
  CHECK(facts_render_json(root, &json));
  check_clean(&text);
  check_clean(&json);
  sol_buffer_free(&text);
  sol_buffer_free(&json);
  sol_arena_free(&arena);
}

// A program can write lines of its own into the report that sol audit reads.
TEST(names_from_the_wire_are_clean) {
  static const char line[] =
      "{\"launch\": 1, \"name\": \"k\\u001b[31m\\u202e\xff\", \"unit\": 0, \"grid\": "
      "[1,1,1], \"block\": [32,1,1], "
      "\"cluster\": [0,0,0], \"numbers\": [0,0,0,0,8,0,0,1,1], "
      "\"new\": [[0, 1, 0, 0, 0, 0, 0, \"f\\u001b[31m\\u0007.cu\", \"ld\\u009b31m\"]], "
      "\"insts\": [[0, 0, [32, 1], []]], "
      "\"touches\": [], \"faults\": [[\"went\\u001b[31mwrong\", \"race\", \"\", []]]}";
  AuditReader reader = {0};
  AuditMessage heard;
  AuditProgram program = {0};
  SolArena arena = {0};
  const SolDevice *device;
  SolError err = {0};
  CHECK(sol_device_find("h100-sxm", &device, &err) == SOL_OK &&
        audit_start(&program, device, &err) == SOL_OK);
  if (!CHECK_MSG(audit_read_line(&reader, line, sizeof line - 1, &heard, &err) == SOL_OK, "%s", err.message))
    return;
  CHECK_INT(audit_add(&program, &heard.launch, &err), SOL_OK);
  CHECK_INT(audit_finish(&program, &err), SOL_OK);
  AuditView view = {.top = 10, .instructions = true};
  AuditComplaint complaint = {.kernel = program.kernels[0].title, .text = EVIL, .file = EVIL, .line = 1};
  Fact *root = facts_root(&arena, FACT_OBJECT);
  report_audit_facts(root, &program, &view);
  SolBuffer text = {0}, json = {0}, sarif = {0};
  CHECK(facts_render_text(root, &(TextStyle){.width = 80}, &text));
  CHECK(facts_render_json(root, &json));
  report_audit_sarif(&program, &view, &complaint, 1, "/", &sarif);
  check_clean(&text);
  check_clean(&json);
  check_clean(&sarif);
  sol_buffer_free(&text);
  sol_buffer_free(&json);
  sol_buffer_free(&sarif);
  sol_arena_free(&arena);
  audit_free(&program);
  audit_reader_free(&reader);
}

CHECK_MAIN
