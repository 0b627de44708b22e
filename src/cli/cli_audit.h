// Shared by the files of sol audit. Functions that return int return an exit code, and print the reason.
#ifndef SOL_CLI_AUDIT_H
#define SOL_CLI_AUDIT_H

#include "cli/kernel.h"
#include "report/report_audit.h"
#include "report/report_source.h"

typedef struct AuditArgs {
  CommonArgs common;
  KernelArgs kernel;
  const char *device, *sarif, *baseline, *files, *cubin, *against, *from;
  TextList nvcc, source_dirs, check;
  int64_t sample, top, launch;
  bool cold, steady, all, markdown, timeline;
  double max_tax, max_sectors;
  int by, sort;
} AuditArgs;

enum {
  MAX_AUDIT_DEVICES = 32,
  MAX_COMPLAINTS = 64,
  MAX_NOTES = 16,
  MAX_MISSING = 32,
  MAX_ALIASES = 2 * MAX_POSITIONAL,
  MAX_PLACES = 256,
  MAX_FILES = 64 // of source text
};

// A folder whose files may be shown as source; `flat`: without those in its folders.
typedef struct AuditPlace {
  const char *folder;
  bool flat;
} AuditPlace;

// A source that was compiled under another name, or the folder it is from.
typedef struct AuditAlias {
  const char *shown, *real; // the name the compiler was given; the file itself
  bool folder;              // then for everything below it
} AuditAlias;

typedef struct AuditRun {
  Cli *cli;
  const AuditArgs *args;
  const char *compiled[MAX_POSITIONAL]; // the sources as nvcc gets them; NULL until it does
  AuditAlias aliases[MAX_ALIASES];
  int alias_count;
  AuditPlace places[MAX_PLACES];
  int place_count;
  bool toolkit_added;
  int hidden_sources;          // files that exist and were not read
  SourceText texts[MAX_FILES]; // around the lines of the bill
  int text_count;
  AuditComplaint complaints[MAX_COMPLAINTS];
  size_t complaint_count;
  char notes[MAX_NOTES][240]; // text under the bill
  int note_count;
  char missing[MAX_MISSING][160]; // calls and kernels that did not run
  int missing_count;
  char checks[80];  // of --check: "race,init"; "": none
  bool went_wrong;  // the program or a kernel
  char ended[160];  // how the program ended; "" where a kernel ran alone
  int program_exit; // its exit code; -1: it has none
  bool interrupted; // it ended because it was told to
} AuditRun;

// Audits a program or a source for the first GPU named, and writes its bill as JSON.
typedef int AuditBillOf(AuditRun *run, const char *path, SolBuffer *out);
// cli_audit_against.c: --against.
int cli_audit_against(AuditRun *run, AuditBillOf *bill_of);

// cli_audit_check.c: --check, into .checks.
int cli_audit_checks(AuditRun *run);
unsigned cli_audit_check_bits(const char *list); // SOL_EMU_CHECK_...
// What they found, under the bill; and where to look if a program failed without them.
void cli_audit_check_note(AuditRun *run, const AuditProgram *program);

void cli_audit_note(AuditRun *run, const char *format, ...) SOL_PRINTF(2, 3);
void cli_audit_complain(AuditRun *run, const AuditKernel *kernel, const AuditLine *line, const char *format,
                        ...) SOL_PRINTF(4, 5);

// cli_audit_tools.c: compilers, processes.
int cli_audit_look_for_nvcc(char *out, size_t cap); // the release of the best one, 13 for 13.0; 0: none
bool cli_audit_find_shim(char *out, size_t cap);    // Sol's libcudart.so.13
// Runs a program, standard output going to standard error; `quiet`: neither is shown. Its exit code, -1:
// none.
int cli_audit_call(const char *const *argv, bool quiet);
// cli_audit_compile.c: nvcc with the run's sources and `flags` (NULL at the end), for the device, once there is a
// scratch folder. Its messages are shown as they come.
int cli_audit_compile(AuditRun *run, const SolDevice *device, const char *const *flags, const char *out);
const char *audit_simple_nvcc(AuditRun *run, const char *nvcc); // the name to call it by
// The name of a file as the user has it; in the arena where it is another.
const char *audit_real_name(const AuditRun *run, SolArena *arena, const char *file);

// cli_audit_modules.c: the machine code of a program's modules, by ptxas, which runs beside the program.
typedef struct AuditModules AuditModules;
AuditModules *audit_modules_create(AuditRun *run, const SolDevice *device); // NULL: there is no ptxas
void audit_modules_free(AuditModules *modules);                             // NULL is fine
void audit_modules_add(AuditModules *modules, uint32_t unit, const char *ptx);
bool audit_modules_running(AuditModules *modules, uint32_t unit); // its launches have to wait
// Fills in what the machine code says; as it is where there is none.
void audit_modules_apply(AuditModules *modules, AuditLaunch *launch, SolArena *arena);

// cli_audit_program.c: a whole program, run on the emulator; audit_add for every launch.
int cli_audit_program(AuditRun *run, const SolDevice *device, const char *path, AuditProgram *out);
// cli_audit_elf.c: whether a program can be run so; prints why not.
int cli_audit_check_program(AuditRun *run, const SolDevice *device, const char *path);
// cli_audit_kernel.c: a single kernel.
int cli_audit_kernel(AuditRun *run, const SolDevice *device, AuditProgram *out);
// cli_audit_gate.c: complaints about what passes the limits, or is worse than the baseline.
int cli_audit_gate(AuditRun *run, const AuditProgram *program, const AuditView *view);
// cli_audit_source.c: the text of each line, where the file is found and may be shown.
void cli_audit_sources(AuditRun *run, AuditProgram *program);
// cli_audit_places.c: opens a file that a kernel or a program names, for reading. It has to be a regular file of
// at most `most` bytes below one of the run's folders. -1: it is not there; -2: it may not be shown.
int audit_open_source(AuditRun *run, const char *name, size_t most);

#endif
