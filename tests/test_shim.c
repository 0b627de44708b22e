// The runtime on the emulator without nvcc: programs' start-up code is played by hand, on PTX written here.
// Runs under the sanitizers, too, where the library beside $SOL was built with them.
#define _GNU_SOURCE
#include "check.h"

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#define ENTRIES(X)                                                                                           \
  X(cudaMalloc)                                                                                              \
  X(cudaFree)                                                                                                \
  X(cudaMallocHost)                                                                                          \
  X(cudaFreeHost)                                                                                            \
  X(cudaMallocManaged)                                                                                       \
  X(cudaMallocPitch)                                                                                         \
  X(cudaMalloc3D)                                                                                            \
  X(cudaMallocArray)                                                                                         \
  X(cudaFreeArray)                                                                                           \
  X(cudaMallocAsync)                                                                                         \
  X(cudaFreeAsync)                                                                                           \
  X(cudaHostAlloc)                                                                                           \
  X(cudaHostRegister)                                                                                        \
  X(cudaHostUnregister)                                                                                      \
  X(cudaHostGetDevicePointer)                                                                                \
  X(cudaHostGetFlags)                                                                                        \
  X(cudaMemcpy)                                                                                              \
  X(cudaMemcpyAsync)                                                                                         \
  X(cudaMemcpy2D)                                                                                            \
  X(cudaMemcpy3D)                                                                                            \
  X(cudaMemcpyToSymbol)                                                                                      \
  X(cudaMemcpyFromSymbol)                                                                                    \
  X(cudaMemcpy2DToArray)                                                                                     \
  X(cudaMemset)                                                                                              \
  X(cudaMemset3D)                                                                                            \
  X(cudaMemsetAsync)                                                                                         \
  X(cudaMemGetInfo)                                                                                          \
  X(cudaPointerGetAttributes)                                                                                \
  X(cudaStreamCreate)                                                                                        \
  X(cudaStreamDestroy)                                                                                       \
  X(cudaStreamSynchronize)                                                                                   \
  X(cudaStreamWaitEvent)                                                                                     \
  X(cudaStreamBeginCapture)                                                                                  \
  X(cudaStreamEndCapture)                                                                                    \
  X(cudaStreamIsCapturing)                                                                                   \
  X(cudaStreamGetId)                                                                                         \
  X(cudaEventCreate)                                                                                         \
  X(cudaEventDestroy)                                                                                        \
  X(cudaEventRecord)                                                                                         \
  X(cudaEventElapsedTime)                                                                                    \
  X(cudaEventSynchronize)                                                                                    \
  X(cudaGetKernel)                                                                                           \
  X(cudaLaunchKernel)                                                                                        \
  X(cudaLaunchKernelExC)                                                                                     \
  X(cudaLaunchHostFunc)                                                                                      \
  X(cudaFuncGetAttributes)                                                                                   \
  X(cudaFuncSetAttribute)                                                                                    \
  X(cudaOccupancyMaxActiveBlocksPerMultiprocessor)                                                           \
  X(cudaGraphCreate)                                                                                         \
  X(cudaGraphDestroy)                                                                                        \
  X(cudaGraphAddKernelNode)                                                                                  \
  X(cudaGraphAddMemsetNode)                                                                                  \
  X(cudaGraphAddEmptyNode)                                                                                   \
  X(cudaGraphAddHostNode)                                                                                    \
  X(cudaGraphAddMemcpyNode)                                                                                  \
  X(cudaGraphAddChildGraphNode)                                                                              \
  X(cudaGraphGetNodes)                                                                                       \
  X(cudaGraphClone)                                                                                          \
  X(cudaGraphDestroyNode)                                                                                    \
  X(cudaGraphInstantiate)                                                                                    \
  X(cudaGraphLaunch)                                                                                         \
  X(cudaGraphExecUpdate)                                                                                     \
  X(cudaGraphExecDestroy)                                                                                    \
  X(cudaGetDeviceProperties)                                                                                 \
  X(cudaDeviceGetAttribute)                                                                                  \
  X(cudaGetDeviceCount)                                                                                      \
  X(cudaDeviceGetLimit)                                                                                      \
  X(cudaDeviceSynchronize)                                                                                   \
  X(cudaDeviceReset)                                                                                         \
  X(cudaGetLastError)                                                                                        \
  X(cudaPeekAtLastError)                                                                                     \
  X(cudaGetErrorName)                                                                                        \
  X(cudaCreateTextureObject)                                                                                 \
  X(cudaCreateSurfaceObject)                                                                                 \
  X(cudaGetSymbolAddress)                                                                                    \
  X(cudaGetSymbolSize)                                                                                       \
  X(cudaLibraryLoadData)                                                                                     \
  X(cudaMemPoolCreate)                                                                                       \
  X(cudaMemPoolGetAttribute)                                                                                 \
  X(cudaUserObjectCreate)                                                                                    \
  X(cudaGraphRetainUserObject)
typedef struct Runtime {
#define ENTRY(name) __typeof__(&name) name;
  ENTRIES(ENTRY)
#undef ENTRY
  void **(*register_binary)(void *);
  void (*register_function)(void **, const char *, char *, const char *, int, void *, void *, void *, void *,
                            int *);
  void (*register_variable)(void **, char *, char *, const char *, int, size_t, int, int);
  void (*unregister_binary)(void **);
  cudaError_t (*import_memory)(void *, void *); // cudaImportExternalMemory: one that is missing
} Runtime;
static Runtime rt;

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .align 4 .u32 total = 5;\n"
    ".visible .entry bump(.param .u64 p, .param .u32 by) {\n"
    "  .reg .u64 %rd<4>; .reg .u32 %r<4>;\n"
    "  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [by]; mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4;\n"
    "  add.u64 %rd1, %rd1, %rd2; ld.global.u32 %r3, [%rd1]; add.u32 %r3, %r3, %r1;\n"
    "  st.global.u32 [%rd1], %r3; ret;\n}\n";

static struct {
  unsigned magic, version;
  const void *data;
  const void *more;
} wrapper, broken;
static unsigned char image[4096], junk[64];
static char bump_stub, lost_stub, junk_stub; // their addresses stand for the host's functions
static char total_shadow;
static void **handle;

static void make_image(void) {
  size_t text = sizeof ptx, padded = (text + 7) / 8 * 8;
  unsigned long long whole = 64 + padded;
  static const unsigned char magic[] = {0x50, 0xed, 0x55, 0xba, 0x01, 0x00, 0x10, 0x00};
  memcpy(image, magic, sizeof magic);
  memcpy(image + 8, &whole, 8);
  unsigned short kind[2] = {1, 0x101};
  unsigned head = 64, arch = 80;
  unsigned long long size = padded;
  memcpy(image + 16, kind, 4);
  memcpy(image + 20, &head, 4);
  memcpy(image + 24, &size, 8);
  memcpy(image + 44, &arch, 4);
  memcpy(image + 80, ptx, text);
}

static bool open_runtime(void) {
  const char *sol = getenv("SOL");
  char path[4096];
  if (!sol) sol = "build/sol";
  snprintf(path, sizeof path, "%.*s/shim/libcudart.so.13", (int)(strrchr(sol, '/') - sol), sol);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return printf("no runtime on the emulator: %s\n", dlerror()), false;
  void *found = NULL;
#define ENTRY(name)                                                                                          \
  found = dlsym(library, #name);                                                                             \
  memcpy(&rt.name, &found, sizeof found);                                                                    \
  CHECK_MSG(found != NULL, "no %s", #name);
  ENTRIES(ENTRY)
#undef ENTRY
  const struct {
    const char *name;
    void *to;
  } hidden[] = {{"__cudaRegisterFatBinary", &rt.register_binary},
                {"__cudaRegisterFunction", &rt.register_function},
                {"__cudaRegisterVar", &rt.register_variable},
                {"__cudaUnregisterFatBinary", &rt.unregister_binary},
                {"cudaImportExternalMemory", &rt.import_memory}};
  for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
    found = dlsym(library, hidden[i].name);
    memcpy(hidden[i].to, &found, sizeof found);
    CHECK_MSG(found != NULL, "no %s", hidden[i].name);
  }
  return true;
}

static void start_program(void) {
  make_image();
  wrapper.magic = broken.magic = 0x466243b1u;
  wrapper.version = broken.version = 1;
  wrapper.data = image;
  broken.data = junk;
  handle = rt.register_binary(&wrapper);
  rt.register_function(handle, &bump_stub, NULL, "bump", -1, NULL, NULL, NULL, NULL, NULL);
  rt.register_function(handle, &lost_stub, NULL, "not_in_the_ptx", -1, NULL, NULL, NULL, NULL, NULL);
  rt.register_variable(handle, &total_shadow, NULL, "total", 0, 4, 0, 0);
  void **other = rt.register_binary(&broken);
  rt.register_function(other, &junk_stub, NULL, "bump", -1, NULL, NULL, NULL, NULL, NULL);
}

#define OK(call)         check_int((call), cudaSuccess, #call, __FILE__, __LINE__)
#define IS(call, error)  check_int((call), (error), #call, __FILE__, __LINE__)
#define HANDLE(type, at) ((type)(void *)(at))

static cudaError_t bump(int *x, int by, cudaStream_t stream) {
  void *args[] = {&x, &by};
  return rt.cudaLaunchKernel(&bump_stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, args, 0, stream);
}

TEST(registered_program) {
  int *x, h[32] = {0}, total = 0, by = 3;
  OK(rt.cudaMalloc((void **)&x, sizeof h));
  OK(rt.cudaMemset(x, 0, sizeof h));
  OK(bump(x, 3, NULL));
  OK(bump(x, 4, NULL));
  OK(rt.cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(h[0] == 7 && h[31] == 7);
  OK(rt.cudaMemcpyFromSymbol(&total, &total_shadow, 4, 0, cudaMemcpyDeviceToHost));
  CHECK_INT(total, 5);
  void *args[] = {&x, &by}, *half[] = {&x, NULL};
  dim3 one = {1, 1, 1};
  IS(rt.cudaLaunchKernel(&lost_stub, one, one, args, 0, NULL), cudaErrorInvalidDeviceFunction);
  IS(rt.cudaLaunchKernel(&junk_stub, one, one, args, 0, NULL), cudaErrorInvalidKernelImage);
  IS(rt.cudaLaunchKernel(&junk_stub, one, one, args, 0, NULL), cudaErrorInvalidKernelImage);
  IS(rt.cudaLaunchKernel(&bump_stub, one, one, NULL, 0, NULL), cudaErrorInvalidValue);
  IS(rt.cudaLaunchKernel(&bump_stub, one, one, half, 0, NULL), cudaErrorInvalidValue);
  IS(rt.cudaLaunchKernel(NULL, one, one, args, 0, NULL), cudaErrorInvalidResourceHandle);
  OK(rt.cudaFree(x));
}

TEST(null_arguments) {
  size_t n;
  int v;
  IS(rt.cudaMalloc(NULL, 4), cudaErrorInvalidValue);
  IS(rt.cudaMallocHost(NULL, 4), cudaErrorInvalidValue);
  IS(rt.cudaMallocManaged(NULL, 4, cudaMemAttachGlobal), cudaErrorInvalidValue);
  IS(rt.cudaMallocPitch(NULL, &n, 4, 4), cudaErrorInvalidValue);
  IS(rt.cudaMalloc3D(NULL, (struct cudaExtent){1, 1, 1}), cudaErrorInvalidValue);
  IS(rt.cudaMallocArray(NULL, NULL, 4, 4, 0), cudaErrorInvalidValue);
  IS(rt.cudaMallocAsync(NULL, 4, NULL), cudaErrorInvalidValue);
  IS(rt.cudaHostAlloc(NULL, 4, 0), cudaErrorInvalidValue);
  IS(rt.cudaHostRegister(NULL, 4, 0), cudaErrorInvalidValue);
  IS(rt.cudaHostGetDevicePointer(NULL, &v, 0), cudaErrorInvalidValue);
  IS(rt.cudaHostGetFlags(NULL, &v), cudaErrorInvalidValue);
  IS(rt.cudaMemcpy3D(NULL), cudaErrorInvalidValue);
  IS(rt.cudaMemset(NULL, 0, 4), cudaErrorInvalidValue);
  IS(rt.cudaPointerGetAttributes(NULL, &v), cudaErrorInvalidValue);
  OK(rt.cudaMemGetInfo(NULL, NULL));
  IS(rt.cudaStreamCreate(NULL), cudaErrorInvalidValue);
  IS(rt.cudaStreamIsCapturing(NULL, NULL), cudaErrorInvalidValue);
  IS(rt.cudaEventCreate(NULL), cudaErrorInvalidValue);
  IS(rt.cudaEventElapsedTime(NULL, NULL, NULL), cudaErrorInvalidValue);
  IS(rt.cudaEventRecord(NULL, NULL), cudaErrorInvalidResourceHandle);
  IS(rt.cudaLaunchKernelExC(NULL, &bump_stub, NULL), cudaErrorInvalidValue);
  IS(rt.cudaLaunchHostFunc(NULL, NULL, NULL), cudaErrorInvalidValue);
  IS(rt.cudaFuncGetAttributes(NULL, &bump_stub), cudaErrorInvalidValue);
  IS(rt.cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, &bump_stub, 32, 0), cudaErrorInvalidValue);
  IS(rt.cudaGraphCreate(NULL, 0), cudaErrorInvalidValue);
  IS(rt.cudaGraphInstantiate(NULL, NULL, 0), cudaErrorInvalidValue);
  IS(rt.cudaGraphAddKernelNode(NULL, NULL, NULL, 0, NULL), cudaErrorInvalidValue);
  IS(rt.cudaGraphAddMemcpyNode(NULL, NULL, NULL, 0, NULL), cudaErrorInvalidValue);
  IS(rt.cudaGraphAddHostNode(NULL, NULL, NULL, 0, NULL), cudaErrorInvalidValue);
  IS(rt.cudaGraphExecUpdate(NULL, NULL, NULL), cudaErrorInvalidValue);
  IS(rt.cudaGraphLaunch(NULL, NULL), cudaErrorInvalidValue);
  IS(rt.cudaGetDeviceProperties(NULL, 0), cudaErrorInvalidValue);
  IS(rt.cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0), cudaErrorInvalidValue);
  IS(rt.cudaGetDeviceCount(NULL), cudaErrorInvalidValue);
  IS(rt.cudaDeviceGetLimit(NULL, cudaLimitStackSize), cudaErrorInvalidValue);
  IS(rt.cudaCreateTextureObject(NULL, NULL, NULL, NULL), cudaErrorInvalidValue);
  IS(rt.cudaCreateSurfaceObject(NULL, NULL), cudaErrorInvalidValue);
  IS(rt.cudaGetSymbolAddress(NULL, &total_shadow), cudaErrorInvalidValue);
  IS(rt.cudaGetSymbolSize(NULL, &total_shadow), cudaErrorInvalidValue);
  IS(rt.cudaGetSymbolSize(&n, NULL), cudaErrorInvalidSymbol);
  IS(rt.cudaLibraryLoadData(NULL, NULL, NULL, NULL, 0, NULL, NULL, 0), cudaErrorInvalidValue);
  IS(rt.cudaMemPoolCreate(NULL, NULL), cudaErrorInvalidValue);
  IS(rt.cudaMemPoolGetAttribute(NULL, cudaMemPoolAttrUsedMemCurrent, NULL), cudaErrorInvalidValue);
  IS(rt.cudaUserObjectCreate(NULL, NULL, NULL, 0, 0), cudaErrorInvalidValue);
  OK(rt.cudaFree(NULL));
  OK(rt.cudaFreeHost(NULL));
  OK(rt.cudaFreeArray(NULL));
  IS(rt.cudaPeekAtLastError(), cudaErrorInvalidValue);
  IS(rt.cudaGetLastError(), cudaErrorInvalidValue);
  OK(rt.cudaGetLastError());
}

TEST(made_up_handles) {
  long place[4] = {0};
  size_t count;
  enum cudaStreamCaptureStatus status;
  IS(rt.cudaStreamDestroy(HANDLE(cudaStream_t, place)), cudaErrorInvalidResourceHandle);
  IS(rt.cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
  IS(rt.cudaStreamSynchronize(HANDLE(cudaStream_t, place)), cudaErrorInvalidResourceHandle);
  IS(rt.cudaStreamIsCapturing(HANDLE(cudaStream_t, place), &status), cudaErrorInvalidResourceHandle);
  IS(rt.cudaMemsetAsync(place, 0, 8, HANDLE(cudaStream_t, place)), cudaErrorInvalidResourceHandle);
  IS(rt.cudaEventDestroy(HANDLE(cudaEvent_t, place)), cudaErrorInvalidResourceHandle);
  IS(rt.cudaEventSynchronize(HANDLE(cudaEvent_t, place)), cudaErrorInvalidResourceHandle);
  IS(rt.cudaStreamWaitEvent(NULL, HANDLE(cudaEvent_t, place), 0), cudaErrorInvalidResourceHandle);
  IS(rt.cudaGraphDestroy(HANDLE(cudaGraph_t, place)), cudaErrorInvalidValue);
  IS(rt.cudaGraphDestroyNode(HANDLE(cudaGraphNode_t, place)), cudaErrorInvalidValue);
  IS(rt.cudaGraphGetNodes(HANDLE(cudaGraph_t, place), NULL, &count), cudaErrorInvalidValue);
  IS(rt.cudaGraphExecDestroy(HANDLE(cudaGraphExec_t, place)), cudaErrorInvalidValue);
  IS(rt.cudaFreeArray(HANDLE(cudaArray_t, place)), cudaErrorContextIsDestroyed);
  IS(rt.cudaMemcpy2DToArray(HANDLE(cudaArray_t, place), 0, 0, place, 8, 8, 1, cudaMemcpyHostToDevice),
     cudaErrorInvalidResourceHandle);
  IS(rt.cudaFree(place), cudaErrorInvalidValue);
  IS(rt.cudaFreeHost(place), cudaErrorInvalidValue);
  rt.cudaGetLastError();
}

TEST(extreme_sizes) {
  void *p = &p;
  size_t pitch;
  char h[8] = {0};
  int *d;
  IS(rt.cudaMalloc(&p, SIZE_MAX), cudaErrorMemoryAllocation);
  CHECK(p == NULL);
  IS(rt.cudaMallocHost(&p, SIZE_MAX), cudaErrorMemoryAllocation);
  IS(rt.cudaMallocManaged(&p, SIZE_MAX, cudaMemAttachGlobal), cudaErrorMemoryAllocation);
  IS(rt.cudaMallocPitch(&p, &pitch, SIZE_MAX, 2), cudaErrorMemoryAllocation);
  IS(rt.cudaMallocPitch(&p, &pitch, 1 << 20, SIZE_MAX / 4), cudaErrorMemoryAllocation);
  OK(rt.cudaMalloc((void **)&d, 64));
  IS(rt.cudaMemcpy(d, h, SIZE_MAX, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  IS(rt.cudaMemcpy(h, d, SIZE_MAX - 8, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  IS(rt.cudaMemcpy2D(d, SIZE_MAX, h, SIZE_MAX, 4, 3, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  IS(rt.cudaMemset(d, 0, SIZE_MAX), cudaErrorInvalidValue);
  struct cudaPitchedPtr box = {d, SIZE_MAX / 2, 4, SIZE_MAX / 2};
  IS(rt.cudaMemset3D(box, 0, (struct cudaExtent){4, 3, 3}), cudaErrorInvalidValue);
  struct cudaMemcpy3DParms c = {.srcPtr = {d, 16, 16, SIZE_MAX}, .dstPtr = {d, 16, 16, 2}};
  c.extent = (struct cudaExtent){4, 2, 2};
  c.kind = cudaMemcpyDeviceToDevice;
  IS(rt.cudaMemcpy3D(&c), cudaErrorInvalidValue);
  IS(rt.cudaFuncSetAttribute(&bump_stub, cudaFuncAttributeMaxDynamicSharedMemorySize, INT32_MAX),
     cudaErrorInvalidValue);
  OK(rt.cudaFree(d));
  rt.cudaGetLastError();
}

TEST(very_many_objects) {
  enum { COUNT = 3000 };
  static cudaStream_t streams[COUNT];
  static cudaEvent_t events[COUNT];
  static void *shared[COUNT];
  for (int round = 0; round < 2; round++) {
    int bad = 0;
    for (int i = 0; i < COUNT; i++) {
      bad += rt.cudaStreamCreate(&streams[i]) != cudaSuccess;
      bad += rt.cudaEventCreate(&events[i]) != cudaSuccess;
      bad += rt.cudaMallocManaged(&shared[i], (size_t)(i % 700 + 1), cudaMemAttachGlobal) != cudaSuccess;
      memset(shared[i], 0xee, (size_t)(i % 700 + 1));
    }
    for (int i = 0; i < COUNT; i++) { // not in the order of making
      int k = (i * 1001 + round) % COUNT;
      bad += rt.cudaEventRecord(events[k], streams[k]) != cudaSuccess;
      bad += rt.cudaStreamDestroy(streams[k]) != cudaSuccess;
      bad += rt.cudaEventDestroy(events[k]) != cudaSuccess;
      bad += rt.cudaFree(shared[k]) != cudaSuccess;
    }
    CHECK_INT(bad, 0);
  }
  unsigned char *fresh;
  OK(rt.cudaMallocHost((void **)&fresh, 600));
  int dirty = 0;
  for (int i = 0; i < 600; i++) dirty += fresh[i] != 0; // what is used again starts as zero
  CHECK_INT(dirty, 0);
  OK(rt.cudaFreeHost(fresh));
}

static void release(void *data) {
  ++*(int *)data;
}

TEST(long_graph) {
  enum { COUNT = 500 };
  cudaGraph_t graph, clone, child;
  cudaGraphExec_t exec;
  cudaGraphNode_t last = NULL, node;
  int *x, h[32] = {0}, by = 2, released = 0;
  OK(rt.cudaMalloc((void **)&x, sizeof h));
  OK(rt.cudaMemset(x, 0, sizeof h));
  OK(rt.cudaGraphCreate(&graph, 0));
  void *args[] = {&x, &by};
  struct cudaKernelNodeParams k = {&bump_stub, {1, 1, 1}, {32, 1, 1}, 0, args, NULL};
  for (int i = 0; i < COUNT; i++) {
    OK(rt.cudaGraphAddKernelNode(&node, graph, last ? &last : NULL, last != NULL, &k));
    last = node;
  }
  cudaUserObject_t object;
  OK(rt.cudaUserObjectCreate(&object, &released, release, 1, cudaUserObjectNoDestructorSync));
  OK(rt.cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  OK(rt.cudaGraphClone(&clone, graph));
  OK(rt.cudaGraphCreate(&child, 0));
  OK(rt.cudaGraphAddChildGraphNode(&node, child, NULL, 0, clone));
  OK(rt.cudaGraphDestroy(clone));
  OK(rt.cudaGraphInstantiate(&exec, child, 0));
  CHECK_INT(released, 0);
  OK(rt.cudaGraphDestroy(graph));
  CHECK_INT(released, 1);
  OK(rt.cudaGraphLaunch(exec, NULL));
  OK(rt.cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
  CHECK_INT(h[31], COUNT * 2);
  OK(rt.cudaGraphExecDestroy(exec));
  OK(rt.cudaGraphDestroy(child));
  OK(rt.cudaFree(x));
}

TEST(streams_that_end_while_captured) {
  cudaStream_t s, t;
  cudaEvent_t e;
  cudaGraph_t graph;
  int *x;
  OK(rt.cudaMalloc((void **)&x, 128));
  OK(rt.cudaStreamCreate(&s));
  OK(rt.cudaStreamCreate(&t));
  OK(rt.cudaEventCreate(&e));
  OK(rt.cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  OK(bump(x, 1, s));
  OK(rt.cudaEventRecord(e, s));
  OK(rt.cudaStreamWaitEvent(t, e, 0));
  OK(bump(x, 1, t));
  OK(rt.cudaStreamDestroy(s)); // the origin: all of it is given up
  IS(rt.cudaStreamEndCapture(t, &graph), cudaErrorIllegalState);
  OK(rt.cudaStreamWaitEvent(t, e, 0)); // of a capture that is over
  OK(bump(x, 1, t));
  OK(rt.cudaStreamDestroy(t));
  OK(rt.cudaEventDestroy(e));
  OK(rt.cudaFree(x));
  rt.cudaGetLastError();
}

static void *work(void *ctx) {
  int *errors = ctx, *x, h[32];
  cudaStream_t s;
  for (int round = 0; round < 20; round++) {
    *errors += rt.cudaStreamCreate(&s) != cudaSuccess;
    *errors += rt.cudaMallocAsync((void **)&x, sizeof h, s) != cudaSuccess;
    *errors += rt.cudaMemsetAsync(x, 0, sizeof h, s) != cudaSuccess;
    for (int i = 0; i < 5; i++) *errors += bump(x, 1, s) != cudaSuccess;
    *errors += rt.cudaMemcpyAsync(h, x, sizeof h, cudaMemcpyDeviceToHost, s) != cudaSuccess;
    *errors += rt.cudaStreamSynchronize(s) != cudaSuccess;
    *errors += h[7] != 5;
    *errors += rt.cudaFreeAsync(x, s) != cudaSuccess;
    *errors += rt.cudaStreamDestroy(s) != cudaSuccess;
  }
  return NULL;
}

TEST(many_threads) {
  enum { COUNT = 8 };
  pthread_t threads[COUNT];
  int errors[COUNT] = {0};
  for (int i = 0; i < COUNT; i++) CHECK(!pthread_create(&threads[i], NULL, work, &errors[i]));
  for (int i = 0; i < COUNT; i++) {
    pthread_join(threads[i], NULL);
    CHECK_INT(errors[i], 0);
  }
}

TEST(fault_and_reset) {
  int *x, h = 0;
  OK(rt.cudaMalloc((void **)&x, 64)); // the kernel writes 128 bytes
  OK(bump(x, 1, NULL));
  OK(rt.cudaGetLastError());
  IS(rt.cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  IS(rt.cudaMemcpy(&h, x, 4, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
  IS(rt.cudaGetLastError(), cudaErrorIllegalAddress);
  IS(rt.cudaGetLastError(), cudaErrorIllegalAddress); // it stays
  OK(rt.cudaDeviceReset());
  OK(rt.cudaGetLastError());
  OK(rt.cudaMalloc((void **)&x, 128));
  OK(bump(x, 1, NULL));
  OK(rt.cudaDeviceSynchronize());
}

// What a call that is missing says, and only once.
TEST(missing_entry_point) {
  int was = dup(2), pipes[2];
  char said[512] = {0};
  CHECK(!pipe(pipes));
  dup2(pipes[1], 2);
  IS(rt.import_memory(NULL, NULL), cudaErrorNotSupported);
  IS(rt.import_memory(NULL, NULL), cudaErrorNotSupported);
  fflush(stderr);
  dup2(was, 2);
  close(pipes[1]);
  CHECK(read(pipes[0], said, sizeof said - 1) > 0);
  close(pipes[0]);
  CHECK_STR(said,
            "sol: this program calls cudaImportExternalMemory, which the emulator does not support yet\n");
  rt.cudaGetLastError();
}

TEST(unregistered_binary) {
  void *args[] = {NULL};
  rt.unregister_binary(handle);
  IS(rt.cudaLaunchKernel(&bump_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL),
     cudaErrorInvalidResourceHandle);
  rt.unregister_binary(handle);
  rt.unregister_binary(NULL);
  // A handle that was taken in time, of a binary that was never loaded.
  static char late_stub;
  static __typeof__(wrapper) late;
  late = wrapper;
  void **other = rt.register_binary(&late);
  rt.register_function(other, &late_stub, NULL, "bump", -1, NULL, NULL, NULL, NULL, NULL);
  cudaKernel_t kernel = NULL;
  OK(rt.cudaGetKernel(&kernel, &late_stub));
  rt.unregister_binary(other);
  IS(rt.cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL),
     cudaErrorInvalidKernelImage);
}

int main(int argc, char **argv) {
  if (!open_runtime()) return 77;
  start_program();
  return check_main(argc, argv);
}

#else
int main(void) {
  puts("no CUDA headers");
  return 77;
}
#endif
