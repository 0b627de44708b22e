// Rows that blocks all over the GPU share, one after another: a block has the same part of each row of its team, and keeps as much as fits its shared memory. While it
// waits for the sums of others it loads what comes next.
//
// Shared memory is a ring of slots. One warp fills slots (cp.async.bulk), some post the sums of a part and collect those of its row (parts.cuh), each for another row, the
// others sum a part up when it has come and write it when the row's sums are there. Nothing of it is a barrier of the block. A part of more slots than there are is read twice but for what they hold.
//
// Blocks beyond the teams' write the start of each row, where the others exchange sums, and what these gave up.
#ifndef SOL_KERNELS_RING_CUH
#define SOL_KERNELS_RING_CUH

#include "fp8.cuh"
#include "hopper.cuh"
#include "parts.cuh"
#include "ring.h"
#include "stats.cuh"

enum { RING_WARPS = RING_THREADS / 32, RING_GIVEN_UP = 64 };

typedef struct RingShared {
  uint64_t full[RING_SLOTS], empty[RING_SLOTS], done[RING_SLOTS], summed[RING_READY], ready[RING_READY], taken[RING_READY];
  float warps[RING_READY][RING_WARPS][3]; // of a part: count, mean, squares; or a sum and a largest magnitude
  float2 sums[RING_READY];
  bool there[RING_READY];
  uint64_t given_up[RING_GIVEN_UP]; // rows of which parts were given up: the last blocks' list
  int many;
} RingShared;

INLINE void barrier_arrive_here(uint64_t *bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

INLINE void barrier_arrive_times(uint64_t *bar, int times) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(times) : "memory");
}

// A place in the ring.
typedef struct Turn {
  int slot;
  uint32_t parity;
} Turn;
INLINE void turn_on(Turn &t, int by, int slots) {
  for (t.slot += by; t.slot >= slots; t.slot -= slots) t.parity ^= 1;
}

INLINE int ring_threads(void) { return (int)blockDim.x - RING_MORE; } // that work
INLINE uint32_t ring_team(const RingShape &s) { return blockIdx.x / s.parts.parts; }
INLINE uint32_t ring_rank(const RingShape &s) { return blockIdx.x % s.parts.parts; }

// What a block has of a row.
typedef struct RingPart {
  Span x;
  int64_t begin; // column
  int turns, again; // slots that it takes; of them, how many are read twice, the first
} RingPart;

INLINE int ring_head(const RingShape &s, uint64_t row, int in) {
  return (int)(-(uint32_t)((uintptr_t)s.x + (int64_t)row * s.x_stride) & 15) / in;
}
INLINE char *ring_y(const RingShape &s, uint64_t row) { return (char *)s.y + (int64_t)row * s.y_stride; }

INLINE RingPart ring_part(const RingShape &s, uint64_t row, uint32_t part, int in) {
  RingPart a;
  int head = ring_head(s, row, in), turn = RING_EACH * ring_threads();
  a.begin = part_begin(s.parts, part, head, s.n);
  a.x = span_of((const char *)s.x + (int64_t)row * s.x_stride + a.begin * in, part_begin(s.parts, part + 1, head, s.n) - a.begin, in);
  a.turns = (int)((uint32_t)(a.x.chunks + turn - 1) / (uint32_t)turn);
  a.again = max(0, a.turns - s.slots);
  return a;
}

INLINE void bulk_load(void *to, const void *from, int bytes, uint64_t *bar, uint64_t policy) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
                   shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(bar)), "l"(policy)
               : "memory");
}

// ---- The warp that loads

INLINE void ring_load(const RingShape &s, RingShared *shared, uint4 *memory, int in) {
  if (threadIdx.x % 32) return;
  Turn t = {0, 1};
  int slot_chunks = RING_EACH * ring_threads();
  uint64_t keep, first;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
  for (uint64_t row = ring_team(s); row < s.parts.rows; row += s.teams) {
    RingPart a = ring_part(s, row, ring_rank(s), in);
    for (int k = 0; k < a.turns + a.again; k++) {
      int turn = k < a.turns ? k : a.turns + a.again - 1 - k; // what was read last may still be in L2
      int chunks = min(slot_chunks, (int)a.x.chunks - turn * slot_chunks);
      barrier_wait(&shared->empty[t.slot], t.parity);
      barrier_expect(&shared->full[t.slot], chunks * 16);
      bool twice = k < a.again && k >= a.again - s.remember;
      bulk_load(memory + t.slot * slot_chunks, a.x.body + (int64_t)turn * slot_chunks * 16, chunks * 16, &shared->full[t.slot],
                twice ? keep : first);
      turn_on(t, 1, s.slots);
    }
    if (s.ahead && row + s.teams < s.parts.rows) {
      RingPart b = ring_part(s, row + s.teams, ring_rank(s), in);
      int bytes = (int)min((int64_t)s.ahead, b.x.chunks * 16);
      if (bytes)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(b.x.body)), "r"(bytes) : "memory");
    }
  }
}

INLINE uint32_t ring_laps(const RingShape &s) { // rows of this block
  uint32_t team = ring_team(s);
  return s.parts.rows > team ? (uint32_t)((s.parts.rows - team - 1) / s.teams) + 1 : 0;
}

// The sums of the block's row number `lap`. False: they did not come, and nothing is to be written.
INLINE bool ring_sums(RingShared *shared, uint32_t lap, float2 *sums) {
  int at = (int)(lap % RING_READY);
  barrier_wait(&shared->ready[at], lap / RING_READY & 1);
  *sums = shared->sums[at];
  bool there = shared->there[at];
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier_arrive_here(&shared->taken[at]);
  return there;
}

// ---- The warp that stores: results that are in the slots of what they were made of

INLINE void ring_store(const RingShape &s, RingShared *shared, const uint4 *memory, int in) {
  if (threadIdx.x % 32 || !s.bulk) return;
  Turn t = {0, 0};
  int warps = ring_threads() / 32, slot_chunks = RING_EACH * ring_threads();
  for (uint32_t lap = 0; lap < ring_laps(s); lap++) {
    uint64_t row = ring_team(s) + (uint64_t)lap * s.teams;
    RingPart a = ring_part(s, row, ring_rank(s), in);
    uint32_t at = lap % RING_READY;
    barrier_wait(&shared->ready[at], lap / RING_READY & 1);
    bool there = shared->there[at];
    barrier_arrive_here(&shared->taken[at]);
    int front = ring_rank(s) ? 0 : s.parts.front;
    char *y = ring_y(s, row) + (a.begin + a.x.head) * in;
    turn_on(t, a.again, s.slots);
    for (int k = 0; k < a.turns; k++, turn_on(t, 1, s.slots)) {
      int turn = k >= a.turns - a.again ? a.turns - 1 - k : a.again + k;
      int from = turn ? 0 : front, chunks = min(slot_chunks, (int)a.x.chunks - turn * slot_chunks) - from;
      barrier_wait(&shared->done[t.slot], t.parity);
      if (there && chunks > 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                         __cvta_generic_to_global(y + (int64_t)(turn * slot_chunks + from) * 16)),
                     "r"(shared_address(memory + t.slot * slot_chunks + from)), "r"(chunks * 16)
                     : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      barrier_arrive_times(&shared->empty[t.slot], warps);
    }
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// ---- The warps that collect sums

// Elements of a part; of none: 0.
INLINE float ring_count(const RingShape &s, uint32_t part, int head) {
  return part >= s.parts.parts ? 0 : (float)(part_begin(s.parts, part + 1, head, s.n) - part_begin(s.parts, part, head, s.n));
}

// part_tell, without a fence, which takes as long as all writes under way. What was posted has come before: it decides what is told.
INLINE void ring_tell(const PartShape &s, unsigned long long *posts, uint32_t part, int what) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(posts + 2 * s.parts + part)), "l"(part_word(s, what)) : "memory");
}

// Mean and squares of a row of its parts'. By a warp. False: they have not come within `polls` looks.
INLINE bool ring_take(const RingShape &s, const unsigned long long *posts, int head, int polls, float2 *all) {
  enum { MOST = RING_PARTS / 32 };
  int lane = threadIdx.x % 32;
  float2 v[MOST];
  float sum = 0, more = 0;
  bool there = false;
  for (int k = 0; !polls || k < polls; k++) { // all posts of a lane are asked for before the first has come
    bool got[MOST];
#pragma unroll
    for (int i = 0; i < MOST; i++) got[i] = i * 32 >= s.parts.parts || post_get(s.parts, posts, min(i * 32 + lane, s.parts.parts - 1), &v[i]);
    there = true;
#pragma unroll
    for (int i = 0; i < MOST; i++) there = there && got[i];
    there = __all_sync(~0u, there);
    if (there) break;
  }
#pragma unroll
  for (int i = 0; i < MOST; i++) {
    uint32_t part = i * 32 + lane;
    if (part >= s.parts.parts) v[i] = make_float2(0, 0);
    sum += v[i].x * (ring_count(s, part, head) / (float)s.n);
  }
  sum = warp_sum(sum);
#pragma unroll
  for (int i = 0; i < MOST; i++) {
    float count = ring_count(s, i * 32 + lane, head), apart = v[i].x - sum;
    if (count > 0) more += fmaf(count * apart, apart, v[i].y);
  }
  *all = make_float2(sum, warp_sum(more));
  return there;
}

INLINE Stats warp_stats(Stats s) {
  Stats all;
  all.count = warp_sum(s.count);
  float over = all.count > 0 ? __fdividef(1, all.count) : 0;
  all.mean = warp_sum(s.mean * (s.count * over));
  float apart = s.mean - all.mean;
  all.squares = warp_sum(s.count > 0 ? fmaf(s.count * apart, apart, s.squares) : 0);
  return all;
}

// What a part adds up to, of what its warps do.
INLINE float2 ring_part_sum(const float (*room)[3]) {
  int lane = threadIdx.x % 32;
  bool has = lane < ring_threads() / 32;
  Stats s = {0, 0, 0};
  if (has) s.count = room[lane][0], s.mean = room[lane][1], s.squares = room[lane][2];
  s = warp_stats(s);
  return make_float2(s.mean, s.squares);
}

INLINE void ring_collect(const RingShape &s, RingShared *shared, int in, uint32_t collector) {
  int lane = threadIdx.x % 32, polls = s.parts.polls;
  for (uint32_t lap = collector; lap < ring_laps(s); lap += RING_COLLECTORS) {
    uint64_t row = ring_team(s) + (uint64_t)lap * s.teams;
    uint32_t at = lap % RING_READY, parity = lap / RING_READY & 1;
    unsigned long long *posts = posts_of(ring_y(s, row));
    barrier_wait(&shared->summed[at], parity);
    float2 sums = ring_part_sum(shared->warps[at]);
    if (lane == 0) post(s.parts, posts, ring_rank(s), sums);
    bool there = ring_take(s, posts, ring_head(s, row, in), polls, &sums);
    polls = there ? s.parts.polls : 1; // where the others do not run, it is not waited for them again and again
    barrier_wait(&shared->taken[at], parity ^ 1);
    __syncwarp();
    if (lane == 0) {
      shared->sums[at] = sums, shared->there[at] = there;
      barrier_arrive_here(&shared->ready[at]);
      ring_tell(s.parts, posts, ring_rank(s), there ? PART_READ : PART_LEFT);
    }
  }
}

// ---- The others

// Hands what a part adds up to over to a collector: of a warp's threads.
INLINE void ring_hand_over(RingShared *shared, uint32_t lap, float a, float b, float c) {
  float *room = shared->warps[lap % RING_READY][threadIdx.x / 32];
  __syncwarp();
  if (threadIdx.x % 32) return;
  room[0] = a, room[1] = b, room[2] = c;
  barrier_arrive_here(&shared->summed[lap % RING_READY]);
}
INLINE void ring_hand_stats(RingShared *shared, uint32_t lap, Stats s) {
  s = warp_stats(s);
  ring_hand_over(shared, lap, s.count, s.mean, s.squares);
}

INLINE Vec slot_chunk(const uint4 *memory, Turn t, int i) {
  Vec v;
  v.v = memory[(t.slot * RING_EACH + i) * ring_threads() + threadIdx.x];
  return v;
}

INLINE void slot_leave(RingShared *shared, Turn t) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier_arrive_here(&shared->empty[t.slot]);
}

// each(chunk, first) for this thread's chunks of a part, in their order; those that do not fit the ring are left.
template <class Each> INLINE void ring_see(const RingShape &s, RingShared *shared, const uint4 *memory, const RingPart &a, Turn &t, Each each) {
  for (int k = 0; k < a.turns; k++, turn_on(t, 1, s.slots)) {
    barrier_wait(&shared->full[t.slot], t.parity);
#pragma unroll
    for (int i = 0; i < RING_EACH; i++) {
      int chunk = (k * RING_EACH + i) * ring_threads() + (int)threadIdx.x;
      if (chunk < (int)a.x.chunks) each(slot_chunk(memory, t, i), chunk);
    }
    if (k < a.again) {
      slot_leave(shared, t);
      if (s.bulk && threadIdx.x % 32 == 0) barrier_arrive_here(&shared->done[t.slot]); // nothing is to be stored of it
    }
  }
  turn_on(t, a.again, s.slots);
}

// each(chunk, its number) for those from number `front` on, those in the ring first, which changes the chunk or writes what becomes of it. All slots are left.
template <class Each>
INLINE void ring_give(const RingShape &s, RingShared *shared, uint4 *memory, const RingPart &a, Turn &t, int front, Each each) {
  turn_on(t, a.again, s.slots);
  for (int k = 0; k < a.turns; k++, turn_on(t, 1, s.slots)) {
    bool again = k >= a.turns - a.again;
    int turn = again ? a.turns - 1 - k : a.again + k;
    if (again) barrier_wait(&shared->full[t.slot], t.parity);
    Vec v[RING_EACH];
#pragma unroll
    for (int i = 0; i < RING_EACH; i++)
      if ((turn * RING_EACH + i) * ring_threads() + (int)threadIdx.x < (int)a.x.chunks) v[i] = slot_chunk(memory, t, i);
    if (!s.bulk) slot_leave(shared, t);
#pragma unroll
    for (int i = 0; i < RING_EACH; i++) {
      int chunk = (turn * RING_EACH + i) * ring_threads() + (int)threadIdx.x;
      if (chunk >= front && chunk < (int)a.x.chunks) {
        each(v[i], chunk);
        if (s.bulk) memory[(t.slot * RING_EACH + i) * ring_threads() + threadIdx.x] = v[i].v;
      }
    }
    if (s.bulk) {
      async_fence();
      __syncwarp();
      if (threadIdx.x % 32 == 0) barrier_arrive_here(&shared->done[t.slot]);
    }
  }
}

// ---- A kernel

// sum(row, lap, place) hands over what a part adds up to; put(row, lap, place) writes it.
template <class Sum, class Put> INLINE void ring_work(const RingShape &s, Sum sum, Put put) {
  Turn in_sum = {0, 0}, in_put = {0, 0};
  uint32_t team = ring_team(s), behind = (uint32_t)s.depth - 1, laps = ring_laps(s);
  for (uint32_t lap = 0; laps && lap < laps + behind; lap++) {
    if (lap < laps) sum(team + (uint64_t)lap * s.teams, lap, in_sum);
    if (lap >= behind) put(team + (uint64_t)(lap - behind) * s.teams, lap - behind, in_put);
  }
}

// Columns before this one of a row are where sums were posted.
INLINE int64_t ring_start(const RingShape &s, int head, int in) { return head + s.parts.front * (16 / in); }

// Of a part that was given up.
template <class Range> INLINE void ring_rescue(const RingShape &s, uint64_t row, uint32_t part, float2 sums, int in, Range range) {
  int head = ring_head(s, row, in);
  range(row, sums, part ? part_begin(s.parts, part, head, s.n) : ring_start(s, head, in), part_begin(s.parts, part + 1, head, s.n));
}

// range(row, sums, begin, end): the columns of rows that the teams left, by a warp. Warps have a row each; those of which parts were given up are left to the end, and
// all warps then share their parts.
template <class Range> INLINE void ring_last(const RingShape &s, RingShared *shared, int in, Range range) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  uint32_t enders = gridDim.x - s.teams * s.parts.parts, mine = blockIdx.x - s.teams * s.parts.parts;
  float2 sums;
  if (threadIdx.x == 0) shared->many = 0;
  __syncthreads();
  for (uint64_t row = mine + (uint64_t)warp * enders; row < s.parts.rows; row += warps * enders) {
    int head = ring_head(s, row, in), listed = RING_GIVEN_UP;
    unsigned long long *posts = posts_of(ring_y(s, row));
    bool left = false;
    for (uint32_t part = lane; part < s.parts.parts; part += 32) left |= part_ask(s.parts, posts, part) == PART_LEFT;
    left = __any_sync(~0u, left);
    if (left && lane == 0) listed = atomicAdd(&shared->many, 1);
    listed = __shfl_sync(~0u, listed, 0);
    if (left && listed < RING_GIVEN_UP) {
      if (lane == 0) shared->given_up[listed] = row;
      continue;
    }
    ring_take(s, posts, head, 0, &sums);
    for (uint32_t part = 0; left && part < s.parts.parts; part++)
      if (part_ask(s.parts, posts, part) == PART_LEFT) ring_rescue(s, row, part, sums, in, range);
    range(row, sums, 0, ring_start(s, head, in));
  }
  __syncthreads();
  for (int i = 0; i < min(shared->many, (int)RING_GIVEN_UP); i++) {
    uint64_t row = shared->given_up[i];
    int head = ring_head(s, row, in);
    unsigned long long *posts = posts_of(ring_y(s, row));
    ring_take(s, posts, head, 0, &sums);
    for (uint32_t part = warp; part < s.parts.parts; part += warps)
      if (part_ask(s.parts, posts, part) == PART_LEFT) ring_rescue(s, row, part, sums, in, range);
    __syncthreads();
    if (warp == 0) range(row, sums, 0, ring_start(s, head, in));
  }
}

INLINE void ring_begin(const RingShape &s, RingShared *shared) {
  int warps = ring_threads() / 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < s.slots; i++) barrier_init(&shared->full[i], 1), barrier_init(&shared->empty[i], warps), barrier_init(&shared->done[i], warps);
    for (int i = 0; i < RING_READY; i++)
      barrier_init(&shared->summed[i], warps), barrier_init(&shared->ready[i], 1), barrier_init(&shared->taken[i], warps + (s.bulk != 0));
    barrier_init_done();
  }
  __syncthreads();
}

INLINE bool ring_ends(const RingShape &s) { return blockIdx.x >= s.teams * s.parts.parts; }

// The warps beside those that work. False: this is not one of them.
INLINE bool ring_helps(const RingShape &s, RingShared *shared, uint4 *memory, int in) {
  int warp = (int)(threadIdx.x / 32) - ring_threads() / 32;
  if (warp < 0) return false;
  if (warp == 0) ring_load(s, shared, memory, in);
  else if (warp == 1) ring_store(s, shared, memory, in);
  else ring_collect(s, shared, in, (uint32_t)warp - 2);
  return true;
}

#endif
