// What a GPU does and what it costs: the constants of machine.def, as they hold for one device.
//
//   MachineModel model = machine_model(device);      values alone; figures of the device stay in SolDevice
//   ... model.fence_clocks ...
//   machine_constant(device, i, &c);                 the i-th with its unit, its basis and its source, for listings
//
// A constant is published, or measured on this very GPU, or found by trying the compiler; where it is none of these
// it is assumed: from the GPU on which it was measured, from the nearest compute capability that is published, or
// for the reason that the table gives. This folder also builds for wasm, so it uses no files, threads or libc.
#ifndef SOL_MACHINE_MACHINE_H
#define SOL_MACHINE_MACHINE_H

#include "base/port.h"
#include "sol/device.h"

typedef enum MachineBasis {
  MACHINE_PUBLISHED, // in a document of NVIDIA's, or in a standard
  MACHINE_MEASURED,  // on this GPU
  MACHINE_COMPILER,  // ptxas's, found by trying it
  MACHINE_ASSUMED,
  MACHINE_BASES
} MachineBasis;
const char *machine_basis_name(MachineBasis basis); // "published"

typedef struct MachineModel {
  const SolDevice *device;
#define CONSTANT(name, unit, label, ...) double name;
#include "machine/machine.def"
#undef CONSTANT
} MachineModel;

// Sizes of L2's sets in percent of their mean, for every 32 of them: those with which L2 loses a buffer that outgrows
// it little by little, as measured (`l2_set_spread`).
enum { MACHINE_L2_SETS = 32 };
extern const uint8_t machine_l2_sets[MACHINE_L2_SETS];

// The device must stay as long as the model is used.
MachineModel machine_model(const SolDevice *device);

typedef struct MachineConstant {
  const char *name, *unit, *label; // "fence_clocks", "clocks", "a fence of wider scope than the block"
  double value;
  MachineBasis basis;
  const char *from;   // assumed from another: "h200", "sm_90"; the compiler's version; NULL otherwise
  const char *source; // the document; what measures it; why it is assumed
} MachineConstant;
int machine_constant_count(void);
bool machine_constant(const SolDevice *device, int i, MachineConstant *out); // false: i is past the last

// How many constants of each basis the device has.
typedef struct MachineTally {
  int all, of[MACHINE_BASES];
} MachineTally;
MachineTally machine_tally(const SolDevice *device);

#endif
