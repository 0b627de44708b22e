#include "shim/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/shim.h"

enum { HIGH = 1024, SPARE = 32, FLAGS = O_WRONLY | O_APPEND };

// To a number that programs neither count on nor hand out; where there is none the file keeps its own.
static int move_up(int file) {
  struct rlimit limit;
  int from = !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < HIGH ? (int)limit.rlim_cur : HIGH;
  int up = from > SPARE ? fcntl(file, F_DUPFD_CLOEXEC, from - SPARE) : -1;
  if (up >= 0) close(file);
  return up >= 0 ? up : file;
}

static bool same_file(const ShimChannel *c, int file) {
  struct stat s;
  return !fstat(file, &s) && s.st_dev == c->device && s.st_ino == c->inode;
}

// The program may have put its own descriptor of the same file there: ours is the one that only adds.
static bool still_ours(const ShimChannel *c) {
  int flags = fcntl(c->file, F_GETFL);
  return flags >= 0 && (flags & (O_ACCMODE | O_APPEND)) == FLAGS && same_file(c, c->file);
}

bool shim_channel_open(ShimChannel *c, const char *variable) {
  const char *path = getenv(variable);
  if (!path || !*path) return false;
  int file = open(path, FLAGS | O_CREAT | O_CLOEXEC, 0666);
  struct stat s;
  if (file < 0 || fstat(file, &s)) {
    shim_note("%s: cannot write %s: %s", variable, path, strerror(errno));
    if (file >= 0) close(file);
    return false;
  }
  *c = (ShimChannel){.name = variable, .file = move_up(file), .device = s.st_dev, .inode = s.st_ino};
  if (S_ISREG(s.st_mode)) c->path = realpath(path, NULL); // opening a pipe again could wait for ever
  return true;
}

static void tell_lost(ShimChannel *c, const char *why) {
  if (!c->told)
    shim_note(
        "%s: the program closed the report's descriptor, and the file cannot be opened again: %s; what it "
        "launches is not reported until it can",
        c->name, why);
  c->told = true;
}

// The number belongs to the program now: it is left alone.
static bool open_again(ShimChannel *c) {
  if (!c->path) return tell_lost(c, "it is not a plain file with a name"), false;
  int file = open(c->path, FLAGS | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return tell_lost(c, strerror(errno)), false;
  if (!same_file(c, file)) {
    close(file);
    return tell_lost(c, "another file has its name"), false;
  }
  c->file = move_up(file);
  return true;
}

void shim_channel_write(ShimChannel *c, const char *text, size_t length) {
  int before = errno;
  bool ours = still_ours(c) || open_again(c);
  while (ours && length) {
    ssize_t n = write(c->file, text, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text += n;
    length -= (size_t)n;
  }
  errno = before;
}
