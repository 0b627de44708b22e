// What the terminal can show.
#define _DEFAULT_SOURCE // TIOCGWINSZ

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

enum { USUAL = 80, LEAST = 40 };

size_t cli_columns(int file) {
  const char *given = getenv("COLUMNS");
  long columns = given ? strtol(given, NULL, 10) : 0;
  struct winsize size;
  if (columns <= 0 && isatty(file) && ioctl(file, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (columns <= 0) columns = USUAL;
  return columns < LEAST ? LEAST : columns > 10000 ? 10000 : (size_t)columns;
}

static bool use_colour(int choice) {
  if (choice) return choice == 1;
  const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
  return isatty(1) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

// As setlocale would find out, without changing anything for the rest of the program.
static bool has_utf8(void) {
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  for (size_t i = 0; i < SOL_COUNT(names); i++) {
    const char *value = getenv(names[i]);
    if (!value || !*value) continue;
    const char *dot = strchr(value, '.');
    return dot && (strncasecmp(dot, ".utf-8", 6) == 0 || strncasecmp(dot, ".utf8", 5) == 0);
  }
  return false;
}

TextStyle cli_style(const Cli *cli) {
  return (TextStyle){.width = cli->args->wide ? 0 : cli_columns(1),
                     .colour = use_colour(cli->args->colour),
                     .ascii = !has_utf8()};
}
