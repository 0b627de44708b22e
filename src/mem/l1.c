#include "mem/l1.h"

#include "base/error.h"

enum { ALIGN = 64, BYTES_PER_SET = SOL_WAYS * SOL_LINE_SECTORS };

size_t sol_l1_bytes(uint64_t bytes) {
  SolSetLayout layout = sol_set_layout(bytes / SOL_LINE_BYTES);
  return ((size_t)1 << layout.bits) * (sizeof(SolSet) + BYTES_PER_SET * sizeof(uint32_t)) + ALIGN;
}

SolStatus sol_l1_init(SolL1 *l1, uint64_t bytes, void *memory, size_t size, SolError *err) {
  if (bytes > SOL_L1_MAX_BYTES)
    return sol_fail(err, SOL_ERR_ARGUMENT, "an L1 of %llu bytes is larger than 1 MiB",
                    (unsigned long long)bytes);
  if (!memory || size < sol_l1_bytes(bytes))
    return sol_fail(err, SOL_ERR_NO_SPACE, "an L1 of %llu bytes needs %zu bytes, not %zu",
                    (unsigned long long)bytes, sol_l1_bytes(bytes), size);
  l1->layout = sol_set_layout(bytes / SOL_LINE_BYTES);
  uint32_t sets = UINT32_C(1) << l1->layout.bits;
  l1->sets = (SolSet *)(((uintptr_t)memory + ALIGN - 1) / ALIGN * ALIGN);
  l1->bytes = (uint32_t *)(l1->sets + sets);
  l1->used = true;
  sol_l1_empty(l1);
  return SOL_OK;
}

void sol_l1_empty(SolL1 *l1) {
  if (!l1->used) return; // a kernel full of fences would clear nothing again and again
  for (uint32_t i = 0; i < UINT32_C(1) << l1->layout.bits; i++)
    sol_set_clear(&l1->sets[i], l1->layout.ways + (i < l1->layout.extra));
  l1->used = false;
}

static uint32_t *bytes_of(const SolL1 *l1, const SolSet *s, uint32_t way) {
  return l1->bytes + (size_t)(s - l1->sets) * BYTES_PER_SET + (size_t)way * SOL_LINE_SECTORS;
}

static inline uint32_t take_way(SolL1 *l1, SolSet *s, uint32_t tag) {
  uint32_t way = sol_set_victim(s);
  sol_set_take(s, way, tag);
  l1->used = true;
  return way;
}

// Sectors of `wanted` that are here in part, with all the bytes that the load asks for.
static uint32_t partly_here(const SolL1 *l1, const SolSet *s, uint32_t way, uint32_t wanted,
                            const SolLine *l) {
  const uint32_t *have = bytes_of(l1, s, way);
  uint32_t hits = 0;
  for (uint32_t rest = wanted & s->partial[way]; rest; rest &= rest - 1) {
    uint32_t k = sol_first_bit(rest);
    if (!(l->bytes[k] & ~have[k])) hits |= UINT32_C(1) << k;
  }
  return hits;
}

// Returns the sectors that L2 has to deliver.
static inline uint32_t load_line(SolL1 *l1, const SolLine *l, bool allocate) {
  uint32_t wanted = l->sectors;
  SolPlace at = sol_place(l->line, l1->layout.bits);
  SolSet *s = &l1->sets[at.set];
  uint32_t way = sol_set_find(s, at.tag), missing = wanted;
  if (way < SOL_WAYS) {
    missing = wanted & ~s->valid[way];
    if (missing && s->partial[way]) missing &= ~partly_here(l1, s, way, missing, l);
  } else if (allocate && s->ways) {
    way = take_way(l1, s, at.tag);
  }
  if (way == SOL_WAYS) return missing;
  sol_set_touch(s, way);
  if (missing && allocate) {
    s->valid[way] = (uint8_t)(s->valid[way] | missing);
    s->partial[way] = (uint8_t)(s->partial[way] & ~missing);
  }
  return missing;
}

static inline void store_line(SolL1 *l1, const SolLine *l) {
  SolPlace at = sol_place(l->line, l1->layout.bits);
  SolSet *s = &l1->sets[at.set];
  uint32_t way = sol_set_find(s, at.tag);
  if (way == SOL_WAYS) {
    if (!s->ways) return;
    way = take_way(l1, s, at.tag);
  }
  sol_set_touch(s, way);
  uint32_t valid = s->valid[way] | l->whole, partial = s->partial[way] & ~l->whole;
  uint32_t rest = l->sectors & ~valid;
  if (rest) {
    uint32_t *have = bytes_of(l1, s, way);
    for (; rest; rest &= rest - 1) {
      uint32_t k = sol_first_bit(rest), bit = UINT32_C(1) << k;
      have[k] = partial & bit ? have[k] | l->bytes[k] : l->bytes[k];
      if (have[k] == UINT32_MAX)
        valid |= bit, partial &= ~bit;
      else
        partial |= bit;
    }
  }
  s->valid[way] = (uint8_t)valid;
  s->partial[way] = (uint8_t)partial;
}

static void drop_line(SolL1 *l1, const SolLine *l) {
  SolPlace at = sol_place(l->line, l1->layout.bits);
  SolSet *s = &l1->sets[at.set];
  uint32_t way = sol_set_find(s, at.tag);
  if (way < SOL_WAYS) sol_set_drop(s, way);
}

// One record for all sectors of which the same bytes are written.
static inline void log_write(SolLog *log, const SolLine *l, uint32_t id) {
  uint32_t sectors = l->sectors;
  if (l->whole) sol_log_add(log, l->line, SOL_TRAFFIC_WRITE, l->whole, UINT32_MAX, id);
  for (sectors &= ~l->whole; sectors;) {
    uint32_t bytes = l->bytes[sol_first_bit(sectors)], same = 0;
    for (uint32_t k = 0; k < SOL_LINE_SECTORS; k++) same |= (uint32_t)(l->bytes[k] == bytes) << k;
    sol_log_add(log, l->line, SOL_TRAFFIC_WRITE, same, bytes, id);
    sectors &= ~same;
  }
}

// Returns how many sectors L2 has to deliver.
static inline uint32_t load(SolL1 *l1, const SolCoalesced *request, bool allocate, uint32_t id, SolLog *log) {
  uint32_t sent = 0;
  for (uint32_t i = 0; i < request->lines; i++) {
    uint32_t missing = load_line(l1, &request->line[i], allocate);
    if (missing) sol_log_add(log, request->line[i].line, SOL_TRAFFIC_READ, missing, 0, id);
    sent += sol_sector_count(missing);
  }
  return sent;
}

static uint32_t packets_of(const SolLine *l) {
  return sol_sector_count(l->sectors) + (l->whole != (1u << SOL_LINE_SECTORS) - 1);
}

static void pass_by(SolL1 *l1, const SolCoalesced *request, bool drop, SolTraffic kind, uint32_t id,
                    SolLog *log) {
  for (uint32_t i = 0; i < request->lines; i++) {
    const SolLine *l = &request->line[i];
    if (drop) drop_line(l1, l);
    if (kind == SOL_TRAFFIC_WRITE)
      log_write(log, l, id);
    else
      sol_log_add(log, l->line, kind, l->sectors, 0, id);
  }
}

// Returns how many packets go to L2.
static uint32_t store(SolL1 *l1, const SolCoalesced *request, uint32_t id, SolLog *log) {
  uint32_t packets = 0;
  for (uint32_t i = 0; i < request->lines; i++) {
    store_line(l1, &request->line[i]);
    log_write(log, &request->line[i], id);
    packets += packets_of(&request->line[i]);
  }
  return packets;
}

bool sol_l1_access(SolL1 *l1, const SolCoalesced *request, SolMemOp op, uint32_t id, SolL1Counts *counts,
                   SolLog *log) {
  if (!sol_log_has_room(log)) return false;
  uint32_t to_l2 = request->sectors;
  switch (op) {
  case SOL_MEM_LOAD: to_l2 = load(l1, request, true, id, log); break;
  case SOL_MEM_LOAD_ONCE: to_l2 = load(l1, request, false, id, log); break;
  case SOL_MEM_LOAD_L2: pass_by(l1, request, true, SOL_TRAFFIC_READ, id, log); break;
  case SOL_MEM_STORE: counts->packets += store(l1, request, id, log); break;
  case SOL_MEM_ATOMIC: pass_by(l1, request, true, SOL_TRAFFIC_ATOMIC, id, log); break;
  case SOL_MEM_COPY_LOAD: pass_by(l1, request, false, SOL_TRAFFIC_READ, id, log); break;
  case SOL_MEM_COPY_STORE: pass_by(l1, request, true, SOL_TRAFFIC_WRITE, id, log); break;
  }
  counts->requests += request->lines != 0;
  counts->sectors += request->sectors;
  counts->ideal_sectors += request->ideal_sectors;
  counts->lines += request->lines;
  counts->to_l2 += to_l2;
  if (op <= SOL_MEM_LOAD_ONCE) {
    counts->misses += to_l2;
    counts->hits += request->sectors - to_l2;
  }
  return true;
}
