// Opcodes that test_opcode.c does not run itself: those of memory, control, barriers, warps, matrices,
// textures. Their tests are kernels in tests/test_emu*.c and what these include; here it is only made sure
// that each of the opcodes stands in one of them, or in a list of those that nobody tests yet.
#ifndef OPCODE_ELSEWHERE_H
#define OPCODE_ELSEWHERE_H

#include <ctype.h>
#include <glob.h>

#include "opcode_case.h"

static const char *const elsewhere_families[] = {
    "control", "move",  "address", "load", "store",  "fence",   "barrier", "async_copy", "mbarrier",
    "hint",    "stack", "atomic",  "warp", "matrix", "tcgen05", "texture", "surface",    "video"};

// No test names these; the corpus of nvcc's programs (tests/ptx) reaches some of them.
static const char *const elsewhere_untested[] = {
    // address, memory
    "ISSPACEP", "MAPA", "GETCTARANK", "ST_ASYNC", "ST_BULK", "RED_ASYNC", "SURED", "WMMA_STORE",
    // hints: nothing to see but that they run
    "PREFETCH", "DISCARD", "APPLYPRIORITY", "CREATEPOLICY_RANGE", "CREATEPOLICY_CVT",
    "CP_ASYNC_BULK_PREFETCH", "PMEVENT", "SETMAXNREG", "GRIDDEPCONTROL", "BRKPT", "FENCE", "FENCE_PROXY",
    // barriers, asynchronous copies
    "BAR_ARRIVE", "BAR_RED", "BAR_WARP_SYNC", "BARRIER_CLUSTER_ARRIVE", "BARRIER_CLUSTER_WAIT", "CP_ASYNC",
    "CP_ASYNC_COMMIT", "CP_ASYNC_WAIT", "CP_ASYNC_MBARRIER_ARRIVE", "CP_ASYNC_BULK", "CP_REDUCE_ASYNC_BULK",
    "CP_ASYNC_BULK_COMMIT", "CP_ASYNC_BULK_WAIT", "MBARRIER_INIT", "MBARRIER_INVAL", "MBARRIER_EXPECT_TX",
    "MBARRIER_COMPLETE_TX", "MBARRIER_ARRIVE_DROP", "MBARRIER_TEST_WAIT", "MBARRIER_TRY_WAIT",
    "MBARRIER_PENDING_COUNT",
    // control
    "BRX", "EXIT", "NANOSLEEP", "ALLOCA", "STACKSAVE", "STACKRESTORE"};

// All the tests' texts one after the other, to be freed; NULL where the sources are not at hand.
static inline char *elsewhere_texts(void) {
  static const char *const patterns[] = {"tests/test_emu*.c", "tests/emu_*.h", "tests/test_hardware.c"};
  char *all = calloc(1, 1);
  size_t total = 0;
  for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
    glob_t found;
    if (glob(patterns[p], 0, NULL, &found)) continue;
    for (size_t i = 0; i < found.gl_pathc; i++) {
      FILE *file = fopen(found.gl_pathv[i], "rb");
      char buffer[4096];
      for (size_t n; file && (n = fread(buffer, 1, sizeof buffer, file));) {
        char *more = realloc(all, total + n + 1);
        if (!more) break;
        all = more;
        memcpy(all + total, buffer, n);
        all[total += n] = 0;
      }
      if (file) fclose(file);
    }
    globfree(&found);
  }
  if (total) return all;
  free(all);
  return NULL;
}

static inline bool elsewhere_names(const char *text, const char *root) { // as a word of its own
  size_t n = strlen(root);
  for (const char *at = text; (at = strstr(at, root)); at++) {
    bool starts = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '.');
    if (starts && !isalnum((unsigned char)at[n]) && at[n] != '_') return true;
  }
  return false;
}

static inline bool elsewhere_is_family(const char *handler) {
  for (size_t i = 0; i < sizeof elsewhere_families / sizeof elsewhere_families[0]; i++)
    if (!strcmp(handler, elsewhere_families[i])) return true;
  return false;
}
static inline bool elsewhere_is_untested(const char *id) {
  for (size_t i = 0; i < sizeof elsewhere_untested / sizeof elsewhere_untested[0]; i++)
    if (!strcmp(id, elsewhere_untested[i])) return true;
  return false;
}

#endif
