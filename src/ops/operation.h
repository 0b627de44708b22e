// One operation is one OpsDef: its tensors, checks, CPU code, launch rule, double-precision reference, cost
// and test shapes. The public functions, tests, bench and docs all use that one definition.
#ifndef SOL_OPS_OPS_H
#define SOL_OPS_OPS_H

#include <stddef.h>

#include "base/threads.h"
#include "driver/driver.h"
#include "sol/context.h"
#include "sol/op.h"
#include "sol/ops.h"

enum { OPS_MAX_VIEWS = 8, OPS_SLOTS = 256 };

typedef enum OpsRole { OPS_IN = 0, OPS_OUT, OPS_INOUT } OpsRole;
// How tests and bench fill a tensor.
typedef enum OpsFill {
  OPS_FILL_NORMAL = 0, // about -3..3, with a few larger ones
  OPS_FILL_UNIT,       // -1..1
  OPS_FILL_POSITIVE,   // 0.1..1
  OPS_FILL_IDS,        // whole numbers, 0..limit-1
  OPS_FILL_DISTINCT,   // the same, no two alike; limit is at least their number
  OPS_FILL_ORDER       // a permutation of 0..limit-1: the same, and never bad ones
} OpsFill;

// A tensor of a call: batch x rows x cols, the last axis contiguous, strides in elements.
typedef struct OpsView {
  const char *name;
  size_t field; // offset of its pointer in the argument structure
  const void *at;
  SolDtype dtype;
  OpsRole role;
  bool optional;                // may be NULL
  bool extra;                   // an optional output that the accountant's cost does not have
  int64_t batch, rows, cols;    // batch 0: 1
  int64_t stride, batch_stride; // 0: dense
  int alias;                    // 1 + the view it may coincide with exactly (in place); 0: none
  OpsFill fill;
  int64_t limit; // of ids
  bool scratch;  // a workspace: written, but what is left in it means nothing
} OpsView;
// The view of the pointer `member` of the arguments `a`, a `type`; the rest: its dtype, its role, and so on.
#define OPS_VIEW(type, member, ...) ((OpsView){#member, offsetof(type, member), a->member, __VA_ARGS__})

// A test or bench case, in terms that all operations share; `make` turns it into arguments.
typedef struct OpsCase {
  int64_t dim[4];
  SolDtype dtype, out_dtype, weight_dtype, id_dtype; // 0: the operation's default
  int64_t pad;                                       // rows are that many elements further apart than dense
  int option;                                        // 0 .. def->options - 1
} OpsCase;

typedef struct OpsDef {
  const char *name;
  const char *shape; // "MxN": what dim holds
  size_t args_bytes;
  int options; // how many values OpsCase.option takes (0: 1)
  const char *const *option_names;
  // Fills *args but its pointers. false: there is no such case (a dtype pair it does not take, say).
  bool (*make)(const OpsCase *c, void *args);
  // Lists the tensors, in order of the argument structure. Called first, with unchecked arguments: no
  // arithmetic that could overflow, no divisions by arguments.
  int (*views)(const void *args, OpsView *v);
  // What is wrong with the arguments beyond what ops_check finds by itself; may be NULL.
  SolStatus (*check)(const void *args, SolError *err);
  SolStatus (*cpu)(SolContext *ctx, const void *args);
  SolStatus (*launch)(SolContext *ctx, const void *args, SolStream stream);
  // at[i]: view i as dense doubles (NULL: absent); inputs as stored, outputs to be written.
  void (*reference)(const void *args, double *const *at);
  // The arguments as the accountant's, for bytes and FLOPs.
  SolStatus (*cost)(const void *args, SolOpArgs *op, SolError *err);
  // |got - reference| may be rounding of the output's type plus this times 2^-24 times the row's largest
  // value.
  double slack;
  const int64_t (*shapes)[4]; // tests add dtypes, alignment, strides and special values
  int shape_count;
  const int64_t (*bench)[4];
  int bench_count;
  // Kernels: file kernels/MODULE/MODULE.cu and the names in it. needs90: from that index on, only sm_90 has
  // them.
  const char *module;
  const char *const *kernels;
  int kernel_count;
  // The most dynamic shared memory of each kernel, for those that may take more than 48 KiB; NULL: none does.
  const uint32_t *shared;
} OpsDef;
// For definitions whose file has all of these as static functions of the same names.
#define OPS_OWN_FUNCTIONS                                                                                    \
  .make = make, .views = views, .check = check, .cpu = cpu, .launch = launch, .reference = reference,        \
  .cost = cost
// Arrays of the shapes that are tested, and of those that are timed.
#define OPS_CASES(tested, timed)                                                                             \
  .shapes = tested, .shape_count = (int)SOL_COUNT(tested), .bench = timed,                                   \
  .bench_count = (int)SOL_COUNT(timed)

// Every operation, in the order of operations.def.
enum {
#define OP(name, Args) OPS_##name,
#include "ops/operations.def"
  OPS_COUNT
};
extern const OpsDef *const ops_defs[OPS_COUNT];
#define OP(name, Args) extern const OpsDef ops_##name;
#include "ops/operations.def"

struct SolContext {
  SolBackend backend;
  SolDriver *driver; // NULL for cpu
  SolPool *pool;     // cpu
  SolSpin busy;      // the pool serves one call at a time; others run on their own thread
  int cc, sms;       // cc: 90 for sm_90
  int device;        // cuda: the GPU's number
  bool trust_pointers;
  unsigned checks;                      // emu: SOL_EMU_CHECK_...; tests turn them on
  SolLock *one_at_a_time;               // emu: an emulator serves one thread at a time; NULL elsewhere
  SolDriverModule *modules[OPS_COUNT];  // operations of one file share theirs
  SolDriverKernel **kernels[OPS_COUNT]; // cuda: loaded at the start; emu: when first needed
  uint8_t slots[OPS_SLOTS];             // ops_index's table: 1 + the operation
};

// The body of every public function.
SolStatus ops_call(SolContext *ctx, const OpsDef *def, const void *args, SolStream stream);
SolStatus ops_fail(SolStatus status, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct OpsLaunch {
  int kernel;                               // index into def->kernels
  uint32_t grid[3], block, cluster, shared; // zeros in grid: 1; cluster 0: none
  bool early; // programmatic dependent launch: the kernel waits for its predecessor itself
  const void *params;
  size_t bytes;
} OpsLaunch;
SolStatus ops_launch(SolContext *ctx, const OpsDef *def, const OpsLaunch *launch, SolStream stream);
// One thread for each of `threads`, as x and y of a grid: kernels read it back with thread_index().
void ops_grid(uint32_t grid[3], uint64_t threads, uint32_t block);
int ops_index(const SolContext *ctx, const OpsDef *def); // OPS_name
// What ops_launch does first. emu: within a call alone (it takes no lock).
SolStatus ops_load(SolContext *ctx, int op, SolError *err);
bool ops_has_kernel(SolContext *ctx, const OpsDef *def, int kernel);

// The cost of a call, from the accountant's definition: the body of every sol_X_cost.
SolStatus ops_cost(const OpsDef *def, const void *args, SolCost *out, SolError *err);

SolStatus ops_cost_op(const char *name, SolOpArgs *op, SolError *err); // fills op->op

// Test shapes that every row operation shares: 1, odd, prime, ragged, wide.
enum { OPS_ROW_SHAPES = 14 };
extern const int64_t ops_row_shapes[OPS_ROW_SHAPES][4];
// What row operations are timed on, smallest number of rows first.
enum { OPS_ROW_BENCH = 15 };
extern const int64_t ops_row_bench[OPS_ROW_BENCH][4];

// kernels/*/*.cu as nvcc built them, embedded: fat binaries of machine code and packed PTX.
typedef struct OpsImage {
  const char *name; // of the module
  const char *fat, *fat_end;
} OpsImage;
extern const OpsImage ops_images[];
extern const int ops_image_count; // 0 where the library was built without nvcc
// embedded.c. NULL where there is none: err says that the build is without nvcc.
const OpsImage *ops_image_find(const OpsImage *images, int count, const char *module, SolError *err);
// cc: the GPU's, 90 for sm_90.
SolStatus ops_image_load(const OpsImage *image, SolDriver *driver, int cc, SolDriverModule **out,
                         SolError *err);

// Dtypes
static inline bool ops_is_real(SolDtype d) {
  return d == SOL_FP32 || d == SOL_FP16 || d == SOL_BF16;
}
static inline SolDtype ops_or(SolDtype given, SolDtype fallback) {
  return given ? given : fallback;
}
// How kernels number the element types they load and store (kernels/common.h).
int ops_kind(SolDtype dtype);
// The largest power of two, up to 16, that divides the address and the stride in bytes (rows > 1).
int ops_align(const void *at, int64_t stride_bytes, int64_t rows);

#endif
