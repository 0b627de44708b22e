// What bulk copies and tensor copies share.
#ifndef SOL_EMU_BULK_H
#define SOL_EMU_BULK_H

#include "emu/core/state.h"

// The address at the same offset in the shared memory of the block of that rank.
static inline uint64_t bulk_in_rank(uint64_t address, uint32_t rank) {
  return (address & ((1u << EMU_RANK_SHIFT) - 1)) + ((uint64_t)(EMU_RANKED + rank) << EMU_RANK_SHIFT);
}
static inline uint64_t bulk_shared_address(uint64_t address) {
  return address >= EMU_SHARED_WINDOW ? address - EMU_SHARED_WINDOW : address;
}

// Global memory that one copy reads or writes: one request, whatever its length. 32 pieces of 16 bytes at a time go
// through the model.
typedef struct BulkTraffic {
  uint64_t addr[EMU_LANES];
  uint64_t requests;
  uint32_t pieces;
  SolMemOp op;
} BulkTraffic;
void bulk_traffic_begin(EmuCtx *x, const EmuInst *i, SolMemOp op, BulkTraffic *t);
void bulk_traffic_add(EmuCtx *x, const EmuInst *i, BulkTraffic *t, uint64_t address, uint64_t bytes);
void bulk_traffic_end(EmuCtx *x, const EmuInst *i, BulkTraffic *t);

bool lower_tensor(Lower *l, const PtxInst *in, EmuInst *out);         // ops_tensor.c
bool lower_cluster_launch(Lower *l, const PtxInst *in, EmuInst *out); // ops_cluster_launch.c

#endif
