// Fat binaries: entries in all packings, the choice among them, damage of every field, LZ4 and cubins.
#include "image/fatbin.h"

#include "base/heap.h"
#include "check.h"

typedef struct Maker {
  uint8_t data[65536];
  size_t size;
} Maker;

static void put(Maker *m, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) m->data[m->size++] = (uint8_t)(value >> 8 * i);
}

static void put_at(Maker *m, size_t at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) m->data[at + (size_t)i] = (uint8_t)(value >> 8 * i);
}

static void open_container(Maker *m) {
  m->size = 0;
  put(m, 0xBA55ED50u, 4);
  put(m, 1, 2);
  put(m, 16, 2);
  put(m, 0, 8);
}

enum { PLAIN = 0, LZ4 = 0x2000, ZSTD = 0x8000, EXACT = 0x100000, FAMILY = 0x200000 };
static size_t add_entry(Maker *m, int kind, int arch, uint64_t flags, const void *data, size_t size,
                        size_t unpacked) {
  size_t at = m->size, padded = (size + 7) / 8 * 8;
  put(m, (uint64_t)kind, 2);
  put(m, 0x101, 2);
  put(m, 64, 4);
  put(m, padded, 8);
  put(m, flags & (LZ4 | ZSTD) ? size : 0, 4);
  put(m, 0, 4);
  put(m, 0, 4);
  put(m, (uint64_t)arch, 4);
  put(m, 0, 8);
  put(m, flags | 0x11, 8);
  put(m, 0, 8);
  put(m, unpacked, 8);
  memcpy(m->data + m->size, data, size);
  memset(m->data + m->size + size, 0, padded - size);
  m->size += padded;
  put_at(m, 8, m->size - 16, 8);
  return at;
}

static size_t add_text(Maker *m, int arch, uint64_t flags, const char *text) {
  return add_entry(m, 1, arch, flags, text, strlen(text) + 1, 0);
}

// What is chosen for a device, unpacked; "-" and the error where there is nothing.
static const char *choose(const Maker *m, int cc, SolError *err) {
  static char got[4096];
  SolFatbin fat;
  SolFatEntry entry;
  char *text;
  size_t length;
  *err = (SolError){0};
  if (sol_fatbin_open(m->data, m->size, &fat, err) || sol_fatbin_choose_ptx(&fat, cc, &entry, err) ||
      sol_fatbin_text(&entry, &text, &length, err))
    return "-";
  CHECK_INT(strlen(text), length);
  snprintf(got, sizeof got, "%s", text);
  sol_heap_free(text);
  return got;
}

TEST(newest_that_runs) {
  Maker m;
  SolError err;
  open_container(&m);
  add_entry(&m, 2, 90, 0, "\177ELF", 4, 0);
  add_text(&m, 75, 0, "seventy-five");
  add_text(&m, 90, EXACT, "ninety a");
  add_text(&m, 90, 0, "ninety");
  add_text(&m, 100, FAMILY, "hundred f");
  add_text(&m, 120, 0, "hundred and twenty");
  CHECK_STR(choose(&m, 75, &err), "seventy-five");
  CHECK_STR(choose(&m, 89, &err), "seventy-five");
  CHECK_STR(choose(&m, 90, &err), "ninety a");
  CHECK_STR(choose(&m, 100, &err), "hundred f");
  CHECK_STR(choose(&m, 103, &err), "hundred f");
  CHECK_STR(choose(&m, 110, &err), "ninety"); // another family
  CHECK_STR(choose(&m, 121, &err), "hundred and twenty");
  CHECK_STR(choose(&m, 70, &err), "-");
  CHECK_INT(err.status, SOL_ERR_NOT_FOUND);
  CHECK_HAS(err.message, "sm_120; the emulated GPU is sm_70");
  CHECK_HAS(err.hint, "-gencode arch=compute_70,code=[sm_70,compute_70]");
}

TEST(no_ptx) {
  Maker m;
  SolError err;
  open_container(&m);
  CHECK_STR(choose(&m, 90, &err), "-");
  CHECK_HAS(err.message, "no code");
  add_entry(&m, 2, 90, 0, "\177ELF", 4, 0);
  CHECK_STR(choose(&m, 90, &err), "-");
  CHECK_HAS(err.message, "machine code alone");
  open_container(&m);
  add_text(&m, 90, EXACT, "x");
  CHECK_STR(choose(&m, 100, &err), "-");
  CHECK_HAS(err.message, "sm_90a");
}

TEST(machine_code) {
  Maker m;
  SolFatbin fat;
  SolFatEntry entry;
  open_container(&m);
  add_text(&m, 75, 0, "text");
  CHECK(!sol_fatbin_open(m.data, m.size, &fat, NULL) && !sol_fatbin_choose_elf(&fat, 90, &entry));
  add_entry(&m, 2, 100, 0, "100", 3, 0);
  add_entry(&m, 2, 80, 0, "80", 2, 0);
  add_entry(&m, 2, 120, 0, "120", 3, 0);
  add_entry(&m, 2, 75, 0, "75", 2, 0);
  CHECK(!sol_fatbin_open(m.data, m.size, &fat, NULL));
  const int cases[][2] = {{90, 80}, {100, 100}, {110, 100}, {130, 120}, {75, 75}, {70, 75}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CHECK(sol_fatbin_choose_elf(&fat, cases[i][0], &entry));
    CHECK_INT(entry.arch, cases[i][1]);
  }
}

// ---- packings ----

TEST(lz4) {
  const struct {
    const char *packed;
    size_t size;
    const char *want; // NULL: damaged
  } cases[] = {
      {"\x50hello", 6, "hello"},
      {"\x31"
       "abc\x03\x00\x20yz",
       9, "abcabcabyz"}, // a match of five that overlaps itself
      {"\x1f"
       "a\x01\x00\x02\x00",
       6, "aaaaaaaaaaaaaaaaaaaaaa"}, // 15 + 2 + 4 more, then nothing
      {"\xf0\x01"
       "0123456789abcdef",
       18, "0123456789abcdef"}, // 16 literals
      {"\x00", 1, ""},
      {"", 0, NULL},
      {"\x50hell", 5, NULL},                               // literals cut short
      {"\x50hello\x06", 7, NULL},                          // half an offset
      {"\x51hello\x06\x00\x00", 9, NULL},                  // before the start
      {"\x51hello\x00\x00\x00", 9, NULL},                  // no distance
      {"\xff", 1, NULL},                                   // length cut short
      {"\x51hello\x05\x00", 8, NULL},                      // ends with a match
      {"\x5fhello\x05\x00\xff\xff\xff\x00\x00", 13, NULL}, // more than the text has
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char out[64] = {0};
    size_t size = cases[i].want ? strlen(cases[i].want) : 32;
    bool ok = sol_lz4_unpack((const uint8_t *)cases[i].packed, cases[i].size, (uint8_t *)out, size);
    CHECK_MSG(ok == (cases[i].want != NULL), "case %zu", i);
    if (cases[i].want) CHECK_STR(out, cases[i].want);
    if (cases[i].want && size) // one byte more or less is damage
      CHECK(!sol_lz4_unpack((const uint8_t *)cases[i].packed, cases[i].size, (uint8_t *)out, size - 1) &&
            !sol_lz4_unpack((const uint8_t *)cases[i].packed, cases[i].size, (uint8_t *)out, size + 1));
  }
}

// A frame of one block stored as it is, as the format's specification has it.
static size_t zstd_stored(uint8_t *to, const char *text) {
  size_t n = strlen(text) + 1;
  const uint8_t head[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, (uint8_t)n, (uint8_t)(n << 3 | 1), (uint8_t)(n >> 5),
                          0};
  memcpy(to, head, sizeof head);
  memcpy(to + sizeof head, text, n);
  return sizeof head + n;
}

TEST(packings) {
  Maker m;
  SolError err;
  uint8_t packed[128];
  open_container(&m);
  add_entry(&m, 1, 75, LZ4, "\x60.five\0", 7, 6);
  CHECK_STR(choose(&m, 90, &err), ".five");
  size_t size = zstd_stored(packed, ".version 9.0");
  add_entry(&m, 1, 80, ZSTD, packed, size, 13);
  const char *got = choose(&m, 90, &err);
  if (err.status == SOL_ERR_UNSUPPORTED) { // no library here: then it says so
    CHECK_HAS(err.message, "libzstd.so.1");
    CHECK_HAS(err.hint, "--compress-mode=none");
    return;
  }
  CHECK_STR(got, ".version 9.0");
  open_container(&m);
  add_entry(&m, 1, 80, ZSTD, packed, size - 1, 13);
  CHECK_STR(choose(&m, 90, &err), "-");
  CHECK_HAS(err.message, "zstd frame does not unpack");
  open_container(&m);
  add_entry(&m, 1, 80, LZ4, "\x60.fi", 4, 6);
  CHECK_STR(choose(&m, 90, &err), "-");
  CHECK_HAS(err.message, "LZ4 block does not unpack");
}

TEST(damage) {
  Maker good, m;
  SolError err;
  open_container(&good);
  size_t entry = add_text(&good, 75, 0, "text");
  CHECK_STR(choose(&good, 90, &err), "text");
  const struct {
    size_t at;
    uint64_t value;
    int bytes;
    const char *part;
  } cases[] = {
      {0, 0x12345678, 4, "no fat binary"},
      {6, 8, 2, "no fat binary"},
      {8, 1000, 8, "cut short"},
      {8, ~0ull, 8, "no fat binary"},
      {entry + 4, 63, 4, "the header's size"},
      {entry + 4, 4000, 4, "the header's size"},
      {entry + 8, ~0ull, 8, "the size"},
      {entry + 8, 9, 8, "the size"},
      {entry + 16, 9, 4, "the compressed size"},
      {8, 65, 8, "the size"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    m = good;
    put_at(&m, cases[i].at, cases[i].value, cases[i].bytes);
    CHECK_STR(choose(&m, 90, &err), "-");
    CHECK_HAS(err.message, cases[i].part);
  }
  m = good;
  put_at(&m, entry + 40, LZ4, 8);
  put_at(&m, entry + 56, (uint64_t)1 << 40, 8);
  CHECK_STR(choose(&m, 90, &err), "-");
  CHECK_HAS(err.message, "unpacked size");
  SolFatbin fat;
  for (size_t cut = 0; cut < good.size; cut++) CHECK(sol_fatbin_open(good.data, cut, &fat, &err) != SOL_OK);
}

// ---- registers ----

static void put_section(Maker *m, uint64_t name, uint64_t offset, uint64_t size, uint64_t link) {
  put(m, name, 4);
  put(m, 1, 4);
  put(m, 0, 8);
  put(m, 0, 8);
  put(m, offset, 8);
  put(m, size, 8);
  put(m, link, 4);
  put(m, 0, 4);
  put(m, 0, 8);
  put(m, 0, 8);
}

static void make_cubin(Maker *m) {
  static const char names[] = "\0.nv.info\0kernel\0other";
  m->size = 0;
  put(m, 0x464c457f, 4);
  put(m, 0x0102, 2);
  m->size = 64;
  memset(m->data + 6, 0, 58);
  size_t texts = m->size;
  memcpy(m->data + m->size, names, sizeof names);
  m->size += sizeof names;
  size_t symbols = m->size;
  memset(m->data + m->size, 0, 3 * 24);
  put_at(m, symbols + 24, 17, 4); // other
  put_at(m, symbols + 48, 10, 4); // kernel
  m->size += 3 * 24;
  size_t info = m->size;
  put(m, 0x0003, 2); // a record without data
  put(m, 7, 2);
  for (int i = 1; i < 3; i++) {
    put(m, 0x2f04, 2);
    put(m, 8, 2);
    put(m, (uint64_t)i, 4);
    put(m, (uint64_t)(i * 20), 4);
    put(m, 0x1104, 2); // the frame
    put(m, 8, 2);
    put(m, (uint64_t)i, 4);
    put(m, (uint64_t)(i * 400), 4);
  }
  size_t end = m->size, table = m->size;
  put_section(m, 0, texts, sizeof names, 0);
  put_section(m, 0, symbols, 3 * 24, 0);
  put_section(m, 1, info, end - info, 1);
  put_at(m, 40, table, 8);
  put_at(m, 60, 3, 2);
  put_at(m, 62, 0, 2);
}

TEST(registers) {
  static Maker m, bad;
  make_cubin(&m);
  CHECK_INT(sol_cubin_registers(m.data, m.size, "kernel"), 40);
  CHECK_INT(sol_cubin_registers(m.data, m.size, "other"), 20);
  CHECK_INT(sol_cubin_registers(m.data, m.size, "kern"), 0);
  CHECK_INT(sol_cubin_registers(m.data, m.size, ""), 0);
  CHECK_INT(sol_cubin_stack(m.data, m.size, "kernel"), 800);
  CHECK_INT(sol_cubin_stack(m.data, m.size, "other"), 400);
  CHECK_INT(sol_cubin_stack(m.data, m.size, "kern"), 0);
  for (size_t cut = 0; cut < m.size; cut++) { // a copy of its own size: sanitizers see any step beyond
    uint8_t *part = malloc(cut + 1);
    memcpy(part, m.data, cut);
    CHECK_INT(sol_cubin_registers(part, cut, "kernel"), 0);
    free(part);
  }
  for (size_t at = 0; at < m.size; at++) {
    bad = m;
    bad.data[at] ^= 0xff;
    int got = sol_cubin_registers(bad.data, bad.size, "kernel");
    CHECK(got >= 0 && got < 1024);
  }
}

CHECK_MAIN
