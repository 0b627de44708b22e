// Whether a program that was built elsewhere can run on the emulator: its CUDA runtime has to be a shared library or
// to stand in its symbol table (src/redirect), and its kernels to be there as PTX. Errors name the command
// that adds what is missing.
#define _GNU_SOURCE // memmem

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "base/heap.h"
#include "cli/cli_audit.h"
#include "image/fatbin.h"

typedef struct Image {
  const uint8_t *data;
  size_t size;
} Image;

typedef struct Part { // a section
  const uint8_t *data;
  uint64_t size;
} Part;

static bool section(const Image *m, const char *name, Part *out) {
  const Elf64_Ehdr *h = (const void *)m->data;
  if (h->e_shoff > m->size || h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff % 8 ||
      h->e_shnum > (m->size - h->e_shoff) / sizeof(Elf64_Shdr) || h->e_shstrndx >= h->e_shnum)
    return false;
  const Elf64_Shdr *s = (const void *)(m->data + h->e_shoff), *names = &s[h->e_shstrndx];
  if (names->sh_offset > m->size || names->sh_size > m->size - names->sh_offset) return false;
  size_t n = strlen(name) + 1;
  for (int i = 0; i < h->e_shnum; i++) {
    if (s[i].sh_name > names->sh_size || names->sh_size - s[i].sh_name < n) continue;
    if (memcmp(m->data + names->sh_offset + s[i].sh_name, name, n) != 0) continue;
    if (s[i].sh_type == SHT_NOBITS || s[i].sh_offset > m->size || s[i].sh_size > m->size - s[i].sh_offset)
      return false;
    *out = (Part){m->data + s[i].sh_offset, s[i].sh_size};
    return true;
  }
  return false;
}

typedef struct Needs {
  char runtime[64]; // "libcudart.so.13"; "": none
  bool driver;      // libcuda.so.1
} Needs;

static Needs needs_of(const Image *m) {
  Needs out = {0};
  Part dynamic, texts;
  if (!section(m, ".dynamic", &dynamic) || !section(m, ".dynstr", &texts)) return out;
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.size; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    memcpy(&entry, dynamic.data + at, sizeof entry);
    if (entry.d_tag != DT_NEEDED || entry.d_un.d_val >= texts.size) continue;
    const char *name = (const char *)texts.data + entry.d_un.d_val;
    if (!memchr(name, 0, texts.size - entry.d_un.d_val)) continue;
    if (strncmp(name, "libcudart.so", 12) == 0) sol_format(out.runtime, sizeof out.runtime, "%s", name);
    if (strncmp(name, "libcuda.so", 10) == 0) out.driver = true;
  }
  return out;
}

// Whether its symbol table has the runtime's functions, for src/redirect to find them.
static bool names_runtime(const Image *m) {
  static const char entry[] = "__cudaRegisterFatBinary";
  Part names;
  return section(m, ".strtab", &names) && memmem(names.data, names.size, entry, sizeof entry);
}

typedef struct Kernels {
  int ptx, machine; // entries
  int arch;         // of the newest machine code
} Kernels;

// nvcc adds machine code to every program, also where it has no kernel.
static bool has_kernel(const SolFatEntry *e) {
  static const char mark[] = ".text."; // the section of a kernel begins so
  char *elf;
  size_t size;
  if (sol_fatbin_text(e, &elf, &size, NULL)) return true;
  bool found = memmem(elf, size, mark, sizeof mark - 1);
  sol_heap_free(elf);
  return found;
}

static void count_entries(const Part *part, Kernels *out) {
  for (uint64_t at = 0; at + SOL_FATBIN_HEADER <= part->size;) {
    uint64_t size = sol_fatbin_size(part->data + at);
    SolFatbin fat;
    if (!size || size > part->size - at || sol_fatbin_open(part->data + at, size, &fat, NULL)) {
      at += 8;
      continue;
    }
    for (SolFatEntry e = {0}; sol_fatbin_next(&fat, &e, NULL);) {
      bool machine = e.kind == SOL_FAT_ELF && has_kernel(&e);
      out->ptx += e.kind == SOL_FAT_PTX;
      out->machine += machine;
      if (machine && e.arch > out->arch) out->arch = e.arch;
    }
    at += (size + 7) / 8 * 8;
  }
}

static int refuse(AuditRun *r, const char *message, const char *path, const char *hint, ...) {
  SolError err = {.status = SOL_ERR_UNSUPPORTED, .offset = -1};
  sol_format(err.message, sizeof err.message, "'%.100s' %s", path, message);
  va_list args;
  va_start(args, hint);
  sol_vformat(err.hint, sizeof err.hint, hint, args);
  va_end(args);
  return cli_error(r->cli, &err, 0, 0, 0);
}

#define RELINK                                                                                               \
  "link it with the shared runtime: nvcc -cudart shared -lineinfo -arch=sm_%d SOURCES -o %s "                \
  "(in CMake: set(CMAKE_CUDA_RUNTIME_LIBRARY Shared); where another compiler links it: -lcudart in place "   \
  "of -lcudart_static)"

// The runtime that it was linked with.
static int judge_runtime(AuditRun *r, const char *path, const Image *m, int cc) {
  Needs needs = needs_of(m);
  Part part;
  if (needs.runtime[0] && strcmp(needs.runtime, "libcudart.so.13") != 0 &&
      strcmp(needs.runtime, "libcudart.so.12") != 0)
    return refuse(r, "was built with another CUDA than 12 or 13", path,
                  "it needs %s; rebuild it, and " RELINK, needs.runtime, cc, path);
  if (!section(m, ".interp", &part))
    return refuse(r, "is linked without any shared library, so that none can be put in its runtime's place",
                  path, RELINK, cc, path);
  if (needs.runtime[0] || needs.driver || names_runtime(m) || section(m, ".symtab", &part)) return EXIT_OK;
  return refuse(r,
                "has the CUDA runtime linked into it, and is stripped: nothing says where its functions are",
                path, "do not strip it, or " RELINK, cc, path);
}

static int judge(AuditRun *r, const SolDevice *device, const char *path, const Image *m) {
  if (m->size < sizeof(Elf64_Ehdr) || memcmp(m->data, ELFMAG, SELFMAG) != 0) return EXIT_OK; // a script, say
  if (m->data[EI_CLASS] != ELFCLASS64)
    return refuse(r, "is a 32-bit program, which CUDA 13 does not support", path, "build it for 64 bits");
  Part part;
  Kernels kernels = {0};
  bool fat = section(m, ".nv_fatbin", &part);
  if (fat) count_entries(&part, &kernels);
  if (section(m, "__nv_relfatbin", &part)) count_entries(&part, &kernels);
  int cc = device->cc_major * 10 + device->cc_minor;
  if (cc < 75) cc = 75;
  if (kernels.machine && !kernels.ptx)
    return refuse(
        r, "holds machine code alone, and the emulator runs PTX", path,
        "it was built for sm_%d without it; -arch=sm_%d keeps both: nvcc -lineinfo -arch=sm_%d SOURCES -o %s",
        kernels.arch, cc, cc, path);
  return fat ? judge_runtime(r, path, m, cc) : EXIT_OK;
}

int cli_audit_check_program(AuditRun *r, const SolDevice *device, const char *path) {
  struct stat st;
  SolError err = {0};
  int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); // a pipe is not waited for
  if (file < 0 || fstat(file, &st)) {
    sol_fail(&err, SOL_ERR_NOT_FOUND, "cannot open '%.120s': %s", path, strerror(errno));
    if (file >= 0) close(file);
    return cli_error(r->cli, &err, 0, 0, 0);
  }
  int code = EXIT_OK;
  if (!S_ISREG(st.st_mode))
    code = cli_fail(r->cli, "'%.120s' is no program, .cu or .ptx file", path);
  else if (access(path, X_OK) != 0)
    code = cli_fail(r->cli, "'%.120s' cannot be executed; what is it? (.cu, .ptx, or a program)", path);
  void *data =
      code || !st.st_size ? MAP_FAILED : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  if (data != MAP_FAILED) {
    code = judge(r, device, path, &(Image){data, (size_t)st.st_size});
    munmap(data, (size_t)st.st_size);
  }
  close(file);
  return code;
}
