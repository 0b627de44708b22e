// Which files may be read to show source. Their names are part of the PTX, so the kernel's author chose
// them: a pipe would never end, and a private file's lines do not belong into a bill. Read are regular files
// below the folders of what was given, the project that it is in, the folders that -I and --source-dir
// name, and those of the toolkit's and the system's headers; none whose name, or that of a folder on the way,
// starts with a dot.
#define _GNU_SOURCE // realpath, O_PATH

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "cli/child.h"
#include "cli/cli_audit.h"
#include "cli/scratch.h"

static bool is_below(const char *path, const char *folder) {
  size_t n = strlen(folder);
  if (strcmp(folder, "/") == 0) return path[0] == '/';
  return strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n]);
}

// Too much is below these.
static bool is_wide(const char *folder) {
  char *home = getenv("HOME") ? realpath(getenv("HOME"), NULL) : NULL;
  bool wide = strcmp(folder, "/") == 0 || (home && strcmp(folder, home) == 0);
  free(home);
  return wide;
}

static void add_place(AuditRun *r, const char *folder, bool given) {
  char *real = realpath(folder, NULL);
  size_t n = real ? strlen(real) + 1 : 0;
  char *kept = real && r->place_count < MAX_PLACES ? sol_arena_alloc(&r->cli->arena, n) : NULL;
  if (kept) {
    memcpy(kept, real, n);
    r->places[r->place_count++] = (AuditPlace){kept, !given && is_wide(real)};
  }
  free(real);
}

static void add_project(AuditRun *r, const char *file) {
  char path[CHILD_PATH], *here = realpath(".", NULL), *real = realpath(file, NULL);
  if (here && real && is_below(real, here) && !is_wide(here)) add_place(r, here, false);
  for (char *slash; real && (slash = strrchr(real, '/')) && slash > real;) {
    *slash = 0;
    if (is_wide(real)) break;
    if (sol_format(path, sizeof path, "%s/.git", real) >= sizeof path || access(path, F_OK)) continue;
    add_place(r, real, false);
    break;
  }
  free(here);
  free(real);
}

static void add_include_folders(AuditRun *r) {
  bool next = false;
  for (int i = 0; i < r->args->nvcc.count; i++) {
    char word[CHILD_PATH];
    for (const char *p = r->args->nvcc.text[i]; *p;) {
      size_t n = strcspn(p, " ");
      bool flag = n >= 2 && p[0] == '-' && p[1] == 'I';
      sol_format(word, sizeof word, "%.*s", (int)(flag ? n - 2 : n), flag ? p + 2 : p);
      if (word[0] && (flag || next)) add_place(r, word, true);
      if (n) next = flag && n == 2;
      p += n + (p[n] == ' ');
    }
  }
}

// The toolkit's headers: next to nvcc's folder, or where links from there lead.
static void add_toolkit(AuditRun *r) {
  char nvcc[CHILD_PATH], folder[CHILD_PATH + 16];
  char *real = cli_audit_look_for_nvcc(nvcc, sizeof nvcc) ? realpath(nvcc, NULL) : NULL;
  for (int i = 0; i < 2 && real; i++) {
    char *slash = strrchr(real, '/');
    if (slash) *slash = 0;
  }
  if (real) {
    sol_format(folder, sizeof folder, "%s/include", real);
    add_place(r, folder, true);
    sol_format(folder, sizeof folder, "%s/targets", real);
    add_place(r, folder, true);
  }
  free(real);
  add_place(r, "/usr/include", true);
}

static void add_given(AuditRun *r) {
  const CommonArgs *common = &r->args->common;
  for (int i = 0; i < common->positional_count; i++) {
    const char *file = cli_absolute(r->cli, common->positional[i]);
    if (!file) continue;
    SolBuffer folder = {0};
    sol_buffer_put(&folder, file, (size_t)(strrchr(file, '/') - file) + 1);
    if (folder.text) add_place(r, folder.text, false);
    sol_buffer_free(&folder);
    add_project(r, file);
  }
  for (int i = 0; i < r->args->source_dirs.count; i++) add_place(r, r->args->source_dirs.text[i], true);
  if (scratch_folder()) add_place(r, scratch_folder(), true);
  add_include_folders(r);
}

static bool allows(const AuditPlace *place, const char *file) {
  if (!is_below(file, place->folder)) return false;
  const char *rest = file + (strcmp(place->folder, "/") ? strlen(place->folder) : 0);
  return !strstr(rest, "/.") && !(place->flat && strchr(rest + 1, '/'));
}

static bool may_show(AuditRun *r, const char *file) {
  if (!r->place_count) add_given(r);
  for (int i = 0;; i++) {
    if (i == r->place_count && !r->toolkit_added)
      r->toolkit_added = true, add_toolkit(r); // only where it is needed
    if (i >= r->place_count) return false;
    if (allows(&r->places[i], file)) return true;
  }
}

// First an O_PATH handle, which neither blocks nor reads, to check what the name leads to; then that file is
// read, even if the name leads elsewhere by now.
int audit_open_source(AuditRun *r, const char *name, size_t most) {
  char self[40], real[CHILD_PATH];
  struct stat st;
  int handle = open(name, O_PATH | O_CLOEXEC), file = -2;
  if (handle < 0) return -1;
  sol_format(self, sizeof self, "/proc/self/fd/%d", handle);
  ssize_t n = readlink(self, real, sizeof real - 1);
  bool regular = fstat(handle, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size <= most;
  real[n > 0 ? n : 0] = 0;
  if (regular && n > 0 && (size_t)n < sizeof real - 1 && may_show(r, real))
    file = open(self, O_RDONLY | O_CLOEXEC);
  close(handle);
  return file == -1 ? -2 : file;
}
