// Short rows, dense: spans of many of them go through shared memory (narrow.cuh), where some lanes share a row, which is one group. Its largest magnitude
// comes from x's words as they lie there; then results are made four at a time, an aligned word of y. What shares such a word with another row is
// done singly.
#ifndef SOL_KERNELS_QUANTIZE_NARROW_CUH
#define SOL_KERNELS_QUANTIZE_NARROW_CUH

// A row in shared memory, from byte x there on, whose results go to byte y.
typedef struct QuantizeNarrow {
  int x, y, n; // n: columns; 0: no row
  int lane, lanes;
} QuantizeNarrow;

INLINE uint32_t narrow_bits(int at, int in) { return in == 4 ? *(const uint32_t *)(narrow_memory + at) : *(const uint16_t *)(narrow_memory + at); }

// The largest magnitude of what a lane has of it.
INLINE uint32_t narrow_top(const QuantizeNarrow &r, int in, int kind) {
  int odd = in == 2 && r.x & 2 ? 1 : 0, per = 4 / in, words = (r.n - odd) / per, rest = odd + words * per;
  const uint32_t *w = (const uint32_t *)(narrow_memory + r.x + 2 * odd);
  uint32_t most[2] = {0, 0};
#pragma unroll 4
  for (int k = r.lane; k < words; k += r.lanes) most[0] = most_word(most[0], w[k], in, kind);
  if (in == 2 && r.lane == 0) {
    if (odd && r.n) most[1] = most_word(most[1], narrow_bits(r.x, in), in, kind);
    if (rest < r.n) most[1] = most_word(most[1], narrow_bits(r.x + 2 * rest, in), in, kind);
  }
  return most_bits(most, in, kind);
}

// Four elements from byte `at` on.
INLINE void narrow_four(int at, int in, int kind, float *f) {
  const uint32_t *w = (const uint32_t *)(narrow_memory + (at & -4));
  uint32_t x[4];
  if (in == 4) {
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = w[i];
  } else {
    int shift = (at & 2) * 8;
    x[0] = __funnelshift_r(w[0], w[1], shift);
    x[1] = __funnelshift_r(w[1], shift ? w[2] : 0, shift);
  }
  to_floats(x, 4, kind, f);
}

INLINE void narrow_write(const QuantizeNarrow &r, int in, int kind, int how, float times) {
  enum { BESIDE = 3 }; // at most, at each end
  int head = min(-r.y & 3, r.n), words = (r.n - head) / 4, tail = head + 4 * words;
#pragma unroll 2
  for (int k = r.lane; k < words; k += r.lanes) {
    float f[4];
    narrow_four(r.x + (head + 4 * k) * in, in, kind, f);
    pack(how, 4, f, times, (uint32_t *)(narrow_memory + r.y + head) + k);
  }
#pragma unroll 3
  for (int j = r.lane; j < 2 * BESIDE; j += r.lanes) {
    int column = j < BESIDE ? j : tail + j - BESIDE;
    if (column >= (j < BESIDE ? head : r.n)) continue;
    float f[8];
    uint32_t x = narrow_bits(r.x + column * in, in), w;
    to_floats(&x, 4 / in, kind, f);
    f[1] = f[2] = f[3] = 0;
    pack(how, 4, f, times, &w);
    narrow_memory[r.y + column] = (char)w;
  }
}

INLINE void quantize_narrow(const QuantizeParams &p, int in, int kind, int how) {
  int rows = narrow_rows(&p.narrow, p.m), bits = p.narrow.lane_bits, lanes = 1 << bits;
  NarrowTile x = narrow_tile(&p.narrow, NARROW_X, p.x, p.x_stride, in, rows);
  NarrowTile y = narrow_tile(&p.narrow, NARROW_Y, p.y, p.y_stride, 1, rows);
  uint64_t start = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * p.narrow.rows;
  begin_kernel();
  narrow_fetch(x, in);
  narrow_arrived();
  for (int first = 0; first < rows; first += NARROW_THREADS >> bits) {
    int row = first + (int)(threadIdx.x >> bits);
    QuantizeNarrow r = {x.place + row * x.pitch, y.place + row * y.pitch, row < rows ? (int)p.n : 0, (int)threadIdx.x & (lanes - 1), lanes};
    uint32_t top = narrow_top(r, in, kind);
    for (int o = lanes / 2; o; o /= 2) top = max(top, __shfl_xor_sync(~0u, top, o));
    float times = scale_group(p, how, __uint_as_float(top), start + row, r.n && r.lane == 0);
    narrow_write(r, in, kind, how, times);
  }
  __syncthreads();
  narrow_send(y, 1);
}

#endif
