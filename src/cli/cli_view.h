// Shared by sol view and sol serve.
#ifndef SOL_CLI_VIEW_H
#define SOL_CLI_VIEW_H

#include "base/json_read.h"
#include "cli/cli.h"

// Whether a checked JSON text is an answer of Sol's.
bool cli_is_result(SolJson root);

enum { MAX_RESULT = 256 << 20 }; // bytes of a file of results

// cli_serve.c: one connection, from its request to its answer. folder: open, the one whose files are shown; host: the
// only names the server answers to, "127.0.0.1:8765" and "localhost:8765".
typedef struct ServeAt {
  int folder;
  char host[2][32];
} ServeAt;
void serve_connection(const ServeAt *at, int connection);

#endif
