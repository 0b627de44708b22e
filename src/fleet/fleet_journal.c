// What is done, line by line, so that nothing is run twice after a crash. A line that a crash cut short is ignored.
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "fleet/fleet.h"

void fleet_journal_line(const FleetRun *run, int job, SolBuffer *out) {
  const FleetResult *r = &run->results[job];
  sol_buffer_format(out, "{\"job\": %d, \"rank\": %d, \"exit\": %d, \"signal\": %d, \"seconds\": ", job,
                    r->rank, r->exit, r->signal);
  sol_json_add_number(out, r->seconds);
  sol_buffer_puts(out, ", \"command\": ");
  sol_json_add_text(out, run->jobs->list[job].line);
  sol_buffer_puts(out, ", \"output\": ");
  sol_json_add_text(out, r->output.text);
  sol_buffer_puts(out, ", \"errors\": ");
  sol_json_add_text(out, r->errors.text);
  sol_buffer_puts(out, "}\n");
}

static double number_of(SolJson line, const char *key) {
  SolJson value;
  double number;
  return sol_json_get(line, key, &value) && sol_json_number(value, &number) ? number : 0;
}

static void text_of(SolJson line, const char *key, char *room, size_t cap, SolBuffer *out) {
  SolJson value;
  if (sol_json_get(line, key, &value) && sol_json_string(value, room, cap)) sol_buffer_puts(out, room);
}

// Takes a line where it is whole and of the same job; anything else is as if it were not there.
static void take_line(FleetRun *run, const char *text, size_t length, char *room, size_t cap) {
  SolJson line;
  if (sol_json_check(text, length, &line, NULL)) return;
  double job = number_of(line, "job");
  if (!(job >= 0 && job < run->jobs->count)) return;
  SolBuffer command = {0};
  text_of(line, "command", room, cap, &command);
  FleetResult *r = &run->results[(int)job];
  bool same = command.text && strcmp(command.text, run->jobs->list[(int)job].line) == 0;
  sol_buffer_free(&command);
  if (!same || r->done) return;
  *r = (FleetResult){.done = true,
                     .rank = (int)number_of(line, "rank"),
                     .exit = (int)number_of(line, "exit"),
                     .signal = (int)number_of(line, "signal"),
                     .seconds = number_of(line, "seconds")};
  text_of(line, "output", room, cap, &r->output);
  text_of(line, "errors", room, cap, &r->errors);
}

SolStatus fleet_journal_read(FleetRun *run, SolError *err) {
  FILE *file = fopen(run->journal, "rb");
  char *line = NULL, *room = NULL;
  size_t cap = 0, room_cap = 0;
  ssize_t n;
  if (!file && errno == ENOENT) return SOL_OK;
  if (!file) return sol_fail(err, SOL_ERR_IO, "cannot read '%.200s': %s", run->journal, strerror(errno));
  while ((n = getline(&line, &cap, file)) > 0) {
    if (cap > room_cap) {
      char *more = realloc(room, cap);
      if (!more) break;
      room = more;
      room_cap = cap;
    }
    take_line(run, line, (size_t)n, room, room_cap);
  }
  free(line);
  free(room);
  fclose(file);
  return SOL_OK;
}

SolStatus fleet_journal_add(const FleetRun *run, int job, SolError *err) {
  SolBuffer line = {0};
  fleet_journal_line(run, job, &line);
  FILE *file = fopen(run->journal, "ab");
  bool ok = file && !line.failed && fwrite(line.text, 1, line.length, file) == line.length;
  if (file && fclose(file)) ok = false;
  sol_buffer_free(&line);
  return ok ? SOL_OK : sol_fail(err, SOL_ERR_IO, "cannot write '%.200s': %s", run->journal, strerror(errno));
}
