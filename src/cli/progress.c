// One line on a terminal's standard error with the progress; it is written over and, at the end,
// cleared.
#define _POSIX_C_SOURCE 200809L // isatty

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/threads.h"
#include "cli/cli.h"

bool cli_wants_progress(const Cli *cli) {
  const char *ci = getenv("CI");
  return isatty(2) && !cli->args->json && !(ci && *ci);
}

void cli_status(const Cli *cli, const char *format, ...) {
  if (!cli_wants_progress(cli)) return;
  char text[256];
  va_list args;
  va_start(args, format);
  sol_vformat(text, sizeof text, format, args);
  va_end(args);
  size_t room = cli_columns(2) - 1; // a full line would wrap, and could not be written over
  fprintf(stderr, "\r\033[K%.*s", (int)sol_text_prefix(text, strlen(text), room), text);
  fflush(stderr);
}

void cli_launch_text(const SolEmuProgress *p, double seconds, char *out, size_t cap) {
  char speed[32];
  if (seconds < 0.5) { // too short for a rate
    sol_format(out, cap, "%.60s", p->kernel ? p->kernel : "");
    return;
  }
  fact_write_number(speed, sizeof speed, UNIT_COUNT, seconds > 0 ? (double)p->instructions / seconds : 0);
  size_t n = sol_format(out, cap, "%.32s%s%.0f%% of blocks, %s instr/s", p->kernel ? p->kernel : "",
                        p->kernel ? ": " : "", p->done * 100, speed);
  if (p->done > 0 && n < cap)
    sol_format(out + n, cap - n, ", %.0f s left", seconds * (1 - p->done) / p->done);
}

void cli_launch_progress(void *ctx, const SolEmuProgress *p) {
  CliLaunch *l = ctx;
  double now = sol_thread_clock();
  if (!l->started || p->instructions < l->instructions) l->started = now; // another launch
  l->instructions = p->instructions;
  if (now - l->started < 1 || now - l->shown < 0.25) return;
  l->shown = now;
  char text[192];
  SolEmuProgress at = *p;
  if (l->what[0]) at.kernel = NULL; // `what` names it already
  cli_launch_text(&at, now - l->started, text, sizeof text);
  cli_status(l->cli, "%s%s", l->what, text);
}
