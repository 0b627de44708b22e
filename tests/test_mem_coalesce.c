#include "check.h"
#include "mem/coalesce.h"

#include "mem/bits.h"

static uint64_t draw_state = 7;
static uint64_t draw(void) {
  draw_state = draw_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return draw_state >> 20 ^ draw_state << 30;
}

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

// Drops repeats of a sorted list.
static int unique(uint64_t *list, int n) {
  int kept = 0;
  for (int i = 0; i < n; i++)
    if (!i || list[i] != list[i - 1]) list[kept++] = list[i];
  return kept;
}

static bool has_byte(const SolCoalesced *c, uint64_t at) {
  for (uint32_t i = 0; i < c->lines; i++)
    if (c->line[i].line == at / 128) return c->line[i].bytes[at / 32 % 4] >> at % 32 & 1;
  return false;
}

// Against a list of every byte touched.
static bool check_request(const uint64_t addr[32], uint32_t mask, uint32_t width) {
  static uint64_t bytes[32 * 32];
  int n = 0;
  for (int i = 0; i < 32; i++)
    for (uint32_t k = 0; k < width && mask >> i & 1; k++) bytes[n++] = addr[i] + k;
  qsort(bytes, (size_t)n, sizeof *bytes, by_value);
  n = unique(bytes, n);
  SolCoalesced c;
  memset(&c, 0xaa, sizeof c);
  sol_coalesce(addr, mask, width, &c);
  bool ok = c.bytes == (uint32_t)n && c.ideal_sectors == (uint32_t)(n + 31) / 32;
  uint32_t total = 0;
  for (int i = 0; i < n; i++) ok = ok && has_byte(&c, bytes[i]);
  for (uint32_t i = 0; i < c.lines; i++)
    for (uint32_t k = 0; k < 4; k++) {
      total += sol_bits_count(c.line[i].bytes[k]);
      ok = ok && (c.line[i].sectors >> k & 1) == (c.line[i].bytes[k] != 0);
      ok = ok && (c.line[i].whole >> k & 1) == (c.line[i].bytes[k] == UINT32_MAX);
    }
  for (int i = 0; i < n; i++) bytes[i] /= 32;
  n = unique(bytes, n);
  ok = ok && c.sectors == (uint32_t)n;
  for (int i = 0; i < n; i++) bytes[i] /= 4;
  n = unique(bytes, n);
  ok = ok && c.lines == (uint32_t)n && total == c.bytes;
  return CHECK_MSG(ok, "width %u mask %08x from %llx: %u lines %u sectors %u bytes", width, mask,
                   (unsigned long long)addr[0], c.lines, c.sectors, c.bytes);
}

static uint32_t strided_sectors(uint64_t base, uint64_t stride, uint32_t width) {
  uint64_t addr[32];
  SolCoalesced c;
  for (uint64_t i = 0; i < 32; i++) addr[i] = base + i * stride;
  sol_coalesce(addr, UINT32_MAX, width, &c);
  check_request(addr, UINT32_MAX, width);
  return c.sectors;
}

// What cp.async counts: the sum over the parts of 128 bytes.
static void check_copy(const uint64_t addr[32], uint32_t mask, uint32_t width) {
  SolCoalesced all, part, copy;
  uint32_t lanes = 128 / width, lines = 0, sectors = 0;
  sol_coalesce(addr, mask, width, &all);
  sol_coalesce_copy(addr, mask, width, &copy);
  for (uint32_t first = 0; first < 32; first += lanes) {
    sol_coalesce(addr, lanes < 32 ? mask & ((1u << lanes) - 1) << first : mask, width, &part);
    for (uint32_t i = 0; i < part.lines; i++)
      CHECK(!memcmp(&copy.line[lines + i], &part.line[i], sizeof part.line[i]));
    lines += part.lines, sectors += part.sectors;
  }
  CHECK_INT(copy.lines, lines);
  CHECK_INT(copy.sectors, sectors);
  CHECK_INT(copy.ideal_sectors, all.ideal_sectors);
  CHECK_INT(copy.bytes, all.bytes);
}

TEST(copies) {
  static const struct {
    uint64_t base;
    uint32_t width, lines, sectors;
  } known[] = {{4096, 4, 1, 4},      {4096, 8, 2, 8},        {4096, 16, 4, 16},     {4096 + 4, 4, 2, 5},
               {4096 + 8, 8, 4, 10}, {4096 + 16, 16, 8, 20}, {4096 + 32, 16, 8, 16}};
  for (size_t k = 0; k < SOL_COUNT(known); k++) {
    uint64_t addr[32];
    SolCoalesced c;
    for (uint64_t i = 0; i < 32; i++) addr[i] = known[k].base + i * known[k].width;
    sol_coalesce_copy(addr, UINT32_MAX, known[k].width, &c);
    CHECK_INT(c.lines, known[k].lines);
    CHECK_INT(c.sectors, known[k].sectors);
    check_copy(addr, UINT32_MAX, known[k].width);
    check_copy(addr, 0x5a0ff017, known[k].width);
    check_copy(addr, 0, known[k].width);
  }
}

TEST(known_counts) {
  CHECK_INT(strided_sectors(4096, 4, 4), 4);
  CHECK_INT(strided_sectors(4096, 8, 8), 8);
  CHECK_INT(strided_sectors(4096, 16, 16), 16);
  CHECK_INT(strided_sectors(4096, 32, 32), 32);
  CHECK_INT(strided_sectors(4096, 1, 1), 1);
  CHECK_INT(strided_sectors(4096, 2, 2), 2);
  CHECK_INT(strided_sectors(4096, 8, 4), 8);
  CHECK_INT(strided_sectors(4096, 128, 4), 32);
  CHECK_INT(strided_sectors(4100, 4, 4), 5);
  CHECK_INT(strided_sectors(4096, 0, 4), 1);
  CHECK_INT(strided_sectors(4096 + 127, 0, 4), 2); // one straddling address, all lanes
  CHECK_INT(strided_sectors(4096 + 124, 128, 8), 64);
  CHECK_INT(strided_sectors(1 << 20, (uint64_t)-4, 4), 5); // downwards
}

TEST(a_request_needs_an_active_lane) {
  uint64_t addr[32] = {0};
  SolCoalesced c;
  sol_coalesce(addr, 0, 4, &c);
  CHECK(c.lines == 0 && c.sectors == 0 && c.ideal_sectors == 0 && c.bytes == 0);
  sol_coalesce(addr, 1, 0, &c);
  CHECK_INT(c.lines, 0);
  sol_coalesce(addr, 1, 33, &c);
  CHECK_INT(c.lines, 0);
}

TEST(inactive_lanes_do_not_count) {
  uint64_t addr[32];
  for (uint64_t i = 0; i < 32; i++) addr[i] = i < 7 ? 512 + 4 * i : draw();
  SolCoalesced c;
  sol_coalesce(addr, 0x7f, 4, &c);
  CHECK_INT(c.sectors, 1);
  CHECK_INT(c.bytes, 28);
  sol_coalesce(addr, 0x55, 4, &c);
  CHECK(c.sectors == 1 && c.bytes == 16);
}

TEST(ideal_is_by_distinct_bytes) {
  uint64_t addr[32];
  SolCoalesced c;
  for (uint64_t i = 0; i < 32; i++) addr[i] = i * 4096;
  sol_coalesce(addr, UINT32_MAX, 4, &c);
  CHECK(c.sectors == 32 && c.ideal_sectors == 4);
  for (uint64_t i = 0; i < 32; i++) addr[i] = i % 2 * 4096;
  sol_coalesce(addr, UINT32_MAX, 4, &c);
  CHECK(c.sectors == 2 && c.ideal_sectors == 1 && c.bytes == 8);
}

TEST(lines_come_in_the_order_of_lanes) {
  uint64_t addr[32];
  SolCoalesced c;
  for (uint64_t i = 0; i < 32; i++) addr[i] = (i * 7 % 32) * 1024;
  sol_coalesce(addr, UINT32_MAX, 4, &c);
  if (!CHECK_INT(c.lines, 32)) return;
  for (uint32_t i = 0; i < 32; i++) CHECK_INT(c.line[i].line, addr[i] / 128);
}

// The width and the bytes from thread to thread of a pattern in the file.
static bool pattern_of(const char *name, uint32_t *width, uint64_t *stride, uint64_t *offset) {
  static const struct {
    const char *name;
    uint32_t width, stride, offset;
  } known[] = {{"\"y[i]=2*x[i], float\"", 4, 4, 0},
               {"\"i*2\"", 4, 8, 0},
               {"\"i*32\"", 4, 128, 0},
               {"\"float4\"", 16, 16, 0},
               {"\"y[i+1]=2*x[i+1], float\"", 4, 4, 4}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(name, known[i].name)) {
      *width = known[i].width, *stride = known[i].stride, *offset = known[i].offset;
      return true;
    }
  return false;
}

TEST(h200_requests_and_sectors) {
  FILE *f = fopen("tests/data/h200-global-sectors.csv", "r");
  if (!CHECK(f != NULL)) return;
  char line[512];
  int rows = 0;
  while (fgets(line, sizeof line, f)) {
    char *end = strrchr(line, '"');
    if (line[0] != '"' || !end) continue;
    long long want[4];
    uint32_t width = 0;
    uint64_t stride = 0, offset = 0, requests = 0, sectors = 0;
    if (!CHECK_INT(sscanf(end + 1, ",%lld,%lld,%lld,%lld", &want[0], &want[1], &want[2], &want[3]), 4)) break;
    end[1] = 0;
    if (!CHECK_MSG(pattern_of(line, &width, &stride, &offset), "unknown pattern %s", line)) continue;
    for (uint64_t warp = 0; warp < 4194304 / 32; warp++) {
      uint64_t addr[32];
      SolCoalesced c;
      for (uint64_t i = 0; i < 32; i++) addr[i] = (UINT64_C(1) << 34) + offset + (warp * 32 + i) * stride;
      sol_coalesce(addr, UINT32_MAX, width, &c);
      requests += c.lines != 0;
      sectors += c.sectors;
    }
    CHECK_INT(requests, want[0]);
    CHECK_INT(sectors, want[1]);
    CHECK_INT(requests, want[2]); // stores of the same elements
    CHECK_INT(sectors, want[3]);
    rows++;
  }
  fclose(f);
  CHECK_INT(rows, 5);
}

TEST(random_requests) {
  static const uint64_t spans[] = {64, 300, 4096, 1 << 16, UINT64_C(1) << 40};
  for (int n = 0; n < 40000; n++) {
    uint64_t addr[32], base = n % 17 ? draw() : UINT64_MAX - 200, span = spans[draw() % 5];
    uint32_t width = UINT32_C(1) << draw() % 6, mask = n % 3 ? UINT32_MAX : (uint32_t)draw();
    if (n % 11 == 0) width = 1 + (uint32_t)(draw() % 32);
    uint64_t stride = draw() % 3 ? draw() % 200 : width;
    int kind = n % 4;
    for (uint64_t i = 0; i < 32; i++) {
      addr[i] = base + (kind == 0 ? draw() % span : kind == 1 ? i * stride : (i ^ draw() % 2) * stride);
      if (kind == 3) addr[i] = addr[i] / width * width;
    }
    if (n % 5 == 0) mask = UINT32_MAX >> draw() % 32; // the first lanes alone
    if (!check_request(addr, mask, width)) break;
  }
}

TEST(bit_helpers) {
  for (uint32_t m = 0; m < 16; m++) CHECK_INT(sol_sector_count(m), __builtin_popcount(m));
  for (int n = 0; n < 1000; n++) {
    uint32_t x = (uint32_t)draw();
    CHECK_INT(sol_bits_count(x), __builtin_popcount(x));
  }
  for (uint32_t k = 0; k < 16; k++) CHECK_INT(sol_nibble(UINT64_C(0xfedcba9876543210), k), k);
  CHECK(sol_low_bits(0) == 0 && sol_low_bits(32) == UINT32_MAX && sol_low_bits(5) == 31);
}

CHECK_MAIN
