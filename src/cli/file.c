// Reading and writing whole files, with errors a person can act on.
#define _GNU_SOURCE // realpath

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "base/plain.h"
#include "cli/cli_view.h"

enum { PIPE_FILES = 0x50495045, DEVICE_MOST = 1 << 20 }; // PIPEFS_MAGIC of linux/magic.h

const char *cli_absolute(Cli *cli, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  SolBuffer folder = {0};
  sol_buffer_put(&folder, slash ? path : "./", slash ? (size_t)(slash - path) + 1 : 2);
  char *real = folder.failed ? NULL : realpath(folder.text, NULL);
  size_t n = real ? strlen(real) + strlen(name) + 2 : 0;
  char *all = real ? sol_arena_alloc(&cli->arena, n) : NULL;
  if (all) sol_format(all, n, "%s/%s", strcmp(real, "/") ? real : "", name);
  free(real);
  sol_buffer_free(&folder);
  return all;
}

// ---- reading ----

// Grows by doubling, since the length of a pipe is not known.
static char *read_all(int file, const char *path, size_t most, size_t *length, SolError *err) {
  size_t cap = 1 << 16;
  char *text = malloc(cap);
  SolStatus status = SOL_OK;
  for (*length = 0; text;) {
    ssize_t n = read(file, text + *length, cap - 1 - *length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      status = sol_fail(err, SOL_ERR_IO, "cannot read '%.120s': %s", path, strerror(errno));
      break;
    }
    *length += (size_t)n;
    if (*length > most) {
      status = sol_fail(err, SOL_ERR_RANGE, "'%.120s' is larger than %zu bytes", path, most);
      break;
    }
    if (n == 0) return text[*length] = 0, text;
    if (*length < cap - 1) continue;
    char *more = realloc(text, cap *= 2);
    if (!more) break;
    text = more;
  }
  if (!status) sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  free(text);
  return NULL;
}

// Whether it can be read to its end: a named pipe may never have one, and a device such as /dev/zero has
// none.
static SolStatus check_kind(int file, const char *path, size_t *most, SolError *err) {
  struct stat st;
  struct statfs system;
  if (fstat(file, &st)) return sol_fail(err, SOL_ERR_IO, "cannot read '%.120s': %s", path, strerror(errno));
  if (S_ISDIR(st.st_mode))
    return sol_fail(err, SOL_ERR_ARGUMENT, "'%.120s' is a folder; name the file in it", path);
  if (S_ISFIFO(st.st_mode) && (fstatfs(file, &system) || system.f_type != PIPE_FILES))
    return sol_fail(err, SOL_ERR_ARGUMENT, "'%.120s' is a named pipe, which may never end; name a file",
                    path);
  if (S_ISCHR(st.st_mode) && *most > DEVICE_MOST) *most = DEVICE_MOST;
  if (S_ISREG(st.st_mode) && st.st_size > 0 && (uint64_t)st.st_size > *most)
    return sol_fail(err, SOL_ERR_RANGE, "'%.120s' is larger than %zu bytes", path, *most);
  return SOL_OK;
}

char *cli_read_open(int file, const char *path, size_t most, size_t *length, SolError *err) {
  int flags = fcntl(file, F_GETFL);
  char *text = NULL;
  if (!check_kind(file, path, &most, err)) {
    if (flags >= 0) fcntl(file, F_SETFL, flags & ~O_NONBLOCK); // a shell's <(...) is waited for
    text = read_all(file, path, most, length, err);
  }
  close(file);
  return text;
}

char *cli_read_file(const char *path, size_t most, size_t *length, SolError *err) {
  int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) {
    sol_fail(err, SOL_ERR_NOT_FOUND, "cannot open '%.120s': %s", path, strerror(errno));
    return NULL;
  }
  return cli_read_open(file, path, most, length, err);
}

// ---- writing ----

static bool write_all(int file, const char *data, size_t length) {
  while (length) {
    ssize_t n = write(file, data, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    length -= (size_t)n;
  }
  return true;
}

// /dev/stdout and its like, terminals, pipes: nothing is lost there by writing in place.
static bool is_place(const char *path) {
  struct stat st;
  if (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0) return true;
  return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static bool write_in_place(const char *path, const void *data, size_t length) {
  int file = open(path, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); // a pipe may have no reader
  if (file >= 0) fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
  bool fine = file >= 0 && write_all(file, data, length);
  int why = errno;
  if (file >= 0 && close(file)) return false;
  errno = why;
  return fine;
}

// The rights that the file has, or that a new one would get.
static mode_t mode_of(const char *path) {
  struct stat st;
  if (lstat(path, &st) == 0 && S_ISREG(st.st_mode)) return st.st_mode & 0777;
  mode_t mask = umask(077);
  umask(mask);
  return 0666 & ~mask;
}

// Writes a temporary file in the same folder, with an unpredictable name, and renames it, so that the file is
// replaced atomically. A symbolic link is replaced, not followed.
static bool write_and_rename(const char *path, char *fresh, const void *data, size_t length) {
  int file = mkstemp(fresh);
  if (file < 0) return false;
  bool fine = write_all(file, data, length) && fchmod(file, mode_of(path)) == 0;
  int why = errno;
  if (close(file) && fine) fine = false, why = errno;
  if (fine && rename(fresh, path) == 0) return true;
  if (fine) why = errno;
  unlink(fresh);
  errno = why;
  return false;
}

SolStatus cli_write_file(const char *path, const void *data, size_t length, SolError *err) {
  const char *slash = strrchr(path, '/');
  size_t folder = slash ? (size_t)(slash - path) + 1 : 0, cap = folder + 32;
  char *fresh = malloc(cap);
  if (!fresh) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  sol_format(fresh, cap, "%.*s.sol-XXXXXX", (int)folder, path);
  bool fine =
      is_place(path) ? write_in_place(path, data, length) : write_and_rename(path, fresh, data, length);
  free(fresh);
  return fine ? SOL_OK : sol_fail(err, SOL_ERR_IO, "cannot write '%.120s': %s", path, strerror(errno));
}

void cli_put_error(const char *text) {
  SolBuffer plain = {0};
  sol_buffer_plain(&plain, text, strlen(text), true);
  if (plain.text && !plain.failed) fputs(plain.text, stderr);
  sol_buffer_free(&plain);
}

// Every answer of Sol's has a schema; a list has it in each element.
bool cli_is_result(SolJson root) {
  SolJson first = root, schema;
  SolJsonIter it = {.container = root};
  if (sol_json_kind(root) == SOL_JSON_ARRAY && !sol_json_next(&it, NULL, &first)) return false;
  double number;
  return sol_json_get(first, "schema", &schema) && sol_json_number(schema, &number);
}
