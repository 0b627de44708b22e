// Counts of an instruction, and the model that prices them, for tests of the audit.
#ifndef AUDIT_COUNTS_H
#define AUDIT_COUNTS_H

#include "audit/audit.h"

#include "audit/inside.h"
#include "check.h"

static inline const SolDevice *gpu(const char *name) {
  const SolDevice *d = NULL;
  if (sol_device_find(name, &d, NULL)) abort();
  return d;
}

static inline const MachineModel *h200(void) {
  static MachineModel model;
  model = machine_model(gpu("h200"));
  return &model;
}

static inline AuditInst load_inst(uint64_t requests, uint64_t sectors) {
  return (AuditInst){.file = "a.cu",
                     .line = 7,
                     .text = "ld.global.f32 %f1, [%rd1];",
                     .place = 3,
                     .kind = SOL_EMU_KIND_GLOBAL_LOAD,
                     .unit = SOL_EMU_CLASS_MEMORY,
                     .width = 4,
                     .is_load = true,
                     .counts = {.executions = requests,
                                .lanes = 32 * requests,
                                .requests = requests,
                                .sectors = sectors,
                                .sectors_ideal = 4 * requests,
                                .l1_misses = sectors,
                                .l2_misses = sectors,
                                .dram_read = sectors * 32}};
}

static inline double far_clocks(void) {
  return gpu("h200")->mem_latency.value;
}
static inline double l2_clocks(void) {
  return gpu("h200")->l2_latency.value;
}

#endif
