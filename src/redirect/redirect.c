// What the loader calls, and what is done with each object.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "redirect/redirect.h"

typedef struct Object {
  struct Object *next;
  struct link_map *map;
  RedirectVeneers veneers;
  bool done;
} Object;
typedef struct Runtime { // one of Sol's
  struct link_map *map;  // NULL: not loaded
} Runtime;
static struct {
  Object *objects;
  Runtime of12, of13;
  char folder[4096]; // of this library; "": not known
} state;

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static uint64_t export_of(const Runtime *r, const char *name) {
  return r->map ? redirect_export(r->map->l_ld, r->map->l_addr, name) : 0;
}

// ---- one object ----

typedef struct Copy { // of the runtime, in an object
  RedirectFile file;
  uint64_t base;
  const Runtime *runtime; // that serves it
  uint64_t missing;       // the function for entries that Sol's runtime lacks
  uint64_t first, last;   // addresses of the entries that it has
  RedirectJump *jumps;
  size_t count, cap;
  bool unlike, failed;
} Copy;

// CUDA 12's runtime has this entry, and CUDA 13's has not.
static void find_release(void *ctx, const RedirectSymbol *s) {
  Copy *c = ctx;
  if (strcmp(s->name, "__cudaRegisterFatBinary") == 0 && !c->runtime) c->runtime = &state.of13;
  if (strcmp(s->name, "cudaGetDeviceProperties_v2") == 0) c->runtime = &state.of12;
}

static bool is_entry(const char *name) {
  size_t n = strncmp(name, "__cuda", 6) == 0 ? 6 : strncmp(name, "cuda", 4) == 0 ? 4 : 0;
  return n && name[n] >= 'A' && name[n] <= 'Z';
}

// False: it is there already, or memory is short.
static bool add_jump(Copy *c, const RedirectSymbol *s, uint64_t target, const char *name) {
  uint8_t *from = (uint8_t *)(uintptr_t)(c->base + s->value);
  for (size_t i = 0; i < c->count; i++) // another name of the same function
    if (c->jumps[i].from == from) return false;
  size_t check = s->size < 16 ? (size_t)s->size : 16;
  const uint8_t *bytes = redirect_loaded(&c->file, s->value, check);
  if (!bytes || memcmp(bytes, from, check) != 0) c->unlike = true; // the file is not what was loaded
  if (c->count == c->cap) {
    size_t cap = c->cap ? c->cap * 2 : 512;
    RedirectJump *grown = realloc(c->jumps, cap * sizeof *grown);
    if (!grown) return c->failed = true, false;
    c->jumps = grown;
    c->cap = cap;
  }
  c->jumps[c->count++] = (RedirectJump){from, s->size, target, name};
  return true;
}

static void add_known(void *ctx, const RedirectSymbol *s) {
  Copy *c = ctx;
  uint64_t target = is_entry(s->name) ? export_of(c->runtime, s->name) : 0;
  if (!target) return;
  if (!c->first || s->value < c->first) c->first = s->value;
  if (s->value + s->size > c->last) c->last = s->value + s->size;
  add_jump(c, s, target, NULL);
}

// An entry of another release, which would go to the driver by itself. A function of the program's own may have such
// a name, too, but lies outside what the linker took from the runtime's archive.
static void add_missing(void *ctx, const RedirectSymbol *s) {
  Copy *c = ctx;
  if (!s->hidden || s->value < c->first || s->value >= c->last || strncmp(s->name, "cuda", 4) != 0 ||
      !is_entry(s->name) || export_of(c->runtime, s->name))
    return;
  char *name = strdup(s->name); // the file is closed later
  // Its veneer refers to it as long as the object is there.
  if (!name || !add_jump(c, s, c->missing, name)) free(name);
} // NOLINT(clang-analyzer-unix.Malloc)

static const char *advice = "link it with the shared runtime: nvcc -cudart shared, or in CMake "
                            "set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)";

static void say(const char *name, const char *what) {
  fprintf(stderr, "sol: '%s' has the CUDA runtime linked into it, %s; %s\n", name, what, advice);
}

static void write_jumps(Copy *c, const char *name, RedirectVeneers *veneers) {
  if (c->failed) {
    say(name, "and memory is too short to redirect it");
    return;
  }
  if (c->unlike || !redirect_loaded(&c->file, c->first, c->last - c->first)) {
    say(name, "but its file is not what was loaded");
    return;
  }
  RedirectEnd end = redirect_write(c->jumps, c->count, veneers);
  if (end == REDIRECT_REFUSED) say(name, "and this system lets no library change code that was loaded");
  if (end == REDIRECT_TOO_SHORT)
    say(name, "and some of its functions have no room for a jump to the emulator");
}

static void redirect_copy(Copy *c, const char *name, RedirectVeneers *veneers) {
  c->missing = export_of(&state.of13, "__cudaSolMissing");
  if (!c->runtime->map || !c->missing) {
    say(name, c->runtime == &state.of12 ? "and Sol's libcudart.so.12 is not loaded"
                                        : "and Sol's libcudart.so.13 is not loaded");
    return;
  }
  redirect_symbols(&c->file, SHT_SYMTAB, add_known, c);
  if (c->count) redirect_symbols(&c->file, SHT_SYMTAB, add_missing, c);
  if (c->count) write_jumps(c, name, veneers);
}

// NVRTC makes machine code for a real architecture, and keeps the PTX from which it did: a program that asks for the
// former gets the latter, which the driver's functions load in the same way.
enum { NVRTC_PAIRS = 2 };
static const char *const nvrtc_pairs[NVRTC_PAIRS][2] = {{"nvrtcGetCUBIN", "nvrtcGetPTX"},
                                                        {"nvrtcGetCUBINSize", "nvrtcGetPTXSize"}};
typedef struct Nvrtc {
  RedirectSymbol found[NVRTC_PAIRS][2];
} Nvrtc;

static void find_nvrtc(void *ctx, const RedirectSymbol *s) {
  Nvrtc *n = ctx;
  for (int i = 0; i < NVRTC_PAIRS * 2 && strncmp(s->name, "nvrtc", 5) == 0; i++)
    if (strcmp(s->name, nvrtc_pairs[i / 2][i % 2]) == 0) n->found[i / 2][i % 2] = *s;
}

static void redirect_nvrtc(const RedirectFile *file, Object *o) {
  Nvrtc n = {0};
  RedirectJump jumps[NVRTC_PAIRS];
  redirect_symbols(file, SHT_DYNSYM, find_nvrtc, &n);
  for (int i = 0; i < NVRTC_PAIRS; i++) {
    const RedirectSymbol *from = &n.found[i][0], *to = &n.found[i][1];
    if (!from->size || !to->size || !redirect_loaded(file, from->value, from->size)) return;
    uint64_t base = o->map->l_addr;
    jumps[i] = (RedirectJump){(uint8_t *)(uintptr_t)(base + from->value), from->size, base + to->value, NULL};
  }
  if (redirect_write(jumps, NVRTC_PAIRS, &o->veneers) != REDIRECT_DONE)
    fprintf(stderr,
            "sol: NVRTC cannot be made to give PTX for machine code here; ask it for PTX (nvrtcGetPTX)\n");
}

static void take(Object *o) {
  bool named = o->map->l_name && *o->map->l_name; // all but the program itself
  const char *path = named ? o->map->l_name : "/proc/self/exe";
  Copy c = {.base = o->map->l_addr};
  o->done = true;
  if (o->map == state.of12.map || o->map == state.of13.map || !redirect_open(path, &c.file)) return;
  redirect_symbols(&c.file, SHT_SYMTAB, find_release, &c);
  if (c.runtime) redirect_copy(&c, named ? path : "the program", &o->veneers);
  if (strncmp(base_name(path), "libnvrtc", 8) == 0) redirect_nvrtc(&c.file, o);
  free(c.jumps);
  redirect_close(&c.file);
}

// ---- the loader's calls ----

#pragma GCC visibility push(default)
unsigned la_version(unsigned version);
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag);
unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie);
void la_activity(uintptr_t *cookie, unsigned flag);
unsigned la_objclose(uintptr_t *cookie);
#pragma GCC visibility pop

// The few functions used here have not changed between versions of the interface.
unsigned la_version(unsigned version) {
  static const char here;
  Dl_info self;
  const char *slash = dladdr(&here, &self) ? strrchr(self.dli_fname, '/') : NULL;
  if (slash && (size_t)(slash - self.dli_fname) < sizeof state.folder - 64)
    memcpy(state.folder, self.dli_fname, (size_t)(slash - self.dli_fname) + 1);
  return version;
}

// The library of Sol's that a file's name asks for: by the name with its version, whatever follows that, or by the name
// that stands in a toolkit's folder for the newest.
static const char *own_library(const char *file) {
  static const char *const ours[] = {"libcudart.so.12", "libcudart.so.13", "libcuda.so.1",
                                     "libnvJitLink.so.13"};
  if (strcmp(file, "libcuda.so") == 0) return "libcuda.so.1";
  if (strcmp(file, "libcudart.so") == 0) return "libcudart.so.13";
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
    size_t n = strlen(ours[i]);
    if (strncmp(file, ours[i], n) == 0 && (!file[n] || file[n] == '.')) return ours[i];
  }
  return NULL;
}

// Libraries of CUDA's that Sol has are taken from its folder, also where a program names them with a path of their own.
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag) {
  static char path[sizeof state.folder + 64];
  const char *own = state.folder[0] && flag == LA_SER_ORIG ? own_library(base_name(name)) : NULL;
  (void)cookie;
  if (!own) return (char *)(uintptr_t)name;
  snprintf(path, sizeof path, "%s%s", state.folder, own);
  return path;
}

static void know_runtime(struct link_map *map) {
  const char *file = base_name(map->l_name);
  bool of12 = strcmp(file, "libcudart.so.12") == 0, of13 = strcmp(file, "libcudart.so.13") == 0;
  const char *mark = of12 ? "__cudaSol12" : "__cudaSolMissing"; // NVIDIA's own have neither
  if ((of12 || of13) && redirect_export(map->l_ld, map->l_addr, mark))
    (of12 ? &state.of12 : &state.of13)->map = map;
}

unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
  Object *o = calloc(1, sizeof *o);
  (void)space;
  *cookie = (uintptr_t)o;
  if (!o) return 0;
  *o = (Object){.next = state.objects, .map = map};
  state.objects = o;
  if (map->l_name) know_runtime(map);
  return 0;
}

// All objects of one call of dlopen, or of the program's start, are there; none of their constructors has run.
void la_activity(uintptr_t *cookie, unsigned flag) {
  (void)cookie;
  for (Object *o = state.objects; o && flag == LA_ACT_CONSISTENT; o = o->next)
    if (!o->done) take(o);
}

unsigned la_objclose(uintptr_t *cookie) {
  Object *closed = (Object *)*cookie;
  for (Object **o = &state.objects; closed && *o; o = &(*o)->next) {
    if (*o != closed) continue;
    *o = closed->next;
    if (closed->map == state.of12.map) state.of12.map = NULL;
    if (closed->map == state.of13.map) state.of13.map = NULL;
    if (closed->veneers.at) munmap(closed->veneers.at, closed->veneers.size);
    free(closed);
    break;
  }
  return 0;
}
