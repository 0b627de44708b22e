// Dense tensors as one long row: 16-byte chunks of x, and the aligned results of each in y, wherever rows and groups start. Tiles of whole groups pass through the shared
// memory of blocks that stay, which load the next ones meanwhile. The largest magnitude of each group first, then all chunks: one that has elements of two groups multiplies each by its own.
#ifndef SOL_KERNELS_QUANTIZE_FLAT_CUH
#define SOL_KERNELS_QUANTIZE_FLAT_CUH

#include "hopper.cuh"

// A tile: groups first to first + groups - 1 of all, their elements begin to end - 1. Columns count from the start of the row that the first group is in.
typedef struct FlatTile {
  uint64_t first;
  int groups;
  int skipped;        // groups of that row before the first
  int64_t row;        // the row's first element
  int begin, end;     // columns
  int chunk0, chunks; // column of the first chunk, which may be before `begin`; chunks
  int loaded;         // of them: all but one that runs on over the tensor's end
} FlatTile;

typedef struct FlatShared {
  uint64_t full[FLAT_SLOTS], empty[FLAT_SLOTS];
  FlatTile tile[FLAT_SLOTS];
  uint32_t tops[FLAT_GROUPS];  // the largest magnitude of groups that several warps share, 0 between two tiles
  float times[2][FLAT_GROUPS]; // what elements of a group are multiplied by, of a tile and of the next
} FlatShared;

INLINE int flat_column(const QuantizeParams &p, int group) { // where a group starts, counted from the first row's first
  int row = p.groups == 1 ? group : (int)divide32((uint32_t)group, p.flat.by_groups);
  return row * (int)p.n + (group - row * (int)p.groups) * p.flat.group;
}

INLINE FlatTile flat_tile(const QuantizeParams &p, uint64_t tile, int in) {
  const int per = 16 / in;
  FlatTile t;
  uint64_t row, skipped;
  t.first = tile * p.flat.groups;
  t.groups = (int)min((uint64_t)p.flat.groups, p.m * p.groups - t.first);
  split(t.first, p.groups, &row, &skipped);
  t.row = (int64_t)row * p.n, t.skipped = (int)skipped;
  t.begin = t.skipped * p.flat.group, t.end = flat_column(p, t.skipped + t.groups);
  t.chunk0 = t.begin - (int)((t.row + t.begin) % per);
  t.chunks = (t.end - t.chunk0 + per - 1) / per;
  t.loaded = t.first + t.groups == p.m * p.groups ? (t.end - t.chunk0) / per : t.chunks;
  return t;
}

INLINE void flat_load(const QuantizeParams &p, const FlatTile &t, uint4 *to, uint64_t *full, int in) { // by one thread
  barrier_expect(full, t.loaded * 16);
  if (t.loaded)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(__cvta_generic_to_global((const char *)p.x + (t.row + t.chunk0) * in)), "r"(t.loaded * 16), "r"(shared_address(full))
                 : "memory");
}

// The chunk that runs on over the tensor's end.
INLINE void flat_rest(const QuantizeParams &p, const FlatTile &t, uint4 *memory, int in) {
  int column = t.chunk0 + t.loaded * (16 / in) + (int)threadIdx.x;
  if (t.loaded == t.chunks || (int)threadIdx.x >= 16 / in) return;
  bool has = column < t.end;
  if (in == 4) ((uint32_t *)(memory + t.loaded))[threadIdx.x] = has ? ((const uint32_t *)p.x)[t.row + column] : 0;
  else ((uint16_t *)(memory + t.loaded))[threadIdx.x] = has ? ((const uint16_t *)p.x)[t.row + column] : (uint16_t)0;
}

// Elements lo to hi - 1 of a chunk; others are 0.
INLINE void flat_mask(Vec &v, int lo, int hi, int in) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (in == 4) v.u[i] = i >= lo && i < hi ? v.u[i] : 0;
    else v.u[i] &= (2 * i >= lo && 2 * i < hi ? 0xffffu : 0) | (2 * i + 1 >= lo && 2 * i + 1 < hi ? 0xffff0000u : 0);
  }
}

typedef struct FlatGroup {
  int lo, hi, begin, end; // its elements, counted from the first chunk's first; its chunks
} FlatGroup;
INLINE FlatGroup flat_group(const QuantizeParams &p, const FlatTile &t, int group, int in) {
  const int per = 16 / in;
  FlatGroup g;
  g.lo = flat_column(p, t.skipped + group) - t.chunk0, g.hi = flat_column(p, t.skipped + group + 1) - t.chunk0;
  g.begin = (int)((uint32_t)g.lo / per), g.end = (int)((uint32_t)(g.hi + per - 1) / per);
  return g;
}

// The largest magnitude of a group's chunks from `from` to `to` - 1, `lanes` apart.
INLINE uint32_t flat_top(const FlatGroup &g, const uint4 *chunks, int from, int to, int lanes, int in, int kind) {
  const int per = 16 / in;
  uint32_t most[2] = {0, 0};
#pragma unroll 4
  for (int c = from; c < to; c += lanes) {
    Vec v;
    v.v = chunks[c];
    if (c == g.begin || c == g.end - 1) flat_mask(v, g.lo - c * per, g.hi - c * per, in);
    most_chunk(most, v, in, kind);
  }
  return most_bits(most, in, kind);
}

// Scales of short groups: some lanes have one.
INLINE void flat_short(const QuantizeParams &p, const FlatTile &t, const uint4 *chunks, float *times, int in, int kind, int how) {
  int lanes = 1 << p.lane_bits, lane = threadIdx.x & (lanes - 1), turn = FLAT_THREADS >> p.lane_bits;
  for (int first = 0; first < t.groups; first += turn) {
    int group = first + (threadIdx.x >> p.lane_bits);
    bool has = group < t.groups;
    FlatGroup g = flat_group(p, t, min(group, t.groups - 1), in);
    uint32_t top = flat_top(g, chunks, g.begin + lane, g.end, lanes, in, kind);
    for (int o = lanes / 2; o; o /= 2) top = max(top, __shfl_xor_sync(~0u, top, o));
    float by = scale_group(p, how, __uint_as_float(top), t.first + group, has && lane == 0);
    if (has && lane == 0) times[group] = by;
  }
}

// Of long ones: warps have pieces of them.
INLINE void flat_long(const QuantizeParams &p, const FlatTile &t, const uint4 *chunks, uint32_t *tops, float *times, int in, int kind, int how) {
  int lane = threadIdx.x % 32, group = 0, piece = threadIdx.x / 32;
  for (;; piece += FLAT_THREADS / 32) {
    for (; piece >= p.flat.pieces; piece -= p.flat.pieces) group++;
    if (group >= t.groups) break;
    FlatGroup g = flat_group(p, t, group, in);
    int from = g.begin + piece * FLAT_PIECE;
    uint32_t top = lanes_top(flat_top(g, chunks, from + lane, min(from + FLAT_PIECE, g.end), 32, in, kind), 32);
    if (lane == 0) atomicMax(&tops[group], top);
  }
  named_sync(1, FLAT_THREADS);
  if ((int)threadIdx.x < t.groups) {
    times[threadIdx.x] = scale_group(p, how, __uint_as_float(tops[threadIdx.x]), t.first + threadIdx.x, true);
    tops[threadIdx.x] = 0;
  }
}

INLINE void flat_store(char *y, int64_t element, int lo, int hi, int in, int how, const uint32_t *w) {
  const int per = 16 / in, words = how == QUANTIZE_NVFP4 ? 1 : per / 4;
  if (hi - lo == per) store_aligned(y + (how == QUANTIZE_NVFP4 ? element / 2 : element), words, w);
  else if (how == QUANTIZE_NVFP4) store_part(y + element / 2, lo / 2, hi / 2, words, 1, w);
  else store_part(y + element, lo, hi, words, 1, w);
}

// All chunks.
INLINE void flat_put(const QuantizeParams &p, const FlatTile &t, const uint4 *chunks, const float *times, int in, int kind, int how) {
  const int per = 16 / in;
#pragma unroll 2
  for (int c = threadIdx.x; c < t.chunks; c += FLAT_THREADS) {
    int column = t.chunk0 + c * per, lo = max(t.begin - column, 0), hi = min(t.end - column, per), at = column + lo;
    int row = (int)divide32((uint32_t)at, p.flat.by_n), inside = at - row * (int)p.n, number = inside >> p.flat.bits;
    int group = row * (int)p.groups + number - t.skipped;
    int left = min((number + 1) * p.flat.group, (int)p.n) - inside + lo; // elements of the chunk before the next group
    Vec v;
    float f[8];
    uint32_t w[2];
    v.v = chunks[c];
    widen(&v, kind, in, f);
    float by = times[group];
    if (left < hi) {
      float next = times[group + 1];
      int after = flat_column(p, t.skipped + group + 2) - column;
#pragma unroll
      for (int j = 0; j < per; j++) {
        if (j >= after) group++, next = times[min(group + 1, t.groups - 1)], after = flat_column(p, t.skipped + group + 2) - column;
        f[j] = __fmul_rn(f[j], j < left ? by : next);
      }
      by = 1;
    }
    pack(how, per, f, by, w);
    flat_store((char *)p.y, t.row + column, lo, hi, in, how, w);
  }
}

// The warp that loads.
INLINE void flat_loads(const QuantizeParams &p, FlatShared *shared, uint4 *memory, int in) {
  if (threadIdx.x % 32) return;
  int slot = 0;
  uint32_t parity = 1;
  for (uint64_t tile = blockIdx.x; tile < p.flat.tiles; tile += gridDim.x) {
    FlatTile t = flat_tile(p, tile, in);
    barrier_wait(&shared->empty[slot], parity);
    shared->tile[slot] = t;
    flat_load(p, t, memory + slot * p.flat.slot, &shared->full[slot], in);
    if (++slot == FLAT_SLOTS) slot = 0, parity ^= 1;
  }
}

INLINE void quantize_flat(const QuantizeParams &p, int in, int kind, int how, FlatShared *shared, uint4 *memory) {
  int slot = 0, turn = 0;
  uint32_t parity = 0;
  for (uint64_t tile = blockIdx.x; tile < p.flat.tiles; tile += gridDim.x, turn ^= 1) {
    uint4 *here = memory + slot * p.flat.slot;
    float *times = shared->times[turn];
    barrier_wait(&shared->full[slot], parity);
    const FlatTile &t = shared->tile[slot];
    if (t.loaded < t.chunks) {
      flat_rest(p, t, here, in);
      named_sync(1, FLAT_THREADS);
    }
    if (p.flat.pieces) flat_long(p, t, here, shared->tops, times, in, kind, how);
    else flat_short(p, t, here, times, in, kind, how);
    named_sync(1, FLAT_THREADS);
    flat_put(p, t, here, times, in, kind, how);
    __syncwarp();
    if (threadIdx.x % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&shared->empty[slot])) : "memory");
    if (++slot == FLAT_SLOTS) slot = 0, parity ^= 1;
  }
}

// True: this is the warp that loads, and it has.
INLINE bool flat_begin(const QuantizeParams &p, FlatShared *shared, uint4 *memory, int in) {
  for (int i = threadIdx.x; i < FLAT_GROUPS; i += blockDim.x) shared->tops[i] = 0;
  if (threadIdx.x == 0) {
    for (int i = 0; i < FLAT_SLOTS; i++) barrier_init(&shared->full[i], 1), barrier_init(&shared->empty[i], FLAT_THREADS / 32);
    barrier_init_done();
  }
  __syncthreads();
  begin_kernel();
  if (threadIdx.x < FLAT_THREADS) return false;
  flat_loads(p, shared, memory, in);
  return true;
}

#endif
