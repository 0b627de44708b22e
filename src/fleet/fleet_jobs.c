// Job files: command lines as text or as JSON.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "fleet/fleet.h"

enum { MOST_JOBS = 1000000, MOST_LINE = 1 << 16 };

typedef struct Reader {
  FleetIsCommand *is_command;
  FleetJobs *jobs;
  int cap;
  SolBuffer words;
  int word_count;
  bool asks_json;
  SolError *err;
} Reader;

static void add_word(Reader *r, const char *word, size_t length) {
  if (!r->word_count && length < 64) {
    char first[64];
    memcpy(first, word, length);
    first[length] = 0;
    if (strcmp(first, "sol") != 0 && r->is_command && r->is_command(first))
      sol_buffer_put(&r->words, "sol", 4);
  }
  if (length == 6 && memcmp(word, "--json", 6) == 0) r->asks_json = true;
  sol_buffer_put(&r->words, word, length);
  sol_buffer_put(&r->words, "", 1);
  r->word_count++;
}

static char *copy(const char *text, size_t length) {
  char *out = malloc(length + 1);
  if (out) memcpy(out, text, length), out[length] = 0;
  return out;
}

static SolStatus end_job(Reader *r, const char *line, size_t length) {
  if (!r->word_count) return SOL_OK;
  if (strcmp(r->words.text, "sol") == 0 && !r->asks_json) add_word(r, "--json", 6);
  FleetJobs *jobs = r->jobs;
  if (jobs->count == r->cap) {
    int cap = r->cap ? 2 * r->cap : 64;
    FleetJob *list = realloc(jobs->list, (size_t)cap * sizeof *list);
    if (!list) return sol_fail(r->err, SOL_ERR_NO_SPACE, "out of memory");
    jobs->list = list;
    r->cap = cap;
  }
  if (jobs->count >= MOST_JOBS) return sol_fail(r->err, SOL_ERR_RANGE, "more than %d jobs", MOST_JOBS);
  FleetJob job = {copy(line, length), copy(r->words.text, r->words.length), r->words.length, -1};
  jobs->list[jobs->count++] = job;
  r->words.length = 0;
  r->word_count = 0;
  r->asks_json = false;
  return job.line && job.words && !r->words.failed ? SOL_OK
                                                   : sol_fail(r->err, SOL_ERR_NO_SPACE, "out of memory");
}

// One word of a line, quotes taken off; returns where the next begins, or NULL where a quote stays open.
static const char *take_word(Reader *r, const char *p, const char *end) {
  SolBuffer word = {0};
  char quote = 0;
  for (; p < end && (quote || (*p != ' ' && *p != '\t')); p++) {
    if (quote ? *p == quote : *p == '\'' || *p == '"')
      quote = quote ? 0 : *p;
    else if (*p == '\\' && quote != '\'' && p + 1 < end)
      sol_buffer_put(&word, ++p, 1);
    else
      sol_buffer_put(&word, p, 1);
  }
  add_word(r, word.text ? word.text : "", word.length);
  sol_buffer_free(&word);
  return quote ? NULL : p;
}

static SolStatus take_line(Reader *r, const char *line, const char *end, int number) {
  if (end - line > MOST_LINE)
    return sol_fail(r->err, SOL_ERR_RANGE, "line %d has more than %d bytes", number, MOST_LINE);
  if (memchr(line, 0, (size_t)(end - line)))
    return sol_fail(r->err, SOL_ERR_SYNTAX, "line %d is no text", number);
  const char *p = line;
  while (p < end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r')) p++;
    if (p == end || *p == '#') break;
    if (!(p = take_word(r, p, end)))
      return sol_fail(r->err, SOL_ERR_SYNTAX, "line %d: a quote is not closed", number);
  }
  return end_job(r, line, (size_t)(end - line));
}

static SolStatus take_lines(Reader *r, const char *text, size_t length) {
  SolStatus status = SOL_OK;
  const char *stop = text + length;
  for (int number = 1; !status && text < stop; number++) {
    const char *end = memchr(text, '\n', (size_t)(stop - text));
    if (!end) end = stop;
    status = take_line(r, text, end, number);
    text = end + 1;
  }
  return status;
}

static SolStatus take_array(Reader *r, SolJson words, int number) {
  SolJsonIter it = {.container = words};
  SolJson word;
  char text[4096];
  SolBuffer line = {0};
  while (sol_json_next(&it, NULL, &word)) {
    if (!sol_json_string(word, text, sizeof text)) {
      sol_buffer_free(&line);
      return sol_fail(r->err, SOL_ERR_SYNTAX, "job %d: every word must be a text", number);
    }
    sol_buffer_format(&line, "%s%s", line.length ? " " : "", text);
    add_word(r, text, strlen(text));
  }
  SolStatus status = end_job(r, line.text ? line.text : "", line.length);
  sol_buffer_free(&line);
  return status;
}

static SolStatus take_json(Reader *r, const char *text, size_t length) {
  SolJson root, job;
  SolStatus status = sol_json_check(text, length, &root, r->err);
  SolJsonIter it = {.container = root};
  char *line = malloc(MOST_LINE);
  if (!line) return sol_fail(r->err, SOL_ERR_NO_SPACE, "out of memory");
  for (int number = 1; !status && sol_json_next(&it, NULL, &job); number++) {
    if (sol_json_kind(job) == SOL_JSON_ARRAY)
      status = take_array(r, job, number);
    else if (sol_json_string(job, line, MOST_LINE))
      status = take_line(r, line, line + strlen(line), number);
    else
      status = sol_fail(r->err, SOL_ERR_SYNTAX, "job %d must be a text or an array of texts", number);
  }
  free(line);
  return status;
}

SolStatus fleet_jobs_parse(const char *text, size_t length, FleetIsCommand *is_command, FleetJobs *out,
                           SolError *err) {
  Reader r = {.is_command = is_command, .jobs = out, .err = err};
  *out = (FleetJobs){0};
  size_t at = 0;
  while (at < length && strchr(" \t\r\n", text[at])) at++;
  SolStatus status =
      at < length && text[at] == '[' ? take_json(&r, text, length) : take_lines(&r, text, length);
  sol_buffer_free(&r.words);
  if (!status && !out->count) status = sol_fail(err, SOL_ERR_ARGUMENT, "there is no job in it");
  if (status) fleet_jobs_free(out);
  return status;
}

SolStatus fleet_jobs_same(const char *const *words, int count, int ranks, FleetJobs *out, SolError *err) {
  Reader r = {.jobs = out, .err = err};
  *out = (FleetJobs){0};
  SolStatus status = SOL_OK;
  for (int rank = 0; !status && rank < ranks; rank++) {
    SolBuffer line = {0};
    for (int i = 0; i < count; i++) {
      sol_buffer_format(&line, "%s%s", i ? " " : "", words[i]);
      add_word(&r, words[i], strlen(words[i]));
    }
    status = end_job(&r, line.text ? line.text : "", line.length);
    if (!status) out->list[rank].rank = rank;
    sol_buffer_free(&line);
  }
  sol_buffer_free(&r.words);
  if (status) fleet_jobs_free(out);
  return status;
}

void fleet_jobs_free(FleetJobs *jobs) {
  for (int i = 0; i < jobs->count; i++) free(jobs->list[i].line), free(jobs->list[i].words);
  free(jobs->list);
  *jobs = (FleetJobs){0};
}
