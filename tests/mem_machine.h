// A GPU's memory side for tests: SMs with an L1 and a log each, one L2. Requests go in by SM; the logs are
// drained when one is full and at the end, as the emulator does.
#ifndef TESTS_MEM_MACHINE_H
#define TESTS_MEM_MACHINE_H

#include <stdlib.h>

#include "check.h"
#include "driver/driver.h"
#include "mem/l1.h"
#include "mem/l2.h"

enum { MACHINE_SMS = 132, MACHINE_IDS = 8 };

typedef struct Machine {
  SolL1 l1[MACHINE_SMS];
  SolLog log[MACHINE_SMS];
  SolL2 l2;
  void *l1_memory[MACHINE_SMS], *log_memory[MACHINE_SMS], *l2_memory;
  SolL1Counts l1_counts[MACHINE_IDS];
  SolL2Counts l2_counts[MACHINE_IDS + 1];
} Machine;

static inline SolEmuMachine machine_of(const char *gpu) {
  const SolDevice *device = NULL;
  if (sol_device_find(gpu, &device, NULL)) abort();
  return sol_driver_machine(device);
}

// The L2 that an H200 is emulated with; bytes: of that size instead, unless 0.
static inline SolL2Config machine_l2(uint64_t bytes) {
  SolL2Config config = machine_of("h200").l2;
  if (bytes) config.bytes = bytes;
  return config;
}

// Dies where memory runs out or a size is refused: no test goes on from there.
static inline Machine *machine_new(uint64_t l1_bytes, const SolL2Config *l2, uint32_t log_capacity) {
  Machine *m = calloc(1, sizeof *m);
  size_t size = sol_l2_bytes(l2);
  if (!m || !size || !(m->l2_memory = malloc(size))) abort();
  if (sol_l2_init(&m->l2, l2, m->l2_memory, size, NULL)) abort();
  for (int i = 0; i < MACHINE_SMS; i++) {
    m->l1_memory[i] = malloc(sol_l1_bytes(l1_bytes));
    m->log_memory[i] = malloc(sol_log_bytes(log_capacity));
    if (!m->l1_memory[i] || !m->log_memory[i]) abort();
    if (sol_l1_init(&m->l1[i], l1_bytes, m->l1_memory[i], sol_l1_bytes(l1_bytes), NULL)) abort();
    sol_log_init(&m->log[i], log_capacity, m->log_memory[i]);
  }
  return m;
}

static inline void machine_free(Machine *m) {
  for (int i = 0; i < MACHINE_SMS; i++) free(m->l1_memory[i]), free(m->log_memory[i]);
  free(m->l2_memory);
  free(m);
}

static inline void machine_drain(Machine *m) {
  for (int i = 0; i < MACHINE_SMS; i++) sol_log_sort(&m->log[i]);
  for (uint32_t s = 0; s < SOL_SHARDS; s++)
    sol_l2_drain(&m->l2, s, m->log, MACHINE_SMS, m->l2_counts, MACHINE_IDS);
  for (int i = 0; i < MACHINE_SMS; i++) sol_log_empty(&m->log[i]);
}

static inline void machine_access(Machine *m, int sm, const uint64_t addr[32], uint32_t mask, uint32_t width,
                                  SolMemOp op, uint32_t id) {
  SolCoalesced request;
  sol_coalesce(addr, mask, width, &request);
  if (sol_l1_access(&m->l1[sm], &request, op, id, &m->l1_counts[id], &m->log[sm])) return;
  machine_drain(m);
  if (!sol_l1_access(&m->l1[sm], &request, op, id, &m->l1_counts[id], &m->log[sm])) abort();
}

// Lane i at base + i * stride.
static inline void machine_strided(Machine *m, int sm, uint64_t base, uint64_t stride, uint32_t width,
                                   SolMemOp op, uint32_t id) {
  uint64_t addr[32];
  for (uint64_t i = 0; i < 32; i++) addr[i] = base + i * stride;
  machine_access(m, sm, addr, UINT32_MAX, width, op, id);
}

static inline SolL2Counts machine_sum(const Machine *m) {
  SolL2Counts t = {0};
  for (int i = 0; i <= MACHINE_IDS; i++) {
    const SolL2Counts *c = &m->l2_counts[i];
    t.reads += c->reads, t.read_hits += c->read_hits, t.writes += c->writes;
    t.atomics += c->atomics, t.atomic_hits += c->atomic_hits;
    t.dram_read_bytes += c->dram_read_bytes, t.dram_write_bytes += c->dram_write_bytes;
  }
  return t;
}

#endif
