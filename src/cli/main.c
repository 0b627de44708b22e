// sol: picks the command, reads its options, runs it.
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/scratch.h"

int cli_write(const SolBuffer *text) {
  if (text->failed) {
    fputs("sol: out of memory\n", stderr);
    return EXIT_FAILED;
  }
  if (text->length && (fwrite(text->text, 1, text->length, stdout) != text->length || fflush(stdout))) {
    perror("sol: standard output");
    return EXIT_FAILED;
  }
  return EXIT_OK;
}

int cli_print(Cli *cli, const Fact *root) {
  SolBuffer out = {0};
  TextStyle style = cli_style(cli);
  bool ok = cli->args->json ? facts_render_json(root, &out) : facts_render_text(root, &style, &out);
  if (!ok) out.failed = true;
  int code = cli_write(&out);
  sol_buffer_free(&out);
  return code ? code : cli_print_pictures(cli, root);
}

static const char *command_name_at(const void *ctx, int i) {
  (void)ctx;
  return sol_commands[i]->name;
}

const Command *cli_find_command(const char *name, SolError *err) {
  for (int i = 0; i < sol_command_count; i++)
    if (strcmp(name, sol_commands[i]->name) == 0) return sol_commands[i];
  sol_fail_unknown(err, "command", name, command_name_at, 0, sol_command_count);
  return 0;
}

static void write_help(const Command *command, SolBuffer *out) {
  cli_help(command, cli_columns(1), out);
}

static int print_with(void (*write)(const Command *, SolBuffer *), const char *name) {
  SolError err = {0};
  const Command *c = name ? cli_find_command(name, &err) : 0;
  if (name && !c) return cli_error(0, &err, 0, 0, 0);
  SolBuffer out = {0};
  write(c, &out);
  int code = cli_write(&out);
  sol_buffer_free(&out);
  return code;
}

static int print_completion(const char *shell) {
  SolBuffer out = {0};
  int code = EXIT_USAGE;
  if (shell && cli_completion(shell, &out))
    code = cli_write(&out);
  else
    fputs("sol completion: which shell? bash, zsh or fish\n", stderr);
  sol_buffer_free(&out);
  return code;
}

static int print_and_free(SolBuffer *out) {
  int code = cli_write(out);
  sol_buffer_free(out);
  return code;
}

static int print_version(void) {
  SolBuffer out = {0};
  sol_buffer_puts(&out, "sol " SOL_VERSION "\n");
  return print_and_free(&out);
}

static int print_commands(void) {
  SolBuffer out = {0};
  for (int i = 0; i < sol_command_count; i++) sol_buffer_format(&out, "%s\n", sol_commands[i]->name);
  return print_and_free(&out);
}

// Where a standard descriptor is closed, the next file opened would get its number, and our output or a
// message. The answer then cannot be written, and the exit code says so.
static void open_standard(void) {
  static const int ways[] = {O_RDONLY, O_RDONLY, O_RDWR};
  for (int i = 0; i < 3; i++)
    if (fcntl(i, F_GETFD) < 0 && errno == EBADF && open("/dev/null", ways[i]) != i) _exit(EXIT_FAILED);
}

// The Python package gives its process in SOL_PARENT: the tool ends when that ends, by whatever signal, and the
// keeper (cli/scratch.h) ends what the tool has started.
static void end_with_parent(void) {
  const char *text = getenv("SOL_PARENT");
  pid_t parent = text ? (pid_t)strtol(text, NULL, 10) : 0;
  if (parent <= 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent && kill(parent, 0) != 0) _exit(EXIT_FAILED); // it had ended before prctl
  unsetenv("SOL_PARENT"); // not for a sol that an audited program starts
}

static int run_command(const Command *command, int argc, char **argv) {
  Cli cli = {.command = command, .args = calloc(1, command->args_size), .argc = argc, .argv = argv};
  if (!cli.args) {
    fputs("sol: out of memory\n", stderr);
    return EXIT_FAILED;
  }
  int code = cli_parse(&cli, argc, argv);
  if (!code) code = cli.args->help ? print_with(write_help, command->name) : command->run(&cli, cli.args);
  scratch_drop();
  sol_arena_free(&cli.arena);
  free(cli.args);
  return code;
}

int main(int argc, char **argv) {
  open_standard();
  end_with_parent();
  const char *name = argc > 1 ? argv[1] : 0;
  const char *next = argc > 2 ? argv[2] : 0;
  if (!name) {
    SolBuffer out = {0};
    cli_help(0, cli_columns(2), &out);
    if (out.text) fputs(out.text, stderr);
    sol_buffer_free(&out);
    return EXIT_USAGE;
  }
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
    return print_with(write_help, strcmp(name, "help") == 0 ? next : 0);
  if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) return print_version();
  if (strcmp(name, "man") == 0) return print_with(cli_man, next);
  if (strcmp(name, "completion") == 0) return print_completion(next);
  if (strcmp(name, "commands") == 0) return print_commands();
  SolError err = {0};
  const Command *command = cli_find_command(name, &err);
  return command ? run_command(command, argc - 2, argv + 2) : cli_error(0, &err, 0, 0, 0);
}
