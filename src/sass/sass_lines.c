// The line table: a DWARF 2 line-number program whose file is the PTX text. Addresses are relocated by the
// symbol of the function they lie in.
#include "sass/sass_elf.h"

enum { INSTRUCTION = 16 };

typedef struct Relocations {
  SassSection table;
  uint64_t entry; // bytes of one: 24 with an addend, 16 without
} Relocations;

typedef struct Program {
  const uint8_t *at, *end;
  const uint8_t *start; // of the section: relocations count from here
  bool bad;
} Program;

static uint64_t take(Program *p, int bytes) {
  if (p->end - p->at < bytes) {
    p->bad = true;
    p->at = p->end;
    return 0;
  }
  p->at += bytes;
  return sass_number(p->at - bytes, bytes);
}

static uint64_t take_leb(Program *p, bool is_signed) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64;) {
    uint64_t byte = take(p, 1);
    value |= (byte & 127) << shift;
    shift += 7;
    if (byte & 128 && !p->bad) continue;
    if (is_signed && byte & 64 && shift < 64) value |= ~UINT64_C(0) << shift;
    return value;
  }
  p->bad = true;
  return 0;
}

// The section that an address at this place of the line table lies in, and what is added to it.
static uint64_t section_of(const SassElf *e, const Relocations *relocations, uint64_t place,
                           uint64_t *address) {
  for (uint64_t i = 0; i < relocations->table.size / relocations->entry; i++) {
    const uint8_t *r = relocations->table.data + i * relocations->entry;
    SassSymbol symbol;
    if (sass_number(r, 8) != place || !sass_elf_symbol(e, sass_number(r + 12, 4), &symbol)) continue;
    *address = symbol.value + (relocations->entry == 24 ? sass_number(r + 16, 8) : 0);
    return symbol.section;
  }
  return 0;
}

typedef struct Table { // the rows so far say `line` from `from` on
  SassInst *insts;
  uint32_t count;
  uint64_t from, line;
  bool open, any;
} Table;

static void add_row(Table *t, uint64_t address, uint64_t line) {
  if (t->open && address > t->from)
    for (uint64_t i = t->from / INSTRUCTION; i < address / INSTRUCTION && i < t->count; i++)
      t->insts[i].line = (uint32_t)t->line, t->any = true;
  t->from = address;
  t->line = line <= UINT32_MAX ? line : 0;
  t->open = true;
}

typedef struct Form { // of the program, by its header
  int64_t line_base;
  uint64_t line_range, opcode_base, step;
  const uint8_t *lengths; // of the standard opcodes
} Form;

static bool take_header(Program *p, Form *f) {
  uint64_t version = take(p, 2), bytes = take(p, 4);
  const uint8_t *body = p->at;
  if (version > 4 || bytes > (uint64_t)(p->end - p->at)) return false;
  f->step = take(p, 1);
  if (version == 4) take(p, 1);
  take(p, 1);
  f->line_base = (int8_t)take(p, 1);
  f->line_range = take(p, 1);
  f->opcode_base = take(p, 1);
  f->lengths = p->at;
  if (p->bad || !f->line_range || !f->opcode_base || (uint64_t)(p->end - p->at) < f->opcode_base - 1)
    return false;
  p->at = body + bytes;
  return true;
}

enum {
  COPY = 1,
  ADVANCE_PC,
  ADVANCE_LINE,
  SET_FILE,
  SET_COLUMN,
  NEGATE,
  BASIC_BLOCK,
  CONST_ADD_PC,
  FIXED_ADVANCE_PC
};
enum { END_SEQUENCE = 1, SET_ADDRESS };

typedef struct State {
  uint64_t address, line, section;
} State;

static void take_extended(Program *p, const SassElf *e, const Relocations *relocations, uint64_t wanted,
                          State *s, Table *t) {
  uint64_t bytes = take_leb(p, false);
  if (!bytes || bytes > (uint64_t)(p->end - p->at)) {
    p->bad = true;
    return;
  }
  const uint8_t *next = p->at + bytes;
  uint64_t op = take(p, 1);
  if (op == SET_ADDRESS && bytes == 9)
    s->section = section_of(e, relocations, (uint64_t)(p->at - p->start), &s->address);
  if (op == END_SEQUENCE) {
    if (s->section == wanted) add_row(t, s->address, 0);
    t->open = false;
    *s = (State){.line = 1};
  }
  p->at = next;
}

static void run(Program *p, const Form *f, const SassElf *e, const Relocations *relocations, uint64_t wanted,
                Table *t) {
  State s = {.line = 1};
  while (p->at < p->end && !p->bad) {
    uint64_t op = take(p, 1);
    bool row = op == COPY;
    if (op >= f->opcode_base) {
      s.address += (op - f->opcode_base) / f->line_range * f->step;
      s.line += (uint64_t)(f->line_base + (int64_t)((op - f->opcode_base) % f->line_range));
      row = true;
    } else if (op == 0) {
      take_extended(p, e, relocations, wanted, &s, t);
    } else if (op == ADVANCE_PC) {
      s.address += take_leb(p, false) * f->step;
    } else if (op == ADVANCE_LINE) {
      s.line += take_leb(p, true);
    } else if (op == CONST_ADD_PC) {
      s.address += (255 - f->opcode_base) / f->line_range * f->step;
    } else if (op == FIXED_ADVANCE_PC) {
      s.address += take(p, 2);
    } else if (op != COPY) {
      for (int i = 0; i < f->lengths[op - 1] && !p->bad; i++) take_leb(p, false);
    }
    if (row && s.section == wanted) add_row(t, s.address, s.line);
  }
}

bool sass_lines(const SassElf *e, uint64_t section, SassInst *insts, uint32_t count) {
  SassSection lines;
  Relocations relocations = {.entry = 24};
  if (!section || !sass_elf_find(e, ".nv_debug_line_sass", &lines)) return false;
  if (!sass_elf_find(e, ".rela.nv_debug_line_sass", &relocations.table)) {
    relocations.entry = 16;
    if (!sass_elf_find(e, ".rel.nv_debug_line_sass", &relocations.table)) return false;
  }
  Table t = {.insts = insts, .count = count};
  for (uint64_t at = 0; lines.size - at > 10;) {
    uint64_t bytes = sass_number(lines.data + at, 4);
    if (bytes > lines.size - at - 4) break;
    Program p = {lines.data + at + 4, lines.data + at + 4 + bytes, lines.data, false};
    Form f;
    if (take_header(&p, &f)) run(&p, &f, e, &relocations, section, &t);
    t.open = false;
    at += 4 + bytes;
  }
  return t.any;
}
