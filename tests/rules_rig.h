// A kernel made up of a few instructions for the tests of the rules: what each does to memory, what the launch is, and what is found.
#ifndef RULES_RIG_H
#define RULES_RIG_H

#include "audit/rules.h"
#include "check.h"

typedef struct Rig {
  AuditProgram program;
  AuditInst insts[8];
  AuditTouch touches[4];
  AuditLaunch launch;
} Rig;

enum { BUFFER = 1 << 20, WARPS = 1 << 17 }; // addresses are multiples of BUFFER

// A kernel of 4-byte loads or stores, `sectors` a request, one instruction more with each call.
static inline AuditInst *add_access(Rig *rig, SolEmuKind kind, uint64_t sectors, int64_t stride) {
  AuditInst *in = &rig->insts[rig->launch.inst_count];
  *in = (AuditInst){.file = "k.cu",
                    .line = 10,
                    .text = "ld.global.f32 %f1, [%rd1];",
                    .base = 1,
                    .kind = kind,
                    .unit = SOL_EMU_CLASS_MEMORY,
                    .width = 4,
                    .is_load = kind == SOL_EMU_KIND_GLOBAL_LOAD,
                    .place = rig->launch.inst_count++};
  uint64_t n = WARPS, bytes = n * 128;
  in->counts = (SolEmuCounts){.executions = n,
                              .lanes = n * 32,
                              .requests = n,
                              .bytes = bytes,
                              .sectors = n * sectors,
                              .sectors_ideal = n * 4,
                              .lines = n * (stride < 128 ? (uint64_t)stride / 4 : sectors)};
  in->pattern = (SolEmuPattern){.width = 4,
                                .seen = n,
                                .stride = stride,
                                .stride_times = n,
                                .strided = n,
                                .contiguous = stride == 4 ? n : 0,
                                .allocation = (in->place + 1) * (uint64_t)BUFFER};
  bool load = kind == SOL_EMU_KIND_GLOBAL_LOAD;
  if (load)
    in->counts.l1_misses = in->counts.l2_misses = n * sectors, in->counts.dram_read = n * sectors * 32;
  if (!load) in->counts.l2_writes = n * sectors, in->counts.dram_write = n * sectors * 32;
  AuditTouch *t = &rig->touches[rig->launch.touch_count++];
  *t = (AuditTouch){.address = in->pattern.allocation, .bytes = bytes, .label = "x", .launches = 1};
  if (load) t->read = t->read_first = (double)bytes, t->read_sectors = (double)bytes / 32;
  if (!load) t->written = (double)bytes, t->written_sectors = (double)bytes / 32;
  return in;
}

static inline void rig_start(Rig *rig) {
  const SolDevice *device;
  *rig = (Rig){0};
  CHECK_INT(sol_device_find("h200", &device, NULL), SOL_OK);
  CHECK_INT(audit_start(&rig->program, device, NULL), SOL_OK);
  rig->launch = (AuditLaunch){.name = "k",
                              .grid = {1056, 1, 1}, // an H200 holds them all
                              .block = {256, 1, 1},
                              .registers = 16,
                              .blocks = 1056,
                              .insts = rig->insts,
                              .touches = rig->touches,
                              .flight = {.loads = WARPS, .bytes = WARPS * 128, .waits = WARPS}};
}

// No change of a kernel alone makes it faster than light, and each says what it assumes.
static inline void check_gains(const AuditKernel *k) {
  for (uint32_t i = 0; i < k->finding_count; i++) {
    const AuditFinding *f = &k->findings[i];
    CHECK(f->assumes && f->assumes[0]);
    bool lighter = strcmp(f->rule, "round_trip") == 0 || strcmp(f->rule, "launch_bound") == 0 ||
                   strcmp(f->rule, "wide_type") == 0 || strcmp(f->rule, "tree") == 0 ||
                   strcmp(f->rule, "slow_math") == 0 || f->at_full_size;
    if (k->tax > 1 && !lighter)
      CHECK_MSG(f->gain <= k->tax * (1 + 1e-9), "%s: %g, the tax is %g", f->rule, f->gain, k->tax);
  }
}

static inline const AuditKernel *rig_finish(Rig *rig) {
  CHECK_INT(audit_add(&rig->program, &rig->launch, NULL), SOL_OK);
  CHECK_INT(audit_finish(&rig->program, NULL), SOL_OK);
  for (uint32_t i = 0; i < rig->program.kernel_count; i++) check_gains(&rig->program.kernels[i]);
  return &rig->program.kernels[0];
}

static inline const AuditFinding *find(const AuditKernel *k, const char *rule) {
  for (uint32_t i = 0; i < k->finding_count; i++)
    if (strcmp(k->findings[i].rule, rule) == 0) return &k->findings[i];
  return NULL;
}

static inline uint32_t find_all(const AuditKernel *k, const char *rule) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < k->finding_count; i++) found += strcmp(k->findings[i].rule, rule) == 0;
  return found;
}

static inline bool finds(Rig *rig, const char *rule) {
  return find(rig_finish(rig), rule) != NULL;
}

static inline AuditInst *add_shared(Rig *rig, SolEmuKind kind, const char *text, uint64_t passes,
                                    int64_t stride, uint32_t width) {
  AuditInst *in = &rig->insts[rig->launch.inst_count];
  uint64_t n = WARPS * 16;
  *in = (AuditInst){.file = "k.cu",
                    .line = 12,
                    .text = text,
                    .base = 1,
                    .kind = kind,
                    .unit = SOL_EMU_CLASS_MEMORY,
                    .width = width,
                    .place = rig->launch.inst_count++};
  in->counts = (SolEmuCounts){.executions = n,
                              .lanes = n * 32,
                              .shared_requests = n,
                              .wavefronts = n * passes,
                              .wavefronts_ideal = n * width / 4};
  in->pattern = (SolEmuPattern){.width = width, .seen = n, .stride = stride, .stride_times = n, .strided = n};
  return in;
}

#endif
