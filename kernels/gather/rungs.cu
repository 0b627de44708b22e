// y[i] = x[ids[i]], of single words and of runs of words.
#include "gather/rungs.h"
#include "common.cuh"

// A word a thread, at its id. The cost depends on the order of the ids.
KERNEL gather_rung_words(const __grid_constant__ GatherRung p) {
  uint64_t i = thread_index();
  if (i < p.count) p.y[i] = p.x[p.ids[i]];
}

// An id for a run of words: neighbouring threads read neighbouring words by construction, and few ids are read.
KERNEL gather_rung_runs(const __grid_constant__ GatherRung p) {
  uint64_t i = thread_index(), run, k;
  if (i >= p.count) return;
  split(i, p.run, &run, &k);
  p.y[i] = p.x[(int64_t)p.ids[run] * (int64_t)p.run + (int64_t)k];
}
