// L1, the log and L2, assumption by assumption. test_mem_dram.c sets DRAM bytes beside a GPU's counters.
#include "mem_machine.h"

#define LINE(n) (UINT64_C(0x40000000) + (uint64_t)(n)*128)

// One SM is enough here.
static Machine *small(uint64_t l1_bytes) {
  SolL2Config h200 = machine_l2(0);
  return machine_new(l1_bytes, &h200, 1024);
}

// ---- L1 against the H200: sequences of accesses by one warp to one line ----
static bool run_word(Machine *m, const char *word) {
  static const struct {
    const char *name;
    SolMemOp op;
    int lanes;
  } words[] = {
      {"ld", SOL_MEM_LOAD, 32},       {"lddef", SOL_MEM_LOAD, 32},     {"ldcs", SOL_MEM_LOAD, 32},
      {"ldnc", SOL_MEM_LOAD, 32},     {"ldrlxcta", SOL_MEM_LOAD, 32},  {"half", SOL_MEM_LOAD, 16},
      {"sector", SOL_MEM_LOAD, 8},    {"ld4", SOL_MEM_LOAD, 4},        {"ldcg", SOL_MEM_LOAD_L2, 32},
      {"ldcv", SOL_MEM_LOAD_L2, 32},  {"ldvol", SOL_MEM_LOAD_L2, 32},  {"ldrlx", SOL_MEM_LOAD_L2, 32},
      {"ldacq", SOL_MEM_LOAD_L2, 32}, {"ldlu", SOL_MEM_LOAD_ONCE, 32}, {"ldna", SOL_MEM_LOAD_ONCE, 32},
      {"st", SOL_MEM_STORE, 32},      {"stcg", SOL_MEM_STORE, 32},     {"stcs", SOL_MEM_STORE, 32},
      {"stwt", SOL_MEM_STORE, 32},    {"stvol", SOL_MEM_STORE, 32},    {"st4", SOL_MEM_STORE, 4},
      {"red", SOL_MEM_ATOMIC, 32},    {"atom", SOL_MEM_ATOMIC, 32},    {"redhalf", SOL_MEM_ATOMIC, 8},
  };
  if (!strcmp(word, "fence") || !strcmp(word, "membar")) return sol_l1_empty(&m->l1[0]), true;
  if (!strcmp(word, "fencecta")) return true;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(word, words[i].name) != 0) continue;
    uint64_t addr[32];
    for (uint64_t a = 0; a < 32; a++) addr[a] = LINE(0) + 4 * a;
    machine_access(m, 0, addr, (uint32_t)((UINT64_C(1) << words[i].lanes) - 1), 4, words[i].op, words[i].op);
    if (!strcmp(word, "ldacq")) sol_l1_empty(&m->l1[0]);
    return true;
  }
  return false;
}

static void read_kib(Machine *m, uint64_t base, int kib, SolMemOp op) {
  for (int i = 0; i < kib * 8; i++)
    machine_strided(m, 0, LINE(base) + (uint64_t)i * 128, 4, 4, op, (uint32_t)op);
}

// The shared-memory sizes that Hopper can set apart, in KiB; L1 is what they leave of 256.
static int l1_kib_beside(int shared_kib) {
  static const int sizes[] = {8, 16, 32, 64, 100, 132, 164, 196, 228};
  int i = 0;
  while (i < 8 && sizes[i] < shared_kib) i++;
  return 256 - sizes[i];
}

TEST(h200_l1_sequences) {
  FILE *f = fopen("tests/data/h200-l1-probe.csv", "r");
  if (!CHECK(f != NULL)) return;
  char line[256], text[128];
  int sequences = 0, sizes = 0;
  while (fgets(line, sizeof line, f)) {
    long sectors, hits, from_l2, to_l2;
    int a, b, n, shared;
    bool exact = true;
    if (line[0] == '#' ||
        sscanf(line, "%127[^,],%ld,%ld,%ld,%ld", text, &sectors, &hits, &from_l2, &to_l2) != 5)
      continue;
    if (!strncmp(text, "local", 5)) continue; // below
    // Two blocks of 1024 threads fit an SM; each has a KiB of its own. 32 blocks of one warp have 32.
    Machine *m = NULL;
    if (sscanf(text, "rounds %d %d %d", &a, &n, &shared) == 3) {
      int l1_kib = l1_kib_beside(2 * (shared + 1) > 228 ? shared + 1 : 2 * (shared + 1));
      m = small((uint64_t)l1_kib << 10);
      for (int r = 0; r < n; r++) read_kib(m, 0, a, SOL_MEM_LOAD);
      exact = a <= l1_kib || a > l1_kib * 2; // in between, LRU lets go sooner than the machine does
      sizes++;
    } else if (sscanf(text, "mixed %d %d", &a, &b) == 2) {
      m = small(248 << 10);
      read_kib(m, 0, a, SOL_MEM_LOAD);
      read_kib(m, 1 << 20, b, SOL_MEM_STORE);
      read_kib(m, 0, a, SOL_MEM_LOAD);
      exact = a + b <= 248 || a + b > 248 * 3 / 2;
      sizes++;
    } else if (sscanf(text, "same %d", &a) == 1) {
      m = small(224 << 10);
      for (int i = 0; i < a; i++) run_word(m, "ld");
    } else {
      m = small(224 << 10);
      for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
        CHECK_MSG(run_word(m, w), "unknown access '%s'", w);
      sequences++;
    }
    const SolL1Counts *c = m->l1_counts;
    uint64_t got = c[SOL_MEM_LOAD].hits + c[SOL_MEM_LOAD_L2].hits + c[SOL_MEM_LOAD_ONCE].hits;
    uint64_t missed = c[SOL_MEM_LOAD].misses + c[SOL_MEM_LOAD_L2].misses + c[SOL_MEM_LOAD_ONCE].misses;
    CHECK_MSG((long)(got + missed) == sectors, "%.*s: %ld sectors, measured %ld", 40, line,
              (long)(got + missed), sectors);
    if (exact)
      CHECK_MSG((long)got == hits, "%.*s: %ld hits, measured %ld", 40, line, (long)got, hits);
    else
      CHECK_MSG((long)got <= hits + sectors / 50, "%.*s: %ld hits, measured %ld", 40, line, (long)got, hits);
    long written = (long)(c[SOL_MEM_STORE].to_l2 + c[SOL_MEM_ATOMIC].to_l2);
    CHECK_MSG(written == to_l2, "%.*s: %ld sectors to L2, measured %ld", 40, line, written, to_l2);
    machine_free(m);
  }
  fclose(f);
  CHECK_INT(sequences, 61);
  CHECK_INT(sizes, 79);
}

TEST(local_memory_writes_through_and_hits) {
  // Lanes' words interleaved by the caller: word w of a warp is one line. As measured: 512 stored, 512
  // loaded, all hit.
  Machine *m = small(224 << 10);
  for (int r = 0; r < 2; r++) {
    read_kib(m, 0, 8, SOL_MEM_STORE);
    read_kib(m, 0, 8, SOL_MEM_LOAD);
  }
  CHECK_INT(m->l1_counts[SOL_MEM_STORE].to_l2, 512);
  CHECK_INT(m->l1_counts[SOL_MEM_LOAD].hits, 512);
  machine_free(m);
}

TEST(copies_pass_l1_by) {
  Machine *m = small(224 << 10);
  read_kib(m, 0, 4, SOL_MEM_LOAD);
  read_kib(m, 0, 4, SOL_MEM_COPY_LOAD);
  read_kib(m, 0, 4, SOL_MEM_LOAD);
  CHECK_INT(m->l1_counts[SOL_MEM_LOAD].hits, 128);
  CHECK_INT(m->l1_counts[SOL_MEM_COPY_LOAD].to_l2, 128);
  CHECK_INT(m->l1_counts[SOL_MEM_COPY_LOAD].hits + m->l1_counts[SOL_MEM_COPY_LOAD].misses, 0);
  read_kib(m, 0, 4, SOL_MEM_COPY_STORE); // changes memory behind L1's back
  read_kib(m, 0, 4, SOL_MEM_LOAD);
  CHECK_INT(m->l1_counts[SOL_MEM_LOAD].hits, 128);
  machine_free(m);
}

TEST(l1_is_least_recently_used_and_hashed) {
  // 31 KiB, 248 lines: whatever power of two the lines are apart, as many as fit stay; no more do.
  for (int shift = 0; shift < 16; shift++) {
    Machine *m = small(31 << 10);
    for (int r = 0; r < 2; r++)
      for (uint64_t i = 0; i < 124; i++) machine_strided(m, 0, LINE(i << shift), 4, 4, SOL_MEM_LOAD, 0);
    double hits = (double)m->l1_counts[0].hits / (124 * 4);
    CHECK_MSG(hits > (shift ? 0.8 : 0.999), "lines %d apart: %.3f hit", 1 << shift, hits);
    machine_free(m);
  }
  // One set of 16: the 17th line drops the first, and a touched line stays.
  Machine *m = small(2048);
  for (uint64_t i = 0; i < 16; i++) machine_strided(m, 0, LINE(i), 4, 4, SOL_MEM_LOAD, 0);
  machine_strided(m, 0, LINE(0), 4, 4, SOL_MEM_LOAD, 0);
  machine_strided(m, 0, LINE(16), 4, 4, SOL_MEM_LOAD, 0);
  machine_strided(m, 0, LINE(0), 4, 4, SOL_MEM_LOAD, 1);
  machine_strided(m, 0, LINE(1), 4, 4, SOL_MEM_LOAD, 2);
  CHECK(m->l1_counts[1].hits == 4 && m->l1_counts[2].hits == 0);
  machine_free(m);
}

TEST(l1_of_no_bytes_never_hits) {
  Machine *m = small(0);
  for (int i = 0; i < 3; i++) run_word(m, "st"), run_word(m, "ld"), run_word(m, "ldlu"), run_word(m, "red");
  CHECK(m->l1_counts[SOL_MEM_LOAD].hits == 0 && m->l1_counts[SOL_MEM_LOAD].misses == 12);
  machine_free(m);
}

TEST(l1_tells_far_addresses_apart) {
  Machine *m = small(2048);
  for (int bit = 38; bit < 55; bit++) machine_strided(m, 0, UINT64_C(1) << bit, 4, 4, SOL_MEM_LOAD, 0);
  CHECK_INT(m->l1_counts[0].hits, 0);
  machine_free(m);
}

TEST(sizes_are_checked) {
  static char memory[1 << 16];
  SolError err;
  SolL1 l1;
  SolL2 *l2 = malloc(sizeof *l2);
  CHECK_INT(sol_l1_init(&l1, 2 << 20, memory, sizeof memory, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_l1_init(&l1, 256 << 10, memory, 100, &err), SOL_ERR_NO_SPACE);
  CHECK_HAS(err.message, "262144");
  CHECK_INT(sol_l1_init(&l1, 1024, NULL, 1 << 20, &err), SOL_ERR_NO_SPACE);
  SolL2Config h200 = machine_l2(0), bad[] = {machine_l2(1024),
                                             machine_l2(1 << 20),
                                             machine_l2(1 << 20),
                                             machine_l2(1 << 16),
                                             {.bytes = 1 << 20}};
  bad[1].dram_bytes = 48;
  bad[2].dirty_percent = 101;
  bad[3].usable_percent = 1;
  for (size_t i = 0; i < SOL_COUNT(bad); i++) {
    CHECK_INT(sol_l2_init(l2, &bad[i], memory, 1 << 30, &err), SOL_ERR_ARGUMENT);
    CHECK_INT(sol_l2_bytes(&bad[i]), 0);
  }
  CHECK_INT(sol_l2_init(l2, &h200, memory, sizeof memory, &err), SOL_ERR_NO_SPACE);
  CHECK_MSG(sol_l2_bytes(&h200) < 20u << 20, "an H200's L2 takes %zu bytes", sol_l2_bytes(&h200));
  free(l2);
}

// ---- The log ----
TEST(a_full_log_changes_nothing) {
  SolL2Config h200 = machine_l2(0);
  Machine *m = machine_new(1 << 14, &h200, SOL_MAX_RECORDS + 1);
  SolCoalesced c;
  SolL1Counts counts = {0};
  uint64_t addr[32];
  for (uint64_t a = 0; a < 32; a++) addr[a] = LINE(2 * a) + 124; // 8 bytes: two lines a lane
  sol_coalesce(addr, UINT32_MAX, 8, &c);
  CHECK_INT(c.lines, 64);
  CHECK(sol_l1_access(&m->l1[0], &c, SOL_MEM_LOAD_L2, 0, &counts, &m->log[0]));
  CHECK(!sol_log_has_room(&m->log[0]));
  CHECK(!sol_l1_access(&m->l1[0], &c, SOL_MEM_LOAD, 0, &counts, &m->log[0]));
  CHECK(counts.requests == 1 && m->log[0].count == 64);
  machine_drain(m);
  CHECK(sol_l1_access(&m->l1[0], &c, SOL_MEM_LOAD, 0, &counts, &m->log[0]));
  CHECK_INT(counts.misses, 128);
  machine_free(m);
}

TEST(stores_are_logged_by_equal_bytes) {
  Machine *m = small(1 << 14);
  machine_strided(m, 0, LINE(0), 8, 4, SOL_MEM_STORE, 3); // half of 8 sectors, all alike: one record a line
  CHECK_INT(m->log[0].count, 2);
  CHECK(m->log[0].records[0].bytes == 0x0f0f0f0fu &&
        m->log[0].records[0].what == (15 | SOL_TRAFFIC_WRITE << 4));
  CHECK_INT(m->log[0].records[1].id, 3);
  machine_strided(m, 0, LINE(8) + 4, 4, 4, SOL_MEM_STORE, 0); // part, three whole; part
  CHECK_INT(m->log[0].count, 5);
  machine_free(m);
}

TEST(sorting_keeps_the_order_of_a_shard) {
  enum { N = 5000 };
  void *memory = malloc(sol_log_bytes(N));
  SolLog log;
  sol_log_init(&log, N, memory);
  for (uint32_t i = 0; i < N; i++) sol_log_add(&log, i * 37 % 991, SOL_TRAFFIC_READ, 1, 0, i);
  sol_log_sort(&log);
  CHECK_INT(log.start[SOL_SHARDS], N);
  for (uint32_t s = 0; s < SOL_SHARDS; s++)
    for (uint32_t i = log.start[s]; i < log.start[s + 1]; i++) {
      const SolRecord *r = &log.records[i];
      if (!CHECK_INT(sol_shard_of(r->line_low), s)) break;
      if (i > log.start[s] && !CHECK(r->id > log.records[i - 1].id)) break;
    }
  // 64 neighbours go to 64 shards.
  uint64_t seen = 0;
  for (uint64_t i = 0; i < 64; i++) seen |= UINT64_C(1) << sol_shard_of((UINT64_C(0x123456) << 6) + i);
  CHECK(seen == UINT64_MAX);
  free(memory);
}

TEST(an_emptied_log_has_nothing_to_drain) { // an SM that is done sorts its log no more
  SolL2Config config = machine_l2(1 << 20);
  Machine *m = machine_new(64 << 10, &config, 4096);
  machine_strided(m, 0, LINE(8), 4, 4, SOL_MEM_LOAD, 0);
  machine_drain(m);
  CHECK_INT(m->l2_counts[0].reads, 4);
  for (uint32_t s = 0; s < SOL_SHARDS; s++)
    sol_l2_drain(&m->l2, s, m->log, MACHINE_SMS, m->l2_counts, MACHINE_IDS);
  CHECK_INT(m->l2_counts[0].reads, 4);
  machine_free(m);
}

// ---- L2 ----

TEST(shards_are_emptied_one_by_one) {
  SolL2Config config = machine_l2(1 << 20);
  Machine *m = machine_new(64 << 10, &config, 4096);
  machine_strided(m, 0, LINE(8), 4, 4, SOL_MEM_LOAD_L2, 0);
  machine_drain(m);
  CHECK_INT(m->l2_counts[0].read_hits, 0);
  memset(m->l2_memory, 0xa5, sol_l2_bytes(&config));
  CHECK_INT(sol_l2_lay_out(&m->l2, &config, m->l2_memory, sol_l2_bytes(&config), NULL), SOL_OK);
  for (uint32_t s = 0; s < SOL_SHARDS; s++) sol_l2_empty_shard(&m->l2, s);
  for (int k = 0; k < 2; k++) { // not there any more, then there
    machine_strided(m, 0, LINE(8), 4, 4, SOL_MEM_LOAD_L2, 0);
    machine_drain(m);
    CHECK_INT(m->l2_counts[0].read_hits, 4 * k);
  }
  CHECK_INT(sol_l2_dirty_bytes(&m->l2), 0);
  machine_free(m);
}

// Twice over more than L2 holds, a line to each SM in turn: nothing is there the second time, however much of it the
// SMs' logs hold at once.
TEST(long_logs_do_not_reorder_what_sms_read) {
  SolL2Config config = machine_l2(16 << 20);
  config.set_percent = NULL;
  Machine *m = machine_new(64 << 10, &config, 4096);
  const uint64_t lines = 24 << 13;
  for (uint64_t i = 0; i < 2 * lines; i++)
    machine_strided(m, (int)(i % lines % MACHINE_SMS), LINE(i % lines), 4, 4, SOL_MEM_LOAD_L2, 0);
  machine_drain(m);
  CHECK_INT(m->l2_counts[0].reads, 2 * lines * 4);
  CHECK_INT(m->l2_counts[0].read_hits, 0);
  machine_free(m);
}

static void touch(Machine *m, uint64_t line, int first_lane, int lanes, SolMemOp op, uint32_t id) {
  uint64_t addr[32];
  for (uint64_t a = 0; a < 32; a++) addr[a] = LINE(line) + 4 * a;
  machine_access(m, 0, addr, (uint32_t)((UINT64_C(1) << lanes) - 1) << first_lane, 4, op, id);
  machine_drain(m);
}
static uint64_t dram_read(Machine *m) {
  return machine_sum(m).dram_read_bytes;
}

TEST(a_read_miss_fetches_its_half_of_the_line) {
  Machine *m = small(0);
  touch(m, 0, 0, 1, SOL_MEM_LOAD, 0);
  CHECK_INT(dram_read(m), 64);
  touch(m, 0, 8, 1, SOL_MEM_LOAD, 0); // the neighbour came along
  CHECK(dram_read(m) == 64 && m->l2_counts[0].read_hits == 1);
  touch(m, 0, 24, 1, SOL_MEM_LOAD, 0);
  CHECK_INT(dram_read(m), 128);
  touch(m, 1, 7, 10, SOL_MEM_LOAD, 0); // sectors 0, 1 and 2: both halves
  CHECK_INT(dram_read(m), 256);
  touch(m, 2, 8, 8, SOL_MEM_STORE, 1); // what is there already is not brought
  touch(m, 2, 0, 1, SOL_MEM_LOAD, 0);
  CHECK_INT(dram_read(m), 288);
  machine_free(m);
  SolL2Config sectors = machine_l2(1 << 20);
  sectors.dram_bytes = 32;
  m = machine_new(0, &sectors, 1024);
  touch(m, 0, 0, 1, SOL_MEM_LOAD, 0);
  CHECK_INT(dram_read(m), 32);
  machine_free(m);
}

TEST(written_bytes_make_a_sector_whole) {
  Machine *m = small(0);
  touch(m, 0, 0, 3, SOL_MEM_STORE, 0);
  touch(m, 0, 3, 5, SOL_MEM_STORE, 0);
  touch(m, 0, 0, 8, SOL_MEM_LOAD, 1);
  CHECK(dram_read(m) == 0 && m->l2_counts[1].read_hits == 1);
  touch(m, 1, 0, 3, SOL_MEM_STORE, 0); // incomplete: a read brings the sector, with its neighbour
  touch(m, 1, 0, 3, SOL_MEM_LOAD, 1);
  CHECK(dram_read(m) == 64 && m->l2_counts[1].dram_read_bytes == 64 && m->l2_counts[1].read_hits == 1);
  CHECK_INT(sol_l2_dirty_bytes(&m->l2), 64);
  machine_free(m);
}

TEST(a_request_to_l2_is_for_one_line) { // of whole sectors; each that is written in part is one of its own
  Machine *m = small(0);
  touch(m, 0, 0, 32, SOL_MEM_LOAD, 0);
  touch(m, 1, 0, 32, SOL_MEM_STORE, 1);
  CHECK(m->l2_counts[0].requests == 1 && m->l2_counts[1].requests == 1);
  touch(m, 2, 0, 4, SOL_MEM_STORE, 2);
  touch(m, 2, 0, 4, SOL_MEM_STORE, 2);
  CHECK_INT(m->l2_counts[2].requests, 2);
  machine_strided(m, 0, LINE(8), 32, 4, SOL_MEM_STORE, 3); // four bytes of each of 32 sectors, in 8 lines
  machine_drain(m);
  machine_strided(m, 0, LINE(32), 32, 4, SOL_MEM_LOAD, 4);
  machine_drain(m);
  CHECK(m->l2_counts[3].requests == 32 && m->l2_counts[4].requests == 8);
  // A packet a sector, and one for which of its bytes, unless the line is written whole.
  CHECK(m->l1_counts[1].packets == 4 && m->l1_counts[3].packets == 8 + 32 && !m->l1_counts[4].packets);
  machine_free(m);
}

TEST(write_back_counts_for_the_last_writer) {
  Machine *m = small(0);
  touch(m, 0, 0, 32, SOL_MEM_STORE, 0);
  touch(m, 0, 0, 32, SOL_MEM_STORE, 2);
  touch(m, 1, 0, 4, SOL_MEM_STORE, 3);
  CHECK_INT(machine_sum(m).dram_write_bytes, 0);
  CHECK_INT(sol_l2_dirty_bytes(&m->l2), 160);
  for (uint32_t s = 0; s < SOL_SHARDS; s++) sol_l2_flush(&m->l2, s, m->l2_counts, MACHINE_IDS);
  CHECK_INT(m->l2_counts[0].dram_write_bytes, 0);
  CHECK_INT(m->l2_counts[2].dram_write_bytes, 128);
  CHECK(m->l2_counts[3].dram_write_bytes == 32 && m->l2_counts[3].dram_read_bytes == 32);
  CHECK_INT(sol_l2_dirty_bytes(&m->l2), 0);
  touch(m, 2, 0, 32, SOL_MEM_STORE, 2);
  for (uint32_t s = 0; s < SOL_SHARDS; s++) sol_l2_next_launch(&m->l2, s);
  for (uint32_t s = 0; s < SOL_SHARDS; s++) sol_l2_flush(&m->l2, s, m->l2_counts, MACHINE_IDS);
  CHECK(m->l2_counts[2].dram_write_bytes == 128 && m->l2_counts[MACHINE_IDS].dram_write_bytes == 128);
  machine_free(m);
}

static void next_launch(Machine *m) {
  for (uint32_t s = 0; s < SOL_SHARDS; s++) sol_l2_next_launch(&m->l2, s);
}

TEST(a_launch_knows_what_it_found_of_earlier_ones) {
  Machine *m = small(0);
  touch(m, 0, 0, 32, SOL_MEM_LOAD_L2, 0);
  touch(m, 1, 0, 32, SOL_MEM_STORE, 1);
  CHECK_INT(sol_l2_left_dirty(&m->l2), 128);
  next_launch(m);
  CHECK_INT(sol_l2_left_dirty(&m->l2), 0);
  touch(m, 2, 0, 32, SOL_MEM_LOAD_L2, 0);
  next_launch(m);
  uint64_t before = dram_read(m);
  touch(m, 0, 0, 8, SOL_MEM_LOAD_L2, 0);  // one sector
  touch(m, 0, 0, 32, SOL_MEM_LOAD_L2, 0); // all four: the first is not counted again
  touch(m, 1, 0, 32, SOL_MEM_LOAD_L2, 0);
  touch(m, 2, 0, 16, SOL_MEM_STORE, 0); // two sectors are overwritten, and no longer of before
  touch(m, 2, 0, 32, SOL_MEM_LOAD_L2, 0);
  touch(m, 3, 0, 32, SOL_MEM_LOAD_L2, 0);
  SolL2Earlier e = sol_l2_earlier(&m->l2);
  CHECK_INT(dram_read(m) - before, 128);
  CHECK(e.found[2] == 256 && e.found[1] == 0 && e.found[SOL_OLDEST] == 64);
  CHECK_INT(sol_l2_left_dirty(&m->l2), 64); // not what the first launch wrote
  for (int i = 0; i < 20; i++) next_launch(m);
  touch(m, 3, 0, 32, SOL_MEM_LOAD_L2, 0);
  e = sol_l2_earlier(&m->l2);
  CHECK(e.found[SOL_OLDEST] == 128);
  machine_free(m);
}

TEST(write_backs_for_earlier_launches_are_counted_apart) {
  SolL2Config config = machine_l2(1 << 20);
  Machine *m = machine_new(0, &config, 1024);
  for (uint64_t i = 0; i < 100; i++) touch(m, i, 0, 32, SOL_MEM_STORE, 0);
  CHECK_INT(sol_l2_left_dirty(&m->l2), 12800);
  next_launch(m);
  touch(m, 0, 0, 32, SOL_MEM_STORE, 3); // now this launch's
  for (uint64_t i = 1000; i < 1000 + (2 << 20) / 128; i++) touch(m, i, 0, 32, SOL_MEM_LOAD_L2, 1);
  SolL2Earlier e = sol_l2_earlier(&m->l2);
  CHECK_INT(e.written[1], 99 * 128);
  CHECK_INT(m->l2_counts[MACHINE_IDS].dram_write_bytes, 99 * 128);
  CHECK(m->l2_counts[3].dram_write_bytes == 128 && m->l2_counts[1].dram_write_bytes == 0);
  CHECK_INT(sol_l2_left_dirty(&m->l2), 0);
  machine_free(m);
}

// Sets that no launch has used since are as old as the launches that passed, also where the queue of partly written
// lines leads to them.
TEST(partly_written_lines_of_earlier_launches_are_nobodys) {
  SolL2Config config = machine_l2(1 << 20);
  Machine *m = machine_new(0, &config, 1024);
  for (uint64_t i = 0; i < 10; i++) touch(m, i, 0, 4, SOL_MEM_STORE, 0);
  for (int i = 0; i < 3; i++) next_launch(m);
  for (uint64_t i = 1000; i < 1000 + (1 << 20) / 128; i++) touch(m, i, 0, 4, SOL_MEM_STORE, 3);
  SolL2Earlier e = sol_l2_earlier(&m->l2);
  CHECK_INT(e.written[3], 10 * 32);
  CHECK(m->l2_counts[0].dram_write_bytes == 0 && m->l2_counts[MACHINE_IDS].dram_write_bytes == 10 * 32);
  machine_free(m);
}

TEST(copies_between_launches_go_through_l2) {
  Machine *m = small(0);
  touch(m, 0, 0, 32, SOL_MEM_STORE, 0);
  touch(m, 9, 0, 32, SOL_MEM_STORE, 0);
  sol_l2_use(&m->l2, SOL_L2_WRITES, LINE(1) + 32, 256); // from a line's second sector to the first of another
  sol_l2_use(&m->l2, SOL_L2_READS, LINE(5), 128);
  sol_l2_use(&m->l2, SOL_L2_FREES, LINE(9), 128);
  sol_l2_use(&m->l2, SOL_L2_WRITES, LINE(7), 0);
  CHECK_INT(sol_l2_dirty_bytes(&m->l2), 128 + 256);
  CHECK_INT(dram_read(m), 0); // a copy's own traffic is nobody's
  next_launch(m);
  for (uint64_t i = 1; i < 10; i++) touch(m, i, 0, 32, SOL_MEM_LOAD_L2, 0);
  SolL2Earlier e = sol_l2_earlier(&m->l2);
  CHECK(e.found[1] == 0 && e.found[SOL_OLDEST] == 256 + 128);
  for (uint32_t s = 0; s < SOL_SHARDS; s++) sol_l2_flush(&m->l2, s, m->l2_counts, MACHINE_IDS);
  e = sol_l2_earlier(&m->l2);
  CHECK(e.written[1] == 128 && e.written[SOL_OLDEST] == 256);
  machine_free(m);
}

TEST(atomics_change_l2) {
  Machine *m = small(1 << 14);
  for (uint64_t i = 0; i < 4096; i++) touch(m, i, 0, 1, SOL_MEM_ATOMIC, 0);
  CHECK_NEAR((double)dram_read(m), 4096 * 48.0, 0.05); // 32 or 64 bytes
  CHECK(m->l2_counts[0].atomics == 4096 && m->l2_counts[0].atomic_hits == 0);
  CHECK_INT(sol_l2_dirty_bytes(&m->l2), 4096 * 32);
  touch(m, 0, 0, 1, SOL_MEM_ATOMIC, 1);
  CHECK_INT(m->l2_counts[1].atomic_hits, 1);
  machine_free(m);
}

// What shards keep count of equals what their sets hold.
static void check_partial_lines(const Machine *m) {
  for (uint32_t i = 0; i < SOL_SHARDS; i++) {
    uint32_t lines = 0;
    for (uint32_t k = 0; k < UINT32_C(1) << m->l2.bits; k++)
      for (uint32_t way = 0; way < SOL_WAYS; way++) lines += m->l2.shard[i].sets[k].partial[way] != 0;
    if (!CHECK_INT(m->l2.shard[i].partial_lines, lines) || !CHECK(lines <= m->l2.max_partial)) return;
  }
}

TEST(lines_made_whole_are_no_longer_partial) {
  // 54067 may be partial: 40000, made whole by reads, leave room for 40000 more.
  Machine *m = small(0);
  for (uint64_t round = 0; round < 2; round++) {
    for (uint64_t i = 0; i < 40000; i++)
      machine_access(m, 0, &(uint64_t[32]){LINE(i + round * 40000)}[0], 1, 4, SOL_MEM_STORE, 0);
    if (!round)
      for (uint64_t i = 0; i < 40000; i++)
        machine_access(m, 0, &(uint64_t[32]){LINE(i)}[0], 1, 4, SOL_MEM_LOAD, 1);
  }
  machine_drain(m);
  CHECK(m->l2_counts[0].dram_read_bytes == 0 && m->l2_counts[0].dram_write_bytes == 0);
  CHECK_INT(m->l2_counts[1].dram_read_bytes, 40000 * 64);
  check_partial_lines(m);
  machine_free(m);
}

TEST(logs_are_taken_in_turn) {
  // 64 stores of SM 0 and 32 of SM 1 to one line: SM 0 has the second turn, and so the last word.
  Machine *m = small(0);
  for (int i = 0; i < 64; i++) machine_strided(m, 0, LINE(0), 4, 4, SOL_MEM_STORE, 0);
  for (int i = 0; i < 32; i++) machine_strided(m, 1, LINE(0), 4, 4, SOL_MEM_STORE, 1);
  machine_drain(m);
  for (uint32_t s = 0; s < SOL_SHARDS; s++) sol_l2_flush(&m->l2, s, m->l2_counts, MACHINE_IDS);
  CHECK(m->l2_counts[0].dram_write_bytes == 128 && m->l2_counts[1].dram_write_bytes == 0);
  machine_free(m);
}

// Random traffic, drained by one worker or by three in another order: the same counts, per id, and the same
// cache.
TEST(results_do_not_depend_on_the_workers) {
  uint64_t seed = 1;
  SolL2Config config = machine_l2(1 << 20);
  Machine *one = machine_new(1 << 13, &config, 2048);
  Machine *three = machine_new(1 << 13, &config, 2048);
  SolL2Counts worker[3][MACHINE_IDS + 1] = {0};
  for (int wave = 0; wave < 20; wave++) {
    for (int n = 0; n < 1500; n++) {
      uint64_t addr[32];
      seed = seed * UINT64_C(6364136223846793005) + 1;
      int sm = (int)(seed >> 60);
      SolMemOp op = (SolMemOp)(seed >> 40 & 3) == 0 ? SOL_MEM_STORE
                    : seed >> 42 & 7                ? SOL_MEM_LOAD
                                                    : SOL_MEM_ATOMIC;
      for (uint64_t a = 0; a < 32; a++) addr[a] = (seed >> 20) % (3 << 20) + a * (seed >> 50 & 63);
      SolCoalesced c;
      sol_coalesce(addr, (uint32_t)(seed >> 13) | 1, 4, &c);
      bool a = sol_l1_access(&one->l1[sm], &c, op, n & 7, &one->l1_counts[n & 7], &one->log[sm]);
      bool b = sol_l1_access(&three->l1[sm], &c, op, n & 7, &three->l1_counts[n & 7], &three->log[sm]);
      CHECK(a == b);
    }
    machine_drain(one);
    for (int i = 0; i < MACHINE_SMS; i++) sol_log_sort(&three->log[i]);
    for (uint32_t k = SOL_SHARDS; k-- > 0;)
      sol_l2_drain(&three->l2, k, three->log, MACHINE_SMS, worker[k % 3], MACHINE_IDS);
    for (int i = 0; i < MACHINE_SMS; i++) sol_log_empty(&three->log[i]);
  }
  for (int w = 0; w < 3; w++)
    for (int i = 0; i <= MACHINE_IDS; i++)
      for (size_t k = 0; k < sizeof(SolL2Counts) / 8; k++)
        ((uint64_t *)&three->l2_counts[i])[k] += ((uint64_t *)&worker[w][i])[k];
  CHECK(!memcmp(one->l2_counts, three->l2_counts, sizeof one->l2_counts));
  CHECK(!memcmp(one->l1_counts, three->l1_counts, sizeof one->l1_counts));
  CHECK_INT(sol_l2_dirty_bytes(&one->l2), sol_l2_dirty_bytes(&three->l2));
  check_partial_lines(one);
  check_partial_lines(three);
  SolL2Counts t = machine_sum(one);
  CHECK(t.reads > 10000 && t.read_hits > 100 && t.atomics > 100 && t.dram_write_bytes > 1000000);
  machine_free(one);
  machine_free(three);
}

CHECK_MAIN
