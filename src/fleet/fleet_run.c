// Rank 0 hands out jobs, one at a time, to whoever is free, and runs some itself. A rank counts as dead when its process
// is gone (on the same machine) or when nothing was heard from it for a while; its job then goes to another. A result
// that comes twice counts once. Under Open MPI the launcher ends all ranks when one dies, unless it is started with
// `mpirun --enable-recovery`; without that, the journal lets the next run continue.
#define _GNU_SOURCE

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "fleet/fleet_child.h"
#include "fleet/fleet_wire.h"

enum { NOBODY = -1, MOST_HELLO = 128 };
static const double beat_s = 1, default_silence_s = 30, shortest_nap_s = 1e-4, longest_nap_s = 5e-4;

typedef struct Peer { // as rank 0 sees it
  int job;            // that it runs; NOBODY: none
  double heard;       // when
  double said;        // when it was told something
  bool there;         // it has said hello
} Peer;

typedef struct Head {
  FleetRun *run;
  int ranks;
  FleetInbox inbox;
  Peer *peers;
  int *holder; // of each job; NOBODY: waits
  int done, first_waiting;
  FleetChild child;
  int child_job;
  char host[64];
  SolError *err;
  SolStatus status;
} Head;

// A job that ends wakes its rank (SIGCHLD); a message is seen after half a millisecond at most.
static void nap(double *length, bool busy) {
  *length = busy ? shortest_nap_s : *length * 1.5 < longest_nap_s ? *length * 1.5 : longest_nap_s;
  struct timespec pause = {0, (long)(*length * 1e9)};
  nanosleep(&pause, NULL);
}

// ---- rank 0 ----

static void finish(Head *h, int job, FleetResult *r, int rank) {
  FleetResult *kept = &h->run->results[job];
  if (kept->done) { // another rank was faster
    fleet_result_free(r);
    return;
  }
  r->rank = rank;
  r->attempts = kept->attempts;
  *kept = *r;
  h->done++;
  h->run->ranks[rank].jobs++;
  if (h->run->journal && !h->status) h->status = fleet_journal_add(h->run, job, h->err);
  if (h->run->progress) h->run->progress(h->run->ctx, h->done, h->run->jobs->count);
}

// The first job that waits and that this rank may run; NOBODY: there is none.
static int next_job(Head *h, int rank) {
  const FleetJobs *jobs = h->run->jobs;
  while (h->first_waiting < jobs->count &&
         (h->holder[h->first_waiting] != NOBODY || h->run->results[h->first_waiting].done))
    h->first_waiting++;
  for (int i = h->first_waiting; i < jobs->count; i++) {
    if (h->holder[i] != NOBODY || h->run->results[i].done) continue;
    if (jobs->list[i].rank < 0 || jobs->list[i].rank == rank) return i;
  }
  return NOBODY;
}

static void hand_out(Head *h, int rank) {
  Peer *p = &h->peers[rank];
  int job = next_job(h, rank);
  if (job == NOBODY) return;
  const FleetJob *j = &h->run->jobs->list[job];
  SolBuffer text = {0};
  sol_buffer_format(&text, "%d\n", job);
  sol_buffer_put(&text, j->words, j->words_length);
  fleet_say(h->run->link, rank, FLEET_JOB, text.text, text.length);
  sol_buffer_free(&text);
  h->holder[job] = rank;
  h->run->results[job].attempts++;
  p->job = job;
  p->said = fleet_now();
}

// A job that only this rank could run is given up.
static void bury(Head *h, int rank) {
  Peer *p = &h->peers[rank];
  h->run->ranks[rank].died = true;
  if (p->job != NOBODY) {
    h->holder[p->job] = NOBODY;
    if (p->job < h->first_waiting) h->first_waiting = p->job;
  }
  for (int i = 0; i < h->run->jobs->count; i++) {
    if (h->run->jobs->list[i].rank != rank || h->run->results[i].done) continue;
    FleetResult none = {.done = true, .exit = -1};
    sol_buffer_puts(&none.errors, "the rank that had to run it died");
    finish(h, i, &none, rank);
  }
}

static bool is_dead(const Head *h, int rank, double now) {
  const FleetRank *r = &h->run->ranks[rank];
  bool near = h->peers[rank].there && strcmp(r->host, h->host) == 0;
  if (near) return kill(r->pid, 0) != 0 && errno == ESRCH;
  return now - h->peers[rank].heard > (h->run->silence > 0 ? h->run->silence : default_silence_s);
}

static void listen_once(Head *h, int from, FleetKind kind, SolBuffer *text) {
  Peer *p = &h->peers[from];
  FleetRank *r = &h->run->ranks[from];
  int job = NOBODY;
  FleetResult result = {0};
  if (kind == FLEET_HELLO && text->text) {
    char *space = strrchr(text->text, ' ');
    r->pid = space ? atoi(space) : 0;
    sol_format(r->host, sizeof r->host, "%.*s", space ? (int)(space - text->text) : 0, text->text);
    p->there = true;
  } else if (kind == FLEET_RESULT && fleet_read_result(text, &job, &result)) {
    if (job >= 0 && job < h->run->jobs->count) finish(h, job, &result, from);
    p->job = NOBODY;
  }
}

static bool listen_all(Head *h) {
  bool any = false, heard;
  int from;
  FleetKind kind;
  SolBuffer *text;
  for (;;) {
    bool whole = fleet_hear(h->run->link, &h->inbox, &from, &heard, &kind, &text);
    if (!heard) return any;
    any = true;
    h->peers[from].heard = fleet_now();
    if (whole) listen_once(h, from, kind, text);
  }
}

static bool serve_ranks(Head *h) {
  if (!h->run->link) return false;
  bool any = listen_all(h);
  double now = fleet_now();
  for (int rank = 1; rank < h->ranks; rank++) {
    Peer *p = &h->peers[rank];
    if (h->run->ranks[rank].died) continue;
    if (is_dead(h, rank, now)) {
      bury(h, rank);
      any = true;
    } else if (p->there && p->job == NOBODY) {
      hand_out(h, rank);
    }
    // One that waits is told that rank 0 is there.
    if (p->there && p->job == NOBODY && now - p->said > beat_s) {
      fleet_say(h->run->link, rank, FLEET_BEAT, "", 0);
      p->said = now;
    }
  }
  return any;
}

static bool work_here(Head *h) {
  FleetResult r = {0};
  if (h->child.pid) {
    if (!fleet_child_done(&h->child, &r)) return false;
    finish(h, h->child_job, &r, 0);
  }
  int job = next_job(h, 0);
  if (job == NOBODY) return false;
  const FleetJob *j = &h->run->jobs->list[job];
  h->holder[job] = 0;
  h->child_job = job;
  h->run->results[job].attempts++;
  SolStatus status = fleet_child_start(&h->child, j->words, j->words_length, h->err);
  if (status && !h->status) h->status = status;
  return true;
}

static void lead(Head *h) {
  double length = shortest_nap_s;
  while (!h->status && h->done < h->run->jobs->count) {
    bool busy = serve_ranks(h);
    busy |= work_here(h);
    if (h->done < h->run->jobs->count) nap(&length, busy);
  }
  for (int rank = 1; rank < h->ranks; rank++) h->run->any_died |= h->run->ranks[rank].died;
  for (int rank = 1; rank < h->ranks; rank++)
    if (!h->run->ranks[rank].died)
      fleet_say(h->run->link, rank, FLEET_STOP, "died", h->run->any_died ? 4 : 0);
}

static SolStatus lead_all(FleetRun *run, SolError *err) {
  Head h = {.run = run, .ranks = run->link ? run->link->size : 1, .child_job = NOBODY, .err = err};
  size_t jobs = (size_t)run->jobs->count, ranks = (size_t)h.ranks;
  run->results = calloc(jobs, sizeof *run->results);
  run->ranks = calloc(ranks, sizeof *run->ranks);
  run->rank_count = h.ranks;
  h.peers = calloc(ranks, sizeof *h.peers);
  h.holder = calloc(jobs, sizeof *h.holder);
  if (!run->results || !run->ranks || !h.peers || !h.holder || !fleet_inbox_open(&h.inbox, h.ranks))
    h.status = sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  if (!h.status && run->journal) h.status = fleet_journal_read(run, err);
  gethostname(h.host, sizeof h.host - 1);
  if (!h.status) {
    for (size_t i = 0; i < jobs; i++) h.holder[i] = NOBODY, h.done += run->results[i].done;
    for (size_t i = 0; i < ranks; i++) h.peers[i] = (Peer){.job = NOBODY, .heard = fleet_now()};
    sol_format(run->ranks[0].host, sizeof run->ranks[0].host, "%s", h.host);
    run->ranks[0].pid = (int)getpid();
  }
  lead(&h);
  fleet_inbox_close(&h.inbox);
  free(h.peers);
  free(h.holder);
  return h.status;
}

// ---- the other ranks ----

typedef struct Follower {
  FleetRun *run;
  FleetInbox inbox;
  FleetChild child;
  int job;
  double heard, said;
  bool stop;
} Follower;

static void take_order(Follower *f, FleetKind kind, const SolBuffer *text) {
  SolError err = {0};
  if (kind == FLEET_STOP) f->stop = true, f->run->any_died = text->length > 0;
  if (kind != FLEET_JOB || !text->text) return;
  char *words = strchr(text->text, '\n');
  if (!words) return;
  f->job = atoi(text->text);
  size_t length = text->length - (size_t)(words + 1 - text->text);
  if (!fleet_child_start(&f->child, words + 1, length, &err)) return;
  FleetResult r = {.exit = -1};
  SolBuffer out = {0};
  sol_buffer_puts(&r.errors, err.message);
  fleet_write_result(f->job, &r, &out);
  fleet_say(f->run->link, 0, FLEET_RESULT, out.text, out.length);
  sol_buffer_free(&out);
  fleet_result_free(&r);
}

static bool report(Follower *f) {
  FleetResult r = {0};
  SolBuffer out = {0};
  if (!f->child.pid || !fleet_child_done(&f->child, &r)) return false;
  fleet_write_result(f->job, &r, &out);
  fleet_say(f->run->link, 0, FLEET_RESULT, out.text, out.length);
  sol_buffer_free(&out);
  fleet_result_free(&r);
  return true;
}

// Where rank 0 is silent although this rank waits, it is gone.
static SolStatus follow(Follower *f, SolError *err) {
  double length = shortest_nap_s, silence = f->run->silence > 0 ? f->run->silence : default_silence_s;
  while (!f->stop) {
    int from;
    bool heard, busy = report(f);
    FleetKind kind;
    SolBuffer *text;
    bool whole = fleet_hear(f->run->link, &f->inbox, &from, &heard, &kind, &text);
    double now = fleet_now();
    if (heard || f->child.pid) f->heard = now;
    if (whole) take_order(f, kind, text);
    if (now - f->said > beat_s) {
      fleet_say(f->run->link, 0, FLEET_BEAT, "", 0);
      f->said = now;
    }
    if (now - f->heard > silence)
      return sol_fail(err, SOL_ERR_IO, "rank %d has heard nothing from rank 0 for %g s", f->run->link->rank,
                      silence);
    if (!f->stop) nap(&length, busy || heard);
  }
  return SOL_OK;
}

static SolStatus follow_all(FleetRun *run, SolError *err) {
  Follower f = {.run = run, .heard = fleet_now()};
  char hello[MOST_HELLO], host[64] = "";
  if (!fleet_inbox_open(&f.inbox, run->link->size)) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  gethostname(host, sizeof host - 1);
  size_t n = sol_format(hello, sizeof hello, "%s %d", host, (int)getpid());
  fleet_say(run->link, 0, FLEET_HELLO, hello, n);
  SolStatus status = follow(&f, err);
  if (status) run->any_died = true;
  fleet_inbox_close(&f.inbox);
  return status;
}

static void wake(int signal) {
  (void)signal;
}

SolStatus fleet_run(FleetRun *run, SolError *err) {
  // nanosleep is interrupted all the same; nothing else is to be
  struct sigaction awake = {.sa_handler = wake, .sa_flags = SA_RESTART}, before;
  sigemptyset(&awake.sa_mask);
  bool set = sigaction(SIGCHLD, &awake, &before) == 0;
  SolStatus status = run->link && run->link->rank ? follow_all(run, err) : lead_all(run, err);
  if (set) sigaction(SIGCHLD, &before, NULL);
  return status;
}

void fleet_run_free(FleetRun *run) {
  for (int i = 0; run->results && i < run->jobs->count; i++) fleet_result_free(&run->results[i]);
  free(run->results);
  free(run->ranks);
  run->results = NULL;
  run->ranks = NULL;
}
