// Where code comes from: .file, .loc and the strings in .section .debug_str.
#include "base/heap.h"
#include "base/sort.h"
#include "ptx/internal.h"

// .file 1 "name.cu" [, time, size]
bool sol_ptx_parse_file(Parser *p) {
  FileEntry *entry = sol_ptx_vec_add(&p->source_files, sizeof *entry);
  if (!entry) return sol_ptx_fail_memory(p);
  if (!sol_ptx_constant_u32(p, &entry->number, ".file")) return false;
  const Token *t = &p->lex.token;
  if (t->kind != TOKEN_STRING) return sol_ptx_fail_expected(p, "a file's name in quotes");
  Name *name = sol_ptx_intern(&p->names, p->lex.text + t->at, t->length);
  if (!name) return sol_ptx_fail_memory(p);
  sol_ptx_next(&p->lex);
  if (!name->file) {
    const char **file = sol_ptx_vec_add(&p->files, sizeof *file);
    if (!file || !(*file = sol_ptx_keep_name(p, name))) return sol_ptx_fail_memory(p);
    name->file = p->files.count;
  }
  entry->index = name->file - 1;
  uint32_t ignored;
  while (sol_ptx_take(p, ','))
    if (!sol_ptx_constant_u32(p, &ignored, ".file")) return false;
  return true;
}

// ---- positions ----

static uint32_t hash_position(const Parser *p, uint32_t file, uint32_t line, uint32_t column) {
  uint64_t h = p->function * 0x9e3779b97f4a7c15u ^ file;
  h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u ^ line;
  h = (h ^ h >> 32) * 0x94d049bb133111ebu ^ column;
  h = (h ^ h >> 29) * 0x9e3779b97f4a7c15u;
  return (uint32_t)(h >> 32);
}

// The table maps a position in the running function to the newest .loc with it, plus one.
static uint32_t *find_position(Parser *p, uint32_t file, uint32_t line, uint32_t column) {
  uint32_t mask = p->loc_slots.cap - 1;
  uint32_t *slots = p->loc_slots.data;
  for (uint32_t at = hash_position(p, file, line, column) & mask;; at = (at + 1) & mask) {
    if (!slots[at]) return &slots[at];
    const PtxLoc *loc = VEC_AT(&p->locs, PtxLoc, slots[at] - 1);
    const LocExtra *extra = VEC_AT(&p->loc_extras, LocExtra, slots[at] - 1);
    if (loc->file == file && loc->line == line && loc->column == column && extra->owner == p->function)
      return &slots[at];
  }
}

static bool grow_positions(Parser *p) {
  if (p->loc_used * 2 < p->loc_slots.cap) return true;
  Vec old = p->loc_slots;
  uint32_t cap = old.cap ? old.cap * 2 : 256, function = p->function;
  p->loc_slots = (Vec){sol_heap_alloc(cap * sizeof(uint32_t)), cap, cap};
  if (!p->loc_slots.data) return p->loc_slots = old, sol_ptx_fail_memory(p);
  memset(p->loc_slots.data, 0, cap * sizeof(uint32_t));
  for (uint32_t i = 0; i < old.cap; i++) {
    uint32_t entry = *VEC_AT(&old, uint32_t, i);
    if (!entry) continue;
    const PtxLoc *loc = VEC_AT(&p->locs, PtxLoc, entry - 1);
    p->function = VEC_AT(&p->loc_extras, LocExtra, entry - 1)->owner;
    *find_position(p, loc->file, loc->line, loc->column) = entry;
  }
  p->function = function;
  sol_ptx_vec_free(&old);
  return true;
}

static uint32_t add_position(Parser *p, const PtxLoc *loc, Name *function, uint32_t offset) {
  if (!grow_positions(p)) return PTX_NONE;
  PtxLoc *to = sol_ptx_vec_add(&p->locs, sizeof *to);
  LocExtra *extra = sol_ptx_vec_add(&p->loc_extras, sizeof *extra);
  if (!to || !extra) return sol_ptx_fail_memory(p), PTX_NONE;
  *extra = (LocExtra){function, offset, DROPPED}; // not yet to be found
  *to = *loc;
  uint32_t *slot = find_position(p, loc->file, loc->line, loc->column);
  p->loc_used += !*slot;
  *slot = p->locs.count;
  VEC_AT(&p->loc_extras, LocExtra, p->locs.count - 1)->owner = p->function;
  return p->locs.count - 1;
}

static bool parse_position(Parser *p, PtxLoc *loc) {
  *loc = (PtxLoc){.inlined_at = PTX_NONE};
  return sol_ptx_constant_u32(p, &loc->file, ".loc") && sol_ptx_constant_u32(p, &loc->line, ".loc") &&
         sol_ptx_constant_u32(p, &loc->column, ".loc");
}

static bool take_attribute(Parser *p, const char *word) {
  const Token *t = &p->lex.token;
  if (t->kind != TOKEN_NAME || t->length != strlen(word) || memcmp(p->lex.text + t->at, word, t->length) != 0)
    return false;
  sol_ptx_next(&p->lex);
  return true;
}

// .loc 1 12 3, function_name $L__info_string0, inlined_at 1 20 5
bool sol_ptx_parse_loc(Parser *p) {
  PtxLoc loc;
  Name *function = NULL;
  uint32_t offset = 0;
  if (!parse_position(p, &loc)) return false;
  while (sol_ptx_take(p, ',')) {
    if (take_attribute(p, "function_name")) {
      function = sol_ptx_take_name(p, "a label in .debug_str");
      if (!function) return false;
      if (sol_ptx_take(p, '+') && !sol_ptx_constant_u32(p, &offset, "function_name")) return false;
    } else if (take_attribute(p, "inlined_at")) {
      PtxLoc outer;
      if (!parse_position(p, &outer)) return false;
      uint32_t known = p->loc_slots.cap ? *find_position(p, outer.file, outer.line, outer.column) : 0;
      loc.inlined_at = known ? known - 1 : add_position(p, &outer, 0, 0);
      if (p->status) return false;
    } else {
      return sol_ptx_fail_expected(p, "function_name or inlined_at");
    }
  }
  p->loc = add_position(p, &loc, function, offset);
  return p->status == SOL_OK;
}

// ---- .debug_str ----

// { label: .b8 95,90,...; other sections are passed over.
bool sol_ptx_parse_section(Parser *p) {
  const Token *t = &p->lex.token;
  if (t->kind != TOKEN_WORD && t->kind != TOKEN_NAME) return sol_ptx_fail_expected(p, "a section's name");
  bool strings = sol_ptx_is_word(p, "debug_str");
  size_t at = t->at;
  sol_ptx_next(&p->lex);
  if (!sol_ptx_is_mark(p, '{')) return sol_ptx_fail_expected(p, "'{'");
  if (!strings)
    return sol_ptx_skip_braces(&p->lex) ||
           sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "this section does not end: a '}' is missing");
  sol_ptx_next(&p->lex);
  while (!sol_ptx_take(p, '}')) {
    if (t->kind == TOKEN_NAME) {
      Name *label = sol_ptx_take_name(p, "a label");
      if (!label || !sol_ptx_expect(p, ':')) return false;
      label->debug_text = p->debug_text.count + 1;
      label->debug_source = p->source_index;
    } else if (sol_ptx_take_word(p, "b8")) {
      do {
        char *to = sol_ptx_vec_add(&p->debug_text, 1);
        if (!to) return sol_ptx_fail_memory(p);
        *to = (char)t->value;
        if (t->kind != TOKEN_INT) return sol_ptx_fail_expected(p, "a byte");
        sol_ptx_next(&p->lex);
      } while (sol_ptx_take(p, ','));
    } else {
      return sol_ptx_fail_expected(p, "a label or .b8");
    }
  }
  return true;
}

static bool has_lower_number(const void *a, const void *b) {
  return ((const FileEntry *)a)->number < ((const FileEntry *)b)->number;
}

static uint32_t file_index(const Parser *p, uint32_t number) {
  const FileEntry *f = p->source_files.data;
  uint32_t low = 0, high = p->source_files.count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (f[middle].number == number) return f[middle].index;
    if (f[middle].number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return PTX_NONE;
}

static const char *debug_name(Parser *p, const LocExtra *extra) {
  if (!extra->function || !extra->function->debug_text || extra->function->debug_source != p->source_index)
    return 0;
  uint64_t at = (uint64_t)extra->function->debug_text - 1 + extra->offset;
  if (at >= p->debug_text.count) return 0;
  const char *text = VEC_AT(&p->debug_text, char, at);
  size_t length = 0;
  while (at + length < p->debug_text.count && text[length]) length++;
  Name *name = sol_ptx_intern(&p->names, text, length);
  return name ? sol_ptx_keep_name(p, name) : NULL;
}

bool sol_ptx_finish_locs(Parser *p, uint32_t first) {
  sol_sort(p->source_files.data, p->source_files.count, sizeof(FileEntry), has_lower_number);
  for (uint32_t i = first; i < p->locs.count; i++) {
    PtxLoc *loc = VEC_AT(&p->locs, PtxLoc, i);
    loc->file = file_index(p, loc->file);
    loc->function = debug_name(p, VEC_AT(&p->loc_extras, LocExtra, i));
  }
  sol_ptx_vec_free(&p->loc_slots);
  p->loc_used = 0;
  p->source_files.count = 0;
  p->debug_text.count = 0;
  return p->status == SOL_OK;
}
