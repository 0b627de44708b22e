// Kernels that nobody would write but someone who wants out: PTX of random instructions whose addresses,
// sizes, counts, masks and handles lie at and past the ends of what there is, and texts of others with bytes
// and words changed. The same seed gives the same text on every machine.
//
//   Hostile h = {.random = seed};
//   hostile_kernel(&h);                    or hostile_mutant(&h, text, length)
//   h.text, h.length                       NUL-terminated; free(h.text)
#ifndef HOSTILE_H
#define HOSTILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostile_forms.h"

typedef struct Hostile {
  uint64_t random;
  char *text;
  size_t length, room;
  int labels, word, wide; // how many labels were made; which register the next 32- and 64-bit value goes to
} Hostile;

static inline uint64_t hostile_random(Hostile *h) { // splitmix64
  uint64_t z = h->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}
static inline uint32_t hostile_below(Hostile *h, size_t count) {
  return (uint32_t)(hostile_random(h) % count);
}
#define HOSTILE_PICK(h, list) ((list)[hostile_below(h, sizeof(list) / sizeof(list)[0])])

static inline void hostile_put(Hostile *h, const char *text, size_t length) {
  if (h->length + length + 1 > h->room) {
    h->room = (h->length + length + 1) * 2;
    h->text = realloc(h->text, h->room);
    if (!h->text) abort();
  }
  memcpy(h->text + h->length, text, length);
  h->length += length;
  h->text[h->length] = 0;
}
#define HOSTILE_SAY(h, ...)                                                                                  \
  do {                                                                                                       \
    char said_[2048];                                                                                        \
    snprintf(said_, sizeof said_, __VA_ARGS__);                                                              \
    hostile_put(h, said_, strlen(said_));                                                                    \
  } while (0)

// ---- values ----

static const uint32_t hostile_words[] = {
    0,          1,          2,          3,          4,          5,          7,          8,
    12,         15,         16,         17,         20,         24,         31,         32,
    33,         63,         64,         65,         127,        128,        255,        256,
    511,        512,        1000,       1008,       1016,       1023,       1024,       1025,
    4080,       4088,       4095,       4096,       4097,       5104,       5112,       5119,
    5120,       8191,       8192,       65519,      65535,      65536,      0x00ffffff, 0x3fffffff,
    0x7ffffff0, 0x7fffffff, 0x80000000, 0x80000001, 0xaaaaaaaa, 0xfffffff0, 0xfffffff8, 0xfffffffe,
    0xffffffff};

// Sizes of copies; most are multiples of 16.
static const uint32_t hostile_sizes[] = {0,          16,         32,         48,        1008, 1024, 1040,
                                         4080,       4096,       4112,       5104,      5120, 5136, 61440,
                                         65536,      65552,      1 << 20,    1 << 28,   8,    17,   1,
                                         0x7ffffff0, 0x80000000, 0xfffffff0, 0xffffffff};

// Ends of the emulator's windows (src/emu/core/state.h), of 32 and of 64 bits.
static const uint64_t hostile_places[] = {0,
                                          1,
                                          0xfffffff0,
                                          0xffffffff,
                                          UINT64_C(0x100000000),
                                          UINT64_C(0x09ffffffffff),
                                          UINT64_C(0x0a0000000000),
                                          UINT64_C(0x70fffffffff0),
                                          UINT64_C(0x710000000000),
                                          UINT64_C(0x7100fffffff0),
                                          UINT64_C(0x71fffffffff0),
                                          UINT64_C(0x720000000000),
                                          UINT64_C(0x720000010000),
                                          UINT64_C(0x72fffffffff8),
                                          UINT64_C(0x730000000000),
                                          UINT64_C(0x730000000040),
                                          UINT64_C(0x740000000000),
                                          UINT64_C(0x740000000010),
                                          UINT64_C(0x740000000018),
                                          UINT64_C(0x7400000000f0),
                                          UINT64_C(0x75fffffffff0),
                                          UINT64_C(0x7fffffffffffffff),
                                          UINT64_C(0x8000000000000000),
                                          UINT64_C(0xfffffffffffffff0),
                                          UINT64_C(0xffffffffffffffff)};

static inline uint32_t hostile_word(Hostile *h) {
  return hostile_below(h, 8) ? HOSTILE_PICK(h, hostile_words) : (uint32_t)hostile_random(h);
}

enum { HOSTILE_BUFFER = 4096, HOSTILE_TILE = 1024 }; // bytes of a parameter's buffer; of static shared memory

// An offset around the end of `bytes`, mostly inside or just outside, mostly aligned.
static inline int64_t hostile_offset(Hostile *h, int64_t bytes) {
  static const int64_t near[] = {0, -1, -2, -4, -8, -12, -16, -32, -64, -128, 1, 8, 16, 128};
  switch (hostile_below(h, 6)) {
  case 0: return bytes + HOSTILE_PICK(h, near);
  case 1: return HOSTILE_PICK(h, near);
  case 2: return (int64_t)hostile_word(h);
  case 3: return -(int64_t)hostile_word(h);
  case 4: return 0;
  default: return (int64_t)hostile_below(h, (size_t)bytes) & -16;
  }
}

static inline int hostile_wide(Hostile *h) {
  return 16 + (h->wide = (h->wide + 1) % 16);
}
static inline int hostile_narrow(Hostile *h) {
  return 16 + (h->word = (h->word + 1) % 16);
}

// A 64-bit register that holds an address: of a buffer, a variable, a function, a window.
static inline int hostile_address(Hostile *h, bool global) {
  static const char *const names[] = {"g0", "g1", "g2", "big"};
  static const char *const spaces[] = {"shared", "local", "const", "param"};
  static const char *const in[] = {"tile", "frame", "c0", "p0"};
  int r = hostile_wide(h);
  uint32_t what = hostile_below(h, global ? 7 : 12);
  if (what < 3) {
    HOSTILE_SAY(h, "add.s64 %%rd%d,%%rd%u,%lld;\n", r, hostile_below(h, 3),
                (long long)hostile_offset(h, HOSTILE_BUFFER));
  } else if (what < 5) {
    HOSTILE_SAY(h, "mov.u64 %%rd%d,%s;\nadd.s64 %%rd%d,%%rd%d,%lld;\n", r, HOSTILE_PICK(h, names), r, r,
                (long long)hostile_offset(h, 64));
  } else if (what == 5) {
    HOSTILE_SAY(h, "mov.u64 %%rd%d,0x%llx;\n", r, (unsigned long long)HOSTILE_PICK(h, hostile_places));
  } else if (what == 6) { // whatever an earlier instruction left there
    HOSTILE_SAY(h, "add.s64 %%rd%d,%%rd%u,%d;\n", r, hostile_below(h, 16), (int)hostile_below(h, 3) * 8);
  } else if (what < 11) {
    uint32_t s = what - 7;
    HOSTILE_SAY(h, "mov.u64 %%rd%d,%s;\ncvta.%s.u64 %%rd%d,%%rd%d;\nadd.s64 %%rd%d,%%rd%d,%lld;\n", r, in[s],
                spaces[s], r, r, r, r, (long long)hostile_offset(h, s == 0 ? HOSTILE_TILE : 64));
  } else {
    HOSTILE_SAY(h, "mov.u64 %%rd%d,%s;\n", r, hostile_below(h, 2) ? "f0" : "k");
  }
  return r;
}

// A 32-bit register that holds an address in shared memory, often aligned to 16.
static inline int hostile_shared(Hostile *h) {
  int r = hostile_narrow(h);
  uint32_t what = hostile_below(h, 8);
  if (what < 4) {
    HOSTILE_SAY(h, "mov.u32 %%r%d,%s;\nadd.u32 %%r%d,%%r%d,%u;\n", r, what % 2 ? "tile" : "ds", r, r,
                (uint32_t)hostile_offset(h, what % 2 ? HOSTILE_TILE : HOSTILE_BUFFER));
  } else if (what == 4) {
    HOSTILE_SAY(h, "mov.u32 %%r%d,tile;\nmapa.shared::cluster.u32 %%r%d,%%r%d,%u;\n", r, r, r,
                hostile_word(h));
  } else if (what == 5) { // each lane its own
    HOSTILE_SAY(h, "mad.lo.u32 %%r%d,%%r0,%u,%u;\n", r, hostile_word(h), hostile_word(h));
  } else {
    HOSTILE_SAY(h, "mov.u32 %%r%d,%u;\n", r, hostile_word(h));
  }
  return r;
}

static inline int hostile_constant(Hostile *h, uint32_t value) {
  int r = hostile_narrow(h);
  if (hostile_below(h, 5))
    HOSTILE_SAY(h, "mov.u32 %%r%d,%u;\n", r, value);
  else // not the same in every lane
    HOSTILE_SAY(h, "mad.lo.u32 %%r%d,%%r0,%u,%u;\n", r, hostile_word(h), value);
  return r;
}

static inline int hostile_handle(Hostile *h) { // of a texture, a surface, a sampler, or none
  int r = hostile_wide(h);
  if (hostile_below(h, 3))
    HOSTILE_SAY(h, "mov.u64 %%rd%d,%%rd%u;\n", r, 3 + hostile_below(h, 3));
  else
    HOSTILE_SAY(h, "add.s64 %%rd%d,%%rd%u,%d;\n", r, 3 + hostile_below(h, 3), (int)hostile_word(h));
  return r;
}

// ---- instructions ----

typedef struct HostileOperand {
  const char *prefix; // of a register; "" for a constant
  uint32_t value;
} HostileOperand;

static inline HostileOperand hostile_wide_value(Hostile *h) {
  uint32_t r = (uint32_t)hostile_wide(h);
  uint64_t value = hostile_below(h, 3) ? hostile_word(h) : HOSTILE_PICK(h, hostile_places);
  HOSTILE_SAY(h, "mov.u64 %%rd%u,0x%llx;\n", r, (unsigned long long)value);
  return (HostileOperand){"%rd", r};
}

// What stands for $kind; instructions that it needs go before the one that is being made.
static inline HostileOperand hostile_operand(Hostile *h, char kind) {
  switch (kind) {
  case 'G': return (HostileOperand){"%rd", (uint32_t)hostile_address(h, true)};
  case 'A': return (HostileOperand){"%rd", (uint32_t)hostile_address(h, false)};
  case 'S': return (HostileOperand){"%r", (uint32_t)hostile_shared(h)};
  case 'T': return (HostileOperand){"%rd", (uint32_t)hostile_handle(h)};
  case 'I': return (HostileOperand){"%r", (uint32_t)hostile_constant(h, hostile_word(h))};
  case 'J': return hostile_wide_value(h);
  case 'Z': return (HostileOperand){"%r", (uint32_t)hostile_constant(h, HOSTILE_PICK(h, hostile_sizes))};
  case 'i': return (HostileOperand){"", hostile_word(h) & 0x7fffffff};
  case 'n': return (HostileOperand){"", hostile_below(h, 20)};
  case 'r': return (HostileOperand){"%r", 1 + hostile_below(h, 15)};
  case 'd': return (HostileOperand){"%rd", 14 + hostile_below(h, 2)};
  case 'f': return (HostileOperand){"%f", hostile_below(h, 16)};
  case 'e': return (HostileOperand){"%e", hostile_below(h, 8)};
  case 'h': return (HostileOperand){"%h", hostile_below(h, 16)};
  case 'q': return (HostileOperand){"%q", hostile_below(h, 4)};
  case 'p': return (HostileOperand){"%p", hostile_below(h, 8)};
  default: abort();
  }
}

// Copies one of the parts of <a|b> to `out`; `at` is after the '<'. Returns what follows.
static inline const char *hostile_choice(Hostile *h, const char *at, char *out) {
  const char *end = strchr(at, '>');
  size_t parts = 1;
  for (const char *c = at; c < end; c++) parts += *c == '|';
  for (uint32_t skip = hostile_below(h, parts); skip; at++) skip -= *at == '|';
  size_t length = strcspn(at, "|>");
  memcpy(out, at, length);
  out[length] = 0;
  return end + 1;
}

// Choices first, since they may hold operands.
static inline void hostile_instruction(Hostile *h, const char *form) {
  char chosen[1024] = "", line[1024] = "";
  size_t n = 0;
  while (*form) {
    if (*form == '<')
      form = hostile_choice(h, form + 1, chosen + n), n += strlen(chosen + n);
    else
      chosen[n++] = *form++, chosen[n] = 0;
  }
  n = 0;
  if (chosen[0] != '{' && !strstr(chosen, "; ") && hostile_below(h, 5) == 0)
    n = (size_t)snprintf(line, sizeof line, "@%s%%p%u ", hostile_below(h, 2) ? "!" : "", hostile_below(h, 8));
  for (const char *at = chosen; *at && n + 40 < sizeof line;) {
    if (*at != '$') {
      line[n++] = *at++;
      continue;
    }
    HostileOperand o = hostile_operand(h, at[1]);
    n += (size_t)snprintf(line + n, sizeof line - n, "%s%u", o.prefix, o.value);
    at += 2;
  }
  line[n] = 0;
  HOSTILE_SAY(h, "%s\n", line);
}

static inline void hostile_any(Hostile *h, int kind) {
  switch (kind) {
  case 0: hostile_instruction(h, HOSTILE_PICK(h, hostile_memory)); break;
  case 1: hostile_instruction(h, HOSTILE_PICK(h, hostile_copies)); break;
  case 2: hostile_instruction(h, HOSTILE_PICK(h, hostile_warps)); break;
  case 3: hostile_instruction(h, HOSTILE_PICK(h, hostile_calls)); break;
  case 4: hostile_instruction(h, HOSTILE_PICK(h, hostile_objects)); break;
  default: hostile_instruction(h, HOSTILE_PICK(h, hostile_arithmetic)); break;
  }
}

// ---- kernels ----

static inline void hostile_block(Hostile *h, int kind, int count, int depth);

// A branch that part of the lanes take, or a loop: some end, some wait for what never comes.
static inline void hostile_nest(Hostile *h, int kind, int depth) {
  int label = h->labels++;
  static const char *const compare[] = {"lt.u32", "eq.u32", "gt.s32"};
  switch (hostile_below(h, 4)) {
  case 0: // a loop of a few rounds
    HOSTILE_SAY(h, "mov.u32 %%n%d,0;\nL%d:\n", depth, label);
    hostile_block(h, kind, 2, depth + 1);
    HOSTILE_SAY(h, "add.u32 %%n%d,%%n%d,1;\nsetp.lt.u32 %%p7,%%n%d,%u;\n@%%p7 bra L%d;\n", depth, depth,
                depth, 1 + hostile_below(h, 4), label);
    break;
  case 1: // until something has changed
    HOSTILE_SAY(h, "L%d:\n", label);
    hostile_block(h, kind, 1, depth + 1);
    HOSTILE_SAY(h, "@%s%%p%u bra L%d;\n", hostile_below(h, 2) ? "!" : "", hostile_below(h, 8), label);
    break;
  default:
    HOSTILE_SAY(h, "setp.%s %%p6,%%r0,%u;\n@%%p6 bra L%d;\n", HOSTILE_PICK(h, compare), hostile_below(h, 40),
                label);
    hostile_block(h, kind, 2, depth + 1);
    HOSTILE_SAY(h, "L%d:\n", label);
  }
}

static inline void hostile_block(Hostile *h, int kind, int count, int depth) {
  for (int i = 0; i < count; i++)
    if (depth < 4 && hostile_below(h, 6) == 0)
      hostile_nest(h, kind, depth);
    else
      hostile_any(h, hostile_below(h, 3) ? kind : (int)hostile_below(h, 6));
}

// Bytes of a printf format, often with what a printf reads too much for.
static inline void hostile_format(Hostile *h, int number) {
  static const char *const parts[] = {
      "%d",   "%s",  "%*d", "%-*.*f", "%n",    "%.999999999f", "%c",   "%lld", "%p", "%5%",
      "%hhx", "%Lf", "%",   "%.*s",   "%0.0e", "%#x",          "%zzz", "text", "%a", "%2147483648d"};
  HOSTILE_SAY(h, ".global .align 1 .b8 fm%d[]={", number);
  for (uint32_t i = 0, count = 1 + hostile_below(h, 4); i < count; i++)
    for (const char *c = HOSTILE_PICK(h, parts); *c; c++) HOSTILE_SAY(h, "%d,", *c);
  HOSTILE_SAY(h, "%d};\n", hostile_below(h, 8) ? 0 : 37); // now and then without an end
}

static inline void hostile_module(Hostile *h) {
  static const char *const large[] = {"67108864", "4294967295", "1099511627776", "9223372036854775807"};
  static const char *const required[] = {".reqntid 48,1,1\n", ".maxntid 64,1,1\n", ".maxnreg 32\n",
                                         ".explicitcluster\n.reqnctapercluster 2,1,1\n",
                                         ".reqnctapercluster 4,1,1\n"};
  HOSTILE_SAY(h,
              ".version 8.8\n.target sm_100a\n.address_size 64\n"
              ".extern .shared .align 16 .b8 ds[];\n.shared .align 128 .b8 tile[1024];\n"
              ".global .align 8 .b8 g0[64];\n.global .align 16 .b8 g1[64];\n.global .b32 g2[16]={1,2,3};\n");
  HOSTILE_SAY(h, ".global .align 16 .b8 big[%s];\n.const .align 16 .b8 c0[64];\n",
              hostile_below(h, 16) ? "4096" : HOSTILE_PICK(h, large));
  for (int i = 0; i < 4; i++) hostile_format(h, i);
  HOSTILE_SAY(h,
              ".extern .func (.param .b64 r) malloc (.param .b64 a);\n.extern .func free (.param .b64 a);\n"
              ".extern .func (.param .b32 r) vprintf (.param .b64 a,.param .b64 b);\n"
              ".extern .func __assertfail (.param .b64 a,.param .b64 b,.param .b32 c,.param .b64 d,.param "
              ".b64 e);\n");
  HOSTILE_SAY(
      h,
      ".func f0(.param .b64 a)\n{\n.reg .b64 %%x<3>;\nld.param.u64 %%x0,[a];\nst.u64 [%%x0],%%x0;\nret;\n}\n"
      ".func (.param .b32 r) f1(.param .b32 a,.param .b64 b)\n{\n.reg .b32 %%y;\n.local .align 16 .b8 "
      "l[%u];\n"
      "ld.param.u32 %%y,[a];\nst.param.b32 [r],%%y;\nret;\n}\n",
      1 + hostile_below(h, 100000));
  HOSTILE_SAY(
      h, ".func (.param .b32 r) f2(.param .b32 a)\n{\n.reg .b32 %%y<3>;\n.reg .pred %%p;\nld.param.u32 "
         "%%y0,[a];\n"
         "setp.eq.u32 %%p,%%y0,0;\n@%%p bra D;\nsub.u32 %%y1,%%y0,1;\n"
         "{.param .b32 b; .param .b32 c; st.param.b32 [b],%%y1; call (c),f2,(b); ld.param.b32 %%y2,[c];}\n"
         "D: st.param.b32 [r],%%y0;\nret;\n}\n"
         ".func f3(.param .align 16 .b8 s[32])\n{\n.reg .b64 %%x;\nld.param.u64 %%x,[s+24];\nret;\n}\n");
  HOSTILE_SAY(h,
              ".visible .entry k(.param .u64 p0,.param .u64 p1,.param .u64 p2,.param .u64 p3,.param .u64 "
              "p4,.param .u64 p5)\n"
              "%s{\n.reg .pred %%p<8>;\n.reg .b16 %%h<16>;\n.reg .b32 %%r<32>,%%n<8>;\n.reg .b64 %%rd<32>;\n"
              ".reg .f32 %%f<16>;\n.reg .f64 %%e<8>;\n.reg .b128 %%q<4>;\n.local .align 16 .b8 frame[64];\n",
              hostile_below(h, 8) ? "" : HOSTILE_PICK(h, required));
}

static inline void hostile_kernel(Hostile *h) {
  h->length = 0;
  hostile_module(h);
  HOSTILE_SAY(h, "proto0: .callprototype _ (.param .b64 _);\n"
                 "proto1: .callprototype (.param .b32 _) _ (.param .b32 _,.param .b64 _);\n"
                 "targets: .branchtargets E,B,B,E;\n");
  for (int i = 0; i < 6; i++) HOSTILE_SAY(h, "ld.param.u64 %%rd%d,[p%d];\n", i, i);
  HOSTILE_SAY(h, "mov.u32 %%r0,%%tid.x;\nmov.u32 %%r1,%%ctaid.x;\nsetp.lt.u32 %%p0,%%r0,16;\n");
  if (hostile_below(h, 2)) // a barrier that works, for a while
    HOSTILE_SAY(h, "mov.u32 %%r2,tile;\nmbarrier.init.shared.b64 [%%r2],1;\n");
  if (hostile_below(h, 2)) // memory to write past the end of
    for (int i = 8; i < 11; i++)
      HOSTILE_SAY(
          h,
          "{.param .b64 a; .param .b64 r; mov.u64 %%rd7,%u; st.param.b64 [a],%%rd7; call (r),malloc,(a); "
          "ld.param.b64 %%rd%d,[r];}\n",
          16u << hostile_below(h, 4), i);
  HOSTILE_SAY(h, "B:\n");
  hostile_block(h, (int)hostile_below(h, 6), 2 + (int)hostile_below(h, 10), 0);
  HOSTILE_SAY(h, "E:\nret;\n}\n");
}

// ---- mutants ----

static inline bool hostile_separates(char c) {
  return strchr(" \t\n,;[]{}()", c) != NULL; // a NUL, too
}

// A word or number of the text; where there is a body, mostly in it: a head that cannot be read hides the
// rest.
typedef struct HostileToken {
  size_t at, length;
} HostileToken;
static inline HostileToken hostile_token(Hostile *h) {
  const char *body = memchr(h->text, '{', h->length);
  size_t from = body && hostile_below(h, 8) ? (size_t)(body - h->text) : 0;
  HostileToken t = {from + hostile_below(h, h->length - from), 0};
  while (t.at > from && !hostile_separates(h->text[t.at - 1])) t.at--;
  while (t.at < h->length && hostile_separates(h->text[t.at])) t.at++;
  while (t.at + t.length < h->length && !hostile_separates(h->text[t.at + t.length])) t.length++;
  return t;
}

// Another word of the same kind, where a few tries find one: a register, a number, an opcode.
static inline HostileToken hostile_alike(Hostile *h, HostileToken t) {
  HostileToken other = t;
  char first = t.length ? h->text[t.at] : 0;
  for (int i = 0; i < 20; i++) {
    other = hostile_token(h);
    char c = other.length ? h->text[other.at] : 0;
    if (c == first || (c >= '0' && c <= '9' && first >= '0' && first <= '9')) break;
  }
  return other;
}

// The text with `gone` bytes at `at` replaced.
static inline void hostile_replace(Hostile *h, size_t at, size_t gone, const char *with, size_t length) {
  size_t left = h->length - at - gone;
  char *rest = malloc(left + length + 1);
  if (!rest) abort();
  memcpy(rest, with, length);
  memcpy(rest + length, h->text + at + gone, left);
  h->length = at;
  hostile_put(h, rest, left + length);
  free(rest);
}

static inline void hostile_again(Hostile *h, size_t at, size_t from) { // a line once more, elsewhere
  while (from && h->text[from - 1] != '\n') from--;
  while (at && h->text[at - 1] != '\n') at--;
  const char *end = memchr(h->text + from, '\n', h->length - from);
  if (end) hostile_replace(h, at, 0, h->text + from, (size_t)(end - h->text) + 1 - from);
}

static inline void hostile_mutate(Hostile *h) {
  HostileToken t = hostile_token(h), other = hostile_alike(h, t);
  bool number = t.length && h->text[t.at] >= '0' && h->text[t.at] <= '9';
  char text[24], byte = (char)hostile_random(h);
  switch (hostile_below(h, 16)) {
  case 0: h->text[hostile_below(h, h->length)] ^= (char)(1 << hostile_below(h, 8)); break;
  case 1: hostile_replace(h, hostile_below(h, h->length), 0, &byte, 1); break;
  case 2: hostile_replace(h, t.at, t.length, "", 0); break;
  case 3:
  case 4:
  case 5: hostile_again(h, t.at, other.at); break;
  default:
    if (number && hostile_below(h, 4)) {
      snprintf(text, sizeof text, "%u", hostile_word(h));
      hostile_replace(h, t.at, t.length, text, strlen(text));
    } else
      hostile_replace(h, t.at, t.length, h->text + other.at, other.length);
  }
}

static inline void hostile_mutant(Hostile *h, const char *text, size_t length) {
  h->length = 0;
  hostile_put(h, text, length);
  for (uint32_t i = 0, count = 1 + hostile_below(h, 5); i < count && h->length; i++) hostile_mutate(h);
}

#endif
