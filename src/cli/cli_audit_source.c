// Reads the source text for the lines of the bill.
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "cli/cli_audit.h"

enum { MAX_SOURCE = 16 << 20, SHOWN = 200 };

typedef struct File {
  const char *name; // as the bill has it
  char *text;       // NULL: not found
  size_t length;
  uint32_t first, last; // lines of the bill
} File;
typedef struct Files {
  File file[MAX_FILES];
  int count;
} Files;

static char *read_source(AuditRun *r, const char *name, size_t *length, bool *refused) {
  int file = audit_open_source(r, name, MAX_SOURCE);
  if (file == -2) *refused = true;
  return file < 0 ? NULL : cli_read_open(file, name, MAX_SOURCE, length, NULL);
}

// Under the name it was compiled by; or, if it has moved, in the folder of the file that was given.
static char *open_source(AuditRun *r, const char *name, size_t *length) {
  bool refused = false;
  char *text = read_source(r, name, length, &refused);
  const char *base = strrchr(name, '/'), *given = r->args->common.positional[0];
  const char *slash = given ? strrchr(given, '/') : NULL;
  if (!text && base && given) {
    SolBuffer path = {0};
    sol_buffer_format(&path, "%.*s%s", slash ? (int)(slash - given) : 1, slash ? given : ".", base);
    if (path.text) text = read_source(r, path.text, length, &refused);
    sol_buffer_free(&path);
  }
  if (!text && refused && r->hidden_sources++ == 0) {
    enum { END = 80 }; // of its end, which has the file's name
    size_t length_of_name = strlen(name), skip = length_of_name > END ? length_of_name - END : 0;
    while (((unsigned char)name[skip] & 0xc0) == 0x80) skip++;
    cli_audit_note(
        r,
        "Source not shown: '%s%s' is no file of at most 16 MiB below the folders of the files given, their "
        "project or the toolkit; --source-dir DIR adds a folder.",
        skip ? "..." : "", name + skip);
  }
  return text;
}

static File *file_of(AuditRun *r, Files *files, const char *name) {
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
  if (n > SHOWN) n = sol_text_cut(at, SHOWN);
  char *copy = sol_arena_alloc(arena, n + 1);
  for (size_t i = 0; copy && i < n; i++) copy[i] = (unsigned char)at[i] < ' ' ? ' ' : at[i];
  return copy;
}

// Without a source, the line's first memory instruction.
static const char *first_access(const AuditKernel *k, const AuditLine *line) {
  const AuditInst *first = &k->insts[k->by_line[line->first]];
  for (uint32_t i = 0; i < line->count; i++) {
    const AuditInst *in = &k->insts[k->by_line[line->first + i]];
    if (in->counts.requests || in->counts.shared_requests) return in->text;
  }
  return first->text;
}

// Files by the names that the user gave.
static void name_files(const AuditRun *r, AuditProgram *p) {
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    AuditKernel *k = &p->kernels[i];
    for (uint32_t j = 0; j < k->inst_count; j++)
      k->insts[j].file = audit_real_name(r, &p->arena, k->insts[j].file);
    for (uint32_t j = 0; j < k->line_count; j++)
      k->lines[j].file = audit_real_name(r, &p->arena, k->lines[j].file);
    for (uint32_t j = 0; j < k->finding_count; j++)
      if (k->findings[j].file) k->findings[j].file = audit_real_name(r, &p->arena, k->findings[j].file);
  }
}

// The lines of the bill with those between and a few around them; of several GPUs the first's.
static void keep_text(AuditRun *r, const File *f) {
  for (int i = 0; i < r->text_count; i++)
    if (strcmp(r->texts[i].file, f->name) == 0) return;
  if (!f->text || r->text_count == MAX_FILES) return;
  SourceText *to = &r->texts[r->text_count];
  if (report_source_cut(&r->cli->arena, f->name, f->text, f->length, f->first, f->last, to)) r->text_count++;
}

void cli_audit_sources(AuditRun *r, AuditProgram *p) {
  name_files(r, p);
  Files *files = calloc(1, sizeof *files);
  for (uint32_t i = 0; files && i < p->kernel_count; i++)
    for (uint32_t l = 0; l < p->kernels[i].line_count; l++) {
      AuditLine *line = &p->kernels[i].lines[l];
      File *f = file_of(r, files, line->file);
      if (strstr(line->file, " ptx "))
        cli_audit_note(r, "Lines are those of the PTX: the program was built without -lineinfo.");
      if (f && f->text) line->source = line_text(&p->arena, f, line->line);
      if (f && (!f->first || line->line < f->first)) f->first = line->line;
      if (f && line->line > f->last) f->last = line->line;
      if (!line->source) line->source = first_access(&p->kernels[i], line);
    }
  for (int i = 0; files && i < files->count; i++) {
    keep_text(r, &files->file[i]);
    free(files->file[i].text);
  }
  free(files);
}
