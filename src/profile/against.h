// Measured against emulated: a profile against the bill that `sol audit --json` wrote.
#ifndef SOL_PROFILE_AGAINST_H
#define SOL_PROFILE_AGAINST_H

#include "base/json_read.h"
#include "profile/profile.h"

typedef enum AgainstUnit { AGAINST_COUNT, AGAINST_BYTES, AGAINST_US, AGAINST_SHARE } AgainstUnit;

typedef struct AgainstRow {
  const char *key, *label; // "load_sectors", "global loads: sectors"
  AgainstUnit unit;
  bool exact;                // the emulator counts it, rather than models it
  double measured, emulated; // unknown: one of the two does not have it
} AgainstRow;

enum { AGAINST_MAX_ROWS = 24 };
typedef struct AgainstKernel {
  const char *title;
  double launches,
      emulated_launches; // where they differ the emulated counts are scaled to the measured launches
  AgainstRow rows[AGAINST_MAX_ROWS];
  int row_count;
} AgainstKernel;

typedef struct Against {
  AgainstKernel *kernels; // in the profile's order
  uint32_t kernel_count;
  const char *device; // that the bill is of
} Against;

// `text` holds one bill, or an array of bills, of which the one of the profile's GPU is taken. Kernels are
// matched by symbol, else by name, template arguments left out where that is unambiguous; what has no
// counterpart is noted in the profile. What `out` points to is in the profile's arena.
SolStatus profile_against(Profile *profile, const char *text, size_t length, Against *out, SolError *err);

#endif
