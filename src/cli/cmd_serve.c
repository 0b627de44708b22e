// sol serve: a folder of results in the browser, on this machine alone.
#define _GNU_SOURCE // accept4

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/cli_view.h"

typedef struct ServeArgs {
  CommonArgs common;
  int64_t port;
} ServeArgs;

enum { DEFAULT_PORT = 8765, PATIENCE = 2 }; // seconds that a client may take to send its request

static volatile sig_atomic_t interrupted; // by ctrl-C
static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

// Listens on 127.0.0.1 alone; *port 0 becomes the one that was free.
static int listen_at(int *port, SolError *err) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
  socklen_t size = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int one = 1, server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (server >= 0) setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (server >= 0 && bind(server, (struct sockaddr *)&address, size) == 0 && listen(server, 16) == 0 &&
      getsockname(server, (struct sockaddr *)&address, &size) == 0) {
    *port = ntohs(address.sin_port);
    return server;
  }
  sol_fail(err, SOL_ERR_IO, "cannot listen on 127.0.0.1:%d: %s", *port, strerror(errno));
  sol_hint(err, "--port takes another, 0 any that is free");
  if (server >= 0) close(server);
  return -1;
}

static void serve(const ServeAt *at, int server) {
  struct timeval patience = {.tv_sec = PATIENCE};
  while (!interrupted) {
    int connection = accept4(server, NULL, NULL, SOCK_CLOEXEC);
    if (connection < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (connection < 0) break;
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    serve_connection(at, connection);
    close(connection);
  }
}

static int say_where(Cli *cli, const ServeAt *at) {
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_textf(root, "address", "open in a browser", "http://%s/", at->host[0]);
  return cli_print(cli, root);
}

static int run(Cli *cli, void *arguments) {
  const ServeArgs *args = arguments;
  SolError err = {0};
  int port = cli_given(cli, "port") ? (int)args->port : DEFAULT_PORT;
  if (args->common.positional_count != 1) return cli_fail(cli, "name one folder of results");
  if (args->port > 65535) return cli_fail(cli, "--port: 0 to 65535");
  ServeAt at = {.folder = open(args->common.positional[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (at.folder < 0) {
    sol_fail(&err, SOL_ERR_NOT_FOUND, "cannot open the folder '%.120s': %s", args->common.positional[0],
             strerror(errno));
    return cli_error(cli, &err, 0, 0, 0);
  }
  int server = listen_at(&port, &err), code = EXIT_OK;
  if (server < 0) {
    code = cli_error(cli, &err, 0, 0, 0);
  } else {
    sol_format(at.host[0], sizeof at.host[0], "127.0.0.1:%d", port);
    sol_format(at.host[1], sizeof at.host[1], "localhost:%d", port);
    struct sigaction end = {.sa_handler = on_interrupt}; // without SA_RESTART: accept returns
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    code = say_where(cli, &at);
    if (!code) serve(&at, server);
    close(server);
  }
  close(at.folder);
  return code;
}

static const Option options[] = {{"port", OPTION_COUNT, offsetof(ServeArgs, port), "N", 0, 0,
                                  "to listen on (default 8765; 0: any that is free)"},
                                 COMMON_OPTIONS};

const Command cmd_serve = {
    .name = "serve",
    .usage = "FOLDER [--port N]",
    .summary = "a folder of results in the browser, on this machine alone, drawn again when a file changes",
    .details =
        "Every .json file of the folder that a command printed with --json is shown as its report. It listens on "
        "127.0.0.1, shows no other file and no other folder, and refuses requests that other sites make. "
        "Ctrl-C ends it.",
    .examples = "sol serve results                # until Ctrl-C",
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .args_size = sizeof(ServeArgs),
    .run = run,
};
