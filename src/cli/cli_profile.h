// Shared by the files of sol profile. Functions that return int return an exit code, and print the reason.
#ifndef SOL_CLI_PROFILE_H
#define SOL_CLI_PROFILE_H

#include "cli/cli.h"
#include "profile/diagnose.h"

typedef struct ProfileArgs {
  CommonArgs common;
  const char *import, *against, *device, *kernel;
  int64_t skip, count, top;
  int64_t each;   // --each: launches of one kernel and shape that are counted; 0: not given
  bool times;     // --times: kernel times alone, no counters
  bool dram;      // --dram: times and counters of DRAM, which take one pass
  double seconds; // --seconds: stop the program after that many seconds; 0: no limit
} ProfileArgs;

typedef struct ProfileRun {
  Cli *cli;
  const ProfileArgs *args;
  ProfileFilter filter; // from the arguments
  bool went_wrong;      // the program: it crashed, was stopped, or gave an exit code
  char ended[200];      // how it ended, as text; "": normally
  bool no_counters;     // times alone, because the driver or CUPTI refused counters
} ProfileRun;

// cli_profile_program.c: runs args->common.positional[0] with cli->rest as its arguments, and adds its launches.
// EXIT_OK where there is a profile to show, also of a program that went wrong: then run->went_wrong and
// ->ended.
int cli_profile_program(ProfileRun *run, Profile *out);
// cli_profile_emulate.c: the bill of 'sol audit --json' for the same program, in a file of the scratch folder;
// NULL: there is none. The profile has a note either way.
const char *cli_profile_emulate(ProfileRun *run, Profile *profile);

// cli_profile_ncu.c: a .ncu-rep, as CSV in a file of the scratch folder, where Nsight Compute is installed.
bool cli_profile_is_report(const char *path);
int cli_profile_read_report(ProfileRun *run, const char *report, const char **csv);

#endif
