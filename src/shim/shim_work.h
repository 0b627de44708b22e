// Work on streams: launches, copies, events, captures; and its time on the modelled clock.
#ifndef SOL_SHIM_WORK_H
#define SOL_SHIM_WORK_H

#include "shim/shim_programs.h"

#include <pthread.h>

typedef struct ShimGraph ShimGraph;
typedef struct ShimNode ShimNode;
typedef struct ShimEvent ShimEvent;

typedef struct ShimKernelWork {
  ShimKernel *kernel;
  dim3 grid, block, cluster; // cluster: zeros for none
  size_t shared;
  bool cooperative;
  struct cudaAccessPolicyWindow window; // no bytes: none
  uint8_t *params;                      // as the kernel takes them; owned
  void **args;                          // into params, one each; owned
} ShimKernelWork;
typedef struct ShimSet {
  char *to;
  uint32_t value, element;                   // element: bytes, 1, 2 or 4
  size_t width, height, depth, pitch, slice; // width in elements, pitch and slice in bytes
} ShimSet;
typedef enum ShimValueOp {
  SHIM_VALUE_WRITE,
  SHIM_VALUE_GEQ, // the others wait
  SHIM_VALUE_EQ,
  SHIM_VALUE_AND,
  SHIM_VALUE_NOR
} ShimValueOp;
typedef struct ShimValue { // in memory
  ShimValueOp op;
  uint8_t bytes; // 4 or 8
  uint64_t address, value;
} ShimValue;
// The runtime has no name for the type of such nodes; the driver's is CU_GRAPH_NODE_TYPE_BATCH_MEM_OP.
#define SHIM_NODE_VALUE ((enum cudaGraphNodeType)12)
typedef struct ShimConditional ShimConditional;
typedef struct ShimBranches { // of a conditional node; bodies NULL: made when the node is
  ShimConditional *conditional;
  enum cudaGraphConditionalNodeType type;
  unsigned count;
  ShimGraph *bodies[];
} ShimBranches;
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
  ShimBranches *branches;
  ShimValue value;
} ShimWork;
typedef struct ShimHeld ShimHeld;

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
  ShimHeld *held;   // work that waits for a value, and what was enqueued behind it (held.c)
  unsigned running; // items of its work that are running: a host function among them may destroy the stream
  bool destroyed;   // freed when none is running
  bool of_thread;   // cudaStreamPerThread, which has no handle of its own
} ShimStream;

struct ShimEvent {
  unsigned flags;
  unsigned nodes; // of graphs, and held work, that have it
  unsigned held;  // records of it that are held
  bool destroyed; // freed with the last of them
  bool recorded;
  double time;
  ShimCapture *capture; // recorded in a captured stream
  unsigned long long capture_id;
  ShimNodeList last;
};

void shim_event_keep(ShimEvent *event);
void shim_event_drop(ShimEvent *event); // NULL: none

// conditional.c
ShimBranches *shim_branches_clone(const ShimBranches *branches); // NULL: out of memory
void shim_branches_free(ShimBranches *branches);
cudaError_t shim_run_branches(ShimStream *stream, const ShimBranches *branches);
void shim_set_conditional(void *ctx, uint64_t handle, uint32_t value);

// The stream behind a handle; NULL: none.
ShimStream *shim_stream(cudaStream_t handle);
// Runs the work now, or captures it. What `work` owns stays the caller's.
cudaError_t shim_submit(cudaStream_t handle, const ShimWork *work);
cudaError_t shim_run(ShimStream *stream, const ShimWork *work); // now, captured or not
bool shim_copy_work(ShimWork *to, const ShimWork *from);        // with what it owns; false: out of memory
void shim_drop_work(ShimWork *work);
void shim_wait_stream(ShimStream *stream); // the host's clock waits for it
// held.c
cudaError_t shim_run_value(const ShimValue *value); // cudaErrorNotReady: the value is not there
bool shim_holds(const ShimStream *stream);          // what is enqueued there now has to wait
cudaError_t shim_hold(ShimStream *stream, const ShimWork *work);
void shim_go_on(void);                           // runs what was held and can run now
void shim_finish_held(const ShimStream *stream); // until the stream holds nothing; NULL: until none does
void shim_pause(void);                           // gives other threads a chance
void shim_wait_all(void);
bool shim_list_add(ShimNodeList *list, ShimNode *node); // once; false: out of memory
void shim_list_free(ShimNodeList *list);
void shim_drop_capture(ShimCapture *capture);   // ends it; frees its graph, unless the program owns it
bool shim_joined(const ShimStream *stream);     // captured: others wait for all that it did
bool shim_capturing(void);                      // any stream is being captured
void shim_capture_lost(const ShimGraph *graph); // it is destroyed: captures into it are invalidated
void shim_capture_forget(const ShimNode *node); // it is destroyed: later captured nodes do not depend on it

// clock.c: what the modelled clock charges. A kernel that was not counted costs its launch alone: the
// device's published figure, or a microsecond where none is known.
double shim_launch_seconds(void);
double shim_kernel_seconds(const ShimKernelWork *work, const SolEmuResult *result);
bool shim_on_device(const void *pointer); // memory of the device, not mapped memory of the host
double shim_copy_seconds(const struct cudaMemcpy3DParms *copy);
double shim_set_seconds(const ShimSet *set);
struct AuditLaunch;
void shim_describe(const ShimKernelWork *work,
                   struct AuditLaunch *out); // what the emulator's result does not have

// shim_launch.c
cudaError_t shim_make_launch(const void *function, dim3 grid, dim3 block, size_t shared, void **args,
                             ShimWork *out);                              // checks all; owns its parameters
cudaError_t shim_run_kernel(const ShimKernelWork *work, double *seconds); // on the modelled clock
size_t shim_static_limit(void); // shared memory of a block without the opt-in for more
cudaError_t shim_check_launch(const ShimKernelWork *work);
// shim_occupancy.c: blocks of a loaded kernel that an SM holds; 0: none fits.
cudaError_t shim_active_blocks(int *blocks, const ShimKernel *kernel, int threads, size_t shared);
// shim_copy.c
cudaError_t shim_run_copy(const struct cudaMemcpy3DParms *copy);
cudaError_t shim_run_set(const ShimSet *set);
struct cudaMemcpy3DParms shim_flat_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t shim_check_copy(const struct cudaMemcpy3DParms *copy);

typedef struct ShimStreams { // of the one `shim`
  ShimStream legacy;
  ShimCapture *captures;
  unsigned long long next_id;
  uint64_t turns, held;         // work that was ever held; that is now
  unsigned going;               // held work is running
  double time;                  // the host's place on the modelled clock
  bool timed;                   // the program has timing events: launches are counted, for the time model
  int depth;                    // of the running kernel: launched by a kernel that a kernel launched ...
  bool in_graph;                // the running work belongs to a graph
  double deadline;              // of the host's clock, when launches are ended; 0: never
  pthread_key_t thread_streams; // for each thread's cudaStreamPerThread to go with it
  bool has_thread_streams;
} ShimStreams;

#endif
