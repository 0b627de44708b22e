// sol view: results as pictures. Also --html of the commands whose answers have some.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "cli/cli_view.h"
#include "report/html.h"
#include "report/svg.h"

typedef struct ViewArgs {
  CommonArgs common;
  const char *out;
} ViewArgs;

static int write_html(Cli *cli, const char *path, const HtmlPart *parts, int count) {
  SolBuffer out = {0};
  SolError err = {0};
  report_html(&out, parts, count, false);
  SolStatus status = out.failed ? sol_fail(&err, SOL_ERR_NO_SPACE, "out of memory")
                                : cli_write_file(path, out.text, out.length, &err);
  sol_buffer_free(&out);
  return status ? cli_error(cli, &err, 0, 0, 0) : EXIT_OK;
}

static int print_svg(Cli *cli, const Fact *root) {
  SolBuffer out = {0};
  SolError err = {0};
  SolStatus status = !report_svg(root, &out)
                         ? sol_fail(&err, SOL_ERR_UNSUPPORTED, "--svg: this answer has no picture")
                         : cli_write_file(cli->args->svg, out.text, out.length, &err);
  sol_buffer_free(&out);
  return status ? cli_error(cli, &err, 0, 0, 0) : EXIT_OK;
}

static int print_html(Cli *cli, const Fact *root) {
  SolBuffer json = {0};
  int code = EXIT_OK;
  if (!facts_render_json(root, &json))
    code = cli_fail(cli, "out of memory");
  else
    code = write_html(cli, cli->args->html, &(HtmlPart){cli->command->name, json.text, json.length}, 1);
  sol_buffer_free(&json);
  return code;
}

int cli_print_pictures(Cli *cli, const Fact *root) {
  int code = cli->args->html ? print_html(cli, root) : EXIT_OK;
  return code || !cli->args->svg ? code : print_svg(cli, root);
}

static int read_part(Cli *cli, const char *path, HtmlPart *out) {
  SolError err = {0};
  SolJson root;
  char *text = cli_read_file(path, MAX_RESULT, &out->length, &err);
  if (!text) return cli_error(cli, &err, 0, 0, 0);
  out->name = path;
  out->json = text;
  if (sol_json_check(text, out->length, &root, &err)) return cli_error(cli, &err, path, text, out->length);
  if (cli_is_result(root)) return EXIT_OK;
  sol_fail(&err, SOL_ERR_ARGUMENT, "'%.120s' is JSON, but no result of Sol's: it has no schema", path);
  sol_hint(&err, "results are what a command prints with --json, such as 'sol audit prog.cu --json'");
  return cli_error(cli, &err, 0, 0, 0);
}

static int run(Cli *cli, void *arguments) {
  ViewArgs *args = arguments;
  HtmlPart parts[MAX_POSITIONAL] = {0};
  int count = args->common.positional_count, code = EXIT_OK;
  if (!count) return cli_fail(cli, "name a file of results");
  for (int i = 0; i < count && !code; i++) code = read_part(cli, args->common.positional[i], &parts[i]);
  if (!code) code = write_html(cli, args->out ? args->out : "sol.html", parts, count);
  for (int i = 0; i < count; i++) free((char *)parts[i].json);
  if (code) return code;
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, "file", "written", args->out ? args->out : "sol.html");
  return cli_print(cli, root);
}

static const Option options[] = {
    {"out", OPTION_TEXT, offsetof(ViewArgs, out), "FILE", 0, 0, "the file to write (default sol.html)"},
    COMMON_OPTIONS};

const Command cmd_view = {
    .name = "view",
    .usage = "RESULT.json... [--out FILE]",
    .summary = "a report with pictures, one HTML file, of what other commands printed with --json",
    .details =
        "Rooflines, source with the bill of each line, ladders, passes: what the JSON has. Several files "
        "are compared. The file needs no network and no other file; open it in a browser.",
    .examples = "sol audit examples/column_scale.cu --json > bill.json; sol view bill.json\n"
                "sol view before.json after.json --out compared.html",
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .args_size = sizeof(ViewArgs),
    .run = run,
};
