// Mixed radix, recursive: a transform of n = p q points is p of q points, and n / p of p. Large prime factors are
// computed as a convolution of a power of two (Bluestein).
#include "fft/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE_PRIME = 64 };

static FftNumber root(int64_t k, int64_t n, int sign) { // exp(sign * 2 pi i k / n)
  double angle = 6.283185307179586 * (double)(k % n) / (double)n;
  return CMPLX(cos(angle), sign * sin(angle));
}

static int64_t least_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; p++)
    if (n % p == 0) return p;
  return n;
}

static bool transform(const FftNumber *in, int64_t step, FftNumber *out, int64_t n, int sign);

// x[j] y[j] convolved with conj y: 2jk = j^2 + k^2 - (k - j)^2.
static bool by_convolution(const FftNumber *in, int64_t step, FftNumber *out, int64_t n, int sign) {
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  FftNumber *memory = calloc((size_t)(4 * m + n), sizeof *memory);
  if (!memory) return false;
  FftNumber *a = memory, *b = a + m, *fa = b + m, *fb = fa + m, *y = fb + m;
  for (int64_t j = 0; j < n; j++) {
    y[j] = root((int64_t)((__int128)j * j % (2 * n)), 2 * n, sign);
    a[j] = in[j * step] * y[j];
    b[j] = b[(m - j) % m] = conj(y[j]);
  }
  bool done = transform(a, 1, fa, m, -1) && transform(b, 1, fb, m, -1);
  for (int64_t j = 0; j < m; j++) fa[j] *= fb[j];
  done = done && transform(fa, 1, a, m, 1);
  for (int64_t k = 0; k < n; k++) out[k] = a[k] * y[k] / (double)m;
  free(memory);
  return done;
}

// Transforms of p points across the p parts, which lie one after another in `out`.
static void butterflies(FftNumber *out, int64_t n, int64_t p, int sign) {
  int64_t q = n / p;
  FftNumber part[LARGE_PRIME];
  for (int64_t k = 0; k < q; k++) {
    for (int64_t r = 0; r < p; r++) part[r] = out[r * q + k] * root(r * k, n, sign);
    for (int64_t s = 0; s < p; s++) {
      FftNumber sum = part[0];
      for (int64_t r = 1; r < p; r++) sum += part[r] * (p == 2 ? (s ? -1 : 1) : root(r * s, p, sign));
      out[s * q + k] = sum;
    }
  }
}

static bool transform(const FftNumber *in, int64_t step, FftNumber *out, int64_t n, int sign) {
  int64_t p = least_factor(n);
  if (n == 1) return out[0] = in[0], true;
  if (p >= LARGE_PRIME) return by_convolution(in, step, out, n, sign);
  for (int64_t r = 0; r < p; r++)
    if (!transform(in + r * step, step * p, out + r * (n / p), n / p, sign)) return false;
  butterflies(out, n, p, sign);
  return true;
}

bool fft_line(FftNumber *x, int64_t n, int64_t step, int sign) {
  FftNumber *out = malloc((size_t)n * sizeof *out);
  bool done = out && transform(x, step, out, n, sign);
  for (int64_t k = 0; done && k < n; k++) x[k * step] = out[k];
  free(out);
  return done;
}

bool fft_array(FftNumber *x, const int64_t *n, int dims, int sign) {
  int64_t total = 1, step = 1;
  for (int d = 0; d < dims; d++) total *= n[d];
  for (int d = dims - 1; d >= 0; step *= n[d--])
    for (int64_t at = 0; at < total; at++) // the first element of each line along d
      if (at / step % n[d] == 0 && !fft_line(x + at, n[d], step, sign)) return false;
  return true;
}
