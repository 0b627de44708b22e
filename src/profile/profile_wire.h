// What the injected library reports to the profiler, a line of JSON each, appended to a file per process as
// launches end: a program that crashes leaves what it did so far. What describes a kernel is written once.
#ifndef SOL_PROFILE_WIRE_H
#define SOL_PROFILE_WIRE_H

#include "base/buffer.h"
#include "profile/profile.h"

enum { PROFILE_WIRE = 1, PROFILE_MAX_NAME = 16384 };

// Why something is missing; the names are the wire's.
#define PROFILE_TROUBLES(X)                                                                                  \
  X(FORBIDDEN, "forbidden") /* the driver lets only root read counters */                                    \
  X(NO_CUPTI, "no-cupti")                                                                                    \
  X(OLD, "old")         /* a CUPTI without the range profiler */                                             \
  X(REFUSED, "refused") /* any other error of CUPTI or the driver */                                         \
  X(GRAPH, "graph")     /* the kernels of a CUDA graph were not counted one by one */                        \
  X(LOST, "lost")       /* launches that could not be reported */
typedef enum ProfileTrouble {
#define TROUBLE(name, text) PROFILE_##name,
  PROFILE_TROUBLES(TROUBLE)
#undef TROUBLE
      PROFILE_TROUBLE_COUNT
} ProfileTrouble;

// ---- writing ----

// The first line. `metrics` names the values of a launch.
void profile_write_start(long pid, bool counters, unsigned cupti, const ProfileMetric *metrics, int count,
                         SolBuffer *out);
void profile_write_gpu(int device, const ProfileGpu *gpu, SolBuffer *out);
void profile_write_kernel(uint32_t id, const ProfileLaunch *launch, SolBuffer *out);
void profile_write_launch(uint32_t id, int device, const ProfileLaunch *launch, const ProfileMetric *metrics,
                          int count, SolBuffer *out);
void profile_write_trouble(ProfileTrouble what, const char *text, const char *hint, double times,
                           SolBuffer *out);
// The last line of a process that ended normally. seen: launches, reported or not.
void profile_write_end(double seen, double reported, SolBuffer *out);

// ---- reading ----

typedef enum ProfileLineKind {
  PROFILE_LINE_START,
  PROFILE_LINE_GPU,
  PROFILE_LINE_KERNEL,
  PROFILE_LINE_LAUNCH,
  PROFILE_LINE_TROUBLE,
  PROFILE_LINE_END
} ProfileLineKind;

typedef struct ProfileMessage {
  ProfileLineKind kind;
  double pid;     // start
  bool counters;  // start
  double version; // start: CUPTI's
  int device;     // gpu, launch
  ProfileGpu gpu;
  ProfileLaunch launch; // valid until the reader is freed
  ProfileTrouble trouble;
  char text[256], hint[256];
  double times;          // trouble: how often
  double seen, reported; // end
} ProfileMessage;

// One per file; starts as {0}.
typedef struct ProfileReader {
  SolArena arena;
  struct ProfileReadKernel *kernels;
  uint32_t count, cap;
  ProfileMetric metrics[PROFILE_METRICS]; // by place in a line's values; PROFILE_METRICS: none of those used
  int metric_count;
  bool started, ended;
} ProfileReader;
// SOL_ERR_SYNTAX: not a line of this format, or cut. SOL_ERR_UNSUPPORTED: another version's.
SolStatus profile_read_line(ProfileReader *reader, const char *line, size_t length, ProfileMessage *out,
                            SolError *err);
void profile_reader_free(ProfileReader *reader);

#endif
