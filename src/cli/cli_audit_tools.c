// What sol audit needs of the machine: a compiler and Sol's runtime.
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/child.h"
#include "cli/cli_audit.h"
#include "cli/scratch.h"

bool cli_audit_find_shim(char *out, size_t cap) {
  return cli_child_library("SOL_SHIM", "shim", "libcudart.so.13", out, cap);
}

// ---- programs ----

static void become(const char *const *argv, bool quiet, int out) {
  int null = open("/dev/null", O_RDWR);
  if (null >= 0) dup2(null, 0); // it is not in the terminal's foreground, and would be stopped
  signal(SIGTTOU, SIG_IGN);
  if (null >= 0 && quiet) dup2(null, 2);
  dup2(out, 1);
  // nvcc writes this name into command lines for a shell, and files of names that can be guessed into the
  // folder.
  if (scratch_folder()) setenv("TMPDIR", scratch_folder(), 1);
  execvp(argv[0], (char *const *)(uintptr_t)argv);
  _exit(127);
}

static int wait_for(pid_t pid) {
  int status = 0;
  pid_t done = -1;
  while (pid > 0 && (done = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
  }
  scratch_ended();
  return done == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int cli_audit_call(const char *const *argv, bool quiet) {
  pid_t pid = scratch_fork(true);
  if (pid == 0) become(argv, quiet, 2);
  return wait_for(pid);
}

// What it prints, as much as fits.
static void read_output(const char *const *argv, char *text, size_t cap) {
  int ends[2];
  text[0] = 0;
  if (pipe(ends)) return;
  pid_t pid = scratch_fork(true);
  if (pid == 0) become(argv, true, ends[1]);
  close(ends[1]);
  size_t length = 0;
  for (ssize_t n; pid > 0 && length + 1 < cap; length += (size_t)n)
    if ((n = read(ends[0], text + length, cap - 1 - length)) <= 0) break;
  text[length] = 0;
  close(ends[0]);
  wait_for(pid);
}

// ---- nvcc ----

// The release it reports, 13 for 13.0; 0: no nvcc.
static int nvcc_release(const char *path) {
  char text[4096];
  if (access(path, X_OK) != 0) return 0;
  const char *const argv[] = {path, "--version", NULL};
  read_output(argv, text, sizeof text);
  const char *at = strstr(text, "release ");
  return at ? atoi(at + 8) : 0;
}

// In PATH: the first that can be run.
static bool in_path(char *out, size_t cap) {
  const char *path = getenv("PATH");
  for (const char *p = path ? path : ""; *p;) {
    size_t n = strcspn(p, ":");
    if (n && sol_format(out, cap, "%.*s/nvcc", (int)n, p) < cap && access(out, X_OK) == 0) return true;
    p += n + (p[n] == ':');
  }
  return false;
}

int cli_audit_look_for_nvcc(char *out, size_t cap) {
  char here[CHILD_PATH];
  const char *nvcc = getenv("NVCC"), *home = getenv("CUDA_HOME");
  bool known = cli_child_own_folder(here, sizeof here);
  int seen = 0;
  for (int i = 0; i < 5; i++) {
    size_t n = 0;
    if (i == 0 && nvcc && *nvcc) n = sol_format(out, cap, "%s", nvcc);
    if (i == 1 && home && *home) n = sol_format(out, cap, "%s/bin/nvcc", home);
    if (i == 2 && in_path(out, cap)) n = strlen(out);
    if (i == 3) n = sol_format(out, cap, "/usr/local/cuda/bin/nvcc");
    if (i == 4 && known) n = sol_format(out, cap, "%s/cuda/bin/nvcc", here);
    int release = n && n < cap ? nvcc_release(out) : 0;
    if (release >= 13) return release;
    if (release) seen = release;
  }
  return seen;
}
