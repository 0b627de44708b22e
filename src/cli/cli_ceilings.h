// Measured ceilings, kept in the user's cache folder: sol/devices/UUID.json for each GPU, cpu.json for the
// CPU.
#ifndef SOL_CLI_CEILINGS_H
#define SOL_CLI_CEILINGS_H

#include "cli/cli.h"
#include "measure/ceilings.h"

// Where they are kept; false where there is no folder ($XDG_CACHE_HOME and $HOME are not set).
bool cli_ceilings_folder(char *out, size_t cap);
// Writes them there; `path` (of `cap` bytes) receives where.
SolStatus cli_ceilings_store(const Ceilings *ceilings, char *path, size_t cap, SolError *err);
// Of the GPU with that UUID; "" for the UUID: of the GPU of that name, the latest of several; "" for both: of
// any GPU, the latest. false: nothing is kept, or it cannot be read.
bool cli_ceilings_find(const char *uuid, const char *name, Ceilings *out);
bool cli_ceilings_find_cpu(Ceilings *out);

// This machine's GPU as it was measured: a row of the table with the measured figures, in the command's
// arena. `--device this` finds it. SOL_ERR_NOT_FOUND where nothing was measured here.
SolStatus cli_ceilings_this_device(Cli *cli, const SolDevice **out, SolError *err);

#endif
