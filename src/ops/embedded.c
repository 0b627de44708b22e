// The embedded kernels. An image is a fat binary: the driver loads it as it is; the emulator uses the PTX in
// it. Both machine code and PTX are compressed with LZ4 (scripts/pack-fatbin.c), so that no library is needed
// to decompress them.
#include "base/error.h"
#include "base/heap.h"
#include "image/fatbin.h"
#include "ops/operation.h"

const OpsImage *ops_image_find(const OpsImage *images, int count, const char *module, SolError *err) {
  for (int i = 0; i < count; i++)
    if (!strcmp(images[i].name, module)) return &images[i];
  sol_fail(err, SOL_ERR_UNSUPPORTED, "this build has no kernels %s (it was built without nvcc)", module);
  return NULL;
}

// Images have PTX for sm_75 and for sm_90a. The second is for sm_90 alone, but newer GPUs are emulated with
// it, too.
static SolStatus read_ptx(const OpsImage *image, int cc, SolPtxSource *source, char **text, SolError *err) {
  SolFatbin fat;
  SolFatEntry entry;
  SolStatus status = sol_fatbin_open(image->fat, (uint64_t)(image->fat_end - image->fat), &fat, err);
  if (!status) status = sol_fatbin_choose_ptx(&fat, cc < 90 ? cc : 90, &entry, err);
  if (!status) status = sol_fatbin_text(&entry, text, &source->length, err);
  source->name = image->name;
  source->text = *text;
  return status;
}

SolStatus ops_image_load(const OpsImage *image, SolDriver *driver, int cc, SolDriverModule **out,
                         SolError *err) {
  if (!sol_driver_emu(driver)) return sol_driver_load_image(driver, image->fat, out, err);
  char *text = NULL;
  SolPtxSource source;
  SolStatus status = read_ptx(image, cc, &source, &text, err);
  if (!status) status = sol_driver_load(driver, &source, 1, out, err);
  sol_heap_free(text);
  return status;
}
