// One launch interface with two backends: the emulator, and a real GPU through the CUDA driver, which is
// loaded at run time (one binary runs with and without it). Addresses are the backend's device addresses.
#ifndef SOL_DRIVER_DRIVER_H
#define SOL_DRIVER_DRIVER_H

#include "emu/emu.h"
#include "sol/context.h"

typedef struct SolDriver SolDriver;
typedef struct SolDriverModule SolDriverModule;
typedef struct SolDriverKernel SolDriverKernel;

typedef struct SolDriverOptions {
  SolBackend backend;      // cuda, or else emu
  const SolDevice *device; // emu: the GPU to stand for; NULL: h100-sxm. cuda: ignored
  int workers;             // emu: threads; 0: as many as the host has cores
} SolDriverOptions;

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

typedef struct SolDriverLaunch {
  SolDriverKernel *kernel;
  uint32_t grid[3], block[3], cluster[3]; // cluster: zeros for none
  uint64_t dynamic_shared;
  const void *params; // laid out as the kernel's parameters are
  uint64_t param_bytes;
  bool cooperative;
  bool early; // cuda: may start before its predecessor in the stream has ended (it waits by griddepcontrol)
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
SolStatus sol_driver_allow_shared(SolDriverKernel *kernel, uint64_t bytes, SolError *err);
SolStatus sol_driver_sync(SolDriver *driver, SolError *err);
// SOL_ERR_ARGUMENT where the address is not memory that kernels can reach.
SolStatus sol_driver_check_pointer(SolDriver *driver, uint64_t address, uint64_t bytes, SolError *err);

typedef struct SolDriverInfo {
  int cc, sms; // cc: 90 for sm_90
} SolDriverInfo;
SolStatus sol_driver_info(SolDriver *driver, SolDriverInfo *out, SolError *err);

SolEmu *sol_driver_emu(SolDriver *driver); // NULL for cuda

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
  SolStatus (*sync)(void *state, SolError *err);
  SolStatus (*check_pointer)(void *state, uint64_t address, uint64_t bytes, SolError *err);
  SolStatus (*info)(void *state, SolDriverInfo *out, SolError *err);
  SolStatus (*load_image)(void *state, const void *image, void **module, SolError *err); // NULL: none
} SolDriverTable;
extern const SolDriverTable sol_driver_emu_table, sol_driver_cuda_table;

#endif
