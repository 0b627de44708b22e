// Launches that repeat. Once launches of a kernel with one geometry have had equal counts, further ones run without
// being counted, which is faster, and are billed by the counted ones. What an instruction executes is counted all the
// same: a launch that executes something else ends this. Accesses alone may differ while that stays equal, so a launch
// is counted again from time to time.
#include <stdlib.h>
#include <unistd.h>

#include "shim/shim.h"

enum {
  SEEN = 8,           // different parameters that are told apart
  MOST_REPEATS = 512, // geometries of kernels; those beyond are always counted
  EQUAL = 3,          // launches in a row with equal counts
  MOST_EQUAL = 64,    // the same, after some that turned out not to be equal
  UNSETTLED = 8,      // the same, where DRAM traffic still changes from launch to launch
  FIRST_GAP = 4,      // launches that are not counted before one that is; doubled
  LAST_GAP = 32
};

typedef struct Counts {
  uint64_t exact, executed; // hashes: of all exact counts; of those that an uncounted launch has too
  double dram;
} Counts;

typedef struct Seen { // the last counted launch with these parameters
  uint64_t params, key;
  Counts counts;
  uint32_t equal; // launches in a row with its exact counts; 0: unused
  bool settled;   // in DRAM traffic
  double seconds;
  ShimOutcome outcome;
} Seen;

struct ShimRepeat {
  struct ShimRepeat *next;
  const ShimKernel *kernel;
  dim3 grid, block, cluster;
  size_t shared;
  bool cooperative;
  Seen seen[SEEN], last; // last: whatever its parameters
  uint32_t oldest;       // of seen, is replaced next
  uint32_t needed;       // equal launches
  uint32_t uncounted, gap;
};

static uint64_t mix(uint64_t hash, uint64_t value) {
  return (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
}

static uint64_t params_of(const ShimKernelWork *w) {
  uint64_t hash = 1;
  for (uint64_t i = 0; i < w->kernel->fn->param_size; i++) hash = mix(hash, w->params[i]);
  return hash;
}

static Counts counts_of(const SolEmuResult *r) {
  Counts all = {.dram = (double)r->total.dram_read + (double)r->total.dram_write};
  for (uint32_t i = 0; i < r->inst_count; i++) {
    const SolEmuCounts *c = &r->insts[i].counts;
    const uint64_t exact[] = {
        c->divergent,       c->requests,   c->bytes,   c->sectors, c->lines,
        c->shared_requests, c->wavefronts, c->atomics, c->turns,   r->insts[i].pattern.same};
    all.executed = mix(mix(all.executed, c->executions), c->lanes);
    for (size_t k = 0; k < SOL_COUNT(exact); k++) all.exact = mix(all.exact, exact[k]);
  }
  for (uint32_t i = 0; i < r->touch_count; i++) all.exact = mix(all.exact, r->touches[i].moved);
  all.exact = mix(all.exact, all.executed);
  return all;
}

static bool same(dim3 a, dim3 b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
}

ShimRepeat *shim_repeat_of(const ShimKernelWork *w) {
  uint32_t count = 0;
  for (ShimRepeat *r = shim.watch.repeats; r; r = r->next, count++)
    if (r->kernel == w->kernel && same(r->grid, w->grid) && same(r->block, w->block) &&
        same(r->cluster, w->cluster) && r->shared == w->shared && r->cooperative == w->cooperative)
      return r;
  ShimRepeat *r = count < MOST_REPEATS ? calloc(1, sizeof *r) : NULL;
  if (!r) return NULL;
  *r = (ShimRepeat){.next = shim.watch.repeats,
                    .kernel = w->kernel,
                    .grid = w->grid,
                    .block = w->block,
                    .cluster = w->cluster,
                    .shared = w->shared,
                    .cooperative = w->cooperative,
                    .needed = EQUAL,
                    .gap = FIRST_GAP};
  return shim.watch.repeats = r;
}

static Seen *seen_with(ShimRepeat *r, uint64_t params) {
  for (uint32_t i = 0; i < SEEN; i++)
    if (r->seen[i].equal && r->seen[i].params == params) return &r->seen[i];
  return NULL;
}

static bool is_known(const ShimRepeat *r, const Seen *s) {
  return s && s->equal >= r->needed && (s->settled || s->equal >= UNSETTLED);
}

// What such a launch is taken to be; NULL: it is not known yet.
static const Seen *find(ShimRepeat *r, uint64_t params) {
  Seen *s = seen_with(r, params);
  if (is_known(r, s)) return s;
  if (!is_known(r, &r->last)) return NULL;
  return s && s->counts.exact == r->last.counts.exact ? s : &r->last;
}

bool shim_repeat_known(ShimRepeat *r, const ShimKernelWork *w) {
  if (!find(r, params_of(w))) return false;
  if (r->uncounted < r->gap) return true;
  r->uncounted = 0;
  r->gap = r->gap * 2 < LAST_GAP ? r->gap * 2 : LAST_GAP;
  return false;
}

// After launches that were not alike although they had been taken to be: more have to be.
static void doubt(ShimRepeat *r) {
  r->needed = r->needed * 2 < MOST_EQUAL ? r->needed * 2 : MOST_EQUAL;
  r->gap = FIRST_GAP;
  r->uncounted = 0;
  r->last.equal = 0;
  for (uint32_t i = 0; i < SEEN; i++)
    if (r->seen[i].equal) r->seen[i].equal = 1;
}

static void update(Seen *s, const Counts *now, double seconds) {
  double more = now->dram > s->counts.dram ? now->dram : s->counts.dram;
  bool equal = s->equal && s->counts.exact == now->exact;
  s->settled = equal && (now->dram - s->counts.dram) * (now->dram - s->counts.dram) <= more * more / 4096;
  s->equal = equal ? s->equal + 1 : 1;
  s->counts = *now;
  s->seconds = seconds;
}

uint64_t shim_repeat_key(void) {
  return (uint64_t)getpid() << 20 | ++shim.watch.repeat_keys;
}

static Seen *place_for(ShimRepeat *r, uint64_t params) {
  Seen *s = seen_with(r, params);
  if (s) return s;
  s = &r->seen[r->oldest++ % SEEN];
  uint64_t key = s->key ? s->key : shim_repeat_key();
  shim_outcome_forget(&s->outcome);
  *s = (Seen){.params = params, .key = key};
  return s;
}

uint64_t shim_repeat_learn(ShimRepeat *r, const ShimKernelWork *w, const SolEmuResult *result,
                           double seconds) {
  Counts now = counts_of(result);
  uint64_t params = params_of(w);
  const Seen *taken = find(r, params);
  if (result->end != SOL_EMU_DONE) return 0;
  if (taken && taken->counts.exact != now.exact) doubt(r);
  Seen *s = place_for(r, params);
  update(s, &now, seconds);
  update(&r->last, &now, seconds);
  r->last.key = s->key;
  return s->key;
}

ShimOutcome *shim_repeat_outcome(ShimRepeat *r, const ShimKernelWork *w) {
  const ShimWatch *watch = &shim.watch;
  Seen *s = watch->checks || watch->async_order || watch->sample || w->cooperative
                ? NULL
                : seen_with(r, params_of(w));
  const Seen *billed = s ? find(r, s->params) : NULL;
  return s && (!billed || billed == s) ? &s->outcome : NULL;
}

ShimAgain shim_repeat_again(ShimRepeat *r, const ShimKernelWork *w, const SolEmuResult *result) {
  const Seen *s = find(r, params_of(w));
  ShimAgain again = {.key = s->key, .seconds = s->seconds};
  r->uncounted++;
  again.unlike = result->inst_count && counts_of(result).executed != s->counts.executed;
  if (again.unlike) doubt(r);
  return again;
}
