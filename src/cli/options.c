// Reading a command line by a command's table of options.
#define _POSIX_C_SOURCE 200809L // isatty

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "base/plain.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/cli_ceilings.h"
#include "report/wrap.h"

// Where the error is in the text. Some know their line alone; -1: not in this text.
static int64_t place_of(const SolError *err, const char *text, size_t length) {
  if (!text || err->line <= 0 || err->offset > (int64_t)length) return -1;
  if (err->offset >= 0) return err->offset;
  size_t at = 0;
  for (int32_t line = 1; line < err->line; line += text[at++] == '\n')
    if (at >= length) return -1;
  for (int32_t column = 1; column < err->column && at < length && text[at] != '\n'; column++) at++;
  return (int64_t)at;
}

// Part of a line of a source file, made safe to show, its tabs as spaces; returns the columns that it takes.
static size_t put_source(SolBuffer *out, const char *text, size_t length) {
  size_t before = out->length;
  for (size_t from = 0, i = 0; i <= length; i++)
    if (i == length || text[i] == '\t') {
      sol_buffer_plain(out, text + from, i - from, false);
      if (i < length) sol_buffer_puts(out, " ");
      from = i + 1;
    }
  return out->text ? sol_text_columns(out->text + before, out->length - before) : 0;
}

// On a terminal its lines hold whole words; elsewhere a message is one line, for what reads it.
static void put_message(SolBuffer *out, const char *text, size_t at) {
  SolBuffer plain = {0};
  sol_buffer_plain(&plain, text, strlen(text), false);
  if (plain.text && isatty(2))
    report_wrap(out, plain.text, 0, at, cli_columns(2), "");
  else if (plain.text)
    sol_buffer_puts(out, plain.text);
  sol_buffer_puts(out, "\n");
  sol_buffer_free(&plain);
}

int cli_error(const Cli *cli, const SolError *err, const char *source, const char *text, size_t length) {
  SolBuffer out = {0};
  const char *command = cli && cli->command ? cli->command->name : 0;
  sol_buffer_format(&out, "sol%s%s: ", command ? " " : "", command ? command : "");
  if (source) sol_buffer_plain(&out, source, strlen(source), false);
  if (source && err->line > 0)
    sol_buffer_format(&out, ":%d:%d", err->line, err->column > 0 ? err->column : 1);
  if (source) sol_buffer_puts(&out, ": ");
  put_message(&out, err->message, sol_text_columns(out.text ? out.text : "", out.length));
  int64_t place = place_of(err, text, length);
  if (text && place >= 0) { // the line concerned, cut to what fits, and a caret under the place
    size_t show = cli_columns(2) - 2;
    size_t at = (size_t)place, begin = at, end = at;
    while (begin > 0 && text[begin - 1] != '\n' && at - begin < show / 2) begin--;
    while (end < length && text[end] != '\n' && end - begin < show) end++;
    sol_buffer_puts(&out, "  ");
    size_t columns = put_source(&out, text + begin, at - begin);
    put_source(&out, text + at, end - at);
    sol_buffer_puts(&out, "\n  ");
    sol_buffer_fill(&out, ' ', columns);
    sol_buffer_puts(&out, "^\n");
  }
  if (err->hint[0]) put_message(&out, err->hint, 0);
  if (out.text) cli_put_error(out.text);
  sol_buffer_free(&out);
  return err->status == SOL_ERR_IO || err->status == SOL_ERR_NO_SPACE ? EXIT_FAILED : EXIT_USAGE;
}

int cli_fail(const Cli *cli, const char *format, ...) {
  SolError err = {.status = SOL_ERR_ARGUMENT, .offset = -1};
  va_list args;
  va_start(args, format);
  sol_vformat(err.message, sizeof err.message, format, args);
  va_end(args);
  if (cli->command) sol_format(err.hint, sizeof err.hint, "see: sol %s --help", cli->command->name);
  return cli_error(cli, &err, 0, 0, 0);
}

static const char *option_name_at(const void *command, int i) {
  return ((const Command *)command)->options[i].name;
}

// The position of `word` in "a|b|c"; -1 where it is none of them.
static int choice_index(const char *choices, const char *word) {
  size_t n = strlen(word);
  for (int i = 0;; i++) {
    size_t length = strcspn(choices, "|");
    if (length == n && memcmp(choices, word, n) == 0) return i;
    if (!choices[length]) return -1;
    choices += length + 1;
  }
}

static int set_value(Cli *cli, const Option *option, const char *text) {
  void *slot = (char *)cli->args + option->offset;
  size_t length = strlen(text);
  char source[40];
  sol_format(source, sizeof source, "--%s", option->name);
  SolError err = {0};
  SolStatus status = SOL_OK;
  switch (option->kind) {
  case OPTION_FLAG: *(bool *)slot = true; break;
  case OPTION_NUMBER: status = sol_parse_number(text, length, slot, &err); break;
  case OPTION_COUNT: status = sol_parse_count(text, length, option->least, slot, &err); break;
  case OPTION_TEXT: *(const char **)slot = text; break;
  case OPTION_TEXTS: {
    TextList *list = slot;
    if (list->count == MAX_TEXTS)
      status = sol_fail(&err, SOL_ERR_RANGE, "given more than %d times", MAX_TEXTS);
    else
      list->text[list->count++] = text;
    break;
  }
  case OPTION_DTYPE: status = sol_dtype_find(text, slot, &err); break;
  case OPTION_CHOICE: {
    int i = choice_index(option->choices, text);
    if (i < 0) {
      status = sol_fail(&err, SOL_ERR_ARGUMENT, "'%.60s' is none of %s", text, option->choices);
    } else {
      *(int *)slot = i;
    }
    break;
  }
  }
  return status ? cli_error(cli, &err, source, text, length) : EXIT_OK;
}

static int parse_option(Cli *cli, int argc, char **argv, int *at) {
  const Command *command = cli->command;
  const char *name = argv[*at] + 2;
  const char *equals = strchr(name, '=');
  char bare[64];
  sol_format(bare, sizeof bare, "%.*s", equals ? (int)(equals - name < 60 ? equals - name : 60) : 60, name);
  for (int i = 0; i < command->option_count; i++) {
    const Option *option = &command->options[i];
    if (strcmp(bare, option->name) != 0) continue;
    const char *value = equals ? equals + 1 : "";
    if (option->kind == OPTION_FLAG && equals) return cli_fail(cli, "--%s takes no value", bare);
    if (option->kind != OPTION_FLAG && !equals) {
      if (++*at >= argc) return cli_fail(cli, "--%s needs a value: %s", bare, option->value);
      value = argv[*at];
    }
    cli->args->given |= 1ull << i;
    return set_value(cli, option, value);
  }
  SolError err = {0};
  sol_fail_unknown(&err, "option", argv[*at], option_name_at, command, command->option_count);
  return cli_error(cli, &err, 0, 0, 0);
}

int cli_parse(Cli *cli, int argc, char **argv) {
  assert(cli->command->option_count <= 64);
  bool options = true;
  for (int i = 0; i < argc; i++) {
    if (options && strcmp(argv[i], "--") == 0) {
      if (cli->command->passes_rest) {
        cli->rest = argv + i + 1;
        cli->rest_count = argc - i - 1;
        return EXIT_OK;
      }
      options = false;
    } else if (options && strcmp(argv[i], "-h") == 0) {
      cli->args->help = true;
    } else if (options && argv[i][0] == '-' && argv[i][1] == '-') {
      int code = parse_option(cli, argc, argv, &i);
      if (code) return code;
    } else if (options && argv[i][0] == '-' && argv[i][1]) {
      return cli_fail(cli, "unknown option '%.60s'; options start with two dashes", argv[i]);
    } else {
      if (cli->args->positional_count == MAX_POSITIONAL) return cli_fail(cli, "too many arguments");
      cli->args->positional[cli->args->positional_count++] = argv[i];
    }
  }
  return EXIT_OK;
}

bool cli_given(const Cli *cli, const char *option) {
  for (int i = 0; i < cli->command->option_count; i++)
    if (strcmp(cli->command->options[i].name, option) == 0) return cli->args->given >> i & 1;
  assert(!"an option of the command's table");
  return false;
}

typedef struct DeviceTable {
  int (*count)(void);
  const SolDevice *(*at)(int);
  SolStatus (*find)(const char *name, const SolDevice **out, SolError *err);
  bool files;
} DeviceTable;

static SolStatus find_device(Cli *cli, const DeviceTable *table, const char *name, const SolDevice **out,
                             SolError *err) {
  size_t n = strlen(name);
  if (strcmp(name, "this") == 0) return cli_ceilings_this_device(cli, out, err);
  if (table->files && n > 5 && strcmp(name + n - 5, ".json") == 0)
    return cli_device_file(cli, name, out, err);
  return table->find(name, out, err);
}

static int take_devices(Cli *cli, const DeviceTable *table, const char *list, const SolDevice **out, int cap,
                        int *count) {
  *count = 0;
  if (!list) list = DEFAULT_DEVICE;
  if (strcmp(list, "all") == 0) {
    for (; *count < table->count() && *count < cap; ++*count) out[*count] = table->at(*count);
    return EXIT_OK;
  }
  for (const char *p = list;; p++) {
    size_t n = strcspn(p, ",");
    char name[256];
    sol_format(name, sizeof name, "%.*s", (int)(n < 250 ? n : 250), p);
    SolError err = {0};
    if (*count == cap) return cli_fail(cli, cap == 1 ? "--device takes one GPU here" : "too many devices");
    if (find_device(cli, table, name, &out[*count], &err)) {
      if (!err.hint[0]) sol_hint(&err, "'sol devices' lists them");
      return cli_error(cli, &err, "--device", 0, 0);
    }
    ++*count;
    p += n;
    if (!*p) return EXIT_OK;
  }
}

int cli_devices(Cli *cli, const char *list, const SolDevice **out, int cap, int *count) {
  static const DeviceTable table = {sol_device_count, sol_device_at, sol_device_find, false};
  return take_devices(cli, &table, list, out, cap, count);
}

int cli_accelerators(Cli *cli, const char *list, const SolDevice **out, int cap, int *count) {
  static const DeviceTable table = {sol_accelerator_count, sol_accelerator_at, sol_accelerator_find, true};
  return take_devices(cli, &table, list, out, cap, count);
}
