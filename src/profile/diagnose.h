// What the counters show of a kernel, in the order in which it pays to look: what binds it, whether its
// accesses are coalesced, what throughput it reaches, whether shared memory has conflicts, whether it spills.
// Then which roof it is under and how near, a point for the roofline, and those of `sol audit`'s rules that
// counters can decide.
#ifndef SOL_PROFILE_DIAGNOSE_H
#define SOL_PROFILE_DIAGNOSE_H

#include "audit/audit.h"
#include "profile/profile.h"

// What the GPU gives at most. Each figure has its source: measured on this machine, or the datasheet.
typedef struct ProfileRoofs {
  SolFigure read, write, copy; // DRAM, B/s
  SolFigure l2;                // B/s
  SolFigure shared;            // B/s of all SMs
  SolFigure fp32, fp64;        // FLOP/s, vector units
  SolFigure tensor;            // fp16 or bf16, dense
  SolFigure launch_us, graph_us;
  SolFigure sms;
  bool measured; // those of DRAM
} ProfileRoofs;
// Of the table; NULL: all unknown.
ProfileRoofs profile_roofs(const SolDevice *device);

typedef enum ProfileBand { // of the roof that binds
  PROFILE_EXCELLENT,       // over 80%
  PROFILE_GOOD,            // 60 to 80
  PROFILE_WASTEFUL,        // 30 to 60
  PROFILE_POOR,            // under 30
  PROFILE_NO_BAND          // unknown: not counted
} ProfileBand;
const char *profile_band_name(ProfileBand band); // "excellent"; NULL for none

typedef enum ProfileStepId {
  PROFILE_STEP_BOUND,
  PROFILE_STEP_COALESCING,
  PROFILE_STEP_THROUGHPUT,
  PROFILE_STEP_SHARED,
  PROFILE_STEP_SPILLS,
  PROFILE_STEPS
} ProfileStepId;
const char *profile_step_name(ProfileStepId step);  // "coalescing"
const char *profile_step_title(ProfileStepId step); // "Coalescing"

typedef enum ProfileVerdict { PROFILE_FINE, PROFILE_BAD, PROFILE_NOT_COUNTED } ProfileVerdict;

typedef struct ProfileStep {
  ProfileVerdict verdict;
  const char *text;    // a sentence with figures
  ProfileMetric *used; // the counters it rests on, those that are known
  int used_count;
  ProfileMetric *missing; // those that would have been needed
  int missing_count;
} ProfileStep;

typedef struct ProfileDiagnosis {
  ProfileStep steps[PROFILE_STEPS];
  // What binds: the unit that is busiest.
  const char *kind; // "memory", "compute", "both", "latency"; NULL: not counted
  MachineResource
      bound; // with `kind`; MACHINE_LATENCY where none is busy; MACHINE_RESOURCES: not known which
  double shares[MACHINE_RESOURCES]; // of each roof that is reached; unknown where it was not counted
  double busiest;                   // the largest
  // The verdict: how much of a roof worth reaching is reached. L1 and L2 are one only where nothing that
  // passes through them is known to be waste; else it is DRAM's, or arithmetic's.
  ProfileBand band;
  double share;
  MachineResource roof_of;
  const char *roof;                   // "DRAM bandwidth, 4.52 TB/s (measured on this GPU)"
  double dram_rate, l2_rate;          // B/s
  double load_sectors, store_sectors; // a request
  double conflicts;                   // share of shared-memory wavefronts that are conflicts
  double local_sectors;
  // The point under the roofline: vector FLOPs; tensor work is not counted by these counters.
  double flops, intensity, attainable; // FLOP, FLOP/byte of DRAM, FLOP/s
  AuditFinding *findings; // gain and saved are unknown (not a number) but where they can be worked out
  uint32_t finding_count, finding_cap;
} ProfileDiagnosis;

// What binds; MACHINE_RESOURCES: not known.
static inline MachineResource profile_bound(const ProfileDiagnosis *d) {
  return d->kind ? d->bound : MACHINE_RESOURCES;
}

// After profile_finish: fills kernel->diagnosis of every kernel.
SolStatus profile_diagnose(Profile *profile, const ProfileRoofs *roofs, SolError *err);

#endif
