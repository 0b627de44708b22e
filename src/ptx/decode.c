// From an opcode's text to a PtxCode: the first line of ops.def whose modifiers take every word.
#include "ptx/internal.h"
#include "ptx/words.h"

enum { MAX_WORDS = 24, MAX_MODIFIERS = 24 };

typedef struct Text {
  const char *at;
  size_t length;
} Text;

static bool same(Text a, const char *b) {
  return strlen(b) == a.length && !memcmp(a.at, b, a.length);
}
static bool same_text(Text a, Text b) {
  return a.length == b.length && !memcmp(a.at, b.at, a.length);
}

// Cuts the next piece off a list; false at its end.
static bool cut(const char **list, const char *end, char separator, Text *out) {
  while (*list < end && **list == separator) ++*list;
  if (*list == end) return false;
  out->at = *list;
  while (*list < end && **list != separator) ++*list;
  out->length = (size_t)(*list - out->at);
  return true;
}

// ---- modifiers ----

// Kinds of a family are filled from left to right: the first space written is `space`, the next `space2`.
typedef struct Field {
  const char *name, *kind; // as ops.def and as words.def call it
  size_t offset;           // in PtxCode
  int family;
} Field;

#define FIELD(name, kind, member, family)                                                                    \
  { name, kind, offsetof(PtxCode, member), family }
static const Field fields[] = {
    FIELD("t1", "TYPE", type[0], 1),      FIELD("t2", "TYPE", type[1], 1),
    FIELD("t3", "TYPE", type[2], 1),      FIELD("t4", "TYPE", type[3], 1),
    FIELD("space", "SPACE", space, 2),    FIELD("space2", "SPACE", space2, 2),
    FIELD("layout", "LAYOUT", layout, 3), FIELD("layout2", "LAYOUT", layout2, 3),
    FIELD("evict2", "EVICT2", evict2, 4), FIELD("evict3", "EVICT2", evict3, 4),
    FIELD("rnd", "RND", rnd, 0),          FIELD("cmp", "CMP", cmp, 0),
    FIELD("bool", "BOOL", bool_op, 0),    FIELD("fn", "FN", fn, 0),
    FIELD("edge", "EDGE", edge, 0),       FIELD("sem", "SEM", sem, 0),
    FIELD("scope", "SCOPE", scope, 0),    FIELD("cop", "COP", cop, 0),
    FIELD("evict1", "EVICT1", evict1, 0), FIELD("prefetch", "PREFETCH", prefetch, 0),
    FIELD("geom", "GEOM", geom, 0),       FIELD("vec", "VEC", vec, 0),
    FIELD("shape", "SHAPE", m, 0),        FIELD("scale", "SCALE", scale, 0),
};

typedef struct Modifier {
  const Field *field; // NULL: a flag, `word` its text
  Text word, list;    // list: alternatives; empty: any of its kind
  bool optional, implied, filled;
} Modifier;

typedef struct Pattern {
  Modifier modifiers[MAX_MODIFIERS];
  int count;
} Pattern;

// Reads the modifiers column of ops.def.
static void read_pattern(const char *text, Pattern *pattern) {
  const char *end = text + strlen(text);
  Text word;
  pattern->count = 0;
  while (cut(&text, end, ' ', &word) && pattern->count < MAX_MODIFIERS) {
    Modifier *m = &pattern->modifiers[pattern->count++];
    *m = (Modifier){0};
    if (word.at[0] == '+') m->implied = true, word.at++, word.length--;
    Text name = word;
    // Flags hold colons too, but two of them.
    for (size_t i = 0; i + 1 < word.length; i++)
      if (word.at[i] == ':' && word.at[i + 1] != ':') {
        if (i && word.at[i - 1] == ':') break;
        name.length = i;
        m->list = (Text){word.at + i + 1, word.length - i - 1};
        break;
      }
    if (name.at[name.length - 1] == '?') m->optional = true, name.length--;
    m->word = name;
    for (size_t i = 0; i < SOL_COUNT(fields); i++)
      if (same(name, fields[i].name)) m->field = &fields[i];
  }
}

static int find_word(const char *kind, Text text) {
  const PtxWordRow *row;
  for (int i = 0; (row = sol_ptx_word(i)); i++)
    if (!strcmp(row->kind, kind) && same(text, row->text)) return row->value;
  return -1;
}

static bool in_list(Text list, Text word) {
  const char *at = list.at, *end = list.at + list.length;
  Text item;
  while (cut(&at, end, ',', &item))
    if (same_text(item, word)) return true;
  return false;
}

// The number a word stands for as a value of the field, -1 where it is none. Spellings that words.def calls
// aliases of a listed word are taken with it.
static int value_of(const Field *field, Text list, Text word) {
  if (!strcmp(field->kind, "VEC")) {
    if (list.length ? !in_list(list, word) : !(same(word, "v2") || same(word, "v4") || same(word, "v8")))
      return -1;
    int count = 0;
    for (size_t i = 1; i < word.length; i++) count = count * 10 + word.at[i] - '0';
    return count;
  }
  if (!strcmp(field->kind, "SHAPE")) return in_list(list, word) ? 0 : -1;
  if (!strcmp(field->kind, "TYPE")) {
    if (!in_list(list, word)) return -1;
    return (int)sol_ptx_type_of(word.at, word.length);
  }
  if (!list.length || in_list(list, word)) return find_word(field->kind, word);
  if (strcmp(field->kind, "SPACE") != 0 && strcmp(field->kind, "SCOPE") != 0)
    return -1; // no other kind has aliases
  int value = find_word(field->kind, word);
  const char *at = list.at, *end = list.at + list.length;
  Text item;
  while (cut(&at, end, ',', &item))
    if (value >= 0 && find_word(field->kind, item) == value) return value;
  return -1;
}

// "m16n8k32" and "m8n8"
static void set_shape(PtxCode *code, Text word) {
  uint16_t *to = &code->m;
  for (size_t i = 0; i < word.length; i++) {
    char c = word.at[i];
    if (c == 'm')
      to = &code->m;
    else if (c == 'n')
      to = &code->n;
    else if (c == 'k')
      to = &code->k;
    else
      *to = (uint16_t)(*to * 10 + (c - '0'));
  }
}

static bool try_modifier(const Modifier *m, Text word, PtxCode *code) {
  if (!m->field) {
    if (!same_text(m->word, word)) return false;
    code->flags |= 1ull << find_word("", word);
    return true;
  }
  int value = value_of(m->field, m->list, word);
  if (value < 0) return false;
  if (!strcmp(m->field->kind, "SHAPE"))
    set_shape(code, word);
  else
    *((uint8_t *)code + m->field->offset) = (uint8_t)value;
  return true;
}

// Gives the word to the first modifier that takes it.
static bool place_word(Pattern *pattern, Text word, PtxCode *code) {
  int families = 0;
  for (int i = 0; i < pattern->count; i++) {
    Modifier *m = &pattern->modifiers[i];
    int family = m->field ? m->field->family : 0;
    if (m->filled || m->implied || (family && families >> family & 1)) continue;
    if (try_modifier(m, word, code)) return m->filled = true;
    if (family) families |= 1 << family; // the next of a family has to wait for this one
  }
  return false;
}

static bool match_form(const PtxFormRow *form, const Text *words, int count, PtxCode *code) {
  Pattern pattern;
  read_pattern(form->modifiers, &pattern);
  for (int i = 0; i < count; i++)
    if (!place_word(&pattern, words[i], code)) return false;
  for (int i = 0; i < pattern.count; i++) {
    Modifier *m = &pattern.modifiers[i];
    if (m->implied)
      try_modifier(m, m->field ? m->list : m->word, code);
    else if (!m->filled && !m->optional)
      return false;
  }
  if (!code->vec) code->vec = 1;
  return true;
}

// ---- operands ----

static PtxType twice(PtxType type) {
  switch (type) {
  case PTX_U16: return PTX_U32;
  case PTX_S16: return PTX_S32;
  case PTX_U32: return PTX_U64;
  case PTX_S32: return PTX_S64;
  default: return type;
  }
}

static void read_slot_type(Text type, const PtxCode *code, Slot *slot) {
  if (same(type, "label"))
    slot->label = true;
  else if (same(type, "table"))
    slot->table = true;
  else if (same(type, "addr"))
    slot->type = PTX_TYPE_NONE;
  else if (same(type, "w"))
    slot->type = (uint8_t)twice(code->type[0]);
  else if (type.length == 1 && type.at[0] >= '1' && type.at[0] <= '4')
    slot->type = code->type[type.at[0] - '1'];
  else
    slot->type = (uint8_t)sol_ptx_type_of(type.at, type.length);
}

static bool condition_holds(const PtxCode *code, Text condition) {
  if (same(condition, "bool")) return code->bool_op != 0;
  return code->flags >> find_word("", condition) & 1;
}

static void read_vector(Text *word, size_t *i, const PtxCode *code, Slot *slot) {
  char c = *i + 1 < word->length ? word->at[*i + 1] : 0;
  slot->count = code->vec;
  if (c == '1' || c == '2' || c == '4' || c == '8') {
    slot->count = (uint8_t)(c - '0');
    slot->fragment = c == '1'; // a vector, of one
    ++*i;
  } else if (c >= 'A' && c <= 'L') {
    PtxFragment fragment = sol_ptx_fragment(code, c);
    slot->count = (uint8_t)fragment.regs;
    slot->type = (uint8_t)fragment.type;
    slot->fragment = true;
    ++*i;
  }
}

// Reads one word of the operands column: the grammar is at the top of ops.def.
static void read_slot(Text word, const PtxCode *code, Slot *slot) {
  *slot = (Slot){.type = code->type[0], .count = 1};
  size_t i = 0;
  if (word.at[0] == '-') {
    slot->shape = SLOT_NEVER;
    return;
  }
  if (word.at[0] == '|') slot->joined = slot->optional = true, i++;
  if (word.at[0] == '[') {
    char c = word.length > 3 ? word.at[3] : 0;
    slot->shape = c == 't' ? SLOT_TEX : SLOT_MEM;
    slot->space = c == '2' ? code->space2 : c == 'm' ? PTX_SPACE_SHARED : code->space;
    return;
  }
  char name = word.at[i++];
  slot->written = name == 'd' || name == 'p' || name == 'q';
  for (; i < word.length; i++) {
    size_t from = i + 1;
    switch (word.at[i]) {
    case ':':
      while (i + 1 < word.length && ((word.at[i + 1] >= 'a' && word.at[i + 1] <= 'z') ||
                                     (word.at[i + 1] >= '0' && word.at[i + 1] <= '9')))
        i++;
      read_slot_type((Text){word.at + from, i + 1 - from}, code, slot);
      break;
    case '@':
      if (!condition_holds(code, (Text){word.at + from, word.length - from})) slot->shape = SLOT_NEVER;
      return;
    case '?': slot->optional = true; break;
    case '*': read_vector(&word, &i, code, slot); break;
    case '{':
      slot->parts = true;
      i++;
      break;
    case '~': slot->wider = true; break;
    case '&': slot->address = true; break;
    case '#': slot->constant = true; break;
    case '%': slot->part = true; break;
    case '-': slot->minus = true; break;
    case '^': slot->descriptor = true; break;
    default: break;
    }
  }
}

static void read_slots(const PtxFormRow *form, Code *code) {
  const char *at = form->operands, *end = at + strlen(at);
  Text word;
  while (cut(&at, end, ' ', &word) && code->slot_count < PTX_MAX_OPERANDS) {
    Slot *slot = &code->slots[code->slot_count++];
    read_slot(word, &code->pub, slot);
    if (slot->shape != SLOT_NEVER && !slot->optional) code->required++;
  }
}

// ---- refusals ----

static bool is_root(const char *root, const char *text, size_t length) {
  size_t n = strlen(root);
  return n <= length && !memcmp(root, text, n) && (n == length || text[n] == '.');
}

static Text first_word(const char *text, size_t length) {
  size_t n = 0;
  while (n < length && text[n] != '.') n++;
  return (Text){text, n};
}

static const char *refusal(const char *text, size_t length) {
  const PtxRefusedRow *row;
  for (int i = 0; (row = sol_ptx_refused(i)); i++)
    if (is_root(row->root, text, length)) return row->what;
  return 0;
}

// Whether any form that shares the opcode's first word takes this word at all.
static bool word_known(Text opcode, Text word) {
  const PtxFormRow *form;
  for (int i = 0; (form = sol_ptx_form(i)); i++) {
    Text root = first_word(form->root, strlen(form->root));
    if (!same_text(root, opcode)) continue;
    const char *at = form->root, *end = at + strlen(at);
    Text piece;
    while (cut(&at, end, '.', &piece))
      if (same_text(piece, word)) return true;
    Pattern pattern;
    read_pattern(form->modifiers, &pattern);
    PtxCode ignored = {0};
    for (int k = 0; k < pattern.count; k++)
      if (!pattern.modifiers[k].implied && try_modifier(&pattern.modifiers[k], word, &ignored)) return true;
  }
  return false;
}

static bool refuse(Parser *p, const char *text, size_t length, size_t at) {
  const char *what = refusal(text, length);
  if (what) {
    sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, at, "'%.80s': %s are not emulated", text, what);
    sol_hint(p->err, "if the program has a path for older GPUs, compile it for one: -arch=sm_80");
    return false;
  }
  Text opcode = first_word(text, length);
  const PtxFormRow *form;
  bool known = false;
  for (int i = 0; !known && (form = sol_ptx_form(i)); i++)
    known = same_text(first_word(form->root, strlen(form->root)), opcode);
  if (!known) return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, at, "unknown instruction '%.80s'", text);
  const char *list = text + opcode.length, *end = text + length;
  Text word;
  while (cut(&list, end, '.', &word))
    if (!word_known(opcode, word))
      return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, at, "'%.80s': '%.*s' does not take '.%.*s'", text,
                          (int)opcode.length, opcode.at, (int)word.length, word.at);
  return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, at,
                      "'%.80s': these modifiers do not go together, or one is missing", text);
}

// ---- the whole ----

static int split_words(const char *text, size_t length, Text *words) {
  const char *at = text, *end = text + length;
  int count = 0;
  Text word;
  while (cut(&at, end, '.', &word)) {
    if (count == MAX_WORDS) return -1;
    words[count++] = word;
  }
  return count;
}

static bool match(const char *text, size_t length, Code *code) {
  const PtxFormRow *form;
  Text words[MAX_WORDS];
  for (int i = 0; (form = sol_ptx_form(i)); i++) {
    if (!is_root(form->root, text, length)) continue;
    size_t n = strlen(form->root);
    int count = split_words(text + n, length - n, words);
    *code = (Code){.pub = {.op = form->op, .form = (uint16_t)i}};
    if (count < 0 || !match_form(form, words, count, &code->pub)) continue;
    read_slots(form, code);
    return true;
  }
  return false;
}

const Code *sol_ptx_code_of(Parser *p, const char *text, size_t length, size_t at) {
  Name *name = sol_ptx_intern(&p->names, text, length);
  if (!name) return sol_ptx_fail_memory(p), NULL;
  if (name->code) return name->code;
  Code code;
  if (!match(text, length, &code)) return refuse(p, text, length, at), NULL;
  const char *wrong = sol_ptx_code_problem(&code.pub);
  if (wrong) return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, at, "'%.80s': %s", text, wrong), NULL;
  Code *kept = sol_arena_alloc(p->keep, sizeof *kept);
  Code **listed = sol_ptx_vec_add(&p->codes, sizeof(void *));
  if (!kept || !listed) return sol_ptx_fail_memory(p), NULL;
  *kept = code;
  kept->pub.text = sol_ptx_keep_text(p, text, length);
  kept->pub.index = p->codes.count - 1;
  *listed = name->code = kept;
  return kept;
}
