// The roofs of a GPU, for pictures: the bandwidth of each level of memory, and the peaks.
#ifndef SOL_REPORT_ROOFS_H
#define SOL_REPORT_ROOFS_H

#include "report/facts.h"
#include "sol/device.h"

// Key "roofs"; JSON alone. What is unknown is null.
void report_roofs_facts(Fact *root, const SolDevice *device);

#endif
