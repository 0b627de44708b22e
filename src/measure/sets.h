// An operation's tensors many times over, so that no call finds its inputs or outputs in a cache: call i
// works on set i, and all sets together are several times the cache. Inputs are random, outputs poisoned.
#ifndef SOL_MEASURE_SETS_H
#define SOL_MEASURE_SETS_H

#include "ops/operation.h"

typedef struct Sets {
  SolContext *ctx;
  const OpsDef *def;
  OpsView view[OPS_MAX_VIEWS];
  int view_count, count;
  int misalign;                // every tensor starts that many elements after an aligned address
  void *memory[OPS_MAX_VIEWS]; // all sets' copies of a tensor, one after another
  size_t step[OPS_MAX_VIEWS];  // bytes from one to the next; 0: all sets share it
  double bytes;                // that a call moves
  SolCost cost;
  _Alignas(16) unsigned char args[512];
} Sets;

// Works out the case: its tensors and what a call costs. Nothing is allocated. SOL_ERR_NOT_FOUND: the
// operation has no such case. A tensor that a call reads or writes only in part (a table, a cache) is shared
// by all sets; the ids differ.
SolStatus sets_plan(Sets *s, SolContext *ctx, const OpsDef *def, const OpsCase *c, int misalign,
                    SolError *err);
// Memory for `count` sets, filled. Close it after a failure, too.
SolStatus sets_open(Sets *s, int count, uint64_t seed, SolError *err);
double sets_memory(const Sets *s, int count); // bytes that sets_open will take
// The arguments of a call on one set.
void sets_args(const Sets *s, int set, void *args);
void sets_close(Sets *s);

#endif
