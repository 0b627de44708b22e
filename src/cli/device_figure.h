// A figure of SOL_DEVICE_FIGURES by its field's name; NULL where there is none.
#ifndef SOL_CLI_DEVICE_FIGURE_H
#define SOL_CLI_DEVICE_FIGURE_H

#include "sol/device.h"

SolFigure *cli_device_figure(SolDevice *device, const char *field);

#endif
