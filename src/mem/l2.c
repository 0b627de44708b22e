#include "mem/l2.h"

#include "base/error.h"

enum { ALIGN = 64, BYTES_PER_SET = SOL_WAYS * SOL_LINE_SECTORS };
#define MIN_BYTES (UINT64_C(64) << 10)
#define MAX_BYTES (UINT64_C(1) << 30)

// One shard being worked on, and where its counts go.
typedef struct Work {
  const SolL2 *l2;
  SolL2Shard *shard;
  SolL2Counts *counts;
  uint32_t ids;
} Work;

static uint64_t lines_per_shard(const SolL2Config *c, uint32_t part) {
  return c->bytes / SOL_LINE_BYTES * part / 100 / SOL_SHARDS;
}

static bool config_is_sound(const SolL2Config *c) {
  return c->bytes >= MIN_BYTES && c->bytes <= MAX_BYTES && c->usable_percent <= 100 &&
         c->dirty_percent <= 100 && c->partial_percent <= 100 &&
         (c->dram_bytes == 32 || c->dram_bytes == 64) && lines_per_shard(c, c->usable_percent) > 0;
}

static uint32_t set_bits(uint64_t lines) {
  uint32_t bits = sol_set_layout(lines).bits;
  bool room = lines * SOL_SET_MOST < (UINT64_C(100) * (SOL_WAYS - 1)) << bits;
  return room || bits < 5 ? bits : bits + 1;
}

// A set's part of so many lines: the parts of all sets add up to them.
static uint32_t part_of(const SolL2 *l2, uint64_t lines, uint32_t set) {
  uint64_t sets = UINT64_C(1) << l2->bits, before = UINT64_C(100) * (set / SOL_SET_KINDS * SOL_SET_KINDS);
  if (sets < SOL_SET_KINDS || !l2->set_percent)
    return (uint32_t)(lines * (set + 1) / sets - lines * set / sets);
  for (uint32_t k = 0; k < set % SOL_SET_KINDS; k++) before += l2->set_percent[k];
  uint64_t after = before + l2->set_percent[set % SOL_SET_KINDS];
  return (uint32_t)(lines * after / (100 * sets) - lines * before / (100 * sets));
}

static size_t bytes_per_shard(uint32_t bits) {
  size_t per_set = sizeof(SolSet) + (BYTES_PER_SET + 2 * SOL_WAYS + 1) * sizeof(uint32_t) + SOL_WAYS + 2;
  return (((size_t)1 << bits) * per_set + ALIGN - 1) / ALIGN * ALIGN;
}

size_t sol_l2_bytes(const SolL2Config *config) {
  if (!config_is_sound(config)) return 0;
  uint64_t lines = lines_per_shard(config, config->usable_percent);
  return SOL_SHARDS * bytes_per_shard(set_bits(lines)) + ALIGN;
}

SolStatus sol_l2_init(SolL2 *l2, const SolL2Config *config, void *memory, size_t size, SolError *err) {
  SolStatus status = sol_l2_lay_out(l2, config, memory, size, err);
  if (!status) sol_l2_empty(l2);
  return status;
}

SolStatus sol_l2_lay_out(SolL2 *l2, const SolL2Config *config, void *memory, size_t size, SolError *err) {
  if (!config_is_sound(config))
    return sol_fail(
        err, SOL_ERR_ARGUMENT,
        "an L2 has 64 KiB to 1 GiB (here %llu bytes), parts of at most 100 %%, and 32- or 64-byte reads",
        (unsigned long long)config->bytes);
  size_t need = sol_l2_bytes(config);
  if (!memory || size < need)
    return sol_fail(err, SOL_ERR_NO_SPACE, "an L2 of %llu bytes needs %zu bytes, not %zu",
                    (unsigned long long)config->bytes, need, size);
  l2->lines = lines_per_shard(config, config->usable_percent);
  l2->dirty_lines = lines_per_shard(config, config->dirty_percent);
  l2->bits = set_bits(l2->lines);
  l2->max_partial = (uint32_t)lines_per_shard(config, config->partial_percent);
  l2->pairs = config->dram_bytes != 32;
  l2->set_percent = config->set_percent;
  l2->window = (SolL2Window){0};
  size_t sets = (size_t)1 << l2->bits;
  char *at = (char *)(((uintptr_t)memory + ALIGN - 1) / ALIGN * ALIGN);
  for (uint32_t i = 0; i < SOL_SHARDS; i++, at += bytes_per_shard(l2->bits)) {
    SolL2Shard *h = &l2->shard[i];
    h->sets = (SolSet *)at;
    h->bytes = (uint32_t *)(h->sets + sets);
    h->owner = h->bytes + sets * BYTES_PER_SET;
    h->queue = h->owner + sets * SOL_WAYS;
    h->seen = h->queue + sets * SOL_WAYS;
    h->left = (uint8_t *)(h->seen + sets);
    h->most_dirty = h->left + sets * SOL_WAYS;
    h->most_kept = h->most_dirty + sets;
  }
  return SOL_OK;
}

static uint32_t slot_count(const SolL2 *l2) {
  return (uint32_t)SOL_WAYS << l2->bits;
}

void sol_l2_empty(SolL2 *l2) {
  for (uint32_t i = 0; i < SOL_SHARDS; i++) sol_l2_empty_shard(l2, i);
}

void sol_l2_empty_shard(SolL2 *l2, uint32_t shard) {
  SolL2Shard *h = &l2->shard[shard];
  for (uint32_t k = 0; k < UINT32_C(1) << l2->bits; k++) {
    sol_set_clear(&h->sets[k], part_of(l2, l2->lines, k));
    h->most_dirty[k] = (uint8_t)part_of(l2, l2->dirty_lines, k);
    h->seen[k] = 0;
  }
  h->launch = 0;
  h->queue_first = h->queue_count = h->partial_lines = h->own_dirty = 0;
  memset(h->left, 0, slot_count(l2));
  h->earlier = (SolL2Earlier){0};
}

static uint32_t slot_of(const SolL2Shard *h, const SolSet *s, uint32_t way) {
  return (uint32_t)(s - h->sets) * SOL_WAYS + way;
}

// Before a set is used: what it holds is from launches before this one, and so much older as launches have passed.
static inline void make_up(SolL2Shard *h, const SolSet *s) {
  uint32_t k = (uint32_t)(s - h->sets), passed = h->launch - h->seen[k];
  if (!passed) return;
  h->seen[k] = h->launch;
  uint8_t left[SOL_WAYS], valid[SOL_WAYS]; // of all ways at once
  uint32_t by = passed < SOL_OLDEST ? passed : SOL_OLDEST;
  memcpy(left, &h->left[k * SOL_WAYS], sizeof left);
  memcpy(valid, s->valid, sizeof valid);
  for (uint32_t way = 0; way < SOL_WAYS; way++) {
    uint8_t age = (uint8_t)((left[way] >> 4) + by);
    left[way] = (uint8_t)((age < SOL_OLDEST ? age : SOL_OLDEST) << 4 | valid[way]);
  }
  memcpy(&h->left[k * SOL_WAYS], left, sizeof left);
  memset(&h->owner[k * SOL_WAYS], 0xff, sizeof *h->owner * SOL_WAYS); // SOL_NO_ID
}

static uint64_t sector_bytes(uint32_t sectors) {
  return (uint64_t)SOL_SECTOR_BYTES * sol_sector_count(sectors);
}

static SolL2Counts *counts_of(const Work *w, uint32_t id) {
  return &w->counts[id < w->ids ? id : w->ids];
}

// A line that this launch has written into since has no age.
static uint32_t age_of(uint32_t left) {
  return left >> 4 ? left >> 4 : SOL_OLDEST;
}

// Writes back what is dirty in a line, which stays, clean and whole where it was partial.
static void write_back(Work *w, SolSet *s, uint32_t way) {
  SolL2Shard *h = w->shard;
  uint32_t slot = slot_of(h, s, way), partial = s->partial[way];
  SolL2Counts *c = counts_of(w, h->owner[slot]);
  if (h->owner[slot] == SOL_NO_ID)
    h->earlier.written[age_of(h->left[slot])] += sector_bytes(s->dirty[way]);
  else
    h->own_dirty -= sol_sector_count(s->dirty[way]);
  c->dram_write_bytes += sector_bytes(s->dirty[way]);
  c->dram_read_bytes += sector_bytes(partial);
  w->shard->partial_lines -= partial != 0;
  s->valid[way] = (uint8_t)(s->valid[way] | partial);
  s->partial[way] = 0;
  s->dirty[way] = 0;
  s->dirty_ways--;
}

// Where too many lines are partly written, completes the oldest.
static void limit_partial(Work *w) {
  SolL2Shard *h = w->shard;
  uint32_t size = slot_count(w->l2);
  while (h->partial_lines > w->l2->max_partial) {
    uint32_t slot = h->queue[h->queue_first];
    h->queue_first = h->queue_first + 1 == size ? 0 : h->queue_first + 1;
    h->queue_count--;
    SolSet *s = &h->sets[slot / SOL_WAYS];
    make_up(h, s);
    s->queued = (uint16_t)(s->queued & ~(1u << slot % SOL_WAYS));
    if (s->partial[slot % SOL_WAYS]) write_back(w, s, slot % SOL_WAYS);
  }
}

// A line stands in the queue at most once, until its turn comes: it may have become whole, or been evicted,
// meanwhile.
static void note_partial(Work *w, SolSet *s, uint32_t way) {
  SolL2Shard *h = w->shard;
  h->partial_lines++;
  if (!(s->queued >> way & 1)) {
    uint32_t size = slot_count(w->l2), end = h->queue_first + h->queue_count;
    s->queued = (uint16_t)(s->queued | 1u << way);
    h->queue[end >= size ? end - size : end] = slot_of(h, s, way);
    h->queue_count++;
  }
  limit_partial(w);
}

static inline void soil(Work *w, SolSet *s, uint32_t way, uint32_t sectors, uint32_t id) {
  SolL2Shard *h = w->shard;
  uint32_t slot = slot_of(h, s, way), dirty = s->dirty[way] | sectors;
  if (id != SOL_NO_ID)
    h->own_dirty += sol_sector_count(h->owner[slot] == SOL_NO_ID ? dirty : dirty & ~s->dirty[way]);
  h->owner[slot] = id;
  h->left[slot] &= (uint8_t)~sectors & 15;
  s->dirty_ways = (uint8_t)(s->dirty_ways + !s->dirty[way]);
  s->dirty[way] = (uint8_t)dirty;
}

// Where too many lines of a set are dirty, writes back the one not used for longest.
static inline void limit_dirty(Work *w, SolSet *s) {
  if (s->dirty_ways <= w->shard->most_dirty[s - w->shard->sets]) return;
  for (uint32_t age = s->ways; age-- > 0;) {
    uint32_t way = sol_nibble(s->order, age);
    if (!s->dirty[way]) continue;
    write_back(w, s, way);
    return;
  }
}

static inline uint32_t take_way(Work *w, SolSet *s, uint32_t tag) {
  uint32_t way = sol_window_victim(s);
  uint32_t slot = slot_of(w->shard, s, way);
  if (s->dirty[way]) write_back(w, s, way);
  sol_set_take(s, way, tag);
  w->shard->owner[slot] = SOL_NO_ID;
  w->shard->left[slot] = 0;
  return way;
}

// Fetches the missing sectors; returns how many of the requested sectors hit.
static inline uint32_t fetch(Work *w, SolSet *s, uint32_t way, uint32_t wanted, bool pairs, uint32_t id) {
  uint32_t valid = s->valid[way], partial = s->partial[way], missing = wanted & ~valid;
  uint8_t *left = &w->shard->left[slot_of(w->shard, s, way)];
  if (*left & wanted) {
    w->shard->earlier.found[age_of(*left)] += sector_bytes(*left & wanted);
    *left &= (uint8_t)~wanted;
  }
  if (!missing) return sol_sector_count(wanted);
  uint32_t brought = missing;
  if (pairs) brought = ((missing & 3 ? 3u : 0u) | (missing & 12 ? 12u : 0u)) & ~valid;
  counts_of(w, id)->dram_read_bytes += sector_bytes(brought);
  w->shard->partial_lines -= partial && !(partial & ~brought);
  s->valid[way] = (uint8_t)(s->valid[way] | brought);
  s->partial[way] = (uint8_t)(partial & ~brought);
  return sol_sector_count(wanted & valid);
}

static inline void write_line(Work *w, SolSet *s, uint32_t way, uint32_t sectors, uint32_t bytes,
                              uint32_t id) {
  uint32_t valid = s->valid[way], before = s->partial[way], partial = before;
  if (bytes == UINT32_MAX) {
    valid |= sectors;
    partial &= ~sectors;
  } else {
    uint32_t *have = w->shard->bytes + (size_t)slot_of(w->shard, s, way) * SOL_LINE_SECTORS;
    for (uint32_t rest = sectors & ~valid; rest; rest &= rest - 1) {
      uint32_t k = sol_first_bit(rest), bit = UINT32_C(1) << k;
      have[k] = partial & bit ? have[k] | bytes : bytes;
      if (have[k] == UINT32_MAX)
        valid |= bit, partial &= ~bit;
      else
        partial |= bit;
    }
  }
  s->valid[way] = (uint8_t)valid;
  s->partial[way] = (uint8_t)partial;
  soil(w, s, way, sectors, id);
  if (before && !partial) w->shard->partial_lines--;
  if (!before && partial) note_partial(w, s, way);
}

static inline void apply(Work *w, const SolRecord *r) {
  uint64_t line = (uint64_t)r->line_high << 32 | r->line_low;
  SolPlace at = sol_place(line / SOL_SHARDS, w->l2->bits);
  SolSet *s = &w->shard->sets[at.set];
  make_up(w->shard, s);
  uint32_t way = sol_set_find(s, at.tag), sectors = r->what & 15, count = sol_sector_count(sectors);
  SolTraffic kind = (SolTraffic)(r->what >> 4);
  SolL2Property property =
      w->l2->window.bytes ? sol_window_property(&w->l2->window, line) : SOL_L2_NO_PROPERTY;
  if (way == SOL_WAYS) way = take_way(w, s, at.tag);
  sol_window_mark(s, way, property, w->shard->most_kept[at.set]);
  if (property != SOL_L2_STREAMING) sol_set_touch(s, way);
  SolL2Counts *c = counts_of(w, r->id);
  c->requests += kind == SOL_TRAFFIC_WRITE && r->bytes != UINT32_MAX ? count : 1;
  if (kind == SOL_TRAFFIC_READ) {
    c->reads += count;
    c->read_hits += fetch(w, s, way, sectors, w->l2->pairs, r->id);
    return;
  }
  if (kind == SOL_TRAFFIC_ATOMIC) {
    bool pairs = w->l2->pairs && line * UINT64_C(0x9e3779b97f4a7c15) >> 63;
    c->atomics += count;
    c->atomic_hits += fetch(w, s, way, sectors, pairs, r->id);
    soil(w, s, way, sectors, r->id);
  } else {
    c->writes += count;
    write_line(w, s, way, sectors, r->bytes, r->id);
  }
  limit_dirty(w, s);
}

void sol_l2_set_window(SolL2 *l2, const SolL2Window *window, uint64_t set_aside) {
  l2->window = window ? *window : (SolL2Window){0};
  if (!l2->window.bytes) return;
  // Ways are set aside, so that even little room has one in every set.
  uint64_t lines = set_aside / SOL_LINE_BYTES / SOL_SHARDS;
  for (uint32_t i = 0; i < SOL_SHARDS; i++)
    for (uint32_t k = 0; k < UINT32_C(1) << l2->bits; k++) {
      uint64_t ways = part_of(l2, l2->lines, k), most = (ways * lines + l2->lines - 1) / l2->lines;
      l2->shard[i].most_kept[k] = (uint8_t)(most < ways ? most : ways - 1); // a way is left for other data
    }
}

void sol_l2_reset_persisting(SolL2 *l2) {
  for (uint32_t i = 0; i < SOL_SHARDS; i++)
    for (uint32_t k = 0; k < UINT32_C(1) << l2->bits; k++) l2->shard[i].sets[k].kept = 0;
}

typedef struct SolSpan { // of records
  const SolRecord *from, *end;
} SolSpan;

// A log's records of one turn.
static SolSpan turn_of(const SolLog *log, uint32_t shard, uint32_t turn) {
  uint32_t start = log->start[shard], count = log->start[shard + 1] - start, from = turn * SOL_TURN;
  uint32_t end = count > from + SOL_TURN ? from + SOL_TURN : count;
  return from < count ? (SolSpan){log->records + start + from, log->records + start + end}
                      : (SolSpan){log->records, log->records};
}

// What apply() will read first, which is anywhere in memory: fetched while records before it are applied.
static inline void look_ahead(const Work *w, const SolRecord *r) {
  uint64_t line = (uint64_t)r->line_high << 32 | r->line_low;
  uint32_t set = sol_place(line / SOL_SHARDS, w->l2->bits).set;
  const SolSet *s = &w->shard->sets[set];
  __builtin_prefetch(s, 1);
  __builtin_prefetch((const uint8_t *)s + sizeof *s / 2, 1);
  __builtin_prefetch(&w->shard->seen[set]);
}

void sol_l2_drain(SolL2 *l2, uint32_t shard, const SolLog *logs, uint32_t log_count, SolL2Counts *counts,
                  uint32_t ids) {
  Work w = {l2, &l2->shard[shard], counts, ids};
  bool more = true;
  for (uint32_t turn = 0; more; turn++) {
    more = false;
    for (uint32_t i = 0; i < log_count; i++) {
      SolSpan now = turn_of(&logs[i], shard, turn);
      if (i + 2 < log_count) __builtin_prefetch(turn_of(&logs[i + 2], shard, turn).from);
      if (i + 1 < log_count) {
        SolSpan next = turn_of(&logs[i + 1], shard, turn);
        for (const SolRecord *r = next.from; r < next.end; r++) look_ahead(&w, r);
      }
      for (const SolRecord *r = now.from; r < now.end; r++) apply(&w, r);
      more = more || logs[i].start[shard + 1] - logs[i].start[shard] > (turn + 1) * SOL_TURN;
    }
  }
}

void sol_l2_next_launch(SolL2 *l2, uint32_t shard) {
  SolL2Shard *h = &l2->shard[shard];
  h->launch++;
  h->own_dirty = 0;
  h->earlier = (SolL2Earlier){0};
}

SolL2Earlier sol_l2_earlier(const SolL2 *l2) {
  SolL2Earlier sum = {0};
  for (uint32_t i = 0; i < SOL_SHARDS; i++)
    for (uint32_t age = 0; age < SOL_AGES; age++) {
      sum.found[age] += l2->shard[i].earlier.found[age];
      sum.written[age] += l2->shard[i].earlier.written[age];
    }
  return sum;
}

uint64_t sol_l2_left_dirty(const SolL2 *l2) {
  uint64_t sectors = 0;
  for (uint32_t i = 0; i < SOL_SHARDS; i++) sectors += l2->shard[i].own_dirty;
  return sectors * SOL_SECTOR_BYTES;
}

uint64_t sol_l2_dirty_limit(const SolL2 *l2) {
  return l2->dirty_lines * SOL_SHARDS * SOL_LINE_BYTES;
}

static void drop(SolL2Shard *h, SolSet *s, uint32_t way) {
  h->partial_lines -= s->partial[way] != 0;
  s->dirty_ways = (uint8_t)(s->dirty_ways - (s->dirty[way] != 0));
  s->dirty[way] = 0;
  sol_set_drop(s, way);
}

static void use_line(Work *w, SolL2Use use, uint64_t line, uint32_t sectors) {
  SolTraffic kind = use == SOL_L2_READS ? SOL_TRAFFIC_READ : SOL_TRAFFIC_WRITE;
  SolRecord r = {.line_low = (uint32_t)line,
                 .line_high = (uint16_t)(line >> 32),
                 .what = (uint8_t)(kind << 4 | sectors),
                 .bytes = UINT32_MAX,
                 .id = SOL_NO_ID};
  SolPlace at = sol_place(line / SOL_SHARDS, w->l2->bits);
  SolSet *s = &w->shard->sets[at.set];
  make_up(w->shard, s);
  if (use != SOL_L2_FREES) apply(w, &r);
  uint32_t way = sol_set_find(s, at.tag);
  if (way == SOL_WAYS) return;
  if (use == SOL_L2_FREES)
    drop(w->shard, s, way);
  else // the next launch makes it SOL_OLDEST
    w->shard->left[slot_of(w->shard, s, way)] = (SOL_OLDEST - 1) << 4;
}

void sol_l2_use(SolL2 *l2, SolL2Use use, uint64_t address, uint64_t bytes) {
  SolL2Counts nowhere = {0};
  uint64_t first = address / SOL_SECTOR_BYTES,
           end = (address + bytes + SOL_SECTOR_BYTES - 1) / SOL_SECTOR_BYTES;
  while (bytes && first < end) {
    uint64_t line = first / SOL_LINE_SECTORS, past = (line + 1) * SOL_LINE_SECTORS;
    uint32_t from = (uint32_t)(first % SOL_LINE_SECTORS), to = (uint32_t)((end < past ? end : past) - first);
    Work w = {l2, &l2->shard[sol_shard_of(line)], &nowhere, 0};
    use_line(&w, use, line, sol_low_bits(to) << from);
    first = past;
  }
}

uint64_t sol_l2_dirty_bytes(const SolL2 *l2) {
  uint64_t sectors = 0;
  for (uint32_t i = 0; i < SOL_SHARDS; i++)
    for (uint32_t k = 0; k < UINT32_C(1) << l2->bits; k++) {
      for (uint32_t way = 0; way < SOL_WAYS; way++)
        sectors += sol_sector_count(l2->shard[i].sets[k].dirty[way]);
    }
  return sectors * SOL_SECTOR_BYTES;
}

void sol_l2_flush(SolL2 *l2, uint32_t shard, SolL2Counts *counts, uint32_t ids) {
  Work w = {l2, &l2->shard[shard], counts, ids};
  for (uint32_t k = 0; k < UINT32_C(1) << l2->bits; k++) {
    SolSet *s = &w.shard->sets[k];
    make_up(w.shard, s);
    for (uint32_t way = 0; way < s->ways; way++)
      if (s->dirty[way]) write_back(&w, s, way);
  }
}
