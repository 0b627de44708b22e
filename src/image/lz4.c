// LZ4 block format: sequences of literals and a match within the 64 KiB before; the last has literals alone.
#include "image/fatbin.h"

typedef struct Reader {
  const uint8_t *at, *end;
} Reader;

// A length that did not fit in the token's half: bytes of 255 go on. SIZE_MAX: cut short.
static size_t rest_of_length(Reader *r, size_t length) {
  if (length != 15) return length;
  for (;;) {
    if (r->at == r->end || length > SIZE_MAX / 2) return SIZE_MAX;
    uint8_t more = *r->at++;
    length += more;
    if (more != 255) return length;
  }
}

bool sol_lz4_unpack(const uint8_t *from, size_t from_size, uint8_t *to, size_t size) {
  Reader r = {from, from + from_size};
  size_t done = 0;
  while (r.at < r.end) {
    uint8_t token = *r.at++;
    size_t literals = rest_of_length(&r, token >> 4);
    if (literals > (size_t)(r.end - r.at) || literals > size - done) return false;
    memcpy(to + done, r.at, literals);
    r.at += literals;
    done += literals;
    if (r.at == r.end) return done == size;
    if (r.end - r.at < 2) return false;
    size_t back = (size_t)(r.at[0] | r.at[1] << 8);
    r.at += 2;
    size_t match = rest_of_length(&r, token & 15);
    if (!back || back > done || match > SIZE_MAX - 4 || match + 4 > size - done) return false;
    for (size_t k = match + 4; k; k--, done++) to[done] = to[done - back]; // it may overlap itself
  }
  return false;
}
