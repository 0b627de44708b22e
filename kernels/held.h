// What kernels that hold a row in the shared memory of a cluster's blocks share with their launchers.
#ifndef SOL_KERNELS_HELD_H
#define SOL_KERNELS_HELD_H

// The most dynamic shared memory of a block, and the most threads.
enum { HELD_SHARED = 64 << 10, HELD_THREADS = 512 };

#endif
