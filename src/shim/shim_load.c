// From a registered fat binary to a module of the emulator's.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "image/fatbin.h"
#include "image/units.h"
#include "sass/sass_code.h"
#include "shim/shim.h"

#define WRAPPER_MAGIC 0x466243b1u
enum { MOST_UNITS = 4096, WRAPPER_LINKED = 2 };
typedef struct Wrapper {
  uint32_t magic, version;
  const void *data;
  const void *const *more; // version 2: the units before linking, up to a NULL
} Wrapper;

typedef struct Sources {
  SolPtxSource *list;
  int count, cap;
  int without;  // units that hold no PTX for this device
  SolError err; // of the last of those
} Sources;

static int device_cc(void) {
  return shim.device->cc_major * 10 + shim.device->cc_minor;
}

// A unit is a container, or a wrapper around one.
static const void *container_of(const void *unit) {
  const Wrapper *w = unit;
  return w->magic == WRAPPER_MAGIC ? w->data : unit;
}

static bool make_room(Sources *s) {
  if (s->count < s->cap) return true;
  int cap = s->cap ? s->cap * 2 : 8;
  SolPtxSource *grown = realloc(s->list, sizeof *grown * (size_t)cap);
  if (!grown) return false;
  s->list = grown;
  s->cap = cap;
  return true;
}

static SolStatus add_source(Sources *s, const SolFatEntry *entry) {
  if (!make_room(s)) return SOL_ERR_NO_SPACE;
  char *text;
  size_t length;
  SolStatus status = sol_fatbin_text(entry, &text, &length, &s->err);
  if (status) return status;
  char name[32];
  snprintf(name, sizeof name, "sm_%d%.1s ptx %d", entry->arch, entry->suffix ? &entry->suffix : "",
           s->count + 1);
  s->list[s->count++] = (SolPtxSource){strdup(name), text, length};
  return SOL_OK;
}

// The machine code is kept for its registers and stack; errors in it are ignored.
static void keep_elf(ShimBinary *b, const SolFatbin *fat) {
  SolFatEntry entry;
  if (!b->elf && sol_fatbin_choose_elf(fat, device_cc(), &entry) &&
      sol_fatbin_text(&entry, &b->elf, &b->elf_size, NULL))
    b->elf = NULL;
}

static SolStatus add_unit(ShimBinary *b, Sources *s, const void *unit) {
  const void *container = container_of(unit);
  uint64_t size = sol_fatbin_size(container);
  SolFatbin fat;
  SolStatus status = sol_fatbin_open(container, size, &fat, &s->err);
  if (status) return status;
  keep_elf(b, &fat);
  SolFatEntry entry;
  status = sol_fatbin_choose_ptx(&fat, device_cc(), &entry, &s->err);
  if (status == SOL_ERR_NOT_FOUND) return s->without++, SOL_OK;
  return status ? status : add_source(s, &entry);
}

static SolStatus add_text(Sources *s, const char *text, size_t length) {
  char *copy = sol_heap_alloc(length + 1);
  if (!copy || !make_room(s)) return sol_heap_free(copy), SOL_ERR_NO_SPACE;
  memcpy(copy, text, length);
  copy[length] = 0;
  s->list[s->count++] = (SolPtxSource){strdup("library"), copy, length};
  return SOL_OK;
}

// One unit, or several that a linker has joined.
static SolStatus add_texts(Sources *s, const char *text) {
  static const char mark[] = {SOL_UNIT_MARK, 0};
  SolStatus status = SOL_OK;
  do {
    text += *text == SOL_UNIT_MARK;
    size_t length = strcspn(text, mark);
    status = add_text(s, text, length);
    text += length;
  } while (*text && !status);
  return status;
}

static SolStatus gather(ShimBinary *b, Sources *s) {
  if (b->text) return add_texts(s, b->text);
  const Wrapper *w = b->wrapper;
  if (!w && !b->image)
    return sol_fail(&s->err, SOL_ERR_NOT_FOUND, "they were unloaded before their first use");
  if (!w || w->magic != WRAPPER_MAGIC) return add_unit(b, s, w ? b->wrapper : b->image);
  if (w->version != WRAPPER_LINKED || !w->more) return add_unit(b, s, w->data);
  SolFatbin linked; // register counts are in the linked code, not in the units
  if (!sol_fatbin_open(w->data, sol_fatbin_size(w->data), &linked, NULL)) keep_elf(b, &linked);
  SolStatus status = SOL_OK;
  for (int i = 0; i < MOST_UNITS && w->more[i] && !status; i++) status = add_unit(b, s, w->more[i]);
  return status;
}

static void free_sources(Sources *s) {
  for (int i = 0; i < s->count; i++) {
    free((void *)(uintptr_t)s->list[i].name);
    sol_heap_free((void *)(uintptr_t)s->list[i].text);
  }
  free(s->list);
}

// The line of PTX that was refused, where the error names one.
static void show_line(const Sources *s, const SolError *err) {
  const SolPtxSource *source = s->count == 1 ? s->list : NULL;
  for (int i = 0; i < s->count && s->list && !source; i++) {
    const char *name = s->list[i].name; // the message starts with it
    if (name && !strncmp(err->message, name, strlen(name))) source = &s->list[i];
  }
  if (!source || err->line < 1) return;
  const char *at = source->text, *end = at + source->length;
  for (int line = 1; line < err->line && at; line++) {
    at = memchr(at, '\n', (size_t)(end - at));
    if (at) at++;
  }
  if (!at || at >= end) return;
  const char *stop = memchr(at, '\n', (size_t)(end - at));
  int length = (int)((stop ? stop : end) - at);
  shim_note("  line %d of its PTX: %.*s", err->line, length > 200 ? 200 : length, at);
}

static void *managed_memory(void *ctx, uint64_t bytes) {
  (void)ctx;
  size_t room;
  void *memory = shim_host_take((size_t)bytes, true, &room);
  ShimHost *h = memory ? malloc(sizeof *h) : NULL;
  if (!h || !shim_put(memory, SHIM_HOST, h)) return free(h), NULL;
  *h = (ShimHost){.memory = memory,
                  .bytes = (size_t)bytes,
                  .room = room,
                  .kind = SHIM_MANAGED,
                  .flags = cudaMemAttachGlobal};
  shim_managed_add(h);
  return memory;
}

// A library such as cuFFT registers machine code alone: its file says whose it is.
static void name_missing(const ShimBinary *b) {
  Dl_info where;
  char what[160] = "kernels of machine code alone";
  if (b->wrapper && dladdr(b->wrapper, &where) && where.dli_fname) {
    const char *slash = strrchr(where.dli_fname, '/');
    snprintf(what, sizeof what, "kernels of %.120s (machine code alone)",
             slash ? slash + 1 : where.dli_fname);
  }
  shim_observe_missing(what);
}

static cudaError_t load_sources(ShimBinary *b, Sources *s) {
  SolError err = {0};
  if (!s->count) {
    name_missing(b);
    return shim_refuse(cudaErrorNoKernelImageForDevice, "cannot run this program", &s->err);
  }
  sol_emu_managed_from(shim.emu, managed_memory, NULL);
  SolStatus status = sol_emu_load(shim.emu, s->list, s->count, &b->module, &err);
  if (!status) return cudaSuccess;
  shim_refuse(cudaErrorInvalidPtx, "cannot run this program's kernels", &err);
  show_line(s, &err);
  if (s->without) shim_note("  %d of its units hold no PTX: %s; %s", s->without, s->err.message, s->err.hint);
  return status == SOL_ERR_NO_SPACE ? cudaErrorMemoryAllocation : cudaErrorInvalidPtx;
}

static void set_managed(ShimBinary *b) {
  for (ShimVariable *v = b->variables; v; v = v->next) {
    uint64_t address;
    if (v->managed && !sol_emu_symbol(b->module, v->name, &address, NULL, NULL))
      *v->managed = shim_pointer(address);
  }
}

cudaError_t shim_load(ShimBinary *b) {
  if (b->module || b->failed) return b->failed;
  Sources s = {0};
  SolStatus status = gather(b, &s);
  if (status == SOL_ERR_NO_SPACE)
    b->failed = cudaErrorMemoryAllocation;
  else if (status)
    b->failed = shim_refuse(cudaErrorInvalidKernelImage, "cannot read this program's kernels", &s.err);
  else
    b->failed = load_sources(b, &s);
  b->lined = s.count == 1 && sass_arch(b->elf, b->elf_size) == device_cc() &&
             sass_is_of(b->elf, b->elf_size, s.list[0].text, s.list[0].length);
  if (!b->failed) set_managed(b);
  if (!b->failed) b->number = ++shim.programs.loaded;
  if (!b->failed && !b->lined && s.count == 1) shim_observe_module(b->number, s.list[0].text);
  free_sources(&s);
  return b->failed;
}

cudaError_t shim_kernel_load(ShimKernel *k) {
  if (k->emu) return cudaSuccess;
  cudaError_t error = shim_load(k->binary);
  if (error) return error;
  k->emu = sol_emu_kernel(k->binary->module, k->name);
  if (!k->emu) {
    shim_note("the program's PTX has no kernel %s", k->name);
    return cudaErrorInvalidDeviceFunction;
  }
  k->fn = sol_emu_kernel_function(k->emu);
  int counted = k->binary->elf ? sol_cubin_registers(k->binary->elf, k->binary->elf_size, k->name) : 0;
  k->registers = counted ? counted : (int)sol_emu_kernel_registers(k->emu);
  k->by_ptxas = counted > 0;
  k->stack = k->binary->elf ? sol_cubin_stack(k->binary->elf, k->binary->elf_size, k->name) : 0;
  if (k->binary->lined) sass_read(k->binary->elf, k->binary->elf_size, k->name, &k->arena, &k->code, NULL);
  return cudaSuccess;
}
