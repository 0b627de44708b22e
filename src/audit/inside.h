// What the files of this folder share, rules aside.
#ifndef SOL_AUDIT_INSIDE_H
#define SOL_AUDIT_INSIDE_H

#include "audit/audit.h"
#include "audit/audit_names.h"

// ---- work.c: from counts to demands ----

// Where a kernel's loads find their bytes, and how often a warp waits for them.
typedef struct AuditWaits {
  double per_load; // waits over loads: 1 where each is waited for
  double clocks;   // of one wait
  double far;      // of one that L1 could not answer
} AuditWaits;
AuditWaits audit_waits(const SolDevice *device, const AuditInst *insts, uint32_t count,
                       const SolEmuFlight *flight);
// Adds what the instruction demands, counts times `scale`.
void audit_demand(const AuditInst *inst, const AuditWaits *waits, double scale, AuditWork *work);
// Clocks that warps wait and issue, summed, as if none waited for another; and how much longer a block's
// chain is.
double audit_wait_clocks(const SolDevice *device, const AuditWork *work);
double audit_chain(const SolDevice *device, const AuditWork *work, const AuditWaits *waits,
                   const SolEmuChain *chain, double scale, double executions);
// Clocks that its atomics keep the busiest part of L2.
double audit_atomic_clocks(const AuditInst *inst);
// Bytes a thread that ptxas spilled, as far as they are known; and what they demand, so many threads being
// resident.
double audit_spilled(AuditSource from, uint64_t stack_bytes, uint64_t local_array_bytes);
AuditWork audit_spills(double bytes, double warps, double resident);
void audit_work_add(AuditWork *to, const AuditWork *from); // demands and launches; geometry becomes the mean

// ---- flows.c: who reads what whom wrote ----

void audit_flows_launch(AuditProgram *program, uint32_t kernel, const AuditLaunch *launch);
void audit_flows_free(AuditProgram *program);

// ---- lines.c: sums by source line ----

SolStatus audit_lines(AuditProgram *program, AuditKernel *kernel, SolError *err);

// ---- bill.c ----

const char *audit_keep(AuditProgram *program,
                       const char *text); // a copy in the arena; NULL: NULL, or none left
// Makes room for one more of `size` bytes; false: out of memory.
bool audit_grow(void **items, uint32_t count, uint32_t *cap, size_t size);

// What the program holds besides what it shows.
typedef struct AuditSlots { // a kernel's instructions by place, summed so far
  uint32_t unit;
  AuditInst *insts;
  uint32_t count;
} AuditSlots;
typedef struct AuditBuffer { // an allocation with what a kernel wrote last
  uint64_t address, bytes;
  uint32_t writer;  // kernel; UINT32_MAX: none, or not only a kernel
  double written;   // bytes
  uint32_t readers; // launches, and others, since
  uint32_t flow;    // the first reader's
} AuditBuffer;
typedef struct AuditState {
  AuditSlots *slots; // one per kernel
  uint32_t slot_cap;
  AuditBuffer *buffers;
  uint32_t buffer_count, buffer_cap;
} AuditState;

#endif
