#include "report/html.h"

#include <string.h>

#include "base/json_write.h"
#include "base/plain.h"

// In a checked JSON text '<' stands in strings alone, where \u003c means the same. Without it no tag, comment or
// end of the script can be in the text. U+2028 and U+2029 are line ends to some readers of scripts.
static void put_data(SolBuffer *out, const char *json, size_t length) {
  size_t from = 0;
  for (size_t i = 0; i < length; i++) {
    bool line_end = length - i > 2 && memcmp(json + i, "\xe2\x80", 2) == 0 &&
                    (json[i + 2] == (char)0xa8 || json[i + 2] == (char)0xa9);
    if (json[i] != '<' && !line_end) continue;
    sol_buffer_put(out, json + from, i - from);
    sol_buffer_puts(out, json[i] == '<' ? "\\u003c" : json[i + 2] == (char)0xa8 ? "\\u2028" : "\\u2029");
    if (line_end) i += 2;
    from = i + 1;
  }
  sol_buffer_put(out, json + from, length - from);
}

static void put_parts(SolBuffer *out, const HtmlPart *parts, int count) {
  SolBuffer plain = {0}, name = {0};
  sol_buffer_puts(out, "[");
  for (int i = 0; i < count; i++) {
    plain.length = name.length = 0;
    sol_buffer_plain(&plain, parts[i].name, strlen(parts[i].name), false); // a file's name may be no UTF-8
    sol_json_add_text(&name, plain.length ? plain.text : "");
    sol_buffer_puts(out, i ? ",\n{\"name\":" : "{\"name\":");
    put_data(out, name.text ? name.text : "", name.length);
    sol_buffer_puts(out, ",\"json\":");
    put_data(out, parts[i].json, parts[i].length);
    sol_buffer_puts(out, "}");
  }
  sol_buffer_puts(out, "]");
  if (plain.failed || name.failed) out->failed = true;
  sol_buffer_free(&plain);
  sol_buffer_free(&name);
}

static const char *text_of(const char *name, size_t length) {
  for (int i = 0; i < web_source_count; i++) {
    const char *path = web_sources[i].path + strlen("web/");
    if (strlen(path) == length && memcmp(path, name, length) == 0) return web_sources[i].text;
  }
  return "";
}

static bool is_mark(const char *mark, size_t length, const char *name) {
  return strlen(name) == length && memcmp(mark, name, length) == 0;
}

// {{name}} in the template is the file of that name under web/, {{data}} the parts; {{policy}} and {{live}} are what a
// report under sol serve has besides.
void report_html(SolBuffer *out, const HtmlPart *parts, int count, bool live) {
  const char *at = text_of("report.html", strlen("report.html"));
  for (const char *mark; (mark = strstr(at, "{{")); at = strstr(mark, "}}") + 2) {
    sol_buffer_put(out, at, (size_t)(mark - at));
    mark += 2;
    size_t length = (size_t)(strstr(mark, "}}") - mark);
    if (is_mark(mark, length, "data"))
      put_parts(out, parts, count);
    else if (is_mark(mark, length, "policy"))
      sol_buffer_puts(out, live ? "; connect-src 'self'" : "");
    else if (is_mark(mark, length, "live"))
      sol_buffer_puts(out, live ? text_of("live.js", strlen("live.js")) : "");
    else
      sol_buffer_puts(out, text_of(mark, length));
  }
  sol_buffer_puts(out, at);
}
