// A program under the profiler: started with libsolprofile.so for the driver to load into it, which adds lines to
// a file for each process of it. They are read while it runs, so that however the program ends, what
// it did so far is billed.
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/child.h"
#include "cli/cli_profile.h"
#include "cli/scratch.h"
#include "profile/profile_wire.h"

enum {
  MAX_PROCESSES = 256,
  MAX_LINE = 256 << 20,
  COUNTED_EACH = 8 // launches of one kernel and shape: counting one takes a quarter of a second
};
#define REPORT "report"

typedef struct Process {
  char name[64]; // of its file
  int file;
  ProfileReader reader;
  SolBuffer text; // read, not yet taken: the last line may be cut
} Process;

typedef struct Watch {
  ProfileRun *run;
  Profile *profile;
  Process *processes[MAX_PROCESSES];
  int count;
  double launches, seen, bad_lines, unread; // seen: by processes that ended normally. unread: processes
  bool started, troubled[PROFILE_TROUBLE_COUNT];
  SolError trouble; // the first that left nothing to show
  SolStatus failed;
} Watch;

// ---- before ----

// The driver is checked here: what the program itself would print without one is less clear.
static int check_driver(const ProfileRun *r) {
  SolError err = {0};
  int (*init)(unsigned) = NULL, result = -1;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void *address = driver ? dlsym(driver, "cuInit") : NULL;
  memcpy(&init, &address, sizeof address);
  if (init) result = init(0);
  if (!result) return EXIT_OK; // it stays loaded: the driver does not support being unloaded
  if (!driver)
    sol_fail(&err, SOL_ERR_UNSUPPORTED,
             "no CUDA driver on this machine (libcuda.so.1): nothing can be measured");
  else if (!init)
    sol_fail(&err, SOL_ERR_UNSUPPORTED, "libcuda.so.1 is no CUDA driver: it lacks cuInit");
  else if (result == 100)
    sol_fail(&err, SOL_ERR_UNSUPPORTED, "no GPU on this machine, or none that this process may use");
  else
    sol_fail(&err, SOL_ERR_UNSUPPORTED, "the CUDA driver does not start (error %d)", result);
  sol_hint(&err,
           "'sol audit' bills the program on the emulator, without a GPU; --import reads what ncu printed "
           "elsewhere");
  return cli_error(r->cli, &err, 0, 0, 0);
}

static bool is_script(const char *path) {
  size_t n = strlen(path);
  return n > 3 && strcmp(path + n - 3, ".py") == 0;
}

// A name without a slash is a program of this folder first, then one of PATH.
static int find_program(const ProfileRun *r, const char *path, char *out, size_t cap) {
  SolError err = {0};
  if (strchr(path, '/'))
    sol_format(out, cap, "%s", path);
  else
    sol_format(out, cap, "./%s", path);
  if (access(out, X_OK) == 0) return EXIT_OK;
  int why = errno;
  if (why == ENOENT && !strchr(path, '/')) {
    sol_format(out, cap, "%s", path); // execvp searches PATH
    return EXIT_OK;
  }
  sol_fail(&err, why == ENOENT ? SOL_ERR_NOT_FOUND : SOL_ERR_IO, "cannot run '%.100s': %s", path,
           strerror(why));
  if (is_script(path)) sol_hint(&err, "sol profile python3 -- %.100s", path);
  return cli_error(r->cli, &err, 0, 0, 0);
}

// ---- the child ----

static void set_number(const char *name, double value) {
  char text[40];
  sol_format(text, sizeof text, "%.0f", value);
  setenv(name, text, 1);
}

static bool is_of_dram(ProfileMetric m) { // all in one pass: nothing is restored before a launch
  return m == PROFILE_time || m == PROFILE_dram_read || m == PROFILE_dram_write || m == PROFILE_dram_rate ||
         m == PROFILE_dram_pct;
}

static void set_environment(const ProfileRun *r, const char *library) {
  const char *report = scratch_path(r->cli, REPORT);
  SolBuffer metrics = {0};
  for (int i = 0; i < PROFILE_METRICS && !r->args->times; i++) {
    const ProfileMetricInfo *metric = profile_metric((ProfileMetric)i);
    if (metric->set != PROFILE_FILE && (!r->args->dram || is_of_dram((ProfileMetric)i)))
      sol_buffer_format(&metrics, "%s%s", i ? "," : "", metric->name);
  }
  setenv("CUDA_INJECTION64_PATH", library, 1);
  setenv("SOL_PROFILE_OUT", report, 1);
  setenv("SOL_PROFILE_METRICS", metrics.text ? metrics.text : "", 1);
  setenv("SOL_PROFILE_KERNEL", r->filter.kernels ? r->filter.kernels : "", 1);
  set_number("SOL_PROFILE_SKIP", r->filter.skip);
  set_number("SOL_PROFILE_COUNT", r->filter.count);
  set_number("SOL_PROFILE_EACH", r->args->each ? (double)r->args->each : COUNTED_EACH);
  sol_buffer_free(&metrics);
}

static void become(const ProfileRun *r, const char *path, const char *library) {
  set_environment(r, library);
  char **argv = calloc((size_t)r->cli->rest_count + 2, sizeof *argv);
  if (!argv) _exit(126);
  argv[0] = (char *)(uintptr_t)path;
  for (int i = 0; i < r->cli->rest_count; i++) argv[i + 1] = r->cli->rest[i];
  dup2(2, 1); // what it prints, apart from the answer
  execvp(path, argv);
  int why = errno;
  SolBuffer text = {0};
  sol_buffer_format(&text, "sol profile: cannot run %s: %s\n", path, strerror(why));
  if (text.text) cli_put_error(text.text);
  _exit(why == ENOENT ? 127 : 126);
}

// ---- its lines ----

static void take_gpu(Watch *w, const ProfileGpu *gpu) {
  ProfileGpu *known = &w->profile->gpu;
  if (!known->name[0])
    *known = *gpu;
  else if (strcmp(known->name, gpu->name) != 0)
    profile_note(w->profile, "Kernels ran on %s and on %s: all are compared with the roofs of the first.",
                 known->name, gpu->name);
  else if (strcmp(known->uuid, gpu->uuid) != 0)
    profile_note(w->profile, "Kernels ran on several GPUs (%s): they are added up.", gpu->name);
}

static void take_trouble(Watch *w, const ProfileMessage *message) {
  Profile *p = w->profile;
  const char *text = message->text, *hint = message->hint, *colon = hint[0] ? "; " : "";
  if (!w->trouble.message[0] && message->trouble != PROFILE_GRAPH && message->trouble != PROFILE_LOST) {
    sol_fail(&w->trouble, SOL_ERR_UNSUPPORTED, "%s", text);
    sol_hint(&w->trouble, "%s", hint);
  }
  w->troubled[message->trouble] = true;
  switch (message->trouble) {
  case PROFILE_FORBIDDEN:
    profile_note(p, "The counters are forbidden here, times are not: %s%s%s.", text, colon, hint);
    break;
  case PROFILE_GRAPH:
    profile_note(p, "%s (%.0f graphs were launched); %s.", text, message->times, hint);
    break;
  case PROFILE_LOST:
    profile_note(p, "%.0f launches are not in the bill: CUPTI dropped them.", message->times);
    break;
  case PROFILE_NO_CUPTI:
  case PROFILE_OLD:
  case PROFILE_REFUSED:
  default: profile_note(p, "Not everything was counted: %s%s%s.", text, colon, hint);
  }
}

static void take_line(Watch *w, Process *p, const char *line, size_t length) {
  ProfileMessage message;
  SolError err = {0};
  SolStatus status = profile_read_line(&p->reader, line, length, &message, &err);
  if (status == SOL_ERR_NO_SPACE) w->failed = status;
  if (status) {
    w->bad_lines++;
    return;
  }
  switch (message.kind) {
  case PROFILE_LINE_START: w->started = true; break;
  case PROFILE_LINE_GPU: take_gpu(w, &message.gpu); break;
  case PROFILE_LINE_LAUNCH:
    w->launches++;
    if (profile_add(w->profile, &message.launch, &err)) w->failed = err.status;
    break;
  case PROFILE_LINE_TROUBLE: take_trouble(w, &message); break;
  case PROFILE_LINE_END: w->seen += message.seen; break;
  case PROFILE_LINE_KERNEL: break;
  }
}

static void take_lines(Watch *w, Process *p) {
  size_t from = 0;
  for (const char *end;
       from < p->text.length && (end = memchr(p->text.text + from, '\n', p->text.length - from));) {
    size_t length = (size_t)(end - (p->text.text + from));
    if (length) take_line(w, p, p->text.text + from, length);
    from += length + 1;
  }
  if (!from) return;
  memmove(p->text.text, p->text.text + from, p->text.length - from);
  p->text.length -= from;
}

static bool read_process(Watch *w, Process *p) {
  static const size_t chunk = 1 << 16;
  char *room = malloc(chunk);
  bool any = false;
  for (ssize_t n; room && (n = read(p->file, room, chunk)) > 0; any = true) {
    sol_buffer_put(&p->text, room, (size_t)n);
    take_lines(w, p);
    if (p->text.length > MAX_LINE) p->text.length = 0, w->bad_lines++; // no line of our report is as long
  }
  free(room);
  if (!room || p->text.failed) w->failed = SOL_ERR_NO_SPACE;
  return any;
}

static void open_process(Watch *w, const char *name) {
  for (int i = 0; i < w->count; i++)
    if (strcmp(w->processes[i]->name, name) == 0) return;
  if (w->count == MAX_PROCESSES || strlen(name) >= sizeof w->processes[0]->name) {
    w->unread++;
    return;
  }
  char path[CHILD_PATH];
  Process *p = calloc(1, sizeof *p);
  if (!p) return;
  sol_format(path, sizeof path, "%s/%s", scratch_folder(), name);
  struct stat st;
  p->file = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (p->file < 0 || fstat(p->file, &st) || !S_ISREG(st.st_mode)) {
    if (p->file >= 0) close(p->file);
    free(p);
    return;
  }
  sol_format(p->name, sizeof p->name, "%s", name);
  w->processes[w->count++] = p;
}

// The files are few, and a folder quickly read; there is one more with every process that starts CUDA.
static bool read_all(void *ctx) {
  Watch *w = ctx;
  bool any = false;
  DIR *folder = opendir(scratch_folder());
  w->unread = 0;
  for (struct dirent *e; folder && (e = readdir(folder));)
    if (strncmp(e->d_name, REPORT ".", sizeof REPORT) == 0) open_process(w, e->d_name);
  if (folder) closedir(folder);
  for (int i = 0; i < w->count; i++) any |= read_process(w, w->processes[i]);
  return any;
}

static void progress(void *ctx, double seconds, char *out, size_t cap) {
  const Watch *w = ctx;
  sol_format(out, cap, "%.0f launches of %u kernels so far, %.0f s", w->launches, w->profile->kernel_count,
             seconds);
}

// ---- its end ----

static void close_all(Watch *w) {
  for (int i = 0; i < w->count; i++) {
    Process *p = w->processes[i];
    close(p->file);
    profile_reader_free(&p->reader);
    sol_buffer_free(&p->text);
    free(p);
  }
}

// Why there is nothing to show.
static int nothing(const Watch *w, const Child *child) {
  const ProfileRun *r = w->run;
  SolError err = {0};
  if (!w->started) {
    sol_fail(&err, SOL_ERR_ARGUMENT, "the program did not start CUDA: %s", child->ended);
    sol_hint(&err, "its messages are above; a set-user-id program, and one that sets CUDA_INJECTION64_PATH "
                   "itself, cannot be profiled");
  } else if (w->trouble.message[0]) {
    err = w->trouble;
  } else if (w->seen > 0) {
    sol_fail(&err, SOL_ERR_ARGUMENT, "none of the program's %.0f launches was selected", w->seen);
    sol_hint(&err, "--kernel, --launch-skip and --launch-count select; 'sol profile --times' lists them all");
  } else {
    bool chosen = r->filter.kernels || r->filter.skip > 0;
    sol_fail(&err, SOL_ERR_ARGUMENT, "no kernel%s was launched: %s", chosen ? " that was selected" : "",
             child->ended);
  }
  int code = cli_error(r->cli, &err, 0, 0, 0);
  return cli_child_failed(child) ? EXIT_PROGRAM : code;
}

static int judge(Watch *w, const Child *child) {
  ProfileRun *r = w->run;
  for (int i = 0; i < w->count; i++) // cut: the process was killed while it wrote
    if (w->processes[i]->text.length) w->bad_lines++;
  sol_format(r->ended, sizeof r->ended, "%s", child->ended);
  r->went_wrong = cli_child_failed(child);
  r->no_counters = !r->args->times && (w->troubled[PROFILE_FORBIDDEN] || w->troubled[PROFILE_OLD]);
  if (w->failed) return cli_fail(r->cli, "out of memory");
  if (w->launches < 1) return nothing(w, child);
  if (w->bad_lines > 0)
    profile_note(w->profile, "%.0f lines of the program's report could not be read.", w->bad_lines);
  if (w->unread > 0)
    profile_note(w->profile, "Only %d processes were read, %.0f more were not.", MAX_PROCESSES, w->unread);
  return EXIT_OK;
}

int cli_profile_program(ProfileRun *r, Profile *out) {
  char library[CHILD_PATH], path[CHILD_PATH];
  SolError err = {0};
  int code = find_program(r, r->args->common.positional[0], path, sizeof path);
  if (!code) code = check_driver(r);
  if (code) return code;
  if (!cli_child_library("SOL_PROFILE_LIB", "inject", "libsolprofile.so", library, sizeof library)) {
    sol_fail(&err, SOL_ERR_NOT_FOUND, "Sol's libsolprofile.so was not found");
    sol_hint(&err, "'make' builds it; SOL_PROFILE_LIB=FILE names it");
    return cli_error(r->cli, &err, 0, 0, 0);
  }
  code = scratch_make(r->cli, "profile");
  if (code) return code;
  Watch *w = calloc(1, sizeof *w);
  if (!w) return cli_fail(r->cli, "out of memory");
  w->run = r;
  w->profile = out;
  Child child = {.limit = r->args->seconds, .read = read_all, .progress = progress, .ctx = w};
  if (child_fork(&child) == 0) become(r, path, library);
  if (child.pid < 0) {
    free(w);
    return cli_fail(r->cli, "cannot start '%.100s': %s", path, strerror(errno));
  }
  cli_child_wait(&child);
  code = judge(w, &child);
  close_all(w);
  free(w);
  return code;
}
