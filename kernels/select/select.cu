// A random element of a row, of all or of the largest.
#include "elementwise.cuh"

#include "draw.cuh"
#include "few.cuh"
#include "groups.cuh"
#include "serial.cuh"
#include "short.cuh"
