// The k largest elements of a row (kernels/select).
#include "elementwise.cuh"

#include "select/binned.cuh"
#include "select/sorted.cuh"
#include "select/topk.cuh"
