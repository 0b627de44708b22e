// Decode attention for heads of 64, 128 and 256. Some warps multiply, each with tokens of its own; two copy tiles of the others' K and V into rings
// in shared memory, so that what an SM has on its way from memory depends on the rings' length alone, and goes on over the ends of items; one
// adds up the sums that the others leave in shared memory at an item's end, and does what waits for memory then.
//
// Scores are K Q^T, 16 tokens by 8 heads, and O^T is V^T P^T, so that with few heads little is wasted. In a product of 16 tokens lane
// (g, c), g = lane / 4, has of K tokens g and g + 8, of each 16 bytes in every 64: the order of a row's elements is the same for Q,
// so that any will do. Of V it has tokens 2c, 2c + 1, 2c + 8 and 2c + 9, of each 16 bytes in every 128.
#ifndef SOL_KERNELS_DECODE_ATTENTION_WARPS_CUH
#define SOL_KERNELS_DECODE_ATTENTION_WARPS_CUH

#include "decode_attention/decode_attention_combine.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

// KIND: of the products; FP8: the cache is, and the products are of fp16, which holds every value of it, and Q and O may be either
// (p.kind). D: elements of a head. TILES: of 8 heads. KEYS: tokens of a warp's tile; WARPS: of a block, that multiply; STAGES: tiles of a warp's ring.
template <int KIND, int FP8, int D, int TILES, int KEYS, int WARPS, int STAGES> struct DecodeWarps {
  enum {
    BYTES = FP8 ? 1 : 2,
    ROW = D * BYTES,
    PIECES = ROW / 16, // of 16 bytes
    COPIERS = DECODE_COPIERS,
    THREADS = (WARPS + 1 + COPIERS) * 32,
    MINE = WARPS / COPIERS, // rings of a warp that copies
    HEADS = TILES * 8,
    GROUPS = KEYS / 16,
    K_PIECES = ROW / 64,
    V_PIECE = ROW / 8 < 16 ? ROW / 8 : 16, // bytes
    V_PIECES = ROW / 8 / V_PIECE,
    V_EACH = V_PIECE / BYTES, // elements of a piece
    O_TILES = D / 16,
    ROUNDS = D / 32 // pieces of Q that a lane has
  };
  // Of a tile: which tokens are there, tiles of the item from this one on, the item's sequence and heads.
  struct Tile {
    uint32_t there;
    int left, b, head, heads;
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
    uint64_t copied[WARPS][STAGES], empty[WARPS][STAGES], full, free; // barriers; full, free: all have left their sums of an item; they have been read
    Tile tile[WARPS][STAGES];
    int before[DECODE_SEQUENCES + 24];
  };
  struct State {
    float o[TILES][O_TILES][4], most[TILES][2], sum[TILES][2];
  };
  static constexpr uint32_t ALL = KEYS == 32 ? ~0u : 0xffffu; // tokens of a tile
  typedef Vec Queries[TILES][ROUNDS];

  static __device__ __forceinline__ Shared *shared(void) {
    extern __shared__ __align__(1024) uint8_t memory[];
    return (Shared *)memory;
  }
  static __device__ __forceinline__ int kind_of(const DecodeParams &p) {
    return FP8 ? p.kind : KIND;
  }

  // ---- queries: a lane has the pieces of head lane / 4 that go with its pieces of K ----

  static __device__ __forceinline__ int query_piece(int round) {
    int c = threadIdx.x % 4;
    return FP8 ? round / 2 * 8 + c * 2 + round % 2 : round * 4 + c;
  }

  static __device__ __forceinline__ void load_queries(Queries &q, const DecodeParams &p, const Tile &tile) {
#pragma unroll
    for (int t = 0; t < TILES; t++) {
      int in_tile = t * 8 + threadIdx.x % 32 / 4;
      const uint16_t *row = (const uint16_t *)p.q + tile.b * p.q_row + (int64_t)(tile.head + in_tile) * D;
#pragma unroll
      for (int i = 0; i < ROUNDS; i++) {
        q[t][i] = {};
        if (in_tile >= tile.heads) continue;
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

  // ---- items ----

  // Tiles of a warp; an empty part has one too.
  static __device__ __forceinline__ int tiles_of(const DecodeItem &item) {
    return max((item.to - item.key + WARPS * KEYS - 1) / (WARPS * KEYS), 1);
  }
  static __device__ __forceinline__ int first_head(const DecodeParams &p, const DecodeItem &item) {
    return item.kv * p.group + item.tile * HEADS;
  }
  static __device__ __forceinline__ int heads_of(const DecodeParams &p, const DecodeItem &item) {
    return min(p.group - item.tile * HEADS, HEADS);
  }

  // ---- barriers ----

  // All lanes' accesses of shared memory come before.
  static __device__ __forceinline__ void arrive_one(uint64_t *bar) {
    asm volatile("{.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];}" ::"r"(tile_address(bar)) : "memory");
  }
  static __device__ __forceinline__ void arrive(uint64_t *bar) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive_one(bar);
  }
  static __device__ __forceinline__ void wait_phase(uint64_t *bar, uint32_t phase) {
    asm volatile("{.reg .pred done;\nAGAIN: mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n@!done bra AGAIN;}" ::"r"(
                     tile_address(bar)),
                 "r"(phase & 1)
                 : "memory");
  }

  // ---- copies ----

  // Where a row's piece is in a tile: lanes that read at the same time find theirs in different banks.
  static __device__ __forceinline__ int key_place(int row, int piece) {
    return row * ROW + (ROW == 64 ? piece : piece ^ (row & 1) << 2) * 16;
  }
  static __device__ __forceinline__ int value_place(int row, int piece) {
    return row * ROW + (piece ^ (ROW == 64 ? (row & 4) >> 1 : row & 6)) * 16;
  }

  // Zeros for tokens that are not there; row: of the lane's token.
  static __device__ __forceinline__ void copy_tile(Stage *to, const DecodeParams &p, uint32_t row) {
    enum { AT_ONCE = 32 / PIECES };
    int lane = threadIdx.x % 32, piece = lane % PIECES;
    const char *k = (const char *)p.k_cache + piece * 16, *v = (const char *)p.v_cache + piece * 16;
#pragma unroll
    for (int i = 0; i < KEYS / AT_ONCE; i++) {
      int token = i * AT_ONCE + lane / PIECES;
      uint32_t at = __shfl_sync(~0u, row, token);
      int64_t from = at == ~0u ? 0 : (int64_t)at * ROW;
      copy_async(tile_address(to->k) + key_place(token, piece), k + from, at != ~0u);
      copy_async(tile_address(to->v) + value_place(token, piece), v + from, at != ~0u);
    }
  }
  static __device__ __forceinline__ void copy_elements_of(Stage *to, const DecodeParams &p, uint32_t row) {
    int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int i = 0; i < KEYS * PIECES / 32; i++) {
      int token = (i * 32 + lane) / PIECES, piece = lane % PIECES;
      uint32_t at = __shfl_sync(~0u, row, token);
      int64_t from = at == ~0u ? 0 : (int64_t)at * ROW + piece * 16;
      copy_elements(tile_address(to->k) + key_place(token, piece), (const char *)p.k_cache + from, at != ~0u, BYTES);
      copy_elements(tile_address(to->v) + value_place(token, piece), (const char *)p.v_cache + from, at != ~0u, BYTES);
    }
  }

  // The lane's arrival when its copies are there.
  static __device__ __forceinline__ void arrive_copied(uint64_t *bar) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(tile_address(bar)) : "memory");
  }

  // The next tiles of the rings that this warp fills: a lane has a token of each.
  struct Next {
    DecodePlace place[MINE];
    Tile tile; // but for which tokens are there
  };
  static __device__ __forceinline__ Next look_up(const DecodePlan &plan, const DecodeParams &p, DecodeItem *item, int copier) {
    Next x;
    x.tile = {0, tiles_of(*item), item->b, first_head(p, *item), heads_of(p, *item)};
#pragma unroll
    for (int i = 0; i < MINE; i++) x.place[i] = decode_look_up(plan, p, *item, item->key + (i * COPIERS + copier) * KEYS + threadIdx.x % KEYS);
    item->key += WARPS * KEYS;
    if (item->key >= item->to && item->index < plan.end) decode_next(plan, p, item);
    return x;
  }

  struct Ring {
    int stage = 0;
    uint32_t phase = 0;
    __device__ __forceinline__ void next() {
      if (++stage == STAGES) stage = 0, phase ^= 1;
    }
  };

  // Like what finishes items a function of its own: what the one has in registers is not in the other's way.
  static __device__ __forceinline__ Ring copy_items(DecodePlan plan, const DecodeParams &p, Ring ring, int copier) {
    Shared *s = shared();
    DecodeItem item = decode_find(plan, p, plan.begin);
    Next next = look_up(plan, p, &item, copier);
    for (bool more = true; more; ring.next()) {
      Tile tile = next.tile;
      uint32_t rows[MINE];
#pragma unroll
      for (int i = 0; i < MINE; i++) rows[i] = decode_row(p, next.place[i]);
      more = item.index < plan.end;
      if (more) next = look_up(plan, p, &item, copier);
#pragma unroll 1
      for (int i = 0; i < MINE; i++) {
        int warp = i * COPIERS + copier;
        uint32_t row = i == 0 ? rows[0] : i == 1 ? rows[1 % MINE] : i == 2 ? rows[2 % MINE] : rows[3 % MINE];
        tile.there = __ballot_sync(~0u, row != ~0u) & ALL;
        wait_phase(&s->empty[warp][ring.stage], ring.phase ^ 1);
        if (p.aligned) copy_tile(&s->ring[warp][ring.stage], p, row);
        else copy_elements_of(&s->ring[warp][ring.stage], p, row);
        arrive_copied(&s->copied[warp][ring.stage]);
        if (threadIdx.x % 32 == 0) s->tile[warp][ring.stage] = tile;
        arrive(&s->copied[warp][ring.stage]);
      }
    }
    return ring;
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

  // Adds up what the warps left of an item, by one warp. The only part of its sequence is finished; of more, the last to be done adds up all.
  static __device__ __forceinline__ void finish(Shared *s, const DecodeParams &p, const DecodeItem &item, int stage) {
    enum { WIDE = D == 64 ? 2 : 4, EACH = D / 32 / WIDE }; // columns side by side, and how often
    int lane = threadIdx.x % 32, first = first_head(p, item), heads = heads_of(p, item);
#pragma unroll 1
    for (int head = 0; head < heads; head++) {
      float most = -INFINITY, sum = 0, by[WARPS], o[EACH][WIDE] = {};
#pragma unroll
      for (int w = 0; w < WARPS; w++) most = fmaxf(most, s->most[w][head]);
      float base = most == -INFINITY ? 0 : most;
#pragma unroll
      for (int w = 0; w < WARPS; w++) by[w] = exp_two(s->most[w][head] - base), sum += by[w] * s->sum[w][head];
#pragma unroll
      for (int w = 0; w < WARPS; w++)
#pragma unroll
        for (int i = 0; i < EACH; i++) {
          const float *from = &s->ring[w][stage].o[head][kept_place(head, (i * 32 + lane) * WIDE)];
          float x[WIDE];
          if (WIDE == 4) *(float4 *)x = *(const float4 *)from;
          else *(float2 *)x = *(const float2 *)from;
#pragma unroll
          for (int j = 0; j < WIDE; j++) o[i][j] += by[w] * x[j];
        }
      int64_t row = (int64_t)item.b * p.heads + first + head, part = row * p.parts + item.part;
      int64_t to = item.b * p.o_row + (int64_t)(first + head) * D;
      float last = sum == 0 ? 0 : p.v_scale / sum;
#pragma unroll
      for (int i = 0; i < EACH * WIDE; i++) {
        int column = (i / WIDE * 32 + lane) * WIDE + i % WIDE;
        if (item.parts > 1) p.sums[part * D + column] = o[i / WIDE][i % WIDE];
        else store_one(p.o, to + column, kind_of(p), o[i / WIDE][i % WIDE] * last);
      }
      if (lane == 0 && item.parts > 1) p.mosts[part] = most, p.weights[part] = sum;
      if (lane == 0 && item.parts == 1 && p.lse) p.lse[row] = log_sum(most, 1, sum);
    }
    arrive(&s->free);
    if (lane < WARPS) arrive_one(&s->empty[lane][stage]);
    if (item.parts > 1) decode_join<D>(p, item.b, item.part, item.parts, first, first + heads, 1, kind_of(p));
  }

  // ---- all of it ----

  // What is known of the ring's next tile, when it is there.
  static __device__ __forceinline__ Tile next_tile(Shared *s, const Ring &ring) {
    wait_phase(&s->copied[threadIdx.x / 32][ring.stage], ring.phase);
    return s->tile[threadIdx.x / 32][ring.stage];
  }

  // count: items of this block so far.
  static __device__ __forceinline__ void multiply_items(Shared *s, int items, const DecodeParams &p, Ring &ring, uint32_t &count) {
    ScoreUnit u = score_unit(p.scale, p.soft_cap);
    int warp = threadIdx.x / 32;
    Tile tile = next_tile(s, ring);
    Queries q;
    load_queries(q, p, tile);
    for (; items; items--, count++) {
      int heads = tile.heads, stage;
      State x;
      start(&x);
      for (int left = tile.left;; left--) {
        Scores scores;
        const Stage *from = &s->ring[warp][stage = ring.stage];
        uint32_t there = tile.there;
        multiply_keys(scores, q, from->k);
        ring.next();
        if (left > 1 || items > 1) tile = next_tile(s, ring);
        if (left == 1 && items > 1) load_queries(q, p, tile);
        in_units(scores, u, there);
        weigh(scores, &x);
        add_values(&x, scores, from->v);
        if (left == 1) break;
        arrive(&s->empty[warp][stage]);
      }
      if (count) wait_phase(&s->free, count - 1);
      __syncwarp(); // the tile has been read
      keep(s, x, heads, stage);
      arrive(&s->full);
    }
  }

  // stage: after that of the tile before the first. Returns that after the last.
  static __device__ __forceinline__ int finish_items(DecodePlan plan, const DecodeParams &p, int stage, uint32_t count) {
    Shared *s = shared();
    for (DecodeItem item = decode_find(plan, p, plan.begin); item.index < plan.end; decode_next(plan, p, &item)) {
      int last = (stage + tiles_of(item) - 1) % STAGES;
      stage = (last + 1) % STAGES;
      wait_phase(&s->full, count++);
      finish(s, p, item, last);
    }
    return stage;
  }

  static __device__ __forceinline__ void init_barrier(uint64_t *bar, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(tile_address(bar)), "r"(arrivals) : "memory");
  }

  static __device__ __forceinline__ void run(const DecodeParams &p) {
    Shared *s = shared();
    static_assert(sizeof(Stage) == KEYS * ROW * 2, "the sums have room");
    static_assert(sizeof(Shared) == DECODE_HEADS_SHARED(TILES, D, BYTES, KEYS, WARPS, STAGES), "as the launcher has it");
    if (threadIdx.x < WARPS * STAGES) init_barrier(&s->copied[0][threadIdx.x], 33), init_barrier(&s->empty[0][threadIdx.x], 1); // 33: copies' and what is there
    if (threadIdx.x == 0) init_barrier(&s->full, WARPS), init_barrier(&s->free, 1);
    Ring ring;
    int warp = threadIdx.x / 32;
    uint32_t count = 0;
    decode_hint<THREADS>(s->before, p, ROW);
    wait_for_predecessor();
    for (int first = 0; first < p.batch; first += DECODE_SEQUENCES) {
      DecodePlan plan = decode_plan<THREADS>(s->before, p, first);
      if (plan.begin >= plan.end) ;
      else if (warp < WARPS) multiply_items(s, (int)(plan.end - plan.begin), p, ring, count);
      else if (warp == WARPS) ring.stage = finish_items(plan, p, ring.stage, count), count += (uint32_t)(plan.end - plan.begin);
      else ring = copy_items(plan, p, ring, warp - WARPS - 1);
      __syncthreads();
    }
  }
};
#endif

#endif
