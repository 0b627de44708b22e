// Random operands, and the kernel that runs one instruction on them. A thread reads IN_WORDS words: sources
// from 0 on, [6] bits for the predicates (1 and 2: sources, 4: guard, 8: carry), [7] what destinations hold
// before. It writes OUT_WORDS: the destination [0] of the plain instruction and [1] of the guarded one, [2]
// and [3] their predicates, [4] CF.
#ifndef OPCODE_KERNEL_H
#define OPCODE_KERNEL_H

#include "opcode_cvt.h"

enum { IN_WORDS = 8, OUT_WORDS = 8 };

// ---- operands ----

static uint64_t random_state = 0x9e3779b97f4a7c15;
static inline uint64_t random_word(void) {
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return random_state;
}

static inline uint64_t special_float(int bits, int mbits) {
  uint64_t sign = random_word() & 1 ? UINT64_C(1) << (bits - 1) : 0, ones = (UINT64_C(1) << (bits - 1)) - 1;
  uint64_t infinity = ones >> mbits << mbits, one = (infinity >> 1) >> mbits << mbits;
  switch (random_word() % 16) {
  case 0: return sign;
  case 1: return sign | one;
  case 2: return sign | infinity;
  case 3: return sign | infinity | 1;
  case 4: return sign | ones;
  case 5: return sign | (infinity - 1);
  case 6: return sign | 1;
  case 7: return sign | UINT64_C(1) << mbits;
  case 8: return sign | ((UINT64_C(1) << mbits) - 1);
  case 9: return sign | (one + (random_word() & 255));
  case 10: return sign | (random_word() & ((UINT64_C(1) << mbits) - 1)); // subnormal
  case 11: return sign | (one + (random_word() % 40 << (mbits - 2)));    // small numbers
  case 12: return bits == 16 ? sign | 0x7ff7 : sign | one;
  case 13: return sign | ((UINT64_C(2) << mbits) + (random_word() & 7));
  default: return sign | (one + (random_word() % (UINT64_C(6) << mbits)) - (UINT64_C(3) << mbits));
  }
}
static inline uint64_t random_operand(const char *type) {
  int bits = opcode_bits(type);
  if (opcode_pair(type) && ref_format(type)) { // halves of their own kind
    const RefFormat *f = ref_format(type);
    return special_float(f->bits, f->mbits) | special_float(f->bits, f->mbits) << f->bits;
  }
  const RefFormat *f = ref_format(type);
  if (f && f->bits == bits && random_word() % 3) return special_float(f->bits, f->mbits);
  uint64_t one = UINT64_C(1);
  switch (random_word() % 12) {
  case 0: return 0;
  case 1: return UINT64_MAX;
  case 2: return one << (bits - 1);
  case 3: return (one << (bits - 1)) - 1;
  case 4: return random_word() % 70;
  case 5: return 0 - random_word() % 70;
  case 6: return one << random_word() % (uint64_t)bits;
  case 7: return random_word() >> random_word() % 64;
  default: return random_word();
  }
}

// What the manual allows of an operand, where it is less than its type holds.
static inline uint64_t in_range(const char *id, int source, uint64_t v) {
  bool field = !strcmp(id, "BFE") || !strcmp(id, "BFI"), place = source >= (!strcmp(id, "BFE") ? 1 : 2);
  if (field && place) return v & 255;
  if (!strcmp(id, "FNS") && source == 1) return v & 31;
  return !strcmp(id, "FNS") && source == 2 ? (v & 127) - 64 : v;
}

// ---- kernels ----

typedef struct Text {
  char *bytes;
  size_t count, cap;
} Text;
__attribute__((format(printf, 2, 3))) static inline void put(Text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (t->cap - t->count < 4096) t->bytes = realloc(t->bytes, t->cap = t->cap * 2 + 65536);
  t->count += (size_t)vsnprintf(t->bytes + t->count, 4096, format, args);
  va_end(args);
}

typedef struct Run { // a case as one kernel runs it
  OpcodeCase c;
  const char *handler;
  OpcodeOperand operands[8];
  int operand_count, sources; // sources: that are read from memory
  int immediate;              // the source that stands as a constant; -1: none
  uint64_t immediate_value;
  uint32_t table;   // lop3's
  bool three, wide; // min, max: with c. cvt: registers wider than the types
  bool has_q;
} Run;

static inline char reg_class(int bits) {
  return bits <= 16 ? 'h' : bits == 32 ? 'r' : 'd';
}
static inline int reg_bits(int bits) {
  return bits <= 16 ? 16 : bits;
}

// Which source, counted from 0, operand `at` is; -1 where it is none.
static inline int source_index(const Run *r, int at) {
  const OpcodeOperand *o = &r->operands[at];
  if (!o->letter || strchr("dpq", o->letter) || !strcmp(o->type, "pred") || o->constant) return -1;
  if (o->may_miss && !r->three) return -1;
  int n = 0;
  for (int i = 0; i < at; i++)
    if (source_index(r, i) >= 0) n += r->operands[i].four ? 4 : 1;
  return n;
}
static inline bool is_cvt(const Run *r) {
  return !strcmp(r->handler, "convert");
}
static inline int operand_reg_bits(const Run *r, const OpcodeOperand *o) {
  int bits = reg_bits(opcode_bits(o->type));
  return r->wide && bits < 64 ? bits * 2 : bits;
}

static inline void put_operand(Text *t, const Run *r, int at, int copy) {
  const OpcodeOperand *o = &r->operands[at];
  int bits = operand_reg_bits(r, o), n = source_index(r, at);
  if (o->letter == 'd' && !strcmp(o->type, "pred"))
    put(t, "%%p%d", 4 + copy * 2);
  else if (o->letter == 'd')
    put(t, "%%%c%d", reg_class(bits), 20 + copy);
  else if (o->letter == 'p' || o->letter == 'q')
    put(t, "%%p%d", 4 + copy * 2 + (o->bar && at > 0 && r->operands[0].letter == 'p'));
  else if (o->constant)
    put(t, "%u", r->table);
  else if (!strcmp(o->type, "pred"))
    put(t, "%s", !strcmp(r->c.type[0], "pred") && o->letter == 'b' ? "%p2" : "%p1");
  else if (n >= 0 && n == r->immediate)
    put(t, opcode_float(o->type) ? "0f%08llx" : "0x%llx",
        (unsigned long long)cut(r->immediate_value, opcode_bits(o->type)));
  else if (o->four)
    put(t, "{%%r%d, %%r%d, %%r%d, %%r%d}", 10 + n, 11 + n, 12 + n, 13 + n);
  else
    put(t, "%%%c%d", reg_class(bits), 10 + n);
}

static inline void put_instruction(Text *t, const Run *r, int copy) {
  put(t, "%s%s ", copy ? "  @%p3 " : "  ", r->c.text);
  bool first = true;
  for (int i = 0; i < r->operand_count; i++) {
    const OpcodeOperand *o = &r->operands[i];
    if (!o->letter || (o->may_miss && !r->three)) continue;
    if (o->bar && !r->has_q) continue;
    put(t, "%s", o->bar ? "|" : first ? "" : ", ");
    put_operand(t, r, i, copy);
    first = false;
  }
  put(t, ";\n");
}

static inline void put_kernel(Text *t, const Run *r, int index) {
  put(t,
      ".visible .entry k%d(.param .u64 in, .param .u64 out) {\n  .reg .pred %%p<12>;\n  .reg .b16 %%h<32>;\n"
      "  .reg .b32 %%r<32>;\n  .reg .b64 %%d<32>;\n  mov.u32 %%r0, %%tid.x;\n  ld.param.u64 %%d0, [in];\n"
      "  ld.param.u64 %%d1, [out];\n  mul.wide.u32 %%d2, %%r0, 64;\n  add.s64 %%d3, %%d0, %%d2;\n"
      "  add.s64 %%d4, %%d1, %%d2;\n  ld.global.u32 %%r1, [%%d3+48];\n",
      index);
  for (int p = 0; p < 4; p++) // p1: predicate source, p2: another, p3: guard; r5: carry
    put(t, "  and.b32 %%r2, %%r1, %d;\n  setp.ne.u32 %%p%d, %%r2, 0;\n", 1 << p, p == 3 ? 10 : p + 1);
  for (int copy = 0; copy < 2; copy++) // what a destination holds before
    put(t,
        "  ld.global.b64 %%d%d, [%%d3+56];\n  ld.global.b32 %%r%d, [%%d3+56];\n  ld.global.b16 %%h%d, "
        "[%%d3+56];\n"
        "  setp.ne.u32 %%p%d, %%r2, %%r2;\n  setp.ne.u32 %%p%d, %%r2, %%r2;\n",
        20 + copy, 20 + copy, 20 + copy, 4 + 2 * copy, 5 + 2 * copy);
  int dest_bits = 64;
  for (int i = 0; i < r->operand_count; i++) {
    const OpcodeOperand *o = &r->operands[i];
    int n = source_index(r, i);
    if (o->letter == 'd') dest_bits = operand_reg_bits(r, o);
    for (int k = 0; n >= 0 && k < (o->four ? 4 : 1); k++)
      put(t, "  ld.global.b%d %%%c%d, [%%d3+%d];\n", operand_reg_bits(r, o),
          reg_class(operand_reg_bits(r, o)), 10 + n + k, (n + k) * 8);
  }
  bool carries = !strcmp(r->handler, "int_carry"), sub = !strncmp(r->c.id, "SUB", 3);
  for (int copy = 0; copy < 2; copy++) {
    if (carries) // CF from the input, then what the instruction leaves
      put(t, "  selp.b32 %%r3, 1, 0, %%p10;\n  %s %%r3, %%r3, %s;\n", sub ? "sub.cc.u32" : "add.cc.u32",
          sub ? "1" : "0xffffffff");
    put_instruction(t, r, copy);
    if (!copy) put(t, "  %s\n", carries ? "addc.u32 %r4, 0, 0;" : "mov.u32 %r4, 0;");
  }
  for (int copy = 0; copy < 2; copy++) {
    put(t, "  st.global.b%d [%%d4+%d], %%%c%d;\n", dest_bits, copy * 8, reg_class(dest_bits), 20 + copy);
    for (int p = 0; p < 2; p++)
      put(t, "  selp.b32 %%r5, 1, 0, %%p%d;\n  st.global.b32 [%%d4+%d], %%r5;\n", 4 + copy * 2 + p,
          16 + copy * 8 + p * 4);
  }
  put(t, "  st.global.b32 [%%d4+32], %%r4;\n  ret;\n}\n");
}

#endif
