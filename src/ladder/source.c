#include "ladder/source.h"

#include <string.h>

#include "base/format.h"

static const LadderText *text_of(const Ladder *l) {
  char path[128];
  size_t n = strlen(l->module);
  const char *rungs = n > 6 && strcmp(l->module + n - 6, "_rungs") == 0 ? l->module + n - 6 : NULL;
  if (rungs)
    sol_format(path, sizeof path, "kernels/%.*s/rungs.cu", (int)(rungs - l->module), l->module);
  else
    sol_format(path, sizeof path, "kernels/sweeps/%s.cu", l->module + strlen("sweeps_"));
  for (int i = 0; i < ladder_source_count; i++)
    if (strcmp(ladder_sources[i].path, path) == 0) return &ladder_sources[i];
  return NULL;
}

static const char *line_before(const char *start, const char *line) {
  if (line == start) return NULL;
  for (line--; line > start && line[-1] != '\n';) line--;
  return line;
}

static const char *next_line(const char *line) {
  const char *end = strchr(line, '\n');
  return end ? end + 1 : line + strlen(line);
}

static bool is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

// A function that starts in the first column of its line: its name, and then its parameters.
static bool defines(const char *line, size_t length, const char *kernel) {
  size_t n = strlen(kernel);
  if (!is_word(*line)) return false;
  for (size_t i = 1; i + n < length; i++)
    if (line[i - 1] == ' ' && strncmp(line + i, kernel, n) == 0 && line[i + n] == '(') return true;
  return false;
}

// A macro that puts the kernel's name together: "in_flight_##loads" makes in_flight_8.
static bool pastes(const char *line, size_t length, const char *kernel) {
  for (size_t i = 1; i + 1 < length; i++) {
    if (strncmp(line + i, "##", 2) != 0 || !is_word(line[i - 1])) continue;
    size_t start = i;
    while (start > 0 && is_word(line[start - 1])) start--;
    if (strncmp(line + start, kernel, i - start) == 0) return true;
  }
  return false;
}

static const char *find_line(const char *text, const char *kernel,
                             bool (*is_it)(const char *line, size_t length, const char *kernel),
                             int *number) {
  *number = 1;
  for (const char *line = text; *line; line = next_line(line), ++*number)
    if (is_it(line, strcspn(line, "\n"), kernel)) return line;
  *number = 0;
  return NULL;
}

static bool continues(const char *line) { // into the next one, as a macro does
  size_t n = strcspn(line, "\n");
  return n && line[n - 1] == '\\';
}

bool ladder_source(const Ladder *l, const char *kernel, LadderSource *out) {
  const LadderText *file = text_of(l);
  if (!file) return false;
  *out = (LadderSource){.path = file->path};
  const char *first = kernel ? find_line(file->text, kernel, defines, &out->line) : NULL, *end = first;
  if (first) {
    while (*end && *end != '}') end = next_line(end); // of a function, in the first column
  } else if (kernel && (first = find_line(file->text, kernel, pastes, &out->line)) != NULL) {
    for (end = first; continues(end);) end = next_line(end);
    while (*first != '#' && first > file->text) first = line_before(file->text, first);
  }
  if (!first) return true;
  for (const char *before = first;
       (before = line_before(file->text, before)) && strncmp(before, "//", 2) == 0;)
    first = before;
  out->text = first;
  out->length = (size_t)(next_line(end) - first);
  return true;
}
