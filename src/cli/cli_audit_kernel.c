// A single kernel under audit, without a host program: from CUDA C or PTX, arguments as typed.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/child.h"
#include "cli/cli_audit.h"
#include "cli/scratch.h"
#include "image/fatbin.h"

enum { MAX_CUBIN = 1 << 30 };

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

// The kernel's machine code as nvcc makes it of the PTX; NULL: there is no compiler, or it does not take it.
static char *compile_ptx(AuditRun *r, const KernelRun *k, const SolDevice *device, size_t *length) {
  char nvcc[CHILD_PATH], arch[24];
  int cc = device->cc_major * 10 + device->cc_minor, target = sol_driver_ptx(k->module)->target;
  if (cc < target) cc = target;
  if (cc < 75) cc = 75;
  if (k->source_count != 1 || cli_audit_look_for_nvcc(nvcc, sizeof nvcc) < 13 ||
      scratch_make(r->cli, "audit"))
    return NULL;
  const char *cubin = scratch_path(r->cli, "kernel.cubin"), *simple = scratch_path(r->cli, "audited.ptx");
  if (cli_write_file(simple, k->sources[0].text, k->sources[0].length, NULL)) return NULL;
  sol_format(arch, sizeof arch, "-arch=sm_%d%s", cc, cc == 90 ? "a" : "");
  const char *const argv[] = {audit_simple_nvcc(r, nvcc),
                              "-cubin",
                              arch,
                              "-lineinfo",
                              "-Wno-deprecated-gpu-targets",
                              simple,
                              "-o",
                              cubin,
                              NULL};
  if (cli_audit_call(argv, true)) return NULL;
  return cli_read_file(cubin, MAX_CUBIN, length, NULL);
}

// Registers, stack and machine code by ptxas, from --cubin or where there is a compiler; else the emulator's
// estimate stays.
static int take_code(AuditRun *r, const KernelRun *k, const SolDevice *device, AuditLaunch *launch,
                     SassCode *code, SolArena *arena) {
  const char *name = sol_driver_function(k->kernel)->name, *given = r->args->cubin;
  SolError err = {0};
  size_t length = 0;
  launch->registers = (int)sol_emu_kernel_registers(k->result.kernel);
  launch->registers_from = AUDIT_FROM_EMULATOR;
  char *elf = given ? cli_read_file(given, MAX_CUBIN, &length, &err) : compile_ptx(r, k, device, &length);
  if (given && !elf) return cli_error(r->cli, &err, 0, 0, 0);
  int registers = elf ? sol_cubin_registers(elf, length, name) : 0;
  if (registers) {
    launch->registers = registers;
    launch->registers_from = AUDIT_FROM_PTXAS;
    launch->stack_bytes = (uint64_t)sol_cubin_stack(elf, length, name);
  }
  if (elf && !sass_read(elf, length, name, arena, code, NULL)) launch->code = code, launch->device = device;
  free(elf);
  if (given && !registers)
    return cli_fail(r->cli, "--cubin: '%.120s' has no machine code of %.80s", given, name);
  return EXIT_OK;
}

static int bill(AuditRun *r, const KernelRun *k, const SolDevice *device, AuditProgram *out) {
  bool steady = r->args->steady;
  AuditLaunch launch = {.dynamic_shared = k->launch.dynamic_shared, .graph = steady, .steady = steady};
  memcpy(launch.grid, k->launch.grid, sizeof launch.grid);
  memcpy(launch.block, k->launch.block, sizeof launch.block);
  memcpy(launch.cluster, k->launch.cluster, sizeof launch.cluster);
  SolArena arena = {0};
  SolError err = {0};
  SassCode machine;
  int code = take_code(r, k, device, &launch, &machine, &arena);
  SolStatus status = code ? SOL_OK : audit_take(sol_driver_ptx(k->module), &k->result, &arena, &launch, &err);
  if (!code && !status) status = audit_add(out, &launch, &err);
  sol_arena_free(&arena);
  return status ? cli_error(r->cli, &err, 0, 0, 0) : code;
}

static int run_kernel(AuditRun *r, KernelRun *k, const SolDevice *device, AuditProgram *out) {
  const CommonArgs *common = &r->args->common;
  const char *const *paths = common->positional;
  int count = common->positional_count;
  const char *made[1];
  int code = EXIT_OK;
  if (!ends_with(paths[0], ".ptx")) {
    static const char *const flags[] = {"-ptx", NULL};
    if (count > 1) return cli_fail(r->cli, "a single kernel comes from one .cu file");
    code = scratch_make(r->cli, "audit");
    made[0] = scratch_path(r->cli, "kernel.ptx");
    if (!code) cli_status(r->cli, "compiling %s with nvcc", common->positional[0]);
    if (!code) code = cli_audit_compile(r, device, flags, made[0]);
    cli_status(r->cli, "%s", "");
    paths = made;
    count = 1;
  }
  if (!code) code = cli_kernel_read(k, paths, count);
  if (!code) code = cli_kernel_open(k, SOL_BACKEND_EMU, device);
  if (!code) code = cli_kernel_pick(k);
  if (!code) code = cli_kernel_make_args(k);
  if (!code) code = cli_kernel_geometry(k, true);
  k->emu.observe = true;
  k->emu.checks = cli_audit_check_bits(r->checks);
  k->emu.keep_going = r->checks[0];
  k->emu.sample_waves = (uint32_t)r->args->sample;
  if (!code) code = cli_kernel_launch(k);
  if (code) return code;
  if (k->guessed[0]) cli_audit_note(r, "%s.", k->guessed);
  if (k->result.end != SOL_EMU_DONE || k->result.finding_count) {
    r->went_wrong = true;
    sol_format(r->ended, sizeof r->ended, "the kernel ended: %s", cli_kernel_end_text(k->result.end));
  }
  code = bill(r, k, device, out);
  return code ? code : cli_kernel_save(k);
}

int cli_audit_kernel(AuditRun *r, const SolDevice *device, AuditProgram *out) {
  KernelRun *k = calloc(1, sizeof *k);
  if (!k) return cli_fail(r->cli, "out of memory");
  k->cli = r->cli;
  k->args = &r->args->kernel;
  int code = run_kernel(r, k, device, out);
  cli_kernel_close(k);
  free(k);
  return code;
}
