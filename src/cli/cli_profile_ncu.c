// A report of Nsight Compute itself, .ncu-rep, which only its own ncu can read: it prints the raw page as CSV.
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/child.h"
#include "cli/cli_profile.h"
#include "cli/scratch.h"

bool cli_profile_is_report(const char *path) {
  static const char end[] = ".ncu-rep";
  size_t n = strlen(path);
  return n > sizeof end - 1 && strcmp(path + n - (sizeof end - 1), end) == 0;
}

static bool in_folder(const char *folder, size_t length, char *out, size_t cap) {
  return length && sol_format(out, cap, "%.*s/ncu", (int)length, folder) < cap && access(out, X_OK) == 0;
}

// $NCU, in PATH, or where the toolkit has it.
static bool find_ncu(char *out, size_t cap) {
  const char *given = getenv("NCU"), *path = getenv("PATH"), *home = getenv("CUDA_HOME");
  if (given && *given) return sol_format(out, cap, "%s", given) < cap && access(out, X_OK) == 0;
  for (const char *p = path ? path : ""; *p;) {
    size_t n = strcspn(p, ":");
    if (in_folder(p, n, out, cap)) return true;
    p += n + (p[n] == ':');
  }
  if (home && *home && sol_format(out, cap, "%s/bin/ncu", home) < cap && access(out, X_OK) == 0) return true;
  static const char toolkit[] = "/usr/local/cuda/bin";
  return in_folder(toolkit, sizeof toolkit - 1, out, cap);
}

static void become(const char *ncu, const char *report, const char *csv) {
  int file = open(csv, O_WRONLY | O_CREAT | O_TRUNC, 0600), null = open("/dev/null", O_RDONLY);
  if (file < 0 || null < 0) _exit(126);
  dup2(null, 0);
  dup2(file, 1);
  setenv("LC_ALL", "C", 1); // a decimal point
  const char *const argv[] = {ncu, "--import", report, "--csv", "--page", "raw", NULL};
  execv(ncu, (char *const *)(uintptr_t)argv);
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

int cli_profile_read_report(ProfileRun *r, const char *report, const char **csv) {
  char ncu[CHILD_PATH];
  SolError err = {0};
  if (access(report, R_OK) != 0) {
    sol_fail(&err, SOL_ERR_IO, "cannot read '%.200s': %s", report, strerror(errno));
    return cli_error(r->cli, &err, "--import", 0, 0);
  }
  if (!find_ncu(ncu, sizeof ncu)) {
    sol_fail(&err, SOL_ERR_NOT_FOUND, "Nsight Compute's ncu, which alone can read '%.200s', was not found",
             report);
    sol_hint(&err,
             "where it is installed, 'ncu --import FILE --csv --page raw > report.csv' prints what --import "
             "reads; NCU=FILE names it");
    return cli_error(r->cli, &err, "--import", 0, 0);
  }
  int code = scratch_make(r->cli, "profile");
  if (code) return code;
  *csv = scratch_path(r->cli, "report.csv");
  pid_t pid = scratch_fork(true);
  if (pid == 0) become(ncu, report, *csv);
  int ended = wait_for(pid);
  if (ended == 0) return EXIT_OK;
  sol_fail(&err, SOL_ERR_IO, "'%.200s' could not read '%.200s' (exit code %d); its message is above", ncu,
           report, ended);
  sol_hint(&err, "a report is read by the release of Nsight Compute that wrote it, or a newer one");
  return cli_error(r->cli, &err, "--import", 0, 0);
}
