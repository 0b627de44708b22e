// libnvJitLink.so.13 for programs on the emulator, which runs PTX: the "cubin" is the PTX of all inputs. LTO-IR and machine
// code cannot be linked so, and are refused. As in NVIDIA's library, a handle is used by one thread at a time.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/units.h"

// As nvJitLink.h numbers them.
enum { OK, BAD_OPTION, NO_ARCH, BAD_INPUT, INTERNAL = 6, UNKNOWN_INPUT = 8, NULL_INPUT = 10 };
enum { INPUT_CUBIN = 1, INPUT_PTX, INPUT_LTOIR, INPUT_FATBIN, INPUT_OBJECT, INPUT_LIBRARY, INPUT_ANY = 10 };

typedef struct JitLink {
  SolUnits units;
  int cc;
  char log[512];
} JitLink;

static int fail(JitLink *link, int code, const char *name, const char *what) {
  snprintf(link->log, sizeof link->log, "%.80s: %.300s; Sol's emulator links PTX alone",
           name ? name : "input", what);
  return code;
}

static int arch_of(const char *option) {
  const char *at = strncmp(option, "-arch=", 6) == 0 ? strchr(option + 6, '_') : NULL;
  return at ? atoi(at + 1) : 0;
}

static int create(JitLink **out, uint32_t count, const char *const *options) {
  if (!out || (count && !options)) return NULL_INPUT;
  int cc = 0;
  for (uint32_t i = 0; i < count; i++)
    if (options[i] && arch_of(options[i])) cc = arch_of(options[i]);
  if (!cc) return NO_ARCH;
  JitLink *link = calloc(1, sizeof *link);
  if (!link) return INTERNAL;
  link->cc = cc;
  *out = link;
  return OK;
}

static int destroy(JitLink **handle) {
  if (!handle || !*handle) return NULL_INPUT;
  sol_buffer_free(&(*handle)->units.text);
  free(*handle);
  *handle = NULL;
  return OK;
}

static int kind_of(int type, const void *data, size_t size) {
  uint32_t magic = 0;
  if (type != INPUT_ANY) return type;
  if (size >= sizeof magic) memcpy(&magic, data, sizeof magic);
  if (magic == 0xBA55ED50u) return INPUT_FATBIN;
  return size >= 4 && memcmp(data, "\177ELF", 4) == 0 ? INPUT_CUBIN : INPUT_PTX;
}

static int add(JitLink *link, int type, const void *data, size_t size, const char *name) {
  SolError err = {0};
  if (!link || !data) return NULL_INPUT;
  bool elf = size >= 4 && memcmp(data, "\177ELF", 4) == 0;
  switch (kind_of(type, data, size)) {
  case INPUT_CUBIN:
    if (elf) return fail(link, UNKNOWN_INPUT, name, "it is machine code"); // else what this library made
    // fall through
  case INPUT_PTX:
    return sol_units_add(&link->units, data, size) ? fail(link, BAD_INPUT, name, "it is no text") : OK;
  case INPUT_FATBIN:
    if (!sol_units_add_fat(&link->units, data, size, link->cc, &err)) return OK;
    return fail(link, BAD_INPUT, name, err.message);
  case INPUT_LIBRARY: // of the device's runtime, from which the emulator needs nothing
    if (name && strstr(name, "cudadevrt")) return OK;
    // fall through
  default: return fail(link, UNKNOWN_INPUT, name, "it is LTO-IR, an object or a library");
  }
}

static int add_file(JitLink *link, int type, const char *path) {
  if (!link || !path) return NULL_INPUT;
  FILE *file = fopen(path, "rb");
  if (!file) return fail(link, BAD_INPUT, path, "it cannot be read");
  SolBuffer bytes = {0};
  char chunk[4096];
  for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;) sol_buffer_put(&bytes, chunk, n);
  fclose(file);
  int code = bytes.failed ? INTERNAL : add(link, type, bytes.text ? bytes.text : "", bytes.length, path);
  sol_buffer_free(&bytes);
  return code;
}

static int complete(JitLink *link) {
  if (!link) return NULL_INPUT;
  return link->units.count ? OK : fail(link, BAD_INPUT, NULL, "nothing was added");
}

static int image_size(JitLink *link, size_t *out) {
  if (!link || !out) return NULL_INPUT;
  return sol_units_image(&link->units, out) ? OK : BAD_INPUT;
}

static int image(JitLink *link, void *out) {
  size_t size;
  if (!link || !out) return NULL_INPUT;
  const char *text = sol_units_image(&link->units, &size);
  if (!text) return BAD_INPUT;
  memcpy(out, text, size);
  return OK;
}

static int log_size(JitLink *link, size_t *out) {
  if (!link || !out) return NULL_INPUT;
  *out = strlen(link->log) + 1;
  return OK;
}

static int copy_log(JitLink *link, char *out) {
  if (!link || !out) return NULL_INPUT;
  memcpy(out, link->log, strlen(link->log) + 1);
  return OK;
}

static int empty_size(JitLink *link, size_t *out) {
  if (!link || !out) return NULL_INPUT;
  *out = 1;
  return OK;
}

static int empty_log(JitLink *link, char *out) {
  if (!link || !out) return NULL_INPUT;
  *out = 0;
  return OK;
}

// ---- entry points: under the plain name, and under the one that the header gives them ----

#define ENTRY(name, parameters, call)                                                                        \
  __attribute__((visibility("default"))) int entry_##name parameters __asm__("nvJitLink" #name);             \
  int entry_##name parameters {                                                                              \
    return call;                                                                                             \
  }                                                                                                          \
  __attribute__((visibility("default"))) int versioned_##name parameters __asm__("__nvJitLink" #name         \
                                                                                 "_13_0");                   \
  int versioned_##name parameters {                                                                          \
    return call;                                                                                             \
  }
ENTRY(Create, (JitLink * *out, uint32_t count, const char *const *options), create(out, count, options))
ENTRY(Destroy, (JitLink * *handle), destroy(handle))
ENTRY(AddData, (JitLink * link, int type, const void *data, size_t size, const char *name),
      add(link, type, data, size, name))
ENTRY(AddFile, (JitLink * link, int type, const char *path), add_file(link, type, path))
ENTRY(Complete, (JitLink * link), complete(link))
ENTRY(GetLinkedCubinSize, (JitLink * link, size_t *out), image_size(link, out))
ENTRY(GetLinkedCubin, (JitLink * link, void *out), image(link, out))
ENTRY(GetLinkedPtxSize, (JitLink * link, size_t *out), image_size(link, out))
ENTRY(GetLinkedPtx, (JitLink * link, char *out), image(link, out))
ENTRY(GetErrorLogSize, (JitLink * link, size_t *out), log_size(link, out))
ENTRY(GetErrorLog, (JitLink * link, char *out), copy_log(link, out))
ENTRY(GetInfoLogSize, (JitLink * link, size_t *out), empty_size(link, out))
ENTRY(GetInfoLog, (JitLink * link, char *out), empty_log(link, out))

// nvJitLinkVersion is left out: programs that find none (it came with 12.3) do not ask for link-time optimization, and
// Numba and cuda.core then hand PTX to the driver's linker.
