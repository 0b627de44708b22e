// Which launches are counted, and what is remembered of them.
#include <stdlib.h>

#include "inject/inject.h"

static uint64_t shape_of(const ProfileLaunch *l) {
  uint64_t h = 14695981039346656037u;
  for (const char *p = l->name; *p; p++) h = (h ^ (unsigned char)*p) * 1099511628211u;
  for (int i = 0; i < 3; i++) h = ((h ^ l->grid[i]) * 1099511628211u ^ l->block[i]) * 1099511628211u;
  return h ? h : 1;
}

static bool grow_shapes(Inject *in) {
  if (in->shape_count * 2 < in->shape_cap) return true;
  uint32_t cap = in->shape_cap ? in->shape_cap * 2 : 256;
  InjectShape *room = calloc(cap, sizeof *room);
  if (!room) return false;
  for (uint32_t i = 0; i < in->shape_cap; i++) {
    if (!in->shapes[i].hash) continue;
    uint32_t at = (uint32_t)in->shapes[i].hash & (cap - 1);
    while (room[at].hash) at = (at + 1) & (cap - 1);
    room[at] = in->shapes[i];
  }
  free(in->shapes);
  in->shapes = room;
  in->shape_cap = cap;
  return true;
}

bool inject_limited(const Inject *in) {
  return in->filter.skip > 0 || in->filter.count > 0;
}

// Launches of one kernel and shape are much alike, and counting takes long: after some of them the rest is
// timed.
bool inject_counts(Inject *in, const ProfileLaunch *l) {
  if (!in->each || inject_limited(in) || !in->timing || !grow_shapes(in)) return true;
  uint64_t hash = shape_of(l);
  uint32_t at = (uint32_t)hash & (in->shape_cap - 1);
  while (in->shapes[at].hash && in->shapes[at].hash != hash) at = (at + 1) & (in->shape_cap - 1);
  if (!in->shapes[at].hash) in->shape_count++;
  in->shapes[at].hash = hash;
  return in->shapes[at].counted++ < in->each;
}

static bool holds(const uint32_t *ring, const uint32_t *next, uint32_t correlation) {
  uint32_t count = __atomic_load_n(next, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count && i < MAX_COUNTED; i++)
    if (__atomic_load_n(&ring[i], __ATOMIC_RELAXED) == correlation) return true;
  return false;
}

void inject_keep(uint32_t *ring, uint32_t *next, uint32_t correlation) {
  __atomic_store_n(&ring[*next % MAX_COUNTED], correlation, __ATOMIC_RELAXED);
  __atomic_store_n(next, *next + 1, __ATOMIC_RELEASE); // by one thread at a time
}

bool inject_was_counted(const Inject *in, uint32_t correlation) {
  return holds(in->counted, &in->counted_next, correlation);
}

bool inject_was_graph(const Inject *in, uint32_t correlation) {
  return holds(in->replayed, &in->replayed_next, correlation);
}
