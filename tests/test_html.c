// HTML reports: what is put into them can end no script and is the same JSON; the template is whole.
#include "report/html.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "check.h"

// The data of the report, between the tags of its script.
static char *data_of(const SolBuffer *out) {
  const char *mark = "id=\"data\">", *from = strstr(out->text, mark);
  const char *to = from ? strstr(from, "</script>") : NULL;
  if (!to) return NULL;
  from += strlen(mark);
  char *data = calloc((size_t)(to - from) + 1, 1);
  return data ? memcpy(data, from, (size_t)(to - from)) : NULL;
}

static void text_at(const char *json, int part, const char *key, char *out, size_t cap) {
  SolJson root, row, value;
  out[0] = 0;
  if (sol_json_check(json, strlen(json), &root, NULL)) return;
  SolJsonIter it = {.container = root};
  for (int i = 0; i <= part; i++)
    if (!sol_json_next(&it, NULL, &row)) return;
  if (strcmp(key, "name") != 0 && sol_json_get(row, "json", &value)) row = value;
  if (sol_json_get(row, key, &value)) sol_json_string(value, out, cap);
}

TEST(data_ends_no_script_and_stays_the_same) {
  const char *json = "{\"schema\":1,\"k\":\"</script><!--\xe2\x80\xa8|\xe2\x80\xa9\xe2\x80\"}";
  HtmlPart parts[] = {{"<b>\xe2\x80\xae\x01\xff\".json", json, strlen(json)}, {"", "{\"k\":\"\"}", 8}};
  SolBuffer out = {0};
  report_html(&out, parts, 2, false);
  CHECK(!out.failed);
  char *data = data_of(&out), text[96];
  CHECK(data && !strchr(data, '<') && !strstr(data, "\xe2\x80\xa8") && !strstr(data, "\xe2\x80\xa9"));
  if (data) {
    text_at(data, 0, "k", text, sizeof text);
    CHECK_STR(text, "</script><!--\xe2\x80\xa8|\xe2\x80\xa9\xe2\x80");
    text_at(data, 0, "name", text, sizeof text);
    CHECK_STR(text, "<b>\\u202e\\x01\\xff\".json");
    text_at(data, 1, "name", text, sizeof text);
    CHECK_STR(text, "");
  }
  free(data);
  sol_buffer_free(&out);
}

TEST(template_is_whole) {
  SolBuffer out = {0};
  report_html(&out, &(HtmlPart){"x", "{}", 2}, 1, false);
  CHECK(strstr(out.text, "default-src 'none'") && strstr(out.text, "[{\"name\":\"x\",\"json\":{}}]"));
  CHECK(!strstr(out.text, "{{"));
  for (int i = 0; i < web_source_count; i++)
    if (strstr(web_sources[i].path, ".js") && !strstr(web_sources[i].path, "live"))
      CHECK(strstr(out.text, web_sources[i].text) != NULL);
  sol_buffer_free(&out);
}

CHECK_MAIN
