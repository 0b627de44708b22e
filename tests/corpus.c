#include "corpus.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- words and numbers

typedef struct Line { // what is left of one directive
  CorpusText rest;
  int number;
  CorpusMessage *message;
} Line;

__attribute__((format(printf, 2, 3))) static bool fail(Line *line, const char *format, ...) {
  va_list args;
  int used =
      line->number ? snprintf(line->message->text, sizeof line->message->text, "line %d: ", line->number) : 0;
  va_start(args, format);
  vsnprintf(line->message->text + used, sizeof line->message->text - (size_t)used, format, args);
  va_end(args);
  return false;
}

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

static bool is(CorpusText word, const char *text) {
  return word.length == strlen(text) && memcmp(word.at, text, word.length) == 0;
}

static void skip(CorpusText *text, size_t count) {
  text->at += count;
  text->length -= count;
}

// Whether `text` starts with `prefix`, which is then taken off.
static bool take(CorpusText *text, const char *prefix) {
  size_t length = strlen(prefix);
  if (text->length < length || memcmp(text->at, prefix, length) != 0) return false;
  skip(text, length);
  return true;
}

static CorpusText next_word(CorpusText *text) {
  while (text->length && is_space(*text->at)) skip(text, 1);
  CorpusText word = {text->at, 0};
  while (word.length < text->length && !is_space(text->at[word.length])) word.length++;
  skip(text, word.length);
  return word;
}

// Up to the next ',' outside braces, which is taken off too.
static CorpusText next_item(CorpusText *list) {
  CorpusText item = {list->at, 0};
  int depth = 0;
  for (; item.length < list->length; item.length++) {
    char c = list->at[item.length];
    if (c == ',' && depth == 0) break;
    depth += (c == '{') - (c == '}');
  }
  skip(list, item.length + (item.length < list->length));
  return item;
}

static bool copy_name(char out[CORPUS_NAME], CorpusText word) {
  if (word.length == 0 || word.length >= CORPUS_NAME) return false;
  memcpy(out, word.at, word.length);
  out[word.length] = 0;
  return true;
}

// One C number, taken off the front of `text`; terminated for strtoull and strtod by copying.
static bool take_number(CorpusText *text, bool real, uint64_t *whole, double *value) {
  char digits[48], *end;
  size_t length = text->length < sizeof digits - 1 ? text->length : sizeof digits - 1;
  if (length == 0 || is_space(text->at[0])) return false;
  memcpy(digits, text->at, length);
  digits[length] = 0;
  errno = 0;
  if (real)
    *value = strtod(digits, &end);
  else
    *whole = strtoull(digits, &end, 0);
  if (end == digits || (errno == ERANGE && !real)) return false;
  skip(text, (size_t)(end - digits));
  return true;
}

// "4096*4+16": sums of products of whole numbers.
static bool read_size(CorpusText text, uint64_t *out) {
  uint64_t sum = 0, product = 1, factor;
  for (;;) {
    if (!take_number(&text, false, &factor, NULL)) return false;
    if (__builtin_mul_overflow(product, factor, &product)) return false;
    if (take(&text, "*")) continue;
    if (__builtin_add_overflow(sum, product, &sum)) return false;
    product = 1;
    if (take(&text, "+")) continue;
    *out = sum;
    return text.length == 0;
  }
}

static bool read_u32(CorpusText text, uint32_t *out) {
  uint64_t value;
  if (!read_size(text, &value) || value > UINT32_MAX) return false;
  *out = (uint32_t)value;
  return true;
}

// "4" or "4,2" or "4,2,1"; what is missing is 1.
static bool read_dims(CorpusText text, uint32_t dims[3]) {
  for (int i = 0; i < 3; i++) {
    dims[i] = 1;
    if (i > 0 && text.length == 0) continue;
    if (!read_u32(next_item(&text), &dims[i]) || dims[i] == 0) return false;
  }
  return text.length == 0;
}

// --- arguments

static size_t round_up(size_t size, size_t align) {
  return (size + align - 1) / align * align;
}

static bool put(CorpusArgs *args, const void *value, size_t size, size_t align, size_t *most) {
  size_t at = round_up(args->size, align);
  if (at + size > sizeof args->block) return false;
  memset(args->block + args->size, 0, at - args->size);
  memcpy(args->block + at, value, size);
  args->size = at + size;
  if (align > *most) *most = align;
  return true;
}

typedef struct Packer {
  const CorpusProgram *program;
  const uint64_t *addresses;
  CorpusArgs *out;
  Line line;
  int depth;
} Packer;

static bool pack_address(Packer *p, CorpusText item, size_t *most) {
  CorpusText name = {item.at, 0};
  uint64_t offset = 0;
  while (name.length < item.length && item.at[name.length] != '+') name.length++;
  skip(&item, name.length);
  int i = corpus_find(p->program, name.at, name.length);
  if (i < 0) return fail(&p->line, "no buffer '%.*s'", (int)name.length, name.at);
  if (take(&item, "+") && !read_size(item, &offset))
    return fail(&p->line, "no offset '%.*s'", (int)item.length, item.at);
  uint64_t address = p->addresses[i] + offset;
  return put(p->out, &address, 8, 8, most) || fail(&p->line, "too many bytes of arguments");
}

static const struct {
  const char *prefix;
  size_t size;
  char kind; // u: whole number, f: real, i: 0, 1, 2 ... as u32
} scalars[] = {{"u8:", 1, 'u'},  {"u16:", 2, 'u'}, {"u32:", 4, 'u'},     {"u64:", 8, 'u'},
               {"i8:", 1, 'u'},  {"i16:", 2, 'u'}, {"i32:", 4, 'u'},     {"i64:", 8, 'u'},
               {"f32:", 4, 'f'}, {"f64:", 8, 'f'}, {"iota-u32:", 4, 'i'}};

static bool pack_scalar(Packer *p, CorpusText item, size_t size, char kind, size_t *most) {
  uint64_t whole = 0;
  double real = 0;
  CorpusText value = item;
  if (!take_number(&value, kind == 'f', &whole, &real) || value.length)
    return fail(&p->line, "'%.*s' is no number", (int)item.length, item.at);
  bool fits;
  if (kind == 'i') {
    fits = whole <= CORPUS_ARG_BYTES;
    for (uint32_t i = 0; fits && i < whole; i++) fits = put(p->out, &i, 4, 4, most);
  } else if (kind == 'f') {
    float single = (float)real;
    fits = put(p->out, size == 4 ? (void *)&single : (void *)&real, size, size, most);
  } else {
    bool minus = item.at[0] == '-';
    uint64_t beyond = size < 8 ? (minus ? -whole - 1 : whole) >> (8 * size - minus) : 0;
    if (beyond) return fail(&p->line, "'%.*s' does not fit %zu bytes", (int)item.length, item.at, size);
    fits = put(p->out, &whole, size, size, most); // little-endian: the low bytes come first
  }
  return fits || fail(&p->line, "too many bytes of arguments");
}

// A buffer, a number, or {a struct of them} laid out as C does. *most: the widest alignment met.
static bool pack_item(Packer *p, CorpusText item, size_t *most) {
  for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
    if (take(&item, scalars[i].prefix)) return pack_scalar(p, item, scalars[i].size, scalars[i].kind, most);
  if (!item.length || item.at[0] != '{') return pack_address(p, item, most);
  if (item.length < 3 || item.at[item.length - 1] != '}' || ++p->depth > 8)
    return fail(&p->line, "'%.*s' is no struct", (int)item.length, item.at);
  // A struct starts at its own alignment, known only after its members: they are packed aside, then moved.
  CorpusArgs *aside = calloc(1, sizeof *aside);
  if (!aside) return fail(&p->line, "out of memory");
  Packer inner = *p;
  size_t align = 1;
  bool ok = true;
  inner.out = aside;
  for (CorpusText list = {item.at + 1, item.length - 2}; ok && list.length;)
    ok = pack_item(&inner, next_item(&list), &align);
  if (ok) {
    size_t size = round_up(aside->size, align);
    ok = size <= sizeof aside->block && put(p->out, aside->block, size, align, most);
    if (!ok) fail(&p->line, "too many bytes of arguments");
  }
  p->depth--;
  free(aside);
  return ok;
}

bool corpus_pack(const CorpusProgram *program, int i, const uint64_t *addresses, CorpusArgs *out,
                 CorpusMessage *message) {
  const CorpusLaunch *launch = &program->launches[i];
  Packer p = {program, addresses, out, {{0}, launch->line, message}, 0};
  out->size = 0;
  out->count = 0;
  for (CorpusText list = launch->args; list.length;) {
    size_t align = 1, before = out->size;
    if (out->count == CORPUS_MAX_ARGS) return fail(&p.line, "too many arguments");
    if (!pack_item(&p, next_item(&list), &align)) return false;
    out->offsets[out->count] = round_up(before, align);
    out->bytes[out->count] = out->size - out->offsets[out->count];
    out->count++;
  }
  return true;
}

// --- directives

static const struct {
  const char *word; // ends in ':' where a value follows
  CorpusData data;
} contents[] = {{"uninit", CORPUS_UNINIT},
                {"zero", CORPUS_ZERO},
                {"poison", CORPUS_POISON},
                {"iota-u32", CORPUS_IOTA_U32},
                {"random-u32", CORPUS_RANDOM_U32},
                {"random-u32:", CORPUS_RANDOM_U32},
                {"random-f32", CORPUS_RANDOM_F32},
                {"random-f64", CORPUS_RANDOM_F64},
                {"random-f16", CORPUS_RANDOM_F16},
                {"random-bf16", CORPUS_RANDOM_BF16},
                {"integers-f32:", CORPUS_INTEGERS_F32},
                {"integers-f16:", CORPUS_INTEGERS_F16},
                {"permutation-u32", CORPUS_PERMUTATION_U32},
                {"values-u32:", CORPUS_VALUES_U32},
                {"pointers:", CORPUS_POINTERS}};

static bool read_list(CorpusProgram *program, CorpusAlloc *alloc, Line *line) {
  uint64_t items = 0, size = alloc->data == CORPUS_POINTERS ? 8 : 4;
  uint32_t word;
  for (CorpusText list = alloc->list; list.length; items++) {
    CorpusText item = next_item(&list);
    if (size == 4 ? !read_u32(item, &word) : corpus_find(program, item.at, item.length) < 0)
      return fail(line, "'%.*s' cannot stand in '%s'", (int)item.length, item.at, alloc->name);
  }
  return items * size <= alloc->bytes || fail(line, "more values than '%s' holds", alloc->name);
}

static bool read_contents(CorpusProgram *program, CorpusAlloc *alloc, CorpusText word, Line *line) {
  for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
    CorpusText value = word;
    bool valued = contents[i].word[strlen(contents[i].word) - 1] == ':';
    if (!take(&value, contents[i].word) || (value.length > 0) != valued) continue;
    alloc->data = contents[i].data;
    alloc->list = value;
    if (alloc->data == CORPUS_VALUES_U32 || alloc->data == CORPUS_POINTERS)
      return read_list(program, alloc, line);
    if (valued && (!read_size(value, &alloc->bound) || alloc->bound == 0 || alloc->bound > UINT32_MAX))
      return fail(line, "'%.*s' is no bound", (int)value.length, value.at);
    return true;
  }
  return fail(line, "unknown contents '%.*s'", (int)word.length, word.at);
}

static bool read_alloc(CorpusProgram *program, Line *line) {
  if (program->alloc_count == CORPUS_MAX_ALLOCS) return fail(line, "too many allocs");
  CorpusAlloc alloc = {.line = line->number, .seed = 0xcbf29ce484222325u};
  CorpusText name = next_word(&line->rest), bytes = next_word(&line->rest), word = next_word(&line->rest);
  if (!copy_name(alloc.name, name)) return fail(line, "alloc needs a name");
  if (corpus_find(program, name.at, name.length) >= 0) return fail(line, "second alloc '%s'", alloc.name);
  if (!read_size(bytes, &alloc.bytes) || alloc.bytes == 0 || alloc.bytes > (1u << 28))
    return fail(line, "'%.*s' is no size", (int)bytes.length, bytes.at);
  if (!read_contents(program, &alloc, word, line)) return false;
  // Buffers of different names differ; those with the same seed= are alike.
  for (size_t i = 0; i < name.length; i++)
    alloc.seed = (alloc.seed ^ (unsigned char)name.at[i]) * 0x100000001b3u;
  word = next_word(&line->rest);
  if (word.length && (!take(&word, "seed=") || !read_size(word, &alloc.seed)))
    return fail(line, "cannot read '%.*s'", (int)word.length, word.at);
  program->allocs[program->alloc_count++] = alloc;
  return true;
}

static bool read_launch(CorpusProgram *program, Line *line) {
  if (program->launch_count == CORPUS_MAX_LAUNCHES) return fail(line, "too many launches");
  CorpusLaunch launch = {.line = line->number, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  if (!copy_name(launch.kernel, next_word(&line->rest))) return fail(line, "launch needs a kernel");
  for (;;) {
    CorpusText word = next_word(&line->rest), value = word;
    bool ok = true;
    if (!word.length) break;
    if (take(&value, "grid="))
      ok = read_dims(value, launch.grid);
    else if (take(&value, "block="))
      ok = read_dims(value, launch.block);
    else if (take(&value, "cluster="))
      ok = read_dims(value, launch.cluster);
    else if (take(&value, "smem="))
      ok = read_u32(value, &launch.smem);
    else if (take(&value, "args="))
      launch.args = value;
    else if (is(word, "cooperative"))
      launch.cooperative = true;
    else if (is(word, "dependent"))
      launch.dependent = true;
    else
      ok = false;
    if (!ok) return fail(line, "cannot read '%.*s'", (int)word.length, word.at);
  }
  program->launches[program->launch_count++] = launch;
  // Packed once here, so that a bad argument is found with its line.
  static const uint64_t nowhere[CORPUS_MAX_ALLOCS];
  CorpusArgs *args = malloc(sizeof *args);
  bool ok = args && corpus_pack(program, program->launch_count - 1, nowhere, args, line->message);
  free(args);
  return ok;
}

static bool read_prints(CorpusProgram *program, Line *line) {
  if (program->print_count == CORPUS_MAX_PRINTS) return fail(line, "too many prints");
  take(&line->rest, " "); // one; further ones belong to the text
  while (line->rest.length && line->rest.at[line->rest.length - 1] == '\r') line->rest.length--;
  program->prints[program->print_count++] = line->rest;
  line->rest.length = 0;
  return true;
}

static bool read_arch(CorpusProgram *program, Line *line) {
  CorpusText word = next_word(&line->rest);
  uint32_t arch = 0;
  if (!take(&word, "sm_") || !read_u32(word, &arch) || arch < 75 || arch > 999)
    return fail(line, "arch is sm_NN");
  program->arch = (int)arch;
  return true;
}

static bool read_directive(CorpusProgram *program, Line *line) {
  CorpusText word = next_word(&line->rest);
  if (is(word, "alloc")) return read_alloc(program, line);
  if (is(word, "launch")) return read_launch(program, line);
  if (is(word, "prints")) return read_prints(program, line);
  if (is(word, "arch")) return read_arch(program, line);
  uint64_t *number = is(word, "stack")    ? &program->stack
                     : is(word, "heap")   ? &program->heap
                     : is(word, "checks") ? &program->checks
                                          : NULL;
  if (!number) return fail(line, "unknown directive '%.*s'", (int)word.length, word.at);
  return read_size(next_word(&line->rest), number) ||
         fail(line, "'%.*s' needs a number", (int)word.length, word.at);
}

// There is something to launch and somewhere to report to.
static bool complete(const CorpusProgram *program, Line *line) {
  line->number = 0;
  int errors = corpus_find(program, "errors", 6);
  if (errors < 0 || program->allocs[errors].bytes < CORPUS_ERROR_BYTES ||
      program->allocs[errors].data != CORPUS_ZERO)
    return fail(line, "needs //! alloc errors 32 zero");
  if (program->launch_count == 0) return fail(line, "launches nothing");
  return true;
}

bool corpus_parse(CorpusProgram *program, const char *text, size_t length, CorpusMessage *message) {
  Line line = {.message = message};
  memset(program, 0, sizeof *program);
  message->text[0] = 0;
  program->arch = 75;
  for (CorpusText left = {text, length}; left.length;) {
    const char *end = memchr(left.at, '\n', left.length);
    line.rest = (CorpusText){left.at, end ? (size_t)(end - left.at) : left.length};
    skip(&left, line.rest.length + (end != NULL));
    line.number++;
    if (!take(&line.rest, "//!")) continue;
    if (!read_directive(program, &line)) return false;
    CorpusText extra = next_word(&line.rest);
    if (extra.length) return fail(&line, "'%.*s' is one word too many", (int)extra.length, extra.at);
  }
  return complete(program, &line);
}

int corpus_find(const CorpusProgram *program, const char *name, size_t length) {
  for (int i = 0; i < program->alloc_count; i++)
    if (is((CorpusText){name, length}, program->allocs[i].name)) return i;
  return -1;
}

// --- contents

static uint64_t next_random(uint64_t *state) { // splitmix64
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// A value that f16 holds exactly, as its bits.
static uint16_t f16_bits(double value) {
  if (value == 0) return 0;
  int sign = value < 0, exponent = 15;
  if (sign) value = -value;
  while (value >= 2) value /= 2, exponent++;
  while (value < 1) value *= 2, exponent--;
  return (uint16_t)(sign << 15 | exponent << 10 | (int)((value - 1) * 1024));
}

static uint16_t bf16_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return (uint16_t)(bits >> 16);
}

// Whole, in [-bound, bound].
static double random_integer(uint64_t *state, uint64_t bound) {
  return (double)(next_random(state) % (2 * bound + 1)) - (double)bound;
}

// Multiples of 2^-bits in [-1, 1).
static double random_fraction(uint64_t *state, int bits) {
  double scale = (double)(UINT64_C(1) << bits);
  return (double)(next_random(state) >> (63 - bits)) / scale - 1;
}

static size_t element(const CorpusAlloc *alloc, uint64_t *state, uint64_t i, unsigned char value[8]) {
  float single = 0;
  double real = 0;
  uint64_t word = i;
  uint16_t half = 0;
  switch (alloc->data) {
  case CORPUS_RANDOM_U32:
    word = alloc->bound ? next_random(state) % alloc->bound : next_random(state) >> 32;
    break;
  case CORPUS_RANDOM_F32: single = (float)random_fraction(state, 23); return memcpy(value, &single, 4), 4;
  case CORPUS_INTEGERS_F32:
    single = (float)random_integer(state, alloc->bound);
    return memcpy(value, &single, 4), 4;
  case CORPUS_RANDOM_F64: real = random_fraction(state, 52); return memcpy(value, &real, 8), 8;
  case CORPUS_RANDOM_F16: half = f16_bits(random_fraction(state, 10)); return memcpy(value, &half, 2), 2;
  case CORPUS_RANDOM_BF16:
    half = bf16_bits((float)random_fraction(state, 7));
    return memcpy(value, &half, 2), 2;
  case CORPUS_INTEGERS_F16:
    half = f16_bits(random_integer(state, alloc->bound));
    return memcpy(value, &half, 2), 2;
  default: break; // i itself
  }
  uint32_t low = (uint32_t)word;
  return memcpy(value, &low, 4), 4;
}

static void fill_list(const CorpusProgram *program, const CorpusAlloc *alloc, const uint64_t *addresses,
                      unsigned char *out) {
  uint32_t word = 0;
  for (CorpusText list = alloc->list; list.length;) {
    CorpusText item = next_item(&list);
    if (alloc->data == CORPUS_POINTERS) {
      memcpy(out, &addresses[corpus_find(program, item.at, item.length)], 8), out += 8;
    } else if (read_u32(item, &word)) {
      memcpy(out, &word, 4), out += 4;
    }
  }
}

bool corpus_fill(const CorpusProgram *program, int i, const uint64_t *addresses, void *out) {
  const CorpusAlloc *alloc = &program->allocs[i];
  unsigned char *bytes = out, value[8];
  uint64_t state = alloc->seed, at = 0;
  if (alloc->data == CORPUS_UNINIT) return false;
  bool list = alloc->data == CORPUS_VALUES_U32 || alloc->data == CORPUS_POINTERS;
  memset(bytes, alloc->data == CORPUS_ZERO || list ? 0 : 0xA5, alloc->bytes);
  if (list) fill_list(program, alloc, addresses, bytes);
  if (list || alloc->data == CORPUS_ZERO || alloc->data == CORPUS_POISON) return true;
  for (uint64_t n = 0;; n++) {
    size_t size = element(alloc, &state, n, value);
    if (at + size > alloc->bytes) break;
    memcpy(bytes + at, value, size);
    at += size;
  }
  if (alloc->data == CORPUS_PERMUTATION_U32) // from the identity, by exchanging
    for (uint64_t n = alloc->bytes / 4; n > 1; n--) {
      uint64_t other = next_random(&state) % n;
      memcpy(value, bytes + 4 * other, 4);
      memmove(bytes + 4 * other, bytes + 4 * (n - 1), 4);
      memcpy(bytes + 4 * (n - 1), value, 4);
    }
  return true;
}

// --- verdict

static int by_text(const void *a, const void *b) {
  const CorpusText *x = a, *y = b;
  size_t common = x->length < y->length ? x->length : y->length;
  int order = memcmp(x->at, y->at, common);
  return order ? order : (x->length > y->length) - (x->length < y->length);
}

// The printed lines are the expected ones, in any order: blocks and warps print when they get there.
static bool same_lines(const CorpusProgram *program, const char *printed, Line *line) {
  enum { MOST = CORPUS_MAX_PRINTS + 1 };
  CorpusText want[MOST], got[MOST] = {0};
  int count = 0;
  memcpy(want, program->prints, sizeof program->prints);
  for (CorpusText left = {printed, strlen(printed)}; left.length && count < MOST; count++) {
    const char *end = memchr(left.at, '\n', left.length);
    got[count] = (CorpusText){left.at, end ? (size_t)(end - left.at) : left.length};
    skip(&left, got[count].length + (end != NULL));
  }
  qsort(want, (size_t)program->print_count, sizeof *want, by_text);
  qsort(got, (size_t)count, sizeof *got, by_text);
  for (int i = 0; i < program->print_count || i < count; i++) {
    int order = i == count ? -1 : i == program->print_count ? 1 : by_text(&want[i], &got[i]);
    if (order < 0) return fail(line, "never printed: '%.*s'", (int)want[i].length, want[i].at);
    if (order > 0) return fail(line, "printed but not expected: '%.*s'", (int)got[i].length, got[i].at);
  }
  return true;
}

bool corpus_verdict(const CorpusProgram *program, const uint32_t *errors, const char *printed,
                    CorpusMessage *message) {
  Line line = {.message = message};
  if (errors[0] != 0)
    return fail(&line,
                "%u of %u comparisons failed; one at line %u, index %u: got 0x%08x%08x, expected 0x%08x%08x",
                errors[0], errors[1], errors[2], errors[3], errors[5], errors[4], errors[7], errors[6]);
  if (errors[1] == 0) return fail(&line, "nothing was compared");
  if (errors[1] < program->checks)
    return fail(&line, "%u comparisons made, %llu expected", errors[1], (unsigned long long)program->checks);
  if (printed && !same_lines(program, printed, &line)) return false;
  snprintf(message->text, sizeof message->text, "%u comparisons", errors[1]);
  return true;
}
