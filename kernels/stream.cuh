// Rows of which all parts pass through the shared memory of blocks that stay: one block to an SM, and parts of all rows in their order dealt out to them. While a part
// waits for what the other parts of its row add up to, the parts after it are loaded and summed up, and those before it are written.
//
// Shared memory is cut into slots of a part each. A slot has a warp that fills it (cp.async.bulk) and exchanges sums with the row's other parts. Some warps sum parts up as
// they come, others write them as their row's sums come. Nothing of it is a barrier of the block.
//
// A part posts what it adds up to at the start of its own output. One of the row's parts, its collector, takes all posts and puts what the row adds up to beside each: so a word has one
// reader, and a part may overwrite its words as soon as it has its answer.
//
// Blocks that do not run at the same time cannot wait for each other without end: a part that has looked in vain many times is left to the row's collector. That one waits without end, but
// it is in the last of the row's blocks, and the others come before it in the grid.
//
// How a row is cut follows from its length and start alone, and with it the order of every sum.
#ifndef SOL_KERNELS_STREAM_CUH
#define SOL_KERNELS_STREAM_CUH

#include "elementwise.cuh"
#include "hopper.cuh"
#include "parts.cuh"
#include "stream.h"

#define INLINE_METHOD __device__ __forceinline__

typedef struct StreamSlot {
  uint64_t full, summed, ready, empty;
  float2 warps[STREAM_WARPS];   // what a warp's chunks add up to
  char *y;                      // of the part's first column
  int chunks, head;             // of the part; columns before its chunks
  int more;                     // the operation's
  float2 sums;                  // of the row
  bool there;                   // they are
} StreamSlot;

typedef struct StreamShared {
  StreamSlot slot[STREAM_SLOTS];
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

INLINE StreamPart stream_part(const StreamShape &s, uint64_t item, int in) {
  StreamPart a;
  uint64_t part;
  split(item, s.parts.parts, &a.row, &part);
  a.part = (uint32_t)part;
  int head = stream_head(s, a.row, in);
  a.begin = part_begin(s.parts, a.part, head, s.n);
  a.x = span_of((const char *)s.x + (int64_t)a.row * s.x_stride + a.begin * in, part_begin(s.parts, a.part + 1, head, s.n) - a.begin, in);
  return a;
}

INLINE float stream_count(const StreamShape &s, uint32_t part, int head) { // elements of a part, of several
  return part + 1 == s.parts.parts ? (float)(s.n - head - part * s.parts.length) : (float)(int)(s.parts.length + (part ? 0 : head));
}

// Words of a part: its post, then its answer, each of two words that carry the launch's sign (parts.cuh).
INLINE unsigned long long *stream_words(const StreamShape &s, uint64_t row, uint32_t part, int head, int out) {
  return posts_of(stream_y(s, row) + part_begin(s.parts, part, head, s.n) * out);
}
enum { STREAM_POST, STREAM_ANSWER };

// By a collector's warp: each(part, post) for all parts of a row, in their order.
template <class Each> INLINE void stream_posts(const StreamShape &s, uint64_t row, int head, int out, Each each) {
  enum { BATCH = 3 }; // that are asked for before the first has come
  uint32_t lane = threadIdx.x % 32, parts = s.parts.parts;
#pragma unroll 1
  for (uint32_t first = lane; first < parts; first += 32 * BATCH) {
    float2 v[BATCH];
    bool got[BATCH], all = false;
#pragma unroll
    for (int i = 0; i < BATCH; i++) got[i] = first + i * 32 >= parts;
    while (!all) {
#pragma unroll
      for (int i = 0; i < BATCH; i++)
        if (!got[i]) got[i] = post_get(s.parts, stream_words(s, row, first + i * 32, head, out), STREAM_POST, &v[i]);
      all = true;
#pragma unroll
      for (int i = 0; i < BATCH; i++) all = all && got[i];
    }
#pragma unroll
    for (int i = 0; i < BATCH; i++)
      if (first + i * 32 < parts) each(first + i * 32, v[i]);
  }
  __syncwarp();
}

INLINE unsigned long long stream_left(const PartShape &s) { return (unsigned long long)s.sign[1] << 32 | (s.sign[0] ^ 1); }

// The answer, by a part's warp. False: it has not come after `polls` looks, and the part is left to the collector.
INLINE bool stream_answer(const StreamShape &s, unsigned long long *words, int polls, float2 *sums) {
  unsigned long long seen, old;
  for (int i = 0; !__all_sync(~0u, post_get(s.parts, words, STREAM_ANSWER, sums)); i++) {
    if (i != polls) continue;
    if (threadIdx.x % 32 == 0) {
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(__cvta_generic_to_global(words + 2 * STREAM_ANSWER)) : "memory");
      bool comes = (uint32_t)seen == s.parts.sign[0]; // the other word will
      old = comes ? ~seen : atomicCAS(words + 2 * STREAM_ANSWER, seen, stream_left(s.parts));
    }
    if (__shfl_sync(~0u, threadIdx.x % 32 == 0 && old == seen, 0)) return false;
  }
  return true;
}

// Answers a part, by one thread. True: it was left.
INLINE bool stream_reply(const StreamShape &s, unsigned long long *words, float2 sums) {
  words += 2 * STREAM_ANSWER;
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(words + 1)), "l"((unsigned long long)__float_as_uint(sums.y) << 32 | s.parts.sign[1]) : "memory");
  return atomicExch(words, (unsigned long long)__float_as_uint(sums.x) << 32 | s.parts.sign[0]) == stream_left(s.parts);
}

// Answers the row's other parts, and does what was left.
template <class Op> INLINE void stream_replies(const StreamShape &s, const Op &op, uint64_t row, uint32_t own, int head, float2 sums) {
  uint32_t lane = threadIdx.x % 32;
#pragma unroll 1
  for (uint32_t first = 0; first < s.parts.parts; first += 32) {
    uint32_t part = first + lane;
    bool other = part < s.parts.parts && part != own;
    unsigned left = __ballot_sync(~0u, other && stream_reply(s, stream_words(s, row, part, head, op.out), sums));
#pragma unroll 1
    for (; left; left &= left - 1) {
      part = first + __ffs(left) - 1;
      op.range(row, sums, part_begin(s.parts, part, head, s.n), part_begin(s.parts, part + 1, head, s.n));
      __syncwarp();
    }
  }
}

// Whether this part collects: it is in the last of the row's blocks, and the last of that block.
INLINE bool stream_collects(const StreamShape &s, const StreamPart &a, uint64_t item) {
  uint64_t first = item - a.part, last = first + s.parts.parts - 1, in_last = last - (last + 1) % gridDim.x;
  return item == (in_last >= first && in_last <= last ? in_last : last);
}

INLINE void stream_load(const StreamPart &a, uint4 *to, uint64_t *full) { // by one thread
  int bytes = (int)a.x.chunks * 16;
  barrier_expect(full, bytes);
  uint64_t once; // nothing is read again
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
  if (bytes)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
                 "l"(__cvta_generic_to_global(a.x.body)), "r"(bytes), "r"(shared_address(full)), "l"(once)
                 : "memory");
}

INLINE uint4 *slot_memory(const StreamShape &s, uint4 *memory, int slot) { return memory + slot * (s.slot_bytes / 16); }
INLINE char *slot_room(const StreamShape &s, uint4 *memory, int slot) { return (char *)slot_memory(s, memory, slot) + s.slot_bytes - s.room_bytes; }

// ---- A slot's own warp

// The sums of a part's row. False: they have not come, and the part is left to the row's collector.
template <class Op> INLINE bool stream_exchange(const StreamShape &s, const Op &op, const StreamPart &a, bool collects, int head, int &polls, float2 *sums) {
  unsigned long long *words = stream_words(s, a.row, a.part, head, op.out);
  if (threadIdx.x % 32 == 0) post(s.parts, words, STREAM_POST, *sums);
  if (collects) *sums = op.collect(a.row, head);
  else if (!stream_answer(s, words, polls, sums)) polls = 1; // where the others do not run, it is not waited for them again and again
  else return true;
  return collects;
}

template <class Op> INLINE void stream_manage(const StreamShape &s, const Op &op, StreamShared *shared, uint4 *memory, int slot, int in) {
  StreamSlot &t = shared->slot[slot];
  int lane = threadIdx.x % 32, polls = STREAM_POLLS;
  uint32_t parity = 0;
#pragma unroll 1
  for (uint64_t i = blockIdx.x + (uint64_t)slot * gridDim.x; i < stream_items(s); i += (uint64_t)s.slots * gridDim.x, parity ^= 1) {
    StreamPart a = stream_part(s, i, in);
    barrier_wait(&t.empty, parity ^ 1);
    if (lane == 0) {
      t.y = stream_y(s, a.row) + a.begin * op.out, t.chunks = (int)a.x.chunks, t.head = a.x.head;
      stream_load(a, slot_memory(s, memory, slot), &t.full);
    }
    int column = lane < a.x.edges ? (int)span_edge(&a.x, lane) : -1; // of a single element that this lane has
    float edge = column >= 0 ? op.load(a.x.at, column) : 0;
    int more = op.prepare(a, slot_room(s, memory, slot));
    barrier_wait(&t.summed, parity);
    asm volatile("" : "+l"(i)); // it is cheaper to work the part out again than to have it in registers meanwhile
    a = stream_part(s, i, in);
    float2 sums = op.join(t, column >= 0, edge);
    int head = stream_head(s, a.row, in);
    bool alone = s.parts.parts == 1, collects = !alone && stream_collects(s, a, i);
    bool there = alone || stream_exchange(s, op, a, collects, head, polls, &sums);
    float2 by = op.finish(a, sums, there);
    if (lane == 0) t.sums = by, t.more = more, t.there = there;
    stream_arrive(&t.ready);
    if (there && column >= 0) op.put_edge(t, slot_room(s, memory, slot), column, edge);
    if (collects) stream_replies(s, op, a.row, a.part, head, sums);
  }
}

// ---- The warps that sum up, and those that write

template <class Each> INLINE void stream_slots(const StreamShape &s, Each each) {
  uint32_t parity = 0;
  int slot = 0;
  for (uint64_t i = blockIdx.x; i < stream_items(s); i += gridDim.x) {
    each(slot, parity);
    if (++slot == s.slots) slot = 0, parity ^= 1;
  }
}

// ---- A kernel

// op: what the operation computes. out: bytes of an element of y; load: an element; prepare: what a part needs beside its elements, into the slot's room; sum: what a
// warp's chunks add up to; join: a part, of its warps and single elements; collect: a row, of its parts' posts; finish: what elements need of that; put, put_edge: writes chunks, an
// element; range: columns of a row, by a warp.
template <class Op> INLINE void stream(const StreamShape &s, const Op &op, StreamShared *shared, uint4 *memory, int in) {
  int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < s.slots; i++) {
      StreamSlot &t = shared->slot[i];
      barrier_init(&t.full, 1), barrier_init(&t.summed, STREAM_WARPS), barrier_init(&t.ready, 1), barrier_init(&t.empty, STREAM_WARPS);
    }
    barrier_init_done();
  }
  __syncthreads();
  begin_kernel();
  if (warp < STREAM_WARPS)
    stream_slots(s, [&](int slot, uint32_t parity) {
      StreamSlot &t = shared->slot[slot];
      barrier_wait(&t.full, parity);
      op.sum(t, slot_memory(s, memory, slot), (int)threadIdx.x, &t.warps[warp]);
      stream_arrive(&t.summed);
    });
  else if (warp < 2 * STREAM_WARPS)
    stream_slots(s, [&](int slot, uint32_t parity) {
      StreamSlot &t = shared->slot[slot];
      barrier_wait(&t.ready, parity);
      if (t.there) op.put(t, slot_memory(s, memory, slot), slot_room(s, memory, slot), (int)threadIdx.x - 32 * STREAM_WARPS);
      stream_arrive(&t.empty);
    });
  else stream_manage(s, op, shared, memory, warp - 2 * STREAM_WARPS, in);
}

#endif
