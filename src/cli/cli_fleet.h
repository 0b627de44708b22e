// sol fleet, and --fleet of commands that measure.
#ifndef SOL_CLI_FLEET_H
#define SOL_CLI_FLEET_H

#include "cli/cli.h"

#define FLEET_OPTION(type, field)                                                                            \
  {                                                                                                          \
    "fleet", OPTION_FLAG, offsetof(type, field), 0, 0, 0,                                                    \
        "under mpirun: on every rank's GPU, as one answer that names slow ones"                              \
  }

// The same command on every rank, without --fleet.
int cli_fleet_same(Cli *cli);

#endif
