#define _GNU_SOURCE // nftw

#include "cli/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"

enum { PATH_ROOM = 4096 };

// One to a process, since a signal's handler has to reach it.
static struct Scratch {
  char folder[PATH_ROOM];
  volatile sig_atomic_t keeper, pipe; // both 0: there is none
} scratch;

// ---- the keeper ----

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where) {
  (void)st, (void)kind, (void)where;
  remove(path);
  return 0;
}

// Those that were just killed may add a file yet.
static void remove_folder(const char *folder) {
  struct timespec pause = {0, 10000000};
  for (int i = 0; i < 200 && access(folder, F_OK) == 0; i++) {
    if (i) nanosleep(&pause, NULL);
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  }
}

// Reads what kill() would take to end the program that runs, 0 for none, until the other end is closed.
static void keep(int pipe) {
  pid_t next, target = 0;
  setsid();
  prctl(PR_SET_NAME, "sol-keeper");
  for (int i = 1; i < 32; i++)
    if (i != SIGSEGV && i != SIGBUS) signal(i, SIG_IGN);
  int null = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3 && null >= 0; i++)
    dup2(null, i); // so that no reader waits for the other end of a pipe
  for (ssize_t n; (n = read(pipe, &next, sizeof next)) != 0;)
    if (n == sizeof next)
      target = next;
    else if (n > 0 || errno != EINTR)
      break;
  if (target) kill(target, SIGKILL);
  remove_folder(scratch.folder);
  _exit(0);
}

static bool start_keeper(void) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return false;
  if (pair[0] < 3 || pair[1] < 3) return close(pair[0]), close(pair[1]), false; // main() has opened those
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    close(pair[1]);
    keep(pair[0]);
  }
  close(pair[0]);
  if (pid < 0) return close(pair[1]), false;
  scratch.keeper = pid;
  scratch.pipe = pair[1];
  return true;
}

static void notify_keeper(pid_t target) {
  if (scratch.pipe) send(scratch.pipe, &target, sizeof target, MSG_NOSIGNAL);
}

// Only calls that a signal's handler may make.
void scratch_drop(void) {
  int saved = errno, keeper = scratch.keeper;
  scratch.keeper = 0;
  if (scratch.pipe) close(scratch.pipe);
  scratch.pipe = 0;
  while (keeper && waitpid(keeper, NULL, 0) < 0 && errno == EINTR) {
  }
  scratch.folder[0] = 0;
  errno = saved;
}

// ---- signals ----

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static void on_end(int number) {
  scratch_drop();
  signal(number, SIG_DFL);
  raise(number); // the parent sees the signal as the cause
}

static void catch_signals(void) {
  struct sigaction act = {.sa_handler = on_end}, old;
  for (size_t i = 0; i < SOL_COUNT(ends); i++) {
    if (sigaction(ends[i], NULL, &old) || old.sa_handler == SIG_IGN) continue; // nohup, a shell's background
    sigaction(ends[i], &act, NULL);
  }
}

// ---- the folder ----

bool scratch_is_simple(const char *path) {
  for (; *path; path++) {
    bool letter = (*path | 0x20) >= 'a' && (*path | 0x20) <= 'z', digit = *path >= '0' && *path <= '9';
    if (!letter && !digit && !strchr("_/.+-@", *path)) return false;
  }
  return true;
}

static int refuse(Cli *cli, const char *folder, const char *hint) {
  SolError err = {0};
  sol_fail(&err, SOL_ERR_IO, "cannot make a folder in '%.120s': %s", folder, strerror(errno));
  sol_hint(&err, "%s", hint);
  return cli_error(cli, &err, 0, 0, 0);
}

int scratch_make(Cli *cli, const char *what) {
  if (scratch.folder[0]) return EXIT_OK;
  const char *given = getenv("TMPDIR"), *base = given && *given ? given : "/tmp";
  char real[PATH_ROOM];
  if (!realpath(base, real)) return refuse(cli, base, "TMPDIR names a folder for temporary files");
  if (!scratch_is_simple(real)) sol_format(real, sizeof real, "/tmp");
  char folder[PATH_ROOM];
  size_t n = sol_format(folder, sizeof folder, "%s/sol-%s-XXXXXX", strcmp(real, "/") ? real : "", what);
  errno = ENAMETOOLONG;
  if (n >= sizeof folder || !mkdtemp(folder))
    return refuse(cli, real, "TMPDIR names a folder that can be written");
  memcpy(scratch.folder, folder, n + 1);
  if (start_keeper()) return catch_signals(), EXIT_OK;
  rmdir(folder);
  scratch.folder[0] = 0;
  return cli_fail(cli, "cannot start a process: %s", strerror(errno));
}

const char *scratch_folder(void) {
  return scratch.folder[0] ? scratch.folder : NULL;
}

const char *scratch_path(Cli *cli, const char *format, ...) {
  char name[128];
  va_list args;
  va_start(args, format);
  sol_vformat(name, sizeof name, format, args);
  va_end(args);
  size_t n = strlen(scratch.folder) + strlen(name) + 2;
  char *path = sol_arena_alloc(&cli->arena, n);
  if (path) sol_format(path, n, "%s/%s", scratch.folder, name);
  return path ? path : "";
}

// ---- programs ----

static pid_t fork_child(bool apart) {
  pid_t parent = getpid();
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    if (apart) setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126); // the parent had ended before prctl
    return 0;
  }
  if (pid > 0 && apart) setpgid(pid, pid); // both do, since either may run first
  return pid;
}

pid_t scratch_fork(bool apart) {
  pid_t pid = fork_child(apart);
  if (pid > 0) notify_keeper(apart ? -pid : pid);
  return pid;
}

pid_t scratch_fork_beside(void) {
  return fork_child(true);
}

void scratch_ended(void) {
  notify_keeper(0);
}
