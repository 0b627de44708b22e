// Findings as SARIF 2.1.0, which code hosts show next to the lines concerned.
#include <string.h>

#include "audit/rules.h"
#include "base/json_write.h"
#include "report/report_audit.h"
#include "sol/version.h"

// A path as a URI: relative to `base` where it is under it; what a URI cannot hold in hexadecimal.
static void put_uri(SolJsonWriter *w, const char *base, const char *file) {
  size_t n = base ? strlen(base) : 0;
  bool under = n && strncmp(file, base, n) == 0 && file[n] == '/';
  const char *path = under ? file + n + 1 : file;
  SolBuffer uri = {0};
  if (*path == '/') sol_buffer_puts(&uri, "file://");
  if (strncmp(path, "./", 2) == 0) path += 2;
  for (; *path; path++) {
    unsigned char c = (unsigned char)*path;
    bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-_.~/+", c);
    if (plain)
      sol_buffer_put(&uri, path, 1);
    else
      sol_buffer_format(&uri, "%%%02X", c);
  }
  sol_json_put_text(w, "uri", uri.text ? uri.text : "");
  sol_buffer_free(&uri);
}

static void put_message(SolJsonWriter *w, const char *name, const char *text) {
  sol_json_open(w, name, '{');
  sol_json_put_text(w, "text", text);
  sol_json_close(w, '}');
}

static void put_result(SolJsonWriter *w, const char *rule, const char *level, const char *text,
                       const char *base, const char *file, uint32_t line) {
  sol_json_open(w, NULL, '{');
  sol_json_put_text(w, "ruleId", rule);
  sol_json_put_text(w, "level", level);
  put_message(w, "message", text);
  sol_json_open(w, "locations", '[');
  if (file) {
    sol_json_open(w, NULL, '{');
    sol_json_open(w, "physicalLocation", '{');
    sol_json_open(w, "artifactLocation", '{');
    put_uri(w, base, file);
    sol_json_close(w, '}');
    sol_json_open(w, "region", '{');
    sol_json_put_number(w, "startLine", line ? line : 1);
    sol_json_close(w, '}');
    sol_json_close(w, '}');
    sol_json_close(w, '}');
  }
  sol_json_close(w, ']');
  sol_json_close(w, '}');
}

static void put_rules(SolJsonWriter *w) {
  sol_json_open(w, "rules", '[');
  for (uint32_t i = 0; audit_rule(i); i++) {
    const RuleText *rule = audit_rule(i);
    sol_json_open(w, NULL, '{');
    sol_json_put_text(w, "id", rule->id);
    put_message(w, "shortDescription", rule->title);
    put_message(w, "fullDescription", rule->meaning);
    put_message(w, "help", rule->fix);
    sol_json_close(w, '}');
  }
  sol_json_open(w, NULL, '{');
  sol_json_put_text(w, "id", "gate");
  put_message(w, "shortDescription", "A limit of sol audit was exceeded");
  sol_json_close(w, '}');
  sol_json_close(w, ']');
}

// A finding about the whole kernel is put at its costliest line.
static void put_finding(SolJsonWriter *w, const AuditKernel *k, const AuditFinding *f, const char *base) {
  SolBuffer text = {0};
  sol_buffer_format(&text, "%s: %s Fix: %s Predicted: %.2fx faster.", k->title, f->message, f->fix, f->gain);
  const char *file = f->file ? f->file : k->line_count ? k->lines[0].file : NULL;
  uint32_t line = f->file ? f->line : k->line_count ? k->lines[0].line : 0;
  put_result(w, f->rule, "warning", text.text ? text.text : "", base, file, line);
  sol_buffer_free(&text);
}

void report_audit_sarif(const AuditProgram *p, const AuditView *view, const AuditComplaint *complaints,
                        size_t complaint_count, const char *base, SolBuffer *out) {
  SolJsonWriter w = {.out = out};
  sol_json_open(&w, NULL, '{');
  sol_json_put_text(&w, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
  sol_json_put_text(&w, "version", "2.1.0");
  sol_json_open(&w, "runs", '[');
  sol_json_open(&w, NULL, '{');
  sol_json_open(&w, "tool", '{');
  sol_json_open(&w, "driver", '{');
  sol_json_put_text(&w, "name", "sol audit");
  sol_json_put_text(&w, "version", SOL_VERSION);
  put_rules(&w);
  sol_json_close(&w, '}');
  sol_json_close(&w, '}');
  sol_json_open(&w, "results", '[');
  for (size_t i = 0; i < complaint_count; i++)
    put_result(&w, "gate", "error", complaints[i].text, base, complaints[i].file, complaints[i].line);
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    const AuditKernel *k = &p->kernels[i];
    for (uint32_t f = 0; report_audit_wanted(view, k) && f < k->finding_count; f++)
      put_finding(&w, k, &k->findings[f], base);
  }
  sol_json_close(&w, ']');
  sol_json_close(&w, '}');
  sol_json_close(&w, ']');
  sol_json_close(&w, '}');
}
