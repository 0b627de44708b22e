// Access patterns of memory instructions: the addresses of their lanes, the steps between a warp's executions,
// and the values of loads.
#include "emu/watch/observe.h"

#include "base/heap.h"
#include "emu/core/trace.h"

// ---- the pattern of one execution ----

// The difference that most neighbouring active lanes have, where three quarters of them do.
static bool row_stride(const int64_t *delta, uint32_t mask, int64_t *stride) {
  uint32_t pairs = mask & mask >> 1, count = emu_popc(pairs), votes = 0, times = 0;
  for (uint32_t left = pairs; left; left &= left - 1) {
    int l = emu_first(left);
    int64_t d = delta[l + 1] - delta[l];
    if (!votes) *stride = d;
    votes = *stride == d ? votes + 1 : votes - 1;
  }
  for (uint32_t left = pairs; left; left &= left - 1) {
    int l = emu_first(left);
    times += delta[l + 1] - delta[l] == *stride;
  }
  return count && times * 4 >= count * 3;
}

// delta: bytes from the first active lane.
static EmuLayoutKind layout_kind(const int64_t *delta, uint32_t mask, int64_t *stride) {
  int first = emu_first(mask);
  uint32_t rest = mask & (mask - 1);
  *stride = 0;
  if (!rest) return EMU_LAYOUT_SINGLE;
  int second = emu_first(rest), gap = second - first;
  int64_t s = delta[second] / gap;
  bool constant = delta[second] % gap == 0;
  for (; constant && rest; rest &= rest - 1)
    constant = delta[emu_first(rest)] == s * (emu_first(rest) - first);
  if (constant) {
    *stride = s;
    return s ? EMU_LAYOUT_STRIDED : EMU_LAYOUT_UNIFORM;
  }
  return row_stride(delta, mask, stride) ? EMU_LAYOUT_ROWS : EMU_LAYOUT_SCATTERED;
}

static EmuLayout look(const int64_t *delta, uint32_t mask, uint32_t bytes) {
  int64_t stride, width = bytes;
  int first = emu_first(mask);
  EmuLayout now = {.kind = (uint8_t)layout_kind(delta, mask, &stride)};
  now.contiguous = now.kind == EMU_LAYOUT_STRIDED && (stride == width || stride == -width);
  // Lane 0, or 31 where they go down.
  if (now.contiguous) now.start = stride * (stride > 0 ? -first : EMU_LANES - 1 - first);
  now.stride = stride;
  return now;
}

// ---- what is summed ----

static EmuSite *site_of(const EmuCtx *x, const EmuInst *i) {
  uint32_t site = x->launch->statics->site[i->index];
  return site == EMU_NO_SITE ? NULL : &emu_worker(x)->sites[site];
}

static void add_execution(EmuSite *g, const EmuLayout *now, uint64_t first, bool shared) {
  SolEmuPattern *p = &g->sum;
  if (now->kind == EMU_LAYOUT_SINGLE) return;
  p->seen++;
  switch (now->kind) {
  case EMU_LAYOUT_UNIFORM: p->uniform++; return;
  case EMU_LAYOUT_SCATTERED: p->scattered++; return;
  case EMU_LAYOUT_ROWS: p->rows++; break;
  default: break;
  }
  p->strided++;
  emu_tally_add(&g->strides, now->stride);
  if (!now->contiguous) return;
  p->contiguous++;
  if (!shared && (first + (uint64_t)now->start) % SOL_SECTOR_BYTES) p->misaligned++;
}

// Its first lane's address the last time is kept with the lane's number in its low bits.
static void add_step(EmuCtx *x, EmuSite *g, uint64_t first, uint32_t mask) {
  uint32_t number = (uint32_t)(g - emu_worker(x)->sites);
  if (number >= EMU_STEP_SITES || !x->block->steps) return;
  uint64_t *was = &x->block->steps[(size_t)x->warp->index * emu_step_sites(x->launch) + number];
  uint64_t now = (first + 1) << 5 | (uint64_t)emu_first(mask);
  if (*was && (*was & 31) == (now & 31)) {
    g->sum.steps++;
    emu_tally_add(&g->steps, (int64_t)(now - *was) / 32);
  }
  *was = now;
}

// Whether the last request had to go beyond L1.
static EmuReach reach_of(EmuCtx *x, const EmuInst *i, EmuSite *g) {
  uint64_t before = g->to_l2;
  g->to_l2 = emu_worker(x)->l1_counts[i->index].to_l2;
  return g->to_l2 != before ? EMU_REACH_FAR : EMU_REACH_L1;
}

// Whether a lane's shared memory is another block's.
static bool of_others(const EmuCtx *x, const EmuAccess *acc) {
  for (uint32_t left = acc->shared; left && x->block->unit->count > 1; left &= left - 1)
    if ((uintptr_t)acc->host[emu_first(left)] - (uintptr_t)x->block->shared >= x->block->shared_bytes)
      return true;
  return false;
}

static void add_allocation(EmuSite *g, const EmuAlloc *a) {
  if (a == g->alloc || !a) return;
  g->alloc = a;
  SolEmuPattern *p = &g->sum;
  if (p->allocation && p->allocation != a->base) p->several = true;
  if (!p->allocation || a->base < p->allocation) p->allocation = a->base;
}

// ---- an example ----

bool sol_emu_example_better(const SolEmuExample *a, const SolEmuExample *b) {
  if (!a->mask || !b->mask) return a->mask != 0 && !b->mask;
  return a->sectors > b->sectors || (a->sectors == b->sectors && a->block < b->block);
}

static bool wants_example(const EmuCtx *x, const EmuSite *g, uint32_t mask, uint32_t sectors) {
  SolEmuExample now = {.block = x->block->id, .mask = mask, .sectors = sectors};
  return sol_emu_example_better(&now, &g->sum.example);
}

// delta: bytes from `first`, the first active lane's address.
static void keep_example(const EmuCtx *x, EmuSite *g, const int64_t *delta, uint32_t mask, uint64_t first,
                         uint32_t sectors) {
  SolEmuExample *e = &g->sum.example;
  int64_t low = 0;
  *e = (SolEmuExample){.block = x->block->id, .sectors = sectors};
  for (uint32_t left = mask; left; left &= left - 1)
    if (delta[emu_first(left)] < low) low = delta[emu_first(left)];
  low -= (int64_t)((first + (uint64_t)low) % SOL_LINE_BYTES);
  for (uint32_t left = mask; left; left &= left - 1) {
    uint64_t offset = (uint64_t)delta[emu_first(left)] - (uint64_t)low;
    if (offset > UINT32_MAX) continue;
    e->lane[emu_first(left)] = (uint32_t)offset;
    e->mask |= 1u << emu_first(left);
  }
}

// A lock is what a warp took by compare-and-swap, and writes again, at `at`: how long it had it.
static void release(EmuCtx *x, uint64_t at) {
  EmuWarp *w = x->warp;
  if (!w->lock || at != w->lock) return;
  uint64_t now = emu_path_weight(x->block, &x->block->paths[w->index]);
  emu_worker(x)->sites[w->lock_site].sum.held += (now - w->locked) / EMU_WAIT * w->lock_lanes;
  w->lock = 0;
}

static uint32_t bin_of(uint64_t number) {
  return (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 54);
}
_Static_assert(EMU_BINS == 1 << 10, "bin_of gives ten bits");

// Two slices of L2 share a run of memory on which atomics are serialised: each has every other half of `bytes` of it. Eight slices have the
// four runs of a page; which eight is as chance has it (bench/probe_atomics.cu, red, apart: on H200s lines 0, 1, 4 and 5 of
// 1024 bytes take turns; 32 lines take an eighth of one's time, 64 a tenth). A bin is one half of a run, of pages alike by their hash.
enum { HALVES = 2, RUNS = 4, PAGE_BINS = HALVES * RUNS };

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 7) * UINT64_C(0xff51afd7ed558ccd);
  x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
  return x ^ x >> 29;
}

static uint32_t queue_bin(uint64_t address, uint64_t bytes) {
  uint64_t run = address / (HALVES * bytes), half = address / (bytes / HALVES) % HALVES;
  return (uint32_t)(mix(run / RUNS) % (EMU_BINS / PAGE_BINS) * PAGE_BINS + run % RUNS * HALVES + half);
}

// Which slice has the bin: one of some ways to deal them out, none of which is the GPU's own.
static uint32_t slice_of(uint32_t bin, uint32_t deal, uint32_t slices) {
  enum { APART = 5 };
  uint64_t first = mix((uint64_t)bin / PAGE_BINS * EMU_DEALS + deal + 1);
  return (uint32_t)((first % slices + bin / HALVES % RUNS * APART + bin % HALVES * (slices / HALVES)) %
                    slices);
}

static bool make_bins(EmuSite *g) {
  if (g->bins) return true;
  g->bins = sol_heap_alloc(sizeof *g->bins * EMU_BINS);
  if (g->bins) memset(g->bins, 0, sizeof *g->bins * EMU_BINS);
  return g->bins;
}

// Stores to adjacent addresses whose places the code does not show: a stride that the kernel is given, say.
static void add_store(EmuCtx *x, EmuSite *g, uint64_t first, uint32_t bytes) {
  enum { BESIDE = 32 };
  EmuWarp *w = x->warp;
  const EmuPath *path = x->block->paths ? &x->block->paths[w->index] : NULL;
  if (!path) return;
  uint64_t waits = path->l1_waits + path->far_waits + path->other_waits + path->barriers,
           up = first - w->stored_at, down = w->stored_at - first;
  bool beside = (up >= w->stored_bytes && up < BESIDE) || (down >= bytes && down < BESIDE);
  g->sum.joins += beside && waits == w->stored_waits;
  w->stored_at = first, w->stored_bytes = bytes, w->stored_waits = waits;
}

void emu_observe_shape(EmuCtx *x, const EmuInst *i, EmuShape *s, uint64_t first, SolMemOp op) {
  EmuSite *g = site_of(x, i);
  bool shared = i->space == PTX_SPACE_SHARED;
  if (!g) return;
  if (!s->observed) {
    int64_t delta[EMU_LANES];
    for (int l = 0; l < EMU_LANES; l++) delta[l] = s->delta[l];
    g->sum.width = (uint32_t)i->bytes * i->vec;
    g->now = look(delta, s->mask, g->sum.width);
    s->observed = true;
  }
  add_execution(g, &g->now, first, shared);
  add_step(x, g, first, s->mask);
  if (emu_waited(x->launch) && op == SOL_MEM_STORE)
    emu_path_wrote(x, i, s->mask, first, s->delta, NULL, false);
  if (op == SOL_MEM_STORE && !shared)
    for (uint32_t left = x->warp->lock ? s->mask : 0; left; left &= left - 1)
      release(x, first + (uint64_t)(int64_t)s->delta[emu_first(left)]);
  uint32_t sectors = shared ? 0 : s->coalesced->sectors;
  if (wants_example(x, g, s->mask, sectors)) {
    int64_t delta[EMU_LANES];
    for (int l = 0; l < EMU_LANES; l++) delta[l] = s->delta[l];
    keep_example(x, g, delta, s->mask, first, sectors);
  }
  emu_path_access(x, i, shared ? EMU_REACH_SHARED : reach_of(x, i, g), op);
  if (shared) return;
  if (op == SOL_MEM_STORE && i->space != PTX_SPACE_LOCAL) add_store(x, g, first, g->sum.width);
  EmuAlloc *a = emu_worker(x)->last[i->index];
  add_allocation(g, a);
  emu_touch(x, a, s->coalesced, op);
}

void emu_observe_access(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t bytes, SolMemOp op) {
  EmuWorker *w = emu_worker(x);
  EmuSite *g = site_of(x, i);
  uint32_t global = acc->mask & ~(acc->shared | acc->local), mask = global ? global : acc->shared;
  if (global) emu_touch_any(x, &w->coalesced, op);
  uint32_t seen = i->space == PTX_SPACE_SHARED ? acc->shared : global; // by whoever polls there
  if (emu_waited(x->launch) && seen && (op == SOL_MEM_STORE || op == SOL_MEM_ATOMIC))
    emu_path_wrote(x, i, seen, 0, NULL, acc->addr, op == SOL_MEM_ATOMIC);
  if (x->warp->lock && global && (op == SOL_MEM_STORE || (op == SOL_MEM_ATOMIC && i->fn != PTX_FN_CAS)))
    for (uint32_t left = global; left; left &= left - 1) release(x, acc->addr[emu_first(left)]);
  if (!g) return;
  if (acc->shared) emu_path_access(x, i, of_others(x, acc) ? EMU_REACH_OTHERS : EMU_REACH_SHARED, op);
  if (acc->mask & ~acc->shared) emu_path_access(x, i, reach_of(x, i, g), op);
  if (!mask) return;
  int64_t delta[EMU_LANES] = {0};
  uint64_t first = acc->addr[emu_first(mask)];
  for (uint32_t left = mask; left; left &= left - 1)
    delta[emu_first(left)] = (int64_t)(acc->addr[emu_first(left)] - first);
  g->sum.width = bytes;
  if (op == SOL_MEM_STORE && global) add_store(x, g, first, bytes);
  EmuLayout now = look(delta, mask, bytes);
  add_execution(g, &now, first, !global);
  add_step(x, g, first, mask);
  uint32_t sectors = global ? w->coalesced.sectors : 0;
  if (wants_example(x, g, mask, sectors)) keep_example(x, g, delta, mask, first, sectors);
  const EmuAlloc *a = NULL;
  for (uint32_t left = global; left; left &= left - 1) {
    uint64_t at = acc->addr[emu_first(left)];
    if (a && at - a->base < a->size) continue;
    a = emu_find_alloc(x->launch->emu, at);
    add_allocation(g, a);
  }
}

// ---- atomics ----

// The number of lanes at the commonest address.
static uint32_t most_at_one_address(const EmuAccess *acc, uint32_t mask) {
  uint32_t most = 0;
  while (emu_popc(mask) > most) {
    uint64_t at = acc->addr[emu_first(mask)];
    uint32_t here = 0;
    for (int l = 0; l < EMU_LANES; l++) here |= (uint32_t)(acc->addr[l] == at) << l;
    here &= mask;
    mask &= ~here;
    if (emu_popc(here) > most) most = emu_popc(here);
  }
  return most;
}

// All lanes at an address take turns, those of several warps too: where the last ones were of this block and at this address, these
// wait for them.
void emu_path_swaps(EmuCtx *x, const EmuInst *i, const EmuAccess *acc) {
  EmuSite *g = site_of(x, i);
  const SolEmuMachine *m = &x->launch->emu->machine;
  if (!g || !m->swap_clocks) return;
  EmuPath *path = &x->block->paths[x->warp->index];
  uint64_t turns = most_at_one_address(acc, acc->shared), at = acc->addr[emu_first(acc->shared)],
           block = x->block->id + 1;
  if (g->swap_block != block || g->swap_at != at) g->swap_busy = path->swaps;
  g->swap_block = block;
  g->swap_at = at;
  g->swap_busy += turns * m->contended_clocks;
  uint64_t own = path->swaps + turns * m->swap_clocks, later = own > g->swap_busy ? own : g->swap_busy;
  path->shared_waits += (later - path->swaps) * EMU_WAIT / x->block->clocks->shared_waits;
  path->swaps = later;
}

// What lanes that access one line send to L2: every eight of the lanes that are active a packet for each of their sectors.
static uint32_t packets_of_line(const EmuAccess *acc, uint32_t mask, uint32_t active) {
  uint32_t sectors = 0;
  for (; mask; mask &= mask - 1) {
    uint32_t lane = (uint32_t)emu_first(mask), sector = acc->addr[lane] % SOL_LINE_BYTES / SOL_SECTOR_BYTES;
    sectors |= 1u << (emu_popc(active & ((1u << lane) - 1)) / 8 * 4 + sector);
  }
  return emu_popc(sectors);
}

// Whether a request without lanes at one address comes to the address that most requests come to: there they wait for each other. Where
// another one takes its place it was not that, and its requests do not count. The emulator's order is none that hardware has: only an
// address with most of all requests stays.
static bool comes_again(EmuBin *bin, const EmuAccess *acc, uint32_t mask) {
  for (uint32_t left = bin->lead ? mask : 0; left; left &= left - 1)
    if (acc->addr[emu_first(left)] == bin->word) {
      bin->lead++, bin->again++;
      return true;
    }
  if (bin->lead) {
    bin->lead--;
    return false;
  }
  bin->queue_lanes -= bin->again;
  bin->word = acc->addr[emu_first(mask)], bin->lead = 1, bin->again = 0;
  return false;
}

void emu_observe_atomic(EmuCtx *x, const EmuInst *i, const EmuAccess *acc) {
  EmuSite *g = site_of(x, i);
  const SolEmuMachine *m = &x->launch->emu->machine;
  uint32_t global = acc->mask & ~acc->shared;
  if (!g) return;
  if (acc->shared) g->sum.same += most_at_one_address(acc, acc->shared);
  if (!global) return;
  g->sum.same += most_at_one_address(acc, global);
  if (!make_bins(g)) return;
  for (uint32_t left = global; left; left &= left - 1)
    g->bins[bin_of(acc->addr[emu_first(left)] / SOL_SECTOR_BYTES)].lanes++;
  for (uint32_t left = global; left;) { // line by line
    uint64_t line = acc->addr[emu_first(left)] / SOL_LINE_BYTES;
    uint32_t here = 0;
    for (int l = 0; l < EMU_LANES; l++) here |= (uint32_t)(acc->addr[l] / SOL_LINE_BYTES == line) << l;
    here &= left;
    left &= ~here;
    EmuBin *bin = &g->bins[queue_bin(line * SOL_LINE_BYTES, m->atomic_bytes)];
    uint32_t together = most_at_one_address(acc, here);
    bin->queue_lanes += together > 1 ? together : comes_again(bin, acc, here);
    bin->queue_packets += packets_of_line(acc, here, global);
  }
}

void emu_observe_swaps(EmuCtx *x, const EmuInst *i, const EmuAccess *acc, uint32_t lanes) {
  EmuSite *g = site_of(x, i);
  if (g && lanes) {
    x->warp->lock = acc->addr[emu_first(lanes)];
    x->warp->locked = emu_path_weight(x->block, &x->block->paths[x->warp->index]);
    x->warp->lock_site = x->launch->statics->site[i->index];
    x->warp->lock_lanes = emu_popc(lanes);
  }
  if (g) g->sum.swapped += emu_popc(lanes);
  for (; g && lanes; lanes &= lanes - 1) emu_tally_add(&g->swaps, (int64_t)acc->addr[emu_first(lanes)]);
}

// ---- values ----

// Bits that must be zero for an f32 to be an f16: subnormal ones have fewer places.
static bool is_fp16(uint32_t v) {
  int e = (int)(v >> 23 & 255) - 127;
  if (!(v << 1)) return true;
  if (e == 128) return !(v & 0x1fff);
  if (e > 15 || e < -24) return false;
  int drop = e >= -14 ? 13 : -1 - e;
  return !(v & ((1u << drop) - 1));
}

static bool sampled(const EmuAlloc *a, uint64_t address) {
  if (a && a->size <= 65536) return true;
  return !(address / SOL_LINE_BYTES * UINT64_C(0x9e3779b97f4a7c15) >> 61);
}

void emu_observe_values(EmuCtx *x, const EmuInst *i, const EmuLoc *regs, uint32_t mask, uint64_t address) {
  uint32_t elements = x->launch->statics->floats[i->index];
  EmuSite *g = site_of(x, i);
  if (!elements || !g || i->bytes != 4 || i->lane_bytes != 4 || i->kind != SOL_EMU_KIND_GLOBAL_LOAD ||
      !sampled(emu_worker(x)->last[i->index], address))
    return;
  for (; elements; elements &= elements - 1) {
    const uint32_t *v = EMU_IN(uint32_t, regs[emu_first(elements)]);
    g->sum.values += emu_popc(mask);
    for (uint32_t left = mask; left; left &= left - 1) {
      uint32_t bits = v[emu_first(left)];
      g->sum.as_fp16 += is_fp16(bits);
      g->sum.as_bf16 += !(bits & 0xffff);
      g->sum.zeros += !(bits << 1);
    }
  }
}

// ---- all of a launch ----

bool emu_observe_make(EmuRun *run) {
  if (!run->observing) return true;
  size_t bytes = sizeof(EmuSite) * (run->statics->site_count + 1);
  for (uint32_t k = 0; k < run->worker_count; k++) {
    EmuWorker *w = emu_worker(&run->workers[k]);
    w->sites = sol_heap_alloc(bytes);
    w->chains = sol_heap_alloc(sizeof *w->chains);
    if (!w->sites || !w->chains) return false;
    memset(w->sites, 0, bytes);
    *w->chains = (EmuPath){0};
  }
  return emu_trace_make(run) && emu_balance_make(run);
}

void emu_observe_free(EmuRun *run) {
  sol_heap_free(run->units);
  run->units = NULL;
  emu_waited_free(run);
  for (uint32_t k = 0; k < run->worker_count; k++) {
    EmuSite *g = emu_worker(&run->workers[k])->sites;
    for (uint32_t n = 0; g && n < run->statics->site_count; n++) {
      emu_tally_free(&g[n].strides);
      emu_tally_free(&g[n].steps);
      emu_tally_free(&g[n].swaps);
      sol_heap_free(g[n].bins);
    }
    sol_heap_free(g);
    sol_heap_free(emu_worker(&run->workers[k])->chains);
    emu_worker(&run->workers[k])->chains = NULL; // blocks that are cut off are not summed any more
  }
}

// Of several launches, the commonest of the one that had it most.
static void add_commonest(EmuTally *t, int64_t *key, uint64_t *times) {
  int64_t found = 0;
  uint64_t n = emu_tally_commonest(t, &found);
  if (n && found == *key)
    *times += n;
  else if (n > *times)
    *key = found, *times = n;
}

static void add_sums(SolEmuPattern *to, const SolEmuPattern *p) {
  if (sol_emu_example_better(&p->example, &to->example)) to->example = p->example;
  if (p->width) to->width = p->width;
  to->seen += p->seen;
  to->strided += p->strided;
  to->rows += p->rows;
  to->uniform += p->uniform;
  to->scattered += p->scattered;
  to->contiguous += p->contiguous;
  to->misaligned += p->misaligned;
  to->steps += p->steps;
  to->joins += p->joins;
  to->same += p->same;
  to->swapped += p->swapped;
  to->held += p->held;
  to->values += p->values;
  to->as_fp16 += p->as_fp16;
  to->as_bf16 += p->as_bf16;
  to->zeros += p->zeros;
  if (!p->allocation) return;
  if (p->several || (to->allocation && to->allocation != p->allocation)) to->several = true;
  if (!to->allocation || p->allocation < to->allocation) to->allocation = p->allocation;
}

static EmuBin sum_of(const EmuRun *run, uint32_t site, uint32_t bin) {
  EmuBin sum = {0};
  for (uint32_t k = 0; k < run->worker_count; k++) {
    const EmuSite *g = &emu_worker(&run->workers[k])->sites[site];
    if (!g->bins) continue;
    sum.lanes += g->bins[bin].lanes;
    sum.queue_lanes += g->bins[bin].queue_lanes;
    sum.queue_packets += g->bins[bin].queue_packets;
  }
  return sum;
}

static bool has_bins(const EmuRun *run, uint32_t site) {
  for (uint32_t k = 0; k < run->worker_count; k++)
    if (emu_worker(&run->workers[k])->sites[site].bins) return true;
  return false; // most instructions are no atomics
}

static uint64_t queue_of(const EmuBin *bin) {
  return bin->queue_lanes + bin->queue_packets;
}

// Adds the instruction's atomics to those of the slices that have their memory.
static void deal_out(const EmuRun *run, uint32_t site, uint32_t deal, uint64_t *slices) {
  for (uint32_t b = 0; b < EMU_BINS; b++) {
    EmuBin bin = sum_of(run, site, b);
    if (queue_of(&bin)) slices[slice_of(b, deal, run->emu->machine.l2_slices)] += queue_of(&bin);
  }
}

static uint32_t most_of(const uint64_t *slices, uint32_t count) {
  uint32_t most = 0;
  for (uint32_t i = 1; i < count; i++)
    if (slices[i] > slices[most]) most = i;
  return most;
}

void emu_observe_slices(EmuRun *run) {
  for (uint32_t deal = 0; deal < EMU_DEALS; deal++) {
    uint64_t slices[EMU_BINS] = {0};
    for (uint32_t site = 0; site < run->statics->site_count; site++)
      if (has_bins(run, site)) deal_out(run, site, deal, slices);
    run->atomic_slices[deal] = most_of(slices, run->emu->machine.l2_slices);
  }
}

// What of the instruction's atomics is on memory of a slice: the one that has most of all instructions', if that has nearly as much of
// this one's as any, for they take turns there. own: otherwise, one more than the slice that has most of this one's.
static EmuBin of_slice(const EmuRun *run, uint32_t site, uint32_t deal, uint32_t *own) {
  uint32_t count = run->emu->machine.l2_slices, at = run->atomic_slices[deal];
  uint64_t slices[EMU_BINS] = {0};
  EmuBin sum = {0};
  deal_out(run, site, deal, slices);
  uint32_t most = most_of(slices, count);
  if (slices[at] < slices[most] / 4 * 3) at = most, *own = most + 1;
  for (uint32_t b = 0; b < EMU_BINS; b++) {
    if (slice_of(b, deal, count) != at) continue;
    EmuBin bin = sum_of(run, site, b);
    sum.queue_lanes += bin.queue_lanes, sum.queue_packets += bin.queue_packets;
  }
  return sum;
}

// The busiest sector of an instruction's atomics, and apart from that the busiest slice of L2, in the mean of all deals. at: what instructions
// that take turns have in common.
static EmuBin busiest(const EmuRun *run, uint32_t site, uint64_t *at) {
  EmuBin most = {0};
  if (!has_bins(run, site)) return most;
  uint32_t own = 0;
  for (uint32_t deal = EMU_DEALS; deal-- > 0;) {
    EmuBin one = of_slice(run, site, deal, &own);
    most.queue_lanes += one.queue_lanes, most.queue_packets += one.queue_packets;
  }
  for (uint32_t b = 0; b < EMU_BINS; b++) {
    EmuBin bin = sum_of(run, site, b);
    if (bin.lanes > most.lanes) most.lanes = bin.lanes;
  }
  most.queue_lanes = (most.queue_lanes + EMU_DEALS / 2) / EMU_DEALS;
  most.queue_packets = (most.queue_packets + EMU_DEALS / 2) / EMU_DEALS;
  *at = most.queue_lanes + most.queue_packets > 0 ? own + 1 : 0;
  return most;
}

void emu_observe_sum(EmuRun *run, uint32_t pc, SolEmuPattern *to) {
  uint32_t site = run->statics->site[pc];
  if (site == EMU_NO_SITE) return;
  EmuSite *all = &emu_worker(&run->workers[0])->sites[site];
  for (uint32_t k = 0; k < run->worker_count; k++) {
    EmuSite *g = &emu_worker(&run->workers[k])->sites[site];
    add_sums(to, &g->sum);
    if (!k) continue;
    emu_tally_merge(&all->strides, &g->strides);
    emu_tally_merge(&all->steps, &g->steps);
    emu_tally_merge(&all->swaps, &g->swaps);
  }
  add_commonest(&all->strides, &to->stride, &to->stride_times);
  add_commonest(&all->steps, &to->step, &to->step_times);
  int64_t word = 0;
  to->swaps += emu_tally_commonest(&all->swaps, &word);
  EmuBin most = busiest(run, site, &to->queue_slice);
  to->hottest += most.lanes;
  to->queue_lanes += most.queue_lanes;
  to->queue_packets += most.queue_packets;
}
