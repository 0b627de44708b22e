// A single kernel under audit, without a host program: from CUDA C or PTX, arguments as typed.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/audit.h"
#include "shim/fatbin.h"

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

// ptxas's word on registers and stack, where there is a compiler; else the emulator's estimate stays.
static void ask_ptxas(AuditRun *r, const KernelRun *k, const SolDevice *device, const char *ptx,
                      AuditLaunch *launch) {
  char nvcc[512], cubin[256], arch[24];
  const char *name = sol_driver_function(k->kernel)->name;
  int cc = device->cc_major * 10 + device->cc_minor, target = sol_driver_ptx(k->module)->target;
  if (cc < target) cc = target;
  if (cc < 75) cc = 75;
  launch->registers = (int)sol_emu_kernel_registers(k->result.kernel);
  launch->registers_from = AUDIT_FROM_EMULATOR;
  if (k->source_count != 1 || audit_look_for_nvcc(nvcc, sizeof nvcc) < 13 || audit_folder(r)) return;
  sol_format(cubin, sizeof cubin, "%s/kernel.cubin", r->folder);
  sol_format(arch, sizeof arch, "-arch=sm_%d%s", cc, cc == 90 ? "a" : "");
  const char *const argv[] = {nvcc, "-cubin", arch, "-Wno-deprecated-gpu-targets", ptx, "-o", cubin, NULL};
  size_t length = 0;
  if (audit_call(argv, true)) return;
  char *elf = cli_read_file(cubin, (size_t)1 << 30, &length, NULL);
  int registers = elf ? sol_cubin_registers(elf, length, name) : 0;
  if (registers) {
    launch->registers = registers;
    launch->registers_from = AUDIT_FROM_PTXAS;
    launch->stack_bytes = (uint64_t)sol_cubin_stack(elf, length, name);
  }
  free(elf);
}

static int bill(AuditRun *r, const KernelRun *k, const SolDevice *device, const char *ptx,
                AuditProgram *out) {
  AuditLaunch launch = {.dynamic_shared = k->launch.dynamic_shared};
  memcpy(launch.grid, k->launch.grid, sizeof launch.grid);
  memcpy(launch.block, k->launch.block, sizeof launch.block);
  memcpy(launch.cluster, k->launch.cluster, sizeof launch.cluster);
  SolArena arena = {0};
  SolError err = {0};
  SolStatus status = audit_take(sol_driver_ptx(k->module), &k->result, &arena, &launch, &err);
  ask_ptxas(r, k, device, ptx, &launch);
  if (!status) status = audit_add(out, &launch, &err);
  sol_arena_free(&arena);
  return status ? cli_error(r->cli, &err, 0, 0, 0) : EXIT_OK;
}

static int run_kernel(AuditRun *r, KernelRun *k, const SolDevice *device, AuditProgram *out) {
  const CommonArgs *common = &r->args->common;
  const char *const *paths = common->positional;
  int count = common->positional_count;
  char ptx[256];
  const char *made[] = {ptx};
  int code = EXIT_OK;
  if (!ends_with(paths[0], ".ptx")) {
    static const char *const flags[] = {"-ptx", NULL};
    if (count > 1) return cli_fail(r->cli, "a single kernel comes from one .cu file");
    code = audit_folder(r);
    sol_format(ptx, sizeof ptx, "%s/kernel.ptx", r->folder);
    if (!code) cli_status(r->cli, "compiling %s with nvcc", common->positional[0]);
    if (!code) code = audit_compile(r, device, flags, ptx);
    cli_status(r->cli, "%s", "");
    paths = made;
    count = 1;
  }
  if (!code) code = kernel_read(k, paths, count);
  if (!code) code = kernel_open(k, SOL_BACKEND_EMU, device);
  if (!code) code = kernel_pick(k);
  if (!code) code = kernel_make_args(k);
  if (!code) code = kernel_geometry(k, true);
  k->emu.observe = true;
  k->emu.sample_waves = (uint32_t)r->args->sample;
  if (!code) code = kernel_launch(k);
  if (code) return code;
  if (k->guessed[0]) audit_note(r, "%s.", k->guessed);
  if (k->result.end != SOL_EMU_DONE || k->result.finding_count) {
    r->went_wrong = true;
    sol_format(r->ended, sizeof r->ended, "the kernel ended: %s", kernel_end_text(k->result.end));
  }
  code = bill(r, k, device, paths[0], out);
  return code ? code : kernel_save(k);
}

int audit_kernel(AuditRun *r, const SolDevice *device, AuditProgram *out) {
  KernelRun *k = calloc(1, sizeof *k);
  if (!k) return cli_fail(r->cli, "out of memory");
  k->cli = r->cli;
  k->args = &r->args->kernel;
  int code = run_kernel(r, k, device, out);
  kernel_close(k);
  free(k);
  return code;
}
