// Instructions have 128 bits: the opcode in bits 0 to 11, the predicate in 12 to 15 (7 is true), the width of an
// access in 73 to 75. ptxas schedules: the clocks until the next instruction are in 105 to 108, the scoreboard of
// its result in 110 to 112, those that it waits for in 116 to 121. A branch counts words of 4 bytes from the instruction behind it, in bits 34 to 81; since
// sm_90 the eight lowest bits of it are in 16 to 23.
#include "base/error.h"
#include "sass/sass_elf.h"

enum { INSTRUCTION = 16, MOST_SECTIONS = 1 << 16, SPLIT_BRANCH = 90, NO_PREDICATE = 7 };

typedef struct Opcode {
  uint16_t bits;
  uint8_t unit, kind;
  const char *name;
} Opcode;

static const Opcode opcodes[] = {
#define SASS_OPCODE(bits, name, unit, kind) {bits, SASS_UNIT_##unit, SASS_KIND_##kind, name},
#include "sass/opcodes.def"
#undef SASS_OPCODE
};

static const Opcode *opcode_of(uint16_t bits) {
  for (size_t i = 0; i < SOL_COUNT(opcodes); i++)
    if (opcodes[i].bits == bits) return &opcodes[i];
  return NULL;
}

const char *sass_opcode_name(uint16_t bits) {
  const Opcode *op = opcode_of(bits);
  return op ? op->name : "";
}

static uint8_t width_of(uint64_t high) {
  static const uint8_t widths[] = {1, 1, 2, 2, 4, 8, 16, 16};
  return widths[high >> 9 & 7];
}

// ptxas moves by products with the zero register (255), which are additions of the third operand: a in bits 24
// to 31, b in 32 to 39.
static bool is_move(uint8_t unit, uint64_t low) {
  bool zero_a = (low >> 24 & 255) == 255, zero_b = (low >> 32 & 255) == 255;
  return (unit == SASS_UNIT_MAD && zero_a && zero_b) || (unit == SASS_UNIT_FP16 && zero_a);
}

// From the instruction behind the branch.
static int64_t distance_of(int arch, uint64_t low, uint64_t high) {
  uint64_t words = low >> 34 | (high & 0x3ffff) << 30; // 48 bits
  if (arch >= SPLIT_BRANCH) words = words << 8 | (low >> 16 & 255);
  unsigned unused = arch >= SPLIT_BRANCH ? 8 : 16;
  return ((int64_t)(words << unused) >> unused) * 4;
}

static uint32_t target_of(int64_t from, int64_t distance, uint32_t count) {
  if (distance % INSTRUCTION || distance < -(int64_t)UINT32_MAX || distance > (int64_t)UINT32_MAX)
    return SASS_NONE;
  int64_t at = from + 1 + distance / INSTRUCTION;
  return at >= 0 && at < (int64_t)count ? (uint32_t)at : SASS_NONE;
}

static void decode(int arch, const SassSection *s, SassInst *insts, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint64_t low = sass_number(s->data + (uint64_t)i * INSTRUCTION, 8),
             high = sass_number(s->data + (uint64_t)i * INSTRUCTION + 8, 8);
    const Opcode *op = opcode_of(low & 0x1ff);
    insts[i] = (SassInst){.opcode = low & 0x1ff,
                          .target = SASS_NONE,
                          .guarded = (low >> 12 & 15) != NO_PREDICATE,
                          .stall = (high >> 41 & 15) ? (high >> 41 & 15) : 1,
                          .sets = high >> 46 & 7,
                          .waits = high >> 52 & 63};
    if (!op) continue;
    insts[i].unit = op->unit;
    insts[i].kind = op->kind;
    if (is_move(op->unit, low)) insts[i].kind = SASS_KIND_MOVE;
    if (op->unit == SASS_UNIT_MEMORY) insts[i].width = width_of(high);
    if (op->kind == SASS_KIND_BRANCH || op->kind == SASS_KIND_CALL)
      insts[i].target = target_of(i, distance_of(arch, low, high), count);
  }
}

// ---- basic blocks ----

static bool ends_block(const SassInst *in) {
  return in->kind == SASS_KIND_BRANCH || in->kind == SASS_KIND_JUMP || in->kind == SASS_KIND_RETURN ||
         in->kind == SASS_KIND_EXIT;
}

enum { LEADER = 1, SUBROUTINE = 2 };

static void find_leaders(const SassCode *c, uint8_t *marks) {
  if (c->count) marks[0] |= LEADER;
  for (uint32_t i = 0; i < c->count; i++) {
    if (c->insts[i].target != SASS_NONE) marks[c->insts[i].target] |= LEADER;
    if (ends_block(&c->insts[i]) && i + 1 < c->count) marks[i + 1] |= LEADER;
  }
}

static bool make_blocks(SassCode *c, const uint8_t *marks, SolArena *arena) {
  uint32_t *block_of = sol_arena_alloc(arena, (c->count + 1) * sizeof *block_of), n = 0;
  for (uint32_t i = 0; i < c->count; i++) n += marks[i] & LEADER;
  c->blocks = sol_arena_alloc(arena, (n + 1) * sizeof *c->blocks);
  if (!block_of || !c->blocks) return false;
  bool inside = false;
  for (uint32_t i = 0; i < c->count; i++) {
    if (marks[i] & ~LEADER) inside = marks[i] & SUBROUTINE;
    if (marks[i] & LEADER) c->blocks[c->block_count++] = (SassBlock){.first = i, .subroutine = inside};
    block_of[i] = c->block_count - 1;
    c->blocks[c->block_count - 1].count++;
  }
  for (uint32_t b = 0; b < c->block_count; b++) {
    SassBlock *block = &c->blocks[b];
    const SassInst *last = &c->insts[block->first + block->count - 1];
    block->branch =
        last->kind == SASS_KIND_BRANCH && last->target != SASS_NONE ? block_of[last->target] : SASS_NONE;
    bool falls = !ends_block(last) || last->guarded;
    block->next = falls && b + 1 < c->block_count ? b + 1 : SASS_NONE;
  }
  return true;
}

// ---- functions ----

static bool starts_with(const char *text, const char *start) {
  for (; *start; text++, start++)
    if (*text != *start) return false;
  return true;
}

// Marks where functions start; those of ptxas's own are subroutines.
enum { FUNCTION_START = 4 };
static void find_functions(const SassElf *e, uint64_t section, uint8_t *marks, uint32_t count) {
  SassSymbol s;
  for (uint64_t i = 0; sass_elf_symbol(e, i, &s); i++)
    if (s.function && s.section == section && s.value / INSTRUCTION < count)
      marks[s.value / INSTRUCTION] |=
          (uint8_t)(LEADER | FUNCTION_START | (starts_with(s.name, "$__internal_") ? SUBROUTINE : 0));
}

// The kernel's own section comes first; then those of functions that are no kernels, which it may call.
typedef struct Part {
  uint64_t section;
  SassSection text;
  uint32_t first, count;
} Part;

static bool is_kernel(const SassElf *e, uint64_t section) {
  SassSymbol s;
  for (uint64_t i = 0; sass_elf_symbol(e, i, &s); i++)
    if (s.entry && s.section == section) return true;
  return false;
}

static uint64_t kernel_section(const SassElf *e, const char *kernel) {
  SassSymbol s;
  for (uint64_t i = 0; sass_elf_symbol(e, i, &s); i++)
    if (s.entry && s.function && strcmp(s.name, kernel) == 0) return s.section;
  return 0;
}

static bool calls_out(const SassElf *e, const char *kernel) {
  SassSection s;
  for (uint64_t i = 0; i < e->section_count; i++) {
    if (!sass_elf_section(e, i, &s) || !s.size || !starts_with(s.name, ".rel")) continue;
    const char *name = s.name + (s.name[4] == 'a' ? 5 : 4);
    if (starts_with(name, ".text.") && strcmp(name + strlen(".text."), kernel) == 0) return true;
  }
  return false;
}

static uint32_t find_parts(const SassElf *e, const char *kernel, Part *parts, uint32_t *total) {
  uint32_t n = 0;
  uint64_t own = kernel_section(e, kernel);
  bool others = calls_out(e, kernel);
  for (uint64_t i = 0; own && i <= e->section_count && n < MOST_SECTIONS; i++) {
    Part p = {.section = i ? i - 1 : own};
    if ((i && (!others || p.section == own)) || !sass_elf_section(e, p.section, &p.text)) continue;
    if (i && (!starts_with(p.text.name, ".text.") || is_kernel(e, p.section))) continue;
    uint64_t count = p.text.size / INSTRUCTION;
    if (count > (UINT32_MAX >> 6) - *total) break;
    p.count = (uint32_t)count;
    p.first = *total;
    *total += p.count;
    parts[n++] = p;
  }
  return n;
}

static void move_targets(SassInst *insts, uint32_t count, uint32_t by) {
  for (uint32_t i = 0; i < count; i++)
    if (insts[i].target != SASS_NONE) insts[i].target += by;
}

SolStatus sass_read(const void *elf, size_t size, const char *kernel, SolArena *arena, SassCode *out,
                    SolError *err) {
  SassElf e;
  *out = (SassCode){0};
  if (!sass_elf_open(elf, size, &e)) return sol_fail(err, SOL_ERR_SYNTAX, "this is no cubin");
  Part *parts = sol_arena_alloc(arena, ((size_t)e.section_count + 1) * sizeof *parts);
  uint32_t part_count = parts ? find_parts(&e, kernel, parts, &out->count) : 0;
  if (parts && (!part_count || !parts[0].count))
    return sol_fail(err, SOL_ERR_NOT_FOUND, "the cubin has no kernel %.100s", kernel);
  out->insts = sol_arena_alloc(arena, (out->count + 1) * sizeof *out->insts);
  uint8_t *marks = sol_arena_alloc(arena, out->count + 1);
  if (!parts || !out->insts || !marks) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  bool lines = false;
  for (uint32_t i = 0; i < part_count; i++) {
    Part *p = &parts[i];
    SassInst *insts = out->insts + p->first;
    decode(e.arch, &p->text, insts, p->count);
    lines |= sass_lines(&e, p->section, insts, p->count) && i == 0;
    find_functions(&e, p->section, marks + p->first, p->count);
    if (p->count) marks[p->first] |= LEADER | FUNCTION_START;
    move_targets(insts, p->count, p->first);
  }
  if (!lines) return sol_fail(err, SOL_ERR_NOT_FOUND, "the cubin was made without -lineinfo");
  find_leaders(out, marks);
  return make_blocks(out, marks, arena) ? SOL_OK : sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
}
