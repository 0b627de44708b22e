// Launches one kernel from the command line: its PTX, its arguments as typed. Shared by run-ptx and audit.
//
//   KernelRun run = {.cli = cli, .args = &args->kernel};
//   code = cli_kernel_read(&run, paths, count) || cli_kernel_open(&run, backend, device) ||
//          cli_kernel_pick(&run) ...
//   cli_kernel_close(&run);
//
// Functions that return int return an exit code; for any but EXIT_OK they have printed the reason.
#ifndef SOL_CLI_KERNEL_H
#define SOL_CLI_KERNEL_H

#include "cli/cli.h"
#include "driver/args.h"

typedef struct KernelArgs {
  const char *kernel, *grid, *block, *cluster;
  TextList args, buffers, save;
  int64_t smem, max_instructions, workers, async_order;
  double seconds;
  bool cooperative;
} KernelArgs;

#define KERNEL_OPTIONS(type, field)                                                                          \
  {"kernel",                                                                                                 \
   OPTION_TEXT,                                                                                              \
   offsetof(type, field.kernel),                                                                             \
   "NAME",                                                                                                   \
   0,                                                                                                        \
   0,                                                                                                        \
   "the kernel; may be left out where there is one"},                                                        \
      {"grid", OPTION_TEXT, offsetof(type, field.grid), "X,Y,Z", 0, 0, "blocks"},                            \
      {"block", OPTION_TEXT, offsetof(type, field.block), "X,Y,Z", 0, 0, "threads per block"},               \
      {"cluster", OPTION_TEXT, offsetof(type, field.cluster), "X,Y,Z", 0, 0, "blocks per cluster"},          \
      {"arg", OPTION_TEXTS, offsetof(type, field.args), "ARG", 0, 0, "an argument, in order, as above"},     \
      {"buffer",                                                                                             \
       OPTION_TEXTS,                                                                                         \
       offsetof(type, field.buffers),                                                                        \
       "NAME:TYPE[COUNT]",                                                                                   \
       0,                                                                                                    \
       0,                                                                                                    \
       "a buffer that is no argument itself; --arg @NAME+BYTES points into it"},                             \
      {"smem", OPTION_COUNT, offsetof(type, field.smem), "BYTES", 0, 0, "dynamic shared memory"},            \
      {"cooperative",                                                                                        \
       OPTION_FLAG,                                                                                          \
       offsetof(type, field.cooperative),                                                                    \
       0,                                                                                                    \
       0,                                                                                                    \
       0,                                                                                                    \
       "all blocks resident: grid-wide barriers work"},                                                      \
      {"max-instructions",                                                                                   \
       OPTION_COUNT,                                                                                         \
       offsetof(type, field.max_instructions),                                                               \
       "N",                                                                                                  \
       0,                                                                                                    \
       1,                                                                                                    \
       "stop after N warp instructions"},                                                                    \
      {"async-order",                                                                                        \
       OPTION_COUNT,                                                                                         \
       offsetof(type, field.async_order),                                                                    \
       "N",                                                                                                  \
       0,                                                                                                    \
       1,                                                                                                    \
       "asynchronous copies and wgmma complete as late as they may, in an order drawn from N"},              \
      {"seconds", OPTION_NUMBER, offsetof(type, field.seconds), "S", 0, 0, "stop after S seconds"},          \
      {"workers",                                                                                            \
       OPTION_COUNT,                                                                                         \
       offsetof(type, field.workers),                                                                        \
       "N",                                                                                                  \
       0,                                                                                                    \
       1,                                                                                                    \
       "threads that emulate (default: one a core)"},                                                        \
  {                                                                                                          \
    "save", OPTION_TEXTS, offsetof(type, field.save), "NAME=FILE", 0, 0, "write a buffer to a file, raw"     \
  }
#define KERNEL_ARG_HELP                                                                                      \
  "Arguments: [NAME:]TYPE[COUNT][=INIT] is a buffer: f32[8192*1024], out:f32[1Mi], "                         \
  "ids:s32[64]=random:100. TYPE: f16 bf16 f32 f64 u8 u16 u32 u64 s8 s16 s32 s64. INIT: random (default), "   \
  "random:N, iota, zero, a number, @FILE. A buffer named out... starts as zero. [TYPE:]VALUE is a number; "  \
  "hex:BYTES a structure; @NAME+BYTES points into another buffer.\n"

// All that a run holds, so that it can be let go in one place.
typedef struct KernelRun {
  Cli *cli;
  const KernelArgs *args;
  SolPtxSource sources[MAX_POSITIONAL];
  int source_count;
  SolDriver *driver;
  SolDriverModule *module;
  SolDriverKernel *kernel;
  SolKernelArg arg[MAX_TEXTS], buffer[MAX_TEXTS];
  uint8_t *params;
  SolDriverLaunch launch;
  SolEmuLaunch emu; // limits and the like: the caller's to add to
  SolEmuResult result;
  double seconds;
  char guessed[160]; // in words, what of the geometry was not given; "" for nothing
} KernelRun;

void cli_kernel_close(KernelRun *run);
int cli_kernel_read(KernelRun *run, const char *const *paths, int count);
int cli_kernel_open(KernelRun *run, SolBackend backend, const SolDevice *device); // loads the sources
int cli_kernel_pick(KernelRun *run);      // --kernel, as mangled or as written; or the only one
int cli_kernel_make_args(KernelRun *run); // --buffer, --arg
// --grid, --block, --cluster. `guess`: missing ones are guessed, and `guessed` describes the guess
// (guess.c).
int cli_kernel_geometry(KernelRun *run, bool guess);
// Runs it; Ctrl-C ends it, and what was counted until then is in the result.
int cli_kernel_launch(KernelRun *run);
int cli_kernel_save(KernelRun *run); // --save
const SolKernelArg *cli_kernel_buffer(const KernelRun *run, const char *name,
                                      size_t length); // NULL: no such one

const char *cli_kernel_end_text(SolEmuEnd end); // "done"

// guess.c: how many blocks and threads the kernel is meant for, from its guards and the sizes given.
void cli_kernel_guess(KernelRun *run);

#endif
