// Shared by the files of sol devices.
#ifndef SOL_CLI_DEVICES_H
#define SOL_CLI_DEVICES_H

#include "cli/cli.h"

typedef struct DevicesArgs {
  CommonArgs common;
  bool measure, model, fleet;
} DevicesArgs;

FactUnit cli_devices_unit(const char *unit); // of a figure, in text
// Prints `root` with the devices that are named, each in full; without names all, each in brief.
typedef void DevicesShow(Fact *root, const SolDevice *device);
int cli_devices_show(Cli *cli, const DevicesArgs *args, Fact *root, DevicesShow *in_brief,
                     DevicesShow *in_full);
// devices_measure.c: --measure.
int cli_devices_measure(Cli *cli, const DevicesArgs *args);
// devices_model.c: --model.
int cli_devices_model(Cli *cli, const DevicesArgs *args);
// "this" where no GPU was measured but the CPU was: shows what --measure kept. false: that is not so.
bool devices_this_cpu(Cli *cli, int *code);

#endif
