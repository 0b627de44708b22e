// Observed launches (SolEmuLaunch.observe) of a few lines of PTX, for tests. Every one that `see` runs is
// also run with checks, which makes the emulator look at every lane by itself, and on several workers: all
// have to see the same.
#ifndef OBSERVE_RIG_H
#define OBSERVE_RIG_H

#include "check.h"

#include "driver/driver.h"

enum { BUFFER = 1 << 20 };

// Registers %p<8>, %r<32>, %rd<32>, %f<16>, and: %l lane, %t thread of the block, %i of the grid, %b block,
// %in, %out the buffers (BUFFER bytes each), %n the launch's number; shared memory `tile` of 8 KiB.
static const char head[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 c) {\n"
    "  .shared .align 128 .b8 tile[8192];\n"
    "  .reg .pred %%p<8>; .reg .b32 %%r<32>, %%l, %%t, %%i, %%b, %%n, %%m; .reg .b64 %%rd<32>, %%in, %%out;\n"
    "  .reg .f32 %%f<16>;\n"
    "  ld.param.u64 %%in, [a]; ld.param.u64 %%out, [b]; ld.param.u32 %%n, [c]; mov.u32 %%l, %%laneid;\n"
    "  mov.u32 %%t, %%tid.x; mov.u32 %%b, %%ctaid.x; mov.u32 %%m, %%ntid.x; mad.lo.u32 %%i, %%b, %%m, %%t;\n"
    "%s\n  ret;\n}\n";

typedef struct Job {
  const char *body;
  uint32_t blocks, threads, cluster, n; // 0: 16, 64, none
  uint32_t waves;
  unsigned checks;
  bool cooperative;
  int workers, launches; // 0: 1
  uint32_t slices;       // SolEmuMachine.l2_slices
  void (*fill)(uint8_t *in);
} Job;

typedef struct Seen {
  SolError err;
  SolEmu *emu;
  uint64_t in, out;
  const SolPtxModule *ptx;
  SolEmuResult r;
} Seen;

static inline void run(const Job *j, Seen *s) {
  char text[4096];
  SolEmuModule *module = NULL;
  *s = (Seen){0};
  snprintf(text, sizeof text, head, j->body);
  const SolDevice *h200 = NULL;
  if (sol_device_find("h200", &h200, NULL)) exit(1);
  SolEmuMachine machine = sol_driver_machine(h200); // a small one of the kind
  machine.sms = 4, machine.workers = j->workers ? j->workers : 1, machine.blocks_per_sm = 2;
  if (j->slices) machine.l2_slices = j->slices;
  bool ok = !sol_emu_create(&machine, &s->emu, &s->err) &&
            !sol_emu_load(s->emu, &(SolPtxSource){"k.ptx", text, strlen(text)}, 1, &module, &s->err) &&
            !sol_emu_alloc(s->emu, BUFFER, "in", &s->in, &s->err) &&
            !sol_emu_alloc(s->emu, BUFFER, "out", &s->out, &s->err);
  if (!CHECK_MSG(ok, "%s: %d: %s", j->body, s->err.line, s->err.message)) exit(1);
  if (j->fill) j->fill(sol_emu_host(s->emu, s->in, BUFFER));
  struct {
    uint64_t in, out;
    uint32_t n;
  } args = {s->in, s->out, j->n};
  SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "k"), .params = &args, .param_bytes = 20};
  launch.grid[0] = j->blocks ? j->blocks : 16, launch.grid[1] = launch.grid[2] = 1;
  launch.block[0] = j->threads ? j->threads : 64, launch.block[1] = launch.block[2] = 1;
  if (j->cluster) launch.cluster[0] = j->cluster, launch.cluster[1] = launch.cluster[2] = 1;
  launch.observe = true, launch.sample_waves = j->waves, launch.checks = j->checks;
  launch.cooperative = j->cooperative, launch.max_instructions = 200000000;
  s->ptx = sol_emu_ptx(module);
  for (int k = 0; k < (j->launches ? j->launches : 1); k++) {
    SolStatus status = sol_emu_launch(s->emu, &launch, &s->r, &s->err);
    CHECK_MSG(!status, "%s: %s", j->body, s->err.message);
  }
}

static inline void done(Seen *s) {
  sol_emu_result_free(&s->r);
  sol_emu_destroy(s->emu);
}

// The n-th instruction whose text starts so.
static inline const SolEmuInstCounts *inst(const Seen *s, const char *starts, int n) {
  for (uint32_t k = 0; k < s->r.inst_count; k++) {
    const SolEmuInstCounts *c = &s->r.insts[k];
    const char *text = s->ptx->functions[c->function].insts[c->inst].code->text;
    if (!strncmp(text, starts, strlen(starts)) && !n--) return c;
  }
  CHECK_MSG(false, "no %s", starts);
  exit(1);
}

static inline const SolEmuTouch *touch(const Seen *s, uint64_t address) {
  static const SolEmuTouch none;
  for (uint32_t k = 0; k < s->r.touch_count; k++)
    if (s->r.touches[k].address == address) return &s->r.touches[k];
  return &none;
}

static inline void same(const Job *j, const Seen *a, const Seen *b, const char *what) {
  for (uint32_t k = 0; k < a->r.inst_count; k++) {
    const SolEmuPattern *p = &a->r.insts[k].pattern, *q = &b->r.insts[k].pattern;
#define FIELD(f)                                                                                             \
  CHECK_MSG(p->f == q->f, "%s: instruction %u: %s is %lld and %lld with %s", j->body, k, #f,                 \
            (long long)p->f, (long long)q->f, what)
    FIELD(width);
    FIELD(seen);
    FIELD(stride);
    FIELD(stride_times);
    FIELD(strided);
    FIELD(rows);
    FIELD(uniform);
    FIELD(scattered);
    FIELD(contiguous);
    FIELD(misaligned);
    FIELD(step);
    FIELD(step_times);
    FIELD(steps);
    FIELD(same);
    FIELD(hottest);
    FIELD(allocation);
    FIELD(several);
    FIELD(values);
    FIELD(as_fp16);
    FIELD(as_bf16);
    FIELD(zeros);
    FIELD(swapped);
    FIELD(swaps);
    FIELD(held);
#undef FIELD
    CHECK_MSG(!memcmp(&p->example, &q->example, sizeof p->example), "%s: the example of %u differs with %s",
              j->body, k, what);
  }
  CHECK_INT(b->r.touch_count, a->r.touch_count);
  for (uint32_t k = 0; k < a->r.touch_count && k < b->r.touch_count; k++)
    CHECK_MSG(!memcmp(&a->r.touches[k], &b->r.touches[k], sizeof a->r.touches[k]),
              "%s: touch %u differs with %s", j->body, k, what);
  CHECK_MSG(a->r.flight.waits == b->r.flight.waits && a->r.flight.loads == b->r.flight.loads,
            "%s: flight with %s", j->body, what);
  CHECK_MSG(!memcmp(&a->r.chain, &b->r.chain, sizeof a->r.chain), "%s: chain with %s", j->body, what);
}

// Runs the job, and again in other ways that may not change what is seen.
static inline void see(const Job *j, Seen *s) {
  static const struct {
    int workers;
    unsigned checks;
    const char *what;
  } ways[] = {{1, SOL_EMU_CHECK_SYNC, "every lane looked at"}, {2, 0, "2 workers"}, {3, 0, "3 workers"}};
  run(j, s);
  CHECK_INT(s->r.end, SOL_EMU_DONE);
  for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
    Seen other;
    Job changed = *j;
    changed.workers = ways[k].workers;
    changed.checks = ways[k].checks;
    run(&changed, &other);
    same(j, s, &other, ways[k].what);
    done(&other);
  }
}

// Each thread's own word of both buffers: at %rd2 and %rd3.
#define OWN "mul.wide.u32 %rd1, %i, 4; add.u64 %rd2, %in, %rd1; add.u64 %rd3, %out, %rd1;\n"

#endif
