// Source text beside the lines of the bill.
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "cli/cli_audit.h"

enum { MAX_SOURCE = 64 << 20, MAX_FILES = 64, SHOWN = 200 };

typedef struct File {
  const char *name; // as the bill has it
  char *text;       // NULL: not to be found
  size_t length;
} File;
typedef struct Files {
  File file[MAX_FILES];
  int count;
} Files;

// As it was compiled; or, where it has moved, beside the file that was given.
static char *open_source(const AuditRun *r, const char *name, size_t *length) {
  char *text = cli_read_file(name, MAX_SOURCE, length, NULL);
  const char *base = strrchr(name, '/'), *given = r->args->common.positional[0];
  const char *slash = given ? strrchr(given, '/') : NULL;
  if (text || !base || !given) return text;
  char path[600];
  sol_format(path, sizeof path, "%.*s%s", slash ? (int)(slash - given) : 1, slash ? given : ".", base);
  return cli_read_file(path, MAX_SOURCE, length, NULL);
}

static const File *file_of(const AuditRun *r, Files *files, const char *name) {
  for (int i = 0; i < files->count; i++)
    if (strcmp(files->file[i].name, name) == 0) return &files->file[i];
  if (files->count == MAX_FILES) return NULL;
  File *f = &files->file[files->count++];
  *f = (File){.name = name};
  f->text = open_source(r, name, &f->length);
  return f;
}

// A line without the spaces around it.
static const char *line_text(SolArena *arena, const File *f, uint32_t line) {
  const char *at = f->text, *end = f->text + f->length;
  for (uint32_t i = 1; i < line && at; i++) {
    at = memchr(at, '\n', (size_t)(end - at));
    if (at) at++;
  }
  if (!at || at >= end) return NULL;
  size_t n = strcspn(at, "\r\n");
  while (n && (*at == ' ' || *at == '\t')) at++, n--;
  while (n && (at[n - 1] == ' ' || at[n - 1] == '\t')) n--;
  if (n > SHOWN) n = SHOWN;
  char *copy = sol_arena_alloc(arena, n + 1);
  for (size_t i = 0; copy && i < n; i++) copy[i] = (unsigned char)at[i] < ' ' ? ' ' : at[i];
  return copy;
}

// Without a source, what the line's first access of memory says.
static const char *first_access(const AuditKernel *k, const AuditLine *line) {
  const AuditInst *first = &k->insts[k->by_line[line->first]];
  for (uint32_t i = 0; i < line->count; i++) {
    const AuditInst *in = &k->insts[k->by_line[line->first + i]];
    if (in->counts.requests || in->counts.shared_requests) return in->text;
  }
  return first->text;
}

void cli_audit_sources(AuditRun *r, AuditProgram *p) {
  Files *files = calloc(1, sizeof *files);
  for (uint32_t i = 0; files && i < p->kernel_count; i++)
    for (uint32_t l = 0; l < p->kernels[i].line_count; l++) {
      AuditLine *line = &p->kernels[i].lines[l];
      const File *f = file_of(r, files, line->file);
      if (strstr(line->file, " ptx "))
        cli_audit_note(r, "Lines are those of the PTX: the program was built without -lineinfo.");
      if (f && f->text) line->source = line_text(&p->arena, f, line->line);
      if (!line->source) line->source = first_access(&p->kernels[i], line);
    }
  for (int i = 0; files && i < files->count; i++) free(files->file[i].text);
  free(files);
}
