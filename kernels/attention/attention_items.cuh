// Attention on sm_90a where all keys of a sequence fit into a tile of 128, and its queries into a few items of 64. One warp copies: a ring of slots
// has keys or values of a head, another the queries of an item. Warpgroups take the block's items in turn, so that they are at different
// steps: one multiplies while another has exponentials to do, and a third writes.
//
// A slot of keys or values has p.box rows. Products are of 64 keys: the first ones, and the last, some of which may be among the first too and are masked
// then.
#ifndef SOL_KERNELS_ATTENTION_ITEMS_CUH
#define SOL_KERNELS_ATTENTION_ITEMS_CUH

#include "attention/attention_items.h"
#include "attention/attention_slots.cuh"

// ODD: rows begin at any element.
template <int KIND, int D, int ODD> struct AttentionItems : AttentionSlots<KIND, D, 1, ODD> {
  typedef AttentionSlots<KIND, D, 1, ODD> Slots;
  typedef typename Slots::Brief Brief;
  typedef typename Slots::Head Head;
  typedef typename Slots::Scores Scores;
  typedef typename Slots::Sums Sums;
  typedef typename Slots::Slot Slot;
  typedef float Half[32]; // of the scores
  enum {
    GROUPS = ATTENTION_ITEMS_GROUPS,
    BOXES = Slots::BOXES,
    SLOTS = ATTENTION_ITEMS_SLOTS,
    Q_SLOTS = ATTENTION_ITEMS_QUERIES,
    Q_BOX = 64 * 128,
    Q_BYTES = BOXES * Q_BOX
  };
  struct Shared { // barriers; from the next multiple of 1024 on slots of keys and values, then of queries, and their rows' ends
    uint64_t q_full[Q_SLOTS], q_empty[Q_SLOTS], q_fetched[Q_SLOTS], full[SLOTS], empty[SLOTS], fetched[SLOTS];
  };

  static __device__ __forceinline__ uint8_t *ends_of(const AttentionTiledParams &p, int row) {
    extern __shared__ __align__(1024) uint8_t memory[];
    return memory + 1024 + p.slots * p.box * (D * 2) + Q_SLOTS * Q_BYTES + row * 16;
  }

  // An item of the block's: its head, the queries from 64 i on, and the slots of both. They follow each other without a division, which takes longer than
  // waiting for a copy that is there.
  struct Item {
    int b, head, i;
    int slot, q_slot; // of keys, before that of values
    uint32_t parity, q_parity;
  };
  struct Step { // to the head that the block has next
    int b, head;
  };
  static __device__ __forceinline__ Step step_of(const AttentionTiledParams &p) {
    int b = gridDim.x / p.all.heads;
    return {b, (int)gridDim.x - b * p.all.heads};
  }
  static __device__ __forceinline__ Item first_item(const AttentionTiledParams &p) {
    int b = blockIdx.x / p.all.heads;
    return {b, (int)blockIdx.x - b * p.all.heads, 0, 0, 0, 0, 0};
  }
  static __device__ __forceinline__ bool is_there(const AttentionTiledParams &p, const Item &x) { return x.b < p.all.batch; }

  // count: items on, fewer than there are slots of queries.
  static __device__ __forceinline__ void advance(const AttentionTiledParams &p, const Step &step, Item *x, int count) {
    x->q_slot += count, x->i += count;
    if (x->q_slot >= Q_SLOTS) x->q_slot -= Q_SLOTS, x->q_parity ^= 1;
    while (x->i >= p.rows) {
      x->i -= p.rows, x->b += step.b, x->head += step.head, x->slot += 2;
      if (x->head >= p.all.heads) x->head -= p.all.heads, x->b++;
      if (x->slot >= p.slots) x->slot -= p.slots, x->parity ^= 1;
    }
  }

  // which: 0 the keys, 1 the values.
  static __device__ __forceinline__ Slot slot_of(const AttentionTiledParams &p, const Item &x, int which) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    int slot = x.slot + which, over = slot >= p.slots;
    slot -= over ? p.slots : 0;
    return {memory + 1024 + slot * p.box * (D * 2), &s->full[slot], &s->empty[slot], &s->fetched[slot], x.parity ^ over, ends_of(p, slot * p.box)};
  }
  static __device__ __forceinline__ Slot query_slot(const AttentionTiledParams &p, const Item &x) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    int slot = x.q_slot;
    return {memory + 1024 + p.slots * p.box * (D * 2) + slot * Q_BYTES, &s->q_full[slot], &s->q_empty[slot], &s->q_fetched[slot], x.q_parity,
            ends_of(p, p.slots * p.box + slot * 64)};
  }

  static __device__ __forceinline__ Head head_of(const AttentionTiledParams &p, const Item &x) {
    Head h = {x.b, x.head, x.i * 64, 0, 0, attention_sequence(p.all, x.b)};
    h.end = h.q.queries;
    return h;
  }

  // ---- copies ----

  static __device__ __forceinline__ void copy(const AttentionMap *map, const Slot &x, int box, int token, int head, int b) {
    int lane = threadIdx.x % 32;
    if (lane < BOXES) tensor_load_4d(x.at + lane * box * 128, map, x.full, lane * 64, token, head, b);
  }

  static __device__ __forceinline__ void expect(const Slot &x, int bytes) {
    barrier_wait(x.empty, x.parity ^ 1);
    if (threadIdx.x % 32 == 0) barrier_expect(x.full, bytes);
    __syncwarp();
  }

  static __device__ __forceinline__ void copy_queries(const AttentionTiledParams &p, const Head &h, const Slot &x) {
    expect(x, Q_BYTES);
    copy(&p.q, x, 64, h.q.q_first + h.first, h.head, p.all.q_starts ? 0 : h.b);
  }

  // map: of keys or values.
  static __device__ __forceinline__ void copy_keys(const AttentionTiledParams &p, const AttentionMap *map, const Head &h, const Slot &x) {
    expect(x, p.box * D * 2);
    copy(map, x, p.box, h.q.k_first, h.head / p.all.group, p.all.kv_starts ? 0 : h.b);
  }

  static __device__ __forceinline__ void produce(const AttentionTiledParams &p) {
    const Step step = step_of(p);
    for (Item x = first_item(p); is_there(p, x); advance(p, step, &x, 1)) {
      Head h = head_of(p, x);
      copy_queries(p, h, query_slot(p, x));
      if (x.i == 0) copy_keys(p, &p.k, h, slot_of(p, x, 0)), copy_keys(p, &p.v, h, slot_of(p, x, 1));
    }
  }

  // An item's queries, or of the first one its keys and values too.
  static __device__ __forceinline__ void produce_odd(const AttentionTiledParams &p) {
    const AttentionParams &a = p.all;
    const Step step = step_of(p);
    for (Item x = first_item(p); is_there(p, x); advance(p, step, &x, 1)) {
      Head h = head_of(p, x);
#pragma unroll 1
      for (int which = 0; which < (x.i ? 1 : ODD_TENSORS); which++) {
        Slot to = which ? slot_of(p, x, which - ODD_KEYS) : query_slot(p, x);
        int token = which ? h.q.k_first : h.q.q_first + h.first, there = which ? h.q.keys : h.end - h.first;
        Slots::bring(to, a, which, h.b, token, which ? h.head / a.group : h.head, which ? p.box : 64, there);
      }
    }
  }

  // last: the row where the second half of the keys begins.
  static __device__ __forceinline__ void multiply_keys(const AttentionTiledParams &p, Scores &sc, const Slot &of_q, const Slot &of_k, int last) {
    uint64_t q = matrix_descriptor(shared_address(of_q.at), 0), k = matrix_descriptor(shared_address(of_k.at), 0);
    barrier_wait(of_q.full, of_q.parity);
    barrier_wait(of_k.full, of_k.parity);
    wgmma_fence();
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int i = 0; i < D / 16; i++)
        wgmma<32, KIND, 0, 0>(*(Half *)&sc[half * 8], q + (i / 4 * Q_BOX + i % 4 * 32) / 16, k + (i / 4 * p.box * 128 + i % 4 * 32) / 16 + half * last * 8, i);
    wgmma_commit();
    wgmma_wait<0>();
    settle(Brief::flat(sc));
    Slots::leave(of_k);
  }

  // ---- softmax: of 64 keys, then the other 64 where any row of the warp sees some of these ----

  // Caps and masks scores and raises the largest of each row. The keys begin with number `first`, and those before `least` are not these'.
  static __device__ __forceinline__ void look(float (&sc)[8][4], const Seen (&seen)[2], const ScoreUnit &u, int first, int least, float (&most)[2]) {
    int left = first + threadIdx.x % 4 * 2;
    int from[2] = {max(seen[0].from, least) - left, max(seen[1].from, least) - left}, to[2] = {seen[0].to - left, seen[1].to - left};
    if (u.cap != 0) cap_scores(sc, u.before, u.cap);
#pragma unroll
    for (int i = 0; i < 32; i++) {
      int column = i / 4 * 8 + i % 2, row = i % 4 / 2;
      float *one = &sc[i / 4][i % 4];
      *one = column >= from[row] && column < to[row] ? *one : -INFINITY;
      most[row] = fmaxf(most[row], *one);
    }
  }

  static __device__ __forceinline__ void weigh(float (&sc)[8][4], const float (&base)[2], float unit, Softmax *x) {
#pragma unroll
    for (int i = 0; i < 32; i++) {
      int row = i % 4 / 2;
      x->sum[row] += sc[i / 4][i % 4] = exp_two(sc[i / 4][i % 4] * unit - base[row]);
    }
  }

  // query: the first of the thread's two.
  static __device__ __forceinline__ void softmax(const AttentionParams &p, const Head &h, Scores &sc, const ScoreUnit &u, Softmax *x, int query, int last, bool both) {
    typedef float Part[8][4];
    Part &low = *(Part *)&sc[0], &high = *(Part *)&sc[8];
    Seen seen[2] = {attention_seen(p, h.q, query), attention_seen(p, h.q, query + 8)};
    float base[2];
    look(low, seen, u, 0, 0, x->most);
    if (both) look(high, seen, u, last, 64, x->most);
#pragma unroll
    for (int row = 0; row < 2; row++) {
      x->most[row] = quad_max(x->most[row]);
      base[row] = x->most[row] == -INFINITY ? 0 : x->most[row] * u.unit; // all left out: 2^-infinity is 0
    }
    weigh(low, base, u.unit, x);
    if (both) weigh(high, base, u.unit, x);
    else
#pragma unroll
      for (int i = 0; i < 32; i++) high[i / 4][i % 4] = 0;
  }

  static __device__ __forceinline__ void attend(const AttentionTiledParams &p, const Head &h, const ScoreUnit &u, const Slot &of_q, const Slot &of_k, const Slot &of_v,
                                                int group, int warp) {
    int lane = threadIdx.x % 32, last = p.box - 64, first = h.first + warp * 16;
    bool both = attention_all_seen(p.all, h.q, first, 16, h.end).to > 64;
    Scores sc;
    Sums o = {};
    Softmax x = softmax_start();
    multiply_keys(p, sc, of_q, of_k, last);
    softmax(p.all, h, sc, u, &x, first + lane / 4, last, both);
    Slots::multiply_values(p, o, sc, of_v, last);
    named_sync(1 + group, 128); // the queries have been read
    Brief::store(of_q.at, Q_BOX, p.all, h, o, x, u.unit, warp * 16, first);
    async_fence();
    Slots::leave(of_q);
  }

  static __device__ __forceinline__ void compute(const AttentionTiledParams &p) {
    ScoreUnit u = score_unit(p.all.scale, p.all.soft_cap);
    // The same in all lanes, said so that the compiler knows it.
    int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0), group = warp / 4;
    const Step step = step_of(p);
    Item x = first_item(p);
    for (advance(p, step, &x, group); is_there(p, x); advance(p, step, &x, GROUPS))
      attend(p, head_of(p, x), u, query_slot(p, x), slot_of(p, x, 0), slot_of(p, x, 1), group, warp % 4);
  }

  static __device__ __forceinline__ void init(uint64_t *full, uint64_t *empty, uint64_t *fetched, int readers) {
    barrier_init(full, Slots::ARRIVALS), barrier_init(empty, readers);
    if (ODD) barrier_init(fetched, Slots::Odd::FETCHERS);
  }

  static __device__ __forceinline__ void run(const AttentionTiledParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    if (threadIdx.x == 0) {
      if (!ODD) tensor_prefetch_map(&p.q), tensor_prefetch_map(&p.k), tensor_prefetch_map(&p.v);
      for (int i = 0; i < SLOTS; i++) init(&s->full[i], &s->empty[i], &s->fetched[i], 4 * p.rows);
      for (int i = 0; i < Q_SLOTS; i++) init(&s->q_full[i], &s->q_empty[i], &s->q_fetched[i], 4);
      barrier_init_done();
    }
    __syncthreads();
    let_successor_start();
    wait_for_predecessor();
    if (threadIdx.x < GROUPS * 128) {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(ATTENTION_ITEMS_REGISTERS(ODD)));
      compute(p);
    } else {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(ATTENTION_ITEMS_COPY_REGISTERS(ODD)));
      if (ODD) produce_odd(p);
      else if (threadIdx.x < GROUPS * 128 + 32) produce(p);
    }
  }
};

#endif
