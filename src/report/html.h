// Results of commands as one HTML file that needs no other: web/report.html with its style, its scripts and the
// JSON put in. The scripts draw it in the browser.
#ifndef SOL_REPORT_HTML_H
#define SOL_REPORT_HTML_H

#include "base/buffer.h"

typedef struct WebText {
  const char *path, *text; // from the root of the tree: "web/report.html"
} WebText;
extern const WebText web_sources[];
extern const int web_source_count;

typedef struct HtmlPart {
  const char *name; // of the file, or of the command; any bytes
  const char *json; // a whole JSON text, checked
  size_t length;
} HtmlPart;

// Several parts are compared. live: as sol serve shows it, which asks the server whether the file has changed; without
// that the report may make no request at all.
void report_html(SolBuffer *out, const HtmlPart *parts, int count, bool live);

#endif
