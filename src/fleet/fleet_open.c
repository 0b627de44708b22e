#include <dlfcn.h>
#include <stdlib.h>

#include "base/error.h"
#include "fleet/fleet.h"

// What mpirun of Open MPI, MPICH's process managers and srun tell the processes that they start.
int fleet_launched(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
  for (size_t i = 0; i < SOL_COUNT(names); i++) {
    const char *text = getenv(names[i]);
    if (text && atoi(text) > 0) return atoi(text);
  }
  return 1;
}

SolStatus fleet_open(const char *library, const FleetLink **out, SolError *err) {
  *out = NULL;
  if (fleet_launched() < 2) return SOL_OK;
  // Open MPI loads its own parts, which look for its names among all that are loaded.
  void *loaded = library && *library ? dlopen(library, RTLD_NOW | RTLD_GLOBAL) : NULL;
  FleetOpen *start = loaded ? (FleetOpen *)dlsym(loaded, FLEET_OPEN) : NULL;
  if (!start) {
    const char *why = library && *library ? dlerror() : "it was built without MPI";
    sol_fail(err, SOL_ERR_UNSUPPORTED, "%d ranks were started, but sol cannot speak MPI: %.200s",
             fleet_launched(), why ? why : "the library does not fit");
    sol_hint(err, "install libopenmpi-dev and openmpi-bin, and build again (scripts/setup.sh test)");
    return SOL_ERR_UNSUPPORTED;
  }
  *out = start();
  return *out ? SOL_OK : sol_fail(err, SOL_ERR_IO, "MPI could not be started");
}
