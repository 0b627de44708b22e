// nvcc on the files that were given. It writes the names of files into command lines for a shell, and those
// may hold anything: a file whose name a shell would not take as one word is compiled as a copy with a simple
// name in the scratch folder. A line marker at its start names the original, so that messages, __FILE__
// and line numbers are the user's own; headers in the original's folder are found through a link to it.
#define _GNU_SOURCE // realpath

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "base/plain.h"
#include "cli/child.h"
#include "cli/cli_audit.h"
#include "cli/scratch.h"

enum { MAX_SOURCE = 256 << 20, OWN_WORDS = 16 };

// ---- nvcc itself ----

static int find_nvcc(AuditRun *r, char *out, size_t cap) {
  int seen = cli_audit_look_for_nvcc(out, cap);
  if (seen >= 13) return EXIT_OK;
  SolError err = {0};
  if (seen)
    sol_fail(&err, SOL_ERR_NOT_FOUND, "the nvcc found is of CUDA %d; it takes CUDA 13 or newer", seen);
  else
    sol_fail(&err, SOL_ERR_NOT_FOUND, "no nvcc: a .cu file has to be compiled");
  sol_hint(&err, "set NVCC or CUDA_HOME, or run 'make setup' in Sol's folder; a .ptx file needs none");
  return cli_error(r->cli, &err, 0, 0, 0);
}

// nvcc names its own parts by where it was called, to a shell as well: a toolkit in a folder with a name that
// is not simple is called through a link. A wrapper with another name finds its nvcc itself.
const char *audit_simple_nvcc(AuditRun *r, const char *nvcc) {
  static const char end[] = "/bin/nvcc";
  char home[CHILD_PATH];
  size_t n = strlen(nvcc), m = sizeof end - 1;
  if (scratch_is_simple(nvcc) || n <= m || strcmp(nvcc + n - m, end) != 0) return nvcc;
  sol_format(home, sizeof home, "%.*s", (int)(n - m), nvcc);
  char *real = realpath(home, NULL);
  const char *link = scratch_path(r->cli, "cuda");
  bool linked = real && (symlink(real, link) == 0 || errno == EEXIST);
  free(real);
  return linked ? scratch_path(r->cli, "cuda/bin/nvcc") : nvcc;
}

// ---- the sources ----

static int refuse(const AuditRun *r, const char *path, const char *what) {
  SolError err = {0};
  sol_fail(&err, SOL_ERR_IO, "'%.120s' has a name that cannot be given to nvcc, and %s: %s", path, what,
           strerror(errno));
  sol_hint(&err, "rename it, or its folder, to letters, digits and _ . + - @");
  return cli_error(r->cli, &err, 0, 0, 0);
}

// The path as a line marker has it: characters that it cannot hold become question marks.
static char *marked(AuditRun *r, const char *path) {
  size_t left = strlen(path), n = 0;
  char *name = sol_arena_alloc(&r->cli->arena, left + 1);
  for (size_t step; name && left; path += step, left -= step) {
    uint32_t code;
    step = sol_utf8_next(path, left, &code);
    bool fits = step && !sol_code_is_hidden(code) && code != '"' && code != '\\';
    if (!step) step = 1;
    if (fits) memcpy(name + n, path, step);
    if (!fits) name[n] = '?';
    n += fits ? step : 1;
  }
  if (name) name[n] = 0;
  return name;
}

static char *keep(AuditRun *r, const char *text, size_t n) {
  char *copy = sol_arena_alloc(&r->cli->arena, n + 1);
  if (copy) memcpy(copy, text, n), copy[n] = 0;
  return copy;
}

static void remember(AuditRun *r, const char *shown, const char *real, bool folder) {
  if (shown && real && r->alias_count < MAX_ALIASES)
    r->aliases[r->alias_count++] = (AuditAlias){shown, real, folder};
}

static const char *ending(const char *path) {
  static const char *const known[] = {".cu", ".cpp", ".cc", ".c"};
  size_t n = strlen(path);
  for (size_t i = 0; i < SOL_COUNT(known); i++)
    if (n > strlen(known[i]) && strcmp(path + n - strlen(known[i]), known[i]) == 0) return known[i];
  return ".cu";
}

// The copy, and the link to its folder.
static int copy_source(AuditRun *r, int i, const char *path, const char *real) {
  size_t length = 0;
  SolError err = {0};
  const char *name = strrchr(real, '/') + 1, *marker = marked(r, real);
  const char *copy = scratch_path(r->cli, "input%d%s", i, ending(path)),
             *link = scratch_path(r->cli, "from%d", i);
  char *text = cli_read_file(path, MAX_SOURCE, &length, &err);
  if (!text) return cli_error(r->cli, &err, 0, 0, 0);
  SolBuffer all = {0};
  sol_buffer_format(&all, "# 1 \"%s\"\n", marker ? marker : "");
  sol_buffer_put(&all, text, length);
  free(text);
  const char *folder = keep(r, real, name - real > 1 ? (size_t)(name - real) - 1 : 1);
  bool fine = !all.failed && marker && folder && !cli_write_file(copy, all.text, all.length, &err);
  sol_buffer_free(&all);
  if (!fine) return refuse(r, path, "it cannot be copied");
  if (symlink(folder, link) && errno != EEXIST) return refuse(r, path, "its folder cannot be linked");
  remember(r, marker, real, false);
  remember(r, link, folder, true);
  r->compiled[i] = copy;
  return EXIT_OK;
}

// nvcc makes names absolute: one is simple only where those of the folders above it are.
static int choose_source(AuditRun *r, int i) {
  const char *path = r->args->common.positional[i];
  if (r->compiled[i]) return EXIT_OK; // for another GPU
  const char *real = cli_absolute(r->cli, path);
  struct stat st;
  SolError err = {0};
  if (!real || stat(real, &st) || access(real, R_OK)) {
    sol_fail(&err, SOL_ERR_NOT_FOUND, "cannot open '%.120s': %s", path, strerror(errno));
    return cli_error(r->cli, &err, 0, 0, 0);
  }
  if (!S_ISREG(st.st_mode))
    return cli_fail(r->cli, "'%.120s' is no file that nvcc could read to its end", path);
  bool simple = scratch_is_simple(path) && scratch_is_simple(real) && path[0] != '-' && path[0] != '@';
  if (!simple) return copy_source(r, i, path, real);
  r->compiled[i] = path;
  return EXIT_OK;
}

// nvcc writes what is not ASCII in octal, "\303\251".
static const char *from_octal(SolArena *arena, const char *file) {
  if (!strchr(file, '\\')) return file;
  char *name = sol_arena_alloc(arena, strlen(file) + 1), *to = name;
  if (!name) return file;
  while (*file) {
    bool octal = file[0] == '\\' && file[1] >= '2' && file[1] <= '3' && strspn(file + 2, "01234567") >= 2;
    *to++ = (char)(octal ? (file[1] - '0') << 6 | (file[2] - '0') << 3 | (file[3] - '0') : *file);
    file += octal ? 4 : 1;
  }
  *to = 0;
  return name;
}

const char *audit_real_name(const AuditRun *r, SolArena *arena, const char *written) {
  const char *file = from_octal(arena, written);
  for (int i = 0; i < r->alias_count; i++) {
    const AuditAlias *a = &r->aliases[i];
    size_t n = strlen(a->shown);
    if (strncmp(file, a->shown, n) != 0 || file[n] != (a->folder ? '/' : 0)) continue;
    size_t room = strlen(a->real) + strlen(file + n) + 1;
    char *name = sol_arena_alloc(arena, room);
    if (name) sol_format(name, room, "%s%s", a->real, file + n);
    return name ? name : file;
  }
  return file;
}

// ---- the command ----

static size_t count_words(const TextList *list) {
  size_t count = 0;
  for (int i = 0; i < list->count; i++) count += strlen(list->text[i]) / 2 + 1;
  return count;
}

// The words of the --nvcc options, cut at spaces.
static size_t add_words(AuditRun *r, const char **argv, size_t count) {
  for (int i = 0; i < r->args->nvcc.count; i++) {
    char *save = NULL, *copy = keep(r, r->args->nvcc.text[i], strlen(r->args->nvcc.text[i]));
    for (char *word = copy ? strtok_r(copy, " ", &save) : NULL; word; word = strtok_r(NULL, " ", &save))
      argv[count++] = word;
  }
  return count;
}

static const char *quote_flag(AuditRun *r, const char *folder) {
  size_t n = strlen(folder) + sizeof "-iquote,";
  char *flag = sol_arena_alloc(&r->cli->arena, n);
  if (flag) sol_format(flag, n, "-iquote,%s", folder);
  return flag ? flag : "-iquote,.";
}

static int call_nvcc(AuditRun *r, const char *nvcc, const SolDevice *device, const char *const *flags,
                     const char *out) {
  int sources = r->args->common.positional_count, cc = device->cc_major * 10 + device->cc_minor;
  size_t room = OWN_WORDS + count_words(&r->args->nvcc) + (size_t)sources + 2 * MAX_ALIASES, n = 0;
  const char **argv = sol_arena_alloc(&r->cli->arena, room * sizeof *argv);
  if (!argv) return -1;
  char arch[24];
  sol_format(arch, sizeof arch, "-arch=sm_%d", cc < 75 ? 75 : cc); // CUDA 13 compiles for nothing older
  argv[n++] = nvcc;
  for (size_t i = 0; flags[i]; i++) argv[n++] = flags[i];
  argv[n++] = "-lineinfo";
  argv[n++] = arch;
  argv[n++] = "-Wno-deprecated-gpu-targets";
  n = add_words(r, argv, n);
  for (int i = 0; i < r->alias_count; i++) {
    if (!r->aliases[i].folder) continue;
    argv[n++] = "-Xcompiler"; // the original's folder, for #include "..." alone
    argv[n++] = quote_flag(r, r->aliases[i].shown);
  }
  for (int i = 0; i < sources; i++) argv[n++] = r->compiled[i];
  argv[n++] = "-o";
  argv[n++] = out;
  argv[n] = NULL;
  return cli_audit_call(argv, false);
}

int cli_audit_compile(AuditRun *r, const SolDevice *device, const char *const *flags, const char *out) {
  char nvcc[CHILD_PATH];
  int code = find_nvcc(r, nvcc, sizeof nvcc);
  for (int i = 0; i < r->args->common.positional_count && !code; i++) code = choose_source(r, i);
  if (code) return code;
  int exit_code = call_nvcc(r, audit_simple_nvcc(r, nvcc), device, flags, out);
  if (!exit_code) return EXIT_OK;
  SolError err = {0};
  sol_fail(&err, SOL_ERR_ARGUMENT, "nvcc could not compile %.100s (exit code %d); its messages are above",
           r->args->common.positional[0], exit_code);
  sol_hint(&err, "flags for nvcc go into --nvcc '-Iinclude -std=c++17'; a kernel without a main takes --arg");
  return cli_error(r->cli, &err, 0, 0, 0);
}
