// What changed between two bills of `sol audit --json`, by kernel and by line.
//
//   AuditChange change;
//   report_audit_change(old, new, &arena, &change);
//   report_audit_change_facts(root, &change);              text and JSON
//   report_audit_change_markdown(&out, &change);           for a pull request
#ifndef SOL_REPORT_AUDIT_CHANGE_H
#define SOL_REPORT_AUDIT_CHANGE_H

#include "base/json_read.h"
#include "report/facts.h"

typedef struct ChangeSide { // of a kernel or a line, before or after
  bool there;
  double us, tax, dram, light; // of a kernel
  double line, sectors;        // of a line: its number, sectors a request
} ChangeSide;

typedef struct ChangeLine {
  const char *file, *source; // source: "" where it is not known
  ChangeSide before, after;
} ChangeLine;

typedef struct ChangeKernel {
  const char *name;
  ChangeSide before, after;
  ChangeLine *lines; // those that changed, the largest change first
  uint32_t line_count;
  const char **new_rules, **gone_rules; // "column_walk, k.cu:9"
  uint32_t new_count, gone_count;
} ChangeKernel;

typedef struct AuditChange {
  const char *before, *after; // what was compared
  double before_us, after_us;
  ChangeKernel *kernels; // the largest change first
  uint32_t count;
  uint32_t same; // kernels that did not change, which are not among them
} AuditChange;

// False: out of memory, or one is no bill.
bool report_audit_change(SolJson before, SolJson after, SolArena *arena, AuditChange *out);
void report_audit_change_facts(Fact *root, const AuditChange *change);
void report_audit_change_markdown(SolBuffer *out, const AuditChange *change);

#endif
