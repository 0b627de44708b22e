#include "measure/cupti.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "base/format.h"

static const char *const sonames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

static void *open_by(int flags) {
  void *library = NULL;
  for (size_t i = 0; i < SOL_COUNT(sonames) && !library; i++) library = dlopen(sonames[i], RTLD_NOW | flags);
  return library;
}

static void *open_under(const char *root) {
  static const char *const folders[] = {"lib64", "extras/CUPTI/lib64", "lib"};
  char path[512];
  void *library = NULL;
  for (size_t f = 0; root && *root && f < SOL_COUNT(folders); f++)
    for (size_t i = 0; i < SOL_COUNT(sonames) && !library; i++)
      if (sol_format(path, sizeof path, "%s/%s/%s", root, folders[f], sonames[i]) < sizeof path)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return library;
}

// Two copies in one process conflict: where none is named, one that is loaded already (PyTorch loads
// its own) comes first.
static void *open_library(void) {
  const char *named = getenv("SOL_CUPTI");
  if (named && *named) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  void *library = open_by(RTLD_NOLOAD | RTLD_LOCAL);
  if (!library) library = open_by(RTLD_LOCAL);
  if (!library) library = open_under(getenv("CUDA_HOME"));
  if (!library) library = open_under(getenv("CUDA_PATH"));
  if (!library) library = open_under("/usr/local/cuda");
  return library;
}

SolStatus cupti_load(Cupti *out, SolError *err) {
  *out = (Cupti){.library = open_library(), .counts = true, .patches = true};
  if (!out->library) {
    const char *named = getenv("SOL_CUPTI");
    if (named && *named)
      sol_fail(err, SOL_ERR_UNSUPPORTED, "SOL_CUPTI=%.150s cannot be loaded", named);
    else
      sol_fail(err, SOL_ERR_UNSUPPORTED, "CUPTI, NVIDIA's profiling library, was not found (libcupti.so)");
    sol_hint(err, "it comes with the CUDA toolkit (cuda-cupti), and with 'pip install nvidia-cuda-cupti'; "
                  "CUDA_HOME=FOLDER or SOL_CUPTI=FILE names it");
    return SOL_ERR_UNSUPPORTED;
  }
  const char *missing = NULL;
#define ENTRY_LOAD(field, symbol, parameters)                                                                \
  {                                                                                                          \
    void *address = dlsym(out->library, symbol);                                                             \
    memcpy(&out->field, &address, sizeof address);                                                           \
  }
#define ENTRY_NEED(field, symbol, parameters)                                                                \
  if (!out->field) missing = symbol;
#define ENTRY_HAS(field, symbol, parameters)                                                                 \
  if (!out->field) out->counts = false;
#define ENTRY_PATCHES(field, symbol, parameters)                                                             \
  if (!out->field) out->patches = false;
  CUPTI_ENTRY_POINTS(ENTRY_LOAD)
  CUPTI_COUNTER_ENTRY_POINTS(ENTRY_LOAD)
  CUPTI_SASS_ENTRY_POINTS(ENTRY_LOAD)
  CUPTI_ENTRY_POINTS(ENTRY_NEED)
  CUPTI_COUNTER_ENTRY_POINTS(ENTRY_HAS)
  CUPTI_SASS_ENTRY_POINTS(ENTRY_PATCHES)
#undef ENTRY_LOAD
#undef ENTRY_NEED
#undef ENTRY_HAS
#undef ENTRY_PATCHES
  if (!missing) {
    out->get_version(&out->version);
    return SOL_OK;
  }
  cupti_unload(out);
  return sol_fail(err, SOL_ERR_UNSUPPORTED, "this CUPTI is too old: it lacks %s", missing);
}

void cupti_unload(Cupti *cupti) {
  if (cupti->library) dlclose(cupti->library);
  *cupti = (Cupti){0};
}

SolStatus cupti_check(const Cupti *cupti, CuptiResult result, const char *what, SolError *err) {
  if (!result) return SOL_OK;
  const char *text = NULL;
  if (cupti->result_string(result, &text) || !text) text = "unknown error";
  sol_fail(err, SOL_ERR_UNSUPPORTED, "%s: %s (CUPTI error %d)", what, text, result);
  if (cupti_forbidden(result))
    sol_hint(err, "the driver lets only root read the counters: run as root (in a container with "
                  "--cap-add=SYS_ADMIN), or load the driver with NVreg_RestrictProfilingToAdminUsers=0 in "
                  "/etc/modprobe.d (then reboot)");
  else if (result == CUPTI_NOT_COMPATIBLE)
    sol_hint(
        err,
        "this CUPTI (%u) is not for this driver: update the driver, or name an older CUPTI by SOL_CUPTI=FILE",
        cupti->version);
  else if (result == CUPTI_MULTIPLE_SUBSCRIBERS)
    sol_hint(err,
             "another profiler is active in this process: Nsight, torch.profiler and Sol exclude each other");
  return SOL_ERR_UNSUPPORTED;
}
