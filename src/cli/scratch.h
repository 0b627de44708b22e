// The temporary folder of a command, and the programs that it starts. A separate process, the keeper, waits for
// this one to end. However it ends (exit, a signal, even SIGKILL), the keeper kills a program that still runs
// and removes the folder.
#ifndef SOL_CLI_SCRATCH_H
#define SOL_CLI_SCRATCH_H

#include <sys/types.h>

#include "cli/cli.h"

// Letters, digits and "_/.+-@": no shell, no list of paths and no list of nvcc's reads any of them as its
// own.
bool scratch_is_simple(const char *path);

// Makes the folder, "sol-WHAT-XXXXXX" under TMPDIR, for this user alone; once. Its name is absolute and
// simple: where TMPDIR's is not, it is in /tmp. Returns an exit code, with the error printed.
int scratch_make(Cli *cli, const char *what);
const char *scratch_folder(void); // NULL: there is none
// "FOLDER/NAME", in the command's arena; "" where there is no memory.
const char *scratch_path(Cli *cli, const char *format, ...) SOL_PRINTF(2, 3);
void scratch_drop(void); // with what is in it; also where there is none

// fork(), for a program that ends when sol does. `apart`: in a separate process group.
pid_t scratch_fork(bool apart);
// The same for a program that runs beside that one and starts none itself: the kernel ends it when we end.
pid_t scratch_fork_beside(void);
void scratch_ended(void); // that program was waited for

#endif
