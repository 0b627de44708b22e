// Runs a child process and reads its report until it ends. However it ends (exit, a signal, the time limit,
// Ctrl-C), cli_child_wait returns, and what it reported until then has been read.
#ifndef SOL_CLI_CHILD_H
#define SOL_CLI_CHILD_H

#include <sys/types.h>

#include "base/port.h"

enum { CHILD_PATH = 4096 };

typedef struct Child {
  pid_t pid;
  bool apart;              // in a separate process group
  double limit, grace;     // seconds after which it is ended; limit 0: never. grace: for it to end by itself
  bool (*read)(void *ctx); // reads what it has reported since; true: there was something
  void (*interrupt)(
      void *ctx); // sol was interrupted: asks the program to report what it is at; NULL: it cannot
  void (*progress)(void *ctx, double seconds, char *out, size_t cap); // a line for a terminal
  void *ctx;
  // From cli_child_wait:
  int status;                      // as waitpid has it
  int code;                        // its exit code; -1: it has none
  bool stopped, interrupted, told; // told: it was sent the interrupt
  char ended[160];                 // "the program ended with exit code 3"
} Child;

pid_t child_fork(Child *child); // as fork(); the child ends when sol does
void cli_child_wait(Child *child);
static inline bool cli_child_failed(const Child *child) {
  return child->stopped || child->interrupted || child->code != 0;
}

// One of Sol's libraries: $VARIABLE, or FILE where a build or an installation has it, seen from this program.
bool cli_child_library(const char *variable, const char *build_folder, const char *file, char *out,
                       size_t cap);
bool cli_child_own_folder(char *out, size_t cap); // that this very program is in
// In front of what the variable holds already, with a colon.
void cli_child_set_first(const char *variable, const char *first);

#endif
