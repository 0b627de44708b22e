// Decode attention for heads of 64, 128 and 256. A warp has tokens of its own: tiles of their K and V come by asynchronous copies into a
// ring in shared memory that no other warp sees, with no barrier on the way, so that what an SM has on its way from memory depends on the
// ring's length alone, and goes on over the ends of items. At an item's end the warps add up what they have, through shared memory.
//
// Scores are K Q^T, 16 tokens by 8 heads, and O^T is V^T P^T, so that with few heads little is wasted. In a product of 16 tokens lane
// (g, c), g = lane / 4, has of K tokens g and g + 8, of each 16 bytes in every 64: the order of a row's elements is the same for Q,
// so that any will do. Of V it has tokens 2c, 2c + 1, 2c + 8 and 2c + 9, of each 16 bytes in every 128.
#ifndef SOL_KERNELS_DECODE_ATTENTION_WARPS_CUH
#define SOL_KERNELS_DECODE_ATTENTION_WARPS_CUH

#include "decode_attention/decode_attention_combine.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

// KIND: of the products; FP8: the cache is, and the products are of fp16, which holds every value of it, and Q and O may be either
// (p.kind). D: elements of a head. TILES: of 8 heads. KEYS: tokens of a warp's tile; WARPS: of a block; STAGES: tiles of a warp's ring.
template <int KIND, int FP8, int D, int TILES, int KEYS, int WARPS, int STAGES> struct DecodeWarps {
  enum {
    BYTES = FP8 ? 1 : 2,
    ROW = D * BYTES,
    PIECES = ROW / 16, // of 16 bytes
    THREADS = WARPS * 32,
    HEADS = TILES * 8,
    GROUPS = KEYS / 16,
    K_PIECES = ROW / 64,
    V_PIECE = ROW / 8 < 16 ? ROW / 8 : 16, // bytes
    V_PIECES = ROW / 8 / V_PIECE,
    V_EACH = V_PIECE / BYTES, // elements of a piece
    O_TILES = D / 16,
    ROUNDS = D / 32 // pieces of Q that a lane has
  };
  union Stage {
    struct {
      uint8_t k[KEYS * ROW], v[KEYS * ROW];
    };
    float o[HEADS][D]; // at an item's end, in place of its last tile
  };
  struct Shared {
    Stage ring[WARPS][STAGES];
    float most[WARPS][HEADS], sum[WARPS][HEADS]; // of an item, by each warp
    uint64_t full, free; // barriers: all warps have left their sums of an item; all have read what they add up
    int item[4];         // its sequence, part, parts, tile of all heads
    int before[DECODE_SEQUENCES + 16];
  };
  struct State {
    float o[TILES][O_TILES][4], most[TILES][2], sum[TILES][2];
  };
  static constexpr uint32_t ALL = KEYS == 32 ? ~0u : 0xffffu; // tokens of a tile
  typedef Vec Queries[TILES][ROUNDS];

  static __device__ __forceinline__ int kind_of(const DecodeParams &p) {
    return FP8 ? p.kind : KIND;
  }

  // ---- queries: a lane has the pieces of head lane / 4 that go with its pieces of K ----

  static __device__ __forceinline__ int query_piece(int round) {
    int c = threadIdx.x % 4;
    return FP8 ? round / 2 * 8 + c * 2 + round % 2 : round * 4 + c;
  }

  static __device__ __forceinline__ void load_queries(Queries &q, const DecodeParams &p, const DecodeItem &item) {
#pragma unroll
    for (int t = 0; t < TILES; t++) {
      int in_group = item.tile * HEADS + t * 8 + threadIdx.x % 32 / 4;
      const uint16_t *row = (const uint16_t *)p.q + item.b * p.q_row + (int64_t)(item.kv * p.group + in_group) * D;
#pragma unroll
      for (int i = 0; i < ROUNDS; i++) {
        q[t][i] = {};
        if (in_group >= p.group) continue;
        const uint16_t *at = row + query_piece(i) * 8;
        if (p.q_aligned) q[t][i] = *(const Vec *)at;
        else
#pragma unroll
          for (int j = 0; j < 8; j++) q[t][i].h[j] = at[j];
      }
#pragma unroll
      for (int i = 0; i < ROUNDS; i++) {
        if (!FP8 || p.kind == KIND_FP16) continue;
        float f[8];
        widen(&q[t][i], p.kind, 2, f);
        narrow(&q[t][i], KIND_FP16, 2, f);
      }
    }
  }

  // ---- copies ----

  // Where a row's piece is in a tile: lanes that read at the same time find theirs in different banks.
  static __device__ __forceinline__ int key_place(int row, int piece) {
    return row * ROW + (ROW == 64 ? piece : piece ^ (row & 1) << 2) * 16;
  }
  static __device__ __forceinline__ int value_place(int row, int piece) {
    return row * ROW + (piece ^ (ROW == 64 ? (row & 4) >> 1 : row & 6)) * 16;
  }

  static __device__ __forceinline__ void copy_piece(void *to, const void *cache, int64_t from, bool there, int aligned) {
    const char *at = (const char *)cache + from;
    if (aligned) copy_async(tile_address(to), at, there);
    else copy_elements(tile_address(to), at, there, BYTES);
  }

  // Zeros for tokens that are not there. Returns which are.
  static __device__ __forceinline__ uint32_t copy_tile(Stage *to, const DecodeParams &p, const DecodePlace &x) {
    enum { AT_ONCE = 32 / PIECES };
    uint32_t row = decode_row(p, x);
    int lane = threadIdx.x % 32, piece = lane % PIECES;
#pragma unroll 4
    for (int i = 0; i < KEYS / AT_ONCE; i++) {
      int token = i * AT_ONCE + lane / PIECES;
      uint32_t at = __shfl_sync(~0u, row, token);
      int64_t from = at == ~0u ? 0 : (int64_t)at * ROW + piece * 16;
      copy_piece(to->k + key_place(token, piece), p.k_cache, from, at != ~0u, p.aligned);
      copy_piece(to->v + value_place(token, piece), p.v_cache, from, at != ~0u, p.aligned);
    }
    copy_commit();
    return __ballot_sync(~0u, row != ~0u) & ALL;
  }

  // ---- products ----

  // The low (high) two of four fp8 elements as fp16. Before sm_89, which has an instruction for it: the bits in fp16's places are the
  // value times 2^-8, and 0x7f is NaN.
  static __device__ __forceinline__ uint32_t halves(uint32_t two_bytes) {
#if __CUDA_ARCH__ >= 890
    __half2_raw h = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)two_bytes, __NV_E4M3);
    return (uint32_t)h.y << 16 | h.x;
#else
    uint32_t apart = (two_bytes & 0xff) << 8 | (two_bytes & 0xff00) << 16, size = apart >> 1 & 0x3f803f80;
    __half2 x = __hmul2(*(const __half2 *)&size, __float2half2_rn(256));
    return *(const uint32_t *)&x | (apart & 0x80008000) | (__vcmpeq2(size, 0x3f803f80) & 0x7fff7fff);
#endif
  }

  // A score's row is a token, g or g + 8, and its columns heads 2c and 2c + 1.
  typedef float Scores[TILES][GROUPS][4];
  static __device__ __forceinline__ void multiply_keys(Scores &s, const Queries &q, const uint8_t *k) {
    enum { STEPS = FP8 ? 4 : 2, CHAINS = TILES * GROUPS < 4 ? 2 : 1 };
    int lane = threadIdx.x % 32;
    float d[CHAINS][TILES][GROUPS][4] = {};
#pragma unroll
    for (int j = 0; j < K_PIECES; j++)
#pragma unroll
      for (int i = 0; i < GROUPS; i++) {
        Vec low = *(const Vec *)(k + key_place(i * 16 + lane / 4, j * 4 + lane % 4)),
            high = *(const Vec *)(k + key_place(i * 16 + 8 + lane / 4, j * 4 + lane % 4));
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
          uint32_t a[4];
          if (FP8)
            a[0] = halves(low.u[step % 4] & 0xffff), a[1] = halves(high.u[step % 4] & 0xffff), a[2] = halves(low.u[step % 4] >> 16),
            a[3] = halves(high.u[step % 4] >> 16);
          else a[0] = low.u[step * 2 % 4], a[1] = high.u[step * 2 % 4], a[2] = low.u[(step * 2 + 1) % 4], a[3] = high.u[(step * 2 + 1) % 4];
#pragma unroll
          for (int t = 0; t < TILES; t++) {
            const Vec &b = q[t][(j * STEPS + step) / 2];
            multiply_16x8(d[step % CHAINS][t][i], a, b.u[step % 2 * 2], b.u[step % 2 * 2 + 1], KIND);
          }
        }
      }
#pragma unroll
    for (int i = 0; i < TILES * GROUPS * 4; i++) {
      int t = i / (GROUPS * 4), g = i / 4 % GROUPS;
      s[t][g][i % 4] = d[0][t][g][i % 4] + (CHAINS == 2 ? d[CHAINS - 1][t][g][i % 4] : 0);
    }
  }

  static __device__ __forceinline__ void in_units(Scores &s, const ScoreUnit &u, uint32_t there) {
#pragma unroll
    for (int t = 0; t < TILES; t++) {
      if (u.cap != 0) cap_scores(s[t], u.before, u.cap);
#pragma unroll
      for (int i = 0; i < GROUPS * 4; i++) s[t][i / 4][i % 4] *= u.unit;
      if (there == ALL) continue;
#pragma unroll
      for (int i = 0; i < GROUPS * 4; i++)
        if (!(there >> (i / 4 * 16 + i % 4 / 2 * 8 + threadIdx.x % 32 / 4) & 1)) s[t][i / 4][i % 4] = -INFINITY;
    }
  }

  // Scores become powers of two relative to the largest, and what was added before is scaled to it.
  static __device__ __forceinline__ void weigh(Scores &s, State *x) {
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float most = x->most[t][h], sum = 0;
#pragma unroll
        for (int i = 0; i < GROUPS; i++) most = fmaxf(most, fmaxf(s[t][i][h], s[t][i][h + 2]));
#pragma unroll
        for (int o = 4; o < 32; o *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
        float base = most == -INFINITY ? 0 : most, by = exp_two(x->most[t][h] - base);
#pragma unroll
        for (int i = 0; i < GROUPS * 2; i++) {
          float *one = &s[t][i / 2][i % 2 * 2 + h];
          sum += *one = exp_two(*one - base);
        }
        x->sum[t][h] = x->sum[t][h] * by + sum, x->most[t][h] = most;
        if (__any_sync(~0u, by != 1))
#pragma unroll
        for (int i = 0; i < O_TILES * 2; i++) x->o[t][i / 2][i % 2 * 2 + h] *= by;
      }
  }

  static __device__ __forceinline__ uint32_t turned(uint32_t x) {
    uint32_t y;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
  }

  // bf16 has too few bits for weights: what they lose is multiplied too.
  static __device__ __forceinline__ void as_right_operand(uint32_t (&b)[2][2], const float (&s)[4]) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t high = narrow2(s[i * 2], s[i * 2 + 1], KIND);
      b[0][i] = turned(high);
      if (KIND != KIND_BF16) continue;
      float2 wide = widen2(high, KIND);
      b[1][i] = turned(narrow2(s[i * 2] - wide.x, s[i * 2 + 1] - wide.y, KIND));
    }
  }

  // One piece of the lane's four tokens.
  typedef uint32_t Values[4][V_PIECE / 4];
  static __device__ __forceinline__ void load_values(Values &v, const uint8_t *tile, int group, int piece) {
    int lane = threadIdx.x % 32, at = piece * 8 * V_PIECE + lane / 4 * V_PIECE;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint8_t *from = tile + value_place(group * 16 + i / 2 * 8 + lane % 4 * 2 + i % 2, at / 16) + at % 16;
      if (V_PIECE == 16) *(uint4 *)v[i] = *(const uint4 *)from;
      else *(uint2 *)v[i] = *(const uint2 *)from;
    }
  }

  // Tile i's rows are, of the lane's elements of a token's piece, number 2i and 2i + 1.
  static __device__ __forceinline__ void left_of_values(uint32_t (&a)[4], const Values &v, int tile) {
    int word = tile * 2 * BYTES / 4;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t even = v[i * 2][word], odd = v[i * 2 + 1][word];
      if (FP8) {
        uint32_t four = __byte_perm(even, odd, tile % 2 ? 0x7362 : 0x5140);
        a[i * 2] = halves(four & 0xffff), a[i * 2 + 1] = halves(four >> 16);
      } else
        a[i * 2] = __byte_perm(even, odd, 0x5410), a[i * 2 + 1] = __byte_perm(even, odd, 0x7632);
    }
  }

  static __device__ __forceinline__ void add_values(State *x, const Scores &s, const uint8_t *tile) {
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
      uint32_t b[TILES][2][2];
#pragma unroll
      for (int t = 0; t < TILES; t++) as_right_operand(b[t], s[t][i]);
      Values v;
#pragma unroll
      for (int j = 0; j < O_TILES; j++) {
        enum { EACH = V_EACH / 2 }; // tiles of a piece
        uint32_t a[4];
        if (j % EACH == 0) load_values(v, tile, i, j / EACH);
        left_of_values(a, v, j % EACH);
#pragma unroll
        for (int t = 0; t < TILES; t++) {
          multiply_16x8(x->o[t][j], a, b[t][0][0], b[t][0][1], KIND);
          if (KIND == KIND_BF16) multiply_16x8(x->o[t][j], a, b[t][1][0], b[t][1][1], KIND);
        }
      }
    }
  }

  // ---- results ----

  // All lanes' accesses of shared memory come before.
  static __device__ __forceinline__ void arrive(uint64_t *bar) {
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      asm volatile("{.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];}" ::"r"(tile_address(bar)) : "memory");
  }
  static __device__ __forceinline__ void wait_phase(uint64_t *bar, uint32_t phase) {
    asm volatile("{.reg .pred done;\nAGAIN: mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n@!done bra AGAIN;}" ::"r"(
                     tile_address(bar)),
                 "r"(phase & 1)
                 : "memory");
  }

  static __device__ __forceinline__ void start(State *x) {
#pragma unroll
    for (int i = 0; i < TILES * O_TILES * 4; i++) x->o[i / (O_TILES * 4)][i / 4 % O_TILES][i % 4] = 0;
#pragma unroll
    for (int i = 0; i < TILES * 2; i++) x->most[i / 2][i % 2] = -INFINITY, x->sum[i / 2][i % 2] = 0;
  }

  // Where a head's column is: rows are swizzled so that lanes that store at the same time have different banks.
  static __device__ __forceinline__ int kept_place(int head, int column) {
    int c = head % 8 / 2;
    return column ^ (V_EACH == 16 ? c : (c & 1) | (c & 2) << 1) * 4;
  }

  static __device__ __forceinline__ void keep(Shared *s, const State &x, int heads, int stage) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int head = t * 8 + lane % 4 * 2 + h;
        float sum = x.sum[t][h];
#pragma unroll
        for (int o = 4; o < 32; o *= 2) sum += __shfl_xor_sync(~0u, sum, o);
        if (head >= heads) continue;
        if (lane < 4) s->most[warp][head] = x.most[t][h], s->sum[warp][head] = sum;
#pragma unroll
        for (int i = 0; i < O_TILES; i += 2) {
          int column = i * 2 / V_EACH * V_EACH * 8 + lane / 4 * V_EACH + i * 2 % V_EACH;
          *(float4 *)&s->ring[warp][stage].o[head][kept_place(head, column)] = {x.o[t][i][h], x.o[t][i][h + 2], x.o[t][i + 1][h], x.o[t][i + 1][h + 2]};
        }
      }
  }

  // Leaves the warp's sums of an item, whose last tile was in `stage`.
  static __device__ __forceinline__ void leave(Shared *s, const DecodeParams &p, const State &x, const DecodeItem &item, int stage) {
    __syncwarp(); // the tile has been read
    keep(s, x, min(p.group - item.tile * HEADS, HEADS), stage);
    if (threadIdx.x == 0) s->item[0] = item.b, s->item[1] = item.part, s->item[2] = item.parts, s->item[3] = item.kv * p.tiles + item.tile;
    arrive(&s->full);
  }

  // Adds up what the warps left of the block's item number `count`, for some of its heads. The only part of its sequence is finished; of more, the last to be
  // done adds up all.
  static __device__ __forceinline__ void finish(Shared *s, const DecodeParams &p, uint32_t count, int stage) {
    int lane = threadIdx.x % 32;
    wait_phase(&s->full, count);
    int b = s->item[0], in_sequence = s->item[1], parts = s->item[2], tile = s->item[3];
    int kv = tile / p.tiles, in_group = (tile - kv * p.tiles) * HEADS, heads = min(p.group - in_group, HEADS);
    for (int head = threadIdx.x / 32; head < heads; head += WARPS) {
      float most = -INFINITY, sum = 0, by[WARPS], o[D / 32] = {};
#pragma unroll
      for (int w = 0; w < WARPS; w++) most = fmaxf(most, s->most[w][head]);
      float base = most == -INFINITY ? 0 : most;
#pragma unroll
      for (int w = 0; w < WARPS; w++) by[w] = exp_two(s->most[w][head] - base), sum += by[w] * s->sum[w][head];
#pragma unroll
      for (int w = 0; w < WARPS; w++)
#pragma unroll
        for (int i = 0; i < D / 32; i++) o[i] += by[w] * s->ring[w][stage].o[head][kept_place(head, i * 32 + lane)];
      int all = kv * p.group + in_group + head;
      int64_t row = (int64_t)b * p.heads + all, part = row * p.parts + in_sequence;
      float last = sum == 0 ? 0 : p.v_scale / sum;
#pragma unroll
      for (int i = 0; i < D / 32; i++) {
        if (parts > 1) p.sums[part * D + i * 32 + lane] = o[i];
        else store_one(p.o, b * p.o_row + (int64_t)all * D + i * 32 + lane, kind_of(p), o[i] * last);
      }
      if (lane == 0 && parts > 1) p.mosts[part] = most, p.weights[part] = sum;
      if (lane == 0 && parts == 1 && p.lse) p.lse[row] = log_sum(most, 1, sum);
    }
    arrive(&s->free);
    if (parts > 1)
      for (int head = threadIdx.x / 32; head < heads; head += WARPS)
        decode_join<D>(p, b, kv * p.group + in_group + head, in_sequence, parts, kind_of(p));
  }

  // ---- all of it ----

  // A lane's token of the warp's tile that comes after those looked up so far.
  static __device__ __forceinline__ DecodePlace look_up(const DecodePlan &plan, const DecodeParams &p, DecodeItem *item) {
    DecodePlace x = decode_look_up(plan, p, *item, item->key + threadIdx.x / 32 * KEYS + threadIdx.x % KEYS);
    item->key += WARPS * KEYS;
    if (item->key >= item->to && item->index < plan.end) decode_next(plan, p, item);
    return x;
  }

  // count: items of this block so far.
  static __device__ __forceinline__ void run_items(Shared *s, const DecodePlan &plan, const DecodeParams &p, uint32_t &count) {
    ScoreUnit u = score_unit(p.scale, p.soft_cap);
    DecodeItem now = decode_find(plan, p, plan.begin), ahead = now;
    Stage *ring = s->ring[threadIdx.x / 32];
    DecodePlace first[STAGES - 1], next;
    uint32_t there[STAGES]; // which tokens are, of the tiles on their way
    Queries q;
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) first[i] = look_up(plan, p, &ahead);
    next = look_up(plan, p, &ahead);
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) there[i] = copy_tile(&ring[i], p, first[i]);
    load_queries(q, p, now);
    int stage = 0, last = STAGES - 1;
    while (now.index < plan.end) {
      State x;
      start(&x);
      for (int key = now.key, more = 1; more; last = stage, stage = stage == STAGES - 1 ? 0 : stage + 1) { // an empty part has one step too, as in look_up
        copy_wait<STAGES - 2>();
        __syncwarp(); // all lanes' copies of the tile are there, and all have read the one before
        if (key == now.key && count) wait_phase(&s->free, count - 1); // in whose place the sums of the item before were
        there[STAGES - 1] = copy_tile(&ring[last], p, next);
        next = look_up(plan, p, &ahead);
        Scores scores;
        multiply_keys(scores, q, ring[stage].k);
        in_units(scores, u, there[0]);
        weigh(scores, &x);
        add_values(&x, scores, ring[stage].v);
#pragma unroll
        for (int i = 0; i < STAGES - 1; i++) there[i] = there[i + 1];
        key += WARPS * KEYS;
        more = key < now.to;
      }
      leave(s, p, x, now, last);
      decode_next(plan, p, &now);
      if (now.index < plan.end) load_queries(q, p, now);
      finish(s, p, count++, last);
    }
    copy_wait<0>();
  }

  static __device__ __forceinline__ void run(const DecodeParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(sizeof(Stage) == KEYS * ROW * 2, "the sums have room");
    static_assert(sizeof(Shared) == DECODE_HEADS_SHARED(TILES, D, BYTES, KEYS, WARPS, STAGES), "as the launcher has it");
    if (threadIdx.x < 2)
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(tile_address(threadIdx.x ? &s->free : &s->full)), "r"((int)WARPS) : "memory");
    uint32_t count = 0;
    decode_hint<THREADS>(s->before, p, ROW);
    wait_for_predecessor();
    for (int first = 0; first < p.batch; first += DECODE_SEQUENCES) {
      DecodePlan plan = decode_plan<THREADS>(s->before, p, first);
      if (plan.begin < plan.end) run_items(s, plan, p, count);
      __syncthreads();
    }
  }
};
#endif

#endif
