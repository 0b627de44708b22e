// What the files of the diagnosis share.
#ifndef SOL_PROFILE_JUDGE_H
#define SOL_PROFILE_JUDGE_H

#include "profile/diagnose.h"

typedef struct Judge { // one kernel
  SolArena *arena;
  const Profile *profile;
  const ProfileRoofs *roofs;
  const ProfileKernel *kernel;
  ProfileDiagnosis *out;
  SolFigure dram_roof; // for this kernel's mix of reads and writes
  double excess;       // share of global sectors beyond the fewest; unknown: not counted
  bool partly;         // some accesses may be wasted, or were not counted
  bool by_rate;        // DRAM's share is of that, not the counter's own
} Judge;

// A unit binds from this share of what it can do on, and is idle below that one.
#define JUDGE_BINDS 0.60
#define JUDGE_IDLE  0.40

// The counter's value; notes that the step rests on it, or would have.
double judge_look(Judge *judge, ProfileStep *step, ProfileMetric metric);
void judge_rate(char *out, size_t cap, double rate); // "4.52 TB/s"
ProfileBand judge_band(double share);
// judge_bound.c: the first step, and after the others the verdict.
void judge_bound(Judge *judge);
void judge_verdict(Judge *judge);
const char *judge_keep(Judge *judge, const char *text);
// judge_rules.c: the rules that counters can decide.
void judge_rules(Judge *judge);

#endif
