// Fat binaries: entries in all packings, the choice among them, damage of every field, LZ4 and cubins.
#include "image/fatbin.h"

#include "base/heap.h"
#include "check.h"
#include "image/numbers.h"

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

// 40 lines that `zstd -19` packed: Huffman codes with packed weights, sequences with tables of their own.
static const uint8_t zstd_lines[] = {
    0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x68, 0x1d, 0x08, 0x00, 0xa6, 0x91, 0x27, 0x12, 0xc0, 0x17, 0x3a, 0xd6,
    0xf1, 0x0f, 0xe4, 0xee, 0xbd, 0xa5, 0x94, 0x29, 0x6d, 0x03, 0x40, 0xc7, 0x82, 0x1b, 0x24, 0x00, 0x20,
    0x00, 0x21, 0x00, 0x26, 0x33, 0x86, 0xc9, 0xbc, 0xaa, 0x1d, 0x0b, 0xd1, 0xed, 0xb1, 0x1d, 0xa2, 0x8e,
    0x9f, 0x13, 0x7b, 0xac, 0x47, 0x47, 0x57, 0x01, 0x83, 0x72, 0xc7, 0x32, 0x04, 0x46, 0x61, 0x08, 0xcc,
    0x3f, 0x08, 0x0a, 0x05, 0x42, 0x6d, 0x75, 0x7c, 0x8d, 0xd6, 0xad, 0xd2, 0x3d, 0x0e, 0x6a, 0xa9, 0xf1,
    0x9f, 0x8a, 0xf1, 0x48, 0xfc, 0x7e, 0x14, 0xe5, 0xce, 0xf8, 0xad, 0xa0, 0xb1, 0x25, 0xfa, 0x7a, 0x1c,
    0x2a, 0x44, 0x04, 0xae, 0x1a, 0x3d, 0xc4, 0x34, 0x92, 0x87, 0xcb, 0x65, 0x72, 0x32, 0xd5, 0x58, 0x3e,
    0xee, 0xb8, 0x0b, 0x51, 0x6d, 0x5f, 0x50, 0x2d, 0xdc, 0xd1, 0x16, 0x26, 0xe1, 0x51, 0xbc, 0x74, 0xa8,
    0x0c, 0x09, 0x80, 0x41, 0x21, 0x1d, 0xc7, 0xe5, 0xa6, 0xf1, 0x27, 0x77, 0x3b, 0xd2, 0xb8, 0xed, 0x91,
    0xb4, 0x3e, 0xee, 0x45, 0x8d, 0xa5, 0x73, 0xfb, 0xf7, 0xf0, 0xa7, 0x7d, 0x89, 0x4f, 0x47, 0x52, 0x02,
    0x56, 0xa8, 0x11, 0xd0, 0xb0, 0x13, 0x0c, 0x7a, 0x7f, 0x03, 0x50, 0x2d, 0x51, 0x86, 0x03, 0x30, 0x5c,
    0x28, 0x22, 0x41, 0x9b, 0x03, 0x29, 0xc1, 0xcd, 0x79, 0xb9, 0x2f, 0xaa, 0x5b, 0x98, 0x1b, 0x15, 0x3e,
    0x9f, 0x7e, 0xe3, 0x66, 0xdc, 0xa4, 0x70, 0x3e, 0x34, 0x57, 0x38, 0x82, 0xad, 0x4d, 0xd0, 0xc7, 0x61,
    0x98, 0x9d, 0x6f, 0x29, 0xfd, 0x9e, 0x14, 0x63, 0x6e, 0xc1, 0xba, 0x42, 0x4a, 0x11, 0xbd, 0x07, 0x77,
    0x1b, 0xcb, 0xc4, 0x25, 0xf0, 0x81, 0x2c, 0x98, 0x68, 0x62, 0x39, 0x28, 0xfa, 0x3a, 0x9c, 0x3c, 0x00,
    0x10, 0xf9, 0x65, 0xc0, 0xf4, 0x5a, 0x6c, 0x71, 0x7d, 0xad, 0xe7, 0x57, 0x01};

static size_t lines_of_ptx(char *to, size_t room) {
  uint32_t x = 1;
  size_t n = 0;
  for (int i = 0; i < 40; i++) {
    x = (x * 1103515245u + 12345) & 0x7fffffff;
    n += (size_t)snprintf(to + n, room - n, "add.s32 %%r%d, %%r%u, %u;\n", i, x >> 16 & 63, x >> 8 & 255);
  }
  return n;
}

TEST(zstd) {
  char want[2048], got[2048];
  SolError err;
  size_t n = lines_of_ptx(want, sizeof want), packed = sizeof zstd_lines;
  CHECK_INT(sol_zstd_unpack(zstd_lines, packed, (uint8_t *)got, n, &err), SOL_OK);
  CHECK(!memcmp(got, want, n));
  CHECK_INT(sol_zstd_unpack(zstd_lines, packed, (uint8_t *)got, n - 1, &err), SOL_ERR_SYNTAX);
  CHECK_INT(sol_zstd_unpack(zstd_lines, packed, (uint8_t *)got, n + 1, &err), SOL_ERR_SYNTAX);
  for (size_t cut = 0; cut < packed; cut++)
    CHECK_INT(sol_zstd_unpack(zstd_lines, cut, (uint8_t *)got, n, &err), SOL_ERR_SYNTAX);
  for (size_t bit = 0; bit < 8 * packed; bit++) { // whatever damage unpacks to, it stays within its room
    uint8_t damaged[sizeof zstd_lines];
    memcpy(damaged, zstd_lines, packed);
    damaged[bit / 8] ^= (uint8_t)(1 << bit % 8);
    memset(got, 1, sizeof got);
    sol_zstd_unpack(damaged, packed, (uint8_t *)got, n, &err);
    CHECK_MSG(got[n] == 1 && !memcmp(got + n, got + n + 1, sizeof got - n - 1), "bit %zu", bit);
  }
}

// Registers and labels; not declarations, offsets and names that begin with neither % nor $.
TEST(numbers) {
  static const char text[] =
      "$L__BB0_12:\nld.u32 %r12, [%rd7+-16]; add.s32 %r13, %r12, -5; @%p1 bra $L__BB0_9;\n"
      ".reg .b32 %r<14>; mov.u32 %r4, %tid.x; mov.u64 %rd8, sm_90_param_3; $L__BB1_0: %r4294967295";
  static const char want[] =
      ".numbers differences\n$L__BB0_12:\nld.u32 %r12, [%rd7+-16]; add.s32 %r1, %r-1, -5; @%p1 bra $L__BB0_-3;\n"
      ".reg .b32 %r<14>; mov.u32 %r-8, %tid.x; mov.u64 %rd1, sm_90_param_3; $L__BB1_-9: %r-5";
  char packed[512] = {0}, again[512] = {0};
  size_t size = sol_numbers_pack(text, strlen(text), packed);
  CHECK_STR(packed, want);
  CHECK_INT(size, strlen(want));
  CHECK_INT(sol_numbers_pack(text, strlen(text), NULL), size);
  CHECK(sol_numbers_packed(packed, size) && !sol_numbers_packed(packed, 10) &&
        !sol_numbers_packed(text, strlen(text)));
  CHECK_INT(sol_numbers_unpack(packed, size, again), strlen(text));
  CHECK_STR(again, text);
  Maker m;
  SolError err;
  open_container(&m);
  add_text(&m, 75, 0, packed);
  CHECK_STR(choose(&m, 90, &err), text);
  for (size_t bit = 8 * strlen(".numbers differences\n"); bit < 8 * size; bit++) { // counted as it is written
    char damaged[512], room[4096];
    memcpy(damaged, packed, size);
    damaged[bit / 8] = (char)(damaged[bit / 8] ^ 1 << bit % 8);
    memset(room, 1, sizeof room);
    size_t n = sol_numbers_unpack(damaged, size, NULL);
    CHECK(n < sizeof room - 1 && sol_numbers_unpack(damaged, size, room) == n && room[n] == 1);
  }
}

// A GPU takes machine code of its own generation; newer ones the PTX that is not for one architecture alone.
TEST(what_a_gpu_loads) {
  static const struct {
    int cc, arch;
    SolFatKind kind;
  } cases[] = {{75, 75, SOL_FAT_PTX},   {80, 80, SOL_FAT_ELF},   {89, 80, SOL_FAT_ELF}, {90, 90, SOL_FAT_ELF},
               {100, 100, SOL_FAT_ELF}, {103, 100, SOL_FAT_ELF}, {120, 75, SOL_FAT_PTX}};
  Maker m;
  open_container(&m);
  add_entry(&m, 1, 75, PLAIN, "p75\0\0\0\0", 8, 8);
  add_entry(&m, 2, 80, PLAIN, "e80\0\0\0\0", 8, 8);
  add_entry(&m, 2, 90, EXACT, "e90\0\0\0\0", 8, 8);
  add_entry(&m, 1, 90, EXACT, "p90\0\0\0\0", 8, 8);
  add_entry(&m, 2, 100, PLAIN, "e100\0\0\0", 8, 8);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    SolFatbin fat;
    SolFatEntry e = {0};
    SolError err;
    CHECK_INT(sol_fatbin_open(m.data, m.size, &fat, &err), SOL_OK);
    CHECK_INT(sol_fatbin_choose(&fat, cases[i].cc, &e, &err), SOL_OK);
    CHECK_MSG(e.arch == cases[i].arch && e.kind == cases[i].kind, "sm_%d: sm_%d", cases[i].cc, e.arch);
  }
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
  CHECK_STR(choose(&m, 90, &err), ".version 9.0");
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
