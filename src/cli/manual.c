// Help, man pages and shell completion, all from the commands' tables.
#include <string.h>

#include "base/format.h"
#include "base/text.h"
#include "cli/cli.h"

static void option_usage(const Option *o, char *out, size_t cap) {
  if (o->kind == OPTION_CHOICE)
    sol_format(out, cap, "--%s %s", o->name, o->choices);
  else if (o->kind == OPTION_FLAG)
    sol_format(out, cap, "--%s", o->name);
  else
    sol_format(out, cap, "--%s %s", o->name, o->value);
}

static void help_options(const Command *c, SolBuffer *out) {
  size_t width = 0;
  char usage[128];
  for (int i = 0; i < c->option_count; i++) {
    option_usage(&c->options[i], usage, sizeof usage);
    size_t n = strlen(usage);
    if (n > width && n <= 34) width = n;
  }
  for (int i = 0; i < c->option_count; i++) {
    option_usage(&c->options[i], usage, sizeof usage);
    sol_buffer_format(out, "  %-*s", (int)width, usage);
    if (strlen(usage) > width) sol_buffer_format(out, "\n  %*s", (int)width, "");
    sol_buffer_format(out, "  %s\n", c->options[i].help);
  }
}

static void indented(SolBuffer *out, const char *lines) {
  while (*lines) {
    size_t n = strcspn(lines, "\n");
    sol_buffer_format(out, n ? "  %.*s\n" : "%.*s\n", (int)n, lines);
    lines += n + (lines[n] == '\n');
  }
}

void cli_help(const Command *c, SolBuffer *out) {
  if (c) {
    sol_buffer_format(out, "%s\n\nUsage: sol %s %s\n", c->summary, c->name, c->usage);
    if (c->details) sol_buffer_format(out, "\n%s\n", c->details);
    sol_buffer_puts(out, "\nOptions:\n");
    help_options(c, out);
    sol_buffer_puts(out, "\nExamples:\n");
    indented(out, c->examples);
    return;
  }
  sol_buffer_puts(out,
                  "sol: how fast could a GPU kernel be, why is it slower, and what would fixing it buy\n\n"
                  "Usage: sol COMMAND [arguments] [--json]\n\nCommands:\n");
  for (int i = 0; i < sol_command_count; i++)
    sol_buffer_format(out, "  %-12s  %s\n", sol_commands[i]->name, sol_commands[i]->summary);
  sol_buffer_puts(out, "  help         help on a command: sol help roofline\n"
                       "  completion   shell completion: sol completion bash|zsh|fish\n"
                       "  man          manual page as troff: sol man [COMMAND]\n"
                       "\nExit codes: 0 done; 1 could not read, write or allocate; 2 bad input.\n"
                       "Every command takes --help, and --json for machines.\n");
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
    cli_help(0, &help);
    sol_buffer_format(
        out,
        ".TH SOL 1 \"\" \"sol %s\"\n.SH NAME\nsol \\- memory\\-bound GPU kernels held against their roof\n",
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
  if (c->details) troff_block(out, "DESCRIPTION", c->details);
  sol_buffer_puts(out, ".SH OPTIONS\n");
  for (int i = 0; i < c->option_count; i++) {
    char usage[128];
    option_usage(&c->options[i], usage, sizeof usage);
    sol_buffer_puts(out, ".TP\n.B ");
    troff_line(out, usage);
    troff_line(out, c->options[i].help);
  }
  troff_block(out, "EXAMPLES", c->examples);
  sol_buffer_puts(out, ".SH EXIT STATUS\n0 done; 1 could not read, write or allocate; 2 bad input.\n.SH SEE "
                       "ALSO\n.BR sol (1)\n");
}

// ---- completion ----

// Words of a completion source: "devices", "ops", "models", or choices "a|b|c".
static void words(const char *source, SolBuffer *out) {
  if (!source) return;
  if (strcmp(source, "devices") == 0) {
    for (int i = 0; i < sol_device_count(); i++) sol_buffer_format(out, "%s ", sol_device_at(i)->id);
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
