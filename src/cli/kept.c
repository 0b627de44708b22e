// What a command leaves behind: temporary files, which go again, and results, which say where they are from.
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/format.h"
#include "cli/cli.h"
#include "report/facts.h"

int cli_temporary(Cli *cli, const char *what, char *folder, size_t cap) {
  const char *temporary = getenv("TMPDIR");
  sol_format(folder, cap, "%.100s/sol-%s-XXXXXX", temporary && *temporary ? temporary : "/tmp", what);
  if (mkdtemp(folder)) return EXIT_OK;
  SolError err = {0};
  sol_fail(&err, SOL_ERR_IO, "cannot make a folder '%.100s': %s", folder, strerror(errno));
  folder[0] = 0;
  return cli_error(cli, &err, 0, 0, 0);
}

void cli_temporary_drop(const char *at) {
  DIR *folder = at[0] ? opendir(at) : NULL;
  if (!folder) return;
  for (struct dirent *e; (e = readdir(folder));) {
    char path[512];
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    sol_format(path, sizeof path, "%s/%.200s", at, e->d_name);
    unlink(path);
  }
  closedir(folder);
  rmdir(at);
}

void cli_say_command(const Cli *cli, Fact *root) {
  SolBuffer text = {0};
  sol_buffer_format(&text, "sol %s", cli->command->name);
  for (int i = 0; i < cli->argc; i++) sol_buffer_format(&text, " %s", cli->argv[i]);
  fact_text(root, "command", 0, text.text);
  sol_buffer_free(&text);
  char date[32] = "";
  time_t now = time(NULL);
  struct tm utc;
  if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%d", &utc);
  fact_text(root, "date", 0, date);
}
