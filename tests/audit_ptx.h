// The bill of a kernel written in PTX, run on the emulator; for tests.
//
//   Billed b;
//   bill_ptx(&b, "ld.global.f32 %f1, [%rd3]; ...", 132, 256);      the body; %rd1 is `in`, %rd2 `out`, %r1 the thread
//   ... b.kernel->light ...
//   bill_free(&b);
#ifndef AUDIT_PTX_H
#define AUDIT_PTX_H

#include <stdio.h>

#include "audit/audit.h"
#include "check.h"

typedef struct Billed {
  AuditProgram program;
  const AuditKernel *kernel;
} Billed;

static inline void bill_launch(Billed *b, const char *text, uint32_t blocks, uint32_t threads) {
  SolPtxSource source = {"k.ptx", text, strlen(text)};
  SolEmu *emu = NULL;
  SolEmuModule *module = NULL;
  SolArena arena = {0};
  SolError err = {0};
  struct {
    uint64_t in, out;
  } args = {0};
  uint64_t bytes = (uint64_t)blocks * threads * 4 + 64;
  SolEmuResult r = {0};
  CHECK(!sol_emu_create(&(SolEmuMachine){.workers = 1}, &emu, &err));
  if (!CHECK_MSG(!sol_emu_load(emu, &source, 1, &module, &err), "%s", err.message)) return;
  CHECK(!sol_emu_alloc(emu, bytes, "in", &args.in, &err) &&
        !sol_emu_alloc(emu, bytes, "out", &args.out, &err));
  SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "k"),
                         .grid = {blocks, 1, 1},
                         .block = {threads, 1, 1},
                         .params = &args,
                         .param_bytes = sizeof args,
                         .observe = true};
  CHECK_MSG(!sol_emu_launch(emu, &launch, &r, &err), "%s", err.message);
  CHECK_INT(r.end, SOL_EMU_DONE);
  AuditLaunch l = {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .registers = 32};
  CHECK(!audit_take(sol_emu_ptx(module), &r, &arena, &l, &err) && !audit_add(&b->program, &l, &err));
  sol_emu_result_free(&r);
  sol_emu_destroy(emu);
  sol_arena_free(&arena);
}

// A whole module whose kernel is k(in, out).
static inline void bill_module(Billed *b, const char *text, uint32_t blocks, uint32_t threads) {
  const SolDevice *device = NULL;
  CHECK(!sol_device_find("h200", &device, NULL));
  *b = (Billed){0};
  CHECK(!audit_start(&b->program, device, NULL));
  bill_launch(b, text, blocks, threads);
  CHECK(!audit_finish(&b->program, NULL));
  b->kernel = b->program.kernels;
}

static inline void bill_ptx(Billed *b, const char *body, uint32_t blocks, uint32_t threads) {
  char text[8192];
  snprintf(
      text, sizeof text,
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{\n"
      ".reg .pred %%p<9>;\n.reg .f32 %%f<9>;\n.reg .f64 %%d<9>;\n.reg .b32 %%r<19>;\n.reg .b64 %%rd<9>;\n"
      "ld.param.u64 %%rd1, [a];\nld.param.u64 %%rd2, [b];\nmov.u32 %%r2, %%ctaid.x;\n"
      "mov.u32 %%r3, %%ntid.x;\nmov.u32 %%r4, %%tid.x;\nmad.lo.s32 %%r1, %%r2, %%r3, %%r4;\n"
      "mul.wide.u32 %%rd3, %%r1, 4;\nadd.s64 %%rd4, %%rd1, %%rd3;\nadd.s64 %%rd5, %%rd2, %%rd3;\n%s\n"
      "ret;\n}\n",
      body);
  bill_module(b, text, blocks, threads);
}

static inline void bill_free(Billed *b) {
  audit_free(&b->program);
}

#endif
