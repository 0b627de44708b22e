// The command line: each command is a table of options and a function. Parsing, help, man pages and shell
// completion all read the same tables.
#ifndef SOL_CLI_CLI_H
#define SOL_CLI_CLI_H

#include "emu/emu.h"
#include "report/facts.h"
#include "sol/sol.h"

// Exit codes.
enum {
  EXIT_OK = 0,
  EXIT_FAILED = 1,     // could not read, write or allocate; or a rung or a case failed
  EXIT_USAGE = 2,      // bad input
  EXIT_GATE = 3,       // a requested limit was exceeded
  EXIT_PROGRAM = 4,    // the program failed or was stopped, or a result is wrong
  EXIT_INCOMPLETE = 5, // part of the program did not run here, and its bill lacks it
};

typedef enum OptionKind {
  OPTION_FLAG,   // bool
  OPTION_NUMBER, // double, not negative
  OPTION_COUNT,  // int64_t, at least `least`
  OPTION_TEXT,   // const char *
  OPTION_TEXTS,  // TextList: may be given several times
  OPTION_DTYPE,  // SolDtype
  OPTION_CHOICE  // int: index into `choices`
} OptionKind;

enum { MAX_TEXTS = 64 };
typedef struct TextList {
  const char *text[MAX_TEXTS];
  int count;
} TextList;

typedef struct Option {
  const char *name; // without the dashes
  OptionKind kind;
  size_t offset;     // of the value in the command's arguments
  const char *value; // what the help calls it: "BYTES"; NULL for flags
  const char
      *choices; // OPTION_CHOICE: "hbm|l2|smem"; OPTION_TEXT: completion source "devices", "ops" ... or NULL
  int64_t least;
  const char *help;
} Option;

enum { MAX_POSITIONAL = 32 };

// Every command's arguments start with these.
typedef struct CommonArgs {
  bool json, wide, help;
  const char *html, *svg; // HTML_OPTION, SVG_OPTION
  int colour;             // index into "auto|always|never"
  const char *positional[MAX_POSITIONAL];
  int positional_count;
  uint64_t given; // bit i: option i of the command's table was on the command line
} CommonArgs;

#define COMMON_OPTIONS                                                                                       \
  {"json", OPTION_FLAG, offsetof(CommonArgs, json), 0, 0, 0, "print JSON"},                                  \
      {"wide",                                                                                               \
       OPTION_FLAG,                                                                                          \
       offsetof(CommonArgs, wide),                                                                           \
       0,                                                                                                    \
       0,                                                                                                    \
       0,                                                                                                    \
       "whole tables, however wide the terminal is"},                                                        \
      {"color",                                                                                              \
       OPTION_CHOICE,                                                                                        \
       offsetof(CommonArgs, colour),                                                                         \
       "WHEN",                                                                                               \
       "auto|always|never",                                                                                  \
       0,                                                                                                    \
       "colour: on a terminal only (default), always or never"},                                             \
  {                                                                                                          \
    "help", OPTION_FLAG, offsetof(CommonArgs, help), 0, 0, 0, "show this help"                               \
  }

// Of commands whose answer has pictures; SVG_OPTION: whose main one is also drawn by itself.
#define HTML_OPTION                                                                                          \
  { "html", OPTION_TEXT, offsetof(CommonArgs, html), "FILE", 0, 0, "write a report with pictures as well" }
#define SVG_OPTION                                                                                           \
  {                                                                                                          \
    "svg", OPTION_TEXT, offsetof(CommonArgs, svg), "FILE", 0, 0,                                             \
        "write its main picture (a roofline, or bars) as SVG as well"                                        \
  }

typedef struct Cli Cli;

typedef struct Command {
  const char *name;
  const char *usage;      // what follows the name: "[OP SHAPE] [options]"
  const char *summary;    // one line
  const char *details;    // paragraphs separated by blank lines; NULL for none
  const char *examples;   // one command a line, each with its comment: "sol devices h100  # one in full"
  const char *positional; // completion source of positional arguments; NULL for none
  const Option *options;
  int option_count;
  bool passes_rest; // what follows "--" is not the command's: Cli.rest
  size_t args_size;
  int (*run)(Cli *cli, void *args);
} Command;

extern const Command *const sol_commands[];
extern const int sol_command_count;

struct Cli {
  const Command *command;
  CommonArgs *args;
  SolArena arena;
  char **argv; // what followed the command's name
  int argc;
  char **rest; // what followed "--", for commands that pass it on; NULL: there was none
  int rest_count;
};

// Reads argv into args (zeroed, command->args_size bytes). EXIT_OK, or EXIT_USAGE with the error printed.
int cli_parse(Cli *cli, int argc, char **argv);

// Prints "sol COMMAND: message", the text with a caret where err has a place in it, and the hint.
// `source` names the text ("--bytes", a file); NULL where there is none.
int cli_error(const Cli *cli, const SolError *err, const char *source, const char *text, size_t length);
// The same for an error with no text.
int cli_fail(const Cli *cli, const char *format, ...) SOL_PRINTF(2, 3);

// Renders to standard output by the arguments, and with --html and --svg into those files; returns the exit code.
int cli_print(Cli *cli, const Fact *root);
int cli_print_pictures(Cli *cli, const Fact *root); // the files alone
int cli_write(const SolBuffer *text);
// Columns of a terminal: $COLUMNS, or the terminal that `file` (1, 2) is, or 80.
size_t cli_columns(int file);
TextStyle cli_style(const Cli *cli); // of standard output, by the arguments

// progress.c: a line on a terminal's standard error, written over; "" clears it. Nothing is written to a
// pipe, with --json or where CI is set.
bool cli_wants_progress(const Cli *cli);
void cli_status(const Cli *cli, const char *format, ...) SOL_PRINTF(2, 3);
// "column_scale: 45% of blocks, 1.2M instr/s, 3 s left" (kernel: may be NULL): `seconds`
// after the launch began.
void cli_launch_text(const SolEmuProgress *progress, double seconds, char *out, size_t cap);
// SolEmuLaunch.progress of launches in this process; ctx: a CliLaunch. It is shown after a second.
typedef struct CliLaunch {
  const Cli *cli;
  char what[96]; // goes before it, in the kernel's place: "[2/6] transpose tile: "
  double started, shown;
  uint64_t instructions;
} CliLaunch;
void cli_launch_progress(void *ctx, const SolEmuProgress *progress);

// Whether an option was given; its name is checked against the table by an assert.
bool cli_given(const Cli *cli, const char *option);

// The whole file, NUL-terminated, at most `most` bytes; NULL with the error set. free() it.
// A named pipe is refused, and of a device no more than 1 MiB is read.
char *cli_read_file(const char *path, size_t most, size_t *length, SolError *err);
// The same of an open file, which is closed; its name is for the error.
char *cli_read_open(int file, const char *path, size_t most, size_t *length, SolError *err);
// The name from the root on, links in the folders above it resolved, in the command's arena; NULL: no such folder.
const char *cli_absolute(Cli *cli, const char *path);
// Whole or not at all: where it fails, a file that was there before is as it was.
SolStatus cli_write_file(const char *path, const void *data, size_t length, SolError *err);
// Prints text of several lines on standard error, with control characters escaped.
void cli_put_error(const char *text);
// The command as typed and the date, for results that are kept.
void cli_say_command(const Cli *cli, struct Fact *root);

// device_file.c: a device by the figures in a JSON file, in the command's arena.
SolStatus cli_device_file(Cli *cli, const char *path, const SolDevice **out, SolError *err);

// "h100,h200", "all", "this" (this machine's GPU, as measured): up to cap devices. EXIT_OK or EXIT_USAGE.
int cli_devices(Cli *cli, const char *list, const SolDevice **out, int cap, int *count);
// The same for the accountant: devices of other makers too, and "my.json", a file of figures.
int cli_accelerators(Cli *cli, const char *list, const SolDevice **out, int cap, int *count);
#define DEFAULT_DEVICE "h100-sxm"
#define DEVICE_OPTION(type, field, several)                                                                  \
  {                                                                                                          \
    "device", OPTION_TEXT, offsetof(type, field), several ? "NAME,..." : "NAME", "devices", 0,               \
        several ? "GPU, several separated by commas, 'all', or 'this', as measured (default " DEFAULT_DEVICE \
                  ")"                                                                                        \
                : "GPU, or 'this', as measured (default " DEFAULT_DEVICE ")"                                 \
  }

const Command *cli_find_command(const char *name, SolError *err);
void cli_help(const Command *command, size_t width, SolBuffer *out); // NULL: of sol itself
void cli_man(const Command *command, SolBuffer *out);
bool cli_completion(const char *shell, SolBuffer *out); // false for an unknown shell

#endif
