// The origin of stored results: command and date.
#define _POSIX_C_SOURCE 200809L

#include <time.h>

#include "base/buffer.h"
#include "cli/cli.h"
#include "report/facts.h"

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
