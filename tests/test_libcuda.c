// The driver's interface on the emulator: what programs do with it, and the codes that misuse gets.
#define _GNU_SOURCE
#if __has_include(<cuda.h>)
#include "libcuda_rig.h"

static const char add_ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".global .u32 scale = 3;\n"
    ".visible .entry add(.param .u64 to, .param .u32 value, .param .u64 from) {\n"
    ".reg .u64 %p<4>; .reg .u32 %r<5>;\n"
    "ld.param.u64 %p1, [to]; ld.param.u32 %r1, [value]; ld.param.u64 %p2, [from];\n"
    "mov.u32 %r2, %tid.x; mul.wide.u32 %p3, %r2, 4; add.u64 %p2, %p2, %p3; add.u64 %p1, %p1, %p3;\n"
    "ld.global.u32 %r3, [%p2]; ld.global.u32 %r4, [scale]; mad.lo.u32 %r3, %r3, %r4, %r1;\n"
    "st.global.u32 [%p1], %r3; ret; }\n";
static const char caller_ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .u32 r) seven();\n"
    ".visible .entry store(.param .u64 to) {\n.reg .u64 %p; .reg .u32 %r;\n"
    "ld.param.u64 %p, [to]; { .param .u32 got; call (got), seven; ld.param.u32 %r, [got]; }\n"
    "st.global.u32 [%p], %r; ret; }\n";
static const char seven_ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                                ".visible .func (.param .u32 r) seven() { st.param.u32 [r], 7; ret; }\n";

// Before anything else: tests run in the order of the file.
TEST(uninitialized) {
  CUdeviceptr p;
  CUdevice device;
  int count, version = 0;
  CHECK_INT(CU(cuDeviceGetCount)(&count), CUDA_ERROR_NOT_INITIALIZED);
  CHECK_INT(CU(cuMemAlloc)(&p, 4), CUDA_ERROR_NOT_INITIALIZED);
  OK(CU(cuDriverGetVersion)(&version));
  CHECK_INT(version, CUDA_VERSION);
  CHECK_INT(CU(cuInit)(1), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuInit)(0));
  OK(CU(cuDeviceGetCount)(&count));
  CHECK_INT(count, 1);
  OK(CU(cuDeviceGet)(&device, 0));
  CHECK_INT(CU(cuDeviceGet)(&device, 1), CUDA_ERROR_INVALID_DEVICE);
  CHECK_INT(CU(cuMemAlloc)(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(device) {
  char name[64] = "";
  int value = 0, major = 0;
  size_t bytes = 0;
  OK(CU(cuDeviceGetName)(name, sizeof name, 0));
  CHECK_HAS(name, "H100");
  OK(CU(cuDeviceGetName)(name, 5, 0));
  CHECK_INT(strlen(name), 4);
  OK(CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  CHECK_INT(value, 132);
  OK(CU(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  CHECK_INT(major, 9);
  OK(CU(cuDeviceTotalMem)(&bytes, 0));
  CHECK(bytes > (size_t)70 << 30);
  CHECK_INT(CU(cuDeviceGetAttribute)(&value, (CUdevice_attribute)0, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1), CUDA_ERROR_INVALID_DEVICE);
  CHECK_INT(CU(cuDeviceGetName)(NULL, 5, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(errors) {
  const char *text = NULL;
  OK(CU(cuGetErrorName)(CUDA_ERROR_CONTEXT_IS_DESTROYED, &text));
  CHECK_STR(text, "CUDA_ERROR_CONTEXT_IS_DESTROYED");
  OK(CU(cuGetErrorString)(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK_STR(text, "out of memory");
  CHECK_INT(CU(cuGetErrorName)((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
  CHECK(!text);
}

// ---- modules and launches ----

enum { COUNT = 32 };
static void check_sums(CUdeviceptr at, unsigned plus) {
  unsigned host[COUNT] = {0};
  OK(CU(cuMemcpyDtoH)(host, at, sizeof host));
  for (unsigned i = 0; i < COUNT; i++) CHECK_INT(host[i], i * 3 + plus);
}

TEST(launches) {
  CUmodule module;
  CUfunction function;
  CUdeviceptr from, to, scale;
  CUstream stream;
  size_t bytes = 0, offset = 0, size = 0;
  unsigned host[COUNT], value = 100;
  begin();
  OK(CU(cuModuleLoadData)(&module, add_ptx));
  OK(CU(cuModuleGetFunction)(&function, module, "add"));
  OK(CU(cuModuleGetGlobal)(&scale, &bytes, module, "scale"));
  CHECK_INT(bytes, 4);
  OK(CU(cuFuncGetParamInfo)(function, 2, &offset, &size));
  CHECK(offset == 16 && size == 8);
  OK(CU(cuMemAlloc)(&from, sizeof host));
  OK(CU(cuMemAlloc)(&to, sizeof host));
  for (unsigned i = 0; i < COUNT; i++) host[i] = i;
  OK(CU(cuMemcpyHtoD)(from, host, sizeof host));
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  void *params[] = {&to, &value, &from};
  OK(CU(cuLaunchKernel)(function, 1, 1, 1, COUNT, 1, 1, 0, stream, params, NULL));
  OK(CU(cuStreamSynchronize)(stream));
  check_sums(to, 100);

  struct {
    CUdeviceptr to;
    unsigned value;
    CUdeviceptr from;
  } packed = {to, 200, from};
  size_t packed_size = sizeof packed;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_size,
                   CU_LAUNCH_PARAM_END};
  OK(CU(cuLaunchKernel)(function, 1, 1, 1, COUNT, 1, 1, 0, NULL, NULL, extra));
  check_sums(to, 200);
  CHECK_INT(CU(cuLaunchKernel)(function, 1, 1, 1, COUNT, 1, 1, 0, NULL, params, extra),
            CUDA_ERROR_INVALID_VALUE);
  packed_size = 32; // more than the parameters have
  CHECK_INT(CU(cuLaunchKernel)(function, 1, 1, 1, COUNT, 1, 1, 0, NULL, NULL, extra),
            CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);

  value = 300;
  CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = COUNT, .blockDimY = 1};
  config.blockDimZ = 1;
  OK(CU(cuLaunchKernelEx)(&config, function, params, NULL));
  check_sums(to, 300);
  CHECK_INT(CU(cuLaunchKernel)(function, 0, 1, 1, COUNT, 1, 1, 0, NULL, params, NULL),
            CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuLaunchKernel)(function, 1, 1, 1, 2048, 1, 1, 0, NULL, params, NULL),
            CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuLaunchKernel)((CUfunction)&value, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
            CUDA_ERROR_INVALID_HANDLE);
  CHECK_INT(CU(cuModuleGetFunction)(&function, module, "nothing"), CUDA_ERROR_NOT_FOUND);
  OK(CU(cuStreamDestroy)(stream));
  CHECK_INT(CU(cuStreamSynchronize)(stream), CUDA_ERROR_INVALID_HANDLE);
  OK(CU(cuModuleUnload)(module));
  CHECK_INT(CU(cuModuleUnload)(module), CUDA_ERROR_INVALID_HANDLE);
  CHECK_INT(CU(cuModuleGetFunction)(&function, module, "add"), CUDA_ERROR_INVALID_HANDLE);
  CHECK_INT(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
  OK(CU(cuMemFree)(to));
  CHECK_INT(CU(cuMemFree)(to), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuMemcpyDtoH)(host, to, sizeof host), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuMemFree)(from));
}

// A graph built node by node: a fill, a kernel with parameters in one buffer, a copy to the host.
TEST(graph_nodes) {
  CUmodule module;
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNode fill, add, copy, from_nodes[4], to_nodes[4];
  CUdeviceptr from, to;
  unsigned got[COUNT] = {0};
  size_t count = 4;
  begin();
  OK(CU(cuModuleLoadData)(&module, add_ptx));
  CUDA_KERNEL_NODE_PARAMS kernel = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = COUNT};
  kernel.blockDimY = kernel.blockDimZ = 1;
  OK(CU(cuModuleGetFunction)(&kernel.func, module, "add"));
  OK(CU(cuMemAlloc)(&from, sizeof got));
  OK(CU(cuMemAlloc)(&to, sizeof got));
  OK(CU(cuGraphCreate)(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS ones = {.dst = from, .value = 1, .elementSize = 4, .width = COUNT, .height = 1};
  OK(CU(cuGraphAddMemsetNode)(&fill, graph, NULL, 0, &ones, NULL));
  struct {
    CUdeviceptr to;
    unsigned value;
    CUdeviceptr from;
  } packed = {to, 10, from};
  size_t packed_size = sizeof packed;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_size,
                   CU_LAUNCH_PARAM_END};
  kernel.extra = extra;
  OK(CU(cuGraphAddKernelNode)(&add, graph, &fill, 1, &kernel));
  CUDA_MEMCPY3D out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = to, .Height = 1, .Depth = 1};
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = got;
  out.WidthInBytes = sizeof got;
  OK(CU(cuGraphAddMemcpyNode)(&copy, graph, &add, 1, &out, NULL));
  OK(CU(cuGraphGetEdges)(graph, from_nodes, to_nodes, NULL, &count));
  CHECK(count == 2 && from_nodes[0] == fill && to_nodes[1] == copy);
  OK(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  OK(CU(cuGraphLaunch)(exec, NULL));
  OK(CU(cuStreamSynchronize)(NULL));
  CHECK(got[0] == 13 && got[COUNT - 1] == 13);
  unsigned value = 20;
  void *params[] = {&to, &value, &from};
  kernel.extra = NULL;
  kernel.kernelParams = params;
  OK(CU(cuGraphExecKernelNodeSetParams)(exec, add, &kernel));
  OK(CU(cuGraphLaunch)(exec, NULL));
  OK(CU(cuStreamSynchronize)(NULL));
  CHECK_INT(got[7], 23);
  CUDA_KERNEL_NODE_PARAMS read = {0};
  OK(CU(cuGraphKernelNodeGetParams)(add, &read)); // the graph's own node is as it was
  CHECK(read.func == kernel.func && *(unsigned *)read.kernelParams[1] == 10);
  OK(CU(cuGraphExecDestroy)(exec));
  OK(CU(cuGraphDestroy)(graph));
  OK(CU(cuModuleUnload)(module));
}

TEST(bad_images) {
  CUmodule module;
  CUlibrary loaded;
  char log[64] = "old";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  begin();
  CHECK_INT(CU(cuModuleLoadDataEx)(&module, ".version 8.0\nnonsense", 2, options, values),
            CUDA_ERROR_INVALID_PTX);
  CHECK_STR(log, "");
  CHECK(!values[1]);
  CHECK_INT(CU(cuModuleLoadData)(&module, "\177ELF and more"), CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK_INT(CU(cuModuleLoadData)(&module, NULL), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuModuleLoad)(&module, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
  OK(CU(cuLibraryLoadData)(&loaded, add_ptx, NULL, NULL, 0, NULL, NULL, 0));
  CUkernel kernel;
  CUfunction function;
  int threads = 0, grid = 0, block = 0;
  OK(CU(cuLibraryGetKernel)(&kernel, loaded, "add"));
  OK(CU(cuKernelGetFunction)(&function, kernel));
  OK(CU(cuFuncGetAttribute)(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  CHECK_INT(threads, 1024);
  OK(CU(cuOccupancyMaxPotentialBlockSize)(&grid, &block, function, NULL, 0, 0));
  CHECK(block == 1024 && grid == 264);
  OK(CU(cuLibraryUnload)(loaded));
}

TEST(linker) {
  CUlinkState link;
  CUmodule module;
  CUfunction function;
  CUdeviceptr to;
  void *image = NULL;
  size_t size = 0;
  unsigned got = 0;
  begin();
  OK(CU(cuLinkCreate)(0, NULL, NULL, &link));
  CHECK_INT(CU(cuLinkComplete)(link, &image, &size), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuLinkAddData)(link, CU_JIT_INPUT_PTX, (void *)caller_ptx, sizeof caller_ptx, "caller", 0, NULL,
                       NULL));
  OK(CU(cuLinkAddData)(link, CU_JIT_INPUT_PTX, (void *)seven_ptx, sizeof seven_ptx, "seven", 0, NULL, NULL));
  OK(CU(cuLinkComplete)(link, &image, &size));
  void *kept = malloc(size); // programs keep the image, and drop the linker
  memcpy(kept, image, size);
  OK(CU(cuLinkDestroy)(link));
  CHECK_INT(CU(cuLinkDestroy)(link), CUDA_ERROR_INVALID_HANDLE);
  OK(CU(cuModuleLoadData)(&module, kept));
  free(kept);
  OK(CU(cuModuleGetFunction)(&function, module, "store"));
  OK(CU(cuMemAlloc)(&to, 4));
  void *params[] = {&to};
  OK(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  OK(CU(cuMemcpyDtoH)(&got, to, 4));
  CHECK_INT(got, 7);
  OK(CU(cuMemFree)(to));
}

// Sol's stand-in for nvJitLink joins units as the driver's linker does.
TEST(jitlink) {
  typedef void *Handle;
  static const char *const options[] = {"-arch=sm_90"};
  char path[4096], log[512] = "";
  Handle link = NULL;
  size_t size = 0;
  CUmodule module;
  CUfunction function;
  Dl_info self;
  CHECK(dladdr(find("cuInit"), &self));
  snprintf(path, sizeof path, "%.*s/libnvJitLink.so.13", (int)(strrchr(self.dli_fname, '/') - self.dli_fname),
           self.dli_fname);
  void *linker = dlopen(path, RTLD_NOW);
  CHECK_MSG(linker, "no %s", path);
  if (!linker) return;
#define JIT(name, types) ((int(*) types)dlsym(linker, "nvJitLink" #name))
  CHECK_INT(JIT(Create, (Handle *, unsigned, const char *const *))(&link, 0, NULL), 2); // no architecture
  OK(JIT(Create, (Handle *, unsigned, const char *const *))(&link, 1, options));
  OK(JIT(AddData, (Handle, int, const void *, size_t, const char *))(link, 2, caller_ptx, sizeof caller_ptx,
                                                                     "caller"));
  CHECK_INT(JIT(AddData, (Handle, int, const void *, size_t, const char *))(link, 1, "\177ELF", 5, "code"),
            8);
  OK(JIT(GetErrorLogSize, (Handle, size_t *))(link, &size));
  CHECK(size <= sizeof log);
  OK(JIT(GetErrorLog, (Handle, char *))(link, log));
  CHECK_HAS(log, "code: it is machine code");
  OK(JIT(AddData, (Handle, int, const void *, size_t, const char *))(link, 2, seven_ptx, sizeof seven_ptx,
                                                                     "seven"));
  OK(JIT(Complete, (Handle))(link));
  OK(JIT(GetLinkedCubinSize, (Handle, size_t *))(link, &size));
  void *image = malloc(size);
  OK(JIT(GetLinkedCubin, (Handle, void *))(link, image));
  OK(JIT(Destroy, (Handle *))(&link));
  CHECK(!link);
  begin();
  OK(CU(cuModuleLoadData)(&module, image));
  OK(CU(cuModuleGetFunction)(&function, module, "store"));
  OK(CU(cuModuleUnload)(module));
  free(image);
}

// ---- memory ----

TEST(memory) {
  CUdeviceptr p, start = 0;
  size_t pitch = 0, size = 0;
  unsigned short halves[8] = {0};
  void *shared;
  begin();
  CHECK_INT(CU(cuMemAlloc)(&p, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuMemAlloc)(NULL, 4), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuMemAlloc)(&p, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
  OK(CU(cuMemAllocPitch)(&p, &pitch, 100, 4, 4));
  CHECK_INT(pitch, 512);
  OK(CU(cuMemsetD2D16)(p, pitch, 0x1234, 8, 4));
  CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = p, .srcPitch = pitch, .srcY = 2};
  rows.srcXInBytes = 12;
  rows.dstMemoryType = CU_MEMORYTYPE_HOST;
  rows.dstHost = halves;
  rows.dstPitch = 4;
  rows.WidthInBytes = 4;
  rows.Height = 2;
  OK(CU(cuMemcpy2D)(&rows));
  for (int i = 0; i < 4; i++) CHECK_INT(halves[i], 0x1234);
  CHECK_INT(halves[4], 0);
  OK(CU(cuMemGetAddressRange)(&start, &size, p + 700));
  CHECK(start == p && size == 2048);
  CUmemorytype type = 0;
  OK(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
  CHECK_INT(type, CU_MEMORYTYPE_DEVICE);
  CHECK_INT(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1234),
            CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuMemsetD32)(p + 2, 1, 1), CUDA_ERROR_INVALID_VALUE); // misaligned
  CHECK_INT(CU(cuMemsetD8)(p, 1, 4096), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuMemFree)(p));
  CHECK_INT(CU(cuMemGetAddressRange)(&start, &size, p), CUDA_ERROR_NOT_FOUND);
  OK(CU(cuMemAllocHost)(&shared, 64));
  OK(CU(cuMemHostGetDevicePointer)(&p, shared, 0));
  CHECK((void *)(uintptr_t)p == shared);
  OK(CU(cuMemFreeHost)(shared));
  CHECK_INT(CU(cuMemFreeHost)(shared), CUDA_ERROR_INVALID_VALUE);
  CUDA_ARRAY_DESCRIPTOR plane = {
      .Width = 4, .Height = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT16, .NumChannels = 1};
  CUarray array;
  OK(CU(cuArrayCreate)(&array, &plane));
  OK(CU(cuMemcpyHtoA)(array, 2, halves, 4));
  memset(halves, 0, sizeof halves);
  OK(CU(cuMemcpyAtoH)(halves, array, 2, 4));
  CHECK(halves[0] == 0x1234 && halves[1] == 0x1234);
  OK(CU(cuArrayDestroy)(array));
  CHECK_INT(CU(cuArrayDestroy)(array), CUDA_ERROR_CONTEXT_IS_DESTROYED); // as the runtime on an H200
}

// ---- contexts ----

TEST(contexts) {
  CUcontext primary = begin(), first, second, got = NULL;
  CUdeviceptr p;
  CUdevice device = 9;
  OK(CU(cuCtxCreate)(&first, NULL, 0, 0));
  OK(CU(cuMemAlloc)(&p, 16));
  OK(CU(cuCtxCreate)(&second, NULL, CU_CTX_SCHED_SPIN, 0));
  OK(CU(cuCtxGetCurrent)(&got));
  CHECK(got == second);
  OK(CU(cuCtxGetDevice)(&device));
  CHECK_INT(device, 0);
  OK(CU(cuCtxPopCurrent)(&got));
  CHECK(got == second);
  OK(CU(cuCtxGetCurrent)(&got));
  CHECK(got == first);
  OK(CU(cuCtxPushCurrent)(second));
  OK(CU(cuCtxDestroy)(first));                           // while another is current
  CHECK_INT(CU(cuMemFree)(p), CUDA_ERROR_INVALID_VALUE); // it went with its context
  OK(CU(cuCtxDestroy)(second));
  CHECK_INT(CU(cuMemAlloc)(&p, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED); // the first is current again
  CHECK_INT(CU(cuCtxPushCurrent)(second), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK_INT(CU(cuCtxDestroy)(second), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK_INT(CU(cuCtxSetCurrent)((CUcontext)&device), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_INT(CU(cuCtxDestroy)(primary), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_INT(CU(cuCtxCreate)(&first, NULL, 0, 1), CUDA_ERROR_INVALID_DEVICE);
  OK(CU(cuCtxSetCurrent)(primary));
  OK(CU(cuMemAlloc)(&p, 4));
  OK(CU(cuMemFree)(p));
  unsigned flags;
  int active = 0;
  OK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
  CHECK_INT(active, 1);
  while (active) { // each test has retained it once
    OK(CU(cuDevicePrimaryCtxRelease)(0));
    OK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
  }
  CHECK_INT(CU(cuMemAlloc)(&p, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK_INT(CU(cuDevicePrimaryCtxRelease)(0), CUDA_ERROR_INVALID_CONTEXT);
}

// ---- entry points by name ----

TEST(names) {
  void *entry = NULL;
  CUdriverProcAddressQueryResult status;
  CUexternalMemory memory = NULL;
  const CUuuid id = {{1}};
  const void *table;
  begin();
  OK(CU(cuGetProcAddress)("cuMemAlloc", &entry, 13000, 0, &status));
  CHECK(entry == dlsym(library, "cuMemAlloc_v2") && status == CU_GET_PROC_ADDRESS_SUCCESS);
  OK(CU(cuGetProcAddress)("cuCtxCreate", &entry, 12000, 0, NULL));
  CHECK(entry == dlsym(library, "cuCtxCreate_v3"));
  OK(CU(cuGetProcAddress)("cuCtxCreate", &entry, 11000, 0, NULL));
  CHECK(entry == dlsym(library, "cuCtxCreate_v2"));
  OK(CU(cuGetProcAddress)("cuCtxCreate", &entry, 13000, 0, NULL));
  CHECK(entry == dlsym(library, "cuCtxCreate_v4"));
  OK(CU(cuGetProcAddress)("cuCtxGetDevice", &entry, 13000, 0,
                          NULL)); // whose second version has that name alone
  CHECK(entry == dlsym(library, "cuCtxGetDevice"));
  CHECK_INT(CU(cuGetProcAddress)("cuNoSuchThing", &entry, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
  CHECK(!entry && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK_INT(CU(cuGetExportTable)(&table, &id), CUDA_ERROR_NOT_FOUND);
  CHECK_INT(CU(cuImportExternalMemory)(&memory, NULL), CUDA_ERROR_NOT_SUPPORTED);
  CHECK(dlsym(library, "cuLaunchKernel_ptsz") && dlsym(library, "cuMemcpyHtoD_v2_ptds"));
}

// The runtime on the same device: handles are shared, errors are not.
TEST(runtime) {
  CUdeviceptr p;
  CUcontext context = NULL;
  begin();
  OK(CU(cuMemAlloc)(&p, 64));
  CHECK_INT(CU(cuMemAlloc)(&p, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(((int (*)(void))find("cudaGetLastError"))(), 0);
  CHECK_INT(((int (*)(void *))find("cudaFree"))((void *)(uintptr_t)p), 0);
  OK(CU(cuCtxSetCurrent)(NULL)); // now the runtime has been used, and its context is the default
  OK(CU(cuCtxGetCurrent)(&context));
  CHECK(context);
  OK(CU(cuMemAlloc)(&p, 64));
  OK(CU(cuMemFree)(p));
  // What the runtime frees is no longer its context's: the next owner of the address keeps it.
  enum { MANY = 5000 }; // after which addresses are used again
  static void *others[MANY];
  OK(CU(cuCtxCreate)(&context, NULL, 0, 0));
  OK(CU(cuMemAlloc)(&p, 64));
  CHECK_INT(((int (*)(void *))find("cudaFree"))((void *)(uintptr_t)p), 0);
  for (int i = 0; i < MANY; i++) CHECK_INT(((int (*)(void **, size_t))find("cudaMalloc"))(&others[i], 64), 0);
  OK(CU(cuCtxDestroy)(context));
  for (int i = 0; i < MANY; i++) CHECK_INT(((int (*)(void *))find("cudaFree"))(others[i]), 0);
}

TEST(fault) {
  CUmodule module;
  CUfunction function;
  CUdeviceptr to = 64, from = 128;
  unsigned value = 1;
  begin();
  OK(CU(cuModuleLoadData)(&module, add_ptx));
  OK(CU(cuModuleGetFunction)(&function, module, "add"));
  void *params[] = {&to, &value, &from};
  OK(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  CHECK_INT(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_INT(CU(cuMemAlloc)(&to, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
}
#else
#include <stdio.h>
int main(void) {
  puts("no CUDA headers");
  return 77;
}
#endif
