// Nsight Compute's CSV from any bytes: what reads is summed and diagnosed.
#include "fuzz.h"
#include "profile/diagnose.h"
#include "profile/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Profile p;
  SolError err;
  profile_start(&p, PROFILE_FROM_NCU);
  if (!profile_import_csv(&p, (const char *)data, size, NULL, &err) && !profile_finish(&p, &err)) {
    sol_device_find("h200", &p.gpu.device, NULL);
    ProfileRoofs roofs = profile_roofs(p.gpu.device);
    profile_diagnose(&p, &roofs, &err);
  }
  profile_free(&p);
  return 0;
}
