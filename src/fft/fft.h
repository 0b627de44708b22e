// Discrete Fourier transforms on the host, in double.
#ifndef SOL_FFT_FFT_H
#define SOL_FFT_FFT_H

#include <complex.h>

#include "base/port.h"

typedef double _Complex FftNumber;
enum { FFT_MOST_DIMS = 3 };

// x[k * step] becomes the sum of x[j * step] exp(sign * 2 pi i j k / n), for j and k from 0 to n - 1; not scaled.
// False: out of memory.
bool fft_line(FftNumber *x, int64_t n, int64_t step, int sign);
// The same along every dimension of a dense array, the last one contiguous.
bool fft_array(FftNumber *x, const int64_t *n, int dims, int sign);

#endif
