// Decode attention where few heads share one of K: each warp has items of its own, one after the other, with decode_attention_warps.cuh's loads and
// products. No warp waits for another, so that items may be short: a part of a long sequence, or all of a short one. The next item's first
// tokens and queries are on their way while this one's last are multiplied.
#ifndef SOL_KERNELS_DECODE_ATTENTION_ALONE_CUH
#define SOL_KERNELS_DECODE_ATTENTION_ALONE_CUH

#include "decode_attention/decode_attention_warps.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800
template <int KIND, int D, int KEYS, int WARPS> struct DecodeAlone {
  typedef DecodeWarps<KIND, 0, D, 1, KEYS, WARPS, 1> Base;
  typedef typename Base::State State;
  typedef typename Base::Scores Scores;
  enum { THREADS = WARPS * 32, COUNTING = THREADS < 256 ? 128 : 256, CHUNKS = Base::CHUNKS, V_EACH = Base::V_EACH };
  static constexpr uint32_t ALL = Base::ALL;
  struct Shared {
    uint4 q[2][WARPS][CHUNKS];
    int items[WARPS][4][4]; // those looked up last: sequence, part, parts, head of K
    DecodeItem ahead[WARPS]; // where each warp is in looking up; not in registers, of which there are few
    int before[DECODE_SEQUENCES + 16];
  };

  // The same in all lanes, said so that the compiler knows it.
  static __device__ __forceinline__ int warp_number() {
    return __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
  }

  // Queries of an item are on their way, or there where they are not aligned.
  static __device__ __forceinline__ void load_queries(uint4 *to, const DecodeParams &p, const DecodeItem &item) {
    const uint16_t *from = (const uint16_t *)p.q + item.b * p.q_row + (int64_t)item.kv * p.group * D;
#pragma unroll 1
    for (int n = threadIdx.x % 32; n < p.group * (D / 8); n += 32) { // other heads are zeros
      uint32_t place = tile_address(to + Base::chunk_place(n / (D / 8), n % (D / 8)));
      if (p.q_aligned) copy_async(place, from + n * 8, true);
      else copy_elements(place, from + n * 8, true, 2);
    }
  }

  // The workspace may begin at any float.
  static __device__ __forceinline__ void store_sums(float *to, float4 f) {
    if ((uintptr_t)to % 16 == 0) *(float4 *)to = f;
    else to[0] = f.x, to[1] = f.y, to[2] = f.z, to[3] = f.w;
  }

  // The only part of its sequence is finished; of more, the combining kernel does that.
  static __device__ __forceinline__ void store(const DecodeParams &p, const State &x, const int *item) {
    int lane = threadIdx.x % 32, b = item[0], parts = item[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int in_group = lane % 4 * 2 + h, head = item[3] * p.group + in_group;
      float sum = x.sum[0][h], most = x.most[0][h];
#pragma unroll
      for (int o = 4; o < 32; o *= 2) sum += __shfl_xor_sync(~0u, sum, o);
      if (in_group >= p.group) continue;
      int64_t part = ((int64_t)b * p.heads + head) * p.parts + item[1];
      uint16_t *o = (uint16_t *)p.o + b * p.o_row + (int64_t)head * D;
      float by = sum == 0 ? 0 : p.v_scale / sum;
#pragma unroll
      for (int i = 0; i < Base::O_TILES; i += 2) {
        int column = i * 2 / V_EACH * V_EACH * 8 + lane / 4 * V_EACH + i * 2 % V_EACH;
        float4 f = {x.o[0][i][h], x.o[0][i][h + 2], x.o[0][i + 1][h], x.o[0][i + 1][h + 2]};
        if (parts > 1) store_sums(&p.sums[part * D + column], f);
        else {
          uint16_t *to = o + column;
          uint2 v = {narrow2(f.x * by, f.y * by, KIND), narrow2(f.z * by, f.w * by, KIND)};
          if ((uintptr_t)to % 8 == 0) *(uint2 *)to = v;
          else to[0] = v.x & 0xffff, to[1] = v.x >> 16, to[2] = v.y & 0xffff, to[3] = v.y >> 16;
        }
      }
      if (lane >= 4) continue;
      if (parts > 1) p.mosts[part] = most, p.weights[part] = sum;
      else if (p.lse) p.lse[(int64_t)b * p.heads + head] = log_sum(most, 1, sum);
    }
  }

  // A tile of the warp's items that comes after those looked up so far; the queries of the items whose first it is are on their way. There may be two items
  // beside the one that is multiplied, whose queries are not read any more when the second is looked up.
  struct Next {
    uint32_t count; // items
    bool starts;
  };
  static __device__ __forceinline__ DecodePlace look_up(Shared *s, const DecodePlan &plan, const DecodeParams &p, Next *x, bool *last) {
    int warp = warp_number();
    __syncwarp();
    DecodeItem item = s->ahead[warp];
    if (x->starts && item.index < plan.end) {
      if (threadIdx.x % 32 == 0) *(int4 *)s->items[warp][x->count % 4] = {item.b, item.part, item.parts, item.kv};
      load_queries(s->q[x->count++ % 2][warp], p, item);
    }
    copy_commit();
    DecodePlace place = decode_look_up(plan, p, item, item.key + threadIdx.x % KEYS);
    item.key += KEYS;
    *last = x->starts = item.key >= item.to;
    if (*last && ++item.index < plan.end) decode_advance(p, &item); // there is one tile of heads
    __syncwarp();
    s->ahead[warp] = item; // the same in all lanes
    return place;
  }

  // Registers that are loaded next, so that nothing needs what was in them.
  template <class T> static __device__ __forceinline__ void clear(T &x) {
#pragma unroll
    for (unsigned i = 0; i < sizeof x / 4; i++) (&x[0][0][0][0])[i] = 0;
  }

  static __device__ __forceinline__ void run_items(Shared *s, const DecodePlan &plan, const DecodeParams &p) {
    ScoreUnit u = score_unit(p.scale, p.soft_cap);
    Next ahead = {0, true};
    int warp = warp_number(), left = (int)(plan.end - plan.begin);
    s->ahead[warp] = decode_find(plan, p, plan.begin);
    bool last, next_last;
    DecodePlace next = look_up(s, plan, p, &ahead, &last);
    uint32_t row = decode_row(p, next);
    typename Base::Keys k = {};
    typename Base::Values v = {};
    Base::load_keys(k, p, row);
    next = look_up(s, plan, p, &ahead, &next_last);
    Base::load_values(v, p, row);
    uint32_t there = __ballot_sync(~0u, row != ~0u) & ALL;
    State x;
    Base::start(&x);
    for (int count = 0; count < left;) { // an empty part has one step too
      Scores scores;
      copy_wait<1>(); // but for the queries looked up last
      __syncwarp();
      Base::multiply_keys(scores, s->q[count % 2][warp], k);
      Base::in_units(scores, u, there);
      row = decode_row(p, next);
      bool ends = last;
      last = next_last;
      next = look_up(s, plan, p, &ahead, &next_last); // while K's registers are free
      clear(k);
      Base::load_keys(k, p, row);
      Base::weigh(scores, &x);
      if (there != ALL) Base::clear_values(v, there);
      Base::add_values(&x, scores, v);
      if (ends) { // while V's are
        store(p, x, s->items[warp][count++ % 4]);
        Base::start(&x);
      }
      clear(v);
      Base::load_values(v, p, row);
      there = __ballot_sync(~0u, row != ~0u) & ALL;
    }
    copy_wait<0>();
  }

  static __device__ __forceinline__ void run(const DecodeParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(sizeof(Shared) == DECODE_ALONE_SHARED(D, WARPS), "as the launcher has it");
    for (int i = threadIdx.x; i < 2 * WARPS * CHUNKS; i += THREADS) ((uint4 *)s->q)[i] = {};
    __syncthreads();
    decode_hint<COUNTING>(s->before, p, Base::ROW);
    wait_for_predecessor();
    for (int first = 0; first < p.batch; first += DECODE_SEQUENCES) {
      DecodePlan plan = decode_plan<COUNTING>(s->before, p, first);
      int64_t all = plan.per_tile, worker = (int64_t)blockIdx.x * WARPS + warp_number(), workers = (int64_t)gridDim.x * WARPS;
      plan.begin = all * worker / workers, plan.end = all * (worker + 1) / workers;
      if (plan.begin < plan.end) run_items(s, plan, p);
      __syncthreads();
    }
  }
};
#endif

#endif
