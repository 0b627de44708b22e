// Row normalisations to fp8, rows that start anywhere, input and output alike (strip.cuh): as norm_held, but a warp's
// chunks are next to each other, a cluster may have a row, and with a scale per block each block is a separate strip.
// Weights are of the input's type and start on 16 bytes.
#ifndef SOL_KERNELS_NORM_ODD_CUH
#define SOL_KERNELS_NORM_ODD_CUH

#include "norm.cuh"
#include "strip.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
// Prefetches into L2 while the predecessor still runs: lines of the row, and of the weights, which all blocks need.
INLINE void odd_hint(const NormParams *p, uint64_t row, int bytes, int t) {
  if (t * 128 >= bytes) return;
  if (row < 4) prefetch_l2((const char *)p->weight + t * 128);
  if (may_hint()) prefetch_l2((const char *)p->x + (int64_t)row * p->x_stride + t * 128);
}

// Weights of a chunk, by the words that they are in: one more where they start within one.
INLINE Vec odd_weights(NormKernel c, const uint32_t *from, bool half, bool there) {
  uint32_t u[5];
  Vec w;
#pragma unroll
  for (int j = 0; j < 4; j++) u[j] = there ? from[j] : 0;
  u[4] = norm_bytes(c) == 2 && there && half ? from[4] : 0;
#pragma unroll
  for (int j = 0; j < 4; j++) w.u[j] = norm_bytes(c) == 2 ? __funnelshift_r(u[j], u[j + 1], half * 16) : u[j];
  return w;
}

// How many edges a thread may have. Blocks of full length have as many as a chunk has elements, or none; laps: so many
// blocks' fill a group of lanes. The row's last block may have as many again.
#define ODD_EDGES(chunks, laps, blocks) ((blocks) ? ((chunks) + (laps)) / (laps) : 1)

INLINE void norm_odd(NormKernel c, const NormParams *p, int blocks) {
  __shared__ __align__(16) float part[2][40];
  __shared__ ClusterExchange exchange;
  const int in = norm_bytes(c), per = 16 / in, lanes = c.lanes ? c.lanes : 32;
  const int group = 128 / per, laps = group / per, edges = ODD_EDGES(c.chunks, laps, blocks);
  const int scaling = blocks ? NORM_SCALE_BLOCK : p->scaling == NORM_SCALE_ROW ? NORM_SCALE_ROW : NORM_SCALE_TENSOR;
  int t = threadIdx.x;
  uint64_t row = block_index();
  if (c.lanes) {
    row = row * (128 / c.lanes) + t / c.lanes;
    t %= c.lanes;
  } else if (p->cluster_bits) {
    exchange_init(&exchange);
    row >>= p->cluster_bits;
    t += (int)cluster_rank() * blockDim.x;
  }
  int n = row < p->m ? (int)p->n : 0, lane = t % lanes, first = (t - lane) * c.chunks + lane;
  odd_hint(p, row, n * in, t);
  begin_kernel();
  NormRow r = norm_row_of(c, p, row, (int64_t)row);
  int head = strip_head(r.y, per), mine = lane % group, before = first - mine; // by blocks: chunks before them
  Strip s = strip_of(head, n, per);
  const char *x = r.x + (head + first * per) * in, *weight = (const char *)p->weight + first * 16 + (head * in & ~3);
  char *y = r.y + head + first * per;
  bool inside[4], there[4], edge[4];
  int column[4];
  float edge_weights[4];
  Vec v[4], w[4];
  Fp8Held h;
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    int at = first + k * lanes;
    inside[k] = at * per < n;
    there[k] = at < s.chunks && (!blocks || mine + (head != 0) < group);
    v[k] = load16_now(x + k * lanes * 16, there[k]);
  }
#pragma unroll
  for (int i = 0; i < edges; i++) {
    int e = t, begin = 0;
    h.lap[i] = 0;
    if (blocks) {
      int end = n / 128 * group - before; // chunks from here to the row's last, short block
      h.lap[i] = i * laps + mine / per, e = mine % per;
      if (h.lap[i] == c.chunks) h.lap[i] = end >= 0 && end % 32 == 0 ? end / 32 : c.chunks, e += per;
      begin = (before + 32 * h.lap[i]) * per;
      s = strip_of(head, min(128, n - begin), per);
    }
    edge[i] = e < s.edges && h.lap[i] < c.chunks;
    column[i] = begin + strip_edge(s, e, per);
    h.edge[i] = edge[i] ? load_one(r.x, column[i], c.kind) : 0;
  }
  if (!c.lanes && t == 0) norm_prefetch(c, p, row, 0, n * in, true);
#pragma unroll
  for (int k = 0; k < c.chunks; k++)
    w[k] = odd_weights(c, (const uint32_t *)(weight + k * lanes * 16), head & 1, there[k]);
#pragma unroll
  for (int i = 0; i < edges; i++) edge_weights[i] = edge[i] ? load_one(p->weight, column[i], c.kind) : 0;
  fp8_sums(c, p, scaling, v, w, edges, edge_weights, part, &h);
  if (!c.lanes && p->cluster_bits) h.total = cluster_fold(c, p, &exchange, h.total);
  uint2 u[4];
  fp8_values(c, p, scaling, row, first, lanes, inside, edges, &h, u);
#pragma unroll
  for (int k = 0; k < c.chunks; k++)
    if (there[k]) fp8_put(c, y, k * lanes, u[k]);
#pragma unroll
  for (int i = 0; i < edges; i++)
    if (edge[i]) r.y[column[i]] = (char)fp8_pair(h.edge[i], 0);
}

INLINE void norm_odd_rows(NormKernel c, const NormParams *p) {
  norm_odd(c, p, 0);
}
INLINE void norm_odd_blocks(NormKernel c, const NormParams *p) {
  norm_odd(c, p, 1);
}
#endif

#endif
