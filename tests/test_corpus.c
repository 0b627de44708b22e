// Runs the corpus of tests/ptx on the emulator: every kernel, compiled by nvcc for sm_90, every third one for 75, 80 or
// 100 as well, judged by its own comparisons. PTX is kept under $B/corpus and made anew where its source is newer.
//   test_corpus [NAME]           files whose name holds NAME
//   CORPUS_ARCHS="75 80 90 100" test_corpus    all files for each of these architectures
//   CORPUS_WORKERS=1 test_corpus     so many threads (2)
//   CORPUS_ASYNC_ORDER=3 test_corpus  SolEmuLaunch.async_order (0)
//   CORPUS_COUNTS=1 test_corpus      also prints each launch's counts, in the form of
//   tests/ptx/h200-counts.csv
#define _GNU_SOURCE
#include "corpus.c"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "emu/emu.h"

enum { MOST_INSTRUCTIONS = 1000000000 }; // warp instructions of a launch: no kernel here needs a tenth

typedef struct Text {
  char *at;
  size_t length, cap;
} Text;

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *text = malloc((size_t)size + 1);
  *length = text ? fread(text, 1, (size_t)size, file) : 0;
  if (text) text[*length] = 0;
  fclose(file);
  return text;
}

static void keep_text(void *ctx, const char *text, size_t length) {
  Text *t = ctx;
  if (t->length + length + 1 > t->cap) {
    t->cap = (t->length + length + 1) * 2;
    t->at = realloc(t->at, t->cap);
    if (!t->at) abort();
  }
  memcpy(t->at + t->length, text, length);
  t->length += length;
  t->at[t->length] = 0;
}

static bool not_ok(CorpusMessage *message, const char *what, const char *why) {
  snprintf(message->text, sizeof message->text, "%.60s: %.250s", what, why);
  return false;
}

typedef struct Session {
  CorpusProgram *program;
  SolEmu *emu;
  SolEmuModule *module;
  uint64_t address[CORPUS_MAX_ALLOCS];
  Text printed;
} Session;

static bool launch_one(Session *s, int i, SolEmuResult *result, CorpusMessage *m) {
  const CorpusLaunch *l = &s->program->launches[i];
  CorpusArgs *args = malloc(sizeof *args);
  SolError err = {0};
  bool ok = args && corpus_pack(s->program, i, s->address, args, m);
  SolEmuLaunch launch = {.kernel = sol_emu_kernel(s->module, l->kernel), .dynamic_shared = l->smem};
  const char *order = getenv("CORPUS_ASYNC_ORDER");
  if (order) launch.async_order = strtoull(order, NULL, 10);
  if (ok && !launch.kernel) ok = not_ok(m, l->kernel, "no such kernel");
  if (ok) {
    memcpy(launch.grid, l->grid, sizeof launch.grid);
    memcpy(launch.block, l->block, sizeof launch.block);
    memcpy(launch.cluster, l->cluster, sizeof launch.cluster);
    launch.params = args->block;
    launch.param_bytes = args->size;
    launch.cooperative = l->cooperative;
    launch.max_instructions = MOST_INSTRUCTIONS;
    launch.print = keep_text;
    launch.print_ctx = &s->printed;
    if (sol_emu_launch(s->emu, &launch, result, &err))
      ok = not_ok(m, l->kernel, err.message);
    else if (result->finding_count)
      ok = not_ok(m, l->kernel, result->findings[0].message);
    else if (result->end != SOL_EMU_DONE)
      ok = not_ok(m, l->kernel, "a limit ended it");
  }
  free(args);
  return ok;
}

// One row a launch, in the form of tests/ptx/h200-counts.csv.
static void print_counts(const char *name, int i, const char *kernel, const SolEmuResult *r) {
  const SolEmuCounts *ld = &r->kinds[SOL_EMU_KIND_GLOBAL_LOAD], *st = &r->kinds[SOL_EMU_KIND_GLOBAL_STORE];
  printf("%s,%d,%s,%llu,%llu,%llu,%llu,%llu\n", name, i, kernel, (unsigned long long)ld->requests,
         (unsigned long long)ld->sectors, (unsigned long long)st->requests, (unsigned long long)st->sectors,
         (unsigned long long)r->total.lanes);
}

// Whether a csv of the corpus has a line that starts so; the rest of it goes to `rest`.
static bool csv_row(const char *path, const char *start, char *rest, size_t cap) {
  FILE *f = fopen(path, "r");
  char line[512];
  bool found = false;
  while (f && !found && fgets(line, sizeof line, f)) {
    found = strncmp(line, start, strlen(start)) == 0;
    if (found) snprintf(rest, cap, "%s", line + strlen(start));
  }
  if (f) fclose(f);
  return found;
}

// Requests and sectors as measured on an H200, but for the launches that h200-differ.csv accounts for.
static bool as_measured(const char *name, int i, const char *kernel, const SolEmuResult *r,
                        CorpusMessage *m) {
  const SolEmuCounts *ld = &r->kinds[SOL_EMU_KIND_GLOBAL_LOAD], *st = &r->kinds[SOL_EMU_KIND_GLOBAL_STORE];
  char start[256], rest[256];
  unsigned long long want[4];
  snprintf(start, sizeof start, "%s,%d,%s,", name, i, kernel);
  if (!csv_row("tests/ptx/h200-counts.csv", start, rest, sizeof rest)) return true;
  if (sscanf(rest, "%llu,%llu,%llu,%llu", &want[0], &want[1], &want[2], &want[3]) != 4)
    return not_ok(m, kernel, "h200-counts.csv cannot be read");
  bool equal =
      ld->requests == want[0] && ld->sectors == want[1] && st->requests == want[2] && st->sectors == want[3];
  bool known = csv_row("tests/ptx/h200-differ.csv", start, rest, sizeof rest);
  if (equal == !known) return true;
  if (equal && strstr(rest, "order")) return true; // chance decides, here and there
  if (known) return not_ok(m, kernel, "counts equal the H200's now: take it out of h200-differ.csv");
  snprintf(
      m->text, sizeof m->text, "%.60s: loads %llu %llu, stores %llu %llu; on the H200 %llu %llu, %llu %llu",
      kernel, (unsigned long long)ld->requests, (unsigned long long)ld->sectors,
      (unsigned long long)st->requests, (unsigned long long)st->sectors, want[0], want[1], want[2], want[3]);
  return false;
}

static bool launches(Session *s, const char *name, int arch, CorpusMessage *m) {
  bool ok = true, counts = getenv("CORPUS_COUNTS") != NULL;
  for (int i = 0; ok && i < s->program->launch_count; i++) {
    SolEmuResult result = {0};
    ok = launch_one(s, i, &result, m);
    const char *kernel = s->program->launches[i].kernel;
    if (ok && counts) print_counts(name, i, kernel, &result);
    if (ok && arch == 90) ok = as_measured(name, i, kernel, &result, m); // what the counters were read of
    sol_emu_result_free(&result);
  }
  return ok;
}

static bool prepare(Session *s, const char *ptx, size_t length, const char *name, CorpusMessage *m) {
  SolError err = {0};
  CorpusProgram *p = s->program;
  const char *workers = getenv("CORPUS_WORKERS");
  SolEmuMachine machine = {
      .workers = workers ? atoi(workers) : 2, .stack_bytes = p->stack, .heap_bytes = p->heap};
  if (sol_emu_create(&machine, &s->emu, &err)) return not_ok(m, "create", err.message);
  if (sol_emu_load(s->emu, &(SolPtxSource){name, ptx, length}, 1, &s->module, &err)) {
    snprintf(m->text, sizeof m->text, "%s:%d:%d: %s", name, err.line, err.column, err.message);
    return false;
  }
  for (int i = 0; i < p->alloc_count; i++)
    if (sol_emu_alloc(s->emu, p->allocs[i].bytes, p->allocs[i].name, &s->address[i], &err))
      return not_ok(m, p->allocs[i].name, err.message);
  for (int i = 0; i < p->alloc_count; i++)
    corpus_fill(p, i, s->address, sol_emu_host(s->emu, s->address[i], p->allocs[i].bytes));
  return true;
}

static bool run_ptx(const char *source, size_t source_length, const char *ptx, size_t ptx_length,
                    const char *name, int arch, bool *skip, CorpusMessage *m) {
  Session s = {.program = malloc(sizeof *s.program)};
  bool ok = s.program && corpus_parse(s.program, source, source_length, m);
  if (ok && arch < s.program->arch)
    *skip = true;
  else if (ok) {
    ok = prepare(&s, ptx, ptx_length, name, m) && launches(&s, name, arch, m);
    int errors = ok ? corpus_find(s.program, "errors", 6) : -1;
    if (ok && errors < 0) ok = not_ok(m, name, "has no buffer 'errors'");
    if (ok) {
      const uint32_t *words = sol_emu_host(s.emu, s.address[errors], s.program->allocs[errors].bytes);
      ok = corpus_verdict(s.program, words, s.printed.at ? s.printed.at : "", m);
    }
  }
  sol_emu_destroy(s.emu);
  free(s.printed.at);
  free(s.program);
  return ok;
}

static bool newer(const char *a, const char *b) { // a exists and is not older than b
  struct stat sa, sb;
  return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_mtime >= sb.st_mtime;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_files(const char *only, char **names, int cap) {
  DIR *dir = opendir("tests/ptx");
  int count = 0;
  for (struct dirent *e; dir && (e = readdir(dir));) {
    size_t n = strlen(e->d_name);
    if (n < 4 || strcmp(e->d_name + n - 3, ".cu") != 0 || (only && !strstr(e->d_name, only)) || count == cap)
      continue;
    names[count] = strndup(e->d_name, n - 3);
    if (names[count]) count++;
  }
  if (dir) closedir(dir);
  qsort(names, (size_t)count, sizeof *names, by_name);
  return count;
}

// Whether the i-th file is run for this architecture.
static bool takes(const char *archs, const char *arch, int i) {
  static const char *const others[] = {"75", "80", "100", "", "", "", "", "", ""};
  return archs || strcmp(arch, "90") == 0 || strcmp(arch, others[i % 9]) == 0;
}

// Compiles all that are missing in one go; nvcc takes seconds each.
static void compile_missing(const char *out, const char *archs, char **names, int count) {
  static char command[65536];
  char list[64];
  snprintf(list, sizeof list, "%s", archs ? archs : "75 80 90 100");
  for (char *arch = strtok(list, " "); arch; arch = strtok(NULL, " ")) {
    size_t n = (size_t)snprintf(command, sizeof command, "tests/ptx/compile.sh '%s' %s --", out, arch);
    size_t empty = n;
    for (int i = 0; i < count && n < sizeof command - 600; i++) {
      char ptx[600], cu[300];
      if (!takes(archs, arch, i)) continue;
      snprintf(ptx, sizeof ptx, "%s/%s/%s.ptx", out, arch, names[i]);
      snprintf(cu, sizeof cu, "tests/ptx/%s.cu", names[i]);
      if (!newer(ptx, cu)) n += (size_t)snprintf(command + n, sizeof command - n, " %s", cu);
    }
    if (n > empty && system(command)) printf("not all of the corpus compiles for sm_%s\n", arch);
  }
}

int main(int argc, char **argv) {
  const char *build = getenv("B"), *archs = getenv("CORPUS_ARCHS"), *only = argc > 1 ? argv[1] : NULL;
  char out[256], list[64];
  char *names[512];
  int passed = 0, failed = 0;
  snprintf(out, sizeof out, "%s/corpus", build ? build : "build");
  if (system("scripts/cuda-env nvcc >/dev/null 2>&1")) {
    printf("no CUDA 13 compiler to compile the corpus with\n");
    return 77;
  }
  int count = list_files(only, names, 512);
  compile_missing(out, archs, names, count);
  snprintf(list, sizeof list, "%s", archs ? archs : "75 80 90 100");
  for (char *arch = strtok(list, " "); arch; arch = strtok(NULL, " "))
    for (int i = 0; i < count; i++) {
      char path[600], cu[300];
      if (!takes(archs, arch, i)) continue;
      size_t source_length, length;
      snprintf(cu, sizeof cu, "tests/ptx/%s.cu", names[i]);
      snprintf(path, sizeof path, "%s/%s/%s.ptx", out, arch, names[i]);
      char *source = read_file(cu, &source_length), *ptx = read_file(path, &length);
      CorpusMessage message = {""};
      bool skip = false;
      bool ok =
          source && ptx && run_ptx(source, source_length, ptx, length, names[i], atoi(arch), &skip, &message);
      // A file that needs a newer architecture is not compiled for an older one.
      CorpusProgram *p = !ptx && source ? malloc(sizeof *p) : NULL;
      if (p && corpus_parse(p, source, source_length, &message) && atoi(arch) < p->arch) skip = true;
      free(p);
      if (skip)
        ok = true;
      else if (ok)
        passed++;
      else
        failed++;
      if (!ok) printf("FAIL %s sm_%s: %s\n", names[i], arch, ptx ? message.text : "not compiled");
      fflush(stdout);
      free(source);
      free(ptx);
    }
  for (int i = 0; i < count; i++) free(names[i]);
  printf("%d passed, %d failed\n", passed, failed);
  return failed ? 1 : 0;
}
