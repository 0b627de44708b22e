// The embedded kernels. An image is a fat binary whose entries are packed with zstd; the one entry that the GPU or the
// emulator takes is unpacked here, so that old drivers, which do not know zstd, load it too.
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
static SolStatus choose(const SolFatbin *fat, int cc, bool emulated, SolFatEntry *entry, SolError *err) {
  if (!emulated) return sol_fatbin_choose(fat, cc, entry, err);
  return sol_fatbin_choose_ptx(fat, cc < 90 ? cc : 90, entry, err);
}

static SolStatus read_code(const OpsImage *image, int cc, bool emulated, SolPtxSource *code, char **text,
                           SolError *err) {
  SolFatbin fat;
  SolFatEntry entry;
  SolStatus status = sol_fatbin_open(image->fat, (uint64_t)(image->fat_end - image->fat), &fat, err);
  if (!status) status = choose(&fat, cc, emulated, &entry, err);
  if (!status) status = sol_fatbin_text(&entry, text, &code->length, err);
  code->name = image->name;
  code->text = *text;
  return status;
}

SolStatus ops_image_load(const OpsImage *image, SolDriver *driver, int cc, SolDriverModule **out,
                         SolError *err) {
  bool emulated = sol_driver_emu(driver);
  char *text = NULL;
  SolPtxSource code;
  SolStatus status = read_code(image, cc, emulated, &code, &text, err);
  if (!status && emulated)
    status = sol_driver_load(driver, &code, 1, out, err);
  else if (!status)
    status = sol_driver_load_image(driver, text, out, err); // the driver copies it
  sol_heap_free(text);
  return status;
}
