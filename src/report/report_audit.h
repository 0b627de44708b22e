// The bill of an audit as facts, and its findings as SARIF.
#ifndef SOL_REPORT_AUDIT_H
#define SOL_REPORT_AUDIT_H

#include "audit/audit.h"
#include "report/facts.h"

typedef enum AuditSort { // the largest first
  AUDIT_SORT_TIME,
  AUDIT_SORT_TAX,
  AUDIT_SORT_BYTES, // of DRAM
  AUDIT_SORT_WASTE, // sectors beyond the fewest
  AUDIT_SORT_LAUNCHES
} AuditSort;

// Of a block's life: nothing; in JSON, and so in reports; as text too.
typedef enum AuditTimelineView {
  AUDIT_NO_TIMELINE,
  AUDIT_TIMELINE_KEPT,
  AUDIT_TIMELINE_SHOWN
} AuditTimelineView;

typedef struct AuditView {
  const char *kernels; // those selected, "name,name", as written or as mangled; NULL: all
  size_t top;          // lines shown of each
  bool instructions;   // PTX instructions too
  AuditSort sort;      // of kernels
  AuditTimelineView timeline;
  const char *files; // lines shown: of these files, a pattern as of a shell ("*.cuh", "src/*"); NULL: all
} AuditView;

// The basis of the kernel's counts: they are not exact where they were scaled from a sample, or only some launches were counted.
static inline FactBasis report_audit_basis(const AuditKernel *kernel) {
  return kernel->scale > 1 || kernel->counted < kernel->launches ? BASIS_MODELLED : BASIS_EXACT;
}

bool report_audit_file_wanted(const AuditView *view, const char *file);
bool report_audit_wanted(const AuditView *view, const AuditKernel *kernel);
// The selected kernels in the order asked for, the one that takes longest first where none is; out holds program->kernel_count of them.
uint32_t report_audit_sorted(const AuditView *view, const AuditProgram *program, const AuditKernel **out);

// Everything about a finished program, into an object.
void report_audit_facts(Fact *root, const AuditProgram *program, const AuditView *view);
// Times of several GPUs side by side, text only; the first decides the order.
void report_audit_devices_facts(Fact *root, const AuditProgram *programs, int count, const AuditView *view);

// report_audit_lines.c: the table of a kernel's lines, and of its instructions.
void report_audit_line_facts(Fact *kernel, const AuditKernel *k, const AuditView *view);

// report_timeline.c: the life of a block.
void report_timeline_picture(SolBuffer *out, const MachineTimeline *timeline);
void report_timeline_facts(Fact *kernel, const AuditProgram *program, const AuditKernel *k,
                           const AuditView *view);

// report_audit_library.c: calls of libraries that compute.
void report_audit_library_facts(Fact *root, const AuditProgram *program);

// report_audit_words.c: a kernel's summary, its resources as bars, its findings.
void report_audit_summary(Fact *kernel, const AuditProgram *program, const AuditKernel *k);
void report_audit_terms(Fact *kernel, const AuditKernel *k);
void report_audit_finding_facts(Fact *kernel, const AuditKernel *k);

// A complaint of a gate, or of the program's end.
typedef struct AuditComplaint {
  const char *kernel, *file; // file: NULL where it is about no line
  uint32_t line;
  char text[400];
} AuditComplaint;

// SARIF 2.1.0: the findings as warnings, complaints as errors. `base` (may be NULL) is the folder that paths
// are relative to.
void report_audit_sarif(const AuditProgram *program, const AuditView *view, const AuditComplaint *complaints,
                        size_t complaint_count, const char *base, SolBuffer *out);

#endif
