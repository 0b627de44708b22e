// Jobs over the ranks of an MPI program, or one after another where there is but one process.
#ifndef SOL_FLEET_FLEET_H
#define SOL_FLEET_FLEET_H

#include "base/buffer.h"
#include "fleet/fleet_link.h"
#include "sol/status.h"

typedef struct FleetJob {
  char *line;          // as it was written
  char *words;         // its arguments, each with its NUL; the first is the program, "sol" for this very one
  size_t words_length; // of all of them
  int rank;            // that has to run it; -1: any
} FleetJob;

typedef struct FleetResult {
  bool done;
  int rank;
  int exit, signal; // exit -1: it has none
  double seconds;
  SolBuffer output, errors; // what it printed; of errors the end
  int attempts;             // how often it was handed out
} FleetResult;

typedef struct FleetRank {
  char host[64];
  int pid;
  int jobs; // that it has finished
  bool died;
  char gpu[64]; // as fleet_find_shared has read it: "GPU-8a3e94ac-..."; empty: unknown
  bool shared;  // it is another rank's, too
} FleetRank;

typedef struct FleetJobs {
  FleetJob *list;
  int count;
} FleetJobs;

// A job file: a command line on each line ('#': a comment; quotes as in a shell), or JSON: an array of command lines, each
// a text or an array of words. `is_command`: whether a first word is one of sol's, whose name may then be left out;
// sol's own commands are asked for JSON.
typedef bool FleetIsCommand(const char *word);
SolStatus fleet_jobs_parse(const char *text, size_t length, FleetIsCommand *is_command, FleetJobs *out,
                           SolError *err);
// The same words for every rank.
SolStatus fleet_jobs_same(const char *const *words, int count, int ranks, FleetJobs *out, SolError *err);
void fleet_jobs_free(FleetJobs *jobs);

// The ranks that a launcher (mpirun, srun) has started: 1 where none has. Where there are more, `library`, libsolfleet.so,
// is loaded, and MPI started; *out stays NULL for a single process.
SolStatus fleet_open(const char *library, const FleetLink **out, SolError *err);
int fleet_launched(void); // how many ranks the environment speaks of

typedef struct FleetRun {
  const FleetLink *link; // NULL: this process alone
  const FleetJobs *jobs;
  const char *journal; // file of finished jobs, read first and added to; NULL: none
  double silence;      // seconds without a sign after which a rank counts as dead; 0: 30
  void (*progress)(void *ctx, int done, int count); // rank 0; may be NULL
  void *ctx;
  // Results, on rank 0:
  FleetResult *results; // jobs->count of them
  FleetRank *ranks;
  int rank_count;
  // On every rank: whether one has died, so that MPI must not wait for it at the end.
  bool any_died;
} FleetRun;

// Every rank calls it. Rank 0 returns with the results; the others return when nothing is left to do.
SolStatus fleet_run(FleetRun *run, SolError *err);
void fleet_run_free(FleetRun *run);

// ---- the merged answer ----

// A GPU whose figure is worse than the others' by more than five robust standard deviations (1.4826 x the median of the
// deviations from the median) and by more than 5%.
typedef struct FleetSlow {
  int rank;
  char figure[96];
  double value, median, deviations; // deviations: infinite where the others are equal
} FleetSlow;
enum { FLEET_MOST_SLOW = 256 };
// Marks the ranks whose answers name the same GPU ("uuid"): each of them measured the others' load as well.
void fleet_find_shared(FleetRun *run);
// From the JSON of sol devices --measure and sol bench, one of each rank; of fewer than three ranks none is named, nor is one
// that shares its GPU.
int fleet_slow(const FleetRun *run, FleetSlow *out, int cap);
double fleet_median(double *values, int count); // sorts them

// One JSON: results in the order of the jobs, whoever ran them; runs, ranks, slow and failed apart.
void fleet_merge(const FleetRun *run, const char *command, const char *date, const FleetSlow *slow,
                 int slow_count, SolBuffer *out);

// Journal: a line of JSON for each finished job.
void fleet_journal_line(const FleetRun *run, int job, SolBuffer *out);
SolStatus fleet_journal_read(FleetRun *run, SolError *err); // fills the results that it has
SolStatus fleet_journal_add(const FleetRun *run, int job, SolError *err);

#endif
