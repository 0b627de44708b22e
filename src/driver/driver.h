// One launch interface with two backends: the emulator, and a real GPU through the CUDA driver, which is
// loaded at run time (one binary runs with and without it). Addresses are the backend's device addresses.
#ifndef SOL_DRIVER_DRIVER_H
#define SOL_DRIVER_DRIVER_H

#include "emu/emu.h"
#include "emu/tensor_map.h"
#include "sol/context.h"

typedef struct SolDriver SolDriver;
typedef struct SolDriverModule SolDriverModule;
typedef struct SolDriverKernel SolDriverKernel;

typedef struct SolDriverOptions {
  SolBackend backend;      // cuda, or else emu
  const SolDevice *device; // emu: the GPU to stand for; NULL: h100-sxm. cuda: ignored
  int workers;             // emu: threads; 0: as many as the host has cores
  int gpu;                 // cuda: 1 for the first GPU; 0: the current context's, or the first
  bool track_init;         // emu: for SOL_EMU_CHECK_INIT of global memory
} SolDriverOptions;

// The emulator's machine for a device: its figures, and what src/machine knows of its caches and of its compiler.
SolEmuMachine sol_driver_machine(const SolDevice *device);

// SOL_ERR_UNSUPPORTED where the backend is not to be had here: no driver library, or no GPU.
SolStatus sol_driver_open(const SolDriverOptions *options, SolDriver **out, SolError *err);
void sol_driver_close(SolDriver *driver); // with everything it holds; NULL is fine

SolStatus sol_driver_alloc(SolDriver *driver, uint64_t bytes, const char *label, uint64_t *address,
                           SolError *err);
SolStatus sol_driver_free(SolDriver *driver, uint64_t address, SolError *err);
SolStatus sol_driver_write(SolDriver *driver, uint64_t to, const void *from, uint64_t bytes, SolError *err);
SolStatus sol_driver_read(SolDriver *driver, void *to, uint64_t from, uint64_t bytes, SolError *err);

// PTX text. Several sources are linked together by the emulator; the cuda backend takes one.
SolStatus sol_driver_load(SolDriver *driver, const SolPtxSource *sources, int count, SolDriverModule **out,
                          SolError *err);
// cuda alone: a cubin or a fat binary. Its kernels have no PTX: sol_driver_function is NULL for them.
SolStatus sol_driver_load_image(SolDriver *driver, const void *image, SolDriverModule **out, SolError *err);
// SOL_ERR_NOT_FOUND offers the nearest names.
SolStatus sol_driver_kernel(SolDriverModule *module, const char *name, SolDriverKernel **out, SolError *err);
// The kernel as the PTX has it: its parameters, shared memory, directives.
const PtxFunction *sol_driver_function(const SolDriverKernel *kernel);
const SolPtxModule *sol_driver_ptx(const SolDriverModule *module);
const SolPtxModule *sol_driver_kernel_ptx(const SolDriverKernel *kernel); // of the module it belongs to

typedef struct SolDriverLaunch {
  SolDriverKernel *kernel;
  uint32_t grid[3], block[3], cluster[3]; // cluster: zeros for none
  uint64_t dynamic_shared;
  const void *params; // laid out as the kernel's parameters are
  uint64_t param_bytes;
  // params is the kernel's only parameter, and needs more than 16-byte alignment (a tensor map): where in its parameter
  // space such a parameter begins is known to the CUDA driver alone.
  bool one_param;
  bool cooperative;
  bool early; // cuda: may start before its predecessor in the stream has ended (it waits by griddepcontrol)
  // What the kernel reads in [window, window + window_bytes) is to stay in the part of L2 that
  // sol_driver_persist set apart; 0 bytes: none.
  uint64_t window, window_bytes;
  const SolEmuLaunch *emu; // emu alone: limits, checks, printing; the fields above win; NULL: none
} SolDriverLaunch;

// Launches and waits for the end. emu: `result` (may be NULL) gets the counts and findings. cuda: *seconds
// (may be NULL) is the time between two events around it; emu leaves it alone.
SolStatus sol_driver_launch(SolDriver *driver, const SolDriverLaunch *launch, SolEmuResult *result,
                            double *seconds, SolError *err);

// Launches without waiting (emu: the same as sol_driver_launch, no counts); allocates nothing. From any
// thread. More than 48 KiB of dynamic shared memory must have been allowed first.
SolStatus sol_driver_enqueue(SolDriver *driver, const SolDriverLaunch *launch, SolStream stream,
                             SolError *err);
enum { SOL_DRIVER_SHARED = 48 * 1024 };
SolStatus sol_driver_allow_shared(SolDriverKernel *kernel, uint64_t bytes, SolError *err);
// How many clusters of this launch, whose grid does not count, the GPU can run at a time: fewer than its SMs have room for,
// since a cluster keeps to one GPC and GPCs have different numbers of SMs. emu: not known.
SolStatus sol_driver_active_clusters(SolDriver *driver, const SolDriverLaunch *launch, int *out,
                                     SolError *err);
// A copy within the backend's memory, enqueued as launches are. cuda: the driver moves it, by the GPU's copy
// engine or a kernel of its own.
SolStatus sol_driver_enqueue_copy(SolDriver *driver, uint64_t to, uint64_t from, uint64_t bytes,
                                  SolStream stream, SolError *err);
// Sets so much of L2 apart for windows of launches (SolDriverLaunch.window), or as much as the GPU lets; 0:
// none any more, and what was kept there is let go.
SolStatus sol_driver_persist(SolDriver *driver, uint64_t bytes, SolError *err);
SolStatus sol_driver_sync(SolDriver *driver, SolError *err);
// SOL_ERR_ARGUMENT where the address is not memory that kernels can reach.
SolStatus sol_driver_check_pointer(SolDriver *driver, uint64_t address, uint64_t bytes, SolError *err);

// While it is set, every launch enqueued on the emulator adds its counts there; NULL: no more.
// SOL_ERR_UNSUPPORTED on a GPU. One thread at a time, and slower than without.
typedef struct SolDriverCounts {
  uint64_t launches;
  SolEmuCounts total;
  // Each launch as it ends, with patterns and touches (SolEmuLaunch.observe); NULL: nobody asks.
  void (*launched)(void *ctx, const SolDriverLaunch *launch, const SolEmuResult *result);
  void *ctx;
} SolDriverCounts;
SolStatus sol_driver_count(SolDriver *driver, SolDriverCounts *into, SolError *err);

typedef struct SolDriverInfo {
  int cc, sms;               // cc: 90 for sm_90
  int device;                // cuda: the GPU's number
  int gpus;                  // cuda: that the driver sees; 0: unknown
  int cuda;                  // the newest CUDA that the driver knows, 13000 for 13.0; 0: unknown
  uint64_t l2_bytes;         // 0: unknown
  uint64_t smem_per_sm;      // shared memory, of which a block takes 1 KiB for itself; 0: unknown
  uint64_t smem_per_block;   // the most that a block may use; 0: unknown
  char name[96], driver[32]; // "NVIDIA H200", "580.159.04"; empty: unknown
  char uuid[48];             // "GPU-8a3e94ac-..."; empty: unknown
} SolDriverInfo;
SolStatus sol_driver_info(SolDriver *driver, SolDriverInfo *out, SolError *err);

// Timing, on a real GPU alone: the emulator answers SOL_ERR_UNSUPPORTED. Calls are recorded into a graph, the
// graph is replayed. What a call waits for on the host is then no part of its time.
typedef struct SolDriverGraph SolDriverGraph;
SolStatus sol_driver_stream_open(SolDriver *driver, SolStream *out, SolError *err);
void sol_driver_stream_close(SolDriver *driver, SolStream stream); // NULL is fine
// What is enqueued on the stream from now on is recorded, and runs when the graph does.
SolStatus sol_driver_record(SolDriver *driver, SolStream stream, SolError *err);
// Ends the recording, after a failed call too. NULL for out: what was recorded is dropped.
SolStatus sol_driver_recorded(SolDriver *driver, SolStream stream, SolDriverGraph **out, SolError *err);
void sol_driver_graph_free(SolDriver *driver, SolDriverGraph *graph); // NULL is fine
// Runs the graphs in turn, `warm` times and then `rounds` times (SOL_MAX_ROUNDS at most), without a pause;
// seconds[i] is the time of the i-th of those rounds, between two events.
enum { SOL_MAX_ROUNDS = 101 };
SolStatus sol_driver_replay(SolDriver *driver, SolDriverGraph *const *graphs, int count, int warm, int rounds,
                            SolStream stream, double *seconds, SolError *err);
// Within the GPU's memory; they are enqueued on the default stream.
SolStatus sol_driver_fill(SolDriver *driver, uint64_t at, int byte, uint64_t bytes, SolError *err);
SolStatus sol_driver_copy(SolDriver *driver, uint64_t to, uint64_t from, uint64_t bytes, SolError *err);

// A two-dimensional texture over memory: floats, rows dense, read by whole coordinates plus a half, clamped
// at the edges. The same image gives the same handle until its memory is freed; one thread at a time. cuda:
// rows are a multiple of 32 bytes.
typedef struct SolDriverImage {
  uint64_t address;
  uint32_t width, height; // in texels
  // cuda: a copy of the memory in the GPU's own two-dimensional order, made now and again after
  // sol_driver_write, _fill or a copy has changed it (not after kernels have). emu: row by row all the same.
  bool array;
} SolDriverImage;
SolStatus sol_driver_texture(SolDriver *driver, const SolDriverImage *image, uint64_t *handle, SolError *err);

// The 128 bytes that kernels on this backend take for a tensor map; they are a parameter, 64-byte aligned.
// SOL_ERR_ARGUMENT: tensor copies cannot use it.
SolStatus sol_driver_tensor_map(SolDriver *driver, const SolTensorMap *map, uint8_t out[SOL_TENSOR_MAP_BYTES],
                                SolError *err);

SolEmu *sol_driver_emu(SolDriver *driver); // NULL for cuda

// Several GPUs in one process, each with a driver of its own (SolDriverOptions.gpu); SOL_ERR_UNSUPPORTED on the
// emulator. sol_driver_send copies from the first one's memory to the other's, over their link once
// sol_driver_reach has succeeded, and through the host otherwise.
SolStatus sol_driver_reach(SolDriver *driver, SolDriver *other, SolError *err);
SolStatus sol_driver_send(SolDriver *driver, uint64_t from, SolDriver *other, uint64_t to, uint64_t bytes,
                          SolStream stream, SolError *err);
// Makes the driver's context the calling thread's current one, for libraries that ask for it, such as NCCL. Whether
// it was made so is for sol_driver_leave.
bool sol_driver_enter(SolDriver *driver);
void sol_driver_leave(SolDriver *driver, bool entered);

// A texture as a backend made it.
typedef struct SolDriverTexture {
  uint64_t handle;
  uint64_t base; // of the allocation that the image lies in
  void *array;   // the backend's own; NULL: the texture reads the memory itself
} SolDriverTexture;

// What a backend supplies; cuda.c and emu.c have one each.
typedef struct SolDriverTable {
  const char *name;
  SolStatus (*open)(const SolDriverOptions *options, void **state, SolError *err);
  void (*close)(void *state);
  SolStatus (*alloc)(void *state, uint64_t bytes, const char *label, uint64_t *address, SolError *err);
  SolStatus (*free)(void *state, uint64_t address, SolError *err);
  SolStatus (*write)(void *state, uint64_t to, const void *from, uint64_t bytes, SolError *err);
  SolStatus (*read)(void *state, void *to, uint64_t from, uint64_t bytes, SolError *err);
  SolStatus (*load)(void *state, const SolPtxSource *sources, int count, void **module, SolError *err);
  void (*unload)(void *state, void *module);
  const SolPtxModule *(*ptx)(void *module); // as the backend parsed it; NULL: it does not, driver.c does
  SolStatus (*kernel)(void *state, void *module, const char *name, void **kernel, SolError *err);
  SolStatus (*launch)(void *state, void *kernel, const SolDriverLaunch *launch, SolEmuResult *result,
                      double *seconds, SolError *err);
  SolStatus (*enqueue)(void *state, void *kernel, const SolDriverLaunch *launch, SolStream stream,
                       SolError *err);
  SolStatus (*allow_shared)(void *state, void *kernel, uint64_t bytes, SolError *err);
  // NULL: not known.
  SolStatus (*active_clusters)(void *state, void *kernel, const SolDriverLaunch *launch, int *out,
                               SolError *err);
  SolStatus (*enqueue_copy)(void *state, uint64_t to, uint64_t from, uint64_t bytes, SolStream stream,
                            SolError *err);
  SolStatus (*persist)(void *state, uint64_t bytes, SolError *err);
  SolStatus (*texture)(void *state, const SolDriverImage *image, SolDriverTexture *out, SolError *err);
  // Brings the array up to date; called where there is one.
  SolStatus (*texture_copy)(void *state, const SolDriverImage *image, void *array, SolError *err);
  void (*texture_free)(void *state, SolDriverTexture *texture);
  SolStatus (*tensor_map)(void *state, const SolTensorMap *map, uint8_t *out, SolError *err);
  SolStatus (*sync)(void *state, SolError *err);
  SolStatus (*check_pointer)(void *state, uint64_t address, uint64_t bytes, SolError *err);
  SolStatus (*info)(void *state, SolDriverInfo *out, SolError *err);
  SolStatus (*load_image)(void *state, const void *image, void **module, SolError *err); // NULL: none
  SolStatus (*reach)(void *state, void *other, SolError *err);                           // NULL: none
  SolStatus (*send)(void *state, uint64_t from, void *other, uint64_t to, uint64_t bytes, SolStream stream,
                    SolError *err);
  bool (*enter)(void *state); // NULL: none
  void (*leave)(void *state, bool entered);
  const struct SolDriverTiming *timing; // NULL: none
} SolDriverTable;
// The functions of the same names above.
typedef struct SolDriverTiming {
  SolStatus (*stream_open)(void *state, SolStream *out, SolError *err);
  void (*stream_close)(void *state, SolStream stream);
  SolStatus (*record)(void *state, SolStream stream, SolError *err);
  SolStatus (*recorded)(void *state, SolStream stream, SolDriverGraph **out, SolError *err);
  void (*graph_free)(void *state, SolDriverGraph *graph);
  SolStatus (*replay)(void *state, SolDriverGraph *const *graphs, int count, int warm, int rounds,
                      SolStream stream, double *seconds, SolError *err);
  SolStatus (*fill)(void *state, uint64_t at, int byte, uint64_t bytes, SolError *err);
} SolDriverTiming;
extern const SolDriverTable sol_driver_emu_table, sol_driver_cuda_table;

#endif
