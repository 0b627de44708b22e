// The library's functions, sol_NAME and sol_NAME_cost, of every operation.
#include "ops/operation.h"

#define OP(name, Args)                                                                                       \
  SolStatus sol_##name(SolContext *context, const Args *args, SolStream stream) {                            \
    return ops_call(context, &ops_##name, args, stream);                                                     \
  }                                                                                                          \
  SolStatus sol_##name##_cost(const Args *args, SolCost *out, SolError *err) {                               \
    return ops_cost(&ops_##name, args, out, err);                                                            \
  }
#include "ops/operations.def"
