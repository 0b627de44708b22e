// Softmax by rows: two reductions, and how often a row is read for them.
#include <math.h>

#include "base/error.h"
#include "kernels/softmax/rungs.h"
#include "ladder/ladder_jobs.h"

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[0] > INT32_MAX)
    return sol_fail(err, SOL_ERR_RANGE,
                    "M must be below 2^31: a grid has no more blocks, and a row takes one");
  return ladder_whole_vectors(c, 4, err);
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer; // a row: .unit
  double top = -INFINITY, sum = 0;
  for (int64_t i = 0; i < count; i++) top = fmax(top, h->value(h, JOB_X, first + i));
  for (int64_t i = 0; i < count; i++) sum += out[i] = exp(h->value(h, JOB_X, first + i) - top);
  for (int64_t i = 0; i < count; i++) out[i] /= sum;
}

static SolStatus go(const LadderCall *call, SolError *err) {
  SoftmaxRung p = {.y = ladder_at(call, JOB_Y), .x = ladder_at(call, JOB_X), .n = call->c.dim[1]};
  LadderGrid g = {.grid = {(uint32_t)call->c.dim[0]}, .block = {SOFTMAX_THREADS}};
  return ladder_launch(call, call->rung->kernel, &g, &p, sizeof p, err);
}

static const LadderRung rungs[] = {
    {.name = "serial-max",
     .change = "one thread of the block finds the row's maximum; the sum is accumulated by atomics in "
               "shared memory",
     .why = "While one lane goes through the row, element by element, the other threads of the block "
            "wait at the barrier: no loads are in flight but its own. Then the row is read again, "
            "written as exponentials, read back and written once more.",
     .kernel = "softmax_serial"},
    {.name = "parallel-max",
     .change = "all threads search for the maximum; a tree in shared memory combines what they found",
     .why = "The search takes as many steps as each thread has elements, and is coalesced, instead of "
            "one step for each element of the row.",
     .story = LADDER_FASTER,
     .kernel = "softmax_parallel"},
    {.name = "shuffles",
     .change = "both reductions by warp shuffles, then once over the warps",
     .why = "The tree had a barrier for each of its levels, and the atomics of a block on one address "
            "are serialised, lane by lane. Now each reduction has one barrier, and nothing is "
            "serialised.",
     .story = LADDER_FASTER,
     .kernel = "softmax_shuffles"},
    {.name = "vectors",
     .change = "float4: 16 bytes per access",
     .why = "A quarter of the memory instructions in every pass, and four times the bytes in flight per "
            "thread.",
     .story = LADDER_FASTER,
     .kernel = "softmax_vectors"},
    {.name = "bounds",
     .change = "__launch_bounds__(256, 8): few enough registers for eight blocks per SM",
     .why = "It can only help where the compiler would have used more registers than that. For this "
            "kernel it does not: the number is the same without it, and nothing changes. Where the "
            "compiler would have to spill to stay within the bound, it costs.",
     .story = LADDER_SAME,
     .kernel = "softmax_bounds"},
    {.name = "online",
     .change = "maximum and sum in one pass; x is read again for the result, y is written once",
     .why = "Three passes become two: the exponentials are not written and read back, so L2 gets half "
            "of the stores, and the block waits at one barrier less. The price is more exponentials: to "
            "rescale the sum whenever a larger element is found, and to compute each of them twice.",
     .story = LADDER_FASTER,
     .kernel = "softmax_online"},
    {.name = "library",
     .change = "sol_softmax: the row stays in registers between one read and one write",
     .why = "Each element is loaded once, all loads of a thread are issued together, and its "
            "exponential is computed once; both reductions are one; later rows are prefetched into L2.",
     .story = LADDER_FASTER,
     .op = &ops_softmax},
};

const Ladder ladder_softmax = {
    .name = "softmax",
    .title = "Softmax of rows",
    .about = "y = exp(x - max) / sum(exp(x - max)) by rows, float. The maximum and the sum are "
             "reductions over a row, and the result needs both: written plainly, that is three passes "
             "over the row. The ladder first makes the reductions parallel and cheap, then removes "
             "passes.",
    .module = "softmax_rungs",
    LADDER_MATRIX_JOB,
    .size = {4096, 4096},
    .small = {29, 1028},
    LADDER_RUNGS(rungs),
    .go = go,
    .accept = accept,
    .expect = expect,
    .unit = ladder_row,
    .slack = 192, // the sum by atomics adds 256 terms one after another; __expf has an error of its own
};
