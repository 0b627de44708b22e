// What a careless or hostile program does to the runtime on the emulator: handles used after they are gone,
// objects destroyed while something has them, descriptors closed behind its back. Worth most under ASan.
#define _GNU_SOURCE
#include "check.h"

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/core/state.h"

#define OK(call)        check_int((call), cudaSuccess, #call, __FILE__, __LINE__)
#define IS(call, error) check_int((call), (error), #call, __FILE__, __LINE__)

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry bump(.param .u64 p) {\n"
                          "  .reg .u64 %rd<2>; .reg .u32 %r<2>;\n"
                          "  ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1;\n"
                          "  st.global.u32 [%rd1], %r1; ret;\n}\n";
static char report[256]; // SOL_SHIM_REPORT
static cudaKernel_t kernel;
static int *counter; // on the device

static cudaError_t bump(void) {
  void *args[] = {&counter};
  return cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL);
}

static bool start(void) {
  cudaLibrary_t library;
  return OK(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0)) &&
         OK(cudaLibraryGetKernel(&kernel, library, "bump")) && OK(cudaMalloc((void **)&counter, 4));
}

static void nothing(void *data) {
  ++*(int *)data;
}

static struct cudaHostNodeParams calls(cudaHostFn_t function, void *data) {
  return (struct cudaHostNodeParams){function, data};
}

// ---- lives ----

TEST(an_event_lives_as_long_as_the_nodes_that_have_it) {
  cudaEvent_t event;
  cudaGraph_t graph;
  cudaGraphNode_t record, wait;
  cudaGraphExec_t exec;
  OK(cudaEventCreate(&event));
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphAddEventRecordNode(&record, graph, NULL, 0, event));
  OK(cudaGraphAddEventWaitNode(&wait, graph, &record, 1, event));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaEventDestroy(event));
  OK(cudaGraphLaunch(exec, NULL));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphLaunch(exec, NULL));
  OK(cudaGraphExecDestroy(exec));
  IS(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
}

TEST(a_graph_destroyed_while_it_is_captured_into) {
  cudaStream_t stream, other;
  cudaGraph_t graph, out;
  cudaEvent_t event;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamCreate(&other));
  OK(cudaEventCreate(&event));
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, cudaStreamCaptureModeRelaxed));
  OK(cudaMemsetAsync(counter, 0, 4, stream));
  OK(cudaEventRecord(event, stream));
  OK(cudaStreamWaitEvent(other, event, 0));
  OK(cudaGraphDestroy(graph));
  IS(cudaMemsetAsync(counter, 0, 4, stream), cudaErrorStreamCaptureInvalidated);
  IS(cudaMemsetAsync(counter, 0, 4, other), cudaErrorStreamCaptureInvalidated);
  OK(cudaStreamDestroy(other));
  IS(cudaStreamEndCapture(stream, &out), cudaErrorStreamCaptureInvalidated);
  OK(cudaStreamDestroy(stream));
  OK(cudaEventDestroy(event));
}

TEST(a_node_destroyed_while_others_wait_for_it) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  OK(cudaStreamCreate(&stream));
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
  OK(cudaStreamBeginCaptureToGraph(stream, graph, &node, NULL, 1, cudaStreamCaptureModeRelaxed));
  OK(cudaGraphDestroyNode(node));
  OK(cudaMemsetAsync(counter, 0, 4, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, NULL));
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
}

TEST(a_captured_stream_waits_for_nodes_of_its_own_graph_alone) {
  cudaStream_t stream;
  cudaGraph_t graph, other;
  cudaGraphNode_t nodes[20];
  OK(cudaStreamCreate(&stream));
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphCreate(&other, 0));
  for (int i = 0; i < 20; i++) OK(cudaGraphAddEmptyNode(&nodes[i], other, NULL, 0));
  IS(cudaStreamBeginCaptureToGraph(stream, graph, &nodes[19], NULL, 1, cudaStreamCaptureModeRelaxed),
     cudaErrorInvalidValue);
  OK(cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, cudaStreamCaptureModeRelaxed));
  IS(cudaStreamUpdateCaptureDependencies(stream, &nodes[19], NULL, 1, cudaStreamSetCaptureDependencies),
     cudaErrorInvalidValue);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphDestroy(other));
  OK(cudaStreamDestroy(stream));
}

TEST(references_of_a_user_object_are_moved_once) {
  int destroyed = 0;
  cudaUserObject_t object;
  cudaGraph_t a, b;
  OK(cudaGraphCreate(&a, 0));
  OK(cudaGraphCreate(&b, 0));
  OK(cudaUserObjectCreate(&object, &destroyed, nothing, 1, cudaUserObjectNoDestructorSync));
  OK(cudaGraphRetainUserObject(a, object, 1, cudaGraphUserObjectMove));
  IS(cudaGraphRetainUserObject(b, object, 1, cudaGraphUserObjectMove), cudaErrorInvalidValue);
  IS(cudaUserObjectRelease(object, 1), cudaErrorInvalidValue); // it is the graph's
  IS(cudaUserObjectRetain(object, UINT32_MAX), cudaErrorInvalidValue);
  OK(cudaGraphDestroy(a));
  CHECK_INT(destroyed, 1);
  OK(cudaGraphDestroy(b));
  CHECK_INT(destroyed, 1);
}

TEST(graphs_that_something_owns_are_not_destroyed_by_handle) {
  cudaGraph_t graph, inner, child;
  cudaGraphNode_t node;
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphCreate(&inner, 0));
  OK(cudaGraphAddEmptyNode(&node, inner, NULL, 0));
  OK(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, inner));
  OK(cudaGraphChildGraphNodeGetGraph(node, &child));
  IS(cudaGraphDestroy(child), cudaErrorInvalidValue);
  OK(cudaGraphDestroy(inner));
  OK(cudaGraphDestroy(graph));
}

typedef struct Running {
  cudaStream_t stream;
  cudaGraphExec_t exec;
  int calls;
} Running;
static void destroy_all(void *data) {
  Running *r = data;
  if (r->calls++) return;
  OK(cudaGraphExecDestroy(r->exec));
  OK(cudaStreamDestroy(r->stream));
}

TEST(a_function_of_the_host_destroys_what_runs_it) {
  Running r = {0};
  cudaGraph_t graph;
  cudaGraphNode_t first, second, set;
  struct cudaHostNodeParams params = calls(destroy_all, &r);
  struct cudaMemsetParams fill = {counter, 0, 0, 4, 1, 1};
  OK(cudaStreamCreate(&r.stream));
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphAddHostNode(&first, graph, NULL, 0, &params));
  OK(cudaGraphAddMemsetNode(&set, graph, &first, 1, &fill));
  OK(cudaGraphAddHostNode(&second, graph, &set, 1, &params));
  OK(cudaGraphInstantiate(&r.exec, graph, 0));
  OK(cudaGraphLaunch(r.exec, r.stream));
  CHECK_INT(r.calls, 2);
  OK(cudaGraphDestroy(graph));
}

static void *capture_and_end(void *unused) {
  OK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed));
  OK(cudaMemsetAsync(counter, 0, 4, cudaStreamPerThread));
  return unused;
}

TEST(a_thread_ends_while_its_stream_is_captured) {
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, capture_and_end, NULL));
  pthread_join(thread, NULL);
  OK(cudaMemset(counter, 0, 4)); // no capture goes on that this would break
  OK(bump());
}

// ---- arguments ----

TEST(attributes_of_kernel_nodes_are_checked) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  void *args[] = {&counter};
  struct cudaKernelNodeParams params = {(void *)kernel, {1, 1, 1}, {1, 1, 1}, 0, args, NULL};
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
  cudaLaunchAttributeValue value = {.clusterDim = {65536, 65536, 65536}};
  IS(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &value),
     cudaErrorInvalidClusterSize);
  OK(cudaGraphDestroy(graph));
}

TEST(texel_formats_are_checked_before_they_are_summed) {
  cudaTextureObject_t texture;
  struct cudaTextureDesc how = {0};
  struct cudaResourceDesc what = {.resType = cudaResourceTypeLinear};
  what.res.linear.devPtr = counter;
  what.res.linear.sizeInBytes = 4;
  const struct cudaChannelFormatDesc bad[] = {{INT32_MAX, INT32_MAX, 8, 8, cudaChannelFormatKindFloat},
                                              {264, 0, 0, 0, cudaChannelFormatKindUnsigned},
                                              {-8, 16, 0, 0, cudaChannelFormatKindUnsigned}};
  for (int i = 0; i < 3; i++) {
    what.res.linear.desc = bad[i];
    IS(cudaCreateTextureObject(&texture, &what, &how, NULL), cudaErrorInvalidValue);
  }
}

TEST(copies_to_no_array) {
  char block[64] = {0};
  IS(cudaMemcpy2DToArray(NULL, 0, 0, block, 8, 8, 1, cudaMemcpyHostToDevice), cudaErrorInvalidResourceHandle);
  IS(cudaMemcpy2DFromArray(block, 8, NULL, 0, 0, 8, 1, cudaMemcpyDeviceToHost),
     cudaErrorInvalidResourceHandle);
  IS(cudaMemcpy2DArrayToArray(NULL, 0, 0, NULL, 0, 0, 8, 1, cudaMemcpyDeviceToDevice),
     cudaErrorInvalidResourceHandle);
}

// A position that leads out of all device memory does not make its source the host's.
TEST(copies_from_far_outside_of_their_allocation) {
  char to[64];
  void *p = NULL;
  OK(cudaMalloc(&p, 64));
  struct cudaMemcpy3DParms c = {.srcPtr = {p, 1 << 20, 64, 1 << 10},
                                .dstPtr = {to, 64, 64, 1},
                                .srcPos = {0, 1000, 0},
                                .extent = {64, 1, 1},
                                .kind = cudaMemcpyDefault};
  for (int z = 0; z < 64; z += 21) {
    c.srcPos.z = (size_t)z;
    IS(cudaMemcpy3D(&c), cudaErrorInvalidValue);
  }
  OK(cudaFree(p));
}

TEST(addresses_of_freed_device_memory_are_nobodys) {
  char *memory, host[4] = {1, 2, 3, 4};
  OK(cudaMalloc((void **)&memory, 64));
  OK(cudaFree(memory));
  IS(cudaMemcpy(memory, host, 4, cudaMemcpyDefault), cudaErrorInvalidValue);
  IS(cudaMemcpy(host, memory + 8, 4, cudaMemcpyHostToHost), cudaErrorInvalidValue);
  IS(cudaMemcpy(host, memory + 100, 4, cudaMemcpyDefault), cudaErrorInvalidValue); // behind it
}

// ---- memory ----

TEST(freed_allocations_are_forgotten_in_time) {
  SolEmuMachine machine = {.sms = 1, .workers = 1, .mem_bytes = 1 << 20};
  SolEmu *emu = NULL;
  uint64_t address = 0, first = 0;
  uint32_t most = 0;
  SolError err = {0};
  if (!CHECK(!sol_emu_create(&machine, &emu, &err))) return;
  enum { LIVE = 100, PAIRS = 100000 };
  for (int i = 0; i < LIVE; i++) CHECK(!sol_emu_alloc(emu, 16, "live", &address, &err));
  for (int i = 0; i < PAIRS; i++) {
    CHECK(!sol_emu_alloc(emu, 16, "short", &address, &err));
    CHECK(!sol_emu_free(emu, address, &err));
    if (!first) first = address;
    if (emu->alloc_count > most) most = emu->alloc_count;
  }
  CHECK(most <= LIVE + 3 * EMU_FREED_KEPT);
  CHECK(sol_emu_free(emu, address, &err) == SOL_ERR_ARGUMENT);
  CHECK_HAS(err.message, "was freed before"); // the latest are known
  CHECK(sol_emu_free(emu, first, &err) == SOL_ERR_ARGUMENT);
  CHECK(sol_emu_owns(emu, first) && !sol_emu_host(emu, first, 1));
  static char block[4096];
  for (int i = 0; i < PAIRS; i++) { // the host's own, too
    CHECK(!sol_emu_map(emu, block + i % 4000, 16, "mapped", &err));
    CHECK(!sol_emu_unmap(emu, (uint64_t)(uintptr_t)(block + i % 4000), &err));
    if (emu->alloc_count > most) most = emu->alloc_count;
  }
  CHECK(most <= LIVE + 3 * EMU_FREED_KEPT);
  sol_emu_destroy(emu);
}

// ---- the report ----

static int lines(void) {
  FILE *file = fopen(report, "r");
  int count = 0;
  for (int c; file && (c = getc(file)) != EOF;) count += c == '\n';
  if (file) fclose(file);
  return count;
}

static off_t size_of(const char *path) {
  struct stat s;
  return stat(path, &s) ? -1 : s.st_size;
}

enum { FIRST = 3, LAST = 1100, BEYOND = 1200 };
static void close_all(void) {
  for (int i = FIRST; i < BEYOND; i++) close(i);
}

TEST(the_report_is_written_to_its_own_file_alone) {
  char victim[300], away[300];
  snprintf(victim, sizeof victim, "%s.victim", report);
  snprintf(away, sizeof away, "%s.away", report);
  int before = lines();
  OK(bump());
  CHECK_INT(lines(), before + 1);
  close_all();
  OK(bump());
  CHECK_INT(lines(), before + 2);
  // Every number that it had is the program's, for good.
  int file = open(victim, O_WRONLY | O_CREAT | O_APPEND, 0600);
  for (int i = FIRST; i < LAST; i++)
    if (i != file) dup2(file, i);
  OK(bump());
  OK(bump());
  CHECK_INT(lines(), before + 4);
  CHECK_INT(size_of(victim), 0);
  // Its name is gone, or another file's: nothing is written, and it goes on when that ends.
  CHECK(!rename(report, away));
  close_all();
  OK(bump());
  CHECK(!rename(victim, report));
  OK(bump());
  CHECK_INT(size_of(report), 0);
  CHECK(!rename(away, report));
  OK(bump());
  CHECK_INT(lines(), before + 5);
}

int main(int argc, char **argv) {
  snprintf(report, sizeof report, "%s/sol-report-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
           (int)getpid());
  setenv("SOL_SHIM_REPORT", report, 1);
  if (!start()) return 1;
  int code = check_main(argc, argv);
  unlink(report);
  return code;
}

#else
int main(void) {
  puts("no CUDA headers");
  return 77;
}
#endif
