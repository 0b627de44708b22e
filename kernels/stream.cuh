// Rows of which all parts pass through the shared memory of blocks that stay: one block to an SM, and parts of all rows in their order dealt out to them. While a part
// waits for what the other parts of its row add up to, the parts after it are loaded and summed up, and those before it are written.
//
// Shared memory is cut into slots of a part each. A slot has a warp that fills it (cp.async.bulk), posts what the part adds up to and takes the posts of the row's other
// parts (parts.cuh). Some warps sum parts up as they come, others write them as their row's sums come. Nothing of it is a barrier of the block.
//
// Blocks that do not run at the same time cannot wait for each other: a part whose row's posts have not come after many looks is given up. A row's posts are at the
// start of its output, which the row's last warp writes, and so it does with parts that were given up. That warp is in the last of the row's blocks and waits without end, but only for
// blocks that come before its own in the grid.
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
  float warps[STREAM_WARPS][3]; // what a warp's chunks add up to, as the operation has it
  char *y;                      // of the part's first column
  int chunks, head, front;      // of the part; columns before its chunks; chunks that the row's last warp writes
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

INLINE float stream_count(const StreamShape &s, uint32_t part, int head) { // elements of a part
  return (float)(part_begin(s.parts, part + 1, head, s.n) - part_begin(s.parts, part, head, s.n));
}

// All posts of a row, by a warp: each(part, post) in the order of parts. False: not all have come within `polls` looks; 0: without end.
template <class Each> INLINE bool stream_posts(const StreamShape &s, const unsigned long long *posts, int polls, Each each) {
  enum { BATCH = 4 }; // that are asked for before the first has come
  uint32_t lane = threadIdx.x % 32, parts = s.parts.parts;
  for (uint32_t first = 0; first < parts; first += 32 * BATCH) {
    float2 v[BATCH];
    bool got[BATCH], all = false;
#pragma unroll
    for (int i = 0; i < BATCH; i++) got[i] = first + i * 32 + lane >= parts;
    for (int k = 0; !all && (!polls || k < polls); k++) {
      all = true;
#pragma unroll
      for (int i = 0; i < BATCH; i++)
        if (!got[i]) got[i] = post_get(s.parts, posts, first + i * 32 + lane, &v[i]);
#pragma unroll
      for (int i = 0; i < BATCH; i++) all = all && got[i];
      all = __all_sync(~0u, all);
    }
    if (!all) return false;
#pragma unroll
    for (int i = 0; i < BATCH; i++)
      if (first + i * 32 + lane < parts) each(first + i * 32 + lane, v[i]);
  }
  return true;
}

// without a fence, which would take as long as all writes under way: what was posted has come before, as it decides what is told.
INLINE void stream_tell(const PartShape &s, unsigned long long *posts, uint32_t part, int what) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(posts + 2 * s.parts + part)), "l"(part_word(s, what)) : "memory");
}

INLINE void stream_load(const StreamPart &a, uint4 *to, uint64_t *full) { // by one thread
  int bytes = (int)a.x.chunks * 16;
  barrier_expect(full, bytes);
  if (bytes)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(__cvta_generic_to_global(a.x.body)), "r"(bytes), "r"(shared_address(full))
                 : "memory");
}

INLINE uint4 *slot_memory(const StreamShape &s, uint4 *memory, int slot) { return memory + slot * (s.slot_bytes / 16); }
INLINE char *slot_room(const StreamShape &s, uint4 *memory, int slot) { return (char *)slot_memory(s, memory, slot) + s.slot_bytes - s.room_bytes; }

// ---- A slot's own warp

template <class Op> INLINE void stream_manage(const StreamShape &s, const Op &op, StreamShared *shared, uint4 *memory, int slot, int in) {
  StreamSlot &t = shared->slot[slot];
  int lane = threadIdx.x % 32, polls = s.parts.polls;
  bool alone = s.parts.parts == 1;
  uint32_t parity = 0;
  for (uint64_t i = blockIdx.x + (uint64_t)slot * gridDim.x; i < stream_items(s); i += (uint64_t)s.slots * gridDim.x, parity ^= 1) {
    StreamPart a = stream_part(s, i, in);
    int front = a.part ? 0 : s.parts.front;
    char *y = stream_y(s, a.row);
    unsigned long long *posts = posts_of(y);
    barrier_wait(&t.empty, parity ^ 1);
    if (lane == 0) {
      t.y = y + a.begin * op.out, t.chunks = (int)a.x.chunks, t.head = a.x.head, t.front = front;
      stream_load(a, slot_memory(s, memory, slot), &t.full);
    }
    bool has_edge = lane < a.x.edges;
    float edge = has_edge ? op.load(a.x.at, span_edge(&a.x, lane)) : 0;
    int more = op.prepare(a, slot_room(s, memory, slot));
    barrier_wait(&t.summed, parity);
    float2 sums = op.join(t.warps, has_edge, edge);
    bool there = true;
    if (!alone) {
      if (lane == 0) post(s.parts, posts, a.part, sums);
      there = op.take(posts, stream_head(s, a.row, in), polls, &sums);
      polls = there ? s.parts.polls : 1; // where the others do not run, it is not waited for them again and again
    }
    sums = op.finish(a, sums, alone);
    if (lane == 0) t.sums = sums, t.more = more, t.there = there;
    stream_arrive(&t.ready);
    if (!alone && lane == 0) stream_tell(s.parts, posts, a.part, there ? PART_READ : PART_LEFT);
    if (there && has_edge && (!front || lane >= a.x.head)) op.put_edge(t, slot_room(s, memory, slot), (int)span_edge(&a.x, lane), edge);
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

// ---- The warp that ends rows

// Whether this part is in the last of the row's blocks, and the last of that block.
INLINE bool stream_ends(const StreamShape &s, const StreamPart &a, uint64_t item) {
  uint64_t first = item - a.part, last = first + s.parts.parts - 1, in_last = last - (last + 1) % gridDim.x;
  return item == (in_last >= first && in_last <= last ? in_last : last);
}

template <class Op> INLINE void stream_end_row(const StreamShape &s, const Op &op, uint64_t row, int in) {
  int head = stream_head(s, row, in);
  unsigned long long *posts = posts_of(stream_y(s, row));
  bool left = false;
  float2 sums;
  for (uint32_t part = threadIdx.x % 32; part < s.parts.parts; part += 32) left |= part_ask(s.parts, posts, part) == PART_LEFT;
  left = __any_sync(~0u, left);
  op.take(posts, head, 0, &sums);
  int64_t start = head + s.parts.front * (16 / in);
#pragma unroll 1
  for (uint32_t part = left ? 0 : s.parts.parts; part <= s.parts.parts; part++) { // then the row's start
    bool last = part == s.parts.parts;
    if (!last && part_ask(s.parts, posts, part) != PART_LEFT) continue;
    __syncwarp();
    op.range(row, sums, last ? 0 : part ? part_begin(s.parts, part, head, s.n) : start, last ? start : part_begin(s.parts, part + 1, head, s.n));
  }
}

template <class Op> INLINE void stream_end(const StreamShape &s, const Op &op, int in) {
  if (s.parts.parts == 1) return;
  for (uint64_t i = blockIdx.x; i < stream_items(s); i += gridDim.x) {
    StreamPart a = stream_part(s, i, in);
    if (stream_ends(s, a, i)) stream_end_row(s, op, a.row, in);
  }
}

// ---- A kernel

// op: what the operation computes. load: an element; prepare: what a part needs beside its elements, into the slot's room; sum: what a thread's chunks add up to, of a warp;
// join: of a part's warps and single elements; take: of a row's posts; finish: what elements need of it; put, put_edge: writes chunks, an element; range: columns of a row, by a warp.
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
      op.sum(t, slot_memory(s, memory, slot), (int)threadIdx.x, t.warps[warp]);
      stream_arrive(&t.summed);
    });
  else if (warp < 2 * STREAM_WARPS)
    stream_slots(s, [&](int slot, uint32_t parity) {
      StreamSlot &t = shared->slot[slot];
      barrier_wait(&t.ready, parity);
      if (t.there) op.put(t, slot_memory(s, memory, slot), slot_room(s, memory, slot), (int)threadIdx.x - 32 * STREAM_WARPS);
      stream_arrive(&t.empty);
    });
  else if (warp == 2 * STREAM_WARPS) stream_end(s, op, in);
  else stream_manage(s, op, shared, memory, warp - 2 * STREAM_WARPS - 1, in);
}

#endif
