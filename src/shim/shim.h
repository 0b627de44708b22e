// libcudart on the emulator: what its files share.
//
// An entry point takes the lock, opens the emulated device where that has not happened, does its work and
// notes its error, all by SHIM_CALL. Work on streams runs when it is enqueued, which is one of the orders
// that CUDA allows; while a stream is captured the same ShimWork becomes a node of a graph instead.
//
// The runtime API has no context argument: `shim` below is the one mutable global of the tree. It is never
// taken down, so that calls from exit handlers and late destructors find it.
#ifndef SOL_SHIM_SHIM_H
#define SOL_SHIM_SHIM_H

#include <pthread.h>

#include "driver/driver.h"
#include "sol/device.h"

#pragma GCC visibility push(default) // what the toolkit's headers declare is what this library exports
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

// ---- objects by address ----

// What a pointer that a program hands back may stand for. One table holds all, so that a stale or made-up
// handle is an error and not a crash.
typedef enum ShimKind {
  SHIM_FUNCTION = 1, // address of a __global__ function's stub: ShimKernel
  SHIM_VARIABLE,     // address of a __device__ variable's shadow: ShimVariable
  SHIM_KERNEL,       // the rest: the handle is the object
  SHIM_BINARY,
  SHIM_HOST, // start of memory that kernels share with the host: ShimHost
  SHIM_STREAM,
  SHIM_EVENT,
  SHIM_GRAPH,
  SHIM_NODE,
  SHIM_EXEC,
  SHIM_ARRAY,
  SHIM_MIPMAP,
  SHIM_TEXTURE, // handles that the emulator gave: ShimTexture
  SHIM_SURFACE,
  SHIM_POOL,
  SHIM_POOLED,       // start of an allocation from a pool: ShimPool
  SHIM_GRAPH_MEMORY, // start of what a graph's node allocates: that graph
  SHIM_USER_OBJECT
} ShimKind;
typedef struct ShimEntry {
  const void *key;
  void *value;
  ShimKind kind;
} ShimEntry;
typedef struct ShimTable { // starts as {0}
  ShimEntry *entries;
  size_t count, cap;
} ShimTable;
void *shim_find(const void *key, ShimKind kind);            // NULL
bool shim_put(const void *key, ShimKind kind, void *value); // replaces; false: out of memory
void shim_remove(const void *key, ShimKind kind);
// The next entry of a kind after *at (starts as 0); NULL at the end.
void *shim_next(ShimKind kind, size_t *at);

// ---- programs ----

typedef struct ShimBinary ShimBinary;
typedef struct ShimKernel {
  struct ShimKernel *next;
  ShimBinary *binary;
  const void *stub; // NULL: none
  char *name;
  SolEmuKernel *emu; // NULL until the binary is loaded
  const PtxFunction *fn;
  int registers;          // as ptxas or, where there is no machine code, the emulator counts them
  int stack;              // bytes of a thread's, as ptxas laid it out; 0: none, or not known
  bool by_ptxas;          // registers and stack are its
  size_t dynamic_allowed; // cudaFuncAttributeMaxDynamicSharedMemorySize
  int carveout;
  bool big_clusters; // cudaFuncAttributeNonPortableClusterSizeAllowed
} ShimKernel;

typedef struct ShimVariable {
  struct ShimVariable *next;
  ShimBinary *binary;
  const void *shadow;
  void **managed; // where the host keeps its pointer to it; NULL: not managed
  char *name;
  size_t size;
} ShimVariable;

struct ShimBinary {
  ShimBinary *next;
  const void *wrapper; // as __cudaRegisterFatBinary got it; NULL: a library's
  char *text;          // PTX of a library loaded at run time; NULL
  size_t text_length;
  const void *image;    // its fat binary; NULL
  SolEmuModule *module; // NULL until loaded
  cudaError_t failed;   // why it cannot be loaded
  ShimKernel *kernels;
  ShimVariable *variables;
  char *elf; // machine code, for what only that says; NULL
  size_t elf_size;
  uint32_t number; // tells binaries apart, from 1
  void *handle[1]; // what the program gets as void **
};

cudaError_t shim_load(ShimBinary *binary);
cudaError_t shim_kernel(const void *function, ShimKernel **out); // loaded; by stub or handle
cudaError_t shim_kernel_load(ShimKernel *kernel);
ShimKernel *shim_add_kernel(ShimBinary *binary, const void *stub, const char *name);
// Where a variable lies. `symbol` is its shadow's address.
cudaError_t shim_symbol(const void *symbol, uint64_t *address, uint64_t *bytes);

// ---- work ----

typedef struct ShimGraph ShimGraph;
typedef struct ShimNode ShimNode;
typedef struct ShimEvent ShimEvent;

typedef struct ShimKernelWork {
  ShimKernel *kernel;
  dim3 grid, block, cluster; // cluster: zeros for none
  size_t shared;
  bool cooperative;
  uint8_t *params; // as the kernel takes them; owned
  void **args;     // into params, one each; owned
} ShimKernelWork;
typedef struct ShimSet {
  char *to;
  uint32_t value, element;                   // element: bytes, 1, 2 or 4
  size_t width, height, depth, pitch, slice; // width in elements, pitch and slice in bytes
} ShimSet;
typedef struct ShimWork {
  enum cudaGraphNodeType type;
  ShimKernelWork kernel;
  struct cudaMemcpy3DParms copy;
  ShimSet set;
  struct cudaHostNodeParams host;
  ShimEvent *event;
  struct cudaMemAllocNodeParams alloc;
  void *freed;
  ShimGraph *child;
} ShimWork;

typedef struct ShimNodeList {
  ShimNode **nodes;
  size_t count, cap;
} ShimNodeList;

typedef struct ShimCapture {
  struct ShimCapture *next;
  ShimGraph *graph;
  struct ShimStream *origin;
  bool into_graph; // the graph is the program's own
  bool broken;
  unsigned long long id;
} ShimCapture;

typedef struct ShimStream {
  unsigned long long id;
  unsigned flags;
  int priority;
  double time; // when its work so far has ended, on the modelled clock
  ShimCapture *capture;
  ShimNodeList last; // captured: what the next node depends on
  cudaLaunchAttributeValue window;
} ShimStream;

struct ShimEvent {
  unsigned flags;
  bool recorded;
  double time;
  ShimCapture *capture; // recorded in a captured stream
  unsigned long long capture_id;
  ShimNodeList last;
};

// The stream behind a handle; NULL: none.
ShimStream *shim_stream(cudaStream_t handle);
// Runs the work now, or captures it. What `work` owns stays the caller's.
cudaError_t shim_submit(cudaStream_t handle, const ShimWork *work);
cudaError_t shim_run(ShimStream *stream, const ShimWork *work); // now, captured or not
bool shim_copy_work(ShimWork *to, const ShimWork *from);        // with what it owns; false: out of memory
void shim_drop_work(ShimWork *work);
void shim_wait_stream(ShimStream *stream); // the host's clock waits for it
void shim_wait_all(void);
bool shim_list_add(ShimNodeList *list, ShimNode *node); // once; false: out of memory
void shim_list_free(ShimNodeList *list);
void shim_drop_capture(ShimCapture *capture); // ends it; its graph goes, unless it is the program's
bool shim_joined(const ShimStream *stream);   // captured: others wait for all that it did
bool shim_capturing(void);                    // any stream is being captured

// clock.c: what the modelled clock charges. A kernel that was not counted costs its launch alone: the
// device's published figure, or a microsecond where none is known.
double shim_launch_seconds(void);
double shim_kernel_seconds(const ShimKernelWork *work, const SolEmuResult *result);
double shim_copy_seconds(const struct cudaMemcpy3DParms *copy);
double shim_set_seconds(const ShimSet *set);
struct AuditLaunch;
void shim_describe(const ShimKernelWork *work,
                   struct AuditLaunch *out); // all that the emulator does not know

// launch.c
cudaError_t shim_make_launch(const void *function, dim3 grid, dim3 block, size_t shared, void **args,
                             ShimWork *out);                              // checks all; owns its parameters
cudaError_t shim_run_kernel(const ShimKernelWork *work, double *seconds); // on the modelled clock
size_t shim_static_limit(void); // shared memory of a block that has not asked for more
cudaError_t shim_check_launch(const ShimKernelWork *work);
// occupancy.c: blocks of a loaded kernel that an SM holds; 0: none fits.
cudaError_t shim_active_blocks(int *blocks, const ShimKernel *kernel, int threads, size_t shared);
// copy.c
cudaError_t shim_run_copy(const struct cudaMemcpy3DParms *copy);
cudaError_t shim_run_set(const ShimSet *set);
struct cudaMemcpy3DParms shim_flat_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t shim_check_copy(const struct cudaMemcpy3DParms *copy);
// memory.c, host.c
cudaError_t shim_alloc(size_t bytes, void **out);
cudaError_t shim_free(void *memory);
cudaError_t shim_free_host(void *memory);
void shim_pool_forget(void *memory, uint64_t bytes); // pool.c: it was freed, and may have been a pool's
typedef enum ShimShared { SHIM_PINNED, SHIM_MANAGED, SHIM_REGISTERED } ShimShared;
typedef struct ShimHost {
  void *memory;
  size_t bytes, room; // room: as carved out; 0: not ours
  ShimShared kind;
  unsigned flags;
} ShimHost;
cudaError_t shim_host_alloc(size_t bytes, ShimShared kind, unsigned flags, void **out);
void *shim_host_take(size_t bytes, size_t *room); // zeroed memory at a place kernels can have it too
void shim_host_give(void *memory, size_t room);
size_t shim_host_available(void);  // bytes this machine has left
bool shim_fits_here(size_t bytes); // whether it has so many; asked of the system only for large ones
// graph.c
struct ShimNode {
  ShimGraph *graph;
  ShimWork work;
  ShimNodeList needs; // nodes before it
  ShimNode *original; // in a clone: of which it is one
  bool disabled;      // in an instance
  size_t order, mark;
};
struct ShimGraph {
  ShimNode **nodes; // in order of making
  size_t count, cap;
  bool instantiated;
  bool instance; // belongs to a ShimExec, or is a child: freed with it
  struct ShimUserRef *user_objects;
};
ShimGraph *shim_graph_new(void);
void shim_user_objects_release(ShimGraph *graph);
void shim_graph_free(ShimGraph *graph);
void shim_graph_free_memory(const ShimGraph *graph);
ShimGraph *shim_graph_clone(const ShimGraph *graph);
cudaError_t shim_graph_add(ShimGraph *graph, ShimNode *const *needs, size_t count, const ShimWork *work,
                           ShimNode **out);
cudaError_t shim_graph_run(ShimStream *stream, ShimGraph *graph);
cudaError_t shim_graph_order(ShimGraph *graph, ShimNode ***out); // sorted, count of the graph; free() it
// array.c
typedef struct ShimArray {
  struct cudaChannelFormatDesc format;
  struct cudaExtent extent; // as asked for
  unsigned flags;
  uint64_t address, pitch, slice; // dense
  bool level;                     // of a mipmap, which owns it
} ShimArray;
ShimArray *shim_only_level(cudaMipmappedArray_t mipmap); // NULL: it has several
size_t shim_texel_bytes(const struct cudaChannelFormatDesc *format);
size_t shim_array_rows(const ShimArray *array);
size_t shim_array_slices(const ShimArray *array);

// ---- watching ----

typedef struct ShimLaunch {
  const ShimKernelWork *work;
  const SolEmuModule *module;
  const SolEmuResult *result; // of this launch alone
} ShimLaunch;
typedef struct ShimObserver {
  struct ShimObserver *next;
  void (*launch)(void *ctx, const ShimLaunch *launch);                 // after each, with the lock held
  void (*memory)(void *ctx, bool wrote, const void *at, size_t bytes); // other work wrote or read it; or NULL
  void (*end)(void *ctx);                                              // once, when the process exits
  void *ctx;
} ShimObserver;
// From here on each launch is counted and shown to it. The observer stays the caller's.
void shim_observe(ShimObserver *observer);
void shim_tell_memory(bool wrote, const void *at, size_t bytes);
void shim_report_open(void); // report.c: observes where SOL_SHIM_REPORT or SOL_SHIM_AUDIT asks for it

// ---- the state ----

typedef struct Shim {
  pthread_mutex_t lock;
  bool opened;
  cudaError_t refused; // the device could not be opened
  const SolDevice *device;
  SolDriver *driver;
  SolEmu *emu;
  cudaError_t fault; // of a kernel; until cudaDeviceReset
  bool fault_told;
  ShimTable table;
  ShimBinary *binaries;
  ShimStream legacy;
  ShimCapture *captures;
  unsigned long long next_id;
  uint32_t loaded; // binaries so far
  double time;     // the host's place on the modelled clock
  ShimObserver *observers;
  bool timed;      // the program has events that tell time: launches are counted, for the model
  bool patterns;   // an observer wants them
  bool in_graph;   // what runs belongs to a graph
  uint32_t sample; // waves of a launch that run; 0: all
  void (*progress)(void *ctx, const SolEmuProgress *progress); // NULL: nobody waits for a launch
  void *progress_ctx;
  double deadline;           // of the host's clock, when launches are ended; 0: never
  struct SolBuffer *printed; // by kernels, not yet shown
  size_t limits[8];
  unsigned device_flags;
  struct ShimPool *pool, *current_pool;
  pid_t owner;
} Shim;
extern Shim shim;

cudaError_t shim_enter(void); // locks; the error a call must give back at once, or cudaSuccess
void shim_lock(void);         // without opening the device
cudaError_t shim_leave(cudaError_t error);
#define SHIM_CALL(work)                                                                                      \
  do {                                                                                                       \
    cudaError_t shim_error_ = shim_enter();                                                                  \
    if (!shim_error_) shim_error_ = (work);                                                                  \
    return shim_leave(shim_error_);                                                                          \
  } while (0)
// Runs something of the program's with the lock released.
void shim_call_out(void (*function)(void *), void *argument);
cudaError_t shim_last_error(bool clear);
void shim_set_fault(cudaError_t error);
void shim_show_printed(void);
void shim_print(void *ctx, const char *text, size_t length);
void shim_note(const char *format, ...) SOL_PRINTF(1, 2); // "sol: ..." on standard error
// For a refusal: prints what the emulator said, returns the error.
cudaError_t shim_refuse(cudaError_t error, const char *what, const SolError *err);

// The same entry point for programs built with a default stream per thread.
#define SHIM_TWIN(name, twin)                                                                                \
  extern __typeof__(name) twin __attribute__((alias(#name), visibility("default")))

static inline uint64_t shim_address(const void *pointer) {
  return (uint64_t)(uintptr_t)pointer;
}
static inline void *shim_pointer(uint64_t address) {
  return (void *)(uintptr_t)address;
}

#endif
