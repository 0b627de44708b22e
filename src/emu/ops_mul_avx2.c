// ops_mul.c once more, for machines with AVX2.
#define OPS_AVX2
#include "emu/ops.h"

#if OPS_HAS_TWIN
#include "emu/ops_mul.c"
#endif
OPS_END
