// The machine code of modules whose programs do not hold it with lines of the PTX: ptxas makes it from the PTX
// that the emulator executes, in the private folder, while the program runs. Without ptxas, or where it takes
// too long, the bill counts PTX instructions.
#define _XOPEN_SOURCE 700 // realpath

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "base/threads.h"
#include "cli/child.h"
#include "cli/cli_audit.h"
#include "cli/scratch.h"
#include "image/fatbin.h"

enum { MOST_SECONDS = 60, MOST_MODULES = 256, MOST_PTX = 64 << 20 };

typedef struct Code {
  struct Code *next;
  char *kernel;
  SassCode code;
} Code;

typedef struct Module {
  uint32_t unit;
  uint64_t hash; // of the PTX: processes of one program count their modules each on its own
  bool several;  // of them had this number
  pid_t pid;     // 0: ptxas has ended
  double since;
  const char *cubin;
  char *elf; // NULL: none
  size_t length;
  Code *codes; // of the kernels launched
} Module;

struct AuditModules {
  AuditRun *run;
  const SolDevice *device;
  int cc;
  char ptxas[CHILD_PATH];
  SolArena arena;
  Module list[MOST_MODULES];
  int count;
};

static bool ptxas_beside(const char *nvcc, char *out, size_t cap) {
  const char *name = strrchr(nvcc, '/');
  sol_format(out, cap, "%.*sptxas", name ? (int)(name - nvcc) + 1 : 0, nvcc);
  return access(out, X_OK) == 0;
}

// Beside nvcc, or beside what that is a link to.
static bool find_ptxas(char *out, size_t cap) {
  char nvcc[CHILD_PATH];
  if (cli_audit_look_for_nvcc(nvcc, sizeof nvcc) < 13) return false;
  if (ptxas_beside(nvcc, out, cap)) return true;
  char *real = realpath(nvcc, NULL);
  bool found = real && ptxas_beside(real, out, cap);
  free(real);
  return found;
}

AuditModules *audit_modules_create(AuditRun *r, const SolDevice *device) {
  AuditModules *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->run = r;
  m->device = device;
  m->cc = device->cc_major * 10 + device->cc_minor;
  if (find_ptxas(m->ptxas, sizeof m->ptxas)) return m;
  free(m);
  return NULL;
}

static Module *module_of(AuditModules *m, uint32_t unit) {
  for (int i = 0; m && i < m->count; i++)
    if (m->list[i].unit == unit) return &m->list[i];
  return NULL;
}

// "sm_90a" where the PTX is for that alone, else the GPU's own.
static void choose_arch(const char *ptx, int cc, char *out, size_t cap) {
  const char *at = strstr(ptx, ".target sm_"), *digits = at ? at + strlen(".target sm_") : "";
  char *end;
  long target = strtol(digits, &end, 10);
  bool alone = target == cc && (*end == 'a' || *end == 'f');
  sol_format(out, cap, "-arch=sm_%d%.1s", cc, alone ? end : "");
}

static void become(const char *const *argv) {
  int null = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3 && null >= 0; i++) dup2(null, i);
  if (scratch_folder()) setenv("TMPDIR", scratch_folder(), 1);
  execv(argv[0], (char *const *)(uintptr_t)argv);
  _exit(127);
}

static uint64_t hash_of(const char *text) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (; *text; text++) hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
  return hash;
}

void audit_modules_add(AuditModules *m, uint32_t unit, const char *ptx) {
  Module *one = module_of(m, unit);
  uint64_t hash = hash_of(ptx);
  if (one) one->several |= one->hash != hash;
  if (!m || one || m->count == MOST_MODULES || strlen(ptx) > MOST_PTX) return;
  one = &m->list[m->count];
  const char *text = scratch_path(m->run->cli, "module-%d-%d.ptx", m->cc, m->count);
  char arch[24];
  *one = (Module){.unit = unit,
                  .hash = hash,
                  .since = sol_thread_clock(),
                  .cubin = scratch_path(m->run->cli, "module-%d-%d.cubin", m->cc, m->count)};
  choose_arch(ptx, m->cc, arch, sizeof arch);
  if (cli_write_file(text, ptx, strlen(ptx), NULL)) return;
  const char *const argv[] = {m->ptxas, "-lineinfo", arch, text, "-o", one->cubin, NULL};
  one->pid = scratch_fork_beside();
  if (one->pid == 0) become(argv);
  m->count++;
}

static void take_cubin(Module *one) {
  one->elf = cli_read_file(one->cubin, (size_t)1 << 30, &one->length, NULL);
  unlink(one->cubin);
}

static void poll(AuditModules *m, Module *one) {
  int status = 0;
  pid_t done = one->pid > 0 ? waitpid(one->pid, &status, WNOHANG) : -1;
  if (done == 0 && sol_thread_clock() - one->since < MOST_SECONDS) return;
  if (done < 0 && one->pid > 0 && errno == EINTR) return;
  if (done == 0) {
    cli_audit_note(m->run, "ptxas took longer than %d s: instructions are those of the PTX", MOST_SECONDS);
    kill(one->pid, SIGKILL);
    waitpid(one->pid, NULL, 0);
  }
  if (done > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) take_cubin(one);
  one->pid = 0;
}

bool audit_modules_running(AuditModules *m, uint32_t unit) {
  Module *one = module_of(m, unit);
  if (one && one->pid) poll(m, one);
  return one && one->pid;
}

static Code *code_of(AuditModules *m, Module *one, const char *kernel) {
  for (Code *c = one->codes; c; c = c->next)
    if (strcmp(c->kernel, kernel) == 0) return c;
  Code *c = sol_arena_alloc(&m->arena, sizeof *c);
  char *name = sol_arena_alloc(&m->arena, strlen(kernel) + 1);
  if (!c || !name) return NULL;
  c->kernel = memcpy(name, kernel, strlen(kernel) + 1);
  if (sass_read(one->elf, one->length, kernel, &m->arena, &c->code, NULL)) c->code = (SassCode){0};
  c->next = one->codes;
  return one->codes = c;
}

void audit_modules_apply(AuditModules *m, AuditLaunch *l, SolArena *arena) {
  Module *one = l->machine ? NULL : module_of(m, l->unit);
  Code *c = one && one->elf && !one->several ? code_of(m, one, l->name) : NULL;
  if (!c || !c->code.count) return;
  int registers = sol_cubin_registers(one->elf, one->length, l->name);
  if (l->registers_from == AUDIT_FROM_EMULATOR && registers) {
    l->registers = registers;
    l->registers_from = AUDIT_FROM_PTXAS;
    l->stack_bytes = (uint64_t)sol_cubin_stack(one->elf, one->length, l->name);
  }
  AuditInst *insts = (AuditInst *)(uintptr_t)l->insts; // the reader's, and ours to change
  l->machine = audit_machine_code(&c->code, m->device, insts, l->inst_count, arena);
}

void audit_modules_free(AuditModules *m) {
  for (int i = 0; m && i < m->count; i++) {
    if (m->list[i].pid > 0) kill(m->list[i].pid, SIGKILL), waitpid(m->list[i].pid, NULL, 0);
    free(m->list[i].elf);
  }
  if (m) sol_arena_free(&m->arena);
  free(m);
}
