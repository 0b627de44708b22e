// Rows of which all parts pass through the shared memory of blocks that stay: one block to an SM, and parts of all rows in their order dealt out to them. While a part
// waits for what the other parts of its row add up to, the parts after it are loaded and summed up, and those before it are written.
//
// Shared memory is cut into slots, which a part takes one or several of. One warp fills them (cp.async.bulk), some sum parts up as they come, some exchange sums with the row's
// other parts, some write parts as their row's sums come. Nothing of it is a barrier of the block.
//
// One part of a row, its last, is the one whose block comes last in the grid. The others post what they add up to at the start of the last part's output, and look for the row's sums at the start of
// their own, where the last part's block stores them. So a word has one reader, which overwrites it with results: nobody need be told that it was read. (Where all parts read all posts, looks at the
// same words by all SMs take longer the more rows are under way.)
//
// Blocks that do not run at the same time cannot wait for each other without end: a part that has looked in vain many times is left to the row's last. That one waits without end, but only
// for blocks that come before it.
//
// Loads under way are no more than the memory needs to be busy: beyond that each only makes the others wait, and with them the posts.
//
// How a row is cut follows from its length and start alone, and with it the order of every sum.
#ifndef SOL_KERNELS_STREAM_CUH
#define SOL_KERNELS_STREAM_CUH

#include "elementwise.cuh"
#include "hopper.cuh"
#include "parts.cuh"
#include "stream.h"

#define INLINE_METHOD __device__ __forceinline__

typedef struct StreamItem { // a part that is in the slots
  uint64_t summed, ready;
  float2 warps[STREAM_WARPS]; // what a warp's chunks add up to
  char *y;                    // of the part's first column
  int chunks, head;           // of the part; columns before its chunks
  int more;                   // the operation's
  float2 sums;                // of the row
  bool there;                 // they are
} StreamItem;

typedef struct StreamShared {
  uint64_t full[STREAM_SLOTS], empty[STREAM_SLOTS]; // empty: for all that write it, and the warp that exchanges sums where it is a part's first
  StreamItem item[STREAM_SLOTS];
} StreamShared;

typedef struct StreamPart {
  uint64_t row;
  uint32_t part;
  int64_t begin; // column
  Span x;
} StreamPart;

INLINE void stream_arrive(uint64_t *bar) { // a warp, once all its lanes are here
  __syncwarp();
  if (threadIdx.x % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

INLINE int stream_head(const StreamShape &s, uint64_t row, int in) {
  return (int)(-(uint32_t)((uintptr_t)s.x + (int64_t)row * s.x_stride) & 15) / in;
}
INLINE char *stream_y(const StreamShape &s, uint64_t row) { return (char *)s.y + (int64_t)row * s.y_stride; }
INLINE uint64_t stream_items(const StreamShape &s) { return s.parts.rows * s.parts.parts; }

// A part's first column. Parts begin on 16 bytes; head: columns of the row before the first of those.
INLINE int64_t stream_begin(const StreamShape &s, uint32_t part, int head, int in) {
  return part == 0 ? 0 : part == s.parts.parts ? s.n : head + (int64_t)((uint32_t)s.parts.length * part + min(part, s.longer)) * (128 / in);
}

INLINE StreamPart stream_part(const StreamShape &s, uint64_t item, int in) {
  StreamPart a;
  uint64_t part;
  split(item, s.parts.parts, &a.row, &part);
  a.part = (uint32_t)part;
  int head = stream_head(s, a.row, in);
  a.begin = stream_begin(s, a.part, head, in);
  a.x = span_of((const char *)s.x + (int64_t)a.row * s.x_stride + a.begin * in, stream_begin(s, a.part + 1, head, in) - a.begin, in);
  return a;
}

// ---- Sums of the other parts

// Where a part's output has words for other parts.
INLINE unsigned long long *stream_words(const StreamShape &s, uint64_t row, uint32_t part, int head, int in, int out) {
  return posts_of(stream_y(s, row) + stream_begin(s, part, head, in) * out);
}

// The part whose block comes last.
INLINE uint32_t stream_last(const StreamShape &s, const StreamPart &a, uint64_t item) {
  uint64_t first = item - a.part, last = first + s.parts.parts - 1, in_last = last - (last + 1) % gridDim.x;
  return (uint32_t)((in_last >= first && in_last <= last ? in_last : last) - first);
}

enum { STREAM_EACH = STREAM_PARTS / 32 }; // parts of a row that a lane has

// By the row's last part, number `own`, which adds up to `sums`: waits for the posts of all parts, those number lane, lane + 32 and so on in v.
INLINE void stream_posts(const StreamShape &s, const unsigned long long *words, uint32_t own, float2 sums, float2 *v) {
  bool got[STREAM_EACH], all = false;
#pragma unroll
  for (int i = 0; i < STREAM_EACH; i++) {
    uint32_t part = threadIdx.x % 32 + 32 * i;
    got[i] = part >= s.parts.parts || part == own, v[i] = part == own ? sums : make_float2(0, 0);
  }
  while (!all) {
    all = true;
#pragma unroll
    for (int i = 0; i < STREAM_EACH; i++)
      if (!got[i]) got[i] = post_get(s.parts, words, threadIdx.x % 32 + 32 * i, &v[i]);
#pragma unroll
    for (int i = 0; i < STREAM_EACH; i++) all = all && got[i];
  }
  __syncwarp();
}

// A part's answer is two words as a post has them. What was there before its first word is exchanged for is returned.
INLINE unsigned long long word_exchange(unsigned long long *word, unsigned long long v) {
  unsigned long long old;
  asm volatile("atom.relaxed.gpu.global.exch.b64 %0, [%1], %2;" : "=l"(old) : "l"(__cvta_generic_to_global(word)), "l"(v) : "memory");
  return old;
}

// By the row's last part: stores the row's sums for all others. Which of those that the lane serves were left, a bit each.
INLINE uint32_t stream_answer(const StreamShape &s, uint64_t row, uint32_t own, int head, int in, int out, float2 sums) {
  uint32_t left = 0;
#pragma unroll
  for (int i = 0; i < STREAM_EACH; i++) {
    uint32_t part = threadIdx.x % 32 + 32 * i;
    if (part >= s.parts.parts || part == own) continue;
    unsigned long long *words = stream_words(s, row, part, head, in, out);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(words + 1)), "l"((unsigned long long)__float_as_uint(sums.y) << 32 | s.parts.sign[1]) : "memory");
    unsigned long long old = word_exchange(words, (unsigned long long)__float_as_uint(sums.x) << 32 | s.parts.sign[0]);
    if (old == part_word(s.parts, PART_LEFT)) left |= 1u << i;
  }
  return left;
}

// By another part: waits for its answer. False: that has not come after so many looks, and the part is left.
INLINE bool stream_take(const StreamShape &s, unsigned long long *words, int polls, float2 *sums) {
  bool there = false;
  if (threadIdx.x % 32 == 0) {
    for (int look = 0; !there && look < polls; look++) there = post_get(s.parts, words, 0, sums);
    if (!there) {
      unsigned long long first = word_exchange(words, part_word(s.parts, PART_LEFT)), second = 0;
      there = (uint32_t)first == s.parts.sign[0]; // it has just come, and its second word will
      while (there && (uint32_t)second != s.parts.sign[1])
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(second) : "l"(__cvta_generic_to_global(words + 1)) : "memory");
      *sums = make_float2(__uint_as_float((uint32_t)(first >> 32)), __uint_as_float((uint32_t)(second >> 32)));
    }
  }
  sums->x = __shfl_sync(~0u, sums->x, 0), sums->y = __shfl_sync(~0u, sums->y, 0);
  return __shfl_sync(~0u, there, 0);
}

// By the row's last part: writes what was left.
template <class Op> INLINE void stream_rescue(const StreamShape &s, const Op &op, uint64_t row, int head, int in, float2 sums, uint32_t left) {
#pragma unroll 1
  for (uint32_t part = 0; part < s.parts.parts; part++) {
    if (!(__shfl_sync(~0u, left, part % 32) >> part / 32 & 1)) continue;
    op.range(row, sums, stream_begin(s, part, head, in), stream_begin(s, part + 1, head, in));
    __syncwarp();
  }
}

// ---- Slots

INLINE void stream_load(const void *from, int bytes, uint4 *to, uint64_t *full) { // by one thread
  barrier_expect(full, bytes);
  uint64_t once; // nothing is read again
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
  if (bytes)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(full)), "l"(once)
                 : "memory");
}

INLINE uint4 *slot_memory(const StreamShape &s, uint4 *memory, int slot) { return memory + slot * s.slot_chunks; }
INLINE char *item_room(const StreamShape &s, uint4 *memory, int at) { return (char *)slot_memory(s, memory, s.slots) + at * s.room_bytes; }

// Where a warp is in its walk over all parts of the block.
typedef struct StreamAt {
  int slot, item;
  uint32_t slot_parity, item_parity;
} StreamAt;
INLINE void stream_step(int &at, uint32_t &parity, int by, int all) {
  at += by;
  if (at >= all) at -= all, parity ^= 1;
}

INLINE int slot_chunks(const StreamShape &s, int chunks, int k) { return min(max(chunks - k * s.slot_chunks, 0), s.slot_chunks); }

// begin(place), slot(place, k) for each slot of the part, end(place): for every part of the block.
template <class Begin, class Slot, class End> INLINE void stream_walk(const StreamShape &s, Begin begin, Slot slot, End end) {
  StreamAt a = {0, 0, 0, 0};
  for (uint64_t i = blockIdx.x; i < stream_items(s); i += gridDim.x) {
    begin(a, i);
#pragma unroll 1
    for (int k = 0; k < s.of_part; k++) {
      slot(a, k);
      stream_step(a.slot, a.slot_parity, 1, s.slots);
    }
    end(a);
    stream_step(a.item, a.item_parity, 1, s.items);
  }
}

// ---- The warps

INLINE void stream_loads(const StreamShape &s, StreamShared *shared, uint4 *memory, int in, int out) { // one thread
  StreamPart a;
  int ahead = -s.flight; // the slot that must have arrived
  uint32_t parity = 0;
  stream_walk(
      s, [&](const StreamAt &, uint64_t i) { a = stream_part(s, i, in); },
      [&](const StreamAt &at, int k) {
        barrier_wait(&shared->empty[at.slot], at.slot_parity ^ 1);
        if (ahead >= 0) barrier_wait(&shared->full[ahead], parity);
        stream_step(ahead, parity, 1, s.slots);
        StreamItem &t = shared->item[at.item];
        if (k == 0) t.y = stream_y(s, a.row) + a.begin * out, t.chunks = (int)a.x.chunks, t.head = a.x.head;
        stream_load(a.x.body + (int64_t)k * s.slot_chunks * 16, slot_chunks(s, (int)a.x.chunks, k) * 16, slot_memory(s, memory, at.slot), &shared->full[at.slot]);
      },
      [](const StreamAt &) {});
}

template <class Op> INLINE void stream_sums(const StreamShape &s, const Op &op, StreamShared *shared, const uint4 *memory) {
  int thread = threadIdx.x;
  typename Op::Sum sum;
  stream_walk(
      s, [](const StreamAt &, uint64_t) {},
      [&](const StreamAt &at, int k) {
        barrier_wait(&shared->full[at.slot], at.slot_parity);
        int chunks = slot_chunks(s, shared->item[at.item].chunks, k);
        const uint4 *from = memory + at.slot * s.slot_chunks;
        if (k == 0) op.begin(sum, from, thread, chunks);
        op.sum(sum, from, thread, chunks);
      },
      [&](const StreamAt &at) {
        StreamItem &t = shared->item[at.item];
        op.end(sum, t, thread, &t.warps[thread / 32]);
        stream_arrive(&t.summed);
      });
}

template <class Op> INLINE void stream_puts(const StreamShape &s, const Op &op, StreamShared *shared, uint4 *memory) {
  int thread = threadIdx.x - STREAM_WORKERS;
  stream_walk(
      s, [&](const StreamAt &at, uint64_t) { barrier_wait(&shared->item[at.item].ready, at.item_parity); },
      [&](const StreamAt &at, int k) {
        const StreamItem &t = shared->item[at.item];
        int chunks = slot_chunks(s, t.chunks, k);
        if (t.there && chunks) op.put(t, slot_memory(s, memory, at.slot), k * s.slot_chunks, chunks, item_room(s, memory, at.item), thread, STREAM_WORKERS);
        stream_arrive(&shared->empty[at.slot]);
        if (k && thread < 32) stream_arrive(&shared->empty[at.slot]);
      },
      [](const StreamAt &) {});
}

// What a warp that exchanges sums does for a part.
template <class Op> INLINE void stream_exchange(const StreamShape &s, const Op &op, StreamShared *shared, uint4 *memory, const StreamAt &at, uint64_t i, int in, int &polls) {
  int lane = threadIdx.x % 32;
  StreamItem &t = shared->item[at.item];
  char *room = item_room(s, memory, at.item);
  StreamPart a = stream_part(s, i, in);
  barrier_wait(&shared->empty[at.slot], at.slot_parity ^ 1);       // with it the item's room is free
  int column = lane < a.x.edges ? (int)span_edge(&a.x, lane) : -1; // of a single element that this lane has
  float edge = column >= 0 ? op.load(a.x.at, column) : 0;
  int more = op.prepare(a, room), head = stream_head(s, a.row, in);
  uint32_t last = stream_last(s, a, i), left = 0;
  bool alone = s.parts.parts == 1, is_last = a.part == last, there = true;
  barrier_wait(&t.summed, at.item_parity);
  float2 sums = op.join(t, column >= 0, edge);
  if (!alone && is_last) {
    float2 v[STREAM_EACH];
    stream_posts(s, stream_words(s, a.row, last, head, in, op.out), last, sums, v);
    sums = op.collect(v, head);
    left = stream_answer(s, a.row, last, head, in, op.out, sums);
  } else if (!alone) {
    if (lane == 0) post(s.parts, stream_words(s, a.row, last, head, in, op.out), a.part, sums);
    there = stream_take(s, stream_words(s, a.row, a.part, head, in, op.out), polls, &sums);
    if (!there) polls = 1; // where the others do not run, it is not waited for them again and again
  }
  float2 by = op.finish(a, sums, there, room);
  if (lane == 0) t.sums = by, t.more = more, t.there = there;
  stream_arrive(&t.ready);
  __syncwarp();
  if (there && column >= 0) op.put_edge(t, room, column, edge);
  stream_arrive(&shared->empty[at.slot]);
  if (__any_sync(~0u, left)) {
    asm volatile("" : "+l"(i)); // rare: nothing is kept in registers for it
    uint64_t row = stream_part(s, i, in).row;
    stream_rescue(s, op, row, stream_head(s, row, in), in, sums, left);
  }
}

template <class Op> INLINE void stream_exchanges(const StreamShape &s, const Op &op, StreamShared *shared, uint4 *memory, int warp, int in) {
  int polls = STREAM_POLLS, turn = 0, warps = min((int)STREAM_EXCHANGES, s.items); // no warp is a whole round ahead of another
  StreamAt at = {0, 0, 0, 0};
#pragma unroll 1
  for (uint64_t i = blockIdx.x; i < stream_items(s); i += gridDim.x) {
    if (turn == warp) stream_exchange(s, op, shared, memory, at, i, in, polls);
    if (++turn == warps) turn = 0;
    stream_step(at.slot, at.slot_parity, s.of_part, s.slots);
    stream_step(at.item, at.item_parity, 1, s.items);
  }
}

// ---- A kernel

// op: what the operation computes. out: bytes of an element of y; load: an element; prepare: what a part needs beside its elements, into its room; Sum, begin, sum, end: what a
// thread's chunks add up to, a slot after the other, and a warp's; join: a part, of its warps and single elements; collect: a row, of its parts' posts; finish: what elements need of that; put, put_edge: writes
// chunks of a slot, an element; range: columns of a row, by a warp.
template <class Op> INLINE void stream(const StreamShape &s, const Op &op, StreamShared *shared, uint4 *memory, int in) {
  int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < s.slots; i++) barrier_init(&shared->full[i], 1), barrier_init(&shared->empty[i], STREAM_WARPS + 1);
    for (int i = 0; i < s.items; i++) barrier_init(&shared->item[i].summed, STREAM_WARPS), barrier_init(&shared->item[i].ready, 1);
    barrier_init_done();
  }
  __syncthreads();
  begin_kernel();
  if (warp < STREAM_WARPS) stream_sums(s, op, shared, memory);
  else if (warp < 2 * STREAM_WARPS) stream_puts(s, op, shared, memory);
  else if (warp < 2 * STREAM_WARPS + STREAM_EXCHANGES) stream_exchanges(s, op, shared, memory, warp - 2 * STREAM_WARPS, in);
  else if (threadIdx.x % 32 == 0) stream_loads(s, shared, memory, in, op.out);
}

#endif
