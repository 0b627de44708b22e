// Decode attention for heads of 64, 128 and 256. A warp has tokens of its own: their K and V come from memory straight into the
// registers that mma.sync wants, with no shared memory and no barrier on the way, and as soon as a tile's K (V) was multiplied the next
// tile's is on its way, of the next item too. At an item's end a warp leaves its sums in shared memory and, where there are two places for
// them, goes on; what all warps left of the item before they add up then, so that none waits for the slowest.
//
// Scores are K Q^T, 16 tokens by 8 heads, and O^T is V^T P^T, so that with few heads little is wasted. In a product of 16 tokens lane
// (g, c), g = lane / 4, has of K tokens g and g + 8, of each 16 bytes in every 64: the order of a row's elements is the same for Q,
// so that any will do. Of V it has tokens 2c, 2c + 1, 2c + 8 and 2c + 9, of each 16 bytes in every 128.
#ifndef SOL_KERNELS_DECODE_ATTENTION_WARPS_CUH
#define SOL_KERNELS_DECODE_ATTENTION_WARPS_CUH

#include "decode_attention/decode_attention_items.cuh"
#include "mma.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

// KIND: of the products; FP8: the cache is, and the products are of fp16, which holds every value of it, and Q and O may be either
// (p.kind). D: elements of a head. TILES: of 8 heads. KEYS: tokens of a warp's tile; WARPS: of a block.
// PLACES: where sums are left, 1 or 2; with 1 warps wait for each other at an item's end, and L1 has more room for what is on its way.
template <int KIND, int FP8, int D, int TILES, int KEYS, int WARPS, int PLACES> struct DecodeWarps {
  enum {
    BYTES = FP8 ? 1 : 2,
    ROW = D * BYTES,
    THREADS = WARPS * 32,
    HEADS = TILES * 8,
    GROUPS = KEYS / 16,
    K_PIECES = ROW / 64,
    V_PIECE = ROW / 8 < 16 ? ROW / 8 : 16, // bytes
    V_PIECES = ROW / 8 / V_PIECE,
    V_EACH = V_PIECE / BYTES, // elements of a piece
    O_TILES = D / 16,
    PITCH = D + 4,
    CHUNKS = HEADS * D / 8, // of Q
    Q_EACH = CHUNKS / 32
  };
  struct Kept { // of an item, by each warp
    float o[WARPS][HEADS][PITCH], most[WARPS][HEADS], sum[WARPS][HEADS];
  };
  struct Shared {
    Kept kept[PLACES];
    uint4 q[WARPS][CHUNKS];
    uint64_t full[PLACES], free[PLACES]; // barriers: all warps have left their sums of an item; all have read what they add up
    int item[PLACES][4];                 // its sequence, part, parts, tile of all heads
    int before[DECODE_SEQUENCES + 16];
  };
  struct State {
    float o[TILES][O_TILES][4], most[TILES][2], sum[TILES][2];
  };
  static constexpr uint32_t ALL = KEYS == 32 ? ~0u : 0xffffu; // tokens of a tile
  typedef uint32_t Keys[GROUPS][2][K_PIECES][4];
  typedef uint32_t Values[GROUPS][4][V_PIECES][V_PIECE / 4];

  static __device__ __forceinline__ int kind_of(const DecodeParams &p) {
    return FP8 ? p.kind : KIND;
  }

  // ---- queries: chunks of 8 elements in the order in which lanes take them ----

  static __device__ __forceinline__ int chunk_place(int head, int chunk) {
    int lane_in_row = FP8 ? chunk / 2 % 4 : chunk % 4, round = FP8 ? chunk / 8 * 2 + chunk % 2 : chunk / 4;
    return (head / 8 * (D / 32) + round) * 32 + head % 8 * 4 + lane_in_row;
  }

  // Each warp has its own.
  static __device__ __forceinline__ void load_queries(Shared *s, const DecodeParams &p, const DecodeItem &item) {
    enum { AT_ONCE = Q_EACH < 4 ? Q_EACH : 4 };
    __syncwarp(); // those before have been read
#pragma unroll 1
    for (int from = threadIdx.x % 32; from < CHUNKS; from += 32 * AT_ONCE) {
      Vec q[AT_ONCE] = {};
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        int n = from + i * 32, in_group = item.tile * HEADS + n / (D / 8);
        if (in_group >= p.group) continue;
        const uint16_t *at = (const uint16_t *)p.q + item.b * p.q_row + (int64_t)(item.kv * p.group + in_group) * D + n % (D / 8) * 8;
        if (p.q_aligned) q[i] = *(const Vec *)at;
        else
#pragma unroll
          for (int j = 0; j < 8; j++) q[i].h[j] = at[j];
      }
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        int n = from + i * 32;
        if (FP8 && p.kind != KIND_FP16) {
          float f[8];
          widen(&q[i], p.kind, 2, f);
          narrow(&q[i], KIND_FP16, 2, f);
        }
        s->q[threadIdx.x / 32][chunk_place(n / (D / 8), n % (D / 8))] = *(const uint4 *)&q[i];
      }
    }
    __syncwarp();
  }

  // ---- copies ----

  // What there is nothing of keeps its values.
  template <int WORDS> static __device__ __forceinline__ void load_piece(uint32_t (&v)[WORDS], const char *from, bool there, int aligned) {
    if (aligned) {
      if (WORDS == 4)
        asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0;\n"
                     "@p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];}"
                     : "+r"(v[0]), "+r"(v[1]), "+r"(v[WORDS - 2]), "+r"(v[WORDS - 1])
                     : "l"(__cvta_generic_to_global(from)), "r"((int)there)
                     : "memory");
      else
        asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0;\n"
                     "@p ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];}"
                     : "+r"(v[0]), "+r"(v[1])
                     : "l"(__cvta_generic_to_global(from)), "r"((int)there)
                     : "memory");
    } else if (there) {
#pragma unroll
      for (int i = 0; i < WORDS; i++) {
        const uint16_t *h = (const uint16_t *)(from + i * 4);
        const uint8_t *b = (const uint8_t *)(from + i * 4);
        v[i] = BYTES == 2 ? h[0] | (uint32_t)h[1] << 16 : b[0] | b[1] << 8 | b[2] << 16 | (uint32_t)b[3] << 24;
      }
    }
  }

  static __device__ __forceinline__ void load_keys(Keys &k, const DecodeParams &p, uint32_t row) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < GROUPS * 2; i++) {
      uint32_t at = __shfl_sync(~0u, row, i * 8 + lane / 4);
      const char *from = (const char *)p.k_cache + (int64_t)at * ROW + lane % 4 * 16;
#pragma unroll
      for (int j = 0; j < K_PIECES; j++) load_piece(k[i / 2][i % 2][j], from + j * 64, at != ~0u, p.aligned);
    }
  }

  static __device__ __forceinline__ void load_values(Values &v, const DecodeParams &p, uint32_t row) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < GROUPS * 4; i++) {
      uint32_t at = __shfl_sync(~0u, row, i / 2 * 8 + lane % 4 * 2 + i % 2);
      const char *from = (const char *)p.v_cache + (int64_t)at * ROW + lane / 4 * V_PIECE;
#pragma unroll
      for (int j = 0; j < V_PIECES; j++) load_piece(v[i / 4][i % 4][j], from + j * 8 * V_PIECE, at != ~0u, p.aligned);
    }
  }

  // Zeros for the tokens that are not there, which have a weight of zero, but may have NaN in their registers.
  static __device__ __forceinline__ void clear_values(Values &v, uint32_t there) {
#pragma unroll
    for (int i = 0; i < GROUPS * 4; i++)
#pragma unroll
      for (int j = 0; j < V_PIECES * V_PIECE / 4; j++)
        if (!(there >> (i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2) & 1)) v[i / 4][i % 4][j * 4 / V_PIECE][j % (V_PIECE / 4)] = 0;
  }

  // ---- products ----

  // A score's row is a token, g or g + 8, and its columns heads 2c and 2c + 1.
  typedef float Scores[TILES][GROUPS][4];
  static __device__ __forceinline__ void multiply_keys(Scores &s, const uint4 *q, const Keys &k) {
    enum { STEPS = FP8 ? 4 : 2, CHAINS = TILES * GROUPS < 4 ? 2 : 1 };
    float d[CHAINS][TILES][GROUPS][4] = {};
#pragma unroll
    for (int j = 0; j < K_PIECES; j++)
#pragma unroll
      for (int t = 0; t < TILES; t++) {
        Vec b[STEPS / 2];
#pragma unroll
        for (int i = 0; i < STEPS / 2; i++) *(uint4 *)&b[i] = q[(t * (D / 32) + j * STEPS / 2 + i) * 32 + threadIdx.x % 32];
#pragma unroll
        for (int i = 0; i < GROUPS; i++)
#pragma unroll
          for (int step = 0; step < STEPS; step++) {
            const uint32_t *low = k[i][0][j], *high = k[i][1][j];
            uint32_t a[4];
            if (FP8) halves_of_fp8(low[step % 4], &a[0], &a[2]), halves_of_fp8(high[step % 4], &a[1], &a[3]);
            else a[0] = low[step * 2 % 4], a[1] = high[step * 2 % 4], a[2] = low[(step * 2 + 1) % 4], a[3] = high[(step * 2 + 1) % 4];
            multiply_16x8(d[step % CHAINS][t][i], a, b[step / 2].u[step % 2 * 2], b[step / 2].u[step % 2 * 2 + 1], KIND);
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

  // Scores become powers of two relative to the largest, and what was added before is scaled to it. One vote for all heads: a branch for each would keep their
  // shuffles from going on at the same time.
  static __device__ __forceinline__ void weigh(Scores &s, State *x) {
    float by[TILES][2];
    bool scales = false;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float most = x->most[t][h], sum = 0;
#pragma unroll
        for (int i = 0; i < GROUPS; i++) most = fmaxf(most, fmaxf(s[t][i][h], s[t][i][h + 2]));
#pragma unroll
        for (int o = 4; o < 32; o *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
        float base = most == -INFINITY ? 0 : most;
        by[t][h] = exp_two(x->most[t][h] - base), scales |= by[t][h] != 1;
#pragma unroll
        for (int i = 0; i < GROUPS * 2; i++) {
          float *one = &s[t][i / 2][i % 2 * 2 + h];
          sum += *one = exp_two(*one - base);
        }
        x->sum[t][h] = x->sum[t][h] * by[t][h] + sum, x->most[t][h] = most;
      }
    if (!__any_sync(~0u, scales)) return;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int i = 0; i < O_TILES * 4; i++) x->o[t][i / 4][i % 4] *= by[t][i % 2];
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

  // Tile i's rows are, of the lane's elements of a token of V, number 2i and 2i + 1.
  static __device__ __forceinline__ void left_of_values(uint32_t (&a)[4], const uint32_t (&v)[4][V_PIECES][V_PIECE / 4], int tile) {
    enum { PER_WORD = 4 / BYTES };
    int word = tile * 2 / PER_WORD, piece = word / (V_PIECE / 4), at = word % (V_PIECE / 4);
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t even = v[i * 2][piece][at], odd = v[i * 2 + 1][piece][at];
      if (FP8) {
        uint32_t four = __byte_perm(even, odd, tile % 2 ? 0x7362 : 0x5140);
        halves_of_fp8(four, &a[i * 2], &a[i * 2 + 1]);
      } else
        a[i * 2] = __byte_perm(even, odd, 0x5410), a[i * 2 + 1] = __byte_perm(even, odd, 0x7632);
    }
  }

  static __device__ __forceinline__ void add_values(State *x, const Scores &s, const Values &v) {
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
      uint32_t b[TILES][2][2];
#pragma unroll
      for (int t = 0; t < TILES; t++) as_right_operand(b[t], s[t][i]);
#pragma unroll
      for (int j = 0; j < O_TILES; j++) {
        uint32_t a[4];
        left_of_values(a, v[i], j);
#pragma unroll
        for (int t = 0; t < TILES; t++) {
          multiply_16x8(x->o[t][j], a, b[t][0][0], b[t][0][1], KIND);
          if (KIND == KIND_BF16) multiply_16x8(x->o[t][j], a, b[t][1][0], b[t][1][1], KIND);
        }
      }
    }
  }

  // ---- results ----

  // Each lane for itself: one that arrives for its warp after __syncwarp would do as well, but compute-sanitizer's racecheck does not follow that.
  static __device__ __forceinline__ void arrive(uint64_t *bar) {
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

  static __device__ __forceinline__ void keep(Kept *s, const State &x, int heads) {
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
          *(float4 *)&s->o[warp][head][column] = {x.o[t][i][h], x.o[t][i][h + 2], x.o[t][i + 1][h], x.o[t][i + 1][h + 2]};
        }
      }
  }

  // Leaves the warp's sums of its item number `count`.
  static __device__ __forceinline__ void leave(Shared *s, const DecodeParams &p, const State &x, const DecodeItem &item, uint32_t count) {
    uint32_t turn = count % PLACES;
    if (count >= PLACES) wait_phase(&s->free[turn], count / PLACES - 1);
    keep(&s->kept[turn], x, min(p.group - item.tile * HEADS, HEADS));
    int what[] = {item.b, item.part, item.parts, item.kv * p.tiles + item.tile};
    if (threadIdx.x == 0)
#pragma unroll
      for (int i = 0; i < 4; i++) s->item[turn][i] = what[i];
    arrive(&s->full[turn]);
  }

  // Adds up what the warps kept of a part, for some of its heads; tile: of all heads; ADDING: warps that do so. The only part of its sequence is finished; of
  // more, the combining kernel does that.
  template <int ADDING = WARPS> static __device__ __forceinline__ void add_up(const Kept *k, const DecodeParams &p, int b, int in_sequence, int parts, int tile) {
    int lane = threadIdx.x % 32;
    int kv = tile / p.tiles, in_group = (tile - kv * p.tiles) * HEADS, heads = min(p.group - in_group, HEADS);
    for (int head = threadIdx.x / 32; head < heads; head += ADDING) {
      float most = -INFINITY, sum = 0, by[WARPS], o[D / 32] = {};
#pragma unroll
      for (int w = 0; w < WARPS; w++) most = fmaxf(most, k->most[w][head]);
      float base = most == -INFINITY ? 0 : most;
#pragma unroll
      for (int w = 0; w < WARPS; w++) by[w] = exp_two(k->most[w][head] - base), sum += by[w] * k->sum[w][head];
#pragma unroll
      for (int w = 0; w < WARPS; w++)
#pragma unroll
        for (int i = 0; i < D / 32; i++) o[i] += by[w] * k->o[w][head][i * 32 + lane];
      int all = kv * p.group + in_group + head;
      int64_t part = ((int64_t)b * p.heads + all) * p.parts + in_sequence;
      float last = sum == 0 ? 0 : p.v_scale / sum;
#pragma unroll
      for (int i = 0; i < D / 32; i++) {
        if (parts > 1) p.sums[part * D + i * 32 + lane] = o[i];
        else store_one(p.o, b * p.o_row + (int64_t)all * D + i * 32 + lane, kind_of(p), o[i] * last);
      }
      if (lane) continue;
      if (parts > 1) p.mosts[part] = most, p.weights[part] = sum;
      else if (p.lse) p.lse[(int64_t)b * p.heads + all] = log_sum(most, 1, sum);
    }
  }

  static __device__ __forceinline__ void finish(Shared *s, const DecodeParams &p, uint32_t count) {
    uint32_t turn = count % PLACES;
    wait_phase(&s->full[turn], count / PLACES);
    const int *item = s->item[turn];
    add_up(&s->kept[turn], p, item[0], item[1], item[2], item[3]);
    arrive(&s->free[turn]);
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
    DecodePlace next = look_up(plan, p, &ahead);
    uint32_t row = decode_row(p, next), first = count;
    Keys k = {};
    Values v = {};
    load_keys(k, p, row);
    next = look_up(plan, p, &ahead);
    load_values(v, p, row);
    load_queries(s, p, now);
    uint32_t there = __ballot_sync(~0u, row != ~0u) & ALL;
    while (now.index < plan.end) {
      State x;
      start(&x);
      for (int key = now.key, more = 1; more;) { // an empty part has one step too, as in look_up
        Scores scores;
        multiply_keys(scores, s->q[threadIdx.x / 32], k);
        in_units(scores, u, there);
        row = decode_row(p, next);
        load_keys(k, p, row);
        next = look_up(plan, p, &ahead);
        weigh(scores, &x);
        if (there != ALL) clear_values(v, there);
        add_values(&x, scores, v);
        key += WARPS * KEYS;
        more = key < now.to;
        load_values(v, p, row);
        there = __ballot_sync(~0u, row != ~0u) & ALL;
      }
      leave(s, p, x, now, count);
      decode_next(plan, p, &now);
      if (now.index < plan.end) load_queries(s, p, now);
      if (PLACES == 1 || count > first) finish(s, p, count - PLACES + 1);
      count++;
    }
    if (PLACES > 1) finish(s, p, count - 1);
  }

  static __device__ __forceinline__ void run(const DecodeParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(sizeof(Shared) == DECODE_HEADS_SHARED(TILES, D, WARPS, PLACES), "as the launcher has it");
    if (threadIdx.x < 2 * PLACES) {
      uint64_t *bar = threadIdx.x < PLACES ? &s->full[threadIdx.x] : &s->free[threadIdx.x - PLACES];
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(tile_address(bar)), "r"((int)THREADS) : "memory");
    }
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
