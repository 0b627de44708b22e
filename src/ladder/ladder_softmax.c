// Softmax by rows: two reductions, and how often a row is read for them.
#include <math.h>

#include "base/error.h"
#include "kernels/softmax/rungs.h"
#include "ladder/ladder_matrix.h"

enum { Y = MATRIX_Y, X = MATRIX_X };

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[1] % 4)
    return sol_fail(err, SOL_ERR_RANGE, "N must be a multiple of 4: rows are moved 16 bytes at a time");
  if (c->dim[0] > INT32_MAX)
    return sol_fail(err, SOL_ERR_RANGE,
                    "M must be below 2^31: a grid has no more blocks, and a row takes one");
  return SOL_OK;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t n = h->c->dim[1], row = -1;
  double top = 0, sum = 0;
  for (int64_t k = first; k < first + count; k++) {
    if (k / n != row) {
      row = k / n, top = -INFINITY, sum = 0;
      for (int64_t c = 0; c < n; c++) top = fmax(top, h->value(h, X, row * n + c));
      for (int64_t c = 0; c < n; c++) sum += exp(h->value(h, X, row * n + c) - top);
    }
    *out++ = exp(h->value(h, X, k) - top) / sum;
  }
}

static SolStatus go(const LadderCall *call, SolError *err) {
  SoftmaxRung p = {.y = ladder_at(call, Y), .x = ladder_at(call, X), .n = call->c.dim[1]};
  LadderGrid g = {.grid = {(uint32_t)call->c.dim[0]}, .block = {SOFTMAX_THREADS}};
  return ladder_launch(call, call->rung->kernel, &g, &p, sizeof p, err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolSoftmax a = {.y = ladder_at(call, Y),
                  .x = ladder_at(call, X),
                  .m = call->c.dim[0],
                  .n = call->c.dim[1],
                  .dtype = SOL_FP32};
  return ladder_op(call, &ops_softmax, &a, err);
}

static const LadderRung rungs[] = {
    {.name = "serial-max",
     .change = "one thread of the block looks for the row's largest; sums meet by atomics in shared memory",
     .why = "While one lane walks the row, an element at a time, the block's other threads wait at the "
            "barrier: no loads are on their way but its own. Then the row is read again, written as "
            "exponentials, read back and written once more.",
     .go = go,
     .kernel = "softmax_serial"},
    {.name = "parallel-max",
     .change = "all threads look for the largest, and what they find meets in a tree in shared memory",
     .why = "The search takes as many steps as each thread has elements and is coalesced, instead of one "
            "step for each element of the row.",
     .story = LADDER_FASTER,
     .go = go,
     .kernel = "softmax_parallel"},
    {.name = "shuffles",
     .change = "both reductions by warp shuffles, then once over the warps",
     .why = "The tree had a barrier for each of its levels, and the atomics of a block on one word take "
            "turns, lane by lane. Now there is one barrier a reduction and no turns.",
     .story = LADDER_FASTER,
     .go = go,
     .kernel = "softmax_shuffles"},
    {.name = "vectors",
     .change = "float4: 16 bytes an access",
     .why = "A quarter of the memory instructions in every pass, and four times the bytes in flight in each "
            "thread.",
     .story = LADDER_FASTER,
     .go = go,
     .kernel = "softmax_vectors"},
    {.name = "bounds",
     .change = "__launch_bounds__(256, 8): registers for eight blocks on an SM",
     .why = "It can only help where the compiler would have taken more registers than that. For this kernel "
            "it does not: the same number comes out without, and nothing changes. Where it would have to "
            "spill to obey, it costs.",
     .story = LADDER_SAME,
     .go = go,
     .kernel = "softmax_bounds"},
    {.name = "online",
     .change = "largest and sum in one reading; x is read again for the result, y is written once",
     .why = "Three passes become two: the exponentials are not written to be read back, so L2 sees half of "
            "the stores, and one wait of the whole block is gone. The price is more exponentials, to shrink "
            "a sum when a larger element comes, and to compute them twice.",
     .story = LADDER_FASTER,
     .go = go,
     .kernel = "softmax_online"},
    {.name = "library",
     .change = "sol_softmax: the row stays in registers between one reading and one writing",
     .why = "Each element is loaded once, all loads of a thread at the same time, and its exponential is "
            "taken once; both reductions are one; rows that come later are fetched ahead into L2.",
     .story = LADDER_FASTER,
     .go = library},
};

const Ladder ladder_softmax = {
    .name = "softmax",
    .title = "Softmax of rows",
    .about = "y = exp(x - max) / sum(exp(x - max)) by rows, float. The largest and the sum are reductions "
             "over a row, and the result needs both: written plainly that is three passes over the row. The "
             "ladder makes the reductions parallel and cheap first, and then takes the passes away.",
    .module = "softmax_rungs",
    MATRIX_JOB,
    .size = {4096, 4096},
    .small = {29, 1028},
    LADDER_RUNGS(rungs),
    .accept = accept,
    .expect = expect,
    .unit = matrix_row,
    .slack = 192, // the atomics' sum has 256 summands one after another; __expf is off by some units, too
};
