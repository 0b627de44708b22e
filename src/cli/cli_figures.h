// A device's figures as the command line changes them: --bandwidth, --peak, --set, and --measured FILE.
#ifndef SOL_CLI_FIGURES_H
#define SOL_CLI_FIGURES_H

#include "cli/cli.h"
#include "sol/model.h"

enum { MOST_MEASURED_OPS = 64 };

typedef struct FigureArgs {
  const char *device_file;
  const char *bandwidth; // "4e12" or "85%"
  TextList peaks;        // "bf16=9e14", "70%"
  TextList sets;         // "mem_size=96e9"
  TextList measured;     // files of `sol devices --measure --json` and `sol bench --json`
} FigureArgs;

#define FIGURE_OPTIONS(type, field)                                                                          \
  {"device-file",                                                                                            \
   OPTION_TEXT,                                                                                              \
   offsetof(type, field.device_file),                                                                        \
   "FILE",                                                                                                   \
   0,                                                                                                        \
   0,                                                                                                        \
   "a device by its figures in a JSON file, as in docs/devices.md"},                                         \
      {"bandwidth",                                                                                          \
       OPTION_TEXT,                                                                                          \
       offsetof(type, field.bandwidth),                                                                      \
       "B/S|N%",                                                                                             \
       0,                                                                                                    \
       0,                                                                                                    \
       "memory bandwidth instead of the published one, or a share of it: 4.2e12, 85%"},                      \
      {"peak",                                                                                               \
       OPTION_TEXTS,                                                                                         \
       offsetof(type, field.peaks),                                                                          \
       "[DTYPE=]FLOPS|N%",                                                                                   \
       0,                                                                                                    \
       0,                                                                                                    \
       "peak instead of the published one: bf16=9e14; 70% of every peak"},                                   \
      {"set",                                                                                                \
       OPTION_TEXTS,                                                                                         \
       offsetof(type, field.sets),                                                                           \
       "FIGURE=VALUE",                                                                                       \
       0,                                                                                                    \
       0,                                                                                                    \
       "any figure of 'sol devices NAME --json': mem_size=96e9, link_bandwidth=80%"},                        \
  {                                                                                                          \
    "measured", OPTION_TEXTS, offsetof(type, field.measured), "FILE", 0, 0,                                  \
        "what was measured in place of roofs: JSON of sol devices --measure, of sol bench"                   \
  }

// What came of it, to be said with the answer.
typedef struct Figures {
  SolMeasuredOp ops[MOST_MEASURED_OPS];
  int op_count;
  char said[400]; // "memory bandwidth 4.55 TB/s (measured, x.json)"; empty: nothing was changed
} Figures;

// The devices of --device, `list`, and of --device-file, up to cap; where figures are changed, copies in the command's
// arena. EXIT_OK or EXIT_USAGE.
int cli_figures(Cli *cli, const FigureArgs *args, const char *list, const SolDevice **devices, int cap,
                int *count, Figures *out);
// Says what was changed, where anything was.
void cli_figures_note(Fact *root, const Figures *figures);

#endif
