// L2 from launch to launch: made for the first that counts, kept until the emulator ends.
#include "base/error.h"
#include "base/heap.h"
#include "emu/core/state.h"

static SolStatus make(SolEmu *emu, SolError *err) {
  const SolL2Config *config = &emu->machine.l2;
  size_t size = sol_l2_bytes(config);
  if (!size)
    return sol_fail(err, SOL_ERR_ARGUMENT, "an L2 of %llu bytes", (unsigned long long)emu->machine.l2.bytes);
  SolL2 *l2 = sol_heap_alloc(sizeof *l2);
  emu->l2_memory = sol_heap_alloc(size);
  SolStatus status = l2 && emu->l2_memory ? sol_l2_lay_out(l2, config, emu->l2_memory, size, err)
                                          : sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  if (!status) emu->l2 = l2;
  if (status) {
    sol_heap_free(l2);
    sol_heap_free(emu->l2_memory);
    emu->l2_memory = NULL;
  }
  return status;
}

SolStatus emu_l2_open(EmuRun *run, SolError *err) {
  SolEmu *emu = run->emu;
  SolStatus status = emu->l2 ? SOL_OK : make(emu, err);
  // What the blocks left out would have evicted is not known, so a sampled launch has L2 for itself.
  run->l2_kept = emu->l2_filled && run->launch->keep_l2 && !run->sample_waves;
  if (!run->l2_kept) emu->l2_filled = false;
  if (!status) sol_l2_set_window(emu->l2, &run->launch->l2_window, emu->l2_aside);
  if (status || run->l2_kept || !run->launch->l2_dirty_before) return status;
  sol_l2_empty(emu->l2);
  sol_l2_use(emu->l2, SOL_L2_WRITES, EMU_OTHERS_BILLED, run->launch->l2_dirty_before);
  run->l2_kept = true;
  return status;
}

void emu_l2_start_shard(EmuRun *run, uint32_t shard) {
  if (run->l2_kept)
    sol_l2_next_launch(run->emu->l2, shard);
  else
    sol_l2_empty_shard(run->emu->l2, shard);
}

static void add(uint64_t *to, const uint64_t *from) {
  for (uint32_t age = 0; age < SOL_AGES; age++) to[age] += from[age];
}

void emu_l2_result(EmuRun *run) {
  SolEmuResult *r = run->result;
  SolL2Earlier earlier = sol_l2_earlier(run->emu->l2);
  run->emu->l2_filled = !run->sample_waves;
  add(r->earlier.found, earlier.found);
  add(r->earlier.written, earlier.written);
  sol_l2_set_window(run->emu->l2, NULL, 0);
  r->left_dirty += sol_l2_left_dirty(run->emu->l2);
  r->dirty_limit = sol_l2_dirty_limit(run->emu->l2);
  for (uint32_t k = 0; k < run->worker_count; k++)
    r->earlier_read += emu_worker(&run->workers[k])->l2_counts[run->program->count].dram_read_bytes;
}

void sol_emu_l2_set_aside(SolEmu *emu, uint64_t bytes) {
  emu->l2_aside = bytes < emu->machine.l2_persisting ? bytes : emu->machine.l2_persisting;
}

void sol_emu_l2_reset(SolEmu *emu) {
  if (emu->l2 && emu->l2_filled) sol_l2_reset_persisting(emu->l2);
}

uint64_t sol_emu_ncu_leaves(const SolEmu *emu) {
  return emu->machine.ncu_dirty;
}

void sol_emu_l2_use(SolEmu *emu, SolL2Use use, uint64_t address, uint64_t bytes) {
  if (!emu->l2_filled && (use == SOL_L2_FREES || (!emu->l2 && make(emu, NULL)))) return;
  if (!emu->l2_filled) sol_l2_empty(emu->l2);
  emu->l2_filled = true;
  sol_l2_use(emu->l2, use, address, bytes);
}
