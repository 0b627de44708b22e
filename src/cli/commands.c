// The one list of commands.
#include "cli/cli.h"

extern const Command cmd_devices, cmd_roofline, cmd_occupancy, cmd_model, cmd_run_ptx, cmd_audit, cmd_bench,
    cmd_ladder, cmd_profile, cmd_view, cmd_page, cmd_serve, cmd_fleet;

const Command *const sol_commands[] = {&cmd_devices, &cmd_roofline, &cmd_occupancy, &cmd_model,  &cmd_audit,
                                       &cmd_profile, &cmd_run_ptx,  &cmd_bench,     &cmd_ladder, &cmd_view,
                                       &cmd_page,    &cmd_serve,    &cmd_fleet};
const int sol_command_count = sizeof sol_commands / sizeof sol_commands[0];
