// Prints what the driver's interface answers to questions and to misuse, one line each; the program's argument names the
// part. What the driver of an H200 printed stands in driver_answers_h200.txt; the emulator as an H200 must print the same.
// Calls that crash the driver, mistakes that it misses, and what depends on freed memory are not asked.
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *library;
static void *find(const char *name) {
  void *found = dlsym(library, name);
  if (!found) printf("no %s\n", name), exit(1);
  return found;
}
#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)
#define CU(name)    ((__typeof__(&name))find(TEXT(name)))

static const char *name_of(CUresult result) {
  const char *text = NULL;
  return CU(cuGetErrorName)(result, &text) ? "no name" : text;
}
static sigjmp_buf before;
#define SAY(name, ...)                                                                                       \
  do {                                                                                                       \
    printf("%s(%s): ", #name, #__VA_ARGS__);                                                                 \
    fflush(stdout);                                                                                          \
    puts(sigsetjmp(before, 1) ? "crashes" : name_of(CU(name)(__VA_ARGS__)));                                 \
  } while (0)
#define VALUE(what) printf("  %s: %lld\n", #what, (long long)(what))

static void crashed(int number) {
  if (number == SIGALRM) _exit(write(1, "hangs\n", 6) < 0);
  siglongjmp(before, 1);
}

static CUcontext begin(void) {
  CUcontext context = NULL;
  CU(cuInit)(0);
  CU(cuDevicePrimaryCtxRetain)(&context, 0);
  CU(cuCtxSetCurrent)(context);
  return context;
}

typedef struct Part {
  const char *name;
  void (*run)(void);
} Part;

static int run_part(const Part *parts, size_t count, int argc, char **argv) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library || argc < 2) return puts(library ? "name a part" : dlerror()), 1;
  signal(SIGSEGV, crashed);
  signal(SIGBUS, crashed);
  signal(SIGALRM, crashed);
  alarm(60); // a call that crashed may have left the driver's lock behind
  for (size_t i = 0; i < count; i++)
    if (strcmp(argv[1], parts[i].name) == 0) return parts[i].run(), 0;
  return 1;
}
