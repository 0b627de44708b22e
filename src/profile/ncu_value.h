// Numbers and units as Nsight Compute writes them.
#ifndef SOL_PROFILE_NCU_VALUE_H
#define SOL_PROFILE_NCU_VALUE_H

#include "profile/csv.h"

typedef enum NcuNumber {
  NCU_NUMBER,
  NCU_NONE,    // empty, "n/a": not counted
  NCU_FOREIGN, // a number with another decimal mark, or other marks between thousands
  NCU_BAD
} NcuNumber;
// "1,234.5", "0.25", "33558272". *fraction (may be NULL): whether it has digits after the point.
NcuNumber ncu_number(CsvField field, double *out, bool *fraction);

// What to multiply by to get from the unit in the file to the one used here: "ns", "B", "B/s", "%", or "" for a
// count. 0 where they do not fit together. *rounded (may be NULL): the unit is one of those that ncu picks to
// have few digits, so that the value is not exact.
double ncu_unit(CsvField unit, const char *wanted, bool *rounded);

// "(256, 1, 1)"; false where it is none.
bool ncu_shape(CsvField field, uint32_t out[3]);

#endif
