// Direction vectors and scramble constants for Sobol's sequences: Joe and Kuo's, of 20,000 dimensions. NVIDIA's library holds
// them, and gives them to whoever asks, without a GPU; they are no part of this one, which asks NVIDIA's where the machine has it.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rand/rand.h"

// By which a stand-in knows another.
__attribute__((visibility("default"))) extern const char curandSolStandIn;
const char curandSolStandIn = 1;

typedef int GetTable(const void **table, int set);

static void *open_in(const char *folder, int length, const char *below) {
  char path[4096];
  if (!length ||
      snprintf(path, sizeof path, "%.*s%s/libcurand.so.10", length, folder, below) >= (int)sizeof path)
    return NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library || !dlsym(library, "curandSolStandIn")) return library;
  dlclose(library);
  return NULL;
}

static void *open_in_list(const char *list, const char *below) {
  void *library = NULL;
  for (const char *at = list; at && *at && !library;) {
    size_t length = strcspn(at, ":");
    library = open_in(at, (int)length, below);
    at += length + (at[length] == ':');
  }
  return library;
}

static void *open_nvidias(void) {
  static const char *const below[] = {"/lib64", "/lib"};
  void *library = open_in_list(getenv("LD_LIBRARY_PATH"), "");
  const char *const homes[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
  for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
    for (size_t k = 0; k < sizeof below / sizeof *below && !library; k++)
      library = open_in_list(homes[i], below[k]);
  return library;
}

static const void *table(const char *function, int set) {
  static void *library; // two threads at once open the same
  void *known = __atomic_load_n(&library, __ATOMIC_ACQUIRE);
  const void *out = NULL;
  if (!known && (known = open_nvidias())) __atomic_store_n(&library, known, __ATOMIC_RELEASE);
  GetTable *get = known ? (GetTable *)(uintptr_t)dlsym(known, function) : NULL;
  return get && !get(&out, set) ? out : NULL;
}

const void *rand_directions(RandKind kind) {
  enum { PLAIN32 = 101, SCRAMBLED32, PLAIN64, SCRAMBLED64 }; // curandDirectionVectorSet_t
  switch (kind) {
  case RAND_SOBOL32: return table("curandGetDirectionVectors32", PLAIN32);
  case RAND_SCRAMBLED32: return table("curandGetDirectionVectors32", SCRAMBLED32);
  case RAND_SOBOL64: return table("curandGetDirectionVectors64", PLAIN64);
  default: return table("curandGetDirectionVectors64", SCRAMBLED64);
  }
}

const void *rand_constants(RandKind kind) {
  return table(kind == RAND_SCRAMBLED32 ? "curandGetScrambleConstants32" : "curandGetScrambleConstants64", 0);
}
