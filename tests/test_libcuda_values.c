// The driver's interface: streams that write values and wait for them, memory that may only be read, and the host's own
// access to memory that is mapped.
#define _GNU_SOURCE
#if __has_include(<cuda.h>)
#include <pthread.h>

#include "libcuda_rig.h"

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry add(.param .u64 to, .param .u32 by) { .reg .u64 %t; .reg .b32 %r<3>;\n"
    "ld.param.u64 %t, [to]; ld.param.u32 %r1, [by]; ld.global.u32 %r2, [%t]; add.u32 %r2, %r2, %r1;\n"
    "st.global.u32 [%t], %r2; ret; }\n"
    ".visible .entry look(.param .u64 from, .param .u64 to) { .reg .u64 %f, %t; .reg .b32 %r;\n"
    "ld.param.u64 %f, [from]; ld.param.u64 %t, [to]; ld.global.u32 %r, [%f]; st.global.u32 [%t], %r; ret; }\n"
    ".visible .entry count(.param .u64 at) { .reg .u64 %t; ld.param.u64 %t, [at]; red.global.add.u32 [%t], 1; ret; }\n";

static CUmodule module;
static CUdeviceptr memory; // sixteen words
static void open_all(void) {
  OK(CU(cuInit)(0));
  begin();
  OK(CU(cuModuleLoadData)(&module, ptx));
  OK(CU(cuMemAlloc)(&memory, 64));
  OK(CU(cuMemsetD32)(memory, 0, 16));
}

static CUresult add(CUdeviceptr to, unsigned by, CUstream stream) {
  CUfunction function;
  void *params[] = {&to, &by};
  OK(CU(cuModuleGetFunction)(&function, module, "add"));
  return CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static unsigned word(CUdeviceptr at, CUstream stream) { // without waiting for other streams
  unsigned value = 0;
  OK(CU(cuMemcpyDtoHAsync)(&value, at, 4, stream));
  return value;
}

static CUstream make_stream(void) {
  CUstream stream = NULL;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

TEST(values_are_written_and_compared) {
  open_all();
  CUstream s = make_stream();
  unsigned long long wide = 0;
  OK(CU(cuStreamWriteValue32)(s, memory, 7, 0));
  OK(CU(cuStreamWriteValue32)(s, memory + 4, 8, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
  OK(CU(cuStreamWriteValue64)(s, memory + 8, 0x123456789abcull, 0));
  OK(CU(cuMemcpyDtoH)(&wide, memory + 8, 8));
  CHECK(wide == 0x123456789abcull && word(memory, s) == 7 && word(memory + 4, s) == 8);
  // All of these hold, so that nothing waits.
  OK(CU(cuStreamWaitValue32)(s, memory, 7, CU_STREAM_WAIT_VALUE_EQ));
  OK(CU(cuStreamWaitValue32)(s, memory, 6, CU_STREAM_WAIT_VALUE_GEQ));
  OK(CU(cuStreamWaitValue32)(s, memory, 0xfffffff0,
                             CU_STREAM_WAIT_VALUE_GEQ | CU_STREAM_WAIT_VALUE_FLUSH)); // cyclic
  OK(CU(cuStreamWaitValue32)(s, memory, 2, CU_STREAM_WAIT_VALUE_AND));
  OK(CU(cuStreamWaitValue32)(s, memory, 0xfffffff0, CU_STREAM_WAIT_VALUE_NOR)); // bit 3
  OK(CU(cuStreamWaitValue64)(s, memory + 8, 0x123456789abcull, CU_STREAM_WAIT_VALUE_EQ));
  OK(CU(cuStreamWaitValue64)(s, memory + 8, 0xffffull << 48 | 1, CU_STREAM_WAIT_VALUE_GEQ));
  OK(CU(cuStreamQuery)(s));
  CHECK_INT(CU(cuStreamWriteValue32)(s, memory + 2, 1, 0), CUDA_ERROR_INVALID_VALUE); // not aligned
  CHECK_INT(CU(cuStreamWriteValue64)(s, memory + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuStreamWriteValue32)(s, 0, 1, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuStreamWriteValue32)(s, memory, 1, 2), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuStreamWaitValue32)(s, memory, 1, 4), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuStreamWaitValue32)(s, 16, 1, 0), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuStreamDestroy)(s));
  OK(CU(cuMemFree)(memory));
}

TEST(work_behind_a_wait_is_held) {
  open_all();
  CUstream a = make_stream(), b = make_stream(), c = make_stream();
  CUevent event = NULL;
  OK(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  OK(CU(cuStreamWaitValue32)(a, memory, 3, CU_STREAM_WAIT_VALUE_GEQ));
  OK(add(memory + 4, 5, a));
  OK(CU(cuEventRecord)(event, a));
  OK(CU(cuStreamWaitEvent)(b, event, 0));
  OK(add(memory + 8, 6, b)); // waits for what waits
  CHECK_INT(CU(cuStreamQuery)(a), CUDA_ERROR_NOT_READY);
  CHECK_INT(CU(cuStreamQuery)(b), CUDA_ERROR_NOT_READY);
  CHECK_INT(CU(cuEventQuery)(event), CUDA_ERROR_NOT_READY);
  OK(CU(cuStreamQuery)(c));
  OK(add(memory + 12, 7, c)); // others go on
  CHECK(word(memory + 4, c) == 0 && word(memory + 8, c) == 0 && word(memory + 12, c) == 7);
  OK(CU(cuStreamWriteValue32)(c, memory, 2, 0));
  CHECK_INT(CU(cuStreamQuery)(a), CUDA_ERROR_NOT_READY);
  OK(CU(cuStreamWriteValue32)(c, memory, 3, 0));
  OK(CU(cuStreamQuery)(a));
  OK(CU(cuEventSynchronize)(event));
  OK(CU(cuCtxSynchronize)());
  CHECK(word(memory + 4, c) == 5 && word(memory + 8, c) == 6);
  // Of two waits the second is looked at after the first, and memory is freed in the stream's order.
  CUdeviceptr later = 0;
  OK(CU(cuMemAllocAsync)(&later, 64, a));
  OK(CU(cuStreamWaitValue32)(a, memory, 9, CU_STREAM_WAIT_VALUE_EQ));
  OK(add(later, 1, a));
  OK(CU(cuMemFreeAsync)(later, a));
  OK(CU(cuStreamWaitValue32)(a, memory + 12, 7, CU_STREAM_WAIT_VALUE_EQ));
  OK(add(memory + 4, 1, a));
  OK(CU(cuStreamWriteValue32)(a, memory + 8, 77, 0));
  CHECK(word(memory + 4, c) == 5);
  OK(CU(cuStreamWriteValue32)(c, memory, 9, 0));
  OK(CU(cuStreamSynchronize)(a));
  CHECK(word(memory + 4, c) == 6 && word(memory + 8, c) == 77);
  // The legacy stream waits for a blocking stream, and a call that waits sees what a kernel wrote.
  CUstream blocking = NULL;
  OK(CU(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT));
  OK(CU(cuStreamWaitValue32)(blocking, memory, 10, CU_STREAM_WAIT_VALUE_EQ));
  OK(add(memory + 4, 1, NULL));
  CHECK(word(memory + 4, c) == 6);
  OK(add(memory, 1, c));
  OK(CU(cuStreamSynchronize)(NULL));
  CHECK(word(memory + 4, c) == 7);
  OK(CU(cuStreamDestroy)(blocking));
  OK(CU(cuEventDestroy)(event));
  OK(CU(cuStreamDestroy)(a));
  OK(CU(cuStreamDestroy)(b));
  OK(CU(cuStreamDestroy)(c));
  OK(CU(cuMemFree)(memory));
}

static void *write_late(void *flag) {
  usleep(20000);
  __atomic_store_n((unsigned *)flag, 1, __ATOMIC_RELEASE);
  return NULL;
}

TEST(the_host_writes_what_a_stream_waits_for) {
  open_all();
  unsigned *flag = NULL;
  CUdeviceptr at = 0;
  pthread_t thread;
  CUstream s = make_stream();
  OK(CU(cuMemHostAlloc)((void **)&flag, 4, CU_MEMHOSTALLOC_DEVICEMAP));
  OK(CU(cuMemHostGetDevicePointer)(&at, flag, 0));
  *flag = 0;
  OK(CU(cuStreamWaitValue32)(s, at, 1, CU_STREAM_WAIT_VALUE_EQ));
  OK(add(memory, 4, s));
  CHECK(!pthread_create(&thread, NULL, write_late, flag));
  OK(CU(cuStreamSynchronize)(s));
  pthread_join(thread, NULL);
  CHECK(word(memory, s) == 4);
  OK(CU(cuMemFreeHost)(flag));
  OK(CU(cuStreamDestroy)(s));
  OK(CU(cuMemFree)(memory));
}

TEST(several_in_one_call) {
  open_all();
  CUstream s = make_stream(), other = make_stream();
  CUstreamBatchMemOpParams list[5] = {0};
  list[0].writeValue = (struct CUstreamMemOpWriteValueParams_st){
      .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = memory, .value = 5};
  list[1].waitValue = (struct CUstreamMemOpWaitValueParams_st){.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64,
                                                               .address = memory + 8,
                                                               .value64 = 6,
                                                               .flags = CU_STREAM_WAIT_VALUE_EQ};
  list[2].operation = CU_STREAM_MEM_OP_BARRIER;
  list[3].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
  list[4].writeValue = (struct CUstreamMemOpWriteValueParams_st){
      .operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = memory + 16, .value64 = 1ull << 40};
  OK(CU(cuStreamBatchMemOp)(s, 5, list, 0));
  CHECK(word(memory, other) == 5 && word(memory + 20, other) == 0);
  OK(CU(cuStreamWriteValue64)(other, memory + 8, 6, 0));
  OK(CU(cuStreamSynchronize)(s));
  CHECK(word(memory + 20, other) == 1 << 8);
  CHECK_INT(CU(cuStreamBatchMemOp)(s, 0, list, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuStreamBatchMemOp)(s, 257, list, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuStreamBatchMemOp)(s, 1, list, 1), CUDA_ERROR_INVALID_VALUE);
  list[0].operation = (CUstreamBatchMemOpType)77;
  CHECK_INT(CU(cuStreamBatchMemOp)(s, 1, list, 0), CUDA_ERROR_INVALID_VALUE);
  // Captured, each is a node.
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  OK(CU(cuStreamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(CU(cuStreamWriteValue32)(s, memory, 50, 0));
  OK(CU(cuStreamWaitValue32)(s, memory, 50, CU_STREAM_WAIT_VALUE_EQ));
  OK(add(memory, 1, s));
  OK(CU(cuStreamEndCapture)(s, &graph));
  OK(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  CHECK(word(memory, other) == 5);
  OK(CU(cuGraphLaunch)(exec, s));
  CHECK(word(memory, other) == 51);
  OK(CU(cuGraphExecDestroy)(exec));
  OK(CU(cuGraphDestroy)(graph));
  OK(CU(cuStreamDestroy)(s));
  OK(CU(cuStreamDestroy)(other));
  OK(CU(cuMemFree)(memory));
}

// ---- mapped memory ----

static const size_t GRAIN = 2 << 20;
static CUdeviceptr map_some(CUmemLocationType where) {
  CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = where}};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  OK(CU(cuMemCreate)(&handle, GRAIN, &p, 0));
  OK(CU(cuMemAddressReserve)(&at, 2 * GRAIN, 0, 0, 0));
  OK(CU(cuMemMap)(at, GRAIN, 0, handle, 0));
  OK(CU(cuMemMap)(at + GRAIN, GRAIN, 0, handle, 0));
  OK(CU(cuMemRelease)(handle));
  return at;
}
static void unmap(CUdeviceptr at) {
  OK(CU(cuMemUnmap)(at, 2 * GRAIN));
  OK(CU(cuMemAddressFree)(at, 2 * GRAIN));
}

static CUresult look(const char *kernel, CUdeviceptr a, CUdeviceptr b) {
  CUfunction function;
  void *params[] = {&a, &b};
  OK(CU(cuModuleGetFunction)(&function, module, kernel));
  OK(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  return CU(cuCtxSynchronize)();
}

TEST(memory_for_reads_alone) {
  static const char *const writers[] = {"add", "count"};
  for (int i = 0; i < 2; i++) {
    open_all();
    CUmemAccessDesc allow = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                             .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
    CUdeviceptr at = map_some(CU_MEM_LOCATION_TYPE_DEVICE);
    unsigned long long flags = 0;
    OK(CU(cuMemSetAccess)(at, GRAIN, &allow, 1));
    allow.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(CU(cuMemSetAccess)(at + GRAIN, GRAIN, &allow, 1));
    OK(CU(cuMemGetAccess)(&flags, &allow.location, at));
    CHECK_INT(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    OK(CU(cuMemsetD32)(at + GRAIN, 42, 4));
    OK(look("look", at, memory)); // the same memory at two places
    CHECK(word(memory, NULL) == 42);
    OK(look(writers[i], at + GRAIN, 3));
    CHECK_INT(look(writers[i], at, 3), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(CU(cuDevicePrimaryCtxReset)(0));
  }
}

TEST(the_host_accesses_memory_of_its_own) {
  open_all();
  CUdeviceptr at = map_some(CU_MEM_LOCATION_TYPE_HOST);
  CUmemAccessDesc allow[2] = {
      {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
      {.location = {.type = CU_MEM_LOCATION_TYPE_HOST}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
  unsigned long long flags = 0;
  CUresult set = CU(cuMemSetAccess)(at, 2 * GRAIN, allow, 2);
  if (set == CUDA_ERROR_NOT_SUPPORTED) return unmap(at); // a sanitizer has those addresses
  OK(set);
  OK(CU(cuMemGetAccess)(&flags, &allow[1].location, at));
  CHECK_INT(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  volatile unsigned *words = (volatile unsigned *)(uintptr_t)at;
  words[0] = 11;
  OK(add(at, 4, NULL));
  OK(CU(cuCtxSynchronize)());
  CHECK(words[0] == 15 && words[GRAIN / 4] == 15);
  unmap(at);
  at = map_some(CU_MEM_LOCATION_TYPE_DEVICE); // the device's own is not the host's
  CHECK_INT(CU(cuMemSetAccess)(at, GRAIN, &allow[1], 1), CUDA_ERROR_INVALID_VALUE);
  unmap(at);
  OK(CU(cuMemFree)(memory));
}
#else
#include <stdio.h>
int main(void) {
  puts("no CUDA headers");
  return 77;
}
#endif
