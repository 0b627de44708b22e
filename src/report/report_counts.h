// The counts of an emulated launch as facts, by kind of memory and by source line or instruction, and its
// findings.
#ifndef SOL_REPORT_COUNTS_H
#define SOL_REPORT_COUNTS_H

#include "emu/emu.h"
#include "report/facts.h"

void report_counts_by_kind(Fact *root, const SolEmuResult *result); // "memory": [...]
// "lines": [...] or "instructions": [...], the `most` costliest in sectors and wavefronts.
void report_counts_by_place(Fact *root, const SolPtxModule *ptx, const SolEmuResult *result, bool lines,
                            size_t most);
void report_counts_findings(Fact *root, const SolEmuResult *result); // "findings": [...]

#endif
