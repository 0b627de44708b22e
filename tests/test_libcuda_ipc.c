// The driver's interface: memory and events that another process opens.
#define _GNU_SOURCE
#if __has_include(<cuda.h>)
#include <sys/wait.h>

#include "libcuda_rig.h"

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry add(.param .u64 to, .param .u32 by) { .reg .u64 %t; .reg .b32 %r<3>;\n"
    "ld.param.u64 %t, [to]; ld.param.u32 %r1, [by]; ld.global.u32 %r2, [%t];\n"
    "add.u32 %r2, %r2, %r1; st.global.u32 [%t], %r2; ret; }\n";

typedef struct Handles {
  CUipcMemHandle memory;
  CUipcEventHandle event;
} Handles;

static void add(CUdeviceptr to, unsigned by) {
  CUmodule module;
  CUfunction function;
  void *params[] = {&to, &by};
  OK(CU(cuModuleLoadData)(&module, ptx));
  OK(CU(cuModuleGetFunction)(&function, module, "add"));
  OK(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  OK(CU(cuCtxSynchronize)());
  OK(CU(cuModuleUnload)(module));
}

static unsigned word(CUdeviceptr at) {
  unsigned value = 0;
  OK(CU(cuMemcpyDtoH)(&value, at, 4));
  return value;
}

// What the other process does; the number of its failed checks.
static int other_process(int from, int to) {
  Handles h;
  CUdeviceptr at = 0, again = 0;
  CUevent event = NULL;
  char answer = 1;
  if (read(from, &h, sizeof h) != sizeof h) return 1;
  OK(CU(cuInit)(0));
  begin();
  CHECK_INT(CU(cuIpcOpenMemHandle)(&at, h.memory, 0), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuIpcOpenMemHandle)(&at, h.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  OK(CU(cuIpcOpenMemHandle)(&again, h.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  CHECK(at == again && word(at) == 5 && word(at + 4000) == 6);
  OK(CU(cuIpcOpenEventHandle)(&event, h.event));
  OK(CU(cuStreamWaitEvent)(NULL, event, 0));
  OK(CU(cuEventDestroy)(event));
  add(at, 10);
  CHECK_INT(CU(cuMemFree)(at), CUDA_ERROR_INVALID_VALUE); // it is the other's
  OK(CU(cuIpcCloseMemHandle)(at));
  CHECK(word(at) == 15); // opened twice
  OK(CU(cuIpcCloseMemHandle)(at));
  CHECK_INT(CU(cuIpcCloseMemHandle)(at), CUDA_ERROR_INVALID_VALUE);
  if (write(to, &answer, 1) != 1 || read(from, &answer, 1) != 1) return 1;
  // The parent has freed it.
  CHECK(CU(cuIpcOpenMemHandle)(&at, h.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS);
  return check_failures;
}

TEST(another_process) {
  int there[2], back[2], status = -1;
  char answer = 0;
  CHECK(!pipe(there) && !pipe(back));
  fflush(NULL);
  pid_t child = fork(); // before the device is opened
  if (child == 0) _exit(other_process(there[0], back[1]) ? 1 : 0);
  Handles h;
  CUdeviceptr memory = 0, at = 0;
  CUevent event = NULL, plain = NULL;
  OK(CU(cuInit)(0));
  begin();
  OK(CU(cuMemAlloc)(&memory, 5000));
  OK(CU(cuMemsetD32)(memory, 5, 1));
  OK(CU(cuMemsetD32)(memory + 4000, 6, 1));
  OK(CU(cuEventCreate)(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  OK(CU(cuEventCreate)(&plain, CU_EVENT_DISABLE_TIMING));
  OK(CU(cuEventRecord)(event, NULL));
  OK(CU(cuIpcGetMemHandle)(&h.memory, memory + 400)); // that of the whole allocation
  OK(CU(cuIpcGetMemHandle)(&h.memory, memory));
  OK(CU(cuIpcGetEventHandle)(&h.event, event));
  CHECK(word(memory) == 5 && word(memory + 4000) == 6);
  CHECK_INT(CU(cuIpcGetMemHandle)(&h.memory, 64), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuIpcGetEventHandle)(&h.event, plain), CUDA_ERROR_INVALID_HANDLE);
  CHECK_INT(CU(cuIpcOpenMemHandle)(&at, h.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            CUDA_ERROR_INVALID_CONTEXT);
  CHECK(write(there[1], &h, sizeof h) == sizeof h && read(back[0], &answer, 1) == 1);
  CHECK(word(memory) == 15); // the other's kernel wrote it
  add(memory, 1);
  CHECK(word(memory) == 16);
  OK(CU(cuMemFree)(memory));
  CHECK_INT(CU(cuMemFree)(memory), CUDA_ERROR_INVALID_VALUE);
  CHECK(write(there[1], &answer, 1) == 1);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  OK(CU(cuEventDestroy)(event));
  OK(CU(cuEventDestroy)(plain));
}
#else
#include <stdio.h>
int main(void) {
  puts("no CUDA headers");
  return 77;
}
#endif
