// One request to sol serve. It answers GET alone: / is the list of the folder's results, /NAME.json the report of one,
// /stamp/NAME.json a text that changes with the file. NAME is a plain file of the folder itself, so no path leads out
// of it. A request that names another host (a page that had its name point here) or that another site makes is refused.
#define _GNU_SOURCE // strcasestr, fdopendir

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/plain.h"
#include "cli/cli_view.h"
#include "report/html.h"

enum { MAX_REQUEST = 8192, MAX_NAME = 200, MAX_LISTED = 1000 };

// ---- answering ----

static void send_all(int to, const char *data, size_t length) {
  while (length) {
    ssize_t n = send(to, data, length, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    data += n;
    length -= (size_t)n;
  }
}

static void reply(int to, const char *status, const char *type, const SolBuffer *body) {
  char head[512];
  bool whole = body->text && !body->failed;
  sol_format(head, sizeof head,
             "HTTP/1.1 %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n"
             "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
             "Cross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\n\r\n",
             status, type, whole ? body->length : 0);
  send_all(to, head, strlen(head));
  if (whole) send_all(to, body->text, body->length);
}

static void refuse(int to, const char *status, const char *why) {
  SolBuffer body = {0};
  sol_buffer_format(&body, "%s\n", why);
  reply(to, status, "text/plain", &body);
  sol_buffer_free(&body);
}

// ---- files ----

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n > m && strcmp(text + n - m, end) == 0;
}

// A plain file of the folder: no separator, no dot in front, no link.
static int open_result(const ServeAt *at, const char *name, struct stat *st) {
  if (strchr(name, '/') || name[0] == '.' || !ends_with(name, ".json")) return -1;
  int file = openat(at->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file >= 0 && fstat(file, st) == 0 && S_ISREG(st->st_mode)) return file;
  if (file >= 0) close(file);
  return -1;
}

static void show_stamp(const ServeAt *at, int to, const char *name) {
  struct stat st;
  SolBuffer body = {0};
  int file = open_result(at, name, &st);
  if (file < 0) {
    refuse(to, "404 Not Found", "there is no such result");
    return;
  }
  close(file);
  sol_buffer_format(&body, "%lld.%09ld %lld", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                    (long long)st.st_size);
  reply(to, "200 OK", "text/plain", &body);
  sol_buffer_free(&body);
}

static void show_result(const ServeAt *at, int to, const char *name) {
  struct stat st;
  SolError err = {0};
  SolJson root;
  size_t length = 0;
  int file = open_result(at, name, &st);
  char *text = file < 0 ? NULL : cli_read_open(file, name, MAX_RESULT, &length, &err);
  if (!text) {
    refuse(to, "404 Not Found", file < 0 ? "there is no such result" : err.message);
  } else if (sol_json_check(text, length, &root, &err) || !cli_is_result(root)) {
    refuse(to, "422 Unprocessable Content", err.status ? err.message : "this JSON is no result of Sol's");
  } else {
    SolBuffer page = {0};
    report_html(&page, &(HtmlPart){name, text, length}, 1, true);
    reply(to, page.failed ? "500 Internal Server Error" : "200 OK", "text/html", &page);
    sol_buffer_free(&page);
  }
  free(text);
}

// ---- the list ----

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(const ServeAt *at, char **names) {
  struct stat st;
  int copy = openat(at->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0;
  DIR *folder = copy < 0 ? NULL : fdopendir(copy);
  if (!folder && copy >= 0) close(copy);
  for (struct dirent *entry; folder && count < MAX_LISTED && (entry = readdir(folder));) {
    int file = open_result(at, entry->d_name, &st);
    if (file < 0 || strlen(entry->d_name) > MAX_NAME) {
      if (file >= 0) close(file);
      continue;
    }
    close(file);
    names[count] = strdup(entry->d_name);
    count += names[count] != NULL;
  }
  if (folder) closedir(folder);
  qsort(names, (size_t)count, sizeof *names, by_name);
  return count;
}

// A name in an address (each byte but the plainest as %XX), and as text.
static void put_link(SolBuffer *out, const char *name) {
  sol_buffer_puts(out, "<li><a href=\"/");
  for (const char *c = name; *c; c++) {
    bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                 *c == '.' || *c == '-' || *c == '_';
    sol_buffer_format(out, plain ? "%c" : "%%%02x", (unsigned char)*c);
  }
  sol_buffer_puts(out, "\">");
  SolBuffer shown = {0};
  sol_buffer_plain(&shown, name, strlen(name), false);
  for (size_t i = 0; i < shown.length; i++) {
    char c = shown.text[i];
    if (c == '<' || c == '&' || c == '"')
      sol_buffer_format(out, "&#%d;", c);
    else
      sol_buffer_put(out, &c, 1);
  }
  sol_buffer_free(&shown);
  sol_buffer_puts(out, "</a></li>\n");
}

static void show_list(const ServeAt *at, int to) {
  char **names = calloc(MAX_LISTED, sizeof *names);
  int count = names ? read_names(at, names) : 0;
  SolBuffer page = {0};
  sol_buffer_puts(
      &page,
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Sol</title>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\">\n"
      "<meta http-equiv=\"refresh\" content=\"5\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\"></head>\n<body><h1>Results</h1>\n<ul>\n");
  for (int i = 0; i < count; i++) {
    put_link(&page, names[i]);
    free(names[i]);
  }
  sol_buffer_puts(&page, count ? "</ul>\n</body></html>\n"
                               : "</ul>\n<p>There is no .json file yet.</p></body></html>\n");
  free(names);
  reply(to, page.failed ? "500 Internal Server Error" : "200 OK", "text/html", &page);
  sol_buffer_free(&page);
}

// ---- requests ----

// The head of a request, up to its empty line. False: there is none that fits, in time.
static bool read_head(int from, char *head) {
  size_t length = 0;
  while (length + 1 < MAX_REQUEST) {
    ssize_t n = recv(from, head + length, MAX_REQUEST - 1 - length, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    length += (size_t)n;
    head[length] = 0;
    if (strlen(head) != length) return false; // a NUL
    if (strstr(head, "\r\n\r\n")) return true;
  }
  return false;
}

// The value of a header, which is cut at its end; NULL where it is missing or there twice.
static bool header_is(const char *head, const char *name, const char *value) {
  const char *at = strcasestr(head, name);
  if (!at || strcasestr(at + 1, name)) return false;
  at += strlen(name);
  at += strspn(at, " \t");
  size_t n = strcspn(at, "\r\n");
  return n == strlen(value) && strncasecmp(at, value, n) == 0;
}

static bool is_own(const ServeAt *at, const char *head) {
  bool host = header_is(head, "\r\nHost:", at->host[0]) || header_is(head, "\r\nHost:", at->host[1]);
  bool site = !strcasestr(head, "\r\nSec-Fetch-Site:") ||
              header_is(head, "\r\nSec-Fetch-Site:", "same-origin") ||
              header_is(head, "\r\nSec-Fetch-Site:", "none");
  return host && site;
}

static int hex(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

// "GET /a%20b.json?x HTTP/1.1": "a b.json". False: not such a line.
static bool path_of(const char *head, char *out) {
  if (strncmp(head, "GET /", 5) != 0) return false;
  size_t n = 0;
  const char *c = head + 5;
  for (; *c && *c != ' ' && *c != '?' && *c != '\r'; c++) {
    int high = *c == '%' ? hex(c[1]) : 0, low = *c == '%' && high >= 0 ? hex(c[2]) : 0;
    if (high < 0 || low < 0 || n >= 2 * MAX_NAME) return false;
    out[n++] = *c == '%' ? (char)(high * 16 + low) : *c;
    if (!out[n - 1]) return false;
    if (*c == '%') c += 2;
  }
  out[n] = 0;
  return *c == ' ' || *c == '?';
}

void serve_connection(const ServeAt *at, int connection) {
  char head[MAX_REQUEST], path[2 * MAX_NAME + 1];
  if (!read_head(connection, head)) return;
  if (!is_own(at, head))
    refuse(connection, "403 Forbidden", "this server answers its own pages alone, by its own name");
  else if (!path_of(head, path))
    refuse(connection, "400 Bad Request", "only GET of a file is answered");
  else if (!*path)
    show_list(at, connection);
  else if (strncmp(path, "stamp/", 6) == 0)
    show_stamp(at, connection, path + 6);
  else
    show_result(at, connection, path);
}
