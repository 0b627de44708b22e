// Prints what the driver's interface answers to questions and to misuse, one line each; the argument names the part.
// driver_answers_h200.txt is what the driver of an H200 printed; the emulator as an H200 must print the same. Where a call
// crashes the driver, the table has no line of it.
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *library;
static void *find(const char *name) {
  void *found = dlsym(library, name);
  if (!found) printf("no %s\n", name), exit(1);
  return found;
}
#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)
#define CU(name)    ((__typeof__(&name))find(TEXT(name)))

static const char *name_of(CUresult result) {
  const char *text = NULL;
  return CU(cuGetErrorName)(result, &text) ? "no name" : text;
}
static sigjmp_buf before;
#define SAY(name, ...)                                                                                       \
  do {                                                                                                       \
    printf("%s(%s): ", #name, #__VA_ARGS__);                                                                 \
    fflush(stdout);                                                                                          \
    puts(sigsetjmp(before, 1) ? "crashes" : name_of(CU(name)(__VA_ARGS__)));                                 \
  } while (0)
#define VALUE(what) printf("  %s: %lld\n", #what, (long long)(what))

static void crashed(int number) {
  if (number == SIGALRM) _exit(write(1, "hangs\n", 6) < 0);
  siglongjmp(before, 1);
}

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".global .u32 scale = 3;\n"
                          ".visible .entry store(.param .u64 to, .param .u32 value) {\n"
                          ".reg .u64 %p; .reg .u32 %r; ld.param.u64 %p, [to]; ld.param.u32 %r, [value];\n"
                          "st.global.u32 [%p], %r; ret; }\n";

static CUcontext begin(void) {
  CUcontext context = NULL;
  CU(cuInit)(0);
  CU(cuDevicePrimaryCtxRetain)(&context, 0);
  CU(cuCtxSetCurrent)(context);
  return context;
}

static void start(void) {
  int number = 0;
  CUdevice device = 0;
  CUdeviceptr p = 0;
  char name[64];
  size_t bytes;
  SAY(cuDeviceGetCount, &number);
  SAY(cuMemAlloc, &p, 4);
  SAY(cuCtxSynchronize);
  SAY(cuInit, 1);
  SAY(cuInit, 0);
  SAY(cuInit, 0);
  SAY(cuMemAlloc, &p, 4);
  SAY(cuCtxSynchronize);
  SAY(cuDeviceGet, &device, 0);
  SAY(cuDeviceGet, &device, -1);
  SAY(cuDeviceGet, &device, 99);
  SAY(cuDeviceGet, NULL, 0);
  SAY(cuDeviceGetName, name, 0, 0);
  SAY(cuDeviceGetName, name, -1, 0);
  SAY(cuDeviceGetName, name, 64, 99);
  SAY(cuDeviceTotalMem, NULL, 0);
  SAY(cuDeviceTotalMem, &bytes, 99);
  SAY(cuDeviceGetAttribute, &number, 0, 0);
  SAY(cuDeviceGetAttribute, &number, 100000, 0);
  SAY(cuDeviceGetAttribute, &number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99);
  SAY(cuDeviceGetAttribute, NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
  SAY(cuDriverGetVersion, NULL);
  SAY(cuDeviceCanAccessPeer, &number, 0, 0);
  SAY(cuDeviceCanAccessPeer, &number, 0, 99);
}

static void contexts(void) {
  CUcontext primary = begin(), first = NULL, second = NULL, got = NULL;
  CUdeviceptr p = 0;
  CUdevice device;
  unsigned flags = 0;
  int active = 0;
  size_t value = 0;
  SAY(cuCtxCreate, &first, NULL, 0, 99);
  SAY(cuCtxCreate, &first, NULL, 1 << 20, 0);
  SAY(cuCtxCreate, NULL, NULL, 0, 0);
  SAY(cuCtxCreate, &first, NULL, 0, 0);
  SAY(cuMemAlloc, &p, 16);
  SAY(cuCtxCreate, &second, NULL, 0, 0);
  SAY(cuMemFree, p);
  SAY(cuCtxPopCurrent, &got);
  VALUE(got == second);
  SAY(cuCtxPopCurrent, NULL);
  SAY(cuCtxGetCurrent, &got);
  VALUE(got == primary);
  SAY(cuCtxGetCurrent, NULL);
  SAY(cuCtxPushCurrent, NULL);
  SAY(cuCtxSetLimit, 99, 1);
  SAY(cuCtxGetLimit, &value, 99);
  SAY(cuCtxGetLimit, NULL, CU_LIMIT_STACK_SIZE);
  SAY(cuCtxGetDevice, NULL);
  SAY(cuCtxGetDevice, &device);
  SAY(cuCtxDestroy, NULL);
  SAY(cuCtxDestroy, first);
  SAY(cuCtxDestroy, second);
  SAY(cuDevicePrimaryCtxGetState, 0, &flags, &active);
  VALUE(active);
  SAY(cuDevicePrimaryCtxGetState, 99, &flags, &active);
  SAY(cuDevicePrimaryCtxSetFlags, 0, 1 << 20);
  SAY(cuDevicePrimaryCtxRetain, NULL, 0);
  SAY(cuDevicePrimaryCtxRetain, &got, 99);
  SAY(cuDevicePrimaryCtxRelease, 99);
  SAY(cuDevicePrimaryCtxRelease, 0);
  SAY(cuDevicePrimaryCtxRelease, 0);
  SAY(cuMemAlloc, &p, 16);
  SAY(cuCtxSetCurrent, NULL);
  SAY(cuMemAlloc, &p, 16);
  SAY(cuCtxPopCurrent, &got);
}

static void modules(void) {
  CUmodule module = NULL, other = NULL;
  CUfunction function = NULL, absent = NULL;
  CUlibrary loaded = NULL;
  CUkernel kernel = NULL;
  CUdeviceptr p = 0, to = 0;
  size_t bytes = 0, offset = 0;
  int number = 0;
  unsigned value = 7;
  begin();
  SAY(cuModuleLoadData, &other, "nonsense");
  SAY(cuModuleLoadData, &other, "");
  SAY(cuModuleLoadData, &other, ".version 8.0\n.target sm_80\n.address_size 64\nnonsense");
  SAY(cuModuleLoadData, &other, ".version 99.0\n.target sm_80\n.address_size 64\n");
  SAY(cuModuleLoadData, &other, ".version 8.0\n.target sm_999\n.address_size 64\n");
  SAY(cuModuleLoadData, &other, NULL);
  SAY(cuModuleLoadData, NULL, ptx);
  SAY(cuModuleLoad, &other, "/nonexistent");
  SAY(cuModuleLoad, &other, NULL);
  SAY(cuModuleLoadData, &module, ptx);
  SAY(cuModuleGetFunction, &absent, module, "nothing");
  SAY(cuModuleGetFunction, &absent, module, "");
  SAY(cuModuleGetFunction, &absent, module, NULL);
  SAY(cuModuleGetFunction, &absent, module, "scale");
  SAY(cuModuleGetFunction, NULL, module, "store");
  SAY(cuModuleGetGlobal, &p, &bytes, module, "nothing");
  SAY(cuModuleGetGlobal, &p, &bytes, module, "store");
  SAY(cuModuleGetGlobal, &p, &bytes, module, NULL);
  SAY(cuModuleGetGlobal, NULL, &bytes, module, "scale");
  SAY(cuModuleGetGlobal, NULL, NULL, module, "scale");
  VALUE(bytes);
  SAY(cuModuleGetFunction, &function, module, "store");
  SAY(cuFuncGetAttribute, &number, 99, function);
  SAY(cuFuncGetAttribute, NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
  SAY(cuFuncGetAttribute, &number, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL);
  SAY(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_NUM_REGS, 1);
  SAY(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30);
  SAY(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1);
  SAY(cuFuncSetCacheConfig, function, 99);
  SAY(cuFuncGetParamInfo, function, 1, &offset, &bytes);
  VALUE(offset);
  VALUE(bytes);
  SAY(cuFuncGetParamInfo, function, 2, &offset, &bytes);
  SAY(cuFuncGetModule, &other, function);
  VALUE(other == module);
  CU(cuMemAlloc)(&to, 64);
  void *params[] = {&to, &value};
  SAY(cuLaunchKernel, function, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
  SAY(cuLaunchKernel, function, 1, 1, 1, 0, 1, 1, 0, NULL, params, NULL);
  SAY(cuLaunchKernel, function, 1, 1, 1, 2048, 1, 1, 0, NULL, params, NULL);
  SAY(cuLaunchKernel, function, 1, 1, 1, 1, 1, 128, 0, NULL, params, NULL);
  SAY(cuLaunchKernel, function, 1, 70000, 1, 1, 1, 1, 0, NULL, params, NULL);
  SAY(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 1 << 20, NULL, params, NULL);
  SAY(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 60000, NULL, params, NULL);
  SAY(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
  SAY(cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
  size_t packed_size = 12;
  struct {
    CUdeviceptr to;
    unsigned value;
  } packed = {to, 8};
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_size,
                   CU_LAUNCH_PARAM_END};
  SAY(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra);
  SAY(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra);
  packed_size = 8;
  SAY(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra);
  packed_size = 16;
  SAY(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra);
  packed_size = 24;
  SAY(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra);
  SAY(cuLaunchCooperativeKernel, function, 1000000, 1, 1, 1024, 1, 1, 0, NULL, params);
  SAY(cuLaunchKernelEx, NULL, function, params, NULL);
  SAY(cuOccupancyMaxActiveBlocksPerMultiprocessor, &number, function, 0, 0);
  SAY(cuOccupancyMaxActiveBlocksPerMultiprocessor, &number, function, 2048, 0);
  SAY(cuOccupancyMaxActiveBlocksPerMultiprocessor, &number, function, 128, 1 << 20);
  SAY(cuOccupancyMaxActiveBlocksPerMultiprocessor, NULL, function, 128, 0);
  SAY(cuCtxSynchronize);
  SAY(cuModuleUnload, NULL);
  SAY(cuModuleUnload, module);
  SAY(cuLibraryLoadData, &loaded, "nonsense", NULL, NULL, 0, NULL, NULL, 0);
  SAY(cuLibraryLoadData, &loaded, ptx, NULL, NULL, 0, NULL, NULL, 0);
  SAY(cuLibraryGetKernel, &kernel, loaded, "nothing");
  SAY(cuLibraryGetKernel, &kernel, loaded, "store");
  SAY(cuLibraryGetGlobal, &p, &bytes, loaded, "nothing");
  SAY(cuLibraryGetGlobal, &p, &bytes, loaded, "scale");
  SAY(cuLibraryUnload, loaded);
  SAY(cuLibraryUnload, NULL);
}

static void memory(void) {
  CUdeviceptr p = 0, q = 0, start = 0;
  size_t bytes = 0, pitch = 0;
  void *host = NULL;
  unsigned number = 0;
  char local[64] = {0};
  begin();
  SAY(cuMemAlloc, &p, 0);
  SAY(cuMemAlloc, NULL, 16);
  SAY(cuMemAlloc, &p, (size_t)1 << 50);
  SAY(cuMemAlloc, &p, 4096);
  SAY(cuMemAllocPitch, &q, &pitch, 100, 4, 4);
  VALUE(pitch);
  SAY(cuMemAllocPitch, &q, &pitch, 100, 4, 3);
  SAY(cuMemAllocPitch, &q, &pitch, 0, 4, 4);
  SAY(cuMemAllocPitch, &q, NULL, 100, 4, 4);
  SAY(cuMemFree, 0);
  SAY(cuMemFree, p + 16);
  SAY(cuMemFree, 64);
  SAY(cuMemGetAddressRange, &start, &bytes, p + 100);
  VALUE(start == p);
  VALUE(bytes);
  SAY(cuMemGetAddressRange, &start, &bytes, 64);
  SAY(cuMemGetAddressRange, NULL, NULL, p);
  SAY(cuMemcpyHtoD, p, local, 64);
  SAY(cuMemcpyHtoD, p, NULL, 64);
  SAY(cuMemcpyHtoD, 0, local, 64);
  SAY(cuMemcpyHtoD, p, local, 0);
  SAY(cuMemcpyDtoH, local, 64, 8);
  SAY(cuMemcpyDtoD, p, 64, 8);
  SAY(cuMemcpy, p, (CUdeviceptr)(uintptr_t)local, 8);
  SAY(cuMemsetD8, p, 1, 0);
  SAY(cuMemsetD8, 64, 1, 8);
  SAY(cuMemsetD16, p + 1, 1, 8);
  SAY(cuMemsetD32, p + 2, 1, 8);
  SAY(cuMemsetD32, p, 1, 8);
  SAY(cuMemsetD2D8, p, 8, 1, 16, 2);
  CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = p, .srcPitch = 64};
  rows.dstMemoryType = CU_MEMORYTYPE_HOST;
  rows.dstHost = local;
  rows.dstPitch = 8;
  rows.WidthInBytes = 8;
  rows.Height = 2;
  SAY(cuMemcpy2D, &rows);
  rows.dstPitch = 4;
  SAY(cuMemcpy2D, &rows);
  rows.dstPitch = 8;
  rows.srcMemoryType = 0;
  SAY(cuMemcpy2D, &rows);
  rows.srcMemoryType = 99;
  SAY(cuMemcpy2D, &rows);
  SAY(cuMemcpy2D, NULL);
  SAY(cuMemAllocHost, &host, 0);
  SAY(cuMemAllocHost, &host, 64);
  SAY(cuMemHostAlloc, &host, 64, 99);
  SAY(cuMemHostGetDevicePointer, &q, host, 0);
  SAY(cuMemHostGetDevicePointer, &q, host, 1);
  SAY(cuMemHostGetDevicePointer, &q, local, 0);
  SAY(cuMemHostGetFlags, &number, host);
  SAY(cuMemHostGetFlags, &number, local);
  SAY(cuMemFreeHost, local);
  SAY(cuMemFreeHost, NULL);
  SAY(cuMemFreeHost, host);
  SAY(cuMemFreeHost, host);
  SAY(cuMemHostUnregister, local);
  SAY(cuMemAllocManaged, &q, 0, CU_MEM_ATTACH_GLOBAL);
  SAY(cuMemAllocManaged, &q, 64, 0);
  SAY(cuMemAllocManaged, &q, 64, CU_MEM_ATTACH_GLOBAL);
  SAY(cuMemFree, q);
  SAY(cuMemFree, q);
  SAY(cuPointerGetAttribute, &number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
  VALUE(number);
  SAY(cuPointerGetAttribute, &number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 64);
  SAY(cuPointerGetAttribute, &number, 99, p);
  SAY(cuPointerGetAttribute, NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
  SAY(cuMemAllocAsync, &q, 0, NULL);
  SAY(cuMemAllocAsync, &q, 64, NULL);
  SAY(cuMemFreeAsync, q, NULL);
  SAY(cuMemFreeAsync, 64, NULL);
  SAY(cuMemFree, p);
  SAY(cuMemFree, p);
  SAY(cuMemcpyDtoH, local, p, 8);
}

static void streams(void) {
  CUstream stream = NULL;
  CUevent event = NULL, other = NULL;
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  CUgraphNode node = NULL;
  CUstreamCaptureStatus status = 0;
  float time;
  size_t count = 0;
  begin();
  SAY(cuStreamCreate, NULL, 0);
  SAY(cuStreamCreate, &stream, 99);
  SAY(cuStreamCreate, &stream, 0);
  SAY(cuStreamQuery, stream);
  SAY(cuStreamGetFlags, stream, NULL);
  SAY(cuStreamWaitEvent, stream, NULL, 0);
  SAY(cuEventCreate, NULL, 0);
  SAY(cuEventCreate, &event, 99);
  SAY(cuEventCreate, &event, 0);
  SAY(cuEventCreate, &other, CU_EVENT_DISABLE_TIMING);
  SAY(cuEventQuery, event);
  SAY(cuEventSynchronize, event);
  SAY(cuEventElapsedTime, &time, event, event);
  SAY(cuEventRecord, event, stream);
  SAY(cuEventRecord, NULL, stream);
  SAY(cuEventRecord, other, stream);
  SAY(cuStreamSynchronize, stream);
  SAY(cuEventElapsedTime, &time, event, other);
  SAY(cuEventElapsedTime, NULL, event, event);
  SAY(cuEventElapsedTime, &time, event, event);
  SAY(cuEventDestroy, NULL);
  SAY(cuStreamDestroy, NULL);
  SAY(cuLaunchHostFunc, stream, NULL, NULL);
  SAY(cuStreamEndCapture, stream, &graph);
  SAY(cuStreamBeginCapture, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL);
  SAY(cuStreamBeginCapture, stream, 99);
  SAY(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  SAY(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  SAY(cuStreamIsCapturing, stream, &status);
  VALUE(status);
  SAY(cuStreamSynchronize, stream);
  SAY(cuStreamEndCapture, stream, &graph);
  SAY(cuGraphCreate, &graph, 1);
  SAY(cuGraphCreate, NULL, 0);
  SAY(cuGraphCreate, &graph, 0);
  SAY(cuGraphAddEmptyNode, &node, graph, NULL, 0);
  SAY(cuGraphAddEmptyNode, &node, NULL, NULL, 0);
  SAY(cuGraphGetNodes, graph, NULL, &count);
  VALUE(count);
  SAY(cuGraphGetNodes, graph, NULL, NULL);
  SAY(cuGraphInstantiateWithFlags, &exec, graph, 0);
  SAY(cuGraphInstantiateWithFlags, NULL, graph, 0);
  SAY(cuGraphInstantiateWithFlags, &exec, NULL, 0);
  SAY(cuGraphLaunch, exec, stream);
  SAY(cuGraphLaunch, NULL, stream);
  SAY(cuGraphExecDestroy, exec);
  SAY(cuGraphExecDestroy, NULL);
  SAY(cuGraphDestroy, graph);
  SAY(cuGraphDestroy, NULL);
}

static void arrays(void) {
  CUarray array = NULL, level = NULL;
  CUmipmappedArray mipmap = NULL;
  CUDA_ARRAY_DESCRIPTOR plane = {
      .Width = 4, .Height = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT16, .NumChannels = 1};
  CUDA_ARRAY3D_DESCRIPTOR box = {
      .Width = 8, .Height = 8, .Depth = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  char local[4096] = {0};
  CUdeviceptr p = 0;
  begin();
  CU(cuMemAlloc)(&p, 4096);
  plane.NumChannels = 3;
  SAY(cuArrayCreate, &array, &plane);
  plane.NumChannels = 1;
  plane.Format = 99;
  SAY(cuArrayCreate, &array, &plane);
  plane.Format = CU_AD_FORMAT_UNSIGNED_INT16;
  plane.Width = 0;
  SAY(cuArrayCreate, &array, &plane);
  plane.Width = 1 << 20;
  SAY(cuArrayCreate, &array, &plane);
  plane.Width = 4;
  SAY(cuArrayCreate, &array, NULL);
  SAY(cuArrayCreate, NULL, &plane);
  SAY(cuArrayCreate, &array, &plane);
  SAY(cuArrayGetDescriptor, &plane, array);
  VALUE(plane.Width);
  VALUE(plane.Format);
  SAY(cuArrayGetDescriptor, NULL, array);
  SAY(cuArray3DGetDescriptor, &box, array);
  VALUE(box.Depth);
  VALUE(box.Flags);
  SAY(cuMemcpyHtoA, array, 0, local, 8);
  SAY(cuMemcpyHtoA, array, 1, local, 2);
  SAY(cuMemcpyHtoA, array, 4, local, 8);
  SAY(cuMemcpyHtoA, array, 0, local, 1000);
  SAY(cuMemcpyAtoH, local, array, 0, 8);
  SAY(cuMemcpyAtoA, array, 0, array, 4, 4);
  SAY(cuMemcpyDtoA, array, 0, p, 8);
  SAY(cuArrayDestroy, NULL);
  SAY(cuArrayDestroy, array);
  box = (CUDA_ARRAY3D_DESCRIPTOR){
      .Width = 8, .Height = 8, .Depth = 6, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  box.Flags = CUDA_ARRAY3D_CUBEMAP;
  SAY(cuArray3DCreate, &array, &box);
  SAY(cuArrayDestroy, array);
  box.Depth = 5;
  SAY(cuArray3DCreate, &array, &box);
  box.Depth = 12;
  SAY(cuArray3DCreate, &array, &box);
  box.Flags = CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED;
  SAY(cuArray3DCreate, &array, &box);
  SAY(cuArrayDestroy, array);
  box.Depth = 13;
  SAY(cuArray3DCreate, &array, &box);
  box.Depth = 6;
  box.Height = 4;
  SAY(cuArray3DCreate, &array, &box);
  box.Height = 8;
  box.Flags = 1 << 20;
  SAY(cuArray3DCreate, &array, &box);
  box.Flags = 0;
  SAY(cuMipmappedArrayCreate, &mipmap, &box, 0);
  SAY(cuMipmappedArrayCreate, NULL, &box, 1);
  SAY(cuMipmappedArrayCreate, &mipmap, NULL, 1);
  SAY(cuMipmappedArrayCreate, &mipmap, &box, 100);
  SAY(cuMipmappedArrayGetLevel, &level, mipmap, 3);
  SAY(cuArray3DGetDescriptor, &box, level);
  VALUE(box.Width);
  VALUE(box.Depth);
  SAY(cuMipmappedArrayGetLevel, &level, mipmap, 4);
  SAY(cuMipmappedArrayGetLevel, NULL, mipmap, 0);
  SAY(cuMipmappedArrayGetLevel, &level, NULL, 0);
  SAY(cuMipmappedArrayDestroy, NULL);
  SAY(cuMipmappedArrayDestroy, mipmap);
}

static void textures(void) {
  CUtexObject texture = 0;
  CUsurfObject surface = 0;
  CUarray array = NULL, stored = NULL;
  CUdeviceptr p = 0;
  CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY}, got;
  CUDA_TEXTURE_DESC how = {.filterMode = CU_TR_FILTER_MODE_LINEAR}, got_how;
  CUDA_RESOURCE_VIEW_DESC view = {.format = CU_RES_VIEW_FORMAT_FLOAT_1X32, .width = 8, .height = 8};
  CUDA_ARRAY3D_DESCRIPTOR box = {.Width = 8, .Height = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  begin();
  CU(cuArray3DCreate)(&array, &box);
  box.Flags = CUDA_ARRAY3D_SURFACE_LDST;
  CU(cuArray3DCreate)(&stored, &box);
  CU(cuMemAlloc)(&p, 4096);
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  resource.res.array.hArray = array;
  SAY(cuTexObjectCreate, NULL, &resource, &how, NULL);
  SAY(cuTexObjectCreate, &texture, NULL, &how, NULL);
  SAY(cuTexObjectCreate, &texture, &resource, NULL, NULL);
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  SAY(cuTexObjectGetResourceDesc, &got, texture);
  VALUE(got.resType);
  VALUE(got.res.array.hArray == array);
  SAY(cuTexObjectGetTextureDesc, &got_how, texture);
  VALUE(got_how.filterMode);
  VALUE(got_how.flags);
  SAY(cuTexObjectGetResourceViewDesc, &view, texture);
  SAY(cuTexObjectGetResourceDesc, NULL, texture);
  SAY(cuTexObjectGetResourceDesc, &got, 12345);
  SAY(cuTexObjectDestroy, texture);
  SAY(cuTexObjectDestroy, texture);
  SAY(cuTexObjectDestroy, 0);
  SAY(cuTexObjectDestroy, 12345);
  view.format = CU_RES_VIEW_FORMAT_FLOAT_1X32;
  SAY(cuTexObjectCreate, &texture, &resource, &how, &view);
  SAY(cuTexObjectGetResourceViewDesc, &view, texture);
  view.format = CU_RES_VIEW_FORMAT_UINT_1X32;
  SAY(cuTexObjectCreate, &texture, &resource, &how, &view);
  view.format = CU_RES_VIEW_FORMAT_FLOAT_4X32;
  SAY(cuTexObjectCreate, &texture, &resource, &how, &view);
  view.format = CU_RES_VIEW_FORMAT_NONE;
  SAY(cuTexObjectCreate, &texture, &resource, &how, &view);
  how.filterMode = 99;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  how.filterMode = CU_TR_FILTER_MODE_POINT;
  how.addressMode[0] = 99;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  how.addressMode[0] = CU_TR_ADDRESS_MODE_WRAP;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  how.flags = 1 << 20;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  how.flags = CU_TRSF_NORMALIZED_COORDINATES;
  how.maxAnisotropy = 16;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  how.maxAnisotropy = 17;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  how.maxAnisotropy = 0;
  resource.flags = 1;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_LINEAR};
  how = (CUDA_TEXTURE_DESC){0};
  resource.res.linear.devPtr = p;
  resource.res.linear.format = CU_AD_FORMAT_FLOAT;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = 4096;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  how.flags = CU_TRSF_NORMALIZED_COORDINATES;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  how.flags = 0;
  resource.res.linear.devPtr = p + 4;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  resource.res.linear.devPtr = p;
  resource.res.linear.numChannels = 3;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = 0;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  resource.res.linear.sizeInBytes = 8192;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  resource.res.linear.devPtr = 0;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_PITCH2D};
  resource.res.pitch2D.devPtr = p;
  resource.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
  resource.res.pitch2D.numChannels = 1;
  resource.res.pitch2D.width = 16;
  resource.res.pitch2D.height = 16;
  resource.res.pitch2D.pitchInBytes = 64;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  resource.res.pitch2D.pitchInBytes = 20;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  resource.res.pitch2D.pitchInBytes = 8;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  resource.res.pitch2D.pitchInBytes = 64;
  how.filterMode = CU_TR_FILTER_MODE_LINEAR;
  how.flags = CU_TRSF_READ_AS_INTEGER;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  resource.resType = 99;
  SAY(cuTexObjectCreate, &texture, &resource, &how, NULL);
  resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_ARRAY};
  resource.res.array.hArray = array;
  SAY(cuSurfObjectCreate, &surface, &resource);
  resource.res.array.hArray = stored;
  SAY(cuSurfObjectCreate, &surface, &resource);
  SAY(cuSurfObjectGetResourceDesc, &got, surface);
  VALUE(got.res.array.hArray == stored);
  SAY(cuSurfObjectGetResourceDesc, &got, 12345);
  SAY(cuSurfObjectCreate, NULL, &resource);
  SAY(cuSurfObjectCreate, &surface, NULL);
  SAY(cuSurfObjectDestroy, surface);
  SAY(cuSurfObjectDestroy, surface);
  resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_LINEAR};
  SAY(cuSurfObjectCreate, &surface, &resource);
}

static void mapping(void) {
  CUmemGenericAllocationHandle handle = 0, again = 0;
  CUdeviceptr p = 0, q = 0, start = 0;
  size_t grain = 0, bytes = 0;
  unsigned long long access = 9;
  char local[64] = {0};
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED}, got = {0};
  CUmemAccessDesc allow = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  unsigned number = 0;
  prop.location = here;
  allow.location = here;
  begin();
  SAY(cuMemGetAllocationGranularity, &grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  VALUE(grain);
  SAY(cuMemGetAllocationGranularity, &grain, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  VALUE(grain);
  SAY(cuMemGetAllocationGranularity, &bytes, &prop, 99);
  SAY(cuMemGetAllocationGranularity, NULL, &prop, 0);
  SAY(cuMemGetAllocationGranularity, &bytes, NULL, 0);
  prop.location.id = 99;
  SAY(cuMemGetAllocationGranularity, &bytes, &prop, 0);
  SAY(cuMemCreate, &handle, grain, &prop, 0);
  prop.location.id = 0;
  prop.type = 0;
  SAY(cuMemGetAllocationGranularity, &bytes, &prop, 0);
  SAY(cuMemCreate, &handle, grain, &prop, 0);
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  SAY(cuMemAddressReserve, &p, 1000, 0, 0, 0);
  SAY(cuMemAddressReserve, &p, 0, 0, 0, 0);
  SAY(cuMemAddressReserve, NULL, grain, 0, 0, 0);
  SAY(cuMemAddressReserve, &p, grain, 3, 0, 0);
  SAY(cuMemAddressReserve, &p, grain, 0, 0, 1);
  SAY(cuMemAddressReserve, &p, 4 * grain, 0, 0, 0);
  SAY(cuMemCreate, &handle, 1000, &prop, 0);
  SAY(cuMemCreate, &handle, 0, &prop, 0);
  SAY(cuMemCreate, NULL, grain, &prop, 0);
  SAY(cuMemCreate, &handle, grain, NULL, 0);
  SAY(cuMemCreate, &handle, grain, &prop, 1);
  SAY(cuMemCreate, &handle, (size_t)1 << 50, &prop, 0);
  SAY(cuMemCreate, &handle, 2 * grain, &prop, 0);
  SAY(cuMemGetAllocationPropertiesFromHandle, &got, handle);
  VALUE(got.type);
  VALUE(got.location.type);
  SAY(cuMemGetAllocationPropertiesFromHandle, &got, 12345);
  SAY(cuMemMap, p, grain, 0, handle, 1);
  SAY(cuMemMap, p, 1000, 0, handle, 0);
  SAY(cuMemMap, p, 0, 0, handle, 0);
  SAY(cuMemMap, p + 16, grain, 0, handle, 0);
  SAY(cuMemMap, p, 3 * grain, 0, handle, 0);
  SAY(cuMemMap, p, grain, 2 * grain, handle, 0);
  SAY(cuMemMap, 4096, grain, 0, handle, 0);
  SAY(cuMemMap, p, grain, 0, 12345, 0);
  SAY(cuMemMap, p, grain, grain, handle, 0);
  SAY(cuMemcpyHtoD, p, local, 8);
  SAY(cuMemGetAccess, &access, &here, p);
  VALUE(access);
  SAY(cuMemSetAccess, p, 1000, &allow, 1);
  SAY(cuMemSetAccess, p, 4 * grain, &allow, 1);
  SAY(cuMemSetAccess, p, grain, NULL, 1);
  SAY(cuMemSetAccess, p, grain, &allow, 0);
  allow.location.id = 99;
  SAY(cuMemSetAccess, p, grain, &allow, 1);
  allow.location.id = 0;
  allow.flags = 99;
  SAY(cuMemSetAccess, p, grain, &allow, 1);
  allow.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  SAY(cuMemSetAccess, p, grain, &allow, 1);
  SAY(cuMemSetAccess, 4096, grain, &allow, 1);
  SAY(cuMemGetAccess, &access, &here, p);
  VALUE(access);
  SAY(cuMemGetAccess, &access, &here, 4096);
  SAY(cuMemGetAccess, NULL, &here, p);
  SAY(cuMemcpyHtoD, p, local, 8);
  SAY(cuMemcpyHtoD, p + grain, local, 8);
  SAY(cuMemsetD8, p, 1, grain);
  SAY(cuMemMap, p, grain, 0, handle, 0);
  SAY(cuMemMap, p + grain, 2 * grain, 0, handle, 0);
  SAY(cuMemSetAccess, p + grain, 2 * grain, &allow, 1);
  SAY(cuMemsetD8, p, 1, 3 * grain);
  SAY(cuMemGetAddressRange, &start, &bytes, p + grain + 100);
  VALUE((long long)(start - p) / (long long)grain);
  VALUE(bytes / grain);
  SAY(cuPointerGetAttribute, &number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
  VALUE(number);
  SAY(cuPointerGetAttribute, &number, CU_POINTER_ATTRIBUTE_MAPPED, p);
  SAY(cuMemRetainAllocationHandle, &again, (void *)(uintptr_t)p);
  VALUE(again == handle);
  SAY(cuMemRetainAllocationHandle, &again, local);
  SAY(cuMemRetainAllocationHandle, NULL, local);
  SAY(cuMemFree, p);
  SAY(cuMemRelease, handle);
  SAY(cuMemcpyHtoD, p, local, 8);
  SAY(cuMemAddressFree, p, 4 * grain);
  SAY(cuMemUnmap, p, 1000);
  SAY(cuMemUnmap, p + grain, grain);
  SAY(cuMemUnmap, p, grain);
  SAY(cuMemUnmap, p, grain);
  SAY(cuMemcpyHtoD, p, local, 8);
  SAY(cuMemUnmap, p, 4 * grain);
  SAY(cuMemUnmap, p + grain, 2 * grain);
  SAY(cuMemAddressFree, p + grain, grain);
  SAY(cuMemAddressFree, p, grain);
  SAY(cuMemAddressFree, p, 4 * grain);
  SAY(cuMemAddressFree, p, 4 * grain);
  SAY(cuMemMap, p, grain, 0, handle, 0);
  SAY(cuMemAddressReserve, &p, grain, 0, 0, 0);
  SAY(cuMemAddressReserve, &q, grain, 0, p, 0);
  VALUE(p == q);
  SAY(cuMemRelease, handle);
  SAY(cuMemRelease, handle);
  SAY(cuMemRelease, 0);
}

static CUcontext destroyed(void) {
  CUcontext context = NULL;
  begin();
  CU(cuCtxCreate)(&context, NULL, 0, 0);
  CU(cuCtxDestroy)(context);
  return context;
}

// What may crash: each is a part of its own.
static void stale(int which) {
  CUstream stream = NULL;
  CUevent event = NULL;
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  CUmodule module = NULL;
  CUfunction function = NULL;
  CUarray array = NULL;
  CUlinkState link = NULL;
  CUdeviceptr p = 0;
  CUcontext context = NULL;
  CUDA_ARRAY_DESCRIPTOR plane = {.Width = 4, .Height = 2, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  unsigned value = 0;
  void *params[] = {&p, &value};
  begin();
  CU(cuStreamCreate)(&stream, 0);
  CU(cuEventCreate)(&event, 0);
  CU(cuGraphCreate)(&graph, 0);
  CU(cuModuleLoadData)(&module, ptx);
  CU(cuModuleGetFunction)(&function, module, "store");
  CU(cuMemAlloc)(&p, 64);
  switch (which) {
  case 0:
    CU(cuStreamDestroy)(stream);
    SAY(cuStreamSynchronize, stream);
    break;
  case 1:
    CU(cuStreamDestroy)(stream);
    SAY(cuStreamDestroy, stream);
    break;
  case 2:
    CU(cuEventDestroy)(event);
    SAY(cuEventRecord, event, stream);
    break;
  case 3:
    CU(cuEventDestroy)(event);
    SAY(cuEventDestroy, event);
    break;
  case 4:
    CU(cuModuleUnload)(module);
    SAY(cuModuleUnload, module);
    break;
  case 5:
    CU(cuModuleUnload)(module);
    SAY(cuModuleGetFunction, &function, module, "store");
    break;
  case 6:
    CU(cuModuleUnload)(module);
    SAY(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    break;
  case 7:
    CU(cuGraphDestroy)(graph);
    SAY(cuGraphDestroy, graph);
    break;
  case 8:
    CU(cuGraphInstantiateWithFlags)(&exec, graph, 0);
    CU(cuGraphExecDestroy)(exec);
    SAY(cuGraphLaunch, exec, stream);
    break;
  case 9:
    CU(cuArrayCreate)(&array, &plane), CU(cuArrayDestroy)(array);
    SAY(cuArrayDestroy, array);
    break;
  case 10: SAY(cuStreamSynchronize, (CUstream)&value); break;
  case 11: SAY(cuEventQuery, (CUevent)&value); break;
  case 12: SAY(cuModuleUnload, (CUmodule)&value); break;
  case 13: SAY(cuLaunchKernel, (CUfunction)&value, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL); break;
  case 14: SAY(cuArrayDestroy, (CUarray)&value); break;
  case 15:
    context = destroyed();
    SAY(cuCtxPushCurrent, context);
    break;
  case 16:
    context = destroyed();
    SAY(cuCtxDestroy, context);
    break;
  case 17:
    context = destroyed();
    SAY(cuCtxSetCurrent, context);
    break;
  case 18: SAY(cuCtxSetCurrent, (CUcontext)&value); break;
  case 19:
    CU(cuCtxGetCurrent)(&context);
    SAY(cuCtxDestroy, context);
    break;
  case 20:
    CU(cuLinkCreate)(0, NULL, NULL, &link), CU(cuLinkDestroy)(link);
    SAY(cuLinkDestroy, link);
    break;
  case 21:
    CU(cuCtxCreate)(&context, NULL, 0, 0);
    CU(cuMemAlloc)(&p, 64);
    CU(cuCtxDestroy)(context);
    SAY(cuMemFree, p);
    break;
  case 22:
    CU(cuCtxCreate)(&context, NULL, 0, 0);
    CU(cuStreamCreate)(&stream, 0);
    CU(cuCtxDestroy)(context);
    SAY(cuStreamSynchronize, stream);
    break;
  case 23:
    CU(cuCtxCreate)(&context, NULL, 0, 0);
    CU(cuModuleLoadData)(&module, ptx);
    CU(cuModuleGetFunction)(&function, module, "store");
    CU(cuCtxDestroy)(context);
    SAY(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    break;
  case 24:
    CU(cuCtxCreate)(&context, NULL, 0, 0);
    CU(cuEventCreate)(&event, 0);
    CU(cuCtxDestroy)(context);
    SAY(cuEventQuery, event);
    break;
  case 25:
    p = 64;
    SAY(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    SAY(cuCtxSynchronize);
    SAY(cuMemAlloc, &p, 64);
    SAY(cuStreamQuery, stream);
    SAY(cuModuleUnload, module);
    SAY(cuDevicePrimaryCtxReset, 0);
    SAY(cuMemAlloc, &p, 64);
    break;
  default: break;
  }
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } parts[] = {{"start", start},     {"contexts", contexts}, {"modules", modules},   {"memory", memory},
               {"streams", streams}, {"arrays", arrays},     {"textures", textures}, {"mapping", mapping}};
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library || argc < 2) return puts(library ? "usage: driver_answers PART" : dlerror()), 1;
  signal(SIGSEGV, crashed);
  signal(SIGABRT, crashed);
  signal(SIGBUS, crashed);
  signal(SIGALRM, crashed);
  alarm(20); // a call that crashed may have left the driver's lock behind
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strcmp(argv[1], parts[i].name) == 0) parts[i].run();
  if (argv[1][0] >= '0' && argv[1][0] <= '9') stale(atoi(argv[1]));
  return 0;
}
