// A launch put together from Nsight Compute's values.
#ifndef SOL_PROFILE_NCU_LAUNCH_H
#define SOL_PROFILE_NCU_LAUNCH_H

#include "profile/ncu_names.h"

typedef struct NcuLaunch {
  const Csv *csv; // that fields are of, for the place of an error
  Profile *profile;
  ProfileLaunch launch;
  double rates[PROFILE_METRICS];       // counters per clock
  unsigned char rank[PROFILE_METRICS]; // 0 unknown, 1 by an alias, 2 by its own name
  // What was met on the way, in this launch or one before.
  bool rounded, mixed_gpus;
  int uncounted;
} NcuLaunch;

void ncu_launch_clear(NcuLaunch *launch); // the next one; what was met stays
SolStatus ncu_take(NcuLaunch *launch, NcuThing thing, CsvField text, CsvField unit, SolError *err);
// At its end: what the file has only per clock.
void ncu_use_rates(NcuLaunch *launch);

SolStatus import_fail(const Csv *csv, SolError *err, CsvField place, const char *message, const char *hint);
#define WRITE_AGAIN "write the file again: ncu --csv --page raw --log-file report.csv PROGRAM"

#endif
