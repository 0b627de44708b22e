// libsolprofile.so: loaded into any CUDA program by its driver (CUDA_INJECTION64_PATH).
// It reports every kernel launch in lines of profile/profile_wire.h. What it is to do is set by its
// environment:
//   SOL_PROFILE_OUT      FILE: the lines go to FILE.PID, a file for each process; without it nothing is done
//   SOL_PROFILE_METRICS  counters to collect, separated by commas; empty: times alone
//   SOL_PROFILE_KERNEL   of which kernels (ProfileFilter)
//   SOL_PROFILE_SKIP     launches of those that are passed over first
//   SOL_PROFILE_COUNT    launches to report at most; 0: no limit
//   SOL_PROFILE_EACH     launches of one kernel and shape to count, the rest is timed; 0: all. Without effect
//                        where launches are skipped or limited
// No error is passed to the program: it is written as a line.
#ifndef SOL_INJECT_INJECT_H
#define SOL_INJECT_INJECT_H

#include "base/channel.h"
#include "base/threads.h"
#include "inject/graphs.h"
#include "measure/counters.h"
#include "measure/cupti.h"
#include "profile/profile_wire.h"

enum { MAX_CONTEXTS = 16, MAX_GPUS = 64, MAX_COUNTED = 4096 };

typedef enum InjectSwap { INJECT_SWAP_UNTRIED, INJECT_SWAP_WORKS, INJECT_SWAP_NEVER } InjectSwap;

typedef struct InjectKernel {
  uint64_t hash;
  char *name;
  double registers, static_shared, local_bytes;
} InjectKernel;

typedef struct InjectShape { // a kernel with its grid and block
  uint64_t hash;             // 0: empty
  uint64_t counted;
} InjectShape;

// The driver's functions that are used; a missing one is NULL, and what it would return stays unknown.
#define INJECT_DRIVER(X)                                                                                     \
  X(device_get, "cuDeviceGet", (int *, int))                                                                 \
  X(device_name, "cuDeviceGetName", (char *, int, int))                                                      \
  X(device_uuid, "cuDeviceGetUuid_v2", (unsigned char *, int))                                               \
  X(device_attribute, "cuDeviceGetAttribute", (int *, int, int))                                             \
  X(function_attribute, "cuFuncGetAttribute", (int *, int, void *))                                          \
  X(kernel_function, "cuKernelGetFunction", (void **, void *))                                               \
  X(stream_capturing, "cuStreamIsCapturing", (void *, int *))

typedef struct Inject {
  Cupti cupti;
#define INJECT_POINTER(field, symbol, parameters) int(*field) parameters;
  INJECT_DRIVER(INJECT_POINTER)
  GRAPH_DRIVER(INJECT_POINTER)
  GRAPH_DRIVER_MORE(INJECT_POINTER)
#undef INJECT_POINTER
  SolChannel channel;
  bool failed;     // to write to it, which was reported
  long pid;        // of the process that loaded it: a fork of it is not profiled
  SolLock *lock;   // over what is written; nothing of CUPTI or the driver is called under it
  SolLock *serial; // counts: over a launch, from enter to exit
  SolBuffer out;
  void *subscriber;
  ProfileFilter filter;
  uint64_t seen, reported, lost, bad_launches;
  bool timing; // by activity
  bool counts; // counters are available, in at least one context
  bool gpu_sent[MAX_GPUS];
  ProfileMetric metrics[PROFILE_METRICS];
  const char *metric_names[PROFILE_METRICS];
  int metric_count;
  InjectKernel *kernels; // by id
  uint32_t *slots;       // hash table of ids + 1
  uint32_t kernel_count, kernel_cap, slot_count;
  struct InjectContext {
    void *context;
    Counters *counters; // NULL: not available
    int device;
    void *nothing; // an empty graph, instantiated
  } contexts[MAX_CONTEXTS];
  int context_count;
  uint64_t each; // launches of one kernel and shape that are counted, the rest is timed; 0: all
  InjectShape *shapes;
  uint32_t shape_count, shape_cap;
  bool counting;       // the launch between enter and exit
  InjectGraph *graphs; // the program's instantiated graphs
  size_t graph_count, graph_cap;
  bool device_graphs;    // some are launched from the device
  InjectSwap swap;       // whether the driver lets a callback replace the graph of a launch
  uint64_t graphs_whole; // launches whose kernels were not counted, and why the first
  const char *graph_why;
  void *graph_swapped; // between enter and exit: the program's graph, where it was replaced; else NULL
  int graph_result;
  uint32_t counted[MAX_COUNTED];  // correlation ids of what was counted last, a ring
  uint32_t replayed[MAX_COUNTED]; // and of graphs that were launched node by node
  uint32_t counted_next, replayed_next;
} Inject;

extern Inject *inject; // NULL until InitializeInjection has run

// inject.c
void inject_flush(Inject *in); // what was written goes to the file
void inject_trouble(Inject *in, ProfileTrouble what, const SolError *err);
void inject_gpu(Inject *in, int device); // reported once
// Whether this launch is selected; counts it.
bool inject_wants(Inject *in, const char *name);
void inject_tell(Inject *in, int device, ProfileLaunch *launch, bool counted);

// times.c: CUPTI activity.
SolStatus inject_start_times(Inject *in, SolError *err);
void inject_end_times(Inject *in);
// turns.c: which launches are counted.
bool inject_limited(const Inject *in);                                  // launches are chosen by number
bool inject_counts(Inject *in, const ProfileLaunch *launch);            // this one
void inject_keep(uint32_t *ring, uint32_t *next, uint32_t correlation); // in `counted` or `replayed`
bool inject_was_counted(const Inject *in, uint32_t correlation);
bool inject_was_graph(const Inject *in, uint32_t correlation); // though it was launched by itself
// inject_counts.c: CUPTI callbacks and counters.
SolStatus inject_start_counts(Inject *in, SolError *err);

#endif
