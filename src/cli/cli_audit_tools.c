// What sol audit needs of the machine: a compiler, our runtime, a folder, other processes.
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/child.h"
#include "cli/cli_audit.h"

int cli_audit_folder(AuditRun *r) {
  return r->folder[0] ? EXIT_OK : cli_temporary(r->cli, "audit", r->folder, sizeof r->folder);
}

void cli_audit_folder_drop(AuditRun *r) {
  cli_temporary_drop(r->folder);
}

bool cli_audit_find_shim(char *out, size_t cap) {
  return cli_child_library("SOL_SHIM", "shim", "libcudart.so.13", out, cap);
}

static void child(const char *const *argv, bool quiet) {
  if (quiet) {
    int null = open("/dev/null", O_RDWR);
    if (null >= 0) dup2(null, 2);
  }
  dup2(2, 1);
  execvp(argv[0], (char *const *)(uintptr_t)argv);
  _exit(127);
}

int cli_audit_call(const char *const *argv, bool quiet) {
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) child(argv, quiet);
  int status;
  while (pid > 0 && waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// ---- nvcc ----

// The release it says it is, 13 for 13.0; 0: no nvcc.
static int nvcc_release(const char *path) {
  if (access(path, X_OK) != 0) return 0;
  char command[640], line[256];
  if (strchr(path, '\'')) return 0;
  sol_format(command, sizeof command, "'%s' --version 2>/dev/null", path);
  FILE *f = popen(command, "r");
  int release = 0;
  while (f && fgets(line, sizeof line, f)) {
    const char *at = strstr(line, "release ");
    if (at) release = atoi(at + 8);
  }
  if (f) pclose(f);
  return release;
}

// In PATH: the first that can be run.
static bool in_path(char *out, size_t cap) {
  const char *path = getenv("PATH");
  for (const char *p = path ? path : ""; *p;) {
    size_t n = strcspn(p, ":");
    sol_format(out, cap, "%.*s/nvcc", (int)n, p);
    if (n && access(out, X_OK) == 0) return true;
    p += n + (p[n] == ':');
  }
  return false;
}

int cli_audit_look_for_nvcc(char *out, size_t cap) {
  char here[400];
  const char *nvcc = getenv("NVCC"), *home = getenv("CUDA_HOME");
  bool known = cli_child_own_folder(here, sizeof here);
  int seen = 0;
  for (int i = 0; i < 5; i++) {
    out[0] = 0;
    if (i == 0 && nvcc && *nvcc) sol_format(out, cap, "%s", nvcc);
    if (i == 1 && home && *home) sol_format(out, cap, "%s/bin/nvcc", home);
    if (i == 2 && !in_path(out, cap)) out[0] = 0;
    if (i == 3) sol_format(out, cap, "/usr/local/cuda/bin/nvcc");
    if (i == 4 && known) sol_format(out, cap, "%s/cuda/bin/nvcc", here);
    int release = out[0] ? nvcc_release(out) : 0;
    if (release >= 13) return release;
    if (release) seen = release;
  }
  return seen;
}

static int find_nvcc(AuditRun *r, char *out, size_t cap) {
  int seen = cli_audit_look_for_nvcc(out, cap);
  if (seen >= 13) return EXIT_OK;
  SolError err = {0};
  if (seen)
    sol_fail(&err, SOL_ERR_NOT_FOUND, "the nvcc found is of CUDA %d; it takes CUDA 13 or newer", seen);
  else
    sol_fail(&err, SOL_ERR_NOT_FOUND, "no nvcc: a .cu file has to be compiled");
  sol_hint(&err, "set NVCC or CUDA_HOME, or run 'make setup' in Sol's folder; a .ptx file needs none");
  return cli_error(r->cli, &err, 0, 0, 0);
}

enum { MAX_NVCC_WORDS = 256 };

// The words of the --nvcc options, cut at spaces; they live in the arena.
static size_t add_words(AuditRun *r, const char **argv, size_t count) {
  for (int i = 0; i < r->args->nvcc.count; i++) {
    size_t n = strlen(r->args->nvcc.text[i]) + 1;
    char *copy = sol_arena_alloc(&r->cli->arena, n), *save = NULL;
    if (!copy) return count;
    memcpy(copy, r->args->nvcc.text[i], n);
    for (char *word = strtok_r(copy, " ", &save); word && count < MAX_NVCC_WORDS - 48;
         word = strtok_r(NULL, " ", &save))
      argv[count++] = word;
  }
  return count;
}

int cli_audit_compile(AuditRun *r, const SolDevice *device, const char *const *flags, const char *out) {
  const char *argv[MAX_NVCC_WORDS];
  char nvcc[512], arch[24];
  int code = find_nvcc(r, nvcc, sizeof nvcc);
  if (code) return code;
  int cc = device->cc_major * 10 + device->cc_minor;
  sol_format(arch, sizeof arch, "-arch=sm_%d", cc < 75 ? 75 : cc); // nothing older is compiled for any more
  size_t n = 0;
  argv[n++] = nvcc;
  for (size_t i = 0; flags[i]; i++) argv[n++] = flags[i];
  argv[n++] = "-lineinfo";
  argv[n++] = arch;
  argv[n++] = "-Wno-deprecated-gpu-targets";
  n = add_words(r, argv, n);
  for (int i = 0; i < r->args->common.positional_count; i++) argv[n++] = r->args->common.positional[i];
  argv[n++] = "-o";
  argv[n++] = out;
  argv[n] = NULL;
  int exit_code = cli_audit_call(argv, false);
  if (!exit_code) return EXIT_OK;
  SolError err = {0};
  sol_fail(&err, SOL_ERR_ARGUMENT, "nvcc could not compile %.100s (exit code %d); its messages are above",
           r->args->common.positional[0], exit_code);
  sol_hint(&err, "flags for nvcc go into --nvcc '-Iinclude -std=c++17'; a kernel without a main takes --arg");
  return cli_error(r->cli, &err, 0, 0, 0);
}
