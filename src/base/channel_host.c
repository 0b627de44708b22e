#define _GNU_SOURCE // F_DUPFD_CLOEXEC, O_NOFOLLOW
#include "base/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HIGH = 1024, SPARE = 32, FLAGS = O_WRONLY | O_APPEND };

// Moved to a high descriptor number that programs do not use; where that fails the file keeps its own.
static int move_up(int file) {
  struct rlimit limit;
  int from = !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < HIGH ? (int)limit.rlim_cur : HIGH;
  int up = from > SPARE ? fcntl(file, F_DUPFD_CLOEXEC, from - SPARE) : -1;
  if (up >= 0) close(file);
  return up >= 0 ? up : file;
}

static bool same_file(const SolChannel *c, int file) {
  struct stat s;
  return !fstat(file, &s) && (uint64_t)s.st_dev == c->device && (uint64_t)s.st_ino == c->inode;
}

// The program may have put its own descriptor of the same file there: the report's is the one opened for appending.
static bool still_ours(const SolChannel *c) {
  int flags = fcntl(c->file, F_GETFL);
  return flags >= 0 && (flags & (O_ACCMODE | O_APPEND)) == FLAGS && same_file(c, c->file);
}

SolStatus sol_channel_open(SolChannel *c, const char *path, unsigned mode, SolError *err) {
  int file = open(path, FLAGS | O_CREAT | O_CLOEXEC, (mode_t)mode);
  struct stat s;
  if (file < 0 || fstat(file, &s)) {
    sol_fail(err, SOL_ERR_IO, "cannot write %s: %s", path, strerror(errno));
    if (file >= 0) close(file);
    return SOL_ERR_IO;
  }
  *c = (SolChannel){.file = move_up(file), .device = (uint64_t)s.st_dev, .inode = (uint64_t)s.st_ino};
  if (S_ISREG(s.st_mode)) c->path = realpath(path, NULL); // opening a pipe again could wait for ever
  return SOL_OK;
}

static SolStatus lost(SolError *err, const char *why) {
  return sol_fail(err, SOL_ERR_IO,
                  "the program closed the report's descriptor, and the file cannot be opened again: %s", why);
}

// The number belongs to the program now: it is left alone.
static SolStatus open_again(SolChannel *c, SolError *err) {
  if (!c->path) return lost(err, "it is no plain file with a name");
  int file = open(c->path, FLAGS | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return lost(err, strerror(errno));
  if (!same_file(c, file)) {
    close(file);
    return lost(err, "another file has its name");
  }
  c->file = move_up(file);
  return SOL_OK;
}

static SolStatus write_all(int file, const char *text, size_t length, SolError *err) {
  while (length) {
    ssize_t n = write(file, text, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return sol_fail(err, SOL_ERR_IO, "cannot write the report: %s", strerror(errno));
    text += n;
    length -= (size_t)n;
  }
  return SOL_OK;
}

SolStatus sol_channel_write(SolChannel *c, const char *text, size_t length, SolError *err) {
  int before = errno; // the program's
  SolStatus status = still_ours(c) ? SOL_OK : open_again(c, err);
  if (!status) status = write_all(c->file, text, length, err);
  errno = before;
  return status;
}
