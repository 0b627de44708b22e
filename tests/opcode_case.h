// The lines of ops.def spelt out: every combination of modifiers that a line allows, as an OpcodeCase.
#ifndef OPCODE_CASE_H
#define OPCODE_CASE_H

#include "check.h"
#include "ptx/ptx.h"

typedef struct OpcodeLine { // of ops.def
  const char *id, *root, *modifiers, *operands, *handler;
} OpcodeLine;
static const OpcodeLine opcode_lines[] = {
#define PTX_OP(id, root, modifiers, operands, handler, semantics) {#id, root, modifiers, operands, #handler},
#define PTX_FORM(id, root, modifiers, operands)                   {#id, root, modifiers, operands, NULL},
#define PTX_REFUSED(root, what)
#include "ptx/ops.def"
};
enum { OPCODE_LINES = (int)(sizeof opcode_lines / sizeof opcode_lines[0]) };

static inline const char *opcode_handler(int line) { // a form's is that of its opcode
  for (int i = line; i >= 0; i--)
    if (opcode_lines[i].handler && !strcmp(opcode_lines[i].id, opcode_lines[line].id))
      return opcode_lines[i].handler;
  return "";
}

typedef struct OpcodeCase {
  const OpcodeLine *line;
  const char *id;
  char text[96];    // "add.rn.ftz.f32"
  char flags[64];   // " ftz sat "
  char type[4][12]; // "" where there is none
  char rnd[8], cmp[8], bool_op[8], fn[16], edge[8];
} OpcodeCase;

static inline bool opcode_has(const OpcodeCase *c, const char *flag) {
  char with_spaces[32];
  snprintf(with_spaces, sizeof with_spaces, " %s ", flag);
  return strstr(c->flags, with_spaces) != NULL;
}
static inline bool opcode_is(const OpcodeCase *c, const char *id) {
  return !strcmp(c->id, id);
}

// ---- types ----

static inline int opcode_bits(const char *type) { // of a register
#define PTX_TYPE(id, text, bits, class)                                                                      \
  if (!strcmp(type, text)) return bits;
#include "ptx/words.def"
  return 0;
}
static inline bool opcode_signed(const char *type) {
  return type[0] == 's';
}
static inline bool opcode_float(const char *type) {
  return type[0] == 'f' || !strncmp(type, "bf", 2) || !strcmp(type, "tf32");
}
static inline bool opcode_pair(const char *type) {
  return strlen(type) > 2 && !strcmp(type + strlen(type) - 2, "x2");
}

// ---- expansion ----

typedef struct OpcodeToken {
  char kind[24]; // "t1", "rnd", "cmp" ...; "" for a flag
  char words[40][48];
  int count;
  bool optional;
} OpcodeToken;

static inline void opcode_add_words(OpcodeToken *t, const char *list) {
  for (const char *p = list; *p;) {
    size_t n = strcspn(p, ",");
    snprintf(t->words[t->count++], sizeof t->words[0], "%.*s", (int)n, p);
    p += n + (p[n] == ',');
  }
}

static inline bool opcode_token(const char *text, size_t n,
                                OpcodeToken *t) { // false: implied, nothing is written
  char word[400];
  *t = (OpcodeToken){.count = 0};
  if (text[0] == '+' || n >= sizeof word) return false;
  snprintf(word, sizeof word, "%.*s", (int)n, text);
  char *colon = strstr(word, ":");
  if (colon && colon[1] == ':') colon = NULL; // L2::cache_hint
  if (colon) *colon = 0;
  char *mark = strchr(word, '?');
  if (mark) *mark = 0, t->optional = true;
  if (colon) {
    snprintf(t->kind, sizeof t->kind, "%.20s", word);
    opcode_add_words(t, colon + 1);
  } else if (!strcmp(word, "cmp") || !strcmp(word, "bool")) {
    snprintf(t->kind, sizeof t->kind, "%.20s", word);
    opcode_add_words(t, word[0] == 'c' ? "eq,ne,lt,le,gt,ge,lo,ls,hi,hs,equ,neu,ltu,leu,gtu,geu,num,nan"
                                       : "and,or,xor");
  } else {
    opcode_add_words(t, word);
  }
  return true;
}

enum { OPCODE_TOKENS = 12 };
static inline int opcode_tokens(const OpcodeLine *line, OpcodeToken tokens[OPCODE_TOKENS]) {
  int count = 0;
  for (const char *p = line->modifiers; *p;) {
    size_t n = strcspn(p, " ");
    if (n && count < OPCODE_TOKENS && opcode_token(p, n, &tokens[count])) count++;
    p += n + (p[n] == ' ');
  }
  return count;
}

static inline void opcode_take(OpcodeCase *c, const OpcodeToken *t, const char *word) {
  size_t n = strlen(c->text);
  snprintf(c->text + n, sizeof c->text - n, ".%s", word);
  if (t->kind[0] == 't' && t->kind[1] >= '1' && t->kind[1] <= '4') {
    snprintf(c->type[t->kind[1] - '1'], sizeof c->type[0], "%.11s", word);
    return;
  }
  static const char *const kinds[] = {"rnd", "cmp", "bool", "fn", "edge"};
  char *const fields[] = {c->rnd, c->cmp, c->bool_op, c->fn, c->edge};
  for (int i = 0; i < 5; i++)
    if (!strcmp(t->kind, kinds[i])) {
      snprintf(fields[i], 8, "%.7s", word);
      if (i == 3) snprintf(c->fn, sizeof c->fn, "%.15s", word);
      return;
    }
  n = strlen(c->flags);
  snprintf(c->flags + n, sizeof c->flags - n, "%s%s ", n ? "" : " ", word);
}

// How many cases a line has, and the k-th of them.
static inline long opcode_count(const OpcodeLine *line) {
  OpcodeToken tokens[OPCODE_TOKENS];
  int count = opcode_tokens(line, tokens);
  long product = 1;
  for (int i = 0; i < count; i++) product *= tokens[i].count + tokens[i].optional;
  return product;
}
static inline void opcode_case(const OpcodeLine *line, long k, OpcodeCase *c) {
  OpcodeToken tokens[OPCODE_TOKENS];
  int count = opcode_tokens(line, tokens);
  *c = (OpcodeCase){.line = line, .id = line->id};
  snprintf(c->text, sizeof c->text, "%s", line->root);
  for (int i = 0; i < count; i++) {
    int choices = tokens[i].count + tokens[i].optional, pick = (int)(k % choices);
    k /= choices;
    if (pick < tokens[i].count) opcode_take(c, &tokens[i], tokens[i].words[pick]);
  }
}

// ---- operands ----

typedef struct OpcodeOperand {
  char letter; // d p q a b c e g m ...; 0: never there
  char type[12];
  bool may_miss, constant, bar, four;
} OpcodeOperand;

static inline int opcode_operands(const OpcodeCase *c, OpcodeOperand out[8]) {
  int count = 0;
  for (const char *p = c->line->operands; *p; p += *p == ' ') {
    size_t n = strcspn(p, " ");
    OpcodeOperand *o = &out[count++];
    *o = (OpcodeOperand){.letter = p[0]};
    snprintf(o->type, sizeof o->type, "%s", c->type[0]);
    if (p[0] == '-') o->letter = 0;
    if (p[0] == '|') o->bar = true, o->letter = p[1];
    for (size_t i = 1; i < n; i++) {
      if (p[i] == '?') o->may_miss = true;
      if (p[i] == '#') o->constant = true;
      if (p[i] == '*') o->four = true;
      if (p[i] == '@' && !c->bool_op[0]) o->letter = 0;
      if (p[i] != ':') continue;
      size_t w = strspn(p + i + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
      char word[16];
      snprintf(word, sizeof word, "%.*s", (int)w, p + i + 1);
      if (word[0] >= '1' && word[0] <= '4' && !word[1])
        snprintf(o->type, sizeof o->type, "%s", c->type[word[0] - '1']);
      else if (!strcmp(word, "w"))
        snprintf(o->type, sizeof o->type, "%c%d", c->type[0][0], 2 * opcode_bits(c->type[0]));
      else
        snprintf(o->type, sizeof o->type, "%.11s", word);
    }
    p += n;
  }
  return count;
}

#endif
