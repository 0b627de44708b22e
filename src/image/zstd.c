// zstd frames (RFC 8878), which nvcc packs code with by default. A frame is a row of blocks; a block has literals, packed
// with Huffman codes, and sequences (copy so many literals, then so many bytes from so far back), packed with finite-state
// entropy codes (FSE). Dictionaries are not used by nvcc and are refused; checksums are not compared.
#include "base/error.h"
#include "base/heap.h"
#include "image/fatbin.h"

enum {
  MAGIC_BYTES = 4,
  MAX_BLOCK = 128 << 10,
  HUFFMAN_BITS = 11,
  WEIGHT_BITS = 6,
  FSE_BITS = 9,
  SYMBOLS = 256
};
#define ZSTD_MAGIC 0xFD2FB528u

// ---- bits ----

// What is left of the input. Reading past the end sets `bad` and gives zeros, so that callers may check once at the end.
typedef struct Input {
  const uint8_t *at, *end;
  bool bad;
} Input;

static size_t left(const Input *in) {
  return (size_t)(in->end - in->at);
}

static uint64_t take(Input *in, size_t bytes) { // a number, lowest byte first
  if (left(in) < bytes) in->bad = true, bytes = 0;
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; i++) value |= (uint64_t)in->at[i] << 8 * i;
  in->at += bytes;
  return value;
}

static Input part_of(Input *in, size_t bytes) {
  if (left(in) < bytes) in->bad = true, bytes = 0;
  Input part = {in->at, in->at + bytes, in->bad};
  in->at += bytes;
  return part;
}

// Bits of a span of bytes, as one long number. Codes are read from its highest bit down, tables from its lowest up.
typedef struct Bits {
  const uint8_t *bytes;
  size_t size;
  int64_t at; // bits below this one are unread; below 0: more was read than there was
} Bits;

// 57 bits and more from bit `at` on; zeros where there are none.
static uint64_t window(const Bits *b, int64_t at) {
  size_t first = (size_t)(at >> 3), most = first < b->size ? b->size - first : 0;
  uint64_t value = 0;
  if (most >= 8) // one load, as compilers see it
    for (size_t i = 0; i < 8; i++) value |= (uint64_t)b->bytes[first + i] << 8 * i;
  else
    for (size_t i = 0; i < most; i++) value |= (uint64_t)b->bytes[first + i] << 8 * i;
  return value >> (at & 7);
}

static uint64_t low_bits(uint64_t value, int count) {
  return value & ((UINT64_C(1) << count) - 1);
}

// `count` bits below b->at, without taking them; those below bit 0 are zeros.
static uint64_t peek(const Bits *b, int count) {
  int64_t from = b->at - count;
  if (from >= 0) return low_bits(window(b, from), count);
  return b->at > 0 ? low_bits(window(b, 0), (int)b->at) << -from : 0;
}

static uint64_t bits(Bits *b, int count) {
  uint64_t value = peek(b, count);
  b->at -= count;
  return value;
}

// The highest set bit of the last byte marks where codes start.
static bool open_bits(Input span, Bits *out) {
  if (span.bad || span.at == span.end || !span.end[-1]) return false;
  *out = (Bits){span.at, left(&span), (int64_t)left(&span) * 8};
  while (!bits(out, 1)) continue;
  return true;
}

// ---- FSE tables ----

typedef struct State { // what a state stands for, and how the next one follows from it
  uint8_t symbol, bits;
  uint16_t base;
} State;

typedef struct Fse {
  int log; // of the number of states
  State states[1 << FSE_BITS];
} Fse;

static int log_of(uint32_t value) { // the highest set bit
  return 31 - __builtin_clz(value);
}

// Symbols spread over the states by their shares of 1 << log; -1 stands for one state at the table's end.
static void fill_fse(Fse *t, const int16_t *shares, int symbols, int log) {
  int size = 1 << log, high = size;
  uint16_t next[SYMBOLS];
  t->log = log;
  for (int s = 0; s < symbols; s++) {
    if (shares[s] < 0) t->states[--high].symbol = (uint8_t)s;
    next[s] = (uint16_t)(shares[s] < 0 ? 1 : shares[s]);
  }
  int at = 0, step = (size >> 1) + (size >> 3) + 3;
  for (int s = 0; s < symbols; s++)
    for (int i = 0; i < shares[s]; i++) {
      t->states[at].symbol = (uint8_t)s;
      do at = (at + step) & (size - 1);
      while (at >= high);
    }
  for (int i = 0; i < size; i++) {
    State *state = &t->states[i];
    uint16_t x = next[state->symbol]++;
    state->bits = (uint8_t)(log - log_of(x));
    state->base = (uint16_t)((x << state->bits) - size);
  }
}

// A share takes as many bits as what is left allows; small values one bit less.
static int read_share(Bits *b, int remaining) {
  int width = log_of((uint32_t)remaining + 1) + 1;
  int value = (int)low_bits(window(b, b->at), width), low = value & ((1 << (width - 1)) - 1);
  int threshold = (1 << width) - 1 - (remaining + 1);
  bool narrow = low < threshold;
  b->at += width - narrow;
  if (narrow) return low - 1;
  return (value >= 1 << (width - 1) ? value - threshold : value) - 1;
}

// The shares, in a span read upwards; a share of 0 is followed by how many more zeros come. Returns the log, or -1.
static int read_shares(Input *in, int16_t *shares, int *symbols, int most_log) {
  Bits b = {in->at, left(in), 4};
  int count = 0, log = b.size ? (int)(in->at[0] & 15) + 5 : 99, remaining = 1 << log % 32;
  if (log > most_log) return -1;
  while (remaining > 0 && count < *symbols && b.at <= (int64_t)b.size * 8) {
    int share = read_share(&b, remaining);
    shares[count++] = (int16_t)share;
    remaining -= share < 0 ? -share : share;
    for (int zeros = share ? 0 : 3; zeros == 3;) {
      zeros = (int)low_bits(window(&b, b.at), 2);
      b.at += 2;
      for (int i = 0; i < zeros && count < *symbols; i++) shares[count++] = 0;
      if (b.at > (int64_t)b.size * 8) return -1;
    }
  }
  if (remaining || b.at > (int64_t)b.size * 8) return -1;
  *symbols = count;
  in->at += (b.at + 7) / 8;
  return log;
}

static bool read_fse(Input *in, Fse *t, int symbols, int most_log) {
  int16_t shares[SYMBOLS];
  int log = read_shares(in, shares, &symbols, most_log);
  if (log < 0) return false;
  fill_fse(t, shares, symbols, log);
  return true;
}

static unsigned next_state(const Fse *t, unsigned state, Bits *b) {
  return t->states[state].base + (unsigned)bits(b, t->states[state].bits);
}

// ---- Huffman codes ----

typedef struct Code {
  uint8_t symbol, bits;
} Code;

typedef struct Huffman {
  int log; // bits of the longest code; 0: no table yet
  Code codes[1 << HUFFMAN_BITS];
} Huffman;

// Two states take turns until the bits are used up.
static int packed_weights(Input span, uint8_t *weights) {
  Fse t;
  Bits b;
  if (!read_fse(&span, &t, SYMBOLS, WEIGHT_BITS) || !open_bits(span, &b)) return -1;
  unsigned state[2];
  int count = 0;
  for (int i = 0; i < 2; i++) state[i] = (unsigned)bits(&b, t.log);
  for (; count < SYMBOLS - 2; count++) {
    unsigned *one = &state[count & 1];
    weights[count] = t.states[*one].symbol;
    *one = next_state(&t, *one, &b);
    if (b.at < 0) break;
  }
  if (b.at >= 0) return -1;
  weights[count + 1] = t.states[state[~count & 1]].symbol;
  return count + 2;
}

static int plain_weights(Input *in, int count, uint8_t *weights) {
  Input span = part_of(in, (size_t)(count + 1) / 2);
  for (int i = 0; !span.bad && i < count; i++) weights[i] = i & 1 ? span.at[i / 2] & 15 : span.at[i / 2] >> 4;
  return span.bad ? -1 : count;
}

// The last symbol's weight is what the others leave of a power of two. Returns the bits of the longest code, or -1.
static int last_weight(uint8_t *weights, int *count) {
  uint32_t sum = 0;
  for (int i = 0; i < *count; i++) {
    if (weights[i] > HUFFMAN_BITS) return -1;
    sum += 1u << weights[i] >> 1;
  }
  int log = sum ? log_of(sum) + 1 : 99;
  if (log > HUFFMAN_BITS || *count >= SYMBOLS) return -1;
  uint32_t rest = (1u << log) - sum;
  if (rest & (rest - 1)) return -1;
  weights[(*count)++] = (uint8_t)(log_of(rest) + 1);
  return log;
}

static bool read_huffman(Input *in, Huffman *h) {
  uint8_t weights[SYMBOLS];
  int first = (int)take(in, 1);
  int count = first < 128 ? packed_weights(part_of(in, (size_t)first), weights)
                          : plain_weights(in, first - 127, weights);
  int log = count < 0 || in->bad ? -1 : last_weight(weights, &count), at = 0;
  if (log < 0) return false;
  h->log = log;
  for (int w = 1; w <= log; w++)
    for (int s = 0; s < count; s++)
      for (int i = 0; weights[s] == w && i < 1 << (w - 1); i++)
        h->codes[at++] = (Code){(uint8_t)s, (uint8_t)(log + 1 - w)};
  return at == 1 << log;
}

static bool huffman_stream(const Huffman *h, Input span, uint8_t *to, size_t size) {
  Bits b;
  if (!open_bits(span, &b)) return false;
  for (size_t i = 0; i < size; i++) {
    Code code = h->codes[peek(&b, h->log)];
    to[i] = code.symbol;
    b.at -= code.bits;
  }
  return b.at == 0;
}

// ---- a frame ----

typedef enum Kind { LITERALS, OFFSETS, MATCHES, KINDS } Kind;

typedef struct Frame {
  uint8_t *to;
  size_t size, done;
  size_t back[3]; // the last three distances
  Huffman huffman;
  Fse fse[KINDS];
  bool has[KINDS];
  uint8_t literals[MAX_BLOCK];
  size_t literal_count;
} Frame;

static bool four_streams(const Huffman *h, Input span, uint8_t *to, size_t size) {
  size_t each = (size + 3) / 4, lengths[3];
  for (int i = 0; i < 3; i++) lengths[i] = (size_t)take(&span, 2);
  if (3 * each > size) return false;
  for (int i = 0; i < 3; i++)
    if (!huffman_stream(h, part_of(&span, lengths[i]), to + (size_t)i * each, each)) return false;
  return huffman_stream(h, span, to + 3 * each, size - 3 * each);
}

static bool coded_literals(Frame *f, Input *in, uint64_t type, uint64_t format) {
  static const uint8_t header[] = {3, 3, 4, 5}, width[] = {10, 10, 14, 18};
  uint64_t head = take(in, header[format]) >> 4;
  size_t size = (size_t)low_bits(head, width[format]),
         packed = (size_t)low_bits(head >> width[format], width[format]);
  Input span = part_of(in, packed);
  if (span.bad || size > MAX_BLOCK) return false;
  f->literal_count = size;
  if (type == 2 && !read_huffman(&span, &f->huffman)) return false;
  if (!f->huffman.log) return false;
  return (format ? four_streams : huffman_stream)(&f->huffman, span, f->literals, size);
}

static bool read_literals(Frame *f, Input *in) {
  if (!left(in)) return false;
  uint64_t type = in->at[0] & 3, format = in->at[0] >> 2 & 3;
  if (type >= 2) return coded_literals(f, in, type, format);
  size_t size = (size_t)(format == 1 ? take(in, 2) >> 4 : format == 3 ? take(in, 3) >> 4 : take(in, 1) >> 3);
  Input span = part_of(in, type ? 1 : size);
  if (span.bad || size > MAX_BLOCK) return false;
  f->literal_count = size;
  if (type)
    memset(f->literals, span.at[0], size);
  else if (size)
    memcpy(f->literals, span.at, size);
  return true;
}

// Codes of lengths: the least length of each, and the bits that are added to it.
static const uint32_t literal_base[36] = {0,  1,  2,   3,   4,   5,    6,    7,    8,    9,     10,    11,
                                          12, 13, 14,  15,  16,  18,   20,   22,   24,   28,    32,    40,
                                          48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
static const uint8_t literal_bits[36] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  1,  1,
                                         1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const uint32_t match_base[53] = {
    3,  4,  5,  6,  7,  8,  9,  10,  11,  12,  13,   14,   15,   16,   17,    18,    19,   20,
    21, 22, 23, 24, 25, 26, 27, 28,  29,  30,  31,   32,   33,   34,   35,    37,    39,   41,
    43, 47, 51, 59, 67, 83, 99, 131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539};
static const uint8_t match_bits[53] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0, 0,
                                       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  1,  1,  1, 1,
                                       2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
// Shares of the codes where a block brings no table.
static const int16_t literal_shares[36] = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                           2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
static const int16_t offset_shares[29] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                          1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
static const int16_t match_shares[53] = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                         1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                         1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
static const struct {
  const int16_t *shares;
  int symbols, log, most_log;
} codes_of[KINDS] = {{literal_shares, 36, 6, 9}, {offset_shares, 29, 5, 8}, {match_shares, 53, 6, 9}};
enum { OFFSET_CODES = 32 }; // a block's own table may have more of them than the table above

static bool read_codes(Frame *f, Input *in, Kind kind, uint64_t mode) {
  Fse *t = &f->fse[kind];
  int symbols = kind == OFFSETS ? OFFSET_CODES : codes_of[kind].symbols;
  bool had = f->has[kind];
  f->has[kind] = true;
  switch (mode) {
  case 0: fill_fse(t, codes_of[kind].shares, codes_of[kind].symbols, codes_of[kind].log); return true;
  case 1:
    t->log = 0;
    t->states[0] = (State){.symbol = (uint8_t)take(in, 1)};
    return !in->bad && t->states[0].symbol < symbols;
  case 2: return read_fse(in, t, symbols, codes_of[kind].most_log);
  default: return had; // the table of the block before
  }
}

// Values up to 3 name one of the last three distances; without literals, the next one.
static size_t distance(Frame *f, uint64_t value, bool literals) {
  uint64_t which = value > 3 ? 3 : value - literals;
  size_t back = value > 3 ? (size_t)(value - 3) : which < 3 ? f->back[which] : f->back[0] - 1;
  if (which >= 2) f->back[2] = f->back[1];
  if (which >= 1) f->back[1] = f->back[0];
  f->back[0] = back;
  return back;
}

static bool copy_literals(Frame *f, size_t *used, size_t count) {
  if (count > f->literal_count - *used || count > f->size - f->done) return false;
  memcpy(f->to + f->done, f->literals + *used, count);
  *used += count;
  f->done += count;
  return true;
}

static bool copy_match(Frame *f, size_t back, size_t count) {
  if (!back || back > f->done || count > f->size - f->done) return false;
  uint8_t *to = f->to + f->done;
  if (back >= count)
    memcpy(to, to - back, count);
  else
    for (size_t i = 0; i < count; i++) to[i] = to[i - back]; // it may overlap itself
  f->done += count;
  return true;
}

static bool run_sequences(Frame *f, Input span, uint64_t count) {
  Bits b;
  unsigned state[KINDS];
  size_t used = 0;
  if (!open_bits(span, &b)) return false;
  for (int k = 0; k < KINDS; k++) state[k] = (unsigned)bits(&b, f->fse[k].log);
  for (uint64_t i = 0; i < count && b.at >= 0; i++) {
    uint8_t literal = f->fse[LITERALS].states[state[LITERALS]].symbol,
            match = f->fse[MATCHES].states[state[MATCHES]].symbol;
    uint8_t offset = f->fse[OFFSETS].states[state[OFFSETS]].symbol;
    uint64_t value = (UINT64_C(1) << offset) + bits(&b, offset);
    size_t matched = match_base[match] + (size_t)bits(&b, match_bits[match]);
    size_t literals = literal_base[literal] + (size_t)bits(&b, literal_bits[literal]);
    if (!copy_literals(f, &used, literals) || !copy_match(f, distance(f, value, literals), matched))
      return false;
    if (i + 1 == count) break;
    state[LITERALS] = next_state(&f->fse[LITERALS], state[LITERALS], &b);
    state[MATCHES] = next_state(&f->fse[MATCHES], state[MATCHES], &b);
    state[OFFSETS] = next_state(&f->fse[OFFSETS], state[OFFSETS], &b);
  }
  return b.at == 0 && copy_literals(f, &used, f->literal_count - used);
}

static uint64_t sequence_count(Input *in) {
  uint64_t first = take(in, 1);
  if (first < 128) return first;
  return first < 255 ? (first - 128) << 8 | take(in, 1) : take(in, 2) + 0x7F00;
}

static bool coded_block(Frame *f, Input in) {
  size_t used = 0;
  if (!read_literals(f, &in)) return false;
  uint64_t count = sequence_count(&in);
  if (!count) return !in.bad && copy_literals(f, &used, f->literal_count);
  uint64_t modes = take(&in, 1);
  for (int k = 0; k < KINDS; k++)
    if (in.bad || !read_codes(f, &in, (Kind)k, modes >> (6 - 2 * k) & 3)) return false;
  return run_sequences(f, in, count);
}

static bool plain_block(Frame *f, Input in, size_t count, bool repeated) {
  if (in.bad || count > f->size - f->done) return false;
  if (repeated)
    memset(f->to + f->done, in.at[0], count);
  else if (count)
    memcpy(f->to + f->done, in.at, count);
  f->done += count;
  return true;
}

static bool read_blocks(Frame *f, Input *in) {
  for (bool last = false; !last;) {
    uint64_t head = take(in, 3), type = head >> 1 & 3;
    size_t size = (size_t)(head >> 3);
    last = head & 1;
    if (in->bad || type == 3) return false;
    Input span = part_of(in, type == 1 ? 1 : size);
    if (span.bad || !(type == 2 ? coded_block(f, span) : plain_block(f, span, size, type == 1))) return false;
  }
  return true;
}

// The header tells sizes that the fat binary has as well.
static bool read_header(Input *in) {
  static const uint8_t content[] = {0, 2, 4, 8};
  if (take(in, MAGIC_BYTES) != ZSTD_MAGIC) return false;
  uint64_t flags = take(in, 1);
  bool single = flags >> 5 & 1, dictionary = flags & 3;
  part_of(in, !single + (size_t)(flags >> 6 ? content[flags >> 6] : single));
  return !in->bad && !dictionary;
}

SolStatus sol_zstd_unpack(const uint8_t *from, size_t from_size, uint8_t *to, size_t size, SolError *err) {
  Input in = {from, from + from_size, false};
  Frame *f = sol_heap_alloc(sizeof *f);
  if (!f) return sol_fail(err, SOL_ERR_NO_SPACE, "no memory to unpack a zstd frame");
  *f = (Frame){.to = to, .size = size, .back = {1, 4, 8}};
  bool right = read_header(&in) && read_blocks(f, &in) && f->done == size;
  sol_heap_free(f);
  return right ? SOL_OK
               : sol_fail(err, SOL_ERR_SYNTAX, "the fat binary is damaged: its zstd frame does not unpack");
}
