#include "check.h"
#include "mem/banks.h"

// ---- element_index: an expression over the lane `a`, as C reads it, where 3a is 3 * a ----
static long sum_of(const char **at, long a);

static long factor(const char **at, long a) {
  if (**at == '(') {
    ++*at;
    long v = sum_of(at, a);
    if (**at == ')') ++*at;
    return v;
  }
  if (**at == 'a') return ++*at, a;
  char *end;
  long v = strtol(*at, &end, 10);
  if (end == *at) return -1000000; // no number: the index goes astray and the case is refused
  *at = end;
  if (**at == 'a') ++*at, v *= a;
  return v;
}

// In the order of binding: * /, + -, << >>, &, ^.
static long binary(const char **at, long a, int level) {
  if (level == 5) return factor(at, a);
  long v = binary(at, a, level + 1);
  for (;;) {
    const char *p = *at;
    bool shift = (p[0] == '<' && p[1] == '<') || (p[0] == '>' && p[1] == '>');
    static const char *ops[5] = {"^", "&", "<>", "+-", "*/"};
    if (!*p || !strchr(ops[level], *p) || (level == 2 && !shift)) return v;
    *at += level == 2 ? 2 : 1;
    long w = binary(at, a, level + 1);
    v = *p == '^'   ? v ^ w
        : *p == '&' ? v & w
        : *p == '<' ? v << w
        : *p == '>' ? v >> w
        : *p == '+' ? v + w
        : *p == '-' ? v - w
        : *p == '*' ? v * w
                    : v / w;
  }
}

static long sum_of(const char **at, long a) {
  return binary(at, a, 0);
}

static uint32_t lanes_of(const char *text, uint32_t width, uint64_t addr[32]) {
  for (long a = 0; a < 32; a++) {
    const char *at = text;
    long index = sum_of(&at, a);
    if (*at || index < 0) return 0;
    addr[a] = (uint64_t)(index % 1024) * width;
  }
  return UINT32_MAX;
}

TEST(expressions) {
  uint64_t addr[32];
  CHECK(lanes_of("(a>>1)*2+((a&1)<<8)", 4, addr) && addr[3] == 1032);
  CHECK(lanes_of("31-a", 4, addr) && addr[30] == 4);
  CHECK(lanes_of("33a", 8, addr) && addr[31] == 8184);
  CHECK(lanes_of("a^1", 1, addr) && addr[4] == 5);
  CHECK(lanes_of("a/4", 1, addr) && addr[31] == 7);
  CHECK(!lanes_of("a+", 1, addr) && !lanes_of("b", 1, addr));
}

TEST(h200_96_cases) {
  FILE *f = fopen("tests/data/h200-shared-wavefronts.csv", "r");
  if (!CHECK(f != NULL)) return;
  char line[256], text[128];
  int cases = 0;
  while (fgets(line, sizeof line, f)) {
    unsigned width, load, store;
    uint64_t addr[32];
    if (sscanf(line, "%u,%127[^,],%u,%u", &width, text, &load, &store) != 4) continue;
    if (!CHECK_MSG(lanes_of(text, width, addr), "cannot read '%s'", text)) continue;
    unsigned l = sol_banks(addr, UINT32_MAX, width, SOL_SHARED_LOAD).wavefronts;
    unsigned s = sol_banks(addr, UINT32_MAX, width, SOL_SHARED_STORE).wavefronts;
    CHECK_MSG(l == load, "%u bytes at %s: load %u, measured %u", width, text, l, load);
    CHECK_MSG(s == store, "%u bytes at %s: store %u, measured %u", width, text, s, store);
    cases += 2;
  }
  fclose(f);
  CHECK_INT(cases, 96);
}

static const char *const kinds[] = {"load_store", "inc", "add", "atom", "cas", "addf"};
static const SolSharedOp ops[] = {SOL_SHARED_LOAD,   SOL_SHARED_INCREMENT, SOL_SHARED_ATOMIC,
                                  SOL_SHARED_ATOMIC, SOL_SHARED_CAS,       SOL_SHARED_CAS_LOOP};

TEST(h200_drawn_cases) {
  FILE *f = fopen("tests/data/h200-shared-probe.csv", "r");
  if (!CHECK(f != NULL)) return;
  char line[512], kind[16];
  int cases[6] = {0}, sass_loads = 0, sass_stores = 0;
  while (fgets(line, sizeof line, f)) {
    unsigned width, mask, want, sass_load = 0, sass_store = 0;
    int at = 0, k = 0;
    if (line[0] == '#' || sscanf(line, "%15[^,],%u,%x,%n", kind, &width, &mask, &at) < 3 || !at) continue;
    uint64_t addr[32];
    char *p = line + at;
    for (int a = 0; a < 32; a++) addr[a] = strtoul(p, &p, 10) * width;
    if (!CHECK(sscanf(p, ",%u,%u,%u", &want, &sass_load, &sass_store) >= 1)) continue;
    while (k < 6 && strcmp(kind, kinds[k]) != 0) k++;
    if (!CHECK_MSG(k < 6, "unknown kind '%s'", kind)) continue;
    unsigned got = sol_banks(addr, mask, width, ops[k]).wavefronts;
    unsigned store = sol_banks(addr, mask, width, SOL_SHARED_STORE).wavefronts;
    if (k == 0) sass_loads += got == sass_load, sass_stores += store == sass_store, got += store;
    CHECK_MSG(got == want, "%s: %u, measured %u", line, got, want);
    cases[k]++;
  }
  fclose(f);
  CHECK_INT(cases[0], 208);
  for (int k = 1; k < 6; k++) CHECK_INT(cases[k], 16);
  CHECK_INT(sass_stores, 208); // ncu's two counters agree on stores
  CHECK_INT(sass_loads, 178);  // and on loads differ in 30 cases
}

// ---- The rules again, in the plainest way, for what has a short cut in banks.c ----
static unsigned plain_passes(const uint64_t addr[32], uint32_t mask, uint32_t width, bool shared) {
  unsigned most = 0;
  for (unsigned bank = 0; bank < 32; bank++) {
    uint64_t words[32 * 9];
    unsigned n = 0;
    for (int a = 0; a < 32; a++)
      for (uint64_t w = addr[a] / 4; mask >> a & 1 && w <= (addr[a] + width - 1) / 4; w++) {
        unsigned k = 0;
        if (w % 32 != bank) continue;
        while (shared && k < n && words[k] != w) k++;
        if (!shared) k = n;
        words[k] = w;
        if (k == n) n++;
      }
    if (n > most) most = n;
  }
  return most;
}

static unsigned plain_wavefronts(const uint64_t addr[32], uint32_t mask, uint32_t width, SolSharedOp op) {
  unsigned lanes = width <= 4 ? 32 : width <= 8 ? 16 : width <= 16 ? 8 : 4, sum = 0;
  for (unsigned flip = 1; flip <= 2 && width > 4 && op == SOL_SHARED_LOAD; flip++) {
    bool agree = true;
    for (unsigned a = 0; a < 32; a++)
      if (mask >> a & 1 && mask >> (a ^ flip) & 1 && addr[a] != addr[a ^ flip]) agree = false;
    if (agree) {
      lanes *= 2;
      break;
    }
  }
  for (unsigned first = 0; first < 32; first += lanes) {
    uint32_t group = mask & (uint32_t)((UINT64_C(1) << lanes) - 1) << first;
    sum += plain_passes(addr, group, width, op <= SOL_SHARED_INCREMENT) * (op == SOL_SHARED_CAS ? 2 : 1);
  }
  return sum;
}

static unsigned plain_ideal(const uint64_t addr[32], uint32_t mask, uint32_t width) {
  uint64_t words[32 * 9];
  unsigned n = 0;
  for (int a = 0; a < 32; a++)
    for (uint64_t w = addr[a] / 4; mask >> a & 1 && w <= (addr[a] + width - 1) / 4; w++) {
      unsigned k = 0;
      while (k < n && words[k] != w) k++;
      words[k] = w;
      if (k == n) n++;
    }
  return (n + 31) / 32;
}

static uint64_t draw_state = 3;
static uint32_t draw(uint32_t n) {
  draw_state = draw_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(draw_state >> 33) % n;
}

TEST(all_paths_agree_with_the_rules) {
  static const uint32_t widths[] = {1, 2, 4, 8, 16, 32, 3, 12};
  for (int n = 0; n < 60000; n++) {
    uint64_t addr[32];
    uint32_t width = widths[draw(n % 10 ? 5 : 8)], mask = draw(3) ? UINT32_MAX : draw(1u << 31) * 2 + draw(2);
    uint32_t stride = draw(70) * (draw(2) ? width : 1), base = draw(64) * (draw(4) ? width : 1);
    uint32_t keep = draw(2) ? 31 : draw(32), range = 1u << draw(11);
    int kind = n % 4;
    for (uint32_t a = 0; a < 32; a++) {
      uint32_t lane = a & keep;
      addr[a] = kind == 0   ? base + a * stride
                : kind == 1 ? base + lane * stride
                : kind == 2 ? base + draw(range) * width
                            : draw(4096);
    }
    for (int op = SOL_SHARED_LOAD; op <= SOL_SHARED_CAS; op++) {
      SolWavefronts w = sol_banks(addr, mask, width, (SolSharedOp)op);
      unsigned want = plain_wavefronts(addr, mask, width, (SolSharedOp)op);
      if (!CHECK_MSG(w.wavefronts == want, "op %d width %u mask %08x stride %u base %u: %u, expected %u", op,
                     width, mask, stride, base, w.wavefronts, want))
        return;
      if (!CHECK_INT(w.ideal, plain_ideal(addr, mask, width))) return;
    }
  }
}

TEST(no_active_lane_takes_no_pass) {
  uint64_t addr[32] = {0};
  CHECK_INT(sol_banks(addr, 0, 4, SOL_SHARED_LOAD).wavefronts, 0);
  CHECK_INT(sol_banks(addr, 0, 16, SOL_SHARED_STORE).ideal, 0);
  CHECK_INT(sol_banks(addr, UINT32_MAX, 0, SOL_SHARED_LOAD).wavefronts, 0);
}

TEST(ideal_is_by_distinct_words) {
  uint64_t addr[32];
  for (uint64_t a = 0; a < 32; a++) addr[a] = a * 128;
  SolWavefronts w = sol_banks(addr, UINT32_MAX, 4, SOL_SHARED_STORE);
  CHECK(w.wavefronts == 32 && w.ideal == 1);
  w = sol_banks(addr, UINT32_MAX, 16, SOL_SHARED_LOAD);
  CHECK(w.wavefronts == 32 && w.ideal == 4);
  memset(addr, 0, sizeof addr);
  w = sol_banks(addr, UINT32_MAX, 16, SOL_SHARED_STORE);
  CHECK(w.wavefronts == 4 && w.ideal == 1);
}

TEST(bytes_of_one_word_share_a_pass) {
  uint64_t addr[32];
  for (uint64_t a = 0; a < 32; a++) addr[a] = a;
  CHECK_INT(sol_banks(addr, UINT32_MAX, 1, SOL_SHARED_STORE).wavefronts, 1);
  for (uint64_t a = 0; a < 32; a++) addr[a] = a * 2;
  CHECK_INT(sol_banks(addr, UINT32_MAX, 2, SOL_SHARED_LOAD).wavefronts, 1);
  CHECK_INT(sol_banks(addr, UINT32_MAX, 2, SOL_SHARED_ATOMIC).wavefronts, 2);
}

CHECK_MAIN
