// Compiling CUDA C to PTX inside a test. Where there is no nvcc (scripts/cuda-env finds it) the test counts
// as skipped.
#ifndef TESTS_NVCC_H
#define TESTS_NVCC_H

#include <stdio.h>
#ifndef _POSIX_C_SOURCE
#error "define _POSIX_C_SOURCE 200809L before the first include"
#endif
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static inline bool nvcc_find(char *path, size_t cap) {
  FILE *p = popen("scripts/cuda-env nvcc 2>/dev/null", "r");
  path[0] = 0;
  if (p && fgets(path, (int)cap, p)) path[strcspn(path, "\n")] = 0;
  if (p) pclose(p);
  if (!path[0]) check_skip("no nvcc: kernels cannot be compiled");
  return path[0] != 0;
}

// PTX of the source text, NUL-terminated, its length in *length; NULL where nvcc refused it or is missing.
// free() it.
static inline char *nvcc_ptx(const char *source, const char *options, size_t *length) {
  char nvcc[512], folder[] = "/tmp/sol-test-XXXXXX", path[64], command[1024];
  if (!nvcc_find(nvcc, sizeof nvcc) || !mkdtemp(folder)) return NULL;
  snprintf(path, sizeof path, "%s/k.cu", folder);
  FILE *f = fopen(path, "w");
  char *text = NULL;
  if (f) {
    fputs(source, f);
    fclose(f);
    snprintf(command, sizeof command, "'%s' -ptx %s %s/k.cu -o %s/k.ptx", nvcc, options, folder, folder);
    int failed = system(command);
    snprintf(path, sizeof path, "%s/k.ptx", folder);
    f = failed ? NULL : fopen(path, "rb");
    if (f) {
      fseek(f, 0, SEEK_END);
      *length = (size_t)ftell(f);
      rewind(f);
      text = malloc(*length + 1);
      if (text && fread(text, 1, *length, f) == *length) text[*length] = 0;
      fclose(f);
    }
  }
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command)) return text;
  return text;
}

#endif
