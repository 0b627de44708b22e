// What this machine gives at most, measured: bandwidths, arithmetic, launches, latencies of its GPU; of its
// CPU bandwidths and arithmetic.
//
//   Ceilings c;
//   ceilings_measure(driver, 0, &c, &err);      a few seconds
//   ceilings_write(&c, &buffer);                            JSON, to be kept
//   ceilings_read(text, length, &c, &err);                  and read again
//   ceilings_device(&c, row, &device);                      a GPU's row of the table with measured figures
#ifndef SOL_MEASURE_CEILINGS_H
#define SOL_MEASURE_CEILINGS_H

#include "base/buffer.h"
#include "driver/driver.h"

typedef enum Ceiling {
#define CEILING(key, unit, label)            CEILING_##key,
#define CEILING_OF(key, unit, label, figure) CEILING_##key,
#include "measure/ceilings.def"
#undef CEILING_OF
#undef CEILING
  CEILINGS
} Ceiling;

typedef struct CeilingInfo {
  const char *key, *unit, *label;
  size_t figure; // offset in SolDevice of the figure that it is compared with; 0: none
} CeilingInfo;
const CeilingInfo *ceiling_info(Ceiling ceiling);
SolFigure ceiling_published(Ceiling ceiling, const SolDevice *device); // unknown where there is none

typedef struct Ceilings {
  char name[96], uuid[48], driver[32], date[16]; // date: "2026-11-15"; the caller's to fill in
  bool cpu;
  int units;                // SMs, or threads
  int gpus;                 // that the links and NCCL were measured over; 0: none were
  double values[CEILINGS];  // not a number: not measured
  double spreads[CEILINGS]; // the middle half of the samples over the median
  double seconds;           // that it all took
} Ceilings;

// Two buffers of `bytes` each (0: 2 GiB, or what there is); latency of memory needs four times its L2.
// SOL_ERR_UNSUPPORTED where the build has no kernels, and on the emulator, which has no times.
SolStatus ceilings_measure(SolDriver *driver, uint64_t bytes, Ceilings *out, SolError *err);
// Memory and fp32 of the CPU, by as many threads as there are cores. Two buffers of `bytes` each; 0: of more
// than a cache holds.
SolStatus ceilings_measure_cpu(size_t bytes, Ceilings *out, SolError *err);

// What the GPUs of this machine send each other (ceilings_links.c): copies between the first two, and sums by NCCL
// over all, 16 at most. A buffer of `bytes` on each; 0: 256 MiB. SOL_ERR_UNSUPPORTED where there is one GPU, or no
// NCCL: what was measured until then is in `out`.
SolStatus ceilings_measure_links(uint64_t bytes, Ceilings *out, SolError *err);

void ceilings_clear(Ceilings *ceilings); // nothing measured
void ceilings_write(const Ceilings *ceilings, SolBuffer *out);
SolStatus ceilings_read(const char *text, size_t length, Ceilings *out, SolError *err);
// `source` becomes the figures' source; it must outlive the device.
void ceilings_device(const Ceilings *ceilings, const SolDevice *row, const char *source, SolDevice *out);

#endif
