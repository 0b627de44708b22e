// What crosses the link between the GPUs of one machine: bytes, steps and time.
#ifndef SOL_ROOFLINE_FABRIC_H
#define SOL_ROOFLINE_FABRIC_H

#include "sol/device.h"

typedef struct SolFabricTime {
  double sent; // bytes, by each GPU
  double us;   // the launch left out
  const char *protocol;
} SolFabricTime;

// Of `bytes` summed over, or gathered from, `gpus` GPUs in a ring. The device's link bandwidth must be known.
SolFabricTime sol_fabric_all_reduce(const SolDevice *device, int64_t gpus, double bytes);
SolFabricTime sol_fabric_all_gather(const SolDevice *device, int64_t gpus, double bytes_each);

#endif
