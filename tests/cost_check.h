// What the tests of operations ask for: an operation by its name, its cost, its bytes.
#ifndef COST_CHECK_H
#define COST_CHECK_H

#include "check.h"
#include "sol/op.h"

static int op(const char *name) {
  int i = -1;
  SolError err;
  CHECK_MSG(sol_op_find(name, &i, &err) == SOL_OK, "%s: %s", name, err.message);
  return i;
}

static SolCost cost_of(SolOpArgs args) {
  SolCost cost = {0};
  SolError err = {0};
  SolStatus status = sol_op_cost(&args, &cost, &err);
  CHECK_MSG(status == SOL_OK, "%s: %s", sol_op_info(args.op)->name, err.message);
  return cost;
}

static double bytes_of(SolCost cost) {
  return cost.bytes_read + cost.bytes_written;
}

#endif
