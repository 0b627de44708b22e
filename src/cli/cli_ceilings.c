#define _POSIX_C_SOURCE 200809L

#include "cli/cli_ceilings.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"

enum { PATH_ROOM = 4096, MOST_BYTES = 1 << 16 };

bool cli_ceilings_folder(char *out, size_t cap) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  // The specification has relative paths ignored.
  if (cache && cache[0] == '/') return sol_format(out, cap, "%s/sol/devices", cache) < cap;
  if (home && home[0] == '/') return sol_format(out, cap, "%s/.cache/sol/devices", home) < cap;
  return false;
}

static bool make_folders(const char *path) {
  char part[PATH_ROOM];
  size_t n = strlen(path);
  if (n >= sizeof part) return false;
  for (size_t i = 1; i <= n; i++) {
    if (path[i] && path[i] != '/') continue;
    memcpy(part, path, i);
    part[i] = 0;
    if (mkdir(part, 0777) && errno != EEXIST) return false;
  }
  return true;
}

// The UUID, or where there is none the name, as a file may be called.
static void file_name(const Ceilings *c, char *out, size_t cap) {
  const char *from = c->cpu ? "cpu" : c->uuid[0] ? c->uuid : c->name[0] ? c->name : "gpu";
  size_t n = 0;
  for (; *from && n + 6 < cap; from++) {
    bool plain =
        (*from >= '0' && *from <= '9') || ((*from | 0x20) >= 'a' && (*from | 0x20) <= 'z') || *from == '-';
    out[n++] = plain ? *from : '_';
  }
  sol_format(out + n, cap - n, ".json");
}

SolStatus cli_ceilings_store(const Ceilings *c, char *path, size_t cap, SolError *err) {
  char folder[PATH_ROOM], name[128];
  if (!cli_ceilings_folder(folder, sizeof folder)) {
    sol_fail(err, SOL_ERR_NOT_FOUND, "there is no cache folder to keep them in");
    sol_hint(err, "set HOME or XDG_CACHE_HOME");
    return SOL_ERR_NOT_FOUND;
  }
  file_name(c, name, sizeof name);
  sol_format(path, cap, "%s/%s", folder, name);
  SolBuffer text = {0};
  ceilings_write(c, &text);
  SolStatus status = SOL_OK;
  if (text.failed)
    status = sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  else if (!make_folders(folder))
    status = sol_fail(err, SOL_ERR_IO, "cannot make '%.200s': %s", folder, strerror(errno));
  if (!status) status = cli_write_file(path, text.text, text.length, err); // others may be reading
  sol_buffer_free(&text);
  return status;
}

static bool read_file(const char *path, Ceilings *out) {
  size_t length = 0;
  char *text = cli_read_file(path, MOST_BYTES, &length, NULL);
  bool fine = text && ceilings_read(text, length, out, NULL) == SOL_OK;
  free(text);
  return fine;
}

bool cli_ceilings_find_cpu(Ceilings *out) {
  char folder[PATH_ROOM], path[PATH_ROOM];
  if (!cli_ceilings_folder(folder, sizeof folder)) return false;
  sol_format(path, sizeof path, "%s/cpu.json", folder);
  return access(path, R_OK) == 0 && read_file(path, out) && out->cpu;
}

static bool is_wanted(const Ceilings *c, const char *uuid, const char *name) {
  if (c->cpu) return false;
  if (uuid[0]) return strcmp(c->uuid, uuid) == 0;
  return !name[0] || strcmp(c->name, name) == 0;
}

bool cli_ceilings_find(const char *uuid, const char *name, Ceilings *out) {
  char folder[PATH_ROOM], path[PATH_ROOM];
  DIR *list = cli_ceilings_folder(folder, sizeof folder) ? opendir(folder) : NULL;
  struct timespec latest = {0};
  bool found = false;
  for (struct dirent *entry; list && (entry = readdir(list)) != NULL;) {
    size_t n = strlen(entry->d_name);
    Ceilings c;
    struct stat st;
    if (entry->d_name[0] == '.' || n < 5 || strcmp(entry->d_name + n - 5, ".json") != 0) continue;
    sol_format(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (stat(path, &st) || !read_file(path, &c) || !is_wanted(&c, uuid, name)) continue;
    bool later = st.st_mtim.tv_sec > latest.tv_sec ||
                 (st.st_mtim.tv_sec == latest.tv_sec && st.st_mtim.tv_nsec > latest.tv_nsec);
    if (found && !later) continue;
    *out = c;
    latest = st.st_mtim;
    found = true;
  }
  if (list) closedir(list);
  return found;
}

SolStatus cli_ceilings_this_device(Cli *cli, const SolDevice **out, SolError *err) {
  Ceilings c;
  const SolDevice *row;
  if (!cli_ceilings_find("", "", &c) && cli_ceilings_find_cpu(&c)) {
    sol_fail(err, SOL_ERR_NOT_FOUND, "this machine has no GPU: what was measured is its CPU");
    sol_hint(err, "'sol devices this' shows it; kernels need a GPU: 'sol devices' lists them");
    return SOL_ERR_NOT_FOUND;
  }
  if (!cli_ceilings_find("", "", &c)) {
    sol_fail(err, SOL_ERR_NOT_FOUND, "no GPU of this machine was measured yet");
    sol_hint(err, "measure it: sol devices --measure");
    return SOL_ERR_NOT_FOUND;
  }
  if (sol_device_find(c.name, &row, NULL)) {
    sol_fail(err, SOL_ERR_NOT_FOUND, "%s, which was measured here, is not in the table of GPUs", c.name);
    return SOL_ERR_NOT_FOUND;
  }
  SolDevice *device = sol_arena_alloc(&cli->arena, sizeof *device);
  char *source = sol_arena_alloc(&cli->arena, 96);
  if (!device || !source) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  sol_format(source, 96, "measured on this machine, %s", c.date);
  ceilings_device(&c, row, source, device);
  *out = device;
  return SOL_OK;
}
