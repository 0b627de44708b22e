// Where counters are not available: the same program on the emulator, by running sol audit.
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/format.h"
#include "cli/child.h"
#include "cli/cli_profile.h"
#include "cli/scratch.h"

enum { EMULATE_SECONDS = 60 };

static void become(const ProfileRun *r, const char *device, const char *bill) {
  char seconds[16];
  size_t n = 0;
  sol_format(seconds, sizeof seconds, "%d", EMULATE_SECONDS);
  const char **argv = calloc((size_t)r->cli->rest_count + 16, sizeof *argv);
  int file = open(bill, O_WRONLY | O_CREAT | O_TRUNC, 0600), null = open("/dev/null", O_RDWR);
  if (!argv || file < 0 || null < 0) _exit(126);
  const char *const words[] = {"sol",  "audit",     "--json", "--device",
                               device, "--seconds", seconds,  r->args->common.positional[0]};
  for (size_t i = 0; i < SOL_COUNT(words); i++) argv[n++] = words[i];
  if (r->cli->rest_count) argv[n++] = "--";
  for (int i = 0; i < r->cli->rest_count; i++) argv[n++] = r->cli->rest[i];
  dup2(file, 1);
  dup2(null, 2); // the program's output was shown in the first run
  dup2(null, 0);
  execv("/proc/self/exe", (char **)(uintptr_t)argv);
  _exit(127);
}

static bool nothing_to_read(void *ctx) {
  (void)ctx;
  return false;
}

static void progress(void *ctx, double seconds, char *out, size_t cap) {
  (void)ctx;
  sol_format(out, cap, "counting on the emulator, %.0f s", seconds);
}

const char *cli_profile_emulate(ProfileRun *r, Profile *p) {
  const char *bill = scratch_path(r->cli, "bill.json");
  Child child = {.limit = EMULATE_SECONDS, .grace = 15, .read = nothing_to_read, .progress = progress};
  if (child_fork(&child) == 0) become(r, p->gpu.device ? p->gpu.device->id : DEFAULT_DEVICE, bill);
  if (child.pid < 0) return NULL;
  cli_child_wait(&child);
  bool made = !child.interrupted && (child.code == EXIT_OK || child.code == EXIT_PROGRAM);
  char first = 0;
  int file = made ? open(bill, O_RDONLY | O_CLOEXEC) : -1;
  made = file >= 0 && read(file, &first, 1) == 1;
  if (file >= 0) close(file);
  if (made)
    profile_note(p, "Counts are the emulator's%s, times the GPU's: 'emulated' marks them.",
                 child.code == EXIT_OK ? "" : " (of the part of the program that it ran)");
  else
    profile_note(p, "The emulator cannot run this program either: 'sol audit' shows why.");
  return made ? bill : NULL;
}
