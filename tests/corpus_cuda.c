// Runs the corpus on the real CUDA driver: corpus_cuda [--timeout SECONDS] FILE.cu MODULE ...
// MODULE is a cubin, a fat binary or PTX of FILE.cu. One line per pair; the last is "N passed, N failed". The
// driver is loaded at run time and what is needed of its API declared here, so no CUDA headers are needed:
//   cc -std=c17 -O2 -Itests tests/corpus_cuda.c tests/corpus.c -ldl -o corpus_cuda
#define _GNU_SOURCE
#include "corpus.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// --- the driver

typedef struct LaunchAttribute { // CUlaunchAttribute
  int id, pad;
  union {
    int flag;
    uint32_t dims[3];
    char space[64];
  } value;
} LaunchAttribute;
enum { ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_CLUSTER = 4, ATTRIBUTE_DEPENDENT = 6 };

typedef struct LaunchConfig { // CUlaunchConfig
  uint32_t grid[3], block[3], smem;
  void *stream;
  LaunchAttribute *attributes;
  uint32_t attribute_count;
} LaunchConfig;
enum {
  FUNCTION_DYNAMIC_SMEM = 8,
  LIMIT_STACK = 0,
  LIMIT_HEAP = 2,
  CAPABILITY_MAJOR = 75,
  CAPABILITY_MINOR = 76
};

#define DRIVER(X)                                                                                            \
  X(cuInit, (unsigned))                                                                                      \
  X(cuDeviceGet, (int *, int))                                                                               \
  X(cuDeviceGetName, (char *, int, int))                                                                     \
  X(cuDeviceGetAttribute, (int *, int, int))                                                                 \
  X(cuDevicePrimaryCtxRetain, (void **, int))                                                                \
  X(cuDevicePrimaryCtxReset_v2, (int))                                                                       \
  X(cuCtxSetCurrent, (void *))                                                                               \
  X(cuCtxGetLimit, (size_t *, int))                                                                          \
  X(cuCtxSetLimit, (int, size_t))                                                                            \
  X(cuCtxSynchronize, (void))                                                                                \
  X(cuModuleLoadData, (void **, const void *))                                                               \
  X(cuModuleUnload, (void *))                                                                                \
  X(cuModuleGetFunction, (void **, void *, const char *))                                                    \
  X(cuFuncSetAttribute, (void *, int, int))                                                                  \
  X(cuMemAlloc_v2, (uint64_t *, size_t))                                                                     \
  X(cuMemFree_v2, (uint64_t))                                                                                \
  X(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t))                                                       \
  X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                             \
  X(cuLaunchKernelEx, (const LaunchConfig *, void *, void **, void **))                                      \
  X(cuGetErrorName, (int, const char **))

typedef struct Driver {
#define MEMBER(name, parameters) int(*name) parameters;
  DRIVER(MEMBER)
#undef MEMBER
  int device, arch;
  void *context;
} Driver;

static bool say(CorpusMessage *message, const char *what, const char *why) {
  snprintf(message->text, sizeof message->text, "%s: %s", what, why);
  return false;
}

static bool driver_ok(const Driver *driver, int result, const char *what, CorpusMessage *message) {
  const char *name = "unknown error";
  if (result == 0) return true;
  driver->cuGetErrorName(result, &name);
  return say(message, what, name ? name : "unknown error");
}
#define TRY(call) driver_ok(driver, driver->call, #call, message)

static bool driver_open(Driver *driver, CorpusMessage *message) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return say(message, "dlopen", dlerror());
#define LOOK_UP(name, parameters)                                                                            \
  *(void **)&driver->name = dlsym(library, #name);                                                           \
  if (!driver->name) return say(message, #name, "not in this driver");
  DRIVER(LOOK_UP)
#undef LOOK_UP
  char name[128] = "";
  int major = 0, minor = 0;
  if (!TRY(cuInit(0)) || !TRY(cuDeviceGet(&driver->device, 0))) return false;
  if (!TRY(cuDeviceGetName(name, sizeof name, driver->device))) return false;
  if (!TRY(cuDeviceGetAttribute(&major, CAPABILITY_MAJOR, driver->device))) return false;
  if (!TRY(cuDeviceGetAttribute(&minor, CAPABILITY_MINOR, driver->device))) return false;
  driver->arch = 10 * major + minor;
  if (!TRY(cuDevicePrimaryCtxRetain(&driver->context, driver->device))) return false;
  return TRY(cuCtxSetCurrent(driver->context));
}

// --- one program

// The whole file, with a zero byte behind it; NULL with the reason in `message`.
static char *read_file(const char *path, size_t *length, CorpusMessage *message) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  long size = -1;
  if (file && fseek(file, 0, SEEK_END) == 0) size = ftell(file);
  if (file && size >= 0 && fseek(file, 0, SEEK_SET) == 0) text = calloc((size_t)size + 1, 1);
  *length = file && text ? fread(text, 1, (size_t)size, file) : 0;
  if (text && *length != (size_t)size) free(text), text = NULL;
  if (!text) say(message, path, strerror(errno));
  if (file) fclose(file);
  return text;
}

static bool launch(const Driver *driver, const CorpusProgram *program, int i, void *module,
                   const uint64_t *addresses, CorpusMessage *message) {
  const CorpusLaunch *step = &program->launches[i];
  LaunchAttribute attributes[3] = {0};
  LaunchConfig config = {.smem = step->smem, .attributes = attributes};
  void *function = NULL, *pointers[CORPUS_MAX_ARGS];
  memcpy(config.grid, step->grid, sizeof config.grid);
  memcpy(config.block, step->block, sizeof config.block);
  if (step->cooperative)
    attributes[config.attribute_count++] = (LaunchAttribute){ATTRIBUTE_COOPERATIVE, 0, {.flag = 1}};
  if (step->dependent)
    attributes[config.attribute_count++] = (LaunchAttribute){ATTRIBUTE_DEPENDENT, 0, {.flag = 1}};
  if (step->cluster[0]) {
    attributes[config.attribute_count].id = ATTRIBUTE_CLUSTER;
    memcpy(attributes[config.attribute_count++].value.dims, step->cluster, sizeof step->cluster);
  }
  CorpusArgs *args = malloc(sizeof *args);
  bool ok = args && corpus_pack(program, i, addresses, args, message);
  for (int j = 0; ok && j < args->count; j++) pointers[j] = args->block + args->offsets[j];
  ok = ok && TRY(cuModuleGetFunction(&function, module, step->kernel));
  if (ok && step->smem > 48 * 1024)
    ok = TRY(cuFuncSetAttribute(function, FUNCTION_DYNAMIC_SMEM, (int)step->smem));
  ok = ok && TRY(cuLaunchKernelEx(&config, function, pointers, NULL));
  // A dependent launch overlaps the one before it, so nothing is waited for in between.
  if (ok && !(i + 1 < program->launch_count && program->launches[i + 1].dependent))
    ok = TRY(cuCtxSynchronize());
  free(args);
  if (!ok) {
    CorpusMessage why = *message;
    snprintf(message->text, sizeof message->text, "%s, line %d: %.200s", step->kernel, step->line, why.text);
  }
  return ok;
}

static bool upload(const Driver *driver, const CorpusProgram *program, uint64_t *addresses,
                   CorpusMessage *message) {
  bool ok = true;
  for (int i = 0; ok && i < program->alloc_count; i++)
    ok = TRY(cuMemAlloc_v2(&addresses[i], program->allocs[i].bytes));
  for (int i = 0; ok && i < program->alloc_count; i++) {
    uint64_t bytes = program->allocs[i].bytes;
    void *contents = malloc(bytes);
    ok = contents != NULL;
    if (ok && corpus_fill(program, i, addresses, contents))
      ok = TRY(cuMemcpyHtoD_v2(addresses[i], contents, bytes));
    free(contents);
  }
  return ok;
}

static bool run_launches(const Driver *driver, const CorpusProgram *program, void *module, uint32_t *errors,
                         CorpusMessage *message) {
  uint64_t addresses[CORPUS_MAX_ALLOCS] = {0};
  bool ok = upload(driver, program, addresses, message);
  for (int i = 0; ok && i < program->launch_count; i++)
    ok = launch(driver, program, i, module, addresses, message);
  ok = ok && TRY(cuMemcpyDtoH_v2(errors, addresses[corpus_find(program, "errors", 6)], CORPUS_ERROR_BYTES));
  for (int i = 0; i < program->alloc_count; i++)
    if (addresses[i]) driver->cuMemFree_v2(addresses[i]);
  return ok;
}

// Never lowered: the heap cannot be changed any more once a kernel has used it.
static bool raise_limit(const Driver *driver, int limit, size_t least, CorpusMessage *message) {
  size_t now = 0;
  if (least == 0) return true;
  if (!TRY(cuCtxGetLimit(&now, limit))) return false;
  return now >= least || TRY(cuCtxSetLimit(limit, least));
}

// What the kernels print goes to a file of its own: the driver writes to stdout when the context is
// synchronised.
static bool run_program(const Driver *driver, const CorpusProgram *program, const char *image,
                        CorpusMessage *message) {
  uint32_t errors[CORPUS_ERROR_BYTES / 4] = {0};
  void *module = NULL;
  char printed[1 << 16] = "";
  if (!raise_limit(driver, LIMIT_STACK, program->stack, message)) return false;
  if (!raise_limit(driver, LIMIT_HEAP, program->heap, message)) return false;
  if (!TRY(cuModuleLoadData(&module, image))) return false;
  fflush(stdout);
  int terminal = dup(STDOUT_FILENO);
  FILE *paper = tmpfile();
  if (terminal < 0 || !paper) return say(message, "capturing output", strerror(errno));
  dup2(fileno(paper), STDOUT_FILENO);
  bool ok = run_launches(driver, program, module, errors, message);
  fflush(stdout);
  dup2(terminal, STDOUT_FILENO);
  close(terminal);
  rewind(paper);
  printed[fread(printed, 1, sizeof printed - 1, paper)] = 0;
  fclose(paper);
  driver->cuModuleUnload(module);
  return ok && corpus_verdict(program, errors, printed, message);
}

// 1: passed, 0: failed, -1: not for this GPU.
static int run_pair(Driver *driver, const char *source, const char *module) {
  static CorpusProgram program;
  CorpusMessage text = {""}, *message = &text;
  struct timespec start, end;
  size_t length = 0, image_length = 0;
  char *words = read_file(source, &length, message), *image = NULL;
  int result = 0;
  clock_gettime(CLOCK_MONOTONIC, &start);
  if (words && corpus_parse(&program, words, length, message)) {
    if (program.arch > driver->arch)
      result = -1;
    else if ((image = read_file(module, &image_length, message)))
      result = run_program(driver, &program, image, message);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  double ms = (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) * 1e-6;
  if (result < 0)
    printf("skip %s: needs sm_%d\n", module, program.arch);
  else
    printf("%s %s: %s (%.0f ms)\n", result ? "PASS" : "FAIL", module, text.text, ms);
  fflush(stdout);
  free(words);
  free(image);
  if (result == 0) { // a fault stays with the context
    driver->cuDevicePrimaryCtxReset_v2(driver->device);
    if (driver->cuDevicePrimaryCtxRetain(&driver->context, driver->device) == 0)
      driver->cuCtxSetCurrent(driver->context);
  }
  return result;
}

// --- all of them

typedef struct Progress { // shared with the child that runs the programs
  volatile int next, passed, failed, skipped, opened;
} Progress;

static void run_rest(Progress *progress, int count, char **pairs) {
  Driver driver = {0};
  CorpusMessage message = {""};
  if (!driver_open(&driver, &message)) {
    printf("no CUDA device: %s\n", message.text);
    return;
  }
  progress->opened = 1;
  while (progress->next < count) {
    int result = run_pair(&driver, pairs[2 * progress->next], pairs[2 * progress->next + 1]);
    if (result > 0)
      progress->passed++;
    else if (result < 0)
      progress->skipped++;
    else
      progress->failed++;
    progress->next++;
  }
}

// Waits for the child as long as it gets on; one that hangs is killed.
static void watch(const Progress *progress, pid_t child, int timeout) {
  int last = -1, waited = 0, status;
  while (waitpid(child, &status, WNOHANG) == 0) {
    struct timespec tick = {0, 20 * 1000 * 1000};
    if (progress->next != last) last = progress->next, waited = 0;
    if (waited++ < timeout * 50) {
      nanosleep(&tick, NULL);
      continue;
    }
    kill(child, 9);
    waitpid(child, &status, 0);
    return;
  }
}

int main(int argc, char **argv) {
  int timeout = 20, first = 1;
  if (argc > 2 && strcmp(argv[1], "--timeout") == 0) timeout = atoi(argv[2]), first = 3;
  int count = (argc - first) / 2;
  if (timeout < 1 || count < 1 || (argc - first) % 2) {
    fprintf(stderr, "usage: corpus_cuda [--timeout SECONDS] FILE.cu MODULE ...\n");
    return 2;
  }
  Progress *progress =
      mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (progress == MAP_FAILED) return perror("mmap"), 1;
  while (progress->next < count) {
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) return perror("fork"), 1;
    if (child == 0) {
      run_rest(progress, count, argv + first);
      fflush(stdout);
      _exit(0);
    }
    watch(progress, child, timeout);
    if (!progress->opened) return 77;
    if (progress->next == count) break;
    printf("FAIL %s: hung or killed the program\n", argv[first + 2 * progress->next + 1]);
    progress->failed++;
    progress->next++;
  }
  printf("%d passed, %d failed, %d skipped\n", progress->passed, progress->failed, progress->skipped);
  return progress->failed > 0;
}
