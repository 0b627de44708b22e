// Writes the entries of fat binaries as files, PTX with numbers as differences (src/image/numbers.h), and prints the options by which
// fatbinary makes one fat binary of them again. A part of the build: scripts/pack-kernels.sh.
// usage: pack-kernels FOLDER FATBIN...
#include <stdio.h>
#include <stdlib.h>

#include "base/heap.h"
#include "image/fatbin.h"
#include "image/numbers.h"

static void stop(const char *what, const char *name) {
  fprintf(stderr, "pack-kernels: %s: %s\n", name, what);
  exit(1);
}

static char *read_file(const char *name, size_t *size) {
  FILE *file = fopen(name, "rb");
  if (!file || fseek(file, 0, SEEK_END)) stop("cannot be read", name);
  *size = (size_t)ftell(file);
  rewind(file);
  char *data = sol_heap_alloc(*size + 1);
  if (!data || fread(data, 1, *size, file) != *size) stop("cannot be read", name);
  fclose(file);
  return data;
}

static void write_file(const char *name, const char *data, size_t size) {
  FILE *file = fopen(name, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file)) stop("cannot be written", name);
}

// Stays as it is where the way back would not give the same text.
static char *pack(char *text, size_t *size) {
  size_t bytes = sol_numbers_pack(text, *size, NULL);
  char *packed = sol_heap_alloc(bytes), *again = sol_heap_alloc(*size);
  if (!packed || !again) stop("out of memory", "a text");
  sol_numbers_pack(text, *size, packed);
  bool same = sol_numbers_unpack(packed, bytes, NULL) == *size &&
              sol_numbers_unpack(packed, bytes, again) == *size && !memcmp(text, again, *size);
  sol_heap_free(again);
  if (!same) return text;
  *size = bytes;
  return packed;
}

// The entries of one fat binary, as files of FOLDER from number `files` on. Returns the number after the last.
static int unpack(const char *name, const char *folder, int files) {
  SolError err = {0};
  SolFatbin fat;
  SolFatEntry entry = {0};
  size_t size;
  const char *data = read_file(name, &size);
  if (sol_fatbin_open(data, size, &fat, &err)) stop(err.message, name);
  for (; sol_fatbin_next(&fat, &entry, &err); files++) {
    char *text, file[4096];
    bool ptx = entry.kind == SOL_FAT_PTX;
    if (entry.kind == SOL_FAT_OTHER) stop("an entry is neither PTX nor machine code", name);
    if (sol_fatbin_text(&entry, &text, &size, &err)) stop(err.message, name);
    if (ptx) text = pack(text, &size);
    snprintf(file, sizeof file, "%s/%d", folder, files);
    write_file(file, text, size);
    printf("--image3=kind=%s,sm=%d%.1s,file=%s\n", ptx ? "ptx" : "elf", entry.arch, &entry.suffix, file);
  }
  if (err.status) stop(err.message, name);
  return files;
}

int main(int argc, char **argv) {
  if (argc < 3) stop("usage: pack-kernels FOLDER FATBIN...", "arguments");
  for (int i = 2, files = 0; i < argc; i++) files = unpack(argv[i], argv[1], files);
  return 0;
}
