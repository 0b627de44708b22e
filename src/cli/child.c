#define _POSIX_C_SOURCE 200809L

#include "cli/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/format.h"
#include "base/threads.h"
#include "cli/scratch.h"

// Ctrl-C goes to the program as well, a plain kill does not; what it did so far is still shown.
static volatile sig_atomic_t interrupted; // by this signal
static void on_interrupt(int number) {
  interrupted = number;
}

// With all that it started, where it has a separate process group.
static void end_by(const Child *c, int number) {
  kill(c->apart ? -c->pid : c->pid, number);
}

static void check_time(Child *c, double ran) {
  double limit = c->limit + c->grace;
  if (c->limit <= 0 || ran < limit) return;
  end_by(c, ran < limit + 3 ? SIGTERM : SIGKILL);
  c->stopped = true;
}

// An interrupt of sol ends the program too; it has a second to do so by itself, and before that a second to report.
static void check_interrupt(Child *c, double now, double *since) {
  if (!interrupted) return;
  c->interrupted = true;
  if (*since <= 0) {
    *since = now;
    if (c->interrupt) c->interrupt(c->ctx);
  }
  double late = now - *since - (c->interrupt ? 1 : 0);
  if (late >= 0 && c->apart && interrupted == SIGINT && !c->told) { // a terminal's does not reach it
    c->told = true;
    end_by(c, SIGINT);
  }
  if (late > 1) end_by(c, late < 4 ? SIGTERM : SIGKILL);
}

static void show(const Child *c, double ran, double *shown) {
  char line[160];
  if (!c->progress || !isatty(2) || ran < 1 || ran - *shown < 0.25) return;
  *shown = ran;
  c->progress(c->ctx, ran, line, sizeof line);
  fprintf(stderr, "\r\033[K%s", line);
  fflush(stderr);
}

static void wait_loop(Child *c) {
  double started = sol_thread_clock(), since = 0, shown = 0;
  for (double nap = 1e-3;;) {
    pid_t done = waitpid(c->pid, &c->status, WNOHANG);
    bool any = c->read(c->ctx);
    if (done == c->pid || (done < 0 && errno != EINTR)) break;
    double now = sol_thread_clock();
    check_time(c, now - started);
    check_interrupt(c, now, &since);
    show(c, now - started, &shown);
    nap = any ? 1e-3 : nap < 0.05 ? nap * 1.5 : nap;
    struct timespec pause = {0, (long)(nap * 1e9)};
    nanosleep(&pause, NULL);
  }
  c->read(c->ctx);
  if (shown > 0) fputs("\r\033[K", stderr);
}

pid_t child_fork(Child *c) {
  // A program that reads from a terminal has to be in its foreground group, which is sol's.
  c->apart = !isatty(0);
  c->pid = scratch_fork(c->apart);
  return c->pid;
}

void cli_child_wait(Child *c) {
  static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction act = {.sa_handler = on_interrupt}, old[SOL_COUNT(ends)];
  interrupted = 0;
  for (size_t i = 0; i < SOL_COUNT(ends); i++) {
    sigaction(ends[i], &act, &old[i]);
    if (ends[i] == SIGHUP && old[i].sa_handler == SIG_IGN) sigaction(SIGHUP, &old[i], NULL); // nohup
  }
  wait_loop(c);
  if ((interrupted || c->stopped) && c->apart) end_by(c, SIGKILL); // what it had started
  scratch_ended();
  for (size_t i = 0; i < SOL_COUNT(ends); i++) sigaction(ends[i], &old[i], NULL);
  c->interrupted = interrupted != 0;
  c->code = WIFEXITED(c->status) ? WEXITSTATUS(c->status) : -1;
  if (c->stopped)
    sol_format(c->ended, sizeof c->ended, "the program was stopped after %g s", c->limit);
  else if (c->interrupted)
    sol_format(c->ended, sizeof c->ended, "the program was interrupted");
  else if (WIFSIGNALED(c->status))
    sol_format(c->ended, sizeof c->ended, "the program was ended by signal %d (%s)", WTERMSIG(c->status),
               strsignal(WTERMSIG(c->status)));
  else
    sol_format(c->ended, sizeof c->ended, "the program ended with exit code %d", c->code);
}

bool cli_child_own_folder(char *out, size_t cap) {
  ssize_t n = readlink("/proc/self/exe", out, cap - 1);
  if (n <= 0 || (size_t)n == cap - 1) return false;
  out[n] = 0;
  char *slash = strrchr(out, '/');
  if (slash) *slash = 0;
  return slash != NULL;
}

bool cli_child_library(const char *variable, const char *build_folder, const char *file, char *out,
                       size_t cap) {
  const char *const places[] = {build_folder, "../lib/sol", "../lib64/sol"};
  const char *given = getenv(variable);
  if (given && *given) return sol_format(out, cap, "%s", given) < cap && access(out, R_OK) == 0;
  char here[CHILD_PATH];
  if (!cli_child_own_folder(here, sizeof here)) return false;
  for (size_t i = 0; i < SOL_COUNT(places); i++)
    if (sol_format(out, cap, "%s/%s/%s", here, places[i], file) < cap && access(out, R_OK) == 0) return true;
  return false;
}

void cli_child_set_first(const char *variable, const char *first) {
  const char *old = getenv(variable);
  SolBuffer value = {0};
  sol_buffer_format(&value, "%s%s%s", first, old && *old ? ":" : "", old ? old : "");
  if (value.text) setenv(variable, value.text, 1);
  sol_buffer_free(&value);
}
