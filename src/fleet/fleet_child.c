#define _GNU_SOURCE

#include "fleet/fleet_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"

enum { MOST_WORDS = 512, MOST_OUTPUT = 64 << 20, MOST_ERRORS = 2000 };

double fleet_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int scratch_file(void) {
  char path[4096];
  const char *folder = getenv("TMPDIR");
  sol_format(path, sizeof path, "%s/sol-fleet-XXXXXX", folder && *folder ? folder : "/tmp");
  int file = mkostemp(path, O_CLOEXEC);
  if (file >= 0) unlink(path);
  return file;
}

static int count_gpus(void) {
  DIR *folder = opendir("/proc/driver/nvidia/gpus");
  int count = 0;
  for (struct dirent *entry; folder && (entry = readdir(folder));) count += entry->d_name[0] != '.';
  if (folder) closedir(folder);
  return count;
}

// "CUDA_VISIBLE_DEVICES=2": of the GPUs that are visible, the one of this rank's place on its machine; "": as it is.
static void visible_gpu(char *out, size_t cap) {
  const char *place = getenv("OMPI_COMM_WORLD_LOCAL_RANK"), *list = getenv("CUDA_VISIBLE_DEVICES");
  if (!place) place = getenv("MPI_LOCALRANKID");
  if (!place) place = getenv("SLURM_LOCALID");
  int at = place ? atoi(place) : -1, count = count_gpus();
  out[0] = 0;
  if (at < 0) return;
  if (!list || !*list) {
    if (count > 0) sol_format(out, cap, "CUDA_VISIBLE_DEVICES=%d", at % count);
    return;
  }
  int names = 1;
  for (const char *p = list; *p; p++) names += *p == ',';
  for (at %= names; at > 0; at--) list = strchr(list, ',') + 1;
  sol_format(out, cap, "CUDA_VISIBLE_DEVICES=%.*s", (int)strcspn(list, ","), list);
}

// What tells a program that it is a rank: a job is none.
static bool is_of_launcher(const char *variable) {
  static const char *const names[] = {"OMPI_COMM_WORLD_", "PMIX_", "PMI_", "OMPI_MCA_ess", "OMPI_MCA_orte"};
  for (size_t i = 0; i < SOL_COUNT(names); i++)
    if (strncmp(variable, names[i], strlen(names[i])) == 0) return true;
  return false;
}

static char **child_environment(char *gpu) {
  size_t count = 0, n = 0;
  while (environ[count]) count++;
  char **list = calloc(count + 2, sizeof *list);
  for (size_t i = 0; list && i < count; i++) {
    bool replaced = *gpu && strncmp(environ[i], "CUDA_VISIBLE_DEVICES=", 21) == 0;
    if (!is_of_launcher(environ[i]) && !replaced) list[n++] = environ[i];
  }
  if (list && *gpu) list[n] = gpu;
  return list;
}

static int split_words(const char *words, size_t length, char *list[MOST_WORDS]) {
  int count = 0;
  for (size_t at = 0; at < length && count < MOST_WORDS - 1; at += strlen(words + at) + 1)
    list[count++] = (char *)words + at;
  list[count] = NULL;
  return count;
}

// Between fork and exec nothing may be allocated: MPI may have threads.
_Noreturn static void become(const FleetChild *c, const char *own, char **words, char **environment,
                             pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  int null = open("/dev/null", O_RDONLY);
  dup2(null, 0);
  dup2(c->out, 1);
  dup2(c->err, 2);
  if (strcmp(words[0], "sol") == 0)
    execve(own, words, environment);
  else
    execvpe(words[0], words, environment);
  static const char said[] = "the program could not be started\n";
  ssize_t ignored = write(2, said, sizeof said - 1);
  _exit(ignored < 0 ? 126 : 127);
}

SolStatus fleet_child_start(FleetChild *c, const char *words, size_t length, SolError *err) {
  char own[4096], gpu[256], *list[MOST_WORDS];
  ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
  own[n > 0 ? n : 0] = 0;
  visible_gpu(gpu, sizeof gpu);
  if (split_words(words, length, list) == 0) return sol_fail(err, SOL_ERR_ARGUMENT, "a job without words");
  char **environment = child_environment(gpu);
  c->out = scratch_file();
  c->err = scratch_file();
  c->started = fleet_now();
  pid_t parent = getpid();
  c->pid = environment && c->out >= 0 && c->err >= 0 ? fork() : -1;
  if (c->pid == 0) become(c, own, list, environment, parent);
  free(environment);
  if (c->pid > 0) return SOL_OK;
  c->pid = 0;
  return sol_fail(err, SOL_ERR_IO, "cannot start a job: %s", strerror(errno));
}

// The last `most` bytes of a file.
static void read_end(int file, off_t most, SolBuffer *out) {
  off_t size = lseek(file, 0, SEEK_END), from = size > most ? size - most : 0;
  char part[65536];
  ssize_t n;
  lseek(file, from, SEEK_SET);
  while ((n = read(file, part, sizeof part)) > 0) sol_buffer_put(out, part, (size_t)n);
  close(file);
}

bool fleet_child_done(FleetChild *c, FleetResult *r) {
  int status;
  pid_t ended = waitpid(c->pid, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return false;
  r->done = true;
  r->seconds = fleet_now() - c->started;
  r->exit = ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  r->signal = ended > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  sol_buffer_free(&r->output);
  sol_buffer_free(&r->errors);
  read_end(c->out, MOST_OUTPUT, &r->output);
  read_end(c->err, MOST_ERRORS, &r->errors);
  c->pid = 0;
  return true;
}

void fleet_result_free(FleetResult *r) {
  sol_buffer_free(&r->output);
  sol_buffer_free(&r->errors);
}
