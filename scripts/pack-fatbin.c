// Packs every entry of a fat binary with LZ4, machine code as well as PTX: what `fatbinary --compress-all` writes, but for the
// search, which is longer and finds more. nvcc leaves machine code plain, and it packs to a quarter. LZ4 is what drivers of
// every release unpack, and src/image without a library.
// usage: pack-fatbin FROM TO
#include <stdio.h>
#include <stdlib.h>

#include "base/heap.h"
#include "image/fatbin.h"

enum { ENTRY_HEADER = 64, FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000 };
enum { LEAST = 4, WINDOW = 65535, HASHES = 1 << 16, STEPS = 192, ENOUGH = 512, TAIL = 12, LITERAL_TAIL = 5 };

typedef struct Bytes {
  uint8_t *at;
  size_t size;
} Bytes;

static void *room(size_t bytes) {
  void *p = calloc(1, bytes ? bytes : 1);
  if (!p) fputs("pack-fatbin: out of memory\n", stderr), exit(1);
  return p;
}

static void fail(const char *what, const char *name) {
  fprintf(stderr, "pack-fatbin: %s %s\n", what, name);
  exit(1);
}

// ---- matches ----

typedef struct Match {
  size_t length, back;
} Match;

// Where each four bytes were seen last, and for every position where its four were before that.
typedef struct Chains {
  Bytes from;
  int64_t last[HASHES];
  int64_t *before;
  size_t known; // positions below it are in
} Chains;

static uint32_t hash_of(const uint8_t *at) {
  uint32_t four;
  memcpy(&four, at, sizeof four);
  return four * 2654435761u >> 16;
}

static void learn(Chains *c, size_t up_to) {
  for (; c->known < up_to; c->known++) {
    int64_t *last = &c->last[hash_of(c->from.at + c->known)];
    c->before[c->known] = *last;
    *last = (int64_t)c->known;
  }
}

static size_t common(const Bytes *from, size_t a, size_t b) { // a < b
  size_t end = from->size - LITERAL_TAIL, n = 0;
  while (b + n < end && from->at[a + n] == from->at[b + n]) n++;
  return n;
}

static Match longest(Chains *c, size_t at) {
  Match best = {0};
  learn(c, at);
  int64_t seen = c->last[hash_of(c->from.at + at)];
  for (int i = 0; i < STEPS && seen >= 0 && at - (size_t)seen <= WINDOW && best.length < ENOUGH; i++) {
    size_t n = common(&c->from, (size_t)seen, at);
    if (n > best.length) best = (Match){n, at - (size_t)seen};
    seen = c->before[seen];
  }
  if (best.length < LEAST) best.length = 0;
  return best;
}

// ---- the block ----

static void put_rest(Bytes *to, size_t length) { // of a length that the token has no room for
  if (length < 15) return;
  for (length -= 15; length >= 255; length -= 255) to->at[to->size++] = 255;
  to->at[to->size++] = (uint8_t)length;
}

static uint8_t half(size_t length) {
  return (uint8_t)(length < 15 ? length : 15);
}

static void put_sequence(Bytes *to, const uint8_t *literals, size_t count, Match m) {
  uint8_t match = m.length ? half(m.length - LEAST) : 0;
  to->at[to->size++] = (uint8_t)(half(count) << 4 | match);
  put_rest(to, count);
  memcpy(to->at + to->size, literals, count);
  to->size += count;
  if (!m.length) return;
  to->at[to->size++] = (uint8_t)m.back;
  to->at[to->size++] = (uint8_t)(m.back >> 8);
  put_rest(to, m.length - LEAST);
}

// A match is put off by a byte where the next one is longer.
static Bytes lz4_pack(Bytes from) {
  Bytes to = {room(from.size + from.size / 200 + 64), 0};
  Chains *c = room(sizeof *c);
  *c = (Chains){.from = from, .before = room(sizeof *c->before * from.size)};
  for (int i = 0; i < HASHES; i++) c->last[i] = -1;
  size_t written = 0, at = 0;
  while (from.size > TAIL && at < from.size - TAIL) {
    Match m = longest(c, at);
    if (!m.length) {
      at++;
      continue;
    }
    while (m.length < ENOUGH && at + 1 < from.size - TAIL) {
      Match next = longest(c, at + 1);
      if (next.length <= m.length) break;
      m = next, at++;
    }
    put_sequence(&to, from.at + written, at - written, m);
    at += m.length;
    written = at;
  }
  put_sequence(&to, from.at + written, from.size - written, (Match){0});
  free(c->before);
  free(c);
  return to;
}

// ---- the file ----

static void put_number(uint8_t *at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static void check(Bytes packed, Bytes text, const char *name) {
  uint8_t *back = room(text.size);
  bool same = sol_lz4_unpack(packed.at, packed.size, back, text.size) && !memcmp(back, text.at, text.size);
  free(back);
  if (!same) fail("an entry does not unpack to what it was:", name);
}

// The entry's header with its options, then the packed bytes, as a multiple of 8 bytes.
static void put_entry(Bytes *out, const uint8_t *header, size_t head, Bytes text, const char *name) {
  Bytes packed = lz4_pack(text);
  check(packed, text, name);
  uint8_t *at = out->at + out->size;
  size_t padded = (packed.size + 7) / 8 * 8;
  memcpy(at, header, head);
  memcpy(at + head, packed.at, packed.size);
  put_number(at + 8, padded, 8);
  put_number(at + 16, packed.size, 4);
  at[41] = (uint8_t)((at[41] & ~(FLAG_ZSTD >> 8)) | FLAG_LZ4 >> 8); // flags: at byte 40
  put_number(at + 56, text.size, 8);
  out->size += head + padded;
  free(packed.at);
}

static Bytes read_file(const char *name) {
  FILE *f = fopen(name, "rb");
  if (!f || fseek(f, 0, SEEK_END)) fail("cannot read", name);
  long size = ftell(f);
  rewind(f);
  Bytes b = {room((size_t)size), (size_t)size};
  if (size < 0 || fread(b.at, 1, b.size, f) != b.size) fail("cannot read", name);
  fclose(f);
  return b;
}

static Bytes pack(Bytes from, const char *name) {
  SolFatbin fat;
  SolFatEntry e = {0};
  SolError err = {0};
  if (sol_fatbin_open(from.at, from.size, &fat, &err)) fail(err.message, name);
  Bytes out = {room(2 * from.size + 4096), SOL_FATBIN_HEADER};
  memcpy(out.at, from.at, SOL_FATBIN_HEADER);
  for (uint64_t at = 0; sol_fatbin_next(&fat, &e, &err); at = e.next) {
    char *text;
    size_t length;
    if (sol_fatbin_text(&e, &text, &length, &err)) fail(err.message, name);
    const uint8_t *header = fat.data + at;
    put_entry(&out, header, (size_t)(e.data - header), (Bytes){(uint8_t *)text, length}, name);
    sol_heap_free(text);
  }
  if (err.status) fail(err.message, name);
  put_number(out.at + 6, SOL_FATBIN_HEADER, 2);
  put_number(out.at + 8, out.size - SOL_FATBIN_HEADER, 8);
  return out;
}

int main(int argc, char **argv) {
  if (argc != 3) return fputs("usage: pack-fatbin FROM TO\n", stderr), 2;
  Bytes from = read_file(argv[1]), out = pack(from, argv[1]);
  FILE *f = fopen(argv[2], "wb");
  if (!f || fwrite(out.at, 1, out.size, f) != out.size || fclose(f)) fail("cannot write", argv[2]);
  free(from.at);
  free(out.at);
  return 0;
}
