// The merged answer as JSON. What a job printed is taken over as it is where it is JSON, else as a text.
#include "base/json_read.h"
#include "base/json_write.h"
#include "fleet/fleet.h"

static void put_output(SolBuffer *out, const SolBuffer *text) {
  SolJson root;
  size_t n = text->length;
  while (n && (text->text[n - 1] == '\n' || text->text[n - 1] == ' ')) n--;
  if (n && !sol_json_check(text->text, n, &root, NULL))
    sol_buffer_put(out, text->text, n);
  else
    sol_json_add_text(out, text->text);
}

static void put_result(SolBuffer *out, const FleetRun *run, int job) {
  const FleetResult *r = &run->results[job];
  sol_buffer_format(out, "%s\n{\"job\": %d, \"command\": ", job ? "," : "", job);
  sol_json_add_text(out, run->jobs->list[job].line);
  sol_buffer_format(out, ", \"exit\": %d, \"signal\": %d, \"output\": ", r->exit, r->signal);
  put_output(out, &r->output);
  if (r->exit && r->errors.length) {
    sol_buffer_puts(out, ", \"errors\": ");
    sol_json_add_text(out, r->errors.text);
  }
  sol_buffer_puts(out, "}");
}

static void put_run(SolBuffer *out, const FleetRun *run, int job) {
  const FleetResult *r = &run->results[job];
  sol_buffer_format(out, "%s\n{\"job\": %d, \"rank\": %d, \"attempts\": %d, \"seconds\": ", job ? "," : "",
                    job, r->rank, r->attempts);
  sol_json_add_number(out, r->seconds);
  sol_buffer_puts(out, "}");
}

static void put_rank(SolBuffer *out, const FleetRun *run, int rank) {
  const FleetRank *r = &run->ranks[rank];
  sol_buffer_format(out, "%s\n{\"rank\": %d, \"host\": ", rank ? "," : "", rank);
  sol_json_add_text(out, r->host);
  sol_buffer_format(out, ", \"pid\": %d, \"jobs\": %d, \"died\": %s, \"shared\": %s}", r->pid, r->jobs,
                    r->died ? "true" : "false", r->shared ? "true" : "false");
}

static void put_slow(SolBuffer *out, const FleetSlow *s, bool first) {
  sol_buffer_format(out, "%s\n{\"rank\": %d, \"figure\": ", first ? "" : ",", s->rank);
  sol_json_add_text(out, s->figure);
  sol_buffer_puts(out, ", \"value\": ");
  sol_json_add_number(out, s->value);
  sol_buffer_puts(out, ", \"median\": ");
  sol_json_add_number(out, s->median);
  sol_buffer_puts(out, ", \"deviations\": ");
  sol_json_add_number(out, s->deviations);
  sol_buffer_puts(out, "}");
}

void fleet_merge(const FleetRun *run, const char *command, const char *date, const FleetSlow *slow,
                 int slow_count, SolBuffer *out) {
  sol_buffer_puts(out, "{\n\"schema\": 1,\n\"command\": ");
  sol_json_add_text(out, command);
  sol_buffer_puts(out, ",\n\"date\": ");
  sol_json_add_text(out, date);
  sol_buffer_puts(out, ",\n\"results\": [");
  for (int i = 0; i < run->jobs->count; i++) put_result(out, run, i);
  sol_buffer_puts(out, "],\n\"runs\": [");
  for (int i = 0; i < run->jobs->count; i++) put_run(out, run, i);
  sol_buffer_puts(out, "],\n\"ranks\": [");
  for (int i = 0; i < run->rank_count; i++) put_rank(out, run, i);
  sol_buffer_puts(out, "],\n\"slow\": [");
  for (int i = 0; i < slow_count; i++) put_slow(out, &slow[i], i == 0);
  sol_buffer_puts(out, "],\n\"failed\": [");
  bool first = true;
  for (int i = 0; i < run->jobs->count; i++)
    if (run->results[i].exit) sol_buffer_format(out, "%s%d", first ? "" : ", ", i), first = false;
  sol_buffer_puts(out, "]\n}\n");
}
