// The k largest elements of a row, and a random one of them.
#include "elementwise.cuh"

#include "draw.cuh"
#include "groups.cuh"
#include "short.cuh"
#include "sorted.cuh"
#include "topk.cuh"
