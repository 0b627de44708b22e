// The parts of a fleet that need no MPI: job files, messages in pieces, the journal, who is slow.
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "fleet/fleet_child.h"
#include "fleet/fleet_wire.h"

static bool is_command(const char *word) {
  return strcmp(word, "audit") == 0;
}

static FleetJobs parsed(const char *text) {
  FleetJobs jobs = {0};
  SolError err = {0};
  CHECK_MSG(fleet_jobs_parse(text, strlen(text), is_command, &jobs, &err) == SOL_OK, "%s: %s", text,
            err.message);
  return jobs;
}

static bool words_are(const FleetJob *job, const char *want, size_t length) {
  return job->words_length == length && memcmp(job->words, want, length) == 0;
}
#define WORDS_ARE(job, text) CHECK(words_are(&(job), text, sizeof text))

TEST(job_files) {
  FleetJobs jobs =
      parsed("# nothing\n\naudit a.cu\r\n  sol audit 'b c.cu' --json # why\npython3 x.py \"a \\\" b\" ''\n");
  CHECK_INT(jobs.count, 3);
  WORDS_ARE(jobs.list[0], "sol\0audit\0a.cu\r\0--json");
  WORDS_ARE(jobs.list[1], "sol\0audit\0b c.cu\0--json");
  WORDS_ARE(jobs.list[2], "python3\0x.py\0a \" b\0");
  fleet_jobs_free(&jobs);
  jobs = parsed(" [\"audit x\", [\"audit\", \"y z\"]]");
  CHECK_INT(jobs.count, 2);
  WORDS_ARE(jobs.list[0], "sol\0audit\0x\0--json");
  WORDS_ARE(jobs.list[1], "sol\0audit\0y z\0--json");
  CHECK_STR(jobs.list[1].line, "audit y z");
  fleet_jobs_free(&jobs);
  static const struct {
    const char *text, *says;
  } bad[] = {{"", "no job"},
             {"# only this\n", "no job"},
             {"audit 'x", "line 1: a quote is not closed"},
             {"[1]", "job 1 must be"},
             {"[[\"audit\", 2]]", "job 1: every word"},
             {"[\"audit x\"", ""}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    SolError err = {0};
    CHECK_MSG(fleet_jobs_parse(bad[i].text, strlen(bad[i].text), is_command, &jobs, &err) != SOL_OK, "%s",
              bad[i].text);
    CHECK_HAS(err.message, bad[i].says);
  }
}

// A link to itself: what is sent can be received, piece by piece.
static struct {
  char piece[64][FLEET_PIECE];
  size_t length[64];
  int first, count;
} mail;
static void put_piece(int to, const void *piece, size_t length) {
  (void)to;
  memcpy(mail.piece[mail.count], piece, length);
  mail.length[mail.count++] = length;
}
static size_t get_piece(int *from, void *piece) {
  if (mail.first == mail.count) return 0;
  memcpy(piece, mail.piece[mail.first], mail.length[mail.first]);
  *from = 0;
  return mail.length[mail.first++];
}

TEST(messages_come_whole) {
  static const FleetLink link = {.size = 1, .send = put_piece, .receive = get_piece};
  FleetInbox box;
  FleetResult sent = {.exit = 3, .signal = 0, .seconds = 1.5}, got = {0};
  SolBuffer text = {0}, *message;
  FleetKind kind;
  int from, job = -1, wholes = 0;
  bool heard = true;
  mail.first = mail.count = 0;
  CHECK(fleet_inbox_open(&box, 1));
  for (int i = 0; i < 10000; i++) sol_buffer_format(&sent.output, "%d,", i);
  sol_buffer_puts(&sent.errors, "it failed");
  fleet_write_result(7, &sent, &text);
  fleet_say(&link, 0, FLEET_RESULT, text.text, text.length);
  fleet_say(&link, 0, FLEET_STOP, "", 0);
  CHECK(mail.count > 10);
  while (heard) {
    if (!fleet_hear(&link, &box, &from, &heard, &kind, &message)) continue;
    if (++wholes == 1) CHECK(kind == FLEET_RESULT && fleet_read_result(message, &job, &got));
    if (wholes == 2) CHECK(kind == FLEET_STOP && message->length == 0);
  }
  CHECK(wholes == 2 && job == 7 && got.exit == 3 && got.seconds == 1.5);
  CHECK(got.output.length == sent.output.length && strcmp(got.output.text, sent.output.text) == 0);
  CHECK_STR(got.errors.text, "it failed");
  SolBuffer cut = {.text = text.text, .length = 20}; // a message that lies about its length
  FleetResult none = {0};
  CHECK(!fleet_read_result(&cut, &job, &none));
  fleet_inbox_close(&box);
  fleet_result_free(&sent);
  fleet_result_free(&got);
  sol_buffer_free(&text);
}

TEST(a_journal_is_read_back_and_a_torn_line_ignored) {
  FleetJobs jobs = parsed("audit a\naudit b\naudit c\n");
  FleetResult results[3] = {{0}}, read[3] = {{0}};
  char path[] = "/tmp/sol-journal-XXXXXX";
  int file = mkstemp(path);
  FleetRun run = {.jobs = &jobs, .journal = path, .results = results},
           again = {.jobs = &jobs, .journal = path, .results = read};
  SolError err = {0};
  results[1] = (FleetResult){.done = true, .rank = 2, .exit = 4, .seconds = 0.25};
  sol_buffer_puts(&results[1].output, "{\"a\": \"\\u00e9\n\"}");
  CHECK_INT(fleet_journal_add(&run, 1, &err), SOL_OK);
  results[0] = (FleetResult){.done = true};
  SolBuffer line = {0};
  fleet_journal_line(&run, 0, &line);
  FILE *f = fopen(path, "ab");
  CHECK(f && fwrite(line.text, 1, line.length - 9, f) == line.length - 9);
  fclose(f);
  CHECK_INT(fleet_journal_read(&again, &err), SOL_OK);
  CHECK(!read[0].done && read[1].done && !read[2].done);
  CHECK(read[1].exit == 4 && read[1].rank == 2 && read[1].seconds == 0.25);
  CHECK_STR(read[1].output.text, results[1].output.text);
  // Another job file: the line is of no job of it.
  FleetJobs others = parsed("audit a\naudit other\n");
  FleetResult fresh[2] = {{0}};
  FleetRun other = {.jobs = &others, .journal = path, .results = fresh};
  CHECK_INT(fleet_journal_read(&other, &err), SOL_OK);
  CHECK(!fresh[0].done && !fresh[1].done);
  for (int i = 0; i < 3; i++) fleet_result_free(&results[i]), fleet_result_free(&read[i]);
  sol_buffer_free(&line);
  fleet_jobs_free(&jobs);
  fleet_jobs_free(&others);
  close(file);
  unlink(path);
}

// Eight GPUs, of which one has slow memory, and one slow launches.
TEST(slow_gpus_are_named) {
  static const char *const words[] = {"sol", "devices", "--measure"};
  FleetJobs jobs;
  SolError err = {0};
  CHECK_INT(fleet_jobs_same(words, 3, 8, &jobs, &err), SOL_OK);
  CHECK(jobs.count == 8 && jobs.list[5].rank == 5);
  FleetResult results[8] = {{0}};
  for (int i = 0; i < 8; i++)
    sol_buffer_format(
        &results[i].output,
        "{\"measured\": {\"dram_read\": %g, \"launch_us\": %g}, \"cases\": [{\"op\": \"copy\", \"dtype\": "
        "\"bf16\", \"shape\": \"8x8\", \"time_us\": %g}]}",
        (i == 5 ? 3.9e12 : 4.5e12) + i * 1e9, i == 2 ? 4.0 : 2.4 + i * 0.01, i == 5 ? 3.2 : 2.8);
  FleetRun run = {.jobs = &jobs, .results = results, .rank_count = 8};
  FleetSlow slow[8];
  int count = fleet_slow(&run, slow, 8);
  CHECK_INT(count, 3);
  CHECK(slow[0].rank == 5 && strcmp(slow[0].figure, "dram_read") == 0 && slow[0].deviations > 5);
  CHECK(slow[1].rank == 2 && strcmp(slow[1].figure, "launch_us") == 0);
  CHECK(slow[2].rank == 5 && strcmp(slow[2].figure, "copy bf16 8x8") == 0);
  FleetRank ranks[8] = {{.pid = 0}};
  run.ranks = ranks;
  fleet_find_shared(&run);
  for (int i = 0; i < 8; i++) CHECK(!ranks[i].shared); // nobody says which GPU it has
  sol_buffer_free(&results[5].output), sol_buffer_free(&results[6].output);
  for (int i = 5; i < 7; i++)
    sol_buffer_puts(&results[i].output, "{\"uuid\": \"GPU-1\", \"measured\": {\"dram_read\": 1e12}}");
  fleet_find_shared(&run);
  for (int i = 0; i < 8; i++) CHECK(ranks[i].shared == (i == 5 || i == 6));
  CHECK_INT(fleet_slow(&run, slow, 8), 1); // rank 2's launches alone
  run.rank_count = 2;                      // of two none can be called slow
  CHECK_INT(fleet_slow(&run, slow, 8), 0);
  for (int i = 0; i < 8; i++) fleet_result_free(&results[i]);
  fleet_jobs_free(&jobs);
  double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};
  CHECK(fleet_median(odd, 3) == 3 && fleet_median(even, 4) == 2.5);
}

// Without a launcher: one after another, here. A job that crashes or does not exist is a result.
TEST(one_process) {
  FleetJobs jobs =
      parsed("sh -c 'echo one; echo why >&2; exit 3'\nsh -c 'kill -SEGV $$'\n/nowhere/at/all\necho two\n");
  FleetRun run = {.jobs = &jobs};
  SolError err = {0};
  CHECK_INT(fleet_run(&run, &err), SOL_OK);
  CHECK_STR(run.results[0].output.text, "one\n");
  CHECK_STR(run.results[0].errors.text, "why\n");
  CHECK_INT(run.results[0].exit, 3);
  CHECK(run.results[1].exit == -1 && run.results[1].signal == 11);
  CHECK_INT(run.results[2].exit, 127);
  CHECK(run.results[3].exit == 0 && run.ranks[0].jobs == 4 && run.rank_count == 1);
  SolBuffer text = {0};
  fleet_merge(&run, "sol fleet x", "2026-01-01", NULL, 0, &text);
  CHECK_HAS(text.text, "\"output\": \"one\\n\"");
  CHECK_HAS(text.text, "\"failed\": [0, 1, 2]");
  sol_buffer_free(&text);
  fleet_run_free(&run);
  fleet_jobs_free(&jobs);
}

CHECK_MAIN
