#ifndef SOL_KERNELS_TINY_H
#define SOL_KERNELS_TINY_H

enum { TINY_BYTES = 32 }; // of a row, at most (tiny.cuh)

#endif
