// Feeds files to a fuzz target without libFuzzer: replay_NAME FILE_OR_FOLDER...
// Each file goes in whole, cut short at every length, and with small seeded changes, so that a corpus also
// finds what a parser does just beside it. The copy is exactly as long as the input: a read past it is seen
// by ASan.
#include "fuzz.h"
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZE = 1 << 20, MAX_CUTS = 1024, CHANGED = 300 };

// A target that could not be built here says why.
__attribute__((weak)) const char *fuzz_skipped(void);

static void feed(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) exit(1);
  memcpy(copy, data, size);
  LLVMFuzzerTestOneInput(copy, size);
  free(copy);
}

static uint32_t draw(uint32_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

// One to four changes: another byte, a byte that matters to a parser, a bit, or a stretch copied elsewhere.
static void change(uint8_t *data, size_t size, uint32_t *state) {
  static const char telling[] = "0919.eE+-xX{}[]\",:\\ \n\tkMGiB\0\x7f\xff";
  for (uint32_t n = 1 + draw(state) % 4; n > 0; n--) {
    size_t at = draw(state) % size, other = draw(state) % size;
    size_t length = draw(state) % 16;
    switch (draw(state) % 4) {
    case 0: data[at] = (uint8_t)draw(state); break;
    case 1: data[at] = (uint8_t)telling[draw(state) % (sizeof telling - 1)]; break;
    case 2: data[at] ^= (uint8_t)(1u << draw(state) % 8); break;
    default:
      if (at + length <= size && other + length <= size) memmove(data + at, data + other, length);
    }
  }
}

static bool replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    printf("cannot open %s\n", path);
    return false;
  }
  uint8_t *data = malloc(MAX_SIZE), *changed = malloc(MAX_SIZE);
  if (!data || !changed) exit(1);
  size_t size = fread(data, 1, MAX_SIZE, file);
  fclose(file);
  // Said first and flushed: where the target dies, the last line names the input.
  printf("%s, %zu bytes\n", path, size);
  fflush(stdout);
  feed(data, size);
  for (size_t cut = 0; cut < size && cut < MAX_CUTS; cut++) feed(data, cut);
  uint32_t state = 2463534242u;
  for (int i = 0; i < CHANGED && size; i++) {
    memcpy(changed, data, size);
    change(changed, size, &state);
    feed(changed, size);
  }
  free(data);
  free(changed);
  return true;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv) {
  if (fuzz_skipped) return puts(fuzz_skipped()), 77;
  int passed = 0, failed = 0;
  for (int i = 1; i < argc; i++) {
    DIR *folder = opendir(argv[i]);
    if (!folder) {
      replay_file(argv[i]) ? passed++ : failed++;
      continue;
    }
    enum { MAX_FILES = 4096 };
    static char *names[MAX_FILES];
    int count = 0;
    for (struct dirent *entry; count < MAX_FILES && (entry = readdir(folder));) {
      if (entry->d_name[0] == '.') continue;
      size_t length = strlen(argv[i]) + strlen(entry->d_name) + 2;
      names[count] = malloc(length);
      if (!names[count]) exit(1);
      snprintf(names[count++], length, "%s/%s", argv[i], entry->d_name);
    }
    closedir(folder);
    qsort(names, (size_t)count, sizeof names[0], by_name);
    for (int k = 0; k < count; k++) {
      replay_file(names[k]) ? passed++ : failed++;
      free(names[k]);
    }
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed ? 1 : 0;
}
