// The answers of sol occupancy as facts, for the command line and for the page.
#ifndef SOL_REPORT_OCCUPANCY_H
#define SOL_REPORT_OCCUPANCY_H

#include "report/facts.h"
#include "sol/occupancy.h"

SolStatus report_occupancy_facts(Fact *root, const SolDevice *d, const SolKernelShape *kernel, SolError *err);

typedef enum OccupancySweep { SWEEP_REGS = 1, SWEEP_THREADS, SWEEP_SMEM } OccupancySweep;
// A row for each value of one input, the others as they are. *err is written where a figure is unknown.
SolStatus report_occupancy_sweep(Fact *list, const SolDevice *d, SolKernelShape kernel, OccupancySweep input,
                                 SolError *err);

#endif
