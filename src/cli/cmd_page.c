// sol page: where the page is that `make page` builds.
#define _POSIX_C_SOURCE 200809L // access

#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/child.h"
#include "cli/cli.h"

typedef struct PageArgs {
  CommonArgs common;
  bool open;
} PageArgs;

// Beside the tool, as it is built; or under the prefix, as it is installed.
static bool find_page(char *out, size_t cap) {
  static const char *const places[] = {"page.html", "../share/sol/page.html"};
  char here[CHILD_PATH];
  if (!cli_child_own_folder(here, sizeof here)) return false;
  for (size_t i = 0; i < SOL_COUNT(places); i++)
    if (sol_format(out, cap, "%s/%s", here, places[i]) < cap && access(out, R_OK) == 0) return true;
  return false;
}

static int run(Cli *cli, void *arguments) {
  const PageArgs *args = arguments;
  char path[CHILD_PATH];
  SolError err = {0};
  if (!find_page(path, sizeof path)) {
    sol_fail(&err, SOL_ERR_NOT_FOUND, "there is no page here");
    sol_hint(&err, "build it with: make page (it needs clang and lld)");
    return cli_error(cli, &err, 0, 0, 0);
  }
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, "file", "open in a browser", path);
  int code = cli_print(cli, root);
  if (code || !args->open) return code;
  execlp("xdg-open", "xdg-open", path, (char *)NULL);
  sol_fail(&err, SOL_ERR_NOT_FOUND, "there is no xdg-open to open it with");
  return cli_error(cli, &err, 0, 0, 0);
}

static const Option options[] = {
    {"open", OPTION_FLAG, offsetof(PageArgs, open), 0, 0, 0, "open it in the browser, by xdg-open"},
    COMMON_OPTIONS};

const Command cmd_page = {
    .name = "page",
    .usage = "[--open]",
    .summary = "the accountant, the memory model and the emulator in the browser: one file, no network",
    .details =
        "Rooflines of operations and of bytes and FLOPs; which sectors and banks the lanes of a warp touch; "
        "the bill of a kernel from its PTX. The file is built by 'make page'.",
    .examples = "sol page --help\n"
                "sol page --open         # after make page",
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .args_size = sizeof(PageArgs),
    .run = run,
};
