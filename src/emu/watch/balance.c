// How evenly a launch's work is distributed. The GPU gives each block, in order, to the first SM with room for it: that is
// done here again, with each block as long as its critical path (chain.c).
#include "base/heap.h"
#include "emu/watch/observe.h"

enum { MOST_UNITS = 1 << 20 }; // with more, chance has evened them out

typedef struct Slot {
  double free_at;
  uint32_t sm;
} Slot;

bool emu_balance_make(EmuRun *run) {
  if (run->sample_waves || run->unit_count > MOST_UNITS) return true;
  run->units = sol_heap_alloc(sizeof *run->units * run->unit_count);
  if (run->units) memset(run->units, 0, sizeof *run->units * run->unit_count);
  return run->units;
}

static bool all_alike(const EmuUnitWork *units, uint64_t count) {
  for (uint64_t i = 1; i < count; i++)
    if (memcmp(&units[i], &units[0], sizeof *units) != 0) return false;
  return true;
}

// A heap: no slot is free before its parent.
static void sift_down(Slot *slots, uint32_t count, uint32_t at) {
  Slot moved = slots[at];
  for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && slots[child + 1].free_at < slots[child].free_at) child++;
    if (slots[child].free_at >= moved.free_at) break;
    slots[at] = slots[child];
  }
  slots[at] = moved;
}

// Returns when the last unit ends; adds each unit's instructions to its SM's.
static double schedule(const EmuRun *run, Slot *slots, uint32_t count, double *sm_work) {
  double last = 0;
  for (uint32_t s = 0; s < count; s++) slots[s] = (Slot){(double)run->units[s].path, s % run->sm_count};
  for (uint32_t s = count; s-- > 0;) sift_down(slots, count, s);
  for (uint64_t u = count; u < run->unit_count; u++) {
    sm_work[slots[0].sm] += (double)run->units[u].instructions;
    slots[0].free_at += (double)run->units[u].path;
    sift_down(slots, count, 0);
  }
  for (uint32_t s = 0; s < count; s++) {
    sm_work[s % run->sm_count] += (double)run->units[s].instructions;
    if (slots[s].free_at > last) last = slots[s].free_at;
  }
  return last;
}

// How often `at_once` of them run until all have.
static double rounds(uint64_t count, uint64_t at_once) {
  uint64_t full = count / at_once;
  return (double)(full + (count % at_once != 0));
}

static SolEmuBalance balance_of(const EmuRun *run, double last, const double *sm_work) {
  uint64_t slots = (uint64_t)run->units_per_sm * run->sm_count, count = run->unit_count;
  double path = 0, instructions = 0, busiest = 0;
  for (uint64_t u = 0; u < count; u++)
    path += (double)run->units[u].path, instructions += (double)run->units[u].instructions;
  for (uint32_t s = 0; s < run->sm_count; s++)
    if (sm_work[s] > busiest) busiest = sm_work[s];
  double waves = rounds(count, slots), per_sm = rounds(count, run->sm_count);
  return (SolEmuBalance){.longest = path > 0 ? last * (double)count / (path * waves) : 1,
                         .busiest = instructions > 0 ? busiest * (double)count / (instructions * per_sm) : 1};
}

SolEmuBalance emu_balance(const EmuRun *run) {
  SolEmuBalance even = {1, 1};
  if (!run->units || run->stop || all_alike(run->units, run->unit_count)) return even;
  uint64_t slots = (uint64_t)run->units_per_sm * run->sm_count;
  uint32_t count = (uint32_t)(slots < run->unit_count ? slots : run->unit_count);
  Slot *room = sol_heap_alloc(sizeof *room * count);
  double *sm_work = sol_heap_alloc(sizeof *sm_work * run->sm_count);
  if (room && sm_work) {
    memset(sm_work, 0, sizeof *sm_work * run->sm_count);
    even = balance_of(run, schedule(run, room, count, sm_work), sm_work);
  }
  sol_heap_free(room);
  sol_heap_free(sm_work);
  return even;
}
