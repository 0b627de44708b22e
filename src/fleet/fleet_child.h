// One job as a process of its own: what it does to itself, the rank survives.
#ifndef SOL_FLEET_CHILD_H
#define SOL_FLEET_CHILD_H

#include <sys/types.h>

#include "fleet/fleet.h"

typedef struct FleetChild {
  pid_t pid; // 0: none runs
  int out, err;
  double started;
} FleetChild;

// Ends when this process does. Under a launcher it sees the GPU of this rank's place on the machine.
SolStatus fleet_child_start(FleetChild *child, const char *words, size_t length, SolError *err);
// Whether it has ended; then the result has what it printed.
bool fleet_child_done(FleetChild *child, FleetResult *result);
void fleet_result_free(FleetResult *result);
double fleet_now(void);

#endif
