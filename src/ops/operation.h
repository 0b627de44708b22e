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

enum { OPS_MAX_VIEWS = 8, OPS_TERMS = OPS_MAX_VIEWS, OPS_SLOTS = 256, OPS_CLUSTER = 8 };

typedef enum OpsRole { OPS_IN = 0, OPS_OUT, OPS_INOUT } OpsRole;
// How tests and bench fill a tensor.
typedef enum OpsFill {
  OPS_FILL_NORMAL = 0, // about -3..3, with a few larger ones
  OPS_FILL_UNIT,       // -1..1
  OPS_FILL_POSITIVE,   // 0.1..1
  OPS_FILL_IDS,        // whole numbers, 0..limit-1
  OPS_FILL_LENGTHS,    // whole numbers, 0..limit; bench: limit, for costs are those of full lengths
  OPS_FILL_DISTINCT,   // 0..limit-1, all different; limit is at least their number
  OPS_FILL_ORDER,      // a permutation of 0..limit-1; tests put no bad ids into it
  OPS_FILL_STARTS,     // ascending from 0 to limit; nor into it
  OPS_FILL_LIMIT       // limit, all of them; nor into it
} OpsFill;

// A tensor of a call: batch x rows x cols, the last axis contiguous, strides in elements.
typedef struct OpsView {
  const char *name;
  size_t field; // offset of its pointer in the argument structure
  const void *at;
  SolDtype dtype;
  OpsRole role;
  bool optional;                // may be NULL
  bool extra;                   // an optional output that sol_op_cost does not count
  int64_t batch, rows, cols;    // batch 0: 1
  int64_t stride, batch_stride; // 0: dense
  int alias;                    // 1 + the view it may coincide with exactly (in place); 0: none
  OpsFill fill;
  int64_t limit; // of ids
  bool finite;   // tests put no NaN, infinities or huge values into it
  bool scratch;  // a workspace: written, but its contents after the call mean nothing
  double unit;   // what was subtracted from the result: its rounding is part of a small result's error
} OpsView;
// The view of the pointer `member` of the arguments `a`, a `type`; the rest: its dtype, its role, and so on.
#define OPS_VIEW(type, member, ...) ((OpsView){#member, offsetof(type, member), a->member, __VA_ARGS__})

// A test or bench case, in the same terms for all operations; `make` turns it into arguments.
typedef struct OpsCase {
  int64_t dim[4];
  SolDtype dtype, out_dtype, weight_dtype, id_dtype; // 0: the operation's default
  int64_t pad;                                       // rows are that many elements further apart than dense
  int option;                                        // 0 .. def->options - 1
} OpsCase;

typedef struct OpsDef {
  const char *name;
  const char *cost_name; // the accountant's operation where that has another name
  const char *shape;     // "MxN": what dim holds
  size_t args_bytes;
  int options; // how many values OpsCase.option takes (0: 1)
  const char *const *option_names;
  // Fills *args but its pointers. false: there is no such case (a dtype pair it does not take, say).
  bool (*make)(const OpsCase *c, void *args);
  // Lists the tensors, in order of the argument structure. Called first, with unchecked arguments: no
  // arithmetic that could overflow, no divisions by arguments.
  int (*views)(const void *args, OpsView *v);
  // What is wrong with the arguments beyond sizes, pointers and overlaps, which ops_call checks; may be NULL.
  // The caller puts the operation's name before the message.
  SolStatus (*check)(const void *args, SolError *err);
  // The CPU's code: `cpu`; or, where that is NULL, `cpu_rows` on rows begin to end - 1 of the second tensor,
  // which several threads call.
  SolStatus (*cpu)(SolContext *ctx, const void *args);
  void (*cpu_rows)(const void *args, int64_t begin, int64_t end);
  SolStatus (*launch)(SolContext *ctx, const void *args, SolStream stream);
  // at[i]: view i as dense doubles (NULL: absent); inputs as stored, outputs to be written. at[OPS_TERMS]: NULL, or where
  // slack_of_terms is set, of each element of the first view the root of the sum of squares of the terms that it is
  // the sum of, to be written as well.
  void (*reference)(const void *args, double *const *at);
  // The arguments as sol_op_cost takes them, for bytes and FLOPs; op->op is set by the caller.
  void (*cost)(const void *args, SolOpArgs *op);
  // Adds what the accountant's operation does not have, an epilogue's tensors for example; may be NULL.
  void (*cost_more)(const void *args, SolCost *out);
  // |got - reference| may be rounding of the output's type plus this times 2^-24 times the row's largest
  // value.
  double slack;
  double (*slack_of)(const void *args); // where that depends on the arguments; NULL: it does not
  // Of the first view, times that root instead: where each term is rounded, sums may be much smaller than their errors.
  bool slack_of_terms;
  const int64_t (*shapes)[4]; // tests add dtypes, alignment, strides and special values
  int shape_count;
  const int64_t (*bench)[4];
  int bench_count;
  // Kernels: file kernels/MODULE/MODULE.cu and the names in it.
  const char *module;
  const char *const *kernels;
  int kernel_count;
  // The most dynamic shared memory of each kernel, for those that may take more than 48 KiB; NULL: none does.
  const uint32_t *shared;
  uint32_t least_shared; // where a GPU has less than that, the kernels take so much; 0: they cannot
  void (*loaded)(SolContext *ctx,
                 SolDriverKernel *const *kernels); // called once, before a launch; may be NULL
} OpsDef;
#define OPS_ARGS(Args, shape_text) .args_bytes = sizeof(Args), .shape = shape_text
// For definitions whose file has all of these as static functions of the same names; the second, with the
// CPU's code as cpu_rows.
#define OPS_OWN_FUNCTIONS OPS_OWN_BUT_CPU, .cpu = cpu
#define OPS_OWN_ROWS      OPS_OWN_BUT_CPU, .cpu_rows = cpu_rows
#define OPS_OWN_BUT_CPU                                                                                      \
  .make = make, .views = views, .check = check, .launch = launch, .reference = reference, .cost = cost
#define OPS_OPTIONS(names) .options = (int)SOL_COUNT(names), .option_names = names
#define OPS_KERNELS(module_name, names)                                                                      \
  .module = module_name, .kernels = names, .kernel_count = (int)SOL_COUNT(names)
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
  SolSpin busy;      // held by the call that uses the pool; concurrent calls run on their own thread
  int cc, sms;       // cc: 90 for sm_90
  int device;        // cuda: the GPU's number
  int clusters
      [2][OPS_CLUSTER]; // of GEMM, of 1 to 8 blocks, one or two to an SM, that run at a time; 0: not known
  bool trust_pointers;
  unsigned checks;      // emu: SOL_EMU_CHECK_...; tests turn them on
  uint64_t async_order; // emu: SolEmuLaunch.async_order, which tests set
  int32_t polls; // tests: looks before a block of silu_mul gives its part of a row up; 0: its own number
  SolLock *one_at_a_time;               // emu: an emulator serves one thread at a time; NULL elsewhere
  SolLock *loading;                     // held while kernels are loaded; NULL for cpu
  SolDriverModule *modules[OPS_COUNT];  // operations of one file share theirs
  SolDriverKernel **kernels[OPS_COUNT]; // loaded when first needed
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
  bool one_param; // SolDriverLaunch.one_param
} OpsLaunch;
SolStatus ops_launch(SolContext *ctx, const OpsDef *def, const OpsLaunch *launch, SolStream stream);
// A grid, along x and y, of at least `threads` threads; kernels get a thread's number from thread_index().
void ops_grid(uint32_t grid[3], uint64_t threads, uint32_t block);
int ops_index(const SolContext *ctx, const OpsDef *def); // OPS_name
// Loads the kernels of an operation if they are not loaded; any thread may, and a graph may be being recorded.
SolStatus ops_load(SolContext *ctx, int op, SolError *err);
bool ops_has_kernel(SolContext *ctx, const OpsDef *def, int kernel);

// The cost of a call by sol_op_cost: the body of every sol_X_cost.
SolStatus ops_cost(const OpsDef *def, const void *args, SolCost *out, SolError *err);

// Shapes that row operations are tested on: single elements, odd, prime, no whole vectors, wide.
enum { OPS_ROW_SHAPES = 14 };
extern const int64_t ops_row_shapes[OPS_ROW_SHAPES][4];
// Shapes that row operations are timed on, the fewest rows first.
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

// Fields that many argument structures have alike: from a case, and for the cost.
#define OPS_MATRIX_CASE(c)                                                                                   \
  .m = (c)->dim[0], .n = (c)->dim[1], .dtype = (c)->dtype, .out_dtype = (c)->out_dtype
#define OPS_MATRIX_COST(a) .dim = {(a)->m, (a)->n}, .dtype = (a)->dtype, .out_dtype = (a)->out_dtype

static inline int64_t ops_stride(int64_t given, int64_t dense) {
  return given ? given : dense;
}
static inline int64_t ops_ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}
static inline int ops_size(SolDtype d) {
  return sol_dtype_bits(d) / 8;
}

// Dtypes
static inline bool ops_is_real(SolDtype d) {
  return d == SOL_FP32 || d == SOL_FP16 || d == SOL_BF16;
}
static inline SolDtype ops_or(SolDtype given, SolDtype fallback) {
  return given ? given : fallback;
}
// How kernels number the element types they load and store (kernels/common.h).
int ops_kind(SolDtype dtype);
// For `check`: the operation converts among fp32, fp16 and bf16; ids are int32 or int64.
SolStatus ops_check_reals(SolDtype in, SolDtype out, SolError *err);
SolStatus ops_check_ids(const char *tensor, SolDtype dtype, SolError *err);
// The largest power of two, up to 16, that divides the address and the stride in bytes (rows > 1).
int ops_align(const void *at, int64_t stride_bytes, int64_t rows);

#endif
