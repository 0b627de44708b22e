// zstd, which nvcc packs PTX with, is taken from the system's library at run time: no program that has its
// PTX plain needs it, and nothing needs its headers.
#include <dlfcn.h>

#include "base/error.h"
#include "image/fatbin.h"

SolStatus sol_zstd_unpack(const uint8_t *from, size_t from_size, uint8_t *to, size_t size, SolError *err) {
  void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL); // counted: it stays after the first time
  void *decompress = library ? dlsym(library, "ZSTD_decompress") : NULL;
  if (!decompress) {
    sol_fail(err, SOL_ERR_UNSUPPORTED, "its PTX is packed with zstd, and there is no libzstd.so.1 here");
    sol_hint(err, "install libzstd1, or build it with nvcc --compress-mode=none");
    return SOL_ERR_UNSUPPORTED;
  }
  size_t (*unpack)(void *, size_t, const void *, size_t);
  memcpy(&unpack, &decompress, sizeof unpack);
  if (unpack(to, size, from, from_size) == size) return SOL_OK; // errors are sizes that none has
  return sol_fail(err, SOL_ERR_SYNTAX, "the fat binary is damaged: its zstd frame does not unpack");
}
