// A request to sol serve from any bytes. Whatever is asked, an answer is HTTP or nothing, it holds nothing of the files
// that must not be shown, and it is a refusal unless the request names the server's own host.
#define _GNU_SOURCE // memmem, strcasestr

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli_view.h"
#include "fuzz.h"

static const char SECRET[] = "{\"schema\": 1, \"work\": \"must not be shown\"}";

static void put_file(int folder, const char *name, const char *text) {
  int file = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || write(file, text, strlen(text)) < 0) abort();
  close(file);
}

static char place[64]; // of this process, removed at its end
static void remove_all(void) {
  static const char *const names[] = {"/in/result.json",
                                      "/in/a b.json",
                                      "/in/broken.json",
                                      "/in/.hidden.json",
                                      "/in/plain.txt",
                                      "/in/link.json",
                                      "/in",
                                      "/outside.json",
                                      ""};
  char path[128];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s%s", place, names[i]);
    if (unlink(path)) rmdir(path);
  }
}

// A folder with results, and what is not to be shown in and beside it.
static int make_folder(void) {
  snprintf(place, sizeof place, "/tmp/sol-fuzz-serve-XXXXXX");
  int outer = mkdtemp(place) ? open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (outer < 0 || mkdirat(outer, "in", 0700)) abort();
  atexit(remove_all);
  int inner = openat(outer, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  put_file(outer, "outside.json", SECRET);
  put_file(inner, ".hidden.json", SECRET);
  put_file(inner, "plain.txt", SECRET);
  put_file(inner, "result.json", "{\"schema\": 1}");
  put_file(inner, "a b.json", "{\"schema\": 1}");
  put_file(inner, "broken.json", "{");
  if (symlinkat("../outside.json", inner, "link.json")) abort();
  close(outer);
  return inner;
}

static bool names_host(const uint8_t *data, size_t size) {
  char text[4097];
  size_t n = size < sizeof text - 1 ? size : sizeof text - 1;
  memcpy(text, data, n);
  for (size_t i = 0; i < n; i++)
    if (!text[i]) text[i] = ' ';
  text[n] = 0;
  return size > n || strcasestr(text, "127.0.0.1:8765") || strcasestr(text, "localhost:8765");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int folder = -1;
  static char answer[1 << 20];
  if (folder < 0) folder = make_folder();
  ServeAt at = {.folder = folder, .host = {"127.0.0.1:8765", "localhost:8765"}};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends)) abort();
  if (size > 16384) size = 16384;
  if (size && write(ends[0], data, size) != (ssize_t)size) abort();
  shutdown(ends[0], SHUT_WR);
  serve_connection(&at, ends[1]);
  close(ends[1]);
  size_t length = 0;
  for (ssize_t n; length < sizeof answer && (n = read(ends[0], answer + length, sizeof answer - length)) > 0;)
    length += (size_t)n;
  close(ends[0]);
  if (!length) return 0;
  if (length < 13 || memcmp(answer, "HTTP/1.1 ", 9) != 0) abort();
  if (memmem(answer, length, "must not be shown", 17)) abort();
  if (memcmp(answer + 9, "403", 3) != 0 && !names_host(data, size)) abort();
  return 0;
}
