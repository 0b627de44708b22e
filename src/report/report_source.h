// Source text around the lines of a bill, for reports: key "sources", in JSON alone.
#ifndef SOL_REPORT_SOURCE_H
#define SOL_REPORT_SOURCE_H

#include "report/facts.h"

typedef struct SourceText {
  const char *file, *text; // whole lines, indented as they are
  uint32_t first;          // number of the first
} SourceText;

// Lines first to last, those between and a few around them, copied into the arena. False: there are none, or they
// are too many.
bool report_source_cut(SolArena *arena, const char *file, const char *text, size_t length, uint32_t first,
                       uint32_t last, SourceText *out);
void report_source_facts(Fact *root, const SourceText *texts, int count);

#endif
