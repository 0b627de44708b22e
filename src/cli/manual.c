// Help, man pages and shell completion, all from the commands' tables.
#include <string.h>

#include "base/format.h"
#include "base/text.h"
#include "cli/cli.h"
#include "report/wrap.h"

static void option_usage(const Option *o, char *out, size_t cap) {
  if (o->kind == OPTION_CHOICE)
    sol_format(out, cap, "--%s %s", o->name, o->choices);
  else if (o->kind == OPTION_FLAG)
    sol_format(out, cap, "--%s", o->name);
  else
    sol_format(out, cap, "--%s %s", o->name, o->value);
}

// ---- help ----

enum { HELP_WIDTH = 80, OPTION_COLUMNS = 30 };

static void wrap(SolBuffer *out, const char *text, size_t indent, size_t at, size_t width) {
  report_wrap(out, text, indent, at, width, "");
  sol_buffer_puts(out, "\n");
}

static void help_options(const Command *c, size_t width, SolBuffer *out) {
  size_t columns = 0;
  char usage[128];
  for (int i = 0; i < c->option_count; i++) {
    option_usage(&c->options[i], usage, sizeof usage);
    size_t n = strlen(usage);
    if (n > columns && n <= OPTION_COLUMNS) columns = n;
  }
  for (int i = 0; i < c->option_count; i++) {
    option_usage(&c->options[i], usage, sizeof usage);
    sol_buffer_format(out, "  %-*s", (int)columns, usage);
    if (strlen(usage) > columns) sol_buffer_format(out, "\n  %*s", (int)columns, "");
    sol_buffer_puts(out, "  ");
    wrap(out, c->options[i].help, columns + 4, columns + 4, width);
  }
}

// One command a line. Where a line is too long its comment is printed before it, and it continues after a
// backslash.
static void help_examples(const char *lines, size_t width, SolBuffer *out) {
  char line[512];
  for (; *lines; lines += *lines == '\n') {
    size_t n = strcspn(lines, "\n");
    sol_format(line, sizeof line, "%.*s", (int)n, lines);
    lines += n;
    char *comment = strstr(line, "  #");
    if (comment && n + 2 > width) {
      sol_buffer_format(out, "  %s\n", comment + 2);
      *comment = 0;
    }
    sol_buffer_puts(out, "  ");
    report_wrap(out, line, 4, 2, strlen(line) + 2 > width ? width : SIZE_MAX,
                strlen(line) + 2 > width ? " \\" : "");
    sol_buffer_puts(out, "\n");
  }
}

static const char *const exit_codes[] = {
    "done",
    "could not read, write or allocate, or a rung or a case failed",
    "bad input",
    "a requested limit was exceeded (audit's gates)",
    "the program or a kernel failed or was stopped, or a result is wrong",
    "the bill is incomplete: a library that the program calls does not run here (audit)",
};

static void help_exit_codes(size_t width, SolBuffer *out) {
  sol_buffer_puts(out, "\nExit codes:\n");
  for (int i = 0; i < (int)SOL_COUNT(exit_codes); i++) {
    sol_buffer_format(out, "  %d  ", i);
    wrap(out, exit_codes[i], 5, 5, width);
  }
}

static void help_command(const Command *c, size_t width, SolBuffer *out) {
  wrap(out, c->summary, 0, 0, width);
  sol_buffer_format(out, "\nUsage: sol %s ", c->name);
  wrap(out, c->usage, 7, 12 + strlen(c->name), width);
  if (c->details) {
    sol_buffer_puts(out, "\n");
    wrap(out, c->details, 0, 0, width);
  }
  sol_buffer_puts(out, "\nOptions:\n");
  help_options(c, width, out);
  sol_buffer_puts(out, "\nExamples:\n");
  help_examples(c->examples, width, out);
  help_exit_codes(width, out);
}

void cli_help(const Command *command, size_t width, SolBuffer *out) {
  static const struct {
    const char *name, *summary;
  } others[] = {{"help", "help on a command: sol help roofline"},
                {"completion", "shell completion: sol completion bash|zsh|fish"},
                {"man", "manual page as troff: sol man [COMMAND]"}};
  if (width > HELP_WIDTH) width = HELP_WIDTH;
  if (command) {
    help_command(command, width, out);
    return;
  }
  wrap(out, "sol: how fast could a GPU kernel be, why is it slower, and what would fixing it buy", 0, 0,
       width);
  sol_buffer_puts(out, "\nUsage: sol COMMAND [arguments] [--json]\n\nCommands:\n");
  for (int i = 0; i < sol_command_count + (int)SOL_COUNT(others); i++) {
    bool own = i < sol_command_count;
    sol_buffer_format(out, "  %-10s  ", own ? sol_commands[i]->name : others[i - sol_command_count].name);
    wrap(out, own ? sol_commands[i]->summary : others[i - sol_command_count].summary, 14, 14, width);
  }
  help_exit_codes(width, out);
  sol_buffer_puts(out, "\n");
  wrap(out, "Every command takes --help; --json for JSON; --wide for whole tables.", 0, 0, width);
}

// ---- man pages ----

static void troff(SolBuffer *out, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    char c = text[i];
    if (c == '\\')
      sol_buffer_puts(out, "\\e");
    else if (c == '-')
      sol_buffer_puts(out, "\\-");
    else if ((c == '.' || c == '\'') && (i == 0 || text[i - 1] == '\n'))
      sol_buffer_format(out, "\\&%c", c);
    else
      sol_buffer_put(out, &c, 1);
  }
}

static void troff_line(SolBuffer *out, const char *text) {
  troff(out, text, strlen(text));
  sol_buffer_puts(out, "\n");
}

static void troff_block(SolBuffer *out, const char *section, const char *text) {
  sol_buffer_format(out, ".SH %s\n.nf\n", section);
  troff_line(out, text);
  sol_buffer_puts(out, ".fi\n");
}

void cli_man(const Command *c, SolBuffer *out) {
  if (!c) {
    SolBuffer help = {0};
    cli_help(0, HELP_WIDTH, &help);
    sol_buffer_format(
        out,
        ".TH SOL 1 \"\" \"sol %s\"\n.SH NAME\nsol \\- memory\\-bound GPU kernels compared with their roofline\n",
        SOL_VERSION);
    troff_block(out, "DESCRIPTION", help.text ? help.text : "");
    sol_buffer_puts(out, ".SH SEE ALSO\n");
    for (int i = 0; i < sol_command_count; i++)
      sol_buffer_format(out, ".BR sol\\-%s (1)%s\n", sol_commands[i]->name,
                        i + 1 < sol_command_count ? "," : "");
    sol_buffer_free(&help);
    return;
  }
  sol_buffer_format(out, ".TH SOL\\-%s 1 \"\" \"sol %s\"\n.SH NAME\nsol\\-%s \\- ", c->name, SOL_VERSION,
                    c->name);
  troff_line(out, c->summary);
  sol_buffer_format(out, ".SH SYNOPSIS\n.B sol %s\n", c->name);
  troff_line(out, c->usage);
  if (c->details) {
    SolBuffer details = {0};
    wrap(&details, c->details, 0, 0, HELP_WIDTH);
    troff_block(out, "DESCRIPTION", details.text ? details.text : "");
    sol_buffer_free(&details);
  }
  sol_buffer_puts(out, ".SH OPTIONS\n");
  for (int i = 0; i < c->option_count; i++) {
    char usage[128];
    option_usage(&c->options[i], usage, sizeof usage);
    sol_buffer_puts(out, ".TP\n.B ");
    troff_line(out, usage);
    troff_line(out, c->options[i].help);
  }
  troff_block(out, "EXAMPLES", c->examples);
  sol_buffer_puts(out, ".SH EXIT STATUS\n");
  for (int i = 0; i < (int)SOL_COUNT(exit_codes); i++) {
    sol_buffer_format(out, ".TP\n.B %d\n", i);
    troff_line(out, exit_codes[i]);
  }
  sol_buffer_puts(out, ".SH SEE ALSO\n.BR sol (1)\n");
}

// ---- completion ----

// Words of a completion source: "devices", "ops", "models", or choices "a|b|c".
static void words(const char *source, SolBuffer *out) {
  if (!source) return;
  if (strcmp(source, "devices") == 0) {
    for (int i = 0; i < sol_accelerator_count(); i++)
      sol_buffer_format(out, "%s ", sol_accelerator_at(i)->id);
    sol_buffer_puts(out, "all");
  } else if (strcmp(source, "ops") == 0) {
    for (int i = 0; i < sol_op_count(); i++) sol_buffer_format(out, "%s ", sol_op_info(i)->name);
  } else if (strcmp(source, "models") == 0) {
    for (int i = 0; i < sol_model_preset_count(); i++)
      sol_buffer_format(out, "%s ", sol_model_preset(i)->name);
  } else {
    for (const char *p = source; *p; p++) sol_buffer_put(out, *p == '|' ? " " : p, 1);
  }
}

static void option_words(const Option *o, SolBuffer *out) {
  if (o->kind == OPTION_DTYPE) {
    for (int d = 1; d < SOL_DTYPE_COUNT; d++) sol_buffer_format(out, "%s ", sol_dtype_name((SolDtype)d));
  } else {
    words(o->choices, out);
  }
}

static void bash_completion(SolBuffer *out) {
  sol_buffer_puts(out, "_sol() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} w=\n"
                       "  if [ \"$COMP_CWORD\" = 1 ]; then w='");
  for (int i = 0; i < sol_command_count; i++) sol_buffer_format(out, "%s ", sol_commands[i]->name);
  sol_buffer_puts(out, "help completion man'\n  else case ${COMP_WORDS[1]}:$prev in\n");
  for (int i = 0; i < sol_command_count; i++) {
    const Command *c = sol_commands[i];
    for (int k = 0; k < c->option_count; k++) {
      if (c->options[k].kind == OPTION_FLAG) continue;
      sol_buffer_format(out, "    %s:--%s) w='", c->name, c->options[k].name);
      option_words(&c->options[k], out);
      sol_buffer_puts(out, "' ;;\n");
    }
    sol_buffer_format(out, "    %s:*) w='", c->name);
    words(c->positional, out);
    for (int k = 0; k < c->option_count; k++) sol_buffer_format(out, " --%s", c->options[k].name);
    sol_buffer_puts(out, "' ;;\n");
  }
  sol_buffer_puts(
      out,
      "  esac; fi\n  COMPREPLY=($(compgen -W \"$w\" -- \"$cur\"))\n}\ncomplete -o default -F _sol sol\n");
}

static void fish_completion(SolBuffer *out) {
  for (int i = 0; i < sol_command_count; i++) {
    const Command *c = sol_commands[i];
    sol_buffer_format(out, "complete -c sol -n __fish_use_subcommand -a %s -d \"%s\"\n", c->name, c->summary);
    if (c->positional) {
      sol_buffer_format(out, "complete -c sol -n '__fish_seen_subcommand_from %s' -a '", c->name);
      words(c->positional, out);
      sol_buffer_puts(out, "'\n");
    }
    for (int k = 0; k < c->option_count; k++) {
      const Option *o = &c->options[k];
      sol_buffer_format(out, "complete -c sol -n '__fish_seen_subcommand_from %s' -l %s -d \"%s\"", c->name,
                        o->name, o->help);
      if (o->kind != OPTION_FLAG) {
        sol_buffer_puts(out, " -x -a '");
        option_words(o, out);
        sol_buffer_puts(out, "'");
      }
      sol_buffer_puts(out, "\n");
    }
  }
}

bool cli_completion(const char *shell, SolBuffer *out) {
  if (strcmp(shell, "bash") == 0) {
    bash_completion(out);
  } else if (strcmp(shell, "zsh") == 0) { // zsh runs bash's through its own compatibility layer
    sol_buffer_puts(out, "#compdef sol\nautoload -U +X bashcompinit && bashcompinit\n");
    bash_completion(out);
  } else if (strcmp(shell, "fish") == 0) {
    fish_completion(out);
  } else {
    return false;
  }
  return true;
}
