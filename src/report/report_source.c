#include "report/report_source.h"

#include <string.h>

enum { AROUND = 4, MOST = 1 << 20 };

// Where line `number` begins, or the end of the text.
static size_t line_at(const char *text, size_t length, uint32_t number) {
  size_t at = 0;
  for (uint32_t i = 1; i < number && at < length; i++) {
    const char *end = memchr(text + at, '\n', length - at);
    at = end ? (size_t)(end - text) + 1 : length;
  }
  return at;
}

bool report_source_cut(SolArena *arena, const char *file, const char *text, size_t length, uint32_t first,
                       uint32_t last, SourceText *out) {
  uint32_t begin = first > AROUND ? first - AROUND : 1;
  size_t from = line_at(text, length, begin);
  size_t n = line_at(text + from, length - from, last - begin + 2 + AROUND);
  while (n && (text[from + n - 1] == '\n' || text[from + n - 1] == '\r')) n--;
  if (!n || n > MOST || memchr(text + from, 0, n)) return false;
  char *copy = sol_arena_alloc(arena, n + 1), *name = sol_arena_alloc(arena, strlen(file) + 1);
  if (!copy || !name) return false;
  memcpy(copy, text + from, n);
  memcpy(name, file, strlen(file) + 1);
  *out = (SourceText){.file = name, .text = copy, .first = begin};
  return true;
}

void report_source_facts(Fact *root, const SourceText *texts, int count) {
  Fact *list = fact_list(root, "sources", 0);
  for (int i = 0; i < count; i++) {
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "file", 0, texts[i].file);
    fact_number(row, "first", 0, UNIT_PLAIN, BASIS_NONE, texts[i].first);
    fact_text(row, "text", 0, texts[i].text);
  }
}
