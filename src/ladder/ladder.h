// A ladder: one job done by several kernels, from naive to the speed of light, one change a rung. A sweep:
// one parameter of a kernel from end to end; its points are rungs too. Every rung is one definition for both
// backends: the emulator runs, checks, counts and predicts it, a GPU runs, checks and times it.
//
// ladders.def lists them all and names the file of each. The kernels are in kernels/FOLDER/rungs.cu (sweeps:
// kernels/sweeps/NAME.cu; Ladder.module says which); the last rung of a ladder is the library's operation
// where there is one.
#ifndef SOL_LADDER_LADDER_H
#define SOL_LADDER_LADDER_H

#include "ops/operation.h"

enum { LADDER_MAX_BUFFERS = 8, LADDER_MAX_LAUNCHES = 8 };

typedef struct Ladder Ladder;
typedef struct LadderRung LadderRung;

// What to run: sizes in the ladder's own terms (Ladder.shape) and the type of its data.
typedef struct LadderCase {
  int64_t dim[4];
  SolDtype dtype;
} LadderCase;

// An array of the job. A call gets one set of them; when times are taken, every call gets another set, so
// that no call finds its data in a cache.
typedef struct LadderBuffer {
  const char *name;
  SolDtype dtype;
  int64_t count; // elements
  OpsRole role;
  OpsFill fill;  // of an input, as trial_values makes them
  int64_t limit; // of ids
  // Fills the host's copy instead of `fill`; NULL: fill.
  void (*make)(const LadderCase *c, void *to, int64_t count);
  bool shared;  // a table that a call reads in part: one for all sets
  bool scratch; // written by one kernel of a rung for its next: not checked
} LadderBuffer;

// One call of a rung.
typedef struct LadderCall {
  const Ladder *ladder;
  const LadderRung *rung;
  LadderCase c;
  uint64_t at[LADDER_MAX_BUFFERS]; // the set's addresses on the backend
  SolContext *ctx;                 // for library rungs; its driver runs the others
  SolStream stream;
  struct LadderRun *run;
} LadderCall;

// Inputs as written to the backend, for check's reference.
typedef struct LadderHost {
  const LadderCase *c;
  const LadderRung *rung;
  const void *in[LADDER_MAX_BUFFERS];                                     // by buffer; NULL for outputs
  double (*value)(const struct LadderHost *h, int buffer, int64_t index); // one element, any dtype
  SolDtype dtype[LADDER_MAX_BUFFERS];
} LadderHost;

// What the texts claim of a rung's time against the one before (or against rung `against`); a measured run
// says whether that is so.
typedef enum LadderStory { LADDER_FIRST = 0, LADDER_FASTER, LADDER_SLOWER, LADDER_SAME } LadderStory;

// Enqueues the launches of a rung: ladder_launch, ladder_op, ladder_copy.
typedef SolStatus LadderGo(const LadderCall *call, SolError *err);

struct LadderRung {
  const char *name;   // "padded": unique in its ladder, typed on the command line
  const char *change; // what changed against the rung before: "tile rows are 33 floats apart"
  const char *why;    // why that helps or hurts: the mechanism, no figures
  // A remark that holds on one GPU and need not on others; printed for that GPU only.
  const char *seen_on; // the id of the GPU in the table of devices: "h200"
  const char *seen;    // NULL: none
  LadderStory story;
  const char *against; // the rung that its time is compared with; NULL: the one before
  // What it runs: the operation `op` of the library on the buffers that are named as its tensors are; or
  // `go`; or, where both are NULL, the ladder's `go`.
  const OpsDef *op;
  LadderGo *go;
  // What rungs that share a `go` differ in.
  const char *kernel;
  int64_t each;  // elements of a block or of a thread, as that `go` takes them
  double x;      // of a sweep: the parameter; of a ladder: as its `go` and `expect` take it
  bool streamed; // timed as launches into a stream, one after another, not as a graph
  int min_cc;    // 90: needs sm_90; 0: any
};

struct Ladder {
  const char *name;   // "transpose"
  const char *title;  // "Transposing a matrix"
  const char *about;  // what the job is and what the ladder teaches: a paragraph
  const char *module; // image of its kernels: "transpose_rungs" for kernels/transpose/rungs.cu
  bool sweep;
  const char *axis;   // sweeps: what x is, "stride, elements"
  const char *shape;  // "MxN": what dim holds
  int64_t size[4];    // documented: what `sol ladder NAME` runs and docs/ladders shows
  int64_t small[4];   // for tests: a second or less on the emulator for all rungs
  SolDtype dtypes[4]; // the types it takes, the default first; 0 ends the list
  const LadderRung *rungs;
  int rung_count;
  LadderGo *go; // of the rungs that have none themselves
  // The largest first size, and what it counts: "blocks". 0: no limit but that of memory.
  int64_t most;
  const char *most_of;
  // What is wrong with a shape beyond that ("N must be a multiple of 4"). NULL: nothing.
  SolStatus (*accept)(const LadderCase *c, SolError *err);
  int (*buffers)(const LadderCase *c, LadderBuffer *b); // how many
  // Bytes that have to move, each once: light is the time of a copy of as many. 0: light says nothing here.
  double (*bytes)(const LadderCase *c, const LadderRung *rung);
  // The reference, in double: elements [first, first + count) of an output buffer. Checked in units of
  // `unit(c, buffer)` elements: a row, say; all of them where that is quick, else some that are spread out.
  void (*expect)(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out);
  int64_t (*unit)(const LadderCase *c, int buffer); // NULL: 1024 elements
  // Of a job that is sums of products: the terms of an element. Where they are many, fewer elements are checked, and
  // nothing is predicted beside a measurement (ladder_too_long). NULL: each element takes about as long as its bytes.
  double (*terms)(const LadderCase *c);
  double slack; // |got - expected| may be rounding of the output's type plus this times 2^-24 times the
                // unit's largest value
};

// For definitions whose file has these as static functions of the same names.
#define LADDER_OWN_JOB      .buffers = buffers, .bytes = bytes, .expect = expect
#define LADDER_RUNGS(array) .rungs = array, .rung_count = (int)SOL_COUNT(array)

// The products are more than the emulator does in some minutes.
bool ladder_too_long(const Ladder *ladder, const LadderCase *c);

// ---- for rungs ----

static inline void *ladder_at(const LadderCall *call, int buffer) {
  return (void *)(uintptr_t)call->at[buffer];
}

typedef struct LadderGrid {
  uint32_t grid[3], block[3];    // zeros: 1
  uint32_t cluster;              // blocks along x; 0: none
  uint32_t shared;               // dynamic shared memory
  bool early;                    // programmatic dependent launch
  bool one_param;                // SolDriverLaunch.one_param
  uint64_t window, window_bytes; // persisting window of L2 (SolDriverLaunch); 0 bytes: none
} LadderGrid;

// A kernel of the ladder's module; params: a structure laid out as the kernel's parameters are (one structure
// passed by value is the simplest: extern "C" __global__ void f(const __grid_constant__ F p)).
SolStatus ladder_launch(const LadderCall *call, const char *kernel, const LadderGrid *grid,
                        const void *params, size_t bytes, SolError *err);
// Buffer `from` to buffer `to`, by the driver; the emulator copies, and has no time for it.
SolStatus ladder_copy(const LadderCall *call, int to, int from, uint64_t bytes, SolError *err);
// An operation of the library, with arguments that the rung fills in itself.
SolStatus ladder_op(const LadderCall *call, const OpsDef *def, const void *args, SolError *err);

// Every ladder and sweep, in the order of ladders.def.
enum {
#define LADDER(name) LADDER_##name,
#include "ladder/ladders.def"
  LADDER_COUNT
};
extern const Ladder *const ladders[LADDER_COUNT];
#define LADDER(name) extern const Ladder ladder_##name;
#include "ladder/ladders.def"
const Ladder *ladder_find(const char *name, SolError *err); // NULL: SOL_ERR_NOT_FOUND, with the nearest names
int ladder_rung(const Ladder *ladder, const char *name, SolError *err); // its index; -1: likewise

#endif
