// Two thousand hostile kernels (hostile.h) on the emulator: none may end the process, none may run for ever.
// Each is bounded by emulated instructions; processes of their own run them, so that one that dies is named.
//   test_hostile [SEED [COUNT]]            or HOSTILE_SEED, HOSTILE_COUNT in the environment
//   test_hostile --only SEED NUMBER        one of them, in this process
//   test_hostile --text SEED NUMBER        its PTX
//   test_hostile FILE.ptx                  one that was saved under $B/hostile
//   HOSTILE_REFUSED=1 test_hostile         also says why those were refused that should load
#define _GNU_SOURCE
#include "hostile.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "emu/emu.h"
#include "emu/texture.h"

enum {
  BATCH = 500,      // kernels of a process: looking for leaks at its end takes longer than running them
  MOST_SEEDS = 400, // files that are mutated
  NET_SECONDS = 60, // of processor time: a kernel takes a thousandth of it
  MOST_INSTRUCTIONS = 4000
};

typedef struct Progress { // shared with the process that runs a batch
  int current, done;
  int made, loaded, mutants, mutants_loaded, launched, ends[SOL_EMU_INTERRUPTED + 1];
} Progress;

typedef struct Seed {
  char *text;
  size_t length;
} Seed;
static Seed seeds[MOST_SEEDS];
static int seed_count;

// ---- one kernel ----

static uint64_t seed_of(uint64_t seed, int number, uint64_t use) {
  Hostile h = {.random = seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)number * 4 + use};
  return hostile_random(&h);
}

static bool make(uint64_t seed, int number, Hostile *h) { // false: a mutant
  *h = (Hostile){.random = seed_of(seed, number, 0)};
  bool mutant = hostile_below(h, 4) == 0;
  if (mutant && seed_count && hostile_below(h, 4)) {
    const Seed *s = &seeds[hostile_below(h, (size_t)seed_count)];
    hostile_mutant(h, s->text, s->length);
    return false;
  }
  hostile_kernel(h);
  if (!mutant) return true;
  char *text = strndup(h->text, h->length);
  if (!text) abort();
  hostile_mutant(h, text, h->length);
  free(text);
  return false;
}

static void print_nothing(void *ctx, const char *text, size_t length) {
  uint32_t *sum = ctx;
  for (size_t i = 0; i < length; i++) *sum += (unsigned char)text[i]; // what is printed is there to be read
}

typedef struct Machine {
  SolEmu *emu;
  uint64_t params[512]; // two buffers, memory of the host, a texture, a surface, nothing in particular
  char *mapped;
} Machine;

static bool machine_open(Machine *m, Hostile *h) {
  SolEmuMachine machine = {.sms = 2,
                           .workers = 1 + (int)hostile_below(h, 2),
                           .heap_bytes = 16384u << hostile_below(h, 4),
                           .stack_bytes = 512 << 10,
                           .l2 = {.bytes = 1 << 20},
                           .mem_bytes = 64 << 20,
                           .track_init = hostile_below(h, 2)};
  SolError err;
  *m = (Machine){.mapped = calloc(1, HOSTILE_BUFFER)};
  if (!m->mapped || sol_emu_create(&machine, &m->emu, &err)) return false;
  for (int i = 0; i < 512; i++) m->params[i] = hostile_random(h) >> hostile_below(h, 64);
  SolEmuTexture t = {.image = {.width = 16, .height = 8, .kind = SOL_EMU_FLOAT, .bits = 32, .channels = 4},
                     .sampler = {.linear = hostile_below(h, 2), .normalized = hostile_below(h, 2)}};
  bool ok = !sol_emu_alloc(m->emu, HOSTILE_BUFFER, "first", &m->params[0], &err) &&
            !sol_emu_alloc(m->emu, HOSTILE_BUFFER, "second", &m->params[1], &err) &&
            !sol_emu_map(m->emu, m->mapped, HOSTILE_BUFFER, "mapped", &err);
  m->params[2] = (uint64_t)(uintptr_t)m->mapped;
  t.image.address = m->params[0];
  return ok && !sol_emu_texture_create(m->emu, &t, &m->params[3], &err) &&
         !sol_emu_surface_create(m->emu, &t.image, &m->params[4], &err);
}

static void machine_close(Machine *m) {
  sol_emu_destroy(m->emu);
  free(m->mapped);
}

static void launch_kernel(Machine *m, const SolEmuKernel *kernel, Hostile *h, Progress *p) {
  static const uint32_t blocks[] = {1, 32, 48, 64, 96, 128};
  const PtxFunction *f = sol_emu_kernel_function(kernel);
  uint32_t printed = 0, cluster = hostile_below(h, 4) ? 0 : 2;
  if (f->param_size > sizeof m->params) return;
  SolEmuLaunch launch = {.kernel = kernel,
                         .grid = {4u << hostile_below(h, 2), 1, 1},
                         .block = {HOSTILE_PICK(h, blocks), 1, 1},
                         .cluster = {cluster, cluster ? 1 : 0, cluster ? 1 : 0},
                         .params = m->params,
                         .param_bytes = f->param_size,
                         .dynamic_shared = hostile_below(h, 2) ? HOSTILE_BUFFER : 66064,
                         .max_instructions = MOST_INSTRUCTIONS,
                         .checks = hostile_below(h, 8),
                         .keep_going = hostile_below(h, 2),
                         .async_order = hostile_below(h, 3),
                         .no_counts = hostile_below(h, 3) == 0,
                         .observe = hostile_below(h, 3) == 0,
                         .cooperative = hostile_below(h, 8) == 0,
                         .print = print_nothing,
                         .print_ctx = &printed};
  SolEmuResult result = {0};
  SolError err = {0};
  if (!sol_emu_launch(m->emu, &launch, &result, &err)) {
    p->launched++, p->ends[result.end]++;
    for (uint32_t i = 0; i < result.finding_count; i++)
      printed += (uint32_t)strlen(result.findings[i].message);
  }
  if (err.message[0] && getenv("HOSTILE_REFUSED")) printf("launch: %s\n", err.message);
  sol_emu_result_free(&result);
}

// Whether it loads.
static bool run_text(const char *text, size_t length, uint64_t seed, int number, Progress *p) {
  Hostile h = {.random = seed_of(seed, number, 1)};
  Machine m;
  SolEmuModule *module = NULL;
  SolError err = {0};
  char *copy = malloc(length ? length : 1); // of its very size, so that a read past its end is seen
  if (!machine_open(&m, &h) || !copy) abort();
  memcpy(copy, text, length);
  bool loaded = !sol_emu_load(m.emu, &(SolPtxSource){"hostile", copy, length}, 1, &module, &err);
  if (!loaded && getenv("HOSTILE_REFUSED"))
    printf("%d: %d:%d: %s\n", number, err.line, err.column, err.message);
  SolEmuKernel *kernel;
  for (int i = 0; loaded && i < 2 && (kernel = sol_emu_kernel_at(module, i)); i++)
    launch_kernel(&m, kernel, &h, p);
  machine_close(&m);
  free(copy);
  return loaded;
}

static void run_one(uint64_t seed, int number, Progress *p) {
  Hostile h;
  bool whole = make(seed, number, &h);
  bool loaded = run_text(h.text, h.length, seed, number, p);
  *(whole ? &p->made : &p->mutants) += 1;
  *(whole ? &p->loaded : &p->mutants_loaded) += loaded;
  free(h.text);
}

// ---- batches ----

// Processor time, not time: what else runs on the machine does not count.
static void set_net(void) {
  struct itimerval limit = {.it_value = {NET_SECONDS, 0}};
  setitimer(ITIMER_PROF, &limit, NULL);
}

static void save(uint64_t seed, int number, const char *why) {
  char folder[600], path[700];
  const char *build = getenv("B");
  Hostile h;
  make(seed, number, &h);
  snprintf(folder, sizeof folder, "%s/hostile", build ? build : "build");
  snprintf(path, sizeof path, "%s/%llu-%d.ptx", folder, (unsigned long long)seed, number);
  mkdir(build ? build : "build", 0777), mkdir(folder, 0777);
  FILE *f = fopen(path, "w");
  if (f) {
    fprintf(f, "// hostile %llu %d: %s\n", (unsigned long long)seed, number, why);
    fwrite(h.text, 1, h.length, f);
    fclose(f);
  }
  printf("FAIL seed %llu, number %d: %s; saved as %s\n", (unsigned long long)seed, number, why, path);
  printf("  again: %s --only %llu %d\n%.*s\n", program_invocation_name, (unsigned long long)seed, number,
         (int)h.length, h.text);
  free(h.text);
}

static void describe(int status, char *why, size_t cap) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
    snprintf(why, cap, "it does not end: %d s of processor time", NET_SECONDS);
  else if (WIFSIGNALED(status))
    snprintf(why, cap, "signal %d", WTERMSIG(status));
  else
    snprintf(why, cap, "exit code %d: a sanitizer's report", WEXITSTATUS(status));
}

// Status of a process that runs these; all may share one.
static int run_batch(uint64_t seed, int from, int to, Progress *p) {
  fflush(stdout), fflush(stderr);
  pid_t child = fork();
  if (child == 0) {
    for (p->current = from; p->current < to; p->current++) set_net(), run_one(seed, p->current, p);
    p->done = to;
    set_net();
    exit(0); // what leaks is found here
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 ? status : -1;
}

// How many failed. Returns the number after the last one that ran.
static int try_batch(uint64_t seed, int from, int to, Progress *p, int *failed) {
  char why[100];
  p->done = from;
  int status = run_batch(seed, from, to, p);
  if (!status) return to;
  describe(status, why, sizeof why);
  if (p->done < to || to == from + 1) {
    int number = p->done < to ? p->current : from;
    ++*failed;
    save(seed, number, why);
    return number + 1;
  }
  int middle = from + (to - from) / 2; // all ran, and something was left behind: by which?
  try_batch(seed, from, middle, p, failed);
  try_batch(seed, middle, to, p, failed);
  return to;
}

// ---- what is mutated ----

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_seed(const char *path) {
  enum { LARGEST = 20000 };
  static char text[LARGEST];
  FILE *f = seed_count < MOST_SEEDS ? fopen(path, "rb") : NULL;
  size_t length = f ? fread(text, 1, LARGEST, f) : 0;
  if (f) fclose(f);
  if (length == 0 || length == LARGEST) return;
  char *copy = malloc(length);
  if (!copy) abort();
  memcpy(copy, text, length);
  seeds[seed_count].text = copy;
  seeds[seed_count++].length = length;
}

static void read_seeds(const char *folder) {
  struct dirent **list = NULL;
  int count = scandir(folder, &list, NULL, by_name);
  for (int i = 0; i < count; i++) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
    if (list[i]->d_name[0] != '.') read_seed(path);
    free(list[i]);
  }
  free(list);
}

// ---- the suite ----

static int run_all(uint64_t seed, int count) {
  int failed = 0;
  Progress *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) abort();
  printf("seed %llu, %d kernels, %d files to mutate\n", (unsigned long long)seed, count, seed_count);
  for (int at = 0; at < count;) at = try_batch(seed, at, at + BATCH < count ? at + BATCH : count, p, &failed);
  printf(
      "%d of %d kernels and %d of %d mutants load; %d launches: %d end, %d by a finding, %d by their limit\n",
      p->loaded, p->made, p->mutants_loaded, p->mutants, p->launched, p->ends[SOL_EMU_DONE],
      p->ends[SOL_EMU_FAULT], p->ends[SOL_EMU_INSTRUCTION_LIMIT]);
  if (p->loaded * 4 < p->made * 3 || p->launched * 2 < p->made)
    printf("FAIL: too few of the kernels load or run\n"), failed++;
  munmap(p, sizeof *p);
  return check_end(count - failed, failed, 0);
}

static int run_file(const char *path) {
  unsigned long long seed = 1;
  int number = 0;
  Progress p = {0};
  seed_count = 0;
  read_seed(path);
  if (!seed_count) return printf("%s cannot be read, or is too large\n", path), 2;
  if (seeds[0].length > 20 && sscanf(seeds[0].text, "// hostile %llu %d", &seed, &number) != 2)
    seed = 1, number = 0;
  printf("%s\n", run_text(seeds[0].text, seeds[0].length, seed, number, &p) ? "it loads" : "it is refused");
  return 0;
}

static uint64_t number_of(const char *text, const char *variable, uint64_t otherwise) {
  if (!text) text = getenv(variable);
  return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

int main(int argc, char **argv) {
  Progress p = {0};
  read_seeds("tests/ptx_hostile");
  read_seeds("tests/fuzz/corpus/emu");
  read_seeds("tests/fuzz/corpus/ptx");
  read_seeds("tests/ptx_hostile");
  bool only = argc == 4 && !strcmp(argv[1], "--only"), text = argc == 4 && !strcmp(argv[1], "--text");
  int code = 0;
  if (only) {
    run_one(strtoull(argv[2], NULL, 0), atoi(argv[3]), &p);
  } else if (text) {
    Hostile h;
    make(strtoull(argv[2], NULL, 0), atoi(argv[3]), &h);
    fwrite(h.text, 1, h.length, stdout);
    free(h.text);
  } else if (argc == 2 && strstr(argv[1], ".ptx")) {
    code = run_file(argv[1]);
  } else {
    code = run_all(number_of(argc > 1 ? argv[1] : NULL, "HOSTILE_SEED", 1),
                   (int)number_of(argc > 2 ? argv[2] : NULL, "HOSTILE_COUNT", 2000));
  }
  for (int i = 0; i < seed_count; i++) free(seeds[i].text);
  return code;
}
