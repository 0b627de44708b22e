// Runs a few lines of PTX on the emulator, for tests: every thread has its own slice of an input and an
// output buffer, at %in and %out. The body may use registers %p<16>, %h<64>, %r<64>, %rd<32>, %f<64>, %d<32>,
// %q<8> and:
//   %t thread number, %in, %out its slices (64 bits), %base the start of the input, %all that of the output,
//   %x a 64-bit value of the launch, shared memory `tile` (aligned to 128).
#ifndef EMU_BODY_H
#define EMU_BODY_H

#include "check.h"
#include "emu/emu.h"

typedef struct Body {
  const char *ptx;
  const char *before;           // module scope: variables; may be NULL
  int threads, blocks, cluster; // 0: 32, 1, none
  const void *in;
  size_t in_bytes, in_stride; // stride: from thread to thread; 0: all have the start
  void *out;                  // its contents go in first
  size_t out_bytes, out_stride;
  uint64_t x;
  unsigned checks;
  bool keep_going;
  SolEmu *emu; // with what it has; NULL: a fresh one
} Body;

typedef struct Ran {
  SolStatus status; // of loading and launching
  SolError err;
  SolEmuEnd end;
  SolEmuCounts total;
  SolEmuFinding finding; // the first one
  uint32_t findings;
} Ran;

static inline char *body_text(const Body *b) {
  static const char head[] =
      ".version 8.8\n.target sm_100a\n.address_size 64\n%s\n"
      ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n"
      ".reg .pred %%p<16>;\n.reg .b16 %%h<64>;\n.reg .b32 %%r<64>, %%t;\n.reg .b64 %%rd<32>, %%in, %%out, "
      "%%base, %%all, %%x;\n"
      ".reg .f32 %%f<64>;\n.reg .f64 %%d<32>;\n.reg .b128 %%q<8>;\n.shared .align 128 .b8 tile[4096];\n"
      ".reg .b64 %%ofs;\n.reg .b32 %%n, %%b;\n"
      "ld.param.u64 %%base, [a];\nld.param.u64 %%all, [b];\nld.param.u64 %%x, [c];\n"
      "mov.u32 %%t, %%tid.x;\nmov.u32 %%b, %%ctaid.x;\nmov.u32 %%n, %%ntid.x;\nmad.lo.u32 %%n, %%b, %%n, "
      "%%t;\n"
      "mul.wide.u32 %%ofs, %%n, %zu;\nadd.u64 %%in, %%base, %%ofs;\n"
      "mul.wide.u32 %%ofs, %%n, %zu;\nadd.u64 %%out, %%all, %%ofs;\n%s\nret;\n}\n";
  const char *before = b->before ? b->before : "";
  size_t cap = sizeof head + strlen(before) + strlen(b->ptx) + 64;
  char *text = malloc(cap);
  if (!text) abort();
  snprintf(text, cap, head, before, b->in_stride, b->out_stride, b->ptx);
  return text;
}

static inline Ran run_body(const Body *b) {
  Ran r = {0};
  SolEmu *emu = b->emu;
  SolEmuModule *module = NULL;
  SolEmuResult result = {0};
  uint64_t in = 0, out = 0;
  char *text = body_text(b);
  if (!emu) r.status = sol_emu_create(&(SolEmuMachine){.workers = 2, .track_init = true}, &emu, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, b->in_bytes ? b->in_bytes : 16, "in", &in, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, b->out_bytes ? b->out_bytes : 16, "out", &out, &r.err);
  if (!r.status && b->in_bytes) r.status = sol_emu_write(emu, in, b->in, b->in_bytes, &r.err);
  if (!r.status && b->out_bytes) r.status = sol_emu_write(emu, out, b->out, b->out_bytes, &r.err);
  if (!r.status)
    r.status = sol_emu_load(emu, &(SolPtxSource){"body", text, strlen(text)}, 1, &module, &r.err);
  if (!r.status) {
    uint64_t args[3] = {in, out, b->x};
    uint32_t threads = (uint32_t)(b->threads ? b->threads : 32),
             blocks = (uint32_t)(b->blocks ? b->blocks : 1);
    SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "k"),
                           .grid = {blocks, 1, 1},
                           .block = {threads, 1, 1},
                           .params = args,
                           .param_bytes = sizeof args,
                           .checks = b->checks,
                           .keep_going = b->keep_going,
                           .max_instructions = 10000000};
    if (b->cluster) launch.cluster[0] = (uint32_t)b->cluster, launch.cluster[1] = launch.cluster[2] = 1;
    r.status = sol_emu_launch(emu, &launch, &result, &r.err);
    r.end = result.end;
    r.total = result.total;
    r.findings = result.finding_count;
    if (result.finding_count) r.finding = result.findings[0];
  }
  if (!r.status && b->out_bytes) r.status = sol_emu_read(emu, b->out, out, b->out_bytes, &r.err);
  sol_emu_result_free(&result);
  if (b->emu) {
    if (module) sol_emu_unload(emu, module);
    if (in) sol_emu_free(emu, in, NULL);
    if (out) sol_emu_free(emu, out, NULL);
  } else {
    sol_emu_destroy(emu);
  }
  free(text);
  return r;
}

// Loads a text whose kernel is `k` and launches it, with what is given of the launch, unless something has failed already.
static inline void body_launch(Ran *r, SolEmu *emu, SolPtxSource source, SolEmuLaunch launch) {
  SolEmuModule *module = NULL;
  SolEmuResult result = {0};
  if (!r->status) r->status = sol_emu_load(emu, &source, 1, &module, &r->err);
  if (r->status) return;
  launch.kernel = sol_emu_kernel(module, "k");
  launch.checks = SOL_EMU_CHECK_RACE | SOL_EMU_CHECK_SYNC;
  launch.max_instructions = 10000000;
  r->status = sol_emu_launch(emu, &launch, &result, &r->err);
  r->end = result.end;
  r->findings = result.finding_count;
  if (result.finding_count) r->finding = result.findings[0];
  sol_emu_result_free(&result);
}

// Runs it and says whether all went well; where it did not, why.
static inline bool body_ok(const Ran *r, const char *what) {
  return CHECK_MSG(!r->status && r->end == SOL_EMU_DONE && !r->findings, "%s: status %d, end %d: %s%s", what,
                   r->status, r->end, r->err.message, r->findings ? r->finding.message : "");
}

static inline uint32_t body_random(uint64_t *state) { // not a good one, but the same everywhere
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 32);
}

// The opcodes of ops.def that a test file is about, for tests/test_opcode.c to count: COVERS(SHFL, VOTE, ...)
#define COVERS(...)

#endif
