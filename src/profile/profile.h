// What was measured on a GPU: kernels, their times and counters, from CUPTI or from a file.
//
//   Profile p;
//   profile_start(&p, PROFILE_FROM_CUPTI);
//   p.gpu = ...;                              what is known of the GPU; its row of the table is found by name
//   ProfileLaunch l;
//   profile_launch_clear(&l);                 everything unknown
//   l.name = ..., l.seconds = ..., l.values[PROFILE_dram_read] = ...;
//   profile_add(&p, &l, &err);                launches of one name and shape are summed; strings are copied
//   profile_finish(&p, &err);                 order, shares; then diagnose.h
//   ... p.kernels[i] ...
//   profile_free(&p);
//
// A value that was not counted is NaN (profile_known), never 0.
#ifndef SOL_PROFILE_PROFILE_H
#define SOL_PROFILE_PROFILE_H

#include "base/arena.h"
#include "sol/device.h"

typedef enum ProfileMetric {
#define METRIC(key, name, unit, fold, set, what) PROFILE_##key,
#include "profile/metrics.def"
#undef METRIC
  PROFILE_METRICS
} ProfileMetric;

typedef enum ProfileFold { PROFILE_SUM, PROFILE_MEAN, PROFILE_OF_INST } ProfileFold;
typedef enum ProfileSet { PROFILE_BASIC, PROFILE_MORE, PROFILE_FILE } ProfileSet;

typedef struct ProfileMetricInfo {
  const char *key, *name, *unit, *what; // "dram_read", "dram__bytes_read.sum", "B", ...
  ProfileFold fold;
  ProfileSet set;
} ProfileMetricInfo;
const ProfileMetricInfo *profile_metric(ProfileMetric metric);
// By ncu's name, an older or newer name of the same counter included; PROFILE_METRICS: none of those used.
ProfileMetric profile_metric_find(const char *name, size_t length);

static inline bool profile_known(double value) {
  return value == value;
}
#define PROFILE_UNKNOWN __builtin_nan("")

typedef enum ProfileSource { PROFILE_FROM_CUPTI, PROFILE_FROM_NCU } ProfileSource;

typedef struct ProfileGpu {
  char name[96], uuid[48], driver[32]; // empty: unknown. uuid: "GPU-8a3e..."
  int cc;                              // 90 for sm_90; 0: unknown
  int sms;                             // 0: unknown
  const SolDevice *device;             // its row of the table; NULL: not known, or not in it
} ProfileGpu;

typedef struct ProfileLaunch {
  const char *name;                       // mangled, or as ncu writes it
  uint32_t grid[3], block[3], cluster[3]; // zeros: unknown (cluster: none)
  double registers;                       // a thread's
  double static_shared, dynamic_shared;   // bytes a block
  double local_bytes;                     // a thread's stack, from the driver
  bool graph;                             // launched as part of a CUDA graph
  double seconds;                         // by CUPTI activity, or by the counter `time`
  double values[PROFILE_METRICS];
} ProfileLaunch;
void profile_launch_clear(ProfileLaunch *launch);

// Launches of one name and shape.
typedef struct ProfileKernel {
  const char *name, *title; // title: for people, without return type and parameters
  uint32_t grid[3], block[3], cluster[3];
  double registers, static_shared, dynamic_shared, local_bytes; // of the first launch that has them
  double launches, graph_launches;
  double timed;                    // launches whose time is known
  double time_sum;                 // of those, seconds
  double least, most;              // of one launch; unknown where none was timed
  double sums[PROFILE_METRICS];    // over the launches that know the counter; of means: weighted by `weights`
  double weights[PROFILE_METRICS]; // of means
  double counted[PROFILE_METRICS]; // launches that know it: 0, unknown
  // From profile_finish:
  double seconds; // of all launches: where some were not timed, taken to be like the others
  double share;   // of the profile's time
  struct ProfileDiagnosis *diagnosis; // from profile_diagnose
} ProfileKernel;

// Of all launches: a sum is scaled up where only some were counted (kernel->counted), a mean is a mean.
double profile_value(const ProfileKernel *kernel, ProfileMetric metric);

enum { PROFILE_MAX_NOTES = 24 };
typedef struct Profile {
  ProfileSource source;
  ProfileGpu gpu;
  ProfileKernel *kernels; // order of first launch; from profile_finish: most time first
  uint32_t kernel_count, kernel_cap;
  double launches, seconds;             // seconds: unknown where nothing was timed
  const char *notes[PROFILE_MAX_NOTES]; // what a reader has to know: what was not counted, and why
  int note_count;
  SolArena arena; // holds all that is pointed to
  struct ProfileIndex *index;
  bool finished;
} Profile;

void profile_start(Profile *profile, ProfileSource source);
SolStatus profile_add(Profile *profile, const ProfileLaunch *launch, SolError *err);
// A sentence; the same one is kept once.
void profile_note(Profile *profile, const char *format, ...) SOL_PRINTF(2, 3);
SolStatus profile_finish(Profile *profile, SolError *err);
void profile_free(Profile *profile);

// Which launches are selected: those of these kernels ("name,name*", as written or as mangled; namespaces
// and template arguments may be left out; NULL: all), less the first `skip` of them, `count` at most (0: no
// limit).
typedef struct ProfileFilter {
  const char *kernels;
  double skip, count;
  double seen; // launches of those kernels so far
} ProfileFilter;
bool profile_takes(ProfileFilter *filter, const char *name); // once for each launch, in order

// "void ns::f<float, 4>(const float *, int)" and "_ZN2ns1fIfLi4EEEvPKfi" are "ns::f<float,4>".
void profile_title(const char *name, char *out, size_t cap);

#endif
