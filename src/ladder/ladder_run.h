// Running a ladder on one backend: its arrays, its kernels, one rung after another, each checked and then
// counted and predicted (emulator) or timed (GPU).
//
//   LadderSession s;
//   ladder_session_open(&s, &(LadderOptions){.backend = SOL_BACKEND_EMU, .device = h200}, &err);
//   LadderRun run;
//   ladder_open(&run, &s, ladder_find("transpose", &err), &c, &err);
//   ladder_go(&run, &ladder->rungs[i], &figures);           the figures hold what went wrong
//   ladder_close(&run); ladder_session_close(&s);
#ifndef SOL_LADDER_RUN_H
#define SOL_LADDER_RUN_H

#include "audit/audit.h"
#include "ladder/ladder.h"
#include "measure/timer.h"

// What the launches of a call did, summed. NAN: unknown. The emulator's are exact but for the DRAM's.
#define LADDER_COUNTS(X)                                                                                     \
  X(load_requests) /* of global memory */                                                                    \
  X(load_sectors)                                                                                            \
  X(store_requests)                                                                                          \
  X(store_sectors)                                                                                           \
  X(atomic_requests)                                                                                         \
  X(atomic_sectors)                                                                                          \
  X(texture_requests)                                                                                        \
  X(texture_sectors)                                                                                         \
  X(local_requests)                                                                                          \
  X(local_sectors)                                                                                           \
  X(shared_requests)                                                                                         \
  X(wavefronts) /* of shared memory */                                                                       \
  X(dram_read)  /* bytes; modelled, or measured */                                                           \
  X(dram_write) /* with what L2 has still to write back */
typedef struct LadderCounts {
#define LADDER_COUNT_FIELD(name) double name;
  LADDER_COUNTS(LADDER_COUNT_FIELD)
#undef LADDER_COUNT_FIELD
} LadderCounts;
LadderCounts ladder_counts_unknown(void);
double ladder_requests(const LadderCounts *c); // of global memory: loads, stores and atomics; NAN: unknown
double ladder_sectors(const LadderCounts *c);
double ladder_dram(const LadderCounts *c);

// One rung on one backend.
typedef struct LadderFigures {
  bool ran;         // and its result is right, where it was checked
  SolStatus status; // otherwise why not; SOL_ERR_UNSUPPORTED: this GPU is too old for the rung
  char message[256];
  bool checked, wrong;
  double worst;    // checked: the largest error as a share of what is allowed
  double us;       // emulator: predicted; GPU: the median. 0: unknown
  double light_us; // of our copy of the same bytes: predicted, or measured in the same run. 0: unknown
  LadderCounts counts;
  double launches;
  const char *kernel; // the first that it launched; NULL: it has none of the ladder's, or did not run
  // emulator
  MachineResource bound;           // of the launch that takes longest
  double bound_us;                 // of that launch
  const MachineTimeline *timeline; // of its block, the session's; NULL: it uses no tensor cores
  int registers;                   // of its kernel
  bool guessed;                    // registers by the emulator's estimate, not ptxas's number
  // GPU
  double spread, least_us, most_us;
  int rounds, calls, sets;
} LadderFigures;

typedef struct LadderOptions {
  SolBackend backend;                                          // emu or cuda
  const SolDevice *device;                                     // emu: the GPU to emulate
  int workers;                                                 // emu: threads; 0: one a core
  unsigned checks;                                             // emu: SOL_EMU_CHECK_...
  bool unchecked;                                              // results are not checked
  bool quick;                                                  // cuda: fewer rounds
  void (*progress)(void *ctx, const SolEmuProgress *progress); // emu: of its launches; NULL: none
  void *progress_ctx;
} LadderOptions;

enum { LADDER_LIGHTS = 256, LADDER_IMAGES = 128, LADDER_KERNELS = 64 };

typedef struct LadderSession {
  LadderOptions options;
  SolContext *ctx;
  SolDriverModule *modules[LADDER_COUNT];
  Timer timer;   // cuda
  int most_sets; // cuda: sets of arrays at most; 0: as many as it takes to be larger than the caches
  struct LadderLight {
    double bytes, us;
  } light[LADDER_LIGHTS]; // copies that were timed already
  int light_count;
  char *elf[LADDER_IMAGES]; // emu: machine code of each image, unpacked when first used
  size_t elf_size[LADDER_IMAGES];
  SolArena timelines;
  bool elf_of_ptx[LADDER_IMAGES]; // it was made, with -lineinfo, of the PTX that the emulator runs
} LadderSession;

typedef struct LadderRun {
  LadderSession *session;
  const Ladder *ladder;
  LadderCase c;
  LadderBuffer buffer[LADDER_MAX_BUFFERS];
  int buffer_count;
  void *host[LADDER_MAX_BUFFERS];      // inputs as they were made
  uint64_t memory[LADDER_MAX_BUFFERS]; // all sets' copies, one after another
  uint64_t step[LADDER_MAX_BUFFERS];   // from one to the next; 0: all sets share it
  int sets;
  SolDriverModule *module;
  struct LadderKernel {
    const char *name;
    SolDriverKernel *kernel;
    uint32_t shared; // dynamic shared memory that it may use
  } kernels[LADDER_KERNELS];
  int kernel_count;
  const char *launched; // the first kernel that the current rung launched
} LadderRun;

// Close it after a failure, too. SOL_ERR_UNSUPPORTED: this machine does not have that backend.
SolStatus ladder_session_open(LadderSession *s, const LadderOptions *options, SolError *err);
void ladder_session_close(LadderSession *s);

// SOL_ERR_ARGUMENT or SOL_ERR_RANGE: the ladder does not take these sizes.
SolStatus ladder_accept(const Ladder *ladder, const LadderCase *c, SolError *err);
// Memory and kernels. Close it after a failure, too.
SolStatus ladder_open(LadderRun *run, LadderSession *s, const Ladder *ladder, const LadderCase *c,
                      SolError *err);
void ladder_close(LadderRun *run);
// One rung. Its status is also figures->status.
SolStatus ladder_go(LadderRun *run, const LadderRung *rung, LadderFigures *figures);

// ---- counters of a GPU ----

// Exact counts are read on the set that the emulator sees, by the hardware's counters and (shared memory's
// wavefronts) by instruction; DRAM bytes with the caches as a series of calls leaves them.
// SOL_ERR_UNSUPPORTED: no CUPTI, or the driver forbids it.
typedef enum LadderCounted { LADDER_EXACT, LADDER_WAVES, LADDER_DRAM, LADDER_COUNTED } LadderCounted;
typedef struct LadderCounters {
  LadderCounted what;
  struct Counters *hardware; // measure/counters.h
  struct Sass *patched;      // measure/sass.h
} LadderCounters;
SolStatus ladder_counters_open(LadderCounters *c, LadderSession *s, LadderCounted what, SolError *err);
void ladder_counters_close(LadderCounters *c);
// Fills in the counts that c->what says; those that this GPU does not have become NAN.
SolStatus ladder_count(LadderRun *run, const LadderRung *rung, LadderCounters *c, LadderCounts *into,
                       SolError *err);

// ---- between the runner's files ----

extern const OpsImage ladder_images[];
extern const int ladder_image_count; // 0 where the tool was built without nvcc

// data.c: the arrays.
SolStatus ladder_data_open(LadderRun *run, SolError *err);
void ladder_data_close(LadderRun *run);
// Inputs as they were made, outputs poisoned: set 0.
SolStatus ladder_data_reset(LadderRun *run, SolError *err);
SolStatus ladder_data_check(LadderRun *run, const LadderRung *rung, double *worst, SolError *err);
// The call of a rung on one set, and its launches into the call's stream.
LadderCall ladder_call(LadderRun *run, const LadderRung *rung, int set, SolStream stream);
SolStatus ladder_enqueue(const LadderCall *call, SolError *err);
// emulate.c, ladder_time.c
SolStatus ladder_emulate(LadderRun *run, const LadderRung *rung, LadderFigures *f, SolError *err);
SolStatus ladder_time(LadderRun *run, const LadderRung *rung, LadderFigures *f, SolError *err);

#endif
