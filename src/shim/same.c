// Launches that are counted and turn out to be equal, in every count, to an earlier one of the same kernel: an audit of all
// launches (SOL_SHIM_ALL) names that one, instead of describing and timing a launch anew, which takes longer than a small
// launch itself.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/shim.h"

enum {
  KEPT = 4,            // of a kernel: programs swap buffers from launch to launch
  MOST_KERNELS = 256,  // of which launches are kept
  MOST_BYTES = 1 << 20 // of a launch that is
};

typedef struct Kept {
  uint64_t key; // 0: unused
  dim3 grid, block, cluster;
  size_t shared;
  bool cooperative, graph;
  double seconds;
  SolEmuResult result; // its arrays are in `memory`
  void *memory;
} Kept;

struct ShimSame {
  struct ShimSame *next;
  const ShimKernel *kernel;
  Kept kept[KEPT];
  uint32_t turn; // which is replaced next
};

static bool dims_equal(dim3 a, dim3 b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
}

static bool bytes_equal(const void *a, const void *b, size_t bytes) {
  return !bytes || memcmp(a, b, bytes) == 0;
}

static size_t insts_bytes(const SolEmuResult *r) {
  return r->inst_count * sizeof *r->insts;
}
static size_t touches_bytes(const SolEmuResult *r) {
  return r->touch_count * sizeof *r->touches;
}
static size_t ends_bytes(const SolEmuResult *r) {
  return r->trace.warps * sizeof *r->trace.ends;
}
static size_t events_bytes(const SolEmuResult *r) {
  return r->trace.warps ? r->trace.ends[r->trace.warps - 1] * sizeof *r->trace.events : 0;
}

// Bytes between fields may differ where the fields do not: such a launch is described once more.
static bool traces_equal(const SolEmuResult *a, const SolEmuResult *b) {
  const SolEmuTrace *s = &a->trace, *t = &b->trace;
  return s->warps == t->warps && s->warps_per_block == t->warps_per_block && s->tokens == t->tokens &&
         s->block == t->block && s->cut == t->cut && bytes_equal(s->ends, t->ends, ends_bytes(a)) &&
         bytes_equal(s->events, t->events, events_bytes(a));
}

static bool results_equal(const SolEmuResult *a, const SolEmuResult *b) {
  return a->end == b->end && a->inst_count == b->inst_count && a->touch_count == b->touch_count &&
         a->blocks == b->blocks && a->threads == b->threads && a->blocks_in_grid == b->blocks_in_grid &&
         a->left_dirty == b->left_dirty && a->dirty_limit == b->dirty_limit &&
         a->earlier_read == b->earlier_read && bytes_equal(&a->earlier, &b->earlier, sizeof a->earlier) &&
         bytes_equal(&a->flight, &b->flight, sizeof a->flight) &&
         bytes_equal(&a->chain, &b->chain, sizeof a->chain) &&
         bytes_equal(&a->balance, &b->balance, sizeof a->balance) &&
         bytes_equal(a->insts, b->insts, insts_bytes(a)) &&
         bytes_equal(a->touches, b->touches, touches_bytes(a)) && traces_equal(a, b);
}

static bool is_same(const Kept *k, const ShimKernelWork *w, const SolEmuResult *r) {
  return k->key && dims_equal(k->grid, w->grid) && dims_equal(k->block, w->block) &&
         dims_equal(k->cluster, w->cluster) && k->shared == w->shared && k->cooperative == w->cooperative &&
         k->graph == shim.streams.in_graph && results_equal(&k->result, r);
}

static ShimSame *same_of(const ShimKernel *kernel) {
  uint32_t count = 0;
  for (ShimSame *s = shim.watch.sames; s; s = s->next, count++)
    if (s->kernel == kernel) return s;
  ShimSame *s = count < MOST_KERNELS ? calloc(1, sizeof *s) : NULL;
  if (!s) return NULL;
  *s = (ShimSame){.next = shim.watch.sames, .kernel = kernel};
  return shim.watch.sames = s;
}

ShimAgain shim_same_find(const ShimKernelWork *w, const SolEmuResult *result) {
  ShimSame *s = result->finding_count ? NULL : same_of(w->kernel);
  for (uint32_t i = 0; s && i < KEPT; i++)
    if (is_same(&s->kept[i], w, result))
      return (ShimAgain){.key = s->kept[i].key, .seconds = s->kept[i].seconds, .counted = true};
  return (ShimAgain){0};
}

// False: it is not kept.
static bool copy(Kept *to, const SolEmuResult *r) {
  size_t sizes[] = {insts_bytes(r), touches_bytes(r), events_bytes(r), ends_bytes(r)}, at = 0;
  size_t total = sizes[0] + sizes[1] + sizes[2] + sizes[3];
  free(to->memory);
  uint8_t *memory = total <= MOST_BYTES ? malloc(total + 1) : NULL;
  to->memory = memory;
  if (!memory) return false;
  const void *from[] = {r->insts, r->touches, r->trace.events, r->trace.ends};
  void *part[4];
  for (int i = 0; i < 4; at += sizes[i++]) {
    part[i] = memory + at;
    if (sizes[i]) memcpy(part[i], from[i], sizes[i]);
  }
  to->result = *r;
  to->result.insts = part[0];
  to->result.touches = part[1];
  to->result.trace.events = part[2];
  to->result.trace.ends = part[3];
  return true;
}

uint64_t shim_same_keep(const ShimKernelWork *w, const SolEmuResult *result, double seconds) {
  ShimSame *s = result->finding_count ? NULL : same_of(w->kernel);
  if (!s) return 0;
  Kept *k = &s->kept[s->turn++ % KEPT];
  uint64_t key = k->key ? k->key : shim_repeat_key();
  *k = (Kept){.memory = k->memory,
              .grid = w->grid,
              .block = w->block,
              .cluster = w->cluster,
              .shared = w->shared,
              .cooperative = w->cooperative,
              .graph = shim.streams.in_graph,
              .seconds = seconds};
  if (!copy(k, result)) return 0;
  return k->key = key;
}
