// A whole program under audit: started with Sol's runtime in place of NVIDIA's, which adds a line to a file
// for every launch that ends. The lines are read while it runs, so that however the program ends, what
// it did so far is billed.
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "audit/audit_names.h"
#include "audit/audit_wire.h"
#include "base/error.h"
#include "base/format.h"
#include "base/threads.h"
#include "cli/child.h"
#include "cli/cli_audit.h"
#include "cli/scratch.h"

enum { MAX_LINE = 256 << 20 };

typedef struct Watch {
  AuditRun *run;
  AuditProgram *program;
  AuditReader reader;
  AuditModules *modules;
  bool held;      // by a module whose machine code is still being made: its launches are not taken yet
  uint32_t unit;  // that module
  SolBuffer text; // read, not yet taken: the last line may be cut
  int file;
  const char *report; // its name
  uint64_t launches, bad_lines;
  SolEmuProgress at; // the current launch; .kernel NULL: no progress was reported yet
  char at_kernel[128];
  double at_since;
  SolStatus failed;
} Watch;

// ---- the child ----

static void set_number(const char *name, const char *format, double value) {
  char text[40];
  sol_format(text, sizeof text, format, value);
  setenv(name, text, 1);
}

// Puts Sol's libraries in front: found first by the loader, loaded before the program's own search path is used, and
// with the auditor (src/redirect) for runtimes that are linked into objects.
static void put_in_front(const char *shim) {
  static const char *const others[] = {"LD_PRELOAD", "libcudart.so.12", "LD_AUDIT", "libsolredirect.so"};
  char folder[CHILD_PATH], file[CHILD_PATH];
  sol_format(folder, sizeof folder, "%s", shim);
  *strrchr(folder, '/') = 0;
  for (size_t i = 0; i < SOL_COUNT(others); i += 2) {
    size_t n = sol_format(file, sizeof file, "%s/%s", folder, others[i + 1]);
    if (n < sizeof file && access(file, R_OK) == 0) cli_child_set_first(others[i], file);
  }
  cli_child_set_first("LD_PRELOAD", shim);
  cli_child_set_first("LD_LIBRARY_PATH", folder);
  setenv("CUPY_COMPILE_WITH_PTX", "1", 0); // CuPy makes machine code otherwise,
  setenv("CUPY_ACCELERATORS", "", 0);      // and uses kernels of its own that hold PTX of one architecture
}

// While this file exists, launches of the program end at once.
static const char *stop_file(const char *report, char *out, size_t cap) {
  sol_format(out, cap, "%s-stop", report);
  return out;
}

static void end_launch(void *ctx) {
  const Watch *w = ctx;
  char stop[CHILD_PATH];
  int file = open(stop_file(w->report, stop, sizeof stop), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
}

static void become(const AuditRun *r, const SolDevice *device, const char *path, const char *shim,
                   const char *report) {
  char stop[CHILD_PATH];
  put_in_front(shim);
  setenv("SOL_SHIM_AUDIT", report, 1);
  setenv("SOL_DEVICE", device->id, 1);
  if (cli_wants_progress(r->cli)) setenv("SOL_SHIM_PROGRESS", "1", 1);
  if (r->args->sample) set_number("SOL_SHIM_SAMPLE", "%.0f", (double)r->args->sample);
  if (r->args->cold) setenv("SOL_SHIM_COLD", "1", 1);
  if (r->args->all) setenv("SOL_SHIM_ALL", "1", 1);
  if (r->args->from) setenv("SOL_SHIM_FROM", r->args->from, 1);
  if (r->args->launch) set_number("SOL_SHIM_LAUNCH", "%.0f", (double)r->args->launch);
  if (r->checks[0]) setenv("SOL_SHIM_CHECK", r->checks, 1);
  setenv("SOL_SHIM_STOP", stop_file(report, stop, sizeof stop), 1);
  if (isatty(0)) signal(SIGINT, SIG_IGN); // in sol's process group: sol ends it, once its launch is reported
  if (r->args->kernel.seconds > 0) set_number("SOL_SHIM_SECONDS", "%g", r->args->kernel.seconds);
  if (r->args->kernel.async_order) set_number("SOL_ASYNC_ORDER", "%.0f", (double)r->args->kernel.async_order);
  if (r->args->kernel.workers) set_number("SOL_WORKERS", "%.0f", (double)r->args->kernel.workers);
  char **argv = calloc((size_t)r->cli->rest_count + 2, sizeof *argv);
  if (!argv) _exit(126);
  argv[0] = (char *)(uintptr_t)path;
  for (int i = 0; i < r->cli->rest_count; i++) argv[i + 1] = r->cli->rest[i];
  dup2(2, 1); // what it prints, apart from the answer
  if (strchr(path, '/')) execv(path, argv);
  SolBuffer text = {0};
  sol_buffer_format(&text, "./%s", path);
  if (text.text && !strchr(path, '/')) execv(text.text, argv);
  int why = errno;
  text.length = 0;
  sol_buffer_format(&text, "sol audit: cannot run %s: %s\n", path, strerror(why));
  if (text.text) cli_put_error(text.text);
  _exit(126);
}

// ---- its lines ----

static void take_progress(Watch *w, const SolEmuProgress *p) {
  if (!w->at.kernel || p->instructions < w->at.instructions) w->at_since = sol_thread_clock();
  w->at = *p;
  w->at.kernel = w->at_kernel;
  audit_title(p->kernel, w->at_kernel, sizeof w->at_kernel);
}

static void take_launch(Watch *w, AuditLaunch *launch) {
  SolError err = {0};
  w->launches++;
  w->at.kernel = NULL;
  audit_modules_apply(w->modules, launch, &w->reader.scratch);
  if (audit_add(w->program, launch, &err)) w->failed = err.status;
}

static void take_again(Watch *w, const AuditAgain *again) {
  SolError err = {0};
  w->launches++;
  w->at.kernel = NULL;
  if (!audit_add_again(w->program, again, &err)) return;
  if (err.status == SOL_ERR_NOT_FOUND)
    w->bad_lines++;
  else
    w->failed = err.status;
}

static void take_missing(AuditRun *r, const char *what) {
  for (int i = 0; i < r->missing_count; i++)
    if (strcmp(r->missing[i], what) == 0) return;
  if (r->missing_count < MAX_MISSING)
    sol_format(r->missing[r->missing_count++], sizeof r->missing[0], "%s", what);
}

// False: not yet.
static bool take_line(Watch *w, const char *line, size_t length) {
  AuditMessage message;
  SolError err = {0};
  SolStatus status = audit_read_line(&w->reader, line, length, &message, &err);
  if (status == SOL_ERR_NO_SPACE) w->failed = status;
  if (status) {
    w->bad_lines++;
    return true;
  }
  switch (message.kind) {
  case AUDIT_LINE_AGAIN: take_again(w, &message.again); break;
  case AUDIT_LINE_OUTSIDE: audit_outside(w->program, message.what, message.address, message.bytes); break;
  case AUDIT_LINE_MISSING: take_missing(w->run, message.missing); break;
  case AUDIT_LINE_LIBRARY:
    if (audit_library(w->program, &message.library, &err)) w->failed = err.status;
    break;
  case AUDIT_LINE_PROGRESS: take_progress(w, &message.progress); break;
  case AUDIT_LINE_MODULE:
    if (!w->modules) w->modules = audit_modules_create(w->run, w->program->device);
    audit_modules_add(w->modules, message.unit, message.ptx);
    break;
  default:
    w->unit = message.launch.unit;
    w->held = !message.launch.machine && audit_modules_running(w->modules, w->unit);
    if (!w->held) take_launch(w, &message.launch);
  }
  return !w->held;
}

static void take_lines(Watch *w) {
  size_t from = 0;
  for (const char *end;
       from < w->text.length && (end = memchr(w->text.text + from, '\n', w->text.length - from));) {
    size_t length = (size_t)(end - (w->text.text + from));
    if (length && !take_line(w, w->text.text + from, length)) break;
    from += length + 1;
  }
  if (!from) return;
  memmove(w->text.text, w->text.text + from, w->text.length - from);
  w->text.length -= from;
}

// What has been added since; true where there was something.
static bool read_more(void *ctx) {
  Watch *w = ctx;
  static const size_t chunk = 1 << 16;
  char *room = malloc(chunk);
  ssize_t n = 0;
  bool any = false;
  if (w->held && !audit_modules_running(w->modules, w->unit)) w->held = false, take_lines(w);
  while (room && !w->held && (n = read(w->file, room, chunk)) > 0) {
    sol_buffer_put(&w->text, room, (size_t)n);
    any = true;
    take_lines(w);
    if (w->text.length > MAX_LINE) w->text.length = 0, w->bad_lines++; // no line of our report is as long
  }
  free(room);
  if (w->text.failed) w->failed = SOL_ERR_NO_SPACE;
  return any;
}

// Once it has ended: what waits for its machine code.
static void read_later(Watch *w) {
  struct timespec pause = {0, 2000000};
  if (!read_more(w)) nanosleep(&pause, NULL);
}

// ---- its end ----

static void progress(void *ctx, double seconds, char *out, size_t cap) {
  const Watch *w = ctx;
  if (w->at.kernel) {
    cli_launch_text(&w->at, sol_thread_clock() - w->at_since, out, cap);
    return;
  }
  sol_format(out, cap, "%llu launches of %u kernels so far, %.0f s", (unsigned long long)w->launches,
             w->program->kernel_count, seconds);
}

static void judge_end(Watch *w, const Child *child) {
  AuditRun *r = w->run;
  bool signalled = child->code < 0;
  r->program_exit = child->code;
  r->interrupted = child->stopped || child->interrupted;
  sol_format(r->ended, sizeof r->ended, "%s", child->ended);
  bool excused = r->args->sample > 0 && !signalled; // its results are partial
  if (excused && r->program_exit)
    cli_audit_note(r, "%s: with --sample only some blocks ran, and what they computed is not complete",
                   r->ended);
  if (child->stopped || child->interrupted || signalled || (r->program_exit && !excused))
    r->went_wrong = true;
  if (r->args->from)
    cli_audit_note(r, "Counted from launch %lld of %s on (--from): what ran before is in no bill.",
                   (long long)(r->args->launch ? r->args->launch : 1), r->args->from);
  if (w->bad_lines)
    cli_audit_note(r, "%llu lines of the program's report could not be read",
                   (unsigned long long)w->bad_lines);
}

static int no_launch(AuditRun *r) {
  SolError err = {0};
  sol_fail(&err, SOL_ERR_ARGUMENT, "no kernel was %s: %s%s%s",
           r->args->from ? "counted, as the launch of --from was not reached" : "launched", r->ended,
           r->missing_count ? "; it called what does not run here: " : "",
           r->missing_count ? r->missing[0] : "");
  sol_hint(
      &err,
      "what it printed is above, and any trouble with its report; kernels that a library launches as machine code "
      "alone are not seen");
  cli_error(r->cli, &err, 0, 0, 0);
  if (r->program_exit) return EXIT_PROGRAM;
  return r->missing_count ? EXIT_INCOMPLETE : r->args->from ? EXIT_USAGE : EXIT_PROGRAM;
}

// The loader cuts its lists of paths at colons, semicolons and spaces, and reads '$' as its own: a folder
// whose name is not simple is named by a link.
static const char *simple_shim(AuditRun *r, const char *shim) {
  const char *real = cli_absolute(r->cli, shim);
  if (!real || scratch_is_simple(real)) return real;
  const char *name = strrchr(real, '/') + 1, *link = scratch_path(r->cli, "shim");
  SolBuffer folder = {0};
  sol_buffer_put(&folder, real, (size_t)(name - real));
  bool linked = !folder.failed && (symlink(folder.text, link) == 0 || errno == EEXIST);
  sol_buffer_free(&folder);
  return linked && scratch_is_simple(name) ? scratch_path(r->cli, "shim/%s", name) : NULL;
}

int cli_audit_program(AuditRun *r, const SolDevice *device, const char *path, AuditProgram *out) {
  char shim[CHILD_PATH];
  int code = cli_audit_check_program(r, device, path);
  if (!code) code = scratch_make(r->cli, "audit");
  if (code) return code;
  SolError err = {0};
  if (!cli_audit_find_shim(shim, sizeof shim)) {
    sol_fail(&err, SOL_ERR_NOT_FOUND, "Sol's libcudart.so.13 was not found");
    sol_hint(&err, "'make' builds it where CUDA 13's headers are (make setup); SOL_SHIM=FILE names it");
    return cli_error(r->cli, &err, 0, 0, 0);
  }
  const char *runtime = simple_shim(r, shim);
  if (!runtime) {
    sol_fail(&err, SOL_ERR_IO, "the loader cannot take '%.100s' in a list of paths, and it cannot be linked",
             shim);
    sol_hint(&err, "install Sol in a folder without ':', ';', '$' and spaces in its name");
    return cli_error(r->cli, &err, 0, 0, 0);
  }
  const char *report = scratch_path(r->cli, "report-%s", device->id);
  Watch w = {.run = r, .program = out, .report = report};
  char stop[CHILD_PATH];
  unlink(report); // another program's, with which this one is compared
  unlink(stop_file(report, stop, sizeof stop));
  w.file = open(report, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
  // The launch that runs when the time is up is ended first, and reported.
  Child child = {.limit = r->args->kernel.seconds,
                 .grace = 3,
                 .read = read_more,
                 .interrupt = end_launch,
                 .progress = cli_wants_progress(r->cli) ? progress : NULL,
                 .ctx = &w};
  child.pid = -1;
  if (w.file >= 0 && child_fork(&child) == 0) become(r, device, path, runtime, report);
  if (child.pid < 0) {
    sol_fail(&err, SOL_ERR_IO, "cannot start '%.100s': %s", path, strerror(errno));
    return cli_error(r->cli, &err, 0, 0, 0);
  }
  cli_child_wait(&child);
  while (w.held) read_later(&w);
  judge_end(&w, &child);
  close(w.file);
  audit_reader_free(&w.reader);
  audit_modules_free(w.modules);
  sol_buffer_free(&w.text);
  if (w.failed) return cli_fail(r->cli, "out of memory");
  return w.launches || out->call_count ? EXIT_OK : no_launch(r);
}
