// PTX that must be refused (src/ptx): each file of tests/ptx_bad says in its first line how, "// error
// LINE:COLUMN STATUS: MESSAGE"; and texts too large to keep as files.
#include <dirent.h>

#include "ptx_check.h"

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  char *text = malloc(1 << 16);
  if (!text) abort();
  *length = fread(text, 1, 1 << 16, file);
  fclose(file);
  return text;
}

static void check_file(const char *path) {
  size_t length = 0;
  char *text = read_file(path, &length), want[512] = "", got[512];
  if (!CHECK_MSG(text, "cannot read %s", path)) return;
  sscanf(text, "// error %511[^\n]", want);
  SolError err = {0};
  SolPtxModule *m = load_sources(&(SolPtxSource){path, text, length}, 1, &err);
  snprintf(got, sizeof got, "%d:%d %s: %s", err.line, err.column, sol_status_name(err.status), err.message);
  CHECK_MSG(!m && !strcmp(got, want), "%s: '%s', expected '%s'", path, m ? "loaded" : got, want);
  sol_ptx_free(m);
  free(text);
}

TEST(files_of_ptx_bad) {
  static const char folder[] = "tests/ptx_bad";
  DIR *files = opendir(folder);
  if (!CHECK_MSG(files, "no folder %s: run from the repository's root", folder)) return;
  int count = 0;
  for (struct dirent *entry; (entry = readdir(files));) {
    size_t length = strlen(entry->d_name);
    if (length < 5 || strcmp(entry->d_name + length - 4, ".ptx") != 0) continue;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    check_file(path);
    count++;
  }
  closedir(files);
  CHECK_MSG(count >= 70, "only %d files", count);
}

// Whatever a text is cut off at, there is one error or none, and nothing is left behind.
TEST(texts_cut_short) {
  size_t length = 0;
  char *text = read_file("tests/fuzz/corpus/ptx/all_sorts.ptx", &length);
  if (!CHECK(text)) return;
  SolError err;
  SolPtxModule *m = load_sources(&(SolPtxSource){"whole", text, length}, 1, &err);
  CHECK_MSG(m, "%s", err.message);
  sol_ptx_free(m);
  for (size_t cut = 0; cut < length; cut++) {
    char *copy = malloc(cut + 1); // exactly as long, so that ASan sees a read past the end
    if (!copy) abort();
    memcpy(copy, text, cut);
    err = (SolError){0};
    m = load_sources(&(SolPtxSource){"cut", copy, cut}, 1, &err);
    CHECK_MSG(m || (err.message[0] && err.line > 0 && err.offset <= (int64_t)cut), "cut at %zu", cut);
    sol_ptx_free(m);
    free(copy);
  }
  free(text);
}

// ---- too much of something ----

static void check_repeated(const char *before, const char *piece, int times, const char *after,
                           const char *part) {
  size_t size = strlen(before) + strlen(piece) * (size_t)times + strlen(after) + 1;
  char *text = malloc(size), *to = text;
  if (!text) abort();
  to += sprintf(to, "%s", before);
  for (int i = 0; i < times; i++) to += sprintf(to, "%s", piece);
  sprintf(to, "%s", after);
  SolError err = load_error(text);
  CHECK_HAS(err.message, part);
  free(text);
}

TEST(nested_too_deep) {
  check_repeated(".entry k() {", "{", 200000, "", "nested more than");
  check_repeated(".entry k() { .reg .b32 r; mov.u32 r, ", "(", 200000, "", "nested more than");
  check_repeated(".entry k() { .reg .b32 r; mov.u32 r, ", "-", 200000, "1; }", "nested more than");
  check_repeated(".entry k() { .reg .b32 r; mov.u32 r, ", "1?", 200000, "1; }", "nested more than");
  check_repeated(".global .u32 g = ", "{", 200000, "", "expected a number");
  check_repeated(".global .u32 g[2][2] = ", "{", 200000, "", "expected a number");
  check_repeated(".section .x ", "{", 200000, "", "does not end");
}

TEST(too_long) {
  check_repeated(".entry k() { add", ".u32", 100000, " r, r, r; }", "too long");
  check_repeated(".entry k() { .reg .b32 r; add.u32 r", ", r", 100000, "; }", "expected ';'");
  check_repeated(".entry k() { .reg .b32 r; ld.global.v4.u32 {r", ", r", 100000, "}, [r]; }",
                 "more than 256 elements");
  check_repeated(".global .b8 g", "[2]", 100000, ";", "8 dimensions");
  check_repeated(".entry ", "k", 1000000, "() { bra x; }", "no label 'x'");
  check_repeated(".entry k() { mov.u32 ", "x", 1000000, ", 1; }", "is not declared");
}

// Sizes that a short text can ask for must not be allocated.
TEST(large_sizes_take_no_memory) {
  SolPtxModule *m = LOAD(".global .b8 g[4000000000]; .entry k() { .reg .b32 %r<2147483647>; .local .b8 "
                         "l[4000000000]; mov.u32 %r2147483646, 1; }");
  if (m) CHECK_INT(sol_ptx_find_symbol(m, "g")->size, 4000000000);
  sol_ptx_free(m);
  CHECK_HAS(load_error(".global .b8 g[4][1000000000] = {{1},{1}};").message, "too large a gap");
  CHECK_HAS(load_error(".entry k() { .reg .b32 %r<99999999999>; }").message, "expected how many registers");
}

// Many names, many blocks, many tables: nothing takes time that grows with the square of the text.
TEST(large_texts_take_little_time) {
  enum { MANY = 100000 };
  char *text = malloc((size_t)MANY * 160);
  if (!text) abort();
  char *to = text + sprintf(text, "%s.visible .entry k() { .reg .b32 x; .reg .pred p;\n T: .branchtargets ",
                            PTX_HEAD);
  for (int i = 0; i < MANY; i++) to += sprintf(to, "%sL%d", i ? "," : "", i);
  to += sprintf(to, ";\n");
  for (int i = 0; i < MANY; i++)
    to += sprintf(
        to,
        "L%d: brx.idx x, T;\n{ .reg .b32 t<4>; .param .b32 a; mov.u32 t1, %d; M: @p bra M; .loc %d 1 1\n}\n",
        i, i, i);
  to += sprintf(to, "}\n");
  SolError err = {0};
  SolPtxModule *m = load_sources(&(SolPtxSource){"large", text, (size_t)(to - text)}, 1, &err);
  CHECK_MSG(m, "%s", err.message);
  if (m) CHECK_INT(kernel(m)->reg_count, MANY + 2);
  sol_ptx_free(m);
  free(text);
}

CHECK_MAIN
