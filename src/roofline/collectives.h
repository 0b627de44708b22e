// What crosses the links between GPUs: bytes, steps and time.
#ifndef SOL_ROOFLINE_COLLECTIVES_H
#define SOL_ROOFLINE_COLLECTIVES_H

#include "sol/fabric.h"

typedef struct SolFabricTime {
  double sent;     // bytes, by each GPU
  double us;       // the launch left out
  const char *how; // "ring, LL"
} SolFabricTime;

// GPUs that take part: every `stride`-th of those that are numbered machine by machine.
typedef struct SolFabricGroup {
  const SolFabric *fabric;
  int64_t gpus, stride;
} SolFabricGroup;

// The device's own link, as NCCL uses it; bandwidth 0 where that is not known.
SolFabric sol_fabric_of_device(const SolDevice *device);

SolFabricTime sol_fabric_all_reduce(const SolFabricGroup *group, double bytes);
SolFabricTime sol_fabric_all_gather(const SolFabricGroup *group, double bytes_each);
// `bytes` that one GPU sends to the others, as much to each.
SolFabricTime sol_fabric_all_to_all(const SolFabricGroup *group, double bytes);
// From one GPU of the group to the next.
SolFabricTime sol_fabric_send(const SolFabricGroup *group, double bytes);

#endif
