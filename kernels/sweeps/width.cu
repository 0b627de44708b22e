// A copy by 4, 8 and 16 bytes a thread.
#include "rungs.h"

// Vectors first, then the elements that fill none.
#define COPY(name, type, per)                                                                                \
  extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) name(const __grid_constant__ SweepCopy p) {      \
    uint64_t i = (uint64_t)blockIdx.x * SWEEP_BLOCK + threadIdx.x, whole = p.n / per;                        \
    if (i < whole) ((type *)p.y)[i] = ((const type *)p.x)[i];                                                \
    else if (i - whole < p.n % per) p.y[i + whole * (per - 1)] = p.x[i + whole * (per - 1)];                 \
  }
COPY(width_4, float, 1)
COPY(width_8, float2, 2)
COPY(width_16, float4, 4)
