// What the lanes of a line's costliest access do, and a kernel's FLOPs: for pictures, in JSON alone.
#ifndef SOL_REPORT_ACCESS_H
#define SOL_REPORT_ACCESS_H

#include "audit/audit.h"
#include "report/facts.h"

// Key "access": the instruction of the line with the most sectors a request, or with the most wavefronts where
// that wastes more. None where the line accesses neither global nor shared memory.
void report_access_facts(Fact *row, const AuditKernel *kernel, const AuditLine *line);

// Of additions, multiplications and fused ones (two each) on vector units, as ncu counts them, and of tensor cores;
// those of other formats than 16 bit as many times that as they take longer. Exact for the PTX.
double report_flops(const AuditKernel *kernel);

#endif
