// What kernels and their launchers share: how element types are numbered.
#ifndef SOL_KERNELS_COMMON_H
#define SOL_KERNELS_COMMON_H

enum { KIND_FP32 = 0, KIND_FP16 = 1, KIND_BF16 = 2, KIND_FP8 = 3 };

#endif
