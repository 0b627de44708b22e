// Hardware counters of kernel launches in this process, by CUPTI's range profiler. A launch is run again for
// every pass that the metrics need; what it wrote is restored in between. CUPTI is loaded at run time.
//
//   Counters *c;
//   CountersOptions options = {.metrics = names, .metric_count = 3, .most_launches = 8};
//   counters_open(&options, &c, NULL, &err);
//   counters_start(c, &err);
//   ... launches ...
//   counters_stop(c, &launches, &err);
//   counters_values(c, 0, values, &err);    // of the first launch, by metric
//   counters_close(c);
#ifndef SOL_MEASURE_COUNTERS_H
#define SOL_MEASURE_COUNTERS_H

#include "base/port.h"
#include "sol/status.h"

typedef struct Counters Counters;

typedef struct CountersOptions {
  const char *const *metrics; // as ncu and CUPTI name them: "dram__bytes_read.sum"; kept, not copied
  int metric_count;
  void *context;     // CUcontext; NULL: the current one, or else GPU 0's primary context
  int most_launches; // between counters_start and counters_stop; 0: one
  bool ranges;       // for counters_range; otherwise for counters_start. CUPTI does not do both at once
} CountersOptions;

// Why there are no counters; all of them fail with SOL_ERR_UNSUPPORTED.
typedef enum CountersTrouble {
  COUNTERS_FINE,
  COUNTERS_NO_DRIVER,
  COUNTERS_NO_CUPTI,
  COUNTERS_OLD,       // a CUPTI without the range profiler
  COUNTERS_FORBIDDEN, // the driver's permission setting; the hint says how to change it
  COUNTERS_REFUSED    // any other error of CUPTI
} CountersTrouble;

SolStatus counters_open(const CountersOptions *options, Counters **out,
                        CountersTrouble *trouble /* or NULL */, SolError *err);
void counters_close(Counters *counters); // NULL is fine
int counters_passes(const Counters *counters);
bool counters_has(const Counters *counters, int metric); // false: this GPU has no such metric

// Every launch of the context from here on is counted, by itself: launches wait for each other. What a CUDA
// graph launches is not.
SolStatus counters_start(Counters *counters, SolError *err);
// Waits for them; *launches (may be NULL) is how many were counted.
SolStatus counters_stop(Counters *counters, int *launches, SolError *err);
// Of the `launch`-th since counters_start: a value for every metric, not-a-number for one that is not known.
SolStatus counters_values(const Counters *counters, int launch, double *values, SolError *err);

// Everything that `work` does on the context, counted as one. It is called once per pass, and has to do the same
// each time. `values` as above.
typedef SolStatus CountersWork(void *ctx, SolError *err);
SolStatus counters_range(Counters *counters, CountersWork *work, void *ctx, double *values, SolError *err);

// How many passes the metrics would take on a chip ("GH100"), and which of them it has (`known`, may be
// NULL); needs CUPTI, but no GPU.
SolStatus counters_plan(const char *chip, const char *const *metrics, int count, int *passes, bool *known,
                        SolError *err);

#endif
