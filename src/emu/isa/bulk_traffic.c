// Bulk copies' traffic in global memory.
#include "emu/core/hooks.h"
#include "emu/isa/bulk.h"

static void flush(EmuCtx *x, const EmuInst *i, BulkTraffic *t) {
  EmuWorker *w = emu_worker(x);
  SolL1Counts *c = &w->l1_counts[i->index];
  if (!t->pieces) return;
  sol_coalesce(t->addr, t->pieces == EMU_LANES ? EMU_ALL : (1u << t->pieces) - 1, 16, &w->coalesced);
  t->pieces = 0;
  if (w->sm->log->capacity - w->sm->log->count >= SOL_MAX_RECORDS) {
    sol_l1_access(&w->sm->l1, &w->coalesced, t->op, i->index, c, w->sm->log);
  } else { // a box of thousands of short rows: the rest of it does not go through the model of L2
    c->sectors += w->coalesced.sectors;
    c->ideal_sectors += w->coalesced.ideal_sectors;
    c->lines += w->coalesced.lines;
  }
  if (x->launch->observing) emu_touch_any(x, &w->coalesced, t->op);
}

void bulk_traffic_begin(EmuCtx *x, const EmuInst *i, SolMemOp op, BulkTraffic *t) {
  t->op = op;
  t->pieces = 0;
  t->requests = emu_worker(x)->l1_counts[i->index].requests + 1;
}

void bulk_traffic_add(EmuCtx *x, const EmuInst *i, BulkTraffic *t, uint64_t address, uint64_t bytes) {
  x->counts[i->index].bytes += bytes;
  if (!x->launch->counting) return;
  for (uint64_t at = address & ~UINT64_C(15); at < address + bytes; at += 16) {
    t->addr[t->pieces++] = at;
    if (t->pieces == EMU_LANES) flush(x, i, t);
  }
}

void bulk_traffic_end(EmuCtx *x, const EmuInst *i, BulkTraffic *t) {
  if (!x->launch->counting) return;
  flush(x, i, t);
  emu_worker(x)->l1_counts[i->index].requests = t->requests;
  emu_log_room(x);
}
