// The time of one call of an operation. On a GPU: calls recorded into CUDA graphs, the graphs replayed
// between device events, every call on another set of tensors (sets.h), all sets together larger than three
// times the L2. On the CPU: the wall clock over calls on rotating sets. The emulator has no times.
#ifndef SOL_MEASURE_TIMER_H
#define SOL_MEASURE_TIMER_H

#include "measure/sets.h"
#include "measure/stats.h"

typedef struct Timer {
  SolContext *ctx;
  SolDriverInfo info; // cuda
  SolStream stream;   // cuda
  int rounds;         // samples a median is taken of
  double footprint;   // bytes that all sets together have at least
  double launch_us;   // cuda: host time of launching an empty kernel
  bool device_only;   // the host's time of a call is not measured
} Timer;

typedef struct Timing {
  Stats us; // per call
  SolCost cost;
  double footprint;
  double host_us, host_over_us; // cuda: host time of one call, and what of it is not the driver's own launch
  int sets, calls;              // calls: in one sample
} Timing;

// quick: fewer rounds. SOL_ERR_UNSUPPORTED on the emulator. Close it after a failure, too.
SolStatus timer_open(Timer *t, SolContext *ctx, bool quick, SolError *err);
void timer_close(Timer *t);
// SOL_ERR_NOT_FOUND: the operation has no such case. SOL_ERR_NO_SPACE: its tensors do not fit.
SolStatus timer_time(Timer *t, const OpsDef *def, const OpsCase *c, int misalign, Timing *out, SolError *err);
// On a GPU: anything that can be enqueued on one of `sets` sets of memory, which the caller has filled.
// streamed: calls go into a stream, one after another, and the host's clock measures one call with all that
// it waits for; otherwise they are recorded into a graph. Fills in us, calls and sets.
typedef SolStatus TimerCall(void *ctx, int set, SolStream stream, SolError *err);
SolStatus timer_calls(Timer *t, TimerCall *call, void *ctx, int sets, bool streamed, Timing *out,
                      SolError *err);

#endif
